// data_csv.c -- tables with a header line.
//
//   y,X.1,X.2          y: a vector        X: a matrix with two columns; X[1],X[2] means the same
//   1,0.5,2
//
// One pass over the file, a line at a time, into arrays that double as they fill; columns nobody declared are not kept.
// Separators: comma, tab or semicolon, whichever the header holds most of. Lines that begin with # are skipped.
#include "host.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Where the numbers of one column go: into the value `target` (an index: the list of values may move), as its column `slot`.
typedef struct Column {
    char *label;
    int   target;                   // -1: not kept
    long  slot;
} Column;

typedef struct Table {
    const char *path;
    FILE       *file;
    char       *line;
    size_t      line_room;
    long        line_length, line_number;
    char        separator;
    long        n;
    Column     *column;
    char      **cell;
    GmValues   *values;
    int         first_value;        // the values of this table are values->value[first_value..]
    long        rows, room;
} Table;

// ---- lines and cells ----

// Reads the next line, without its end. False at the end of the file, or after a message with t->line_length = -1.
static bool next_line(Table *t)
{
    for (;;) {
        errno = 0;
        ssize_t n = getline(&t->line, &t->line_room, t->file);
        if (n < 0) {
            t->line_length = 0;
            if (ferror(t->file)) {
                gm_error("%s: cannot be read: %s", t->path, strerror(errno));
                t->line_length = -1;
            }
            return false;
        }
        t->line_number++;
        if (memchr(t->line, 0, (size_t)n)) {
            gm_error("%s: line %ld holds a zero byte: this is not a text file", t->path, t->line_number);
            t->line_length = -1;
            return false;
        }
        while (n > 0 && (t->line[n - 1] == '\n' || t->line[n - 1] == '\r'))
            t->line[--n] = 0;
        if (t->line[0] == '#')
            continue;
        t->line_length = n;
        return true;
    }
}

// Cuts the line into cells in place: cell[i] points into it. Returns their number (only the first `most` are stored), -1 after a message.
static long cut(Table *t, char **cell, long most)
{
    char *at = t->line;
    for (long n = 0;; n++) {
        char *begin = at, *end;
        if (*at == '"') {                                // "a ""quoted"" cell"
            begin = end = ++at;
            while (*at && !(at[0] == '"' && at[1] != '"')) {
                at += at[0] == '"';
                *end++ = *at++;
            }
            if (*at != '"') {
                gm_error("%s: line %ld: a quote is not closed", t->path, t->line_number);
                return -1;
            }
            at++;
            while (*at && *at != t->separator)
                at++;
        } else {
            while (*at && *at != t->separator)
                at++;
            end = at;
        }
        const bool last = *at == 0;
        at++;                                            // before the end is marked: it may be the separator
        *end = 0;
        if (n < most)
            cell[n] = begin;
        if (last)
            return n + 1;
    }
}

static char choose_separator(const char *header)
{
    const char choices[] = ",\t;";
    char best = ',';
    long most = 0;
    for (const char *c = choices; *c; c++) {
        long count = 0;
        for (const char *s = header; *s; s++)
            count += *s == *c;
        if (count > most) {
            most = count;
            best = *c;
        }
    }
    return best;
}

static bool read_header(Table *t)
{
    if (!next_line(t)) {
        if (t->line_length == 0)
            gm_error("%s: is empty: a header line with the names of the columns is expected", t->path);
        return false;
    }
    if (strncmp(t->line, "\xef\xbb\xbf", 3) == 0)        // the byte order mark of some spreadsheets
        memmove(t->line, t->line + 3, strlen(t->line + 3) + 1);
    t->separator = choose_separator(t->line);
    char *whole = gm_copy_text(t->line);                 // cutting works in place: once to count, once to keep
    t->n = cut(t, NULL, 0);
    strcpy(t->line, whole);
    free(whole);
    if (t->n < 0) {
        t->n = 0;
        return false;
    }
    t->column = gm_alloc((size_t)t->n, sizeof *t->column);
    t->cell = gm_alloc((size_t)t->n, sizeof *t->cell);
    cut(t, t->cell, t->n);
    for (long i = 0; i < t->n; i++) {
        char *label = t->cell[i];
        while (*label == ' ')
            label++;
        for (size_t k = strlen(label); k > 0 && label[k - 1] == ' '; k--)
            label[k - 1] = 0;
        t->column[i] = (Column){ .label = gm_copy_text(label), .target = -1 };
    }
    return true;
}

// ---- which column goes where ----

static int new_target(Table *t, const char *name, GmType type)
{
    GmValue *v = gm_values_add(t->values, name, t->path);
    if (!v)
        return -1;
    v->type = type;
    return t->values->n - 1;
}

// "X.3" or "X[3]": the length of "X", and 3. Zero if the label is neither.
static size_t indexed_label(const char *label, long *index)
{
    const size_t name = strcspn(label, ".[");
    const char mark = label[name];
    if (mark == 0 || name == 0)
        return 0;
    char *end;
    errno = 0;
    *index = strtol(label + name + 1, &end, 10);
    if (end == label + name + 1 || *index < 1 || errno)
        return 0;
    if (mark == '[' && *end++ != ']')
        return 0;
    return *end ? 0 : name;
}

// Columns by their own names.
static bool by_label(Table *t)
{
    for (long i = 0; i < t->n; i++) {
        Column *c = &t->column[i];
        long index = 1;
        const size_t length = indexed_label(c->label, &index);
        char *name = gm_copy_text(c->label);
        if (length)
            name[length] = 0;
        const GmField *field = gm_values_wanted(t->values, name);
        bool good = true;
        if (field) {
            for (int k = t->first_value; k < t->values->n && length; k++)
                if (strcmp(t->values->value[k].name, name) == 0 && t->values->value[k].rank == 2)
                    c->target = k;
            if (c->target < 0) {
                c->target = new_target(t, name, field->type);
                good = c->target >= 0;
            }
            if (good) {
                GmValue *v = &t->values->value[c->target];
                v->rank = length ? 2 : 1;
                v->dim[1] += length ? 1 : 0;
                c->slot = index - 1;
            }
        }
        free(name);
        if (!good)
            return false;
    }
    for (int k = t->first_value; k < t->values->n; k++) { // X.1 .. X.k must all be there, once
        const GmValue *v = &t->values->value[k];
        if (v->rank != 2)
            continue;
        char *seen = gm_alloc((size_t)v->dim[1], 1);
        bool good = true;
        for (long i = 0; i < t->n && good; i++) {
            const Column *c = &t->column[i];
            if (c->target != k)
                continue;
            if (c->slot >= v->dim[1])
                gm_error("%s: column %s: there are %ld columns of %s, so their numbers should be 1 to %ld", t->path, c->label, v->dim[1],
                         v->name, v->dim[1]);
            else if (seen[c->slot])
                gm_error("%s: column %s is there twice", t->path, c->label);
            else
                seen[c->slot] = 1;
            good = c->slot < v->dim[1] && seen[c->slot] == 1;
            if (good)
                seen[c->slot] = 2;
        }
        free(seen);
        if (!good)
            return false;
    }
    return true;
}

static long find_label(const Table *t, const char *label, size_t length)
{
    for (long i = 0; i < t->n; i++)
        if (strlen(t->column[i].label) == length && strncmp(t->column[i].label, label, length) == 0)
            return i;
    gm_error("%s: there is no column `%.*s`", t->path, (int)length, label);
    return -1;
}

// X=table.csv, X=table.csv:a,b, X=table.csv:a-k: columns as the matrix (or, if there is one, the vector) `name`.
static bool by_choice(Table *t, const char *name, const char *columns)
{
    const GmField *field = gm_values_wanted(t->values, name);
    if (!field) {
        gm_error("%s=%s: the model's data has no %s", name, t->path, name);
        return false;
    }
    const int target = new_target(t, name, field->type);
    if (target < 0)
        return false;
    long taken = 0;
    if (!columns)
        for (; taken < t->n; taken++) {
            t->column[taken].target = target;
            t->column[taken].slot = taken;
        }
    while (columns && *columns) {
        const size_t length = strcspn(columns, ",");
        const char *dash = memchr(columns, '-', length);
        long first = -1, last = -1;
        bool whole = false;                              // a label may hold a dash itself
        for (long i = 0; i < t->n; i++)
            whole |= strlen(t->column[i].label) == length && strncmp(t->column[i].label, columns, length) == 0;
        if (dash && !whole) {
            first = find_label(t, columns, (size_t)(dash - columns));
            last = first < 0 ? -1 : find_label(t, dash + 1, length - (size_t)(dash + 1 - columns));
        } else {
            first = last = find_label(t, columns, length);
        }
        if (first < 0 || last < 0)
            return false;
        if (last < first) {
            gm_error("%s: `%.*s`: the first column stands after the last", t->path, (int)length, columns);
            return false;
        }
        for (long i = first; i <= last; i++) {
            if (t->column[i].target >= 0) {
                gm_error("%s: column %s is chosen twice", t->path, t->column[i].label);
                return false;
            }
            t->column[i].target = target;
            t->column[i].slot = taken++;
        }
        columns += length + (columns[length] == ',');
    }
    GmValue *v = &t->values->value[target];
    v->rank = taken == 1 && field->rank < 2 ? 1 : 2;
    v->dim[1] = taken;
    return true;
}

// ---- rows ----

static size_t element_size(const GmValue *v)
{
    return v->type == GM_INT ? sizeof(int32_t) : sizeof(double);
}

static size_t row_size(const GmValue *v)
{
    return v->rank == 2 ? (size_t)v->dim[1] : 1;
}

static void make_room(Table *t, long rows)
{
    for (int k = t->first_value; k < t->values->n; k++) {
        GmValue *v = &t->values->value[k];
        size_t count;
        if (__builtin_mul_overflow((size_t)rows, row_size(v), &count))
            count = SIZE_MAX;
        v->elements = gm_grow(v->elements, count, element_size(v));
    }
    t->room = rows;
}

static bool store_row(Table *t)
{
    if (t->rows == t->room)
        make_room(t, t->room ? 2 * t->room : 64);
    for (long i = 0; i < t->n; i++) {
        const Column *c = &t->column[i];
        if (c->target < 0)
            continue;
        GmValue *v = &t->values->value[c->target];
        double x;
        const char *why = NULL;
        if (!gm_parse_number(t->cell[i], &x, &why) ||
            !gm_store(v->type, v->elements, t->rows * (long)row_size(v) + c->slot, x, &why)) {
            gm_error("%s: line %ld, column %s: `%.60s` %s", t->path, t->line_number, c->label, t->cell[i], why);
            return false;
        }
    }
    t->rows++;
    return true;
}

static bool read_rows(Table *t)
{
    long blank = 0;                                      // blank lines not yet known to be at the end
    while (next_line(t)) {
        if (t->line_length == 0) {
            blank++;
            continue;
        }
        for (; blank > 0 && t->n == 1; blank--) {        // in a table of one column an empty line is a missing value
            t->cell[0] = "";
            if (!store_row(t))
                return false;
        }
        blank = 0;
        const long n = cut(t, t->cell, t->n);
        if (n < 0)
            return false;
        if (n != t->n) {
            gm_error("%s: line %ld has %ld cells, the header has %ld", t->path, t->line_number, n, t->n);
            return false;
        }
        if (!store_row(t))
            return false;
    }
    if (t->line_length < 0)
        return false;
    make_room(t, t->rows);                               // gives back what doubling took too much
    for (int k = t->first_value; k < t->values->n; k++) {
        t->values->value[k].dim[0] = t->rows;
        t->values->value[k].table = true;
    }
    return true;
}

static bool read_table(Table *t, const char *name, const char *columns)
{
    if (!read_header(t))
        return false;
    return (name ? by_choice(t, name, columns) : by_label(t)) && read_rows(t);
}

bool gm_csv_read(GmValues *values, const char *path, const char *name, const char *columns)
{
    Table t = { .path = path, .values = values, .first_value = values->n };
    struct stat info;
    gm_file_is_read(path);
    t.file = fopen(path, "rb");
    if (!t.file || fstat(fileno(t.file), &info) != 0) {
        gm_error("%s: cannot be read: %s", path, strerror(errno));
        if (t.file)
            fclose(t.file);
        return false;
    }
    bool good = false;
    if (S_ISDIR(info.st_mode))
        gm_error("%s: is a directory", path);
    else
        good = read_table(&t, name, columns);
    for (long i = 0; i < t.n; i++)
        free(t.column[i].label);
    free(t.column);
    free(t.cell);
    free(t.line);
    fclose(t.file);
    return good;
}
