// If this failed, joint normals would be drawn from the wrong law by one of the three routes: dense, arrow, rows.
//
// The same precision J and shift h are handed to each route. Means and covariances of many draws against J^-1 h and J^-1, which come from
// elimination in long double; a covariance's standard error follows from normality, sqrt((S_ii S_jj + S_ij^2) / draws).
#include "check.h"
#include "../../runtime/backends/linalg.h"
#include "../../runtime/device/gamma.h"

enum { P = 7, N = 3, M = 4, LAW = 1000000 };       // coefficients; rows; of an arrow: the last M of them are effects

static double D[P], h0[P], rows[N * P], y[N];      // precision D + rows'rows, shift h0 + rows'y
static double J[P * P], h[P], mean[P], S[P * P];

// Solves A x = b for m right-hand sides by elimination with pivots, in long double.
static void solve_by_hand(int n, int m, const long double *A, const long double *b, double *x)
{
    static long double a[32 * 64];
    const int w = n + m;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) a[i * w + j] = A[i * n + j];
        for (int j = 0; j < m; j++) a[i * w + n + j] = b[i * m + j];
    }
    for (int c = 0; c < n; c++) {
        int best = c;
        for (int i = c + 1; i < n; i++)
            if (fabsl(a[i * w + c]) > fabsl(a[best * w + c])) best = i;
        for (int j = 0; j < w; j++) { long double t = a[c * w + j]; a[c * w + j] = a[best * w + j]; a[best * w + j] = t; }
        for (int i = 0; i < n; i++) {
            if (i == c) continue;
            const long double f = a[i * w + c] / a[c * w + c];
            for (int j = c; j < w; j++) a[i * w + j] -= f * a[c * w + j];
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) x[i * m + j] = (double)(a[i * w + n + j] / a[i * w + i]);
}

// J, h, mean and S from D, h0, rows and y.
static void assemble(void)
{
    long double A[P * P], b[P], I[P * P] = {0};
    for (int i = 0; i < P; i++) {
        b[i] = h0[i];
        I[i * P + i] = 1;
        for (int k = 0; k < N; k++) b[i] += (long double)rows[k * P + i] * y[k];
        h[i] = (double)b[i];
        for (int j = 0; j < P; j++) {
            A[i * P + j] = i == j ? D[i] : 0;
            for (int k = 0; k < N; k++) A[i * P + j] += (long double)rows[k * P + i] * rows[k * P + j];
            J[i * P + j] = (double)A[i * P + j];
        }
    }
    solve_by_hand(P, 1, A, b, mean);
    solve_by_hand(P, P, A, I, S);
}

static void example(void)
{
    Sweep  at = { SEED, 0, 0 };
    Stream s = stream(at, 900, 0);
    for (int a = 0; a < P; a++) {
        D[a] = 0.3 + 0.4 * a;
        h0[a] = normal_standard(&s);
    }
    for (int i = 0; i < N * P; i++) rows[i] = normal_standard(&s);
    for (int i = 0; i < N; i++) y[i] = 2 * normal_standard(&s);
    assemble();
}

// The rows whose effects (the last M coefficients) come one to a row make an arrow.
static void example_arrow(void)
{
    example();
    for (int i = 0; i < N; i++)
        for (int a = P - M; a < P; a++) rows[i * P + a] = a - (P - M) == i ? 1.3 : 0;
    assemble();
}

typedef enum { DENSE, ARROW, ROWS } Route;

static long draw_by(Route route, Stream *g, double *x, GmScale *scale)
{
    double JJ[P * P], hh[P], DD[P], RR[N * P], yy[N], W[N * N];
    if (route == DENSE) {
        memcpy(JJ, J, sizeof J);
        memcpy(hh, h, sizeof h);
        return gm_normal_dense(g, P, JJ, hh, x, scale);
    }
    if (route == ROWS) {
        memcpy(DD, D, sizeof D);
        memcpy(hh, h0, sizeof h0);
        memcpy(RR, rows, sizeof rows);
        memcpy(yy, y, sizeof y);
        return gm_normal_rows(g, N, P, DD, hh, RR, yy, W, x, scale);
    }
    enum { F = P - M };
    double E[M * F], k[M], DM[M];
    for (int a = 0; a < F; a++)
        for (int b = 0; b < F; b++) JJ[a * F + b] = J[a * P + b];
    for (int e = 0; e < M; e++) {
        for (int a = 0; a < F; a++) E[e * F + a] = J[(F + e) * P + a];
        DM[e] = J[(F + e) * P + F + e];
        k[e] = h[F + e];
    }
    memcpy(hh, h, sizeof h);
    return gm_normal_arrow(g, F, JJ, hh, x, M, DM, E, k, x + F, scale);
}

// Largest |z| over means, and over all variances and covariances: 7 and 28 of them, so two times 35 * 2e-9 of a false alarm a case.
static void law(const char *what, Route route)
{
    double sum[P] = {0}, cross[P * P] = {0}, worst_mean = 0, worst_cov = 0;
    const uint32_t variable = next_variable++;
    long bad = 0;
    for (long i = 0; i < LAW; i++) {
        Sweep  at = { SEED, 0, (uint64_t)i };        // elements are taken by the parts of a draw
        Stream g = stream(at, variable, 0);
        double x[P];
        bad += draw_by(route, &g, x, NULL) != 0;
        for (int a = 0; a < P; a++) x[a] -= mean[a];
        for (int a = 0; a < P; a++) {
            sum[a] += x[a];
            for (int b = 0; b <= a; b++) cross[a * P + b] += x[a] * x[b];
        }
    }
    for (int a = 0; a < P; a++) {
        const double z = fabs(sum[a] / LAW) / sqrt(S[a * P + a] / LAW);
        if (!(z <= worst_mean)) worst_mean = z;
        for (int b = 0; b <= a; b++) {
            const double se = sqrt((S[a * P + a] * S[b * P + b] + S[a * P + b] * S[a * P + b]) / LAW);
            const double v = fabs(cross[a * P + b] / LAW - S[a * P + b]) / se;
            if (!(v <= worst_cov)) worst_cov = v;
        }
    }
    check(what, "failed", (double)bad, 0);
    check(what, "z mean", worst_mean, BOUND_Z);
    check(what, "z cov", worst_cov, BOUND_Z);
}

// A draw is its mean plus noise that does not depend on h0 and y: with the same stream the difference of two draws is a difference of
// means.
static void exact_mean(const char *what, Route route, double bound)
{
    double with[P], without[P], keep_h[P], keep_y[N], keep[P], worst = 0;
    Sweep  at = { SEED, 0, 0 };
    Stream g = stream(at, 901, 0), same = g;
    draw_by(route, &g, with, NULL);
    memcpy(keep_h, h0, sizeof h0);
    memcpy(keep_y, y, sizeof y);
    memcpy(keep, h, sizeof h);
    memset(h0, 0, sizeof h0);
    memset(y, 0, sizeof y);
    memset(h, 0, sizeof h);
    draw_by(route, &same, without, NULL);
    memcpy(h0, keep_h, sizeof h0);
    memcpy(y, keep_y, sizeof y);
    memcpy(h, keep, sizeof h);
    for (int a = 0; a < P; a++) {
        const double e = fabs(with[a] - without[a] - mean[a]) / (fabs(mean[a]) + sqrt(S[a * P + a]));
        if (!(e <= worst)) worst = e;
    }
    check(what, "error", worst, bound);
}

// The scale is drawn first, from h'J^-1 h alone: with one stream every route must draw the same one. Its shift is then the scaled one.
static void scale_move(const char *what, Route route)
{
    double hJh = 0, x[P], plain[P], worst = 0;
    for (int a = 0; a < P; a++) hJh += h[a] * mean[a];
    Sweep  at = { SEED, 0, 0 };
    Stream g = stream(at, 902, 0), same = g, parts = g;
    GmScale scale = { hJh + 4, 9, 1 };
    draw_by(route, &g, x, &scale);
    const double expected = sqrt(gamma_shape_rate(&same, 4.5, 2));
    check_close(what, scale.scale, expected, 1, 1e-13);
    double keep_h[P], keep_y[N], keep[P];
    memcpy(keep_h, h0, sizeof h0);
    memcpy(keep_y, y, sizeof y);
    memcpy(keep, h, sizeof h);
    for (int a = 0; a < P; a++) { h0[a] *= expected; h[a] *= expected; }
    for (int i = 0; i < N; i++) y[i] *= expected;
    draw_by(route, &parts, plain, NULL);             // the parts of the noise do not depend on how many numbers the gamma took
    memcpy(h0, keep_h, sizeof h0);
    memcpy(y, keep_y, sizeof y);
    memcpy(h, keep, sizeof h);
    for (int a = 0; a < P; a++)
        if (!(fabs(x[a] - plain[a]) <= worst)) worst = fabs(x[a] - plain[a]);
    check(what, "error", worst, 1e-12);
}

// --check by rows against --check by J: the same difference of log densities.
static void claims(void)
{
    double from[P], to[P];
    Sweep  at = { SEED, 0, 0 };
    Stream g = stream(at, 903, 0);
    for (int a = 0; a < P; a++) { from[a] = normal_standard(&g); to[a] = normal_standard(&g); }
    gm_quadratic_before(P, J, h, from);
    const double dense = gm_quadratic_after(to);
    gm_rows_before(N, P, D, h0, rows, y, from);
    check_close("the ratio check of the rows route", gm_rows_after(to), dense, 1, 1e-13);
}

static void refusals(void)
{
    double x[P];
    Sweep  at = { SEED, 0, 0 };
    Stream g = stream(at, 904, 0);
    example();
    D[4] = 0;
    check_close("a precision of zero is named", (double)draw_by(ROWS, &g, x, NULL), 5, 1, 0);
    D[4] = -1;
    check_close("a negative precision is named", (double)draw_by(ROWS, &g, x, NULL), 5, 1, 0);
    example();
    rows[P + 2] = NAN;
    check("a row that is not a number is refused", "accepted", draw_by(ROWS, &g, x, NULL) == 0, 0);
    example();
    y[0] = INFINITY;
    check("an infinite shift is refused", "accepted", draw_by(ROWS, &g, x, NULL) == 0, 0);
    // No rows: the elements are independent.
    example();
    double DD[P], hh[P];
    memcpy(DD, D, sizeof D);
    memcpy(hh, h0, sizeof h0);
    Stream same = g;
    check("no rows", "failed", (double)gm_normal_rows(&g, 0, P, DD, hh, NULL, NULL, NULL, x, NULL), 0);
    double worst = 0;
    for (int a = 0; a < P; a++) {
        Stream part = stream_part(&same, (uint64_t)a);
        worst = fmax(worst, fabs(x[a] - (h0[a] / D[a] + normal_standard(&part) / sqrt(D[a]))));
    }
    check("no rows", "error", worst, 1e-14);
}

// X beta, for widths and numbers of rows on either side of those that are taken by fours; arrays end where they end, for the address
// sanitizer.
static void row_products(void)
{
    double worst = 0;
    int differ = 0;
    Stream g = stream((Sweep){.seed = SEED}, 77, 0);
    for (long p = 0; p <= 70; p++)
        for (long n = 1; n <= 9; n += p % 3 + 1) {
            double *X = malloc(sizeof *X * (size_t)(n * p + !p)), *beta = malloc(sizeof *beta * (size_t)(p + !p)),
                   *dot = malloc(sizeof *dot * (size_t)n), one;
            for (long e = 0; e < n * p; e++) X[e] = normal_standard(&g);
            for (long j = 0; j < p; j++) beta[j] = normal_standard(&g);
            rows_times(n, p, X, beta, dot);
            for (long i = 0; i < n; i++) {
                long double sum = 0;
                for (long j = 0; j < p; j++) sum += (long double)X[i * p + j] * beta[j];
                worst = fmax(worst, fabs((double)(dot[i] - sum)));
                rows_times(1, p, X + i * p, beta, &one);
                differ += p <= 64 && one != dot[i];
            }
            free(X);
            free(beta);
            free(dot);
        }
    check("products of rows and a vector", "error", worst, 1e-13);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        check("products of short rows, wherever a row begins", "differ", differ, 0);
#endif
}

// X B and X'W for matrices that lie either way, with few and with many outputs.
static void matrix_products(void)
{
    static const long width[] = {0, 1, 3, 8, 17, 65, 200}, outputs[] = {1, 2, 3, 9, 10, 16, 33}, rows[] = {1, 2, 7, 40};
    double worst = 0, worst_back = 0;
    Stream g = stream((Sweep){.seed = SEED}, 78, 0);
    for (int t = 0; t < 2 * 7 * 7 * 4; t++) {
        const long p = width[t / 2 % 7], k = outputs[t / 14 % 7], n = rows[t / 98];
        const int transposed = t % 2;
        double *X = malloc(sizeof *X * (size_t)(n * p + !p)), *B = malloc(sizeof *B * (size_t)(k * p + !p)),
               *eta = malloc(sizeof *eta * (size_t)(n * k));
        double *W = malloc(sizeof *W * (size_t)(n * k)), *out = malloc(sizeof *out * (size_t)(k * p + !p));
        for (long e = 0; e < n * p; e++) X[e] = normal_standard(&g);
        for (long e = 0; e < k * p; e++) { B[e] = normal_standard(&g); out[e] = e; }
        for (long e = 0; e < n * k; e++) W[e] = normal_standard(&g);
        rows_times_matrix(n, p, k, X, B, transposed, eta);
        rows_added_matrix(n, p, k, X, W, transposed, out);
        for (long o = 0; o < k; o++) {
            for (long i = 0; i < n; i++) {
                long double sum = 0;
                for (long j = 0; j < p; j++) sum += (long double)X[i * p + j] * B[transposed ? o * p + j : j * k + o];
                worst = fmax(worst, fabs((double)(eta[i * k + o] - sum)));
            }
            for (long j = 0; j < p; j++) {
                const long e = transposed ? o * p + j : j * k + o;
                long double sum = e;
                for (long i = 0; i < n; i++) sum += (long double)X[i * p + j] * W[i * k + o];
                worst_back = fmax(worst_back, fabs((double)(out[e] - sum)) / (1 + e));
            }
        }
        free(X);
        free(B);
        free(eta);
        free(W);
        free(out);
    }
    check("products of rows and a matrix", "error", worst, 1e-12);
    check("rows times weights, added", "error", worst_back, 1e-13);
}

// What is left when a normal is integrated out, in long double: J n by n, h of n.
static double marginal_by_hand(int n, const double *J, const double *h)
{
    static long double L[64 * 64], k[64];
    long double v = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            long double sum = J[i * n + j];
            for (int q = 0; q < j; q++) sum -= L[i * n + q] * L[j * n + q];
            L[i * n + j] = i == j ? sqrtl(sum) : sum / L[j * n + j];
        }
        k[i] = h[i];
        for (int q = 0; q < i; q++) k[i] -= L[i * n + q] * k[q];
        k[i] /= L[i * n + i];
        v += k[i] * k[i] / 2 - logl(L[i * n + i]);
    }
    return (double)v;
}

// Seasons g[t] ~ normal(-g[t - 1] - g[t - 2] - g[t - 3], s), and effects u[j] ~ normal(mu, s), seen with errors of 0.25, s from 0.1 to
// 3e-9: a factor loses up to all digits. A density is right or there is none; before there was such a bound it rose by 5 at 5e-8, and a
// scale was drawn to there.
static void marginals_of_small_scales(void)
{
    enum { T = 48, U = 6 };
    static double J[T * T], h[T], copy[T * T], x[T];
    double worst[2] = {0}, missing[2] = {0};
    for (int k = 0; k < 60; k++) {
        const double s = 0.1 * pow(10, -k / 8.0), precision = 1 / (s * s);
        memset(J, 0, sizeof J);
        for (int t = 0; t < T; t++) {
            J[t * T + t] += t < 3 ? 16.25 : 16;
            for (int i = 0; i < 4 && t >= 3; i++)
                for (int j = 0; j < 4; j++) J[(t - i) * T + t - j] += precision;
            h[t] = 16 * (1.3 * (t % 4) - 2 + 0.1 * ((t * 7) % 5));
            x[t] = 0;
        }
        memcpy(copy, J, sizeof J);
        const double right = marginal_by_hand(T, J, h), got = gm_marginal_dense(T, copy, h, x);
        if (isfinite(got)) worst[0] = fmax(worst[0], fabs(got - right));
        else if (s > 3e-6) missing[0]++;

        double whole[(U + 1) * (U + 1)] = {0}, of[U + 1], n1[1] = {U * precision + 0.01}, h1[1] = {0.2}, D[U], E[U], at[U], u[U] = {0};
        whole[U * (U + 1) + U] = n1[0];                        // the mean last, as the arrow has it
        of[U] = h1[0];
        for (int j = 0; j < U; j++) {
            whole[j * (U + 1) + j] = D[j] = precision + 16;
            whole[U * (U + 1) + j] = E[j] = -precision;
            of[j] = at[j] = 16 * (0.5 * j - 1);
        }
        const double of_arrow = marginal_by_hand(U + 1, whole, of), arrow = gm_marginal_arrow(1, n1, h1, x, U, D, E, at, u);
        if (isfinite(arrow)) worst[1] = fmax(worst[1], fabs(arrow - of_arrow));
        else if (s > 3e-6) missing[1]++;
    }
    check("small scales, a chain integrated out", "error", worst[0], 0.5);
    check("small scales, a chain integrated out", "of scales above 3e-6 refused", missing[0], 0);
    check("small scales, effects with their mean", "error", worst[1], 0.5);
    check("small scales, effects with their mean", "of scales above 3e-6 refused", missing[1], 0);
}

int main(void)
{
    row_products();
    matrix_products();
    example();
    claims();
    law("dense, its law", DENSE);
    law("rows, their law", ROWS);
    exact_mean("dense, its mean", DENSE, 1e-13);
    exact_mean("rows, their mean", ROWS, 1e-13);
    scale_move("dense, a scale move", DENSE);
    scale_move("rows, a scale move", ROWS);
    example_arrow();
    law("arrow, its law", ARROW);
    law("rows that make an arrow, their law", ROWS);
    exact_mean("arrow, its mean", ARROW, 1e-13);
    scale_move("arrow, a scale move", ARROW);
    // Vague and tight priors together, and a row of weight zero: here the shift rows'y would lose 8 digits.
    example();
    for (int a = 0; a < P; a++) D[a] = a % 2 ? 1e8 : 1e-8;
    for (int a = 0; a < P; a++) h0[a] *= sqrt(D[a]);
    for (int a = 0; a < P; a++) rows[a] = 0;
    y[0] = 0;
    assemble();
    exact_mean("rows, priors from vague to tight", ROWS, 1e-10);
    refusals();
    marginals_of_small_scales();
    return finish();
}
