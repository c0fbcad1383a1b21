// sums.c -- one discrete unknown is summed out: by a sum over its values for each element, along a chain, or by a pass over the rows that
// name its elements.
//
//   before   categorical(c[i] | theta), normal(y[i] | mu[c[i]], s), both over i
//   after    log_sum_exp(k in 1:K, log(theta[k]) + normal(y[i] | mu[k], s)) over i
//
// Needs: ranges of discrete unknowns.     Gives: a factor for the sum, Factor.gone of the factors that it absorbs; or the reason why not.
#include <math.h>
#include <string.h>
#include "sums.h"
#include "../conditional.h"
#include "../terms/var.h"
#include "../terms/supports.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/existence.h"
#include "../algebra/ends.h"
#include "../algebra/conditionals.h"
#include "../algebra/afresh.h"
#include "neighbours.h"
#include "messages.h"

// ---- the density of one element ----

enum { MOST_WRITTEN_OUT = 300 };  // nodes of a density that stands twice, once for each of two values

static Expr *over_values(const Conditional *c, Expr *e, Expr *first, Expr *last)
{
    const double lo = first->kind == EX_NUM ? first->number : NAN, hi = last->kind == EX_NUM ? last->number : NAN;
    if (lo == hi) return ex_replace(e, c->u, first);
    if (lo + 1 == hi && e->size < MOST_WRITTEN_OUT) return ex_call2("log_sum_exp2", ex_replace(e, c->u, first), ex_replace(e, c->u, last));
    Index *j = index_new(c->var->name, first, last);
    return ex_reduce("log_sum_exp", j, first, last, ex_replace(e, c->u, ex_index(j)));
}

static const char *line_of(Graph *g, Span at) { return arena_printf(g->arena, "line %d", span_line(at)); }

// ---- sums over values ----

static void new_sum(Graph *g, const Var *v, int number, Loops p, Expr *log_density)
{
    Factor *sum = factor_new(g, v->span, p);
    sum->log_density = log_density;
    sum->sums_out = v;
    sum->made = number;
}

// ---- rows that name the element that they read ----

// Where a statement looks its element up, y[n] ~ normal(mu[c[g[n]]], 1), a sum over the rows of each element would look at all of them for
// each. One pass over the rows adds to the log densities of all elements, an array of the sweep. Its sites stand under one index, that of
// the value.
static void add_site(Graph *g, Series *s, Span at, const Loops *l, Expr *const *element, Expr *value, const Conditional *c, bool adds)
{
    Var *m = s->var[0];
    for (int way = 0; way < 2; way++) {  // with a plate for the values, and under the index of the series
        Site *t = NEW(g->arena, Site), **last = way ? &s->sites : &m->sites;
        Index *j = way ? s->along : index_new(s->along->name, s->along->lo, s->along->hi);
        *t = (Site){.span = at,
                    .var = m,
                    .plates = {.guard = l->guard},
                    .n = m->rank,
                    .adds = adds,
                    .value = ex_replace(value, c->u, value_at_place(c->var, ex_index(j)))};
        for (int k = 0; k < l->n; k++) t->plates.index[t->plates.n++] = l->index[k];
        if (!way) t->plates.index[t->plates.n++] = j;
        memcpy(t->subscript, element, sizeof *element * (size_t)c->var->rank);
        t->subscript[c->var->rank] = ex_index(j);
        while (*last) last = &(*last)->next;
        *last = t;
    }
}

bool is_gathered(const Conditional *c)
{
    bool any = false;
    for (const Part *q = c->density; q; q = q->next) any |= q->scatter;
    return any && c->var->rank > 0 && c->var->rank < MAX_RANK;
}

// What an element has besides, which may hold its parents, stays beside the array where these are to see the sum. So does what
// the rows of its own statement have (`own`).
static Expr *sum_by_rows(Graph *g, Conditional *c, Expr *own, int number, bool for_parents)
{
    Var *v = c->var, *m = v->summing.messages = var_unique(g, arena_printf(g->arena, "log_density_%s", v->name), VAR_SERIES);
    Part *all = c->density, *alone = NULL, **last = &alone;
    Expr *states = place_of_value(v, end_of_summed(v, 1)), *apart;
    v->summing.chain = v->rank - 1;
    m->hidden = true;
    m->span = v->span;
    for (int k = 0; k < v->rank; k++) m->dim[m->rank++] = v->dim[k];
    m->dim[m->rank++] = states;
    Series *s = m->series = NEW(g->arena, Series), **end = &g->series;
    *s = (Series){.n = 1, .var = arena_copy(g->arena, &m, sizeof m), .along = index_of_values(c, "j", states)};
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
        Loops rows = q->loops;
        if (!ex_is_num(without, 0)) new_sum(g, v, number, rows, without);
    }
    c->density = all;
    if (for_parents) {
        Expr *each = ex_add2(ex_add2(here, own), message_at(v, c->current->args, place_of_value(v, c->u)));
        v->summing.messages = NULL;  // its own draw goes through its rows
        return ex_add2(apart, over_values(c, each, end_of_summed(v, 0), end_of_summed(v, 1)));
    }
    Index *j = index_of_values(c, "j", states);
    return ex_add2(apart, ex_reduce("log_sum_exp", j, ex_num(1), states, message_at(v, c->current->args, ex_index(j))));
}

// ---- one unknown ----

// A sum that is an array of the sweep cannot hold another sum out of it: which it is, and of which unknown.
static const char *why_not_within(Graph *g, const Var *messages)
{
    const Var *other = NULL;
    for (int i = 0; i < g->nvars && !other; i++)
        if (g->vars[i]->summing.messages == messages) other = g->vars[i];
    const char *name = other ? other->name : messages->name;
    for (const Site *t = messages->sites; t; t = t->next)
        if (t->adds)
            return arena_printf(g->arena,
                                "the rows of %s look up elements of `%s`, and the sum over its values gathers them as a whole; a second "
                                "unknown cannot be summed out of it",
                                line_of(g, t->span), name);
    return arena_printf(g->arena, "it enters the sum along the chain of `%s` (%s), as a whole; a second unknown cannot be summed out of it",
                        name, line_of(g, messages->span));
}

// Why v cannot be summed out; NULL: it can.
static const char *obstacle(Graph *g, const Var *v, const Conditional *c, bool chains)
{
    if (!v->discrete || v->base != BASE_INT) return "its values are reals";
    if (!end_of_summed(v, 0) || !end_of_summed(v, 1))
        return arena_printf(g->arena,
                            "its values do not lie between two ends that are the same for all elements and known from data; bounds say it: "
                            "int<lower=0, upper=10> %s",
                            v->name);
    if (c->recursion && c->recursion->hidden) return why_not_within(g, c->recursion);
    if (c->recursion)
        return arena_printf(g->arena, "it enters the recursion of `%s` (%s)", c->recursion->name, line_of(g, c->recursion->span));
    if ((c->whole || c->nbatch < v->rank) && !(chains && along_neighbours(c))) {
        const char *where = c->couples ? arena_printf(g->arena, "the statement of %s", line_of(g, c->couples->span)) : "a statement";
        if (c->couples && c->couples->sums_out)
            return arena_printf(g->arena, "the sum over the values of `%s` couples several of its elements", c->couples->sums_out->name);
        return arena_printf(g->arena, "%s couples several of its elements", where);
    }
    return NULL;
}

const Factor *reading_latents(Graph *g, const Var *v)
{
    const Reading r = factors_of(g, v);
    for (int q = 0; q < r.n; q++)
        if (factor_counts(r.factor[q], v, true) && r.factor[q]->replaced && factor_mentions(r.factor[q], v) && !can_collapse(g, v))
            return r.factor[q];
    return NULL;
}

// What a value of another unknown that is still to be summed out makes impossible is said while the statement is known.
static void weigh_others(Graph *g, const Var *v, Expr **keep, bool on)
{
    int n = 0;
    for (Factor *f = g->factors; f; f = f->next) {
        if (!factor_counts(f, v, true) || !factor_mentions(f, v)) continue;
        if (!on) {
            f->log_density = keep[n++];
            continue;
        }
        keep[n++] = f->log_density;
        for (int i = 0; i < g->nvars; i++) {
            const Var *w = g->vars[i];
            if (w != v && w->summing.summed == 0 && (w->summing.parent || (w->summing.sums == v->summing.sums && asked_marginal(g, w))) &&
                factor_mentions(f, w))
                f->log_density = weighed(g, f, w)->log_density;
        }
    }
}

static bool test_parent(const Var *v, void *with)
{
    (void)with;
    return v->summing.parent;
}

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

// z[i] ~ f(w[k]) over k, i in first[k]:last[k]: each element is in one slice, whose k its subscripts do not name. A sum over elements would
// look for k, and hold all w[k]; it is one over the rows of this statement.

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
    for (int k = 0; k < f->plates.n; k++) {
        all[n++] = f->plates.index[k]->lo;
        all[n++] = f->plates.index[k]->hi;
    }
    if (f->plates.guard) all[n++] = f->plates.guard;
    all[n] = f->log_density;
    for (int k = 0; k < f->plates.n; k++)
        for (int i = 0; i <= n; i++) all[i] = ex_replace_index(all[i], f->plates.index[k], ex_index(own->plates.index[k]));
    for (int k = 0; k < own->plates.n; k++)
        if (all[2 * k] != own->plates.index[k]->lo || all[2 * k + 1] != own->plates.index[k]->hi) return NULL;
    return (f->plates.guard && all[n - 1] != own->plates.guard) || ex_mentions(ex_replace(all[n], own->value, ex_num(0)), own->value->var)
               ? NULL
               : all[n];
}

// Takes what stands in the statement's rows out of the parts; returns its log density.
static Expr *take_slices(const Factor *own, Part **parts)
{
    Expr *all = ex_num(0);
    const Factor *taken = NULL;
    while (*parts) {
        Expr *e = in_rows_of(own, (*parts)->factor);
        if (!e) {
            parts = &(*parts)->next;
            continue;
        }
        if ((*parts)->factor != taken) all = ex_add2(all, ends_decide(e));
        taken = (*parts)->factor;
        *parts = (*parts)->next;
    }
    return all;
}

// The plates of chains in place of those of elements, where there is an element; of chains that are alike the first stands for all.
static Expr *each_chain(const Var *v, Loops *p, Expr *e)
{
    p->n--;
    memmove(&p->index[v->summing.chain], &p->index[v->summing.chain + 1], sizeof *p->index * (size_t)(p->n - v->summing.chain));
    const Expr *length = v->dim[v->summing.chain];
    const bool any = length->kind == EX_NUM ? length->number >= 1 : length->kind == EX_REF && length->var->lower_number >= 1;
    if (!any) p->guard = ex_call2("<=", ex_num(1), v->dim[v->summing.chain]);
    if (v->summing.alike) {
        Expr *k = ex_index(p->index[0]);
        Expr *stands = ex_call2("==", first_alike(v, k), k);
        p->guard = p->guard ? ex_call2("&&", p->guard, stands) : stands;
        e = ex_mul2(ex_ref(v->summing.alike->summing.alike, 1, &k), e);
    }
    return e;
}

// Sums v out, as the number `number`; along a chain only if there may be chains. But for all others it is a sum over each element alone.
// Returns why it cannot.
const char *sum_out(Graph *g, Var *v, int number, bool chains, Seen by)
{
    int n = 0;
    for (Factor *f = g->factors; f; f = f->next) n++;
    Expr **keep = NEW_N(g->arena, Expr *, n + 1);
    v->summing.sums = number - 1;
    weigh_others(g, v, keep, true);
    Conditional *c = chains ? chain_density(g, v, true) : conditional_density(g, v, true), *scattered = conditional_scattered(g, v, true);
    const Factor *slices = by == FOR_ALL || c->nbatch < v->rank ? NULL : statement_of_slices(g, v);
    Expr *sliced = slices ? take_slices(slices, &c->density) : ex_num(0);
    if (slices) take_slices(slices, &scattered->density);
    weigh_others(g, v, keep, false);
    const char *because = obstacle(g, v, c, chains);
    if (because) return because;
    const Factor *latent = reading_latents(g, v);
    if (latent)
        return arena_printf(g->arena, "the statement of %s has latents that are not drawn from their conditionals",
                            line_of(g, latent->span));
    const bool chain = c->nbatch < v->rank;
    Loops p = {.n = v->rank};
    for (int k = 0; k < v->rank; k++) p.index[k] = c->element[k];
    if (!chain) p.guard = var_domain(g, v, p.index);  // an element without a statement has no values to sum over
    Expr *apart, *e = ex_add2(own_density(c, &apart), slices ? ex_replace(sliced, slices->value, c->u) : sliced);
    const bool rows = !chain && is_gathered(scattered);
    if (rows && by != FOR_ALL && (by == FOR_MOVES || !rows_alone(scattered))) return "rows look its elements up";
    if (rows && by != FOR_TRIAL) {
        e = sum_by_rows(g, scattered, slices ? ex_replace(sliced, slices->value, scattered->u) : sliced, number, by == FOR_PARENTS);
        apart = ex_num(0);
        p = loops_of_indices(scattered->element, v->rank, var_domain(g, v, scattered->element));
    } else e = chain ? sum_along(g, c, e, g->method != METHOD_EM) : over_values(c, e, end_of_summed(v, 0), end_of_summed(v, 1));
    if (!e) return "its elements depend on each other in no order";
    if (slices) {
        for (int k = 0; k < v->rank; k++) {
            e = ex_replace_index(e, p.index[k], slices->value->args[k]);
            apart = ex_replace_index(apart, p.index[k], slices->value->args[k]);
        }
        p = slices->plates;
    }
    for (Factor *f = g->factors; f; f = f->next)
        if (f == factor_written(f) && factor_counts(f, v, true) && factor_mentions(f, v)) f->gone = number;
    if (chain) {
        if (!ex_is_num(apart, 0)) new_sum(g, v, number, p, apart);
        e = each_chain(v, &p, e);
    } else e = ex_add2(e, apart);
    new_sum(g, v, number, p, !chain && p.guard ? ex_replace(e, p.guard, ex_num(1)) : e);
    if (by == FOR_MOVES) {
        v->summing.offered = true;
        g->offers = number;
    } else v->summing.summed = number;
    g->reading = NULL;  // it knows of the factors that there were
    return NULL;
}

// What is made of matrices, or is an array.
static Look test_matrix(const Expr *e, void *with)
{
    (void)with;
    for (int k = 0; k < e->nargs && e->kind == EX_CALL; k++)
        if (ex_rank(e->args[k]) > 1) return FOUND;
    return e->kind == EX_AT || e->kind == EX_ARRAY ? FOUND : LOOK;
}

bool has_matrix(const Expr *e) { return ex_find(e, test_matrix, NULL); }
