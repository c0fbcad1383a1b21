// warmup.h -- what warm-up decides: metrics, methods, restarts, adaptation in common; convergence.
#ifndef GM_WARMUP_H
#define GM_WARMUP_H

#include <stdbool.h>
#include <stdio.h>
#include "chains.h"

// ---- metrics.c: metrics of HMC that are not diagonal ----

typedef struct GmMetrics GmMetrics;

GmMetrics *gm_metrics_open(const GmModel *model, const GmData *data, int chains, bool on_gpu);
// the metric of a chain's HMC update, from its first transition on; NULL: it is always diagonal
struct Metric *gm_metric_of(GmMetrics *w, const GmRun *run, const GmHmc *of, int chain);
// resets the metric of a chain's HMC update to a diagonal one that has adapted to nothing
void gm_metrics_forget(GmMetrics *w, uint64_t machine, int chain, long warmup);
// the cost of the metric of a chain's HMC update for each evaluation, in the units of costs; selections are counted from 1
double gm_metrics_work(const GmMetrics *w, int selection, int chain);
// the metrics of a chain, a line for each that is not diagonal
void gm_metrics_note(FILE *to, const GmMetrics *w, const GmSelected *selected, int chain, const char *before);
void gm_metrics_print(FILE *to, const GmMetrics *w, const GmSelected *selected);  // selected: NULL, where there is no method selection
void gm_metrics_save(GmMetrics *w, GmSaved *s, long warmup);
void gm_metrics_close(GmMetrics *w);

// ---- convergence.c: R-hat, effective sample sizes, Monte Carlo errors ----

// Of one quantity. Diagnostics are NaN where undefined: fewer than 8 draws per chain, values that are not finite, a constant.
typedef struct GmSummary {
    double mean, sd, q5, q50, q95;
    double mcse;  // of the mean
    double ess_bulk, ess_tail, rhat;
} GmSummary;

// x[chain * draws + draw]; Vehtari, Gelman, Simpson, Carpenter, Buerkner 2021, "Rank-normalization, folding, and localization".
GmSummary gm_summarise(const double *x, int chains, long draws);
// Effective number of the draws of the chains, x[chain * draws + draw], 8 or more each, that are finite: the smaller of that of their
// normal scores and the geometric mean of those of both tails, each of 5 %.
double gm_mixing(const double *x, int chains, long draws);
// The p-quantile of n > 0 sorted values, linear between them (type 7 of Hyndman and Fan 1996).
double gm_quantile(const double *sorted, long n, double p);
int gm_ascending(const void *a, const void *b);  // of two numbers, for qsort
void gm_ranks(double *x, long size);             // replaces values by their ranks from 1: ties share the mean of theirs
// out[0] to out[lags] of one chain; NaN for a constant. lags < draws
void gm_autocorrelations(const double *x, long draws, int lags, double *out);
// The mean square change of the energy between draws over its variance (E-BFMI, Betancourt 2016): below 0.3 momenta are too small a part
// of it to cross the posterior.
double gm_energy_ratio(const double *energy, long draws);

// ---- selection.c: method selection: each chain chooses between methods by measurements in warm-up ----

typedef struct GmTrials GmTrials;

// the fewest sweeps of warm-up in which NUTS adapts; in which it is tried
enum { GM_LEAST_TRAJECTORIES = 100, GM_LEAST_MEASURED = 300 };

typedef struct GmDraws GmDraws;    // draws.c
typedef struct GmRecord GmRecord;  // record.c

// NULL: no methods to select from
GmTrials *gm_trials_open(const GmModel *model, const GmMemory *m, const GmData *data, const GmDraws *d, const GmOptions *o, bool on_gpu);
long gm_trials_warmup(long warmup);  // sweeps in which NUTS under selection adapts before it is measured
// whether the method that the user asks for is available; if not, a message says so
bool gm_trials_allow(const GmTrials *w, const GmModel *model, const GmOptions *o);
GmSelected *gm_trials_of(GmTrials *w);  // the current choices, for GmRun
// called by each chain after each sweep: measures, and decides the method of the next sweep
void gm_trials_after(GmTrials *w, int chain, long sweep);
// the number of sweeps from `sweep` on, at most `batch`, until chains meet to choose
long gm_trials_until(const GmTrials *w, long sweep, long batch);
void gm_trials_meet(GmTrials *w, long done);  // called when all chains have made `done` sweeps: they choose, if it is time

// On a GPU chains run in lockstep and use the same method. Measurements are rows, with the same columns for each chain. They arrive at
// meetings, after sweeps that are known beforehand, so that the choice does not depend on the GPU.
enum { GM_WATCHED = 512 };  // rows between two meetings, at most
// a column: an element of a field of State, or of a header in it
typedef struct GmWatched {
    int field;
    long element;
    GmType type;
} GmWatched;
long gm_trials_columns(const GmTrials *w, GmWatched *out);  // the number of columns; out gets them, or is NULL
// sets the methods of a sweep; gives a number that identifies them
uint64_t gm_trials_form(GmTrials *w, long sweep);
bool gm_trials_watch(const GmTrials *w, long sweep);  // whether the row of this sweep is needed
bool gm_trials_due(const GmTrials *w, long done);     // whether a meeting after `done` sweeps is due
// the meeting: the rows of the last n sweeps, [n][chains][columns]
void gm_trials_watched(GmTrials *w, long done, long n, const double *rows);
// the costs of HMC metrics on a GPU; on a CPU they are counted during the run
void gm_trials_know(GmTrials *w, const GmMetrics *metrics);
void gm_trials_move_by(GmTrials *w, const char *name);  // the name of HMC in messages: "NUTS" by default
// the methods that a chain has chosen: a line for each selection, after `before`
void gm_trials_note(FILE *to, const GmTrials *w, int chain, const char *before);
// the unknowns of this diagnostic field, if it belongs to a selection, else NULL
const char *gm_trials_of_moves(const GmTrials *w, int field, bool *gibbs_between);
void gm_trials_print(FILE *to, const GmTrials *w);  // of all chains: a line a selection
// what all chains together have done for a set of unknowns, from the first sweep on; known on the CPU
GmWork gm_trials_work(const GmTrials *w, int k);
void gm_trials_save(GmTrials *w, GmSaved *s);
void gm_trials_close(GmTrials *w);

// ---- restarts.c: a chain in a region of negligible probability restarts at the position of another one ----

typedef struct GmRestarts GmRestarts;

GmRestarts *gm_restarts_open(const GmModel *model, const GmMemory *m, const GmData *d, const GmOptions *o);  // NULL: not possible
// called by each chain before each HMC update
void gm_restarts_moves(GmRestarts *w, int chain, const GmHmc *of);
void gm_restarts_after(GmRestarts *w, const GmRun *one);  // called by each chain after each sweep
// sweeps from `sweep` on, of at most `batch`, after which chains meet
long gm_restarts_until(const GmRestarts *w, long sweep, long batch);
// called when all chains have made `done` sweeps: some restart, if it is time
void gm_restarts_meet(GmRestarts *w, GmRun *run, long done);
// a line, after `before`, if the chain has restarted
void gm_restarts_note(FILE *to, const GmRestarts *w, int chain, const char *before);
void gm_restarts_print(FILE *to, const GmRestarts *w);  // a line for each chain that has restarted
void gm_restarts_save(GmRestarts *w, GmSaved *s);
void gm_restarts_close(GmRestarts *w);

// ---- together.c: chains that adapt together (device/chees.h) ----

bool gm_together_possible(const GmModel *model, const GmOptions *o);  // else a message
// once the device is known: sets run->together_mode and run->together
void gm_together_open(GmRun *run, const GmModel *model, const GmOptions *o);
bool gm_together_selected(const GmRun *run,
                          const GmModel *model);       // whether chains adapt an HMC update together that belongs to a method selection
long gm_together_until(const GmRun *run, long batch);  // sweeps from run->sweep on, of at most `batch`, after which chains meet
// called when all chains have made `done` sweeps, on a CPU: they adapt, if it is time
void gm_together_meet(GmRun *run, const GmModel *model, long done);
void gm_together_learned(GmTogether *t, double step, double log_time);  // stores what a chain has adapted
void gm_together_note(FILE *to, const GmRun *run, const char *before);  // a line for each HMC update, after `before`: what was adapted
void gm_together_save(GmRun *run, GmSaved *s);
void gm_together_close(GmRun *run);

#endif
