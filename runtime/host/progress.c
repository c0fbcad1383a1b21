// progress.c -- a bar on a terminal; elsewhere silence, or a line now and then (--refresh).
#include "messages.h"
#include "output.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

double gm_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void gm_progress_open(GmProgress *p, const GmOptions *o, long total)
{
    *p = (GmProgress){.refresh = o->refresh, .total = total, .warmup = o->warmup, .started = gm_seconds()};
    p->bar = !o->quiet && o->refresh == 0 && isatty(STDERR_FILENO);
}

long gm_progress_until(const GmProgress *p, long sweep, long batch)
{
    const long left = p->refresh > 0 ? p->refresh - sweep % p->refresh : batch;
    return left < batch ? left : batch;
}

static void draw_bar(const GmProgress *p, long done, double now)
{
    enum { WIDTH = 40 };
    char bar[WIDTH + 1];
    const long full = WIDTH * done / p->total;
    memset(bar, ' ', WIDTH);
    memset(bar, '=', (size_t)full);
    bar[WIDTH] = 0;
    const double left = (now - p->started) * (double)(p->total - done) / (double)(done > p->first ? done - p->first : 1);
    fprintf(stderr, "\r[%s] %3ld %% %-8s %6.0f s left ", bar, 100 * done / p->total, done <= p->warmup ? "warm-up" : "sampling", left);
    fflush(stderr);
}

void gm_progress_show(GmProgress *p, long done)
{
    if (p->refresh > 0 && (done % p->refresh == 0 || done == p->total)) {
        gm_note("sweep %ld of %ld (%s)", done, p->total, done <= p->warmup ? "warm-up" : "sampling");
        return;
    }
    if (!p->bar) return;
    const double now = gm_seconds();
    if (now - p->drawn < 0.1 && done < p->total) return;
    p->drawn = now;
    draw_bar(p, done, now);
}

void gm_progress_close(GmProgress *p)
{
    if (p->bar && p->drawn > 0) fprintf(stderr, "\r%78s\r", "");
    p->bar = false;
}
