// element.c -- the update of one variable by itself: drawn from its family, by weighing its values, or by slices.
//
//   before   tau: power_gamma recognised          z: values 1 to K, no family          phi: neither
//   after    exact tau                            enum z                               slice phi
//
// Needs: conditionals.     Gives: an update. The model's request comes first; a message reports one that cannot be met.
#include <math.h>
#include "element.h"
#include "../conditional.h"
#include "../update.h"
#include "../terms/supports.h"
#include "../terms/requests.h"
#include "../model/elaborate.h"
#include "../algebra/conditionals.h"
#include "../algebra/afresh.h"
#include "../algebra/pairs.h"
#include "../rewrite/messages.h"
#include "updates.h"
#include "elliptical.h"

// Elements that are constrained together: conjugate as a whole, or moved along the constraint one coordinate at a time.
static Update *constrained_update(Graph *g, Var *v, const char *no_plane)
{
    Conditional *c = conditional_array(g, v);
    if (c->family) return single_update(g, UPDATE_EXACT, v, c, false, "conjugate");
    const char *because = v->constraint == CONSTRAINT_SUM_TO_ZERO && no_plane ? no_plane : c->because;
    bool collapsed = can_collapse(g, v);
    c = conditional_whole(g, v, collapsed);
    c->because = because;
    Diag *m = diag(g->diags, v->span, DIAG_P0602, v->name);
    diag_because(m, "%s", because);
    return single_update(g, UPDATE_SLICE, v, c, collapsed, because);
}

static bool test_auxiliary(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_AUXILIARY;
}

// A cutpoint between latents: exact, but with many observations it hardly moves.
static bool bounded_by_auxiliaries(const Conditional *c)
{
    for (const Part *p = c->bounds; p; p = p->next)
        if (ex_any_var(p->value, test_auxiliary, NULL)) return true;
    return false;
}

// One end of the values that are weighed. What is drawn after v, since it is summed out of v's conditional, has no value yet: the end is
// the outermost that any value of it gives.
typedef struct Outermost {
    Expr *end;
    int side;
    bool none;
} Outermost;

enum { GROWS = 1, FALLS = 2, NEITHER = 4 };

// Whether e grows or falls with what is referred to: a union of the above, 0 if it does not depend on it.
static int direction(Expr *e, const Expr *ref)
{
    if (e == ref) return GROWS;
    if (!ex_mentions(e, ref->var)) return 0;
    int all = 0;
    const bool sum = e->kind == EX_ADD || (e->kind == EX_CALL && (e->fn == FN_fmin || e->fn == FN_fmax));
    const bool multiple = e->kind == EX_MUL && e->nargs == 2 && e->args[0]->kind == EX_NUM;
    if (!sum && !multiple) return NEITHER;
    for (int i = 0; i < e->nargs; i++) all |= direction(e->args[i], ref);
    if (multiple && e->args[0]->number < 0 && all < NEITHER) all = (all & GROWS ? FALLS : 0) | (all & FALLS ? GROWS : 0);
    return all;
}

enum { FEW_ENDS = 64 };

static void over_values_of(Expr *ref, void *with)
{
    Outermost *o = with;
    Expr *first = end_of_summed(ref->var, 0), *last = end_of_summed(ref->var, 1), *end = NULL;
    const int way = direction(o->end, ref);
    if (way == GROWS || way == FALLS) {
        o->end = ex_replace(o->end, ref, (way == GROWS) == (o->side == 1) ? last : first);
        return;
    }
    o->none |= first->kind != EX_NUM || last->kind != EX_NUM || last->number - first->number > FEW_ENDS;
    for (double j = first->number; !o->none && j <= last->number; j++) {
        Expr *one = ex_replace(o->end, ref, ex_num(j));
        end = end ? ex_call2(o->side ? "fmax" : "fmin", end, one) : one;
    }
    if (end) o->end = end;
}

static Expr *end_weighed(Graph *g, const Var *v, int side)
{
    Outermost o = {side ? v->upper : v->lower ? v->lower : ex_num(v->lower_number), side, false};
    for (int i = 0; i < g->nvars; i++) {
        const Var *w = g->vars[i];
        if (!w->summing.summed || w->summing.summed > v->summing.sums || !ex_mentions(o.end, w)) continue;
        ex_references(o.end, w, over_values_of, &o);
        if (!o.none) continue;
        Diag *m = diag(g->diags, v->span, DIAG_E0513, w->name);
        diag_because(m, "values of `%s` end at a function of `%s`, and the outermost end is not known", v->name, w->name);
        diag_help(m, "declare bounds that are the same for all values: int<lower=0, upper=10> %s", v->name);
        break;
    }
    return o.end;
}

// What draws values from those between the outermost ends.
static Update *with_values_between(Graph *g, const Var *v, Update *s)
{
    s->enumerate.lower = end_weighed(g, v, 0);
    s->enumerate.upper = end_weighed(g, v, 1);
    return s;
}

Update *element_update(Graph *g, Var *v, bool singly, const char *no_plane);

enum { SUBSCRIPTS_MORE = 2 };  // that an array of what links two neighbours has

// All elements along a chain at once, parallel in time; if they remember more than the one before, or have too many subscripts, neighbours
// in turn.
Update *update_on_gpu(Graph *g, Var *v, const Update *on_cpu)
{
    if (on_cpu->conditional->past || v->rank + SUBSCRIPTS_MORE > MAX_RANK) return element_update(g, v, true, NULL);
    Update *s = single_update(g, UPDATE_ENUM, v, conditional_at_once(g, v), can_collapse(g, v), NULL);
    s->reason = s->conditional->because;
    s->enumerate.at_once = s->marginal = true;
    return with_values_between(g, v, s);
}

// Several unknowns by the product of their values, for the sizes that allow it.
Update *joined_update(Graph *g, const Joined *j)
{
    Update *s = single_update(g, UPDATE_ENUM, j->var[0], j->conditional, j->collapsed,
                              j->conditional->before ? "their elements form a chain, and they share factors" : "they share factors");
    s->block = arena_copy(g->arena, j->var, sizeof *j->var * (size_t)j->n);
    s->nblock = j->n;
    s->enumerate.at_once = s->marginal = true;
    s->joined = j;
    return with_values_between(g, j->var[0], s);
}

// The request cannot be met.
static Diag *refuse(Graph *g, const Var *v, const Request *asked, const char *because)
{
    Diag *m = diag(g->diags, asked->span, DIAG_E0508, v->name, asked->by);
    diag_because(m, "%s", because);
    return m;
}

static const char *const LEAVE_OUT = "leave the request out: gmc chooses";

static Update *messages_update(Graph *g, Var *v)
{
    Update *s = single_update(g, UPDATE_ENUM, v, conditional_chain(g, v), can_collapse(g, v), NULL);
    s->reason = s->conditional->because;
    s->enumerate.by_messages = s->marginal = true;
    return with_values_between(g, v, s);
}

// By elliptical slices, where the prior is joint normal, or the model requests it; NULL: not so.
static Update *elliptical_update(Graph *g, Var *v, const Request *requested, bool collapsed, const char *because)
{
    const char *none;
    Ellipse *e = find_ellipse(g, v, collapsed, &none);
    if (!e) {
        if (requested) diag_help(refuse(g, v, requested, none), LEAVE_OUT);
        return NULL;
    }
    e->conditional->because = because;
    Update *s = single_update(g, UPDATE_ELLIPTICAL, v, e->conditional, collapsed,
                              requested ? "the model requests it" : "its prior is joint normal, and no family has the rest");
    s->ellipse = e;
    return s;
}

// An indicator together with the coefficient that it switches; NULL: there is none, or the model wants another method for it.
static Update *pair_update(Graph *g, Var *v)
{
    const Pair *pair = find_pair(g, v);
    const Request *of_b = pair ? request_of(g, pair->coefficient->var) : NULL;
    if (!pair || (of_b && of_b->method && of_b->method != METHOD_GIBBS)) return NULL;
    Update *s = single_update(g, UPDATE_PAIR, v, pair->indicator, false,
                              arena_printf(g->arena, "given `%s`, or the converse, it would mix slowly", pair->coefficient->var->name));
    s->pair = pair;
    return s;
}

// Why it is drawn by its density, if that is not what the model requests.
static void report_density(Graph *g, const Var *v, const Request *asked, const char *because)
{
    const Method method = asked ? asked->method : METHOD_OTHER;
    const bool draws = g->method != METHOD_EM;
    if (method == METHOD_ENUM) {
        refuse(g, v, asked, v->discrete ? "its values are not finitely many" : "its values are reals");
        return;
    }
    if (method != METHOD_GIBBS && (method || (!draws && v->kind == VAR_AUXILIARY))) return;
    Diag *m = diag(g->diags, v->span, method == METHOD_GIBBS ? DIAG_W0601 : draws ? DIAG_P0602 : DIAG_P0606, v->name);
    diag_because(m, "%s", because);
}

// By its density: values weighed one by one where they are finitely many, or by slices.
static Update *density_update(Graph *g, Var *v, Conditional *c, bool collapsed, const Request *asked)
{
    const Method method = asked ? asked->method : METHOD_OTHER;
    if (v->discrete && v->upper && (v->lower || isfinite(v->lower_number)) && method != METHOD_SLICE) {
        Update *s = single_update(g, UPDATE_ENUM, v, c, collapsed, "finite support");
        s->marginal = collapsed;
        return with_values_between(g, v, s);
    }
    report_density(g, v, asked, c->because);
    Update *s = single_update(g, method == METHOD_METROPOLIS ? UPDATE_METROPOLIS : UPDATE_SLICE, v, c, collapsed, c->because);
    for (int i = 0; asked && i < asked->nsettings; i++)
        if (asked->setting[i].id == SETTING_WIDTH) s->slice.width = elaborate_rule(g, asked->setting[i].value, 0, NULL, NULL);
    return s;
}

// singly: not together with its other elements, along their chain. no_plane: why it is not jointly normal given that its sum is 0.
Update *element_update(Graph *g, Var *v, bool singly, const char *no_plane)
{
    const Request *asked = request_of(g, v);
    const Method method = asked ? asked->method : METHOD_OTHER;
    const bool draws = g->method != METHOD_EM, exact = !method || method == METHOD_GIBBS;
    const bool tied =
        v->constraint != CONSTRAINT_NONE && v->constraint != CONSTRAINT_ORDERED && v->constraint != CONSTRAINT_POSITIVE_ORDERED;
    if ((method == METHOD_METROPOLIS && (tied || v->discrete)) || (method == METHOD_ELLIPTICAL && tied))
        diag_help(refuse(g, v, asked, tied ? "its elements are constrained together" : "its values are integers"), LEAVE_OUT);
    if (tied) return constrained_update(g, v, no_plane);
    if (v->summing.messages && !singly) return messages_update(g, v);
    Conditional *c = conditional_element(g, v, false);
    const bool collapsed = can_collapse(g, v), squeezed = collapsed && !method && bounded_by_auxiliaries(c);
    if (c->family && !squeezed && exact) return single_update(g, UPDATE_EXACT, v, c, false, "conjugate");
    const char *because = squeezed
                              ? "given the auxiliaries its conditional is narrow; with them integrated out it mixes faster (Cowles 1996)"
                          : c->because ? c->because
                                       : "the model requests it";
    if (collapsed) {
        c = conditional_element(g, v, true);
        if (c->family && exact) {
            Update *s = single_update(g, UPDATE_EXACT, v, c, true, "conjugate with auxiliaries integrated out");
            s->marginal = true;
            return s;
        }
    }
    if (draws && (!method || method == METHOD_ELLIPTICAL)) {
        Update *s = elliptical_update(g, v, method ? asked : NULL, collapsed, because);
        if (s) return s;
    }
    if (draws && !collapsed && !method && conditional_own(g, c, false))
        return single_update(g, UPDATE_OWN, v, c, false, "its own distribution");
    if (c->family) c = conditional_density(g, v, collapsed);
    c->because = because;
    Update *pair = draws && v->discrete && exact ? pair_update(g, v) : NULL;
    return pair ? pair : density_update(g, v, c, collapsed, asked);
}
