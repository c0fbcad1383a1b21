// If this failed, solutions of differential equations or their derivatives would be wrong, or would change when derivatives are needed. Or
// equations without a solution would not be reported.
#include "toy.h"
#include "ode.h"

// y1' = -p1 y1, y2' = p1 y1 - p2 y2: a chain of two decays, whose solution is known (Bateman 1910).
static void decay(const Ode *o, double t, const double *y, double *slope)
{
    (void)t;
    slope[0] = -o->input[0] * y[0];
    slope[1] = o->input[0] * y[0] - o->input[1] * y[1];
}

static void decay_slopes(const Ode *o, double t, const double *y, double *by_state, double *by_input)
{
    (void)t;
    by_state[0] -= o->input[0];
    by_state[2] += o->input[0];
    by_state[3] -= o->input[1];
    by_input[0] -= y[0];
    by_input[2] += y[0];
    by_input[3] -= y[1];
}

// The solution at t from (a, b), and its derivatives by p1, p2, a, b: rows of value[2 * 5].
static void bateman(double t, double p, double q, double a, double b, double *value)
{
    const double E = exp(-p * t), F = exp(-q * t), r = p / (q - p), d = E - F;
    const double exact[10] = {a * E,
                              -t * a * E,
                              0,
                              E,
                              0,
                              b * F + a * r * d,
                              a * d / (q - p) + a * r * d / (q - p) - a * r * t * E,
                              -t * b * F - a * r * d / (q - p) + a * r * t * F,
                              r * d,
                              F};
    memcpy(value, exact, sizeof exact);
}

static Ode begin(int stiff, long n, long times, long ninput, double tolerance)
{
    Ode o = {.n = n,
             .times = times,
             .ninput = ninput,
             .by = ninput,
             .columns = ninput + n,
             .stiff = stiff,
             .relative = tolerance,
             .absolute = tolerance};
    gm_ode_begin(&o, 0);
    return o;
}

static void linear(int stiff, double tolerance, double bound)
{
    enum { TIMES = 5 };
    static const double at[TIMES] = {0, 0.25, 1, 1, 6};
    double z[2 * TIMES], again[2 * TIMES], S[8 * TIMES], worst = 0, slope = 0;
    Ode o = begin(stiff, 2, TIMES, 2, tolerance);
    o.right_side = decay;
    o.slopes = decay_slopes;
    memcpy(o.time, at, sizeof at);
    o.input[0] = 0.7; o.input[1] = 2.3; o.start[0] = 3; o.start[1] = 0.5;
    const char *why = gm_ode_solve(&o, z, S), *same = gm_ode_solve(&o, again, NULL);
    for (int i = 0; i < TIMES; i++) {
        double exact[10];
        bateman(at[i], 0.7, 2.3, 3, 0.5, exact);
        for (int k = 0; k < 2; k++) {
            worst = fmax(worst, fabs(z[2 * i + k] - exact[5 * k]));
            for (int c = 0; c < 4; c++) slope = fmax(slope, fabs(S[(2 * i + k) * 4 + c] - exact[5 * k + 1 + c]));
        }
    }
    check(!why && !same && worst < bound && slope < 10 * bound,
          "%s, tolerance %g: values within %.2g of the closed form, derivatives within %.2g (bounds %g, %g)",
          stiff ? "ode_bdf" : "ode_rk45", tolerance, worst, slope, bound, 10 * bound);
    check(memcmp(z, again, sizeof z) == 0, "%s: the same numbers with derivatives and without", stiff ? "ode_bdf" : "ode_rk45");
    gm_ode_end(&o);
}

// Robertson's reactions, rates from 0.04 to 3e7: stiff. Reference: SciPy 1's Radau with rtol 1e-11, atol 1e-14, and the derivative by the
// first rate by differences of it.
static void robertson(const Ode *o, double t, const double *y, double *slope)
{
    (void)t;
    const double a = o->input[0] * y[0], b = 1e4 * y[1] * y[2], c = 3e7 * y[1] * y[1];
    slope[0] = -a + b;
    slope[1] = a - b - c;
    slope[2] = c;
}

static void robertson_slopes(const Ode *o, double t, const double *y, double *by_state, double *by_input)
{
    (void)t;
    const double k = o->input[0], J[9] = {-k, 1e4 * y[2], 1e4 * y[1], k, -1e4 * y[2] - 6e7 * y[1], -1e4 * y[1], 0, 6e7 * y[1], 0};
    for (int i = 0; i < 9; i++) by_state[i] += J[i];
    by_input[0] -= y[0];
    by_input[1] += y[0];
}

static void stiff(void)
{
    static const double at[3] = {0.4, 40, 4000}, by_rate[3] = {-4.24755877, 4.59119625e-05, 4.24751286};
    static const double exact[9] = {9.851721138610e-01, 3.386395378975e-05, 1.479402218522e-02, 7.158270687199e-01, 9.185534764493e-06,
                                    2.841637457453e-01, 1.832022577789e-01, 8.942371252905e-07, 8.167968479840e-01};
    double z[9], S[9 * 4], worst = 0, slope = 0;
    Ode o = begin(1, 3, 3, 1, 1e-8);
    o.absolute = 1e-12;
    o.right_side = robertson;
    o.slopes = robertson_slopes;
    memcpy(o.time, at, sizeof at);
    o.input[0] = 0.04; o.start[0] = 1;
    const char *why = gm_ode_solve(&o, z, S);
    for (int i = 0; i < 9; i++) worst = fmax(worst, fabs(z[i] - exact[i]) / exact[i]);
    for (int k = 0; k < 3; k++) slope = fmax(slope, fabs(S[(3 + k) * 4] - by_rate[k]) / fabs(by_rate[k]));
    check(!why && worst < 1e-5 && slope < 1e-3,
          "ode_bdf: Robertson's reactions within %.2g of their size, their derivatives within %.2g (bounds 1e-5, 1e-3)", worst, slope);
    gm_ode_end(&o);
}

// y' = y^2 from 1 is infinite at 1.
static void explode(const Ode *o, double t, const double *y, double *slope) { (void)o; (void)t; slope[0] = y[0] * y[0]; }

static void explode_slopes(const Ode *o, double t, const double *y, double *by_state, double *by_input)
{
    (void)o;
    (void)t;
    (void)by_input;
    by_state[0] += 2 * y[0];
}

static void none(int stiff)
{
    double z[2], S[2];
    Ode o = begin(stiff, 1, 2, 0, 1e-6);
    o.right_side = explode;
    o.slopes = explode_slopes;
    o.start[0] = 1;
    o.time[0] = 0.5; o.time[1] = 2;
    const char *why = gm_ode_solve(&o, z, S);
    check(!why && isnan(z[1]) && isnan(S[1]) && gm_ode_failure(), "no solution beyond time 1: no numbers, and why: %s",
          gm_ode_failure() ? gm_ode_failure() : "");
    o.time[1] = 0.25;
    why = gm_ode_solve(&o, z, S);
    check(why && strstr(why, "decrease"), "times that decrease are reported: %s", why ? why : "");
    o.from = 0.75;
    why = gm_ode_solve(&o, z, S);
    check(why && strstr(why, "before that of the start"), "times before the start are reported: %s", why ? why : "");
    gm_ode_end(&o);
}

int main(void)
{
    linear(0, 1e-10, 1e-8);
    linear(0, 1e-6, 1e-4);
    linear(1, 1e-10, 1e-7);
    linear(1, 1e-6, 1e-3);
    stiff();
    none(0);
    none(1);
    return failures != 0;
}
