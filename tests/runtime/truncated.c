// If this failed, a truncated draw would come from the wrong law, or leave its interval: probit, tobit and bounded parameters would be
// wrong.
#include "check.h"
#include "normal_law.h"
#include "../../runtime/device/truncated.h"
#include "../../runtime/device/gamma.h"
#include "../../runtime/device/beta.h"
#include "../../runtime/device/gig.h"
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf.h>

// One-sided: mean and variance from r = phi / Phi, on both sides of where the method changes, and the law itself.
static void one_sided(double mean, int mirrored)
{
    char what[80];
    snprintf(what, sizeof what, "normal_truncated(%g, 1, 0, inf)", mean);
    DRAW(normal_truncated(g, mean, 1, 0, INFINITY));
    check_range(what, 0, INFINITY);
    const double r = exp(-0.5 * mean * mean - 0.91893853320467274178 - gsl_sf_log_erfc(-mean / sqrt(2)) + log(2));
    if (mean > -20) check_moments(what, mean + r, 1 - r * (r + mean));
    CHECK_KS(what, normal_between(x - mean, -mean, INFINITY));
    if (!mirrored) return;
    snprintf(what, sizeof what, "normal_truncated(%g, 1, -inf, 0)", -mean);
    DRAW(-normal_truncated(g, -mean, 1, -INFINITY, 0));
    check_range(what, 0, INFINITY);
    CHECK_KS(what, normal_between(x - mean, -mean, INFINITY));
}

static void two_sided(double lo, double hi)
{
    char what[80];
    snprintf(what, sizeof what, "normal_truncated(0, 1, %g, %g)", lo, hi);
    DRAW(normal_truncated(g, 0, 1, lo, hi));
    check_range(what, lo, hi);
    CHECK_KS(what, normal_between(x, lo, hi));
    snprintf(what, sizeof what, "normal_natural_truncated(3, -0.5, %g, %g)", lo + 3, hi + 3);
    DRAW(normal_natural_truncated(g, 3, -0.5, lo + 3, hi + 3));
    check_range(what, lo + 3, hi + 3);
    CHECK_KS(what, normal_between(x - 3, lo, hi));
}

// An interval so short that the density is log-linear to 1e-12: u = (x - lo) / width has density proportional to exp(-slope u).
static void short_interval(double lo, double width)
{
    char what[80];
    snprintf(what, sizeof what, "normal_truncated(0, 1, %g, %g + %g)", lo, lo, width);
    const double hi = lo + width, real_width = hi - lo, slope = lo * real_width;
    DRAW((normal_truncated(g, 0, 1, lo, hi) - lo) / real_width);
    check_range(what, 0, 1);
    CHECK_KS(what, fabs(slope) > 1e-9 ? expm1(-slope * x) / expm1(-slope) : x);
}

// Distribution function by integrating a density over a grid in t, laid over the whole mass: trapezoids on a smooth function of
// 20000 points, error 1e-8 or less.
#define GRID 20000
static double grid_t[GRID + 1], grid_p[GRID + 1];
#define TABULATE(from, to, log_density_t)                                                                \
    do {                                                                                                 \
        double top_ = -INFINITY;                                                                         \
        for (int k_ = 0; k_ <= GRID; k_++) {                                                             \
            const double t = grid_t[k_] = (from) + ((to) - (from)) * k_ / GRID;                          \
            grid_p[k_] = (log_density_t);                                                                \
            if (grid_p[k_] > top_) top_ = grid_p[k_];                                                    \
        }                                                                                                \
        double sum_ = 0, last_ = exp(grid_p[0] - top_);                                                  \
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
    const double at = (t - grid_t[0]) / (grid_t[GRID] - grid_t[0]) * GRID;
    if (at <= 0) return 0;
    if (at >= GRID) return 1;
    const int k = (int)at;
    return grid_p[k] + (at - k) * (grid_p[k + 1] - grid_p[k]);
}

// The first cell for an interval must not lie beyond its end, or draws next to the end would be missing: 1e-3 of the mass, too little for
// the tests of laws. Cells by their sides, which tests/runtime/rng.c checks.
static void first_cells(void)
{
    long missing = 0, wasted = 0;
    for (int i = -40000; i <= 40000; i++) {
        const double a = i * 1e-4;
        const int    n = normal_cell_below(a);           // cells 256.. lie above 0; those below mirror them
        const double left = n >= GM_CELLS / 2 ? gm_cell_sides[n - GM_CELLS / 2] : n > 0 ? -gm_cell_sides[GM_CELLS / 2 - n] : -INFINITY;
        const int    m = n + 3;
        const double later =
            m >= GM_CELLS / 2 ? m < GM_CELLS ? gm_cell_sides[m - GM_CELLS / 2] : INFINITY : -gm_cell_sides[GM_CELLS / 2 - m];
        missing += !(left <= a);
        wasted += later <= a;
    }
    check("first cell of an interval", "beyond", (double)missing, 0);
    check("first cell of an interval is at most 2 early", "earlier", (double)wasted, 0);
}

int main(void)
{
    gsl_set_error_handler_off();
    first_cells();
    static const double means[] = { -40, -8, -4.5, -3.5, -1.76, -1.74, -0.5, -0.2, 0, 0.46, 0.48, 0.7, 2, 2.9, 8, 40 };
    for (unsigned k = 0; k < sizeof means / sizeof *means; k++) one_sided(means[k], k % 3 == 0);

    two_sided(-1, 1);
    two_sided(-0.3, 0.4);           // narrow around the mean
    two_sided(0.2, 5);
    two_sided(0.5, 0.8);
    two_sided(3, 3.2);
    two_sided(5, 9);
    two_sided(-9, -5);
    two_sided(-0.1, 12);
    two_sided(-0.035, 0.035);       // about 16 cells: either side of where they serve
    two_sided(-0.05, 0.05);
    two_sided(1, 1.08);
    two_sided(1, 1.2);
    two_sided(1.7, 3);
    two_sided(-2.95, 2.95);         // both ends beyond the rectangles
    CASE_KS(normal_natural_truncated(g, 0, -0.5, -1e20, 1e20), gsl_cdf_ugaussian_P(x));      // ends too far to measure from
    CASE_KS(normal_truncated(g, 0, 1, -1e300, 1e9), gsl_cdf_ugaussian_P(x));
    short_interval(0, 1e-6);
    short_interval(2, 1e-6);
    short_interval(-2, 1e-6);
    short_interval(30, 1e-6);
    short_interval(1e4, 1e-5);      // slope 0.1
    CASE_KS(normal_truncated(g, 1e6, 1, -INFINITY, 0) * -1e6, -expm1(-x));     // 1e6 sd: exponential, relative error 1e-12
    CASE_KS(normal_natural_truncated(g, -2e6, -0.5, 0, INFINITY) * 2e6, -expm1(-x));
    CASE_KS(normal_natural_truncated(g, 1e-9, -1e-18, 0, 1), x);               // sd 7e8: flat to 1e-9
    CASE_KS(normal_natural_truncated(g, 1.5, 0, 2, 4), expm1(1.5 * (x - 2)) / expm1(3.0));
    CASE_KS(normal_natural_truncated(g, -1.5, 0, 2, INFINITY), -expm1(-1.5 * (x - 2)));
    CASE_KS(normal_natural_truncated(g, 1.5, 0, -INFINITY, 4), exp(1.5 * (x - 4)));
    CASE_KS(normal_natural_truncated(g, 0, 0, -3, 4), (x + 3) / 7);
    CASE_KS(normal_natural_truncated(g, 6, -1.5, -INFINITY, INFINITY), gsl_cdf_gaussian_P(x - 2, sqrt(1.0 / 3)));

    // Gamma on intervals, from whichever tail is small.
    CASE_KS(gamma_shape_rate_truncated(g, 3, 2, 0, 1), gsl_cdf_gamma_P(x, 3, 0.5) / gsl_cdf_gamma_P(1, 3, 0.5));
    CASE_KS(gamma_shape_rate_truncated(g, 3, 2, 1, 2.5),
            (gsl_cdf_gamma_P(x, 3, 0.5) - gsl_cdf_gamma_P(1, 3, 0.5)) / (gsl_cdf_gamma_P(2.5, 3, 0.5) - gsl_cdf_gamma_P(1, 3, 0.5)));
    CASE_KS(gamma_shape_rate_truncated(g, 0.2, 2, 40, INFINITY), 1 - gsl_cdf_gamma_Q(x, 0.2, 0.5) / gsl_cdf_gamma_Q(40, 0.2, 0.5));
    CASE_KS(gamma_shape_rate_truncated(g, 0.05, 1, 0, 1e-3),
            pow(x / 1e-3, 0.05) * (1 - 0.05 * x / 1.05) / (1 - 0.05e-3 / 1.05));  // series, 1e-7
    CASE_KS(gamma_shape_rate_truncated(g, 500, 1, 0, 300), gsl_cdf_gamma_P(x, 500, 1) / gsl_cdf_gamma_P(300, 500, 1));
    CASE_KS(gamma_shape_rate_truncated(g, 3, 2, 0, INFINITY), gsl_cdf_gamma_P(x, 3, 0.5));
    CASE_KS((gamma_shape_rate_truncated(g, 3, 2, 5, 5 + 1e-7) - 5) / 1e-7, x);  // log density varies by 2e-7; x is rounded to 1e-8
    DRAW(gamma_shape_rate_truncated(g, 1e10, 1, 1e10 + 4e5, 1e10 + 6e5));                                // 4 to 6 sd out
    check_range("gamma_shape_rate_truncated(1e10, ...)", 1e10 + 4e5, 1e10 + 6e5);
    CHECK_KS("gamma_shape_rate_truncated(1e10, ...) is nearly normal", normal_between((x - 1e10) / 1e5, 4, 6));   // skewness 2e-5

    // An sd whose variance is inverse gamma, below 1: sigma ~ uniform(0, 1) in a normal likelihood. x^-2 is a gamma above 1.
    CASE_KS(power_gamma_natural_truncated(g, -2, -9, -0.1, 0, 1), gsl_cdf_gamma_Q(1 / (x * x), 4, 10) / gsl_cdf_gamma_Q(1, 4, 10));
    CASE_KS(power_gamma_natural_truncated(g, 2, 3, -0.7, 0.5, INFINITY),
            1 - gsl_cdf_gamma_Q(x * x, 2, 1 / 0.7) / gsl_cdf_gamma_Q(0.25, 2, 1 / 0.7));
    CASE_KS(inv_gamma_shape_scale_truncated(g, 2, 3, 1, 10), (gsl_cdf_gamma_Q(1 / x, 2, 1.0 / 3) - gsl_cdf_gamma_Q(1, 2, 1.0 / 3)) /
                                                                 (gsl_cdf_gamma_Q(0.1, 2, 1.0 / 3) - gsl_cdf_gamma_Q(1, 2, 1.0 / 3)));
    // Improper without the bounds: x^2.5 on (0, 3], x^-4 above 2, x^-1 between, and x^-1 exp(-x) above 1e-3.
    CASE_KS(power_natural_truncated(g, 2.5, 0, 3), pow(x / 3, 3.5));
    CASE_KS(power_natural_truncated(g, -4, 2, INFINITY), 1 - pow(x / 2, -3));
    CASE_KS(power_natural_truncated(g, -1, 1e-9, 1e9), log(x / 1e-9) / log(1e18));
    CASE_KS(gamma_shape_rate_truncated(g, 0, 1, 1e-3, INFINITY), 1 - gsl_sf_expint_E1(x) / gsl_sf_expint_E1(1e-3));

    // Natural parameters of the other sign, proper on the interval alone.
    CASE_KS(gamma_shape_rate_truncated(g, 1, -3, 0, 1), expm1(3 * x) / expm1(3.0));
    CASE_KS((1 - gamma_shape_rate_truncated(g, 1, -1e6, 0, 1)) * 1e6, -expm1(-x));
    TABULATE(log(0.2), log(0.9), 1.3 * t + 4 * exp(t) - 0.7 * exp(-t));
    CASE_KS(power_gig_natural_truncated(g, 1, 0.3, 4, -0.7, 0.2, 0.9), tabulated(log(x)));
    TABULATE(log(0.2), log(0.9), 1.3 * t - 4 * exp(t) + 0.7 * exp(-t));
    CASE_KS(power_gig_natural_truncated(g, 1, 0.3, -4, 0.7, 0.2, 0.9), tabulated(log(x)));
    TABULATE(log(0.1), log(10.0), 0.5 * t + 2 * exp(t) + 2 * exp(-t));
    CASE_KS(power_gig_natural_truncated(g, 1, -0.5, 2, 2, 0.1, 10), tabulated(log(x)));
    TABULATE(log(0.05), log(1.0), 2 * t + 1 * exp(-t));
    CASE_KS(power_gamma_natural_truncated(g, -1, 1, 1, 0.05, 1), tabulated(log(x)));
    TABULATE(-25.0, 0.0, 1.5 * t + 2 * exp(t));
    CASE_KS(gamma_shape_rate_truncated(g, 1.5, -2, 0, 1), tabulated(log(x)));
    TABULATE(0.0, 12.0, -3 * t + 2 * exp(-t));
    CASE_KS(power_gig_natural_truncated(g, 1, -4, 0, 2, 1, INFINITY), tabulated(log(x)));
    TABULATE(-6.0, log(3.0), -40 * t - 60 * exp(-t) + 8 * exp(t));
    CASE_KS(power_gig_natural_truncated(g, 1, -41, 8, -60, 0, 3), tabulated(log(x)));
    TABULATE(-1.0, 2.0, 3 * t + 2 * t * t);
    CASE_KS(normal_natural_truncated(g, 3, 2, -1, 2), tabulated(x));
    TABULATE(-1.0, 1.2, -0.5 * t + 4 * t * t);
    CASE_KS(normal_natural_truncated(g, -0.5, 4, -1, 1.2), tabulated(x));
    CASE_KS(normal_natural_truncated(g, 1.5, 1e-12, 2, 4), expm1(1.5 * (x - 2)) / expm1(3.0));
    CASE_KS((1 - normal_natural_truncated(g, 0, 1e6, 0, 1)) * 2e6, -expm1(-x));         // 2e6 x at the end, curvature 1e-6

    // Beta on intervals.
    CASE_KS(beta_natural_truncated(g, 1, 2, 0, 1), gsl_cdf_beta_P(x, 2, 3));
    CASE_KS(beta_natural_truncated(g, 1, 2, 0.9, 1), 1 - gsl_cdf_beta_Q(x, 2, 3) / gsl_cdf_beta_Q(0.9, 2, 3));
    CASE_KS(beta_natural_truncated(g, -0.9, -0.95, 0.2, 0.7), (gsl_cdf_beta_P(x, 0.1, 0.05) - gsl_cdf_beta_P(0.2, 0.1, 0.05)) /
                                                                  (gsl_cdf_beta_P(0.7, 0.1, 0.05) - gsl_cdf_beta_P(0.2, 0.1, 0.05)));
    CASE_KS(beta_natural_truncated(g, 40, 60, 0.1, 0.2),
            (gsl_cdf_beta_P(x, 41, 61) - gsl_cdf_beta_P(0.1, 41, 61)) / (gsl_cdf_beta_P(0.2, 41, 61) - gsl_cdf_beta_P(0.1, 41, 61)));
    CASE_KS(beta_natural_truncated(g, -2, 0, 0.1, 0.5), (10 - 1 / x) / 8);
    CASE_KS(beta_natural_truncated(g, -2, -2, 0.1, 0.9),
            0.5 + (1 / (1 - x) - 1 / x + 2 * logit(x)) / (2 * (1 / 0.1 - 1 / 0.9 + 2 * logit(0.9))));
    CASE_KS(beta_natural_truncated(g, 0, 0, 0.25, 0.75), 2 * (x - 0.25));

    // Generalised inverse Gaussian on an interval: density integrated in t = log x.
    TABULATE(log(0.5), log(3.0), 0.7 * t - 1.2 * exp(t) - 0.4 * exp(-t));
    CASE_KS(power_gig_natural_truncated(g, 1, -0.3, -1.2, -0.4, 0.5, 3), tabulated(log(x)));
    TABULATE(log(2.0), log(4.0), -1.5 * t - 0.2 * exp(2 * t) - 3 * exp(-2 * t));
    CASE_KS(power_gig_natural_truncated(g, -2, -2.5, -3, -0.2, 2, 4), tabulated(log(x)));

    // Degenerate and illegal.
    Sweep  at = { SEED, 0, 0 };
    Stream s = stream(at, 99999, 0);
    check("lo == hi", "differs",
          normal_truncated(&s, 0, 1, 2, 2) != 2 || gamma_shape_rate_truncated(&s, 1, 1, 2, 2) != 2 ||
              beta_natural_truncated(&s, 1, 1, 0.5, 0.5) != 0.5,
          0);
    check("sd 0", "differs", normal_truncated(&s, 5, 0, 2, 3) != 3, 0);
    check("lo > hi is NaN", "not", !isnan(normal_truncated(&s, 0, 1, 3, 2)) || !isnan(gamma_shape_rate_truncated(&s, 1, 1, 3, 2)), 0);
    check("improper is NaN", "not",
          !isnan(normal_natural_truncated(&s, 1, 0, 0, INFINITY)) || !isnan(power_natural_truncated(&s, 1, 2, INFINITY)) ||
              !isnan(power_natural_truncated(&s, -2, 0, 1)) || !isnan(normal_natural_truncated(&s, 1, 0.5, 0, INFINITY)),
          0);
    check("no mean is NaN", "not",
          !isnan(normal_natural_truncated(&s, NAN, -0.5, 0, INFINITY)) || !isnan(normal_natural_truncated(&s, NAN, -0.5, 0, 1)) ||
              !isnan(normal_truncated(&s, NAN, 1, -INFINITY, 0)),
          0);
    check("infinite natural parameter: the end, or not finite", "not",
          normal_natural_truncated(&s, -INFINITY, -0.5, 0, INFINITY) != 0 ||
              normal_natural_truncated(&s, INFINITY, -0.5, -INFINITY, 0) != 0 ||
              is_finite(normal_natural_truncated(&s, INFINITY, -0.5, 0, INFINITY)),
          0);
    return finish();
}
