// marginal.c -- discrete unknowns that the model asks to be summed out, `infer { c by marginal; }`: all others move with them integrated out.
//
//   before   categorical(c[i] | theta), normal(y[i] | mu[c[i]], s), both over i
//   after    log_sum_exp(k in 1:K, log(theta[k]) + normal(y[i] | mu[k], s)) over i; c[i] is drawn given the rest
//
// Needs: augment done, ranges of discrete unknowns known.     Gives: a factor for each that is summed out, and from which to which number of sums each factor counts.
//
// Unknowns are summed out one after the other, as in the elimination of variables (Zhang and Poole 1994): the sum over the values of one takes in all factors that read it, also sums
// over others. In the sweep, what reads a sum moves first, then those that were summed out are drawn, the last one first, each given those after it with those before it still summed out.
// That is a draw of all of them together from their joint conditional, so the sweep keeps the joint law (partially collapsed Gibbs, van Dyk and Park 2008).
//
// Without being asked, what the law of a discrete unknown depends on is drawn in the same way with it summed out, which nothing else sees: trees, below.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "marginal.h"
#include "../conditional.h"
#include "../terms/var.h"
#include "../terms/ranges.h"
#include "../terms/supports.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/series.h"
#include "../model/existence.h"
#include "../algebra/ends.h"
#include "../algebra/conditionals.h"
#include "../algebra/afresh.h"
#include "../algebra/ties.h"
#include "../algebra/history.h"
#include "../algebra/pairs.h"
#include "neighbours.h"
#include "joined.h"

// ---- the density of one element ----

enum { MOST_WRITTEN_OUT = 300 };        // nodes of a density that stands twice, once for each of two values

static Expr *over_values(const Conditional *c, Expr *e, Expr *first, Expr *last)
{
    const double lo = first->kind == EX_NUM ? first->number : NAN, hi = last->kind == EX_NUM ? last->number : NAN;
    if (lo == hi) return ex_replace(e, c->u, first);
    if (lo + 1 == hi && e->size < MOST_WRITTEN_OUT) return ex_call2("log_sum_exp2", ex_replace(e, c->u, first), ex_replace(e, c->u, last));
    Index *j = index_new(c->var->name, first, last);
    return ex_reduce("log_sum_exp", j, first, last, ex_replace(e, c->u, ex_index(j)));
}

static const char *line_of(Graph *g, Span at) { return arena_printf(g->arena, "line %d", span_line(at)); }

// ---- chains ----

// Elements depend on their neighbours along one subscript, as the states of a hidden Markov model: the backward algorithm (Rabiner 1989) sums them out from the last to the first,
//   messages[t, j] = local[t](j) + log_sum_exp over k of link[t + 1](j, k) + messages[t + 1, k]
// where local has what holds element t alone, link what holds it and the one before. The first is then drawn from messages[1], each other one from link[t](z[t - 1], .) + messages[t, .]:
// forward sampling. The messages are a series of the sweep (series.c), which has derivatives.

static Expr *at_summaries(const Conditional *c, Expr *e, const double *summary)
{
    for (int q = 0; q < c->past->nsummaries; q++) e = ex_replace(e, ex_ref(c->past->stand[q], c->var->rank, c->current->args), ex_num(summary[q]));
    return e;
}

// What the first element has with a past in which nothing was.
static Expr *of_first(const Conditional *c)
{
    Expr *all = ex_num(0);
    for (const Part *q = c->density; q && c->past; q = q->next)
        if (reads_past(c, q) && !ex_mentions(q->value, c->var)) all = ex_add2(all, sum_over(&q->loops, ends_decide(q->value)));
    return c->past ? ex_replace_index(at_summaries(c, all, c->past->before), c->element[c->nbatch], ex_num(1)) : all;
}

static Expr *message(const Var *v, Expr *const *at, Expr *state)
{
    Expr *sub[MAX_RANK];
    int n = 0;
    for (int k = 0; k < v->rank; k++)
        if (k != v->chain) sub[n++] = at[k];
    sub[n++] = at[v->chain];
    sub[n++] = state;
    return ex_ref(v->messages, n, sub);
}

// The place of a value among the messages, from 1, and back.
static Expr *place_of(const Var *v, Expr *value) { return ex_add2(ex_sub(value, end_of_summed(v, 0)), ex_num(1)); }
static Expr *value_at(const Var *v, Expr *place) { return ex_sub(ex_add2(place, end_of_summed(v, 0)), ex_num(1)); }

static void add_to_sites(Var *m, Site *s)
{
    Site **end = &m->sites;
    while (*end) end = &(*end)->next;
    *end = s;
}

// A chain that is being summed over. Of two values, and of states that remember, each stands in a site of its own: what is written for one value alone is simpler.
typedef struct Chain {
    Graph *g;
    const Conditional *c;
    Expr *states;
    const Past *each;                    // the states that are written one by one; NULL: they run in loops
    Expr *there;                         // stands for the place of the state before in arrays of pairs
    Expr *alike;                         // whether a chain is the first of those with the same data; NULL: each is by itself
} Chain;

// e, of an element and the state i before it, from 0.
static Expr *behind_state(const Chain *h, Expr *e, int i)
{
    e = ex_replace(ex_replace(e, element_beside(h->c, -1), ex_num(h->each->value[i])), h->there, ex_num(i + 1));
    return h->c->past ? at_summaries(h->c, e, &h->each->summary[i * h->each->nsummaries]) : e;
}

// ---- chains with the same data ----

// Capture histories repeat: where all that tells one chain from another is rows of data, sums over chains with the same rows are the same. Which chain is the first with its rows is found by comparing
// each with those before it, for up to so many chains; else each is its own.
enum { MOST_COMPARED = 4096 };

typedef struct AlikeRows { Graph *g; const Conditional *c; Expr *differ; Index *other; bool any; int n, size; Var **rows; } AlikeRows;

static Look test_rows(const Expr *e, void *with)
{
    AlikeRows *r = with;
    Index *chain = r->c->element[0];
    if (e->kind == EX_INDEX) return e->index == chain ? FOUND : LOOK;
    if (e->kind != EX_REF || !ex_mentions_index((Expr *)e, chain)) return LOOK;
    for (int k = 1; k < e->nargs; k++)
        if (ex_mentions_index(e->args[k], chain)) return FOUND;
    if (e->args[0] != ex_index(chain)) return FOUND;
    if (e->var == r->c->var || e->var == r->c->u->var) return SKIP;
    if ((e->var->kind != VAR_DATA && e->var->kind != VAR_LET) || e->nargs != e->var->rank || e->var->rank > 2 || e->var->dim[0] != r->c->var->dim[0]) return FOUND;
    Expr *mine[2] = {ex_index(chain)}, *others[2] = {ex_index(r->other)};
    Index *t = e->nargs == 2 ? index_new(intern("t"), ex_num(1), e->var->dim[1]) : NULL;
    if (t) mine[1] = others[1] = ex_index(t);
    Expr *here = ex_ref(e->var, e->nargs, mine), *there = ex_ref(e->var, e->nargs, others), *one = ex_call2("!=", here, there);
    if (e->var->response && !needed_for(r->g, e->var)) one = ex_call2("||", ex_call2("||", ex_call1("missing", here), ex_call1("missing", there)), one);       // those that are missing are drawn: such a row is like no other
    r->differ = ex_add2(r->differ, t ? ex_reduce("sum", t, t->lo, t->hi, one) : one);
    r->any = true;
    for (int i = 0; i < r->n; i++)
        if (r->rows[i] == e->var) return SKIP;
    if (e->var->kind != VAR_DATA) return SKIP;
    ROOM(r->g->arena, r->rows, r->n, r->size);
    r->rows[r->n++] = e->var;
    return SKIP;
}

static Var *let_by_chain(Graph *g, const Conditional *c, const char *name)
{
    Var *m = var_unique(g, arena_printf(g->arena, "%s_%s", name, c->var->name), VAR_LET);
    m->base = BASE_INT;
    m->minds_missing = true;
    m->span = c->var->span;
    m->rank = 1;
    m->dim[0] = c->var->dim[0];
    m->lower_number = 0;
    m->sites = NEW(g->arena, Site);
    *m->sites = (Site){.span = m->span, .var = m, .plates = {.n = 1, .index = NEW_N(g->arena, Index *, 1)}, .n = 1};
    m->sites->plates.index[0] = index_new(intern("k"), ex_num(1), m->dim[0]);
    m->sites->subscript[0] = ex_index(m->sites->plates.index[0]);
    return m;
}

// Two lets: the first chain with the data of each, and how many it stands for. NULL: other things tell chains apart.
static Var *alike_rows(Graph *g, const Conditional *c, Expr *densities)
{
    if (c->var->rank != 2 || c->var->chain != 1) return NULL;
    Index *i = index_new(intern("i"), ex_num(1), ex_num(1));
    AlikeRows r = {.g = g, .c = c, .differ = ex_num(0), .other = i};
    if (ex_find(densities, test_rows, &r) || !r.any) return NULL;
    Var *first = let_by_chain(g, c, "first_alike"), *count = let_by_chain(g, c, "number_alike");
    Expr *k = first->sites->subscript[0], *lo = ex_call3("if_else", ex_call2("<=", first->dim[0], ex_num(MOST_COMPARED)), ex_num(1), k);
    Index *before = index_new(intern("i"), lo, k), *other = index_new(intern("i"), ex_num(1), count->dim[0]);
    Expr *same = ex_call2("==", ex_replace_index(ex_replace_index(r.differ, i, ex_index(before)), c->element[0], k), ex_num(0));
    first->sites->value = ex_reduce("min", before, lo, k, ex_call3("if_else", same, ex_index(before), k));
    count->sites->value = ex_reduce("sum", other, other->lo, other->hi, ex_call2("==", ex_ref(first, 1, (Expr *[]){ex_index(other)}), count->sites->subscript[0]));
    first->alike = count;
    first->nrows = r.n;
    first->rows = r.rows;
    first->rows_counted = var_unique(g, arena_printf(g->arena, "different_%s", c->var->name), VAR_ELEMENT);
    first->rows_counted->counts_rows = true;
    return first;
}

static Expr *first_alike(const Var *v, Expr *chain) { return v->alike ? ex_ref(v->alike, 1, &chain) : chain; }

// ---- messages ----

// A site of m at subscripts, for elements with the indices of the chain (but for the one along it, if `length` is not an end of it); the states have indices, or are numbers.
static Site *chain_site(const Chain *h, Var *m, int n, Expr *const *at)
{
    Site *s = NEW(h->g->arena, Site);
    *s = (Site){.span = h->c->var->span, .var = m, .plates = {.index = NEW_N(h->g->arena, Index *, MAX_RANK)}, .n = n};
    memcpy(s->subscript, at, sizeof *at * (size_t)n);
    add_to_sites(m, s);
    return s;
}

static void add_plate(Site *s, Expr *state)
{
    if (state->kind == EX_INDEX) s->plates.index[s->plates.n++] = state->index;
}

// With the values of a pair written out, whether numbers lie in the support is known: 0 <= p*(1 - 1), 0 <= p, 0 <= -p; p <= 1 of a probability.
static Expr *settle_leaf(Expr *e, void *with)
{
    if (e->kind != EX_CALL) return NULL;
    if (e->fn == FN_AND) {
        Expr *a = ex_map(e->args[0], settle_leaf, with), *b = ex_map(e->args[1], settle_leaf, with);
        return ex_is_num(a, 0) || ex_is_num(b, 1) ? a : ex_is_num(b, 0) || ex_is_num(a, 1) ? b : ex_call2("&&", a, b);
    }
    if (e->fn != FN_LE && e->fn != FN_LT) return NULL;
    double lo[2], hi[2];
    for (int k = 0; k < 2; k++) range_of(e->args[k], &lo[k], &hi[k]);
    if (e->fn == FN_LE ? hi[0] <= lo[1] : hi[0] < lo[1]) return ex_num(1);
    if (e->fn == FN_LE ? lo[0] > hi[1] : lo[0] >= hi[1]) return ex_num(0);
    if (!ex_is_num(e->args[0], 0)) return NULL;
    const Expr *x = e->args[1];
    double sign = 1;
    for (int i = 0; i < (x->kind == EX_MUL ? x->nargs : 1); i++) {
        const Expr *f = x->kind == EX_MUL ? x->args[i] : x;
        if (f->kind == EX_NUM && f->number != 0) sign = f->number < 0 ? -sign : sign;
        else if (!ex_positive(f) || ex_may_vanish(f) || !ex_unknown(f)) return NULL;
    }
    return ex_num(sign > 0);
}

// What the element and the one behind it have between them (`pair`), or what the element has by itself, at each of their values, in an array of its own: sums over the chain and their derivatives read each
// several times. The array has the subscripts that e depends on; that along the chain is the first element's of a pair. Returns what stands for e, with the values as they are in it.
static Expr *tabulated(const Chain *h, const char *name, Expr *e, bool pair)
{
    const Conditional *c = h->c;
    Var *v = c->var, *m = var_unique(h->g, arena_printf(h->g->arena, "%s_%s", name, v->name), VAR_SERIES);
    Expr *at[MAX_RANK], *read[MAX_RANK], *before = element_beside(c, -1);
    Index *t = c->element[v->chain], *ahead = index_new(t->name, ex_num(1), ex_sub(v->dim[v->chain], ex_num(1)));
    Expr *values = h->each ? ex_num(h->each->nvalues) : h->states;
    Expr *depends = ex_replace(ex_replace(c->past ? at_summaries(c, e, c->past->before) : e, before, ex_index(index_new(intern("i"), ex_num(1), values))), c->u, ex_index(index_new(intern("j"), ex_num(1), values)));
    m->hidden = true;
    m->span = v->span;
    for (int k = 0; k < v->rank; k++) {
        if (!ex_mentions_index(depends, c->element[k])) continue;
        at[m->rank] = k == v->chain ? ex_index(ahead) : c->current->args[k];
        read[m->rank] = k == v->chain ? ex_sub(c->current->args[k], ex_num(1)) : c->current->args[k];
        m->dim[m->rank++] = v->dim[k];
    }
    const int n = m->rank;
    if (pair) m->dim[m->rank++] = h->states;
    m->dim[m->rank++] = values;
    for (int i = 0; i < (h->each && pair ? h->each->nstates : 1); i++)
        for (int j = 0; j < (h->each ? h->each->nvalues : 1); j++) {
            Expr *here = h->each ? ex_num(j + 1) : ex_index(index_new(intern("j"), ex_num(1), h->states)), *there = h->each ? ex_num(i + 1) : ex_index(index_new(intern("i"), ex_num(1), h->states));
            int rank = n;
            if (pair) at[rank++] = there;
            at[rank++] = here;
            Site *s = chain_site(h, m, rank, at);
            for (int k = 0; k < v->rank; k++)
                if (ex_mentions_index(depends, c->element[k])) s->plates.index[s->plates.n++] = k == v->chain ? ahead : c->element[k];
            if (pair) add_plate(s, there);
            add_plate(s, here);
            if (h->alike && ex_mentions_index(depends, c->element[0])) s->plates.guard = h->alike;
            s->value = ex_replace(h->each ? behind_state(h, e, i) : ex_replace(e, before, value_at(v, there)), c->u, value_at(v, here));
            s->value = ex_replace_index(s->value, t, ex_add2(ex_index(ahead), ex_num(1)));
            if (h->each) s->value = ex_map(s->value, settle_leaf, NULL);
        }
    if (!add_series(h->g, m)) abort();             // no element of it reads another
    m->series->chains = v->chain > 0 && ex_mentions_index(depends, c->element[0]);
    int rank = n;
    if (pair) read[rank++] = h->each ? h->there : place_of(v, before);
    read[rank++] = place_of(v, c->u);
    return ex_ref(m, rank, read);
}

// What an element of c and the one before it have between them, and the element by itself, read from these arrays; `there` stands for the place of the state before.
typedef struct Linked { const Conditional *c; Expr *value, *there; } Linked;

// The same of the element that another conditional of the variable studies. Chains with the same data share what is there.
static Expr *linked_to(const Linked *l, const Conditional *c, Expr *there)
{
    const Var *v = c->var;
    Expr *e = ex_replace(ex_replace(l->value, l->there, there), element_beside(l->c, -1), element_beside(c, -1));
    e = ex_replace(e, l->c->u, c->u);
    for (int k = 0; k < v->rank; k++) e = ex_replace_index(e, l->c->element[k], k == 0 ? first_alike(v, c->current->args[0]) : c->current->args[k]);
    return e;
}

// log_sum_exp of terms that are written one by one.
static Expr *sum_of(int n, Expr *const *term)
{
    Expr *all = term[0];
    for (int k = 1; k < n; k++) all = ex_call2("log_sum_exp2", all, term[k]);
    return all;
}

// The series of messages; returns log_sum_exp of the first, in the other subscripts of the element. For sums that moves read, what messages are made of is in arrays, and a message is what comes
// behind its element: its value is then the sum that derivatives need.
static Expr *sum_along(Graph *g, const Conditional *c, Expr *local, bool moved)
{
    Var *v = c->var;
    v->chain = c->nbatch;
    const Expr *first = end_of_summed(v, 0), *top = end_of_summed(v, 1);
    const bool two = first->kind == EX_NUM && top->kind == EX_NUM && top->number == first->number + 1;
    Chain h = {.g = g, .c = c, .each = c->past ? c->past : two ? no_past(g, first->number, 2) : NULL, .there = ex_ref(var_new(g, v->name, VAR_ELEMENT), 0, NULL)};
    h.states = h.each ? ex_num(h.each->nstates) : place_of(v, end_of_summed(v, 1));
    Expr *length = v->dim[v->chain], *states = h.states, *link = link_before(c), *at[MAX_RANK], *sub[MAX_RANK], *next = NULL;
    moved &= v->rank + 2 <= MAX_RANK;
    if (moved) {
        Expr *all = ex_add2(local, link);
        v->alike = alike_rows(g, c, c->past ? ex_add2(at_summaries(c, all, c->past->before), of_first(c)) : all);
        if (v->alike) h.alike = ex_call2("==", first_alike(v, c->current->args[0]), c->current->args[0]);
        next = h.each ? tabulated(&h, "links", ex_add2(link, local), true) : ex_add2(tabulated(&h, "links", link, true), tabulated(&h, "weights", local, false));
        Linked *l = NEW(g->arena, Linked);
        *l = (Linked){c, next, h.there};
        v->linked = l;
    }
    Var *m = v->messages = var_unique(g, arena_printf(g->arena, "messages_%s", v->name), VAR_SERIES);
    m->hidden = true;
    m->span = v->span;
    for (int k = 0; k < v->rank; k++)
        if (k != v->chain) m->dim[m->rank++] = v->dim[k];
    m->dim[m->rank++] = length;
    m->dim[m->rank++] = states;
    Index *last = c->element[v->chain];
    const int nterms = h.each ? h.each->nvalues : 1;
    Expr **all = NEW_N(g->arena, Expr *, nterms);
    memcpy(at, c->current->args, sizeof *at * (size_t)v->rank);
    for (int which = 0; which < 2 * (h.each ? h.each->nstates : 1); which++) {
        const bool site = which % 2;
        const int i = which / 2;
        Index *t = index_new(last->name, ex_num(1), ex_sub(length, ex_num(1))), *k = index_new(intern("k"), ex_num(1), states);
        Expr *state = h.each ? ex_num(i + 1) : ex_index(index_new(intern("j"), ex_num(1), states)), *value = h.each ? ex_num(h.each->value[i]) : value_at(v, state);
        Expr *here = at[v->chain] = site ? ex_index(t) : length;
        memcpy(sub, message(v, at, state)->args, sizeof *sub * (size_t)m->rank);
        Site *s = chain_site(&h, m, m->rank, sub);
        for (int q = 0; q < v->rank; q++)
            if (q != v->chain) s->plates.index[s->plates.n++] = c->element[q];
        if (site) s->plates.index[s->plates.n++] = t;
        add_plate(s, state);
        s->plates.guard = h.alike;
        s->value = moved ? ex_num(0) : ex_replace_index(ex_replace(local, c->u, value), last, here);
        if (!site) continue;
        Expr *from = moved ? next : link;
        from = h.each ? behind_state(&h, from, i) : ex_replace(from, element_beside(c, -1), value);
        at[v->chain] = ex_add2(here, ex_num(1));
        for (int to = 0; to < nterms; to++) {
            Expr *other = h.each ? ex_num(h.each->next[i * nterms + to] + 1) : ex_index(k), *pair = ex_replace(from, c->u, h.each ? ex_num(h.each->first + to) : value_at(v, other));
            all[to] = ex_add2(ex_replace_index(pair, last, at[v->chain]), message(v, at, other));
        }
        s->value = ex_add2(s->value, h.each ? sum_of(nterms, all) : ex_reduce("log_sum_exp", k, ex_num(1), states, all[0]));
        if (c->past) s->value = ex_map(s->value, settle_leaf, NULL);
    }
    if (!add_series(g, m)) return NULL;
    m->series->chains = v->chain > 0;
    at[v->chain] = ex_num(1);
    Index *j = index_new(intern("j"), ex_num(1), states);
    Expr *alone = of_first(c);
    for (int k = 0; k < nterms; k++) {
        Expr *state = h.each ? ex_num(h.each->start[k] + 1) : ex_index(j), *value = h.each ? ex_num(h.each->first + k) : value_at(v, state);
        all[k] = message(v, at, state);
        if (moved) all[k] = ex_add2(ex_replace_index(ex_replace(local, c->u, value), last, ex_num(1)), all[k]);
        all[k] = ex_add2(all[k], ex_replace(alone, c->u, value));
        if (h.each) all[k] = ex_map(all[k], settle_leaf, NULL);
    }
    return h.each ? sum_of(nterms, all) : ex_reduce("log_sum_exp", j, ex_num(1), states, all[0]);
}

// Of a chain that remembers, in terms of the state of the element before.
static void remember(const Conditional *c, Part *q, bool first_too)
{
    Expr *at[MAX_RANK], *is_first = ex_call2("==", c->current->args[c->nbatch], ex_num(1)), *before = element_beside(c, -1);
    memcpy(at, before->args, sizeof *at * (size_t)c->var->rank);
    for (int k = 0; k < c->past->nsummaries; k++) {
        Expr *is = remembered(c->past, k, ex_ref(c->state->var, c->var->rank, at), first_too ? is_first : ex_num(0)), *stand = ex_ref(c->past->stand[k], c->var->rank, c->current->args);
        q->value = ex_replace(q->value, stand, is);
        if (q->loops.guard) q->loops.guard = ex_replace(q->loops.guard, stand, is);
    }
}

// The conditional of an element given those before it and all behind it summed out.
static Conditional *chain_density(Graph *g, Var *v, bool collapsed)
{
    Conditional *c = conditional_density(g, v, collapsed);
    if (!v->discrete || v->base != BASE_INT || !v->rank || c->nbatch == v->rank || along_neighbours(c)) return c;
    Conditional *longer = conditional_with_past(g, v, collapsed);
    return longer && along_neighbours(longer) ? longer : c;
}

Conditional *conditional_chain(Graph *g, Var *v)
{
    Conditional *c = chain_density(g, v, v->summed || can_collapse(g, v));
    Part *first = NULL, **last = &first;
    Expr *at[MAX_RANK], *place = place_of(v, c->u);
    memcpy(at, c->current->args, sizeof *at * (size_t)v->rank);
    if (c->past) {
        Var *state = var_unique(g, arena_printf(g->arena, "state_%s", v->name), VAR_ELEMENT);
        state->base = BASE_INT;
        state->rank = v->rank;
        memcpy(state->dim, v->dim, sizeof state->dim);
        c->state = ex_ref(state, v->rank, at);
        place = state_behind(c->past, ex_ref(state, v->rank, element_beside(c, -1)->args), c->u, ex_call2("==", c->current->args[c->nbatch], ex_num(1)));
        c->state_is = ex_replace(place, c->u, c->current);
    }
    at[0] = first_alike(v, at[0]);
    Expr *along = c->current->args[v->chain], *is_first = ex_call2("==", along, ex_num(1)), *not_first = ex_call2("<=", ex_num(2), along);
    bool any_before = true;                       // every element but the first has one before it that exists
    for (const Part *q = c->density; q; q = q->next)
        if (ex_mentions(q->value, v)) any_before &= q->loops.guard == not_first || neighbour_of(c, q).apart != -1;
    for (Part *q = c->density; q; q = q->next)
        if (ex_mentions(q->value, v) ? !v->linked && neighbour_of(c, q).apart == -1 : v->linked || reads_past(c, q)) {
            if (c->past) remember(c, q, !ex_mentions(q->value, v));
            if (v->linked && q->loops.guard != is_first) q->loops.guard = q->loops.guard ? ex_call2("&&", is_first, q->loops.guard) : is_first;
            *last = q;
            last = &q->next;
        }
    if (v->linked && v->chain < v->rank) {         // of what follows the first element all is in arrays
        Part *q = *last = NEW(g->arena, Part);
        Expr *there = c->past ? ex_ref(c->state->var, v->rank, element_beside(c, -1)->args) : place_of(v, element_beside(c, -1));
        if (!c->past && !any_before) there = ex_call3("if_else", ex_call2("&&", ex_call2("<=", end_of_summed(v, 0), element_beside(c, -1)), ex_call2("<=", element_beside(c, -1), end_of_summed(v, 1))), there, ex_num(1));
        *q = (Part){.factor = c->density ? c->density->factor : NULL, .loops = {.guard = not_first}, .value = linked_to(v->linked, c, there)};
        last = &q->next;
    }
    Part *rest = *last = NEW(g->arena, Part);
    *rest = (Part){.factor = first ? first->factor : NULL, .value = message(v, at, place)};
    c->density = first;
    if (c->nbatch < v->rank) c->nbatch = v->chain;
    c->colours = c->lattice = 0;
    c->conflicts = NULL;
    c->because = c->nbatch < v->rank ? "its elements follow each other" : "rows name its elements, whose log densities they add to";
    return c;
}

Conditional *conditional_at_once(Graph *g, Var *v)
{
    Conditional *c = conditional_density(g, v, can_collapse(g, v));
    take_at_once(c);
    return c;
}

static void new_sum(Graph *g, const Var *v, int number, Plates p, Expr *log_density)
{
    Factor *sum = factor_new(g, v->span, p);
    sum->log_density = log_density;
    sum->sums_out = v;
    sum->made = number;
}

// ---- rows that name the element that they read ----

// Where a statement looks its element up, y[n] ~ normal(mu[c[g[n]]], 1), a sum over the rows of each element would look at all of them for each. One pass over the rows adds to the log densities
// of all elements, an array of the sweep. Its sites stand under one index, that of the value.
static void add_site(Graph *g, Series *s, Span at, const Loops *l, Expr *const *element, Expr *value, const Conditional *c, bool adds)
{
    Var *m = s->var[0];
    for (int way = 0; way < 2; way++) {          // with a plate for the values, and under the index of the series
        Site *t = NEW(g->arena, Site), **last = way ? &s->sites : &m->sites;
        Index *j = way ? s->along : index_new(s->along->name, s->along->lo, s->along->hi);
        *t = (Site){.span = at, .var = m, .plates = {.index = NEW_N(g->arena, Index *, l->n + 1), .guard = l->guard}, .n = m->rank, .adds = adds, .value = ex_replace(value, c->u, value_at(c->var, ex_index(j)))};
        for (int k = 0; k < l->n; k++) t->plates.index[t->plates.n++] = l->index[k];
        if (!way) t->plates.index[t->plates.n++] = j;
        memcpy(t->subscript, element, sizeof *element * (size_t)c->var->rank);
        t->subscript[c->var->rank] = ex_index(j);
        while (*last) last = &(*last)->next;
        *last = t;
    }
}

static bool is_gathered(const Conditional *c)
{
    bool any = false;
    for (const Part *q = c->density; q; q = q->next) any |= q->scatter;
    return any && c->var->rank > 0 && c->var->rank < MAX_RANK;
}

// What an element has besides, which may hold its parents, stays beside the array where these are to see the sum, and so does what the rows of its own statement have (`own`).
static Expr *sum_by_rows(Graph *g, Conditional *c, Expr *own, int number, bool for_parents)
{
    Var *v = c->var, *m = v->messages = var_unique(g, arena_printf(g->arena, "log_density_%s", v->name), VAR_SERIES);
    Part *all = c->density, *alone = NULL, **last = &alone;
    Expr *states = place_of(v, end_of_summed(v, 1)), *apart;
    v->chain = v->rank - 1;
    m->hidden = true;
    m->span = v->span;
    for (int k = 0; k < v->rank; k++) m->dim[m->rank++] = v->dim[k];
    m->dim[m->rank++] = states;
    Series *s = m->series = NEW(g->arena, Series), **end = &g->series;
    *s = (Series){.n = 1, .var = arena_copy(g->arena, &m, sizeof m), .along = index_new(intern("j"), ex_num(1), states)};
    while (*end) end = &(*end)->next;
    *end = s;
    for (const Part *q = all; q; q = q->next)
        if (!q->scatter) {
            *last = arena_copy(g->arena, q, sizeof *q);
            (*last)->next = NULL;
            last = &(*last)->next;
        }
    c->density = alone;
    Loops l = {.n = v->rank};
    for (int k = 0; k < v->rank; k++) l.index[k] = c->element[k];
    Expr *here = own_density(c, &apart);
    add_site(g, s, v->span, &l, c->current->args, for_parents ? ex_num(0) : here, c, false);
    for (const Part *q = all; q; q = q->next) {
        if (!q->scatter) continue;
        Part one = *q;
        Expr *without;
        one.next = NULL;
        one.loops = (Loops){0};
        c->density = &one;
        Expr *with = own_density(c, &without);
        add_site(g, s, q->factor->span, &q->loops, q->target, with, c, true);
        Plates rows = {.n = q->loops.n, .index = index_list(g->arena, q->loops.index, q->loops.n, 1), .guard = q->loops.guard};
        if (!ex_is_num(without, 0)) new_sum(g, v, number, rows, without);
    }
    c->density = all;
    if (for_parents) {
        Expr *each = ex_add2(ex_add2(here, own), message(v, c->current->args, place_of(v, c->u)));
        v->messages = NULL;                      // its own draw goes through its rows
        return ex_add2(apart, over_values(c, each, end_of_summed(v, 0), end_of_summed(v, 1)));
    }
    Index *j = index_new(intern("j"), ex_num(1), states);
    return ex_add2(apart, ex_reduce("log_sum_exp", j, ex_num(1), states, message(v, c->current->args, ex_index(j))));
}

// ---- one unknown ----

// A sum that is an array of the sweep cannot hold another sum out of it: which it is, and of which unknown.
static const char *why_not_within(Graph *g, const Var *messages)
{
    const Var *other = NULL;
    for (int i = 0; i < g->nvars && !other; i++)
        if (g->vars[i]->messages == messages) other = g->vars[i];
    const char *name = other ? other->name : messages->name;
    for (const Site *t = messages->sites; t; t = t->next)
        if (t->adds)
            return arena_printf(g->arena, "the rows of %s look up elements of `%s`, and the sum over its values gathers them as a whole; a second unknown cannot be summed out of it", line_of(g, t->span), name);
    return arena_printf(g->arena, "it enters the sum along the chain of `%s` (%s), as a whole; a second unknown cannot be summed out of it", name, line_of(g, messages->span));
}

// Why v cannot be summed out; NULL: it can.
static const char *obstacle(Graph *g, const Var *v, const Conditional *c, bool chains)
{
    if (!v->discrete || v->base != BASE_INT) return "its values are reals";
    if (!end_of_summed(v, 0) || !end_of_summed(v, 1))
        return arena_printf(g->arena, "its values do not lie between two ends that are the same for all elements and known from data; bounds say it: int<lower=0, upper=10> %s", v->name);
    if (c->recursion && c->recursion->hidden) return why_not_within(g, c->recursion);
    if (c->recursion) return arena_printf(g->arena, "it enters the recursion of `%s` (%s)", c->recursion->name, line_of(g, c->recursion->span));
    if ((c->whole || c->nbatch < v->rank) && !(chains && along_neighbours(c))) {
        const char *where = c->couples ? arena_printf(g->arena, "the statement of %s", line_of(g, c->couples->span)) : "a statement";
        if (c->couples && c->couples->sums_out)
            return arena_printf(g->arena, "the sum over the values of `%s` couples several of its elements", c->couples->sums_out->name);
        return arena_printf(g->arena, "%s couples several of its elements", where);
    }
    return NULL;
}

static const Factor *reading_latents(Graph *g, const Var *v)
{
    const Reading r = factors_of(g, v);
    for (int q = 0; q < r.n; q++)
        if (factor_counts(r.factor[q], v, true) && r.factor[q]->replaced && factor_mentions(r.factor[q], v) && !can_collapse(g, v)) return r.factor[q];
    return NULL;
}

// What a value of another unknown that is still to be summed out makes impossible is said while the statement is known.
static void weigh_others(Graph *g, const Var *v, Expr **keep, bool on)
{
    int n = 0;
    for (Factor *f = g->factors; f; f = f->next) {
        if (!factor_counts(f, v, true) || !factor_mentions(f, v)) continue;
        if (!on) { f->log_density = keep[n++]; continue; }
        keep[n++] = f->log_density;
        for (int i = 0; i < g->nvars; i++) {
            const Var *w = g->vars[i];
            if (w != v && w->summed == 0 && (w->parent || (w->sums == v->sums && asked_marginal(g, w))) && factor_mentions(f, w)) f->log_density = weighed(g, f, w)->log_density;
        }
    }
}

static bool test_parent(const Var *v, void *with) { (void)with; return v->parent; }

// Whether the rows that look elements up hold nothing of what is to see these summed out.
static bool rows_alone(const Conditional *c)
{
    for (const Part *q = c->density; q; q = q->next) {
        if (!q->scatter) continue;
        if (ex_any_var(q->value, test_parent, NULL) || (q->loops.guard && ex_any_var(q->loops.guard, test_parent, NULL))) return false;
        for (int k = 0; k < q->loops.n; k++)
            if (ex_any_var(q->loops.index[k]->lo, test_parent, NULL) || ex_any_var(q->loops.index[k]->hi, test_parent, NULL)) return false;
    }
    return true;
}

// ---- elements in slices ----

// z[i] ~ f(w[k]) over k, i in first[k]:last[k]: each element is in one slice, whose k its subscripts do not name. A sum over elements would look for k, and hold all w[k]; it is one over the rows of this statement.

// The only statement of v, if a loop besides those over its elements picks these.
static const Factor *statement_of_slices(Graph *g, const Var *v)
{
    const Factor *own = NULL;
    bool picked = false;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!factor_counts(f, v, true) || !f->value || f->value->kind != EX_REF || f->value->var != v) continue;
        if (own) return NULL;
        own = f;
    }
    for (int k = 0; own && k < own->plates.n; k++) {
        bool named = false;
        for (int i = 0; i < own->value->nargs; i++) named |= ex_mentions_index(own->value->args[i], own->plates.index[k]);
        picked |= !named;
    }
    return picked ? own : NULL;
}

// The density of f in the indices of the statement; NULL: it has other rows, or reads other elements of v.
static Expr *in_rows_of(const Factor *own, const Factor *f)
{
    if (f->plates.n != own->plates.n || !f->plates.guard != !own->plates.guard) return NULL;
    Expr *all[2 * MAX_PLATES + 2];
    int n = 0;
    for (int k = 0; k < f->plates.n; k++) { all[n++] = f->plates.index[k]->lo; all[n++] = f->plates.index[k]->hi; }
    if (f->plates.guard) all[n++] = f->plates.guard;
    all[n] = f->log_density;
    for (int k = 0; k < f->plates.n; k++)
        for (int i = 0; i <= n; i++) all[i] = ex_replace_index(all[i], f->plates.index[k], ex_index(own->plates.index[k]));
    for (int k = 0; k < own->plates.n; k++)
        if (all[2 * k] != own->plates.index[k]->lo || all[2 * k + 1] != own->plates.index[k]->hi) return NULL;
    return (f->plates.guard && all[n - 1] != own->plates.guard) || ex_mentions(ex_replace(all[n], own->value, ex_num(0)), own->value->var) ? NULL : all[n];
}

// Takes what stands in the statement's rows out of the parts; returns its log density.
static Expr *take_slices(const Factor *own, Part **parts)
{
    Expr *all = ex_num(0);
    const Factor *taken = NULL;
    while (*parts) {
        Expr *e = in_rows_of(own, (*parts)->factor);
        if (!e) { parts = &(*parts)->next; continue; }
        if ((*parts)->factor != taken) all = ex_add2(all, ends_decide(e));
        taken = (*parts)->factor;
        *parts = (*parts)->next;
    }
    return all;
}

typedef enum { FOR_ALL, FOR_PARENTS, FOR_TRIAL, FOR_MOVES } Seen;       // who sees it summed out: all others; what its own law depends on; the same, to be taken back; moves that compete with steps

// Sums v out, as the number `number`; along a chain only if there may be chains. But for all others it is a sum over each element alone. Returns why it cannot.
static const char *sum_out(Graph *g, Var *v, int number, bool chains, Seen by)
{
    int n = 0;
    for (Factor *f = g->factors; f; f = f->next) n++;
    Expr **keep = NEW_N(g->arena, Expr *, n + 1);
    v->sums = number - 1;
    weigh_others(g, v, keep, true);
    Conditional *c = chains ? chain_density(g, v, true) : conditional_density(g, v, true), *scattered = conditional_scattered(g, v, true);
    const Factor *slices = by == FOR_ALL || c->nbatch < v->rank ? NULL : statement_of_slices(g, v);
    Expr *sliced = slices ? take_slices(slices, &c->density) : ex_num(0);
    if (slices) take_slices(slices, &scattered->density);
    weigh_others(g, v, keep, false);
    const char *because = obstacle(g, v, c, chains);
    if (because) return because;
    const Factor *latent = reading_latents(g, v);
    if (latent) return arena_printf(g->arena, "the statement of %s has latents that are not drawn from their conditionals", line_of(g, latent->span));
    const bool chain = c->nbatch < v->rank;
    Plates p = {.n = v->rank, .index = NEW_N(g->arena, Index *, v->rank + 1)};
    for (int k = 0; k < v->rank; k++) p.index[k] = c->element[k];
    if (!chain) p.guard = var_domain(g, v, p.index);         // an element without a statement has no values to sum over
    Expr *apart, *e = ex_add2(own_density(c, &apart), slices ? ex_replace(sliced, slices->value, c->u) : sliced);
    const bool rows = !chain && is_gathered(scattered);
    if (rows && by != FOR_ALL && (by == FOR_MOVES || !rows_alone(scattered))) return "rows look its elements up";
    if (rows && by != FOR_TRIAL) {
        e = sum_by_rows(g, scattered, slices ? ex_replace(sliced, slices->value, scattered->u) : sliced, number, by == FOR_PARENTS);
        apart = ex_num(0);
        p.index = scattered->element;
        p.guard = var_domain(g, v, p.index);
    } else e = chain ? sum_along(g, c, e, g->method != METHOD_EM) : over_values(c, e, end_of_summed(v, 0), end_of_summed(v, 1));
    if (!e) return "its elements depend on each other in no order";
    if (slices) {
        for (int k = 0; k < v->rank; k++) { e = ex_replace_index(e, p.index[k], slices->value->args[k]); apart = ex_replace_index(apart, p.index[k], slices->value->args[k]); }
        p = slices->plates;
    }
    for (Factor *f = g->factors; f; f = f->next)
        if (f == factor_written(f) && factor_counts(f, v, true) && factor_mentions(f, v)) f->gone = number;
    if (chain) {
        if (!ex_is_num(apart, 0)) new_sum(g, v, number, p, apart);
        p.index = index_list(g->arena, p.index, p.n, 1);
        p.n--;
        memmove(&p.index[v->chain], &p.index[v->chain + 1], sizeof *p.index * (size_t)(p.n - v->chain));
        const Expr *length = v->dim[v->chain];
        const bool any = length->kind == EX_NUM ? length->number >= 1 : length->kind == EX_REF && length->var->lower_number >= 1;
        if (!any) p.guard = ex_call2("<=", ex_num(1), v->dim[v->chain]);
        if (v->alike) {
            Expr *k = ex_index(p.index[0]);
            Expr *stands = ex_call2("==", first_alike(v, k), k);
            p.guard = p.guard ? ex_call2("&&", p.guard, stands) : stands;
            e = ex_mul2(ex_ref(v->alike->alike, 1, &k), e);
        }
    } else e = ex_add2(e, apart);
    new_sum(g, v, number, p, !chain && p.guard ? ex_replace(e, p.guard, ex_num(1)) : e);
    if (by == FOR_MOVES) {
        v->offered = true;
        g->offers = number;
    } else v->summed = number;
    g->reading = NULL;                           // it knows of the factors that there were
    return NULL;
}

// ---- all of them ----

static int others_near(Graph *g, const Var *v)
{
    int n = 0;
    for (int i = 0; i < g->nvars; i++) {
        const Var *w = g->vars[i];
        if (w == v || w->summed || !asked_marginal(g, w)) continue;
        bool near = false;
        for (const Factor *f = g->factors; f && !near; f = f->next) near = factor_counts_at(f, g->nsums, true) && factor_mentions(f, v) && factor_mentions(f, w);
        n += near;
    }
    return n;
}

// Those that depend on few others first, and of these the ones with the most elements.
static int by_need(Graph *g, Var **list)
{
    int n = 0;
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if (!var_unknown(v) || v->summed || !asked_marginal(g, v)) continue;
        v->sums = g->nsums;
        int at = n++;
        const int near = others_near(g, v);
        for (; at > 0; at--) {
            const int before = others_near(g, list[at - 1]);
            if (before < near || (before == near && list[at - 1]->rank >= v->rank)) break;
            list[at] = list[at - 1];
        }
        list[at] = v;
    }
    return n;
}

// ---- chains that are drawn together, without being asked ----

// There are few values: numbers tell, or a table is looked up by the values of two neighbours, which then has as many entries as there are products to add up.
static Look test_table(const Expr *e, void *with)
{
    const Conditional *c = with;
    bool here = false, there = false;
    for (int k = 0; k < e->nargs && e->kind == EX_REF && e->var != c->var; k++) {
        here |= ex_mentions(e->args[k], c->u->var);
        there |= ex_mentions(e->args[k], c->var);
    }
    return here && there ? FOUND : LOOK;
}

enum { MOST_PAIRS_OFFERED = 24 };       // each pair of a state and a value is written out, in moves along gradients with derivatives

bool has_few_values(const Conditional *c)
{
    const Expr *first = end_of_summed(c->var, 0), *last = end_of_summed(c->var, 1);
    if (first->kind == EX_NUM && last->kind == EX_NUM) return last->number - first->number < FEW_STATES;
    for (const Part *q = c->density; q; q = q->next)
        if (ex_mentions(q->value, c->var) && ex_find(q->value, test_table, (void *)c)) return true;
    return false;
}

static void draw_together(Graph *g, Var *v)
{
    if (!var_unknown(v) || v->summed || v->messages || (v->joined && !v->joined->where) || !v->discrete || v->base != BASE_INT || (request_of(g, v) && !v->joined && !in_turn_asked(g, v)) || !end_of_summed(v, 0) || !end_of_summed(v, 1)) return;
    Conditional *c = chain_density(g, v, can_collapse(g, v));
    if (c->recursion || c->nbatch == v->rank || !along_neighbours(c) || !has_few_values(c)) return;
    Expr *apart;
    if (sum_along(g, c, own_density(c, &apart), false)) v->messages->series->apart = true;
    else v->messages = NULL;
}

// ---- offers: a move that competes with steps may see an unknown summed out that these are given (compete.c) ----

// What is made of matrices, or is an array.
static Look test_matrix(const Expr *e, void *with)
{
    (void)with;
    for (int k = 0; k < e->nargs && e->kind == EX_CALL; k++)
        if (ex_rank(e->args[k]) > 1) return FOUND;
    return e->kind == EX_AT || e->kind == EX_ARRAY ? FOUND : LOOK;
}

// Densities with matrices of each value would be evaluated by one lane, a row after the other, which steps that share inverses never are. No two in one statement: the draws after the move are each given the rest, and one from their joint law since they do not depend on each other.
// Chains are offered where there are several, one a row: these are drawn whole on a GPU, too.
// What stands above others in a tree is offered with these summed out.
static void offer(Graph *g, Var *v, int number, bool chains)
{
    if ((v->kind != VAR_PARAMETER && v->kind != VAR_LATENT) || !var_unknown(v) || v->summed || v->messages || v->joined || v->base != BASE_INT || request_of(g, v)) return;
    const Expr *first = end_of_summed(v, 0), *last = end_of_summed(v, 1);
    if (!first || !last || (first->kind == EX_NUM && last->kind == EX_NUM && last->number - first->number >= FEW_STATES)) return;
    for (const Factor *f = g->factors; f; f = f->next)
        if (factor_mentions(f, v) && (f->gone > v->sums || f->made > v->sums || ex_find(f->log_density, test_matrix, NULL))) return;
    const int sums = v->sums;
    if (chains) {
        const Conditional *c = chain_density(g, v, can_collapse(g, v));
        if (c->recursion || c->nbatch == v->rank || c->nbatch == 0 || !along_neighbours(c) || !has_few_values(c)) return;
        if (c->past && c->past->nstates * c->past->nvalues > MOST_PAIRS_OFFERED) return;
    }
    sum_out(g, v, number, chains, FOR_MOVES);
    if (v->offered && v->messages) v->messages->series->apart = true;
    v->sums = sums;
}

// ---- trees: unknowns that others' laws depend on, and these ----

// Of w ~ bernoulli(omega), z[i] ~ bernoulli(w*p) over i, both given all else, w = 0 and w = 1 with all z[i] = 0 are hardly left for each other. So what the law of z depends on is drawn with z summed out,
// sum over i of log_sum_exp over v of log p(z[i] = v | w) + (what else holds z[i] = v), and z directly after it, given it: one draw of both. Nothing else sees the sum, but for moves that compete with steps. Trees are taken
// from their leaves on: z is summed out after what its own values decide; then its parent may be, for the parent of that.
enum { MOST_DEARER = 10 };              // pairs of values that are weighed, in place of the values of one after the other

static bool may_be_in_tree(Graph *g, const Var *v)
{
    return (v->kind == VAR_PARAMETER || v->kind == VAR_LATENT) && v->discrete && v->base == BASE_INT && v->constraint == CONSTRAINT_NONE && !v->summed && !v->messages && !v->part_of && !request_of(g, v) &&
           end_of_summed(v, 0) && end_of_summed(v, 1);
}

// Whether the law of z, by a statement of its own, depends on w.
static bool is_child(Graph *g, const Var *z, const Var *w)
{
    const Reading of = factors_of(g, z);
    for (int q = 0; q < of.n && z != w; q++) {
        const Factor *f = of.factor[q];
        if (factor_counts_at(f, 0, true) && f->value && f->value->kind == EX_REF && f->value->var == z && factor_mentions(f, w)) return true;
    }
    return false;
}

// Unknowns of one shape, if one of them has no other children, are a matter of joined.c.
static bool is_worth_summing(const Var *z, const Var *w)
{
    return fmin(number_of_values(z), number_of_values(w)) <= MOST_DEARER && (w->parent || !have_one_shape(z, w));
}

static bool is_weighed_alone(Graph *g, Var *v)
{
    const Conditional *c = conditional_density(g, v, can_collapse(g, v));
    return !c->whole && !c->recursion && !c->closed && !reading_latents(g, v) && (c->nbatch == v->rank || along_neighbours(c)) && !find_pair(g, v);
}

static bool holds_matrix(Graph *g, const Var *v)
{
    for (const Factor *f = g->factors; f; f = f->next)
        if (factor_mentions(f, v) && ex_find(f->log_density, test_matrix, NULL)) return true;
    return false;
}

// What weights are integrated out of is drawn by counts, element by element, and the weights after it.
static bool meets_collapsed(Graph *g, const Var *v)
{
    const Reading of = factors_of(g, v);
    for (int i = 0; i < g->nvars; i++)
        for (int q = 0; q < of.n && is_collapsed(g, g->vars[i]); q++)
            if (factor_mentions(of.factor[q], v) && factor_mentions(of.factor[q], g->vars[i])) return true;
    return false;
}

// The sum that was taken last is as if it had not been.
static void take_sum_back(Graph *g, Var *v, int number)
{
    Factor **f = &g->factors;
    while (*f) {
        if ((*f)->gone == number) (*f)->gone = 0;
        if ((*f)->made == number) *f = (*f)->next;
        else f = &(*f)->next;
    }
    g->last_factor = f;
    v->summed = v->sums = 0;
    g->reading = NULL;
}

// Sums z out of the conditionals of its parents.
static bool sum_for_parents(Graph *g, Var *z, int number)
{
    Var **parent = NEW_N(g->arena, Var *, g->nvars + 1);
    bool *already = NEW_N(g->arena, bool, g->nvars + 1);
    int n = 0;
    if (holds_matrix(g, z) || meets_collapsed(g, z)) return false;
    for (int i = 0; i < g->nvars; i++) {
        Var *w = g->vars[i];
        if (!may_be_in_tree(g, w) || !is_child(g, z, w)) continue;
        if (!is_worth_summing(z, w) || meets_collapsed(g, w)) return false;
        already[n] = w->parent;
        parent[n++] = w;
    }
    if (n == 0 || !is_weighed_alone(g, z)) return false;
    for (int i = 0; i < n; i++) parent[i]->parent = true;
    bool good = !sum_out(g, z, number, false, FOR_TRIAL);
    for (int i = 0; i < n && good; i++) {
        parent[i]->sums = number;
        good = is_weighed_alone(g, parent[i]);
    }
    if (good && is_gathered(conditional_scattered(g, z, true))) {
        take_sum_back(g, z, number);
        good = !sum_out(g, z, number, false, FOR_PARENTS);
    }
    if (good) return true;
    for (int i = 0; i < n; i++) {
        parent[i]->parent = already[i];
        parent[i]->sums = already[i] ? number - 1 : 0;
    }
    if (z->summed) take_sum_back(g, z, number);
    z->sums = z->parent ? number - 1 : 0;
    return false;
}

// Returns how many unknowns are summed out for others.
static int find_trees(Graph *g)
{
    const int nvars = g->nvars;
    bool *tried = NEW_N(g->arena, bool, nvars + 1);
    int sums = 0, before = 0;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < nvars; i++) {
            Var *z = g->vars[i];
            bool leaf = !tried[i] && may_be_in_tree(g, z);
            for (int k = 0; k < nvars && leaf; k++) leaf = tried[k] || !may_be_in_tree(g, g->vars[k]) || !is_child(g, g->vars[k], z);
            if (!leaf) continue;
            tried[i] = more = true;
            sums += sum_for_parents(g, z, sums + 1);
        }
        if (!more && sums > before) {            // what has one shape with its parent, now that this has other children
            more = true;
            before = sums;
            memset(tried, 0, sizeof *tried * (size_t)nvars);
        }
    }
    for (int i = 0; i < nvars; i++)
        if (g->vars[i]->parent && !g->vars[i]->summed) g->vars[i]->sums = sums;
    return sums;
}

// ---- unknowns that hold each other, without being asked ----

// Where each two that hold each other are a child and its parent, w ~ binomial(2, v), a tree draws them together. Returns how many sums it takes; 0: there is nothing of this kind, or a child stays in.
static int tied_in_trees(Graph *g)
{
    const int nvars = g->nvars;
    Var **child = NULL, *tied[MOST_TIED];
    int n = 0, size = 0;
    for (Factor *f = g->factors; f; f = f->next) {
        const int of = tied_in(g, f, false, tied);
        if (of == 0) continue;
        if (of > 2 || !may_be_in_tree(g, tied[0]) || !may_be_in_tree(g, tied[1])) return 0;
        const int k = is_child(g, tied[0], tied[1]) ? 0 : 1;
        if (!is_child(g, tied[k], tied[1 - k])) return 0;
        ROOM(g->arena, child, n, size);
        child[n++] = tied[k];
    }
    if (n == 0) return 0;
    Series **end = &g->series;
    while (*end) end = &(*end)->next;
    const int sums = find_trees(g);
    bool all = true;
    for (int i = 0; i < n; i++) all &= child[i]->summed > 0;
    if (all) return sums;
    for (int number = sums; number > 0; number--)
        for (int i = 0; i < nvars; i++)
            if (g->vars[i]->summed == number) take_sum_back(g, g->vars[i], number);
    g->nvars = nvars;
    for (int i = 0; i < nvars; i++) {
        g->vars[i]->parent = false;
        g->vars[i]->sums = 0;
    }
    *end = NULL;
    return 0;
}

// Sums out one of those that a factor ties, the one with the most elements that can be; false: there are none.
static bool untie(Graph *g)
{
    for (Factor *f = g->factors; f; f = f->next) {
        Var *tied[MOST_TIED];
        const int n = tied_in(g, f, false, tied);
        for (int rank = MAX_RANK; rank >= 0 && n; rank--)
            for (int i = 0; i < n; i++) {
                if (tied[i]->rank != rank || request_of(g, tied[i]) || sum_out(g, tied[i], g->nsums + 1, false, FOR_ALL)) continue;
                g->nsums++;
                return true;
            }
    }
    return false;
}

static void tell_ties(Graph *g)
{
    for (const Factor *f = g->factors; f; f = f->next) {
        Var *tied[MOST_TIED];
        const bool always = tied_in(g, f, false, tied);
        const int n = always ? 0 : tied_in(g, f, true, tied);
        const Var *response = NULL;
        for (int i = 0; i < n; i++)
            if (tied[i]->response) response = tied[i];
        if (!always && !response) continue;
        Diag *m = diag(g->diags, f->span, DIAG_W0605, tied[0]->name, tied[1]->name);
        if (response) {
            diag_because(m, "where values of `%s` are missing, their possible values are not connected by changes of one of them at a time", response->name);
            diag_help(m, "unknowns with this distribution, in place of what is missing, are drawn together with what it depends on");
            continue;
        }
        diag_because(m, "their possible values are not connected by changes of one of them at a time");
        diag_help(m, "`infer { %s by marginal; }` draws them together, where it can be summed out", tied[1]->name);
    }
}

// What moves an unknown sees all that is summed out before it.
static void see_sums(Graph *g)
{
    for (int i = 0; i < g->nvars && g->nsums; i++) {
        Var *v = g->vars[i];
        if (v->summed) v->sums = v->summed - 1;
        else if (var_unknown(v) && v->kind != VAR_AUXILIARY && !asked_for(g, v, METHOD_GIBBS)) v->sums = g->nsums;
    }
}

bool marginals(Graph *g)
{
    const bool draws = g->method != METHOD_EM;
    Var **list = NEW_N(g->arena, Var *, g->nvars + 1);
    for (;;) {
        const int n = by_need(g, list);
        const char *because = NULL, *first = NULL;
        bool done = n == 0;
        for (int i = 0; i < 2 * n && !done; i++) {           // chains last: what their elements emit depends on others no more
            because = sum_out(g, list[i % n], g->nsums + 1, i >= n, FOR_ALL);
            if (i == n) first = because;
            done = !because;
        }
        if (!done) {
            const Request *r = request_of(g, list[0]);
            Diag *m = diag(g->diags, r ? r->span : list[0]->span, draws ? DIAG_E0513 : DIAG_E0514, list[0]->name);
            diag_because(m, "%s", first);
            diag_help(m, draws ? "leave the request out: gmc draws it given the rest" : "draw it, without --method em");
            return false;
        }
        if (n == 0) break;
        g->nsums++;
    }
    if (!draws) {
        see_sums(g);
        return true;
    }
    int sums = g->nsums ? 0 : tied_in_trees(g);
    while (!sums && untie(g)) ;
    tell_ties(g);
    see_sums(g);
    if (!g->nsums && !sums) sums = find_trees(g);
    find_joined(g);
    const bool offers = !g->method && g->nsums == 0;
    if (offers && sums) g->offers = sums + 1;
    for (int i = 0, n = g->nvars; i < n && offers; i++) offer(g, g->vars[i], sums + 1, true);
    for (int i = 0, n = g->nvars; i < n; i++) draw_together(g, g->vars[i]);
    for (int i = 0, n = g->nvars; i < n && offers; i++) offer(g, g->vars[i], sums + 1, false);
    return true;
}
