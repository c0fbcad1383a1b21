// initial.c -- where chains start: random inside the support, or from a file.
//
// Each value is drawn from a stream of its own, keyed by (seed, number of the chain, variable, element) and by a sweep that no run
// reaches; so it depends neither on the number of chains nor on threads. Values at odds with each other or with the data are then mended
// (feasible.c).
#include "../device/rng.h"
#include "chains.h"
#include "fields.h"
#include "messages.h"

#include <stdlib.h>
#include <string.h>

typedef struct Start {  // one array to fill, and the key of its streams
    const GmField *field;
    const GmShape *shape;
    double radius;
    Sweep at;
    uint32_t variable;
    bool again;  // not the first start: between two ends anywhere, by its logit
} Start;

static const uint64_t INITIAL_SWEEP = ((uint64_t)1 << 36) - 1;  // the last sweep that has streams of its own in rng.h

// Uniform on (-1, 1), times the radius.
static double spread(const Start *s, long element)
{
    Stream g = stream(s->at, s->variable, (uint64_t)element);
    return s->radius * (2 * uniform_open(&g) - 1);
}

// One real or int inside its bounds.
static double scalar(const Start *s, long element)
{
    const double lower = s->shape->lower, upper = s->shape->upper, u = spread(s, element);
    const bool below = lower > -INFINITY, above = upper < INFINITY;
    if (s->field->type == GM_INT) {
        if (below && above && s->radius > 0) {
            Stream g = stream(s->at, s->variable, (uint64_t)element);
            const double x = floor(lower) + floor(uniform_open(&g) * (floor(upper) - floor(lower) + 1));
            return x < upper ? x : floor(upper);
        }
        const double off = s->again ? floor(expm1(fabs(u))) : 0;
        return below ? lower + off : above ? upper - off : off;
    }
    if (below && above && s->again) return lower + (upper - lower) / (1 + exp(-u));
    if (below && above) return lower + (upper - lower) * (0.5 + 0.25 * (s->radius > 1 ? u / s->radius : u));
    if (below) return lower + exp(u);
    return above ? upper - exp(u) : u;
}

static void vector(const Start *s, long first, double *x, long n)
{
    const double lower = s->shape->lower, upper = s->shape->upper, least = s->field->constraint == GM_POSITIVE_ORDERED ? 0 : -INFINITY;
    const bool above = upper < INFINITY;  // ends that its distribution gives to an ordered vector
    double sum = 0;
    switch (s->field->constraint) {
    case GM_SIMPLEX:
        for (long i = 0; i < n; i++) sum += x[i] = exp(0.5 * spread(s, first + i));
        for (long i = 0; i < n; i++) x[i] /= sum;
        return;
    case GM_UNIT_VECTOR:
        for (long i = 0; i < n; i++) {
            x[i] = 1 + spread(s, first + i);
            sum += x[i] * x[i];
        }
        for (long i = 0; i < n; i++) x[i] /= sqrt(sum);
        return;
    case GM_SUM_TO_ZERO:
        for (long i = 0; i < n; i++) sum += x[i] = 0.5 * spread(s, first + i);
        for (long i = 0; i < n; i++) x[i] -= sum / (double)n;
        return;
    case GM_ORDERED:
    case GM_POSITIVE_ORDERED:  // gaps of about 2/n: the vector spans (-1, 1), or (0, 2)
        for (long i = 0; i < n; i++) {
            const double before = i ? x[i - 1] : s->field->constraint == GM_ORDERED ? -1 - 1.0 / (double)n : 0;
            x[i] = before + 2.0 / (double)n * exp(0.5 * spread(s, first + i));
        }
        for (long i = 0; i < n && (above || lower > least); i++)
            x[i] = !above ? lower + exp(x[i]) : lower > -INFINITY ? lower + (upper - lower) / (1 + exp(-x[i])) : upper - exp(-x[i]);
        return;
    case GM_ANY:
    case GM_COUNTS:
    case GM_COVARIANCE:
    case GM_CORRELATION:
    case GM_CHOLESKY_COV:
    case GM_CHOLESKY_CORR: return;
    }
}

static void fill(const Start *s, void *elements)
{
    const long size = gm_shape_size(s->shape);
    const int rank = s->shape->rank;
    const long last = rank > 0 ? s->shape->dim[rank - 1] : 1;
    double *x = elements;
    switch (s->field->constraint) {
    case GM_ANY:
    case GM_COUNTS:
        for (long i = 0; i < size; i++) {
            if (s->field->type == GM_INT) ((int32_t *)elements)[i] = (int32_t)scalar(s, i);
            else x[i] = scalar(s, i);
        }
        return;
    case GM_SIMPLEX:
    case GM_UNIT_VECTOR:
    case GM_SUM_TO_ZERO:
    case GM_ORDERED:
    case GM_POSITIVE_ORDERED:
        for (long i = 0; i < size; i += last) vector(s, i, x + i, last);
        return;
    case GM_COVARIANCE:
    case GM_CORRELATION:
    case GM_CHOLESKY_COV:
    case GM_CHOLESKY_CORR: {  // the identity
        const long rows = rank > 1 ? s->shape->dim[rank - 2] : 1;
        for (long i = 0; i < size; i++) x[i] = i % last == i / last % rows;
        return;
    }
    }
}

void gm_start_values(const GmField *field, const GmShape *shape, uint64_t seed, uint32_t variable, void *elements)
{
    const Start s = {.field = field, .shape = shape, .radius = 1, .variable = variable, .at = {.seed = seed, .sweep = INITIAL_SWEEP}};
    fill(&s, elements);
}

// Missing entries start at the mean of those observed; counts and categories at one of the observed values, chosen at random.
static void impute(const Start *s, void *elements, const GmMissing *missing, const void *observed)
{
    const long size = gm_shape_size(s->shape), seen = size - missing->count;
    double mean = 0;
    if (s->field->type != GM_INT && seen > 0) {
        const double *y = observed;
        for (long i = 0; i < size; i++) mean += isnan(y[i]) ? 0 : y[i] / (double)seen;
    }
    for (long k = 0; k < missing->count; k++) {
        const long i = missing->index[k];
        if (s->field->type != GM_INT) {
            ((double *)elements)[i] = seen > 0 ? mean : scalar(s, i);
            continue;
        }
        const int32_t *y = observed;
        int32_t x = (int32_t)scalar(s, i);
        Stream g = stream(s->at, s->variable, (uint64_t)i);
        for (int tries = 0; tries < 1000 && seen > 0; tries++) {  // if nearly all are missing, any value in the bounds does
            const int32_t pick = y[(long)(uniform_open(&g) * (double)size)];
            if (pick != GM_MISSING_INT) {
                x = pick;
                break;
            }
        }
        ((int32_t *)elements)[i] = x;
    }
}

// Elements of a definition that no statement computes: nothing is ever written there.
static void fill_absent(const GmField *field, const GmShape *shape, void *elements)
{
    const long size = gm_shape_size(shape);
    for (long i = 0; i < size; i++) {
        if (field->type == GM_INT) ((int32_t *)elements)[i] = GM_MISSING_INT;
        else ((double *)elements)[i] = NAN;
    }
}

// A real starts inside its bounds, not on one of them: a scale of 0 leaves no density for what it scales, and the fault would name that.
static bool starts_inside(const GmField *f, const GmShape *s, const GmValue *v)
{
    const double *x = v->elements;
    const long size = f->type == GM_INT ? 0 : gm_value_size(v);
    for (long i = 0; i < size; i++) {
        if (x[i] > s->lower && x[i] < s->upper) continue;
        char *name = gm_element_name(f->name, s->rank, s->dim, i);
        gm_error("%s: %s = %.10g is on its bound: a start lies inside (declared at %s)", v->source, name, x[i], f->where);
        free(name);
        return false;
    }
    return true;
}

// Values from a file, of draws those of a chain, go to `n` chains from `first` on, all alike; `given` says of which variables there are
// some.
static bool override(const GmModel *model, GmMemory *m, const char *path, int first, int n, long chain, bool *given)
{
    GmValues values = {.fields = model->state, .n_fields = model->n_state};
    const bool draws = gm_ends_in_csv(path) || gm_is_netcdf(path);
    bool good = draws ? gm_last_draw(model, m, path, chain, &values) : gm_json_read(&values, path);
    for (int f = 0; f < model->n_state && good; f++) {
        const GmField *field = &model->state[f];
        const GmValue *v = gm_values_find(&values, field->name);
        if (!v) continue;
        if (!gm_is_unknown(field->role)) {
            gm_error(field->role == GM_IMPUTED ? "%s: %s is data: its missing values take no start from a file; ignored"
                                               : "%s: %s is not drawn as a variable; ignored",
                     path, field->name);
            continue;
        }
        GmField finite = *field;
        finite.finite = 1;
        finite.needed_for = "a start is a number";
        good = gm_value_fits(field, &m->shape[f], v) && gm_check_values(&finite, &m->shape[f], v->elements, v->source, NULL) &&
               starts_inside(field, &m->shape[f], v);
        const size_t bytes = (size_t)gm_value_size(v) * gm_size_of_element(field->type);
        for (int c = first; c < first + n && good; c++) memcpy(gm_state_array(model, m, c, f), v->elements, bytes);
        given[f] = true;
    }
    for (int i = 0; i < values.n_unknown && good; i++) {
        const char *name = values.unknown[i];
        const size_t n = strlen(name);
        if (n > 2 && strcmp(name + n - 2, "__") == 0)  // lp__, slope__: what a file of a mode says besides
            continue;
        // also where notes are not asked for: it is no start, then
        gm_error("%s: the model has no variable %s; ignored", path, name);
    }
    gm_values_close(&values);
    return good;
}

// Values from a file for each chain. All have the same variables: what is given is not searched for, in any chain.
static bool override_each(const GmModel *model, GmMemory *m, const GmRun *run, char **path, bool *given)
{
    bool *here = gm_alloc((size_t)model->n_state, sizeof *here), good = true;
    for (int c = 0; c < m->chains && good; c++) {
        memset(here, 0, (size_t)model->n_state * sizeof *here);
        good = override(model, m, path[c], c, 1, run->first_chain + c + 1, here);
        for (int f = 0; f < model->n_state && good; f++) {
            if (c == 0) given[f] = here[f];
            good = here[f] == given[f];
            if (!good)
                gm_error("--init: %s has no %s, and %s has: the files of all chains give the same variables", path[given[f] ? c : 0],
                         model->state[f].name, path[given[f] ? 0 : c]);
        }
    }
    free(here);
    return good;
}

void gm_fill_absent(const GmModel *model, const GmMemory *m, int chain)
{
    for (int f = 0; f < model->n_state; f++) {
        const GmField *field = &model->state[f];
        if (field->partial && (field->role == GM_DERIVED || field->role == GM_PREDICTED))
            fill_absent(field, &m->shape[f], gm_state_array(model, m, chain, f));
    }
}

void gm_draw_start_again(const GmModel *model, const GmMemory *m, const GmRun *run, int chain, int field, long first, long n, double radius,
                         uint64_t sweep)
{
    const GmField *f = &model->state[field];
    const Start s = {.field = f,
                     .shape = &m->shape[field],
                     .radius = radius,
                     .variable = (uint32_t)field,
                     .again = true,
                     .at = {.seed = run->seed, .chain = (uint32_t)(run->first_chain + chain), .sweep = sweep}};
    void *elements = gm_state_array(model, m, chain, field);
    switch (f->constraint) {
    case GM_ANY:
    case GM_COUNTS:
        for (long i = first; i < first + n; i++) {
            if (f->type == GM_INT)
                // a radius may reach beyond what an int holds
                ((int32_t *)elements)[i] = (int32_t)fmax(-INT32_MAX, fmin(scalar(&s, i), INT32_MAX));
            else ((double *)elements)[i] = scalar(&s, i);
        }
        return;
    case GM_SIMPLEX:
    case GM_UNIT_VECTOR:
    case GM_SUM_TO_ZERO:
    case GM_ORDERED:
    case GM_POSITIVE_ORDERED: vector(&s, first, (double *)elements + first, n); return;
    case GM_COVARIANCE:
    case GM_CORRELATION:
    case GM_CHOLESKY_COV:
    case GM_CHOLESKY_CORR: return;
    }
}

// All of a response counts as missing where it will be drawn. Until then it has the values of the files, to which ends of others' supports
// belong.
static void keep_given(const GmField *field, void *elements, const void *given, long n)
{
    for (long i = 0; i < n; i++)
        if (field->type == GM_INT) {
            const int32_t x = ((const int32_t *)given)[i];
            if (x != GM_MISSING_INT) ((int32_t *)elements)[i] = x;
        } else if (!isnan(((const double *)given)[i])) ((double *)elements)[i] = ((const double *)given)[i];
}

bool gm_initial(const GmModel *model, GmMemory *m, const GmData *d, const GmOptions *o, const GmRun *run)
{
#pragma omp parallel for schedule(dynamic)
    for (int c = 0; c < m->chains; c++)
        for (int f = 0; f < model->n_state; f++) {
            const GmField *field = &model->state[f];
            const Start s = {.field = field,
                             .shape = &m->shape[f],
                             .radius = o->init_radius,
                             .variable = (uint32_t)f,
                             .at = {.seed = run->seed, .chain = (uint32_t)(run->first_chain + c), .sweep = INITIAL_SWEEP}};
            const int source = field->role == GM_IMPUTED ? gm_data_of_imputed(model, f) : -1;
            void *elements = gm_state_array(model, m, c, f);
            if (field->by_start && o->map) {
                continue;  // expectations: rows times values of them, which `map` makes before it reads any
            } else if (gm_is_unknown(field->role)) {
                fill(&s, elements);
            } else if (source >= 0 && d->of_chain && d->of_chain[source]) {
                const size_t bytes = (size_t)gm_shape_size(&d->shape[source]) * gm_element_size(&model->data[source]);
                memcpy(elements, (const char *)d->of_chain[source] + (size_t)c * bytes, bytes);
                impute(&s, elements, &d->missing[source], elements);  // what is missing is so there, too
            } else if (source >= 0 && d->missing[source].count > 0) {
                const void *at = (const char *)d->data + model->data[source].offset;
                const void *given = model->data[source].rank ? *(void *const *)at : at;
                impute(&s, elements, &d->missing[source], given);
                if (o->forward) keep_given(&model->data[source], elements, given, gm_shape_size(&d->shape[source]));
            }
        }
    for (int c = 0; c < m->chains; c++) gm_fill_absent(model, m, c);
    if (!o->init_file) return gm_feasible(model, m, d, run, NULL);
    bool *given = gm_alloc((size_t)model->n_state, sizeof *given);
    const bool read =
        o->init_of ? override_each(model, m, run, o->init_of, given) : override(model, m, o->init_file, 0, m->chains, 1, given);
    const bool good = read && gm_feasible(model, m, d, run, given);
    free(given);
    return good;
}
