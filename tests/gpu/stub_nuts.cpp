// stub_nuts.cpp -- HMC for the stub of a driver (stub_cuda.c, built with -DSTUB_NUTS): device/nuts.h as kernels have it, by one lane. The
// target is a normal distribution whose coordinates are standard but for their sum, signs alternating, whose variance is a hundredth. It
// shows without a GPU what the host makes of metrics on a GPU.
#include "../../runtime/device/base.h"
#include "../../runtime/device/rng.h"
#include "../../runtime/device/normal.h"
#include "../../runtime/device/special.h"

static struct { unsigned x, y; } threadIdx, blockIdx, blockDim = {1, 1}, gridDim = {1, 1};
#define __device__
#define __forceinline__ inline
#define __shared__ static
static void __syncthreads(void) {}
static void __threadfence(void) {}
static double __shfl_xor_sync(unsigned, double x, int) { return x; }
static uint32_t atomicAdd(uint32_t *at, uint32_t by) { return (*at += by) - by; }
#define __CUDACC_RTC__ 1
#include "../../runtime/device/nuts.h"
#undef __CUDACC_RTC__
#include "../../runtime/host/model.h"

#include <stdio.h>
#include <stdlib.h>

static const double held = 99;

// Of all transitions after warm-up: their number, leapfrog steps, squares of the first coordinate and of the sum over the root of n.
// Printed at the end.
static double transitions, steps, squares, squares_of_sum;

static void print(void)
{
    fprintf(stderr, "stub: %.0f transitions, %.2f steps, variances %.4f %.5f\n", transitions, steps / transitions,
            squares / transitions, squares_of_sum / transitions);
}

extern "C" void stub_move(const char *states, const GmPlace *place, const GmHmc *of, int chain)
{
    const char *const state = states + (size_t)chain * of->state_size;
    wide *const room = *(wide *const *)(state + of->machine), *const position = *(wide *const *)(state + of->position);
    const Sweep at = {place->seed, (uint32_t)(place->first_chain + chain), place->sweep + 1};
    NutsSettings settings = {};
    settings.steps = of->steps;
    settings.max_depth = of->depth;
    settings.step = of->step;
    settings.target = of->accept;
    Nuts m = nuts_shared(room, of->coordinates, 0, 0);
    Stream g = stream(at, of->var, STREAM_NUTS);
    nuts_begin(&m, &g, position, &settings, (long)place->sweep - of->first, of->adapts);
    while (nuts_next(&m)) {
        const wide *x = nuts_position(&m);
        double sum = 0;
        for (long i = 0; i < m.n; i++) sum += i % 2 ? -x[i] : x[i];
        m.log_density = 0;
        for (long i = 0; i < m.n; i++) {
            const double slope = -x[i] - (i % 2 ? -1 : 1) * held * sum / (double)m.n;
            nuts_gradient(&m)[i] = slope;
            m.log_density += 0.5 * x[i] * slope;
        }
    }
    for (long i = 0; i < m.n; i++) position[i] = nuts_position(&m)[i];
    nuts_kept(room, &m);
    wide *const says = *(wide *const *)(state + of->diagnostics);
    const double diagnostics[] = {m.accept_stat, m.stepsize, (double)m.treedepth, (double)m.n_leapfrog, (double)m.divergent, m.energy};
    for (int k = 0; k < 6; k++) says[k] = diagnostics[k];
    if ((long)place->sweep < place->warmup) return;
    double sum = 0;
    for (long i = 0; i < m.n; i++) sum += i % 2 ? -position[i] : position[i];
    if (transitions == 0) atexit(print);
    transitions++;
    steps += m.n_leapfrog;
    squares += position[0] * position[0];
    squares_of_sum += sum * sum / (double)m.n;
}
