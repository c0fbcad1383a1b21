// findings.c -- what stored draws say: the summary of each quantity, which are worst, and what goes with divergent transitions.
#include "../fields.h"
#include "../messages.h"
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double gm_badness(const GmSummary *of, int chains)
{
    if (isnan(of->mean)) return INFINITY;
    if (isnan(of->rhat) || isnan(of->ess_bulk)) return 0;  // a constant, or too few draws
    const double ess = of->ess_bulk < of->ess_tail || isnan(of->ess_tail) ? of->ess_bulk : of->ess_tail;
    const double by_rhat = (of->rhat - 1) / 0.01, by_ess = 100.0 * chains / ess;
    return by_rhat > by_ess ? by_rhat : by_ess;
}

bool gm_all_whole(const double *x, long n)
{
    for (long i = 0; i < n; i++)
        if (!isfinite(x[i]) || x[i] != floor(x[i])) return false;
    return true;
}

static bool missing_everywhere(const double *x, long n)
{
    for (long i = 0; i < n; i++)
        if (!isnan(x[i])) return false;
    return true;
}

// ---- who is worst ----

typedef struct Rated {
    long column;
    double badness;
} Rated;

static int worse_first(const void *a, const void *b)
{
    const Rated *x = a, *y = b;
    if (x->badness != y->badness) return x->badness < y->badness ? 1 : -1;
    return (x->column > y->column) - (x->column < y->column);
}

static void rate(GmFindings *f, const GmStored *s)
{
    Rated *rated = gm_alloc((size_t)f->n_quantities, sizeof *rated);
    for (long k = 0; k < f->n_quantities; k++) {
        const long c = f->quantity[k];
        const bool absent = missing_everywhere(gm_stored_column(s, c), s->chains * s->draws);  // an element that does not exist
        rated[k] = (Rated){c, absent ? -1 : gm_badness(&f->summary[c], s->chains)};
    }
    qsort(rated, (size_t)f->n_quantities, sizeof *rated, worse_first);
    for (long k = 0; k < f->n_quantities; k++) f->worst[k] = rated[k].column;
    free(rated);
}

// ---- what goes with divergences ----

static bool is_unknown(const GmStored *s, const GmStoredArray *a)
{
    if (a->kind != STORED_QUANTITY || strcmp(a->name, "lp__") == 0) return false;
    return !s->model || (a->field >= 0 && gm_is_unknown(s->model->state[a->field].role));
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// P(a marked value is above another one), by ranks (Mann and Whitney 1947). x becomes its ranks.
static double above(double *x, const bool *marked, long n, long n_marked)
{
    double sum = 0;
    gm_ranks(x, n);
    for (long i = 0; i < n; i++) sum += marked[i] ? x[i] : 0;
    const double m = (double)n_marked;
    return (sum - m * (m + 1) / 2) / (m * (double)(n - n_marked));
}

// How far the divergent draws of a column lie from the others: |P - 1/2| for their values, or P - 1/2 for distances from the median.
static double association(const GmFindings *f, const double *x, long n, double *direction)
{
    double *work = gm_alloc((size_t)n, sizeof *work);
    memcpy(work, x, (size_t)n * sizeof *work);
    qsort(work, (size_t)n, sizeof *work, ascending);
    const double median = gm_quantile(work, n, 0.5);
    if (work[0] == work[n - 1]) {
        free(work);
        return -1;
    }
    memcpy(work, x, (size_t)n * sizeof *work);
    *direction = above(work, f->diverged, n, f->divergent);
    for (long i = 0; i < n; i++) work[i] = fabs(x[i] - median);
    const double outside = above(work, f->diverged, n, f->divergent) - 0.5;
    free(work);
    const double moved = fabs(*direction - 0.5);
    if (moved < outside) *direction = 0.5;
    return moved > outside ? moved : outside;
}

// The element of each array that goes with divergences most; of these the first four, and of a single array the four elements.
static void associate(GmFindings *f, const GmStored *s)
{
    const long n = s->chains * s->draws;
    const int most = sizeof f->associated / sizeof *f->associated;
    double *strength = gm_alloc((size_t)s->n_columns, sizeof *strength), *direction = gm_alloc((size_t)s->n_columns, sizeof *direction);
    if (f->divergent == 0 || f->divergent == n) goto done;
#pragma omp parallel for schedule(dynamic, 1)
    for (long c = 0; c < s->n_columns; c++) {
        const double *x = gm_stored_column(s, c);
        strength[c] = is_unknown(s, &s->array[s->column[c].array]) && !isnan(f->summary[c].mean) ? association(f, x, n, &direction[c]) : -1;
    }
    bool *used = gm_alloc((size_t)s->n_arrays, sizeof *used);
    for (int pass = 0; pass < 2; pass++)
        while (f->n_associated < most) {
            long best = -1;
            for (long c = 0; c < s->n_columns; c++)
                if (strength[c] >= 0 && (pass || !used[s->column[c].array]) && (best < 0 || strength[c] > strength[best])) best = c;
            if (best < 0 || (pass && f->n_associated > 2)) break;
            used[s->column[best].array] = true;
            strength[best] = -1;
            f->associated[f->n_associated] = best;
            f->direction[f->n_associated++] = direction[best];
        }
    free(used);
done:
    free(strength);
    free(direction);
}

// ---- all of it ----

void gm_findings_open(GmFindings *f, const GmStored *s)
{
    *f = (GmFindings){.summary = gm_alloc((size_t)s->n_columns, sizeof *f->summary)};
    f->quantity = gm_alloc((size_t)s->n_columns, sizeof *f->quantity);
    f->worst = gm_alloc((size_t)s->n_columns, sizeof *f->worst);
    f->diverged = gm_alloc((size_t)s->chains * (size_t)s->draws, sizeof *f->diverged);
#pragma omp parallel for schedule(dynamic, 1)
    for (long c = 0; c < s->n_columns; c++)
        if (gm_stored_kind(s, c) == STORED_QUANTITY) f->summary[c] = gm_summarise(gm_stored_column(s, c), s->chains, s->draws);
    for (long c = 0; c < s->n_columns; c++)
        if (gm_stored_kind(s, c) == STORED_QUANTITY) f->quantity[f->n_quantities++] = c;
    for (int m = 0; m < s->n_moves; m++) {
        const long c = s->moves[m].column[GM_HMC_DIVERGENT];
        for (long i = 0; c >= 0 && i < s->chains * s->draws; i++) f->diverged[i] |= gm_stored_column(s, c)[i] > 0;
    }
    for (long i = 0; i < s->chains * s->draws; i++) f->divergent += f->diverged[i];
    rate(f, s);
    associate(f, s);
}

void gm_findings_close(GmFindings *f)
{
    free(f->summary);
    free(f->quantity);
    free(f->worst);
    free(f->diverged);
    *f = (GmFindings){0};
}

double gm_sorted_rhat(const GmStored *s, const GmStoredArray *a)
{
    const long n = s->chains * s->draws;
    double *order = gm_alloc((size_t)n * (size_t)a->n, sizeof *order), *one = gm_alloc((size_t)a->n, sizeof *one), worst = 0;
    for (long i = 0; i < n; i++) {
        for (long k = 0; k < a->n; k++) one[k] = gm_stored_column(s, a->first + k)[i];
        qsort(one, (size_t)a->n, sizeof *one, ascending);
        for (long k = 0; k < a->n; k++) order[k * n + i] = one[k];
    }
    for (long k = 0; k < a->n; k++) worst = fmax(worst, gm_summarise(order + k * n, s->chains, s->draws).rhat);
    free(order);
    free(one);
    return worst;
}

// ---- labels ----

// Components of a draw in ascending order of an array: order[0] is the one of the least element, place[] the inverse.
static void order_of(const GmStored *s, const GmStoredArray *by, long draw, long *order, long *place)
{
    for (long k = 0; k < by->n; k++) {
        const double x = gm_stored_column(s, by->first + k)[draw];
        long at = k;
        for (; at > 0 && gm_stored_column(s, by->first + order[at - 1])[draw] > x; at--) order[at] = order[at - 1];
        order[at] = k;
    }
    for (long k = 0; k < by->n; k++) place[order[k]] = k;
}

// The column of an array whose element has the subscripts of `column` with each along a dimension of n replaced by order[subscript].
static long reordered(const GmStored *s, const GmStoredArray *a, const long *of_element, long column, long n, const long *order)
{
    long element = s->column[column].element, at[GM_MAX_RANK], to = 0;
    for (int d = a->rank - 1; d >= 0; d--) {
        at[d] = element % a->dim[d];
        element /= a->dim[d];
    }
    for (int d = 0; d < a->rank; d++) to = to * a->dim[d] + (a->dim[d] == n ? order[at[d]] : at[d]);
    return of_element[to];
}

// The draws of a column with components in order. false: the array has nothing to do with labels.
static bool put_in_order(const GmStored *s, long column, long n, const long *order, const long *place, double *out)
{
    const GmStoredArray *a = &s->array[s->column[column].array];
    const long draws = s->chains * s->draws;
    const double *x = gm_stored_column(s, column);
    long size = 1;
    bool along = false, labels = gm_all_whole(x, draws);
    for (int d = 0; d < a->rank; d++) {
        size *= a->dim[d];
        along |= a->dim[d] == n;
    }
    for (long i = 0; i < draws && labels; i++) labels = x[i] >= 1 && x[i] <= (double)n;
    if (labels)
        for (long i = 0; i < draws; i++) out[i] = (double)place[i * n + (long)x[i] - 1] + 1;
    if (labels || !along || size != a->n) return labels;
    long *of_element = gm_alloc((size_t)size, sizeof *of_element);
    for (long k = 0; k < a->n; k++) of_element[s->column[a->first + k].element] = a->first + k;
    for (long i = 0; i < draws; i++) out[i] = gm_stored_column(s, reordered(s, a, of_element, column, n, order + i * n))[i];
    free(of_element);
    return true;
}

void gm_agree_in_order(const GmStored *s, const GmStoredArray *by, const GmSummary *summary, bool *out)
{
    const long draws = s->chains * s->draws, n = by->n;
    long *order = gm_alloc((size_t)draws * (size_t)n, sizeof *order), *place = gm_alloc((size_t)draws * (size_t)n, sizeof *place);
    double *x = gm_alloc((size_t)draws, sizeof *x);
    for (long i = 0; i < draws; i++) order_of(s, by, i, order + i * n, place + i * n);
    for (long c = 0; c < s->n_columns; c++) {
        if (gm_stored_kind(s, c) != STORED_QUANTITY || !(gm_badness(&summary[c], s->chains) > 1)) continue;
        if (!put_in_order(s, c, n, order, place, x)) continue;
        const GmSummary of = gm_summarise(x, s->chains, s->draws);
        out[c] = gm_badness(&of, s->chains) <= 1;
    }
    free(order);
    free(place);
    free(x);
}
