// If this failed, latents in single precision would come from the wrong law: probit, ordered probit and tobit on a GPU would be wrong.
//
// The same text as on the GPU, compiled for the CPU with the functions of the C library. tests/gpu/rows.cu repeats the laws there.
#include "check.h"
#include "normal_law.h"
#include "../../runtime/device/truncated_single.h"

// The functions by themselves, against erfc: P(Z > y), and its inverse applied to it.
static void functions(void)
{
    double worst = 0, worst_inverse = 0;
    for (int k = 0; k <= 100000; k++) {
        const float  y = (float)k * 1e-4f;
        const double p = 0.5 * erfc((double)y / sqrt(2));
        worst = fmax(worst, fabs(upper_tail_single(y) / p - 1) / (1 + 1e-1 * y * y));
        if (p < 1e-22) continue;
        worst_inverse = fmax(worst_inverse, fabs(upper_quantile_single((float)p) - (double)y) / (y + 0.1));
    }
    check("P(Z > y) for 0 <= y <= 10, relative to 1 + y^2 / 10", "error", worst, 1e-6);
    check("its inverse, relative to y + 0.1", "error", worst_inverse, 2e-6);
    check("the median", "error", fabs(upper_quantile_single(0.5f)), 0);
    check("next to the median", "relative", fabs(upper_quantile_single(0.49999997f) / (2.98023224e-8 * sqrt(2 * GM_PI)) - 1), 1e-6);
}

static void one_sided(double mean)
{
    char what[90];
    const float m = (float)mean;
    for (int upper = 0; upper < 2; upper++) {
        snprintf(what, sizeof what, upper ? "single: mean %g on (-inf, 0]" : "single: mean %g on [0, inf)", upper ? -mean : mean);
        if (upper) DRAW(-normal_natural_truncated_single(g, -m, -0.5f, -INFINITY, 0));
        else DRAW(normal_natural_truncated_single(g, m, -0.5f, 0, INFINITY));
        check_range(what, 1e-30, INFINITY);
        const double r = exp(-0.5 * mean * mean) / (sqrt(2 * GM_PI) * 0.5 * erfc(-mean / sqrt(2)));
        if (mean > -20) check_moments(what, mean + r, 1 - r * (r + mean));
        CHECK_KS(what, normal_between(x - mean, -mean, INFINITY));
    }
}

// On [a, b] in sd, with mean and sd that are not 0 and 1.
static void two_sided(double a, double b)
{
    char what[90];
    const double sd = 0.5, mean = 3;
    const float lo = (float)(mean + sd * a), hi = (float)(mean + sd * b);
    snprintf(what, sizeof what, "single: mean 3, sd 1/2 on [%g, %g]", lo, hi);
    DRAW(normal_natural_truncated_single(g, 12, -2, lo, hi));
    check_range(what, lo, hi);
    CHECK_KS(what, normal_between((x - mean) / sd, (lo - mean) / sd, (hi - mean) / sd));
}

// What single precision cannot do goes to double, or is NaN.
static void odd_ones(void)
{
    Sweep at = { SEED, 0, 0 };
    Stream g = stream(at, 0, 0);
    const float all = normal_natural_truncated_single(&g, 1, -0.5f, -INFINITY, INFINITY);
    check("no ends", "finite", !(fabsf(all) < 10), 0);
    const float far = normal_natural_truncated_single(&g, 1e6f, -0.5f, 0, INFINITY);
    check("mean 1e6 on [0, inf)", "from mean", fabs(far - 1e6), 10);
    const float farther = normal_natural_truncated_single(&g, -1e19f, -0.5f, 0, INFINITY);
    check("mean -1e19 on [0, inf)", "outside", !(farther >= 0 && farther < 1e-17f), 0);
    check("lo == hi", "value", normal_natural_truncated_single(&g, 1, -0.5f, 2, 2) != 2, 0);
    check("lo > hi", "not NaN", !isnan(normal_natural_truncated_single(&g, 1, -0.5f, 2, 1)), 0);
    check("q > 0", "not NaN", !isnan(normal_natural_truncated_single(&g, 1, 0.5f, 2, 3)), 0);
    check("h NaN", "not NaN", !isnan(normal_natural_truncated_single(&g, NAN, -0.5f, 0, INFINITY)), 0);
    check("q = 0", "outside", !(normal_natural_truncated_single(&g, 1, 0, 2, 3) <= 3), 0);
}

int main(void)
{
    functions();
    static const double means[] = { -40, -8, -4.01, -3.99, -3, -1, 0, 0.5, 3, 8, 14 };
    for (unsigned k = 0; k < sizeof means / sizeof *means; k++) one_sided(means[k]);
    two_sided(-1, 2);
    two_sided(-0.02, 0.04);
    two_sided(0.5, 0.6);
    two_sided(-3, -1);
    two_sided(2, 30);
    two_sided(6, 6.2);
    two_sided(-30, 0.25);
    two_sided(-9, 9);
    odd_ones();
    return finish();
}
