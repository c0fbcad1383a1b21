// If this failed, modes would not be modes, an ascent would not say that there is none, or the log density would fall on the way.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../runtime/device/rng.h"
#include "../../runtime/host/ascent.h"

static int failures;

static void check(bool good, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf(good ? "ok   " : "FAIL ");
    vprintf(format, args);
    putchar('\n');
    va_end(args);
    failures += !good;
}

// ---- targets ----

// Scales from 1e-3 to 1, every two coordinates correlated by 0.9; the mode is at i + 1.
static double scale_at(long n, long i) { return pow(10, -3 + 3.0 * (double)(i / 2) / (double)(n / 2 - 1)); }

static double quadratic(void *of, const double *x, double *g)
{
    const long n = *(const long *)of;
    const double r = 0.9, w = 1 / (1 - r * r);
    double lp = 0;
    for (long i = 0; i < n; i += 2) {
        const double s = scale_at(n, i), a = (x[i] - (double)(i + 1)) / s, b = (x[i + 1] - (double)(i + 2)) / s;
        lp -= 0.5 * w * (a * a - 2 * r * a * b + b * b) + log(2 * M_PI * s * s * sqrt(1 - r * r));
        g[i] = -w * (a - r * b) / s;
        g[i + 1] = -w * (b - r * a) / s;
    }
    return lp;
}

static double rosenbrock(void *of, const double *x, double *g)
{
    (void)of;
    const double a = 1 - x[0], b = x[1] - x[0] * x[0];
    g[0] = 2 * a + 400 * b * x[0];
    g[1] = -200 * b;
    return -a * a - 100 * b * b;
}

enum { ROWS = 60, COLUMNS = 4 };
static double row[ROWS][COLUMNS];
static int outcome[ROWS];

static double logistic(void *of, const double *x, double *g)
{
    (void)of;
    double lp = 0;
    for (int j = 0; j < COLUMNS; j++) {
        lp -= 0.5 * x[j] * x[j] / 100;
        g[j] = -x[j] / 100;
    }
    for (int i = 0; i < ROWS; i++) {
        double eta = 0;
        for (int j = 0; j < COLUMNS; j++)
            eta += row[i][j] * x[j];
        lp += outcome[i] * eta - (eta > 0 ? eta + log1p(exp(-eta)) : log1p(exp(eta)));
        for (int j = 0; j < COLUMNS; j++)
            g[j] += row[i][j] * (outcome[i] - 1 / (1 + exp(-eta)));
    }
    return lp;
}

// Beyond 2 there is nothing: its mode is at 1, close to the end.
static double ends(void *of, const double *x, double *g)
{
    (void)of;
    g[0] = 1 - 1 / (2 - x[0]);
    return x[0] + log(2 - x[0]);
}

static double rises(void *of, const double *x, double *g)
{
    (void)of;
    g[0] = exp(x[0]);
    g[1] = -x[1];
    return exp(x[0]) - 0.5 * x[1] * x[1];
}

// A probability that data call 1, and a mean: coordinate 0 goes to infinity.
static double separated(void *of, const double *x, double *g)
{
    (void)of;
    const double p = 1 / (1 + exp(-x[0]));
    g[0] = 1 - p;
    g[1] = -(x[1] - 3);
    return log(p) - 0.5 * (x[1] - 3) * (x[1] - 3);
}

// The same in the logarithm of a number, whose exponential overflows where it is far.
static double separated_log(void *of, const double *x, double *g)
{
    (void)of;
    const double z = exp(x[0]);
    g[0] = 1 / z;
    g[1] = -(x[1] - 3);
    return isfinite(z) ? -1 / z - 0.5 * (x[1] - 3) * (x[1] - 3) : NAN;
}

static double nowhere(void *of, const double *x, double *g)
{
    (void)of;
    g[0] = x[0];
    return NAN;
}

static double cauchy(void *of, const double *x, double *g)
{
    (void)of;
    g[0] = -2 * (x[0] - 3) / (1 + (x[0] - 3) * (x[0] - 3));
    return -log1p((x[0] - 3) * (x[0] - 3));
}

// ---- ascents ----

typedef struct Climb { GmAscent *a; bool fell; } Climb;

static Climb climb(long n, GmTarget *target, void *of, const double *from)
{
    Climb c = { gm_ascent_open(n, target, of), false };
    gm_ascent_begin(c.a, from);
    for (double before = c.a->log_density; gm_ascent_step(c.a) && c.a->steps < 5000; before = c.a->log_density)
        c.fell |= c.a->log_density < before - 1e-13 * fabs(before);
    return c;
}

static void reach(const char *what, long n, GmTarget *target, void *of, const double *from, const double *mode, double error, long most)
{
    Climb c = climb(n, target, of, from);
    double worst = 0;
    for (long i = 0; i < n; i++)
        worst = fmax(worst, fabs(c.a->x[i] - mode[i]));
    check(c.a->state == GM_ASCENT_DONE && worst < error, "%s: %.1e from the mode (%g) after %ld steps", what, worst, error, c.a->steps);
    check(!c.fell && c.a->evaluations <= most, "%s: it never falls, and takes %ld evaluations (%ld)", what, c.a->evaluations, most);
    gm_ascent_close(c.a);
}

static void end_as(const char *what, long n, GmTarget *target, const double *from, GmAscentState state)
{
    Climb c = climb(n, target, NULL, from);
    check(c.a->state == state && !c.fell, "%s: ends as it should (%d after %ld evaluations)", what, c.a->state, c.a->evaluations);
    gm_ascent_close(c.a);
}

// Asked wherever a step gains little, as map.c does.
static void run_off(const char *what, long n, GmTarget *target, void *of, const double *from, bool does)
{
    GmAscent *a = gm_ascent_open(n, target, of);
    bool off = false;
    gm_ascent_begin(a, from);
    while (!off && gm_ascent_step(a) && a->steps < 5000)
        off = a->gain < 1e-3 && gm_ascent_runs_off(a);
    if (!off)
        off = gm_ascent_runs_off(a);
    check(off == does && (a->state == GM_ASCENT_RUNS_OFF) == does, "%s: %s (after %ld evaluations)", what,
          off ? "runs off" : "does not run off", a->evaluations);
    gm_ascent_close(a);
}

static void modes(void)
{
    const long n = 20;
    double from[20] = { 0 }, mode[20];
    for (long i = 0; i < n; i++)
        mode[i] = (double)(i + 1);
    reach("scales from 0.001 to 1", n, quadratic, (void *)&n, from, mode, 1e-6, 400);
    reach("Rosenbrock", 2, rosenbrock, NULL, (double[]){ -1.2, 1 }, (double[]){ 1, 1 }, 1e-5, 100);
    reach("an end beside the mode", 1, ends, NULL, (double[]){ -50 }, (double[]){ 1 }, 1e-5, 40);
    reach("the far tail of a Cauchy", 1, cauchy, NULL, (double[]){ -1e6 }, (double[]){ 3 }, 1e-5, 60);
    // Logistic regression: the mode by Newton's method.
    Stream g = stream((Sweep){ .seed = 7, .chain = 0, .sweep = 1 }, 1, 0);
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++)
            row[i][j] = j ? normal_standard(&g) * pow(10, j - 2) : 1;
        outcome[i] = uniform_open(&g) < 1 / (1 + exp(-0.5 - 3 * row[i][1]));
    }
    double x[COLUMNS] = { 0 }, slope[COLUMNS], H[COLUMNS][COLUMNS + 1];
    for (int k = 0; k < 50; k++) {
        logistic(NULL, x, slope);
        for (int a = 0; a < COLUMNS; a++) {
            for (int b = 0; b < COLUMNS; b++)
                H[a][b] = a == b ? 0.01 : 0;
            H[a][COLUMNS] = slope[a];
        }
        for (int i = 0; i < ROWS; i++) {
            double eta = 0;
            for (int j = 0; j < COLUMNS; j++)
                eta += row[i][j] * x[j];
            const double p = 1 / (1 + exp(-eta));
            for (int a = 0; a < COLUMNS; a++)
                for (int b = 0; b < COLUMNS; b++)
                    H[a][b] += p * (1 - p) * row[i][a] * row[i][b];
        }
        for (int a = 0; a < COLUMNS; a++)            // elimination: H is positive definite
            for (int b = 0; b < COLUMNS; b++) {
                const double share = H[b][a] / H[a][a];
                for (int c = a; c <= COLUMNS && b != a; c++)
                    H[b][c] -= share * H[a][c];
            }
        for (int a = 0; a < COLUMNS; a++)
            x[a] += H[a][COLUMNS] / H[a][a];
    }
    reach("logistic regression", COLUMNS, logistic, NULL, (double[]){ 0, 0, 0, 0 }, x, 1e-5, 60);
}

int main(void)
{
    modes();
    end_as("a density without a bound", 2, rises, (double[]){ 0, 1 }, GM_ASCENT_UNBOUNDED);
    end_as("no density", 1, nowhere, (double[]){ 1 }, GM_ASCENT_NOWHERE);
    const long n = 20;
    run_off("scales from 0.001 to 1", n, quadratic, (void *)&n, (double[20]){ 0 }, false);
    run_off("the far tail of a Cauchy", 1, cauchy, NULL, (double[]){ -1e6 }, false);
    run_off("logistic regression", COLUMNS, logistic, NULL, (double[]){ 0, 0, 0, 0 }, false);
    run_off("separation", 2, separated, NULL, (double[]){ 0, 1 }, true);
    run_off("separation, by a logarithm", 2, separated_log, NULL, (double[]){ 0, 1 }, true);
    return failures != 0;
}
