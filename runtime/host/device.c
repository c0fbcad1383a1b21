// device.c -- opens a GPU for a run: driver, image, memory, and the launches of an emitted program.
//
// Device memory is one block: the arrays of Data, of the shared and of each chain's State, an array of State whose pointers lead there, GmPlace. The
// host keeps copies of Data and State with the same pointers, which emitted host code reads as it does on the CPU.
#include "device_inside.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNED = 256, PARTIALS = 2 * 4 * 4096, STAGE = 16 << 20 };      // PARTIALS: GM_PARTIALS of kernels.h

// ---- errors ----

void gm_device_refuse(GmDevice *d, const char *what)
{
    if (!d->failed) gm_error("GPU: %s", what);
    d->failed = true;
}

bool gm_device_good(GmDevice *d, int result, const char *what)
{
    if (result != 0 && !d->failed) {
        gm_error("GPU: %s: %s", what, gm_cuda_error(result));
        d->failed = true;
    }
    return !d->failed;
}

// The streams do not wait for the default one, so that plain copies would run beside kernels: copies stand in the main stream.
int gm_device_put(GmDevice *d, CUdeviceptr to, const void *from, size_t bytes)
{
    const int result = bytes ? gm_cuda.cuMemcpyHtoDAsync(to, from, bytes, d->stream) : 0;
    return result ? result : gm_cuda.cuStreamSynchronize(d->stream);
}

int gm_device_get(GmDevice *d, void *to, CUdeviceptr from, size_t bytes)
{
    const int result = bytes ? gm_cuda.cuMemcpyDtoHAsync(to, from, bytes, d->stream) : 0;
    return result ? result : gm_cuda.cuStreamSynchronize(d->stream);
}

// ---- the image ----

static bool load(GmDevice *d, const void *image, char *why, size_t room)
{
    char log[500] = "";
    int   names[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof log };
    const int result = gm_cuda.cuModuleLoadDataEx(&d->module, image, 2, names, values);
    for (char *c = log; *c; c++)
        if (*c == '\n') *c = ' ';
    if (result != 0) snprintf(why, room, "its code cannot be loaded: %s%s%.200s", gm_cuda_error(result), *log ? ": " : "", log);
    return result == 0;
}

// The image put in by gmc, if it suits; else one compiled now. A cubin suits GPUs of its major number that are not older.
static bool load_image(GmDevice *d, char *why, size_t room)
{
    if (!&gm_device_code || !gm_device_code.text) {
        snprintf(why, room, "this program holds no code for GPUs: it was made with --no-device");
        return false;
    }
    const GmDeviceCode *code = &gm_device_code;
    const long width = d->model->row_width ? d->model->row_width(d->host_data) : 0;       // row passes are compiled for the width of the data
    d->rows_any = width != 0 && !gm_nvrtc_found(NULL, NULL);
    if (code->arch && code->precision == d->precision && (width == 0 || d->rows_any)) {
        const char *number = strchr(code->arch, '_');
        const int arch = number ? atoi(number + 1) : 0;
        const bool same = arch / 10 == d->capability / 10 && arch <= d->capability;
        if (code->cubin && same && load(d, code->cubin, why, room)) return true;
        if (!code->cubin && arch <= d->capability && gm_nvrtc_found(NULL, NULL) == false && load(d, code->ptx, why, room)) return true;
    }
    const char *absent;
    if (!gm_nvrtc_found(NULL, &absent)) {
        if (code->arch && code->precision == d->precision && load(d, code->ptx, why, room)) return true;
        snprintf(why, room, "code for sm_%d in %s precision has to be compiled, and %s", d->capability, gm_precision_names[d->precision], absent);
        return false;
    }
    char arch[32], list[200];
    snprintf(arch, sizeof arch, "sm_%d", d->capability);
    GmImage image;
    const bool known = gm_nvrtc_knows(arch, list, sizeof list);
    const size_t size = strlen(code->text) + 64;
    char *text = gm_alloc(size, 1);
    int used = width > 0 ? snprintf(text, size, "#define GM_ROWS_WIDTH %ld\n", width) : 0;
    snprintf(text + used, size - (size_t)used, "%s", code->text);
    bool good = gm_nvrtc_cached(text, code->name, d->precision, known ? arch : "compute_80", &image);
    free(text);
    if (good) good = load(d, image.cubin ? image.cubin : (void *)image.ptx, why, room);
    else {
        for (char *c = image.log; c && *c; c++)
            if (*c == '\n') *c = ' ';
        snprintf(why, room, "NVRTC does not compile the program: %.400s", image.log ? image.log : "");
    }
    gm_image_free(&image);
    return good;
}

// ---- memory ----

size_t gm_device_element(const GmDevice *d, GmType type)
{
    switch (type) {
    case GM_INT:   return 4;
    case GM_REAL:  return d->precision == GM_DOUBLE ? 8 : 4;
    case GM_WIDE:  return 8;
    case GM_SOLVE: return d->precision == GM_SINGLE ? 4 : 8;
    }
    return 8;
}

static size_t bytes_of(const GmDevice *d, GmType type, const GmShape *shape)
{
    const size_t bytes = (size_t)gm_shape_size(shape) * gm_device_element(d, type);
    return (bytes + ALIGNED) / ALIGNED * ALIGNED;        // at least one line, so that empty arrays have an address of their own
}

static size_t round_up(size_t bytes) { return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED; }

// Where arrays of the CPU's Data and State went: State may point into Data, and chains share arrays.
typedef struct Moved { const void *from; CUdeviceptr to; } Moved;

static CUdeviceptr moved_to(const Moved *list, long n, const void *from)
{
    for (long i = n; i-- > 0;)
        if (list[i].from == from) return list[i].to;
    return 0;
}

static const void *pointer_at(const char *structure, size_t offset) { return *(void *const *)(structure + offset); }

// Puts all arrays in order, from `at` on, and fills the copies of Data and State. With at = 0 it counts. Returns the bytes.
static size_t lay_out(GmDevice *d, const GmData *data, const GmMemory *memory, CUdeviceptr at)
{
    const GmModel *m = d->model;
    const long most = m->n_data + (long)m->n_state * d->chains + 1;
    Moved *moved = gm_alloc((size_t)most, sizeof *moved);
    long n = 0;
    CUdeviceptr next = at + ALIGNED * !at;               // an address that is not 0, also while counting
    const CUdeviceptr start = next;
    for (int f = 0; f < m->n_data; f++) {
        if (m->data[f].rank == 0) continue;
        moved[n++] = (Moved){ pointer_at(d->host_data, m->data[f].offset), next };
        memcpy(d->data + m->data[f].offset, &next, sizeof next);
        next += bytes_of(d, m->data[f].type, &data->shape[f]);
    }
    for (int c = 0; c < d->chains; c++)
        for (int f = 0; f < m->n_state; f++) {
            const size_t offset = (size_t)c * m->state_size + m->state[f].offset;
            const void *from = pointer_at(d->host_state, offset);
            // Only data and what chains share can have been met before: arrays of chains lie apart.
            const long look = c == 0 ? n : m->n_data + m->n_state < n ? m->n_data + m->n_state : n;
            CUdeviceptr to = moved_to(moved, look, from);
            if (!to) {
                to = next;
                moved[n++] = (Moved){ from, to };
                next += bytes_of(d, m->state[f].type, &memory->shape[f]);
            }
            memcpy(d->state + offset, &to, sizeof to);
        }
    free(moved);
    return (size_t)(next - start);
}

// From the CPU to the device with conversion, through pinned memory.
static void send(GmDevice *d, CUdeviceptr to, const void *from, long n, GmType type)
{
    const size_t size = gm_device_element(d, type);
    if (type == GM_INT || size == 8) {
        gm_device_good(d, gm_device_put(d, to, from, (size_t)n * size), "sending data");
        return;
    }
    float *stage = NULL;
    const long most = STAGE / (long)sizeof *stage;
    if (!gm_device_good(d, gm_cuda.cuMemAllocHost((void **)&stage, STAGE), "pinned memory")) return;
    for (long i = 0; i < n && !d->failed; i += most) {
        const long some = n - i < most ? n - i : most;
        const double *x = (const double *)from + i;
#pragma omp parallel for schedule(static) if (some > 100000)
        for (long k = 0; k < some; k++) stage[k] = (float)x[k];
        gm_device_good(d, gm_device_put(d, to + (CUdeviceptr)i * sizeof *stage, stage, (size_t)some * sizeof *stage), "sending data");
    }
    gm_cuda.cuMemFreeHost(stage);
}

static CUdeviceptr array_at(const char *structure, size_t offset)
{
    CUdeviceptr at;
    memcpy(&at, structure + offset, sizeof at);
    return at;
}

void gm_device_upload(GmDevice *d, const GmMemory *memory, const GmData *data)
{
    const GmModel *m = d->model;
    (void)data;
    for (int c = 0; c < d->chains && !d->failed; c++)
        for (int f = 0; f < m->n_state && !d->failed; f++) {
            const size_t offset = (size_t)c * m->state_size + m->state[f].offset;
            if (c > 0 && array_at(d->state, offset) == array_at(d->state, m->state[f].offset)) continue;     // shared
            send(d, array_at(d->state, offset), pointer_at(d->host_state, offset), gm_shape_size(&memory->shape[f]), m->state[f].type);
        }
}

void gm_device_download(GmDevice *d, const GmMemory *memory, int chain, int field, void *to)
{
    const GmField *f = &d->model->state[field];
    const long n = gm_shape_size(&memory->shape[field]);
    const size_t size = gm_device_element(d, f->type);
    const CUdeviceptr from = array_at(d->state, (size_t)chain * d->model->state_size + f->offset);
    gm_device_good(d, gm_device_get(d, to, from, (size_t)n * size), "fetching a variable");
    if (f->type != GM_INT && size == 4)
        for (long i = n; i-- > 0;) {                     // in place, from the end
            float x;
            memcpy(&x, (char *)to + (size_t)i * sizeof x, sizeof x);
            ((double *)to)[i] = x;
        }
}

static bool allocate(GmDevice *d, const GmData *data, const GmMemory *memory, const GmRun *run, char *why, size_t room)
{
    const GmModel *m = d->model;
    const size_t chains = (size_t)d->chains;
    size_t missing = round_up((size_t)m->n_data * sizeof(GmMissing) + 1);
    for (int f = 0; f < m->n_data; f++) missing += round_up((size_t)data->missing[f].count * sizeof(long));
    const size_t arrays = lay_out(d, data, memory, 0), states = round_up(chains * m->state_size), place = round_up(sizeof(GmPlace));
    const size_t partial = chains * PARTIALS * sizeof(double), barrier = round_up(chains * 2 * sizeof(uint32_t)), result = round_up(chains * sizeof(double));
    d->block_size = arrays + states + place + partial + barrier + result + missing;
    size_t there = 0, all = 0;
    gm_cuda.cuMemGetInfo(&there, &all);
    const int result_of = gm_cuda.cuMemAlloc(&d->block, d->block_size);
    if (result_of != 0) {
        snprintf(why, room, "%s needs %.3g GB of its memory and %.3g GB are free%s", d->name, (double)d->block_size / 1e9, (double)there / 1e9,
                 result_of == CUDA_ERROR_OUT_OF_MEMORY ? " (fewer --chains need less)" : "");
        return false;
    }
    gm_device_good(d, gm_cuda.cuMemsetD8Async(d->block, 0, d->block_size, d->stream), "clearing memory");
    gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "clearing memory");
    CUdeviceptr at = d->block;
    lay_out(d, data, memory, at);
    at += arrays;
    d->states = at;
    gm_device_good(d, gm_device_put(d, d->states, d->state, chains * m->state_size), "sending State");
    at += states;
    d->place = at;
    at += place;
    GmPlace p = { .seed = run->seed, .warmup = run->warmup, .first_chain = run->first_chain, .chains = d->chains };
    p.partial = (double *)(uintptr_t)at;
    at += partial;
    p.barrier = (uint32_t *)(uintptr_t)at;
    at += barrier;
    p.result = (double *)(uintptr_t)at;
    at += result;
    p.missing = (const GmMissing *)(uintptr_t)at;
    GmMissing *list = gm_alloc((size_t)m->n_data + 1, sizeof *list);
    at += round_up((size_t)m->n_data * sizeof *list + 1);
    for (int f = 0; f < m->n_data; f++) {
        const size_t bytes = (size_t)data->missing[f].count * sizeof(long);
        list[f] = (GmMissing){ data->missing[f].count, (long *)(uintptr_t)at };
        if (bytes) gm_device_good(d, gm_device_put(d, at, data->missing[f].index, bytes), "sending data");
        at += round_up(bytes);
    }
    gm_device_good(d, gm_device_put(d, (CUdeviceptr)(uintptr_t)p.missing, list, (size_t)m->n_data * sizeof *list), "sending data");
    free(list);
    gm_device_good(d, gm_device_put(d, d->place, &p, sizeof p), "sending the run's place");
    for (int f = 0; f < m->n_data; f++)
        if (m->data[f].rank > 0)
            send(d, array_at(d->data, m->data[f].offset), pointer_at(d->host_data, m->data[f].offset), gm_shape_size(&data->shape[f]), m->data[f].type);
    gm_device_upload(d, memory, data);
    if (d->failed) snprintf(why, room, "its memory cannot be filled");
    return !d->failed;
}

// ---- open and close ----

GmDevice *gm_device_open(const GmModel *model, const GmData *data, const GmMemory *memory, const GmOptions *o, GmRun *run, char *why, size_t room)
{
    const char *absent;
    if (!gm_cuda_driver(&absent)) {
        snprintf(why, room, "%s", absent);
        return NULL;
    }
    if (o->device_number >= gm_cuda.devices) {
        snprintf(why, room, "there is no GPU %d; they are numbered from 0 to %d", o->device_number, gm_cuda.devices - 1);
        return NULL;
    }
    GmDevice *d = gm_alloc(1, sizeof *d);
    *d = (GmDevice){ .ordinal = o->device_number, .precision = o->precision, .model = model, .chains = run->chains, .profile = o->profile,
                     .host_data = run->data, .host_state = run->state, .plain = o->profile };
    d->data = gm_alloc(1, model->data_size);
    d->state = gm_alloc((size_t)d->chains, model->state_size);
    memcpy(d->data, d->host_data, model->data_size);
    CUdevice number;
    int result = gm_cuda.cuDeviceGet(&number, d->ordinal);
    if (result == 0) result = gm_cuda.cuDeviceGetName(d->name, sizeof d->name, number);
    d->capability = gm_cuda_capability(d->ordinal);
    if (result == 0) result = gm_cuda.cuDeviceGetAttribute(&d->processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, number);
    if (result == 0) result = gm_cuda.cuDeviceGetAttribute(&d->shared_most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, number);
    if (result == 0) result = gm_cuda.cuDevicePrimaryCtxRetain(&d->context, number);
    if (result == 0) result = gm_cuda.cuCtxSetCurrent(d->context);
    size_t there = 0, all = 0;
    if (result == 0) result = gm_cuda.cuMemGetInfo(&there, &all);
    // Scratch of small matrices is allocated by kernels: room for it, but not at the cost of data on a small GPU.
    if (result == 0) gm_cuda.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, all / 64 < (256u << 20) ? all / 64 : (256u << 20));
    if (result == 0) result = gm_cuda.cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING);
    if (result == 0) result = gm_cuda.cuStreamCreate(&d->copies, CU_STREAM_NON_BLOCKING);
    if (result == 0) result = gm_cuda.cuEventCreate(&d->fork, CU_EVENT_DISABLE_TIMING);
    for (int k = 0; k < GM_SIDES && result == 0; k++) {
        result = gm_cuda.cuStreamCreate(&d->side[k], CU_STREAM_NON_BLOCKING);
        if (result == 0) result = gm_cuda.cuEventCreate(&d->join[k], CU_EVENT_DISABLE_TIMING);
    }
    if (result != 0) snprintf(why, room, "GPU %d (%s) cannot be used: %s", d->ordinal, d->name, gm_cuda_error(result));
    if (result != 0 || !load_image(d, why, room) || !allocate(d, data, memory, run, why, room)) {
        gm_device_close(d);
        return NULL;
    }
    run->data = d->data;
    run->state = d->state;
    run->device = d;
    return d;
}

void gm_device_close(GmDevice *d)
{
    if (!d) return;
    if (d->stream) gm_cuda.cuStreamSynchronize(d->stream);
    for (int k = 0; k < 2; k++)
        if (d->graph[k]) gm_cuda.cuGraphExecDestroy(d->graph[k]);
    for (int k = 0; k < GM_SIDES; k++) {
        if (d->blas[k]) gm_cuda.cublasDestroy(d->blas[k]);
        if (d->solver[k]) gm_cuda.cusolverDnDestroy(d->solver[k]);
        if (d->side[k]) gm_cuda.cuStreamDestroy(d->side[k]);
        if (d->join[k]) gm_cuda.cuEventDestroy(d->join[k]);
    }
    for (int k = 0; k < d->n_timings; k++) {
        gm_cuda.cuEventDestroy(d->timing[k].from);
        gm_cuda.cuEventDestroy(d->timing[k].to);
    }
    for (int k = 0; k < GM_SCRATCHES; k++)
        if (d->scratch[k]) gm_cuda.cuMemFree(d->scratch[k]);
    for (int k = 0; k < d->n_texts; k++) {
        gm_cuda.cuMemFree(d->text_at[k]);
        free(d->text[k]);
    }
    const CUdeviceptr blocks[] = { d->column, d->kept, d->ring, d->block };
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++)
        if (blocks[k]) gm_cuda.cuMemFree(blocks[k]);
    if (d->fork) gm_cuda.cuEventDestroy(d->fork);
    if (d->stream) gm_cuda.cuStreamDestroy(d->stream);
    if (d->copies) gm_cuda.cuStreamDestroy(d->copies);
    if (d->module) gm_cuda.cuModuleUnload(d->module);
    for (int k = 0; k < d->n_kernels; k++) free(d->kernel[k].name);
    if (d->context) gm_cuda.cuDevicePrimaryCtxRelease(d->ordinal);
    free(d->text);
    free(d->text_at);
    free(d->data);
    free(d->state);
    free(d);
}

CUdeviceptr gm_device_scratch(GmDevice *d, int which, size_t bytes)
{
    if (bytes <= d->scratch_size[which]) return d->scratch[which];
    if (d->capturing) {
        gm_device_refuse(d, "scratch memory grew inside a graph");
        return 0;
    }
    gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "waiting");
    for (int k = 0; k < 2; k++)                          // graphs hold the old address: they are captured again
        if (d->graph[k]) {
            gm_cuda.cuGraphExecDestroy(d->graph[k]);
            d->graph[k] = NULL;
        }
    if (d->scratch[which]) gm_cuda.cuMemFree(d->scratch[which]);
    d->scratch[which] = 0;
    d->scratch_size[which] = 0;
    size_t there = 0, all = 0;
    gm_cuda.cuMemGetInfo(&there, &all);
    if (gm_cuda.cuMemAlloc(&d->scratch[which], bytes) != 0) {
        char text[200];
        snprintf(text, sizeof text, "out of memory: work space needs %.3g GB and %.3g GB are free", (double)bytes / 1e9, (double)there / 1e9);
        gm_device_refuse(d, text);
        return 0;
    }
    d->scratch_size[which] = bytes;
    return d->scratch[which];
}

CUdeviceptr gm_device_text(GmDevice *d, const char *text)
{
    for (int k = 0; k < d->n_texts; k++)
        if (strcmp(d->text[k], text) == 0) return d->text_at[k];
    CUdeviceptr at = 0;
    const size_t bytes = strlen(text) + 1;
    if (d->capturing || !gm_device_good(d, gm_cuda.cuMemAlloc(&at, (bytes + 15) / 16 * 16), "memory for a name")) return 0;
    gm_device_good(d, gm_device_put(d, at, text, bytes), "sending a name");
    d->text = gm_grow(d->text, (size_t)d->n_texts + 1, sizeof *d->text);
    d->text_at = gm_grow(d->text_at, (size_t)d->n_texts + 1, sizeof *d->text_at);
    d->text[d->n_texts] = gm_copy_text(text);
    d->text_at[d->n_texts++] = at;
    return at;
}

// ---- launches ----

static int entry_of(GmDevice *d, const char *name)
{
    for (int k = 0; k < d->n_kernels; k++)
        if (strcmp(d->kernel[k].name, name) == 0) return k;
    if (d->n_kernels == GM_MOST_KERNELS) {
        gm_device_refuse(d, "the program has more kernels than the runtime keeps");
        return 0;
    }
    d->kernel[d->n_kernels] = (GmKernelEntry){ .name = gm_copy_text(name) };
    return d->n_kernels++;
}

GmKernelEntry *gm_device_kernel(GmDevice *d, const char *name)
{
    GmKernelEntry *e = &d->kernel[entry_of(d, name)];
    if (!e->function && gm_cuda.cuModuleGetFunction(&e->function, d->module, name) != 0) {
        char text[300];
        snprintf(text, sizeof text, "the program's code for GPUs lacks the kernel %s", name);
        gm_device_refuse(d, text);
        return NULL;
    }
    return e;
}

int gm_device_time_from(GmDevice *d, const char *name, CUstream stream)
{
    if (!d->profile || d->failed) return -1;
    const int most = (int)(sizeof d->timing / sizeof *d->timing);
    int used = 0;
    while (used < most && d->timing[used].entry >= 0 && used < d->n_timings) used++;
    if (used == most) {
        gm_device_time_collect(d);
        used = 0;
    }
    GmTiming *t = &d->timing[used];
    if (used == d->n_timings) {
        gm_device_good(d, gm_cuda.cuEventCreate(&t->from, CU_EVENT_DEFAULT), "an event");
        gm_device_good(d, gm_cuda.cuEventCreate(&t->to, CU_EVENT_DEFAULT), "an event");
        d->n_timings++;
    }
    t->entry = entry_of(d, name);
    gm_device_good(d, gm_cuda.cuEventRecord(t->from, stream), "an event");
    return used;
}

void gm_device_time_to(GmDevice *d, int timing, CUstream stream)
{
    if (timing >= 0) gm_device_good(d, gm_cuda.cuEventRecord(d->timing[timing].to, stream), "an event");
}

// Waits for all marks and adds their times up.
void gm_device_time_collect(GmDevice *d)
{
    for (int k = 0; k < d->n_timings && !d->failed; k++) {
        GmTiming *t = &d->timing[k];
        if (t->entry < 0) continue;
        float milliseconds = 0;
        gm_device_good(d, gm_cuda.cuEventSynchronize(t->to), "waiting");
        gm_device_good(d, gm_cuda.cuEventElapsedTime(&milliseconds, t->from, t->to), "an event");
        d->kernel[t->entry].seconds += milliseconds / 1000;
        d->kernel[t->entry].launches++;
        t->entry = -1;
    }
}

void gm_device_launch(GmDevice *d, CUstream stream, const char *kernel, GmGrid g, void **parameters)
{
    if (d->failed) return;
    GmKernelEntry *e = gm_device_kernel(d, kernel);
    if (!e) return;
    const unsigned x = (unsigned)g.x, y = g.y ? (unsigned)g.y : 1, z = g.z ? (unsigned)g.z : 1, threads = g.threads ? (unsigned)g.threads : GM_THREADS;
    const int timing = gm_device_time_from(d, kernel, stream);
    const int result = g.cooperative ? gm_cuda.cuLaunchCooperativeKernel(e->function, x, y, z, threads, 1, 1, (unsigned)g.shared, stream, parameters)
                                     : gm_cuda.cuLaunchKernel(e->function, x, y, z, threads, 1, 1, (unsigned)g.shared, stream, parameters, NULL);
    gm_device_time_to(d, timing, stream);
    gm_device_good(d, result, kernel);
}

// A kernel of the emitted program: they all take (Data, State *, GmPlace *).
static void launch(GmRun *run, const char *kernel, GmGrid grid)
{
    GmDevice *d = run->device;
    void *parameters[] = { d->data, &d->states, &d->place };
    gm_device_launch(d, d->stream, kernel, grid, parameters);
}

static long clamped(long n, long lo, long hi) { return n < lo ? lo : n > hi ? hi : n; }

void gm_device_each(GmRun *run, const char *kernel, long n)
{
    const GmDevice *d = run->device;
    if (n > 0) launch(run, kernel, (GmGrid){ .x = clamped((n + GM_THREADS - 1) / GM_THREADS, 1, 64L * d->processors), .y = d->chains });
}

void gm_device_colours(GmRun *run, const char *kernel, long n, long colours)
{
    GmDevice *d = run->device;
    for (long c = 0; c < colours; c++) {
        void *parameters[] = { &d->place, &c };
        gm_device_launch(d, d->stream, "gm_set_colour", (GmGrid){ .x = 1, .threads = 1 }, parameters);
        gm_device_each(run, kernel, (n - c + colours - 1) / colours);
    }
}

void gm_device_shared(GmRun *run, const char *kernel, long work, int chains)
{
    GmDevice *d = run->device;
    GmKernelEntry *e = gm_device_kernel(d, kernel);
    if (!e || chains <= 0) return;
    if (!e->resident && gm_cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&e->resident, e->function, GM_THREADS, 0) != 0) e->resident = 1;
    const long together = (long)e->resident * d->processors / chains;
    const long blocks = clamped((work + 2047) / 2048, 1, clamped(together, 1, 4096));
    launch(run, kernel, (GmGrid){ .x = blocks, .y = chains, .cooperative = blocks > 1 });
}

void gm_device_team(GmRun *run, const char *kernel, long work) { gm_device_shared(run, kernel, work, run->device->chains); }

void gm_device_once(GmRun *run, const char *kernel)
{
    launch(run, kernel, (GmGrid){ .x = 1, .y = run->device->chains, .threads = 1 });
}

double gm_device_result(GmRun *run, int chain)
{
    GmDevice *d = run->device;
    if (d->no_result || d->failed) return 0;
    GmPlace place;
    double result = NAN;
    gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "waiting");
    gm_device_good(d, gm_device_get(d, &place, d->place, sizeof place), "fetching the run's place");
    if (!d->failed) gm_device_good(d, gm_device_get(d, &result, (CUdeviceptr)(uintptr_t)(place.result + chain), sizeof result), "fetching the log joint density");
    return result;
}
