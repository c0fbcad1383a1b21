// compare.c -- `compare A B ...`: models by leave-one-out cross-validation, the best first, each with its difference from the best.
//
// Differences are of pairs: the same observation under both models, so that what is hard to predict for both cancels (Vehtari, Gelman and
// Gabry 2017, section 5.2). For differences below 4, and few observations, their standard error is too optimistic (Sivula, Magnusson,
// Matamoros and Vehtari 2020, arXiv:2008.10296).
#include "../fields.h"
#include "../messages.h"
#include "after.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SMALL = 4 };

typedef struct Compared {
    const char *name;
    GmLoo loo;
} Compared;

static int better_first(const void *a, const void *b)
{
    const double x = ((const Compared *)a)->loo.elpd_sum, y = ((const Compared *)b)->loo.elpd_sum;
    return (x < y) - (x > y);
}

// false after a message: the observations of b are not those of a.
static bool same_observations(const Compared *a, const Compared *b)
{
    if (a->loo.n != b->loo.n) {
        gm_error("compare: %s has %ld observations, and %s has %ld: only models of the same ones are compared", b->name, b->loo.n, a->name,
                 a->loo.n);
        return false;
    }
    for (long i = 0; i < a->loo.n; i++)
        if (strcmp(a->loo.name[i], b->loo.name[i]) != 0) {
            gm_error("compare: observation %ld is %s of %s, and %s of %s: only models of the same ones are compared", i + 1, b->loo.name[i],
                     b->name, a->loo.name[i], a->name);
            return false;
        }
    if (a->loo.data && b->loo.data && strcmp(a->loo.data, b->loo.data) != 0) {
        gm_error("compare: %s and %s are of other data: the values of %s are not the same, only models of the same ones are compared",
                 a->name, b->name, b->loo.of);
        return false;
    }
    if (!a->loo.data || !b->loo.data)
        gm_note("compare: whether %s and %s are of the same data is not known: the files do not say", a->name, b->name);
    return true;
}

// Whether both have the same numbers for each observation, which are not the same in all draws: draws of one run, or copies of them.
static bool same_draws(const Compared *a, const Compared *b)
{
    bool varies = false;
    for (long i = 0; i < a->loo.n; i++) {
        if (a->loo.elpd[i] != b->loo.elpd[i] || a->loo.fit[i] != b->loo.fit[i]) return false;
        varies |= a->loo.elpd[i] != a->loo.fit[i];
    }
    if (varies)
        gm_error("compare: %s and %s have the same log-likelihoods, number by number: a model is compared with others", a->name, b->name);
    return varies;
}

static bool share_a_file(char **a, int n_a, char **b, int n_b)
{
    for (int i = 0; i < n_a; i++)
        for (int j = 0; j < n_b; j++) {
            struct stat x, y;
            if (stat(a[i], &x) == 0 && stat(b[j], &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino) return true;
        }
    return false;
}

// After a message: a model that is given twice, by whatever path, or has no draws.
static bool refused(char **given, int n)
{
    char ***file = gm_alloc((size_t)n, sizeof *file);
    int *count = gm_alloc((size_t)n, sizeof *count);
    bool wrong = false;
    for (int m = 0; m < n && !wrong; m++) {
        wrong = !(file[m] = gm_draw_files("compare", given + m, 1, &count[m]));
        for (int k = 0; k < m && !wrong; k++)
            if ((wrong = strcmp(given[k], given[m]) == 0))
                gm_error("compare: %s is given twice: a model is compared with others", given[m]);
            else if ((wrong = share_a_file(file[k], count[k], file[m], count[m])))
                gm_error("compare: %s and %s are the same files: a model is compared with others", given[k], given[m]);
    }
    for (int m = 0; m < n; m++) {
        for (int k = 0; k < count[m] && file[m]; k++) free(file[m][k]);
        free(file[m]);
    }
    free(file);
    free(count);
    return wrong;
}

static void print(const Compared *of, int n)
{
    int width = 5;
    bool small = false;
    const long rows = of[0].loo.n;
    double *difference = gm_alloc((size_t)rows, sizeof *difference);
    for (int m = 0; m < n; m++) width = (int)strlen(of[m].name) > width ? (int)strlen(of[m].name) : width;
    printf("%ld observation%s, by %s\n\n%-*s  %10s  %8s  %10s  %8s  %8s  %7s\n", rows, rows > 1 ? "s" : "", of[0].loo.of, width, "",
           "elpd_diff", "se_diff", "elpd_loo", "se", "p_loo", "bad k");
    for (int m = 0; m < n; m++) {
        double sum = 0;
        for (long i = 0; i < rows; i++) sum += difference[i] = of[m].loo.elpd[i] - of[0].loo.elpd[i];
        small |= m > 0 && fabs(sum) < SMALL;
        printf("%-*s  %10.2f", width, of[m].name, sum);
        gm_put_estimate(8, gm_se_of_sum(difference, rows));
        printf("  %10.2f", of[m].loo.elpd_sum);
        gm_put_estimate(8, of[m].loo.elpd_se);
        printf("  %8.2f  %7ld\n", of[m].loo.p_loo, of[m].loo.n_bad);
    }
    putchar('\n');
    for (int m = 0; m < n; m++)
        if (of[m].loo.n_bad > 0)
            printf("Warning: Pareto k is above %.2f for %ld observation%s of %s: its elpd_loo, and differences from it, are not to be "
                   "trusted.\n",
                   of[m].loo.good, of[m].loo.n_bad, of[m].loo.n_bad > 1 ? "s" : "", of[m].name);
    if (small)
        printf("A difference below %d is small: the models predict about equally well, and its standard error is too optimistic.\n", SMALL);
    free(difference);
}

int gm_compare(const GmModel *model, int argc, char **argv)
{
    GmLooOptions o = {0};
    int status = gm_after_options(argc, argv, GROUP_COMPARE, "compare [options] DRAWS DRAWS ...", gm_loo_option, &o);
    if (status >= 0) return status;
    const int n = argc - optind;
    if (n < 2) {
        gm_error("compare: one model is given: compare A B, the NAMEs of `-o NAME` of two or more");
        return GM_EXIT_USAGE;
    }
    if (refused(argv + optind, n)) return GM_EXIT_USAGE;
    Compared *of = gm_alloc((size_t)n, sizeof *of);
    bool good = true;
    for (int m = 0; m < n && good; m++) {
        GmStored s = {0};
        of[m].name = argv[optind + m];
        char *command = gm_format("compare: %s", of[m].name);
        good = gm_opened(&s, model, "compare", argv + optind + m, 1) && gm_loo_open(&of[m].loo, &s, &o, command) &&
               (m == 0 || same_observations(&of[0], &of[m]));
        for (int k = 0; k < m && good; k++) good = !same_draws(&of[k], &of[m]);
        gm_stored_close(&s);
        free(command);
    }
    if (good) {
        qsort(of, (size_t)n, sizeof *of, better_first);
        print(of, n);
    }
    for (int m = 0; m < n; m++) gm_loo_close(&of[m].loo);
    free(of);
    return good ? GM_EXIT_OK : GM_EXIT_USAGE;
}
