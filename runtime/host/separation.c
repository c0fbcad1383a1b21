// separation.c -- outcomes that unknowns without bounds make certain: complete and quasi-complete separation, for warnings.
//
//   y[i] ~ bernoulli_logit(a + b * x[i] + c * d[i]);       d: 0 0 0 1 1     c -> infinity makes y[4] and y[5] certain, and changes no
//                                                          y: 0 1 0 1 1     other value: with a flat prior of c no posterior is there
//
// Outcomes are separated if there is such a direction among the unknowns: no value observed gets a smaller probability, however far one
// goes, and some become certain (Albert and Anderson 1984, Biometrika 71). Let g_i be the gradient of the log-likelihood of value i by the
// unknowns. Where each value depends on one linear predictor, the direction delta has g_i . delta >= 0 for all i, and > 0 for some.
//
// Values that are not certain at the ends of the chains stay as they are: delta is orthogonal to their g_i. Of the others, projected so, we
// look for the least |sum of (1 + m_i) g_i| over m_i >= 0. Its gradient says that this sum is such a direction, or 0 if there is none
// (Stiemke's lemma). From it we take what changes no predictor, so that few unknowns are left. What is found is then tried: along it no
// log-likelihood may fall, however the predictors are made. Where the prior falls soon on the way, it keeps the unknowns near.
//
// Coordinates are elements that are drawn, of unknowns without bounds. Vectors whose sum is 0 move within that plane.
#include "chains.h"
#include "fields.h"
#include "messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COORDINATES = 300 };
static const double MOST_NUMBERS = 4e6;   // rows times coordinates that are looked at
static const double MOST_PRODUCTS = 5e8;  // times coordinates again
static const double ROUNDING = 1e-7;      // of what is computed by differences, in units of the largest

// Whether all that is observed of o has a probability of next to 1, and is not always the same. x: its log-likelihoods.
static bool is_certain(const GmModel *model, const GmData *d, const GmObserved *o, const double *x, long n)
{
    static const double NEXT_TO_1 = -0.01;
    const GmValue *v = o->data ? gm_values_find(&d->values, model->data[o->data - 1].name) : NULL;
    if (!v || v->type != GM_INT || gm_value_size(v) < 2) return false;
    const int32_t *y = v->elements;
    bool differs = false, any = false;
    for (long i = 1; i < gm_value_size(v); i++) differs |= y[i] != y[0] && y[i] != GM_MISSING_INT && y[0] != GM_MISSING_INT;
    for (long i = 0; i < n; i++) {
        if (isnan(x[i])) continue;  // it is missing, or nothing names it
        any = true;
        if (x[i] < NEXT_TO_1) return false;
    }
    return any && differs;
}

static bool is_discrete(const GmModel *model, const GmObserved *o)
{
    return o->log_lik && o->data && model->data[o->data - 1].type == GM_INT;
}

static bool any_discrete(const GmModel *model)
{
    bool discrete = false;
    for (const GmObserved *o = model->observed; o && o->where; o++) discrete |= is_discrete(model, o);
    return discrete && model->derive_chain;
}

// A chain by itself, with log-likelihoods.
typedef struct Copy {
    GmMemory memory;
    GmRun one;
} Copy;

// requests: GM_LOG_LIK, and GM_LOG_PRIOR if it is to be computed, too.
static bool copy_open(Copy *c, const GmModel *model, const GmMemory *m, const GmData *d, const GmRun *run, int chain, int requests)
{
    if (!gm_copy_chain(model, m, d, chain, requests, &c->memory)) return false;
    c->one = *run;
    c->one.state = c->memory.state;
    c->one.chain = 0;
    c->one.first_chain += chain;
    c->one.requests = requests;
    model->derive_chain(&c->one);
    return true;
}

const char *gm_separated(const GmModel *model, const GmMemory *m, const GmData *d, const GmRun *run)
{
    const char *all = NULL;
    if (!any_discrete(model)) return NULL;
    for (int c = 0; c < m->chains; c++) {
        Copy copy;
        const char *here = NULL;
        if (!copy_open(&copy, model, m, d, run, c, GM_LOG_LIK)) return NULL;
        for (const GmObserved *o = model->observed; o->where && !here; o++) {
            const int f = o->log_lik - 1;
            if (f >= 0 && is_certain(model, d, o, gm_state_array(model, &copy.memory, 0, f), gm_shape_size(&copy.memory.shape[f])))
                here = o->name;
        }
        gm_memory_close(&copy.memory);
        if (!here || (all && strcmp(all, here) != 0)) return NULL;
        all = here;
    }
    return all;
}

// ---- rows, and coordinates ----

typedef struct Row {  // a value observed
    const GmObserved *of;
    long element;
    int certain;  // so many chains end where it is
    bool separated;
} Row;

typedef struct Search {
    const GmModel *model;
    const GmMemory *m;
    Copy here;     // of the first chain: moves
    double *end;   // [coordinate]: where that chain has ended
    long n, rows;  // n: coordinates
    GmCoordinate *at;
    long *plane;  // [coordinate]: 1 + the first coordinate of the vector of sum 0 that it is of, 0: there is none
    Row *row;
    double *g;  // [row][coordinate]
} Search;

// Log-likelihoods of all rows, where the copy is. false: one is not finite.
static bool evaluate(Search *s, double *out)
{
    s->model->derive_chain(&s->here.one);
    bool finite = true;
    for (long i = 0; i < s->rows; i++) {
        out[i] = ((const double *)gm_state_array(s->model, &s->here.memory, 0, s->row[i].of->log_lik - 1))[s->row[i].element];
        finite &= isfinite(out[i]);
    }
    return finite && !gm_fault_raised();
}

static void put(Search *s, long j, double x)
{
    ((double *)gm_state_array(s->model, &s->here.memory, 0, s->at[j].field))[s->at[j].element] = x;
}

static double of_end(const Search *s, long j)
{
    return ((const double *)gm_state_array(s->model, &s->here.memory, 0, s->at[j].field))[s->at[j].element];
}

static void add_coordinate(Search *s, GmCoordinate at, long plane)
{
    s->at[s->n] = at;
    s->plane[s->n++] = plane;
}

// Real unknowns without bounds.
static void find_coordinates(Search *s)
{
    for (int f = 0; f < s->model->n_state; f++) {
        const GmField *field = &s->model->state[f];
        const GmShape *shape = &s->m->shape[f];
        const bool sums_to_zero = field->constraint == GM_SUM_TO_ZERO && !field->partial;
        if ((field->role != GM_PARAMETER && field->role != GM_LATENT) || field->type == GM_INT ||
            (field->constraint != GM_ANY && !sums_to_zero) || isfinite(shape->lower) || isfinite(shape->upper))
            continue;
        const long size = gm_shape_size(shape), first = s->n;
        const long length = sums_to_zero ? shape->dim[shape->rank - 1] : 0;
        s->at = gm_grow(s->at, (size_t)(s->n + size) + 1, sizeof *s->at);
        s->plane = gm_grow(s->plane, (size_t)(s->n + size) + 1, sizeof *s->plane);
        for (long e = 0; e < size; e++)
            add_coordinate(s, (GmCoordinate){.field = f, .element = e}, sums_to_zero ? 1 + first + e / length * length : 0);
    }
}

// Leaves out elements that are not drawn: what derives an array with such elements puts their values back when all have others.
static void leave_out_derived(Search *s)
{
    static const double GOLDEN = 0.6180339887498949;
    double *other = gm_alloc((size_t)s->n + 1, sizeof *other);
    long kept = 0;
    for (long j = 0; j < s->n; j++) {
        const double x = s->end[j];
        other[j] = (isfinite(x) ? x : 0) + 1 + fmod((double)j * GOLDEN, 1);  // no two by the same
        if (s->model->state[s->at[j].field].partial) put(s, j, other[j]);
    }
    s->model->derive_chain(&s->here.one);
    if (gm_fault_raised()) gm_fault_clear();
    for (long j = 0; j < s->n; j++) other[j] = !s->model->state[s->at[j].field].partial || of_end(s, j) == other[j];
    for (long j = 0; j < s->n; j++) put(s, j, s->end[j]);
    for (long j = 0, shift = 0; j < s->n; j++) {
        if (other[j] == 0) {
            shift++;
            continue;
        }
        s->at[kept] = s->at[j];
        s->plane[kept] = s->plane[j] ? s->plane[j] - shift : 0;  // such vectors are whole
        s->end[kept++] = s->end[j];
    }
    s->n = kept;
    free(other);
}

// Whether a response has three different values or more: one of categories, of which several predictors make the probabilities.
static bool has_three_values(const Search *s, const GmData *d, const GmObserved *o)
{
    const GmValue *v = is_discrete(s->model, o) ? gm_values_find(&d->values, s->model->data[o->data - 1].name) : NULL;
    if (!v || v->type != GM_INT) return false;
    const int32_t *y = v->elements;
    int32_t seen[2];
    int n = 0;
    for (long i = 0; i < gm_value_size(v); i++) {
        if (y[i] == GM_MISSING_INT || (n > 0 && y[i] == seen[0]) || (n > 1 && y[i] == seen[1])) continue;
        if (n == 2) return true;
        seen[n++] = y[i];
    }
    return false;
}

// All values observed, and at the ends of how many chains each is certain. false: nothing can be separated.
static bool find_rows(Search *s, const GmData *d, const GmRun *run, double next_to_0, bool *of_categories)
{
    for (int c = 0; c < s->m->chains; c++) {
        Copy copy;
        if (!copy_open(&copy, s->model, s->m, d, run, c, GM_LOG_LIK)) return false;
        long i = 0;
        for (const GmObserved *o = s->model->observed; o->where; o++) {
            if (!o->log_lik) continue;
            const double *x = gm_state_array(s->model, &copy.memory, 0, o->log_lik - 1);
            const long size = gm_shape_size(&copy.memory.shape[o->log_lik - 1]);
            if (c == 0) s->row = gm_grow(s->row, (size_t)(i + size) + 1, sizeof *s->row);
            for (long e = 0; e < size; e++, i++) {
                if (c == 0) s->row[i] = (Row){.of = o, .element = e};
                if (isnan(x[e])) s->row[i].of = NULL;  // it is missing, or nothing names it
                s->row[i].certain += is_discrete(s->model, o) && x[e] >= next_to_0;
            }
        }
        s->rows = i;
        gm_memory_close(&copy.memory);
    }
    long n = 0, certain = 0;
    for (long i = 0; i < s->rows; i++) {
        if (!s->row[i].of) continue;
        s->row[n++] = s->row[i];
        if (2 * s->row[i].certain <= s->m->chains) continue;
        certain++;
        *of_categories = *of_categories || has_three_values(s, d, s->row[i].of);
    }
    s->rows = n;
    return certain > 0;
}

// Takes from x, over all coordinates, what would change the sum of a vector whose sum is 0.
static void keep_sums(const Search *s, double *x)
{
    for (long j = 0, last; j < s->n; j = last) {
        double sum = 0;
        for (last = j; last < s->n && (last == j || (s->plane[j] && s->plane[last] == s->plane[j])); last++) sum += x[last];
        for (long k = j; k < last && s->plane[j]; k++) x[k] -= sum / (double)(last - j);
    }
}

// Derivatives of all log-likelihoods at 0, by differences, right to some 1e-9: none changes by more than 3e-5. false: some are not there.
static bool find_gradients(Search *s)
{
    static const double FIRST = 1, LEAST = 1e-12, MOST_CHANGE = 3e-5;
    double *before = gm_alloc((size_t)s->rows, sizeof *before), *after = gm_alloc((size_t)s->rows, sizeof *after);
    bool good = true;
    s->g = gm_alloc((size_t)(s->rows * s->n), sizeof *s->g);
    for (long j = 0; j < s->n; j++) put(s, j, 0);
    good = evaluate(s, before);
    for (long j = 0; j < s->n && good; j++) {
        double step = FIRST, change = INFINITY;
        for (; step >= LEAST && change > MOST_CHANGE; step /= 10) {
            put(s, j, step);
            bool finite = evaluate(s, after);
            put(s, j, -step);
            finite &= evaluate(s, before);
            change = finite ? 0 : INFINITY;
            for (long i = 0; i < s->rows && finite; i++) {
                s->g[i * s->n + j] = (after[i] - before[i]) / (2 * step);
                change = fmax(change, fabs(after[i] - before[i]));
            }
        }
        put(s, j, 0);
        good = change <= MOST_CHANGE;
    }
    for (long i = 0; i < s->rows && good; i++) keep_sums(s, s->g + i * s->n);
    free(before);
    free(after);
    return good;
}

// ---- the direction ----

static double dot(const double *x, const double *y, long n)
{
    double sum = 0;
    for (long k = 0; k < n; k++) sum += x[k] * y[k];
    return sum;
}

// Takes from x what lies along the orthonormal rows of basis.
static void project(double *x, const double *basis, long rank, long n)
{
    for (int twice = 0; twice < 2; twice++)
        for (long r = 0; r < rank; r++) {
            const double along = dot(x, basis + r * n, n);
            for (long k = 0; k < n; k++) x[k] -= along * basis[r * n + k];
        }
}

// Adds x to the basis, unless it lies in it. false: it does.
static bool extend(double *basis, long *rank, double *x, long n)
{
    const double whole = sqrt(dot(x, x, n));
    project(x, basis, *rank, n);
    const double left = sqrt(dot(x, x, n));
    if (!(left > ROUNDING * whole)) return false;
    for (long k = 0; k < n; k++) basis[*rank * n + k] = x[k] / left;
    ++*rank;
    return true;
}

// Least squares: weights of the rows that `in` lists so that their sum is nearest to -c, by orthonormalisation. false: they depend on each
// other.
static bool solve(const double *g, const long *in, long n_in, const double *c, long n, double *weight)
{
    double *q = gm_alloc((size_t)(n_in * n) + 1, sizeof *q), *r = gm_alloc((size_t)(n_in * n_in) + 1, sizeof *r);
    bool good = true;
    for (long k = 0; k < n_in && good; k++) {
        double *x = q + k * n;
        memcpy(x, g + in[k] * n, (size_t)n * sizeof *x);
        for (int twice = 0; twice < 2; twice++)
            for (long p = 0; p < k; p++) {
                const double along = dot(x, q + p * n, n);
                r[p * n_in + k] += along;
                for (long e = 0; e < n; e++) x[e] -= along * q[p * n + e];
            }
        const double left = sqrt(dot(x, x, n));
        good = left > 1e-10;  // rows have length 1
        r[k * n_in + k] = left;
        for (long e = 0; e < n && good; e++) x[e] /= left;
    }
    for (long k = n_in - 1; k >= 0 && good; k--) {
        double sum = -dot(c, q + k * n, n);
        for (long p = k + 1; p < n_in; p++) sum -= r[k * n_in + p] * weight[p];
        weight[k] = sum / r[k * n_in + k];
    }
    free(q);
    free(r);
    return good;
}

// The least |c + sum of m_i g_i| over m_i >= 0 (Lawson and Hanson 1974, chapter 23): `left` is that sum. g has `rows` rows of length 1.
static void nonnegative(const double *g, long rows, long n, const double *c, double *left)
{
    long *in = gm_alloc((size_t)n + 2, sizeof *in), n_in = 0;
    double *m = gm_alloc((size_t)rows + 1, sizeof *m), *weight = gm_alloc((size_t)n + 2, sizeof *weight);
    bool *refused = gm_alloc((size_t)rows + 1, sizeof *refused);
    memcpy(left, c, (size_t)n * sizeof *left);
    for (long round = 0; round < 10 * (rows + n); round++) {
        long best = -1;
        double most = 1e-12 * sqrt(dot(c, c, n));
        for (long i = 0; i < rows; i++) {
            const double gain = -dot(g + i * n, left, n);
            if (m[i] == 0 && !refused[i] && gain > most) {
                most = gain;
                best = i;
            }
        }
        if (best < 0 || n_in >= n) break;
        in[n_in++] = best;
        bool changed = true;
        while (changed) {
            if (!solve(g, in, n_in, c, n, weight)) {  // the row adds nothing new
                refused[best] = true;
                n_in--;
                for (long k = 0; k < n_in; k++) weight[k] = m[in[k]];
                break;
            }
            double part = 1;
            for (long k = 0; k < n_in; k++)
                if (weight[k] <= 0) part = fmin(part, m[in[k]] / (m[in[k]] - weight[k]));
            changed = false;
            for (long k = 0; k < n_in; k++) m[in[k]] += part * (weight[k] - m[in[k]]);
            if (part < 1) {
                long kept = 0;
                for (long k = 0; k < n_in; k++) {
                    if (m[in[k]] > 1e-14) in[kept++] = in[k];
                    else m[in[k]] = 0;
                }
                changed = kept < n_in;
                n_in = kept;
                if (n_in == 0) break;
            }
        }
        memcpy(left, c, (size_t)n * sizeof *left);
        for (long k = 0; k < n_in; k++)
            for (long e = 0; e < n; e++) left[e] += m[in[k]] * g[in[k] * n + e];
    }
    free(in);
    free(m);
    free(weight);
    free(refused);
}

// The largest derivative by each coordinate; the elements of a vector whose sum is 0 share theirs.
static void find_units(const Search *s, double *unit)
{
    for (long j = 0; j < s->n; j++) unit[j] = 0;
    for (long i = 0; i < s->rows; i++)
        for (long j = 0; j < s->n; j++) {
            double *of = &unit[s->plane[j] ? s->plane[j] - 1 : j];
            *of = fmax(*of, fabs(s->g[i * s->n + j]));
        }
    for (long j = 0; j < s->n; j++)
        if (s->plane[j]) unit[j] = unit[s->plane[j] - 1];
}

// A direction in which certain values alone move, upwards; in units of each coordinate's own. false: there is none.
static bool find_direction(const Search *s, const double *unit, double *direction)
{
    const long n = s->n;
    double *x = gm_alloc((size_t)n, sizeof *x);
    double *basis = gm_alloc((size_t)(n * n), sizeof *basis), *moving = gm_alloc((size_t)(s->rows * n) + 1, sizeof *moving);
    double *sum = gm_alloc((size_t)n, sizeof *sum);
    long rank = 0, rows = 0;
    for (int pass = 0; pass < 2; pass++)
        for (long i = 0; i < s->rows && rank < n; i++) {
            if ((2 * s->row[i].certain > s->m->chains) != pass) continue;
            for (long j = 0; j < n; j++) x[j] = unit[j] > 0 ? s->g[i * n + j] / unit[j] : 0;
            const double whole = sqrt(dot(x, x, n));
            if (!(whole > 0)) continue;
            if (pass == 0) {
                extend(basis, &rank, x, n);
                continue;
            }
            project(x, basis, rank, n);
            const double left = sqrt(dot(x, x, n));
            if (!(left > ROUNDING * whole)) continue;
            for (long j = 0; j < n; j++) moving[rows * n + j] = x[j] / left;
            for (long j = 0; j < n; j++) sum[j] += x[j] / left;
            rows++;
        }
    if (rows > 0) nonnegative(moving, rows, n, sum, direction);
    const double length = rows > 0 ? sqrt(dot(direction, direction, n)) : 0;
    bool any = length > ROUNDING;
    for (long i = 0; i < rows && any; i++) any = dot(moving + i * n, direction, n) > -ROUNDING * length;
    for (long j = 0; j < n && any; j++) {
        direction[j] = fabs(direction[j]) > ROUNDING * length && unit[j] > 0 ? direction[j] / length / unit[j] : 0;
    }
    free(x);
    free(basis);
    free(moving);
    free(sum);
    return any;
}

// Brings the orthonormal `basis` to its reduced echelon form, with the largest pivots. pivot[r]: the coordinate that row r alone has, as 1.
static void reduce(double *basis, long rank, long n, long *pivot)
{
    for (long r = 0; r < rank; r++) {
        long row = r, column = 0;
        for (long p = r; p < rank; p++)
            for (long j = 0; j < n; j++)
                if (fabs(basis[p * n + j]) > fabs(basis[row * n + column])) {
                    row = p;
                    column = j;
                }
        pivot[r] = column;
        const double largest = basis[row * n + column];
        for (long j = 0; j < n; j++) {
            const double x = basis[row * n + j];
            basis[row * n + j] = basis[r * n + j];
            basis[r * n + j] = x / largest;
        }
        for (long p = 0; p < rank; p++) {
            const double times = basis[p * n + column];
            for (long j = 0; j < n && p != r; j++) basis[p * n + j] -= times * basis[r * n + j];
        }
    }
}

// Adds to x that multiple of `still` with which most of its numbers are 0. true: there are more than before.
static bool add_multiple(double *x, const double *still, long n)
{
    double best = 0;
    long most = 0;
    for (long k = -1; k < n; k++) {
        if (k >= 0 && !(fabs(still[k]) > ROUNDING && x[k] != 0)) continue;
        const double times = k < 0 ? 0 : -x[k] / still[k];
        long zeros = 0;
        for (long j = 0; j < n; j++) zeros += fabs(x[j] + times * still[j]) <= ROUNDING;
        if (k < 0 || zeros > most) {
            most = zeros;
            best = times;
        }
    }
    for (long j = 0; j < n && best != 0; j++) {
        x[j] += best * still[j];
        if (fabs(x[j]) <= ROUNDING) x[j] = 0;
    }
    return best != 0;
}

// The direction with fewer unknowns: without what changes no row, as b + t and c - t in the sum b + c. Each such change is taken in turn,
// as long as one helps.
static void make_sparse(const Search *s, const double *unit, double *direction)
{
    const long n = s->n;
    double *basis = gm_alloc((size_t)(n * n), sizeof *basis), *x = gm_alloc((size_t)n, sizeof *x);
    long rank = 0, *pivot = gm_alloc((size_t)n, sizeof *pivot);
    bool *pivots = gm_alloc((size_t)n, sizeof *pivots), helped = true;
    for (long first = 0; first < n && rank < n; first++) {  // a sum of 0 stays
        if (s->plane[first] != first + 1) continue;
        for (long j = 0; j < n; j++) x[j] = s->plane[j] == first + 1;
        extend(basis, &rank, x, n);
    }
    for (long i = 0; i < s->rows && rank < n; i++) {
        for (long j = 0; j < n; j++) x[j] = unit[j] > 0 ? s->g[i * n + j] / unit[j] : 0;
        if (dot(x, x, n) > 0) extend(basis, &rank, x, n);
    }
    reduce(basis, rank, n, pivot);
    for (long r = 0; r < rank; r++) pivots[pivot[r]] = true;
    for (long j = 0; j < n; j++) direction[j] *= unit[j];
    for (int round = 0; round < 10 && helped; round++) {
        helped = false;
        for (long free_one = 0; free_one < n; free_one++) {
            if (pivots[free_one] || !(unit[free_one] > 0)) continue;
            for (long j = 0; j < n; j++) x[j] = j == free_one;
            for (long r = 0; r < rank; r++) x[pivot[r]] = -basis[r * n + free_one];
            helped |= add_multiple(direction, x, n);
        }
    }
    for (long j = 0; j < n; j++) direction[j] = unit[j] > 0 ? direction[j] / unit[j] : 0;
    free(basis);
    free(x);
    free(pivot);
    free(pivots);
}

// Whether no log-likelihood falls along the direction, from 0 and from the end of the chain, and some values become certain. Marks these.
static bool holds(Search *s, const double *direction, long *separated)
{
    static const double FARTHEST = 1e4, FALL = 1e-3, RISE = 0.1, NEXT_TO_0 = -1e-3;
    double *far = gm_alloc((size_t)s->rows, sizeof *far), *from = gm_alloc((size_t)s->rows, sizeof *from);
    bool good = true, *moves = gm_alloc((size_t)s->rows, sizeof *moves);
    for (int origin = 0; origin < 2 && good; origin++) {
        for (long j = 0; j < s->n; j++) put(s, j, origin ? s->end[j] : 0);
        good = evaluate(s, from);
        for (double t = 1; t <= FARTHEST && good; t *= 10) {
            for (long j = 0; j < s->n; j++) put(s, j, (origin ? s->end[j] : 0) + t * direction[j]);
            good = evaluate(s, far);
            for (long i = 0; i < s->rows && good; i++) good = far[i] >= from[i] - FALL * (1 + fabs(from[i]));
        }
        for (long i = 0; i < s->rows && good && origin == 0; i++) moves[i] = far[i] > from[i] + RISE && far[i] > NEXT_TO_0;
    }
    *separated = 0;
    for (long i = 0; i < s->rows && good; i++) *separated += s->row[i].separated = moves[i];
    free(far);
    free(from);
    free(moves);
    return good && *separated > 0;
}

// The same with fewer unknowns, which then are the direction.
static bool holds_sparse(Search *s, const double *unit, double *direction, long *separated)
{
    const size_t size = (size_t)s->n * sizeof *direction;
    double *sparse = gm_alloc((size_t)s->n, sizeof *sparse);
    memcpy(sparse, direction, size);
    make_sparse(s, unit, sparse);
    const bool good = holds(s, sparse, separated);
    if (good) memcpy(direction, sparse, size);
    free(sparse);
    return good;
}

// The log prior where the copy is.
static double log_prior(Search *s)
{
    double sum = 0;
    s->model->derive_chain(&s->here.one);
    for (const GmPrior *p = s->model->priors; p && p->field; p++)
        if (gm_shape_size(&s->here.memory.shape[p->field - 1]) == 1)
            sum += *(const double *)gm_state_array(s->model, &s->here.memory, 0, p->field - 1);
    if (!gm_fault_raised()) return sum;
    gm_fault_clear();
    return NAN;
}

// Whether the prior is narrow along the direction: from the end of the chain its log density falls by 2, as a normal one does within two
// standard deviations, before an unknown has gone 25. That is ten standard deviations of normal(0, 2.5), which the warning recommends.
static bool is_bounded(Search *s, const double *direction)
{
    static const double FAR = 25, FALL = 2;
    double largest = 0;
    for (long j = 0; j < s->n; j++) largest = fmax(largest, fabs(direction[j]));
    for (long j = 0; j < s->n; j++) put(s, j, s->end[j]);
    const double before = log_prior(s);
    for (long j = 0; j < s->n; j++) put(s, j, s->end[j] + FAR / largest * direction[j]);
    return log_prior(s) < before - FALL;
}

static void search_close(Search *s)
{
    free(s->end);
    free(s->plane);
    free(s->at);
    free(s->row);
    free(s->g);
}

// The unknowns that go farthest, in units of what they change.
static void name_unknowns(const Search *s, const double *direction, GmSeparation *out)
{
    double most = 0;
    for (int pass = 0; pass < 2; pass++)
        for (long j = 0; j < s->n; j++) {
            double change = 0;
            for (long i = 0; i < s->rows; i++) change = fmax(change, fabs(s->g[i * s->n + j] * direction[j]));
            if (pass == 0) most = fmax(most, change);
            else if (change > 0.01 * most && out->n_unknowns++ < GM_NAMED_UNKNOWNS) {
                out->unknown[out->n_unknowns - 1] = s->at[j];
                out->upwards[out->n_unknowns - 1] = direction[j] > 0;
            }
        }
}

static bool is_small(const Search *s)
{
    const double numbers = (double)s->rows * (double)s->n;
    return numbers <= MOST_NUMBERS && numbers * (double)s->n <= MOST_PRODUCTS;
}

bool gm_find_separation(const GmModel *model, const GmMemory *m, const GmData *d, const GmRun *run, double next_to_0, GmSeparation *out)
{
    Search s = {.model = model, .m = m};
    *out = (GmSeparation){0};
    if (!any_discrete(model)) return false;
    find_coordinates(&s);
    bool good = s.n > 0 && s.n <= MOST_COORDINATES && find_rows(&s, d, run, next_to_0, &out->of_categories) && is_small(&s) &&
                copy_open(&s.here, model, m, d, run, 0, GM_LOG_LIK | GM_LOG_PRIOR);
    if (good) {
        double *direction = gm_alloc((size_t)s.n, sizeof *direction), *unit = gm_alloc((size_t)s.n, sizeof *unit);
        s.end = gm_alloc((size_t)s.n, sizeof *s.end);
        for (long j = 0; j < s.n; j++) s.end[j] = of_end(&s, j);
        leave_out_derived(&s);
        good = s.n > 0 && find_gradients(&s);
        if (good) find_units(&s, unit);
        good = good && find_direction(&s, unit, direction);
        good = good && (holds_sparse(&s, unit, direction, &out->values) || holds(&s, direction, &out->values));
        for (long i = 0; i < s.rows && good; i++) {
            if (!s.row[i].separated) continue;
            if (!out->of) {
                const GmShape *shape = &s.here.memory.shape[s.row[i].of->log_lik - 1];
                char *name = gm_element_name(s.row[i].of->name, shape->rank, shape->dim, s.row[i].element);
                snprintf(out->first, sizeof out->first, "%s", name);
                free(name);
                out->of = s.row[i].of->name;
            }
        }
        out->all = s.rows;
        if (good) name_unknowns(&s, direction, out);
        if (good) out->bounded = is_bounded(&s, direction);
        gm_memory_close(&s.here.memory);
        free(direction);
        free(unit);
    }
    if (gm_fault_raised()) gm_fault_clear();
    search_close(&s);
    return good;
}
