// run.c -- a whole run: command line, data, memory, initial values, the sweeps, the files, the summary.
#include "device_inside.h"
#include "device_auto.h"
#include "../backends/linalg.h"
#include "../backends/nonzeros.h"
#include "../backends/sparse.h"
#include "relabel.h"
#include "after/after.h"
#include "why.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

// Everything a run holds, so that one function can give it back whichever way the run ends.
typedef struct Fit {
    const GmModel *model;
    int argc;
    char **argv;
    GmOptions options;
    GmData data;
    GmMemory memory;
    GmDraws draws;
    GmRun run;
    long *chain_kept;    // draws kept, by chain
    bool *chain_failed;  // its file could not be written
    bool derived;        // some column needs `derive`
    double sweep_seconds;
    double a_sweep;          // seconds of each sweep of the last batch
    long sweeps, first;      // made, and those of them before the run went on
    GmDevice *device;        // the GPU, or NULL
    GmRun turns;             // `map` of a program for modes on a GPU, which has the State of one chain: starts run one after the other
    double *update_seconds;  // --profile on the CPU
    GmNewData *new_data;     // of --new, or NULL
    GmMoments *moments;      // of --moments, or NULL
    GmTrials *selected;      // NULL: no methods to select from
    GmRestarts *restarts;    // NULL: chains stay where they are
    bool starts;             // HMC updates look for a start that has a density
    GmWhy why;
    GmOptions early_options;  // of --save-warmup: those of a run whose draws are the sweeps of warm-up
    GmDraws early;
    long *early_kept;  // by chain
    GmCheckpoint checkpoint;
    GmRecord record;
    GmStop stop;
    GmLive *live;  // of --status, or NULL
    int status;    // with which it has ended
    char *compared;           // `calibrate`: names of what has ranks, or NULL
    const struct Fit *truth;  // `calibrate`: whose state the data were drawn from, or NULL
    double truth_lp;          // the log joint density there
} Fit;

// What a run has besides data and options.
static void run_close(Fit *f)
{
    gm_device_close(f->device);
    free(f->update_seconds);
    gm_trials_close(f->selected);
    gm_restarts_close(f->restarts);
    gm_together_close(&f->run);
    gm_metrics_close(f->run.metrics);
    gm_netcdf_end(f->draws.netcdf);
    gm_draws_close(&f->draws);
    gm_draws_close(&f->early);
    gm_checkpoint_close(&f->checkpoint);
    gm_record_close(&f->record);
    free((char *)f->early_options.output);
    free(f->early_kept);
    gm_memory_close(&f->memory);
    free(f->run.check_log_q);
    free(f->run.check_size);
    free(f->run.check_ratios);
    free(f->chain_kept);
    free(f->chain_failed);
}

static void fit_close(Fit *f)
{
    gm_live_close(f->live, f->status);
    gm_new_data_close(f->new_data);
    gm_moments_close(f->moments);
    run_close(f);
    gm_data_close(&f->data, f->model);
    gm_why_close(&f->why);
    gm_options_close(&f->options);
    gm_levels_forget();
    free(f->compared);
}

static int before_move(GmRun *one, const GmHmc *of, void (*density)(GmRun *))
{
    Fit *f = one->host;
    gm_restarts_moves(f->restarts, one->chain, of);
    return f->starts ? gm_find_start(one, of, density) : 0;
}

// The state of a chain as the next draw of it. false: its file cannot be written, which was said.
static bool keep(Fit *f, GmRun *one, GmDraws *d, long at)
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
    Fit *f = one->host;
    const GmOptions *o = &f->options;
    const long sampled = one->sweep + 1 - o->warmup;
    gm_restarts_after(f->restarts, one);
    gm_trials_after(f->selected, one->chain, one->sweep);
    if (sampled == 1 && o->warmup == 0) gm_draws_begin(&f->draws, &f->run, f->selected, f->restarts, one->chain);
    if (f->chain_failed[one->chain] || gm_fault_raised()) return;
    if (f->early_kept && sampled <= 0 && (one->sweep + 1) % o->thin == 0) {
        const long kept = (one->sweep + 1) / o->thin;
        if (keep(f, one, &f->early, kept - 1)) f->early_kept[one->chain] = kept;
        else f->chain_failed[one->chain] = true;
    }
    if (f->options.stop_on_divergence && sampled > 0 && gm_stop_diverged(f->model, &f->memory, one->chain))
        gm_stop_note(&f->stop, sampled, one->chain);
    if (sampled <= 0 || sampled % o->thin) return;
    if (keep(f, one, &f->draws, sampled / o->thin - 1)) f->chain_kept[one->chain] = sampled / o->thin;
    else f->chain_failed[one->chain] = true;
}

// A sweep update by update, with the time of each (--profile on the CPU); then what follows a sweep.
static void timed_sweep(Fit *f)
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

static void profile_print(FILE *to, const Fit *f)
{
    for (int k = 0; k < f->model->n_data; k++) {
        const GmField *field = &f->model->data[k];
        const GmShape *s = &f->data.shape[k];
        if (field->rank != 2 || field->type == GM_INT) continue;
        long row;
        const GmNonzeros *few = gm_nonzeros_of(*(double **)((char *)f->data.data + field->offset), s->dim[1], &row);
        if (few)
            fprintf(to, "%s: %ld by %ld, %.3g%% of whose elements are not 0: only these are read\n", field->name, few->n, few->p,
                    100 * (double)few->first[few->n] / ((double)few->n * (double)few->p));
    }
    for (int k = 1; k <= gm_sparse_blocks(); k++)
        if (gm_sparse_route(k)) fprintf(to, "%s\n", gm_sparse_route(k));
    double total = 0;
    for (int k = 0; k < f->model->n_updates; k++) total += f->update_seconds[k];
    fprintf(to, "%-40s %12s %6s\n", "step", "us a sweep", "%");
    for (int k = 0; k < f->model->n_updates; k++)
        fprintf(to, "%-40s %12.2f %6.1f\n", f->model->update_name(k), 1e6 * f->update_seconds[k] / (double)f->sweeps,
                100 * f->update_seconds[k] / (total > 0 ? total : 1));
    fprintf(to, "%-40s %12.2f %6.1f\n", "all", 1e6 * total / (double)f->sweeps, 100.0);
}

// What a checkpoint is made of. All chains have made the same sweeps.
static GmCheckpointed checkpointed(Fit *f, bool enough)
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

static void write_checkpoint(Fit *f, bool enough)
{
    const GmCheckpointed all = checkpointed(f, enough);
    gm_checkpoint_write(&f->checkpoint, &all, &f->options);
}

// Before the first sweep of a run, or of what is left of it. false after a message.
static bool begin_or_go_on(Fit *f)
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
static int wants_to_end(Fit *f, long total, bool *enough)
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

static bool begin_netcdf(Fit *f)
{
    f->draws.netcdf = gm_netcdf_begin(&f->draws, f->early_kept ? &f->early : NULL);
    return f->draws.netcdf != NULL;
}

// Sweeps of warm-up that all chains have, of --save-warmup.
static void count_early(Fit *f)
{
    for (int c = 0; c < f->options.chains && f->early_kept; c++)
        if (c == 0 || f->early_kept[c] < f->early.kept) f->early.kept = f->early_kept[c];
}

// The sweeps up to where chains meet next, and their meeting. The next batch is longer or shorter by the time that this one took.
static void sweep_batch(Fit *f, GmProgress *progress, long total)
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
static int after_batch(Fit *f, GmProgress *progress, long total, bool *enough)
{
    int status = GM_EXIT_OK;
    f->draws.kept = f->chain_kept[0];
    for (int c = 0; c < f->options.chains; c++) {
        if (f->chain_kept[c] < f->draws.kept) f->draws.kept = f->chain_kept[c];
        if (f->chain_failed[c]) status = GM_EXIT_FAULT;
    }
    if (gm_fault_raised()) status = GM_EXIT_FAULT;
    else if (status == GM_EXIT_OK) status = wants_to_end(f, total, enough);
    count_early(f);
    const double before = gm_seconds();
    if (!gm_netcdf_take(f->draws.netcdf, false)) status = GM_EXIT_FAULT;
    if (f->draws.netcdf) gm_stop_packed(&f->stop, gm_seconds() - before, f->draws.kept);
    gm_live_at(f->live, f->run.sweep, f->draws.kept);
    gm_progress_show(progress, f->run.sweep);
    if (f->checkpoint.asked && status == GM_EXIT_OK && gm_seconds() - f->checkpoint.written >= f->checkpoint.every)
        write_checkpoint(f, *enough);
    return status;
}

// All sweeps, in batches of about a twentieth of a second: chains meet between batches only. Ends early on a fault, an
// interruption or a file that cannot be written; the status says which.
static int sample(Fit *f)
{
    const GmOptions *o = &f->options;
    const long total = o->why ? o->warmup + o->why_draw * o->thin - 1 : o->warmup + o->samples * o->thin;
    f->derived = f->model->derive && (gm_draws_need_derived(&f->draws, f->model) || gm_moments_need_derived(f->moments));
    GmProgress progress;
    gm_progress_open(&progress, o, total);
    int status = GM_EXIT_OK;
    const double started = f->draws.begun = f->draws.sampling = gm_seconds();
    if (!o->why) gm_outputs_clear(o);
    if (o->output && !o->why && o->format != GM_FORMAT_CSV && !begin_netcdf(f)) return GM_EXIT_FAULT;
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

// What is left of a run that ended early, in words.
static void explain_end(const Fit *f, int status)
{
    const GmOptions *o = &f->options;
    char *worst =
        status == GM_EXIT_FEW || status == GM_EXIT_APART ? gm_column_label(&f->draws, f->model, &f->memory, f->stop.worst, '[') : NULL;
    if (status == GM_EXIT_OK && gm_stop_rules(o))
        gm_note("enough after %ld draws per chain%s", f->draws.kept,
                f->stop.in_order ? ", with the components of each draw in order: their labels may be permuted" : "");
    else if (status == GM_EXIT_TIME)
        gm_error("--max-time %g: stopped after %ld sweeps; %ld draws per chain are kept", o->max_time, f->sweeps, f->draws.kept);
    else if (status == GM_EXIT_DIVERGED)
        gm_error("--stop-on-divergence: a transition of chain %d diverged in sweep %ld after warm-up; %ld draws per chain are kept",
                 o->first_chain + f->stop.chain, (long)f->stop.first, f->draws.kept);
    else if (status == GM_EXIT_FEW)
        gm_error("--until-ess %g: %s has a smaller effective sample size after %ld draws per chain; --samples N allows more", o->until_ess,
                 worst, f->draws.kept);
    else if (status == GM_EXIT_APART)
        gm_error("--until-rhat %g: R-hat of %s is larger after %ld draws per chain; --samples N allows more", o->until_rhat, worst,
                 f->draws.kept);
    else if (status != GM_EXIT_OK)
        gm_error("%s after %ld sweeps; %ld draws per chain are kept", status == GM_EXIT_INTERRUPTED ? "interrupted" : "stopped", f->sweeps,
                 f->draws.kept);
    free(worst);
}

// Whether all draws that there are to be are there, or those before the end that an option asks for.
static bool is_in_order(int status) { return status == GM_EXIT_OK || (status >= GM_EXIT_TIME && status <= GM_EXIT_APART); }

// A definition of data that is no number somewhere: names the element. (On a GPU the arrays are not here.)
static bool explain_definition(const Fit *f)
{
    const GmModel *model = f->model;
    for (int k = 0; k < model->n_state && !f->device; k++) {
        const GmField *field = &model->state[k];
        if (field->role != GM_SUM || !field->shared || !field->where || field->partial || field->type == GM_INT) continue;
        const GmShape *shape = &f->memory.shape[k];
        const double *x = gm_state_array(model, &f->memory, 0, k);
        for (long i = 0; i < gm_shape_size(shape); i++)
            if (!isfinite(x[i])) {
                char *name = gm_element_name(field->name, shape->rank, shape->dim, i);
                gm_error("  %s is %s (%s): that may be the cause, and with it the data that it is computed from", name,
                         isnan(x[i]) ? "NaN, not a number" : "infinite", field->where);
                free(name);
                return true;
            }
    }
    return false;
}

// After a fault: the factor that is 0 at the chain's state, if there is one, and what can be done in warm-up. Numbers whose squares no
// double holds make matrices and densities of them infinite, which the message of whatever fails then does not show.
static void explain_large(const Fit *f)
{
    static const double LARGE = 1e150;  // room for sums of squares
    for (int k = 0; k < f->model->n_data; k++) {
        const GmField *field = &f->model->data[k];
        const GmShape *s = &f->data.shape[k];
        const GmValue *v = field->type == GM_INT ? NULL : gm_values_find(&f->data.values, field->name);
        const long size = v ? gm_shape_size(s) : 0;
        for (long i = 0; i < size; i++) {
            const double x = ((const double *)v->elements)[i];
            if (!isfinite(x) || fabs(x) < LARGE) continue;
            char *name = gm_element_name(field->name, s->rank, s->dim, i);
            gm_error("  %s: %s = %.10g is so large that its square is no number: in other units it would be", v->source, name, x);
            free(name);
            return;
        }
    }
}

// What has no density at a chain's state: a matrix, a factor or, before the first sweep has ended, an observed value.
static void explain_place(const Fit *f, int chain, bool first)
{
    explain_large(f);
    char *zero = f->device ? NULL : gm_singular_matrix(f->model, &f->memory, chain);
    if (!zero && !f->device) zero = gm_zero_factor(f->model, &f->memory, &f->data, chain);
    if (!zero && !f->device && first) zero = gm_infinite_log_lik(f->model, &f->memory, &f->data, &f->run, chain);
    if (zero) gm_error("  there %s", zero);
    free(zero);
}

static void explain_fault(const Fit *f)
{
    if (!gm_fault_raised() || explain_definition(f)) return;
    explain_place(f, gm_fault_chain() - f->run.first_chain, gm_fault_sweep() == 0);
    if (gm_fault_sweep() < f->options.warmup)
        gm_error("  if the start is the cause: --init FILE gives the values to start from, --init R starts nearer to zero (1)%s",
                 f->device && gm_fault_sweep() == 0 ? "; --device cpu looks for other places" : "");
}

// Chains that have no density where they start, and find none in a sweep, begin where they have one. false after a message: there is none
// for one of them.
static bool begin_with_density(Fit *f)
{
    const int chain = gm_second_starts(f->model, &f->memory, &f->data, &f->options, &f->run);
    if (chain < 0) return true;
    gm_error("chain %d: no starting values with positive density were found, neither at %d random places nearer and nearer to zero nor by "
             "changes of the best of them. --init FILE gives values to start from; "
             "see whether the data can be",
             f->run.first_chain + chain + 1, GM_SECOND_STARTS);
    if (!explain_definition(f)) explain_place(f, chain, true);
    return false;
}

// Draws at which the density is 0, or no number, are no draws of the posterior: all of a chain are like that only if a factor is so
// whatever the unknowns are.
static bool impossible(const Fit *f)
{
    const GmDraws *d = &f->draws;
    for (int c = 0; c < d->chains && f->options.log_joint && d->kept > 0; c++) {
        if (d->possible[c]) continue;
        gm_error(
            "chain %d: lp__ is NaN or -infinity in all draws: the density is 0, or no number, at every state of the chain. These are no "
            "draws of the posterior",
            d->first_chain + c);
        explain_large(f);
        char *zero = f->device ? NULL : gm_zero_factor(f->model, &f->memory, &f->data, c);
        if (zero) gm_error("  there %s", zero);
        free(zero);
        return true;
    }
    return false;
}

// Where chains are slow, missing values that nothing else reads may be what holds them.
static void note_missing(FILE *to, const Fit *f)
{
    for (int k = 0; k < f->model->n_data; k++) {
        const GmField *y = &f->model->data[k];
        const long n = f->data.missing[k].count;
        if (y->may_be_left_out && n > 0)
            fprintf(to,
                    "%s has %ld missing value%s, which nothing else reads, and given which the unknowns are drawn as if %s been observed: "
                    "`infer { %s by marginal; }` in the model integrates them out, and what depends on them mixes faster.\n",
                    y->name, n, n > 1 ? "s" : "", n > 1 ? "they had" : "it had", y->name);
    }
}

// NAME_run.json, of a run that has draws; `rerun` compares them.
static int record(Fit *f, int status)
{
    const GmRecorded all = {.model = f->model,
                            .run = &f->run,
                            .draws = &f->draws,
                            .selected = f->selected,
                            .restarts = f->restarts,
                            .gpu = f->device ? f->device->name : NULL,
                            .sweeps = f->sweeps};
    if (f->draws.kept == 0 || !(is_in_order(status) || status == GM_EXIT_INTERRUPTED)) return status;
    if (!gm_record_write(&f->record, &all, &f->options, status)) return GM_EXIT_FAULT;
    return gm_rerun_same(&f->record) || status != GM_EXIT_OK ? status : GM_EXIT_CHECK;
}

// NAME_levels.json, where names were data.
static bool write_levels(const Fit *f)
{
    return !f->options.output || f->data.levels.n == 0 || gm_levels_write(&f->data.levels, f->model, f->options.output);
}

static void note_files(const GmOptions *o)
{
    if (o->format != GM_FORMAT_CSV) gm_note("draws: %s.nc", o->output);
    if (o->format != GM_FORMAT_NETCDF) gm_note("draws: %s_%d.csv%s", o->output, o->first_chain, o->chains > 1 ? ", ..." : "");
}

static int finish(Fit *f, int status)
{
    gm_fault_print(f->model, &f->memory, NULL);
    explain_fault(f);
    gm_stayed_note();
    count_early(f);
    if (f->early_kept && !gm_draws_finish(&f->early)) status = GM_EXIT_FAULT;
    if (!gm_draws_finish(&f->draws)) status = GM_EXIT_FAULT;
    if (f->draws.kept > 0 && !write_levels(f)) status = GM_EXIT_FAULT;
    const bool whole = gm_netcdf_finish(f->draws.netcdf);
    if (!whole) status = GM_EXIT_FAULT;
    if (whole || f->options.format != GM_FORMAT_NETCDF) explain_end(f, status);  // else nothing is kept, which was said
    if (is_in_order(status) && impossible(f)) status = GM_EXIT_FAULT;
    if (f->moments && f->draws.kept > 0 && f->options.output && !gm_moments_write(f->moments, f->options.output, f->options.digits))
        status = GM_EXIT_FAULT;
    status = record(f, status);
    FILE *const notes = f->options.summary_form == GM_SUMMARY_TEXT ? stdout : stderr;
    if (f->options.summary && f->draws.kept > 0 &&
        gm_summary_print(stdout, &f->draws, f->model, &f->memory, &f->options, &f->run) && !f->options.forward)
        note_missing(notes, f);
    if (f->options.summary && f->draws.kept > 0 && f->moments) gm_moments_print(notes, f->moments, &f->data.levels);
    if (f->options.summary && f->draws.kept > 0) gm_trials_print(notes, f->selected);
    if (f->options.summary && f->draws.kept > 0) gm_together_note(notes, &f->run, "");
    if (f->options.summary && f->draws.kept > 0) gm_metrics_print(notes, f->run.metrics, f->run.selected);
    if (f->options.summary && f->draws.kept > 0) gm_restarts_print(notes, f->restarts);
    if (f->device && f->device->profile && f->sweeps > 0) gm_device_profile_print(f->device, notes, f->sweeps);
    else if (f->update_seconds && f->sweeps > 0) profile_print(notes, f);
    if (f->options.profile && f->sweeps > 0) gm_device_predictions(notes, f->model, &f->options, &f->data);
    if (f->new_data && f->draws.kept > 0 && is_in_order(status) && !gm_new_data_take(f->new_data, notes, &f->options, &f->draws))
        status = gm_interrupted() ? GM_EXIT_INTERRUPTED : GM_EXIT_FAULT;
    if (f->options.quiet || f->sweeps == 0) return status;
    if (f->options.forward) f->first = f->sweeps;  // no sweeps were made
    if (f->options.output && f->draws.kept > 0 && (is_in_order(status) || status == GM_EXIT_INTERRUPTED)) note_files(&f->options);
    else if (!f->options.output) gm_note("the draws are not written to files; -o NAME does that");
    char median[60] = "";
    const double pace = f->device ? gm_device_pace(f->device) : 0;
    if (pace > 0) snprintf(median, sizeof median, " (median %.3g ms by the GPU's clock)", pace);
    const long made = f->sweeps - f->first;
    if (made > 0)
        gm_note("%ld sweeps of %d chain%s in %.3g s, %.3g ms each%s; seed %llu", made, f->options.chains, f->options.chains > 1 ? "s" : "",
                f->sweep_seconds, 1000 * f->sweep_seconds / (double)made, median, (unsigned long long)f->options.seed);
    return status;
}

// ---- draws without data ----

// `prior`: the draws, each by itself.
static int sample_prior(Fit *f)
{
    const GmOptions *o = &f->options;
    int status = GM_EXIT_OK;
    f->run.requests = 0;  // replicates are drawn with the unknowns
    f->derived = f->model->derive_chain && gm_draws_need_derived(&f->draws, f->model);
    f->draws.begun = f->draws.sampling = gm_seconds();
    gm_outputs_clear(o);
    if (o->output && o->format != GM_FORMAT_CSV && !begin_netcdf(f)) return GM_EXIT_FAULT;
    for (int c = 0; c < o->chains; c++) gm_draws_begin(&f->draws, &f->run, NULL, NULL, c);
    GmRun one = f->run;
    one.inner_threads = 1;
    char *outside = NULL;  // the first, if any
    for (long k = 0; k < o->samples && status == GM_EXIT_OK; k++) {
        for (one.chain = 0; one.chain < o->chains && status == GM_EXIT_OK; one.chain++) {
            one.sweep = k;
            if (!gm_forward_draw(f->model, &f->memory, &f->data, &one)) status = GM_EXIT_FAULT;
            else if (!keep(f, &one, &f->draws, k)) status = GM_EXIT_FAULT;
            if (gm_fault_raised()) status = GM_EXIT_FAULT;
            if (status == GM_EXIT_OK && !outside && o->requests & GM_REPLICATES)
                outside = gm_forward_outside(f->model, &f->memory, &f->data, one.chain);
        }
        if (status == GM_EXIT_OK) f->draws.kept = k + 1;
        if (!gm_netcdf_take(f->draws.netcdf, false)) status = GM_EXIT_FAULT;
        if (gm_interrupted()) status = GM_EXIT_INTERRUPTED;
    }
    f->sweeps = f->draws.kept;
    if (outside) gm_error("prior: responses are drawn beyond their declared bounds, which do not truncate their laws. %s", outside);
    free(outside);
    if (status == GM_EXIT_FAULT && gm_fault_raised()) {
        gm_fault_print(f->model, &f->memory, NULL);
        gm_forward_hint(f->model, &f->data);
        gm_fault_clear();
    }
    return status;
}

static int start(Fit *f);

static double in_state(const Fit *f, const GmColumn *c)
{
    const void *array = gm_state_array(f->model, &f->memory, 0, c->field);
    if (f->model->state[c->field].type != GM_INT) return ((const double *)array)[c->element];
    const int32_t x = ((const int32_t *)array)[c->element];
    return x == GM_MISSING_INT ? NAN : (double)x;
}

// `calibrate`: the run that draws forward as simulation number `sim`.
static GmRun forward_run(const Fit *f, long sim)
{
    GmRun one = f->run;
    one.inner_threads = 1;
    one.requests = 0;
    one.first_chain = (int)sim;
    return one;
}

// Parameters and data of a simulation, in the state.
static bool draw_forward(Fit *f, GmRun *one)
{
    const bool drawn = gm_forward_draw(f->model, &f->memory, &f->data, one);
    if (!drawn) {
        gm_fault_print(f->model, &f->memory, NULL);
        gm_forward_hint(f->model, &f->data);
    }
    return drawn && gm_forward_readable(f->model, &f->memory, &f->data, 0);
}

static void take_truth(Fit *f, GmRun *one, double *truth)
{
    if (f->model->derive_chain && gm_draws_need_derived(&f->draws, f->model)) f->model->derive_chain(one);
    for (long c = 0; c < f->draws.n_columns; c++) truth[c] = f->draws.column[c].field < 0 ? NAN : in_state(f, &f->draws.column[c]);
    if (f->model->restore_chain) f->model->restore_chain(one);
}

// The data of f are those of the simulation from here on.
static int simulate_once(void *of, long sim, double *truth)
{
    Fit *f = of;
    GmRun one = forward_run(f, sim);
    if (!draw_forward(f, &one)) return GM_EXIT_FAULT;
    // before definitions are computed, after which elements that no statement draws are 0
    for (int k = 0; k < f->model->n_data; k++)
        if (gm_is_drawn_response(f->model, k))
            gm_data_take_drawn(&f->data, f->model, k, gm_state_array(f->model, &f->memory, 0, f->model->data[k].imputed_field - 1));
    take_truth(f, &one, truth);
    return GM_EXIT_OK;
}

// A run with these data, in a process that ends afterwards: nothing is given back.
static int fit_once(void *of, long sim, long samples, int thin, double *truth, const double **draws)
{
    const Fit *from = of;
    Fit *f = gm_alloc(1, sizeof *f);
    *f = (Fit){.model = from->model, .options = from->options, .data = from->data, .truth = from, .truth_lp = NAN};
    f->options.forward = GM_FROM_DATA;
    f->options.samples = samples;
    f->options.thin = thin;
    f->options.first_chain = (int)sim + 1;
    f->options.threads = 1;
    gm_stop_open(&f->stop);
    const int status = start(f);
    if (status != GM_EXIT_OK || f->draws.kept < samples) return status == GM_EXIT_OK ? GM_EXIT_FAULT : status;
    for (long c = 0; c < f->draws.n_columns; c++)
        if (f->draws.column[c].field == GM_COLUMN_LP) truth[c] = f->truth_lp;
    *draws = f->draws.memory;
    return GM_EXIT_OK;
}

// The responses of a chain among all, as bytes from `at` on.
static char *responses_of(const Fit *f, const GmData *own, int k, long chain, size_t *bytes)
{
    *bytes = (size_t)gm_shape_size(&own->shape[k]) * gm_element_size(&f->model->data[k]);
    return (char *)own->of_chain[k] + (size_t)chain * *bytes;
}

// Responses as the simulation has drawn them are those of the data, which checks read, and of a chain; missing where they are so in the
// files.
static void take_responses(const Fit *f, GmData *own, long chain)
{
    for (int k = 0; k < f->model->n_data; k++) {
        if (!own->of_chain[k]) continue;
        const void *drawn = gm_state_array(f->model, &f->memory, 0, f->model->data[k].imputed_field - 1);
        gm_data_put_drawn(own, f->model, k, &own->missing[k], drawn);
        size_t bytes;
        char *to = responses_of(f, own, k, chain, &bytes);
        memcpy(to, gm_values_find(&own->values, f->model->data[k].name)->elements, bytes);
    }
}

// Simulates all; returns how many have data, one chain each.
static long simulate_all(Fit *f, const GmSimulations *s, GmData *own)
{
    long chains = 0;
    for (long k = 0; k < s->n && !gm_interrupted(); k++) {
        GmRun one = forward_run(f, s->first + k);
        double *truth = s->truth + k * f->draws.n_columns;
        s->status[k] = draw_forward(f, &one) ? GM_EXIT_OK : GM_EXIT_FAULT;
        gm_fault_clear();
        if (s->status[k] != GM_EXIT_OK) continue;
        take_responses(f, own, chains++);
        // before definitions are computed, after which elements that no statement draws are 0
        if (f->model->setup && f->options.log_joint) f->model->setup(&one);  // sums of these responses
        const double lp = f->options.log_joint ? f->model->log_joint(&one, 0) : NAN;
        take_truth(f, &one, truth);
        for (long c = 0; c < f->draws.n_columns; c++)
            if (f->draws.column[c].field == GM_COLUMN_LP) truth[c] = lp;
    }
    for (int k = 0; k < f->model->n_data && chains > 0; k++) {  // checks read the first chain's
        size_t bytes;
        if (own->of_chain[k]) gm_data_put_drawn(own, f->model, k, &own->missing[k], responses_of(f, own, k, 0, &bytes));
    }
    return chains;
}

// All simulations as chains of one run, on the device of the options. Method selection, restarts of chains and adaptation in common take
// chains for draws of one posterior, and here they have other data: Gibbs updates, unless --method names another method, each chain by
// itself.
static int fit_all(void *of, const GmSimulations *s, long samples, int thin)
{
    Fit *from = of;
    const GmModel *model = from->model;
    GmData own = from->data;
    own.missing = own.missing_in_files;
    own.missing_in_files = NULL;
    own.of_chain = gm_alloc((size_t)model->n_data + 1, sizeof *own.of_chain);
    for (int k = 0; k < model->n_data; k++)
        if (gm_is_drawn_response(model, k) && model->data[k].imputed_field)
            own.of_chain[k] = gm_alloc((size_t)s->n * (size_t)gm_shape_size(&own.shape[k]) + 1, gm_element_size(&model->data[k]));
    Fit f = {.model = model, .options = from->options, .data = own, .truth = from, .truth_lp = NAN};
    f.options.forward = GM_FROM_DATA;
    f.options.device = f.options.as_chains_on;
    f.options.samples = samples;
    f.options.thin = thin;
    f.options.first_chain = (int)s->first + 1;
    f.options.chains = (int)simulate_all(from, s, &own);
    if (f.options.method == GM_METHOD_AUTO && model->n_selections > 0) f.options.method = GM_METHOD_GIBBS;
    if (f.options.moves == GM_TRAJECTORIES_AUTO) f.options.moves = GM_TRAJECTORIES_NUTS;  // each chain adapts to its data
    gm_stop_open(&f.stop);
    int status = gm_interrupted() ? GM_EXIT_INTERRUPTED : f.options.chains > 0 ? start(&f) : GM_EXIT_FAULT;
    const long columns = from->draws.n_columns, each = samples * columns;
    if (status == GM_EXIT_OK && f.draws.kept < samples) status = GM_EXIT_FAULT;
    for (long k = 0, chain = 0; k < s->n && status == GM_EXIT_OK; k++)
        if (s->status[k] == GM_EXIT_OK) memcpy(s->draws + k * each, f.draws.memory + each * chain++, (size_t)each * sizeof *s->draws);
    for (int k = 0; k < model->n_data; k++) free(own.of_chain[k]);
    free(own.of_chain);
    run_close(&f);
    omp_set_num_threads(1);
    return status;
}

// The log joint density of the simulated data and the values that they follow from.
static void density_of_truth(Fit *f)
{
    const GmModel *model = f->model;
    if (!f->options.log_joint) return;
    for (int k = 0; k < model->n_state; k++) {
        const GmField *field = &model->state[k];
        const int source = field->role == GM_IMPUTED ? gm_data_of_imputed(model, k) : -1;
        if (field->part_of || !(gm_is_unknown(field->role) || (source >= 0 && f->data.missing[source].count > 0))) continue;
        memcpy(gm_state_array(model, &f->memory, 0, k), gm_state_array(model, &f->truth->memory, 0, k),
               (size_t)gm_shape_size(&f->memory.shape[k]) * gm_size_of_element(field->type));
    }
    if (model->setup) model->setup(&f->run);
    f->truth_lp = model->log_joint(&f->run, 0);
}

enum { SMALL = 100 };  // larger arrays of latents are compared on request only

// Parameters, small definitions and latents, separated by commas; the caller frees.
static char *compared_names(const Fit *f)
{
    char *all = gm_copy_text("");
    for (int k = 0; k < f->model->n_state; k++) {
        const GmField *field = &f->model->state[k];
        const bool small = gm_shape_size(&f->memory.shape[k]) <= SMALL;
        bool made = false;
        for (int j = 0; j < f->model->n_state; j++) made |= f->model->state[j].part_of == k + 1;
        if (made || field->on_request ||
            !(field->role == GM_PARAMETER || ((field->role == GM_LATENT || field->role == GM_DERIVED) && small)))
            continue;
        char *more = gm_format("%s%s%s", all, *all ? "," : "", field->name);
        free(all);
        all = more;
    }
    return all;
}

// Missing values of a response with bounds lie between them, which forward simulation does not know: it draws without bounds.
static bool may_be_calibrated(const Fit *f)
{
    for (int k = 0; k < f->model->n_data; k++) {
        const GmField *field = &f->model->data[k];
        const GmShape *s = &f->data.shape[k];
        if (!gm_is_drawn_response(f->model, k) || field->type == GM_INT || !f->data.missing_in_files[k].count ||
            !(isfinite(s->lower) || isfinite(s->upper)))
            continue;
        gm_error("calibrate: %s has missing values and bounds, between which they lie: simulated data are not so. Give data without "
                 "missing values, or only the sizes",
                 field->name);
        return false;
    }
    return true;
}

// Chains call components that have no order as they like: where they are called otherwise than in the truth, ranks say nothing.
static void tell_without_order(const Fit *f)
{
    char *names = gm_copy_text("");
    for (int k = 0; k < f->model->n_state; k++) {
        bool stored = false;
        for (long c = 0; c < f->draws.n_columns; c++) stored |= f->draws.column[c].field == k;
        if (!stored || !gm_depends_on_labels(f->model, &f->memory, &f->data, k)) continue;
        char *more = gm_format("%s%s%s", names, *names ? ", " : "", f->model->state[k].name);
        free(names);
        names = more;
    }
    if (*names)
        gm_error("calibrate: no ranks of %s: components have no order, and a chain may call them otherwise than the simulation did. "
                 "Definitions that do not depend on it have ranks",
                 names);
    free(names);
}

static int calibrate(Fit *f)
{
    const GmModel *model = f->model;
    if (!may_be_calibrated(f)) return GM_EXIT_USAGE;
    tell_without_order(f);
    bool *compared = gm_alloc((size_t)f->draws.n_columns, sizeof *compared);
    const char **label = gm_alloc((size_t)f->draws.n_columns, sizeof *label);
    for (long c = 0; c < f->draws.n_columns; c++) {
        const int k = f->draws.column[c].field;
        label[c] = gm_column_label(&f->draws, model, &f->memory, c, '[');
        compared[c] = k == GM_COLUMN_LP || (k >= 0 && model->state[k].role != GM_DIAGNOSTIC &&
                                                   !gm_depends_on_labels(model, &f->memory, &f->data, k));
    }
    const GmCalibrated all = {.of = f,
                              .columns = f->draws.n_columns,
                              .label = label,
                              .compared = compared,
                              .simulate = simulate_once,
                              .fit = fit_once,
                              .fit_all = f->options.as_chains ? fit_all : NULL};
    const int status = gm_calibrate(&all, model, &f->options);
    for (long c = 0; c < f->draws.n_columns; c++) free((char *)label[c]);
    free(label);
    free(compared);
    return status;
}

// Options of the runs that `calibrate` makes, which have no files.
static void settle_calibrate(Fit *f)
{
    GmOptions *o = &f->options;
    o->chains = 1;
    o->summary = true;  // draws stay in memory
    o->log_joint = o->log_joint && f->model->joint_as_written;
    o->refresh = 0;
    o->ranks = o->output;
    o->output = NULL;
}

static bool open_data(Fit *f)
{
    GmOptions *o = &f->options;
    if (f->truth) return true;  // they are there
    if (!o->forward) return gm_data_open(&f->data, f->model, o->inputs, o->n_inputs, NULL);
    char **inputs = gm_alloc((size_t)o->n_inputs + 1, sizeof *inputs);
    int n = 0;
    for (int i = 0; i < o->n_inputs; i++)
        if (o->forward != GM_SIMULATE || !gm_forward_is_parameter(f->model, o->inputs[i])) inputs[n++] = o->inputs[i];
    const bool good = gm_data_open_forward(&f->data, f->model, inputs, n);
    free(inputs);
    return good;
}

static int sample_and_finish(Fit *f)
{
    const int status = f->options.forward == GM_PRIOR ? sample_prior(f) : sample(f);
    if (f->truth) return status == GM_EXIT_FAULT ? (gm_fault_print(f->model, &f->memory, NULL), status) : status;
    if (status == GM_EXIT_USAGE) return status;  // then nothing was begun, which was said
    const int done = finish(f, status);
    if (!f->options.relabel || !is_in_order(done) || f->draws.kept == 0) return done;
    const int relabelled = gm_relabel_run(f->model, &f->options);
    return done == GM_EXIT_OK && relabelled != GM_EXIT_OK ? GM_EXIT_FAULT : done;
}

// Is the CPU no answer?
static bool gpu_asked(const GmOptions *o) { return o->device == GM_ON_GPU || (o->precision_given && o->precision != GM_DOUBLE); }

// The device that --device asks for. f->device stays NULL on the CPU. GM_EXIT_OK, or another status after a message.
static GmExit choose_device(Fit *f)
{
    GmOptions *o = &f->options;
    if (o->device == GM_ON_CPU || o->check) return GM_EXIT_OK;
    if (o->map && !f->model->for_modes) {
        if (o->device == GM_ON_GPU)
            gm_error("map: ascents along gradients are made on the CPU. gmc --method em %s makes a program that iterates on a GPU, where "
                     "the model has latents",
                     f->model->source);
        return o->device == GM_ON_GPU ? GM_EXIT_USAGE : GM_EXIT_OK;
    }
    const bool asked = gpu_asked(o);
    if (f->model->cpu_only) {
        if (asked) gm_error("--%s: %s", o->device == GM_ON_GPU ? "device gpu" : "precision", f->model->cpu_only);
        return asked ? GM_EXIT_DEVICE : GM_EXIT_OK;
    }
    char why[1000], line[1100] = "";
    GmExit status;
    if (!asked && gm_device_auto(f->model, &f->data, &f->memory, o, o->map ? NULL : &f->draws, &f->run, line, sizeof line) == GM_ON_CPU) {
        if (*line) gm_note("%s", line);
        return GM_EXIT_OK;
    }
    f->turns = f->run;
    f->turns.chains = 1;
    f->device = gm_device_open(f->model, &f->data, &f->memory, o, o->map ? NULL : &f->draws, o->map ? &f->turns : &f->run, &status, why,
                               sizeof why);
    if (f->device && *line) gm_note("%s", line);
    if (f->device) return GM_EXIT_OK;
    if (asked) gm_error("--%s: %s", o->device == GM_ON_GPU ? "device gpu" : "precision", why);
    else gm_note("on the CPU: %s", why);
    return asked ? status : GM_EXIT_OK;
}

// --compare-devices: the CPU begins where the GPU does.
static int compare_devices(Fit *f)
{
    if (f->model->cpu_only) {
        gm_error("--compare-devices: %s", f->model->cpu_only);
        return GM_EXIT_DEVICE;
    }
    char why[1000];
    GmExit status;
    GmRun on_cpu = f->run, on_gpu = f->run;
    on_cpu.like_gpu = true;
    f->options.precision = GM_DOUBLE;
    f->options.profile = false;
    f->device = gm_device_open(f->model, &f->data, &f->memory, &f->options, NULL, &on_gpu, &status, why, sizeof why);
    if (!f->device) {
        gm_error("--compare-devices: %s", why);
        return status;
    }
    if (f->model->setup) {
        f->model->setup(&on_cpu);
        f->model->setup(&on_gpu);
    }
    return gm_device_compare(f->device, f->model, &on_gpu, &on_cpu, &f->memory);
}

// A size that the compiler made is negative: of a slice, which what the data have to meet names.
static bool negative_size(Fit *f)
{
    if (!f->memory.negative) return false;
    GmRun asking = f->run;
    asking.only_asking = 1;
    asking.inner_threads = 1;
    if (f->model->setup) f->model->setup(&asking);
    if (gm_fault_raised()) gm_fault_print(f->model, &f->memory, &f->data);
    else gm_error("data: a size that follows from them comes out as %ld", f->memory.negative);
    return true;
}

// `why`: the sweeps before that of the draw, and then this one.
static int look_again(Fit *f)
{
    const int status = sample(f);
    if (status == GM_EXIT_OK) return gm_why(&f->why, f->model, &f->run, &f->memory, &f->options);
    gm_fault_print(f->model, &f->memory, NULL);
    explain_end(f, status);
    return status;
}

// Settings of HMC need something that is drawn by it; else a message.
static bool hmc_possible(const GmModel *model, const GmOptions *o)
{
    bool any = !o->adapt_delta && !o->max_treedepth;
    for (int f = 0; f < model->n_state; f++) any |= model->state[f].role == GM_DIAGNOSTIC;
    if (!any)
        gm_error("--%s: no unknown of this program is drawn by HMC; gmc --method nuts %s makes one",
                 o->adapt_delta ? "adapt-delta" : "max-treedepth", model->source);
    return any;
}

// --save-warmup: the files that sweeps of warm-up go to, as draws of a run without one.
static bool early_open(Fit *f)
{
    const GmOptions *o = &f->options;
    if (!o->save_warmup || o->check || o->compare_devices) return true;
    f->early_options = *o;
    f->early_options.output = gm_format("%s_warmup", o->output);
    f->early_options.samples = o->warmup / o->thin;
    f->early_options.warmup = 0;
    f->early_options.summary = false;
    f->early_options.n_new_inputs = 0;
    f->early_options.moments = NULL;
    const bool quiet = gm_quiet;
    gm_quiet = true;  // what is to be said of the columns was said of those of the draws
    const bool good = gm_draws_open(&f->early, f->model, &f->memory, &f->data, &f->early_options);
    gm_quiet = quiet;
    f->early.of_warmup = true;
    f->early_kept = gm_alloc((size_t)o->chains, sizeof *f->early_kept);
    return good;
}

static int threads_of(const GmOptions *o) { return o->forward == GM_CALIBRATE ? 1 : o->threads; }  // processes have none of their own

// What is asked for is settled, and the data and the memory are opened.
static GmExit open_inputs(Fit *f)
{
    const GmModel *model = f->model;
    GmOptions *o = &f->options;
    if (o->check || o->compare_devices) o->output = (free((char *)o->output), NULL);
    if (model->for_modes && !o->map && !o->compare_devices) {
        gm_error("this program looks for modes: FIT map ... Without --method em, gmc %s makes one that draws", model->source);
        return GM_EXIT_USAGE;
    }
    if (o->forward && !gm_forward_possible(model, o)) return GM_EXIT_USAGE;
    if (o->forward == GM_CALIBRATE) settle_calibrate(f);
    if (o->forward == GM_PRIOR) o->log_joint = false;
    omp_set_num_threads(threads_of(o));
    if (o->why && !gm_why_open(&f->why, model, o)) return GM_EXIT_USAGE;
    if (!gm_together_possible(model, o) || !hmc_possible(model, o) || !gm_relabel_possible(model, o) || (!f->truth && !gm_levels_ask(o)))
        return GM_EXIT_USAGE;
    if (!gm_checkpoint_open(&f->checkpoint, model, o) || !open_data(f) ||
        !gm_checkpoint_data(&f->checkpoint, model, &f->data) ||
        !gm_memory_open(&f->memory, model, &f->data, o->chains, o->forward ? GM_REPLICATES : o->requests, o->map))
        return GM_EXIT_USAGE;
    if (o->check) gm_sparse_checked();
    if (o->check || o->map || o->init_map) gm_rows_evaluated();
    if (o->forward == GM_PRIOR && !model->not_simulated && model->observed) o->requests = GM_REPLICATES;
    if (o->forward == GM_PRIOR && model->not_simulated) gm_note("prior: no responses are drawn. %s", model->not_simulated);
    char *names = o->forward == GM_CALIBRATE && !o->params ? compared_names(f) : NULL;
    if (names) o->params = f->compared = names;
    return GM_EXIT_OK;
}

// The run, at initial values or where a checkpoint left it.
static GmExit open_run(Fit *f)
{
    const GmModel *model = f->model;
    GmOptions *o = &f->options;
    f->chain_kept = gm_alloc((size_t)o->chains, sizeof *f->chain_kept);
    f->chain_failed = gm_alloc((size_t)o->chains, sizeof *f->chain_failed);
    f->run = (GmRun){.data = f->data.data,
                     .state = f->memory.state,
                     .state_size = model->state_size,
                     .chains = o->chains,
                     .first_chain = o->first_chain - 1,
                     .seed = o->forward ? gm_forward_seed(o->seed) : o->seed,
                     .threads = threads_of(o),
                     .missing = f->data.missing,
                     .own_responses = f->data.of_chain != NULL,
                     .warmup = o->warmup,
                     .accept = o->adapt_delta,
                     .depth = o->max_treedepth,
                     .auxiliaries = 1,
                     .requests = o->requests};
    f->run.check_log_q = gm_alloc((size_t)o->chains, sizeof *f->run.check_log_q);
    f->run.check_size = gm_alloc((size_t)o->chains, sizeof *f->run.check_size);
    f->run.check_ratios = gm_alloc((size_t)o->chains, sizeof *f->run.check_ratios);
    if (negative_size(f) || !gm_edges_good(model, &f->memory, &f->data) ||
        !(f->checkpoint.goes_on ? gm_checkpoint_memory(&f->checkpoint, &f->memory) : gm_initial(model, &f->memory, &f->data, o, &f->run)))
        return GM_EXIT_USAGE;
    return GM_EXIT_OK;
}

// The files that the run writes.
static GmExit open_outputs(Fit *f)
{
    const GmModel *model = f->model;
    GmOptions *o = &f->options;
    if (o->why && !gm_why_find(&f->why, model, &f->memory, &f->data, o)) return GM_EXIT_USAGE;
    const bool draws = !o->check && !o->map && o->forward != GM_SIMULATE;
    if (draws && !gm_draws_open(&f->draws, model, &f->memory, &f->data, o)) return GM_EXIT_USAGE;
    if (f->draws.column && o->output && o->format != GM_FORMAT_CSV && !(gm_netcdf_open() && gm_netcdf_may_hold(&f->draws)))
        return GM_EXIT_USAGE;
    if (o->moments && !(f->moments = gm_moments_open(model, &f->memory, o))) return GM_EXIT_USAGE;
    if (!early_open(f)) return GM_EXIT_USAGE;
    if (!o->check && o->n_new_inputs && !(f->new_data = gm_new_data_open(model, o, &f->data, &f->memory, &f->draws))) return GM_EXIT_USAGE;
    if (!f->truth && !gm_outputs_may_be_written(o, f->data.levels.n > 0))  // now all that is read is known
        return GM_EXIT_USAGE;
    f->run.auxiliaries = o->check || o->why || !f->draws.column || gm_draws_keep_auxiliaries(&f->draws, o->moments);
    gm_record_open(&f->record, o, f->argc, f->argv);
    f->draws.record = f->early.record = &f->record;
    return GM_EXIT_OK;
}

// What the run is, in a line.
static void announce(const Fit *f)
{
    const GmModel *model = f->model;
    const GmOptions *o = &f->options;
    if (f->device && o->map)
        gm_note("%s: %d start%s, seed %llu, on GPU %d (%s, %s precision)", model->name, o->chains, o->chains > 1 ? "s" : "",
                (unsigned long long)o->seed, f->device->ordinal, f->device->name, gm_precision_names[f->device->precision]);
    else if (f->device) {
        gm_note("%s: %d chain%s, seed %llu, on GPU %d (%s, %s precision)", model->name, o->chains, o->chains > 1 ? "s" : "",
                (unsigned long long)o->seed, f->device->ordinal, f->device->name, gm_precision_names[f->device->precision]);
        gm_device_note_memory(f->device);
    } else if (o->forward == GM_PRIOR)
        gm_note("%s: %ld independent draws from the prior in each of %d file%s, seed %llu", model->name, o->samples, o->chains,
                o->chains > 1 ? "s" : "", (unsigned long long)o->seed);
    else if (!o->map && !o->forward)
        gm_note("%s: %d chain%s, seed %llu", model->name, o->chains, o->chains > 1 ? "s" : "", (unsigned long long)o->seed);
}

// What is computed once of the data, on the device that draws.
static GmExit set_up(Fit *f)
{
    const GmModel *model = f->model;
    GmOptions *o = &f->options;
    if (o->profile && !f->device) f->update_seconds = gm_alloc((size_t)model->n_updates, sizeof *f->update_seconds);
    f->run.inner_threads = f->run.threads;
    gm_linalg_threads(f->run.threads);
    if (model->setup) model->setup(&f->run);
    if (f->device && o->map && !gm_fault_raised()) {
        if (model->setup) model->setup(&f->turns);
        if (!gm_device_settled(f->device, &f->turns)) return f->device->status;
    } else if (f->device && !gm_device_settled(f->device, &f->run)) {
        if (gpu_asked(o)) return f->device->status;
        gm_note("on the CPU instead");  // nothing was drawn yet
        gm_device_close(f->device);
        f->device = f->run.device = NULL;
        f->run.data = f->data.data;
        f->run.state = f->memory.state;
        if (model->setup) model->setup(&f->run);
    }
    if (gm_fault_raised()) {  // nothing was drawn yet: the data are to blame
        gm_fault_print(model, &f->memory, &f->data);
        explain_large(f);
        return GM_EXIT_USAGE;
    }
    return GM_EXIT_OK;
}

// Trials of methods, metrics, and starts with a density.
static bool open_methods(Fit *f)
{
    const GmModel *model = f->model;
    GmOptions *o = &f->options;
    if (!o->check) f->selected = gm_trials_open(model, &f->memory, &f->data, &f->draws, o, f->device != NULL);
    if (!gm_trials_allow(f->selected, model, o)) return false;
    f->run.selected = gm_trials_of(f->selected);
    f->draws.selected = f->selected;
    gm_together_open(&f->run, model, o);
    if (gm_together_selected(&f->run, model)) gm_trials_move_by(f->selected, "ChEES-HMC");
    if (!o->check) f->run.metrics = gm_metrics_open(model, &f->data, o->chains, f->device != NULL);
    gm_trials_know(f->selected, f->run.metrics);
    if (!o->check && !f->device && !f->run.together && !f->data.of_chain) f->restarts = gm_restarts_open(model, &f->memory, &f->data, o);
    f->starts = !(o->init_file || o->init_map);
    if (f->starts && !f->device && !o->check && !f->checkpoint.goes_on) {
        gm_find_starts_of_updates(model, &f->run);
        if (!begin_with_density(f)) return false;
    }
    f->run.instead = f->device || (!f->starts && !f->restarts) ? NULL : o->check ? gm_find_start : before_move;
    return true;
}

// The modes, or draws of the posterior, or the check of these.
static int find_or_draw(Fit *f)
{
    const GmModel *model = f->model;
    GmOptions *o = &f->options;
    if (f->truth && !f->data.of_chain) {
        density_of_truth(f);
        if (!gm_initial(model, &f->memory, &f->data, o, &f->run)) return GM_EXIT_USAGE;
        if (model->setup) model->setup(&f->run);
    }
    if (o->map) {
        const int found = gm_map(model, &f->run, f->device ? &f->turns : NULL, &f->memory, &f->data, o);
        return found == GM_EXIT_OK && !write_levels(f) ? GM_EXIT_FAULT : found;
    }
    if (o->init_map && !f->checkpoint.goes_on) {
        const int climbed = gm_map_starts(model, &f->run, &f->memory, &f->data, o);
        if (climbed != GM_EXIT_OK) return climbed;
    }
    if (!open_methods(f)) return GM_EXIT_USAGE;
    if (o->why) return look_again(f);
    return o->check ? gm_check_updates(model, &f->run, &f->data, &f->memory) : sample_and_finish(f);
}

// Data, memory and initial values; then the sweeps or the check.
static int start(Fit *f)
{
    const GmModel *model = f->model;
    GmOptions *o = &f->options;
    GmExit status = open_inputs(f);
    if (status == GM_EXIT_OK) status = open_run(f);
    if (status == GM_EXIT_OK && o->compare_devices) return compare_devices(f);
    if (status == GM_EXIT_OK) status = open_outputs(f);
    if (status != GM_EXIT_OK) return status;
    gm_signals_catch();
    status = choose_device(f);
    if (status != GM_EXIT_OK) return status;
    announce(f);
    status = set_up(f);
    if (status != GM_EXIT_OK) return status;
    gm_signals_wait();
    if (o->forward == GM_PRIOR) return sample_and_finish(f);
    if (o->forward == GM_SIMULATE) return gm_simulate(model, &f->memory, &f->data, o, &f->run);
    if (o->forward == GM_CALIBRATE) return calibrate(f);
    return find_or_draw(f);
}

int gm_fit(const GmModel *model, int argc, char **argv)
{
    Fit fit = {.model = model};
    gm_files_start();
    gm_fault_clear();
    if (argc > 1 && strcmp(argv[1], "relabel") == 0) return gm_printed(gm_relabel(model, argc - 1, argv + 1));
    if (argc > 1 && strcmp(argv[1], "predict") == 0) return gm_printed(gm_predict(model, argc - 1, argv + 1));
    int status = gm_about_draws(model, argc, argv);
    if (status >= 0) return gm_printed(status);
    if (argc > 1 && strcmp(argv[1], "rerun") == 0 && !gm_rerun_open(&fit.record, &argc, &argv)) {
        gm_record_close(&fit.record);
        return GM_EXIT_USAGE;
    }
    char **given = gm_alloc((size_t)argc + 1, sizeof *given);  // as it is: reading it changes the order
    memcpy(given, argv, (size_t)argc * sizeof *given);
    fit.argc = argc;
    fit.argv = given;
    status = gm_options(argc, argv, &fit.options);
    gm_quiet = fit.options.quiet;
    gm_stop_open(&fit.stop);
    if (status < 0 && fit.options.template) {
        gm_data_template(stdout, model);
        status = GM_EXIT_OK;
    } else if (status < 0) status = start(&fit);
    if (!gm_files_unchanged() && status == GM_EXIT_OK) status = GM_EXIT_FAULT;
    fit.status = status;
    fit_close(&fit);
    free(given);
    return gm_printed(status);
}
