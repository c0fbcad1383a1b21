// build.c -- the model graph from the checked tree.
//
//   before   y ~ normal(X * beta, sigma);
//   after    normal(y[i] | sum(j in 1:p, X[i,j]*beta[j]), sigma) over i in 1:N, with its log density spelled out
//
// Needs: names and types checked.     Gives: variables, factors over plates, sites of what is computed.
// A vectorised statement is a statement over a plate. Densities are those of the stdlib, with arguments substituted.
#include <math.h>
#include <string.h>
#include "build.h"
#include "../terms/var.h"
#include "../terms/ranges.h"
#include "../terms/supports.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "elaborate.h"
#include "law.h"
#include "domains.h"
#include "density.h"
#include "ode.h"
#include "series.h"
#include "zeros.h"

typedef struct Scope {                   // where a statement stands: loops around it, conditions, names of the loops' indices
    int        n;
    Index     *index[MAX_PLATES];
    Expr      *guard;
    const Env *env;
} Scope;

// ---- variables ----

// What is known of definitions, by their order: whether they depend on unknowns. Each is looked at once, since chains of definitions may be long and
// may use each other many times. Within a circle an answer of data alone is sure for the first only: recursive definitions are asked afresh.
typedef enum { NOT_ASKED, BEING_ASKED, DATA_ALONE, UNKNOWNS } Dependence;

static bool definition_unknown(const Decl *d, Dependence *known);

// Does this expression of the tree depend on an unknown, directly or through definitions?
static bool ast_unknown(const Ast *e, Dependence *known)
{
    if (!e) return false;
    if (e->kind == AST_NAME && e->decl) {
        if (e->decl->kind == DECL_VARIABLE) return true;
        if (e->decl->kind == DECL_DEFINITION && definition_unknown(e->decl, known)) return true;
    }
    for (int i = 0; i < e->nkids; i++)
        if (ast_unknown(e->kid[i], known)) return true;
    return false;
}

// Does it read data of which values may be missing? A series made of them follows their values in the sweep.
static bool reads_observed(const Ast *e)
{
    if (!e) return false;
    bool yes = e->kind == AST_NAME && e->decl && e->decl->kind == DECL_DATA && e->decl->observed;
    for (int i = 0; i < e->nkids; i++) yes = yes || reads_observed(e->kid[i]);
    return yes;
}

// Integers made of integers element by element, as k[i] + 1: cheap enough to be made again wherever they are used, so that what they are made of
// may have missing values.
static bool made_again(const Ast *e)
{
    static const char *const cheap[] = {"abs", "floor", "ceil", "round", "int_step", "square", NULL};
    if (!e) return true;
    bool yes = e->kind != AST_REDUCE && e->kind != AST_ARRAY;
    if (e->kind == AST_CALL) {
        yes = e->nkids == 2 && (strcmp(e->name, "min") == 0 || strcmp(e->name, "max") == 0);
        for (int i = 0; cheap[i]; i++) yes |= strcmp(e->name, cheap[i]) == 0;
    }
    for (int i = 0; i < e->nkids; i++) yes = yes && made_again(e->kid[i]);
    return yes;
}

static bool definition_unknown(const Decl *d, Dependence *known)
{
    if (known[d->order] == NOT_ASKED) {
        known[d->order] = BEING_ASKED;
        bool unknown = d->block == BLOCK_PREDICT, again = d->type.base == BASE_INT, observed = false;
        for (const Stmt *s = d->sites; s && !unknown; s = s->next_site) {
            unknown = ast_unknown(s->rhs, known);
            again = again && made_again(s->rhs);
            observed = observed || reads_observed(s->rhs);
            for (const Stmt *c = s->outer; c; c = c->outer) {
                if (c->kind != STMT_IF) continue;
                unknown = unknown || ast_unknown(c->cond, known);
                again = again && made_again(c->cond);
                observed = observed || reads_observed(c->cond);
            }
        }
        unknown = unknown || (observed && (d->recursive || again));
        known[d->order] = unknown ? UNKNOWNS : d->recursive ? NOT_ASKED : DATA_ALONE;
        return unknown;
    }
    return known[d->order] == UNKNOWNS;
}

// An array has so many elements, which is not negative: K - 1 is not, and so K is not.
static void note_extent(Expr *e)
{
    e->extent = true;
    if (e->kind == EX_ADD && e->args[0]->kind == EX_NUM && e->args[0]->number < 0) ex_sub(e, e->args[0])->extent = true;
}

static void set_shape(Graph *g, Var *v, const Decl *d)
{
    v->rank = d->type.rank;
    for (int k = 0; k < v->rank; k++) {
        v->dim[k] = elaborate(g, d->type.dim[k], NULL, 0, NULL);
        if (v->kind == VAR_DATA || var_unknown(v)) note_extent(v->dim[k]);
    }
}

// Is a declared bound one number for all elements? Others are vectors, or stand in a loop.
static bool same_for_elements(const Decl *d, const Ast *bound) { return !d->in_loop && bound->type.rank == 0; }

// The declared bound of one element; a type in a loop, where env holds the indices, bounds what it declares.
static Expr *bound_at(Graph *g, const Var *v, int side, Expr *const *at, const Env *env)
{
    const Ast *bound = side ? v->decl->upper : v->decl->lower;
    return elaborate(g, bound, env, bound->type.rank, at + (v->rank - bound->type.rank));
}

static void declare_bounds(Graph *g, Var *v, const Decl *d)
{
    if (d->lower && same_for_elements(d, d->lower)) v->lower = elaborate(g, d->lower, NULL, 0, NULL);
    if (d->upper && same_for_elements(d, d->upper)) v->upper = elaborate(g, d->upper, NULL, 0, NULL);
    if (v->lower && v->lower->kind == EX_NUM) v->lower_number = v->lower->number;
    if (v->upper && v->upper->kind == EX_NUM) v->upper_number = v->upper->number;
    if (d->constraint == CONSTRAINT_SIMPLEX) { v->lower_number = 0; v->upper_number = 1; }
    if (d->constraint == CONSTRAINT_POSITIVE_ORDERED) v->lower_number = 0;
}

// The support of what a statement draws, in words: what two statements must have in common to give their variable one support.
static const char *support_of(const Graph *g, const Stmt *s)
{
    const Distribution *d = library_find(g->stdlib, s->dist, false);
    if (!d || d->discrete) return "";
    const bool ends = d->support == SUPPORT_INTERVAL || s->truncated || s->weights || (s->decl->in_loop && (s->decl->lower || s->decl->upper));
    return ends ? arena_printf(g->arena, "%s %p", support_table[d->support].word, (const void *)s) : support_table[d->support].word;
}

// Which variables have elements of several supports, as in x[1] ~ gamma(1, 1); x[2] ~ normal(0, 1);
static void find_mixed(const Graph *g, const Stmt *s, const char **seen)
{
    for (; s; s = s->next) {
        if (s->kind == STMT_FOR || s->kind == STMT_IF || s->kind == STMT_BLOCK) find_mixed(g, s->body, seen);
        if (s->kind != STMT_TILDE || !s->decl || s->decl->kind != DECL_VARIABLE || !s->dist || !s->decl->user) continue;
        Var *v = s->decl->user;
        const char *here = support_of(g, s);
        if (!seen[v->id]) seen[v->id] = here;
        else if (strcmp(seen[v->id], here) != 0) v->mixed = true;
    }
}

static bool declare(Graph *g)
{
    const Model *m = g->model;
    for (int i = 0; i < m->ndecls; i++) map_put(g->arena, &g->taken, m->decls[i]->name, m->decls[i]);
    for (int i = 0; i < m->ndecls; i++) {           // data first: sizes and bounds read them
        Decl *d = m->decls[i];
        if (d->kind != DECL_DATA) continue;
        Var *v = var_new(g, d->name, VAR_DATA);
        v->decl = d;
        v->span = d->span;
        v->base = d->type.base;
        v->constraint = d->constraint;
        d->user = v;
        set_shape(g, v, d);
        declare_bounds(g, v, d);
        if (d->init) v->init = elaborate(g, d->init, NULL, 0, NULL);
    }
    Dependence *known = NEW_N(g->arena, Dependence, m->ndecls + 1);
    for (int i = 0; i < m->ndecls; i++) known[i] = NOT_ASKED;
    for (int i = 0; i < m->ndecls; i++) {           // definitions of data alone: computed once
        Decl *d = m->decls[i];
        if (d->kind != DECL_DEFINITION) continue;
        const bool unknown = definition_unknown(d, known);
        for (int k = 0; d->recursive && k < m->ndecls; k++) known[k] = NOT_ASKED;
        if (unknown && !d->recursive) continue;
        Var *v = var_new(g, d->name, !unknown ? VAR_LET : d->block == BLOCK_PREDICT ? VAR_PREDICTED : VAR_SERIES);
        v->decl = d;
        v->span = d->span;
        v->base = d->type.base;
        d->user = v;
    }
    for (int i = 0; i < m->ndecls; i++) {
        Decl *d = m->decls[i];
        if (d->kind == DECL_DEFINITION && d->user) set_shape(g, d->user, d);
    }
    for (int i = 0; i < m->ndecls; i++) {
        Decl *d = m->decls[i];
        if (d->kind != DECL_VARIABLE) continue;
        VarKind kind = d->block == BLOCK_PREDICT ? VAR_PREDICTED : d->block == BLOCK_LATENT ? VAR_LATENT : VAR_PARAMETER;
        Var *v = var_new(g, d->name, kind);
        v->decl = d;
        v->span = d->span;
        v->base = d->type.base;
        v->discrete = v->base == BASE_INT;
        v->constraint = d->constraint;
        v->mixed = v->constraint == CONSTRAINT_SUM_TO_ZERO;          // ends of its elements are no part of its coordinates
        d->user = v;
    }
    for (int i = 0; i < m->ndecls; i++) {
        Decl *d = m->decls[i];
        if (d->kind != DECL_VARIABLE) continue;
        set_shape(g, d->user, d);
        declare_bounds(g, d->user, d);
    }
    return diags_errors(g->diags) == 0;
}

// ---- factors ----

// ---- mixtures ----

static Plates plates_of(Graph *g, const Scope *s, Span at, int extra, Index *const *more)
{
    Plates p = {.n = s->n + extra, .guard = s->guard};
    p.index = NEW_N(g->arena, Index *, p.n + 1);
    memcpy(p.index, s->index, sizeof *p.index * (size_t)s->n);
    for (int i = 0; i < extra; i++) p.index[s->n + i] = more[i];
    if (p.n > MAX_PLATES) {
        Diag *m = diag(g->diags, at, DIAG_E0510, MAX_PLATES);
        diag_help(m, extra ? "%d loops stand around it, and it stands for all elements of %d dimensions more; one loop over all their combinations does the same"
                           : "one loop over all combinations of several indices does the same", s->n, extra);
        p.n = MAX_PLATES;
    }
    return p;
}

static Expr *stand_in(Graph *g, const char *name, bool whole)
{
    Var *v = var_new(g, intern(name), VAR_ELEMENT);
    if (whole) v->base = BASE_INT;
    return ex_ref(v, 0, NULL);
}

// What a draw of the predict block reads if it has to lie between two ends: see Site.
static void draw_within(Graph *g, Site *site, const Env *env, Expr *const *end, Expr *const *support)
{
    const Distribution *d = site->dist;
    site->within = true;
    site->exact = d->sample_truncated != NULL;
    for (int side = 0; side < 2; side++) site->end[side] = stand_in(g, side ? "upper" : "lower", d->discrete);
    if (site->exact) {
        for (int side = 0; side < 2; side++) env = env_bind(g, env, d->ends[side], site->end[side]);
        site->sample = d->sample_truncated->name;
        site->nargs = 0;
        for (int i = 0; i < d->sample_truncated->nkids; i++) site->args[site->nargs++] = elaborate_whole(g, d->sample_truncated->kid[i], env);
    }
    site->nsample = site->nargs;
    for (int side = 0; side < 2; side++) site->args[site->nargs++] = end[side] ? end[side] : ex_num(side ? INFINITY : -INFINITY);
    for (int side = 0; side < 2; side++) site->args[site->nargs++] = support[side] ? support[side] : ex_num(side ? INFINITY : -INFINITY);
    if (site->exact) return;
    site->x = stand_in(g, "x", d->discrete);
    env = env_bind(g, env, d->value, site->x);
    if (d->discrete) site->args[site->nargs++] = elaborate(g, d->log_density, env, 0, NULL);
    else if (d->cdf && d->ccdf) {
        site->args[site->nargs++] = elaborate(g, d->cdf, env, 0, NULL);
        site->args[site->nargs++] = elaborate(g, d->ccdf, env, 0, NULL);
    }
}

// Whether the library can draw from it: by a routine, or by weighing integers.
static bool can_be_drawn(const Distribution *d) { return d->sample || (d->discrete && !d->value_rank); }

// A draw that is not of the posterior: a site. Ends of its truncation and declared bounds hold together. Integers without a routine are drawn by their weights.
static Site *draw_site(Graph *g, Span span, const Distribution *d, Plates plates, Expr *value, int nargs, Expr **args, Expr *lo, Expr *hi)
{
    const int most = d->sample ? d->sample->nkids : 0, truncated = d->sample_truncated ? d->sample_truncated->nkids : 0;
    Site *site = NEW(g->arena, Site);
    *site = (Site){.span = span, .var = value->var, .plates = plates, .n = value->nargs, .dist = d, .nargs = most, .nsample = most};
    memcpy(site->subscript, value->args, sizeof *site->subscript * (size_t)value->nargs);
    for (int k = site->n; k < value->var->rank; k++) site->subscript[k] = ex_num(1);     // a vector or a matrix: where it begins
    site->args = NEW_N(g->arena, Expr *, (most > truncated ? most : truncated) + 8);
    const Env *env = bind_arguments(g, d, nargs, args, value);
    if (d->sample) {
        site->sample = d->sample->name;
        for (int i = 0; i < most; i++) site->args[i] = elaborate_whole(g, d->sample->kid[i], env);
    }
    Expr *end[2] = {lo, hi}, *support[2], *declared[2] = {value->var->lower, value->var->upper};
    support_ends(g, d, nargs, args, value, &support[0], &support[1]);
    for (int side = 0; side < 2 && d->support == SUPPORT_CIRCLE; side++) support[side] = ex_num(side ? M_PI : -M_PI);
    bool within = !site->sample;
    for (int side = 0; side < 2; side++) {
        if (d->value_rank == 0 && declared[side]) end[side] = end[side] ? ex_inner(end[side], declared[side], side) : declared[side];
        if (lies_within(end[side], support[side], side)) end[side] = NULL;
        within |= end[side] != NULL;
    }
    if (within) draw_within(g, site, env, end, support);
    else if (d->discrete) {                      // what a routine gives for arguments out of range lies outside
        site->args[site->nargs++] = support[0] ? support[0] : ex_num(-INFINITY);
        site->args[site->nargs++] = support[1] ? support[1] : ex_num(INFINITY);
    }
    Expr *inside = d->discrete || d->value_rank || g->supports_known ? NULL : whole_domains(g, d, nargs, args, value);      // of others the routine tells; arguments of replicates lie inside
    if (inside) site->args[site->nargs++] = inside;
    site->guarded = inside != NULL;
    Site **last = &value->var->sites;
    while (*last) last = &(*last)->next;
    *last = site;
    return site;
}

// A draw in the predict block.
static Site *predict(Graph *g, const Stmt *s, const Distribution *d, Plates plates, Expr *value, Expr **args, Expr *lo, Expr *hi)
{
    if (value->kind != EX_REF || !can_be_drawn(d)) {
        Diag *m = diag(g->diags, s->dist_span, DIAG_E0503, d->name);
        if (!d->sample && d->support == SUPPORT_COUNTS)
            diag_help(m, "it does not say how many are counted; draw one category after the other, each from what is left: binomial(n, theta[1]), ... (with theta from its distribution, if that is summed out)");
        return NULL;
    }
    const Constraint c = value->var->constraint;
    if (constraint_rank(value->var) == 1 && support_table[d->support].constraint != c) {
        Diag *m = diag(g->diags, s->dist_span, DIAG_E0503, value->var->name);
        diag_because(m, "its elements are constrained together, and `%s` would draw them as if they were not", d->name);
        diag_help(m, c == CONSTRAINT_SUM_TO_ZERO ? "draw an ordinary vector and subtract its mean: vector[K] w ~ normal(0, s); x = w - mean(w); (for elements of one variance that is the same)"
                   : c == CONSTRAINT_ORDERED || c == CONSTRAINT_POSITIVE_ORDERED ? "draw an ordinary vector and sort it: vector[K] w ~ ...; x = sort_asc(w); (for elements of one distribution that is the same)" : "compute it from draws that are not");
        return NULL;
    }
    return draw_site(g, s->span, d, plates, value, s->nargs, args, lo, hi);
}

// Which component of a mixture an element is drawn from: a hidden variable beside the one that is predicted.
static Var *hidden_component(Graph *g, const Var *v, Span span, int rank)
{
    Var *c = var_unique(g, arena_printf(g->arena, "component_of_%s", v->name), VAR_PREDICTED);
    c->base = BASE_INT;
    c->discrete = c->hidden = true;
    c->span = span;
    c->rank = rank;
    c->on_request = v->on_request;
    memcpy(c->dim, v->dim, sizeof *c->dim * (size_t)rank);
    return c;
}

const Distribution *not_drawn(const Factor *f)
{
    for (int i = 0; i < f->ncomponents; i++)
        if (!can_be_drawn(f->component[i].dist)) return f->component[i].dist;
    return f->ncomponents || can_be_drawn(f->dist) ? NULL : f->dist;
}

void replicate(Graph *g, const Factor *f, Expr *value)
{
    if (!f->ncomponents) {
        draw_site(g, f->span, f->dist, f->plates, value, f->nargs, f->args, f->truncated ? f->lower : NULL, f->truncated ? f->upper : NULL);
        return;
    }
    Var *c = hidden_component(g, value->var, f->span, value->nargs);
    Expr *component = ex_ref(c, value->nargs, value->args), *most = f->plate ? f->plate->hi : ex_num(f->ncomponents);
    Index *k = index_new(intern("k"), ex_num(1), most);
    Expr *weight = f->plate ? ex_replace_index(f->component[0].weight, f->plate, ex_index(k)) : f->component[f->ncomponents - 1].weight;
    for (int i = f->ncomponents - 1; i-- > 0;) weight = ex_call3("if_else", ex_call2("==", ex_index(k), ex_num(i + 1)), f->component[i].weight, weight);
    Expr *weights = ex_array(k, most, weight);
    draw_site(g, f->span, library_find(g->stdlib, intern("categorical"), false), f->plates, component, 1, &weights, NULL, NULL);
    for (int i = 0; i < f->ncomponents; i++) {
        const Component *part = &f->component[i];
        Expr **args = NEW_N(g->arena, Expr *, part->nargs + 1);
        for (int a = 0; a < part->nargs; a++) args[a] = f->plate ? ex_replace_index(part->args[a], f->plate, component) : part->args[a];
        Site *site = draw_site(g, f->span, part->dist, f->plates, value, part->nargs, args, NULL, NULL);
        if (!f->plate) site->when = ex_call2("==", component, ex_num(i + 1));
        site->again = i > 0;
    }
}

// A mixture in the predict block: a hidden variable says which component each element is drawn from, and each component is a site for its elements. A plate of
// components is one site, whose arguments the hidden variable looks up.
static void predict_mixture(Graph *g, const Stmt *s, const Scope *scope, int extra, Index *const *more, Expr *const *at, Expr *value)
{
    Var *v = value->var, *c = hidden_component(g, v, s->span, value->nargs);
    Expr *component = ex_ref(c, value->nargs, value->args), *weights = elaborate_whole(g, s->weights, scope->env);
    if (ex_rank(weights) == 0) {
        Index *k = index_new(intern("k"), ex_num(1), ex_num(2));
        weights = ex_array(k, ex_num(2), ex_call3("if_else", ex_call2("==", ex_index(k), ex_num(1)), weights, ex_sub(ex_num(1), weights)));
    }
    if (ex_mentions(weights, v)) v->decl->recursive = true;      // which component is drawn follows from elements before it: one series
    Stmt pick = *s;
    pick.nargs = 1;
    pick.dist = intern("categorical");
    predict(g, &pick, library_find(g->stdlib, pick.dist, false), plates_of(g, scope, s->span, extra, more), component, &weights, NULL, NULL);
    int n = 0;
    for (const Stmt *part = s; part; part = part == s ? s->more : part->next) {
        const Distribution *d = library_find(g->stdlib, part->dist, false);
        Expr **args = NEW_N(g->arena, Expr *, part->nargs + 1);
        n++;
        for (int i = 0; i < part->nargs; i++) {
            const int want = i < d->nparams ? d->params[i]->type.rank : 0;
            if (s->more) args[i] = elaborate_argument(g, part->args[i], scope->env, want, extra, at);
            else {
                args[i] = elaborate_whole(g, part->args[i], scope->env);
                if (ex_rank(args[i]) > want) args[i] = ex_at(args[i], 1, &component);
            }
        }
        Expr *end[2], *declared[2] = {v->lower, v->upper};
        support_ends(g, d, part->nargs, args, value, &end[0], &end[1]);
        for (int side = 0; side < 2 && d->value_rank == 0; side++) {
            if (!declared[side] || lies_within(declared[side], end[side], side)) continue;
            diag_help(diag(g->diags, s->span, DIAG_E0404, "mixture", "of several distributions"), "the declared bound of `%s` would truncate it", v->name);
            return;
        }
        Site *site = predict(g, part, d, plates_of(g, scope, s->span, extra, more), value, args, NULL, NULL);
        if (!site) return;
        if (s->more) site->when = ex_call2("==", component, ex_num(n));
        site->again = n > 1;
    }
}

static Look test_itself(const Expr *e, void *with)
{
    const Expr *value = with;
    if (e->kind != EX_REF || e->var != value->var || e->nargs < value->nargs) return LOOK;
    bool same = true;                            // the element, or, of one that is drawn whole, a part
    for (int k = 0; k < value->nargs; k++) same &= e->args[k] == value->args[k];
    return same ? FOUND : LOOK;
}

// What is drawn cannot be among the arguments of its distribution: there is no such distribution. Of data it may (an error that grows with what is
// measured), if none is missing.
static void refuse_itself(Graph *g, const Stmt *s, Expr *value, int n, Expr *const *args)
{
    if (value->kind != EX_REF || !(var_unknown(value->var) || value->var->kind == VAR_DATA)) return;
    Var *v = value->var;
    for (int i = 0; i < n; i++) {
        if (!args[i] || !ex_find(args[i], test_itself, value)) continue;
        if (v->kind == VAR_DATA) { v->needed_for = arena_printf(g->arena, "it stands in its own distribution (line %d)", span_line(s->span)); return; }
        Diag *m = diag(g->diags, s->span, DIAG_E0412, ex_quote(g->arena, value));
        diag_help(m, "write there what it depends on%s; a density that is not its distribution is added by `target +=`", v->rank ? ", such as the element before it" : "");
        return;
    }
}

// A mixture: its components are listed, or one plate of them, with an argument for each.
static void mixture(Graph *g, const Stmt *s, const Scope *scope, int extra, Index *const *more, Expr *const *at, Expr *value)
{
    if (s->block == BLOCK_PREDICT) {
        predict_mixture(g, s, scope, extra, more, at, value);
        return;
    }
    Factor *f = factor_new(g, s->span, plates_of(g, scope, s->span, extra, more));
    Expr *weights = elaborate_whole(g, s->weights, scope->env);
    int n = 0;
    for (const Stmt *part = s; part; part = part == s ? s->more : part->next) n++;
    f->component = NEW_N(g->arena, Component, n);
    if (n == 1) f->plate = index_new(intern("k"), ex_num(1), ex_dim(weights, 0));
    for (const Stmt *part = s; part; part = part == s ? s->more : part->next) {
        Component *c = &f->component[f->ncomponents++];
        Expr *number = f->plate ? ex_index(f->plate) : ex_num(f->ncomponents);
        *c = (Component){.dist = library_find(g->stdlib, part->dist, false), .nargs = part->nargs, .args = NEW_N(g->arena, Expr *, part->nargs + 1)};
        for (int i = 0; i < part->nargs; i++) {
            const int want = i < c->dist->nparams ? c->dist->params[i]->type.rank : 0;
            if (f->plate) {
                Expr *whole = elaborate_whole(g, part->args[i], scope->env);
                c->args[i] = ex_rank(whole) > want ? ex_at(whole, 1, &number) : whole;
            } else c->args[i] = elaborate_argument(g, part->args[i], scope->env, want, extra, at);
        }
        c->weight = ex_rank(weights) == 1 ? ex_at(weights, 1, &number) : f->ncomponents == 1 ? weights : ex_sub(ex_num(1), weights);
    }
    if (value->kind == EX_REF && value->var->kind == VAR_DATA) value->var->response = true;
    f->weights = weights;
    refuse_itself(g, s, value, 1, &weights);
    for (int i = 0; i < f->ncomponents; i++) refuse_itself(g, s, value, f->component[i].nargs, f->component[i].args);
    mixture_density(g, f, value);
    const Var *v = value->kind == EX_REF && var_unknown(value->var) && !value->var->discrete ? value->var : NULL;
    if (!v || (lies_within(v->decl->lower ? v->lower : NULL, f->least, 0) && lies_within(v->decl->upper ? v->upper : NULL, f->most, 1))) return;
    Diag *m = diag(g->diags, s->span, DIAG_E0404, "mixture", "of several distributions");
    diag_help(m, "the declared bound of `%s` would truncate it", v->name);
}

static void tilde(Graph *g, const Stmt *s, const Scope *scope)
{
    const Distribution *d = library_find(g->stdlib, s->dist, false);
    if (!d) return;
    Shape left = shape_of(g, s->lhs, scope->env);
    int vr = d->value_rank, extra = left.rank - vr;
    if (extra < 0) extra = 0;
    Index *more[MAX_RANK];
    Expr *at[MAX_RANK];
    static const char *const names[] = {"i", "j", "k", "l", "m", "n"};
    for (int k = 0; k < extra; k++) at[k] = ex_index(more[k] = index_new(intern(names[k]), ex_num(1), left.dim[k]));
    g->drawing = s->decl;
    Expr *value = ex_at(elaborate_whole(g, s->lhs, scope->env), extra, at);
    g->drawing = NULL;
    if (s->weights) {
        mixture(g, s, scope, extra, more, at, value);
        return;
    }
    Expr **args = NEW_N(g->arena, Expr *, s->nargs + 1);
    for (int i = 0; i < s->nargs; i++)
        args[i] = elaborate_argument(g, s->args[i], scope->env, i < d->nparams ? d->params[i]->type.rank : 0, extra, at);
    if (s->block == BLOCK_PREDICT) {
        Expr *lo = s->lower ? elaborate_argument(g, s->lower, scope->env, 0, extra, at) : NULL, *hi = s->upper ? elaborate_argument(g, s->upper, scope->env, 0, extra, at) : NULL;
        predict(g, s, d, plates_of(g, scope, s->span, extra, more), value, args, lo, hi);
        return;
    }
    Factor *f = factor_new(g, s->span, plates_of(g, scope, s->span, extra, more));
    for (int k = 0; value->kind == EX_REF && k < value->nargs && !f->plates.n && !f->plates.guard; k++)       // y[1] ~ ... says that y has an element: 2:T has T - 1
        if (value->args[k]->kind == EX_NUM) note_extent(ex_sub(value->var->dim[k], value->args[k]));
    f->truncated = s->truncated;
    if (s->lower) f->lower = elaborate_argument(g, s->lower, scope->env, 0, extra, at);
    if (s->upper) f->upper = elaborate_argument(g, s->upper, scope->env, 0, extra, at);
    if (value->kind == EX_REF && value->var->kind == VAR_DATA) value->var->response = true;
    refuse_itself(g, s, value, s->nargs, args);
    refuse_itself(g, s, value, 2, (Expr *[]){f->lower, f->upper});
    const Var *drawn = value->kind == EX_REF && var_unknown(value->var) && vr == 0 && value->var->constraint == CONSTRAINT_NONE ? value->var : NULL;
    for (int side = 0; side < 2 && drawn; side++) {                      // a declared bound truncates, as T[ ] does
        if (!(side ? drawn->decl->upper : drawn->decl->lower)) continue;
        if (drawn->decl->in_loop && drawn->decl->in_loop != s->lhs) break;
        Expr *bound = bound_at(g, drawn, side, value->args, scope->env), *end, *ends[2], **to = side ? &f->upper : &f->lower;
        support_ends(g, d, s->nargs, args, value, &ends[0], &ends[1]);
        end = ends[side];
        if (lies_within(bound, end, side) || lies_within(bound, *to, side)) continue;
        *to = *to ? ex_inner(bound, *to, side == 1) : bound;
        f->truncated = true;
    }
    factor_density(g, f, d, value, s->nargs, args);
}

static bool is_comparison(const Expr *e) { return e->kind == EX_CALL && (e->fn == FN_LT || e->fn == FN_LE); }

static bool drawn_real(const Var *v, void *with) { (void)with; return var_unknown(v) && !v->discrete; }

// Sides that may be equal with a probability above 0: no real unknown is among them.
static bool may_tie(const Expr *e) { return !ex_any_var(e, drawn_real, NULL); }

// c[k] as thresholds: a rule knows that its own increase.
static bool increases(const Factor *f, const Expr *c)
{
    if (c->kind != EX_REF) return f->rule;
    return f->rule || c->var->constraint == CONSTRAINT_ORDERED || c->var->constraint == CONSTRAINT_POSITIVE_ORDERED;
}

// a < b, or a <= b if it is not strict, or the opposite, as y == 1 says. Of whole numbers those beyond an end begin one further on.
static void observe_comparison(Factor *f, Expr *yes, const Expr *e)
{
    Expr *inf = ex_num(INFINITY), *minus = ex_num(-INFINITY), *one = ex_num(1);
    Expr *a = e->args[0], *b = e->args[1];
    const bool strict = e->fn == FN_LT, tie = may_tie(e), right = ex_unknown(b) && b->kind == EX_REF;          // which side lies within ends made of the other
    Expr *end = right ? a : b, *next = end, *last = end;          // the whole numbers above end, and those below it
    if (tie) {
        next = ex_add2(ex_is_whole(end) ? end : ex_call1("floor", end), one);
        last = ex_sub(ex_is_whole(end) ? end : ex_call1("ceil", end), one);
    }
    if (right) factor_add(f, ex_within(b, ex_call3("if_else", yes, strict ? next : a, minus), ex_call3("if_else", yes, inf, strict ? a : last)));
    else factor_add(f, ex_within(a, ex_call3("if_else", yes, minus, strict ? b : next), ex_call3("if_else", yes, strict ? last : b, inf)));
}

// The data y say that e equals y: bounds on the unknown in e. Bounds hold what lies on them, which of real unknowns has probability 0. Where equal sides
// have more and ends are not those of whole numbers, the factor is the condition itself.
void observe_value(Graph *g, Factor *f, Span span, Expr *y, Expr *e)
{
    Expr *inf = ex_num(INFINITY), *minus = ex_num(-INFINITY), *yes = ex_call2("==", y, ex_num(1));
    Expr *itself = ex_call3("if_else", ex_call2("==", e, y), ex_num(0), minus);
    const bool tie = may_tie(e);
    Expr *count = e, *from = ex_num(0);          // from + sum(k in lo:hi, c[k] < z)
    if (e->kind == EX_ADD && e->nargs == 2 && e->args[1]->kind == EX_REDUCE) { from = e->args[0]; count = e->args[1]; }
    if (e->kind == EX_ADD && e->nargs == 2 && e->args[0]->kind == EX_REDUCE) { from = e->args[1]; count = e->args[0]; }
    for (int k = 0; k < 2 && e->kind == EX_ADD && e->nargs == 2; k++)            // a single one that is counted: from + (c < z)
        if (is_comparison(e->args[k]) && !ex_unknown(e->args[1 - k])) { from = e->args[1 - k]; count = e->args[k]; yes = ex_call2("==", ex_sub(y, from), ex_num(1)); }
    if (is_comparison(count)) {
        const Expr *side = ex_unknown(count->args[1]) && count->args[1]->kind == EX_REF ? count->args[1] : count->args[0];
        if (tie && !ex_is_whole(side)) factor_add(f, itself);
        else observe_comparison(f, yes, count);
    } else if (count->kind == EX_REDUCE && count->fn == FN_sum && count->args[2]->kind == EX_CALL &&
               (count->args[2]->fn == FN_LT || count->args[2]->fn == FN_LE) && !ex_mentions_index(count->args[2]->args[1], count->index)) {
        if (tie || !increases(f, count->args[2]->args[0])) { factor_add(f, itself); return; }
        Expr *z = count->args[2]->args[1], *lo = count->args[0], *hi = count->args[1], *n = ex_sub(y, from);
        Expr *below = ex_replace_index(count->args[2]->args[0], count->index, ex_add(3, (Expr *[]){lo, n, ex_num(-1)}));
        Expr *above = ex_replace_index(count->args[2]->args[0], count->index, ex_add2(lo, n));
        factor_add(f, ex_within(z, ex_call3("if_else", ex_call2("<=", ex_num(1), n), below, minus),
                              ex_call3("if_else", ex_call2("<=", ex_add2(lo, n), hi), above, inf)));
    } else if (e->kind == EX_CALL && (e->fn == FN_fmax || e->fn == FN_fmin) && tie && ex_unknown(e->args[0]) && ex_unknown(e->args[1])) {
        factor_add(f, itself);
    } else if (e->kind == EX_CALL && (e->fn == FN_fmax || e->fn == FN_fmin) && !(ex_unknown(e->args[0]) && ex_unknown(e->args[1]))) {
        bool max = e->fn == FN_fmax;
        Expr *z = ex_unknown(e->args[0]) ? e->args[0] : e->args[1], *c = z == e->args[0] ? e->args[1] : e->args[0];
        if (max) factor_add(f, ex_within(z, ex_call3("if_else", ex_call2("<", c, y), y, minus), y));
        else factor_add(f, ex_within(z, y, ex_call3("if_else", ex_call2("<", y, c), y, inf)));
    } else if (e->kind == EX_CALL && (e->fn == FN_floor || e->fn == FN_round) && tie) {
        factor_add(f, itself);
    } else if (e->kind == EX_CALL && e->fn == FN_floor) {
        factor_add(f, ex_within(e->args[0], y, ex_add2(y, ex_num(1))));
    } else if (e->kind == EX_CALL && e->fn == FN_round) {
        factor_add(f, ex_within(e->args[0], ex_add2(y, ex_num(-0.5)), ex_add2(y, ex_num(0.5))));
    } else if (e->kind == EX_REF) {
        factor_add(f, ex_within(e, y, y));
    } else {
        Diag *m = diag(g->diags, span, DIAG_E0504);
        diag_help(m, "data may be an unknown compared with a bound (z > 0), its fmax or fmin with one, its floor, or its round");
        if (e->kind == EX_CALL && (e->fn == FN_fmax || e->fn == FN_fmin)) diag_help(m, "both sides are unknown here, and one of them is real: which one was observed is not drawn");
        else if (tie) diag_help(m, "of counts, target += y == ... ? 0 : negative_infinity(); says that y is what stands there");
    }
}

// y[i] = z[i] > 0 and its like: what the data say of the unknown on the right.
static void observe(Graph *g, const Stmt *s, const Scope *scope)
{
    Shape left = shape_of(g, s->lhs, scope->env);
    Index *more[MAX_RANK];
    Expr *at[MAX_RANK];
    for (int k = 0; k < left.rank; k++) at[k] = ex_index(more[k] = index_new(intern("i"), ex_num(1), left.dim[k]));
    Expr *y = elaborate(g, s->lhs, scope->env, left.rank, at);
    int rank = shape_of(g, s->rhs, scope->env).rank;
    Expr *e = elaborate(g, s->rhs, scope->env, rank, at);
    Factor *f = factor_new(g, s->span, plates_of(g, scope, s->span, left.rank, more));
    f->function = s->decl->user;
    observe_value(g, f, s->span, y, e);
}

// real<lower=0> r = a - b; the density is 0 where a definition leaves its declared bounds.
static void bound_definition(Graph *g, const Stmt *s, const Scope *scope)
{
    const Decl *d = s->decl;
    if (d->in_loop && d->in_loop != s->lhs) return;
    const Shape left = shape_of(g, s->lhs, scope->env);
    const int rank = left.rank;
    Index *more[MAX_RANK];
    Expr *at[MAX_RANK], *end[2] = {NULL, NULL};
    for (int k = 0; k < rank; k++) at[k] = ex_index(more[k] = index_new(intern("i"), ex_num(1), left.dim[k]));
    Expr *value = elaborate(g, s->lhs, scope->env, rank, at);
    for (int side = 0; side < 2; side++) {
        const Ast *bound = side ? d->upper : d->lower;
        if (!bound) continue;
        const int inner = bound->type.rank - rank;           // dimensions of a vector of bounds that the left side has subscripts for
        Expr *sub[MAX_RANK + 1];
        for (int k = 0; k < bound->type.rank; k++)
            sub[k] = k < inner ? elaborate(g, s->lhs->kid[s->lhs->nkids - inner + k], scope->env, 0, NULL) : at[rank - bound->type.rank + k];
        end[side] = elaborate(g, bound, scope->env, bound->type.rank, sub);
        double least, most, first, last;
        range_of(value, &least, &most);
        range_of(end[side], &first, &last);
        if ((side ? most <= first : least >= last) || !(ex_unknown(value) || ex_unknown(end[side]))) end[side] = NULL;      // of data: a claim
    }
    if (end[0] || end[1]) factor_new(g, s->span, plates_of(g, scope, s->span, rank, more))->log_density = ex_within(value, end[0], end[1]);
}

static void add_target(Graph *g, const Stmt *s, const Scope *scope)
{
    Factor *f = factor_new(g, s->span, plates_of(g, scope, s->span, 0, NULL));
    f->added = true;
    target_density(g, f, s->rhs, scope->env);
}

static void walk(Graph *g, const Stmt *s, Scope scope);

// A site of a LET, or of a definition whose value goes to the draws.
static void compute(Graph *g, const Stmt *s, const Scope *scope, Var *v)
{
    Site *site = NEW(g->arena, Site);
    Expr *sub[MAX_RANK];
    int k = 0;
    if (s->lhs->kind == AST_INDEX)
        for (int i = 1; i < s->lhs->nkids && k < MAX_RANK; i++) {
            if (s->lhs->kid[i]->kind == AST_ALL || s->lhs->kid[i]->kind == AST_RANGE) continue;
            sub[k++] = elaborate(g, s->lhs->kid[i], scope->env, 0, NULL);
        }
    int extra = v->rank - k;
    Index *more[MAX_RANK];
    Expr *at[MAX_RANK];
    const Shape own = s->decl && s->decl->ragged == s ? shape_of(g, s->lhs, scope->env) : (Shape){0};
    for (int i = 0; i < extra; i++) sub[k + i] = at[i] = ex_index(more[i] = index_new(intern("ijklmn" + i), ex_num(1), own.rank == extra ? own.dim[i] : v->dim[k + i]));
    for (int i = 0; i < extra; i++) { char c[2] = {"ijklmn"[i], 0}; more[i]->name = intern(c); }
    *site = (Site){.span = s->span, .var = v, .plates = plates_of(g, scope, s->span, extra, more), .n = v->rank};
    memcpy(site->subscript, sub, sizeof sub);
    int rank = shape_of(g, s->rhs, scope->env).rank;
    site->value = elaborate(g, s->rhs, scope->env, rank < extra ? rank : extra, at);
    if (s->link) {
        const char *inverse = strcmp(s->link, "logit") == 0 ? "inv_logit" : strcmp(s->link, "log") == 0 ? "exp"
                            : strcmp(s->link, "probit") == 0 ? "Phi" : "inv_cloglog";
        site->value = ex_call1(inverse, site->value);
    }
    Site **last = &v->sites;
    while (*last) last = &(*last)->next;
    *last = site;
}

static void walk_one(Graph *g, const Stmt *s, Scope scope)
{
    switch (s->kind) {
    case STMT_TILDE: tilde(g, s, &scope); break;
    case STMT_TARGET: add_target(g, s, &scope); break;
    case STMT_DEFINE:
        if (!s->decl) break;
        if (s->decl->kind == DECL_DATA) observe(g, s, &scope);
        else if (s->decl->user) compute(g, s, &scope, s->decl->user);
        if (s->decl->kind == DECL_DEFINITION && s->block != BLOCK_PREDICT && (s->decl->lower || s->decl->upper)) bound_definition(g, s, &scope);
        break;
    case STMT_DECLARE: break;
    case STMT_FOR: {
        Expr *lo = elaborate(g, s->index->lo, scope.env, 0, NULL), *hi = elaborate(g, s->index->hi, scope.env, 0, NULL), *turn;
        Index *i = index_of_loop(s->index->name, lo, hi, &turn);
        if (scope.n == MAX_PLATES) {
            diag_help(diag(g->diags, s->span, DIAG_E0510, MAX_PLATES), "one loop over all combinations of several indices does the same");
            break;
        }
        scope.index[scope.n++] = i;
        scope.env = env_bind(g, scope.env, s->index, turn);
        walk(g, s->body, scope);
        break;
    }
    case STMT_IF: {
        Expr *c = elaborate(g, s->cond, scope.env, 0, NULL);
        scope.guard = scope.guard ? ex_call2("&&", scope.guard, c) : c;
        walk(g, s->body, scope);
        break;
    }
    case STMT_BLOCK: walk(g, s->body, scope); break;
    }
}

static void walk(Graph *g, const Stmt *s, Scope scope)
{
    for (; s; s = s->next) walk_one(g, s, scope);
}

// Values of definitions for the draws: computed after a kept sweep. Their statements are visited again, now as sites.
static void derive(Graph *g, const Stmt *s, Scope scope)
{
    for (; s; s = s->next)
        switch (s->kind) {
        case STMT_DEFINE:
            if (s->decl && s->decl->kind == DECL_DEFINITION) {
                Var *v = NULL;
                for (int i = 0; i < g->nvars; i++)
                    if (g->vars[i]->decl == s->decl) v = g->vars[i];
                if (v && !s->decl->user) compute(g, s, &scope, v);
            }
            break;
        case STMT_FOR: {
            Scope in = scope;
            Expr *lo = elaborate(g, s->index->lo, scope.env, 0, NULL), *hi = elaborate(g, s->index->hi, scope.env, 0, NULL), *turn;
            Index *i = index_of_loop(s->index->name, lo, hi, &turn);
            if (in.n == MAX_PLATES) break;        // refused before
            in.index[in.n++] = i;
            in.env = env_bind(g, scope.env, s->index, turn);
            derive(g, s->body, in);
            break;
        }
        case STMT_IF: {
            Scope in = scope;
            Expr *c = elaborate(g, s->cond, scope.env, 0, NULL);
            in.guard = in.guard ? ex_call2("&&", in.guard, c) : c;
            derive(g, s->body, in);
            break;
        }
        case STMT_BLOCK: derive(g, s->body, scope); break;
        case STMT_TILDE: case STMT_DECLARE: case STMT_TARGET: break;
        }
}

// A declared unknown without a distribution has density 1 where its bounds are kept: bounds that are no numbers are a factor of their own, which is part
// of the conditionals of the unknowns in them, too. What they say of the static support, others see.
static void declare_region(Graph *g, Var *v)
{
    const Decl *d = v->decl;
    Plates p = {.n = v->rank, .index = NEW_N(g->arena, Index *, v->rank + 1)};
    Expr *element = var_element(g, v, p.index), *end[2] = {NULL, NULL}, *both[2] = {NULL, NULL};
    for (int side = 0; side < 2; side++) {
        if (!(side ? d->upper : d->lower)) continue;
        both[side] = end[side] = bound_at(g, v, side, element->args, NULL);
        double range[2];
        range_of(end[side], &range[0], &range[1]);
        if (side == 0 && range[0] > v->lower_number) v->lower_number = range[0];
        if (side == 1 && range[1] < v->upper_number) v->upper_number = range[1];
        if (end[side]->kind == EX_NUM) end[side] = NULL;
        else if (v->discrete && ex_unknown(end[side]) && side) v->upper = isfinite(v->upper_number) ? ex_num(v->upper_number) : NULL;
        else if (v->discrete && ex_unknown(end[side])) v->lower = isfinite(v->lower_number) ? ex_num(v->lower_number) : NULL;
        else if (v->discrete && (side ? v->upper : v->lower)) end[side] = NULL;          // it ends the values to choose from
    }
    const bool numbers = (!both[0] || both[0]->kind == EX_NUM) && (!both[1] || both[1]->kind == EX_NUM);
    if (numbers) return;
    Factor *f = factor_new(g, v->span, p);
    f->region = v;
    if (end[0] || end[1]) f->log_density = ex_within(element, end[0], end[1]);
    factor_ends(f, both[0], both[1]);
}

static bool draws(const Factor *f, const Var *v) { return f->dist && f->value && f->value->kind == EX_REF && f->value->var == v; }

static void declare_regions(Graph *g)
{
    for (int i = 0, n = g->nvars; i < n; i++) {
        Var *v = g->vars[i];
        bool drawn = false;
        for (const Factor *f = g->factors; f && !drawn; f = f->next) drawn = draws(f, v);
        if (v->decl && var_unknown(v) && !drawn && (v->decl->lower || v->decl->upper)) declare_region(g, v);
    }
}

static void order_elements(Graph *g, Var *v)
{
    Plates p = {.n = v->rank, .index = NEW_N(g->arena, Index *, v->rank + 1)};
    Expr *at[MAX_RANK], *before[MAX_RANK];
    for (int k = 0; k < v->rank; k++) {
        bool last = k + 1 == v->rank;
        p.index[k] = index_new(intern("k"), ex_num(last ? 2 : 1), v->dim[k]);
        at[k] = ex_index(p.index[k]);
        before[k] = last ? ex_add2(at[k], ex_num(-1)) : at[k];
    }
    Factor *f = factor_new(g, v->span, p);
    f->log_density = ex_within(ex_ref(v, v->rank, at), ex_ref(v, v->rank, before), NULL);
}

static bool same_for_all(const Factor *f, const Expr *end)
{
    for (int i = 0; i < f->plates.n; i++)
        if (ex_mentions_index(end, f->plates.index[i])) return false;
    return true;
}

// The end, or one of those that it is the inner of, fmin(M[i], 5): the same for all elements. NULL: there is none.
static Expr *end_for_all(const Factor *f, Expr *end, int side)
{
    if (!end || same_for_all(f, end)) return end;
    if (end->kind != EX_CALL || end->fn != (side ? FN_fmin : FN_fmax)) return NULL;
    Expr *one = end_for_all(f, end->args[0], side);
    return one && !ex_unknown(one) ? one : end_for_all(f, end->args[1], side);
}

static Expr *value_of_definition(Expr *e, void *with)
{
    const Site *t = e->kind == EX_REF && e->var->kind == VAR_LET && e->var->rank == 0 ? e->var->sites : NULL;
    return t && !t->next && t->value && t->plates.n == 0 && !t->plates.guard ? ex_map(t->value, value_of_definition, with) : NULL;
}

Expr *written_out(Expr *e) { return ex_map(e, value_of_definition, NULL); }

static Look test_passes(const Expr *e, void *with)
{
    (void)with;
    const bool computed = e->kind == EX_REF && e->var->kind != VAR_DATA, whole = e->kind == EX_REF && e->nargs < e->var->rank;
    return computed || whole || e->kind == EX_REDUCE || e->kind == EX_ARRAY || e->kind == EX_AT ? FOUND : LOOK;
}

// Ends of discrete unknowns give sizes, which are known before anything is computed: one that takes a pass over data stands in the densities instead.
static void settle_computed_end(Graph *g, Var *v, int side)
{
    Expr **end = side ? &v->upper : &v->lower;
    if (!*end || ex_unknown(*end) || !ex_find(*end, test_passes, NULL)) return;
    Expr *e = written_out(*end), *was = *end;
    *end = ex_find(e, test_passes, NULL) ? NULL : e;
    for (Factor *f = g->factors; f && !*end; f = f->next)
        if (draws(f, v)) factor_add(f, side ? ex_within(f->value, NULL, was) : ex_within(f->value, was, NULL));
}

// One end of the values of a discrete unknown: the outermost of those of the statements that draw it, if each has one that is the same for
// all elements. Statements with another end bring it as a term of their density.
static void settle_end(Graph *g, Var *v, int side)
{
    Expr *outer = NULL;
    bool all = true;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!draws(f, v)) continue;
        Expr *end = end_for_all(f, side ? f->most : f->least, side);
        if (!end) { all = false; continue; }
        outer = !outer || outer == end ? end : ex_inner(outer, end, side == 0);
    }
    if (!all) outer = NULL;
    for (Factor *f = g->factors; f; f = f->next) {
        if (!draws(f, v)) continue;
        Expr *end = side ? f->most : f->least;
        if (end && (end != outer || ex_unknown(end))) factor_add(f, side ? ex_within(f->value, NULL, end) : ex_within(f->value, end, NULL));
        f->least = side ? f->least : NULL;
        f->most = side ? NULL : f->most;
    }
    if (outer && side) v->upper = outer;
    if (outer && !side) v->lower = outer;
    if (outer && outer->kind == EX_NUM && side) v->upper_number = outer->number;
    if (outer && outer->kind == EX_NUM && !side) v->lower_number = outer->number;
}

// The values of discrete unknowns, to be enumerated, or the ends of a slice. Also for the latents that augmentations bring.
void settle_values(Graph *g)
{
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        bool fresh = false;
        for (const Factor *f = g->factors; f; f = f->next) fresh |= draws(f, v) && (f->least || f->most);
        for (int side = 0; side < 2 && fresh && var_unknown(v) && v->discrete; side++) settle_end(g, v, side);
        for (int side = 0; side < 2 && var_unknown(v) && v->discrete; side++) settle_computed_end(g, v, side);
    }
}

// Definitions in loops whose indices are not among their subscripts: tables tell these from the subscripts.
static void find_lookups(Graph *g, Stmt *s, Scope scope)
{
    for (; s; s = s->next) {
        Scope in = scope;
        if (s->kind == STMT_FOR && in.n < MAX_PLATES) {
            Expr *lo = elaborate(g, s->index->lo, scope.env, 0, NULL), *hi = elaborate(g, s->index->hi, scope.env, 0, NULL), *turn;
            Index *i = index_of_loop(s->index->name, lo, hi, &turn);
            in.index[in.n++] = i;
            in.env = env_bind(g, scope.env, s->index, turn);
        }
        if (s->kind == STMT_IF) {
            Expr *c = elaborate(g, s->cond, scope.env, 0, NULL);
            in.guard = in.guard ? ex_call2("&&", in.guard, c) : c;
        }
        if (s->kind == STMT_FOR || s->kind == STMT_IF || s->kind == STMT_BLOCK) find_lookups(g, s->body, in);
        if (s->kind != STMT_DEFINE || !s->decl || (s->decl->kind == DECL_DEFINITION ? s->decl->user != NULL : s->decl->kind != DECL_VARIABLE) || s->lhs->kind != AST_INDEX) continue;
        for (const Stmt *o = s->outer; o; o = o->outer) {
            bool subscript = o->kind != STMT_FOR;
            for (int i = 1; i < s->lhs->nkids && !subscript; i++) subscript = s->lhs->kid[i]->kind == AST_NAME && s->lhs->kid[i]->decl == o->index;
            if (subscript) continue;
            Var *v = var_unique(g, arena_printf(g->arena, "%s_of_%s", o->index->name, s->decl->name), VAR_LET);
            Site *site = NEW(g->arena, Site);
            *site = (Site){.span = s->span, .var = v, .plates = plates_of(g, &scope, s->span, 0, NULL)};
            v->base = BASE_INT;
            v->span = s->span;
            v->sites = site;
            v->unsure = true;                    // the loop's ends are data, which may name elements that do not exist
            for (int i = 1; i < s->lhs->nkids && s->lhs->kid[i]->kind != AST_ALL && s->lhs->kid[i]->kind != AST_RANGE; i++) {
                v->dim[v->rank++] = elaborate(g, s->decl->type.dim[i - 1], NULL, 0, NULL);
                site->subscript[site->n++] = elaborate(g, s->lhs->kid[i], scope.env, 0, NULL);
            }
            for (const Env *e = scope.env; e; e = e->outer)
                if (e->decl == o->index) site->value = e->value;
            Lookup *l = NEW(g->arena, Lookup);
            *l = (Lookup){o->index, v, s->lookups};
            s->lookups = l;
        }
    }
}

static bool test_waiting(const Var *v, void *with) { return v->kind == VAR_PREDICTED && !((const bool *)with)[v->id]; }

// Predictions are computed whole, one variable after the other: those that need each other in turn have no order.
static void check_predictions(Graph *g)
{
    bool *done = NEW_N(g->arena, bool, g->nvars + 1);
    for (bool progress = true; progress;) {
        progress = false;
        for (int i = 0; i < g->nvars; i++) {
            const Var *v = g->vars[i];
            if (v->kind != VAR_PREDICTED || done[v->id]) continue;
            bool waits = false;
            for (int k = 0; k < (v->series ? v->series->n : 1); k++) done[(v->series ? v->series->var[k] : v)->id] = true;       // it may read itself
            for (int k = 0; k < (v->series ? v->series->n : 1); k++)
                for (const Site *t = (v->series ? v->series->var[k] : v)->sites; t; t = t->next) {
                    waits |= t->value && ex_any_var(t->value, test_waiting, done);
                    waits |= t->when && ex_any_var(t->when, test_waiting, done);
                    for (int a = 0; a < t->nargs; a++) waits |= ex_any_var(t->args[a], test_waiting, done);
                }
            for (int k = 0; waits && k < (v->series ? v->series->n : 1); k++) done[(v->series ? v->series->var[k] : v)->id] = false;
            progress |= !waits;
        }
    }
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        if (v->kind != VAR_PREDICTED || done[v->id]) continue;
        Diag *m = diag(g->diags, v->span, DIAG_E0208, v->name);
        diag_help(m, "predictions are computed whole, one variable after the other; give an element that others of its own are made from by way of another variable a name of its own");
        return;
    }
}

// ---- scales of vectors whose sum is 0 ----

static bool test_unknown_scale(const Var *v, void *with) { if (var_unknown(v)) *(const Var **)with = v; return var_unknown(v); }

// An unknown in the part of a density that does not hold the value: in its normaliser. NULL: none.
static const Var *unknown_normaliser(const Factor *f, const Var *value)
{
    const Expr *e = f->log_density;
    const Var *scale = NULL;
    for (int k = 0; e->kind == EX_ADD && k < e->nargs && !scale; k++)
        if (!ex_reads(e->args[k], value)) ex_any_var(e->args[k], test_unknown_scale, &scale);
    return scale;
}

// The density is as written, a factor for each element; where an unknown is their scale, it is not that of a scale of a vector with one dimension less. A target statement that reads the scale may make up for it.
static void warn_of_scale(Graph *g, const Var *v)
{
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!draws(f, v) || f->dist->value_rank) continue;
        const Var *scale = unknown_normaliser(f, v);
        for (const Factor *t = g->factors; t && scale; t = t->next)
            if (!t->dist && ex_reads(t->log_density, scale)) scale = NULL;
        if (!scale) continue;
        Diag *m = diag(g->diags, f->span, DIAG_W0607, v->name, scale->name);
        diag_because(m, "each of its elements has a factor with `%s`, and all but one of them are free: where `%s` is their scale, the posterior has 1 / %s too much, which near 0 may not be proper", scale->name, scale->name, scale->name);
        diag_help(m, "the log of their scale, once for each vector, makes up for it: target += log(%s); where `%s` is that", scale->name, scale->name);
        return;
    }
}

bool build(Graph *g)
{
    g->last_factor = &g->factors;
    g->last_applied = &g->applied;
    if (!declare(g)) return false;
    const char **seen = NEW_N(g->arena, const char *, g->nvars + 1);
    memset(seen, 0, sizeof *seen * (size_t)(g->nvars + 1));
    for (const Block *b = g->model->blocks; b; b = b->next) find_mixed(g, b->body, seen);
    for (const Block *b = g->model->blocks; b; b = b->next) find_lookups(g, b->body, (Scope){0});
    for (const Block *b = g->model->blocks; b; b = b->next)
        walk(g, b->body, (Scope){0});
    if (!find_series(g) || !find_odes(g)) return false;
    declare_regions(g);
    settle_values(g);
    for (int i = 0; i < g->nvars; i++)                  // ordered vectors: each element above the one before it
        if (var_unknown(g->vars[i]) && (g->vars[i]->constraint == CONSTRAINT_ORDERED || g->vars[i]->constraint == CONSTRAINT_POSITIVE_ORDERED))
            order_elements(g, g->vars[i]);
    keep_domains(g);
    for (int i = 0; i < g->model->ndecls; i++) {       // definitions that depend on unknowns
        Decl *d = g->model->decls[i];
        if (d->kind != DECL_DEFINITION || d->user) continue;
        Var *v = var_new(g, d->name, d->block == BLOCK_PREDICT ? VAR_PREDICTED : VAR_DERIVED);
        v->decl = d;
        v->span = d->span;
        v->base = d->type.base;
        set_shape(g, v, d);
    }
    for (const Block *b = g->model->blocks; b; b = b->next)
        derive(g, b->body, (Scope){0});
    check_predictions(g);
    if (diags_errors(g->diags)) return false;
    for (int i = 0; i < g->nvars; i++)
        if (var_unknown(g->vars[i]) && g->vars[i]->constraint == CONSTRAINT_SUM_TO_ZERO) warn_of_scale(g, g->vars[i]);
    return true;
}
