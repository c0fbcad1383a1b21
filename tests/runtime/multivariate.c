// If this failed, vectors, covariance matrices, simplexes or correlation matrices would be drawn from the wrong law.
#include "check.h"
#include "../../runtime/device/multivariate.h"
#include "../../runtime/device/dirichlet.h"
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf.h>

enum { D = 4 };
static const double S[D * D] = { 2, 0.6, -0.3, 0.1, 0.6, 1, 0.2, 0, -0.3, 0.2, 1.5, 0.7, 0.1, 0, 0.7, 3 };   // positive definite
static const double mu[D] = { 1, -2, 0.5, 3 };
static const double direction[D] = { 1, -0.5, 2, 0.3 };
static double Sinv[D * D], L[D * D], log_det_S;

static double quadratic(const double *A, const double *a)
{
    double sum = 0;
    for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) sum += a[i] * A[i * D + j] * a[j];
    return sum;
}
static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < D; i++) sum += a[i] * b[i];
    return sum;
}

// Largest |A B - I|.
static double off_identity(const double *A, const double *B, long n)
{
    double worst = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            double sum = -(i == j);
            for (long k = 0; k < n; k++) sum += A[i * n + k] * B[k * n + j];
            if (!(fabs(sum) <= worst)) worst = fabs(sum);
        }
    return worst;
}

static void factors(void)
{
    enum { M = 30 };
    static double A[M * M], keep[M * M], inverse[M * M], B[M * M], b[M], x[M];
    Sweep  at = { SEED, 0, 0 };
    Stream s = stream(at, 500, 0);
    for (int i = 0; i < M * M; i++) B[i] = normal_standard(&s);
    times_transpose(B, M, A);
    for (int i = 0; i < M; i++) A[i * M + i] += 5;       // condition number below 30
    memcpy(keep, A, sizeof A);
    check("chol_factor succeeds", "pivot", (double)chol_factor(A, M), 0);
    static double back[M * M];
    lower_times_transpose(A, M, back);
    double worst = 0, upper = 0;
    for (int i = 0; i < M * M; i++) {
        worst = fmax(worst, fabs(back[i] - keep[i]));
        if (i % M > i / M) upper = fmax(upper, fabs(A[i]));
    }
    check("L L' - A", "error", worst, 1e-12);            // entries up to 60, times 30 roundings
    check("above the diagonal of L", "size", upper, 0);
    for (int i = 0; i < M; i++) b[i] = x[i] = normal_standard(&s);
    chol_solve_lower(A, M, x);
    chol_solve_upper(A, M, x);
    worst = 0;
    for (int i = 0; i < M; i++) {
        double sum = -b[i];
        for (int j = 0; j < M; j++) sum += keep[i * M + j] * x[j];
        worst = fmax(worst, fabs(sum));
    }
    check("A x - b", "error", worst, 1e-13);
    memcpy(A, keep, sizeof A);
    check("spd_inverse succeeds", "pivot", (double)spd_inverse(A, M, inverse), 0);
    check("A A^-1 - I", "error", off_identity(keep, inverse, M), 1e-13);
    double sign, of_general[9], general[9] = {0, 2, -1, 3, 0.5, 1, 1, 1, 4}, copy[9];
    memcpy(copy, general, sizeof copy);
    check("log |det| of a matrix that is not symmetric", "error",
          fabs(gauss_jordan(copy, 3, of_general, &sign) - log(24.5)) + fabs(sign + 1), 1e-14);
    check("its inverse", "error", off_identity(general, of_general, 3), 1e-14);
    check("it is not symmetric", "not", matrix_is_symmetric(general, 3) + !matrix_is_symmetric(keep, M), 0);
    memcpy(copy, (double[]){1, 2, 2, 4}, 4 * sizeof *copy);
    check("a singular one", "not", !(gauss_jordan(copy, 2, of_general, &sign) == -INFINITY && of_general[0] != of_general[0]), 0);

    double C[D * D];
    memcpy(C, S, sizeof S);
    chol_factor(C, D);
    // |S| by expansion of Gauss elimination in long double, apart from the factor.
    long double G[D * D], det = 1;
    for (int i = 0; i < D * D; i++) G[i] = S[i];
    for (int k = 0; k < D; k++) {
        det *= G[k * D + k];
        for (int i = k + 1; i < D; i++)
            for (int j = D - 1; j >= k; j--) G[i * D + j] -= G[i * D + k] / G[k * D + k] * G[k * D + j];
    }
    check_close("chol_log_determinant", chol_log_determinant(C, D), (double)logl(det), 1, 1e-14);
    double bad[9] = { 1, 2, 0, 2, 1, 0, 0, 0, 1 };
    check("second pivot fails", "pivot - 2", fabs((double)chol_factor(bad, 3) - 2), 0);
    double nan[1] = { NAN };
    check("NaN fails", "pivot - 1", fabs((double)chol_factor(nan, 1) - 1), 0);
}

// A function of the factor of A, or of its inverse and log determinant, of which A's lower triangle decides everything.
static double of_matrix(int inverse, const double *A, const double *weight)
{
    double work[D * D], out[D * D], log_det = 0, sum = 0;
    memcpy(work, A, sizeof work);
    if (inverse) inverse_and_log_det(D, work, out, &log_det);
    else chol_in_place(D, memcpy(out, work, sizeof work));
    for (int i = 0; i < D; i++)
        for (int j = 0; j < (inverse ? D : i + 1); j++) sum += weight[i * D + j] * out[i * D + j];
    return sum + 0.7 * log_det;
}

// Differences of h = 1e-5 lose h^2 times third derivatives of some hundreds, and 1e-16/h: 1e-7 of derivatives around 1.
static void adjoints(void)
{
    Sweep  at = { SEED, 0, 0 };
    Stream s = stream(at, 501, 0);
    for (int inverse = 0; inverse < 3; inverse++) {
        double weight[D * D], slope[D * D], A[D * D], out[D * D], work[D * D], v[D], log_det, worst = 0, h = 1e-5;
        for (int i = 0; i < D; i++) v[i] = normal_standard(&s);
        for (int i = 0; i < D * D; i++) slope[i] = weight[i] = inverse == 2 ? -0.5 * v[i / D] * v[i % D] : normal_standard(&s);
        memcpy(A, S, sizeof A);
        if (inverse) {
            inverse_and_log_det(D, A, out, &log_det);
            check_close("inverse_and_log_det: log determinant", log_det, log_det_S, 1, 1e-14);
            inverse_adjoint(D, out, 0.7, slope, work);
        } else {
            chol_in_place(D, A);
            chol_adjoint(D, A, slope);
        }
        for (int i = 0; i < D; i++)
            for (int j = 0; j <= i; j++) {
                double side[2];
                for (int k = 0; k < 2; k++) {
                    memcpy(A, S, sizeof A);
                    A[i * D + j] += k ? h : -h;
                    side[k] = of_matrix(inverse, A, weight);
                }
                worst = fmax(worst, fabs((side[1] - side[0]) / (2 * h) - slope[i * D + j]));
            }
        check(inverse == 2 ? "inverse_adjoint of an outer product" : inverse ? "inverse_adjoint" : "chol_adjoint", "error", worst, 1e-7);
    }
    double bad[9] = { 1, 2, 0, 2, 1, 0, 0, 0, 1 }, out[9], log_det;
    inverse_and_log_det(3, bad, out, &log_det);
    check("no inverse: no number", "numbers", (double)(out[0] == out[0]) + (double)(log_det == log_det), 0);
}

// A normal vector: each coordinate's moments, and the law of one linear form.
#define CASE_VECTOR(what, call, mean, cov)                                                               \
    do {                                                                                                 \
        double out[D], work[2 * D * D];                                                                  \
        (void)work;                                                                                      \
        DRAW((call, dot(out, direction)));                                                               \
        const double m_ = dot(mean, direction), v_ = quadratic(cov, direction);                          \
        check_moments(what, m_, v_);                                                                     \
        CHECK_KS(what, gsl_cdf_gaussian_P(x - m_, sqrt(v_)));                                            \
        DRAW((call, (out[0] - (mean)[0]) * (out[2] - (mean)[2])));                                       \
        check_mean(what ", covariance", (cov)[2]);                                                       \
    } while (0)

static void vectors(void)
{
    CASE_VECTOR("multi_normal_mean_cholesky", multi_normal_mean_cholesky(g, D, mu, L, out), mu, S);
    CASE_VECTOR("multi_normal_mean_covariance", multi_normal_mean_covariance(g, D, mu, S, out, work), mu, S);
    CASE_VECTOR("multi_normal_mean_precision", multi_normal_mean_precision(g, D, mu, Sinv, out, work), mu, S);
    // N(J^-1 h, J^-1) with J = S^-1, h = S^-1 mu.
    double h[D];
    for (int i = 0; i < D; i++) h[i] = dot(Sinv + i * D, mu);
    CASE_VECTOR("normal_precision_shift", (memcpy(work, Sinv, sizeof Sinv), normal_precision_shift(g, D, work, h, out)), mu, S);

    double out[D], work[D * D];
    const double scale = sqrt(quadratic(S, direction)), m = dot(mu, direction);
    DRAW((multi_student_t(g, D, 3.5, mu, S, out, work), (dot(out, direction) - m) / scale));
    CHECK_KS("multi_student_t", gsl_cdf_tdist_P(x, 3.5));
}

// A Wishart: a'Wa / a'Sa ~ chi-square(df) for every a, and E log |W| = log |S| + D log 2 + sum psi((df - i) / 2).
static void wishart_case(const char *what, double df, int how)
{
    double out[D * D], work[3 * D * D], B[D * D];
    for (int i = 0; i < D * D; i++) B[i] = -0.5 * Sinv[i];
    const double scale = quadratic(S, direction);
#define WISHART                                                           \
    (how == 0   ? wishart(g, df, S, D, out, work)                         \
     : how == 1 ? wishart_df_inverse_scale(g, df, Sinv, D, out, work)     \
     : how == 2 ? wishart_natural(g, 0.5 * (df - D - 1), B, D, out, work) \
                : (wishart_df_scale_cholesky(g, df, L, D, out, work), 0L))
    DRAW((WISHART, quadratic(out, direction) / scale));
    CHECK_KS(what, gsl_cdf_chisq_P(x, df));
    DRAW((WISHART, out[1]));
    check_moments(what, df * S[1], df * (S[1] * S[1] + S[0] * S[5]));
    if (how & 1) return;                                 // the routines share what the determinant depends on
    DRAW((WISHART, chol_factor(out, D), chol_log_determinant(out, D)));
    double mean = log_det_S + D * log(2), variance = 0;
    for (int i = 0; i < D; i++) {
        mean += gsl_sf_psi(0.5 * (df - i));
        variance += gsl_sf_psi_1(0.5 * (df - i));
    }
    check_moments(what, mean, variance);
}

static void inverse_wishart_case(const char *what, double df, int natural)
{
    double out[D * D], work[3 * D * D], B[D * D];
    for (int i = 0; i < D * D; i++) B[i] = -0.5 * S[i];
#define INVERSE_WISHART (natural ? inv_wishart_natural(g, -0.5 * (df + D + 1), B, D, out, work) : inv_wishart(g, df, S, D, out, work))
    // a'Xa / a'Sa ~ inverse gamma((df - D + 1) / 2, 1/2)
    const double scale = quadratic(S, direction);
    DRAW((INVERSE_WISHART, quadratic(out, direction) / scale));
    CHECK_KS(what, gsl_cdf_gamma_Q(1 / x, 0.5 * (df - D + 1), 2));
    DRAW((INVERSE_WISHART, out[6]));
    check_mean(what, S[6] / (df - D - 1));
}

static void simplexes(void)
{
    static const double alpha[3] = { 2, 0.5, 4 }, natural[3] = { 1, -0.5, 3 };
    double out[3];
    DRAW((dirichlet(g, alpha, 3, out), out[1]));
    CHECK_KS("dirichlet", gsl_cdf_beta_P(x, 0.5, 6));
    DRAW((dirichlet_natural(g, natural, 3, out), out[0]));
    CHECK_KS("dirichlet_natural", gsl_cdf_beta_P(x, 2, 4.5));
    DRAW((dirichlet(g, alpha, 3, out), (out[0] - 2 / 6.5) * (out[2] - 4 / 6.5)));
    check_mean("dirichlet covariance", -8 / (6.5 * 6.5 * 7.5));
    DRAW((dirichlet(g, alpha, 3, out), fabs(out[0] + out[1] + out[2] - 1)));
    check_range("dirichlet sums to 1", 0, 4e-16);
    // alpha of 1e-6: a corner, with probability proportional to alpha, and no zero and no NaN elsewhere.
    static const double tiny[3] = { 1e-6, 3e-6, 4e-6 };
    DRAW((dirichlet(g, tiny, 3, out), out[0] >= GM_TINY && out[1] >= GM_TINY && out[2] >= GM_TINY ? out[2] : NAN));
    check_range("dirichlet(1e-6 ...)", GM_TINY, 1);
    check_mean("dirichlet(1e-6 ...)", 0.5);
    double v[3] = { 0.5, 0.2, 0.25 }, w[4];
    stick_breaking(v, 4, w);
    check_close("stick_breaking", w[0] + 10 * w[1] + 100 * w[2] + 1000 * w[3], 0.5 + 1 + 10 + 300, 1, 1e-15);
}

static void correlations(void)
{
    // Each correlation of an LKJ(eta) matrix of order n is 2 beta(b, b) - 1 with b = eta - 1 + n / 2.
    static const double eta[] = { 0.5, 1, 4 };
    for (int k = 0; k < 3; k++) {
        const double b = eta[k] - 1 + 2;
        char what[64];
        double R[D * D], work[D * D];
        snprintf(what, sizeof what, "lkj_corr(%g)", eta[k]);
        DRAW((lkj_corr(g, eta[k], D, R, work), k == 0 ? R[1] : k == 1 ? R[1 * D + 2] : R[2 * D + 3]));
        CHECK_KS(what, gsl_cdf_beta_P(0.5 * (1 + x), b, b));
    }
}

int main(void)
{
    gsl_set_error_handler_off();
    factors();
    double copy[D * D];
    memcpy(copy, S, sizeof S);
    spd_inverse(copy, D, Sinv);
    memcpy(L, copy, sizeof L);
    log_det_S = chol_log_determinant(L, D);
    adjoints();
    vectors();
    wishart_case("wishart(7, S)", 7, 0);
    wishart_case("wishart_df_inverse_scale(4.5, S^-1)", 4.5, 1);
    wishart_case("wishart_natural, df 5.5", 5.5, 2);
    wishart_case("wishart_df_scale_cholesky(20, L)", 20, 3);
    inverse_wishart_case("inv_wishart(9, S)", 9, 0);
    inverse_wishart_case("inv_wishart_natural, df 8.5", 8.5, 1);
    simplexes();
    correlations();
    return finish();
}
