// joint.h -- joint normal draws by themselves: State, matrices, and how the host launches a draw. For joint_draws.cu and the bench.
#ifndef JOINT_H
#define JOINT_H

#ifndef GM_PRECISION
#define GM_PRECISION float
#endif
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>
#include "../../runtime/device/gm.h"

typedef struct Data { int none; } Data;
typedef struct State { solve *J, *h; wide *x, *scale; wide *D; solve *rows; wide *y; solve *M; } State;
#define GM_JOINT_NORMALS
#define GM_WEIGHTED_GRAMS
#include "../../runtime/device/runtime_cuda.h"

#define CK(call)                                                                                        \
    do {                                                                                                \
        const cudaError_t status_ = (call);                                                             \
        if (status_ != cudaSuccess) {                                                                   \
            printf("failed: line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(status_));          \
            exit(1);                                                                                    \
        }                                                                                               \
    } while (0)

enum { VAR_x = 5, RANK = 100 };

static __device__ double joint_number(uint64_t seed, uint32_t variable, uint64_t element)
{
    Sweep at;
    at.seed = seed;
    at.chain = 0;
    at.sweep = 0;
    Stream g = stream(at, variable, element);
    return normal_standard(&g);
}

__global__ void joint_numbers(uint64_t seed, uint32_t variable, long n, double *out)
{
    for (long e = blockIdx.x * (long)blockDim.x + threadIdx.x; e < n; e += (long)gridDim.x * blockDim.x)
        out[e] = joint_number(seed, variable, e);
}

// J[n, n] = diag(0.5 to 2) + B B' / RANK with B[n, RANK] standard normal: no eigenvalue below 0.5.
__global__ void joint_matrix(uint64_t seed, long n, const double *B, solve *J)
{
    for (long e = blockIdx.x * (long)blockDim.x + threadIdx.x; e < n * n; e += (long)gridDim.x * blockDim.x) {
        const long i = e / n, j = e % n;
        double sum = 0;
        for (int k = 0; k < RANK; k++) sum += B[i * RANK + k] * B[j * RANK + k];
        if (i == j) sum = sum + RANK * (0.5 + 1.5 * (double)(i * 7919 % 101) / 100);
        J[e] = (solve)(sum / RANK);
    }
}

__global__ void joint_shift(uint64_t seed, long n, solve *h)
{
    for (long j = blockIdx.x * (long)blockDim.x + threadIdx.x; j < n; j += (long)gridDim.x * blockDim.x)
        h[j] = (solve)(3 * joint_number(seed, 2, j));
}

// Chains with matrices of their own, and copies of what a draw destroys.
typedef struct Joint {
    long   n;
    int    chains;
    size_t scale;                                        // offset in State, or GM_NO_FIELD
    std::vector<State> state, kept;                      // pointers into device memory
    State *states;
    GmPlace *place;
    unsigned char *scratch;
} Joint;

template <class T> static T *on_device(size_t n)
{
    T *p;
    CK(cudaMalloc(&p, n * sizeof(T) + 256));
    CK(cudaMemset(p, 255, n * sizeof(T) + 256));
    return p;
}

static void joint_restore(const Joint *b, cudaStream_t stream)
{
    for (int c = 0; c < b->chains; c++) {
        CK(cudaMemcpyAsync(b->state[c].J, b->kept[c].J, sizeof(solve) * (size_t)(b->n * b->n), cudaMemcpyDeviceToDevice, stream));
        CK(cudaMemcpyAsync(b->state[c].h, b->kept[c].h, sizeof(solve) * (size_t)b->n, cudaMemcpyDeviceToDevice, stream));
    }
}

static Joint joint_new(long n, int chains, bool scaled, uint64_t seed)
{
    Joint b;
    b.n = n;
    b.chains = chains;
    b.scale = scaled ? offsetof(State, scale) : (size_t)-1;
    double *B = on_device<double>((size_t)(n * RANK));
    for (int c = 0; c < chains; c++) {
        State s = {on_device<solve>((size_t)(n * n)),
                   on_device<solve>((size_t)n),
                   on_device<wide>((size_t)n),
                   on_device<wide>(3),
                   0,
                   0,
                   0,
                   0},
              k = s;
        k.J = on_device<solve>((size_t)(n * n));
        k.h = on_device<solve>((size_t)n);
        joint_numbers<<<1024, 256>>>(seed + (uint64_t)c, 1, n * RANK, B);
        joint_matrix<<<4096, 256>>>(seed + (uint64_t)c, n, B, k.J);
        joint_shift<<<64, 256>>>(seed + (uint64_t)c, n, k.h);
        b.state.push_back(s);
        b.kept.push_back(k);
    }
    CK(cudaFree(B));
    b.states = on_device<State>((size_t)chains);
    CK(cudaMemcpy(b.states, b.state.data(), sizeof(State) * (size_t)chains, cudaMemcpyHostToDevice));
    GmPlace place = {};
    place.seed = 7;
    place.sweep = 11;
    place.chains = chains;
    b.place = on_device<GmPlace>(1);
    CK(cudaMemcpy(b.place, &place, sizeof place, cudaMemcpyHostToDevice));
    b.scratch = on_device<unsigned char>((size_t)DENSE_BYTES(n, (long)chains, (long)sizeof(solve)));
    CK(cudaDeviceSynchronize());
    return b;
}

static void joint_free(Joint *b)
{
    for (int c = 0; c < b->chains; c++) {
        cudaFree(b->state[c].J);
        cudaFree(b->state[c].h);
        cudaFree(b->state[c].x);
        cudaFree(b->state[c].scale);
        cudaFree(b->kept[c].J);
        cudaFree(b->kept[c].h);
    }
    cudaFree(b->states);
    cudaFree(b->place);
    cudaFree(b->scratch);
}

// What the runtime launches. blocks 0: as many as on 132 multiprocessors.
static void joint_launch(Joint *b, cudaStream_t stream, long blocks = 0)
{
    if (!blocks) blocks = dense_blocks(b->n, b->chains, 132);
    CK(cudaMemsetAsync(b->scratch, 255, (size_t)DENSE_BYTES(b->n, (long)b->chains, (long)sizeof(solve)), stream));
    const DenseRows none = {};
    gm_dense_tiles<<<(unsigned)blocks, DENSE_THREADS, 0, stream>>>(b->states, b->place, VAR_x, "x", b->n, b->chains, offsetof(State, J),
                                                                   offsetof(State, h), offsetof(State, x), b->scale, b->scratch, none);
    CK(cudaGetLastError());
}

static void joint_launch_small(Joint *b, cudaStream_t stream)
{
    const size_t shared = sizeof(double) * (size_t)((b->n + 1) * (b->n | 1) + b->n);
    CK(cudaFuncSetAttribute(gm_dense_small, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024 - 1024));
    gm_dense_small<<<dim3(1, (unsigned)b->chains), 256, shared, stream>>>(b->states, b->place, VAR_x, "x", b->n, offsetof(State, J),
                                                                          offsetof(State, h), offsetof(State, x), b->scale);
    CK(cudaGetLastError());
}

#endif
