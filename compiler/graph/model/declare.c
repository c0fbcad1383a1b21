// declare.c -- the variables of a model, with their sizes and bounds.
//
// Needs: the checked tree.     Gives: g->vars: data, then definitions of data, recursive ones among them, then unknowns, each in the order
// of declaration.
#include <math.h>
#include <string.h>
#include "declare.h"
#include "../terms/var.h"
#include "law.h"

// What is known of definitions, by their order: whether they depend on unknowns. Each is looked at once, since chains of definitions may be
// long and may use each other many times. Within a circle an answer of data alone is sure for the first only: recursive definitions are
// asked afresh.
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

// Integers made of integers element by element, as k[i] + 1: cheap enough to be made again wherever they are used, so that what they are
// made of may have missing values.
static bool made_again(const Ast *e)
{
    if (!e) return true;
    bool yes = e->kind != AST_REDUCE && e->kind != AST_ARRAY;
    if (e->kind == AST_CALL) {
        const FunctionId f = function_id(e->name);
        yes = ((f == FN_min || f == FN_max) && e->nkids == 2) || f == FN_abs || f == FN_floor || f == FN_ceil || f == FN_round ||
              f == FN_int_step || f == FN_square;
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
void note_extent(Expr *e)
{
    e->extent = true;
    if (e->kind == EX_ADD && e->args[0]->kind == EX_NUM && e->args[0]->number < 0) ex_sub(e, e->args[0])->extent = true;
}

void set_shape(Graph *g, Var *v, const Decl *d)
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
Expr *bound_at(Graph *g, const Var *v, int side, Expr *const *at, const Env *env)
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
    if (d->constraint == CONSTRAINT_SIMPLEX) {
        v->lower_number = 0;
        v->upper_number = 1;
    }
    if (d->constraint == CONSTRAINT_POSITIVE_ORDERED) v->lower_number = 0;
}

// The support of what a statement draws, in words: what two statements must have in common to give their variable one support.
static const char *support_of(const Graph *g, const Stmt *s)
{
    const Distribution *d = library_distribution(g->stdlib, s->dist);
    if (!d || d->discrete) return "";
    const bool ends =
        d->support == SUPPORT_INTERVAL || s->truncated || s->weights || (s->decl->in_loop && (s->decl->lower || s->decl->upper));
    return ends ? arena_printf(g->arena, "%s %p", support_table[d->support].word, (const void *)s) : support_table[d->support].word;
}

// Which variables have elements of several supports, as in x[1] ~ gamma(1, 1); x[2] ~ normal(0, 1);
void find_mixed(const Graph *g, const Stmt *s, const char **seen)
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

bool declare(Graph *g)
{
    const Model *m = g->model;
    for (int i = 0; i < m->ndecls; i++) map_put(g->arena, &g->taken, m->decls[i]->name, m->decls[i]);
    for (int i = 0; i < m->ndecls; i++) {  // data first: sizes and bounds read them
        Decl *d = m->decls[i];
        if (d->kind != DECL_DATA) continue;
        Var *v = var_new(g, d->name, VAR_DATA);
        v->decl = d;
        v->lengths = d->lengths;
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
    for (int i = 0; i < m->ndecls; i++) {  // definitions of data alone: computed once
        Decl *d = m->decls[i];
        if (d->kind != DECL_DEFINITION) continue;
        const bool unknown = definition_unknown(d, known);
        for (int k = 0; d->recursive && k < m->ndecls; k++) known[k] = NOT_ASKED;
        if (unknown && !d->recursive) continue;
        Var *v = var_new(g, d->name, !unknown ? VAR_LET : d->block == BLOCK_PREDICT ? VAR_PREDICTED : VAR_SERIES);
        v->decl = d;
        v->lengths = d->lengths;
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
        v->lengths = d->lengths;
        v->span = d->span;
        v->base = d->type.base;
        v->discrete = v->base == BASE_INT;
        v->constraint = d->constraint;
        v->mixed = v->constraint == CONSTRAINT_SUM_TO_ZERO;  // ends of its elements are no part of its coordinates
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
