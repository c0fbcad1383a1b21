// fields.h -- what is asked of a field of the model; numbers as text; files of draws by name.
#ifndef GM_FIELDS_H
#define GM_FIELDS_H

#include <stdbool.h>
#include "model.h"

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
int gm_percent_digits(long part, long all);  // of part in percent of all: two, three of what is rounded to 100

// ---- draw_files.c: finding files of draws by name ----

bool gm_ends_in_csv(const char *path);
bool gm_is_netcdf(const char *path);     // by its name: NAME.nc, or NAME.nc.part
char *gm_netcdf_name(const char *path);  // NAME; the caller frees
// draws_2.csv, or draws.nc -> draws_levels.json; NULL: it is not called so. The caller frees.
char *gm_levels_beside(const char *file);
// The files that the user gives to a command. One NAME without .csv or .nc means NAME_1.csv and so on, from the first number for which
// there is a file, or else NAME.nc. NULL after a message that begins with the name of the command; the caller frees names and array.
char **gm_draw_files(const char *command, char **given, int n_given, int *n);

#endif
