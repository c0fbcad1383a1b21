// selection_trial.c -- the stages of a trial of methods, and its decision. selection.c has the rules.
//
// Needs: what selection_measure.c finds.     Gives: the method of a set of unknowns, where chains meet.
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "fields.h"
#include "selection_inside.h"

// NUTS is selected with so many times the effective draws for the same work, by the share of its transitions that diverged. More diverge in
// a run than in its trial (2.7 times as many in the median of 31 runs).
static const struct {
    double share, factor;
} wanted[] = {{0, GAIN_UNDIVERGED / 100.0}, {0.003, GAIN_SOME_DIVERGED / 100.0}, {0.02, 3}, {1, GAIN_ALL_DIVERGED / 100.0}};
// where Gibbs updates hardly change an element: NUTS has so many times their effective draws, and so many for the same work
static const double around = 2.5, at_any_cost = 0.5;
static const double best = 0.85;     // effective draws of a transition, of the slowest of some elements, at most
static const double careful = 0.95;  // the target of a second trial whose first diverged
// NUTS that is not selected, with so many times the effective draws for the same work, is tried again
static const double near = 0.5, near_hardly = 0.1;

static const char smaller[] = "its step size is small, for an acceptance of 0.95, since larger ones diverged";
static const char no_density[] = "NUTS found no finite density";
static const char too_dear[] = "NUTS was not tried, since even independent draws by it would cost more";
static const char given_up[] = "NUTS was not tried to the end: even independent draws by it would cost more";
static const char no_better[] = "some elements hardly changed by it, either";
static const char unaffordable[] = "NUTS was not tried to the end: its transitions cost too much for a trial";

void gm_selected_moved(GmSelected *c, long evaluations, int divergent, int failed, double energy, double metric)
{
    const double jump = energy - c->energy, away = energy - c->mean;
    c->jumps += c->moves > 0 ? jump * jump : 0;
    c->energy = energy;
    c->mean += away / (double)++c->moves;
    c->squares += away * (energy - c->mean);
    c->evaluations += evaluations;
    c->metric += metric;
    c->divergent += divergent;
    c->failed += failed;
    c->fails = failed;
    c->work.transitions++;
    c->work.evaluations += evaluations;
}

// What transitions report begins anew; sweeps are counted from `first`, and adapt in so many.
static void begin_counts(GmTrials *w, int k, long first, long adapts, double target)
{
    for (int chain = 0; chain < w->chains; chain++) {
        GmSelected *c = &w->selected[chain * w->n + k];
        *c = (GmSelected){.gradients = c->gradients,
                          .also = c->also,
                          .fails = c->fails,
                          .first = first,
                          .adapts = adapts,
                          .target = target,
                          .work = c->work};
    }
    w->trial[k].met_work = 0;
    w->trial[k].met_moves = 0;
}

void gm_trial_settle(GmTrials *w, int k, bool nuts, const char *because)
{
    Trial *t = &w->trial[k];
    const int diagnostics = w->model->selections[k].diagnostics - 1;
    t->nuts = nuts;
    t->because = because;
    t->stage = STAGE_DONE;
    for (int chain = 0; chain < w->chains; chain++) {
        Watch *x = &w->watch[chain * w->n + k];
        GmSelected *c = &w->selected[chain * w->n + k];
        for (int m = 0; m < METHODS; m++) {
            free(x->draw[m]);
            x->draw[m] = NULL;
        }
        if (nuts) continue;
        *c = (GmSelected){.adapts = w->warmup, .work = c->work};  // what transitions report is 0 where none is made
        memset(gm_state_array(w->model, w->memory, chain, diagnostics), 0,
               sizeof(double) * (size_t)gm_shape_size(&w->memory->shape[diagnostics]));
    }
    t->every = !nuts ? 0 : w->method == GM_METHOD_BOTH ? 1 : w->method == GM_METHOD_NUTS ? 0 : t->every;
}

static void begin_check(GmTrials *w, int k)
{
    const GmSelected *c = &w->selected[k];
    w->trial[k].stage = STAGE_CHECK;
    begin_counts(w, k, c->first, c->adapts, c->target);
}

// NUTS has won, and adapts until its transitions are counted again.
static void take_nuts(GmTrials *w, int k, const char *because)
{
    const bool again = w->trial[k].stage == STAGE_NUTS_AGAIN;
    w->trial[k].nuts = true;
    w->trial[k].because = because;
    w->trial[k].stage = STAGE_ADAPTS;
    for (int chain = 0; chain < w->chains; chain++) {
        GmSelected *c = &w->selected[chain * w->n + k];
        c->first = 0;
        c->adapts = again ? nuts_again(w->warmup).to : adapted_at(w->warmup);
    }
    if (again) begin_check(w, k);
}

// However slow a chain is, it seems to have one or two effective draws of each window.
static bool hardly_moves(const GmTrials *w, int k)
{
    return gm_trial_a_chain(w, k, GIBBS) < HARDLY_A_CHAIN + HARDLY_MORE * (w->trial[k].sizes[GIBBS].windows - 1);
}

// The end of what is measured by Gibbs updates: NUTS has a trial if it can win.
static void begin_trial(GmTrials *w, int k, long done)
{
    Trial *t = &w->trial[k];
    const long sweeps = done - gm_trial_gibbs_window(w, k).from;
    gm_trial_add_sizes(w, k, GIBBS, sweeps);
    t->cost[GIBBS] = gm_trial_cost(w, w->cost[k].gibbs);
    for (int chain = 0; chain < w->chains; chain++)
        t->cost[GIBBS] += w->selected[chain * w->n + k].scales / (double)((done - w->warmup / 12) * w->chains);
    t->hardly = hardly_moves(w, k);
    const double move = gm_trial_cost_of_move(w, k, LEAST_EVALUATIONS, LEAST_EVALUATIONS);
    if (gm_trial_a_sweep(w, k, GIBBS) * move > best * t->cost[GIBBS]) {
        gm_trial_settle(w, k, false, too_dear);
        return;
    }
    t->stage = STAGE_NUTS;
    t->nuts = true;
    t->from = done;
    t->measured = measured_from(w->warmup);
    t->to = tried_to(w->warmup);
    t->every = gm_trial_share_of_gibbs(w, k, move, SHARE_AT_FIRST);
    begin_counts(w, k, done, t->measured - done, 0);
}

static double factor_for(double divergent, double transitions, bool stuck)
{
    double factor = wanted[0].factor;
    const int n = sizeof wanted / sizeof *wanted;
    for (int i = 0; i < n; i++)
        if (divergent > 0 && (i == 0 || divergent > wanted[i - 1].share * transitions)) factor = wanted[i].factor;
    return stuck ? wanted[n - 1].factor : factor;
}

// Whether what was found is enough for NUTS, and for a verdict.
typedef enum { LOST, MAY_WIN, WON } Verdict;

static Verdict verdict_of(GmTrials *w, int k, double transitions, double divergent, bool stuck)
{
    Trial *t = &w->trial[k];
    const double gibbs = gm_trial_a_sweep(w, k, GIBBS), nuts = gm_trial_a_sweep(w, k, NUTS_AND_GIBBS),
                 of_gibbs = gm_trial_a_chain(w, k, GIBBS), factor = factor_for(divergent, transitions, stuck);
    t->ratio = nuts * t->cost[GIBBS] / (gibbs * t->cost[NUTS_AND_GIBBS]);
    t->hardly = hardly_moves(w, k);
    t->only = t->hardly && nuts > around * gibbs;
    if (gm_trial_a_chain(w, k, NUTS_AND_GIBBS) < HARDLY_A_CHAIN) return LOST;  // a walk that is slower than the window, however cheap
    // effective draws of few sweeps may be fewer than they seem: their relative error goes with the root of their number
    const double sure = sqrt(ENOUGH_A_CHAIN / fmin(ENOUGH_A_CHAIN, fmax(of_gibbs, 1)));
    const bool wins = t->ratio > factor, known = t->ratio > sure * factor || t->stage != STAGE_NUTS;
    return !wins && !(t->only && t->ratio > at_any_cost) ? LOST : known ? WON : MAY_WIN;
}

// Beside the ratio and the share of divergent transitions, which are printed.
static const char *reason_of(const GmTrials *w, int k, const Totals *all)
{
    if (gm_trial_a_chain(w, k, NUTS_AND_GIBBS) < HARDLY_A_CHAIN) return no_better;
    return all->divergent == 0 && all->stuck ? "the energy of its transitions hardly changes" : NULL;
}

// What a trial may cost: a quarter of a run of twice as many draws as sweeps of warm-up by Gibbs updates; two thirds, where these hardly
// change an element. It does not depend on the draws of this run, since their number does not change what they are.
static double affordable(const GmTrials *w, int k) { return (w->trial[k].hardly ? 2 : 0.75) * w->trial[k].cost[GIBBS] * (double)w->warmup; }

// And a second one: as much as where Gibbs updates hardly change an element, if the first would have been better but for its divergent
// transitions.
static double affordable_again(const GmTrials *w, int k)
{
    return w->trial[k].ratio > wanted[0].factor ? 2 * w->trial[k].cost[GIBBS] * (double)w->warmup : affordable(w, k);
}

// Whether NUTS that was not selected is tried once more, with more sweeps to adapt: there were too few effective draws for a decision.
static bool is_worth_another(const GmTrials *w, int k)
{
    const Trial *t = &w->trial[k];
    const double sweeps = (double)(nuts_again(w->warmup).to - tried_to(w->warmup));
    return gm_trial_a_chain(w, k, GIBBS) < ENOUGH_A_CHAIN && t->ratio > (t->hardly ? near_hardly : near) &&
           sweeps * t->cost[NUTS_AND_GIBBS] < affordable_again(w, k);
}

static void decide(GmTrials *w, int k, long done)
{
    Trial *t = &w->trial[k];
    const Totals all = gm_trial_totals(w, k);
    const Verdict v = verdict_of(w, k, (double)t->transitions, (double)t->divergent, all.stuck);
    const char *because = reason_of(w, k, &all);
    if (v == WON) take_nuts(w, k, w->selected[k].target > 0 ? smaller : t->only ? "Gibbs updates hardly changed some elements" : NULL);
    else if (v == MAY_WIN) {
        t->stage = STAGE_GIBBS_AGAIN;
        t->again = (Window){done, done + w->warmup * 3 / 20};
        t->nuts = false;
    } else if (t->stage == STAGE_NUTS && !w->in_step && !all.stuck && is_worth_another(w, k)) {
        const double target = t->divergent ? careful : 0;
        t->stage = STAGE_NUTS_AGAIN;
        t->sizes[NUTS_AND_GIBBS] = (Sizes){0};
        t->transitions = t->divergent = 0;
        t->spent = 0;
        begin_counts(w, k, 0, nuts_again(w->warmup).to, target);
    } else gm_trial_settle(w, k, false, because);
}

// The measured part begins: what is tried from here on is what would be taken.
static void begin_measuring(GmTrials *w, int k, double move)
{
    Trial *t = &w->trial[k];
    const GmSelected *c = &w->selected[k];
    t->every = gm_trial_share_of_gibbs(w, k, move, c->target > 0 ? 1 : SHARE_OF_GIBBS);
    begin_counts(w, k, c->first, c->adapts, c->target);
}

static void end_measuring(GmTrials *w, int k, long done, long sweeps)
{
    Trial *t = &w->trial[k];
    const Totals all = gm_trial_totals(w, k);
    gm_trial_add_sizes(w, k, NUTS_AND_GIBBS, sweeps);
    t->cost[NUTS_AND_GIBBS] = gm_trial_with_gibbs(w, k, all.work / (double)(all.moves + !all.moves));
    t->transitions += all.moves;
    t->divergent += all.divergent;
    if (all.divergent > 0) t->every = gm_trial_share_of_gibbs(w, k, all.work / (double)(all.moves + !all.moves), 1);
    decide(w, k, done);
}

// A meeting of a trial.
static void look_at_trial(GmTrials *w, int k, long done)
{
    Trial *t = &w->trial[k];
    const Totals all = gm_trial_totals(w, k);
    const double move = (all.work - t->met_work) / (double)(all.moves > t->met_moves ? all.moves - t->met_moves : 1),
                 sweep = gm_trial_with_gibbs(w, k, move);
    if (done < t->from + APART) {
        if (APART * sweep > affordable(w, k)) gm_trial_settle(w, k, false, unaffordable);
        return;
    }
    t->spent += sweep * (double)(all.moves - t->met_moves) / w->chains;
    t->met_work = all.work;
    t->met_moves = all.moves;
    if (all.failed > 0) {
        gm_trial_settle(w, k, false, no_density);
        return;
    }
    const bool adapting = done <= t->measured;
    // of what may be taken: if nothing diverges when it is measured, few Gibbs updates are
    const double least = adapting ? move * (1 + 1.0 / SHARE_OF_GIBBS) : sweep;
    const double hoped = best * t->cost[GIBBS] / (gm_trial_a_sweep(w, k, GIBBS) * least), room = (affordable(w, k) - t->spent) / sweep;
    if (!t->hardly && hoped < wanted[0].factor / (2 * done < t->from + t->measured ? 3 : adapting ? 1.5 : 1)) {
        gm_trial_settle(w, k, false, given_up);
        return;
    }
    if (adapting && done < t->measured) {
        const long end = room > (double)w->warmup ? tried_to(w->warmup) : done + (long)fmax(0, room),
                   to = end < tried_to(w->warmup) ? end : tried_to(w->warmup);
        if (to - t->from < LEAST_TRIAL) {
            gm_trial_settle(w, k, false, unaffordable);
            return;
        }
        const long meetings = (done - t->from) / APART;
        // on a GPU sweeps are recorded with the length of their adaptation
        if (!w->in_step || meetings == 1 || meetings == PLANNED_AGAIN) {
            const long half = t->from + (measured_from(w->warmup) - t->from) * (to - t->from) / (tried_to(w->warmup) - t->from);
            t->measured = half > done ? half : done;
            w->plans++;
            for (int chain = 0; chain < w->chains; chain++) w->selected[chain * w->n + k].adapts = t->measured - t->from;
        }
        t->to = to > t->measured + LEAST_TRIAL / 2 ? to : t->measured + LEAST_TRIAL / 2;
    } else if (!adapting && room < -affordable(w, k) / sweep && done - t->measured >= LEAST_TRIAL / 2) t->to = done;
    if (done == t->measured) begin_measuring(w, k, move);
    else if (done == t->to) end_measuring(w, k, done, done - t->measured);
}

// NUTS that has won: transitions are counted once more when it adapts no longer.
static void check(GmTrials *w, int k)
{
    Trial *t = &w->trial[k];
    const Totals all = gm_trial_totals(w, k);
    const double share_of = (double)(t->transitions + all.moves), divergent = (double)(t->divergent + all.divergent);
    if (all.divergent > 0) t->every = gm_trial_share_of_gibbs(w, k, all.work / (double)(all.moves + !all.moves), 1);
    t->transitions += all.moves;
    t->divergent += all.divergent;
    const bool kept = t->only || t->ratio > factor_for(divergent, share_of, all.stuck);
    gm_trial_settle(w, k, kept, kept ? t->because : "too many transitions diverged after its adaptation");
}

// While Gibbs updates are measured for the first time. What trials of collapsed scales cost is counted from W/12 on (device/scales.h).
static long next_look(const GmTrials *w, int k, long done)
{
    const Window in = gm_trial_gibbs_window(w, k);
    for (int i = 1; i < LOOKS; i++) {
        const long at = in.from + (in.to - in.from) * i / LOOKS;
        if (at > done && at >= in.from + LEAST_GIBBS && at >= w->warmup / 12 + LEAST_SCALED) return at;
    }
    return in.to;
}

// After how many sweeps chains meet next for these unknowns, if `done` are made; LONG_MAX: never.
static long next_of(const GmTrials *w, int k, long done)
{
    const Trial *t = &w->trial[k];
    const long apart = t->stage == STAGE_NUTS && !w->in_step && done < t->from + APART ? EARLY : APART;
    const long W = w->warmup, at = t->from + ((done - t->from) / apart + 1) * apart;
    switch (t->stage) {
    case STAGE_FIXED: return FIRST_SWEEPS;
    case STAGE_GIBBS: return next_look(w, k, done);
    case STAGE_NUTS: return done < t->measured && t->measured < at ? t->measured : done < t->to && t->to < at ? t->to : at;
    case STAGE_GIBBS_AGAIN: return t->again.to;
    case STAGE_NUTS_AGAIN:
        return done < nuts_again(W).from && nuts_again(W).from < at ? nuts_again(W).from : nuts_again(W).to < at ? nuts_again(W).to : at;
    case STAGE_ADAPTS: return w->selected[k].adapts;
    case STAGE_CHECK: return W - 1;
    case STAGE_DONE: break;
    }
    return LONG_MAX;
}

// All chains have met after so many sweeps.
static void meet(GmTrials *w, int k, long done)
{
    Trial *t = &w->trial[k];
    const Window in = gm_trial_measured(w, k);
    switch (t->stage) {
    case STAGE_FIXED: gm_trial_settle(w, k, true, t->because); break;
    case STAGE_GIBBS:
        if (done == in.to || gm_trial_is_enough(w, k, GIBBS, done - in.from)) begin_trial(w, k, done);
        break;
    case STAGE_NUTS: look_at_trial(w, k, done); break;
    case STAGE_GIBBS_AGAIN:
        gm_trial_add_sizes(w, k, GIBBS, in.to - in.from);
        decide(w, k, done);
        break;
    case STAGE_NUTS_AGAIN: {
        const Totals all = gm_trial_totals(w, k);
        const double move = all.work / (double)(all.moves + !all.moves);
        t->spent +=
            gm_trial_with_gibbs(w, k, all.moves > t->met_moves ? (all.work - t->met_work) / (double)(all.moves - t->met_moves) : 0) *
            (double)(all.moves - t->met_moves) / w->chains;
        t->met_work = all.work;
        t->met_moves = all.moves;
        if (all.failed > 0) gm_trial_settle(w, k, false, no_density);
        else if (done < in.to && t->spent > 1.5 * affordable_again(w, k)) gm_trial_settle(w, k, false, unaffordable);
        else if (done == in.from) begin_measuring(w, k, move);
        else if (done == in.to) end_measuring(w, k, done, in.to - in.from);
        break;
    }
    case STAGE_ADAPTS: begin_check(w, k); break;
    case STAGE_CHECK: check(w, k); break;
    case STAGE_DONE: break;
    }
}

// What a chain takes in a sweep, as its last one left it.
void gm_trial_set_sweep(GmTrials *w, int chain, int k, long sweep)
{
    const Trial *t = &w->trial[k];
    GmSelected *c = &w->selected[chain * w->n + k];
    c->gradients = t->nuts && !c->fails;  // a Gibbs sweep leads to where the density is finite
    c->fails = 0;
    c->also = c->gradients && t->every && sweep % t->every == 0;
}

void gm_trials_after(GmTrials *w, int chain, long sweep)
{
    for (int k = 0; w && k < w->n; k++) {
        GmSelected *c = &w->selected[chain * w->n + k];
        c->work.gibbs_sweeps += !c->gradients || c->also;
        if (w->trial[k].stage != STAGE_DONE) gm_trial_keep(w, chain, k, sweep, NULL);
        gm_trial_set_sweep(w, chain, k, sweep + 1);
    }
}

// ---- meetings ----

long gm_trial_next(const GmTrials *w, long done)
{
    long next = LONG_MAX;
    for (int k = 0; k < w->n; k++) {
        const long at = next_of(w, k, done);
        next = at > done && at < next ? at : next;
    }
    return next;
}

void gm_trials_meet(GmTrials *w, long done)
{
    if (!w) return;
    for (int k = 0; k < w->n; k++) {
        if (w->trial[k].stage == STAGE_DONE || next_of(w, k, done - 1) != done) continue;
        meet(w, k, done);
        for (int chain = 0; chain < w->chains; chain++) gm_trial_set_sweep(w, chain, k, done);
    }
}
