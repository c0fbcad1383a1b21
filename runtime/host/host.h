// host.h -- the fixed half of every fit program: the functions and types that its files share.
//
//   main -> run -> options -> data files -> data -> memory -> initial -> sweep loop -> draws, summary
//
// The sections below are headed by the file that owns them, in the reading order of README.md: a file calls only those before it. Nothing
// here knows the mathematics of a model; that is gm_model (model.h).
#ifndef GM_HOST_H
#define GM_HOST_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include "../backends/files.h"
#include "../backends/nvrtc.h"
#include "../backends/option_table.h"
#include "../device/infinity.h"
#include "model.h"

#ifndef GM_VERSION
#define GM_VERSION "0.1"
#endif

// ---- exit statuses ----

typedef enum {
    GM_EXIT_OK = 0,
    GM_EXIT_CHECK = 1,          // --check found an update that does not draw from its conditional
    GM_EXIT_USAGE = 2,          // a bad flag, bad data, a file that cannot be read or made
    GM_EXIT_FAULT = 4,          // the sampler had to stop; the draws so far are kept
    GM_EXIT_DEVICE = 5,         // the GPU that was asked for cannot be used; nothing was written
    GM_EXIT_MEMORY = 6,         // memory does not suffice, a GPU's or this machine's
    GM_EXIT_NO_MODE = 8,        // `map`: no start has led to a maximum
    GM_EXIT_LOST = 7,           // the GPU failed while it was at work; the draws so far are kept
    GM_EXIT_TIME = 10,          // --max-time was over, and so on; the draws so far are kept
    GM_EXIT_DIVERGED = 11,      // --stop-on-divergence
    GM_EXIT_FEW = 12,           // all draws are made, and --until-ess is not reached
    GM_EXIT_APART = 13,         // the same of --until-rhat
    GM_EXIT_UNCALIBRATED = 14,  // `calibrate`: ranks are not uniform
    GM_EXIT_INTERRUPTED = 130,  // Ctrl-C; the draws so far are kept
} GmExit;

// ---- messages.c: lines on the terminal, strings, allocation ----

// One line to stderr. gm_error is for what ends the run, gm_note for what does not (silent under --quiet).
void gm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void gm_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern bool gm_quiet;

// calloc and realloc that end the program with one line (status 4) when memory is exhausted. Sizes are count * size bytes;
// an overflow of the product counts as exhausted. Never return NULL, not even for zero bytes.
void gm_exhausted(size_t count, size_t size) __attribute__((noreturn));  // ends the program with the message
void *gm_alloc(size_t count, size_t size);
void *gm_grow(void *block, size_t count, size_t size);
char *gm_copy_text(const char *text);
char *gm_format(const char *format, ...) __attribute__((format(printf, 1, 2)));  // the caller frees

// ---- signals.c: signals that end a program ----

void gm_signals_catch(void);       // SIGINT, SIGTERM, SIGHUP, SIGPIPE or SIGXCPU ends the program, without files
void gm_signals_wait(void);        // from here on the first signal requests an orderly end, and a second one kills the program
void gm_signals_keep_draws(void);  // from now on a second signal leaves the draws so far in their temporary files
bool gm_interrupted(void);

// ---- fields.c: properties of a field of the model ----

// `more`: the model's data_shape or state_shape, or NULL
GmShape gm_field_shape(const GmField *field, int f, void (*more)(int, const void *, GmShape *), const void *data);
long gm_size_of(int rank, const long *dim);  // how many elements; LONG_MAX: more than a long counts
long gm_shape_size(const GmShape *s);
char *gm_shape_text(int rank, const long *dim);                                   // "10 x 3"; the caller frees
char *gm_element_name(const char *name, int rank, const long *dim, long linear);  // "X[3, 1]", indices from 1; the caller frees
// From now on elements of this name are called by row and place within it, y[2, 1]: its first dimension are n rows of these lengths.
void gm_rows_set(const char *name, const int32_t *length, long n);
bool gm_has_rows(const char *name);
long gm_place_in_rows(const char *name, long row, long place);  // along that dimension, of y[row, place], from 0; -1: there is none
char *gm_dotted(char *name);                                    // p[1, 2] -> p.1.2 in place, as columns of draws are called
char *gm_declared_text(const GmField *f, const GmShape *s);     // "int<lower=0> y[N]"; the caller frees
bool gm_is_unknown(GmRole role);                                // a parameter, a latent or an auxiliary
// A parameter or a latent: what the model itself draws. And such reals.
static inline bool gm_is_drawn(const GmField *f) { return f->role == GM_PARAMETER || f->role == GM_LATENT; }
static inline bool gm_is_drawn_real(const GmField *f) { return gm_is_drawn(f) && f->type != GM_INT; }
// Whether it is computed for a draw: a definition, the predict block, what is requested.
bool gm_is_computed(const GmField *f, int requests);
int gm_data_of_imputed(const GmModel *model, int state_field);  // the data field behind it, or -1
// Whether an unknown is drawn by an HMC update: it is named in `moved`, or in `summed`, those summed out of its density (or NULL). Names
// are separated by commas.
bool gm_is_moved_by(const GmModel *model, const GmField *field, const char *moved, const char *summed);

// ---- number.c: numbers as text ----

enum { GM_NUMBER_ROOM = 40 };
// Writes x with the fewest digits that read back as the same double, or at most `digits` if that is not 0. Returns the length, at most 24;
// bytes up to GM_NUMBER_ROOM may change.
int gm_print_number(char *to, double x, int digits);

// ---- draw_files.c: finding files of draws by name ----

bool gm_ends_in_csv(const char *path);
bool gm_is_netcdf(const char *path);     // by its name: NAME.nc, or NAME.nc.part
char *gm_netcdf_name(const char *path);  // NAME; the caller frees
// draws_2.csv, or draws.nc -> draws_levels.json; NULL: it is not called so. The caller frees.
char *gm_levels_beside(const char *file);
// The files that the user gives to a command. One NAME without .csv or .nc means NAME_1.csv and so on, from the first number for which
// there is a file, or else NAME.nc. NULL after a message that begins with the name of the command; the caller frees names and array.
char **gm_draw_files(const char *command, char **given, int n_given, int *n);

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

// ---- progress.c: how far the run has come ----

typedef struct GmProgress {
    bool bar;                            // on a terminal
    long refresh, total, warmup, first;  // first: sweeps that an earlier run has made
    double started, drawn;               // seconds
} GmProgress;

double gm_seconds(void);  // a monotonic clock
void gm_progress_open(GmProgress *p, const GmOptions *o, long total);
// the number of sweeps from `sweep` on, at most `batch`, until a line is due
long gm_progress_until(const GmProgress *p, long sweep, long batch);
void gm_progress_show(GmProgress *p, long done);
void gm_progress_close(GmProgress *p);

// ---- output.c: files that are written, with messages ----

// goes_on: under a temporary name that the next run knows (gm_file_create_next). false after a message: it cannot be written
bool gm_output_open(GmFile *f, const char *path, bool goes_on);
bool gm_output_done(GmFile *f);  // renames it to its name; false after a message: it cannot be written. Closes `f` in any case
void gm_json_text(FILE *to, const char *text);  // between quotes of JSON
// The status to exit with: what was printed is all there, or that is said, and the status is not 0.
int gm_printed(int status);
// whether all files of a run can be written, NAME_levels.json among them; false after a message
bool gm_outputs_may_be_written(const GmOptions *o, bool levels);
// --overwrite: a checkpoint of this name, and what a run that was killed has left of files that grow, are removed
void gm_outputs_clear(const GmOptions *o);

// ---- saved.c: a file of numbers that is read again ----

// The same calls in the same order write it and read it. Failures are kept to the end.
typedef struct GmSaved GmSaved;
GmSaved *gm_saved_create(const char *path);
GmSaved *gm_saved_open(const char *path);  // NULL: it cannot be opened (errno)
bool gm_saved_reads(const GmSaved *s);
bool gm_saved_good(const GmSaved *s);  // so far; of a file that is read: it is whole
void gm_saved_bytes(GmSaved *s, void *bytes, size_t n);
#define GM_SAVED(s, x) gm_saved_bytes(s, &(x), sizeof(x))
void gm_saved_pages(GmSaved *s, void *bytes, size_t n);  // the same of much memory, most of which may be zeros
// A text, or NULL. Reading: a copy, which the caller frees; writing: NULL.
char *gm_saved_text(GmSaved *s, const char *text);
// Written: it has its name, else a message and false. Read: whether it was whole.
bool gm_saved_close(GmSaved *s);
// A sum of bytes, begun with any number: files of other content have another one but for one chance in 2^64.
uint64_t gm_mix(uint64_t sum, const void *bytes, size_t n);
bool gm_mix_file(const char *path, uint64_t *sum);  // false: it cannot be read

// ---- texts.c: opening text files ----

// For reading: a file, one that ends in .gz unpacked, a pipe, or `-`, standard input. NULL after a message: it is a folder or a device, or
// cannot be read.
FILE *gm_text_open(const char *path);
// The first character of the text, which the next gm_text_open of this path then opens; 0 after a message.
int gm_text_begins(const char *path);
bool gm_text_ends(const char *text, const char *ending);  // in any case
bool gm_text_is(const char *path, const char *ending);    // whether its name, without .gz, ends so
bool gm_text_without_name(const char *path);              // standard input or a pipe: no ending says what it is

// ---- lines.c: reading text files ----

bool gm_is_utf16(const char *bytes, size_t n);  // text in UTF-16, which is not supported

typedef struct GmLines {
    const char *path;
    FILE *file;
    char *text;           // the line, without its end
    long length, number;  // lines are counted from 1
    bool ended;           // it ends with a line break; the last line of a file need not
    bool failed;          // after a message
    size_t room, at, n;   // size of text; position in the block, and its size
    char *block;
    bool after_return;
} GmLines;

bool gm_lines_open(GmLines *l, const char *path);  // false after one line
char *gm_lines_next(GmLines *l);                   // l->text; NULL at the end of the file, or if l->failed
void gm_lines_close(GmLines *l);

// ---- mapped.c: files mapped into memory ----

void *gm_map_file(const char *path, size_t *size);  // to be read only; NULL after one line
void gm_unmap(void *map, size_t size);              // of a file, or of memory
bool gm_files_unchanged(void);                      // whether mapped files are unchanged; false after a message for each

// ---- values.c: named arrays out of files ----

// One named array out of a file, row-major. Elements are int32_t or double; nothing of the declaration has been checked yet.
typedef struct GmValue {
    char *name;
    char *source;  // "data.json", for messages
    GmType type;
    int rank;
    long dim[GM_MAX_RANK];
    void *elements;
    void *map;  // the mapping that `elements` lies in (.npy), or NULL when `elements` was allocated
    size_t map_size;
    bool table;             // from a table, where [n, 1], [1, n] and [n] look alike
    const char *size_of;    // of an int that no file has: the array from whose size it was inferred; else NULL
    const char *size_from;  // "size", "levels" or "largest value" of that array
    int32_t *row;           // lengths of rows that lie one behind the other, as the file has them; or NULL
    long n_rows;
    bool may_be_names;      // levels.c: names are read
    long first_number;      // the first element that is a number, where names may be; -1: none so far
    struct GmNames *names;  // elements are places in these names, from 1; NULL: they are numbers
} GmValue;

// Of one array: names in the order of their first appearance, found by open addressing.
typedef struct GmNames {
    char **name;
    long n, room;
    long *slot;  // 1 + place in `name`, 0: free
    long n_slots;
    long last;      // place of the name that was found last: tables are often in order
    long occurred;  // elements with a name
} GmNames;

// The values found so far. `fields` are the names that are wanted: others are not read, only remembered for hints.
typedef struct GmValues {
    const GmField *fields;
    int n_fields;
    int n;
    GmValue *value;
    int n_unknown;
    char **unknown;    // names in the files that nothing declares
    bool tells;        // of an object's members that are not read there is a note
    bool reads_names;  // where the declaration allows it
} GmValues;

GmValue *gm_values_add(GmValues *v, const char *name, const char *source);  // NULL (after a message): given twice
GmValue *gm_values_find(const GmValues *v, const char *name);
const GmField *gm_values_wanted(GmValues *v, const char *name);  // NULL: not declared (remembered)
void gm_values_close(GmValues *v);
long gm_value_size(const GmValue *v);

// A number as text, in full: a decimal number, Inf, -Inf, or a mark of a missing value (NA, NaN,
// null, #N/A, empty, in any case; NaN results).
// false: it is no number, or *why says what is wrong with it.
bool gm_parse_number(const char *text, double *out, const char **why);

// Stores x as an element of type t: false with *why if it is not a whole number within 32 bits.
bool gm_store(GmType t, void *elements, long at, double x, const char **why);

// ---- levels.c: names as data ----

// The levels of variables that are coded 1 to n.
typedef struct GmLevels {
    int size;   // 1 + the data field that is the upper bound of all of them; 0: of one variable, whose bound is a number
    int field;  // the data field of one of them
    char **name;
    long n, old;  // old: those of the run, which come first, if other data have more
    bool given;   // their order was asked for
} GmLevels;

typedef struct GmLevelSets {
    int n;
    GmLevels *set;
    bool of_a_fit, grows;  // those of stored draws, from NAME_levels.json; other data may have more of them
} GmLevelSets;

typedef enum { GM_TEXT_OTHER, GM_TEXT_STORED, GM_TEXT_REFUSED } GmTextIs;

bool gm_takes_levels(const GmField *f);  // whether its values may be names: int<lower=1, upper=J>, or upper a number
bool gm_levels_ask(const GmOptions *o);  // what --levels and --dates say of data that are read from now on; false after a message
void gm_levels_ask_as(const GmLevelSets *sets, const GmModel *m);  // --levels, where these sets are not what is taken without it
void gm_levels_forget(void);                                       // of both
void gm_levels_begin(const GmValues *values, GmValue *v);          // before the elements of a new value are read
// Stores a text as an element, if it is a name or a date: else it is for others to read, or refused. Then *why ends the sentence
// `TEXT ...`.
GmTextIs gm_read_text(GmValue *v, long at, const char *text, const char **why);
// A text that is no number: `why`, or what else it looks like.
const char *gm_text_why(const GmValue *v, const char *text, const char *why);
// Once all values are there: names become codes, and sizes follow. `others`: the levels of the run whose draws other data are for, or NULL.
// false after a message.
bool gm_levels_settle(GmLevelSets *sets, const GmModel *m, GmValues *values, const GmLevelSets *others);
bool gm_levels_write(const GmLevelSets *sets, const GmModel *m, const char *output);  // NAME_levels.json; false after a message
bool gm_levels_read(GmLevelSets *sets, const GmModel *m, const char *path);           // that file; false after a message
void gm_levels_close(GmLevelSets *sets);
const GmLevels *gm_levels_of_size(const GmLevelSets *sets, int size);  // those that an extent counts, from 1; NULL: none
// "a[Aitkin]", with numbers where there are no levels; the caller frees
char *gm_labelled_name(const GmLevelSets *sets, const GmField *field, const GmShape *s, long linear);
int gm_columns_of(const char *text);  // characters of a text in UTF-8

// ---- data_csv.c, data_json.c, data_npy.c, data_npz.c: files into values ----

// Each reads one file into `v`; false after one line to stderr. `name`: NULL, or the NAME of NAME=FILE.
bool gm_json_read(GmValues *v, const char *path);
bool gm_csv_read(GmValues *v, const char *path, const char *name, const char *columns);
bool gm_npy_read(GmValues *v, const char *path, const char *name);
bool gm_npz_read(GmValues *v, const char *path, const char *name);  // a sparse matrix of scipy.sparse.save_npz

// ---- data.c: values against declarations ----

static inline size_t gm_size_of_element(GmType type) { return type == GM_INT ? sizeof(int32_t) : sizeof(double); }
static inline size_t gm_element_size(const GmField *f) { return gm_size_of_element(f->type); }

// Reads data.json, table.csv, X=file.csv, N=100 into `v`; false after one line.
bool gm_values_read(GmValues *v, const char *input);
char *gm_input_file(const char *input);  // the file that an input names, or NULL: a number. The caller frees

// The model's data in memory: `data` is the emitted file's Data.
typedef struct GmData {
    void *data;
    GmMissing *missing;  // by data field
    GmShape *shape;      // by data field
    GmValues values;     // owns the arrays
    GmLevelSets levels;
    // draws without data: by data field, what is missing in the files of a response that is drawn. NULL: data are as the files give them
    GmMissing *missing_in_files;
    void **of_chain;  // by data field: [chains][size], values of a response by chain, or NULL. NULL: all chains have those of the files
} GmData;

// Reads the inputs, infers sizes, applies defaults, checks shapes, bounds and constraints, and fills Data. Variables that the inputs lack
// are taken from `others` (or NULL), except sizes that arrays of the inputs determine, and arrays of another size. false after a message.
bool gm_data_open(GmData *d, const GmModel *m, char **inputs, int n_inputs, const GmData *others);
// For draws without data: responses may be left out, and all their values count as missing.
bool gm_data_open_forward(GmData *d, const GmModel *m, char **inputs, int n_inputs);
bool gm_is_drawn_response(const GmModel *m, int f);  // a data field of which there are draws, if it may miss
// the response has these values, but for missing_in_files
void gm_data_take_drawn(GmData *d, const GmModel *m, int f, const void *elements);
// the values alone, missing as in this list
void gm_data_put_drawn(GmData *d, const GmModel *m, int f, const GmMissing *missing, const void *elements);

// Data that come after a fit, for its stored draws: what is known of the fit.
typedef struct GmLater {
    const GmData *others;       // its data, or NULL
    const GmLevelSets *levels;  // its levels
    const long *size;           // by data field: what the draws say of it; -1: nothing
    bool grows;                 // the new data may have more levels
    bool *given;                // by data field: set to whether the new data have it
} GmLater;

// The same for such data. Responses may be left out: they are missing then. A size that the new data do not have is that of the fit.
bool gm_data_open_later(GmData *d, const GmModel *m, char **inputs, int n_inputs, const GmLater *later);
// Whether a size counts the levels of data that look up unknowns, int<lower=1, upper=J> county[N]; whether it counts rows: it is the first
// extent of a response, and counts no levels.
bool gm_counts_levels(const GmModel *m, int f);
bool gm_counts_rows(const GmModel *m, int f);
// Whether what is given says how long rows of different lengths are: these ints, or an array of such rows.
bool gm_gives_rows(const GmModel *m, const bool *given, int lengths);
void gm_data_close(GmData *d, const GmModel *m);
// JSON to fill in: each name that the files have to give, with its declaration in place of a value.
void gm_data_template(FILE *to, const GmModel *m);

// Checks elements against bounds and constraint; false after one line. `missing` (or NULL) gets the positions of missing values.
bool gm_check_values(const GmField *f, const GmShape *s, const void *elements, const char *source, GmMissing *missing);
// Does the value have the declared shape, or one that looks the same in a file? false after one line.
bool gm_value_fits(const GmField *f, const GmShape *s, const GmValue *v);

// ---- netcdf_read.c: draws out of a NetCDF file ----

typedef struct GmNetcdfVariable {
    int group, id, rank, type;
    int axis[2];      // which of its dimensions in the file are chain and draw
    long n, *column;  // by element, row-major: its column
    long extent[GM_MAX_RANK];
    double scale, offset, absent[2];  // a number x of the file is x*scale + offset, or missing
    char **names[GM_MAX_RANK];        // along each dimension, NULL: numbers
} GmNetcdfVariable;

typedef struct GmNetcdfIn {
    const char *path;
    int file, chains;
    bool is_open;
    long draws, n_columns, *id;  // of each chain; id: numbers of the chains
    char *header;                // names of the columns, as CSV files have them
    char *settings, *notes;      // the lines above and below it there, of all chains; NULL: another program's file
    int n_variables;
    GmNetcdfVariable *variable;
} GmNetcdfIn;

bool gm_netcdf_in_open(GmNetcdfIn *in, const char *path);  // false after a message; `close` follows in any case
bool gm_netcdf_in_rows(const GmNetcdfIn *in, int chain, long first, long n, double *x);  // [n][column]; false after a message
int gm_netcdf_in_chain(const GmNetcdfIn *in, long number);  // where the chain of that number is; -1 after a message
char *gm_netcdf_in_text(const GmNetcdfIn *in, int chain);   // the CSV file of that chain; NULL after a message; the caller frees
void gm_netcdf_in_close(GmNetcdfIn *in);

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
void gm_adaptation_write(FILE *to, const GmAdaptation *a);

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
GmNetcdf *gm_netcdf_beside(GmNetcdf *first, const GmDraws *d, long block);  // in the file of `first`, which is closed after it
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

// `rerun NAME_run.json ...`: the command line becomes that of the run. false after a message: the data are others, or it is no record.
bool gm_rerun_open(GmRecord *r, int *argc, char ***argv);
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
