// kernels_cuda.h -- kernels.h on a GPU: a kernel is a __global__ function for all chains, chain c in row c of the grid.
//
//   KERNEL        a thread for each element, in a grid-stride loop
//   ROW           a __device__ function; row_pass.h makes the kernels around it
//   KERNEL_TEAM   a team of blocks for each chain that can wait for each other (a cooperative launch, if there is more than one)
//   KERNEL_SPAN   a team, all rows at once; and a __device__ function of one row, which products_pass.h makes kernels around
//   KERNEL_ONCE   one thread for each chain
#ifndef GM_KERNELS_CUDA_H
#define GM_KERNELS_CUDA_H

#include "team_plan.h"

#if defined(__NVCC__)
#pragma nv_diag_suppress 177  // what only --check reads
#endif

enum { GM_THREADS = 256 };  // of a block of a team: sums depend on it

typedef struct GmCudaContext {
    GmPlace *place;
    int chain;  // within the run
    int half;   // of the partial sums: they alternate, so that nobody waits before the next
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
template <class T> struct GmValue;
template <class T> struct GmValue<T &> {
    typedef T type;
};
#define GM_NAME_OF(var)   #var
#define GM_TYPE_OF(place) GmValue<decltype((place))>::type
#define KERNEL(name)      GM_KERNEL_FOR(name, true)
#define KERNEL_TEAM(name) GM_KERNEL_FOR(name, true)
#define KERNEL_PRODUCTS(name) \
    GM_KERNEL_BOUND(name, true, __launch_bounds__(GM_THREADS, 2))  // registers for two blocks: a group waits for its rows most of the time
#define KERNEL_ON_REQUEST(name)      KERNEL_TEAM(name)
#define KERNEL_PRIOR(name)           KERNEL_TEAM(name)
#define SPARSE_ROW(root)             ((void)0)  // such a kernel runs on the CPU alone
#define SPARSE_PUT(j, x)             ((void)0)
#define SPARSE_TARGET(x)             ((void)0)
#define SPARSE_PUT_ROW(j, x, p)      ((void)0)
#define FEW_ROWS(number, rows, size) ((rows) < (size))
#define KERNEL_ONCE(name)            GM_KERNEL_FOR(name, gm_thread == 0)  // whatever the launch: LAUNCH_SHARED makes a team
#define KERNEL_FORWARD(name) KERNEL_ONCE(name)
#define KERNEL_SCALAR(name)          KERNEL_ONCE(name)
#define KERNEL_PART(name)            DEVICE wide name(GmContext *GM, const Data *d, const State *s)
#define SHARED_DRAW                  DEVICE_CALL void
#define GM_GIVEN                     GmContext *GM, const Data *d, const State *s, const Sweep at
#define GM_KERNEL_FOR(name, mine)    GM_KERNEL_BOUND(name, mine, )
#define GM_KERNEL_BOUND(name, mine, bound)                                                   \
    static __device__ __forceinline__ void name##_body(GM_GIVEN);                            \
    extern "C" __global__ void bound name(const Data d, const State *states, GmPlace *place) \
    {                                                                                        \
        if (!(mine) || gm_idle(place, (int)blockIdx.y)) return;                              \
        GmContext context = gm_context_of(place);                                            \
        const State s = states[blockIdx.y];                                                  \
        name##_body(&context, &d, &s, gm_sweep_place(place, (int)blockIdx.y));               \
    }                                                                                        \
    static __device__ __forceinline__ void name##_body(GM_GIVEN)
#define ROW(name, k)                                                                                \
    static __device__ __forceinline__ RowWeight name##_row(GM_GIVEN, const long k, const real dot); \
    ROW_PASS_KERNELS(name)                                                                          \
    static __device__ __forceinline__ RowWeight name##_row(GM_GIVEN, const long k, const real dot)

#define gm_thread       ((long)blockIdx.x * blockDim.x + threadIdx.x)
#define gm_threads      ((long)gridDim.x * blockDim.x)
#define gm_lane_of_warp ((long)(threadIdx.x & 31))
#define EACH(i, n)      for (long i = gm_thread, gm_n = (n); i < gm_n; i += gm_threads)
#define EACH_MISSING(e, field)                                                                                                        \
    for (long gm_m = gm_thread, e;                                                                                                    \
         gm_m < (GM->place->missing ? GM->place->missing[(field)-1].count : 0) && (e = GM->place->missing[(field)-1].index[gm_m], 1); \
         gm_m += gm_threads)
#define MISSING_IN_TURN(e, field)                                                                                                     \
    for (long gm_m = 0, e;                                                                                                            \
         gm_m < (GM->place->missing ? GM->place->missing[(field)-1].count : 0) && (e = GM->place->missing[(field)-1].index[gm_m], 1); \
         gm_m++)

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
            while (*turn == now) {}
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

// Of a block's first thread, in all of them.
template <typename T> static __device__ __forceinline__ T block_value(T v)
{
    __shared__ T first;
    __syncthreads();
    if (threadIdx.x == 0) first = v;
    __syncthreads();
    return first;
}

// Buffers are a block's.
#define TEAM_SCRATCH(n) block_value(threadIdx.x == 0 ? SCRATCH(n) : (wide *)0)
#define TEAM_RELEASE(p)                   \
    do {                                  \
        __syncthreads();                  \
        if (threadIdx.x == 0) RELEASE(p); \
    } while (0)
#define TEAM_FILL(i, n)                                          \
    for (int gm_once = 1; gm_once; gm_once = 0, __syncthreads()) \
        for (long i = threadIdx.x, gm_n = (n); i < gm_n; i += blockDim.x)
#define TEAM_ONCE                                                                   \
    for (int gm_once = (__syncthreads(), 1); gm_once; gm_once = 0, __syncthreads()) \
        if (threadIdx.x == 0)
#define TEAM_VALUE(value) block_value(threadIdx.x == 0 ? (wide)(value) : 0)

#define TEAM_BARRIER() team_barrier(GM)
#define EACH_OF_CLASSES(k, n, first, elements)                                   \
    for (long gm_class = 0; (first)[gm_class] < (n); gm_class++, TEAM_BARRIER()) \
        for (long gm_e = (first)[gm_class] + gm_thread, k; gm_e < (first)[gm_class + 1] && (k = (elements)[gm_e], 1); gm_e += gm_threads)
#define LANES_FROM(i, from, n) for (long gm_0 = (from), i = gm_0 + gm_thread, gm_to = gm_0 + (n); i < gm_to; i += gm_threads)
#define LANES2(i, n, j, m)                                                                                     \
    for (long gm_m = (m), gm_e = gm_thread, gm_to = gm_m > 0 ? (n)*gm_m : 0; gm_e < gm_to; gm_e += gm_threads) \
        for (long i = gm_e / gm_m, j = gm_e - i * gm_m, gm_go = 1; gm_go; gm_go = 0)
#define ALONG_FROM(i, from, n) \
    for (int gm_once = 1; gm_once; gm_once = 0, TEAM_BARRIER()) LANES_FROM(i, from, n)
#define ALONG2(i, n, j, m)                                      \
    for (int gm_once = 1; gm_once; gm_once = 0, TEAM_BARRIER()) \
        LANES2 (i, n, j, m)
#define ONE_LANE                                                \
    for (int gm_once = 1; gm_once; gm_once = 0, TEAM_BARRIER()) \
        if (gm_thread == 0)
#define SET(place_, x)                       \
    do {                                     \
        const wide gm_x = (x);               \
        TEAM_BARRIER();                      \
        if (gm_thread == 0) (place_) = gm_x; \
        TEAM_BARRIER();                      \
    } while (0)
#define STORE(place_, x)                     \
    do {                                     \
        const wide gm_x = (x);               \
        TEAM_BARRIER();                      \
        if (gm_thread == 0) (place_) = gm_x; \
    } while (0)

typedef struct GmCudaSum {
    long n, size, chunks, chunk, first, last;
    int started;
    wide base[GM_MOST_TOTALS];
} GmSum;

DEVICE wide *gm_partial(const GmContext *c, int k)
{
    return c->place->partial + (long)c->chain * GM_ROOM + ((long)c->half * GM_MOST_TOTALS + k) * GM_MOST_CHUNKS;
}

DEVICE long team_chunk(long n) { return chunk_size(n) > 2048 ? chunk_size(n) : GM_TEAM_CHUNK(n); }

template <int count> static __device__ __forceinline__ GmSum sum_begin(const GmContext *c, long size, long n, wide *const (&into)[count])
{
    GmSum s;
    (void)c;
    s.n = n;
    s.size = size;
    s.chunks = (n + s.size - 1) / s.size;
    s.chunk = (long)blockIdx.x - gridDim.x;
    s.started = 0;
    for (int k = 0; k < count; k++) {
        s.base[k] = *into[k];
        *into[k] = 0;
    }
    return s;
}

template <int count> static __device__ __forceinline__ int sum_next(GmContext *c, GmSum *s, wide *const (&into)[count])
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
        *into[k] = add_log(s->base[k], block_sum(sum));
    }
    c->half = !c->half;
    return 0;
}

#define SUM_ALONG_FROM(i, from, n, ...) SUM_BY(team_chunk(n), i, from, n, __VA_ARGS__)
#define SUM_BY(size, i, from, n, ...)                                                         \
    for (wide * gm_into[] = {__VA_ARGS__}, **gm_go = gm_into; gm_go; gm_go = 0)               \
        for (GmSum gm_sum = sum_begin(GM, size, n, gm_into); sum_next(GM, &gm_sum, gm_into);) \
            for (long gm_0 = (from), i = gm_0 + gm_sum.first + threadIdx.x; i < gm_0 + gm_sum.last; i += blockDim.x)

DEVICE wide block_max(wide v);

// sign -1: *x becomes the smallest of all lanes', 1: the largest.
DEVICE void extreme_of_lanes(GmContext *c, wide sign, wide *x)
{
    const wide most = block_max(sign * *x);
    if (threadIdx.x == 0) gm_partial(c, 0)[blockIdx.x] = most;
    team_barrier(c);
    const volatile wide *partial = gm_partial(c, 0);
    wide top = -INFINITY;
    for (long b = threadIdx.x; b < gridDim.x; b += blockDim.x) top = fmax(top, partial[b]);
    *x = sign * block_max(top);
    c->half = !c->half;
}

#define MIN_ALONG_FROM(i, from, n, x) \
    for (int gm_once = 1; gm_once; gm_once = 0, extreme_of_lanes(GM, -1, x)) LANES_FROM(i, from, n)
#define MAX_ALONG_FROM(i, from, n, x) \
    for (int gm_once = 1; gm_once; gm_once = 0, extreme_of_lanes(GM, 1, x)) LANES_FROM(i, from, n)

// A lane takes a pair at a time, unless there are rows enough for all lanes: then it takes a row, whose columns need no division.
#define GM_PAIRS_ITERATIONS(n, m) ((n) >= 65536 || (m) < 2 ? 1L : (long)(m))
#define SUM_ALONG2(i, n, j, m, ...)                                                                                         \
    for (long gm_rows_ = (n), gm_columns = (m), gm_w = GM_PAIRS_ITERATIONS(gm_rows_, gm_columns), gm_2 = 1; gm_2; gm_2 = 0) \
        SUM_BY(team_chunk(gm_rows_ *gm_w), gm_e, 0, gm_rows_ *gm_w, __VA_ARGS__)                                            \
    for (long i = gm_w == 1 ? gm_e : gm_e / gm_w, j = gm_e - i * gm_w, gm_j = gm_w == 1 ? gm_columns : j + 1; j < gm_j; j++)

// ---- spans of rows ----

// The loops of a span over what it is called for: the lane's row of a tile (SpanRow, products_pass.h), or all rows, by a team, a row by a
// lane.
#define KERNEL_SPAN(name)                                                                                    \
    template <class Rows> static __device__ __forceinline__ void name##_span(GM_GIVEN, const Rows &gm_rows); \
    KERNEL_TEAM(name) { name##_span(GM, d, s, at, SpanTeam()); }                                             \
    PRODUCTS_KERNELS(name)                                                                                   \
    template <class Rows> static __device__ __forceinline__ void name##_span(GM_GIVEN, const Rows &gm_rows)
#define SPAN(i, n, ...)                                                                             \
    for (wide * gm_into[] = {__VA_ARGS__}, **gm_go = gm_into; gm_go; gm_go = 0)                     \
        for (auto gm_loop = span_begin(GM, gm_rows, n, gm_into); span_next(GM, &gm_loop, gm_into);) \
            for (long i = span_first(gm_loop); i < span_last(gm_loop); i += span_step(gm_loop))
#define SPAN_TOTAL(k, place_, x) span_total(GM, gm_rows, k, &(place_), x)

typedef struct SpanTeam {
    char none;
} SpanTeam;

// What is done for a row is work enough for chunks to be short.
DEVICE long span_chunk(long n)
{
    const long even = ((n + GM_MOST_CHUNKS - 1) / GM_MOST_CHUNKS + 255) / 256 * 256;
    return even > 256 ? even : 256;
}

template <int count>
static __device__ __forceinline__ GmSum span_begin(const GmContext *c, const SpanTeam &, long n, wide *const (&into)[count])
{
    return sum_begin(c, span_chunk(n), n, into);
}

template <int count> static __device__ __forceinline__ int span_next(GmContext *c, GmSum *s, wide *const (&into)[count])
{
    return sum_next(c, s, into);
}

DEVICE long span_first(const GmSum &s) { return s.first + threadIdx.x; }
DEVICE long span_last(const GmSum &s) { return s.last; }
DEVICE long span_step(const GmSum &) { return blockDim.x; }
DEVICE void span_total(GmContext *c, const SpanTeam &, int, wide *place, wide x)
{
    team_barrier(c);
    if (gm_thread == 0) *place = x;
    team_barrier(c);
}

// ---- terms of sparse joint normals (GmTerms) ----

// iterations of the loops before; the next term of this lane
typedef struct GmListing {
    GmTerms to;
    long chain, iteration, at;
} GmListing;

DEVICE GmListing gm_listing(const GmPlace *place, int number, int chain)
{
    GmListing t;
    t.to = place->terms[number - 1];
    t.to.value += chain * t.to.count;
    t.chain = chain;
    t.iteration = t.at = 0;
    return t;
}

DEVICE long gm_first_iteration(const GmListing *t) { return t->to.mode == GM_TERMS_MEASURE ? 0x7fffffffffffffffL : gm_thread; }
DEVICE int gm_iteration_begins(GmListing *t, long iteration)
{
    t->at = t->to.mode == GM_TERMS_COUNT ? 0 : t->to.first[t->iteration + iteration];
    return 1;
}
DEVICE void gm_iteration_ends(const GmListing *t, long iteration)
{
    if (t->to.mode == GM_TERMS_COUNT && t->chain == 0) t->to.first[t->iteration + iteration] = (int32_t)t->at;
}
DEVICE int gm_iterations_end(GmListing *t, long iterations)
{
    if (iterations > 0) t->iteration += iterations;
    if (t->to.mode == GM_TERMS_MEASURE && t->chain == 0 && gm_thread == 0) *t->to.iterations = t->iteration;
    return 0;
}
DEVICE void gm_list_term(GmListing &listing, long row, long column, double x)
{
    GmListing *const t = &listing;
    if (t->to.mode == GM_TERMS_COLLECT) t->to.value[t->at] = x;
    else if (t->to.mode == GM_TERMS_NOTE && t->chain == 0) {
        t->to.row[t->at] = (int32_t)row;
        t->to.column[t->at] = (int32_t)column;
    }
    t->at++;
}

#define SPARSE_ADD(i, j, x)   gm_list_term(gm_terms, i, j, x)
#define SPARSE_SHIFT(h, j, x) gm_list_term(gm_terms, -1, j, x)
struct GmNoTerms {
};
static __device__ const GmNoTerms gm_terms = {};  // where a KERNEL_ONCE goes through them, which is for CPUs
DEVICE void gm_list_term(const GmNoTerms &, long, long, double) {}
#define EACH_TERM_FROM(i, from, n)                                                                                   \
    for (long gm_0 = (from), gm_n = (n), gm_t = gm_first_iteration(&gm_terms), i;                                    \
         gm_t < gm_n ? (i = gm_0 + gm_t, gm_iteration_begins(&gm_terms, gm_t)) : gm_iterations_end(&gm_terms, gm_n); \
         gm_iteration_ends(&gm_terms, gm_t), gm_t += gm_threads)
#define EACH_TERM(i, n) EACH_TERM_FROM(i, 0, n)
#define EACH_TERM2(i, n, j, m)                                                                                                            \
    for (long gm_m = (m), gm_n = gm_m > 0 ? (n)*gm_m : 0, gm_t = gm_first_iteration(&gm_terms), i, j;                                     \
         gm_t < gm_n ? (i = gm_t / gm_m, j = gm_t - i * gm_m, gm_iteration_begins(&gm_terms, gm_t)) : gm_iterations_end(&gm_terms, gm_n); \
         gm_iteration_ends(&gm_terms, gm_t), gm_t += gm_threads)
#define KERNEL_TERMS(name, number)                                                     \
    static __device__ __forceinline__ void name##_body(GM_GIVEN, GmListing &gm_terms); \
    extern "C" __global__ void name(const Data d, const State *states, GmPlace *place) \
    {                                                                                  \
        if (gm_idle(place, (int)blockIdx.y)) return;                                   \
        GmContext context = gm_context_of(place);                                      \
        const State s = states[blockIdx.y];                                            \
        GmListing terms = gm_listing(place, number, (int)blockIdx.y);                  \
        name##_body(&context, &d, &s, gm_sweep_place(place, (int)blockIdx.y), terms);  \
    }                                                                                  \
    static __device__ __forceinline__ void name##_body(GM_GIVEN, GmListing &gm_terms)

// ---- elements with sums ----
//
// An element's crew is a lane if its sums are short, else a warp; if they are long and elements few, the whole team, one element after the
// other.

#define PER_ELEMENT(iterations, count) ((iterations) / ((count) > 0 ? (count) : 1))
#define EACH_ELEMENT(k, count, iterations)                                      \
    for (long gm_count = (count), gm_iterations = (iterations),                 \
              gm_crew = gm_iterations <= 32                        ? 1          \
                        : gm_iterations > 8192 && gm_count <= 1024 ? gm_threads \
                                                                   : 32,        \
              k = gm_thread / gm_crew;                                          \
         k < gm_count; k += gm_threads / gm_crew)
#define ELEMENT_LANE if (gm_crew == 1 || (gm_crew == 32 ? gm_lane_of_warp : gm_thread) == 0)

typedef struct GmTurns {
    GmSum sum;
    long first, last, step;
    int started;
    wide base[GM_MOST_TOTALS];
} GmTurns;

template <int count>
static __device__ __forceinline__ GmTurns turns_begin(const GmContext *c, long crew, long n, wide *const (&into)[count])
{
    GmTurns t;
    t.started = 0;
    t.last = n;
    if (crew > 32) t.sum = sum_begin(c, team_chunk(n), n, into);
    for (int k = 0; k < count && crew == 32; k++) {
        t.base[k] = *into[k];
        *into[k] = 0;
    }
    return t;
}

template <int count> static __device__ __forceinline__ int turns_next(GmContext *c, GmTurns *t, long crew, wide *const (&into)[count])
{
    if (crew > 32) {
        if (!sum_next(c, &t->sum, into)) return 0;
        t->first = t->sum.first + threadIdx.x;
        t->last = t->sum.last;
        t->step = blockDim.x;
        return 1;
    }
    if (t->started) {
        for (int k = 0; k < count && crew == 32; k++) {
            for (int o = 16; o; o >>= 1) *into[k] += __shfl_xor_sync(0xffffffffu, *into[k], o);
            *into[k] = add_log(*into[k], t->base[k]);
        }
        return 0;
    }
    t->started = 1;
    t->first = crew == 32 ? gm_lane_of_warp : 0;
    t->step = crew;
    return 1;
}

#define SUM_CREW_FROM(i, from, n, ...)                                                                      \
    for (wide * gm_into[] = {__VA_ARGS__}, **gm_go = gm_into; gm_go; gm_go = 0)                             \
        for (GmTurns gm_t = turns_begin(GM, gm_crew, n, gm_into); turns_next(GM, &gm_t, gm_crew, gm_into);) \
            for (long gm_0 = (from), i = gm_0 + gm_t.first; i < gm_0 + gm_t.last; i += gm_t.step)

// ---- sums over rows into places ----
//
// Rows are cut into chunks, and each chunk has places of its own in the room for partial sums, for which s->a stands meanwhile; then the
// chunks are added in a fixed order. A crew takes a chunk. Where every row adds to all places (SUM_INTO) it is a warp, or a block if places
// are many, and each lane adds to its own places. Where a row adds to few of them (SUM_KEYED) each lane is a crew, and 32 of them take rows
// in turn. Where there are too many places for that, or few rows, the whole team is one crew that adds in place.

enum { GM_PLACES_OF_WARP = 128, GM_KEYED_PLACES = 512, GM_MOST_PLACES = 8192, GM_INTO_CHUNKS = 4096, GM_KEYED_CHUNKS = 65536 };

typedef struct GmInto {
    long from, n, places, size, chunks;  // rows of a chunk, and chunks; places of all arrays
    long chunk, stride, lane, lanes;     // this crew's chunk, crews, this lane and lanes of a crew
    long first, last, step;              // rows of this lane in the chunk
    int apart, alone, once;              // whether chunks have places of their own; whether a lane is a crew
} GmInto;

DEVICE GmInto into_begin(GmContext *c, long from, long n, long places, int keyed)
{
    GmInto t;
    const long room = places > 0 ? GM_ROOM / places : 0;
    t.from = from;
    t.n = n;
    t.places = places;
    t.alone = keyed && places <= GM_KEYED_PLACES && n >= 1024;
    if (t.alone) {
        const long most = room < GM_KEYED_CHUNKS ? room : GM_KEYED_CHUNKS, worth = n / 16;
        t.chunks = (worth < most ? worth : most) / 32 * 32;
        t.apart = 1;
        t.lanes = 1;
    } else {
        const long most = room < GM_INTO_CHUNKS ? room : GM_INTO_CHUNKS, worth = n / 64;
        t.chunks = worth < most ? worth : most;
        t.apart = t.chunks > 1 && places <= GM_MOST_PLACES;
        if (!t.apart) t.chunks = 1;
        t.lanes = !t.apart ? gm_threads : places <= GM_PLACES_OF_WARP ? 32 : blockDim.x;
    }
    t.size = (n + t.chunks - 1) / t.chunks;
    t.step = t.alone ? 32 : 1;
    t.stride = gm_threads / t.lanes;
    t.chunk = gm_thread / t.lanes - t.stride;
    t.lane = gm_thread % t.lanes;
    if (t.apart) team_barrier(c);  // someone may still read the partial sums of before
    return t;
}

DEVICE void into_wait(const GmInto *t)
{
    if (t->apart && t->lanes > 32) __syncthreads();
    else __syncwarp();
}

// To the crew's next chunk, its places at zero; false: there is none.
DEVICE int into_next(GmContext *c, GmInto *t)
{
    t->chunk += t->stride;
    into_wait(t);
    if (t->chunk >= t->chunks) return 0;
    t->first = t->alone ? t->chunk / 32 * 32 * t->size : t->chunk * t->size;
    t->last = t->first + (t->alone ? 32 : 1) * t->size;
    t->last = t->from + (t->last < t->n ? t->last : t->n);
    t->first += t->from + (t->alone ? t->chunk % 32 : 0);
    t->once = 1;
    if (!t->apart) return 1;
    wide *mine = c->place->partial + (long)c->chain * GM_ROOM + t->chunk * t->places;
    for (long e = t->lane; e < t->places; e += t->lanes) mine[e] = 0;
    into_wait(t);
    return 1;
}

// The places at `at` of a chunk, for an array of elements T; in the array itself if they are not apart.
template <typename T> static __device__ __forceinline__ T *into_places(const GmContext *c, const GmInto &t, T *array, long chunk, long at)
{
    return t.apart ? (T *)(c->place->partial + (long)c->chain * GM_ROOM + chunk * t.places + at) : array;
}

// When a chunk is done: 32 crews of one lane add theirs up, in the places of the first.
template <typename T> static __device__ __forceinline__ int into_fold(const GmContext *c, const GmInto &t, T *array, long n, long at)
{
    if (!t.alone) return 0;
    T *mine = into_places(c, t, array, t.chunk, at);
    __syncwarp();
    for (long e = 0; e < n; e++) {
        T sum = mine[e];
        for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
        if (gm_lane_of_warp == 0) mine[e] = sum;
    }
    return 0;
}

// A warp for each place: its lanes share the chunks.
template <typename T> static __device__ __forceinline__ void into_add(const GmContext *c, const GmInto &t, T *array, long n, long at)
{
    const long of = t.alone ? 32 : 1;
    for (long e = gm_thread / 32; e < n; e += gm_threads / 32) {
        double sum = 0;
        for (long k = of * gm_lane_of_warp; k < t.chunks; k += 32 * of) sum += ((const volatile T *)into_places(c, t, array, k, at))[e];
        for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
        if (gm_lane_of_warp == 0) array[e] += (T)sum;
    }
}

DEVICE int into_end(GmContext *c, const GmInto &t)
{
    if (t.apart) team_barrier(c);
    return t.apart;
}

// `mine`: what makes s of the loop's body; `fold`: what ends a chunk; `add`: what brings the chunks together.
#define GM_INTO(i, from, n, places, keyed, mine, fold, add)                                                                 \
    for (const State *gm_s = s; gm_s; gm_s = (const State *)0)                                                              \
        for (GmInto gm_into = into_begin(GM, from, n, places, keyed), *gm_go = &gm_into; gm_go;                             \
             gm_go = (GmInto *)0, into_end(GM, gm_into) ? (void)(add) : (void)0)                                            \
            while (into_next(GM, &gm_into))                                                                                 \
                for (State gm_own = *gm_s, *s = &gm_own; gm_into.once && ((void)(mine), 1); gm_into.once = 0, (void)(fold)) \
                    for (long i = gm_into.first; i < gm_into.last; i += gm_into.step)
#define GM_MINE(a, at)                     s->a = into_places(GM, gm_into, gm_s->a, gm_into.chunk, at)
#define GM_FOLD(a, na, at)                 into_fold(GM, gm_into, gm_s->a, na, at)
#define GM_ADD(a, na, at)                  into_add(GM, gm_into, gm_s->a, na, at)
#define GM_INTO0(keyed, i, from, n)        GM_INTO(i, from, n, 1L << 40, keyed, 0, 0, (void)0)
#define GM_INTO1(keyed, i, from, n, a, na) GM_INTO(i, from, n, na, keyed, GM_MINE(a, 0), GM_FOLD(a, na, 0), GM_ADD(a, na, 0))
#define GM_INTO2(keyed, i, from, n, a, na, b, nb)                                                                     \
    GM_INTO(i, from, n, (na) + (nb), keyed, (GM_MINE(a, 0), GM_MINE(b, na)), (GM_FOLD(a, na, 0), GM_FOLD(b, nb, na)), \
            (GM_ADD(a, na, 0), GM_ADD(b, nb, na)))
#define GM_INTO3(keyed, i, from, n, a, na, b, nb, c, nc)                                                     \
    GM_INTO(i, from, n, (na) + (nb) + (nc), keyed, (GM_MINE(a, 0), GM_MINE(b, na), GM_MINE(c, (na) + (nb))), \
            (GM_FOLD(a, na, 0), GM_FOLD(b, nb, na), GM_FOLD(c, nc, (na) + (nb))),                            \
            (GM_ADD(a, na, 0), GM_ADD(b, nb, na), GM_ADD(c, nc, (na) + (nb))))
#define GM_INTO4(keyed, i, from, n, a, na, b, nb, c, nc, e, ne)                                                       \
    GM_INTO(i, from, n, (na) + (nb) + (nc) + (ne), keyed,                                                             \
            (GM_MINE(a, 0), GM_MINE(b, na), GM_MINE(c, (na) + (nb)), GM_MINE(e, (na) + (nb) + (nc))),                 \
            (GM_FOLD(a, na, 0), GM_FOLD(b, nb, na), GM_FOLD(c, nc, (na) + (nb)), GM_FOLD(e, ne, (na) + (nb) + (nc))), \
            (GM_ADD(a, na, 0), GM_ADD(b, nb, na), GM_ADD(c, nc, (na) + (nb)), GM_ADD(e, ne, (na) + (nb) + (nc))))
#define SUM_INTO0(...)        GM_INTO0(0, __VA_ARGS__)
#define SUM_INTO1(...)        GM_INTO1(0, __VA_ARGS__)
#define SUM_INTO2(...)        GM_INTO2(0, __VA_ARGS__)
#define SUM_INTO3(...)        GM_INTO3(0, __VA_ARGS__)
#define SUM_INTO4(...)        GM_INTO4(0, __VA_ARGS__)
#define SUM_KEYED0(...)       GM_INTO0(1, __VA_ARGS__)
#define SUM_KEYED1(...)       GM_INTO1(1, __VA_ARGS__)
#define SUM_KEYED2(...)       GM_INTO2(1, __VA_ARGS__)
#define SUM_KEYED3(...)       GM_INTO3(1, __VA_ARGS__)
#define SUM_KEYED4(...)       GM_INTO4(1, __VA_ARGS__)
#define PLACES_FROM(j, at, n) for (long gm_0 = (at), j = gm_0 + gm_into.lane, gm_j = gm_0 + (n); j < gm_j; j += gm_into.lanes)
#define PLACES2(j, n, k, m)                                                                         \
    for (long gm_m = (m), gm_e = gm_into.lane, gm_j = (n)*gm_m; gm_e < gm_j; gm_e += gm_into.lanes) \
        for (long j = gm_e / gm_m, k = gm_e - j * gm_m, gm_k = 1; gm_k; gm_k = 0)
#define OWN(key) ((long)(key) % gm_into.lanes == gm_into.lane)

// ---- simplexes ----
//
// Short ones by a lane each, many that are not long by a warp, others by a block.

DEVICE wide warp_max(wide v)
{
    for (int o = 16; o; o >>= 1) v = fmax(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}

#define EACH_SIMPLEX(e, rows, n) \
    for (long gm_rows = (rows), gm_crew = simplex_crew(gm_rows, n), e = gm_thread / gm_crew; e < gm_rows; e += gm_threads / gm_crew)
#define DRAW_SIMPLEX(routine, var, e, a, n, x) DRAW_SIMPLEX_LOGS(routine, var, e, a, n, x, NULL)
#define DRAW_SIMPLEX_LOGS(routine, var, e, a, n, x, logs)                     \
    do {                                                                      \
        if (gm_crew == 1) routine##_row(at, var, e, a, n, x, logs);           \
        else if (gm_crew == 32) routine##_by_warp(at, var, e, a, n, x, logs); \
        else routine##_by_block(at, var, e, a, n, x, logs);                   \
    } while (0)

enum { GM_WARP_SIMPLEX = 512, GM_WARP_SIMPLEXES = 512 };  // not longer; as many at least

DEVICE long simplex_crew(long rows, long n)
{
    return n <= GM_SHORT_SIMPLEX ? 1 : n <= GM_WARP_SIMPLEX && rows >= GM_WARP_SIMPLEXES ? 32 : (long)GM_THREADS;
}

static __device__ __noinline__ void dirichlet_by_warp(Sweep at, uint32_t variable, long row, const wide *alpha, long n, wide *out,
                                                      wide *logs)
{
    wide top = -INFINITY, sum = 0;
    for (long k = gm_lane_of_warp; k < n; k += 32) {
        Stream g = stream(at, variable, (uint64_t)(row * n + k));
        out[k] = log_gamma_standard(&g, alpha[k]);
        top = fmax(top, out[k]);
    }
    top = warp_max(top);
    for (long k = gm_lane_of_warp; k < n && logs; k += 32) logs[k] = out[k] - top;
    for (long k = gm_lane_of_warp; k < n; k += 32) sum += out[k] = exp(out[k] - top);
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    for (long k = gm_lane_of_warp; k < n && logs; k += 32) logs[k] -= log(sum);
    for (long k = gm_lane_of_warp; k < n; k += 32) out[k] = at_least_tiny(out[k] / sum);
    __syncwarp();
}

DEVICE wide block_max(wide v)
{
    __shared__ wide part[GM_THREADS / 32];
    for (int o = 16; o; o >>= 1) v = fmax(v, __shfl_xor_sync(0xffffffffu, v, o));
    __syncthreads();
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    for (int k = 0; k < (int)(blockDim.x >> 5); k++) v = fmax(v, part[k]);
    return v;
}

static __device__ __noinline__ void dirichlet_by_block(Sweep at, uint32_t variable, long row, const wide *alpha, long n, wide *out,
                                                       wide *logs)
{
    wide top = -INFINITY, sum = 0;
    for (long k = threadIdx.x; k < n; k += blockDim.x) {
        Stream g = stream(at, variable, (uint64_t)(row * n + k));
        out[k] = log_gamma_standard(&g, alpha[k]);
        top = fmax(top, out[k]);
    }
    top = block_max(top);
    for (long k = threadIdx.x; k < n && logs; k += blockDim.x) logs[k] = out[k] - top;
    for (long k = threadIdx.x; k < n; k += blockDim.x) sum += out[k] = exp(out[k] - top);
    sum = block_sum(sum);
    for (long k = threadIdx.x; k < n && logs; k += blockDim.x) logs[k] -= log(sum);
    for (long k = threadIdx.x; k < n; k += blockDim.x) out[k] = at_least_tiny(out[k] / sum);
    __syncthreads();
}

// ---- tables of weights ----
//
// A warp for each row.

#define EACH_WEIGHTS(row, n) for (long row = gm_thread / 32, gm_row = (n); row < gm_row; row += gm_threads / 32)
#define WEIGHTS_TURNS(v, n)  for (long v = gm_lane_of_warp, gm_v = (n); v < gm_v; v += 32)
#define WEIGHTS_TOP(top)     warp_max(top)

// ---- counts ----
//
// Whole numbers are exact in doubles, whatever the order of additions. Lanes of a warp that count at one place add together. Places that a
// block meets are kept in its shared memory, as many as there is room for, and added when the rows are done: with few of them all blocks
// would wait at the same few addresses (on an H200 5 10^6 rows of 40 kinds took 5 ms).

#define COUNT_ROWS_FROM(i, from, n) \
    for (int gm_once = (count_begin(), 1); gm_once; gm_once = 0, count_end()) LANES_FROM(i, from, n)
#define COUNT(place_, x) count_at(&(place_), x)

enum { GM_COUNTED = 512 };  // places that a block keeps

// Shared memory of a block for what it does one after the other: counting, and putting rows in order.
DEVICE int *block_room(void)
{
    __shared__ alignas(8) int room[9 * GM_THREADS];
    return room;
}

DEVICE unsigned long long *counted_places(void) { return (unsigned long long *)block_room(); }
DEVICE unsigned *counted(void) { return (unsigned *)block_room() + 2 * GM_COUNTED; }

DEVICE void count_begin(void)
{
    __syncthreads();
    for (int e = threadIdx.x; e < GM_COUNTED; e += blockDim.x) {
        counted_places()[e] = 0;
        counted()[e] = 0;
    }
    __syncthreads();
}

DEVICE void count_end(void)
{
    __syncthreads();
    for (int e = threadIdx.x; e < GM_COUNTED; e += blockDim.x)
        if (counted_places()[e]) atomicAdd((wide *)counted_places()[e], (wide)counted()[e]);
    __syncthreads();
}

DEVICE void count_at(wide *place, wide x)
{
    const unsigned long long address = (unsigned long long)place;
    const unsigned same = __match_any_sync(__activemask(), address);
    if ((int)(threadIdx.x & 31) != __ffs((int)same) - 1) return;
    const int slot = (int)((address >> 3) % GM_COUNTED);
    unsigned long long *kept = &counted_places()[slot];
    unsigned long long there = *(volatile unsigned long long *)kept;
    if (!there) there = atomicCAS(kept, 0ULL, address);
    if (x == 1 && (!there || there == address)) atomicAdd(&counted()[slot], (unsigned)__popc(same));
    else atomicAdd(place, x * __popc(same));
}

// ---- sums by group ----
//
// A group's crew is a warp; if groups are few and large, the whole team, one group after the other.

#define EACH_GROUP(k, groups, n)                                                                                       \
    for (long gm_groups = (groups), gm_team = (n) > 8192 * gm_groups, k = gm_team ? 0 : gm_thread / 32; k < gm_groups; \
         k += gm_team ? 1 : gm_threads / 32)
#define GROUP_LANE if (gm_team ? gm_thread == 0 : gm_lane_of_warp == 0)

typedef struct GmRowCrew {
    GmSum sum;
    long first, last, step;
    int started;
} GmRowCrew;

template <int count>
static __device__ __forceinline__ GmRowCrew rows_begin(const GmContext *c, long team, long first, long last, wide *const (&into)[count])
{
    GmRowCrew r;
    r.started = 0;
    if (team) r.sum = sum_begin(c, team_chunk(last - first), last - first, into);
    r.first = first;
    r.last = last;
    return r;
}

template <int count>
static __device__ __forceinline__ int rows_next(GmContext *c, GmRowCrew *r, long team, long from, wide *const (&into)[count])
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

#define GM_PARTS_OF_ROWS(k, first_of, ...)                                                             \
    for (wide * gm_into[] = {__VA_ARGS__}, **gm_go = gm_into; gm_go; gm_go = 0)                        \
        for (GmRowCrew gm_rows = rows_begin(GM, gm_team, (first_of)[k], (first_of)[(k) + 1], gm_into); \
             rows_next(GM, &gm_rows, gm_team, (first_of)[k], gm_into);)
#define SUM_ROWS(i, k, first_of, rows_of, ...) \
    GM_PARTS_OF_ROWS(k, first_of, __VA_ARGS__) \
    for (long gm_r = gm_rows.first, i; gm_r < gm_rows.last && (i = (rows_of)[gm_r], 1); gm_r += gm_rows.step)
#define SUM_SORTED(r, k, first_of, ...)        \
    GM_PARTS_OF_ROWS(k, first_of, __VA_ARGS__) \
    for (long r = gm_rows.first; r < gm_rows.last; r += gm_rows.step)

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

DEVICE void gm_device_fault_at(GmContext *c, const char *variable, const char *says, int n, const long *number)
{
    GmPlace *p = c->place;
    if (atomicCAS(&p->fault, 0, 1) != 0) return;
    p->fault_chain = c->chain;
    p->fault_element = -1;
    p->fault_variable = variable;
    p->fault_what = says;
    for (int i = 0; i < n; i++) p->fault_number[i] = number[i];
    p->fault_numbers = n;
}

#define COLOUR                           (GM->place->colour)
#define WARMING_UP                       ((int64_t)GM->place->sweep < GM->place->warmup)
#define SWEEP                            (GM->place->sweep)
#define IS_DRAWN(variable)             true  // such kernels run on the host
#define UNLESS_KEPT(variable, element) if (true)
#define FAULT(name, element, what)       gm_device_fault(GM, name, element, what)
#define FAULT_AT(name, numbers, n, says) gm_device_fault_at(GM, name, says, n, numbers)
#define RESULT(v)                                               \
    do {                                                        \
        if (gm_thread == 0) GM->place->result[GM->chain] = (v); \
    } while (0)

// Checks are made on the CPU.
#define LOOKED_AT(...) ((void)0)
#define CHECKING       0
#define FOR_MODES      0
#define RATIO(...)     ((void)0)
#define NO_RATIO()     ((void)0)
#define SAVE_OLD(x, n)                 \
    const wide *OLD = (const wide *)0; \
    (void)OLD
#define SAVE_OLD_LOGS(x, logs, n)      \
    const wide *OLD = (const wide *)0; \
    (void)OLD
#define NEW_WEIGHTS(w, n)                   ((void)0)
#define CHECK_WEIGHT(k)                     0.0
#define RATIO_QUADRATIC_BEFORE(n, J, h, x)  ((void)0)
#define MARGINAL_NORMALS(count, n, J, h, x) 0
#define RATIO_QUADRATIC_AFTER(x)            ((void)0)

DEVICE wide normal_draw(Stream *g, long n, wide *J, const wide *h, wide *x) { return (wide)normal_precision_shift(g, n, J, h, x); }

#include "crew.h"
#include "keyed_sums.h"
#include "row_pass.h"
#include "classify.h"
#include "products_pass.h"
#ifdef GM_MODES
#include "columns.h"
#endif

#endif
