// sparse.c -- sparse.h over CHOLMOD (SuiteSparse: its modules Core, Cholesky and Partition are under the LGPL 2.1 or later, Supernodal and
// MatrixOps under the GPL 2 or later), which finds the order, and makes factors where their columns are long; else simplicial.c.
//
// The types are those of CHOLMOD's header, the library is opened when a program needs it: nothing is linked. Built without that header,
// there is the dense route alone.
#include "sparse.h"

#include <limits.h>
#if defined(__has_include)
#if __has_include(<malloc.h>)
#include <malloc.h>
#endif
#endif
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../device/gamma.h"
#include "conjugate.h"
#include "fill.h"
#include "library.h"
#include "nonzeros.h"
#include "simplicial.h"
#include "tiles.h"

#if defined(__has_include)
#if __has_include(<suitesparse/cholmod.h>)
#include <suitesparse/cholmod.h>
#define HAS_CHOLMOD 1
#elif __has_include(<cholmod.h>)
#include <cholmod.h>
#define HAS_CHOLMOD 1
#endif
#endif

// rows: up to the first, no order is worth its search; beyond the second, a dense factor takes seconds
enum { ALWAYS_DENSE = 48, MOST_DENSE = 3000 };
static const double MOST_FACTOR = 1.5e8;  // entries of a factor: 1.2 GB
enum { MOST_DIRECT = 16384 };             // elements of a dense matrix that is made where conjugate gradients fail: 2 GB
enum { MOST_PAIRS = 50000000 };           // of entries of a row: their places take minutes to order beyond
// a row with more entries than this, and than a few of their squares, is apart from the factor, if there are few such rows
enum { LONG_ROW = 64, MOST_APART = 64 };
// entries of a factor that is made here: its pattern takes twice the memory of its numbers
static const double MOST_SIMPLICIAL = 1e7;
// of conjugate gradients: with which they are compared before any has been made; of one solution where there is no factor
enum { GUESSED_STEPS = 60, MOST_STEPS = 20000 };
enum { GM_FOR_FACTOR = -2 };           // beside what gm_normal_sparse returns
enum { FIRST_DRAWS = 8, AGAIN = 64 };  // draws of a chain by either preconditioner in turn, and then one of so many

static void no_room(void)
{
    fprintf(stderr, "no memory is left for the precision of a joint normal\n");
    exit(6);  // GM_EXIT_MEMORY
}

static void *room(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p) no_room();
    return p;
}

// ---- CHOLMOD ----

#ifdef HAS_CHOLMOD
#define CHOLMOD(X)                                                                                                                        \
    X(int, cholmod_start, (cholmod_common *))                                                                                             \
    X(int, cholmod_free_factor, (cholmod_factor **, cholmod_common *))                                                                    \
    X(cholmod_factor *, cholmod_analyze, (cholmod_sparse *, cholmod_common *))                                                            \
    X(cholmod_factor *, cholmod_analyze_p, (cholmod_sparse *, int *, int *, size_t, cholmod_common *))                                    \
    X(int, cholmod_finish, (cholmod_common *))                                                                                            \
    X(cholmod_factor *, cholmod_copy_factor, (cholmod_factor *, cholmod_common *))                                                        \
    X(int, cholmod_factorize, (cholmod_sparse *, cholmod_factor *, cholmod_common *))                                                     \
    X(int, cholmod_solve2,                                                                                                                \
      (int, cholmod_factor *, cholmod_dense *, cholmod_sparse *, cholmod_dense **, cholmod_sparse **, cholmod_dense **, cholmod_dense **, \
       cholmod_common *))

static struct {
#define X(type, name, args) type(*name) args;
    CHOLMOD(X)
#undef X
} lib;
#else
typedef struct cholmod_factor cholmod_factor;
#endif

// NULL, or why there is none.
static const char *open_cholmod(void)
{
#ifdef HAS_CHOLMOD
    static bool tried, found;
    if (!tried) {
        tried = true;
        char soname[40], where[400];
        snprintf(soname, sizeof soname, "libcholmod.so.%d", CHOLMOD_MAIN_VERSION);
        const char *const sonames[] = {soname, NULL};
        void *library = gm_library_open(sonames, NULL, "GM_CHOLMOD", "", where, sizeof where);
        found = library != NULL;
#define X(type, name, args) found = found && gm_library_symbol(library, #name, &lib.name);
        CHOLMOD(X)
#undef X
    }
    return found ? NULL : "CHOLMOD is not found (apt-get install libsuitesparse-dev)";
#else
    return "gmc was built without CHOLMOD (apt-get install libsuitesparse-dev, then build gmc again)";
#endif
}

// ---- patterns ----

typedef struct Pattern {  // of one block: the same for all chains
    long n, terms, entries;
    int *slot;         // of each term
    int *first, *row;  // of the lower triangle, by columns: rows first[j] .. first[j + 1] - 1, the diagonal first
    bool dense, taken;
    double bytes;         // of what stands in
    double most;          // a joint draw that costs more than so many separate ones gives way to these
    double factor, work;  // entries of the factor; multiply-adds of a draw
    // rows that are listed, their entries; pairs of entries that have a place; rows that have none
    long rows, puts, pairs, napart;
    long *first_put;       // of each row
    int *column;           // of each entry
    unsigned char *apart;  // of each row
    GmPart *part;          // rows of matrices
    int parts;
    bool may_be_listed, listed;       // its rows, in place of what the program has besides
    bool weighted;                    // then X'WX would be made in each sweep
    bool diagonal, analysed, direct;  // the terms are a diagonal; there is a factor; that, or a dense one may be made
    bool gradients, only_gradients;
    // in ns, as predicted: an iteration of conjugate gradients, a draw by a factor, by the route that is taken
    double update_time, factor_time, time;
    struct Record *record;
    cholmod_factor *symbolic;
    GmSimplicial *columns;  // where these are short, the factor is made here; NULL: by CHOLMOD
    GmTiles *tiles;         // on a GPU
    int version;
    char *text;
} Pattern;

typedef struct Record {  // of one block, of one chain: what conjugate gradients have cost
    int chain;
    long draws, solved, steps, failed;
    int npushed, pushed[MOST_APART];  // elements whose pivots were lost without the rows that are apart
    double mean[2];  // iterations by either preconditioner, the terms and all of the diagonal; later ones count more; 0: not tried
    struct Record *next;
} Record;

typedef struct Numbers {  // of one block, of one thread
    int version;          // of the pattern that they belong to
    int chain;
    bool complete;  // the values hold the rows that are not apart
    double *value, *dense, *vector, *kept;
    double *put, *solving;            // entries of rows; work space of conjugate gradients
    double *root, *target, *of_rows;  // of each row; work space, a number for each
    double *factored;                 // the values whose factor there is
    double *columns, *work;           // of the factor that is made here; a number for each element
    bool has_factor;
    int factored_chain;  // of this chain
#ifdef HAS_CHOLMOD
    cholmod_common common;
    cholmod_factor *factor;
    cholmod_dense *x, *y, *e;
    bool started;
#endif
    struct Numbers *next;  // so that all can be reached
} Numbers;

enum { MOST_BLOCKS = 256 };  // with one block for each set of variables, more than programs have
static Pattern patterns[MOST_BLOCKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Numbers *all_numbers;
static _Thread_local Numbers *numbers_of[MOST_BLOCKS];
_Thread_local GmEntries gm_entries;
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

static Pattern *pattern(int number)
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
        if (!noted.row || !noted.column) no_room();
    }
    noted.row[k] = (int)(i > j ? i : j);
    noted.column[k] = (int)(i > j ? j : i);
}

void gm_sparse_note_row(void)
{
    if (noted_rows.rows == noted_rows.more) {
        noted_rows.more = noted_rows.more ? 2 * noted_rows.more : 1024;
        noted_rows.first = realloc(noted_rows.first, sizeof(long) * (size_t)(noted_rows.more + 1));
        if (!noted_rows.first) no_room();
    }
    for (int k = 0; k < noted_rows.parts; k++) {
        GmPart *q = &noted_rows.part[k];
        if (noted_rows.rows % 1024 == 0) q->x = realloc(q->x, sizeof *q->x * (size_t)(noted_rows.rows + 1024));
        if (!q->x) no_room();
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
        if (!noted_rows.part) no_room();
        noted_rows.part[k] = (GmPart){at, p, calloc((size_t)(row / 1024 + 1) * 1024, sizeof(double *))};
        if (!noted_rows.part[k].x) no_room();
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
        if (!noted_rows.column) no_room();
    }
    noted_rows.column[k] = (int)j;
}

void gm_pattern_begin(int number, long n, double most, const char *name)
{
    Pattern *q = pattern(number);
    q->n = n;
    q->most = most;
    free(q->text);
    q->text = room(400);
    snprintf(q->text, 400, "%s", name);
    gm_entries = (GmEntries){0};
    noted.n = n;
}

void gm_pattern_in_turn(int number, long n, const char *name)
{
    Pattern *q = pattern(number);
    free(q->text);
    q->text = room(400);
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
    if (!at) no_room();
    for (long k = 0; k < count; k++) at[key[k] + 1]++;
    for (long i = 0; i < n; i++) at[i + 1] += at[i];
    for (long k = 0; k < count; k++) {
        const int of = by ? by[k] : (int)k;
        out[at[key[of]]++] = of;
    }
    free(at);
}

static bool analyse(Pattern *q, double *work, const int *order);
static const int *order_of(const Pattern *q);
static void dissect(Pattern *q, double most_updates);

static void note(long i, long j)
{
    gm_sparse_note(i, j);
    gm_entries.at++;
}

// The rows that were listed. With several rows of a length that fills the factor none is apart: with so many it is full.
static double take_rows(Pattern *q)
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
    q->apart = room((size_t)q->rows);
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
    int *by_row = room(sizeof *by_row * (size_t)count), *by_column = room(sizeof *by_column * (size_t)count);
    sort_by(count, n, noted.row, NULL, by_row);
    sort_by(count, n, noted.column, by_row, by_column);
    free(by_row);
    free(q->slot);
    free(q->first);
    free(q->row);
    q->slot = room(sizeof *q->slot * (size_t)count);
    q->first = room(sizeof *q->first * (size_t)(n + 1));
    q->row = room(sizeof *q->row * (size_t)count);
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

static int say_rows(char *text, const Pattern *q)
{
    int at = snprintf(text, 300, "%s: %ld elements, %ld rows", q->text, q->n, q->rows);
    if (q->puts || !q->parts) at += snprintf(text + at, 100, " of %ld entries", q->puts);
    for (int k = 0; k < q->parts && k < 4; k++)
        at += snprintf(text + at, 60, "%s %ld columns", k || q->puts ? " and" : " of", q->part[k].p);
    return at;
}

// Times of routes in ns, from 20 multiply-adds a ns in LAPACK and 8 in a sparse factor. An entry of a row takes 1 ns in a pass over the
// rows, and 2 where it is added to its slot (measured: tests/bench/lists.py). An element of a matrix takes 0.3 ns in both passes of an
// iteration (tests/bench/nonzeros.py).
static const double NEVER = 1e300;

typedef struct Times {
    double dense, factor, gradients, few;
} Times;

static double full_time(const Pattern *q, double all_pairs)
{
    return (double)q->n * (double)q->n * (double)q->n / 60 + all_pairs + (double)q->n * (double)q->n;
}

static double few_time(const Pattern *q)
{
    const double n = (double)q->n, N = (double)q->rows;
    return q->diagonal && N < n ? N * N * n / 40 + N * N * N / 60 + 3 * N * n : NEVER;
}

// Whether there is memory for what stands in.
static bool fits(const Pattern *q) { return q->bytes < 0.9 * (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE); }

static void forget_rows(Pattern *q)
{
    free(noted.row);
    free(noted.column);
    memset(&noted, 0, sizeof noted);
    take_rows(q);  // there are none noted any more
    gm_entries = (GmEntries){0};
}

// Whether rows are listed, compared with what the program's other routes take: dense, with X'WX made in each sweep or X'X once, and by few
// rows. If they are not, what was noted of them goes.
static bool list_rows(Pattern *q, const char *asked, double all_pairs)
{
    double elements = 0, squares = 0;
    for (int k = 0; k < q->parts; k++) {
        elements += (double)q->part[k].p;
        squares += (double)q->part[k].p * (double)q->part[k].p;
    }
    const double n = (double)q->n, N = (double)q->rows, gradients = GUESSED_STEPS * q->update_time, few = few_time(q),
                 many = n * n * n / 60 + n * n + (q->weighted ? N * squares / 20 + 2 * all_pairs : 0);
    q->listed = gradients < fmin(few, N < n ? NEVER : many) || !fits(q);
    if (asked) q->listed = strcmp(asked, "sparse") == 0 || strcmp(asked, "gradients") == 0;
    if (q->listed) return true;
    char *text = room(900);
    const int at = say_rows(text, q);
    snprintf(text + at, 900 - (size_t)at, "; predicted: %s %.2g ms, conjugate gradients %.2g ms (%d iterations): drawn %s",
             N < n ? "by few rows" : "dense", (N < n ? few : many) / 1e6, gradients / 1e6, GUESSED_STEPS, N < n ? "by few rows" : "dense");
    free(q->text);
    q->text = text;
    forget_rows(q);
    return false;
}

static const char *asked_route(void)
{
    const char *asked = getenv("GM_JOINT");
    if (gm_as_in_lesson()) return "separate";
    if (asked && strcmp(asked, "sparse") != 0 && strcmp(asked, "gradients") != 0 && strcmp(asked, "dense") != 0 &&
        strcmp(asked, "separate") != 0) {
        fprintf(stderr, "the environment variable GM_JOINT is `%s`; it can be sparse, gradients, dense, separate or lesson\n", asked);
        exit(2);
    }
    return asked;
}

int gm_as_in_lesson(void)
{
    const char *asked = getenv("GM_JOINT");
    return asked && strcmp(asked, "lesson") == 0;
}

// The least full block in a factor that takes more than `most` ns; its work and its entries are those of a dense matrix.
static long refused_block(double most)
{
    for (long k = MOST_DENSE;; k++) {
        const double m = (double)k;
        if (m * m / 2 > MOST_FACTOR || m * m * m / 24 + m * m > most) return k;
    }
}

// Whether no order need be looked for. Below so many entries looking is the shorter way.
static bool is_full(const Pattern *q, long block)
{
    enum { MANY_ENTRIES = 1000000 };
    return q->n > MOST_DENSE && q->entries > MANY_ENTRIES && gm_fill_reaches(q->n, q->first, q->row, block);
}

static void say_full(Pattern *q, long block)
{
    char *text = room(400);
    snprintf(text, 400, "%s: %ld elements, %ld entries, a full block of more than %ld elements in the factor: drawn one after the other",
             q->text, q->n, q->entries, block);
    free(q->text);
    q->text = text;
}

// The routes of a block without rows: dense, sparse, or other updates.
static void choose_plain(Pattern *q, const char *asked)
{
    const long n = q->n;
    const double dense_work = (double)n * (double)n * (double)n / 3, separate = 4.0 * (double)q->terms + 20.0 * (double)n;
    const long refused = refused_block(q->most * separate);
    double work = dense_work;
    if (!asked && is_full(q, refused)) {
        q->analysed = q->dense = q->taken = false;
        q->time = separate;
        say_full(q, refused);
        return;
    }
    const bool small = n == 0 || (n <= ALWAYS_DENSE && !asked);
    const char *missing = small ? NULL : open_cholmod();
    q->analysed = !small && !missing && analyse(q, &work, NULL);
    q->dense = !q->analysed || (n <= MOST_DENSE && work > 0.5 * dense_work);
    if (q->dense) {
        work = dense_work;
        q->factor = (double)n * (double)(n + 1) / 2;
    }
    q->taken = q->dense ? n <= MOST_DENSE : q->factor <= MOST_FACTOR;
    q->taken = q->taken && (n <= ALWAYS_DENSE || work / 4 + 2 * q->factor <= q->most * separate);
    if (asked) {
        if (!missing && strcmp(asked, "sparse") == 0) q->dense = !q->analysed;
        if (strcmp(asked, "dense") == 0) q->dense = true;
        q->taken = strcmp(asked, "separate") != 0;
    }
    q->work = (q->dense ? dense_work : work) + 4 * q->factor;
    q->time = q->taken ? work / 4 + 2 * q->factor : separate;
    char *text = room(400);
    snprintf(text, 400, "%s: %ld elements, %ld entries, %.3g in the factor, %.2g multiply-adds a draw: %s%s%s", q->text, n, q->entries,
             q->factor, work,
             !q->taken  ? "drawn one after the other"
             : q->dense ? "drawn jointly, dense"
                        : "drawn jointly, sparse",
             missing ? "; " : "", missing ? missing : "");
    free(q->text);
    q->text = text;
}

static void choose_with_rows(Pattern *q, const char *asked, double all_pairs)
{
    const double n = (double)q->n, never = NEVER;
    double work = 0;
    const bool small = q->n == 0 || (q->n <= ALWAYS_DENSE && !asked);
    const char *missing = small ? NULL : open_cholmod();
    q->analysed = !small && q->pairs >= 0 && !q->parts && !missing && (asked || !is_full(q, refused_block(INFINITY))) &&
                  analyse(q, &work, NULL) && q->factor <= MOST_FACTOR;
    q->direct = q->analysed || (q->parts && q->n <= MOST_DIRECT);
    q->factor_time = q->parts ? n * n * n / 60 + (double)q->rows * n * n / 20
                              : work / 8 + (2 + 4 * (double)q->napart) * q->factor + 2 * (double)q->pairs + 4 * (double)q->terms + 20 * n;
    const double full = full_time(q, all_pairs), dense = q->n <= MOST_DENSE && !q->parts ? full : never,
                 factor = q->analysed ? q->factor_time : never, gradients = q->diagonal ? GUESSED_STEPS * q->update_time : never,
                 few = q->listed ? never : few_time(q), least = fmin(fmin(dense, factor), fmin(gradients, few));
    q->dense = small || dense <= least;
    q->gradients = !q->dense && q->diagonal && gradients <= factor;
    q->only_gradients = false;
    q->taken = small || q->listed || (least < never && few > least);
    if (asked) {
        q->dense = !q->parts && (strcmp(asked, "dense") == 0 || (!q->diagonal && !q->analysed));
        q->only_gradients = strcmp(asked, "gradients") == 0 && q->diagonal;
        q->gradients = !q->dense && (q->only_gradients || !q->analysed);
        q->taken = strcmp(asked, "separate") != 0;
    }
    q->work = 4 * (q->dense ? full : q->factor_time);
    q->time = !q->taken ? fmin(few, full) : q->dense ? full : q->gradients ? gradients : factor;
    char *text = room(900);
    int at = say_rows(text, q);
    if (q->napart) at += snprintf(text + at, 900 - (size_t)at, ", %ld of them apart", q->napart);
    const struct {
        const char *name;
        double time;
    } route[] = {{"dense", dense}, {"a factor", factor}, {"conjugate gradients", gradients}, {"few rows", few}};
    const char *before = "; predicted: ";
    for (int k = 0; k < 4; k++) {
        if (route[k].time == never) continue;
        at += snprintf(text + at, 900 - (size_t)at, "%s%s %.2g ms", before, route[k].name, route[k].time / 1e6);
        before = ", ";
        if (k == 1) at += snprintf(text + at, 900 - (size_t)at, " (%.3g entries)", q->factor);
        if (k == 2) at += snprintf(text + at, 900 - (size_t)at, " (%d steps)", GUESSED_STEPS);
    }
    snprintf(text + at, 900 - (size_t)at, ": %s%s%s",
             !q->taken      ? "drawn by other updates"
             : q->dense     ? "drawn jointly, dense"
             : q->gradients ? "drawn jointly, by conjugate gradients"
                            : "drawn jointly, sparse",
             missing ? "; " : "", missing ? missing : "");
    free(q->text);
    q->text = text;
}

// In ns: tiles that wait for each other forward and back, tiles read and written, updates, which fill the GPU, and the terms (measured:
// tests/bench/gpu.py field).
static double time_of_tiles(const Pattern *q, const GmTiles *t)
{
    return 25e3 + 8.5e3 * t->height + 1e3 * t->longest + 6.0 * (double)t->stored + 6.5 * (double)t->updates + 0.1 * (double)q->terms;
}

// As refused_block, in tiles.
static long refused_block_on_gpu(double most_updates, double most_time)
{
    long k = MOST_DENSE / DENSE_TILE;
    for (;; k++) {
        const double m = (double)k, updates = m * m * m / 6;
        if (updates > most_updates || 25e3 + 8.5e3 * m + 6.5 * updates > most_time) return k * DENSE_TILE;
    }
}

// The route of a block without rows on a GPU: by tiles of the factor, in the order of the elements where it is nearly full, or else in the
// better one of CHOLMOD's minimum degree and nested dissection; or other updates.
static void choose_on_gpu(Pattern *q, const char *asked)
{
    static const double most_updates = 4e6;
    const long n = q->n;
    const double dense_work = (double)n * (double)n * (double)n / 3, separate = 60e3 + 0.1 * (double)q->terms;
    double work = dense_work;
    const bool small = n <= ALWAYS_DENSE || (asked && strcmp(asked, "dense") == 0);
    const char *missing = small ? NULL : open_cholmod();
    const long refused = refused_block_on_gpu(most_updates, q->most / 4 * separate);
    gm_tiles_close(q->tiles);
    q->tiles = NULL;
    if (!asked && is_full(q, refused)) {
        q->analysed = q->dense = q->taken = false;
        q->time = separate;
        say_full(q, refused);
        return;
    }
    q->analysed = !small && !missing && analyse(q, &work, NULL);
    q->dense = !q->analysed || (n <= MOST_DENSE && work > 0.5 * dense_work);
    if (n > 0 && (!q->dense || (double)n * (double)n * (double)n < 6 * most_updates * DENSE_TILE * DENSE_TILE * DENSE_TILE))
        q->tiles = gm_tiles_open(n, q->first, q->row, q->dense ? NULL : order_of(q), most_updates);
    if (!q->dense && work < 1e5 * most_updates) dissect(q, most_updates);
    q->time = q->tiles ? time_of_tiles(q, q->tiles) : INFINITY;
    q->taken = q->time <= q->most / 4 * separate;  // the other updates are few launches, and take less of a GPU than of a CPU
    if (asked) q->taken = q->tiles && strcmp(asked, "separate") != 0;
    if (!q->taken) q->time = separate;
    char *text = room(400);
    if (q->tiles)
        snprintf(text, 400,
                 "%s: %ld elements, %ld entries, %ld tiles of the factor of 32 x 32, %ld products of tiles a draw, %d one after the other: "
                 "%s%s%s",
                 q->text, n, q->entries, q->tiles->factor, q->tiles->updates, q->tiles->height,
                 q->taken ? "drawn jointly, by tiles" : "drawn one after the other", missing ? "; " : "", missing ? missing : "");
    else
        snprintf(text, 400, "%s: %ld elements, %ld entries, too many products of tiles a draw: drawn one after the other%s%s", q->text, n,
                 q->entries, missing ? "; " : "", missing ? missing : "");
    free(q->text);
    q->text = text;
    if (q->taken) return;
    gm_tiles_close(q->tiles);
    q->tiles = NULL;
}

const GmTiles *gm_sparse_tiles(int number) { return pattern(number)->tiles; }

const int *gm_sparse_slots(int number, const int **first, const int **row)
{
    const Pattern *q = pattern(number);
    *first = q->first;
    *row = q->row;
    return q->slot;
}

static void end_pattern(Pattern *q, const char *asked, int on_gpu)
{
    q->terms = gm_entries.at;
    const long n = q->n;
    const double pairs = take_rows(q);
    double all_pairs = 0, elements = 0;
    for (long i = 0; i < q->rows; i++) {
        const double m = (double)(q->first_put[i + 1] - q->first_put[i]);
        all_pairs += m * m / 2;
    }
    for (int k = 0; k < q->parts; k++)
        for (long i = 0; i < q->rows; i++) elements += q->part[k].x[i] ? (double)q->part[k].p : 0;
    q->update_time = 2 * (double)q->puts + 0.3 * elements + 4 * (double)n;
    if (n >= INT_MAX / 2 || q->terms + n >= INT_MAX / 2 || q->puts >= INT_MAX) {
        fprintf(stderr, "the joint normal of %s has too many terms: %ld\n", q->text, q->terms + q->puts);
        exit(2);
    }
    q->diagonal = true;
    for (long k = 0; k < q->terms; k++) q->diagonal &= noted.row[k] == noted.column[k];
    if (q->may_be_listed && !list_rows(q, asked, all_pairs)) return;
    for (long i = 0; i < n; i++) note(i, i);  // an element without a term has a pivot of 0, which is a fault that names it
    if (pairs > MOST_PAIRS) q->pairs = -1;
    for (long i = 0; i < q->rows && q->pairs >= 0; i++)
        for (long k = q->first_put[i]; k < q->first_put[i + 1] && !q->apart[i]; k++)
            for (long l = k; l < q->first_put[i + 1]; l++, q->pairs++) note(q->column[k], q->column[l]);
    make_slots(q);
    while (q->record) {
        Record *next = q->record->next;
        free(q->record);
        q->record = next;
    }
    q->gradients = q->only_gradients = false;
    if (on_gpu) choose_on_gpu(q, asked);
    else if (q->rows) choose_with_rows(q, asked, all_pairs);
    else choose_plain(q, asked);
    q->version++;
}

void gm_pattern_end(int number, int on_gpu)
{
    Pattern *q = pattern(number);
    end_pattern(q, asked_route(), on_gpu);
    if (q->taken || on_gpu || fits(q)) return;
    fprintf(stderr, "%s; the arrays of these have %.3g GB\n", q->text, q->bytes / 1e9);
    exit(6);  // GM_EXIT_MEMORY
}

int gm_list_begin(int number, long n, const char *name)
{
    Pattern *q = pattern(number);
    gm_pattern_begin(number, n, 0, name);
    q->may_be_listed = true;
    q->listed = q->taken = false;
    if (n > ALWAYS_DENSE || asked_route()) return 1;
    snprintf(q->text, 400, "%s: %ld elements: drawn dense", name, n);
    return 0;
}

void gm_list_end(int number, int weighted)
{
    Pattern *q = pattern(number);
    q->weighted = weighted;
    if (q->n > ALWAYS_DENSE || asked_route()) end_pattern(q, asked_route(), 0);
}

void gm_list_on_gpu(int number, long n, const char *name)
{
    Pattern *q = pattern(number);
    gm_pattern_in_turn(number, n, name);
    q->listed = q->taken = false;
    snprintf(q->text, 400, "%s: %ld elements: drawn dense, as always on a GPU%s", name, n,
             getenv("GM_JOINT") ? "; GM_JOINT is for CPUs" : "");
}

static bool guessed;

// Before any of it is set up.
static const Pattern *known(int number)
{
    const Pattern *q = pattern(number);
    if (!q->text) guessed = true;
    return q;
}

int gm_sparse_guessed(void)
{
    const bool was = guessed;
    guessed = false;
    return was;
}

static bool evaluated;

int gm_rows_listed(int number) { return known(number)->listed; }
int gm_rows_listed_alone(int number) { return pattern(number)->listed && !evaluated; }
void gm_rows_evaluated(void) { evaluated = true; }

static bool checked;  // all routes are drawn

void gm_sparse_stand_in(int number, double bytes) { pattern(number)->bytes = bytes; }

void gm_sparse_checked(void) { checked = true; }

int gm_sparse_replaced(int number) { return !pattern(number)->taken || (checked && fits(pattern(number))); }

double gm_sparse_time(int number) { return known(number)->time; }

int gm_sparse_taken(int number) { return known(number)->taken; }

int gm_sparse_blocks(void) { return MOST_BLOCKS; }

const char *gm_sparse_route(int number)
{
    if (number < 1 || number > MOST_BLOCKS) return NULL;
    Pattern *q = &patterns[number - 1];
    long draws = 0, steps = 0, solved = 0;
    for (const Record *r = q->record; r; r = r->next) {
        draws += r->draws;
        steps += r->steps;
        solved += r->solved;
    }
    if (!draws) return q->text;
    static char text[1000];
    snprintf(text, sizeof text, "%s; %.1f iterations for each of %ld solutions, %ld draws by the factor", q->text,
             solved ? (double)steps / (double)solved : 0, solved, draws - solved);
    return text;
}

// ---- numbers ----

#ifdef HAS_CHOLMOD
static void start(cholmod_common *c)
{
    lib.cholmod_start(c);
    c->print = 0;
    c->final_ll = 1;
    c->error_handler = NULL;
}

static cholmod_sparse matrix_of(const Pattern *q, double *value)
{
    return (cholmod_sparse){.nrow = (size_t)q->n,
                            .ncol = (size_t)q->n,
                            .nzmax = (size_t)q->entries,
                            .p = q->first,
                            .i = q->row,
                            .x = value,
                            .stype = -1,
                            .itype = CHOLMOD_INT,
                            .xtype = value ? CHOLMOD_REAL : CHOLMOD_PATTERN,
                            .dtype = CHOLMOD_DOUBLE,
                            .sorted = 1,
                            .packed = 1};
}

static cholmod_dense vector_of(long n, double *x)
{
    return (cholmod_dense){
        .nrow = (size_t)n, .ncol = 1, .nzmax = (size_t)n, .d = (size_t)n, .x = x, .xtype = CHOLMOD_REAL, .dtype = CHOLMOD_DOUBLE};
}
#endif

// order: the elements as they are to stand; NULL: as CHOLMOD finds best.
static bool analyse(Pattern *q, double *work, const int *order)
{
#ifdef HAS_CHOLMOD
    static cholmod_common common;
    static bool started;
    if (!started) start(&common);
    started = true;
    if (q->symbolic) lib.cholmod_free_factor(&q->symbolic, &common);
    gm_simplicial_close(q->columns);
    q->columns = NULL;
    cholmod_sparse A = matrix_of(q, NULL);
    common.nmethods = order ? 1 : 0;
    common.method[0].ordering = order ? CHOLMOD_GIVEN : CHOLMOD_AMD;
    common.postorder = !order;
    q->symbolic = order ? lib.cholmod_analyze_p(&A, (int *)order, NULL, 0, &common) : lib.cholmod_analyze(&A, &common);
    if (!q->symbolic) return false;
    *work = common.fl / 2;
    q->factor = common.lnz;
    if (!q->symbolic->is_super && common.lnz < MOST_SIMPLICIAL) q->columns = gm_simplicial_open(q->n, q->first, q->row, q->symbolic->Perm);
    return true;
#else
    (void)q;
    (void)work;
    (void)order;
    return false;
#endif
}

// The order of what was analysed.
static const int *order_of(const Pattern *q)
{
#ifdef HAS_CHOLMOD
    return q->symbolic->Perm;
#else
    (void)q;
    return NULL;
#endif
}

// Tiles in the order of nested dissection, where these take less time: fewer columns wait for each other. CHOLMOD may be built without
// METIS.
static void dissect(Pattern *q, double most_updates)
{
#ifdef HAS_CHOLMOD
    cholmod_common common;
    start(&common);
    cholmod_sparse A = matrix_of(q, NULL);
    common.nmethods = 1;
    common.method[0].ordering = CHOLMOD_METIS;
    cholmod_factor *L = lib.cholmod_analyze(&A, &common);
    GmTiles *t = L ? gm_tiles_open(q->n, q->first, q->row, L->Perm, most_updates) : NULL;
    if (t && (!q->tiles || time_of_tiles(q, t) < time_of_tiles(q, q->tiles))) {
        GmTiles *other = q->tiles;
        q->tiles = t;
        t = other;
    }
    gm_tiles_close(t);
    if (L) lib.cholmod_free_factor(&L, &common);
    lib.cholmod_finish(&common);
    double work;
    if (q->tiles) q->analysed = analyse(q, &work, q->tiles->element);
#else
    (void)q;
    (void)most_updates;
#endif
}

static Numbers *numbers(int number)
{
    const Pattern *q = pattern(number);
    Numbers *m = numbers_of[number - 1];
    if (!m) {
        m = calloc(1, sizeof *m);
        if (!m) no_room();
        pthread_mutex_lock(&lock);
        m->next = all_numbers;
        all_numbers = m;
        pthread_mutex_unlock(&lock);
        numbers_of[number - 1] = m;
    }
    if (m->version == q->version) return m;
    m->version = q->version;
    free(m->value);
    free(m->dense);
    free(m->vector);
    free(m->kept);
    free(m->put);
    free(m->solving);
    free(m->factored);
    free(m->columns);
    free(m->work);
    free(m->root);
    m->has_factor = false;
    m->kept = m->dense = m->solving = m->factored = m->columns = m->work = NULL;
    m->root = room(sizeof(double) * 3 * (size_t)q->rows);
    m->target = m->root + q->rows;
    m->of_rows = m->target + q->rows;
    m->put = room(sizeof(double) * (size_t)q->puts);
    m->value = room(sizeof(double) * (size_t)q->entries);
    m->vector = room(sizeof(double) * (size_t)q->n);
    if (q->dense) m->dense = room(sizeof(double) * (size_t)(q->n * q->n));
#ifdef HAS_CHOLMOD
    else if (q->analysed && q->columns) {
        m->columns = room(sizeof(double) * (size_t)q->columns->entries);
        m->work = room(sizeof(double) * (size_t)q->n);
    } else if (q->analysed) {
        if (!m->started) start(&m->common);
        m->started = true;
#ifdef M_TRIM_THRESHOLD
        mallopt(M_TRIM_THRESHOLD, 1 << 28);  // CHOLMOD asks for its work space in each draw: it is not to go back to the system
        mallopt(M_MMAP_THRESHOLD, 1 << 25);
#endif
        pthread_mutex_lock(&lock);
        if (m->factor) lib.cholmod_free_factor(&m->factor, &m->common);
        m->factor = lib.cholmod_copy_factor(q->symbolic, &m->common);
        pthread_mutex_unlock(&lock);
        if (!m->factor) no_room();
    }
#endif
    return m;
}

void gm_sparse_begin(int number, int chain)
{
    const Pattern *q = pattern(number);
    Numbers *m = numbers(number);
    m->chain = chain;
    m->complete = false;
    memset(m->value, 0, sizeof(double) * (size_t)q->entries);
    gm_entries = (GmEntries){.slot = q->slot,
                             .value = m->value,
                             .count = q->terms,
                             .put = m->put,
                             .puts = q->puts,
                             .roots = m->root,
                             .targets = m->target,
                             .rows = q->rows};
}

static GmRows rows_of(const Pattern *q, const Numbers *m)
{
    return (GmRows){q->rows, q->first_put, q->column, m->put, m->root, q->part, q->parts};
}

// h[n] gets what rows have as their targets.
static void finish_collecting(const Pattern *q, Numbers *m, double *h)
{
    if (!gm_entries.value) return;
    // never: guards and ranges of such a block hold data alone
    if (gm_entries.at != q->terms || gm_entries.put_at != q->puts || gm_entries.row_at != q->rows) {
        fprintf(stderr, "the terms of a joint normal have changed from %ld and %ld to %ld and %ld; please report this\n", q->terms, q->puts,
                gm_entries.at, gm_entries.put_at);
        exit(2);
    }
    for (long j = 0; j < q->n; j++) m->value[q->first[j]] *= 2;
    gm_entries = (GmEntries){0};
    if (!q->listed) return;
    const GmRows R = rows_of(q, m);
    gm_rows_added(&R, m->target, h);
}

#ifdef HAS_CHOLMOD
// The rows that are not apart, to the values.
static void complete(const Pattern *q, Numbers *m)
{
    const int *slot = q->slot + q->terms + q->n;
    for (long i = 0; i < q->rows; i++)
        for (long k = q->first_put[i]; k < q->first_put[i + 1] && !q->apart[i]; k++)
            for (long l = k; l < q->first_put[i + 1]; l++) {
                const double v = m->put[k] * m->put[l];
                m->value[*slot++] += k != l && q->column[k] == q->column[l] ? 2 * v : v;
            }
    m->complete = true;
}
#endif

// Rows that have parts, some written out at a time.
static void add_rows_dense(const Pattern *q, Numbers *m)
{
    enum { AT_ONCE = 256 };
    const long n = q->n;
    const GmRows R = rows_of(q, m);
    double *rows = room(sizeof *rows * (size_t)(AT_ONCE * n)), *sum = room(sizeof *sum * (size_t)(n * n));
    for (long from = 0; from < q->rows; from += AT_ONCE) {
        const long some = q->rows - from < AT_ONCE ? q->rows - from : AT_ONCE;
        memset(rows, 0, sizeof *rows * (size_t)(some * n));
        for (long i = 0; i < some; i++) {
            gm_row_added(&R, from + i, 1, rows + i * n);
            for (int k = 0; k < q->parts; k++)
                for (long j = 0; j < q->part[k].p && q->part[k].x[from + i]; j++)
                    rows[i * n + q->part[k].at + j] += m->root[from + i] * q->part[k].x[from + i][j];
        }
        gram_matrix(some, n, 1, rows, sum);
        for (long e = 0; e < n * n; e++) m->dense[e] += sum[e];
    }
    free(rows);
    free(sum);
}

static void make_dense(const Pattern *q, Numbers *m)
{
    const long n = q->n;
    if (!m->dense) m->dense = room(sizeof(double) * (size_t)(n * n));
    memset(m->dense, 0, sizeof(double) * (size_t)(n * n));
    for (long j = 0; j < n; j++)
        for (long k = q->first[j]; k < q->first[j + 1]; k++) m->dense[j * n + q->row[k]] = m->dense[q->row[k] * n + j] = m->value[k];
    if (q->parts) {
        add_rows_dense(q, m);
        return;
    }
    for (long i = 0; i < q->rows; i++) {
        if (m->complete && !q->apart[i]) continue;
        for (long k = q->first_put[i]; k < q->first_put[i + 1]; k++)
            for (long l = q->first_put[i]; l < q->first_put[i + 1]; l++) m->dense[q->column[k] * n + q->column[l]] += m->put[k] * m->put[l];
    }
}

#ifdef HAS_CHOLMOD
// Entry k of the diagonal of the factor; columns come in order, and `super` goes along.
static double pivot_of(const Pattern *q, const Numbers *m, long k, long *super)
{
    if (q->columns) return m->columns[q->columns->first[k]];
    const cholmod_factor *L = m->factor;
    const double *x = L->x;
    if (!L->is_super) return x[((const int *)L->p)[k]];
    const int *first = L->super, *rows = L->pi, *at = L->px;
    while (first[*super + 1] <= k) ++*super;
    const long height = rows[*super + 1] - rows[*super], j = k - first[*super];
    return x[at[*super] + j * height + j];
}

// Pivots that have lost all digits: as with dense matrices. Element of x, from 1, or 0.
static long lost_pivot(const Pattern *q, const Numbers *m)
{
    const int *order = order_of(q);
    if (!q->columns && m->factor->minor < m->factor->n) return order[m->factor->minor] + 1;
    for (long k = 0, s = 0; k < q->n; k++) {
        const double pivot = pivot_of(q, m, k, &s), old = m->value[q->first[order[k]]];
        if (!(pivot > 0) || !isfinite(pivot) || pivot * pivot < GM_PIVOT_LOST * old) return order[k] + 1;
    }
    return 0;
}

// 0, or as gm_normal_sparse.
static long factor_once(const Pattern *q, Numbers *m)
{
    if (q->columns) {
        memset(m->work, 0, sizeof(double) * (size_t)q->n);
        const long bad = gm_simplicial_factor(q->columns, m->value, m->columns, m->work);
        return bad ? order_of(q)[bad - 1] + 1 : lost_pivot(q, m);
    }
    cholmod_sparse A = matrix_of(q, m->value);
    return lib.cholmod_factorize(&A, m->factor, &m->common) ? lost_pivot(q, m) : 1;
}

// Factors the values, unless they are those that were factored last: scales may have been drawn from these. Where rows are apart it may be
// singular without them, as an intrinsic field without data is: pivots that are lost get their diagonal once more, which draw_apart takes
// back; as many as there are such rows. A chain that has lost some goes on so. 0, or as gm_normal_sparse.
static long factor_values(const Pattern *q, Numbers *m, Record *r)
{
    const size_t bytes = sizeof(double) * (size_t)q->entries;
    if (m->has_factor && m->factored_chain == m->chain && memcmp(m->factored, m->value, bytes) == 0) return 0;
    m->has_factor = false;
    for (long k = 0; k < q->entries; k++)
        if (!isfinite(m->value[k])) return q->row[k] + 1;
    for (;;) {
        for (int i = 0; r && i < r->npushed; i++) m->value[q->first[r->pushed[i]]] *= 2;
        const long bad = factor_once(q, m);
        for (int i = 0; r && i < r->npushed; i++) m->value[q->first[r->pushed[i]]] /= 2;
        if (!bad) break;
        if (!r || r->npushed == q->napart || !(m->value[q->first[bad - 1]] > 0)) return bad;
        for (int i = 0; i < r->npushed; i++)
            if (r->pushed[i] == bad - 1) return bad;
        r->pushed[r->npushed++] = (int)(bad - 1);
    }
    if (!m->factored) m->factored = room(bytes);
    memcpy(m->factored, m->value, bytes);
    m->has_factor = true;
    m->factored_chain = m->chain;
    return 0;
}

// CHOLMOD_P: into the order of the factor, CHOLMOD_Pt: out of it; CHOLMOD_A: all of J x = b.
static bool solve_with(const Pattern *q, Numbers *m, int what, double *x, long n)
{
    if (q->columns) {
        const bool all = what == CHOLMOD_A;
        const int *order = order_of(q);
        if (all || what == CHOLMOD_P) {
            for (long k = 0; k < n; k++) m->work[k] = x[order[k]];
            memcpy(x, m->work, sizeof *x * (size_t)n);
        }
        if (all || what == CHOLMOD_L) gm_simplicial_solve(q->columns, m->columns, x);
        if (all || what == CHOLMOD_Lt) gm_simplicial_solve_transposed(q->columns, m->columns, x);
        if (all || what == CHOLMOD_Pt) {
            for (long k = 0; k < n; k++) m->work[order[k]] = x[k];
            memcpy(x, m->work, sizeof *x * (size_t)n);
        }
        return true;
    }
    cholmod_dense b = vector_of(n, x);
    if (!lib.cholmod_solve2(what, m->factor, &b, NULL, &m->x, NULL, &m->y, &m->e, &m->common)) return false;
    memcpy(x, m->x->x, sizeof *x * (size_t)n);
    return true;
}
#endif

static double noise_of(const Stream *g, long k)
{
    if (g->has_spare == GM_NO_NOISE) return 0;
    Stream part = stream_part(g, (uint64_t)k);
    return normal_standard(&part);
}

// ---- by a factor ----

static Record *record_of(Pattern *q, int chain)
{
    pthread_mutex_lock(&lock);
    Record *r = q->record;
    while (r && r->chain != chain) r = r->next;
    if (!r) {
        r = calloc(1, sizeof *r);
        if (!r) no_room();
        r->chain = chain;
        r->next = q->record;
        q->record = r;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

#ifdef HAS_CHOLMOD
// *exponent, unless it is NULL: h'J^-1 h/2 - log|J|/2, and no draw. x from the factor L L' = P B P' where J = B + U S U'. U has the rows
// that are apart, of sign 1, and columns with one element, of sign -1, for what was added to pivots that were lost. Let L^-1 P U = Q R, Q'Q
// = I, and T = I + R S R' = G G'. Then J^-1 = P'L'^-1 (I + Q (T^-1 - I) Q') L^-1 P, of which I + Q (G'^-1 - I) Q' is a root.
static long draw_apart(Stream *g, const Pattern *q, Numbers *m, const Record *r, const double *h, double *x, GmScale *scale,
                       double *exponent)
{
    const long n = q->n, K = q->napart + r->npushed;
    const GmRows rows = rows_of(q, m);
    const Stream parts = *g;
    double *Q = room(sizeof *Q * (size_t)(K * n)), *R = calloc((size_t)(K * K), sizeof *R), *T = room(sizeof *T * (size_t)(K * K)),
           *a = room(sizeof *a * (size_t)(2 * K)), *b = a + K;
    double *mean = room(sizeof *mean * (size_t)n), *z = m->vector, quadratic = 0;
    if (!R) no_room();
    memset(Q, 0, sizeof *Q * (size_t)(K * n));
    bool good = true;
    long k = 0;
    for (long i = 0; i < q->rows; i++)
        if (q->apart[i]) gm_row_added(&rows, i, 1, Q + k++ * n);
    for (int i = 0; i < r->npushed; i++) Q[k++ * n + r->pushed[i]] = sqrt(m->value[q->first[r->pushed[i]]]);
    for (k = 0; k < K && good; k++) {
        double *v = Q + k * n, norm = 0;
        good = solve_with(q, m, CHOLMOD_P, v, n) && solve_with(q, m, CHOLMOD_L, v, n);
        for (int again = 0; again < 2; again++)  // Gram and Schmidt, twice for the digits
            for (long l = 0; l < k; l++) {
                double c = 0;
                for (long j = 0; j < n; j++) c += Q[l * n + j] * v[j];
                for (long j = 0; j < n; j++) v[j] -= c * Q[l * n + j];
                R[l * K + k] += c;
            }
        for (long j = 0; j < n; j++) norm += v[j] * v[j];
        R[k * K + k] = norm = sqrt(norm);
        for (long j = 0; j < n; j++) v[j] = norm > 0 ? v[j] / norm : 0;
    }
    for (k = 0; k < K; k++)
        for (long l = 0; l <= k; l++) {
            double sum = k == l;
            for (long i = k; i < K; i++) sum += (i < q->napart ? 1 : -1) * R[k * K + i] * R[l * K + i];
            T[k * K + l] = sum;
        }
    for (k = 0; k < K && good; k++)  // G
        for (long l = 0; l <= k; l++) {
            double sum = T[k * K + l];
            for (long i = 0; i < l; i++) sum -= T[k * K + i] * T[l * K + i];
            good = good && (k != l || sum > 0);
            T[k * K + l] = k == l ? sqrt(sum) : sum / T[l * K + l];
        }
    memcpy(mean, h, sizeof *mean * (size_t)n);
    good = good && solve_with(q, m, CHOLMOD_P, mean, n) && solve_with(q, m, CHOLMOD_L, mean, n);
    for (long j = 0; j < n; j++) z[j] = noise_of(&parts, j);
    for (int of_mean = 0; of_mean < 2 && good; of_mean++) {
        double *v = of_mean ? mean : z;
        for (long j = 0; j < n; j++) quadratic += of_mean ? v[j] * v[j] : 0;
        for (k = 0; k < K; k++) {
            a[k] = 0;
            for (long j = 0; j < n; j++) a[k] += Q[k * n + j] * v[j];
            b[k] = a[k];
            for (long i = 0; i < k && of_mean; i++) b[k] -= T[k * K + i] * b[i];
            if (of_mean) b[k] /= T[k * K + k];
        }
        for (k = K - 1; k >= 0; k--) {
            for (long i = k + 1; i < K; i++) b[k] -= T[i * K + k] * b[i];
            b[k] /= T[k * K + k];
            for (long j = 0; j < n; j++) v[j] += (b[k] - a[k]) * Q[k * n + j];
            quadratic += of_mean ? a[k] * (b[k] - a[k]) : 0;
        }
    }
    if (exponent) {
        *exponent = quadratic / 2;
        for (long j = 0, super = 0; j < n; j++) *exponent -= log(pivot_of(q, m, j, &super));
        for (k = 0; k < K && good; k++) *exponent -= log(T[k * K + k]);
    }
    if (good && scale) {
        const double rest = scale->Q - quadratic;
        scale->scale = rest > 0 && scale->count > 0 ? sqrt(gamma_shape_rate(g, scale->count / 2, rest / 2)) : 1;
    }
    for (long j = 0; j < n; j++) z[j] += (scale ? scale->scale : 1) * mean[j];
    good = good && (exponent || (solve_with(q, m, CHOLMOD_Lt, z, n) && solve_with(q, m, CHOLMOD_Pt, z, n)));
    if (good && !exponent) memcpy(x, z, sizeof *x * (size_t)n);
    free(Q);
    free(R);
    free(T);
    free(a);
    free(mean);
    return good ? 0 : 1;
}
#endif

// ---- conjugate gradients ----

// x = J^-1 b by a factor, sparse or dense, of the same numbers; b is destroyed. false: there is none.
static bool solved_directly(const Pattern *q, Numbers *m, Record *r, double *b, double *x)
{
    Stream none = {0};
    none.has_spare = GM_NO_NOISE;
    if (!q->direct) return false;
    if (!q->analysed) {
        make_dense(q, m);
        const bool good = gm_normal_dense(&none, q->n, m->dense, b, x, NULL) == 0;
        free(m->dense);
        m->dense = NULL;
        return good;
    }
#ifdef HAS_CHOLMOD
    if (!m->complete) complete(q, m);
    if (factor_values(q, m, q->napart ? r : NULL)) return false;
    if (q->napart) return draw_apart(&none, q, m, r, b, x, NULL, NULL) == 0;
    memcpy(x, b, sizeof *x * (size_t)q->n);
    return solve_with(q, m, CHOLMOD_A, x, q->n);
#else
    (void)r;
    return false;
#endif
}

// From b to x: *steps more iterations. false: it was not close enough.
static bool solved(const GmRows *R, const Pattern *q, const double *D, const double *M, const double *b, double *x, double *work, long most,
                   long *steps)
{
    const long taken = gm_conjugate_gradients(R, q->n, D, M, b, x, work, most);
    *steps += taken < 0 ? most : taken;
    return taken >= 0;
}

// The draw by conjugate gradients. If they do not come close enough the same b is solved for by a factor: whether they do may depend on its
// noise, of which the draw then is the same function. GM_NOT_SOLVED: there is none; GM_FOR_FACTOR: this draw is better made by it, h is as
// it was.
static long draw_by_gradients(Stream *g, Pattern *q, Numbers *m, const double *h, double *x, GmScale *scale)
{
    const long n = q->n;
    Record *const r = record_of(q, m->chain);
    const long draw = r->draws++;
    const bool trial = draw < FIRST_DRAWS || draw % AGAIN == 0;
    const int by = draw < FIRST_DRAWS ? (int)(draw & 1) : trial ? (int)(draw / AGAIN & 1) : r->mean[1] < r->mean[0];
    if (!trial && q->direct && !q->only_gradients && r->mean[by] * q->update_time > q->factor_time) return GM_FOR_FACTOR;
    // no more iterations than these: then there is the factor
    const double worth = 20 + 4 * q->factor_time / (q->update_time + 1);
    const long most = q->direct && worth < MOST_STEPS ? (long)worth : MOST_STEPS;
    if (!m->solving) m->solving = room(sizeof(double) * 8 * (size_t)n);
    double *D = m->solving, *J = D + n, *b = J + n, *mean = b + n, *work = mean + n;
    const GmRows R = rows_of(q, m);
    for (long j = 0; j < n; j++) {
        D[j] = m->value[q->first[j]];
        if (D[j] == 0 && q->direct) return GM_FOR_FACTOR;  // rows alone know of it: whether they suffice is what a factor sees
        if (!(D[j] > 0) || !isfinite(D[j])) return j + 1;
    }
    gm_rows_diagonal(&R, n, D, J);
    const Stream parts = *g;
    for (long j = 0; j < n; j++) b[j] = sqrt(D[j]) * noise_of(&parts, j);
    for (long i = 0; i < q->rows; i++) m->of_rows[i] = noise_of(&parts, n + i);
    gm_rows_added(&R, m->of_rows, b);
    long steps = 0;
    bool good = true, by_factor = false;
    double rest = 0;
    if (scale) {  // as in linalg.h; the mean by itself
        memset(mean, 0, sizeof *mean * (size_t)n);
        good = solved(&R, q, D, by ? J : D, h, mean, work, most, &steps);
        if (!good) {
            by_factor = true;
            memcpy(work, h, sizeof *work * (size_t)n);
            if (!solved_directly(q, m, r, work, mean)) return GM_NOT_SOLVED;
        }
        rest = scale->Q;
        for (long j = 0; j < n; j++) rest -= h[j] * mean[j];
        Stream own = *g;
        scale->scale = rest > 0 && scale->count > 0 ? sqrt(gamma_shape_rate(&own, scale->count / 2, rest / 2)) : 1;
        memset(x, 0, sizeof *x * (size_t)n);
    } else {
        bool finite = true;
        for (long j = 0; j < n; j++) {
            b[j] += h[j];
            finite &= isfinite(x[j]) != 0;
        }
        if (!finite) memset(x, 0, sizeof *x * (size_t)n);
    }
    good = good && solved(&R, q, D, by ? J : D, b, x, work, most, &steps);
    if (!good) {
        by_factor = true;
        if (!solved_directly(q, m, r, b, x)) return GM_NOT_SOLVED;
    }
    const double counted = good ? (double)steps : 2.0 * (double)steps;
    r->mean[by] = r->mean[by] > 0 ? 0.8 * r->mean[by] + 0.2 * counted : counted;
    if (by_factor) r->failed++;
    else {
        r->solved++;
        r->steps += steps;
    }
    for (long j = 0; j < n && scale; j++) x[j] += scale->scale * mean[j];
    stream_pass(g);
    for (long j = 0; j < n; j++)
        if (!isfinite(x[j])) return j + 1;
    return 0;
}

static long draw_sparse(Stream *g, int number, double *h, double *x, GmScale *scale)
{
    Pattern *q = pattern(number);
    Numbers *m = numbers(number);
    const long n = q->n;
    finish_collecting(q, m, h);
    for (long i = 0; i < q->rows && q->parts; i++)
        if (!isfinite(m->root[i])) return 1;
    for (long k = 0; k < q->puts; k++)
        if (!isfinite(m->put[k])) return q->column[k] + 1;
    if (q->dense) {
        make_dense(q, m);
        return gm_normal_dense(g, n, m->dense, h, x, scale);
    }
    if (q->gradients) {
        const long bad = draw_by_gradients(g, q, m, h, x, scale);
        if (bad != GM_FOR_FACTOR) return bad;
    }
    if (q->parts) {
        make_dense(q, m);
        const long bad = gm_normal_dense(g, n, m->dense, h, x, scale);
        free(m->dense);
        m->dense = NULL;
        return bad;
    }
#ifdef HAS_CHOLMOD
    const Stream parts = *g;
    complete(q, m);
    Record *const record = q->napart ? record_of(q, m->chain) : NULL;
    const long bad = factor_values(q, m, record);
    if (bad) return bad;
    if (record) {
        if (draw_apart(g, q, m, record, h, x, scale, NULL)) return 1;
    } else {
        double *v = m->vector;
        memcpy(v, h, sizeof *v * (size_t)n);
        if (!solve_with(q, m, CHOLMOD_P, v, n) || !solve_with(q, m, CHOLMOD_L, v, n)) return 1;
        if (scale) {  // as in linalg.h
            double rest = scale->Q;
            for (long k = 0; k < n; k++) rest -= v[k] * v[k];
            scale->scale = rest > 0 && scale->count > 0 ? sqrt(gamma_shape_rate(g, scale->count / 2, rest / 2)) : 1;
            for (long k = 0; k < n; k++) v[k] *= scale->scale;
        }
        for (long k = 0; k < n; k++) v[k] += noise_of(&parts, k);
        if (!solve_with(q, m, CHOLMOD_Lt, v, n) || !solve_with(q, m, CHOLMOD_Pt, v, n)) return 1;
        memcpy(x, v, sizeof *x * (size_t)n);
    }
    stream_pass(g);
    for (long i = 0; i < n; i++)
        if (!isfinite(x[i])) return i + 1;
    return 0;
#else
    return 1;
#endif
}

long gm_normal_sparse(Stream *g, int number, double *h, double *x, GmScale *scale)
{
    const int levels = omp_get_max_active_levels();
    omp_set_max_active_levels(0);  // CHOLMOD's own teams of four would spend the time on waiting for each other
    const long bad = draw_sparse(g, number, h, x, scale);
    omp_set_max_active_levels(levels);
    return bad;
}

static double marginal_sparse(int number, double *h, const double *x)
{
    Pattern *q = pattern(number);
    Numbers *m = numbers(number);
    const long n = q->n;
    finish_collecting(q, m, h);
    if (q->dense) {
        make_dense(q, m);
        return gm_marginal_dense(n, m->dense, h, x);
    }
#ifdef HAS_CHOLMOD
    complete(q, m);
    Record *const record = q->napart ? record_of(q, m->chain) : NULL;
    if (factor_values(q, m, record)) return -INFINITY;
    for (long j = 0; j < n; j++)  // h - Jx
        for (long k = q->first[j]; k < q->first[j + 1]; k++) {
            const long i = q->row[k];
            h[i] -= m->value[k] * x[j];
            if (i != j) h[j] -= m->value[k] * x[i];
        }
    const GmRows R = rows_of(q, m);
    if (q->napart) gm_rows_times(&R, x, m->of_rows);
    for (long i = 0; i < q->rows && q->napart; i++)
        if (q->apart[i]) gm_row_added(&R, i, -m->of_rows[i], h);
    if (record) {
        Stream none = {0};
        double exponent;
        none.has_spare = GM_NO_NOISE;
        return !draw_apart(&none, q, m, record, h, NULL, NULL, &exponent) && isfinite(exponent) ? exponent : -INFINITY;
    }
    double log_det = 0, quadratic = 0, *mean = m->vector;
    const int *order = order_of(q);
    for (long k = 0, s = 0; k < n; k++) {
        const double pivot = pivot_of(q, m, k, &s);
        if (pivot * pivot < GM_PIVOT_POOR * m->value[q->first[order[k]]]) return -INFINITY;
        log_det += log(pivot);
    }
    memcpy(mean, h, sizeof *mean * (size_t)n);
    if (!solve_with(q, m, CHOLMOD_A, mean, n)) return -INFINITY;
    for (long k = 0; k < n; k++) quadratic += h[k] * mean[k];
    const double v = quadratic / 2 - log_det;
    return isfinite(v) ? v : -INFINITY;
#else
    return -INFINITY;
#endif
}

double gm_marginal_sparse(int number, double *h, const double *x)
{
    const int levels = omp_get_max_active_levels();
    omp_set_max_active_levels(0);
    const double v = marginal_sparse(number, h, x);
    omp_set_max_active_levels(levels);
    return v;
}

double gm_sparse_work(int number)
{
    const Pattern *q = pattern(number);
    return q->may_be_listed ? -q->listed : q->gradients ? -1 : q->work;
}

// ---- checks ----

void gm_sparse_before(int number, double *h, const double *x)
{
    const Pattern *q = pattern(number);
    Numbers *m = numbers(number);
    finish_collecting(q, m, h);
    if (!m->kept) m->kept = room(sizeof(double) * (size_t)(2 * q->n));
    memcpy(m->kept, h, sizeof(double) * (size_t)q->n);
    memcpy(m->kept + q->n, x, sizeof(double) * (size_t)q->n);
}

long gm_sparse_dense(int number, double *h, long most, double *J)
{
    const Pattern *q = pattern(number);
    Numbers *m = numbers(number);
    const long n = q->n;
    if (n > most || q->rows > most * most / (n > 0 ? n : 1)) return 0;
    finish_collecting(q, m, h);
    for (long i = 0; i < n * n; i++) J[i] = 0;
    for (long j = 0; j < n; j++)
        for (long k = q->first[j]; k < q->first[j + 1]; k++) J[(long)q->row[k] * n + j] += m->value[k];
    const GmRows R = rows_of(q, m);
    double *column = room(sizeof *column * (size_t)(n * q->rows)), *unit = room(sizeof *unit * (size_t)n);
    for (long j = 0; j < n && q->rows > 0; j++) {
        for (long i = 0; i < n; i++) unit[i] = i == j;
        gm_rows_times(&R, unit, column + j * q->rows);
    }
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++)
            for (long r = 0; r < q->rows; r++)
                if (!m->complete || q->apart[r]) J[i * n + j] += column[i * q->rows + r] * column[j * q->rows + r];
    free(column);
    free(unit);
    return n;
}

double gm_sparse_after(int number, const double *x)
{
    const Pattern *q = pattern(number);
    const Numbers *m = numbers(number);
    const double *h = m->kept, *old = h + q->n;
    double v = 0, size = 0;
    for (long j = 0; j < q->n; j++) {  // d'(h - J m) with d = x - old, m = (x + old)/2
        const double d = x[j] - old[j], mean = (x[j] + old[j]) / 2;
        v += d * h[j];
        size += fabs(d * h[j]);
        for (long k = q->first[j]; k < q->first[j + 1]; k++) {
            const long i = q->row[k];
            const double one = d * m->value[k] * (x[i] + old[i]) / 2, other = i == j ? 0 : (x[i] - old[i]) * m->value[k] * mean;
            v -= one + other;
            size += fabs(one) + fabs(other);
        }
    }
    const GmRows R = rows_of(q, m);
    double *now_of = m->of_rows, *then_of = room(sizeof *then_of * (size_t)q->rows);
    gm_rows_times(&R, x, now_of);
    gm_rows_times(&R, old, then_of);
    for (long i = 0; i < q->rows; i++) {
        if (m->complete && !q->apart[i]) continue;
        const double now = now_of[i], then = then_of[i];
        v -= (now - then) * (now + then) / 2;
        size += now * now / 2 + then * then / 2;
    }
    free(then_of);
    gm_kept_size(size);
    return v;
}
