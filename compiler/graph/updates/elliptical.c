// elliptical.c -- a vector with a joint normal prior and any likelihood, drawn whole by elliptical slice sampling.
//
//   before   f ~ multi_normal(mu, K)     y[i] ~ poisson_log(f[i])
//   after    elliptical f, whole: normals from the statement of f, about mu; density: the factors of y
//
// With e a draw from the prior and f the current value, mu + (f - mu) cos(a) + (e - mu) sin(a) has the prior's law for each angle a. The
// angle is drawn by a slice of the other factors' density (Murray, Adams and MacKay 2010). No width is adapted, and a trial evaluates the
// likelihood once, whatever the prior's matrix costs.
//
// The statement that gives the ellipse:
// - v is real, without bounds or constraint. The statement's left side is all of v[i, ...], a vector for each instance of its plates, which
//   are subscripts over whole dimensions, without a condition. So each vector has one normal law of its own, of full rank, given the rest.
// - Its log density is a polynomial of degree 2 in v, and its arguments do not read v: the law is normal, whatever its name.
// - The library draws from it and has its mean.
// - It is not truncated, nor replaced by an augmentation.
// All other factors of v are the density along the ellipse, a second statement of v among them. A recursive definition that v enters is not
// computed again at each angle: such a v is drawn by slices.
//
// Vectors v[i, ...] are drawn one after the other. If each factor has one of them, where i is its plate or a number from data, v[g[m],
// ...], a draw evaluates the factors of that vector alone.
#include <math.h>
#include "elliptical.h"
#include "../conditional.h"
#include "../terms/var.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/elaborate.h"
#include "../algebra/polynomial.h"
#include "../algebra/conditionals.h"

static bool whole_range(const Index *i, const Expr *extent) { return ex_is_num(i->lo, 1) && i->hi == extent; }

// Whether a value names all vectors v[i, ...] of plates i, each once.
static bool names_all(const Factor *f, const Var *v)
{
    const Expr *e = f->value;
    if (!e || e->kind != EX_REF || e->var != v || e->nargs != v->rank - 1 || f->plates.n != e->nargs || f->plates.guard) return false;
    for (int k = 0; k < e->nargs; k++) {
        if (e->args[k]->kind != EX_INDEX || !whole_range(e->args[k]->index, v->dim[k])) return false;
        for (int j = 0; j < k; j++)
            if (e->args[j] == e->args[k]) return false;
    }
    return true;
}

static bool is_prior(Graph *g, const Factor *f, Var *v)
{
    if (!f->dist || !f->dist->sample || !f->dist->mean || f->dist->discrete || f->truncated || f->replaced || f->original ||
        !names_all(f, v))
        return false;
    for (int i = 0; i < f->nargs; i++)
        if (ex_reads(f->args[i], v)) return false;
    const Terms t = polynomial(g->arena, f->log_density, &(Unknowns){&v, 1, false}, 2);
    bool square = false;
    for (int i = 0; i < t.n; i++) square |= t.term[i].degree == 2;
    return square && !t.failed;
}

const Factor *joint_prior(Graph *g, Var *v, bool collapsed)
{
    const Reading enters = factors_of(g, v);
    for (int q = 0; q < enters.n; q++)
        if (factor_counts(enters.factor[q], v, collapsed) && factor_mentions(enters.factor[q], v) && is_prior(g, enters.factor[q], v))
            return enters.factor[q];
    return NULL;
}

// The factor for the vectors of the element that is studied: its plates are subscripts of v.
static Expr *at_element(const Factor *f, const Conditional *c, Expr *e)
{
    for (int k = 0; k < f->value->nargs; k++) e = ex_replace_index(e, f->value->args[k]->index, ex_index(c->element[k]));
    return e;
}

// ---- which vector a factor holds ----

typedef struct Holding {
    const Var *v;
    Index *const *index;
    int n;
    Expr *at[MAX_RANK];
    bool failed, seen;
} Holding;

static bool is_plate(const Holding *h, const Expr *e)
{
    bool found = false;
    for (int j = 0; j < h->n; j++) found |= e->kind == EX_INDEX && e->index == h->index[j];
    return found;
}

// The number of a vector that data give for each instance: g[i], i a plate.
static bool is_looked_up(const Holding *h, const Expr *e)
{
    bool plates = e->kind == EX_REF && e->nargs > 0 && e->var->kind == VAR_DATA && !e->var->response;
    for (int j = 0; j < e->nargs && plates; j++) plates = is_plate(h, e->args[j]);
    return plates;
}

static void look_at_reference(Expr *e, void *with)
{
    Holding *h = with;
    for (int k = 0; k < h->v->rank - 1; k++) {
        Expr *at = k < e->nargs ? e->args[k] : NULL;
        h->failed |=
            !at || (h->seen && h->at[k] != at) || !(is_looked_up(h, at) || (is_plate(h, at) && whole_range(at->index, h->v->dim[k])));
        h->at[k] = at;
        for (int j = 0; j < k && !h->failed; j++) h->failed |= h->at[j] == at;
    }
    h->seen = true;
}

// The part as a function of one vector: its plates that pick the vector go, and of instances that look one up those that name it are left.
// False: it holds several.
static bool of_one_vector(const Conditional *c, Part *p)
{
    const int nbatch = c->var->rank - 1;
    Holding h = {.v = c->var, .index = p->loops.index, .n = p->loops.n};
    ex_references(p->value, c->var, look_at_reference, &h);
    if (h.failed || !h.seen || (p->loops.guard && ex_reads(p->loops.guard, c->var))) return false;
    Loops left = {.guard = p->loops.guard};
    for (int i = 0; i < p->loops.n; i++) {
        bool picks = false;
        for (int k = 0; k < nbatch; k++) picks |= h.at[k]->kind == EX_INDEX && p->loops.index[i] == h.at[k]->index;
        for (int k = 0; k < nbatch && picks; k++)
            if (h.at[k]->kind == EX_REF && ex_mentions_index(h.at[k], p->loops.index[i])) return false;
        if (!picks) left.index[left.n++] = p->loops.index[i];
    }
    for (int i = 0; i < left.n; i++)  // ranges that depend on the vector's own number would need it in their place
        for (int k = 0; k < nbatch; k++)
            if (h.at[k]->kind == EX_INDEX &&
                (ex_mentions_index(left.index[i]->lo, h.at[k]->index) || ex_mentions_index(left.index[i]->hi, h.at[k]->index)))
                return false;
    for (int k = 0; k < nbatch; k++) {
        Expr *own = ex_index(c->element[k]);
        p->value = ex_replace(p->value, h.at[k], own);
        if (h.at[k]->kind == EX_REF) left.guard = ex_both(left.guard, ex_call2("==", h.at[k], own));
        else if (left.guard) left.guard = ex_replace(left.guard, h.at[k], own);
    }
    p->loops = left;
    return true;
}

// ---- the update ----

// A factored matrix of data alone is a let: computed once.
static Expr *computed_once(Graph *g, const Var *v, Expr *matrix)
{
    if (!ex_data_only(matrix)) return matrix;
    Var *l = var_unique(g, arena_printf(g->arena, "cholesky_%s", v->name), VAR_LET);
    l->span = v->span;
    l->known.unsure = true;
    Site *t = l->sites = NEW(g->arena, Site);
    *t = (Site){.span = v->span, .var = l, .value = NULL};
    for (int k = 0; k < 2; k++) {
        l->dim[l->rank++] = ex_dim(matrix, 0);
        Index *i = index_new(intern(k ? "j" : "i"), ex_num(1), ex_dim(matrix, 0));
        t->plates.index[t->plates.n++] = i;
        t->subscript[t->n++] = ex_index(i);
    }
    t->value = ex_at(matrix, 2, t->subscript);
    return ex_ref(l, 0, NULL);
}

Ellipse *find_ellipse(Graph *g, Var *v, bool collapsed, const char **because)
{
    const char *why = v->discrete || v->base != BASE_REAL ? "its values are integers"
                      : v->kind != VAR_PARAMETER && v->kind != VAR_LATENT? "it is no parameter"
                      : v->constraint != CONSTRAINT_NONE  ? "its elements are constrained together"
                      : isfinite(v->lower_number) || isfinite(v->upper_number) || v->lower || v->upper ? "it has bounds"
                      : v->rank == 0                                                                   ? "it is one number, no vector"
                                                                                                       : NULL;
    const Factor *prior = why ? NULL : joint_prior(g, v, collapsed);
    if (!why && !prior) why = "no statement gives all of each vector a joint normal law (multi_normal)";
    Conditional *c = why ? NULL : conditional_whole(g, v, collapsed);
    if (c && c->recursion) why = arena_printf(g->arena, "it enters the recursive definition of `%s`", c->recursion->name);
    *because = why;
    if (why) return NULL;
    Part *rest = NULL, **last = &rest;
    for (Part *p = c->density; p; p = p->next) {
        if (p->factor == prior) continue;
        *last = arena_copy(g->arena, p, sizeof *p);
        last = &(*last)->next;
        *last = NULL;
    }
    bool apart = v->rank > 1;
    for (const Part *p = rest; p && apart; p = p->next) {
        Part tried = *p;
        apart = of_one_vector(c, &tried);
    }
    for (Part *p = rest; p && apart; p = p->next) of_one_vector(c, p);
    c->density = rest;
    c->nbatch = 0;
    Ellipse *e = NEW(g->arena, Ellipse);
    e->prior = prior;
    e->conditional = c;
    e->routine = prior->dist->sample->name;
    const Ast *call = prior->dist->sample;
    for (int i = 0; i < call->nkids && i < MAX_RANK; i++)
        e->arg[e->nargs++] = at_element(prior, c, elaborate_rule(g, call->kid[i], prior->dist->nparams, prior->dist->params, prior->args));
    // the factor of the covariance is made once for all vectors that share it
    if (prior->dist->covariance_root && prior->dist->covariance_root->kind == AST_CALL) {
        e->routine = "sample_multi_normal_cholesky";
        e->arg[1] = computed_once(
            g, v,
            at_element(prior, c, elaborate_rule(g, prior->dist->covariance_root, prior->dist->nparams, prior->dist->params, prior->args)));
    }
    Expr *mean = elaborate_rule(g, prior->dist->mean, prior->dist->nparams, prior->dist->params, prior->args);
    e->mean = ex_at(at_element(prior, c, mean), 1, (Expr *[]){ex_index(c->element[v->rank - 1])});
    return e;
}
