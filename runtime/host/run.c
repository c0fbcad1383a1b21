// run.c -- a whole run: command line, data, memory, initial values, the sweeps, the files, the summary.
#include "after/after.h"
#include "fit_inside.h"
#include "relabel.h"
#include "why.h"

#include <stdlib.h>
#include <string.h>

static void fit_close(GmFit *f)
{
    gm_live_close(f->live, f->status);
    gm_new_data_close(f->new_data);
    gm_moments_close(f->moments);
    gm_fit_run_close(f);
    gm_data_close(&f->data, f->model);
    gm_why_close(&f->why);
    gm_options_close(&f->options);
    gm_levels_forget();
    free(f->compared);
}

static int sample_and_finish(GmFit *f)
{
    const int status = f->options.forward == GM_PRIOR ? gm_fit_prior(f) : gm_fit_sample(f);
    if (f->truth) return status == GM_EXIT_FAULT ? (gm_fault_print(f->model, &f->memory, NULL), status) : status;
    if (status == GM_EXIT_USAGE) return status;  // then nothing was begun, which was said
    const int done = gm_fit_finish(f, status);
    if (!f->options.relabel || !gm_fit_in_order(done) || f->draws.kept == 0) return done;
    const int relabelled = gm_relabel_run(f->model, &f->options);
    return done == GM_EXIT_OK && relabelled != GM_EXIT_OK ? GM_EXIT_FAULT : done;
}

// `why`: the sweeps before that of the draw, and then this one.
static int look_again(GmFit *f)
{
    const int status = gm_fit_sample(f);
    if (status == GM_EXIT_OK) return gm_why(&f->why, f->model, &f->run, &f->memory, &f->options);
    gm_fault_print(f->model, &f->memory, NULL);
    gm_fit_explain_end(f, status);
    return status;
}

// The modes, or draws of the posterior, or the check of these.
static int find_or_draw(GmFit *f)
{
    const GmModel *model = f->model;
    GmOptions *o = &f->options;
    if (f->truth && !f->data.of_chain) {
        gm_fit_density_of_truth(f);
        if (!gm_initial(model, &f->memory, &f->data, o, &f->run)) return GM_EXIT_USAGE;
        if (model->setup) model->setup(&f->run);
    }
    if (o->map) {
        const int found = gm_map(model, &f->run, f->device ? &f->turns : NULL, &f->memory, &f->data, o);
        return found == GM_EXIT_OK && !gm_fit_write_levels(f) ? GM_EXIT_FAULT : found;
    }
    if (o->init_map && !f->checkpoint.goes_on) {
        const int climbed = gm_map_starts(model, &f->run, &f->memory, &f->data, o);
        if (climbed != GM_EXIT_OK) return climbed;
    }
    if (!gm_fit_open_methods(f)) return GM_EXIT_USAGE;
    if (o->why) return look_again(f);
    return o->check ? gm_check_updates(model, &f->run, &f->data, &f->memory) : sample_and_finish(f);
}

// Data, memory and initial values; then the sweeps or the check.
static int start(GmFit *f)
{
    const GmModel *model = f->model;
    GmOptions *o = &f->options;
    GmExit status = gm_fit_open_inputs(f);
    if (status == GM_EXIT_OK) status = gm_fit_open_run(f);
    if (status == GM_EXIT_OK && o->compare_devices) return gm_fit_compare_devices(f);
    if (status == GM_EXIT_OK) status = gm_fit_open_outputs(f);
    if (status != GM_EXIT_OK) return status;
    gm_signals_catch();
    status = gm_fit_choose_device(f);
    if (status != GM_EXIT_OK) return status;
    gm_fit_announce(f);
    status = gm_fit_set_up(f);
    if (status != GM_EXIT_OK) return status;
    gm_signals_wait();
    if (o->forward == GM_PRIOR) return sample_and_finish(f);
    if (o->forward == GM_SIMULATE) return gm_simulate(model, &f->memory, &f->data, o, &f->run);
    if (o->forward == GM_CALIBRATE) return gm_fit_calibrate(f);
    return find_or_draw(f);
}

int gm_fit(const GmModel *model, int argc, char **argv)
{
    GmFit fit = {.model = model, .start = start};
    gm_files_start();
    gm_fault_clear();
    if (argc > 1 && strcmp(argv[1], "relabel") == 0) return gm_printed(gm_relabel(model, argc - 1, argv + 1));
    if (argc > 1 && strcmp(argv[1], "predict") == 0) return gm_printed(gm_predict(model, argc - 1, argv + 1));
    int status = gm_about_draws(model, argc, argv);
    if (status >= 0) return gm_printed(status);
    if (argc > 1 && strcmp(argv[1], "rerun") == 0 && !gm_rerun_open(&fit.record, model, &argc, &argv)) {
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
