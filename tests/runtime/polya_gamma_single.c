// If this failed, logistic and multinomial logit models on a GPU would be sampled with the wrong latents.
//
// The same text as on the GPU, compiled for the CPU with the functions of the C library. tests/gpu/laws.py repeats the laws there.
#include "check.h"
#include "polya_gamma_law.h"
#include "../../runtime/device/polya_gamma_single.h"

// The quotient that decides a proposal is at most 1, and proposals are accepted as often as said, for all z. Where it exceeds 1 the law
// would lose mass.
static void bounds(void)
{
    double most = 0, least_accepted = 1, far_accepted = 1;
    for (int i = 0; i <= 4000; i++) {
        const float            z = i <= 2000 ? i * 0.005f : (float)(10 * exp((i - 2000) * 0.00575));            // up to 10^6
        const PolyaGammaSingle f = polya_gamma_single_setup(2 * z);
        double accepted = 0;
        for (int k = -1300; k <= 1300; k++) {
            const float normal = k * 0.005f;
            float lo = 0, hi = 1;                        // the share of heights that are accepted: where the attempt changes its mind
            for (int b = 0; b < 12; b++) {
                const float u = 0.5f * (lo + hi);
                if (polya_gamma_single_attempt(&f, normal, (uint32_t)(u * 4294967295.0)) >= 0) lo = u; else hi = u;
            }
            accepted += 0.005 * lo * exp(-0.5 * normal * normal) / GM_SQRT_2PI;
            // the exact quotient, by the first terms in double
            const double x = exp(GM_LOG_2 * ((double)f.log2_step * normal + f.log2_centre)), y = log(x), zz = z;
            if (zz > 1000) continue;
            const double q = exp(-(x < 0.64 ? 4 / x : GM_PI * GM_PI * x)), series = 1 - 3 * q + 5 * q * q * q - 7 * pow(q, 6);
            const double side = x < 0.64 ? -0.5 * y : y + log(0.25 * GM_PI) + GM_LOG_SQRT_2PI + 0.5 / x - 0.125 * GM_PI * GM_PI * x;
            most = fmax(most, exp(0.5 * normal * normal - 0.5 * (1 - zz * x) * (1 - zz * x) / x + side - GM_LOG_2 * f.level) * series);
        }
        least_accepted = fmin(least_accepted, accepted);
        if (i >= 2000) far_accepted = fmin(far_accepted, accepted);
    }
    check("quotient of the densities, PG(1, c)", "most", most, 1 + 1e-6);
    check("proposals that are refused, PG(1, c)", "share", 1 - least_accepted, 0.09);
    check("proposals that are refused, |c| >= 20", "share", 1 - far_accepted, 0.012);
}

static void one(double b, double c)
{
    char what[64];
    snprintf(what, sizeof what, "polya_gamma_single(%g, %g)", b, c);
    DRAW(polya_gamma_single(g, b, (float)c));
    check_range(what, 1e-38, GM_HUGE);
    check_moments(what, polya_gamma_law_mean(b, c), polya_gamma_law_variance(b, c));
    CHECK_KS(what, polya_gamma_P(x, b, c));
}

int main(void)
{
    bounds();
    static const double cases[][2] = {{1, 0},   {1, 0.1}, {1, 1}, {1, 2}, {1, 3.25}, {1, 8}, {1, 30},
                                      {1, 500}, {2, 1},   {5, 0}, {7, 4}, {0.5, 2},  {20, 1}};
    for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) one(cases[k][0], cases[k][1]);
    CASE_KS((polya_gamma_single(g, 1, 2e5f) - 0.25e-5 * 1) / sqrt(polya_gamma_law_variance(1, 2e5)), 0.5 * erfc(-x / sqrt(2)));
    int wrong = 0;
    Sweep  at = { SEED, 0, 0 };
    Stream g = stream(at, 1, 1);
    wrong += polya_gamma_single(&g, 1, NAN) == polya_gamma_single(&g, 1, NAN);
    wrong +=
        !(polya_gamma_single(&g, 1, INFINITY) > 0) + !(polya_gamma_single(&g, 1, 1e30f) < 1e-29f) + !(polya_gamma_single(&g, 1, -1e7f) > 0);
    wrong += polya_gamma_single(&g, 0, 1) != 0;
    check("unusual arguments of polya_gamma_single", "wrong", wrong, 0);
    return finish();
}
