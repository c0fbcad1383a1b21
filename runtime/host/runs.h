// runs.h -- whole runs: those that go on, that are made again, without data, checked, calibrated; modes; predictions.
#ifndef GM_RUNS_H
#define GM_RUNS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include "draws.h"

// ---- checkpoint.c: runs that go on after they were killed ----

enum { GM_CHECKPOINT_SECONDS = 60 };

typedef struct GmCheckpoint {
    bool asked, goes_on;     // it is to be written; the run goes on from it
    bool enough;             // a rule has ended the run
    bool own_hmc;            // GmModel's
    char *path;              // NAME.checkpoint, or NULL without -o
    double every, written;   // seconds between two, and when the last one was
    uint64_t program, data;  // what they are known by
    uint64_t seed;
    long samples, sweeps, kept, early;  // asked for; made; draws and sweeps of warm-up in the files, of each chain
    double seconds[2];                  // of warm-up, of sampling
} GmCheckpoint;

typedef struct GmCheckpointed {  // what is saved of a run
    bool enough;                 // a rule has ended the run
    GmMemory *memory;
    GmRun *run;
    GmTrials *selected;
    GmRestarts *restarts;
    GmDraws *draws, *early;  // early: of --save-warmup, or NULL
    long kept, early_kept;
} GmCheckpointed;

// Before the data are read: --resume and --append read the head of the file, which the options have to agree with. Seed and number of
// draws are taken from it where none are given. false after a message.
bool gm_checkpoint_open(GmCheckpoint *c, const GmModel *model, GmOptions *o);
bool gm_checkpoint_data(GmCheckpoint *c, const GmModel *model, const GmData *d);  // false after a message: they are others
bool gm_checkpoint_memory(GmCheckpoint *c, GmMemory *m);                          // the state of the chains, before `setup`
// Before the first sweep: a run that goes on is where it was, another one has its first checkpoint. false after a message.
bool gm_checkpoint_begin(GmCheckpoint *c, const GmCheckpointed *of, const GmOptions *o);
void gm_checkpoint_write(GmCheckpoint *c, const GmCheckpointed *of, const GmOptions *o);  // what fails is said; the one before stays
void gm_checkpoint_close(GmCheckpoint *c);

// ---- record.c: what a run was made of, and the same run again ----

typedef struct GmRecordFile {
    char *path;
    bool regular, known;  // a file, and it could be read
    long bytes;
    char hash[65];
} GmRecordFile;

struct GmRecord {
    bool asked, running;  // it is to be written; files are being hashed
    int argc, n;
    char **argv, **again;  // the command line; that of `rerun`, owned
    GmRecordFile *file;    // that were read
    time_t begun;
    pthread_t thread;
    struct json_t *earlier, *written;  // the record of `rerun`; that of this run
};

typedef struct GmRecorded {  // what is written of a run
    const GmModel *model;
    const GmRun *run;
    const GmDraws *draws;
    const GmTrials *selected;
    const GmRestarts *restarts;
    const char *gpu;  // its name, or NULL
    long sweeps;
} GmRecorded;

// `rerun NAME_run.json ...`, or `rerun NAME ...`: the command line becomes that of the run. false after a message: the data are others, or
// the model is, or it is no record.
bool gm_rerun_open(GmRecord *r, const GmModel *model, int *argc, char ***argv);
void gm_record_open(GmRecord *r, const GmOptions *o, int argc, char **argv);  // files are hashed from here on
void gm_record_head(GmRecord *r, FILE *to);  // comments: when the run began, and each file that it has read; r may be NULL
// NAME_run.json, once the files of draws have their names. false after a message.
bool gm_record_write(GmRecord *r, const GmRecorded *of, const GmOptions *o, int status);
bool gm_rerun_same(const GmRecord *r);  // whether the draws of `rerun` are those of its run; said
void gm_record_close(GmRecord *r);

// ---- forward.c: draws without data ----

uint64_t gm_forward_seed(uint64_t seed);                                // of the draws, where runs have that seed
bool gm_forward_possible(const GmModel *model, const GmOptions *o);     // whether the command is; false after a message
bool gm_forward_is_parameter(const GmModel *model, const char *input);  // NAME=VALUE of an unknown
// One draw of all unknowns that are not given and of all responses, into the state of one->chain. false: a fault, which is not said yet.
bool gm_forward_draw(const GmModel *model, GmMemory *m, const GmData *d, GmRun *one);
// What is drawn of a response beyond its declared bounds, so that no run would read it: a sentence that the caller frees. NULL: nothing.
char *gm_forward_outside(const GmModel *model, const GmMemory *m, const GmData *d, int chain);
bool gm_forward_readable(const GmModel *model, const GmMemory *m, const GmData *d, int chain);  // false: there is some, which is said
void gm_forward_hint(const GmModel *model, const GmData *d);  // after a fault of it: what may be the cause
int gm_simulate(const GmModel *model, GmMemory *m, const GmData *d, const GmOptions *o, const GmRun *run);  // the status to exit with

// ---- calibrate.c: simulation-based calibration ----

typedef struct GmSimulations {
    long first, n;
    int *status;    // [n]: of the simulation, without which there are no draws
    double *truth;  // [n][columns]
    double *draws;  // [n][samples][columns]
} GmSimulations;

// What the command needs of a run. simulate: parameters and data of a simulation; fit: draws given these data, with so many sweeps of which
// every thin-th is kept. Both run in a process of their own. In place of both, fit_all: simulations from number `first` on as chains of one
// run; status, truth and draws are theirs, and the status that it returns is that of the run.
typedef struct GmCalibrated {
    void *of;
    long columns;
    const char *const *label;
    bool *compared;                                      // columns that have ranks
    int (*simulate)(void *of, long sim, double *truth);  // truth: by column, NaN where it is known later
    // draws: [kept][column]; truth: what of it depends on the data
    int (*fit)(void *of, long sim, long samples, int thin, double *truth, const double **draws);
    int (*fit_all)(void *of, const GmSimulations *s, long samples, int thin);
} GmCalibrated;

int gm_calibrate(const GmCalibrated *c, const GmModel *model, const GmOptions *o);  // the status to exit with

// ---- check.c ----

// --check: every update against the log joint; prints a table, returns GM_EXIT_OK, GM_EXIT_CHECK or GM_EXIT_FAULT.
int gm_check_updates(const GmModel *model, GmRun *run, const GmData *d, const GmMemory *m);

typedef enum GmChecked { GM_IS_RIGHT, GM_IS_WRONG, GM_IS_NOT_ASKED } GmChecked;

// When the draws are made: 1 to 20 sweeps more, in which each update's change of the log density is compared with its law's. Wrong, after a
// message: they differ by more than 0.1 and what rounding explains. Not asked: so many seconds did not suffice. The state is another one
// then.
GmChecked gm_check_after(const GmModel *model, GmRun *run, const GmMemory *m, double seconds);

// ---- map.c: the mode ----

// Ascends from the start of each chain, prints the best mode and writes it to files. The status to exit with.
// on_device: for expectation-maximisation, a run of one chain on a GPU, or NULL.
int gm_map(const GmModel *model, GmRun *run, GmRun *on_device, GmMemory *m, const GmData *d, GmOptions *o);
// --init map: each chain is at the mode that its ascent has found. GM_EXIT_OK, or another status after a message.
int gm_map_starts(const GmModel *model, GmRun *run, GmMemory *m, const GmData *d, GmOptions *o);

// ---- predict.c: predictions later, from stored draws ----

int gm_predict(const GmModel *model, int argc, char **argv);  // `fit predict DRAWS --new DATA`: the status to exit with

// ---- run.c ----

// A whole run, from the command line to the exit status.
int gm_fit(const GmModel *model, int argc, char **argv);

#endif
