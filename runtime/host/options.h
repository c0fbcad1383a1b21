// options.h -- the command line.
#ifndef GM_OPTIONS_H
#define GM_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>
#include "../backends/nvrtc.h"
#include "../backends/option_table.h"
#include "model.h"

// ---- options.c: the command line ----

// AUTO: the one that is expected to end the run sooner (device_auto.c)
typedef enum { GM_ON_AUTO, GM_ON_CPU, GM_ON_GPU } GmDeviceChoice;

// AUTO: by a trial; BOTH: NUTS with a Gibbs sweep after each transition
typedef enum { GM_METHOD_AUTO, GM_METHOD_GIBBS, GM_METHOD_NUTS, GM_METHOD_BOTH } GmMethod;
// AUTO: as the model asks; else by the device and the number of chains
typedef enum { GM_TRAJECTORIES_AUTO, GM_TRAJECTORIES_NUTS, GM_TRAJECTORIES_CHEES } GmTrajectories;

typedef enum { GM_SUMMARY_TEXT, GM_SUMMARY_CSV, GM_SUMMARY_JSON } GmSummaryForm;
typedef enum { GM_FORMAT_CSV, GM_FORMAT_NETCDF, GM_FORMAT_BOTH } GmFormat;
enum { GM_MOST_QUANTILES = 16 };

// draws without data: `prior`, `simulate`, `calibrate`
typedef enum { GM_FROM_DATA, GM_PRIOR, GM_SIMULATE, GM_CALIBRATE } GmForward;

typedef struct GmOptions {
    GmForward forward;
    bool from_prior;  // --from prior
    long sets, sims;  // --sets, --sims; 0: not given
    bool as_chains;   // of `calibrate`: simulations are chains of one run
    GmDeviceChoice as_chains_on;
    const char *report;    // of `calibrate`: a page, or NULL
    const char *ranks;     // of `calibrate`: the NAME of -o, or NULL
    int chains;            // > 0
    long warmup, samples;  // >= 0 and >= 1; samples counts draws kept
    int thin;              // >= 1: every thin-th sweep after warm-up is kept
    uint64_t seed;
    int first_chain;     // number of the first chain, from 1
    const char *output;  // -o, without ".csv" or ".nc"; or NULL
    GmFormat format;     // of the draws
    bool format_given, output_is_netcdf;
    const char *params;     // "a,b", "all", or NULL for the default
    int requests;           // GmRequest bits
    bool log_prior;         // --log-prior, which requests log-likelihoods, too
    const char *moments;    // "a,b", whose draws are not stored; or NULL
    const char *init_file;  // as it was given, or NULL
    char **init_of;         // by chain: the file it starts from; NULL: init_file is of all chains, or there is none
    bool init_map;          // chains start at modes, found first
    double init_radius;     // 1 by default; 0: zeros
    int threads;            // >= 1
    bool quiet, check, summary, log_joint;
    GmMethod method;       // if the program has several
    GmTrajectories moves;  // how HMC trajectories are made
    GmDeviceChoice device;
    int device_number;      // of the GPU, from 0
    GmPrecision precision;  // on a GPU; mixed by default
    bool precision_given;
    size_t device_memory;  // most bytes of a GPU's memory to take; 0: what is free
    bool profile, compare_devices;
    long summary_rows;  // most rows of the table; LONG_MAX: all
    GmSummaryForm summary_form;
    double quantile[GM_MOST_QUANTILES];  // of the summary, in per cent
    int n_quantiles;                     // 0: 5, 50 and 95
    int digits;                          // of the numbers in the files; 0: as many as read back to the same double
    long refresh;                        // sweeps between lines of progress; 0: the bar, on a terminal
    bool map, jacobian;                  // `map`: the mode, not draws; with the Jacobian of the coordinates without bounds
    int starts;                          // of `map`; 0: none were given
    long iterations;                     // of `map`: most iterations of each start; 0: until it converges
    int n_inputs;                        // data.json, more.csv, X=file.npy, N=100, in the order given
    char **inputs;
    int n_new_inputs;  // of --new, in the order given
    char **new_inputs;
    int n_levels;  // of --levels, in the order given
    char **levels;
    const char *dates;  // --dates, or NULL
    const char *why;    // `why`: an unknown; NULL: another command
    int why_chain;      // its chain and its draw, from 1
    long why_draw;
    const char *why_draws;  // the file of draws, or their NAME; NULL: none
    bool seed_given, warmup_given, thin_given;
    bool samples_given;
    double until_ess, until_rhat, max_time;  // when the run ends early; 0: not
    bool stop_on_divergence;
    bool status;                                  // NAME.status.json is written
    double checkpoint;                            // seconds between checkpoints; below 0: none are asked for
    bool resume;                                  // the run goes on from its checkpoint
    long append;                                  // draws after a run that has ended; 0: none
    bool goes_on;                                 // there is such a checkpoint
    bool relabel;                                 // labels of components are made to agree at the end
    const char *relabel_by;                       // by which; NULL: as `relabel` has it
    char *relabel_names;                          // those of parameters, where nothing else is stored
    bool template;                                // --data-template
    bool overwrite;                               // files that are there are replaced
    bool save_warmup;                             // sweeps of warm-up are kept in files of their own
    double adapt_delta;                           // mean acceptance that step sizes aim at; 0: as the model has it
    int max_treedepth;                            // 0: as the model has it
    bool later, new_levels, same_rows, new_sums;  // `predict`: for new data, from stored draws; its options
} GmOptions;

// Reads argv. Returns -1 to go on, or the status to exit with (after --help, --version or a bad flag).
int gm_options(int argc, char **argv, GmOptions *out);
int gm_options_later(int argc, char **argv, GmOptions *out);  // the same for `predict`; argv[optind] is the first of the draws
void gm_options_close(GmOptions *o);
void gm_usage(FILE *to, const char *program);
extern const char gm_version[];
// What an option or a setting of other programs, `--num_samples`, `delta=0.9`, is called here; NULL: not known. The caller frees.
char *gm_foreign_option(const char *text);
// The message that there is no such option, with one that may be meant; `command`: before it, "relabel: " or "".
void gm_option_refused(const char *command, unsigned groups, const char *flag);
bool gm_option_quantiles(const char *text, GmOptions *out);  // --quantiles 2.5,50,97.5; false after a message
bool gm_option_summary(const char *text, GmOptions *out);    // --summary N, all, csv or json; the same

// The rows of options.def.
enum {
    OPT_NONE,
#define OPTION(group, id, letter, name, argument, values, help) OPT_##id,
#include "options.def"
};
enum {
#define GROUP(id, heading) GROUP_BIT_##id,
#include "options.def"
#define GROUP(id, heading) GROUP_##id = 1 << GROUP_BIT_##id,
#include "options.def"
};
extern const GmOption gm_option_table[];
void gm_option_group_print(FILE *to, unsigned group);  // as --help shows it

#endif
