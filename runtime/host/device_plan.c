// device_plan.c -- what a run holds on a GPU, and what it leaves in the memory of the host.
//
//   rehearsal    setup and a sweep without a launch: which work space they ask for, which data they read as matrices, whether they need
//                cuBLAS
//   plan         what does not fit stays away: arrays of data, and what is computed of data once, the largest first. The rest has to fit
//   block        one piece of memory: the arrays of Data, of the shared and of each chain's State, an array of State whose pointers lead
//                there, GmPlace
//   away         an array in page-locked memory of the host, in the device's type. Kernels read it at its address as any other, through the
//                bus; launches that read a matrix get it in pieces (device_pieces.c). Its first rows lie on the card besides, as many as
//                there is room for
//
// The host keeps copies of Data and State with the device's pointers, which emitted host code reads as it does on the CPU.
#define _DEFAULT_SOURCE
#include "fields.h"
#include "device_inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNED = 256, PARTIALS = 8 * 2 * 4 * 4096, STAGE = 16 << 20, SHORT = 1 << 14, NAMES = 1 << 16 };  // PARTIALS: GM_ROOM of kernels.h

// ---- the block ----

static size_t bytes_of(const GmDevice *d, GmType type, const GmShape *shape)
{
    const size_t bytes = (size_t)gm_shape_size(shape) * gm_device_element(d, type);
    return (bytes + ALIGNED) / ALIGNED * ALIGNED;  // at least one line, so that empty arrays have an address of their own
}

static size_t round_up(size_t bytes) { return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED; }

// Where arrays of the CPU's Data and State went: State may point into Data, and chains share arrays.
typedef struct Moved {
    const void *from;
    CUdeviceptr to;
} Moved;

static CUdeviceptr moved_to(const Moved *list, long n, const void *from)
{
    for (long i = n; i-- > 0;)
        if (list[i].from == from) return list[i].to;
    return 0;
}

static const void *pointer_at(const char *structure, size_t offset) { return *(void *const *)(structure + offset); }

static CUdeviceptr array_at(const char *structure, size_t offset)
{
    CUdeviceptr at;
    memcpy(&at, structure + offset, sizeof at);
    return at;
}

// Puts all arrays in order, from `at` on, and fills the copies of Data and State. With at = 0 it counts. Returns the bytes.
static size_t lay_out(GmDevice *d, const GmMemory *memory, CUdeviceptr at)
{
    const GmModel *m = d->model;
    const long most = m->n_data + (long)m->n_state * d->chains + 1;
    Moved *moved = gm_alloc((size_t)most, sizeof *moved);
    long n = 0;
    CUdeviceptr next = at + ALIGNED * !at;  // an address that is not 0, also while counting
    const CUdeviceptr start = next;
    for (int f = 0; f < m->n_data; f++) {
        GmArray *a = &d->array[f];
        if (a->bytes == 0) continue;
        a->at = a->away ? (CUdeviceptr)(uintptr_t)a->host : next;
        moved[n++] = (Moved){pointer_at(d->host_data, m->data[f].offset), a->at};
        memcpy(d->data + m->data[f].offset, &a->at, sizeof a->at);
        if (!a->away) next += a->bytes;
    }
    for (int c = 0; c < d->chains; c++)
        for (int f = 0; f < m->n_state; f++) {
            const size_t offset = (size_t)c * m->state_size + m->state[f].offset;
            const void *from = pointer_at(d->host_state, offset);
            if (m->state[f].part_of) continue;
            // Only data and what chains share can have been met before: arrays of chains lie apart.
            const long look = c == 0 ? n : m->n_data + m->n_state < n ? m->n_data + m->n_state : n;
            CUdeviceptr to = moved_to(moved, look, from);
            if (!to) {
                GmArray *a = &d->array[m->n_data + f];
                to = a->away ? (CUdeviceptr)(uintptr_t)a->host : next;
                moved[n++] = (Moved){from, to};
                if (!a->away) next += bytes_of(d, m->state[f].type, &memory->shape[f]);
                if (a->bytes) a->at = to;
            }
            memcpy(d->state + offset, &to, sizeof to);
        }
    for (int c = 0; c < d->chains; c++)
        for (int f = 0; f < m->n_state; f++) {
            const GmField *part = &m->state[f];
            if (!part->part_of) continue;
            const CUdeviceptr whole = array_at(d->state, (size_t)c * m->state_size + m->state[part->part_of - 1].offset);
            const CUdeviceptr to = whole + (CUdeviceptr)part->part * gm_device_element(d, part->type);
            memcpy(d->state + (size_t)c * m->state_size + part->offset, &to, sizeof to);
        }
    free(moved);
    return (size_t)(next - start);
}

// ---- data and State on their way ----

// Pages of a mapped file that have been read are given back: they would fill the host's memory beside what was made of them.
static void forget_pages(const GmData *data, const void *from, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)from / page * page,
                    last = ((uintptr_t)from + bytes) / page * page;
    for (int i = 0; data && i < data->values.n; i++) {
        const uintptr_t map = (uintptr_t)data->values.value[i].map;
        if (map && first >= map && last <= map + data->values.value[i].map_size && last > first)
            madvise((void *)first, last - first, MADV_DONTNEED);
    }
}

// to[n] = from[n], by all threads.
static void narrow(float *to, const double *from, long n)
{
#pragma omp parallel for schedule(static) if (n > 100000)
    for (long k = 0; k < n; k++) to[k] = (float)from[k];
}

// From the CPU to the device with conversion, few numbers: to lock memory takes milliseconds, and a run of many chains sends thousands of
// arrays.
static void send_short(GmDevice *d, CUdeviceptr to, const double *from, long n)
{
    float stage[SHORT];
    narrow(stage, from, n);
    gm_device_good(d, gm_device_put(d, to, stage, (size_t)n * sizeof *stage), "sending data");
}

// The same for any number, through pinned memory. `data`: where mapped files are known, or NULL.
static void send(GmDevice *d, CUdeviceptr to, const void *from, long n, GmType type, const GmData *data)
{
    const size_t size = gm_device_element(d, type);
    if (type == GM_INT || size == 8) {
        gm_device_good(d, gm_device_put(d, to, from, (size_t)n * size), "sending data");
        forget_pages(data, from, (size_t)n * size);
        return;
    }
    if (n <= SHORT) return send_short(d, to, from, n);
    float *stage = NULL;
    const long most = STAGE / (long)sizeof *stage;
    if (!gm_device_have_host(d, (void **)&stage, STAGE, "copies")) return;
    for (long i = 0; i < n && !d->failed; i += most) {
        const long some = n - i < most ? n - i : most;
        narrow(stage, (const double *)from + i, some);
        gm_device_good(d, gm_device_put(d, to + (CUdeviceptr)i * sizeof *stage, stage, (size_t)some * sizeof *stage), "sending data");
        forget_pages(data, (const double *)from + i, (size_t)some * sizeof(double));
    }
    gm_cuda.cuMemFreeHost(stage);
}

// The same to an array that stays away, by slices.
static void set_aside(GmDevice *d, GmArray *a, const void *from, long n, GmType type, const GmData *data)
{
    const size_t size = gm_device_element(d, type), whole = gm_size_of_element(type);
    const long most = STAGE / (long)size;
    for (long i = 0; i < n; i += most) {
        const long some = n - i < most ? n - i : most;
        const char *slice = (const char *)from + (size_t)i * whole;
        if (size == whole) memcpy((char *)a->host + (size_t)i * size, slice, (size_t)some * size);
        else narrow((float *)a->host + i, (const double *)slice, some);
        forget_pages(data, slice, (size_t)some * whole);
    }
}

void gm_device_send_field(GmDevice *d, const GmMemory *memory, int field, const void *x)
{
    const GmField *f = &d->model->state[field];
    send(d, array_at(d->state, f->offset), x, gm_shape_size(&memory->shape[field]), f->type, NULL);
}

// Draws leave through locked memory: where there is none the run is to know before it begins.
static void ask_for_locked_memory(GmDevice *d)
{
    void *some;
    if (gm_device_have_host(d, &some, STAGE, "copies")) gm_cuda.cuMemFreeHost(some);
}

// expectations: whether they are sent; those that starts have in turn are made before anything reads them.
static void upload(GmDevice *d, const GmMemory *memory, bool expectations)
{
    const GmModel *m = d->model;
    for (int c = 0; c < d->chains && !d->failed; c++)
        for (int f = 0; f < m->n_state && !d->failed; f++) {
            const size_t offset = (size_t)c * m->state_size + m->state[f].offset;
            const CUdeviceptr to = array_at(d->state, offset);
            // shared
            bool sent = (!expectations && m->state[f].by_start) || (c > 0 && to == array_at(d->state, m->state[f].offset));
            // data, or made on the device
            for (int k = 0; k < d->n_arrays; k++) sent |= d->array[k].at == to && (k < m->n_data || d->array[k].away);
            if (!sent) send(d, to, pointer_at(d->host_state, offset), gm_shape_size(&memory->shape[f]), m->state[f].type, NULL);
        }
}

void gm_device_upload(GmDevice *d, const GmMemory *memory) { upload(d, memory, true); }

void gm_device_download(GmDevice *d, const GmMemory *memory, int chain, int field, void *to)
{
    const GmField *f = &d->model->state[field];
    const long n = gm_shape_size(&memory->shape[field]);
    const size_t size = gm_device_element(d, f->type);
    const CUdeviceptr from = array_at(d->state, (size_t)chain * d->model->state_size + f->offset);
    gm_device_good(d, gm_device_get(d, to, from, (size_t)n * size), "fetching a variable");
    if (f->type != GM_INT && size == 4)
        for (long i = n; i-- > 0;) {  // in place, from the end
            float x;
            memcpy(&x, (char *)to + (size_t)i * sizeof x, sizeof x);
            ((double *)to)[i] = x;
        }
}

// ---- the plan ----

// Setup, a sweep and what keeps a draw, without launches: fills scratch_size, what is read of each array, needs_libraries.
static void rehearse(GmDevice *d, const GmRun *run)
{
    GmRun trial = *run;
    trial.data = d->data;
    trial.state = d->state;
    trial.device = d;
    trial.batch = 1;
    d->rehearsing = true;
    if (d->model->setup) d->model->setup(&trial);
    GmSelected *selected = gm_alloc((size_t)d->model->n_selections + 1, sizeof *selected);
    trial.selected = selected;
    for (int gradients = d->model->n_selections > 0; gradients >= 0; gradients--) {
        for (int k = 0; k < d->model->n_selections; k++) selected[k] = (GmSelected){.gradients = gradients, .adapts = run->warmup};
        for (int f = 0; f < d->n_arrays; f++) d->array[f].read = 0;
        d->model->sweep(&trial);
    }
    free(selected);
    for (int f = 0; f < d->n_arrays; f++) d->array[f].in_sweep = d->array[f].read;
    if (d->model->derive) d->model->derive(&trial);
    if (d->model->restore) d->model->restore(&trial);
    if (d->model->log_joint) d->model->log_joint(&trial, 0);
    d->rehearsing = false;
}

// Arrays stay away until the rest fits into `there` bytes, with two buffers for the smallest pieces. Returns the bytes that are then
// needed. bytes by which a buffer has to grow; an array never read as a matrix needs none
static size_t more_buffer(const GmDevice *d, const GmArray *a)
{
    const size_t piece = a->step ? round_up(a->step) + GM_PIECE_MARGIN : 0;
    return piece > d->piece_size ? piece - d->piece_size : 0;
}

static size_t leave_out(GmDevice *d, size_t need, size_t there)
{
    while (need > there) {
        GmArray *largest = NULL;
        for (int f = 0; f < d->n_arrays; f++) {
            GmArray *a = &d->array[f];
            if (a->away || a->bytes <= 2 * more_buffer(d, a)) continue;  // nothing would be gained
            if (!largest || a->bytes > largest->bytes || (a->bytes == largest->bytes && a->in_sweep < largest->in_sweep)) largest = a;
        }
        if (!largest) return need;
        const size_t more = more_buffer(d, largest);
        largest->away = true;
        d->piece_size += more;
        need += 2 * more;
        need -= largest->bytes;
    }
    return need;
}

static const GmField *field_of(const GmDevice *d, int array)
{
    return array < d->model->n_data ? &d->model->data[array] : &d->model->state[array - d->model->n_data];
}

static bool open_away(GmDevice *d, const GmData *data)
{
    for (int f = 0; f < d->n_arrays && !d->failed; f++) {
        GmArray *a = &d->array[f];
        const GmField *field = field_of(d, f);
        char what[200];
        if (!a->away) continue;
        snprintf(what, sizeof what, "%s does not fit the GPU's memory", field->name);
        if (!gm_device_have_host(d, &a->host, a->bytes, what)) break;
        if (f >= d->model->n_data) memset(a->host, 0, a->bytes);
        else set_aside(d, a, pointer_at(d->host_data, field->offset), gm_shape_size(&data->shape[f]), field->type, data);
    }
    return !d->failed;
}

void gm_device_note_memory(const GmDevice *d)
{
    for (int f = 0; f < d->n_arrays; f++) {
        const GmArray *a = &d->array[f];
        char all[32], away[32];
        if (!a->away) continue;
        gm_device_size_text(all, (double)a->bytes);
        if (a->in_sweep)
            gm_note("%s (%s) stays in the memory of the host; a sweep reads %s from there", field_of(d, f)->name, all,
                    gm_device_size_text(away, (double)a->in_sweep * (1 - (double)a->head_bytes / (double)a->bytes)));
        else gm_note("%s (%s) stays in the memory of the host", field_of(d, f)->name, all);
    }
}

// What lies in the block behind the arrays, in bytes.
typedef struct Rest {
    size_t states, place, partial, barrier, result, going, stays, missing;
} Rest;

static Rest rest_of(const GmDevice *d, const GmData *data)
{
    const GmModel *m = d->model;
    const size_t chains = (size_t)d->chains;
    Rest r = {.states = round_up(chains * m->state_size),
              .place = round_up(sizeof(GmPlace)),
              .partial = chains * PARTIALS * sizeof(double),
              .barrier = round_up(chains * 2 * sizeof(uint32_t)),
              .result = round_up(chains * sizeof(double)),
              .going = round_up((chains + 1) * sizeof(int32_t)),
              .stays = round_up(chains * sizeof(GmStays)),
              .missing = round_up((size_t)m->n_data * sizeof(GmMissing) + 1)};
    for (int f = 0; f < m->n_data; f++) r.missing += round_up((size_t)data->missing[f].count * sizeof(long));
    return r;
}

static size_t size_of_rest(const Rest *r)
{
    return r->states + r->place + r->partial + r->barrier + r->result + r->going + r->stays + r->missing;
}

// Sizes of data, and of what setup computes of data and nothing changes after it.
static void size_arrays(GmDevice *d, const GmData *data, const GmMemory *memory)
{
    const GmModel *m = d->model;
    for (int f = 0; f < m->n_data; f++)
        d->array[f] = (GmArray){.bytes = m->data[f].rank ? bytes_of(d, m->data[f].type, &data->shape[f]) : 0};
    for (int f = 0; f < m->n_state; f++)
        if (m->state[f].shared == 1 && m->state[f].role == GM_SUM)
            d->array[m->n_data + f].bytes = bytes_of(d, m->state[f].type, &memory->shape[f]);
}

// What all chains go on by: all of them go at first.
static void send_going(GmDevice *d, CUdeviceptr at)
{
    const size_t chains = (size_t)d->chains;
    int32_t *all = gm_alloc(chains + 1, sizeof *all);
    all[0] = d->chains;
    for (int c = 0; c < d->chains; c++) all[1 + c] = c;
    gm_device_good(d, gm_device_put(d, at, all, (chains + 1) * sizeof *all), "sending the run's place");
    free(all);
}

// The places of missing data, behind the list of them.
static void send_missing(GmDevice *d, const GmData *data, CUdeviceptr first)
{
    const GmModel *m = d->model;
    GmMissing *list = gm_alloc((size_t)m->n_data + 1, sizeof *list);
    CUdeviceptr at = first + round_up((size_t)m->n_data * sizeof *list + 1);
    for (int f = 0; f < m->n_data; f++) {
        const size_t bytes = (size_t)data->missing[f].count * sizeof(long);
        list[f] = (GmMissing){data->missing[f].count, (long *)(uintptr_t)at};
        if (bytes) gm_device_good(d, gm_device_put(d, at, data->missing[f].index, bytes), "sending data");
        at += round_up(bytes);
    }
    gm_device_good(d, gm_device_put(d, first, list, (size_t)m->n_data * sizeof *list), "sending data");
    free(list);
}

// State of all chains and the place of the run, from `at` on.
static void send_rest(GmDevice *d, const GmData *data, const GmRun *run, const Rest *r, CUdeviceptr at)
{
    d->states = at;
    gm_device_good(d, gm_device_put(d, d->states, d->state, (size_t)d->chains * d->model->state_size), "sending State");
    at += r->states;
    d->place = at;
    at += r->place;
    GmPlace p = {.seed = run->seed, .warmup = run->warmup, .first_chain = run->first_chain, .chains = d->chains};
    p.partial = (double *)(uintptr_t)at;
    at += r->partial;
    p.barrier = (uint32_t *)(uintptr_t)at;
    at += r->barrier;
    p.result = (double *)(uintptr_t)at;
    at += r->result;
    p.going = (int32_t *)(uintptr_t)at;
    send_going(d, at);
    at += r->going;
    p.stays = (GmStays *)(uintptr_t)at;
    at += r->stays;
    p.missing = (const GmMissing *)(uintptr_t)at;
    send_missing(d, data, at);
    gm_device_good(d, gm_device_put(d, d->place, &p, sizeof p), "sending the run's place");
}

// Room for scratch as the rehearsal has asked for it; it is made when all else has its place.
static size_t take_wanted(GmDevice *d, size_t *wanted)
{
    size_t all = 0;
    for (int k = 0; k < GM_SCRATCHES; k++) {
        all += wanted[k] = d->scratch_size[k];
        d->scratch[k] = d->scratch_size[k] = 0;
    }
    return all;
}

bool gm_device_allocate(GmDevice *d, const GmData *data, const GmMemory *memory, const GmRun *run, size_t ring)
{
    const GmModel *m = d->model;
    size_t wanted[GM_SCRATCHES];
    size_arrays(d, data, memory);
    const Rest rest = rest_of(d, data);
    size_t need = lay_out(d, memory, 0) + size_of_rest(&rest) + ring + NAMES;
    rehearse(d, run);
    need += take_wanted(d, wanted);
    const char *why;
    if (!d->failed && d->needs_libraries && !gm_cuda_libraries(&why)) gm_device_refuse(d, why);
    if (d->failed) return false;
    const size_t there = gm_device_available(d), enough = leave_out(d, need, there);
    if (enough > there) {
        char what[80];
        snprintf(what, sizeof what, "the state of %d chain%s", d->chains, d->chains > 1 ? "s" : "");
        gm_device_lacks_memory(d, what, (double)enough);
        return false;
    }
    if (!open_away(d, data)) return false;
    const size_t arrays = lay_out(d, memory, 0);
    d->block_size = arrays + size_of_rest(&rest);
    if (!gm_device_have(d, &d->block, d->block_size, "the run")) return false;
    gm_device_fill(d, d->block, 0, d->block_size, "clearing memory");
    gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "clearing memory");
    lay_out(d, memory, d->block);
    send_rest(d, data, run, &rest, d->block + arrays);
    for (int f = 0; f < m->n_data; f++)
        if (m->data[f].rank > 0 && !d->array[f].away)
            send(d, d->array[f].at, pointer_at(d->host_data, m->data[f].offset), gm_shape_size(&data->shape[f]), m->data[f].type, data);
    ask_for_locked_memory(d);
    upload(d, memory, !memory->in_turn);
    for (int k = 0; k < GM_SCRATCHES && !d->failed; k++)
        if (wanted[k]) gm_device_scratch(d, k, wanted[k]);
    gm_device_pieces_open(d, there - enough);
    if (d->needs_libraries) gm_device_libraries(d);
    return !d->failed;
}
