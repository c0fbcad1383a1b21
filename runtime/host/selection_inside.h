// selection_inside.h -- what the files of method selection have in common: a trial, and how it stands.
//
//   selection_measure.c    costs, and effective sample sizes of what a trial has drawn
//   selection_trial.c      its stages, and the decision
//   selection_lockstep.c   chains that go together, on a GPU
//   selection.c            the rules; a trial is opened, reported, saved
#ifndef GM_SELECTION_INSIDE_H
#define GM_SELECTION_INSIDE_H

#include "warmup.h"

enum {
    LEAST_TRAJECTORIES = GM_LEAST_TRAJECTORIES,  // sweeps of warm-up in which NUTS learns anything
    FIRST_SWEEPS = 20,                           // Gibbs updates, from a start that may be far out
    LEAST_MEASURED = GM_LEAST_MEASURED,          // sweeps of warm-up that are enough to measure
    MOST_ELEMENTS = 32,                          // that are looked at
    MOST_DRAWS = 1000,                           // of these, at most: every second sweep, every third, ... where there would be more
    LEAST_EVALUATIONS = 3,                       // a trajectory that turns back at once has as many
    SHORT_TRAJECTORY = 7,                        // evaluations of one that turns back soon
    SHARE_OF_GIBBS = 10,        // where nothing diverged, Gibbs updates between transitions take this part of the work at most
    SHARE_AT_FIRST = 4,         // and while NUTS adapts in its first trial
    APART = 20,                 // sweeps between two meetings of a trial
    EARLY = 5,                  // sweeps between two looks before the first: it ends if those to the first would cost what it may
    LEAST_TRIAL = 60,           // sweeps, of which half are measured
    LOOKS = 8,                  // at Gibbs updates, while they are measured: whether there are enough effective draws
    LEAST_GIBBS = 40,           // sweeps of these that are measured, at least
    LEAST_SCALED = 10,          // and in which trials of collapsed scales are counted
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

typedef struct Totals {
    double work;
    long moves, divergent, failed;
    bool stuck;
} Totals;

// When each part of the warm-up begins and ends (selection.c).
static inline Window nuts_again(long warmup) { return (Window){warmup * 3 / 4, warmup * 19 / 20}; }
static inline long measured_from(long warmup) { return warmup * 9 / 20; }
static inline long tried_to(long warmup) { return warmup * 13 / 20; }
static inline long adapted_at(long warmup) { return warmup * 9 / 10; }

// ---- selection_measure.c ----

double gm_trial_cost(const GmTrials *w, Cost c);  // of one chain, where chains in lockstep share what is spent whatever their number
// rounds: evaluations of the chain of those in lockstep that makes most
double gm_trial_cost_of_move(const GmTrials *w, int k, double evaluations, double rounds);
Window gm_trial_gibbs_window(const GmTrials *w, int k);  // the first, at most
Window gm_trial_measured(const GmTrials *w, int k);  // what is measured in a stage; empty where nothing is
void gm_trial_keep(GmTrials *w, int chain, int k, long sweep, const double *row);
void gm_trial_add_sizes(GmTrials *w, int k, Method m, long sweeps);
bool gm_trial_is_enough(GmTrials *w, int k, Method m, long sweeps);
double gm_trial_a_chain(const GmTrials *w, int k, Method m);  // effective draws of the slowest element
double gm_trial_a_sweep(const GmTrials *w, int k, Method m);
Totals gm_trial_totals(const GmTrials *w, int k);
double gm_trial_with_gibbs(const GmTrials *w, int k, double move);
long gm_trial_share_of_gibbs(const GmTrials *w, int k, double move, int part);

// ---- selection_trial.c ----

void gm_trial_settle(GmTrials *w, int k, bool nuts, const char *because);  // what is taken from here on
void gm_trial_set_sweep(GmTrials *w, int chain, int k, long sweep);
long gm_trial_next(const GmTrials *w, long done);  // after how many sweeps chains meet next

#endif
