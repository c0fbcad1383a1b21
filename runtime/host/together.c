// together.c -- chains that adapt together (device/chees.h): which HMC updates they are, where chains meet on a CPU, what is reported.
//
// On a CPU a chain leaves what the others have to know of an HMC update in its own memory; chains meet after each sweep of warm-up from the
// first that they share on, and one thread adapts for all, in the order of coordinates and chains: the draws do not depend on the number of
// threads. On a GPU kernels do this within the sweep (device_moves.c). After warm-up nobody waits.
#include "messages.h"
#include "warmup.h"
#include "../device/chees.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// chains from which on they adapt together by default: with fewer, NUTS is as good (docs/performance.md)
enum {
    ENOUGH_ON_GPU = 32,
    CHUNK = 256,  // coordinates whose sums are added at a time
    WORTH_THREADS = 20000
};  // coordinates of all chains

// HMC updates: all, or all but those under method selection.
static int count_hmc(const GmModel *model, bool with_selected, GmTogether *out)
{
    int n = 0;
    for (int f = 0; f < model->n_state; f++) {
        bool left_out = model->state[f].role != GM_DIAGNOSTIC;
        for (int k = 0; k < model->n_selections && !with_selected; k++) left_out |= model->selections[k].diagnostics == f + 1;
        if (left_out) continue;
        if (out) out[n] = (GmTogether){.diagnostics = model->state[f].offset};
        n++;
    }
    return n;
}

bool gm_together_possible(const GmModel *model, const GmOptions *o)
{
    const bool by_name = o->moves == GM_TRAJECTORIES_AUTO && model->by_chees;
    if (o->check || o->map || o->compare_devices || !(by_name || o->moves == GM_TRAJECTORIES_CHEES)) return true;
    char *who = by_name ? gm_format("%s by chees", model->by_chees) : gm_copy_text("--moves chees");
    if (count_hmc(model, false, NULL) == 0)
        gm_error("%s: no unknown of this program is drawn by HMC in every sweep. Compile it with `gmc --method nuts`, or ask for it "
                 "in the model: `infer { (a, b) by chees; }`",
                 who);
    else if (o->chains < CHEES_CHAINS)
        gm_error("%s: chains adapt the length of trajectories together, and %d %s too few: take --chains %d or more, or "
                 "--moves nuts",
                 who, o->chains, o->chains == 1 ? "is" : "are", CHEES_CHAINS);
    else if (o->warmup < CHEES_WARMUP)
        gm_error("%s: step size, length of trajectories and metric are adapted in warm-up, and %ld sweeps are too few: take --warmup %d or "
                 "more, or --moves nuts",
                 who, o->warmup, CHEES_WARMUP);
    else {
        free(who);
        return true;
    }
    free(who);
    return false;
}

void gm_together_open(GmRun *run, const GmModel *model, const GmOptions *o)
{
    const bool many = run->device && o->chains >= ENOUGH_ON_GPU && o->warmup >= CHEES_WARMUP;
    run->together_mode = o->check || o->compare_devices || o->moves == GM_TRAJECTORIES_NUTS ? GM_APART
                         : o->moves == GM_TRAJECTORIES_CHEES                                ? GM_TOGETHER
                         : many                                                             ? GM_TOGETHER_UNLESS_NAMED
                                                                                            : GM_TOGETHER_BY_NAME;
    const bool with_selected = run->device && gm_trials_warmup(o->warmup) >= CHEES_WARMUP &&
                               (run->together_mode == GM_TOGETHER || run->together_mode == GM_TOGETHER_UNLESS_NAMED);
    run->n_together = count_hmc(model, with_selected, NULL);
    if (run->together_mode == GM_APART || run->n_together == 0 || (run->together_mode == GM_TOGETHER_BY_NAME && !model->by_chees)) {
        run->n_together = 0;
        return;
    }
    run->together = gm_alloc((size_t)run->n_together, sizeof *run->together);
    count_hmc(model, with_selected, run->together);
}

bool gm_together_selected(const GmRun *run, const GmModel *model)
{
    for (int i = 0; i < run->n_together; i++)
        for (int k = 0; k < model->n_selections; k++)
            if (run->together[i].diagnostics == model->state[model->selections[k].diagnostics - 1].offset) return true;
    return false;
}

int gm_goes_together(GmRun *run, const GmHmc *of)
{
    bool found = false;
    if (!run->together || of->steps || run->checking) return 0;
    for (int k = 0; k < run->n_together; k++) found |= run->together[k].diagnostics == of->diagnostics;
    if (!found) return 0;
    if ((run->together_mode == GM_TOGETHER_BY_NAME && of->by != GM_BY_CHEES) ||
        (run->together_mode == GM_TOGETHER_UNLESS_NAMED && of->by == GM_BY_NUTS))
        return 0;
    for (int k = 0; k < run->n_together && run->chain <= 0; k++)  // one chain reports it for all
        if (run->together[k].diagnostics == of->diagnostics) {
            run->together[k].of = *of;
            run->together[k].made = 1;
        }
    return 1;
}

// ---- meetings ----

long gm_together_until(const GmRun *run, long batch)
{
    const long alone = chees_alone(run->warmup), apart = chees_apart(run->warmup);
    if (!run->together || run->device || run->sweep >= run->warmup) return batch;
    const long most = run->sweep < alone ? alone - run->sweep : run->sweep < apart ? apart - run->sweep : 1;
    return batch < most ? batch : most;
}

// A chunk of coordinates; sums: CHEES_SUMS of each chain.
static void make_chunk(const Chees *w, long first, double *sums)
{
    for (long i = first; i < w->n && i < first + CHUNK; i++) {
        const CheesCentre at = chees_coordinate(w, i);
        for (int c = 0; c < w->chains && chees_goes(w); c++) chees_add(w, i, c, &at, sums + (size_t)c * CHEES_SUMS);
    }
}

static void adapt(const Chees *w, int threads)
{
    const long chunks = (w->n + CHUNK - 1) / CHUNK, size = (long)w->chains * CHEES_SUMS;
    double *sums = gm_alloc((size_t)(chunks * size), sizeof *sums);
#pragma omp parallel for num_threads(threads) schedule(static) if (w->n * w->chains > WORTH_THREADS)
    for (long k = 0; k < chunks; k++) make_chunk(w, k * CHUNK, sums + k * size);
    for (long k = 1; k < chunks; k++)
        for (long e = 0; e < size; e++) sums[e] += sums[k * size + e];
    chees_adapt(w, sums, CHEES_SUMS);
    free(sums);
}

void gm_together_meet(GmRun *run, const GmModel *model, long done)
{
    for (int k = 0; k < run->n_together && !run->device && chees_meets(done - 1, run->warmup); k++) {
        GmTogether *t = &run->together[k];
        const Chees w = {.states = run->state,
                         .size = model->state_size,
                         .machine = t->of.machine,
                         .n = t->of.coordinates,
                         .chains = run->chains,
                         .sweep = done - 1,
                         .warmup = run->warmup,
                         .target = t->of.accept};
        if (!t->made) continue;
        adapt(&w, run->threads);
        if (done >= chees_apart(run->warmup)) gm_together_learned(t, chees_machine(&w, 0)->step, chees_machine(&w, 0)->length.log_time);
    }
}

// ---- what came of it ----

void gm_together_learned(GmTogether *t, double step, double log_time)
{
    t->step = step;
    t->time = exp(log_time);
}

void gm_together_note(FILE *to, const GmRun *run, const char *before)
{
    for (int k = 0; k < run->n_together; k++) {
        const GmTogether *t = &run->together[k];
        if (t->made && t->step > 0)
            fprintf(to,
                    "%s%s: drawn by HMC of %d chains that adapt together (ChEES); step size %.3g, trajectories of length %.3g, %.1f "
                    "leapfrog steps on average\n",
                    before, t->of.name, run->chains, t->step, t->time, t->time / t->step < 1 ? 1 : t->time / t->step);
    }
}

// `of` is what the next sweep says of itself, but for its name.
void gm_together_save(GmRun *run, GmSaved *s)
{
    for (int k = 0; k < run->n_together; k++) {
        GmTogether *t = &run->together[k];
        GM_SAVED(s, t->made);
        GM_SAVED(s, t->step);
        GM_SAVED(s, t->time);
        char *name = gm_saved_text(s, t->made ? t->of.name : NULL);
        if (name) t->of.name = t->own_name = name;
    }
}

void gm_together_close(GmRun *run)
{
    for (int k = 0; k < run->n_together; k++) free(run->together[k].own_name);
    free(run->together);
    run->together = NULL;
    run->n_together = 0;
}
