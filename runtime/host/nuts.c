// nuts.c -- the sampler of device/nuts.h for programs on the CPU, compiled once: it knows nothing of a model, and is longer than most
// programs.
#include "../device/nuts.h"

// Loops over coordinates, by the vectors of the machine that the program runs on. The Makefile has the flags that let sums be taken so.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define EACH_MACHINE __attribute__((flatten, target_clones("default", "arch=haswell", "arch=skylake-avx512")))
#else
#define EACH_MACHINE
#endif

void gm_nuts_start(Nuts *m, Stream *g, const wide *x, const NutsSettings *settings, long sweep, long warmup);
int gm_nuts_ask(Nuts *m);

EACH_MACHINE void gm_nuts_start(Nuts *m, Stream *g, const wide *x, const NutsSettings *settings, long sweep, long warmup)
{
    nuts_begin(m, g, x, settings, sweep, warmup);
}

EACH_MACHINE int gm_nuts_ask(Nuts *m) { return nuts_next(m); }
