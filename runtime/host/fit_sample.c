// fit_sample.c -- the sweep loop: batches of sweeps, kept draws, checkpoints, and when the run ends.
#include "fit_inside.h"

#include <limits.h>

bool gm_fit_keep(GmFit *f, GmRun *one, GmDraws *d, long at)
{
    // first: `derive` makes elements that do not exist NaN
    const double lp = f->options.log_joint ? f->model->log_joint(one, one->chain) : 0;
    if (f->derived) f->model->derive_chain(one);
    const bool good = gm_draws_keep(d, f->model, &f->memory, one->chain, at, lp);
    if (f->derived && f->model->restore_chain) f->model->restore_chain(one);
    return good;
}

// After a sweep, by each chain for itself: a kept draw is computed and stored.
static void after_sweep(GmRun *one)
{
    GmFit *f = one->host;
    const GmOptions *o = &f->options;
    const long sampled = one->sweep + 1 - o->warmup;
    gm_restarts_after(f->restarts, one);
    gm_trials_after(f->selected, one->chain, one->sweep);
    if (sampled == 1 && o->warmup == 0) gm_draws_begin(&f->draws, &f->run, f->selected, f->restarts, one->chain);
    if (f->chain_failed[one->chain] || gm_fault_raised()) return;
    if (f->early_kept && sampled <= 0 && (one->sweep + 1) % o->thin == 0) {
        const long kept = (one->sweep + 1) / o->thin;
        if (gm_fit_keep(f, one, &f->early, kept - 1)) f->early_kept[one->chain] = kept;
        else f->chain_failed[one->chain] = true;
    }
    if (f->options.stop_on_divergence && sampled > 0 && gm_stop_diverged(f->model, &f->memory, one->chain))
        gm_stop_note(&f->stop, sampled, one->chain);
    if (sampled <= 0 || sampled % o->thin) return;
    if (gm_fit_keep(f, one, &f->draws, sampled / o->thin - 1)) f->chain_kept[one->chain] = sampled / o->thin;
    else f->chain_failed[one->chain] = true;
}

// A sweep update by update, with the time of each (--profile on the CPU); then what follows a sweep.
static void timed_sweep(GmFit *f)
{
    for (int k = 0; k < f->model->n_updates; k++) {
        const double before = gm_seconds();
        f->model->update(&f->run, k);
        f->update_seconds[k] += gm_seconds() - before;
    }
    for (int c = 0; c < f->options.chains; c++) {
        GmRun one = f->run;
        one.chain = c;
        one.inner_threads = 1;
        after_sweep(&one);
    }
}

// What a checkpoint is made of. All chains have made the same sweeps.
static GmCheckpointed checkpointed(GmFit *f, bool enough)
{
    return (GmCheckpointed){.enough = enough,
                            .memory = &f->memory,
                            .run = &f->run,
                            .selected = f->selected,
                            .restarts = f->restarts,
                            .draws = &f->draws,
                            .early = f->early_kept ? &f->early : NULL,
                            .kept = f->chain_kept[0],
                            .early_kept = f->early_kept ? f->early_kept[0] : 0};
}

static void write_checkpoint(GmFit *f, bool enough)
{
    const GmCheckpointed all = checkpointed(f, enough);
    gm_checkpoint_write(&f->checkpoint, &all, &f->options);
}

// Before the first sweep of a run, or of what is left of it. false after a message.
static bool begin_or_go_on(GmFit *f)
{
    const GmCheckpointed all = checkpointed(f, false);
    if (f->options.why) return true;
    if (!f->checkpoint.goes_on)
        for (int c = 0; c < f->options.chains && f->early_kept; c++) gm_draws_begin(&f->early, &f->run, f->selected, f->restarts, c);
    if (!gm_checkpoint_begin(&f->checkpoint, &all, &f->options)) return false;
    for (int c = 0; c < f->options.chains && f->checkpoint.goes_on; c++) {
        f->chain_kept[c] = f->checkpoint.kept;
        if (f->early_kept) f->early_kept[c] = f->checkpoint.early;
    }
    if (f->checkpoint.goes_on) {
        f->draws.kept = f->checkpoint.kept;
        gm_note("the run goes on after %ld sweeps, with %ld draws per chain", f->checkpoint.sweeps, f->checkpoint.kept);
    }
    return true;
}

// After a batch without a fault: whether the run ends here, by the status; enough: the rules have what they want.
static int wants_to_end(GmFit *f, long total, bool *enough)
{
    const GmOptions *o = &f->options;
    const long first = f->stop.first;
    if (gm_interrupted()) return GM_EXIT_INTERRUPTED;
    if (o->stop_on_divergence && first < LONG_MAX) {  // of all chains the draws up to it, wherever batches end
        if (first / o->thin < f->draws.kept) f->draws.kept = first / o->thin;
        return GM_EXIT_DIVERGED;
    }
    *enough = gm_stop_enough(&f->stop, f->model, &f->memory, o, &f->draws);
    const bool over = gm_stop_left(o) <= gm_stop_ending(&f->stop, o, &f->draws);
    return !*enough && f->run.sweep < total && over ? GM_EXIT_TIME : GM_EXIT_OK;
}

bool gm_fit_begin_netcdf(GmFit *f)
{
    f->early.netcdf = f->draws.netcdf = gm_netcdf_begin(&f->draws, f->early_kept ? &f->early : NULL);
    f->early.pass_on = f->draws.pass_on = gm_netcdf_take;
    return f->draws.netcdf != NULL;
}

void gm_fit_count_early(GmFit *f)
{
    for (int c = 0; c < f->options.chains && f->early_kept; c++)
        if (c == 0 || f->early_kept[c] < f->early.kept) f->early.kept = f->early_kept[c];
}

// The sweeps up to where chains meet next, and their meeting. The next batch is longer or shorter by the time that this one took.
static void sweep_batch(GmFit *f, GmProgress *progress, long total)
{
    const GmOptions *o = &f->options;
    if (f->run.batch > total - f->run.sweep) f->run.batch = total - f->run.sweep;
    const long batch = f->run.batch;
    // warm-up ends with a batch, too
    f->run.batch = gm_progress_until(progress, f->run.sweep,
                                     f->run.sweep < o->warmup && o->warmup - f->run.sweep < batch ? o->warmup - f->run.sweep : batch);
    f->run.batch = gm_netcdf_until(f->draws.netcdf, f->run.sweep, gm_stop_until(o, f->run.sweep, f->run.batch));
    f->run.batch =
        gm_together_until(&f->run, gm_restarts_until(f->restarts, f->run.sweep, gm_trials_until(f->selected, f->run.sweep, f->run.batch)));
    // no batch passes the end of --max-time by more than a sweep, nor the first one that writes draws
    const double left = gm_stop_left(o) - gm_stop_ending(&f->stop, o, &f->draws), sweeps = left / f->a_sweep;
    if (o->max_time > 0 && (f->run.sweep == o->warmup || sweeps < (double)f->run.batch))
        f->run.batch = sweeps > 1 && f->run.sweep != o->warmup ? (long)sweeps : 1;
    if (f->moments && f->run.sweep >= o->warmup) f->run.batch = 1;  // chains meet after each kept sweep
    const double before = gm_seconds();
    if (f->update_seconds) {
        f->run.batch = 1;
        timed_sweep(f);
    } else {
        f->model->sweep(&f->run);
    }
    f->run.sweep += f->run.batch;
    f->a_sweep = (gm_seconds() - before) / (double)f->run.batch;
    const long sampled = f->run.sweep - o->warmup;
    if (f->moments && sampled > 0 && sampled % o->thin == 0 && !gm_fault_raised()) gm_moments_take(f->moments);
    gm_trials_meet(f->selected, f->run.sweep);
    gm_restarts_meet(f->restarts, &f->run, f->run.sweep);
    gm_together_meet(&f->run, f->model, f->run.sweep);
    for (int c = 0; c < o->chains && f->run.sweep == o->warmup; c++) gm_draws_begin(&f->draws, &f->run, f->selected, f->restarts, c);
    f->run.batch = batch;
    const double took = gm_seconds() - before;
    if (took < 0.05 && f->run.batch < 100000) f->run.batch *= 2;
    else if (took > 0.2 && f->run.batch > 1) f->run.batch /= 2;
}

// What is kept by now, and whether the run goes on.
static int after_batch(GmFit *f, GmProgress *progress, long total, bool *enough)
{
    int status = GM_EXIT_OK;
    f->draws.kept = f->chain_kept[0];
    for (int c = 0; c < f->options.chains; c++) {
        if (f->chain_kept[c] < f->draws.kept) f->draws.kept = f->chain_kept[c];
        if (f->chain_failed[c]) status = GM_EXIT_FAULT;
    }
    if (gm_fault_raised()) status = GM_EXIT_FAULT;
    else if (status == GM_EXIT_OK) status = wants_to_end(f, total, enough);
    gm_fit_count_early(f);
    const double before = gm_seconds();
    if (!gm_netcdf_take(f->draws.netcdf, false)) status = GM_EXIT_FAULT;
    if (f->draws.netcdf) gm_stop_packed(&f->stop, gm_seconds() - before, f->draws.kept);
    gm_live_at(f->live, f->run.sweep, f->draws.kept);
    gm_progress_show(progress, f->run.sweep);
    if (f->checkpoint.asked && status == GM_EXIT_OK && gm_seconds() - f->checkpoint.written >= f->checkpoint.every)
        write_checkpoint(f, *enough);
    return status;
}

int gm_fit_sample(GmFit *f)
{
    const GmOptions *o = &f->options;
    const long total = o->why ? o->warmup + o->why_draw * o->thin - 1 : o->warmup + o->samples * o->thin;
    f->derived = f->model->derive && (gm_draws_need_derived(&f->draws, f->model) || gm_moments_need_derived(f->moments));
    GmProgress progress;
    gm_progress_open(&progress, o, total);
    int status = GM_EXIT_OK;
    const double started = f->draws.begun = f->draws.sampling = gm_seconds();
    if (!o->why) gm_outputs_clear(o);
    if (o->output && !o->why && o->format != GM_FORMAT_CSV && !gm_fit_begin_netcdf(f)) return GM_EXIT_FAULT;
    if (f->device) {
        status = gm_device_sample(f->device, &f->run, &f->draws, o, f->selected, &progress, &f->sweeps);
        f->sweep_seconds = gm_seconds() - started;
        gm_progress_close(&progress);
        return status;
    }
    f->run.host = f;
    f->run.after = after_sweep;
    f->run.batch = 1;
    f->run.sweep = 0;
    if (!begin_or_go_on(f)) return GM_EXIT_USAGE;
    f->live = gm_live_open(f->model, o, &f->draws, f->run.sweep, total, f->draws.kept);
    // a run that goes on may have ended so
    bool enough = f->run.sweep > o->warmup && gm_stop_enough(&f->stop, f->model, &f->memory, o, &f->draws);
    const long first = f->first = progress.first = f->run.sweep;
    while (f->run.sweep < total && status == GM_EXIT_OK && !enough) {
        sweep_batch(f, &progress, total);
        status = after_batch(f, &progress, total, &enough);
    }
    if (status == GM_EXIT_OK && !enough && gm_stop_rules(o)) status = f->stop.lacks_ess || o->until_rhat <= 0 ? GM_EXIT_FEW : GM_EXIT_APART;
    if (f->checkpoint.asked && f->run.sweep > first && status != GM_EXIT_FAULT && status != GM_EXIT_DIVERGED) write_checkpoint(f, enough);
    gm_live_stop(f->live);
    f->sweeps = f->run.sweep;
    f->sweep_seconds = gm_seconds() - started;
    gm_progress_close(&progress);
    return status;
}
