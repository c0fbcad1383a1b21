// sizes.c -- what programs compute of sizes and bounds: where it has no value that a long holds, the run ends with a line.
#include "messages.h"

#include <stdlib.h>

long gm_inside(long i, long n, const char *name)
{
    if (i >= 0 && i < n) return i;
    gm_error("%s: its subscript is %ld, in a size or a bound, and goes from 1 to %ld", name, i + 1, n);
    exit(GM_EXIT_USAGE);
}

static _Noreturn void size_is_too_large(void)
{
    gm_error("a size or a bound is beyond 2^63: sizes that data give, or that numbers of the model give, do not fit each other");
    exit(GM_EXIT_USAGE);
}

long gm_times(long i, long n)
{
    long product;
    if (__builtin_mul_overflow(i, n, &product)) size_is_too_large();
    return product;
}

long gm_whole(double x)
{
    if (!(x >= -0x1p62 && x <= 0x1p62)) size_is_too_large();
    return (long)x;
}

long gm_remainder(long i, long n)
{
    if (n != 0) return i % n;
    gm_error("the remainder of a division by 0 is asked for in a size or a bound");
    exit(GM_EXIT_USAGE);
}
