// device_sparse.c -- joint normals whose precision has few entries on a GPU (runtime/device/sparse_tiles.h, backends/tiles.h).
//
// Where a term goes follows from data alone: a kernel lists the places once. From then on each sweep collects values, adds up those of each
// place and factors the tiles. That takes two pieces of GPU memory: the plan, and the work space of chains.
#include "device_inside.h"
#include "../backends/sparse.h"
#include "../backends/tiles.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SPARSE = 256, ALIGN = 256 };  // as in backends/sparse.c

typedef struct GmDeviceSparse {
    long n, iterations;
    GmTerms terms;
    SparsePlan plan;
    CUdeviceptr memory, work;  // 0: drawn by other updates
    size_t memory_size, work_size;
} GmDeviceSparse;

typedef struct GmDeviceSparses {
    CUdeviceptr terms;
    GmDeviceSparse of[MOST_SPARSE];
} GmDeviceSparses;

static size_t aligned(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

static void drop(GmDevice *d, GmDeviceSparse *s)
{
    gm_device_give(d, &s->memory, s->memory_size);
    gm_device_give(d, &s->work, s->work_size);
    s->memory = s->work = 0;
}

void gm_device_sparse_close(GmDevice *d)
{
    GmDeviceSparses *all = d->sparse;
    for (int k = 0; all && k < MOST_SPARSE; k++) drop(d, &all->of[k]);
    if (all) gm_device_give(d, &all->terms, sizeof(GmTerms) * MOST_SPARSE);
    free(all);
    d->sparse = NULL;
}

static GmDeviceSparse *sparse(GmDevice *d, int number)
{
    if (number < 1 || number > MOST_SPARSE) return NULL;
    if (!d->sparse) {
        d->sparse = gm_alloc(1, sizeof *d->sparse);
        if (!gm_device_have(d, &d->sparse->terms, sizeof(GmTerms) * MOST_SPARSE, "joint normals")) return NULL;
        const CUdeviceptr at = d->sparse->terms;
        gm_device_good(d, gm_device_put(d, d->place + offsetof(GmPlace, terms), &at, sizeof at), "sending the run's place");
    }
    return &d->sparse->of[number - 1];
}

// The kernel does what `mode` says with the terms.
static void list_terms(GmRun *run, const char *kernel, int number, GmDeviceSparse *s, int mode)
{
    GmDevice *d = run->device;
    s->terms.mode = mode;
    gm_device_good(d, gm_device_put(d, d->sparse->terms + sizeof(GmTerms) * (size_t)(number - 1), &s->terms, sizeof s->terms),
                   "sending terms");
    if (mode != GM_TERMS_COLLECT) gm_device_team(run, kernel, mode == GM_TERMS_MEASURE ? 1 : s->iterations);
}

// Parts of one memory, one after the other. With at = 0: how much there is of it.
typedef struct Packing {
    CUdeviceptr at;
    size_t size;
    GmDevice *d;
} Packing;

static void *pack(Packing *p, const void *from, size_t bytes)
{
    const CUdeviceptr to = p->at + p->size;
    p->size += aligned(bytes);
    if (p->at && from && bytes) gm_device_good(p->d, gm_device_put(p->d, to, from, bytes), "sending the plan of a joint normal");
    return (void *)(uintptr_t)to;
}

// Lays plan and work space out; false: the card has no room.
static bool lay_out(GmDevice *d, GmDeviceSparse *s, const GmTiles *t, const GmTileSums *sums, const int32_t *first_of_iteration)
{
    const long chains = d->chains;
    SparsePlan *p = &s->plan;
    *p = (SparsePlan){.n = t->n,
                      .tiles = t->tiles,
                      .factor = t->factor,
                      .stored = t->stored,
                      .sums = sums->sums,
                      .parts = sums->parts,
                      .longs = sums->longs,
                      .tasks = t->tasks,
                      .terms = s->terms.count};
    for (int filling = 0; filling < 2; filling++) {
        Packing m = {filling ? s->memory : 0, 0, d};
        s->terms.first = pack(&m, first_of_iteration, sizeof *first_of_iteration * (size_t)s->iterations);
        p->sum = pack(&m, sums->sum, sizeof *sums->sum * (size_t)sums->sums);
        p->longer = pack(&m, sums->longer, sizeof *sums->longer * (size_t)sums->longs);
        p->list = pack(&m, sums->list, sizeof *sums->list * (size_t)s->terms.count);
        p->task = pack(&m, t->task, sizeof *t->task * (size_t)t->tasks);
        p->update = pack(&m, t->update, sizeof *t->update * (size_t)t->updates);
        p->back = pack(&m, t->back, sizeof *t->back * (size_t)t->tiles);
        p->first_below = pack(&m, t->first_below, sizeof *t->first_below * (size_t)(t->tiles + 1));
        p->below = pack(&m, t->below, sizeof *t->below * (size_t)(t->factor - t->tiles));
        p->begin = pack(&m, t->begin, sizeof *t->begin * (size_t)(t->tiles + 1));
        p->element = pack(&m, t->element, sizeof *t->element * (size_t)t->n);
        s->terms.value = pack(&m, NULL, sizeof(double) * (size_t)(s->terms.count * chains));
        p->part = pack(&m, NULL, sizeof(double) * (size_t)(sums->parts * chains));
        p->value = s->terms.value;
        if (filling) break;
        s->memory_size = m.size + ALIGN;
        s->work_size = (size_t)(SPARSE_HEAD(p, chains) + chains * SPARSE_ZERO(p));
        if (gm_device_take(d, &s->memory, s->memory_size) != 0) s->memory = 0;
        if (s->memory && gm_device_take(d, &s->work, s->work_size) != 0) s->work = 0;
        if (s->work) continue;
        drop(d, s);
        return false;
    }
    p->scratch = (unsigned char *)(uintptr_t)s->work;
    return true;
}

// Tiles of the factor, and which terms are added up where; or other updates, where there is no memory for these.
static void collect_tiles(GmRun *run, const char *kernel, const char *name, int number, GmDeviceSparse *s, long count, const int32_t *row,
                          const int32_t *first)
{
    const int *of, *rows, *slot = gm_sparse_slots(number, &of, &rows);
    const GmTiles *t = gm_sparse_tiles(number);
    if (!t) return;
    GmTileSums sums = gm_tiles_sums(t, of, rows, slot, count, row, row + count);
    if (sums.list && lay_out(run->device, s, t, &sums, first)) list_terms(run, kernel, number, s, GM_TERMS_COLLECT);
    else gm_pattern_in_turn(number, s->n, name);
    gm_tiles_sums_close(&sums);
}

void gm_device_pattern(GmRun *run, const char *kernel, const char *name, int number, long n, double most)
{
    GmDevice *d = run->device;
    if (d->rehearsing || d->failed) return;
    GmDeviceSparse *s = sparse(d, number);
    gm_pattern_in_turn(number, n, name);
    if (!s || n <= 0) return;
    drop(d, s);
    *s = (GmDeviceSparse){.n = n};
    CUdeviceptr room = 0, iterations = 0;
    size_t bytes = sizeof(int64_t), places = 0;
    if (!gm_device_have(d, &iterations, bytes, "the terms of a joint normal")) return;
    s->terms.iterations = (int64_t *)(uintptr_t)iterations;
    gm_device_fill(d, iterations, 0, bytes, "clearing memory");
    list_terms(run, kernel, number, s, GM_TERMS_MEASURE);
    int64_t counted = 0;
    gm_device_good(d, gm_device_get(d, &counted, iterations, bytes), "the terms of a joint normal");
    gm_device_give(d, &iterations, bytes);
    s->iterations = counted;
    int32_t *first = gm_alloc((size_t)counted + 1, sizeof *first), *row = NULL;
    bytes = sizeof *first * (size_t)(counted + 1);
    if (!d->failed && gm_device_have(d, &room, bytes, "the terms of a joint normal")) {
        s->terms.first = (int32_t *)(uintptr_t)room;
        list_terms(run, kernel, number, s, GM_TERMS_COUNT);
        gm_device_good(d, gm_device_get(d, first, room, bytes), "the terms of a joint normal");
    }
    long count = 0;
    for (long k = 0; k < counted; k++) {
        const int32_t here = first[k];
        first[k] = (int32_t)count;
        count += here;
    }
    if (count < INT_MAX / 2 - n && !d->failed) {
        s->terms.count = count;
        places = sizeof *row * (size_t)(2 * count + 1);
        row = gm_alloc((size_t)(2 * count + 1), sizeof *row);
        CUdeviceptr noted = 0;
        gm_device_good(d, gm_device_put(d, room, first, bytes), "the terms of a joint normal");
        if (gm_device_have(d, &noted, places, "the terms of a joint normal")) {
            s->terms.row = (int32_t *)(uintptr_t)noted;
            s->terms.column = s->terms.row + count;
            list_terms(run, kernel, number, s, GM_TERMS_NOTE);
            gm_device_good(d, gm_device_get(d, row, noted, places), "the terms of a joint normal");
            gm_device_give(d, &noted, places);
        }
    }
    gm_device_give(d, &room, bytes);
    if (row && !d->failed) {
        gm_pattern_begin(number, n, most, name);
        for (long k = 0; k < count; k++)
            if (row[k] >= 0) gm_sparse_add(row[k], row[count + k], 0);
        gm_pattern_end(number, 1);
        collect_tiles(run, kernel, name, number, s, count, row, first);
    }
    free(first);
    free(row);
}

void gm_device_normal_sparse(GmRun *run, const char *kernel, uint32_t var, const char *name, int number, size_t x, size_t scale)
{
    GmDevice *d = run->device;
    GmDeviceSparse *s = d->sparse && !d->failed ? &d->sparse->of[number - 1] : NULL;
    if (!s || !s->work || d->rehearsing) return;
    SparsePlan p = s->plan;
    const size_t poisoned = (size_t)SPARSE_HEAD(&p, (long)d->chains);
    CUdeviceptr text = gm_device_text(d, name);
    uint64_t at_x = x, at_scale = scale;
    gm_device_team(run, kernel, s->iterations);
    gm_device_fill(d, s->work, 255, poisoned, "clearing work space");
    gm_device_fill(d, s->work + poisoned, 0, s->work_size - poisoned, "clearing work space");
    void *of_sums[] = {&p}, *of_tiles[] = {&d->states, &d->place, &var, &text, &d->chains, &at_x, &at_scale, &p};
    const long most = 16L * d->processors, blocks = (p.sums + GM_THREADS - 1) / GM_THREADS,
               warps = (p.longs + GM_THREADS / 32 - 1) / (GM_THREADS / 32), tasks = (p.tasks + p.tiles) * d->chains;
    gm_device_launch(d, d->stream, "gm_sparse_sums", (GmGrid){.x = blocks < most ? blocks : most, .y = d->chains}, of_sums);
    if (p.longs) gm_device_launch(d, d->stream, "gm_sparse_longs", (GmGrid){.x = warps < most ? warps : most, .y = d->chains}, of_sums);
    gm_device_launch(
        d, d->stream, "gm_sparse_tiles",
        (GmGrid){.x = tasks < DENSE_RESIDENT * d->processors ? tasks : DENSE_RESIDENT * d->processors, .threads = DENSE_THREADS}, of_tiles);
}
