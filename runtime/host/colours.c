// colours.c -- elements of a vector by colours, so that no two of one colour meet in a factor: on the CPU for both targets, once for a run.
#include "device_inside.h"

#include <stdlib.h>

static int is_pair(long n, int a, int b) { return a >= 1 && a <= n && b >= 1 && b <= n && a != b; }

void gm_colour_elements(long n, long pairs, const int *one, const int *other, int *first, int *elements)
{
    long *begin = gm_alloc((size_t)n + 2, sizeof *begin);  // neighbours of element e: near[begin[e]] .. near[begin[e + 1] - 1]
    for (long i = 0; i < pairs; i++) {
        if (!is_pair(n, one[i], other[i])) continue;
        begin[one[i] + 1]++;
        begin[other[i] + 1]++;
    }
    for (long e = 1; e < n + 2; e++) begin[e] += begin[e - 1];
    int *near = gm_alloc((size_t)begin[n + 1] + 1, sizeof *near), *colour = gm_alloc((size_t)n + 1, sizeof *colour);
    long *taken = gm_alloc((size_t)n + 2, sizeof *taken);  // by a neighbour of element taken[c] - 1
    for (long i = 0; i < pairs; i++) {                     // now begin[e + 1] is where the next neighbour of e goes
        if (!is_pair(n, one[i], other[i])) continue;
        near[begin[one[i]]++] = other[i] - 1;
        near[begin[other[i]]++] = one[i] - 1;
    }
    for (long e = 0; e < n; e++) colour[e] = -1;
    for (long e = 0; e < n; e++) {
        for (long i = begin[e]; i < begin[e + 1]; i++)
            if (colour[near[i]] >= 0) taken[colour[near[i]]] = e + 1;
        int c = 0;
        while (taken[c] == e + 1) c++;
        colour[e] = c;
    }
    for (long e = 0; e < n; e++) colour[e]++;  // groups are numbered from 1
    gm_order_rows(n, n, colour, first, elements);
    free(taken);
    free(colour);
    free(near);
    free(begin);
}

void gm_device_colour_elements(GmRun *run, long n, long pairs, const int *one, const int *other, int *first, int *elements)
{
    GmDevice *d = run->device;
    const size_t bytes = sizeof(int) * (size_t)pairs;
    int *a = gm_alloc((size_t)(2 * pairs + 2 * n + 1) + 1, sizeof *a), *b = a + pairs, *begin = b + pairs, *order = begin + n + 1;
    if (gm_device_settled(d, run) && gm_device_good(d, gm_device_get(d, a, (CUdeviceptr)(uintptr_t)one, bytes), "elements that meet") &&
        gm_device_good(d, gm_device_get(d, b, (CUdeviceptr)(uintptr_t)other, bytes), "elements that meet")) {
        gm_colour_elements(n, pairs, a, b, begin, order);
        gm_device_good(d, gm_device_put(d, (CUdeviceptr)(uintptr_t)first, begin, sizeof(int) * (size_t)(n + 1)), "colours of elements");
        gm_device_good(d, gm_device_put(d, (CUdeviceptr)(uintptr_t)elements, order, sizeof(int) * (size_t)n), "colours of elements");
    }
    free(a);
}
