// sparse_peer.cu -- what cuDSS takes to factor and solve the sparse precisions of docs/performance.md, beside whose joint draws it is a
// peer.
//
//   nvcc -O3 -std=c++17 -arch=native -I INCLUDE -o sparse_peer tests/bench/gpu/sparse_peer.cu -L LIB -lcudss && ./sparse_peer
//
// INCLUDE and LIB: folders of the wheel nvidia-cudss-cu13 (pip install). A line for each precision and number of chains: entries of the
// lower triangle and of the factor, milliseconds of the analysis (once), of a factorisation with new numbers and of a forward and a
// backward solve: medians of 15 by events, with the launches. A draw needs these, its noise and its sums besides. Chains are one uniform
// batch. The residual of each solution is checked.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <cudss.h>
#include <functional>
#include <map>
#include <random>
#include <vector>

#define CK(call)                                             \
    do {                                                     \
        cudaError_t e_ = (call);                             \
        if (e_ != cudaSuccess) {                             \
            fprintf(stderr, "%s\n", cudaGetErrorString(e_)); \
            exit(1);                                         \
        }                                                    \
    } while (0)
#define CKD(call) do { int e_ = (call); if (e_) { fprintf(stderr, "cuDSS: status %d, line %d\n", e_, __LINE__); exit(1); } } while (0)

typedef std::vector<std::map<int, double>> Lower;       // by row: column <= row, value

static void add(Lower &a, int i, int j, double x) { a[std::max(i, j)][std::min(i, j)] += x; }

// An intrinsic field over a grid of side x side nodes and its mean (the last element), seen with unit noise: tests/bench/field.gm.
static Lower field(int side)
{
    int n = side * side;
    Lower a(n + 1);
    for (int r = 0; r < side; r++)
        for (int c = 0; c < side; c++)
            for (int down = 0; down < 2; down++) {
                int one = r * side + c, other = down ? one + side : one + 1;
                if (down ? r + 1 == side : c + 1 == side) continue;
                add(a, one, one, 1);
                add(a, other, other, 1);
                add(a, one, other, -1);
            }
    add(a, 0, 0, 1);
    for (int i = 0; i < n; i++) {
        add(a, i, i, 1);
        add(a, n, i, 1);
    }
    add(a, n, n, n + 0.01);
    return a;
}

// Two crossed effects of I and J levels and their mean, of rows drawn at random: tests/bench/crossed.gm.
static Lower crossed(int I, int J, int rows)
{
    std::mt19937 random(1);
    Lower a(I + J + 1);
    for (int k = 0; k < rows; k++) {
        int where[3] = {(int)(random() % I), I + (int)(random() % J), I + J};
        for (int p = 0; p < 3; p++)
            for (int q = 0; q <= p; q++) add(a, where[p], where[q], 1);
    }
    for (int i = 0; i <= I + J; i++) add(a, i, i, i < I + J ? 1 : 0.01);
    return a;
}

static double median_ms(cudaStream_t stream, const std::function<void()> &work)
{
    cudaEvent_t begin, end;
    std::vector<float> times;
    CK(cudaEventCreate(&begin));
    CK(cudaEventCreate(&end));
    for (int r = 0; r < 18; r++) {
        float t;
        CK(cudaEventRecord(begin, stream));
        work();
        CK(cudaEventRecord(end, stream));
        CK(cudaEventSynchronize(end));
        CK(cudaEventElapsedTime(&t, begin, end));
        if (r >= 3) times.push_back(t);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

template <class T> static T *on_device(const std::vector<T> &x)
{
    T *p;
    CK(cudaMalloc(&p, x.size() * sizeof(T)));
    CK(cudaMemcpy(p, x.data(), x.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

static void measure(const char *name, const Lower &a, int chains)
{
    int n = (int)a.size();
    std::vector<int> first(1, 0), column;
    std::vector<double> value, right(n * (size_t)chains), x(right.size());
    for (auto &row : a) {
        for (auto &e : row) {
            column.push_back(e.first);
            value.push_back(e.second);
        }
        first.push_back((int)column.size());
    }
    size_t entries = column.size();
    for (int c = 1; c < chains; c++)
        for (size_t k = 0; k < entries; k++) value.push_back(value[k]);
    for (size_t k = 0; k < right.size(); k++) right[k] = std::sin(0.7 * k);

    int *first_d = on_device(first), *column_d = on_device(column);
    double *value_d = on_device(value), *right_d = on_device(right), *x_d = on_device(x);
    cudaStream_t stream;
    cudssHandle_t handle;
    cudssConfig_t config;
    cudssData_t data;
    cudssMatrix_t A, X, B;
    int none = 0;
    CK(cudaStreamCreate(&stream));
    CKD(cudssCreate(&handle));
    CKD(cudssSetStream(handle, stream));
    CKD(cudssConfigCreate(&config));
    CKD(cudssConfigSet(config, CUDSS_CONFIG_IR_N_STEPS, &none, sizeof none));
    if (chains > 1) CKD(cudssConfigSet(config, CUDSS_CONFIG_UBATCH_SIZE, &chains, sizeof chains));
    CKD(cudssDataCreate(handle, &data));
    CKD(cudssMatrixCreateCsr(&A, n, n, (int64_t)entries, first_d, nullptr, column_d, value_d, CUDA_R_32I, CUDA_R_64F, CUDSS_MTYPE_SPD,
                             CUDSS_MVIEW_LOWER, CUDSS_BASE_ZERO));
    CKD(cudssMatrixCreateDn(&X, n, 1, n, x_d, CUDA_R_64F, CUDSS_LAYOUT_COL_MAJOR));
    CKD(cudssMatrixCreateDn(&B, n, 1, n, right_d, CUDA_R_64F, CUDSS_LAYOUT_COL_MAJOR));

    cudaEvent_t begin, end;
    float analysis;
    CK(cudaEventCreate(&begin));
    CK(cudaEventCreate(&end));
    CK(cudaEventRecord(begin, stream));
    CKD(cudssExecute(handle, CUDSS_PHASE_ANALYSIS, config, data, A, X, B));
    CK(cudaEventRecord(end, stream));
    CK(cudaEventSynchronize(end));
    CK(cudaEventElapsedTime(&analysis, begin, end));
    CKD(cudssExecute(handle, CUDSS_PHASE_FACTORIZATION, config, data, A, X, B));
    double factor = median_ms(stream, [&] { CKD(cudssExecute(handle, CUDSS_PHASE_REFACTORIZATION, config, data, A, X, B)); });
    double solve = median_ms(stream, [&] { CKD(cudssExecute(handle, CUDSS_PHASE_SOLVE, config, data, A, X, B)); });
    double both = median_ms(stream, [&] {
        CKD(cudssExecute(handle, CUDSS_PHASE_REFACTORIZATION, config, data, A, X, B));
        CKD(cudssExecute(handle, CUDSS_PHASE_SOLVE, config, data, A, X, B));
    });

    CK(cudaMemcpy(x.data(), x_d, x.size() * sizeof(double), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int c = 0; c < chains; c++) {
        std::vector<double> left(n, 0.0);
        const double *z = &x[(size_t)c * n];
        for (int i = 0; i < n; i++)
            for (auto &e : a[i]) {
                left[i] += e.second * z[e.first];
                if (e.first != i) left[e.first] += e.second * z[i];
            }
        for (int i = 0; i < n; i++) worst = std::max(worst, std::fabs(left[i] - right[(size_t)c * n + i]));
    }
    int64_t filled = 0;
    size_t written;
    CKD(cudssDataGet(handle, data, CUDSS_DATA_LU_NNZ, &filled, sizeof filled, &written));
    printf("| %s | %d | %zu | %lld | %.1f | %.3f | %.3f | %.3f |%s\n", name, chains, entries, (long long)filled, analysis, factor, solve,
           both, worst < 1e-6 ? "" : " WRONG");
    if (!(worst < 1e-6)) exit(1);
    cudssMatrixDestroy(A);
    cudssMatrixDestroy(X);
    cudssMatrixDestroy(B);
    cudssDataDestroy(handle, data);
    cudssConfigDestroy(config);
    cudssDestroy(handle);
}

int main(void)
{
    printf("| precision | chains | entries | of the factor | analysis | factor | solve | both, ms |\n");
    Lower large = field(100), small = field(40), effects = crossed(1000, 500, 100000);
    for (int chains = 1; chains <= 4; chains += 3) {
        measure("field, 100 x 100", large, chains);
        measure("field, 40 x 40", small, chains);
        measure("crossed effects, 1000 x 500 levels", effects, chains);
    }
    return 0;
}
