// gradient.c -- blocks that move along gradients: from unconstrained coordinates to variables, the log density there, and its gradient.
//
//   position          q, end to end: the variables of the block in coordinates without bounds
//   place             x = T(q), into the variables
//   density           log p(x) + log |dT/dq|; d log p / dx, summed factor by factor; then by the chain rule d/dq
//
// A factor over plates whose sum leaves the sweep (hoist.c) is differentiated as that closed form: its gradient does not grow with the rows. Any other factor is
// one loop over its plates, which adds up its log density, the derivatives by scalars and by elements that an instance has for its own, and keeps what other
// derivatives need: the weight d log p / d eta of each instance. From these follow sums by group (u[g[i]]) and X'w, a pass over the rows of X.
//
// A variable whose elements are constrained together has derivatives by its elements in an array of its own, as if each were free; routines of constrained_line.h make x of q, q of x, and
// d/dq of d/dx, one value (a simplex, a matrix) at a time.
//
// Definitions whose elements are computed from each other (graph/series.c) are computed at each place, and their derivatives added up in arrays of their own, of which one lane makes
// adjoints, from the last element to the first: an element's own derivative is complete then, and goes on to those that it was made of. What it was made of else gets sums over elements.
//
// What loops would compute again and again is computed once at each place, into arrays (once.c), whose adjoints follow those of the factors.
//
// Needs: graph/gradient.c.     Source of the transforms: front/support.def (Stan Reference Manual, "Constraint Transforms").
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "lower.h"

typedef struct Total { Expr *ref; Var *local; struct Total *next; } Total;       // the derivative by one element, a local of the kernel

typedef struct Pending {                 // a derivative by elements that instances share
    Derivative *d;
    Expr       *weight;                  // as an element of the array that keeps it, or as it is
    Var        *sums, *matrix;           // X'w, where a pass over rows has made it, and X; NULL: none
    Expr       *times;                   // what multiplies the sums
    bool        keeps;                   // it reads sums that the rows have kept
    bool        put;
    struct Pending *next;
} Pending;

typedef struct Probability { Expr *of, *place; Loops loops; struct Probability *next; } Probability;       // of a value that is summed out, in a row
typedef struct Kept { Expr *sum; Var *local; Expr *place; bool always; struct Kept *next; } Kept;      // a sum that each row computes for its density: by name, and in an array for later loops; always: whatever choices of the row say

typedef struct Ends {                    // of a variable's interval: the same for all elements, or arrays
    double number[2];
    Var   *array[2], *slope[2];          // slope: the derivative by each, where they move
    bool   move;                         // with other variables of the block, which come before it in `order`
    bool   unknown;                      // they move in a circle, or with something else than elements of their own: trials beyond them are rejected
    bool   turns;                        // an angle, whose density goes on beyond them as it began: there are no ends, and the coordinate is the angle plus whole turns
} Ends;

typedef struct Prior { const Factor *f; Expr *element, *centre, *spread; Index *along; struct Prior *next; } Prior;      // along: the centre reads elements that come before along this index; else NULL

typedef struct Root {                    // of the covariance, or the precision, of vectors: L, lower triangular
    bool  precision, moves;
    Expr *matrix;                        // whose factor it is, factored at each place; NULL: its elements are those of
    Expr *elements;                      // these, which may read
    Expr *fixed;                         // the factor of what does not move, in an array; or NULL
    Var  *of_fixed;
    Var  *array, *slope;                 // slope: the derivative by it
    Var  *apart, *noise, *left, *right, *pivot;  // of each element, as in whitened.h; noise: by covariance, and then it is what stands on the right
} Root;

typedef struct Centring {                // of effects whose prior has a centre and a spread that move with the block
    Prior *priors;                       // of its elements; NULL: its coordinates are its values
    Root  *root;                         // of vectors; NULL: each element has a spread
    Var   *centre, *spread;              // of each element; 0 and 1: no prior names it
    Var   *scale;                        // spread to the power of the element's share
    Var   *slope[2];                     // the derivative by centre and spread
} Centring;

typedef struct Tied {                    // of a variable whose elements are constrained together
    int   nbatch;                        // subscripts that count its values; 0 and no slope: elements are not constrained together
    Expr *length;                        // coordinates of one value
    Var  *slope;                         // d log p / dx
    Var  *log_slope;                     // log |J| of each value
    Var  *work;
} Tied;

enum { MOST_PRODUCTS = 6 };              // of one span

typedef struct RowSpan {                 // factors whose instances are rows of matrices that are multiplied by matrices of the block
    Expr    *n;                          // rows
    int      nproducts;
    Product *product[MOST_PRODUCTS];
    Total   *totals;
    Var     *sums;                       // of the rows: the log density, then the totals
    struct RowSpan *next;
} RowSpan;

typedef struct Inverse {                 // a matrix of which the density needs the inverse, or the log determinant
    Expr *of;
    Var  *matrix, *inverse, *log_det;    // log_det: one element
    struct Inverse *next;
} Inverse;

typedef struct Moved {                   // a block
    Lower      *p;
    const Step *step;
    const char *stem;
    Expr       *size;
    Expr      **offset;                  // of each variable in the open kernel
    Ends       *ends;
    int        *order;                   // of the variables: each after those that its ends read
    Tied       *tied;
    Centring   *centring;
    Var        *shares, *next_shares;    // of the coordinates: how far those of effects are standardised, and how far from the next sweep on; NULL: there are none
    Moving      moving;                  // the block, and the series that it enters
    Var       **adjoint;                 // of each variable of them
    Var        *position, *gradient, *density, *machine;
    Var        *lp;
    Total      *totals, **last_total;
    Pending    *pending, **last_pending;
    Probability *probabilities;          // that pending derivatives read
    RowSpan    *spans;
    Inverse    *inverses;
    Once       *once;                    // arrays that the density reads, behind the series in `moving`
    int         nweights, nnamed;
    Expr      **scalars;                 // single elements that the density kernel has names for
    const char **names;
    int         nscalars, scalars_size, names_size;
} Moved;

enum { MOST_TOTALS = MOST_OF_LOOP - 1 }; // that one loop adds up beside the log density

// ---- places ----

static int at_block(const Moved *m, const Var *v)
{
    int i = 0;
    while (m->step->block[i] != v) i++;
    return i;
}

// Of a variable of a series; else NULL.
static Var *adjoint_of(const Moved *m, const Var *v)
{
    for (int i = m->step->nblock; i < m->moving.n; i++)
        if (m->moving.var[i] == v) return m->adjoint[i];
    return NULL;
}

static const Tied *tied_of(const Moved *m, const Var *v) { return &m->tied[at_block(m, v)]; }

static Expr *coordinates_of(const Moved *m, const Var *v)
{
    const Tied *t = tied_of(m, v);
    Expr *n = t->slope ? t->length : ex_num(1);
    for (int k = 0; k < (t->slope ? t->nbatch : v->rank); k++) n = ex_mul2(n, v->dim[k]);
    return n;
}

// In each kernel, where the variables begin in the coordinates.
static void put_offsets(Moved *m)
{
    Lower *p = m->p;
    Expr *at = ex_num(0);
    for (int i = 0; i < m->step->nblock; i++) {
        m->offset[i] = at;
        if (at->kind != EX_NUM) {
            Var *local = local_named(p->g->arena, words(p, "at_%s", m->step->block[i]->name));
            local->base = BASE_INT;
            put_let(p, NULL, local, at, "long")->let.spare = true;
            m->offset[i] = local_ref(local);
        }
        at = ex_add2(m->offset[i], coordinates_of(m, m->step->block[i]));
    }
}

// The element of an array over the coordinates that belongs to v[at...].
static Expr *coordinate(const Moved *m, Var *array, const Var *v, Expr *const *at)
{
    Expr *flat = v->rank ? at[0] : ex_num(1);
    for (int k = 1; k < v->rank; k++) flat = ex_add2(ex_mul2(ex_sub(flat, ex_num(1)), v->dim[k]), at[k]);
    Expr *sub = ex_add2(m->offset[at_block(m, v)], flat);
    return ex_ref(array, 1, &sub);
}

static Expr *of_ref(const Moved *m, Var *array, const Expr *ref) { return coordinate(m, array, ref->var, ref->args); }

// The same, to be written to: its subscripts stay apart, since one may be the group of a loop.
static Place gradient_place(const Moved *m, const Expr *ref)
{
    Var *own = adjoint_of(m, ref->var);
    if (!own) own = tied_of(m, ref->var)->slope;
    if (own) return (Place){.array = own, .n = 1, .sub = {{.of = own, .n = ref->nargs, .at = ref->args}}};
    Expr *offset = m->offset[at_block(m, ref->var)];
    if (ref->nargs && ex_is_num(offset, 0)) offset = NULL;
    return (Place){.array = m->gradient, .n = 1, .sub = {{.offset = offset, .of = ref->var, .n = ref->nargs, .at = ref->args}}};
}

// All elements of v that exist, as loops; returns the element.
static Expr *whole(const Var *v, Loops *l)
{
    *l = (Loops){.n = v->rank, .guard = v->exists};
    Expr *at[MAX_RANK];
    for (int k = 0; k < v->rank; k++) at[k] = ex_index(l->index[k] = v->own[k]);
    return ex_ref((Var *)v, v->rank, at);
}

static Node *each_element(Moved *m, const Expr *element, const Loops *l)
{
    return enter_nest(m->p, NODE_NEST, l, element->nargs, element->args, NULL);
}

// ---- the transforms ----

static void put_barrier(Lower *p)
{
    if (p->open->kind == KERNEL_TEAM) put(p, NODE_BARRIER);
}

static Expr *end_of(const Ends *e, int side, const Expr *element)
{
    return e->array[side] ? ex_ref(e->array[side], element->nargs, element->args) : ex_num(e->number[side]);
}

static bool is_free(const Ends *e) { return !e->array[0] && isinf(e->number[0]) && isinf(e->number[1]); }

// One of the functions of line.h, written out where the ends are numbers.
typedef enum { VALUE, SLOPE, LOG_SLOPE, BEND, INVERSE } Piece;

// Ends at which logarithms of the element are kept (logs.c).
static bool keeps_logs(const Ends *ends, const Expr *element) { return element->var->kept_log && !ends->array[0] && ends->number[0] == 0 && (isinf(ends->number[1]) || (element->var->kept_log1m && ends->number[1] == 1)); }

static Expr *transform(const Ends *ends, Piece what, Expr *q, const Expr *element)
{
    static const char *const name[] = {"from_line", "line_slope", "line_log_slope", "line_bend", "to_line"};
    Expr *lo = end_of(ends, 0, element), *hi = end_of(ends, 1, element);
    const bool below = !ends->array[0] && isfinite(ends->number[0]), above = !ends->array[0] && isfinite(ends->number[1]), kept = keeps_logs(ends, element);
    if (kept && what == VALUE) return ex_call1(above ? "from_logit" : "from_log", q);
    if (kept && above && what == SLOPE) return ex_mul2((Expr *)element, ex_sub(ex_num(1), (Expr *)element));         // whose quotients by x and by 1 - x are numbers
    if (kept && above && what == INVERSE) return ex_sub(ex_call1("log", (Expr *)element), ex_call1("log1m", (Expr *)element));
    if (ends->array[0] || (below && above)) return ex_call3(name[what], q, lo, hi);
    Expr *sign = ex_num(above ? -1 : 1), *end = above ? hi : lo;
    switch (what) {
    case VALUE: return ex_add2(end, ex_mul2(sign, ex_call1("exp", q)));
    case SLOPE: return ends->number[0] == 0 ? (Expr *)element : ex_mul2(sign, ex_call1("exp", q));
    case LOG_SLOPE: return q;
    case BEND: return ex_num(1);
    case INVERSE: return ex_call1("log", ex_mul2(sign, ex_sub(q, end)));
    }
    return q;
}

// Bounds of single elements that are not numbers: within(v[..], lo, hi), a term of a factor's log density.
typedef struct Bound { const Factor *f; const Expr *term; struct Bound *next; } Bound;

static Bound *bounds_of(const Moved *m, const Var *v)
{
    Bound *first = NULL, **last = &first;
    if (tied_of(m, v)->slope) return NULL;
    for (int i = 0; i < m->step->nuts.n; i++) {
        const Factor *f = m->step->nuts.factor[i];
        const Expr *e = f->log_density;
        for (int k = 0; k < (e->kind == EX_ADD ? e->nargs : 1); k++) {
            const Expr *t = e->kind == EX_ADD ? e->args[k] : e;
            if (t->kind != EX_CALL || t->fn != FN_WITHIN || t->args[0]->kind != EX_REF || t->args[0]->var != v) continue;
            if (t->args[1]->kind == EX_NUM && t->args[1]->number <= v->lower_number && t->args[2]->kind == EX_NUM && t->args[2]->number >= v->upper_number) continue;
            *last = NEW(m->p->g->arena, Bound);
            **last = (Bound){f, t, NULL};
            last = &(*last)->next;
        }
    }
    return first;
}

// ---- angles ----

// Sums of v's elements, each times a whole number, and of what does not hold v.
static bool counts_turns(const Expr *e, const Var *v)
{
    if (!ex_reads(e, v)) return true;
    if (e->kind == EX_REF) {
        for (int k = 0; k < e->nargs; k++)
            if (ex_reads(e->args[k], v)) return false;
        return e->var == v;
    }
    if (e->kind == EX_MUL) return e->nargs == 2 && e->args[0]->kind == EX_NUM && e->args[0]->number == floor(e->args[0]->number) && counts_turns(e->args[1], v);
    bool all = e->kind == EX_ADD;
    for (int k = 0; k < e->nargs && all; k++) all = counts_turns(e->args[k], v);
    return all;
}

static Expr *without_waves(Expr *e, void *with) { return e->kind == EX_CALL && (e->fn == FN_cos || e->fn == FN_sin || e->fn == FN_tan) && counts_turns(e->args[0], with) ? ex_num(0) : NULL; }

// Is v an angle from -pi to pi that the density knows by its cosine and sine alone? Then it is the same a turn farther on, and what reads v otherwise tells that it is not.
static bool is_angle(const Moved *m, Var *v)
{
    if (tied_of(m, v)->slope || fabs(v->lower_number + M_PI) > 1e-12 || fabs(v->upper_number - M_PI) > 1e-12 || bounds_of(m, v) || m->moving.n > m->step->nblock) return false;
    for (int i = 0; i < m->step->nuts.n; i++)
        if (ex_reads(ex_map(m->step->nuts.factor[i]->log_density, without_waves, v), v)) return false;
    return true;
}

static Expr *turned_back(Expr *q)
{
    return ex_sub(q, ex_mul2(ex_num(2 * M_PI), ex_call1("floor", ex_mul2(ex_num(0.5 / M_PI), ex_add2(q, ex_num(M_PI))))));
}

// A coordinate stays as it is for some turns, so that a mode near an end is one mode for what warm-up learns, and spread that is none does not grow.
static Expr *same_turn(Expr *q, Expr *x)
{
    Expr *stays = ex_call2("&&", ex_call2("==", turned_back(q), x), ex_call2("<=", ex_call1("abs", q), ex_num(3 * M_PI)));
    return ex_call3("if_else", stays, q, x);
}

static bool is_own(const Expr *ref, const Plates *plates);

static Expr *finite_end(Expr *end) { return end->kind == EX_NUM ? ex_num(0) : end; }

static bool end_reads(const Bound *b, const Var *v) { return ex_reads(b->term->args[1], v) || ex_reads(b->term->args[2], v); }

// ---- effects ----
//
// u with a prior of centre m and spread s, which move with it, has the coordinate q of
//
//   u = m + s^c (q - (1 - c) m)         log |du/dq| = c log s
//
// c = 0 leaves it as it is, with c = 1 it is standardised; what lies between suits effects of which the data tell something, but not all (Papaspiliopoulos, Roberts and Skold 2007, Statistical Science 22; Gorinova, Moore and
// Hoffman 2020, ICML). c is kept for each element, and found in warm-up (nuts.h). Where m, s and a density g of u are given, with l = log g:
//
//   dl/dq = s^c dl/du      dl/dm: (1 - (1 - c) s^c) dl/du more      d(l + log |du/dq|)/ds: c ((u - m) dl/du + 1)/s more
//
// Vectors with a joint normal prior, v[i, ...] ~ multi_normal(m, S), have the factor of S for a spread, which they share: by it each element has a centre and a spread given those before it (whitened.h).

static bool reads_block(const Moved *m, const Expr *e);
static Node *enter_loop(Lower *p, Sharing how, Index *i);
static bool surely_symmetric(Moved *m, Expr *matrix);
static void put_matrix(Moved *m, Var *into, Expr *matrix, bool whole_matrix);
static void put_sums(Moved *m, const char *stem, int n, const Factor *statement, const Site *const *site, const Series *but);

// Centre and spread by algebra: two of the distribution's arguments.
static bool find_scaled(const Moved *m, Prior *r)
{
    const Factor *f = r->f;
    int centre, spread;
    if (!centre_and_spread((Graph *)m->p->g, f->dist, f->nargs, f->args, &centre, &spread)) return false;
    r->centre = f->args[centre];
    r->spread = f->args[spread];
    return true;
}

// What an element's coordinate is made of must be known, by derivatives too, before the element is.
static bool is_simple(const Moved *m, const Factor *f, Expr *e)
{
    const Loops l = loops_of(&f->plates);
    for (int i = m->step->nblock; i < m->moving.n; i++)
        if (ex_reads(e, m->moving.var[i])) return false;
    Factor of = *f;
    Derivative *terms;
    const char *why;
    of.log_density = e;
    return !needs_own_array(e, &l) && derivatives(m->p->g, &of, m->step->block, m->step->nblock, &terms, &why);
}

// Each instance has an element for its own.
static bool is_of_one(const Expr *ref, const Plates *plates)
{
    int indices = 0;
    for (int k = 0; k < ref->nargs; k++)
        for (int i = 0; i < plates->n; i++) {
            if (!ex_mentions_index(ref->args[k], plates->index[i])) continue;
            if (ref->args[k]->kind != EX_INDEX) return false;
            indices++;
        }
    return indices == plates->n;
}

// Elements of v that a centre reads: they come before the prior's own along one of its indices, by a number.
typedef struct Before { const Var *v; const Expr *element; int along; bool ok; } Before;

static Look test_before(const Expr *e, void *with)
{
    Before *b = with;
    if (e->kind != EX_REF || e->var != b->v) return LOOK;
    int apart = 0;
    b->ok &= e->nargs == b->element->nargs;
    for (int k = 0; k < e->nargs && b->ok; k++) {
        const Expr *back = ex_sub(b->element->args[k], e->args[k]);
        if (ex_is_num(back, 0)) continue;
        b->ok &= back->kind == EX_NUM && back->number >= 1 && (b->along < 0 || b->along == k);
        b->along = k;
        apart++;
    }
    b->ok &= apart == 1;
    return b->ok ? SKIP : FOUND;
}

// Whether the elements that its centre reads come before: then it can be computed element by element, and so can its derivatives.
static bool find_recursion(const Moved *m, const Var *v, Prior *r)
{
    if (ex_reads(r->spread, v)) return false;
    if (!ex_reads(r->centre, v)) return true;
    Before b = {v, r->element, -1, true};
    ex_find(r->centre, test_before, &b);
    if (!b.ok || b.along < 0 || r->element->args[b.along]->kind != EX_INDEX || r->f->plates.guard) return false;
    r->along = r->element->args[b.along]->index;
    for (int k = 0; k < r->f->plates.n; k++)             // other indices do not change where it begins and ends
        if (r->f->plates.index[k] != r->along && (ex_mentions_index(r->along->lo, r->f->plates.index[k]) || ex_mentions_index(r->along->hi, r->f->plates.index[k]))) return false;
    Factor f = *r->f;
    Derivative *terms;
    const char *why;
    f.log_density = r->centre;
    if (!derivatives(m->p->g, &f, m->step->block, m->step->nblock, &terms, &why)) return false;
    for (const Derivative *d = terms; d; d = d->next)
        if (d->ref->var == v && d->loops.n != f.plates.n) return false;
    return true;
}

static const Prior *recursion_of(const Prior *r)
{
    while (r && !r->along) r = r->next;
    return r;
}

// ---- vectors ----

static bool reads_index_of(const Expr *e, const Plates *plates)
{
    for (int k = 0; k < plates->n; k++)
        if (ex_mentions_index(e, plates->index[k])) return true;
    return false;
}

static Expr *triangle_at(const Factor *f, Expr *matrix) { return ex_at(matrix, 2, (Expr *[]){ex_index(f->plates.index[0]), ex_index(f->plates.index[1])}); }

static bool has_derivatives(const Moved *m, const Factor *f, Expr *e)
{
    Factor of = *f;
    Derivative *terms;
    const char *why;
    of.log_density = e;
    return derivatives(m->p->g, &of, m->step->block, m->step->nblock, &terms, &why);
}

// What the factor of a covariance, or of a precision, is made of: c * A has sqrt(c) times the factor of A, which need not move.
static bool find_root(const Moved *m, const Factor *prior, Root *r)
{
    Expr *L = joint_root((Graph *)m->p->g, prior, &r->precision), *c = ex_num(1), *A;
    if (!L || ex_rank(L) != 2 || L->loose || reads_index_of(L, &prior->plates)) return false;
    r->moves = reads_block(m, L);
    if (L->kind != EX_CALL || L->fn != FN_cholesky_decompose) r->elements = L;
    else if (!ex_scalar_multiple(L->args[0], &c, &A)) A = L->args[0];
    if (r->elements) A = L;
    const bool fixed = !r->elements && !reads_block(m, A);
    if (fixed) r->fixed = A;
    else if (!r->elements) r->matrix = L->args[0];
    if (fixed) r->elements = ex_pow(c, 0.5);
    for (int i = m->step->nblock; i < m->moving.n; i++)
        if (ex_reads(L, m->moving.var[i])) return false;
    if (!r->moves || fixed) return !r->moves || has_derivatives(m, prior, r->elements);
    Expr *moving = r->matrix ? r->matrix : r->elements;
    if (r->matrix ? !stands_alone(L) : !stands_alone(ex_call1("cholesky_decompose", L))) return false;
    const Factor f = matrix_factor(m->p->g, moving, prior->value->var, m->step->span);
    return has_derivatives(m, &f, triangle_at(&f, moving));
}

// The prior of a variable that is a vector, or vectors, for each element: a centre, and the whole of the matrix for a spread. NULL: it has none.
static Prior *vectors_of(const Moved *m, Var *v, Root **root)
{
    Graph *g = (Graph *)m->p->g;
    const Factor *f = joint_prior(g, v, false);
    if (!f || v->exists || v->holes || f->plates.n == MAX_PLATES) return NULL;
    bool other = true, there = false;
    for (int i = 0; i < m->step->nuts.n; i++) {
        const Factor *o = m->step->nuts.factor[i];
        there |= o == f;
        other &= o == f || !o->value || o->value->kind != EX_REF || o->value->var != v;
    }
    Root r = {0};
    if (!there || !other || !find_root(m, f, &r)) return NULL;
    Factor *each = arena_copy(g->arena, f, sizeof *f);
    Index *k = index_new(intern("k"), ex_num(1), v->dim[v->rank - 1]), **index = NEW_N(g->arena, Index *, f->plates.n + 1);
    Expr *at[MAX_RANK], *mean = elaborate_rule(g, f->dist->mean, f->dist->nparams, f->dist->params, f->args);
    for (int i = 0; i < f->plates.n; i++) {
        index[i] = f->plates.index[i];
        at[i] = f->value->args[i];
    }
    index[f->plates.n] = k;
    at[v->rank - 1] = ex_index(k);
    each->plates = (Plates){.n = f->plates.n + 1, .index = index};
    Prior p = {.f = each, .element = ex_ref(v, v->rank, at), .centre = ex_at(mean, 1, (Expr *[]){ex_index(k)}), .spread = r.matrix ? r.matrix : r.elements};
    if (!is_simple(m, each, p.centre)) return NULL;
    *root = arena_copy(g->arena, &r, sizeof r);
    return arena_copy(g->arena, &p, sizeof p);
}

// The priors of a variable's elements; NULL: some of them has none that serves, or they need none.
static Prior *priors_of(const Moved *m, Var *v, Root **root)
{
    Prior *first = NULL, **last = &first;
    bool moves = false;
    *root = NULL;
    if (v->base == BASE_INT || tied_of(m, v)->slope || isfinite(v->lower_number) || isfinite(v->upper_number) || bounds_of(m, v)) return NULL;
    if (v->rank && (first = vectors_of(m, v, root))) return first;
    for (int i = 0; i < m->step->nuts.n; i++) {
        const Factor *f = m->step->nuts.factor[i];
        if (!f->value || f->value->kind != EX_REF || f->value->var != v) continue;
        Prior r = {.f = f, .element = f->value};
        if (!f->dist || f->truncated || f->ncomponents || !is_of_one(f->value, &f->plates) || !find_scaled(m, &r)) return NULL;
        if (!find_recursion(m, v, &r) || (r.along && recursion_of(first)) || !is_simple(m, f, ex_add2(r.centre, r.spread))) return NULL;
        moves |= reads_block(m, r.centre) || reads_block(m, r.spread);
        *last = arena_copy(m->p->g->arena, &r, sizeof r);
        last = &(*last)->next;
    }
    return moves ? first : NULL;
}

static bool prior_reads(const Prior *r, const Var *v)
{
    for (; r; r = r->next)
        if (ex_reads(r->centre, v) || ex_reads(r->spread, v)) return true;
    return false;
}

// Ends that move with the block: whose they are must be clear, and they must be there before the variable is. So must centres and spreads.
static void order_ends(Moved *m)
{
    const int n = m->step->nblock;
    bool *placed = NEW_N(m->p->g->arena, bool, n + 1);
    for (int done = 0, before = -1; done < n && done != before;) {
        before = done;
        for (int i = 0; i < n; i++) {
            if (placed[i]) continue;
            bool ready = true;
            for (const Bound *b = bounds_of(m, m->step->block[i]); b; b = b->next)
                for (int k = 0; k < n; k++) ready &= !end_reads(b, m->step->block[k]) || placed[k];
            for (int k = 0; k < n; k++) ready &= k == i || !prior_reads(m->centring[i].priors, m->step->block[k]) || placed[k];
            if (!ready) continue;
            m->order[done++] = i;
            placed[i] = true;
        }
        if (done != before) continue;
        bool centred = false;
        for (int i = 0; i < n; i++)
            if (!placed[i] && m->centring[i].priors) {
                m->centring[i].priors = NULL;
                centred = true;
            }
        if (centred) {
            before = -1;
            continue;
        }
        for (int i = 0; i < n; i++)              // in a circle
            if (!placed[i]) {
                m->ends[i].unknown = true;
                m->order[done++] = i;
                placed[i] = true;
            }
    }
    for (int i = 0; i < n; i++)
        for (const Bound *b = bounds_of(m, m->step->block[i]); b; b = b->next) {
            bool moves = false;
            for (int k = 0; k < n; k++) moves |= end_reads(b, m->step->block[k]);
            m->ends[i].move |= moves;
            Factor ends = *b->f;
            Derivative *terms;
            const char *why;
            ends.log_density = ex_add2(finite_end(b->term->args[1]), finite_end(b->term->args[2]));
            m->ends[i].unknown |= moves && !derivatives(m->p->g, &ends, m->step->block, n, &terms, &why);
            m->ends[i].unknown |= moves && (b->term->args[0]->nargs ? !is_own(b->term->args[0], &b->f->plates) : b->f->plates.n > 0);
        }
}

// x = exp(q), where the variables have been placed: log x is the coordinate.
static bool is_exponential(const Moved *m, const Var *v)
{
    const Ends *ends = &m->ends[at_block(m, v)];
    return !tied_of(m, v)->slope && !ends->array[0] && ends->number[0] == 0 && isinf(ends->number[1]);
}

typedef struct Calls { const Moved *m; Expr **at; int n, size; } Calls;

static Look collect_logs(const Expr *e, void *with)
{
    Calls *c = with;
    if (e->kind != EX_CALL || e->fn != FN_log || e->args[0]->kind != EX_REF) return LOOK;
    const Var *v = e->args[0]->var;
    bool moves = false;
    for (int i = 0; i < c->m->step->nblock; i++) moves |= c->m->step->block[i] == v;
    if (!moves || !is_exponential(c->m, v)) return LOOK;
    for (int i = 0; i < c->n; i++)
        if (c->at[i] == e) return LOOK;
    ROOM(c->m->p->g->arena, c->at, c->n, c->size);
    c->at[c->n++] = (Expr *)e;
    return LOOK;
}

static Expr *with_coordinates(const Moved *m, Expr *e)
{
    Calls c = {.m = m};
    ex_find(e, collect_logs, &c);
    for (int i = 0; i < c.n; i++) e = ex_replace(e, c.at[i], of_ref(m, m->position, c.at[i]->args[0]));
    return e;
}

// The ends of all elements of a variable, into their arrays.
static void put_ends_of(Moved *m, int i)
{
    Lower *p = m->p;
    const Ends *ends = &m->ends[i];
    Loops l;
    Expr *element = whole(m->step->block[i], &l);
    l.guard = NULL;
    Node *n = each_element(m, element, &l);
    for (int side = 0; side < 2; side++) put_update(p, UPDATE_SET, place_element(end_of(ends, side, element)), ex_num(ends->number[side]));
    leave(p, n);
    for (const Bound *b = bounds_of(m, m->step->block[i]); b; b = b->next) {
        const Loops over = loops_of(&b->f->plates);
        for (int side = 0; side < 2; side++) {
            Expr *end = b->term->args[1 + side];
            if (end->kind == EX_NUM && isinf(end->number)) continue;
            put_barrier(p);
            Node *each = over.n ? enter_nest(p, NODE_NEST, &over, b->term->args[0]->nargs, b->term->args[0]->args, NULL) : enter(p, NODE_LANE);
            put_update(p, side ? UPDATE_MIN : UPDATE_MAX, place_element(end_of(ends, side, b->term->args[0])), end);
            leave(p, each);
        }
    }
    put_barrier(p);
}

static void make_root(Moved *m, Root *r, const Var *v)
{
    Lower *p = m->p;
    Expr *const n = v->dim[v->rank - 1], *const dim[] = {n, n};
    r->array = work_array(p, ROLE_BLOCK, words(p, "root_%s", v->name), 2, dim);
    if (r->fixed) r->of_fixed = work_array(p, ROLE_BLOCK, words(p, "fixed_root_%s", v->name), 2, dim);
    if (r->moves) r->slope = work_array(p, ROLE_BLOCK, words(p, "slope_root_%s", v->name), 2, dim);
    r->apart = work_array(p, ROLE_BLOCK, words(p, "apart_%s", v->name), v->rank, v->dim);
    r->left = work_array(p, ROLE_BLOCK, words(p, "left_%s", v->name), v->rank, v->dim);
    r->right = work_array(p, ROLE_BLOCK, words(p, r->precision ? "right_%s" : "noise_%s", v->name), v->rank, v->dim);
    r->noise = r->precision ? NULL : r->right;
    r->pivot = work_array(p, ROLE_BLOCK, words(p, "pivot_%s", v->name), v->rank, v->dim);
}

// Element [j, k] of the factor, as an expression.
static Expr *element_of_root(const Root *r, Expr *const *at) { return r->fixed ? ex_mul2(r->elements, ex_ref(r->of_fixed, 2, at)) : ex_at(r->elements, 2, at); }

static void factor_in_place(Moved *m, Var *array, Expr *matrix)
{
    const bool unsure = !surely_symmetric(m, matrix);
    put_matrix(m, array, matrix, unsure);
    Node *lane = enter(m->p, NODE_LANE), *n = put(m->p, NODE_FACTOR);
    n->factor.matrix = array;
    n->factor.unsure = unsure;
    leave(m->p, lane);
}

// The factor, of what has been placed.
static void put_root(Moved *m, const Root *r)
{
    Lower *p = m->p;
    put_barrier(p);
    if (r->matrix) {
        factor_in_place(m, r->array, r->matrix);
        return;
    }
    const Factor f = matrix_factor(p->g, ex_ref(r->array, 0, NULL), r->array, m->step->span);
    const Loops l = loops_of(&f.plates);
    Expr *at[] = {ex_index(l.index[0]), ex_index(l.index[1])};
    Node *n = enter_nest(p, NODE_NEST, &l, 2, arena_copy(p->g->arena, at, sizeof at), NULL);
    put_update(p, UPDATE_SET, place_element(ex_ref(r->array, 2, at)), element_of_root(r, at));
    leave(p, n);
    put_barrier(p);
}

static void put_centrings(Moved *m)
{
    Lower *p = m->p;
    for (int i = 0; i < m->step->nblock; i++) {
        Centring *c = &m->centring[i];
        const Var *v = m->step->block[i];
        if (!c->priors) continue;
        if (!m->shares) {
            m->shares = work_array(p, ROLE_TUNING, words(p, "standardised_%s", m->stem), 1, &m->size);
            m->next_shares = work_array(p, ROLE_TUNING, words(p, "to_standardise_%s", m->stem), 1, &m->size);
        }
        c->centre = work_array(p, ROLE_BLOCK, words(p, "centre_%s", v->name), v->rank, v->dim);
        if (c->root) {
            c->slope[0] = work_array(p, ROLE_BLOCK, words(p, "slope_centre_%s", v->name), v->rank, v->dim);
            make_root(m, c->root, v);
            continue;
        }
        c->spread = work_array(p, ROLE_BLOCK, words(p, "spread_%s", v->name), v->rank, v->dim);
        c->scale = work_array(p, ROLE_BLOCK, words(p, "scale_%s", v->name), v->rank, v->dim);
        c->slope[0] = work_array(p, ROLE_BLOCK, words(p, "slope_centre_%s", v->name), v->rank, v->dim);
        c->slope[1] = work_array(p, ROLE_BLOCK, words(p, "slope_spread_%s", v->name), v->rank, v->dim);
    }
}

static Expr *like(Var *array, const Expr *element) { return ex_ref(array, element->nargs, element->args); }

static Expr *is_short(const Prior *r) { return ex_call2("<=", ex_sub(r->along->hi, r->along->lo), ex_call("longest_recursion", 0, NULL)); }

static Expr *share_if_short(const Moved *m, const Expr *element) { return of_ref(m, m->shares, element); }

// How far an element is standardised. A recursion is one lane's work: one that is too long for that stays as it is written.
static Expr *share_of(const Moved *m, const Expr *element)
{
    const Prior *r = recursion_of(m->centring[at_block(m, element->var)].priors);
    Expr *share = of_ref(m, m->shares, element);
    return r ? ex_call3("if_else", is_short(r), share, ex_num(0)) : share;
}

// The prior of all elements there are?
static bool is_of_all(const Prior *r, const Var *v)
{
    bool all = !r->next && !r->f->plates.guard;
    for (int k = 0; k < v->rank && all; k++) all = r->element->args[k]->kind == EX_INDEX && ex_is_num(r->element->args[k]->index->lo, 1) && r->element->args[k]->index->hi == v->dim[k];
    return all;
}

// Centres, spreads and scales of all elements of a variable; of a recursion the centres as well, if its elements are known.
static void put_centring(Moved *m, int i, bool known)
{
    Lower *p = m->p;
    const Centring *c = &m->centring[i];
    const Var *v = m->step->block[i];
    Loops l;
    Expr *x = whole(v, &l);
    l.guard = NULL;
    put_barrier(p);
    if (!is_of_all(c->priors, v)) {
        Node *n = each_element(m, x, &l);
        put_update(p, UPDATE_SET, place_element(like(c->centre, x)), ex_num(0));
        if (!c->root) put_update(p, UPDATE_SET, place_element(like(c->spread, x)), ex_num(1));
        leave(p, n);
    }
    for (const Prior *r = c->priors; r; r = r->next) {
        const Loops over = loops_of(&r->f->plates);
        if (r != c->priors || !is_of_all(r, v)) put_barrier(p);
        Node *n = enter_nest(p, NODE_NEST, &over, r->element->nargs, r->element->args, NULL);
        if (!r->along || known) put_update(p, UPDATE_SET, place_element(like(c->centre, r->element)), r->centre);
        if (!c->root) put_update(p, UPDATE_SET, place_element(like(c->spread, r->element)), r->spread);
        leave(p, n);
    }
    put_barrier(p);
    if (c->root) {
        put_root(m, c->root);
        return;
    }
    Node *n = each_element(m, x, &l);
    put_update(p, UPDATE_SET, place_element(like(c->scale, x)), ex_call2("standard_scale", share_of(m, x), like(c->spread, x)));
    leave(p, n);
}

// The first element of an array over the elements of v, or over the coordinates, of the vector that loops over all but the last subscript are at.
static Expr *first_of_vector(const Moved *m, Var *array, const Var *v)
{
    Expr *at[MAX_RANK];
    for (int k = 0; k < v->rank; k++) at[k] = k < v->rank - 1 ? ex_index(v->own[k]) : ex_num(1);
    return array == m->position || array == m->gradient || array == m->shares ? coordinate(m, array, v, at) : ex_ref(array, v->rank, at);
}

static void put_whitened(Moved *m, int i, Transformed part)
{
    const Centring *c = &m->centring[i];
    const Root *r = c->root;
    const Var *v = m->step->block[i];
    Loops l = {.n = v->rank - 1};
    for (int k = 0; k < l.n; k++) l.index[k] = v->own[k];
    Node *nest = l.n ? enter_nest(m->p, NODE_NEST, &l, 0, NULL, NULL) : enter(m->p, NODE_LANE), *n = put(m->p, NODE_WHITENED);
    const bool chain = part == TRANSFORM_CHAIN;
    n->whitened.part = part;
    n->whitened.precision = r->precision;
    n->whitened.root = r->array;
    n->whitened.size = v->dim[v->rank - 1];
    n->whitened.shares = first_of_vector(m, m->shares, v);
    n->whitened.mean = chain ? NULL : first_of_vector(m, c->centre, v);
    n->whitened.from = part == TRANSFORM_TO ? first_of_vector(m, r->left, v) : NULL;
    n->whitened.q = chain ? NULL : first_of_vector(m, m->position, v);
    n->whitened.apart = chain && !r->precision ? NULL : first_of_vector(m, r->apart, v);
    n->whitened.noise = r->noise ? first_of_vector(m, r->noise, v) : NULL;
    n->whitened.slope = chain ? first_of_vector(m, m->gradient, v) : NULL;
    n->whitened.by_mean = chain ? first_of_vector(m, c->slope[0], v) : NULL;
    n->whitened.left = chain ? first_of_vector(m, r->left, v) : NULL;
    n->whitened.right = chain && r->precision ? first_of_vector(m, r->right, v) : NULL;
    n->whitened.pivot = chain ? first_of_vector(m, r->pivot, v) : NULL;
    leave(m->p, nest);
    put_barrier(m->p);
}

// The element at a coordinate.
static Expr *at_coordinate(const Moved *m, const Centring *c, const Expr *x, Expr *share)
{
    if (c->root) return ex_add2(like(c->centre, x), like(c->root->apart, x));
    return ex_call("from_standard", 4, (Expr *[]){of_ref(m, m->position, x), share, like(c->centre, x), like(c->scale, x)});
}

// Its coordinate: the one that it has, if that is where it stands.
static Expr *coordinate_at(const Moved *m, const Centring *c, Expr *x)
{
    Expr *fresh = ex_call("to_standard", 4, (Expr *[]){x, share_of(m, x), like(c->centre, x), like(c->scale, x)});
    return ex_call3("if_else", ex_call2("==", at_coordinate(m, c, x, share_of(m, x)), x), of_ref(m, m->position, x), fresh);
}

// The loops of a recursion's prior: chains side by side, each in order, or from the last element to the first with `t` for its index.
static Node *enter_recursion(Moved *m, const Prior *r, Index *t)
{
    Lower *p = m->p;
    Loops beside = {0};
    for (int k = 0; k < r->f->plates.n; k++)
        if (r->f->plates.index[k] != r->along) beside.index[beside.n++] = r->f->plates.index[k];
    put_barrier(p);
    Node *only = enter(p, NODE_IF);
    only->test.condition = is_short(r);
    if (beside.n) enter_nest(p, NODE_NEST, &beside, 0, NULL, NULL);
    else enter(p, NODE_LANE);
    enter_loop(p, SHARE_SERIAL, t);
    return only;
}

// Each element from its coordinate and those before it.
static void put_recursion(Moved *m, int i)
{
    const Centring *c = &m->centring[i];
    const Prior *r = recursion_of(c->priors);
    Node *n = enter_recursion(m, r, r->along);
    put_update(m->p, UPDATE_SET, place_element(like(c->centre, r->element)), r->centre);
    put_update(m->p, UPDATE_SET, place_element(r->element), at_coordinate(m, c, r->element, share_if_short(m, r->element)));
    leave(m->p, n);
}

// Each element's derivative goes on to those before it, by way of its centre: it is complete when those that come later have had their turn.
static void put_recursion_slopes(Moved *m, int i)
{
    const Centring *c = &m->centring[i];
    const Prior *r = recursion_of(c->priors);
    Factor f = *r->f;
    Derivative *terms;
    const char *why;
    f.log_density = r->centre;
    if (!derivatives(m->p->g, &f, m->step->block, m->step->nblock, &terms, &why)) abort();        // find_recursion has asked
    Index *back = index_new(r->along->name, r->along->lo, r->along->hi);
    Expr *from_last = ex_sub(ex_add2(back->lo, back->hi), ex_index(back)), *slope = ex_call3("standard_by_centre", share_if_short(m, r->element), like(c->scale, r->element), of_ref(m, m->gradient, r->element));
    Node *n = enter_recursion(m, r, back);
    for (const Derivative *d = terms; d; d = d->next) {
        if (d->ref->var != m->step->block[i]) continue;
        Expr *value = ex_mul(3, (Expr *[]){slope, d->weight, d->rest});
        put_update(m->p, UPDATE_ADD, place_element(ex_replace_index(of_ref(m, m->gradient, d->ref), r->along, from_last)), ex_replace_index(value, r->along, from_last));
    }
    leave(m->p, n);
}

// Factors that do not move with the block are made once a sweep.
static void put_fixed_roots(Moved *m)
{
    Lower *p = m->p;
    for (int i = 0; i < m->step->nblock; i++) {
        const Root *r = m->centring[i].priors ? m->centring[i].root : NULL;
        if (!r || !r->fixed) continue;
        note(p, "The Cholesky factor of the matrix in the prior of %s, up to its scale", m->step->block[i]->name);
        Kernel *k = open_kernel(p, KERNEL_ONCE, words(p, "make_%s", r->of_fixed->name), "wide");
        factor_in_place(m, r->of_fixed, r->fixed);
        close_kernel(p);
        launch(p, LAUNCH_ONCE, k);
    }
}

// Ends that do not move with the block are found once a sweep.
static void put_ends(Moved *m)
{
    Lower *p = m->p;
    bool any = false;
    order_ends(m);
    put_centrings(m);
    for (int i = 0; i < m->step->nblock; i++) {
        Ends *ends = &m->ends[i];
        const Var *v = m->step->block[i];
        if (ends->unknown || !bounds_of(m, v)) continue;
        any |= !ends->move;
        for (int side = 0; side < 2; side++) {
            ends->array[side] = work_array(p, ROLE_BLOCK, words(p, "%s_%s", side ? "upper" : "lower", v->name), v->rank, v->dim);
            if (ends->move) ends->slope[side] = work_array(p, ROLE_BLOCK, words(p, "slope_%s_%s", side ? "upper" : "lower", v->name), v->rank, v->dim);
        }
    }
    put_fixed_roots(m);
    if (!any) return;
    note(p, "Between which ends the elements of %s lie", m->step->description->subject);
    Kernel *k = open_kernel(p, KERNEL_ONCE, words(p, "ends_%s", m->stem), "wide");
    for (int i = 0; i < m->step->nblock; i++)
        if (m->ends[i].array[0] && !m->ends[i].move) put_ends_of(m, i);
    close_kernel(p);
    launch(p, LAUNCH_ONCE, k);
}

// ---- elements that are constrained together ----

static Tied tied_new(Lower *p, const Var *v)
{
    const int rank = constraint_rank(v);
    if (!rank) return (Tied){0};
    Expr *K = v->dim[v->rank - 1], *half = ex_num(0.5), *dim[MAX_RANK];
    Tied t = {.nbatch = v->rank - rank};
    switch (v->constraint) {
    case CONSTRAINT_SIMPLEX: t.length = ex_sub(K, ex_num(1)); break;
    case CONSTRAINT_SUM_TO_ZERO: t.length = K->kind == EX_NUM ? ex_sub(K, ex_num(1)) : ex_call2("fmax", ex_sub(K, ex_num(1)), ex_num(0)); break;
    case CONSTRAINT_CORRELATION: case CONSTRAINT_CHOLESKY_CORR: t.length = ex_mul2(half, ex_sub(ex_pow(K, 2), K)); break;
    case CONSTRAINT_COVARIANCE: case CONSTRAINT_CHOLESKY_COV: t.length = ex_mul2(half, ex_add2(ex_pow(K, 2), K)); break;
    case CONSTRAINT_NONE: case CONSTRAINT_ORDERED: case CONSTRAINT_POSITIVE_ORDERED: case CONSTRAINT_UNIT_VECTOR: t.length = K; break;
    }
    for (int k = 0; k < t.nbatch; k++) dim[k] = v->dim[k];
    dim[t.nbatch] = ex_mul2(ex_num(2), ex_pow(K, rank));
    t.slope = work_array(p, ROLE_BLOCK, words(p, "slope_%s", v->name), v->rank, v->dim);
    t.log_slope = work_array(p, ROLE_BLOCK, words(p, "log_slope_%s", v->name), t.nbatch, dim);
    t.work = work_array(p, ROLE_BLOCK, words(p, "work_%s", v->name), t.nbatch + 1, dim);
    return t;
}

// All values of v that exist, as loops. All elements of a value have a statement, or none (coverage.c).
static Loops values_of(const Tied *t, const Var *v)
{
    Loops l = {.n = t->nbatch, .guard = v->exists};
    for (int k = 0; k < t->nbatch; k++) l.index[k] = v->own[k];
    for (int k = t->nbatch; k < v->rank && l.guard; k++) l.guard = ex_replace_index(l.guard, v->own[k], ex_num(1));
    if (l.guard && ex_is_num(l.guard, 1)) l.guard = NULL;
    return l;
}

// The first element of the value that the loops are at.
static Expr *first_element(const Tied *t, const Var *v, Var *array)
{
    Expr *at[MAX_RANK];
    for (int k = 0; k < array->rank; k++) at[k] = k < t->nbatch ? ex_index(v->own[k]) : ex_num(1);
    return ex_ref(array, array->rank, at);
}

// Its coordinate c, from 1.
static Expr *coordinate_of_value(const Moved *m, const Var *v, Var *array, Expr *c)
{
    const Tied *t = tied_of(m, v);
    Expr *before = ex_num(0);                    // values before it
    for (int k = 0; k < t->nbatch; k++) before = ex_add2(k ? ex_mul2(before, v->dim[k]) : before, ex_sub(ex_index(v->own[k]), ex_num(1)));
    Expr *sub = ex_add(3, (Expr *[]){m->offset[at_block(m, v)], ex_mul2(before, t->length), c});
    return ex_ref(array, 1, &sub);
}

static void put_transform(Moved *m, Var *v, Transformed part)
{
    const Tied *t = tied_of(m, v);
    const Loops l = values_of(t, v);
    Node *nest = enter_nest(m->p, NODE_NEST, &l, 0, NULL, NULL), *n = put(m->p, NODE_TRANSFORM);
    n->transform.part = part;
    n->transform.var = v;
    n->transform.y = coordinate_of_value(m, v, m->position, ex_num(1));
    n->transform.x = first_element(t, v, v);
    if (part != TRANSFORM_FROM) n->transform.work = first_element(t, v, t->work);
    if (part == TRANSFORM_CHAIN) {
        n->transform.slope = first_element(t, v, t->slope);
        n->transform.out = coordinate_of_value(m, v, m->gradient, ex_num(1));
        n->transform.log_slope = first_element(t, v, t->log_slope);
    }
    leave(m->p, nest);
}

// By the chain rule, value by value. Coordinates of values that do not exist are independent and standard normal.
static void put_tied_chain(Moved *m, Var *v)
{
    Lower *p = m->p;
    const Tied *t = tied_of(m, v);
    put_transform(m, v, TRANSFORM_CHAIN);
    Loops l = values_of(t, v);
    Node *n = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
    n->nest.op = UPDATE_ADD;
    put_update(p, UPDATE_ADD, place_local(m->lp), first_element(t, v, t->log_slope));
    leave(p, n);
    if (!l.guard) return;
    l.guard = ex_call1("!", l.guard);
    Index *c = l.index[l.n++] = index_new(intern("c"), ex_num(1), t->length);
    Expr *q = coordinate_of_value(m, v, m->position, ex_index(c));
    n = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
    n->nest.op = UPDATE_ADD;
    put_update(p, UPDATE_ADD, place_local(m->lp), ex_mul2(ex_num(-0.5), ex_pow(q, 2)));
    put_update(p, UPDATE_SET, place_element(coordinate_of_value(m, v, m->gradient, ex_index(c))), ex_neg(q));
    leave(p, n);
}

enum { SHORT_VECTOR = 8, DECIDED = 2 };

// Whether an element of the vector is told by those before it to a thirtieth of its sd.
static Expr *is_told(const Root *r, const Var *v)
{
    Index *j = index_new(intern("j"), ex_num(1), v->dim[v->rank - 1]), *i = index_new(intern("i"), ex_num(1), ex_index(j));
    Expr *at[] = {ex_index(j), ex_index(i)}, *variance = ex_reduce("sum", i, i->lo, i->hi, ex_pow(ex_ref(r->array, 2, at), 2));
    at[1] = at[0];
    return ex_call2("<", ex_num(0), ex_reduce("sum", j, j->lo, j->hi, ex_call2("<", ex_pow(ex_ref(r->array, 2, at), 2), ex_mul2(ex_num(1e-3), variance))));
}

// A long vector of which the data leave most open is white noise as a whole, if one of its elements is nearly told by those before it: how nearly changes by orders of magnitude with what the covariance is made of.
// That is decided when shares have changed, and kept: it may not follow the state.
static void put_share_of_vectors(Moved *m, int b)
{
    Lower *p = m->p;
    Loops l;
    const Var *v = m->step->block[b];
    const Root *r = m->centring[b].root;
    Expr *const n = v->dim[v->rank - 1], *x = whole(v, &l), *at[MAX_RANK], *next = of_ref(m, m->next_shares, x), *share = of_ref(m, m->shares, x);
    Index *k = index_new(intern("j"), ex_num(1), n);
    memcpy(at, x->args, sizeof *at * (size_t)v->rank);
    at[v->rank - 1] = ex_index(k);
    Expr *all = ex_call2("&&", ex_call2("<", ex_num(SHORT_VECTOR), n), ex_call2("<", ex_mul2(ex_num(0.5), n), ex_reduce("sum", k, k->lo, k->hi, coordinate(m, m->next_shares, v, at))));
    if (!r->precision) all = ex_call2("&&", all, is_told(r, v));
    Node *nest = each_element(m, x, &l);
    put_update(p, UPDATE_SET, place_element(share), ex_call3("if_else", ex_call2("<=", ex_num(DECIDED), next), ex_sub(next, ex_num(DECIDED)), ex_call3("if_else", all, ex_num(1), next)));
    leave(p, nest);
    put_barrier(p);
    nest = each_element(m, x, &l);
    put_update(p, UPDATE_SET, place_element(next), ex_add2(share, ex_num(DECIDED)));
    leave(p, nest);
    put_barrier(p);
}

static void put_vectors_to(Moved *m, int i)
{
    Lower *p = m->p;
    Loops l;
    Expr *x = whole(m->step->block[i], &l);
    Node *n = each_element(m, x, &l);
    put_update(p, UPDATE_SET, place_element(like(m->centring[i].root->left, x)), x);
    leave(p, n);
    put_barrier(p);
    put_whitened(m, i, TRANSFORM_TO);
}

// From the variables to coordinates, where these are not those that the last move has left.
static void put_enter(Moved *m)
{
    Lower *p = m->p;
    note(p, "Coordinates without bounds of %s", m->step->description->subject);
    Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, "enter_%s", m->stem), "wide");
    k->places = true;
    put_offsets(m);
    if (m->shares) {                             // those that the last move has found to be better
        Index *e = index_new(intern("e"), ex_num(1), m->size);
        const Loops all = {.n = 1, .index = {e}};
        Expr **at = NEW_N(p->g->arena, Expr *, 1);
        at[0] = ex_index(e);
        Node *n = enter_nest(p, NODE_NEST, &all, 1, at, NULL);
        put_update(p, UPDATE_SET, place_element(ex_ref(m->shares, 1, at)), ex_ref(m->next_shares, 1, at));
        leave(p, n);
        put_barrier(p);
    }
    for (int i = 0; i < m->step->nblock; i++) {
        Loops l;
        const Ends *ends = &m->ends[i];
        if (m->tied[i].slope) {
            put_transform(m, m->step->block[i], TRANSFORM_TO);
            continue;
        }
        if (ends->move && !ends->unknown) put_ends_of(m, i);
        if (m->centring[i].priors) put_centring(m, i, true);
        if (m->centring[i].priors && m->centring[i].root) {
            put_share_of_vectors(m, i);
            put_vectors_to(m, i);
            continue;
        }
        Expr *x = whole(m->step->block[i], &l), *q = of_ref(m, m->position, x);
        Expr *value = m->centring[i].priors ? coordinate_at(m, &m->centring[i], x) : ends->turns ? same_turn(q, x) : is_free(ends) ? x : keeps_logs(ends, x) ? transform(ends, INVERSE, x, x) : ex_call3("if_else", ex_call2("==", transform(ends, VALUE, q, x), x), q, transform(ends, INVERSE, x, x));
        Node *n = each_element(m, x, &l);
        put_update(p, UPDATE_SET, place_element(q), value);
        leave(p, n);
    }
    close_kernel(p);
    launch_team(p, k);
}

// Of two equal expressions that are written differently one: (x - y)^2 and (y - x)^2, S[j, k] and S[k, j] of a matrix that is declared to be symmetric or is an inverse of such an expression.
static Expr *same_either_way(Expr *e, void *with)
{
    if (e->kind == EX_POW && e->args[0]->kind == EX_ADD && fmod(e->number, 2) == 0) {
        Expr *other = ex_neg(e->args[0]);
        return other->id < e->args[0]->id ? ex_pow(other, e->number) : NULL;
    }
    if (e->kind == EX_CALL && (e->fn == FN_fabs || e->fn == FN_abs) && e->args[0]->kind == EX_ADD) {
        Expr *other = ex_neg(e->args[0]);
        return other->id < e->args[0]->id ? ex_call1(e->name, other) : NULL;
    }
    if (e->kind == EX_CALL && (e->fn == FN_EQ || e->fn == FN_NE) && e->args[1]->id < e->args[0]->id) return ex_call2(e->name, e->args[1], e->args[0]);
    const bool declared = e->kind == EX_REF && e->nargs >= 2 && (e->var->constraint == CONSTRAINT_COVARIANCE || e->var->constraint == CONSTRAINT_CORRELATION);
    if (declared && e->args[e->nargs - 1]->id < e->args[e->nargs - 2]->id) {
        Expr **at = NEW_N(((Moved *)with)->p->g->arena, Expr *, e->nargs);
        memcpy(at, e->args, sizeof *at * (size_t)e->nargs);
        at[e->nargs - 1] = e->args[e->nargs - 2];
        at[e->nargs - 2] = e->args[e->nargs - 1];
        return ex_ref(e->var, e->nargs, at);
    }
    return NULL;
}

// Whether a matrix is symmetric by its expression, whatever the data: then its lower triangle is all there is to know.
static bool surely_symmetric(Moved *m, Expr *matrix)
{
    Expr *j = ex_index(index_new(intern("j"), ex_num(1), ex_dim(matrix, 0))), *k = ex_index(index_new(intern("k"), ex_num(1), ex_dim(matrix, 0)));
    return ex_map(ex_at(matrix, 2, (Expr *[]){j, k}), same_either_way, m) == ex_map(ex_at(matrix, 2, (Expr *[]){k, j}), same_either_way, m);
}

// A matrix of expressions, into an array: the lower triangle, or all of it where it may not be symmetric.
static void put_matrix(Moved *m, Var *into, Expr *matrix, bool whole_matrix)
{
    Lower *p = m->p;
    const Factor f = matrix_factor(p->g, matrix, into, m->step->span);
    Loops l = loops_of(&f.plates);
    if (whole_matrix) {
        l = (Loops){.n = 2};
        for (int k = 0; k < 2; k++) l.index[k] = index_new(intern(k ? "k" : "j"), ex_num(1), ex_dim(matrix, 0));
    }
    Expr **at = NEW_N(p->g->arena, Expr *, 2);
    for (int k = 0; k < 2; k++) at[k] = ex_index(l.index[k]);
    put_barrier(p);
    Node *n = enter_nest(p, NODE_NEST, &l, 2, at, NULL);
    put_update(p, UPDATE_SET, place_element(ex_ref(into, 2, at)), ex_at(matrix, 2, at));
    leave(p, n);
    put_barrier(p);
}

static Kernel *put_place(Moved *m)
{
    Lower *p = m->p;
    note(p, "%s at these coordinates", m->step->description->subject);
    Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, m->step->competition ? "move_to_%s" : "place_%s", m->stem), "wide");
    k->places = true;
    put_offsets(m);
    for (int o = 0; o < m->step->nblock; o++) {
        const int i = m->order[o];
        Loops l;
        const Ends *ends = &m->ends[i];
        if (m->tied[i].slope) {
            put_transform(m, m->step->block[i], TRANSFORM_FROM);
            continue;
        }
        if (ends->move && !ends->unknown) {
            put_barrier(p);
            put_ends_of(m, i);
        }
        if (m->centring[i].priors) put_centring(m, i, false);
        if (m->centring[i].priors && m->centring[i].root) put_whitened(m, i, TRANSFORM_FROM);
        Expr *x = whole(m->step->block[i], &l), *q = of_ref(m, m->position, x);
        Node *n = each_element(m, x, &l);
        put_update(p, UPDATE_SET, place_element(x), m->centring[i].priors ? at_coordinate(m, &m->centring[i], x, share_of(m, x)) : ends->turns ? turned_back(q) : is_free(ends) ? q : transform(ends, VALUE, q, x));
        if (keeps_logs(ends, x)) put_logs(p, x, isinf(ends->number[1]) ? q : ex_call1("log_inv_logit", q), ex_call1("log1m_inv_logit", q), STORE_PLAIN);
        leave(p, n);
        if (recursion_of(m->centring[i].priors)) put_recursion(m, i);
    }
    if (m->moving.nseries) {
        put_barrier(p);
        Node *lane = enter(p, NODE_LANE);
        for (int i = 0; i < m->moving.nseries; i++) {
            Node *n = put(p, NODE_COMPUTE);
            n->compute.series = m->moving.series[i];
            n->compute.slopes = true;
        }
        leave(p, lane);
    }
    for (int i = 0; i < m->moving.nfactored; i++) {
        const Factored *of = &m->moving.factored[i];
        const bool unsure = !surely_symmetric(m, of->call->args[0]);
        put_matrix(m, of->var, of->call->args[0], unsure);
        Node *lane = enter(p, NODE_LANE), *n = put(p, NODE_FACTOR);
        n->factor.matrix = of->var;
        n->factor.unsure = unsure;
        leave(p, lane);
    }
    for (const Inverse *i = m->inverses; i; i = i->next) {
        const bool unsure = !surely_symmetric(m, i->of);
        put_matrix(m, i->matrix, i->of, unsure);
        Node *lane = enter(p, NODE_LANE), *n = put(p, NODE_FACTOR);
        n->factor.unsure = unsure;
        n->factor.matrix = i->matrix;
        n->factor.inverse = i->inverse;
        n->factor.log_det = i->log_det;
        leave(p, lane);
    }
    for (const Once *o = m->once; o; o = o->next) {
        const Loops l = loops_of(&o->plates);
        put_barrier(p);
        Expr **at = NEW_N(p->g->arena, Expr *, l.n);
        for (int i = 0; i < l.n; i++) at[i] = ex_index(l.index[i]);
        Node *n = enter_nest(p, NODE_NEST, &l, l.n, at, NULL);
        put_update(p, UPDATE_SET, place_element(ex_ref(o->var, l.n, at)), o->value);
        leave(p, n);
    }
    close_kernel(p);
    return k;
}

// ---- one factor ----

static bool reads_block(const Moved *m, const Expr *e)
{
    for (int i = 0; i < m->step->nblock; i++)
        if (ex_reads(e, m->step->block[i])) return true;
    return false;
}

// The terms of a log density that change with the block.
static Expr *moving_terms(const Moved *m, Expr *e)
{
    if (!reads_block(m, e)) return ex_num(0);
    if (e->kind != EX_ADD) return e;
    Expr *keep = ex_num(0);
    for (int i = 0; i < e->nargs; i++) keep = ex_add2(keep, moving_terms(m, e->args[i]));
    return keep;
}

static bool is_one_element(const Expr *ref)
{
    for (int k = 0; k < ref->nargs; k++)
        if (ref->args[k]->kind != EX_NUM) return false;
    return true;
}

// An instance of the plates has this element for its own: each index of the plates is one subscript, and there are no others.
static bool is_own(const Expr *ref, const Plates *plates)
{
    if (ref->nargs != plates->n || plates->n == 0) return false;
    for (int i = 0; i < plates->n; i++) {
        int found = 0;
        for (int k = 0; k < ref->nargs; k++) found += ref->args[k]->kind == EX_INDEX && ref->args[k]->index == plates->index[i];
        if (found != 1) return false;
    }
    return true;
}

static Total *total_of(Total *list, const Expr *ref)
{
    while (list && list->ref != ref) list = list->next;
    return list;
}

// Every element that is named by numbers in some derivative has a local of its own. They are declared before the first loop.
static void declare_total(Moved *m, const char *stem, Expr *ref, Expr *start)
{
    Lower *p = m->p;
    if (!is_one_element(ref) || total_of(m->totals, ref)) return;
    const char *name = words(p, "%s_%s", stem, ref->var->name);
    for (int k = 0; k < ref->nargs; k++) name = words(p, "%s_%d", name, (int)ref->args[k]->number);
    name = intern(name);
    for (const Total *o = m->totals; o; o = o->next)             // a[1] and a_1
        if (o->local->name == name) name = intern(words(p, "%s_%d", name, ++m->nnamed));
    Total *t = NEW(p->g->arena, Total);
    *t = (Total){ref, local_named(p->g->arena, name), NULL};
    *m->last_total = t;
    m->last_total = &t->next;
    put_let(p, NULL, t->local, start, "wide")->let.grows = true;
}

static Look test_work(const Expr *e, void *with)
{
    (void)with;
    return (e->kind == EX_CALL && e->nargs > 0) || e->kind == EX_REDUCE || e->kind == EX_AT || (e->kind == EX_POW && e->number != 2) ? FOUND : e->size > 12 ? FOUND : LOOK;
}

// An array with a place for each instance of the plates, if that is a box; else NULL.
static Expr *row_place(Moved *m, const Plates *plates, ArrayRole role, const char *name)
{
    if (plates->n == 0 || plates->n > MAX_RANK) return NULL;
    Expr *dim[MAX_RANK], *at[MAX_RANK];
    for (int i = 0; i < plates->n; i++) {
        const Expr *hi = plates->index[i]->hi;
        if (!ex_data_only(hi) || plates->index[i]->least < 1) return NULL;
        for (int k = 0; k < plates->n; k++)
            if (ex_mentions_index(hi, plates->index[k])) return NULL;
        dim[i] = plates->index[i]->hi;
        at[i] = ex_index(plates->index[i]);
    }
    return ex_ref(work_array(m->p, role, name, plates->n, dim), plates->n, at);
}

static Expr *weight_place(Moved *m, const Plates *plates)
{
    Expr *place = row_place(m, plates, ROLE_ROW_VALUE, words(m->p, "weight_%s_%d", m->stem, m->nweights + 1));
    m->nweights += place != NULL;
    return place;
}

// y f(e) + (1 - y) f(-e) is f((2 y - 1) e) where y is 0 or 1: one of the two is computed.
static bool is_binary(const Expr *e)
{
    return e->kind == EX_REF && e->var->base == BASE_INT && e->var->lower_number == 0 && e->var->upper_number == 1;
}

static Expr *sign_of_binary(const Expr *s, const Expr *t)
{
    if (s->kind != EX_MUL || t->kind != EX_MUL || s->nargs != 2 || t->nargs != 2) return NULL;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++) {
            Expr *y = s->args[a], *f = s->args[1 - a];
            const Expr *g = t->args[1 - b];
            if (!is_binary(y) || t->args[b] != ex_sub(ex_num(1), y)) continue;
            if (f->kind != EX_CALL || g->kind != EX_CALL || f->fn != g->fn || f->nargs != 1 || g->nargs != 1 || ex_neg(f->args[0]) != g->args[0]) continue;
            return ex_replace(f, f->args[0], ex_mul2(ex_sub(ex_mul2(ex_num(2), y), ex_num(1)), f->args[0]));
        }
    return NULL;
}

static Expr *with_one_of_two(Expr *e)
{
    for (int i = 0; e->kind == EX_ADD && i < e->nargs; i++)
        for (int k = 0; k < e->nargs; k++) {
            Expr *one = sign_of_binary(e->args[i], e->args[k]);
            if (one) return with_one_of_two(ex_add2(ex_sub(ex_sub(e, e->args[i]), e->args[k]), one));
        }
    return e;
}

// What a factor becomes: its terms that move, as a closed form where its sum over rows leaves the sweep.
typedef struct Prepared {
    Factor      f;
    Derivative *terms;
    RowSpan    *span;                    // its rows; NULL: it is summed by itself
    Index      *row;                     // of its plates
    struct Prepared *next;
} Prepared;

// log_inv_logit(e) and log_inv_logit(-e) in one density differ by e: one of them is computed, and there is one weight by e.
static Look collect_log_odds(const Expr *e, void *with)
{
    Calls *c = with;
    if (e->kind == EX_CALL && e->fn == FN_log_inv_logit) {
        ROOM(c->m->p->g->arena, c->at, c->n, c->size);
        c->at[c->n++] = (Expr *)e;
    }
    return LOOK;
}

static Expr *with_one_sign(const Moved *m, Expr *e)
{
    Calls c = {.m = m};
    ex_find(e, collect_log_odds, &c);
    for (int i = 0; i < c.n; i++)
        for (int k = 0; k < i; k++)
            if (ex_neg(c.at[i]->args[0]) == c.at[k]->args[0]) {
                Expr *keep = c.at[i]->id < c.at[k]->id ? c.at[i] : c.at[k], *other = keep == c.at[i] ? c.at[k] : c.at[i];
                e = ex_replace(e, other, ex_sub(keep, keep->args[0]));
            }
    return e;
}

// ---- predictors of several outputs ----

typedef struct Predicting { Moved *m; const Plates *plates; Index *row; int n, most; Product product[MOST_PRODUCTS]; bool several; } Predicting;

// The plate whose index is e, if it runs over all rows of the matrix.
static Index *row_of(const Plates *plates, const Expr *e, const Var *matrix)
{
    for (int i = 0; i < plates->n && e->kind == EX_INDEX; i++)
        if (plates->index[i] == e->index && ex_is_num(e->index->lo, 1) && e->index->hi == matrix->dim[0]) return plates->index[i];
    return NULL;
}

static bool moves(const Moved *m, const Var *v)
{
    for (int i = 0; i < m->step->nblock; i++)
        if (m->step->block[i] == v) return true;
    return false;
}

static bool product_in(Predicting *w, const Expr *e, Product *r, Expr **row, Expr **column)
{
    return product_of(w->m->p, e, r, row, column) && moves(w->m, r->coefficients) && row_of(w->plates, *row, r->matrix) && (!w->row || row_of(w->plates, *row, r->matrix) == w->row);
}

static Look collect_product(const Expr *e, void *with)
{
    Predicting *w = with;
    Product r;
    Expr *row, *column;
    if (!product_in(w, e, &r, &row, &column)) return LOOK;
    w->row = row_of(w->plates, row, r.matrix);
    w->several |= column != NULL;
    int k = 0;
    while (k < w->n && !same_product(&w->product[k], &r)) k++;
    if (k == MOST_PRODUCTS) return FOUND;
    w->product[k] = r;
    if (k == w->n) w->n++;
    return SKIP;
}

static Expr *by_product(Expr *e, void *with)
{
    Predicting *w = with;
    Product r;
    Expr *row, *column;
    if (!product_in(w, e, &r, &row, &column)) return NULL;
    int k = 0;
    while (!same_product(&w->product[k], &r)) k++;
    return ex_ref(w->product[k].eta, column ? 2 : 1, (Expr *[]){row, column});
}

static bool test_series(const Var *v, void *with) { (void)with; return v->kind == VAR_SERIES; }

// Predictors with several outputs in the density of a factor become elements of products, whose derivatives are the weights of the rows. False: there are none, or too many.
static bool split_products(Moved *m, Prepared *r)
{
    Lower *p = m->p;
    Factor *f = &r->f;
    Predicting w = {.m = m, .plates = &f->plates};
    if (f->plates.n == 0 || needs_array(f->log_density) || ex_any_var(f->log_density, test_series, NULL) || ex_find(f->log_density, collect_product, &w) || !w.several) return false;
    for (int i = 0; i < f->plates.n; i++)
        if (ex_mentions_index(w.row->hi, f->plates.index[i])) return false;
    RowSpan *s = m->spans, **last = &m->spans;
    for (; s; last = &s->next, s = s->next)
        if (s->n == w.row->hi) break;
    int more = 0;
    for (int k = 0; k < w.n; k++) {
        int same = 0;
        while (s && same < s->nproducts && !same_product(s->product[same], &w.product[k])) same++;
        if (s && same < s->nproducts) w.product[k] = *s->product[same];
        else more++;
    }
    if ((s ? s->nproducts : 0) + more > MOST_PRODUCTS) return false;
    if (!s) {
        s = *last = NEW(p->g->arena, RowSpan);
        *s = (RowSpan){.n = w.row->hi};
    }
    for (int k = 0; k < w.n; k++) {
        if (w.product[k].eta) continue;
        make_room(p, &w.product[k], true);
        s->product[s->nproducts++] = arena_copy(p->g->arena, &w.product[k], sizeof w.product[k]);
    }
    f->log_density = ex_map(f->log_density, by_product, &w);
    r->span = s;
    r->row = w.row;
    return true;
}

static const Product *product_with(const RowSpan *s, const Var *eta)
{
    for (int k = 0; s && k < s->nproducts; k++)
        if (s->product[k]->eta == eta) return s->product[k];
    return NULL;
}

static bool differentiate(const Moved *m, Prepared *r)
{
    const char *why;
    int n = m->moving.n;
    Var **block = NEW_N(m->p->g->arena, Var *, n + MOST_PRODUCTS);
    memcpy(block, m->moving.var, sizeof *block * (size_t)n);
    for (int k = 0; r->span && k < r->span->nproducts; k++) block[n++] = r->span->product[k]->eta;
    return derivatives(m->p->g, &r->f, block, n, &r->terms, &why);
}

// An array stands among what moves, with an adjoint of its own.
static void move_array(Moved *m, Var *v)
{
    Lower *p = m->p;
    if (adjoint_of(m, v)) return;
    Var **var = NEW_N(p->g->arena, Var *, m->moving.n + 1), **adjoint = NEW_N(p->g->arena, Var *, m->moving.n + 1);
    memcpy(var, m->moving.var, sizeof *var * (size_t)m->moving.n);
    memcpy(adjoint, m->adjoint, sizeof *adjoint * (size_t)m->moving.n);
    var[m->moving.n] = v;
    adjoint[m->moving.n] = work_array(p, ROLE_BLOCK, words(p, "adjoint_%s", v->name), v->rank, v->dim);
    m->moving.var = var;
    m->adjoint = adjoint;
    m->moving.n++;
}

static void move_once(Moved *m)
{
    for (const Once *o = m->once; o; o = o->next) move_array(m, o->var);
}

static Inverse *inverse_of(const Moved *m, const Expr *matrix)
{
    Inverse *i = m->inverses;
    while (i && i->of != matrix) i = i->next;
    return i;
}

static Look collect_inverse(const Expr *e, void *with)
{
    Moved *m = with;
    if (e->kind != EX_CALL || (e->fn != FN_inverse && e->fn != FN_log_determinant) || !reads_block(m, e) || !stands_alone(e)) return LOOK;
    Expr *A = e->args[0], *dim[] = {ex_dim(A, 0), ex_dim(A, 0)};
    if (ex_dim(A, 1) != dim[0] || !ex_data_only(dim[0]) || inverse_of(m, A)) return LOOK;
    Inverse **last = &m->inverses;
    while (*last) last = &(*last)->next;
    Inverse *i = *last = NEW(m->p->g->arena, Inverse);
    i->of = A;
    i->matrix = work_array(m->p, ROLE_BLOCK, words(m->p, "matrix_%s", m->stem), 2, dim);
    i->inverse = work_array(m->p, ROLE_BLOCK, words(m->p, "inverse_%s", m->stem), 2, dim);
    i->log_det = work_array(m->p, ROLE_BLOCK, words(m->p, "log_det_%s", m->stem), 1, (Expr *[]){ex_num(1)});
    move_array(m, i->inverse);
    move_array(m, i->log_det);
    return LOOK;
}

static Expr *by_inverse(Expr *e, void *with)
{
    const Moved *m = with;
    const bool element = e->kind == EX_AT && e->nargs == 3, whole = element && e->args[0]->kind == EX_CALL && e->args[0]->fn == FN_inverse;
    const Inverse *i = whole ? inverse_of(m, e->args[0]->args[0]) : e->kind == EX_CALL && e->fn == FN_log_determinant ? inverse_of(m, e->args[0]) : NULL;
    return !i ? NULL : whole ? ex_ref(i->inverse, 2, e->args + 1) : ex_ref(i->log_det, 1, (Expr *[]){ex_num(1)});
}

// What routines make of matrices of expressions, as elements of arrays: one factorisation serves all of it.
static Expr *by_arrays(Moved *m, Expr *e)
{
    e = by_factors(&m->moving, e);
    ex_find(e, collect_inverse, m);
    return m->inverses ? ex_map(e, by_inverse, m) : e;
}

static Prepared *prepare(Moved *m, const Factor *f)
{
    Lower *p = m->p;
    Prepared *r = NEW(p->g->arena, Prepared);
    r->f = *f;
    r->f.log_density = with_one_of_two(with_one_sign(m, moving_terms(m, f->log_density)));
    if (ex_is_num(r->f.log_density, 0)) return NULL;
    const Factor rows = r->f;
    const Loops l = loops_of(&f->plates);
    const Keys none = {0};
    Expr *h = hoist_sum(&p->statistics, &none, &l, r->f.log_density);
    if (h) {
        r->f.log_density = by_arrays(m, h);
        r->f.plates = (Plates){0};
        if (differentiate(m, r)) return r;
        r->f = rows;
    }
    r->f.log_density = by_arrays(m, r->f.log_density);
    if (!split_products(m, r)) {                 // rows of products are computed after what is computed once
        r->f.log_density = compute_once(p, &m->moving, m->stem, &m->once, r->f.log_density, &r->f.plates);
        move_once(m);
    }
    if (!differentiate(m, r)) abort();           // the schedule has asked
    return r;
}

// A weight by the name that it has: in a product its factors would stand among the others.
typedef struct NamedWeight { const Expr *weight; Var *local; struct NamedWeight *next; } NamedWeight;

static Expr *by_name(const NamedWeight *named, Expr *weight)
{
    for (; named; named = named->next)
        if (named->weight == weight) return local_ref(named->local);
    return weight;
}

static Node *enter_loop(Lower *p, Sharing how, Index *i)
{
    Node *n = enter(p, NODE_LOOP);
    n->loop.how = how;
    n->loop.n = 1;
    n->loop.index[0] = i;
    n->loop.keeps = true;
    return n;
}

static bool reads_product(const Prepared *r, const Product *of)
{
    for (const Derivative *d = r->terms; d; d = d->next)
        if (d->ref->var == of->eta) return true;
    return false;
}

static const Prepared *first_of(const Prepared *list, const Product *of)
{
    while (list && !reads_product(list, of)) list = list->next;
    return list;
}

static Expr *weight_of(const Product *of, const Index *row, const Index *column)
{
    return ex_ref(of->weight, column ? 2 : 1, (Expr *[]){ex_index((Index *)row), column ? ex_index((Index *)column) : NULL});
}

// A term that each row has for each of its predictors: the weights begin with it. NULL: they begin with 0.
static const Derivative *whole_term(const Prepared *r, const Product *of)
{
    const Plates *plates = &r->f.plates;
    for (const Derivative *d = r->terms; d && plates->n == 1 && !plates->guard; d = d->next) {
        if (d->ref->var != of->eta || d->loops.n != of->eta->rank || chosen_where(ex_mul2(d->weight, d->rest))) continue;
        const Index *k = d->loops.n == 2 ? d->loops.index[1] : NULL;
        if (!k || (d->ref->args[1]->kind == EX_INDEX && d->ref->args[1]->index == k && ex_is_num(k->lo, 1) && k->hi == outputs_of(of))) return d;
    }
    return NULL;
}

static void put_no_weight(Lower *p, const Product *of, const Index *row)
{
    Index *column = of->weight->rank == 2 ? index_new(intern("k"), ex_num(1), outputs_of(of)) : NULL;
    Node *each = column ? enter_loop(p, SHARE_SERIAL, column) : NULL;
    put_update(p, UPDATE_SET, place_element(weight_of(of, row, column)), ex_num(0));
    if (each) leave(p, each);
}

static Expr *true_where(Expr *e, void *with)
{
    const Expr *condition = with;
    if (e == condition) return ex_num(1);
    if (e->kind == EX_REDUCE || e->kind == EX_ARRAY) return e;       // they have names, and keep them
    return condition->kind == EX_CALL && condition->fn == FN_AND && (e == condition->args[0] || e == condition->args[1]) ? ex_num(1) : NULL;
}

// e where a condition holds.
static Expr *granted(Expr *e, Expr *condition) { return ex_map(e, true_where, condition); }

// The instances of a factor: in a span by rows, then what else its plates run over; else as a sum that is yet to be shared.
static Node *enter_factor(Lower *p, const Prepared *first, const Prepared *r)
{
    const Plates *plates = &r->f.plates;
    if (!r->span) {
        const Loops l = loops_of(plates);
        Node *sum = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
        sum->nest.op = UPDATE_ADD;
        return sum;
    }
    Node *rows = enter_loop(p, SHARE_SPAN, r->row);
    for (int k = 0; k < r->span->nproducts; k++)
        if (first_of(first, r->span->product[k]) == r && !whole_term(r, r->span->product[k])) put_no_weight(p, r->span->product[k], r->row);
    for (int i = 0; i < plates->n; i++)
        if (plates->index[i] != r->row) enter_loop(p, SHARE_SERIAL, plates->index[i]);
    if (plates->guard) put(p, NODE_SKIP)->skip.condition = plates->guard;
    return rows;
}

// The weight of a predictor grows by what one term says. An element that a choice leaves out need not exist.
static void put_weight(Moved *m, const Product *of, const Derivative *d, Expr *weight, int nplates, UpdateOp op)
{
    Lower *p = m->p;
    Expr *value = ex_mul2(weight, d->rest), *where = chosen_where(ex_mul2(d->weight, d->rest));
    Node *outer = NULL;
    for (int i = nplates; i < d->loops.n; i++) {
        Node *n = enter_loop(p, SHARE_SERIAL, d->loops.index[i]);
        if (!outer) outer = n;
    }
    Node *only = where ? enter(p, NODE_IF) : NULL;
    if (only) only->test.condition = where;
    put_update(p, op, place_element(ex_ref(of->weight, d->ref->nargs, d->ref->args)), where ? granted(value, where) : value);
    if (only && !outer) outer = only;
    if (outer) leave(p, outer);
}

static void add_pending(Moved *m, const Pending *w)
{
    *m->last_pending = arena_copy(m->p->g->arena, w, sizeof *w);
    m->last_pending = &(*m->last_pending)->next;
}

static bool same_loops(const Loops *a, const Loops *b)
{
    bool same = a->n == b->n && a->guard == b->guard;
    for (int i = 0; i < a->n && same; i++) same = a->index[i] == b->index[i];
    return same;
}

static bool same_slope(const Derivative *a, const Derivative *b) { return a->weight == b->weight && a->rest == b->rest && same_loops(&a->loops, &b->loops); }

// b[k] that stands beside a predictor wherever this does, as in b[k] + X_B[i, k], gets what the predictor gets: the weights of the rows, which are there. `of` must have no weights of other
// factors. The terms that this covers are marked.
static void put_beside(Moved *m, const Prepared *r, Product *of, const Derivative **covered, int *ncovered)
{
    const Derivative *of_k = NULL;               // the term of all k
    Expr *k = NULL;
    for (const Derivative *t = r->terms; t && of->weight->rank == 2; t = t->next)
        for (int i = r->f.plates.n; i < t->loops.n && t->ref->var == of->eta; i++)
            if (t->ref->args[1] == ex_index(t->loops.index[i]) && t->loops.n == r->f.plates.n + 1) { of_k = t; k = t->ref->args[1]; }
    if (!of_k) return;
    for (const Derivative *u = r->terms; u; u = u->next) {
        if (product_with(r->span, u->ref->var) || !same_slope(u, of_k) || !ex_mentions_index(u->ref, k->index)) continue;
        bool all = true;
        for (int i = 0; i < u->ref->nargs; i++) all &= u->ref->args[i] == k ? u->ref->var->dim[i] == outputs_of(of) : !ex_mentions_index(u->ref->args[i], k->index);
        const int before = *ncovered;
        for (const Derivative *t = r->terms; t && all; t = t->next) {
            if (t->ref->var != of->eta) continue;
            Expr *beside = ex_replace_index(u->ref, k->index, t->ref->args[1]);
            const Derivative *o = r->terms;
            while (o && (o->ref != beside || !same_slope(o, t))) o = o->next;
            all = o != NULL;
            covered[(*ncovered)++] = o;
        }
        if (!all) {
            *ncovered = before;
            continue;
        }
        Derivative *d = arena_copy(m->p->g->arena, u, sizeof *u);
        Index *column = index_new(k->index->name, ex_num(1), outputs_of(of));
        d->loops.index[d->loops.n - 1] = column;
        d->ref = ex_replace_index(u->ref, k->index, ex_index(column));
        d->weight = weight_of(of, r->row, column);
        if (u->ref->nargs == 1) {                // of all rows: the products add them up
            if (!of->sums) of->sums = work_array(m->p, ROLE_TOTALS, words(m->p, "sums_%s", of->weight->name), 1, &column->hi);
            d->loops = (Loops){.n = 1, .index = {column}};
            d->weight = ex_ref(of->sums, 1, (Expr *[]){ex_index(column)});
        }
        d->rest = ex_num(1);
        add_pending(m, &(Pending){.d = d, .weight = d->weight});
    }
}

static bool is_covered(const Derivative *d, const Derivative *const *covered, int n)
{
    for (int i = 0; i < n; i++)
        if (covered[i] == d) return true;
    return false;
}

// As the kernel of a factor's rows computes it: kernels of rows between products do not know where variables begin in the coordinates.
static Expr *in_kernel(const Moved *m, const Prepared *r, Expr *e) { return r->span ? e : with_coordinates(m, e); }

// Whether the loop over a factor's plates reads the weight of a derivative: otherwise later loops compute it.
static bool is_used_here(const Moved *m, const Prepared *r, const Derivative *d)
{
    const bool all = d->loops.n == r->f.plates.n;
    return product_with(r->span, d->ref->var) || (r->f.plates.n && ex_find(d->weight, test_work, NULL)) ||
           (all && (total_of(r->span ? r->span->totals : m->totals, d->ref) || (is_own(d->ref, &r->f.plates) && !r->span)));
}

// Single numbers that rows read have names before the loop: what rows write might otherwise change them, for all that the C compiler knows, and it would do one row at a time.
static Look collect_scalars(const Expr *e, void *with)
{
    Moved *m = with;
    const bool logarithm = e->kind == EX_CALL && e->fn == FN_log;
    const Expr *ref = logarithm ? e->args[0] : e;
    if (ref->kind != EX_REF || ref->nargs != ref->var->rank || ref->var->kind == VAR_DATA || ref->var->kind == VAR_ELEMENT || ref->var->base == BASE_INT) return LOOK;
    const char *name = ref->var->name;
    for (int k = 0; k < ref->nargs; k++) {
        if (ref->args[k]->kind != EX_NUM) return LOOK;
        name = words(m->p, "%s_%ld", name, (long)ref->args[k]->number);
    }
    Expr *value = with_coordinates(m, (Expr *)e);
    if (logarithm && value == e) return LOOK;
    for (int i = 0; i < m->nscalars; i++)
        if (m->scalars[i] == value) return SKIP;
    name = intern(words(m->p, logarithm ? "now_log_%s" : "now_%s", name));
    for (int i = 0; i < m->nscalars; i++)        // a[1] and a_1
        if (m->names[i] == name) name = intern(words(m->p, "%s_%d", name, m->nscalars + 1));
    ROOM(m->p->g->arena, m->scalars, m->nscalars, m->scalars_size);
    ROOM(m->p->g->arena, m->names, m->nscalars, m->names_size);
    m->names[m->nscalars] = name;
    m->scalars[m->nscalars++] = value;
    Expr *exists = reads_inside(m->p->g, value);
    put_let(m->p, value, local_named(m->p->g->arena, name), exists ? ex_call3("if_else", exists, value, ex_num(0)) : value, "wide");
    return SKIP;
}

static void put_scalars(Moved *m, const Prepared *r)
{
    if (!r->f.plates.n || r->span) return;
    ex_find(r->f.log_density, collect_scalars, m);
    for (const Derivative *d = r->terms; d; d = d->next) {
        ex_find(d->weight, collect_scalars, m);
        ex_find(d->rest, collect_scalars, m);
    }
}

// What choices of a row read is read before them, from elements that are there whatever is chosen: a row is then computed without branches, and several at a time.
typedef struct Reads { Moved *m; const Expr **at; int n, size; } Reads;

static Expr *within_array(Expr *at, Expr *extent)
{
    return ex_call3("if_else", ex_call2("<", at, ex_num(1)), ex_num(1), ex_call3("if_else", ex_call2("<", extent, at), extent, at));
}

static Look read_of_choice(const Expr *e, void *with)
{
    Reads *r = with;
    Lower *p = r->m->p;
    if (e->kind != EX_REDUCE && e->kind != EX_REF) return LOOK;
    for (int i = 0; i < r->n; i++)
        if (r->at[i] == e) return SKIP;
    Expr *value = NULL, *at[MAX_RANK];
    if (e->kind == EX_REDUCE) {
        value = predicted(p, p->open, (Expr *)e);
        for (int k = 0; value && k < value->nargs; k++)
            if (value->args[k]->kind != EX_INDEX) return SKIP;
    } else if (e->nargs == e->var->rank && e->var->base != BASE_INT && e->var->kind != VAR_DATA && e->var->kind != VAR_ELEMENT) {
        bool computed = false;
        for (int k = 0; k < e->nargs; k++) {
            const bool plain = e->args[k]->kind == EX_INDEX || e->args[k]->kind == EX_NUM;
            at[k] = plain ? e->args[k] : within_array(e->args[k], e->var->dim[k]);
            computed |= !plain;
        }
        if (computed) value = ex_ref(e->var, e->nargs, at);
    }
    if (!value) return SKIP;
    ROOM(p->g->arena, r->at, r->n, r->size);
    r->at[r->n++] = e;
    put_let(p, (Expr *)e, local_new(p->g->arena, intern(words(p, "read%d", ++r->m->nnamed))), value, "wide");
    return SKIP;
}

static Look collect_choices(const Expr *e, void *with)
{
    if (e->kind == EX_REDUCE) return SKIP;
    if (e->kind != EX_CALL || e->fn != FN_if_else) return LOOK;
    ex_find(e->args[1], read_of_choice, with);
    ex_find(e->args[2], read_of_choice, with);
    return LOOK;
}

static void put_reads(Moved *m, const Prepared *r)
{
    if (!r->f.plates.n || r->span) return;
    Reads reads = {.m = m};
    ex_find(r->f.log_density, collect_choices, &reads);
    for (const Derivative *d = r->terms; d; d = d->next)
        if (d->loops.n == r->f.plates.n) {
            ex_find(d->weight, collect_choices, &reads);
            ex_find(d->rest, collect_choices, &reads);
        }
}

// ---- sums that rows keep ----
//
//   density      lp += log_sum_exp(j in 1:K, t[n, j])          kept[n] = the same
//   slope        v[j] gets exp(t[n, j] - kept[n]) * ..         over n, j: K terms a row, where the sum anew for each of them would make K^2
//
// A term that holds sums itself, the distance of the row from the mean of a component, is not computed again for each coordinate of its slopes: exp(t[n, j] - kept[n]) has an array then.

static Look test_sum(const Expr *e, void *with) { (void)with; return e->kind == EX_REDUCE ? FOUND : LOOK; }

static Look test_equal(const Expr *e, void *with) { return e == with ? FOUND : LOOK; }

// What e computes of a sum: the sum, 0 where choices leave it out. NULL: nothing, or in several places.
static Expr *computed_by(Expr *e, Expr *sum)
{
    if (e == sum) return sum;
    if (e->nargs == 0 || e->kind == EX_REF || e->kind == EX_REDUCE || e->kind == EX_ARRAY || !ex_find(e, test_equal, sum)) return NULL;
    if (e->kind == EX_CALL && (e->fn == FN_AND || e->fn == FN_OR)) return computed_by(e->args[0], sum);
    if (e->kind == EX_CALL && e->fn == FN_if_else) {
        Expr *either[3];
        for (int i = 0; i < 3; i++) either[i] = computed_by(e->args[i], sum);
        if (either[0]) return either[0];
        if (either[1] == either[2]) return either[1];
        return ex_call3("if_else", e->args[0], either[1] ? either[1] : ex_num(0), either[2] ? either[2] : ex_num(0));
    }
    Expr *found = NULL;
    for (int i = 0; i < e->nargs && found != sum; i++) {
        Expr *here = computed_by(e->args[i], sum);
        if (here && found && here != sum && here != found) return NULL;
        if (here) found = here;
    }
    return found;
}

typedef struct Keeping { Moved *m; const Prepared *r; Kept *first; bool anywhere, later, chosen; const Loops *loops; } Keeping;      // anywhere: in a weight, too, it is a sum that terms are compared with; later: for loops behind this one

// A sum that changes with the block and from row to row gets a name, which the density and all derivatives of the row read.
static Look name_sum(const Expr *e, void *with)
{
    Keeping *k = with;
    Moved *m = k->m;
    const Plates *plates = &k->r->f.plates;
    if (e->kind != EX_REDUCE || e->loose || (k->anywhere && e->fn != FN_log_sum_exp)) return LOOK;
    for (const Kept *o = k->first; o; o = o->next)
        if (o->sum == e) return SKIP;
    bool moves = false;
    for (int i = 0; i < m->moving.n; i++) moves |= ex_reads(e, m->moving.var[i]);
    for (int i = 0; i < plates->n; i++) moves &= ex_mentions_index(e, plates->index[i]);
    Expr *value = moves && !predicted(m->p, m->p->open, (Expr *)e) ? computed_by(k->r->f.log_density, (Expr *)e) : NULL;
    if (!value) return LOOK;
    Kept *o = NEW(m->p->g->arena, Kept);
    *o = (Kept){.sum = (Expr *)e, .local = local_new(m->p->g->arena, intern(words(m->p, "all%d", ++m->nnamed))), .always = value == e, .next = k->first};
    k->first = o;
    put_let(m->p, NULL, o->local, in_kernel(m, k->r, value), "wide");
    return SKIP;
}

static Expr *by_kept(Expr *e, void *with)
{
    const Keeping *k = with;
    Lower *p = k->m->p;
    Kept *o = e->kind == EX_REDUCE ? k->first : NULL;
    while (o && o->sum != e) o = o->next;
    if (!o || !k->later) return o ? local_ref(o->local) : NULL;
    if (!o->place && (o->place = row_place(k->m, &k->r->f.plates, ROLE_BLOCK, words(p, "kept_%s", k->m->stem)))) put_update(p, UPDATE_SET, place_element(o->place), local_ref(o->local));
    return o->place;
}

static Keeping name_sums(Moved *m, const Prepared *r, const Derivative *const *covered, int ncovered)
{
    Keeping k = {.m = m, .r = r};
    for (const Derivative *d = r->f.plates.n ? r->terms : NULL; d; d = d->next) {
        if (product_with(r->span, d->ref->var) || is_covered(d, covered, ncovered)) continue;
        k.anywhere = false;
        ex_find(d->rest, name_sum, &k);
        k.anywhere = true;
        ex_find(d->weight, name_sum, &k);
    }
    return k;
}

static Expr *in_later_loops(Keeping *k, Expr *e)
{
    k->later = true;
    return k->first ? ex_map(e, by_kept, k) : e;
}

static bool reads_kept(const Var *v, void *with)
{
    for (const Kept *o = with; o; o = o->next)
        if (o->place && o->place->var == v) return true;
    return false;
}

// e is exp(t - sum), t a term of a sum that the density always computes: it exists whatever choices say.
static bool is_of_term(const Keeping *k, Expr *e, Index *value)
{
    for (const Kept *o = k->first; o; o = o->next)
        if (o->always && o->place && o->sum->fn == FN_log_sum_exp && o->sum->args[0] == value->lo && o->sum->args[1] == value->hi && e == ex_call1("exp", ex_sub(ex_open(o->sum, value), o->place))) return true;
    return false;
}

static Expr *by_probability(Expr *e, void *with)
{
    Keeping *k = with;
    Moved *m = k->m;
    const Plates *plates = &k->r->f.plates;
    Index *value = NULL;
    if (e->kind == EX_CALL && e->fn == FN_if_else && !k->chosen) {
        Expr *part[3];
        for (int i = 0; i < 3; i++) {
            k->chosen = i > 0;
            part[i] = ex_map(e->args[i], by_probability, k);
        }
        k->chosen = false;
        return ex_call3("if_else", part[0], part[1], part[2]);
    }
    if (e->kind != EX_CALL || e->fn != FN_exp || e->loose || !ex_find(e, test_sum, NULL) || !ex_any_var(e, reads_kept, k->first)) return NULL;
    for (Probability *o = m->probabilities; o; o = o->next)
        if (o->of == e) return o->place;
    for (int i = plates->n; i < k->loops->n; i++) {
        if (!ex_mentions_index(e, k->loops->index[i])) continue;
        if (value) return NULL;
        value = k->loops->index[i];
    }
    if (!value || !ex_is_num(value->lo, 1) || (k->chosen && !is_of_term(k, e, value))) return NULL;
    Plates both = {.n = plates->n + 1, .index = NEW_N(m->p->g->arena, Index *, plates->n + 1), .guard = plates->guard};
    memcpy(both.index, plates->index, sizeof *both.index * (size_t)plates->n);
    both.index[plates->n] = value;
    Expr *place = row_place(m, &both, ROLE_WEIGHTS, words(m->p, "probability_%s", m->stem));
    if (place) m->probabilities = arena_copy(m->p->g->arena, &(Probability){e, place, loops_of(&both), m->probabilities}, sizeof(Probability));
    return place;
}

static Expr *in_places(Keeping *k, Expr *e, const Loops *loops)
{
    k->loops = loops;
    return k->first ? ex_map(e, by_probability, k) : e;
}

static void put_probabilities(Moved *m)
{
    for (const Probability *o = m->probabilities; o; o = o->next) {
        Node *n = enter_nest(m->p, NODE_NEST, &o->loops, o->place->nargs, o->place->args, NULL);
        put_update(m->p, UPDATE_SET, place_element(o->place), with_coordinates(m, o->of));
        leave(m->p, n);
    }
    if (m->probabilities) put_barrier(m->p);
}

static Expr *here(Keeping *k, Expr *e)
{
    k->later = false;
    return in_kernel(k->m, k->r, k->first ? ex_map(e, by_kept, k) : e);
}

static void put_factor(Moved *m, const Prepared *first, const Prepared *r)
{
    Lower *p = m->p;
    const Factor *f = &r->f;
    put(p, NODE_COMMENT)->text.lines = f->dist ? f->dist->name : "target";
    int nterms = 0, ncovered = 0;
    for (const Derivative *d = r->terms; d; d = d->next) nterms++;
    const Derivative **covered = NEW_N(p->g->arena, const Derivative *, nterms * (nterms + 1) + 1);
    for (int k = 0; r->span && k < r->span->nproducts; k++) {
        Product *of = r->span->product[k];
        const Prepared *one = first_of(first, of);
        if (one == r && !first_of(r->next, of)) put_beside(m, r, of, covered, &ncovered);
    }
    put_scalars(m, r);
    Node *sum = enter_factor(p, first, r);
    if (r->span) sum->loop.total[sum->loop.ntotals++] = m->lp;
    put_reads(m, r);
    Keeping sums = name_sums(m, r, covered, ncovered);
    put_update(p, UPDATE_ADD, place_local(m->lp), here(&sums, f->log_density));
    NamedWeight *named = NULL;                        // weights that several derivatives share
    for (const Derivative *d = r->terms; d; d = d->next) {
        bool before = false, again = false, used = false;
        for (const Derivative *o = r->terms; o; o = o->next) used |= o->weight == d->weight && is_used_here(m, r, o);
        for (const Derivative *o = r->terms; o != d; o = o->next) before |= o->weight == d->weight;
        for (const Derivative *o = d->next; o; o = o->next) again |= o->weight == d->weight;
        if (before || !again || !used || d->weight->nargs == 0 || d->weight->kind == EX_REF) continue;
        NamedWeight *w = NEW(p->g->arena, NamedWeight);
        *w = (NamedWeight){d->weight, local_new(p->g->arena, intern(words(p, "w%d", ++m->nnamed))), named};
        named = w;
        put_let(p, here(&sums, d->weight), w->local, here(&sums, d->weight), "wide");
    }
    for (int k = 0; r->span && k < r->span->nproducts; k++) {
        const Product *of = r->span->product[k];
        const Derivative *d = first_of(first, of) == r ? whole_term(r, of) : NULL;
        if (d) put_weight(m, of, d, by_name(named, d->weight), f->plates.n, UPDATE_SET);
    }
    int ntotals = 0;
    for (Derivative *d = r->terms; d; d = d->next) {
        const bool all = d->loops.n == f->plates.n;
        const Product *of = product_with(r->span, d->ref->var);
        if (of) {
            if (first_of(first, of) != r || whole_term(r, of) != d) put_weight(m, of, d, by_name(named, d->weight), f->plates.n, UPDATE_ADD);
            continue;
        }
        if (is_covered(d, covered, ncovered)) continue;
        Total *t = all ? total_of(r->span ? r->span->totals : m->totals, d->ref) : NULL;
        if (t && ntotals < MOST_TOTALS) {
            put_update(p, UPDATE_ADD, place_local(t->local), here(&sums, ex_mul2(by_name(named, d->weight), d->rest)));
            if (r->span) sum->loop.total[sum->loop.ntotals++] = t->local;
            ntotals++;
            continue;
        }
        if (all && is_own(d->ref, &f->plates) && !r->span) {
            put_update(p, UPDATE_ADD, gradient_place(m, d->ref), here(&sums, ex_mul2(by_name(named, d->weight), d->rest)));
            continue;
        }
        Pending w = {.d = d, .weight = d->weight};
        if (f->plates.n && ex_find(d->weight, test_work, NULL)) {
            for (const Pending *o = m->pending; o; o = o->next)
                if (o->d->weight == d->weight && o->d->factor == d->factor) w.weight = o->weight;
            Expr *place = w.weight == d->weight ? weight_place(m, &f->plates) : NULL;
            if (place) {
                put_update(p, UPDATE_SET, place_element(place), here(&sums, d->weight));
                w.weight = place;
            }
        }
        Derivative *later = arena_copy(p->g->arena, d, sizeof *d);
        later->rest = in_later_loops(&sums, d->rest);
        if (w.weight == d->weight) w.weight = later->weight = in_later_loops(&sums, d->weight);
        w.keeps = later->rest != d->rest || later->weight != d->weight;
        if (w.keeps) later->rest = in_places(&sums, later->rest, &d->loops);
        if (w.keeps) w.d = later;
        add_pending(m, &w);
    }
    leave(p, sum);
}

// X'w by a pass over the rows of X, after the kernel that fills the weights.
static bool row_sums_of(Moved *m, Pending *w)
{
    const Derivative *d = w->d;
    if (w->weight == d->weight || w->weight->nargs != 1 || d->loops.n != 2 || d->loops.guard) return false;
    Var *matrix;
    if (!row_sum_of(m->p, d->ref, d->rest, d->loops.index[0], d->loops.index[1], &matrix, &w->times)) return false;
    w->matrix = matrix;
    for (const Pending *o = m->pending; o != w; o = o->next)       // one pass for all that need the same sums: X'w times lambda[j], and times b[j]
        if (o->matrix == matrix && o->weight == w->weight) w->sums = o->sums;
    if (w->sums) return true;
    w->sums = work_array(m->p, ROLE_TOTALS, words(m->p, "rows_%s", d->ref->var->name), 1, d->ref->var->dim);
    launch_row_sums(m->p, matrix, w->weight->var, w->sums);
    return true;
}

static bool may_be_outside(const Derivative *d)
{
    bool within = true;
    for (int k = 0; k < d->ref->nargs; k++) within &= d->ref->args[k]->kind == EX_INDEX && ex_is_num(d->ref->args[k]->index->lo, 1) && d->ref->args[k]->index->hi == d->ref->var->dim[k];
    return !within;
}

// Over what the terms of a pending derivative are summed, and its value.
static Expr *value_of_pending(Moved *m, const Pending *w, Loops *l)
{
    const Derivative *d = w->d;
    *l = d->loops;
    Expr *where = may_be_outside(d) ? chosen_where(ex_mul2(d->weight, d->rest)) : NULL;      // an element that a choice leaves out need not exist
    if (where) l->guard = l->guard ? ex_call2("&&", l->guard, where) : where;
    if (!w->sums) return with_coordinates(m, ex_mul2(w->weight, d->rest));
    *l = (Loops){.n = 1, .index = {d->loops.index[1]}};
    return with_coordinates(m, ex_mul2(w->times, ex_ref(w->sums, 1, d->ref->args)));
}

static bool holds_sum(const Pending *w) { return w->keeps || ex_find(w->weight, test_sum, NULL) || ex_find(w->d->rest, test_sum, NULL); }

// Weights that are sums, those of values that are summed out, are computed once for all elements at the same place of their variables.
static bool put_with(Moved *m, const Pending *w, const Pending *first)
{
    const Derivative *d = w->d, *o = first->d;
    if (d->ref->nargs != o->ref->nargs || !holds_sum(w) || !holds_sum(first)) return false;
    for (int k = 0; k < d->ref->nargs; k++)
        if (d->ref->args[k] != o->ref->args[k] || d->ref->var->dim[k] != o->ref->var->dim[k]) return false;
    Loops a, b;
    value_of_pending(m, w, &a);
    value_of_pending(m, first, &b);
    bool same = a.n == b.n && a.guard == b.guard;
    for (int k = 0; k < a.n && same; k++) same = a.index[k] == b.index[k];
    return same;
}

static void put_pending(Moved *m, const Pending *w)
{
    Loops l;
    Expr *value = value_of_pending(m, w, &l);
    Node *n = enter_nest(m->p, NODE_REDUCE, &l, w->d->ref->nargs, w->d->ref->args, w->d->ref->var->dim);
    put_update(m->p, UPDATE_ADD, gradient_place(m, w->d->ref), value);
    leave(m->p, n);
}

enum { MOST_TOGETHER = 4 };      // arrays of one sum over rows

static void put_all_pending(Moved *m)
{
    put_probabilities(m);
    for (Pending *w = m->pending; w; w = w->next) {
        if (w->put) continue;
        Loops l;
        value_of_pending(m, w, &l);
        Node *n = enter_nest(m->p, NODE_REDUCE, &l, w->d->ref->nargs, w->d->ref->args, w->d->ref->var->dim);
        int together = 0;
        for (Pending *o = w; o && together < MOST_TOGETHER; o = o->next) {
            if (o->put || (o != w && !put_with(m, o, w))) continue;
            put_update(m->p, UPDATE_ADD, gradient_place(m, o->d->ref), value_of_pending(m, o, &l));
            o->put = true;
            together++;
        }
        leave(m->p, n);
    }
}

// ---- series ----

// Whether a statement may read elements at the same value of the subscript that the series goes along.
typedef struct Row { const Series *series; int along; } Row;

static Look test_row(const Expr *e, void *with)
{
    const Row *r = with;
    if (e->kind != EX_REF || !in_series(r->series, e->var)) return LOOK;
    const Expr *apart = r->along < e->nargs ? ex_sub(e->args[r->along], ex_index(r->series->along)) : NULL;
    return !apart || apart->kind != EX_NUM || apart->number == 0 ? FOUND : LOOK;
}

static bool reads_its_row(const Series *s, const Site *t)
{
    int along = 0;
    while (along < t->n && t->subscript[along] != ex_index(s->along)) along++;
    return ex_find(t->value, test_row, &(Row){s, along});
}

// A sum over the values of a state whose logarithm is the element itself, in the derivatives of that element: it has been computed. Where rows add to an element, it is none of their sums.
static Expr *as_computed(const Site *t, Expr *e)
{
    Expr *v = t->value;
    const bool sum = (v->kind == EX_REDUCE && v->fn == FN_log_sum_exp) || (v->kind == EX_CALL && v->fn == FN_log_sum_exp2);
    return sum && !t->adds ? ex_replace(e, v, ex_ref(t->var, t->n, t->subscript)) : e;
}

// Adjoints within a series: in the reverse of the order in which its elements are computed, each goes on to the elements that this one was made of.
static void put_adjoints(Moved *m, const Series *s)
{
    Lower *p = m->p;
    int n = 0;
    for (const Site *t = s->sites; t; t = t->next) n++;
    const Site **site = NEW_N(p->g->arena, const Site *, n + 1);
    n = 0;
    for (const Site *t = s->sites; t; t = t->next) site[n++] = t;
    Node *lane = enter(p, NODE_LANE), *along = enter(p, NODE_LOOP);
    along->loop.how = s->backward ? SHARE_SERIAL : SHARE_BACKWARD;
    along->loop.n = 1;
    along->loop.index[0] = s->along;
    while (n-- > 0) {
        const Site *t = site[n];
        const Plates *plates = &t->plates;
        Factor f = site_factor(t, adjoint_of(m, t->var));
        Derivative *terms;
        const char *why;
        f.plates = (Plates){.n = plates->n + 1, .index = NEW_N(p->g->arena, Index *, plates->n + 1), .guard = plates->guard};
        f.plates.index[0] = s->along;
        for (int i = 0; i < plates->n; i++) f.plates.index[1 + i] = plates->index[i];
        if (!derivatives(p->g, &f, m->moving.var, m->moving.n, &terms, &why)) abort();      // the schedule has asked
        bool any = false, within = false;
        for (const Derivative *d = terms; d; d = d->next) any |= in_series(s, d->ref->var);
        if (!any) continue;
        const bool row = plates->n && reads_its_row(s, t);         // then rows go backward, too, each element with all its terms
        for (int i = 0; i < plates->n; i++) within |= plates->guard && ex_mentions_index(plates->guard, plates->index[i]);
        Node *test = plates->guard && !within ? enter(p, NODE_IF) : NULL, *loop[MAX_PLATES];
        if (test) test->test.condition = plates->guard;
        for (int i = 0; i < plates->n && row; i++) {
            loop[i] = enter(p, NODE_LOOP);
            loop[i]->loop.how = SHARE_BACKWARD;
            loop[i]->loop.n = 1;
            loop[i]->loop.index[0] = plates->index[i];
        }
        Node *inner = row && within ? enter(p, NODE_IF) : NULL;
        if (inner) inner->test.condition = plates->guard;
        for (const Derivative *d = terms; d; d = d->next) {
            if (!in_series(s, d->ref->var)) continue;
            Loops l = {.guard = test || inner ? NULL : d->loops.guard};
            for (int i = row ? 1 + plates->n : 1; i < d->loops.n; i++) l.index[l.n++] = d->loops.index[i];
            Node *nest = enter_nest(p, NODE_NEST, &l, 0, NULL, NULL);
            nest->nest.moving = adjoint_of(m, d->ref->var);
            put_update(p, UPDATE_ADD, gradient_place(m, d->ref), as_computed(t, ex_mul2(d->weight, d->rest)));
            leave(p, nest);
        }
        if (inner) leave(p, inner);
        for (int i = plates->n - 1; i >= 0 && row; i--) leave(p, loop[i]);
        if (test) leave(p, test);
    }
    leave(p, along);
    leave(p, lane);
    put_barrier(p);
}

// What elements that are computed give to the block, and to others that they are made of: sums over the elements. Each statement is a factor, and terms by `but` are not for here.
static void put_sums(Moved *m, const char *stem, int n, const Factor *statement, const Site *const *site, const Series *but)
{
    Lower *p = m->p;
    Derivative **terms = NEW_N(p->g->arena, Derivative *, n + 1);
    for (int i = 0; i < n; i++) {
        const char *why;
        if (!derivatives(p->g, &statement[i], m->moving.var, m->moving.n, &terms[i], &why)) abort();      // the schedule has asked
        Derivative **d = &terms[i];
        while (*d) {
            if (but && in_series(but, (*d)->ref->var)) *d = (*d)->next;
            else {
                if (site) (*d)->weight = as_computed(site[i], (*d)->weight);
                if (site) (*d)->rest = as_computed(site[i], (*d)->rest);
                d = &(*d)->next;
            }
        }
    }
    for (int i = 0; i < n; i++)
        for (const Derivative *d = terms[i]; d; d = d->next)
            if (d->loops.n == statement[i].plates.n) declare_total(m, stem, d->ref, ex_num(0));
    for (int i = 0; i < n; i++) {
        const Loops l = loops_of(&statement[i].plates);
        Node *sum = NULL;
        int here = 0;
        for (const Derivative *d = terms[i]; d; d = d->next) {
            const Total *t = d->loops.n == l.n ? total_of(m->totals, d->ref) : NULL;
            if (!t) continue;
            if (sum && here++ > MOST_TOTALS) {
                leave(p, sum);
                sum = NULL;
            }
            if (!sum) {
                sum = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
                sum->nest.op = UPDATE_ADD;
                here = 1;
            }
            put_update(p, UPDATE_ADD, place_local(t->local), ex_mul2(d->weight, d->rest));
        }
        if (sum) leave(p, sum);
    }
    Node *lane = m->totals ? enter(p, NODE_LANE) : NULL;
    for (const Total *t = m->totals; t; t = t->next) put_update(p, UPDATE_ADD, gradient_place(m, t->ref), local_ref(t->local));
    if (lane) leave(p, lane);
    for (int i = 0; i < n; i++)
        for (Derivative *d = terms[i]; d; d = d->next) {
            if (d->loops.n == statement[i].plates.n && total_of(m->totals, d->ref)) continue;
            put_barrier(p);
            put_pending(m, &(Pending){.d = d, .weight = d->weight});
        }
    m->totals = NULL;
    m->last_total = &m->totals;
    put_barrier(p);
}

static void put_series(Moved *m, const Series *s)
{
    Lower *p = m->p;
    put(p, NODE_COMMENT)->text.lines = words(p, "%s", s->var[0]->name);
    if (!s->var[0]->sites->ode) put_adjoints(m, s);          // elements of a solution are not made of each other
    Factor *statement = NULL;
    const Site **site = NULL;
    int n = 0, size = 0, room = 0;
    for (int i = 0; i < s->n; i++)
        for (const Site *t = s->var[i]->sites; t; t = t->next) {
            ROOM(p->g->arena, statement, n, size);
            ROOM(p->g->arena, site, n, room);
            site[n] = t;
            statement[n++] = site_factor(t, adjoint_of(m, t->var));
        }
    put_sums(m, words(p, "by_%s", s->var[0]->name), n, statement, site, s);
}

// Arrays that are computed once, from the last to the first: it may read those before it.
static void put_once(Moved *m, const Once *o)
{
    if (!o) return;
    put_once(m, o->next);
    Expr *at[MAX_RANK];
    for (int k = 0; k < o->plates.n; k++) at[k] = ex_index(o->plates.index[k]);
    const Factor f = {.span = m->step->span, .plates = o->plates, .log_density = ex_mul2(ex_ref(adjoint_of(m, o->var), o->plates.n, at), o->value)};
    put(m->p, NODE_COMMENT)->text.lines = o->var->name;
    put_sums(m, words(m->p, "by_%s", o->var->name), 1, &f, NULL, NULL);
}

// Adjoints of Cholesky factors become those of the matrices, in place.
static void put_factored(Moved *m, const Factored *of)
{
    Lower *p = m->p;
    Var *adjoint = adjoint_of(m, of->var);
    put(p, NODE_COMMENT)->text.lines = of->var->name;
    Node *lane = enter(p, NODE_LANE), *n = put(p, NODE_FACTOR);
    n->factor.matrix = of->var;
    n->factor.adjoint = adjoint;
    leave(p, lane);
    put_barrier(p);
    const Factor f = matrix_factor(p->g, of->call->args[0], adjoint, of->span);
    put_sums(m, words(p, "by_%s", of->var->name), 1, &f, NULL, NULL);
}

static void put_inverse(Moved *m, const Inverse *of)
{
    Lower *p = m->p;
    put(p, NODE_COMMENT)->text.lines = of->inverse->name;
    Node *lane = enter(p, NODE_LANE), *n = put(p, NODE_FACTOR);
    n->factor.matrix = of->matrix;
    n->factor.inverse = of->inverse;
    n->factor.log_det = of->log_det;
    n->factor.adjoint = adjoint_of(m, of->inverse);
    n->factor.log_det_adjoint = adjoint_of(m, of->log_det);
    leave(p, lane);
    put_barrier(p);
    const Factor f = matrix_factor(p->g, of->of, n->factor.adjoint, m->step->span);
    put_sums(m, words(p, "by_%s", of->inverse->name), 1, &f, NULL, NULL);
}

// ---- spans ----

// Before the density: the rows of products, a few at a time. What they add up is where the density begins.
static void put_span(Moved *m, RowSpan *s, const Prepared *first)
{
    Lower *p = m->p;
    const char *stem = s == m->spans ? m->stem : words(p, "%s_%s", m->stem, s->product[0]->eta->name);
    note(p, "The log density of the rows of %s, and the weight of each predictor", s->product[0]->matrix->name);
    Kernel *k = open_kernel(p, KERNEL_SPAN, words(p, "rows_of_%s", stem), "wide");
    Var *const lp = m->lp;
    Total *const totals = m->totals, **const last_total = m->last_total;
    m->lp = local_new(p->g->arena, "lp");
    put_let(p, NULL, m->lp, ex_num(0), "wide")->let.grows = true;
    m->totals = NULL;
    m->last_total = &m->totals;
    for (const Prepared *r = first; r; r = r->next)
        for (const Derivative *d = r->span == s ? r->terms : NULL; d; d = d->next) declare_total(m, "slope", d->ref, ex_num(0));
    s->totals = m->totals;
    for (const Prepared *r = first; r; r = r->next)
        if (r->span == s) put_factor(m, first, r);
    int n = 1;
    for (const Total *t = s->totals; t; t = t->next) n++;
    s->sums = work_array(p, ROLE_TOTALS, words(p, "sums_%s", stem), 1, (Expr *[]){ex_num(n)});
    n = 1;
    put_update(p, UPDATE_SET, place_element(ex_ref(s->sums, 1, (Expr *[]){ex_num(n++)})), local_ref(m->lp))->update.how = STORE_SPAN;
    for (const Total *t = s->totals; t; t = t->next)
        put_update(p, UPDATE_SET, place_element(ex_ref(s->sums, 1, (Expr *[]){ex_num(n++)})), local_ref(t->local))->update.how = STORE_SPAN;
    m->lp = lp;
    m->totals = totals;
    m->last_total = last_total;
    close_kernel(p);
    Launch *l = launch(p, LAUNCH_ROW_PRODUCTS, k);
    with_extent(l, s->n);
    with_name(l, s->sums);
    with_extent(l, ex_num(n - 1));
    for (int i = 0; i < s->nproducts; i++) {
        with_product(l, s->product[i]);
        reads_rows(p, s->product[i]->matrix->dim[1]);
    }
}

// What the rows of all spans have added up for an element that is named by numbers.
static Expr *from_spans(const Moved *m, const Expr *ref)
{
    Expr *sum = ex_num(0);
    for (const RowSpan *s = m->spans; s; s = s->next) {
        int n = ref ? 2 : 1;
        const Total *t = s->totals;
        for (; t && ref && t->ref != ref; t = t->next) n++;
        if (t || !ref) sum = ex_add2(sum, ex_ref(s->sums, 1, (Expr *[]){ex_num(n)}));
    }
    return sum;
}

static void put_span_gradient(Moved *m, const RowSpan *s)
{
    for (int i = 0; i < s->nproducts; i++) {
        const Product *r = s->product[i];
        Loops l;
        Expr *x = whole(r->coefficients, &l);
        l.guard = NULL;
        Node *n = each_element(m, x, &l);
        put_update(m->p, UPDATE_ADD, gradient_place(m, x), ex_ref(r->out, x->nargs, x->args));
        leave(m->p, n);
    }
    put_barrier(m->p);
}

// ---- the density, and its gradient by the coordinates ----

// The log density by the coordinates, and by the variables.
enum { BY_COORDINATES = 1, BY_VARIABLES = 2 };

static Expr *density_place(const Moved *m, int which) { return ex_ref(m->density, 1, (Expr *[]){ex_num(which)}); }

static void put_density_store(Moved *m, int which)
{
    Lower *p = m->p;
    if (which == BY_COORDINATES && !m->totals) {
        Node *last = put_update(p, UPDATE_SET, place_element(density_place(m, which)), local_ref(m->lp));
        if (p->open->kind == KERNEL_TEAM) last->update.how = STORE_LAST;
        return;
    }
    put_barrier(p);
    Node *lane = enter(p, NODE_LANE);
    put_update(p, UPDATE_SET, place_element(density_place(m, which)), local_ref(m->lp));
    for (const Total *t = m->totals; t; t = t->next) put_update(p, UPDATE_ADD, gradient_place(m, t->ref), local_ref(t->local));
    m->totals = NULL;
    m->last_total = &m->totals;
    leave(p, lane);                              // all wait for it
}

// Of several ends this one, up to rounding: the outermost was found at the variables, and this end may be written in their coordinates, log(a) as that of a.
static Expr *is_outermost(Expr *end, Expr *outermost)
{
    Expr *size = ex_add2(ex_call1("abs", outermost), ex_num(1e-4));
    return ex_call2("<=", ex_call1("abs", ex_sub(end, outermost)), ex_mul2(ex_num(1e-12), size));
}

// What moving ends of a variable give to the variables that they are made of.
static void put_end_slopes(Moved *m, int i)
{
    Lower *p = m->p;
    const Ends *ends = &m->ends[i];
    Loops l;
    Expr *x = whole(m->step->block[i], &l), *q = of_ref(m, m->position, x), *g = of_ref(m, m->gradient, x);
    Node *n = each_element(m, x, &l);
    for (int side = 0; side < 2; side++)
        put_update(p, UPDATE_SET, place_element(ex_ref(ends->slope[side], x->nargs, x->args)), ex_call(side ? "line_by_upper" : "line_by_lower", 4, (Expr *[]){q, end_of(ends, 0, x), end_of(ends, 1, x), g}));
    leave(p, n);
    put_barrier(p);
    for (const Bound *b = bounds_of(m, m->step->block[i]); b; b = b->next) {
        Factor f = *b->f;
        Expr *ref = b->term->args[0], *sum = ex_num(0);
        for (int side = 0; side < 2; side++) {
            Expr *end = b->term->args[1 + side];
            if (!reads_block(m, end)) continue;
            Expr *decides = is_outermost(end, end_of(ends, side, ref));
            sum = ex_add2(sum, ex_call3("if_else", decides, ex_mul2(end, ex_ref(ends->slope[side], ref->nargs, ref->args)), ex_num(0)));
        }
        if (ex_is_num(sum, 0)) continue;
        f.log_density = sum;
        Derivative *terms;
        const char *why;
        if (!derivatives(p->g, &f, m->step->block, m->step->nblock, &terms, &why)) abort();       // order_ends has asked
        for (Derivative *d = terms; d; d = d->next) {
            Pending w = {.d = d, .weight = d->weight};
            put_pending(m, &w);
            put_barrier(p);
        }
    }
}

// What vectors give to the factor that they share, and by way of it to the variables that this is made of; their own derivatives, and those by their centres.
static void put_vector_slopes(Moved *m, int i)
{
    Lower *p = m->p;
    const Root *r = m->centring[i].root;
    const Var *v = m->step->block[i];
    Loops l;
    Expr *x = whole(v, &l), *k = ex_index(v->own[v->rank - 1]), *diagonal = ex_call1("log", ex_ref(r->array, 2, (Expr *[]){k, k})), *share = of_ref(m, m->shares, x);
    Node *n = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
    n->nest.op = UPDATE_ADD;
    put_update(p, UPDATE_ADD, place_local(m->lp), ex_mul(3, (Expr *[]){ex_num(r->precision ? -1 : 1), share, diagonal}));
    leave(p, n);
    put_barrier(p);
    put_whitened(m, i, TRANSFORM_CHAIN);
    if (!r->slope) return;
    put_fill(p, r->slope, count_dims(r->slope, 0, 2), false);
    put_barrier(p);
    Index *j = index_new(intern("j"), ex_num(1), v->dim[v->rank - 1]), *below = index_new(v->own[v->rank - 1]->name, ex_num(1), ex_sub(ex_index(j), ex_num(1)));
    Expr *row[MAX_RANK], *column[MAX_RANK], **at = NEW_N(p->g->arena, Expr *, 4);
    for (int i = 0; i < v->rank; i++) row[i] = column[i] = x->args[i];
    row[v->rank - 1] = at[0] = ex_index(j);
    column[v->rank - 1] = at[1] = ex_index(below);
    at[2] = at[3] = k;
    Loops pairs = l;
    pairs.index[pairs.n - 1] = j;
    pairs.index[pairs.n++] = below;
    n = enter_nest(p, NODE_REDUCE, &pairs, 2, at, r->slope->dim);
    put_update(p, UPDATE_ADD, place_element(ex_ref(r->slope, 2, at)), ex_mul2(ex_ref(r->left, v->rank, row), ex_ref(r->right, v->rank, column)));
    leave(p, n);
    put_barrier(p);
    n = enter_nest(p, NODE_REDUCE, &l, 2, at + 2, r->slope->dim);
    put_update(p, UPDATE_ADD, place_element(ex_ref(r->slope, 2, at + 2)), like(r->pivot, x));
    leave(p, n);
    put_barrier(p);
    Factor f = matrix_factor(p->g, ex_ref(r->slope, 0, NULL), r->slope, m->step->span);
    Expr *sub[] = {ex_index(f.plates.index[0]), ex_index(f.plates.index[1])};
    if (r->matrix) {
        Node *lane = enter(p, NODE_LANE), *factor = put(p, NODE_FACTOR);
        factor->factor.matrix = r->array;
        factor->factor.adjoint = r->slope;
        leave(p, lane);
        put_barrier(p);
        f = matrix_factor(p->g, r->matrix, r->slope, m->step->span);
    } else f.log_density = ex_mul2(ex_ref(r->slope, 2, sub), element_of_root(r, sub));
    put_sums(m, words(p, "by_root_%s", v->name), 1, &f, NULL, NULL);
}

// What a standardised variable gives to the variables that its centre and its spread are made of, and its own derivatives.
static void put_centring_slopes(Moved *m, int i)
{
    Lower *p = m->p;
    const Centring *c = &m->centring[i];
    if (recursion_of(c->priors)) put_recursion_slopes(m, i);
    put_barrier(p);
    if (c->root) put_vector_slopes(m, i);
    else {
        Loops l;
        Expr *x = whole(m->step->block[i], &l), *g = of_ref(m, m->gradient, x), *share = share_of(m, x), *scale = like(c->scale, x), *spread = like(c->spread, x);
        Node *n = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
        n->nest.op = UPDATE_ADD;
        put_update(p, UPDATE_ADD, place_local(m->lp), ex_mul2(share, ex_call1("log", spread)));
        put_update(p, UPDATE_SET, place_element(like(c->slope[0], x)), ex_call3("standard_by_centre", share, scale, g));
        put_update(p, UPDATE_SET, place_element(like(c->slope[1], x)), ex_call("standard_by_spread", 5, (Expr *[]){x, share, like(c->centre, x), spread, g}));
        put_update(p, UPDATE_SET, place_element(g), ex_mul2(g, scale));
        leave(p, n);
        put_barrier(p);
    }
    for (const Prior *r = c->priors; r; r = r->next) {
        Factor f = *r->f;
        f.log_density = ex_mul2(r->centre, like(c->slope[0], r->element));
        if (!c->root) f.log_density = ex_add2(f.log_density, ex_mul2(r->spread, like(c->slope[1], r->element)));
        Derivative *terms;
        const char *why;
        if (!derivatives(p->g, &f, m->step->block, m->step->nblock, &terms, &why)) abort();       // is_simple has asked
        for (Derivative *d = terms; d; d = d->next) {
            if (d->ref->var == m->step->block[i]) continue;
            put_pending(m, &(Pending){.d = d, .weight = d->weight});
            put_barrier(p);
        }
    }
}

// By the chain rule: d/dq = d/dx dx/dq + d log |dx/dq| / dq, from the last variable to the first: what comes later may have ends that move with what comes before. Elements that do
// not exist are independent and standard normal.
static void put_chain_rule(Moved *m)
{
    Lower *p = m->p;
    for (int o = m->step->nblock - 1; o >= 0; o--) {
        const int i = m->order[o];
        Var *v = m->step->block[i];
        const Ends *ends = &m->ends[i];
        if (ends->slope[0]) put_end_slopes(m, i);
        Loops l;
        if (m->tied[i].slope) {
            put_tied_chain(m, v);
            continue;
        }
        Expr *x = whole(v, &l), *q = of_ref(m, m->position, x), *g = of_ref(m, m->gradient, x);
        if (m->centring[i].priors) put_centring_slopes(m, i);
        if (!is_free(ends)) {
            Expr *log_slope = transform(ends, LOG_SLOPE, q, x), *value = ex_add2(ex_mul2(g, transform(ends, SLOPE, q, x)), transform(ends, BEND, q, x));
            Node *n = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
            n->nest.op = UPDATE_ADD;
            put_update(p, UPDATE_ADD, place_local(m->lp), log_slope);
            put_update(p, UPDATE_SET, place_element(g), value);
            leave(p, n);
        }
        if (!l.guard) continue;
        l.guard = ex_call1("!", l.guard);
        Node *n = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
        n->nest.op = UPDATE_ADD;
        put_update(p, UPDATE_ADD, place_local(m->lp), ex_mul2(ex_num(-0.5), ex_pow(q, 2)));
        put_update(p, UPDATE_SET, place_element(g), ex_neg(q));
        leave(p, n);
    }
}

static Prepared *prepare_all(Moved *m)
{
    Prepared *first = NULL, **last = &first;
    for (int i = 0; i < m->step->nuts.n; i++) {
        Prepared *r = prepare(m, m->step->nuts.factor[i]);
        if (!r) continue;
        *last = r;
        last = &r->next;
    }
    for (const Factor *f = m->p->g->written; f; f = f->next) {           // of a model that has been centred: modes are those of the model as written
        Factor here = *f;
        here.log_density = ex_mul2(local_ref(local_new(m->p->g->arena, "FOR_MODES")), f->log_density);
        bool moves = false;
        for (int i = 0; i < m->step->nblock; i++) moves |= ex_reads(f->log_density, m->step->block[i]);
        Prepared *r = moves ? prepare(m, &here) : NULL;
        if (!r) continue;
        *last = r;
        last = &r->next;
    }
    return first;
}

static void put_density(Moved *m, Prepared *first)
{
    Lower *p = m->p;
    bool whole_arrays = false;
    for (const Prepared *r = first; r; r = r->next) {
        const Loops l = loops_of(&r->f.plates);
        whole_arrays |= needs_own_array(r->f.log_density, &l);
        for (const Derivative *d = r->terms; d; d = d->next) whole_arrays |= needs_own_array(ex_mul2(d->weight, d->rest), &d->loops);
    }
    for (RowSpan *s = m->spans; s; s = s->next) put_span(m, s, first);
    comment_step(p, m->step);
    Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, "density_%s", m->stem), "wide");
    k->by_one = whole_arrays;
    put_offsets(m);
    m->lp = local_new(p->g->arena, "lp");
    put_let(p, NULL, m->lp, from_spans(m, NULL), "wide")->let.grows = true;
    for (const Prepared *r = first; r; r = r->next)
        for (const Derivative *d = r->terms; d; d = d->next) declare_total(m, "slope", d->ref, from_spans(m, d->ref));
    put_fill(p, m->gradient, (Count){1, {m->size}}, false);
    for (int i = 0; i < m->step->nblock; i++)
        if (m->tied[i].slope) put_fill(p, m->tied[i].slope, count_dims(m->tied[i].slope, 0, m->tied[i].slope->rank), false);
    for (int i = m->step->nblock; i < m->moving.n; i++) put_fill(p, m->adjoint[i], count_dims(m->adjoint[i], 0, m->adjoint[i]->rank), false);
    put_barrier(p);
    for (const RowSpan *s = m->spans; s; s = s->next) put_span_gradient(m, s);
    for (const Prepared *r = first; r; r = r->next)
        if (!r->span) put_factor(m, first, r);
    bool rows = false;
    for (Pending *w = m->pending; w; w = w->next) {
        Launches *const list = p->launches;
        Launches later = {0};
        p->launches = &later;
        const bool one = row_sums_of(m, w);
        p->launches = list;
        if (!one) continue;
        if (!rows) {                             // the weights are filled by the kernel that ends here
            put_density_store(m, BY_VARIABLES);
            close_kernel(p);
            launch_team(p, k);
        }
        rows = true;
        if (!later.first) continue;              // one pass serves several
        if (!p->launches->first) p->launches->last = &p->launches->first;
        *p->launches->last = later.first;
        p->launches->last = later.last;
    }
    if (rows) {
        note(p, "The gradient of the log density of %s, from what %s and the passes over rows have left", m->step->description->what, k->name);
        k = open_kernel(p, KERNEL_TEAM, words(p, "gradient_%s", m->stem), "wide");
        k->by_one = whole_arrays;
        put_offsets(m);
        m->lp = local_new(p->g->arena, "lp");
        put_let(p, NULL, m->lp, density_place(m, BY_VARIABLES), "wide")->let.grows = true;
    } else put_density_store(m, BY_VARIABLES);
    put_all_pending(m);
    if (m->moving.nseries || m->moving.nfactored || m->inverses || m->once) put_barrier(p);
    put_once(m, m->once);
    for (const Inverse *i = m->inverses; i; i = i->next) put_inverse(m, i);
    for (int i = 0; i < m->moving.nfactored; i++) put_factored(m, &m->moving.factored[i]);
    for (int i = m->moving.nseries - 1; i >= 0; i--) put_series(m, m->moving.series[i]);
    put_chain_rule(m);
    put_density_store(m, BY_COORDINATES);
    close_kernel(p);
    launch_team(p, k);
}

// 0 is what a setting is that is not written.
static void set_number(Launch *l, const char *name, double value)
{
    if (value == 0) return;
    with_number(l, value);
    as_setting(l, name);
}

// What the transform adds to the log density and to its gradient where the density has been asked for: modes by the variables leave it out.
static void put_jacobian(Moved *m)
{
    Lower *p = m->p;
    bool any = false;
    for (int i = 0; i < m->step->nblock; i++) any |= m->tied[i].slope || !is_free(&m->ends[i]) || m->centring[i].priors || m->step->block[i]->exists;
    if (!any) return;
    note(p, "log |dx/dq| and its gradient: what the log density of the coordinates has besides that of %s", m->step->description->subject);
    Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, "jacobian_%s", m->stem), "wide");
    put_offsets(m);
    m->lp = local_new(p->g->arena, "lp");
    put_let(p, NULL, m->lp, ex_num(0), "wide")->let.grows = true;
    put_fill(p, m->gradient, (Count){1, {m->size}}, false);
    for (int i = 0; i < m->step->nblock; i++)
        if (m->tied[i].slope) put_fill(p, m->tied[i].slope, count_dims(m->tied[i].slope, 0, m->tied[i].slope->rank), false);
    put_barrier(p);
    put_chain_rule(m);
    put_density_store(m, BY_COORDINATES);
    close_kernel(p);
    launch_team(p, k);
}

void step_nuts(Lower *p, const Step *s, StepCode *code)
{
    Moved m = {.p = p, .step = s, .stem = s->block[0]->name};
    Arena *a = p->g->arena;
    m.last_total = &m.totals;
    m.last_pending = &m.pending;
    m.offset = NEW_N(a, Expr *, s->nblock);
    m.ends = NEW_N(a, Ends, s->nblock);
    m.order = NEW_N(a, int, s->nblock);
    m.tied = NEW_N(a, Tied, s->nblock);
    m.centring = NEW_N(a, Centring, s->nblock);
    m.size = ex_num(0);
    for (int i = 0; i < s->nblock; i++) {
        const Var *v = s->block[i];
        m.tied[i] = tied_new(p, v);
        m.size = ex_add2(m.size, coordinates_of(&m, v));
        m.ends[i] = (Ends){.number = {v->lower_number, v->upper_number}};
    }
    m.moving = block_with_series(p->g, s->block, s->nblock, s->nuts.sums);
    for (int i = 0; i < s->nblock; i++)
        if (is_angle(&m, s->block[i])) m.ends[i] = (Ends){.number = {-INFINITY, INFINITY}, .turns = true};
    for (int i = 0; i < s->nblock && s->nuts.step == 0; i++) m.centring[i].priors = priors_of(&m, s->block[i], &m.centring[i].root);
    m.adjoint = NEW_N(a, Var *, m.moving.n + 1);
    for (int i = 0; i < m.moving.nfactored; i++) {
        Factored *of = &m.moving.factored[i];
        int k = 0;
        while (m.moving.var[k] != of->var) k++;
        m.moving.var[k] = of->var = work_array(p, ROLE_BLOCK, words(p, "%s_%s", of->var->name, m.stem), 2, of->var->dim);
    }
    for (int i = s->nblock; i < m.moving.n; i++) m.adjoint[i] = work_array(p, ROLE_BLOCK, words(p, "adjoint_%s", m.moving.var[i]->name), m.moving.var[i]->rank, m.moving.var[i]->dim);
    m.position = work_array(p, ROLE_BLOCK, words(p, "position_%s", m.stem), 1, &m.size);
    m.gradient = work_array(p, ROLE_BLOCK, words(p, "gradient_%s", m.stem), 1, &m.size);
    m.density = work_array(p, ROLE_BLOCK, words(p, "log_density_%s", m.stem), 1, (Expr *[]){ex_num(2)});
    Expr *room = ex_add2(ex_num(NUTS_HEADER), ex_mul2(ex_num(NUTS_VECTORS), m.size));
    m.machine = work_array(p, ROLE_TUNING, words(p, "nuts_%s", m.stem), 1, &room);
    Var *diagnostics = work_array(p, ROLE_DIAGNOSTICS, words(p, "moves_%s", m.stem), 1, (Expr *[]){ex_num(NUTS_DIAGNOSTICS)});
    put_ends(&m);
    put_enter(&m);
    Launches *const sweep = p->launches;
    code->density_name = words(p, "density_of_%s", m.stem);
    p->launches = &code->density;
    Prepared *first = prepare_all(&m);
    const Kernel *place = put_place(&m);
    launch_team(p, place);
    put_density(&m, first);
    code->jacobian_name = words(p, "jacobian_of_%s", m.stem);
    p->launches = &code->jacobian;
    put_jacobian(&m);
    p->launches = sweep;
    const char *names = "";
    for (int i = 0; i < s->nblock; i++) names = words(p, "%s%s%s", names, i ? ", " : "", s->block[i]->name);
    code->machine = m.machine;
    code->diagnostics = diagnostics;
    Launch *l = launch(p, LAUNCH_NUTS, NULL);
    with_function(l, code->density_name);
    with_stream(l, s->block[0]);
    with_name(l, m.machine);
    with_name(l, m.position);
    with_name(l, m.density);
    with_name(l, m.gradient);
    with_name(l, diagnostics);
    with_string(l, names), as_setting(l, "name");
    with_extent(l, m.size), as_setting(l, "coordinates");
    with_extent(l, room), as_setting(l, "room");
    bool alone = true, imputed = false;          // nothing else changes what the density reads: where the chain still stands where the move has left it, nothing is evaluated again
    for (const Step *o = p->g->steps; o; o = o->next) {
        alone &= o == s || o->imputes || (s->competition && o->competition == s->competition);
        imputed |= o->imputes;
    }
    if (alone) with_function(l, imputed ? "GM_UNLESS_MISSING" : "GM_ALONE"), as_setting(l, "alone");
    set_number(l, "marginal", s->collapsed || s->over_sum);
    set_number(l, "competition", s->competition ? s->competition->number : 0);
    if (s->nuts.step == 0) set_number(l, "accept", s->nuts.accept);
    if (s->nuts.steps == 0 && !s->nuts.chees) set_number(l, "depth", s->nuts.depth);
    set_number(l, "steps", s->nuts.steps);
    set_number(l, "step", s->nuts.step);
    if (s->nuts.anneal > 1) set_number(l, "anneal", s->nuts.anneal);
    const char *summed = "";
    for (int i = 0; i < p->g->nvars; i++) {
        const Var *v = p->g->vars[i];
        if (s->over_sum && !s->competition && v->summed && v->summed <= s->nuts.sums) summed = words(p, "%s%s%s", summed, *summed ? ", " : "", v->name);
    }
    for (int i = 0; s->competition && i < s->competition->nsummed; i++) summed = words(p, "%s%s%s", summed, *summed ? ", " : "", s->competition->summed[i]->name);
    if (*summed) with_string(l, summed), as_setting(l, "summed");
    if (code->jacobian.first) with_function(l, code->jacobian_name), as_setting(l, "jacobian");
    if (m.shares) with_function(l, words(p, "gm_of(%s)", m.next_shares->name)), as_setting(l, "standardised");
    if (s->nuts.named && !s->nuts.steps) with_function(l, s->nuts.chees ? "GM_BY_CHEES" : "GM_BY_NUTS"), as_setting(l, "by");
    static const char *const kinds[] = {NULL, "METRIC_DIAGONAL", "METRIC_LOW_RANK", "METRIC_DENSE"};
    if (s->nuts.metric) with_function(l, kinds[s->nuts.metric]), as_setting(l, "metric");
    launch_team(p, place);
}
