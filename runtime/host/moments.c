// moments.c -- means and standard deviations of quantities whose draws are not stored (--moments).
//
//   --moments theta      NAME_moments.csv: variable,mean,sd,mcse,ess      theta.1,0.31,1.02,0.012,7100
//
// Four numbers an element, for all chains together: chains meet after each kept sweep, so that the order of the sums does not depend on
// threads. Mean and squares are those of Welford (1962). The Monte Carlo error is that of batch means (Flegal and Jones 2010): the means
// over chains at a sweep are one series, cut into batches of about the square root of its length.
#include "draws.h"
#include "fields.h"
#include "messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 3, FEWEST_BATCHES = 8 };

typedef struct Moment {
    double mean, squares;       // of all draws so far; the squares about the mean
    double batch, differences;  // the sum over this batch; of means of batches, the squares about their mean
} Moment;

struct GmMoments {
    const GmModel *model;
    const GmMemory *m;
    int chains;
    Moment **moment;  // by state field; NULL: not wanted
    long kept;        // draws of each chain
    long each;        // of a batch
    bool derived;
};

static bool names(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += strspn(at, ", ");
        if (strncmp(at, name, n) == 0 && (at[n] == 0 || at[n] == ',' || at[n] == ' ')) return true;
    }
    return false;
}

bool gm_moments_named(const char *list, const char *name) { return list && names(list, name); }

static bool has_moments(const GmField *f) { return gm_is_unknown(f->role) || f->role == GM_DERIVED || f->role == GM_PREDICTED; }

// Each name of the list is that of a quantity. false after a message.
static bool all_there(const GmModel *model, const GmOptions *o)
{
    for (const char *at = o->moments; *at;) {
        at += strspn(at, ", ");
        const size_t n = strcspn(at, ", ");
        const GmField *found = NULL;
        for (int f = 0; f < model->n_state; f++)
            if (strlen(model->state[f].name) == n && strncmp(model->state[f].name, at, n) == 0) found = &model->state[f];
        const char *why = n == 0                               ? "a name is missing"
                          : found && found->role == GM_IMPUTED ? "it is data; draws of its missing values are stored by --params all"
                          : !found || !has_moments(found)      ? "the model has no such quantity"
                          : found->on_request & ~o->requests   ? "it is there with --log-lik, --log-prior or --predict only"
                          : found->partial                     ? "some of its elements do not exist"
                                                               : NULL;
        if (why) {
            gm_error("--moments: `%.*s`: %s", (int)n, at, why);
            return false;
        }
        at += n;
    }
    return true;
}

GmMoments *gm_moments_open(const GmModel *model, const GmMemory *m, const GmOptions *o)
{
    if (!all_there(model, o)) return NULL;
    GmMoments *w = gm_alloc(1, sizeof *w);
    *w = (GmMoments){.model = model, .m = m, .chains = o->chains, .each = (long)sqrt((double)o->samples)};
    w->moment = gm_alloc((size_t)model->n_state, sizeof *w->moment);
    for (int f = 0; f < model->n_state; f++) {
        if (!has_moments(&model->state[f]) || !names(o->moments, model->state[f].name)) continue;
        w->moment[f] = gm_alloc((size_t)gm_shape_size(&m->shape[f]), sizeof **w->moment);
        w->derived |= !gm_is_unknown(model->state[f].role);
    }
    return w;
}

bool gm_moments_need_derived(const GmMoments *w) { return w && w->derived; }

// Chain by chain at one sweep.
static void take(const GmMoments *w, int f, bool ends, double batches)
{
    const bool whole = w->model->state[f].type == GM_INT;
    const long size = gm_shape_size(&w->m->shape[f]);
    const void **array = gm_alloc((size_t)w->chains, sizeof *array);
    for (int c = 0; c < w->chains; c++) array[c] = gm_state_array(w->model, w->m, c, f);
#pragma omp parallel for schedule(static)
    for (long e = 0; e < size; e++) {
        Moment *t = &w->moment[f][e];
        double n = (double)w->kept * w->chains, sum = 0;
        for (int c = 0; c < w->chains; c++) {
            const int32_t k = whole ? ((const int32_t *)array[c])[e] : 0;
            const double x = !whole ? ((const double *)array[c])[e] : k == GM_MISSING_INT ? NAN : (double)k, change = x - t->mean;
            t->mean += change / ++n;
            t->squares += change * (x - t->mean);
            sum += x;
        }
        t->batch += sum / w->chains;
        if (!ends) continue;
        const double away = t->batch / (double)w->each - t->mean;  // the mean is that of the means of all batches so far
        if (batches > 1) t->differences += away * away * batches / (batches - 1);
        t->batch = 0;
    }
    free(array);
}

void gm_moments_take(GmMoments *w)
{
    const bool ends = (w->kept + 1) % w->each == 0;
    for (int f = 0; f < w->model->n_state; f++)
        if (w->moment[f]) take(w, f, ends, (double)((w->kept + 1) / w->each));
    w->kept++;
}

// mean, sd, Monte Carlo error of the mean and effective number of draws; NaN where too few draws say nothing.
enum { NUMBERS = 4 };
static void numbers_of(const GmMoments *w, const Moment *t, double x[NUMBERS])
{
    const double n = (double)w->kept * w->chains, batches = (double)(w->kept / w->each);
    const double variance = n > 1 ? t->squares / (n - 1) : NAN;
    const double error = batches >= FEWEST_BATCHES ? t->differences / (batches - 1) / batches : NAN;
    x[0] = t->mean;
    x[1] = sqrt(variance);
    x[2] = sqrt(error);
    x[3] = error > 0 ? variance / error : NAN;
}

bool gm_moments_write(const GmMoments *w, const char *output, int digits)
{
    char *path = gm_format("%s_moments.csv", output);
    GmFile out;
    const bool open = gm_output_open(&out, path, false);
    free(path);
    if (!open) return false;
    fputs("variable,mean,sd,mcse,ess\n", out.to);
    for (int f = 0; f < w->model->n_state; f++) {
        const GmShape *s = &w->m->shape[f];
        const long size = w->moment[f] ? gm_shape_size(s) : 0;
        for (long e = 0; e < size; e++) {
            double x[NUMBERS];
            numbers_of(w, &w->moment[f][e], x);
            char *name = gm_dotted(gm_element_name(w->model->state[f].name, s->rank, s->dim, e));
            fputs(name, out.to);
            free(name);
            for (int k = 0; k < NUMBERS; k++) {
                char number[GM_NUMBER_ROOM];
                number[isnan(x[k]) ? 0 : gm_print_number(number, x[k], digits)] = 0;
                fprintf(out.to, ",%s", number);
            }
            fputc('\n', out.to);
        }
    }
    return gm_output_done(&out);
}

void gm_moments_print(FILE *to, const GmMoments *w, const GmLevelSets *levels)
{
    fprintf(to, "\nmoments of %ld draws\n\n%-24s %12s %12s %12s %8s\n", w->kept * w->chains, "", "mean", "sd", "MCSE", "ess");
    for (int f = 0; f < w->model->n_state; f++) {
        const GmShape *s = &w->m->shape[f];
        const long size = w->moment[f] ? gm_shape_size(s) : 0;
        for (long e = 0; e < size && (e < SHOWN || size == SHOWN + 1); e++) {
            double x[NUMBERS];
            numbers_of(w, &w->moment[f][e], x);
            char *name = gm_labelled_name(levels, &w->model->state[f], s, e);
            fprintf(to, "%-24s %12.4g %12.4g %12.2g %8.0f\n", name, x[0], x[1], x[2], x[3]);
            free(name);
        }
        if (size > SHOWN + 1)
            fprintf(to, "...        %ld more of %s (-o NAME writes NAME_moments.csv)\n", size - SHOWN, w->model->state[f].name);
    }
    fputc('\n', to);
}

void gm_moments_close(GmMoments *w)
{
    if (!w) return;
    for (int f = 0; f < w->model->n_state; f++) free(w->moment[f]);
    free(w->moment);
    free(w);
}
