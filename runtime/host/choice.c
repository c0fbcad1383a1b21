// choice.c -- which of two methods a chain takes, by what is measured in its warm-up.
//
//   sweep 0 ........... W/12 .......... W/4 ..................... 9W/20 ............... 13W/20 ............... W
//         step by step      measured        gradients, adapting         measured              what has won
//
// Measured is the effective number of draws of the slowest of some elements of the unknowns, by their ranks and the squares of these: draws that are antithetic have good
// means and poor squares. It is divided by what the draws cost, which is counted in multiply-adds and in evaluations of a density, never in seconds: the same seed gives the same draws
// on any machine and for any number of threads.
//
// Chains choose together, where they meet after the last sweep that is measured: what one of them measures alone may be off by a factor of two. Chains whose trial was broken off stay step by step.
//
// Where gradients have won, some sweeps at regular intervals are made step by step besides, for a tenth of the work at most: exact conditionals and slices lead out of a narrow part of the
// distribution, the neck of a funnel, in which all moves of their step size would be refused.
//
// What is taken after the choice never changes, but for sweeps in which a move finds no finite density where it stands, and the draws begin after it: their law is that of one method.
// Exact conditionals do not diverge, so gradients have to win by a factor, and by a large one where any of their moves diverged or their energy hardly changes: what they then
// do not reach is not in what is measured either. They lose at once where even draws that are independent would cost too much; a trial that costs
// far more than the other method is broken off.
#include "host.h"

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
};

static const double ahead = 1.3;
static const double far_ahead = 10, most_divergent = 0.02;       // a few divergences are borne where the other way hardly moves
static const double least_energy = 0.3;                          // E-BFMI below which tails may be missed (Betancourt 2016)

typedef enum { BY_STEPS, BY_GRADIENTS, METHODS } Method;

typedef struct Watch {                   // of a chain in a competition
    double *draw;                        // element by element
    long    n;                           // draws so far
    double  effective[METHODS];          // per sweep
    double  cost[METHODS];               // of a sweep, in multiply-adds
    long    begun[LOOKED_AT];            // evaluations of the last moves
    bool    gradients;                   // what is tried, or taken
    long    every;                       // sweeps, of which one is made step by step besides; 0: none is
    bool    settled, measured;           // measured: both
    const char *because;                 // without numbers; or NULL
} Watch;

struct GmChoices {
    const GmModel  *model;
    const GmMemory *memory;
    int             chains, n;
    long            warmup;
    GmChoice       *choice;              // by chain and competition, as everything here
    Watch          *watch;
    double        (*cost)[3];            // by competition
    long          (*element)[MOST_ELEMENTS][2];          // field and element, by competition
    int            *elements;
    const char    **fixed;               // why nothing is measured; NULL: it is
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

GmChoices *gm_choices_open(const GmModel *model, const GmMemory *m, const GmData *data, const GmDraws *d, const GmOptions *o)
{
    if (!model->n_competitions)
        return NULL;
    GmChoices *w = gm_alloc(1, sizeof *w);
    *w = (GmChoices){ .model = model, .memory = m, .chains = o->chains, .n = model->n_competitions, .warmup = o->warmup };
    const size_t n = (size_t)w->n, all = n * (size_t)w->chains;
    w->choice = gm_alloc(all, sizeof *w->choice);
    w->watch = gm_alloc(all, sizeof *w->watch);
    w->cost = gm_alloc(n, sizeof *w->cost);
    w->element = gm_alloc(n, sizeof *w->element);
    w->elements = gm_alloc(n, sizeof *w->elements);
    w->fixed = gm_alloc(n, sizeof *w->fixed);
    for (int k = 0; k < w->n; k++) {
        const GmCompetition *of = &model->competitions[k];
        long coordinates = 0;
        for (const int *f = of->fields; *f; f++)
            coordinates += gm_shape_size(&m->shape[*f - 1]);
        of->cost(data->data, w->cost[k]);
        w->elements[k] = choose_elements(m, of->fields, w->element[k]);
        bool latents = false;
        for (long c = 0; c < d->n_columns; c++)
            for (const int *f = of->latents; *f; f++)
                latents |= d->column[c].field == *f - 1;
        w->fixed[k] = latents ? "the draws hold auxiliaries" : coordinates > MOST_COORDINATES ? "they are too many for gradients" : o->warmup < LEAST_MEASURED ? "not measured in a warm-up of less than 300 sweeps" : NULL;
        for (int c = 0; c < w->chains; c++) {
            Watch *x = &w->watch[c * w->n + k];
            w->choice[c * w->n + k].adapts = o->warmup;
            if (!w->fixed[k])
                x->draw = gm_alloc((size_t)w->elements[k] * MOST_DRAWS, sizeof *x->draw);
            x->because = w->fixed[k];
            x->settled = w->fixed[k] && (latents || coordinates > MOST_COORDINATES || !of->coupled || o->warmup < LEAST_MOVES);
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

static Window measured(const GmChoices *w, Method m)
{
    return m == BY_STEPS ? (Window){ w->warmup / 12, w->warmup / 4 } : (Window){ w->warmup * 9 / 20, w->warmup * 13 / 20 };
}

static void keep(GmChoices *w, int chain, int k, long sweep, Window in)
{
    Watch *x = &w->watch[chain * w->n + k];
    const long every = (in.to - in.from) / MOST_DRAWS + 1;
    if (sweep < in.from || (sweep - in.from) % every || x->n == MOST_DRAWS)
        return;
    for (int i = 0; i < w->elements[k]; i++)
        x->draw[i * MOST_DRAWS + x->n] = ((const double *)gm_state_array(w->model, w->memory, chain, (int)w->element[k][i][0]))[w->element[k][i][1]];
    x->n++;
}

// Effective draws per sweep of the slowest element, but for one in ten and, of four or more, the very slowest: an estimate from few draws may be far off.
static double effective(const GmChoices *w, const Watch *x, int k, Window in)
{
    double all[MOST_ELEMENTS];
    int n = 0;
    for (int i = 0; i < w->elements[k]; i++) {
        const double *draw = x->draw + i * MOST_DRAWS;
        bool finite = true, same = true;
        for (long j = 0; j < x->n; j++) {
            finite &= isfinite(draw[j]);
            same &= draw[j] == draw[0];
        }
        if (finite && !same)
            all[n++] = gm_mixing(draw, x->n);
    }
    if (n == 0)
        return 0;
    qsort(all, (size_t)n, sizeof *all, by_size);
    return all[n < 4 ? 0 : n < 20 ? 1 : n / 10] / (double)(in.to - in.from);
}

static double cost_of_move(const GmChoices *w, int k, double evaluations)
{
    return w->cost[k][1] + evaluations * w->cost[k][2];
}

static void settle(GmChoices *w, int chain, int k, bool gradients, const char *because)
{
    Watch *x = &w->watch[chain * w->n + k];
    GmChoice *c = &w->choice[chain * w->n + k];
    const int told = w->model->competitions[k].told - 1;
    x->settled = true;
    x->gradients = gradients;
    x->because = because;
    free(x->draw);
    x->draw = NULL;
    c->first = 0;
    c->adapts = w->warmup;
    const double of_move = cost_of_move(w, k, c->moves > 0 ? (double)c->evaluations / (double)c->moves : LEAST_EVALUATIONS) + (c->moves > 0 ? c->metric / (double)c->moves : 0);
    if (gradients)
        x->every = (long)fmin(fmax(2, ceil(SHARE_OF_STEPS * w->cost[k][0] / of_move)), 1e9);
    if (!gradients)                      // what moves tell of themselves is 0 where none is made
        memset(gm_state_array(w->model, w->memory, chain, told), 0, sizeof(double) * (size_t)gm_shape_size(&w->memory->shape[told]));
}

// The end of what is measured step by step: gradients have a trial if they can win.
static void try_gradients(GmChoices *w, int chain, int k, Window in)
{
    Watch *x = &w->watch[chain * w->n + k];
    GmChoice *c = &w->choice[chain * w->n + k];
    x->effective[BY_STEPS] = effective(w, x, k, in);
    x->cost[BY_STEPS] = w->cost[k][0];
    x->n = 0;
    if (x->effective[BY_STEPS] * cost_of_move(w, k, LEAST_EVALUATIONS) > x->cost[BY_STEPS]) {
        settle(w, chain, k, false, "even independent draws along gradients would cost more");
        return;
    }
    x->gradients = true;
    *c = (GmChoice){ .first = in.to, .adapts = measured(w, BY_GRADIENTS).from - in.to };
}

static double ratio(const Watch *x)
{
    return x->effective[BY_GRADIENTS] * x->cost[BY_STEPS] / (x->effective[BY_STEPS] * x->cost[BY_GRADIENTS]);
}

static void finish_measuring(GmChoices *w, int chain, int k, Window in)
{
    Watch *x = &w->watch[chain * w->n + k];
    const GmChoice *c = &w->choice[chain * w->n + k];
    x->effective[BY_GRADIENTS] = effective(w, x, k, in);
    x->cost[BY_GRADIENTS] = cost_of_move(w, k, (double)c->evaluations / (double)c->moves) + c->metric / (double)c->moves;
    x->measured = true;
}

// For chains that have measured both: effective draws for the same work, of all of them.
static void choose(GmChoices *w, int k)
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
    const double better = effective[BY_GRADIENTS] * cost[BY_STEPS] / (effective[BY_STEPS] * cost[BY_GRADIENTS]);
    const bool borne = better > far_ahead && (double)divergent <= most_divergent * (double)moves, few = 2 * measured_in <= w->chains;
    const char *because = failed ? "moves along gradients met no finite density" : few ? "in most chains even independent draws along gradients would cost more" : borne ? NULL
                        : divergent ? "moves along gradients diverged" : stuck ? "the energy of moves along gradients hardly changes" : NULL;
    for (int chain = 0; chain < w->chains; chain++)
        if (w->watch[chain * w->n + k].measured)
            settle(w, chain, k, !because && better > ahead, because);
}

// A trial in which even independent draws would cost more by far: trajectories get shorter while the metric is learned, by how much is not known.
static bool hopeless(GmChoices *w, int chain, int k)
{
    Watch *x = &w->watch[chain * w->n + k];
    const GmChoice *c = &w->choice[chain * w->n + k];
    const long before = x->begun[c->moves % LOOKED_AT];
    x->begun[c->moves % LOOKED_AT] = c->evaluations;
    if (c->moves <= LOOKED_AT)
        return false;
    const double slack = 2 * c->moves < c->adapts ? 4 : 2, evaluations = (double)(c->evaluations - before) / LOOKED_AT;
    return x->effective[BY_STEPS] * cost_of_move(w, k, evaluations) > slack * x->cost[BY_STEPS];
}

static void after(GmChoices *w, int chain, int k, long done)
{
    Watch *x = &w->watch[chain * w->n + k];
    GmChoice *c = &w->choice[chain * w->n + k];
    const Window steps = measured(w, BY_STEPS), moves = measured(w, BY_GRADIENTS);
    if (w->fixed[k]) {
        if (done == FIRST_SWEEPS)
            settle(w, chain, k, true, x->because);
        return;
    }
    if (done <= steps.to)
        keep(w, chain, k, done - 1, steps);
    if (done == steps.to)
        try_gradients(w, chain, k, steps);
    if (done <= steps.to)
        return;
    if (hopeless(w, chain, k)) {
        settle(w, chain, k, false, "a trial of gradients was broken off: even independent draws would cost more");
        return;
    }
    if (done == moves.from)
        *c = (GmChoice){ .gradients = c->gradients, .fails = c->fails, .first = c->first, .adapts = c->adapts }, memset(x->begun, 0, sizeof x->begun);
    keep(w, chain, k, done - 1, moves);
    if (done == moves.to)
        finish_measuring(w, chain, k, moves);
}

void gm_choices_after(GmChoices *w, int chain, long sweep)
{
    for (int k = 0; w && k < w->n; k++) {
        GmChoice *c = &w->choice[chain * w->n + k];
        const Watch *x = &w->watch[chain * w->n + k];
        if (!x->settled)
            after(w, chain, k, sweep + 1);
        c->gradients = x->gradients && !c->fails;        // a sweep step by step leads to where the density is finite
        c->fails = 0;
        c->also = c->gradients && x->every && (sweep + 1) % x->every == 0;
    }
}

long gm_choices_until(const GmChoices *w, long sweep, long batch)
{
    const long at = w ? measured(w, BY_GRADIENTS).to : 0;
    return sweep < at && sweep + batch > at ? at - sweep : batch;
}

void gm_choices_meet(GmChoices *w, long done)
{
    if (!w || w->warmup < LEAST_MEASURED || done != measured(w, BY_GRADIENTS).to)
        return;
    for (int k = 0; k < w->n; k++) {
        if (!w->fixed[k])
            choose(w, k);
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
        fprintf(to, "%s%s: %s", before, w->model->competitions[k].name, x->gradients ? "moved together along gradients (nuts)" : "drawn step by step");
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
            fprintf(to, gradients ? "moved together along gradients (NUTS)" : "drawn step by step");
        else
            fprintf(to, "moved together along gradients (NUTS) in %d of %d chains, in the others drawn step by step", gradients, w->chains);
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
        free(w->watch[i].draw);
    free(w->choice);
    free(w->watch);
    free(w->cost);
    free(w->element);
    free(w->elements);
    free(w->fixed);
    free(w);
}
