// group.c -- group moves: the engine that the files which propose them share.
//
//   before   x, drawn element by element
//   after    also: c, then x becomes T_c x, in which several elements change together
//
// The maps T_c are a group that acts on the unknowns. c drawn from a density proportional to p(T_c x) |dT_c x/dx| with respect to the
// group's Haar measure leaves p invariant (Liu and Sabatti 2000, theorem 1). So c is a variable of its own, whose factors are those of x
// with T_c x in place of x: a file provides the substitution, the Jacobian and the measure. The way to draw c is found as for any unknown:
// a family, values that are weighed, or slices.
//
//   file               T_c                                               c, Haar measure      Jacobian   drawn by
//   scale_moves.c      s, v[j]  ->  c*s, m + c*(v[j] - m)                positive, dc/c       c^n        family, slices
//   location_moves.c   m, v[j]  ->  m + c, v[j] + c, or v[j] - c         real, dc             1          family, joint normal, slices
//   exchanges.c        n[t], m[t]  ->  n[t] + c[t], m[t] - c[t]          whole, counting      1          slices
//   transfers.c        x[i], x[p[i]]  ->  x[i] + c[i], x[p[i]] - c[i]    whole, counting      1          values
//   windows.c          rate, chance  ->  rate*exp(c), chance*exp(-c)     real, dc             of logs    slices, counts summed over windows
//   reflections.c      load, f  ->  -load, -f                            0 or 1, counting     1          values
//                      load, f  ->  load/c, c*f                          positive, dc/c       c^n        family, slices
//   conjugates.c       a, b  ->  a*exp(c), b*exp(c)                      real, dc             exp(n*c)   slices, a plate integrated out
//
// Each file has its own search for the unknowns that change, and its own list of the factors of c, since it knows which other factors do
// not change. scales.c, proposals.c and whiten.c have no group: they draw from other conditionals of the same unknowns.
//
// Sums and products are sorted by the order in which their terms were made (terms/expr.h). So the walk makes new values only when it
// reaches the element that they replace, and a file makes no term ahead.
#include <math.h>
#include <string.h>
#include "group.h"
#include "../terms/var.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../algebra/conditionals.h"
#include "updates.h"

// ---- T_c x in place of x ----

bool group_moves(const Var *v, void *x) { return ((const Group *)x)->moves(x, v); }
bool group_mentions(const Group *x, const Expr *e) { return e && ex_any_var(e, group_moves, (void *)x); }

static Expr *move(Expr *e, void *with)
{
    Group *x = with;
    if (x->failed || !group_mentions(x, e)) return e;
    if (e->kind == EX_REF) {
        x->failed |= !x->moves(x, e->var) || e->nargs < e->var->rank;
        for (int k = 0; k < e->nargs; k++) x->failed |= group_mentions(x, e->args[k]);
        return x->failed ? e : x->becomes(x, e);
    }
    Expr *other = x->instead ? x->instead(x, e) : NULL;
    if (other || x->failed) return other ? other : e;
    x->failed |= e->kind == EX_ARRAY || e->kind == EX_AT ||
                 (e->kind == EX_REDUCE && (group_mentions(x, e->args[0]) || group_mentions(x, e->args[1])));
    if (x->failed || e->kind != EX_REDUCE || !x->sums) return x->failed ? e : NULL;
    Index *i = index_new(ex_index_called(e), e->args[0], e->args[1]);  // not the one that such a sum goes over
    return ex_reduce(e->name, i, i->lo, i->hi, ex_map(ex_open(e, i), move, x));
}

Expr *group_moved_part(Group *x, Expr *e) { return ex_map(e, move, x); }

Expr *group_moved(Group *x, Expr *e)
{
    x->failed = false;
    return group_moved_part(x, e);
}

// ---- conditions ----

bool in_one_sweep(const Graph *g, const Var *v, int before, Selection **selection)
{
    const Update *s = is_of_series(g, v) ? NULL : update_in_sweep(g, v);
    if (!s || (before && s->selection != *selection)) return false;
    *selection = s->selection;
    return true;
}

Var *var_drawn(const Factor *f) { return f->value && f->value->kind == EX_REF ? f->value->var : NULL; }

bool has_own_plates(const Factor *f, const Expr *ref)
{
    for (int k = 0; k < ref->nargs; k++) {
        bool plate = false;
        for (int i = 0; i < f->plates.n; i++) plate |= ref->args[k]->kind == EX_INDEX && ref->args[k]->index == f->plates.index[i];
        for (int i = 0; i < k; i++) plate &= ref->args[i] != ref->args[k];
        if (!plate) return false;
    }
    return true;
}

typedef struct Only {
    Expr *ref;
    bool several;
} Only;

static void find_only(Expr *ref, void *with)
{
    Only *o = with;
    o->several |= o->ref && o->ref != ref;
    o->ref = ref;
}

Expr *only_reference(const Expr *e, const Var *v)
{
    Only o = {0};
    ex_references((Expr *)e, v, find_only, &o);
    return o.several || !o.ref || o.ref->nargs < v->rank ? NULL : o.ref;
}

bool is_unbounded(const Var *v) { return isinf(v->lower_number) && isinf(v->upper_number); }

// ---- the law of c ----

Var *var_hidden(Graph *g, const char *name, Span at, int rank, Expr *const *dim)
{
    Var *by = var_unique(g, name, VAR_AUXILIARY);
    by->hidden = true;
    by->span = at;
    by->rank = rank;
    if (rank) memcpy(by->dim, dim, sizeof *dim * (size_t)rank);
    return by;
}

Factor *factor_of_move(Graph *g, const Factor *f, Expr *log_density)
{
    Factor *out = factor_with(g, f, log_density);
    out->value = out->if_missing = NULL;
    out->dist = NULL;
    return out;
}

Factor *factor_of_ends(Graph *g, const Factor *like, Loops p, Expr *log_density)
{
    Factor *out = factor_of_move(g, like, log_density);
    out->plates = p;
    out->least = out->most = NULL;
    out->observed = false;
    return out;
}

Conditional *law_of_move(Graph *g, Var *by, const Reading *of, bool families)
{
    Conditional *c = conditional_given(g, by, of, families);
    return families && !c->family ? conditional_given(g, by, of, false) : c;
}

bool draws_apart(const Conditional *c) { return !c->recursion && !c->whole && c->nbatch == c->var->rank; }

Conditional *law_apart(Graph *g, Var *by, const Reading *of, bool families)
{
    Conditional *c = of ? law_of_move(g, by, of, families) : NULL;
    if (c && draws_apart(c)) return c;
    by->kind = VAR_ELEMENT;
    return NULL;
}

// ---- the update ----

Expr *at_subscripts(Expr *e, int rank, Index *const *index, Expr *const *args)
{
    Index *fresh[MAX_RANK];  // two steps: a subscript may hold an index of these
    for (int k = 0; k < rank; k++) {
        fresh[k] = index_new(index[k]->name, index[k]->lo, index[k]->hi);
        e = ex_replace_index(e, index[k], ex_index(fresh[k]));
    }
    for (int k = 0; k < rank; k++) e = ex_replace_index(e, fresh[k], args[k]);
    return e;
}

GroupMove *group_move_new(Graph *g, Var *by, bool added, int room)
{
    GroupMove *o = NEW(g->arena, GroupMove);
    *o = (GroupMove){.by = by, .added = added, .moved = NEW_N(g->arena, Carried, room)};
    return o;
}

Carried *group_move_carry(Graph *g, GroupMove *o, Var *v)
{
    Carried *to = &o->moved[o->n++];
    *to = (Carried){.var = v};
    to->element = var_element(g, v, to->index);
    return to;
}

Carried *group_move_carry_at(GroupMove *o, Var *v, Index *const *index)
{
    Expr *at[MAX_RANK];
    Carried *to = &o->moved[o->n++];
    *to = (Carried){.var = v};
    for (int k = 0; k < v->rank; k++) at[k] = ex_index(to->index[k] = index[k]);
    to->element = ex_ref(v, v->rank, at);
    return to;
}

Update *group_update(Graph *g, UpdateKind kind, Span at, Conditional *law, GroupMove *o, Selection *selection, const char *reason)
{
    Update *s = single_update(g, kind, o->by, law, false, reason);
    s->span = at;
    s->group_move = o;
    s->when = selection ? WITHOUT_GRADIENTS : EVERY_SWEEP;
    s->selection = selection;
    return s;
}
