// feasible.c -- starts at which no factor of the model is 0.
//
// Random values inside the supports may be at odds with each other and with the data: a population smaller than the number counted, a
// parent who cannot have the child, q > p where q ~ uniform(0, p). An instance is one factor at one place of its indices. An element that
// lies outside of ends which a distribution or an observation gives it is moved between them: that is all a truncated latent needs, and
// takes one look at each. Instances that are 0 then show which elements have to change. These get all values of their supports back and are
// searched, everything else stays:
//
//   propagate   every instance is evaluated over the ranges of its elements; the ends of a range at which it can only be 0 are cut off
//   decide      one element gets a value (its random start if that is left), and so on; where nothing is left, the last decision is taken
//               back
//
// For chains and trees this finds a start at once (Mackworth 1977: arcs made consistent leave no dead ends in a tree). Where it finds none,
// the elements next to them may change too, and then all; then zeros are removed one at a time; and then it is tried again in another
// order, and from other random numbers.
#include "../device/rng.h"
#include "fields.h"
#include "messages.h"
#include "factors.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

// where its indices stand; its elements are those from first to last
typedef struct Instance {
    int factor;
    long index, first, last;
} Instance;

typedef struct Cut {
    long element;
    double lo, hi;
} Cut;  // what the range of an element was

typedef struct Decision {
    long element, cuts;
    int tried;
    double lo, hi;
} Decision;

typedef struct Search {
    const GmModel *model;
    Box box;
    Factors factors;
    long *base;  // by state field: number of its first element, -1 if the factors do not read it
    int *field;  // by element
    long n_elements;
    double *start;  // by element: where the random start had it
    bool *movable, *free, *waiting_element;
    Instance *instance;
    long n_instances, size_instances;
    long *indices, n_indices, size_indices;
    long *scope, n_scope, size_scope;
    long *first_use, *use;  // instances by element
    bool *queued;
    long *queue, n_queue;
    Cut *cut;
    long n_cuts, size_cuts;
    long *front, n_front, size_front;  // elements that propagation met last
    long *order;                       // elements in the order in which they are decided if nothing else says so
    long *weight;                      // of an element: dead ends that it had
    long *dead_ends;                   // of an instance
    double work, budget;               // evaluations
    Stream random;
} Search;

static const double NEAR = 1, FAR = 20;                        // how far a start may be moved, in units of 1 + |start|
static const uint64_t SEARCH_SWEEP = ((uint64_t)1 << 36) - 2;  // a stream that neither sweeps nor initial values use

#define GROW(array, size, n)                                           \
    do {                                                               \
        if ((n) >= (size)) {                                           \
            (size) = 2 * (size) + 64;                                  \
            (array) = gm_grow(array, (size_t)(size), sizeof *(array)); \
        }                                                              \
    } while (0)

// ---- instances ----

static void place(Search *s, const Instance *t)
{
    const Formula *f = &s->factors.formula[t->factor];
    for (int k = 0; k < f->n; k++) s->box.index[k] = s->indices[t->index + k];
}

static bool possible(Search *s, const Instance *t)
{
    place(s, t);
    s->box.looked = 0;
    const Range r = formula_range(&s->factors.formula[t->factor], &s->box);
    s->work += 1 + s->box.looked / 8;
    return range_possible(&s->box, r);
}

typedef struct Visit {
    Search *s;
    int factor;
    bool found;
} Visit;

static bool is_missing(const Box *b, int field, long at)
{
    const int source = b->model->state[field].role == GM_IMPUTED ? gm_data_of_imputed(b->model, field) : -1;
    long lo = 0, hi = source < 0 ? 0 : b->data->missing[source].count;  // in ascending order
    while (lo < hi) {
        const long mid = (lo + hi) / 2;
        if (b->data->missing[source].index[mid] < at) lo = mid + 1;
        else hi = mid;
    }
    return source >= 0 && lo < b->data->missing[source].count && b->data->missing[source].index[lo] == at;
}

static void collect_read(const Formula *f, Box *b)
{
    b->asked = true;
    b->n_read = 0;
    formula_range(f, b);
    b->asked = false;
}

// Does it count where the indices stand: data alone are no matter of the start.
static bool counts_here(const GmModel *model, int factor, const Formula *f, Box *b)
{
    if (!model->factors[factor].if_missing) return true;
    collect_read(f, b);
    for (int k = 0; k < b->n_read; k++)
        if (is_missing(b, b->read[k].field, b->read[k].at)) return true;
    return false;
}

// ---- elements outside of their ends ----

// Those of one chain, and the random numbers of each of their new values: by field and place.
typedef struct Mover {
    const bool *given;
    Box *box;
    Sweep at;
    bool any;
} Mover;

static bool may_move(const GmModel *model, int f, const bool *given)
{
    const GmField *field = &model->state[f];
    if (given && given[f]) return false;
    switch (field->role) {
    case GM_PARAMETER:
    case GM_LATENT: return field->constraint == GM_ANY || field->constraint == GM_ORDERED || field->constraint == GM_POSITIVE_ORDERED;
    case GM_IMPUTED: return true;
    case GM_AUXILIARY:
    case GM_DATA:
    case GM_DERIVED:
    case GM_PREDICTED:
    case GM_DIAGNOSTIC:
    case GM_SUM: break;
    }
    return false;
}

// A value between ends: anywhere between two, near to one.
static double between(double lo, double hi, double u)
{
    const double near = exp(2 * (2 * u - 1));
    return !isinf(lo) && !isinf(hi) ? lo + (hi - lo) * u : !isinf(lo) ? lo + near : hi - near;
}

static bool move_between(int field, long place, double lo, double hi, void *with)
{
    Mover *m = with;
    const GmField *v = &m->box->model->state[field];
    const bool whole = v->type == GM_INT;
    if (!may_move(m->box->model, field, m->given) || (v->role == GM_IMPUTED && !is_missing(m->box, field, place))) return true;
    void *array = gm_state_array(m->box->model, m->box->memory, m->box->chain, field);
    const double x = whole ? ((const int32_t *)array)[place] : ((const double *)array)[place];
    if (whole) {
        lo = ceil(lo);
        hi = floor(hi);
    }
    if ((x >= lo && x <= hi) || !(whole ? lo <= hi : lo < hi)) return true;  // a single point is what only the search may settle on
    Stream random = stream(m->at, (uint32_t)field, (uint64_t)place + 1);
    const double u = uniform_open(&random);
    if (!whole) ((double *)array)[place] = between(lo, hi, u);
    else if (isinf(lo) || isinf(hi)) ((int32_t *)array)[place] = (int32_t)fmin(fmax(isinf(hi) ? lo : hi, -INT32_MAX), INT32_MAX);
    else ((int32_t *)array)[place] = (int32_t)fmin(hi, lo + floor((hi - lo + 1) * u));
    return m->any = true;
}

static bool move_instance(const Formula *f, Box *b, void *with)
{
    formula_ends(f, b, move_between, with);
    return true;
}

// Did any element move?
static bool move_within_ends(const Factors *factors, Mover *m)
{
    for (int k = 0; k < factors->n; k++) formula_visit(&factors->formula[k], m->box, move_instance, m);
    return m->any;
}

static bool look(const Formula *f, Box *b, void *with)
{
    Visit *v = with;
    v->found = !range_possible(b, formula_range(f, b)) && counts_here(b->model, v->factor, f, b);
    return !v->found;
}

static bool counts(const GmModel *model, const GmData *d, int k)
{
    if (!model->factors[k].if_missing) return true;
    for (int f = 0; f < model->n_data; f++)
        if (d->missing[f].count) return true;
    return false;
}

// Is a factor 0 where the state stands? Which one; its indices are left in the box.
static int zero_factor(Factors *factors, Box *b)
{
    for (int k = 0; k < factors->n; k++) {
        Visit v = {.factor = k};
        if (!counts(factors->model, b->data, k)) continue;
        formula_visit(&factors->formula[k], b, look, &v);
        if (v.found) return k;
    }
    return -1;
}

// Is any factor 0 there? By all threads, which look at a part of its places each.
static bool any_zero(const Factors *factors, const Box *b)
{
    enum { PARTS = 64 };
    bool any = false;
    for (int k = 0; k < factors->n && !any; k++) {
        if (!counts(factors->model, b->data, k)) continue;
#pragma omp parallel for schedule(dynamic) reduction(|| : any)
        for (int part = 0; part < PARTS; part++) {
            Visit v = {.factor = k};
            Box mine = *b;
            mine.read = NULL;
            mine.n_read = mine.size_read = 0;
            if (!any) formula_visit_part(&factors->formula[k], &mine, part, PARTS, look, &v);
            any = any || v.found;
            free(mine.read);
        }
    }
    return any;
}

static bool add_instance(const Formula *f, Box *b, void *with)
{
    Visit *v = with;
    Search *s = v->s;
    if (!counts_here(s->model, v->factor, f, b)) return true;
    GROW(s->instance, s->size_instances, s->n_instances);
    Instance *t = &s->instance[s->n_instances++];
    *t = (Instance){.factor = v->factor, .index = s->n_indices, .first = s->n_scope};
    for (int k = 0; k < f->n; k++) {
        GROW(s->indices, s->size_indices, s->n_indices);
        s->indices[s->n_indices++] = b->index[k];
    }
    collect_read(f, b);
    for (int k = 0; k < b->n_read; k++) {
        const long base = s->base[b->read[k].field], e = base + b->read[k].at;
        if (base < 0 || !s->movable[e]) continue;
        GROW(s->scope, s->size_scope, s->n_scope);
        s->scope[s->n_scope++] = e;
    }
    t->last = s->n_scope;
    return true;
}

// ---- ranges ----

static bool whole(const Search *s, long e) { return s->model->state[s->field[e]].type == GM_INT; }

static double *low(Search *s, long e) { return &s->box.lo[s->field[e]][e - s->base[s->field[e]]]; }
static double *high(Search *s, long e) { return &s->box.hi[s->field[e]][e - s->base[s->field[e]]]; }

static void set_range(Search *s, long e, double lo, double hi)
{
    GROW(s->cut, s->size_cuts, s->n_cuts);
    s->cut[s->n_cuts++] = (Cut){e, *low(s, e), *high(s, e)};
    *low(s, e) = lo;
    *high(s, e) = hi;
}

static void undo(Search *s, long cuts)
{
    while (s->n_cuts > cuts) {
        const Cut *c = &s->cut[--s->n_cuts];
        *low(s, c->element) = c->lo;
        *high(s, c->element) = c->hi;
    }
}

static void full_range(const Search *s, long e, double *lo, double *hi)
{
    const GmShape *shape = &s->box.memory->shape[s->field[e]];
    *lo = shape->lower;
    *hi = shape->upper;
    if (whole(s, e)) {
        *lo = fmax(*lo, -INT32_MAX);
        *hi = fmin(*hi, INT32_MAX);
    }
}

static void enqueue(Search *s, long e)
{
    for (long k = s->first_use[e]; k < s->first_use[e + 1]; k++)
        if (!s->queued[s->use[k]]) {
            s->queued[s->use[k]] = true;
            s->queue[s->n_queue++] = s->use[k];
        }
    GROW(s->front, s->size_front, s->n_front);
    s->front[s->n_front++] = e;
}

// Can the instance be more than 0 with the element within these ends?
static bool possible_within(Search *s, const Instance *t, long e, double lo, double hi)
{
    const double a = *low(s, e), b = *high(s, e);
    *low(s, e) = lo;
    *high(s, e) = hi;
    const bool can = possible(s, t);
    *low(s, e) = a;
    *high(s, e) = b;
    return can;
}

// The range of e without the ends at which the instance can only be 0: slices of growing length are cut off while they are impossible, then
// of shrinking length.
static bool shave(Search *s, const Instance *t, long e)
{
    const bool integer = whole(s, e);
    double lo = *low(s, e), hi = *high(s, e);
    const double lo_before = lo, hi_before = hi;
    if (isinf(lo) && isinf(hi)) {  // a number to start from
        if (!possible_within(s, t, e, -INFINITY, 0)) lo = 0;
        else if (!possible_within(s, t, e, -INFINITY, -1e4)) lo = -1e4;
        if (!possible_within(s, t, e, 0, INFINITY)) hi = 0;
        else if (!possible_within(s, t, e, 1e4, INFINITY)) hi = 1e4;
    }
    for (int side = 0; side < 2; side++) {
        if (isinf(side ? hi : lo)) continue;
        const double length = hi - lo, size = fabs(side ? hi : lo);
        double step = integer ? 1 : isinf(length) ? fmax(1, size) : length / 4;
        const double least = integer ? 1 : 1e-6 * fmin(fmax(size, 1e-3), isinf(length) ? INFINITY : length);
        bool growing = true, any = false;
        for (int turn = 0; turn < 200 && lo < hi; turn++) {
            if (!integer && step >= hi - lo) step = (hi - lo) / 2;
            const double slice = integer ? fmin(step, hi - lo) : step;
            const double end = side ? (integer ? hi - slice + 1 : hi - slice) : (integer ? lo + slice - 1 : lo + slice);
            if (side ? possible_within(s, t, e, end, hi) : possible_within(s, t, e, lo, end)) {
                growing = false;
                if ((!any && !integer && turn >= 2) || step <= least) break;
                step = integer ? floor(step / 2) : step / 2;
                if (step < least) break;
            } else {
                any = true;
                if (side) hi = integer ? end - 1 : end;
                else lo = integer ? end + 1 : end;
                if (growing) step *= 2;
            }
        }
    }
    if (lo > hi || (lo == hi && !possible_within(s, t, e, lo, hi))) return false;
    if (lo == lo_before && hi == hi_before) return true;
    const bool much = (integer && hi_before - lo_before < 1e6) || hi - lo < 0.9 * (hi_before - lo_before) ||
                      isinf(lo_before) != isinf(lo) || isinf(hi_before) != isinf(hi);
    set_range(s, e, lo, hi);
    if (much) enqueue(s, e);
    return true;
}

// The ends that a distribution or an observation gives an element, as they are: an interval may be a single point, which no search comes
// upon.
static bool cut_ends(int field, long at, double lo, double hi, void *with)
{
    Search *s = with;
    const long e = s->base[field] >= 0 ? s->base[field] + at : -1;
    if (e < 0 || *low(s, e) == *high(s, e)) return true;
    if (whole(s, e)) {
        lo = ceil(lo);
        hi = floor(hi);
    }
    const double a = fmax(lo, *low(s, e)), b = fmin(hi, *high(s, e));
    if (a > b) return false;
    if (a != *low(s, e) || b != *high(s, e)) {
        set_range(s, e, a, b);
        if (a == b || isinf(*low(s, e)) || isinf(*high(s, e))) enqueue(s, e);
    }
    return true;
}

// Looks at all waiting instances until none cuts a range. false: one of them can only be 0.
static bool propagate(Search *s)
{
    bool good = true;
    for (long turn = 0; s->n_queue > 0; turn++) {
        const long k = s->queue[--s->n_queue];
        const Instance *t = &s->instance[k];
        s->queued[k] = false;
        if (!good || s->work > s->budget) continue;
        good = possible(s, t) && formula_ends(&s->factors.formula[t->factor], &s->box, cut_ends, s);
        long open = 0;
        for (long q = t->first; q < t->last; q++) open += *low(s, s->scope[q]) < *high(s, s->scope[q]);
        s->dead_ends[k] += !good;
        // a sum over thousands of elements says nothing of one of them
        for (long q = t->first; q < t->last && good && open <= 100; q++)
            if (*low(s, s->scope[q]) < *high(s, s->scope[q])) {
                good = shave(s, t, s->scope[q]);
                if (!good) {
                    s->weight[s->scope[q]]++;
                    s->dead_ends[k]++;
                }
            }
    }
    return good && s->work <= s->budget;
}

// ---- decisions ----

// The value to try next for an element: its start if that is left, then others. NaN: there is none.
static double candidate(Search *s, Decision *d)
{
    enum { FEW = 64, MOST = 24 };
    const double lo = d->lo, hi = d->hi, width = hi - lo;
    const double x0 = s->start[d->element];
    const bool inside = x0 >= lo && x0 <= hi;
    const int turn = d->tried++;
    if (turn == 0 && inside) return x0;
    if (whole(s, d->element)) {
        if (width < FEW) {  // all of them, from x0 on or from a place that the element picks
            const long count = (long)width + 1,
                       from = inside ? (long)(x0 - lo) : (long)((uint64_t)d->element * 2654435761u % (uint64_t)count);
            const int past = inside ? turn : turn;
            return past < count ? lo + (double)((from + past) % count) : NAN;
        }
        if (turn >= MOST) return NAN;
        const double u = uniform_open(&s->random), far = fmin(width, (1 + fabs(lo)) * exp(turn - 4.0));
        return lo > -1e9 ? lo + floor(turn < 2 ? 0 : u * far) : hi < 1e9 ? hi - floor(u * far) : floor((2 * u - 1) * exp(turn));
    }
    if (turn >= MOST) return NAN;
    const double u = uniform_open(&s->random);
    if (!isinf(width)) return lo + width * (turn < 4 ? 0.25 + 0.5 * u : u);
    const double near = exp(2 * (2 * u - 1) + (turn < 4 ? 0 : turn % 2 ? turn / 2.0 : -turn / 2.0));
    return !isinf(lo) ? lo + near : !isinf(hi) ? hi - near : (turn % 2 ? near : -near);
}

// The element to decide next: of those met last, the one with the smallest range; else the first in order. -1: all are decided.
static long undecided(Search *s, long *next)
{
    long best = -1, at = -1;
    double least = INFINITY;
    while (s->n_front > 0 && *low(s, s->front[s->n_front - 1]) == *high(s, s->front[s->n_front - 1])) s->n_front--;
    for (long k = s->n_front, seen = 0; k-- > 0 && seen < 16; seen++) {
        const long e = s->front[k];
        const double width = *high(s, e) - *low(s, e);
        if (!s->free[e] || width == 0 || (!whole(s, e) && best >= 0)) continue;
        const double size = (whole(s, e) ? width : 1e12) / (1 + (double)s->weight[e]);
        if (size < least) {
            least = size;
            best = e;
            at = k;
        }
    }
    (void)at;
    if (best >= 0) return best;
    while (s->order[*next] >= 0 && *low(s, s->order[*next]) == *high(s, s->order[*next])) ++*next;
    return s->order[*next];
}

static bool search(Search *s)
{
    s->n_cuts = s->n_front = 0;
    if (!propagate(s)) return false;
    long depth = 0, size = 0, next = 0;
    Decision *stack = NULL;
    bool found = false;
    for (;;) {
        next = depth ? next : 0;
        const long e = undecided(s, &next);
        if (e < 0) {
            found = true;
            break;
        }
        GROW(stack, size, depth);
        stack[depth++] = (Decision){.element = e, .cuts = s->n_cuts, .lo = *low(s, e), .hi = *high(s, e)};
        while (depth > 0) {
            Decision *d = &stack[depth - 1];
            undo(s, d->cuts);
            const double x = s->work > s->budget ? NAN : candidate(s, d);
            if (isnan(x)) {
                s->weight[d->element]++;
                depth--;
                next = 0;
                continue;
            }
            set_range(s, d->element, x, x);
            enqueue(s, d->element);
            if (propagate(s)) break;
        }
        if (depth == 0) break;
    }
    free(stack);
    return found;
}

// ---- a chain ----

static void read_start(Search *s)
{
    for (long e = 0; e < s->n_elements; e++) {
        const int f = s->field[e];
        const void *array = gm_state_array(s->model, s->box.memory, s->box.chain, f);
        const long at = e - s->base[f];
        s->start[e] = s->model->state[f].type == GM_INT ? ((const int32_t *)array)[at] : ((const double *)array)[at];
    }
}

static void write_start(Search *s)
{
    for (long e = 0; e < s->n_elements; e++) {
        const int f = s->field[e];
        if (!s->free[e]) continue;
        void *array = gm_state_array(s->model, s->box.memory, s->box.chain, f);
        const long at = e - s->base[f];
        if (s->model->state[f].type == GM_INT) ((int32_t *)array)[at] = (int32_t)*low(s, e);
        else ((double *)array)[at] = *low(s, e);
    }
}

// Numbers the elements that can change, and collects all instances with the elements that they may read.
static void search_open(Search *s, const bool *given)
{
    const GmModel *model = s->model;
    const GmMemory *m = s->box.memory;
    for (int f = 0; f < model->n_state; f++) {
        const bool moves = may_move(model, f, given);
        s->base[f] = s->n_elements;
        if (moves) s->n_elements += gm_shape_size(&m->shape[f]);
        else s->base[f] = -1;
    }
    const size_t n = (size_t)s->n_elements + 1;
    s->field = gm_alloc(n, sizeof *s->field);
    s->start = gm_alloc(n, sizeof *s->start);
    s->movable = gm_alloc(n, sizeof *s->movable);
    s->free = gm_alloc(n, sizeof *s->free);
    s->first_use = gm_alloc(n + 1, sizeof *s->first_use);
    s->order = gm_alloc(n, sizeof *s->order);
    s->weight = gm_alloc(n, sizeof *s->weight);
    for (int f = 0; f < model->n_state; f++) {
        if (s->base[f] < 0) continue;
        const long size = gm_shape_size(&m->shape[f]);
        s->box.lo[f] = gm_alloc((size_t)size, sizeof **s->box.lo);
        s->box.hi[f] = gm_alloc((size_t)size, sizeof **s->box.hi);
        const int source = model->state[f].role == GM_IMPUTED ? gm_data_of_imputed(model, f) : -1;
        for (long i = 0; i < size; i++) {
            s->field[s->base[f] + i] = f;
            s->movable[s->base[f] + i] = source < 0;
        }
        for (long i = 0; source >= 0 && i < s->box.data->missing[source].count; i++)
            s->movable[s->base[f] + s->box.data->missing[source].index[i]] = true;
    }
    read_start(s);
    for (long e = 0; e < s->n_elements; e++) {
        *low(s, e) = *high(s, e) = s->start[e];
        if (s->movable[e]) full_range(s, e, low(s, e), high(s, e));
    }
    for (int k = 0; k < s->factors.n; k++) {
        Visit v = {s, k, false};
        if (counts(model, s->box.data, k)) formula_visit(&s->factors.formula[k], &s->box, add_instance, &v);
    }
    s->queued = gm_alloc((size_t)s->n_instances, sizeof *s->queued);
    s->queue = gm_alloc((size_t)s->n_instances, sizeof *s->queue);
    s->dead_ends = gm_alloc((size_t)s->n_instances, sizeof *s->dead_ends);
    s->use = gm_alloc((size_t)s->n_scope, sizeof *s->use);
    for (long k = 0; k < s->n_scope; k++) s->first_use[s->scope[k] + 1]++;
    for (long e = 0; e < s->n_elements; e++) s->first_use[e + 1] += s->first_use[e];
    long *at = gm_alloc(n, sizeof *at);
    memcpy(at, s->first_use, n * sizeof *at);
    for (long k = 0; k < s->n_instances; k++)
        for (long q = s->instance[k].first; q < s->instance[k].last; q++) s->use[at[s->scope[q]]++] = k;
    free(at);
}

static void search_close(Search *s)
{
    for (int f = 0; f < s->model->n_state && s->box.lo; f++) {
        free(s->box.lo[f]);
        free(s->box.hi[f]);
    }
    free(s->box.lo);
    free(s->box.hi);
    free(s->box.read);
    free(s->base);
    free(s->field);
    free(s->start);
    free(s->movable);
    free(s->free);
    free(s->first_use);
    free(s->order);
    free(s->weight);
    free(s->instance);
    free(s->indices);
    free(s->scope);
    free(s->use);
    free(s->queued);
    free(s->queue);
    free(s->dead_ends);
    free(s->cut);
    free(s->front);
}

// Everything as it started, but for the elements that may change.
static void set_ranges(Search *s)
{
    long n = 0;
    for (long e = 0; e < s->n_elements; e++) {
        *low(s, e) = *high(s, e) = s->start[e];
        if (s->free[e]) {
            full_range(s, e, low(s, e), high(s, e));
            s->order[n++] = e;
        }
    }
    for (long k = n; k-- > 1;) {  // shuffled; then small ranges first, numbers last
        const long q = (long)(uniform_open(&s->random) * (double)(k + 1)), swap = s->order[k];
        s->order[k] = s->order[q > k ? k : q];
        s->order[q > k ? k : q] = swap;
    }
    long *sorted = gm_alloc((size_t)n + 1, sizeof *sorted), m = 0;
    for (int pass = 0; pass < 3; pass++)
        for (long k = 0; k < n; k++) {
            const long e = s->order[k];
            const int class = !whole(s, e) ? 2 : *high(s, e) - *low(s, e) < 1000 ? 0 : 1;
            if (class == pass) sorted[m++] = e;
        }
    memcpy(s->order, sorted, (size_t)n * sizeof *sorted);
    s->order[n] = -1;
    free(sorted);
    s->n_queue = 0;
    memset(s->queued, 0, (size_t)s->n_instances * sizeof *s->queued);
    for (long k = s->n_instances; k-- > 0;)
        for (long q = s->instance[k].first; q < s->instance[k].last; q++)
            if (s->free[s->scope[q]]) {
                s->queued[k] = true;
                s->queue[s->n_queue++] = k;
                break;
            }
}

// One round: frees the elements of instances that are 0 at the start, then those next to them.
static bool widen(Search *s, bool first)
{
    bool any = false;
    bool *reached = gm_alloc((size_t)s->n_instances, sizeof *reached);
    for (long e = 0; e < s->n_elements && first; e++) *low(s, e) = *high(s, e) = s->start[e];
    for (long k = 0; k < s->n_instances; k++) {
        const Instance *t = &s->instance[k];
        if (first) reached[k] = !possible(s, t);
        for (long q = t->first; q < t->last && !first && !reached[k]; q++) reached[k] = s->free[s->scope[q]];
    }
    for (long k = 0; k < s->n_instances; k++)
        for (long q = s->instance[k].first; q < s->instance[k].last && reached[k]; q++)
            if (!s->free[s->scope[q]]) any = s->free[s->scope[q]] = true;
    free(reached);
    return any;
}

// ---- fewer zeros, one element at a time ----
//
// Ranges say little where an unknown enters a factor twice, Phi((b - m)/s) - Phi((a - m)/s). Decisions in order say little where many
// factors share an unknown beside one of their own, X[i] * b + u[i] > 0. Both are soon repaired from a start. An instance that is 0 is
// picked, and the one of its elements and new values is taken that leaves the fewest zeros (min-conflicts: Minton et al. 1992). Where
// several leave as few, the one to change is drawn, so that plateaus are crossed. A matrix that has to be positive definite counts the more
// the further it is from that.

static double zeros_at(Search *s, long e, double x)
{
    *low(s, e) = *high(s, e) = x;
    double n = 0;
    for (long k = s->first_use[e]; k < s->first_use[e + 1]; k++) n += possible(s, &s->instance[s->use[k]]) ? 0 : 1 + s->box.short_by;
    return n;
}

// A value to try: near the one that there is, at all scales, or anywhere between ends.
static double another_value(Search *s, double x, double lo, double hi)
{
    const double u = uniform_open(&s->random), v = uniform_open(&s->random), width = hi - lo;
    double y;
    if (!isinf(width) && u < 0.5) y = lo + width * v;
    else if (!isinf(lo) && u < 0.75) y = lo + exp(10 * v - 7);
    else if (!isinf(hi) && u < 0.75) y = hi - exp(10 * v - 7);
    else y = x + (u < 0.5 || (u > 0.75 && u < 0.875) ? -1 : 1) * exp(10 * v - 7) * (1 + fabs(x) / 10);
    return y < lo || y > hi ? lo + width * v : y;
}

static long zeros_listed(Search *s, long *zero)
{
    long n = 0;
    for (long k = 0; k < s->n_instances; k++)
        if (!possible(s, &s->instance[k])) zero[n++] = k;
    return n;
}

typedef struct Change {
    long element, alike;
    double zeros, value;
} Change;

// The best new value of the element, if it is as good as the best so far.
static void try_values(Search *s, long e, Change *best)
{
    enum { VALUES = 16 };
    double lo, hi;
    full_range(s, e, &lo, &hi);
    const double x = *low(s, e);
    const double now = zeros_at(s, e, x);
    for (int k = 0; k < VALUES; k++) {
        double y = another_value(s, x, lo, hi);
        if (whole(s, e)) y = fmin(hi, fmax(lo, hi - lo < VALUES ? lo + floor(uniform_open(&s->random) * (hi - lo + 1)) : round(y)));
        if (y == x || isnan(y) || isinf(y)) continue;
        const double gain = zeros_at(s, e, y) - now;
        if (best->element >= 0 && gain > best->zeros) continue;
        best->alike = best->element >= 0 && gain == best->zeros ? best->alike + 1 : 1;
        if (best->alike == 1 || uniform_open(&s->random) * (double)best->alike < 1) *best = (Change){e, best->alike, gain, y};
    }
    *low(s, e) = *high(s, e) = x;
}

static bool fewer_zeros(Search *s)
{
    enum { ELEMENTS = 8 };
    bool found = false;
    long *zero = gm_alloc((size_t)s->n_instances + 1, sizeof *zero);
    for (long e = 0; e < s->n_elements; e++) {
        *low(s, e) = *high(s, e) = s->start[e];
        s->free[e] = s->movable[e];
    }
    s->work = 0;
    while (s->work < s->budget) {
        const long n = zeros_listed(s, zero);
        if (n == 0) {
            found = true;
            break;
        }
        for (long turn = 0; turn < n && s->work < s->budget; turn++) {
            const Instance *t = &s->instance[zero[(long)(uniform_open(&s->random) * (double)n)]];
            const long scope = t->last - t->first;
            if (scope == 0 || possible(s, t)) continue;
            Change best = {.element = -1};
            for (long q = 0; q < scope && q < ELEMENTS; q++)
                try_values(s, s->scope[scope <= ELEMENTS ? t->first + q : t->first + (long)(uniform_open(&s->random) * (double)scope)],
                           &best);
            if (best.element >= 0 && best.zeros <= 0) *low(s, best.element) = *high(s, best.element) = best.value;
        }
    }
    free(zero);
    return found;
}

static bool search_chain(Search *s)
{
    enum { TRIES = 6 };
    memset(s->free, 0, (size_t)s->n_elements * sizeof *s->free);
    for (bool first = true; widen(s, first); first = false)
        for (int k = 0; k < (first ? 1 : 2); k++) {
            s->work = 0;
            s->budget = 2e4 + 200.0 * (double)(s->n_scope + s->n_elements);
            set_ranges(s);
            if (search(s)) return true;
        }
    s->budget *= 4;
    if (fewer_zeros(s)) return true;
    for (int k = 0; k < TRIES; k++) {
        s->work = 0;
        s->budget = (2e4 + 200.0 * (double)(s->n_scope + s->n_elements)) * pow(2, k);
        for (long e = 0; e < s->n_elements; e++) {  // from other places
            double lo, hi;
            full_range(s, e, &lo, &hi);
            const double u = uniform_open(&s->random);
            if (s->free[e] && !isinf(lo) && !isinf(hi) && hi - lo < 1000)
                s->start[e] = whole(s, e) ? lo + floor(u * (hi - lo + 1)) : lo + u * (hi - lo);
        }
        set_ranges(s);
        if (search(s)) return true;
    }
    return false;
}

// ---- nearer to the random start ----
//
// Decisions in order leave it to the last unknown to make good what the others lack: of a + X[i] * b > 0 with small X[i] a coefficient that
// started at 0.5 became 600, and chains took their warm-up to come back. Such a start is looked for once more, one element at a time from
// the random start, and the nearer one is taken. Then each number goes back to where it was if no factor is 0 there, or as far as it can:
// half as far inside what is possible as its random start lies outside.

// In units of 1 + |start|.
static double moved_by(const Search *s, long e)
{
    if (!s->free[e] || whole(s, e)) return 0;
    return fabs(s->box.lo[s->field[e]][e - s->base[s->field[e]]] - s->start[e]) / (1 + fabs(s->start[e]));
}

static double farthest(const Search *s)
{
    double most = 0;
    for (long e = 0; e < s->n_elements; e++) most = fmax(most, moved_by(s, e));
    return most;
}

static void draw_back(Search *s, long e)
{
    enum { HALVINGS = 30 };
    const double found = *low(s, e), start = s->start[e];
    double inside = found, outside = start;
    if (zeros_at(s, e, start) == 0) return;
    for (int k = 0; k < HALVINGS && fabs(inside - outside) > 1e-6 * fabs(outside - start); k++) {
        const double x = outside + 0.5 * (inside - outside);
        if (zeros_at(s, e, x) == 0) inside = x;
        else outside = x;
    }
    const double x = inside + 0.5 * (inside - start), y = fabs(x - start) < fabs(found - start) ? x : found;
    if (zeros_at(s, e, y) > 0 && zeros_at(s, e, inside) > 0) *low(s, e) = *high(s, e) = found;
}

static void draw_all_back(Search *s)
{
    s->work = 0;
    for (long e = 0; e < s->n_elements && s->work < s->budget; e++)
        if (moved_by(s, e) > NEAR) draw_back(s, e);
}

static void come_nearer(Search *s)
{
    const double found = farthest(s);
    double *at = found > FAR ? gm_alloc((size_t)s->n_elements + 1, sizeof *at) : NULL;
    for (long e = 0; at && e < s->n_elements; e++) at[e] = *low(s, e);
    if (at && !(fewer_zeros(s) && farthest(s) < found))
        for (long e = 0; e < s->n_elements; e++) *low(s, e) = *high(s, e) = at[e];
    free(at);
    draw_all_back(s);
}

// ---- in words ----

// "binomial(y[j, t] | n[j], p) at j = 2, t = 1 (model.gm:4) is 0 where n[2] = 3", with the indices and the ranges in the box.
static char *factor_in_words(const Factors *factors, Box *b, int k, bool alone)
{
    const Formula *f = &factors->formula[k];
    const GmFactor *text = &factors->model->factors[k];
    char *at = gm_copy_text(""), *values = gm_copy_text("");
    const char *name = text->over;
    for (int i = 0; i < f->n; i++) {
        char *more = gm_format("%s%s%.*s = %ld", at, i ? ", " : " at ", (int)strcspn(name, " "), name, b->index[i]);
        free(at);
        at = more;
        for (int depth = 0; *name && (*name != ',' || depth); name++)
            depth += (*name == '(' || *name == '[') - (*name == ')' || *name == ']');
        name += strspn(name, ", ");
    }
    collect_read(f, b);
    char *why = b->impossible && b->empty
                    ? gm_format(": no value lies between its ends, %.6g and %.6g", b->end[0], b->end[1])
                    : gm_copy_text(formula_of_matrix(f) ? ": a matrix is not positive definite, or has no inverse" : "");
    for (int i = 0; i < b->n_read && i < 6; i++) {
        const int field = b->read[i].field;
        const long place = b->read[i].at;
        const GmField *v = &factors->model->state[field];
        const void *array = gm_state_array(factors->model, b->memory, b->chain, field);
        const double x = v->type == GM_INT ? ((const int32_t *)array)[place] : ((const double *)array)[place];
        const double lo = b->lo[field] ? b->lo[field][place] : x, hi = b->hi[field] ? b->hi[field][place] : x;
        const bool top = hi == INFINITY || (v->type == GM_INT && hi == INT32_MAX),
                   bottom = lo == -INFINITY || (v->type == GM_INT && lo == -INT32_MAX);
        char *element = gm_element_name(v->name, v->rank, b->memory->shape[field].dim, place);
        char *range = isnan(lo)       ? gm_format("%s is no number", element)
                      : lo == hi      ? gm_format("%s = %.6g", element, lo)
                      : top && bottom ? gm_copy_text("")
                      : top           ? gm_format("%s >= %.6g", element, lo)
                      : bottom        ? gm_format("%s <= %.6g", element, hi)
                                      : gm_format("%s in %.6g ... %.6g", element, lo, hi);
        char *more = gm_format("%s%s%s", values, *values && *range ? ", " : "", range);
        free(element);
        free(range);
        free(values);
        values = more;
    }
    enum { LINE = 100 };
    const bool cut = strlen(text->text) > LINE;
    char *all = gm_format("%.*s%s%s (%s) %s%s%s%s", cut ? LINE : (int)strlen(text->text), text->text, cut ? "..." : "", at, text->where,
                          alone ? "is 0" : "stays 0 whatever the others allow", *values ? alone ? " where " : " of " : "", values, why);
    free(why);
    free(at);
    free(values);
    return all;
}

// The instance that no value of its elements allows, else the one that most searches ended at; with the ranges that its elements may have.
static char *culprit(Search *s)
{
    long worst = 0;
    for (long k = 1; k < s->n_instances; k++)
        if (s->dead_ends[k] > s->dead_ends[worst]) worst = k;
    for (long e = 0; e < s->n_elements; e++) {
        *low(s, e) = *high(s, e) = s->start[e];
        if (s->movable[e]) full_range(s, e, low(s, e), high(s, e));
    }
    for (long k = 0; k < s->n_instances; k++)
        if (!possible(s, &s->instance[k])) {
            worst = k;
            break;
        }
    const Instance *t = &s->instance[worst];
    const bool alone = !possible(s, t);
    place(s, t);
    return factor_in_words(&s->factors, &s->box, t->factor, alone);
}

static Box box_of(const GmModel *model, const GmMemory *m, const GmData *d, int chain)
{
    Box b = {.model = model, .memory = m, .data = d, .chain = chain};
    b.lo = gm_alloc((size_t)model->n_state, sizeof *b.lo);
    b.hi = gm_alloc((size_t)model->n_state, sizeof *b.hi);
    return b;
}

char *gm_zero_factor(const GmModel *model, const GmMemory *m, const GmData *d, int chain)
{
    Factors factors;
    factors_open(&factors, model, m, d, true);
    Box b = box_of(model, m, d, chain);
    const int k = zero_factor(&factors, &b);
    char *words = k >= 0 ? factor_in_words(&factors, &b, k, true) : NULL;
    free(b.lo);
    free(b.hi);
    free(b.read);
    factors_close(&factors);
    return words;
}

// What is known of the data without a start is looked at in setup, later. If it finds them at fault it says so, and no start is to blame.
// Of an unknown whose interval is empty the search itself says more.
static bool data_at_fault(const GmModel *model, const GmMemory *m, const GmData *d, const GmRun *run)
{
    if (!model->setup) return false;
    GmRun trial = *run;
    trial.inner_threads = 1;
    model->setup(&trial);
    if (!gm_fault_of_data(model)) return false;
    gm_fault_print(model, m, d);
    return true;
}

bool gm_feasible(const GmModel *model, GmMemory *m, const GmData *d, const GmRun *run, const bool *given)
{
    Factors factors;
    bool good = true;
    factors_open(&factors, model, m, d, false);
    for (int c = 0; c < m->chains && good && factors.n; c++) {
        Search s = {.model = model, .box = box_of(model, m, d, c), .factors = factors};
        const Sweep at = {.seed = run->seed, .chain = (uint32_t)(run->first_chain + c), .sweep = SEARCH_SWEEP};
        Mover mover = {.given = given, .box = &s.box, .at = at};
        if (any_zero(&factors, &s.box) && (!move_within_ends(&factors, &mover) || any_zero(&factors, &s.box))) {
            s.random = stream(at, 0, 0);
            s.base = gm_alloc((size_t)model->n_state, sizeof *s.base);
            search_open(&s, given);
            good = search_chain(&s);
            if (good) come_nearer(&s);
            if (good) write_start(&s);
        }
        char *words = good ? NULL : culprit(&s);
        search_close(&s);
        if (good) continue;
        if (data_at_fault(model, m, d, run)) {
            free(words);
            break;
        }
        gm_error("chain %d: no start was found at which the density is not 0: %s. %s", run->first_chain + c + 1, words,
                 given ? "The values of --init are kept as they are: they, the model and the data are at odds"
                       : "--init FILE gives values to start from; see whether the data can be");
        free(words);
    }
    factors_close(&factors);
    return good;
}
