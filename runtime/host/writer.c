// writer.c -- rows of numbers into files, while the chains go on.
//
//   chain c stores rows  ->  a ring of rows for each chain  ->  thread c mod threads makes them text  ->  file c
//
// Making text of a number can take longer than drawing it, so the chains do not do it. A chain and the thread that writes its rows share
// two counts, of rows stored and of rows written; each changes one of them. The thread is woken once in a block of rows; the chain waits
// only if the ring is full. What is stored is in the file within a second, or when the writer is closed.
#include "draws.h"
#include "fields.h"
#include "messages.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BLOCK = 8192,      // numbers that are worth waking a thread for
    HELD = 8 * BLOCK,  // numbers that a chain may be ahead, and two rows at least
    TEXT = 1 << 16,    // bytes that a thread collects for one call of the system
    LINE = 64,         // bytes of a line of the cache
};

typedef struct Pen {  // a thread that writes
    GmWriter *writer;
    int first;  // its chains: first, first + pens, ...
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, room;  // a block was stored; rows were written
    bool closing, hurry;        // hurry: somebody waits until all is written
    char *text;                 // TEXT bytes
    size_t used;
} Pen;

typedef struct Chain {  // stands alone in its lines of the cache: chains do not slow each other down
    _Alignas(LINE) atomic_long stored;
    _Alignas(LINE) atomic_long written;
    atomic_bool failed;
    uint64_t sum;  // of the text of what is written
} Chain;

struct GmWriter {
    const double *rows;  // gm_writer_open
    int chains, pens, digits;
    long held, columns, block;
    FILE **file;
    char *const *name;
    Chain *chain;
    Pen *pen;
};

static Pen *pen_of(const GmWriter *w, int chain) { return &w->pen[chain % w->pens]; }

long gm_writer_held(long columns, long most)
{
    const long rows = HELD / columns > 2 ? HELD / columns : 2;
    return rows < most ? rows : most;
}

// ---- the threads ----

static void flush(Pen *p, int chain)
{
    GmWriter *w = p->writer;
    FILE *to = w->file[chain];
    const bool good = p->used == fwrite(p->text, 1, p->used, to) && fflush(to) == 0;
    p->used = 0;
    if (good) return;
    gm_error("%s: cannot be written: %s", w->name[chain], strerror(errno));
    atomic_store(&w->chain[chain].failed, true);
}

// Writes what is stored of a chain, a block at most. After a failure rows are dropped.
static void write_rows(Pen *p, int chain)
{
    GmWriter *w = p->writer;
    Chain *c = &w->chain[chain];
    const long from = atomic_load_explicit(&c->written, memory_order_relaxed),
               stored = atomic_load_explicit(&c->stored, memory_order_acquire);
    const long to = stored - from < w->block ? stored : from + w->block;
    for (long at = from; at < to; at++) {
        const double *row = w->rows + (size_t)(chain * w->held + at % w->held) * (size_t)w->columns;
        for (long k = 0; k < w->columns && !atomic_load_explicit(&c->failed, memory_order_relaxed); k++) {
            char *number = p->text + p->used;
            p->used += (size_t)gm_print_number(number, row[k], w->digits);
            p->text[p->used++] = k + 1 < w->columns ? ',' : '\n';
            c->sum = gm_mix(c->sum, number, (size_t)(p->text + p->used - number));
            if (p->used + GM_NUMBER_ROOM + 1 > TEXT) flush(p, chain);
        }
        atomic_store_explicit(&c->written, at + 1, memory_order_release);
    }
    if (p->used > 0) flush(p, chain);
}

static long waiting(const GmWriter *w, int chain) { return atomic_load(&w->chain[chain].stored) - atomic_load(&w->chain[chain].written); }

// Rows that wait in the longest queue of a pen's chains.
static long longest(const Pen *p)
{
    const GmWriter *w = p->writer;
    long most = 0;
    for (int c = p->first; c < w->chains; c += w->pens)
        if (waiting(w, c) > most) most = waiting(w, c);
    return most;
}

static void *write_all(void *argument)
{
    Pen *p = argument;
    GmWriter *w = p->writer;
    for (bool closing = false; !closing || longest(p) > 0;) {
        pthread_mutex_lock(&p->lock);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        while (!p->closing && !p->hurry && longest(p) < w->block && pthread_cond_timedwait(&p->work, &p->lock, &until) != ETIMEDOUT) {}
        closing = p->closing;
        pthread_mutex_unlock(&p->lock);
        for (int c = p->first; c < w->chains; c += w->pens)
            if (waiting(w, c) > 0) write_rows(p, c);
        pthread_mutex_lock(&p->lock);
        if (longest(p) == 0) p->hurry = false;
        pthread_cond_broadcast(&p->room);
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

static void pen_open(Pen *p, GmWriter *w, int first)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    *p = (Pen){.writer = w, .first = first, .text = gm_alloc(TEXT, 1)};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, &monotonic);
    pthread_cond_init(&p->room, NULL);
    pthread_condattr_destroy(&monotonic);
    const int error = pthread_create(&p->thread, NULL, write_all, p);
    if (error != 0) {
        gm_error("a thread that writes the draws cannot be started: %s", strerror(error));
        exit(GM_EXIT_FAULT);
    }
}

static void pen_close(Pen *p)
{
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->room);
    free(p->text);
}

// ---- the chains ----

bool gm_writer_room(GmWriter *w, int chain, long at)
{
    Chain *c = &w->chain[chain];
    if (at - atomic_load_explicit(&c->written, memory_order_acquire) >= w->held) {
        Pen *p = pen_of(w, chain);
        pthread_mutex_lock(&p->lock);
        pthread_cond_signal(&p->work);
        while (at - atomic_load(&c->written) >= w->held) pthread_cond_wait(&p->room, &p->lock);
        pthread_mutex_unlock(&p->lock);
    }
    return !atomic_load_explicit(&c->failed, memory_order_relaxed);
}

void gm_writer_stored(GmWriter *w, int chain, long at)
{
    atomic_store(&w->chain[chain].stored, at + 1);
    if ((at + 1) % w->block != 0) return;
    Pen *p = pen_of(w, chain);
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

GmWriter *gm_writer_open(double *rows, int chains, long held, long columns, FILE **file, char *const *name, int threads, int digits)
{
    GmWriter *w = gm_alloc(1, sizeof *w);
    *w = (GmWriter){.rows = rows,
                    .chains = chains,
                    .pens = threads < chains ? threads : chains,
                    .digits = digits,
                    .held = held,
                    .columns = columns,
                    .block = BLOCK / columns > 1 ? BLOCK / columns : 1,
                    .file = file,
                    .name = name};
    w->chain = aligned_alloc(LINE, (size_t)chains * sizeof *w->chain);
    if (!w->chain) gm_alloc(SIZE_MAX / 2, 1);
    for (int c = 0; c < chains; c++) w->chain[c] = (Chain){0};
    w->pen = gm_alloc((size_t)w->pens, sizeof *w->pen);
    for (int k = 0; k < w->pens; k++) pen_open(&w->pen[k], w, k);
    return w;
}

uint64_t gm_writer_sum(const GmWriter *w, int chain) { return w->chain[chain].sum; }

void gm_writer_begin(GmWriter *w, long at, const uint64_t *sum)
{
    for (int c = 0; c < w->chains; c++) {
        w->chain[c].sum = sum[c];
        atomic_store(&w->chain[c].written, at);
        atomic_store(&w->chain[c].stored, at);
    }
}

void gm_writer_flush(GmWriter *w)
{
    for (int k = 0; k < w->pens; k++) {
        Pen *p = &w->pen[k];
        pthread_mutex_lock(&p->lock);
        p->hurry = true;
        pthread_cond_signal(&p->work);
        while (p->hurry) pthread_cond_wait(&p->room, &p->lock);
        pthread_mutex_unlock(&p->lock);
    }
}

void gm_writer_close(GmWriter *w)
{
    for (int k = 0; k < w->pens; k++) pen_close(&w->pen[k]);
    free(w->pen);
    free(w->chain);
    free(w);
}
