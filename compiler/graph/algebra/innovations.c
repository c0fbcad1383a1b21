// innovations.c -- a recursive definition whose elements each have an innovation of their own is a chain of normals.
//
//   before   x[1] = a;  x[t + 1] = x[t] + r[t]      r[t] ~ normal(m, s)      y[t] ~ normal(x[t], q)
//   after    (r, a, m) drawn together: x as a band with border m, in terms of x; then r[t] = x[t + 1] - x[t], a = x[1]
//
// Let x[k] = g(x before k, other unknowns) + c r[k], c not 0. Then the map from (r, a) to x is one to one. Its Jacobian is the product of
// all c, a constant given c. So a draw of x from the density of the model with r replaced by (x[k] - g)/c is a draw of (r, a). The unknowns
// remain those of the model: starts, draws, modes and NUTS do not change.
//
// Conditions, each tested here: the series is one variable, computed forward, by statements without a condition. Statements and loops cover
// all of its elements. Each statement is linear in one element of an unknown without bounds, whose subscripts are those of the statement's
// loops plus numbers: so each element of the unknown occurs in one element of the series. All of them have a distribution. The coefficient
// is a number or of known sign, not 0, and contains neither the series nor unknowns that are drawn with it. The rest contains no innovation
// (a moving average does). No other series reads these unknowns. Finally the terms must be a band (band.c).
#include <math.h>
#include <string.h>
#include "innovations.h"
#include "../terms/var.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/existence.h"
#include "polynomial.h"

typedef struct Change {  // one statement
    const Site *site;
    Expr *ref;                 // the innovation
    Expr *coefficient, *rest;  // the element of the series is rest + coefficient*ref
} Change;

struct Innovations {
    Var *x;
    int n, nvars;
    Change *change;
    Var **var;  // unknowns of which they are elements
};

// ---- which statements cover what ----

// e = index + shift, of a plate of the statement; -1: it is a number; -2: neither
static int plate_of(const Loops *p, Expr *e, Expr **shift)
{
    if (e->kind == EX_NUM) return -1;
    for (int i = 0; i < p->n; i++) {
        *shift = ex_sub(e, ex_index(p->index[i]));
        if ((*shift)->kind == EX_NUM) return i;
    }
    return -2;
}

typedef struct Cover {
    Expr *lo, *hi;
} Cover;

static bool covers(const Cover *c, int n, Expr *dim)
{
    Expr *next = ex_num(1);
    bool used[64] = {false};
    if (n > 64) return false;
    for (int k = 0; k < n; k++) {
        int at = -1;
        for (int i = 0; i < n && at < 0; i++)
            if (!used[i] && c[i].lo == next) at = i;
        if (at < 0) return false;
        used[at] = true;
        next = ex_add2(c[at].hi, ex_num(1));
    }
    return ex_sub(next, ex_num(1)) == dim;
}

// The subscripts of `ref` in the statement: each plate stands in one; pieces of each dimension.
static bool add_cover(const Site *t, const Expr *const *args, int rank, Cover (*pieces)[64], int k)
{
    bool used[MAX_PLATES] = {false};
    int n = 0;
    for (int d = 0; d < rank; d++) {
        Expr *shift = NULL, *e = (Expr *)args[d];
        const int p = plate_of(&t->plates, e, &shift);
        if (p == -2 || (p >= 0 && used[p])) return false;
        pieces[d][k] = p < 0 ? (Cover){e, e} : (Cover){ex_add2(t->plates.index[p]->lo, shift), ex_add2(t->plates.index[p]->hi, shift)};
        if (p < 0) continue;
        used[p] = true;
        n++;
    }
    return n == t->plates.n;
}

// All pieces of a dimension are the whole of it, but for one dimension, which they cover one after the other.
static bool covered(const Var *v, Cover (*pieces)[64], int n)
{
    int along = -1;
    for (int d = 0; d < v->rank; d++) {
        bool whole = true;
        for (int k = 0; k < n; k++) whole &= ex_is_num(pieces[d][k].lo, 1) && pieces[d][k].hi == v->dim[d];
        if (whole) continue;
        if (along >= 0 || !covers(pieces[d], n, v->dim[d])) return false;
        along = d;
    }
    return n == 1 || along >= 0;
}

// ---- which unknowns they are ----

static bool may_be_innovation(Graph *g, const Var *v)
{
    if (!var_unknown(v) || v->kind == VAR_AUXILIARY || v->discrete || v->constraint != CONSTRAINT_NONE || v->part_of || v->parts)
        return false;
    return !isfinite(v->lower_number) && !isfinite(v->upper_number) && !request_of(g, v) && has_all_elements(g, v);
}

typedef struct One {
    Expr *ref;
    int n;
} One;

static void take_ref(Expr *e, void *with)
{
    One *o = with;
    o->ref = e;
    o->n++;
}

// The innovation of a statement.
static bool find_change(Graph *g, const Var *x, const Site *t, Change *out)
{
    if (!t->value || t->dist || t->ode || t->adds || t->again || t->when || t->plates.guard) return false;
    for (int i = 0, n = g->nvars; i < n * (MAX_RANK + 1); i++) {  // those with more subscripts first: z[1] before a scalar mean
        Var *v = g->vars[i % n];
        One one = {0};
        if (v->rank != MAX_RANK - i / n || v == x || !var_unknown(v) || !ex_mentions(t->value, v) || !may_be_innovation(g, v)) continue;
        ex_references(t->value, v, take_ref, &one);
        if (one.n != 1 || one.ref->nargs != v->rank || v->rank != t->plates.n) {
            bool numbers = one.n == 1 && one.ref->nargs == v->rank;  // z[1] in a statement about x[1]
            for (int d = 0; numbers && d < v->rank; d++) {
                Expr *shift;
                numbers = plate_of(&t->plates, one.ref->args[d], &shift) != -2;
            }
            if (!numbers || v->rank < t->plates.n) continue;
        }
        Var *const in[] = {v};
        const Terms p = polynomial(g->arena, t->value, &(Unknowns){in, 1, false}, 1);
        int of = -1;
        bool good = !p.failed;
        for (int k = 0; k < p.n && good; k++) {
            if (p.term[k].degree == 0) continue;
            good = of < 0 && p.term[k].loops.n == 0;
            of = k;
        }
        if (!good || of < 0) continue;
        Expr *c = p.term[of].coefficient;
        if (ex_mentions(c, x) || ex_mentions(c, v) || !(c->kind == EX_NUM ? c->number != 0 : ex_above_zero(c) || ex_above_zero(ex_neg(c))))
            continue;
        *out = (Change){t, one.ref, c, ex_sub(t->value, ex_mul2(c, one.ref))};
        if (ex_mentions(out->rest, v)) continue;
        return true;
    }
    return false;
}

Innovations *innovations_of(Graph *g, Var *x)
{
    Innovations *in = NEW(g->arena, Innovations);
    in->x = x;
    Cover pieces[MAX_RANK][64];
    for (const Site *t = x->sites; t; t = t->next) in->n++;
    if (in->n == 0 || in->n > 64) return NULL;
    in->change = NEW_N(g->arena, Change, in->n);
    in->var = NEW_N(g->arena, Var *, in->n);
    int k = 0;
    for (const Site *t = x->sites; t; t = t->next, k++) {
        if (t->n != x->rank || !find_change(g, x, t, &in->change[k]) ||
            !add_cover(t, (const Expr *const *)t->subscript, x->rank, pieces, k))
            return NULL;
        Var *v = in->change[k].ref->var;
        bool known = false;
        for (int i = 0; i < in->nvars; i++) known |= in->var[i] == v;
        if (!known) in->var[in->nvars++] = v;
    }
    if (!covered(x, pieces, in->n)) return NULL;
    for (int i = 0; i < in->nvars; i++) {
        int n = 0;
        for (int m = 0; m < in->n; m++) {
            const Change *c = &in->change[m];
            if (c->ref->var != in->var[i]) continue;
            if (!add_cover(c->site, (const Expr *const *)c->ref->args, c->ref->nargs, pieces, n++)) return NULL;
        }
        if (!covered(in->var[i], pieces, n)) return NULL;
        for (int m = 0; m < in->n; m++)
            if (ex_mentions(in->change[m].rest, in->var[i]) || ex_mentions(in->change[m].coefficient, in->var[i])) return NULL;
    }
    return in;
}

Innovations *find_innovations(Graph *g, const Series *s)
{
    if (s->n != 1 || s->backward || s->var[0]->kind != VAR_SERIES || s->var[0]->hidden) return NULL;
    Var *x = s->var[0];
    Innovations *in = innovations_of(g, x);
    if (!in) return NULL;
    for (const Series *other = g->series; other; other = other->next) {
        if (other == s || other->var[0]->kind != VAR_SERIES) continue;
        if (series_reads(other, x)) return NULL;
        for (int i = 0; i < in->nvars; i++)
            if (series_reads(other, in->var[i])) return NULL;
    }
    return in;
}

Var *const *innovation_vars(const Innovations *in, int *n)
{
    *n = in->nvars;
    return in->var;
}

Var *innovation_series(const Innovations *in) { return in->x; }

bool innovation_change(const Innovations *in, int k, Loops *loops, InnovationChange *out)
{
    if (k >= in->n) return false;
    const Change *c = &in->change[k];
    *loops = (Loops){.n = c->site->plates.n};
    for (int i = 0; i < c->site->plates.n; i++) loops->index[i] = c->site->plates.index[i];
    *out = (InnovationChange){c->site->span, ex_ref(in->x, in->x->rank, c->site->subscript), c->ref, c->coefficient, c->rest};
    return true;
}

bool innovation_at(const Innovations *in, int k, Loops *loops, Expr **ref, Expr **value)
{
    InnovationChange c;
    if (!innovation_change(in, k, loops, &c)) return false;
    *ref = c.ref;
    *value = ex_div(ex_sub(c.x, c.rest), c.coefficient);
    return true;
}

// ---- factors in terms of the series ----

// The statement that an element of an innovation belongs to. NULL: several, by the value of subscript *at.
static const Change *statement_of(const Innovations *in, const Expr *ref, int *at)
{
    const Change *only = NULL;
    int n = 0;
    for (int k = 0; k < in->n; k++) {
        const Change *c = &in->change[k];
        if (c->ref->var != ref->var) continue;
        n++;
        only = c;
    }
    if (n == 1) return only;
    *at = -1;
    for (int d = 0; d < ref->nargs; d++)
        for (int k = 0; k < in->n; k++)
            if (in->change[k].ref->var == ref->var && in->change[k].ref->args[d]->kind == EX_NUM) *at = d;
    if (*at < 0 || ref->args[*at]->kind != EX_NUM) return NULL;
    double most = 0;
    const Change *range = NULL;
    for (int k = 0; k < in->n; k++) {
        const Change *c = &in->change[k];
        if (c->ref->var != ref->var) continue;
        const Expr *e = c->ref->args[*at];
        if (e == ref->args[*at]) return c;
        if (e->kind == EX_NUM) most = e->number > most ? e->number : most;
        else if (range) return NULL;
        else range = c;
    }
    return ref->args[*at]->number > most ? range : NULL;
}

static Expr *by_series(const Innovations *in, const Change *c, const Expr *ref)
{
    const Site *t = c->site;
    Expr *value = ex_div(ex_sub(ex_ref(in->x, in->x->rank, t->subscript), c->rest), c->coefficient);
    Index *own[MAX_PLATES];
    for (int i = 0; i < t->plates.n; i++) {  // the factor may have the same indices
        own[i] = index_new(t->plates.index[i]->name, t->plates.index[i]->lo, t->plates.index[i]->hi);
        value = ex_replace_index(value, t->plates.index[i], ex_index(own[i]));
    }
    for (int d = 0; d < ref->nargs; d++) {
        Expr *shift = NULL;
        const int p = plate_of(&t->plates, c->ref->args[d], &shift);
        if (p >= 0) value = ex_replace_index(value, own[p], ex_sub(ref->args[d], shift));
    }
    return value;
}

typedef struct Rewriting {
    const Innovations *in;
    const Expr *undecided;
    int at;
} Rewriting;

static Expr *rewrite(Expr *e, void *with)
{
    Rewriting *r = with;
    if (e->kind != EX_REF) return NULL;
    bool mine = false;
    for (int i = 0; i < r->in->nvars; i++) mine |= r->in->var[i] == e->var;
    if (!mine) return NULL;
    int at = -1;
    const Change *c = e->nargs == e->var->rank ? statement_of(r->in, e, &at) : NULL;
    if (c) return by_series(r->in, c, e);
    if (!r->undecided) {
        r->undecided = e;
        r->at = at;
    }
    return NULL;
}

Expr *in_terms_of_innovated(const Innovations *in, Expr *e, bool *good)
{
    Rewriting r = {.in = in};
    e = ex_map(e, rewrite, &r);
    *good &= !r.undecided;
    return e;
}

// f as factors without innovations: one for each statement whose elements it has. false: it is not known which these are.
static bool in_terms_of_series(Graph *g, const Innovations *in, const Factor *f, Factor **list, int depth)
{
    Rewriting r = {.in = in};
    Expr *e = ex_map(f->log_density, rewrite, &r);
    if (!r.undecided) {
        Factor *own = arena_copy(g->arena, f, sizeof *f);
        own->log_density = e;
        own->next = NULL;
        while (*list) list = &(*list)->next;
        *list = own;
        return true;
    }
    if (r.at < 0 || depth > 3 || r.undecided->nargs != r.undecided->var->rank) return false;
    const Expr *s = r.undecided->args[r.at];
    int p = 0;
    while (p < f->plates.n && (s->kind != EX_INDEX || s->index != f->plates.index[p])) p++;
    if (p == f->plates.n) return false;
    Index *t = f->plates.index[p];
    if (!ex_is_num(t->lo, 1) || t->hi != r.undecided->var->dim[r.at]) return false;
    for (int i = 0; i < f->plates.n; i++)
        if (ex_mentions_index(f->plates.index[i]->lo, t) || ex_mentions_index(f->plates.index[i]->hi, t)) return false;
    for (int k = 0; k < in->n; k++) {
        const Change *c = &in->change[k];
        if (c->ref->var != r.undecided->var) continue;
        Factor part = *f;
        Expr *to = c->ref->args[r.at];
        if (to->kind == EX_NUM) {
            memmove(part.plates.index + p, part.plates.index + p + 1, sizeof *part.plates.index * (size_t)(f->plates.n - p - 1));
            part.plates.n--;
        } else {  // elements of this statement alone: subscripts of the series say which
            Expr *shift = ex_num(0);
            const int own = plate_of(&c->site->plates, to, &shift);
            Index *from = c->site->plates.index[own], *range = index_new(t->name, ex_add2(from->lo, shift), ex_add2(from->hi, shift));
            part.plates.index[p] = range;
            to = ex_index(range);
        }
        part.log_density = ex_replace_index(f->log_density, t, to);
        if (part.plates.guard) part.plates.guard = ex_replace_index(part.plates.guard, t, to);
        if (to->kind == EX_INDEX) {  // the only reference belongs to this statement
            One one = {0};
            ex_references(part.log_density, r.undecided->var, take_ref, &one);
            if (one.n != 1 || one.ref->args[r.at] != to) return false;
            part.log_density = ex_replace(part.log_density, one.ref, by_series(in, c, one.ref));
        }
        if (!in_terms_of_series(g, in, &part, list, depth + 1)) return false;
    }
    return true;
}

bool innovation_factors(Graph *g, const Innovations *in, const Factor *f, Factor **list)
{
    *list = NULL;
    return in_terms_of_series(g, in, f, list, 0);
}

bool innovation_coefficients_mention(const Innovations *in, const Var *v)
{
    for (int k = 0; k < in->n; k++)
        if (ex_mentions(in->change[k].coefficient, v)) return true;
    return false;
}

bool innovation_terms(Graph *g, const Innovations *in, Var *const *border, int nborder, BlockTerm **out)
{
    Var **drawn = NEW_N(g->arena, Var *, in->nvars + nborder + 1), **unknown = NEW_N(g->arena, Var *, nborder + 1);
    memcpy(drawn, in->var, sizeof *drawn * (size_t)in->nvars);
    unknown[0] = in->x;
    for (int i = 0; i < nborder; i++) drawn[in->nvars + i] = unknown[1 + i] = border[i];
    *out = NULL;
    BlockTerm **last = out;
    for (int i = 0; i < nborder; i++) {
        for (int k = 0; k < in->n; k++)
            if (ex_mentions(in->change[k].coefficient, border[i])) return false;
        for (const Series *s = g->series; s; s = s->next)
            if (s->var[0]->kind == VAR_SERIES && s->var[0] != in->x && series_reads(s, border[i])) return false;
    }
    const Unknowns of = {unknown, nborder + 1, false};
    const int sums = block_sums(drawn, in->nvars + nborder);
    const Reading enters = factors_of_block(g, drawn, in->nvars + nborder);
    for (int q = 0; q < enters.n; q++) {
        Factor *f = enters.factor[q], *list = NULL;
        bool any = false;
        for (int i = 0; i < in->nvars + nborder && !any; i++) any = factor_mentions(f, drawn[i]);
        if (!any || !factor_counts_at(f, sums, false)) continue;
        if (!in_terms_of_series(g, in, f, &list, 0)) return false;
        for (; list; list = list->next) {
            const Terms t = polynomial(g->arena, list->log_density, &of, 2);
            if (t.failed) return false;
            for (int i = 0; i < t.n; i++) {
                const Term *m = &t.term[i];
                if (m->degree == 0) continue;
                BlockTerm *b = NEW(g->arena, BlockTerm);
                *b = (BlockTerm){.degree = m->degree,
                                 .ref = {m->ref[0], m->ref[1]},
                                 .coefficient = m->coefficient,
                                 .span = f->span,
                                 .factor = f,
                                 .loops = {.guard = list->plates.guard}};
                for (int k = 0; k < m->degree; k++)
                    if (m->ref[k]->nargs < m->ref[k]->var->rank) return false;
                for (int k = 0; k < list->plates.n; k++) b->loops.index[b->loops.n++] = list->plates.index[k];
                for (int k = 0; k < m->loops.n; k++) b->loops.index[b->loops.n++] = m->loops.index[k];
                *last = b;
                last = &b->next;
            }
        }
    }
    return true;
}
