// kernels_cuda.h -- kernels.h on a GPU: a kernel is a __global__ function for all chains, chain c in row c of the grid.
//
//   KERNEL        a thread for each element, in a grid-stride loop
//   ROW           a __device__ function; row_pass.h makes the kernels around it
//   KERNEL_TEAM   a team of blocks for each chain that can wait for each other (a cooperative launch, if there is more than one)
//   KERNEL_ONCE   one thread for each chain
#ifndef GM_KERNELS_CUDA_H
#define GM_KERNELS_CUDA_H

#if defined(__NVCC__)
#pragma nv_diag_suppress 177     // what only --check reads
#endif

enum { GM_THREADS = 256 };       // of a block of a team: sums depend on it

typedef struct GmContext {
    GmPlace *place;
    int      chain;              // within the run
    int      half;               // of the partial sums: they take turns, so that nobody waits before the next
} GmContext;

DEVICE Sweep gm_sweep_place(const GmPlace *place, int chain)
{
    Sweep at;
    at.seed = place->seed;
    at.chain = (uint32_t)(place->first_chain + chain);
    at.sweep = place->sweep + 1;
    return at;
}

DEVICE GmContext gm_context_of(GmPlace *place)
{
    GmContext c;
    c.place = place;
    c.chain = (int)blockIdx.y;
    c.half = 0;
    return c;
}

#define GM gm_context
#define KERNEL(name)      GM_KERNEL_FOR(name, true)
#define KERNEL_TEAM(name) GM_KERNEL_FOR(name, true)
#define KERNEL_ONCE(name) GM_KERNEL_FOR(name, gm_thread == 0)          // whatever the launch: LAUNCH_SHARED makes a team
#define GM_KERNEL_FOR(name, mine)                                                                                       \
    static __device__ __forceinline__ void name##_body(GmContext *GM, const Data &d, const State &s, const Sweep at);   \
    extern "C" __global__ void name(const Data d, const State *states, GmPlace *place)                                  \
    {                                                                                                                   \
        if (!(mine)) return;                                                                                            \
        GmContext context = gm_context_of(place);                                                                       \
        const State s = states[blockIdx.y];                                                                             \
        name##_body(&context, d, s, gm_sweep_place(place, (int)blockIdx.y));                                               \
    }                                                                                                                   \
    static __device__ __forceinline__ void name##_body(GmContext *GM, const Data &d, const State &s, const Sweep at)
#define ROW(name, k)                                                                                                                            \
    static __device__ __forceinline__ RowWeight name##_row(GmContext *GM, const Data &d, const State &s, const Sweep at, const long k, const real dot); \
    ROW_PASS_KERNELS(name)                                                                                                                      \
    static __device__ __forceinline__ RowWeight name##_row(GmContext *GM, const Data &d, const State &s, const Sweep at, const long k, const real dot)

#define gm_thread  ((long)blockIdx.x * blockDim.x + threadIdx.x)
#define gm_threads ((long)gridDim.x * blockDim.x)
#define EACH(i, n) for (long i = gm_thread, gm_n = (n); i < gm_n; i += gm_threads)
#define EACH_MISSING(e, field) \
    for (long gm_m = 0, e; gm_m < (GM->place->missing ? GM->place->missing[field].count : 0) && (e = GM->place->missing[field].index[gm_m], 1); gm_m++)

// ---- teams ----

// All lanes of the chain's team wait for each other, and see what the others wrote.
DEVICE void team_barrier(GmContext *c)
{
    __syncthreads();
    if (gridDim.x == 1) return;
    if (threadIdx.x == 0) {
        uint32_t *arrived = c->place->barrier + 2 * c->chain;
        volatile uint32_t *turn = arrived + 1;
        const uint32_t now = *turn;
        __threadfence();
        if (atomicAdd(arrived, 1u) == gridDim.x - 1) {
            *arrived = 0;
            __threadfence();
            *turn = now + 1;
        } else {
            while (*turn == now) { }
        }
        __threadfence();
    }
    __syncthreads();
}

// The sum over a block's threads, in every thread; always the same order.
DEVICE wide block_sum(wide v)
{
    __shared__ wide part[GM_THREADS / 32];
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    wide all = 0;
    for (int k = 0; k < (int)(blockDim.x >> 5); k++) all += part[k];
    return all;
}

#define TEAM_BARRIER()         team_barrier(GM)
#define LANES_FROM(i, from, n) for (long gm_0 = (from), i = gm_0 + gm_thread, gm_to = gm_0 + (n); i < gm_to; i += gm_threads)
#define LANES2(i, n, j, m)                                                                                              \
    for (long gm_m = (m), gm_e = gm_thread, gm_to = (n) * gm_m; gm_e < gm_to; gm_e += gm_threads)                       \
        for (long i = gm_e / gm_m, j = gm_e - i * gm_m, gm_go = 1; gm_go; gm_go = 0)
#define ALONG_FROM(i, from, n) for (int gm_once = 1; gm_once; gm_once = 0, TEAM_BARRIER()) LANES_FROM(i, from, n)
#define ALONG2(i, n, j, m)     for (int gm_once = 1; gm_once; gm_once = 0, TEAM_BARRIER()) LANES2(i, n, j, m)
#define ONE_LANE               for (int gm_once = 1; gm_once; gm_once = 0, TEAM_BARRIER()) if (gm_thread == 0)
#define MINE(key)              ((long)(key) % gm_threads == gm_thread)
#define SET(place_, x)         do { const wide gm_x = (x); TEAM_BARRIER(); if (gm_thread == 0) (place_) = gm_x; TEAM_BARRIER(); } while (0)
#define STORE(place_, x)       do { const wide gm_x = (x); TEAM_BARRIER(); if (gm_thread == 0) (place_) = gm_x; } while (0)

typedef struct GmSum { long n, size, chunks, chunk, first, last; int started; wide base[GM_MOST_TOTALS]; } GmSum;

DEVICE wide *gm_partial(const GmContext *c, int k)
{
    return c->place->partial + (long)c->chain * GM_PARTIALS + ((long)c->half * GM_MOST_TOTALS + k) * GM_MOST_CHUNKS;
}

template<int count> static __device__ __forceinline__ GmSum sum_begin(const GmContext *c, long n, wide *const (&into)[count])
{
    GmSum s;
    (void)c;
    s.n = n;
    s.size = chunk_size(n);
    s.chunks = (n + s.size - 1) / s.size;
    s.chunk = (long)blockIdx.x - gridDim.x;
    s.started = 0;
    for (int k = 0; k < count; k++) {
        s.base[k] = *into[k];
        *into[k] = 0;
    }
    return s;
}

template<int count> static __device__ __forceinline__ int sum_next(GmContext *c, GmSum *s, wide *const (&into)[count])
{
    if (s->started)
        for (int k = 0; k < count; k++) {
            const wide sum = block_sum(*into[k]);
            if (threadIdx.x == 0) gm_partial(c, k)[s->chunk] = sum;
            *into[k] = 0;
        }
    s->started = 1;
    s->chunk += gridDim.x;
    if (s->chunk < s->chunks) {
        s->first = s->chunk * s->size;
        s->last = s->first + s->size < s->n ? s->first + s->size : s->n;
        return 1;
    }
    team_barrier(c);
    for (int k = 0; k < count; k++) {
        const volatile wide *partial = gm_partial(c, k);
        wide sum = 0;
        for (long b = threadIdx.x; b < s->chunks; b += blockDim.x) sum += partial[b];
        *into[k] = s->base[k] + block_sum(sum);
    }
    c->half = !c->half;
    return 0;
}

#define SUM_ALONG_FROM(i, from, n, ...)                                                                     \
    for (wide *gm_into[] = {__VA_ARGS__}, **gm_go = gm_into; gm_go; gm_go = 0)                              \
        for (GmSum gm_sum = sum_begin(GM, n, gm_into); sum_next(GM, &gm_sum, gm_into);)                     \
            for (long gm_0 = (from), i = gm_0 + gm_sum.first + threadIdx.x; i < gm_0 + gm_sum.last; i += blockDim.x)

// ---- sums by group ----
//
// A group's crew is a warp; if groups are few and large, the whole team, one group after the other.

#define gm_lane_of_warp ((long)(threadIdx.x & 31))
#define EACH_GROUP(k, groups, n)                                                                                        \
    for (long gm_groups = (groups), gm_team = (n) > 8192 * gm_groups, k = gm_team ? 0 : gm_thread / 32; k < gm_groups; \
         k += gm_team ? 1 : gm_threads / 32)
#define GROUP_LANE if (gm_team ? gm_thread == 0 : gm_lane_of_warp == 0)

typedef struct GmRows { GmSum sum; long first, last, step; int started; } GmRows;

template<int count> static __device__ __forceinline__ GmRows rows_begin(const GmContext *c, long team, long first, long last, wide *const (&into)[count])
{
    GmRows r;
    r.started = 0;
    if (team) r.sum = sum_begin(c, last - first, into);
    r.first = first;
    r.last = last;
    return r;
}

template<int count> static __device__ __forceinline__ int rows_next(GmContext *c, GmRows *r, long team, long from, wide *const (&into)[count])
{
    if (team) {
        if (!sum_next(c, &r->sum, into)) return 0;
        r->first = from + r->sum.first + threadIdx.x;
        r->last = from + r->sum.last;
        r->step = blockDim.x;
        return 1;
    }
    if (r->started) {
        for (int k = 0; k < count; k++)
            for (int o = 16; o; o >>= 1) *into[k] += __shfl_xor_sync(0xffffffffu, *into[k], o);
        return 0;
    }
    r->started = 1;
    r->first += gm_lane_of_warp;
    r->step = 32;
    return 1;
}

#define SUM_ROWS(i, k, first_of, rows_of, ...)                                                                          \
    for (wide *gm_into[] = {__VA_ARGS__}, **gm_go = gm_into; gm_go; gm_go = 0)                                          \
        for (GmRows gm_rows = rows_begin(GM, gm_team, (first_of)[k], (first_of)[(k) + 1], gm_into);                     \
             rows_next(GM, &gm_rows, gm_team, (first_of)[k], gm_into);)                                                 \
            for (long gm_r = gm_rows.first, i; gm_r < gm_rows.last && (i = (rows_of)[gm_r], 1); gm_r += gm_rows.step)

// ---- faults ----

// The first fault of the run is kept; the host finds it.
DEVICE void gm_device_fault(GmContext *c, const char *variable, long element, const char *what)
{
    GmPlace *p = c->place;
    if (atomicCAS(&p->fault, 0, 1) != 0) return;
    p->fault_chain = c->chain;
    p->fault_element = element;
    p->fault_variable = variable;
    p->fault_what = what;
}

#define COLOUR                     (GM->place->colour)
#define WARMING_UP                 ((int64_t)GM->place->sweep < GM->place->warmup)
#define FAULT(name, element, what) gm_device_fault(GM, name, element, what)
#define RESULT(v)                  do { if (gm_thread == 0) GM->place->result[GM->chain] = (v); } while (0)

// Checks are made on the CPU.
#define CHECKING                   0
#define CLAIM(v)                   ((void)0)
#define NO_CLAIM()                 ((void)0)
#define SAVE_OLD(x, n)             const wide *OLD = (const wide *)0; (void)OLD
#define NEW_WEIGHTS(w, n)          ((void)0)
#define CHECK_WEIGHT(k)            0.0
#define CLAIM_QUADRATIC_BEFORE(n, J, h, x) ((void)0)
#define CLAIM_QUADRATIC_AFTER(x)   ((void)0)

DEVICE wide normal_draw(Stream *g, long n, wide *J, const wide *h, wide *x) { return (wide)normal_precision_shift(g, n, J, h, x); }

#include "row_pass.h"

#endif
