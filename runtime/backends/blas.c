// blas.c -- OpenBLAS, opened while the program runs. Test: tests/host/without_blas.test.
#define _GNU_SOURCE
#include "blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "files.h"
#include "library.h"

enum { EXIT_STOPPED = 4 };  // docs/fit.md
static const char *const sonames[] = {"libopenblas.so.0", "libopenblas.so", NULL};

static GmBlas table;
static bool found;
static char why[400];

// The library works on one thread: how it would share out a product decides how its sums are rounded, and draws are not to depend on the
// number of threads. CHOLMOD, which is opened later, calls the same library.
static void open_blas(void)
{
    void *library = gm_library_open(sonames, NULL, "GM_OPENBLAS", "", why, sizeof why);
    found = library != NULL;
#define MEMBER(member, type, symbol) found = found && gm_library_symbol(library, #symbol, &table.member);
    BLAS(MEMBER)
#undef MEMBER
    void (*set_threads)(int) = NULL;
    if (!found) return;
    if (gm_library_symbol(library, "openblas_set_num_threads", &set_threads)) set_threads(1);
    for (int k = 0; sonames[k]; k++) dlopen(sonames[k], RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
}

bool gm_blas_found(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_blas);
    return found;
}

const GmBlas *gm_blas(void)
{
    if (gm_blas_found()) return &table;
    fprintf(stderr, "OpenBLAS is needed and not found: %s (apt-get install libopenblas-dev)\n", why[0] ? why : "it lacks what is called");
    gm_files_remove();  // the first call comes before there are draws
    exit(EXIT_STOPPED);
}

void gm_blas_alone(void) { setenv("OPENBLAS_NUM_THREADS", "1", true); }
