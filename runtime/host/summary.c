// summary.c -- the table at the end: posterior mean, sd and quantiles of each quantity with their diagnostics (convergence.c), and
// warnings.
#include "fields.h"
#include "messages.h"
#include "label_order.h"
#include "../device/nuts.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// The percentages of the quantiles, of which there are as many as is returned.
static int percentages(const GmOptions *o, double percent[GM_MOST_QUANTILES])
{
    static const double usual[] = {5, 50, 95};
    const int n = o->n_quantiles ? o->n_quantiles : 3;
    for (int i = 0; i < n; i++) percent[i] = o->n_quantiles ? o->quantile[i] : usual[i];
    return n;
}

// The quantiles of one quantity. Those of --quantiles sort its draws x.
static void quantiles_of(const GmSummary *s, const GmOptions *o, double *x, long n, double *out)
{
    const double usual[] = {s->q5, s->q50, s->q95};
    if (o->n_quantiles && !isnan(s->mean)) qsort(x, (size_t)n, sizeof *x, gm_ascending);
    for (int i = 0; i < (o->n_quantiles ? o->n_quantiles : 3); i++)
        out[i] = !o->n_quantiles ? usual[i] : isnan(s->mean) ? NAN : gm_quantile(x, n, o->quantile[i] / 100);
}

// Diagnostics sort the draws of a quantity several times, which takes about a millisecond. Of more quantities than this those that are
// shown are diagnosed, and others at equal distances.
enum { MOST_DIAGNOSED = 5000 };

static long elements_shown(const GmDraws *d, long rows);

// Which columns are diagnosed, and how many; the caller frees.
static bool *choose_diagnosed(const GmDraws *d, const GmModel *model, const GmOptions *o, long *n)
{
    bool *chosen = gm_alloc((size_t)d->n_summarised, sizeof *chosen);
    const bool all = d->n_summarised <= MOST_DIAGNOSED || o->summary_rows == LONG_MAX || o->summary_form != GM_SUMMARY_TEXT;
    const long shown = all ? LONG_MAX : elements_shown(d, o->summary_rows), apart = d->n_summarised / MOST_DIAGNOSED + 1;
    *n = 0;
    for (long k = 0, run = 0; k < d->n_summarised; k++) {
        run = k > 0 && d->column[k].field == d->column[k - 1].field ? run + 1 : 0;
        chosen[k] = !gm_draws_diagnostic(d, model, k) && (run < shown || run % apart == 0);
        *n += chosen[k];
    }
    return chosen;
}

enum { TOGETHER = 64 };  // columns that are read at a time: they lie side by side

// Mean and sd of columns that are not diagnosed, of which the rest is not known.
static void moments_of(const GmDraws *d, long first, long last, const bool *diagnosed, GmSummary *all)
{
    double mean[TOGETHER] = {0}, squares[TOGETHER] = {0};
    bool same[TOGETHER];
    const double n = (double)d->chains * (double)d->kept;
    for (int pass = 0; pass < 2; pass++)
        for (int c = 0; c < d->chains; c++)
            for (long i = 0; i < d->kept; i++) {
                const double *row = d->memory + ((size_t)c * (size_t)d->held + (size_t)i) * (size_t)d->n_columns;
                for (long k = first; k < last; k++) {
                    const double x = row[k], away = x - mean[k - first];
                    if (pass) squares[k - first] += away * away;
                    else mean[k - first] += x / n;
                    same[k - first] = (!pass && c == 0 && i == 0) || (same[k - first] && x == d->memory[k]);
                }
            }
    for (long k = first; k < last; k++) {
        if (diagnosed[k]) continue;
        const bool finite = isfinite(mean[k - first]) && isfinite(squares[k - first]);
        all[k] = (GmSummary){.mean = finite ? mean[k - first] : NAN,
                             .sd = !finite           ? NAN
                                   : same[k - first] ? 0
                                                     : sqrt(squares[k - first] / (n - 1)),
                             .q5 = NAN,
                             .q50 = NAN,
                             .q95 = NAN,
                             .mcse = NAN,
                             .ess_bulk = NAN,
                             .ess_tail = NAN,
                             .rhat = NAN};
    }
}

static GmSummary *summarise_all(const GmDraws *d, const GmOptions *o, const bool *diagnosed, long n_diagnosed, double *quantile,
                                int n_quantiles)
{
    GmSummary *all = gm_alloc((size_t)d->n_summarised, sizeof *all);
#pragma omp parallel for schedule(dynamic, 1)
    for (long first = 0; first < d->n_summarised; first += TOGETHER)
        if (n_diagnosed < d->n_summarised)
            moments_of(d, first, first + TOGETHER < d->n_summarised ? first + TOGETHER : d->n_summarised, diagnosed, all);
#pragma omp parallel
    {
        double *x = gm_alloc((size_t)d->chains * (size_t)d->kept, sizeof *x);
#pragma omp for schedule(dynamic, 1)
        for (long k = 0; k < d->n_summarised; k++) {
            if (!diagnosed[k]) continue;
            for (int c = 0; c < d->chains; c++)
                for (long i = 0; i < d->kept; i++)
                    x[c * d->kept + i] = d->memory[((size_t)c * (size_t)d->held + (size_t)i) * (size_t)d->n_columns + (size_t)k];
            all[k] = gm_summarise(x, d->chains, d->kept);
            quantiles_of(&all[k], o, x, d->chains * d->kept, quantile + k * n_quantiles);
        }
        free(x);
    }
    return all;
}

// The most elements per array such that the table has at most `rows` rows (but every array has one).
static long elements_shown(const GmDraws *d, long rows)
{
    if (d->n_summarised <= rows) return LONG_MAX;
    long best = 1;
    for (long most = 1; most <= rows; most++) {
        long total = 0, run = 0;
        for (long k = 0; k < d->n_summarised; k++) {
            run = k > 0 && d->column[k].field == d->column[k - 1].field ? run + 1 : 1;
            total += run <= most;
        }
        if (total > rows) break;
        best = most;
    }
    return best;
}

const char *const gm_summary_titles[GM_SUMMARY_CELLS] = {"mean", "MCSE", "sd", "5%", "50%", "95%", "ess_bulk", "ess_tail", "rhat"};
static const int cell_width[GM_SUMMARY_CELLS] = {10, 10, 10, 10, 10, 10, 8, 8, 6};

// Chains that stay where each of them is have an R-hat that rounding makes.
static const double MOST_RHAT = 1e4;

void gm_summary_cells(const GmSummary *s, char cell[GM_SUMMARY_CELLS][GM_CELL_ROOM])
{
    static const char *const format[GM_SUMMARY_CELLS] = {"%.4g", "%.2g", "%.4g", "%.4g", "%.4g", "%.4g", "%.0f", "%.0f", "%.3f"};
    const double number[GM_SUMMARY_CELLS] = {s->mean, s->mcse, s->sd, s->q5, s->q50, s->q95, s->ess_bulk, s->ess_tail, s->rhat};
    for (int k = 0; k < GM_SUMMARY_CELLS; k++) snprintf(cell[k], GM_CELL_ROOM, isnan(number[k]) ? "-" : format[k], number[k]);
    if (s->rhat >= MOST_RHAT) snprintf(cell[GM_SUMMARY_CELLS - 1], GM_CELL_ROOM, "%.0e", s->rhat);
}

// The columns of the table: those before the quantiles, these, and the rest.
enum { BEFORE = 3, AFTER = 6, QUANTILE_WIDTH = 10 };

static void print_titles(FILE *to, int width, const double *percent, int n)
{
    fprintf(to, "%-*s", width, "");
    for (int k = 0; k < BEFORE; k++) fprintf(to, "  %*s", cell_width[k], gm_summary_titles[k]);
    for (int i = 0; i < n; i++) {
        char title[40];
        snprintf(title, sizeof title, "%g%%", percent[i]);
        fprintf(to, "  %*s", QUANTILE_WIDTH, title);
    }
    for (int k = AFTER; k < GM_SUMMARY_CELLS; k++) fprintf(to, "  %*s", cell_width[k], gm_summary_titles[k]);
    fputc('\n', to);
}

static void print_row(FILE *to, int width, const char *label, const GmSummary *s, const double *quantile, int n)
{
    char cell[GM_SUMMARY_CELLS][GM_CELL_ROOM];
    gm_summary_cells(s, cell);
    fprintf(to, "%s%*s", label, width - gm_columns_of(label), "");
    for (int k = 0; k < BEFORE; k++) fprintf(to, "  %*s", cell_width[k], cell[k]);
    for (int i = 0; i < n; i++) {
        char number[GM_CELL_ROOM];
        snprintf(number, sizeof number, isnan(quantile[i]) ? "-" : "%.4g", quantile[i]);
        fprintf(to, "  %*s", QUANTILE_WIDTH, number);
    }
    for (int k = AFTER; k < GM_SUMMARY_CELLS; k++) fprintf(to, "  %*s", cell_width[k], cell[k]);
    fputc('\n', to);
}

// Whether no draw has a value: the element does not exist.
static bool always_missing(const GmDraws *d, long column)
{
    for (int c = 0; c < d->chains; c++)
        for (long i = 0; i < d->kept; i++)
            if (!isnan(d->memory[((size_t)c * (size_t)d->held + (size_t)i) * (size_t)d->n_columns + (size_t)column])) return false;
    return true;
}

static double number_at(const GmDraws *d, int chain, long draw, long column)
{
    return d->memory[((size_t)chain * (size_t)d->held + (size_t)draw) * (size_t)d->n_columns + (size_t)column];
}

static double energy_ratio(const GmDraws *d, int chain, long column)
{
    double *energy = gm_alloc((size_t)d->kept, sizeof *energy);
    for (long i = 0; i < d->kept; i++) energy[i] = number_at(d, chain, i, column);
    const double ratio = gm_energy_ratio(energy, d->kept);
    free(energy);
    return ratio;
}

static void advise_against_divergent(FILE *to, GmMovesBy by, bool chosen, bool between)
{
    if (between)
        fprintf(to, "Gibbs sweeps in between still reach these regions, so estimates are not necessarily biased: see R-hat and tail "
                    "effective sample sizes, or run with --method gibbs.\n");
    else
        fprintf(to, "Regions of high curvature are not explored, and estimates may be biased. %s, or another parameterisation.\n",
                by == GM_MOVES_HMC_OF_STEP ? "Give hmc a smaller step in the infer block"
                : chosen                   ? "Use --method gibbs or both, a smaller step size (--adapt-delta 0.99)"
                                           : "Use a smaller step size (--adapt-delta 0.99)");
}

// Divergent transitions of the update whose diagnostics begin at column k. A domain that they left is no fault of its step size, and the
// law of the draws is right there.
static void warn_of_divergent(FILE *to, const GmDraws *d, const GmModel *model, const GmRun *run, long k, long divergent, const char *of)
{
    const int field = d->column[k].field;
    const long all = d->chains * d->kept;
    const GmMovesBy by = run ? gm_moves_by(model, run, field, -1) : GM_MOVES_UNKNOWN;
    bool between = false;
    int line = 0;
    const char *chosen = gm_trials_of_moves(d->selected, field, &between);
    const long left = run ? gm_transitions_left(model, run, field, &line) / d->options->thin : 0;
    const long most = left < divergent ? left : divergent;
    fprintf(to, "Warning: %ld of %ld %s transitions (%.*g %%) of %s were divergent. ", divergent, all, by >= GM_MOVES_HMC ? "HMC" : "NUTS",
            gm_percent_digits(divergent, all), 100 * (double)divergent / (double)all, chosen ? chosen : of);
    if (most > 0) {
        if (most == divergent) fprintf(to, "They");
        else fprintf(to, "%ld of these", most);
        fprintf(to, " left the domain of something computed, as on line %d, beyond which the density is 0. That biases no estimate. ",
                line);
    }
    if (most > 0 && most == divergent)
        fprintf(to, "But the ends of the domain are reached slowly: see R-hat and tail effective sample sizes%s.\n",
                chosen ? ", or run with --method gibbs" : "");
    else advise_against_divergent(to, by, chosen != NULL, between);
}

// What NUTS and HMC report of their transitions.
static void print_move_warnings(FILE *to, const GmDraws *d, const GmModel *model, const GmRun *run)
{
    for (long k = 0; k < d->n_columns; k++) {
        if (!gm_draws_diagnostic(d, model, k) || d->column[k].element != 0) continue;
        const char *of = model->state[d->column[k].field].name + strlen("moves_");
        long divergent = 0, deepest = 0;
        const int most = d->options->max_treedepth ? d->options->max_treedepth : NUTS_DEPTH;
        int slow = 0;
        for (int c = 0; c < d->chains; c++) {
            for (long i = 0; i < d->kept; i++) {
                divergent += number_at(d, c, i, k + GM_HMC_DIVERGENT) > 0;
                deepest += number_at(d, c, i, k + GM_HMC_DEPTH) >= most;
            }
            slow += d->kept >= 100 && energy_ratio(d, c, k + GM_HMC_ENERGY) < 0.3;
        }
        const long all = d->chains * d->kept;
        bool between = false;
        const char *chosen = gm_trials_of_moves(d->selected, d->column[k].field, &between);
        if (divergent > 0) warn_of_divergent(to, d, model, run, k, divergent, of);
        if (deepest > 0)
            fprintf(to,
                    "Warning: %ld of %ld NUTS transitions (%.*g %%) of %s reached the maximum tree depth: they are slow, not wrong; "
                    "rescale the unknowns%s.\n",
                    deepest, all, gm_percent_digits(deepest, all), 100 * (double)deepest / (double)all, chosen ? chosen : of,
                    most < NUTS_DEPTH ? ", or allow longer trajectories (--max-treedepth)" : "");
        if (slow > 0)
            fprintf(to,
                    "Warning: the energy of %d of %d chains hardly changes from draw to draw (E-BFMI below 0.3): tails may be missed; "
                    "another parameterisation may help.\n",
                    slow, d->chains);
    }
}

// Unknowns that never change, or whole numbers of which some elements do not: R-hat cannot show whether that is their law.
static void print_still_warnings(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m, const GmSummary *all)
{
    static const char why[] =
        "That is right where data and bounds leave no other likely value. Otherwise no update can change it alone, as with counts "
        "whose sum is known, and the draws are not from the posterior: sum such unknowns out, or write the model in free ones.";
    static const char some[] =
        "Warning: %s and %ld other element%s of %s have the same value in all draws of all chains, each its own. %s\n";
    for (long k = 0, first = 0; k < d->n_summarised; k++) {
        const int field = d->column[k].field;
        if (k > 0 && field != d->column[k - 1].field) first = k;
        if (field < 0 || gm_draws_diagnostic(d, model, k) || (k + 1 < d->n_summarised && d->column[k + 1].field == field)) continue;
        const GmField *of = &model->state[field];
        long still = 0, which = -1;
        for (long i = k; i >= first; i--)
            if (all[i].sd == 0) {
                still++;
                which = i;
            }
        if ((of->role != GM_PARAMETER && of->role != GM_LATENT) || still == 0) continue;
        if (still == k + 1 - first) fprintf(to, "Warning: %s has the same value in all draws of all chains. %s\n", of->name, why);
        else if (of->type == GM_INT && !of->partial) {  // reals that are 0 or 1 by their constraint are no news
            char *label = gm_column_label(d, model, m, which, '[');
            if (still == 1) fprintf(to, "Warning: %s has the same value in all draws of all chains. %s\n", label, why);
            else fprintf(to, some, label, still - 1, still > 2 ? "s" : "", of->name, why);
            free(label);
        }
    }
}

// Draws next to the greatest number there is (1.8e308): a law that comes so far goes on beyond it, and of what lies there no draw can be.
static void print_reach_warnings(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m)
{
    for (long k = 0, far; k < d->n_summarised; k++) {
        const int field = d->column[k].field;
        if (field < 0 || gm_draws_diagnostic(d, model, k)) continue;
        const GmField *of = &model->state[field];
        if ((of->role != GM_PARAMETER && of->role != GM_LATENT) || of->type == GM_INT) continue;
        far = 0;
        for (int c = 0; c < d->chains; c++)
            for (long i = 0; i < d->kept; i++) far += fabs(number_at(d, c, i, k)) >= GM_MOST;
        if (far == 0) continue;
        char *label = gm_column_label(d, model, m, k, '[');
        fprintf(
            to,
            "Warning: %ld of %ld draws of %s are beyond 1e300. Numbers end at 1.8e308: the part of its distribution beyond is missing from "
            "all estimates. "
            "Draw its logarithm, or narrow the prior of its scale or shape.\n",
            far, d->chains * d->kept, label);
        free(label);
        while (k + 1 < d->n_summarised && d->column[k + 1].field == field) k++;  // one message for all elements
    }
}

// A matrix next to singular ones: what its law has beyond no number stands for.
static bool at_an_end(GmConstraint kind, const double *A, long n, double *L)
{
    if (kind != GM_CHOLESKY_CORR) return gm_nearly_singular(A, n, L);
    for (long i = 0; i < n; i++)
        if (A[i * n + i] < 1e-300) return true;
    return false;
}

// Columns of an array run by its first subscript first. At most so many draws of a chain are looked at.
static void print_singular_warnings(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m)
{
    enum { LOOKED_AT = 1000 };
    for (long first = 0, last; first < d->n_summarised; first = last) {
        const int field = d->column[first].field;
        for (last = first + 1; last < d->n_summarised && d->column[last].field == field;) last++;
        if (field < 0 || gm_draws_diagnostic(d, model, first)) continue;
        const GmConstraint kind = model->state[field].constraint;
        const GmShape *s = &m->shape[field];
        if ((kind != GM_COVARIANCE && kind != GM_CORRELATION && kind != GM_CHOLESKY_CORR) || last - first != gm_shape_size(s)) continue;
        const long n = s->dim[s->rank - 1], batches = n > 0 ? (last - first) / (n * n) : 0, step = d->kept / LOOKED_AT + 1;
        double *A = gm_alloc((size_t)(2 * n * n), sizeof *A);
        long looked = 0, ends = 0;
        for (int c = 0; c < d->chains; c++)
            for (long i = 0; i < d->kept; i += step, looked++) {
                bool end = false;
                for (long b = 0; b < batches && !end; b++) {
                    for (long k = 0; k < n * n; k++) A[k] = number_at(d, c, i, first + b + batches * (k / n + k % n * n));
                    end = at_an_end(kind, A, n, A + n * n);
                }
                ends += end;
            }
        free(A);
        if (ends > 0)
            fprintf(to,
                    "Warning: %ld of %ld draws of %s are singular matrices to within rounding. The part of its distribution that is "
                    "nearer to singular is missing from all estimates. Narrow the prior of its shape or degrees of freedom.\n",
                    ends, looked, model->state[field].name);
    }
}

// The column of an unknown; -1: it is not kept.
static long column_of(const GmDraws *d, GmCoordinate of)
{
    for (long k = 0; k < d->n_summarised; k++)
        if (d->column[k].field == of.field && d->column[k].element == of.element) return k;
    return -1;
}

// Whether some outcomes are separated so that unknowns go as far as their priors let them.
static bool find_separation(const GmDraws *d, const GmModel *model, const GmMemory *m, const GmSummary *all, const GmRun *run, bool unmixed,
                            GmSeparation *of)
{
    static const double CERTAIN = -1e-4, NEXT_TO_1 = -0.01;
    if (gm_find_separation(model, m, d->data, run, CERTAIN, of)) return !of->bounded;
    if (!unmixed || !gm_find_separation(model, m, d->data, run, NEXT_TO_1, of) || of->bounded) return false;
    bool on_their_way = false;  // the chains
    for (int k = 0; k < of->n_unknowns && k < GM_NAMED_UNKNOWNS; k++) {
        const long column = column_of(d, of->unknown[k]);
        on_their_way |= column >= 0 && all[column].rhat > 1.01;
    }
    return on_their_way;
}

static void print_separation(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m, const GmSeparation *of)
{
    char *names = gm_copy_text("");
    for (int k = 0; k < of->n_unknowns && k < GM_NAMED_UNKNOWNS; k++) {
        const GmCoordinate *c = &of->unknown[k];
        char *name = gm_labelled_name(&d->data->levels, &model->state[c->field], &m->shape[c->field], c->element);
        char *more = gm_format("%s%s%s%s", names, k ? ", " : "", of->upwards[k] ? "" : "-", name);
        free(name);
        free(names);
        names = more;
    }
    const int left = of->n_unknowns - GM_NAMED_UNKNOWNS;
    char *others = left > 0 ? gm_format(" and %d other%s", left, left > 1 ? "s" : "") : gm_copy_text("");
    fprintf(
        to,
        "Warning: the model separates outcomes: as %s%s grow%s, %ld of %ld observed values become certain (the first: %s), and none gets "
        "less likely. With a flat prior the posterior is improper, and with a very vague one draws go as far as it lets them; a longer "
        "run does not help. Proper priors of the coefficients do, such as normal(0, 2.5).\n",
        names, others, of->n_unknowns > 1 ? "" : "s", of->values, of->all, of->first);
    free(names);
    free(others);
}

// Effective draws that are too few, of `short_of` quantities, the worst of which has this label, which is given up, and summary.
static void print_few(FILE *to, double bound, double samples, char *label, const GmSummary *worst, long short_of, long diagnosed,
                      const char *in_order)
{
    const double ess = worst->ess_bulk < worst->ess_tail ? worst->ess_bulk : worst->ess_tail;
    fprintf(to,
            "Warning: the effective sample size is below %.0f (100 per chain) for %ld of %ld quantities (worst: %s, %.0f%s): means and "
            "quantiles are not accurate yet. Run longer (--samples %.0f).\n",
            bound, short_of, diagnosed, label, ess, in_order, ceil(bound / ess * 1.2) * samples);
    free(label);
}

// Quantities without a mean. Where unknowns have one, only what is computed of them has not: first is one of these.
static void print_not_finite(FILE *to, long broken, long quantities, char *first)
{
    fprintf(to, "Warning: %ld of %ld quantities have draws that are not finite", broken, quantities);
    if (first)
        fprintf(to,
                " (the first: %s). All others are finite: what is computed of unknowns left its domain, as the square root or the log of "
                "a negative number does.\n",
                first);
    else fprintf(to, "; the posterior may be improper, or a scale of the model far too large.\n");
    free(first);
}

// What the numbers mean for the user, in words. Bounds as V recommends: R-hat below 1.01, both effective sizes above 100 per chain. true: a
// quantity is beyond one of them. ordered: those whose diagnostics are those of components in order.
static bool print_warnings(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m, const GmOptions *o, const GmSummary *all,
                           long diagnosed, const GmRun *run, const bool *ordered)
{
    static const char in_order[] = " with components in order";
    const double rhat_bound = 1.01, ess_bound = 100.0 * d->chains;
    long unmixed = 0, short_of = 0, worst_rhat = 0, worst_ess = 0, broken = 0, computed = 0, first = -1;
    long quantities = 0;
    while (worst_ess < d->n_summarised - 1 && gm_draws_diagnostic(d, model, worst_ess)) worst_rhat = ++worst_ess;
    for (long k = 0; k < d->n_summarised; k++) {
        if (gm_draws_diagnostic(d, model, k)) continue;
        quantities++;
        const GmSummary *s = &all[k];
        const double ess = s->ess_bulk < s->ess_tail ? s->ess_bulk : s->ess_tail;
        const double least = all[worst_ess].ess_bulk < all[worst_ess].ess_tail ? all[worst_ess].ess_bulk : all[worst_ess].ess_tail;
        const GmField *of = d->column[k].field >= 0 ? &model->state[d->column[k].field] : NULL;
        const bool no_mean = isnan(s->mean) && !(of && of->partial && always_missing(d, k));
        broken += no_mean;
        computed += no_mean && of && (of->role == GM_DERIVED || of->role == GM_PREDICTED);
        if (no_mean && first < 0) first = k;
        unmixed += s->rhat > rhat_bound;
        short_of += ess < ess_bound;
        if (s->rhat > all[worst_rhat].rhat || isnan(all[worst_rhat].rhat)) worst_rhat = k;
        if (ess < least || isnan(least)) worst_ess = k;
    }
    if (broken > 0) print_not_finite(to, broken, quantities, computed == broken ? gm_column_label(d, model, m, first, '[') : NULL);
    if (d->kept < 8) {
        fprintf(to, "Fewer than 8 draws per chain: no diagnostics.\n");
        return false;
    }
    if (diagnosed < quantities)
        fprintf(to, "R-hat and effective sample sizes are those of %ld of %ld quantities: --summary all has all of them.\n", diagnosed,
                quantities);
    GmSeparation of = {0};
    const bool found = run && !run->device && find_separation(d, model, m, all, run, unmixed > 0, &of);
    const char *separated = unmixed > 0 && run && !run->device && !of.bounded ? gm_separated(model, m, d->data, run) : NULL;
    const bool apart = separated || found;
    char cell[GM_SUMMARY_CELLS][GM_CELL_ROOM];
    gm_summary_cells(&all[worst_rhat], cell);
    if (separated) {
        char *label = gm_column_label(d, model, m, worst_rhat, '[');
        fprintf(
            to,
            "Warning: every observed value of %s has a probability above 0.99 at the end of each chain: the model separates the outcomes, "
            "and with flat priors unknowns go to infinity. R-hat is above 1.01 for %ld of %ld quantities (worst: %s, %s), and a longer "
            "run does not help. Proper priors of the coefficients do, such as normal(0, 2.5).\n",
            separated, unmixed, diagnosed, label, cell[GM_SUMMARY_CELLS - 1]);
        free(label);
    } else if (found) {
        print_separation(to, d, model, m, &of);
    } else if (unmixed > 0) {
        char *label = gm_column_label(d, model, m, worst_rhat, '[');
        fprintf(to,
                "Warning: R-hat is above 1.01 for %ld of %ld quantities (worst: %s, %s%s): the chains do not agree yet. Run longer "
                "(--warmup %ld --samples %ld); if it stays, the posterior may have several modes%s or the model may not identify %s.\n",
                unmixed, diagnosed, label, cell[GM_SUMMARY_CELLS - 1], ordered[worst_rhat] ? in_order : "",
                4 * (o->warmup > 500 ? o->warmup : 500), 4 * o->samples,
                of.of_categories && !of.bounded ? ", outcomes may be separated," : "", label);
        free(label);
    }
    if (short_of > 0 && !apart)
        print_few(to, ess_bound, (double)o->samples, gm_column_label(d, model, m, worst_ess, '['), &all[worst_ess], short_of, diagnosed,
                  ordered[worst_ess] ? in_order : "");
    print_still_warnings(to, d, model, m, all);
    print_reach_warnings(to, d, model, m);
    print_singular_warnings(to, d, model, m);
    return unmixed > 0 || short_of > 0;
}

static void print_table(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m, const GmOptions *o, const GmSummary *all,
                        const double *quantile, const double *percent, int n)
{
    const long shown = elements_shown(d, o->summary_rows);
    int width = 9;
    for (int pass = 0; pass < 2; pass++) {  // first the width of the labels, then the rows
        long run = 0;
        if (pass == 1) {
            fprintf(to, "%d chain%s, %ld draws each\n\n", d->chains, d->chains > 1 ? "s" : "", d->kept);
            print_titles(to, width, percent, n);
        }
        for (long k = 0; k < d->n_summarised; k++) {
            if (gm_draws_diagnostic(d, model, k)) continue;
            const bool same = k > 0 && d->column[k].field == d->column[k - 1].field;
            run = same ? run + 1 : 1;
            if (run <= shown) {
                char *label = gm_column_label(d, model, m, k, '[');
                if (pass == 0 && gm_columns_of(label) > width) width = gm_columns_of(label);
                if (pass == 1) print_row(to, width, label, &all[k], quantile + k * n, n);
                free(label);
            }
            const bool last = k + 1 == d->n_summarised || d->column[k + 1].field != d->column[k].field;
            if (pass == 1 && last && run > shown)
                fprintf(to, "%-*s  %ld more of %s (--summary all)\n", width, "...", run - shown, model->state[d->column[k].field].name);
        }
    }
    fputc('\n', to);
}

// Prints the table, as text or as data. The summaries of all columns are the caller's to free.
static GmSummary *put_table(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m, const GmOptions *o, long *n_diagnosed)
{
    double percent[GM_MOST_QUANTILES];
    const int n = percentages(o, percent);
    double *quantile = gm_alloc((size_t)d->n_summarised * (size_t)n, sizeof *quantile);
    bool *diagnosed = choose_diagnosed(d, model, o, n_diagnosed);
    GmSummary *all = summarise_all(d, o, diagnosed, *n_diagnosed, quantile, n);
    free(diagnosed);
    if (o->summary_form == GM_SUMMARY_TEXT) print_table(to, d, model, m, o, all, quantile, percent, n);
    else gm_summary_data(to, d, model, m, o->summary_form, all, quantile, percent, n);
    free(quantile);
    return all;
}

void gm_summary_table(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m, const GmOptions *o)
{
    long n_diagnosed;
    free(put_table(to, d, model, m, o, &n_diagnosed));
}

bool gm_summary_print(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m, const GmOptions *o, const GmRun *run)
{
    if (d->n_summarised == 0) return false;
    long n_diagnosed;
    GmSummary *all = put_table(to, d, model, m, o, &n_diagnosed);
    if (o->summary_form != GM_SUMMARY_TEXT) to = stderr;
    GmSummary *judged = gm_alloc((size_t)d->n_summarised, sizeof *judged);
    bool *ordered = gm_alloc((size_t)d->n_summarised, sizeof *ordered);
    memcpy(judged, all, (size_t)d->n_summarised * sizeof *judged);
    if (run) gm_labels_judge(d, model, m, all, judged, ordered);
    const bool slow = print_warnings(to, d, model, m, o, judged, n_diagnosed, run, ordered);
    print_move_warnings(to, d, model, run);
    if (run) gm_labels_note(to, model, m, d, ordered, slow);
    free(ordered);
    free(judged);
    free(all);
    return slow;
}
