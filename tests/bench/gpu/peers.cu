// peers.cu -- what bounds a sweep on this GPU, and the same sweep by library calls, for tests/bench/gpu.py.
//
//   nvcc -O3 -arch=native -std=c++17 -o peers peers.cu -lcublas -lcusolver -lcurand
//   peers horseshoe N P CHAINS      probit with a horseshoe prior        peers lasso N P        peers intercepts N GROUPS
//   peers probit N P CHAINS         probit with a fixed prior            peers logistic N P     peers normals N     peers polya N
//   peers multinomial N P           eight such sweeps, without the sums over other categories
//   peers walk N NUMBERS, hmm N VALUES, crossed N LEVELS, topics N P, factors N P, mixture N P        floors alone, but for mixture
//
// Lines `read MS` (reading the data once), `cholesky MS` (cuSOLVER's of the smaller side), `peer MS` (the sweep by cuBLAS, cuSOLVER and
// elementwise kernels, in single precision) and, for normals, `own MS`. Medians of 15 by events; data are random. The elementwise kernels
// draw with gmc's samplers, so that the peer differs in nothing but reading X twice and launching one thing after another; `normals`
// inverts cuRAND's uniforms.
#include <algorithm>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <curand.h>
#include <cusolverDn.h>
#include <functional>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>
#define GM_PRECISION float
#include "../../../runtime/device/base.h"
#include "../../../runtime/device/gamma.h"
#include "../../../runtime/device/inverse_gaussian.h"
#include "../../../runtime/device/normal.h"
#include "../../../runtime/device/polya_gamma_single.h"
#include "../../../runtime/device/truncated_single.h"

#define CK(call)                                                                                        \
    do {                                                                                                \
        const int status_ = (int)(call);                                                                \
        if (status_ != 0) {                                                                             \
            printf("failed: line %d: %s: %d\n", __LINE__, #call, status_);                              \
            exit(1);                                                                                    \
        }                                                                                               \
    } while (0)

static cublasHandle_t blas;
static cusolverDnHandle_t solver;
static const float one = 1, zero = 0;

static double median_ms(const std::function<void(void)> &work, int together = 1)
{
    std::vector<float> times;
    cudaEvent_t begin, end;
    CK(cudaEventCreate(&begin));
    CK(cudaEventCreate(&end));
    for (int r = 0; r < 18; r++) {
        CK(cudaEventRecord(begin));
        for (int k = 0; k < together; k++) work();
        CK(cudaEventRecord(end));
        CK(cudaEventSynchronize(end));
        float t;
        CK(cudaEventElapsedTime(&t, begin, end));
        if (r >= 3) times.push_back(t / together);
    }
    CK(cudaGetLastError());
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

static float *floats(size_t n)
{
    float *p;
    CK(cudaMalloc(&p, (n * sizeof(float) + 511) / 256 * 256));
    return p;
}

static __device__ Stream stream_at(uint32_t variable, long i, unsigned sweep)
{
    Sweep at;
    at.seed = 7;
    at.chain = 0;
    at.sweep = sweep;
    return stream(at, variable, (uint64_t)i);
}

#define OVER(i, n) for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < (n); i += (long)gridDim.x * blockDim.x)
#define RUN(kernel, ...) kernel<<<2048, 256>>>(__VA_ARGS__)

__global__ void fill(float *x, long n, float scale)
{
    OVER(i, n) {
        Stream g = stream_at(1, i, 0);
        x[i] = scale * (float)normal_standard(&g);
    }
}

__global__ void read_all(const float4 *x, long n, float *out)
{
    float sum = 0;
    const long step = (long)gridDim.x * blockDim.x;
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    for (; i + 3 * step < n; i += 4 * step) {
        const float4 a = __ldcs(x + i), b = __ldcs(x + i + step), c = __ldcs(x + i + 2 * step), d = __ldcs(x + i + 3 * step);
        sum += a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w + c.x + c.y + c.z + c.w + d.x + d.y + d.z + d.w;
    }
    for (; i < n; i += step) sum += x[i].x + x[i].w;
    if (sum == 1.2345f) *out = sum;
}

static double reading(const float *x, size_t n)
{
    float *out = floats(1);
    return median_ms([&] { RUN(read_all, (const float4 *)x, (long)(n / 4), out); });
}

// ---- the parts of a sweep ----

__global__ void latents(long n, const float *mean, float *z, unsigned sweep)
{
    OVER(i, n) {
        Stream g = stream_at(2, i, sweep);
        z[i] = normal_natural_truncated(&g, mean[i], -0.5f, i & 1 ? 0 : -INFINITY, i & 1 ? INFINITY : 0);
    }
}

__global__ void polya(long n, const float *mean, float *w, unsigned sweep)
{
    OVER(i, n) {
        Stream g = stream_at(3, i, sweep);
        w[i] = polya_gamma(&g, 1, mean[i]);
    }
}

__global__ void weigh(long n, long p, const float *X, const float *w, float *out)
{
    OVER(i, n * p) out[i] = X[i] * w[i / p];
}

__global__ void scales(long p, const float *beta, float *prior, unsigned sweep)     // two inverse gammas a coefficient
{
    OVER(j, p) {
        Stream g = stream_at(4, j, sweep);
        const double nu = inv_gamma_shape_scale(&g, 1, 1 + prior[j]);
        prior[j] = (float)(1 / inv_gamma_shape_scale(&g, 1, 1 / nu + 0.5 * beta[j] * beta[j]));
    }
}

__global__ void laplace_scales(long p, const float *beta, float *prior, unsigned sweep)
{
    OVER(j, p) {
        Stream g = stream_at(5, j, sweep);
        prior[j] = (float)inverse_gaussian_mean_shape(&g, 1 / (fabs((double)beta[j]) + 1e-3), 1);
    }
}

__global__ void precision(long p, const float *XtX, const float *prior, float *J)
{
    OVER(e, p * p) J[e] = XtX[e] + (e / p == e % p ? prior[e % p] : 0.0f);
}

__global__ void add_noise(long p, float *x, unsigned sweep)
{
    OVER(j, p) {
        Stream g = stream_at(6, j, sweep);
        x[j] += (float)normal_standard(&g);
    }
}

__global__ void residual(long n, const float *y, float *m)
{
    OVER(i, n) m[i] = y[i] - m[i];
}

__global__ void groups_of(long n, long groups, int *g)
{
    OVER(i, n) {
        Stream s = stream_at(8, i, 0);
        g[i] = (int)(random_bits(&s) % (uint64_t)groups);
    }
}

__global__ void add_to_groups(long n, const float *y, const int *g, float *sum, float *count)
{
    OVER(i, n) {
        atomicAdd(&sum[g[i]], y[i]);
        atomicAdd(&count[g[i]], 1.0f);
    }
}

__global__ void draw_groups(long groups, const float *sum, const float *count, float *u, unsigned sweep)
{
    OVER(k, groups) {
        Stream s = stream_at(9, k, sweep);
        u[k] = (float)normal_natural(&s, sum[k], -0.5 * (count[k] + 1));
    }
}

__global__ void group_residual(long n, const float *y, const int *g, const float *u, float *m)
{
    OVER(i, n) m[i] = y[i] - u[g[i]];
}

__global__ void from_uniforms(long n, const float *mean, float *u)
{
    OVER(i, n) {
        const float m = mean[i], low = i & 1 ? normcdff(-m) : 0, high = i & 1 ? 1 : normcdff(-m);
        u[i] = m + normcdfinvf(fminf(fmaxf(low + u[i] * (high - low), 1e-37f), 0.99999994f));
    }
}

// Matrices of row-major X[n, p] are p by n for cuBLAS.
struct Joint {
    long p;
    float *J, *work;
    int room, *info;
    void open(long size)
    {
        p = size;
        J = floats((size_t)(p * p));
        CK(cusolverDnSpotrf_bufferSize(solver, CUBLAS_FILL_MODE_LOWER, (int)p, J, (int)p, &room));
        work = floats((size_t)room);
        CK(cudaMalloc(&info, sizeof *info));
    }
    void factor(void) { CK(cusolverDnSpotrf(solver, CUBLAS_FILL_MODE_LOWER, (int)p, J, (int)p, work, room, info)); }
    void draw(float *x, unsigned sweep)                  // h in x; the draw there
    {
        CK(cublasStrsv(blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, (int)p, J, (int)p, x, 1));
        RUN(add_noise, p, x, sweep);
        CK(cublasStrsv(blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, (int)p, J, (int)p, x, 1));
    }
};

static double cholesky(long p)
{
    Joint j;
    j.open(p);
    float *XtX = floats((size_t)(p * p)), *prior = floats((size_t)p);
    CK(cudaMemset(XtX, 0, sizeof(float) * (size_t)(p * p)));
    std::vector<float> ones((size_t)p, 2.0f);
    CK(cudaMemcpy(prior, ones.data(), sizeof(float) * (size_t)p, cudaMemcpyHostToDevice));
    RUN(precision, p, XtX, prior, j.J);  // its own factor's time does not depend on the numbers; the diagonal stays positive
    return median_ms([&] { j.factor(); });
}

static void predictor(long n, long p, int chains, const float *X, const float *beta, float *m)
{
    if (chains == 1) CK(cublasSgemv(blas, CUBLAS_OP_T, (int)p, (int)n, &one, X, (int)p, beta, 1, &zero, m, 1));
    else CK(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)n, chains, (int)p, &one, X, (int)p, beta, (int)p, &zero, m, (int)n));
}

static void sums(long n, long p, int chains, const float *X, const float *z, float *h)
{
    if (chains == 1) CK(cublasSgemv(blas, CUBLAS_OP_N, (int)p, (int)n, &one, X, (int)p, z, 1, &zero, h, 1));
    else CK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, (int)p, chains, (int)n, &one, X, (int)p, z, (int)n, &zero, h, (int)p));
}

// A row of a table for each of n, a warp a row.
template <typename T> __global__ void gathered(long n, long p, long rows, const T *table, T *out)
{
    const long warps = (long)gridDim.x * blockDim.x / 32;
    for (long i = ((long)blockIdx.x * blockDim.x + threadIdx.x) / 32; i < n; i += warps) {
        const T *row = table + (long)((unsigned long long)i * 2654435761ull % (unsigned long long)rows) * p;
        T sum = 0;
        for (long j = threadIdx.x % 32; j < p; j += 32) sum += row[j];
        if (sum == (T)12345) *out = sum;
    }
}

// A number of a table for each of n, by its key.
__global__ void looked_up(long n, const int *key, const double *table, double *out)
{
    double sum = 0;
    OVER(i, n) sum += table[key[i]];
    if (sum == 12345) *out = sum;
}

template <typename T> static double gathering(long n, long p, long rows, const float *room)
{
    return median_ms([&] { gathered<T><<<2048 * 132 / 256, 256>>>(n, p, rows, (const T *)room, (T *)room); CK(cudaGetLastError()); });
}

// Multiply-adds of single precision in registers, eight chains a thread: what so many of them take.
__global__ void multiply_adds(long turns, float *out)
{
    float a[8], x = 1 + 1e-7f * threadIdx.x, y = 1e-9f * blockIdx.x;
    for (int k = 0; k < 8; k++) a[k] = 0.1f * k;
    for (long t = 0; t < turns; t++)
#pragma unroll
        for (int k = 0; k < 8; k++) a[k] = a[k] * x + y;
    float sum = 0;
    for (int k = 0; k < 8; k++) sum += a[k];
    if (sum == 12345) *out = sum;
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    const char *what = argv[1];
    const long n = atol(argv[2]), p = argc > 3 ? atol(argv[3]) : 1;
    const int chains = argc > 4 ? atoi(argv[4]) : 1;
    CK(cublasCreate(&blas));
    CK(cusolverDnCreate(&solver));
    unsigned sweep = 0;
    if (!strcmp(what, "normals")) {
        float *mean = floats((size_t)n), *z = floats((size_t)n);
        RUN(fill, mean, n, 1.0f);
        curandGenerator_t uniforms;
        CK(curandCreateGenerator(&uniforms, CURAND_RNG_PSEUDO_PHILOX4_32_10));
        printf("read %.4f\n", reading(mean, (size_t)n) + reading(z, (size_t)n));       // reading the means, writing the draws
        printf("own %.4f\n", median_ms([&] { RUN(latents, n, mean, z, sweep++); }));
        std::vector<float> some(1 << 20), means(1 << 20);
        CK(cudaMemcpy(some.data(), z, some.size() * sizeof(float), cudaMemcpyDeviceToHost));
        CK(cudaMemcpy(means.data(), mean, means.size() * sizeof(float), cudaMemcpyDeviceToHost));
        double gap = 0, variance = 0;                    // mean and variance of each draw are known
        for (size_t i = 0; i < some.size(); i++) {
            const double a = i & 1 ? -means[i] : means[i], r = exp(-0.5 * a * a) / (sqrt(2 * GM_PI) * 0.5 * erfc(a / sqrt(2.0)));
            gap += (i & 1 ? 1 : -1) * (some[i] - means[i]) - r;
            variance += 1 + a * r - r * r;
        }
        printf("z %.2f\n", fabs(gap) / sqrt(variance));
        printf("peer %.4f\n", median_ms([&] { CK(curandGenerateUniform(uniforms, z, (size_t)n)); RUN(from_uniforms, n, mean, z); }));
        return 0;
    }
    if (!strcmp(what, "polya")) {                        // tilts are normal, sd 2, and lie in memory; draws are written there
        float *tilt = floats((size_t)n), *w = floats((size_t)n);
        RUN(fill, tilt, n, 2.0f);
        printf("read %.4f\n", reading(tilt, (size_t)n) + reading(w, (size_t)n));
        printf("own %.4f\n", median_ms([&] { RUN(polya, n, tilt, w, sweep++); }));
        std::vector<float> some(1 << 20), tilts(1 << 20);
        CK(cudaMemcpy(some.data(), w, some.size() * sizeof(float), cudaMemcpyDeviceToHost));
        CK(cudaMemcpy(tilts.data(), tilt, tilts.size() * sizeof(float), cudaMemcpyDeviceToHost));
        double gap = 0, variance = 0;                    // mean and variance of each draw are known
        for (size_t i = 0; i < some.size(); i++) {
            const double c = fabs((double)tilts[i]) + 1e-3;
            gap += some[i] - tanh(0.5 * c) / (2 * c);
            variance += (sinh(c) - c) / (4 * c * c * c * cosh(0.5 * c) * cosh(0.5 * c));
        }
        printf("z %.2f\n", fabs(gap) / sqrt(variance));
        return 0;
    }
    if (!strcmp(what, "intercepts")) {                   // a response and a group a row
        float *y = floats(2 * (size_t)n), *m = floats((size_t)n), *sum = floats((size_t)p), *count = floats((size_t)p),
              *u = floats((size_t)p), *sse = floats(1);
        int *group;
        CK(cudaMalloc(&group, sizeof *group * (size_t)n));
        RUN(fill, y, 2 * n, 1.0f);
        RUN(groups_of, n, p, group);
        printf("read %.4f\n", reading(y, 2 * (size_t)n));
        CK(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
        printf("peer %.4f\n", median_ms([&] {
            CK(cudaMemsetAsync(sum, 0, sizeof *sum * (size_t)p));
            CK(cudaMemsetAsync(count, 0, sizeof *count * (size_t)p));
            RUN(add_to_groups, n, y, group, sum, count);
            RUN(draw_groups, p, sum, count, u, sweep++);
            RUN(group_residual, n, y, group, u, m);
            CK(cublasSdot(blas, (int)n, m, 1, m, 1, sse));
        }));
        return 0;
    }
    if (!strcmp(what, "topics") || !strcmp(what, "factors")) {        // what each row reads of tables, once
        float *room = floats((size_t)(2 * 10000 * p));
        RUN(fill, room, 2 * 10000 * p, 1.0f);
        if (what[0] == 't') printf("read %.4f\n", chains * 2 * gathering<float>(n, p, 10000, room));
        else printf("read %.4f\n", chains * (gathering<double>(n, p, 6000, room) + gathering<double>(n, p, 4000, room)));
        return 0;
    }
    if (!strcmp(what, "crossed")) {  // each row looks up the other effect for the sums of each, and is read once more for the residual
        float *y = floats(5 * (size_t)n), *room = floats(2 * (size_t)p), *out = floats(2);
        int *key;
        CK(cudaMalloc(&key, sizeof *key * (size_t)n));
        RUN(fill, y, 5 * n, 1.0f);
        RUN(fill, room, 2 * p, 1.0f);
        double ms = reading(y, 5 * (size_t)n);
        for (int k = 0; k < 2; k++) {
            RUN(groups_of, n, k ? p / 10 : p, key);
            ms += median_ms([&] { RUN(looked_up, n, key, (const double *)room, (double *)out); });
        }
        printf("read %.4f\n", chains * ms);
        return 0;
    }
    if (!strcmp(what, "walk")) {  // p numbers of each place (its row of the band, linear term and draw), each read and written as a double
        float *x = floats(4 * (size_t)(n * p));
        RUN(fill, x, 4 * n * p, 1.0f);
        printf("read %.4f\n", chains * reading(x, 4 * (size_t)(n * p)));
        return 0;
    }
    if (!strcmp(what, "hmm")) {                          // responses, and a double for each time and value, written and read
        const size_t count = (size_t)(n * (1 + 4 * p));
        float *x = floats(count);
        RUN(fill, x, (long)count, 1.0f);
        printf("read %.4f\n", chains * reading(x, count));
        return 0;
    }
    if (!strcmp(what, "mixture")) {  // of K normals: each row times the triangles of all components; by cuBLAS the squares, without what is
                                     // made of the products
        const long K = 256, chunk = 1 << 16, threads = 2048L * 132, turns = n * K * (p * (p + 1) / 2 + p) / 8 / threads;
        float *X = floats((size_t)(n * p)), *roots = floats((size_t)(p * p * K)), *z = floats((size_t)(chunk * p * K));
        RUN(fill, X, n * p, 1.0f);
        RUN(fill, roots, p * p * K, 1.0f);
        printf("read %.4f\n", reading(X, (size_t)(n * p)) + median_ms([&] {
                                  multiply_adds<<<2048 * 132 / 256, 256>>>(turns, z);
                                  CK(cudaGetLastError());
                              }));
        printf("peer %.4f\n", median_ms([&] {
            for (long at = 0; at < n; at += chunk)
                CK(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)(p * K), (int)(n - at < chunk ? n - at : chunk), (int)p, &one, roots,
                               (int)p, X + at * p, (int)p, &zero, z, (int)(p * K)));
        }));
        return 0;
    }
    float *X = floats((size_t)(n * p)), *beta = floats((size_t)(p * chains)), *m = floats((size_t)(n * chains)),
          *z = floats((size_t)(n * chains)), *prior = floats((size_t)p);
    RUN(fill, X, n * p, 1.0f);
    RUN(fill, beta, p * chains, 0.01f);
    RUN(fill, z, n * chains, 1.0f);
    std::vector<float> ones((size_t)p, 1.0f);
    CK(cudaMemcpy(prior, ones.data(), sizeof(float) * (size_t)p, cudaMemcpyHostToDevice));
    const int columns = !strcmp(what, "multinomial") ? 8 : 1;
    printf("read %.4f\n", columns * reading(X, (size_t)(n * p)));
    printf("cholesky %.4f\n", columns * cholesky(n < p ? n : p));
    Joint joint;
    joint.open(p);
    float *XtX = floats((size_t)(p * p));
    CK(cublasSsyrk(blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, (int)p, (int)n, &one, X, (int)p, &zero, XtX, (int)p));
    RUN(precision, p, XtX, prior, joint.J);
    joint.factor();
    const bool horseshoe = !strcmp(what, "horseshoe");
    const int together = n * p < 100000000 ? 5 : 1;
    if (horseshoe || !strcmp(what, "probit")) {
        printf("peer %.4f\n", median_ms([&] {
            predictor(n, p, chains, X, beta, m);
            RUN(latents, n * chains, m, z, sweep);
            sums(n, p, chains, X, z, beta);
            for (int c = 0; c < chains; c++) {
                if (horseshoe) {
                    RUN(scales, p, beta + c * p, prior, sweep);
                    RUN(precision, p, XtX, prior, joint.J);
                    joint.factor();
                }
                joint.draw(beta + c * p, sweep);
            }
            sweep++;
        }, together));
    } else if (!strcmp(what, "lasso")) {
        float *sse;
        CK(cudaMalloc(&sse, sizeof *sse));
        CK(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST));
        float *h = floats((size_t)p), *y = floats((size_t)n);
        RUN(fill, y, n, 1.0f);
        sums(n, p, 1, X, y, h);
        printf("peer %.4f\n", median_ms([&] {
            predictor(n, p, 1, X, beta, m);
            RUN(residual, n, y, m);
            CK(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
            CK(cublasSdot(blas, (int)n, m, 1, m, 1, sse));
            CK(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST));
            RUN(laplace_scales, p, beta, prior, sweep);
            RUN(precision, p, XtX, prior, joint.J);
            joint.factor();
            CK(cublasScopy(blas, (int)p, h, 1, beta, 1));
            joint.draw(beta, sweep++);
        }, together));
    } else if (!strcmp(what, "logistic") || columns > 1) {
        float *weighted = floats((size_t)(n * p)), *h = floats((size_t)p);
        sums(n, p, 1, X, z, h);
        printf("peer %.4f\n", columns * median_ms([&] {
            predictor(n, p, 1, X, beta, m);
            RUN(polya, n, m, z, sweep);
            RUN(weigh, n, p, X, z, weighted);
            CK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, (int)p, (int)p, (int)n, &one, X, (int)p, weighted, (int)p, &zero, XtX, (int)p));
            RUN(precision, p, XtX, prior, joint.J);
            joint.factor();
            CK(cublasScopy(blas, (int)p, h, 1, beta, 1));
            joint.draw(beta, sweep++);
        }, together));
    } else {
        return 2;
    }
    return 0;
}
