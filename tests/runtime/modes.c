// If this failed, iterations of expectation-maximisation would stop beside the maxima of their conditionals, or use wrong expectations of
// the latents.
//
// Maxima and expectations of the families (modes.h), beside densities evaluated around the maximum and sums over a fine grid. Nothing is
// random. Maxima are looked for at 200 places around; expectations are those of 200,000 points, to 1e-6.
#include "modes.h"
#include <stdio.h>

static int faults;

static void fault(const char *what, double got, double known)
{
    printf("%s: %.10g, not %.10g\n", what, got, known);
    faults++;
}

typedef double Density(double x, const double *p);

static double log_gig(double x, const double *p) { return p[1] * log(x) + p[2] * pow(x, p[0]) + p[3] * pow(x, -p[0]); }
static double log_beta_density(double x, const double *p) { return p[0] * log(x) + p[1] * log1p(-x); }
static double log_normal_density(double x, const double *p) { return p[0] * x + p[1] * x * x; }

// No place on [lo, hi] is higher.
static void is_highest(const char *what, Density *f, const double *p, double mode, double lo, double hi)
{
    if (!(mode >= lo && mode <= hi)) { fault(what, mode, lo); return; }
    const double top = f(mode, p);
    for (int i = 0; i <= 200; i++) {
        const double share = (i + 0.5) / 201, far = is_finite(hi) ? lo + share * (hi - lo) : lo + share / (1 - share),
                     near = mode + (i - 100) * 1e-4 * fabs(mode);
        if (f(far, p) > top + 1e-12 * fabs(top)) { fault(what, mode, far); return; }
        if (near > lo && near < hi && f(near, p) > top + 1e-12 * fabs(top)) { fault(what, mode, near); return; }
    }
}

// The mean of t under exp(f) on [lo, hi], by the midpoints of 200,000 cells, relative to the largest density.
static double mean_of(Density *f, const double *p, double mode, double lo, double hi, double (*t)(double, const double *))
{
    const int n = 200000;
    const double top = f(mode, p);
    double sum = 0, mass = 0;
    for (int i = 0; i < n; i++) {
        const double x = lo + (i + 0.5) / n * (hi - lo), w = exp(f(x, p) - top);
        mass += w;
        sum += w * t(x, p);
    }
    return sum / mass;
}

static double t_log(double x, const double *p) { (void)p; return log(x); }
static double t_log1m(double x, const double *p) { (void)p; return log1p(-x); }
static double t_power(double x, const double *p) { return pow(x, p[0]); }
static double t_inverse(double x, const double *p) { return pow(x, -p[0]); }
static double t_x(double x, const double *p) { (void)p; return x; }
static double t_square(double x, const double *p) { (void)p; return x * x; }

static void same(const char *what, double got, double known, double error)
{
    if (!(fabs(got - known) <= error * (1 + fabs(known)))) fault(what, got, known);
}

int main(void)
{
    static const double powers[] = {1, -1, 2, -2, 0.5};
    for (int i = 0; i < 5; i++) {
        const double k = powers[i], side = k > 0 ? 1 : -1;
        const double p[] = {k, 2.5 * side, -1.3, 0}, q[] = {k, -1.7, -0.8, -2.1}, r[] = {k, 1.2, -0.8, -2.1};
        is_highest("power_gamma", log_gig, p, power_gamma_natural_mode(k, p[1], p[2]), 0, INFINITY);
        is_highest("power_gig", log_gig, q, power_gig_natural_mode(k, q[1], q[2], q[3]), 0, INFINITY);
        is_highest("power_gig", log_gig, r, power_gig_natural_mode(k, r[1], r[2], r[3]), 0, INFINITY);
        is_highest("power_gamma between", log_gig, p, power_gamma_natural_truncated_mode(k, p[1], p[2], 0.2, 0.9), 0.2, 0.9);
        is_highest("power_gamma above", log_gig, p, power_gamma_natural_truncated_mode(k, p[1], p[2], 3, INFINITY), 3, INFINITY);
    }
    static const double g[][4] = {{1, 3, -2, 0}, {-1, -5, -2, 0}, {-2, -7, -1.5, 0}, {2, 2, -0.5, 0}};
    for (int i = 0; i < 4; i++) {
        const double *p = g[i], mode = power_gamma_natural_mode(p[0], p[1], p[2]), far = p[0] > 0 ? 30 : 200;
        same("power_gamma: mean of the logarithm", power_gamma_natural_mean(0, p[0], p[1], p[2]), mean_of(log_gig, p, mode, 0, far, t_log),
             1e-5);
        same("power_gamma: mean of the power", power_gamma_natural_mean(1, p[0], p[1], p[2]), mean_of(log_gig, p, mode, 0, far, t_power),
             1e-5);
    }
    static const double orders[] = {-0.5, -1.5};
    for (int i = 0; i < 2; i++) {
        const double p[] = {1, orders[i], -0.7, -1.4}, mode = power_gig_natural_mode(1, p[1], p[2], p[3]);
        same("power_gig: mean of the power", power_gig_natural_mean(1, 1, p[1], p[2], p[3]), mean_of(log_gig, p, mode, 0, 60, t_power),
             1e-6);
        same("power_gig: mean of its inverse", power_gig_natural_mean(2, 1, p[1], p[2], p[3]), mean_of(log_gig, p, mode, 0, 60, t_inverse),
             1e-6);
    }
    const double b[] = {1.5, 3};
    is_highest("beta", log_beta_density, b, beta_natural_mode(b[0], b[1]), 0, 1);
    is_highest("beta between", log_beta_density, b, beta_natural_truncated_mode(b[0], b[1], 0.5, 0.7), 0.5, 0.7);
    same("beta: mean of log x", beta_natural_mean(0, b[0], b[1]), mean_of(log_beta_density, b, 1.0 / 3, 0, 1, t_log), 1e-6);
    same("beta: mean of log(1 - x)", beta_natural_mean(1, b[0], b[1]), mean_of(log_beta_density, b, 1.0 / 3, 0, 1, t_log1m), 1e-6);
    same("beta that rises to 0", beta_natural_mode(-0.5, 2), 0, 1e-300);
    same("beta that rises to 1", beta_natural_mode(2, -0.5), 1, 1e-15);
    static const double ends[][2] = {{-1, 2}, {2, 4}, {-6, -5}, {5, 5.5}, {-0.3, -0.2}, {1, 1.00001}, {-3, 9}};
    const double n[] = {0.4, -0.7};
    for (int i = 0; i < 7; i++) {
        const double lo = ends[i][0], hi = ends[i][1], mode = normal_natural_truncated_mode(n[0], n[1], lo, hi);
        is_highest("normal between", log_normal_density, n, mode, lo, hi);
        same("normal between: mean", normal_natural_truncated_mean(0, n[0], n[1], lo, hi),
             mean_of(log_normal_density, n, mode, lo, hi, t_x), 1e-7);
        same("normal between: mean square", normal_natural_truncated_mean(1, n[0], n[1], lo, hi),
             mean_of(log_normal_density, n, mode, lo, hi, t_square), 1e-7);
        same("normal above: mean", normal_natural_truncated_mean(0, n[0], n[1], lo, INFINITY),
             mean_of(log_normal_density, n, fmax(lo, 0.4 / 1.4), lo, fmax(lo, 1) + 9, t_x), 1e-6);
        same("normal below: mean", normal_natural_truncated_mean(0, n[0], n[1], -INFINITY, hi),
             mean_of(log_normal_density, n, fmin(hi, 0.4 / 1.4), fmin(hi, 0) - 9, hi, t_x), 1e-6);
    }
    same("normal far out", normal_natural_truncated_mean(0, 0, -0.5, 50, INFINITY), 50.019984, 1e-7);
    // E of polya_gamma(b, c) is -d/d(c^2/2) of the log of cosh(c/2)^-b.
    for (int i = 0; i < 5; i++) {
        const double c = (double[]){0, 1e-7, 0.3, 2, 40}[i], h = 1e-4, at = fmax(c, 0.01), s = at * at / 2;
        const double known = 3 * (log(cosh(0.5 * sqrt(2 * (s + h * s)))) - log(cosh(0.5 * sqrt(2 * (s - h * s))))) / (2 * h * s);
        same("polya_gamma", polya_gamma_natural_mean(0, 3, -0.5 * c * c), known, c < 0.01 ? 2e-5 : 1e-6);
    }
    double x[4], alpha[] = {3, 1.5, 0.7, 2.5}, work[3 * 4];
    dirichlet_mode(alpha, 4, x);
    for (int i = 0; i < 4; i++) same("dirichlet", x[i], alpha[i] > 1 ? (alpha[i] - 1) / 4 : 0, 1e-15);
    const double B[] = {-2, 0.6, 0.6, -1.5}, J[] = {2, 0.6, 0.6, 1.5};
    wishart_natural_mode(3, B, 2, x, work);
    const double det = J[0] * J[3] - J[1] * J[2];
    same("wishart", x[0], 3 * J[3] / det, 1e-14);
    same("wishart", x[1], 3 * 0.6 / det, 1e-14);
    inv_wishart_natural_mode(-4, B, 2, x, work);
    same("inv_wishart", x[0], 0.5, 1e-15);
    same("inv_wishart", x[2], -0.15, 1e-15);
    same("von_mises", von_mises_natural_mode(-1, 1), 0.75 * GM_PI, 1e-14);
    // A climb is never lower than its start, and ends within the square root of rounding of the maximum.
    static const double starts[] = {1e-3, 0.4, 2, 900};
    for (int i = 0; i < 4; i++)
        for (int log_scale = 0; log_scale < 2; log_scale++) {
            const double p[] = {1, 4, -2, -3}, mode = power_gig_natural_mode(1, p[1], p[2], p[3]);
            Climb c;
            if (log_scale) climb_begin_log(&c, NULL, starts[i], 0, INFINITY, 1);
            else climb_begin(&c, NULL, starts[i], 0, INFINITY, 1);
            int asked = 0;
            while (climb_next(&c)) { c.log_density = log_gig(c.x, p); asked++; }
            same(log_scale ? "climb by the logarithm" : "climb", c.x, mode, 3e-8);
            if (c.failed || asked > 200 || log_gig(c.x, p) < log_gig(starts[i], p)) fault("climb", asked, 0);
        }
    Climb c;
    climb_begin(&c, NULL, 0.5, 0, 1, 0.1);       // up to an end
    while (climb_next(&c)) c.log_density = 3 * c.x;
    same("climb to an end", c.x, 1, 1e-9);
    climb_begin(&c, NULL, 0.5, 0, 1, 0.1);
    while (climb_next(&c)) c.log_density = -fabs(c.x - 0.5);
    same("climb from the maximum", c.x, 0.5, 1e-15);
    printf("%d faults\n", faults);
    return faults > 0;
}
