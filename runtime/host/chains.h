// chains.h -- the state of the chains, faults, and where chains start.
#ifndef GM_CHAINS_H
#define GM_CHAINS_H

#include <stdbool.h>
#include <stdio.h>
#include "inputs.h"
#include "output.h"

// ---- memory.c: State, one per chain ----

typedef struct GmMemory {
    void *state;   // array of the emitted file's State
    void **block;  // one per chain, then the shared one, and that of expectations
    // one per chain, and a shared one: arrays of the updates that replace a joint normal, and their sizes. The system allocates pages only
    // when they are used
    void **standing_in;
    size_t standing_in_bytes[2];
    bool in_turn;  // all chains share the arrays of expectations, and run one after the other
    int chains;
    size_t bytes[3];  // of a chain's block, the shared one, and that of expectations
    GmShape *shape;   // by state field
    long negative;    // a negative size of an array of the compiler, which then has no elements
} GmMemory;

// requests: GmRequest bits. may_take_turns: chains are starts, which may run one after the other if expectations of latents (`by_start`)
// are large.
bool gm_memory_open(GmMemory *m, const GmModel *model, const GmData *d, int chains, int requests, bool may_take_turns);
// bytes of the expectations of one start, and the name of the largest array
size_t gm_memory_by_start(const GmModel *model, const GmMemory *m, const char **largest);
void gm_memory_close(GmMemory *m);

// A copy of the chains' state before their first sweep, and its restoration, which frees the copy. NULL: it would need more than `most`
// bytes, or memory is exhausted.
typedef struct GmKept GmKept;
GmKept *gm_memory_keep(const GmMemory *m, double most);
void gm_memory_back(GmMemory *m, GmKept *kept);
void *gm_state_array(const GmModel *model, const GmMemory *m, int chain, int field);
void gm_memory_save(GmMemory *m, GmSaved *s);  // or read it again, as all functions of this name

// ---- fault.c: faults while sampling ----

bool gm_fault_raised(void);  // has gm_fault (model.h) been called since the last gm_fault_clear?
void gm_fault_clear(void);
void gm_stays_save(GmSaved *s);               // what counts of joint normals that kept their values
void gm_stayed_note(void);                    // a line about joint normals that kept their values, if there were any
long gm_fault_sweep(void);                    // where it happened, from 0
int gm_fault_chain(void);                     // its number in all, from 0
bool gm_fault_of_data(const GmModel *model);  // raised, by data or values computed from them, not by an unknown

// The fault as one line to stderr. `m`, or NULL, has the shapes, to name an element of a matrix. Before the first sweep the cause are the
// data `d`: their value is printed, and no chain is named. Later `d` is NULL.
void gm_fault_print(const GmModel *model, const GmMemory *m, const GmData *d);

// ---- singular.c: matrices that are singular to within rounding ----

bool gm_nearly_singular(const double *A, long n, double *L);                   // symmetric; L: room for n by n
char *gm_singular_matrix(const GmModel *model, const GmMemory *m, int chain);  // one of the state in words, or NULL

// ---- last_draw.c: the last draw of another run ----

// The values of the unknowns in the last line of draws_1.csv, or the last draw of that chain of draws.nc. False after a message.
bool gm_last_draw(const GmModel *model, GmMemory *m, const char *path, long chain, GmValues *out);

// ---- edges.c: graphs of data ----

// No pair of nodes is joined twice, and there are as many parts as the laws say. False after a message that names the nodes.
bool gm_edges_good(const GmModel *model, const GmMemory *m, const GmData *d);

// ---- feasible.c: starts at which no factor is 0 ----

// If a factor is 0 at a chain's start, changes as few variables as possible so that none is. Variables that `given` marks (by state field;
// or NULL) are not changed. false after a message that names the factor: no such start was found.
bool gm_feasible(const GmModel *model, GmMemory *m, const GmData *d, const GmRun *run, const bool *given);

// The first factor of the model that is 0 or no number at the chain's state, in words, or NULL; the caller frees. `chain` counts from 0.
char *gm_zero_factor(const GmModel *model, const GmMemory *m, const GmData *d, int chain);

// ---- initial.c: where chains start ----

// The random start of one variable of the first chain, by itself, as gm_initial draws it; `variable`: its field.
void gm_start_values(const GmField *field, const GmShape *shape, uint64_t seed, uint32_t variable, void *elements);

// Fills parameters, latents, auxiliaries and missing data of every chain. Keyed by (seed, chain number, field, element) only.
// false after a message: the file of initial values is bad.
bool gm_initial(const GmModel *model, GmMemory *m, const GmData *d, const GmOptions *o, const GmRun *run);
// New random values, within `radius` of zero on the unbounded scale, for n elements of a state field from `first` on: a whole vector, if
// its elements are constrained together. Matrices are not changed. The random numbers are keyed by `sweep` as well, one that no run
// reaches.
void gm_draw_start_again(const GmModel *model, const GmMemory *m, const GmRun *run, int chain, int field, long first, long n, double radius,
                         uint64_t sweep);
// elements of definitions and predictions that no statement computes: NaN, or no integer
void gm_fill_absent(const GmModel *model, const GmMemory *m, int chain);

// ---- starts.c: where HMC updates begin ----

// For GmRun.instead: before a chain's first HMC update, finds initial values with a finite density. Always 0.
int gm_find_start(GmRun *one, const GmHmc *of, void (*density)(GmRun *));

// Before the first sweep, on the CPU: the same for blocks whose Gibbs updates begin.
void gm_find_starts_of_updates(const GmModel *model, GmRun *run);

// The first observed variable without a finite log density at a chain's state, with its line, or NULL; the caller frees. `chain` counts
// from 0. On the CPU.
char *gm_infinite_log_lik(const GmModel *model, const GmMemory *m, const GmData *d, const GmRun *run, int chain);
// A copy of a chain, with room for what `requests` (GmRequest bits) asks for. false: there is no memory for it.
bool gm_copy_chain(const GmModel *model, const GmMemory *m, const GmData *d, int chain, int requests, GmMemory *out);

// ---- separation.c: outcomes that unknowns without bounds make certain ----

// The discrete response of which every observed value has a probability of next to 1 at the state of each chain, as under separation; NULL:
// there is none.
const char *gm_separated(const GmModel *model, const GmMemory *m, const GmData *d, const GmRun *run);

enum { GM_NAMED_UNKNOWNS = 3 };

typedef struct GmCoordinate {
    int field;
    long element;
} GmCoordinate;

typedef struct GmSeparation {
    const char *of;    // the response
    char first[80];    // the first of its values that are separated
    long values, all;  // these, of all that are observed
    int n_unknowns;    // that go to infinity, of which the first are:
    GmCoordinate unknown[GM_NAMED_UNKNOWNS];
    bool upwards[GM_NAMED_UNKNOWNS];
    bool of_categories;  // values are certain of a response with three values or more: whether or not a direction was found
    bool bounded;        // the prior is proper and narrow in that direction
} GmSeparation;

// Whether unknowns may go to infinity with values observed that become certain, and no other that gets less likely. These values have
// log-likelihoods above next_to_0 at the ends of most chains.
bool gm_find_separation(const GmModel *model, const GmMemory *m, const GmData *d, const GmRun *run, double next_to_0, GmSeparation *out);

// ---- second_start.c: other starts where the density is 0 at the first ----

// New initial values for chains whose log joint density is not finite and whose first sweep ends in a fault. -1, or the chain for which
// none with a finite density were found, after a message. The run has been set up.
enum { GM_SECOND_STARTS = 100 };  // random initial values that are tried
int gm_second_starts(const GmModel *model, GmMemory *m, const GmData *d, const GmOptions *o, GmRun *run);

#endif
