// block_terms.c -- the log joint density as a quadratic form in the elements of a block.
//
//   before   normal(y[i] | a + b*x[i], s) over i
//   after    a: sum(y)/s^2;  a a: -N/(2*s^2);  a b: -x[i]/s^2 over i; ...
//
// Needs: augment done.     Gives: terms of degree 1 and 2; or which factor is not quadratic.
#include <stdlib.h>
#include "block_terms.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "polynomial.h"

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
            *because = arena_printf(g->arena,
                                    series->sites->ode ? "`%s` enters the differential equation of `%s` (line %d)"
                                                       : "`%s` enters the recursion of `%s` (line %d)",
                                    block[i]->name, series->name, span_line(series->span));
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
            *b = (BlockTerm){.degree = m->degree,
                             .ref = {m->ref[0], m->ref[1]},
                             .coefficient = m->coefficient,
                             .span = f->span,
                             .factor = f,
                             .loops = {.guard = f->plates.guard}};
            for (int k = 0; k < m->degree; k++)
                if (m->ref[k]->nargs < m->ref[k]->var->rank) {
                    *because = "a routine needs it whole";
                    return false;
                }
            for (int k = 0; k < f->plates.n; k++) b->loops.index[b->loops.n++] = f->plates.index[k];
            for (int k = 0; k < m->loops.n; k++) b->loops.index[b->loops.n++] = m->loops.index[k];
            take_chosen(b);
            *last = b;
            last = &b->next;
        }
    }
    return true;
}
