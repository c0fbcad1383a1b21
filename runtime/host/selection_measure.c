// selection_measure.c -- what a trial of methods has cost, and how many effective draws it has given.
//
// Needs: counts of transitions, and draws of some elements.     Gives: what selection_trial.c decides by.
#include <math.h>
#include <stdlib.h>
#include "../device/nuts.h"
#include "messages.h"
#include "selection_inside.h"

static const double least_energy = 0.3;  // E-BFMI below which tails may be missed (Betancourt 2016)

// Of one chain, where chains in lockstep share what is spent whatever their number.
double gm_trial_cost(const GmTrials *w, Cost c) { return c.alone / (w->in_step ? w->chains : 1) + c.work; }

// rounds: evaluations of the chain of those in lockstep that makes most.
double gm_trial_cost_of_move(const GmTrials *w, int k, double evaluations, double rounds)
{
    return gm_trial_cost(w, w->cost[k].move) +
           gm_trial_cost(w, (Cost){rounds * w->cost[k].evaluation.alone, evaluations * w->cost[k].evaluation.work});
}

// It begins earlier where a Gibbs sweep costs more than two short trajectories: what they take would be much of a run that NUTS wins.
Window gm_trial_gibbs_window(const GmTrials *w, int k)
{
    const double share =
        clamp(2 * gm_trial_cost_of_move(w, k, SHORT_TRAJECTORY, SHORT_TRAJECTORY) / gm_trial_cost(w, w->cost[k].gibbs), 0.5, 1);
    return (Window){(long)(share * (double)(w->warmup / 12)), w->warmup / 4};
}

long gm_trials_warmup(long warmup) { return measured_from(warmup) - warmup / 4; }

// What is measured in a stage; empty where nothing is.
Window gm_trial_measured(const GmTrials *w, int k)
{
    const Trial *t = &w->trial[k];
    switch (t->stage) {
    case STAGE_GIBBS: return gm_trial_gibbs_window(w, k);
    case STAGE_NUTS: return (Window){t->measured, t->to};
    case STAGE_GIBBS_AGAIN: return t->again;
    case STAGE_NUTS_AGAIN: return nuts_again(w->warmup);
    case STAGE_FIXED:
    case STAGE_ADAPTS:
    case STAGE_CHECK:
    case STAGE_DONE: break;
    }
    return (Window){0, 0};
}

static Method measured_method(Stage s) { return s == STAGE_NUTS || s == STAGE_NUTS_AGAIN ? NUTS_AND_GIBBS : GIBBS; }

// row: the elements, or NULL: they are in the memory of the CPU.
void gm_trial_keep(GmTrials *w, int chain, int k, long sweep, const double *row)
{
    Watch *x = &w->watch[chain * w->n + k];
    const Method m = measured_method(w->trial[k].stage);
    const Window in = gm_trial_measured(w, k);
    const long every = (in.to - in.from) / MOST_DRAWS + 1;
    if (sweep < in.from || sweep >= in.to || (sweep - in.from) % every || x->n[m] == MOST_DRAWS) return;
    for (int i = 0; i < w->elements[k]; i++)
        x->draw[m][i * MOST_DRAWS + x->n[m]] =
            row ? row[i] : ((const double *)gm_state_array(w->model, w->memory, chain, (int)w->element[k][i][0]))[w->element[k][i][1]];
    x->n[m]++;
}

// Of the draws of a window that has ended, which are added to those of an earlier one; then they are forgotten.
void gm_trial_add_sizes(GmTrials *w, int k, Method m, long sweeps)
{
    Sizes *s = &w->trial[k].sizes[m];
    const long draws = w->watch[k].n[m], chains = w->chains;
    double *of = gm_alloc((size_t)(chains * draws) + 1, sizeof *of);
    for (int i = 0; i < w->elements[k]; i++) {
        bool finite = true, same = true, still = true;
        for (long c = 0; c < chains; c++)
            for (long j = 0; j < draws; j++) {
                const double v = of[c * draws + j] = w->watch[c * w->n + k].draw[m][i * MOST_DRAWS + j];
                finite &= isfinite(v);
                same &= v == of[0];
                still &= v == of[c * draws];
            }
        double pooled = NAN, apart = NAN;
        if (finite && !same && draws >= 8) {
            pooled = gm_mixing(of, (int)chains, draws);
            apart = 0;
            for (long c = 0; c < chains; c++) {
                bool moves = false;
                for (long j = 1; j < draws; j++) moves |= of[c * draws + j] != of[c * draws];
                apart += moves ? gm_mixing(of + c * draws, 1, draws) : 0;
            }
        }
        const bool more = s->sweeps > 0 && isfinite(s->pooled[i]);
        s->pooled[i] = more && isfinite(pooled) ? s->pooled[i] + pooled : more ? s->pooled[i] : pooled;
        s->apart[i] = more && isfinite(apart) ? s->apart[i] + apart : more ? s->apart[i] : apart;
        s->still[i] = still && (s->sweeps == 0 || s->still[i]);
    }
    s->sweeps += sweeps;
    s->windows++;
    for (long c = 0; c < chains; c++) w->watch[c * w->n + k].n[m] = 0;
    free(of);
}

// Of what a window has so far, which goes on: whether all chains have enough effective draws for a verdict.
bool gm_trial_is_enough(GmTrials *w, int k, Method m, long sweeps)
{
    const Sizes kept = w->trial[k].sizes[m];
    const long n = w->watch[k].n[m];
    gm_trial_add_sizes(w, k, m, sweeps);
    const bool enough = gm_trial_a_chain(w, k, m) >= ENOUGH_A_CHAIN;
    w->trial[k].sizes[m] = kept;
    for (int c = 0; c < w->chains; c++) w->watch[c * w->n + k].n[m] = n;
    return enough;
}

// Elements that do not exist stay where they began, in each chain elsewhere; Gibbs updates may also leave one unchanged that NUTS changes.
static bool counts(const GmTrials *w, int k, int i, Method m)
{
    const Trial *t = &w->trial[k];
    const bool nuts_moves = t->sizes[NUTS_AND_GIBBS].sweeps > 0 && !t->sizes[NUTS_AND_GIBBS].still[i];
    return !w->model->state[w->element[k][i][0]].partial || nuts_moves || (m == GIBBS && !t->sizes[GIBBS].still[i]);
}

// Of the slowest element, of all chains; 0: none changes.
static double slowest(const GmTrials *w, int k, Method m, bool apart)
{
    const Sizes *s = &w->trial[k].sizes[m];
    double least = INFINITY;
    for (int i = 0; i < w->elements[k]; i++)
        if (isfinite(s->pooled[i]) && counts(w, k, i, m)) least = fmin(least, apart ? s->apart[i] : s->pooled[i]);
    return isinf(least) ? 0 : least;
}

// Where neither method leads from one mode to another, all chains together only show that there are modes; then the chains are judged one
// by one.
static bool takes_apart(const GmTrials *w, int k)
{
    return w->trial[k].sizes[NUTS_AND_GIBBS].sweeps > 0 &&
           fmax(slowest(w, k, GIBBS, false), slowest(w, k, NUTS_AND_GIBBS, false)) < HARDLY_A_CHAIN * w->chains;
}

double gm_trial_a_chain(const GmTrials *w, int k, Method m) { return slowest(w, k, m, takes_apart(w, k)) / w->chains; }

double gm_trial_a_sweep(const GmTrials *w, int k, Method m)
{
    return gm_trial_a_chain(w, k, m) / (double)(w->trial[k].sizes[m].sweeps ? w->trial[k].sizes[m].sweeps : 1);
}

// Of all chains, of the transitions since their counts began anew.
Totals gm_trial_totals(const GmTrials *w, int k)
{
    Totals all = {0};
    for (int chain = 0; chain < w->chains; chain++) {
        const GmSelected *c = &w->selected[chain * w->n + k];
        all.work +=
            (double)c->moves * gm_trial_cost(w, w->cost[k].move) +
            gm_trial_cost(w, (Cost){(double)c->rounds * w->cost[k].evaluation.alone, (double)c->evaluations * w->cost[k].evaluation.work}) +
            c->metric;
        all.moves += c->moves;
        all.divergent += c->divergent;
        all.failed += c->failed;
        all.stuck |= c->moves > 2 && c->jumps < least_energy * c->squares;
    }
    return all;
}

// Of a sweep by NUTS, with its share of a Gibbs sweep.
double gm_trial_with_gibbs(const GmTrials *w, int k, double move)
{
    const Trial *t = &w->trial[k];
    return move + (t->every ? t->cost[GIBBS] / (double)t->every : 0);
}

// Of how many sweeps one makes the Gibbs updates besides, so that these take at most a `part`-th of what NUTS takes; move: the cost of a
// NUTS transition.
long gm_trial_share_of_gibbs(const GmTrials *w, int k, double move, int part)
{
    return move > 0 ? (long)fmin(fmax(1, ceil(part * w->trial[k].cost[GIBBS] / move)), 1e9) : 1;
}
