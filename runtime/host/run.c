// run.c -- a whole run: command line, data, memory, initial values, the sweeps, the files, the summary.
#include "host.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

// Everything a run holds, so that one function can give it back whichever way the run ends.
typedef struct Fit {
    const GmModel *model;
    GmOptions      options;
    GmData         data;
    GmMemory       memory;
    GmDraws        draws;
    GmRun          run;
    long          *chain_kept;      // draws kept, by chain
    bool          *chain_failed;    // its file could not be written
    bool           derived;         // some column needs `derive`
    double         sweep_seconds;
    long           sweeps;
} Fit;

static void fit_close(Fit *f)
{
    gm_draws_close(&f->draws);
    gm_memory_close(&f->memory);
    gm_data_close(&f->data, f->model);
    gm_options_close(&f->options);
    free(f->run.check_log_q);
    free(f->chain_kept);
    free(f->chain_failed);
}

// After a sweep, by each chain for itself: a kept draw is computed and stored.
static void after_sweep(GmRun *one)
{
    Fit *f = one->host;
    const GmOptions *o = &f->options;
    const long sampled = one->sweep + 1 - o->warmup;
    if (sampled <= 0 || sampled % o->thin || f->chain_failed[one->chain] || gm_fault_raised())
        return;
    if (f->derived)
        f->model->derive_chain(one);
    const double lp = o->log_joint ? f->model->log_joint(one, one->chain) : 0;
    if (gm_draws_keep(&f->draws, f->model, &f->memory, one->chain, sampled / o->thin - 1, lp))
        f->chain_kept[one->chain] = sampled / o->thin;
    else
        f->chain_failed[one->chain] = true;
}

// All sweeps, in batches of about a twentieth of a second: chains meet between batches only. Ends early on a fault, an
// interruption or a file that cannot be written; the status says which.
static int sample(Fit *f)
{
    const GmOptions *o = &f->options;
    const long total = o->warmup + o->samples * o->thin;
    f->derived = f->model->derive && gm_draws_need_derived(&f->draws, f->model);
    GmProgress progress;
    gm_progress_open(&progress, o, total);
    int status = GM_EXIT_OK;
    const double started = gm_seconds();
    f->run.host = f;
    f->run.after = after_sweep;
    f->run.batch = 1;
    for (f->run.sweep = 0; f->run.sweep < total && status == GM_EXIT_OK;) {
        if (f->run.batch > total - f->run.sweep)
            f->run.batch = total - f->run.sweep;
        const double before = gm_seconds();
        f->model->sweep(&f->run);
        f->run.sweep += f->run.batch;
        if (gm_seconds() - before < 0.05 && f->run.batch < 100000)
            f->run.batch *= 2;
        f->draws.kept = f->chain_kept[0];
        for (int c = 0; c < o->chains; c++) {
            if (f->chain_kept[c] < f->draws.kept)
                f->draws.kept = f->chain_kept[c];
            if (f->chain_failed[c])
                status = GM_EXIT_FAULT;
        }
        if (gm_fault_raised())
            status = GM_EXIT_FAULT;
        else if (gm_interrupted() && status == GM_EXIT_OK)
            status = GM_EXIT_INTERRUPTED;
        gm_progress_show(&progress, f->run.sweep);
    }
    f->sweeps = f->run.sweep;
    f->sweep_seconds = gm_seconds() - started;
    gm_progress_close(&progress);
    return status;
}

// What is left of a run that ended early, in words.
static void explain_end(const Fit *f, int status)
{
    if (status != GM_EXIT_OK)
        gm_error("%s after %ld sweeps; %ld draws per chain are kept", status == GM_EXIT_INTERRUPTED ? "interrupted" : "stopped", f->sweeps,
                 f->draws.kept);
}

static int finish(Fit *f, int status)
{
    gm_fault_print();
    if (!gm_draws_finish(&f->draws))
        status = GM_EXIT_FAULT;
    explain_end(f, status);
    if (f->options.summary && f->draws.kept > 0)
        gm_summary_print(stdout, &f->draws, f->model, &f->memory, &f->options);
    if (f->options.quiet || f->sweeps == 0)
        return status;
    if (f->options.output && f->draws.kept > 0 && status != GM_EXIT_FAULT)
        gm_note("draws: %s_%d.csv%s", f->options.output, f->options.first_chain, f->options.chains > 1 ? ", ..." : "");
    else if (!f->options.output)
        gm_note("the draws are not written to files; -o NAME does that");
    gm_note("%ld sweeps of %d chain%s in %.3g s, %.3g ms each; seed %llu", f->sweeps, f->options.chains, f->options.chains > 1 ? "s" : "",
            f->sweep_seconds, 1000 * f->sweep_seconds / (double)f->sweeps, (unsigned long long)f->options.seed);
    return status;
}

// Data, memory and initial values; then the sweeps or the check.
static int start(Fit *f)
{
    const GmModel *model = f->model;
    GmOptions *o = &f->options;
    if (o->check)
        o->output = (free((char *)o->output), NULL);
    omp_set_num_threads(o->threads);
    if (!gm_data_open(&f->data, model, o->inputs, o->n_inputs) || !gm_memory_open(&f->memory, model, &f->data, o->chains))
        return GM_EXIT_USAGE;
    f->chain_kept = gm_alloc((size_t)o->chains, sizeof *f->chain_kept);
    f->chain_failed = gm_alloc((size_t)o->chains, sizeof *f->chain_failed);
    f->run = (GmRun){ .data = f->data.data, .state = f->memory.state, .chains = o->chains, .first_chain = o->first_chain - 1,
                      .seed = o->seed, .threads = o->threads, .missing = f->data.missing, .warmup = o->warmup };
    f->run.check_log_q = gm_alloc((size_t)o->chains, sizeof *f->run.check_log_q);
    if (!gm_initial(model, &f->memory, &f->data, o, &f->run))
        return GM_EXIT_USAGE;
    if (!o->check && !gm_draws_open(&f->draws, model, &f->memory, &f->data, o))
        return GM_EXIT_USAGE;
    gm_signals_catch();
    gm_note("%s: %d chain%s, seed %llu", model->name, o->chains, o->chains > 1 ? "s" : "", (unsigned long long)o->seed);
    if (model->setup)
        model->setup(&f->run);
    if (gm_fault_raised()) {                 // nothing was drawn yet: the data are to blame
        gm_fault_print();
        return GM_EXIT_USAGE;
    }
    return o->check ? gm_check_steps(model, &f->run) : finish(f, sample(f));
}

int gm_fit(const GmModel *model, int argc, char **argv)
{
    Fit fit = { .model = model };
    gm_fault_clear();
    int status = gm_options(argc, argv, &fit.options);
    gm_quiet = fit.options.quiet;
    if (status < 0)
        status = start(&fit);
    fit_close(&fit);
    if (fflush(stdout) != 0 && status == GM_EXIT_OK)
        status = GM_EXIT_FAULT;
    return status;
}
