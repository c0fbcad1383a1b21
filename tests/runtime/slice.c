// If this failed, a slice sampled parameter would not leave its conditional invariant, or leave its support.
#include "check.h"
#include "../../runtime/device/slice.h"
#include "../../runtime/device/gamma.h"
#include "../../runtime/device/truncated.h"
#include <gsl/gsl_cdf.h>

// Two modes at -2 and 3, weights 0.3 and 0.7, sd 1 and 0.5.
static double two_modes(double x) { return log(0.3 * exp(-0.5 * (x + 2) * (x + 2)) + 1.4 * exp(-2 * (x - 3) * (x - 3))); }

static double total_evaluations, total_moved, total_failed;

// One update of a slice sampler set up by `begin`, with log density `f` at sl.x.
#define UPDATE(begin, f)                                                                                 \
    ({                                                                                                   \
        Slice sl;                                                                                        \
        begin;                                                                                           \
        const double x0_ = sl.x0;                                                                        \
        while (slice_next(&sl)) sl.log_density = (f);                                                    \
        total_evaluations += sl.evaluations;                                                             \
        total_moved += sl.x != x0_;                                                                      \
        total_failed += sl.failed;                                                                       \
        sl.x;                                                                                            \
    })

// An exact draw from the target, one update, and again: if the target is invariant the result has its law. Also that it changes.
#define CASE_INVARIANT(what, start, begin, f, cdf)                                                       \
    do {                                                                                                 \
        total_evaluations = total_moved = total_failed = 0;                                              \
        DRAW(({ double x0 = (start); for (int k_ = 0; k_ < 2; k_++) x0 = UPDATE(begin, f); x0; }));      \
        check(what, "failed", total_failed, 0);                                                          \
        check(what, "stuck", 2.0 * DRAWS - total_moved, 0.01 * DRAWS);                                   \
        printf("     %-60s %.1f evaluations an update\n", what, total_evaluations / (2.0 * DRAWS));      \
        CHECK_KS(what, cdf);                                                                             \
    } while (0)

int main(void)
{
    CASE_INVARIANT("normal, width 2", normal_standard(g), slice_begin(&sl, g, x0, -INFINITY, INFINITY, 2), -0.5 * sl.x * sl.x,
                   gsl_cdf_ugaussian_P(x));
    CASE_INVARIANT("normal, width 0.05", normal_standard(g), slice_begin(&sl, g, x0, -INFINITY, INFINITY, 0.05), -0.5 * sl.x * sl.x,
                   gsl_cdf_ugaussian_P(x));
    CASE_INVARIANT("normal, width 1000", normal_standard(g), slice_begin(&sl, g, x0, -INFINITY, INFINITY, 1000), -0.5 * sl.x * sl.x,
                   gsl_cdf_ugaussian_P(x));
    CASE_INVARIANT("two modes, width 1.5", uniform_open(g) < 0.3 ? normal_mean_sd(g, -2, 1) : normal_mean_sd(g, 3, 0.5),
                   slice_begin(&sl, g, x0, -INFINITY, INFINITY, 1.5), two_modes(sl.x),
                   0.3 * gsl_cdf_ugaussian_P(x + 2) + 0.7 * gsl_cdf_ugaussian_P(2 * (x - 3)));
    CASE_INVARIANT("normal on [0.5, 1.2]", normal_truncated(g, 0, 1, 0.5, 1.2), slice_begin(&sl, g, x0, 0.5, 1.2, 0.3), -0.5 * sl.x * sl.x,
                   (gsl_cdf_ugaussian_P(x) - gsl_cdf_ugaussian_P(0.5)) / (gsl_cdf_ugaussian_P(1.2) - gsl_cdf_ugaussian_P(0.5)));
    CASE_INVARIANT("uniform on [0, 1], width 3", uniform_open(g), slice_begin(&sl, g, x0, 0, 1, 3), 0, x);
    CASE_INVARIANT("gamma(0.5) on the log scale", gamma_shape_rate(g, 0.5, 1), slice_begin_log(&sl, g, x0, 0, INFINITY, 2),
                   -0.5 * log(sl.x) - sl.x, gsl_cdf_gamma_P(x, 0.5, 1));
    CASE_INVARIANT("gamma(3) above 2 on the log scale", gamma_shape_rate_truncated(g, 3, 1, 2, INFINITY),
                   slice_begin_log(&sl, g, x0, 2, INFINITY, 0.5), 2 * log(sl.x) - sl.x,
                   1 - gsl_cdf_gamma_Q(x, 3, 1) / gsl_cdf_gamma_Q(2, 3, 1));
    // Support known to the density only: NaN below 0 (a logarithm) counts as 0.
    CASE_INVARIANT("gamma(2) whose density is NaN below 0", gamma_shape_rate(g, 2, 1), slice_begin(&sl, g, x0, -INFINITY, INFINITY, 1),
                   log(sl.x) - sl.x, gsl_cdf_gamma_P(x, 2, 1));
    // Where x0 lies in the first bracket is uniform: with brackets that miss a mode, reversibility rests on it.
    DRAW(({
        Slice sl;
        slice_begin(&sl, g, 5, -INFINITY, INFINITY, 2);
        slice_next(&sl);
        sl.log_density = 0;
        slice_next(&sl);
        (5 - sl.left) / 2;
    }));
    CHECK_KS("place of x0 in the first bracket", x);
    // The limit on expansions: from width 1e-3 a bracket of 1000 steps does not reach across, and the update must still be reversible.
    total_evaluations = total_moved = total_failed = 0;
    const uint32_t variable = next_variable++;
    enum { FEWER = 20000 };                              // a thousand evaluations each
    static double fewer[FEWER];
    for (long i = 0; i < FEWER; i++) {
        Sweep  at = { SEED, 0, 0 };
        Stream s = stream(at, variable, (uint64_t)i), *g = &s;
        double x0 = normal_standard(g);
        x0 = UPDATE(slice_begin(&sl, g, x0, -INFINITY, INFINITY, 1e-3), -0.5 * sl.x * sl.x);
        fewer[i] = gsl_cdf_ugaussian_P(x0);
    }
    double moments = 0;
    for (long i = 0; i < FEWER; i++) moments += fewer[i] - 0.5;
    check("normal, width 0.001: mean of Phi(x)", "z", fabs(moments) * sqrt(12.0 / FEWER), BOUND_Z);
    moments = 0;
    for (long i = 0; i < FEWER; i++) moments += (fewer[i] - 0.5) * (fewer[i] - 0.5) - 1.0 / 12;
    check("normal, width 0.001: variance of Phi(x)", "z", fabs(moments) / sqrt(FEWER / 180.0), BOUND_Z);
    check("at most 1000 expansions", "mean", total_evaluations / FEWER, 1050);

    Sweep  at = { SEED, 0, 0 };
    Stream s = stream(at, 99999, 0);
    Slice  sl;
    slice_begin(&sl, &s, 2, 0, 1, 1);
    check("x0 outside its support fails and stays", "not", !(slice_next(&sl) == 0 && sl.failed && sl.x == 2), 0);
    slice_begin(&sl, &s, 0.5, 0, 1, 1);
    while (slice_next(&sl)) sl.log_density = -INFINITY;
    check("density 0 at x0 fails and stays", "not", !(sl.failed && sl.x == 0.5 && sl.evaluations == 1), 0);
    slice_begin_log(&sl, &s, 0, 0, 1, 1);
    check("0 on the log scale fails and stays", "not", !(slice_next(&sl) == 0 && sl.failed && sl.x == 0), 0);
    slice_begin(&sl, &s, 0.5, 0, 1, 1);
    while (slice_next(&sl)) sl.log_density = sl.x == 0.5 ? 0 : -INFINITY;
    check("a density at one point ends, and stays", "not", !(!sl.failed && sl.x == 0.5), 0);
    return finish();
}
