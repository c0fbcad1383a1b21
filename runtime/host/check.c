// check.c -- --check: does every update draw from its conditional?
//
// An update that draws x from q(x | rest) exactly has q proportional to the joint density p(x, rest). So between two values of x
//
//   log p(new, rest) - log p(old, rest)  =  log q(new) - log q(old),
//
// and normalising constants cancel. The left side is evaluated from the model as written; the right side is what the update itself adds up
// while it draws (run->check_log_q). The two are compared update by update for some sweeps of all chains.
//
// A run asks the same of its own updates when its draws are made, in up to as many sweeps more, and then only whether they are grossly
// wrong. Data may be such that the sums of an update lose all their digits, which no test of the compiler sees.
#include "fields.h"
#include "messages.h"
#include "runs.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SWEEPS = 20 };
#define TELLS_NOTHING 0.1

typedef struct Verdict {
    long compared, skipped, ratios;
    double worst;              // largest difference, in units of its bound
    double difference, bound;  // of that one
    int chain;
    long sweep;
    bool broken, no_ratio;  // a density that is not finite after the update; an update without a ratio
} Verdict;

// Rounding: a log joint is a sum whose relative error is about 1e-16 times the square root of the number of terms, and differences
// of two of them lose what cancels; 1e-9 leaves room for 10^6 terms that cancel to a tenth of a percent. What a ratio adds up may be larger
// by far: at data near 1e8 the terms of h*(x - old) + q*(x^2 - old^2) are of order 1e8 and nearly cancel, and 1e-12 is left for their
// rounding. A wrong conditional is off by order one, and one part in 10^6 of a natural parameter is 10^6 times as much as that. Of a count
// n the density has terms as large as n log n (lgamma, or n times a logarithm), which cancel to a few units: they are `counts`, each
// rounded to 2^-53 of itself and met in both densities. `shaken` is how far the densities change when all unknowns change by a few units in
// their last place: a matrix that is nearly singular makes more of that.
static double bound(double before, double after, double size, double counts, double shaken)
{
    return 1e-7 + 1e-9 * (fabs(before) + fabs(after)) + 1e-12 * size + DBL_EPSILON * counts + 30 * shaken;
}

static bool is_shaken(const GmModel *model, int f) { return gm_is_drawn_real(&model->state[f]); }

// The change of a log joint where each continuous unknown of a chain changes by 2^-50 of itself, some upwards and some downwards; 0: it is
// not finite.
static double shaken(const GmModel *model, GmRun *run, const GmMemory *m, int chain, double log_joint)
{
    double *kept[model->n_state];
    for (int f = 0; f < model->n_state; f++) {
        kept[f] = NULL;
        if (!is_shaken(model, f)) continue;
        double *x = gm_state_array(model, m, chain, f);
        const long size = gm_shape_size(&m->shape[f]);
        kept[f] = gm_alloc((size_t)size + 1, sizeof *kept[f]);
        memcpy(kept[f], x, sizeof *x * (size_t)size);
        for (long i = 0; i < size; i++) x[i] *= 1 + ((unsigned)(i + f) * 2654435761u >> 31 ? 0x1p-50 : -0x1p-50);
    }
    const double other = model->log_joint(run, chain);
    for (int f = 0; f < model->n_state; f++) {
        if (!kept[f]) continue;
        memcpy(gm_state_array(model, m, chain, f), kept[f], sizeof *kept[f] * (size_t)gm_shape_size(&m->shape[f]));
        free(kept[f]);
    }
    return isfinite(log_joint) && isfinite(other) ? fabs(other - log_joint) : 0;
}

// The sum of n log n over whole numbers. Those that are missing or do not exist have the least int.
static double count_terms(const int *n, long size)
{
    double all = 0;
    for (long i = 0; i < size; i++)
        if (n[i] != INT_MIN) all += fabs((double)n[i]) * log1p(fabs((double)n[i]));
    return all;
}

static double terms_of_data(const GmModel *model, const GmData *d)
{
    double all = 0;
    for (int f = 0; f < model->n_data; f++)
        if (model->data[f].type == GM_INT) {
            const char *place = (const char *)d->data + model->data[f].offset;
            all += count_terms(model->data[f].rank ? *(int *const *)place : (const int *)place, gm_shape_size(&d->shape[f]));
        }
    return all;
}

static double terms_of_state(const GmModel *model, const GmMemory *m, int chain)
{
    double all = 0;
    for (int f = 0; f < model->n_state; f++)
        if (model->state[f].type == GM_INT && gm_is_drawn(&model->state[f]))
            all += count_terms(gm_state_array(model, m, chain, f), gm_shape_size(&m->shape[f]));
    return all;
}

static void compare(Verdict *v, const GmRun *run, int chain, double before, double after, double counts, double shaken)
{
    const double ratio = run->check_log_q[chain];
    v->ratios += run->check_ratios ? run->check_ratios[chain] : 0;
    if (isnan(ratio)) {
        v->no_ratio = true;
        return;
    }
    if ((isnan(after) || isinf(after)) && !isnan(before) && !isinf(before)) {
        v->broken = true;
        v->chain = chain;
        v->sweep = run->sweep;
        return;
    }
    // still outside the support: nothing to subtract from
    if (isinf(before) || isnan(before) || isinf(after) || isnan(after) || isinf(ratio)) {
        v->skipped++;
        return;
    }
    const double difference = fabs(after - before - ratio),
                 most = bound(before, after, run->check_size ? run->check_size[chain] : 0, counts, shaken);
    if (most > TELLS_NOTHING && difference <= most) {  // a wrong conditional is off by order one
        v->skipped++;
        return;
    }
    v->compared++;
    if (v->compared == 1 || difference / most > v->worst) {
        v->worst = difference / most;
        v->difference = difference;
        v->bound = most;
        v->chain = chain;
        v->sweep = run->sweep;
    }
}

// Gradients, of all HMC updates.
static struct {
    long compared, coordinate;
    double worst, slope, difference;  // of the worst: in units of its bound
    char name[100];
} gradients;

// A difference is known to `error`; 1e-6 is what a gradient may be off in relative terms, as its largest terms may cancel.
void gm_check_gradient(const GmRun *run, const char *name, long coordinate, double slope, double difference, double error)
{
    (void)run;
    const double bound = 1e-6 * (1 + fabs(slope)) + 10 * error, off = fabs(slope - difference) / bound;
    if (!isfinite(difference))  // beyond an end, where the density is 0
        return;
    gradients.compared++;
    if (off <= gradients.worst) return;
    gradients.worst = off;
    gradients.coordinate = coordinate;
    gradients.slope = slope;
    gradients.difference = difference;
    snprintf(gradients.name, sizeof gradients.name, "%s", name);
}

static bool report_gradients(void)
{
    if (gradients.compared == 0) return true;
    const bool good = gradients.worst <= 1;
    printf("%ld derivatives compared with differences: %s", gradients.compared, good ? "ok" : "FAILED");
    if (!good)
        printf(" (coordinate %ld of %s: %.9g, and %.9g by differences)", gradients.coordinate + 1, gradients.name, gradients.slope,
               gradients.difference);
    printf("\n");
    return good;
}

static bool report(const GmModel *model, const GmRun *run, const Verdict *verdict)
{
    int width = 6;
    for (int k = 0; k < model->n_updates; k++)
        if ((int)strlen(model->update_name(k)) > width) width = (int)strlen(model->update_name(k));
    printf("%-*s  %14s  %10s  %8s\n", width, "update", "max difference", "bound", "ratios");
    bool good = true;
    long ratios = 0;
    for (int k = 0; k < model->n_updates; k++) {
        const Verdict *v = &verdict[k];
        ratios += v->ratios;
        printf("%-*s  ", width, model->update_name(k));
        if (v->broken) {
            printf("%14s  %10s  %8s  FAILED: the log joint is not finite after it (chain %d, sweep %ld)\n", "-", "-", "-",
                   run->first_chain + v->chain + 1, v->sweep + 1);
            good = false;
        } else if (v->no_ratio) {
            printf("%14s  %10s  %8s  no exact draw: valid by construction, no ratio to check\n", "-", "-", "-");
        } else if (v->compared == 0) {
            printf(
                "%14s  %10s  %8s  not compared: the log joint was not finite before it, or its rounding is as large as what is compared\n",
                "-", "-", "-");
        } else if (v->worst <= 1) {
            printf("%14.3g  %10.2g  %8ld  ok\n", v->difference, v->bound, v->ratios);
        } else {
            printf("%14.3g  %10.2g  %8ld  FAILED (chain %d, sweep %ld)\n", v->difference, v->bound, v->ratios,
                   run->first_chain + v->chain + 1, v->sweep + 1);
            good = false;
        }
    }
    printf("%ld ratios checked\n", ratios);
    return report_gradients() && good;
}

// ---- after a run ----

// In nats: where ratios are off by as much, draws change by a few percent.
#define GROSS 0.1
// Terms of a ratio may be large and cancel although the draw is right: 64 roundings of their sum.
#define ROUNDINGS (64 * DBL_EPSILON)

typedef struct Suspect {
    const char *update;
    double changed, said;
    int chain;
} Suspect;

// Whether an update, which it makes, is so for one of the first n chains.
static bool is_grossly_wrong(const GmModel *model, GmRun *run, const GmMemory *m, int k, int n, Suspect *found)
{
    double *before = gm_alloc((size_t)n, sizeof *before);
    for (int c = 0; c < n; c++) {
        before[c] = model->log_joint(run, c);
        run->check_log_q[c] = run->check_size[c] = 0;
    }
    model->update(run, k);
    bool wrong = false;
    for (int c = 0; c < n && !wrong && !gm_fault_raised(); c++) {
        const double after = model->log_joint(run, c), said = run->check_log_q[c], off = fabs(after - before[c] - said);
        const double most = GROSS + 1e-9 * (fabs(before[c]) + fabs(after)) + ROUNDINGS * run->check_size[c];
        wrong = isfinite(off) && off > most && off > most + 30 * shaken(model, run, m, c, after);
        if (wrong) *found = (Suspect){model->update_name(k), after - before[c], said, c};
    }
    free(before);
    return wrong;
}

// A whole sweep is made, in its order, since updates use what those before them have left. As many are compared as time suffices for.
static GmChecked compare_sweep(const GmModel *model, GmRun *run, const GmMemory *m, double seconds, Suspect *found)
{
    const double before = gm_seconds();
    model->log_joint(run, 0);
    const int updates = model->n_updates;
    const double pairs = seconds / (2 * fmax(gm_seconds() - before, 1e-9));  // of evaluations
    const int compared = pairs < updates ? (int)pairs : updates;
    const int chains = pairs < (double)updates * run->chains ? 1 : run->chains;
    for (int k = 0; k < updates && compared > 0 && !gm_fault_raised() && !gm_interrupted(); k++) {
        if ((run->seed + (unsigned)k) % (unsigned)updates >= (unsigned)compared) model->update(run, k);
        else if (is_grossly_wrong(model, run, m, k, chains, found)) return GM_IS_WRONG;
    }
    return compared < updates ? GM_IS_NOT_ASKED : GM_IS_RIGHT;
}

// One sweep, and more where time suffices: what rounding does to an update differs between sweeps, above all with one chain.
static GmChecked find_wrong(const GmModel *model, GmRun *run, const GmMemory *m, double seconds, Suspect *found)
{
    const double start = gm_seconds();
    const long sweep = run->sweep;
    GmChecked answer = compare_sweep(model, run, m, seconds, found);
    const double took = gm_seconds() - start;
    for (int k = 1; k < SWEEPS && answer == GM_IS_RIGHT && gm_seconds() - start + took < seconds; k++) {
        if (gm_fault_raised() || gm_interrupted()) break;
        run->sweep++;  // other random numbers
        answer = compare_sweep(model, run, m, INFINITY, found);
    }
    run->sweep = sweep;
    return answer;
}

GmChecked gm_check_after(const GmModel *model, GmRun *run, const GmMemory *m, double seconds)
{
    Suspect found;
    run->checking = GM_CHECK_SWEEP;
    run->auxiliaries = 1;
    const GmChecked answer = find_wrong(model, run, m, seconds, &found);
    run->checking = 0;
    gm_fault_clear();
    if (answer == GM_IS_WRONG)
        gm_error("the draws are wrong: with the update of %s, chain %d, the log density changed by %.6g, and by its law it is %.6g. "
                 "Sums of data lose digits where these are far from zero, or where little is left of them beside what explains them "
                 "(--check shows every update)",
                 found.update, run->first_chain + found.chain + 1, found.changed, found.said);
    return answer;
}

// ---- --check ----

int gm_check_updates(const GmModel *model, GmRun *run, const GmData *d, const GmMemory *m)
{
    const double in_data = terms_of_data(model, d);
    Verdict *verdict = gm_alloc((size_t)model->n_updates, sizeof *verdict);
    double *before = gm_alloc((size_t)run->chains, sizeof *before), *moved = gm_alloc((size_t)run->chains, sizeof *moved);
    run->checking = GM_CHECK_ALL;
    for (run->sweep = 0; run->sweep < SWEEPS && !gm_interrupted() && !gm_fault_raised(); run->sweep++)
        for (int k = 0; k < model->n_updates && !gm_fault_raised(); k++) {
            for (int c = 0; c < run->chains; c++) {
                before[c] = model->log_joint(run, c);
                moved[c] = shaken(model, run, m, c, before[c]);
                run->check_log_q[c] = 0;
                run->check_size[c] = 0;
                run->check_ratios[c] = 0;
            }
            model->update(run, k);
            for (int c = 0; c < run->chains; c++) {
                const double after = model->log_joint(run, c);
                compare(&verdict[k], run, c, before[c], after, in_data + terms_of_state(model, m, c),
                        moved[c] + shaken(model, run, m, c, after));
            }
        }
    run->checking = 0;
    int status = GM_EXIT_INTERRUPTED;
    if (gm_fault_raised()) {
        gm_fault_print(model, NULL, NULL);
        status = GM_EXIT_FAULT;
    } else if (!gm_interrupted()) {
        status = report(model, run, verdict) ? GM_EXIT_OK : GM_EXIT_CHECK;
    }
    free(before);
    free(moved);
    free(verdict);
    return status;
}
