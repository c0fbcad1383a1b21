// trees.c -- discrete unknowns whose laws depend on each other, drawn as a tree without a request: parents with their children summed
// out; and unknowns that determine each other.
//
//   before   w ~ bernoulli(omega), z[i] ~ bernoulli(w*p) over i
//   after    w is drawn with all z summed out, then z given w
//
// Needs: no sum but those of trees.     Gives: sums for the parents alone; a warning where a chain may not be irreducible.
#include <math.h>
#include <string.h>
#include "trees.h"
#include "../conditional.h"
#include "../terms/var.h"
#include "../terms/supports.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../algebra/conditionals.h"
#include "../algebra/afresh.h"
#include "../algebra/ties.h"
#include "../algebra/pairs.h"
#include "neighbours.h"
#include "sums.h"

// ---- trees: unknowns that others' laws depend on, and these ----

// Of w ~ bernoulli(omega), z[i] ~ bernoulli(w*p) over i, both given all else, w = 0 and w = 1 with all z[i] = 0 are hardly left for each
// other. So what the law of z depends on is drawn with z summed out, sum over i of log_sum_exp over v of log p(z[i] = v | w) + (what else
// holds z[i] = v), and z directly after it, given it: one draw of both. Nothing else sees the sum, but NUTS in a method selection.
// Trees are taken from their leaves on: z is summed out after what its own values decide; then its parent may be, for the parent of that.
enum { MOST_DEARER = 10 };  // pairs of values that are weighed, in place of the values of one after the other

static bool may_be_in_tree(Graph *g, const Var *v)
{
    return (v->kind == VAR_PARAMETER || v->kind == VAR_LATENT) && v->discrete && v->base == BASE_INT && v->constraint == CONSTRAINT_NONE &&
           !v->summing.summed && !v->summing.messages && !v->part_of && !request_of(g, v) && end_of_summed(v, 0) && end_of_summed(v, 1);
}

// Whether the law of z, by a statement of its own, depends on w.
static bool is_child(Graph *g, const Var *z, const Var *w)
{
    const Reading of = factors_of(g, z);
    for (int q = 0; q < of.n && z != w; q++) {
        const Factor *f = of.factor[q];
        if (factor_counts_at(f, 0, true) && f->value && f->value->kind == EX_REF && f->value->var == z && factor_mentions(f, w))
            return true;
    }
    return false;
}

// Unknowns of one shape, if one of them has no other children, are a matter of joined.c.
static bool is_worth_summing(const Var *z, const Var *w)
{
    return fmin(number_of_values(z), number_of_values(w)) <= MOST_DEARER && (w->summing.parent || !have_one_shape(z, w));
}

static bool is_weighed_alone(Graph *g, Var *v)
{
    const Conditional *c = conditional_density(g, v, can_collapse(g, v));
    return !c->whole && !c->recursion && !c->closed && !reading_latents(g, v) && (c->nbatch == v->rank || along_neighbours(c)) &&
           !find_pair(g, v);
}

static bool holds_matrix(Graph *g, const Var *v)
{
    for (const Factor *f = g->factors; f; f = f->next)
        if (factor_mentions(f, v) && has_matrix(f->log_density)) return true;
    return false;
}

// What weights are integrated out of is drawn by counts, element by element, and the weights after it.
static bool meets_collapsed(Graph *g, const Var *v)
{
    const Reading of = factors_of(g, v);
    for (int i = 0; i < g->nvars; i++)
        for (int q = 0; q < of.n && is_collapsed(g, g->vars[i]); q++)
            if (factor_mentions(of.factor[q], v) && factor_mentions(of.factor[q], g->vars[i])) return true;
    return false;
}

// The sum that was taken last is as if it had not been.
static void take_sum_back(Graph *g, Var *v, int number)
{
    Factor **f = &g->factors;
    while (*f) {
        if ((*f)->gone == number) (*f)->gone = 0;
        if ((*f)->made == number) *f = (*f)->next;
        else f = &(*f)->next;
    }
    g->last_factor = f;
    v->summing.summed = v->summing.sums = 0;
    g->reading = NULL;
}

// Sums z out of the conditionals of its parents.
static bool sum_for_parents(Graph *g, Var *z, int number)
{
    Var **parent = NEW_N(g->arena, Var *, g->nvars + 1);
    bool *already = NEW_N(g->arena, bool, g->nvars + 1);
    int n = 0;
    if (holds_matrix(g, z) || meets_collapsed(g, z)) return false;
    for (int i = 0; i < g->nvars; i++) {
        Var *w = g->vars[i];
        if (!may_be_in_tree(g, w) || !is_child(g, z, w)) continue;
        if (!is_worth_summing(z, w) || meets_collapsed(g, w)) return false;
        already[n] = w->summing.parent;
        parent[n++] = w;
    }
    if (n == 0 || !is_weighed_alone(g, z)) return false;
    for (int i = 0; i < n; i++) parent[i]->summing.parent = true;
    bool good = !sum_out(g, z, number, false, FOR_TRIAL);
    for (int i = 0; i < n && good; i++) {
        parent[i]->summing.sums = number;
        good = is_weighed_alone(g, parent[i]);
    }
    if (good && is_gathered(conditional_scattered(g, z, true))) {
        take_sum_back(g, z, number);
        good = !sum_out(g, z, number, false, FOR_PARENTS);
    }
    if (good) return true;
    for (int i = 0; i < n; i++) {
        parent[i]->summing.parent = already[i];
        parent[i]->summing.sums = already[i] ? number - 1 : 0;
    }
    if (z->summing.summed) take_sum_back(g, z, number);
    z->summing.sums = z->summing.parent ? number - 1 : 0;
    return false;
}

// Returns how many unknowns are summed out for others.
int find_trees(Graph *g)
{
    const int nvars = g->nvars;
    bool *tried = NEW_N(g->arena, bool, nvars + 1);
    int sums = 0, before = 0;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < nvars; i++) {
            Var *z = g->vars[i];
            bool leaf = !tried[i] && may_be_in_tree(g, z);
            for (int k = 0; k < nvars && leaf; k++) leaf = tried[k] || !may_be_in_tree(g, g->vars[k]) || !is_child(g, g->vars[k], z);
            if (!leaf) continue;
            tried[i] = more = true;
            sums += sum_for_parents(g, z, sums + 1);
        }
        if (!more && sums > before) {  // what has one shape with its parent, now that this has other children
            more = true;
            before = sums;
            memset(tried, 0, sizeof *tried * (size_t)nvars);
        }
    }
    for (int i = 0; i < nvars; i++)
        if (g->vars[i]->summing.parent && !g->vars[i]->summing.summed) g->vars[i]->summing.sums = sums;
    return sums;
}

// ---- unknowns that determine each other, without a request ----

// Where each two that determine each other are a child and its parent, w ~ binomial(2, v), a tree draws them together. Returns how many
// sums it takes; 0: there is nothing of this kind, or a child stays in.
int tied_in_trees(Graph *g)
{
    const int nvars = g->nvars;
    Var **child = NULL, *tied[MOST_TIED];
    int n = 0, size = 0;
    for (Factor *f = g->factors; f; f = f->next) {
        const int of = tied_in(g, f, false, tied);
        if (of == 0) continue;
        if (of > 2 || !may_be_in_tree(g, tied[0]) || !may_be_in_tree(g, tied[1])) return 0;
        const int k = is_child(g, tied[0], tied[1]) ? 0 : 1;
        if (!is_child(g, tied[k], tied[1 - k])) return 0;
        ROOM(g->arena, child, n, size);
        child[n++] = tied[k];
    }
    if (n == 0) return 0;
    Series **end = &g->series;
    while (*end) end = &(*end)->next;
    const int sums = find_trees(g);
    bool all = true;
    for (int i = 0; i < n; i++) all &= child[i]->summing.summed > 0;
    if (all) return sums;
    for (int number = sums; number > 0; number--)
        for (int i = 0; i < nvars; i++)
            if (g->vars[i]->summing.summed == number) take_sum_back(g, g->vars[i], number);
    g->nvars = nvars;
    for (int i = 0; i < nvars; i++) {
        g->vars[i]->summing.parent = false;
        g->vars[i]->summing.sums = 0;
    }
    *end = NULL;
    return 0;
}

// Sums out one of those that a factor ties, the one with the most elements that can be; false: there are none.
bool untie_pair(Graph *g)
{
    for (Factor *f = g->factors; f; f = f->next) {
        Var *tied[MOST_TIED];
        const int n = tied_in(g, f, false, tied);
        for (int rank = MAX_RANK; rank >= 0 && n; rank--)
            for (int i = 0; i < n; i++) {
                if (tied[i]->rank != rank || request_of(g, tied[i]) || sum_out(g, tied[i], g->nsums + 1, false, FOR_ALL)) continue;
                g->nsums++;
                return true;
            }
    }
    return false;
}

void warn_of_ties(Graph *g)
{
    for (const Factor *f = g->factors; f; f = f->next) {
        Var *tied[MOST_TIED];
        const bool always = tied_in(g, f, false, tied);
        const int n = always ? 0 : tied_in(g, f, true, tied);
        const Var *response = NULL;
        for (int i = 0; i < n; i++)
            if (tied[i]->response) response = tied[i];
        if (!always && !response) continue;
        Diag *m = diag(g->diags, f->span, DIAG_W0605, tied[0]->name, tied[1]->name);
        if (response) {
            diag_because(m, "where values of `%s` are missing, their possible values are not connected by changes of one of them at a time",
                         response->name);
            diag_help(m, "unknowns with this distribution, in place of what is missing, are drawn together with what it depends on");
            continue;
        }
        diag_because(m, "their possible values are not connected by changes of one of them at a time");
        diag_help(m, "`infer { %s by marginal; }` draws them together, where it can be summed out", tied[1]->name);
    }
}
