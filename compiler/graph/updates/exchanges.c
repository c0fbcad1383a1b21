// exchanges.c -- exchange moves: counts whose sum enters the model change against each other.
//
//   before   y[t] ~ poisson(n[t] + m[t])
//   after    also: (n[t], m[t]) becomes (n[t] + c, m[t] - c), c a whole number drawn from p(moved); factors of the sum do not change
//
// Given one of them and the sum, the other is fixed. Drawn one after the other they change as far as the conditional given the sum allows,
// which is less for larger counts. The translations T_c are a group with the counting measure as its Haar measure and Jacobian 1 (group.c).
// c has an element for each of n, 0 before it is drawn: the normal form of sums cancels it in every n[t] + m[t]. m[t] + c, which keeps
// differences, is tried, too.
//
// Needs: the updates of the schedule.     Gives: updates of c (SLICE) with `group_move` set, after which T_c is applied.
// Conditions: both are whole numbers of more than a few values that are sliced or weighed one by one, of the same shape, with a least
// value. Some factor contains both at the same subscripts and does not change with c. Elements of c do not depend on each other. The counts
// enter no recursion, decide no condition or range, are no subscripts, and share no factor with unknowns that are summed or integrated out.
#include "exchanges.h"
#include "../terms/var.h"
#include "../terms/supports.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/existence.h"
#include "../algebra/conditionals.h"
#include "group.h"
#include "updates.h"

typedef struct Exchange {
    Group group;
    Var *v, *w;
    int sign;
} Exchange;  // w moves by sign*c

static bool moves(const Group *group, const Var *v)
{
    const Exchange *x = (const Exchange *)group;
    return v == x->v || v == x->w;
}

static Expr *moved_element(Group *group, Expr *ref)
{
    const Exchange *x = (const Exchange *)group;
    Expr *c = ex_ref(group->by, ref->nargs, ref->args);
    return ex_add2(ref, ref->var == x->v ? c : ex_mul2(ex_num(x->sign), c));
}

static bool mentions_both(const Expr *e, const Exchange *x) { return ex_mentions(e, x->v) && ex_mentions(e, x->w); }

// Whether v[..] and w[..] with the same subscripts are in the factor, and c[..] is not once they have moved.
typedef struct Kept {
    const Exchange *x;
    Expr *was, *is;
    bool any;
} Kept;

static void look_at_pair(Expr *ref, void *with)
{
    Kept *k = with;
    Expr *other = ex_ref(k->x->w, ref->nargs, ref->args), *c = ex_ref(k->x->group.by, ref->nargs, ref->args);
    k->any |= ex_replace(k->was, other, ex_num(0)) != k->was && ex_replace(k->is, c, ex_num(0)) == k->is;
}

static bool keeps(const Exchange *x, Expr *was, Expr *is)
{
    Kept k = {x, was, is, false};
    if (mentions_both(was, x)) ex_references(was, x->v, look_at_pair, &k);
    return k.any;
}

// Ends of v, moved, as far as all elements have them alike.
static Expr *within_ends(Exchange *x, Expr *ref)
{
    return ex_call3("within", moved_element(&x->group, ref), end_of_value(ref->var, 0), end_of_value(ref->var, 1));
}

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
        if (decide_instances(f, group_moves, x)) return false;
        Factor *w = weighed(g, f, ex_mentions(f->log_density, x->v) ? x->v : x->w);
        Expr *is = group_moved(&x->group, w->log_density);
        if (x->group.failed) return false;
        kept |= keeps(x, w->log_density, is);
        if (ex_mentions(is, x->group.by)) out->factor[out->n++] = factor_of_move(g, w, is);
    }
    if (!kept || !out->n) return false;
    Loops p = {.n = x->v->rank};
    Expr *v = var_element(g, x->v, p.index), *w = ex_ref(x->w, v->nargs, v->args), *all = NULL;
    for (int i = 0; i < 2; i++) {
        Expr *exists = var_domain(g, i ? x->w : x->v, p.index);
        if (exists && exists != all) all = all ? ex_call2("&&", all, exists) : exists;
    }
    for (int i = 0; i < (all ? 2 : 1); i++) {
        p.guard = i ? ex_call1("!", all) : all;
        out->factor[out->n++] = factor_of_ends(g, out->factor[0], p,
                                               i ? ex_call3("within", ex_ref(x->group.by, v->nargs, v->args), ex_num(0), ex_num(0))
                                                 : ex_add2(within_ends(x, v), within_ends(x, w)));
    }
    return true;
}

static Update *exchange(Graph *g, Var *v, Var *w, int sign)
{
    Var *by = var_hidden(g, arena_printf(g->arena, "shift_%s_%s", v->name, w->name), v->span, v->rank, v->dim);
    by->discrete = true;
    by->base = BASE_INT;
    Exchange x = {.group = {.g = g, .by = by, .moves = moves, .becomes = moved_element}, .v = v, .w = w, .sign = sign};
    Reading of = {0};
    Conditional *c = law_apart(g, by, factors_of_c(g, &x, &of) ? &of : NULL, false);
    if (!c) return NULL;
    GroupMove *o = group_move_new(g, by, true, 2);
    for (int i = 0; i < 2; i++) {
        Carried *to = group_move_carry(g, o, i ? w : v);
        to->c = ex_ref(by, to->element->nargs, to->element->args);
        to->value = moved_element(&x.group, to->element);
    }
    return group_update(g, UPDATE_SLICE, v->span, c, o, NULL,
                        sign < 0 ? "given their sum, counts that are added up can change only jointly"
                                 : "given their difference, two counts can change only jointly");
}

bool find_exchanges(Graph *g)
{
    Update **last = updates_of_sweep(g);
    for (int i = 0, n = g->nvars; i < n; i++) {
        if (!step_of_count(g, g->vars[i])) continue;
        for (int k = i + 1; k < n; k++) {
            Var *v = g->vars[i], *w = g->vars[k];
            const bool alike = have_one_shape(v, w) && step_of_count(g, w);
            for (int sign = -1; sign <= 1 && alike; sign += 2) update_insert(&last, exchange(g, v, w, sign));
        }
    }
    return true;
}
