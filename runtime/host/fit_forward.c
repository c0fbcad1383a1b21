// fit_forward.c -- draws without data: `prior`, and the simulations of `calibrate` with a run for each.
#include "fields.h"
#include "fit_inside.h"
#include "label_order.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

int gm_fit_prior(GmFit *f)
{
    const GmOptions *o = &f->options;
    int status = GM_EXIT_OK;
    f->run.requests = 0;  // replicates are drawn with the unknowns
    f->derived = f->model->derive_chain && gm_draws_need_derived(&f->draws, f->model);
    f->draws.begun = f->draws.sampling = gm_seconds();
    gm_outputs_clear(o);
    if (o->output && o->format != GM_FORMAT_CSV && !gm_fit_begin_netcdf(f)) return GM_EXIT_FAULT;
    for (int c = 0; c < o->chains; c++) gm_draws_begin(&f->draws, &f->run, NULL, NULL, c);
    GmRun one = f->run;
    one.inner_threads = 1;
    char *outside = NULL;  // the first, if any
    for (long k = 0; k < o->samples && status == GM_EXIT_OK; k++) {
        for (one.chain = 0; one.chain < o->chains && status == GM_EXIT_OK; one.chain++) {
            one.sweep = k;
            if (!gm_forward_draw(f->model, &f->memory, &f->data, &one)) status = GM_EXIT_FAULT;
            else if (!gm_fit_keep(f, &one, &f->draws, k)) status = GM_EXIT_FAULT;
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

static double in_state(const GmFit *f, const GmColumn *c)
{
    const void *array = gm_state_array(f->model, &f->memory, 0, c->field);
    if (f->model->state[c->field].type != GM_INT) return ((const double *)array)[c->element];
    const int32_t x = ((const int32_t *)array)[c->element];
    return x == GM_MISSING_INT ? NAN : (double)x;
}

// `calibrate`: the run that draws forward as simulation number `sim`.
static GmRun forward_run(const GmFit *f, long sim)
{
    GmRun one = f->run;
    one.inner_threads = 1;
    one.requests = 0;
    one.first_chain = (int)sim;
    return one;
}

// Parameters and data of a simulation, in the state.
static bool draw_forward(GmFit *f, GmRun *one)
{
    const bool drawn = gm_forward_draw(f->model, &f->memory, &f->data, one);
    if (!drawn) {
        gm_fault_print(f->model, &f->memory, NULL);
        gm_forward_hint(f->model, &f->data);
    }
    return drawn && gm_forward_readable(f->model, &f->memory, &f->data, 0);
}

static void take_truth(GmFit *f, GmRun *one, double *truth)
{
    if (f->model->derive_chain && gm_draws_need_derived(&f->draws, f->model)) f->model->derive_chain(one);
    for (long c = 0; c < f->draws.n_columns; c++) truth[c] = f->draws.column[c].field < 0 ? NAN : in_state(f, &f->draws.column[c]);
    if (f->model->restore_chain) f->model->restore_chain(one);
}

// The data of f are those of the simulation from here on.
static int simulate_once(void *of, long sim, double *truth)
{
    GmFit *f = of;
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
    const GmFit *from = of;
    GmFit *f = gm_alloc(1, sizeof *f);
    *f = (GmFit){.model = from->model, .options = from->options, .data = from->data, .start = from->start, .truth = from, .truth_lp = NAN};
    f->options.forward = GM_FROM_DATA;
    f->options.samples = samples;
    f->options.thin = thin;
    f->options.first_chain = (int)sim + 1;
    f->options.threads = 1;
    gm_stop_open(&f->stop);
    const int status = f->start(f);
    if (status != GM_EXIT_OK || f->draws.kept < samples) return status == GM_EXIT_OK ? GM_EXIT_FAULT : status;
    for (long c = 0; c < f->draws.n_columns; c++)
        if (f->draws.column[c].field == GM_COLUMN_LP) truth[c] = f->truth_lp;
    *draws = f->draws.memory;
    return GM_EXIT_OK;
}

// The responses of a chain among all, as bytes from `at` on.
static char *responses_of(const GmFit *f, const GmData *own, int k, long chain, size_t *bytes)
{
    *bytes = (size_t)gm_shape_size(&own->shape[k]) * gm_element_size(&f->model->data[k]);
    return (char *)own->of_chain[k] + (size_t)chain * *bytes;
}

// Responses as the simulation has drawn them are those of the data, which checks read, and of a chain; missing where they are so in the
// files.
static void take_responses(const GmFit *f, GmData *own, long chain)
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
static long simulate_all(GmFit *f, const GmSimulations *s, GmData *own)
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
    GmFit *from = of;
    const GmModel *model = from->model;
    GmData own = from->data;
    own.missing = own.missing_in_files;
    own.missing_in_files = NULL;
    own.of_chain = gm_alloc((size_t)model->n_data + 1, sizeof *own.of_chain);
    for (int k = 0; k < model->n_data; k++)
        if (gm_is_drawn_response(model, k) && model->data[k].imputed_field)
            own.of_chain[k] = gm_alloc((size_t)s->n * (size_t)gm_shape_size(&own.shape[k]) + 1, gm_element_size(&model->data[k]));
    GmFit f = {.model = model, .options = from->options, .data = own, .start = from->start, .truth = from, .truth_lp = NAN};
    f.options.forward = GM_FROM_DATA;
    f.options.device = f.options.as_chains_on;
    f.options.samples = samples;
    f.options.thin = thin;
    f.options.first_chain = (int)s->first + 1;
    f.options.chains = (int)simulate_all(from, s, &own);
    if (f.options.method == GM_METHOD_AUTO && model->n_selections > 0) f.options.method = GM_METHOD_GIBBS;
    if (f.options.moves == GM_TRAJECTORIES_AUTO) f.options.moves = GM_TRAJECTORIES_NUTS;  // each chain adapts to its data
    gm_stop_open(&f.stop);
    int status = gm_interrupted() ? GM_EXIT_INTERRUPTED : f.options.chains > 0 ? f.start(&f) : GM_EXIT_FAULT;
    const long columns = from->draws.n_columns, each = samples * columns;
    if (status == GM_EXIT_OK && f.draws.kept < samples) status = GM_EXIT_FAULT;
    for (long k = 0, chain = 0; k < s->n && status == GM_EXIT_OK; k++)
        if (s->status[k] == GM_EXIT_OK) memcpy(s->draws + k * each, f.draws.memory + each * chain++, (size_t)each * sizeof *s->draws);
    for (int k = 0; k < model->n_data; k++) free(own.of_chain[k]);
    free(own.of_chain);
    gm_fit_run_close(&f);
    omp_set_num_threads(1);
    return status;
}

void gm_fit_density_of_truth(GmFit *f)
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

char *gm_fit_compared_names(const GmFit *f)
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
static bool may_be_calibrated(const GmFit *f)
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
static void tell_without_order(const GmFit *f)
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

int gm_fit_calibrate(GmFit *f)
{
    const GmModel *model = f->model;
    if (!may_be_calibrated(f)) return GM_EXIT_USAGE;
    tell_without_order(f);
    bool *compared = gm_alloc((size_t)f->draws.n_columns, sizeof *compared);
    const char **label = gm_alloc((size_t)f->draws.n_columns, sizeof *label);
    for (long c = 0; c < f->draws.n_columns; c++) {
        const int k = f->draws.column[c].field;
        label[c] = gm_column_label(&f->draws, model, &f->memory, c, '[');
        compared[c] =
            k == GM_COLUMN_LP || (k >= 0 && model->state[k].role != GM_DIAGNOSTIC && !gm_depends_on_labels(model, &f->memory, &f->data, k));
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

void gm_fit_settle_calibrate(GmFit *f)
{
    GmOptions *o = &f->options;
    o->chains = 1;
    o->summary = true;  // draws stay in memory
    o->log_joint = o->log_joint && f->model->joint_as_written;
    o->refresh = 0;
    o->ranks = o->output;
    o->output = NULL;
}
