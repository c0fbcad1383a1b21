// If this failed, a vector that is drawn by elliptical slices would not leave its posterior invariant, or a start of density 0 would go
// unnoticed.
#include "check.h"
#include "../../runtime/device/elliptical.h"
#include <gsl/gsl_cdf.h>

static double total_moved, total_failed;

// One elliptical slice from x0, with a normal prior of mean `mean` and sd 1, and the log of the likelihood at x.
#define SLICE(mean, f)                                                                                   \
    ({                                                                                                   \
        const double normal = (mean) + normal_standard(g);                                               \
        double x = x0;                                                                                   \
        Ellipse e;                                                                                       \
        ellipse_begin(&e, g, 0);                                                                         \
        while (ellipse_next(&e)) {                                                                       \
            x = (mean) + e.cosine * (x0 - (mean)) + e.sine * (normal - (mean));                          \
            e.log_density = (f);                                                                         \
        }                                                                                                \
        total_moved += x != x0;                                                                          \
        total_failed += e.failed;                                                                        \
        x;                                                                                               \
    })

// An exact draw from the posterior, two updates: if it is invariant the result has its law. Also that it changes.
#define CASE_INVARIANT(what, start, mean, f, cdf)                                                        \
    do {                                                                                                 \
        total_moved = total_failed = 0;                                                                  \
        DRAW(({ double x0 = (start); for (int k_ = 0; k_ < 2; k_++) x0 = SLICE(mean, f); x0; }));        \
        check(what, "failed", total_failed, 0);                                                          \
        check(what, "stuck", 2.0 * DRAWS - total_moved, 10);                                             \
        CHECK_KS(what, cdf);                                                                             \
    } while (0)

int main(void)
{
    CASE_INVARIANT("flat likelihood", normal_standard(g), 0, 0.0, gsl_cdf_ugaussian_P(x));
    CASE_INVARIANT("normal likelihood", (0.5 + 4 * 1.7) / 5 + normal_standard(g) / sqrt(5), 0.5, -2 * (x - 1.7) * (x - 1.7),
                   gsl_cdf_ugaussian_P((x - (0.5 + 4 * 1.7) / 5) * sqrt(5)));
    CASE_INVARIANT("narrow likelihood, far out", (2500 * 3.0) / 2501 + normal_standard(g) / sqrt(2501), 0, -1250 * (x - 3) * (x - 3),
                   gsl_cdf_ugaussian_P((x - 7500.0 / 2501) * sqrt(2501)));
    CASE_INVARIANT("likelihood 0 or NaN below 0", fabs(normal_standard(g)), 0,
                   x > 0    ? 0.0
                   : x > -1 ? -INFINITY
                            : NAN,
                   2 * gsl_cdf_ugaussian_P(x) - 1);

    Sweep  at = { SEED, 0, 0 };
    Stream s = stream(at, 99999, 0);
    Ellipse e;
    ellipse_begin(&e, &s, 0);
    while (ellipse_next(&e)) e.log_density = -INFINITY;
    check("density 0 at the start fails and goes back", "not", !(e.failed && e.cosine == 1 && e.sine == 0), 0);
    ellipse_begin(&e, &s, 100);
    while (ellipse_next(&e)) e.log_density = -INFINITY;
    check("the same after 100 angles", "not", !(e.failed && e.cosine == 1 && e.sine == 0 && e.evaluations > 100), 0);
    ellipse_begin(&e, &s, 100);
    while (ellipse_next(&e)) e.log_density = e.cosine < 0 ? 0 : -INFINITY;
    check("an angle of positive density is found from there", "not", !(!e.failed && e.cosine < 0), 0);
    ellipse_begin(&e, &s, 0);
    while (ellipse_next(&e)) e.log_density = e.sine == 0 ? 0 : -INFINITY;
    check("a density of one point stays there", "not", !(!e.failed && e.cosine == 1 && e.sine == 0 && e.evaluations < 200), 0);
    return finish();
}
