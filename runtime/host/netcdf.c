// netcdf.c -- the draws as one NetCDF file, in the groups and dimensions that ArviZ reads.
//
//   NAME.nc    posterior             a(chain, draw, J), J = Aitkin, Anoka, ...        sample_stats     lp, diverging, energy, ...
//              log_likelihood        y(chain, draw, N), of --log-lik                  observed_data    y(N)
//              posterior_predictive  y(chain, draw, N), of --predict                  constant_data    x(N)
//              predictions           y(chain, draw, N), of `predict`, and so on
//
// The layout is "InferenceData schema specification" of ArviZ. An HDF5 file that is cut off while it grows cannot be read, so draws stay in
// memory and the file is written at the end, under a temporary name: it is whole, or not there. netcdf-c is opened while the program runs;
// its calls and numbers are those of netcdf.h, version 4 (Unidata).
#include "host.h"
#include "../backends/library.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NC_CLOBBER = 0, NC_NETCDF4 = 0x1000, NC_GLOBAL = -1, NC_CHUNKED = 0 };
typedef enum { NC_BYTE = 1, NC_INT = 4, NC_FLOAT = 5, NC_DOUBLE = 6, NC_STRING = 12 } NcType;

#define NETCDF(X)                                                                                                                          \
    X(int, nc_create, (const char *, int, int *))                                                                                          \
    X(int, nc_def_grp, (int, const char *, int *))                                                                                         \
    X(int, nc_def_dim, (int, const char *, size_t, int *))                                                                                 \
    X(int, nc_def_var, (int, const char *, int, int, const int *, int *))                                                                  \
    X(int, nc_def_var_chunking, (int, int, int, const size_t *))                                                                           \
    X(int, nc_def_var_deflate, (int, int, int, int, int))                                                                                  \
    X(int, nc_put_att_text, (int, int, const char *, size_t, const char *))                                                                \
    X(int, nc_put_att_double, (int, int, const char *, int, size_t, const double *))                                                       \
    X(int, nc_put_vara_double, (int, int, const size_t *, const size_t *, const double *))                                                 \
    X(int, nc_put_vara_string, (int, int, const size_t *, const size_t *, const char **))                                                  \
    X(int, nc_close, (int))                                                                                                                \
    X(const char *, nc_strerror, (int))

static struct {
#define X(type, name, arguments) type(*name) arguments;
    NETCDF(X)
#undef X
} lib;

bool gm_netcdf_open(void)
{
    static const char *const sonames[] = {"libnetcdf.so.19", "libnetcdf.so.22", "libnetcdf.so", NULL};
    char where[400];
    void *library = gm_library_open(sonames, NULL, "GM_NETCDF", "", where, sizeof where);
    bool found = library != NULL;
#define X(type, name, arguments) found = found && gm_library_symbol(library, #name, &lib.name);
    NETCDF(X)
#undef X
    // HDF5 closes what is open when the program ends, and faults where a disk was full
    int (*leave_at_exit)(void);
    if (found && gm_library_symbol(library, "H5dont_atexit", &leave_at_exit)) leave_at_exit();
    if (!found) gm_error("--format netcdf: the library of NetCDF is not found (apt-get install libnetcdf19)");
    return found;
}

enum {
    CHUNK = 1 << 17,  // numbers that are packed together
    LEVEL = 2,        // of deflate: numbers at random hardly become shorter beyond it
    MOST_DIMS = GM_MAX_RANK + 2,
};
static const double MOST_DATA = 1e8;  // bytes of data that are copied into the file
static const int FLOAT_DIGITS = 7;    // that a float keeps

typedef struct Dim {
    char *name;
    int id;
} Dim;

typedef struct Group {
    int id, n_dims;
    Dim *dim;
} Group;

typedef struct Writer {
    const GmDraws *d;
    const GmModel *model;
    int file, error;  // of netcdf-c: the first one; then nothing more is done
} Writer;

static bool good(Writer *w, int error)
{
    if (!w->error) w->error = error;
    return !w->error;
}

static void put_text(Writer *w, int group, int variable, const char *name, const char *text)
{
    good(w, lib.nc_put_att_text(group, variable, name, strlen(text), text));
}

static void put_number(Writer *w, int group, const char *name, NcType type, double x)
{
    good(w, lib.nc_put_att_double(group, NC_GLOBAL, name, (int)type, 1, &x));
}

// ---- groups and their dimensions ----

static Group group_open(Writer *w, const char *name)
{
    Group g = {0};
    char now[40];
    const time_t clock = time(NULL);
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%S+00:00", gmtime(&clock));
    if (!good(w, lib.nc_def_grp(w->file, name, &g.id))) return g;
    put_text(w, g.id, NC_GLOBAL, "created_at", now);
    put_text(w, g.id, NC_GLOBAL, "creation_library", "gmc");
    put_text(w, g.id, NC_GLOBAL, "creation_library_version", GM_VERSION);
    put_text(w, g.id, NC_GLOBAL, "creation_library_language", "C");
    put_text(w, g.id, NC_GLOBAL, "inference_library", "gmc");
    put_text(w, g.id, NC_GLOBAL, "inference_library_version", GM_VERSION);
    put_text(w, g.id, NC_GLOBAL, "model_name", w->model->name);
    return g;
}

static void group_close(Group *g)
{
    for (int k = 0; k < g->n_dims; k++) free(g->dim[k].name);
    free(g->dim);
}

// The dimension of this name with its coordinate: labels, or numbers from `first` on (or those of `number`).
static int dimension(Writer *w, Group *g, const char *name, long size, const GmLevels *levels, const double *number, long first)
{
    for (int k = 0; k < g->n_dims; k++)
        if (strcmp(g->dim[k].name, name) == 0) return g->dim[k].id;
    Dim new = {.name = gm_copy_text(name)};
    int variable = 0;
    const size_t start = 0, count = (size_t)size;
    if (good(w, lib.nc_def_dim(g->id, name, count, &new.id)) &&
        good(w, lib.nc_def_var(g->id, name, levels ? NC_STRING : NC_INT, 1, &new.id, &variable))) {
        if (levels) good(w, lib.nc_put_vara_string(g->id, variable, &start, &count, (const char **)levels->name));
        else {
            double *x = gm_alloc(count, sizeof *x);
            for (long k = 0; k < size; k++) x[k] = number ? number[k] : (double)(first + k);
            good(w, lib.nc_put_vara_double(g->id, variable, &start, &count, x));
            free(x);
        }
    }
    g->dim = gm_grow(g->dim, (size_t)g->n_dims + 1, sizeof *g->dim);
    g->dim[g->n_dims++] = new;
    return new.id;
}

static int draw_dimensions(Writer *w, Group *g, int *dim)
{
    dim[0] = dimension(w, g, "chain", w->d->chains, NULL, NULL, w->d->first_chain);
    dim[1] = dimension(w, g, "draw", w->d->kept, NULL, NULL, 1);
    return 2;
}

static bool is_of_draws(const char *name) { return strcmp(name, "chain") == 0 || strcmp(name, "draw") == 0; }

// A dimension is called by the size that it has in the model, `J`, or as ArviZ calls those without a name. Readers take no dimension twice:
// the columns of a square matrix have one of their own.
static int extent_dimension(Writer *w, Group *g, const char *variable, const GmField *field, const GmShape *s, int k)
{
    const int size = field->extent_of[k];
    const char *named = size ? w->model->data[size - 1].name : NULL;
    for (int before = 0; before < k && size; before++)
        if (field->extent_of[before] == size) named = NULL;
    char *name = named && !is_of_draws(named) ? gm_copy_text(named) : gm_format("%s_dim_%d", variable, k);
    const int id = dimension(w, g, name, s->dim[k], gm_levels_of_size(&w->d->data->levels, size), NULL, 1);
    free(name);
    return id;
}

// ---- numbers ----

// The nearest double with this many bits behind the first: what --digits leaves takes less room.
static double to_bits(double x, int bits)
{
    enum { FRACTION = 52 };
    uint64_t u;
    if (!isfinite(x) || bits >= FRACTION) return x;
    memcpy(&u, &x, sizeof u);
    const uint64_t last = 1ull << (FRACTION - bits);
    u = (u + last / 2) & ~(last - 1);
    memcpy(&x, &u, sizeof x);
    return x;
}

static int bits_of(int digits) { return digits ? (int)ceil(digits * log2(10)) : 64; }

// What holds the numbers: ints as they are, floats for few digits unless one is too large for them.
static NcType type_for(const GmField *field, double most, bool missing, int digits)
{
    static const double LARGEST_FLOAT = 3.4e38;
    if (field->type == GM_INT && !missing) return NC_INT;
    return digits && digits <= FLOAT_DIGITS && most < LARGEST_FLOAT ? NC_FLOAT : NC_DOUBLE;
}

static int define(Writer *w, Group *g, const char *name, NcType type, int rank, const int *dim, const size_t *chunk)
{
    int id = 0;
    if (good(w, lib.nc_def_var(g->id, name, (int)type, rank, dim, &id)) && chunk &&
        good(w, lib.nc_def_var_chunking(g->id, id, NC_CHUNKED, chunk)))
        good(w, lib.nc_def_var_deflate(g->id, id, 1, 1, LEVEL));
    return id;
}

// Columns from `first` on, which are an array with these dimensions behind chain and draw; place[k]: where column first + k lies in it.
typedef struct Columns {
    const char *name;
    long first, n;
    const long *place;
    int rank;
    const int *dim;
    const long *extent;
    NcType type;
    bool truth;
} Columns;

static void put_columns(Writer *w, Group *g, const Columns *c)
{
    const GmDraws *d = w->d;
    int dim[MOST_DIMS];
    size_t chunk[MOST_DIMS], start[MOST_DIMS] = {0}, count[MOST_DIMS];
    const int lead = draw_dimensions(w, g, dim), rank = lead + c->rank;
    long room = CHUNK;
    for (int k = c->rank - 1; k >= 0; k--) {
        dim[lead + k] = c->dim[k];
        count[lead + k] = (size_t)c->extent[k];
        chunk[lead + k] = (size_t)(c->extent[k] < room ? c->extent[k] : room);
        room = room / (long)chunk[lead + k] > 1 ? room / (long)chunk[lead + k] : 1;
    }
    const long many = room < d->kept ? room : d->kept;
    chunk[0] = count[0] = 1;
    chunk[1] = (size_t)many;
    const int id = define(w, g, c->name, c->type, rank, dim, chunk);
    if (c->truth) put_text(w, g->id, id, "dtype", "bool");
    double *x = gm_alloc((size_t)(many * c->n), sizeof *x);
    const int bits = c->type == NC_DOUBLE ? bits_of(d->options->digits) : 64;
    for (int chain = 0; chain < d->chains && !w->error; chain++)
        for (long at = 0; at < d->kept && !w->error; at += many) {
            const long n = d->kept - at < many ? d->kept - at : many;
            for (long i = 0; i < n; i++) {
                const double *row = d->memory + (size_t)(chain * d->held + at + i) * (size_t)d->n_columns + c->first;
                for (long k = 0; k < c->n; k++) x[i * c->n + c->place[k]] = to_bits(row[k], bits);
            }
            start[0] = (size_t)chain;
            start[1] = (size_t)at;
            count[1] = (size_t)n;
            good(w, lib.nc_put_vara_double(g->id, id, start, count, x));
        }
    free(x);
}

// The largest number of these columns, and whether one is none.
static double largest(const GmDraws *d, long first, long n, bool *missing)
{
    double most = 0;
    for (int c = 0; c < d->chains; c++)
        for (long i = 0; i < d->kept; i++)
            for (long k = first; k < first + n; k++) {
                const double x = d->memory[(size_t)(c * d->held + i) * (size_t)d->n_columns + (size_t)k];
                *missing |= isnan(x);
                if (isfinite(x)) most = fmax(most, fabs(x));
            }
    return most;
}

// ---- what is drawn ----

static const char *statistic(long element, NcType *type)
{
    static const struct {
        const char *name;
        NcType type;
    } all[GM_HMC_NUMBERS] = {[GM_HMC_ACCEPT] = {"acceptance_rate", NC_DOUBLE}, [GM_HMC_STEP] = {"step_size", NC_DOUBLE},
                             [GM_HMC_DEPTH] = {"tree_depth", NC_INT},          [GM_HMC_LEAPS] = {"n_steps", NC_INT},
                             [GM_HMC_DIVERGENT] = {"diverging", NC_BYTE},      [GM_HMC_ENERGY] = {"energy", NC_DOUBLE}};
    *type = all[element].type;
    return all[element].name;
}

// lp__ and what CmdStan's files have beside it, under ArviZ's names; a second HMC update with its own name, as there.
static void put_statistics(Writer *w)
{
    const GmDraws *d = w->d;
    Group g = {0};
    const long here = 0;
    int block = -1;
    for (long k = 0; k < d->n_columns; k++) {
        const int f = d->column[k].field;
        if (f == GM_COLUMN_LPRIOR || (f >= 0 && !gm_draws_diagnostic(d, w->model, k))) continue;
        if (!g.id) g = group_open(w, "sample_stats");
        if (f >= 0 && block < 0) block = f;
        NcType type = NC_DOUBLE;
        const char *name = f < 0 ? "lp" : statistic(d->column[k].element, &type);
        char *whole = f < 0 || f == block ? gm_copy_text(name) : gm_format("%s_%s", name, w->model->state[f].name + strlen("moves_"));
        put_columns(w, &g, &(Columns){.name = whole, .first = k, .n = 1, .place = &here, .type = type, .truth = type == NC_BYTE});
        free(whole);
    }
    group_close(&g);
}

static void put_log_prior(Writer *w)
{
    const GmDraws *d = w->d;
    const long here = 0;
    for (long k = 0; k < d->n_columns; k++) {
        if (d->column[k].field != GM_COLUMN_LPRIOR) continue;
        Group g = group_open(w, "log_prior");
        put_columns(w, &g, &(Columns){.name = "lprior", .first = k, .n = 1, .place = &here, .type = NC_DOUBLE});
        group_close(&g);
    }
}

// The observed variable whose log-likelihood, or replicate, the field is: the name of its array in that group.
static const char *observed_name(const GmModel *model, int f)
{
    for (const GmObserved *o = model->observed; o && o->where; o++)
        if (o->log_lik == f + 1 || o->replicate == f + 1) return o->name;
    return model->state[f].name;
}

static void put_field(Writer *w, Group *g, const char *name, int f, long first, long n)
{
    const GmDraws *d = w->d;
    const GmField *field = &w->model->state[f];
    const GmShape *s = &d->shapes->shape[f];
    const bool part = n < gm_shape_size(s);  // missing values of data: a list, with the numbers of the elements
    int dim[GM_MAX_RANK] = {0};
    long *place = gm_alloc((size_t)n, sizeof *place);
    double *number = gm_alloc((size_t)n, sizeof *number);
    for (long k = 0; k < n; k++) {
        place[k] = part ? k : d->column[first + k].element;
        number[k] = (double)(d->column[first + k].element + 1);
    }
    char *list = gm_format("%s_missing", name);
    if (part) dim[0] = dimension(w, g, list, n, NULL, number, 1);
    for (int k = 0; k < s->rank && !part; k++) dim[k] = extent_dimension(w, g, name, field, s, k);
    bool missing = false;
    const double most = largest(d, first, n, &missing);
    put_columns(w, g,
                &(Columns){.name = name,
                           .first = first,
                           .n = n,
                           .place = place,
                           .rank = part ? 1 : s->rank,
                           .dim = dim,
                           .extent = part ? &n : s->dim,
                           .type = type_for(field, most, missing, d->options->digits)});
    free(list);
    free(number);
    free(place);
}

// Quantities that runs request so, 0: those that are always there; also: another request, or the same.
static void put_draws(Writer *w, const char *group, int request, int also)
{
    const GmDraws *d = w->d;
    Group g = {0};
    for (long first = 0, last; first < d->n_columns; first = last) {
        const int f = d->column[first].field;
        for (last = first + 1; last < d->n_columns && d->column[last].field == f;) last++;
        const int by = f < 0 ? -1 : w->model->state[f].on_request;
        if ((by != request && by != also) || gm_draws_diagnostic(d, w->model, first)) continue;
        if (!g.id) g = group_open(w, group);
        put_field(w, &g, by ? observed_name(w->model, f) : w->model->state[f].name, f, first, last - first);
    }
    if (g.id && !request) {
        char seed[40];
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)d->options->seed);
        put_text(w, g.id, NC_GLOBAL, "seed", seed);  // a double does not hold it
        put_number(w, g.id, "tuning_steps", NC_INT, (double)d->options->warmup);
        put_number(w, g.id, "thin", NC_INT, d->options->thin);
        put_number(w, g.id, "sampling_time", NC_DOUBLE, gm_seconds() - d->sampling);
    }
    group_close(&g);
}

// ---- data ----

static bool is_observed(const GmModel *model, int f)
{
    for (const GmObserved *o = model->observed; o && o->where; o++)
        if (o->data == f + 1) return true;
    return false;
}

static void put_data_field(Writer *w, Group *g, int f)
{
    const GmField *field = &w->model->data[f];
    const GmShape *s = &w->d->data->shape[f];
    const GmValue *v = gm_values_find(&w->d->data->values, field->name);
    const long size = gm_shape_size(s);
    int dim[GM_MAX_RANK] = {0};
    size_t start[GM_MAX_RANK] = {0}, count[GM_MAX_RANK] = {0}, chunk[GM_MAX_RANK] = {0};
    long room = CHUNK;
    for (int k = s->rank - 1; k >= 0; k--) {
        dim[k] = extent_dimension(w, g, field->name, field, s, k);
        count[k] = (size_t)s->dim[k];
        chunk[k] = (size_t)(s->dim[k] < room ? s->dim[k] : room);
        room = room / (long)chunk[k] > 1 ? room / (long)chunk[k] : 1;
    }
    double *x = gm_alloc((size_t)size, sizeof *x);
    bool missing = false;
    for (long i = 0; i < size; i++) {
        if (field->type != GM_INT) x[i] = ((const double *)v->elements)[i];
        else {
            const int32_t k = ((const int32_t *)v->elements)[i];
            x[i] = k == GM_MISSING_INT ? NAN : (double)k;
        }
        missing |= isnan(x[i]);
    }
    const int id = define(w, g, field->name, field->type == GM_INT && !missing ? NC_INT : NC_DOUBLE, s->rank, dim, s->rank ? chunk : NULL);
    good(w, lib.nc_put_vara_double(g->id, id, start, count, x));
    free(x);
}

// A size that is a dimension here is no variable besides: its coordinate has that name.
static bool is_extent(const GmModel *model, int f)
{
    for (int k = 0; k < model->n_data; k++)
        for (int r = 0; r < model->data[k].rank; r++)
            if (model->data[k].extent_of[r] == f + 1) return true;
    return false;
}

static void put_data(Writer *w, const char *group, bool observed)
{
    Group g = {0};
    double bytes = 0;
    for (int f = 0; f < w->model->n_data; f++) {
        const GmField *field = &w->model->data[f];
        const GmValue *v = gm_values_find(&w->d->data->values, field->name);
        const long size = gm_shape_size(&w->d->data->shape[f]);
        if (!v || size == 0 || strcmp(v->source, "not given") == 0) continue;
        if (is_observed(w->model, f) != observed || is_of_draws(field->name) || is_extent(w->model, f)) continue;
        bytes += (double)size * sizeof(double);
        if (bytes > MOST_DATA) {
            gm_note("%s is not in the file of draws: there are more than %.0f MB of data", field->name, MOST_DATA / 1e6);
            bytes -= (double)size * sizeof(double);
            continue;
        }
        if (!g.id) g = group_open(w, group);
        put_data_field(w, &g, f);
    }
    group_close(&g);
}

// ---- the file ----

static void put_run(Writer *w, bool prior)
{
    put_draws(w, prior ? "prior" : "posterior", 0, 0);
    put_statistics(w);
    put_log_prior(w);
    put_draws(w, "log_likelihood", GM_LOG_LIK, GM_LOG_LIK);
    put_draws(w, prior ? "prior_predictive" : "posterior_predictive", GM_REPLICATES, GM_REPLICATES);
    put_data(w, "observed_data", true);
    put_data(w, "constant_data", false);
}

// Of new data. Their densities are no log-likelihoods of the fit, which leave-one-out cross-validation would read.
static void put_predictions(Writer *w)
{
    put_draws(w, "predictions", 0, GM_REPLICATES);
    put_draws(w, "predictions_log_density", GM_LOG_LIK, GM_LOG_LIK);
    put_data(w, "predictions_constant_data", false);
}

bool gm_netcdf_may_hold(const GmDraws *d)
{
    for (long k = 0; k < d->n_columns; k++) {
        const int f = d->column[k].field;
        if (f < 0 || !is_of_draws(d->model->state[f].name)) continue;
        gm_error("--format netcdf: `%s` is the name of a dimension of all draws there, and of an unknown of the model: give it another",
                 d->model->state[f].name);
        return false;
    }
    char *path = gm_format("%s.nc", d->options->output);
    GmFile out;
    const bool good = gm_output_open(&out, path, false);  // what can be known now of the folder
    if (good) gm_file_drop(&out);
    free(path);
    return good;
}

bool gm_netcdf_write(const GmDraws *d)
{
    char *path = gm_format("%s.nc", d->options->output);
    GmFile out;
    bool done = gm_output_open(&out, path, false);
    if (done) {
        Writer w = {.d = d, .model = d->model};
        if (good(&w, lib.nc_create(out.part, NC_CLOBBER | NC_NETCDF4, &w.file))) {
            if (d->options->later) put_predictions(&w);
            else put_run(&w, d->options->forward == GM_PRIOR);
            good(&w, lib.nc_close(w.file));
        }
        done = !w.error;
        if (!done) {
            gm_error("%s: cannot be written: %s", path, lib.nc_strerror(w.error));
            gm_file_drop(&out);
        } else done = gm_output_done(&out);
    }
    free(path);
    return done;
}
