// classify.h -- on a GPU: which of many values a row takes, where the log density of row y and value x is
//
//   of_value(x) + times*|root[x]*(y - centre[x])|^2        root[x] an upper triangle of p by p
//
// which is what a mixture of multivariate normals asks of its rows: p(p+1)/2 + 2p multiply-adds a row and value, and nothing else of any size. A lane has several rows in its registers, and the block WEIGHED_AT_ONCE values
// in shared memory, so that a number that is read there serves several rows. Differences are taken before anything is multiplied: nothing cancels but what cancels in y - centre[x].
// Numbers are real; the sum of weights is double. Streams, and the order in which values come, are those of the loop over values that it stands for (discrete.h): in double precision the draws are the same up to rounding.
//
// Programs are compiled for the width of their rows (GM_ROWS_WIDTH); of other widths, and beyond MOST_CLASSIFIED columns, the loop does it. Test: tests/gpu/devices.py (everyday_multivariate_mixture).
#ifndef GM_CLASSIFY_H
#define GM_CLASSIFY_H

enum { MOST_CLASSIFIED = 24 };

#if defined(GM_ROWS_WIDTH) && GM_ROWS_WIDTH >= 1 && GM_ROWS_WIDTH <= 24
#define CLASSIFY(p) ((p) == GM_ROWS_WIDTH)
#define CLASSIFIED_WIDTH GM_ROWS_WIDTH
#else
#define CLASSIFY(p) false
#define CLASSIFIED_WIDTH 1
#endif

// weigh_values of discrete.h for weights of type T.
template <typename T>
static __device__ __forceinline__ void weigh_row(Weighed *w, Stream *g, T *weight, long before, int n)
{
    T top = (T)w->top, total = 0;
    for (int k = 0; k < n; k++) {
        if (!(weight[k] < (T)INFINITY)) w->wrong = 1;
        if (weight[k] > top) top = weight[k];
    }
    if (w->wrong || !(top > -(T)INFINITY)) return;
    for (int k = 0; k < n; k++) total += weight[k] = sizeof(T) == 4 ? (T)__expf((float)(weight[k] - top)) : (T)exp((double)(weight[k] - top));
    const double others = w->total > 0 ? w->total * exp(w->top - (double)top) : 0;
    w->top = (double)top;
    w->total = others + (double)total;
    if (!(total > 0)) return;
    double u = uniform_open(g) * w->total;
    int last = -1, k = 0;
    for (; k < n; k++) {
        if (!(weight[k] > 0)) continue;
        last = k;
        if (u <= (double)weight[k]) break;
        u -= (double)weight[k];
    }
    if (k == n && others > 0) return;
    w->chosen = before + last + 1;
}

template <typename Value>
static __device__ __forceinline__ void classify(GmContext *GM, const Sweep at, const int var, const char *name, const long n, const long first, const long last, const real *row, const wide *centre, const wide *root,
                                                int *chosen, const double times, Value of_value)
{
    constexpr int P = CLASSIFIED_WIDTH, ROWS = P <= 16 ? 4 : 2, TRIANGLE = P * (P + 1) / 2, LENGTH = (TRIANGLE + P + 1 + 3) / 4 * 4;
    __shared__ alignas(16) real table[WEIGHED_AT_ONCE][LENGTH];          // root by rows, centre, number of the value
    const long values = last - first + 1, tile = (long)blockDim.x * ROWS;
    for (long from = blockIdx.x * tile; from < n; from += gridDim.x * tile) {
        real y[ROWS][P];
        Weighed all[ROWS];
        Stream g[ROWS];
        for (int r = 0; r < ROWS; r++) {
            const long i = from + r * (long)blockDim.x + threadIdx.x;
#pragma unroll
            for (int l = 0; l < P; l++) y[r][l] = i < n ? row[i * P + l] : 0;
            all[r] = weigh_start();
            g[r] = stream(at, var, i);
        }
        for (long begin = 0; begin < values; begin += WEIGHED_AT_ONCE) {
            const int some = (int)(begin + WEIGHED_AT_ONCE < values ? WEIGHED_AT_ONCE : values - begin);
            __syncthreads();
            for (int e = threadIdx.x; e < some * P * P; e += blockDim.x) {
                const int x = e / (P * P), j = e / P % P, l = e % P;
                if (l >= j) table[x][j * P - j * (j - 1) / 2 + l - j] = (real)root[((first - 1 + begin + x) * P + j) * P + l];
            }
            for (int e = threadIdx.x; e < some * P; e += blockDim.x) table[e / P][TRIANGLE + e % P] = (real)centre[(first - 1 + begin) * P + e];
            for (int x = threadIdx.x; x < some; x += blockDim.x) table[x][TRIANGLE + P] = (real)of_value(first + begin + x);
            __syncthreads();
            real weight[ROWS][WEIGHED_AT_ONCE];
            for (int x = 0; x < some; x++) {
                const real *t = table[x];
                real a[ROWS][P], sum[ROWS];
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    sum[r] = 0;
#pragma unroll
                    for (int l = 0; l < P; l++) a[r][l] = y[r][l] - t[TRIANGLE + l];
                }
                int at_pair = 0;
#pragma unroll
                for (int j = 0; j < P; j++) {
                    real z[ROWS];
#pragma unroll
                    for (int r = 0; r < ROWS; r++) z[r] = 0;
#pragma unroll
                    for (int l = j; l < P; l++) {
                        const real c = t[at_pair++];
#pragma unroll
                        for (int r = 0; r < ROWS; r++) z[r] += c * a[r][l];
                    }
#pragma unroll
                    for (int r = 0; r < ROWS; r++) sum[r] += z[r] * z[r];
                }
#pragma unroll
                for (int r = 0; r < ROWS; r++) weight[r][x] = t[TRIANGLE + P] + (real)times * sum[r];
            }
            for (int r = 0; r < ROWS; r++) weigh_row(&all[r], &g[r], weight[r], begin, some);
        }
        for (int r = 0; r < ROWS; r++) {
            const long i = from + r * (long)blockDim.x + threadIdx.x;
            if (i >= n) continue;
            if (all[r].wrong || all[r].chosen < 1) FAULT(name, i, "no value has a positive probability");
            else chosen[i] = (int)(first + all[r].chosen - 1);
        }
    }
}
#endif
