// warnings.c -- what is wrong with the draws in words, the likeliest cause first, and what to do about it.
//
//   values that are no numbers -> labels that changed -> one chain elsewhere -> divergences -> energy -> R-hat -> ... -> effective sizes
//
// What stands earlier is often the reason for what stands later: a chain in another mode has a bad R-hat and few effective draws, too.
// Bounds: R-hat 1.01 and 100 effective draws a chain (Vehtari et al. 2021), E-BFMI 0.3 (Betancourt 2016).
#include "../fields.h"
#include "../messages.h"
#include "report.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char gm_no_warnings[] = "No warnings: the chains agree, and effective sample sizes are large enough for means and tails.";

enum { NAMED = 5 };

typedef struct Warnings {
    FILE *to;
    const GmStored *s;
    const GmFindings *f;
    int n;
    const char *first;
    GmWarningsForm form;
    bool *accounted;  // by column: what is wrong with it is named, with its cause
    bool explained;   // R-hats have a reason that was named
} Warnings;

// ---- an item ----

static void begin(Warnings *w, bool serious, const char *id, const char *title)
{
    if (w->n++ == 0) w->first = title;
    if (w->form == GM_WARNINGS_LINES) fputs("Warning: ", w->to);
    if (w->form == GM_WARNINGS_LIST) fprintf(w->to, "\n%d. %s%s\n", w->n, title, serious ? " (serious)" : "");
    if (w->form != GM_WARNINGS_PAGE) return;
    fprintf(w->to, "<li id=\"warning-%s\"%s>\n<h3><span class=\"kind\">%s</span>", id, serious ? " class=\"bad\"" : "",
            serious ? "Serious" : "Caution");
    gm_html_text(w->to, title);
    fputs("</h3>\n<div class=\"said\">\n", w->to);
}

static void end(Warnings *w)
{
    if (w->form == GM_WARNINGS_PAGE) fputs("</div>\n</li>\n", w->to);
    if (w->form == GM_WARNINGS_LINES) fputc('\n', w->to);
}

// A link within the page.
static void refer(Warnings *w, const char *to, const char *text)
{
    if (w->form == GM_WARNINGS_PAGE) fprintf(w->to, "<p><a href=\"#%s\">%s</a></p>\n", to, text);
}

static void say(Warnings *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(Warnings *w, const char *format, ...)
{
    char text[2000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (w->form != GM_WARNINGS_PAGE) {
        fprintf(w->to, w->form == GM_WARNINGS_LINES ? "%s " : "   %s\n", text);
        return;
    }
    fputs("<p>", w->to);
    gm_html_text(w->to, text);
    fputs("</p>\n", w->to);
}

// What to do, a list beside what was said, or of a line the first of it; the last is NULL.
static void advise(Warnings *w, const char *const *advice)
{
    if (w->form == GM_WARNINGS_LINES) fputs(*advice, w->to);
    for (; w->form == GM_WARNINGS_LIST && *advice; advice++) fprintf(w->to, "   - %s\n", *advice);
    if (w->form != GM_WARNINGS_PAGE) return;
    fputs("</div>\n<div class=\"todo\">\n<p>What to do</p>\n<ul>\n", w->to);
    for (; *advice; advice++) {
        fputs("<li>", w->to);
        gm_html_text(w->to, *advice);
        fputs("</li>\n", w->to);
    }
    fputs("</ul>\n", w->to);
}

#define ADVISE(w, ...) advise(w, (const char *const[]){__VA_ARGS__, NULL})

static const char *plural(long n) { return n == 1 ? "" : "s"; }

// "mu, theta[3] and 4 more". The caller frees.
static char *names_of(const GmStored *s, const long *column, long n)
{
    char *text = gm_copy_text("");
    for (long k = 0; k < n && k < NAMED; k++) {
        char *more = gm_format("%s%s%s", text, k == 0 ? "" : k + 1 == n ? " and " : ", ", s->column[column[k]].label);
        free(text);
        text = more;
    }
    if (n <= NAMED) return text;
    char *more = gm_format("%s and %ld more", text, n - NAMED);
    free(text);
    return more;
}

static char *chains_of(const GmStored *s, const bool *in)
{
    char *text = gm_copy_text("");
    int n = 0, k = 0;
    for (int c = 0; c < s->chains; c++) n += in[c];
    for (int c = 0; c < s->chains; c++) {
        if (!in[c]) continue;
        char *more = gm_format("%s%s%ld", text, k == 0 ? "" : k + 1 == n ? " and " : ", ", s->id[c]);
        k++;
        free(text);
        text = more;
    }
    char *out = gm_format("chain%s %s", plural(n), text);
    free(text);
    return out;
}

static double chain_mean(const GmStored *s, long column, int chain)
{
    const double *x = gm_stored_chain(s, column, chain);
    double sum = 0;
    for (long i = 0; i < s->draws; i++) sum += x[i];
    return sum / (double)s->draws;
}

static double chain_sd(const GmStored *s, long column, int chain)
{
    const double *x = gm_stored_chain(s, column, chain), mean = chain_mean(s, column, chain);
    double sum = 0;
    for (long i = 0; i < s->draws; i++) sum += (x[i] - mean) * (x[i] - mean);
    return s->draws > 1 ? sqrt(sum / (double)(s->draws - 1)) : 0;
}

static bool is_unknown_array(const GmStored *s, const GmStoredArray *a)
{
    if (a->kind != STORED_QUANTITY || strcmp(a->name, "lp__") == 0) return false;
    return !s->model || (a->field >= 0 && (s->model->state[a->field].role == GM_PARAMETER || s->model->state[a->field].role == GM_LATENT));
}

// ---- values that are no numbers ----

static void not_finite(Warnings *w)
{
    long n = 0, *which = gm_alloc((size_t)w->f->n_quantities, sizeof *which);
    for (long k = 0; k < w->f->n_quantities; k++)
        if (isinf(gm_badness(&w->f->summary[w->f->worst[k]], w->s->chains))) {
            const GmStoredArray *a = &w->s->array[w->s->column[w->f->worst[k]].array];
            const double *x = gm_stored_column(w->s, w->f->worst[k]);
            // gmc writes NaN where no element is; of another model which these are is not known
            bool exists = w->s->model ? !(a->field >= 0 && w->s->model->state[a->field].partial) : !w->s->by_gmc;
            for (long i = 0; i < w->s->chains * w->s->draws && !exists; i++) exists = !isnan(x[i]);
            if (exists) which[n++] = w->f->worst[k];
        }
    if (n > 0) {
        char *names = names_of(w->s, which, n);
        begin(w, true, "not-finite", "Draws that are not finite");
        say(w, "%ld of %ld quantities have draws that are infinite or no number: %s. They have no mean, and no diagnostics.", n,
            w->f->n_quantities, names);
        ADVISE(w, "See whether the posterior is proper: flat priors and perfect separation leave it without an end.",
               "See whether a scale of the data or of a prior is far too large.");
        end(w);
        free(names);
    }
    free(which);
}

// ---- labels ----

// An array of a few elements whose order statistics agree between chains although the elements do not.
static const GmStoredArray *switched(const Warnings *w, double *rhat, double *sorted)
{
    enum { MOST = 50 };
    for (int a = 0; a < w->s->n_arrays; a++) {
        const GmStoredArray *of = &w->s->array[a];
        if (of->rank != 1 || of->n < 2 || of->n > MOST || !is_unknown_array(w->s, of)) continue;
        *rhat = 0;
        bool finite = true;
        for (long k = 0; k < of->n; k++) {
            finite &= !isnan(w->f->summary[of->first + k].rhat);
            *rhat = fmax(*rhat, w->f->summary[of->first + k].rhat);
        }
        if (!finite || *rhat < 1.05) continue;
        *sorted = gm_sorted_rhat(w->s, of);
        if (*sorted - 1 < 0.25 * (*rhat - 1) && *sorted < 1.05) return of;
    }
    return NULL;
}

static void labels(Warnings *w)
{
    double rhat, sorted;
    const GmStoredArray *of = switched(w, &rhat, &sorted);
    const GmLabels *known = NULL;
    for (const GmLabels *l = w->s->model ? w->s->model->labels : NULL; l && l->by && !known; l++)
        for (const GmLabelled *v = l->fields; v->field && !l->identified && !known; v++)
            if (of ? of->field == v->field - 1 : v->dims != 0) known = l;
    if (!of) return;
    const char *by = known ? w->s->model->state[known->by - 1].name : NULL;
    begin(w, true, "labels", "Label switching");
    say(w,
        "The elements of %s disagree (R-hat %.2f), but in ascending order they agree (%.3f): the chains found the same components and "
        "number them differently.",
        of->name, rhat, sorted);
    say(w, "Means, intervals, R-hat and effective sizes of single elements say nothing here. The fit itself may well be right.");
    if (by) {
        char *relabel = gm_format("Store the allocations (--params all) and permute the draws: relabel NAME --by %s.", by);
        ADVISE(w, relabel, "Or report what does not depend on labels: predictions, or which points share a component.");
        free(relabel);
    } else
        ADVISE(w, "Permute the draws so that labels agree, or order the components in the model.",
               "Or report what does not depend on labels: predictions, or which points share a component.");
    end(w);
    w->explained = true;
    gm_agree_in_order(w->s, of, w->f->summary, w->accounted);
}

// ---- unknowns that run away ----

static double median_size(const double *x, long n)
{
    double *size = gm_alloc((size_t)n, sizeof *size);
    for (long i = 0; i < n; i++) size[i] = fabs(x[i]);
    qsort(size, (size_t)n, sizeof *size, gm_ascending);
    const double median = gm_quantile(size, n, 0.5);
    free(size);
    return median;
}

// Whether the draws of all chains go further and further from 0: medians of their sizes rise over the quarters of each, and hardly more
// slowly at its end. size: the average median of the first quarters, and of the last ones.
static bool keeps_growing(const GmStored *s, long column, double size[2])
{
    const long quarter = s->draws / 4;
    size[0] = size[1] = 0;
    for (int c = 0; c < s->chains; c++) {
        double median[4];
        for (int q = 0; q < 4; q++) median[q] = median_size(gm_stored_chain(s, column, c) + q * quarter, quarter);
        if (!(median[0] > 0 && median[3] > 2 * median[0] && median[3] > 1.2 * median[2] && median[2] > median[1] && median[1] > median[0]))
            return false;
        size[0] += median[0] / s->chains;
        size[1] += median[3] / s->chains;
    }
    return true;
}

// Whether chains are at sizes that are large, and orders of magnitude apart: each has gone as far as warm-up took it. size: the least
// median of a chain, and the greatest.
static bool orders_apart(const GmStored *s, long column, double size[2])
{
    const double large = 1e3, apart = 1e2;
    size[0] = INFINITY;
    size[1] = 0;
    for (int c = 0; c < s->chains; c++) {
        const double median = median_size(gm_stored_chain(s, column, c), s->draws);
        size[0] = fmin(size[0], median);
        size[1] = fmax(size[1], median);
    }
    return size[0] > large && size[1] > apart * size[0];
}

// Whether log-likelihoods in the files are next to 0, and never above, nearly all of them in the last quarter of the chains: each value was
// certain.
static bool is_certain(const GmStored *s)
{
    static const double NEXT_TO_0 = -0.01, NEARLY_ALL = 0.95;
    long next = 0, all = 0;
    for (long c = 0; c < s->n_columns; c++) {
        if (gm_stored_kind(s, c) != STORED_LOG_LIK) continue;
        for (int chain = 0; chain < s->chains; chain++)
            for (long i = s->draws - s->draws / 4; i < s->draws; i++) {
                const double x = gm_stored_chain(s, c, chain)[i];
                if (x > 0) return false;
                next += x > NEXT_TO_0;
                all += !isnan(x);  // of a missing value it is
            }
    }
    return all > 0 && (double)next >= NEARLY_ALL * (double)all;
}

static void runs_away(Warnings *w)
{
    enum { LEAST_DRAWS = 100 };
    const GmStored *s = w->s;
    long n = 0, *which = gm_alloc((size_t)w->f->n_quantities, sizeof *which);
    double size[2] = {0, 0}, one[2];
    bool growing = false;
    const bool certain = is_certain(s);
    for (long k = 0; k < w->f->n_quantities && s->draws >= LEAST_DRAWS; k++) {
        const long c = w->f->worst[k];
        if (!is_unknown_array(s, &s->array[s->column[c].array]) || !(w->f->summary[c].rhat > 1.05)) continue;
        const bool grows = keeps_growing(s, c, one);
        if (!grows && !orders_apart(s, c, one) && !certain) continue;
        if (n == 0) {
            memcpy(size, one, sizeof size);
            growing = grows;
        }
        w->accounted[c] = true;
        which[n++] = c;
    }
    for (long k = 0; k < w->f->n_quantities && n > 0 && certain; k++) w->accounted[w->f->worst[k]] = true;  // lp__ and definitions follow
    if (n > 0) {
        char *names = names_of(s, which, n);
        begin(w, true, "infinite", "Draws that go to infinity");
        if (certain)
            say(w, "Every observed value has a probability above 0.99: the model separates the outcomes, and %s have no end.", names);
        else
            say(w,
                growing
                    ? "All chains go further and further from 0 in %s: sizes of %s are about %.3g in the first quarter of the draws, and "
                      "%.3g in "
                      "the last."
                    : "Draws of %s are as far from 0 as each chain has come: sizes of %s are about %.3g in one, and %.3g in another.",
                names, s->column[which[0]].label, size[0], size[1]);
        say(w, "The posterior is probably improper. A longer run does not help.");
        ADVISE(w,
               "Give the coefficients proper priors, such as normal(0, 2.5): with flat ones, predictors that separate the outcomes of a "
               "logistic or "
               "probit regression leave no end.",
               "Or leave out what the data do not identify.");
        end(w);
        free(names);
        w->explained = true;
    }
    free(which);
}

// ---- one chain elsewhere ----

// Fills `of` with the draws of a column but for those of a chain.
static void without(const GmStored *s, long column, int chain, double *of)
{
    for (int c = 0, k = 0; c < s->chains; c++)
        if (c != chain) memcpy(of + (k++) * s->draws, gm_stored_chain(s, column, c), (size_t)s->draws * sizeof *of);
}

// The chain without which the others agree, or -1.
static int odd_chain(const Warnings *w)
{
    enum { LOOKED_AT = 20, MOST_CHAINS = 64 };
    const GmStored *s = w->s;
    const double all = w->f->n_quantities ? w->f->summary[w->f->worst[0]].rhat : NAN;
    double *left = gm_alloc((size_t)s->chains * (size_t)s->draws, sizeof *left), best = INFINITY, worst_rhat = 1;
    int odd = -1;
    for (long k = 0; k < w->f->n_quantities && k < LOOKED_AT; k++) worst_rhat = fmax(worst_rhat, w->f->summary[w->f->worst[k]].rhat);
    (void)all;
    for (int c = 0; c < s->chains && s->chains >= 3 && s->chains <= MOST_CHAINS && worst_rhat > 1.05; c++) {
        double most = 1;
        for (long k = 0; k < w->f->n_quantities && k < LOOKED_AT; k++) {
            if (!(w->f->summary[w->f->worst[k]].rhat > 1.02)) continue;
            without(s, w->f->worst[k], c, left);
            most = fmax(most, gm_summarise(left, s->chains - 1, s->draws).rhat);
        }
        if (most < best) {
            best = most;
            odd = c;
        }
    }
    free(left);
    return best - 1 < 0.25 * (worst_rhat - 1) && best < 1.1 ? odd : -1;
}

// Whether no quantity of a chain changes, of those that change in others.
static bool never_moves(const Warnings *w, int chain)
{
    enum { LOOKED_AT = 200 };
    long moving = 0;
    for (long k = 0; k < w->f->n_quantities && k < LOOKED_AT; k++) {
        if (!(w->f->summary[w->f->worst[k]].sd > 0)) continue;
        if (chain_sd(w->s, w->f->worst[k], chain) > 0) return false;
        moving++;
    }
    return moving > 0;
}

static void stuck(Warnings *w)
{
    const GmStored *s = w->s;
    bool *still = gm_alloc((size_t)s->chains, sizeof *still);
    int n_still = 0;
    for (int c = 0; c < s->chains && s->draws > 1; c++) n_still += still[c] = never_moves(w, c);
    if (n_still > 0) {
        char *which = chains_of(s, still);
        begin(w, true, "stuck", n_still > 1 ? "Chains that never change" : "A chain that never changes");
        say(w, "All draws of %s are the same. It has not left the place where it started, and its draws are none of the posterior.", which);
        ADVISE(w, "Start elsewhere: another --seed, a smaller radius of --init, or values near the data by --init FILE.",
               "See whether the density is 0 nearly everywhere: hard bounds, or data that single values of the unknowns allow.");
        end(w);
        free(which);
        w->explained = true;
    }
    free(still);
    const int odd = w->explained ? -1 : odd_chain(w);
    if (odd < 0) return;
    const long column = w->f->worst[0];
    long lp = -1;
    for (long c = 0; c < s->n_columns; c++)
        if (strcmp(s->column[c].label, "lp__") == 0) lp = c;
    double others = 0, lp_others = 0, lp_sd = 0;
    for (int c = 0; c < s->chains; c++) {
        if (c == odd) continue;
        others += chain_mean(s, column, c) / (s->chains - 1);
        if (lp >= 0) lp_others += chain_mean(s, lp, c) / (s->chains - 1);
        if (lp >= 0) lp_sd += chain_sd(s, lp, c) / (s->chains - 1);
    }
    begin(w, true, "stuck", "One chain is somewhere else");
    say(w, "Without chain %ld the others agree. Its mean of %s is %.4g, and theirs is %.4g.", s->id[odd], s->column[column].label,
        chain_mean(s, column, odd), others);
    const double lp_here = lp >= 0 ? chain_mean(s, lp, odd) : 0;
    if (lp >= 0 && lp_here < lp_others - 3 * lp_sd)
        say(w, "Its log density is lower by %.3g: it is probably stuck in a minor mode.", lp_others - lp_here);
    else if (lp >= 0) say(w, "Its log density is not lower: the posterior may have several modes, and the others have missed one.");
    ADVISE(w, "Run more chains, and longer warm-up: how many of them end there says how much that mode counts.",
           "Give starts that are good for all (--init FILE, --init map), or a prior that leaves the place out if it is absurd.",
           "Do not leave the chain out unless you know why it is where it is.");
    end(w);
    w->explained = true;
}

// ---- NUTS ----

static bool has_divergent(const GmStored *s, int m)
{
    const long c = s->moves[m].column[GM_HMC_DIVERGENT];
    for (long i = 0; c >= 0 && i < s->chains * s->draws; i++)
        if (gm_stored_column(s, c)[i] > 0) return true;
    return false;
}

// Whether some of what had divergent transitions may be drawn by Gibbs updates; files may not say it.
static bool could_be_gibbs(const GmStored *s)
{
    for (int m = 0; m < s->n_moves; m++)
        if ((s->moves[m].chosen || s->moves[m].by == GM_MOVES_UNKNOWN) && has_divergent(s, m)) return true;
    return false;
}

static const char *smaller_step(const GmStored *s)
{
    bool given = false, adapted = false;
    for (int m = 0; m < s->n_moves; m++)
        if (has_divergent(s, m)) *(s->moves[m].by == GM_MOVES_HMC_OF_STEP ? &given : &adapted) = true;
    return given && adapted ? "Ask for a smaller step size: --adapt-delta 0.99, or a smaller step of hmc in the infer block."
           : given          ? "Give hmc a smaller step in the infer block."
                            : "Ask for a smaller step size: --adapt-delta 0.99.";
}

static void divergences(Warnings *w)
{
    const GmStored *s = w->s;
    const GmFindings *f = w->f;
    const long all = s->chains * s->draws;
    if (f->divergent == 0) return;
    begin(w, true, "divergent", "Divergent transitions");
    say(w,
        "%ld of %ld transitions (%.*g %%) were divergent: the sampler met a region of high curvature that it could not follow. What lies "
        "there is missing from the draws, and estimates may be biased.",
        f->divergent, all, gm_percent_digits(f->divergent, all), 100 * (double)f->divergent / (double)all);
    if (s->by_gmc) say(w, "Where the run itself says that they left the domain of something computed, nothing is missing.");
    static const char *const kinds[] = {"small", "extreme", "large"};
    const char *kind[2] = {NULL, NULL};
    for (int k = 0; k < f->n_associated && k < 2; k++) kind[k] = kinds[f->direction[k] < 0.4 ? 0 : f->direction[k] > 0.6 ? 2 : 1];
    if (kind[1])
        say(w, "They go with %s values of %s and %s values of %s.", kind[0], s->column[f->associated[0]].label, kind[1],
            s->column[f->associated[1]].label);
    else if (kind[0]) say(w, "They go with %s values of %s.", kind[0], s->column[f->associated[0]].label);
    if (f->n_associated > 1) refer(w, "pairs", "Where they are");
    static const char other_form[] = "Write a hierarchy in its non-centred form: theta = mu + tau * z with z ~ normal(0, 1).";
    const char *const step = smaller_step(s);
    if (s->by_gmc && could_be_gibbs(s))
        ADVISE(w, "Run with --method gibbs or --method both: Gibbs sweeps reach such regions.", other_form, step);
    else if (s->by_gmc) ADVISE(w, step, other_form, "Narrow priors of scales that may be 0 or very large.");
    else
        ADVISE(w, "Write a hierarchy in its non-centred form: theta = mu + tau * z with z ~ normal(0, 1).",
               "Ask for a smaller step size: adapt_delta=0.99.", "Narrow priors of scales that may be 0 or very large.");
    end(w);
}

static void energies(Warnings *w)
{
    enum { LEAST_DRAWS = 100 };
    const GmStored *s = w->s;
    bool *low = gm_alloc((size_t)s->chains, sizeof *low);
    double least = INFINITY;
    int n = 0;
    for (int m = 0; m < s->n_moves && s->draws >= LEAST_DRAWS; m++)
        for (int c = 0; c < s->chains && s->moves[m].column[GM_HMC_ENERGY] >= 0; c++) {
            const double ratio = gm_energy_ratio(gm_stored_chain(s, s->moves[m].column[GM_HMC_ENERGY], c), s->draws);
            if (!(ratio < 0.3) || low[c]) continue;
            low[c] = true;
            n++;
            least = fmin(least, ratio);
        }
    if (n > 0) {
        char *which = chains_of(s, low);
        begin(w, true, "energy", "The energy hardly changes");
        say(w,
            "E-BFMI is below 0.3 in %s (least: %.2f). Each transition changes the energy by far less than it varies, so tails are reached "
            "slowly and may be missed.",
            which, least);
        refer(w, "energy", "Energy and its transitions");
        ADVISE(w, "Write the model in other parameters: non-centred hierarchies, logarithms of scales.",
               "Give heavy-tailed unknowns a prior with lighter tails, if you can defend it.",
               "Run longer: R-hat and tail effective sizes say whether that is enough.");
        end(w);
        free(which);
    }
    free(low);
}

static void depths(Warnings *w)
{
    const GmStored *s = w->s;
    long deepest = 0, all = 0;
    for (int m = 0; m < s->n_moves; m++) {
        const long c = s->moves[m].column[GM_HMC_DEPTH];
        for (long i = 0; c >= 0 && i < s->chains * s->draws; i++, all++) deepest += gm_stored_column(s, c)[i] >= s->depth;
    }
    if (deepest == 0) return;
    begin(w, false, "depth", "Trajectories of the greatest length");
    say(w, "%ld of %ld transitions (%.*g %%) ended at %d doublings. They are slow, not wrong.", deepest, all,
        gm_percent_digits(deepest, all), 100 * (double)deepest / (double)all, s->depth);
    ADVISE(w, "Bring unknowns to like scales, and centre predictors.",
           s->by_gmc ? "Allow longer trajectories in the model: infer { ... by nuts(depth = 12); }."
                     : "Allow longer trajectories: max_depth=12.");
    end(w);
}

// ---- chains that disagree ----

// Chains fall into two groups where the largest gap between their means is twice what a chain varies by.
static bool groups(Warnings *w, long column)
{
    const GmStored *s = w->s;
    double *mean = gm_alloc((size_t)s->chains, sizeof *mean), spread = 0, cut = 0, gap = 0;
    for (int c = 0; c < s->chains; c++) {
        mean[c] = chain_mean(s, column, c);
        spread += chain_sd(s, column, c) / s->chains;
    }
    for (int c = 0; c < s->chains; c++) {
        double next = INFINITY;
        for (int k = 0; k < s->chains; k++)
            if (mean[k] > mean[c]) next = fmin(next, mean[k]);
        if (!isfinite(next) || next - mean[c] <= gap) continue;
        gap = next - mean[c];
        cut = mean[c] + gap / 2;
    }
    const bool found = gap > 2 * spread;
    if (found) {
        bool *low = gm_alloc((size_t)s->chains, sizeof *low), *high = gm_alloc((size_t)s->chains, sizeof *high);
        double of[2] = {0, 0};
        int n[2] = {0, 0};
        for (int c = 0; c < s->chains; c++) {
            low[c] = mean[c] < cut;
            high[c] = !low[c];
            of[high[c]] += mean[c];
            n[high[c]]++;
        }
        char *a = chains_of(s, low), *b = chains_of(s, high);
        say(w, "The chains fall into two groups: %s of %s is about %.4g in %s, and %.4g in %s.", "the mean", s->column[column].label,
            of[0] / n[0], a, of[1] / n[1], b);
        free(a);
        free(b);
        free(low);
        free(high);
    }
    free(mean);
    return found;
}

static void disagree(Warnings *w)
{
    const GmStored *s = w->s;
    long n = 0, *which = gm_alloc((size_t)w->f->n_quantities, sizeof *which), worst = -1;
    for (long k = 0; k < w->f->n_quantities; k++) {
        const long c = w->f->worst[k];
        if (!(w->f->summary[c].rhat > 1.01) || w->accounted[c]) continue;
        which[n++] = c;
        if (worst < 0 || w->f->summary[c].rhat > w->f->summary[worst].rhat) worst = c;
    }
    if (n > 0) {
        char *names = names_of(s, which, n);
        const double rhat = w->f->summary[worst].rhat;
        begin(w, rhat > 1.05, "rhat", w->explained ? "Chains disagree, as follows from the above" : "Chains disagree");
        say(w, "R-hat is above 1.01 for %ld of %ld quantities (worst: %s, %.3f): %s.", n, w->f->n_quantities, s->column[worst].label, rhat,
            names);
        const bool apart = !w->explained && groups(w, worst);
        if (!w->explained && !apart)
            say(w, "The draws of a chain do not cover yet what those of all chains do, or the first and last halves of a chain differ.");
        char *longer = s->by_gmc
                           ? gm_format("Run longer: --warmup %ld --samples %ld.", 4 * (s->draws > 500 ? s->draws : 500), 4 * s->draws)
                           : gm_format("Run longer: num_warmup=%ld num_samples=%ld.", 4 * (s->draws > 500 ? s->draws : 500), 4 * s->draws);
        if (w->explained) ADVISE(w, "See to the causes above first.");
        else if (apart)
            ADVISE(w, "The posterior seems to have several modes: draws say how they look, not how probable each is.",
                   "Look for unknowns that the model does not identify: signs, labels, sums of which only the total is known.", longer);
        else ADVISE(w, longer, "If it stays, look for unknowns that the model does not identify, or for several modes.");
        end(w);
        free(longer);
        free(names);
    }
    free(which);
}

// Arrays of which no element ever changes.
static void constants(Warnings *w)
{
    const GmStored *s = w->s;
    for (int a = 0; a < s->n_arrays; a++) {
        const GmStoredArray *of = &s->array[a];
        bool still = is_unknown_array(s, of);
        for (long k = 0; k < of->n && still; k++) still = w->f->summary[of->first + k].sd == 0;
        if (!still) continue;
        begin(w, false, "constant", "An unknown that never changes");
        say(w, "%s has the same value in all draws of all chains. That is right where data and bounds leave no other likely value.",
            of->name);
        ADVISE(
            w,
            "Otherwise no update can change it alone, as with counts whose sum is known: sum it out, or write the model in free unknowns.");
        end(w);
        return;
    }
}

static void few_draws(Warnings *w)
{
    const GmStored *s = w->s;
    const double bound = 100.0 * s->chains;
    long n = 0, *which = gm_alloc((size_t)w->f->n_quantities, sizeof *which), worst = -1;
    double least = INFINITY;
    for (long k = 0; k < w->f->n_quantities; k++) {
        const GmSummary *of = &w->f->summary[w->f->worst[k]];
        const double ess = of->ess_bulk < of->ess_tail ? of->ess_bulk : of->ess_tail;
        if (!(ess < bound) || w->accounted[w->f->worst[k]]) continue;
        which[n++] = w->f->worst[k];
        if (ess < least) {
            least = ess;
            worst = w->f->worst[k];
        }
    }
    if (n > 0) {
        char *names = names_of(s, which, n);
        begin(w, false, "ess", w->explained ? "Few effective draws, as follows from the above" : "Few effective draws");
        say(w, "The effective sample size is below %.0f (100 a chain) for %ld of %ld quantities (worst: %s, %.0f): %s.", bound, n,
            w->f->n_quantities, s->column[worst].label, least, names);
        say(w, "Means and quantiles of these are not accurate yet: their Monte Carlo error is in the table.");
        char *longer = gm_format("Run longer: %s%.0f should do.",
                                 s->by_gmc ? "--samples " : "num_samples=", ceil(bound / least * 1.2) * (double)s->draws);
        if (w->explained) ADVISE(w, "See to the causes above first.");
        else ADVISE(w, longer, "Where autocorrelation is high, other parameters or priors that are less vague mix faster.");
        end(w);
        free(longer);
        free(names);
    }
    free(which);
}

// ---- bounds ----

// The fraction of the draws that lie within 2 % of an sd of a bound, 0 or 1 where nothing else is known. end: which.
static double at_a_bound(const Warnings *w, long column, double *end)
{
    const GmStored *s = w->s;
    const GmStoredArray *a = &s->array[s->column[column].array];
    const long n = s->chains * s->draws;
    const double *x = gm_stored_column(s, column), sd = w->f->summary[column].sd;
    double lo, hi, most = 0;
    if (!(sd > 0) || gm_all_whole(x, n)) return 0;
    gm_range(x, n, &lo, &hi);
    const GmField *field = s->model && a->field >= 0 ? &s->model->state[a->field] : NULL;
    const double bound[] = {field && field->bounded ? field->lower
                            : lo >= 0               ? 0
                                                    : -INFINITY,
                            field && field->bounded ? field->upper
                            : lo >= 0 && hi <= 1    ? 1
                                                    : INFINITY};
    for (int k = 0; k < 2; k++) {
        double near = 0;
        if (!isfinite(bound[k])) continue;
        for (long i = 0; i < n; i++) near += fabs(x[i] - bound[k]) < 0.02 * sd;
        if (near <= most) continue;
        most = near;
        *end = bound[k];
    }
    return most / (double)n;
}

static void bounds(Warnings *w)
{
    const GmStored *s = w->s;
    long n = 0, *which = gm_alloc((size_t)w->f->n_quantities, sizeof *which);
    double most = 0, end_of = 0;
    for (long k = 0; k < w->f->n_quantities && s->draws >= 8; k++) {  // of fewer the largest and the least are all there is
        const long c = w->f->quantity[k];
        double at = 0;
        if (!is_unknown_array(s, &s->array[s->column[c].array]) || w->accounted[c]) continue;
        const double part = at_a_bound(w, c, &at);
        if (part < 0.05) continue;
        which[n++] = c;
        if (part > most) {
            most = part;
            end_of = at;
        }
    }
    if (n > 0) {
        char *names = names_of(s, which, n);
        begin(w, false, "boundary", "Draws at the boundary");
        say(w, "Draws of %s gather at %s bound (%.3g; up to %.0f %% of them within 0.02 sd of it).", names, n > 1 ? "a" : "their", end_of,
            100 * most);
        say(w, "The data do not separate the unknown from that bound. Its mean and sd describe it badly, and its prior matters.");
        ADVISE(w, "Report an interval from the bound on, or the probability of being beyond what would matter.",
               "Where transitions diverge besides, a scale near 0 is the usual reason: use the non-centred form.");
        end(w);
        free(names);
    }
    free(which);
}

static void predictions(Warnings *w, const GmResponse *r, int n)
{
    for (int k = 0; k < n; k++)
        for (int q = 0; q < 4 && r[k].y; q++) {
            const double p = r[k].probability[q];
            if (p > 0.005 && p < 0.995) continue;
            char id[40];
            snprintf(id, sizeof id, "predictive-%d", k + 1);
            begin(w, false, id, "The model does not replicate the data");
            say(w, "The %s of %s is %s than in %.4g %% of the replicates.", gm_response_statistic[q], r[k].name,
                p < 0.5 ? "larger" : "smaller", 100 * fmax(p, 1 - p));
            refer(w, "predictive", "Replicates beside what was observed");
            ADVISE(w, "Look at which observations differ: heavier tails, more zeros, a spread that grows with the mean, groups left out.");
            end(w);
            break;
        }
}

static void too_few(Warnings *w)
{
    if (w->s->draws >= 8 && w->s->chains > 1) return;
    begin(w, false, "few", w->s->draws < 8 ? "Too few draws" : "One chain");
    if (w->s->draws < 8) say(w, "With fewer than 8 draws a chain there are no diagnostics.");
    else say(w, "One chain cannot show whether others would end elsewhere: its R-hat compares its two halves.");
    ADVISE(w, "Run four chains.");
    end(w);
}

int gm_warnings(FILE *to, GmWarningsForm form, const GmStored *s, const GmFindings *f, const GmResponse *r, int n_responses,
                const char **first)
{
    Warnings w = {.to = to, .form = form, .s = s, .f = f, .accounted = gm_alloc((size_t)s->n_columns, sizeof(bool))};
    if (form == GM_WARNINGS_PAGE) fputs("<ol class=\"warnings\">\n", to);
    not_finite(&w);
    labels(&w);
    runs_away(&w);
    stuck(&w);
    divergences(&w);
    energies(&w);
    disagree(&w);
    depths(&w);
    constants(&w);
    few_draws(&w);
    bounds(&w);
    predictions(&w, r, n_responses);
    too_few(&w);
    if (form == GM_WARNINGS_PAGE) fputs("</ol>\n", to);
    free(w.accounted);
    *first = w.first;
    return w.n;
}
