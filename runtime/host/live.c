// live.c -- NAME.status.json: how far a run is, once a second, by a thread of its own.
//
//   {"phase": "sampling", "sweep": 1500, "sweeps": 2000, "seconds_left": 3.1, "max_rhat": 1.003, "min_ess": 1210, "divergences": 0, ...}
//
// It is written under another name and then renamed: whoever reads it reads one whole object. R-hat and effective sample sizes are those of
// the draws in memory, some quantities each second, so that they take a part of one processor only.
#include "draws.h"
#include "messages.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double each_second = 0.2;  // seconds for R-hat and effective sample sizes, or one quantity
enum { FEWEST = 20 };                   // quantities that are named

struct GmLive {
    const GmModel *model;
    const GmOptions *options;
    const GmDraws *draws;
    char *path, *part;
    long sweeps;  // of the run
    double started;
    long first;  // sweeps that were made before
    atomic_long sweep, kept;
    double *rhat, *ess;  // by column, NAN: not known
    double *room;
    long room_for, next, known_at;  // draws of the numbers above
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closing, failed;
    const char *end;  // of the run, in a word
    int status;
};

static void put_number(FILE *to, const char *name, double x)
{
    if (isfinite(x)) fprintf(to, ", \"%s\": %.6g", name, x);
    else fprintf(to, ", \"%s\": null", name);
}

static void put_text(FILE *to, const char *name, const char *text)
{
    fprintf(to, ", \"%s\": \"", name);
    gm_json_text(to, text);
    fputc('"', to);
}

// The worst of what is known, and the label of its column.
static void put_worst(FILE *to, const GmLive *l, const double *of, double sign, const char *name)
{
    long worst = -1;
    for (long k = 0; k < l->draws->n_summarised; k++)
        if (isfinite(of[k]) && (worst < 0 || sign * of[k] > sign * of[worst])) worst = k;
    put_number(to, name, worst < 0 ? NAN : of[worst]);
    char *label = worst < 0 ? NULL : gm_column_label(l->draws, l->model, l->draws->shapes, worst, '['), *key = gm_format("%s_of", name);
    if (label) put_text(to, key, label);
    else fprintf(to, ", \"%s\": null", key);
    free(label);
    free(key);
}

// The quantities with the fewest effective draws, these first: each is sorted into a list of those before it.
static void put_fewest(FILE *to, const GmLive *l)
{
    long of[FEWEST], n = 0;
    for (long k = 0; k < l->draws->n_summarised; k++) {
        if (!isfinite(l->ess[k]) || (n == FEWEST && l->ess[k] >= l->ess[of[n - 1]])) continue;
        long at = n < FEWEST ? n++ : n - 1;
        for (; at > 0 && l->ess[of[at - 1]] > l->ess[k]; at--) of[at] = of[at - 1];
        of[at] = k;
    }
    fputs(", \"quantities\": [", to);
    for (long j = 0; j < n; j++) {
        char *label = gm_column_label(l->draws, l->model, l->draws->shapes, of[j], '[');
        fprintf(to, "%s{\"name\": \"", j > 0 ? ", " : "");
        gm_json_text(to, label);
        fputc('"', to);
        put_number(to, "rhat", l->rhat[of[j]]);
        put_number(to, "ess", l->ess[of[j]]);
        fputc('}', to);
        free(label);
    }
    fputc(']', to);
}

static void look(GmLive *l, long kept)
{
    const GmDraws *d = l->draws;
    const double started = gm_seconds();
    if (!d->summary || kept < 8) return;
    if (kept > l->room_for) {
        l->room_for = kept + kept / 2;
        l->room = gm_grow(l->room, (size_t)(l->room_for * d->chains), sizeof *l->room);
    }
    for (long k = 0; k < d->n_summarised && (k == 0 || gm_seconds() - started < each_second); k++) {
        const long column = l->next++ % d->n_summarised;
        if (gm_draws_diagnostic(d, l->model, column)) continue;
        gm_draws_column(d, column, kept, l->room);
        const GmSummary s = gm_summarise(l->room, d->chains, kept);
        l->rhat[column] = s.rhat;
        l->ess[column] = fmin(s.ess_bulk, s.ess_tail);
    }
    l->known_at = kept;
}

static void write_status(GmLive *l)
{
    const long sweep = atomic_load(&l->sweep), kept = atomic_load(&l->kept), made = sweep - l->first;
    const double now = gm_seconds(), seconds = now - l->started;
    const GmOptions *o = l->options;
    if (!l->end) look(l, kept);
    FILE *to = fopen(l->part, "w");
    if (!to) {
        if (!l->failed) gm_error("%s: cannot be written", l->path);
        l->failed = true;
        return;
    }
    fprintf(to, "{\"phase\": \"%s\", \"sweep\": %ld, \"sweeps\": %ld, \"draws\": %ld, \"samples\": %ld, \"warmup\": %ld, \"chains\": %d",
            l->end              ? l->end
            : sweep < o->warmup ? "warm-up"
                                : "sampling",
            sweep, l->sweeps, kept, o->samples, o->warmup, o->chains);
    fprintf(to, ", \"seconds\": %.1f", seconds);
    put_number(to, "seconds_left", l->end ? 0 : made > 0 ? seconds * (double)(l->sweeps - sweep) / (double)made : NAN);
    put_worst(to, l, l->rhat, 1, "max_rhat");
    put_worst(to, l, l->ess, -1, "min_ess");
    put_fewest(to, l);
    fprintf(to, ", \"divergences\": %ld", l->end ? gm_draws_diverged_kept(l->draws) : gm_draws_diverged(l->draws));
    put_text(to, "model", l->model->name);
    fprintf(to, ", \"seed\": %llu, \"pid\": %ld", (unsigned long long)o->seed, (long)getpid());
    if (l->end) fprintf(to, ", \"exit_status\": %d}\n", l->status);
    else fprintf(to, ", \"exit_status\": null}\n");
    const bool good = !ferror(to);
    if (fclose(to) == 0 && good) rename(l->part, l->path);
    else unlink(l->part);
}

static void *go(void *argument)
{
    GmLive *l = argument;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    pthread_mutex_lock(&l->lock);
    while (!l->closing) {
        until.tv_sec++;
        while (!l->closing && pthread_cond_timedwait(&l->changed, &l->lock, &until) == 0) {}
        if (l->closing) break;
        pthread_mutex_unlock(&l->lock);
        write_status(l);
        pthread_mutex_lock(&l->lock);
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec > until.tv_sec) until = now;  // it took longer than a second
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

GmLive *gm_live_open(const GmModel *model, const GmOptions *o, const GmDraws *d, long sweep, long sweeps, long kept)
{
    if (!o->status) return NULL;
    GmLive *l = gm_alloc(1, sizeof *l);
    *l = (GmLive){.model = model, .options = o, .draws = d, .sweeps = sweeps, .started = gm_seconds(), .first = sweep};
    char *path = gm_format("%s.status.json", o->output);
    l->path = gm_file_real(path);
    l->part = gm_format("%s.part", l->path);
    free(path);
    l->rhat = gm_alloc((size_t)d->n_columns, sizeof *l->rhat);
    l->ess = gm_alloc((size_t)d->n_columns, sizeof *l->ess);
    for (long k = 0; k < d->n_columns; k++) l->rhat[k] = l->ess[k] = NAN;
    gm_live_at(l, sweep, kept);
    write_status(l);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&l->thread, NULL, go, l) != 0) {
        gm_error("a thread that writes %s cannot be started", l->path);
        exit(GM_EXIT_FAULT);
    }
    return l;
}

void gm_live_at(GmLive *l, long sweep, long kept)
{
    if (!l) return;
    atomic_store(&l->kept, kept);
    atomic_store(&l->sweep, sweep);
}

void gm_live_stop(GmLive *l)
{
    if (!l || l->closing) return;
    pthread_mutex_lock(&l->lock);
    l->closing = true;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
}

void gm_live_close(GmLive *l, int status)
{
    if (!l) return;
    gm_live_stop(l);
    l->status = status;
    atomic_store(&l->kept, l->draws->kept);  // a file that failed has fewer draws than were made
    l->end = status == GM_EXIT_OK ? "done" : status == GM_EXIT_INTERRUPTED ? "interrupted" : status >= GM_EXIT_TIME ? "stopped" : "failed";
    write_status(l);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    free(l->rhat);
    free(l->ess);
    free(l->room);
    free(l->path);
    free(l->part);
    free(l);
}
