// selection_lockstep.c -- trials of methods by chains that go together, on a GPU: what is watched of them, and when.
//
// Needs: rows that the device has written, GM_WATCHED at most between two meetings.     Gives: the same trials as chains of a CPU have.
#include <limits.h>
#include <math.h>
#include "../device/nuts.h"
#include "selection_inside.h"

static bool is_watched(const GmTrials *w, int k, long sweep)
{
    const Window in = gm_trial_measured(w, k);
    const Trial *t = &w->trial[k];
    return (t->stage == STAGE_NUTS && sweep >= t->from) || (t->stage == STAGE_CHECK && sweep >= w->selected[k].adapts) ||
           (sweep >= in.from && sweep < in.to);
}

// Rows between two meetings are GM_WATCHED at most.
static long next_in_step(const GmTrials *w, long done)
{
    long next = gm_trial_next(w, done);
    for (int k = 0; k < w->n; k++) {
        const Window in = gm_trial_measured(w, k);
        const long from = w->trial[k].stage == STAGE_CHECK ? w->selected[k].adapts : in.from;
        if (w->trial[k].stage == STAGE_DONE || w->trial[k].stage == STAGE_FIXED || w->trial[k].stage == STAGE_ADAPTS) continue;
        // wherever a batch ends, the same
        const long at = done < from ? from + GM_WATCHED : from + ((done - from) / GM_WATCHED + 1) * GM_WATCHED;
        next = at < next ? at : next;
    }
    return next;
}

bool gm_trials_due(const GmTrials *w, long done)
{
    return w && w->in_step && done > 0 && w->met != done && next_in_step(w, done - 1) == done;
}

long gm_trials_until(const GmTrials *w, long sweep, long batch)
{
    const long at = !w ? 0 : w->in_step ? next_in_step(w, sweep) : gm_trial_next(w, sweep);
    return w && sweep < at && batch > at - sweep ? at - sweep : batch;
}

// Numbers of a chain in a row: elements, and what transitions report.
enum { TRIAL_EVALUATIONS, TRIAL_DIVERGENT, TRIAL_FAILED, TRIAL_ENERGY, LISTED };

long gm_trials_columns(const GmTrials *w, GmWatched *out)
{
    long n = 0;
    for (int k = 0; k < w->n; k++) {
        if (!w->measures[k]) continue;
        const int machine = w->model->selections[k].machine - 1;
        const GmWatched listed[LISTED] = {{machine, offsetof(Nuts, evaluations) / sizeof(int32_t), GM_INT},
                                          {machine, offsetof(Nuts, divergent) / sizeof(int32_t), GM_INT},
                                          {machine, offsetof(Nuts, failed) / sizeof(int32_t), GM_INT},
                                          {machine, offsetof(Nuts, energy) / sizeof(wide), GM_WIDE}};
        for (int i = 0; i < w->elements[k]; i++, n++)
            if (out) out[n] = (GmWatched){(int)w->element[k][i][0], w->element[k][i][1], w->model->state[w->element[k][i][0]].type};
        for (int i = 0; i < LISTED; i++, n++)
            if (out) out[n] = listed[i];
    }
    return n;
}

bool gm_trials_watch(const GmTrials *w, long sweep)
{
    bool wanted = false;
    for (int k = 0; w && w->in_step && k < w->n; k++) wanted |= is_watched(w, k, sweep);
    return wanted;
}

uint64_t gm_trials_form(GmTrials *w, long sweep)
{
    uint64_t form = 0;
    for (int k = 0; w && k < w->n; k++) {
        for (int chain = 0; chain < w->chains; chain++) gm_trial_set_sweep(w, chain, k, sweep);
        const GmSelected *c = &w->selected[k];
        if (k < MOST_IN_STEP) form |= ((uint64_t)c->gradients | (uint64_t)c->also << 1 | (uint64_t)(c->first > 0) << 2) << BITS * k;
    }
    return form | (w ? w->plans << BITS * MOST_IN_STEP : 0);
}

static void take_row(GmTrials *w, int k, long sweep, const double *row, long apart)
{
    const double *listed = row + w->elements[k];
    double most = 0;
    if (!is_watched(w, k, sweep)) return;
    for (int chain = 0; chain < w->chains && w->trial[k].nuts; chain++) {
        const double *t = listed + chain * apart;
        gm_selected_moved(&w->selected[chain * w->n + k], (long)t[TRIAL_EVALUATIONS], t[TRIAL_DIVERGENT] != 0, t[TRIAL_FAILED] != 0,
                          t[TRIAL_ENERGY], t[TRIAL_EVALUATIONS] * gm_metrics_work(w->metrics, k + 1, chain));
        most = fmax(most, t[TRIAL_EVALUATIONS]);
    }
    for (int chain = 0; chain < w->chains; chain++) {
        GmSelected *c = &w->selected[chain * w->n + k];
        c->rounds += (long)most;
        c->fails = 0;  // chains in lockstep stay where they are
        gm_trial_keep(w, chain, k, sweep, row + chain * apart);
    }
}

void gm_trials_watched(GmTrials *w, long done, long n, const double *rows)
{
    const long apart = gm_trials_columns(w, NULL);
    w->met = done;
    for (int k = 0, at = 0; k < w->n; at += w->measures[k] ? w->elements[k] + LISTED : 0, k++)
        for (long i = 0; i < n && w->measures[k] && w->trial[k].stage != STAGE_DONE; i++)
            take_row(w, k, done - n + i, rows + i * apart * w->chains + at, apart);
    gm_trials_meet(w, done);
}
