// model.h -- the description of an emitted program for the runtime, and the run that the runtime passes to it.
//
// The emitted file defines one `const GmModel gm_model`. The runtime owns the command line, files, memory, the sweep loop
// and the summary; the emitted file owns the mathematics.
#ifndef GM_MODEL_H
#define GM_MODEL_H

#ifndef __CUDACC_RTC__  // there base.h defines these types
#include <stddef.h>
#include <stdint.h>
#endif

#include "../device/limits.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GM_MOST_NUMBERS (GM_MAX_RANK + 1)  // in the message of a fault

// Types of elements. On the CPU all but GM_INT are double; on a GPU they depend on --precision:
typedef enum {
    GM_INT,    // int32_t; a scalar of the data that is no response is long, since it may be a size
    GM_REAL,   // data, definitions and latents: float in single and mixed precision
    GM_WIDE,   // parameters, sums, work arrays: double
    GM_SOLVE,  // precision matrices and shifts of joint normal draws: float in single precision
} GmType;

typedef enum {
    GM_DATA,       // read from the data files; scalars live in Data by value, arrays by pointer
    GM_PARAMETER,  // a variable; in the draws by default
    GM_LATENT,     // a variable per observation; in the draws only if --params names it
    GM_AUXILIARY,  // brought in by an augmentation; likewise
    GM_IMPUTED,    // response data: State holds a pointer to the data, or a copy per chain if some values are missing
    // a definition that depends on variables, computed by `derive` after a kept sweep; in the draws by default if scalar or small
    GM_DERIVED,
    GM_PREDICTED,  // the same from the predict block: in the draws by default
    // the diagnostics of HMC, as CmdStan's columns accept_stat__ to energy__; always in the draws
    GM_DIAGNOSTIC,
    GM_SUM,  // a hoisted sum, or a work array: one for all chains (shared) or one per chain; never in the draws
} GmRole;

typedef enum { GM_LOG_LIK = 1, GM_REPLICATES = 2, GM_LOG_PRIOR = 4 } GmRequest;  // quantities that a run may request: bits

typedef enum {
    GM_ANY,
    GM_SIMPLEX,
    GM_ORDERED,
    GM_POSITIVE_ORDERED,
    GM_UNIT_VECTOR,
    GM_SUM_TO_ZERO,
    GM_COVARIANCE,
    GM_CORRELATION,
    GM_CHOLESKY_COV,
    GM_CHOLESKY_CORR,
    GM_COUNTS
} GmConstraint;

typedef struct GmShape {  // of a field, once the sizes are known: gm_field_shape
    int rank;
    long dim[GM_MAX_RANK];  // row-major, outermost first
    double lower, upper;    // bounds, or -INFINITY, INFINITY
} GmShape;

#define BOUNDED(least, most) .bounded = 1, .lower = least, .upper = most

// Which draws are stored where no --params says so: as the role has it, those of at most 100 elements, none.
typedef enum { GM_BY_ROLE, GM_IF_SMALL, GM_IF_ASKED } GmStoredIf;

typedef struct GmField {
    const char *name;
    GmType type;
    GmRole role;
    GmConstraint constraint;  // of the last dimension(s)
    int rank;
    size_t offset;    // of the value (data scalars) or of the pointer, in Data or State
    int has_default;  // data: the file may leave it out
    int may_miss;     // data: null, NA, NaN allowed; then imputed_field is its State field
    // data: `infer { name by marginal; }` would leave missing values out of the conditionals of unknowns
    int may_be_left_out;
    const char *needed_for;  // data: why no value may be missing although they have a distribution; or NULL
    // data: the argument that requires the constraint: "the `Sigma` of multi_normal (m.gm:4)"; NULL: it is declared
    const char *asked_by;
    int finite;         // data: infinite values are refused
    int imputed_field;  // 1 + index into state, 0 if none
    int shared;         // state: 1 one array for all chains (GM_SUM of data only); 2 the same unless data are missing
    // state: not all elements are drawn: `derive` computes the others, or sets them to NaN if they do not exist
    int partial;
    int on_request;  // state: a GmRequest, without which it has no elements and is not computed; 0: always there
    GmStoredIf stored;  // state: what the compiler draws or computes otherwise than it is written is stored as it is written
    int bounded;     // the bounds are these numbers; 0: there are none, or data_shape and state_shape compute them
    double lower, upper;
    int by_start;  // state: expectations of latents, for modes: their values are lost while another start runs
    // state: only updates that replace the joint normal of this number (sparse.h) use it; 0: others, too
    int in_place_of;
    int part_of, part;           // state: 1 + the field that it is an element of, and which one; 0: an array of its own
    const char *where;           // "file.gm:12"
    const char *declared;        // "int<lower=0, upper=1> y[N]", for messages; NULL: made from the other members
    int extent_of[GM_MAX_RANK];  // 1 + index of the int scalar of the data that is this extent as it stands, 0 if none
    int upper_of;                // data: likewise of the upper bound
    int rows_of;                 // 1 + index of the ints of the data that are the lengths of its rows, which lie one behind the other; or 0
} GmField;

typedef struct GmMissing {
    long count;
    long *index;
} GmMissing;  // linear 0-based positions; NULL when none

struct GmHmc;

// While scales are drawn (device/scales.h), joint normals are not. MARGINAL: their density integrated over the block is added to `result`.
// GIVEN_X: nothing is added.
enum { GM_MARGINAL = 1, GM_GIVEN_X };

// Updates are compared with the joint density: all of them (--check), or those that the run makes.
typedef enum GmChecking { GM_CHECK_ALL = 1, GM_CHECK_SWEEP } GmChecking;

typedef struct GmRun {  // one run: everything that emitted code may read of it
    const void *data;   // the emitted file's Data
    void *state;        // array of the emitted file's State, one per chain
    size_t state_size;  // bytes of each
    int chains;
    int first_chain;  // global number of chain 0: streams are keyed by it
    uint64_t seed;
    long sweep;  // current sweep, from 0; warm-up included
    int threads;
    int requests;                      // GmRequest bits: what `derive` computes in addition
    int auxiliaries;                   // draws keep auxiliaries, or --check reads them
    int only_asking;                   // setup checks the requirements on data, and does nothing else
    int checking;                      // a GmChecking, or 0. Kernels add log q(new) - log q(old) to check_log_q[chain]
    double *check_log_q, *check_size;  // and the absolute values of the terms of that sum to check_size
    long *check_ratios;                // the number of these kernels, by chain
    const GmMissing *missing;          // by data field
    int own_responses;                 // each chain has responses of its own, as where values are missing
    const unsigned char *given;        // by number of an unknown's stream: `forward` does not draw it. NULL: all are drawn
    long warmup;                       // sweeps before this one are warm-up: samplers may adapt
    int chain;                         // the current chain; set by kernels.h
    int inner_threads;                 // threads that share one chain's work
    double result;                     // of the last kernel that returns a number
    long colour;                       // the class of elements that is drawn now, for chains of neighbours
    struct GmSelected *selected;       // by chain and selection; NULL: all is drawn by Gibbs updates
    int together_mode;                 // GmTogetherMode: whether chains adapt HMC together
    struct GmTogether *together;
    int n_together;             // the number of those updates; together is NULL: no chain waits for another
    struct GmMetrics *metrics;  // of HMC updates, where they are not diagonal; NULL: all are
    // chains in lockstep on a CPU: the chains whose trajectories go on, while others have their draw; NULL: all
    const int *going;
    int n_going;
    double accept;  // mean acceptance that step sizes of HMC aim at, and doublings of NUTS at most: --adapt-delta, --max-treedepth
    int depth;      // 0: as an update has them
    int update;     // the number of the update that gm_model.update makes
    long batch;     // sweeps that gm_model.sweep makes at a call; 0 counts as 1
    int marginal;   // GM_MARGINAL, GM_GIVEN_X; else 0
    int again;      // a density with a joint normal integrated out, at another value than the last: X'WX is there
    // draws without data: by variable (VAR_x) the elements that keep their values, or NULL; the last one says whether all do. NULL: none
    const unsigned char *const *keeps;
    int kept;      // within a sweep, where statistics of drawn unknowns are computed before the first update that reads them
    int like_gpu;  // the updates are those for a GPU, also on a CPU
    // sweeps are being timed: scales are not drawn with joint normals integrated out, since that is done more often at the start of chains
    int timed;
    int seeking;                       // only HMC updates are made, each by `instead`
    int *tried;                        // not NULL: a fault does not stop the run, and is noted there
    void (*after)(struct GmRun *one);  // called by each chain after each sweep, or NULL
    // called in place of each HMC update, or NULL; 0: the update is made after all
    int (*instead)(struct GmRun *one, const struct GmHmc *of, void (*density)(struct GmRun *));
    void *host;               // used by the runtime only
    struct GmDevice *device;  // the GPU that the run is on; NULL: the CPU. Then data and state point into its memory
} GmRun;

// The terms of a sparse joint normal on a GPU (sparse.h, KERNEL_TERMS). Each iteration of a loop of the kernel lists some terms, whose
// numbers begin with `first` of the iteration. Modes of the kernel: MEASURE finds the number of iterations, COUNT the number of terms of
// each, NOTE their places, and COLLECT, in each sweep, their values. A row of -1 is the shift.
enum { GM_TERMS_COLLECT, GM_TERMS_MEASURE, GM_TERMS_COUNT, GM_TERMS_NOTE };
typedef struct GmTerms {
    int64_t mode, count;  // count: of terms
    int64_t *iterations;
    int32_t *first, *row, *column;
    double *value;  // of each chain, `count`
} GmTerms;

// Sweeps in which joint normals of a chain kept their values: the last one, counted from 1, the number of those near each other up to it,
// and of all after the first sweeps.
typedef struct GmStays {
    uint64_t last;
    int32_t in_a_row, all;
} GmStays;

typedef struct GmPlace {   // the data of a run for kernels on a GPU; in device memory
    uint64_t seed, sweep;  // sweep from 0
    int64_t warmup, colour;
    int32_t first_chain, chains;
    int32_t fault, fault_chain;  // the first fault is kept
    int64_t fault_element;
    const char *fault_variable, *fault_what;  // in device memory
    int64_t fault_numbers, fault_number[GM_MOST_NUMBERS];
    double *partial;              // GM_PARTIALS numbers per chain, for sums of teams
    uint32_t *barrier;            // two counters per chain
    const GmMissing *missing;     // by data field; arrays in device memory
    double *result;               // per chain: of log_joint
    const struct GmTerms *terms;  // by number of a sparse joint normal, from 1; in device memory
    int32_t *going;     // the number of active chains, then their numbers: during an HMC update some chains may already have their draw
    uint32_t idle[32];  // a bit for each of the first 1024 chains: it is not active. If there are more, all are active
    int32_t stayed;     // the number of blocks that kept their values (GM_STAYS), and the variable of the last one
    const char *stayed_variable;  // in device memory
    GmStays *stays;               // per chain; NULL: blocks may keep their values in the first sweeps only
} GmPlace;

// A joint normal whose precision is not positive definite to within rounding keeps its values, without a fault, in the first sweeps. Later
// this may happen at most GM_STAYS_IN_A_ROW times in sweeps that are at most GM_STAYS_NEAR apart, and GM_MOST_STAYS times in all.
enum { GM_FIRST_SWEEPS = 50, GM_STAYS_NEAR = 10, GM_STAYS_IN_A_ROW = 20, GM_MOST_STAYS = 100 };
#define GM_STAYS(sweep, warmup) ((sweep) < (warmup) && (sweep) < GM_FIRST_SWEEPS)

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
// Whether a chain already has its draw while an HMC update of others goes on (gm_hmc in runtime_cuda.h): kernels skip it.
enum { GM_MOST_IDLE = 32 * (int)(sizeof((GmPlace *)0)->idle / sizeof(uint32_t)) };
DEVICE int gm_idle(const GmPlace *place, int chain) { return chain < GM_MOST_IDLE && place->idle[chain / 32] >> chain % 32 & 1; }
#endif

// ALONE: between two of these updates, nothing changes the unknowns but another method for the same block. UNLESS_MISSING: that is so if no
// values are missing.
enum { GM_ALONE = 1, GM_UNLESS_MISSING };

// An HMC update (launch_nuts.h). Members that are 0 have their defaults. Members are written in this order.
typedef struct GmHmc {
    uint64_t machine, position, value, gradient, diagnostics;  // fields of State, by their offsets
    uint32_t var;                                              // identifies its random numbers
    const char *name;                                          // of the unknowns: "mu, tau, theta"
    int64_t coordinates, room;                                 // unconstrained coordinates; size of `machine`, in numbers
    int32_t alone;         // GM_ALONE or GM_UNLESS_MISSING: the density at the draw of the last sweep need not be evaluated again
    int32_t marginal;      // auxiliaries are integrated out
    int32_t selection;     // it belongs to a method selection, and an infinite density at the start is no fault
    double accept;         // mean acceptance that the step size aims at (0.8)
    int32_t depth, steps;  // NUTS: doublings at most (10); HMC: leapfrog steps of every trajectory
    int32_t walls;         // the first line where what is computed may leave its domain, and the density is 0; 0: there is none
    double step;           // step size; 0: adapted
    double anneal;         // temperature of the first sweep of warm-up (1)
    const char *summed;    // discrete unknowns that its density sums out; NULL: none
    // called after the density: replaces it and its gradient by log |dx/dq| and its gradient; NULL: that is 0
    void (*jacobian)(struct GmRun *);
    // a field of State: for each coordinate the degree of standardisation of its effect from the next sweep on (nuts.h); 0: there are none
    uint64_t standardised;
    int32_t by;             // GM_BY_NUTS, GM_BY_CHEES: the model requests it by name
    int32_t together;       // set by the runtime: chains adapt together (device/chees.h)
    int32_t metric;         // a MetricKind (metric.h)
    uint64_t state_size;    // set by the runtime: bytes of State, which kernels of the runtime do not know
    int64_t first, adapts;  // set by the runtime: its first sweep, and the number of sweeps in which it adapts
} GmHmc;

enum { GM_BY_NUTS = 1, GM_BY_CHEES };

// Which NUTS updates the chains make together, by ChEES: those that the model requests so; also those that it does not name; all; none.
typedef enum { GM_TOGETHER_BY_NAME, GM_TOGETHER_UNLESS_NAMED, GM_TOGETHER, GM_APART } GmTogetherMode;

typedef struct GmTogether {  // an HMC update, in runs in which chains may adapt together
    uint64_t diagnostics;    // the field of State that identifies it
    int made;                // chains make it together; if so:
    GmHmc of;
    double step, time;  // its step size and the length of its trajectories, once adapted
    char *own_name;     // of a run that goes on: that of `of`; else NULL
} GmTogether;

// A factor that is 0 for some values of the unknowns, as text in the model's notation. `over` lists indices with their ranges; the factor
// exists where `guard` is not 0. host/factors.c parses it.
typedef struct GmFactor {
    const char *where, *text;                // "file.gm:12"; "binomial(y[j, t] | n[j], p)"
    int if_missing;                          // only where a missing response has been filled in
    const char *over, *guard, *log_density;  // guard: NULL if there is none
} GmFactor;

// The edges of a graph of data that a law is about, as text likewise: in each iteration of all indices but the last, `over` the edges, no
// pair of nodes may stand twice, and there are so many parts without edges between them.
typedef struct GmEdges {
    const char *where, *law;                               // "file.gm:12", "icar"
    const char *over, *guard, *from, *to, *nodes, *parts;  // parts: NULL if any number will do
} GmEdges;

typedef struct GmDefinition {  // name[at] = value: a definition of data that a factor or an edge reads
    const char *name, *at, *over, *guard, *value;
} GmDefinition;

// An observed variable, or a term of the density without one (no name). no_...: why the quantity does not exist.
typedef struct GmObserved {
    const char *where, *name;  // "file.gm:12"
    int data;                  // 1 + its data field; 0: a definition of data
    int log_lik, replicate;    // 1 + state field, 0: none
    const char *no_log_lik, *no_replicate;
} GmObserved;

// A term of the log prior.
typedef struct GmPrior {
    int field;         // 1 + state field; the last one is 0
    const char *name;  // of the unknown
    int missing_of;    // 1 + the data field whose missing values these are, added up by the runtime; 0: an unknown
} GmPrior;

// What can be drawn from the law of its own statement: an unknown, or a response, as its replicate.
typedef struct GmLaw {
    int field, variable;  // 1 + the state field that is drawn, VAR_x of it
    int at_once;          // so many subscripts say what is drawn at once: elements of a vector, or a matrix, are drawn together
    int data;             // 1 + the data field of a response, 0: an unknown
    int whole;            // some of its elements cannot be drawn given others
    const char *refused;  // why it cannot be drawn; NULL: it can
} GmLaw;

// A variable that runs over labels.
typedef struct GmLabelled {
    int field;        // 1 + state field; the last one is 0
    unsigned dims;    // bit d: dimension d is permuted with the labels
    int values;       // its values are labels
    int apart, lost;  // it has an order of its own, and stays; a definition that depends on which label is which
} GmLabelled;

typedef struct GmAlike {
    int field, dim;
} GmAlike;  // 1 + data field, the last one is 0

// Names of components: values 1 to K of `by`.
typedef struct GmLabels {
    int by;  // 1 + state field, the last one is 0
    // NULL: permuting labels leaves the log joint density as it is; draws may be permuted. Else why not
    const char *identified, *not_permuted;
    const GmAlike *alike;  // data that must be the same along a dimension, or labels are identified; NULL: none
    const GmLabelled *fields;
} GmLabels;

// Unknowns that can be drawn by Gibbs updates, or jointly by NUTS. Fields are counted from 1, the last one is 0.
typedef struct GmSelection {
    const char *name;          // of the unknowns: "beta, sigma"
    int coupled;               // what would be slice sampled depends on each other: if nothing is measured NUTS draws it
    const int *fields;         // state: the unknowns
    int diagnostics, machine;  // state: the diagnostics of NUTS; its memory
    const int *latents;        // state: auxiliaries that NUTS leaves as they are
    // GM_COSTS numbers, in multiply-adds: [0] a sweep by Gibbs updates; [1] a NUTS transition and the rest of its sweep, [2] each
    // evaluation of its density; from GM_COST_ON_GPU on the same on a GPU, of each two numbers: what takes its time whatever the number of
    // chains, and the work of each chain
    void (*cost)(const void *data, double *cost);
} GmSelection;

// [GM_COST_OF_SCALES]: of draws of scales on the CPU (scales.h), if they were made in every sweep. The function adds it
enum { GM_COST_ON_GPU = 3, GM_COST_OF_SCALES = 9, GM_COSTS = 10 };

// Rows of an array, one after the other: so many are different in some of the arrays.
typedef struct GmDataRows {
    const void *elements;
    size_t bytes;
} GmDataRows;

#ifndef __CUDACC_RTC__
double gm_different_rows(long rows, int n, const GmDataRows *arrays);
#endif

// What a chain has done for a set of unknowns from its first sweep on; evaluations: of the log density and its gradient.
typedef struct GmWork {
    long gibbs_sweeps, transitions, evaluations;
} GmWork;

typedef struct GmSelected {                      // of a chain in a selection
    int gradients;                               // whether its next sweep is by NUTS
    int also;                                    // Gibbs updates besides
    int fails;                                   // the last transition found no finite density at the chain's state
    long first, adapts;                          // NUTS counts sweeps from here, and adapts in so many
    double target;                               // acceptance that its step size aims at; 0: as GmHmc says
    long moves, evaluations, divergent, failed;  // so far; the runtime clears them, and what follows
    long rounds;                                 // evaluations of the chain that makes most, of those that run in lockstep
    double scales;  // multiply-adds of collapsed updates of scales, with joint normals integrated out (device/scales.h)
    double metric;  // multiply-adds that metrics took which are not diagonal
    // of the last transition; of all, and the sums of squares about their mean and of their changes
    double energy, mean, squares, jumps;
    GmWork work;
} GmSelected;

// A statistic that an update reads: the number of its field of state, from 1, and what it is a sum of. own: an element that is drawn reads
// the element of the same number, else the first. field 0: a parameter of the law of the update, as a formula.
typedef struct GmStatistic {
    int update, field, own;
    const char *text;
} GmStatistic;

typedef struct GmModel {
    const char *name, *source;  // model name; path of the .gm file
    const GmField *data;
    int n_data;
    size_t data_size;
    const GmField *state;
    int n_state;
    size_t state_size;
    void (*setup)(GmRun *run);                   // after data, memory and initial values: hoisted sums
    void (*sweep)(GmRun *run);                   // run->batch sweeps of all chains
    double (*log_joint)(GmRun *run, int chain);  // of the augmented model
    int n_updates;                               // --check: updates one by one
    const char *(*update_name)(int update);
    void (*update)(GmRun *run, int update);
    int (*update_hmc)(int update);  // whether it is an HMC update
    // What a model may do without. NULL: there is nothing to do.
    void (*derive)(GmRun *run);        // GM_DERIVED and GM_PREDICTED of all chains, after a kept sweep
    void (*derive_chain)(GmRun *one);  // the same, of one->chain only
    // once a draw is stored: elements that `derive` made NaN are numbers again, since sums may take 0 times them
    void (*restore)(GmRun *run);
    void (*restore_chain)(GmRun *one);
    // draws without data, of one->chain: all unknowns and replicates of responses; NULL: a model for modes, or not_forward says why not
    void (*forward)(GmRun *one);
    const GmLaw *laws;                        // what can be drawn so, in order; the last one has no field. NULL: a model for modes
    const char *not_forward, *not_simulated;  // why unknowns cannot be drawn so, and why some response cannot; NULL: they can
    const char *not_as_data;                  // why what is drawn of a response is no data set of the model; NULL: it is one
    const char *sum_over_rows;                // a quantity of each row that reads a sum of data over all rows; NULL: there is none
    int joint_as_written;                     // log_joint has no auxiliaries, but for --check
    void (*refresh)(GmRun *run);              // after missing values were drawn: sums of responses
    double (*row_bytes)(const GmRun *run);    // of the matrix that row passes read
    long (*row_width)(const void *data);      // its columns; -1: several widths
    const char *by_chees;                     // the unknowns for which the model asks for ChEES; NULL: none
    // a sweep is an iteration of expectation-maximisation: maxima given the expectations, and the expectations there
    int for_modes;
    // of all chains, the expectations at their states. log_joint is the log density with latents integrated out where they were found last
    void (*expect)(GmRun *run);
    void (*expect_chain)(GmRun *one);
    void (*iterate_chain)(GmRun *one);
    const char *cpu_only;  // why the model runs on the CPU alone; NULL: it does not
    int own_hmc;           // the model sets the acceptance that HMC aims at, or the depth of NUTS: they are not 0.8 and 10 everywhere
    // What the rows of `data` and `state` do not say, of a field by its number from 1: extents, bounds that are no numbers. NULL: nothing.
    void (*data_shape)(int field, const void *data, GmShape *out);  // may read data fields before `field` only
    double (*data_default)(int field, const void *data);            // scalar default
    void (*data_sizes)(void *data);  // sums and ends of whole data that sizes are made of, once all data are there
    void (*state_shape)(int field, const void *data, GmShape *out);
    const GmFactor *factors;          // that a start may lie outside of; the last one has no text. NULL: none
    const GmEdges *edges;             // the last one has no law. NULL: none
    const GmDefinition *definitions;  // the last one has no name
    const GmPrior *priors;            // the last one has no field. NULL: none
    const GmObserved *observed;       // the last one has no place (where). NULL: none
    const GmStatistic *statistics;    // that updates read; the last one has no text. NULL: none
    const GmLabels *labels;           // NULL: there are none
    const GmSelection *selections;
    int n_selections;
    // of a sweep, as that of a selection (GM_COSTS numbers): by Gibbs updates, or with NUTS for what has it; else [0] and [GM_COST_ON_GPU]
    // alone
    void (*cost)(const void *data, double *cost);
} GmModel;

extern const GmModel gm_model;

#ifndef __CUDACC_RTC__
// Whether draws without data leave an element as it is; element -1: all elements of the variable.
static inline int gm_is_kept(const GmRun *run, int variable, long element)
{
    const unsigned char *keeps = run->keeps ? run->keeps[variable] : NULL;
    return keeps && keeps[element + 1];
}

// Position i of an array of n, in a size: outside, the program ends with a message.
long gm_inside(long i, long n, const char *name);
long gm_remainder(long i, long n);
// For these too: a product, and a whole number that was computed in reals. Ends the program with a line if a long does not hold it.
long gm_times(long i, long n);
long gm_whole(double x);
// Faults found while sampling: called by emitted code and device headers' host side. Ends the run in good order: the draws so far are kept.
void gm_fault(const GmRun *run, int chain, const char *variable, long element, const char *what);
// Whether a joint normal that is not proper in double precision may stay where it is for this sweep of the chain: not too often, else it is
// a fault.
int gm_may_stay(const GmRun *run, int chain, const char *variable);
void gm_stayed(const char *variable, long times);  // so many draws of it were not made (GM_STAYS)
// Whether the chain at work has met one: it makes no more updates.
int gm_chain_ended(const GmRun *run);
// A fault whose message says all: each # in it stands for a number.
void gm_fault_at(const GmRun *run, int chain, const char *variable, const char *says, int n, const long *number);
// --check: a gradient by a coordinate of an HMC update beside what differences give, whose error is about `error`.
void gm_check_gradient(const GmRun *run, const char *name, long coordinate, double slope, double difference, double error);
// `fit why` (host/why.c): whether draws are looked at; what a routine has drawn an element from, and the stream after it; a joint normal
// that is about to be drawn, in the forms of backends/linalg.h and sparse.h.
struct Stream;
extern int gm_watching;
void gm_watch_draw(const struct Stream *after, const char *routine, const char *said, const double *given, int n, double value);
void gm_watch_sum(int chain, const char *said, const char *over, int k, double total);  // the k-th total of "&h, &precision"
void gm_watch_joint(int chain, long n, const double *J, const double *h, const double *x);
void gm_watch_arrow(int chain, long n, const double *J, const double *h, const double *x, long m, const double *D, const double *E,
                    const double *k, const double *u);
void gm_watch_rows(int chain, long n, long p, const double *D, const double *h, const double *rows, const double *y, const double *x);
void gm_watch_sparse(int chain, int number, double *h, const double *x);
// Whether chains adapt an HMC update together.
int gm_goes_together(GmRun *run, const GmHmc *of);
// A chain has made a NUTS transition under method selection: its work and its outcome are added to what is known of the chain. metric:
// multiply-adds that a metric took.
void gm_selected_moved(GmSelected *c, long evaluations, int divergent, int failed, double energy, double metric);
// Has there been a fault? On a GPU, once all that was launched is done.
int gm_found_fault(GmRun *run);
#endif

#ifdef __cplusplus
}
#endif
#endif
