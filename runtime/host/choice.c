// choice.c -- which of two methods a chain takes, by what is measured in its warm-up.
//
//   sweep 0 ........... W/12 .......... W/4 ..................... 9W/20 ............... 13W/20 ............... W
//         step by step      measured        gradients, adapting         measured              what has won
//                                                                            (3W/4 .. 19W/20: measured again)
//
// Measured is the effective number of draws of the slowest of some elements of the unknowns, by their ranks and the squares of these: draws that are antithetic have good
// means and poor squares. It is divided by what the draws cost, which is counted in multiply-adds and in evaluations of a density, never in seconds: the same seed gives the same draws
// on any machine and for any number of threads.
//
// Chains choose together, where they meet after the last sweep that is measured, by the effective draws of all of them together: what one of them measures alone may be off by a factor of two, and
// seems to be more than it is where a chain takes longer than the window to get around. A chain whose trial was broken off goes the way of the others.
//
// On a GPU a launch serves all chains, so they go in step: they take the same from the beginning, what they draw while it is measured comes in rows at meetings, sweeps whose numbers are fixed, and
// a sweep along gradients goes on until the last chain has its draw. What launches cost whatever the number of chains is counted once for all of them.
//
// Where gradients have won, some sweeps at regular intervals are made step by step besides, for a tenth of the work at most: exact conditionals and slices lead out of a narrow part of the
// distribution, the neck of a funnel, in which all moves of their step size would be refused.
//
// What is taken after the choice never changes, but for sweeps in which a move finds no finite density where it stands, and the draws begin after it: their law is that of one method.
// Moves that lose where steps hardly mix are tried again, for longer, with smaller steps if they diverged. Exact conditionals do not diverge, so gradients have to win by a factor, and by a large one where any of their moves diverged or their energy hardly changes: what they then
// do not reach is not in what is measured either. They lose at once where even draws that are independent would cost too much; a trial that costs
// far more than the other method is broken off.
#include "host.h"
#include "../device/nuts.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_MOVES = 100,                   // sweeps of warm-up in which moves along gradients learn anything
    FIRST_SWEEPS = 20,                   // step by step, from a start that may be far out
    LEAST_MEASURED = 300,                // sweeps of warm-up that are enough to measure
    MOST_ELEMENTS = 32,                  // that are looked at
    MOST_DRAWS = 1000,                   // of these, at most: every second sweep, every third, ... where there would be more
    LEAST_EVALUATIONS = 3,               // a trajectory that turns back at once has as many
    SHARE_OF_STEPS = 10,                 // where gradients have won, steps take this part of the work at most
    LOOKED_AT = 20,                      // moves after which a trial may be broken off, and that are looked at
    MOST_COORDINATES = 200000,           // of the unknowns: moves keep 48 numbers for each
    SOME_A_CHAIN = 4,                    // effective draws of one of the methods, for chains to tell something together
    FEW_A_CHAIN = 4,                     // that steps have at least where what is measured of them is to be believed
    MANY_A_CHAIN = 10,                   // for one method to tell how far the other gets
    UNCERTAIN = 5,                       // times: what medians of a few chains tell of that
    MOST_IN_STEP = 20,                   // competitions of chains that go in step: each has BITS of a number that says what a sweep takes
    BITS = 3,
};

static const double ahead = 1.3;
// Where steps have fewer effective draws of a chain than FEW_A_CHAIN, they may have far fewer: a chain that takes longer than the window to get around seems to have one or two. Then moves need not be
// ahead, and where they get around themselves, may seem to be behind by this factor: draws that are known to mix are worth the price.
static const double ahead_of_few = 1, behind_few = 0.1;
// Divergences are borne where the other way mixes less and the energy changes (few of them where it hardly mixes at all, since what diverging moves do not reach such steps do not reach either), more of them where it hardly moves: sweeps that are made step by step besides lead out of where moves would be refused.
static const double well_ahead = 1.5, some_divergent = 0.1;
static const double far_ahead = 10, most_divergent = 0.25, few_divergent = 0.02;       // few: whatever the energy
static const double least_energy = 0.3;                          // E-BFMI below which tails may be missed (Betancourt 2016)

// Where steps hardly mix, what a trial finds against moves may be its tuning, which was short: another one, with smaller steps where moves diverged, unless a move costs more than this times a sweep step by step.
static const double most_again = 10, careful = 0.95;

static const char smaller[] = "their steps are small, for an acceptance of 0.95, since larger ones diverged";
static const char no_density[] = "moves along gradients met no finite density";
static const char too_few[] = "step by step the slowest of the unknowns had too few to believe";
static const char broken_off[] = "a trial of gradients was broken off: even independent draws would cost more";

typedef enum { BY_STEPS, BY_GRADIENTS, METHODS } Method;

typedef struct Watch {                   // of a chain in a competition
    double *draw[METHODS];               // element by element
    long    n[METHODS];                  // draws so far
    double  effective[METHODS];          // per sweep
    double  typical;                     // of steps, of all but the slowest tenth of the elements
    double  spent;                       // in the trial, in multiply-adds, until what its moves tell began anew
    double  cost[METHODS];               // of a sweep, in multiply-adds
    long    begun[LOOKED_AT], rounds[LOOKED_AT];         // evaluations before the last moves
    bool    gradients;                   // what is tried, or taken
    long    every;                       // sweeps, of which one is made step by step besides; 0: none is
    bool    settled, measured;           // measured: both
    const char *because;                 // without numbers; or NULL
} Watch;

typedef struct Cost { double alone, work; } Cost;       // of all chains together; of each
typedef struct Costs { Cost steps, move, evaluation; } Costs;

struct GmChoices {
    const GmModel  *model;
    const GmMemory *memory;
    int             chains, n;
    long            warmup;
    GmChoice       *choice;              // by chain and competition, as everything here
    Watch          *watch;
    Costs          *cost;                // by competition
    long          (*element)[MOST_ELEMENTS][2];          // field and element, by competition
    int            *elements;
    const char    **fixed;               // why nothing is measured; NULL: it is
    bool           *again;               // by competition: moves are tried a second time
    bool            in_step;             // one choice for all chains
    const char     *by;                  // the moves
    const GmMetrics *metrics;            // theirs
    long            met;                 // sweeps after which chains in step have met last
};

// Up to MOST_ELEMENTS elements, of each field some, evenly spread.
static int choose_elements(const GmMemory *m, const int *fields, long (*out)[2])
{
    int n = 0, nfields = 0;
    while (fields[nfields])
        nfields++;
    for (int k = 0; k < nfields; k++) {
        const long size = gm_shape_size(&m->shape[fields[k] - 1]), room = (MOST_ELEMENTS - n) / (nfields - k), some = size < room ? size : room;
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

// By their hashes (FNV-1a): two rows that share one by chance are counted once, which an estimate of costs bears. Without memory: all are different.
double gm_different_rows(long rows, int n, const GmDataRows *arrays)
{
    uint64_t *hash = rows > 0 ? malloc(sizeof *hash * (size_t)rows) : NULL;
    if (!hash) return (double)rows;
    for (long i = 0; i < rows; i++) {
        hash[i] = 14695981039346656037u;
        for (int k = 0; k < n; k++)
            for (size_t b = 0; b < arrays[k].bytes; b++) hash[i] = (hash[i] ^ ((const unsigned char *)arrays[k].elements)[(size_t)i * arrays[k].bytes + b]) * 1099511628211u;
    }
    qsort(hash, (size_t)rows, sizeof *hash, by_number);
    long different = rows > 0;
    for (long i = 1; i < rows; i++) different += hash[i] != hash[i - 1];
    free(hash);
    return (double)different;
}

static Costs costs_of(const GmCompetition *of, const void *data, bool on_gpu)
{
    double c[GM_COSTS];
    of->cost(data, c);
    return on_gpu ? (Costs){ { c[GM_COST_ON_GPU], c[GM_COST_ON_GPU + 1] }, { c[GM_COST_ON_GPU + 2], c[GM_COST_ON_GPU + 3] }, { c[GM_COST_ON_GPU + 4], c[GM_COST_ON_GPU + 5] } }
                  : (Costs){ { 0, c[0] }, { 0, c[1] }, { 0, c[2] } };
}

GmChoices *gm_choices_open(const GmModel *model, const GmMemory *m, const GmData *data, const GmDraws *d, const GmOptions *o, bool on_gpu)
{
    if (!model->n_competitions)
        return NULL;
    GmChoices *w = gm_alloc(1, sizeof *w);
    *w = (GmChoices){ .model = model, .memory = m, .chains = o->chains, .n = model->n_competitions, .warmup = o->warmup, .in_step = on_gpu, .by = "NUTS", .met = -1 };
    const size_t n = (size_t)w->n, all = n * (size_t)w->chains;
    w->choice = gm_alloc(all, sizeof *w->choice);
    w->watch = gm_alloc(all, sizeof *w->watch);
    w->cost = gm_alloc(n, sizeof *w->cost);
    w->element = gm_alloc(n, sizeof *w->element);
    w->elements = gm_alloc(n, sizeof *w->elements);
    w->fixed = gm_alloc(n, sizeof *w->fixed);
    w->again = gm_alloc(n, sizeof *w->again);
    for (int k = 0; k < w->n; k++) {
        const GmCompetition *of = &model->competitions[k];
        const bool beyond = on_gpu && k >= MOST_IN_STEP;
        long coordinates = 0;
        for (const int *f = of->fields; *f; f++)
            coordinates += gm_shape_size(&m->shape[*f - 1]);
        w->cost[k] = costs_of(of, data->data, on_gpu);
        w->elements[k] = choose_elements(m, of->fields, w->element[k]);
        bool latents = false;
        for (long c = 0; c < d->n_columns; c++)
            for (const int *f = of->latents; *f; f++)
                latents |= d->column[c].field == *f - 1;
        const bool unmade = isinf(w->cost[k].evaluation.work);       // of what a move would read
        w->fixed[k] = unmade ? "what gradients read of a matrix is not made where its rows are told" : latents ? "the draws hold auxiliaries" : coordinates > MOST_COORDINATES ? "they are too many for gradients" : o->warmup < LEAST_MEASURED ? "not measured in a warm-up of less than 300 sweeps"
                    : beyond ? "not measured on a GPU: there are 20 other sets that are" : NULL;
        for (int c = 0; c < w->chains; c++) {
            Watch *x = &w->watch[c * w->n + k];
            w->choice[c * w->n + k].adapts = o->warmup;
            if (!w->fixed[k])
                for (int m = 0; m < METHODS; m++)
                    x->draw[m] = gm_alloc((size_t)w->elements[k] * MOST_DRAWS, sizeof *x->draw[m]);
            x->because = w->fixed[k];
            x->settled = w->fixed[k] && (unmade || latents || coordinates > MOST_COORDINATES || beyond || !of->coupled || o->warmup < LEAST_MOVES);
        }
    }
    return w;
}

GmChoice *gm_choices_of(GmChoices *w)
{
    return w ? w->choice : NULL;
}

// ---- the measurement ----

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Between which sweeps a method is tried and measured.
typedef struct Window { long from, to; } Window;

static Window window(long warmup, Method m)
{
    return m == BY_STEPS ? (Window){ warmup / 12, warmup / 4 } : (Window){ warmup * 9 / 20, warmup * 13 / 20 };
}

static Window second_window(long warmup) { return (Window){ warmup * 3 / 4, warmup * 19 / 20 }; }

static Window measured(const GmChoices *w, int k, Method m) { return m == BY_GRADIENTS && w->again[k] ? second_window(w->warmup) : window(w->warmup, m); }

long gm_choices_warmup(long warmup) { return window(warmup, BY_GRADIENTS).from - window(warmup, BY_STEPS).to; }

// row: the elements, or NULL: they are in the memory of the CPU.
static void keep(GmChoices *w, int chain, int k, long sweep, Method m, const double *row)
{
    Watch *x = &w->watch[chain * w->n + k];
    const Window in = measured(w, k, m);
    const long every = (in.to - in.from) / MOST_DRAWS + 1;
    if (sweep < in.from || (sweep - in.from) % every || x->n[m] == MOST_DRAWS)
        return;
    for (int i = 0; i < w->elements[k]; i++)
        x->draw[m][i * MOST_DRAWS + x->n[m]] = row ? row[i] : ((const double *)gm_state_array(w->model, w->memory, chain, (int)w->element[k][i][0]))[w->element[k][i][1]];
    x->n[m]++;
}

typedef struct Spread { double middle, variance; } Spread;

// By quartiles; 1.349 is the interquartile range of a standard normal. Sorts x.
static Spread spread_of(double *x, long n)
{
    qsort(x, (size_t)n, sizeof *x, by_size);
    const double range = (x[3 * n / 4] - x[n / 4]) / 1.349;
    return (Spread){ x[n / 2], range * range };
}

// How many effective draws of an element chains have at most, by the draws that another method made, if these are many. A window shorter than a chain's way around holds an effective draw or so of
// each chain, however slow it is. But a random walk with an autocorrelation time of a multiple of the window T spreads less than what it walks over, by T/(3 tau), where it has T/(2 tau) effective draws;
// and medians of n effective draws lie apart by the variance over n. What the median of the other draws may be off by, of which there are fewer, is no distance: pi/2 of their variance over their number, squared errors up to four times that.
static double at_most(const GmChoices *w, const int *chain, int chains, int k, int element, Method m)
{
    const Method other = m == BY_STEPS ? BY_GRADIENTS : BY_STEPS;
    const long n = w->watch[chain[0] * w->n + k].n[m], others = w->watch[chain[0] * w->n + k].n[other];
    if (n < 8 || others < 8)
        return INFINITY;
    double *x = gm_alloc((size_t)(chains * (n > others ? n : others)), sizeof *x);
    for (int c = 0; c < chains; c++)
        memcpy(x + c * others, w->watch[chain[c] * w->n + k].draw[other] + element * MOST_DRAWS, sizeof *x * (size_t)others);
    const double known = gm_mixing(x, chains, others);
    const Spread whole = spread_of(x, chains * others);
    double away = 0, within = 0;
    for (int c = 0; c < chains; c++) {
        memcpy(x, w->watch[chain[c] * w->n + k].draw[m] + element * MOST_DRAWS, sizeof *x * (size_t)n);
        const Spread s = spread_of(x, n);
        away += (s.middle - whole.middle) * (s.middle - whole.middle) / (whole.variance * chains);
        within += s.variance / (whole.variance * chains);
    }
    free(x);
    if (known < MANY_A_CHAIN * chains || !(whole.variance > 0))
        return INFINITY;
    return chains * fmin(1 / fmax(0, away - 2 * M_PI / known), within < 0.3 ? 1.5 * within : INFINITY);
}

// Whether each chain's draws of an element are one value; also where there are none.
static bool is_still(const GmChoices *w, const int *chain, int chains, int k, int element, Method m)
{
    for (int c = 0; c < chains; c++) {
        const Watch *x = &w->watch[chain[c] * w->n + k];
        const double *draw = x->draw[m] + element * MOST_DRAWS;
        for (long j = 1; j < x->n[m]; j++)
            if (draw[j] != draw[0])
                return false;
    }
    return true;
}

// Elements that do not exist stay where they began, in each chain elsewhere; steps may also have one stuck that gradients move.
static bool may_exist(const GmChoices *w, const int *chain, int chains, int k, int element, Method m)
{
    return !w->model->state[w->element[k][element][0]].partial || !is_still(w, chain, chains, k, element, BY_GRADIENTS) || (m == BY_STEPS && !is_still(w, chain, chains, k, element, m));
}

// Effective draws per sweep, of all these chains, of the slowest element: a scale is often the only one that hardly moves.
// both: the other method has been measured, too; it tells where this one has been if all of its elements get around, not those alone that follow one that does not. typical: of all but one in ten and, of four or more, one; or NULL.
static double effective(const GmChoices *w, const int *chain, int chains, int k, Method m, bool both, double *typical)
{
    double all[MOST_ELEMENTS];
    int n = 0;
    const Window in = measured(w, k, m);
    const long draws = w->watch[chain[0] * w->n + k].n[m];
    const Method other = m == BY_STEPS ? BY_GRADIENTS : BY_STEPS;
    const Window of_other = measured(w, k, other);
    const bool told = both && effective(w, chain, chains, k, other, false, NULL) * (double)(of_other.to - of_other.from) >= FEW_A_CHAIN * chains;
    double *of = gm_alloc((size_t)(chains * draws) + 1, sizeof *of);
    for (int i = 0; i < w->elements[k]; i++) {
        bool finite = true, same = true;
        for (int c = 0; c < chains; c++) {
            const double *draw = w->watch[chain[c] * w->n + k].draw[m] + i * MOST_DRAWS;
            for (long j = 0; j < draws; j++) {
                of[c * draws + j] = draw[j];
                finite &= isfinite(draw[j]);
                same &= draw[j] == of[0];
            }
        }
        if (!finite || same || !may_exist(w, chain, chains, k, i, m))
            continue;
        const double found = gm_mixing(of, chains, draws), most = told ? at_most(w, chain, chains, k, i, m) : INFINITY;
        all[n++] = UNCERTAIN * most < found ? most : found;
    }
    free(of);
    if (typical)
        *typical = 0;
    if (n == 0)
        return 0;
    qsort(all, (size_t)n, sizeof *all, by_size);
    if (typical)
        *typical = all[n < 4 ? 0 : n < 20 ? 1 : n / 10] / (double)(in.to - in.from);
    return all[0] / (double)(in.to - in.from);
}

// Of one chain, where chains that go in step bear together what is spent whatever their number.
static double cost_of(const GmChoices *w, Cost c)
{
    return c.alone / (w->in_step ? w->chains : 1) + c.work;
}

// rounds: evaluations of the chain of those in step that makes most.
static double cost_of_move(const GmChoices *w, int k, double evaluations, double rounds)
{
    return cost_of(w, w->cost[k].move) + cost_of(w, (Cost){ rounds * w->cost[k].evaluation.alone, evaluations * w->cost[k].evaluation.work });
}

static double mean_cost_of_move(const GmChoices *w, int k, const GmChoice *c)
{
    if (c->moves == 0)
        return cost_of_move(w, k, LEAST_EVALUATIONS, LEAST_EVALUATIONS);
    const double n = (double)c->moves;
    return cost_of_move(w, k, (double)c->evaluations / n, (double)c->rounds / n) + c->metric / n;
}

void gm_choice_moved(GmChoice *c, long evaluations, int divergent, int failed, double energy, double metric)
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

static void settle(GmChoices *w, int chain, int k, bool gradients, const char *because)
{
    Watch *x = &w->watch[chain * w->n + k];
    GmChoice *c = &w->choice[chain * w->n + k];
    const int told = w->model->competitions[k].told - 1;
    x->settled = true;
    x->gradients = gradients;
    x->because = because;
    for (int m = 0; m < METHODS; m++) {
        free(x->draw[m]);
        x->draw[m] = NULL;
    }
    c->first = 0;
    c->adapts = w->warmup;
    if (gradients)
        x->every = (long)fmin(fmax(2, ceil(SHARE_OF_STEPS * cost_of(w, w->cost[k].steps) / mean_cost_of_move(w, k, c))), 1e9);
    else {                               // what moves tell of themselves is 0 where none is made
        c->target = 0;
        memset(gm_state_array(w->model, w->memory, chain, told), 0, sizeof(double) * (size_t)gm_shape_size(&w->memory->shape[told]));
    }
}

// Chains that choose by themselves in a part of warm-up: one, or all that go in step.
typedef struct Group { int first, end; } Group;

static void settle_all(GmChoices *w, Group of, int k, bool gradients, const char *because)
{
    for (int chain = of.first; chain < of.end; chain++)
        settle(w, chain, k, gradients, because);
}

// The end of what is measured step by step: gradients have a trial if they can win.
static void try_gradients(GmChoices *w, Group of, int k)
{
    double all = 0, steps = 0;
    for (int chain = of.first; chain < of.end; chain++) {
        Watch *x = &w->watch[chain * w->n + k];
        all += x->effective[BY_STEPS] = effective(w, &chain, 1, k, BY_STEPS, false, &x->typical);
        x->cost[BY_STEPS] = cost_of(w, w->cost[k].steps) + w->choice[chain * w->n + k].scales / (double)(measured(w, k, BY_STEPS).to - measured(w, k, BY_STEPS).from);
        steps += x->cost[BY_STEPS];
    }
    if (all * cost_of_move(w, k, LEAST_EVALUATIONS, LEAST_EVALUATIONS) > steps) {
        settle_all(w, of, k, false, "even independent draws along gradients would cost more");
        return;
    }
    for (int chain = of.first; chain < of.end; chain++) {
        w->watch[chain * w->n + k].gradients = true;
        w->choice[chain * w->n + k] = (GmChoice){ .first = measured(w, k, BY_STEPS).to, .adapts = measured(w, k, BY_GRADIENTS).from - measured(w, k, BY_STEPS).to };
    }
}

static double ratio(const Watch *x)
{
    return x->effective[BY_GRADIENTS] * x->cost[BY_STEPS] / (x->effective[BY_STEPS] * x->cost[BY_GRADIENTS]);
}

static void finish_measuring(GmChoices *w, int chain, int k)
{
    Watch *x = &w->watch[chain * w->n + k];
    const GmChoice *c = &w->choice[chain * w->n + k];
    x->effective[BY_GRADIENTS] = effective(w, &chain, 1, k, BY_GRADIENTS, false, NULL);
    x->cost[BY_GRADIENTS] = mean_cost_of_move(w, k, c);
    x->measured = true;
}

// A chain that goes a short way in the time seems to mix: draws of all chains together tell how far apart they are. But where a method hardly leaves a mode, they tell of modes alone, for both methods;
// then what the chains tell one by one counts.
static void pool(GmChoices *w, int k, int measured_in, double *effective_of)
{
    int *chain = gm_alloc((size_t)w->chains, sizeof *chain), n = 0;
    double together[METHODS], most = 0;
    for (int c = 0; c < w->chains; c++)
        if (w->watch[c * w->n + k].measured)
            chain[n++] = c;
    for (int m = 0; m < METHODS && n > 1; m++) {
        const Window in = measured(w, k, m);
        together[m] = effective(w, chain, n, k, m, true, NULL);
        most = fmax(most, together[m] * (double)(in.to - in.from));
    }
    if (n > 1 && most >= SOME_A_CHAIN * measured_in)
        for (int m = 0; m < METHODS; m++) {
            effective_of[m] = together[m];
            for (int c = 0; c < n; c++)
                w->watch[chain[c] * w->n + k].effective[m] = together[m] / n;
        }
    free(chain);
}

// Chains go on by gradients, adapting as if these had won, and measure them again.
static void try_again(GmChoices *w, int k, bool smaller_steps)
{
    w->again[k] = true;
    for (int chain = 0; chain < w->chains; chain++) {
        Watch *x = &w->watch[chain * w->n + k];
        GmChoice *c = &w->choice[chain * w->n + k];
        if (!x->measured)
            continue;
        x->measured = false;
        x->n[BY_GRADIENTS] = 0;
        c->first = 0;
        c->adapts = w->warmup;
        c->target = smaller_steps ? careful : 0;
    }
}

// For chains that have measured both: effective draws for the same work, of all of them.
static void choose_method(GmChoices *w, int k)
{
    double effective[METHODS] = { 0, 0 }, cost[METHODS] = { 0, 0 };
    long moves = 0, divergent = 0, failed = 0;
    int measured_in = 0;
    bool stuck = false;
    for (int chain = 0; chain < w->chains; chain++) {
        const Watch *x = &w->watch[chain * w->n + k];
        const GmChoice *c = &w->choice[chain * w->n + k];
        if (!x->measured)
            continue;
        measured_in++;
        for (int m = 0; m < METHODS; m++) {
            effective[m] += x->effective[m];
            cost[m] += x->cost[m];
        }
        moves += c->moves;
        divergent += c->divergent;
        failed += c->failed;
        stuck |= c->jumps < least_energy * c->squares;
    }
    pool(w, k, measured_in, effective);
    const double better = effective[BY_GRADIENTS] * cost[BY_STEPS] / (effective[BY_STEPS] * cost[BY_GRADIENTS]);
    const double share = (double)divergent / (double)(moves + !moves);
    double a_chain[METHODS];
    for (int m = 0; m < METHODS; m++) {
        const Window in = measured(w, k, m);
        a_chain[m] = effective[m] / (measured_in + !measured_in) * (double)(in.to - in.from);
    }
    const bool slow = a_chain[BY_STEPS] < FEW_A_CHAIN, hardly = a_chain[BY_STEPS] < MANY_A_CHAIN, alone = slow && a_chain[BY_GRADIENTS] >= fmax(MANY_A_CHAIN / 2, (double)MANY_A_CHAIN / FEW_A_CHAIN * a_chain[BY_STEPS]);
    const double least = alone ? behind_few : slow ? ahead_of_few : ahead;
    const bool borne = (better > far_ahead && share <= (stuck ? few_divergent : most_divergent)) || (better > (alone ? behind_few : well_ahead) && share <= some_divergent && !stuck) || (hardly && share <= few_divergent && !stuck), few = 2 * measured_in <= w->chains && !alone;
    const char *because = failed ? no_density : few ? "in most chains even independent draws along gradients would cost more" : borne ? NULL
                        : divergent ? "moves along gradients diverged" : stuck ? "the energy of moves along gradients hardly changes" : NULL;
    const bool won = !because && better > least;
    if (!won && !w->in_step && !w->again[k] && !failed && !few && !stuck && hardly && better > behind_few && share <= most_divergent && cost[BY_GRADIENTS] < most_again * cost[BY_STEPS]) {
        try_again(w, k, divergent > 0);
        return;
    }
    for (int chain = 0; chain < w->chains; chain++) {
        const Watch *x = &w->watch[chain * w->n + k];
        if (x->measured || (won && x->because == broken_off))        // which goes on adapting where it stopped
            settle(w, chain, k, won, won && w->choice[chain * w->n + k].target > 0 ? smaller : won && better < 1 ? too_few : because);
    }
}

// A trial in which even independent draws would cost more by far: trajectories get shorter while the metric is learned, by how much is not known. Where it is a few elements alone for which they would not, or
// there were few moves, the trial may cost half of what the warm-up does step by step, four times that where steps hardly move something: the slowest of many elements is told by few draws.
static bool hopeless(GmChoices *w, Group of, int k)
{
    double effective = 0, typical = 0, cost = 0, steps = 0, spent = 0, slack = 2;
    bool soon = false, slow = false;
    const Window stepped = measured(w, k, BY_STEPS);
    for (int chain = of.first; chain < of.end; chain++) {
        Watch *x = &w->watch[chain * w->n + k];
        const GmChoice *c = &w->choice[chain * w->n + k];
        long *begun = &x->begun[c->moves % LOOKED_AT], *rounds = &x->rounds[c->moves % LOOKED_AT];
        const double looked_at = (double)(c->moves < LOOKED_AT ? c->moves + !c->moves : LOOKED_AT);
        const double evaluations = (double)(c->evaluations - *begun) / looked_at, of_most = (double)(c->rounds - *rounds) / looked_at;
        *begun = c->evaluations;
        *rounds = c->rounds;
        soon |= c->moves <= LOOKED_AT;
        slack = 2 * c->moves < c->adapts ? 4 : 2;
        effective += x->effective[BY_STEPS];
        slow |= x->effective[BY_STEPS] * (double)(stepped.to - stepped.from) < 2 * FEW_A_CHAIN;
        typical += x->typical;
        cost += cost_of_move(w, k, evaluations, of_most);
        steps += x->cost[BY_STEPS];
        spent += x->spent + mean_cost_of_move(w, k, c) * (double)c->moves;
    }
    const double all = slack * steps * (of.end - of.first);
    return (!soon && effective * cost > all) || (typical * cost > all && spent > (slow ? 4 : 0.5) * steps * (double)w->warmup);
}

// After a sweep of these chains. rows: elements of the first chain, and how far apart chains are; NULL: they are in the memory of the CPU.
static void after(GmChoices *w, Group of, int k, long done, const double *rows, long apart)
{
    const Window steps = measured(w, k, BY_STEPS), moves = measured(w, k, BY_GRADIENTS);
    if (w->fixed[k]) {
        if (done == FIRST_SWEEPS)
            settle_all(w, of, k, true, w->watch[of.first * w->n + k].because);
        return;
    }
    if (done > steps.to && hopeless(w, of, k)) {
        settle_all(w, of, k, false, broken_off);
        return;
    }
    for (int chain = of.first; chain < of.end; chain++) {
        Watch *x = &w->watch[chain * w->n + k];
        GmChoice *c = &w->choice[chain * w->n + k];
        if (done == moves.from) {
            x->spent += mean_cost_of_move(w, k, c) * (double)c->moves;
            *c = (GmChoice){ .gradients = c->gradients, .fails = c->fails, .first = c->first, .adapts = c->adapts, .target = c->target };
            memset(x->begun, 0, sizeof x->begun);
            memset(x->rounds, 0, sizeof x->rounds);
        }
        keep(w, chain, k, done - 1, done <= steps.to ? BY_STEPS : BY_GRADIENTS, rows ? rows + (chain - of.first) * apart : NULL);
        if (done == moves.to)
            finish_measuring(w, chain, k);
    }
    if (done == steps.to)
        try_gradients(w, of, k);
}

void gm_choices_after(GmChoices *w, int chain, long sweep)
{
    for (int k = 0; w && k < w->n; k++) {
        GmChoice *c = &w->choice[chain * w->n + k];
        const Watch *x = &w->watch[chain * w->n + k];
        if (!x->settled)
            after(w, (Group){ chain, chain + 1 }, k, sweep + 1, NULL, 0);
        c->gradients = x->gradients && !c->fails;        // a sweep step by step leads to where the density is finite
        c->fails = 0;
        c->also = c->gradients && x->every && (sweep + 1) % x->every == 0;
    }
}

// ---- chains in step ----

static bool is_measured(const GmChoices *w, int k)
{
    return !w->fixed[k] && !w->watch[k].settled;
}

// After how many sweeps chains in step meet next, if `done` are made; LONG_MAX: they have met for the last time.
static long next_meeting(const GmChoices *w, long done)
{
    const Window steps = window(w->warmup, BY_STEPS), moves = window(w->warmup, BY_GRADIENTS);
    long next = LONG_MAX;
    for (int k = 0; k < w->n; k++) {
        const bool starts = w->fixed[k] && !w->watch[k].settled && done < FIRST_SWEEPS;
        const long from = done < steps.from ? steps.from : done < steps.to ? steps.from : steps.to, apart = done < steps.to ? GM_WATCHED : LOOKED_AT;
        const long end = done < steps.to ? steps.to : moves.to, at = done < from ? from + apart : from + ((done - from) / apart + 1) * apart;
        if (starts)
            next = next < FIRST_SWEEPS ? next : FIRST_SWEEPS;
        if (is_measured(w, k) && done < moves.to)
            next = next < at ? next : at < end ? at : end;
    }
    return next;
}

bool gm_choices_due(const GmChoices *w, long done)
{
    return w && w->in_step && done > 0 && w->met != done && next_meeting(w, done - 1) == done;
}

// Numbers of a chain in a row: elements, and what the moves of a competition tell.
enum { TOLD_EVALUATIONS, TOLD_DIVERGENT, TOLD_FAILED, TOLD_ENERGY, TOLD };

long gm_choices_columns(const GmChoices *w, GmWatched *out)
{
    long n = 0;
    for (int k = 0; k < w->n; k++) {
        if (w->fixed[k])
            continue;
        const int machine = w->model->competitions[k].machine - 1;
        const GmWatched told[TOLD] = { { machine, offsetof(Nuts, evaluations) / sizeof(int32_t), GM_INT }, { machine, offsetof(Nuts, divergent) / sizeof(int32_t), GM_INT },
                                       { machine, offsetof(Nuts, failed) / sizeof(int32_t), GM_INT }, { machine, offsetof(Nuts, energy) / sizeof(wide), GM_WIDE } };
        for (int i = 0; i < w->elements[k]; i++, n++)
            if (out)
                out[n] = (GmWatched){ (int)w->element[k][i][0], w->element[k][i][1], w->model->state[w->element[k][i][0]].type };
        for (int i = 0; i < TOLD; i++, n++)
            if (out)
                out[n] = told[i];
    }
    return n;
}

bool gm_choices_watch(const GmChoices *w, long sweep)
{
    bool wanted = false;
    for (int k = 0; w && w->in_step && k < w->n; k++)
        wanted |= is_measured(w, k) && sweep >= measured(w, k, BY_STEPS).from && sweep < measured(w, k, BY_GRADIENTS).to;
    return wanted;
}

uint64_t gm_choices_form(GmChoices *w, long sweep)
{
    uint64_t form = 0;
    for (int k = 0; w && k < w->n; k++) {
        const Watch *x = &w->watch[k];
        const bool also = x->gradients && x->every && sweep % x->every == 0;
        for (int chain = 0; chain < w->chains; chain++) {
            GmChoice *c = &w->choice[chain * w->n + k];
            c->gradients = x->gradients;
            c->also = also;
        }
        if (k < MOST_IN_STEP)
            form |= ((uint64_t)x->gradients | (uint64_t)also << 1 | (uint64_t)(w->choice[k].first > 0) << 2) << BITS * k;
    }
    return form;
}

static void take_row(GmChoices *w, int k, long sweep, const double *row, long apart)
{
    const double *told = row + w->elements[k];
    double most = 0;
    for (int chain = 0; chain < w->chains && w->watch[k].gradients; chain++) {
        const double *t = told + chain * apart;
        gm_choice_moved(&w->choice[chain * w->n + k], (long)t[TOLD_EVALUATIONS], t[TOLD_DIVERGENT] != 0, t[TOLD_FAILED] != 0, t[TOLD_ENERGY], t[TOLD_EVALUATIONS] * gm_metrics_work(w->metrics, k + 1, chain));
        most = fmax(most, t[TOLD_EVALUATIONS]);
    }
    for (int chain = 0; chain < w->chains; chain++)
        w->choice[chain * w->n + k].rounds += (long)most;
    after(w, (Group){ 0, w->chains }, k, sweep + 1, row, apart);
}

void gm_choices_watched(GmChoices *w, long done, long n, const double *rows)
{
    const long apart = gm_choices_columns(w, NULL);
    const Group all = { 0, w->chains };
    w->met = done;
    for (int k = 0, at = 0; k < w->n; at += w->fixed[k] ? 0 : w->elements[k] + TOLD, k++) {
        for (long i = 0; i < n && is_measured(w, k); i++)
            take_row(w, k, done - n + i, rows + i * apart * w->chains + at, apart);
        if (w->fixed[k] && !w->watch[k].settled)
            after(w, all, k, done, NULL, 0);
        bool failed = false;
        for (int chain = 0; chain < w->chains && is_measured(w, k); chain++)
            failed |= w->choice[chain * w->n + k].failed > 0;
        if (failed)
            settle_all(w, all, k, false, no_density);
    }
    gm_choices_meet(w, done);
}

void gm_choices_know(GmChoices *w, const struct GmMetrics *metrics)
{
    if (w)
        w->metrics = metrics;
}

void gm_choices_move_by(GmChoices *w, const char *name)
{
    if (w)
        w->by = name;
}

// ---- meetings ----

long gm_choices_until(const GmChoices *w, long sweep, long batch)
{
    const long first = w ? window(w->warmup, BY_GRADIENTS).to : 0, at = !w ? 0 : w->in_step ? next_meeting(w, sweep) : sweep < first ? first : second_window(w->warmup).to;
    return sweep < at && batch > at - sweep ? at - sweep : batch;
}

void gm_choices_meet(GmChoices *w, long done)
{
    if (!w || w->warmup < LEAST_MEASURED)
        return;
    for (int k = 0; k < w->n; k++) {
        if (done != measured(w, k, BY_GRADIENTS).to)
            continue;
        if (!w->fixed[k])
            choose_method(w, k);
        for (int chain = 0; chain < w->chains; chain++)
            w->choice[chain * w->n + k].gradients = w->watch[chain * w->n + k].gradients && w->choice[chain * w->n + k].gradients;
    }
}

// ---- what came of it ----

// Nothing is said where there was nothing to measure, and nothing but the usual was done.
static bool usual(const GmChoices *w, int k)
{
    return w->fixed[k] && !w->watch[k].gradients && w->warmup < LEAST_MEASURED;
}

void gm_choices_note(FILE *to, const GmChoices *w, int chain, const char *before)
{
    for (int k = 0; w && k < w->n; k++) {
        const Watch *x = &w->watch[chain * w->n + k];
        if (usual(w, k))
            continue;
        fprintf(to, "%s%s: %s", before, w->model->competitions[k].name, x->gradients ? strcmp(w->by, "NUTS") == 0 ? "moved together along gradients (nuts)" : "moved together along gradients (chees)" : "drawn step by step");
        if (x->measured)
            fprintf(to, "; in warm-up gradients gave %.3g times the effective draws for the same work", ratio(x));
        fprintf(to, x->because ? "; %s\n" : "\n", x->because);
    }
}

void gm_choices_print(FILE *to, const GmChoices *w)
{
    for (int k = 0; w && k < w->n; k++) {
        int gradients = 0, measured_in = 0;
        double least = INFINITY, most = 0;
        const char *because = NULL;
        for (int c = 0; c < w->chains; c++) {
            const Watch *x = &w->watch[c * w->n + k];
            gradients += x->gradients;
            because = x->because ? x->because : because;
            if (!x->measured)
                continue;
            measured_in++;
            least = fmin(least, ratio(x));
            most = fmax(most, ratio(x));
        }
        if (usual(w, k))
            continue;
        fprintf(to, "%s: ", w->model->competitions[k].name);
        if (gradients == 0 || gradients == w->chains)
            fprintf(to, gradients ? "moved together along gradients (%s)" : "drawn step by step", w->by);
        else
            fprintf(to, "moved together along gradients (%s) in %d of %d chains, in the others drawn step by step", w->by, gradients, w->chains);
        if (measured_in > 0 && most - least < 0.1 * most)
            fprintf(to, "; in warm-up gradients gave %.2g times the effective draws for the same work", most);
        else if (measured_in > 0)
            fprintf(to, "; in warm-up gradients gave %.2g to %.2g times the effective draws for the same work", least, most);
        if (because)
            fprintf(to, "; %s", because);
        fputc('\n', to);
    }
}

void gm_choices_close(GmChoices *w)
{
    if (!w)
        return;
    for (int i = 0; i < w->chains * w->n; i++)
        for (int m = 0; m < METHODS; m++)
            free(w->watch[i].draw[m]);
    free(w->choice);
    free(w->watch);
    free(w->cost);
    free(w->element);
    free(w->elements);
    free(w->fixed);
    free(w->again);
    free(w);
}
