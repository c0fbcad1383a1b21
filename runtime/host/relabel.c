// relabel.c -- `fit relabel DRAWS --by c`: labels of components are made to agree over stored draws. The chains are not touched: draws of a
// model whose components can be permuted are permuted back, each by the permutation of least cost.
//
// The compiler knows what is permuted (GmLabels). Cells are copied as text, so numbers keep all their digits.
#include "fields.h"
#include "messages.h"
#include "relabel_inside.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_LABELS = 5000 };

// ---- the command line ----

static void usage(FILE *to, const char *program)
{
    fprintf(to, "usage: %s relabel [options] DRAWS\n", program);
    gm_option_group_print(to, GROUP_RELABEL);
}

// -1 to go on, else the status.
static int read_options(GmRelabelOptions *o, int argc, char **argv)
{
    *o = (GmRelabelOptions){.summary = true, .summary_rows = 50};
    optind = 0;
    opterr = 0;
    for (int option; (option = gm_option_next(gm_option_table, GROUP_RELABEL, argc, argv)) != GM_OPTIONS_END;) switch (option) {
        case OPT_BY: o->by = optarg; break;
        case OPT_RELABEL_OUTPUT: o->output = optarg; break;
        case OPT_COCLUSTER: o->cocluster = optarg; break;
        case OPT_PARTITION: o->partition = optarg; break;
        case OPT_SVG: o->svg = optarg; break;
        case OPT_POINTS: o->points = optarg; break;
        case OPT_RELABEL_NO_SUMMARY: o->summary = false; break;
        case OPT_RELABEL_QUIET: o->quiet = true; break;
        case OPT_RELABEL_SUMMARY: {
            char *end;
            const long n = strtol(optarg, &end, 10);
            if (strcmp(optarg, "all") != 0 && (*end || end == optarg || n < 1)) {
                gm_error("--summary: `%s` is not a whole number of at least 1", optarg);
                return GM_EXIT_USAGE;
            }
            o->summary_rows = *optarg == 'a' ? LONG_MAX : n;
            break;
        }
        case OPT_RELABEL_HELP: usage(stdout, "fit"); return GM_EXIT_OK;
        default:
            if (option == GM_OPTION_WITHOUT_VALUE) gm_error("relabel: %s: a value is missing; try --help", argv[optind - 1]);
            else gm_option_refused("relabel: ", GROUP_RELABEL, argv[optind - 1]);
            return GM_EXIT_USAGE;
        }
    if (optind >= argc) {
        gm_error("relabel: no draws are given: relabel DRAWS, which is the NAME of `-o NAME`; try --help");
        return GM_EXIT_USAGE;
    }
    if ((o->svg != NULL) != (o->points != NULL)) {
        gm_error("relabel: %s is missing: --svg FILE --points TABLE.csv:a,b", o->svg ? "--points" : "--svg");
        return GM_EXIT_USAGE;
    }
    o->files = argv + optind;
    o->n_files = argc - optind;
    return -1;
}

// ---- files ----

typedef struct Lines {
    const char *path;
    FILE *from;
    char *all;  // of a chain of a NetCDF file: its lines
    char *text;
    size_t room;
    long number;
} Lines;

// The next line; NULL at the end, or after a message: *good is false then. A last line without its end was not written whole.
static char *next_line(Lines *l, bool *good)
{
    errno = 0;
    const ssize_t n = getline(&l->text, &l->room, l->from);
    *good = n >= 0 || !ferror(l->from);
    if (!*good) gm_error("%s: cannot be read: %s", l->path, strerror(errno));
    if (n <= 0) return NULL;
    l->number++;
    if (l->text[n - 1] != '\n' || memchr(l->text, 0, (size_t)n)) {
        gm_error("%s: line %ld is not whole: the file was cut off", l->path, l->number);
        *good = false;
        return NULL;
    }
    l->text[n - 1] = 0;
    if (n > 1 && l->text[n - 2] == '\r') l->text[n - 2] = 0;
    return l->text;
}

static bool lines_open(Lines *l, const GmRelabel *r, const char *path, int chain)
{
    gm_file_is_read(path);
    *l = (Lines){.path = path};
    if (r->netcdf.is_open) {
        l->all = gm_netcdf_in_text(&r->netcdf, chain);
        l->from = l->all ? fmemopen(l->all, strlen(l->all), "r") : NULL;
        return l->from != NULL;
    }
    l->from = fopen(path, "r");
    if (!l->from) gm_error("%s: cannot be read: %s", path, strerror(errno));
    return l->from != NULL;
}

static void lines_close(Lines *l)
{
    if (l->from) fclose(l->from);
    free(l->text);
    free(l->all);
}

// ---- columns ----

// "mu.3.1" as a field and subscripts from 1. -1: no field of the model.
static int read_label(const GmModel *model, const char *label, size_t length, int *rank, long *at)
{
    const size_t stem = strcspn(label, ".,");
    for (int f = 0; f < model->n_state; f++) {
        const GmField *field = &model->state[f];
        if (field->role == GM_SUM || field->role == GM_DIAGNOSTIC || strlen(field->name) != stem || strncmp(field->name, label, stem) != 0)
            continue;
        *rank = 0;
        for (const char *p = label + stem; p < label + length && *rank < GM_MAX_RANK; ++*rank) {
            char *end;
            at[*rank] = strtol(p + 1, &end, 10);
            if (*p != '.' || end == p + 1 || at[*rank] < 1 || (*end != '.' && end != label + length)) return -1;
            p = end;
        }
        return *rank == field->rank ? f : -1;
    }
    return -1;
}

// What the names of the columns are, and with that the shapes. false after a message.
static bool read_columns(GmRelabel *r, const char *path)
{
    const GmModel *model = r->model;
    r->n_columns = 1;
    for (const char *p = r->header; *p; p++) r->n_columns += *p == ',';
    r->column = gm_alloc((size_t)r->n_columns, sizeof *r->column);
    r->memory.shape = gm_alloc((size_t)model->n_state, sizeof *r->memory.shape);
    r->column_of = gm_alloc((size_t)model->n_state, sizeof *r->column_of);
    for (int f = 0; f < model->n_state; f++) r->memory.shape[f] = (GmShape){.rank = model->state[f].rank};
    for (int pass = 0; pass < 2; pass++) {  // sizes first, then places
        const char *label = r->header;
        for (long c = 0; c < r->n_columns; c++) {
            const size_t length = strcspn(label, ",");
            int rank;
            long at[GM_MAX_RANK];
            const int f = read_label(model, label, length, &rank, at);
            if (f < 0) {
                const bool lp = length == 4 && strncmp(label, "lp__", 4) == 0,
                           diagnostic = (length > 2 && strncmp(label + length - 2, "__", 2) == 0) ||
                                        (length == 6 && strncmp(label, "lprior", 6) == 0);
                if (!lp && !diagnostic) {
                    gm_error("%s: %.*s is no variable of %s: these are draws of another model", path, (int)length, label, model->source);
                    return false;
                }
                r->column[c] = (GmDrawColumn){.field = lp ? -1 : -2};
            } else if (pass == 0) {
                for (int d = 0; d < rank; d++)
                    if (at[d] > r->memory.shape[f].dim[d]) r->memory.shape[f].dim[d] = at[d];
            } else {
                const GmShape *s = &r->memory.shape[f];
                long element = 0;
                for (int d = 0; d < rank; d++) element = element * s->dim[d] + at[d] - 1;
                if (!r->column_of[f]) {
                    r->column_of[f] = gm_alloc((size_t)gm_shape_size(s), sizeof **r->column_of);
                    for (long e = 0; e < gm_shape_size(s); e++) r->column_of[f][e] = -1;
                }
                r->column_of[f][element] = c;
                r->column[c] = (GmDrawColumn){f, element};
            }
            label += length + 1;
        }
    }
    return true;
}

// ---- what is permuted ----

static bool named(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        at += strspn(at, " ");
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == ' ' || !at[n])) return true;
    }
    return false;
}

static void list_labels(const GmModel *model)
{
    fprintf(stderr, "  there are:");
    for (const GmLabels *l = model->labels; l->by; l++) fprintf(stderr, " --by %s", model->state[l->by - 1].name);
    fputc('\n', stderr);
}

// Finds the labels that --by is about, and what decides. false after a message.
static bool find_labels(GmRelabel *r)
{
    const GmModel *model = r->model;
    const char *by = r->o.by;
    if (!model->labels) {
        gm_error("relabel: the model %s has no labels: no unknown whose values 1 to K look up components", model->source);
        return false;
    }
    if (!by && model->labels[1].by) {
        gm_error("relabel: the model has several kinds of labels: --by says which");
        list_labels(model);
        return false;
    }
    if (!by) by = model->state[model->labels->by - 1].name;
    r->by = -1;
    r->wanted = gm_alloc((size_t)model->n_state, sizeof *r->wanted);
    long found = 0, asked = 1;
    for (const char *p = by; *p; p++) asked += *p == ',';
    for (const GmLabels *l = model->labels; l->by && !r->labels; l++)
        for (const GmLabelled *v = l->fields; v->field; v++) {
            const char *name = model->state[v->field - 1].name;
            if (!named(by, name)) continue;
            if (v->lost || v->apart || (!v->values && !gm_one_dimension(v->dims))) {
                gm_error("relabel: --by %s: %s", name,
                         v->lost    ? "it depends on the labels otherwise than by a subscript"
                         : v->apart ? "its elements have an order of their own, and are not permuted"
                                    : "two of its dimensions are permuted, which is no sum of costs: take variables with one");
                return false;
            }
            found++;
            r->labels = l;
            if (v->values && !v->dims && asked == 1) r->by = v->field - 1;
            else r->wanted[v->field - 1] = true;
        }
    if (found != asked) {
        gm_error("relabel: --by %s: not all of these are variables that run over one kind of labels", by);
        list_labels(model);
        return false;
    }
    if (r->labels->not_permuted) {
        gm_error("relabel: the model identifies the labels of %s, so they are not to be permuted: %s", model->state[r->labels->by - 1].name,
                 r->labels->not_permuted);
        return false;
    }
    return true;
}

// The labels, and whether all that decides is among the draws. false after a message.
static bool choose_labels(GmRelabel *r)
{
    const GmModel *model = r->model;
    if (!find_labels(r)) return false;
    if (r->by >= 0 && !r->column_of[r->by]) {
        char *others = gm_label_parameters(model, r->labels, r->column_of);
        gm_error("relabel: %s is not among the draws: run again with --params all%s (or names, %s among them)%s%s",
                 model->state[r->by].name, model->state[r->by].role == GM_AUXILIARY ? ",auxiliaries" : "", model->state[r->by].name,
                 *others ? ", or agree by parameters: --by " : "", others);
        free(others);
        return false;
    }
    for (int f = 0; f < model->n_state; f++)
        if (r->wanted[f] && !r->column_of[f]) {
            gm_error("relabel: %s is not among the draws", model->state[f].name);
            return false;
        }
    return true;
}

// K, the same in all that runs over labels, and all elements there. false after a message.
static bool check_shapes(GmRelabel *r, const char *path)
{
    for (const GmLabelled *v = r->labels->fields; v->field; v++) {
        const int f = v->field - 1;
        const GmShape *s = &r->memory.shape[f];
        if (!r->column_of[f] || v->lost) continue;
        for (long e = 0; e < gm_shape_size(s) && !v->apart; e++)
            if (r->column_of[f][e] < 0) {
                char *name = gm_element_name(r->model->state[f].name, s->rank, s->dim, e);
                gm_error("%s: %s is missing among the columns", path, name);
                free(name);
                return false;
            }
        for (int d = 0; d < s->rank; d++) {
            if (!(v->dims >> d & 1) || v->apart) continue;
            if (r->n_labels && r->n_labels != s->dim[d]) {
                gm_error("%s: %s has %ld elements by label, others have %d: these are no draws of %s", path, r->model->state[f].name,
                         s->dim[d], r->n_labels, r->model->source);
                return false;
            }
            r->n_labels = (int)s->dim[d];
        }
    }
    return true;
}

static const GmLabelled *labelled(const GmRelabel *r, int field)
{
    for (const GmLabelled *v = r->labels->fields; v->field; v++)
        if (v->field - 1 == field) return v;
    return NULL;
}

// ---- reading ----

static bool holds_labels(const GmRelabel *r, int field)
{
    const GmLabelled *v = field >= 0 ? labelled(r, field) : NULL;
    return v && v->values;
}

static bool read_cells(GmRelabel *r, char *text, const Lines *l, long draw)
{
    char *at = text;
    for (long c = 0; c < r->n_columns; c++) {
        char *end;
        const double x = strtod(at, &end);
        const bool last = c + 1 == r->n_columns;
        if (end == at || *end != (last ? 0 : ',')) {
            if (!*end || (last && *end == ','))
                gm_error("%s: line %ld has %s cells than its header, %ld: the file was cut off, or joined", l->path, l->number,
                         last ? "more" : "fewer", r->n_columns);
            else gm_error("%s: line %ld: `%.20s` is not a number", l->path, l->number, at);
            return false;
        }
        const GmDrawColumn *of = &r->column[c];
        r->number[draw * r->n_columns + c] = x;
        if (holds_labels(r, of->field) && !isnan(x) && (x != floor(x) || x < 1 || x > (r->n_labels ? r->n_labels : MOST_LABELS))) {
            gm_error("%s: line %ld: %s is %g, and labels are 1 to %d", l->path, l->number, r->model->state[of->field].name, x,
                     r->n_labels ? r->n_labels : MOST_LABELS);
            return false;
        }
        at = end + 1;
    }
    return true;
}

// The elements of c that have labels; where a condition on data leaves one out, no draw has a label of it.
static bool find_points(GmRelabel *r)
{
    const long size = gm_shape_size(&r->memory.shape[r->by]);
    r->element = gm_alloc((size_t)size + 1, sizeof *r->element);
    for (long i = 0; i < size; i++) {
        long absent = 0;
        for (long d = 0; d < r->draws; d++) absent += isnan(r->number[d * r->n_columns + r->column_of[r->by][i]]);
        if (absent == 0) r->element[r->points++] = i;
        else if (absent < r->draws) {
            gm_error("relabel: element %ld of %s is nan in %ld of %ld draws: labels are numbers, or do not exist in any draw", i + 1,
                     r->model->state[r->by].name, absent, r->draws);
            return false;
        }
    }
    if (r->points < size)
        printf("%ld of %ld elements of %s do not exist, and count for nothing\n", size - r->points, size, r->model->state[r->by].name);
    return true;
}

// Everything of the files into memory.
static bool read_draws(GmRelabel *r, char **files, int n)
{
    long room = 0;
    for (r->chain = 0; r->chain < n; r->chain++) {
        Lines l;
        bool good = lines_open(&l, r, files[r->chain], r->chain), header = false;
        long rows = 0;
        for (char *text; good && (text = next_line(&l, &good));) {
            if (*text == '#' || !*text) continue;
            if (!header) {
                header = true;
                if (!r->header) {
                    r->header = gm_copy_text(text);
                    good = read_columns(r, l.path) && choose_labels(r) && check_shapes(r, l.path);
                } else if (strcmp(r->header, text) != 0) {
                    gm_error("%s: its columns are not those of %s: the files are not of one run", l.path, files[0]);
                    good = false;
                }
                continue;
            }
            if (r->draws == room)
                r->number = gm_grow(r->number, (size_t)(room = room ? 2 * room : 1024) * (size_t)r->n_columns, sizeof *r->number);
            good = read_cells(r, text, &l, r->draws);
            r->draws++;
            rows++;
        }
        lines_close(&l);
        if (!good) return false;
        if (rows == 0 || (r->chain > 0 && rows != r->rows)) {
            if (rows)
                gm_error("%s: has %ld draws, %s has %ld: the files are not of one run, or one was cut off", files[r->chain], rows, files[0],
                         r->rows);
            else gm_error("%s: there are no draws in it", files[r->chain]);
            return false;
        }
        r->rows = rows;
    }
    if (r->by >= 0) {
        if (!find_points(r)) return false;
        r->z = gm_alloc((size_t)r->draws * (size_t)r->points, sizeof *r->z);
        for (long d = 0; d < r->draws; d++)
            for (long i = 0; i < r->points; i++) {
                const double c = r->number[d * r->n_columns + r->column_of[r->by][r->element[i]]];
                r->z[d * r->points + i] = (int32_t)c - 1;
                if (c > r->n_labels) r->n_labels = (int)c;
            }
    }
    if (r->n_labels > MOST_LABELS) {
        gm_error("relabel: %d labels are more than %d", r->n_labels, MOST_LABELS);
        return false;
    }
    return true;
}

// ---- writing ----

// The column whose cell stands in column c of a draw once it is permuted; from: the label that becomes each.
static long source_of(const GmRelabel *r, long c, const int *from)
{
    const GmDrawColumn *of = &r->column[c];
    const GmLabelled *v = of->field >= 0 ? labelled(r, of->field) : NULL;
    if (!v || !v->dims || v->apart || v->lost) return c;
    const GmShape *s = &r->memory.shape[of->field];
    long element = of->element;
    for (int d = 0; d < s->rank; d++) {
        if (!(v->dims >> d & 1)) continue;
        long stride = 1;
        for (int q = s->rank - 1; q > d; q--) stride *= s->dim[q];
        element = gm_with_label(s, d, element, from[element / stride % s->dim[d]]);
    }
    return r->column_of[of->field][element];
}

static void inverse(int k, const int *to, int *from)
{
    for (int l = 0; l < k; l++) from[to[l]] = l;
}

static bool write_file(const GmRelabel *r, const char *path, int chain, const char *final)
{
    Lines l;
    GmFile out = {0};
    bool good = lines_open(&l, r, path, chain) && gm_output_open(&out, final, false), header = false;
    FILE *to = out.to;
    char **cell = gm_alloc((size_t)r->n_columns, sizeof *cell);
    int *from = gm_alloc((size_t)r->n_labels, sizeof *from);
    long draw = chain * r->rows;
    for (char *text; good && (text = next_line(&l, &good));) {
        if (*text == '#' || !*text || !header) {
            if (*text && *text != '#') {
                header = true;
                fprintf(to, "# relabelled by %s\n", r->o.by ? r->o.by : r->model->state[r->by].name);
            }
            fprintf(to, "%s\n", text);
            continue;
        }
        for (long c = 0; c < r->n_columns; c++) {
            cell[c] = text;
            text += strcspn(text, ",");
            *text++ = 0;
        }
        const int *permutation = r->to + draw * r->n_labels;
        inverse(r->n_labels, permutation, from);
        for (long c = 0; c < r->n_columns; c++) {
            const long at = source_of(r, c, from);
            if (holds_labels(r, r->column[c].field) && !isnan(r->number[draw * r->n_columns + at]))
                fprintf(to, "%s%d", c ? "," : "", permutation[(int)r->number[draw * r->n_columns + at] - 1] + 1);
            else fprintf(to, "%s%s", c ? "," : "", cell[at]);
        }
        fputc('\n', to);
        draw++;
    }
    free(cell);
    free(from);
    lines_close(&l);
    if (good) return gm_output_done(&out);
    gm_file_drop(&out);
    return false;
}

// draws_2.csv, or the second chain of draws.nc -> draws_relabelled_2.csv, or as -o says.
static char *output_of(const GmRelabel *r, const char *path, int chain)
{
    if (r->o.output)
        return gm_format("%.*s_%d.csv", (int)(strlen(r->o.output) - (gm_ends_in_csv(r->o.output) ? 4 : 0)), r->o.output, chain + 1);
    if (r->netcdf.is_open) {
        char *name = gm_netcdf_name(path), *final = gm_format("%s_relabelled_%ld.csv", name, r->netcdf.id[chain]);
        free(name);
        return final;
    }
    const char *at = path + strlen(path) - (gm_ends_in_csv(path) ? 4 : 0);
    const char *digits = at;
    while (digits > path && isdigit((unsigned char)digits[-1])) digits--;
    if (digits < at && digits > path && digits[-1] == '_')
        return gm_format("%.*s_relabelled%s", (int)(digits - 1 - path), path, digits - 1);
    return gm_format("%.*s_relabelled.csv", (int)(at - path), path);
}

static bool may_be_written(const char *path)
{
    const char *why = path ? gm_file_refused(path) : NULL;
    if (why) gm_error("%s: cannot be written: %s", path, why);
    return !why;
}

// Before the first file is written: none of them replaces one that is read, the points of a picture included.
static bool outputs_may_be_written(const GmRelabel *r, char **files, int n)
{
    if (r->o.points) {
        const char *colon = strrchr(r->o.points, ':');
        char *table = gm_format("%.*s", (int)(colon ? colon - r->o.points : 0), r->o.points);
        gm_file_is_read(table);
        free(table);
    }
    bool good = may_be_written(r->o.cocluster) && may_be_written(r->o.partition) && may_be_written(r->o.svg);
    for (int c = 0; c < n && good; c++) {
        char *final = output_of(r, files[c], c);
        good = may_be_written(final);
        free(final);
    }
    return good;
}

// ---- what is said ----

// Names of levels, of the file beside the draws, where it is there.
static void read_levels(GmLevelSets *levels, const GmModel *model, const char *file)
{
    char *path = gm_levels_beside(file);
    if (path && access(path, F_OK) == 0 && !gm_levels_read(levels, model, path)) gm_levels_close(levels);
    free(path);
}

static void print_summary(const GmRelabel *r, const char *file)
{
    GmData data = {0};
    read_levels(&data.levels, r->model, file);
    GmDraws d = {
        .data = &data, .chains = r->chain, .first_chain = 1, .kept = r->rows, .held = r->rows, .capacity = r->rows, .summary = true};
    long *kept = gm_alloc((size_t)r->n_columns, sizeof *kept);
    d.column = gm_alloc((size_t)r->n_columns, sizeof *d.column);
    for (long c = 0; c < r->n_columns; c++) {
        const GmDrawColumn *of = &r->column[c];
        if (of->field == -2 || holds_labels(r, of->field) || (of->field >= 0 && r->model->state[of->field].on_request)) continue;
        const GmLabelled *v = of->field >= 0 ? labelled(r, of->field) : NULL;
        if (v && (v->lost || v->apart)) continue;
        kept[d.n_columns] = c;
        d.column[d.n_columns++] = (GmColumn){.field = of->field, .element = of->element};
    }
    d.n_summarised = d.n_columns;
    d.memory = gm_alloc((size_t)r->draws * (size_t)d.n_columns, sizeof *d.memory);
    int *from = gm_alloc((size_t)r->n_labels, sizeof *from);
    for (long i = 0; i < r->draws; i++) {
        inverse(r->n_labels, r->to + i * r->n_labels, from);
        for (long c = 0; c < d.n_columns; c++) d.memory[i * d.n_columns + c] = r->number[i * r->n_columns + source_of(r, kept[c], from)];
    }
    const GmOptions o = {.chains = r->chain, .samples = r->rows, .warmup = r->rows, .thin = 1, .summary_rows = r->o.summary_rows};
    gm_summary_print(stdout, &d, r->model, &r->memory, &o, NULL);
    gm_levels_close(&data.levels);
    free(from);
    free(kept);
    free(d.column);
    free(d.memory);
}

static void print_notes(const GmRelabel *r, int rounds, double left)
{
    long changed = 0;
    for (long d = 0; d < r->draws; d++) {
        bool same = true;
        for (int l = 0; l < r->n_labels; l++) same &= r->to[d * r->n_labels + l] == l;
        changed += !same;
    }
    const char *by = r->o.by ? r->o.by : r->model->state[r->by].name;
    if (r->by >= 0)
        printf("relabelled by %s: %ld of %ld draws permuted, after %d round%s %.4g %% of the allocations agree\n", by, changed, r->draws,
               rounds, rounds > 1 ? "s" : "", 100 * (1 - left / ((double)r->draws * (double)r->points)));
    else
        printf("relabelled by %s: %ld of %ld draws permuted, %d round%s, squared distance %.4g a draw\n", by, changed, r->draws, rounds,
               rounds > 1 ? "s" : "", left / (double)r->draws);
    for (const GmLabelled *v = r->labels->fields; v->field; v++) {
        const char *name = r->model->state[v->field - 1].name;
        if (r->column_of[v->field - 1] && v->apart)
            printf("not permuted, and left out below: %s, whose elements have an order of their own (%s)\n", name, r->labels->identified);
        if (r->column_of[v->field - 1] && v->lost)
            printf("not permuted, and left out below: %s, which depends on the labels that the draws had\n", name);
    }
    for (const GmAlike *a = r->labels->alike; a && a->field && !r->labels->identified; a++)
        printf("if elements of the data %s differ along dimension %d, the model identifies labels: what follows is then about the "
               "components, not about numbers 1 to %d of the model\n",
               r->model->data[a->field - 1].name, a->dim + 1, r->n_labels);
    if (r->labels->identified)
        printf("the model identifies labels (%s): what follows is about the components, not about numbers 1 to %d of the model\n",
               r->labels->identified, r->n_labels);
}

// The columns of `table.csv:a,b`, [point][2]. NULL after a message.
static double *read_points(const GmRelabel *r, char **names)
{
    const GmField field = {.name = "points", .type = GM_REAL, .rank = 2};
    GmValues values = {.fields = &field, .n_fields = 1};
    const char *colon = strrchr(r->o.points, ':'), *comma = colon ? strchr(colon, ',') : NULL;
    if (!comma || strchr(comma + 1, ',')) {
        gm_error("--points: `%s` does not name two columns of a table: T.csv:a,b", r->o.points);
        return NULL;
    }
    char *path = gm_format("%.*s", (int)(colon - r->o.points), r->o.points);
    double *xy = NULL;
    if (gm_csv_read(&values, path, "points", colon + 1)) {
        const GmValue *v = gm_values_find(&values, "points");
        const long size = gm_shape_size(&r->memory.shape[r->by]);
        if (!v || v->dim[0] != size)
            gm_error("--points: %s has %ld lines, and %s has %ld elements", path, v ? v->dim[0] : 0, r->model->state[r->by].name, size);
        else {
            xy = gm_alloc((size_t)r->points * 2, sizeof *xy);
            for (long i = 0; i < 2 * r->points; i++) {
                const long at = 2 * r->element[i / 2] + i % 2;
                xy[i] = v->type == GM_INT ? ((const int32_t *)v->elements)[at] : ((const double *)v->elements)[at];
            }
            names[0] = gm_format("%.*s", (int)(comma - colon - 1), colon + 1);
            names[1] = gm_copy_text(comma + 1);
        }
    }
    gm_values_close(&values);
    free(path);
    return xy;
}

static bool label_free(const GmRelabel *r)
{
    const bool pairs = r->o.cocluster || r->o.partition || r->o.svg;
    if (r->by < 0) {
        if (pairs) gm_error("relabel: --%s needs allocations: --by c", r->o.cocluster ? "cocluster" : r->o.partition ? "partition" : "svg");
        return !pairs;
    }
    const GmPartitions p = {r->draws, r->points, r->n_labels, r->z};
    gm_occupied_print(stdout, &p);
    if (!pairs) return true;
    if (r->points > GM_MOST_PAIRED) {
        gm_error("relabel: %s has %ld elements: pairs are counted of %d at most", r->model->state[r->by].name, r->points, GM_MOST_PAIRED);
        return false;
    }
    char *names[2] = {NULL, NULL};
    double *xy = r->o.svg ? read_points(r, names) : NULL;
    if (r->o.svg && !xy) return false;
    uint32_t *together = gm_together(&p);
    int *of = gm_alloc((size_t)r->points, sizeof *of);
    const long best = gm_least_squares(&p, together);
    const int clusters = gm_by_size(&p, best, of);
    printf("least squares partition: that of draw %ld of chain %ld, with %d cluster%s\n", best % r->rows + 1, best / r->rows + 1, clusters,
           clusters > 1 ? "s" : "");
    bool good = true;
    if (r->o.cocluster) good &= gm_cocluster_write(r->o.cocluster, &p, together);
    if (r->o.partition) good &= gm_partition_write(r->o.partition, &p, of, r->element);
    if (r->o.svg) good &= gm_scatter_write(r->o.svg, r->points, xy, names[0], names[1], clusters, of);
    free(names[0]);
    free(names[1]);
    free(xy);
    free(together);
    free(of);
    return good;
}

// The chains of a NetCDF file stand for as many files. false after a message.
static bool open_netcdf(GmRelabel *r, char **files, int *n)
{
    bool any = false;
    for (int c = 0; c < *n; c++) any |= gm_is_netcdf(files[c]);
    if (!any) return true;
    if (*n > 1) {
        gm_error("relabel: one NetCDF file has all chains of a run: %s is given, and others", files[0]);
        return false;
    }
    if (!gm_netcdf_in_open(&r->netcdf, files[0])) return false;
    for (*n = 1; *n < r->netcdf.chains; ++*n) files[*n] = gm_copy_text(files[0]);
    return true;
}

int gm_relabel(const GmModel *model, int argc, char **argv)
{
    GmRelabel r = {.model = model, .by = -1};
    const int status = read_options(&r.o, argc, argv);
    gm_quiet = r.o.quiet;
    if (status >= 0) return status;
    int n;
    char **files = gm_draw_files("relabel", r.o.files, r.o.n_files, &n);
    bool good = files && open_netcdf(&r, files, &n) && read_draws(&r, files, n) && outputs_may_be_written(&r, files, n);
    if (good) {
        double left;
        const int rounds = gm_agree(&r, &left);
        for (int c = 0; c < n && good; c++) {
            char *final = output_of(&r, files[c], c);
            good = write_file(&r, files[c], c, final);
            if (good && c == 0) gm_note("draws: %s%s", final, n > 1 ? ", ..." : "");
            free(final);
        }
        if (good) {
            print_notes(&r, rounds, left);
            good = label_free(&r);
        }
        if (good && r.o.summary) {
            putchar('\n');
            print_summary(&r, files[0]);
        }
    }
    for (int c = 0; files && c < n; c++) free(files[c]);
    free(files);
    for (int f = 0; r.column_of && f < model->n_state; f++) free(r.column_of[f]);
    free(r.column_of);
    gm_netcdf_in_close(&r.netcdf);
    free(r.memory.shape);
    free(r.column);
    free(r.header);
    free(r.number);
    free(r.z);
    free(r.element);
    free(r.wanted);
    free(r.to);
    return good ? GM_EXIT_OK : GM_EXIT_USAGE;
}

// ---- at the end of a run ----

bool gm_relabel_possible(const GmModel *model, GmOptions *o)
{
    if (!o->relabel) return true;
    GmRelabel r = {.model = model, .by = -1, .o.by = o->relabel_by};
    bool good = find_labels(&r);
    free(r.wanted);
    if (!good || r.by < 0) return good;
    const char *name = model->state[r.by].name;
    const bool auxiliary = model->state[r.by].role == GM_AUXILIARY;
    if (auxiliary && !o->relabel_by) {
        o->relabel_names = gm_label_parameters(model, r.labels, NULL);
        if (*o->relabel_names) return o->relabel_by = o->relabel_names, true;
    }
    if (!o->params) return o->params = auxiliary ? "all,auxiliaries" : "all", true;
    good = named(o->params, name) || named(o->params, auxiliary ? "auxiliaries" : "all");
    if (!good) gm_error("--relabel: %s, by which draws are permuted, is not kept: --params %s,%s keeps it", name, o->params, name);
    return good;
}

int gm_relabel_run(const GmModel *model, const GmOptions *o)
{
    enum { OTHERS = 8 };
    const bool netcdf = o->format == GM_FORMAT_NETCDF;
    const int files = netcdf ? 1 : o->chains;
    char **argv = gm_alloc((size_t)files + OTHERS, sizeof *argv), *rows = gm_format("%ld", o->summary_rows);
    int n = 0;
    argv[n++] = "relabel";
    if (o->relabel_by) argv[n++] = "--by", argv[n++] = (char *)o->relabel_by;
    if (o->quiet) argv[n++] = "--quiet";
    if (!o->summary || o->summary_form != GM_SUMMARY_TEXT) argv[n++] = "--no-summary";
    else if (o->summary_rows == LONG_MAX) argv[n++] = "--summary", argv[n++] = "all";
    else argv[n++] = "--summary", argv[n++] = rows;
    char **const file = argv + n;
    for (int k = 0; k < files; k++)
        argv[n++] = netcdf ? gm_format("%s.nc", o->output) : gm_format("%s_%d.csv", o->output, o->first_chain + k);
    putchar('\n');
    const bool quiet = gm_quiet;
    const int status = gm_relabel(model, n, argv);
    gm_quiet = quiet;
    for (int k = 0; k < files; k++) free(file[k]);
    free(argv);
    free(rows);
    return status;
}
