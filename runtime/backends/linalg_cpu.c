// linalg_cpu.c -- linalg.h over OpenBLAS and LAPACK.
#include "linalg.h"
#include "blas.h"
#include "nonzeros.h"
#include "sparse.h"
#include "../device/gamma.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    TILE = 128,
    FEW = 2048,  // multiplications below which a library call costs more than they do, and a team of one more than its work
};

// OpenBLAS has one thread (blas.c): threads share tiles of a fixed size here.
static int team = 1;

void gm_linalg_threads(int n)
{
    static bool alone;
    if (!alone) gm_blas_alone();
    alone = true;
    team = n;
}

static const GmBlas *blas(void) { return gm_blas(); }

static long least(long a, long b) { return a < b ? a : b; }

static double dot(long n, const double *a, const double *b)
{
    double sum = 0;
    for (long i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void add_few(bool transposed, long p, long n, double alpha, const double *A, long lda, double beta, double *C, long ldc)
{
    const long across = transposed ? 1 : lda, along = transposed ? lda : 1;
    for (long i = 0; i < p; i++)
        for (long j = 0; j <= i; j++) {
            double sum = 0;
            for (long k = 0; k < n; k++) sum += A[i * across + k * along] * A[j * across + k * along];
            C[i * ldc + j] = (beta == 0 ? 0 : beta * C[i * ldc + j]) + alpha * sum;
        }
}

// The lower triangle of C[p, p] = beta C + alpha A'A for A[n, p], or A A' for A[p, n], tile by tile; lda, ldc: elements between rows.
static void add_product(bool transposed, long p, long n, double alpha, const double *A, long lda, double beta, double *C, long ldc)
{
    const long tiles = (p + TILE - 1) / TILE;
    if (p * p * n < FEW) {
        add_few(transposed, p, n, alpha, A, lda, beta, C, ldc);
        return;
    }
#pragma omp parallel for num_threads(team) schedule(dynamic, 1) if (team > 1 && tiles > 1 && !omp_in_parallel())
    for (long e = 0; e < tiles * tiles; e++) {
        const long i = e / tiles * TILE, j = e % tiles * TILE, rows = least(TILE, p - i), columns = least(TILE, p - j);
        if (j > i) continue;
        const double *a = transposed ? A + i : A + i * lda, *b = transposed ? A + j : A + j * lda;
        double *c = C + i * ldc + j;
        if (i == j)
            blas()->dsyrk(CblasRowMajor, CblasLower, transposed ? CblasTrans : CblasNoTrans, (int)rows, (int)n, alpha, a, (int)lda, beta, c,
                          (int)ldc);
        else
            blas()->dgemm(CblasRowMajor, transposed ? CblasTrans : CblasNoTrans, transposed ? CblasNoTrans : CblasTrans, (int)rows,
                          (int)columns, (int)n, alpha, a, (int)lda, b, (int)lda, beta, c, (int)ldc);
    }
}

static void mirror(long p, double *out);

void gram_matrix(long n, long p, double scale, const double *X, double *out)
{
    long row;
    const GmNonzeros *few = gm_nonzeros_of(X, p, &row);
    memset(out, 0, sizeof *out * (size_t)(p * p));
    if (few) gm_nonzeros_gram(few, row, n, scale, NULL, out);
    else if (n > 0 && p > 0) add_product(true, p, n, scale, X, p, 0, out, p);
    mirror(p, out);
}

static void mirror(long p, double *out)
{
    for (long i = 0; i < p; i++)
        for (long j = 0; j < i; j++) out[j * p + i] = out[i * p + j];
}

// Rows a few at a time, times the square roots of their weights, so that a symmetric product adds them up; rows with negative
// weights are taken off in a second product.
void weighted_gram(long n, long p, const double *X, const double *w, double *out)
{
    memset(out, 0, sizeof *out * (size_t)(p * p));
    if (n == 0 || p == 0) return;
    long row;
    const GmNonzeros *few = gm_nonzeros_of(X, p, &row);
    if (few) {
        gm_nonzeros_gram(few, row, n, 1, w, out);
        mirror(p, out);
        return;
    }
    const long most = p < 1024 ? 65536 / p : 64;  // rows that fill half a megabyte
    double *rows = malloc(sizeof *rows * (size_t)(most * p));
    if (!rows) abort();
    for (int sign = 1; sign >= -1; sign -= 2) {
        long filled = 0;
        for (long i = 0; i < n; i++) {
            if (w[i] * sign > 0) {
                const double root = sqrt(w[i] * sign);
                for (long j = 0; j < p; j++) rows[filled * p + j] = root * X[i * p + j];
                filled++;
            }
            if (filled == most || (i + 1 == n && filled)) {
                add_product(true, p, filled, sign, rows, p, 1, out, p);
                filled = 0;
            }
        }
    }
    free(rows);
    mirror(p, out);
}

// Rows of at most NARROW numbers are shorter than what a library call costs for each: four at a time, the last of them again if there are
// fewer. Every row is added up in the same order, wherever it stands: a chunk of rows gives what the whole matrix gives.
#if defined(__x86_64__)
enum { NARROW = 64, NARROW_DOWN = 12 };  // where X is read along its rows, and down its columns

__attribute__((target("avx2,fma"))) static void narrow_rows_times(long n, long p, const double *X, const double *beta, double *dot)
{
    const long whole = p / 4 * 4, rest = p - whole;
    const __m256i mask = _mm256_set_epi64x(0, -(rest > 2), -(rest > 1), -(rest > 0));
    const __m256d last = _mm256_maskload_pd(beta + whole, mask);
    for (long i = 0; i < n; i += 4) {
        const double *a = X + i * p, *b = i + 1 < n ? a + p : a, *c = i + 2 < n ? b + p : b, *d = i + 3 < n ? c + p : c;
        __m256d as = _mm256_setzero_pd(), bs = as, cs = as, ds = as;
        for (long j = 0; j < whole; j += 4) {
            const __m256d t = _mm256_loadu_pd(beta + j);
            as = _mm256_fmadd_pd(_mm256_loadu_pd(a + j), t, as);
            bs = _mm256_fmadd_pd(_mm256_loadu_pd(b + j), t, bs);
            cs = _mm256_fmadd_pd(_mm256_loadu_pd(c + j), t, cs);
            ds = _mm256_fmadd_pd(_mm256_loadu_pd(d + j), t, ds);
        }
        if (rest) {
            as = _mm256_fmadd_pd(_mm256_maskload_pd(a + whole, mask), last, as);
            bs = _mm256_fmadd_pd(_mm256_maskload_pd(b + whole, mask), last, bs);
            cs = _mm256_fmadd_pd(_mm256_maskload_pd(c + whole, mask), last, cs);
            ds = _mm256_fmadd_pd(_mm256_maskload_pd(d + whole, mask), last, ds);
        }
        const __m256d low = _mm256_hadd_pd(as, bs), high = _mm256_hadd_pd(cs, ds);  // each over its halves
        const __m256d four = _mm256_add_pd(_mm256_permute2f128_pd(low, high, 0x20), _mm256_permute2f128_pd(low, high, 0x31));
        if (i + 4 <= n) _mm256_storeu_pd(dot + i, four);
        else _mm256_maskstore_pd(dot + i, _mm256_set_epi64x(0, -(n - i > 2), -(n - i > 1), -1), four);
    }
}

// out[p] += X'w: four columns at a time down some rows, which the cache holds; every fourth row has sums of its own.
__attribute__((target("avx2,fma"))) static void narrow_rows_added(long n, long p, const double *X, const double *w, double *out)
{
    const long most = 4096 / p * 4;
    for (long from = 0; from < n; from += most) {
        const long some = least(most, n - from), fours = some / 4 * 4;
        for (long j = 0; j < p; j += 4) {
            const double *x = X + from * p + j, *v = w + from;
            const __m256i mask = _mm256_set_epi64x(-(p - j > 3), -(p - j > 2), -(p - j > 1), -1);
            __m256d a = _mm256_setzero_pd(), b = a, c = a, d = a;
            for (long i = 0; i < fours; i += 4) {
                a = _mm256_fmadd_pd(_mm256_maskload_pd(x + i * p, mask), _mm256_broadcast_sd(v + i), a);
                b = _mm256_fmadd_pd(_mm256_maskload_pd(x + (i + 1) * p, mask), _mm256_broadcast_sd(v + i + 1), b);
                c = _mm256_fmadd_pd(_mm256_maskload_pd(x + (i + 2) * p, mask), _mm256_broadcast_sd(v + i + 2), c);
                d = _mm256_fmadd_pd(_mm256_maskload_pd(x + (i + 3) * p, mask), _mm256_broadcast_sd(v + i + 3), d);
            }
            for (long i = fours; i < some; i++) a = _mm256_fmadd_pd(_mm256_maskload_pd(x + i * p, mask), _mm256_broadcast_sd(v + i), a);
            const __m256d sum = _mm256_add_pd(_mm256_add_pd(a, b), _mm256_add_pd(c, d));
            _mm256_maskstore_pd(out + j, mask, _mm256_add_pd(_mm256_maskload_pd(out + j, mask), sum));
        }
    }
}

static int has_fours(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
enum { NARROW = 0, NARROW_DOWN = 0 };
static void narrow_rows_times(long n, long p, const double *X, const double *beta, double *dot)
{
    (void)n;
    (void)p;
    (void)X;
    (void)beta;
    (void)dot;
}
static void narrow_rows_added(long n, long p, const double *X, const double *w, double *out)
{
    (void)n;
    (void)p;
    (void)X;
    (void)w;
    (void)out;
}
static int has_fours(void) { return 0; }
#endif

void rows_times(long n, long p, const double *X, const double *beta, double *dot)
{
    long row;
    const GmNonzeros *few = gm_nonzeros_of(X, p, &row);
    if (p == 0) memset(dot, 0, sizeof *dot * (size_t)n);
    else if (few) gm_nonzeros_times(few, row, n, 1, beta, 0, dot);
    else if (p <= NARROW && has_fours()) narrow_rows_times(n, p, X, beta, dot);
    else if (n > 0) blas()->dgemv(CblasRowMajor, CblasNoTrans, (int)n, (int)p, 1, X, (int)p, beta, 1, 0, dot, 1);
}

void rows_added(long n, long p, const double *X, const double *w, double *out)
{
    if (n <= 0 || p <= 0) return;
    long row;
    const GmNonzeros *few = gm_nonzeros_of(X, p, &row);
    if (few) gm_nonzeros_added(few, row, n, 1, w, 0, out);
    else if (p <= NARROW_DOWN && has_fours()) narrow_rows_added(n, p, X, w, out);
    else blas()->dgemv(CblasRowMajor, CblasTrans, (int)n, (int)p, 1, X, (int)p, w, 1, 1, out, 1);
}

void rows_times_matrix(long n, long p, long k, const double *X, const double *B, int transposed, double *eta)
{
    if (n == 0 || k == 0) return;
    long row;
    const GmNonzeros *few = gm_nonzeros_of(X, p, &row);
    if (few) gm_nonzeros_times(few, row, n, k, B, transposed, eta);
    else if (k == 1) rows_times(n, p, X, B, eta);
    else if (p == 0) memset(eta, 0, sizeof *eta * (size_t)(n * k));
    else
        blas()->dgemm(CblasRowMajor, CblasNoTrans, transposed ? CblasTrans : CblasNoTrans, (int)n, (int)k, (int)p, 1, X, (int)p, B,
                      (int)(transposed ? p : k), 0, eta, (int)k);
}

void rows_added_matrix(long n, long p, long k, const double *X, const double *W, int transposed, double *out)
{
    if (n == 0 || p == 0 || k == 0) return;
    long row;
    const GmNonzeros *few = gm_nonzeros_of(X, p, &row);
    if (few) gm_nonzeros_added(few, row, n, k, W, transposed, out);
    else if (k == 1) rows_added(n, p, X, W, out);
    else if (transposed)
        blas()->dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)k, (int)p, (int)n, 1, W, (int)k, X, (int)p, 1, out, (int)p);
    else blas()->dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)p, (int)k, (int)n, 1, X, (int)p, W, (int)k, 1, out, (int)k);
}

void row_sums(long n, long p, const double *X, const double *w, double *out)
{
    memset(out, 0, sizeof *out * (size_t)p);
    rows_added(n, p, X, w, out);
}

// The Cholesky factor of row-major J, in its lower triangle, a block of rows and columns at a time. Returns 0, or k if the k-th pivot is
// not positive, or below `lost` of its diagonal element. Column-major upper is row-major lower: LAPACK's factor U = L' lies where
// row-major L does.
static long factor_few(long n, double *J, double lost)
{
    for (long k = 0; k < n; k++) {
        const double old = J[k * n + k], rest = old - dot(k, J + k * n, J + k * n), root = sqrt(rest);
        if (!(rest > 0) || !is_finite(rest) || rest < lost * old) return k + 1;
        J[k * n + k] = root;
        for (long i = k + 1; i < n; i++) J[i * n + k] = (J[i * n + k] - dot(k, J + i * n, J + k * n)) / root;
    }
    return 0;
}

static long factor(long n, double *J, double lost)
{
    if (n * n * n < FEW) return factor_few(n, J, lost);
    double *diagonal = malloc(sizeof *diagonal * (size_t)(n + 1));
    if (!diagonal) abort();
    for (long k = 0; k < n; k++) diagonal[k] = J[k * n + k];
    long failed = 0;
    for (long k = 0; k < n; k += TILE) {
        const long width = least(TILE, n - k), rest = n - k - width, tiles = (rest + TILE - 1) / TILE;
        double *pivot = J + k * n + k, *below = pivot + width * n;
        int bad;
        blas()->dpotrf("U", &(int){(int)width}, pivot, &(int){(int)n}, &bad, 1);
        if (bad) {
            failed = k + bad;
            break;
        }
#pragma omp parallel for num_threads(team) schedule(dynamic, 1) if (team > 1 && tiles > 1 && !omp_in_parallel())
        for (long e = 0; e < tiles; e++)
            blas()->dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, (int)least(TILE, rest - e * TILE), (int)width, 1,
                          pivot, (int)n, below + e * TILE * n, (int)n);
        if (rest > 0) add_product(false, rest, width, -1, below, n, 1, below + width, n);
    }
    for (long k = 0; k < n && !failed; k++)
        if (J[k * n + k] * J[k * n + k] < lost * diagonal[k]) failed = k + 1;
    free(diagonal);
    return failed;
}

// The factor of a scale move; rest = Q - h'J^-1 h.
static void scale_draw(Stream *g, GmScale *e, double rest)
{
    e->scale = rest > 0 && e->count > 0 ? sqrt(gamma_shape_rate(g, e->count / 2, rest / 2)) : 1;
}

// The standard normal of part k: each element of a joint draw has numbers of its own, so that a GPU can draw them all at once.
static double noise(const Stream *g, long k)
{
    if (g->has_spare == GM_NO_NOISE) return 0;
    Stream part = stream_part(g, (uint64_t)k);
    return normal_standard(&part);
}

static void draw_from_factor(Stream *g, long n, const double *J, double *h, double *x, GmScale *e)
{
    const Stream parts = *g;
    const bool few = n * n < FEW;
    if (few)
        for (long i = 0; i < n; i++) h[i] = (h[i] - dot(i, J + i * n, h)) / J[i * n + i];
    else blas()->dtrsv(CblasColMajor, CblasUpper, CblasTrans, CblasNonUnit, (int)n, J, (int)n, h, 1);
    if (e) {
        scale_draw(g, e, e->Q - dot(n, h, h));
        for (long i = 0; i < n; i++) h[i] *= e->scale;
    }
    for (long i = 0; i < n; i++) x[i] = h[i] + noise(&parts, i);
    if (few)
        for (long i = n - 1; i >= 0; i--) {
            x[i] /= J[i * n + i];
            for (long j = 0; j < i; j++) x[j] -= J[i * n + j] * x[i];
        }
    else blas()->dtrsv(CblasColMajor, CblasUpper, CblasNoTrans, CblasNonUnit, (int)n, J, (int)n, x, 1);
    stream_pass(g);
}

long gm_normal_dense(Stream *g, long n, double *J, double *h, double *x, GmScale *scale)
{
    if (n == 0) {
        stream_pass(g);
        return 0;
    }
    const long bad = factor(n, J, GM_PIVOT_LOST);
    if (bad) return bad;
    draw_from_factor(g, n, J, h, x, scale);
    for (long i = 0; i < n; i++)
        if (!is_finite(x[i])) return i + 1;
    return 0;
}

double gm_marginal_each(long count, long n, double *J, double *h, const double *x)
{
    double sum = 0, root = 1;  // of determinants: a logarithm takes longer than a small matrix
    for (long e = 0; e < count; e++, J += n * n, h += n) {
        for (long i = 0; i < n && x; i++) h[i] -= dot(n, J + i * n, x + e * n);
        if (factor(n, J, GM_PIVOT_POOR)) return -INFINITY;
        for (long i = 0; i < n; i++) {
            h[i] = (h[i] - dot(i, J + i * n, h)) / J[i * n + i];
            sum += 0.5 * h[i] * h[i];
            root *= J[i * n + i];
            if (root > 1e-100 && root < 1e100) continue;
            sum -= log(root);
            root = 1;
        }
    }
    sum -= log(root);
    return is_finite(sum) ? sum : -INFINITY;
}

double gm_marginal_dense(long n, double *J, double *h, const double *x) { return gm_marginal_each(1, n, J, h, x); }

// Rows of E over sqrt(D): J -= E'E, h -= E'k.
static long integrate_effects(long n, double *J, double *h, long m, const double *D, double *E, double *k)
{
    for (long i = 0; i < m; i++) {
        if (!(D[i] > 0)) return n + i + 1;
        const double r = 1 / sqrt(D[i]);
        for (long j = 0; j < n; j++) E[i * n + j] *= r;
        k[i] *= r;
    }
    if (n > 0 && m > 0) {
        add_product(true, n, m, -1, E, n, 1, J, n);
        if (m * n < FEW)
            for (long i = 0; i < m; i++)
                for (long j = 0; j < n; j++) h[j] -= E[i * n + j] * k[i];
        else blas()->dgemv(CblasRowMajor, CblasTrans, (int)m, (int)n, -1, E, (int)n, k, 1, 1, h, 1);
    }
    return 0;
}

double gm_marginal_arrow(long n, double *J, double *h, const double *x, long m, const double *D, double *E, double *k, const double *u)
{
    for (long i = 0; i < n; i++) h[i] -= dot(n, J + i * n, x);
    for (long i = 0; i < m; i++) {
        k[i] -= D[i] * u[i] + dot(n, E + i * n, x);
        for (long j = 0; j < n; j++) h[j] -= E[i * n + j] * u[i];
    }
    double *diagonal = malloc(sizeof *diagonal * (size_t)(n + 1)), sum = 0;  // without what the effects take from it
    if (!diagonal) abort();
    for (long i = 0; i < n; i++) diagonal[i] = J[i * n + i];
    if (integrate_effects(n, J, h, m, D, E, k)) sum = -INFINITY;
    for (long i = 0; i < m && is_finite(sum); i++) sum += 0.5 * (k[i] * k[i] - log(D[i]));
    if (is_finite(sum)) sum += gm_marginal_dense(n, J, h, NULL);
    for (long i = 0; i < n && is_finite(sum); i++)
        if (J[i * n + i] * J[i * n + i] < GM_PIVOT_POOR * diagonal[i]) sum = -INFINITY;
    free(diagonal);
    return is_finite(sum) ? sum : -INFINITY;
}

long gm_normal_arrow(Stream *g, long n, double *J, double *h, double *x, long m, const double *D, double *E, double *k, double *u,
                     GmScale *scale)
{
    const Stream parts = *g;
    const long without = integrate_effects(n, J, h, m, D, E, k);
    if (without) return without;
    if (scale) scale->Q -= dot(m, k, k);
    const long bad = gm_normal_dense(g, n, J, h, x, scale);
    if (bad) return bad;
    for (long i = 0; i < m && scale; i++) k[i] *= scale->scale;
    for (long i = 0; i < m; i++) {
        double v = k[i];
        for (long j = 0; j < n; j++) v -= E[i * n + j] * x[j];
        u[i] = (v + noise(&parts, n + i)) / sqrt(D[i]);
        if (!is_finite(u[i])) return n + i + 1;
    }
    return 0;
}

// D becomes D^-1/2, h and rows in these units, M the factor of I + rows rows'. 0, or as gm_normal_rows.
static long factor_rows(long n, long p, double *D, double *h, double *rows, double *M)
{
    for (long j = 0; j < p; j++) {
        if (!(D[j] > 0)) return j + 1;
        D[j] = 1 / sqrt(D[j]);
        h[j] *= D[j];
    }
    for (long i = 0; i < n; i++)
        for (long j = 0; j < p; j++) rows[i * p + j] *= D[j];
    if (n == 0 || p == 0) return 0;
    add_product(false, n, p, 1, rows, p, 0, M, n);
    for (long i = 0; i < n; i++) M[i * n + i] += 1;
    const long bad = factor(n, M, GM_PIVOT_LOST);
    return bad ? p + bad : 0;
}

// The whole shift is s = k + R'y: s'(I + R'R)^-1 s = k'k + y'y - |L^-1 (y - R k)|^2, where M = L L'. room[n].
static double shift_of_rows(long n, long p, const double *h, const double *rows, const double *y, const double *M, double *room)
{
    double sum = blas()->ddot((int)p, h, 1, h, 1);
    if (n == 0 || p == 0) return sum;
    sum += blas()->ddot((int)n, y, 1, y, 1);
    blas()->dcopy((int)n, y, 1, room, 1);
    blas()->dgemv(CblasRowMajor, CblasNoTrans, (int)n, (int)p, -1, rows, (int)p, h, 1, 1, room, 1);
    blas()->dtrsv(CblasColMajor, CblasUpper, CblasTrans, CblasNonUnit, (int)n, M, (int)n, room, 1);
    return sum - blas()->ddot((int)n, room, 1, room, 1);
}

double gm_marginal_rows(long n, long p, double *D, double *h, double *rows, double *y, double *M, const double *x)
{
    for (long j = 0; j < p; j++) h[j] -= D[j] * x[j];
    for (long i = 0; i < n; i++) y[i] -= dot(p, rows + i * p, x);
    if (factor_rows(n, p, D, h, rows, M)) return -INFINITY;
    double *room = malloc(sizeof *room * (size_t)(n + 1)), sum = 0;
    if (!room) abort();
    sum = 0.5 * shift_of_rows(n, p, h, rows, y, M, room);
    for (long j = 0; j < p; j++) sum += log(D[j]);
    for (long i = 0; i < n && p > 0; i++) sum -= log(M[i * n + i]);
    free(room);
    return is_finite(sum) ? sum : -INFINITY;
}

long gm_normal_rows(Stream *g, long n, long p, double *D, double *h, double *rows, double *y, double *M, double *x, GmScale *scale)
{
    const Stream parts = *g;
    const int some = n > 0 && p > 0;
    const long bad = factor_rows(n, p, D, h, rows, M);
    if (bad) return bad;
    if (scale) {
        scale_draw(g, scale, scale->Q - shift_of_rows(n, p, h, rows, y, M, x));
        blas()->dscal((int)p, scale->scale, h, 1);
        blas()->dscal((int)n, scale->scale, y, 1);
    }
    for (long j = 0; j < p; j++) x[j] = h[j] + noise(&parts, j);
    if (some) {
        for (long i = 0; i < n; i++) y[i] += noise(&parts, p + i);
        blas()->dgemv(CblasRowMajor, CblasNoTrans, (int)n, (int)p, -1, rows, (int)p, x, 1, 1, y, 1);
        blas()->dtrsv(CblasColMajor, CblasUpper, CblasTrans, CblasNonUnit, (int)n, M, (int)n, y, 1);
        blas()->dtrsv(CblasColMajor, CblasUpper, CblasNoTrans, CblasNonUnit, (int)n, M, (int)n, y, 1);
        blas()->dgemv(CblasRowMajor, CblasTrans, (int)n, (int)p, 1, rows, (int)p, y, 1, 1, x, 1);
    }
    for (long j = 0; j < p; j++) {
        x[j] *= D[j];
        if (!is_finite(x[j])) return j + 1;
    }
    stream_pass(g);
    return 0;
}

// ---- checks ----

typedef struct Buffer {
    double *value;
    size_t size;
} Buffer;

static double *room(Buffer *k, size_t n)
{
    if (n > k->size) {
        free(k->value);
        k->value = malloc(sizeof(double) * n);
        k->size = k->value ? n : 0;
        if (!k->value) abort();
    }
    return k->value;
}

static _Thread_local Buffer saved, quadratic;
static _Thread_local long kept_n, kept_m;
static _Thread_local double kept_size;

const double *gm_save(const double *x, long n)
{
    double *to = room(&saved, (size_t)n + 1);
    memcpy(to, x, sizeof *x * (size_t)n);
    return to;
}

const double *gm_save_logs(const double *x, const double *logs, long n)
{
    double *to = room(&saved, (size_t)n + 1);
    for (long i = 0; i < n; i++) to[i] = log_kept(x[i], logs[i]);
    return to;
}

const double *gm_saved(void) { return saved.value; }

// Differences of quadratics, arranged so that little cancels where x is large and changes little: with d = x - old and m = (x + old) / 2,
//   h'x - x'Jx/2  less the same at old  =  d'(h - J m).
// gm_quadratic_size: the terms that were added up, without their signs.
static double add_term(double term)
{
    kept_size += fabs(term);
    return term;
}

static double moved(long n, const double *J, const double *h, const double *x, const double *old)
{
    double v = 0;
    for (long i = 0; i < n; i++) {
        const double d = x[i] - old[i];
        double slope = h[i], size = fabs(h[i]);
        for (long j = 0; j < n; j++) {
            const double t = J[i * n + j] * (x[j] + old[j]) / 2;
            slope -= t;
            size += fabs(t);
        }
        v += d * slope;
        kept_size += fabs(d) * size;
    }
    return v;
}

double gm_quadratic_size(void) { return kept_size; }
void gm_kept_size(double size) { kept_size = size; }

void gm_quadratic_before(long n, const double *J, const double *h, const double *x)
{
    double *to = room(&quadratic, (size_t)(n * n + 2 * n + 1));
    memcpy(to, J, sizeof *J * (size_t)(n * n));
    memcpy(to + n * n, h, sizeof *h * (size_t)n);
    memcpy(to + n * n + n, x, sizeof *x * (size_t)n);
    kept_n = n;
}

double gm_quadratic_after(const double *x)
{
    const long n = kept_n;
    const double *J = quadratic.value, *h = J + n * n, *old = h + n;
    kept_size = 0;
    return moved(n, J, h, x, old);
}

void gm_arrow_before(long n, const double *J, const double *h, const double *x, long m, const double *D, const double *E, const double *k,
                     const double *u)
{
    double *to = room(&quadratic, (size_t)(n * n + 2 * n + m * (n + 3) + 1));
    memcpy(to, J, sizeof *J * (size_t)(n * n));
    memcpy(to += n * n, h, sizeof *h * (size_t)n);
    memcpy(to += n, D, sizeof *D * (size_t)m);
    memcpy(to += m, E, sizeof *E * (size_t)(m * n));
    memcpy(to += m * n, k, sizeof *k * (size_t)m);
    memcpy(to += m, x, sizeof *x * (size_t)n);
    memcpy(to += n, u, sizeof *u * (size_t)m);
    kept_n = n;
    kept_m = m;
}

double gm_arrow_after(const double *x, const double *u)
{
    const long n = kept_n, m = kept_m;
    const double *J = quadratic.value, *h = J + n * n, *D = h + n, *E = D + m, *k = E + m * n, *old_x = k + m, *old_u = old_x + n;
    kept_size = 0;
    double v = moved(n, J, h, x, old_x);
    for (long i = 0; i < m; i++) {
        const double d = u[i] - old_u[i], middle = (u[i] + old_u[i]) / 2;
        v += add_term(d * k[i]) - add_term(d * D[i] * middle);
        for (long j = 0; j < n; j++) v -= add_term(E[i * n + j] * (d * (x[j] + old_x[j]) / 2 + middle * (x[j] - old_x[j])));
    }
    return v;
}

void gm_rows_before(long n, long p, const double *D, const double *h, const double *rows, const double *y, const double *x)
{
    double *to = room(&quadratic, (size_t)(3 * p + n * (p + 1) + 1));
    memcpy(to, D, sizeof *D * (size_t)p);
    memcpy(to + p, h, sizeof *h * (size_t)p);
    memcpy(to + 2 * p, y, sizeof *y * (size_t)n);
    memcpy(to + 2 * p + n, rows, sizeof *rows * (size_t)(n * p));
    memcpy(to + 2 * p + n + n * p, x, sizeof *x * (size_t)p);
    kept_n = n;
    kept_m = p;
}

double gm_rows_after(const double *x)
{
    const long n = kept_n, p = kept_m;
    const double *D = quadratic.value, *h = D + p, *y = h + p, *rows = y + n, *old = rows + n * p;
    double v = 0;
    kept_size = 0;
    for (long j = 0; j < p; j++) {
        const double d = x[j] - old[j];
        v += add_term(d * h[j]) - add_term(d * D[j] * (x[j] + old[j]) / 2);
    }
    for (long i = 0; i < n; i++) {
        double d = 0, middle = 0;
        for (long j = 0; j < p; j++) {
            d += rows[i * p + j] * (x[j] - old[j]);
            middle += rows[i * p + j] * (x[j] + old[j]) / 2;
        }
        v += add_term(d * y[i]) - add_term(d * middle);
    }
    return v;
}
