// fit_inside.h -- what the files of a whole run have in common: all that it holds.
//
//   fit_explain.c   what ended it, in words
//   fit_sample.c    the sweep loop
//   fit_end.c       files, summary, notes
//   fit_forward.c   draws without data, and calibration
//   fit_open.c      data, memory, initial values, files, the device, the methods
//   run.c           one after the other
#ifndef GM_FIT_INSIDE_H
#define GM_FIT_INSIDE_H

#include "device_inside.h"
#include "runs.h"
#include "why.h"

// Everything a run holds, so that one function can give it back whichever way the run ends.
typedef struct GmFit {
    const GmModel *model;
    int argc;
    char **argv;
    GmOptions options;
    GmData data;
    GmMemory memory;
    GmDraws draws;
    GmRun run;
    long *chain_kept;    // draws kept, by chain
    bool *chain_failed;  // its file could not be written
    bool derived;        // some column needs `derive`
    double sweep_seconds;
    double a_sweep;          // seconds of each sweep of the last batch
    long sweeps, first;      // made, and those of them before the run went on
    GmDevice *device;        // the GPU, or NULL
    GmRun turns;             // `map` of a program for modes on a GPU, which has the State of one chain: starts run one after the other
    double *update_seconds;  // --profile on the CPU
    GmNewData *new_data;     // of --new, or NULL
    GmMoments *moments;      // of --moments, or NULL
    GmTrials *selected;      // NULL: no methods to select from
    GmRestarts *restarts;    // NULL: chains stay where they are
    bool starts;             // HMC updates look for a start that has a density
    GmWhy why;
    GmOptions early_options;  // of --save-warmup: those of a run whose draws are the sweeps of warm-up
    GmDraws early;
    long *early_kept;  // by chain
    GmCheckpoint checkpoint;
    GmRecord record;
    GmStop stop;
    GmLive *live;                  // of --status, or NULL
    int status;                    // with which it has ended
    char *compared;                // `calibrate`: names of what has ranks, or NULL
    const struct GmFit *truth;     // `calibrate`: whose state the data were drawn from, or NULL
    double truth_lp;               // the log joint density there
    int (*start)(struct GmFit *);  // data, memory, initial values and all that follows, for the runs that `calibrate` makes (run.c)
} GmFit;

// ---- fit_explain.c ----

// Whether all draws that there are to be are there, or those before the end that an option asks for.
bool gm_fit_in_order(int status);
// What is left of a run that ended early, in words.
void gm_fit_explain_end(const GmFit *f, int status);
// Numbers whose squares no double holds make matrices and densities of them infinite, which the message of whatever fails then does not
// show.
void gm_fit_explain_large(const GmFit *f);
// After a fault: the factor that is 0 at the chain's state, if there is one, and what can be done in warm-up.
void gm_fit_explain_fault(const GmFit *f);
// Chains that have no density where they start, and find none in a sweep, begin where they have one. false after a message: there is none
// for one of them.
bool gm_fit_begin_with_density(GmFit *f);
// Draws at which the density is 0, or no number, are no draws of the posterior: all of a chain are like that only if a factor is so
// whatever the unknowns are.
bool gm_fit_impossible(const GmFit *f);

// ---- fit_sample.c ----

// The state of a chain as the next draw of it. false: its file cannot be written, which was said.
bool gm_fit_keep(GmFit *f, GmRun *one, GmDraws *d, long at);
// The process that writes NAME.nc. false after a message.
bool gm_fit_begin_netcdf(GmFit *f);
// Sweeps of warm-up that all chains have, of --save-warmup.
void gm_fit_count_early(GmFit *f);
// All sweeps, in batches of about a twentieth of a second: chains meet between batches only. Ends early on a fault, an
// interruption or a file that cannot be written; the status says which.
int gm_fit_sample(GmFit *f);

// ---- fit_end.c ----

// NAME_levels.json, where names were data.
bool gm_fit_write_levels(const GmFit *f);
// After the last sweep, which ended with `status`: the status to exit with.
int gm_fit_finish(GmFit *f, int status);
// Gives back what a run has besides data and options.
void gm_fit_run_close(GmFit *f);

// ---- fit_forward.c ----

// `prior`: the draws, each by itself.
int gm_fit_prior(GmFit *f);
// The log joint density of the simulated data and the values that they follow from.
void gm_fit_density_of_truth(GmFit *f);
// Parameters, small definitions and latents, separated by commas; the caller frees.
char *gm_fit_compared_names(const GmFit *f);
// `calibrate`: the status to exit with.
int gm_fit_calibrate(GmFit *f);
// Options of the runs that `calibrate` makes, which have no files.
void gm_fit_settle_calibrate(GmFit *f);

// ---- fit_open.c ----

// The device that --device asks for. f->device stays NULL on the CPU. GM_EXIT_OK, or another status after a message.
GmExit gm_fit_choose_device(GmFit *f);
// --compare-devices: the CPU begins where the GPU does.
int gm_fit_compare_devices(GmFit *f);
// What is asked for is settled, and the data and the memory are opened.
GmExit gm_fit_open_inputs(GmFit *f);
// The run, at initial values or where a checkpoint left it.
GmExit gm_fit_open_run(GmFit *f);
// The files that the run writes.
GmExit gm_fit_open_outputs(GmFit *f);
// What the run is, in a line.
void gm_fit_announce(const GmFit *f);
// What is computed once of the data, on the device that draws.
GmExit gm_fit_set_up(GmFit *f);
// Trials of methods, metrics, and starts with a density.
bool gm_fit_open_methods(GmFit *f);

#endif
