// selection.c -- method selection: Gibbs updates, or NUTS with Gibbs updates in between, by a trial in warm-up of W sweeps.
//
//   sweep 0 ..... W/12 ......... W/4 .................. 9W/20 ............ 13W/20 ............ 9W/10 ....... W
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
// of a window in which a slow chain seems to have one or two however slow it is: with fewer they are measured again. Where they then have
// less than 4 and NUTS mixes, NUTS is taken at up to twice the cost. Where NUTS is nearly as good, with as few draws by Gibbs updates, it
// is tried once more. No transition gives more than an independent draw, so a trial ends where even these would not be enough. It also ends
// where it has cost three quarters of the warm-up by Gibbs updates (twice all of it, where these hardly change an element).
//
// What is taken after warm-up never changes, but for sweeps in which NUTS finds no finite density at the chain's state: the draws have the
// law of one valid kernel.
//
// On a GPU a launch serves all chains: a sweep by NUTS goes on until the last chain has its draw. What launches cost whatever the number of
// chains is counted once for all of them.
#include "host.h"
#include "../device/nuts.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_TRAJECTORIES = GM_LEAST_TRAJECTORIES,  // sweeps of warm-up in which NUTS learns anything
    FIRST_SWEEPS = 20,                           // Gibbs updates, from a start that may be far out
    LEAST_MEASURED = GM_LEAST_MEASURED,          // sweeps of warm-up that are enough to measure
    MOST_ELEMENTS = 32,                          // that are looked at
    MOST_DRAWS = 1000,                           // of these, at most: every second sweep, every third, ... where there would be more
    LEAST_EVALUATIONS = 3,                       // a trajectory that turns back at once has as many
    SHORT_TRAJECTORY = 7,                        // evaluations of one that turns back soon
    SHARE_OF_GIBBS = 10,        // where nothing diverged, Gibbs updates between transitions take this part of the work at most
    APART = 20,                 // sweeps between two meetings of a trial
    EARLY = 5,                  // sweeps between two looks before the first: it ends if those to the first would cost what it may
    LEAST_TRIAL = 60,           // sweeps, of which half are measured
    PLANNED_AGAIN = 4,          // meetings after which chains in lockstep learn a second time how long their trial is
    MOST_COORDINATES = 200000,  // of the unknowns: NUTS keeps 48 numbers for each
    ENOUGH_A_CHAIN = 20,        // effective draws by Gibbs updates that a verdict needs
    // with fewer, and so many more for a second window, a chain may take any time to get around
    HARDLY_A_CHAIN = 4,
    HARDLY_MORE = 2,
    // sets of unknowns, on a GPU: each has BITS of a number that says what a sweep takes, `plans` the other 10
    MOST_IN_STEP = 18,
    BITS = 3,
};

// NUTS is selected with so many times the effective draws for the same work, by the share of its transitions that diverged. More diverge in
// a run than in its trial (2.7 times as many in the median of 31 runs).
static const struct {
    double share, factor;
} wanted[] = {{0, 1.3}, {0.003, 1.6}, {0.02, 3}, {1, 5}};
static const double clearly = 5;  // times the factor: effective draws of few sweeps may be fewer than they seem by as much
// where Gibbs updates hardly change an element: NUTS has so many times their effective draws, and so many for the same work
static const double around = 2.5, at_any_cost = 0.5;
static const double least_energy = 0.3;  // E-BFMI below which tails may be missed (Betancourt 2016)
static const double best = 0.85;         // effective draws of a transition, of the slowest of some elements, at most
static const double careful = 0.95;      // the target of a second trial whose first diverged
// NUTS that is not selected, with so many times the effective draws for the same work, is tried again
static const double near = 0.5, near_hardly = 0.1;

static const char smaller[] = "its step size is small, for an acceptance of 0.95, since larger ones diverged";
static const char no_density[] = "NUTS found no finite density";
static const char too_dear[] = "NUTS was not tried, since even independent draws by it would cost more";
static const char given_up[] = "NUTS was not tried to the end: even independent draws by it would cost more";
static const char no_better[] = "some elements hardly changed by it, either";
static const char unaffordable[] = "NUTS was not tried to the end: its transitions cost too much for a trial";

typedef enum { GIBBS, NUTS_AND_GIBBS, METHODS } Method;

typedef enum { STAGE_FIXED, STAGE_GIBBS, STAGE_NUTS, STAGE_GIBBS_AGAIN, STAGE_NUTS_AGAIN, STAGE_ADAPTS, STAGE_CHECK, STAGE_DONE } Stage;

typedef struct Sizes {  // effective, by element, of all chains: together, and summed one by one; NAN: nothing is known
    double pooled[MOST_ELEMENTS], apart[MOST_ELEMENTS];
    bool still[MOST_ELEMENTS];
    long sweeps;
    int windows;
} Sizes;

typedef struct Window {
    long from, to;
} Window;  // sweeps

typedef struct Trial {  // of a set of unknowns, by all chains
    Stage stage;
    long from, measured, to;  // of NUTS: sweeps from which it is tried and measured, and the end
    Sizes sizes[METHODS];
    double cost[METHODS];         // of a sweep of a chain
    double spent;                 // by NUTS, of a chain
    long transitions, divergent;  // so far, of those that are measured
    double met_work;
    long met_moves;       // of all chains, at the last meeting
    Window again;         // of Gibbs updates, where the first had too few effective draws for a verdict
    double ratio;         // effective draws for the same work, to those of Gibbs updates; 0: not measured
    bool hardly, only;    // Gibbs updates hardly change an element; NUTS alone mixes
    bool nuts;            // what is tried, or taken
    long every;           // sweeps, of which one makes the Gibbs updates besides; 0: none does
    const char *because;  // without numbers; or NULL
    char *own_text;       // the same, in a run that goes on; NULL: the program has it
} Trial;

typedef struct Watch {
    double *draw[METHODS];
    long n[METHODS];
} Watch;  // of a chain: element by element; draws so far

typedef struct Cost {
    double alone, work;
} Cost;  // of all chains together; of each
// of a Gibbs sweep; of a transition with the rest of its sweep; of each evaluation
typedef struct Costs {
    Cost gibbs, move, evaluation;
} Costs;

struct GmTrials {
    const GmModel *model;
    const GmMemory *memory;
    int chains, n;
    long warmup;
    GmMethod method;       // that the user asked for
    GmSelected *selected;  // by chain and set of unknowns, as everything of chains
    Watch *watch;
    Trial *trial;  // by set of unknowns
    Costs *cost;
    long (*element)[MOST_ELEMENTS][2];  // field and element
    int *elements;
    bool *measures;  // by set of unknowns: whether there is a trial
    bool in_step;    // on a GPU
    const char *by;  // what NUTS is: "NUTS", or what takes its place
    const GmMetrics *metrics;
    long met;        // sweeps after which chains in lockstep have met last
    uint64_t plans;  // how often the length of a trial has changed
};

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

static void settle(GmTrials *w, int k, bool nuts, const char *because);
static void set_sweep(GmTrials *w, int chain, int k, long sweep);

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
            settle(w, k, false, fixed);
        else if (asked && o->warmup <= FIRST_SWEEPS) settle(w, k, true, NULL);
        for (int c = 0; c < w->chains; c++) set_sweep(w, c, k, 0);
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

// ---- costs, of one chain ----

// Of one chain, where chains in lockstep share what is spent whatever their number.
static double cost_of(const GmTrials *w, Cost c) { return c.alone / (w->in_step ? w->chains : 1) + c.work; }

// rounds: evaluations of the chain of those in lockstep that makes most.
static double cost_of_move(const GmTrials *w, int k, double evaluations, double rounds)
{
    return cost_of(w, w->cost[k].move) + cost_of(w, (Cost){rounds * w->cost[k].evaluation.alone, evaluations * w->cost[k].evaluation.work});
}

// ---- the measurement ----

// Where a Gibbs sweep costs more than two short trajectories, fewer are made, half at least: what they take would be much of a run that
// NUTS wins.
static Window gibbs_window(const GmTrials *w, int k)
{
    const double share = clamp(2 * cost_of_move(w, k, SHORT_TRAJECTORY, SHORT_TRAJECTORY) / cost_of(w, w->cost[k].gibbs), 0.5, 1);
    return (Window){(long)(share * (double)(w->warmup / 12)), (long)(share * (double)(w->warmup / 4))};
}

static Window nuts_again(long warmup) { return (Window){warmup * 3 / 4, warmup * 19 / 20}; }
static long measured_from(long warmup) { return warmup * 9 / 20; }
static long tried_to(long warmup) { return warmup * 13 / 20; }
static long adapted_at(long warmup) { return warmup * 9 / 10; }

long gm_trials_warmup(long warmup) { return measured_from(warmup) - warmup / 4; }

// What is measured in a stage; empty where nothing is.
static Window measured(const GmTrials *w, int k)
{
    const Trial *t = &w->trial[k];
    switch (t->stage) {
    case STAGE_GIBBS: return gibbs_window(w, k);
    case STAGE_NUTS: return (Window){t->measured, t->to};
    case STAGE_GIBBS_AGAIN: return t->again;
    case STAGE_NUTS_AGAIN: return nuts_again(w->warmup);
    case STAGE_FIXED:
    case STAGE_ADAPTS:
    case STAGE_CHECK:
    case STAGE_DONE: break;
    }
    return (Window){0, 0};
}

static Method measured_method(Stage s) { return s == STAGE_NUTS || s == STAGE_NUTS_AGAIN ? NUTS_AND_GIBBS : GIBBS; }

// row: the elements, or NULL: they are in the memory of the CPU.
static void keep(GmTrials *w, int chain, int k, long sweep, const double *row)
{
    Watch *x = &w->watch[chain * w->n + k];
    const Method m = measured_method(w->trial[k].stage);
    const Window in = measured(w, k);
    const long every = (in.to - in.from) / MOST_DRAWS + 1;
    if (sweep < in.from || sweep >= in.to || (sweep - in.from) % every || x->n[m] == MOST_DRAWS) return;
    for (int i = 0; i < w->elements[k]; i++)
        x->draw[m][i * MOST_DRAWS + x->n[m]] =
            row ? row[i] : ((const double *)gm_state_array(w->model, w->memory, chain, (int)w->element[k][i][0]))[w->element[k][i][1]];
    x->n[m]++;
}

// Of the draws of a window that has ended, which are added to those of an earlier one; then they are forgotten.
static void add_sizes(GmTrials *w, int k, Method m, long sweeps)
{
    Sizes *s = &w->trial[k].sizes[m];
    const long draws = w->watch[k].n[m], chains = w->chains;
    double *of = gm_alloc((size_t)(chains * draws) + 1, sizeof *of);
    for (int i = 0; i < w->elements[k]; i++) {
        bool finite = true, same = true, still = true;
        for (long c = 0; c < chains; c++)
            for (long j = 0; j < draws; j++) {
                const double v = of[c * draws + j] = w->watch[c * w->n + k].draw[m][i * MOST_DRAWS + j];
                finite &= isfinite(v);
                same &= v == of[0];
                still &= v == of[c * draws];
            }
        double pooled = NAN, apart = NAN;
        if (finite && !same && draws >= 8) {
            pooled = gm_mixing(of, (int)chains, draws);
            apart = 0;
            for (long c = 0; c < chains; c++) {
                bool moves = false;
                for (long j = 1; j < draws; j++) moves |= of[c * draws + j] != of[c * draws];
                apart += moves ? gm_mixing(of + c * draws, 1, draws) : 0;
            }
        }
        const bool more = s->sweeps > 0 && isfinite(s->pooled[i]);
        s->pooled[i] = more && isfinite(pooled) ? s->pooled[i] + pooled : more ? s->pooled[i] : pooled;
        s->apart[i] = more && isfinite(apart) ? s->apart[i] + apart : more ? s->apart[i] : apart;
        s->still[i] = still && (s->sweeps == 0 || s->still[i]);
    }
    s->sweeps += sweeps;
    s->windows++;
    for (long c = 0; c < chains; c++) w->watch[c * w->n + k].n[m] = 0;
    free(of);
}

// Elements that do not exist stay where they began, in each chain elsewhere; Gibbs updates may also leave one unchanged that NUTS changes.
static bool counts(const GmTrials *w, int k, int i, Method m)
{
    const Trial *t = &w->trial[k];
    const bool nuts_moves = t->sizes[NUTS_AND_GIBBS].sweeps > 0 && !t->sizes[NUTS_AND_GIBBS].still[i];
    return !w->model->state[w->element[k][i][0]].partial || nuts_moves || (m == GIBBS && !t->sizes[GIBBS].still[i]);
}

// Of the slowest element, of all chains; 0: none changes.
static double slowest(const GmTrials *w, int k, Method m, bool apart)
{
    const Sizes *s = &w->trial[k].sizes[m];
    double least = INFINITY;
    for (int i = 0; i < w->elements[k]; i++)
        if (isfinite(s->pooled[i]) && counts(w, k, i, m)) least = fmin(least, apart ? s->apart[i] : s->pooled[i]);
    return isinf(least) ? 0 : least;
}

// Where neither method leads from one mode to another, all chains together only show that there are modes; then the chains are judged one
// by one.
static bool takes_apart(const GmTrials *w, int k)
{
    return w->trial[k].sizes[NUTS_AND_GIBBS].sweeps > 0 &&
           fmax(slowest(w, k, GIBBS, false), slowest(w, k, NUTS_AND_GIBBS, false)) < HARDLY_A_CHAIN * w->chains;
}

static double a_chain(const GmTrials *w, int k, Method m) { return slowest(w, k, m, takes_apart(w, k)) / w->chains; }

static double a_sweep(const GmTrials *w, int k, Method m)
{
    return a_chain(w, k, m) / (double)(w->trial[k].sizes[m].sweeps ? w->trial[k].sizes[m].sweeps : 1);
}

typedef struct Totals {
    double work;
    long moves, divergent, failed;
    bool stuck;
} Totals;

// Of all chains, of the transitions since their counts began anew.
static Totals totals_of(const GmTrials *w, int k)
{
    Totals all = {0};
    for (int chain = 0; chain < w->chains; chain++) {
        const GmSelected *c = &w->selected[chain * w->n + k];
        all.work +=
            (double)c->moves * cost_of(w, w->cost[k].move) +
            cost_of(w, (Cost){(double)c->rounds * w->cost[k].evaluation.alone, (double)c->evaluations * w->cost[k].evaluation.work}) +
            c->metric;
        all.moves += c->moves;
        all.divergent += c->divergent;
        all.failed += c->failed;
        all.stuck |= c->moves > 2 && c->jumps < least_energy * c->squares;
    }
    return all;
}

// Of a sweep by NUTS, with its share of a Gibbs sweep.
static double with_gibbs(const GmTrials *w, int k, double move)
{
    const Trial *t = &w->trial[k];
    return move + (t->every ? t->cost[GIBBS] / (double)t->every : 0);
}

// Of how many sweeps one makes the Gibbs updates besides; move: the cost of a NUTS transition. all: as much of them as work allows that is
// not more than NUTS takes.
static long share_of_gibbs(const GmTrials *w, int k, double move, bool all)
{
    const double gibbs = w->trial[k].cost[GIBBS];
    if (!(move > 0)) return 1;
    return (long)fmin(all ? fmax(1, ceil(gibbs / move)) : fmax(1, ceil(SHARE_OF_GIBBS * gibbs / move)), 1e9);
}

// ---- the trial ----

void gm_selected_moved(GmSelected *c, long evaluations, int divergent, int failed, double energy, double metric)
{
    const double jump = energy - c->energy, away = energy - c->mean;
    c->jumps += c->moves > 0 ? jump * jump : 0;
    c->energy = energy;
    c->mean += away / (double)++c->moves;
    c->squares += away * (energy - c->mean);
    c->evaluations += evaluations;
    c->metric += metric;
    c->divergent += divergent;
    c->failed += failed;
    c->fails = failed;
}

// What transitions report begins anew; sweeps are counted from `first`, and adapt in so many.
static void begin_counts(GmTrials *w, int k, long first, long adapts, double target)
{
    for (int chain = 0; chain < w->chains; chain++) {
        GmSelected *c = &w->selected[chain * w->n + k];
        *c =
            (GmSelected){.gradients = c->gradients, .also = c->also, .fails = c->fails, .first = first, .adapts = adapts, .target = target};
    }
    w->trial[k].met_work = 0;
    w->trial[k].met_moves = 0;
}

static void settle(GmTrials *w, int k, bool nuts, const char *because)
{
    Trial *t = &w->trial[k];
    const int diagnostics = w->model->selections[k].diagnostics - 1;
    t->nuts = nuts;
    t->because = because;
    t->stage = STAGE_DONE;
    for (int chain = 0; chain < w->chains; chain++) {
        Watch *x = &w->watch[chain * w->n + k];
        GmSelected *c = &w->selected[chain * w->n + k];
        for (int m = 0; m < METHODS; m++) {
            free(x->draw[m]);
            x->draw[m] = NULL;
        }
        if (nuts) continue;
        *c = (GmSelected){.adapts = w->warmup};  // what transitions report is 0 where none is made
        memset(gm_state_array(w->model, w->memory, chain, diagnostics), 0,
               sizeof(double) * (size_t)gm_shape_size(&w->memory->shape[diagnostics]));
    }
    t->every = !nuts ? 0 : w->method == GM_METHOD_BOTH ? 1 : w->method == GM_METHOD_NUTS ? 0 : t->every;
}

static void begin_check(GmTrials *w, int k)
{
    const GmSelected *c = &w->selected[k];
    w->trial[k].stage = STAGE_CHECK;
    begin_counts(w, k, c->first, c->adapts, c->target);
}

// NUTS has won, and adapts until its transitions are counted again.
static void take_nuts(GmTrials *w, int k, const char *because)
{
    const bool again = w->trial[k].stage == STAGE_NUTS_AGAIN;
    w->trial[k].nuts = true;
    w->trial[k].because = because;
    w->trial[k].stage = STAGE_ADAPTS;
    for (int chain = 0; chain < w->chains; chain++) {
        GmSelected *c = &w->selected[chain * w->n + k];
        c->first = 0;
        c->adapts = again ? nuts_again(w->warmup).to : adapted_at(w->warmup);
    }
    if (again) begin_check(w, k);
}

// However slow a chain is, it seems to have one or two effective draws of each window.
static bool hardly_moves(const GmTrials *w, int k)
{
    return a_chain(w, k, GIBBS) < HARDLY_A_CHAIN + HARDLY_MORE * (w->trial[k].sizes[GIBBS].windows - 1);
}

// The end of what is measured by Gibbs updates: NUTS has a trial if it can win.
static void begin_trial(GmTrials *w, int k, long done)
{
    Trial *t = &w->trial[k];
    const Window in = measured(w, k);
    add_sizes(w, k, GIBBS, in.to - in.from);
    t->cost[GIBBS] = cost_of(w, w->cost[k].gibbs);
    for (int chain = 0; chain < w->chains; chain++)
        t->cost[GIBBS] += w->selected[chain * w->n + k].scales / (double)((in.to - in.from) * w->chains);
    t->hardly = hardly_moves(w, k);
    const double move = cost_of_move(w, k, LEAST_EVALUATIONS, LEAST_EVALUATIONS);
    if (a_sweep(w, k, GIBBS) * move > best * t->cost[GIBBS]) {
        settle(w, k, false, too_dear);
        return;
    }
    t->stage = STAGE_NUTS;
    t->nuts = true;
    t->from = done;
    t->measured = measured_from(w->warmup);
    t->to = tried_to(w->warmup);
    t->every = share_of_gibbs(w, k, move, true);
    begin_counts(w, k, done, t->measured - done, 0);
}

static double factor_for(double divergent, double transitions, bool stuck)
{
    double factor = wanted[0].factor;
    const int n = sizeof wanted / sizeof *wanted;
    for (int i = 0; i < n; i++)
        if (divergent > 0 && (i == 0 || divergent > wanted[i - 1].share * transitions)) factor = wanted[i].factor;
    return stuck ? wanted[n - 1].factor : factor;
}

// Whether what was found is enough for NUTS, and for a verdict.
typedef enum { LOST, MAY_WIN, WON } Verdict;

static Verdict verdict_of(GmTrials *w, int k, double transitions, double divergent, bool stuck)
{
    Trial *t = &w->trial[k];
    const double gibbs = a_sweep(w, k, GIBBS), nuts = a_sweep(w, k, NUTS_AND_GIBBS), of_gibbs = a_chain(w, k, GIBBS),
                 factor = factor_for(divergent, transitions, stuck);
    t->ratio = nuts * t->cost[GIBBS] / (gibbs * t->cost[NUTS_AND_GIBBS]);
    t->hardly = hardly_moves(w, k);
    t->only = t->hardly && nuts > around * gibbs;
    if (a_chain(w, k, NUTS_AND_GIBBS) < HARDLY_A_CHAIN) return LOST;  // a walk that is slower than the window, however cheap
    const bool wins = t->ratio > factor, known = of_gibbs >= ENOUGH_A_CHAIN || t->ratio > clearly * factor || t->stage != STAGE_NUTS;
    return !wins && !(t->only && t->ratio > at_any_cost) ? LOST : known ? WON : MAY_WIN;
}

// Beside the ratio and the share of divergent transitions, which are printed.
static const char *reason_of(const GmTrials *w, int k, const Totals *all)
{
    if (a_chain(w, k, NUTS_AND_GIBBS) < HARDLY_A_CHAIN) return no_better;
    return all->divergent == 0 && all->stuck ? "the energy of its transitions hardly changes" : NULL;
}

// What a trial may cost: a quarter of a run of twice as many draws as sweeps of warm-up by Gibbs updates; two thirds, where these hardly
// change an element. It does not depend on the draws of this run, since their number does not change what they are.
static double affordable(const GmTrials *w, int k) { return (w->trial[k].hardly ? 2 : 0.75) * w->trial[k].cost[GIBBS] * (double)w->warmup; }

// And a second one: as much as where Gibbs updates hardly change an element, if the first would have been better but for its divergent
// transitions.
static double affordable_again(const GmTrials *w, int k)
{
    return w->trial[k].ratio > wanted[0].factor ? 2 * w->trial[k].cost[GIBBS] * (double)w->warmup : affordable(w, k);
}

// Whether NUTS that was not selected is tried once more, with more sweeps to adapt: there were too few effective draws for a decision.
static bool is_worth_another(const GmTrials *w, int k)
{
    const Trial *t = &w->trial[k];
    const double sweeps = (double)(nuts_again(w->warmup).to - tried_to(w->warmup));
    return a_chain(w, k, GIBBS) < ENOUGH_A_CHAIN && t->ratio > (t->hardly ? near_hardly : near) &&
           sweeps * t->cost[NUTS_AND_GIBBS] < affordable_again(w, k);
}

static void decide(GmTrials *w, int k, long done)
{
    Trial *t = &w->trial[k];
    const Totals all = totals_of(w, k);
    const Verdict v = verdict_of(w, k, (double)t->transitions, (double)t->divergent, all.stuck);
    const char *because = reason_of(w, k, &all);
    if (v == WON) take_nuts(w, k, w->selected[k].target > 0 ? smaller : t->only ? "Gibbs updates hardly changed some elements" : NULL);
    else if (v == MAY_WIN) {
        t->stage = STAGE_GIBBS_AGAIN;
        t->again = (Window){done, done + w->warmup * 3 / 20};
        t->nuts = false;
    } else if (t->stage == STAGE_NUTS && !w->in_step && !all.stuck && is_worth_another(w, k)) {
        const double target = t->divergent ? careful : 0;
        t->stage = STAGE_NUTS_AGAIN;
        t->sizes[NUTS_AND_GIBBS] = (Sizes){0};
        t->transitions = t->divergent = 0;
        t->spent = 0;
        begin_counts(w, k, 0, nuts_again(w->warmup).to, target);
    } else settle(w, k, false, because);
}

// The measured part begins: what is tried from here on is what would be taken.
static void begin_measuring(GmTrials *w, int k, double move)
{
    Trial *t = &w->trial[k];
    const GmSelected *c = &w->selected[k];
    t->every = share_of_gibbs(w, k, move, c->target > 0);
    begin_counts(w, k, c->first, c->adapts, c->target);
}

static void end_measuring(GmTrials *w, int k, long done, long sweeps)
{
    Trial *t = &w->trial[k];
    const Totals all = totals_of(w, k);
    add_sizes(w, k, NUTS_AND_GIBBS, sweeps);
    t->cost[NUTS_AND_GIBBS] = with_gibbs(w, k, all.work / (double)(all.moves + !all.moves));
    t->transitions += all.moves;
    t->divergent += all.divergent;
    if (all.divergent > 0) t->every = share_of_gibbs(w, k, all.work / (double)(all.moves + !all.moves), true);
    decide(w, k, done);
}

// A meeting of a trial.
static void look_at_trial(GmTrials *w, int k, long done)
{
    Trial *t = &w->trial[k];
    const Totals all = totals_of(w, k);
    const double move = (all.work - t->met_work) / (double)(all.moves > t->met_moves ? all.moves - t->met_moves : 1),
                 sweep = with_gibbs(w, k, move);
    if (done < t->from + APART) {
        if (APART * sweep > affordable(w, k)) settle(w, k, false, unaffordable);
        return;
    }
    t->spent += sweep * (double)(all.moves - t->met_moves) / w->chains;
    t->met_work = all.work;
    t->met_moves = all.moves;
    if (all.failed > 0) {
        settle(w, k, false, no_density);
        return;
    }
    const bool adapting = done <= t->measured;
    // of what may be taken: if nothing diverges when it is measured, few Gibbs updates are
    const double least = adapting ? move * (1 + 1.0 / SHARE_OF_GIBBS) : sweep;
    const double hoped = best * t->cost[GIBBS] / (a_sweep(w, k, GIBBS) * least), room = (affordable(w, k) - t->spent) / sweep;
    if (!t->hardly && hoped < wanted[0].factor / (2 * done < t->from + t->measured ? 3 : adapting ? 1.5 : 1)) {
        settle(w, k, false, given_up);
        return;
    }
    if (adapting && done < t->measured) {
        const long end = room > (double)w->warmup ? tried_to(w->warmup) : done + (long)fmax(0, room),
                   to = end < tried_to(w->warmup) ? end : tried_to(w->warmup);
        if (to - t->from < LEAST_TRIAL) {
            settle(w, k, false, unaffordable);
            return;
        }
        const long meetings = (done - t->from) / APART;
        // on a GPU sweeps are recorded with the length of their adaptation
        if (!w->in_step || meetings == 1 || meetings == PLANNED_AGAIN) {
            const long half = t->from + (measured_from(w->warmup) - t->from) * (to - t->from) / (tried_to(w->warmup) - t->from);
            t->measured = half > done ? half : done;
            w->plans++;
            for (int chain = 0; chain < w->chains; chain++) w->selected[chain * w->n + k].adapts = t->measured - t->from;
        }
        t->to = to > t->measured + LEAST_TRIAL / 2 ? to : t->measured + LEAST_TRIAL / 2;
    } else if (!adapting && room < -affordable(w, k) / sweep && done - t->measured >= LEAST_TRIAL / 2) t->to = done;
    if (done == t->measured) begin_measuring(w, k, move);
    else if (done == t->to) end_measuring(w, k, done, done - t->measured);
}

// NUTS that has won: transitions are counted once more when it adapts no longer.
static void check(GmTrials *w, int k)
{
    Trial *t = &w->trial[k];
    const Totals all = totals_of(w, k);
    const double share_of = (double)(t->transitions + all.moves), divergent = (double)(t->divergent + all.divergent);
    if (all.divergent > 0) t->every = share_of_gibbs(w, k, all.work / (double)(all.moves + !all.moves), true);
    t->transitions += all.moves;
    t->divergent += all.divergent;
    const bool kept = t->only || t->ratio > factor_for(divergent, share_of, all.stuck);
    settle(w, k, kept, kept ? t->because : "too many transitions diverged after its adaptation");
}

// After how many sweeps chains meet next for these unknowns, if `done` are made; LONG_MAX: never.
static long next_of(const GmTrials *w, int k, long done)
{
    const Trial *t = &w->trial[k];
    const long apart = t->stage == STAGE_NUTS && !w->in_step && done < t->from + APART ? EARLY : APART;
    const long W = w->warmup, at = t->from + ((done - t->from) / apart + 1) * apart;
    switch (t->stage) {
    case STAGE_FIXED: return FIRST_SWEEPS;
    case STAGE_GIBBS: return gibbs_window(w, k).to;
    case STAGE_NUTS: return done < t->measured && t->measured < at ? t->measured : done < t->to && t->to < at ? t->to : at;
    case STAGE_GIBBS_AGAIN: return t->again.to;
    case STAGE_NUTS_AGAIN:
        return done < nuts_again(W).from && nuts_again(W).from < at ? nuts_again(W).from : nuts_again(W).to < at ? nuts_again(W).to : at;
    case STAGE_ADAPTS: return w->selected[k].adapts;
    case STAGE_CHECK: return W - 1;
    case STAGE_DONE: break;
    }
    return LONG_MAX;
}

// All chains have met after so many sweeps.
static void meet(GmTrials *w, int k, long done)
{
    Trial *t = &w->trial[k];
    const Window in = measured(w, k);
    switch (t->stage) {
    case STAGE_FIXED: settle(w, k, true, t->because); break;
    case STAGE_GIBBS: begin_trial(w, k, done); break;
    case STAGE_NUTS: look_at_trial(w, k, done); break;
    case STAGE_GIBBS_AGAIN:
        add_sizes(w, k, GIBBS, in.to - in.from);
        decide(w, k, done);
        break;
    case STAGE_NUTS_AGAIN: {
        const Totals all = totals_of(w, k);
        const double move = all.work / (double)(all.moves + !all.moves);
        t->spent += with_gibbs(w, k, all.moves > t->met_moves ? (all.work - t->met_work) / (double)(all.moves - t->met_moves) : 0) *
                    (double)(all.moves - t->met_moves) / w->chains;
        t->met_work = all.work;
        t->met_moves = all.moves;
        if (all.failed > 0) settle(w, k, false, no_density);
        else if (done < in.to && t->spent > 1.5 * affordable_again(w, k)) settle(w, k, false, unaffordable);
        else if (done == in.from) begin_measuring(w, k, move);
        else if (done == in.to) end_measuring(w, k, done, in.to - in.from);
        break;
    }
    case STAGE_ADAPTS: begin_check(w, k); break;
    case STAGE_CHECK: check(w, k); break;
    case STAGE_DONE: break;
    }
}

// What a chain takes in a sweep, as its last one left it.
static void set_sweep(GmTrials *w, int chain, int k, long sweep)
{
    const Trial *t = &w->trial[k];
    GmSelected *c = &w->selected[chain * w->n + k];
    c->gradients = t->nuts && !c->fails;  // a Gibbs sweep leads to where the density is finite
    c->fails = 0;
    c->also = c->gradients && t->every && sweep % t->every == 0;
}

void gm_trials_after(GmTrials *w, int chain, long sweep)
{
    for (int k = 0; w && k < w->n; k++) {
        if (w->trial[k].stage != STAGE_DONE) keep(w, chain, k, sweep, NULL);
        set_sweep(w, chain, k, sweep + 1);
    }
}

// ---- meetings ----

static long next_meeting(const GmTrials *w, long done)
{
    long next = LONG_MAX;
    for (int k = 0; k < w->n; k++) {
        const long at = next_of(w, k, done);
        next = at > done && at < next ? at : next;
    }
    return next;
}

void gm_trials_meet(GmTrials *w, long done)
{
    if (!w) return;
    for (int k = 0; k < w->n; k++) {
        if (w->trial[k].stage == STAGE_DONE || next_of(w, k, done - 1) != done) continue;
        meet(w, k, done);
        for (int chain = 0; chain < w->chains; chain++) set_sweep(w, chain, k, done);
    }
}

// ---- chains in lockstep ----

static bool is_watched(const GmTrials *w, int k, long sweep)
{
    const Window in = measured(w, k);
    const Trial *t = &w->trial[k];
    return (t->stage == STAGE_NUTS && sweep >= t->from) || (t->stage == STAGE_CHECK && sweep >= w->selected[k].adapts) ||
           (sweep >= in.from && sweep < in.to);
}

// Rows between two meetings are GM_WATCHED at most.
static long next_in_step(const GmTrials *w, long done)
{
    long next = next_meeting(w, done);
    for (int k = 0; k < w->n; k++) {
        const Window in = measured(w, k);
        const long from = w->trial[k].stage == STAGE_CHECK ? w->selected[k].adapts : in.from;
        if (w->trial[k].stage == STAGE_DONE || w->trial[k].stage == STAGE_FIXED || w->trial[k].stage == STAGE_ADAPTS) continue;
        // wherever a batch ends, the same
        const long at = done < from ? from + GM_WATCHED : from + ((done - from) / GM_WATCHED + 1) * GM_WATCHED;
        next = at < next ? at : next;
    }
    return next;
}

bool gm_trials_due(const GmTrials *w, long done)
{
    return w && w->in_step && done > 0 && w->met != done && next_in_step(w, done - 1) == done;
}

long gm_trials_until(const GmTrials *w, long sweep, long batch)
{
    const long at = !w ? 0 : w->in_step ? next_in_step(w, sweep) : next_meeting(w, sweep);
    return w && sweep < at && batch > at - sweep ? at - sweep : batch;
}

// Numbers of a chain in a row: elements, and what transitions report.
enum { TRIAL_EVALUATIONS, TRIAL_DIVERGENT, TRIAL_FAILED, TRIAL_ENERGY, LISTED };

long gm_trials_columns(const GmTrials *w, GmWatched *out)
{
    long n = 0;
    for (int k = 0; k < w->n; k++) {
        if (!w->measures[k]) continue;
        const int machine = w->model->selections[k].machine - 1;
        const GmWatched listed[LISTED] = {{machine, offsetof(Nuts, evaluations) / sizeof(int32_t), GM_INT},
                                          {machine, offsetof(Nuts, divergent) / sizeof(int32_t), GM_INT},
                                          {machine, offsetof(Nuts, failed) / sizeof(int32_t), GM_INT},
                                          {machine, offsetof(Nuts, energy) / sizeof(wide), GM_WIDE}};
        for (int i = 0; i < w->elements[k]; i++, n++)
            if (out) out[n] = (GmWatched){(int)w->element[k][i][0], w->element[k][i][1], w->model->state[w->element[k][i][0]].type};
        for (int i = 0; i < LISTED; i++, n++)
            if (out) out[n] = listed[i];
    }
    return n;
}

bool gm_trials_watch(const GmTrials *w, long sweep)
{
    bool wanted = false;
    for (int k = 0; w && w->in_step && k < w->n; k++) wanted |= is_watched(w, k, sweep);
    return wanted;
}

uint64_t gm_trials_form(GmTrials *w, long sweep)
{
    uint64_t form = 0;
    for (int k = 0; w && k < w->n; k++) {
        for (int chain = 0; chain < w->chains; chain++) set_sweep(w, chain, k, sweep);
        const GmSelected *c = &w->selected[k];
        if (k < MOST_IN_STEP) form |= ((uint64_t)c->gradients | (uint64_t)c->also << 1 | (uint64_t)(c->first > 0) << 2) << BITS * k;
    }
    return form | (w ? w->plans << BITS * MOST_IN_STEP : 0);
}

static void take_row(GmTrials *w, int k, long sweep, const double *row, long apart)
{
    const double *listed = row + w->elements[k];
    double most = 0;
    if (!is_watched(w, k, sweep)) return;
    for (int chain = 0; chain < w->chains && w->trial[k].nuts; chain++) {
        const double *t = listed + chain * apart;
        gm_selected_moved(&w->selected[chain * w->n + k], (long)t[TRIAL_EVALUATIONS], t[TRIAL_DIVERGENT] != 0, t[TRIAL_FAILED] != 0,
                          t[TRIAL_ENERGY], t[TRIAL_EVALUATIONS] * gm_metrics_work(w->metrics, k + 1, chain));
        most = fmax(most, t[TRIAL_EVALUATIONS]);
    }
    for (int chain = 0; chain < w->chains; chain++) {
        GmSelected *c = &w->selected[chain * w->n + k];
        c->rounds += (long)most;
        c->fails = 0;  // chains in lockstep stay where they are
        keep(w, chain, k, sweep, row + chain * apart);
    }
}

void gm_trials_watched(GmTrials *w, long done, long n, const double *rows)
{
    const long apart = gm_trials_columns(w, NULL);
    w->met = done;
    for (int k = 0, at = 0; k < w->n; at += w->measures[k] ? w->elements[k] + LISTED : 0, k++)
        for (long i = 0; i < n && w->measures[k] && w->trial[k].stage != STAGE_DONE; i++)
            take_row(w, k, done - n + i, rows + i * apart * w->chains + at, apart);
    gm_trials_meet(w, done);
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
