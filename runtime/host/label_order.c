// label_order.c -- labels of components: whether they may be permuted, and whether warnings about draws are about them alone.
//
//   chain 1: mu = (0, 5)      chain 2: mu = (5, 0)      in ascending order: both (0, 5)
//
// Where labels may be permuted, R-hat of mu[1] compares one component with another. A function of the draws that does not change when
// labels are permuted has no such fault: the elements of an array in ascending order, and all other arrays with their components in the
// order of that one. So these are diagnosed again, in the order of each array that has an element for each component. The order that
// leaves the fewest quantities in trouble counts.
#include "fields.h"
#include "messages.h"
#include "label_order.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- labels of a model ----

long gm_with_label(const GmShape *s, int along, long element, long l)
{
    long stride = 1;
    for (int d = s->rank - 1; d > along; d--) stride *= s->dim[d];
    const long now = element / stride % s->dim[along];
    return element + (l - now) * stride;
}

int gm_label_dimension(unsigned dims)
{
    int d = 0;
    while (!(dims >> d & 1)) d++;
    return d;
}

bool gm_one_dimension(unsigned dims) { return dims && !(dims & (dims - 1)); }

char *gm_label_parameters(const GmModel *model, const GmLabels *l, long *const *column_of)
{
    char *names = gm_copy_text("");
    for (const GmLabelled *v = l->fields; v->field; v++) {
        const GmField *f = &model->state[v->field - 1];
        if (v->values || v->apart || v->lost || !gm_one_dimension(v->dims) || f->role != GM_PARAMETER) continue;
        if (column_of && !column_of[v->field - 1]) continue;
        char *more = gm_format("%s%s%s", names, *names ? "," : "", f->name);
        free(names);
        names = more;
    }
    return names;
}

// Whether data do not differ along a dimension.
static bool alike(const GmModel *model, const GmData *data, const GmAlike *a)
{
    const GmField *field = &model->data[a->field - 1];
    const GmShape *s = &data->shape[a->field - 1];
    const void *x = *(void *const *)((const char *)data->data + field->offset);
    for (long e = 0; e < gm_shape_size(s); e++) {
        const long first = gm_with_label(s, a->dim, e, 0);
        if (field->type == GM_INT ? ((const int32_t *)x)[e] != ((const int32_t *)x)[first]
                                  : ((const double *)x)[e] != ((const double *)x)[first])
            return false;
    }
    return true;
}

bool gm_labels_exchangeable(const GmModel *model, const GmMemory *m, const GmData *data, const GmLabels *l)
{
    bool can = !l->identified;
    for (const GmAlike *a = l->alike; a && a->field && can; a++) can = alike(model, data, a);
    for (const GmLabelled *v = l->fields; v->field && can; v++)
        can = !v->dims || m->shape[v->field - 1].dim[gm_label_dimension(v->dims)] >= 2;
    return can;
}

bool gm_depends_on_labels(const GmModel *model, const GmMemory *m, const GmData *data, int field)
{
    for (const GmLabels *l = model->labels; l && l->by; l++)
        for (const GmLabelled *v = l->fields; v->field; v++)
            if (v->field == field + 1 && (v->dims || v->values || v->lost) && gm_labels_exchangeable(model, m, data, l)) return true;
    return false;
}

// ---- draws with components in order ----

enum { MOST_PLACES = 1 << 26 };  // numbers of an order, over all draws

typedef struct Order {  // of the components of each draw: at[0] is the one of the least element, place[] the inverse; [draw][component]
    const GmDraws *d;
    const GmMemory *m;
    int n;
    int32_t *at, *place;
} Order;

static double number_of(const GmDraws *d, long draw, long column)
{
    const long chain = draw / d->kept, row = draw % d->kept;
    return d->memory[(size_t)(chain * d->held + row) * (size_t)d->n_columns + (size_t)column];
}

// By element of a field its column, -1 if it is not in the summary.
static long *columns_of(const GmDraws *d, const GmMemory *m, int field)
{
    const long size = gm_shape_size(&m->shape[field]);
    long *of = gm_alloc((size_t)size + 1, sizeof *of);
    for (long e = 0; e < size; e++) of[e] = -1;
    for (long k = 0; k < d->n_summarised; k++)
        if (d->column[k].field == field) of[d->column[k].element] = k;
    return of;
}

static bool is_bad(const GmSummary *s, int chains)
{
    return s->rhat > 1.01 || s->ess_bulk < 100.0 * chains || s->ess_tail < 100.0 * chains;
}

// Orders the components of all draws by the elements of an array along its labels, the first ones along its other dimensions. false: some
// of them are not kept.
static bool order_by(Order *o, const GmLabelled *v)
{
    const GmShape *s = &o->m->shape[v->field - 1];
    long *column = columns_of(o->d, o->m, v->field - 1);
    const int along = gm_label_dimension(v->dims);
    bool there = s->dim[along] == o->n;
    for (int k = 0; k < o->n && there; k++) there = column[gm_with_label(s, along, 0, k)] >= 0;
    for (long i = 0; i < o->d->chains * o->d->kept && there; i++) {
        int32_t *at = o->at + i * o->n;
        for (int k = 0, to; k < o->n; k++) {
            const double x = number_of(o->d, i, column[gm_with_label(s, along, 0, k)]);
            for (to = k; to > 0 && number_of(o->d, i, column[gm_with_label(s, along, 0, at[to - 1])]) > x; to--) at[to] = at[to - 1];
            at[to] = k;
        }
        for (int k = 0; k < o->n; k++) o->place[i * o->n + at[k]] = k;
    }
    free(column);
    return there;
}

// The draws of a column with the components of each in order. false: some of its elements are not kept, or not one for each.
static bool in_order(const Order *o, const GmLabelled *v, const long *column, long element, double *x)
{
    const GmShape *s = &o->m->shape[v->field - 1];
    for (long i = 0; i < o->d->chains * o->d->kept; i++) {
        long from = element;
        for (int d = 0; d < s->rank; d++)
            if (v->dims >> d & 1) {
                if (s->dim[d] != o->n) return false;
                long stride = 1;
                for (int r = s->rank - 1; r > d; r--) stride *= s->dim[r];
                from = gm_with_label(s, d, from, o->at[i * o->n + from / stride % s->dim[d]]);
            }
        if (column[from] < 0) return false;
        x[i] = number_of(o->d, i, column[from]);
        if (v->values && x[i] >= 1 && x[i] <= o->n) x[i] = o->place[i * o->n + (long)x[i] - 1] + 1;
    }
    return true;
}

// Diagnoses the columns in trouble with components in order, into `judged`; returns how many are in trouble then.
static long judge(const Order *o, const GmLabels *l, const GmSummary *all, GmSummary *judged, bool *ordered)
{
    const int chains = o->d->chains;
    const long draws = o->d->kept;
    long left = 0;
    for (const GmLabelled *v = l->fields; v->field; v++) {
        if (v->apart || v->lost || (!v->dims && !v->values)) continue;
        long *column = columns_of(o->d, o->m, v->field - 1);
        const long size = gm_shape_size(&o->m->shape[v->field - 1]);
#pragma omp parallel reduction(+ : left)
        {
            double *x = gm_alloc((size_t)(chains * draws), sizeof *x);
#pragma omp for schedule(dynamic, 1)
            for (long e = 0; e < size; e++) {
                const long k = column[e];
                if (k < 0 || !is_bad(&all[k], chains)) continue;
                if ((ordered[k] = in_order(o, v, column, e, x))) judged[k] = gm_summarise(x, chains, draws);
                left += is_bad(&judged[k], chains);
            }
            free(x);
        }
        free(column);
    }
    return left;
}

// Definitions that depend on which label is which, as mu[1], have no order, and trouble that the others show.
static void pass_over_lost(const Order *o, const GmLabels *l, GmSummary *judged, bool *ordered)
{
    for (long k = 0; k < o->d->n_summarised; k++)
        for (const GmLabelled *v = l->fields; v->field; v++)
            if (v->lost && v->field - 1 == o->d->column[k].field) {
                judged[k].rhat = judged[k].ess_bulk = judged[k].ess_tail = NAN;
                ordered[k] = true;
            }
}

static int labels_of(const GmMemory *m, const GmLabels *l)
{
    for (const GmLabelled *v = l->fields; v->field; v++)
        if (v->dims) return (int)m->shape[v->field - 1].dim[gm_label_dimension(v->dims)];
    return 0;
}

// In the order of the array that leaves the least trouble.
static void judge_labels(Order *o, const GmLabels *l, const GmSummary *all, GmSummary *judged, bool *ordered)
{
    const size_t n = (size_t)o->d->n_summarised;
    GmSummary *these = gm_alloc(n, sizeof *these);
    bool *which = gm_alloc(n, sizeof *which);
    long least = LONG_MAX;
    for (const GmLabelled *v = l->fields; v->field && least > 0; v++) {
        if (v->values || v->apart || v->lost || !gm_one_dimension(v->dims) || !order_by(o, v)) continue;
        memcpy(these, all, n * sizeof *these);
        memset(which, 0, n * sizeof *which);
        const long left = judge(o, l, all, these, which);
        for (size_t k = 0; k < n && left < least; k++) {
            if (!which[k]) continue;
            judged[k] = these[k];
            ordered[k] = true;
        }
        if (left < least) least = left;
    }
    if (least < LONG_MAX) pass_over_lost(o, l, judged, ordered);
    free(which);
    free(these);
}

void gm_labels_judge(const GmDraws *d, const GmModel *model, const GmMemory *m, const GmSummary *all, GmSummary *judged, bool *ordered)
{
    const long draws = d->chains * d->kept;
    for (const GmLabels *l = model->labels; l && l->by && d->held >= d->kept; l++) {
        Order o = {.d = d, .m = m, .n = labels_of(m, l)};
        if (!gm_labels_exchangeable(model, m, d->data, l) || o.n < 2 || draws * o.n > MOST_PLACES) continue;
        o.at = gm_alloc((size_t)(draws * o.n), sizeof *o.at);
        o.place = gm_alloc((size_t)(draws * o.n), sizeof *o.place);
        judge_labels(&o, l, all, judged, ordered);
        free(o.at);
        free(o.place);
    }
}

// ---- the note of a run ----

// How draws of these labels are permuted. Allocations of an augmentation, stored, would hinder NUTS: then parameters decide. The caller
// frees.
static char *relabelled_by(const GmModel *model, const GmLabels *l, const GmDraws *d)
{
    const bool auxiliary = model->state[l->by - 1].role == GM_AUXILIARY;
    bool stored = false;
    for (long c = 0; c < d->n_columns; c++) stored |= d->column[c].field == l->by - 1;
    char *names = gm_label_parameters(model, l, NULL);
    const bool parameters = auxiliary && !stored && *names;
    char *how = gm_format("-o NAME%s, then `relabel NAME --by %s`",
                          stored || parameters ? ""
                          : auxiliary          ? " --params all,auxiliaries"
                                               : " --params all",
                          parameters ? names : model->state[l->by - 1].name);
    free(names);
    return how;
}

void gm_labels_note(FILE *to, const GmModel *model, const GmMemory *m, const GmDraws *d, const bool *ordered, bool slow)
{
    for (const GmLabels *l = model->labels; l && l->by; l++) {
        if (!gm_labels_exchangeable(model, m, d->data, l)) continue;
        bool agree = false;
        char *names = gm_copy_text("");
        for (const GmLabelled *v = l->fields; v->field; v++) {
            bool shown = false;
            for (long c = 0; c < d->n_summarised; c++) {
                if (d->column[c].field != v->field - 1) continue;
                shown = true;
                agree |= ordered[c] && !slow;
            }
            if (!shown || (!v->dims && !v->lost)) continue;
            char *more = gm_format("%s%s%s", names, *names ? ", " : "", model->state[v->field - 1].name);
            free(names);
            names = more;
        }
        char *how = relabelled_by(model, l, d);
        if (*names)
            fprintf(to,
                    "Warning: components have no order: permuting the labels of %s leaves the density as it is, so what is said above of "
                    "%s is about labels that may change within a chain and between chains.%s %s%s.\n",
                    model->state[l->by - 1].name, names, agree ? " Once the components of each draw are put in order, chains agree." : "",
                    d->options->relabel ? "Below draws are relabelled" : "Relabel the draws: ", d->options->relabel ? "" : how);
        free(how);
        free(names);
    }
}
