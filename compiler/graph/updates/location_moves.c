// location_moves.c -- location moves: a location changes with its effects, or against effects in the same sum.
//
//   before   theta[j] ~ normal(mu, tau)          after   also: (mu, theta[j]) becomes (mu + c, theta[j] + c), c drawn from p(moved) dc
//   before   y[i] ~ poisson_log(a + u[g[i]])     after   also: (a, u[j]) becomes (a + c, u[j] - c)
//
// Given theta, mu changes little, even if data identify theta weakly. Data identify the sum of a and u, so that one follows the other.
// These maps T_c are a group of translations: their Jacobian is 1, their Haar measure dc (group.c).
//
// A move begins with one variable, v[i, j] + c[i], where c has some of its subscripts, or none. A factor that this changes may stay
// constant if another variable changes as well, w[k] + s c[..]: s follows from the sum of both in the factor, and the algebra of the factor
// confirms it. Statements that draw w are restored in this way level by level, and each level makes a move; any other factor is restored by
// each variable in it. The law of c consists of the factors that still change.
//
// A factor may contain several elements of c, as the prior of a field beside independent effects of the same places does. Then c is drawn
// jointly if it is jointly normal.
//
// Needs: the updates of the schedule.     Gives: updates of c (EXACT, SLICE or GAUSSIAN) with `group_move` set, after which T_c is applied.
// Conditions: the variables are real, without a constraint, and drawn in the same sweeps. s does not depend on them, and nothing is divided
// by an expression that may be 0. Ends of supports are numbers or unknowns, not responses, which may confine an element, as data do that
// are a function of it. The variables enter a recursion only through sums that do not change (those over the states of chains are computed
// before they are read). They decide no condition of a statement, are read by no routine that takes an array whole, and share no factor
// with unknowns that are summed out. For each element of c some statement without a condition draws an element that it changes. No move is
// made if it keeps no factor constant, or if all its variables are drawn together anyway. infer { mu by gibbs(group_move = off); } leaves
// out all moves of mu.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "location_moves.h"
#include "../terms/var.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/existence.h"
#include "../algebra/conditionals.h"
#include "../algebra/block_terms.h"
#include "../algebra/band.h"
#include "../algebra/few_rows.h"
#include "../algebra/sets.h"
#include "group.h"
#include "updates.h"

enum { MOST_NAMED = 4 };  // variables in the name of c
// of a sparse joint normal: times that of going through its terms; and so many of them, with those of the model
enum { MOST_WORK = 100, MOST_JOINT = 64 };
// of a hierarchy, and terms of one sum that something is moved against: a thousand scalars, each the location of the next, or all in one
// sum, make thousands of moves, not a million
enum { MOST_LEVELS = 8, MOST_AGAINST = 8 };

typedef struct Relocated {  // v[index..] + by
    Var *var;
    Index *index[MAX_RANK];
    Expr *by;  // in terms of the indices and of elements of c
} Relocated;

typedef struct LocationMove {
    Group group;
    int n, size;
    Relocated *of;
    int joint;  // once it is made: of a sparse joint normal, its number
} LocationMove;

static const Relocated *moving(const LocationMove *a, const Var *v)
{
    for (int i = 0; i < a->n; i++)
        if (a->of[i].var == v) return &a->of[i];
    return NULL;
}

static bool moves(const Group *x, const Var *v) { return moving((const LocationMove *)x, v); }

static Expr *becomes(Group *x, Expr *ref)
{
    const Relocated *m = moving((const LocationMove *)x, ref->var);
    return ex_add2(ref, at_subscripts(m->by, ref->nargs, m->index, ref->args));
}

// Moves that begin alike have one list, of which each knows how much is its own: what is kept is copied.
static void add(LocationMove *a, Relocated s)
{
    ROOM(a->group.g->arena, a->of, a->n, a->size);
    a->of[a->n++] = s;
}

static LocationMove copied(const LocationMove *a)
{
    LocationMove to = *a;
    to.of = arena_copy(a->group.g->arena, a->of, sizeof *a->of * (size_t)a->n);
    to.size = a->n;
    return to;
}

// ---- sums in which c stands by itself ----

// The sum of what becomes of each term of a sum.
static Expr *sum_of(Expr *e, Expr *(*become)(Expr *, void *), void *with)
{
    if (e->kind != EX_ADD) return become(e, with);
    Expr *few[8] = {0}, **term = e->nargs <= 8 ? few : malloc(sizeof *term * (size_t)e->nargs);
    for (int i = 0; i < e->nargs; i++) term[i] = become(e->args[i], with);
    Expr *sum = ex_add(e->nargs, term);
    if (term != few) free(term);
    return sum;
}

static Expr *times(Expr *e, void *with) { return ex_mul2(with, e); }
static Expr *with_c(Expr *e, void *c) { return ex_mentions(e, c) ? e : ex_num(0); }
static Expr *without_c(Expr *e, void *c) { return ex_mentions(e, c) ? ex_num(0) : e; }

// sum(i, x[i]*c) is c*sum(i, x[i]).
static Expr *summed(Expr *e, void *with)
{
    Index *i = with;
    Expr *outer = ex_num(1), *inner = ex_num(1);
    for (int k = 0; k < (e->kind == EX_MUL ? e->nargs : 1); k++) {
        Expr *x = e->kind == EX_MUL ? e->args[k] : e;
        if (ex_mentions_index(x, i)) inner = ex_mul2(inner, x);
        else outer = ex_mul2(outer, x);
    }
    return ex_mul2(outer, ex_reduce("sum", i, i->lo, i->hi, inner));
}

static Expr *spread_parts(Expr *e, void *with)
{
    Var *c = with;
    if (!ex_mentions(e, c)) return e;
    if (e->kind == EX_MUL) {
        Expr *sum = NULL, *rest = ex_num(1);
        int holding = 0;
        for (int i = 0; i < e->nargs; i++) {
            Expr *x = ex_map(e->args[i], spread_parts, c);
            holding += ex_mentions(x, c);
            if (!sum && x->kind == EX_ADD && ex_mentions(x, c)) sum = x;
            else rest = ex_mul2(rest, x);
        }
        if (!sum) return rest;
        if (holding > 1) return ex_mul2(sum, rest);
        return sum_of(sum, times, rest);
    }
    if (e->kind == EX_REDUCE && e->fn == FN_sum && !ex_mentions(e->args[0], c) && !ex_mentions(e->args[1], c)) {
        Index *i = index_new(ex_index_called(e), e->args[0], e->args[1]);
        Expr *body = ex_map(ex_open(e, i), spread_parts, c), *stay = sum_of(body, without_c, c),
             *all = sum_of(sum_of(body, with_c, c), summed, i);
        return ex_is_num(stay, 0) ? all : ex_add2(all, ex_reduce("sum", i, i->lo, i->hi, stay));
    }
    return NULL;
}

// e with the products of what holds c and is free of it written out, x*(b + c) as x*b + x*c, and sums of them. What is too large to walk
// stays as it is.
static Expr *spread(Expr *e, Var *c) { return e->size > MAX_TREE ? e : ex_map(e, spread_parts, c); }

// The terms of a sum that hold c.
static Expr *terms_of(Expr *e, Var *c) { return sum_of(spread(e, c), with_c, c); }

// ---- T_c x in place of x ----

static bool test_response(const Var *v, void *with)
{
    (void)with;
    return v->response;
}
static bool is_open(const Expr *end) { return end->kind == EX_NUM && isinf(end->number); }

// Ends: what is added to all three is taken away, and if c alone remains in the first, so is the rest.
static Expr *moved_between(Group *x, Expr *e)
{
    LocationMove *a = (LocationMove *)x;
    Expr *arg[3], *held[3];
    if (e->kind != EX_CALL || e->fn != FN_WITHIN) return NULL;
    for (int i = 0; i < 3; i++) held[i] = terms_of(arg[i] = group_moved_part(x, e->args[i]), x->by);
    bool same = true;
    for (int i = 1; i < 3; i++) same &= is_open(arg[i]) || held[i] == held[0];
    const bool free = ex_is_num(held[1], 0) && ex_is_num(held[2], 0);
    if (!same && !free && group_mentions(&a->group, e->args[0])) a->group.failed = true;
    if (group_mentions(&a->group, e->args[0]) &&
        (ex_any_var(e->args[1], test_response, NULL) || ex_any_var(e->args[2], test_response, NULL)))
        a->group.failed = true;
    if (!same && !(free && held[0]->kind == EX_REF)) return ex_call3("within", arg[0], arg[1], arg[2]);
    Expr *off = same ? held[0] : ex_sub(spread(arg[0], a->group.by), held[0]);
    for (int i = 0; i < 3; i++)
        if (!is_open(arg[i])) arg[i] = ex_sub(spread(arg[i], a->group.by), off);
    return ex_call3("within", arg[0], arg[1], arg[2]);
}

static bool is_invariant(LocationMove *a, Expr *e)
{
    Expr *now = group_moved(&a->group, e);
    return !a->group.failed && !ex_mentions(spread(now, a->group.by), a->group.by);
}

// ---- what else has to move for a factor to stay as it was ----

static bool is_plain(const Graph *g, const Var *v)
{
    return is_plain_real(v) && v->kind != VAR_AUXILIARY && !is_switched_off(g, v, SETTING_GROUP_MOVE);
}

// Whether e, in terms of the indices of w, cannot be read for every element of w: subscripts are no indices over the same range.
static Look test_out_of_reach(const Expr *e, void *with)
{
    const Relocated *m = with;
    if (e->kind != EX_REF) return LOOK;
    for (int d = 0; d < e->nargs; d++)
        for (int k = 0; k < m->var->rank; k++)
            if (ex_mentions_index(e->args[d], m->index[k]) && (e->args[d]->kind != EX_INDEX || e->var->dim[d] != m->var->dim[k]))
                return FOUND;
    return LOOK;
}

// The only statement of w draws the elements w[i, j] over i and j: what it reads of an element is there for each of them.
static bool draws_all(Graph *g, const Factor *f, const Var *w)
{
    if (var_drawn(f) != w || f->value->nargs != f->plates.n || !has_own_plates(f, f->value)) return false;
    const Reading of = factors_of(g, w);
    for (int q = 0; q < of.n; q++)
        if (of.factor[q] != f && var_drawn(of.factor[q]) == w && factor_counts_at(of.factor[q], 0, false)) return false;
    return true;
}

static Look test_choice(const Expr *e, void *with)
{
    return !ex_mentions((Expr *)e, with) ? SKIP : e->kind == EX_CALL && e->fn == FN_if_else ? FOUND : LOOK;
}

// f reads each element of w, w[i, j] over all i and j, whatever the condition: so it does what is beside it.
static bool reads_all(const Factor *f, Var *w, const Expr *ref)
{
    if (f->plates.guard || f->plates.n != ref->nargs || ex_find(f->log_density, test_choice, w) || !has_own_plates(f, ref)) return false;
    for (int k = 0; k < ref->nargs; k++)
        if (!ex_is_num(ref->args[k]->index->lo, 1) || ref->args[k]->index->hi != w->dim[k]) return false;
    return true;
}

static bool is_reference(const Expr *e, const Var *v) { return e->kind == EX_REF && e->var == v && e->nargs == v->rank; }

// Of a term x*v[..], x; NULL: it is none.
static Expr *slope_of(Expr *term, const Var *v, Expr **ref)
{
    *ref = NULL;
    Expr *x = ex_num(1);
    for (int i = 0; i < (term->kind == EX_MUL ? term->nargs : 1); i++) {
        Expr *e = term->kind == EX_MUL ? term->args[i] : term;
        if (!ex_mentions(e, v)) x = ex_mul2(x, e);
        else if (*ref || !is_reference(e, v)) return NULL;
        else *ref = e;
    }
    return *ref ? x : NULL;
}

// How w would have to change for a sum of it and c to stay as it was; false: it is not known for an element of w.
static bool found_for(const LocationMove *a, const Factor *f, const Expr *sum, Expr *term, Var *w, Relocated *out)
{
    Expr *ref, *x = slope_of(term, w, &ref);
    if (!x || ref->loose || x->loose || ex_mentions(x, a->group.by) || group_mentions(&a->group, x)) return false;
    if (x->kind == EX_NUM ? x->number == 0 : !ex_above_zero(x)) return false;
    Expr *by = ex_num(0);
    for (int i = 0; i < sum->nargs; i++) {
        Expr *t = sum->args[i], *c;
        if (!ex_mentions(t, a->group.by)) continue;
        Expr *slope = slope_of(t, a->group.by, &c);
        if (!slope || t->loose || group_mentions(&a->group, t) || ex_mentions(t, w)) return false;
        by = ex_sub(by, ex_div(t, x));
    }
    *out = (Relocated){.var = w};
    var_element(a->group.g, w, out->index);
    for (int k = 0; k < w->rank; k++)
        if (ref->args[k]->kind != EX_NUM) by = ex_replace(by, ref->args[k], ex_index(out->index[k]));
    for (int i = 0; i < f->plates.n; i++)
        if (ex_mentions_index(by, f->plates.index[i])) return false;
    out->by = by;
    return draws_all(a->group.g, f, w) || reads_all(f, w, ref) || !ex_find(by, test_out_of_reach, out);
}

typedef struct LocationSearch {
    const LocationMove *a;
    const Factor *f;
    Var *w;
    int n, size;
    Relocated *found;
} LocationSearch;

static Look find_sums(const Expr *e, void *with)
{
    LocationSearch *p = with;
    if (!ex_mentions(e, p->a->group.by) || !ex_mentions(e, p->w)) return SKIP;
    if (e->kind != EX_ADD) return LOOK;
    for (int i = 0; i < e->nargs; i++) {
        Relocated s;
        if (!ex_mentions(e->args[i], p->w) || !found_for(p->a, p->f, e, e->args[i], p->w, &s)) continue;
        ROOM(p->a->group.g->arena, p->found, p->n, p->size);
        p->found[p->n++] = s;
    }
    return LOOK;
}

// What the log density of f becomes; NULL: it stays as it was, or cannot be brought back.
static Expr *changed(LocationMove *a, const Factor *f)
{
    if (!factor_counts_at(f, 0, false) || !group_mentions(&a->group, f->log_density)) return NULL;
    Expr *now = spread(group_moved(&a->group, f->log_density), a->group.by);
    return !a->group.failed && ex_mentions(now, a->group.by) && now->size <= MAX_TREE ? now : NULL;
}

// Moves w, too, such that f, which has changed, stays as it was. false: no such move is found.
static bool bring_back(LocationMove *a, const Factor *f, Expr *now, Var *w)
{
    for (int i = 0; i < a->n; i++)
        if (ex_mentions(a->of[i].by, w)) return false;
    LocationSearch p = {.a = a, .f = f, .w = w};
    ex_find(now, find_sums, &p);
    for (int i = 0; i < p.n; i++) {
        LocationMove more = *a;
        add(&more, p.found[i]);
        if (!is_invariant(&more, f->log_density)) continue;
        *a = more;
        return true;
    }
    return false;
}

// ---- the law of c ----

static Reading factors_moving(const LocationMove *a)
{
    Var **block = NEW_N(a->group.g->arena, Var *, a->n + 1);
    for (int i = 0; i < a->n; i++) block[i] = a->of[i].var;
    return factors_of_block(a->group.g, block, a->n);
}

// The ends that v has by numbers, as a factor over its elements.
static Factor *ends_of(LocationMove *a, const Relocated *m, const Factor *like)
{
    Graph *g = a->group.g;
    if (is_unbounded(m->var)) return NULL;
    Expr *at[MAX_RANK];
    for (int k = 0; k < m->var->rank; k++) at[k] = ex_index(m->index[k]);
    Expr *within = group_moved(
        &a->group, ex_call3("within", ex_ref(m->var, m->var->rank, at), ex_num(m->var->lower_number), ex_num(m->var->upper_number)));
    return factor_of_ends(g, like, loops_of_indices(m->index, m->var->rank, var_domain(g, m->var, m->index)), within);
}

// A matrix that the sweep makes would be inverted, or summed up, once more.
static bool test_unknown(const Var *v, void *with)
{
    (void)with;
    return var_unknown(v);
}
static Look test_matrix(const Expr *e, void *with)
{
    return (e->kind == EX_AT || e->kind == EX_ARRAY) && ex_any_var(e, test_unknown, with) ? FOUND : LOOK;
}

// The factors of c; false: a condition is not met, or there is none that the move leaves as it was.
static bool factors_of_c(LocationMove *a, Reading *out)
{
    const Reading of = factors_moving(a);
    bool gains = false;
    out->n = 0;
    out->factor = NEW_N(a->group.g->arena, Factor *, of.n + a->n + 1);
    for (int q = 0; q < of.n; q++) {
        Factor *f = of.factor[q];
        if (!factor_counts_at(f, 0, false)) continue;
        if (decide_instances(f, group_moves, a) || (f->function && group_mentions(&a->group, f->log_density))) return false;
        const bool ends = f->observed && (group_mentions(&a->group, f->least) || group_mentions(&a->group, f->most));
        if (!ends && !group_mentions(&a->group, f->log_density)) continue;
        Expr *e = group_moved(&a->group, f->log_density);
        if (a->group.failed) return false;
        if (!ends && !ex_mentions(spread(e, a->group.by), a->group.by)) {
            gains = true;
            continue;
        }
        if (ex_find(e, test_matrix, NULL)) return false;
        Factor *mine = out->factor[out->n++] = factor_with(a->group.g, f, e);
        if (f->least) mine->least = group_moved(&a->group, f->least);
        if (f->most && !a->group.failed) mine->most = group_moved(&a->group, f->most);
        if (a->group.failed) return false;
    }
    for (int i = 0; i < a->n && out->n; i++) {
        Factor *ends = ends_of(a, &a->of[i], out->factor[0]);
        if (ends) out->factor[out->n++] = ends;
        if (a->group.failed) return false;
    }
    return gains && out->n;
}

// Whether m moves by elements of c at its own subscripts alone.
typedef struct Direct {
    const Relocated *m;
    bool other;
} Direct;

static void find_other(Expr *ref, void *with)
{
    Direct *d = with;
    for (int k = 0; k < ref->nargs; k++) {
        bool own = false;
        for (int i = 0; i < d->m->var->rank; i++) own |= ref->args[k] == ex_index(d->m->index[i]) && ref->var->dim[k] == d->m->var->dim[i];
        d->other |= !own;
    }
}

static bool moves_directly(const Relocated *m, const Var *c)
{
    Direct d = {.m = m};
    ex_references(m->by, c, find_other, &d);
    return !d.other;
}

// Of how many elements that c[..] moves, for each element of c, a statement without a condition says that they are there: where there are
// none c has no law. NULL: there is no such statement. It draws something by indices over all that c has, and over others, which are
// counted.
static Expr *surely_moved(const LocationMove *a)
{
    Expr *all = NULL;
    for (int i = 0; i < a->n; i++) {
        const Relocated *m = &a->of[i];
        if (!moves_directly(m, a->group.by)) continue;
        const Reading of = factors_of(a->group.g, m->var);
        for (int q = 0; q < of.n; q++) {
            const Factor *f = of.factor[q];
            if (!factor_counts_at(f, 0, false) || !f->value || !is_reference(f->value, m->var) || f->plates.guard) continue;
            Expr *count = ex_num(1);
            int covered = 0;
            for (int p = 0; p < f->plates.n; p++) {
                const Index *j = f->plates.index[p];
                int at = -1;
                for (int k = 0; k < m->var->rank; k++)
                    if (f->value->args[k] == ex_index(f->plates.index[p])) at = k;
                if (at >= 0 && ex_mentions_index(m->by, m->index[at]) && a->group.by->rank && ex_is_num(j->lo, 1) &&
                    j->hi == m->var->dim[at])
                    covered++;
                else count = ex_mul2(count, ex_add2(ex_sub(j->hi, j->lo), ex_num(1)));
            }
            bool varies = false;
            for (int p = 0; p < f->plates.n; p++) varies |= ex_mentions_index(count, f->plates.index[p]);
            if (varies || covered < a->group.by->rank || ex_unknown(count)) continue;
            if (count->kind == EX_NUM && count->number >= 1) return count;
            all = all ? ex_call2("fmax", all, count) : count;
        }
    }
    return all;
}

// All of it is one draw as it is.
static bool is_drawn_at_once(const LocationMove *a)
{
    const Update *s = update_that_draws(a->group.g, a->of[0].var);
    for (int i = 1; i < a->n; i++)
        if (update_that_draws(a->group.g, a->of[i].var) != s) return false;
    return s && (s->kind == UPDATE_GAUSSIAN || s->kind == UPDATE_CATEGORIES);
}

// Whether a recursion has the values that it had: what its statements read of what moves are sums that stay as they are.
static bool keeps(LocationMove *a, const Series *e)
{
    for (const Site *t = e->sites; t; t = t->next) {
        if (t->ode || group_mentions(&a->group, t->plates.guard) || !t->value) return false;
        for (int i = 0; i < t->plates.n; i++)
            if (group_mentions(&a->group, t->plates.index[i]->lo) || group_mentions(&a->group, t->plates.index[i]->hi)) return false;
        for (int i = 0; i < t->n; i++)
            if (group_mentions(&a->group, t->subscript[i])) return false;
        if (group_mentions(&a->group, t->value) && !is_invariant(a, t->value)) return false;
    }
    return true;
}

// The selection whose updates this is one of; false: they are not drawn in the same sweeps, or a recursion would have to be computed again.
static bool sweeps_of(LocationMove *a, Selection **selection)
{
    *selection = NULL;
    for (const Series *e = a->group.g->series; e; e = e->next) {
        bool reads = false;
        for (int i = 0; i < a->n; i++) reads |= series_follows(e, a->of[i].var);
        if (reads && !keeps(a, e)) return false;
    }
    for (int i = 0; i < a->n; i++) {
        const Var *v = a->of[i].var;
        const Update *s = update_in_sweep(a->group.g, v);
        if (!s) return false;
        if (s->selection && *selection && s->selection != *selection) return false;
        if (s->selection) *selection = s->selection;
    }
    return true;
}

typedef struct Renaming {
    const Var *from;
    Var *to;
} Renaming;

static Expr *renamed(Expr *e, void *with)
{
    const Renaming *r = with;
    return !ex_mentions(e, r->from) ? e : is_reference(e, r->from) ? ex_ref(r->to, e->nargs, e->args) : NULL;
}

// The same with a variable of its own for c.
static LocationMove with_name(const LocationMove *from)
{
    LocationMove a = copied(from);
    const char *name = "shift";
    for (int i = 0; i < a.n && i < MOST_NAMED; i++) name = arena_printf(a.group.g->arena, "%s_%s", name, a.of[i].var->name);
    a.group.by = var_hidden(a.group.g, name, a.of[0].var->span, from->group.by->rank, from->group.by->dim);
    for (int i = 0; i < a.n; i++) a.of[i].by = ex_map(a.of[i].by, renamed, &(Renaming){from->group.by, a.group.by});
    return a;
}

// The joint normal that c is if factors hold several of its elements, as the prior of a field does; NULL: it is none, or one without zeros.
static Update *joint_update(Graph *g, Var *c, const Reading *of)
{
    BlockTerm *terms;
    const char *why;
    for (int q = 0; q < of->n; q++)
        if (of->factor[q]->observed && ((of->factor[q]->least && ex_mentions(of->factor[q]->least, c)) ||
                                        (of->factor[q]->most && ex_mentions(of->factor[q]->most, c))))
            return NULL;
    if (!block_terms_given(g, &c, 1, of, &terms, &why)) return NULL;
    const Band *band = band_of(g, &c, 1, 1, terms);
    const bool sparse = !band && g->njoint < MOST_JOINT && has_pattern(terms) && coupled_in_pairs(g, c, terms);
    int nbatch = band || sparse ? 0 : c->rank;
    for (const BlockTerm *t = terms; t; t = t->next)
        for (int k = 0; k < nbatch && t->degree == 2; k++)
            if (t->ref[0]->args[k] != t->ref[1]->args[k]) nbatch = k;
    if (!band && !sparse && !nbatch) return NULL;
    Update *s = NEW(g->arena, Update);
    *s = (Update){.kind = UPDATE_GAUSSIAN,
                  .joint = sparse ? ++g->njoint : 0,
                  .gaussian = {.terms = terms,
                               .band = band,
                               .nbatch = nbatch,
                               .most_work = MOST_WORK,
                               .no_rows = "it is the amount by which terms of a sum change against each other"}};
    s->gaussian.sparse = s->joint;
    return s;
}

static Update *location_move(const LocationMove *from, bool in_sum)
{
    Selection *selection;
    Reading of = {0};
    LocationMove a = *from;
    Expr *there = surely_moved(from);
    if (!there || is_drawn_at_once(from) || !sweeps_of(&a, &selection) || !factors_of_c(&a, &of)) return NULL;
    a = with_name(from);
    factors_of_c(&a, &of);
    Graph *g = a.group.g;
    Conditional *c = law_of_move(g, a.group.by, &of, true);
    const bool apart = draws_apart(c);
    Update *joint = apart || c->recursion || !a.group.by->rank ? NULL : joint_update(g, a.group.by, &of);
    if (!apart && !joint) {
        a.group.by->kind = VAR_ELEMENT;
        return NULL;
    }
    GroupMove *o = group_move_new(g, a.group.by, true, a.n);
    o->where = there->kind == EX_NUM ? NULL : ex_call2("<=", ex_num(1), there);
    for (int i = 0; i < a.n; i++) {
        Carried *to = group_move_carry_at(o, a.of[i].var, a.of[i].index);
        to->value = ex_add2(to->element, a.of[i].by);
    }
    const char *reason = in_sum     ? "given each other, the terms of a sum mix slowly"
                         : a.n == 1 ? "given each other, its elements mix slowly as a whole"
                                    : "given its effects, a location mixes slowly where data identify these weakly";
    Update *s = group_update(g,
                             joint       ? UPDATE_GAUSSIAN
                             : c->family ? UPDATE_EXACT
                                         : UPDATE_SLICE,
                             a.of[0].var->span, joint ? NULL : c, o, selection, reason);
    if (joint) s->joint = joint->joint;
    if (joint) s->gaussian = joint->gaussian;
    return s;
}

// ---- which moves there are ----

typedef struct Moves {
    Graph *g;
    Var *c;  // while moves are looked for
    int n, size;
    LocationMove *made;
    Update **last;
} Moves;

// Of the same variables: the first of them has the most elements of c, and the others are among its moves. Of a joint normal that may be
// too much work the next one stands in for it.
static bool is_same(const LocationMove *a, const LocationMove *b)
{
    bool same = a->n == b->n;
    for (int i = 0; i < a->n && same; i++) same = moving(b, a->of[i].var);
    return same;
}

static void make(Moves *m, const LocationMove *a, bool in_sum)
{
    int joint = 0;
    for (int i = 0; i < m->n; i++) {
        if (!is_same(a, &m->made[i])) continue;
        if (m->made[i].joint <= 0 || m->made[i].group.by->rank <= a->group.by->rank) return;
        joint = m->made[i].joint;
    }
    Update *s = location_move(a, in_sum);
    if (!s) return;
    if (joint) s->joint = -joint;  // where that is not drawn jointly
    ROOM(m->g->arena, m->made, m->n, m->size);
    m->made[m->n] = copied(a);
    m->made[m->n].joint = s->joint;
    m->made[m->n++].group.by = s->group_move->by;
    s->next = *m->last;
    *m->last = s;
    m->last = &s->next;
}

// Factors that this changes, brought back by one variable each; of the many terms that a sum may have, by the first of them.
static void make_against(Moves *m, const LocationMove *a)
{
    const Reading of = factors_moving(a);
    for (int q = 0; q < of.n; q++) {
        const Factor *f = of.factor[q];
        const Var *drawn = var_drawn(f);
        if (drawn && !drawn->rank && moving(a, drawn)) continue;  // its location has others to take along
        LocationMove from = *a;
        Expr *now = changed(&from, f);
        for (int i = 0, n = 0; now && i < m->g->nvars && n < MOST_AGAINST; i++) {
            Var *w = m->g->vars[i];
            if (w == drawn || !is_plain(m->g, w) || moving(a, w) || !ex_mentions(f->log_density, w)) continue;
            LocationMove more = from;
            if (!bring_back(&more, f, now, w)) continue;
            make(m, &more, !drawn || !moving(a, drawn));
            n++;
        }
    }
}

// What is drawn about something that moves, moves with it.
static bool next_level(LocationMove *a)
{
    const Reading of = factors_moving(a);
    LocationMove from = *a, level = *a;
    for (int q = 0; q < of.n; q++) {
        const Factor *f = of.factor[q];
        Var *w = var_drawn(f);
        if (!w || moving(&level, w) || !is_plain(a->group.g, w) || !changed(&from, f)) continue;
        Expr *now = changed(&level, f);
        if (now) bring_back(&level, f, now, w);
    }
    const bool more = level.n > a->n;
    *a = level;
    return more;
}

// Moves that begin with v + c, an element of c for each value of the subscripts in `kept`.
static void begin_with(Moves *m, Var *v, unsigned kept)
{
    Graph *g = m->g;
    LocationMove a = {.group = {.g = g, .by = m->c, .moves = moves, .becomes = becomes, .instead = moved_between, .sums = true}};
    Relocated s = {.var = v};
    Expr *at[MAX_RANK];
    var_element(g, v, s.index);
    m->c->rank = 0;
    for (int k = 0; k < v->rank; k++)
        if (kept & 1u << k) {
            at[m->c->rank] = ex_index(s.index[k]);
            m->c->dim[m->c->rank++] = v->dim[k];
        }
    s.by = ex_ref(m->c, m->c->rank, at);
    add(&a, s);
    for (int level = 1;; level++) {
        make(m, &a, false);
        make_against(m, &a);
        if (level == MOST_LEVELS || !next_level(&a)) return;
    }
}

static int subscripts_in(unsigned kept)
{
    int n = 0;
    for (; kept; kept &= kept - 1) n++;
    return n;
}

// Those with the most subscripts first: u[j] + c[j] against x[i] - c[g[i]] is more than both by one number, whichever is declared first.
bool find_location_moves(Graph *g)
{
    Moves m = {.g = g, .last = &g->updates};
    for (Update **at = &g->updates; *at; at = &(*at)->next)
        if ((*at)->when != WITH_GRADIENTS) m.last = &(*at)->next;
    m.c = var_unique(g, "shift", VAR_ELEMENT);
    const int n = g->nvars;
    for (int rank = MAX_RANK; rank >= 0; rank--)
        for (int i = 0; i < n; i++) {
            Var *v = g->vars[i];
            if (v->rank < rank || !is_plain(g, v) || !update_that_draws(g, v)) continue;
            for (unsigned kept = 1u << v->rank; kept-- > 0;)
                if (subscripts_in(kept) == rank) begin_with(&m, v, kept);
        }
    return true;
}
