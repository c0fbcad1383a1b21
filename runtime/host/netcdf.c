// netcdf.c -- the draws as one NetCDF file, in the groups and dimensions that ArviZ reads.
//
//   NAME.nc    posterior             a(chain, draw, J), J = Aitkin, Anoka, ...        sample_stats     lp, diverging, energy, ...
//              log_likelihood        y(chain, draw, N), of --log-lik                  observed_data    y(N)
//              posterior_predictive  y(chain, draw, N), of --predict                  constant_data    x(N)
//              predictions           y(chain, draw, N), of `predict`, and so on
//              warmup_posterior      a(chain, draw, J), of --save-warmup, and so on
//
// The layout is "InferenceData schema specification" of ArviZ. The file grows along the dimension `draw`, by blocks of draws of all chains;
// its variables are defined when the first block is there. An HDF5 file that is cut off while it grows may not be read any more, so it is
// written by a process of its own (netcdf_process.c). netcdf-c is opened while the program runs; its calls and numbers are those of
// netcdf.h, version 4 (Unidata).
//
// Attributes have what the CSV files of the run would have besides, so that commands about stored draws read either (netcdf_read.c).
#include "draws.h"
#include "fields.h"
#include "messages.h"
#include "netcdf.h"
#include "../backends/library.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NC_CLOBBER = 0, NC_NETCDF4 = 0x1000, NC_CHUNKED = 0, NC_UNLIMITED = 0 };

#define NETCDF(X)                                                                          \
    X(int, nc_create, (const char *, int, int *))                                          \
    X(int, nc_def_grp, (int, const char *, int *))                                         \
    X(int, nc_def_dim, (int, const char *, size_t, int *))                                 \
    X(int, nc_def_var, (int, const char *, int, int, const int *, int *))                  \
    X(int, nc_def_var_chunking, (int, int, int, const size_t *))                           \
    X(int, nc_def_var_deflate, (int, int, int, int, int))                                  \
    X(int, nc_put_att_text, (int, int, const char *, size_t, const char *))                \
    X(int, nc_put_att_double, (int, int, const char *, int, size_t, const double *))       \
    X(int, nc_put_vara_double, (int, int, const size_t *, const size_t *, const double *)) \
    X(int, nc_put_vara_string, (int, int, const size_t *, const size_t *, const char **))  \
    X(int, nc_sync, (int))                                                                 \
    X(int, nc_close, (int))                                                                \
    X(const char *, nc_strerror, (int))

static struct {
#define X(type, name, arguments) type(*name) arguments;
    NETCDF(X)
#undef X
} lib;

bool gm_netcdf_open(void)
{
    void *library = gm_netcdf_library();
    bool found = library != NULL;
#define X(type, name, arguments) found = found && gm_library_symbol(library, #name, &lib.name);
    NETCDF(X)
#undef X
    if (!found) gm_netcdf_not_found("--format netcdf");
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

// Columns of the draws, which are an array behind chain and draw. column[k] lies at place[k] of it.
typedef struct Columns {
    int group, id;
    char *name;
    long n, *column, *place;
    int rank;
    int dim[GM_MAX_RANK];
    long extent[GM_MAX_RANK];
    NcType type;
    bool truth, beyond;  // beyond: a number was too large for a float, or none where an int is
} Columns;

typedef struct Coordinate {  // `draw` of a group
    int group, id;
} Coordinate;

typedef struct GmNetcdf {
    const GmDraws *d;
    const GmModel *model;
    int own, *file;             // of netcdf-c; file: its own, or that of a writer whose groups are in it, too
    int error;                  // of netcdf-c: the first one; then nothing more is done
    long block, written;        // draws of a chain that are written together; in the file
    int n, n_draws, posterior;  // posterior: its group
    const char *settings, *notes;
    Columns *columns;
    Coordinate *draw;
    double *room;
    const double *first;  // the rows of the first block while variables are defined: [chain][n_first][column]
    long n_first;
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

// Which columns of the CSV files the elements of a variable are, from 1: the first one of a whole array, or those of a list.
static void put_columns(Writer *w, const Columns *c, bool list)
{
    const long n = list ? c->n : 1;
    double *number = gm_alloc((size_t)n, sizeof *number);
    for (long k = 0; k < n; k++) number[k] = (double)(c->column[k] + 1);
    good(w, lib.nc_put_att_double(c->group, c->id, gm_netcdf_columns, (int)NC_INT, (size_t)n, number));
    free(number);
}

static void put_number(Writer *w, int group, const char *name, NcType type, double x)
{
    good(w, lib.nc_put_att_double(group, NC_GLOBAL, name, (int)type, 1, &x));
}

// ---- groups and their dimensions ----

static Group group_open(Writer *w, const char *name)
{
    Group g = {0};
    char now[40], *whole = gm_format("%s%s", w->d->of_warmup ? "warmup_" : "", name);
    const time_t clock = time(NULL);
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%S+00:00", gmtime(&clock));
    const bool defined = good(w, lib.nc_def_grp(*w->file, whole, &g.id));
    free(whole);
    if (!defined) return g;
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

// The dimension that grows, with its coordinate.
static int draw_dimension(Writer *w, Group *g)
{
    static const char name[] = "draw";
    for (int k = 0; k < g->n_dims; k++)
        if (strcmp(g->dim[k].name, name) == 0) return g->dim[k].id;
    Dim new = {.name = gm_copy_text(name)};
    Coordinate c = {.group = g->id};
    const size_t chunk = (size_t)w->block;
    if (good(w, lib.nc_def_dim(g->id, name, NC_UNLIMITED, &new.id)) && good(w, lib.nc_def_var(g->id, name, NC_INT, 1, &new.id, &c.id)))
        good(w, lib.nc_def_var_chunking(g->id, c.id, NC_CHUNKED, &chunk));
    w->draw = gm_grow(w->draw, (size_t)w->n_draws + 1, sizeof *w->draw);
    w->draw[w->n_draws++] = c;
    g->dim = gm_grow(g->dim, (size_t)g->n_dims + 1, sizeof *g->dim);
    g->dim[g->n_dims++] = new;
    return new.id;
}

static int draw_dimensions(Writer *w, Group *g, int *dim)
{
    dim[0] = dimension(w, g, "chain", w->d->chains, NULL, NULL, w->d->first_chain);
    dim[1] = draw_dimension(w, g);
    return 2;
}

// A name of a dimension that no variable has: a coordinate is a variable, too.
static char *free_name(const GmModel *model, char *name)
{
    bool taken = true;
    while (taken) {
        taken = false;
        for (int f = 0; f < model->n_state; f++) taken |= strcmp(model->state[f].name, name) == 0;
        for (int f = 0; f < model->n_data; f++) taken |= strcmp(model->data[f].name, name) == 0;
        if (!taken) break;
        char *longer = gm_format("%s_", name);
        free(name);
        name = longer;
    }
    return name;
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
    char *name = named && !is_of_draws(named) ? gm_copy_text(named) : free_name(w->model, gm_format("%s_dim_%d", variable, k));
    GmLevels rows = {.n = field->rows_of && k == 0 ? s->dim[0] : 0};  // of rows of different lengths: "2,1"
    rows.name = gm_alloc((size_t)rows.n + 1, sizeof *rows.name);
    for (long e = 0; e < rows.n; e++) {
        char *const element = gm_element_name(field->name, 1, s->dim, e), *to = element;
        for (const char *from = strchr(element, '['); from && *from; from++)
            if (!strchr("[ ]", *from)) *to++ = *from;
        *to = 0;
        rows.name[e] = element;
    }
    const int id = dimension(w, g, name, s->dim[k], rows.n ? &rows : gm_levels_of_size(&w->d->data->levels, size), NULL, 1);
    for (long e = 0; e < rows.n; e++) free(rows.name[e]);
    free(rows.name);
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

static const double LARGEST_FLOAT = 3.4e38;

// What holds the numbers: ints as they are, unless some do not exist, and floats for few digits.
static NcType type_for(const GmField *field, bool missing, int digits)
{
    if (field->type == GM_INT && !missing) return NC_INT;
    return digits && digits <= FLOAT_DIGITS ? NC_FLOAT : NC_DOUBLE;
}

static int define(Writer *w, Group *g, const char *name, NcType type, int rank, const int *dim, const size_t *chunk)
{
    int id = 0;
    if (good(w, lib.nc_def_var(g->id, name, (int)type, rank, dim, &id)) && chunk &&
        good(w, lib.nc_def_var_chunking(g->id, id, NC_CHUNKED, chunk)))
        good(w, lib.nc_def_var_deflate(g->id, id, 1, 1, LEVEL));
    return id;
}

// Defines a variable; what `c` has is the writer's then.
static void add_columns(Writer *w, Group *g, Columns c, bool list)
{
    int dim[MOST_DIMS];
    size_t chunk[MOST_DIMS];
    const int lead = draw_dimensions(w, g, dim), rank = lead + c.rank;
    long room = CHUNK;
    for (int k = c.rank - 1; k >= 0; k--) {
        dim[lead + k] = c.dim[k];
        chunk[lead + k] = (size_t)(c.extent[k] < room ? c.extent[k] : room);
        room = room / (long)chunk[lead + k] > 1 ? room / (long)chunk[lead + k] : 1;
    }
    long many = w->block;  // a part of a block, where there are several, so that no chunk is written twice
    while (many > room && w->block < w->d->capacity) many /= 2;
    if (many > room) many = room;
    chunk[0] = 1;
    chunk[1] = (size_t)many;
    c.group = g->id;
    c.id = define(w, g, c.name, c.type, rank, dim, chunk);
    if (c.truth) put_text(w, g->id, c.id, "dtype", "bool");
    put_columns(w, &c, list);
    w->columns = gm_grow(w->columns, (size_t)w->n + 1, sizeof *w->columns);
    w->columns[w->n++] = c;
}

static void add_column(Writer *w, Group *g, char *name, long column, NcType type)
{
    Columns c = {.name = name, .n = 1, .type = type, .truth = type == NC_BYTE};
    c.column = gm_alloc(1, sizeof *c.column);
    c.place = gm_alloc(1, sizeof *c.place);
    c.column[0] = column;
    add_columns(w, g, c, false);
}

// The number as the variable has it.
static double stored_as(Columns *c, double x, int bits)
{
    switch (c->type) {
    case NC_FLOAT:
        if (isfinite(x) && fabs(x) > LARGEST_FLOAT) {
            c->beyond = true;
            return copysign(INFINITY, x);
        }
        return x;
    case NC_INT:
        if (!isnan(x)) return x;
        c->beyond = true;
        return NC_FILL_INT;
    case NC_DOUBLE: return to_bits(x, bits);
    case NC_BYTE:
    case NC_STRING: return x;
    }
    return x;
}

// n rows of each chain, [chain][n][column], behind those that are there.
static void put_rows(Writer *w, Columns *c, const double *rows, long n)
{
    const GmDraws *d = w->d;
    size_t start[MOST_DIMS] = {0}, count[MOST_DIMS] = {1, (size_t)n};
    const int bits = c->type == NC_DOUBLE ? bits_of(d->options->digits) : 64;
    for (int k = 0; k < c->rank; k++) count[2 + k] = (size_t)c->extent[k];
    start[1] = (size_t)w->written;
    w->room = gm_grow(w->room, (size_t)(n * c->n), sizeof *w->room);
    for (int chain = 0; chain < d->chains && !w->error && c->n > 0; chain++) {
        for (long i = 0; i < n; i++) {
            const double *row = rows + (size_t)(chain * n + i) * (size_t)d->n_columns;
            for (long k = 0; k < c->n; k++) w->room[i * c->n + c->place[k]] = stored_as(c, row[c->column[k]], bits);
        }
        start[0] = (size_t)chain;
        good(w, lib.nc_put_vara_double(c->group, c->id, start, count, w->room));
    }
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
    int block = -1;
    for (long k = 0; k < d->n_columns; k++) {
        const int f = d->column[k].field;
        if ((f >= 0 && !gm_draws_diagnostic(d, w->model, k))) continue;
        if (!g.id) g = group_open(w, "sample_stats");
        if (f >= 0 && block < 0) block = f;
        NcType type = NC_DOUBLE;
        const char *name = f == GM_COLUMN_LP ? "lp" : f < 0 ? "lprior" : statistic(d->column[k].element, &type);
        char *whole = f < 0 || f == block ? gm_copy_text(name) : gm_format("%s_%s", name, w->model->state[f].name + strlen("moves_"));
        add_column(w, &g, whole, k, type);
    }
    group_close(&g);
}

// The variable whose log-likelihood, replicate or log prior the field is: the name of its array in that group.
static const char *observed_name(const GmModel *model, int f)
{
    for (const GmObserved *o = model->observed; o && o->where; o++)
        if (o->log_lik == f + 1 || o->replicate == f + 1) return o->name;
    for (const GmPrior *p = model->priors; p && p->field; p++)
        if (p->field == f + 1) return p->name;
    return model->state[f].name;
}

// Whether a log-likelihood is one of nothing: of a missing value, or of an element that no `~` names. It is so in all draws.
static bool is_absent(const Writer *w, long column)
{
    bool absent = true;
    for (int c = 0; c < w->d->chains; c++) absent &= isnan(w->first[(size_t)(c * w->n_first) * (size_t)w->d->n_columns + (size_t)column]);
    return absent;
}

// Elements of which there are columns are the whole array, or a list of some of them, NAME_missing or NAME_observed, with their numbers.
static void put_field(Writer *w, Group *g, const char *name, int f, long first, long n)
{
    const GmDraws *d = w->d;
    const GmField *field = &w->model->state[f];
    const GmShape *s = &d->shapes->shape[f];
    const bool log_lik = field->on_request == GM_LOG_LIK;
    Columns c = {.name = gm_copy_text(name), .type = type_for(field, field->partial, d->options->digits)};
    c.column = gm_alloc((size_t)n, sizeof *c.column);
    c.place = gm_alloc((size_t)n, sizeof *c.place);
    double *number = gm_alloc((size_t)n, sizeof *number);
    for (long k = first; k < first + n; k++)
        if (!log_lik || !is_absent(w, k)) c.column[c.n++] = k;
    const bool part = c.n < gm_shape_size(s);
    for (long k = 0; k < c.n; k++) {
        c.place[k] = part ? k : d->column[c.column[k]].element;
        number[k] = (double)(d->column[c.column[k]].element + 1);
    }
    c.rank = part ? 1 : s->rank;
    if (part) {
        char *list = free_name(w->model, gm_format(log_lik ? "%s_observed" : "%s_missing", name));
        c.dim[0] = dimension(w, g, list, c.n, NULL, number, 1);
        c.extent[0] = c.n;
        free(list);
    }
    for (int k = 0; k < s->rank && !part; k++) {
        c.dim[k] = extent_dimension(w, g, name, field, s, k);
        c.extent[k] = s->dim[k];
    }
    free(number);
    if (c.n == 0) {  // a dimension of no element would grow
        free(c.name);
        free(c.column);
        free(c.place);
    } else add_columns(w, g, c, part);
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
    if (g.id && !request && !w->d->of_warmup) {
        char seed[40];
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)d->options->seed);
        put_text(w, g.id, NC_GLOBAL, "seed", seed);  // a double does not hold it
        put_number(w, g.id, "tuning_steps", NC_INT, (double)d->options->warmup);
        put_number(w, g.id, "thin", NC_INT, d->options->thin);
        w->posterior = g.id;
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
    put_draws(w, "log_prior", GM_LOG_PRIOR, GM_LOG_PRIOR);
    put_draws(w, "log_likelihood", GM_LOG_LIK, GM_LOG_LIK);
    put_draws(w, prior ? "prior_predictive" : "posterior_predictive", GM_REPLICATES, GM_REPLICATES);
    if (w->d->of_warmup) return;
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

GmNetcdf *gm_netcdf_create(const GmDraws *d, long block)
{
    Writer *w = gm_alloc(1, sizeof *w);
    *w = (Writer){.d = d, .model = d->model, .block = block};
    w->file = &w->own;
    return w;
}

GmNetcdf *gm_netcdf_beside(GmNetcdf *first, const GmDraws *d, long block)
{
    Writer *w = gm_netcdf_create(d, block);
    w->file = first->file;
    return w;
}

void gm_netcdf_about(GmNetcdf *w, const char *settings, const char *notes)
{
    w->settings = settings;
    w->notes = notes;
}

// What the CSV files say: the names of all columns, settings, notes.
static void put_about(Writer *w)
{
    char *header = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&header, &n);
    for (long c = 0; to && c < w->d->n_columns; c++) {
        char *label = gm_column_label(w->d, w->model, w->d->shapes, c, '.');
        fprintf(to, c ? ",%s" : "%s", label);
        free(label);
    }
    if (to) fclose(to);
    if (header) put_text(w, *w->file, NC_GLOBAL, gm_netcdf_header, header);
    free(header);
    if (w->settings) put_text(w, *w->file, NC_GLOBAL, gm_netcdf_settings, w->settings);
    if (w->notes) put_text(w, *w->file, NC_GLOBAL, gm_netcdf_notes, w->notes);
}

// A run that has ended early has as many draws as its settings say, as in CSV files.
static void put_samples(Writer *w)
{
    static const char setting[] = "num_samples = ";
    const char *at = w->settings ? strstr(w->settings, setting) : NULL;
    if (!at) return;
    at += sizeof setting - 1;
    char *settings = gm_format("%.*s%ld%s", (int)(at - w->settings), w->settings, w->written * w->d->options->thin, at + strcspn(at, "\n"));
    put_text(w, *w->file, NC_GLOBAL, gm_netcdf_settings, settings);
    free(settings);
}

static bool create(Writer *w, const char *path)
{
    unlink(path);  // another process may still be closing what it was
    return good(w, lib.nc_create(path, NC_CLOBBER | NC_NETCDF4, w->file));
}

static void define_all(Writer *w, const char *path)
{
    if (!*w->file && !create(w, path)) return;
    if (!w->d->of_warmup) put_about(w);
    if (w->d->options->later) put_predictions(w);
    else put_run(w, w->d->options->forward == GM_PRIOR);
}

bool gm_netcdf_put(GmNetcdf *w, const char *path, const double *rows, long n)
{
    if (w->written == 0) {
        w->first = rows;
        w->n_first = n;
        define_all(w, path);
    }
    for (int k = 0; k < w->n; k++) put_rows(w, &w->columns[k], rows, n);
    const size_t start = (size_t)w->written, count = (size_t)n;
    w->room = gm_grow(w->room, count, sizeof *w->room);
    for (long i = 0; i < n; i++) w->room[i] = (double)(w->written + i + 1);
    for (int k = 0; k < w->n_draws; k++) good(w, lib.nc_put_vara_double(w->draw[k].group, w->draw[k].id, &start, &count, w->room));
    w->written += n;
    if (*w->file) good(w, lib.nc_sync(*w->file));
    return !w->error;
}

// The numbers that are not there as they were drawn.
static void note_beyond(const Writer *w, const char *name)
{
    for (int k = 0; k < w->n; k++)
        if (w->columns[k].beyond)
            gm_error(w->columns[k].type == NC_FLOAT ? "%s: draws of %s beyond 3.4e38 are infinite there: --digits 8 keeps them"
                                                    : "%s: draws of %s that are no numbers are -2147483647 there",
                     name, w->columns[k].name);
}

const char *gm_netcdf_close(GmNetcdf *w, const char *name, double sampling, bool whole)
{
    if (*w->file && w->posterior) put_number(w, w->posterior, "sampling_time", NC_DOUBLE, sampling);
    if (*w->file && whole) put_samples(w);
    if (w->own) good(w, lib.nc_close(w->own));
    if (!w->error) note_beyond(w, name);
    const char *why = w->error ? lib.nc_strerror(w->error) : NULL;
    for (int k = 0; k < w->n; k++) {
        free(w->columns[k].name);
        free(w->columns[k].column);
        free(w->columns[k].place);
    }
    free(w->columns);
    free(w->draw);
    free(w->room);
    free(w);
    return why;
}
