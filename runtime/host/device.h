// device.h -- a run on a GPU, as the launches of an emitted program see it (launch.h).
//
// `run->data` and `run->state` are host copies of Data and of each chain's State whose pointers lie in device memory. Fields of
// State are named by their offsets. Every launch serves all chains of the run and returns at once; a fault is kept by the device
// and found by the host at the end of a batch.
#ifndef GM_DEVICE_H
#define GM_DEVICE_H

#include <stddef.h>
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GM_NO_FIELD ((size_t)-1)

void gm_device_each(GmRun *run, const char *kernel, long n);                   // KERNEL: n elements a chain
void gm_device_colours(GmRun *run, const char *kernel, long n, long colours);  // KERNEL: class by class
void gm_device_team(GmRun *run, const char *kernel, long work);                // KERNEL_TEAM: a team of blocks for each chain
void gm_device_once(GmRun *run, const char *kernel);                           // KERNEL_ONCE: one thread for each chain
void gm_device_shared(GmRun *run, const char *kernel, long work, int chains);  // KERNEL_TEAM, for the first `chains` chains
// the same for one class of elements after the other
void gm_device_team_colours(GmRun *run, const char *kernel, long work, long colours);
void gm_device_sweeps(GmRun *run, void (*sweep)(GmRun *));       // run->batch sweeps, run->after after each
const void *gm_device_on_host(const GmRun *run, const void *x);  // the host's own of an array of data that the device has at x
double gm_device_result(GmRun *run, int chain);                  // of the last log_joint

// A row pass (runtime/device/row_pass.h) over X[n, p]: dot = X[k] * beta, then the emitted row, then out[p] = sum of weight * X[k].
// total[0] = the sum of what the rows add to it. out = GM_NO_FIELD: nothing is added up; total = GM_NO_FIELD: no total.
void gm_device_rows(GmRun *run, const char *kernel, long n, long p, const void *X, size_t beta, size_t out, size_t total);

// out[p, p] = scale * X'X for X[n, p] of type real, out wide; for all chains at once (out is shared).
void gm_device_gram(GmRun *run, long n, long p, double scale, const void *X, void *out);

// out[p, p] = X' diag(w) X and out[p] = X'w, for each chain; w is of type real, out wide.
void gm_device_weighted_gram(GmRun *run, long n, long p, const void *X, size_t w, size_t out);
void gm_device_row_sums(GmRun *run, long n, long p, const void *X, size_t w, size_t out);

// eta[n, k] = X B for X[n, p] of type real and B[p, k] or, transposed, B[k, p]; then the kernel, if it has a name, which adds to
// totals[ntotals]; then out = X'w and, if it has a field, sums[k] = 1'w. For each chain: fields of State.
typedef struct GmProduct {
    long p, k;
    const void *X;
    size_t coefficients;
    int transposed;
    size_t eta, weight, out, sums;
} GmProduct;
void gm_device_products(GmRun *run, const char *kernel, long n, size_t totals, long ntotals, const GmProduct *list, int count);

// The same as gm_order_rows, on arrays of the device that all chains share.
// and as gm_colour_elements
void gm_device_colour_elements(GmRun *run, long n, long pairs, const int *one, const int *other, int *first, int *elements);
void gm_device_order_rows(GmRun *run, long n, long groups, const int *key, int *first, int *rows);

// Rows in the order of their groups, and within one in their own: group k (from 0) has rows[first[k]] .. rows[first[k + 1] - 1].
// key[n]: the group of each row, from 1; rows with another key are left out. first[groups + 1], rows[n].
// Colours of n elements so that one[i] and other[i] (from 1; what lies outside counts for none) have different ones: elements of colour c
// are elements[first[c]] .. elements[first[c + 1] - 1], each list in order; first[n + 1] is n from the number of colours on. One after the
// other each takes the first colour that none of its neighbours has (Welsh and Powell 1967, in the order given): at most the largest number
// of neighbours and 1.
void gm_colour_elements(long n, long pairs, const int *one, const int *other, int *first, int *elements);
void gm_order_rows(long n, long groups, const int *key, int *first, int *rows);

// Joint normal draws for each chain; J[n, n] and h[n] are of type solve, x[n] and the rest wide. scale: GM_NO_FIELD, or
// {Q, count, the scale drawn}. See linalg.h. `var` keys the stream; `name` is the variable that a fault names.
void gm_device_normal_dense(GmRun *run, uint32_t var, const char *name, long n, size_t J, size_t h, size_t x, size_t scale);
void gm_device_normal_rows(GmRun *run, uint32_t var, const char *name, long n, long p, size_t D, size_t h, size_t rows, size_t y, size_t M,
                           size_t x, size_t scale);  // n < p rows; h, rows and M of type solve
void gm_device_normal_arrow(GmRun *run, uint32_t var, const char *name, long n, size_t J, size_t h, size_t x, long m, size_t D, size_t E,
                            size_t k, size_t u, size_t scale);

// Joint normal `number`, whose precision has few entries and n elements (backends/sparse.h): `kernel`, a KERNEL_TERMS, says where its terms
// are, and how it is drawn is chosen; `most` as in gm_pattern_begin. Then draws of x[n], for which the kernel lists the terms anew.
void gm_device_pattern(GmRun *run, const char *kernel, const char *name, int number, long n, double most);
void gm_device_normal_sparse(GmRun *run, const char *kernel, uint32_t var, const char *name, int number, size_t x, size_t scale);

// An HMC update of all chains (runtime/device/nuts.h): density(run) launches the kernels of the density, as often as a chain needs it.
void gm_device_hmc(GmRun *run, const GmHmc *of, void (*density)(GmRun *));

#ifdef __cplusplus
}
#endif
#endif
