// order.c -- rows in the order of their groups: a counting sort, on the CPU for both targets (once for a run).
#include "device_inside.h"

#include <stdlib.h>

void gm_order_rows(long n, long groups, const int *key, int *first, int *rows)
{
    for (long k = 0; k <= groups; k++) first[k] = 0;
    for (long i = 0; i < n; i++)
        if (key[i] >= 1 && key[i] <= groups) first[key[i] - 1]++;
    int total = 0;
    for (long k = 0; k <= groups; k++) {
        const int count = first[k];
        first[k] = total;
        total += count;
    }
    for (long i = 0; i < n; i++)  // now first[k] is where the next row of group k goes
        if (key[i] >= 1 && key[i] <= groups) rows[first[key[i] - 1]++] = (int)i;
    for (long k = groups; k > 0; k--) first[k] = first[k - 1];
    first[0] = 0;
}

void gm_device_order_rows(GmRun *run, long n, long groups, const int *key, int *first, int *rows)
{
    GmDevice *d = run->device;
    const size_t row_bytes = sizeof(int) * (size_t)n, group_bytes = sizeof(int) * (size_t)(groups + 1);
    int *on_host = gm_alloc((size_t)(2 * n + groups + 1), sizeof *on_host), *begin = on_host + n, *order = begin + groups + 1;
    if (gm_device_settled(d, run) &&
        gm_device_good(d, gm_device_get(d, on_host, (CUdeviceptr)(uintptr_t)key, row_bytes), "the groups of rows")) {
        gm_order_rows(n, groups, on_host, begin, order);
        gm_device_good(d, gm_device_put(d, (CUdeviceptr)(uintptr_t)first, begin, group_bytes), "the order of rows");
        gm_device_good(d, gm_device_put(d, (CUdeviceptr)(uintptr_t)rows, order, row_bytes), "the order of rows");
    }
    free(on_host);
}
