// sparse.c -- sparse.h over CHOLMOD (SuiteSparse: its modules Core, Cholesky and Partition are under the LGPL 2.1 or later, Supernodal and MatrixOps under the GPL 2 or later).
//
// The types are those of CHOLMOD's header, the library is opened when a program needs it: nothing is linked. Built without that header, there is the dense route alone.
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
#include "../device/gamma.h"
#include "library.h"

#if defined(__has_include)
#if __has_include(<suitesparse/cholmod.h>)
#include <suitesparse/cholmod.h>
#define HAS_CHOLMOD 1
#elif __has_include(<cholmod.h>)
#include <cholmod.h>
#define HAS_CHOLMOD 1
#endif
#endif

enum { ALWAYS_DENSE = 48, MOST_DENSE = 3000 };           // rows: up to the first, no order is worth its search; beyond the second, a dense factor takes seconds
static const double MOST_FACTOR = 1.5e8;                 // entries of a factor: 1.2 GB

static void no_room(void)
{
    fprintf(stderr, "no memory is left for the precision of a joint normal\n");
    exit(6);                                     // GM_EXIT_MEMORY
}

static void *room(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p) no_room();
    return p;
}

// ---- CHOLMOD ----

#ifdef HAS_CHOLMOD
#define CHOLMOD(X) \
    X(int, cholmod_start, (cholmod_common *)) \
    X(int, cholmod_free_factor, (cholmod_factor **, cholmod_common *)) \
    X(cholmod_factor *, cholmod_analyze, (cholmod_sparse *, cholmod_common *)) \
    X(cholmod_factor *, cholmod_copy_factor, (cholmod_factor *, cholmod_common *)) \
    X(int, cholmod_factorize, (cholmod_sparse *, cholmod_factor *, cholmod_common *)) \
    X(int, cholmod_solve2, (int, cholmod_factor *, cholmod_dense *, cholmod_sparse *, cholmod_dense **, cholmod_sparse **, cholmod_dense **, cholmod_dense **, cholmod_common *))

static struct {
#define X(type, name, args) type (*name) args;
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

typedef struct Pattern {                 // of one block: the same for all chains
    long    n, terms, entries;
    int    *slot;                        // of each term
    int    *first, *row;                 // of the lower triangle, by columns: rows first[j] .. first[j + 1] - 1, the diagonal first
    bool    dense, taken;
    double  most;                        // a joint draw that costs more than so many separate ones gives way to these
    double  factor;                      // entries of the factor
    cholmod_factor *symbolic;
    int     version;
    char   *text;
} Pattern;

typedef struct Numbers {                 // of one block, of one thread
    int     version;                     // of the pattern that they belong to
    double *value, *dense, *vector, *kept;
#ifdef HAS_CHOLMOD
    cholmod_common common;
    cholmod_factor *factor;
    cholmod_dense  *x, *y, *e;
    bool    started;
#endif
    struct Numbers *next;                // so that all can be reached
} Numbers;

enum { MOST_BLOCKS = 256 };              // with one block for each set of variables, more than programs have
static Pattern patterns[MOST_BLOCKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Numbers *all_numbers;
static _Thread_local Numbers *numbers_of[MOST_BLOCKS];
_Thread_local GmEntries gm_entries;
static struct { int *row, *column; long size; } noted;

static Pattern *pattern(int number)
{
    if (number < 1 || number > MOST_BLOCKS) {
        fprintf(stderr, "there are more than %d joint normals of several plates\n", MOST_BLOCKS);
        exit(2);
    }
    return &patterns[number - 1];
}

void gm_sparse_note(long i, long j)
{
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

void gm_pattern_begin(int number, long n, double most, const char *name)
{
    Pattern *q = pattern(number);
    q->n = n;
    q->most = most;
    free(q->text);
    q->text = room(400);
    snprintf(q->text, 400, "%s", name);
    gm_entries = (GmEntries){0};
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

static bool analyse(Pattern *q, double *work);

void gm_pattern_end(int number)
{
    Pattern *q = pattern(number);
    q->terms = gm_entries.at;
    const long n = q->n;
    if (n >= INT_MAX / 2 || q->terms + n >= INT_MAX) {
        fprintf(stderr, "the joint normal of %s has too many terms: %ld\n", q->text, q->terms);
        exit(2);
    }
    for (long i = 0; i < n; i++) {               // an element without a term has a pivot of 0, which is a fault that names it
        gm_sparse_note(i, i);
        gm_entries.at++;
    }
    const long count = gm_entries.at;
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

    const double dense_work = (double)n * (double)n * (double)n / 3, separate = 4.0 * (double)q->terms + 20.0 * (double)n;
    double work = dense_work;
    const char *asked = getenv("GM_JOINT");
    if (asked && strcmp(asked, "sparse") != 0 && strcmp(asked, "dense") != 0 && strcmp(asked, "separate") != 0) {
        fprintf(stderr, "the environment variable GM_JOINT is `%s`; it can be sparse, dense or separate\n", asked);
        exit(2);
    }
    const bool small = n == 0 || (n <= ALWAYS_DENSE && !asked);
    const char *missing = small ? NULL : open_cholmod();
    const bool analysed = !small && !missing && analyse(q, &work);
    q->dense = !analysed || (n <= MOST_DENSE && work > 0.5 * dense_work);
    if (q->dense) {
        work = dense_work;
        q->factor = (double)n * (double)(n + 1) / 2;
    }
    q->taken = q->dense ? n <= MOST_DENSE : q->factor <= MOST_FACTOR;
    q->taken = q->taken && (n <= ALWAYS_DENSE || work / 4 + 2 * q->factor <= q->most * separate);
    if (asked) {
        if (!missing && strcmp(asked, "sparse") == 0) q->dense = !analysed;
        if (strcmp(asked, "dense") == 0) q->dense = true;
        q->taken = strcmp(asked, "separate") != 0;
    }
    q->version++;
    char *text = room(400);
    snprintf(text, 400, "%s: %ld elements, %ld entries, %.3g in the factor, %.2g multiply-adds a draw: %s%s%s", q->text, n, q->entries, q->factor, work,
             !q->taken ? "drawn in turn" : q->dense ? "drawn jointly, dense" : "drawn jointly, sparse", missing ? "; " : "", missing ? missing : "");
    free(q->text);
    q->text = text;
}

int gm_sparse_taken(int number) { return pattern(number)->taken; }

const char *gm_sparse_route(int number) { return number < 1 || number > MOST_BLOCKS ? NULL : patterns[number - 1].text; }

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
    return (cholmod_sparse){.nrow = (size_t)q->n, .ncol = (size_t)q->n, .nzmax = (size_t)q->entries, .p = q->first, .i = q->row, .x = value, .stype = -1, .itype = CHOLMOD_INT,
                            .xtype = value ? CHOLMOD_REAL : CHOLMOD_PATTERN, .dtype = CHOLMOD_DOUBLE, .sorted = 1, .packed = 1};
}

static cholmod_dense vector_of(long n, double *x)
{
    return (cholmod_dense){.nrow = (size_t)n, .ncol = 1, .nzmax = (size_t)n, .d = (size_t)n, .x = x, .xtype = CHOLMOD_REAL, .dtype = CHOLMOD_DOUBLE};
}
#endif

static bool analyse(Pattern *q, double *work)
{
#ifdef HAS_CHOLMOD
    static cholmod_common common;
    static bool started;
    if (!started) start(&common);
    started = true;
    if (q->symbolic) lib.cholmod_free_factor(&q->symbolic, &common);
    cholmod_sparse A = matrix_of(q, NULL);
    q->symbolic = lib.cholmod_analyze(&A, &common);
    if (!q->symbolic) return false;
    *work = common.fl / 2;
    q->factor = common.lnz;
    return true;
#else
    (void)q;
    (void)work;
    return false;
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
    m->kept = m->dense = NULL;
    m->value = room(sizeof(double) * (size_t)q->entries);
    m->vector = room(sizeof(double) * (size_t)q->n);
    if (q->dense) m->dense = room(sizeof(double) * (size_t)(q->n * q->n));
#ifdef HAS_CHOLMOD
    else {
        if (!m->started) start(&m->common);
        m->started = true;
#ifdef M_TRIM_THRESHOLD
        mallopt(M_TRIM_THRESHOLD, 1 << 28);      // CHOLMOD asks for its work space in each draw: it is not to go back to the system
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

void gm_sparse_begin(int number)
{
    const Pattern *q = pattern(number);
    Numbers *m = numbers(number);
    memset(m->value, 0, sizeof(double) * (size_t)q->entries);
    gm_entries = (GmEntries){.slot = q->slot, .value = m->value, .count = q->terms};
}

static void finish_collecting(const Pattern *q, Numbers *m)
{
    if (!gm_entries.value) return;
    if (gm_entries.at != q->terms) {             // never: guards and ranges of such a block hold data alone
        fprintf(stderr, "the terms of a joint normal have changed from %ld to %ld; please report this\n", q->terms, gm_entries.at);
        exit(2);
    }
    for (long j = 0; j < q->n; j++) m->value[q->first[j]] *= 2;
    gm_entries = (GmEntries){0};
}

#ifdef HAS_CHOLMOD
// Pivots that have lost all digits: as with dense matrices. Element of x, from 1, or 0.
static long lost_pivot(const Pattern *q, const Numbers *m)
{
    const cholmod_factor *L = m->factor;
    const int *order = L->Perm;
    const double *x = L->x;
    if (L->minor < L->n) return order[L->minor] + 1;
    for (long k = 0, s = 0; k < q->n; k++) {
        double pivot;
        if (L->is_super) {
            const int *super = L->super, *rows = L->pi, *at = L->px;
            while (super[s + 1] <= k) s++;
            const long height = rows[s + 1] - rows[s], j = k - super[s];
            pivot = x[at[s] + j * height + j];
        } else pivot = x[((const int *)L->p)[k]];
        const double old = m->value[q->first[order[k]]];
        if (!(pivot > 0) || !isfinite(pivot) || pivot * pivot < GM_PIVOT_LOST * old) return order[k] + 1;
    }
    return 0;
}

static bool solve_with(Numbers *m, int what, double *x, long n)
{
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

static long draw_sparse(Stream *g, int number, double *h, double *x, GmScale *scale)
{
    const Pattern *q = pattern(number);
    Numbers *m = numbers(number);
    const long n = q->n;
    finish_collecting(q, m);
    if (q->dense) {
        memset(m->dense, 0, sizeof(double) * (size_t)(n * n));
        for (long j = 0; j < n; j++)
            for (long k = q->first[j]; k < q->first[j + 1]; k++) m->dense[j * n + q->row[k]] = m->dense[q->row[k] * n + j] = m->value[k];
        return gm_normal_dense(g, n, m->dense, h, x, scale);
    }
#ifdef HAS_CHOLMOD
    const Stream parts = *g;
    for (long k = 0; k < q->entries; k++)
        if (!isfinite(m->value[k])) return q->row[k] + 1;
    cholmod_sparse A = matrix_of(q, m->value);
    if (!lib.cholmod_factorize(&A, m->factor, &m->common)) return 1;
    const long bad = lost_pivot(q, m);
    if (bad) return bad;
    double *v = m->vector;
    memcpy(v, h, sizeof *v * (size_t)n);
    if (!solve_with(m, CHOLMOD_P, v, n) || !solve_with(m, CHOLMOD_L, v, n)) return 1;
    if (scale) {                                 // as in linalg.h
        double rest = scale->Q;
        for (long k = 0; k < n; k++) rest -= v[k] * v[k];
        scale->scale = rest > 0 && scale->count > 0 ? sqrt(gamma_shape_rate(g, scale->count / 2, rest / 2)) : 1;
        for (long k = 0; k < n; k++) v[k] *= scale->scale;
    }
    for (long k = 0; k < n; k++) v[k] += noise_of(&parts, k);
    if (!solve_with(m, CHOLMOD_Lt, v, n) || !solve_with(m, CHOLMOD_Pt, v, n)) return 1;
    memcpy(x, v, sizeof *x * (size_t)n);
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
    omp_set_max_active_levels(0);                // CHOLMOD's own teams of four would spend the time on waiting for each other
    const long bad = draw_sparse(g, number, h, x, scale);
    omp_set_max_active_levels(levels);
    return bad;
}

// ---- checks ----

void gm_sparse_before(int number, const double *h, const double *x)
{
    const Pattern *q = pattern(number);
    Numbers *m = numbers(number);
    finish_collecting(q, m);
    if (!m->kept) m->kept = room(sizeof(double) * (size_t)(2 * q->n));
    memcpy(m->kept, h, sizeof(double) * (size_t)q->n);
    memcpy(m->kept + q->n, x, sizeof(double) * (size_t)q->n);
}

double gm_sparse_after(int number, const double *x)
{
    const Pattern *q = pattern(number);
    const Numbers *m = numbers(number);
    const double *h = m->kept, *old = h + q->n;
    double v = 0, size = 0;
    for (long j = 0; j < q->n; j++) {            // d'(h - J m) with d = x - old, m = (x + old)/2
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
    gm_claim_size(size);
    return v;
}
