// upper_halves.c -- counts calls of functions of the C library, and those with the upper halves of vector registers in use. Loaded before
// the library; the counts stand in the file that UPPER_HALVES names.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int64_t *counts;

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("UPPER_HALVES");
    const int file = name ? open(name, O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
    if (file < 0 || ftruncate(file, 2 * sizeof *counts)) return;
    void *at = mmap(NULL, 2 * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at != MAP_FAILED) counts = at;
}

static void count(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));  // bit 2: the upper halves are not as they were at the beginning
    if (!counts) return;
    counts[0]++;
    counts[1] += low >> 2 & 1;
}

#define COUNTED(name)                                                          \
    double name(double x)                                                      \
    {                                                                          \
        static double (*function)(double);                                     \
        if (!function) function = (double (*)(double))dlsym(RTLD_NEXT, #name); \
        count();                                                               \
        return function(x);                                                    \
    }
COUNTED(exp)
COUNTED(log)
COUNTED(log1p)
COUNTED(expm1)
COUNTED(erfc)
COUNTED(lgamma)
