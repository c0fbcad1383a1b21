// row_pass.h -- the kernels around a ROW on a GPU: dot = X[k]*beta, the row, its weight. A warp takes a row; the sum of weight * X[k] is a
// second reading of X (gm_row_sums in runtime_cuda.h).
#ifndef GM_ROW_PASS_H
#define GM_ROW_PASS_H

// weight[chain][n] is filled unless it is NULL. at_beta: offset in State of wide *beta[p], or ~0: dot is 0.
#define ROW_PASS_KERNELS(name)                                                                                                          \
    extern "C" __global__ void name##_rows(const Data d, const State *states, GmPlace *place, const real *X, long n, long p,            \
                                           uint64_t at_beta, real *weight)                                                              \
    {                                                                                                                                   \
        GmContext context = gm_context_of(place);                                                                                       \
        const State s = states[blockIdx.y];                                                                                             \
        const Sweep at = gm_sweep_place(place, (int)blockIdx.y);                                                                        \
        const wide *beta = at_beta == ~(uint64_t)0 ? (const wide *)0 : *(const wide *const *)((const char *)&states[blockIdx.y] + at_beta); \
        const int lane = threadIdx.x % 32;                                                                                              \
        for (long first = gm_thread / 32 * 32; first < n; first += gm_threads) {     /* 32 rows: one at a time, then a lane each */    \
            real mine = 0;                                                                                                              \
            for (int r = 0; r < 32 && first + r < n; r++) {                                                                             \
                wide dot = 0;                                                                                                           \
                for (long j = lane; beta && j < p; j += 32) dot += X[(first + r) * p + j] * beta[j];                                    \
                for (int k = 16; k > 0; k /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, k);                                            \
                if (lane == r) mine = (real)dot;                                                                                        \
            }                                                                                                                           \
            if (first + lane < n) {                                                                                                     \
                const real w = name##_row(&context, d, s, at, first + lane, mine).shift;                                                \
                if (weight) weight[(long)blockIdx.y * n + first + lane] = w;                                                            \
            }                                                                                                                           \
        }                                                                                                                               \
    }

#endif
