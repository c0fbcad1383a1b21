// sparse_pattern.c -- which entries the precision of a block has: terms and rows are noted once, and get their slots.
//
// Needs: gm_sparse_note and its like, called by the emitted kernels in their order.     Gives: Pattern, but for the route.
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "nonzeros.h"
#include "sparse_inside.h"

enum { MOST_PAIRS = 50000000 };  // of entries of a row: their places take minutes to order beyond
// a row with more entries than this, and than a few of their squares, is apart from the factor, if there are few such rows
enum { LONG_ROW = 64 };

void gm_sparse_no_room(void)
{
    fprintf(stderr, "no memory is left for the precision of a joint normal\n");
    exit(6);  // GM_EXIT_MEMORY
}

void *gm_sparse_room(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p) gm_sparse_no_room();
    return p;
}

_Thread_local GmEntries gm_entries;

static Pattern patterns[MOST_BLOCKS];
static struct {
    int *row, *column;
    long size, n;
} noted;  // n: elements of the block
static struct {
    long *first;
    int *column;
    long rows, size, more;
    GmPart *part;
    int parts;
} noted_rows;

Pattern *gm_sparse_pattern(int number)
{
    if (number < 1 || number > MOST_BLOCKS) {
        fprintf(stderr, "there are more than %d joint normals of several plates\n", MOST_BLOCKS);
        exit(2);
    }
    return &patterns[number - 1];
}

// Rows that a choice leaves out have no entry: a place outside is a mistake of the compiler, which must not become a write.
static void check_place(long i)
{
    if (i >= 0 && i < noted.n) return;
    fprintf(stderr, "an entry of a joint normal names element %ld of %ld: please report this model\n", i + 1, noted.n);
    exit(3);
}

void gm_sparse_note(long i, long j)
{
    check_place(i);
    check_place(j);
    const long k = gm_entries.at;
    if (k == noted.size) {
        noted.size = noted.size ? 2 * noted.size : 1024;
        noted.row = realloc(noted.row, sizeof(int) * (size_t)noted.size);
        noted.column = realloc(noted.column, sizeof(int) * (size_t)noted.size);
        if (!noted.row || !noted.column) gm_sparse_no_room();
    }
    noted.row[k] = (int)(i > j ? i : j);
    noted.column[k] = (int)(i > j ? j : i);
}

void gm_sparse_note_row(void)
{
    if (noted_rows.rows == noted_rows.more) {
        noted_rows.more = noted_rows.more ? 2 * noted_rows.more : 1024;
        noted_rows.first = realloc(noted_rows.first, sizeof(long) * (size_t)(noted_rows.more + 1));
        if (!noted_rows.first) gm_sparse_no_room();
    }
    for (int k = 0; k < noted_rows.parts; k++) {
        GmPart *q = &noted_rows.part[k];
        if (noted_rows.rows % 1024 == 0) q->x = realloc(q->x, sizeof *q->x * (size_t)(noted_rows.rows + 1024));
        if (!q->x) gm_sparse_no_room();
        q->x[noted_rows.rows] = NULL;
    }
    noted_rows.first[noted_rows.rows++] = gm_entries.put_at;
}

// A part of this place and length that the row has not had yet.
void gm_sparse_note_part(long at, const double *x, long p)
{
    const long row = noted_rows.rows - 1;
    int k = 0;
    check_place(at);
    check_place(at + p - 1);
    while (k < noted_rows.parts && (noted_rows.part[k].at != at || noted_rows.part[k].p != p || noted_rows.part[k].x[row])) k++;
    if (k == noted_rows.parts) {
        noted_rows.part = realloc(noted_rows.part, sizeof *noted_rows.part * (size_t)++noted_rows.parts);
        if (!noted_rows.part) gm_sparse_no_room();
        noted_rows.part[k] = (GmPart){at, p, calloc((size_t)(row / 1024 + 1) * 1024, sizeof(double *))};
        if (!noted_rows.part[k].x) gm_sparse_no_room();
    }
    noted_rows.part[k].x[row] = x;
}

void gm_sparse_put_row(long at, const double *x, long p)
{
    long row;
    const GmNonzeros *m = gm_nonzeros_of(x, p, &row);
    if (m)
        for (long k = m->first[row]; k < m->first[row + 1]; k++) gm_sparse_put(at + m->column[k], m->value[k]);
    else if (!gm_entries.slot && p > 0) gm_sparse_note_part(at, x, p);
}

void gm_sparse_note_put(long j)
{
    check_place(j);
    const long k = gm_entries.put_at;
    if (k == noted_rows.size) {
        noted_rows.size = noted_rows.size ? 2 * noted_rows.size : 1024;
        noted_rows.column = realloc(noted_rows.column, sizeof(int) * (size_t)noted_rows.size);
        if (!noted_rows.column) gm_sparse_no_room();
    }
    noted_rows.column[k] = (int)j;
}

void gm_pattern_begin(int number, long n, double most, const char *name)
{
    Pattern *q = gm_sparse_pattern(number);
    q->n = n;
    q->most = most;
    free(q->text);
    q->text = gm_sparse_room(400);
    snprintf(q->text, 400, "%s", name);
    gm_entries = (GmEntries){0};
    noted.n = n;
}

void gm_pattern_in_turn(int number, long n, const char *name)
{
    Pattern *q = gm_sparse_pattern(number);
    free(q->text);
    q->text = gm_sparse_room(400);
    snprintf(q->text, 400,
             "%s: %ld elements: drawn one after the other, as always on a GPU where predictors name lists of elements, or coefficients are "
             "made of matrices",
             name, n);
    q->taken = false;
}

// Order of `key` among 0 .. n - 1, equal ones as they come in `by` (NULL: from 0).
static void sort_by(long count, long n, const int *key, const int *by, int *out)
{
    long *at = calloc((size_t)n + 1, sizeof *at);
    if (!at) gm_sparse_no_room();
    for (long k = 0; k < count; k++) at[key[k] + 1]++;
    for (long i = 0; i < n; i++) at[i + 1] += at[i];
    for (long k = 0; k < count; k++) {
        const int of = by ? by[k] : (int)k;
        out[at[key[of]]++] = of;
    }
    free(at);
}

static void note(long i, long j)
{
    gm_sparse_note(i, j);
    gm_entries.at++;
}

// The rows that were listed. With several rows of a length that fills the factor none is apart: with so many it is full.
double gm_sparse_take_rows(Pattern *q)
{
    for (int k = 0; k < q->parts; k++) free(q->part[k].x);
    free(q->part);
    q->part = noted_rows.part;
    q->parts = noted_rows.parts;
    free(q->first_put);
    free(q->column);
    free(q->apart);
    q->rows = noted_rows.rows;
    q->puts = gm_entries.put_at;
    q->first_put = noted_rows.first;
    q->column = noted_rows.column;
    q->apart = NULL;
    q->napart = q->pairs = 0;
    memset(&noted_rows, 0, sizeof noted_rows);
    if (!q->rows) return 0;
    q->first_put[q->rows] = q->puts;
    q->apart = gm_sparse_room((size_t)q->rows);
    double pairs = 0, long_pairs = 0;
    for (long i = 0; i < q->rows; i++) {
        const double m = (double)(q->first_put[i + 1] - q->first_put[i]);
        q->apart[i] = m > LONG_ROW && m > 4 * sqrt((double)q->n);
        q->napart += q->apart[i];
        pairs += m * (m + 1) / 2;
        if (q->apart[i]) long_pairs += m * (m + 1) / 2;
    }
    if (q->napart <= MOST_APART) return pairs - long_pairs;
    memset(q->apart, 0, (size_t)q->rows);
    q->napart = 0;
    return pairs;
}

// The slots of what was noted: terms, diagonal, pairs.
static void make_slots(Pattern *q)
{
    const long n = q->n, count = gm_entries.at;
    int *by_row = gm_sparse_room(sizeof *by_row * (size_t)count), *by_column = gm_sparse_room(sizeof *by_column * (size_t)count);
    sort_by(count, n, noted.row, NULL, by_row);
    sort_by(count, n, noted.column, by_row, by_column);
    free(by_row);
    free(q->slot);
    free(q->first);
    free(q->row);
    q->slot = gm_sparse_room(sizeof *q->slot * (size_t)count);
    q->first = gm_sparse_room(sizeof *q->first * (size_t)(n + 1));
    q->row = gm_sparse_room(sizeof *q->row * (size_t)count);
    q->entries = 0;
    long column = 0, last_row = -1, last_column = -1;
    for (long k = 0; k < count; k++) {
        const int t = by_column[k];
        if (noted.row[t] != last_row || noted.column[t] != last_column) {
            last_row = noted.row[t];
            last_column = noted.column[t];
            while (column <= last_column) q->first[column++] = (int)q->entries;
            q->row[q->entries++] = noted.row[t];
        }
        q->slot[t] = (int)(q->entries - 1);
    }
    while (column <= n) q->first[column++] = (int)q->entries;
    free(by_column);
    free(noted.row);
    free(noted.column);
    memset(&noted, 0, sizeof noted);
    gm_entries = (GmEntries){0};
}

void gm_sparse_forget_rows(Pattern *q)
{
    free(noted.row);
    free(noted.column);
    memset(&noted, 0, sizeof noted);
    gm_sparse_take_rows(q);  // there are none noted any more
    gm_entries = (GmEntries){0};
}

bool gm_sparse_diagonal(const Pattern *q)
{
    bool diagonal = true;
    for (long k = 0; k < q->terms; k++) diagonal &= noted.row[k] == noted.column[k];
    return diagonal;
}

void gm_sparse_place(Pattern *q, double pairs)
{
    for (long i = 0; i < q->n; i++) note(i, i);  // an element without a term has a pivot of 0, which is a fault that names it
    if (pairs > MOST_PAIRS) q->pairs = -1;
    for (long i = 0; i < q->rows && q->pairs >= 0; i++)
        for (long k = q->first_put[i]; k < q->first_put[i + 1] && !q->apart[i]; k++)
            for (long l = k; l < q->first_put[i + 1]; l++, q->pairs++) note(q->column[k], q->column[l]);
    make_slots(q);
}
