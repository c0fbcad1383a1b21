// Draws of sparse_tiles.h, by lanes that run alternately on a CPU, beside a dense factor: the same draw in the same order of elements.
// Arguments: blocks; sides of grids, or -n for effects of n groups crossed with n others.
#include "../../../runtime/device/base.h"
#include "../../../runtime/device/special.h"
#include "../../../runtime/device/rng.h"
#include "../../../runtime/device/normal.h"
#include "../../../runtime/device/gamma.h"
#include "cuda_by_threads.h"
#include <algorithm>
#include <cstddef>
#include <vector>
extern "C" {
#include "../../../runtime/backends/tiles.h"
}

#define __global__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
struct double2 { double x, y; };
struct float4 { float x, y, z, w; };
static unsigned atomicAdd(unsigned *p, unsigned v) { return __sync_fetch_and_add(p, v); }
template <typename T> static void __stcg(T *p, T v) { *(volatile T *)p = v; }
static int __ffs(int v) { return __builtin_ffs(v); }
template <typename T> static T shuffled(T v, unsigned from)
{
    long bits = 0;
    memcpy(&bits, &v, sizeof v);
    const long got = exchanged(bits, __syncwarp, [from] { return (long)shown[threadIdx.x / 32 * 32 + from % 32]; });
    memcpy(&v, &got, sizeof v);
    return v;
}
template <typename T> static T __shfl_sync(unsigned, T v, int from) { return shuffled(v, (unsigned)from); }
template <typename T> static T __shfl_xor_sync(unsigned, T v, int by) { return shuffled(v, threadIdx.x % 32 ^ (unsigned)by); }

// In place of dense_handing.h.
#define GM_DENSE_HANDING_H
static void dense_publish(double *to, double v) { __atomic_store(to, &v, __ATOMIC_RELEASE); }
static void dense_publish(float *to, float v) { *to = v; }
template <typename T> static T dense_await(const T *from)
{
    for (;; let_other_blocks()) {
        T v;
        __atomic_load(from, &v, __ATOMIC_ACQUIRE);
        long bits = 0;
        memcpy(&bits, &v, sizeof v);
        if (bits != -1) return v;
    }
}
template <typename T> static void dense_await4(const T *from, int step, T v[4])
{
    for (int e = 0; e < 4; e++) v[e] = dense_await(from + e * step);
}
static int dense_acquire(const int *from)
{
    const int v = __atomic_load_n(from, __ATOMIC_ACQUIRE);
    if (v < 0) let_other_blocks();
    return v;
}
static void dense_release(int *to, int v) { __atomic_store_n(to, v, __ATOMIC_RELEASE); }
template <typename T> static void dense_reciprocal(T p, T *start, T *rest) { *start = 1 / p, *rest = 0; }
template <typename T> static T dense_inverse_root(T p) { return 1 / sqrt(p); }

typedef double solve;
typedef struct GmPlace { int fault; } GmPlace;
typedef struct State { wide *x, *scale; } State;
template <typename T> static T *gm_array(const State *states, int chain, uint64_t offset)
{
    return offset == ~(uint64_t)0 ? (T *)0 : *(T *const *)((const char *)&states[chain] + offset);
}
static Sweep gm_sweep_of(const GmPlace *, int chain) { return {5, (uint32_t)chain, 3}; }
static void gm_not_proper(GmPlace *place, int, const char *, long) { place->fault = 1; }
static double gm_noise(const Stream *g, long k)
{
    Stream part = stream_part(g, (uint64_t)k);
    return normal_standard(&part);
}
static double gm_scale_drawn(Stream *g, double count, double rest)
{
    return rest > 0 && count > 0 ? sqrt(gamma_shape_rate(g, count / 2, rest / 2)) : 1;
}
static double gm_block_sum(double x)
{
    static double part[8];
    for (int k = 16; k > 0; k /= 2) x += __shfl_xor_sync(0xffffffffu, x, k);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    double sum = 0;
    for (int k = 0; k < 8; k++) sum += part[k];
    return sum;
}
#define GM_KERNEL extern "C" void
#include "../../../runtime/device/sparse_tiles.h"

enum { CHAINS = 2 };
static SparsePlan plan;
static State *states;
static GmPlace *place;
static bool scaled;

static void sums()
{
    for (unsigned c = 0; c < CHAINS; c++) {
        __syncthreads();
        if (threadIdx.x == 0) blockIdx.y = c, gridDim.y = CHAINS;
        __syncthreads();
        gm_sparse_sums(plan);
        gm_sparse_longs(plan);
    }
}

static void flow()
{
    gm_sparse_tiles(states, place, 7, "x", CHAINS, offsetof(State, x), scaled ? offsetof(State, scale) : ~(uint64_t)0, plan);
}

template <typename T> static const T *shared(const T *from, long n)
{
    T *to = global<T>((size_t)n + 1);
    memcpy((void *)to, from, sizeof(T) * (size_t)n);
    return to;
}

static void draw(int blocks, int size)
{
    const bool grid = size > 0;
    const long n = grid ? (long)size * size : 1 - 2 * (long)size, rows = grid ? n : 3 * n;
    std::vector<long> one, other;                          // pairs that are listed: they may come again
    for (long i = 0; i < n && grid; i++) {
        if ((i + 1) % size) one.push_back(i), other.push_back(i + 1);
        if (i + size < n) one.push_back(i + size), other.push_back(i);
    }
    for (long r = 0; r < rows && !grid; r++) {             // 0 is their mean
        const long a = 1 + rand() % -size, b = 1 - size + rand() % -size;
        for (const auto &p : {std::pair<long, long>(a, b), {0, a}, {b, 0}}) one.push_back(p.first), other.push_back(p.second);
    }
    const long pairs = (long)one.size(), terms = pairs + 2 * n + (grid ? 0 : 200);
    std::vector<int> row, column;
    std::vector<double> value[CHAINS], J[CHAINS], h[CHAINS];
    for (int c = 0; c < CHAINS; c++) J[c].assign(n * n, 0), h[c].assign(n, 0);
    for (long k = 0; k < terms; k++) {
        long i, j;
        if (k < pairs) i = one[k], j = other[k];
        else if (k < pairs + n) i = j = k - pairs;
        else if (k < pairs + 2 * n) i = -1, j = k - pairs - n;
        else i = j = 0;                                    // a place of many terms
        row.push_back((int)i), column.push_back((int)j);
        for (int c = 0; c < CHAINS; c++) {
            const double v = i < 0    ? rand() / (RAND_MAX + 1.0) - 0.5
                             : i == j ? (k < pairs + n ? (grid ? 2.2 : 8 + (i == 0) * 3 * n) : 0.01)
                                      : -(0.3 + 0.5 * rand() / (RAND_MAX + 1.0));
            value[c].push_back(v);
            if (i < 0) h[c][j] += v;
            else J[c][i * n + j] += v, J[c][j * n + i] += v;       // twice on the diagonal
        }
    }
    std::vector<int> first(n + 1), rows_of, slot, order(n);
    for (long j = 0; j < n; j++) {
        first[j] = (int)rows_of.size();
        for (long i = j; i < n; i++)
            if (i == j || J[0][i * n + j] != 0) rows_of.push_back((int)i);
    }
    first[n] = (int)rows_of.size();
    for (long k = 0; k < terms; k++) {
        if (row[k] < 0) continue;
        const int i = row[k] > column[k] ? row[k] : column[k], j = row[k] > column[k] ? column[k] : row[k];
        int s = first[j];
        while (rows_of[s] != i) s++;
        slot.push_back(s);
    }
    for (long k = 0; k < n; k++) order[k] = (int)(grid ? k : n - 1 - k);      // effects first, their mean last
    if (grid)                                              // a few strips apart, what separates them last: leaves that are made at once
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return (a / size % 6 == 5) < (b / size % 6 == 5); });
    GmTiles *t = gm_tiles_open(n, first.data(), rows_of.data(), order.data(), 1e9);
    GmTileSums u = gm_tiles_sums(t, first.data(), rows_of.data(), slot.data(), terms, row.data(), column.data());
    plan = {n,
            t->tiles,
            t->factor,
            t->stored,
            u.sums,
            u.parts,
            u.longs,
            t->tasks,
            terms,
            shared(u.sum, u.sums),
            shared(u.longer, u.longs),
            shared(u.list, terms),
            shared(t->task, t->tasks),
            shared(t->update, t->updates),
            shared(t->back, t->tiles),
            shared(t->first_below, t->tiles + 1),
            shared(t->below, t->factor - t->tiles),
            shared(t->begin, t->tiles + 1),
            shared(t->element, n),
            global<double>(CHAINS * terms),
            global<double>(CHAINS * u.parts + 1),
            NULL};
    const size_t poisoned = SPARSE_HEAD(&plan, (long)CHAINS), bytes = poisoned + CHAINS * SPARSE_ZERO(&plan);
    plan.scratch = global<unsigned char>(bytes);
    states = global<State>(CHAINS), place = global<GmPlace>(1);
    for (int c = 0; c < CHAINS; c++) {
        memcpy(plan.value + c * terms, value[c].data(), sizeof(double) * terms);
        states[c] = {global<wide>(n), global<wide>(3)};
    }
    double worst = 0;
    int status = 0;
    for (scaled = false;; scaled = true) {
        memset(plan.scratch, 255, poisoned);
        memset(plan.scratch + poisoned, 0, bytes - poisoned);
        for (int c = 0; c < CHAINS; c++) states[c].scale[0] = 1e3, states[c].scale[1] = 40;
        status |= run_blocks(1, sums) | run_blocks((unsigned)blocks, flow) | place->fault;
        for (int c = 0; c < CHAINS; c++) {
            std::vector<double> L(n * n), w(n), x(n);
            for (long i = 0; i < n; i++)
                for (long j = 0; j <= i; j++) {
                    double sum = J[c][order[i] * n + order[j]];
                    for (long k = 0; k < j; k++) sum -= L[i * n + k] * L[j * n + k];
                    L[i * n + j] = i == j ? sqrt(sum) : sum / L[j * n + j];
                }
            Stream g = stream(gm_sweep_of(place, c), 7, 0);
            const Stream noise = g;
            double rest = 1e3;
            for (long i = 0; i < n; i++) {
                w[i] = h[c][order[i]];
                for (long k = 0; k < i; k++) w[i] -= L[i * n + k] * w[k];
                w[i] /= L[i * n + i];
                rest -= w[i] * w[i];
            }
            const double s = scaled ? gm_scale_drawn(&g, 40, rest) : 1;
            for (long i = n - 1; i >= 0; i--) {
                x[i] = s * w[i] + gm_noise(&noise, i);
                for (long k = i + 1; k < n; k++) x[i] -= L[k * n + i] * x[k];
                x[i] /= L[i * n + i];
                const double off = fabs(states[c].x[order[i]] - x[i]);
                worst = off <= worst ? worst : off;
            }
        }
        if (scaled) break;
    }
    if (!status && worst < 1e-11)
        printf("%ld elements, %ld tiles of %ld, %ld pieces, %ld products, %d in turn: the draws agree\n", n, t->factor,
               t->tiles * (t->tiles + 1) / 2, t->stored - t->factor, t->updates, t->height);
    else
        printf("%ld elements, %ld tiles, %ld products, %d in turn: status %d, off by %.1e\n", n, t->stored, t->updates, t->height, status,
               worst);
    gm_tiles_sums_close(&u);
    gm_tiles_close(t);
}

int main(int argc, char **argv)
{
    srand(3);
    for (int k = 2; k < argc; k++) draw(atoi(argv[1]), atoi(argv[k]));
    return 0;
}
