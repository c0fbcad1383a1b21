// nvrtc.h -- device code from an emitted program's text, by NVRTC, NVIDIA's run-time compiler. Used by gmc, which puts the code into
// the fit program, and by fit programs for what was not put in (another precision, another GPU).
#ifndef GM_NVRTC_H
#define GM_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

// --precision: the types of device code (GmType in host/model.h).
typedef enum { GM_DOUBLE, GM_MIXED, GM_SINGLE, GM_PRECISIONS } GmPrecision;

extern const char *const gm_precision_names[GM_PRECISIONS];  // "double", ...

// Device code for one precision. PTX runs on the architecture it was made for and all later ones; a cubin on that one only (and those
// of the same major number above it), but the driver has nothing left to compile.
typedef struct GmImage {
    char *ptx;    // ends in 0
    void *cubin;  // NULL: none
    size_t ptx_size, cubin_size;
    char *log;  // what NVRTC said, or what is wrong; NULL: nothing
} GmImage;

// Is NVRTC here? Looked for once. version (or NULL): 1000 * major + 10 * minor. false: *why says in words what is missing and what to do.
bool gm_nvrtc_found(int *version, const char **why);

// Compiles `text`, which has no #include left but those of the compiler, for `arch`: "sm_90" gives a cubin too, "compute_75" only PTX.
// false: out->log says why. gm_image_free in either case.
bool gm_nvrtc_compile(const char *text, const char *name, GmPrecision precision, const char *arch, GmImage *out);

// The same out of a cache on disk, $XDG_CACHE_HOME/gmc or ~/.cache/gmc, keyed by text, options and version. Compiles and stores what is not
// there, or damaged; `afresh`: whatever is there. A cache that cannot be read or written is done without.
bool gm_nvrtc_cached(const char *text, const char *name, GmPrecision precision, const char *arch, bool afresh, GmImage *out);
bool gm_nvrtc_is_cached(const char *text, GmPrecision precision, const char *arch);  // whether a file of the cache has it

// The oldest architecture that this NVRTC compiles for, "compute_75", in `to`.
const char *gm_nvrtc_oldest(char *to, size_t room);

void gm_image_free(GmImage *image);

// Compares with NVRTC's list: is `arch` ("sm_90", "compute_90") one that it knows? The list as "sm_75 sm_80 ..." in `list`.
bool gm_nvrtc_knows(const char *arch, char *list, size_t room);

#endif
