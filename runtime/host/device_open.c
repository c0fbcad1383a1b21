// device_open.c -- opens a GPU for a run, and gives back what the run has taken.
#include "device_inside.h"

#include <stdlib.h>
#include <string.h>

// What the GPU is, its context, streams and events.
static void open_context(GmDevice *d)
{
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
    gm_device_good(d, result, "it cannot be used");
}

GmDevice *gm_device_open(const GmModel *model, const GmData *data, const GmMemory *memory, const GmOptions *o, const GmDraws *draws,
                         GmRun *run, GmExit *status, char *why, size_t room)
{
    const char *absent;
    char text[900];
    *status = GM_EXIT_DEVICE;
    if (!gm_cuda_driver(&absent)) {
        snprintf(why, room, "%s", absent);
        return NULL;
    }
    if (o->device_number >= gm_cuda.devices) {
        if (gm_cuda.devices == 1) snprintf(why, room, "there is no GPU %d; there is one, number 0", o->device_number);
        else snprintf(why, room, "there is no GPU %d; they are numbered from 0 to %d", o->device_number, gm_cuda.devices - 1);
        return NULL;
    }
    GmDevice *d = gm_alloc(1, sizeof *d);
    *d = (GmDevice){.ordinal = o->device_number,
                    .precision = o->precision,
                    .model = model,
                    .chains = run->chains,
                    .profile = o->profile,
                    .host_data = run->data,
                    .host_state = run->state,
                    .plain = o->profile,
                    .limit = o->device_memory,
                    .why = why,
                    .why_room = room};
    d->n_arrays = model->n_data + model->n_state;
    d->array = gm_alloc((size_t)d->n_arrays + 1, sizeof *d->array);
    d->data = gm_alloc(1, model->data_size);
    d->state = gm_alloc((size_t)d->chains, model->state_size);
    memcpy(d->data, d->host_data, model->data_size);
    open_context(d);
    if (!d->failed && d->capability < 70)
        gm_device_end(d, GM_EXIT_DEVICE, "its compute capability is %d.%d, and 7.0 or later is needed", d->capability / 10,
                      d->capability % 10);
    if (!d->failed && !gm_device_image(d, text, sizeof text)) gm_device_refuse(d, text);
    if (d->failed || !gm_device_allocate(d, data, memory, run, gm_device_ring_size(d, draws))) {
        *status = d->status;
        gm_device_close(d);
        return NULL;
    }
    d->why = NULL;
    run->data = d->data;
    run->state = d->state;
    run->device = d;
    return d;
}

void gm_device_close(GmDevice *d)
{
    if (!d) return;
    if (d->stream) gm_cuda.cuStreamSynchronize(d->stream);
    gm_device_graphs_drop(d);
    gm_device_hmc_close(d);
    gm_device_sparse_close(d);
    gm_device_pieces_close(d);
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
    const CUdeviceptr blocks[] = {d->watched_column, d->watched_kept, d->watched_ring, d->column, d->kept, d->ring, d->block};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++)
        if (blocks[k]) gm_cuda.cuMemFree(blocks[k]);
    if (d->fork) gm_cuda.cuEventDestroy(d->fork);
    if (d->stream) gm_cuda.cuStreamDestroy(d->stream);
    if (d->copies) gm_cuda.cuStreamDestroy(d->copies);
    if (d->module) gm_cuda.cuModuleUnload(d->module);
    if (d->moves_module) gm_cuda.cuModuleUnload(d->moves_module);
    for (int k = 0; k < d->n_kernels; k++) free(d->kernel[k].name);
    if (d->context) gm_cuda.cuDevicePrimaryCtxRelease(d->ordinal);
    free(d->text);
    free(d->text_at);
    free(d->array);
    free(d->data);
    free(d->state);
    free(d);
}
