// messages.c -- discrete unknowns along a chain, summed out from the last element to the first: backward messages, and the draw of each
// element given the previous one.
//
//   before   local[t] and link[t] of z[t]
//   after    a series: messages[t, j] over t from the last to the first; z[t] by link[t](z[t-1], .) + messages[t, .]
//
// Needs: elements along a chain (neighbours.c), or with a past (history.c).     Gives: Var.messages, a series; conditionals of an element
// given those before it.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "messages.h"
#include "../conditional.h"
#include "../terms/reads.h"
#include "../terms/var.h"
#include "../terms/ranges.h"
#include "../terms/supports.h"
#include "../model/series.h"
#include "../algebra/ends.h"
#include "../algebra/conditionals.h"
#include "../algebra/afresh.h"
#include "../algebra/history.h"
#include "neighbours.h"

// Elements depend on their neighbours along one subscript, as the states of a hidden Markov model. The backward algorithm (Rabiner 1989)
// sums them out from the last to the first:
//   messages[t, j] = local[t](j) + log_sum_exp over k of link[t + 1](j, k) + messages[t + 1, k]
// Here local has what holds element t alone, link what holds it and the one before. The first is then drawn from messages[1], each other
// one from link[t](z[t - 1], .) + messages[t, .]: forward sampling. The messages are a series of the sweep (series.c), which has
// derivatives.

static Expr *at_summaries(const Conditional *c, Expr *e, const double *summary)
{
    for (int q = 0; q < c->past->nsummaries; q++)
        e = ex_replace(e, ex_ref(c->past->stand[q], c->var->rank, c->current->args), ex_num(summary[q]));
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

Expr *message_at(const Var *v, Expr *const *at, Expr *state)
{
    Expr *sub[MAX_RANK];
    int n = 0;
    for (int k = 0; k < v->rank; k++)
        if (k != v->summing.chain) sub[n++] = at[k];
    sub[n++] = at[v->summing.chain];
    sub[n++] = state;
    return ex_ref(v->summing.messages, n, sub);
}

// The place of a value among the messages, from 1, and back.
Expr *place_of_value(const Var *v, Expr *value) { return ex_add2(ex_sub(value, end_of_summed(v, 0)), ex_num(1)); }
Expr *value_at_place(const Var *v, Expr *place) { return ex_sub(ex_add2(place, end_of_summed(v, 0)), ex_num(1)); }

static void add_to_sites(Var *m, Site *s)
{
    Site **end = &m->sites;
    while (*end) end = &(*end)->next;
    *end = s;
}

// A chain that is being summed over. Of two values, and of states that remember, each stands in a site of its own: what is written for one
// value alone is simpler.
typedef struct MessageChain {
    Graph *g;
    const Conditional *c;
    Expr *states;
    const Past *each;  // the states that are written one by one; NULL: they run in loops
    Expr *there;       // stands for the place of the state before in arrays of pairs
    Expr *alike;       // whether a chain is the first of those with the same data; NULL: each is by itself
} MessageChain;

// e, of an element and the state i before it, from 0.
static Expr *behind_state(const MessageChain *h, Expr *e, int i)
{
    e = ex_replace(ex_replace(e, element_beside(h->c, -1), ex_num(h->each->value[i])), h->there, ex_num(i + 1));
    return h->c->past ? at_summaries(h->c, e, &h->each->summary[i * h->each->nsummaries]) : e;
}

// ---- chains with the same data ----

// Capture histories repeat: where chains differ by rows of data alone, sums over chains with the same rows are the same.
// Which chain is the first with its rows is found by comparing each with those before it, for up to so many chains; else each is its own.
enum { MOST_COMPARED = 4096 };

typedef struct AlikeRows {
    Graph *g;
    const Conditional *c;
    Expr *differ;
    Index *other;
    bool any;
    int n, size;
    Var **rows;
} AlikeRows;

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
    if ((e->var->kind != VAR_DATA && e->var->kind != VAR_LET) || e->nargs != e->var->rank || e->var->rank > 2 ||
        e->var->dim[0] != r->c->var->dim[0])
        return FOUND;
    Expr *mine[2] = {ex_index(chain)}, *others[2] = {ex_index(r->other)};
    Index *t = e->nargs == 2 ? index_new(intern("t"), ex_num(1), e->var->dim[1]) : NULL;
    if (t) mine[1] = others[1] = ex_index(t);
    Expr *here = ex_ref(e->var, e->nargs, mine), *there = ex_ref(e->var, e->nargs, others), *one = ex_call2("!=", here, there);
    // those that are missing are drawn: such a row is like no other
    if (e->var->response && !needed_for(r->g, e->var))
        one = ex_call2("||", ex_call2("||", ex_call1("missing", here), ex_call1("missing", there)), one);
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
    m->known.minds_missing = true;
    m->span = c->var->span;
    m->rank = 1;
    m->dim[0] = c->var->dim[0];
    m->lower_number = 0;
    m->sites = NEW(g->arena, Site);
    *m->sites = (Site){.span = m->span, .var = m, .plates = {.n = 1}, .n = 1};
    m->sites->plates.index[0] = index_new(intern("k"), ex_num(1), m->dim[0]);
    m->sites->subscript[0] = ex_index(m->sites->plates.index[0]);
    return m;
}

// Two lets: the first chain with the data of each, and how many have these data. NULL: other things distinguish chains.
static Var *alike_rows(Graph *g, const Conditional *c, Expr *densities)
{
    if (c->var->rank != 2 || c->var->summing.chain != 1) return NULL;
    Index *i = index_new(intern("i"), ex_num(1), ex_num(1));
    AlikeRows r = {.g = g, .c = c, .differ = ex_num(0), .other = i};
    if (ex_find(densities, test_rows, &r) || !r.any) return NULL;
    Var *first = let_by_chain(g, c, "first_alike"), *count = let_by_chain(g, c, "number_alike");
    Expr *k = first->sites->subscript[0], *lo = ex_call3("if_else", ex_call2("<=", first->dim[0], ex_num(MOST_COMPARED)), ex_num(1), k);
    Index *before = index_new(intern("i"), lo, k), *other = index_new(intern("i"), ex_num(1), count->dim[0]);
    Expr *same = ex_call2("==", ex_replace_index(ex_replace_index(r.differ, i, ex_index(before)), c->element[0], k), ex_num(0));
    first->sites->value = ex_reduce("min", before, lo, k, ex_call3("if_else", same, ex_index(before), k));
    count->sites->value = ex_reduce("sum", other, other->lo, other->hi,
                                    ex_call2("==", ex_ref(first, 1, (Expr *[]){ex_index(other)}), count->sites->subscript[0]));
    first->summing.alike = count;
    first->summing.nrows = r.n;
    first->summing.rows = r.rows;
    first->summing.rows_counted = var_unique(g, arena_printf(g->arena, "different_%s", c->var->name), VAR_ELEMENT);
    first->summing.rows_counted->summing.counts_rows = true;
    return first;
}

Expr *first_alike(const Var *v, Expr *chain) { return v->summing.alike ? ex_ref(v->summing.alike, 1, &chain) : chain; }

// ---- messages ----

// A site of m at subscripts, for elements with the indices of the chain (but for the one along it, if `length` is not an end of it); the
// states have indices, or are numbers.
static Site *chain_site(const MessageChain *h, Var *m, int n, Expr *const *at)
{
    Site *s = NEW(h->g->arena, Site);
    *s = (Site){.span = h->c->var->span, .var = m, .n = n};
    memcpy(s->subscript, at, sizeof *at * (size_t)n);
    add_to_sites(m, s);
    return s;
}

static void add_plate(Site *s, Expr *state)
{
    if (state->kind == EX_INDEX) s->plates.index[s->plates.n++] = state->index;
}

// With the values of a pair written out, whether numbers lie in the support is known: 0 <= p*(1 - 1), 0 <= p, 0 <= -p; p <= 1 of a
// probability.
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

// What the element and the one behind it have between them (`pair`), or what the element has by itself, at each of their values, in an
// array of its own: sums over the chain and their derivatives read each several times. The array has the subscripts that e depends on; that
// along the chain is the first element's of a pair. Returns what stands for e, with the values as they are in it.
static Expr *tabulated(const MessageChain *h, const char *name, Expr *e, bool pair)
{
    const Conditional *c = h->c;
    Var *v = c->var, *m = var_unique(h->g, arena_printf(h->g->arena, "%s_%s", name, v->name), VAR_SERIES);
    Expr *at[MAX_RANK], *read[MAX_RANK], *before = element_beside(c, -1);
    Index *t = c->element[v->summing.chain], *ahead = index_new(t->name, ex_num(1), ex_sub(v->dim[v->summing.chain], ex_num(1)));
    Expr *values = h->each ? ex_num(h->each->nvalues) : h->states;
    Expr *depends = ex_replace(
        ex_replace(c->past ? at_summaries(c, e, c->past->before) : e, before, ex_index(index_of_values(c, "i", values))), c->u,
        ex_index(index_of_values(c, "j", values)));
    m->hidden = true;
    m->span = v->span;
    for (int k = 0; k < v->rank; k++) {
        if (!ex_mentions_index(depends, c->element[k])) continue;
        at[m->rank] = k == v->summing.chain ? ex_index(ahead) : c->current->args[k];
        read[m->rank] = k == v->summing.chain ? ex_sub(c->current->args[k], ex_num(1)) : c->current->args[k];
        m->dim[m->rank++] = v->dim[k];
    }
    const int n = m->rank;
    if (pair) m->dim[m->rank++] = h->states;
    m->dim[m->rank++] = values;
    for (int i = 0; i < (h->each && pair ? h->each->nstates : 1); i++)
        for (int j = 0; j < (h->each ? h->each->nvalues : 1); j++) {
            Expr *here = h->each ? ex_num(j + 1) : ex_index(index_of_values(c, "j", h->states)),
                 *there = h->each ? ex_num(i + 1) : ex_index(index_of_values(c, "i", h->states));
            int rank = n;
            if (pair) at[rank++] = there;
            at[rank++] = here;
            Site *s = chain_site(h, m, rank, at);
            for (int k = 0; k < v->rank; k++)
                if (ex_mentions_index(depends, c->element[k]))
                    s->plates.index[s->plates.n++] = k == v->summing.chain ? ahead : c->element[k];
            if (pair) add_plate(s, there);
            add_plate(s, here);
            if (h->alike && ex_mentions_index(depends, c->element[0])) s->plates.guard = h->alike;
            s->value = ex_replace(h->each ? behind_state(h, e, i) : ex_replace(e, before, value_at_place(v, there)), c->u,
                                  value_at_place(v, here));
            s->value = ex_replace_index(s->value, t, ex_add2(ex_index(ahead), ex_num(1)));
            if (h->each) s->value = ex_map(s->value, settle_leaf, NULL);
        }
    if (!add_series(h->g, m)) abort();  // no element of it reads another
    m->series->chains = v->summing.chain > 0 && ex_mentions_index(depends, c->element[0]);
    int rank = n;
    if (pair) read[rank++] = h->each ? h->there : place_of_value(v, before);
    read[rank++] = place_of_value(v, c->u);
    return ex_ref(m, rank, read);
}

// What an element of c and the one before it have between them, and the element by itself, read from these arrays; `there` stands for the
// place of the state before.
typedef struct Linked {
    const Conditional *c;
    Expr *value, *there;
} Linked;

// The same of the element that another conditional of the variable studies. Chains with the same data share what is there.
static Expr *linked_to(const Linked *l, const Conditional *c, Expr *there)
{
    const Var *v = c->var;
    Expr *e = ex_replace(ex_replace(l->value, l->there, there), element_beside(l->c, -1), element_beside(c, -1));
    e = ex_replace(e, l->c->u, c->u);
    for (int k = 0; k < v->rank; k++)
        e = ex_replace_index(e, l->c->element[k], k == 0 ? first_alike(v, c->current->args[0]) : c->current->args[k]);
    return e;
}

// log_sum_exp of terms that are written one by one.
static Expr *sum_of(int n, Expr *const *term)
{
    Expr *all = term[0];
    for (int k = 1; k < n; k++) all = ex_call2("log_sum_exp2", all, term[k]);
    return all;
}

// The sum over the states of a chain, as it is made: what its messages are of.
typedef struct ChainSum {
    MessageChain h;
    const Conditional *c;
    Expr *local, *link, *length;
    bool moved;  // read by moves: what messages are made of is in arrays
    Expr *next;  // that, of the element behind
    Var *m;      // the messages
    int nterms;
    Expr **all;  // the terms of a sum, one by one
} ChainSum;

// What messages are made of, in arrays that chains with the same data share.
static void put_in_arrays(ChainSum *s)
{
    MessageChain *h = &s->h;
    const Conditional *c = s->c;
    Graph *g = h->g;
    Var *v = c->var;
    Expr *all = ex_add2(s->local, s->link);
    v->summing.alike = alike_rows(g, c, c->past ? ex_add2(at_summaries(c, all, c->past->before), of_first(c)) : all);
    if (v->summing.alike) h->alike = ex_call2("==", first_alike(v, c->current->args[0]), c->current->args[0]);
    s->next = h->each ? tabulated(h, "links", ex_add2(s->link, s->local), true)
                      : ex_add2(tabulated(h, "links", s->link, true), tabulated(h, "weights", s->local, false));
    Linked *l = NEW(g->arena, Linked);
    *l = (Linked){c, s->next, h->there};
    v->summing.linked = l;
}

static Var *messages_var(Graph *g, Var *v, Expr *length, Expr *states)
{
    Var *m = v->summing.messages = var_unique(g, arena_printf(g->arena, "messages_%s", v->name), VAR_SERIES);
    m->hidden = true;
    m->span = v->span;
    for (int k = 0; k < v->rank; k++)
        if (k != v->summing.chain) m->dim[m->rank++] = v->dim[k];
    m->dim[m->rank++] = length;
    m->dim[m->rank++] = states;
    return m;
}

// The messages of the i-th state (of any, if states are not written one by one): at the last element, or at those before, `t`.
static void put_message(ChainSum *o, int i, bool before_last)
{
    const MessageChain *h = &o->h;
    const Conditional *c = o->c;
    Var *v = c->var;
    const int along = v->summing.chain;
    Index *last = c->element[along];
    Index *t = index_new(last->name, ex_num(1), ex_sub(o->length, ex_num(1))), *k = index_new(intern("k"), ex_num(1), h->states);
    Expr *state = h->each ? ex_num(i + 1) : ex_index(index_new(intern("j"), ex_num(1), h->states)),
         *value = h->each ? ex_num(h->each->value[i]) : value_at_place(v, state), *at[MAX_RANK], *sub[MAX_RANK];
    memcpy(at, c->current->args, sizeof *at * (size_t)v->rank);
    Expr *here = at[along] = before_last ? ex_index(t) : o->length;
    memcpy(sub, message_at(v, at, state)->args, sizeof *sub * (size_t)o->m->rank);
    Site *s = chain_site(h, o->m, o->m->rank, sub);
    for (int q = 0; q < v->rank; q++)
        if (q != along) s->plates.index[s->plates.n++] = c->element[q];
    if (before_last) s->plates.index[s->plates.n++] = t;
    add_plate(s, state);
    s->plates.guard = h->alike;
    s->value = o->moved ? ex_num(0) : ex_replace_index(ex_replace(o->local, c->u, value), last, here);
    if (!before_last) return;
    Expr *from = o->moved ? o->next : o->link;
    from = h->each ? behind_state(h, from, i) : ex_replace(from, element_beside(c, -1), value);
    at[along] = ex_add2(here, ex_num(1));
    for (int to = 0; to < o->nterms; to++) {
        Expr *other = h->each ? ex_num(h->each->next[i * o->nterms + to] + 1) : ex_index(k),
             *pair = ex_replace(from, c->u, h->each ? ex_num(h->each->first + to) : value_at_place(v, other));
        o->all[to] = ex_add2(ex_replace_index(pair, last, at[along]), message_at(v, at, other));
    }
    s->value = ex_add2(s->value, h->each ? sum_of(o->nterms, o->all) : ex_reduce("log_sum_exp", k, ex_num(1), h->states, o->all[0]));
    if (c->past) s->value = ex_map(s->value, settle_leaf, NULL);
}

// log_sum_exp of the first messages, with what the first element has by itself.
static Expr *sum_at_first(ChainSum *o)
{
    const MessageChain *h = &o->h;
    const Conditional *c = o->c;
    Var *v = c->var;
    Expr *at[MAX_RANK];
    memcpy(at, c->current->args, sizeof *at * (size_t)v->rank);
    at[v->summing.chain] = ex_num(1);
    Index *j = index_new(intern("j"), ex_num(1), h->states), *last = c->element[v->summing.chain];
    Expr *alone = of_first(c), **all = o->all;
    for (int k = 0; k < o->nterms; k++) {
        Expr *state = h->each ? ex_num(h->each->start[k] + 1) : ex_index(j),
             *value = h->each ? ex_num(h->each->first + k) : value_at_place(v, state);
        all[k] = message_at(v, at, state);
        if (o->moved) all[k] = ex_add2(ex_replace_index(ex_replace(o->local, c->u, value), last, ex_num(1)), all[k]);
        all[k] = ex_add2(all[k], ex_replace(alone, c->u, value));
        if (h->each) all[k] = ex_map(all[k], settle_leaf, NULL);
    }
    return h->each ? sum_of(o->nterms, all) : ex_reduce("log_sum_exp", j, ex_num(1), h->states, all[0]);
}

// The series of messages; returns log_sum_exp of the first, in the other subscripts of the element. For sums that moves read, what messages
// are made of is in arrays, and a message is what comes behind its element: its value is then the sum that derivatives need.
Expr *sum_along(Graph *g, const Conditional *c, Expr *local, bool moved)
{
    Var *v = c->var;
    v->summing.chain = c->nbatch;
    const Expr *first = end_of_summed(v, 0), *top = end_of_summed(v, 1);
    const bool two = first->kind == EX_NUM && top->kind == EX_NUM && top->number == first->number + 1;
    MessageChain h = {.g = g,
                      .c = c,
                      .each = c->past ? c->past
                              : two   ? no_past(g, first->number, 2)
                                      : NULL,
                      .there = ex_ref(var_new(g, v->name, VAR_ELEMENT), 0, NULL)};
    h.states = h.each ? ex_num(h.each->nstates) : place_of_value(v, end_of_summed(v, 1));
    ChainSum s = {.h = h, .c = c, .local = local, .link = link_before(c), .length = v->dim[v->summing.chain]};
    s.moved = moved && v->rank + 2 <= MAX_RANK;
    if (s.moved) put_in_arrays(&s);
    s.m = messages_var(g, v, s.length, h.states);
    s.nterms = h.each ? h.each->nvalues : 1;
    s.all = NEW_N(g->arena, Expr *, s.nterms);
    for (int which = 0; which < 2 * (h.each ? h.each->nstates : 1); which++) put_message(&s, which / 2, which % 2);
    if (!add_series(g, s.m)) return NULL;
    s.m->series->chains = v->summing.chain > 0;
    return sum_at_first(&s);
}

// Of a chain that remembers, in terms of the state of the element before.
static void remember(const Conditional *c, Part *q, bool first_too)
{
    Expr *at[MAX_RANK], *is_first = ex_call2("==", c->current->args[c->nbatch], ex_num(1)), *before = element_beside(c, -1);
    memcpy(at, before->args, sizeof *at * (size_t)c->var->rank);
    for (int k = 0; k < c->past->nsummaries; k++) {
        Expr *is = remembered(c->past, k, ex_ref(c->state->var, c->var->rank, at), first_too ? is_first : ex_num(0)),
             *stand = ex_ref(c->past->stand[k], c->var->rank, c->current->args);
        q->value = ex_replace(q->value, stand, is);
        if (q->loops.guard) q->loops.guard = ex_replace(q->loops.guard, stand, is);
    }
}

// The conditional of an element given those before it and all behind it summed out.
Conditional *chain_density(Graph *g, Var *v, bool collapsed)
{
    Conditional *c = conditional_density(g, v, collapsed);
    if (!v->discrete || v->base != BASE_INT || !v->rank || c->nbatch == v->rank || along_neighbours(c)) return c;
    Conditional *longer = conditional_with_past(g, v, collapsed);
    return longer && along_neighbours(longer) ? longer : c;
}

Conditional *conditional_chain(Graph *g, Var *v)
{
    Conditional *c = chain_density(g, v, v->summing.summed || can_collapse(g, v));
    Part *first = NULL, **last = &first;
    Expr *at[MAX_RANK], *place = place_of_value(v, c->u);
    memcpy(at, c->current->args, sizeof *at * (size_t)v->rank);
    if (c->past) {
        Var *state = var_unique(g, arena_printf(g->arena, "state_%s", v->name), VAR_ELEMENT);
        state->base = BASE_INT;
        state->rank = v->rank;
        memcpy(state->dim, v->dim, sizeof state->dim);
        c->state = ex_ref(state, v->rank, at);
        place = state_behind(c->past, ex_ref(state, v->rank, element_beside(c, -1)->args), c->u,
                             ex_call2("==", c->current->args[c->nbatch], ex_num(1)));
        c->state_is = ex_replace(place, c->u, c->current);
    }
    at[0] = first_alike(v, at[0]);
    Expr *along = c->current->args[v->summing.chain], *is_first = ex_call2("==", along, ex_num(1)),
         *not_first = ex_call2("<=", ex_num(2), along);
    bool any_before = true;  // every element but the first has one before it that exists
    for (const Part *q = c->density; q; q = q->next)
        if (ex_mentions(q->value, v)) any_before &= q->loops.guard == not_first || neighbour_of(c, q).apart != -1;
    for (Part *q = c->density; q; q = q->next)
        if (ex_mentions(q->value, v) ? !v->summing.linked && neighbour_of(c, q).apart == -1 : v->summing.linked || reads_past(c, q)) {
            if (c->past) remember(c, q, !ex_mentions(q->value, v));
            if (v->summing.linked && q->loops.guard != is_first)
                q->loops.guard = q->loops.guard ? ex_call2("&&", is_first, q->loops.guard) : is_first;
            *last = q;
            last = &q->next;
        }
    if (v->summing.linked && v->summing.chain < v->rank) {  // of what follows the first element all is in arrays
        Part *q = *last = NEW(g->arena, Part);
        Expr *there = c->past ? ex_ref(c->state->var, v->rank, element_beside(c, -1)->args) : place_of_value(v, element_beside(c, -1));
        if (!c->past && !any_before)
            there = ex_call3("if_else",
                             ex_call2("&&", ex_call2("<=", end_of_summed(v, 0), element_beside(c, -1)),
                                      ex_call2("<=", element_beside(c, -1), end_of_summed(v, 1))),
                             there, ex_num(1));
        *q = (Part){.factor = c->density ? c->density->factor : NULL,
                    .loops = {.guard = not_first},
                    .value = linked_to(v->summing.linked, c, there)};
        last = &q->next;
    }
    Part *rest = *last = NEW(g->arena, Part);
    *rest = (Part){.factor = first ? first->factor : NULL, .value = message_at(v, at, place)};
    c->density = first;
    if (c->nbatch < v->rank) c->nbatch = v->summing.chain;
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
