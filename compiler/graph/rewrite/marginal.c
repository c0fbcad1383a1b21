// marginal.c -- discrete unknowns that the model requests to be summed out, `infer { c by marginal; }`: all others are drawn with them
// summed out.
//
//   before   categorical(c[i] | theta), normal(y[i] | mu[c[i]], s), both over i
//   after    log_sum_exp(k in 1:K, log(theta[k]) + normal(y[i] | mu[k], s)) over i; c[i] is drawn given the rest
//
// Needs: augment done, ranges of discrete unknowns known.     Gives: a factor for each unknown that is summed out, and for each factor the
// numbers of sums from which and up to which it is a factor of the joint.
//
// Unknowns are summed out one after the other, as in the elimination of variables (Zhang and Poole 1994): the sum over the values of one
// absorbs all factors that read it, also sums over others. In the sweep, unknowns that read a sum are updated first. Then those that were
// summed out are drawn, the last one first, each given those after it with those before it still summed out. That is a draw of all of them
// from their joint conditional, so the sweep keeps the joint law (partially collapsed Gibbs, van Dyk and Park 2008).
//
// Without a request, the unknowns in the law of a discrete unknown are drawn in the same way with it summed out, and no other update sees
// that sum: trees.c.
#include <math.h>
#include <stdlib.h>
#include "marginal.h"
#include "../conditional.h"
#include "../terms/var.h"
#include "../terms/supports.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../algebra/afresh.h"
#include "../algebra/history.h"
#include "neighbours.h"
#include "joined.h"
#include "messages.h"
#include "sums.h"
#include "trees.h"

// ---- all of them ----

static int others_near(Graph *g, const Var *v)
{
    int n = 0;
    for (int i = 0; i < g->nvars; i++) {
        const Var *w = g->vars[i];
        if (w == v || w->summing.summed || !asked_marginal(g, w)) continue;
        bool near = false;
        for (const Factor *f = g->factors; f && !near; f = f->next)
            near = factor_counts_at(f, g->nsums, true) && factor_mentions(f, v) && factor_mentions(f, w);
        n += near;
    }
    return n;
}

// Those that depend on few others first, and of these the ones with the most elements.
static int by_need(Graph *g, Var **list)
{
    int n = 0;
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if (!var_unknown(v) || v->summing.summed || !asked_marginal(g, v)) continue;
        v->summing.sums = g->nsums;
        int at = n++;
        const int near = others_near(g, v);
        for (; at > 0; at--) {
            const int before = others_near(g, list[at - 1]);
            if (before < near || (before == near && list[at - 1]->rank >= v->rank)) break;
            list[at] = list[at - 1];
        }
        list[at] = v;
    }
    return n;
}

// ---- chains that are drawn together, without a request ----

// There are few values: numbers show it, or a table is looked up by the values of two neighbours, which then has as many entries as there
// are products to add up.
static Look test_table(const Expr *e, void *with)
{
    const Conditional *c = with;
    bool here = false, there = false;
    for (int k = 0; k < e->nargs && e->kind == EX_REF && e->var != c->var; k++) {
        here |= ex_mentions(e->args[k], c->u->var);
        there |= ex_mentions(e->args[k], c->var);
    }
    return here && there ? FOUND : LOOK;
}

enum { MOST_PAIRS_OFFERED = 24 };  // each pair of a state and a value is written out, in NUTS with derivatives

bool has_few_values(const Conditional *c)
{
    const Expr *first = end_of_summed(c->var, 0), *last = end_of_summed(c->var, 1);
    if (first->kind == EX_NUM && last->kind == EX_NUM) return last->number - first->number < FEW_STATES;
    for (const Part *q = c->density; q; q = q->next)
        if (ex_mentions(q->value, c->var) && ex_find(q->value, test_table, (void *)c)) return true;
    return false;
}

static void draw_together(Graph *g, Var *v)
{
    if (!var_unknown(v) || v->summing.summed || v->summing.messages || (v->summing.joined && !v->summing.joined->where) || !v->discrete ||
        v->base != BASE_INT || (request_of(g, v) && !v->summing.joined && !in_turn_asked(g, v)) || !end_of_summed(v, 0) ||
        !end_of_summed(v, 1))
        return;
    Conditional *c = chain_density(g, v, can_collapse(g, v));
    if (c->recursion || c->nbatch == v->rank || !along_neighbours(c) || !has_few_values(c)) return;
    Expr *apart;
    if (sum_along(g, c, own_density(c, &apart), false)) v->summing.messages->series->apart = true;
    else v->summing.messages = NULL;
}

// ---- offers: in a method selection NUTS may see an unknown summed out that Gibbs updates are given (select.c) ----

// Densities with matrices of each value would be evaluated by one lane, a row after the other, which updates that share inverses never are.
// No two in one statement: the draws after the move are each given the rest, and one from their joint law since they do not depend on each
// other. Chains are offered where there are several, one a row: these are drawn whole on a GPU, too. What stands above others in a tree is
// offered with these summed out.
static void offer(Graph *g, Var *v, int number, bool chains)
{
    if ((v->kind != VAR_PARAMETER && v->kind != VAR_LATENT) || !var_unknown(v) || v->summing.summed || v->summing.messages ||
        v->summing.joined || v->base != BASE_INT || request_of(g, v))
        return;
    const Expr *first = end_of_summed(v, 0), *last = end_of_summed(v, 1);
    if (!first || !last || (first->kind == EX_NUM && last->kind == EX_NUM && last->number - first->number >= FEW_STATES)) return;
    for (const Factor *f = g->factors; f; f = f->next)
        if (factor_mentions(f, v) && (f->gone > v->summing.sums || f->made > v->summing.sums || has_matrix(f->log_density))) return;
    const int sums = v->summing.sums;
    if (chains) {
        const Conditional *c = chain_density(g, v, can_collapse(g, v));
        if (c->recursion || c->nbatch == v->rank || c->nbatch == 0 || !along_neighbours(c) || !has_few_values(c)) return;
        if (c->past && c->past->nstates * c->past->nvalues > MOST_PAIRS_OFFERED) return;
    }
    sum_out(g, v, number, chains, FOR_MOVES);
    if (v->summing.offered && v->summing.messages) v->summing.messages->series->apart = true;
    v->summing.sums = sums;
}

// What moves an unknown sees all that is summed out before it.
static void see_sums(Graph *g)
{
    for (int i = 0; i < g->nvars && g->nsums; i++) {
        Var *v = g->vars[i];
        if (v->summing.summed) v->summing.sums = v->summing.summed - 1;
        else if (var_unknown(v) && v->kind != VAR_AUXILIARY && !asked_for(g, v, METHOD_GIBBS)) v->summing.sums = g->nsums;
    }
}

bool marginals(Graph *g)
{
    const bool draws = g->method != METHOD_EM;
    Var **list = NEW_N(g->arena, Var *, g->nvars + 1);
    for (;;) {
        const int n = by_need(g, list);
        const char *because = NULL, *first = NULL;
        bool done = n == 0;
        for (int i = 0; i < 2 * n && !done; i++) {  // chains last: what their elements emit depends on others no more
            because = sum_out(g, list[i % n], g->nsums + 1, i >= n, FOR_ALL);
            if (i == n) first = because;
            done = !because;
        }
        if (!done) {
            const Request *r = request_of(g, list[0]);
            Diag *m = diag(g->diags, r ? r->span : list[0]->span, draws ? DIAG_E0513 : DIAG_E0514, list[0]->name);
            diag_because(m, "%s", first);
            diag_help(m, draws ? "leave the request out: gmc draws it given the rest" : "draw it, by leaving out --method em");
            return false;
        }
        if (n == 0) break;
        g->nsums++;
    }
    if (!draws) {
        see_sums(g);
        return true;
    }
    int sums = g->nsums ? 0 : tied_in_trees(g);
    while (!sums && untie_pair(g))
        ;
    warn_of_ties(g);
    see_sums(g);
    if (!g->nsums && !sums) sums = find_trees(g);
    find_joined(g);
    const bool offers = !g->method && g->nsums == 0;
    if (offers && sums) g->offers = sums + 1;
    for (int i = 0, n = g->nvars; i < n && offers; i++) offer(g, g->vars[i], sums + 1, true);
    for (int i = 0, n = g->nvars; i < n; i++) draw_together(g, g->vars[i]);
    for (int i = 0, n = g->nvars; i < n && offers; i++) offer(g, g->vars[i], sums + 1, false);
    return true;
}
