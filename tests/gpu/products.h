// products.h -- products of rows by themselves, as an emitted program would have them, and how the host launches them. For products.cu and
// the bench.
#ifndef PRODUCTS_H
#define PRODUCTS_H

#define GM_PRECISION float
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>
#include "../../runtime/device/base.h"
#include "../../runtime/device/rng.h"

// What kernels.h gives an emitted program.
typedef struct GmPlace { uint64_t seed, sweep; int32_t first_chain, chains; const int32_t *going; } GmPlace;
typedef struct GmContext { GmPlace *place; int chain, half; } GmContext;
typedef struct RowWeight { real shift, more; } RowWeight;
DEVICE Sweep gm_sweep_place(const GmPlace *place, int chain)
{
    Sweep at;
    at.seed = place->seed;
    at.chain = (uint32_t)(place->first_chain + chain);
    at.sweep = place->sweep + 1;
    return at;
}
#define SPAN(i, n, ...)                                                                                                 \
    for (wide *gm_into[] = {__VA_ARGS__}, **gm_go = gm_into; gm_go; gm_go = 0)                                          \
        for (auto gm_loop = span_begin(GM, gm_rows, n, gm_into); span_next(GM, &gm_loop, gm_into);)                     \
            for (long i = span_first(gm_loop); i < span_last(gm_loop); i += span_step(gm_loop))
#define SPAN_TOTAL(k, place_, x) span_total(GM, gm_rows, k, &(place_), x)

typedef struct Data { long N, p, K; float *X; int *y; } Data;
typedef struct State { wide *B, *e, *out_B, *out_e, *sums, *totals; real *X_B, *X_e, *weight_B, *weight_e; } State;

#include "../../runtime/device/row_pass.h"
#include "../../runtime/device/products_pass.h"

// Multinomial regression on B[p, K], and a scale exp(X e), e[p], of the logit of the first class: lp and 1 are added up.
template <class Rows>
static __device__ __forceinline__ void rows_of_B_span(GmContext *GM, const Data *d, const State *s, const Sweep, const Rows &gm_rows)
{
    wide lp = 0, count = 0;
    SPAN (i, d->N, &lp, &count) {
        const real *const eta = s->X_B + i * d->K;
        wide most = -INFINITY, sum = 0;
        for (long k = 0; k < d->K; k++) most = eta[k] < most ? most : eta[k];
        for (long k = 0; k < d->K; k++) sum += exp(eta[k] - most);
        const wide lse = most + log(sum);
        lp += eta[d->y[i] - 1] - lse;
        for (long k = 0; k < d->K; k++) s->weight_B[i * d->K + k] = (real)((k == d->y[i] - 1) - exp(eta[k] - lse));
        if (s->X_e) {
            lp -= 0.5 * s->X_e[i] * s->X_e[i];
            s->weight_e[i] = -s->X_e[i];
        }
        count += 1;
    }
    SPAN_TOTAL(0, s->totals[0], lp);
    SPAN_TOTAL(1, s->totals[1], count);
}
PRODUCTS_KERNELS(rows_of_B)

// ---- host ----

#define CK(call)                                                                                        \
    do {                                                                                                \
        const cudaError_t status_ = (call);                                                             \
        if (status_ != cudaSuccess) {                                                                   \
            printf("failed: line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(status_));          \
            exit(1);                                                                                    \
        }                                                                                               \
    } while (0)

typedef struct ProductsKernelOf { const char *name; const void *kernel; } ProductsKernelOf;
#define KERNEL_OF(argument, m, n) { "_products_" #m "_" #n, (const void *)rows_of_B_products_##m##_##n },
static const ProductsKernelOf products_kernels[] = { PRODUCTS_SHAPES(KERNEL_OF, 0) };

static const void *products_kernel(const char *name)
{
    for (size_t k = 0; k < sizeof products_kernels / sizeof *products_kernels; k++)
        if (!strcmp(products_kernels[k].name, name)) return products_kernels[k].kernel;
    printf("failed: no kernel %s\n", name);
    exit(1);
}

// The work space of a plan, and what `with_e` adds to B.
static void products_prepare(ProductsPlan *plan, const Data &d, bool with_e)
{
    ProductsPass *pass = &plan->pass;
    const ProductsOf B = {
        offsetof(State, X_B), offsetof(State, weight_B), offsetof(State, B), offsetof(State, out_B), offsetof(State, sums), d.K, 0};
    const ProductsOf e = {
        offsetof(State, X_e), offsetof(State, weight_e), offsetof(State, e), offsetof(State, out_e), PRODUCTS_NO_FIELD, 1, 0};
    pass->of[0] = B;
    pass->of[1] = e;
    pass->count = 1 + with_e;
    pass->total = offsetof(State, totals);
    pass->X = d.X;
    CK(cudaMalloc(&pass->pieces, (size_t)plan->pieces * sizeof(float) + 1));
    CK(cudaMalloc(&pass->part, (size_t)plan->part * sizeof(float) + 1));
    CK(cudaMalloc(&pass->part_totals, (size_t)plan->part_totals * sizeof(double) + 1));
    CK(cudaMemset(pass->part, 255, (size_t)plan->part * sizeof(float)));
    const void *kernel = products_kernel(plan->kernel);
    if (plan->shared > 48 * 1024) CK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan->shared));
    if (plan->shared > 48 * 1024 && pass->narrow)
        CK(cudaFuncSetAttribute(products_kernel(plan->narrow), cudaFuncAttributeMaxDynamicSharedMemorySize, plan->shared));
}

static void products_free(ProductsPlan *plan)
{
    cudaFree(plan->pass.pieces);
    cudaFree(plan->pass.part);
    cudaFree(plan->pass.part_totals);
}

static void products_launch(const ProductsPlan *plan, Data d, State *states, GmPlace *place, cudaStream_t stream)
{
    ProductsPass pass = plan->pass;
    void *others[] = { &states, &place, &pass }, *rows[] = { &d, &states, &place, &pass };
    CK(cudaLaunchKernel((const void *)gm_products_pieces, dim3((unsigned)plan->piece_blocks), dim3(256), others, 0, stream));
    for (int k = 0; k < (pass.narrow ? 2 : 1) && pass.chunks > 0; k++)
        CK(cudaLaunchKernel(products_kernel(k ? plan->narrow : plan->kernel), dim3((unsigned)(pass.chunks * pass.batches)),
                            dim3(PRODUCTS_THREADS), rows, (size_t)plan->shared, stream));
    CK(cudaLaunchKernel((const void *)gm_products_sums, dim3((unsigned)plan->sum_blocks), dim3(256), others, 0, stream));
}

#endif
