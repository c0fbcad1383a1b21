// rows.h -- a probit row pass by itself, as an emitted program would have it, and how the host launches it. For rows.cu and the bench.
#ifndef ROWS_H
#define ROWS_H

#ifndef GM_PRECISION
#define GM_PRECISION float
#endif
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../runtime/device/base.h"
#include "../../runtime/device/rng.h"
#include "../../runtime/device/truncated.h"
#include "../../runtime/device/truncated_single.h"

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
DEVICE RowWeight row_weight_and(real shift, real more)
{
    RowWeight w;
    w.shift = shift;
    w.more = more;
    return w;
}

typedef struct Data { long N, p; real *X; unsigned char *y; } Data;
typedef struct State { wide *alpha, *beta; real *z; wide *shift, *squares; real *dot; } State;
enum { VAR_z = 3 };

#include "../../runtime/device/row_pass.h"

#define ROW(name, k)                                                                                                                   \
    static __device__ __forceinline__ RowWeight name##_row(GmContext *GM, const Data *d, const State *s, const Sweep at, const long k, \
                                                           const real dot);                                                            \
    ROW_PASS_KERNELS(name)                                                                                                             \
    static __device__ __forceinline__ RowWeight name##_row(GmContext *GM, const Data *d, const State *s, const Sweep at, const long k, \
                                                           const real dot)

ROW(draw_z, k) {
    const real h = (real)*s->alpha + dot;
    const real q = -0.5;
    const real lower = d->y[k] == 1 ? (real)0 : -(real)INFINITY;
    const real upper = d->y[k] == 1 ? (real)INFINITY : (real)0;
    Stream g = stream(at, VAR_z, k);
    const real x = normal_natural_truncated(&g, h, q, lower, upper);
    (void)GM;
    s->z[k] = x;
#ifdef ROWS_KEEP_DOT
    s->dot[k] = dot;
#endif
    return row_weight_and(x, x * x);
}

// ---- host ----

#define CK(call)                                                                                        \
    do {                                                                                                \
        const cudaError_t status_ = (call);                                                             \
        if (status_ != cudaSuccess) {                                                                   \
            printf("failed: line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(status_));          \
            exit(1);                                                                                    \
        }                                                                                               \
    } while (0)

typedef struct RowKernel { const char *name; const void *kernel; } RowKernel;
#define KERNEL_ROWS_OF(shape, chains) { "_rows_" #shape "_" #chains, (const void *)draw_z_rows_##shape##_##chains },
#define KERNEL_ROWS3(argument, shape, ...) KERNEL_ROWS_OF(shape, 1) KERNEL_ROWS_OF(shape, 4)
#define KERNEL_ROWS1(argument, shape, ...) KERNEL_ROWS_OF(shape, 1)
static const RowKernel row_kernels[] = { ROW_SHAPES(KERNEL_ROWS3, KERNEL_ROWS3, KERNEL_ROWS1, KERNEL_ROWS1, 0) };

static const void *row_kernel(const char *name)
{
    for (size_t k = 0; k < sizeof row_kernels / sizeof *row_kernels; k++)
        if (!strcmp(row_kernels[k].name, name)) return row_kernels[k].kernel;
    printf("failed: no kernel %s\n", name);
    exit(1);
}

// One row pass over all chains, not more than `most` in one reading. `partial` must hold the largest plan's doubles. use: 1 dot, 2 sums, 3
// both.
static void launch_rows(Data d, State *states, GmPlace *place, int chains, int most, int use, double *partial)
{
    RowPlan plan;
    for (int chain = 0; chain < chains; chain += plan.pass.chains) {
        plan = row_plan(d.N, d.p, chains - chain < most ? chains - chain : most, (int)sizeof(real), 227 * 1024);
        plan.pass.X = d.X;
        if (use & 1) plan.pass.beta = offsetof(State, beta);
        if (use & 2) plan.pass.out = offsetof(State, shift);
        if (use & 2) plan.pass.total = offsetof(State, squares);
        plan.pass.chain = chain;
        plan.pass.partial = partial;
        const void *kernel = row_kernel(plan.kernel);
        if (plan.shared > 48 * 1024) CK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan.shared));
        void *arguments[] = { &d, &states, &place, &plan.pass };
        CK(cudaLaunchKernel(kernel, dim3((unsigned)plan.pass.chunks), dim3((unsigned)plan.threads), arguments, (size_t)plan.shared, 0));
        if (use & 2)
            CK(cudaLaunchKernel((const void *)gm_row_pass_sums, dim3((unsigned)plan.sum_blocks), dim3(ROW_SUM_THREADS), arguments, 0, 0));
    }
}

#endif
