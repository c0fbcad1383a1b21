// data_csv.c -- tables with a header line.
//
//   y,X.1,X.2          y: a vector        X: a matrix with two columns; X[1],X[2] means the same
//   1,0.5,2
//
// One pass over the file, a line at a time, into arrays that double as they fill; columns nobody declared are not kept.
// Separators: comma, tab or semicolon, whichever the header holds most of. Lines that begin with # are comments, unless they hold a row.
// A cell in quotes may hold line ends: the row then goes on with the next line of the file.
#include "../backends/files.h"
#include "inputs.h"
#include "messages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Where the numbers of one column go: into the value `target` (an index: the list of values may move), as its column `slot`.
typedef struct CsvColumn {
    char *label;
    int target;  // -1: not kept
    long slot;
} CsvColumn;

typedef struct Table {
    GmLines lines;
    long line;  // where the row begins: lines.number is where it ends
    char separator;
    long n;
    CsvColumn *column;
    char **cell;
    GmValues *values;
    int first_value;  // the values of this table are values->value[first_value..]
    long rows, room;
} Table;

// ---- lines and cells ----

// Cuts the line into cells in place: cell[i] points into it. Returns their number (only the first `most` are stored), -1 after a message.
static long cut(Table *t, char **cell, long most)
{
    char *at = t->lines.text;
    for (long n = 0;; n++) {
        char *begin = at, *end;
        if (*at == '"') {  // "a ""quoted"" cell"
            begin = end = ++at;
            while (*at && !(at[0] == '"' && at[1] != '"')) {
                at += at[0] == '"';
                *end++ = *at++;
            }
            if (*at != '"') {
                gm_error("%s: line %ld: a quote is not closed", t->lines.path, t->line);
                return -1;
            }
            for (at++; *at == ' ' || (*at == '\t' && t->separator != '\t');) at++;
            if (*at && *at != t->separator) {
                gm_error("%s: line %ld: `%.20s` follows a quote that is closed", t->lines.path, t->line, at);
                return -1;
            }
        } else {
            while (*at && *at != t->separator) at++;
            end = at;
        }
        const bool last = *at == 0;
        at++;  // before the end is marked: it may be the separator
        *end = 0;
        if (n < most) cell[n] = begin;
        if (last) return n + 1;
    }
}

// Numbers on the first line are a row without a header above it, unless they may be names: whole, and no two beside each other the same (0,
// 1, 2; years).
static bool holds_names(const Table *t)
{
    bool whole = true;
    for (long i = 0; i < t->n; i++) {
        double x;
        const char *label = t->column[i].label, *why;
        if (!*label || !gm_parse_number(label, &x, &why)) return true;
        whole &= strspn(label, "0123456789") == strlen(label) && (i ? strcmp(label, t->column[i - 1].label) != 0 : t->n > 1 || x == 0);
    }
    if (whole)
        gm_note("%s: the first line holds numbers, %s%s, which are taken as the names of columns", t->lines.path, t->column[0].label,
                t->n > 1 ? ", ..." : "");
    else
        gm_error("%s: line %ld holds numbers where the names of the columns are expected: add a header line", t->lines.path,
                 t->line);
    return whole;
}

static char choose_separator(const char *header)
{
    const char choices[] = ",\t;";
    char best = ',';
    long most = 0;
    for (const char *c = choices; *c; c++) {
        long count = 0;
        for (const char *s = header; *s; s++) count += *s == *c;
        if (count > most) {
            most = count;
            best = *c;
        }
    }
    return best;
}

// Spreadsheets write #N/A for what is missing: a row may begin with it.
static bool begins_with_missing(const Table *t, const char *text)
{
    static const char mark[] = "#N/A";
    const size_t n = sizeof mark - 1;
    return t->n > 0 && strncmp(text, mark, n) == 0 && (text[n] == 0 || text[n] == t->separator || text[n] == ' ');
}

// Whether a row ends within a cell in quotes, of which text begins as it says: at a cell, or within quotes.
static bool ends_in_quotes(const Table *t, const char *at, bool within)
{
    for (;; within = false) {
        if (within || *at == '"')
            for (at += !within; *at != '"' || *++at == '"'; at++)
                if (!*at) return true;
        while (*at && *at != t->separator) at++;
        if (!*at++) return false;
    }
}

// The lines that a row goes on with. Where the file ends before the quote does, the row is left as it is: cut says so.
static void join_lines(Table *t)
{
    long from = 0;
    if (!memchr(t->lines.text, '"', (size_t)t->lines.length)) return;  // most rows have no quotes
    while (ends_in_quotes(t, t->lines.text + from, from > 0)) {
        from = t->lines.length;
        if (!gm_lines_more(&t->lines)) return;
    }
}

// The next line that is no comment; NULL at the end of the file, or if t->lines.failed. A row that begins with # would be lost without a
// word.
static char *next_line(Table *t)
{
    char *text;
    while ((text = gm_lines_next(&t->lines)) && *text == '#' && !begins_with_missing(t, text)) {
        long numbers = 0, cells = 0;
        for (char *at = text + 1, *rest; at && t->n; at = rest) {
            double x;
            const char *why;
            if ((rest = strchr(at, t->separator))) *rest++ = 0;
            numbers += gm_parse_number(at, &x, &why) && (isfinite(x) || t->n > 1);
            cells++;
        }
        if (numbers == 0 || numbers < cells || cells != t->n) continue;
        gm_error("%s: line %ld begins with #, as a comment does, and holds numbers for all columns: remove the # or the line",
                 t->lines.path, t->lines.number);
        t->lines.failed = true;
        return NULL;
    }
    t->line = t->lines.number;
    return text;
}

// A character that no one sees makes a name another one than is read.
static bool is_visible(const Table *t, long column, const char *label)
{
    for (const unsigned char *c = (const unsigned char *)label; *c; c++)
        if (*c < 0x20 || *c == 0x7f) {
            gm_error("%s: line %ld: the name of column %ld holds a control character (%d) behind `%.*s`: remove it", t->lines.path,
                     t->line, column + 1, *c, (int)((const char *)c - label), label);
            return false;
        }
    return true;
}

static bool read_header(Table *t)
{
    if (!next_line(t)) {
        if (!t->lines.failed) gm_error("%s: is empty: a header line with the names of the columns is expected", t->lines.path);
        return false;
    }
    t->separator = choose_separator(t->lines.text);
    join_lines(t);
    char *line = t->lines.text;
    char *whole = gm_copy_text(line);  // cutting works in place: once to count, once to keep
    t->n = cut(t, NULL, 0);
    strcpy(line, whole);
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
        label += strspn(label, " \t");
        for (size_t k = strlen(label); k > 0 && strchr(" \t", label[k - 1]); k--) label[k - 1] = 0;
        if (!is_visible(t, i, label)) return false;
        t->column[i] = (CsvColumn){.label = gm_copy_text(label), .target = -1};
    }
    return holds_names(t);
}

// ---- which column goes where ----

static int new_target(Table *t, const char *name, GmType type)
{
    GmValue *v = gm_values_add(t->values, name, t->lines.path);
    if (!v) return -1;
    v->type = type;
    gm_levels_begin(t->values, v);
    return t->values->n - 1;
}

// What follows the name in a label: ".3" or "[3]" is a subscript, ".1.2", "[1,2]" are subscripts of something else than a column, "" and
// ".old" none.
typedef enum { NO_SUBSCRIPT, ONE_SUBSCRIPT, SUBSCRIPTS } Subscripts;

static Subscripts subscripts_of(const char *after, long *index)
{
    const char mark = *after, *end = after + strspn(after, ".[]-, 0123456789");
    char *next;
    if ((mark != '.' && mark != '[') || *end) return NO_SUBSCRIPT;
    errno = 0;
    *index = strtol(after + 1, &next, 10);
    if (next == after + 1) return mark == '[' || after[1] ? SUBSCRIPTS : NO_SUBSCRIPT;
    if (mark == '[' && *next++ != ']') return SUBSCRIPTS;
    return *next || errno || *index < 0 ? SUBSCRIPTS : ONE_SUBSCRIPT;
}

// One column by its own name.
static bool place_column(Table *t, CsvColumn *c)
{
    const size_t length = strcspn(c->label, ".[");
    const Subscripts subscripts = subscripts_of(c->label + length, &c->slot);
    char *name = gm_copy_text(c->label);
    if (subscripts) name[length] = 0;
    const GmField *field = gm_values_wanted(t->values, name);
    free(name);
    if (!field) return true;
    if (subscripts == SUBSCRIPTS) {
        gm_error("%s: column %s: columns of %s are called %s.1, %s.2, ... (or from 0 on)", t->lines.path, c->label, field->name,
                 field->name, field->name);
        return false;
    }
    for (int k = t->first_value; k < t->values->n && subscripts; k++)
        if (strcmp(t->values->value[k].name, field->name) == 0 && t->values->value[k].rank == 2) c->target = k;
    if (c->target < 0) c->target = new_target(t, field->name, field->type);
    if (c->target < 0) return false;
    GmValue *v = &t->values->value[c->target];
    v->rank = subscripts ? 2 : 1;
    v->dim[1] += subscripts ? 1 : 0;
    return true;
}

// X.1 .. X.k must all be there, once; or X.0 .. X.(k - 1), as programs write them that count from 0.
static bool number_columns(Table *t, int target)
{
    const GmValue *v = &t->values->value[target];
    long first = 1;
    for (long i = 0; i < t->n; i++)
        if (t->column[i].target == target && t->column[i].slot == 0) first = 0;
    bool *seen = gm_alloc((size_t)v->dim[1], sizeof *seen), good = true;
    for (long i = 0; i < t->n && good; i++) {
        CsvColumn *c = &t->column[i];
        if (c->target != target) continue;
        c->slot -= first;
        good = c->slot < v->dim[1] && !seen[c->slot];
        if (c->slot >= v->dim[1])
            gm_error("%s: column %s: there are %ld columns of %s, so their numbers should be %ld to %ld", t->lines.path, c->label,
                     v->dim[1], v->name, first, v->dim[1] - 1 + first);
        else if (!good) gm_error("%s: column %s is there twice", t->lines.path, c->label);
        else seen[c->slot] = true;
    }
    free(seen);
    if (good && first == 0) gm_note("%s: the columns of %s are counted from 0: the first is %s[, 1]", t->lines.path, v->name, v->name);
    return good;
}

// What the header has, where nothing of it is read: maybe names that are written otherwise, or another separator.
static bool say_unread(const Table *t)
{
    const bool blank = t->n == 1 && !*t->column[0].label;
    if (blank)
        gm_error("%s: line %ld is empty, where the names of the columns are expected", t->lines.path, t->line);
    else
        gm_note("%s: none of its columns is in the model's data: %s%s%s%s", t->lines.path, t->column[0].label, t->n > 1 ? ", " : "",
            t->n > 1 ? t->column[1].label : "", t->n > 2 ? ", ..." : "");
    return !blank;
}

static bool by_label(Table *t)
{
    for (long i = 0; i < t->n; i++)
        if (!place_column(t, &t->column[i])) return false;
    if (t->values->n == t->first_value && !say_unread(t)) return false;
    for (int k = t->first_value; k < t->values->n; k++)
        if (t->values->value[k].rank == 2 && !number_columns(t, k)) return false;
    return true;
}

static bool is_label(const Table *t, long i, const char *label, size_t length)
{
    return strlen(t->column[i].label) == length && strncmp(t->column[i].label, label, length) == 0;
}

static long find_label(const Table *t, const char *label, size_t length)
{
    long found = -1;
    for (long i = 0; i < t->n; i++) {
        if (!is_label(t, i, label, length)) continue;
        if (found >= 0) {
            gm_error("%s: column %.*s is there twice", t->lines.path, (int)length, label);
            return -1;
        }
        found = i;
    }
    if (found < 0) gm_error("%s: there is no column `%.*s`", t->lines.path, (int)length, label);
    return found;
}

// X=table.csv, X=table.csv:a,b, X=table.csv:a-k: columns as the matrix (or, if there is one, the vector) `name`.
static bool by_choice(Table *t, const char *name, const char *columns)
{
    const GmField *field = gm_values_wanted(t->values, name);
    if (!field) {
        gm_error("%s=%s: the model's data has no %s", name, t->lines.path, name);
        return false;
    }
    const int target = new_target(t, name, field->type);
    if (target < 0) return false;
    long taken = 0;
    if (!columns)
        for (; taken < t->n; taken++) {
            t->column[taken].target = target;
            t->column[taken].slot = taken;
        }
    if (columns && !*columns) {
        gm_error("%s=%s:: names of columns are expected after the colon", name, t->lines.path);
        return false;
    }
    while (columns && *columns) {
        const size_t length = strcspn(columns, ",");
        const char *dash = memchr(columns, '-', length);
        long first = -1, last = -1;
        bool whole = false;  // a label may hold a dash itself
        for (long i = 0; i < t->n; i++) whole |= is_label(t, i, columns, length);
        if (dash && !whole) {
            first = find_label(t, columns, (size_t)(dash - columns));
            last = first < 0 ? -1 : find_label(t, dash + 1, length - (size_t)(dash + 1 - columns));
        } else {
            first = last = find_label(t, columns, length);
        }
        if (first < 0 || last < 0) return false;
        if (last < first) {
            gm_error("%s: `%.*s`: the first column stands after the last", t->lines.path, (int)length, columns);
            return false;
        }
        for (long i = first; i <= last; i++) {
            if (t->column[i].target >= 0) {
                gm_error("%s: column %s is chosen twice", t->lines.path, t->column[i].label);
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

static size_t element_size(const GmValue *v) { return v->type == GM_INT ? sizeof(int32_t) : sizeof(double); }

static size_t row_size(const GmValue *v) { return v->rank == 2 ? (size_t)v->dim[1] : 1; }

static void make_room(Table *t, long rows)
{
    for (int k = t->first_value; k < t->values->n; k++) {
        GmValue *v = &t->values->value[k];
        size_t count;
        if (__builtin_mul_overflow((size_t)rows, row_size(v), &count)) count = SIZE_MAX;
        v->elements = gm_grow(v->elements, count, element_size(v));
    }
    t->room = rows;
}

// TRUE and FALSE, as R writes them, are 1 and 0 where ints are wanted.
static bool is_truth(const GmValue *v, const char *cell, double *x)
{
    *x = strcasecmp(cell, "true") == 0;
    return v->type == GM_INT && (*x == 1 || strcasecmp(cell, "false") == 0);
}

static bool store_row(Table *t)
{
    if (t->rows == t->room) make_room(t, t->room ? 2 * t->room : 64);
    for (long i = 0; i < t->n; i++) {
        const CsvColumn *c = &t->column[i];
        if (c->target < 0) continue;
        GmValue *v = &t->values->value[c->target];
        double x;
        const char *why = NULL;
        const long at = t->rows * (long)row_size(v) + c->slot;
        const GmTextIs is = gm_read_text(v, at, t->cell[i], &why);
        if (is == GM_TEXT_STORED) continue;
        if (is == GM_TEXT_REFUSED || !(gm_parse_number(t->cell[i], &x, &why) || is_truth(v, t->cell[i], &x)) ||
            !gm_store(v->type, v->elements, at, x, &why)) {
            gm_error("%s: line %ld, column %s: `%.60s` %s", t->lines.path, t->line, c->label, t->cell[i],
                     gm_text_why(v, t->cell[i], why));
            return false;
        }
    }
    t->rows++;
    return true;
}

static bool read_rows(Table *t)
{
    long blank = 0;  // blank lines not yet known to be at the end
    for (char *text; (text = next_line(t));) {
        if (!*text) {
            blank++;
            continue;
        }
        for (; blank > 0 && t->n == 1; blank--) {  // in a table of one column an empty line is a missing value
            t->cell[0] = "";
            if (!store_row(t)) return false;
        }
        blank = 0;
        join_lines(t);
        const long n = cut(t, t->cell, t->n);
        if (n < 0) return false;
        if (n != t->n) {
            gm_error("%s: line %ld has %ld cell%s, the header has %ld", t->lines.path, t->line, n, n == 1 ? "" : "s", t->n);
            return false;
        }
        if (!store_row(t)) return false;
    }
    if (t->lines.failed) return false;
    make_room(t, t->rows);  // gives back what doubling took too much
    for (int k = t->first_value; k < t->values->n; k++) {
        t->values->value[k].dim[0] = t->rows;
        t->values->value[k].table = true;
    }
    return true;
}

static bool read_table(Table *t, const char *name, const char *columns)
{
    if (!read_header(t)) return false;
    return (name ? by_choice(t, name, columns) : by_label(t)) && read_rows(t);
}

bool gm_csv_read(GmValues *values, const char *path, const char *name, const char *columns)
{
    gm_file_is_read(path);
    Table t = {.values = values, .first_value = values->n};
    const bool good = gm_lines_open(&t.lines, path) && read_table(&t, name, columns);
    for (long i = 0; i < t.n && t.column; i++) free(t.column[i].label);
    free(t.column);
    free(t.cell);
    gm_lines_close(&t.lines);
    return good;
}
