// inputs.h -- files that are read: texts, named arrays, names as data; values against declarations; draws out of NetCDF files.
#ifndef GM_INPUTS_H
#define GM_INPUTS_H

#include <stdbool.h>
#include <stdio.h>
#include "options.h"

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
char *gm_lines_more(GmLines *l);                   // the line after it as well, behind \n; NULL as for the next
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
    bool has_dates, has_numbers;  // with --dates: only one of them
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
bool gm_dates_are_read(void);                                      // --dates
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

// Names data that are far from zero and near to each other, by their mean: `far` standard deviations or more. Sums of squares of numbers at
// a million keep four digits of what differs, at 10^8 none. A line begins with `lead`, and `rest` says what follows. Whether there are any.
bool gm_data_tell_far(const GmData *d, const GmModel *m, double far, const char *lead, const char *rest);
#define GM_DATA_FAR      1e6
#define GM_DATA_VERY_FAR 1e7
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

#endif
