// lesson.c -- a program by `gmc --lesson`: the files it reads, where its chain starts, the draws it prints.
//
// Draws go to standard output, as a table with a line for each; their summary goes to stderr.
#include "lesson.h"
#include "messages.h"
#include "warmup.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct Column {
    char *name;
    const void *at;
    size_t size;
    double *draw;  // [samples]
} Column;

static struct {
    GmRun run;
    char **file;
    int n_files;
    long samples, kept, begun;
    Column *column;
    long n_columns;
} lesson = {.samples = 1000, .run = {.chains = 1, .threads = 1, .inner_threads = 1, .warmup = 1000, .seed = 1}};

static void leave(void) { exit(GM_EXIT_USAGE); }

// The number behind an option, or -1: it is another argument.
static int64_t number_of(const char *option, char **argv, int i, int argc)
{
    char *end = NULL;
    if (strcmp(argv[i], option) != 0) return -1;
    const long long n = i + 1 < argc ? strtoll(argv[i + 1], &end, 10) : -1;
    if (n < 0 || !end || *end || end == argv[i + 1]) {
        gm_error("%s: a whole number, 0 or more, is missing behind it", option);
        exit(GM_EXIT_USAGE);
    }
    return n;
}

GmRun *gm_lesson_begin(int argc, char **argv, Sweep *at)
{
    lesson.file = gm_alloc((size_t)argc, sizeof *lesson.file);
    for (int i = 1; i < argc; i++) {
        int64_t n;
        if ((n = number_of("--seed", argv, i, argc)) >= 0) lesson.run.seed = (uint64_t)n, i++;
        else if ((n = number_of("--warmup", argv, i, argc)) >= 0) lesson.run.warmup = n, i++;
        else if ((n = number_of("--samples", argv, i, argc)) >= 0) lesson.samples = n, i++;
        else if (argv[i][0] == '-' && argv[i][1]) {
            gm_error("%s: there are --seed N, --warmup N, --samples N, and files of data", argv[i]);
            exit(GM_EXIT_USAGE);
        } else lesson.file[lesson.n_files++] = argv[i];
        if (lesson.n_files && argv[i] == lesson.file[lesson.n_files - 1] && gm_text_without_name(argv[i])) {
            gm_error("%s: a lesson reads its files once for each variable, which a pipe does not allow: give a file", argv[i]);
            exit(GM_EXIT_USAGE);
        }
    }
    *at = (Sweep){.seed = lesson.run.seed};
    return &lesson.run;
}

static GmField made_field(const char *name, GmType type, GmConstraint constraint, double lower, double upper, int rank)
{
    return (GmField){
        .name = name, .type = type, .role = GM_DATA, .constraint = constraint, .rank = rank, .bounded = 1, .lower = lower, .upper = upper};
}

static GmShape shape_of(double lower, double upper, int rank, const long *dim)
{
    GmShape s = {.rank = rank, .lower = lower, .upper = upper};
    for (int k = 0; k < rank; k++) s.dim[k] = dim[k];
    return s;
}

// Whether the argument is NAME=FILE, or NAME=NUMBER, for another name.
static bool is_of_other(const char *argument, const char *name)
{
    size_t n = 0;
    while (isalnum((unsigned char)argument[n]) || argument[n] == '_') n++;
    return argument[n] == '=' && (n != strlen(name) || strncmp(argument, name, n) != 0);
}

// The value of this name in the files, or NULL; what it holds stays in memory.
static const GmValue *read_value(const GmField *field)
{
    GmValues *values = gm_alloc(1, sizeof *values);
    values->fields = field;
    values->n_fields = 1;
    for (int k = 0; k < lesson.n_files; k++)
        if (!is_of_other(lesson.file[k], field->name) && !gm_values_read(values, lesson.file[k])) leave();
    return gm_values_find(values, field->name);
}

void *gm_lesson_data(const char *name, GmType type, GmConstraint constraint, double lower, double upper, int rank, const long *dim)
{
    GmField *field = gm_alloc(1, sizeof *field);
    *field = made_field(name, type, constraint, lower, upper, rank);
    field->needed_for = "a lesson takes data that are complete";
    const GmShape shape = shape_of(lower, upper, rank, dim);
    const GmValue *v = read_value(field);
    if (!v) {
        gm_error("%s is in none of the files of data", name);
        leave();
    }
    if (!gm_value_fits(field, &shape, v) || !gm_check_values(field, &shape, v->elements, v->source, NULL)) leave();
    return v->elements;
}

long gm_lesson_size(const char *name, double lower, double upper, const char *array, GmType type, int k, int rank)
{
    const GmField size = made_field(name, GM_INT, GM_ANY, lower, upper, 0);
    GmField *field = gm_alloc(1, sizeof *field);
    *field = made_field(array, type, GM_ANY, -INFINITY, INFINITY, rank);
    if (!read_value(&size)) {
        const GmValue *v = read_value(field);
        if (v && v->rank == rank) return v->dim[k - 1];
    }
    return *(int *)gm_lesson_data(name, GM_INT, GM_ANY, lower, upper, 0, NULL);
}

double gm_lesson_number(const char *name, GmType type, double otherwise, double lower, double upper)
{
    const GmField field = made_field(name, type, GM_ANY, lower, upper, 0);
    const GmShape shape = shape_of(lower, upper, 0, NULL);
    double room;
    void *x = &room;
    const char *why = NULL;
    if (read_value(&field)) x = gm_lesson_data(name, type, GM_ANY, lower, upper, 0, NULL);
    else if (!gm_store(type, x, 0, otherwise, &why)) {
        gm_error("default: %s = %g %s", name, otherwise, why);
        leave();
    } else if (!gm_check_values(&field, &shape, x, "default", NULL)) leave();
    return type == GM_INT ? *(int32_t *)x : *(double *)x;
}

void *gm_lesson_room(size_t size, int rank, const long *dim)
{
    size_t n = 1;
    for (int k = 0; k < rank; k++) n *= (size_t)(dim[k] > 0 ? dim[k] : 0);
    return gm_alloc(n ? n : 1, size);
}

void gm_lesson_show(const char *name, const void *x, size_t size, int rank, const long *dim)
{
    long n = 1;
    for (int k = 0; k < rank; k++) n *= dim[k];
    lesson.column = gm_grow(lesson.column, (size_t)(lesson.n_columns + n + 1), sizeof *lesson.column);
    for (long i = 0; i < n; i++) {
        char *label = gm_copy_text(name);
        for (int k = 0; k < rank; k++) {
            long inner = 1;
            for (int j = k + 1; j < rank; j++) inner *= dim[j];
            char *more = gm_format("%s.%ld", label, i / inner % dim[k] + 1);
            free(label);
            label = more;
        }
        lesson.column[lesson.n_columns++] = (Column){.name = label,
                                                     .at = (const char *)x + size * (size_t)i,
                                                     .size = size,
                                                     .draw = gm_alloc((size_t)lesson.samples + 1, sizeof(double))};
    }
}

void gm_lesson_start(void *x, GmType type, GmConstraint constraint, const char *name, int variable, int show, double lower, double upper,
                     int rank, const long *dim)
{
    const GmField field = made_field(name, type, constraint, lower, upper, rank);
    const GmShape shape = shape_of(lower, upper, rank, dim);
    gm_start_values(&field, &shape, lesson.run.seed, (uint32_t)variable, x);
    if (show) gm_lesson_show(name, x, type == GM_INT ? sizeof(int) : sizeof(double), rank, dim);
}

static double value_of(const Column *c) { return c->size == sizeof(int) ? *(const int *)c->at : *(const double *)c->at; }

static void print_draw(void)
{
    for (long k = 0; k < lesson.n_columns && lesson.kept == 0; k++) printf("%s%s", k ? "," : "", lesson.column[k].name);
    if (lesson.kept == 0) printf("\n");
    for (long k = 0; k < lesson.n_columns; k++) {
        const double x = value_of(&lesson.column[k]);
        lesson.column[k].draw[lesson.kept] = x;
        printf("%s%.10g", k ? "," : "", x);
    }
    printf("\n");
    lesson.kept++;
}

int gm_lesson_next(Sweep *at)
{
    if (gm_fault_raised()) {
        static const GmModel none;
        static const GmData loading;
        gm_fault_print(&none, NULL, lesson.begun ? NULL : &loading);
        exit(lesson.begun ? GM_EXIT_FAULT : GM_EXIT_USAGE);
    }
    if (lesson.begun > lesson.run.warmup) print_draw();
    if (lesson.begun >= lesson.run.warmup + lesson.samples) return 0;
    at->sweep = (uint64_t)lesson.begun + 1;  // 0 is of quantities before the first
    lesson.run.sweep = lesson.begun++;
    return 1;
}

int gm_lesson_end(void)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        gm_error("the draws cannot be written");
        return GM_EXIT_USAGE;
    }
    if (lesson.kept < 2) return 0;
    fprintf(stderr, "%-20s %12s %12s %12s %12s %12s\n", "", "mean", "sd", "5%", "50%", "95%");
    for (long k = 0; k < lesson.n_columns; k++) {
        const GmSummary all = gm_summarise(lesson.column[k].draw, 1, lesson.kept);
        fprintf(stderr, "%-20s %12.4g %12.4g %12.4g %12.4g %12.4g\n", lesson.column[k].name, all.mean, all.sd, all.q5, all.q50, all.q95);
    }
    return 0;
}
