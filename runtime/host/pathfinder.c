// pathfinder.c -- normal approximations along an ascent (Zhang, Carpenter, Gelman and Vehtari 2022, Pathfinder: parallel quasi-Newton variational inference).
//
// An ascent passes from the tails through the region that holds most of the distribution to the mode, or to where the density has no bound. At each place the pairs of L-BFGS tell an
// estimate H of the negative inverse Hessian, and with the gradient g a normal distribution N(x + H g, H). That with the largest evidence lower bound E[log p - log q], estimated from a
// few draws of each, is the one closest to the target: of a funnel it lies before the neck.
//
//   H = D^1/2 (I + W C W') D^1/2     W = [D^-1/2 S, D^1/2 Y], n by 2m; C of size 2m from the products of the m pairs (Byrd, Nocedal and Schnabel 1994, theorem 2.2)
//     = D^1/2 (I + Q (M - I) Q') D^1/2,  W = Q R, M = I + R C R' = L L'
//   draw  x + H g + D^1/2 (u + Q (L - I) Q' u), u standard normal;  log|H| = log|D| + 2 log|L|
//
//   cost  n * (2m)^2 multiplications a place, n * 4m a draw; 2m + 5 vectors of n numbers
//   test  tests/host/ascent.c
#include "ascent.h"
#include "host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 2 * GM_ASCENT_PAIRS };

struct GmNormal {
    long    n;
    int     rank;                        // columns of Q
    double *mean, *root, *work;          // root: D^1/2
    double *q[COLUMNS];
    double  less[COLUMNS][COLUMNS];      // L - I, lower triangle
    double  log_root;                    // log|H| / 2
};

GmNormal *gm_normal_open(long n)
{
    GmNormal *q = gm_alloc(1, sizeof *q);
    q->n = n;
    q->mean = gm_alloc((size_t)n, sizeof(double));
    q->root = gm_alloc((size_t)n, sizeof(double));
    q->work = gm_alloc((size_t)n, sizeof(double));
    for (int k = 0; k < COLUMNS; k++)
        q->q[k] = gm_alloc((size_t)n, sizeof(double));
    return q;
}

void gm_normal_close(GmNormal *q)
{
    if (!q)
        return;
    free(q->mean);
    free(q->root);
    free(q->work);
    for (int k = 0; k < COLUMNS; k++)
        free(q->q[k]);
    free(q);
}

static double dot(long n, const double *a, const double *b)
{
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

// C, of the pairs in the order in which they came.
static void small_matrix(const GmAscent *a, double C[COLUMNS][COLUMNS])
{
    const int m = a->pairs;
    double R[GM_ASCENT_PAIRS][GM_ASCENT_PAIRS], inverse[GM_ASCENT_PAIRS][GM_ASCENT_PAIRS] = { { 0 } }, inner[GM_ASCENT_PAIRS][GM_ASCENT_PAIRS];
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            const double *yi = a->y[m - 1 - i], *yj = a->y[m - 1 - j];
            R[i][j] = i <= j ? dot(a->n, a->s[m - 1 - i], yj) : 0;
            inner[i][j] = i == j ? R[i][i] : 0;
            for (long k = 0; k < a->n; k++)
                inner[i][j] += a->diagonal[k] * yi[k] * yj[k];
        }
    for (int j = 0; j < m; j++)                      // the inverse of an upper triangle, column by column
        for (int i = j; i >= 0; i--) {
            double sum = i == j;
            for (int k = i + 1; k <= j; k++)
                sum -= R[i][k] * inverse[k][j];
            inverse[i][j] = sum / R[i][i];
        }
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            double sum = 0;
            for (int k = 0; k < m; k++)
                for (int l = 0; l < m; l++)
                    sum += inverse[k][i] * inner[k][l] * inverse[l][j];
            C[i][j] = sum;
            C[i][m + j] = -inverse[j][i];
            C[m + i][j] = -inverse[i][j];
            C[m + i][m + j] = 0;
        }
}

// W = Q R by Gram and Schmidt, twice; columns that depend on those before them are left out.
static void factor(GmNormal *q, const GmAscent *a, double R[COLUMNS][COLUMNS])
{
    const int m = a->pairs;
    q->rank = 0;
    for (int c = 0; c < 2 * m; c++) {
        double *w = q->work;
        for (long i = 0; i < q->n; i++)
            w[i] = c < m ? a->s[m - 1 - c][i] / q->root[i] : a->y[2 * m - 1 - c][i] * q->root[i];
        const double length = sqrt(dot(q->n, w, w));
        for (int k = 0; k < COLUMNS; k++)
            R[k][c] = 0;
        for (int again = 0; again < 2; again++)
            for (int k = 0; k < q->rank; k++) {
                const double along = dot(q->n, q->q[k], w);
                R[k][c] += along;
                for (long i = 0; i < q->n; i++)
                    w[i] -= along * q->q[k][i];
            }
        const double left = sqrt(dot(q->n, w, w));
        if (!(left > 1e-9 * length) || q->rank == q->n)
            continue;
        R[q->rank][c] = left;
        for (long i = 0; i < q->n; i++)
            q->q[q->rank][i] = w[i] / left;
        q->rank++;
    }
}

bool gm_normal_fit(GmNormal *q, const GmAscent *a)
{
    const int m = a->pairs;
    double C[COLUMNS][COLUMNS], R[COLUMNS][COLUMNS], L[COLUMNS][COLUMNS];
    q->log_root = 0;
    for (long i = 0; i < q->n; i++) {
        q->root[i] = sqrt(a->diagonal[i]);
        q->log_root += log(q->root[i]);
    }
    small_matrix(a, C);
    factor(q, a, R);
    for (int i = 0; i < q->rank; i++)
        for (int j = 0; j <= i; j++) {
            double sum = i == j;
            for (int k = 0; k < 2 * m; k++)
                for (int l = 0; l < 2 * m; l++)
                    sum += R[i][k] * C[k][l] * R[j][l];
            for (int k = 0; k < j; k++)
                sum -= L[i][k] * L[j][k];
            if (i == j && !(sum > 0))
                return false;
            L[i][j] = i == j ? sqrt(sum) : sum / L[j][j];
            q->less[i][j] = L[i][j] - (i == j);
        }
    for (int k = 0; k < q->rank; k++)
        q->log_root += log(L[k][k]);
    // mean = x + D^1/2 (v + Q (M - I) Q' v), v = D^1/2 g, M = L L'.
    double v[COLUMNS], u[COLUMNS];
    for (long i = 0; i < q->n; i++)
        q->work[i] = q->root[i] * a->gradient[i];
    for (int k = 0; k < q->rank; k++)
        v[k] = dot(q->n, q->q[k], q->work);
    for (int k = 0; k < q->rank; k++) {
        u[k] = 0;
        for (int l = k; l < q->rank; l++)
            u[k] += L[l][k] * v[l];
    }
    for (int k = q->rank - 1; k >= 0; k--) {
        double sum = 0;
        for (int l = 0; l <= k; l++)
            sum += L[k][l] * u[l];
        v[k] = sum - v[k];
    }
    bool finite = isfinite(q->log_root);
    for (long i = 0; i < q->n; i++) {
        double move = q->work[i];
        for (int k = 0; k < q->rank; k++)
            move += q->q[k][i] * v[k];
        q->mean[i] = a->x[i] + q->root[i] * move;
        finite &= isfinite(q->mean[i]);
    }
    return finite;
}

double gm_normal_draw(const GmNormal *q, Stream *g, double *x)
{
    double along[COLUMNS], add[COLUMNS], squares = 0;
    for (long i = 0; i < q->n; i++) {
        x[i] = normal_standard(g);
        squares += x[i] * x[i];
    }
    for (int k = 0; k < q->rank; k++)
        along[k] = dot(q->n, q->q[k], x);
    for (int k = 0; k < q->rank; k++) {
        add[k] = 0;
        for (int l = 0; l <= k; l++)
            add[k] += q->less[k][l] * along[l];
    }
    for (long i = 0; i < q->n; i++) {
        for (int k = 0; k < q->rank; k++)
            x[i] += q->q[k][i] * add[k];
        x[i] = q->mean[i] + q->root[i] * x[i];
    }
    return -0.5 * squares - q->log_root - 0.5 * (double)q->n * log(2 * 3.14159265358979323846);
}

void gm_normal_variances(const GmNormal *q, double *out)
{
    for (long i = 0; i < q->n; i++) {
        // row i of I + Q (L - I) Q', squared: its factors are lower triangles
        double squares = 1;
        for (int l = 0; l < q->rank; l++) {
            double sum = 0;
            for (int k = l; k < q->rank; k++)
                sum += q->q[k][i] * q->less[k][l];
            squares += sum * sum + 2 * sum * q->q[l][i];
        }
        out[i] = q->root[i] * q->root[i] * squares;
    }
}

// ---- the path ----

// E[log p - log q] by GM_PATH_DRAWS draws, of which the one whose ratio p / q is chosen at random by these ratios is left in x. -INFINITY: one of them has no density.
static double lower_bound(const GmNormal *q, GmAscent *a, Stream *g, double *draws, double *x)
{
    double ratio[GM_PATH_DRAWS], sum = 0, most = -INFINITY, whole = 0;
    for (int k = 0; k < GM_PATH_DRAWS; k++) {
        double *at = draws + k * a->n;
        const double log_q = gm_normal_draw(q, g, at), log_p = a->target(a->of, at, a->trial_gradient);
        a->evaluations++;
        ratio[k] = isfinite(log_p) ? log_p - log_q : -INFINITY;
        sum += ratio[k] / GM_PATH_DRAWS;
        most = fmax(most, ratio[k]);
    }
    for (int k = 0; k < GM_PATH_DRAWS; k++)
        whole += ratio[k] = exp(ratio[k] - most);
    double left = uniform_open(g) * whole;
    int pick = 0;
    while (pick < GM_PATH_DRAWS - 1 && (left -= ratio[pick]) > 0)
        pick++;
    if (isfinite(sum))
        memcpy(x, draws + pick * a->n, (size_t)a->n * sizeof *x);
    return isfinite(sum) ? sum : -INFINITY;
}

bool gm_pathfinder(long n, GmTarget *target, void *of, Stream *g, long most, GmPath *path)
{
    GmAscent *a = gm_ascent_open(n, target, of);
    GmNormal *q = gm_normal_open(n);
    double *draws = gm_alloc((size_t)n * GM_PATH_DRAWS, sizeof *draws), *start = gm_alloc((size_t)n, sizeof *start);
    long climbed = 0;
    a->enough = 1e-3;
    path->elbo = -INFINITY;
    for (bool more = gm_ascent_begin(a, path->x); more && climbed < most;) {
        const long before = a->evaluations, steps = a->steps;
        more = gm_ascent_step(a);
        climbed += a->evaluations - before;
        if (a->steps == steps || a->pairs == 0 || a->state == GM_ASCENT_UNBOUNDED || a->state == GM_ASCENT_STUCK || !gm_normal_fit(q, a))
            continue;
        const double elbo = lower_bound(q, a, g, draws, start);
        if (!(elbo > path->elbo))
            continue;
        path->elbo = elbo;
        memcpy(path->x, start, (size_t)n * sizeof *start);
        if (path->variances)
            gm_normal_variances(q, path->variances);
    }
    path->evaluations = a->evaluations;
    free(draws);
    free(start);
    gm_normal_close(q);
    gm_ascent_close(a);
    return path->elbo > -INFINITY;
}
