// If this failed, a count or a category would be drawn with the wrong probabilities.
#include "check.h"
#include "../../runtime/device/discrete.h"
#include "../../runtime/device/transfers.h"
#include "../../runtime/device/weights.h"
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf.h>

// Chi-square of the draws against probabilities `density`, an expression in k, over [0, 20000); and mean and variance.
#define CASE_COUNTS(expr, density, mean, variance)                                                       \
    do {                                                                                                 \
        static double observed_[20001], expected_[20001];                                                \
        memset(observed_, 0, sizeof observed_);                                                          \
        DRAW(expr);                                                                                      \
        check_range(#expr, 0, 9.3e18);                                                                   \
        check_moments(#expr, mean, variance);                                                            \
        double rest_ = DRAWS;                                                                            \
        for (long i_ = 0; i_ < DRAWS; i_++) observed_[draws[i_] < 20000 ? (long)draws[i_] : 20000]++;    \
        for (long k = 0; k < 20000; k++) rest_ -= expected_[k] = DRAWS * (density);                      \
        expected_[20000] = rest_ > 0 ? rest_ : 0;                                                        \
        check_counts(#expr, observed_, expected_, 20001);                                                \
    } while (0)

static double neg_binomial_density(long k, double alpha, double p)
{
    return exp(gsl_sf_lngamma(k + alpha) - gsl_sf_lngamma(alpha) - gsl_sf_lngamma(k + 1.0) + alpha * log(p) + (double)k * log1p(-p));
}

static double beta_binomial_density(long k, long n, double a, double b)
{
    if (k > n) return 0;
    return exp(gsl_sf_lnchoose((unsigned)n, (unsigned)k) + gsl_sf_lnbeta(k + a, (double)(n - k) + b) - gsl_sf_lnbeta(a, b));
}

static void categories(void)
{
    static const double w[6] = { 0.5, 0, 3, 1e-3, 0, 2 };
    double expected[7], observed[7], total = 0;
    for (int k = 0; k < 6; k++) total += w[k];
    for (int k = 0; k <= 6; k++) expected[k] = k ? DRAWS * w[k - 1] / total : 0;

    memset(observed, 0, sizeof observed);
    DRAW(categorical_weights(g, w, 6));
    for (long i = 0; i < DRAWS; i++) observed[(int)draws[i]]++;
    check_counts("categorical_weights", observed, expected, 7);
    check("categorical_weights gives a category of weight 0", "count", observed[0] + observed[2] + observed[5], 0);

    memset(observed, 0, sizeof observed);
    double logw[6];
    for (long i = 0; i < DRAWS; i++) {
        Sweep  at = { SEED, 1, 0 };
        Stream s = stream(at, 77, (uint64_t)i);
        for (int k = 0; k < 6; k++) logw[k] = log(w[k]) - 5000;                  // far below what exp can hold
        observed[categorical_log_weights(&s, logw, 6)]++;
    }
    check_counts("categorical_log_weights", observed, expected, 7);

    Sweep  at = { SEED, 2, 0 };
    Stream s = stream(at, 78, 0);
    double none[3] = {-INFINITY, -INFINITY, -INFINITY}, bad[3] = {0, NAN, 0}, zero[3] = {0, 0, 0}, one[3] = {-INFINITY, -1e300, -INFINITY};
    check("impossible categories give 0", "not",
          categorical_log_weights(&s, none, 3) != 0 || categorical_log_weights(&s, bad, 3) != 0 || categorical_weights(&s, zero, 3) != 0,
          0);
    check("the only possible category", "not", categorical_log_weights(&s, one, 3) != 2, 0);
}

// Weights that come some at a time: impossible ones first, none possible in one go, a larger one than all before; and one go is a draw from
// all.
static void some_at_a_time(void)
{
    static const double w[8] = { 0, 0, 0.5, 1e-3, 0, 0, 3, 2 };
    double expected[9], observed[9] = { 0 }, total = 0;
    for (int k = 0; k < 8; k++) total += w[k];
    for (int k = 0; k <= 8; k++) expected[k] = k ? DRAWS * w[k - 1] / total : 0;
    long differs = 0, wrong = 0;
    for (long i = 0; i < DRAWS; i++) {
        Sweep  at = { SEED, 4, 0 };
        Stream s = stream(at, 81, (uint64_t)i), same = s, again = s;
        double logw[8];
        for (int k = 0; k < 8; k++) logw[k] = log(w[k]) - 5000;
        Weighed all = weigh_start(), once = weigh_start();
        for (long k = 0; k < 8; k += 2) weigh_values(&all, &s, logw + k, k, 2);
        observed[all.chosen]++;
        wrong += all.wrong || all.log_chosen != logw[all.chosen - 1];
        weigh_values(&once, &same, logw, 0, 8);
        differs += once.chosen != categorical_log_weights(&again, logw, 8);
    }
    check_counts("weigh_values", observed, expected, 9);
    check("weigh_values: the logarithm of another weight", "count", (double)wrong, 0);
    check("weigh_values in one go is categorical_log_weights", "count", (double)differs, 0);
    Sweep  at = { SEED, 4, 0 };
    Stream s = stream(at, 82, 0);
    const double none[2] = { -INFINITY, -INFINITY }, bad[2] = { 0, NAN };
    Weighed all = weigh_start(), never = weigh_start();
    weigh_values(&all, &s, none, 0, 2);
    check("impossible values are not chosen", "count", (double)all.chosen, 0);
    weigh_values(&never, &s, bad, 0, 2);
    check("a weight that is no number is reported", "not", !never.wrong, 0);
}

// Products of two tables of six values, in rows of eight; and what is no choice: nothing possible, numbers out of range, none.
static void by_products(void)
{
    static const real a[8] = {1, 0.5, 0, 1e-3, 0.25, 1, 0, 0}, b[8] = {0, 0.5, 1, 1, 0.5, 0.75, 0, 0},
                      one[8] = {0, 0, 0, 0, 0, 1e-200, 0, 0}, small[8] = {0, 0, 0, 0, 0, 1e-60, 0, 0}, bad[8] = {0, NAN, 0, 0, 0, 1};
    double expected[7] = { 0 }, observed[7] = { 0 }, total = 0, sum = 0;
    for (int k = 0; k < 6; k++) total += a[k] * b[k];
    for (int k = 0; k < 6; k++) expected[k + 1] = DRAWS * a[k] * b[k] / total;
    const real *const both[] = { a, b };
    for (long i = 0; i < DRAWS; i++) {
        Sweep  at = { SEED, 5, 0 };
        Stream s = stream(at, 83, (uint64_t)i);
        observed[choose_by_weights(&s, 6, 2, both)]++;
    }
    check_counts("choose_by_weights", observed, expected, 7);
    check("choose_by_weights gives a value of weight 0", "count", observed[0] + observed[1] + observed[3], 0);
    Sweep  at = { SEED, 5, 0 };
    Stream s = stream(at, 84, 0);
    check("the only possible value", "not", choose_by_weights(&s, 6, 1, (const real *const[]){ one }) != 6, 0);
    check("a product below the range of numbers is no choice", "not", choose_by_weights(&s, 6, 2, (const real *const[]){one, small}) != 0,
          0);
    check("a weight that is no number is no choice", "not", choose_by_weights(&s, 6, 2, (const real *const[]){ a, bad }) != 0, 0);
    for (long v = 1; v <= 6; v++)
        if (v != 1 && v != 3) sum += fabs(log_of_weights(2, both, v) - log(a[v - 1] * b[v - 1]));
    check("log_of_weights", "sum", sum, 1e-12);
}

static void multinomials(void)
{
    static const double p[4] = { 1, 0, 2, 5 };           // need not sum to 1
    static double second[DRAWS];
    long wrong = 0;
    for (long i = 0; i < DRAWS; i++) {
        Sweep   at = { SEED, 3, 0 };
        Stream  s = stream(at, 80, (uint64_t)i);
        int32_t x[4];
        multinomial(&s, 50, p, 4, x);
        wrong += x[0] + x[1] + x[2] + x[3] != 50 || x[1] != 0;
        draws[i] = x[3];
        second[i] = (x[0] - 6.25) * (x[2] - 12.5);
    }
    check("multinomial: sum, or a category of weight 0", "count", (double)wrong, 0);
    check_moments("multinomial(50, (1, 0, 2, 5))[4]", 31.25, 50 * 0.625 * 0.375);
    memcpy(draws, second, sizeof draws);
    check_mean("multinomial covariance", -50 * 0.125 * 0.25);
}

// Partners are each other's, and any two may be; a window holds 0, lies within the ends, and is as likely from each of its values.
static void transfers(void)
{
    static const long sizes[] = { 1, 2, 3, 5, 8, 9, 40 };
    Sweep  at = { SEED, 3, 0 };
    Stream s = stream(at, 79, 0);
    long   wrong = 0, never = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        static long met[41][41];
        memset(met, 0, sizeof met);
        const long n = sizes[i];
        for (long turn = 0; turn < 200000; turn++) {
            const long distance = transfer_distance(&s, n), phase = transfer_phase(&s, n, distance);
            for (long k = 1; k <= n; k++) {
                const long to = transfer_partner(k, n, distance, phase);
                wrong += to < 1 || to > n || transfer_partner(to, n, distance, phase) != k;
                met[k][to < 1 || to > n ? 0 : to]++;
            }
        }
        for (long k = 1; k <= n; k++)
            for (long l = 1; l <= n; l++) never += k != l && met[k][l] == 0;
    }
    check("partners that are not each other's", "count", (double)wrong, 0);
    check("pairs that are never made", "count", (double)never, 0);

    static double observed[2][4096];  // how often each pair of step and place of the first value comes, from two places that lie 60 apart
    long outside = 0, far = 0;
    memset(observed, 0, sizeof observed);
    for (int from = 0; from < 2; from++)
        for (long turn = 0; turn < 400000; turn++) {
            const double x = from ? 160 : 100, low = -x, high = 300 - x;
            const double step = transfer_step(&s, low, high), below = transfer_below(&s, low, high);
            const double first = transfer_first(low, step, below), last = transfer_last(high, step, below);
            outside += !(first <= 0 && last >= 0 && first * step >= low && last * step <= high && last - first < GM_TRANSFER_VALUES);
            far += step == 16;
            const double begin = x - below * step, reach = 60 / step;      // both places are in the window
            if (floor(reach) == reach && (from ? below >= reach : below + reach < GM_TRANSFER_VALUES))
                observed[from][(int)(begin + 600) + (step == 16 ? 2048 : step == 4 ? 1024 : 0)]++;
        }
    double most = 0, total = 0;
    for (int k = 0; k < 4096; k++) {
        const double sum = observed[0][k] + observed[1][k], apart = observed[0][k] - observed[1][k];
        total += sum;
        if (sum > 0) most = fmax(most, fabs(apart) / sqrt(sum));
    }
    check("windows beyond the ends", "count", (double)outside, 0);
    check("windows from two of their values", "z", most, 6);
    check("no window holds both", "not", total < 1000, 0);
    check("the widest windows", "share", fabs((double)far / 800000 - 0.2), 0.01);
    const int all = transfer_step(&s, -3, 28) == 1 && transfer_below(&s, -3, 28) == 3 && transfer_first(-3, 1, 3) == -3 &&
                    transfer_last(28, 1, 3) == 28;
    check("few values: all", "not", !all, 0);
}

int main(void)
{
    gsl_set_error_handler_off();
    CASE_COUNTS(poisson(g, 0.01), gsl_ran_poisson_pdf((unsigned)k, 0.01), 0.01, 0.01);
    CASE_COUNTS(poisson(g, 9.9), gsl_ran_poisson_pdf((unsigned)k, 9.9), 9.9, 9.9);
    CASE_COUNTS(poisson(g, 10), gsl_ran_poisson_pdf((unsigned)k, 10), 10, 10);
    CASE_COUNTS(poisson(g, 35), gsl_ran_poisson_pdf((unsigned)k, 35), 35, 35);
    CASE_COUNTS(poisson(g, 1000), gsl_ran_poisson_pdf((unsigned)k, 1000), 1000, 1000);
    DRAW((double)(poisson(g, 1e14) - 100000000000000) / 1e7);
    check_moments("poisson(1e14)", 0, 1);
    CHECK_KS("poisson(1e14)", gsl_cdf_ugaussian_P(x));                           // skewness and lattice 1e-7
    CASE_COUNTS(binomial(g, 1, 0.3), gsl_ran_binomial_pdf((unsigned)k, 0.3, 1), 0.3, 0.21);
    CASE_COUNTS(binomial(g, 20, 0.3), gsl_ran_binomial_pdf((unsigned)k, 0.3, 20), 6, 4.2);
    CASE_COUNTS(binomial(g, 25, 0.5), gsl_ran_binomial_pdf((unsigned)k, 0.5, 25), 12.5, 6.25);
    CASE_COUNTS(binomial(g, 40, 0.74), gsl_ran_binomial_pdf((unsigned)k, 0.74, 40), 29.6, 40 * 0.74 * 0.26);
    CASE_COUNTS(binomial(g, 3000, 0.97), gsl_ran_binomial_pdf((unsigned)k, 0.97, 3000), 2910, 87.3);
    CASE_COUNTS(binomial(g, 10000000000, 1e-9), gsl_ran_poisson_pdf((unsigned)k, 10), 10, 10);   // Poisson to 1e-9
    DRAW(((double)binomial(g, 1000000000000000, 0.3) - 3e14) / sqrt(2.1e14));
    CHECK_KS("binomial(1e15, 0.3)", gsl_cdf_ugaussian_P(x));
    CASE_COUNTS(bernoulli(g, 0.2), k < 2 ? (k ? 0.2 : 0.8) : 0, 0.2, 0.16);
    CASE_COUNTS(geometric(g, 0.2), 0.2 * pow(0.8, (double)k), 4, 20);
    CASE_COUNTS(neg_binomial_alpha_beta(g, 2.5, 0.5), neg_binomial_density(k, 2.5, 1.0 / 3), 5, 15);
    CASE_COUNTS(neg_binomial_2(g, 6, 0.8), neg_binomial_density(k, 0.8, 0.8 / 6.8), 6, 51);
    CASE_COUNTS(beta_binomial(g, 30, 2, 3), beta_binomial_density(k, 30, 2, 3), 12, 30 * 6.0 / 25 * 35 / 6);
    CASE_COUNTS(hypergeometric(g, 30, 50, 70), k <= 30 ? gsl_ran_hypergeometric_pdf((unsigned)k, 50, 70, 30) : 0, 12.5,
                12.5 * (7.0 / 12) * 90 / 119);
    CASE_COUNTS(hypergeometric(g, 95, 50, 50), k <= 50 ? gsl_ran_hypergeometric_pdf((unsigned)k, 50, 50, 95) : 0, 47.5, 95 * 0.25 * 5 / 99);
    CASE_COUNTS(discrete_uniform(g, 3, 12), k >= 3 && k <= 12 ? 0.1 : 0, 7.5, 99.0 / 12);
    categories();
    some_at_a_time();
    by_products();
    multinomials();
    transfers();

    Sweep  at = { SEED, 0, 0 };
    Stream s = stream(at, 99999, 0);
    check("certain counts", "not", poisson(&s, 0) != 0 || binomial(&s, 7, 0) != 0 || binomial(&s, 7, 1) != 7 || binomial(&s, 0, 0.5) != 0
          || geometric(&s, 1) != 0 || neg_binomial_2(&s, 0, 1) != 0 || bernoulli(&s, 0) != 0 || bernoulli(&s, 1) != 1
          || hypergeometric(&s, 5, 5, 0) != 5, 0);
    check("illegal parameters give -1", "not", poisson(&s, -1) != -1 || poisson(&s, NAN) != -1 || binomial(&s, -1, 0.5) != -1
          || binomial(&s, 3, 1.5) != -1 || geometric(&s, 0) != -1, 0);
    return finish();
}
