// netcdf_read.c -- draws out of a NetCDF file: gmc's own, or another in the layout of ArviZ.
//
//   posterior        a(chain, draw, J)         ->  lp__,a.1,a.2,...,log_lik_y.1,...      as the CSV files of the run have them
//   log_likelihood   y(chain, draw, N)             x[draw][column] of a chain
//   sample_stats     lp(chain, draw)
//
// gmc's files say which column of the CSV files each element is, and what these say of the run. In files of other programs the groups
// decide: what is drawn, then log-likelihoods and replicates, in the order of the file. Variables that do not run over chain and draw, and
// those that are no numbers, are passed over.
#include "fields.h"
#include "inputs.h"
#include "messages.h"
#include "netcdf.h"
#include "../backends/files.h"
#include "../backends/library.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NC_NOWRITE = 0, NC_MAX_NAME = 256, MOST_DIMS = 32, NC_CHAR = 2, FIRST_USER_TYPE = 32 };

#define NETCDF(X)                                                                    \
    X(int, nc_open, (const char *, int, int *))                                      \
    X(int, nc_close, (int))                                                          \
    X(int, nc_inq_ncid, (int, const char *, int *))                                  \
    X(int, nc_inq_varids, (int, int *, int *))                                       \
    X(int, nc_inq_varid, (int, const char *, int *))                                 \
    X(int, nc_inq_var, (int, int, char *, int *, int *, int *, int *))               \
    X(int, nc_inq_dim, (int, int, char *, size_t *))                                 \
    X(int, nc_inq_att, (int, int, const char *, int *, size_t *))                    \
    X(int, nc_get_att_text, (int, int, const char *, char *))                        \
    X(int, nc_get_att_string, (int, int, const char *, char **))                     \
    X(int, nc_get_att_double, (int, int, const char *, double *))                    \
    X(int, nc_get_vara_double, (int, int, const size_t *, const size_t *, double *)) \
    X(int, nc_get_vara_string, (int, int, const size_t *, const size_t *, char **))  \
    X(int, nc_free_string, (size_t, char **))                                        \
    X(const char *, nc_strerror, (int))

static struct {
#define X(type, name, arguments) type(*name) arguments;
    NETCDF(X)
#undef X
} lib;

void *gm_netcdf_library(void)
{
    static const char *const sonames[] = {"libnetcdf.so.19", "libnetcdf.so.22", "libnetcdf.so", NULL};
    static void *library;
    char where[400];
    if (library) return library;
    library = gm_library_open(sonames, NULL, "GM_NETCDF", "", where, sizeof where);
    // HDF5 closes what is open when the program ends, and faults where a disk was full
    int (*leave_at_exit)(void);
    if (library && gm_library_symbol(library, "H5dont_atexit", &leave_at_exit)) leave_at_exit();
    return library;
}

void gm_netcdf_not_found(const char *wanted_by)
{
    gm_error("%s: the library of NetCDF is not found (apt-get install libnetcdf19)", wanted_by);
}

static bool open_library(const char *path)
{
    void *library = gm_netcdf_library();
    bool found = library != NULL;
#define X(type, name, arguments) found = found && gm_library_symbol(library, #name, &lib.name);
    NETCDF(X)
#undef X
    if (!found) gm_netcdf_not_found(path);
    return found;
}

// ---- what there is ----

static char *attribute_text(int group, int variable, const char *name)
{
    int type;
    size_t n;
    if (lib.nc_inq_att(group, variable, name, &type, &n) != 0) return NULL;
    if (type == NC_STRING && n == 1) {
        char *one = NULL, *copy = NULL;
        if (lib.nc_get_att_string(group, variable, name, &one) == 0 && one) copy = gm_copy_text(one);
        if (one) lib.nc_free_string(1, &one);
        return copy;
    }
    if (type != NC_CHAR) return NULL;
    char *text = gm_alloc(n + 1, 1);
    if (lib.nc_get_att_text(group, variable, name, text) == 0) return text;
    free(text);
    return NULL;
}

// Numbers of an attribute, *n of them; NULL: it is not there.
static double *attribute_numbers(int group, int variable, const char *name, size_t *n)
{
    int type;
    if (lib.nc_inq_att(group, variable, name, &type, n) != 0 || type == NC_CHAR || type >= NC_STRING) return NULL;
    double *x = gm_alloc(*n, sizeof *x);
    if (lib.nc_get_att_double(group, variable, name, x) == 0) return x;
    free(x);
    return NULL;
}

typedef struct Found {  // a variable by chain and draw
    char name[NC_MAX_NAME + 1];
    int dim[MOST_DIMS], other[GM_MAX_RANK];  // of the file, in its order; those besides chain and draw
} Found;

// Dates and times are numbers with a unit, "days since 2000-01-01" (CF 1.11, section 4.4).
static bool is_time(const GmNetcdfVariable *v)
{
    char *unit = attribute_text(v->group, v->id, "units");
    const bool yes = unit && strstr(unit, " since ");
    free(unit);
    return yes;
}

// Whether a variable runs over chain and draw and holds numbers. *good: false after a message.
static bool is_drawn(GmNetcdfIn *in, GmNetcdfVariable *v, Found *found, bool *good)
{
    int type, dims, attributes;
    char name[NC_MAX_NAME + 1] = "";
    size_t n;
    if (lib.nc_inq_var(v->group, v->id, found->name, &type, NULL, NULL, &attributes) != 0) return false;
    if (lib.nc_inq_var(v->group, v->id, NULL, NULL, &dims, NULL, NULL) != 0 || dims < 2 || dims > MOST_DIMS) return false;
    if (lib.nc_inq_var(v->group, v->id, NULL, NULL, NULL, found->dim, NULL) != 0) return false;
    if (type == NC_CHAR || type == NC_STRING || type >= FIRST_USER_TYPE) return false;
    long size[2] = {-1, -1};
    v->type = type;
    v->rank = 0;
    v->n = 1;
    for (int k = 0; k < dims; k++) {
        if (lib.nc_inq_dim(v->group, found->dim[k], name, &n) != 0) return false;
        const int which = strcmp(name, "chain") == 0 ? 0 : strcmp(name, "draw") == 0 ? 1 : 2;
        if (which < 2) {
            size[which] = (long)n;
            v->axis[which] = k;
        } else if (v->rank < GM_MAX_RANK) {
            found->other[v->rank] = found->dim[k];
            v->extent[v->rank] = (long)n;
            v->n *= (long)n;
        }
        v->rank += which == 2;
    }
    if (size[0] < 0 || size[1] < 0 || is_time(v)) return false;
    if (v->rank > GM_MAX_RANK) {
        gm_error("%s: %s has %d dimensions besides chain and draw, more than %d", in->path, found->name, v->rank, GM_MAX_RANK);
        v->rank = 0;
        return *good = false;
    }
    if (!in->chains) {
        in->chains = (int)size[0];
        in->draws = size[1];
    }
    if (in->chains == size[0] && in->draws == size[1]) return v->n > 0;
    gm_error("%s: %s has %ld chains of %ld draws, and what comes before it has %d of %ld", in->path, found->name, size[0], size[1],
             in->chains, in->draws);
    return *good = false;
}

// The names along a dimension, where its coordinate is text.
static char **names_along(int group, const char *dimension, long n)
{
    int id, type;
    const size_t start = 0, count = (size_t)n;
    if (lib.nc_inq_varid(group, dimension, &id) != 0 || lib.nc_inq_var(group, id, NULL, &type, NULL, NULL, NULL) != 0 || type != NC_STRING)
        return NULL;
    char **text = gm_alloc(count, sizeof *text), **copy = gm_alloc(count, sizeof *copy);
    const bool good = lib.nc_get_vara_string(group, id, &start, &count, text) == 0;
    for (long k = 0; k < n && good; k++) copy[k] = gm_copy_text(text[k] ? text[k] : "");
    if (good) lib.nc_free_string(count, text);
    free(text);
    if (good) return copy;
    free(copy);
    return NULL;
}

static double attribute_number(const GmNetcdfVariable *v, const char *name, double otherwise)
{
    size_t n = 0;
    double *x = attribute_numbers(v->group, v->id, name, &n), first = x && n > 0 ? x[0] : otherwise;
    free(x);
    return first;
}

static const double fill_double = 9.9692099683868690e+36;  // NetCDF's own, of what was never written
static const double fill_float = (double)9.9692099683868690e+36f;

// Packed numbers and what marks a missing one, by the conventions of NetCDF (CF 1.11, sections 2.5.1 and 8.1).
static void read_packing(GmNetcdfVariable *v)
{
    v->scale = attribute_number(v, "scale_factor", 1);
    v->offset = attribute_number(v, "add_offset", 0);
    v->absent[0] = attribute_number(v, "_FillValue",
                                    v->type == NC_INT      ? NC_FILL_INT
                                    : v->type == NC_FLOAT  ? fill_float
                                    : v->type == NC_DOUBLE ? fill_double
                                                           : NAN);
    v->absent[1] = attribute_number(v, "missing_value", NAN);
}

static double unpacked(const GmNetcdfVariable *v, double number)
{
    return number == v->absent[0] || number == v->absent[1] ? NAN : number * v->scale + v->offset;
}

static void read_names(GmNetcdfVariable *v, const Found *found)
{
    for (int k = 0; k < v->rank; k++) {
        char name[NC_MAX_NAME + 1] = "";
        if (lib.nc_inq_dim(v->group, found->other[k], name, NULL) == 0) v->names[k] = names_along(v->group, name, v->extent[k]);
    }
}

// The element, row-major, that is number k where the first index runs fastest, as in CSV files.
static long element_of(const GmNetcdfVariable *v, long k)
{
    long index[GM_MAX_RANK] = {0}, at = 0;
    for (int d = 0; d < v->rank; d++) {
        index[d] = k % v->extent[d];
        k /= v->extent[d];
    }
    for (int d = 0; d < v->rank; d++) at = at * v->extent[d] + index[d];
    return at;
}

// The columns of a variable of a file that names them. false: it has none there.
static bool place(const GmNetcdfIn *in, GmNetcdfVariable *v)
{
    size_t n = 0;
    double *number = attribute_numbers(v->group, v->id, gm_netcdf_columns, &n);
    bool good = number && n > 0 && (n == 1 || (long)n == v->n);
    v->column = gm_alloc((size_t)v->n, sizeof *v->column);
    for (long k = 0; k < v->n && good; k++) {
        const double at = n > 1 ? number[k] - 1 : number[0] - 1 + (double)k;
        good = at >= 0 && at < (double)in->n_columns;
        v->column[n > 1 ? k : element_of(v, k)] = (long)at;
    }
    free(number);
    return good;
}

// The name of a variable of a group of another program, as CmdStan's files would have it; NULL: it is not read.
static char *usual_name(const char *group, const char *name)
{
    static const char *const statistic[][2] = {{"lp", "lp__"},
                                               {"acceptance_rate", "accept_stat__"},
                                               {"step_size", "stepsize__"},
                                               {"tree_depth", "treedepth__"},
                                               {"n_steps", "n_leapfrog__"},
                                               {"diverging", "divergent__"},
                                               {"energy", "energy__"},
                                               {"lprior", "lprior"}};
    if (strcmp(group, "sample_stats") == 0) {
        for (size_t k = 0; k < sizeof statistic / sizeof *statistic; k++)
            if (strcmp(name, statistic[k][0]) == 0) return gm_copy_text(statistic[k][1]);
        return NULL;
    }
    if (strcmp(group, "log_prior") == 0) return strcmp(name, "lprior") == 0 ? gm_copy_text(name) : gm_format("lprior_%s", name);
    if (strcmp(group, "log_likelihood") == 0) return gm_format("log_lik_%s", name);
    if (strcmp(group, "posterior_predictive") == 0 || strcmp(group, "prior_predictive") == 0) return gm_format("%s_rep", name);
    return gm_copy_text(name);
}

// Columns of a file that names none, behind those that are there.
static void add_columns(GmNetcdfIn *in, GmNetcdfVariable *v, const char *name)
{
    char *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    if (!to) return;
    fputs(in->header ? in->header : "", to);
    v->column = gm_alloc((size_t)v->n, sizeof *v->column);
    for (long k = 0; k < v->n; k++) {
        const long element = element_of(v, k);
        char *label = gm_dotted(gm_element_name(name, v->rank, v->extent, element));
        fprintf(to, in->n_columns ? ",%s" : "%s", label);
        v->column[element] = in->n_columns++;
        free(label);
    }
    fclose(to);
    free(in->header);
    in->header = text;
}

static const char *const groups[] = {"sample_stats",
                                     "posterior",
                                     "prior",
                                     "log_prior",
                                     "predictions",
                                     "log_likelihood",
                                     "posterior_predictive",
                                     "prior_predictive",
                                     "predictions_log_density"};

static bool read_group(GmNetcdfIn *in, const char *name, bool named)
{
    int group, n = 0;
    bool good = true;
    if (lib.nc_inq_ncid(in->file, name, &group) != 0 || lib.nc_inq_varids(group, &n, NULL) != 0) return true;
    int *id = gm_alloc((size_t)n + 1, sizeof *id);
    if (lib.nc_inq_varids(group, &n, id) != 0) n = 0;
    for (int k = 0; k < n && good; k++) {
        GmNetcdfVariable v = {.group = group, .id = id[k]};
        Found found;
        if (!is_drawn(in, &v, &found, &good)) continue;
        char *usual = named ? NULL : usual_name(name, found.name);
        if (named ? !place(in, &v) : !usual) {
            free(v.column);
            continue;
        }
        if (usual) add_columns(in, &v, usual);
        free(usual);
        read_names(&v, &found);
        read_packing(&v);
        in->variable = gm_grow(in->variable, (size_t)in->n_variables + 1, sizeof *in->variable);
        in->variable[in->n_variables++] = v;
    }
    free(id);
    return good;
}

// Numbers of chains, as gmc's files have them: those of the coordinate.
static void read_chains(GmNetcdfIn *in)
{
    in->id = gm_alloc((size_t)in->chains, sizeof *in->id);
    double *x = gm_alloc((size_t)in->chains, sizeof *x);
    const size_t start = 0, count = (size_t)in->chains;
    int id;
    const bool known = lib.nc_inq_varid(in->variable[0].group, "chain", &id) == 0 &&
                       lib.nc_get_vara_double(in->variable[0].group, id, &start, &count, x) == 0;
    for (int c = 0; c < in->chains; c++) in->id[c] = known && x[c] >= 1 && in->settings ? (long)x[c] : c + 1;
    free(x);
}

bool gm_netcdf_in_open(GmNetcdfIn *in, const char *path)
{
    *in = (GmNetcdfIn){.path = path};
    FILE *there = fopen(path, "r");
    if (!there) {
        gm_error("%s: cannot be read: %s", path, strerror(errno));
        return false;
    }
    fclose(there);
    gm_file_is_read(path);
    if (!open_library(path)) return false;
    const int error = lib.nc_open(path, NC_NOWRITE, &in->file);
    if (error) {
        gm_error("%s: cannot be read as a NetCDF file (%s): it is none, or it was cut off", path, lib.nc_strerror(error));
        return false;
    }
    in->is_open = true;
    in->header = attribute_text(in->file, NC_GLOBAL, gm_netcdf_header);
    in->settings = attribute_text(in->file, NC_GLOBAL, gm_netcdf_settings);
    in->notes = attribute_text(in->file, NC_GLOBAL, gm_netcdf_notes);
    const bool named = in->header != NULL;
    int posterior;
    const bool fitted = lib.nc_inq_ncid(in->file, "posterior", &posterior) == 0;
    in->n_columns = named;
    for (const char *at = in->header; at && *at; at++) in->n_columns += *at == ',';
    bool good = true;
    for (size_t k = 0; k < sizeof groups / sizeof *groups && good; k++) {
        // beside a posterior of another program its prior and predictions are other draws
        const bool others = strncmp(groups[k], "pr", 2) == 0;
        if (named || !fitted || !others) good = read_group(in, groups[k], named);
    }
    if (!good) return false;
    if (in->n_variables == 0)
        gm_error("%s: there are no draws in it: no group (posterior, prior, predictions) has numbers by chain and draw", path);
    else if (in->draws == 0) gm_error("%s: there are no draws in it", path);
    else read_chains(in);
    return in->n_variables > 0 && in->draws > 0;
}

// ---- the draws ----

// Draws of a chain as they stand in the file, whatever the order of its dimensions: room[n * v->n].
static int read_block(const GmNetcdfVariable *v, int chain, long first, long n, double *room)
{
    size_t start[2 + GM_MAX_RANK] = {0}, count[2 + GM_MAX_RANK];
    for (int k = 0, d = 0; k < v->rank + 2; k++) count[k] = k == v->axis[0] ? 1 : k == v->axis[1] ? (size_t)n : (size_t)v->extent[d++];
    start[v->axis[0]] = (size_t)chain;
    start[v->axis[1]] = (size_t)first;
    return lib.nc_get_vara_double(v->group, v->id, start, count, room);
}

// Where draw i of element e, row-major, stands in such a block.
static long place_in_block(const GmNetcdfVariable *v, long n, long i, long e)
{
    if (v->axis[0] == 0 && v->axis[1] == 1) return i * v->n + e;
    long at = 0, stride = 1;
    for (int k = v->rank + 2, d = v->rank; k-- > 0;) {
        if (k == v->axis[0]) continue;
        const long extent = k == v->axis[1] ? n : v->extent[--d];
        at += stride * (k == v->axis[1] ? i : e % extent);
        if (k != v->axis[1]) e /= extent;
        stride *= extent;
    }
    return at;
}

bool gm_netcdf_in_rows(const GmNetcdfIn *in, int chain, long first, long n, double *x)
{
    int error = 0;
    for (long k = 0; k < n * in->n_columns; k++) x[k] = NAN;  // what is in no variable, as the density of a missing value
    for (int k = 0; k < in->n_variables && !error; k++) {
        const GmNetcdfVariable *v = &in->variable[k];
        double *room = gm_alloc((size_t)(n * v->n), sizeof *room);
        error = read_block(v, chain, first, n, room);
        for (long i = 0; i < n && !error; i++)
            for (long e = 0; e < v->n; e++) x[i * in->n_columns + v->column[e]] = unpacked(v, room[place_in_block(v, n, i, e)]);
        free(room);
    }
    if (error) gm_error("%s: cannot be read: %s", in->path, lib.nc_strerror(error));
    return !error;
}

// The chain of this number; a file with one chain has that one for all. -1 after a message.
int gm_netcdf_in_chain(const GmNetcdfIn *in, long number)
{
    for (int c = 0; c < in->chains; c++)
        if (in->id[c] == number) return c;
    if (in->chains == 1) return 0;
    gm_error("%s: it has no chain %ld: there are %ld to %ld", in->path, number, in->id[0], in->id[in->chains - 1]);
    return -1;
}

char *gm_netcdf_in_text(const GmNetcdfIn *in, int chain)
{
    double *x = gm_alloc((size_t)(in->draws * in->n_columns), sizeof *x);
    char *text = NULL, number[GM_NUMBER_ROOM];
    size_t n;
    FILE *to = gm_netcdf_in_rows(in, chain, 0, in->draws, x) ? open_memstream(&text, &n) : NULL;
    if (to) {
        for (const char *line = in->settings; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
            static const char id[] = "# id = ";
            if (strncmp(line, id, sizeof id - 1) == 0) fprintf(to, "%s%ld\n", id, in->id[chain]);
            else fprintf(to, "%.*s\n", (int)strcspn(line, "\n"), line);
        }
        fprintf(to, "%s\n%s", in->header, in->notes ? in->notes : "");
        for (long i = 0; i < in->draws; i++)
            for (long c = 0; c < in->n_columns; c++) {
                number[gm_print_number(number, x[i * in->n_columns + c], 0)] = 0;
                fprintf(to, "%s%c", number, c + 1 < in->n_columns ? ',' : '\n');
            }
        fclose(to);
    }
    free(x);
    return text;
}

void gm_netcdf_in_close(GmNetcdfIn *in)
{
    if (in->is_open) lib.nc_close(in->file);
    for (int k = 0; k < in->n_variables; k++) {
        GmNetcdfVariable *v = &in->variable[k];
        for (int d = 0; d < v->rank; d++) {
            for (long e = 0; e < v->extent[d] && v->names[d]; e++) free(v->names[d][e]);
            free(v->names[d]);
        }
        free(v->column);
    }
    free(in->variable);
    free(in->header);
    free(in->settings);
    free(in->notes);
    free(in->id);
    *in = (GmNetcdfIn){0};
}
