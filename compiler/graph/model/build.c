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
#include "density.h"
#include "declare.h"
#include "scope.h"
#include "predict.h"
#include "observe.h"
#include "settle.h"
#include "ode.h"
#include "series.h"
#include "zeros.h"

static Look test_itself(const Expr *e, void *with)
{
    const Expr *value = with;
    if (e->kind != EX_REF || e->var != value->var || e->nargs < value->nargs) return LOOK;
    bool same = true;  // the element, or, of one that is drawn whole, a part
    for (int k = 0; k < value->nargs; k++) same &= e->args[k] == value->args[k];
    return same ? FOUND : LOOK;
}

// What is drawn cannot be among the arguments of its distribution: there is no such distribution. Of data it may (an error that grows with
// what is measured), if none is missing.
static void refuse_itself(Graph *g, const Stmt *s, Expr *value, int n, Expr *const *args)
{
    if (value->kind != EX_REF || !(var_unknown(value->var) || value->var->kind == VAR_DATA)) return;
    Var *v = value->var;
    for (int i = 0; i < n; i++) {
        if (!args[i] || !ex_find(args[i], test_itself, value)) continue;
        if (v->kind == VAR_DATA) {
            v->needed_for = arena_printf(g->arena, "it occurs in its own distribution (line %d)", span_line(s->span));
            return;
        }
        Diag *m = diag(g->diags, s->span, DIAG_E0412, ex_quote(g->arena, value));
        diag_help(m, "write there what it depends on%s; a density that is not its distribution is added by `target +=`",
                  v->rank ? ", such as the element before it" : "");
        return;
    }
}

// A mixture: its components are listed, or one plate of them, with an argument for each.
static void mixture(Graph *g, const Stmt *s, const StmtScope *scope, int extra, Index *const *more, Expr *const *at, Expr *value)
{
    if (s->block == BLOCK_PREDICT) {
        predict_mixture(g, s, scope, extra, more, at, value);
        return;
    }
    Factor *f = factor_new(g, s->span, plates_of(g, scope, s->span, extra, more));
    Expr *weights = elaborate_weights(g, s, scope->env, extra, at);
    int n = 0;
    for (const Stmt *part = s; part; part = part == s ? s->more : part->next) n++;
    f->component = NEW_N(g->arena, Component, n);
    if (n == 1) f->plate = index_new(intern("k"), ex_num(1), ex_dim(weights, 0));
    for (const Stmt *part = s; part; part = part == s ? s->more : part->next) {
        Component *c = &f->component[f->ncomponents++];
        Expr *number = f->plate ? ex_index(f->plate) : ex_num(f->ncomponents);
        *c = (Component){
            .dist = library_distribution(g->stdlib, part->dist), .nargs = part->nargs, .args = NEW_N(g->arena, Expr *, part->nargs + 1)};
        for (int i = 0; i < part->nargs; i++) {
            const int want = i < c->dist->nparams ? c->dist->params[i]->type.rank : 0;
            c->args[i] = elaborate_of_component(g, part, i, scope->env, want, extra, at, number);
        }
        c->weight = ex_rank(weights) == 1 ? ex_at(weights, 1, &number) : f->ncomponents == 1 ? weights : ex_sub(ex_num(1), weights);
    }
    if (value->kind == EX_REF && value->var->kind == VAR_DATA) value->var->response = true;
    f->weights = weights;
    refuse_itself(g, s, value, 1, &weights);
    for (int i = 0; i < f->ncomponents; i++) refuse_itself(g, s, value, f->component[i].nargs, f->component[i].args);
    mixture_density(g, f, value);
    const Var *v = value->kind == EX_REF && var_unknown(value->var) && !value->var->discrete ? value->var : NULL;
    if (!v || (lies_within(v->decl->lower ? v->lower : NULL, f->least, 0) && lies_within(v->decl->upper ? v->upper : NULL, f->most, 1)))
        return;
    Diag *m = diag(g->diags, s->span, DIAG_E0404, "mixture", "of several distributions");
    diag_help(m, "the declared bound of `%s` would truncate it", v->name);
}

// The last integer that an end of real data includes. What is infinite stays so, and cuts nothing off.
static Expr *integer_end(Expr *e, bool upper) { return ex_call1(upper ? "floor" : "ceil", e); }

static void tilde(Graph *g, const Stmt *s, const StmtScope *scope)
{
    const Distribution *d = library_distribution(g->stdlib, s->dist);
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
        Expr *lo = s->lower ? elaborate_argument(g, s->lower, scope->env, 0, extra, at) : NULL,
             *hi = s->upper ? elaborate_argument(g, s->upper, scope->env, 0, extra, at) : NULL;
        predict(g, s, d, plates_of(g, scope, s->span, extra, more), value, args, lo, hi);
        return;
    }
    Factor *f = factor_new(g, s->span, plates_of(g, scope, s->span, extra, more));
    // y[1] ~ ... says that y has an element: 2:T has T - 1
    for (int k = 0; value->kind == EX_REF && k < value->nargs && !f->plates.n && !f->plates.guard; k++)
        if (value->args[k]->kind == EX_NUM) note_extent(ex_sub(value->var->dim[k], value->args[k]));
    f->truncated = s->truncated;
    f->censored = s->censored;
    if (s->lower) f->lower = elaborate_argument(g, s->lower, scope->env, 0, extra, at);
    if (s->upper) f->upper = elaborate_argument(g, s->upper, scope->env, 0, extra, at);
    if (s->censored && d->discrete) {
        if (s->lower && s->lower->type.base == BASE_REAL) f->lower = integer_end(f->lower, false);
        if (s->upper && s->upper->type.base == BASE_REAL) f->upper = integer_end(f->upper, true);
    }
    if (value->kind == EX_REF && value->var->kind == VAR_DATA) value->var->response = true;
    refuse_itself(g, s, value, s->nargs, args);
    refuse_itself(g, s, value, 2, (Expr *[]){f->lower, f->upper});
    const Var *drawn =
        value->kind == EX_REF && var_unknown(value->var) && vr == 0 && value->var->constraint == CONSTRAINT_NONE ? value->var : NULL;
    for (int side = 0; side < 2 && drawn; side++) {  // a declared bound truncates, as T[ ] does
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

// y[i] = z[i] > 0 and its like: what the data say of the unknown on the right.
static void observe(Graph *g, const Stmt *s, const StmtScope *scope)
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
static void bound_definition(Graph *g, const Stmt *s, const StmtScope *scope)
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
        const int inner = bound->type.rank - rank;  // dimensions of a vector of bounds that the left side has subscripts for
        Expr *sub[MAX_RANK + 1];
        for (int k = 0; k < bound->type.rank; k++)
            sub[k] =
                k < inner ? elaborate(g, s->lhs->kid[s->lhs->nkids - inner + k], scope->env, 0, NULL) : at[rank - bound->type.rank + k];
        end[side] = elaborate(g, bound, scope->env, bound->type.rank, sub);
        double least, most, first, last;
        range_of(value, &least, &most);
        range_of(end[side], &first, &last);
        // of data: a requirement
        if ((side ? most <= first : least >= last) || !(ex_unknown(value) || ex_unknown(end[side]))) end[side] = NULL;
    }
    if (end[0] || end[1]) factor_new(g, s->span, plates_of(g, scope, s->span, rank, more))->log_density = ex_within(value, end[0], end[1]);
}

static void add_target(Graph *g, const Stmt *s, const StmtScope *scope)
{
    Factor *f = factor_new(g, s->span, plates_of(g, scope, s->span, 0, NULL));
    f->added = true;
    target_density(g, f, s->rhs, scope->env);
}

static void walk(Graph *g, const Stmt *s, StmtScope scope);

// A site of a LET, or of a definition whose value goes to the draws.
static void compute(Graph *g, const Stmt *s, const StmtScope *scope, Var *v)
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
    for (int i = 0; i < extra; i++)
        sub[k + i] = at[i] = ex_index(more[i] = index_new(intern("ijklmn" + i), ex_num(1), own.rank == extra ? own.dim[i] : v->dim[k + i]));
    for (int i = 0; i < extra; i++) {
        char c[2] = {"ijklmn"[i], 0};
        more[i]->name = intern(c);
    }
    *site = (Site){.span = s->span, .var = v, .plates = plates_of(g, scope, s->span, extra, more), .n = v->rank};
    memcpy(site->subscript, sub, sizeof sub);
    int rank = shape_of(g, s->rhs, scope->env).rank;
    site->value = elaborate(g, s->rhs, scope->env, rank < extra ? rank : extra, at);
    if (s->link) site->value = ex_call1(inverse_link(s->link), site->value);
    Site **last = &v->sites;
    while (*last) last = &(*last)->next;
    *last = site;
}

static void walk_one(Graph *g, const Stmt *s, StmtScope scope)
{
    switch (s->kind) {
    case STMT_TILDE: tilde(g, s, &scope); break;
    case STMT_TARGET: add_target(g, s, &scope); break;
    case STMT_DEFINE:
        if (!s->decl) break;
        if (s->decl->kind == DECL_DATA) observe(g, s, &scope);
        else if (s->decl->user) compute(g, s, &scope, s->decl->user);
        if (s->decl->kind == DECL_DEFINITION && s->block != BLOCK_PREDICT && (s->decl->lower || s->decl->upper))
            bound_definition(g, s, &scope);
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

static void walk(Graph *g, const Stmt *s, StmtScope scope)
{
    for (; s; s = s->next) walk_one(g, s, scope);
}

// Values of definitions for the draws: computed after a kept sweep. Their statements are visited again, now as sites.
static void derive(Graph *g, const Stmt *s, StmtScope scope)
{
    for (; s; s = s->next) switch (s->kind) {
        case STMT_DEFINE:
            if (s->decl && s->decl->kind == DECL_DEFINITION) {
                Var *v = NULL;
                for (int i = 0; i < g->nvars; i++)
                    if (g->vars[i]->decl == s->decl) v = g->vars[i];
                if (v && !s->decl->user) compute(g, s, &scope, v);
            }
            break;
        case STMT_FOR: {
            StmtScope in = scope;
            Expr *lo = elaborate(g, s->index->lo, scope.env, 0, NULL), *hi = elaborate(g, s->index->hi, scope.env, 0, NULL), *turn;
            Index *i = index_of_loop(s->index->name, lo, hi, &turn);
            if (in.n == MAX_PLATES) break;  // refused before
            in.index[in.n++] = i;
            in.env = env_bind(g, scope.env, s->index, turn);
            derive(g, s->body, in);
            break;
        }
        case STMT_IF: {
            StmtScope in = scope;
            Expr *c = elaborate(g, s->cond, scope.env, 0, NULL);
            in.guard = in.guard ? ex_call2("&&", in.guard, c) : c;
            derive(g, s->body, in);
            break;
        }
        case STMT_BLOCK: derive(g, s->body, scope); break;
        case STMT_TILDE:
        case STMT_DECLARE:
        case STMT_TARGET: break;
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
            // it may read itself
            for (int k = 0; k < (v->series ? v->series->n : 1); k++) done[(v->series ? v->series->var[k] : v)->id] = true;
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
        diag_help(m, "predictions are computed whole, one variable after the other; give an element that others of its own are made from "
                     "by way of another variable a name of its own");
        return;
    }
}

// ---- scales of vectors whose sum is 0 ----

static bool test_unknown_scale(const Var *v, void *with)
{
    if (var_unknown(v)) *(const Var **)with = v;
    return var_unknown(v);
}

// An unknown in the part of a density that does not hold the value: in its normaliser. NULL: none.
static const Var *unknown_normaliser(const Factor *f, const Var *value)
{
    const Expr *e = f->log_density;
    const Var *scale = NULL;
    for (int k = 0; e->kind == EX_ADD && k < e->nargs && !scale; k++)
        if (!ex_reads(e->args[k], value)) ex_any_var(e->args[k], test_unknown_scale, &scale);
    return scale;
}

// The density is as written, a factor for each element; where an unknown is their scale, it is not that of a scale of a vector with one
// dimension less. A target statement that reads the scale may make up for it.
static void warn_of_scale(Graph *g, const Var *v)
{
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!factor_draws(f, v) || f->dist->value_rank) continue;
        const Var *scale = unknown_normaliser(f, v);
        for (const Factor *t = g->factors; t && scale; t = t->next)
            if (!t->dist && ex_reads(t->log_density, scale)) scale = NULL;
        if (!scale) continue;
        Diag *m = diag(g->diags, f->span, DIAG_W0607, v->name, scale->name);
        diag_because(m,
                     "each of its elements has a factor with `%s`, and all but one of them are free: where `%s` is their scale, the "
                     "posterior has 1 / %s too much, which near 0 may not be proper",
                     scale->name, scale->name, scale->name);
        diag_help(m, "the log of their scale, once for each vector, makes up for it: target += log(%s); where `%s` is that", scale->name,
                  scale->name);
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
    for (const Block *b = g->model->blocks; b; b = b->next) find_lookups(g, b->body, (StmtScope){0});
    for (const Block *b = g->model->blocks; b; b = b->next) walk(g, b->body, (StmtScope){0});
    if (!find_series(g) || !find_odes(g)) return false;
    name_subscripts(g);
    declare_regions(g);
    settle_values(g);
    for (int i = 0; i < g->nvars; i++)  // ordered vectors: each element above the one before it
        if (var_unknown(g->vars[i]) &&
            (g->vars[i]->constraint == CONSTRAINT_ORDERED || g->vars[i]->constraint == CONSTRAINT_POSITIVE_ORDERED))
            order_elements(g, g->vars[i]);
    keep_domains(g);
    for (int i = 0; i < g->model->ndecls; i++) {  // definitions that depend on unknowns
        Decl *d = g->model->decls[i];
        if (d->kind != DECL_DEFINITION || d->user) continue;
        Var *v = var_new(g, d->name, d->block == BLOCK_PREDICT ? VAR_PREDICTED : VAR_DERIVED);
        v->decl = d;
        v->lengths = d->lengths;
        v->span = d->span;
        v->base = d->type.base;
        set_shape(g, v, d);
    }
    for (const Block *b = g->model->blocks; b; b = b->next) derive(g, b->body, (StmtScope){0});
    name_subscripts(g);
    check_predictions(g);
    if (diags_errors(g->diags)) return false;
    for (int i = 0; i < g->nvars; i++)
        if (var_unknown(g->vars[i]) && g->vars[i]->constraint == CONSTRAINT_SUM_TO_ZERO) warn_of_scale(g, g->vars[i]);
    return true;
}
