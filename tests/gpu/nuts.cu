// If this failed, NUTS on a GPU would have another law than on a CPU. Or a trajectory would depend on whether its evaluations are launches
// of their own, or on how many threads share it.
//
// Needs a GPU. `nuts quick`: for a run under compute-sanitizer. Seeds are fixed; false alarms: 2e-9 for each bound of 6.
#include <cstdio>
#include <cstring>
#include <vector>
#include "../../runtime/device/nuts.h"
#include "../runtime/chained_normals.h"

#define CK(call)                                                      \
    do {                                                              \
        const cudaError_t e_ = (call);                                \
        if (e_) {                                                     \
            printf("failed %s: %s\n", #call, cudaGetErrorString(e_)); \
            return 1;                                                 \
        }                                                             \
    } while (0)
#define N   5

static __device__ void begin(Nuts *m, int chain, long sweep, long warmup)
{
    Sweep at;
    at.seed = 20240607;
    at.chain = (uint32_t)chain;
    at.sweep = (uint64_t)sweep;
    Stream g = stream(at, 1, 0);
    NutsSettings s;
    memset(&s, 0, sizeof s);
    s.same_density = sweep > 0;
    nuts_begin(m, &g, NULL, &s, sweep, warmup);
}

// All sweeps of a chain by one thread.
static __global__ void runs(wide *rooms, long n, long room, int chains, long sweeps, long warmup)
{
    const int chain = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (chain >= chains) return;
    Nuts *m = nuts_of(rooms + chain * room, n);
    for (long k = 0; k < sweeps; k++) {
        begin(m, chain, k, warmup);
        while (nuts_next(m)) m->log_density = chained(n, nuts_position(m), nuts_gradient(m));
    }
}

// By a block, or by several; the first thread answers.
static __global__ void __launch_bounds__(1024)
    runs_of_blocks(wide *rooms, long n, long room, long sweeps, long warmup, volatile double *answers, double *shares, uint32_t *meetings)
{
    const int chain = (int)blockIdx.y;
    for (long k = 0; k < sweeps; k++) {
        Nuts m = nuts_shared(rooms + chain * room, n, gridDim.x > 1 ? shares + chain * 2 * NUTS_MOST_BLOCKS * NUTS_MOST_SUMS : (double *)0,
                             meetings + 2 * chain);
        begin(&m, chain, k, warmup);
        while (nuts_next(&m)) {
            nuts_meet(&m);
            if (m.lane == 0) answers[chain] = chained(n, nuts_position(&m), nuts_gradient(&m));
            nuts_meet(&m);
            m.log_density = answers[chain];
        }
        nuts_kept(rooms + chain * room, &m);
        nuts_meet(&m);
    }
}

// The same in pieces: a sweep begins; one evaluation and what follows from it. Chains that have their draw wait.
static __global__ void begins(wide *rooms, long room, int chains, long sweep, long warmup, int *asks)
{
    const int chain = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (chain >= chains) return;
    Nuts *m = nuts_of(rooms + chain * room, N);
    begin(m, chain, sweep, warmup);
    if (nuts_next(m)) *asks = 1;
}

static __global__ void answers(wide *rooms, long room, int chains, int *asks)
{
    const int chain = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (chain >= chains) return;
    Nuts *m = nuts_of(rooms + chain * room, N);
    if (m->phase == NUTS_DONE) return;
    m->log_density = chained(N, nuts_position(m), nuts_gradient(m));
    if (nuts_next(m)) *asks = 1;
}

static __global__ void collect(wide *rooms, long n, long room, int chains, double *x, double *steps)
{
    const int chain = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (chain >= chains) return;
    Nuts *m = nuts_of(rooms + chain * room, n);
    for (long i = 0; i < n; i++) x[chain * n + i] = nuts_position(m)[i];
    steps[chain] = m->failed ? NAN : m->n_leapfrog;
}

static __global__ void room_of(long n, long *room) { *room = nuts_room(n); }

static int failures;

static void check(const char *what, const char *statistic, double value, double bound)
{
    const int ok = value <= bound;
    failures += !ok;
    printf("%s %-58s %-14s %10.3g  bound %.3g\n", ok ? "ok    " : "failed", what, statistic, value, bound);
}

// n coordinates by `lanes` threads beside one: sums are rounded otherwise, so not to the last bit.
static int by_lanes(long n, int blocks, int lanes, int chains, long sweeps)
{
    long room, *room_there;
    wide *rooms;
    double *x_there, *steps_there, *answers, *shares;
    uint32_t *meetings;
    std::vector<double> x[2], steps[2];
    CK(cudaMalloc(&answers, sizeof(double) * (size_t)chains));
    CK(cudaMalloc(&shares, sizeof(double) * 2 * NUTS_MOST_BLOCKS * NUTS_MOST_SUMS * (size_t)chains));
    CK(cudaMalloc(&meetings, 2 * sizeof(uint32_t) * (size_t)chains));
    CK(cudaMemset(meetings, 0, 2 * sizeof(uint32_t) * (size_t)chains));
    CK(cudaMalloc(&room_there, sizeof room));
    room_of<<<1, 1>>>(n, room_there);
    CK(cudaMemcpy(&room, room_there, sizeof room, cudaMemcpyDeviceToHost));
    const size_t bytes = sizeof(wide) * (size_t)room * (size_t)chains;
    CK(cudaMalloc(&rooms, bytes));
    CK(cudaMalloc(&x_there, sizeof(double) * (size_t)(n * chains)));
    CK(cudaMalloc(&steps_there, sizeof(double) * (size_t)chains));
    for (int k = 0; k < 2; k++) {
        x[k].resize((size_t)(n * chains));
        steps[k].resize((size_t)chains);
        CK(cudaMemset(rooms, 0, bytes));
        volatile double *to = answers;
        void *parameters[] = {&rooms, &n, &room, &sweeps, &sweeps, &to, &shares, &meetings};
        if (k)
            CK(cudaLaunchCooperativeKernel((const void *)runs_of_blocks, dim3((unsigned)blocks, (unsigned)chains), dim3((unsigned)lanes),
                                           parameters, 0, NULL));
        else runs<<<(chains + 31) / 32, 32>>>(rooms, n, room, chains, sweeps, sweeps);
        collect<<<(chains + 31) / 32, 32>>>(rooms, n, room, chains, x_there, steps_there);
        CK(cudaMemcpy(x[k].data(), x_there, sizeof(double) * x[k].size(), cudaMemcpyDeviceToHost));
        CK(cudaMemcpy(steps[k].data(), steps_there, sizeof(double) * steps[k].size(), cudaMemcpyDeviceToHost));
    }
    double apart = 0, others = 0;
    for (size_t i = 0; i < x[0].size(); i++)
        apart = x[0][i] == x[0][i] && x[1][i] == x[1][i] ? fmax(apart, fabs(x[0][i] - x[1][i])) : INFINITY;
    for (int c = 0; c < chains; c++) others += steps[0][c] != steps[1][c];
    char what[100];
    snprintf(what, sizeof what, "%ld coordinates by %d x %d threads", n, blocks, lanes);
    check(what, "other trees", others, 0);
    check(what, "apart", apart, 1e-5);
    CK(cudaFree(answers));
    CK(cudaFree(shares));
    CK(cudaFree(meetings));
    CK(cudaFree(room_there));
    CK(cudaFree(rooms));
    CK(cudaFree(x_there));
    CK(cudaFree(steps_there));
    return 0;
}

int main(int argc, char **argv)
{
    const bool quick = argc > 1 && !strcmp(argv[1], "quick");
    const int chains = quick ? 64 : 100000, blocks = (chains + 63) / 64;
    const long sweeps = quick ? 10 : 150, warmup = quick ? 8 : 120;
    long room, *room_there;
    wide *rooms;
    double *x_there, *steps_there;
    int *asks;
    CK(cudaMalloc(&room_there, sizeof room));
    room_of<<<1, 1>>>(N, room_there);
    CK(cudaMemcpy(&room, room_there, sizeof room, cudaMemcpyDeviceToHost));
    const size_t bytes = sizeof(wide) * (size_t)room * (size_t)chains;
    CK(cudaMalloc(&rooms, bytes));
    CK(cudaMalloc(&x_there, sizeof(double) * N * (size_t)chains));
    CK(cudaMalloc(&steps_there, sizeof(double) * (size_t)chains));
    CK(cudaMalloc(&asks, sizeof *asks));
    std::vector<double> x((size_t)(N * chains)), steps((size_t)chains), y(x.size()), more(steps.size());

    // The law, from a draw of each chain.
    CK(cudaMemset(rooms, 0, bytes));
    runs<<<blocks, 64>>>(rooms, N, room, chains, sweeps, warmup);
    collect<<<blocks, 64>>>(rooms, N, room, chains, x_there, steps_there);
    CK(cudaMemcpy(x.data(), x_there, sizeof(double) * x.size(), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N && !quick; i++)
        for (int j = 0; j <= i; j++) {
            double mean = 0, product = 0, squares = 0;
            for (int c = 0; c < chains; c++) {
                const double p = x[c * N + i] * x[c * N + j];
                mean += x[c * N + i] / chains;
                product += p / chains;
                squares += p * p / chains;
            }
            check("normals in a chain", "z mean", fabs(mean) * sqrt((double)chains), 6);
            check("normals in a chain", "z covariance", fabs(product - pow(RHO, i - j)) / sqrt((squares - product * product) / chains), 6);
        }

    // Evaluations in launches of their own: the same trajectories. Compilers may contract sums differently, so not to the last bit, and
    // only for some sweeps.
    const int few = chains < 1000 ? chains : 1000;
    const long short_run = 6;
    CK(cudaMemset(rooms, 0, bytes));
    runs<<<blocks, 64>>>(rooms, N, room, few, short_run, warmup);
    collect<<<blocks, 64>>>(rooms, N, room, few, x_there, steps_there);
    CK(cudaMemcpy(x.data(), x_there, sizeof(double) * (size_t)(N * few), cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(steps.data(), steps_there, sizeof(double) * (size_t)few, cudaMemcpyDeviceToHost));
    CK(cudaMemset(rooms, 0, bytes));
    for (long k = 0; k < short_run; k++) {
        int asked = 0;
        CK(cudaMemset(asks, 0, sizeof *asks));
        begins<<<blocks, 64>>>(rooms, room, few, k, warmup, asks);
        for (;;) {
            CK(cudaMemcpy(&asked, asks, sizeof asked, cudaMemcpyDeviceToHost));
            if (!asked) break;
            CK(cudaMemset(asks, 0, sizeof *asks));
            answers<<<blocks, 64>>>(rooms, room, few, asks);
        }
    }
    collect<<<blocks, 64>>>(rooms, N, room, few, x_there, steps_there);
    CK(cudaMemcpy(y.data(), x_there, sizeof(double) * (size_t)(N * few), cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(more.data(), steps_there, sizeof(double) * (size_t)few, cudaMemcpyDeviceToHost));
    double apart = 0, others = 0;
    for (int i = 0; i < N * few; i++) apart = x[i] == x[i] && y[i] == y[i] ? fmax(apart, fabs(x[i] - y[i])) : INFINITY;
    for (int c = 0; c < few; c++) others += steps[c] != more[c];
    check("a launch for each evaluation", "other trees", others, 0);
    check("a launch for each evaluation", "apart", apart, 1e-6);

    // With few sweeps, as rounding grows along trajectories.
    if (by_lanes(5, 1, 32, quick ? 4 : 100, 6) || by_lanes(70, 1, 32, quick ? 2 : 100, 4) || by_lanes(301, 1, 96, quick ? 2 : 50, 4) ||
        by_lanes(2500, 2, 256, quick ? 1 : 10, 4) || by_lanes(2500, 16, 32, quick ? 1 : 10, 4))
        return 1;
    printf("%s: %d failed\n", failures ? "failed" : "passed", failures);
    return failures > 0;
}
