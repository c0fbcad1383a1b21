// row_pass_bench.cu -- how long a probit row pass takes on a GPU (dots, truncated normals, X'z), beside reading X alone; and the draws by
// themselves.
//
//   nvcc -O3 -arch=native -std=c++17 -o row_pass_bench row_pass_bench.cu && ./row_pass_bench [tune]
//
// Medians of 25 by events. `tune` tries other numbers of stages and chunks than row_plan's.
#include "../../gpu/rows.h"
#include <algorithm>
#include <functional>
#include <vector>

static double median_ms(const std::function<void(void)> &work)
{
    std::vector<float> times;
    cudaEvent_t begin, end;
    CK(cudaEventCreate(&begin));
    CK(cudaEventCreate(&end));
    for (int r = 0; r < 28; r++) {
        CK(cudaEventRecord(begin));
        work();
        CK(cudaEventRecord(end));
        CK(cudaEventSynchronize(end));
        float t;
        CK(cudaEventElapsedTime(&t, begin, end));
        if (r >= 3) times.push_back(t);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

__global__ void fill(real *x, long n, double scale)
{
    Sweep at;
    at.seed = 3;
    at.chain = 0;
    at.sweep = 0;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) {
        Stream g = stream(at, 1, i);
        x[i] = (real)(scale * (2 * (double)(random_bits(&g) >> 11) * 1.11022302462515654e-16 - 1));
    }
}

__global__ void fill_bits(unsigned char *y, long n)
{
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x)
        y[i] = (unsigned char)((i * 2654435761u >> 13) & 1);
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

__global__ void __launch_bounds__(256) draw_all(long n, const real *mean, real *z, GmPlace *place)
{
    const Sweep at = gm_sweep_place(place, 0);
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) {
        Stream g = stream(at, VAR_z, i);
        z[i] = normal_natural_truncated(&g, mean[i], (real)-0.5, (real)0, (real)INFINITY);
    }
}

static long total = 0;
static real *X;
static double *partial;
static float *sink;

static void one(long n, long p, int chains, int tune, const char *what)
{
    Data d;
    d.N = n;
    d.p = p;
    d.X = X;
    CK(cudaMalloc(&d.y, (size_t)n));
    fill_bits<<<1024, 256>>>(d.y, n);
    std::vector<State> states((size_t)chains);
    for (int c = 0; c < chains; c++) {
        std::vector<double> beta((size_t)p);
        for (long j = 0; j < p; j++) beta[j] = sin(j * 1.7 + c) / sqrt((double)p);
        CK(cudaMalloc(&states[c].alpha, sizeof(double)));
        CK(cudaMemset(states[c].alpha, 0, sizeof(double)));
        CK(cudaMalloc(&states[c].beta, (size_t)p * sizeof(double)));
        CK(cudaMemcpy(states[c].beta, beta.data(), (size_t)p * sizeof(double), cudaMemcpyHostToDevice));
        CK(cudaMalloc(&states[c].shift, (size_t)p * sizeof(double)));
        CK(cudaMalloc(&states[c].squares, sizeof(double)));
        CK(cudaMalloc(&states[c].z, (size_t)n * sizeof(real)));
    }
    State *on;
    CK(cudaMalloc(&on, sizeof(State) * (size_t)chains));
    CK(cudaMemcpy(on, states.data(), sizeof(State) * (size_t)chains, cudaMemcpyHostToDevice));
    std::vector<int32_t> all(1, chains);
    for (int c = 0; c < chains; c++) all.push_back(c);
    int32_t *going;
    CK(cudaMalloc(&going, all.size() * sizeof(int32_t)));
    CK(cudaMemcpy(going, all.data(), all.size() * sizeof(int32_t), cudaMemcpyHostToDevice));
    const GmPlace where = { 7, 11, 0, chains, going };
    GmPlace *place;
    CK(cudaMalloc(&place, sizeof where));
    CK(cudaMemcpy(place, &where, sizeof where, cudaMemcpyHostToDevice));

    const double bytes = (double)n * p * sizeof(real);
    const double floor = median_ms([&] { read_all<<<132 * 8, 512>>>((const float4 *)X, (long)(bytes / 16), sink); });
    const double both = median_ms([&] { launch_rows(d, on, place, chains, 4, 3, partial); });
    const double dots = median_ms([&] { launch_rows(d, on, place, chains, 4, 1, partial); });
    const RowPlan plan = row_plan(n, p, chains, (int)sizeof(real), 227 * 1024);
    printf("%9ld %6ld %d  %-15s %6ld %d %9.4f %8.4f %7.2f %8.2f %10.4f  %s\n", n, p, chains, plan.kernel, plan.pass.chunks,
           plan.pass.stages, both, floor, bytes / both / 1e9, both / floor, dots, what);
    if (tune)
        for (int stages = plan.pass.stages ? 2 : 0; stages <= (plan.pass.stages ? 5 : 0); stages++)
            for (long rows = plan.pass.rows / 2 / 8 * 8; rows <= 4 * plan.pass.rows; rows *= 2) {
                RowPlan other = plan;
                if (rows < 8) continue;
                if (stages) {
                    other.shared += (stages - plan.pass.stages) * plan.stage;
                    if (other.shared > 227 * 1024) continue;
                }
                other.pass.stages = stages;
                other.pass.rows = rows;
                other.pass.chunks = (n + rows - 1) / rows;
                other.pass.X = X;
                other.pass.beta = offsetof(State, beta);
                other.pass.out = offsetof(State, shift);
                other.pass.partial = partial;
                const void *kernel = row_kernel(other.kernel);
                void *arguments[] = { &d, &on, &place, &other.pass };
                if (other.shared > 48 * 1024) CK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, other.shared));
                const double pass = median_ms([&] {
                    CK(cudaLaunchKernel(kernel, dim3((unsigned)other.pass.chunks), dim3((unsigned)other.threads), arguments,
                                        (size_t)other.shared, 0));
                });
                const double sums = median_ms([&] {
                    CK(cudaLaunchKernel((const void *)gm_row_pass_sums, dim3((unsigned)other.sum_blocks), dim3(ROW_SUM_THREADS), arguments,
                                        0, 0));
                });
                printf("      stages %d rows %ld chunks %ld shared %d: %.4f + %.4f\n", stages, rows, other.pass.chunks, other.shared, pass,
                       sums);
            }
    for (int c = 0; c < chains; c++) {
        cudaFree(states[c].alpha);
        cudaFree(states[c].beta);
        cudaFree(states[c].shift);
        cudaFree(states[c].squares);
        cudaFree(states[c].z);
    }
    cudaFree(on);
    cudaFree(place);
    cudaFree(d.y);
}

int main(int argc, char **argv)
{
    const int tune = argc > 1 && !strcmp(argv[1], "tune");
    total = 1024L * 1000000;
    CK(cudaMalloc(&X, (size_t)total * sizeof(real)));
    CK(cudaMalloc(&partial, (size_t)1 << 30));
    CK(cudaMalloc(&sink, 4));
    fill<<<132 * 16, 256>>>(X, total, 1.7);
    CK(cudaDeviceSynchronize());
    printf("precision: %d bytes\n        n      p c  kernel          chunks st   pass ms  read ms    TB/s    ratio  dots alone\n",
           (int)sizeof(real), 227 * 1024);
    one(1000000, 1000, 1, tune, "target 1.05");
    one(1000000, 1000, 2, 0, "");
    one(1000000, 1000, 4, tune, "target 1.25");
    one(1000000, 1023, 1, 0, "");
    one(1000000, 1023, 4, 0, "");
    one(1295848, 141, 1, tune, "target 0.25");
    one(1295848, 141, 2, 0, "");
    one(1295848, 141, 4, tune, "");
    one(10000000, 8, 1, tune, "target 0.15");
    one(10000000, 8, 4, tune, "");
    one(10000000, 7, 1, 0, "");
    one(10000000, 16, 1, tune, "");
    one(10000000, 16, 4, 0, "");
    one(10000, 1000, 1, tune, "target 0.03");
    one(10000, 1000, 4, 0, "");
    one(100000, 1000, 1, 0, "");
    one(10000, 100, 1, 0, "");
    one(10000000, 24, 1, tune, "");
    one(7000000, 64, 1, 0, "");
    one(7000000, 128, 1, 0, "");
    one(7000000, 128, 4, 0, "");
    one(506450, 56, 4, 0, "");
    one(4000000, 250, 1, tune, "");
    one(2000000, 400, 1, tune, "");
    one(2000000, 512, 4, 0, "");
    one(300000, 3000, 1, tune, "");
    one(300000, 3000, 4, 0, "");
    one(240000, 4096, 4, 0, "");
    one(100000, 10000, 1, tune, "");
    one(60000, 16384, 1, 0, "");
    one(50000, 20000, 1, 0, "any width");

    const long n = 100000000;
    real *z;
    GmPlace *place;
    const GmPlace where = { 7, 11, 0, 1, NULL };
    CK(cudaMalloc(&z, (size_t)n * sizeof(real)));
    CK(cudaMalloc(&place, sizeof where));
    CK(cudaMemcpy(place, &where, sizeof where, cudaMemcpyHostToDevice));
    static const double scales[] = { 0.5, 1.7, 3.5, 6 };
    for (double scale : scales) {
        fill<<<132 * 16, 256>>>(X, n, scale);
        const double t = median_ms([&] { draw_all<<<132 * 32, 256>>>(n, X, z, place); });
        printf("1e8 truncated normals, means uniform on +-%g: %.3f ms%s\n", scale, t, scale == 1.7 ? " (target 0.8)" : "");
    }
    CK(cudaDeviceSynchronize());
    return 0;
}
