// fit_open.c -- what a run needs before its first sweep: data, memory, initial values, files, the device, the methods.
#include "../backends/linalg.h"
#include "../backends/sparse.h"
#include "device_auto.h"
#include "fit_inside.h"
#include "relabel.h"

#include <omp.h>
#include <stdlib.h>

static bool open_data(GmFit *f)
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

// Is the CPU no answer?
static bool gpu_asked(const GmOptions *o) { return o->device == GM_ON_GPU || (o->precision_given && o->precision != GM_DOUBLE); }

// Data and latents in single precision have seven digits, which data far from zero and near to each other lose by being stored.
static bool is_too_far_for(const GmFit *f, const char *lead)
{
    return f->options.precision != GM_DOUBLE &&
           gm_data_tell_far(&f->data, f->model, GM_DATA_FAR, lead,
                            ", as single precision stores seven (--precision double stores sixteen)");
}

GmExit gm_fit_choose_device(GmFit *f)
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
    if (asked && is_too_far_for(f, o->device == GM_ON_GPU ? "--device gpu: " : "--precision: ")) return GM_EXIT_USAGE;
    char why[1000], line[1100] = "";
    GmExit status;
    if (!asked && gm_device_auto(f->model, &f->data, &f->memory, o, o->map ? NULL : &f->draws, &f->run, line, sizeof line) == GM_ON_CPU) {
        if (*line) gm_note("%s", line);
        return GM_EXIT_OK;
    }
    if (!asked && is_too_far_for(f, "on the CPU: ")) return GM_EXIT_OK;
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

int gm_fit_compare_devices(GmFit *f)
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
static bool negative_size(GmFit *f)
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
static bool early_open(GmFit *f)
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

GmExit gm_fit_open_inputs(GmFit *f)
{
    const GmModel *model = f->model;
    GmOptions *o = &f->options;
    if (o->check || o->compare_devices) o->output = (free((char *)o->output), NULL);
    if (model->for_modes && !o->map && !o->compare_devices) {
        gm_error("this program looks for modes: FIT map ... Without --method em, gmc %s makes one that draws", model->source);
        return GM_EXIT_USAGE;
    }
    if (o->forward && !gm_forward_possible(model, o)) return GM_EXIT_USAGE;
    if (o->forward == GM_CALIBRATE) gm_fit_settle_calibrate(f);
    if (o->forward == GM_PRIOR) o->log_joint = false;
    omp_set_num_threads(threads_of(o));
    if (o->why && !gm_why_open(&f->why, model, o)) return GM_EXIT_USAGE;
    if (!gm_together_possible(model, o) || !hmc_possible(model, o) || !gm_relabel_possible(model, o) || (!f->truth && !gm_levels_ask(o)))
        return GM_EXIT_USAGE;
    if (!gm_checkpoint_open(&f->checkpoint, model, o) || !open_data(f) || !gm_checkpoint_data(&f->checkpoint, model, &f->data) ||
        !gm_memory_open(&f->memory, model, &f->data, o->chains, o->forward ? GM_REPLICATES : o->requests, o->map))
        return GM_EXIT_USAGE;
    if (o->check) gm_sparse_checked();
    if (o->check || o->map || o->init_map) gm_rows_evaluated();
    if (o->forward == GM_PRIOR && !model->not_simulated && model->observed) o->requests = GM_REPLICATES;
    if (o->forward == GM_PRIOR && model->not_simulated) gm_note("prior: no responses are drawn. %s", model->not_simulated);
    char *names = o->forward == GM_CALIBRATE && !o->params ? gm_fit_compared_names(f) : NULL;
    if (names) o->params = f->compared = names;
    return GM_EXIT_OK;
}

GmExit gm_fit_open_run(GmFit *f)
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

GmExit gm_fit_open_outputs(GmFit *f)
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

void gm_fit_announce(const GmFit *f)
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
        gm_data_tell_far(&f->data, model, GM_DATA_FAR, "Warning: ", ", and draws may be wrong");
    } else if (o->forward == GM_PRIOR)
        gm_note("%s: %ld independent draws from the prior in each of %d file%s, seed %llu", model->name, o->samples, o->chains,
                o->chains > 1 ? "s" : "", (unsigned long long)o->seed);
    else if (!o->map && !o->forward) {
        gm_note("%s: %d chain%s, seed %llu", model->name, o->chains, o->chains > 1 ? "s" : "", (unsigned long long)o->seed);
        gm_data_tell_far(&f->data, model, GM_DATA_VERY_FAR, "Warning: ",
                         ", and where a scale of effects is near zero some draws may be wrong");
    }
}

GmExit gm_fit_set_up(GmFit *f)
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
        gm_fit_explain_large(f);
        return GM_EXIT_USAGE;
    }
    return GM_EXIT_OK;
}

static int before_move(GmRun *one, const GmHmc *of, void (*density)(GmRun *))
{
    GmFit *f = one->host;
    gm_restarts_moves(f->restarts, one->chain, of);
    return f->starts ? gm_find_start(one, of, density) : 0;
}

bool gm_fit_open_methods(GmFit *f)
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
        if (!gm_fit_begin_with_density(f)) return false;
    }
    f->run.instead = f->device || (!f->starts && !f->restarts) ? NULL : o->check ? gm_find_start : before_move;
    return true;
}
