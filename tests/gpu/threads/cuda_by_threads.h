// cuda_by_threads.h -- enough of CUDA to run device headers of teams on a CPU: a block is a process of 256 threads, whose static data are its shared memory; lanes wait for each other at barriers.
// For code in which all lanes of a block, or of a warp, meet at every wait and every exchange: lanes that do not would hang here.
#ifndef CUDA_BY_THREADS_H
#define CUDA_BY_THREADS_H
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define __device__
#define __forceinline__ inline
#define __noinline__
#define __shared__      static
#define alignas(n)      __attribute__((aligned(n)))
#define __popc          __builtin_popcount

enum { GM_THREADS = 256, GM_ROOM = 8 * 2 * 4 * 4096 };

struct Place2 { unsigned x, y; };
static thread_local Place2 threadIdx;
static Place2 blockIdx, blockDim = {GM_THREADS, 1}, gridDim = {1, 1};
static pthread_barrier_t block_barrier, warp_barrier[GM_THREADS / 32], *grid_barrier;
static volatile long shown[GM_THREADS];                      // what lanes exchange

#define gm_thread  ((long)blockIdx.x * blockDim.x + threadIdx.x)
#define gm_threads ((long)gridDim.x * blockDim.x)

static void __syncthreads() { pthread_barrier_wait(&block_barrier); }
static void __syncwarp() { pthread_barrier_wait(&warp_barrier[threadIdx.x / 32]); }

template <typename F> static auto exchanged(long mine, void (*wait)(), F of) -> decltype(of())
{
    shown[threadIdx.x] = mine;
    wait();
    const auto result = of();
    wait();
    return result;
}

static int __syncthreads_or(int p)
{
    return exchanged(p != 0, __syncthreads, [] { int any = 0; for (long v : shown) any |= v != 0; return any; });
}

// Of the lanes of the warp, those of which is(lane) holds.
template <typename Is> static unsigned lanes_that(Is is)
{
    unsigned all = 0;
    for (int k = 0; k < 32; k++) all |= (unsigned)is(shown[threadIdx.x / 32 * 32 + k]) << k;
    return all;
}

static unsigned __ballot_sync(unsigned, int p) { return exchanged(p != 0, __syncwarp, [] { return lanes_that([](long v) { return v != 0; }); }); }
static unsigned __match_any_sync(unsigned, int v) { return exchanged(v, __syncwarp, [v] { return lanes_that([v](long w) { return w == v; }); }); }
static int __shfl_up_sync(unsigned, int v, int by)
{
    return exchanged(v, __syncwarp, [v, by] { return (int)(threadIdx.x & 31) >= by ? (int)shown[threadIdx.x - by] : v; });
}

template <typename T> static T __ldcg(const T *p) { return *(const volatile T *)p; }
static int atomicAdd(int *p, int v) { return __sync_fetch_and_add(p, v); }

template <typename T> static T block_value(T v)
{
    static T first;
    __syncthreads();
    if (threadIdx.x == 0) first = v;
    __syncthreads();
    return first;
}

// Memory of all blocks.
template <typename T> static T *global(size_t n)
{
    void *p = mmap(0, n * sizeof(T) + 64, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) exit(2);
    return (T *)p;
}

// The kernel by so many blocks. 0: all have ended.
static int run_blocks(unsigned blocks, void *(*kernel)(void *))
{
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    grid_barrier = global<pthread_barrier_t>(1);
    pthread_barrier_init(grid_barrier, &shared, blocks * GM_THREADS);
    fflush(stdout);
    for (unsigned b = 0; b < blocks; b++) {
        if (fork()) continue;
        blockIdx = {b, 0};
        gridDim = {blocks, 1};
        pthread_barrier_init(&block_barrier, 0, GM_THREADS);
        for (pthread_barrier_t &w : warp_barrier) pthread_barrier_init(&w, 0, 32);
        std::vector<pthread_t> lanes(GM_THREADS);
        for (long k = 0; k < GM_THREADS; k++)
            if (pthread_create(&lanes[k], 0, kernel, (void *)k)) _exit(2);
        for (pthread_t &lane : lanes) pthread_join(lane, 0);
        _exit(0);
    }
    int bad = 0, status;
    for (unsigned b = 0; b < blocks; b++) {
        wait(&status);
        bad |= status;
    }
    return bad;
}
#endif
