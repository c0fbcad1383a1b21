// Products of rows (runtime/device/products_pass.h) beside reading X: softmax of 60000 x 785 x 10 by default, medians of 25 in
// milliseconds.
//
//     nvcc -O3 -std=c++17 -arch=native -o products_bench products_bench.cu && ./products_bench [N p K]
#include "../../gpu/products.h"
#include <algorithm>

template <class Run> static double median(Run run)
{
    std::vector<float> ms;
    cudaEvent_t from, to;
    CK(cudaEventCreate(&from));
    CK(cudaEventCreate(&to));
    for (int k = 0; k < 28; k++) {
        float t;
        CK(cudaEventRecord(from));
        run();
        CK(cudaEventRecord(to));
        CK(cudaEventSynchronize(to));
        CK(cudaEventElapsedTime(&t, from, to));
        if (k >= 3) ms.push_back(t);
    }
    std::sort(ms.begin(), ms.end());
    return ms[ms.size() / 2];
}

static __global__ void read_all(const float4 *x, long n, float *to)
{
    float sum = 0;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) {
        const float4 v = x[i];
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == 12345.678f) *to = sum;
}

static __global__ void fill(float *x, long n, float scale)
{
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x)
        x[i] = scale * ((float)((unsigned)(i * 2654435761ul >> 7) % 65536u) / 32768 - 1);
}
static __global__ void fill(double *x, long n, double scale)
{
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x)
        x[i] = scale * ((double)((unsigned)(i * 2654435761ul >> 5) % 65536u) / 32768 - 1);
}
static __global__ void classes(int *y, long n, long K)
{
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x)
        y[i] = 1 + (int)((i * 2654435761ul >> 9) % (unsigned long)K);
}

template <class T> static T *have(long n)
{
    T *p;
    CK(cudaMalloc(&p, (size_t)n * sizeof(T) + 256));
    CK(cudaMemset(p, 0, (size_t)n * sizeof(T)));
    return p;
}

int main(int argc, char **argv)
{
    const long n = argc > 3 ? atol(argv[1]) : 60000, p = argc > 3 ? atol(argv[2]) : 785, K = argc > 3 ? atol(argv[3]) : 10;
    Data d = { n, p, K, have<float>(n * p), have<int>(n) };
    fill<<<1024, 256>>>(d.X, n * p, 1.0f);
    classes<<<1024, 256>>>(d.y, n, K);
    float *none = have<float>(1);
    printf("X[%ld, %ld], %ld outputs: reading %.4f ms\n", n, p, K,
           median([&] { read_all<<<132 * 8, 512>>>((const float4 *)d.X, n * p / 4, none); }));
    for (int chains : { 1, 2, 3, 4, 8, 16 }) {
        std::vector<State> states((size_t)chains);
        for (State &s : states) {
            s = {have<double>(p * K), NULL, have<double>(p * K), NULL, have<double>(K), have<double>(2),
                 have<float>(n * K),  NULL, have<float>(n * K),  NULL};
            fill<<<64, 256>>>(s.B, p * K, 0.1);
        }
        State *on = have<State>(chains);
        CK(cudaMemcpy(on, states.data(), sizeof(State) * (size_t)chains, cudaMemcpyHostToDevice));
        std::vector<int32_t> all(1, chains);
        for (int c = 0; c < chains; c++) all.push_back(c);
        int32_t *going = have<int32_t>(chains + 1);
        CK(cudaMemcpy(going, all.data(), all.size() * sizeof(int32_t), cudaMemcpyHostToDevice));
        const GmPlace where = { 7, 11, 0, chains, going };
        GmPlace *place = have<GmPlace>(1);
        CK(cudaMemcpy(place, &where, sizeof where, cudaMemcpyHostToDevice));
        ProductsPlan plan;
        if (!products_plan(n, p, K, chains, 2, PRODUCTS_SHARED, &plan)) {
            printf("%d chains: does not fit\n", chains);
            continue;
        }
        products_prepare(&plan, d, false);
        const double whole = median([&] { products_launch(&plan, d, on, place, 0); });
        ProductsPass pass = plan.pass;
        void *arguments[] = { &d, &on, &place, &pass }, *others[] = { &on, &place, &pass };
        const double rows = median([&] {
            CK(cudaLaunchKernel(products_kernel(plan.kernel), dim3((unsigned)(pass.chunks * pass.batches)), dim3(PRODUCTS_THREADS),
                                arguments, (size_t)plan.shared, 0));
        });
        const double sums =
            median([&] { CK(cudaLaunchKernel((const void *)gm_products_sums, dim3((unsigned)plan.sum_blocks), dim3(256), others, 0, 0)); });
        printf("%2d chains: %.4f ms; rows %.4f (%s, %ld chunks x %d, tile %d), sums %.4f\n", chains, whole, rows, plan.kernel, pass.chunks,
               pass.batches, 16 * pass.groups, sums);
        products_free(&plan);
    }
    return 0;
}
