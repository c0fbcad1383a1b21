// If this failed, a parameter drawn by Metropolis updates would not leave its conditional invariant, or its width would not settle.
#include "check.h"
#include "../../runtime/device/metropolis.h"
#include "../../runtime/device/gamma.h"
#include "../../runtime/device/truncated.h"
#include <gsl/gsl_cdf.h>

static double total_moved, total_failed;

// One update set up by `begin`, with log density `f` at m.x.
#define UPDATE(begin, f)                                                                                 \
    ({                                                                                                   \
        Metropolis m;                                                                                    \
        begin;                                                                                           \
        const double x0_ = m.x0;                                                                         \
        while (metropolis_next(&m)) m.log_density = (f);                                                 \
        total_moved += m.x != x0_;                                                                       \
        total_failed += m.failed;                                                                        \
        m.x;                                                                                             \
    })

// An exact draw from the target, two updates: if the target is invariant the result has its law. Also that it changes.
#define CASE_INVARIANT(what, start, begin, f, cdf)                                                       \
    do {                                                                                                 \
        total_moved = total_failed = 0;                                                                  \
        DRAW(({ double x0 = (start); for (int k_ = 0; k_ < 2; k_++) x0 = UPDATE(begin, f); x0; }));      \
        check(what, "failed", total_failed, 0);                                                          \
        check(what, "stuck", 2.0 * DRAWS - total_moved, 1.9 * DRAWS);                                       \
        CHECK_KS(what, cdf);                                                                             \
    } while (0)

// The rate at which proposals of the adapted width are accepted.
#define CASE_ADAPTED(what, first, begin, f)                                                              \
    do {                                                                                                 \
        double x0 = 1, width = (first), rate = 0;                                                        \
        for (int sweep = 0; sweep < 22000; sweep++) {                                                    \
            Sweep at_ = { SEED, 0, sweep };                                                              \
            Stream stream_ = stream(at_, 99998, 0), *g = &stream_;                                       \
            Metropolis m;                                                                                \
            begin;                                                                                       \
            while (metropolis_next(&m)) m.log_density = (f);                                             \
            x0 = m.x;                                                                                    \
            if (sweep < 2000) width = metropolis_adapt(width, &m, sweep);                                \
            else rate += m.accepted / 20000;                                                             \
        }                                                                                                \
        check(what, "rate - .44", fabs(rate - 0.44), 0.06);                                               \
    } while (0)

int main(void)
{
    CASE_INVARIANT("normal, width 2", normal_standard(g), metropolis_begin(&m, g, x0, -INFINITY, INFINITY, 2), -0.5 * m.x * m.x,
                   gsl_cdf_ugaussian_P(x));
    CASE_INVARIANT("normal, width 0.05", normal_standard(g), metropolis_begin(&m, g, x0, -INFINITY, INFINITY, 0.05), -0.5 * m.x * m.x,
                   gsl_cdf_ugaussian_P(x));
    CASE_INVARIANT("normal on [0.5, 1.2]", normal_truncated(g, 0, 1, 0.5, 1.2), metropolis_begin(&m, g, x0, 0.5, 1.2, 0.3),
                   -0.5 * m.x * m.x,
                   (gsl_cdf_ugaussian_P(x) - gsl_cdf_ugaussian_P(0.5)) / (gsl_cdf_ugaussian_P(1.2) - gsl_cdf_ugaussian_P(0.5)));
    CASE_INVARIANT("uniform on [0, 1], width 3", uniform_open(g), metropolis_begin(&m, g, x0, 0, 1, 3), 0, x);
    CASE_INVARIANT("gamma(0.5) on the log scale", gamma_shape_rate(g, 0.5, 1), metropolis_begin_log(&m, g, x0, 0, INFINITY, 2),
                   -0.5 * log(m.x) - m.x, gsl_cdf_gamma_P(x, 0.5, 1));
    CASE_INVARIANT("gamma(2) whose density is NaN below 0", gamma_shape_rate(g, 2, 1), metropolis_begin(&m, g, x0, -INFINITY, INFINITY, 1),
                   log(m.x) - m.x, gsl_cdf_gamma_P(x, 2, 1));
    CASE_ADAPTED("normal of sd 0.001 from width 1", 1, metropolis_begin(&m, g, x0, -INFINITY, INFINITY, width),
                 -0.5e6 * (m.x - 1) * (m.x - 1));
    CASE_ADAPTED("normal of sd 1000 from width 1", 1, metropolis_begin(&m, g, x0, -INFINITY, INFINITY, width), -0.5e-6 * m.x * m.x);
    CASE_ADAPTED("gamma(3) on the log scale", 1e-3, metropolis_begin_log(&m, g, x0, 0, INFINITY, width), 2 * log(m.x) - m.x);
    Sweep      at = { SEED, 0, 0 };
    Stream     s = stream(at, 99999, 0);
    Metropolis m;
    metropolis_begin(&m, &s, 2, 0, 1, 1);
    check("x0 outside its support fails and stays", "not", !(metropolis_next(&m) == 0 && m.failed && m.x == 2), 0);
    metropolis_begin(&m, &s, 0.5, 0, 1, 1);
    while (metropolis_next(&m)) m.log_density = -INFINITY;
    check("density 0 at x0 fails and stays", "not", !(m.failed && m.x == 0.5), 0);
    metropolis_begin_log(&m, &s, 0, 0, 1, 1);
    check("0 on the log scale fails and stays", "not", !(metropolis_next(&m) == 0 && m.failed && m.x == 0), 0);
    return finish();
}
