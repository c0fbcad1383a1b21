// exchanges.c -- counts that are added up, moved against each other.
//
//   before   y[t] ~ poisson(n[t] + m[t])
//   after    also: (n[t], m[t]) becomes (n[t] + c, m[t] - c), c a whole number drawn from p(moved): what reads the sum stays as it is
//
// Given one of them and the sum, the other has no room; drawn one after the other they walk along their sum as far as what reads the sum lets one of them go alone, which is the less the more counts there are in it.
// The translations T_c are a group that acts on the unknowns, whose Haar measure counts and whose Jacobian is 1: c drawn from p(T_c x) leaves p invariant (Liu and Sabatti 2000, theorem 1). c is a variable of its own, an
// element for each of n, 0 before it is drawn, with factors in which T_c x stands for x: the normal form of sums cancels it wherever the sum stands. m[t] + c, which keeps differences, is tried too.
//
// Needs: the steps of the schedule.     Gives: steps of c (SLICE) with `orbit` set, after which T_c is applied.
// Conditions: both are whole numbers of more than a few values that are sliced or weighed one by one, of the same shape, with a least value; some factor holds both at the same subscripts and
// is free of c there once they have moved; elements of c do not depend on each other. What moves enters no recursion, decides no condition or range, is no subscript, and meets nothing that is summed out or integrated out.
#include <math.h>
#include <string.h>
#include "exchanges.h"
#include "../conditional.h"
#include "../step.h"
#include "../terms/var.h"
#include "../terms/supports.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/existence.h"
#include "../algebra/conditionals.h"
#include "steps.h"

typedef struct Exchange { Var *v, *w, *by; int sign; bool failed; } Exchange;       // w moves by sign*c

static bool moves(const Var *v, void *with)
{
    const Exchange *x = with;
    return v == x->v || v == x->w;
}

static bool mentions_both(const Expr *e, const Exchange *x) { return ex_mentions(e, x->v) && ex_mentions(e, x->w); }
static bool mentions_moved(const Expr *e, const Exchange *x) { return ex_mentions(e, x->v) || ex_mentions(e, x->w); }

static Expr *moved_element(const Exchange *x, Expr *ref)
{
    Expr *c = ex_ref(x->by, ref->nargs, ref->args);
    return ex_add2(ref, ref->var == x->v ? c : ex_mul2(ex_num(x->sign), c));
}

// T_c x in place of x.
static Expr *move(Expr *e, void *with)
{
    Exchange *x = with;
    if (x->failed || !mentions_moved(e, x)) return e;
    if (e->kind != EX_REF) {
        x->failed |= e->kind == EX_ARRAY || e->kind == EX_AT || (e->kind == EX_REDUCE && (mentions_moved(e->args[0], x) || mentions_moved(e->args[1], x)));
        return x->failed ? e : NULL;
    }
    for (int k = 0; k < e->nargs; k++) x->failed |= mentions_moved(e->args[k], x);
    x->failed |= e->nargs < e->var->rank || !moves(e->var, x);
    return x->failed ? e : moved_element(x, e);
}

// Whether v[..] and w[..] with the same subscripts are in the factor, and c[..] is not once they have moved.
typedef struct Kept { const Exchange *x; Expr *was, *is; bool any; } Kept;

static void look_at_pair(Expr *ref, void *with)
{
    Kept *k = with;
    Expr *other = ex_ref(k->x->w, ref->nargs, ref->args), *c = ex_ref(k->x->by, ref->nargs, ref->args);
    k->any |= ex_replace(k->was, other, ex_num(0)) != k->was && ex_replace(k->is, c, ex_num(0)) == k->is;
}

static bool keeps(const Exchange *x, Expr *was, Expr *is)
{
    Kept k = {x, was, is, false};
    if (mentions_both(was, x)) ex_references(was, x->v, look_at_pair, &k);
    return k.any;
}

// Ends of v, moved, as far as all elements have them alike.
static Expr *within_ends(const Exchange *x, Expr *ref) { return ex_call3("within", moved_element(x, ref), end_of_value(ref->var, 0), end_of_value(ref->var, 1)); }

// The factors of c, which stays 0 where one of the two does not exist. false: a condition is not met.
static bool factors_of_c(Graph *g, Exchange *x, Reading *out)
{
    Var *block[] = {x->v, x->w};
    const Reading of = factors_of_block(g, block, 2);
    out->factor = NEW_N(g->arena, Factor *, of.n + 2);
    bool kept = false;
    for (int q = 0; q < of.n; q++) {
        Factor *f = of.factor[q];
        if (!factor_counts_at(f, 0, false)) continue;
        if (decide_instances(f, moves, x)) return false;
        Factor *w = weighed(g, f, ex_mentions(f->log_density, x->v) ? x->v : x->w);
        Expr *is = ex_map(w->log_density, move, x);
        if (x->failed) return false;
        kept |= keeps(x, w->log_density, is);
        if (!ex_mentions(is, x->by)) continue;
        Factor *c = arena_copy(g->arena, w, sizeof *w);
        c->log_density = is;
        c->value = NULL;
        c->dist = NULL;
        c->if_missing = NULL;
        c->next = NULL;
        out->factor[out->n++] = c;
    }
    if (!kept || !out->n) return false;
    Plates p = {.n = x->v->rank, .index = NEW_N(g->arena, Index *, x->v->rank + 1)};
    Expr *v = var_element(g, x->v, p.index), *w = ex_ref(x->w, v->nargs, v->args), *all = NULL;
    for (int i = 0; i < 2; i++) {
        Expr *exists = var_domain(g, i ? x->w : x->v, p.index);
        if (exists && exists != all) all = all ? ex_call2("&&", all, exists) : exists;
    }
    for (int i = 0; i < (all ? 2 : 1); i++) {
        p.guard = i ? ex_call1("!", all) : all;
        Factor *ends = out->factor[out->n++] = arena_copy(g->arena, out->factor[0], sizeof *ends);
        ends->plates = p;
        ends->log_density = i ? ex_call3("within", ex_ref(x->by, v->nargs, v->args), ex_num(0), ex_num(0)) : ex_add2(within_ends(x, v), within_ends(x, w));
    }
    return true;
}

static Step *exchange(Graph *g, Var *v, Var *w, int sign)
{
    Exchange x = {.v = v, .w = w, .sign = sign};
    x.by = var_unique(g, arena_printf(g->arena, "shift_%s_%s", v->name, w->name), VAR_AUXILIARY);
    x.by->hidden = x.by->discrete = true;
    x.by->base = BASE_INT;
    x.by->span = v->span;
    x.by->rank = v->rank;
    memcpy(x.by->dim, v->dim, sizeof v->dim);
    Reading of = {0};
    Conditional *c = factors_of_c(g, &x, &of) ? conditional_given(g, x.by, &of, false) : NULL;
    if (!c || c->recursion || c->whole || c->nbatch < v->rank) {
        x.by->kind = VAR_ELEMENT;
        return NULL;
    }
    Orbit *o = NEW(g->arena, Orbit);
    *o = (Orbit){.by = x.by, .added = true, .n = 2, .moved = NEW_N(g->arena, Carried, 2)};
    for (int i = 0; i < 2; i++) {
        Carried *to = &o->moved[i];
        *to = (Carried){.var = i ? w : v};
        to->element = var_element(g, to->var, to->index);
        to->c = ex_ref(x.by, to->element->nargs, to->element->args);
        to->value = moved_element(&x, to->element);
    }
    Step *s = NEW(g->arena, Step);
    *s = (Step){.kind = STEP_SLICE, .span = v->span, .nblock = 1, .block = arena_copy(g->arena, &x.by, sizeof x.by), .conditional = c, .orbit = o,
                .reason = sign < 0 ? "given their sum, counts that are added up move only against each other" : "given their difference, two counts move only together"};
    return s;
}

bool find_exchanges(Graph *g)
{
    Step **last = &g->steps;
    for (Step **at = &g->steps; *at; at = &(*at)->next)
        if ((*at)->when != WITH_GRADIENTS) last = &(*at)->next;
    for (int i = 0, n = g->nvars; i < n; i++) {
        if (!step_of_count(g, g->vars[i])) continue;
        for (int k = i + 1; k < n; k++) {
            Var *v = g->vars[i], *w = g->vars[k];
            bool alike = v->rank == w->rank && step_of_count(g, w);
            for (int d = 0; d < v->rank && alike; d++) alike = v->dim[d] == w->dim[d];
            for (int sign = -1; sign <= 1 && alike; sign += 2) {
                Step *s = exchange(g, v, w, sign);
                if (!s) continue;
                s->next = *last;
                *last = s;
                last = &s->next;
            }
        }
    }
    return true;
}
