// device_calls.c -- calls of the driver: errors, copies, launches of kernels, marks of time. It knows nothing of models.
#include "device_inside.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

// ---- errors ----

// The first message is the cause; what fails after it follows from it.
void gm_device_end(GmDevice *d, GmExit status, const char *format, ...)
{
    if (d->failed) return;
    char text[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *name = *d->name ? d->name : "its name is not known";
    if (d->why) snprintf(d->why, d->why_room, "GPU %d (%s): %s", d->ordinal, name, text);
    else gm_error("GPU %d (%s): %s", d->ordinal, name, text);
    d->failed = true;
    d->status = status;
}

void gm_device_refuse(GmDevice *d, const char *what) { gm_device_end(d, d->why ? GM_EXIT_DEVICE : GM_EXIT_LOST, "%s", what); }

bool gm_device_good(GmDevice *d, int result, const char *what)
{
    if (result != 0)
        gm_device_end(d,
                      result == CUDA_ERROR_OUT_OF_MEMORY ? GM_EXIT_MEMORY
                      : d->why                           ? GM_EXIT_DEVICE
                                                         : GM_EXIT_LOST,
                      "%s: %s; %s", what, gm_cuda_error(result), gm_cuda_remedy(result));
    return !d->failed;
}

// ---- copies ----

// The streams do not wait for the default one, so that plain copies would run beside kernels: copies stand in the main stream.
int gm_device_put(GmDevice *d, CUdeviceptr to, const void *from, size_t bytes)
{
    const int result = bytes && !d->rehearsing ? gm_cuda.cuMemcpyHtoDAsync(to, from, bytes, d->stream) : 0;
    return result ? result : gm_cuda.cuStreamSynchronize(d->stream);
}

int gm_device_get(GmDevice *d, void *to, CUdeviceptr from, size_t bytes)
{
    int f = 0;
    if (d->rehearsing) return 0;
    while (f < d->n_arrays && !(d->array[f].away && from >= d->array[f].at && from < d->array[f].at + d->array[f].bytes)) f++;
    int result = bytes && f == d->n_arrays ? gm_cuda.cuMemcpyDtoHAsync(to, from, bytes, d->stream) : 0;
    if (result == 0) result = gm_cuda.cuStreamSynchronize(d->stream);
    if (f < d->n_arrays) memcpy(to, (const void *)(uintptr_t)from, bytes);  // it lies in the host's memory
    return result;
}

// In the main stream. A driver refuses memory of no bytes.
void gm_device_fill(GmDevice *d, CUdeviceptr at, unsigned char value, size_t bytes, const char *what)
{
    if (bytes && !d->failed) gm_device_good(d, gm_cuda.cuMemsetD8Async(at, value, bytes, d->stream), what);
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
    d->kernel[d->n_kernels] = (GmKernelEntry){.name = gm_copy_text(name)};
    return d->n_kernels++;
}

GmKernelEntry *gm_device_kernel(GmDevice *d, const char *name)
{
    GmKernelEntry *e = &d->kernel[entry_of(d, name)];
    if (!e->function && gm_cuda.cuModuleGetFunction(&e->function, d->module, name) != 0 &&
        !(d->moves_module && gm_cuda.cuModuleGetFunction(&e->function, d->moves_module, name) == 0)) {
        if (d->moves_apart && d->rehearsing) return e;
        char text[300];
        snprintf(text, sizeof text, "the program's code for GPUs lacks the kernel %s", name);
        gm_device_refuse(d, text);
        return NULL;
    }
    return e;
}

int gm_device_time_from(GmDevice *d, const char *name, CUstream stream)
{
    if (!d->profile || d->failed || d->rehearsing) return -1;
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
        d->kernel[t->entry].seconds += (double)milliseconds / 1000;
        d->kernel[t->entry].launches++;
        t->entry = -1;
    }
}

// A launch of no blocks, which a driver refuses, has nothing to do.
void gm_device_launch(GmDevice *d, CUstream stream, const char *kernel, GmGrid g, void **parameters)
{
    if (d->failed || g.x <= 0) return;
    GmKernelEntry *e = gm_device_kernel(d, kernel);
    if (!e || d->rehearsing) return;
    const unsigned x = (unsigned)g.x, y = g.y ? (unsigned)g.y : 1, z = g.z ? (unsigned)g.z : 1,
                   threads = g.threads ? (unsigned)g.threads : GM_THREADS;
    const int timing = gm_device_time_from(d, kernel, stream);
    const int result = g.cooperative
                           ? gm_cuda.cuLaunchCooperativeKernel(e->function, x, y, z, threads, 1, 1, (unsigned)g.shared, stream, parameters)
                           : gm_cuda.cuLaunchKernel(e->function, x, y, z, threads, 1, 1, (unsigned)g.shared, stream, parameters, NULL);
    gm_device_time_to(d, timing, stream);
    gm_device_good(d, result, kernel);
}

void gm_device_graphs_drop(GmDevice *d)
{
    for (int k = 0; k < d->n_forms * GM_SWEEPS; k++) {
        const CUgraphExec graph = d->form[k / GM_SWEEPS].graph[k % GM_SWEEPS];
        if (graph) gm_cuda.cuGraphExecDestroy(graph);
    }
    d->n_forms = 0;
}
