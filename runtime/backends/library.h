// library.h -- shared libraries of NVIDIA's toolkit, found while the program runs: neither gmc nor a fit program needs them to be built
// or to start.
#ifndef GM_LIBRARY_H
#define GM_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

// Opens the first of `sonames` (ending in NULL) that is found. If the environment variable `variable` is set, the file or folder that it
// names is the only place. Otherwise they are the system's library path, the folders where the CUDA Toolkit installs itself, and those of
// the PyPI wheel `wheel` ("cuda_nvrtc") below the site-packages of the Python in use. `helpers` (ending in NULL, or NULL) are libraries
// that it loads by name itself: they are opened first from the same folder, if they are there. NULL: not found; then `why` says where was
// looked.
void *gm_library_open(const char *const *sonames, const char *const *helpers, const char *variable, const char *wheel, char *why,
                      size_t room);

// The address of a symbol as *to; false if the library lacks it.
bool gm_library_symbol(void *library, const char *name, void *to);

#endif
