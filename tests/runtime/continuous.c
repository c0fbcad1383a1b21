// If this failed, a continuous draw would come from the wrong law, or become 0, infinity or NaN for legal parameters.
#include "check.h"
#include "../../runtime/device/normal.h"
#include "../../runtime/device/exponential.h"
#include "../../runtime/device/gamma.h"
#include "../../runtime/device/beta.h"
#include "../../runtime/device/gig.h"
#include "../../runtime/device/student.h"
#include "../../runtime/device/others.h"
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf.h>

// Distribution function from a density given on a grid in t, by trapezoids; smooth densities that vanish at both ends, or nearly
// straight between points: error below 1e-7.
#define GRID 20000
static double grid_p[GRID + 1], grid_from, grid_to;
#define TABULATE(from, to, log_density_t)                                                                \
    do {                                                                                                 \
        double top_ = -INFINITY, sum_ = 0;                                                               \
        grid_from = (from);                                                                              \
        grid_to = (to);                                                                                  \
        for (int k_ = 0; k_ <= GRID; k_++) {                                                             \
            const double t = grid_from + (grid_to - grid_from) * k_ / GRID;                              \
            grid_p[k_] = (log_density_t);                                                                \
            if (grid_p[k_] > top_) top_ = grid_p[k_];                                                    \
        }                                                                                                \
        double last_ = exp(grid_p[0] - top_);                                                            \
        grid_p[0] = 0;                                                                                   \
        for (int k_ = 1; k_ <= GRID; k_++) {                                                             \
            const double f_ = exp(grid_p[k_] - top_);                                                    \
            grid_p[k_] = sum_ += 0.5 * (f_ + last_);                                                     \
            last_ = f_;                                                                                  \
        }                                                                                                \
        for (int k_ = 0; k_ <= GRID; k_++) grid_p[k_] /= sum_;                                           \
    } while (0)

static double tabulated(double t)
{
    const double at = (t - grid_from) / (grid_to - grid_from) * GRID;
    if (at <= 0) return 0;
    if (at >= GRID) return 1;
    const int k = (int)at;
    return grid_p[k] + (at - k) * (grid_p[k + 1] - grid_p[k]);
}

// Inverse Gaussian distribution function (Chhikara and Folks 1974).
static double inverse_gaussian_P(double x, double mean, double shape)
{
    const double r = sqrt(shape / x);
    return 0.5 * erfc(-r * (x / mean - 1) / sqrt(2)) + exp(2 * shape / mean + gsl_sf_log_erfc(r * (x / mean + 1) / sqrt(2)) - log(2));
}

static void normals(void)
{
    CASE_KS(normal_mean_sd(g, -3, 2), gsl_cdf_gaussian_P(x + 3, 2));
    CASE_KS(normal_natural(g, 6, -1.5), gsl_cdf_gaussian_P(x - 2, sqrt(1.0 / 3)));
    DRAW(normal_standard(g));
    check_moments("normal_standard", 0, 1);
    for (long i = 0; i < DRAWS; i++) draws[i] = draws[i] * draws[i] * draws[i];
    check_moments("cube of normal_standard", 0, 15);
    long far = 0;                                        // expected 0.2293 of 4e5; more than 6 has probability 7e-9
    DRAW(normal_standard(g));
    for (long i = 0; i < DRAWS; i++) far += fabs(draws[i]) > 5;
    check("normal_standard beyond 5 sd", "count", (double)far, 6);
    CASE_KS(lognormal(g, 0.5, 2), gsl_cdf_lognormal_P(x, 0.5, 2));
    CASE_KS(half_normal(g, 1, 2), erf((x - 1) / (2 * sqrt(2))));
    CASE_KS(exponential_rate(g, 3), -expm1(-3 * x));
    CASE_KS(uniform_between(g, -2, 5), (x + 2) / 7);
    DRAW(uniform_between(g, -1.7e308, 1.7e308));
    CHECK_KS("uniform_between over the range of double", 0.5 + 0.5 * (x / 1.7e308));
}

static void gammas(void)
{
    CASE_KS(gamma_shape_rate(g, 1, 2), -expm1(-2 * x));
    CASE_KS(gamma_shape_rate(g, 1.01, 2), gsl_cdf_gamma_P(x, 1.01, 0.5));
    CASE_KS(gamma_shape_rate(g, 0.5, 2), gsl_cdf_gamma_P(x, 0.5, 0.5));
    CASE_KS(gamma_shape_rate(g, 0.03, 1), gsl_cdf_gamma_P(x, 0.03, 1));
    CASE_KS(gamma_shape_rate(g, 30, 1e-100) * 1e-100, gsl_cdf_gamma_P(x, 30, 1));
    DRAW(gamma_shape_rate(g, 30, 2));
    check_moments("gamma_shape_rate(30, 2)", 15, 7.5);
    DRAW((gamma_shape_rate(g, 1e14, 1) - 1e14) / 1e7);
    CHECK_KS("gamma_shape_rate(1e14, 1)", gsl_cdf_ugaussian_P(x));                           // skewness 2e-7
    // Shape 1e-5: P(X <= x) = x^shape / Gamma(1 + shape) to relative 1e-5 x. Below 2.2e-308, where 99.3 % of the mass is, draws are
    // clamped.
    DRAW(gamma_shape_rate(g, 1e-5, 1));
    check_range("gamma_shape_rate(1e-5, 1)", GM_TINY, 50);
    double tiny = 0;
    for (long i = 0; i < DRAWS; i++) tiny += draws[i] <= GM_TINY;
    const double p_tiny = exp(1e-5 * log(GM_TINY) - gsl_sf_lngamma(1 + 1e-5));
    check("gamma_shape_rate(1e-5, 1) below the smallest double", "z", fabs(tiny - DRAWS * p_tiny) / sqrt(DRAWS * p_tiny * (1 - p_tiny)),
          BOUND_Z);
    DRAW(log_gamma_standard(g, 1e-5));
    CHECK_KS("log_gamma_standard(1e-5)",
             x < -1 ? exp(1e-5 * x - gsl_sf_lngamma(1 + 1e-5)) * (1 - 1e-5 * exp(x)) : gsl_cdf_gamma_P(exp(x), 1e-5, 1));
    CASE_KS(inv_gamma_shape_scale(g, 2.5, 3), gsl_cdf_gamma_Q(1 / x, 2.5, 1.0 / 3));
    CASE_KS(root_inv_gamma(g, 2.5, 3), gsl_cdf_gamma_Q(1 / (x * x), 2.5, 1.0 / 3));
    CASE_KS(chi_square(g, 3), gsl_cdf_chisq_P(x, 3));
    CASE_KS(inv_chi_square(g, 3), gsl_cdf_chisq_Q(1 / x, 3));
    CASE_KS(scaled_inv_chi_square(g, 3, 2), gsl_cdf_chisq_Q(12 / (x * x) * x, 3));
    CASE_KS(power_gamma_natural(g, 1, 2, -3), gsl_cdf_gamma_P(x, 3, 1.0 / 3));
    CASE_KS(power_gamma_natural(g, -1, -3, -3), gsl_cdf_gamma_Q(1 / x, 2, 1.0 / 3));
    CASE_KS(power_gamma_natural(g, -2, -4, -3), gsl_cdf_gamma_Q(1 / (x * x), 1.5, 1.0 / 3));
    CASE_KS(power_gamma_natural(g, 2.5, 1.5, -0.5), gsl_cdf_gamma_P(pow(x, 2.5), 1, 2));
    // Draws of both extremes stay finite and positive.
    DRAW(inv_gamma_shape_scale(g, 1e-3, 1));
    check_range("inv_gamma_shape_scale(1e-3, 1)", GM_TINY, GM_HUGE);
    DRAW(power_gamma_natural(g, 0.01, 0, -1));
    check_range("power_gamma_natural(0.01, 0, -1)", GM_TINY, GM_HUGE);
    CASE_KS(beta_a_b(g, 2, 3), gsl_cdf_beta_P(x, 2, 3));
    CASE_KS(beta_a_b(g, 0.5, 0.5), gsl_cdf_beta_P(x, 0.5, 0.5));
    CASE_KS(beta_a_b(g, 0.05, 3), gsl_cdf_beta_P(x, 0.05, 3));
    CASE_KS(beta_natural(g, 300, 20), gsl_cdf_beta_P(x, 301, 21));
    DRAW(beta_a_b(g, 1e-5, 3e-5));                       // two points nearly: near 1 with probability a / (a + b)
    check_range("beta_a_b(1e-5, 3e-5)", GM_TINY, GM_BELOW_ONE);
    check_mean("beta_a_b(1e-5, 3e-5)", 0.25);
    DRAW(beta_a_b(g, 1e12, 3e12) - 0.25);
    check_moments("beta_a_b(1e12, 3e12)", 0, 3.0 / 16 / 4e12);
}

static void inverse_gaussians(void)
{
    CASE_KS(inverse_gaussian_mean_shape(g, 2, 3), inverse_gaussian_P(x, 2, 3));
    CASE_KS(inverse_gaussian_mean_shape(g, 1, 0.1), inverse_gaussian_P(x, 1, 0.1));
    DRAW(inverse_gaussian_mean_shape(g, 2, 3));
    check_moments("inverse_gaussian_mean_shape(2, 3)", 2, 8.0 / 3);
    CASE_KS(inverse_gaussian_mean_shape(g, INFINITY, 3), gsl_cdf_chisq_Q(3 / x, 1));
    CASE_KS(inverse_gaussian_mean_shape(g, 1e300, 3), gsl_cdf_chisq_Q(3 / x, 1));
    CASE_KS(inverse_gaussian_mean_shape(g, 1e10, 1e-6), gsl_cdf_chisq_Q(1e-6 / x, 1));        // differs by P(x > 1e10) = 1e-8
    DRAW((inverse_gaussian_mean_shape(g, 2, 2e12) - 2) * 5e5);                                // sd 2e-6: normal, skewness 3e-6
    CHECK_KS("inverse_gaussian_mean_shape(2, 2e12)", gsl_cdf_gaussian_P(x, 1));

    static const double gig[][3] = {
        { 1.5, 2, 3 }, { -1.5, 2, 3 }, { 0, 1, 1 }, { 0, 1e-4, 1e-4 }, { 0.5, 2, 3 }, { -0.5, 2, 3 }, { 40, 0.1, 5 }, { -40, 5, 0.1 },
        { 0.01, 1e-3, 1e-6 }, { 2, 1e4, 1e4 }, { 5, 2, 1e-12 }, { -0.3, 1e-6, 4 },
    };
    for (unsigned k = 0; k < sizeof gig / sizeof *gig; k++) {
        const double p = gig[k][0], a = gig[k][1], b = gig[k][2];
        char what[64];
        snprintf(what, sizeof what, "gig_p_a_b(%g, %g, %g)", p, a, b);
        // The mass in t = log x: where the exponent has fallen by 45 from its top, found by walking outwards.
        const double mode = p >= 0 ? log((p + hypot(p, sqrt(a * b))) / a) : log(b / (hypot(p, sqrt(a * b)) - p));
#define EXPONENT(t) (p * (t) - 0.5 * a * exp(t) - 0.5 * b * exp(-(t)))
        double left = mode, right = mode;
        const double top = EXPONENT(mode), walk = 0.01 / (1 + 0.01 * sqrt(a * b));
        while (EXPONENT(left) > top - 45) left -= walk;
        while (EXPONENT(right) > top - 45) right += walk;
        TABULATE(left, right, EXPONENT(t));
        DRAW(log(gig_p_a_b(g, p, a, b)));
        CHECK_KS(what, tabulated(x));
    }
    CASE_KS(gig_p_a_b(g, 2, 3, 0), gsl_cdf_gamma_P(x, 2, 2.0 / 3));
    CASE_KS(gig_p_a_b(g, -2, 0, 3), gsl_cdf_gamma_Q(1 / x, 2, 2.0 / 3));
    TABULATE(-4, 3, 1.5 * t - exp(3 * t) - 0.5 * exp(-3 * t));
    CASE_KS(power_gig_natural(g, 3, 0.5, -1, -0.5), tabulated(log(x)));
    TABULATE(-6, 6, 1.5 * t - exp(t) - 0.5 * exp(-t));
    CASE_KS(power_gig_natural(g, -1, 0.5, -0.5, -1), tabulated(log(x)));
    CASE_KS(power_gig_natural(g, -2, 0.5, 0, -1), gsl_cdf_gamma_P(x * x, 0.75, 1));
}

static void students(void)
{
    CASE_KS(student_t(g, 3, 1, 2), gsl_cdf_tdist_P((x - 1) / 2, 3));
    CASE_KS(student_t(g, 0.3, 0, 1), gsl_cdf_tdist_P(x, 0.3));
    CASE_KS(student_t(g, 1e10, 0, 1), gsl_cdf_ugaussian_P(x));
    CASE_KS(student_t(g, INFINITY, 0, 1), gsl_cdf_ugaussian_P(x));
    CASE_KS(half_student_t(g, 4, 1, 2), 2 * gsl_cdf_tdist_P((x - 1) / 2, 4) - 1);
    CASE_KS(cauchy(g, 1, 2), gsl_cdf_cauchy_P(x - 1, 2));
    CASE_KS(half_cauchy(g, 1, 2), 2 * gsl_cdf_cauchy_P(x - 1, 2) - 1);
    DRAW(student_t(g, 1e-3, 0, 1));
    check_range("student_t(1e-3, 0, 1)", -GM_HUGE, GM_HUGE);
}

static void others(void)
{
    CASE_KS(double_exponential(g, 1, 2), gsl_cdf_laplace_P(x - 1, 2));
    CASE_KS(logistic(g, 1, 2), gsl_cdf_logistic_P(x - 1, 2));
    CASE_KS(loglogistic(g, 2, 3), 1 / (1 + pow(x / 2, -3)));
    CASE_KS(weibull(g, 1.5, 2), gsl_cdf_weibull_P(x, 2, 1.5));
    CASE_KS(frechet(g, 1.5, 2), exp(-pow(x / 2, -1.5)));
    CASE_KS(rayleigh(g, 2), gsl_cdf_rayleigh_P(x, 2));
    CASE_KS(gumbel(g, 1, 2), exp(-exp(-(x - 1) / 2)));
    CASE_KS(pareto(g, 2, 3), 1 - pow(x / 2, -3));
    CASE_KS(pareto_type_2(g, 1, 2, 3), 1 - pow(1 + (x - 1) / 2, -3));
    DRAW(pareto(g, 2, 1e-3));
    check_range("pareto(2, 1e-3)", 2, GM_HUGE);
    CASE_KS(asymmetric_laplace(g, 1, 2, 0.3), x < 1 ? 0.3 * exp(0.7 * (x - 1) / 2) : 1 - 0.7 * exp(-0.3 * (x - 1) / 2));
    TABULATE(-10, 10, -0.5 * t * t + log(0.5 * erfc(-3 * t / sqrt(2)) + 1e-300));
    CASE_KS(skew_normal(g, 1, 2, 3), tabulated((x - 1) / 2));
    // Normal plus exponential: integral of the convolution, F = Phi(z) - exp(-l y + l^2 s^2 / 2) Phi(z - l s).
    CASE_KS(exp_mod_normal(g, 1, 2, 0.7),
            gsl_cdf_ugaussian_P((x - 1) / 2) - exp(-0.7 * (x - 1) + 0.98) * gsl_cdf_ugaussian_P((x - 1) / 2 - 1.4));

    static const double kappas[] = { 0, 1e-7, 1e-3, 0.5, 3, 200, 1e5 };
    for (unsigned k = 0; k < sizeof kappas / sizeof *kappas; k++) {
        const double kappa = kappas[k], reach = kappa > 100 ? 9 / sqrt(kappa) : GM_PI;
        char what[64];
        snprintf(what, sizeof what, "von_mises(1, %g)", kappa);
        TABULATE(-reach, reach, -2 * kappa * sin(0.5 * t) * sin(0.5 * t));
        DRAW(von_mises(g, 1, kappa));
        check_range(what, -GM_PI, GM_PI);
        for (long i = 0; i < DRAWS; i++) draws[i] = draws[i] - 1 < -GM_PI ? draws[i] - 1 + 2 * GM_PI : draws[i] - 1;
        CHECK_KS(what, tabulated(x));
    }
    DRAW(von_mises(g, 0, 1e12) * 1e6);
    CHECK_KS("von_mises(0, 1e12)", gsl_cdf_ugaussian_P(x));
    TABULATE(-GM_PI, GM_PI, 0.8 * cos(t) - 1.1 * sin(t));
    CASE_KS(von_mises_natural(g, 0.8, -1.1), tabulated(x));
}

int main(void)
{
    gsl_set_error_handler_off();
    normals();
    gammas();
    inverse_gaussians();
    students();
    others();
    return finish();
}
