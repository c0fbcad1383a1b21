// device_code.h -- what gmc puts into a fit program for GPUs (compiler/driver/image.c): the text of its device half with all headers in it,
// and an image compiled from it. A program made with --no-device, or by another compiler, lacks it.
#ifndef GM_DEVICE_CODE_H
#define GM_DEVICE_CODE_H

#include "../backends/nvrtc.h"

typedef struct GmDeviceCode {
    const char *name;         // of the emitted file, for messages of NVRTC
    const char *text;         // ends in 0
    GmPrecision precision;    // of the image
    const char *arch;         // "sm_90", "compute_75"; NULL: there is no image
    const char *ptx, *cubin;  // cubin: NULL for "compute_..."
    size_t ptx_size, cubin_size;
} GmDeviceCode;

extern const GmDeviceCode gm_device_code __attribute__((weak));

#endif
