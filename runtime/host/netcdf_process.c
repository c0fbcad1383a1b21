// netcdf_process.c -- NAME.nc while the chains go on: a process of its own writes it.
//
//   chains -> rows in memory -> socket -> the process: blocks of draws -> NAME.nc.part -> NAME.nc
//
// With --save-warmup the rows of warm-up, which has groups of its own, go before those of the draws.
// A program that is killed in the middle of a write leaves an HDF5 file that may not be read. So this program writes none: the process that
// does ends by itself when the socket does, with a file that is closed. It ignores the signals that end a run, which are for the program
// that draws. What it has of this program's memory is what was there when it began.
#define _GNU_SOURCE
#include "draws.h"
#include "messages.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ANSWER = 300,
    MOST_OPEN = 1024,
};
static const double SECONDS = 1;  // draws are not kept back for longer

enum { EARLY, DRAWS, SOURCES };

typedef struct Source {  // d: of --save-warmup, the draws; NULL: there is none
    const GmDraws *d;
    long sent;
    double last;  // when rows were sent
} Source;

struct GmNetcdfRun {
    Source of[SOURCES];
    char *path, *part;
    int socket;
    pid_t process;
    bool failed, whole;  // whole: nothing is left to be removed
};

typedef struct Head {  // of what is sent: so many rows of each chain; 0: the run has ended, after so many seconds
    long n;
    double sampling;
    int source;
    long settings, notes;  // bytes of text, which precede the first rows
} Head;

// ---- the process ----

// false: the other end is gone.
static bool take(int from, void *bytes, size_t n)
{
    for (char *at = bytes; n > 0;) {
        const ssize_t some = recv(from, at, n, 0);
        if (some < 0 && errno == EINTR) continue;
        if (some <= 0) return false;
        at += some;
        n -= (size_t)some;
    }
    return true;
}

static bool give(int to, const void *bytes, size_t n)
{
    for (const char *at = bytes; n > 0;) {
        const ssize_t some = send(to, at, n, MSG_NOSIGNAL);
        if (some < 0 && errno == EINTR) continue;
        if (some <= 0) return false;
        at += some;
        n -= (size_t)some;
    }
    return true;
}

// A text of n bytes, with its end; NULL: there is none, or the other end is gone.
static char *take_text(int from, long n)
{
    char *text = n > 0 ? gm_alloc((size_t)n, 1) : NULL;
    if (!text || (take(from, text, (size_t)n) && text[n - 1] == 0)) return text;
    free(text);
    return NULL;
}

typedef struct Gathered {  // rows of a source, [chain][block][column], of which the first `n` of each chain are there
    const GmDraws *d;
    GmNetcdf *file;
    double *block, *part;
    long n;
    bool good;
} Gathered;

static Gathered gather(const GmDraws *d, GmNetcdf *file)
{
    const size_t whole = (size_t)(d->block * d->chains) * (size_t)d->n_columns;
    return (Gathered){
        .d = d, .file = file, .block = gm_alloc(whole, sizeof(double)), .part = gm_alloc(whole, sizeof(double)), .good = true};
}

// A message of n rows of each chain, at most what is left of the block. false: the other end is gone.
static bool gather_rows(Gathered *g, int from, long n, const char *path)
{
    const GmDraws *d = g->d;
    const size_t row = (size_t)d->n_columns;
    if (!take(from, g->part, (size_t)(n * d->chains) * row * sizeof *g->part)) return false;
    for (int c = 0; c < d->chains; c++)
        memcpy(g->block + (size_t)(c * d->block + g->n) * row, g->part + (size_t)(c * n) * row, (size_t)n * row * sizeof *g->block);
    g->n += n;
    if (g->n < d->block) return true;
    g->good = g->good && gm_netcdf_put(g->file, path, g->block, g->n);
    g->n = 0;
    return true;
}

// What is left of the last block lies without gaps then.
static void gather_rest(Gathered *g, const char *path)
{
    const size_t row = g->d ? (size_t)g->d->n_columns : 0;
    for (int c = 1; g->n > 0 && c < g->d->chains; c++)
        memmove(g->block + (size_t)(c * g->n) * row, g->block + (size_t)(c * g->d->block) * row, (size_t)g->n * row * sizeof *g->block);
    if (g->n > 0 && g->good) g->good = gm_netcdf_put(g->file, path, g->block, g->n);
    g->n = 0;
}

static void write_all(const GmNetcdfRun *r, int from)
{
    const GmDraws *d = r->of[DRAWS].d, *early = r->of[EARLY].d;
    GmNetcdf *file = gm_netcdf_create(d, d->block), *before = early ? gm_netcdf_beside(file, early, early->block) : NULL;
    Gathered of[SOURCES] = {[DRAWS] = gather(d, file)};
    if (early) of[EARLY] = gather(early, before);
    Head head = {0};
    bool ended = false;
    char *settings = NULL, *notes = NULL;
    while (take(from, &head, sizeof head) && !(ended = head.n == 0)) {
        if (head.settings + head.notes > 0) {
            free(settings);
            free(notes);
            settings = take_text(from, head.settings);
            notes = take_text(from, head.notes);
            gm_netcdf_about(file, settings, notes);
        }
        if (head.source == DRAWS) gather_rest(&of[EARLY], r->part);
        if (!gather_rows(&of[head.source], from, head.n, r->part)) break;
    }
    for (int k = 0; k < SOURCES; k++) gather_rest(&of[k], r->part);
    char answer[ANSWER] = "";
    const char *early_why = before ? gm_netcdf_close(before, r->path, 0, false) : NULL;
    const char *why = gm_netcdf_close(file, r->path, ended ? head.sampling : 0, ended);
    if (why || early_why) snprintf(answer, sizeof answer, "%s", why ? why : early_why);
    give(from, answer, sizeof answer);
    free(settings);
    free(notes);
}

static void ignore_signals(void)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU, SIGTSTP};
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) signal(ends[k], SIG_IGN);
}

// ---- the run ----

GmNetcdfRun *gm_netcdf_begin(const GmDraws *d, const GmDraws *early)
{
    GmNetcdfRun *r = gm_alloc(1, sizeof *r);
    char *path = gm_format("%s.nc", d->options->output);
    const double now = gm_seconds();
    *r = (GmNetcdfRun){.of = {[EARLY] = {.d = early, .last = now}, [DRAWS] = {.d = d, .last = now}}, .path = path};
    char *real = gm_file_real(path);
    r->part = gm_format("%s.part", real);
    free(real);
    int end[2];
    fflush(NULL);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end) != 0) end[0] = end[1] = -1;
    r->process = end[0] < 0 ? -1 : fork();
    if (r->process == 0) {
        ignore_signals();
        for (int k = 3; k < MOST_OPEN; k++)  // the other files of the run, and with them their locks
            if (k != end[1]) close(k);
        write_all(r, end[1]);
        _exit(0);
    }
    if (end[1] >= 0) close(end[1]);
    r->socket = end[0];
    if (r->process > 0) return r;
    gm_error("%s: the process that writes it cannot be started: %s", path, strerror(errno));
    r->process = 0;
    gm_netcdf_end(r);
    return NULL;
}

// Sweeps up to the one after which a row would take the place of one that was not sent.
static long until(const Source *s, long sweep, long batch)
{
    if (!s->d || s->d->held >= s->d->capacity || s->d->kept >= s->d->capacity) return batch;
    const GmOptions *o = s->d->options;
    const long last = o->warmup + (s->sent + s->d->held) * o->thin;
    return batch < last - sweep ? batch : last - sweep;
}

long gm_netcdf_until(const GmNetcdfRun *r, long sweep, long batch)
{
    for (int k = 0; r && k < SOURCES; k++) batch = until(&r->of[k], sweep, batch);
    return batch;
}

// Rows of each chain, and before the first draws what the head of a CSV file says. false: the other end is gone.
static bool send_rows(const GmNetcdfRun *r, int source, long n)
{
    const Source *s = &r->of[source];
    const GmDraws *d = s->d;
    const bool about = source == DRAWS && s->sent == 0;
    Head head = {.n = n, .source = source};
    char *notes = about ? gm_draws_notes(d) : NULL;
    if (about && d->settings) head.settings = (long)strlen(d->settings) + 1;
    if (notes) head.notes = (long)strlen(notes) + 1;
    bool good = give(r->socket, &head, sizeof head) && (!head.settings || give(r->socket, d->settings, (size_t)head.settings)) &&
                (!head.notes || give(r->socket, notes, (size_t)head.notes));
    free(notes);
    for (int c = 0; c < d->chains; c++)
        for (long at = s->sent, some; at < s->sent + n && good; at += some) {  // rows that lie one after the other
            const long ahead = d->held - at % d->held;
            some = s->sent + n - at < ahead ? s->sent + n - at : ahead;
            good = give(r->socket, gm_draws_row(d, c, at), (size_t)(some * d->n_columns) * sizeof(double));
        }
    return good;
}

bool gm_netcdf_take(GmNetcdfRun *r, bool all)
{
    if (!r || r->failed) return !r;
    for (int k = 0; k < SOURCES; k++) {
        Source *s = &r->of[k];
        if (!s->d) continue;
        const long there = s->d->kept - s->sent, block = s->d->block;
        const bool last = all || (k == EARLY && r->of[DRAWS].d->kept > 0);
        const bool due = last || there >= block || there >= s->d->held || gm_seconds() - s->last >= SECONDS;
        while (due && s->sent < s->d->kept && !r->failed) {
            const long left = block - s->sent % block, n = s->d->kept - s->sent < left ? s->d->kept - s->sent : left;
            r->failed = !send_rows(r, k, n);
            s->sent += n;
            s->last = gm_seconds();
        }
    }
    if (r->failed) gm_error("%s: cannot be written: the process that writes it has ended", r->path);
    return !r->failed;
}

bool gm_netcdf_finish(GmNetcdfRun *r)
{
    if (!r || (r->of[DRAWS].d->kept == 0 && !(r->of[EARLY].d && r->of[EARLY].d->kept > 0))) return true;
    const Head end = {.sampling = gm_seconds() - r->of[DRAWS].d->sampling};
    char answer[ANSWER] = "the process that writes it has ended";
    bool done = gm_netcdf_take(r, true);
    if (done) {
        const bool answered = give(r->socket, &end, sizeof end) && take(r->socket, answer, sizeof answer);
        const char *why = answered && !*answer ? gm_file_replace(r->part, r->path) : NULL;
        done = answered && !*answer && !why;
        if (!answered || *answer) gm_error("%s: cannot be written: %s", r->path, answer);
        else if (why) gm_error("%s: cannot be written: %s. It is complete, and is called %s", r->path, why, r->part);
        r->whole = answered && !*answer;
    }
    return done;
}

void gm_netcdf_end(GmNetcdfRun *r)
{
    if (!r) return;
    if (r->socket >= 0) close(r->socket);
    if (r->process > 0) waitpid(r->process, NULL, 0);
    if (!r->whole) unlink(r->part);
    free(r->path);
    free(r->part);
    free(r);
}
