// If this failed, logistic, binomial, negative binomial and multinomial logit models would be sampled with the wrong latents.
#include "check.h"
#include "polya_gamma_law.h"
#include "../../runtime/device/polya_gamma.h"

// The density of J(h) = 4 PG(h, 0) at x, by the same inversion of the transform itself.
static double jacobi_density(double x, double h)
{
    enum { FIRST = 30, AVERAGED = 12 };
    const double A = 18.4;
    double sum = 0.5 * creal(transform(4 * A / (2 * x), h, 0)), result = 0, weight = pow(0.5, AVERAGED);
    for (int k = 1; k <= FIRST + AVERAGED; k++) {
        sum += (k & 1 ? -1 : 1) * creal(transform(4 * (A + 2 * GM_PI * k * I) / (2 * x), h, 0));
        if (k >= FIRST) {
            result += weight * sum;
            weight *= (double)(AVERAGED - (k - FIRST)) / (k - FIRST + 1);
        }
    }
    return result * exp(0.5 * A) / x;
}

// The acceptance tests know that density to the inversion's 1e-7, and their envelopes lie above it.
static void envelopes(void)
{
    double worst = 0, worst_right = 0, above = -1, below = -1;
    for (int i = 1; i <= 50; i++) {
        const double         h = i / 50.0;
        const PolyaGammaUnit f = polya_gamma_unit_setup(h, 0);
        for (int j = 1; j <= 80; j++) {
            const double x = 0.1 * j, want = jacobi_density(x, h);
            double lo = 0, hi = 100;                     // where jacobi_below_density changes its mind
            for (int k = 0; k < 60; k++) {
                const double y = 0.5 * (lo + hi);
                if (jacobi_below_density(y, h, x)) lo = y; else hi = y;
            }
            worst = fmax(worst, fabs(lo - want));
            const double first = jacobi_first(h, x);
            if (x < POLYA_GAMMA_CUT) below = fmax(below, fmax(want - first, first * (1 - jacobi_second_by_first(h, x)) - want));
            else above = fmax(above, want / (f.height * exp(-0.125 * GM_PI * GM_PI * x)) - 1);
            if (h < 1 || x < POLYA_GAMMA_CUT) continue;
            const double one = 0.5 * GM_PI * exp(-0.125 * GM_PI * GM_PI * x);
            worst_right = fmax(
                worst_right, fmax(jacobi_below_density_right((want + 1e-6) / one, x), !jacobi_below_density_right((want - 1e-6) / one, x)));
        }
    }
    check("density of J(h) in the acceptance test", "error", worst, 1e-6);
    check("density of J(1) by the other series", "differs", worst_right, 0);
    check("envelopes below the cut", "crossed by", below, 1e-6);
    check("envelope above the cut", "crossed by", above, 1e-4);            // relative: the density is 1e-4 at x = 8
}

// Law, moments, and the transform at two points (bounded by 1, so that its z is safe where the law is skewed).
static void one(double b, double c)
{
    char what[64];
    snprintf(what, sizeof what, "polya_gamma(%g, %g)", b, c);
    DRAW(polya_gamma(g, b, c));
    check_range(what, GM_TINY, GM_HUGE);
    check_moments(what, polya_gamma_law_mean(b, c), polya_gamma_law_variance(b, c));
    for (int k = 0; k < 2; k++) {
        const double t = (k ? 3 : 0.5) / polya_gamma_law_mean(b, c), want = creal(transform(t, b, c));
        double sum = 0, square = 0;
        for (long i = 0; i < DRAWS; i++) {
            const double d = exp(-t * draws[i]) - want;
            sum += d;
            square += d * d;
        }
        check(what, "z exp(-t)", fabs(sum) / sqrt(square), BOUND_Z);
    }
    CHECK_KS(what, polya_gamma_P(x, b, c));
}

int main(void)
{
    // The inversion itself, where the law is known: PG(1, 0) has P(W > x) ~ (4/pi) exp(-pi^2 x / 2), next term exp(-9 pi^2 x / 2) / 3.
    check_close("inversion of the transform at x = 0.6", 1 - polya_gamma_P(0.6, 1, 0),
                4 / GM_PI * (exp(-0.5 * GM_PI * GM_PI * 0.6) - exp(-4.5 * GM_PI * GM_PI * 0.6) / 3), 1, 1e-7);

    envelopes();
    static const double cases[][2] = {
        { 1, 0 }, { 1, 0.1 }, { 1, 2 }, { 1, 3.2 }, { 1, 8 }, { 1, 29.9 }, { 1, 30.1 }, { 1, 500 }, { 2, 1 }, { 5, 0 }, { 7.5, 4 },
        { 0.01, 0 }, { 0.1, 1 }, { 0.3, 0 }, { 0.5, 2 }, { 0.5, 12 }, { 0.85, 0.5 }, { 0.95, 0 }, { 0.999, 1 }, { 0.3, 40 },
        { 8, 0 }, { 8.7, 5 }, { 9, 8.9 }, { 9, 12 }, { 9, 17 }, { 60, 1 }, { 171, 0 }, { 400, 10 },
    };
    for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) one(cases[k][0], cases[k][1]);

    // Skewness 2e-3, which moves the distribution function by 1.5e-4: 0.15 of the bound's units.
    CASE_KS((polya_gamma(g, 1e6, 2) - polya_gamma_law_mean(1e6, 2)) / sqrt(polya_gamma_law_variance(1e6, 2)), 0.5 * erfc(-x / sqrt(2)));
    CASE_KS(polya_gamma(g, 0.35, 1.2) + polya_gamma(g, 0.65, 1.2), polya_gamma_P(x, 1, 1.2));
    CASE_KS(polya_gamma(g, 2.25, -3) + polya_gamma(g, 10.25, 3), polya_gamma_P(x, 12.5, 3));
    CASE_KS(polya_gamma_natural(g, 1, -2), polya_gamma_P(x, 1, 2));

    // Moments without cancellation at the seam of their two formulas, and near c = 0.
    check_close("variance at c = 1", polya_gamma_variance(1 + 1e-12), polya_gamma_variance(1 - 1e-12), 0, 1e-11);
    check_close("variance at c = 1e-6", polya_gamma_variance(1e-6), 1.0 / 24, 0, 1e-12);
    check_close("mean at c = 1e-4", polya_gamma_mean(1.0001e-4), polya_gamma_mean(0.9999e-4), 0, 1e-12);

    Sweep  at = { SEED, 0, 0 };
    Stream s = stream(at, 99999, 0);
    check("b = 0 is 0, tiny b and huge c are positive", "not",
          !(polya_gamma(&s, 0, 1) == 0 && polya_gamma(&s, 1e-3, 1) > 0 && polya_gamma(&s, 1, 1e200) > 0), 0);
    check("NaN in, NaN out", "not", !isnan(polya_gamma(&s, NAN, 1)) || !isnan(polya_gamma(&s, 1, NAN)), 0);
    return finish();
}
