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
#include "../terms/conditions.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/elaborate.h"
#include "../model/law.h"
#include "../model/series.h"
#include "../model/closed.h"
#include "../model/arguments.h"
#include "../model/coverage.h"
#include "polynomial.h"

// f as the conditional of v sees it: what v decides is a choice within the density. Data outside the support that v picks have the density 0, and so has
// a value of v at which an argument lies outside of its domain.
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

// ---- ends within a density ----

static bool is_end(const Expr *e) { return e->kind == EX_CALL && e->fn == FN_WITHIN; }

// Functions that need not be numbers where a value is outside of the support: log(b - a) of the ends a and b of a uniform distribution.
static Look failing(const Expr *e, void *with)
{
    (void)with;
    if (is_end(e)) return SKIP;
    const bool yes = e->kind == EX_CALL ? e->fn == FN_lchoose || (function_rows[e->fn].traits & (TRAIT_LOG_END | TRAIT_POLES)) : e->kind == EX_POW && (e->number < 0 || e->number != floor(e->number));
    return yes ? FOUND : LOOK;
}

bool may_fail(const Expr *e) { return ex_find(e, failing, NULL); }

// Whether a term says where the value lies, and others may fail where it does not.
bool ends_decide_all(const Expr *e)
{
    bool ends = false, fails = false;
    for (int i = 0; i < e->nargs && e->kind == EX_ADD; i++)
        if (is_end(e->args[i])) ends = true;
        else fails |= may_fail(e->args[i]);
    return ends && fails;
}

// A sum of such terms as a choice: outside of the ends the density is 0, and nothing else is computed.
Expr *ends_decide(Expr *e)
{
    if (!ends_decide_all(e)) return e;
    Expr *inside = NULL, *rest = ex_num(0);
    for (int i = 0; i < e->nargs; i++) {
        const Expr *t = e->args[i];
        if (!is_end(t)) { rest = ex_add2(rest, e->args[i]); continue; }
        for (int side = 1; side <= 2; side++) {
            if (t->args[side]->kind == EX_NUM && isinf(t->args[side]->number)) continue;
            Expr *one = side == 1 ? ex_call2("<=", t->args[1], t->args[0]) : ex_call2("<=", t->args[0], t->args[2]);
            inside = inside ? ex_call2("&&", inside, one) : one;
        }
    }
    return inside ? ex_call3("if_else", inside, rest, ex_num(-INFINITY)) : rest;
}

// ---- mentions: the different references to v in a factor ----

enum { MAX_MENTIONS = 64 };              // each is compared with each
typedef struct Mentions { int n, size; Expr **ref; bool dense; bool too_many; bool partial; } Mentions;

// Whether it holds the index of a sum around it; sums within it, as in u[sum(j, k[j])], have indices of their own.
static bool has_bound_index(const Expr *e) { return e->loose > 0; }

typedef struct Finding { Arena *arena; const Var *v; Mentions *m; } Finding;

static void find_mention(Expr *e, void *with)
{
    const Finding *f = with;
    Mentions *m = f->m;
    if (e->var != f->v) return;
    if (m->n == MAX_MENTIONS) { m->too_many = true; return; }
    ROOM(f->arena, m->ref, m->n, m->size);
    m->ref[m->n++] = e;
    if (e->nargs < f->v->rank) m->partial = true;
    if (has_bound_index(e)) m->dense = true;
}

static void find_mentions(Arena *a, Expr *e, const Var *v, Mentions *m) { ex_references(e, v, find_mention, &(Finding){a, v, m}); }

static int plate_of(const Plates *p, const Index *i)
{
    for (int k = 0; k < p->n; k++)
        if (p->index[k] == i) return k;
    return -1;
}

// e as plate + shift.
static bool plate_shift(const Plates *p, Expr *e, int *plate, double *shift)
{
    *shift = 0;
    if (e->kind == EX_ADD && e->nargs == 2 && e->args[0]->kind == EX_NUM) { *shift = e->args[0]->number; e = e->args[1]; }
    if (e->kind != EX_INDEX) return false;
    *plate = plate_of(p, e->index);
    return *plate >= 0;
}

// Can two references in one instance never be the same element?
static bool distinct(Expr *a, Expr *b)
{
    for (int i = 0; i < a->nargs && i < b->nargs; i++) {
        Expr *d = ex_sub(a->args[i], b->args[i]);
        if (d->kind == EX_NUM && d->number != 0) return true;
    }
    return false;
}

// ---- one factor, one mention: solve subscripts = element for the plates ----

typedef struct Solved { Part *part; bool gather; bool ok; } Solved;

// A sum over elements of v gives up the term of the element: S becomes S - a[k]*v[k] + a[k]*u.
typedef struct Isolate { Arena *arena; Conditional *c; Expr *ref; bool failed; } Isolate;

// e with u for the element ref, and the u of what is studied together with it for that.
static Expr *both_replaced(const Conditional *c, Expr *e, Expr *ref)
{
    e = ex_replace(e, ref, c->u);
    return c->with ? ex_replace(e, ex_ref(c->with->var, ref->nargs, ref->args), c->with->u) : e;
}

static Expr *isolate(Expr *e, void *with)
{
    Isolate *is = with;
    Var *v = is->c->var;
    if (e->kind != EX_REDUCE || !ex_mentions(e, v)) return NULL;
    if (e->fn != FN_sum || ex_mentions(e->args[0], v) || ex_mentions(e->args[1], v)) { is->failed = true; return e; }
    int at = -1, times = 0;                      // x[j, j] and x[j, j + 1] have elements that are in no term
    for (int k = 0; k < is->ref->nargs; k++) {
        if (is->ref->args[k]->kind == EX_INDEX && is->ref->args[k]->index == e->index) at = k;
        times += ex_mentions_index(is->ref->args[k], e->index);
    }
    if (at < 0 || times > 1) { is->failed = true; return e; }
    Expr *key = ex_index(is->c->element[at]);
    Expr *body = ex_replace_index(e->args[2], e->index, key), *ref = ex_replace_index(is->ref, e->index, key);
    Mentions m = {0};
    find_mentions(is->arena, body, v, &m);
    if (m.n != 1 || m.ref[0] != ref) { is->failed = true; return e; }
    // Sums within, sum(l, f(sum(j, v[j, l]))), give up the term, too: the element is one of theirs.
    Isolate within = {.arena = is->arena, .c = is->c, .ref = ref};
    Expr *with_element = has_bound_index(ref) ? ex_map(body, isolate, &within) : both_replaced(is->c, body, ref);
    if (within.failed) { is->failed = true; return e; }
    Expr *term = ex_sub(with_element, body);
    if (!ex_is_num(e->args[0], 1) || e->args[1] != v->dim[at])
        term = ex_call3("if_else", ex_call2("&&", ex_call2("<=", e->args[0], key), ex_call2("<=", key, e->args[1])), term, ex_num(0));
    return ex_add2(e, term);
}

static Solved solve(Graph *g, Conditional *c, Factor *f, Expr *ref, bool scatter_allowed)
{
    Var *v = c->var;
    Plates p = f->plates;
    p.index = index_list(g->arena, p.index, p.n, 1);
    Expr *e = f->log_density, *guard = p.guard;
    Solved out = {.ok = true};
    if (has_bound_index(ref)) {
        Isolate is = {.arena = g->arena, .c = c, .ref = ref};
        e = ex_map(e, isolate, &is);
        if (is.failed) { out.ok = false; return out; }
    } else e = both_replaced(c, e, ref);
    Expr *from[MAX_RANK * 2], *to[MAX_RANK * 2];
    int n = 0;
    bool taken[2 * MAX_RANK] = {false};
    Expr *equal = NULL;
    for (int k = 0; k < v->rank; k++) {
        Expr *s = ref->args[k], *key = ex_index(c->element[k]);
        int plate;
        double shift;
        if (s->kind == EX_INDEX && s->index->height > 0) continue;       // the sum's own index: solved by isolate
        if (plate_shift(&f->plates, s, &plate, &shift) && !taken[plate]) {
            taken[plate] = true;
            Index *i = f->plates.index[plate];
            Expr *value = ex_add2(key, ex_num(-shift));
            from[n] = ex_index(i);
            to[n++] = value;
            if (!(ex_is_num(i->lo, 1) && shift == 0)) guard = ex_both(guard, ex_call2("<=", i->lo, value));
            if (!(i->hi == v->dim[k] && shift == 0)) guard = ex_both(guard, ex_call2("<=", value, i->hi));
        } else {
            bool varies = ex_unknown(s);
            for (int m = 0; m < f->plates.n; m++) varies |= ex_mentions_index(s, f->plates.index[m]);
            if (varies) out.gather = true;
            equal = ex_both(equal, ex_call2("==", s, key));
        }
    }
    Part *part = NEW(g->arena, Part);
    *part = (Part){.factor = f};
    if (out.gather && scatter_allowed) {         // loop over the whole factor and add to the element it names
        part->scatter = true;
        part->loops = (Loops){.guard = f->plates.guard};
        for (int m = 0; m < f->plates.n; m++) part->loops.index[part->loops.n++] = f->plates.index[m];
        for (int k = 0; k < v->rank; k++) part->target[k] = ref->args[k];
        part->value = e;
        out.part = part;
        return out;
    }
    guard = ex_both(guard, equal);
    // Substitute; indices of the plates that remain get fresh ranges if these mention a solved plate.
    for (int m = 0; m < p.n; m++) {
        if (taken[m]) continue;
        Index *i = p.index[m];
        Expr *lo = i->lo, *hi = i->hi;
        for (int k = 0; k < n; k++) { lo = ex_replace(lo, from[k], to[k]); hi = ex_replace(hi, from[k], to[k]); }
        if (lo != i->lo || hi != i->hi) {
            Index *j = index_new(i->name, lo, hi);
            from[n] = ex_index(i);
            to[n++] = ex_index(j);
            i = j;
        }
        part->loops.index[part->loops.n++] = i;
    }
    for (int k = 0; k < n; k++) {
        e = ex_replace(e, from[k], to[k]);
        if (guard) guard = ex_replace(guard, from[k], to[k]);
    }
    part->loops.guard = condition_left(guard);
    part->value = e;
    out.part = part;
    return out;
}

// No element is in such a part, whatever the sizes are.
static bool stands_nowhere(const Part *p) { return p->loops.guard && ex_is_num(p->loops.guard, 0); }

// ---- independence of elements ----

// How far apart elements lie that a factor holds together: differences of subscripts, if these are constants.
enum { MOST_DISTANCES = 256 };
typedef struct Apartness { int n; int by[MOST_DISTANCES][MAX_RANK]; bool unknown; Conflict *conflicts; bool hidden; } Apartness;      // hidden: which elements meet data do not tell

static bool test_late(const Var *v, void *with) { (void)with; return v->kind != VAR_DATA || v->response; }
static bool known_from_data(const Expr *e) { return !ex_any_var(e, test_late, NULL); }

// Pairs of elements that an instance of f holds: with one plate, or two whose ranges do not depend on each other, from 1.
static void add_conflicts(Arena *arena, Apartness *d, const Var *v, const Factor *f, const Mentions *m)
{
    const Plates *p = &f->plates;
    d->hidden |= m->dense || m->partial || m->too_many || v->rank != 1 || p->n < 1 || p->n > 2 || m->n > 4 || (p->guard && !known_from_data(p->guard));
    for (int i = 0; i < p->n && !d->hidden; i++) {
        d->hidden |= !ex_is_num(p->index[i]->lo, 1) || !known_from_data(p->index[i]->hi);
        for (int k = 0; k < p->n; k++) d->hidden |= ex_mentions_index(p->index[i]->hi, p->index[k]);
    }
    for (int i = 0; i < m->n && !d->hidden; i++) {
        bool varies = false;                     // what every instance holds meets all others
        for (int k = 0; k < p->n; k++) varies |= ex_mentions_index(m->ref[i]->args[0], p->index[k]);
        d->hidden |= !varies || !known_from_data(m->ref[i]->args[0]);
    }
    for (int i = 0; i < m->n && !d->hidden; i++)
        for (int k = 0; k < i; k++) {
            Conflict *c = NEW(arena, Conflict);
            *c = (Conflict){f, m->ref[k]->args[0], m->ref[i]->args[0], d->conflicts};
            d->conflicts = c;
        }
}

static void add_distances(Apartness *d, const Var *v, const Mentions *m)
{
    d->unknown |= m->dense || m->partial || m->too_many;
    for (int i = 0; i < m->n; i++)
        for (int j = 0; j < i && !d->unknown; j++) {
            if (d->n == MOST_DISTANCES) { d->unknown = true; return; }
            int *by = d->by[d->n], most = 0;
            for (int k = 0; k < v->rank; k++) {
                const Expr *e = ex_sub(m->ref[i]->args[k], m->ref[j]->args[k]);
                if (e->kind != EX_NUM || fabs(e->number) > 1000 || e->number != floor(e->number)) { d->unknown = true; return; }
                by[k] = (int)e->number;
                most = abs(by[k]) > most ? abs(by[k]) : most;
            }
            bool seen = most == 0;
            for (int l = 0; l < d->n; l++) seen |= memcmp(d->by[l], by, sizeof *by * (size_t)v->rank) == 0;
            if (!seen) d->n++;
        }
}

// Elements of several subscripts whose colours (stride . subscripts) mod colours differ wherever a factor holds both: those of one colour are independent given the others. A chessboard for
// neighbours on a square lattice. The last stride is 1, so that elements of one colour are found without a search. The fewest colours there are, up to MOST_COLOURS.
enum { MOST_COLOURS = 16 };

static bool tells_apart(const Apartness *d, int rank, const int *stride, int colours)
{
    for (int i = 0; i < d->n; i++) {
        int sum = 0;
        for (int k = 0; k < rank; k++) sum += stride[k] * d->by[i][k];
        if (sum % colours == 0) return false;
    }
    return true;
}

static void find_lattice(Conditional *c, const Apartness *d)
{
    const Var *v = c->var;
    const int first = c->nbatch, free = v->rank - 1 - first;
    if (c->whole || d->unknown || d->n == 0 || free < 1 || free > 3) return;
    for (int i = 0; i < d->n; i++)
        for (int k = 0; k < first; k++)
            if (d->by[i][k]) return;
    for (int colours = 2; colours <= MOST_COLOURS; colours++) {
        int all = 1;
        for (int k = 0; k < free; k++) all *= colours;
        for (int which = 0; which < all; which++) {
            int stride[MAX_RANK] = {0}, rest = which;
            for (int k = v->rank - 2; k >= first; k--, rest /= colours) stride[k] = rest % colours;
            stride[v->rank - 1] = 1;
            if (!tells_apart(d, v->rank, stride, colours)) continue;
            c->lattice = colours;
            memcpy(c->stride, stride, sizeof stride);
            return;
        }
    }
}

int colours_of(const Conditional *c)
{
    if (c->whole) return 0;
    return c->colours > 1 && c->nbatch == 0 && c->var->rank == 1 ? c->colours : c->lattice;
}

// A factor with several references couples elements. What leading dimensions do all its references share?
static void couple(Arena *arena, Conditional *c, const Factor *f, const Mentions *m, Apartness *apart)
{
    const Var *v = c->var;
    if (m->n <= 1 && !m->dense && !m->partial && !m->too_many) return;
    add_distances(apart, v, m);
    if (arena) add_conflicts(arena, apart, v, f, m);
    int shared = 0;
    for (; shared < v->rank && !m->too_many; shared++) {
        bool all = true;
        for (int i = 0; i < m->n; i++) {
            if (m->ref[i]->nargs <= shared) { all = false; break; }
            Expr *s = m->ref[i]->args[shared];
            all &= s == m->ref[0]->args[shared] && s->kind == EX_INDEX && s->index->height == 0 && plate_of(&f->plates, s->index) >= 0;
        }
        if (!all) break;
    }
    int colours = 0;
    if (!m->dense && !m->partial && !m->too_many && shared < v->rank) {      // neighbours at fixed distances in the next dimension
        double least = 0, most = 0;
        int plate0 = -1;
        bool ok = true;
        for (int i = 0; i < m->n && ok; i++) {
            int plate;
            double shift;
            ok = plate_shift(&f->plates, m->ref[i]->args[shared], &plate, &shift);
            if (!ok) break;
            if (i == 0) { plate0 = plate; least = most = shift; }
            ok = plate == plate0;
            if (shift < least) least = shift;
            if (shift > most) most = shift;
            for (int k = shared + 1; k < v->rank; k++) ok &= m->ref[i]->args[k] == m->ref[0]->args[k] && m->ref[i]->args[k]->kind == EX_INDEX;
        }
        if (ok && most - least <= 8) colours = (int)(most - least) + 1;
    }
    if (shared < v->rank && !c->couples) c->couples = f;
    if (shared < c->nbatch) { c->nbatch = shared; c->colours = colours; }
    else if (shared == c->nbatch && shared < v->rank) c->colours = colours == 0 || c->colours == 0 ? 0 : colours > c->colours ? colours : c->colours;
}

// ---- families ----

// Whether anything but a whole turn bounds it.
static bool bounded_on_circle(const Part *bounds)
{
    for (const Part *b = bounds; b; b = b->next)
        if (b->value->kind != EX_NUM || b->value->number != (b->which ? M_PI : -M_PI)) return true;
    return false;
}

static bool same_support(const Distribution *f, const Var *v, const Part *bounds, bool *truncated)
{
    const bool bounded = f->support == SUPPORT_CIRCLE ? bounded_on_circle(bounds) : bounds != NULL;
    bool lower = isfinite(v->lower_number), upper = isfinite(v->upper_number);
    if (f->support == SUPPORT_REAL) *truncated = lower || upper || bounded;
    else if (f->support == SUPPORT_CIRCLE) *truncated = ((lower || upper) && !(v->lower_number == -M_PI && v->upper_number == M_PI)) || bounded;
    else if (f->support == SUPPORT_POSITIVE) {
        if (!(v->lower_number >= 0)) return false;
        *truncated = v->lower_number > 0 || upper || bounded;
    } else if (f->support == SUPPORT_UNIT) {
        if (!(v->lower_number >= 0 && v->upper_number <= 1)) return false;
        *truncated = v->lower_number > 0 || v->upper_number < 1 || bounded;
    } else if (f->support == SUPPORT_INTERVAL) {
        *truncated = true;
        return (lower && upper) || bounded;
    } else return false;
    return !*truncated || f->draw_truncated != NULL;
}

// The statistics of a family with an exponent: `x^k` at k = power.
static Expr *family_statistic(Graph *g, const Distribution *f, const Natural *s, double power, Expr *u)
{
    if (!f->power) return elaborate_rule(g, s->statistic, 1, (Decl *[]){f->value}, (Expr *[]){u});
    const Ast *a = s->statistic;
    if (a->kind == AST_BINARY && a->op == OP_POW) {
        double sign = a->kid[1]->kind == AST_UNARY ? -1 : 1;
        return ex_pow(u, sign * power);
    }
    return elaborate_rule(g, a, 1, (Decl *[]){f->value}, (Expr *[]){u});
}

static bool family_matches(Graph *g, const Distribution *f, double power, Expr *u, const Statistics *s, int *which, Conditional *c)
{
    int count = 0;
    for (const Natural *n = f->natural; n; n = n->next) count++;
    Expr **list = NEW_N(g->arena, Expr *, count + 1);
    count = 0;
    for (const Natural *n = f->natural; n; n = n->next) list[count++] = family_statistic(g, f, n, power, u);
    c->nbase = 0;
    bool based = false;
    for (int i = 0; i < s->n; i++) {
        which[i] = -1;
        for (int k = 0; k < count; k++)
            if (list[k] == s->item[i].statistic) which[i] = k;
        if (which[i] >= 0) continue;
        const Ast *b = f->base;
        Expr *e = s->item[i].statistic;
        if (!b || based || e->kind != EX_CALL || strcmp(e->name, b->name) != 0 || e->nargs != b->nkids || e->args[b->nkids - 1] != u ||
            !ex_is_num(s->item[i].coefficient, 1))
            return false;
        c->base_args = NEW_N(g->arena, Expr *, b->nkids);
        for (int k = 0; k + 1 < b->nkids; k++) {
            if (ex_mentions(e->args[k], u->var)) return false;
            c->base_args[c->nbase++] = e->args[k];
        }
        based = true;
        which[i] = 100;
    }
    return !f->base || based;
}

// Smallest family whose statistics include all that were found. `all` merges the statistics of every part.
static bool recognise(Graph *g, Conditional *c, const Statistics *all)
{
    double powers[2 * MAX_STATISTICS + 1];
    int npowers = 0;
    powers[npowers++] = 1;
    for (int i = 0; i < all->n; i++) {
        Expr *e = all->item[i].statistic;
        if (e->kind == EX_POW && e->args[0] == c->u) { powers[npowers++] = e->number; powers[npowers++] = -e->number; }
    }
    int which[MAX_STATISTICS];
    if (all->many) return false;
    for (int size = 0; size <= MAX_NATURAL; size++)
        for (const Distribution *f = g->stdlib->distributions; f; f = f->next) {
            if (!f->is_family || f->value_rank) continue;
            int count = 0;
            for (const Natural *n = f->natural; n; n = n->next) count++;
            bool truncated;
            if (count != size || !same_support(f, c->var, c->bounds, &truncated)) continue;
            for (int k = 0; k < (f->power ? npowers : 1); k++)
                if (family_matches(g, f, powers[k], c->u, all, which, c)) {
                    c->family = f;
                    c->power = powers[k];
                    c->truncated = truncated;
                    c->nnatural = count;
                    return true;
                }
        }
    c->nbase = 0;
    return false;
}

static void add_bound(Graph *g, Conditional *c, const Part *part, Expr *bound, int which)
{
    if (bound->kind == EX_NUM && isinf(bound->number)) return;
    Part *p = NEW(g->arena, Part);
    *p = *part;
    p->value = bound;
    p->which = which;
    p->next = c->bounds;
    c->bounds = p;
}

// 0 <= e, e affine in u: a bound on u, the side told by the sign of the coefficient, which need not be known before the run.
static bool affine_bound(Graph *g, Conditional *c, const Part *part, Expr *e)
{
    Statistics s = statistics(g->arena, e, c->u);
    if (s.n == 0) return true;
    if (s.n != 1 || s.item[0].statistic != c->u) return false;
    Expr *k = s.item[0].coefficient, *rest = ex_replace(e, c->u, ex_num(0));
    if (ex_mentions(k, c->u->var) || ex_mentions(rest, c->u->var)) return false;
    Expr *end = ex_neg(ex_div(rest, k));
    if (k->kind == EX_NUM) { add_bound(g, c, part, end, k->number > 0 ? 0 : 1); return true; }
    for (int side = 0; side < 2; side++) {
        Expr *here = side ? ex_call2("<", k, ex_num(0)) : ex_call2("<", ex_num(0), k);
        add_bound(g, c, part, ex_call3("if_else", here, end, ex_num(side ? INFINITY : -INFINITY)), side);
    }
    return true;
}

// within(u, lo, hi) and within(x, .., u): bounds on u. Returns the density without them.
static Expr *take_bounds(Graph *g, Conditional *c, const Part *part, bool *ok)
{
    Expr *e = part->value;
    Expr **terms = e->kind == EX_ADD ? e->args : &e;
    int n = e->kind == EX_ADD ? e->nargs : 1;
    Expr *rest = ex_num(0);
    for (int i = 0; i < n; i++) {
        Expr *t = terms[i];
        if (t->kind != EX_CALL || t->fn != FN_WITHIN || !ex_mentions(t, c->u->var)) { rest = ex_add2(rest, t); continue; }
        Expr *x = t->args[0];
        for (int side = 0; side < 2; side++) {
            Expr *b = t->args[1 + side];
            bool inside = x == c->u && !ex_mentions(b, c->u->var), reversed = b == c->u && !ex_mentions(x, c->u->var);
            Expr *bound = inside ? b : x;
            int which = side;
            if (reversed) which = 1 - side;      // u <= x: x bounds u from above
            if (b->kind == EX_CALL && b->fn == FN_if_else && !inside && !ex_mentions(x, c->u->var) &&
                !ex_mentions(b->args[0], c->u->var) && (b->args[1] == c->u || b->args[2] == c->u)) {
                reversed = true;
                which = 1 - side;
                Expr *open = ex_num(which ? INFINITY : -INFINITY);
                bound = b->args[1] == c->u ? ex_call3("if_else", b->args[0], x, open) : ex_call3("if_else", b->args[0], open, x);
            }
            if (!inside && !reversed) {
                if (ex_mentions(b, c->u->var) || ex_mentions(x, c->u->var)) {
                    if (!ex_mentions(b, c->u->var) && b->kind == EX_NUM && isinf(b->number)) continue;
                    const bool choice = b->kind == EX_CALL && b->fn == FN_if_else;       // an end may be infinite
                    if (choice || !affine_bound(g, c, part, side ? ex_sub(b, x) : ex_sub(x, b))) *ok = false;
                }
                continue;
            }
            add_bound(g, c, part, bound, which);
        }
    }
    return rest;
}

static void append(Part **list, Part *p)
{
    while (*list) list = &(*list)->next;
    *list = p;
}

// A factor as it stands, over those of its instances that hold the element: where all references have the same plate index in a dimension,
// that index is the element's.
static Part *whole_factor(Graph *g, const Conditional *c, Factor *f, const Mentions *m)
{
    Part *p = NEW(g->arena, Part);
    *p = (Part){.factor = f, .value = f->log_density, .loops = {.guard = f->plates.guard}};
    Index *was[2 * MAX_RANK];
    Expr *is[2 * MAX_RANK];
    int n = 0;
    for (int k = 0; m->n && !m->too_many && k < c->var->rank; k++) {
        bool same = m->ref[0]->nargs > k && m->ref[0]->args[k]->kind == EX_INDEX && plate_of(&f->plates, m->ref[0]->args[k]->index) >= 0;
        for (int i = 1; i < m->n && same; i++) same = m->ref[i]->nargs > k && m->ref[i]->args[k] == m->ref[0]->args[k];
        if (!same) break;
        Index *i = m->ref[0]->args[k]->index;
        for (int j = 0; j < n; j++) same &= was[j] != i;
        for (int j = 0; j < n; j++) same &= !ex_mentions_index(i->lo, was[j]) && !ex_mentions_index(i->hi, was[j]);
        if (!same) break;
        Expr *key = ex_index(c->element[k]);
        was[n] = i;
        is[n++] = key;
        if (!ex_is_num(i->lo, 1)) p->loops.guard = ex_both(p->loops.guard, ex_call2("<=", i->lo, key));
        if (i->hi != c->var->dim[k]) p->loops.guard = ex_both(p->loops.guard, ex_call2("<=", key, i->hi));
    }
    for (int k = 0; k < f->plates.n; k++) {
        Index *i = f->plates.index[k];
        bool solved = false;
        Expr *lo = i->lo, *hi = i->hi;
        for (int j = 0; j < n; j++) {
            solved |= was[j] == i;
            lo = ex_replace(lo, ex_index(was[j]), is[j]);
            hi = ex_replace(hi, ex_index(was[j]), is[j]);
        }
        if (solved) continue;
        if ((lo != i->lo || hi != i->hi) && n < 2 * MAX_RANK) {
            was[n] = i;
            i = index_new(i->name, lo, hi);
            is[n++] = ex_index(i);
        }
        p->loops.index[p->loops.n++] = i;
    }
    for (int j = 0; j < n; j++) {
        p->value = ex_replace(p->value, ex_index(was[j]), is[j]);
        if (p->loops.guard) p->loops.guard = ex_replace(p->loops.guard, ex_index(was[j]), is[j]);
    }
    p->loops.guard = condition_left(p->loops.guard);
    return p;
}

// ---- terms of a factor that hold different elements ----

// A log density that is a sum holds several elements of v without tying them to each other, if each of its terms holds one: the log of a stick's part, log(v[c]) + sum(j in 1:c-1, log1m(v[j])).
// Each term is a factor of its own then, for v; what a sum holds at its own index stands over one more plate. `alone`: every term came down to one element.
typedef struct Apart { Graph *g; const Var *v; const Factor *f; Factor **last; bool alone; } Apart;

static void take_terms(Apart *a, Expr *e, const Plates *p, Expr *times)
{
    if (!a->alone || !ex_mentions(e, a->v)) return;
    if (e->size > MAX_TREE) { a->alone = false; return; }
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
            if (ex_mentions(e->args[i], a->v)) { inner = e->args[i]; holding++; }
            else outer = ex_mul2(outer, e->args[i]);
        if (holding == 1) { take_terms(a, inner, p, outer); return; }
    }
    if (e->kind == EX_CALL && e->fn == FN_if_else && !ex_mentions(e->args[0], a->v)) {
        Expr *c = e->args[0];
        bool varies = false;                     // then it is a condition of the loop: where it does not hold, the element may not exist
        for (int i = 0; i < p->n; i++) varies |= ex_mentions_index(c, p->index[i]);
        Plates where = *p, where_not = *p;
        if (varies) {
            where.guard = ex_both(p->guard, c);
            where_not.guard = ex_both(p->guard, ex_call1("!", c));
        }
        take_terms(a, e->args[1], &where, varies ? times : ex_call3("if_else", c, times, ex_num(0)));
        take_terms(a, e->args[2], &where_not, varies ? times : ex_call3("if_else", c, ex_num(0), times));
        return;
    }
    if (e->kind == EX_REDUCE && e->fn == FN_sum && !one && !ex_mentions(e->args[0], a->v) && !ex_mentions(e->args[1], a->v) && p->n < MAX_PLATES) {
        Index *j = index_new(e->index->name, e->args[0], e->args[1]);
        Plates more = *p;
        more.index = NEW_N(a->g->arena, Index *, p->n + 1);
        memcpy(more.index, p->index, sizeof *p->index * (size_t)p->n);
        more.index[more.n++] = j;
        take_terms(a, ex_open(e, j), &more, times);
        return;
    }
    if (!one) { a->alone = false; return; }
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

// References that may be one element in some instances, s[a[e]] and s[b[e]] with a and b of the data: where another one is the same element as the i-th it moves with it, and an instance
// counts for the first of those that are the same.
enum { MOST_THAT_MEET = 4 };

static Factor *where_they_meet(Graph *g, const Factor *f, const Mentions *m, int i)
{
    Factor *r = arena_copy(g->arena, f, sizeof *f);
    for (int j = 0; j < m->n; j++) {
        if (j == i || distinct(m->ref[i], m->ref[j])) continue;
        Expr *same = NULL;
        for (int k = 0; k < m->ref[i]->nargs; k++)
            if (m->ref[i]->args[k] != m->ref[j]->args[k]) same = ex_both(same, ex_call2("==", m->ref[i]->args[k], m->ref[j]->args[k]));
        if (j < i) r->plates.guard = ex_both(r->plates.guard, ex_call1("!", same));
        else r->log_density = ex_replace(r->log_density, m->ref[j], ex_call3("if_else", same, m->ref[i], m->ref[j]));
    }
    return r;
}

// ---- elements that one chain of a series reads ----

typedef struct Chained { const Series *s; Expr *chain; } Chained;

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
    if (found.chain->kind != EX_INDEX || plate_of(&f->plates, found.chain->index) < 0 || (f->plates.guard && !series_reads_own(s, c->var, f->plates.guard, found.chain))) return NULL;
    Expr *args[MAX_RANK], *ref;
    args[0] = found.chain;
    for (int k = 1; k < c->var->rank; k++) args[k] = ex_index(c->element[k]);
    ref = ex_ref(c->var, c->var->rank, args);
    return whole_factor(g, c, f, &(Mentions){.n = 1, .ref = &ref});
}

static Conditional *element_in(Graph *g, Var *v, const Reading enters, bool collapsed, bool scatter)
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
    bool exact = v->constraint == CONSTRAINT_NONE || v->constraint == CONSTRAINT_ORDERED || v->constraint == CONSTRAINT_POSITIVE_ORDERED;
    if (!exact) c->because = "its elements are constrained together";
    Apartness apart_by = {0};
    bool others = false;                             // a factor reads chains of a series beside the element's own
    for (int q = 0; q < enters.n; q++) {
        Factor *written = enters.factor[q];
        if (!factor_counts(written, v, collapsed) || !factor_mentions(written, v)) continue;
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
            couple(g->arena, c, f, &m, &apart_by);
            const Var *series = through_series(f->log_density, v);
            bool clean = !series && !m.partial && !m.too_many && !(m.dense && m.n > 1), meet = false;
            for (int i = 0; i < m.n; i++)
                for (int k = 0; k < i; k++) meet |= !distinct(m.ref[i], m.ref[k]);
            clean &= !meet || (m.n <= MOST_THAT_MEET && !m.dense);
            for (int i = 0; i < m.n && clean; i++)
                for (int k = 0; k < m.ref[i]->nargs; k++) clean &= !ex_mentions(m.ref[i]->args[k], v);
            Part *parts = NULL;
            for (int i = 0; i < m.n && clean; i++) {
                // Scattering needs elements that do not move while it is done.
                Solved s = solve(g, c, meet ? where_they_meet(g, f, &m, i) : f, m.ref[i], scatter && m.n == 1);
                if (!s.ok) { clean = false; break; }
                if (!stands_nowhere(s.part)) append(&parts, s.part);
            }
            if (!clean) {                            // evaluate the whole factor, reading the state
                c->whole = true;
                exact = false;
                c->nbatch = 0;
                c->colours = 0;
                if (series) {
                    c->recursion = series;
                    c->because = arena_printf(g->arena, series->sites->ode ? "it enters the differential equation of `%s` (line %d), which is solved again for each value that is tried"
                                                                           : "it enters the recursion of `%s` (line %d), which is computed again for each value that is tried", series->name, span_line(series->span));
                    m = (Mentions){0};
                }
                if (!c->because && m.too_many)
                    c->because = arena_printf(g->arena, "more than %d of its elements enter one factor (line %d)", MAX_MENTIONS, span_line(f->span));
                if (!c->because)
                    c->because = arena_printf(g->arena, "several of its elements enter one factor (line %d) in a way that cannot be told apart", span_line(f->span));
                Part *own = series ? in_own_chain(g, c, f) : NULL;
                others |= series && !own;
                parts = own ? own : whole_factor(g, c, f, &m);
            }
            for (Part *p = parts; p; p = p->next) p->factor = written;
            append(&c->density, parts);
        }
    }
    Series *chains = c->recursion && !others ? series_in_chains(g, v) : NULL;
    if (chains) {
        chains->chains = true;
        c->chain = ex_index(c->element[0]);
    }
    if (c->whole)                                // every part reads the state then
        for (Part *p = c->density; p; p = p->next) p->value = ex_replace(p->value, c->u, c->current);
    find_lattice(c, &apart_by);
    if (!c->whole && !c->nbatch && !colours_of(c) && !apart_by.hidden && v->rank == 1 && known_from_data(v->dim[0])) c->conflicts = apart_by.conflicts;
    if (v->discrete) { c->because = c->recursion ? c->because : "it is discrete"; return c; }
    if (!exact) return c;
    // Scattered parts are summed before elements are drawn: allowed if elements are independent.
    Statistics all = {0};
    bool ok = true;
    for (Part *p = c->density; p; p = p->next) {
        Expr *rest = take_bounds(g, c, p, &ok);
        Statistics s = statistics(g->arena, rest, c->u);
        for (int i = 0; i < s.n; i++) {
            bool seen = false;
            for (int k = 0; k < all.n; k++) seen |= all.item[k].statistic == s.item[i].statistic;
            if (seen) continue;
            if (all.n == MAX_STATISTICS) { all.many = true; break; }
            ROOM(g->arena, all.item, all.n, all.size);
            all.item[all.n++] = s.item[i];
        }
        all.many |= s.many;
    }
    if (!ok) {
        c->because = "it enters a bound other than alone";
        return c;
    }
    if (all.many) {
        c->because = arena_printf(g->arena, "it has more than %d statistics, or coefficients of theirs are too long to be written out", MAX_STATISTICS);
        return c;
    }
    if (!recognise(g, c, &all)) {
        char *text = arena_strdup(g->arena, "");
        for (int i = 0; i < all.n; i++) {        // a line of them
            const char *statistic = ex_quote(g->arena, ex_replace(all.item[i].statistic, c->u, c->current));
            const bool fits = strlen(text) + strlen(statistic) < 100 || i == 0;
            text = arena_printf(g->arena, "%s%s%s", text, i ? ", " : "", fits ? statistic : "...");
            if (!fits) break;
        }
        c->because = all.n == 0 ? arena_strdup(g->arena, "nothing in the model makes it proper on its support")
                                : arena_printf(g->arena, "no family has the statistics { %s }%s", text,
                                               c->bounds || isfinite(v->lower_number) || isfinite(v->upper_number) ? " on its support" : "");
        return c;
    }
    for (Part *p = c->density; p; p = p->next) {
        bool dummy = true;
        Part *keep = c->bounds;
        Statistics s = statistics(g->arena, take_bounds(g, c, p, &dummy), c->u);
        c->bounds = keep;
        int which[MAX_STATISTICS];
        Conditional scratch = *c;
        family_matches(g, c->family, c->power, c->u, &s, which, &scratch);
        for (int i = 0; i < s.n; i++) {
            int k = which[i];
            if (k == 100) continue;
            if (k < 0) {                         // another part brought the base measure
                const Natural *n = c->family->natural;
                for (k = 0; n; n = n->next, k++)
                    if (family_statistic(g, c->family, n, c->power, c->u) == s.item[i].statistic) break;
                if (!n) continue;
            }
            Part *q = NEW(g->arena, Part);
            *q = *p;
            q->next = NULL;
            q->which = k;
            q->value = s.item[i].coefficient;
            append(&c->natural, q);
        }
    }
    return c;
}

static Conditional *element(Graph *g, Var *v, bool collapsed, bool scatter) { return element_in(g, v, factors_of(g, v), collapsed, scatter); }

bool has_all_elements(Graph *g, const Var *v)
{
    Index *element[MAX_RANK];
    var_element(g, (Var *)v, element);
    return var_domain(g, v, element) == NULL;
}

// The parts of f for the elements that it holds; false: they cannot be told apart.
static bool parts_of(Graph *g, Conditional *c, Factor *f, const Mentions *m, Part **out)
{
    if (m->partial || m->too_many || (m->dense && m->n > 1)) return false;
    for (int i = 0; i < m->n; i++) {
        for (int k = 0; k < i; k++)
            if (!distinct(m->ref[i], m->ref[k])) return false;
        for (int k = 0; k < m->ref[i]->nargs; k++)
            if (ex_mentions(m->ref[i]->args[k], c->var) || (c->with && ex_mentions(m->ref[i]->args[k], c->with->var))) return false;
    }
    for (int i = 0; i < m->n; i++) {
        Solved s = solve(g, c, f, m->ref[i], false);
        if (!s.ok) return false;
        if (!stands_nowhere(s.part)) append(out, s.part);
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
        const bool of_z = factor_counts(written, z->var, false) && factor_mentions(written, z->var), of_b = factor_counts(written, b->var, false) && factor_mentions(written, b->var);
        if (!of_z && !of_b) continue;
        if (factor_decided_by(written, b->var) || through_series(written->log_density, z->var) || through_series(written->log_density, b->var)) return NULL;
        Factor *f = of_z ? weighed(g, written, z->var) : written;
        Mentions of[2] = {{0}};
        find_mentions(g->arena, f->log_density, z->var, &of[0]);
        find_mentions(g->arena, f->log_density, b->var, &of[1]);
        if (of[0].n && of[1].n) {                // each once, with the same subscripts: then they are replaced together
            if (of[0].n > 1 || of[1].n > 1 || of[0].ref[0]->nargs != of[1].ref[0]->nargs) return NULL;
            for (int k = 0; k < of[0].ref[0]->nargs; k++)
                if (of[0].ref[0]->args[k] != of[1].ref[0]->args[k]) return NULL;
            if (of[0].dense && ex_find(f->log_density, holds_one, (void *)block)) return NULL;
        }
        Conditional *c = of[0].n ? z : b;
        const Mentions *m = &of[of[0].n ? 0 : 1];
        Conditional apart = {.var = c->var, .nbatch = c->var->rank};
        Part *parts = NULL;
        couple(NULL, &apart, f, m, &(Apartness){0});
        if (apart.nbatch < z->nbatch) z->nbatch = apart.nbatch;
        if (!parts_of(g, c, f, m, &parts)) return NULL;
        for (Part *p = parts; p; p = p->next) p->factor = written;
        append(&all, parts);
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

Conditional *conditional_given(Graph *g, Var *v, const Reading *factors, bool scatter) { return element_in(g, v, *factors, false, scatter); }

Conditional *conditional_density_of(Graph *g, Var *v, const Reading *factors, bool collapsed) { return element_in(g, v, *factors, collapsed, false); }

Conditional *conditional_scattered(Graph *g, Var *v, bool collapsed) { return element(g, v, collapsed, true); }

Conditional *conditional_density(Graph *g, Var *v, bool collapsed) { return element(g, v, collapsed, false); }

// An element in nothing but its own distribution is drawn by the distribution's routine.
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
    if (!only || factor_decided_by(only, c->var) || !only->dist || !only->dist->sample || only->truncated || only->value->kind != EX_REF || only->value->var != c->var) return false;
    Mentions m = {0};
    find_mentions(g->arena, only->log_density, c->var, &m);
    if (m.n != 1 || m.ref[0] != only->value || m.partial || m.dense) return false;
    const Ast *routine = only->dist->sample;
    Expr **args = NEW_N(g->arena, Expr *, routine->nkids + 1);
    for (int i = 0; i < routine->nkids; i++) {
        args[i] = elaborate_rule(g, routine->kid[i], only->dist->nparams, only->dist->params, only->args);
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
        append(&c->density, p);
    }
    return c;
}

// ---- arrays drawn whole: simplexes by log(x), covariance and precision matrices by log|X|, X, inverse(X) ----

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
    bool inverse = false, direct = false;
    const Reading enters = factors_of(g, v);
    for (int pass = 0; pass < 2; pass++)
        for (int q = 0; q < enters.n; q++) {
            Factor *f = enters.factor[q];
            if (!factor_counts(f, v, false) || !factor_mentions(f, v)) continue;
            const Var *series = through_series(f->log_density, v);
            if (series) {
                c->because = arena_printf(g->arena, series->sites->ode ? "it enters the differential equation of `%s` (line %d)" : "it enters the recursion of `%s` (line %d)", series->name, span_line(series->span));
                return c;
            }
            Terms t = polynomial(g->arena, f->log_density, &(Unknowns){&v, 1, true}, 1);
            if (t.failed) {
                c->because = terms_because(g->arena, &t, "is not linear in its statistics", f->span);
                return c;
            }
            for (int i = 0; i < t.n; i++) {
                Term *m = &t.term[i];
                if (m->degree == 0) continue;
                Expr *r = m->ref[0], *ref;
                int which;
                Part *p = NEW(g->arena, Part);
                *p = (Part){.factor = f, .scatter = true, .loops = m->loops, .value = m->coefficient};
                if (r->kind == EX_CALL && r->fn == FN_log && simplex) { which = 0; ref = r->args[0]; }
                else if (r->kind == EX_CALL && r->fn == FN_log_determinant && !simplex) { which = 0; ref = r->args[0]; }
                else if (r->kind == EX_AT && !simplex) { which = 1; inverse = true; ref = r->args[0]->args[0]; }
                else if (r->kind == EX_REF && !simplex) { which = 1; direct = true; ref = r; }
                else { c->because = arena_printf(g->arena, "`%s` (line %d) is not among a family's statistics", ex_quote(g->arena, r), span_line(f->span)); return c; }
                p->which = which;
                int n = 0;
                for (int k = 0; k < ref->nargs; k++) p->target[n++] = ref->args[k];
                if (r->kind == EX_AT) for (int k = 1; k < r->nargs; k++) p->target[n++] = r->args[k];
                Loops own = m->loops;
                p->loops = (Loops){.guard = f->plates.guard};
                for (int k = 0; k < f->plates.n; k++) p->loops.index[p->loops.n++] = f->plates.index[k];
                for (int k = 0; k < own.n; k++) p->loops.index[p->loops.n++] = own.index[k];
                if (pass == 1) append(&c->natural, p);
            }
        }
    if (inverse && direct) { c->because = "both it and its inverse enter"; return c; }
    const char *name = simplex ? "dirichlet" : inverse ? "inv_wishart" : "wishart";
    c->family = library_find(g->stdlib, name, true);
    c->nnatural = simplex ? 1 : 2;
    if (v->constraint == CONSTRAINT_CORRELATION || v->constraint == CONSTRAINT_CHOLESKY_CORR || v->constraint == CONSTRAINT_CHOLESKY_COV) c->family = NULL;
    return c;
}

// ---- elements that exist ----

// Elements of v that exist: those that a `~` statement names, also one whose place an augmentation took. NULL: all.
Expr *var_domain(Graph *g, const Var *v, Index *const *element)
{
    Expr *any = NULL;
    if (v->parts) return NULL;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!f->value || f->value->kind != EX_REF || f->value->var != v) continue;
        Expr *here = NULL;
        Expr *condition = f->plates.guard;
        bool whole = true;
        for (int k = 0; k < f->value->nargs; k++) {
            Expr *s = f->value->args[k], *key = ex_index(element[k]);
            const Index *plate = NULL;
            Expr *ahead = ex_num(0);             // j + 1 over j in 1:J - 1
            for (int i = 0; i < f->plates.n && !plate; i++) {
                ahead = ex_sub(s, ex_index(f->plates.index[i]));
                if (ahead->kind == EX_NUM) plate = f->plates.index[i];
            }
            bool told = false;                   // by an earlier subscript: a[j, j + 1]
            for (int i = 0; i < k && plate; i++) {
                if (!ex_mentions_index(f->value->args[i], plate)) continue;
                told = ex_sub(f->value->args[i], ex_index((Index *)plate))->kind == EX_NUM;
                plate = NULL;
            }
            if (!plate) {
                bool varies = false;
                for (int i = 0; i < f->plates.n; i++) varies |= ex_mentions_index(s, f->plates.index[i]);
                if (varies && !told) return element_exists(g, (Var *)v, element);     // a gather
                here = ex_both(here, ex_call2("==", s, key));
                whole = false;
                continue;
            }
            Expr *tests[2] = {NULL, NULL};
            Expr *first = ex_add2(plate->lo, ahead), *last = ex_add2(plate->hi, ahead);
            if (!ex_is_num(first, 1)) tests[0] = ex_call2("<=", first, s);
            if (last != v->dim[k]) tests[1] = ex_call2("<=", s, last);
            for (int i = 0; i < 2; i++)
                if (tests[i]) { here = ex_both(here, tests[i]); whole = false; }
        }
        if (condition) { here = ex_both(here, condition); whole = false; }
        if (whole) return NULL;
        for (int k = 0; k < f->value->nargs; k++)
            for (int i = 0; i < f->plates.n; i++) {
                Expr *s = f->value->args[k], *index = ex_index(f->plates.index[i]), *ahead = ex_sub(s, index);
                if (ahead->kind == EX_NUM) here = ex_replace(ex_replace(here, s, ex_index(element[k])), index, ex_sub(ex_index(element[k]), ahead));
            }
        for (int i = 0; i < f->plates.n; i++)
            if (ex_mentions_index(here, f->plates.index[i])) return element_exists(g, (Var *)v, element);    // slices of another loop: as a gather
        any = ex_either(any, here);              // once, of a statement and what an augmentation made of it
    }
    return condition_left(any);
}

// Latents of rows that a missing value lets in or leaves out are there in some draws, and have the number of the last of these in the others.
static bool test_may_change(const Var *v, void *with) { (void)with; return (v->kind != VAR_DATA && v->kind != VAR_LET) || v->response; }

bool find_domains(Graph *g)
{
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        const bool drawn = v->kind == VAR_PARAMETER || v->kind == VAR_LATENT;
        v->partial |= (var_unknown(v) && v->sites) || ((v->kind == VAR_SERIES || v->kind == VAR_DERIVED || v->kind == VAR_PREDICTED) && v->holes);
        if (!(drawn || v->kind == VAR_AUXILIARY || (v->kind == VAR_DATA && v->response)) || (v->rank == 0 && v->coverage && !v->holes)) continue;
        var_element(g, v, v->own);
        v->exists = var_domain(g, v, v->own);
        v->partial |= v->exists && (drawn || v->rank == 0 || v->holes || (v->kind == VAR_AUXILIARY && !ex_any_var(v->exists, test_may_change, NULL)));
    }
    return true;
}

void domains_print(FILE *out, const Graph *g)
{
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        if (!v->exists) continue;
        fprintf(out, "%s%s", v->name, v->rank ? "[" : "");
        for (int k = 0; k < v->rank; k++) fprintf(out, "%s%s", k ? ", " : "", v->own[k]->name);
        fprintf(out, "%s where ", v->rank ? "]" : "");
        ex_print(out, v->exists);
        fputc('\n', out);
    }
}

Expr *exists_at(const Var *v, Index *const *element)
{
    Expr *e = v->exists;
    for (int k = 0; e && k < v->rank; k++) e = ex_replace_index(e, v->own[k], ex_index(element[k]));
    return e;
}

// The statistics of a family, of the element u: what its natural parameters multiply.
void find_statistics(Graph *g, Conditional *c)
{
    int k = 0;
    if (!c->family || c->array || c->nnatural == 0) return;
    for (const Natural *n = c->family->natural; n; n = n->next)
        c->statistic[k++] = n->statistic->kind == AST_BINARY && n->statistic->op == OP_POW && c->family->power
            ? ex_pow(c->u, n->statistic->kid[1]->kind == AST_UNARY ? -c->power : c->power)
            : elaborate_rule(g, n->statistic, 1, (Decl *[]){c->family->value}, (Expr *[]){c->u});
}

// ---- blocks ----

// A choice that multiplies the term, with 0 for one side: the first, or that by this condition and with 0 for the same side.
static Expr *vanishing(Expr *term, const Expr *like)
{
    Expr *const *factor = term->kind == EX_MUL ? term->args : &term;
    const int n = term->kind == EX_MUL ? term->nargs : 1;
    for (int i = 0; i < n; i++) {
        Expr *f = factor[i]->kind == EX_POW && factor[i]->number > 0 ? factor[i]->args[0] : factor[i];
        if (f->kind != EX_CALL || f->fn != FN_if_else || !(ex_is_num(f->args[1], 0) || ex_is_num(f->args[2], 0))) continue;
        if (!like || (f->args[0] == like->args[0] && ex_is_num(f->args[1], 0) == ex_is_num(like->args[1], 0))) return f;
    }
    return NULL;
}

void take_chosen(BlockTerm *b)
{
    bool named = false;
    for (int r = 0; r < b->degree; r++)
        for (int k = 0; k < b->ref[r]->nargs; k++) named |= b->ref[r]->args[k]->kind != EX_INDEX && b->ref[r]->args[k]->kind != EX_NUM;
    while (named) {
        Expr *const *term = b->coefficient->kind == EX_ADD ? b->coefficient->args : &b->coefficient;
        const int n = b->coefficient->kind == EX_ADD ? b->coefficient->nargs : 1;
        Expr *c = vanishing(term[0], NULL), *rest = ex_num(0);
        for (int i = 0; i < n && c; i++) {
            Expr *of = vanishing(term[i], c);
            if (!of) return;
            rest = ex_add2(rest, ex_replace(term[i], of, of->args[ex_is_num(of->args[1], 0) ? 2 : 1]));
        }
        if (!c) return;
        b->loops.guard = ex_both(b->loops.guard, ex_is_num(c->args[1], 0) ? ex_call1("!", c->args[0]) : c->args[0]);
        b->coefficient = rest;
    }
}

bool block_terms(Graph *g, Var *const *block, int nblock, BlockTerm **out, const char **because)
{
    const Reading enters = factors_of_block(g, block, nblock);
    return block_terms_given(g, block, nblock, &enters, out, because);
}

bool block_terms_given(Graph *g, Var *const *block, int nblock, const Reading *enters, BlockTerm **out, const char **because)
{
    Unknowns in = {block, nblock, false};
    *out = NULL;
    BlockTerm **last = out;
    const int sums = block_sums(block, nblock);
    for (int q = 0; q < enters->n; q++) {
        Factor *f = enters->factor[q];
        bool any = false;
        for (int i = 0; i < nblock && !any; i++) any = factor_mentions(f, block[i]);
        if (!factor_counts_at(f, sums, false) || !any) continue;
        for (int i = 0; i < nblock; i++) {
            const Var *series = through_series(f->log_density, block[i]);
            if (!series) continue;
            *because = arena_printf(g->arena, series->sites->ode ? "`%s` enters the differential equation of `%s` (line %d)" : "`%s` enters the recursion of `%s` (line %d)", block[i]->name, series->name, span_line(series->span));
            return false;
        }
        Terms t = polynomial(g->arena, f->log_density, &in, 2);
        if (t.failed) {
            *because = terms_because(g->arena, &t, "is not quadratic", f->span);
            return false;
        }
        for (int i = 0; i < t.n; i++) {
            Term *m = &t.term[i];
            if (m->degree == 0) continue;
            BlockTerm *b = NEW(g->arena, BlockTerm);
            *b = (BlockTerm){.degree = m->degree, .ref = {m->ref[0], m->ref[1]}, .coefficient = m->coefficient, .span = f->span, .factor = f,
                             .loops = {.guard = f->plates.guard}};
            for (int k = 0; k < m->degree; k++)
                if (m->ref[k]->nargs < m->ref[k]->var->rank) { *because = "a routine needs it whole"; return false; }
            for (int k = 0; k < f->plates.n; k++) b->loops.index[b->loops.n++] = f->plates.index[k];
            for (int k = 0; k < m->loops.n; k++) b->loops.index[b->loops.n++] = m->loops.index[k];
            take_chosen(b);
            *last = b;
            last = &b->next;
        }
    }
    return true;
}

// The arguments of the law that the family of a scalar has.
bool arguments_of_law(Graph *g, const Conditional *c, Expr *const *natural, Expr **args)
{
    const Distribution *f = c->family;
    Names names = {0};
    if (!f || !f->law || c->array) return false;
    for (const Natural *n = f->natural; n; n = n->next) names_add(g, &names, n->name, *natural++);
    if (f->power) names_add(g, &names, f->power, ex_num(c->power));
    for (int i = 0; i < c->nbase; i++) names_add(g, &names, f->base->kid[i]->name, c->base_args[i]);
    for (const Natural *n = f->law->parameter; n; n = n->next) names_add(g, &names, n->name, elaborate(g, n->statistic, names_bind(g, NULL, n->statistic, &names), 0, NULL));
    for (int i = 0; i < f->law->nargs; i++) args[i] = elaborate(g, f->law->args[i], names_bind(g, NULL, f->law->args[i], &names), 0, NULL);
    return true;
}
