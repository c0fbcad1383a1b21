// cuda_by_threads.h -- enough of CUDA to run device headers of teams on a CPU. A block is a process, whose static data are its shared
// memory, and whose 256 lanes run alternately on stacks of their own. A lane goes on until it has to wait, then the next one does: in
// ascending order up to one barrier of the block, in descending order up to the next. So a lane that reads a value before the barrier that
// protects it reads the old value. For code in which all lanes of a block, or of a warp, meet at every wait and every exchange: lanes that
// do not would hang here.
#ifndef CUDA_BY_THREADS_H
#define CUDA_BY_THREADS_H
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define __device__
#define __forceinline__ inline
#define __noinline__
#define __shared__      static
#define alignas(n)      __attribute__((aligned(n)))
#define __popc          __builtin_popcount

enum { GM_THREADS = 256, GM_ROOM = 8 * 2 * 4 * 4096 };

struct Place2 { unsigned x, y; };
static Place2 threadIdx, blockIdx, blockDim = {GM_THREADS, 1}, gridDim = {1, 1};
static volatile long shown[GM_THREADS];                      // what lanes exchange

#define gm_thread  ((long)blockIdx.x * blockDim.x + threadIdx.x)
#define gm_threads ((long)gridDim.x * blockDim.x)

// A lane begins on its stack, and goes on where it last waited.
static struct Lane { ucontext_t start; jmp_buf at; bool begun, ended; } lanes[GM_THREADS];
static ucontext_t block_ended;
static unsigned to_next = 1;                                 // modulo the lanes: the order in which lanes go on

static void next_lane()
{
    unsigned k = threadIdx.x, left = GM_THREADS;
    do k = (k + to_next) % GM_THREADS;
    while (lanes[k].ended && --left);
    if (!left) setcontext(&block_ended);
    threadIdx.x = k;
    if (lanes[k].begun) _longjmp(lanes[k].at, 1);
    lanes[k].begun = true;
    setcontext(&lanes[k].start);
}

static void let_others()
{
    if (!_setjmp(lanes[threadIdx.x].at)) next_lane();
}

// Until something changes that other blocks see to.
static void let_other_blocks()
{
    if (threadIdx.x == 0) sched_yield();
    let_others();
}

struct Meeting { int here; unsigned round; };
static Meeting of_block, of_grid, of_warp[GM_THREADS / 32];
static pthread_barrier_t *grid_barrier;                      // of one lane of each block

// The last of `all` lanes to come does what is to be done then, and goes on.
template <typename F> static void meet(Meeting *m, int all, F then)
{
    const unsigned round = m->round;
    if (++m->here < all) {
        while (*(volatile unsigned *)&m->round == round) let_others();
        return;
    }
    then();
    m->here = 0;
    m->round++;
}

static void __syncthreads() { meet(&of_block, GM_THREADS, [] { to_next = GM_THREADS - to_next; }); }
static void __syncwarp() { meet(&of_warp[threadIdx.x / 32], 32, [] {}); }
static void grid_sync() { meet(&of_grid, GM_THREADS, [] { to_next = GM_THREADS - to_next; pthread_barrier_wait(grid_barrier); }); }

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

static unsigned __ballot_sync(unsigned, int p)
{
    return exchanged(p != 0, __syncwarp, [] { return lanes_that([](long v) { return v != 0; }); });
}
static unsigned __match_any_sync(unsigned, int v)
{
    return exchanged(v, __syncwarp, [v] { return lanes_that([v](long w) { return w == v; }); });
}
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

enum { LANE_STACK = 1 << 20 };
static void (*lane_kernel)();

static void lane()
{
    lane_kernel();
    lanes[threadIdx.x].ended = true;
    next_lane();
}

static void run_lanes()
{
    char *const stacks =
        (char *)mmap(0, (size_t)GM_THREADS * LANE_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) _exit(2);
    for (long k = 0; k < GM_THREADS; k++) {
        getcontext(&lanes[k].start);
        lanes[k].start.uc_stack.ss_sp = stacks + k * LANE_STACK;
        lanes[k].start.uc_stack.ss_size = LANE_STACK;
        makecontext(&lanes[k].start, lane, 0);
    }
    threadIdx = {0, 0};
    lanes[0].begun = true;
    swapcontext(&block_ended, &lanes[0].start);
}

// The kernel by so many blocks. 0: all have ended.
static int run_blocks(unsigned blocks, void (*kernel)())
{
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    grid_barrier = global<pthread_barrier_t>(1);
    pthread_barrier_init(grid_barrier, &shared, blocks);
    fflush(stdout);
    lane_kernel = kernel;
    for (unsigned b = 0; b < blocks; b++) {
        if (fork()) continue;
        blockIdx = {b, 0};
        gridDim = {blocks, 1};
        run_lanes();
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
