// predict.c -- `fit predict DRAWS --new DATA`: predictions later, for rows that did not exist when the model was fitted.
//
//   ./fit predict draws --new new.csv -o later     later_1.csv, ...   for each stored draw what the model computes and draws for new.csv
//                                                  later_new.csv      their means, sds and quantiles over all draws
//
// Of each stored draw the unknowns are put into the state of a run with the new data. What runs over rows has as many elements as there
// are rows now. Which element of an unknown is which is decided by what its extents count (Kind):
//
//   levels of a factor       by name, or by number: new ones come behind those of the fit
//   rows of a response       new rows are new: none is one of the fit, unless --same-rows says so; then by number, as levels
//   anything else            by number, and the size must be that of the fit
//
// Elements that the fit does not have are drawn afresh for each stored draw, from the law of their own statement (GmModel.forward), after
// what their law reads. Given the stored unknowns nothing observed says more about them, so this is their posterior. It would not be so of
// an unknown that the data of the fit informed and that was not stored: that is refused.
#include "fields.h"
#include "messages.h"
#include "runs.h"
#include "report/report.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN = 3 };  // elements of an array that are printed

typedef enum { BY_NUMBER, BY_LEVEL, BY_ROW } Kind;

typedef struct Later {
    const GmModel *model;
    GmOptions o;
    GmStored stored;
    GmLevelSets levels;  // of the fit
    GmData fit, data;    // data of the run, where they are given; the new data
    bool has_fit;
    long *size;   // by data field: of the fit; -1: not known
    bool *given;  // by data field: the new data have it
    GmMemory memory;
    GmRun run;
    GmDraws draws;
    long **from;            // by state field: of each element its column among the stored draws; -1: it has none. NULL: none is taken
    unsigned char **keeps;  // GmRun's
    int n_keeps;
    bool draws_anew;  // something is drawn from its law
} Later;

static void later_close(Later *p)
{
    for (int f = 0; f < p->model->n_state && p->from; f++) free(p->from[f]);
    free(p->from);
    for (int k = 0; k < p->n_keeps; k++) free(p->keeps[k]);
    free(p->keeps);
    free(p->size);
    free(p->given);
    gm_draws_close(&p->draws);
    gm_memory_close(&p->memory);
    gm_data_close(&p->data, p->model);
    if (p->has_fit) gm_data_close(&p->fit, p->model);
    gm_levels_close(&p->levels);
    gm_levels_forget();
    gm_stored_close(&p->stored);
    gm_options_close(&p->o);
}

// ---- the fit ----

static bool read_levels(Later *p, const char *file)
{
    char *path = gm_levels_beside(file);
    const bool good = !path || access(path, F_OK) != 0 || gm_levels_read(&p->levels, p->model, path);
    free(path);
    p->levels.of_a_fit = true;
    p->levels.grows = p->o.new_levels;
    return good;
}

// Files of other programs have names alone: columns that are called like unknowns of the model are these. false: there are none.
static bool take_by_name(GmStored *s, const GmModel *model)
{
    bool any = false;
    if (s->by_gmc) return false;
    for (int a = 0; a < s->n_arrays; a++)
        for (int f = 0; f < model->n_state; f++) {
            if (!gm_is_drawn(&model->state[f]) || strcmp(s->array[a].name, model->state[f].name) != 0) continue;
            s->array[a].field = f;
            any = true;
        }
    return any;
}

static bool read_draws(Later *p, char **given, int n_given)
{
    int n = 0;
    char **files = gm_draw_files("predict", given, n_given, &n);
    bool good = files && gm_stored_open(&p->stored, p->model, files, n);
    if (good && !p->stored.model && !take_by_name(&p->stored, p->model)) {
        gm_error("predict: %s: these are no draws of this program's model, %s", files[0], p->model->source);
        good = false;
    }
    good = good && read_levels(p, files[0]);
    for (int k = 0; k < n && files; k++) free(files[k]);
    free(files);
    return good;
}

// The stored array of a state field; NULL: there is none.
static const GmStoredArray *stored_array(const Later *p, int f)
{
    for (int a = 0; a < p->stored.n_arrays; a++)
        if (p->stored.array[a].field == f) return &p->stored.array[a];
    return NULL;
}

static bool is_whole(const GmStoredArray *a) { return a->n == gm_size_of(a->rank, a->dim); }

// A size of the fit, from the extent of an array or from its data. false after a message: another one is known.
static bool learn_size(Later *p, int f, long size, const char *of)
{
    const GmField *field = &p->model->data[f];
    if (p->size[f] >= 0 && p->size[f] != size) {
        gm_error("predict: %s is %ld by %s, and %ld by what was read before: these are of different fits", field->name, size, of,
                 p->size[f]);
        return false;
    }
    p->size[f] = size;
    return true;
}

static bool learn_sizes(Later *p)
{
    const GmModel *model = p->model;
    p->size = gm_alloc((size_t)model->n_data, sizeof *p->size);
    for (int f = 0; f < model->n_data; f++) p->size[f] = -1;
    for (int f = 0; f < model->n_state; f++) {
        const GmStoredArray *a = stored_array(p, f);
        for (int k = 0; a && is_whole(a) && k < model->state[f].rank && model->state[f].role != GM_IMPUTED && !model->state[f].rows_of; k++)
            if (model->state[f].extent_of[k] && !learn_size(p, model->state[f].extent_of[k] - 1, a->dim[k], a->name)) return false;
    }
    for (int k = 0; k < p->levels.n; k++)
        if (p->levels.set[k].size && !learn_size(p, p->levels.set[k].size - 1, p->levels.set[k].n, "the levels in NAME_levels.json"))
            return false;
    if (!p->o.n_inputs) return true;
    p->has_fit = true;
    gm_levels_ask_as(&p->levels, model);  // --levels of the run
    const bool open = gm_data_open(&p->fit, model, p->o.inputs, p->o.n_inputs, NULL);
    gm_levels_forget();
    if (!open || !gm_levels_ask(&p->o)) return false;
    for (int f = 0; f < model->n_data; f++) {
        const GmValue *v = gm_values_find(&p->fit.values, model->data[f].name);
        if (model->data[f].type != GM_INT || model->data[f].rank || model->data[f].imputed_field) continue;
        if (!learn_size(p, f, *(const int32_t *)v->elements, "--data")) return false;
    }
    return true;
}

static bool same_names(const GmLevels *a, const GmLevels *b)
{
    bool same = a->n == b->n;
    for (long i = 0; i < a->n && same; i++) same = strcmp(a->name[i], b->name[i]) == 0;
    return same;
}

// The levels that the data of the run have are those in NAME_levels.json. Where that is not there they take its place.
static bool levels_agree(Later *p)
{
    for (int k = 0; k < p->fit.levels.n; k++) {
        const GmLevels *now = &p->fit.levels.set[k];
        const GmLevels *then = NULL;
        for (int q = 0; q < p->levels.n; q++)
            if (now->size ? p->levels.set[q].size == now->size : p->levels.set[q].field == now->field) then = &p->levels.set[q];
        if (then && same_names(then, now)) continue;
        gm_error(then ? "predict: --data has other levels of %s than NAME_levels.json, beside the draws: these are not the data of the run"
                      : "predict: --data has names for %s, and beside the draws there is no NAME_levels.json of a run that read names",
                 p->model->data[now->field].name);
        return false;
    }
    return true;
}

// ---- the new data ----

// What is asked for: replicates of all responses that have them, log-likelihoods of those that are there.
static int requests_for(const Later *p)
{
    int requests = 0;
    for (const GmObserved *o = p->model->observed; o && o->where; o++) {
        if (o->replicate) requests |= GM_REPLICATES;
        const long missing = o->data ? p->data.missing[o->data - 1].count : 0;
        if (o->log_lik && (!o->data || missing < gm_shape_size(&p->data.shape[o->data - 1]))) requests |= GM_LOG_LIK;
    }
    return requests;
}

static bool open_data(Later *p)
{
    const GmModel *model = p->model;
    p->given = gm_alloc((size_t)model->n_data, sizeof *p->given);
    const GmLater later = {
        .others = p->has_fit ? &p->fit : NULL, .levels = &p->levels, .size = p->size, .grows = p->o.new_levels, .given = p->given};
    if (!gm_data_open_later(&p->data, model, p->o.new_inputs, p->o.n_new_inputs, &later)) return false;
    for (int k = 0; k < p->data.levels.n; k++) {
        const GmLevels *l = &p->data.levels.set[k];
        if (l->old && l->n > l->old)
            gm_note("%s: %ld new level%s, %s%s%s, behind the %ld of the fit", model->data[l->field].name, l->n - l->old,
                    l->n > l->old + 1 ? "s" : "", l->name[l->old], l->n > l->old + 1 ? " to " : "",
                    l->n > l->old + 1 ? l->name[l->n - 1] : "", l->old);
    }
    p->o.requests = requests_for(p);
    return gm_memory_open(&p->memory, model, &p->data, p->stored.chains, p->o.requests, false);
}

// Whether the new data have rows of their own: the size is given, or an array of this extent.
static bool is_new_size(const Later *p, int f)
{
    bool yes = p->given[f];
    for (int a = 0; a < p->model->n_data; a++)
        for (int k = 0; k < p->model->data[a].rank; k++)
            yes |= (p->given[a] || gm_gives_rows(p->model, p->given, a)) && p->model->data[a].extent_of[k] == f + 1;
    return yes;
}

// Whether extent k of a state field depends on a size: it is another one where that is larger by one.
static bool depends_on(const Later *p, int f, int k, int size)
{
    const GmField *field = &p->model->state[f];
    if (field->extent_of[k]) return field->extent_of[k] == size + 1;
    char *other = gm_alloc(1, p->model->data_size);
    memcpy(other, p->data.data, p->model->data_size);
    ++*(long *)(other + p->model->data[size].offset);
    const GmShape now = gm_field_shape(field, f, p->model->state_shape, p->data.data),
                  then = gm_field_shape(field, f, p->model->state_shape, other);
    free(other);
    return now.dim[k] != then.dim[k];
}

// What extent k of an unknown counts; *size: the data field behind it, or -1.
static Kind kind_of(const Later *p, int f, int k, int *size)
{
    const GmModel *model = p->model;
    if (k == 0 && model->state[f].rows_of) {  // of places in rows: all rows are new, or known by number
        *size = model->state[f].rows_of - 1;
        return gm_gives_rows(model, p->given, *size) && !p->o.same_rows ? BY_ROW : BY_LEVEL;
    }
    for (int d = 0; d < model->n_data; d++) {
        if (model->data[d].type != GM_INT || model->data[d].rank || model->data[d].imputed_field) continue;
        const bool rows = gm_counts_rows(model, d), levels = gm_counts_levels(model, d);
        if ((!rows && !levels) || !depends_on(p, f, k, d)) continue;
        *size = d;
        if (rows && is_new_size(p, d) && !p->o.same_rows) return BY_ROW;
        // rows of the fit may be followed by others, as levels may
        if ((rows || levels) && model->state[f].extent_of[k] == d + 1) return BY_LEVEL;
        return BY_NUMBER;
    }
    *size = -1;
    return BY_NUMBER;
}

// Sums over rows that quantities of a row read would be those of other rows than in the fit. false after a message.
static bool sums_are_meant(const Later *p)
{
    bool new = false;
    for (int f = 0; f < p->model->n_data; f++) new |= gm_counts_rows(p->model, f) && is_new_size(p, f);
    if (!p->model->sum_over_rows || p->o.new_sums || !new) return true;
    gm_error("predict: %s: with new rows it is another one than in the fit. Make it data of the model, or --new-sums takes that of the new "
             "rows",
             p->model->sum_over_rows);
    return false;
}

// ---- which element is which ----

static bool refuse_size(const Later *p, int f, const GmStoredArray *a)
{
    const GmShape *s = &p->memory.shape[f];
    char *was = gm_shape_text(a->rank, a->dim), *is = gm_shape_text(s->rank, s->dim);
    gm_error("predict: %s has size %s in the fit and would have %s with the new data: which of its elements are which is not known (%s)",
             a->name, was, is, p->model->state[f].where);
    free(was);
    free(is);
    return false;
}

// An unknown of new rows, or of new levels, that may not be drawn.
static bool may_be_drawn(const Later *p, int f, long element, Kind why, int size)
{
    const GmField *field = &p->model->state[f];
    if (p->o.new_levels || (why == BY_ROW && field->role == GM_LATENT)) return true;
    char *name = gm_labelled_name(&p->data.levels, field, &p->memory.shape[f], element);
    if (why == BY_ROW)
        gm_error(
            "predict: %s has elements for the rows that %s counts, and those of the new data are new: --new-levels draw draws them from "
            "their law, given each stored draw; --same-rows says that the rows are those of the fit",
            field->name, p->model->data[size].name);
    else
        gm_error("predict: %s is of a level that the fit does not have: --new-levels draw draws it from its law, given each stored draw",
                 name);
    free(name);
    return false;
}

// Of an unknown with rows of different lengths: where each element is in the array of the draws, which has a dimension for the rows, and
// one for places in them; -1: it has no such place.
static long place_in_rows(const GmStoredArray *a, const GmField *field, const GmShape *s, long element)
{
    char *name = gm_element_name(field->name, s->rank, s->dim, element);
    const char *at = strchr(name, '[');
    long place = 0;
    for (int k = 0; k < a->rank && at && place >= 0; k++) {
        const long i = strtol(at + 1, (char **)&at, 10);
        place = i > a->dim[k] ? -1 : place * a->dim[k] + i - 1;
    }
    free(name);
    return place;
}

// Finds the column of each element of an unknown. false after a message.
static bool match(Later *p, int f)
{
    const GmField *field = &p->model->state[f];
    const GmShape *s = &p->memory.shape[f];
    const GmStoredArray *a = stored_array(p, f);
    const long size = gm_shape_size(s);
    const bool in_rows = field->rows_of > 0;
    if (a && (a->rank != s->rank + in_rows || !(in_rows || is_whole(a)))) {
        gm_error("predict: not all elements of %s are in the draws", field->name);
        return false;
    }
    Kind kind[GM_MAX_RANK];
    int of[GM_MAX_RANK];
    bool rows = false;
    for (int k = 0; k < s->rank; k++) {
        kind[k] = kind_of(p, f, k, &of[k]);
        rows |= kind[k] == BY_ROW;
        if (a && kind[k] == BY_NUMBER && a->dim[k + in_rows] != s->dim[k]) return refuse_size(p, f, a);
    }
    if (!a && !rows && size > 0) {
        gm_error(
            field->role == GM_LATENT
                ? "predict: %s is not in the draws: it is latent, and latent variables are kept if --params names them (--params all). "
                  "The data of the fit say more of it than its law, so it is not drawn anew"
                : "predict: %s is not in the draws: the run must keep it (no --params, or name it, too). The data of the fit say more of "
                  "it than its law, so it is not drawn anew",
            field->name);
        return false;
    }
    long *column = NULL;  // by place in the stored array
    if (a) {
        const long places = gm_size_of(a->rank, a->dim);
        column = gm_alloc((size_t)places, sizeof *column);
        for (long k = 0; k < places; k++) column[k] = -1;
        for (long c = a->first; c < a->first + a->n; c++) column[p->stored.column[c].element] = c;
    }
    p->from[f] = gm_alloc((size_t)size, sizeof *p->from[f]);
    bool good = true;
    for (long e = 0; e < size && good; e++) {
        long rest = e, index[GM_MAX_RANK], at = 0;
        int new = -1;
        for (int k = s->rank - 1; k >= 0; rest /= s->dim[k], k--) index[k] = rest % s->dim[k];
        for (int k = 0; k < s->rank && !(a && in_rows); k++) {
            if (kind[k] == BY_ROW || (a && index[k] >= a->dim[k])) new = k;
            at = a ? at * a->dim[k] + index[k] : 0;
        }
        if (a && in_rows) {
            at = place_in_rows(a, field, s, e);
            if (kind[0] == BY_ROW || at < 0 || column[at] < 0) new = 0;
        }
        p->from[f][e] = new >= 0 ? -1 : column[at];
        if (new >= 0) good = may_be_drawn(p, f, e, kind[new], of[new]);
    }
    free(column);
    return good;
}

// Whether draws that another program has made are within the bounds, and whole where they are integers. false after a message.
static bool may_be_values(const Later *p, int f)
{
    const GmField *field = &p->model->state[f];
    const GmShape *s = &p->memory.shape[f];
    const long size = p->from[f] ? gm_shape_size(s) : 0, n = p->stored.chains * p->stored.draws;
    for (long e = 0; e < size; e++) {
        const double *x = p->from[f][e] < 0 ? NULL : gm_stored_column(&p->stored, p->from[f][e]);
        for (long i = 0; i < n && x; i++) {
            const bool whole = field->type != GM_INT || x[i] == floor(x[i]);
            if ((x[i] >= s->lower && x[i] <= s->upper && whole) || (field->partial && isnan(x[i]))) continue;
            gm_error("predict: a draw of %s is %g: %s", p->stored.column[p->from[f][e]].label, x[i],
                     isnan(x[i]) ? "not a number"
                     : whole     ? "out of its bounds"
                                 : "not a whole number");
            return false;
        }
    }
    return true;
}

// ---- what is drawn from its law ----

static bool is_drawn_anew(const Later *p, int f)
{
    const long size = p->from[f] ? gm_shape_size(&p->memory.shape[f]) : 0;
    for (long e = 0; e < size; e++)
        if (p->from[f][e] < 0) return true;
    return false;
}

static const GmLaw *law_of(const GmModel *model, int f)
{
    for (const GmLaw *l = model->laws; l && l->field; l++)
        if (l->field == f + 1) return l;
    return NULL;
}

static bool missing_at(const Later *p, const GmLaw *l, long element)
{
    const GmMissing *m = &p->data.missing[l->data - 1];
    for (long low = 0, high = m->count; low < high;) {
        const long middle = (low + high) / 2;
        if (m->index[middle] == element) return true;
        if (m->index[middle] < element) low = middle + 1;
        else high = middle;
    }
    return false;
}

// Whether an element of what has a law is drawn from it: an unknown that the draws do not have, a response that is missing.
static bool anew_at(const Later *p, const GmLaw *l, long element)
{
    const int f = l->field - 1;
    if (!gm_is_drawn(&p->model->state[f])) return l->data && missing_at(p, l, element);
    return p->from[f] && p->from[f][element] < 0;
}

// All rows are drawn at once: new ones would depend on those of the fit, which are not there. false after a message.
static bool rows_are_apart(const Later *p, const GmLaw *l, long anew)
{
    const GmField *field = &p->model->state[l->field - 1];
    int size;
    if (l->at_once || !field->rank || p->o.new_levels || !(l->data || anew) || kind_of(p, l->field - 1, 0, &size) != BY_ROW) return true;
    gm_error("predict: %s has one law for all rows that %s counts (%s), and those of the fit are not among them: --new-levels draw draws "
             "others, which do not depend on those of the fit",
             l->data ? p->model->data[l->data - 1].name : field->name, p->model->data[size].name, field->where);
    return false;
}

// Elements that are drawn at once are all kept, or none is. false after a message.
static bool keep_law(Later *p, const GmLaw *l)
{
    const GmField *field = &p->model->state[l->field - 1];
    const GmShape *s = &p->memory.shape[l->field - 1];
    const long size = gm_shape_size(s), each = l->whole ? size : gm_size_of(s->rank - l->at_once, s->dim + l->at_once);
    unsigned char *keeps = p->keeps[l->variable] = gm_alloc((size_t)size + 1, 1);
    long anew = 0;
    for (long e = 0; e < size; e++) {
        const bool is_new = anew_at(p, l, e);
        keeps[e + 1] = !is_new;
        anew += is_new;
        if (each < 2 || e % each == 0 || keeps[e] == keeps[e + 1]) continue;
        gm_error("predict: some elements of %s have values, and others would be drawn, but its law draws them together (%s)", field->name,
                 field->where);
        return false;
    }
    keeps[0] = anew == 0;
    if (!rows_are_apart(p, l, anew)) return false;
    p->draws_anew |= anew > 0;
    if (anew && !l->data && !l->refused)
        gm_note("%s: %ld of %ld elements are drawn from their law, given each stored draw%s", field->name, anew, size,
                p->o.requests & GM_LOG_LIK ? "; new responses say nothing of them here" : "");
    if (!anew || !l->refused) return true;
    gm_error("predict: %s cannot be drawn from its law: %s", l->data ? p->model->data[l->data - 1].name : field->name, l->refused);
    return false;
}

// A response that is missing and has no law is not read by anything, or not known what to be.
static bool responses_have_laws(const Later *p)
{
    for (const GmObserved *o = p->model->observed; o && o->where; o++) {
        if (!o->data || !p->data.missing[o->data - 1].count || (o->replicate && law_of(p->model, o->replicate - 1))) continue;
        gm_error("predict: %s is missing, and cannot be drawn: %s", p->model->data[o->data - 1].name,
                 o->no_replicate ? o->no_replicate : "it has no law");
        return false;
    }
    return true;
}

static bool find_laws(Later *p)
{
    const GmModel *model = p->model;
    for (const GmLaw *l = model->laws; l && l->field; l++)
        if (l->variable >= p->n_keeps) p->n_keeps = l->variable + 1;
    p->keeps = gm_alloc((size_t)p->n_keeps, sizeof *p->keeps);
    for (int f = 0; f < model->n_state; f++) {
        if (!p->from[f] || !is_drawn_anew(p, f) || law_of(model, f)) continue;
        gm_error("predict: %s has elements that would have to be drawn, and no law of its own (%s)", model->state[f].name,
                 model->state[f].where);
        return false;
    }
    for (const GmLaw *l = model->laws; l && l->field; l++)
        if (!keep_law(p, l)) return false;
    return responses_have_laws(p);
}

static bool match_all(Later *p)
{
    const GmModel *model = p->model;
    p->from = gm_alloc((size_t)model->n_state, sizeof *p->from);
    for (int f = 0; f < model->n_state; f++)
        if (gm_is_drawn(&model->state[f]) && !(match(p, f) && (p->stored.model || may_be_values(p, f)))) return false;
    return find_laws(p);
}

// ---- one draw after the other ----

static void put(const GmField *field, void *array, long e, double x)
{
    if (field->type == GM_INT) ((int32_t *)array)[e] = isnan(x) ? GM_MISSING_INT : (int32_t)x;
    else ((double *)array)[e] = x;
}

// Something that can be read, before anything is known: unknowns inside of their bounds, missing responses likewise.
static void fill(Later *p)
{
    for (int c = 0; c < p->memory.chains; c++)
        for (int f = 0; f < p->model->n_state; f++) {
            const GmField *field = &p->model->state[f];
            const int source = field->role == GM_IMPUTED ? gm_data_of_imputed(p->model, f) : -1;
            if (gm_is_unknown(field->role))
                gm_start_values(field, &p->memory.shape[f], p->o.seed, (uint32_t)f, gm_state_array(p->model, &p->memory, c, f));
            if (source < 0 || !p->data.missing[source].count) continue;
            const GmShape *s = &p->data.shape[source];
            double *start = gm_alloc((size_t)gm_shape_size(s), sizeof *start);
            gm_start_values(&p->model->data[source], s, p->o.seed, (uint32_t)f, start);
            void *array = gm_state_array(p->model, &p->memory, c, f);
            for (long k = 0; k < p->data.missing[source].count; k++) {
                const long e = p->data.missing[source].index[k];
                put(field, array, e, field->type == GM_INT ? ((const int32_t *)start)[e] : start[e]);
            }
            free(start);
        }
    for (int c = 0; c < p->memory.chains; c++) gm_fill_absent(p->model, &p->memory, c);
}

// The unknowns of a stored draw. Elements that do not exist stay what they are.
static void take(const Later *p, int chain, long draw)
{
    for (int f = 0; f < p->model->n_state; f++) {
        const GmField *field = &p->model->state[f];
        const long size = p->from[f] ? gm_shape_size(&p->memory.shape[f]) : 0;
        void *array = gm_state_array(p->model, &p->memory, chain, f);
        for (long e = 0; e < size; e++) {
            if (p->from[f][e] < 0) continue;
            const double x = gm_stored_chain(&p->stored, p->from[f][e], chain)[draw];
            if (!(field->partial && isnan(x))) put(field, array, e, x);
        }
    }
}

static double get(const GmField *field, const void *array, long e)
{
    if (field->type != GM_INT) return ((const double *)array)[e];
    const int32_t x = ((const int32_t *)array)[e];
    return x == GM_MISSING_INT ? NAN : (double)x;
}

// Between a response, in the state, and its replicate, from which laws read it: all values one way, those that were missing back.
static void copy_responses(const Later *p, int chain, bool back)
{
    const GmModel *model = p->model;
    for (const GmLaw *l = model->laws; l && l->field; l++) {
        const int y = l->data ? model->data[l->data - 1].imputed_field - 1 : -1, rep = l->field - 1;
        if (y < 0) continue;
        void *response = gm_state_array(model, &p->memory, chain, y), *replicate = gm_state_array(model, &p->memory, chain, rep);
        const GmMissing *m = &p->data.missing[l->data - 1];
        const long n = back ? m->count : gm_shape_size(&p->memory.shape[rep]);
        for (long k = 0; k < n; k++) {
            if (back) put(&model->state[y], response, m->index[k], get(&model->state[rep], replicate, m->index[k]));
            else put(&model->state[rep], replicate, k, get(&model->state[y], response, k));
        }
    }
}

static void draw_anew(const Later *p, GmRun *one)
{
    copy_responses(p, one->chain, false);
    p->model->forward(one);
    copy_responses(p, one->chain, true);
}

static long thin_of(const GmStored *s) { return s->thin ? strtol(s->thin, NULL, 10) : 1; }

static bool run_chain(Later *p, int chain)
{
    GmRun one = p->run;
    one.chain = chain;
    one.inner_threads = 1;
    const long warmup = p->stored.warmup ? strtol(p->stored.warmup, NULL, 10) : 0;
    for (long draw = 0; draw < p->stored.draws; draw++) {
        if (gm_fault_raised() || gm_interrupted()) return false;
        one.sweep = warmup + (draw + 1) * thin_of(&p->stored) - 1;
        take(p, chain, draw);
        if (p->draws_anew) draw_anew(p, &one);
        p->model->derive_chain(&one);
        if (gm_fault_raised() || !gm_draws_keep(&p->draws, p->model, &p->memory, chain, draw, 0)) return false;
        if (p->model->restore_chain) p->model->restore_chain(&one);
    }
    return true;
}

// ---- what is said ----

typedef struct Reported {
    double mean, sd, log_mean;
    double quantile[GM_MOST_QUANTILES];
} Reported;

static int percentages(const GmOptions *o, double *percent)
{
    static const double usual[] = {5, 50, 95};
    const int n = o->n_quantiles ? o->n_quantiles : 3;
    memcpy(percent, o->n_quantiles ? o->quantile : usual, (size_t)n * sizeof *percent);
    return n;
}

static double log_mean_exp(const double *x, long n)
{
    double most = -INFINITY, sum = 0;
    for (long i = 0; i < n; i++) most = x[i] > most || isnan(x[i]) ? x[i] : most;
    if (!isfinite(most)) return most;
    for (long i = 0; i < n; i++) sum += exp(x[i] - most);
    return most + log(sum / (double)n);
}

// Of one column; x is sorted.
static Reported report_column(double *x, long n, const GmOptions *o, bool log_lik)
{
    double percent[GM_MOST_QUANTILES], squares = 0;
    Reported t = {.log_mean = log_lik ? log_mean_exp(x, n) : NAN};
    bool none = false;
    for (long i = 0; i < n; i++) {
        none |= isnan(x[i]);
        if (!isfinite(x[i]) || !isfinite(t.mean)) {  // a density that is 0 has a logarithm
            t.mean += x[i];
            continue;
        }
        const double change = x[i] - t.mean;
        t.mean += change / (double)(i + 1);
        squares += change * (x[i] - t.mean);
    }
    t.sd = n > 1 && isfinite(t.mean) ? sqrt(squares / (double)(n - 1)) : NAN;
    if (none) t.mean = NAN;
    const int n_quantiles = percentages(o, percent);
    if (!none) qsort(x, (size_t)n, sizeof *x, gm_ascending);
    for (int k = 0; k < n_quantiles; k++) {
        const double q = none ? NAN : gm_quantile(x, n, percent[k] / 100), at = percent[k] / 100 * (double)(n - 1);
        t.quantile[k] = none || !isnan(q) ? q : x[(long)at];  // between infinities
    }
    return t;
}

static Reported *report_all(const Later *p)
{
    const GmDraws *d = &p->draws;
    Reported *reported = gm_alloc((size_t)d->n_columns, sizeof *reported);
    const long n = d->chains * d->kept;
#pragma omp parallel for schedule(dynamic)
    for (long c = 0; c < d->n_columns; c++) {
        double *x = gm_alloc((size_t)n, sizeof *x);
        gm_draws_column(d, c, d->kept, x);
        reported[c] = report_column(x, n, &p->o, p->model->state[d->column[c].field].on_request == GM_LOG_LIK);
        free(x);
    }
    return reported;
}

static bool write_table(const Later *p, const Reported *reported)
{
    const GmDraws *d = &p->draws;
    double percent[GM_MOST_QUANTILES];
    const int n = percentages(&p->o, percent);
    char *path = gm_format("%s_new.csv", p->o.output), number[GM_NUMBER_ROOM];
    GmFile out;
    const bool open = gm_output_open(&out, path, false);
    free(path);
    if (!open) return false;
    fprintf(out.to, "variable,mean,sd");
    for (int k = 0; k < n; k++) fprintf(out.to, ",q%.10g", percent[k]);
    fprintf(out.to, ",log_mean_exp\n");
    for (long c = 0; c < d->n_columns; c++) {
        char *name = gm_column_label(d, p->model, &p->memory, c, '.');
        fputs(name, out.to);
        free(name);
        const double first[] = {reported[c].mean, reported[c].sd};
        for (int k = 0; k < 2 + n; k++) {
            number[gm_print_number(number, k < 2 ? first[k] : reported[c].quantile[k - 2], p->o.digits)] = 0;
            fprintf(out.to, ",%s", number);
        }
        number[gm_print_number(number, reported[c].log_mean, p->o.digits)] = 0;
        fprintf(out.to, ",%s\n", p->model->state[d->column[c].field].on_request == GM_LOG_LIK ? number : "");
    }
    return gm_output_done(&out);
}

// The log predictive density of a response: value by value, and of all values together, which are not independent given the fit.
static void print_density(FILE *to, const Later *p, const Reported *reported, long first, long last)
{
    const GmDraws *d = &p->draws;
    const long n = d->chains * d->kept;
    double sum = 0, mean = 0, squares = 0, *total = gm_alloc((size_t)n, sizeof *total), *x = gm_alloc((size_t)n, sizeof *x);
    long rows = 0;
    for (long c = first; c < last; c++) {
        if (isnan(reported[c].log_mean)) continue;
        const double change = reported[c].log_mean - mean;
        mean += change / (double)++rows;
        squares += change * (reported[c].log_mean - mean);
        sum += reported[c].log_mean;
        gm_draws_column(d, c, d->kept, x);
        for (long i = 0; i < n; i++) total[i] += x[i];
    }
    const char *name = p->model->state[d->column[first].field].name;
    if (rows == 1) fprintf(to, "%s: the log predictive density of the value is %.6g\n", name, sum);
    else if (rows > 1) {
        fprintf(to, "%s: elpd %.6g, the sum of the log predictive densities of %ld values (standard error %.3g, %.6g each)", name, sum,
                rows, sqrt(squares / (double)(rows - 1) * (double)rows), mean);
        const double together = log_mean_exp(total, n);
        if (isfinite(together)) fprintf(to, "; of all of them together %.6g", together);
        fputc('\n', to);
    }
    free(total);
    free(x);
}

static void print_table(FILE *to, const Later *p, const Reported *reported)
{
    const GmDraws *d = &p->draws;
    double percent[GM_MOST_QUANTILES];
    const int n = percentages(&p->o, percent);
    fprintf(to, "new data, over %ld draws\n\n%-24s %12s %12s", d->chains * d->kept, "", "mean", "sd");
    for (int k = 0; k < n; k++) fprintf(to, " %11.10g%%", percent[k]);
    fputc('\n', to);
    for (long first = 0, last; first < d->n_columns; first = last) {
        const int f = d->column[first].field;
        for (last = first + 1; last < d->n_columns && d->column[last].field == f;) last++;
        const long size = last - first;
        for (long c = first; c < last && (c < first + SHOWN || size == SHOWN + 1); c++) {
            char *name = gm_column_label(d, p->model, &p->memory, c, '[');
            fprintf(to, "%-24s %12.4g %12.4g", name, reported[c].mean, reported[c].sd);
            for (int k = 0; k < n; k++) fprintf(to, " %12.4g", reported[c].quantile[k]);
            fputc('\n', to);
            free(name);
        }
        if (size > SHOWN + 1)
            fprintf(to, "...        %ld more of %s%s%s%s\n", size - SHOWN, p->model->state[f].name,
                    p->o.output ? " (" : " (-o NAME writes NAME", p->o.output ? p->o.output : "", "_new.csv)");
    }
    bool any = false;
    for (long first = 0, last; first < d->n_columns; first = last) {
        const int f = d->column[first].field;
        for (last = first + 1; last < d->n_columns && d->column[last].field == f;) last++;
        if (p->model->state[f].on_request != GM_LOG_LIK) continue;
        if (!any) fputc('\n', to);
        any = true;
        print_density(to, p, reported, first, last);
    }
}

// ---- the command ----

static bool prepare(Later *p)
{
    const GmModel *model = p->model;
    GmOptions *o = &p->o;
    const GmStored *s = &p->stored;
    bool in_row = true;
    for (int c = 1; c < s->chains; c++) in_row &= s->id[c] == s->id[c - 1] + 1;
    o->chains = s->chains;
    o->samples = s->draws;
    o->first_chain = in_row ? (int)s->id[0] : 1;
    o->thin = (int)thin_of(s);
    if (!o->seed_given) o->seed = s->seed ? strtoull(s->seed, NULL, 10) : 0;
    fill(p);
    if (!gm_draws_open(&p->draws, model, &p->memory, &p->data, o)) return false;
    if (o->output && o->format != GM_FORMAT_CSV && !(gm_netcdf_open() && gm_netcdf_may_hold(&p->draws))) return false;
    if (!gm_outputs_may_be_written(o, p->data.levels.n > 0)) return false;
    // Numbers of their own for what is drawn, as --new has them in the run: with its seed they are the same.
    p->run = (GmRun){.data = p->data.data,
                     .state = p->memory.state,
                     .state_size = model->state_size,
                     .chains = o->chains,
                     .first_chain = o->first_chain - 1,
                     .seed = o->seed ^ 0x9e3779b97f4a7c15u,
                     .threads = o->threads,
                     .inner_threads = o->threads,
                     .missing = p->data.missing,
                     .requests = o->requests,
                     .keeps = (const unsigned char *const *)p->keeps,
                     .warmup = s->warmup ? strtol(s->warmup, NULL, 10) : 0};
    if (p->memory.negative) {
        gm_error("predict: a size that follows from the new data comes out as %ld", p->memory.negative);
        return false;
    }
    if (model->setup) model->setup(&p->run);
    if (gm_fault_raised()) gm_fault_print(model, &p->memory, &p->data);
    return !gm_fault_raised();
}

static int run(Later *p)
{
    GmOptions *o = &p->o;
    int failed = 0;
    gm_signals_wait();
    gm_signals_keep_draws();
    for (int c = 0; c < o->chains; c++) gm_draws_begin(&p->draws, &p->run, NULL, NULL, c);
#pragma omp parallel for schedule(dynamic) reduction(+ : failed)
    for (int c = 0; c < o->chains; c++) failed += !run_chain(p, c);
    if (gm_fault_raised()) gm_fault_print(p->model, &p->memory, &p->data);
    if (gm_interrupted()) gm_error("interrupted; nothing was written");
    if (failed) return gm_interrupted() ? GM_EXIT_INTERRUPTED : GM_EXIT_FAULT;
    p->draws.kept = p->stored.draws;
    Reported *reported = report_all(p);
    bool good = gm_draws_finish(&p->draws);
    if (o->output && o->format != GM_FORMAT_CSV) {
        p->draws.netcdf = gm_netcdf_begin(&p->draws, NULL);
        good &= p->draws.netcdf && gm_netcdf_finish(p->draws.netcdf);
        gm_netcdf_end(p->draws.netcdf);
        p->draws.netcdf = NULL;
    }
    if (o->output) good &= write_table(p, reported);
    if (o->output && p->data.levels.n) good &= gm_levels_write(&p->data.levels, p->model, o->output);
    print_table(stdout, p, reported);
    if (good && o->output && o->format != GM_FORMAT_NETCDF)
        gm_note("predictions: %s_%d.csv%s, %s_new.csv", o->output, o->first_chain, o->chains > 1 ? ", ..." : "", o->output);
    else if (good && o->output) gm_note("predictions: %s.nc, %s_new.csv", o->output, o->output);
    free(reported);
    return good ? GM_EXIT_OK : GM_EXIT_FAULT;
}

int gm_predict(const GmModel *model, int argc, char **argv)
{
    Later p = {.model = model};
    int status = gm_options_later(argc, argv, &p.o);
    gm_quiet = p.o.quiet;
    if (status < 0) {
        status = GM_EXIT_USAGE;
        omp_set_num_threads(p.o.threads);
        if (model->for_modes || !model->derive_chain)
            gm_error(model->for_modes ? "predict: this program looks for modes: without --method em gmc makes one whose draws predict"
                                      : "predict: there is nothing to compute: the model has no responses, no predict block and no "
                                        "definitions of unknowns");
        else if (gm_levels_ask(&p.o) && read_draws(&p, argv + optind, argc - optind) && learn_sizes(&p) && levels_agree(&p) &&
                 open_data(&p) && sums_are_meant(&p) && match_all(&p) && prepare(&p))
            status = run(&p);
    }
    if (!gm_files_unchanged() && status == GM_EXIT_OK) status = GM_EXIT_FAULT;
    later_close(&p);
    return status;
}
