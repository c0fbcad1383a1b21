// If this failed, X' diag(w) X by tensor cores would be wrong for some sizes, or less exact than single precision, or would depend on what
// chains run beside.
//
// Needs a GPU of compute capability 8.0 or later. Seeds are fixed; nothing is random but data.
// nvcc:
#define GM_PRECISION float
#include <cmath>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>
#include "../../runtime/device/base.h"

typedef struct State { float *w; } State;
template <typename T> static __device__ T *gm_array(const State *states, int chain, uint64_t offset)
{
    return *(T *const *)((const char *)&states[chain] + offset);
}
#include "../../runtime/device/weighted_cores.h"

#define CK(call)                                                                                        \
    do {                                                                                                \
        const cudaError_t status_ = (call);                                                             \
        if (status_ != cudaSuccess) {                                                                   \
            printf("failed: line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(status_));          \
            exit(1);                                                                                    \
        }                                                                                               \
    } while (0)

static int failures;

static void check(const char *what, const char *statistic, double value, double bound)
{
    const int ok = value <= bound;
    failures += !ok;
    printf("%s %-60s %-14s %10.3g  bound %.3g\n", ok ? "ok    " : "failed", what, statistic, value, bound);
}

template <class T> static T *on_device(const std::vector<T> &v)
{
    T *p;
    CK(cudaMalloc(&p, v.size() * sizeof(T) + 16));
    CK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

static uint64_t state_of_host = 20240607;
static double host_uniform(void)
{
    state_of_host = state_of_host * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(state_of_host >> 11) * 1.11022302462515654e-16;
}

// Against sums in double of the numbers in single precision. Weights of both signs; a column of ones, all of whose products with itself
// have one sign.
static void one(long n, long p, long chunk, int chains)
{
    char what[100];
    snprintf(what, sizeof what, "X[%ld, %ld], chunks of %ld, %d chains", n, p, chunk, chains);
    const long chunks = (n + chunk - 1) / chunk;
    std::vector<float> X((size_t)(n * p));
    for (long e = 0; e < n * p; e++) X[e] = e % p == p - 1 ? 1 : (float)(3 * host_uniform() - 1);
    std::vector<std::vector<float> > w((size_t)chains);
    std::vector<State> states;
    for (int c = 0; c < chains; c++) {
        for (long i = 0; i < n; i++) w[c].push_back((float)(host_uniform() - (c == 1 ? 0.5 : 0)));
        states.push_back(State{on_device(w[c])});
    }
    State *on = on_device(states);
    float *x = on_device(X);
    const size_t size = CORES_SIDE * CORES_SIDE;
    std::vector<double> part((size_t)chains * chunks * size, NAN);
    double *out = on_device(part);
    gm_weighted_products_cores<<<dim3(1, (unsigned)chunks, (unsigned)chains), CORES_THREADS>>>(on, n, p, chunk, 0, chunks, x, 0, out);
    CK(cudaDeviceSynchronize());
    CK(cudaMemcpy(part.data(), out, part.size() * sizeof(double), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int c = 0; c < chains; c++)
        for (long j = 0; j < p; j++)
            for (long k = 0; k <= j; k++) {
                double want = 0, sizes = 0, got = 0;
                for (long i = 0; i < n; i++) {
                    const double t = (double)w[c][i] * X[i * p + j] * X[i * p + k];
                    want += t;
                    sizes += fabs(t);
                }
                for (long q = 0; q < chunks; q++) got += part[((size_t)c * chunks + q) * size + (size_t)(j * CORES_SIDE + k)];
                const double error = fabs(got - want) / sizes;
                if (!(error <= worst)) worst = error;
            }
    check(what, "error", worst, 6e-7);
    std::vector<double> again(part.size() / chains), first(part.begin(), part.begin() + (long)again.size());
    gm_weighted_products_cores<<<dim3(1, (unsigned)chunks, 1), CORES_THREADS>>>(on, n, p, chunk, 0, chunks, x, 0, out);
    CK(cudaMemcpy(again.data(), out, again.size() * sizeof(double), cudaMemcpyDeviceToHost));
    check(what, "other bits alone", memcmp(again.data(), first.data(), again.size() * sizeof(double)) != 0, 0);
    CK(cudaFree(x));
    CK(cudaFree(out));
    CK(cudaFree(on));
    for (State &s : states) CK(cudaFree(s.w));
}

int main(int argc, char **argv)
{
    const bool quick = argc > 1 && !strcmp(argv[1], "quick");
    one(1, 33, 256, 1);
    one(7, 64, 256, 2);
    one(300, 57, 256, 2);
    one(quick ? 700 : 40000, 56, 1279, 3);
    one(quick ? 700 : 30011, 64, 1024, 1);
    one(quick ? 700 : 20000, 49, 5000, 2);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
