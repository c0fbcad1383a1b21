// joint_draw_bench.cu -- how long a joint normal draw takes on a GPU: gm_dense_tiles, beside one block alone and beside cuSOLVER and
// cuBLAS.
//
//   nvcc -O3 -arch=native -std=c++17 -DGM_SOLVE_PRECISION=double -o joint_draw_bench joint_draw_bench.cu -lcusolver -lcublas
//   ./joint_draw_bench [n...]
//
// Medians of 15 replays of a graph by events, with fresh matrices each time. The libraries: potrf and two trsv for each chain, chains on
// streams of their own; no noise and no scale move.
#include "../../gpu/joint.h"
#include <algorithm>
#include <cublas_v2.h>
#include <cusolverDn.h>
#include <functional>

static cudaStream_t stream_of_all;

__global__ void wait_some(long nanoseconds)              // until the host has launched what comes after
{
    for (long k = 0; k < nanoseconds; k += 1000) __nanosleep(1000);
}

static double median_us(Joint *b, const std::function<void(cudaStream_t)> &work)
{
    cudaGraph_t graph;
    cudaGraphExec_t run;
    cudaEvent_t begin, end;
    std::vector<float> times;
    joint_restore(b, stream_of_all);
    work(stream_of_all);
    CK(cudaStreamSynchronize(stream_of_all));
    CK(cudaStreamBeginCapture(stream_of_all, cudaStreamCaptureModeThreadLocal));
    work(stream_of_all);
    CK(cudaStreamEndCapture(stream_of_all, &graph));
    CK(cudaGraphInstantiate(&run, graph, 0));
    CK(cudaEventCreate(&begin));
    CK(cudaEventCreate(&end));
    for (int r = 0; r < 18; r++) {
        wait_some<<<1, 1, 0, stream_of_all>>>(60000);
        joint_restore(b, stream_of_all);
        CK(cudaEventRecord(begin, stream_of_all));
        CK(cudaGraphLaunch(run, stream_of_all));
        CK(cudaEventRecord(end, stream_of_all));
        CK(cudaEventSynchronize(end));
        float t;
        CK(cudaEventElapsedTime(&t, begin, end));
        if (r >= 3) times.push_back(t);
    }
    CK(cudaGraphExecDestroy(run));
    CK(cudaGraphDestroy(graph));
    std::sort(times.begin(), times.end());
    return 1e3 * times[times.size() / 2];
}

// ---- the libraries ----

static cusolverDnHandle_t solver[4];
static cublasHandle_t blas[4];
static cudaStream_t side[4];
static cudaEvent_t fork_event, join_event[4];
static solve *work_space[4];
static int *info;

static cusolverStatus_t potrf_size(int k, int n, double *A, int *size)
{
    return cusolverDnDpotrf_bufferSize(solver[k], CUBLAS_FILL_MODE_UPPER, n, A, n, size);
}
static cusolverStatus_t potrf_size(int k, int n, float *A, int *size)
{
    return cusolverDnSpotrf_bufferSize(solver[k], CUBLAS_FILL_MODE_UPPER, n, A, n, size);
}
static void potrf(int k, int n, double *A, int size)
{
    cusolverDnDpotrf(solver[k], CUBLAS_FILL_MODE_UPPER, n, A, n, (double *)work_space[k], size, info + k);
}
static void potrf(int k, int n, float *A, int size)
{
    cusolverDnSpotrf(solver[k], CUBLAS_FILL_MODE_UPPER, n, A, n, (float *)work_space[k], size, info + k);
}
static void trsv(int k, cublasOperation_t op, int n, const double *A, double *x)
{
    cublasDtrsv(blas[k], CUBLAS_FILL_MODE_UPPER, op, CUBLAS_DIAG_NON_UNIT, n, A, n, x, 1);
}
static void trsv(int k, cublasOperation_t op, int n, const float *A, float *x)
{
    cublasStrsv(blas[k], CUBLAS_FILL_MODE_UPPER, op, CUBLAS_DIAG_NON_UNIT, n, A, n, x, 1);
}

static void by_libraries(Joint *b, cudaStream_t stream)
{
    CK(cudaEventRecord(fork_event, stream));
    for (int c = 0; c < b->chains; c++) {
        int size = 0;
        CK(cudaStreamWaitEvent(side[c], fork_event, 0));
        potrf_size(c, (int)b->n, b->state[c].J, &size);
        if (!work_space[c]) work_space[c] = on_device<solve>((size_t)64 << 20);
        potrf(c, (int)b->n, b->state[c].J, size);
        trsv(c, CUBLAS_OP_T, (int)b->n, b->state[c].J, b->state[c].h);
        trsv(c, CUBLAS_OP_N, (int)b->n, b->state[c].J, b->state[c].h);
        CK(cudaEventRecord(join_event[c], side[c]));
        CK(cudaStreamWaitEvent(stream, join_event[c], 0));
    }
}

int main(int argc, char **argv)
{
    CK(cudaStreamCreateWithFlags(&stream_of_all, cudaStreamNonBlocking));
    CK(cudaEventCreateWithFlags(&fork_event, cudaEventDisableTiming));
    info = on_device<int>(4);
    for (int k = 0; k < 4; k++) {
        CK(cudaStreamCreateWithFlags(&side[k], cudaStreamNonBlocking));
        CK(cudaEventCreateWithFlags(&join_event[k], cudaEventDisableTiming));
        cusolverDnCreate(&solver[k]);
        cublasCreate(&blas[k]);
        cusolverDnSetStream(solver[k], side[k]);
        cublasSetStream(blas[k], side[k]);
        cublasSetWorkspace(blas[k], on_device<char>(32 << 20), 32 << 20);
    }
    printf("joint normal draws in %s precision, microseconds\n%6s %7s %10s %10s %10s\n", sizeof(solve) == 8 ? "double" : "single", "n",
           "chains", "tiles", "one block", "libraries");
    static const long sizes[] = { 4, 16, 32, 64, 96, 128, 141, 200, 425, 1000, 1500, 2000, 3000, 4096, 6000 };
    std::vector<long> chosen(sizes, sizes + sizeof sizes / sizeof *sizes);
    if (argc > 1) chosen.clear();
    for (int a = 1; a < argc; a++) chosen.push_back(atol(argv[a]));
    for (long n : chosen)
        for (int chains = 1; chains <= 4; chains += 3) {
            Joint b = joint_new(n, chains, false, 3);
            const double tiles = median_us(&b, [&](cudaStream_t s) { joint_launch(&b, s); });
            const double small = n <= 128 ? median_us(&b, [&](cudaStream_t s) { joint_launch_small(&b, s); }) : NAN;
            const double libraries = n >= 64 ? median_us(&b, [&](cudaStream_t s) { by_libraries(&b, s); }) : NAN;
            printf("%6ld %7d %10.1f %10.1f %10.1f\n", n, chains, tiles, small, libraries);
            fflush(stdout);
            joint_free(&b);
        }
    return 0;
}
