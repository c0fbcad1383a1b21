// pairs.c -- an unknown of few values and the coefficient that it switches on, multiplies or scales.
//
//   before   g[j] ~ bernoulli(q);  b[j] ~ normal(0, 1);  y[i] ~ normal(sum(j, X[i,j]*g[j]*b[j]), s)
//   after    at g[j] = 0: constant log1m(q), square -1/2
//            at g[j] = 1: constant log(q), square -1/2 - sum(i, X[i,j]^2)/(2 s^2), linear sum(i, X[i,j]*r[i])/s^2
//
// Drawn one given the other, they hardly change: a coefficient that is switched off is drawn from its prior, and is switched on only where
// that happens to fit; one that is drawn from a spike at zero keeps its indicator there. With the coefficient x integrated out, whose log
// density given the value m is c(m) + h(m) x - J(m) x^2/2,
//
//   P(m) proportional to exp(c(m) + h(m)^2/(2 J(m))) / sqrt(J(m))
//
// (Geweke 1996, Variable selection and model comparison in regression; George and McCulloch 1997). Then x given m is normal. Both are one
// draw from their joint conditional.
//
// Needs: augment done.     Gives: for an indicator the parts of c, h and J.
// Conditions: the indicator is an integer between two numbers, of few values. The coefficient is a real without bounds and of the same
// shape, of which all elements have a statement. A factor with both contains each once, at the same subscripts, and in the same sums. The
// log density is quadratic in the coefficient at each value, and some factor of degree 2 makes it proper at each value.
#include <math.h>
#include <string.h>
#include "pairs.h"
#include "../terms/var.h"
#include "../terms/supports.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/law.h"
#include "../model/existence.h"
#include "polynomial.h"
#include "conditionals.h"

// Removes the terms of constant[0] that are terms of all.
static void drop_common(Expr **constant, int n)
{
    const Expr *first = constant[0];
    for (int i = 0; i < (first->kind == EX_ADD ? first->nargs : 1); i++) {
        Expr *t = first->kind == EX_ADD ? first->args[i] : (Expr *)first;
        bool all = true;
        for (int m = 1; m < n && all; m++) {
            bool here = constant[m] == t;
            for (int k = 0; constant[m]->kind == EX_ADD && k < constant[m]->nargs; k++) here |= constant[m]->args[k] == t;
            all = here;
        }
        for (int m = 0; m < n && all; m++) constant[m] = ex_sub(constant[m], t);
    }
}

static void add(Graph *g, Pair *p, const Part *like, int which, Expr *value)
{
    if (ex_is_num(value, 0)) return;
    Part **last = &p->part;
    while (*last) last = &(*last)->next;
    *last = arena_copy(g->arena, like, sizeof *like);
    (*last)->next = NULL;
    (*last)->which = which;
    (*last)->value = value;
}

// The part at each value, as a polynomial in the coefficient.
static bool take_apart(Graph *g, Pair *p, const Part *q)
{
    Expr *at[MOST_OF_PAIR][3];
    Var *const unknown = p->coefficient->u->var;
    for (int m = 0; m < p->n; m++) {
        Expr *number = ex_num(p->first + m), *e = ex_replace(q->value, p->indicator->u, number);
        if (ex_mentions(e, p->indicator->u->var)) return false;
        for (int k = 0; k < 3; k++) at[m][k] = ex_num(0);
        const Terms t = polynomial(g->arena, e, &(Unknowns){&unknown, 1, false}, 2);
        if (t.failed) return false;
        for (int i = 0; i < t.n; i++) {
            if (t.term[i].loops.n || ex_mentions(t.term[i].coefficient, unknown)) return false;
            at[m][t.term[i].degree] = ex_add2(at[m][t.term[i].degree], t.term[i].coefficient);
        }
    }
    for (int k = 0; k < 3; k++) {
        Expr *value[MOST_OF_PAIR] = {at[0][k]};
        bool same = true;
        for (int m = 0; m < p->n; m++) {
            value[m] = at[m][k];
            same &= value[m] == value[0];
        }
        if (k == 0) drop_common(value, p->n);
        if (same && k > 0) add(g, p, q, pair_part(-1, k), value[0]);
        for (int m = 0; m < p->n && !same; m++) add(g, p, q, pair_part(m, k), value[m]);
    }
    return true;
}

static bool meet(Graph *g, const Var *z, const Var *b)
{
    const Reading of = factors_of(g, z);
    for (int q = 0; q < of.n; q++)
        if (factor_counts(of.factor[q], z, false) && ex_mentions(of.factor[q]->log_density, z) && ex_mentions(of.factor[q]->log_density, b))
            return true;
    return false;
}

static bool is_coefficient(Graph *g, const Var *z, const Var *b)
{
    if ((b->kind != VAR_PARAMETER && b->kind != VAR_LATENT) || b->discrete || b->base != BASE_REAL || b->constraint != CONSTRAINT_NONE ||
        b->parts)
        return false;
    if (isfinite(b->lower_number) || isfinite(b->upper_number) || b->lower || b->upper || b->rank != z->rank ||
        b->summing.sums != z->summing.sums)
        return false;
    for (int k = 0; k < b->rank; k++)
        if (b->dim[k] != z->dim[k]) return false;
    return meet(g, z, b) && has_all_elements(g, b);
}

const Pair *find_pair(Graph *g, Var *z)
{
    const Expr *lower = end_of_summed(z, 0), *upper = end_of_summed(z, 1);
    if (!z->discrete || z->base != BASE_INT || z->constraint != CONSTRAINT_NONE || (z->kind != VAR_PARAMETER && z->kind != VAR_LATENT) ||
        z->summing.messages || z->summing.summed)
        return NULL;
    if (!lower || !upper || lower->kind != EX_NUM || upper->kind != EX_NUM || !(upper->number > lower->number) ||
        upper->number - lower->number >= MOST_OF_PAIR)
        return NULL;
    for (int i = 0; i < g->nvars; i++) {
        Var *b = g->vars[i];
        if (!is_coefficient(g, z, b)) continue;
        Pair *p = NEW(g->arena, Pair);
        Conditional *ofz = NEW(g->arena, Conditional), *ofb = NEW(g->arena, Conditional);
        *p = (Pair){.indicator = ofz, .coefficient = ofb, .first = (int)lower->number, .n = (int)(upper->number - lower->number) + 1};
        Var *const of[] = {z, b};
        for (int k = 0; k < 2; k++) {
            Conditional *c = k ? ofb : ofz;
            Var *star = var_new(g, of[k]->name, VAR_ELEMENT);
            star->lower_number = of[k]->lower_number;
            star->upper_number = of[k]->upper_number;
            star->base = of[k]->base;
            star->discrete = of[k]->discrete;
            c->var = of[k];
            c->u = ex_ref(star, 0, NULL);
        }
        ofz->current = var_element(g, z, ofz->element);
        memcpy(ofb->element, ofz->element, sizeof ofz->element);
        ofb->current = ex_ref(b, b->rank, ofz->current->args);
        ofz->with = ofb;
        ofb->nbatch = b->rank;
        ofb->family = library_family(g->stdlib, intern("normal"));
        bool ok = ofb->family != NULL, proper = true;
        const Part *parts = ok ? joint_density(g, ofz, ofb) : NULL;
        ok &= parts != NULL;
        for (const Part *q = parts; q && ok; q = q->next) ok = take_apart(g, p, q);
        for (int m = 0; m < p->n && ok; m++) {  // at each value something of degree 2
            bool any = false;
            for (const Part *q = p->part; q; q = q->next) any |= q->which == pair_part(m, 2) || q->which == pair_part(-1, 2);
            proper &= any;
        }
        if (ok && proper) return p;
    }
    return NULL;
}
