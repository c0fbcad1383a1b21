// gradient.c -- derivatives of a factor's log density by the elements of unknowns, by algebra.
//
//   before   -(y[i] - a - sum(j in 1:p, X[i, j]*b[j]))^2/(2*s^2) over i in 1:N
//   after    a       gets   w                over i             w = (y[i] - a - sum(j in 1:p, X[i, j]*b[j]))/s^2
//            b[j]    gets   w * X[i, j]      over i, j
//
// Reverse accumulation (Griewank and Walther 2008, Evaluating Derivatives, chapter 3): from the density down to its leaves each expression gets its adjoint, the
// derivative of the density by it, which is the sum over the expressions that it is part of of their adjoints times local derivatives. Expressions are shared, and parts are
// older than what they are part of: in the order from the youngest to the oldest an adjoint is complete when its turn comes, and each is computed once. A sum is opened: its
// terms get its adjoint, for each value of its index; what does not depend on the index is brought out again, as the sum of what the terms gave it.
// Local derivatives of functions are the columns of front/functions.def.
// Definitions whose elements are computed from each other (series.c) stand in the block beside its unknowns, as arrays with an adjoint each: their statements, times the adjoint of the
// element that they compute, are differentiated like factors, which passes adjoints on to what the elements are made of.
//
// Needs: factors.     Gives: the terms of the derivatives, as expressions.     Keeps: the graph.     Algebra: docs/gradients.md
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "gradient.h"
#include "../terms/var.h"
#include "../terms/plates.h"
#include "../terms/conditions.h"
#include "../terms/reads.h"
#include "../model/elaborate.h"
#include "../model/law.h"

// ---- derivatives of functions ----

typedef struct Slopes {
    Var  *argument[3];                   // x, y, z
    Expr *of[NFN][3];                    // by each argument; NULL: there is none
    bool  none[NFN][3];                  // 0 wherever the function is smooth
} Slopes;

// ---- Cholesky factors ----

static Look test_plate(const Expr *e, void *with) { (void)with; return e->kind == EX_INDEX && !e->index->height ? FOUND : LOOK; }

typedef struct Collecting { Graph *g; Span span; } Collecting;

static Look collect_factored(const Expr *e, void *with)
{
    const Collecting *c = with;
    Graph *g = c->g;
    if (e->kind != EX_CALL || e->fn != FN_cholesky_decompose || e->loose || ex_rank(e) != 2 || ex_find(e, test_plate, NULL)) return LOOK;
    Factored **last = &g->factored;
    int n = 1;
    for (; *last; last = &(*last)->next, n++)
        if ((*last)->call == e) return LOOK;
    Factored *f = *last = NEW(g->arena, Factored);
    f->call = (Expr *)e;
    f->span = c->span;
    f->var = NEW(g->arena, Var);
    *f->var = (Var){.name = intern(n > 1 ? arena_printf(g->arena, "factor_%d", n) : "factor"), .id = n, .kind = VAR_LET, .base = BASE_REAL, .rank = 2, .lower_number = -INFINITY, .upper_number = INFINITY};
    for (int k = 0; k < 2; k++) f->var->dim[k] = ex_dim(f->call, 0);
    return LOOK;
}

static Expr *element_of_factor(Expr *e, void *with)
{
    const Moving *b = with;
    if (e->kind != EX_AT || e->nargs != 3) return NULL;
    for (int i = 0; i < b->nfactored; i++)
        if (e->args[0] == b->factored[i].call) return ex_ref(b->factored[i].var, 2, e->args + 1);
    return NULL;
}

Expr *by_factors(const Moving *b, Expr *e) { return b->nfactored ? ex_map(e, element_of_factor, (void *)b) : e; }

Factor matrix_factor(const Graph *g, Expr *matrix, Var *adjoint, Span at)
{
    static const char *const names[] = {"j", "k"};
    Factor m = {.span = at};
    Expr *sub[2];
    m.plates = (Plates){.n = 2, .index = NEW_N(g->arena, Index *, 2)};
    for (int k = 0; k < 2; k++) sub[k] = ex_index(m.plates.index[k] = index_new(intern(names[k]), ex_num(1), k ? sub[0] : ex_dim(matrix, 0)));
    m.log_density = ex_mul2(ex_ref(adjoint, 2, sub), ex_at(matrix, 2, sub));
    return m;
}

static Look test_array(const Expr *e, void *with) { (void)with; return e->kind == EX_AT || (e->kind == EX_CALL && e->fn == FN_log_determinant) ? FOUND : LOOK; }

bool stands_alone(const Expr *call) { return !call->loose && ex_rank(call->args[0]) == 2 && !ex_find(call, test_plate, NULL) && !ex_find(call->args[0], test_array, NULL); }

// The columns dx, dy, dz of functions.def as expressions in x, y, z. They are read as densities of a small library.
bool read_derivatives(Graph *g)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    for (int fn = 1; fn < NFN; fn++)
        for (int k = 0; k < 3; k++) {
            const char *slope = function_rows[fn].derivative[k];
            if (slope && *slope && *slope != '?') fprintf(f, "distribution d%d_%d(real y, real z) { support real; log_density = %s; }\n", fn, k, slope);
        }
    fclose(f);
    Library rows = {0};
    const Source *s = source_from_string(g->arena, "functions.def", text);
    free(text);
    if (!front_parse_library(g->arena, s, g->diags, &rows) || !front_resolve_library(g->arena, &rows, g->diags)) return false;
    g->slopes = NEW(g->arena, Slopes);
    Expr *at[3];
    for (int k = 0; k < 3; k++) {
        Var *v = g->slopes->argument[k] = NEW(g->arena, Var);
        *v = (Var){.name = k == 0 ? "x" : k == 1 ? "y" : "z", .id = k, .kind = VAR_PATTERN, .base = BASE_REAL, .lower_number = -INFINITY, .upper_number = INFINITY};
        at[k] = ex_ref(v, 0, NULL);
    }
    const Distribution *d = rows.distributions;
    for (int fn = 1; fn < NFN; fn++)
        for (int k = 0; k < 3; k++) {
            const char *slope = function_rows[fn].derivative[k];
            g->slopes->none[fn][k] = slope && !*slope;
            if (!slope || !*slope || *slope == '?') continue;
            g->slopes->of[fn][k] = elaborate(g, d->log_density, bind_arguments(g, d, 2, at + 1, at[0]), 0, NULL);
            d = d->next;
        }
    for (const Factor *f = g->factors; f; f = f->next) ex_find(f->log_density, collect_factored, &(Collecting){g, f->span});
    return true;
}

typedef struct Arguments { const Slopes *slopes; Expr *const *args; } Arguments;

static Expr *fill(Expr *e, void *with)
{
    const Arguments *a = with;
    if (e->kind != EX_REF) return NULL;
    for (int k = 0; k < 3; k++)
        if (e->var == a->slopes->argument[k]) return a->args[k];
    return NULL;
}

// ---- sums and products of adjoints ----

static bool is_choice(const Expr *e) { return e->kind == EX_CALL && e->fn == FN_if_else; }

// A choice with a branch that is 0: what it is multiplied with counts in the other branch alone, and need not exist elsewhere.
static bool is_partial(const Expr *e)
{
    return is_choice(e) && (ex_is_num(e->args[1], 0) || ex_is_num(e->args[2], 0) || is_partial(e->args[1]) || is_partial(e->args[2]));
}

static bool all_partial(const Expr *e)
{
    if (e->kind != EX_ADD) return is_partial(e);
    for (int i = 0; i < e->nargs; i++)
        if (!is_partial(e->args[i])) return false;
    return true;
}

static Expr *choice(Expr *c, Expr *a, Expr *b) { return ex_call3("if_else", c, a, b); }

static Expr *plus(Expr *a, Expr *b);

// a + b, where choices by the same condition become one.
static Expr *plus_term(Expr *a, Expr *b)
{
    if (!is_choice(b)) return ex_add2(a, b);
    const int n = a->kind == EX_ADD ? a->nargs : 1;
    Expr *const *term = a->kind == EX_ADD ? a->args : &a;
    for (int i = 0; i < n; i++) {
        if (!is_choice(term[i]) || term[i]->args[0] != b->args[0]) continue;
        Expr *both = choice(b->args[0], plus(term[i]->args[1], b->args[1]), plus(term[i]->args[2], b->args[2]));
        return ex_add(3, (Expr *[]){a, ex_neg(term[i]), both});
    }
    return ex_add2(a, b);
}

static Expr *plus(Expr *a, Expr *b)
{
    if (b->kind != EX_ADD) return plus_term(a, b);
    for (int i = 0; i < b->nargs; i++) a = plus_term(a, b->args[i]);
    return a;
}

// When a partial choice, or a sum of them, is not 0.
static Expr *when_chosen(Expr *e)
{
    if (e->kind == EX_ADD && all_partial(e)) {
        Expr *any = when_chosen(e->args[0]);
        for (int i = 1; i < e->nargs; i++) any = ex_call2("||", any, when_chosen(e->args[i]));
        return any;
    }
    if (!is_partial(e)) return ex_num(!ex_is_num(e, 0));
    Expr *c = e->args[0], *yes = when_chosen(e->args[1]), *no = when_chosen(e->args[2]);
    if (ex_is_num(no, 0)) return ex_is_num(yes, 1) ? c : ex_call2("&&", c, yes);
    if (ex_is_num(yes, 0)) return ex_is_num(no, 1) ? ex_call1("!", c) : ex_call2("&&", ex_call1("!", c), no);
    return choice(c, yes, no);
}

enum { FEW_BRANCHES = 3, FEW_NESTED = 32 };

// Branches that are not 0 of a choice, or of a sum of partial ones, until there are more than enough. Those of a long chain of choices are many, too: each choice would look through all
// others.
static int branches_below(const Expr *e, int enough, int nested)
{
    const bool sum = e->kind == EX_ADD && all_partial(e);
    if (!is_choice(e) && !sum) return !ex_is_num(e, 0);
    if (nested == FEW_NESTED) return enough + 1;
    int n = 0;
    for (int i = !sum; i < e->nargs && n <= enough; i++) n += branches_below(e->args[i], enough - n, nested + 1);
    return n;
}

static int branches(const Expr *e, int enough) { return branches_below(e, enough, 0); }

// The product, within the branches of a partial choice: a factor is not evaluated where the choice is 0. Many branches stay together, since in a chain of definitions by case
// they would double with each.
static Expr *times(Expr *a, Expr *b)
{
    if (ex_is_num(a, 0) || ex_is_num(b, 0)) return ex_num(0);
    if (all_partial(a) && branches(a, FEW_BRANCHES) > FEW_BRANCHES) return choice(when_chosen(a), ex_mul2(a, b), ex_num(0));
    if (is_partial(a)) return choice(a->args[0], times(a->args[1], b), times(a->args[2], b));
    if (is_partial(b)) return choice(b->args[0], times(a, b->args[1]), times(a, b->args[2]));
    if (a->kind == EX_ADD && all_partial(a)) {
        Expr *sum = ex_num(0);
        for (int i = 0; i < a->nargs; i++) sum = plus(sum, times(a->args[i], b));
        return sum;
    }
    return ex_mul2(a, b);
}

static Look test_unsafe(const Expr *e, void *with)
{
    (void)with;
    if (e->kind == EX_REF) return SKIP;
    return (e->kind == EX_POW && (e->number < 0 || e->number != floor(e->number))) || e->kind == EX_AT || (e->kind == EX_CALL && !(function_rows[e->fn].traits & TRAIT_BOUNDED)) ? FOUND : LOOK;
}

// An adjoint where the condition c has the value `yes`: within the branches of a partial choice, so that choices by the same conditions meet again.
static Expr *chosen(Expr *c, Expr *e, bool yes)
{
    const bool few = branches(e, FEW_BRANCHES) <= FEW_BRANCHES;
    if (few && is_partial(e)) return choice(e->args[0], chosen(c, e->args[1], yes), chosen(c, e->args[2], yes));
    if (few && e->kind == EX_ADD && all_partial(e)) {
        Expr *sum = ex_num(0);
        for (int i = 0; i < e->nargs; i++) sum = plus(sum, chosen(c, e->args[i], yes));
        return sum;
    }
    return choice(c, yes ? e : ex_num(0), yes ? ex_num(0) : e);
}

// ---- scopes: the factor's instance, and within it the sums that were opened ----

typedef struct Pending { Expr *at, *adjoint; } Pending;

typedef struct Scope {
    struct Scope *outer;                 // NULL: the instance
    Index        *index;                 // of the sum that was opened
    Expr         *entry;                 // the adjoint of what was opened, in the scope around; adjoints within are without it. NULL in the instance
    int           n, size;
    Pending      *pending;               // expressions that have an adjoint and have not been looked at: seldom more than a few
} Scope;

typedef struct Opened { Index *outer, *index; Expr *lo, *hi; struct Opened *next; } Opened;
typedef struct Elements { Expr *array; Index *index[MAX_RANK]; struct Elements *next; } Elements;

typedef struct Reverse {
    const Graph  *g;
    const Factor *factor;
    Var *const   *block;
    int           nblock;
    uint64_t      vars;                  // bits of the variables that count
    Map           reads;                 // of an expression: whether it reads the block
    Opened       *opened;                // one index for all sums over one range in one place, so that their terms can be merged
    Elements     *elements;              // and one for all elements of an array
    Derivative   *first, **last;
    const char   *because;
} Reverse;

static bool in_block(const Reverse *r, const Var *v)
{
    for (int i = 0; i < r->nblock; i++)
        if (r->block[i] == v) return true;
    return false;
}

static bool reads_series(const Reverse *r, const Var *v)
{
    for (int i = 0; i < r->nblock && v->kind == VAR_SERIES; i++)
        if (series_reads(v->series, r->block[i])) return true;
    return false;
}

static bool reads(Reverse *r, const Expr *e)
{
    static char yes, no;
    if (!(e->vars & r->vars)) return false;
    if (e->var && (in_block(r, e->var) || reads_series(r, e->var))) return true;
    const void *known = map_get(&r->reads, e);
    if (known) return known == &yes;
    bool any = false;
    for (int i = 0; i < e->nargs && !any; i++) any = reads(r, e->args[i]);
    map_put(r->g->arena, &r->reads, e, any ? &yes : &no);
    return any;
}

static void give(Reverse *r, Scope *s, Expr *to, Expr *adjoint)
{
    if (ex_is_num(adjoint, 0) || !reads(r, to)) return;
    for (int i = 0; i < s->n; i++)
        if (s->pending[i].at == to) { s->pending[i].adjoint = plus(s->pending[i].adjoint, adjoint); return; }
    ROOM(r->g->arena, s->pending, s->n, s->size);
    s->pending[s->n++] = (Pending){to, adjoint};
}

static Pending youngest(Scope *s)
{
    int best = 0;
    for (int i = 1; i < s->n; i++)
        if (s->pending[i].at->id > s->pending[best].at->id) best = i;
    const Pending p = s->pending[best];
    s->pending[best] = s->pending[--s->n];
    return p;
}

static bool name_taken(const Reverse *r, const Scope *s, const char *name)
{
    const Plates *p = &r->factor->plates;
    for (int i = 0; i < p->n; i++)
        if (p->index[i]->name == name) return true;
    for (; s; s = s->outer)
        if (s->index && s->index->name == name) return true;
    return map_get(&r->g->taken, name) != NULL;
}

// A name that nothing around has. Those of var_element are left to the elements that the derivatives are for.
static const char *free_name(const Reverse *r, const Scope *s, const char *not)
{
    static const char *const names[] = {"j", "i", "a", "b", "c", "h"};
    for (int k = 0;; k++) {
        const int round = k / 6;
        const char *name = intern(round ? arena_printf(r->g->arena, "%s%d", names[k % 6], round + 1) : names[k % 6]);
        if (name != not && !name_taken(r, s, name)) return name;
    }
}

static Index *open_index(Reverse *r, const Scope *s, Expr *lo, Expr *hi)
{
    for (Opened *o = r->opened; o; o = o->next)
        if (o->outer == s->index && o->lo == lo && o->hi == hi) return o->index;
    Opened *o = NEW(r->g->arena, Opened);
    *o = (Opened){s->index, index_new(free_name(r, s, NULL), lo, hi), lo, hi, r->opened};
    r->opened = o;
    return o->index;
}

static Index *const *element_indices(Reverse *r, const Scope *s, Expr *array)
{
    for (Elements *e = r->elements; e; e = e->next)
        if (e->array == array) return e->index;
    Elements *e = NEW(r->g->arena, Elements);
    *e = (Elements){.array = array, .next = r->elements};
    for (int k = 0; k < ex_rank(array); k++) e->index[k] = index_new(free_name(r, s, k ? e->index[k - 1]->name : NULL), ex_num(1), ex_dim(array, k));
    r->elements = e;
    return e->index;
}

static void refuse(Reverse *r, const char *because) { if (!r->because) r->because = because; }

// ---- leaves ----

static Expr *weight_of(const Scope *s)
{
    while (s->outer && s->outer->entry) s = s->outer;
    return s->entry;
}

// What the sums that were opened between the outermost and s multiply the weight with, before s multiplies it further; of the loops in `open` (from the innermost) it holds
// the indices of those from `*from` on.
static Expr *inner_of(const Scope *s, Index *const *open, int n, int *from)
{
    Expr *e = ex_num(1);
    for (; s->outer && s->outer->entry; s = s->outer) e = times(s->entry, e);
    for (*from = 0; *from < n && !ex_mentions_index(e, open[*from]);) ++*from;
    return e;
}

static Expr *with_indices(Expr *e, Index *const *from, Index *const *to, int n)
{
    for (int k = 0; k < n; k++) e = ex_replace_index(e, from[k], ex_index(to[k]));
    return e;
}

// Terms of one element over the same loops with the same weight become one. A sum whose index the element does not have is a part of `rest`.
static void leaf(Reverse *r, Scope *s, Expr *ref, Expr *adjoint)
{
    Derivative d = {.factor = r->factor, .ref = ref, .weight = s->entry ? weight_of(s) : adjoint, .rest = s->entry ? adjoint : ex_num(1)};
    const Plates *p = &r->factor->plates;
    Index *open[MAX_LOOPS];
    int n = 0, kept = 0, from = 0;
    for (Scope *o = s; o; o = o->outer) {
        if (n + p->n == MAX_LOOPS) { refuse(r, "there are too many sums within each other"); return; }
        if (o->index) open[n++] = o->index;      // from the innermost
    }
    d.last = d.rest;
    d.inner = s->entry ? inner_of(s, open, n, &from) : ex_num(1);
    d.rest = times(d.inner, d.rest);
    Scope chain[MAX_LOOPS + 1] = {{0}};
    bool keep[MAX_LOOPS], all = true;
    for (int i = 0; i < n; i++) {
        keep[i] = ex_mentions_index(ref, open[i]);
        for (int k = 0; k < i; k++) keep[i] |= keep[k] && (ex_mentions_index(open[k]->lo, open[i]) || ex_mentions_index(open[k]->hi, open[i]));
        if (!keep[i]) d.rest = ex_reduce("sum", open[i], open[i]->lo, open[i]->hi, d.rest);
        all &= keep[i];
    }
    if (!all || from == n) d.inner = NULL;
    for (int i = n - 1; i >= 0; i--) {           // the others are named as if they had been opened alone
        if (!keep[i]) continue;
        Index *old = open[i], *new = old;
        if (kept < n - 1 - i) {
            Index *from[MAX_LOOPS] = {old}, *to[MAX_LOOPS] = {new = open_index(r, &chain[kept], old->lo, old->hi)};
            int renamed = 1;
            for (int k = i - 1; k >= 0; k--) {   // ranges of loops within hold those around them
                if (!keep[k]) continue;
                Expr *lo = with_indices(open[k]->lo, from, to, renamed), *hi = with_indices(open[k]->hi, from, to, renamed);
                if (lo == open[k]->lo && hi == open[k]->hi) continue;
                from[renamed] = open[k];
                to[renamed++] = open[k] = index_new(open[k]->name, lo, hi);
            }
            d.ref = with_indices(d.ref, from, to, renamed);
            d.rest = with_indices(d.rest, from, to, renamed);
        }
        chain[kept + 1] = (Scope){.outer = &chain[kept], .index = new};
        kept++;
    }
    d.loops.guard = p->guard;
    for (int i = 0; i < p->n; i++) d.loops.index[d.loops.n++] = p->index[i];
    for (int i = 1; i <= kept; i++) d.loops.index[d.loops.n++] = chain[i].index;
    d.ninner = d.inner ? d.loops.n - from : 0;
    if (all_partial(d.weight) && ex_find(d.rest, test_unsafe, NULL)) {
        d.rest = choice(when_chosen(d.weight), d.rest, ex_num(0));
        d.inner = NULL;
    }
    for (Derivative *q = r->first; q; q = q->next) {
        bool same = q->ref == d.ref && q->weight == d.weight && q->loops.n == d.loops.n;
        for (int i = 0; i < d.loops.n && same; i++) same = q->loops.index[i] == d.loops.index[i];
        if (!same) continue;
        q->rest = plus(q->rest, d.rest);
        if (q->inner == d.inner && d.inner) q->last = plus(q->last, d.last);
        else q->inner = NULL;
        if (!q->inner) { q->last = q->rest; q->ninner = 0; }
        return;
    }
    if (!d.inner) d.last = d.rest;
    *r->last = arena_copy(r->g->arena, &d, sizeof d);
    r->last = &(*r->last)->next;
}

// ---- one expression: its adjoint times local derivatives goes to its parts ----

static void walk(Reverse *r, Scope *s);

static void product(Reverse *r, Scope *s, Expr *e, Expr *adjoint)
{
    Expr **rest = malloc(sizeof *rest * (size_t)e->nargs);
    for (int k = 0; k < e->nargs; k++) {
        if (!reads(r, e->args[k])) continue;
        int n = 0;
        Expr *zero = NULL;                       // 0 log 0 = 0: the derivative of what a zero takes along is 0, too
        const bool pole = ex_has_pole(e->args[k]);
        for (int i = 0; i < e->nargs; i++)
            if (i != k) {
                rest[n++] = e->args[i];
                if (pole && ex_may_vanish(e->args[i])) zero = zero ? ex_mul2(zero, e->args[i]) : e->args[i];
            }
        Expr *others = ex_mul(n, rest);
        give(r, s, e->args[k], times(adjoint, zero ? choice(ex_call2("==", zero, ex_num(0)), ex_num(0), others) : others));
    }
    free(rest);
}

// Where all terms of a sum are 0, none has a weight: log_sum_exp over -inf, -inf, ...
static Look test_impossible(const Expr *e, void *with)
{
    (void)with;
    return (e->kind == EX_NUM && isinf(e->number)) || (e->kind == EX_REF && e->var->kind == VAR_SERIES) ? FOUND : LOOK;
}

static bool may_be_impossible(const Expr *term) { return ex_has_pole(term) || ex_find(term, test_impossible, NULL); }

static Expr *where_possible(Expr *sum, Expr *term, Expr *slope)
{
    if (!may_be_impossible(term)) return slope;
    return choice(ex_call2("<", ex_num(-INFINITY), sum), slope, ex_num(0));
}

// Of x^y the derivative is x^y times y/x, and the coordinate log x takes x back. x^(y - 1) may overflow where x rounded to an end
// and its powers go by its logarithm.
static bool is_positive_unknown(const Expr *x)
{
    if (x->kind != EX_REF || !var_unknown(x->var) || x->var->discrete) return false;
    return x->var->lower_number >= 0 && x->var->constraint == CONSTRAINT_NONE;
}

static void call(Reverse *r, Scope *s, Expr *e, Expr *adjoint)
{
    const Slopes *slopes = r->g->slopes;
    if (e->fn == FN_if_else) {
        give(r, s, e->args[1], chosen(e->args[0], adjoint, true));
        give(r, s, e->args[2], chosen(e->args[0], adjoint, false));
        return;
    }
    if (e->fn == FN_log_determinant) {           // d log|A| = sum over a, b of inverse(A)[b, a] dA[a, b]
        Expr *A = e->args[0];
        Index *const *at = element_indices(r, s, A);
        give(r, s, A, times(adjoint, ex_at(ex_call1("inverse", A), 2, (Expr *[]){ex_index(at[1]), ex_index(at[0])})));
        return;
    }
    for (int k = 0; k < e->nargs; k++) {
        if (!reads(r, e->args[k]) || (k < 3 && slopes->none[e->fn][k])) continue;
        if (k >= 3 || !slopes->of[e->fn][k]) {
            refuse(r, arena_printf(r->g->arena, e->nargs > 1 ? "no derivative of `%s` by its argument %d is known" : "no derivative of `%s` is known", e->name, k + 1));
            return;
        }
        Expr *slope = ex_map(slopes->of[e->fn][k], fill, &(Arguments){slopes, e->args});
        if (e->fn == FN_pow && k == 0 && is_positive_unknown(e->args[0])) slope = ex_mul2(ex_mul2(e->args[1], e), ex_pow(e->args[0], -1));
        if (e->fn == FN_log_sum_exp2 && may_be_impossible(e->args[0]) && may_be_impossible(e->args[1])) slope = where_possible(e, ex_add2(e->args[0], e->args[1]), slope);
        give(r, s, e->args[k], times(adjoint, slope));
    }
}

static Look test_is(const Expr *e, void *with) { return e == with ? FOUND : LOOK; }

static void reduction(Reverse *r, Scope *s, Expr *e, Expr *adjoint)
{
    if (reads(r, e->args[0]) || reads(r, e->args[1])) { refuse(r, "an unknown decides how many terms a sum has"); return; }
    Index *j = open_index(r, s, e->args[0], e->args[1]);
    Expr *term = ex_open(e, j), *slope;
    if (e->fn == FN_sum) slope = ex_num(1);
    else if (e->fn == FN_log_sum_exp) slope = where_possible(e, term, ex_call1("exp", ex_sub(term, e)));
    else if (e->fn == FN_prod) {                 // the product of the others: by division where no factor can be 0, or the adjoint divides by the product already
        Expr *part = times(adjoint, e);
        if (!ex_find(part, test_is, e)) {
            adjoint = part;
            slope = ex_pow(term, -1);
        } else if (ex_positive(term) && !ex_may_vanish(term)) slope = ex_div(e, term);
        else {
            Index *l = index_new(intern("l"), e->args[0], e->args[1]);
            slope = ex_reduce("prod", l, e->args[0], e->args[1], choice(ex_call2("==", ex_index(l), ex_index(j)), ex_num(1), ex_open(e, l)));
        }
    } else {
        refuse(r, arena_printf(r->g->arena, "no derivative of `%s` over many elements is known", e->name));
        return;
    }
    Scope in = {.outer = s, .index = j, .entry = adjoint};
    give(r, &in, term, slope);
    walk(r, &in);
}

// A whole array: its elements, each with the adjoint that is written in their indices.
static void elements(Reverse *r, Scope *s, Expr *array, Expr *adjoint)
{
    const int rank = ex_rank(array);
    Index *const *index = element_indices(r, s, array);
    Expr *at[MAX_RANK], *weight = ex_num(1), *rest = ex_num(1);
    const int n = adjoint->kind == EX_MUL ? adjoint->nargs : 1;
    for (int i = 0; i < n; i++) {
        Expr *factor = adjoint->kind == EX_MUL ? adjoint->args[i] : adjoint;
        bool own = false;
        for (int k = 0; k < rank; k++) own |= ex_mentions_index(factor, index[k]);
        if (own) rest = ex_mul2(rest, factor);
        else weight = ex_mul2(weight, factor);
    }
    Scope in[MAX_RANK];
    for (int k = 0; k < rank; k++) {
        at[k] = ex_index(index[k]);
        in[k] = (Scope){.outer = k ? &in[k - 1] : s, .index = index[k], .entry = k ? ex_num(1) : weight};
    }
    give(r, &in[rank - 1], ex_at(array, rank, at), rest);
    for (int k = rank - 1; k >= 0; k--) walk(r, &in[k]);
}

// An element of the solution of a differential equation: its inputs get the derivatives that the solver has integrated (ode.c).
static void solution(Reverse *r, Scope *s, Expr *e, Expr *adjoint)
{
    const char *why = NULL;
    const Ode *o = ode_of(r->g, e->args[0]);
    if (!o || !ode_differentiable(r->g, o, &why)) { refuse(r, why ? why : "no derivative of a solution that is no definition is known"); return; }
    Expr *at[MAX_RANK], *n = ex_dim(o->call, 1), *column = ex_num(0);
    const int rank = o->site->n + 1, last = rank - 1;
    memcpy(at, o->site->subscript, sizeof *at * (size_t)(rank - 3));
    at[rank - 3] = e->args[1];
    at[rank - 2] = e->args[2];
    for (int i = 0; i < o->ninputs; i++) {
        column = at[last] = ex_add2(column, ex_num(1));
        give(r, s, o->input[i], times(adjoint, ex_ref(o->slopes, rank, at)));
    }
    for (int i = 0; i < o->narrays; i++) {
        Expr *whole = ex_ref(o->array[i], 0, NULL), *place = ex_num(0), *size = ex_num(1);
        Index *const *index = element_indices(r, s, whole);
        for (int k = 0; k < o->array[i]->rank; k++) {
            place = ex_add2(ex_mul2(place, o->array[i]->dim[k]), ex_sub(ex_index(index[k]), ex_num(1)));
            size = ex_mul2(size, o->array[i]->dim[k]);
        }
        at[last] = ex_add(3, (Expr *[]){column, place, ex_num(1)});
        give(r, s, whole, times(adjoint, ex_ref(o->slopes, rank, at)));
        column = ex_add2(column, size);
    }
    if (!o->start_moves) return;
    for (int k = 1; n->kind == EX_NUM && k <= n->number; k++) {
        at[last] = ex_add2(column, ex_num(k));
        give(r, s, ex_at(o->start, 1, (Expr *[]){ex_num(k)}), times(adjoint, ex_ref(o->slopes, rank, at)));
    }
    if (n->kind == EX_NUM) return;
    at[last] = ex_add2(column, ex_index(element_indices(r, s, o->start)[0]));
    give(r, s, o->start, times(adjoint, ex_ref(o->slopes, rank, at)));
}

static void element(Reverse *r, Scope *s, Expr *e, Expr *adjoint)
{
    Expr *whole = e->args[0];
    for (int k = 1; k < e->nargs; k++)
        if (reads(r, e->args[k])) { refuse(r, "an unknown stands in a subscript"); return; }
    if (whole->kind == EX_CALL && whole->fn == FN_inverse && e->nargs == 3) {       // d inverse(A)[j, k] = -sum over a, b of inverse(A)[j, a] dA[a, b] inverse(A)[b, k]
        Index *const *at = element_indices(r, s, whole->args[0]);
        Expr *left = ex_at(whole, 2, (Expr *[]){e->args[1], ex_index(at[0])}), *right = ex_at(whole, 2, (Expr *[]){ex_index(at[1]), e->args[2]});
        give(r, s, whole->args[0], times(adjoint, ex_neg(ex_mul2(left, right))));
    } else if (whole->kind == EX_CALL && (whole->fn == FN_ode_rk45 || whole->fn == FN_ode_bdf) && e->nargs == 3) solution(r, s, e, adjoint);
    else if (whole->kind == EX_CALL && whole->fn == FN_cholesky_decompose && !stands_alone(whole))
        refuse(r, "the derivative of `cholesky_decompose` is known for a matrix that no loop changes, and that is not made of an inverse or another factor");
    else refuse(r, arena_printf(r->g->arena, "no derivative of `%s` is known", whole->kind == EX_CALL ? whole->name : "an array"));
}

// x[i]*b, or x[i] times a sum, as a term of a sum in the instance: all terms have the weight of the sum, and x[i] goes to the rest. Not a number: -b has the weight of -sum.
static bool linear_term(Reverse *r, Scope *s, Expr *term, Expr *adjoint)
{
    if (term->kind != EX_MUL) return false;
    Expr *unknown = NULL, *others = ex_num(1), *number = ex_num(1);
    for (int i = 0; i < term->nargs; i++) {
        Expr *f = term->args[i];
        if (f->kind == EX_NUM) number = f;
        else if (!reads(r, f)) others = ex_mul2(others, f);
        else if (unknown) return false;
        else unknown = f;
    }
    if (!unknown || ex_is_num(others, 1) || (unknown->kind != EX_REF && (unknown->kind != EX_REDUCE || unknown->fn != FN_sum)) || ex_has_pole(unknown)) return false;
    Scope in = {.outer = s, .entry = times(adjoint, number)};
    give(r, &in, unknown, others);
    walk(r, &in);
    return true;
}

static void visit(Reverse *r, Scope *s, Expr *e, Expr *adjoint)
{
    if (ex_rank(e) > 0) { elements(r, s, e, adjoint); return; }
    switch (e->kind) {
    case EX_REF:
        if (in_block(r, e->var)) leaf(r, s, e, adjoint);
        else if (reads_series(r, e->var)) refuse(r, arena_printf(r->g->arena, "`%s` is computed from its other elements, and no derivatives of such definitions are known", e->var->name));
        else refuse(r, "an unknown stands in a subscript");
        return;
    case EX_ADD:
        for (int i = 0; i < e->nargs; i++)
            if (s->entry || adjoint->kind == EX_NUM || !reads(r, e->args[i]) || !linear_term(r, s, e->args[i], adjoint)) give(r, s, e->args[i], adjoint);
        return;
    case EX_MUL: product(r, s, e, adjoint); return;
    case EX_POW: give(r, s, e->args[0], times(times(adjoint, ex_num(e->number)), ex_pow(e->args[0], e->number - 1))); return;
    case EX_CALL: call(r, s, e, adjoint); return;
    case EX_REDUCE: reduction(r, s, e, adjoint); return;
    case EX_AT: element(r, s, e, adjoint); return;
    case EX_NUM: case EX_INDEX: case EX_ARRAY: return;
    }
}

static void walk(Reverse *r, Scope *s)
{
    while (s->n && !r->because) {
        const Pending p = youngest(s);
        if (!s->index || ex_mentions_index(p.at, s->index)) { visit(r, s, p.at, p.adjoint); continue; }
        give(r, s->outer, p.at, times(s->entry, ex_reduce("sum", s->index, s->index->lo, s->index->hi, p.adjoint)));
    }
}

// ---- right sides of differential equations ----

bool ode_derivatives(const Graph *g, const Ode *o, int k, Derivative **terms, const char **because)
{
    Factor *f = NEW(g->arena, Factor);
    *f = (Factor){.span = o->span, .log_density = o->component[k]};
    if (o->each) f->plates = (Plates){.n = 1, .index = arena_copy(g->arena, &o->each, sizeof o->each)};
    Var **by = NEW_N(g->arena, Var *, o->narrays + 2);
    by[0] = o->state;
    by[1] = o->inputs;
    for (int i = 0; i < o->narrays; i++) by[2 + i] = o->array[i];
    return derivatives(g, f, by, o->narrays + 2, terms, because);
}

bool ode_differentiable(const Graph *g, const Ode *o, const char **because)
{
    const char *name = o->site->var->name;
    if (!o->slopes) {
        *because = arena_printf(g->arena, "`%s` is defined by several statements, or has too many dimensions", name);
        return false;
    }
    for (int k = 0; k < o->ncomponents; k++) {
        Derivative *terms;
        const char *why = NULL;
        if (ode_derivatives(g, o, k, &terms, &why)) continue;
        *because = arena_printf(g->arena, "in the right side of `%s`, %s", name, why);
        return false;
    }
    return true;
}

// ---- definitions that recur ----

bool in_series(const Series *s, const Var *v)
{
    for (int i = 0; i < s->n; i++)
        if (s->var[i] == v) return true;
    return false;
}

// Sums along a chain that is offered are there for moves that see it summed out; what they are made of is drawn afresh elsewhere.
static bool is_seen(const Graph *g, const Series *s, int sums)
{
    if (!s->apart) return true;
    for (int i = 0; i < g->nvars && sums > 0; i++) {
        const Var *v = g->vars[i];
        if (v->offered && v->messages && (v->messages->series == s || series_reads(v->messages->series, s->var[0]))) return true;
    }
    return false;
}

Moving block_with_series(const Graph *g, Var *const *block, int n, int sums)
{
    Moving b = {.n = n, .var = NEW_N(g->arena, Var *, n + g->nvars)};
    for (int i = 0; i < n; i++) b.var[i] = block[i];
    for (const Series *s = g->series; s; s = s->next) b.nseries++;
    b.series = NEW_N(g->arena, const Series *, b.nseries + 1);
    b.nseries = 0;
    for (const Series *s = g->series; s; s = s->next) {
        bool entered = false;
        for (int i = 0; i < n && s->var[0]->kind == VAR_SERIES && is_seen(g, s, sums); i++) entered |= series_reads(s, block[i]);
        if (!entered) continue;
        b.series[b.nseries++] = s;
        for (int i = 0; i < s->n; i++) b.var[b.n++] = s->var[i];
    }
    for (const Factored *f = g->factored; f; f = f->next) b.nfactored++;
    if (!b.nfactored) return b;
    b.factored = NEW_N(g->arena, Factored, b.nfactored);
    Var **all = NEW_N(g->arena, Var *, b.n + b.nfactored);
    b.nfactored = 0;
    memcpy(all, b.var, sizeof *all * (size_t)b.n);
    b.var = all;
    for (const Factored *f = g->factored; f; f = f->next) {
        bool read = false;
        for (int i = 0; i < n; i++) read |= ex_reads(f->call, block[i]);
        if (!read || !stands_alone(f->call)) continue;
        b.factored[b.nfactored++] = *f;
        b.var[b.n++] = f->var;
    }
    return b;
}

Factor site_factor(const Site *t, Var *adjoint) { return (Factor){.span = t->span, .plates = t->plates, .log_density = ex_mul2(ex_ref(adjoint, t->n, t->subscript), t->value)}; }

Var *adjoint_new(const Graph *g, const Var *v)
{
    Var *a = NEW(g->arena, Var);
    *a = (Var){.name = intern(arena_printf(g->arena, "adjoint_%s", v->name)), .id = v->id, .kind = VAR_LET, .base = BASE_REAL, .rank = v->rank, .lower_number = -INFINITY, .upper_number = INFINITY};
    memcpy(a->dim, v->dim, sizeof a->dim);
    return a;
}

bool series_differentiable(const Graph *g, const Moving *b, const char **because)
{
    for (int i = 0; i < b->nseries; i++)
        for (int k = 0; k < b->series[i]->n; k++) {
            const Var *v = b->series[i]->var[k];
            for (const Site *t = v->sites; t; t = t->next) {
                const Factor f = site_factor(t, adjoint_new(g, v));
                Derivative *terms;
                if (derivatives(g, &f, b->var, b->n, &terms, because)) continue;
                *because = arena_printf(g->arena, "of `%s` (line %d), which it enters: %s", v->name, span_line(t->span), *because);
                return false;
            }
        }
    for (int i = 0; i < b->nfactored; i++) {
        const Factored *of = &b->factored[i];
        const Factor f = matrix_factor(g, of->call->args[0], adjoint_new(g, of->var), of->span);
        Derivative *terms;
        if (derivatives(g, &f, b->var, b->n, &terms, because)) continue;
        *because = arena_printf(g->arena, "of a matrix of which cholesky_decompose is taken: %s", *because);
        return false;
    }
    return true;
}

bool derivatives_moving(const Graph *g, const Factor *f, const Moving *b, Derivative **out, const char **because)
{
    Factor by = *f;
    by.log_density = by_factors(b, f->log_density);
    const bool known = derivatives(g, &by, b->var, b->n, out, because);
    for (Derivative *d = known ? *out : NULL; d; d = d->next) d->factor = f;
    return known;
}

// What is nested deeper has derivatives that are far longer than itself: each level is written in those of all levels below it.
enum { MOST_CHOICES = 64, MOST_NESTED = 500 };

typedef struct Depth { int choices, all; } Depth;

static const Depth *depth_of(const Graph *g, Map *known, const Expr *e)
{
    Depth *d = map_get(known, e);
    if (d) return d;
    d = NEW(g->arena, Depth);
    for (int i = 0; i < e->nargs; i++) {
        const Depth *below = depth_of(g, known, e->args[i]);
        if (below->choices > d->choices) d->choices = below->choices;
        if (below->all > d->all) d->all = below->all;
    }
    d->all++;
    d->choices += is_choice(e);
    map_put(g->arena, known, e, d);
    return d;
}

static const char *too_deep(const Graph *g, const Factor *f)
{
    if (f->log_density->size < MOST_CHOICES) return NULL;
    Map known = {0};
    const Depth *d = depth_of(g, &known, f->log_density);
    if (d->choices > MOST_CHOICES) return arena_printf(g->arena, "more than %d choices stand one in the other, and derivatives are not written out beyond that", MOST_CHOICES);
    return d->all > MOST_NESTED ? arena_printf(g->arena, "more than %d operations stand one in the other, and derivatives are not written out beyond that", MOST_NESTED) : NULL;
}

bool derivatives(const Graph *g, const Factor *f, Var *const *block, int nblock, Derivative **out, const char **because)
{
    Reverse r = {.g = g, .factor = f, .block = block, .nblock = nblock};
    r.last = &r.first;
    for (int i = 0; i < nblock; i++) r.vars |= 1ull << (block[i]->id & 63);
    for (int i = 0; i < g->nvars; i++)
        if (reads_series(&r, g->vars[i])) r.vars |= 1ull << (g->vars[i]->id & 63);
    Scope instance = {0};
    r.because = too_deep(g, f);
    if (!r.because) give(&r, &instance, f->log_density, ex_num(1));
    walk(&r, &instance);
    *out = r.because ? NULL : r.first;
    if (because) *because = r.because;
    return !r.because;
}

// ---- for readers: what one element gets ----

// The lines of d log p / d v[element], from d log p / d v[subscripts] over loops; terms over the same loops are one line. A subscript that is one of the loops' indices, or that and
// a number, gives this index; any other becomes a condition.
typedef struct Solving { const Graph *g; int n; Expr *from[MAX_LOOPS], *to[MAX_LOOPS]; } Solving;

static Expr *solved(const Solving *s, Expr *e)
{
    for (int k = 0; e && k < s->n; k++) e = ex_replace(e, s->from[k], s->to[k]);
    return e;
}

static int loop_of(const Loops *l, const Expr *e, double *shift)
{
    *shift = 0;
    if (e->kind == EX_ADD && e->nargs == 2 && e->args[0]->kind == EX_NUM) { *shift = e->args[0]->number; e = e->args[1]; }
    for (int i = 0; i < l->n && e->kind == EX_INDEX; i++)
        if (l->index[i] == e->index) return i;
    return -1;
}

typedef struct Line { const char *loops; Expr *value; struct Line *next; } Line;      // sum(loops, value); loops "": the value

static void add_line(const Graph *g, Line **lines, const Derivative *d, Index *const *element)
{
    Solving s = {.g = g};
    bool taken[MAX_LOOPS] = {false};
    Expr *guard = d->loops.guard;
    for (int k = 0; k < d->ref->nargs; k++) {
        double shift;
        Expr *sub = d->ref->args[k], *key = ex_index(element[k]);
        const int at = loop_of(&d->loops, sub, &shift);
        if (at < 0 || taken[at]) { guard = ex_both(guard, ex_call2("==", key, sub)); continue; }
        taken[at] = true;
        const Index *i = d->loops.index[at];
        key = ex_add2(key, ex_num(-shift));
        s.from[s.n] = ex_index((Index *)i);
        s.to[s.n++] = key;
        if (i->lo->kind != EX_NUM || i->lo->number > 1 - shift) guard = ex_both(guard, ex_call2("<=", i->lo, key));
        if (i->hi != element[k]->hi || shift != 0) guard = ex_both(guard, ex_call2("<=", key, i->hi));
    }
    Loops loops = {0};
    for (int i = 0; i < d->loops.n; i++) {
        if (taken[i]) continue;
        Index *old = d->loops.index[i], *new = old;
        Expr *lo = solved(&s, old->lo), *hi = solved(&s, old->hi);
        if (lo != old->lo || hi != old->hi) {
            new = index_new(old->name, lo, hi);
            s.from[s.n] = ex_index(old);
            s.to[s.n++] = ex_index(new);
        }
        loops.index[loops.n++] = new;
    }
    loops.guard = condition_left(solved(&s, guard));
    Expr *value = ex_tidy(solved(&s, times(d->weight, d->rest)));
    if (loops.n == 0 && loops.guard) value = choice(loops.guard, value, ex_num(0));
    const char *over = loops.n ? loops_text(g, &loops) : "";
    while (*lines && strcmp((*lines)->loops, over) != 0) lines = &(*lines)->next;
    if (*lines) (*lines)->value = plus((*lines)->value, value);
    else {
        *lines = NEW(g->arena, Line);
        **lines = (Line){over, value, NULL};
    }
}

// The lines that one factor, or one statement of a series, gives to v.
static bool print_terms(FILE *out, const Graph *g, const Factor *f, const Moving *b, const Moving *all, const Var *v, Index *const *element)
{
    Derivative *d;
    Line *lines = NULL;
    derivatives_moving(g, f, b, &d, NULL);
    for (; d; d = d->next)
        if (d->ref->var == v) add_line(g, &lines, d, element);
    for (const Line *l = lines; l; l = l->next) {
        const char *text = ex_text(g->arena, by_factors(all, l->value)), *t = *l->loops ? arena_printf(g->arena, "sum(%s, %s)", l->loops, text) : text;
        const bool minus = *t == '-';
        fprintf(out, "    %c %s    # line %d\n", minus ? '-' : '+', t + minus, span_line(f->span));
    }
    return lines != NULL;
}

static void print_sum(FILE *out, const Graph *g, const Moving *b, const Moving *all, const Var *v, Index *const *element)
{
    bool any = false;
    for (const Factor *f = g->factors; f; f = f->next)
        if (!f->original && ex_mentions(by_factors(b, f->log_density), v)) any |= print_terms(out, g, f, b, all, v, element);
    for (int i = 0; i < b->nseries; i++)
        for (int k = 0; k < b->series[i]->n; k++)
            for (const Site *t = b->series[i]->var[k]->sites; t; t = t->next) {
                if (!ex_mentions(t->value, v)) continue;
                const Factor f = site_factor(t, adjoint_new(g, b->series[i]->var[k]));
                any |= print_terms(out, g, &f, b, all, v, element);
            }
    for (int i = 0; i < b->nfactored; i++) {
        const Factored *of = &b->factored[i];
        Var *adjoint = adjoint_new(g, of->var);
        adjoint->name = intern(arena_printf(g->arena, "adjoint_of_matrix_of_%s", of->var->name));
        const Factor f = matrix_factor(g, of->call->args[0], adjoint, of->span);
        if (ex_mentions(f.log_density, v)) any |= print_terms(out, g, &f, b, all, v, element);
    }
    if (!any) fprintf(out, "    0\n");
}

static bool is_moved(const Var *v) { return var_unknown(v) && !v->discrete && v->base == BASE_REAL && v->kind != VAR_AUXILIARY; }

void gradient_print(FILE *out, const Graph *g)
{
    Var **all = NEW_N(g->arena, Var *, g->nvars + 1);
    int n = 0;
    for (int i = 0; i < g->nvars; i++)
        if (is_moved(g->vars[i])) all[n++] = g->vars[i];
    const Moving with = block_with_series(g, all, n, 0);
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if (!is_moved(v)) continue;
        Index *element[MAX_RANK];
        const char *because = NULL;
        int line = 0;
        const Moving b = block_with_series(g, &v, 1, v->sums);
        fprintf(out, "d log p / d %s =", ex_text(g->arena, var_element(g, v, element)));
        for (const Factor *f = g->factors; f && !because; f = f->next) {
            Derivative *d;
            if (f->original || !ex_reads(f->log_density, v)) continue;
            if (!derivatives_moving(g, f, &b, &d, &because)) line = span_line(f->span);
        }
        if (because) fprintf(out, " not known: %s    # line %d\n", because, line);
        else if (!series_differentiable(g, &b, &because)) fprintf(out, " not known: %s\n", because);
        else {
            fputc('\n', out);
            print_sum(out, g, &b, &with, v, element);
        }
    }
    const char *because;
    for (int i = with.nseries - 1; i >= 0 && series_differentiable(g, &with, &because); i--)       // what others are made of comes last
        for (int k = with.series[i]->n - 1; k >= 0; k--) {
            Var *v = with.series[i]->var[k];
            Index *element[MAX_RANK];
            Expr *at = var_element(g, v, element);
            fprintf(out, "%s =\n", ex_text(g->arena, ex_ref(adjoint_new(g, v), at->nargs, at->args)));
            print_sum(out, g, &with, &with, v, element);
        }
    for (int i = 0; i < with.nfactored; i++) {
        Var *v = with.factored[i].var;
        Index *element[MAX_RANK];
        Expr *at = var_element(g, v, element);
        fprintf(out, "%s = %s\n", v->name, ex_text(g->arena, with.factored[i].call));
        fprintf(out, "%s =\n", ex_text(g->arena, ex_ref(adjoint_new(g, v), at->nargs, at->args)));
        print_sum(out, g, &with, &with, v, element);
    }
}
