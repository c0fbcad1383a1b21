// selection.c -- method selection: Gibbs updates, or NUTS with Gibbs updates in between, by a trial in warm-up of W sweeps.
//
//   sweep 0 ..... W/12 ..... W/4, or before .......... 9W/20 ............ 13W/20 ............ 9W/10 ....... W
//         Gibbs        measured       NUTS adapts             measured            NUTS adapts         checked         where NUTS has won
//                                                                                 Gibbs, measured again for 3W/20      where Gibbs had too
//                                                                                 few effective draws for a verdict NUTS, adapts until
//                                                                                 3W/4, measured again until 19W/20     where both had
//
// What is measured is the effective sample size of the slowest of some elements, by their normal scores and both tails, of all chains
// together. (Antithetic draws have good means and poor tails.) It is divided by what the draws cost. Costs are counted in multiply-adds and
// in evaluations of a density, never in seconds: the same seed gives the same draws on any machine and for any number of threads. All
// chains take the same method. They decide where they meet, after sweeps that are known beforehand.
//
// What is tried is what would be taken: a NUTS transition, and Gibbs updates after every k-th. Exact conditionals and slices lead out of a
// narrow part of the distribution, the neck of a funnel, in which all trajectories of the adapted step size diverge; so Gibbs updates
// follow each transition where any diverged. Elsewhere they have a tenth of the work.
//
// Gibbs updates are exact, and diverging transitions leave out a part of the posterior that the effective sample size does not know of. So
// NUTS has to be better by a factor, and by a larger one the more diverged. A decision needs 20 effective draws a chain by Gibbs updates,
// of a window in which a slow chain seems to have one or two however slow it is: the window ends when it has them, and with fewer at its
// end they are measured again. Where they then have
// less than 4 and NUTS mixes, NUTS is taken at up to twice the cost. Where NUTS is nearly as good, with as few draws by Gibbs updates, it
// is tried once more. No transition gives more than an independent draw, so a trial ends where even these would not be enough. It also ends
// where it has cost three quarters of the warm-up by Gibbs updates (twice all of it, where these hardly change an element).
//
// What is taken after warm-up never changes, but for sweeps in which NUTS finds no finite density at the chain's state: the draws have the
// law of one valid kernel.
//
// On a GPU a launch serves all chains: a sweep by NUTS goes on until the last chain has its draw. What launches cost whatever the number of
// chains is counted once for all of them.
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include "draws.h"
#include "fields.h"
#include "messages.h"
#include "selection_inside.h"

// Up to MOST_ELEMENTS elements, of each field some, evenly spread.
static int choose_elements(const GmMemory *m, const int *fields, long (*out)[2])
{
    int n = 0, nfields = 0;
    while (fields[nfields]) nfields++;
    for (int k = 0; k < nfields; k++) {
        const long size = gm_shape_size(&m->shape[fields[k] - 1]), room = (MOST_ELEMENTS - n) / (nfields - k),
                   some = size < room ? size : room;
        for (long i = 0; i < some; i++, n++) {
            out[n][0] = fields[k] - 1;
            out[n][1] = i * size / some;
        }
    }
    return n;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// By their hashes (FNV-1a): two rows that share one by chance are counted once, which an estimate of costs bears. Without memory: all are
// different.
double gm_different_rows(long rows, int n, const GmDataRows *arrays)
{
    uint64_t *hash = rows > 0 ? malloc(sizeof *hash * (size_t)rows) : NULL;
    if (!hash) return (double)rows;
    for (long i = 0; i < rows; i++) {
        hash[i] = 14695981039346656037u;
        for (int k = 0; k < n; k++)
            for (size_t b = 0; b < arrays[k].bytes; b++)
                hash[i] = (hash[i] ^ ((const unsigned char *)arrays[k].elements)[(size_t)i * arrays[k].bytes + b]) * 1099511628211u;
    }
    qsort(hash, (size_t)rows, sizeof *hash, by_number);
    long different = rows > 0;
    for (long i = 1; i < rows; i++) different += hash[i] != hash[i - 1];
    free(hash);
    return (double)different;
}

static Costs costs_of(const GmSelection *of, const void *data, bool on_gpu)
{
    double c[GM_COSTS] = {0};
    of->cost(data, c);
    return on_gpu ? (Costs){{c[GM_COST_ON_GPU], c[GM_COST_ON_GPU + 1]},
                            {c[GM_COST_ON_GPU + 2], c[GM_COST_ON_GPU + 3]},
                            {c[GM_COST_ON_GPU + 4], c[GM_COST_ON_GPU + 5]}}
                  : (Costs){{0, c[0]}, {0, c[1]}, {0, c[2]}};
}

// Why nothing is measured, or NULL. beyond: of the sets that chains in lockstep can have.
static const char SHORT[] = "not measured in a warm-up of less than 300 sweeps";

static const char *not_measured(const Costs *c, bool latents, long coordinates, long warmup, bool beyond)
{
    return isinf(c->evaluation.work)        ? "the products of a matrix that gradients need are not computed where its rows are listed"
           : latents                        ? "the draws include auxiliaries"
           : coordinates > MOST_COORDINATES ? "they are too many for NUTS"
           : beyond                         ? "not measured on a GPU: there are 18 other sets that are"
           : warmup < LEAST_MEASURED        ? SHORT
                                            : NULL;
}

GmTrials *gm_trials_open(const GmModel *model, const GmMemory *m, const GmData *data, const GmDraws *d, const GmOptions *o, bool on_gpu)
{
    if (!model->n_selections) return NULL;
    GmTrials *w = gm_alloc(1, sizeof *w);
    *w = (GmTrials){.model = model,
                    .memory = m,
                    .chains = o->chains,
                    .n = model->n_selections,
                    .warmup = o->warmup,
                    .method = o->method,
                    .in_step = on_gpu,
                    .by = "NUTS",
                    .met = -1};
    const size_t n = (size_t)w->n, all = n * (size_t)w->chains;
    w->selected = gm_alloc(all, sizeof *w->selected);
    w->watch = gm_alloc(all, sizeof *w->watch);
    w->trial = gm_alloc(n, sizeof *w->trial);
    w->cost = gm_alloc(n, sizeof *w->cost);
    w->element = gm_alloc(n, sizeof *w->element);
    w->elements = gm_alloc(n, sizeof *w->elements);
    w->measures = gm_alloc(n, sizeof *w->measures);
    for (int k = 0; k < w->n; k++) {
        const GmSelection *of = &model->selections[k];
        long coordinates = 0;
        for (const int *f = of->fields; *f; f++) coordinates += gm_shape_size(&m->shape[*f - 1]);
        bool latents = false;
        for (long c = 0; c < d->n_columns; c++)
            for (const int *f = of->latents; *f; f++) latents |= d->column[c].field == *f - 1;
        w->cost[k] = costs_of(of, data->data, on_gpu);
        w->elements[k] = choose_elements(m, of->fields, w->element[k]);
        for (int c = 0; c < w->chains; c++) w->selected[c * w->n + k].adapts = o->warmup;
        const bool asked = w->method != GM_METHOD_AUTO, beyond = on_gpu && k >= MOST_IN_STEP;
        const char *never = not_measured(&w->cost[k], latents, coordinates, LEAST_MEASURED, beyond),
                   *fixed = asked ? never : not_measured(&w->cost[k], latents, coordinates, o->warmup, beyond);
        w->trial[k] = (Trial){.stage = fixed || asked ? STAGE_FIXED : STAGE_GIBBS, .because = fixed};
        w->measures[k] = !fixed && !asked;
        if (never || w->method == GM_METHOD_GIBBS || (!asked && fixed && (o->warmup < LEAST_TRAJECTORIES || !of->coupled)))
            gm_trial_settle(w, k, false, fixed);
        else if (asked && o->warmup <= FIRST_SWEEPS) gm_trial_settle(w, k, true, NULL);
        for (int c = 0; c < w->chains; c++) gm_trial_set_sweep(w, c, k, 0);
        for (int c = 0; c < w->chains && w->measures[k]; c++)
            for (int by = 0; by < METHODS; by++)
                w->watch[c * w->n + k].draw[by] = gm_alloc((size_t)w->elements[k] * MOST_DRAWS, sizeof(double));
    }
    return w;
}

GmSelected *gm_trials_of(GmTrials *w) { return w ? w->selected : NULL; }

bool gm_trials_allow(const GmTrials *w, const GmModel *model, const GmOptions *o)
{
    bool moves = false;
    for (int k = 0; k < model->n_updates && model->update_hmc; k++) moves |= model->update_hmc(k);
    const char *const method[] = {"auto", "gibbs", "nuts", "both"};
    if (o->method == GM_METHOD_AUTO) return true;
    if (model->n_selections == 0 && (o->method != GM_METHOD_GIBBS || moves)) {
        gm_error("--method %s: this program has no method selection: `gmc --method` or an `infer` block has fixed the method, or NUTS "
                 "suits none of its unknowns. Compile the model with another --method",
                 method[o->method]);
        return false;
    }
    for (int k = 0; w && k < w->n; k++)
        if (o->method != GM_METHOD_GIBBS && w->trial[k].because) {
            gm_error("--method %s: not for %s: %s", method[o->method], model->selections[k].name, w->trial[k].because);
            return false;
        }
    return true;
}

void gm_trials_know(GmTrials *w, const struct GmMetrics *metrics)
{
    if (w) w->metrics = metrics;
}

void gm_trials_move_by(GmTrials *w, const char *name)
{
    if (w) w->by = name;
}

// ---- the result ----

// A ratio that is known to a factor of two or so.
static void say_about(FILE *to, double ratio)
{
    if (!(ratio >= 0.1)) fprintf(to, "less than 0.1 times as many");
    else if (ratio > 10) fprintf(to, "more than 10 times as many");
    else if (ratio > 0.8 && ratio < 1.25) fprintf(to, "about as many");
    else fprintf(to, "about %.*f times as many", ratio < 1.95 ? 1 : 0, ratio);
}

static void say_divergent(FILE *to, const Trial *t)
{
    const double percent = 100 * (double)t->divergent / (double)t->transitions;
    if (t->divergent > 0) fprintf(to, ", %.*f %% divergent transitions", percent < 1 ? 2 : 0, percent);
}

static void say(FILE *to, const GmTrials *w, int k)
{
    const Trial *t = &w->trial[k];
    fprintf(to, "Sampler: %s", t->nuts ? w->by : "Gibbs");
    if (t->nuts && t->every == 1) fprintf(to, " with a Gibbs sweep after each transition");
    else if (t->nuts && t->every > 1) fprintf(to, " with a Gibbs sweep after every %ld transitions", t->every);
    fprintf(to, " for %s", w->model->selections[k].name);
    if (w->method != GM_METHOD_AUTO) fprintf(to, ", as --method asks");
    if (t->ratio > 0) {
        fprintf(to, t->nuts ? "; in warm-up " : ". %s was tried: ", w->by);
        say_about(to, t->ratio);
        fprintf(to, " effective draws for the same work%s", t->nuts ? " as by Gibbs" : "");
        say_divergent(to, t);
    }
    if (t->because && strcmp(t->because, SHORT) == 0 && !t->nuts)
        fprintf(to, "; %s was not tried: that takes a warm-up of 300 sweeps", w->by);
    else if (t->because) fprintf(to, "; %s", t->because);
    fprintf(to, ".\n");
}

void gm_trials_note(FILE *to, const GmTrials *w, int chain, const char *before)
{
    (void)chain;
    for (int k = 0; w && k < w->n; k++) {
        fputs(before, to);
        say(to, w, k);
    }
}

const char *gm_trials_of_moves(const GmTrials *w, int field, bool *gibbs_between)
{
    for (int k = 0; w && k < w->n; k++)
        if (w->model->selections[k].diagnostics - 1 == field) {
            *gibbs_between = w->trial[k].every > 0;
            return w->model->selections[k].name;
        }
    return NULL;
}

GmWork gm_trials_work(const GmTrials *w, int k)
{
    GmWork all = {0};
    for (int chain = 0; chain < w->chains; chain++) {
        const GmWork *of = &w->selected[chain * w->n + k].work;
        all.gibbs_sweeps += of->gibbs_sweeps;
        all.transitions += of->transitions;
        all.evaluations += of->evaluations;
    }
    return all;
}

void gm_trials_print(FILE *to, const GmTrials *w) { gm_trials_note(to, w, 0, ""); }

// Of a set of unknowns; what is watched is there in both directions, or given back.
static void save_trial(GmTrials *w, int k, GmSaved *s)
{
    Trial *t = &w->trial[k], now = *t;
    gm_saved_bytes(s, &now, sizeof now);
    char *because = gm_saved_text(s, t->because);
    if (gm_saved_reads(s)) {
        free(t->own_text);
        *t = now;
        t->because = t->own_text = because;
    }
    for (int c = 0; c < w->chains; c++) {
        Watch *x = &w->watch[c * w->n + k];
        gm_saved_bytes(s, x->n, sizeof x->n);
        for (int m = 0; m < METHODS; m++) {
            bool there = x->draw[m] != NULL;
            GM_SAVED(s, there);
            const size_t bytes = (size_t)w->elements[k] * MOST_DRAWS * sizeof(double);
            if (there && x->draw[m]) gm_saved_bytes(s, x->draw[m], bytes);
            else if (gm_saved_reads(s)) {
                free(x->draw[m]);
                x->draw[m] = NULL;
            }
        }
    }
}

void gm_trials_save(GmTrials *w, GmSaved *s)
{
    if (!w) return;
    gm_saved_bytes(s, w->selected, (size_t)(w->n * w->chains) * sizeof *w->selected);
    for (int k = 0; k < w->n; k++) save_trial(w, k, s);
    GM_SAVED(s, w->met);
    GM_SAVED(s, w->plans);
}

void gm_trials_close(GmTrials *w)
{
    if (!w) return;
    for (int k = 0; k < w->n; k++) free(w->trial[k].own_text);
    for (int i = 0; i < w->chains * w->n; i++)
        for (int m = 0; m < METHODS; m++) free(w->watch[i].draw[m]);
    free(w->selected);
    free(w->watch);
    free(w->trial);
    free(w->cost);
    free(w->element);
    free(w->elements);
    free(w->measures);
    free(w);
}
