// conditionals.c -- the full conditional of each variable, recognised by algebra.
//
//   before   normal(mu | 0, 10)     normal(y[n] | mu, s) over n in 1:N
//   after    mu: normal, natural { sum(y)/s^2,  -1/(2*10^2) - N/(2*s^2) }
//
// Needs: shapes known, augment done.     Gives: for one variable its conditional, for a block its quadratic form.
// Keeps: the factors, untouched.         Algebra: docs/conditionals.md
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "conditionals.h"
#include "../terms/var.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/elaborate.h"
#include "../model/law.h"
#include "../model/series.h"
#include "../model/closed.h"
#include "../model/arguments.h"
#include "polynomial.h"
#include "mentions.h"
#include "independence.h"
#include "families.h"

// f as the conditional of v sees it: what v decides is a choice within the density. Data outside the support that v picks have the density
// 0, and so has a value of v at which an argument lies outside of its domain.
Factor *weighed(Graph *g, Factor *f, const Var *v)
{
    Expr *none = ex_num(-INFINITY), *inside = v->discrete && v->base == BASE_INT ? arguments_lie_inside(g, f, v) : NULL;
    if (!factor_decided_by(f, v) && !inside) return f;
    Factor *w = arena_copy(g->arena, f, sizeof *f);
    if (inside) w->log_density = ex_call3("if_else", inside, w->log_density, none);
    if (f->observed && f->most) w->log_density = ex_call3("if_else", ex_call2("<=", f->value, f->most), w->log_density, none);
    if (f->observed && f->least) w->log_density = ex_call3("if_else", ex_call2("<=", f->least, f->value), w->log_density, none);
    if (f->plates.guard && ex_mentions(f->plates.guard, v)) {
        w->log_density = ex_call3("if_else", f->plates.guard, w->log_density, ex_num(0));
        w->plates.guard = NULL;
    }
    return w;
}

// ---- terms of a factor that hold different elements ----

// A log density that is a sum holds several elements of v without tying them to each other, if each of its terms holds one: the log of a
// stick's part, log(v[c]) + sum(j in 1:c-1, log1m(v[j])). Each term is a factor of its own then, for v; what a sum holds at its own index
// stands over one more plate. `alone`: every term came down to one element.
typedef struct Apart {
    Graph *g;
    const Var *v;
    const Factor *f;
    Factor **last;
    bool alone;
} Apart;

static void take_terms(Apart *a, Expr *e, const Loops *p, Expr *times)
{
    if (!a->alone || !ex_mentions(e, a->v)) return;
    if (e->size > MAX_TREE) {
        a->alone = false;
        return;
    }
    Mentions m = {0};
    find_mentions(a->g->arena, e, a->v, &m);
    const bool one = m.n == 1 && !m.dense && !m.partial && !m.too_many;
    if (e->kind == EX_ADD) {
        for (int i = 0; i < e->nargs; i++) take_terms(a, e->args[i], p, times);
        return;
    }
    if (e->kind == EX_MUL) {
        Expr *inner = NULL, *outer = times;
        int holding = 0;
        for (int i = 0; i < e->nargs; i++)
            if (ex_mentions(e->args[i], a->v)) {
                inner = e->args[i];
                holding++;
            } else outer = ex_mul2(outer, e->args[i]);
        if (holding == 1) {
            take_terms(a, inner, p, outer);
            return;
        }
    }
    if (e->kind == EX_CALL && e->fn == FN_if_else && !ex_mentions(e->args[0], a->v)) {
        Expr *c = e->args[0];
        bool varies = false;  // then it is a condition of the loop: where it does not hold, the element may not exist
        for (int i = 0; i < p->n; i++) varies |= ex_mentions_index(c, p->index[i]);
        Loops where = *p, where_not = *p;
        if (varies) {
            where.guard = ex_both(p->guard, c);
            where_not.guard = ex_both(p->guard, ex_call1("!", c));
        }
        take_terms(a, e->args[1], &where, varies ? times : ex_call3("if_else", c, times, ex_num(0)));
        take_terms(a, e->args[2], &where_not, varies ? times : ex_call3("if_else", c, ex_num(0), times));
        return;
    }
    if (e->kind == EX_REDUCE && e->fn == FN_sum && !one && !ex_mentions(e->args[0], a->v) && !ex_mentions(e->args[1], a->v) &&
        p->n < MAX_PLATES) {
        Index *j = index_new(ex_index_called(e), e->args[0], e->args[1]);
        Loops more = *p;
        more.index[more.n++] = j;
        take_terms(a, ex_open(e, j), &more, times);
        return;
    }
    if (!one) {
        a->alone = false;
        return;
    }
    Factor *f = arena_copy(a->g->arena, a->f, sizeof *f);
    f->log_density = ex_mul2(times, e);
    f->plates = *p;
    f->next = NULL;
    *a->last = f;
    a->last = &f->next;
}

// The terms of f as factors, or f itself.
static Factor *apart(Graph *g, Factor *f, const Var *v, const Mentions *m)
{
    Factor *terms = NULL;
    Apart a = {.g = g, .v = v, .f = f, .last = &terms, .alone = true};
    if (v->discrete || m->partial || m->too_many || (m->n == 1 && !m->dense)) return f;
    for (int i = 0; i < m->n; i++)
        for (int k = 0; k < m->ref[i]->nargs; k++)
            if (ex_mentions(m->ref[i]->args[k], v)) return f;
    take_terms(&a, f->log_density, &f->plates, ex_num(1));
    return a.alone && terms ? terms : f;
}

// References that may be one element in some instances, s[a[e]] and s[b[e]] with a and b of the data: where another one is the same element
// as the i-th it moves with it, and an instance counts for the first of those that are the same.
enum { MOST_THAT_MEET = 4 };

static Factor *where_they_meet(Graph *g, const Factor *f, const Mentions *m, int i)
{
    Factor *r = arena_copy(g->arena, f, sizeof *f);
    for (int j = 0; j < m->n; j++) {
        if (j == i || never_same(m->ref[i], m->ref[j])) continue;
        Expr *same = NULL;
        for (int k = 0; k < m->ref[i]->nargs; k++)
            if (m->ref[i]->args[k] != m->ref[j]->args[k]) same = ex_both(same, ex_call2("==", m->ref[i]->args[k], m->ref[j]->args[k]));
        if (j < i) r->plates.guard = ex_both(r->plates.guard, ex_call1("!", same));
        else r->log_density = ex_replace(r->log_density, m->ref[j], ex_call3("if_else", same, m->ref[i], m->ref[j]));
    }
    return r;
}

// ---- elements that one chain of a series reads ----

typedef struct Chained {
    const Series *s;
    Expr *chain;
} Chained;

static Look find_chain(const Expr *e, void *with)
{
    Chained *c = with;
    bool of = false;
    for (int i = 0; i < c->s->n && e->kind == EX_REF; i++) of |= e->var == c->s->var[i];
    if (!of || e->nargs == 0) return LOOK;
    c->chain = e->args[0];
    return FOUND;
}

// Element v[k, ...] in what f says of chain k alone, if f reads no other chain where it reads that, and no other element; or NULL.
static Part *in_own_chain(Graph *g, const Conditional *c, Factor *f)
{
    const Series *s = c->var->rank && c->var->base == BASE_REAL ? series_in_chains(g, c->var) : NULL;
    Chained found = {.s = s};
    if (!s || !ex_find(f->log_density, find_chain, &found) || !series_reads_own(s, c->var, f->log_density, found.chain)) return NULL;
    if (found.chain->kind != EX_INDEX || plate_of(&f->plates, found.chain->index) < 0 ||
        (f->plates.guard && !series_reads_own(s, c->var, f->plates.guard, found.chain)))
        return NULL;
    Expr *args[MAX_RANK], *ref;
    args[0] = found.chain;
    for (int k = 1; k < c->var->rank; k++) args[k] = ex_index(c->element[k]);
    ref = ex_ref(c->var, c->var->rank, args);
    return whole_factor(g, c, f, &(Mentions){.n = 1, .ref = &ref});
}

static bool names_loop_left(const Conditional *c, const char *name)
{
    for (const Part *p = c->density; p; p = p->next)
        for (int i = 0; i < p->loops.n; i++)
            if (strcmp(p->loops.index[i]->name, name) == 0) return true;
    for (int k = 0; k < c->var->rank; k++)
        if (strcmp(c->element[k]->name, name) == 0) return true;
    return false;
}

// A subscript of the element never has the name of a loop that is left in one of its terms.
static void name_element_apart(Graph *g, Conditional *c)
{
    static const char *const names[] = {"k", "l", "m", "n", "q", "r", "k2", "l2", "m2", "n2", "q2", "r2", "k3"};
    for (int d = 0; d < c->var->rank; d++) {
        Index *e = c->element[d];
        const char *own = e->name;
        e->name = "";
        for (size_t k = 0; names_loop_left(c, own) && k < sizeof names / sizeof *names; k++)
            if (!map_get(&g->taken, intern(names[k]))) own = names[k];
        e->name = intern(own);
    }
}

// What is found about an element while its factors are looked at.
typedef struct Finding {
    Graph *g;
    Conditional *c;
    bool scatter, exact;  // it may have a family
    bool others;          // a factor reads chains of a series beside the element's own
    Apartness apart_by;
} Finding;

static Conditional *new_element(Graph *g, Var *v)
{
    Conditional *c = NEW(g->arena, Conditional);
    c->var = v;
    c->current = var_element(g, v, c->element);
    c->nbatch = v->rank;
    Var *star = var_new(g, v->name, VAR_ELEMENT);
    star->lower_number = v->lower_number;
    star->upper_number = v->upper_number;
    star->base = v->base;
    star->discrete = v->discrete;
    c->u = ex_ref(star, 0, NULL);
    return c;
}

// The parts of a factor that are the element's, from each of its mentions. False: they cannot be taken apart.
static bool parts_of_mentions(const Finding *o, Factor *f, const Mentions *m, Part **parts)
{
    bool meet = false;
    for (int i = 0; i < m->n; i++)
        for (int k = 0; k < i; k++) meet |= !never_same(m->ref[i], m->ref[k]);
    if (meet && (m->n > MOST_THAT_MEET || m->dense)) return false;
    for (int i = 0; i < m->n; i++)
        for (int k = 0; k < m->ref[i]->nargs; k++)
            if (ex_mentions(m->ref[i]->args[k], o->c->var)) return false;
    for (int i = 0; i < m->n; i++) {
        // Scattering needs elements that do not move while it is done.
        Solved s = solve(o->g, o->c, meet ? where_they_meet(o->g, f, m, i) : f, m->ref[i], o->scatter && m->n == 1);
        if (!s.ok) return false;
        if (!stands_nowhere(s.part)) part_append(parts, s.part);
    }
    return true;
}

// The whole factor is evaluated, reading the state; and why.
static Part *taken_whole(Finding *o, Factor *f, const Mentions *m, const Var *series)
{
    Graph *g = o->g;
    Conditional *c = o->c;
    c->whole = true;
    o->exact = false;
    c->nbatch = 0;
    c->colours = 0;
    const Mentions none = {0};
    if (series) {
        c->recursion = series;
        c->because = arena_printf(
            g->arena,
            series->sites->ode ? "it enters the differential equation of `%s` (line %d), which is solved again for each value that is tried"
                               : "it enters the recursion of `%s` (line %d), which is computed again for each value that is tried",
            series->name, span_line(series->span));
        m = &none;
    }
    if (!c->because && m->too_many)
        c->because = arena_printf(g->arena, "more than %d of its elements enter one factor (line %d)", MAX_MENTIONS, span_line(f->span));
    if (!c->because)
        c->because = arena_printf(g->arena, "several of its elements enter one factor (line %d), and which of them is not known",
                                  span_line(f->span));
    Part *own = series ? in_own_chain(g, c, f) : NULL;
    o->others |= series && !own;
    return own ? own : whole_factor(g, c, f, m);
}

// The parts of one factor, of each of its terms apart.
static void add_factor(Finding *o, Factor *written)
{
    Graph *g = o->g;
    Conditional *c = o->c;
    Var *v = c->var;
    Factor *all = weighed(g, written, v);
    Expr *closed = v->discrete || !through_series(all->log_density, v) ? NULL : in_closed_form(g, all->log_density, v);
    if (closed) {
        all = arena_copy(g->arena, all, sizeof *all);
        all->log_density = closed;
        c->closed = true;
    }
    Mentions m = {0};
    find_mentions(g->arena, all->log_density, v, &m);
    Factor *terms = through_series(all->log_density, v) ? all : apart(g, all, v, &m);
    for (Factor *f = terms; f; f = terms == all ? NULL : f->next) {
        if (terms != all) {
            m = (Mentions){0};
            find_mentions(g->arena, f->log_density, v, &m);
        }
        couple_elements(g->arena, c, f, &m, &o->apart_by);
        const Var *series = through_series(f->log_density, v);
        const bool clean = !series && !m.partial && !m.too_many && !(m.dense && m.n > 1);
        Part *parts = NULL;
        if (!clean || !parts_of_mentions(o, f, &m, &parts)) parts = taken_whole(o, f, &m, series);
        for (Part *p = parts; p; p = p->next) p->factor = written;
        part_append(&c->density, parts);
    }
}

static Conditional *element_in(Graph *g, Var *v, const Reading enters, bool collapsed, bool scatter)
{
    Conditional *c = new_element(g, v);
    Finding o = {.g = g, .c = c, .scatter = scatter};
    o.exact = v->constraint == CONSTRAINT_NONE || v->constraint == CONSTRAINT_ORDERED || v->constraint == CONSTRAINT_POSITIVE_ORDERED;
    if (!o.exact) c->because = "its elements are constrained together";
    for (int q = 0; q < enters.n; q++)
        if (factor_counts(enters.factor[q], v, collapsed) && factor_mentions(enters.factor[q], v)) add_factor(&o, enters.factor[q]);
    Series *chains = c->recursion && !o.others ? series_in_chains(g, v) : NULL;
    if (chains) {
        chains->chains = true;
        c->chain = ex_index(c->element[0]);
    }
    if (c->whole)  // every part reads the state then
        for (Part *p = c->density; p; p = p->next) p->value = ex_replace(p->value, c->u, c->current);
    name_element_apart(g, c);
    find_lattice(c, &o.apart_by);
    if (!c->whole && !c->nbatch && !colours_of(c) && !o.apart_by.hidden && v->rank == 1 && known_from_data(v->dim[0]))
        c->conflicts = o.apart_by.conflicts;
    if (v->discrete) {
        c->because = c->recursion ? c->because : "it is discrete";
        return c;
    }
    if (o.exact) find_family(g, c);
    return c;
}

static Conditional *element(Graph *g, Var *v, bool collapsed, bool scatter)
{
    return element_in(g, v, factors_of(g, v), collapsed, scatter);
}

// The parts of f for the elements that it holds; false: they cannot be distinguished.
static bool parts_of(Graph *g, Conditional *c, Factor *f, const Mentions *m, Part **out)
{
    if (m->partial || m->too_many || (m->dense && m->n > 1)) return false;
    for (int i = 0; i < m->n; i++) {
        for (int k = 0; k < i; k++)
            if (!never_same(m->ref[i], m->ref[k])) return false;
        for (int k = 0; k < m->ref[i]->nargs; k++)
            if (ex_mentions(m->ref[i]->args[k], c->var) || (c->with && ex_mentions(m->ref[i]->args[k], c->with->var))) return false;
    }
    for (int i = 0; i < m->n; i++) {
        Solved s = solve(g, c, f, m->ref[i], false);
        if (!s.ok) return false;
        if (!stands_nowhere(s.part)) part_append(out, s.part);
    }
    return true;
}

// Whether e is a sum that holds an element of one of two plates and none of the other: its term would be given up for the one alone.
static Look holds_one(const Expr *e, void *with)
{
    Var *const *plate = with;
    return e->kind == EX_REDUCE && ex_mentions(e, plate[0]) != ex_mentions(e, plate[1]) ? FOUND : LOOK;
}

Part *joint_density(Graph *g, Conditional *z, Conditional *b)
{
    Part *all = NULL;
    Var *const block[] = {z->var, b->var};
    z->nbatch = z->var->rank;
    const Reading enters = factors_of_block(g, block, 2);
    for (int q = 0; q < enters.n; q++) {
        Factor *written = enters.factor[q];
        const bool of_z = factor_counts(written, z->var, false) && factor_mentions(written, z->var),
                   of_b = factor_counts(written, b->var, false) && factor_mentions(written, b->var);
        if (!of_z && !of_b) continue;
        if (factor_decided_by(written, b->var) || through_series(written->log_density, z->var) ||
            through_series(written->log_density, b->var))
            return NULL;
        Factor *f = of_z ? weighed(g, written, z->var) : written;
        Mentions of[2] = {{0}};
        find_mentions(g->arena, f->log_density, z->var, &of[0]);
        find_mentions(g->arena, f->log_density, b->var, &of[1]);
        if (of[0].n && of[1].n) {  // each once, with the same subscripts: then they are replaced together
            if (of[0].n > 1 || of[1].n > 1 || of[0].ref[0]->nargs != of[1].ref[0]->nargs) return NULL;
            for (int k = 0; k < of[0].ref[0]->nargs; k++)
                if (of[0].ref[0]->args[k] != of[1].ref[0]->args[k]) return NULL;
            if (of[0].dense && ex_find(f->log_density, holds_one, (void *)block)) return NULL;
        }
        Conditional *c = of[0].n ? z : b;
        const Mentions *m = &of[of[0].n ? 0 : 1];
        Conditional apart = {.var = c->var, .nbatch = c->var->rank};
        Part *parts = NULL;
        couple_elements(NULL, &apart, f, m, &(Apartness){0});
        if (apart.nbatch < z->nbatch) z->nbatch = apart.nbatch;
        if (!parts_of(g, c, f, m, &parts)) return NULL;
        for (Part *p = parts; p; p = p->next) p->factor = written;
        part_append(&all, parts);
    }
    return all;
}

// Sums over gathered elements are made once before the elements are drawn, if a family is found; a density is evaluated
// element by element otherwise.
Conditional *conditional_element(Graph *g, Var *v, bool collapsed)
{
    Conditional *c = element(g, v, collapsed, true);
    if (c->family && c->nbatch == v->rank) return c;
    bool gathered = false;
    for (const Part *p = c->density; p; p = p->next) gathered |= p->scatter;
    return gathered ? element(g, v, collapsed, false) : c;
}

Conditional *conditional_given(Graph *g, Var *v, const Reading *factors, bool scatter)
{
    return element_in(g, v, *factors, false, scatter);
}

Conditional *conditional_density_of(Graph *g, Var *v, const Reading *factors, bool collapsed)
{
    return element_in(g, v, *factors, collapsed, false);
}

Conditional *conditional_scattered(Graph *g, Var *v, bool collapsed) { return element(g, v, collapsed, true); }

Conditional *conditional_density(Graph *g, Var *v, bool collapsed) { return element(g, v, collapsed, false); }

// The parameters of a distribution and, behind them, the ends of its truncated draw, which lie in the support.
static void with_ends(Graph *g, const Factor *f, Decl **names, Expr **values)
{
    const int n = f->dist->nparams;
    memcpy(names, f->dist->params, sizeof *names * (size_t)n);
    memcpy(values, f->args, sizeof *values * (size_t)n);
    Expr *support[2], *const end[2] = {f->lower, f->upper};
    support_ends(g, f->dist, f->nargs, f->args, f->value, &support[0], &support[1]);
    for (int side = 0; side < 2; side++) {
        names[n + side] = f->dist->ends[side];
        values[n + side] = end[side] && support[side] ? ex_inner(end[side], support[side], side)
                           : end[side]                ? end[side]
                           : support[side]            ? support[side]
                                                      : ex_num(side ? INFINITY : -INFINITY);
    }
}

// An element in nothing but its own distribution is drawn by the distribution's routine; a censored one by that of its ends.
bool conditional_own(Graph *g, Conditional *c, bool collapsed)
{
    Factor *only = NULL;
    if (c->recursion) return false;
    const Reading enters = factors_of(g, c->var);
    for (int q = 0; q < enters.n; q++) {
        Factor *f = enters.factor[q];
        if (!factor_counts(f, c->var, collapsed) || !factor_mentions(f, c->var)) continue;
        if (only) return false;
        only = f;
    }
    if (!only || factor_decided_by(only, c->var) || !only->dist || !only->dist->sample ||
        (only->truncated && !(only->censored && only->dist->sample_truncated)) || only->value->kind != EX_REF ||
        only->value->var != c->var)
        return false;
    Mentions m = {0};
    find_mentions(g->arena, only->log_density, c->var, &m);
    if (m.n != 1 || m.ref[0] != only->value || m.partial || m.dense) return false;
    const Ast *routine = only->truncated ? only->dist->sample_truncated : only->dist->sample;
    const int n = only->dist->nparams;
    Decl **names = NEW_N(g->arena, Decl *, n + 2);
    Expr **args = NEW_N(g->arena, Expr *, routine->nkids + 1), **values = NEW_N(g->arena, Expr *, n + 2);
    with_ends(g, only, names, values);
    for (int i = 0; i < routine->nkids; i++) {
        args[i] = elaborate_rule(g, routine->kid[i], only->truncated ? n + 2 : n, names, values);
        if (ex_rank(args[i]) > 0) return false;
    }
    Factor call = *only;
    call.log_density = ex_call(routine->name, routine->nkids, args);
    Solved s = solve(g, c, &call, only->value, false);
    if (!s.ok || s.gather || s.part->loops.n || stands_nowhere(s.part)) return false;
    c->own = s.part;
    c->own->factor = only;
    c->because = NULL;
    return true;
}

Conditional *conditional_whole(Graph *g, Var *v, bool collapsed)
{
    Conditional *c = NEW(g->arena, Conditional);
    c->var = v;
    c->current = var_element(g, v, c->element);
    c->u = c->current;
    c->whole = true;
    const Reading enters = factors_of(g, v);
    for (int q = 0; q < enters.n; q++) {
        Factor *f = enters.factor[q];
        if (!factor_counts(f, v, collapsed) || !factor_mentions(f, v)) continue;
        if (through_series(f->log_density, v)) c->recursion = through_series(f->log_density, v);
        Part *p = NEW(g->arena, Part);
        *p = (Part){.factor = f, .value = f->log_density, .loops = {.guard = f->plates.guard}};
        for (int k = 0; k < f->plates.n; k++) p->loops.index[p->loops.n++] = f->plates.index[k];
        part_append(&c->density, p);
    }
    return c;
}

// ---- arrays drawn whole: simplexes by log(x), covariance and precision matrices by log|X|, X, inverse(X) ----

// The statistic of an array that a term reads: which natural parameter it belongs to, and which array.
typedef struct ArrayStatistic {
    int which;
    const Expr *ref;
    bool inverse, direct;
} ArrayStatistic;

static bool array_statistic(const Expr *r, bool simplex, ArrayStatistic *s)
{
    if (r->kind == EX_CALL && r->fn == (simplex ? FN_log : FN_log_determinant)) *s = (ArrayStatistic){.ref = r->args[0]};
    else if (r->kind == EX_AT && !simplex) *s = (ArrayStatistic){.which = 1, .ref = r->args[0]->args[0], .inverse = true};
    else if (r->kind == EX_REF && !simplex) *s = (ArrayStatistic){.which = 1, .ref = r, .direct = true};
    else return false;
    return true;
}

static Part *array_part(Graph *g, Factor *f, const Term *m, const ArrayStatistic *s)
{
    const Expr *r = m->ref[0];
    Part *p = NEW(g->arena, Part);
    *p = (Part){.factor = f, .scatter = true, .loops = {.guard = f->plates.guard}, .value = m->coefficient, .which = s->which};
    int n = 0;
    for (int k = 0; k < s->ref->nargs; k++) p->target[n++] = s->ref->args[k];
    if (r->kind == EX_AT)
        for (int k = 1; k < r->nargs; k++) p->target[n++] = r->args[k];
    for (int k = 0; k < f->plates.n; k++) p->loops.index[p->loops.n++] = f->plates.index[k];
    for (int k = 0; k < m->loops.n; k++) p->loops.index[p->loops.n++] = m->loops.index[k];
    return p;
}

// Statistics and their coefficients in a factor, added if `adds`; false, and why: it has none of a family.
static bool array_parts(Graph *g, Conditional *c, Factor *f, ArrayStatistic *all, bool adds)
{
    const Var *v = c->var, *series = through_series(f->log_density, v);
    if (series) {
        c->because = arena_printf(g->arena,
                                  series->sites->ode ? "it enters the differential equation of `%s` (line %d)"
                                                     : "it enters the recursion of `%s` (line %d)",
                                  series->name, span_line(series->span));
        return false;
    }
    Terms t = polynomial(g->arena, f->log_density, &(Unknowns){&c->var, 1, true}, 1);
    if (t.failed) {
        c->because = terms_because(g->arena, &t, "is not linear in its statistics", f->span);
        return false;
    }
    for (int i = 0; i < t.n; i++) {
        const Term *m = &t.term[i];
        ArrayStatistic s;
        if (m->degree == 0) continue;
        if (!array_statistic(m->ref[0], v->constraint == CONSTRAINT_SIMPLEX, &s)) {
            c->because = arena_printf(g->arena, "`%s` (line %d) is not among a family's statistics", ex_quote(g->arena, m->ref[0]),
                                      span_line(f->span));
            return false;
        }
        all->inverse |= s.inverse;
        all->direct |= s.direct;
        if (adds) part_append(&c->natural, array_part(g, f, m, &s));
    }
    return true;
}

Conditional *conditional_array(Graph *g, Var *v)
{
    Conditional *c = NEW(g->arena, Conditional);
    c->var = v;
    c->current = var_element(g, v, c->element);
    c->array = true;
    bool simplex = v->constraint == CONSTRAINT_SIMPLEX;
    if (!simplex && v->constraint != CONSTRAINT_COVARIANCE) {
        c->because = "no family has its constraint";
        return c;
    }
    int core = simplex ? 1 : 2;
    c->nbatch = v->rank - core;
    c->because = "no family of arrays has its statistics";
    ArrayStatistic all = {0};
    const Reading enters = factors_of(g, v);
    for (int pass = 0; pass < 2; pass++)  // all have to fit before the first is added
        for (int q = 0; q < enters.n; q++) {
            Factor *f = enters.factor[q];
            if (factor_counts(f, v, false) && factor_mentions(f, v) && !array_parts(g, c, f, &all, pass == 1)) return c;
        }
    if (all.inverse && all.direct) {
        c->because = "both it and its inverse enter";
        return c;
    }
    const char *name = simplex ? "dirichlet" : all.inverse ? "inv_wishart" : "wishart";
    c->family = library_family(g->stdlib, intern(name));
    c->nnatural = simplex ? 1 : 2;
    if (v->constraint == CONSTRAINT_CORRELATION || v->constraint == CONSTRAINT_CHOLESKY_CORR || v->constraint == CONSTRAINT_CHOLESKY_COV)
        c->family = NULL;
    return c;
}
