// launch_updates.h -- the updates of a sweep, for all chains (launch.h), and gm_model of an emitted program.
#ifndef GM_LAUNCH_UPDATES_H
#define GM_LAUNCH_UPDATES_H

#include "launch_joint.h"
#include "launch_nuts.h"
#include "launch_rows.h"

// ---- scales with a joint normal integrated out ----
//
//   SCALES(run, density, var, tuning, proposed, selection, sparse, sweep, trial, {"tau", gm_of(tau), 0, INFINITY, 1}, ...)
//
// draws these before the joint normal whose density, together with all that holds them, `density` evaluates (scales.h); costs of a sweep
// without this and of a trial in multiply-adds, those of the sparse factor of joint normal number `sparse` not among them. proposed: all
// that is drawn is a proposal (proposals.h). On a GPU nothing is done.
#include "scales.h"

#define SCALES(run, density, variable, room, proposed, selection, sparse, sweep, trial, ...)                                               \
    do {                                                                                                                                   \
        gm_data(run);                                                                                                                      \
        const GmScaleOf gm_list[] = {__VA_ARGS__};                                                                                         \
        launch_scales(run, density, variable, gm_of(room), proposed, gm_selected(run, selection, 0) ? selection : 0, sparse, sweep, trial, \
                      gm_list, (int)(sizeof gm_list / sizeof *gm_list));                                                                   \
    } while (0)

// ---- all chains ----

GM_HOST_ONLY void all_chains(GmRun *run, void (*what)(GmRun *))
{
    if (run->device) {
        run->chain = 0;
        what(run);
        return;
    }
#if !defined(__CUDACC__)
    if (run->chain == GM_IN_STEP) {
        gm_linalg_threads(1);
        what(run);
        return;
    }
    gm_linalg_threads(run->threads <= run->chains ? 1 : run->threads);
    const int outer = run->checking ? 1 : run->threads < run->chains ? run->threads : run->chains;
    if (outer > 1 && run->threads <= run->chains) {
#pragma omp parallel for num_threads(outer) schedule(static, 1)
        for (int c = 0; c < run->chains; c++) {
            GmRun one = *run;
            one.chain = c;
            one.inner_threads = 1;
            what(&one);
        }
        return;
    }
    for (int c = 0; c < run->chains; c++) {
        GmRun one = *run;
        one.chain = c;
        one.inner_threads = run->threads;
        what(&one);
    }
#endif
}

// A batch of sweeps of one chain: chains wait for each other once a batch, not once a sweep.
GM_HOST_ONLY void sweep_batch(GmRun *one, void (*sweep)(GmRun *))
{
    const long batch = one->batch > 0 ? one->batch : 1;
    for (long k = 0; k < batch; k++, one->sweep++) {
        sweep(one);
        if (!one->after) continue;
        for (int c = one->chain < 0 ? 0 : one->chain; c < (one->chain < 0 ? one->chains : one->chain + 1); c++) {
            GmRun after = *one;
            after.chain = c;
            one->after(&after);
        }
    }
}

// An update: what it draws; and a function that launches its kernels, or the one kernel that it launches and the iterations that the
// kernel's team shares, 0 for a KERNEL_ONCE. There may be two methods for the same variables, NUTS and Gibbs updates: method selection
// decides between them (host/selection.c).
enum { GM_EVERY_SWEEP, GM_WITHOUT_GRADIENTS, GM_WITH_GRADIENTS, GM_ON_CPU, GM_ON_GPU };

typedef struct GmUpdate {
    const char *name;
    void (*launches)(GmRun *);
    const char *kernel_name;
    GmKernel kernel;
    long work;
    int when, selection, hmc, joint;
} GmUpdate;

#define UPDATE(name, launches)                                 \
    {                                                          \
        name, launches, NULL, NULL, 0, GM_EVERY_SWEEP, 0, 0, 0 \
    }
#define UPDATE_HMC(name, launches)                             \
    {                                                          \
        name, launches, NULL, NULL, 0, GM_EVERY_SWEEP, 0, 1, 0 \
    }
#define UPDATE_WITH_GRADIENTS(name, launches, selection)                  \
    {                                                                     \
        name, launches, NULL, NULL, 0, GM_WITH_GRADIENTS, selection, 1, 0 \
    }
#define UPDATE_WITHOUT_GRADIENTS(name, launches, selection)                  \
    {                                                                        \
        name, launches, NULL, NULL, 0, GM_WITHOUT_GRADIENTS, selection, 0, 0 \
    }
#define UPDATE_ON_CPU(name, launches)                     \
    {                                                     \
        name, launches, NULL, NULL, 0, GM_ON_CPU, 0, 0, 0 \
    }
#define UPDATE_ON_GPU(name, launches)                     \
    {                                                     \
        name, launches, NULL, NULL, 0, GM_ON_GPU, 0, 0, 0 \
    }
// Of variables that the joint normal number `joint` draws together if that is taken (sparse.h): this is its update, or, -joint, one in its
// place.
#define UPDATE_JOINT(name, launches, joint)                        \
    {                                                              \
        name, launches, NULL, NULL, 0, GM_EVERY_SWEEP, 0, 0, joint \
    }
#define UPDATE_JOINT_WITHOUT_GRADIENTS(name, launches, selection, joint)         \
    {                                                                            \
        name, launches, NULL, NULL, 0, GM_WITHOUT_GRADIENTS, selection, 0, joint \
    }
#define UPDATE_TEAM(name, kernel, work)                             \
    {                                                               \
        name, NULL, GM_NAMED(kernel), work, GM_EVERY_SWEEP, 0, 0, 0 \
    }
#define UPDATE_ONCE(name, kernel)                                \
    {                                                            \
        name, NULL, GM_NAMED(kernel), 0, GM_EVERY_SWEEP, 0, 0, 0 \
    }

// Whether updates in its place draw them.
#define IN_PLACE_OF(run, number) gm_sparse_replaced(number)
#define TAKES_GPU_UPDATES(run) ((run)->device || (run)->like_gpu || GM_LIKE_GPU)

#include "proposals.h"

GM_HOST_ONLY int gm_takes(const GmRun *run, const GmUpdate *update, int chain)
{
    if (run->seeking) return update->hmc;
    if (update->joint) {
        const int number = update->joint > 0 ? update->joint : -update->joint;
        if (update->joint > 0 ? !gm_sparse_taken(number) : !gm_sparse_replaced(number)) return 0;
    }
    if (update->when == GM_EVERY_SWEEP || run->checking == GM_CHECK_ALL) return 1;
    if (update->when == GM_ON_CPU || update->when == GM_ON_GPU) return (update->when == GM_ON_GPU) == TAKES_GPU_UPDATES(run);
    const GmSelected *const c = gm_selected(run, update->selection, chain);
    return (c && c->gradients) == (update->when == GM_WITH_GRADIENTS) || (c && c->also);
}

GM_HOST_ONLY void gm_take(GmRun *run, const GmUpdate *update)
{
    if (update->launches) update->launches(run);
    else if (update->work) launch_team(run, update->kernel_name, update->kernel, update->work);
    else launch_once(run, update->kernel_name, update->kernel);
}

// Chains in lockstep, of which some make this update.
GM_LAUNCHES gm_take_apart(GmRun *run, const GmUpdate *update)
{
    int takes = 0;
    for (int c = 0; c < run->chains; c++) takes += gm_takes(run, update, c);
    if (takes == run->chains) gm_take(run, update);
    else
        for (int c = 0; c < run->chains && takes; c++) {
            GmRun one = *run;
            one.chain = c;
            if (gm_takes(run, update, c)) gm_take(&one, update);
        }
}

GM_HOST_ONLY void take_updates(GmRun *run, const GmUpdate *update, int n)
{
    for (const GmUpdate *end = update + n; update < end; update++)
        if (run->chain == GM_IN_STEP && update->selection) gm_take_apart(run, update);
        else if (!run->device && run->chain >= 0 && gm_chain_ended(run)) return;
        else if (gm_takes(run, update, run->chain < 0 ? 0 : run->chain)) gm_take(run, update);
}

// What is done after a kept sweep, for all chains.
#define GM_FOR_DRAWS(stage) \
    static void gm_##stage(GmRun *run) { all_chains(run, stage); }

// The emitted program's gm_model. What follows the name and the file are other members of it.
#define GM_MODEL(model_name, file, ...)                                                                                             \
    GM_OF_PROGRAM                                                                                                                   \
    static void gm_batch(GmRun *one) { sweep_batch(one, sweep); }                                                                   \
    static void gm_sweep(GmRun *run)                                                                                                \
    {                                                                                                                               \
        GmRun all = *run;                                                                                                           \
        all.chain = run->chains > 1 && !run->checking && gm_model.row_bytes && gm_model.row_bytes(run) > GM_CACHE ? GM_IN_STEP : 0; \
        all.inner_threads = 1;                                                                                                      \
        if (run->device) gm_device_sweeps(run, sweep);                                                                              \
        else all_chains(&all, gm_batch);                                                                                            \
    }                                                                                                                               \
    static double gm_joint(GmRun *run, int chain)                                                                                   \
    {                                                                                                                               \
        GmRun one = *run;                                                                                                           \
        one.chain = chain;                                                                                                          \
        one.inner_threads = 1;                                                                                                      \
        joint(&one);                                                                                                                \
        return run->device ? gm_device_result(run, chain) : one.result;                                                             \
    }                                                                                                                               \
    static const char *gm_update_name(int k) { return updates[k].name; }                                                            \
    static void gm_update_of_chain(GmRun *run) { take_updates(run, &updates[run->update], 1); }                                     \
    static int gm_update_hmc(int k) { return updates[k].hmc; }                                                                      \
    static void gm_update(GmRun *run, int k)                                                                                        \
    {                                                                                                                               \
        run->update = k;                                                                                                            \
        all_chains(run, gm_update_of_chain);                                                                                        \
        if (gm_model.refresh && ANY_MISSING(run)) gm_model.refresh(run);                                                            \
    }                                                                                                                               \
    GM_C const GmModel gm_model = {.name = model_name,                                                                              \
                                   .source = file,                                                                                  \
                                   .data = data_fields,                                                                             \
                                   .n_data = GM_DATA_FIELDS,                                                                          \
                                   .data_size = sizeof(Data),                                                                       \
                                   .state = state_fields,                                                                           \
                                   .n_state = GM_STATE_FIELDS,                                                                        \
                                   .state_size = sizeof(State),                                                                     \
                                   .setup = setup,                                                                                  \
                                   .sweep = gm_sweep,                                                                               \
                                   .log_joint = gm_joint,                                                                           \
                                   .n_updates = GM_UPDATES,                                                                     \
                                   .update_name = gm_update_name,                                                                   \
                                   .update = gm_update,                                                                             \
                                   .update_hmc = gm_update_hmc,                                                                     \
                                   __VA_ARGS__};

#endif
