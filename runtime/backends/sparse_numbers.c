// sparse_numbers.c -- the numbers of a block, of each thread: what a sweep collects, the matrix and its factor, solutions by this.
//
// Needs: a pattern, and the route that it takes.     Gives: what sparse.c draws from.
#if defined(__has_include)
#if __has_include(<malloc.h>)
#include <malloc.h>
#endif
#endif
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sparse_inside.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Numbers *all_numbers;
static _Thread_local Numbers *numbers_of[MOST_BLOCKS];

Numbers *gm_sparse_numbers(int number)
{
    const Pattern *q = gm_sparse_pattern(number);
    Numbers *m = numbers_of[number - 1];
    if (!m) {
        m = calloc(1, sizeof *m);
        if (!m) gm_sparse_no_room();
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
    m->root = gm_sparse_room(sizeof(double) * 3 * (size_t)q->rows);
    m->target = m->root + q->rows;
    m->of_rows = m->target + q->rows;
    m->put = gm_sparse_room(sizeof(double) * (size_t)q->puts);
    m->value = gm_sparse_room(sizeof(double) * (size_t)q->entries);
    m->vector = gm_sparse_room(sizeof(double) * (size_t)q->n);
    if (q->dense) m->dense = gm_sparse_room(sizeof(double) * (size_t)(q->n * q->n));
#ifdef HAS_CHOLMOD
    else if (q->analysed && q->columns) {
        m->columns = gm_sparse_room(sizeof(double) * (size_t)q->columns->entries);
        m->work = gm_sparse_room(sizeof(double) * (size_t)q->n);
    } else if (q->analysed) {
        if (!m->started) gm_cholmod_start(&m->common);
        m->started = true;
#ifdef M_TRIM_THRESHOLD
        mallopt(M_TRIM_THRESHOLD, 1 << 28);  // CHOLMOD asks for its work space in each draw: it is not to go back to the system
        mallopt(M_MMAP_THRESHOLD, 1 << 25);
#endif
        pthread_mutex_lock(&lock);
        if (m->factor) gm_cholmod.cholmod_free_factor(&m->factor, &m->common);
        m->factor = gm_cholmod.cholmod_copy_factor(q->symbolic, &m->common);
        pthread_mutex_unlock(&lock);
        if (!m->factor) gm_sparse_no_room();
    }
#endif
    return m;
}

void gm_sparse_begin(int number, int chain)
{
    const Pattern *q = gm_sparse_pattern(number);
    Numbers *m = gm_sparse_numbers(number);
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

GmRows gm_sparse_rows(const Pattern *q, const Numbers *m)
{
    return (GmRows){q->rows, q->first_put, q->column, m->put, m->root, q->part, q->parts};
}

// h[n] gets what rows have as their targets.
void gm_sparse_collected(const Pattern *q, Numbers *m, double *h)
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
    const GmRows R = gm_sparse_rows(q, m);
    gm_rows_added(&R, m->target, h);
}

#ifdef HAS_CHOLMOD
// The rows that are not apart, to the values.
void gm_sparse_complete(const Pattern *q, Numbers *m)
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
    const GmRows R = gm_sparse_rows(q, m);
    double *rows = gm_sparse_room(sizeof *rows * (size_t)(AT_ONCE * n)), *sum = gm_sparse_room(sizeof *sum * (size_t)(n * n));
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

void gm_sparse_make_dense(const Pattern *q, Numbers *m)
{
    const long n = q->n;
    if (!m->dense) m->dense = gm_sparse_room(sizeof(double) * (size_t)(n * n));
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
double gm_sparse_pivot(const Pattern *q, const Numbers *m, long k, long *super)
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
    const int *order = gm_cholmod_order(q);
    if (!q->columns && m->factor->minor < m->factor->n) return order[m->factor->minor] + 1;
    for (long k = 0, s = 0; k < q->n; k++) {
        const double pivot = gm_sparse_pivot(q, m, k, &s), old = m->value[q->first[order[k]]];
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
        return bad ? gm_cholmod_order(q)[bad - 1] + 1 : lost_pivot(q, m);
    }
    cholmod_sparse A = gm_cholmod_matrix(q, m->value);
    return gm_cholmod.cholmod_factorize(&A, m->factor, &m->common) ? lost_pivot(q, m) : 1;
}

// Factors the values, unless they are those that were factored last: scales may have been drawn from these. Where rows are apart it may be
// singular without them, as an intrinsic field without data is: pivots that are lost get their diagonal once more, which draw_apart takes
// back; as many as there are such rows. A chain that has lost some goes on so. 0, or as gm_normal_sparse.
long gm_sparse_factor(const Pattern *q, Numbers *m, Record *r)
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
    if (!m->factored) m->factored = gm_sparse_room(bytes);
    memcpy(m->factored, m->value, bytes);
    m->has_factor = true;
    m->factored_chain = m->chain;
    return 0;
}

static cholmod_dense vector_of(long n, double *x)
{
    return (cholmod_dense){
        .nrow = (size_t)n, .ncol = 1, .nzmax = (size_t)n, .d = (size_t)n, .x = x, .xtype = CHOLMOD_REAL, .dtype = CHOLMOD_DOUBLE};
}

// CHOLMOD_P: into the order of the factor, CHOLMOD_Pt: out of it; CHOLMOD_A: all of J x = b.
bool gm_sparse_solve(const Pattern *q, Numbers *m, int what, double *x, long n)
{
    if (q->columns) {
        const bool all = what == CHOLMOD_A;
        const int *order = gm_cholmod_order(q);
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
    if (!gm_cholmod.cholmod_solve2(what, m->factor, &b, NULL, &m->x, NULL, &m->y, &m->e, &m->common)) return false;
    memcpy(x, m->x->x, sizeof *x * (size_t)n);
    return true;
}
#endif

Record *gm_sparse_record(Pattern *q, int chain)
{
    pthread_mutex_lock(&lock);
    Record *r = q->record;
    while (r && r->chain != chain) r = r->next;
    if (!r) {
        r = calloc(1, sizeof *r);
        if (!r) gm_sparse_no_room();
        r->chain = chain;
        r->next = q->record;
        q->record = r;
    }
    pthread_mutex_unlock(&lock);
    return r;
}
