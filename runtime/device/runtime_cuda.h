// runtime_cuda.h -- the kernels that the runtime itself launches on a GPU: joint normal draws, products of data, draws on their way out.
//
// gmc appends this file to an emitted program before its device half is compiled (compiler/driver/image.c); runtime/host/device_linalg.c
// and device_run.c launch what is here. Fields of State are named by their offsets. blockIdx.y is the chain, unless said otherwise; blocks
// have 256 threads. Sums are taken over fixed chunks in a fixed order, so no result depends on the grid.
#ifndef GM_RUNTIME_CUDA_H
#define GM_RUNTIME_CUDA_H

#include "rng.h"
#include "gamma.h"
#include "chees.h"

#define GM_KERNEL extern "C" __global__ void

// The array of a chain at an offset of State; NULL for GM_NO_FIELD.
template <typename T> static __device__ T *gm_array(const State *states, int chain, uint64_t offset)
{
    return offset == ~(uint64_t)0 ? (T *)0 : *(T *const *)((const char *)&states[chain] + offset);
}

static __device__ Sweep gm_sweep_of(const GmPlace *place, int chain)
{
    Sweep at;
    at.seed = place->seed;
    at.chain = (uint32_t)(place->first_chain + chain);
    at.sweep = place->sweep + 1;
    return at;
}

static __device__ void gm_raise(GmPlace *place, int chain, const char *variable, long element, const char *what)
{
    if (atomicCAS(&place->fault, 0, 1) != 0) return;
    place->fault_chain = chain;
    place->fault_variable = variable;
    place->fault_element = element;
    place->fault_what = what;
}

#define GM_NOT_PROPER                                                                                                           \
    "its joint normal conditional is not proper: priors and data leave an element of it free, or a combination of elements (a " \
    "coefficient or a part of a graph that neither identifies, or columns that are collinear to within rounding: centre "       \
    "them), or a value it depends on overflowed or fell to 0"

// Whether a joint normal that cannot be drawn may stay where it is, as on a CPU (fault.c), but counted for all blocks of a chain together.
// The first of its threads in a sweep counts.
static __device__ bool gm_may_stay(GmPlace *place, int chain)
{
#if defined(GM_MODES)
    return false;
#endif
    const bool first = GM_STAYS((long)place->sweep, (long)place->warmup);
    if (!place->stays) return first;
    GmStays *s = &place->stays[chain];
    const unsigned long long now = place->sweep + 1, last = atomicExch((unsigned long long *)&s->last, now);
    if (last != now) {
        s->in_a_row = last && now - last <= GM_STAYS_NEAR ? s->in_a_row + 1 : 1;
        s->all += !first;
    }
    return first || (s->in_a_row <= GM_STAYS_IN_A_ROW && s->all <= GM_MOST_STAYS);
}

static __device__ void gm_not_proper(GmPlace *place, int chain, const char *variable, long element)
{
    if (!gm_may_stay(place, chain)) {
        gm_raise(place, chain, variable, element, GM_NOT_PROPER);
        return;
    }
    atomicAdd(&place->stayed, 1);
    place->stayed_variable = variable;
}

// ---- the run ----

// To the next sweep. After a fault the place stays where it is, so that the message names the sweep.
GM_KERNEL gm_next_sweep(GmPlace *place)
{
    if (!place->fault) place->sweep++;
}

GM_KERNEL gm_set_colour(GmPlace *place, long colour) { place->colour = colour; }

// one column of the draws; type: GmType, or -1 for the log joint
struct GmGathered {
    uint64_t offset;
    long element;
    long type;
};

// Row `*kept % slots` of ring[slots][chains][columns].
GM_KERNEL gm_gather(const State *states, const GmPlace *place, const GmGathered *column, long columns, const uint64_t *kept, long slots,
                    double *ring)
{
    const int chain = (int)blockIdx.y;
    double *row = ring + ((long)(*kept % (uint64_t)slots) * gridDim.y + chain) * columns;
    for (long c = blockIdx.x * (long)blockDim.x + threadIdx.x; c < columns; c += (long)gridDim.x * blockDim.x) {
        const GmGathered g = column[c];
        double x = 0;
        switch (g.type) {
        case -1: x = place->result[chain]; break;
        case -2: x = NAN; break;  // a value that no draw has
        case GM_INT: {            // the least int stands for one that does not exist
            const int n = gm_array<const int>(states, chain, g.offset)[g.element];
            x = n == -2147483647 - 1 ? NAN : (double)n;
            break;
        }
        case GM_REAL: x = gm_array<const real>(states, chain, g.offset)[g.element]; break;
        case GM_WIDE: x = gm_array<const wide>(states, chain, g.offset)[g.element]; break;
        case GM_SOLVE: x = gm_array<const solve>(states, chain, g.offset)[g.element]; break;
        }
        row[c] = x;
    }
}

GM_KERNEL gm_gathered(const GmPlace *place, uint64_t *kept)
{
    if (!place->fault) ++*kept;
}

// ---- joint normal draws (linalg.h) ----
//
// These, HMC and X'WX take seconds to compile: a program defines GM_JOINT_NORMALS, GM_HMC and GM_WEIGHTED_GRAMS for those that it
// launches.

#ifdef GM_JOINT_NORMALS

static inline __device__ double gm_noise(const Stream *g, long k)
{
#ifdef GM_MODES  // the mean
    (void)g;
    (void)k;
    return 0;
#else
    Stream part = stream_part(g, (uint64_t)k);
    return normal_standard(&part);
#endif
}

// The factor of a scale move; rest = Q - h'J^-1 h.
static inline __device__ double gm_scale_drawn(Stream *g, double count, double rest)
{
    return rest > 0 && count > 0 ? sqrt(gamma_shape_rate(g, count / 2, rest / 2)) : 1;
}

// The sum of every thread's x, in a fixed order; blocks of 256 threads.
static __device__ double gm_block_sum(double x)
{
    __shared__ double part[8];
    for (int k = 16; k > 0; k /= 2) x += __shfl_xor_sync(0xffffffffu, x, k);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    double sum = 0;
    for (int k = 0; k < 8; k++) sum += part[k];
    return sum;
}

// One block a chain, for n that fits: the rows of J with h as row n lie in shared memory; after factoring row n is L^-1 h.
GM_KERNEL gm_dense_small(const State *states, GmPlace *place, unsigned var, const char *name, long n, uint64_t at_J, uint64_t at_h,
                         uint64_t at_x, uint64_t at_scale)
{
    extern __shared__ double A[];  // [n + 1][stride], then e[n]
    const int chain = (int)blockIdx.y, t = (int)threadIdx.x, rows = (int)n + 1, stride = (int)n | 1, threads = 256;
    double *v = A + n * stride, *e = A + rows * stride;
    const solve *J = gm_array<const solve>(states, chain, at_J), *h = gm_array<const solve>(states, chain, at_h);
    wide *x = gm_array<wide>(states, chain, at_x), *scale = gm_array<wide>(states, chain, at_scale);
    Stream g = stream(gm_sweep_of(place, chain), var, 0);
    for (int i = t / 32; i < n; i += threads / 32)
        for (int j = t % 32; j <= i; j += 32) A[i * stride + j] = J[i * n + j];
    for (int j = t; j < n; j += threads) {
        v[j] = h[j];
        e[j] = gm_noise(&g, j);
    }
    __syncthreads();
    const int tx = t % 16, ty = t / 16;
    for (int k = 0; k < n; k++) {
        const double pivot = A[k * stride + k];
        if (!(pivot > GM_PIVOT_LOST * J[k * n + k]) || pivot > GM_HUGE) {  // the same in every thread
            if (t == 0) gm_not_proper(place, chain, name, -1);
            if (t == 0 && scale) scale[2] = 1;
            return;
        }
        const double r = 1 / sqrt(pivot);
        __syncthreads();
        for (int i = k + t; i < rows; i += threads) A[i * stride + k] *= r;
        __syncthreads();
        for (int i = k + 1 + ty; i < rows; i += 16) {
            const double a = A[i * stride + k];
            for (int j = k + 1 + tx; j <= i && j < n; j += 16) A[i * stride + j] -= a * A[j * stride + k];
        }
        __syncthreads();
    }
    __shared__ double s;
    if (t < 32) {  // one warp does the rest
        double rest = 0;
        if (scale) {
            for (int j = t; j < n; j += 32) rest += v[j] * v[j];
            for (int k = 16; k > 0; k /= 2) rest += __shfl_xor_sync(0xffffffffu, rest, k);
        }
        if (t == 0) {
            s = scale ? gm_scale_drawn(&g, scale[1], scale[0] - rest) : 1;
            if (scale) scale[2] = s;
        }
        __syncwarp();
        for (int j = t; j < n; j += 32) v[j] = s * v[j] + e[j];
        __syncwarp();
        for (int k = (int)n - 1; k >= 0; k--) {
            const double y = v[k] / A[k * stride + k];
            __syncwarp();
            for (int j = t; j < k; j += 32) v[j] -= A[k * stride + j] * y;
            if (t == 0) v[k] = y;
            __syncwarp();
        }
        for (int j = t; j < n; j += 32) {
            if (is_finite(v[j])) x[j] = v[j];
            else gm_not_proper(place, chain, name, -1);
        }
    }
}

#include "dense_tiles.h"

#ifdef GM_SPARSE_NORMALS
#include "sparse_tiles.h"
#endif

// After a factorisation by cuSOLVER: h = L^-1 h to s L^-1 h + noise, with the scale move. One block a chain.
GM_KERNEL gm_dense_noise(const State *states, GmPlace *place, unsigned var, long n, uint64_t at_h, uint64_t at_scale)
{
    const int chain = (int)blockIdx.y;
    solve *h = gm_array<solve>(states, chain, at_h);
    wide *scale = gm_array<wide>(states, chain, at_scale);
    Stream g = stream(gm_sweep_of(place, chain), var, 0);
    const Stream parts = g;
    double s = 1;
    if (scale) {
        __shared__ double drawn;
        double square_sum = 0;
        for (long j = threadIdx.x; j < n; j += 256) square_sum += (double)h[j] * h[j];
        square_sum = gm_block_sum(square_sum);
        if (threadIdx.x == 0) scale[2] = drawn = gm_scale_drawn(&g, scale[1], scale[0] - square_sum);
        __syncthreads();
        s = drawn;
    }
    for (long j = threadIdx.x; j < n; j += 256) h[j] = (solve)(s * h[j] + gm_noise(&parts, j));
}

// x = h, which has been solved for; info[chain]: what cuSOLVER says of the pivots.
GM_KERNEL gm_dense_place(const State *states, GmPlace *place, const char *name, long n, uint64_t at_h, uint64_t at_x, const int *info)
{
    const int chain = (int)blockIdx.y;
    const solve *h = gm_array<const solve>(states, chain, at_h);
    wide *x = gm_array<wide>(states, chain, at_x);
    for (long j = blockIdx.x * 256L + threadIdx.x; j < n; j += gridDim.x * 256L) {
        if (info[chain] != 0 || !is_finite(h[j])) gm_not_proper(place, chain, name, -1);
        else x[j] = h[j];
    }
}

// ---- arrows: effects u[m] with diagonal precision D, coupled with x[n] by E[m, n] ----

// Rows of E, and k, over sqrt(D).
GM_KERNEL gm_arrow_rows(const State *states, GmPlace *place, const char *name, long n, long m, uint64_t at_D, uint64_t at_E, uint64_t at_k)
{
    const int chain = (int)blockIdx.y;
    const wide *D = gm_array<const wide>(states, chain, at_D);
    wide *E = gm_array<wide>(states, chain, at_E), *k = gm_array<wide>(states, chain, at_k);
    for (long i = blockIdx.x * 256L + threadIdx.x; i < m; i += gridDim.x * 256L) {
        if (!(D[i] > 0)) gm_not_proper(place, chain, name, i);
        const double r = 1 / sqrt(D[i]);
        for (long j = 0; j < n; j++) E[i * n + j] *= r;
        k[i] *= r;
    }
}

// The lower triangle of [E k]'[E k] for each chunk of rows: part[chain][chunk][pair], pair (a, b) at a (a + 1)/2 + b. blockIdx.x is the
// chunk.
GM_KERNEL gm_arrow_products(const State *states, long n, long m, long chunk, uint64_t at_E, uint64_t at_k, double *part)
{
    __shared__ double share[256];
    const int chain = (int)blockIdx.y, t = (int)threadIdx.x;
    const wide *E = gm_array<const wide>(states, chain, at_E), *k = gm_array<const wide>(states, chain, at_k);
    const long first = blockIdx.x * chunk, last = first + chunk < m ? first + chunk : m, pairs = (n + 1) * (n + 2) / 2;
    double *out = part + ((long)blockIdx.y * gridDim.x + blockIdx.x) * pairs;
    const int hands = pairs < 256 ? 256 / (int)pairs : 1;  // threads that share a pair
    for (long q = hands > 1 ? t % pairs : t; q < pairs; q += 256) {
        const int hand = hands > 1 ? t / (int)pairs : 0;
        long a = (long)((sqrt(8.0 * (double)q + 1) - 1) / 2);
        if (a * (a + 1) / 2 > q) a--;
        if ((a + 1) * (a + 2) / 2 <= q) a++;
        const long b = q - a * (a + 1) / 2;
        double sum = 0;
        if (hand < hands)
            for (long i = first + hand; i < last; i += hands) {
                const double left = a < n ? E[i * n + a] : k[i], right = b < n ? E[i * n + b] : k[i];
                sum += left * right;
            }
        if (hands == 1) {
            out[q] = sum;
            continue;
        }
        share[t] = sum;
        __syncthreads();
        if (hand == 0) {
            for (int other = 1; other < hands; other++) sum += share[t + other * (int)pairs];
            out[q] = sum;
        }
        break;
    }
}

// J -= E'E, h -= E'k, scale.Q -= k'k, from the chunks. Four pairs a block, 64 threads each.
GM_KERNEL gm_arrow_reduce(const State *states, long n, long chunks, const double *part, uint64_t at_J, uint64_t at_h, uint64_t at_scale)
{
    __shared__ double share[64][4];
    const int chain = (int)blockIdx.y, t = (int)threadIdx.x, hand = t / 4;
    const long pairs = (n + 1) * (n + 2) / 2, q = blockIdx.x * 4L + t % 4;
    double sum = 0;
    part += (long)chain * chunks * pairs + q;
    if (q < pairs)
#pragma unroll 8
        for (long c = hand; c < chunks; c += 64) sum += part[c * pairs];
    share[hand][t % 4] = sum;
    __syncthreads();
    if (hand > 0 || q >= pairs) return;
    for (int k = 1; k < 64; k++) sum += share[k][t % 4];
    solve *J = gm_array<solve>(states, chain, at_J), *h = gm_array<solve>(states, chain, at_h);
    wide *scale = gm_array<wide>(states, chain, at_scale);
    long a = (long)((sqrt(8.0 * (double)q + 1) - 1) / 2);
    if (a * (a + 1) / 2 > q) a--;
    if ((a + 1) * (a + 2) / 2 <= q) a++;
    const long b = q - a * (a + 1) / 2;
    if (a < n) {
        J[a * n + b] -= (solve)sum;
        if (a != b) J[b * n + a] -= (solve)sum;
    } else if (b < n) h[b] -= (solve)sum;
    else if (scale) scale[0] -= sum;
}

GM_KERNEL gm_arrow_effects(const State *states, GmPlace *place, unsigned var, const char *name, long n, long m, uint64_t at_D,
                           uint64_t at_E, uint64_t at_k, uint64_t at_x, uint64_t at_u, uint64_t at_scale)
{
    const int chain = (int)blockIdx.y;
    const wide *D = gm_array<const wide>(states, chain, at_D), *E = gm_array<const wide>(states, chain, at_E),
               *k = gm_array<const wide>(states, chain, at_k);
    const wide *x = gm_array<const wide>(states, chain, at_x), *scale = gm_array<const wide>(states, chain, at_scale);
    wide *u = gm_array<wide>(states, chain, at_u);
    const double s = scale ? scale[2] : 1;
    const Stream g = stream(gm_sweep_of(place, chain), var, 0);
    for (long i = blockIdx.x * 256L + threadIdx.x; i < m; i += gridDim.x * 256L) {
        double v = s * k[i];
        for (long j = 0; j < n; j++) v -= E[i * n + j] * x[j];
        v = (v + gm_noise(&g, n + i)) / sqrt(D[i]);
        if (is_finite(v)) u[i] = v;
        else gm_not_proper(place, chain, name, -1);
    }
}

// With no dense part: the scale move alone.
GM_KERNEL gm_arrow_scale(const State *states, GmPlace *place, unsigned var, uint64_t at_scale)
{
    const int chain = (int)blockIdx.y;
    wide *scale = gm_array<wide>(states, chain, at_scale);
    Stream g = stream(gm_sweep_of(place, chain), var, 0);
    if (threadIdx.x == 0) scale[2] = gm_scale_drawn(&g, scale[1], scale[0]);
}

#endif

// ---- HMC (nuts.h) ----

#if defined(GM_HMC) && !defined(GM_HMC_APART)  // apart: compiled alone, for programs of any model (host/device_image.c)

// The array of a chain at an offset of a State of so many bytes.
template <typename T> static __device__ T *gm_array(const State *states, uint64_t size, int chain, uint64_t offset)
{
    return *(T *const *)((const char *)states + (uint64_t)chain * size + offset);
}

// What chains need while they make an HMC update together. The last of them to come counts how many go on.
struct GmAsks {
    uint32_t arrived, going_on;  // so far
    uint32_t ask;                // of the last round; what a loop on the device goes by
};

// After a round: launches are for the chains that need one, in order; at the end of the update for all.
static __device__ void gm_leave_out(GmPlace *place, int chains, int ask)
{
    if (chains > GM_MOST_IDLE || (ask && place->going[0] == ask)) return;
    for (int w = 0; w < GM_MOST_IDLE / 32 && !ask; w++) place->idle[w] = 0;
    int n = 0;
    for (int c = 0; c < chains; c++)
        if (!ask || !(((volatile uint32_t *)place->idle)[c / 32] >> c % 32 & 1)) place->going[1 + n++] = c;
    place->going[0] = n;
}

static __device__ NutsSettings gm_hmc_settings(const GmHmc &of, const GmPlace *place)
{
    NutsSettings settings;
    settings.steps = of.steps;
    settings.waits = 0;
    settings.max_depth = of.depth;
    settings.metric = NUTS_ADAPTED;
    settings.same_density = of.alone;
    settings.step = of.step;
    settings.walls = of.walls;
    settings.target = of.accept;
    settings.temperature = nuts_temperature(of.anneal, (long)place->sweep, place->warmup);
    return settings;
}

// A block a chain, of 32 threads or more, or several that run at once, which share its vectors; blockIdx.y: the chain, from `first` on, of
// all `chains`. `begins`: the chain's state is in `position`, and this is the first round; else the density has been evaluated. Leaves at
// `position` where the density is to be evaluated next, or the draw, and in `asking` how many chains need it. A chain that has its draw
// waits for the others there.
extern "C" __global__ void __launch_bounds__(NUTS_MOST_LANES)
    gm_hmc(const State *states, GmPlace *place, const GmHmc of, int begins, int first, int chains, GmAsks *asks, volatile uint32_t *asking)
{
    const int chain = first + (int)blockIdx.y;
    wide *room = gm_array<wide>(states, of.state_size, chain, of.machine), *__restrict__ position =
                                                                               gm_array<wide>(states, of.state_size, chain, of.position);
    Nuts m =
        nuts_shared(room, of.coordinates, gridDim.x > 1 ? place->partial + (long)chain * GM_ROOM : (double *)0, place->barrier + 2 * chain);
    if (of.standardised) m.standard = gm_array<wide>(states, of.state_size, chain, of.standardised);
    int more = 0;
    if (begins) {
        NutsSettings settings = gm_hmc_settings(of, place);
        if ((long)place->sweep <= place->warmup) m.left = 0;
        if (of.together) chees_settings(&m, &settings, (long)place->sweep - of.first, of.adapts);
        Stream g = stream(gm_sweep_of(place, chain), of.var, STREAM_NUTS);
        nuts_begin(&m, &g, position, &settings, (long)place->sweep - of.first, of.adapts);
    } else if (m.phase != NUTS_DONE) {
        const wide *__restrict__ gradient = gm_array<const wide>(states, of.state_size, chain, of.gradient);
        wide *__restrict__ mine = nuts_gradient(&m);
        m.log_density = *gm_array<const wide>(states, of.state_size, chain, of.value);
        NUTS_EACH (i, &m) mine[i] = gradient[i];
    }
    if (begins || m.phase != NUTS_DONE) {
        more = nuts_next(&m);
        const wide *__restrict__ to = nuts_position(&m);
        NUTS_EACH (i, &m) position[i] = to[i];
        nuts_kept(room, &m);
    }
    if (m.lane != 0) return;
    if (!more) {
        wide *says = gm_array<wide>(states, of.state_size, chain, of.diagnostics);
        says[0] = m.accept_stat;
        says[1] = m.stepsize;
        says[2] = m.treedepth;
        says[3] = m.n_leapfrog;
        says[4] = m.divergent;
        says[5] = m.energy;
        if (chains <= GM_MOST_IDLE) atomicOr(&place->idle[chain / 32], 1u << chain % 32);
        if (m.failed && !of.selection)
            gm_raise(place, chain, of.name, -1,
                     m.failed == 1 ? "the log density is not finite at the chain's state"
                                   : "the gradient of the log density is not finite at the chain's state");
    } else atomicAdd(&asks->going_on, 1u);
    __threadfence();
    if (atomicAdd(&asks->arrived, 1u) != (uint32_t)chains - 1) return;
    const uint32_t ask = atomicExch(&asks->going_on, 0u);
    asks->arrived = 0;
    asks->ask = ask;
    gm_leave_out(place, chains, (int)ask);
    if (!asking) return;  // the host is not to know
    *asking = ask;
    __threadfence_system();
}

// ---- chains that adapt together (chees.h), after a sweep of warm-up ----

enum { GM_SHARED_SUMS = GM_ROOM / CHEES_SUMS };  // warps at most, whose sums a chain's part of place->partial has room for

static __device__ Chees gm_chees(const State *states, const GmPlace *place, const GmHmc *of, int chains)
{
    Chees w;
    w.states = states;
    w.size = of->state_size;
    w.machine = of->machine;
    w.n = of->coordinates;
    w.chains = chains;
    w.sweep = (long)place->sweep - of->first;
    w.warmup = of->adapts;
    w.target = of->accept;
    return w;
}

static __device__ bool gm_chees_adapts(const Chees *w) { return chees_meets(w->sweep, w->warmup); }

// A thread works at coordinates of all chains, a warp adds up what they give to a chain: place->partial[chain][warp].
GM_KERNEL gm_together_coordinates(const State *states, GmPlace *place, const GmHmc of, int chains)
{
    const Chees w = gm_chees(states, place, &of, chains);
    const long threads = (long)gridDim.x * blockDim.x, first = blockIdx.x * (long)blockDim.x + threadIdx.x, warp = first / 32;
    if (!gm_chees_adapts(&w)) return;
    for (long from = 0; from < w.n; from += threads) {
        const long i = from + first;
        CheesCentre at = {0, 0, 0};
        if (i < w.n) at = chees_coordinate(&w, i);
        for (int c = 0; c < chains && chees_goes(&w); c++) {
            double sums[CHEES_SUMS] = {0};
            if (i < w.n) chees_add(&w, i, c, &at, sums);
            double *to = place->partial + (long)c * GM_ROOM + warp * CHEES_SUMS;
            for (int k = 0; k < CHEES_SUMS; k++) {
                for (int o = 16; o; o >>= 1) sums[k] += __shfl_xor_sync(0xffffffffu, sums[k], o);
                if (threadIdx.x % 32 == 0) to[k] = from ? to[k] + sums[k] : sums[k];
            }
        }
    }
}

// One block: a warp adds up what `warps` have given to a chain, then one thread adapts.
GM_KERNEL gm_together_adapts(const State *states, GmPlace *place, const GmHmc of, int chains, int warps)
{
    const Chees w = gm_chees(states, place, &of, chains);
    const int lane = threadIdx.x % 32;
    if (!gm_chees_adapts(&w)) return;
    for (int c = threadIdx.x / 32; c < chains && chees_goes(&w); c += blockDim.x / 32) {
        double *of_chain = place->partial + (long)c * GM_ROOM, sums[CHEES_SUMS] = {0};
        for (int from = lane; from < warps; from += 32)
            for (int k = 0; k < CHEES_SUMS; k++) sums[k] += of_chain[from * CHEES_SUMS + k];
        for (int k = 0; k < CHEES_SUMS; k++)
            for (int o = 16; o; o >>= 1) sums[k] += __shfl_xor_sync(0xffffffffu, sums[k], o);
        __syncwarp();
        for (int k = 0; k < CHEES_SUMS && lane == 0; k++) of_chain[k] = sums[k];
    }
    __syncthreads();
    if (threadIdx.x == 0) chees_adapt(&w, place->partial, GM_ROOM);
}

#endif

// ---- products with data ----

#ifndef GM_HMC_ALONE

GM_KERNEL gm_widen(long n, const real *x, double *out)
{
    for (long i = blockIdx.x * 256L + threadIdx.x; i < n; i += gridDim.x * 256L) out[i] = x[i];
}

// The lower triangle of a p by p matrix into the upper one (row-major).
GM_KERNEL gm_mirror(long p, double *A)
{
    for (long e = blockIdx.x * 256L + threadIdx.x; e < p * p; e += gridDim.x * 256L)
        if (e % p > e / p) A[e] = A[e % p * p + e / p];
}

// A value of which the compiler knows nothing.
static __device__ __forceinline__ void gm_opaque(float &x) { asm volatile("" : "+f"(x)); }
static __device__ __forceinline__ void gm_opaque(double &x) { asm volatile("" : "+d"(x)); }

#ifdef GM_WEIGHTED_GRAMS

// A tile of T by T outputs: 64 threads have M by M of them each; four such hands share the rows of a slab. G outputs lie together.
template <int T> struct WeightedShape {
    enum { SIDE = 8, M = T / SIDE, HANDS = 4, SIZE = (int)sizeof(real), G = M * SIZE > 16 ? 16 / SIZE : M };
    enum { SLAB = 8192 / SIZE / T, MINE = SLAB * T / 256, SLABS = 256 * HANDS / SLAB, STEP = 256 / T };
    struct __align__(G *SIZE) Piece { real x[G]; };
    struct Slab {
        real left[SLAB][T], right[SLAB][T];
    };
};

// Where a block's tile and chunk lie: columns a .. and b .. of X, b <= a; rows up to last.
struct WeightedTile {
    long p, a, b, last;
    bool diagonal;
};

// What a thread copies of a slab: one column, every STEP rows; left and right are on their way, and so is a row's weight.
template <int T> struct WeightedAhead {
    real left[WeightedShape<T>::MINE], right[WeightedShape<T>::MINE], weight;
};

template <int T> static __device__ __forceinline__ void gm_weighted_read(const WeightedTile &c, const real *X, const real *w, long i,
                                                                         WeightedAhead<T> &ahead)
{
    typedef WeightedShape<T> S;
    const int t = (int)threadIdx.x, column = t % T, row = t / T;
    const bool in_left = !c.diagonal && c.a + column < c.p, in_right = c.b + column < c.p;
    const real *x = X + (i + row) * c.p + c.a + column;
    const long across = c.b - c.a;
    const int rows = c.last - i - row < S::SLAB ? (int)(c.last - i - row) : S::SLAB;
#pragma unroll
    for (int k = 0; k < S::MINE; k++, x += S::STEP * c.p) {
        ahead.left[k] = in_left && k * S::STEP < rows ? x[0] : 0;
        ahead.right[k] = in_right && k * S::STEP < rows ? x[across] : 0;
    }
    if (t < S::SLAB) ahead.weight = i + t < c.last ? w[i + t] : 0;
}

template <int T> static __device__ __forceinline__ void gm_weighted_keep(const WeightedTile &c, const WeightedAhead<T> &ahead,
                                                                         typename WeightedShape<T>::Slab *slab, real *weight)
{
    typedef WeightedShape<T> S;
    const int t = (int)threadIdx.x, column = t % T, row = t / T;
#pragma unroll
    for (int m = 0; m < S::MINE; m++) {
        if (!c.diagonal) slab->left[row + m * S::STEP][column] = ahead.left[m];
        slab->right[row + m * S::STEP][column] = ahead.right[m];
    }
    if (t < S::SLAB) weight[t] = ahead.weight;
}

// sum += the hand's rows of a slab.
template <int T> static __device__ __forceinline__ void gm_weighted_slab(const WeightedTile &c, const typename WeightedShape<T>::Slab *s,
                                                                         const real *weight,
                                                                         real (&sum)[WeightedShape<T>::M][WeightedShape<T>::M])
{
    typedef WeightedShape<T> S;
    typedef typename S::Piece Piece;
    enum { M = S::M, G = S::G, SIDE = S::SIDE };
    const int t = (int)threadIdx.x, hand = t / (SIDE * SIDE), ty = t % (SIDE * SIDE) / SIDE, tx = t % SIDE;
#pragma unroll 1
    for (int r = hand; r < S::SLAB; r += S::HANDS) {
        const real *const x = c.diagonal ? s->right[r] : s->left[r], *const y = s->right[r], weigh = weight[r];
        Piece A[M / G], B[M / G];
#pragma unroll
        for (int q = 0; q < M / G; q++) {
            A[q] = *(const Piece *)(x + (q * SIDE + ty) * G);
            B[q] = *(const Piece *)(y + (q * SIDE + tx) * G);
        }
#pragma unroll
        for (int u = 0; u < M; u++) {
            const real xw = A[u / G].x[u % G] * weigh;
#pragma unroll
            for (int v = 0; v < M; v++) sum[u][v] += xw * B[v / G].x[v % G];
        }
    }
}

// The sums of a round, one hand after the other: through `share`, the last to out, to what is there since the first round.
template <int T> static __device__ __forceinline__ void gm_weighted_out(real (&sum)[WeightedShape<T>::M][WeightedShape<T>::M], int round,
                                                                        double *share, double *out)
{
    typedef WeightedShape<T> S;
    enum { M = S::M, G = S::G, SIDE = S::SIDE, HANDS = S::HANDS };
    const int t = (int)threadIdx.x, hand = t / (SIDE * SIDE), ty = t % (SIDE * SIDE) / SIDE, tx = t % SIDE;
#pragma unroll 1
    for (int k = 0; k < HANDS; k++) {
        if (hand == k)
#pragma unroll
            for (int u = 0; u < M; u++) {
#pragma unroll
                for (int v = 0; v < M; v++) {
                    gm_opaque(sum[u][v]);  // else all are widened before the loop, into registers that are not there
                    const int e = (u / G * SIDE + ty) * G * T + u % G * T + (v / G * SIDE + tx) * G + v % G;
                    const double whole = sum[u][v] + (k > 0 ? share[e] : round > 0 ? out[e] : 0);
                    if (k < HANDS - 1) share[e] = whole;
                    else out[e] = whole;
                }
            }
        __syncthreads();
    }
}

// part[chain][chunk][tile][T * T] of X' diag(w) X over a chunk of rows, for a tile of T by T outputs at or below the diagonal. blockIdx.x:
// the tile; y: the chunk, after `before` others of all `chunks`; z: the chain. Outputs are in registers, and the next slab is on its way
// while one is worked on. Within 256 rows of a hand sums are of the type of X, then double.
template <int T> static __device__ __forceinline__ void gm_weighted_products(const State *states, long n, long p, long chunk, long before,
                                                                             long chunks, const real *X, uint64_t at_w, double *part)
{
    typedef WeightedShape<T> S;
    enum { M = S::M, SLAB = S::SLAB };
    __shared__ __align__(16) unsigned char room[2 * sizeof(typename S::Slab)];  // two slabs; then the sums of one hand
    __shared__ real weight[2][SLAB];
    static_assert(sizeof(room) >= T * T * sizeof(double), "the sums of a hand fit");
    typename S::Slab *const slab = (typename S::Slab *)room;
    const int chain = (int)blockIdx.z;
    const real *w = gm_array<const real>(states, chain, at_w);
    long a = 0, b = blockIdx.x;  // the tile in row a, column b <= a
    while (b > a) b -= ++a;
    const long at = before + blockIdx.y, first = at * chunk;
    const WeightedTile c = {p, a * T, b * T, first + chunk < n ? first + chunk : n, a == b};
    double *const out = part + ((chain * chunks + at) * gridDim.x + blockIdx.x) * (T * T);
    WeightedAhead<T> ahead;
    ahead.weight = 0;
    long i = first;
    for (int round = 0; i < c.last; round++) {  // 256 rows of a hand, or what is left
        real sum[M][M];
#pragma unroll
        for (int u = 0; u < M; u++)
#pragma unroll
            for (int v = 0; v < M; v++) sum[u][v] = 0;
        __syncthreads();
        gm_weighted_read<T>(c, X, w, i, ahead);
        gm_weighted_keep<T>(c, ahead, slab, weight[0]);
        __syncthreads();
        for (int k = 0; k < S::SLABS && i < c.last; k++, i += SLAB) {
            const bool more = k + 1 < S::SLABS && i + SLAB < c.last;
            if (more) gm_weighted_read<T>(c, X, w, i + SLAB, ahead);
            gm_weighted_slab<T>(c, slab + k % 2, weight[k % 2], sum);
            if (more) gm_weighted_keep<T>(c, ahead, slab + (k + 1) % 2, weight[(k + 1) % 2]);
            __syncthreads();
        }
        gm_weighted_out<T>(sum, round, (double *)room, out);
    }
}

GM_KERNEL __launch_bounds__(256, sizeof(real) == 8 ? 1 : 2)
    gm_weighted_products_16(const State *states, long n, long p, long chunk, long before, long chunks, const real *X, uint64_t at_w,
                            double *part)
{
    gm_weighted_products<16>(states, n, p, chunk, before, chunks, X, at_w, part);
}
GM_KERNEL __launch_bounds__(256, sizeof(real) == 8 ? 1 : 2)
    gm_weighted_products_32(const State *states, long n, long p, long chunk, long before, long chunks, const real *X, uint64_t at_w,
                            double *part)
{
    gm_weighted_products<32>(states, n, p, chunk, before, chunks, X, at_w, part);
}
GM_KERNEL __launch_bounds__(256, sizeof(real) == 8 ? 1 : 2)
    gm_weighted_products_64(const State *states, long n, long p, long chunk, long before, long chunks, const real *X, uint64_t at_w,
                            double *part)
{
    gm_weighted_products<64>(states, n, p, chunk, before, chunks, X, at_w, part);
}

#include "weighted_cores.h"

// out[p, p], both triangles, from the chunks. blockIdx.x: 32 places of the tiles, whose chunks eight hands share; blockIdx.y: the chain.
GM_KERNEL gm_weighted_products_add(const State *states, long p, long T, long tiles, long chunks, const double *part, uint64_t at_out)
{
    __shared__ double share[8][32];
    const int chain = (int)blockIdx.y, lane = (int)threadIdx.x % 32, hand = (int)threadIdx.x / 32;
    const long size = tiles * T * T, e = blockIdx.x * 32L + lane;  // T * T is a multiple of 32
    wide *out = gm_array<wide>(states, chain, at_out);
    part += chain * chunks * size + e;
    double sum = 0;
#pragma unroll 4
    for (long c = hand; c < chunks; c += 8) sum += part[c * size];
    share[hand][lane] = sum;
    __syncthreads();
    if (hand > 0) return;
    for (int k = 1; k < 8; k++) sum += share[k][lane];
    long a = 0, b = e / (T * T);
    while (b > a) b -= ++a;
    const long i = a * T + e % (T * T) / T, j = b * T + e % T;
    if (i < p && j <= i) out[i * p + j] = out[j * p + i] = sum;
}

#endif

// out[rows, p] = X times the weights of its rows, for rows first .. first + rows - 1 of one chain.
GM_KERNEL gm_weigh(const State *states, int chain, uint64_t at_w, long first, long rows, long p, const real *X, real *out)
{
    const real *w = gm_array<const real>(states, chain, at_w) + first;
    X += first * p;
    for (long e = blockIdx.x * 256L + threadIdx.x; e < rows * p; e += gridDim.x * 256L) out[e] = X[e] * w[e / p];
}

// out += add, or out = add for the first.
GM_KERNEL gm_add_real(const State *states, int chain, uint64_t at_out, long n, const real *add, int first)
{
    wide *out = gm_array<wide>(states, chain, at_out);
    for (long i = blockIdx.x * 256L + threadIdx.x; i < n; i += gridDim.x * 256L) out[i] = (first ? 0 : out[i]) + add[i];
}

// part[chain][p][chunk] = X'w over a chunk of rows, for several chains in one reading of X. blockIdx.x: 256 columns; y: the chunk, as
// above; z: the chains, from first_chain on. Threads beside each other read numbers beside each other: the columns of a row, and of the
// rows after it while there are threads; weights are read from shared memory. Within 32 rows of a thread sums are of the type of X, then
// double.
template <int chains> static __device__ __forceinline__ void gm_row_sums(const State *states, const GmPlace *place, int first_chain, long n,
                                                                         long p, long chunk, long before, long chunks, const real *X,
                                                                         uint64_t at_w, double *part)
{
    enum { TILE = 512 };
    __shared__ double share[256];
    __shared__ real weight[chains][TILE];
    const long first_column = blockIdx.x * 256L, at = before + blockIdx.y, first = at * chunk, last = first + chunk < n ? first + chunk : n;
    const int columns = (int)(p - first_column < 256 ? p - first_column : 256), hands = 256 / columns, hand = (int)threadIdx.x / columns,
              column = (int)threadIdx.x % columns;
    const int at_chain = first_chain + (int)blockIdx.z * chains, some = place->going[0] - at_chain;  // there are no others
    const real *w[chains];
    double sum[chains];
    int chain[chains];
    if (some <= 0) return;
    for (int c = 0; c < chains; c++) {
        chain[c] = place->going[1 + at_chain + (c < some ? c : 0)];
        w[c] = gm_array<const real>(states, chain[c], at_w);
        sum[c] = 0;
    }
    for (long from = first; from < last; from += TILE) {
        const int rows = (int)(last - from < TILE ? last - from : TILE);
        __syncthreads();
        for (int c = 0; c < chains; c++)
            for (int r = (int)threadIdx.x; r < rows; r += 256) weight[c][r] = w[c][from + r];
        __syncthreads();
        const real *__restrict__ x = X + from * p + first_column + column;
        for (int r = hand; r < rows && hand < hands;) {
            const int end = rows - r > 32 * hands ? r + 32 * hands : rows;
            real some[chains];
            for (int c = 0; c < chains; c++) some[c] = 0;
#pragma unroll 8
            for (; r < end; r += hands) {
                const real value = x[(long)r * p];
                for (int c = 0; c < chains; c++) some[c] += value * weight[c][r];
            }
            for (int c = 0; c < chains; c++) sum[c] += some[c];
        }
    }
    for (int c = 0; c < chains; c++) {
        __syncthreads();
        share[threadIdx.x] = sum[c];
        __syncthreads();
        if (hand > 0 || c >= some) continue;
        for (int k = 1; k < hands; k++) sum[c] += share[k * columns + column];
        part[(chain[c] * p + first_column + column) * chunks + at] = sum[c];
    }
}

GM_KERNEL gm_row_sums_1(const State *states, const GmPlace *place, int first_chain, long n, long p, long chunk, long before, long chunks,
                        const real *X, uint64_t at_w, double *part)
{
    gm_row_sums<1>(states, place, first_chain, n, p, chunk, before, chunks, X, at_w, part);
}

GM_KERNEL gm_row_sums_4(const State *states, const GmPlace *place, int first_chain, long n, long p, long chunk, long before, long chunks,
                        const real *X, uint64_t at_w, double *part)
{
    gm_row_sums<4>(states, place, first_chain, n, p, chunk, before, chunks, X, at_w, part);
}

// A warp adds up the chunks of a column.
GM_KERNEL gm_row_sums_add(const State *states, const GmPlace *place, long p, long chunks, const double *part, uint64_t at_out)
{
    const int chain = (int)blockIdx.y, lane = (int)threadIdx.x % 32;
    wide *out = gm_array<wide>(states, chain, at_out);
    if (gm_idle(place, chain)) return;
    for (long j = blockIdx.x * 8L + threadIdx.x / 32; j < p; j += gridDim.x * 8L) {
        const double *of = part + (chain * p + j) * chunks;
        double sum = 0;
        for (long c = lane; c < chunks; c += 32) sum += of[c];
        for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, k);
        if (lane == 0) out[j] = sum;
    }
}

// eta[n, k] = X B, an output by a thread; rows first .. first + rows - 1, which X begins with.
GM_KERNEL gm_product(const State *states, long first, long rows, long p, long k, int transposed, const real *X, uint64_t at_B,
                     uint64_t at_eta)
{
    const int chain = (int)blockIdx.y;
    const wide *B = gm_array<const wide>(states, chain, at_B);
    real *eta = gm_array<real>(states, chain, at_eta) + first * k;
    for (long e = blockIdx.x * 256L + threadIdx.x; e < rows * k; e += gridDim.x * 256L) {
        const real *x = X + e / k * p;
        const wide *b = transposed ? B + e % k * p : B + e % k;
        double sum = 0;
        for (long j = 0; j < p; j++) sum += x[j] * b[transposed ? j : j * k];
        eta[e] = (real)sum;
    }
}

// Products of all chains at once: the outputs of a row, k of each chain, stand side by side.
GM_KERNEL gm_products_coefficients(const State *states, long p, long k, int chains, int transposed, uint64_t at_B, real *out)
{
    const long q = k * chains;
    for (long e = blockIdx.x * 256L + threadIdx.x; e < p * q; e += gridDim.x * 256L) {
        const long j = e / q, o = e % k;
        out[e] = (real)gm_array<const wide>(states, (int)(e % q / k), at_B)[transposed ? o * p + j : j * k + o];
    }
}

GM_KERNEL gm_products_apart(const State *states, long n, long k, int chains, const real *joint, uint64_t at_eta)
{
    const long q = k * chains;
    for (long e = blockIdx.x * 256L + threadIdx.x; e < n * q; e += gridDim.x * 256L)
        gm_array<real>(states, (int)(e % q / k), at_eta)[e / q * k + e % k] = joint[e];
}

GM_KERNEL gm_products_together(const State *states, long n, long k, int chains, uint64_t at_w, real *joint)
{
    const long q = k * chains;
    for (long e = blockIdx.x * 256L + threadIdx.x; e < n * q; e += gridDim.x * 256L)
        joint[e] = gm_array<const real>(states, (int)(e % q / k), at_w)[e / q * k + e % k];
}

GM_KERNEL gm_products_back(const State *states, long p, long k, int chains, int transposed, const real *joint, uint64_t at_out)
{
    const long q = k * chains;
    for (long e = blockIdx.x * 256L + threadIdx.x; e < p * q; e += gridDim.x * 256L) {
        const long j = e / q, o = e % k;
        gm_array<wide>(states, (int)(e % q / k), at_out)[transposed ? o * p + j : j * k + o] = joint[e];
    }
}

// part[chain][column][chunk] = the sum of a column of w[n, k] over a chunk of rows, blockIdx.x; blockIdx.y: the chain. Then sums[column],
// by a warp.
GM_KERNEL gm_products_columns(const State *states, long n, long k, long chunk, long chunks, uint64_t at_w, double *part)
{
    __shared__ double share[256];
    const int chain = (int)blockIdx.y, t = (int)threadIdx.x;
    const long width = k < 256 ? k : 256, hands = 256 / width, first = blockIdx.x * chunk, last = first + chunk < n ? first + chunk : n;
    const real *w = gm_array<const real>(states, chain, at_w);
    for (long from = 0; from < k; from += width) {  // 256 / k rows at a time, or 256 columns of one
        const long column = from + t % width;
        double sum = 0;
        for (long i = first + t / width; i < last && t < width * hands && column < k; i += hands) sum += w[i * k + column];
        share[t] = sum;
        __syncthreads();
        if (t < width && column < k) {
            for (long h = 1; h < hands; h++) sum += share[h * width + t];
            part[(chain * k + column) * chunks + blockIdx.x] = sum;
        }
        __syncthreads();
    }
}

GM_KERNEL gm_products_columns_add(const State *states, long k, long chunks, const double *part, uint64_t at_sums)
{
    const int chain = (int)blockIdx.y;
    const long column = blockIdx.x;
    double sum = 0;
    for (long c = threadIdx.x; c < chunks; c += 32) sum += part[(chain * k + column) * chunks + c];
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (threadIdx.x == 0) gm_array<wide>(states, chain, at_sums)[column] = sum;
}

#endif

#endif
