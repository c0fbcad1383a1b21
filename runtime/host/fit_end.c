// fit_end.c -- what follows the sweeps: files, summary, notes.
#include "../backends/nonzeros.h"
#include "../backends/sparse.h"
#include "device_auto.h"
#include "device_inside.h"
#include "fields.h"
#include "fit_inside.h"

#include <stdlib.h>

static const char *size_text(char to[32], double bytes)
{
    if (bytes >= 1e6) return gm_device_size_text(to, bytes);
    snprintf(to, 32, bytes < 1e3 ? "%.0f bytes" : "%.3g kB", bytes < 1e3 ? bytes : bytes / 1e3);
    return to;
}

// What a sweep reads and writes lies here: the data once, and for each chain its unknowns and what is computed of them.
static void profile_device(FILE *to, const GmFit *f)
{
    double data = 0, chain = 0;
    for (int k = 0; k < f->model->n_data; k++)
        data += (double)gm_shape_size(&f->data.shape[k]) * (double)gm_element_size(&f->model->data[k]);
    for (int k = 0; k < f->model->n_state; k++)
        chain += (double)gm_shape_size(&f->memory.shape[k]) * (double)gm_element_size(&f->model->state[k]);
    char of_data[32], of_chain[32];
    fprintf(to, "device: %s; data: %s; each of %d chain%s: %s\n", f->device ? f->device->name : "CPU", size_text(of_data, data),
            f->options.chains, f->options.chains > 1 ? "s" : "", size_text(of_chain, chain));
}

static void profile_print(FILE *to, const GmFit *f)
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
    fprintf(to, "%-40s %12s %6s\n", "update", "us a sweep", "%");
    for (int k = 0; k < f->model->n_updates; k++)
        fprintf(to, "%-40s %12.2f %6.1f\n", f->model->update_name(k), 1e6 * f->update_seconds[k] / (double)f->sweeps,
                100 * f->update_seconds[k] / (total > 0 ? total : 1));
    fprintf(to, "%-40s %12.2f %6.1f\n", "all", 1e6 * total / (double)f->sweeps, 100.0);
}

// Where chains are slow, missing values that nothing else reads may be what holds them.
static void note_missing(FILE *to, const GmFit *f)
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

// Whether updates keep the posterior, which they do not where sums of data lose their digits. A run of no more than a moment affords a
// moment, a night two minutes.
static bool updates_are_right(GmFit *f)
{
    const double share = 0.02 * f->sweep_seconds, most = f->options.max_time > 0 ? 0.2 : 120;
    if (f->device || f->options.forward || f->sweeps == f->first || f->draws.kept == 0) return true;
    const double seconds = share < 0.02 ? 0.02 : share < most ? share : most;
    const double a_sweep = f->sweep_seconds / (double)(f->sweeps - f->first);  // that is made for it: a run of few affords none
    const GmChecked answer = a_sweep < seconds ? gm_check_after(f->model, &f->run, &f->memory, seconds - a_sweep) : GM_IS_NOT_ASKED;
    if (answer == GM_IS_WRONG) gm_data_tell_far(&f->data, f->model, GM_DATA_FAR, "  ", "");
    if (answer == GM_IS_NOT_ASKED) gm_data_tell_far(&f->data, f->model, GM_DATA_FAR, "Warning: ", ", and draws may be wrong");
    return answer != GM_IS_WRONG;
}

static bool has_draws(int status) { return gm_fit_in_order(status) || status == GM_EXIT_INTERRUPTED || status == GM_EXIT_CHECK; }

// NAME_run.json, of a run that has draws; `rerun` compares them.
static int record(GmFit *f, int status)
{
    const GmRecorded all = {.model = f->model,
                            .run = &f->run,
                            .draws = &f->draws,
                            .selected = f->selected,
                            .restarts = f->restarts,
                            .gpu = f->device ? f->device->name : NULL,
                            .sweeps = f->sweeps};
    if (f->draws.kept == 0 || !has_draws(status)) return status;
    if (!gm_record_write(&f->record, &all, &f->options, status)) return GM_EXIT_FAULT;
    return gm_rerun_same(&f->record) || status != GM_EXIT_OK ? status : GM_EXIT_CHECK;
}

bool gm_fit_write_levels(const GmFit *f)
{
    return !f->options.output || f->data.levels.n == 0 || gm_levels_write(&f->data.levels, f->model, f->options.output);
}

static void note_files(const GmOptions *o)
{
    if (o->format != GM_FORMAT_CSV) gm_note("draws: %s.nc", o->output);
    if (o->format != GM_FORMAT_NETCDF) gm_note("draws: %s_%d.csv%s", o->output, o->first_chain, o->chains > 1 ? ", ..." : "");
}

int gm_fit_finish(GmFit *f, int status)
{
    gm_fault_print(f->model, &f->memory, NULL);
    gm_fit_explain_fault(f);
    gm_stayed_note();
    gm_fit_count_early(f);
    if (f->early_kept && !gm_draws_finish(&f->early)) status = GM_EXIT_FAULT;
    if (!gm_draws_finish(&f->draws)) status = GM_EXIT_FAULT;
    if (f->draws.kept > 0 && !gm_fit_write_levels(f)) status = GM_EXIT_FAULT;
    const bool whole = gm_netcdf_finish(f->draws.netcdf);
    if (!whole) status = GM_EXIT_FAULT;
    if (whole || f->options.format != GM_FORMAT_NETCDF) gm_fit_explain_end(f, status);  // else nothing is kept, which was said
    if (gm_fit_in_order(status) && gm_fit_impossible(f)) status = GM_EXIT_FAULT;
    if (f->moments && f->draws.kept > 0 && f->options.output && !gm_moments_write(f->moments, f->options.output, f->options.digits))
        status = GM_EXIT_FAULT;
    if (gm_fit_in_order(status) && !updates_are_right(f)) status = GM_EXIT_CHECK;
    status = record(f, status);
    FILE *const notes = f->options.summary_form == GM_SUMMARY_TEXT ? stdout : stderr;
    if (f->options.summary && f->draws.kept > 0 && gm_summary_print(stdout, &f->draws, f->model, &f->memory, &f->options, &f->run) &&
        !f->options.forward)
        note_missing(notes, f);
    if (f->options.summary && f->draws.kept > 0 && f->moments) gm_moments_print(notes, f->moments, &f->data.levels);
    if (f->options.summary && f->draws.kept > 0) gm_trials_print(notes, f->selected);
    if (f->options.summary && f->draws.kept > 0) gm_together_note(notes, &f->run, "");
    if (f->options.summary && f->draws.kept > 0) gm_metrics_print(notes, f->run.metrics, f->run.selected);
    if (f->options.summary && f->draws.kept > 0) gm_restarts_print(notes, f->restarts);
    if (f->options.profile && f->sweeps > 0) profile_device(notes, f);
    if (f->device && f->device->profile && f->sweeps > 0) gm_device_profile_print(f->device, notes, f->sweeps);
    else if (f->update_seconds && f->sweeps > 0) profile_print(notes, f);
    if (f->options.profile && f->sweeps > 0) gm_device_predictions(notes, f->model, &f->options, &f->data);
    if (f->new_data && f->draws.kept > 0 && gm_fit_in_order(status) && !gm_new_data_take(f->new_data, notes, &f->options, &f->draws))
        status = gm_interrupted() ? GM_EXIT_INTERRUPTED : GM_EXIT_FAULT;
    if (f->options.quiet || f->sweeps == 0) return status;
    if (f->options.forward) f->first = f->sweeps;  // no sweeps were made
    if (f->options.output && f->draws.kept > 0 && has_draws(status)) note_files(&f->options);
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

void gm_fit_run_close(GmFit *f)
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
