// transfers.c -- counts of one array whose sum enters the model, changed against each other in pairs.
//
//   before   x[i] ~ poisson(l[i]);  s = sum(x) is known
//   after    also: (x[i], x[p[i]]) becomes (x[i] + c[i], x[p[i]] - c[i]), p a pairing of 1:N that each sweep draws: the sum does not change
//
// Given the sum and all others an element is fixed: a chain that draws one after the other never leaves its start. Moves of two elements
// connect all counts with one sum. Switches of two rows and two columns, +1 -1 -1 +1, connect all tables with the same margins (Diaconis
// and Sturmfels 1998). The translations are a group with the counting measure and Jacobian 1 (group.c).
//
// If c has few values, all are weighed. Else it is drawn from the values of a window: multiples of a random power of 2, of which a random
// number are below 0. The range of c, on which both depend, is the same before and after the move. So a window is equally likely from each
// of its values, and the draw from it exact (device/transfers.h).
//
// Needs: the updates of the schedule.     Gives: updates of c (ENUM) with `group_move` and its `transfer` set, after which T_c is applied.
// Conditions: whole numbers with a least value, sliced or weighed one by one; some factor contains a sum of several of them. They enter no
// recursion, decide no condition or range, are no subscripts, and share no factor with unknowns that are summed or integrated out. Pairs
// are drawn in parallel if factors contain one element each besides the constant sums; else one after the other.
#include <math.h>
#include "transfers.h"
#include "../terms/var.h"
#include "../terms/supports.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../algebra/conditionals.h"
#include "group.h"
#include "updates.h"

enum { ALONG_MOST = 3 };  // dimensions in which pairs are made at once

typedef struct TransferTrial {  // one attempt
    Group group;
    Var *v, *star;
    unsigned along;  // bit d: pairs are made in dimension d
    Transfer *t;
} TransferTrial;

static bool is_moved(const Group *x, const Var *v) { return v == ((const TransferTrial *)x)->v; }
static bool mentions_index(const Expr *e, Index *i) { return ex_mentions_index(e, i); }

// ---- sums that stay as they are ----

// Whether e is a sum of elements that are one step along dimension d at each step of the index j, all with the same coefficient.
static bool adds_up(const Expr *e, const Var *v, Index *j, int d)
{
    if (!ex_mentions(e, v)) return false;
    switch (e->kind) {
    case EX_REF:
        if (e->var != v || e->nargs < v->rank) return false;
        for (int k = 0; k < e->nargs; k++)
            if (k == d ? e->args[k]->kind != EX_INDEX || e->args[k]->index != j
                       : mentions_index(e->args[k], j) || ex_mentions(e->args[k], v))
                return false;
        return true;
    case EX_ADD:
        for (int i = 0; i < e->nargs; i++)
            if (ex_mentions(e->args[i], v) && !adds_up(e->args[i], v, j, d)) return false;
        return true;
    case EX_MUL: {
        int moving = 0;
        for (int i = 0; i < e->nargs; i++) {
            const bool moves = ex_mentions(e->args[i], v);
            moving += moves;
            if (moves ? !adds_up(e->args[i], v, j, d) : mentions_index(e->args[i], j)) return false;
        }
        return moving == 1;
    }
    case EX_REDUCE:
        for (int i = 0; i < 2; i++)
            if (mentions_index(e->args[i], j) || ex_mentions(e->args[i], v)) return false;
        return e->fn == FN_sum && adds_up(e->args[2], v, j, d);
    case EX_NUM:
    case EX_INDEX:
    case EX_POW:
    case EX_CALL:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return false;
}

static bool stays(const Expr *e, const TransferTrial *m)
{
    if (e->kind != EX_REDUCE || e->fn != FN_sum || !ex_is_num(e->args[0], 1)) return false;
    for (int d = 0; d < m->v->rank; d++)
        if ((m->along >> d & 1) && e->args[1] == m->v->dim[d] && adds_up(e->args[2], m->v, e->index, d)) return true;
    return false;
}

// Whether e adds elements up, all or those that a condition picks: what keeps them from moving alone, if it is known.
static bool picks(const Expr *e, const Var *v)
{
    if (e->kind == EX_CALL && e->fn == FN_if_else && !ex_mentions(e->args[0], v)) {
        for (int i = 1; i < 3; i++)
            if (ex_mentions(e->args[i], v) && !picks(e->args[i], v)) return false;
        return ex_mentions(e, v);
    }
    return e->kind == EX_REF && e->var == v;
}

static Look look_for_sum(const Expr *e, void *with)
{
    const TransferTrial *m = with;
    if (!ex_mentions(e, m->v)) return SKIP;
    if (e->kind == EX_REDUCE && e->fn == FN_sum && picks(e->args[2], m->v)) return FOUND;
    int alike = 0;
    for (int i = 0; e->kind == EX_ADD && i < e->nargs; i++) alike += picks(e->args[i], m->v);
    return alike > 1 ? FOUND : LOOK;
}

// ---- T_c x in place of x ----

// step[..]*c[..] with the partner's subscripts in these dimensions.
static Expr *way(const Transfer *t, Expr *const *at, int rank, unsigned of_partner)
{
    Expr *args[MAX_RANK];
    for (int d = 0; d < rank; d++) args[d] = of_partner >> d & 1 ? ex_ref(t->partner[d], 1, &at[d]) : at[d];
    return ex_mul2(ex_ref(t->step, rank, args), ex_ref(t->of, rank, args));
}

static int sign_of(unsigned subset) { return __builtin_popcount(subset) % 2 ? -1 : 1; }

static Expr *moved_element(Group *x, Expr *ref)
{
    const TransferTrial *m = (const TransferTrial *)x;
    Expr *sum = ref;
    for (unsigned s = 0; s < 1u << m->v->rank; s++)
        if ((s & ~m->along) == 0) sum = ex_add2(sum, ex_mul2(ex_num(sign_of(s)), way(m->t, ref->args, m->v->rank, s)));
    return sum;
}

static Expr *what_is_kept(Group *x, Expr *e) { return stays(e, (const TransferTrial *)x) ? e : NULL; }

// The density with what stays as it is out of sight.
static Expr *hide(Expr *e, void *with)
{
    const TransferTrial *m = with;
    return !ex_mentions(e, m->v) ? e : stays(e, m) ? ex_ref(m->star, 0, NULL) : NULL;
}

// ---- the factors of c ----

static void add_factor(Graph *g, Reading *out, const Factor *f, Expr *log_density)
{
    ROOM(g->arena, out->factor, out->n, out->size);
    out->factor[out->n++] = factor_of_move(g, f, log_density);
}

// The one element of v in what sums that stay leave of the density, by its plates; NULL: there are others.
static Expr *own_element(const Var *v, const Factor *f, Expr *rest)
{
    Expr *ref = only_reference(rest, v);
    return ref && has_own_plates(f, ref) ? ref : NULL;
}

// The factor where a plate of the element is something else: the partner of a plate of its own, or a place, for which no plate is left.
// `ref` and `at`, its subscripts before, follow.
typedef struct Instead {
    Expr *is;
    Index *plate;
} Instead;  // NULL: the plate stays; there is none

static Factor *with_plates(Graph *g, const Factor *f, Expr **ref, const Instead *instead, Expr **at)
{
    Factor *r = arena_copy(g->arena, f, sizeof *f);
    const Var *v = (*ref)->var;
    Expr *from[2 * MAX_PLATES], *to[2 * MAX_PLATES], *guard = f->plates.guard, *e = f->log_density;
    int n = 0, left = 0;
    for (int d = 0; d < v->rank; d++) {
        at[d] = (*ref)->args[d];
        if (!instead[d].is) continue;
        Index *i = at[d]->index;
        if (instead[d].plate) at[d] = ex_index(instead[d].plate);
        from[n] = ex_index(i);
        to[n++] = instead[d].is;
        if (!ex_is_num(i->lo, 1)) guard = ex_both(guard, ex_call2("<=", i->lo, ex_index(i)));
        if (i->hi != v->dim[d]) guard = ex_both(guard, ex_call2("<=", ex_index(i), i->hi));
        for (int q = 0; q < f->plates.n; q++)
            if (f->plates.index[q] == i) r->plates.index[q] = instead[d].plate;
    }
    for (int q = 0; q < f->plates.n; q++) {  // ranges that depend on those
        Index *i = r->plates.index[q];
        if (!i || i != f->plates.index[q]) continue;
        Expr *lo = i->lo, *hi = i->hi;
        for (int k = 0; k < n; k++) {
            lo = ex_replace(lo, from[k], to[k]);
            hi = ex_replace(hi, from[k], to[k]);
        }
        if (lo == i->lo && hi == i->hi) continue;
        r->plates.index[q] = index_new(i->name, lo, hi);
        from[n] = ex_index(i);
        to[n++] = ex_index(r->plates.index[q]);
        for (int d = 0; d < v->rank; d++)
            if (at[d] == from[n - 1]) at[d] = to[n - 1];
    }
    for (int k = 0; k < n; k++) {
        e = ex_replace(e, from[k], to[k]);
        *ref = ex_replace(*ref, from[k], to[k]);
        if (guard) guard = ex_replace(guard, from[k], to[k]);
    }
    for (int q = 0; q < f->plates.n; q++)
        if (r->plates.index[q]) r->plates.index[left++] = r->plates.index[q];
    r->plates.n = left;
    r->plates.guard = guard;
    r->log_density = e;
    return r;
}

// What an instance is at the partner, in terms of the element whose c moves it.
static void add_at_partner(TransferTrial *m, Reading *out, const Factor *f, Expr *ref, unsigned subset)
{
    Expr *at[MAX_RANK];
    Instead instead[MAX_RANK] = {{0}};
    for (int d = 0; d < m->v->rank; d++) {
        if (!(subset >> d & 1)) continue;
        instead[d].plate = index_new(ref->args[d]->index->name, ex_num(1), m->v->dim[d]);
        Expr *k = ex_index(instead[d].plate);
        instead[d].is = ex_ref(m->t->partner[d], 1, &k);
    }
    Factor *r = with_plates(m->group.g, f, &ref, instead, at);
    Expr *moved = ex_add2(ref, ex_mul2(ex_num(sign_of(subset)), way(m->t, at, m->v->rank, 0)));
    add_factor(m->group.g, out, r, ex_replace(r->log_density, ref, moved));
}

typedef enum { NO_SUM, SUMS_STAY, SOME_STAY, NONE_STAYS } Keeps;

static Keeps what_stays(TransferTrial *m)
{
    const Reading of = factors_of(m->group.g, m->v);
    bool kept = false, torn = false;
    for (int q = 0; q < of.n; q++) {
        Factor *f = of.factor[q];
        if (!factor_counts_at(f, 0, false)) continue;
        if (decide_instances(f, group_moves, m)) return NO_SUM;
        Expr *e = weighed(m->group.g, f, m->v)->log_density, *rest = ex_map(e, hide, m);
        torn |= ex_find(rest, look_for_sum, m);
        kept |= rest != e;
    }
    return kept && !torn ? SUMS_STAY : kept ? SOME_STAY : torn ? NONE_STAYS : NO_SUM;
}

static bool factors_of_c(TransferTrial *m, Reading *out)
{
    Graph *g = m->group.g;
    const Reading of = factors_of(g, m->v);
    for (int q = 0; q < of.n; q++) {
        Factor *f = of.factor[q];
        if (!factor_counts_at(f, 0, false)) continue;
        Factor *w = weighed(g, f, m->v);
        Expr *moved = group_moved(&m->group, w->log_density), *own;
        if (m->group.failed) return false;
        if (moved == w->log_density) continue;
        if (!(own = own_element(m->v, w, ex_map(w->log_density, hide, m)))) {
            add_factor(g, out, w, moved);
            continue;
        }
        for (unsigned s = 0; s < 1u << m->v->rank; s++)
            if ((s & ~m->along) == 0) add_at_partner(m, out, w, own, s);
    }
    return out->n > 0;
}

// ---- the update ----

static Var *integer(Graph *g, const Var *v, const char *what, const char *name, int rank, Expr *const *dim)
{
    Var *a = var_hidden(g, arena_printf(g->arena, "%s_%s", what, name), v->span, rank, dim);
    a->discrete = true;
    a->base = BASE_INT;
    return a;
}

// c, and what is found for it before it is drawn.
static void add_arrays(Graph *g, Transfer *t, const char *name, int rank)
{
    Var *v = t->moved;
    t->of = integer(g, v, "transfer", name, rank, v->dim);
    t->step = integer(g, v, "transfer_step", name, rank, v->dim);
    t->first = integer(g, v, "transfer_first", name, rank, v->dim);
    t->last = integer(g, v, "transfer_last", name, rank, v->dim);
}

// How far c may go, by the ends of what moves: 0 where one of the elements does not exist, or the first of a pair is another.
static void find_room(TransferTrial *m)
{
    Transfer *t = m->t;
    Var *v = m->v;
    Expr *least = end_of_value(v, 0), *most = end_of_value(v, 1), *at[MAX_RANK], *first = NULL;
    for (int d = 0; d < v->rank; d++) {
        t->element[d] = index_new("k", ex_num(1), v->dim[d]);
        at[d] = ex_index(t->element[d]);
        if (m->along >> d & 1) first = ex_both(first, ex_call2("<", at[d], ex_ref(t->partner[d], 1, &at[d])));
    }
    Expr *lowest = NULL, *highest = NULL;
    for (unsigned s = 0; s < 1u << v->rank; s++) {
        if (s & ~m->along) continue;
        Expr *there[MAX_RANK];
        for (int d = 0; d < v->rank; d++) there[d] = s >> d & 1 ? ex_ref(t->partner[d], 1, &at[d]) : at[d];
        Expr *x = ex_ref(v, v->rank, there), *down = ex_sub(least, x), *up = ex_sub(most, x);
        const bool back = sign_of(s) < 0;
        for (int side = 0; side < 2; side++) {
            Expr *end = back ? ex_neg(side ? down : up) : side ? up : down;
            if (side == (back ? 0 : 1) && most->kind == EX_NUM && isinf(most->number)) continue;
            Expr **all = side ? &highest : &lowest;
            *all = !*all ? end : ex_call2(side ? "fmin" : "fmax", *all, end);
        }
        Expr *exists = v->exists;
        for (int d = 0; exists && d < v->rank; d++) exists = ex_replace_index(exists, v->own[d], there[d]);
        if (exists) first = ex_both(first, exists);
    }
    t->lowest = ex_call3("if_else", first, lowest, ex_num(0));
    t->highest = ex_call3("if_else", first, highest, ex_num(0));
}

static Update *transfer_update(Graph *g, const Transfer *t, Conditional *c, GroupMove *o)
{
    o->transfer = t;
    Update *s =
        group_update(g, UPDATE_ENUM, t->moved->span, c, o, NULL, "given their sum, counts that are added up can change only jointly");
    s->enumerate.lower = ex_ref(t->first, t->of->rank, c->current->args);
    s->enumerate.upper = ex_ref(t->last, t->of->rank, c->current->args);
    return s;
}

// The law of c; NULL: there is none, and nothing reads the arrays that were made from number `nvars` on.
static Conditional *law_of(Graph *g, const Transfer *t, bool known, const Reading *of, int nvars)
{
    Conditional *c = known ? law_of_move(g, t->of, of, false) : NULL;
    if (c && !c->recursion) return c;
    for (int i = nvars; i < g->nvars; i++) g->vars[i]->kind = VAR_ELEMENT;
    return NULL;
}

static Update *transfer(Graph *g, Var *v, Var *star, unsigned along, Keeps keeps)
{
    const int nvars = g->nvars;
    Transfer *t = NEW(g->arena, Transfer);
    TransferTrial m = {.group = {.g = g, .moves = is_moved, .becomes = moved_element, .instead = what_is_kept},
                       .v = v,
                       .star = star,
                       .along = along,
                       .t = t};
    if (what_stays(&m) != keeps) return NULL;
    t->moved = v;
    t->along = along;
    add_arrays(g, t, v->name, v->rank);
    m.group.by = t->of;
    for (int d = 0; d < v->rank; d++)
        if (along >> d & 1) {
            t->distance[d] = integer(g, v, "pair_distance", v->name, 0, NULL);
            t->phase[d] = integer(g, v, "pair_phase", v->name, 0, NULL);
            t->partner[d] = integer(g, v, "partner", v->name, 1, &v->dim[d]);
        }
    Reading of = {0};
    Conditional *c = law_of(g, t, factors_of_c(&m, &of), &of, nvars);
    if (!c) return NULL;
    find_room(&m);
    GroupMove *o = group_move_new(g, t->of, true, 1);
    Carried *to = group_move_carry(g, o, v);
    to->c = ex_ref(t->of, v->rank, to->element->args);
    to->value = moved_element(&m.group, to->element);
    return transfer_update(g, t, c, o);
}

// ---- between two arrays ----
//
//   before   s = sum(x) + w is known
//   after    also: (x[r], w) becomes (x[r] + c, w - c), r drawn in each sweep
//
// Of subscripts that both have, c has them, too; in all others a place is drawn, the same for all elements of c.

typedef struct Between {
    Group group;
    Transfer *t;
    int shared;  // leading dimensions
    bool kept;   // a sum holds both, and stays as it is
} Between;

static bool is_either(const Group *x, const Var *v) { return v == ((const Between *)x)->t->moved || v == ((const Between *)x)->t->other; }
static int side_of(const Between *b, const Var *v) { return v == b->t->other; }
static Expr *place_of(const Between *b, int side, int d) { return ex_ref(b->t->place[side][d], 0, NULL); }

static Expr *way_between(const Between *b, Expr *ref)
{
    Expr *way = ex_mul2(ex_ref(b->t->step, b->shared, ref->args), ex_ref(b->t->of, b->shared, ref->args));
    return side_of(b, ref->var) ? ex_neg(way) : way;
}

static Expr *moved_between(Group *x, Expr *ref)
{
    const Between *b = (const Between *)x;
    Expr *here = NULL, *way = way_between(b, ref);
    for (int d = b->shared; d < ref->var->rank; d++) {
        Expr *same = ex_call2("==", ref->args[d], place_of(b, side_of(b, ref->var), d));
        if (!ex_is_num(same, 1)) here = ex_both(here, same);
    }
    return ex_add2(ref, here ? ex_call3("if_else", here, way, ex_num(0)) : way);
}

// A sum over places moves by the term at the one that is drawn.
static Expr *moved_sum(Group *x, Expr *e)
{
    Between *b = (Between *)x;
    if (e->kind != EX_REDUCE || group_mentions(x, e->args[0]) || group_mentions(x, e->args[1])) return NULL;
    for (int side = 0; side < 2; side++) {
        const Var *v = side ? b->t->other : b->t->moved;
        if (e->fn != FN_sum || !ex_is_num(e->args[0], 1) || ex_mentions(e->args[2], side ? b->t->moved : b->t->other)) continue;
        for (int d = b->shared; d < v->rank; d++) {
            if (e->args[1] != v->dim[d] || !adds_up(e->args[2], v, e->index, d)) continue;
            Expr *term = ex_replace_index(e->args[2], e->index, place_of(b, side, d));
            return ex_add2(e, ex_sub(group_moved_part(x, term), term));
        }
    }
    return NULL;
}

static Look look_for_kept(const Expr *e, void *with)
{
    const Between *b = with;
    if (!ex_mentions(e, b->t->moved) || !ex_mentions(e, b->t->other)) return SKIP;
    if (e->kind != EX_ADD) return LOOK;
    Between here = *b;
    Expr *is = group_moved(&here.group, (Expr *)e);
    return !here.group.failed && !ex_mentions(is, b->t->of) ? FOUND : LOOK;
}

// An instance that holds one element of one of the two.
static bool add_at_place(const Between *b, Reading *out, const Factor *f)
{
    Expr *at[MAX_RANK], *ref = NULL;
    Instead instead[MAX_RANK] = {{0}};
    for (int side = 0; side < 2; side++) {
        const Var *v = side ? b->t->other : b->t->moved, *w = side ? b->t->moved : b->t->other;
        if (!ex_mentions(f->log_density, v)) continue;
        if (ref || ex_mentions(f->log_density, w) || !(ref = own_element(v, f, f->log_density))) return false;
    }
    for (int d = b->shared; d < ref->var->rank; d++) instead[d].is = place_of(b, side_of(b, ref->var), d);
    Factor *r = with_plates(b->group.g, f, &ref, instead, at);
    add_factor(b->group.g, out, r, ex_replace(r->log_density, ref, ex_add2(ref, way_between(b, ref))));
    return true;
}

static bool factors_between(Between *b, Reading *out)
{
    Graph *g = b->group.g;
    Var *block[] = {b->t->moved, b->t->other};
    const Reading of = factors_of_block(g, block, 2);
    for (int q = 0; q < of.n; q++) {
        Factor *f = of.factor[q];
        if (!factor_counts_at(f, 0, false)) continue;
        if (decide_instances(f, group_moves, b)) return false;
        Factor *w = weighed(g, f, ex_mentions(f->log_density, block[0]) ? block[0] : block[1]);
        b->kept |= ex_find(w->log_density, look_for_kept, b);
        Expr *is = group_moved(&b->group, w->log_density);
        if (b->group.failed) return false;
        if (ex_mentions(is, b->t->of) && !add_at_place(b, out, w)) add_factor(g, out, w, is);
    }
    return b->kept && out->n > 0;
}

static void find_room_between(Between *b)
{
    Transfer *t = b->t;
    Expr *at[MAX_RANK], *exist = NULL;
    for (int d = 0; d < b->shared; d++) {
        t->element[d] = index_new("k", ex_num(1), t->moved->dim[d]);
        at[d] = ex_index(t->element[d]);
    }
    for (int side = 0; side < 2; side++) {
        Var *v = side ? t->other : t->moved;
        for (int d = b->shared; d < v->rank; d++) at[d] = place_of(b, side, d);
        Expr *x = ex_ref(v, v->rank, at), *least = end_of_value(v, 0), *most = end_of_value(v, 1), *exists = v->exists;
        Expr *down = ex_sub(least, x), *up = most->kind == EX_NUM && isinf(most->number) ? NULL : ex_sub(most, x);
        Expr *low = side ? up ? ex_neg(up) : NULL : down, *high = side ? ex_neg(down) : up;
        if (low) t->lowest = t->lowest ? ex_call2("fmax", t->lowest, low) : low;
        if (high) t->highest = t->highest ? ex_call2("fmin", t->highest, high) : high;
        for (int d = 0; exists && d < v->rank; d++) exists = ex_replace_index(exists, v->own[d], at[d]);
        if (exists) exist = ex_both(exist, exists);
    }
    if (!exist) return;
    t->lowest = ex_call3("if_else", exist, t->lowest, ex_num(0));
    t->highest = ex_call3("if_else", exist, t->highest, ex_num(0));
}

// They are moved against each other element by element (exchanges.c), or drawn together.
static bool are_exchanged(const Graph *g, const Var *v, const Var *w)
{
    for (const Update *s = g->updates; s; s = s->next)
        if (s->group_move && s->group_move->by->discrete && s->group_move->n == 2 && s->group_move->moved[0].var == v &&
            s->group_move->moved[1].var == w)
            return true;
    return v->summing.joined && v->summing.joined == w->summing.joined;
}

static bool meet(Graph *g, const Var *v, const Var *w)
{
    const Reading of = factors_of(g, v);
    for (int q = 0; q < of.n; q++)
        if (ex_mentions(of.factor[q]->log_density, v) && ex_mentions(of.factor[q]->log_density, w)) return true;
    return false;
}

static Update *transfer_between(Graph *g, Var *v, Var *w)
{
    const int nvars = g->nvars;
    Transfer *t = NEW(g->arena, Transfer);
    Between b = {.group = {.g = g, .moves = is_either, .becomes = moved_between, .instead = moved_sum}, .t = t};
    *t = (Transfer){.moved = v, .other = w};
    while (b.shared < v->rank && b.shared < w->rank && v->dim[b.shared] == w->dim[b.shared]) b.shared++;
    add_arrays(g, t, arena_printf(g->arena, "%s_%s", v->name, w->name), b.shared);
    b.group.by = t->of;
    for (int side = 0; side < 2; side++)
        for (int d = b.shared; d < (side ? w : v)->rank; d++)
            t->place[side][d] = integer(g, side ? w : v, "place", (side ? w : v)->name, 0, NULL);
    Reading of = {0};
    Conditional *c = law_of(g, t, factors_between(&b, &of), &of, nvars);
    if (!c) return NULL;
    find_room_between(&b);
    GroupMove *o = group_move_new(g, t->of, true, 2);
    for (int side = 0; side < 2; side++) {
        Carried *to = group_move_carry(g, o, side ? w : v);
        to->c = ex_ref(t->of, b.shared, to->element->args);
        to->value = moved_between(&b.group, to->element);
    }
    return transfer_update(g, t, c, o);
}

bool find_transfers(Graph *g)
{
    Update **last = updates_of_sweep(g);
    Var *star = var_unique(g, "sum", VAR_ELEMENT);
    for (int i = 0, n = g->nvars; i < n; i++) {
        Var *v = g->vars[i];
        if (!v->rank || v->rank > ALONG_MOST || !step_of_integers(g, v)) continue;
        unsigned whole[1 << ALONG_MOST];  // dimensions whose pairs leave all sums as they are; more of them add nothing
        int found = 0;
        bool any = false;
        for (Keeps keeps = SUMS_STAY; keeps <= NONE_STAYS && !(any && keeps == NONE_STAYS); keeps++)
            for (int size = 1; size <= (keeps == SUMS_STAY ? v->rank : 1); size++)
                for (unsigned along = 1; along < 1u << v->rank; along++) {
                    bool left_out = __builtin_popcount(along) != size;
                    for (int k = 0; k < found; k++) left_out |= (along & whole[k]) == whole[k];
                    Update *s = left_out ? NULL : transfer(g, v, star, along, keeps);
                    if (!s) continue;
                    any = true;
                    if (keeps == SUMS_STAY) whole[found++] = along;
                    update_insert(&last, s);
                }
    }
    for (int i = 0, n = g->nvars; i < n; i++)
        for (int k = i + 1; k < n && step_of_integers(g, g->vars[i]); k++) {
            Var *v = g->vars[i], *w = g->vars[k];
            if (!step_of_integers(g, w) || !meet(g, v, w) || are_exchanged(g, v, w)) continue;
            update_insert(&last, transfer_between(g, v, w));
        }
    return true;
}
