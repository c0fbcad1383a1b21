// device_memory.c -- memory of a GPU and page-locked memory of the host, under the limit of --device-memory.
#include "device_inside.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNED = 256 };

// ---- taking and giving back ----

// Of no bytes, which a driver refuses, there is an address all the same.
static int take(GmDevice *d, CUdeviceptr *to, size_t bytes)
{
    *to = 0;
    if (d->limit && d->used + bytes > d->limit) return CUDA_ERROR_OUT_OF_MEMORY;
    const int result = gm_cuda.cuMemAlloc(to, bytes ? bytes : ALIGNED);
    if (result == 0) d->used += bytes;
    else *to = 0;
    return result;
}

// Heads of arrays lie on the card only to save the way from the host.
void gm_device_heads_drop(GmDevice *d)
{
    d->head_taken = false;
    for (int f = 0; f < d->n_arrays; f++) {
        GmArray *a = &d->array[f];
        gm_device_give(d, &a->head, a->head_bytes + ALIGNED);
        a->head_bytes = 0;
        a->head_filled = false;
    }
}

// What lies on the card only to save the way from the host makes room.
int gm_device_take(GmDevice *d, CUdeviceptr *to, size_t bytes)
{
    int result = take(d, to, bytes);
    if (result != CUDA_ERROR_OUT_OF_MEMORY || d->capturing || !d->head_taken) return result;
    gm_cuda.cuStreamSynchronize(d->stream);
    gm_device_graphs_drop(d);  // they hold addresses of it
    gm_device_heads_drop(d);
    return take(d, to, bytes);
}

void gm_device_give(GmDevice *d, CUdeviceptr *at, size_t bytes)
{
    if (!*at) return;
    gm_cuda.cuMemFree(*at);
    d->used -= bytes;
    *at = 0;
}

// Bytes that can be had: of what is free the driver keeps a part for itself (a heap for kernels, code of libraries).
size_t gm_device_available(const GmDevice *d)
{
    size_t there = 0, all = 0;
    if (gm_cuda.cuMemGetInfo(&there, &all) != 0) return 0;
    const size_t kept = all / 64, rest = there > kept ? there - kept : 0, allowed = d->limit > d->used ? d->limit - d->used : 0;
    return d->limit && allowed < rest ? allowed : rest;
}

const char *gm_device_size_text(char to[32], double bytes)
{
    if (bytes < 9.995e8) snprintf(to, 32, "%.3g MB", bytes / 1e6);
    else snprintf(to, 32, "%.3g GB", bytes / 1e9);
    return to;
}

void gm_device_lacks_memory(GmDevice *d, const char *what, double needed)
{
    char a[32], b[32], limit[80] = "";
    const size_t there = gm_device_available(d);
    if (d->limit) snprintf(limit, sizeof limit, " under --device-memory");
    gm_device_end(d, GM_EXIT_MEMORY, "out of memory: %s needs %s and %s are free%s (fewer --chains%s or --device cpu help)", what,
                  gm_device_size_text(a, needed), gm_device_size_text(b, (double)there), limit, d->limit ? ", a larger limit" : "");
}

bool gm_device_have(GmDevice *d, CUdeviceptr *to, size_t bytes, const char *what)
{
    *to = 0;
    const int result = d->failed ? 0 : gm_device_take(d, to, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) gm_device_lacks_memory(d, what, (double)bytes);
    return gm_device_good(d, result, what);
}

bool gm_device_have_host(GmDevice *d, void **to, size_t bytes, const char *what)
{
    char size[32];
    *to = NULL;
    if (d->failed || gm_cuda.cuMemAllocHost(to, bytes ? bytes : ALIGNED) == 0) return !d->failed;
    *to = NULL;
    gm_device_end(d, GM_EXIT_MEMORY, "%s: the host does not have %s of memory that it can lock for the GPU (--device cpu needs none)", what,
                  gm_device_size_text(size, (double)bytes));
    return false;
}

CUdeviceptr gm_device_scratch(GmDevice *d, int which, size_t bytes)
{
    if (bytes <= d->scratch_size[which]) return d->scratch[which];
    if (d->rehearsing) {
        d->scratch_size[which] = bytes;
        return d->scratch[which] = ALIGNED;  // nobody looks there
    }
    if (d->capturing) {
        gm_device_refuse(d, "scratch memory grew inside a graph");
        return 0;
    }
    gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "waiting");
    gm_device_graphs_drop(d);  // they hold the old address: they are captured again
    gm_device_give(d, &d->scratch[which], d->scratch_size[which]);
    d->scratch_size[which] = 0;
    if (gm_device_have(d, &d->scratch[which], bytes, "work space")) d->scratch_size[which] = bytes;
    return d->scratch[which];
}

CUdeviceptr gm_device_text(GmDevice *d, const char *text)
{
    for (int k = 0; k < d->n_texts; k++)
        if (strcmp(d->text[k], text) == 0) return d->text_at[k];
    if (d->rehearsing) return ALIGNED;
    CUdeviceptr at = 0;
    const size_t bytes = strlen(text) + 1;
    if (d->capturing || !gm_device_have(d, &at, (bytes + 15) / 16 * 16, "a name")) return 0;
    gm_device_good(d, gm_device_put(d, at, text, bytes), "sending a name");
    d->text = gm_grow(d->text, (size_t)d->n_texts + 1, sizeof *d->text);
    d->text_at = gm_grow(d->text_at, (size_t)d->n_texts + 1, sizeof *d->text_at);
    d->text[d->n_texts] = gm_copy_text(text);
    d->text_at[d->n_texts++] = at;
    return at;
}

size_t gm_device_element(const GmDevice *d, GmType type)
{
    switch (type) {
    case GM_INT: return 4;
    case GM_REAL: return d->precision == GM_DOUBLE ? 8 : 4;
    case GM_WIDE: return 8;
    case GM_SOLVE: return d->precision == GM_SINGLE ? 4 : 8;
    }
    return 8;
}
