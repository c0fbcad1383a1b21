// device_run.c -- the sweep loop on a GPU.
//
//   batch of sweeps -> device      graph of a sweep, or of a sweep whose draw is kept, replayed; nothing waits for the host
//   ring of draws   -> host        on a second stream, while the next batch runs; then the files
//
// The first sweep of each kind is launched plainly, so that whatever it allocates is there; then it is captured. What the host needs to
// know of a batch (draws kept, a fault) comes with its draws.
#include "fields.h"
#include "device_inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../backends/sparse.h"

// ---- one sweep ----

// Log joint, derived quantities and one row of the ring.
static void keep_draw(GmDevice *d, GmRun *run)
{
    if (d->log_joint) {  // first: `derive` makes elements that do not exist NaN
        d->no_result = true;
        d->model->log_joint(run, 0);
        d->no_result = false;
    }
    if (d->derive) d->model->derive(run);
    void *gather[] = {&d->states, &d->place, &d->column, &d->columns, &d->kept, &d->slots, &d->ring};
    const long blocks = (d->columns + GM_THREADS - 1) / GM_THREADS, most = 16L * d->processors;
    gm_device_launch(d, d->stream, "gm_gather", (GmGrid){.x = blocks < most ? blocks : most, .y = d->chains}, gather);
    void *gathered[] = {&d->place, &d->kept};
    gm_device_launch(d, d->stream, "gm_gathered", (GmGrid){.x = 1, .threads = 1}, gathered);
    if (d->derive && d->model->restore) d->model->restore(run);
}

// A row of what selected are made from.
static void watch(GmDevice *d)
{
    long slots = GM_WATCHED;
    void *gather[] = {&d->states, &d->place, &d->watched_column, &d->watched_columns, &d->watched_kept, &slots, &d->watched_ring};
    gm_device_launch(d, d->stream, "gm_gather", (GmGrid){.x = (d->watched_columns + GM_THREADS - 1) / GM_THREADS, .y = d->chains}, gather);
    void *gathered[] = {&d->place, &d->watched_kept};
    gm_device_launch(d, d->stream, "gm_gathered", (GmGrid){.x = 1, .threads = 1}, gathered);
}

static void plain_sweep(GmDevice *d, GmRun *run, void (*sweep)(GmRun *), GmSweepKind kind)
{
    run->chain = 0;
    sweep(run);
    if (kind == GM_KEPT_SWEEP) keep_draw(d, run);
    if (kind == GM_WATCHED_SWEEP) watch(d);
    void *next[] = {&d->place};
    gm_device_launch(d, d->stream, "gm_next_sweep", (GmGrid){.x = 1, .threads = 1}, next);
}

// A sweep as a graph. Where capturing does not work, sweeps stay plain: slower, but the same.
static void capture(GmDevice *d, GmRun *run, void (*sweep)(GmRun *), GmForm *form, GmSweepKind kind)
{
    CUgraph graph = NULL;
    if (gm_cuda.cuStreamBeginCapture(d->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != 0) {
        d->plain = true;
        return;
    }
    d->capturing = true;
    plain_sweep(d, run, sweep, kind);
    d->capturing = false;
    int result = gm_cuda.cuStreamEndCapture(d->stream, &graph);
    if (result == 0 && graph) result = gm_cuda.cuGraphInstantiate(&form->graph[kind], graph, 0);
    if (graph) gm_cuda.cuGraphDestroy(graph);
    if (result != 0) {
        form->graph[kind] = NULL;
        d->plain = true;
    }
}

static GmForm *form_of(GmDevice *d, uint64_t number)
{
    for (int k = 0; k < d->n_forms; k++)
        if (d->form[k].number == number) return &d->form[k];
    if (d->n_forms == GM_MOST_FORMS) {  // more than selections that are usual: those of earlier phases among them
        gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "sweeping");
        gm_device_graphs_drop(d);
    }
    d->form[d->n_forms] = (GmForm){.number = number};
    return &d->form[d->n_forms++];
}

void gm_device_sweeps(GmRun *run, void (*sweep)(GmRun *))
{
    GmDevice *d = run->device;
    if (d->rehearsing) {
        run->chain = 0;
        sweep(run);
        return;
    }
    const long batch = run->batch > 0 ? run->batch : 1;
    for (long k = 0; k < batch && !d->failed; k++) {
        const long sampled = run->sweep + k + 1 - run->warmup;
        const bool kept = d->keeping && sampled > 0 && sampled % d->keeping->thin == 0;
        const GmSweepKind kind = kept ? GM_KEPT_SWEEP : gm_trials_watch(d->selected, run->sweep + k) ? GM_WATCHED_SWEEP : GM_PLAIN_SWEEP;
        GmForm *form = form_of(d, gm_trials_form(d->selected, run->sweep + k));
        if (form->made[kind] > 0 && !form->graph[kind] && !d->plain) capture(d, run, sweep, form, kind);
        if (form->graph[kind]) gm_device_good(d, gm_cuda.cuGraphLaunch(form->graph[kind], d->stream), "launching a sweep");
        else plain_sweep(d, run, sweep, kind);
        form->made[kind]++;
        d->watched += kind == GM_WATCHED_SWEEP;
    }
}

// ---- draws on their way out ----

typedef struct Gathered {
    uint64_t offset;
    int64_t element, type;
} Gathered;  // as struct GmGathered of runtime_cuda.h

enum { MOST_SLOTS = 4096, RING = 32 << 20 };

// Rows of the ring, for all chains: an even number.
static long slots_of(const GmDevice *d, const GmDraws *draws)
{
    const size_t row = sizeof(double) * (size_t)draws->n_columns * (size_t)d->chains;
    const long slots = 2 * (long)(RING / 2 / row > 1 ? RING / 2 / row : 1);
    return slots < MOST_SLOTS ? slots : MOST_SLOTS;
}

size_t gm_device_ring_size(const GmDevice *d, const GmDraws *draws)
{
    return draws ? (sizeof(double) * (size_t)d->chains * (size_t)slots_of(d, draws) + sizeof(Gathered)) * (size_t)draws->n_columns +
                       sizeof(uint64_t)
                 : 0;
}

static bool open_ring(GmDevice *d, const GmDraws *draws, const GmOptions *o)
{
    d->columns = draws->n_columns;
    d->slots = slots_of(d, draws);
    const size_t row = sizeof(double) * (size_t)d->columns * (size_t)d->chains;
    Gathered *column = gm_alloc((size_t)d->columns, sizeof *column);
    for (long c = 0; c < d->columns; c++) {
        const GmColumn *from = &draws->column[c];
        column[c] = from->field < 0 ? (Gathered){0, 0, -1}
                    : from->absent && !from->into
                        ? (Gathered){0, 0, -2}
                        : (Gathered){d->model->state[from->field].offset, from->element, d->model->state[from->field].type};
    }
    gm_device_have(d, &d->column, sizeof *column * (size_t)d->columns, "the columns of the draws");
    if (!d->failed)
        gm_device_good(d, gm_device_put(d, d->column, column, sizeof *column * (size_t)d->columns), "sending the columns of the draws");
    free(column);
    gm_device_have(d, &d->kept, sizeof(uint64_t), "a count");
    gm_device_have(d, &d->ring, row * (size_t)d->slots, "the draws (--params can keep fewer)");
    d->keeping = o;
    return !d->failed;
}

// What comes back of a batch.
typedef struct Batch {
    double *rows;                // [slots / 2][chains][columns]; pinned
    GmPlace *place;              // pinned
    uint64_t *kept;              // pinned: the count at its end, and at its begin
    CUevent begun, ended, done;  // its sweeps; its draws are here
    long sweeps;                 // 0: no batch is under way
    long first;                  // number of its first draw, of a chain
} Batch;

static bool open_batch(GmDevice *d, Batch *b)
{
    const size_t bytes = sizeof(double) * (size_t)d->columns * (size_t)d->chains * (size_t)(d->slots / 2);
    *b = (Batch){0};
    gm_device_have_host(d, (void **)&b->rows, bytes, "draws");
    gm_device_have_host(d, (void **)&b->place, sizeof *b->place, "draws");
    gm_device_have_host(d, (void **)&b->kept, 2 * sizeof *b->kept, "draws");
    if (!d->failed) gm_device_good(d, gm_cuda.cuEventCreate(&b->begun, CU_EVENT_DEFAULT), "an event");
    if (!d->failed) gm_device_good(d, gm_cuda.cuEventCreate(&b->ended, CU_EVENT_DEFAULT), "an event");
    if (!d->failed) gm_device_good(d, gm_cuda.cuEventCreate(&b->done, CU_EVENT_DISABLE_TIMING), "an event");
    return !d->failed;
}

static void close_batch(Batch *b)
{
    if (b->rows) gm_cuda.cuMemFreeHost(b->rows);
    if (b->place) gm_cuda.cuMemFreeHost(b->place);
    if (b->kept) gm_cuda.cuMemFreeHost(b->kept);
    if (b->begun) gm_cuda.cuEventDestroy(b->begun);
    if (b->ended) gm_cuda.cuEventDestroy(b->ended);
    if (b->done) gm_cuda.cuEventDestroy(b->done);
}

static long kept_before(const GmOptions *o, long sweep) { return sweep > o->warmup ? (sweep - o->warmup) / o->thin : 0; }

// Launches a batch into one half of the ring, and the copies that follow it.
static void begin(GmDevice *d, GmRun *run, const GmOptions *o, Batch *b, int half, long sweeps)
{
    const long first = kept_before(o, run->sweep), draws = kept_before(o, run->sweep + sweeps) - first;
    const size_t row = sizeof(double) * (size_t)d->columns * (size_t)d->chains, at = (size_t)(half * (d->slots / 2));
    b->sweeps = sweeps;
    b->first = first;
    b->kept[1] = at;
    gm_device_good(d, gm_cuda.cuMemcpyHtoDAsync(d->kept, &b->kept[1], sizeof *b->kept, d->stream), "sending a count");
    run->batch = sweeps;
    gm_device_good(d, gm_cuda.cuEventRecord(b->begun, d->stream), "an event");
    d->model->sweep(run);
    gm_device_good(d, gm_cuda.cuEventRecord(b->ended, d->stream), "an event");
    run->sweep += sweeps;
    gm_device_good(d, gm_cuda.cuEventRecord(d->fork, d->stream), "an event");
    gm_device_good(d, gm_cuda.cuStreamWaitEvent(d->copies, d->fork, 0), "an event");
    // The place and the count change with the next batch: they are copied in the main stream.
    gm_device_good(d, gm_cuda.cuMemcpyDtoHAsync(b->place, d->place, sizeof *b->place, d->stream), "fetching the run's place");
    gm_device_good(d, gm_cuda.cuMemcpyDtoHAsync(b->kept, d->kept, sizeof *b->kept, d->stream), "fetching a count");
    if (draws > 0)
        gm_device_good(d, gm_cuda.cuMemcpyDtoHAsync(b->rows, d->ring + row * at, row * (size_t)draws, d->copies), "fetching draws");
    gm_device_good(d, gm_cuda.cuEventRecord(d->join[0], d->stream), "an event");
    gm_device_good(d, gm_cuda.cuStreamWaitEvent(d->copies, d->join[0], 0), "an event");
    gm_device_good(d, gm_cuda.cuEventRecord(b->done, d->copies), "an event");
}

// Milliseconds a sweep of a batch, among those of the last batches of about its size; the small ones of the start drop out.
static void keep_pace(GmDevice *d, const Batch *b, long sweeps)
{
    float ms = 0;
    if (gm_cuda.cuEventElapsedTime(&ms, b->begun, b->ended) != 0 || 2 * sweeps <= d->pace_sweeps) return;
    if (sweeps >= 2 * d->pace_sweeps) {
        d->pace_sweeps = sweeps;
        d->paces = 0;
    }
    d->pace[d->paces++ % GM_MOST_PACES] = (double)ms / (double)sweeps;
}

static int by_size(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

double gm_device_pace(const GmDevice *d)
{
    const size_t n = (size_t)(d->paces < GM_MOST_PACES ? d->paces : GM_MOST_PACES);
    double sorted[GM_MOST_PACES];
    memcpy(sorted, d->pace, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_size);
    return n ? 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]) : 0;
}

// Waits for a batch and stores its draws. Returns the status that it ends with, or GM_EXIT_OK.
static int end(GmDevice *d, GmRun *run, GmDraws *draws, Batch *b)
{
    const long sweeps = b->sweeps;
    b->sweeps = 0;
    if (!gm_device_good(d, gm_cuda.cuEventSynchronize(b->done), "sweeping")) return (int)d->status;
    keep_pace(d, b, sweeps);
    const long n = (long)(b->kept[0] - b->kept[1]);
    if (n > 0 && b->first == 0) {                    // warm-up is over
        for (int k = 0; k < run->n_together; k++) {  // HMC updates that were not selected are not made
            GmTogether *t = &run->together[k];
            if (t->made && t->of.selection && !run->selected[t->of.selection - 1].gradients) t->made = 0;
        }
        gm_device_learned(d, run);
        for (int c = 0; c < d->chains; c++) gm_draws_begin(draws, run, d->selected, NULL, c);
        if (d->failed) return (int)d->status;
    }
    for (long k = 0; k < n; k++) {
        for (int c = 0; c < d->chains; c++)
            if (!gm_draws_store(draws, c, b->first + k, b->rows + (k * d->chains + c) * d->columns)) return GM_EXIT_FAULT;
        draws->kept = b->first + k + 1;
        if (!gm_netcdf_take(draws->netcdf, false)) return GM_EXIT_FAULT;
    }
    return gm_device_fault(d, run, b->place) ? GM_EXIT_FAULT : GM_EXIT_OK;
}

// Copies a string out of the device's memory piece by piece: it may end where memory ends.
static const char *fetch_text(const char *at)
{
    char text[400];
    size_t n = 0;
    while (n + 1 < sizeof text && gm_cuda.cuMemcpyDtoH(text + n, (CUdeviceptr)(uintptr_t)(at + n), 1) == 0 && text[n]) n++;
    text[n] = 0;
    return gm_copy_text(text);  // kept to the end of the program: gm_fault holds it
}

bool gm_device_fault(GmDevice *d, GmRun *run, const GmPlace *place)
{
    if (d->failed || !place->fault || gm_fault_raised()) return place->fault;
    gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "waiting");
    GmRun at = *run;
    at.sweep = (long)place->sweep;
    const char *name = fetch_text(place->fault_variable), *what = fetch_text(place->fault_what);
    long number[GM_MOST_NUMBERS];
    for (int i = 0; i < GM_MOST_NUMBERS; i++) number[i] = (long)place->fault_number[i];
    if (place->fault_numbers > 0) gm_fault_at(&at, place->fault_chain, name, what, (int)place->fault_numbers, number);
    else gm_fault(&at, place->fault_chain, name, place->fault_element, what);
    return true;
}

int gm_found_fault(GmRun *run) { return run->only_asking || (run->device && !gm_device_settled(run->device, run)) || gm_fault_raised(); }

// Draws that were not made, which chains have counted.
static void take_stayed(GmDevice *d)
{
    GmPlace place = {0};
    if (!d->failed) gm_device_good(d, gm_device_get(d, &place, d->place, sizeof place), "fetching the run's place");
    if (!d->failed && place.stayed) gm_stayed(fetch_text(place.stayed_variable), place.stayed);
}

bool gm_device_settled(GmDevice *d, GmRun *run)
{
    GmPlace place = {0};
    if (!d->failed) gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "setting up");
    if (!d->failed) gm_device_good(d, gm_device_get(d, &place, d->place, sizeof place), "fetching the run's place");
    gm_device_fault(d, run, &place);
    return !d->failed;
}

// ---- selected ----

static bool open_trials(GmDevice *d, GmTrials *selected)
{
    d->selected = selected;
    d->watched_columns = selected ? gm_trials_columns(selected, NULL) : 0;
    if (d->watched_columns == 0) return true;
    const size_t n = (size_t)d->watched_columns, row = n * (size_t)d->chains * sizeof(double);
    GmWatched *watched = gm_alloc(n, sizeof *watched);
    Gathered *column = gm_alloc(n, sizeof *column);
    gm_trials_columns(selected, watched);
    for (size_t i = 0; i < n; i++) column[i] = (Gathered){d->model->state[watched[i].field].offset, watched[i].element, watched[i].type};
    gm_device_have(d, &d->watched_column, n * sizeof *column, "what is measured in warm-up");
    gm_device_have(d, &d->watched_kept, sizeof(uint64_t), "a count");
    gm_device_have(d, &d->watched_ring, row * GM_WATCHED, "what is measured in warm-up");
    if (!d->failed) gm_device_good(d, gm_device_put(d, d->watched_column, column, n * sizeof *column), "sending columns");
    if (!d->failed) gm_device_fill(d, d->watched_kept, 0, sizeof(uint64_t), "clearing a count");
    free(watched);
    free(column);
    return !d->failed;
}

// The rows since the last meeting. Where no column is watched, as in a short warm-up, there is no ring; the chains meet without rows.
static void take_watched(GmDevice *d, const GmRun *run)
{
    const size_t row = (size_t)d->watched_columns * (size_t)d->chains;
    double *rows = gm_alloc(row * (size_t)d->watched + 1, sizeof *rows);
    if (d->watched > 0)
        gm_device_good(d, gm_device_get(d, rows, d->watched_ring, row * (size_t)d->watched * sizeof *rows), "fetching what is measured");
    if (!d->failed) gm_trials_watched(d->selected, run->sweep, d->watched, rows);
    free(rows);
    if (d->watched_columns) gm_device_fill(d, d->watched_kept, 0, sizeof(uint64_t), "clearing a count");
    d->watched = 0;
}

// Chains meet: everything launched is done, and the rows since the last meeting are taken. The diagnostics of HMC are 0 in sweeps that have
// none.
static void meet(GmDevice *d, const GmRun *run)
{
    take_watched(d, run);
    gm_trials_form(d->selected, run->sweep);
    for (int k = 0; k < d->model->n_selections && !d->failed; k++)
        for (int c = 0; c < d->chains && !run->selected[k].gradients; c++) {
            const GmField *diagnostics = &d->model->state[d->model->selections[k].diagnostics - 1];
            const CUdeviceptr at =
                (CUdeviceptr)(uintptr_t) * (void *const *)(d->state + (size_t)c * d->model->state_size + diagnostics->offset);
            gm_device_fill(d, at, 0, GM_HMC_NUMBERS * gm_device_element(d, diagnostics->type), "clearing the diagnostics of HMC");
        }
}

// Of a run that ends early, what is under way is kept; gives: how many sweeps.
static long keep_under_way(GmDevice *d, GmRun *run, GmDraws *draws, Batch *batch, int half, int *status)
{
    long done = 0;
    for (int k = 0; k < 2 && *status != GM_EXIT_FAULT; k++, half = 1 - half) {
        if (batch[1 - half].sweeps == 0) continue;
        done += batch[1 - half].sweeps;
        if (end(d, run, draws, &batch[1 - half]) != GM_EXIT_OK) *status = GM_EXIT_FAULT;
    }
    return done;
}

int gm_device_sample(GmDevice *d, GmRun *run, GmDraws *draws, const GmOptions *o, GmTrials *selected, GmProgress *progress, long *sweeps)
{
    const long total = o->warmup + o->samples * o->thin;
    gm_device_heads_fill(d);
    d->derive = d->model->derive && gm_draws_need_derived(draws, d->model);
    d->log_joint = o->log_joint;
    Batch batch[2] = {{0}, {0}};
    int status = open_trials(d, selected) && open_ring(d, draws, o) && open_batch(d, &batch[0]) && open_batch(d, &batch[1])
                     ? GM_EXIT_OK
                     : (int)d->status;
    long size = 1, done = 0, adapted = 0;
    int half = 0;
    double before = gm_seconds();
    run->sweep = 0;
    while (status == GM_EXIT_OK && done < total) {
        const bool choose = gm_trials_due(selected, run->sweep), metrics = run->sweep != adapted && gm_device_metrics_due(d, run);
        if (choose || metrics) {
            const long under_way = batch[1 - half].sweeps;
            if (under_way > 0) status = end(d, run, draws, &batch[1 - half]);
            done += under_way;
            if (status == GM_EXIT_OK && metrics) gm_device_metrics_adapt(d, run);
            if (status == GM_EXIT_OK && choose) meet(d, run);
            adapted = run->sweep;
            before = gm_seconds();
            if (status != GM_EXIT_OK || d->failed) {
                status = d->failed ? (int)d->status : status;
                break;
            }
        }
        long n = gm_progress_until(progress, run->sweep, size < total - run->sweep ? size : total - run->sweep);
        n = gm_device_metrics_until(d, run, gm_trials_until(selected, run->sweep, n));
        while (n > 1 && kept_before(o, run->sweep + n) - kept_before(o, run->sweep) > d->slots / 2) n = (n + 1) / 2;
        if (n > 0) begin(d, run, o, &batch[half], half, n);
        half = 1 - half;
        const long earlier = batch[half].sweeps;
        if (earlier > 0) {
            status = end(d, run, draws, &batch[half]);
            done += earlier;
            const double now = gm_seconds();
            if (now - before < 0.05 && size < 100000 && earlier >= size / 2) size *= 2;
            else if (now - before > 0.2 && size > 1) size /= 2;
            before = now;
            gm_progress_show(progress, done);
        }
        if (d->failed) status = (int)d->status;
        else if (status == GM_EXIT_OK && gm_fault_raised()) status = GM_EXIT_FAULT;
        else if (gm_interrupted() && status == GM_EXIT_OK) status = GM_EXIT_INTERRUPTED;
        else if (gm_stop_left(o) <= 0 && status == GM_EXIT_OK) status = GM_EXIT_TIME;
    }
    if (status == GM_EXIT_INTERRUPTED || status == GM_EXIT_TIME) done += keep_under_way(d, run, draws, batch, half, &status);
    if (!d->failed) gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "sweeping");
    if (!d->failed) gm_device_good(d, gm_cuda.cuStreamSynchronize(d->copies), "fetching draws");
    for (int k = 0; k < 2; k++) close_batch(&batch[k]);
    take_stayed(d);
    *sweeps = done;
    if (d->profile) gm_device_time_collect(d);
    return d->failed ? (int)d->status : status;
}

// ---- --profile ----

static int by_seconds(const void *a, const void *b)
{
    const double x = ((const GmKernelEntry *)a)->seconds, y = ((const GmKernelEntry *)b)->seconds;
    return (x < y) - (x > y);
}

void gm_device_profile_print(GmDevice *d, FILE *to, long sweeps)
{
    GmKernelEntry *sorted = gm_alloc((size_t)d->n_kernels, sizeof *sorted);
    memcpy(sorted, d->kernel, (size_t)d->n_kernels * sizeof *sorted);
    qsort(sorted, (size_t)d->n_kernels, sizeof *sorted, by_seconds);
    double total = 0;
    for (int k = 0; k < d->n_kernels; k++) total += sorted[k].seconds;
    for (int k = 1; gm_sparse_route(k); k++) fprintf(to, "%s\n", gm_sparse_route(k));
    fprintf(to, "%-36s %10s %12s %12s %6s\n", "kernel", "launches", "us a launch", "us a sweep", "%");
    for (int k = 0; k < d->n_kernels; k++)
        if (sorted[k].launches > 0)
            fprintf(to, "%-36s %10ld %12.2f %12.2f %6.1f\n", sorted[k].name, sorted[k].launches,
                    1e6 * sorted[k].seconds / (double)sorted[k].launches, 1e6 * sorted[k].seconds / (double)(sweeps > 0 ? sweeps : 1),
                    100 * sorted[k].seconds / (total > 0 ? total : 1));
    fprintf(to, "%-36s %10s %12s %12.2f %6.1f\n", "all", "", "", 1e6 * total / (double)(sweeps > 0 ? sweeps : 1), 100.0);
    free(sorted);
}

// ---- --compare-devices ----

// Worst difference of an array, relative to the largest element of the CPU's or to `least`, which is 1 for sums: they may cancel. Integers
// count as 0 or 1.
static double difference(GmType type, const void *cpu, const void *gpu, long n, double least)
{
    double worst = 0, most = least;
    for (long i = 0; i < n; i++) {
        if (type == GM_INT) {
            if (((const int32_t *)cpu)[i] != ((const int32_t *)gpu)[i]) return 1;
            continue;
        }
        const double a = ((const double *)cpu)[i], b = ((const double *)gpu)[i];
        if (a == b || (isnan(a) && isnan(b))) continue;
        if (!isfinite(a) || !isfinite(b)) return INFINITY;
        if (fabs(a) > most) most = fabs(a);
        if (fabs(a - b) > worst) worst = fabs(a - b);
    }
    if (type == GM_INT) return 0;
    for (long i = 0; i < n; i++) {
        const double a = fabs(((const double *)cpu)[i]);
        if (isfinite(a) && a > most) most = a;
    }
    return most > 0 ? worst / most : worst;
}

// Work arrays belong to one update: they are laid out as suits each device. What it leaves in variables and in sums of data is
// compared.
static bool is_compared(const GmField *f) { return f->type != GM_SOLVE && (f->role != GM_SUM || f->shared); }

typedef struct Worst {
    double difference;
    const char *name;
} Worst;

static void compare_field(GmDevice *d, const GmMemory *m, int chain, int f, double least, Worst *w)
{
    const GmField *field = &d->model->state[f];
    const long n = gm_shape_size(&m->shape[f]);
    void *gpu = gm_alloc((size_t)n, sizeof(double));
    gm_device_download(d, m, chain, f, gpu);
    const double x = difference(field->type, gm_state_array(d->model, m, chain, f), gpu, n, least);
    if (!(x <= w->difference)) *w = (Worst){x, field->name};
    free(gpu);
}

static Worst compare_all(GmDevice *d, const GmMemory *m)
{
    Worst w = {0, ""};
    for (int c = 0; c < d->chains && !d->failed; c++)
        for (int f = 0; f < d->model->n_state && !d->failed; f++)
            if (is_compared(&d->model->state[f])) compare_field(d, m, c, f, d->model->state[f].role == GM_SUM ? 1 : 0, &w);
    return w;
}

static int only_evaluate(GmRun *run, const GmHmc *of, void (*density)(GmRun *))
{
    (void)of;
    density(run);
    return 1;
}

// HMC under method selection is evaluated, not made: it begins at the state after the Gibbs updates.
static int only_if_selected(GmRun *run, const GmHmc *of, void (*density)(GmRun *))
{
    return of->selection ? only_evaluate(run, of, density) : 0;
}

// The log density of the last HMC update and its gradient by the coordinates, at the states of the chains on both devices.
static Worst compare_derivatives(GmDevice *d, GmRun *on_gpu, GmRun *on_cpu, int step, const GmMemory *m)
{
    Worst w = {0, ""};
    gm_device_upload(d, m);
    on_cpu->instead = on_gpu->instead = only_evaluate;
    d->model->update(on_cpu, step);
    d->model->update(on_gpu, step);
    gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "a log density");
    on_cpu->instead = on_gpu->instead = only_if_selected;
    for (int c = 0; c < d->chains && !d->failed; c++)
        for (int f = 0; f < d->model->n_state && !d->failed; f++)
            if (d->model->state[f].offset == d->moved.gradient || d->model->state[f].offset == d->moved.value)
                compare_field(d, m, c, f, 1, &w);
    return w;
}

// A maximum that is found by comparing values of the density is known to the root of their rounding (climb of modes.h).
static double tolerance(const GmDevice *d) { return d->model->for_modes ? 1e-6 : 1e-9; }

static bool verdict(const GmDevice *d, const char *step, Worst w)
{
    const bool good = w.difference <= tolerance(d);
    printf("%-40s %12.3g  %s%s%s\n", step, w.difference, good ? "ok" : "FAILED", *w.name && !good ? ": " : "", good ? "" : w.name);
    return good;
}

int gm_device_compare(GmDevice *d, const GmModel *model, GmRun *on_gpu, GmRun *on_cpu, const GmMemory *m)
{
    enum { SWEEPS = 3 };
    bool good = true;
    GmSelected *all = gm_alloc((size_t)model->n_selections * (size_t)d->chains + 1, sizeof *all);
    for (int k = 0; k < model->n_selections * d->chains; k++) all[k].also = 1;
    on_cpu->selected = on_gpu->selected = all;
    on_cpu->instead = on_gpu->instead = only_if_selected;
    printf("%-40s %12s\n", "step", "difference");
    good &= verdict(d, "sums of data", compare_all(d, m));
    for (long sweep = 0; sweep < SWEEPS && !d->failed && !gm_fault_raised(); sweep++) {
        on_cpu->sweep = on_gpu->sweep = sweep;
        for (int k = 0; k < model->n_updates && !d->failed && !gm_fault_raised(); k++) {
            gm_device_upload(d, m);  // both begin where the CPU stands
            d->moved = (GmHmc){0};
            model->update(on_cpu, k);
            model->update(on_gpu, k);
            gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "a step");
            const Worst w = compare_all(d, m);
            if (sweep == SWEEPS - 1 || !(w.difference <= tolerance(d))) good &= verdict(d, model->update_name(k), w);
            if (d->moved.name) {
                const Worst slopes = compare_derivatives(d, on_gpu, on_cpu, k, m);
                if (sweep == SWEEPS - 1 || !(slopes.difference <= tolerance(d)))
                    good &= verdict(d, "  its density and derivatives", slopes);
            }
        }
        if (sweep == SWEEPS - 1 && !d->failed) {
            gm_device_upload(d, m);
            for (int c = 0; c < d->chains; c++) {
                const double cpu = model->log_joint(on_cpu, c), gpu = model->log_joint(on_gpu, c);
                good &= verdict(d, "log joint",
                                (Worst){cpu == gpu || (isnan(cpu) && isnan(gpu)) ? 0 : fabs(cpu - gpu) / (fabs(cpu) + 1), "lp__"});
            }
        }
        void *next[] = {&d->place};
        gm_device_launch(d, d->stream, "gm_next_sweep", (GmGrid){.x = 1, .threads = 1}, next);
    }
    on_cpu->selected = on_gpu->selected = NULL;
    free(all);
    if (!gm_device_settled(d, on_gpu) || gm_fault_raised()) {
        gm_fault_print(model, m, NULL);
        return d->failed ? (int)d->status : GM_EXIT_FAULT;
    }
    printf(good ? "the devices agree\n" : "the devices DIFFER\n");
    return good ? GM_EXIT_OK : GM_EXIT_CHECK;
}
