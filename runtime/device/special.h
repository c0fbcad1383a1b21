// special.h -- scalar functions of the language that the C library lacks. Names are those of docs/language.md.
//
// Accuracy: relative error near 1e-15 unless a function says otherwise, in the tails too: where a plain formula would cancel or
// overflow another one is used. NaN in gives NaN out; arguments outside the domain give NaN.
// Test: tests/runtime/special.c (against GSL, and identities).
#ifndef GM_SPECIAL_H
#define GM_SPECIAL_H

#include "base.h"
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
#include "factorials.h"
#endif

// ---- powers and steps ----

DEVICE double square(double x) { return x * x; }
DEVICE double cube(double x) { return x * x * x; }
DEVICE double inv(double x) { return 1 / x; }
DEVICE double inv_sqrt(double x) { return 1 / sqrt(x); }
DEVICE double inv_square(double x) { return 1 / (x * x); }
DEVICE double step(double x) { return x < 0 ? 0 : 1; }
DEVICE long int_step(double x) { return x > 0; }
// not x - x == 0: sums may be taken in another order, and cancel
DEVICE int is_finite(double x) { return fabs(x) < INFINITY; }
DEVICE_ROW double clamp(double x, double lo, double hi) { return x < lo ? lo : x > hi ? hi : x; }

// x to an integer power, by squaring.
DEVICE double power_int(double x, long n)
{
    double result = 1;
    for (unsigned long k = n < 0 ? 0ul - (unsigned long)n : (unsigned long)n; k; k >>= 1) {
        if (k & 1) result *= x;
        x *= x;
    }
    return n < 0 ? 1 / result : result;
}

// ---- logarithms and exponentials of sums and differences ----

// n * l, such as a count by a logarithm: 0 if one of them is, also where the other is infinite. So 0 successes of probability 0 have the
// density 1 (0 log 0 = 0).
DEVICE_ROW double times_log(double n, double l) { return n == 0 || l == 0 ? 0 : n * l; }

DEVICE_ROW double from_bits(int64_t bits)
{
    union {
        int64_t bits;
        double value;
    } x;
    x.bits = bits;
    return x.value;
}
DEVICE_ROW int64_t bits_of(double value)
{
    union {
        int64_t bits;
        double value;
    } x;
    x.value = value;
    return x.bits;
}

// Without calls and branches on a CPU, so that loops over rows are done several rows at a time; each value is the same wherever its row
// stands. Error: 2 units in the last place.
//   exp_minus(x)      exp(-x), x >= 0                 exp_row(x), expm1_row(x), log_row(x)   exp, expm1 and log, everywhere
//   log1p_unit(z)     log(1 + z), -1/2 <= z <= 1      log1p_row(x)                             log(1 + x), everywhere
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
DEVICE double exp_minus(double x) { return exp(-x); }
DEVICE double exp_row(double x) { return exp(x); }
DEVICE double log_row(double x) { return log(x); }
DEVICE double log1p_unit(double z) { return log1p(z); }
DEVICE double log1p_row(double x) { return log1p(x); }
DEVICE double expm1_row(double x) { return expm1(x); }
#else
// 2^n, n a whole number from -1022 to 1023. 2^52 + 2^51 + n has n in its last bits; a conversion to an integer of 64 bits would need
// AVX-512 to be done several at a time.
DEVICE_ROW double two_to(double n) { return from_bits((int64_t)((uint64_t)(bits_of(n + 6755399441055744.0) + 1023) << 52)); }

// A whole number below 2^52 as a double, for the same reason: 2^52 + n less 2^52.
DEVICE_ROW double whole_of(uint64_t n) { return from_bits((int64_t)(n | 0x4330000000000000)) - 4503599627370496.0; }

// exp(r), |r| <= log(2)/2: the Taylor series to r^13 / 13!, by pairs of terms (Estrin).
DEVICE_ROW double exp_series(double r)
{
    const double q = r * r, f = q * q;
    const double low = fma(q, fma(r, 0.16666666666666666, 0.5), 1 + r);
    const double middle = fma(q, fma(r, 0.0001984126984126984, 0.001388888888888889), fma(r, 0.008333333333333333, 0.041666666666666664));
    const double high = fma(q, fma(r, 2.505210838544172e-08, 2.755731922398589e-07), fma(r, 2.7557319223985893e-06, 2.48015873015873e-05));
    const double top = fma(r, 1.6059043836821613e-10, 2.08767569878681e-09);
    return fma(f, fma(f, fma(f, top, high), middle), low);
}

// 2^n exp(r).
DEVICE_ROW double exp_minus(double x)
{
    const double y = x < 708 ? -x : -708, n = rint(y * 1.4426950408889634);
    const double r = fma(n, -1.9082149292705877e-10, fma(n, -0.69314718036912382, y));
    const double e = exp_series(r) * two_to(n);
    return x < 708 ? e : x == x ? 0 : x;
}

// The same in two factors of 2^n, so that it ends where numbers do on both sides.
DEVICE_ROW double exp_row(double x)
{
    const double y = x > 710 ? 710 : x > -746 ? x : -746, n = rint(y * 1.4426950408889634), half = rint(0.5 * n);
    const double r = fma(n, -1.9082149292705877e-10, fma(n, -0.69314718036912382, y));
    const double value = exp_series(r) * two_to(half) * two_to(n - half);
    return x == x ? value : x;
}

// exp(x) - 1: 2^n (exp(r) - 1) + 2^n - 1.
DEVICE_ROW double expm1_row(double x)
{
    const double y = x > 700 ? 700 : x > -50 ? x : -50, n = rint(y * 1.4426950408889634);
    const double r = fma(n, -1.9082149292705877e-10, fma(n, -0.69314718036912382, y)), q = r * r, f = q * q;
    const double low = fma(q, fma(r, 0.008333333333333333, 0.041666666666666664), fma(r, 0.16666666666666666, 0.5));
    const double high = fma(q, fma(r, 2.7557319223985893e-06, 2.48015873015873e-05), fma(r, 0.0001984126984126984, 0.001388888888888889));
    const double top = fma(q, fma(r, 1.6059043836821613e-10, 2.08767569878681e-09), fma(r, 2.505210838544172e-08, 2.755731922398589e-07));
    const double part = fma(q, fma(f, fma(f, top, high), low), r), two = two_to(n), value = fma(two, part, two - 1);
    return x > 700 ? exp_row(x) : x == x ? value : x;
}

// x = 2^k m, sqrt(1/2) <= m < sqrt(2); log m by 2 atanh(s), s = f/(2 + f), f = m - 1 (as fdlibm, Sun Microsystems 1993, arranges it: f -
// (f^2/2 - s (f^2/2 + R(s^2)))).
DEVICE_ROW double log_row(double x)
{
    const int small = x < 2.2250738585072014e-308;
    const int64_t bits = bits_of(small ? x * 18014398509481984.0 : x);
    const double m = from_bits((bits & 0xfffffffffffff) | 0x3ff0000000000000);
    const int large = m > 1.4142135623730951;
    const double k = whole_of((uint64_t)bits >> 52) - (small ? 1077 : 1023) + (large ? 1 : 0), f = (large ? 0.5 * m : m) - 1;
    const double s = f / (2 + f), z = s * s, w = z * z, h = 0.5 * f * f;
    const double even = w * fma(w, fma(w, 1.531383769920937332e-01, 2.222219843214978396e-01), 3.999999999940941908e-01);
    const double odd =
        z * fma(w, fma(w, fma(w, 1.479819860511658591e-01, 1.818357216161805012e-01), 2.857142874366239149e-01), 6.666666666666735130e-01);
    const double value = fma(k, 6.93147180369123816490e-01, fma(k, 1.90821492927058770002e-10, f - (h - s * (h + (even + odd)))));
    return x > 0 ? x < INFINITY ? value : x : x == 0 ? -INFINITY : NAN;
}

// 2 atanh(s), s = z/(2 + z) between -1/3 and 1/3, as s times a series in s^2.
DEVICE_ROW double log1p_unit(double z)
{
    const double s = z / (2 + z), q = s * s;
    double a = 2.0 / 35;
    a = fma(a, q, 2.0 / 33);
    a = fma(a, q, 2.0 / 31);
    a = fma(a, q, 2.0 / 29);
    a = fma(a, q, 2.0 / 27);
    a = fma(a, q, 2.0 / 25);
    a = fma(a, q, 2.0 / 23);
    a = fma(a, q, 2.0 / 21);
    a = fma(a, q, 2.0 / 19);
    a = fma(a, q, 2.0 / 17);
    a = fma(a, q, 2.0 / 15);
    a = fma(a, q, 2.0 / 13);
    a = fma(a, q, 2.0 / 11);
    a = fma(a, q, 2.0 / 9);
    a = fma(a, q, 2.0 / 7);
    a = fma(a, q, 2.0 / 5);
    a = fma(a, q, 2.0 / 3);
    return fma(a * q, s, 2 * s);
}

DEVICE_ROW double log1p_row(double x)
{
    const int near = x >= -0.5 && x <= 1;
    const double of_near = log1p_unit(near ? x : 0), of_far = log_row(1 + x);
    return near ? of_near : of_far;
}
#endif

DEVICE_ROW double log1m(double x) { return log1p_row(-x); }

// Logarithms of a value that may have rounded to an end of its support, of which `kept` has the logarithm as it was drawn. That is taken
// where it belongs to x and x has fewer digits: below 1e-300 and near 1, and in single precision, which latents may have, below 1.2e-38.
DEVICE_ROW double log_kept(double x, double kept)
{
    const int single = sizeof(real) == sizeof(float);
    const double least = single ? 1.1754943508222875e-38 : GM_LEAST, most = single ? 3.4028234663852886e38 : GM_MOST;
    const double log_least = single ? -87.33654475055310 : -690.7755278982137, log_most = single ? 88.72283905206835 : 690.7755278982137;
    const double value = log_row(clamp(x, GM_TINY, GM_HUGE));
    return (x >= most && kept >= log_most - 1e-6) || (x <= least && kept <= log_least + 1e-6) ? kept : value;
}

// log(1 - x)
DEVICE_ROW double log1m_kept(double x, double kept)
{
    const double rounding = sizeof(real) == sizeof(float) ? 1.2e-7 : 2.3e-16;
    const double value = log1p_row(x >= 1 ? rounding - 1 : -x), rest = -expm1_row(kept) - x;
    return x >= 0.5 && rest <= rounding && rest >= -rounding ? kept : value;
}

// log(1 + exp(x))
DEVICE_ROW double log1p_exp(double x) { return (x > 0 ? x : 0) + log1p_unit(exp_minus(fabs(x))); }

// log(1 - exp(x)), x <= 0; the two forms meet where both are exact (Maechler 2012).
DEVICE_ROW double log1m_exp(double x)
{
    const double far = log1p_unit(-exp_minus(x > -GM_LOG_2 ? GM_LOG_2 : -x)), near = log_row(-expm1_row(x));
    return x > -GM_LOG_2 ? near : far;
}

// log(exp(a) + exp(b))
DEVICE_ROW double log_sum_exp2(double a, double b)
{
    const double sum = (a > b ? a : b) + log1p_unit(exp_minus(fabs(a - b)));
    return a == b ? a + GM_LOG_2 : sum;  // equal infinities included
}

// log(exp(a) - exp(b)), a >= b
DEVICE_ROW double log_diff_exp(double a, double b)
{
    const double difference = a + log1m_exp(b - a);
    return a == b && a < INFINITY ? -INFINITY : difference;  // both may be -infinity
}

// x - log1p(x), without the cancellation near 0 (relative error 1e-14). A deviance is made of it.
DEVICE double x_minus_log1p(double x)
{
    if (fabs(x) > 0.1) return x - log1p(x);
    // With r = x / (2 + x): log1p(x) = 2 (r + r^3/3 + r^5/5 + ...), and x - 2 r = x r.
    const double r = x / (2 + x), s = r * r;
    return x * r - 2 * r * s * (1.0 / 3 + s * (1.0 / 5 + s * (1.0 / 7 + s * (1.0 / 9 + s * (1.0 / 11 + s / 13)))));
}

// ---- links ----

DEVICE_ROW double inv_logit(double x)
{
    const double e = exp_minus(fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}
DEVICE double logit(double p) { return log(p / (1 - p)); }
DEVICE_ROW double log_inv_logit(double x) { return -log1p_exp(-x); }
DEVICE_ROW double log1m_inv_logit(double x) { return -log1p_exp(x); }
DEVICE double cloglog(double p) { return log(-log1p(-p)); }
DEVICE_ROW double inv_cloglog(double x) { return -expm1_row(-exp_row(x)); }

// Values of which logarithms are kept, from log x and from logit x: they stay where 1/x and 1/(1 - x) are numbers.
DEVICE_ROW double from_log(double t)
{
    const int single = sizeof(real) == sizeof(float);
    return clamp(exp_row(t), single ? 1.1754943508222875e-38 : GM_LEAST, single ? 3.4028234663852886e38 : GM_MOST);
}
DEVICE_ROW double from_logit(double t)
{
    const int single = sizeof(real) == sizeof(float);
    return clamp(inv_logit(t), single ? 1.1754943508222875e-38 : GM_LEAST, single ? 0.99999994 : GM_BELOW_ONE);
}

// A value that has been multiplied, whose logarithm is kept and has been added to: it goes by that where it rounded to an end before
// or after.
DEVICE_ROW double value_kept(double x, double log_x)
{
    const double by_log = from_log(log_x);
    return fabs(x - by_log) <= 1e-9 * by_log ? x : by_log;
}

// ---- the normal distribution function ----

// P(Z <= x). In the left tail the relative error grows as x^2 times the rounding of x: 1e-13 at -38.
DEVICE double Phi(double x) { return 0.5 * erfc(-x * GM_SQRT_HALF); }

// Stan's Phi_approx: the logistic approximation of Bowling et al. 2009, error 1.4e-4.
DEVICE double Phi_approx(double x) { return inv_logit(0.07056 * x * x * x + 1.5976 * x); }

// exp(z^2) erfc(z), z >= 0: as (1 + 2 z) times it is a polynomial in w = (z - 3)/(z + 3) (Shepherd and Laframboise 1981; coefficients:
// Chebyshev's, computed with 60 digits).
DEVICE_ROW double erfc_scaled(double z)
{
    const double w = z < 1e17 ? (z - 3) / (z + 3) : 1;
    double a = -3.451497484403201e-11;
    a = fma(a, w, 8.393734858857153e-10);
    a = fma(a, w, 1.201971943818228e-09);
    a = fma(a, w, -8.21759505880691e-09);
    a = fma(a, w, -1.3906145791216994e-08);
    a = fma(a, w, 4.106401366817965e-08);
    a = fma(a, w, 1.0277997488192967e-07);
    a = fma(a, w, -1.4047654315462852e-07);
    a = fma(a, w, -6.175617678984748e-07);
    a = fma(a, w, 3.557608668411186e-07);
    a = fma(a, w, 3.473024167841043e-06);
    a = fma(a, w, -7.308281468785487e-07);
    a = fma(a, w, -2.0100843094844512e-05);
    a = fma(a, w, 4.9491966499684195e-06);
    a = fma(a, w, 0.00012509943557128115);
    a = fma(a, w, -0.00010515971958448067);
    a = fma(a, w, -0.0007798322884823084);
    a = fma(a, w, 0.0018886903449991718);
    a = fma(a, w, 0.0025293918180474668);
    a = fma(a, w, -0.02377051491717134);
    a = fma(a, w, 0.06830802734384515);
    a = fma(a, w, -0.11927366341538638);
    a = fma(a, w, 0.12964515870276475);
    a = fma(a, w, -0.0475622943534492);
    a = fma(a, w, -0.1356211061245812);
    a = fma(a, w, 1.2530080582697296);
    return a / (1 + 2 * z);
}

// log P(Z <= x), to -1e154: -x^2/2 + log(erfc_scaled / 2) on the left, log(1 - P(Z > x)) on the right.
DEVICE_ROW double log_Phi(double x)
{
    const double half = 0.5 * erfc_scaled(fabs(x) * GM_SQRT_HALF), square = 0.5 * x * x;
    return x > 0 ? log1p_unit(-half * exp_minus(square)) : log_row(half) - square;
}
DEVICE double std_normal_lcdf(double x) { return log_Phi(x); }

// d log Phi(x) / dx, the density by the distribution function (the inverse of Mills' ratio): about -x far left.
DEVICE_ROW double log_Phi_dx(double x)
{
    const double scaled = erfc_scaled(fabs(x) * GM_SQRT_HALF), falls = exp_minus(0.5 * x * x);
    return 0.79788456080286535588 * (x > 0 ? falls / (2 - scaled * falls) : 1 / scaled);
}

// The x with Phi(x) = p: rational functions of Wichura 1988, algorithm AS 241 (relative error 1e-16 in exact arithmetic).
DEVICE double inv_Phi(double p)
{
    const double q = p - 0.5;
    if (fabs(q) <= 0.425) {
        const double r = 0.180625 - q * q;
        const double top =
            ((((((2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853) * r + 45921.953931549871457) * r +
               13731.693765509461125) *
                  r +
              1971.5909503065514427) *
                 r +
             133.14166789178437745) *
                r +
            3.387132872796366608;
        const double bottom =
            ((((((5226.495278852545925 * r + 28729.085735721942674) * r + 39307.89580009271061) * r + 21213.794301586595867) * r +
               5394.1960214247511077) *
                  r +
              687.1870074920579083) *
                 r +
             42.313330701600911252) *
                r +
            1;
        return q * top / bottom;
    }
    double r = q < 0 ? p : 1 - p;
    if (!(r > 0)) return r == 0 ? (q < 0 ? -INFINITY : INFINITY) : NAN;
    r = sqrt(-log(r));
    double x;
    if (r <= 5) {
        r -= 1.6;
        const double top =
            ((((((7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r + 0.24178072517745061177) * r + 1.27045825245236838258) * r +
               3.64784832476320460504) *
                  r +
              5.7694972214606914055) *
                 r +
             4.6303378461565452959) *
                r +
            1.42343711074968357734;
        const double bottom =
            ((((((1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r + 0.0151986665636164571966) * r + 0.14810397642748007459) *
                   r +
               0.68976733498510000455) *
                  r +
              1.6763848301838038494) *
                 r +
             2.05319162663775882187) *
                r +
            1;
        x = top / bottom;
    } else {
        r -= 5;
        const double top = ((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 0.0012426609473880784386) * r +
                               0.026532189526576123093) *
                                  r +
                              0.29656057182850489123) *
                                 r +
                             1.7848265399172913358) *
                                r +
                            5.4637849111641143699) *
                               r +
                           6.6579046435011037772;
        const double bottom = ((((((2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r + 1.8463183175100546818e-5) * r +
                                  7.868691311456132591e-4) *
                                     r +
                                 0.0148753612908506148525) *
                                    r +
                                0.13692988092273580531) *
                                   r +
                               0.59983220655588793769) *
                                  r +
                              1;
        x = top / bottom;
    }
    return q < 0 ? -x : x;
}

// ---- gamma functions ----

// log Gamma(x), x > 0, minus nothing: lgamma itself comes from the C library on both targets.

// Stirling's error: log Gamma(x + 1) - (x + 1/2) log x + x - log(2 pi)/2, x > 0, with relative error 1e-12.
// Loader 2000 builds densities of counts from it that keep their digits for counts of 1e15.
DEVICE double stirling_error(double x)
{
    if (x < 16) return lgamma(x + 1) - (x + 0.5) * log(x) + x - GM_LOG_SQRT_2PI;
    const double s = 1 / (x * x);
    return (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188 - s * 691.0 / 360360))))) / x;
}

// log B(a, b), a, b > 0; large arguments through Stirling's error, so that nothing cancels.
DEVICE double lbeta(double a, double b)
{
    const double small = a < b ? a : b, large = a < b ? b : a, ratio = small / large;
    if (large < 32) return lgamma(a) + lgamma(b) - lgamma(a + b);
    if (!(small > 0)) return small == 0 ? INFINITY : NAN;
    // lgamma(large) - lgamma(large + small), by Stirling for both.
    const double difference =
        stirling_error(large) - stirling_error(large + small) + small - (large + small - 0.5) * log1p(ratio) - small * log(large);
    if (small < 16) return lgamma(small) + difference;
    return stirling_error(small) + (small - 0.5) * log(small) - small + GM_LOG_SQRT_2PI + difference;
}

// log of n choose k for real 0 <= k <= n; -infinity outside. Of counts below 256, on a CPU, by a table: to 3e-13, else relative to 1e-14.
DEVICE double lchoose(double n, double k)
{
    if (k < 0 || k > n) return -INFINITY;
    if (k == 0 || k == n) return 0;
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
    if (n < LOG_FACTORIALS && n == (double)(int)n && k == (double)(int)k)
        return log_factorial[(int)n] - log_factorial[(int)k] - log_factorial[(int)(n - k)];
#endif
    return -log1p(n) - lbeta(n - k + 1, k + 1);
}
DEVICE double choose(double n, double k)
{
    const double x = exp(lchoose(n, k));
    return x < 1e15 ? floor(x + 0.5) : x;
}

// The derivative of log Gamma, all real x but 0, -1, -2, ... (recurrence to 10, then the asymptotic series).
DEVICE double digamma(double x)
{
    double sum = 0;
    if (x <= 0) {
        if (floor(x) == x) return NAN;
        sum -= GM_PI / tan(GM_PI * x);  // psi(x) = psi(1 - x) - pi / tan(pi x)
        x = 1 - x;
    }
    double top = 0, bottom = 1;  // sum of 1/x, as one fraction
    for (; x < 10; x++) {
        top = top * x + bottom;
        bottom *= x;
    }
    sum -= top / bottom;
    const double s = 1 / (x * x);
    return sum + log(x) - 0.5 / x -
           s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760 - s / 12))))));
}

// log Gamma and its derivative for x > 0: without calls and branches, as exp_row. Below 8 by x (x + 1) ... (x + 7), above by Stirling's
// series. Error: 1e-15 of the value, and 1e-14.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
DEVICE double lgamma_positive(double x) { return lgamma(x); }
DEVICE double digamma_positive(double x) { return digamma(x); }
#else
DEVICE_ROW double lgamma_positive(double x)
{
    const double y = x < 8 ? x + 8 : x, s = 1 / (y * y);
    const double q = x * (x + 7), product = q * (q + 6) * ((q + 10) * (q + 12));  // x (x + 7), (x + 1)(x + 6), ...
    const double rest =
        (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188 - s * (691.0 / 360360 - s / 156)))))) / y;
    const double value = (y - 0.5) * log_row(y) - y + GM_LOG_SQRT_2PI + rest - log_row(x < 8 ? product : 1);
    return x < INFINITY ? value : x;
}

DEVICE_ROW double digamma_positive(double x)
{
    const double y = x < 8 ? x + 8 : x, z = x < 8 ? x : 1, s = 1 / (y * y);
    // 1/z + 1/(z + 7) + 1/(z + 1) + 1/(z + 6) + ... as one fraction: z (z + 7) = q, (z + 1)(z + 6) = q + 6, and each pair has the sum 2 z +
    // 7 over its product
    const double q = z * (z + 7), a = q * (q + 6), b = (q + 10) * (q + 12), sum = (2 * q + 6) * b + (2 * q + 22) * a;
    const double rest =
        s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760 - s / 12))))));
    const double value = log_row(y) - 0.5 / y - rest - (x < 8 ? (2 * z + 7) * sum / (a * b) : 0);
    return x < INFINITY ? value : x;
}
#endif

// log Gamma(x + n) - log Gamma(x), x > 0, n >= 0, and its derivative by x, which do not cancel for large x: Stirling's series for both.
DEVICE_ROW double lgamma_rise(double x, double n)
{
    const double far = x > 1e6 && n < x ? x : 1e6, m = n < far ? n : 0;
    const double apart = m * log_row(far) + (far + m - 0.5) * log1p_unit(m / far) - m - m / (12 * far * (far + m));
    return x > 1e6 && n < x ? apart : lgamma_positive(x + n) - lgamma_positive(x);
}

DEVICE_ROW double digamma_rise(double x, double n)
{
    const double far = x > 1e4 && n < x ? x : 1e4, m = n < far ? n : 0, y = far + m;
    const double apart = log1p_unit(m / far) + 0.5 * m / (far * y) + m * (far + y) / (12 * far * far * y * y);
    return x > 1e4 && n < x ? apart : digamma_positive(x + n) - digamma_positive(x);
}

// The derivative of digamma, x > 0.
DEVICE double trigamma(double x)
{
    if (!(x > 0)) return NAN;
    double sum = 0;
    for (; x < 10; x++) sum += 1 / (x * x);
    const double s = 1 / (x * x);
    return sum + 1 / x + 0.5 * s +
           s / x * (1.0 / 6 - s * (1.0 / 30 - s * (1.0 / 42 - s * (1.0 / 30 - s * (5.0 / 66 - s * (691.0 / 2730 - s * 7.0 / 6))))));
}

// ---- incomplete gamma and beta functions: the distribution functions of gamma, Poisson, beta, binomial, t ----
// Relative error of the logarithm's argument about 1e-13, in both tails, for parameters between 1e-3 and 1e4; 1e-11 to 1e8.

// log Gamma(1 + a), without the rounding of 1 + a.
DEVICE double lgamma_1p(double a)
{
    if (fabs(a) > 1e-4) return lgamma(1 + a);
    return a * (-GM_EULER + a * (0.82246703342411321824 + a * (-0.40068563438653142847 + a * 0.27058080842778454788)));
}

// k log(k / x) + x - k, k, x > 0, which does not cancel for k near x (Loader 2000).
DEVICE double deviance(double k, double x)
{
    const double r = x / k;
    return r < 0.5 || r > 2 ? k * (r - 1 - log(r)) : k * x_minus_log1p((x - k) / k);
}

// log of x^a exp(-x) / Gamma(a + 1)
DEVICE double log_gamma_term(double a, double x)
{
    if (a < 1e-2) return a * log(x) - x - lgamma_1p(a);
    return -stirling_error(a) - deviance(a, x) - 0.5 * log(2 * GM_PI * a);
}

// Temme 1979, The asymptotic expansion of the incomplete gamma functions: for large a and x near it, with eta^2 / 2 = x / a - 1 - log(x /
// a).
DEVICE double log_gamma_near(double a, double eta, int upper)
{
    const double c0 =
        -1.0 / 3 +
        eta * (1.0 / 12 + eta * (-1.4814814814814815e-2 +
                                 eta * (1.1574074074074074e-3 +
                                        eta * (3.527336860670194e-4 +
                                               eta * (-1.7875514403292181e-4 +
                                                      eta * (3.9192631785224378e-5 +
                                                             eta * (-2.1854485106799922e-6 +
                                                                    eta * (-1.85406221071516e-6 + eta * 8.296711340953086e-7))))))));
    const double c1 = -1.8518518518518519e-3 +
                      eta * (-3.4722222222222222e-3 +
                             eta * (2.6455026455026455e-3 +
                                    eta * (-9.9022633744855967e-4 +
                                           eta * (2.0576131687242798e-4 + eta * (-4.0187757201646091e-7 + eta * -1.8098550334489978e-5)))));
    const double c2 = 4.1335978835978836e-3 + eta * (-2.6813271604938272e-3 + eta * (7.7160493827160494e-4 + eta * 2.0093878600823045e-6));
    const double rest = (c0 + (c1 + c2 / a) / a) / sqrt(a), y = eta * sqrt(a), side = upper ? -y : y;
    const double at = log_Phi(side), ratio = exp(-0.5 * y * y - GM_LOG_SQRT_2PI - at);  // density by tail
    return at + log1p((upper ? rest : -rest) * ratio);
}

// log P(a, x) and log Q(a, x), a >= 0, x >= 0: a gamma(a, 1) variable lies below x, above x. a = 0 is the point 0.
DEVICE double log_gamma_tail(double a, double x, int upper)
{
    if (!(a >= 0) || !(x >= 0) || a == INFINITY) return NAN;
    if (a == 0) return upper ? -INFINITY : 0;
    if (x == 0) return upper ? 0 : -INFINITY;
    if (x == INFINITY) return upper ? -INFINITY : 0;
    if (a > 1e4 && fabs(x - a) < 0.15 * a) {
        const double d = x_minus_log1p((x - a) / a), eta = sqrt(2 * d);
        return log_gamma_near(a, x < a ? -eta : eta, upper);
    }
    if (a < 1 && x < 1.5 && upper) {  // 1 - P would cancel: P = x^a / Gamma(a + 1) (1 + a sum (-x)^n / ((a + n) n!))
        double term = 1, sum = 0;
        for (int n = 1; n < 60; n++) {
            term *= -x / n;
            sum += term / (a + n);
            if (fabs(term) < 1e-18) break;
        }
        const double l = a * log(x) - lgamma_1p(a);
        return log(-expm1(l) - exp(l) * a * sum);
    }
    if (x < a + 1) {  // series of P
        double term = 1, sum = 1;
        for (int n = 1; n < 100000 && term > 1e-17 * sum; n++) sum += term *= x / (a + n);
        const double l = log_gamma_term(a, x) + log(sum);
        return upper ? log1m_exp(l < 0 ? l : 0) : l < 0 ? l : 0;
    }
    // Continued fraction of Q (Abramowitz and Stegun 6.5.31, by Lentz's method).
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (int n = 1; n < 100000; n++) {
        const double an = -n * (n - a);
        b += 2;
        d = an * d + b;
        if (fabs(d) < 1e-300) d = 1e-300;
        c = b + an / c;
        if (fabs(c) < 1e-300) c = 1e-300;
        d = 1 / d;
        const double step = d * c;
        h *= step;
        if (fabs(step - 1) < 1e-16) break;
    }
    const double l = log_gamma_term(a, x) + log(a) + log(h);
    return upper ? (l < 0 ? l : 0) : log1m_exp(l < 0 ? l : 0);
}
DEVICE double log_gamma_p(double a, double x) { return log_gamma_tail(a, x, 0); }
DEVICE double log_gamma_q(double a, double x) { return log_gamma_tail(a, x, 1); }
DEVICE double gamma_p(double a, double x) { return exp(log_gamma_p(a, x)); }
DEVICE double gamma_q(double a, double x) { return exp(log_gamma_q(a, x)); }

// log of I_x(a, b), y = 1 - x given with its own digits; a, b >= 0, not both 0. a = 0 is the point 0, b = 0 the point 1.
// Continued fraction of Abramowitz and Stegun 26.5.8, on the side where it converges, the power before it by deviances.
DEVICE double log_inc_beta_of(double a, double b, double x, double y)
{
    if (!(a >= 0) || !(b >= 0) || !(x >= 0) || !(y >= 0) || !is_finite(a + b)) return NAN;
    if (a == 0) return b > 0 ? 0 : NAN;
    if (b == 0) return x >= 1 ? 0 : -INFINITY;
    if (x == 0) return -INFINITY;
    if (y == 0) return 0;
    const int swap = x > (a + 1) / (a + b + 2);
    if (swap) {
        double t = a;
        a = b;
        b = t;
        t = x;
        x = y;
        y = t;
    }
    const double n = a + b;
    const double power = a < 1e-2 || b < 1e-2 ? a * log(x) + b * log(y) + lgamma(n + 1) - lgamma_1p(a) - lgamma_1p(b) + log(b / n)
                                              : 0.5 * log(b / (a * n)) - GM_LOG_SQRT_2PI + stirling_error(n) - stirling_error(a) -
                                                    stirling_error(b) - deviance(a, n * x) - deviance(b, n * y);
    double c = 1, d = 1 - n * x / (a + 1), h;  // power: log of x^a y^b / (a B(a, b))
    if (fabs(d) < 1e-300) d = 1e-300;
    d = 1 / d;
    h = d;
    for (int m = 1; m < 100000; m++) {
        double e = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 + e * d;
        c = 1 + e / c;
        if (fabs(d) < 1e-300) d = 1e-300;
        if (fabs(c) < 1e-300) c = 1e-300;
        d = 1 / d;
        h *= d * c;
        e = -(a + m) * (n + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 + e * d;
        c = 1 + e / c;
        if (fabs(d) < 1e-300) d = 1e-300;
        if (fabs(c) < 1e-300) c = 1e-300;
        d = 1 / d;
        const double step = d * c;
        h *= step;
        if (fabs(step - 1) < 1e-16) break;
    }
    const double l = power + log(h);
    return swap ? log1m_exp(l < 0 ? l : 0) : l < 0 ? l : 0;
}
DEVICE double log_inc_beta(double a, double b, double x) { return x > 1 ? NAN : log_inc_beta_of(a, b, x, 1 - x); }
DEVICE double inc_beta(double a, double b, double x) { return exp(log_inc_beta(a, b, x)); }

// log P(T <= z), T Student's t with nu degrees of freedom.
DEVICE double std_student_t_lcdf(double z, double nu)
{
    if (!(nu > 0) || z != z) return NAN;
    if (nu == INFINITY) return log_Phi(z);
    if (!is_finite(z)) return z > 0 ? 0 : -INFINITY;
    const double r = fabs(z) < 1e150 ? z * z / nu : INFINITY;  // x = 1 / (1 + r), y = r / (1 + r)
    if (r == INFINITY) {                                       // far out: the power of the tail
        const double l = -nu * (log(fabs(z)) - 0.5 * log(nu)) - log(nu) - lbeta(0.5 * nu, 0.5);
        return z < 0 ? l : log1m_exp(l);
    }
    const double tail = -GM_LOG_2 + log_inc_beta_of(0.5 * nu, 0.5, 1 / (1 + r), r / (1 + r));
    return z < 0 ? tail : log1m_exp(tail);
}

// ---- derivatives of the incomplete functions by their shapes ----
// d log P(a, x) / da is E(log T | T < x) - digamma(a), T a gamma(a, 1) variable, and so on: means of a logarithm below an end. With t = x
// exp(-s) the weights are exp(-h(s)), h increasing on s > 0 on the side where the tail is the smaller one; the other side has the slope of
// 1 minus it. Means by the double exponential rule s = scale * exp(u - exp(-u)) (Takahasi and Mori 1974), h being about 1 at `scale`.
// Relative error about 1e-11.

// E(s) under weights exp(-h(s)), s > 0, of the gamma law: h = a s - x (1 - exp(-s)) below x, h = x (exp(s) - 1) - a s above.
DEVICE double mean_log_gamma(double a, double x, int upper)
{
    double scale = 1 / (fabs(a - x) + sqrt(x)), weights = 0, sum = 0;
    while ((upper ? x * expm1(scale) - a * scale : a * scale + x * expm1(-scale)) < 1) scale *= 2;
    for (int k = -58; k <= 96; k++) {
        const double u = 0.0625 * k, e = exp(-u), s = scale * exp(u - e);
        const double h = upper ? x * expm1(s) - a * s : a * s + x * expm1(-s);
        if (h > 45) break;
        const double w = exp(-h) * s * (1 + e);
        weights += w;
        sum += w * s;
    }
    return sum / weights;
}

// d log P(a, x) / da, d log Q(a, x) / da
DEVICE double log_gamma_tail_da(double a, double x, int upper)
{
    if (!(a > 0) || !(x >= 0) || a == INFINITY) return NAN;
    if (x == 0) return upper ? 0 : -INFINITY;
    if (x == INFINITY) return 0;
    const int beyond = x > a;  // the side whose law is asked for
    const double slope = log(x) + (beyond ? 1 : -1) * mean_log_gamma(a, x, beyond) - digamma(a);
    return beyond == upper ? slope : -slope * exp(log_gamma_tail(a, x, beyond) - log_gamma_tail(a, x, upper));
}
DEVICE double log_gamma_p_da(double a, double x) { return log_gamma_tail_da(a, x, 0); }
DEVICE double log_gamma_q_da(double a, double x) { return log_gamma_tail_da(a, x, 1); }

// d log I_x(a, b) / da, or / db, for x not above a / (a + b); y = 1 - x. With u = x exp(-s), 1 - u is y + x (1 - exp(-s)).
DEVICE double log_inc_beta_below(double a, double b, double x, double y, int by_b)
{
    const double steep = fabs(a - (b - 1) * x / y), bend = b > 1 ? (b - 1) * x / (y * y) : 0;
    double scale = 1 / (steep + sqrt(bend)), weights = 0, sum = 0;
    while (a * scale - (b - 1) * log1p(-x / y * expm1(-scale)) < 1) scale *= 2;
    for (int k = -58; k <= 96; k++) {
        const double v = 0.0625 * k, e = exp(-v), s = scale * exp(v - e), rise = log1p(-x / y * expm1(-s));
        const double h = a * s - (b - 1) * rise;
        if (h > 45) break;
        const double w = exp(-h) * s * (1 + e);
        weights += w;
        sum += w * (by_b ? rise : s);
    }
    return by_b ? log(y) + sum / weights - digamma(b) + digamma(a + b) : log(x) - sum / weights - digamma(a) + digamma(a + b);
}

// The same for any x: above, of 1 - I_y(b, a).
DEVICE double log_inc_beta_of_slope(double a, double b, double x, double y, int by_b)
{
    if (!(a > 0) || !(b > 0) || !(x >= 0) || !(y >= 0) || !is_finite(a + b)) return NAN;
    if (y == 0) return 0;
    if (x == 0) return by_b ? digamma(a + b) - digamma(b) : -INFINITY;
    if (x * (a + b) <= a) return log_inc_beta_below(a, b, x, y, by_b);
    return -exp(log_inc_beta_of(b, a, y, x) - log_inc_beta_of(a, b, x, y)) * log_inc_beta_below(b, a, y, x, !by_b);
}
DEVICE double log_inc_beta_da(double a, double b, double x) { return x > 1 ? NAN : log_inc_beta_of_slope(a, b, x, 1 - x, 0); }
DEVICE double log_inc_beta_db(double a, double b, double x) { return x > 1 ? NAN : log_inc_beta_of_slope(a, b, x, 1 - x, 1); }

// d log P(T <= z) / dnu. The tail is I_x(nu/2, 1/2) / 2 with x = nu / (nu + z^2), and x moves with nu, too.
DEVICE double std_student_t_lcdf_dnu(double z, double nu)
{
    if (!(nu > 0) || z != z) return NAN;
    if (nu == INFINITY || z == 0 || !is_finite(z)) return 0;
    const double r = fabs(z) < 1e150 ? z * z / nu : INFINITY, a = 0.5 * nu;
    double slope;
    if (r == INFINITY) slope = 0.5 - log(fabs(z)) + 0.5 * log(nu) - 1 / nu - 0.5 * (digamma(a) - digamma(a + 0.5));
    else {
        const double x = 1 / (1 + r), y = r / (1 + r);
        slope = 0.5 * log_inc_beta_of_slope(a, 0.5, x, y, 0) +
                exp(a * log(x) + 0.5 * log(y) - lbeta(a, 0.5) - log_inc_beta_of(a, 0.5, x, y)) / nu;
    }
    if (z < 0) return slope;
    const double above = std_student_t_lcdf(-z, nu);
    return -slope * exp(above - log1m_exp(above));
}

// ---- Bessel functions ----

// log I0(x), the normaliser of von Mises: power series, then the asymptotic series. Relative error 1e-14.
DEVICE double log_bessel_i0(double x)
{
    x = fabs(x);
    double term = 1, sum = 1;
    if (x < 30) {
        const double y = 0.25 * x * x;
        for (int k = 1; k < 200 && term > 1e-17 * sum; k++) sum += term *= y / ((double)k * k);
        return log(sum);
    }
    for (int k = 1; k < 30; k++) {
        const double factor = (2 * k - 1) * (double)(2 * k - 1) / (8 * k * x);
        if (factor >= 1) break;
        sum += term *= factor;
        if (term < 1e-17) break;
    }
    return x - 0.5 * log(2 * GM_PI * x) + log(sum);
}

// d log I0(x) / dx = I1(x) / I0(x), the mean resultant length of von Mises, by the same series.
DEVICE double log_bessel_i0_dx(double x)
{
    const double z = fabs(x);
    double term = 1, sum = 1, term1 = 1, sum1 = 1;
    if (z < 30) {
        const double y = 0.25 * z * z;
        for (int k = 1; k < 200 && term > 1e-17 * sum; k++) {
            sum += term *= y / ((double)k * k);
            sum1 += term1 *= y / (k * (k + 1.0));
        }
        return 0.5 * x * sum1 / sum;
    }
    for (int k = 1; k < 30; k++) {
        const double odd = 2 * k - 1, factor = odd * odd / (8 * k * z);
        if (factor >= 1) break;
        sum += term *= factor;
        sum1 += term1 *= (odd * odd - 4) / (8 * k * z);
        if (term < 1e-17) break;
    }
    return x < 0 ? -sum1 / sum : sum1 / sum;
}

// log K_p(x), x > 0, any real order p: the normaliser of the generalised inverse Gaussian.
// K_p(x) is the integral of exp(-x cosh t) cosh(p t) over t > 0 (Abramowitz and Stegun 9.6.24). The integrand is analytic and falls
// off doubly exponentially, so the trapezoidal rule converges exponentially; it is laid around the integrand's maximum and scaled by
// the width there. Relative error of K about 1e-12 (rounding of the exponent where p or x is large).
DEVICE double log_bessel_k_with(double p, double x, double *mean)
{
    if (!(x > 0)) return *mean = x == 0 ? INFINITY : NAN;
    p = fabs(p);
    // exponent(t) = p t - x cosh t, maximal at asinh(p / x) with curvature -sqrt(p^2 + x^2).
    const double ratio = p / x;
    const double peak = ratio < 1e150 ? log(ratio + sqrt(1 + ratio * ratio)) : log(2 * p) - log(x);
    const double width = 1 / sqrt(hypot(p, x));
    const double half = width < 1 ? 0.125 * width : 0.125;
    const double top = p * peak - hypot(p, x);
    // The even integrand over the whole line is twice the half line: exp(-x cosh t + p t) sums both halves of cosh(p t).
    double sum = 1, moment = 0;
    for (int side = -1; side <= 1; side += 2)
        for (int k = 1; k < 200000; k++) {
            const double s = side * k * half;
            // p s - x (cosh(peak + s) - cosh(peak)), written by half angles so that it does not cancel
            const double e = p * s - 2 * x * sinh(peak + 0.5 * s) * sinh(0.5 * s), w = exp(e);
            sum += w;
            moment += w * s;
            if (e < -40) break;
        }
    *mean = peak + moment / sum;
    return top + log(0.5 * sum * half);
}
DEVICE double log_bessel_k(double p, double x)
{
    double mean;
    return log_bessel_k_with(p, x, &mean);
}

// d log K_p(x) / dp: the mean of t under the integrand.
DEVICE double log_bessel_k_dp(double p, double x)
{
    double mean;
    log_bessel_k_with(p, x, &mean);
    return p < 0 ? -mean : p > 0 ? mean : 0;
}

#endif
