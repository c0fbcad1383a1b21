// loo.c -- `loo DRAWS`: the expected log predictive density of each observation given the others, from one run with all of them.
//
//   Vehtari, Gelman and Gabry 2017, "Practical Bayesian model evaluation using leave-one-out cross-validation and WAIC", Statistics and
//   Computing 27(5).
//
// Draws given all observations stand for those given all but one, with weights 1 / p(y[i] | draw), which are smoothed (pareto.c). An
// observation is a row of the columns of log-likelihoods, log_lik_y.1 and so on; of several responses with the same rows, their sum.
#include "../fields.h"
#include "../messages.h"
#include "after.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- which columns ----

// The array whose name is `before` and then n characters of a name; -1: there is none.
static int array_named(const GmStored *s, const char *before, const char *name, size_t n)
{
    const size_t skip = strlen(before);
    for (int a = 0; a < s->n_arrays; a++)
        if (strncmp(s->array[a].name, before, skip) == 0 && strlen(s->array[a].name) == skip + n &&
            strncmp(s->array[a].name + skip, name, n) == 0)
            return a;
    return -1;
}

static char *joined(const GmStored *s, const int *array, int n, const char *between)
{
    char *text = gm_copy_text("");
    for (int k = 0; k < n; k++) {
        char *more = gm_format("%s%s%s", text, k ? between : "", s->array[array[k]].name);
        free(text);
        text = more;
    }
    return text;
}

static bool same_rows(const GmStoredArray *a, const GmStoredArray *b)
{
    return a->n == b->n && a->rank == b->rank && memcmp(a->dim, b->dim, sizeof a->dim) == 0;
}

// Arrays of log-likelihoods into array[], as many as is returned; 0 after a message.
static int find_arrays(const GmStored *s, const GmLooOptions *o, const char *command, int *array)
{
    int n = 0;
    for (const char *at = o->log_lik; at && *at;) {
        const size_t length = strcspn(at, ",");
        int found = array_named(s, "log_lik_", at, length);  // first: y itself may have columns, of missing values
        if (found < 0) found = array_named(s, "", at, length);
        for (int k = 0; k < n; k++)
            if (array[k] == found) found = -2;
        if (found < 0) {
            gm_error(found == -1 ? "%s: --log-lik: the draws have no columns %.*s" : "%s: --log-lik: %.*s is named twice", command,
                     (int)length, at);
            return 0;
        }
        array[n++] = found;
        at += length + (at[length] == ',');
    }
    for (int a = 0; a < s->n_arrays && !o->log_lik; a++)
        if (s->array[a].kind == STORED_LOG_LIK) array[n++] = a;
    if (n == 0) {
        gm_error(o->log_lik ? "%s: --log-lik: it names no columns"
                            : "%s: the draws have no log-likelihoods: run with --log-lik, or name the columns with --log-lik NAME",
                 command);
        return 0;
    }
    for (int k = 1; k < n; k++)
        if (!same_rows(&s->array[array[0]], &s->array[array[k]])) {
            char *all = joined(s, array, n, ", ");
            gm_error("%s: %s do not have the same rows, so they are not added: choose with --log-lik NAME", command, all);
            free(all);
            return 0;
        }
    return n;
}

// ---- numbers ----

// Effective size of the draws for the mean, over their number, as the Monte Carlo error has it; NaN: it has none.
static double efficiency_of(const GmSummary *of, const GmStored *s)
{
    const double size = of->sd / of->mcse;
    return size * size / ((double)s->chains * (double)s->draws);
}

// The average over all quantities but lp__ of their effective sizes for the mean, over the number of draws. One chain counts as 1.
static double efficiency_of_all(const GmStored *s)
{
    double *each = gm_alloc((size_t)s->n_columns, sizeof *each), sum = 0;
    long n = 0;
#pragma omp parallel for schedule(dynamic, 1)
    for (long c = 0; c < s->n_columns; c++) {
        const GmStoredArray *a = &s->array[s->column[c].array];
        each[c] = NAN;
        if (s->chains == 1 || a->kind != STORED_QUANTITY || strcmp(a->name, "lp__") == 0) continue;
        const GmSummary of = gm_summarise(gm_stored_column(s, c), s->chains, s->draws);
        each[c] = of.sd == 0 ? 1 : efficiency_of(&of, s);  // of a constant every draw counts
    }
    for (long c = 0; c < s->n_columns; c++) {
        sum += isfinite(each[c]) ? each[c] : 0;
        n += isfinite(each[c]);
    }
    free(each);
    return n ? sum / (double)n : 1;
}

// That of the likelihood itself, as the weights are its reciprocal.
static double efficiency_of_one(const double *log_lik, const GmStored *s)
{
    const long n = s->chains * s->draws;
    double *x = gm_alloc((size_t)n, sizeof *x), most = -INFINITY;
    for (long i = 0; i < n; i++) most = fmax(most, log_lik[i]);
    for (long i = 0; i < n; i++) x[i] = exp(log_lik[i] - most);
    const GmSummary of = gm_summarise(x, s->chains, s->draws);
    const double one = efficiency_of(&of, s);
    free(x);
    return isfinite(one) ? one : 1;
}

double gm_se_of_sum(const double *x, long n)
{
    double mean = 0, square = 0;
    for (long i = 0; i < n; i++) mean += x[i] / (double)n;
    for (long i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean);
    return n > 1 ? sqrt(square * (double)n / (double)(n - 1)) : NAN;
}

void gm_put_estimate(int width, double x)
{
    if (isnan(x)) printf("  %*s", width, "-");
    else printf("  %*.2f", width, x);
}

// Whether a column is NaN in all draws: the log-likelihood of a missing value.
static bool absent(const double *x, long n)
{
    for (long i = 0; i < n; i++)
        if (!isnan(x[i])) return false;
    return true;
}

// Whether all log-likelihoods of a row are numbers, but for columns of missing values. false after a message; *none: no response is
// observed.
static bool row_is_whole(const GmStored *s, const int *array, int n_arrays, long row, const char *command, bool *none)
{
    const long n = s->chains * s->draws;
    *none = true;
    for (int k = 0; k < n_arrays; k++) {
        const long c = s->array[array[k]].first + row;
        const double *x = gm_stored_column(s, c);
        if (absent(x, n)) continue;
        *none = false;
        for (long i = 0; i < n; i++) {
            if (isfinite(x[i])) continue;
            gm_error("%s: %s is %s in draw %ld of chain %ld: no weight can be made of it", command, s->column[c].label,
                     isnan(x[i]) ? "NaN, not a number,"
                     : x[i] > 0  ? "infinite"
                                 : "-infinite, which is a density of 0,",
                     i % s->draws + 1, s->id[i / s->draws]);
            return false;
        }
    }
    return true;
}

static void add_up(const GmStored *s, const int *array, int n_arrays, long row, double *out)
{
    const long n = s->chains * s->draws;
    memset(out, 0, (size_t)n * sizeof *out);
    for (int k = 0; k < n_arrays; k++) {
        const double *x = gm_stored_column(s, s->array[array[k]].first + row);
        if (absent(x, n)) continue;
        for (long i = 0; i < n; i++) out[i] += x[i];
    }
}

// What the files say of all the data, one after the other; NULL: of some of them nothing.
static char *data_of(const GmStored *s, const int *array, int n)
{
    char *text = gm_copy_text("");
    for (int k = 0; k < n && text; k++) {
        const char *one = s->array[array[k]].data;
        char *more = one ? gm_format("%s %s", text, one) : NULL;
        free(text);
        text = more;
    }
    return text;
}

static double largest_good(long draws) { return fmin(1 - 1 / log10((double)draws), 0.7); }

// Each row by the smoothed weights of draws without it, and the sums over rows.
static void smooth_all(GmLoo *out, const GmStored *s, const GmLooOptions *o, const int *array, int n_arrays, const long *row_of,
                       double for_all)
{
    const long n = s->chains * s->draws;
#pragma omp parallel
    {
        double *log_lik = gm_alloc((size_t)n, sizeof *log_lik), *weight = gm_alloc((size_t)n, sizeof *weight);
#pragma omp for schedule(dynamic, 1)
        for (long at = 0; at < out->n; at++) {
            add_up(s, array, n_arrays, row_of[at], log_lik);
            for (long i = 0; i < n; i++) weight[i] = -log_lik[i];
            out->k[at] = gm_pareto_smooth(weight, n, o->by_observation ? efficiency_of_one(log_lik, s) : for_all);
            for (long i = 0; i < n; i++) weight[i] += log_lik[i];
            out->elpd[at] = gm_log_sum_exp(weight, n);
            out->fit[at] = gm_log_sum_exp(log_lik, n) - log((double)n);
        }
        free(log_lik);
        free(weight);
    }
    for (long at = 0; at < out->n; at++) {
        out->elpd_sum += out->elpd[at];
        out->p_loo += out->fit[at] - out->elpd[at];
        out->n_bad += out->k[at] > out->good;
        out->n_very_bad += out->k[at] > 1;
    }
}

bool gm_loo_open(GmLoo *out, const GmStored *s, const GmLooOptions *o, const char *command)
{
    *out = (GmLoo){.chains = s->chains, .draws = s->draws};
    const long n = s->chains * s->draws;
    if (s->draws < 8 || n < 25) {
        gm_error("%s: there are %ld draws in %d chain%s: at least 8 a chain and 25 together are needed", command, n, s->chains,
                 s->chains > 1 ? "s" : "");
        return false;
    }
    int *array = gm_alloc((size_t)s->n_arrays, sizeof *array);
    const int n_arrays = find_arrays(s, o, command, array);
    bool good = n_arrays > 0;
    const GmStoredArray *a = good ? &s->array[array[0]] : NULL;
    const long rows = good ? a->n : 0;
    out->of = good ? joined(s, array, n_arrays, " + ") : NULL;
    out->data = good ? data_of(s, array, n_arrays) : NULL;
    out->good = largest_good(n);
    out->name = gm_alloc((size_t)rows, sizeof *out->name);
    out->elpd = gm_alloc((size_t)rows, sizeof *out->elpd);
    out->fit = gm_alloc((size_t)rows, sizeof *out->fit);
    out->k = gm_alloc((size_t)rows, sizeof *out->k);
    long *row_of = gm_alloc((size_t)rows, sizeof *row_of);
    for (long row = 0; row < rows && good; row++) {
        bool none;
        good = row_is_whole(s, array, n_arrays, row, command, &none);
        if (!good) break;
        if (none) {
            out->left_out++;
            continue;
        }
        const char *label = s->column[a->first + row].label;
        out->name[out->n] = gm_copy_text(n_arrays == 1 ? label : label + strlen(a->name));  // "[3]" of several responses
        row_of[out->n++] = row;
    }
    const double for_all = o->efficiency > 0 ? o->efficiency : !good || o->by_observation ? 1 : efficiency_of_all(s);
    if (good) smooth_all(out, s, o, array, n_arrays, row_of, for_all);
    if (good && out->n == 0) {
        gm_error("%s: no value of %s is observed", command, out->of);
        good = false;
    }
    out->elpd_se = gm_se_of_sum(out->elpd, out->n);
    free(row_of);
    free(array);
    return good;
}

void gm_loo_close(GmLoo *l)
{
    for (long i = 0; i < l->n; i++) free(l->name[i]);
    free(l->name);
    free(l->elpd);
    free(l->fit);
    free(l->k);
    free(l->of);
    free(l->data);
    *l = (GmLoo){0};
}

// ---- the command ----

bool gm_loo_option(int option, const char *text, void *options)
{
    GmLooOptions *o = options;
    char *end;
    switch (option) {
    case OPT_LOO_LOG_LIK:
    case OPT_COMPARE_LOG_LIK: o->log_lik = text; return true;
    case OPT_LOO_POINTWISE: o->pointwise = text; return true;
    default:
        o->by_observation = strcmp(text, "each") == 0;
        o->efficiency = o->by_observation ? 0 : strtod(text, &end);
        if (o->by_observation || (end != text && !*end && o->efficiency > 0 && isfinite(o->efficiency))) return true;
        gm_error("--r-eff: `%s` is no number above 0, nor `each`", text);
        return false;
    }
}

static void put_number(FILE *to, double x, char after)
{
    char text[GM_NUMBER_ROOM];
    fwrite(text, 1, (size_t)gm_print_number(text, x, 0), to);
    fputc(after, to);
}

static int write_pointwise(const GmLoo *l, const char *path)
{
    static const char head[] = "observation,elpd_loo,p_loo,pareto_k\n";
    GmFile out;
    if (!gm_output_replaces_own(path, head) || !gm_output_open(&out, path, false)) return GM_EXIT_USAGE;
    fputs(head, out.to);
    for (long i = 0; i < l->n; i++) {
        fprintf(out.to, strchr(l->name[i], ',') ? "\"%s\"," : "%s,", l->name[i]);
        put_number(out.to, l->elpd[i], ',');
        put_number(out.to, l->fit[i] - l->elpd[i], ',');
        put_number(out.to, l->k[i], '\n');
    }
    return gm_output_done(&out) ? GM_EXIT_OK : GM_EXIT_FAULT;
}

static void print(const GmLoo *l)
{
    double *p = gm_alloc((size_t)l->n, sizeof *p);
    for (long i = 0; i < l->n; i++) p[i] = l->fit[i] - l->elpd[i];
    printf("%d chain%s, %ld draws each; %ld observation%s, by %s", l->chains, l->chains > 1 ? "s" : "", l->draws, l->n, l->n > 1 ? "s" : "",
           l->of);
    if (l->left_out) printf("; %ld missing one%s left out", l->left_out, l->left_out > 1 ? "s are" : " is");
    printf("\n\n          %12s  %10s\n", "estimate", "se");
    printf("elpd_loo  %12.2f", l->elpd_sum);
    gm_put_estimate(10, l->elpd_se);
    printf("\np_loo     %12.2f", l->p_loo);
    gm_put_estimate(10, gm_se_of_sum(p, l->n));
    printf("\n\n");
    free(p);
    if (l->n_bad == 0) {
        printf("Pareto k: at most %.2f, which is good, for all.\n", l->good);
        return;
    }
    printf("Pareto k: at most %.2f, which is good, for %ld of %ld; above it for %ld, and above 1 for %ld of these.\n", l->good,
           l->n - l->n_bad, l->n, l->n_bad, l->n_very_bad);
    long worst = 0;
    for (long i = 0; i < l->n; i++)
        if (l->k[i] > l->k[worst]) worst = i;
    printf("Warning: elpd_loo is not to be trusted: the draws say little of %ld observation%s once %s left out (worst: %s, %.2f). "
           "See whether the model fits %s; more draws help where k is just above %.2f.\n",
           l->n_bad, l->n_bad > 1 ? "s" : "", l->n_bad > 1 ? "they are" : "it is", l->name[worst], l->k[worst],
           l->n_bad > 1 ? "them" : "it", l->good);
}

int gm_loo(const GmModel *model, int argc, char **argv)
{
    GmLooOptions o = {0};
    GmStored s = {0};
    GmLoo l = {0};
    int status = gm_after_options(argc, argv, GROUP_LOO, "loo [options] DRAWS", gm_loo_option, &o);
    if (status >= 0) return status;
    if (!gm_opened(&s, model, "loo", argv + optind, argc - optind)) return GM_EXIT_USAGE;
    status = gm_loo_open(&l, &s, &o, "loo") ? GM_EXIT_OK : GM_EXIT_USAGE;
    if (status == GM_EXIT_OK && o.pointwise) status = write_pointwise(&l, o.pointwise);
    if (status == GM_EXIT_OK) print(&l);
    gm_loo_close(&l);
    gm_stored_close(&s);
    return status;
}
