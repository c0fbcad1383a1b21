// blocks.c -- which variables are drawn jointly normal, alone or together.
//
//   before   y[i] ~ normal(a + b*x[i], s), a and b with normal priors
//   after    a and b are jointly normal each, and coupled: some factor has a term in the product of both
//
// Needs: block_terms.     Gives: the form of each variable, and blocks that grow by variables that are coupled with them.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "blocks.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../algebra/polynomial.h"
#include "../algebra/band.h"

Form form_of(Graph *g, Var *v, int *nbatch, bool *listed, const char **because, BlockTerm **of)
{
    BlockTerm *terms;
    *nbatch = v->rank;
    *listed = false;
    *because = v->discrete ? arena_printf(g->arena, "`%s` is discrete", v->name)
               : v->constraint != CONSTRAINT_NONE && v->constraint != CONSTRAINT_SUM_TO_ZERO
                   ? arena_printf(g->arena, "the elements of `%s` are constrained together", v->name)
               : isfinite(v->lower_number) || isfinite(v->upper_number) ? arena_printf(g->arena, "`%s` has bounds", v->name)
                                                                        : NULL;
    if (*because) return NOT_GAUSSIAN;
    if (!block_terms(g, &v, 1, &terms, because)) return NOT_GAUSSIAN;
    *of = terms;
    if (v->rank == 0) return DENSE;
    bool coupled = false, chained = true, constant = true;
    for (BlockTerm *t = terms; t; t = t->next) {
        for (int k = 0; k < t->degree; k++)
            for (int d = 0; d < v->rank; d++) constant &= t->ref[k]->args[d]->kind == EX_NUM;
        if (t->degree != 2 || t->ref[0] == t->ref[1]) continue;
        coupled = true;
        int shared = 0;
        // the same row, whichever it is
        while (shared < v->rank && t->ref[0]->args[shared] == t->ref[1]->args[shared]) shared++;
        if (shared < *nbatch) *nbatch = shared;
        for (int d = shared; d < v->rank; d++) {
            int least, most;
            bool numbers = t->ref[0]->args[d]->kind == EX_NUM || t->ref[1]->args[d]->kind == EX_NUM;
            chained &= (ex_sub(t->ref[0]->args[d], t->ref[1]->args[d])->kind == EX_NUM ||
                        band_apart(t->ref[0]->args[d], t->ref[1]->args[d], &least, &most)) &&
                       !numbers;
        }
    }
    if (!coupled) return ELEMENTWISE;
    if (constant) {
        *nbatch = 0;
        *listed = true;
        return DENSE;
    }
    return chained ? CHAINED : DENSE;
}

static bool test_inside(const Var *v, void *with) { return ((const bool *)with)[v->id]; }

// Does a product of an element of w and one of another variable of the block stand in the log density of f? Products that cancel do not
// count.
static bool couples(Graph *g, Factor *f, Var *const *block, int n, Var *w)
{
    for (int i = 0; i < n; i++) {
        if (!factor_mentions(f, block[i])) continue;
        Var *const pair[] = {block[i], w};
        const Unknowns in = {pair, 2, false};
        if (!polynomial_degree(f->log_density, &in, w, 2).both) continue;
        const Terms t = polynomial(g->arena, f->log_density, &in, 2);
        for (int k = 0; k < t.n; k++)
            if (t.term[k].degree == 2 && (t.term[k].ref[0]->var == w) != (t.term[k].ref[1]->var == w)) return true;
    }
    return false;
}

// Is w coupled with a block that is jointly normal, and are they together? Factors that hold w alone, or the block alone, were looked at
// before.
bool coupled_with(Graph *g, Var *const *block, int n, const bool *inside, Var *w)
{
    bool coupled = false;
    const Reading enters = factors_of(g, w);
    for (int q = 0; q < enters.n; q++) {
        Factor *f = enters.factor[q];
        if (!factor_counts(f, w, false) || !ex_any_var(f->log_density, test_inside, (void *)inside)) continue;
        Var **all = NEW_N(g->arena, Var *, n + 1);
        memcpy(all, block, sizeof *all * (size_t)n);
        all[n] = w;
        const Degree d = polynomial_degree(f->log_density, &(Unknowns){all, n + 1, false}, w, 2);
        if (d.failed) return false;
        coupled = coupled || (d.both && couples(g, f, block, n, w));
    }
    return coupled;
}

static bool test_near(const Var *v, void *with)
{
    ((bool *)with)[v->id] = true;
    return false;
}

void put_inside(Graph *g, Growing *b, Var *v)
{
    b->var[b->n++] = v;
    b->inside[v->id] = true;
    const Reading enters = factors_of(g, v);
    for (int q = 0; q < enters.n; q++)
        if (factor_counts(enters.factor[q], v, false)) ex_any_var(enters.factor[q]->log_density, test_near, b->near);
}

void grow_from(Graph *g, Growing *b, Var *v)
{
    b->var = NEW_N(g->arena, Var *, MAX_BLOCK);
    b->n = 0;
    b->full = false;
    memset(b->inside, 0, sizeof *b->inside * (size_t)g->nvars);
    memset(b->near, 0, sizeof *b->near * (size_t)g->nvars);
    put_inside(g, b, v);
}

bool grow_by(Graph *g, Growing *b, Candidate *w)
{
    if (!b->near[w->var->id] || !coupled_with(g, b->var, b->n, b->inside, w->var)) return false;
    if (b->n == MAX_BLOCK) {
        b->full = true;
        return false;
    }
    put_inside(g, b, w->var);
    return w->taken = true;
}

const char *shared_reason(Graph *g, const Growing *b)
{
    return b->full ? arena_printf(g->arena,
                                  "normal terms of the log joint couple them, and more than %d variables in all, which several blocks draw",
                                  MAX_BLOCK)
                   : "normal terms of the log joint couple them";
}

Candidate *find_candidate(Candidate *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (list[i].var->name == name) return &list[i];
    return NULL;
}
