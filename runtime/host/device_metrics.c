// device_metrics.c -- metrics of HMC on a GPU that are not diagonal (device/metric.h): estimated here, by chain, as on a CPU.
//
//   a sweep of warm-up    a chain notes its draw, the gradient there and what the sweep took, in memory of its own       (nuts.h,
//                         nuts_adapt_linear)
//   every METRIC_ROWS     everything launched is done; the host reads what chains have noted and passes it to metric.c; where that changes
//                         the metric, vectors, D and a new search for a step size go back
//
// The machine of a chain points at its Metric in the GPU's memory, whose pointers are the GPU's; kernels and graphs know nothing of it.
// Meetings are after sweeps whose numbers are fixed, so that a seed gives the same draws. A metric that is used keeps its D, as on a CPU;
// when another estimate is due, D becomes what the chain's own estimates say.
#include "device_inside.h"
#include "../device/nuts.h"

#include <stdlib.h>
#include <string.h>

enum { AT_METRICS = GM_SCRATCHES - 2, ALIGNED = 256 };

// ---- memory of a chain: the Metric, the notes of sweeps, vectors ----

typedef struct Places {
    size_t notes, push, velocity, scale, last, along, across, draws, gradients, lower, upper, all;
} Places;

static size_t lay(size_t *at, size_t bytes)
{
    const size_t here = *at;
    *at += (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    return here;
}

// dense: there is room for a matrix; low_rank: for vectors.
static Places places_of(long n, bool low_rank, bool dense)
{
    size_t at = 0;
    const size_t vector = (size_t)n * sizeof(wide);
    Places p;
    lay(&at, sizeof(Metric));
    p.notes = lay(&at, METRIC_ROWS * sizeof(MetricNote));
    p.push = lay(&at, vector);
    p.velocity = lay(&at, vector);
    p.scale = lay(&at, vector);
    p.last = lay(&at, vector);
    p.along = lay(&at, low_rank ? METRIC_RANK * vector : 0);
    p.across = lay(&at, low_rank ? METRIC_RANK * vector : 0);
    p.draws = lay(&at, METRIC_ROWS * vector);
    p.gradients = lay(&at, METRIC_ROWS * vector);
    p.lower = lay(&at, dense ? (size_t)n * vector : 0);
    p.upper = lay(&at, dense ? (size_t)n * vector : 0);
    p.all = at;
    return p;
}

static Places places(const GmHmc *of)
{
    return places_of(of->coordinates, of->metric != METRIC_DENSE, metric_is_dense(of->coordinates, of->metric));
}

static wide *in(CUdeviceptr base, size_t at) { return (wide *)(uintptr_t)(base + at); }

static CUdeviceptr part_of(GmDevice *d, const GmDeviceMetric *e, int chain)
{
    return gm_device_scratch(d, AT_METRICS, d->metric_bytes) + e->first + (size_t)chain * e->apart;
}

static CUdeviceptr machine_of(const GmDevice *d, const GmDeviceMetric *e, int chain)
{
    return (CUdeviceptr)(uintptr_t) * (void *const *)(d->state + (size_t)chain * d->model->state_size + e->of.machine);
}

static CUdeviceptr vector_of(const GmDevice *d, const GmDeviceMetric *e, int chain, int which)
{
    return machine_of(d, e, chain) + (size_t)(NUTS_HEADER + which * e->of.coordinates) * sizeof(wide);
}

// ---- copies ----

static void put(GmDevice *d, CUdeviceptr to, const void *from, size_t bytes)
{
    if (!d->failed && bytes) gm_device_good(d, gm_device_put(d, to, from, bytes), "sending a metric");
}

static void get(GmDevice *d, void *to, CUdeviceptr from, size_t bytes)
{
    if (!d->failed && bytes) gm_device_good(d, gm_device_get(d, to, from, bytes), "fetching what chains have drawn");
}

// The metric as the chain's kernels see it. NULL: it is diagonal, and nothing is noted any more.
static void point_at(GmDevice *d, const GmDeviceMetric *e, int chain, CUdeviceptr metric)
{
    put(d, machine_of(d, e, chain) + offsetof(Nuts, linear), &metric, sizeof metric);
}

static void send(GmDevice *d, const GmDeviceMetric *e, int chain)
{
    const Metric *m = e->chain[chain];
    const CUdeviceptr base = part_of(d, e, chain);
    const Places p = places(&e->of);
    const size_t vector = (size_t)m->n * sizeof(wide);
    Metric there = {.n = m->n,
                    .used = m->used,
                    .full = m->full,
                    .rank = m->rank,
                    .push = in(base, p.push),
                    .velocity = in(base, p.velocity),
                    .along = in(base, p.along),
                    .across = in(base, p.across),
                    .scale = in(base, p.scale),
                    .lower = in(base, p.lower),
                    .upper = in(base, p.upper),
                    .draws = in(base, p.draws),
                    .gradients = in(base, p.gradients),
                    .notes = (MetricNote *)(uintptr_t)(base + p.notes),
                    .last = in(base, p.last)};
    if (d->failed) return;
    put(d, base, &there, sizeof there);
    if (!m->used) return;
    if (!m->full) {
        put(d, base + p.along, m->along, (size_t)m->rank * vector);
        put(d, base + p.across, m->across, (size_t)m->rank * vector);
        return;
    }
    wide *const upper = gm_alloc((size_t)(m->n * m->n), sizeof *upper);
    for (long i = 0; i < m->n; i++)
        for (long j = 0; j <= i; j++) upper[j * m->n + i] = m->lower[i * m->n + j];
    put(d, base + p.scale, m->scale, vector);
    put(d, base + p.lower, m->lower, (size_t)m->n * vector);
    put(d, base + p.upper, upper, (size_t)m->n * vector);
    free(upper);
}

// ---- opening ----

static GmDeviceMetric *known(GmDevice *d, const GmHmc *of)
{
    for (int k = 0; k < d->n_metrics; k++)
        if (d->metric[k].of.machine == of->machine) return &d->metric[k];
    return NULL;
}

void gm_device_metrics_open(GmDevice *d, GmRun *run, const GmHmc *of)
{
    GmDeviceMetric *e = known(d, of);
    if (d->rehearsing) {
        const bool looked_at = metric_is_looked_at(of->coordinates, of->metric);
        if (e || !looked_at || run->warmup < METRIC_ROWS) return;
        d->metric = gm_grow(d->metric, (size_t)d->n_metrics + 1, sizeof *d->metric);
        e = &d->metric[d->n_metrics++];
        *e = (GmDeviceMetric){.of = *of, .first = d->metric_bytes, .apart = places(of).all};
        d->metric_bytes += e->apart * (size_t)d->chains;
        gm_device_scratch(d, AT_METRICS, d->metric_bytes);
        return;
    }
    if (!e || e->opened || !run->metrics || d->failed || d->capturing || run->sweep >= run->warmup) return;
    e->opened = true;
    e->of = *of;
    e->chain = gm_alloc((size_t)d->chains, sizeof *e->chain);
    e->closed = gm_alloc((size_t)d->chains, sizeof *e->closed);
    for (int c = 0; c < d->chains && !of->together && !gm_fault_raised(); c++)
        if ((e->chain[c] = gm_metric_of(run->metrics, run, of, c))) {
            send(d, e, c);
            point_at(d, e, c, part_of(d, e, c));
        }
}

// ---- meetings ----

// Whether a chain may still get another metric.
static bool any_open(const GmDevice *d)
{
    bool open = false;
    for (int k = 0; k < d->n_metrics; k++)
        for (int c = 0; c < d->chains && d->metric[k].opened; c++) open |= d->metric[k].chain[c] != NULL;
    return open;
}

bool gm_device_metrics_due(const GmDevice *d, const GmRun *run)
{
    return run->sweep > 0 && run->sweep % METRIC_ROWS == 0 && run->sweep <= run->warmup && any_open(d);
}

long gm_device_metrics_until(const GmDevice *d, const GmRun *run, long batch)
{
    bool some = any_open(d);
    for (int k = 0; k < d->n_metrics; k++) some |= !d->metric[k].opened;  // it may begin with any sweep
    if (!some || run->sweep >= run->warmup) return batch;
    const long most = METRIC_ROWS - run->sweep % METRIC_ROWS;
    return batch < most ? batch : most;
}

// A chain at a meeting: what it has noted, room for its machine, of which some vectors alone are fetched, and what came of it.
typedef struct Meeting {
    MetricNote notes[METRIC_ROWS];
    wide *draws, *gradients, *room;
    int rows;
    // its last change before the metric stays; D is what the chain's estimates say now
    bool final, anew, decides, changed;
} Meeting;

static void fetch(GmDevice *d, GmDeviceMetric *e, int chain, Meeting *at)
{
    Metric *const metric = e->chain[chain];
    const size_t n = (size_t)e->of.coordinates, vector = n * sizeof(wide);
    const CUdeviceptr base = part_of(d, e, chain), noted = machine_of(d, e, chain) + offsetof(Nuts, noted);
    const Places p = places(&e->of);
    const int none = 0;
    static const int needed[] = {NUTS_METRIC, NUTS_FOREGROUND + 1, NUTS_FOREGROUND + 3};
    get(d, &at->rows, noted, sizeof at->rows);
    if (d->failed || at->rows <= 0) return;
    at->draws = gm_alloc(METRIC_ROWS * n, sizeof(wide));
    at->gradients = gm_alloc(METRIC_ROWS * n, sizeof(wide));
    at->room = gm_alloc((size_t)nuts_room((long)n), sizeof(wide));
    get(d, at->notes, base + p.notes, (size_t)at->rows * sizeof *at->notes);
    get(d, at->draws, base + p.draws, (size_t)at->rows * vector);
    get(d, at->gradients, base + p.gradients, (size_t)at->rows * vector);
    put(d, noted, &none, sizeof none);
    for (int k = 0; k < at->rows; k++)
        metric_note(metric, at->draws + k * metric->n, at->gradients + k * metric->n, at->notes[k].moved, at->notes[k].evaluations,
                    at->notes[k].divergent);
    // What is tried has to be decided while the metric may still change: the next meeting is too late.
    const bool closed = e->closed[chain];
    at->final = e->closed[chain] = at->notes[at->rows - 1].left <= METRIC_ROWS;
    at->decides = !(at->final && closed);
    at->anew = metric->used && !at->final && metric_due(metric, 0);
    Nuts *const m = nuts_of(at->room, metric->n);
    for (int k = 0; at->decides && k < (at->anew ? 3 : 1); k++)
        get(d, nuts_vector(m, needed[k]), vector_of(d, e, chain, needed[k]), vector);
}

static void decide(Metric *metric, Meeting *at)
{
    Nuts *const m = nuts_of(at->room, metric->n);
    if (at->anew) nuts_set_metric(m);
    at->changed = metric_decide(metric, nuts_metric(m), at->final ? 0 : at->notes[at->rows - 1].left);
}

static void update_metric(GmDevice *d, GmDeviceMetric *e, int chain, const Meeting *at)
{
    const Metric *const metric = e->chain[chain];
    if (at->anew || at->changed)
        put(d, vector_of(d, e, chain, NUTS_METRIC), nuts_metric(nuts_of(at->room, metric->n)), (size_t)metric->n * sizeof(wide));
    if (at->changed) {
        const int search = e->of.step == 0;
        send(d, e, chain);
        put(d, machine_of(d, e, chain) + offsetof(Nuts, search), &search, sizeof search);
    }
    if (metric->stage == METRIC_REFUSED && !metric->used) {
        point_at(d, e, chain, 0);
        e->chain[chain] = NULL;
    }
}

void gm_device_metrics_adapt(GmDevice *d, GmRun *run)
{
    gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "sweeping");
    for (int k = 0; k < d->n_metrics && !d->failed; k++) {
        GmDeviceMetric *const e = &d->metric[k];
        if (!e->opened) continue;
        Meeting *const at = gm_alloc((size_t)d->chains, sizeof *at);
        for (int c = 0; c < d->chains && !d->failed; c++)
            if (e->chain[c]) fetch(d, e, c, &at[c]);
#pragma omp parallel for num_threads(run->threads) schedule(dynamic)
        for (int c = 0; c < d->chains; c++)
            if (at[c].decides && !d->failed) decide(e->chain[c], &at[c]);
        for (int c = 0; c < d->chains; c++) {
            if (at[c].decides && !d->failed) update_metric(d, e, c, &at[c]);
            free(at[c].draws);
            free(at[c].gradients);
            free(at[c].room);
        }
        free(at);
    }
    if (run->sweep < run->warmup) return;
    for (int k = 0; k < d->n_metrics; k++)  // nothing changes any more
        for (int c = 0; c < d->chains && d->metric[k].opened; c++) d->metric[k].chain[c] = NULL;
}

void gm_device_metrics_close(GmDevice *d)
{
    for (int k = 0; k < d->n_metrics; k++) {
        free(d->metric[k].chain);
        free(d->metric[k].closed);
    }
    free(d->metric);
}
