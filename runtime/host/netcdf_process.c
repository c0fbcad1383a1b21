// netcdf_process.c -- NAME.nc while the chains go on: a process of its own writes it.
//
//   chains -> rows in memory -> socket -> the process: blocks of draws -> NAME.nc.part -> NAME.nc
//
// A program that is killed in the middle of a write leaves an HDF5 file that may not be read. So this program writes none: the process that
// does ends by itself when the socket does, with a file that is closed. It ignores the signals that end a run, which are for the program
// that draws. What it has of this program's memory is what was there when it began.
#define _GNU_SOURCE
#include "host.h"

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

struct GmNetcdfRun {
    const GmDraws *d;
    char *path, *part;
    int socket;
    pid_t process;
    long block, sent;
    double last;  // when rows were sent
    bool failed;
};

typedef struct Head {  // of what is sent: so many rows of each chain; 0: the run has ended, after so many seconds
    long n;
    double sampling;
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

// Rows are gathered until a block is full: [chain][block][column], of which the first `n` of each chain are there.
static void write_all(const GmNetcdfRun *r, int from)
{
    const GmDraws *d = r->d;
    const size_t row = (size_t)d->n_columns, whole = (size_t)(r->block * d->chains) * row;
    double *block = gm_alloc(whole, sizeof *block), *part = gm_alloc(whole, sizeof *part);
    GmNetcdf *file = gm_netcdf_create(d, r->block);
    Head head = {0};
    long n = 0;
    bool good = true, ended = false;
    char *settings = NULL, *notes = NULL;
    while (take(from, &head, sizeof head) && !(ended = head.n == 0)) {
        if (head.settings + head.notes > 0) {
            free(settings);
            free(notes);
            settings = take_text(from, head.settings);
            notes = take_text(from, head.notes);
            gm_netcdf_about(file, settings, notes);
        }
        // a message has at most what is left of a block
        if (!take(from, part, (size_t)(head.n * d->chains) * row * sizeof *part)) break;
        for (int c = 0; c < d->chains; c++)
            memcpy(block + (size_t)(c * r->block + n) * row, part + (size_t)(c * head.n) * row, (size_t)head.n * row * sizeof *block);
        n += head.n;
        if (n < r->block) continue;
        good = good && gm_netcdf_put(file, r->part, block, n);
        n = 0;
    }
    for (int c = 1; c < d->chains && n > 0; c++)  // what is left of the last block lies without gaps
        memmove(block + (size_t)(c * n) * row, block + (size_t)(c * r->block) * row, (size_t)n * row * sizeof *block);
    if (n > 0 && good) gm_netcdf_put(file, r->part, block, n);
    char answer[ANSWER] = "";
    const char *why = gm_netcdf_close(file, r->path, ended ? head.sampling : 0, ended);
    if (why) snprintf(answer, sizeof answer, "%s", why);
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

GmNetcdfRun *gm_netcdf_begin(const GmDraws *d)
{
    GmNetcdfRun *r = gm_alloc(1, sizeof *r);
    char *path = gm_format("%s.nc", d->options->output);
    *r = (GmNetcdfRun){.d = d, .path = path, .block = d->block, .last = gm_seconds()};
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

long gm_netcdf_until(const GmNetcdfRun *r, long sweep, long batch)
{
    if (!r || r->d->held >= r->d->capacity) return batch;
    const GmOptions *o = r->d->options;
    const long last = o->warmup + (r->sent + r->d->held) * o->thin;  // after it a row would take the place of one that was not sent
    return batch < last - sweep ? batch : last - sweep;
}

bool gm_netcdf_take(GmNetcdfRun *r, bool all)
{
    if (!r || r->failed) return !r;
    const GmDraws *d = r->d;
    const bool due = all || d->kept - r->sent >= r->block || d->kept - r->sent >= d->held || gm_seconds() - r->last >= SECONDS;
    while (due && r->sent < d->kept && !r->failed) {
        const long left = r->block - r->sent % r->block, n = d->kept - r->sent < left ? d->kept - r->sent : left;
        Head head = {.n = n};
        char *notes = r->sent ? NULL : gm_draws_notes(d);
        if (!r->sent && d->settings) head.settings = (long)strlen(d->settings) + 1;
        if (notes) head.notes = (long)strlen(notes) + 1;
        r->failed = !give(r->socket, &head, sizeof head) || (head.settings && !give(r->socket, d->settings, (size_t)head.settings)) ||
                    (head.notes && !give(r->socket, notes, (size_t)head.notes));
        free(notes);
        for (int c = 0; c < d->chains; c++)
            for (long at = r->sent, some; at < r->sent + n && !r->failed; at += some) {  // rows that lie one after the other
                const long ahead = d->held - at % d->held;
                some = r->sent + n - at < ahead ? r->sent + n - at : ahead;
                r->failed = !give(r->socket, gm_draws_row(d, c, at), (size_t)(some * d->n_columns) * sizeof(double));
            }
        r->sent += n;
        r->last = gm_seconds();
    }
    if (r->failed) gm_error("%s: cannot be written: the process that writes it has ended", r->path);
    return !r->failed;
}

bool gm_netcdf_finish(GmNetcdfRun *r)
{
    if (!r || r->d->kept == 0) return true;
    const Head end = {.sampling = gm_seconds() - r->d->sampling};
    char answer[ANSWER] = "the process that writes it has ended";
    bool done = gm_netcdf_take(r, true);
    if (done) {
        const bool answered = give(r->socket, &end, sizeof end) && take(r->socket, answer, sizeof answer);
        const char *why = answered && !*answer ? gm_file_replace(r->part, r->path) : NULL;
        done = answered && !*answer && !why;
        if (!answered || *answer) gm_error("%s: cannot be written: %s", r->path, answer);
        else if (why) gm_error("%s: cannot be written: %s. It is complete, and is called %s", r->path, why, r->part);
        if (answered && !*answer) r->d = NULL;  // nothing is left to be removed
    }
    return done;
}

void gm_netcdf_end(GmNetcdfRun *r)
{
    if (!r) return;
    if (r->socket >= 0) close(r->socket);
    if (r->process > 0) waitpid(r->process, NULL, 0);
    if (r->d) unlink(r->part);  // it is not whole
    free(r->path);
    free(r->part);
    free(r);
}
