// draws.h -- draws on their way into files, and what is said of them: the summary, rules that end a run, new data.
#ifndef GM_DRAWS_H
#define GM_DRAWS_H

#include <stdbool.h>
#include <stdio.h>
#include "warmup.h"

// ---- writer.c: rows of numbers into files, while the chains go on ----

// The rows of all chains and the threads that write them. For each chain one thread at a time stores rows, in their order.
typedef struct GmWriter GmWriter;

// rows[chain][held][columns] are the rows of the chains; row `at` of a chain is at index at % held. name: of the chain's file, for
// messages.
GmWriter *gm_writer_open(double *rows, int chains, long held, long columns, FILE **file, char *const *name, int threads, int digits);
// waits until row `at` may be filled; false: the file cannot be written
bool gm_writer_room(GmWriter *w, int chain, long at);
void gm_writer_stored(GmWriter *w, int chain, long at);  // it is filled
// Rows before `at` are in the files, and sum[chain] is that of their text; before the first row is stored.
void gm_writer_begin(GmWriter *w, long at, const uint64_t *sum);
uint64_t gm_writer_sum(const GmWriter *w, int chain);  // gm_mix of each number with what follows it, of all rows; after gm_writer_flush
void gm_writer_flush(GmWriter *w);                     // waits until what is stored is in the files; no chain stores meanwhile
void gm_writer_close(GmWriter *w);                     // waits until all stored rows are written
long gm_writer_held(long columns, long most);          // the number of rows that each chain needs in memory to avoid waiting

// ---- adaptation.c: step sizes and metrics that HMC has adapted, for the files ----

typedef struct GmAdaptation {
    bool moves, by_nuts;  // the program has HMC updates; this chain uses them
    double step;          // step size of the first block; 0: there is none
    int depth;            // its doublings at most
    long n;               // coordinates of all blocks
    double *metric;       // the diagonal of the inverse metric, 1 where nothing was adapted; the caller frees
} GmAdaptation;

GmAdaptation gm_adaptation(const GmModel *model, const GmMemory *m, const GmRun *run, int chain);
// Of the transitions of all chains whose diagnostics are this field, those after warm-up that left the domain of something computed; *line:
// where the model has the first such condition.
long gm_transitions_left(const GmModel *model, const GmRun *run, int diagnostics, int *line);
void gm_adaptation_write(FILE *to, const GmAdaptation *a);

// By what the transitions are made whose diagnostics are a field. Of a step that the model gives nothing adapts. The last three are HMC.
typedef enum { GM_MOVES_UNKNOWN, GM_MOVES_NONE, GM_MOVES_NUTS, GM_MOVES_HMC, GM_MOVES_HMC_OF_STEP, GM_MOVES_CHEES, GM_N_MOVES } GmMovesBy;
extern const char *const gm_moves_names[GM_N_MOVES];  // as files say it

// chain -1: by the first one that makes them. NONE: Gibbs updates draw. UNKNOWN: there were no transitions yet
GmMovesBy gm_moves_by(const GmModel *model, const GmRun *run, int diagnostics, int chain);
// "# transitions of mu, tau = NUTS, chosen": a line for each diagnostic field, in their order; chosen: Gibbs updates could draw instead
void gm_moves_note(FILE *to, const GmModel *model, const GmRun *run, const GmTrials *selected, int chain);

// ---- moments.c: means and sds of quantities whose draws are not stored ----

typedef struct GmMoments GmMoments;

bool gm_moments_named(const char *list, const char *name);  // whether a name is in a list with commas, or NULL
GmMoments *gm_moments_open(const GmModel *model, const GmMemory *m, const GmOptions *o);  // NULL after a message
bool gm_moments_need_derived(const GmMoments *w);
void gm_moments_take(GmMoments *w);                                         // when all chains are at a kept sweep
bool gm_moments_write(const GmMoments *w, const char *output, int digits);  // NAME_moments.csv; false after a message
void gm_moments_print(FILE *to, const GmMoments *w, const GmLevelSets *levels);
void gm_moments_close(GmMoments *w);

// ---- draws.c: which columns, and the CSV files ----

enum { GM_COLUMN_LP = -1, GM_COLUMN_LPRIOR = -2 };
typedef struct GmColumn {
    int field;     // of state, or one of these
    long element;  // linear, row-major
    bool absent;   // NaN in every draw: the log-likelihood of a missing value
    long into;     // absent, with --log-prior: the column to which the density of the value is added; 0: none
} GmColumn;

// elements of a GM_DIAGNOSTIC
enum { GM_HMC_ACCEPT, GM_HMC_STEP, GM_HMC_DEPTH, GM_HMC_LEAPS, GM_HMC_DIVERGENT, GM_HMC_ENERGY, GM_HMC_NUMBERS };

typedef struct GmDiverged {  // kept draws of a chain whose transition diverged
    _Atomic long n;
    long room, *at;
} GmDiverged;

typedef struct GmNetcdfRun GmNetcdfRun;  // netcdf_process.c

struct GmDraws {
    int chains, first_chain;
    long n_columns;
    long n_summarised;    // of them, in the summary: log-likelihoods and replicates, which come last, are not
    GmColumn *column;     // lp__ first, then declaration order; inside an array the first index runs fastest
    long capacity, kept;  // draws per chain
    bool summary;         // all draws stay in memory
    long held;            // rows in memory per chain: `capacity` with a summary or new data, else those on their way to the files
    double *memory;       // [chain][held][column]; row n lies at n % held
    long *stored;         // per chain: rows, of which the last may be more than `kept`
    int n_divergent;      // columns that say whether a transition diverged
    long *divergent;
    GmDiverged *diverged;      // per chain
    long *possible;            // per chain: kept draws at which lp__ is neither NaN nor -infinity
    FILE **file;               // per chain, or NULL without -o
    GmFile *output;            // the files that `file` writes to
    char **final;              // its path, for messages
    GmWriter *writer;          // or NULL without -o
    GmNetcdfRun *netcdf;       // or NULL
    bool (*pass_on)(struct GmNetcdfRun *, bool all);  // gm_netcdf_take, with a file: of draws of an earlier run
    char *settings, **notes;   // what the head of a CSV file says, and by chain what follows it; NULL: no NAME.nc is asked for
    bool of_warmup;            // of --save-warmup
    long block;                // draws of a chain that go into NAME.nc together
    const GmTrials *selected;  // of methods; NULL: the program holds none
    double begun, sampling;    // times in seconds at which sweeps, and kept draws, began
    const GmModel *model;      // those of gm_draws_open
    const GmMemory *shapes;
    const GmData *data;
    const GmOptions *options;
    GmRecord *record;  // when the run began and what it has read, for the head of files; NULL: nothing is said of it
};

bool gm_draws_open(GmDraws *d, const GmModel *model, const GmMemory *m, const GmData *data, const GmOptions *o);
bool gm_draws_keep_auxiliaries(const GmDraws *d, const char *moments);  // some of their columns, or of --moments
// Before the first draw of a chain: writes the head of its file, with the results of warm-up.
void gm_draws_begin(GmDraws *d, const GmRun *run, const GmTrials *selected, const GmRestarts *restarts, int chain);
char *gm_draws_notes(const GmDraws *d);  // of all chains; the caller frees
// not a quantity of the model, but a diagnostic of HMC
bool gm_draws_diagnostic(const GmDraws *d, const GmModel *model, long column);
bool gm_draws_store(GmDraws *d, int chain, long at, const double *row);  // one row of columns, as row `at` of the chain
// called by each chain; row `at`
bool gm_draws_keep(GmDraws *d, const GmModel *model, const GmMemory *m, int chain, long at, double log_joint);
// renames the temporary files, if every chain kept a draw; may lower `kept`. A file that cannot be renamed keeps its temporary name
bool gm_draws_finish(GmDraws *d);
// For runs that may be killed: files get temporary names that the next run knows, NAME_1.csv.part. false after a message.
bool gm_draws_settle(GmDraws *d);
// The first `kept` rows of each chain are those of an earlier run, of its files with such names or their own; then heads are written and
// files have these names. last, sum: row number `kept` of each chain, and the sum of the text of all rows, which are compared. false
// after a message.
bool gm_draws_resume(GmDraws *d, const GmRun *run, const GmTrials *selected, const GmRestarts *restarts, long kept, const double *last,
                     const uint64_t *sum);
bool gm_draws_on_disk(GmDraws *d);                                           // what is stored is on the disk; false after a message
long gm_draws_diverged(const GmDraws *d);                                    // of the draws so far; by any thread
long gm_draws_diverged_kept(const GmDraws *d);                               // of those that are kept, once no chain goes on
void gm_draws_column(const GmDraws *d, long column, long kept, double *to);  // to[chain * kept + draw], if all are in memory
const double *gm_draws_row(const GmDraws *d, int chain, long at);            // one that is still in memory
void gm_draws_close(GmDraws *d);                                             // removes temporary files that were not finished
// '.' beta.1, '[' beta[1]
char *gm_column_label(const GmDraws *d, const GmModel *model, const GmMemory *m, long column, char style);
bool gm_draws_need_derived(const GmDraws *d, const GmModel *model);

// ---- stop.c: when a run ends before all its draws ----

typedef struct GmStop {
    _Atomic long first;  // sweeps after warm-up up to the first divergent transition
    _Atomic int chain;   // of that
    long worst;          // column that was not good enough when the rules looked last
    bool lacks_ess;      // of effective sample size; else of R-hat
    bool in_order;       // some quantities counted with components in order
    double hashing;      // --max-time: seconds a number takes at the end; 0: not known yet
    double packing;      // seconds that draws have taken on their way to a NetCDF file
    long packed;         // draws of each chain that are there
} GmStop;

void gm_stop_open(GmStop *s);                                    // time is counted from here
bool gm_stop_rules(const GmOptions *o);                          // whether there is --until-ess or --until-rhat
long gm_stop_until(const GmOptions *o, long sweep, long batch);  // sweeps, at most `batch`, until the rules look
// if they look now: the draws are enough
bool gm_stop_enough(GmStop *s, const GmModel *model, const GmMemory *m, const GmOptions *o, const GmDraws *d);
bool gm_stop_diverged(const GmModel *model, const GmMemory *m, int chain);                   // the last transition of a chain
void gm_stop_note(GmStop *s, long sampled, int chain);                                       // one did, by any thread
double gm_stop_left(const GmOptions *o);                                   // seconds of --max-time; INFINITY without it
double gm_stop_ending(GmStop *s, const GmOptions *o, const GmDraws *d);    // that files will take at the end, for draws up to now
void gm_stop_packed(GmStop *s, double seconds, long kept);                 // a NetCDF file took so long for the draws up to here

// ---- live.c: how far a run is, in a file ----

typedef struct GmLive GmLive;

// NAME.status.json, written each second from here on; NULL without --status. sweep: after which the run goes on, of `sweeps`; kept: draws.
GmLive *gm_live_open(const GmModel *model, const GmOptions *o, const GmDraws *d, long sweep, long sweeps, long kept);
void gm_live_at(GmLive *l, long sweep, long kept);  // all chains have made them
void gm_live_stop(GmLive *l);                       // the draws are looked at no longer
void gm_live_close(GmLive *l, int status);          // with what the run has ended; before the draws are closed

// ---- netcdf.c: the draws as one NetCDF file ----

bool gm_netcdf_open(void);                  // opens netcdf-c; false after a message
bool gm_netcdf_may_hold(const GmDraws *d);  // false after a message: a name cannot be there
// The file, by blocks of so many draws of each chain; nothing is written before the first. put: n rows of each chain, [chain][n][column];
// n is less than a block at the end only. close: NULL, or why it is not whole; it begins with `name` where numbers are not as drawn.
typedef struct GmNetcdf GmNetcdf;
GmNetcdf *gm_netcdf_create(const GmDraws *d, long block);
GmNetcdf *gm_netcdf_beside(GmNetcdf *first, const GmDraws *d, long block);   // in the file of `first`, which is closed after it
void gm_netcdf_about(GmNetcdf *w, const char *settings, const char *notes);  // before the first block; either may be NULL
bool gm_netcdf_put(GmNetcdf *w, const char *path, const double *rows, long n);
// whole: the run has ended, and has as many draws as it says
const char *gm_netcdf_close(GmNetcdf *w, const char *name, double sampling, bool whole);

// ---- netcdf_process.c: the process that writes it while the chains go on ----

GmNetcdfRun *gm_netcdf_begin(const GmDraws *d, const GmDraws *early);  // early: of --save-warmup, or NULL; NULL after a message
// sweeps from `sweep` on, at most `batch`, whose draws have room in memory
long gm_netcdf_until(const GmNetcdfRun *r, long sweep, long batch);
// Kept draws go to it, all of them or if there are enough; false: they cannot, which was said. r may be NULL.
bool gm_netcdf_take(GmNetcdfRun *r, bool all);
bool gm_netcdf_finish(GmNetcdfRun *r);  // all kept draws are in NAME.nc; false after a message
void gm_netcdf_end(GmNetcdfRun *r);     // what is not finished is removed

// ---- summary.c: the table at the end ----

enum { GM_SUMMARY_CELLS = 9, GM_CELL_ROOM = 40 };
extern const char *const gm_summary_titles[GM_SUMMARY_CELLS];
// The numbers of a row as the table prints them, in the order of the titles; "-" for none.
void gm_summary_cells(const GmSummary *s, char cell[GM_SUMMARY_CELLS][GM_CELL_ROOM]);
// The table alone, without warnings.
void gm_summary_table(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m, const GmOptions *o);
// run: whose states are asked for a cause where chains do not agree; NULL: they are not there
bool gm_summary_print(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m, const GmOptions *o, const GmRun *run);

// ---- summary_data.c: the summary as a table or an object ----

// Every quantity, in full; `quantile` has those of each, n of them by percentages, one after the other. Warnings are not among them.
void gm_summary_data(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m, GmSummaryForm form, const GmSummary *all,
                     const double *quantile, const double *percent, int n);

// ---- new_data.c: other data, with the draws of the run ----

typedef struct GmNewData GmNewData;

// open reads the data of --new, before the run: NULL after a message. take computes from the draws the definitions of the model, and the
// requested quantities, for these data; it prints means and sds and writes them to a table. false after a message.
GmNewData *gm_new_data_open(const GmModel *model, const GmOptions *o, const GmData *data, const GmMemory *m, const GmDraws *d);
bool gm_new_data_take(GmNewData *n, FILE *to, const GmOptions *o, const GmDraws *d);
void gm_new_data_close(GmNewData *n);

#endif
