// scope.c -- where a statement of the tree stands: the loops and conditions around it.
//
//   before   for (i in 1:N) if (k[i] > 0) y[i] ~ normal(X[i] * beta, s);
//   after    plates i in 1:N where k[i] > 0
//
// Needs: names checked.     Gives: plates; tables for loops that definitions do not name.
#include <string.h>
#include "scope.h"
#include "../terms/var.h"

Loops plates_of(Graph *g, const StmtScope *s, Span at, int extra, Index *const *more)
{
    Loops p = {.n = s->n + extra, .guard = s->guard};
    memcpy(p.index, s->index, sizeof *p.index * (size_t)s->n);
    for (int i = 0; i < extra; i++) p.index[s->n + i] = more[i];
    if (p.n > MAX_PLATES) {
        Diag *m = diag(g->diags, at, DIAG_E0510, MAX_PLATES);
        diag_help(m,
                  extra ? "%d loops are around it, and it covers all elements of %d dimensions more; one loop over all their "
                          "combinations does the same"
                        : "one loop over all combinations of several indices does the same",
                  s->n, extra);
        p.n = MAX_PLATES;
    }
    return p;
}

// Definitions in loops whose indices are not among their subscripts: tables give these for the subscripts.
void find_lookups(Graph *g, Stmt *s, StmtScope scope)
{
    for (; s; s = s->next) {
        StmtScope in = scope;
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
        if (s->kind != STMT_DEFINE || !s->decl ||
            (s->decl->kind == DECL_DEFINITION ? s->decl->user != NULL : s->decl->kind != DECL_VARIABLE) || s->lhs->kind != AST_INDEX)
            continue;
        for (const Stmt *o = s->outer; o; o = o->outer) {
            bool subscript = o->kind != STMT_FOR;
            for (int i = 1; i < s->lhs->nkids && !subscript; i++)
                subscript = s->lhs->kid[i]->kind == AST_NAME && s->lhs->kid[i]->decl == o->index;
            if (subscript) continue;
            Var *v = var_unique(g, arena_printf(g->arena, "%s_of_%s", o->index->name, s->decl->name), VAR_LET);
            Site *site = NEW(g->arena, Site);
            *site = (Site){.span = s->span, .var = v, .plates = plates_of(g, &scope, s->span, 0, NULL)};
            v->base = BASE_INT;
            v->span = s->span;
            v->sites = site;
            v->known.unsure = true;  // the loop's ends are data, which may name elements that do not exist
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
