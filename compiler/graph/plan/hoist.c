// hoist.c -- sums over data alone leave the sweep.
//
//   before   sum(i, (y[i] - m - u[g[i]])^2)                                           N terms a sweep
//   after    Syy + 2*sum(k, a[k]*Sy[k]) + sum(k, a[k]^2*n[k]),  a[k] = c - m - u[k]   as many terms as groups
//
// where Syy, Sy, n are sums of data, computed once. Data are taken around their mean c, which goes to what they are compared with, so that
// squares keep their digits. A sum is left as it is if some part of it needs every row anyway.
#include <math.h>
#include <string.h>
#include "hoist.h"
#include "../sum.h"
#include "../terms/naming.h"
#include "../algebra/polynomial.h"
#include "../algebra/afresh.h"
#include "keyed.h"

bool varies(const Expr *e, const Loops *l)
{
    for (int i = 0; i < l->n; i++)
        if (ex_mentions_index(e, l->index[i])) return true;
    return false;
}

// The number in front of e: statistics that differ by a factor are one.
static double leading(Expr *e)
{
    if (e->kind == EX_NUM) return e->number;
    if (e->kind == EX_MUL && e->args[0]->kind == EX_NUM) return e->args[0]->number;
    if (e->kind == EX_ADD) return leading(e->args[e->args[0]->kind == EX_NUM]);
    return 1;
}

// Rows in loops without a condition, if that is a product of extents.
static Expr *row_count(const Loops *l)
{
    Expr *n = ex_num(1);
    if (l->guard) return NULL;
    for (int i = 0; i < l->n; i++) {
        if (varies(l->index[i]->lo, l) || varies(l->index[i]->hi, l)) return NULL;
        n = ex_mul2(n, ex_length(l->index[i]->lo, l->index[i]->hi));
    }
    return n;
}

// ---- variables beside the graph ----

Var *fresh_var(Fresh *n, const char *stem, VarKind kind)
{
    const Graph *g = n->g;
    if (strncmp(stem, "gm_", 3) == 0) stem = arena_printf(g->arena, "of_%s", stem);  // gm_ is the runtime's
    const char *name = intern(stem), *first = name;
    int *last = map_get(&n->numbered, first);  // number that a name with this stem was given last
    if (!last) {
        const int *before = map_get(&g->numbered, first);
        map_put(g->arena, &n->numbered, first, last = NEW(g->arena, int));
        *last = before ? *before : 1;
    }
    while (map_get(&n->taken, name) || map_get(&g->taken, name)) name = intern(arena_printf(g->arena, "%s_%d", stem, ++*last));
    Var *v = NEW(g->arena, Var);
    *v = (Var){.name = name, .kind = kind, .id = n->nvars++, .base = BASE_REAL, .lower_number = -INFINITY, .upper_number = INFINITY};
    map_put(g->arena, &n->taken, name, v);
    return v;
}

void fresh_forget(Fresh *n, const Var *v)
{
    map_put(n->g->arena, &n->taken, v->name, NULL);
    const char *number = strrchr(v->name, '_');
    int *last = number ? map_get(&n->numbered, intern(arena_printf(n->g->arena, "%.*s", (int)(number - v->name), v->name))) : NULL;
    if (last && strcmp(number + 1, arena_printf(n->g->arena, "%d", *last)) == 0) --*last;
}

// ---- statistics ----

static Expr *scaled_statistic(Sums *to, const Loops *loops, int n, Expr *const *target, Expr *const *extent, Expr *value, Expr *const *at);

// Whether a difference has what varies behind its minus.
static bool begins_behind(const Expr *e, const Loops *l)
{
    for (int i = 0; e->kind == EX_ADD && i < e->nargs; i++)
        if (varies(e->args[i], l)) return leading(e->args[i]) < 0;
    return false;
}

static Expr *forward_factor(Expr *e, const Loops *l, double *times)
{
    Expr *base = e->kind == EX_POW ? e->args[0] : e;
    const double power = e->kind == EX_POW ? e->number : 1;
    if (!begins_behind(base, l) || power != floor(power)) return e;
    if (fmod(power, 2) != 0) *times = -*times;
    return ex_pow(ex_neg(base), power);
}

// Differences with what varies first, so that x - mean(x) and mean(x) - x have one statistic; times so much it is the value.
static Expr *forward(Expr *value, const Loops *l, double *times)
{
    *times = 1;
    if (value->kind != EX_MUL) return forward_factor(value, l, times);
    Expr *all = ex_num(1);
    for (int i = 0; i < value->nargs; i++) all = ex_mul2(all, forward_factor(value->args[i], l, times));
    return all;
}

Expr *statistic(Sums *to, const Loops *loops, int n, Expr *const *target, Expr *const *extent, Expr *value, Expr *const *at)
{
    double c = leading(value), sign;
    if (c == 0) return ex_num(0);
    Expr *unit = forward(ex_mul2(ex_num(1 / c), value), loops, &sign);
    c *= sign;
    if (n == 0 && ex_is_num(unit, 1)) {
        Expr *rows = row_count(loops);
        if (rows) return ex_mul2(ex_num(c), rows);
    }
    return ex_mul2(ex_num(c), scaled_statistic(to, loops, n, target, extent, unit, at));
}

static void serve(const Sums *to, Sum *s)
{
    Server **last = &s->serves;
    s->asked_apart |= !to->serving;
    if (!to->serving) return;
    for (; *last; last = &(*last)->next)
        if ((*last)->update == to->serving) return;
    *last = NEW(to->g->arena, Server);
    **last = (Server){to->serving, NULL};
}

// Whether they may be the same but for the names of loops.
static bool alike(const Expr *a, const Expr *b)
{
    return a == b || (a->kind == b->kind && a->nargs == b->nargs && a->vars == b->vars && a->size == b->size);
}

// A statistic of data: var[subscripts of own indices, key] = sum over loops of value. Found again if it exists.
static Expr *scaled_statistic(Sums *to, const Loops *loops, int n, Expr *const *target, Expr *const *extent, Expr *value, Expr *const *at)
{
    for (Sum *s = to->first; s; s = s->next) {
        if (s->n != n || s->loops.n != loops->n || !alike(s->value, value)) continue;
        Expr *v = value, *guard = loops->guard;
        Expr *t[MAX_RANK];
        for (int i = 0; i < n; i++) t[i] = target[i];
        bool same = true;
        for (int i = 0; i < loops->n && same; i++) {
            same = loops->index[i]->lo == s->loops.index[i]->lo && loops->index[i]->hi == s->loops.index[i]->hi;
            v = ex_replace_index(v, loops->index[i], ex_index(s->loops.index[i]));
            if (guard) guard = ex_replace_index(guard, loops->index[i], ex_index(s->loops.index[i]));
            for (int k = 0; k < n; k++) t[k] = ex_replace_index(t[k], loops->index[i], ex_index(s->loops.index[i]));
        }
        same = same && v == s->value && guard == s->loops.guard;
        for (int k = 0; k < n && same; k++) same = t[k] == s->target[k];
        if (!same) continue;
        if (s->route != to->route) s->route = NULL;
        serve(to, s);
        return ex_ref(s->var, n, at);
    }
    Sum *s = NEW(to->g->arena, Sum);
    *s = (Sum){.loops = *loops, .n = n, .value = value, .data_only = !reads_weights(value), .route = to->route};
    for (int i = 0; i < n; i++) {
        s->target[i] = target[i];
        s->at[i] = at[i];
        s->data_only &= ex_data_only(target[i]);
    }
    s->var = fresh_var(to->names, statistic_name(to->g, s), VAR_SUM);
    s->var->rank = n;
    for (int i = 0; i < n; i++) {
        s->var->dim[i] = extent[i];
        if (target[i]->kind == EX_INDEX && target[i]->index->written) s->var->called[i] = target[i]->index->name;
    }
    serve(to, s);
    s->var->sum = s;
    Sum **last = &to->first;
    while (*last) last = &(*last)->next;
    *last = s;
    return ex_ref(s->var, n, at);
}

// The reference with its subscripts that are keys at the keys' places. (One key may be part of another: h[i] of g[i] + h[i].)
Expr *keys_at(const Keys *keys, Expr *ref)
{
    Expr *at[MAX_RANK];
    for (int k = 0; k < ref->nargs; k++) {
        at[k] = ref->args[k];
        for (int m = 0; m < keys->n; m++)
            if (keys->key[m] == ref->args[k]) at[k] = keys->at[m];
    }
    return ex_ref(ref->var, ref->nargs, at);
}

// What a sum is centred by: it stands for `is` where it is read, at `key` for the group of a row (NULL: the same for all rows). Each sum of
// a product has its own.
typedef struct Shift {
    Var *var;
    Expr *is, *key;
    struct Shift *next;
} Shift;

static const Shift *shift_of(const Shift *all, const Expr *ref)
{
    while (all && all->var != ref->var) all = all->next;
    return all;
}

// One monomial: data coefficient times references, summed over plates and the monomial's own loops. With keys, only the rows
// whose keys equal `at` are summed; else one gather may be regrouped: a sum over rows becomes a sum over groups.
static Expr *hoist_term(Sums *to, const Keys *keys, const Loops *plates, const Shift *shifts, const Term *t)
{
    Loops all = *plates;
    Expr *key = NULL, *extent = NULL;
    for (int r = 0; r < t->degree; r++)
        for (int k = 0; k < t->ref[r]->nargs; k++) {
            Expr *s = t->ref[r]->args[k];
            if (!varies(s, plates)) continue;
            bool fixed = false;
            for (int m = 0; m < keys->n; m++) fixed |= keys->key[m] == s;
            if (fixed) continue;
            if (keys->n || (key && key != s) || s->loose || !ex_data_only(s)) return NULL;
            for (int m = 0; m < t->loops.n; m++)
                if (ex_mentions_index(s, t->loops.index[m])) return NULL;
            key = s;
            extent = t->ref[r]->var->dim[k];
        }
    if (key && key->kind == EX_INDEX && plates->n == 1) return NULL;  // as many groups as rows
    Expr *target[MAX_RANK], *dims[MAX_RANK], *at[MAX_RANK];
    int n = 0;
    if (keys->n + (key != NULL) > MAX_RANK) return NULL;
    for (int m = 0; m < keys->n; m++) {
        target[n] = keys->key[m];
        dims[n] = keys->extent[m];
        at[n++] = keys->at[m];
    }
    Loops own = t->loops;
    for (int m = 0; m < own.n; m++) {
        if (n + 1 >= MAX_RANK || !ex_is_num(own.index[m]->lo, 1) || varies(own.index[m]->hi, plates) || varies(own.index[m]->hi, &own))
            return NULL;
        if (!ex_mentions_index(t->coefficient, own.index[m])) continue;
        all.index[all.n++] = own.index[m];
        target[n] = at[n] = ex_index(own.index[m]);
        dims[n++] = own.index[m]->hi;
    }
    Index *group = NULL;
    if (key) {
        group = index_new(intern("k"), ex_num(1), extent);
        target[n] = key;
        at[n] = ex_index(group);
        dims[n++] = extent;
    }
    Expr *e = statistic(to, &all, n, target, dims, t->coefficient, at);
    for (int r = 0; r < t->degree; r++) {
        const Shift *shift = shift_of(shifts, t->ref[r]);
        Expr *ref = shift ? shift->is : t->ref[r];
        if (key) ref = ex_replace(ref, key, ex_index(group));
        if (!shift) ref = keys_at(keys, ref);
        for (int m = 0; m < keys->n && shift; m++) ref = ex_replace(ref, keys->key[m], keys->at[m]);
        e = ex_mul2(e, ref);
    }
    for (int m = own.n - 1; m >= 0; m--) e = ex_reduce("sum", own.index[m], own.index[m]->lo, own.index[m]->hi, e);
    if (key) e = ex_reduce("sum", group, group->lo, group->hi, e);
    return e;
}

// Sums of products of more unknowns stay in the sweep: their square has as many statistics as pairs, and the rows may be fewer.
enum { MAX_UNKNOWNS = 60 };

static bool test_moves(const Var *v, void *with)
{
    (void)with;
    return v->kind != VAR_DATA && v->kind != VAR_LET && v->kind != VAR_SUM;
}

static bool test_collect(const Var *v, void *with)
{
    Unknowns *u = with;
    if (v->kind == VAR_DATA || v->kind == VAR_LET || v->kind == VAR_SUM) return false;
    for (int i = 0; i < u->n; i++)
        if (u->var[i] == v) return false;
    if (u->n == MAX_UNKNOWNS) return true;
    ((Var **)u->var)[u->n++] = (Var *)v;
    return false;
}

typedef struct Gather {
    const Loops *l;
    Expr *key, *extent;
    bool several, chosen, in_choice;
} Gather;

static Look gathered(const Expr *e, void *with)
{
    Gather *g = with;
    // rows that a choice leaves out belong to no group, whatever their key
    if (e->kind == EX_CALL && !g->in_choice && (e->fn == FN_if_else || e->fn == FN_AND || e->fn == FN_OR)) {
        Gather within = {.l = g->l, .in_choice = true};
        for (int k = 0; k < e->nargs; k++) ex_find(e->args[k], gathered, &within);
        if (!within.key) return SKIP;
        g->chosen = true;
        g->several |= within.several || (g->key && g->key != within.key);
        g->key = within.key;
        g->extent = within.extent;
        return SKIP;
    }
    if (e->kind != EX_REF || !test_moves(e->var, NULL)) return LOOK;
    for (int k = 0; k < e->nargs; k++) {
        if (!varies(e->args[k], g->l)) continue;
        g->several |= g->key && g->key != e->args[k];
        g->key = e->args[k];
        g->extent = e->var->dim[k];
    }
    return SKIP;
}

// Whether rows of one group have the same t, as u[g[i]]: its key is g[i], of data.
static bool same_by_group(const Loops *l, Expr *t, Gather *found)
{
    Gather g = {.l = l};
    ex_find(t, gathered, &g);
    // loose: u[g[i, q]] within a sum over q has many keys a row
    if (g.several || g.chosen || !g.key || g.key->loose || !ex_data_only(g.key) || (found->key && found->key != g.key) ||
        (g.key->kind == EX_INDEX && l->n == 1))
        return false;
    if (varies(ex_replace(t, g.key, ex_num(1)), l)) return false;
    *found = g;
    return true;
}

static Look is_sum(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REDUCE ? FOUND : LOOK;
}

// x[i] - mean_x: the model has taken something away itself.
static bool centred_already(const Loops *l, const Expr *e)
{
    bool yes = false;
    for (int i = 0; i < e->nargs && e->kind == EX_ADD; i++) yes |= e->args[i]->kind != EX_NUM && !varies(e->args[i], l);
    return yes;
}

// t = data * unknown, the unknown being the same for all rows, or by group. What holds a sum is taken as it is: it may be a linear
// predictor.
static bool slope_of(const Loops *l, Expr *t, Expr **data, Expr **unknown, Gather *by)
{
    *data = *unknown = ex_num(1);
    for (int i = 0; i < (t->kind == EX_MUL ? t->nargs : 1); i++) {
        Expr *f = t->kind == EX_MUL ? t->args[i] : t;
        if (varies(f, l) && ex_data_only(f)) *data = ex_mul2(*data, f);
        else *unknown = ex_mul2(*unknown, f);
    }
    return varies(*data, l) && !centred_already(l, *data) && !ex_find(*data, is_sum, NULL) &&
           (!varies(*unknown, l) || same_by_group(l, *unknown, by));
}

// A missing value is drawn in the sweep: where little is known of it, it may lie so far out that nothing is left of data around a mean that
// counts it. So means are of rows of which all is observed.
typedef struct Missing {
    const Var *v;
    Expr *any;
} Missing;

static void note_missing(Expr *ref, void *with)
{
    Missing *m = with;
    if (ref->nargs < m->v->rank || ref->loose) return;  // within a sum: it has many values a row
    Expr *here = ex_call1("missing", ref);
    m->any = m->any ? ex_call2("||", m->any, here) : here;
}

Expr *where_observed(const Graph *g, Expr *data, Expr *value)
{
    Missing m = {0};
    for (int i = 0; i < g->nvars; i++) {
        m.v = g->vars[i];
        if (m.v->kind == VAR_DATA && m.v->response && !needed_for((Graph *)g, m.v)) ex_references(data, m.v, note_missing, &m);
    }
    return m.any ? ex_call3("if_else", m.any, ex_num(0), value) : value;
}

static Expr *mean_of(Sums *to, const Loops *l, Expr *data)
{
    Expr *total = statistic(to, l, 0, NULL, NULL, where_observed(to->g, data, data), NULL);
    Expr *count = statistic(to, l, 0, NULL, NULL, where_observed(to->g, data, ex_num(1)), NULL);
    return ex_div(total, ex_call2("fmax", count, ex_num(1)));
}

// It stands for a part of a sum while this is expanded.
static Var *shift_variable(const Sums *to)
{
    Var *v = NEW(to->g->arena, Var);
    *v = (Var){.name = "shift",
               .kind = VAR_ELEMENT,
               .id = to->names->nvars++,
               .base = BASE_REAL,
               .lower_number = -INFINITY,
               .upper_number = INFINITY};
    return v;
}

// A sum's parts: data, what does not vary or is the same by group, and the rest.
typedef struct Parts {
    Expr *data, *fixed, *rest;
} Parts;

static Parts parts_of(const Loops *l, Expr *const *terms, int n, Gather *by)
{
    Parts p = {ex_num(0), ex_num(0), ex_num(0)};
    for (int i = 0; i < n; i++) {
        Expr *t = terms[i];
        if (!varies(t, l)) p.fixed = ex_add2(p.fixed, t);
        else if (ex_data_only(t)) p.data = ex_add2(p.data, t);
        else if (same_by_group(l, t, by)) p.fixed = ex_add2(p.fixed, t);
        else p.rest = ex_add2(p.rest, t);
    }
    return p;
}

// t = slope * (data + fixed), as r*(y[i - 1] - m), the slope being the same for all rows, or by group. What does not vary stays with the
// data's mean: both may be large.
static bool slope_of_sum(const Loops *l, Expr *t, Parts *of, Expr **slope, Gather *by)
{
    Expr *sum = NULL;
    Gather found = *by;
    *slope = ex_num(1);
    for (int i = 0; t->kind == EX_MUL && i < t->nargs; i++) {
        Expr *f = t->args[i];
        if (!sum && varies(f, l) && f->kind == EX_ADD) sum = f;
        else *slope = ex_mul2(*slope, f);
    }
    if (!sum || (varies(*slope, l) && !same_by_group(l, *slope, &found))) return false;
    *of = parts_of(l, sum->args, sum->nargs, &found);
    // x[i] - mean_x: the model has taken something away itself
    if (ex_is_num(of->data, 0) || !ex_is_num(of->rest, 0) || ex_data_only(of->fixed) || ex_find(of->data, is_sum, NULL)) return false;
    *by = found;
    return true;
}

// A sum with a part of data, in a square or a product: data around their mean, and a part that does not vary, or by group only. The part is
// gathered into one unknown, so that what is large in both is subtracted before anything is multiplied. NULL: there is no such part.
static Expr *centre(Sums *to, const Loops *l, Expr *sum, Shift **shifts)
{
    Gather by = {0};
    const Parts p = parts_of(l, sum->args, sum->nargs, &by);
    Expr *fixed = p.fixed, *middle = ex_num(0), *slopes = ex_num(0);
    if (!ex_is_num(p.data, 0)) middle = mean_of(to, l, p.data);
    for (int i = 0; i < (p.rest->kind == EX_ADD ? p.rest->nargs : 1); i++) {
        Expr *t = p.rest->kind == EX_ADD ? p.rest->args[i] : p.rest, *x, *b;
        Parts of = {.fixed = ex_num(0)};
        if (slope_of(l, t, &x, &b, &by)) of.data = x;
        else if (!slope_of_sum(l, t, &of, &b, &by)) {
            slopes = ex_add2(slopes, t);
            continue;
        }
        Expr *mean = mean_of(to, l, of.data);
        slopes = ex_add2(slopes, ex_mul2(ex_sub(of.data, mean), b));
        fixed = ex_add2(fixed, ex_mul2(ex_add2(of.fixed, mean), b));
    }
    Expr *is = ex_add2(fixed, middle);
    if (ex_is_num(is, 0)) return NULL;
    Shift *shift = NEW(to->g->arena, Shift);
    *shift = (Shift){shift_variable(to), is, by.key, *shifts};
    *shifts = shift;
    if (by.key) {
        shift->var->rank = 1;
        shift->var->dim[0] = by.extent;
    }
    return ex_add(3, (Expr *[]){ex_sub(p.data, middle), slopes, ex_ref(shift->var, by.key != NULL, &shift->key)});
}

static bool is_sum_with_unknowns(const Expr *e) { return e->kind == EX_ADD && !ex_data_only(e); }

// How many sums are multiplied in a factor of a product: 2 in a square.
static int sums_in(const Expr *factor)
{
    if (is_sum_with_unknowns(factor)) return 1;
    return factor->kind == EX_POW && factor->number == 2 && is_sum_with_unknowns(factor->args[0]) ? 2 : 0;
}

// Squares and products of sums lose digits where they are expanded: what is large is subtracted first, in each of them.
static Expr *centre_product(Sums *to, const Loops *l, Expr *e, Shift **shifts)
{
    const int n = e->kind == EX_MUL ? e->nargs : 1;
    Expr *const *factor = e->kind == EX_MUL ? e->args : &e, *all = ex_num(1);
    int sums = 0;
    for (int i = 0; i < n; i++) sums += sums_in(factor[i]);
    if (sums < 2) return e;
    for (int i = 0; i < n; i++) {
        const int power = sums_in(factor[i]);
        Expr *centred = power ? centre(to, l, power == 2 ? factor[i]->args[0] : factor[i], shifts) : NULL;
        all = ex_mul2(all, centred ? ex_pow(centred, power) : factor[i]);
    }
    return all;
}

static Expr *hoist(Sums *to, const Keys *keys, const Loops *l, Expr *e)
{
    if (e->kind == EX_ADD) {
        Expr *out = ex_num(0);
        for (int i = 0; i < e->nargs; i++) {
            Expr *h = hoist(to, keys, l, e->args[i]);
            if (!h) return NULL;
            out = ex_add2(out, h);
        }
        return out;
    }
    Expr *outside = ex_num(1), *inside = ex_num(1);
    Expr **factors = e->kind == EX_MUL ? e->args : &e;
    for (int i = 0; i < (e->kind == EX_MUL ? e->nargs : 1); i++)
        if (varies(factors[i], l)) inside = ex_mul2(inside, factors[i]);
        else outside = ex_mul2(outside, factors[i]);
    if (ex_data_only(inside)) return ex_mul2(outside, statistic(to, l, keys->n, keys->key, keys->extent, inside, keys->at));
    Shift *shifts = NULL;
    inside = centre_product(to, l, inside, &shifts);
    Var *vars[MAX_UNKNOWNS];
    Unknowns in = {vars, 0, false};
    if (ex_any_var(inside, test_collect, &in)) return NULL;
    Terms t = polynomial(to->g->arena, inside, &in, 4);
    if (t.failed) return NULL;
    Expr *out = ex_num(0);
    for (int i = 0; i < t.n; i++) {
        if (ex_any_var(t.term[i].coefficient, test_moves, NULL)) return NULL;
        Expr *h = hoist_term(to, keys, l, shifts, &t.term[i]);
        if (!h) return NULL;
        out = ex_add2(out, h);
    }
    return ex_mul2(outside, out);
}

Expr *hoist_sum(Sums *to, const Keys *keys, const Loops *loops, Expr *value)
{
    if (loops->n == 0) return NULL;
    for (int i = 0; i < loops->n; i++)
        if (ex_unknown(loops->index[i]->lo) || ex_unknown(loops->index[i]->hi)) return NULL;
    if (loops->guard && ex_unknown(loops->guard)) return NULL;
    const bool weighted = reads_weights(value);
    bool drawn = false;
    for (int i = 0; i < keys->n; i++) {
        if (ex_data_only(keys->key[i])) continue;
        if (!is_drawn_key(keys->key[i])) return NULL;
        drawn = true;
    }
    Sum **last = &to->first;
    while (*last) last = &(*last)->next;
    Expr *e = weighted ? hoist_weighted(to, keys, loops, value)
              : drawn  ? hoist_keyed(to, keys, loops, value)
                       : hoist(to, keys, loops, value);
    if (to->only_closed && *last) e = NULL;
    if (!e) {  // forget statistics that nobody will read
        for (Sum *s = *last; s; s = s->next) fresh_forget(to->names, s->var);
        *last = NULL;
    }
    return e;
}
