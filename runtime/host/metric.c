// metric.c -- metrics of low rank and dense metrics: their products with vectors, and their estimates (device/metric.h).
#include "messages.h"
#include "../device/metric.h"
#include "../device/chol.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define EACH_MACHINE __attribute__((target_clones("default", "arch=haswell", "arch=skylake-avx512")))
#else
#define EACH_MACHINE
#endif

enum {
    WHOLE = 64,       // coordinates up to which low rank looks at all directions, and may be all of them
    MANY = 3,         // draws for each coordinate, for all directions
    LEADING = 16,     // principal components of the draws, and of the gradients, that it looks at otherwise
    PASSES = 8,       // of subspace iteration
    FIRST = 60,       // draws, of which the first estimate is made
    FIRST_TRY = 100,  // and that of a metric that is a choice
    SETTLING = 20,    // sweeps after a change that are not counted
    MEASURED = 40,    // that are
};

static const double beyond = 2;    // eigenvalues between 1/2 and 2 are left at 1
static const double ridge = 1e-5;  // on both covariances, of scaled coordinates
static const double worth = 1.5, better = 0.8, much_better = 2;

// ---- memory ----

static bool take(wide **at, size_t count)
{
    *at = calloc(count ? count : 1, sizeof **at);
    return *at != NULL;
}

int metric_is_looked_at(long n, MetricKind kind)
{
    return kind != METRIC_DIAGONAL && (kind != METRIC_CHOSEN || (n > 1 && n <= METRIC_MOST));
}

int metric_is_dense(long n, MetricKind kind) { return (kind == METRIC_DENSE && n <= METRIC_MOST_DENSE) || n <= WHOLE; }

Metric *metric_open(long n, MetricKind kind, MetricCost cost, long warmup)
{
    Metric *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    const size_t k = (size_t)n;
    m->n = n;
    m->kind = kind;
    m->stage = kind == METRIC_CHOSEN ? METRIC_WATCHING : kind == METRIC_DIAGONAL ? METRIC_REFUSED : METRIC_TAKEN;
    m->cost = cost;
    m->window = METRIC_DRAWS;
    if (metric_is_dense(n, kind) && 4 * n > METRIC_DRAWS)
        m->window = 4 * n < warmup ? 4 * n : warmup > METRIC_DRAWS ? warmup : METRIC_DRAWS;
    m->next = kind == METRIC_CHOSEN ? FIRST_TRY : FIRST;
    m->smallest = m->largest = 1;
    const size_t window = (size_t)m->window, rank = kind == METRIC_DENSE ? 0 : METRIC_RANK;
    if (take(&m->push, k) && take(&m->velocity, k) && take(&m->along, rank * k) && take(&m->across, rank * k) && take(&m->scale, k) &&
        take(&m->lower, metric_is_dense(n, kind) ? k * k : 0) && take(&m->draws, window * k) && take(&m->gradients, window * k) &&
        take(&m->before.jumps, k) && take(&m->now.jumps, k) && take(&m->last, k))
        return m;
    metric_close(m);
    return NULL;
}

void metric_close(Metric *m)
{
    if (!m) return;
    free(m->push);
    free(m->velocity);
    free(m->along);
    free(m->across);
    free(m->scale);
    free(m->lower);
    free(m->draws);
    free(m->gradients);
    free(m->before.jumps);
    free(m->now.jumps);
    free(m->last);
    free(m);
}

int metric_settle(Metric *m)
{
    m->stage = METRIC_REFUSED;
    free(m->draws);
    free(m->gradients);
    m->draws = m->gradients = NULL;
    return m->used;
}

// ---- products ----

static double dot(const wide *restrict a, const wide *restrict b, long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void add(wide *restrict to, double c, const wide *restrict a, long n)
{
    for (long i = 0; i < n; i++) to[i] += c * a[i];
}

// D^-1/2 F D^1/2 x, F symmetric.
static void by_rank(const Metric *m, const wide *restrict x, wide *restrict out)
{
    const long n = m->n;
    double c[METRIC_RANK];
    for (int r = 0; r < m->rank; r++) c[r] = dot(m->along + r * n, x, n);
    memcpy(out, x, sizeof *out * (size_t)n);
    for (int r = 0; r < m->rank; r++) add(out, c[r], m->across + r * n, n);
}

EACH_MACHINE const wide *metric_push(Metric *m, const wide *gradient)
{
    const long n = m->n;
    if (!m->full) {
        by_rank(m, gradient, m->push);
        return m->push;
    }
    memset(m->push, 0, sizeof *m->push * (size_t)n);
    for (long i = 0; i < n; i++) add(m->push, m->scale[i] * gradient[i], m->lower + i * n, i + 1);
    for (long i = 0; i < n; i++) m->push[i] /= m->scale[i];
    return m->push;
}

EACH_MACHINE const wide *metric_drift(Metric *m, const wide *momentum)
{
    const long n = m->n;
    if (!m->full) {
        by_rank(m, momentum, m->velocity);
        return m->velocity;
    }
    wide *const scaled = m->velocity;
    for (long i = 0; i < n; i++) scaled[i] = m->scale[i] * momentum[i];
    for (long i = n - 1; i >= 0; i--)  // from the last row on: what a row needs is still there
        scaled[i] = dot(m->lower + i * n, scaled, i + 1) / m->scale[i];
    return m->velocity;
}

// ---- eigenvalues ----

// A, n by n and symmetric, as Q T Q': Q in place of A, T's diagonal in d, e[i] beside d[i] and d[i - 1] (Golub and Van Loan 2013,
// section 8.3.1). `room`: n numbers.
static void tridiagonal(long n, wide *A, wide *d, wide *e, wide *room)
{
    for (long k = n - 1; k > 0; k--) {  // row k has no elements before k - 1 afterwards
        wide *const u = A + k * n;      // the reflection I - u u' / h over coordinates 0..k-1
        double most = 0, h = 0;
        for (long i = 0; i < k; i++) most = fmax(most, fabs(u[i]));
        e[k] = u[k - 1];
        d[k] = 0;
        if (k == 1 || most == 0) continue;
        for (long i = 0; i < k; i++) {
            u[i] /= most;
            h += u[i] * u[i];
        }
        const double root = u[k - 1] >= 0 ? -sqrt(h) : sqrt(h);
        e[k] = most * root;
        h -= u[k - 1] * root;
        u[k - 1] -= root;
        d[k] = h;
        for (long i = 0; i < k; i++) room[i] = 0;
        for (long i = 0; i < k; i++) {  // A u, of the lower triangle
            room[i] += dot(A + i * n, u, i + 1);
            add(room, u[i], A + i * n, i);
        }
        const double half = dot(room, u, k) / (2 * h * h);
        for (long i = 0; i < k; i++) room[i] = room[i] / h - half * u[i];
        for (long i = 0; i < k; i++) {
            add(A + i * n, -u[i], room, i + 1);
            add(A + i * n, -room[i], u, i + 1);
        }
    }
    // The product of the reflections, from the first on: after k of them rows and columns before k are those of Q.
    for (long k = 0; k < n; k++) {
        wide *const u = A + k * n;
        const double h = k ? d[k] : 0;
        d[k] = u[k];
        if (h != 0) {
            for (long i = 0; i < k; i++) room[i] = 0;
            for (long i = 0; i < k; i++) add(room, u[i], A + i * n, k);
            for (long i = 0; i < k; i++) add(A + i * n, -u[i] / h, room, k);
        }
        for (long i = 0; i < k; i++) u[i] = A[i * n + k] = 0;
        u[k] = 1;
    }
    e[0] = 0;
}

// Eigenvalues of a symmetric matrix to d, its eigenvectors in place of it, as rows. room: 2 n numbers. By QL with implicit shifts
// (Wilkinson and Reinsch 1971, II/4).
static void eigen(long n, wide *A, wide *d, wide *room)
{
    wide *const e = room;
    tridiagonal(n, A, d, e, room + n);
    for (long i = 0; i < n; i++)  // rows are turned together: they lie side by side
        for (long j = 0; j < i; j++) {
            const wide x = A[i * n + j];
            A[i * n + j] = A[j * n + i];
            A[j * n + i] = x;
        }
    for (long i = 1; i < n; i++) e[i - 1] = e[i];
    e[n - 1] = 0;
    for (long l = 0; l < n; l++)
        for (int turn = 0; turn < 60; turn++) {
            long m = l;
            while (m < n - 1 && fabs(e[m]) > 1e-16 * (fabs(d[m]) + fabs(d[m + 1]))) m++;
            if (m == l) break;
            const double half = (d[l + 1] - d[l]) / (2 * e[l]), r = hypot(half, 1);
            double g = d[m] - d[l] + e[l] / (half + (half >= 0 ? r : -r)), s = 1, c = 1, p = 0;
            long i = m - 1;
            for (; i >= l; i--) {
                const double f = s * e[i], b = c * e[i], length = hypot(f, g);
                e[i + 1] = length;
                if (length == 0) {
                    d[i + 1] -= p;
                    e[m] = 0;
                    break;
                }
                s = f / length;
                c = g / length;
                g = d[i + 1] - p;
                const double t = (d[i] - g) * s + 2 * c * b;
                p = s * t;
                d[i + 1] = g + p;
                g = c * t - b;
                wide *restrict x = A + i * n, *restrict y = A + (i + 1) * n;
                for (long k = 0; k < n; k++) {
                    const double z = y[k];
                    y[k] = s * x[k] + c * z;
                    x[k] = c * x[k] - s * z;
                }
            }
            if (i >= l) continue;
            d[l] -= p;
            e[l] = g;
            e[m] = 0;
        }
}

// ---- the estimate ----

// Rows of A become orthonormal, those that depend on the ones before them are left out; how many are left.
static long orthonormal(wide *A, long rows, long n)
{
    long r = 0;
    for (long k = 0; k < rows; k++) {
        wide *const a = A + r * n;
        if (r != k) memcpy(a, A + k * n, sizeof *a * (size_t)n);
        const double before = sqrt(dot(a, a, n));
        for (int twice = 0; twice < 2; twice++)
            for (long j = 0; j < r; j++) add(a, -dot(a, A + j * n, n), A + j * n, n);
        const double length = sqrt(dot(a, a, n));
        if (!(length > 1e-8 * before) || !isfinite(length)) continue;
        for (long i = 0; i < n; i++) a[i] /= length;
        r++;
    }
    return r;
}

// Directions along which the rows of Y, count by n, vary most: `wanted` of them, in the rows of out. By subspace iteration with Y Y'. room:
// count * (count + 2 wanted) numbers.
static void leading(const wide *Y, long count, long n, long wanted, wide *out, wide *room)
{
    wide *const gram = room, *V = room + count * count, *W = V + wanted * count;
    for (long i = 0; i < count; i++)
        for (long j = 0; j <= i; j++) gram[i * count + j] = gram[j * count + i] = dot(Y + i * n, Y + j * n, n);
    for (long k = 0; k < wanted; k++) memcpy(V + k * count, gram + (k * count / wanted) * count, sizeof *V * (size_t)count);
    for (int pass = 0; pass < PASSES; pass++) {
        const long there = orthonormal(V, wanted, count);
        memset(V + there * count, 0, sizeof *V * (size_t)((wanted - there) * count));
        for (long k = 0; k < wanted; k++)
            for (long i = 0; i < count; i++) W[k * count + i] = dot(gram + i * count, V + k * count, count);
        wide *const swap = V;
        V = W;
        W = swap;
    }
    memset(out, 0, sizeof *out * (size_t)(wanted * n));
    for (long k = 0; k < wanted; k++)
        for (long i = 0; i < count; i++) add(out + k * n, V[k * count + i], Y + i * n, n);
}

// C = P' P / count and the ridge, P count by r.
static void covariance(const wide *P, long count, long r, wide *C)
{
    memset(C, 0, sizeof *C * (size_t)(r * r));
    for (long k = 0; k < count; k++)
        for (long i = 0; i < r; i++) add(C + i * r, P[k * r + i] / (double)count, P + k * r, r);
    for (long i = 0; i < r; i++) C[i * r + i] += ridge;
}

// The geometric mean of X and G^-1 to X: with G = L L', L^-T (L' X L)^1/2 L^-1. G is destroyed. room: r (r + 3) numbers. Whether it is
// there.
static bool mean_of(long r, wide *X, wide *G, wide *room)
{
    if (chol_factor(G, r)) return false;
    wide *const B = room, *const d = room + r * r;
    memset(B, 0, sizeof *B * (size_t)(r * r));
    for (long i = 0; i < r; i++)  // B = X L, then L' B
        for (long k = 0; k < r; k++) add(B + i * r, X[i * r + k], G + k * r, k + 1);
    memset(X, 0, sizeof *X * (size_t)(r * r));
    for (long k = 0; k < r; k++)
        for (long i = 0; i <= k; i++) add(X + i * r, G[k * r + i], B + k * r, r);
    for (long i = 0; i < r; i++)
        for (long j = 0; j < i; j++) X[i * r + j] = X[j * r + i] = 0.5 * (X[i * r + j] + X[j * r + i]);
    memcpy(B, X, sizeof *B * (size_t)(r * r));
    eigen(r, B, d, d + r);
    memset(X, 0, sizeof *X * (size_t)(r * r));
    for (long k = 0; k < r; k++) {  // eigenvectors, each solved with L'
        if (!(d[k] > 0) || !isfinite(d[k])) return false;
        chol_solve_upper(G, r, B + k * r);
        for (long i = 0; i < r; i++) add(X + i * r, sqrt(d[k]) * B[k * r + i], B + k * r, r);
    }
    return true;
}

// Draws or gradients in scaled coordinates, about their mean.
static void centred(const Metric *m, const wide *rows, long first, long count, const wide *scale, bool divide, wide *out)
{
    const long n = m->n;
    wide *const mean = m->velocity;
    memset(mean, 0, sizeof *mean * (size_t)n);
    for (long k = 0; k < count; k++) add(mean, 1 / (double)count, rows + ((first + k) % m->window) * n, n);
    for (long k = 0; k < count; k++)
        for (long i = 0; i < n; i++) {
            const double x = rows[((first + k) % m->window) * n + i] - mean[i];
            out[k * n + i] = divide ? x / scale[i] : x * scale[i];
        }
}

static double size_of(double eigenvalue) { return eigenvalue > 1 ? eigenvalue : 1 / eigenvalue; }

// The first vectors, in the order of |log eigenvalue|, that are worth their cost, of a metric that is a choice; else those beyond 1/2
// and 2. ALL: all of them, as a dense matrix.
enum { ALL = -1 };

static int how_many(const Metric *m, const wide *d, long r, bool whole, long count)
{
    const double n = (double)m->n;
    const bool all_at_once = whole && count >= MANY * m->n;
    const double work = m->cost.evaluation;
    int most = 0;
    while (most < r && most < METRIC_RANK && size_of(d[most]) > beyond) most++;
    if (m->kind != METRIC_CHOSEN) return all_at_once && n + 1 < 4 * most ? ALL : most;
    double before = 0, best = m->stage == METRIC_TAKEN ? 1 : worth;
    int chosen = 0;
    for (int k = 0; k <= most; k++) {
        double low = whole && k == 0 ? INFINITY : 1, high = whole && k == 0 ? 0 : 1;
        for (long i = k; i < r; i++) {
            low = fmin(low, d[i]);
            high = fmax(high, d[i]);
        }
        if (k == 0) before = sqrt(high / low);
        const double saved = before / sqrt(high / low) * work / (work + metric_products(&m->cost, n, k, 0));
        if (saved > best) {
            best = saved;
            chosen = k;
        }
    }
    return all_at_once && before * work / (work + metric_products(&m->cost, n, 0, 1)) > best ? ALL : chosen;
}

// Where eigenvectors are, in all coordinates: those of A in the span of Q's rows, or as they are.
static void whole_vector(const wide *Q, const wide *in, long r, long n, wide *out)
{
    if (!Q) {
        memcpy(out, in, sizeof *out * (size_t)n);
        return;
    }
    memset(out, 0, sizeof *out * (size_t)n);
    for (long j = 0; j < r; j++) add(out, in[j], Q + j * n, n);
}

static void by_size(wide *d, wide *vectors, long r)
{
    for (long i = 0; i < r; i++) {  // few: the larger ones first
        long largest = i;
        for (long j = i + 1; j < r; j++)
            if (size_of(d[j]) > size_of(d[largest])) largest = j;
        if (largest == i) continue;
        const wide x = d[i];
        d[i] = d[largest];
        d[largest] = x;
        for (long k = 0; k < r; k++) {
            const wide y = vectors[i * r + k];
            vectors[i * r + k] = vectors[largest * r + k];
            vectors[largest * r + k] = y;
        }
    }
}

// L, from I + sum of (d - 1) u u'. Whether there is one. u: room of n numbers.
static bool set_dense(Metric *m, const wide *d, const wide *Q, const wide *vectors, long r, wide *u)
{
    const long n = m->n;
    memset(m->lower, 0, sizeof *m->lower * (size_t)(n * n));
    for (long i = 0; i < n; i++) m->lower[i * n + i] = 1;
    for (long k = 0; k < r; k++) {
        whole_vector(Q, vectors + k * r, r, n, u);
        for (long i = 0; i < n; i++) add(m->lower + i * n, (d[k] - 1) * u[i], u, i + 1);
    }
    return chol_factor(m->lower, n) == 0;
}

static void set_low_rank(Metric *m, const wide *d, const wide *Q, const wide *vectors, long r, wide *u)
{
    const long n = m->n;
    for (int k = 0; k < m->rank; k++) {
        whole_vector(Q, vectors + k * r, r, n, u);
        for (long i = 0; i < n; i++) {
            m->along[k * n + i] = m->scale[i] * u[i];
            m->across[k * n + i] = (sqrt(d[k]) - 1) * u[i] / m->scale[i];
        }
    }
}

// From eigenvalues d, the largest first, and vectors X, in the basis Q (NULL: of coordinates). Whether it is more than D.
static bool set_metric(Metric *m, wide *d, wide *Q, wide *X, long r, wide *u, bool whole, long count)
{
    const int chosen = m->kind == METRIC_DENSE ? ALL : how_many(m, d, r, whole, count);
    m->full = chosen == ALL;
    m->rank = m->full ? 0 : chosen;
    m->smallest = m->largest = 1;
    for (long k = 0; k < (m->full ? r : m->rank); k++) {
        m->smallest = fmin(m->smallest, d[k]);
        m->largest = fmax(m->largest, d[k]);
    }
    const bool there = m->full ? set_dense(m, d, Q, X, r, u) : m->rank > 0;
    set_low_rank(m, d, Q, X, r, u);
    return there;
}

// The metric of the last draws, of which the first third of all that came is no part. Whether it is more than D.
static bool estimate(Metric *m, const wide *diagonal)
{
    const long n = m->n, fresh = m->kept - m->kept / 3, count = fresh < m->window ? fresh : m->window, first = m->kept - count;
    const bool whole = 2 * n <= count && (m->kind == METRIC_DENSE || n <= WHOLE);
    const long wanted = m->kind == METRIC_DENSE ? count / 6 : count / 8 < LEADING ? count / 8 : LEADING, r_most = whole ? n : 2 * wanted;
    const size_t size = (size_t)(2 * count * n + n + (whole ? 0 : r_most * n + count * (count + 2 * wanted)) + 2 * count * r_most +
                                 3 * r_most * r_most + 6 * r_most);
    wide *const room = malloc(sizeof *room * size);
    if (!room || wanted < 1) {
        free(room);
        return false;
    }
    for (long i = 0; i < n; i++) m->scale[i] = sqrt(diagonal[i]);
    wide *const draws = room, *const gradients = draws + count * n, *const u = gradients + count * n, *const vectors = u + n;
    centred(m, m->draws, first, count, m->scale, true, draws);
    centred(m, m->gradients, first, count, m->scale, false, gradients);
    wide *at = vectors, *Q = NULL;
    long r = n;
    const wide *of_draws = draws, *of_gradients = gradients;
    if (!whole) {
        Q = at;
        at += r_most * n;
        leading(draws, count, n, wanted, Q, at);
        leading(gradients, count, n, wanted, Q + wanted * n, at);
        at += count * (count + 2 * wanted);
        r = orthonormal(Q, 2 * wanted, n);
        wide *const x = at, *const g = x + count * r;
        at = g + count * r;
        for (long k = 0; k < count; k++)
            for (long j = 0; j < r; j++) {
                x[k * r + j] = dot(draws + k * n, Q + j * n, n);
                g[k * r + j] = dot(gradients + k * n, Q + j * n, n);
            }
        of_draws = x;
        of_gradients = g;
    }
    wide *const X = at, *const G = X + r * r, *const d = G + r * r, *const rest = d + r;
    covariance(of_draws, count, r, X);
    covariance(of_gradients, count, r, G);
    bool there = r > 0 && mean_of(r, X, G, rest);
    if (there) {
        eigen(r, X, d, rest);
        for (long i = 0; i < r; i++) {
            there &= isfinite(d[i]);
            d[i] = clamp(d[i], 1e-8, 1e8);
        }
    }
    if (there) {
        by_size(d, X, r);
        there = set_metric(m, d, Q, X, r, u, whole, count);
    }
    free(room);
    return there;
}

// ---- what is measured ----

static void clear(MetricCount *c, long n)
{
    c->sweeps = c->evaluations = c->divergent = 0;
    memset(c->jumps, 0, sizeof *c->jumps * (size_t)n);
}

static void count(Metric *m, const wide *draw, int evaluations, int divergent)
{
    if (m->since > SETTLING) {
        m->now.sweeps++;
        m->now.evaluations += evaluations;
        m->now.divergent += divergent;
        for (long i = 0; i < m->n; i++) m->now.jumps[i] += (draw[i] - m->last[i]) * (draw[i] - m->last[i]);
    }
    memcpy(m->last, draw, sizeof *draw * (size_t)m->n);
}

// Sweeps for an effective draw: with b the mean squared jump over twice the variance, of draws that are correlated geometrically.
static double sweeps_for(double b) { return b > 0 ? 2 / clamp(b, 0.02, 1.9) - 1 : 100; }

// The same on average over the coordinates.
static double sweeps_of(const Metric *m, const MetricCount *c, const double *variance)
{
    double sweeps = 0;
    for (long i = 0; i < m->n; i++) sweeps += sweeps_for(c->jumps[i] / (2 * (double)c->sweeps * variance[i]));
    return sweeps / (double)m->n;
}

// The most sweeps for an effective draw along a vector of low rank, before the trial and in it: from the draws that are kept.
static void slowest(const Metric *m, double *before, double *now)
{
    const long n = m->n, some = m->kept < m->window ? m->kept : m->window, first = m->kept - some;
    *before = *now = 0;
    for (int k = 0; k < m->rank; k++) {
        double last = 0, sum = 0, squares = 0, jumps[2] = {0, 0};
        long counted[2] = {0, 0};
        for (long row = first; row < m->kept; row++) {
            const wide *const x = m->draws + row % m->window * n;
            double at = 0;
            for (long i = 0; i < n; i++) at += m->along[k * n + i] / (m->scale[i] * m->scale[i]) * (x[i] - m->last[i]);
            const int of_trial = row > m->tried;
            if (row > first && row != m->tried && (!of_trial || row > m->tried + SETTLING) &&
                (of_trial || row > m->tried - m->before.sweeps)) {
                jumps[of_trial] += (at - last) * (at - last);
                counted[of_trial]++;
            }
            last = at;
            sum += at;
            squares += at * at;
        }
        const double variance = (squares - sum * sum / (double)some) / (double)some;
        double *const most[2] = {before, now};
        for (int part = 0; part < 2; part++)
            *most[part] = fmax(*most[part], counted[part] ? sweeps_for(jumps[part] / (2 * (double)counted[part] * variance)) : 100);
    }
}

// Multiply-adds of a sweep.
static double pace(const MetricCount *c, double evaluation) { return evaluation * (double)c->evaluations / (double)c->sweeps; }

// Whether the trial was better.
static bool compare(Metric *m)
{
    const long n = m->n, some = m->kept < m->window ? m->kept : m->window;
    wide *const variance = m->push, *const mean = m->velocity;
    memset(variance, 0, sizeof *variance * (size_t)n);
    memset(mean, 0, sizeof *mean * (size_t)n);
    for (long k = 0; k < some; k++) add(mean, 1 / (double)some, m->draws + k * n, n);
    for (long k = 0; k < some; k++)
        for (long i = 0; i < n; i++) {
            const double x = m->draws[k * n + i] - mean[i];
            variance[i] += x * x / (double)some;
        }
    const double by_work = pace(&m->before, m->cost.evaluation) / pace(&m->now, m->cost.evaluation + metric_work(m)),
                 on_average = by_work * sweeps_of(m, &m->before, variance) / sweeps_of(m, &m->now, variance);
    double before = 0, now = 0;
    slowest(m, &before, &now);
    const double along = now > 0 ? by_work * before / now : 0;
    const bool by_slowest = along > much_better && on_average > better;
    m->gain = fmin(100, by_slowest ? fmax(along, on_average) : on_average);  // so few sweeps show no more
    return by_slowest || on_average * better > 1;
}

static int change(Metric *m, MetricStage stage, int used)
{
    const int was = m->used;
    m->stage = stage;
    m->used = used;
    m->diverged = 0;
    if (used || was) {
        m->since = 0;
        clear(&m->now, m->n);
    }
    return used || was;
}

int metric_due(const Metric *m, int moved) { return m->stage == METRIC_TAKEN && m->kept + moved >= m->next; }

void metric_note(Metric *m, const wide *draw, const wide *gradient, int moved, int evaluations, int divergent)
{
    if (m->stage == METRIC_REFUSED) return;
    m->since++;
    m->diverged |= m->kind == METRIC_CHOSEN && m->stage == METRIC_TAKEN && divergent && m->since > SETTLING;
    if (m->kind == METRIC_CHOSEN && m->stage != METRIC_TAKEN) count(m, draw, evaluations, divergent);
    if (moved) {
        const long row = m->kept++ % m->window;
        memcpy(m->draws + row * m->n, draw, sizeof *draw * (size_t)m->n);
        memcpy(m->gradients + row * m->n, gradient, sizeof *gradient * (size_t)m->n);
    }
    if (moved && m->stage == METRIC_WATCHING && m->kept == m->next / 2)
        clear(&m->now, m->n);  // of the first sweeps: their metric was made of few draws
}

int metric_decide(Metric *m, const wide *diagonal, long left)
{
    if (m->stage == METRIC_REFUSED) return 0;
    if (m->diverged) return change(m, METRIC_REFUSED, 0);
    if (m->stage == METRIC_TRYING) {
        if (m->now.sweeps < MEASURED && left > 1) return 0;
        const int taken = m->now.sweeps >= MEASURED / 2 && compare(m) && m->now.divergent == 0 && m->before.divergent < 3;
        if (!taken) return change(m, METRIC_REFUSED, 0);
        m->stage = METRIC_TAKEN;
        return 0;
    }
    const long needed = m->stage == METRIC_WATCHING ? SETTLING + MEASURED / 2 : 1;
    // else an adaptation would end without a trial
    const bool last = m->stage == METRIC_WATCHING && m->kept >= m->next * FIRST / FIRST_TRY && left < needed + SETTLING;
    if (m->kept < m->next && !last) return 0;
    if (m->stage == METRIC_WATCHING && m->now.sweeps < MEASURED / 2) return 0;  // it waits until it knows what there is to be better than
    m->next += m->next * 3 / 5;
    if (left < needed) return 0;
    if (m->stage == METRIC_TAKEN) return change(m, METRIC_TAKEN, estimate(m, diagonal));
    if (!estimate(m, diagonal)) {
        clear(&m->now, m->n);
        return 0;
    }
    m->tried = m->kept;
    const MetricCount swap = m->before;
    m->before = m->now;
    m->now = swap;
    return change(m, METRIC_TRYING, 1);
}

int metric_adapt(Metric *m, const wide *draw, const wide *gradient, const wide *diagonal, int moved, int evaluations, int divergent,
                 long left)
{
    metric_note(m, draw, gradient, moved, evaluations, divergent);
    return metric_decide(m, diagonal, left);
}
