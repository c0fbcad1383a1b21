// If this failed, a scalar function of the language would be wrong, or lose its digits in a tail.
#include "check.h"
#include "windows.h"
#include <gsl/gsl_sf.h>
#include <gsl/gsl_cdf.h>

// Largest relative difference over a grid; floor: where the value passes through 0, absolute difference counts.
#define OVER(what, from, to, steps, got, want, floor, bound)                                             \
    do {                                                                                                 \
        double worst_ = 0;                                                                               \
        for (int i_ = 0; i_ <= (steps); i_++) {                                                          \
            const double x = (from) + ((to) - (from)) * (double)i_ / (steps);                            \
            const double a_ = (double)(got), b_ = (double)(want);                                        \
            const double e_ = a_ == b_ ? 0 : fabs(a_ - b_) / (fabs(b_) > (floor) ? fabs(b_) : (floor));  \
            if (!(e_ <= worst_)) worst_ = e_;                                                            \
        }                                                                                                \
        check(what, "error", worst_, bound);                                                             \
    } while (0)

int main(void)
{
    gsl_set_error_handler_off();
    // Bounds: a few units of rounding (2e-16) times the condition number named beside.
    OVER("Phi on [-37, 8]", -37, 8, 4500, Phi(x), 0.5 * erfcl(-(long double)x / sqrtl(2)), 0, 4e-13);          // condition x^2
    OVER("log_Phi on [-29, 8]", -29, 8, 3700, log_Phi(x),
         x > 0 ? log1pl(-0.5L * erfcl((long double)x / sqrtl(2))) : logl(0.5L * erfcl(-(long double)x / sqrtl(2))), 0, 1e-13);
    OVER("log_Phi on [-100, -29]", -100, -29, 710, log_Phi(x), logl(0.5L * erfcl(-(long double)x / sqrtl(2))), 0, 1e-14);
    OVER("log_Phi_dx on [-100, 37]", -100, 37, 1370, log_Phi_dx(x),
         expl(-0.5L * x * x) * sqrtl(0.63661977236758134308L) / erfcl(-(long double)x / sqrtl(2)), 0, 1e-12);
    check_close("log_Phi_dx(-1e10)", log_Phi_dx(-1e10), 1e10, 1, 1e-15);
    check("log_Phi(-1e150) is finite", "not", !is_finite(log_Phi(-1e150)), 0);
    OVER("inv_Phi(Phi(x)) on [-37, 0]", -37, 0, 3700, inv_Phi(Phi(x)), x, 1e-3, 1e-14);
    OVER("inv_Phi(1 - Phi(-x)) on [0, 5]", 0, 5, 500, inv_Phi(1 - Phi(-x)), x, 1, 1e-9);                       // rounding of 1 - p
    check("inv_Phi at 0 and 1", "finite", is_finite(inv_Phi(0)) + is_finite(inv_Phi(1)), 0);

    // Rows: within 2 units of rounding everywhere, and at the ends exactly what the C library gives.
    OVER("exp_row", -708, 709.7, 200000, exp_row(x), expl(x), 0, 4.5e-16);
    OVER("exp_row near 0", -1e-3, 1e-3, 2001, exp_row(x), expl(x), 0, 4.5e-16);
    OVER("exp_row, numbers below the smallest", -745, -708, 3701, exp_row(x), expl(x), 2.3e-308, 4.5e-16);
    OVER("log_row", 1e-3, 20, 200000, log_row(x), logl(x), 0, 4.5e-16);
    OVER("log_row(exp(x))", -744, 709, 14531, log_row(exp(x)), logl((long double)exp(x)), 0, 4.5e-16);
    OVER("log_row(1 + x)", -1e-6, 1e-6, 2001, log_row(1 + x), logl(1 + x), 0, 4.5e-16);
    OVER("expm1_row", -60, 709.7, 200000, expm1_row(x), expm1l(x), 0, 4.5e-16);
    OVER("expm1_row near 0", -0.5, 0.5, 20001, expm1_row(x), expm1l(x), 1e-300, 4.5e-16);
    OVER("expm1_row very near 0", -1e-9, 1e-9, 2001, expm1_row(x), expm1l(x), 1e-300, 4.5e-16);
    check("expm1_row, log1m_exp at the ends", "differ",
          expm1_row(-INFINITY) != -1 || expm1_row(INFINITY) != INFINITY || !isnan(expm1_row(NAN)) || log1m_exp(0) != -INFINITY ||
              log1m_exp(-INFINITY) != 0 || !isnan(log1m_exp(NAN)) || !isnan(log1m_exp(1)),
          0);
    OVER("log1p_unit", -0.5, 1, 3000, log1p_unit(x), log1pl(x), 0, 4.5e-16);
    OVER("log1p_row", -0.999, 30, 200000, log1p_row(x), log1pl(x), 0, 4.5e-16);
    OVER("log1p_row(x^9)", -0.9, 60, 20000, log1p_row(pow(x, 9)), log1pl((long double)pow(x, 9)), 1e-300, 4.5e-16);
    check("log1p_row and log1m at the ends", "differ",
          log1p_row(-1) != -INFINITY || log1p_row(INFINITY) != INFINITY || !isnan(log1p_row(NAN)) || !isnan(log1p_row(-2)) ||
              log1m(1) != -INFINITY || log1m(0) != 0,
          0);
    OVER("log_kept, between", 1e-9, 50, 2000, log_kept(x, -3), logl(x), 0, 4.5e-16);
    OVER("log1m_kept, between", 1e-9, 0.999999, 2000, log1m_kept(x, -3), log1pl(-x), 0, 4.5e-16);
    check("log_kept where the value has rounded, and where it belongs to another", "differ",
          log_kept(0, -900) != -900 || log_kept(GM_LEAST, -750) != -750 || log_kept(GM_MOST, 800) != 800 ||
              fabs(log_kept(GM_LEAST, -3) + 690.7755278982137) > 1e-10 || log_kept(0, -3) < -709,
          0);
    check("log1m_kept where the value has rounded, and where it belongs to another", "differ",
          log1m_kept(1, -50) != -50 || log1m_kept(1 - 1.1102230246251565e-16, -36.5) != -36.5 || fabs(log1m_kept(1, -3) + 36.04) > 0.1 ||
              fabs(log1m_kept(0.75, -50) - log(0.25)) > 1e-15,
          0);
    {
        static const double ends[] = {0,   -0.0, 1,     INFINITY, -INFINITY, NAN, -1, 4.9406564584124654e-324, 1.7976931348623157e308,
                                      710, -746, 1e300, -1e300};
        int differ = 0;
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
            const double x = ends[k], e = exp(x), l = log(x);
            differ += isnan(e) ? !isnan(exp_row(x)) : exp_row(x) != e;
            differ += isnan(l) ? !isnan(log_row(x)) : !(fabs(log_row(x) - l) <= 1e-13) && log_row(x) != l;
        }
        check("exp_row and log_row at the ends", "differ", differ, 0);
    }
    OVER("erfc_scaled", 0, 20, 4000, erfc_scaled(x), expl((long double)x * x) * erfcl(x), 0, 1e-15);
    check("log_Phi, log_Phi_dx at the ends", "differ",
          log_Phi(-INFINITY) != -INFINITY || log_Phi(INFINITY) != 0 || !isnan(log_Phi(NAN)) || log_Phi_dx(INFINITY) != 0 ||
              !isnan(log_Phi_dx(NAN)),
          0);
    OVER("log1p_exp", -700, 700, 14000, log1p_exp(x), x > 40 ? x : log1pl(expl(x)), 0, 1e-15);
    OVER("log1m_exp", -50, -1e-9, 5000, log1m_exp(x), x < -1 ? log1pl(-expl(x)) : logl(-expm1l(x)), 0, 1e-15);
    OVER("log_sum_exp", -40, 40, 800, log_sum_exp2(x, 1), logl(expl(x) + expl(1)), 1, 2e-15);
    OVER("log_diff_exp", 1.001, 40, 800, log_diff_exp(x, 1), logl(expl(1) * expm1l((long double)x - 1)), 1, 1e-13);
    check("log_sum_exp of infinities", "is NaN", isnan(log_sum_exp2(-INFINITY, -INFINITY)) + isnan(log_sum_exp2(INFINITY, INFINITY)), 0);
    OVER("x_minus_log1p", -0.9, 3, 3901, x_minus_log1p(x), (long double)x - log1pl(x), 1e-20, 1e-13);
    OVER("x_minus_log1p near 0", -1e-5, 1e-5, 101, x_minus_log1p(x), x * x / 2 - x * x * x / 3 + x * x * x * x / 4, 1e-30, 1e-13);
    OVER("inv_logit", -700, 700, 14000, inv_logit(x), 1 / (1 + expl(-(long double)x)), 0, 1e-15);
    OVER("logit(inv_logit(x))", -700, 5, 705, logit(inv_logit(x)), x, 1, 1e-13);                               // rounding of p near 1
    OVER("log_inv_logit, log1m_inv_logit", -700, 700, 1400, log_inv_logit(x), log1m_inv_logit(-x), 0, 0);
    OVER("log_inv_logit", -40, 40, 801, log_inv_logit(x), -log1pl(expl(-(long double)x)), 0, 1e-15);
    OVER("inv_cloglog, cloglog", -30, 2, 320, cloglog(inv_cloglog(x)), x, 1, 1e-12);
    OVER("power_int", -30, 30, 60, power_int(1.1, (long)x), powl(1.1L, (long)x) * 1, 0, 1e-13);                // 1.1 is rounded: 30 times
    check_close("step", step(-1) + 10 * step(0) + 100 * step(1), 110, 1, 0);

    OVER("digamma", 1e-3, 50, 5000, digamma(x), gsl_sf_psi(x), 1, 1e-14);
    OVER("digamma, negative", -9.75, -0.25, 19, digamma(x), gsl_sf_psi(x), 1, 1e-12);
    OVER("lgamma_positive", 1e-3, 60, 60000, lgamma_positive(x), lgammal(x), 1, 1.5e-14);
    OVER("lgamma_positive far out", 60, 1e6, 10000, lgamma_positive(x), lgammal(x), 0, 1e-15);
    OVER("lgamma_positive near 0", 1e-300, 1e-3, 1000, lgamma_positive(x), lgammal(x), 1, 1e-14);
    OVER("digamma_positive", 1e-3, 60, 60000, digamma_positive(x), gsl_sf_psi(x), 1, 4e-15);
    OVER("digamma_positive far out", 60, 1e6, 10000, digamma_positive(x), gsl_sf_psi(x), 0, 1e-15);
    check("lgamma_positive, digamma_positive at the ends", "differ",
          lgamma_positive(0) != INFINITY || lgamma_positive(INFINITY) != INFINITY || !isnan(lgamma_positive(NAN)) ||
              digamma_positive(0) != -INFINITY || digamma_positive(INFINITY) != INFINITY || !isnan(digamma_positive(NAN)),
          0);
    OVER("trigamma", 1e-3, 50, 5000, trigamma(x), gsl_sf_psi_1(x), 1e-3, 1e-13);
    OVER("stirling_error", 0.5, 60, 596, stirling_error(x),
         lgammal((long double)x + 1) - ((long double)x + 0.5L) * logl(x) + x - 0.91893853320467274178L, 0, 1e-11);
    OVER("lbeta(x, 2.5)", 0.1, 300, 3000, lbeta(x, 2.5), lgammal(x) + lgammal(2.5L) - lgammal((long double)x + 2.5L), 1, 2e-13);
    OVER("lbeta(x, 40)", 0.1, 300, 3000, lbeta(x, 40), lgammal(x) + lgammal(40) - lgammal((long double)x + 40), 1, 2e-13);
    check_close("lbeta(1e10, 3)", lbeta(1e10, 3), (double)logl(2 / (1e10L * (1e10L + 1) * (1e10L + 2))), 1, 1e-14);
    check_close("lbeta(1e10, 1e-3)", lbeta(1e10, 1e-3), (double)(lgammal(1e-3L) - 1e-3L * logl(1e10L)), 1, 1e-12);   // next term 1e-13
    double most = 0, weight[7] = {0, 0.25, 1, 0.5, 1e-9, 1e-300, 0.125};
    for (int n = 4; n <= 7; n++)                         // and where powers leave the range of numbers
        for (double x = -260; x <= 260; x += 0.8125) {
            long double top = -INFINITY, sum = 0;
            for (int k = 1; k <= n; k++) top = fmaxl(top, logl(weight[k - 1]) + k * (long double)x);
            for (int k = 1; k <= n; k++) sum += expl(logl(weight[k - 1]) + k * (long double)x - top);
            most = fmax(most, fabs((double)(log_tilted_sum(weight, n, x) - (top + logl(sum)))) / fmax(1, fabs(x)));
        }
    check("log_tilted_sum", "largest difference over |x|", most, 1e-14);
    check("log_tilted_sum of what is no number", "is NaN", !isnan(log_tilted_sum(weight, 4, NAN)), 0);
    check_close("lchoose(52, 5)", lchoose(52, 5), log(2598960), 1, 1e-14);
    check_close("times_log(0, log(0))", times_log(0, log(0)), 0, 1, 0);
    check_close("times_log(2, log(3))", times_log(2, log(3)), log(9), 1, 1e-15);
    check_close("times_log(1, log(0)) is -infinity", times_log(1, log(0)) == -INFINITY, 1, 1, 0);
    double table = 0;
    for (int n = 0; n < LOG_FACTORIALS; n++)
        for (int k = 0; k <= n; k++)
            table = fmax(table, fabs(lchoose(n, k) - (double)(lgammal(n + 1.0L) - lgammal(k + 1.0L) - lgammal(n - k + 1.0L))));
    check("lchoose of counts in the table", "largest difference", table, 3e-13);
    check_close("lchoose(2.5, 1.5)", lchoose(2.5, 1.5), log(2.5), 1, 1e-14);
    check_close("choose(30, 15)", choose(30, 15), 155117520, 1, 0);
    check_close("lchoose(1e15, 2)", lchoose(1e15, 2), (double)logl(1e15L * (1e15L - 1) / 2), 1, 1e-14);

    OVER("log_bessel_i0", 0, 100, 1000, log_bessel_i0(x), log(gsl_sf_bessel_I0_scaled(x)) + x, 1e-3, 1e-13);
    for (int k = 0; k < 5; k++) {
        static const double order[5] = { 0, 0.5, 1.3, 7, 50.25 };
        char what[64];
        snprintf(what, sizeof what, "log_bessel_k(%g, x) on [0.01, 200]", order[k]);
        OVER(what, 0.01, 200, 400, log_bessel_k(order[k], x), gsl_sf_bessel_lnKnu(order[k], x), 1, 1e-11);
    }
    // K_401 = K_399 + (800 / x) K_400, where the library compared with has only nine digits.
    OVER("log_bessel_k(401, x) by recurrence", 0.01, 2000, 400, log_bessel_k(401, x),
         log_sum_exp2(log_bessel_k(399, x), log(800 / x) + log_bessel_k(400, x)), 1, 1e-12);
    check_close("log_bessel_k(1/2, 1e-8)", log_bessel_k(0.5, 1e-8), 0.5 * log(GM_PI / 2e-8) - 1e-8, 1, 1e-12);
    check_close("log_bessel_k(-1/2, 1e4)", log_bessel_k(-0.5, 1e4), 0.5 * log(GM_PI / 2e4) - 1e4, 1, 1e-12);

    // Incomplete gamma and beta functions against GSL where it has digits, and far out against values of 40 digits (mpmath).
    for (int k = 0; k < 5; k++) {
        static const double shape[5] = { 0.05, 0.7, 3, 40, 2500 };
        const double a = shape[k], sd = sqrt(a);
        char what[80];
        snprintf(what, sizeof what, "gamma_p(%g, x), gamma_q(%g, x)", a, a);
        OVER(what, a / 50, a + 12 * sd + 3, 400, gamma_p(a, x), gsl_sf_gamma_inc_P(a, x), 1e-250, 1e-11);
        OVER(what, a / 50, a + 12 * sd + 3, 400, gamma_q(a, x), gsl_sf_gamma_inc_Q(a, x), 1e-250, 1e-11);
        OVER(what, a / 50, a + 12 * sd + 3, 400, gamma_p(a, x) + gamma_q(a, x), 1, 0, 1e-13);
        snprintf(what, sizeof what, "inc_beta(%g, 2.5, x)", a);
        OVER(what, 0.001, 0.999, 400, inc_beta(a, 2.5, x), gsl_sf_beta_inc(a, 2.5, x), 1e-250, 1e-10);
        snprintf(what, sizeof what, "std_student_t_lcdf(x, %g)", a);
        OVER(what, -60, 20, 400, std_student_t_lcdf(x, a), log(gsl_cdf_tdist_P(x, a)), 1e-6, 1e-7);
    }
    OVER("log_gamma_q(1, x)", 0, 1e5, 400, log_gamma_q(1, x), -x, 1e-3, 1e-14);
    OVER("log_inc_beta(x, 1, 1e-20)", 0.1, 1e5, 400, log_inc_beta(x, 1, 1e-20), x * log(1e-20), 0, 1e-14);
    OVER("log_gamma_q(1e-9, x), by the exponential integral", 0.01, 1.4, 100, log_gamma_q(1e-9, x), log(1e-9 * gsl_sf_expint_E1(x)), 0,
         1e-9);
    check_close("log_gamma_q(1e6, 1.02e6)", log_gamma_q(1e6, 1.02e6), -201.28990877964141301, 1, 1e-11);
    check_close("log_gamma_p(1e6, 0.98e6)", log_gamma_p(1e6, 0.98e6), -206.62442346169690964, 1, 1e-11);
    check_close("log_gamma_p(300, 1)", log_gamma_p(300, 1), -1415.9025221917654503, 1, 1e-13);
    check_close("log_inc_beta(2000, 3000, 0.3)", log_inc_beta(2000, 3000, 0.3), -116.50481995817108056, 1, 1e-12);
    check_close("std_student_t_lcdf(-1e200, 2)", std_student_t_lcdf(-1e200, 2), -2 * log(1e200) - log(2), 1, 1e-14);
    check("incomplete functions at their ends", "differ",
          gamma_p(2, 0) != 0 || gamma_q(2, 0) != 1 || gamma_q(2, INFINITY) != 0 || gamma_p(0, 1) != 1 || inc_beta(2, 3, 0) != 0 ||
              inc_beta(2, 3, 1) != 1 || inc_beta(0, 3, 0.5) != 1 || inc_beta(3, 0, 0.5) != 0 || std_student_t_lcdf(0, 3) != log(0.5),
          0);
    check("incomplete functions outside of their domain", "not NaN",
          !isnan(gamma_p(-1, 1)) + !isnan(gamma_p(1, -1)) + !isnan(inc_beta(1, 1, 1.5)) + !isnan(inc_beta(-1, 1, 0.5)), 0);

    // Derivatives by shapes and orders: against differences of the functions (error h^4 = 1e-12 of a fifth derivative, and 1e-13 / h), and
    // in tails against values of 40 digits (mpmath).
#define SLOPE(f, h) ((f(-2 * (h)) - 8 * f(-(h)) + 8 * f(h) - f(2 * (h))) / (12 * (h)))
#define BY_P(s)     log_gamma_p(a + (s), x)
#define BY_Q(s)     log_gamma_q(a + (s), x)
#define BY_A(s)     log_inc_beta(a + (s), 2.5, x)
#define BY_B(s)     log_inc_beta(2.5, a + (s), x)
#define BY_NU(s)    std_student_t_lcdf(x, a + (s))
#define BY_ORDER(s) log_bessel_k(a + (s), x)
    static const double shapes[5] = { 0.05, 0.7, 3, 40, 2500 };
    for (int k = 0; k < 5; k++) {
        const double a = shapes[k], sd = sqrt(a), h = 1e-3 * (a < 9 ? a : 3 * sd);
        char what[80];
        snprintf(what, sizeof what, "log_gamma_p_da(%g, x)", a);
        OVER(what, a / 20, a + 6 * sd, 100, log_gamma_p_da(a, x), SLOPE(BY_P, h), 1e-3 / a, 1e-6);
        snprintf(what, sizeof what, "log_gamma_q_da(%g, x)", a);
        OVER(what, a > 20 ? a - 4 * sd : a / 20, a + 12 * sd + 3, 100, log_gamma_q_da(a, x), SLOPE(BY_Q, h), 1e-3 / a, 1e-6);
        snprintf(what, sizeof what, "log_inc_beta_da(%g, 2.5, x)", a);
        OVER(what, 0.01, 0.99, 98, log_inc_beta_da(a, 2.5, x), SLOPE(BY_A, h), 1e-3 / a, 1e-6);
        snprintf(what, sizeof what, "log_inc_beta_db(2.5, %g, x)", a);
        OVER(what, 0.01, 0.99, 98, log_inc_beta_db(2.5, a, x), SLOPE(BY_B, h), 1e-3 / a, 1e-6);
        snprintf(what, sizeof what, "std_student_t_lcdf_dnu(z, %g)", a);
        OVER(what, -60, 20, 160, std_student_t_lcdf_dnu(x, a), SLOPE(BY_NU, h), 1e-3 / a, 1e-6);
        snprintf(what, sizeof what, "log_bessel_k_dp(%g, x)", a);
        OVER(what, 0.1, 100, 100, log_bessel_k_dp(a, x), SLOPE(BY_ORDER, h), 1e-2, 1e-7);
    }
    check_close("log_gamma_p_da(40, 1)", log_gamma_p_da(40, 1) / -3.7019360360565354207, 1, 1, 1e-9);
    check_close("log_gamma_p_da(2, 60)", log_gamma_p_da(2, 60) / -1.9700535528457558929e-24, 1, 1, 1e-9);
    check_close("log_gamma_q_da(0.0009765625, 0.0009765625)", log_gamma_q_da(0.0009765625, 0.0009765625) / 1020.9539933539444914, 1, 1,
                1e-9);
    check_close("log_gamma_q_da(3, 500)", log_gamma_q_da(3, 500) / 5.2938277473239788224, 1, 1, 1e-9);
    check_close("log_inc_beta_da(40, 60, 0.984375)", log_inc_beta_da(40, 60, 0.984375) / -1.1624877686262717792e-81, 1, 1, 1e-9);
    check_close("log_inc_beta_db(3, 60, 0.9375)", log_inc_beta_db(3, 60, 0.9375) / 2.5831589139132885921e-69, 1, 1, 1e-9);
    check_close("log_inc_beta_da(0.03125, 60, 9.5367431640625e-07)",
                log_inc_beta_da(0.03125, 60, 9.5367431640625e-07) / -9.2495300890323493459, 1, 1, 1e-9);
    check_close("log_inc_beta_db(900, 0.125, 0.25)", log_inc_beta_db(900, 0.125, 0.25) / 14.903158355561341197, 1, 1, 1e-9);
    check_close("std_student_t_lcdf_dnu(40, 30)", std_student_t_lcdf_dnu(40, 30) / 1.0451387728781779253e-27, 1, 1, 1e-9);
    check_close("std_student_t_lcdf_dnu(-10000.0, 2.5)", std_student_t_lcdf_dnu(-10000.0, 2.5) / -8.4147320335651958731, 1, 1, 1e-9);
    check_close("log_bessel_k_dp(50, 0.125)", log_bessel_k_dp(50, 0.125) / 6.6745800225898729713, 1, 1, 1e-9);
    OVER("log_bessel_i0_dx", 0.01, 100, 1000, log_bessel_i0_dx(x), gsl_sf_bessel_I1_scaled(x) / gsl_sf_bessel_I0_scaled(x), 0, 1e-14);
    check_close("log_bessel_i0_dx(-2)", log_bessel_i0_dx(-2), -gsl_sf_bessel_I1(2) / gsl_sf_bessel_I0(2), 1, 1e-14);
    check("derivatives outside of their domain", "not NaN",
          !isnan(log_gamma_p_da(-1, 1)) + !isnan(log_gamma_q_da(1, -1)) + !isnan(log_inc_beta_da(1, 1, 1.5)) +
              !isnan(std_student_t_lcdf_dnu(1, -1)),
          0);
    return finish();
}

