// stored.c -- files of draws, gmc's own or CmdStan's: one chain each, with the settings of the run in comments.
//
//   # model = eight_schools        lp__,divergent__,theta.1,theta.2        x[column][chain][draw]
//   # id = 2                       -7.3,0,1.5,2
//
// Files of one report hold equally many draws of the same columns. Draws before the line `# Adaptation terminated` are of warm-up. A NetCDF
// file has all chains; what it says of the run are the same lines (netcdf_read.c).
#include "../fields.h"
#include "../messages.h"
#include "report.h"

#include <ctype.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct FileMoves {  // "# transitions of mu = NUTS, chosen"
    GmMovesBy by;
    bool chosen;
} FileMoves;

typedef struct ChainFile {
    const char *path;
    char *header, *model, *generator, *method, *samples, *warmup, *saved, *algorithm, *thin, *seed, *id, *depth;
    long rows, n_columns, room;
    long before;  // rows of warm-up that were dropped
    double *x;    // [draw][column]
    int n_notes;
    char **note;
    int n_data;
    char **data;  // "log_lik_y = 0123456789abcdef"
    int n_moves;
    FileMoves *moves;  // in the order of their columns
} ChainFile;

const double *gm_stored_column(const GmStored *s, long column) { return s->x + column * s->chains * s->draws; }
const double *gm_stored_chain(const GmStored *s, long column, int chain) { return gm_stored_column(s, column) + chain * s->draws; }
GmStoredKind gm_stored_kind(const GmStored *s, long column) { return s->array[s->column[column].array].kind; }

// ---- one file ----

// "#   num_warmup = 1000 (Default)": the value, where the line is about `key`. The caller frees.
static void take_setting(const char *line, const char *key, char **value)
{
    const char *at = line + strspn(line, "# ");
    const size_t n = strlen(key);
    if (*value || strncmp(at, key, n) != 0 || strncmp(at + n, " = ", 3) != 0) return;
    char *found = gm_copy_text(at + n + 3);
    char *end = strstr(found, " (Default)");
    if (end) *end = 0;
    for (size_t k = strlen(found); k > 0 && isspace((unsigned char)found[k - 1]);) found[--k] = 0;
    *value = found;
}

static void take_moves(ChainFile *f, const char *line)
{
    static const char begin[] = "# transitions of ";
    const char *value = strstr(line, " = ");
    if (strncmp(line, begin, sizeof begin - 1) != 0 || !value) return;
    value += strlen(" = ");
    FileMoves of = {.chosen = strstr(value, ", chosen") != NULL};
    const size_t n = strcspn(value, ",\r\n");
    for (int k = 0; k < GM_N_MOVES; k++)
        if (strlen(gm_moves_names[k]) == n && strncmp(value, gm_moves_names[k], n) == 0) of.by = (GmMovesBy)k;
    f->moves = gm_grow(f->moves, (size_t)f->n_moves + 1, sizeof *f->moves);
    f->moves[f->n_moves++] = of;
}

static void take_comment(ChainFile *f, const char *line)
{
    take_moves(f, line);
    take_setting(line, "model", &f->model);
    take_setting(line, "generator", &f->generator);
    take_setting(line, "method", &f->method);
    take_setting(line, "num_samples", &f->samples);
    take_setting(line, "num_warmup", &f->warmup);
    take_setting(line, "save_warmup", &f->saved);
    take_setting(line, "algorithm", &f->algorithm);
    take_setting(line, "thin", &f->thin);
    take_setting(line, "seed", &f->seed);
    take_setting(line, "id", &f->id);
    take_setting(line, "max_depth", &f->depth);
    static const char data[] = "# data of ";
    if (strncmp(line, data, sizeof data - 1) == 0 && !f->header) {
        f->data = gm_grow(f->data, (size_t)f->n_data + 1, sizeof *f->data);
        f->data[f->n_data++] = gm_copy_text(line + sizeof data - 1);
    } else if (strncmp(line, "# Adaptation terminated", 23) == 0) {
        f->before += f->rows;
        f->rows = 0;
    } else if (f->header && f->generator && f->rows == 0 &&
               (strncmp(line, "# Sampler", 9) == 0 || strstr(line, " began again in sweep "))) {
        f->note = gm_grow(f->note, (size_t)f->n_notes + 1, sizeof *f->note);
        f->note[f->n_notes++] = gm_copy_text(line + strspn(line, "# "));
    }
}

static bool take_row(ChainFile *f, char *line, long number)
{
    if (f->rows == f->room) {
        f->room = f->room ? 2 * f->room : 1024;
        f->x = gm_grow(f->x, (size_t)f->room * (size_t)f->n_columns, sizeof *f->x);
    }
    double *x = f->x + f->rows * f->n_columns;
    long c = 0;
    for (char *cell; (cell = strsep(&line, ",")); c++) {
        const char *why;
        if (c >= f->n_columns || (*cell && gm_parse_number(cell, &x[c], &why))) continue;
        gm_error("%s: line %ld, column %ld: `%.60s` %s", f->path, number, c + 1, cell, *cell ? why : "is not a number");
        return false;
    }
    if (c == f->n_columns) {
        f->rows++;
        return true;
    }
    const char *how_many = c < f->n_columns ? "fewer" : "more";
    gm_error("%s: line %ld has %s numbers than there are columns (%ld)", f->path, number, how_many, f->n_columns);
    return false;
}

static bool read_file(ChainFile *f)
{
    GmLines in;
    bool good = gm_lines_open(&in, f->path);
    gm_file_is_read(f->path);
    for (char *line; good && (line = gm_lines_next(&in));) {
        if (*line == '#') take_comment(f, line);
        else if (!*line) continue;
        else if (!in.ended) {
            gm_error("%s: line %ld is not whole: the file was cut off", f->path, in.number);
            good = false;
        } else if (!f->header) {
            f->header = gm_copy_text(line);
            f->n_columns = 1;
            for (const char *at = line; *at; at++) f->n_columns += *at == ',';
        } else good = take_row(f, line, in.number);
    }
    good = good && !in.failed;
    gm_lines_close(&in);
    if (!good) return false;
    if (f->method && strcmp(f->method, "sample") != 0 && strcmp(f->method, "generate_quantities") != 0) {
        gm_error("%s: these are no draws of a chain: its method is %s", f->path, f->method);
        return false;
    }
    if (!f->header || (!f->model && strncmp(f->header, "lp__", 4) != 0)) {
        gm_error("%s: this is no file of draws: it has neither a column lp__ nor a line `# model = ...`", f->path);
        return false;
    }
    if (f->rows > 0) return true;
    gm_error("%s: there are no draws in it", f->path);
    return false;
}

static void take_comments(ChainFile *f, const char *lines)
{
    for (const char *at = lines; at && *at; at += strcspn(at, "\n"), at += *at == '\n') {
        char *line = gm_format("%.*s", (int)strcspn(at, "\n"), at);
        take_comment(f, line);
        free(line);
    }
}

// One chain of a NetCDF file.
static bool read_chain(ChainFile *f, const GmNetcdfIn *in, int chain)
{
    take_comments(f, in->settings);
    free(f->id);
    f->id = gm_format("%ld", in->id[chain]);
    f->header = gm_copy_text(in->header);
    f->n_columns = in->n_columns;
    if (chain == 0) take_comments(f, in->notes);
    f->x = gm_alloc((size_t)in->draws * (size_t)in->n_columns, sizeof *f->x);
    f->rows = in->draws;
    return gm_netcdf_in_rows(in, chain, 0, in->draws, f->x);
}

static void close_file(ChainFile *f)
{
    free(f->header);
    free(f->model);
    free(f->generator);
    free(f->method);
    free(f->samples);
    free(f->warmup);
    free(f->saved);
    free(f->algorithm);
    free(f->thin);
    free(f->seed);
    free(f->id);
    free(f->depth);
    free(f->x);
    for (int k = 0; k < f->n_notes; k++) free(f->note[k]);
    free(f->note);
    for (int k = 0; k < f->n_data; k++) free(f->data[k]);
    free(f->data);
    free(f->moves);
}

// ---- files that go together ----

static const char *said(const char *text) { return text ? text : "none"; }

// The first column that differs is named. false after a message.
static bool same_columns(const ChainFile *a, const ChainFile *b)
{
    if (strcmp(a->header, b->header) == 0) return true;
    const char *p = a->header, *q = b->header;
    long column = 1;
    for (;; column++) {
        const size_t n = strcspn(p, ","), m = strcspn(q, ",");
        if (n != m || strncmp(p, q, n) != 0) {
            gm_error("%s: its columns are not those of %s: column %ld is %.*s, and %.*s there", b->path, a->path, column, (int)m, q, (int)n,
                     p);
            return false;
        }
        if (!p[n] || !q[m]) break;
        p += n + 1;
        q += m + 1;
    }
    gm_error("%s: it has %ld columns, and %s has %ld", b->path, b->n_columns, a->path, a->n_columns);
    return false;
}

static bool same_draws(const ChainFile *a, const ChainFile *b)
{
    const long rows = a->rows < b->rows ? a->rows : b->rows;
    return memcmp(a->x, b->x, (size_t)rows * (size_t)a->n_columns * sizeof *a->x) == 0;
}

static long number_of(const char *setting, long otherwise) { return setting ? strtol(setting, NULL, 10) : otherwise; }

// Whether a file has fewer draws than it says: its run was stopped, or it was cut off between two lines.
static bool is_shorter(const ChainFile *f)
{
    const long samples = number_of(f->samples, 0), thin = number_of(f->thin, 1);
    return samples > 0 && thin > 0 && f->rows < samples / thin;
}

// Of chains of which some are shorter than their run was meant to be, all keep as many draws as the shortest one has. That is said.
static void keep_common(ChainFile *file, int n)
{
    long least = file[0].rows, most = file[0].rows;
    int shortest = 0, longest = 0;
    for (int c = 1; c < n; c++) {
        if (file[c].rows < least) least = file[shortest = c].rows;
        if (file[c].rows > most) most = file[longest = c].rows;
    }
    if (least == most) return;
    gm_error("%s: it has %ld draws, and %s has %ld: the run was stopped, or the file cut off. The first %ld of each chain are taken",
             file[shortest].path, least, file[longest].path, most, least);
    for (int c = 0; c < n; c++) file[c].rows = least;
}

static bool go_together(const ChainFile *file, int n)
{
    for (int c = 1; c < n; c++) {
        const ChainFile *a = &file[0], *b = &file[c];
        if (strcmp(said(a->model), said(b->model)) != 0 || strcmp(said(a->generator), said(b->generator)) != 0) {
            gm_error("%s: these are draws of the model %s, and those of %s are of %s: files of one run are wanted", b->path, said(b->model),
                     a->path, said(a->model));
            return false;
        }
        if (!same_columns(a, b)) return false;
        if (a->rows != b->rows && !(is_shorter(a) || is_shorter(b))) {
            gm_error("%s: it has %ld draws, and %s has %ld: chains of one run have equally many", b->path, b->rows, a->path, a->rows);
            return false;
        }
        for (int k = 0; k < c; k++)
            if (same_draws(&file[k], b)) {
                gm_error("%s: it holds the same draws as %s: a chain is given twice", b->path, file[k].path);
                return false;
            }
    }
    return true;
}

// Fewer draws than a file says are those of a run that was stopped, or of a file that was cut off between two lines. Draws of warm-up that
// are saved come first, and a line ends them.
static void tell_shorter(const ChainFile *f)
{
    const long samples = number_of(f->samples, 0), thin = number_of(f->thin, 1);
    const bool saved = f->saved && (strcmp(f->saved, "1") == 0 || strcmp(f->saved, "true") == 0),
               adapts = f->algorithm && strcmp(f->algorithm, "hmc") == 0;
    if (samples > 0 && saved && adapts && f->before == 0 && number_of(f->warmup, 0) > 0) {
        gm_error("%s: it ends within the draws of warm-up that are saved: the run was stopped, or the file cut off", f->path);
        return;
    }
    if (!is_shorter(f)) return;
    gm_error("%s: it has %ld draws where its header says %ld: the run was stopped, or the file cut off", f->path, f->rows, samples / thin);
}

static long chain_number(const ChainFile *f)
{
    char *end;
    const long id = f->id ? strtol(f->id, &end, 10) : -1;
    return f->id && !*end && id > 0 ? id : -1;
}

static int by_number(const void *a, const void *b)
{
    const long x = chain_number(a), y = chain_number(b);
    return (x > y) - (x < y);
}

// Chains of one run, in the order of their numbers: none between the first and the last may be missing.
static bool order_chains(ChainFile *file, int n)
{
    bool one_run = true;
    for (int c = 0; c < n; c++) {
        one_run &= chain_number(&file[c]) > 0 && strcmp(said(file[c].seed), said(file[0].seed)) == 0;
        for (int k = 0; k < c; k++) one_run &= chain_number(&file[c]) != chain_number(&file[k]);
    }
    if (!one_run) return true;
    qsort(file, (size_t)n, sizeof *file, by_number);
    for (int c = 1; c < n; c++)
        if (chain_number(&file[c]) != chain_number(&file[c - 1]) + 1) {
            gm_error("chain %ld of this run is missing, between %s and %s: what the chains say together needs all of them",
                     chain_number(&file[c - 1]) + 1, file[c - 1].path, file[c].path);
            return false;
        }
    return true;
}

// ---- columns ----

// "mu.3.1": the name, and subscripts from 1. What is no such label is a name as it stands.
static size_t read_label(const char *label, size_t length, int *rank, long *at)
{
    const char *end = label + length, *dot = memchr(label, '.', length);
    *rank = 0;
    for (const char *p = dot; p && p < end; ++*rank) {
        char *after;
        if (*p != '.' || !isdigit((unsigned char)p[1]) || *rank == GM_MAX_RANK) break;
        at[*rank] = strtol(p + 1, &after, 10);
        if (at[*rank] < 1 || at[*rank] > INT_MAX) break;
        p = after;
        if (p == end) {
            ++*rank;
            return (size_t)(dot - label);
        }
    }
    *rank = 0;
    return length;
}

static bool ends_in(const char *text, size_t n, const char *end)
{
    const size_t m = strlen(end);
    return n > m && strncmp(text + n - m, end, m) == 0;
}

static GmStoredKind kind_of(const GmStored *s, const char *name, int field)
{
    const size_t n = strlen(name);
    if (strcmp(name, "lp__") == 0) return STORED_QUANTITY;
    if (ends_in(name, n, "__")) return STORED_SAMPLER;
    if (s->by_gmc && s->model)
        return field < 0 || !s->model->state[field].on_request     ? STORED_QUANTITY
               : s->model->state[field].on_request == GM_LOG_LIK   ? STORED_LOG_LIK
               : s->model->state[field].on_request == GM_LOG_PRIOR ? STORED_LOG_PRIOR
                                                                   : STORED_REPLICATE;
    if (strncmp(name, "lprior_", 7) == 0) return STORED_LOG_PRIOR;
    return strncmp(name, "log_lik", 7) == 0 ? STORED_LOG_LIK : ends_in(name, n, "_rep") ? STORED_REPLICATE : STORED_QUANTITY;
}

static int field_named(const GmModel *model, const char *name)
{
    for (int f = 0; model && f < model->n_state; f++)
        if (strcmp(model->state[f].name, name) == 0 && model->state[f].role != GM_SUM && model->state[f].role != GM_DIAGNOSTIC) return f;
    return -1;
}

static void add_array(GmStored *s, const char *name, size_t length, int rank, long first)
{
    s->array = gm_grow(s->array, (size_t)s->n_arrays + 1, sizeof *s->array);
    s->array[s->n_arrays] = (GmStoredArray){.name = gm_format("%.*s", (int)length, name), .first = first, .rank = rank};
    GmStoredArray *a = &s->array[s->n_arrays++];
    a->field = field_named(s->model, a->name);
    a->kind = kind_of(s, a->name, a->field);
}

static char *element_label(const char *name, int rank, const long *at)
{
    char *text = gm_copy_text(name);
    for (int d = 0; d < rank; d++) {
        char *more = gm_format("%s%s%ld%s", text, d ? ", " : "[", at[d], d + 1 < rank ? "" : "]");
        free(text);
        text = more;
    }
    return text;
}

static void read_columns(GmStored *s, const char *header)
{
    s->column = gm_alloc((size_t)s->n_columns, sizeof *s->column);
    for (int pass = 0; pass < 2; pass++) {  // sizes first, then places
        const char *label = header;
        for (long c = 0; c < s->n_columns; c++) {
            const size_t length = strcspn(label, ",");
            int rank;
            long at[GM_MAX_RANK];
            const size_t stem = read_label(label, length, &rank, at);
            if (pass == 0) {
                GmStoredArray *last = s->n_arrays ? &s->array[s->n_arrays - 1] : NULL;
                if (!last || last->rank != rank || rank == 0 || strlen(last->name) != stem || strncmp(last->name, label, stem) != 0)
                    add_array(s, label, stem, rank, c);
                last = &s->array[s->n_arrays - 1];
                last->n++;
                for (int d = 0; d < rank; d++)
                    if (at[d] > last->dim[d]) last->dim[d] = at[d];
                s->column[c] = (GmStoredColumn){.label = element_label(last->name, rank, at), .array = s->n_arrays - 1};
            } else
                for (int d = 0; d < rank; d++)
                    s->column[c].element = s->column[c].element * s->array[s->column[c].array].dim[d] + at[d] - 1;
            label += length + 1;
        }
    }
}

// ---- names of levels, of the files beside those of the draws ----

// NAME of NAME_2.csv, as gmc calls files of chains; NULL: it is called otherwise.
static char *name_of_run(const char *path)
{
    static const char ending[] = ".csv";
    const size_t n = strlen(path), end = sizeof ending - 1;
    if (n <= end || strcmp(path + n - end, ending) != 0) return NULL;
    size_t at = n - end;
    while (at > 0 && isdigit((unsigned char)path[at - 1])) at--;
    return at > 1 && at < n - end && path[at - 1] == '_' ? gm_format("%.*s", (int)at - 1, path) : NULL;
}

static json_t *object_beside(const char *name, const char *ending)
{
    char *path = gm_format("%s%s", name, ending);
    json_t *all = json_load_file(path, 0, NULL);
    free(path);
    if (json_is_object(all)) return all;
    json_decref(all);
    return NULL;
}

// The levels of a factor as a set of their own, whose number from 1 stands for a size; 0: they are not as many.
static int add_levels(GmStored *s, const json_t *names, long n)
{
    if (!json_is_array(names) || (long)json_array_size(names) != n) return 0;
    GmLevels l = {.size = s->levels.n + 1, .n = n, .name = gm_alloc((size_t)n, sizeof *l.name)};
    for (long i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(names, (size_t)i));
        l.name[i] = gm_copy_text(text ? text : "");
    }
    s->levels.set = gm_grow(s->levels.set, (size_t)s->levels.n + 1, sizeof *s->levels.set);
    s->levels.set[s->levels.n++] = l;
    return l.size;
}

// Dimensions that run over levels, by the record of the same run: of the same seed.
static void read_levels(GmStored *s, const char *path)
{
    char *name = s->by_gmc ? name_of_run(path) : NULL;
    json_t *run = name ? object_beside(name, "_run.json") : NULL, *levels = run ? object_beside(name, "_levels.json") : NULL;
    const json_t *seed = json_object_get(run, "seed"), *dimensions = json_object_get(run, "dimensions");
    char *text = json_is_integer(seed) ? gm_format("%lld", (long long)json_integer_value(seed))
                                       : gm_copy_text(json_is_string(seed) ? json_string_value(seed) : "");
    for (int a = 0; a < s->n_arrays && levels && s->seed && strcmp(text, s->seed) == 0; a++) {
        GmStoredArray *array = &s->array[a];
        const json_t *of = json_object_get(dimensions, array->name);
        if (array->kind != STORED_QUANTITY || (int)json_array_size(of) != array->rank) continue;
        for (int k = 0; k < array->rank; k++) {
            const char *factor = json_string_value(json_array_get(of, (size_t)k));
            if (factor) array->levels_of[k] = add_levels(s, json_object_get(levels, factor), array->dim[k]);
        }
    }
    free(text);
    json_decref(run);
    json_decref(levels);
    free(name);
}

// Dimensions whose coordinates are names, in the file of the draws itself.
static void take_levels(GmStored *s, const GmNetcdfIn *in)
{
    for (int k = 0; k < in->n_variables; k++) {
        const GmNetcdfVariable *v = &in->variable[k];
        GmStoredArray *array = NULL;
        for (int a = 0; a < s->n_arrays; a++)
            if (s->array[a].first == v->column[0] && s->array[a].rank == v->rank) array = &s->array[a];
        for (int d = 0; d < v->rank && array && array->kind == STORED_QUANTITY; d++) {
            if (!v->names[d] || v->extent[d] != array->dim[d]) continue;
            json_t *names = json_array();
            for (long e = 0; e < v->extent[d]; e++) json_array_append_new(names, json_string(v->names[d][e]));
            array->levels_of[d] = add_levels(s, names, v->extent[d]);
            json_decref(names);
        }
    }
}

static void name_columns(GmStored *s)
{
    for (long c = 0; c < s->n_columns; c++) {
        const GmStoredArray *a = &s->array[s->column[c].array];
        GmField field = {.name = a->name, .rank = a->rank};
        GmShape shape = {.rank = a->rank};
        bool any = false;
        for (int k = 0; k < a->rank; k++) any |= a->levels_of[k] > 0;
        if (!any) continue;
        memcpy(shape.dim, a->dim, sizeof shape.dim);
        memcpy(field.extent_of, a->levels_of, sizeof field.extent_of);
        free(s->column[c].label);
        s->column[c].label = gm_labelled_name(&s->levels, &field, &shape, s->column[c].element);
    }
}

// What the data of log-likelihoods are known by.
static void take_data(GmStored *s, const ChainFile *f)
{
    for (int a = 0; a < s->n_arrays; a++)
        for (int k = 0; k < f->n_data; k++) {
            const size_t n = strlen(s->array[a].name);
            if (strncmp(f->data[k], s->array[a].name, n) == 0 && strncmp(f->data[k] + n, " = ", 3) == 0 && !s->array[a].data)
                s->array[a].data = gm_copy_text(f->data[k] + n + 3);
        }
}

// The diagnostics of each HMC update: divergent__, and divergent_theta__ of a second one.
static void find_moves(GmStored *s)
{
    static const char *const names[GM_HMC_NUMBERS] = {"accept_stat", "stepsize", "treedepth", "n_leapfrog", "divergent", "energy"};
    for (int a = 0; a < s->n_arrays; a++) {
        const char *name = s->array[a].name;
        if (s->array[a].kind != STORED_SAMPLER) continue;
        for (int k = 0; k < GM_HMC_NUMBERS; k++) {
            const size_t n = strlen(names[k]);
            if (strncmp(name, names[k], n) != 0 || (name[n] != '_')) continue;
            const size_t left = strlen(name) - n - 2;
            char *of = left ? gm_format("%.*s", (int)left - 1, name + n + 1) : gm_copy_text("");
            int m = 0;
            while (m < s->n_moves && strcmp(s->moves[m].of, of) != 0) m++;
            if (m == s->n_moves) {
                s->moves = gm_grow(s->moves, (size_t)++s->n_moves, sizeof *s->moves);
                s->moves[m].of = gm_copy_text(of);
                s->moves[m].by = GM_MOVES_UNKNOWN;
                s->moves[m].chosen = false;
                for (int q = 0; q < GM_HMC_NUMBERS; q++) s->moves[m].column[q] = -1;
            }
            s->moves[m].column[k] = s->array[a].first;
            free(of);
        }
    }
}

// By what they were made: as the first chain says that made them.
static void take_methods(GmStored *s, const ChainFile *file)
{
    for (int m = 0; m < s->n_moves; m++)
        for (int c = s->chains; c-- > 0;) {
            if (m >= file[c].n_moves) continue;
            s->moves[m].chosen |= file[c].moves[m].chosen;
            if (file[c].moves[m].by > GM_MOVES_NONE || s->moves[m].by == GM_MOVES_UNKNOWN) s->moves[m].by = file[c].moves[m].by;
        }
}

// Whether the draws are of this program's model: it is of that name, and has all of the variables.
static bool is_of(const GmModel *model, const ChainFile *f)
{
    if (!model || !f->generator || !f->model || strcmp(f->model, model->name) != 0) return false;
    const char *label = f->header;
    for (long c = 0; c < f->n_columns; c++) {
        const size_t length = strcspn(label, ",");
        int rank;
        long at[GM_MAX_RANK];
        const size_t stem = read_label(label, length, &rank, at);
        char *name = gm_format("%.*s", (int)stem, label);
        const int field = field_named(model, name);
        const bool known = ends_in(name, stem, "__") || strcmp(name, "lprior") == 0 ||
                           (field >= 0 && model->state[field].rank + (model->state[field].rows_of > 0) == rank);
        free(name);
        if (!known) return false;
        label += length + 1;
    }
    return true;
}

// The model's name; one that has none is called by its file.
static char *name_of(const ChainFile *f)
{
    const char *from = f->generator ? strstr(f->generator, "from ") : NULL;
    if (!f->model) return gm_copy_text("draws");
    if (!from || strcmp(f->model, "model") != 0) return gm_copy_text(f->model);
    from += strlen("from ");
    const char *slash = strrchr(from, '/'), *base = slash ? slash + 1 : from, *dot = strrchr(base, '.');
    return gm_format("%.*s", dot ? (int)(dot - base) : (int)strlen(base), base);
}

static void gather(GmStored *s, const GmModel *model, ChainFile *file, const GmNetcdfIn *in)
{
    ChainFile *a = &file[0];
    s->by_gmc = a->generator && strncmp(a->generator, "gmc", 3) == 0;
    s->model = is_of(model, a) ? model : NULL;
    s->name = name_of(a);
    s->warmup = a->warmup ? gm_copy_text(a->warmup) : NULL;
    s->thin = a->thin ? gm_copy_text(a->thin) : NULL;
    s->seed = a->seed ? gm_copy_text(a->seed) : NULL;
    s->depth = a->depth ? atoi(a->depth) : 10;
    s->passed_over = a->before > 0;
    s->draws = a->rows;
    s->n_columns = a->n_columns;
    s->id = gm_alloc((size_t)s->chains, sizeof *s->id);
    bool apart = true;
    for (int c = 0; c < s->chains; c++) {
        s->id[c] = chain_number(&file[c]);
        apart &= s->id[c] > 0;
        for (int k = 0; k < c; k++) apart &= s->id[k] != s->id[c];
    }
    for (int c = 0; c < s->chains && !apart; c++) s->id[c] = c + 1;
    for (int c = 0; c < s->chains; c++)
        for (int k = 0; k < file[c].n_notes; k++) {
            bool new = true;
            for (int q = 0; q < s->n_notes; q++) new &= strcmp(s->note[q], file[c].note[k]) != 0;
            if (!new) continue;
            s->note = gm_grow(s->note, (size_t)s->n_notes + 1, sizeof *s->note);
            s->note[s->n_notes++] = gm_copy_text(file[c].note[k]);
        }
    read_columns(s, a->header);
    if (in->is_open) take_levels(s, in);
    else read_levels(s, a->path);
    name_columns(s);
    take_data(s, a);
    find_moves(s);
    take_methods(s, file);
    s->x = gm_alloc((size_t)s->n_columns * (size_t)s->chains * (size_t)s->draws, sizeof *s->x);
    for (int c = 0; c < s->chains; c++) {
        for (long i = 0; i < s->draws; i++)
            for (long k = 0; k < s->n_columns; k++) s->x[(k * s->chains + c) * s->draws + i] = file[c].x[i * s->n_columns + k];
        free(file[c].x);
        file[c].x = NULL;
    }
}

bool gm_stored_open(GmStored *s, const GmModel *model, char **paths, int n)
{
    *s = (GmStored){0};
    ChainFile *file = NULL;
    GmNetcdfIn first = {0};  // NetCDF file
    bool good = true;
    int chains = 0;
    for (int k = 0; k < n && good; k++) {
        GmNetcdfIn in = {.chains = 1};
        const bool netcdf = gm_is_netcdf(paths[k]);
        good = !netcdf || gm_netcdf_in_open(&in, paths[k]);
        file = gm_grow(file, (size_t)(chains + in.chains) + 1, sizeof *file);
        for (int c = 0; c < in.chains && good; c++) {
            file[chains] = (ChainFile){.path = paths[k]};
            good = netcdf ? read_chain(&file[chains], &in, c) : read_file(&file[chains]);
            chains++;
        }
        if (netcdf && k == 0) first = in;
        else if (netcdf) gm_netcdf_in_close(&in);
    }
    s->chains = chains;
    good = good && go_together(file, chains) && order_chains(file, chains);
    bool equal = true;
    for (int c = 1; c < chains && good; c++) equal &= file[c].rows == file[0].rows;
    if (good && equal) tell_shorter(&file[0]);
    if (good && !equal) keep_common(file, chains);
    if (good) gather(s, model, file, &first);
    if (first.is_open) gm_netcdf_in_close(&first);
    for (int c = 0; c < chains; c++) close_file(&file[c]);
    free(file);
    return good;
}

void gm_stored_close(GmStored *s)
{
    for (long c = 0; c < s->n_columns && s->column; c++) free(s->column[c].label);
    for (int a = 0; a < s->n_arrays; a++) {
        free(s->array[a].name);
        free(s->array[a].data);
    }
    gm_levels_close(&s->levels);
    for (int m = 0; m < s->n_moves; m++) free(s->moves[m].of);
    for (int k = 0; k < s->n_notes; k++) free(s->note[k]);
    free(s->note);
    free(s->column);
    free(s->array);
    free(s->moves);
    free(s->name);
    free(s->warmup);
    free(s->thin);
    free(s->seed);
    free(s->id);
    free(s->x);
    *s = (GmStored){0};
}
