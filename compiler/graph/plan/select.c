// select.c -- blocks for which a program has both Gibbs updates and NUTS: the warm-up of a run selects the method
// (runtime/host/selection.c).
//
//   before   exact, slice and other updates, of a connected set of continuous unknowns
//   after    these for runs that select Gibbs updates, and one nuts update of all of them for runs that select NUTS
//
// Needs: the updates of the sweep.     Gives: g->selections, g->no_selection with a reason, Update.when.
#include <string.h>
#include "select.h"
#include "../conditional.h"
#include "../update.h"
#include "../terms/var.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../updates/updates.h"
#include "../updates/nuts.h"

// A slice of reals that gmc has chosen: NUTS may be tried beside it.
static bool is_sliced(const Update *s, const Graph *g)
{
    const Var *v = s->block[0];
    if (s->kind == UPDATE_ELLIPTICAL) return !request_of(g, v);
    if (s->kind != UPDATE_SLICE || s->imputes || v->discrete || request_of(g, v)) return false;
    return v->constraint == CONSTRAINT_SUM_TO_ZERO ||
           (v->constraint == CONSTRAINT_NONE && (!s->conditional->whole || s->conditional->recursion));
}

// A selection of the block: NUTS comes last in the sweep, since no other update reads what it leaves out. Updates of the block, and of
// auxiliaries that are `theirs`, by the number of a variable, belong to the other method. Where there are walls these are taken if there is
// no trial.
static Update *add_selection(Graph *g, Var **block, int n, const bool *theirs, bool coupled, const char *reason)
{
    Selection *c = NEW(g->arena, Selection), **last = &g->selections;
    Update *move = nuts_update(g, &all_by_nuts, block, n, true);
    const Factor *wall = move->nuts.wall;
    *c = (Selection){.number = 1, .n = n, .block = block, .coupled = coupled && !wall};
    for (; *last; last = &(*last)->next) c->number++;
    *last = c;
    for (Update *s = g->updates; s; s = s->next) {
        if (s->imputes || s->when != EVERY_SWEEP || !theirs[s->block[0]->id]) continue;
        s->when = WITHOUT_GRADIENTS;
        s->selection = c;
        c->auxiliaries |= s->block[0]->kind == VAR_AUXILIARY;
    }
    move->when = WITH_GRADIENTS;
    move->selection = c;
    move->reason = !wall ? reason
                         : arena_printf(g->arena,
                                        "%s. What is computed on line %d may leave its domain, where the density is 0: a transition that "
                                        "leaves it ends as divergent",
                                        reason, span_line(wall->span));
    update_append(&g->updates, move);
    return move;
}

// The last sum over the values of an unknown into which the factor goes.
static const Factor *sum_of(const Graph *g, const Factor *f)
{
    for (const Factor *sum = g->factors; sum && f->gone;)
        if (sum->made == f->gone && factor_mentions(f, sum->sums_out)) {
            f = sum;
            sum = g->factors;
        } else sum = sum->next;
    return f;
}

// Continuous unknowns that meet in a factor as written, or in one where unknowns that are offered are summed out, are one set, by the
// number of a variable: that of its first one. Auxiliaries belong to the set of the factor that they stand for. -1: to none.
static int *connected_sets(Graph *g, int offers)
{
    int nfactors = 0;
    for (const Factor *f = g->factors; f; f = f->next) nfactors = f->id >= nfactors ? f->id + 1 : nfactors;
    int *set = NEW_N(g->arena, int, g->nvars + 1), *owner = NEW_N(g->arena, int, nfactors + 1);
    for (int i = 0; i < g->nvars; i++) set[i] = -1;
    for (int i = 0; i < nfactors; i++) owner[i] = -1;
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if (!var_unknown(v) || v->kind == VAR_AUXILIARY || v->discrete) continue;
        set[v->id] = v->id;
        const Reading of = factors_of(g, v);
        for (int q = 0; q < of.n; q++) {
            if (g->offers && !factor_counts_at(of.factor[q], offers, true)) continue;
            const int other = of.factor[q]->original ? -1 : owner[of.factor[q]->id], mine = set[v->id];
            if (!of.factor[q]->original) owner[of.factor[q]->id] = v->id;
            if (other < 0 || set[other] == mine) continue;
            const int first = set[other] < mine ? set[other] : mine, gone = set[other] < mine ? mine : set[other];
            for (int k = 0; k < g->nvars; k++)
                if (set[k] == gone) set[k] = first;
        }
    }
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        if (v->kind != VAR_AUXILIARY) continue;
        const Reading of = factors_of(g, v);
        for (int q = 0; q < of.n && set[v->id] < 0; q++) {
            const Factor *root = of.factor[q];
            while (root->original) root = root->original;
            if (offers) root = sum_of(g, root);
            if (owner[root->id] >= 0) set[v->id] = set[owner[root->id]];
        }
    }
    return set;
}

static bool is_requested(const Graph *g, const Var *v)
{
    if (request_of(g, v)) return true;
    for (const Request *r = g->model->requests; r; r = r->next)  // of latents, which are named after the data
        for (int i = 0; r->block == BLOCK_AUGMENT && i < r->nnames && v->kind == VAR_AUXILIARY; i++)
            for (const Applied *a = g->applied; a; a = a->next)
                if (a->latent == v && a->factor->value && a->factor->value->kind == EX_REF && a->factor->value->var->name == r->names[i])
                    return true;
    return false;
}

// more kernels than these, and those of the move beside them, would keep the C compiler too long
enum { MOST_TRIAL_UPDATES = 40 };

static bool draws_of_set(const Update *s, const int *set, int which)
{
    for (int i = 0; i < s->nblock; i++)
        if (set[s->block[i]->id] == which) return true;
    return false;
}

// Why there is no selection for a set, in words for --explain.
static const char *not_worth(Graph *g, const int *set, int which, Var *const *block, int n)
{
    int steps = 0;
    const Update *only = NULL;
    const bool offers = g->offers && reads_sum(g, block, n);
    if (!offers && reads_sum(g, block, n)) return "the model requests that unknowns be summed out";
    for (const Update *s = g->updates; s; s = s->next) {
        if (s->imputes || !draws_of_set(s, set, which)) continue;
        if (s->kind == UPDATE_NUTS) return "some of it is drawn by NUTS in any case";
        if (s->when != EVERY_SWEEP) return "auxiliaries are drawn by different methods on a CPU and on a GPU";
        for (int i = 0; i < s->nblock; i++)
            if (is_requested(g, s->block[i])) return "the model requests a method";
        if (s->joint < 0) continue;
        only = s;
        steps++;
    }
    const Conditional *c = only ? only->conditional : NULL;
    if (steps == 1 && !offers && (only->kind == UPDATE_GAUSSIAN || (c && (c->array || (c->nbatch == c->var->rank && !c->whole)))))
        return only->kind == UPDATE_SLICE || only->kind == UPDATE_METROPOLIS ? "its elements do not depend on each other"
                                                                             : "one update draws all of it exactly";
    if (steps > MOST_TRIAL_UPDATES)
        return arena_printf(g->arena, "it has %d Gibbs updates; method selection is for at most %d", steps, MOST_TRIAL_UPDATES);
    for (int i = 0; i < g->nvars; i++) {
        Var *a = g->vars[i];
        if (a->kind != VAR_AUXILIARY || set[a->id] != which) continue;
        for (const Update *s = g->updates; s; s = s->next) {
            if (s->imputes || s->collapsed || set[s->block[0]->id] == which) continue;
            const Reading of = factors_of_block(g, s->block, s->nblock);
            for (int q = 0; q < of.n; q++)
                if (factor_counts_at(of.factor[q], block_sums(s->block, s->nblock), false) && factor_mentions(of.factor[q], a))
                    return arena_printf(g->arena, "`%s` is drawn given the auxiliary `%s`", s->block[0]->name, a->name);
        }
    }
    for (int i = 0; i < n; i++) {
        const char *why = NULL;
        if (!has_gradient(g, block[i], &why)) return arena_printf(g->arena, "NUTS cannot draw `%s`: %s", block[i]->name, why);
    }
    return block_jumps(g, block, n) == JUMPS ? "its density has jumps, which gradients do not show" : NULL;
}

// The update of an unknown that is offered, if each of its elements is drawn there given all others.
static Update *update_of_offered(Graph *g, const Var *v)
{
    Update *found = NULL;
    for (Update *s = g->updates; s; s = s->next)
        for (int i = 0; i < s->nblock; i++) {
            if (s->block[i] != v || s->imputes) continue;
            const Conditional *c = s->conditional;
            if (found || s->nblock > 1 || s->when != EVERY_SWEEP || (s->kind != UPDATE_ENUM && s->kind != UPDATE_EXACT) || !c || c->whole ||
                (c->nbatch < v->rank && !update_by_messages(s)))
                return NULL;
            found = s;
        }
    return found;
}

static int add_summed(Graph *g, const Factor *sum, Var **out, int m)
{
    for (int i = 0; i < m; i++)
        if (out[i] == sum->sums_out) return m;
    for (int i = 0; i < g->nvars; i++)
        if (g->vars[i] == sum->sums_out) out[m++] = g->vars[i];
    for (const Factor *f = g->factors; f; f = f->next)  // and what is summed out within
        if (f->made && f->gone == sum->made && factor_mentions(f, sum->sums_out)) m = add_summed(g, f, out, m);
    return m;
}

int summed_out_of(Graph *g, Var *const *block, int n, int sums, Var **out)
{
    int m = 0;
    const Reading of = factors_of_block(g, block, n);
    for (int q = 0; q < of.n; q++)
        if (of.factor[q]->made && factor_counts_at(of.factor[q], sums, true)) m = add_summed(g, of.factor[q], out, m);
    return m;
}

// The unknowns whose sums the block reads, into `out`; -1: one of them cannot be drawn after a move of the block.
static int offered_to(Graph *g, Var *const *block, int n, Var **out)
{
    const int m = summed_out_of(g, block, n, g->offers, out);
    for (int i = 0; i < m; i++)
        if (!update_of_offered(g, out[i])) return -1;
    return m;
}

static void take_out(Update **list, const Update *s)
{
    while (*list != s) list = &(*list)->next;
    *list = s->next;
}

// A tree stays together, in its order: what a child is summed out of is drawn before it, and nothing between reads its value.
static bool is_of_tree(const Var *v) { return v->summing.parent || v->summing.summed; }

static bool follows(const Update *s, Var *const *list, int n)
{
    bool any = false, tree = false;
    for (int i = 0; i < n; i++) {
        any |= s->block[0] == list[i];
        tree |= is_of_tree(list[i]);
    }
    return !s->imputes && (any || (tree && is_of_tree(s->block[0])));
}

// The move and then the draws of what it saw summed out, where the first of these stood: nothing between reads values that are not of this
// joint law.
static void draw_after(Graph *g, Update *move, Var *const *summed, int n)
{
    take_out(&g->updates, move);
    Update **at = &g->updates, *last = move;
    while (!follows(*at, summed, n)) at = &(*at)->next;
    for (Update *s = *at, *next; s; s = next) {
        next = s->next;
        if (!follows(s, summed, n)) continue;
        take_out(&g->updates, s);
        last = last->next = s;
    }
    last->next = *at;
    *at = move;
}

// Selections for the sets that are connected with so many sums behind them (0: as the updates see them), for unknowns that are in none yet.
static void compete_in_sets(Graph *g, int offers, bool *in)
{
    const int *set = connected_sets(g, offers);
    Alone **last = &g->no_selection;
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if (!var_unknown(v) || v->kind == VAR_AUXILIARY || set[v->id] != v->id || in[v->id]) continue;
        Var **block = NEW_N(g->arena, Var *, g->nvars + 1), **summed = NEW_N(g->arena, Var *, g->nvars + 1);
        bool *theirs = NEW_N(g->arena, bool, g->nvars + 1), coupled = false;
        int n = 0, nsummed = 0;
        for (int k = 0; k < g->nvars; k++) {
            Var *w = g->vars[k];
            theirs[w->id] = set[w->id] == v->id;
            if (theirs[w->id] && w->kind != VAR_AUXILIARY) block[n++] = w;
        }
        if (offers && (nsummed = offered_to(g, block, n, summed)) < 1) continue;
        for (int k = 0; k < n; k++) block[k]->summing.sums += offers;
        const char *because = not_worth(g, set, v->id, block, n);
        if (because) {
            for (int k = 0; k < n; k++) block[k]->summing.sums -= offers;
            if (offers) continue;
            *last = NEW(g->arena, Alone);
            **last = (Alone){n, block, because, NULL};
            last = &(*last)->next;
            continue;
        }
        int sliced = 0;
        for (const Update *s = g->updates; s; s = s->next)
            if (theirs[s->block[0]->id] && is_sliced(s, g)) {
                sliced++;
                coupled |= s->conditional->nbatch < s->block[0]->rank;
            }
        const char *reason =
            arena_printf(g->arena,
                         "taken if in a trial what mixes worst has, at equal cost, %g times its effective draws by other updates, %g to %g "
                         "times if some diverge",
                         GAIN_UNDIVERGED / 100.0, GAIN_SOME_DIVERGED / 100.0, GAIN_ALL_DIVERGED / 100.0);
        Update *move = add_selection(g, block, n, theirs, coupled || sliced > 1, reason);
        for (int k = 0; k < n; k++) {
            block[k]->summing.sums -= offers;
            in[block[k]->id] = true;
        }
        if (!offers) continue;
        move->over_sum = move->marginal = true;
        move->selection->summed = summed;
        move->selection->nsummed = nsummed;
        draw_after(g, move, summed, nsummed);
    }
}

bool select_method(Graph *g)
{
    bool *in = NEW_N(g->arena, bool, g->nvars + 1);
    if (g->offers) compete_in_sets(g, g->offers, in);
    compete_in_sets(g, 0, in);
    return true;
}

// In what is left, variables that are sliced and coupled.
bool move_together(Graph *g)
{
    for (Update *first = g->updates; first; first = first->next) {
        if (first->when != EVERY_SWEEP || !is_sliced(first, g)) continue;
        Var **block = NEW_N(g->arena, Var *, g->nvars + 1);
        bool *theirs = NEW_N(g->arena, bool, g->nvars + 1);
        int n = 0;
        block[n++] = first->block[0];
        theirs[block[0]->id] = true;
        bool coupled = first->conditional->nbatch < block[0]->rank;
        for (bool more = true; more;) {
            more = false;
            const Reading of = factors_of_block(g, block, n);
            for (Update *s = first; s; s = s->next) {
                bool meets = false;
                if (s->when != EVERY_SWEEP || !is_sliced(s, g) || theirs[s->block[0]->id]) continue;
                for (int q = 0; q < of.n; q++)
                    meets |= factor_counts(of.factor[q], s->block[0], true) && factor_mentions(of.factor[q], s->block[0]);
                if (!meets) continue;
                block[n++] = s->block[0];
                theirs[s->block[0]->id] = more = coupled = true;
            }
        }
        const char *why = NULL;
        for (int i = 0; i < n && coupled; i++) coupled = has_gradient(g, block[i], &why);
        if (coupled && block_jumps(g, block, n) != JUMPS)
            add_selection(g, block, n, theirs, true,
                          "no family has their statistics, and they depend on each other; the warm-up tries it beside their slices");
    }
    return true;
}
