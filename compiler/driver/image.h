// image.h -- the half of a fit program that runs on GPUs: its text, and code that NVRTC makes of it, as an object to be linked.
#ifndef GMC_IMAGE_H
#define GMC_IMAGE_H

#include "../../runtime/backends/nvrtc.h"
#include "../base/arena.h"

// The emitted program at `path` with runtime_cuda.h after it and every #include "..." replaced by the file, once; ends in 0. Lines keep
// their numbers by #line. NULL after a message: a file cannot be read.
char *image_text(Arena *a, const char *path, const char *runtime);

// The C source of an object that defines gm_device_code (runtime/host/device_code.h): the text, and the image if there is one. `stem` is
// the beginning of the names of the files that it needs while it is compiled: stem.text, stem.ptx, stem.cubin, and stem.c itself. false
// after a message.
bool image_write(const char *stem, const char *runtime, const char *name, const char *text, GmPrecision precision, const char *arch,
                 const GmImage *image);

// The architecture of the first GPU here, "sm_90"; NULL: there is none.
const char *image_arch_found(Arena *a);

#endif
