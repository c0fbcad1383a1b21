// If this failed, effective sample sizes, R-hat or Monte Carlo errors would be wrong: against values from ArviZ 0.23, and theory.
//
// With arguments FILE CHAINS DRAWS it prints the summary of the numbers in FILE instead; test_summary.py compares that with ArviZ.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../runtime/host/host.h"

static int failures;

static void close_to(const char *what, double value, double expected, double relative)
{
    const double error = fabs(value - expected) / fabs(expected);
    const bool good = error <= relative;
    printf("%s %s: %.10g, expected %.10g, relative error %.2g <= %g\n", good ? "ok   " : "FAIL ", what, value, expected, error, relative);
    failures += !good;
}

static void is_true(const char *what, bool good)
{
    printf("%s %s\n", good ? "ok   " : "FAIL ", what);
    failures += !good;
}

// Chains of x = a x + (u - 1/2), u from a linear congruential generator that any language reproduces; offset * chain is added.
static double *series(int chains, long draws, double a, double offset)
{
    double *x = malloc((size_t)chains * (size_t)draws * sizeof *x);
    unsigned long s = 12345;
    for (int c = 0; c < chains; c++) {
        double v = 0;
        for (long i = 0; i < draws; i++) {
            s = (s * 1103515245ul + 12345ul) % 2147483648ul;
            v = a * v + ((double)s + 0.5) / 2147483648.0 - 0.5;
            x[c * draws + i] = v + offset * c;
        }
    }
    return x;
}

// From ArviZ 0.23.4, arviz.mcse, arviz.ess (bulk, tail) and arviz.rhat (rank), on the same series. Bound 1e-6: rounding, with room.
static void against_arviz(void)
{
    static const struct { int chains; long draws; double a, offset, mcse, bulk, tail, rhat; } known[] = {
        { 4, 1000, 0, 0, 0.00435954022209, 4266.43425588, 3196.16954297, 0.999597528974 },
        { 4, 1000, 0.9, 0, 0.0377869810192, 262.477102668, 595.758361682, 1.0060091234 },
        { 2, 250, 0.5, 0.2, 0.030298397732, 121.081040146, 200.207696016, 1.03726317708 },
        { 3, 101, -0.5, 0, 0.012694973548, 743.136376416, 276.669963406, 1.01593641531 },
        { 4, 200, 0.3, 1, 0.55489433176, 4.81215210009, 37.0895483904, 2.81136069119 },
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        double *x = series(known[k].chains, known[k].draws, known[k].a, known[k].offset);
        const GmSummary s = gm_summarise(x, known[k].chains, known[k].draws);
        printf("      %d chains of %ld, correlation %g, offset %g\n", known[k].chains, known[k].draws, known[k].a, known[k].offset);
        close_to("mcse", s.mcse, known[k].mcse, 1e-6);
        close_to("ess_bulk", s.ess_bulk, known[k].bulk, 1e-6);
        close_to("ess_tail", s.ess_tail, known[k].tail, 1e-6);
        close_to("rhat", s.rhat, known[k].rhat, 1e-6);
        free(x);
    }
}

// An autoregression of correlation a has effective size S (1 - a) / (1 + a). 4 x 20000 draws estimate the integrated time to about 4 % (a =
// 0.5); the bound is six times that. The series is fixed.
static void against_theory(void)
{
    double *x = series(4, 20000, 0.5, 0);
    const GmSummary s = gm_summarise(x, 4, 20000);
    close_to("ess_bulk of an autoregression", s.ess_bulk, 80000.0 / 3, 0.24);
    close_to("its sd", s.sd, sqrt(1 / 12.0 / 0.75), 0.05);
    free(x);
}

static void edges(void)
{
    double x[40];
    for (int i = 0; i < 40; i++)
        x[i] = 3;
    GmSummary s = gm_summarise(x, 4, 10);
    is_true("a constant: mean 3, sd 0, no diagnostics", s.mean == 3 && s.sd == 0 && isnan(s.rhat) && isnan(s.ess_bulk));
    for (int i = 0; i < 40; i++)
        x[i] = 3 + (i % 7) * 4e-15;
    s = gm_summarise(x, 4, 10);
    is_true("a constant but for rounding", fabs(s.mean - 3) < 1e-13 && s.sd == 0 && isnan(s.rhat) && isnan(s.ess_bulk));
    x[7] = NAN;
    s = gm_summarise(x, 4, 10);
    is_true("a draw that is not finite: no numbers", isnan(s.mean) && isnan(s.rhat));
    for (int i = 0; i < 40; i++)
        x[i] = i % 7;
    s = gm_summarise(x, 10, 4);
    is_true("4 draws per chain: a mean, no diagnostics", isfinite(s.mean) && isnan(s.ess_bulk));
    s = gm_summarise(x, 1, 1);
    is_true("one draw", s.mean == 0 && s.q5 == 0 && s.q95 == 0);
    for (int i = 0; i < 40; i++)
        x[i] = i / 10;
    s = gm_summarise(x, 4, 10);
    is_true("chains that never change, each elsewhere: R-hat is huge, few of 40 draws are effective", s.rhat > 1e6 && s.ess_bulk < 11);
    for (int i = 0; i < 40; i++)
        x[i] = i % 2;
    s = gm_summarise(x, 4, 10);
    is_true("a fair coin: folding leaves a constant, which says nothing", s.rhat < 1.01);
}

static int print_file(const char *path, int chains, long draws)
{
    FILE *f = fopen(path, "r");
    double *x = calloc((size_t)chains * (size_t)draws, sizeof *x);
    for (long i = 0; f && i < chains * draws; i++)
        if (fscanf(f, "%lf", &x[i]) != 1)
            return 1;
    if (!f)
        return 1;
    fclose(f);
    const GmSummary s = gm_summarise(x, chains, draws);
    printf("mean %.17g\nsd %.17g\nq5 %.17g\nq50 %.17g\nq95 %.17g\nmcse %.17g\ness_bulk %.17g\ness_tail %.17g\nrhat %.17g\n", s.mean, s.sd,
           s.q5, s.q50, s.q95, s.mcse, s.ess_bulk, s.ess_tail, s.rhat);
    free(x);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4)
        return print_file(argv[1], atoi(argv[2]), atol(argv[3]));
    against_arviz();
    against_theory();
    edges();
    return failures > 0;
}
