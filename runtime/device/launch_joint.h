// launch_joint.h -- draws of joint normals between kernels (launch.h), for all chains of a launch.
#ifndef GM_LAUNCH_JOINT_H
#define GM_LAUNCH_JOINT_H

#include "launch_elements.h"

#if !defined(__CUDACC__)

GM_HOST_ONLY Stream gm_joint_stream(GmRun *run, uint32_t var)
{
    Stream g = stream(sweep_place(run, run->chain), var, 0);
    if (GM_NO_DRAWS) {
        g.has_spare = GM_NO_NOISE;
        g.log_value = g.log_rest = NAN;
    }
    return g;
}

// A block that has no draw stays where it is in the first sweeps of warm-up: a start may be so far out that its weights span more than
// numbers hold. Later it stays for some sweeps at most (fault.c): a scale may come so near to 0. Whether it has a draw does not depend on
// where it is, so the rest of the sweep draws from its conditionals all the same.
GM_HOST_ONLY void gm_not_drawn(GmRun *run, const char *name, const char *what)
{
    if (!GM_NO_DRAWS && !run->checking && !run->tried && gm_may_stay(run, run->chain, name)) {
        gm_stayed(name, 1);
        return;
    }
    gm_fault(run, run->chain, name, -1, what);
}

GM_HOST_ONLY void gm_normal_dense_ratio(GmRun *run, uint32_t var, const char *name, long n, solve *J, solve *h, wide *x, wide *scale)
{
    if (run->marginal) {
        if (run->marginal == GM_MARGINAL) run->result += gm_marginal_dense(n, J, h, x);  // scales.h
        return;
    }
    Stream g = gm_joint_stream(run, var);
    GmScale move = {scale ? scale[0] : 0, scale ? scale[1] : 0, 1};
    if (run->checking) gm_quadratic_before(n, J, h, x);
    if (gm_watching) gm_watch_joint(run->chain, n, J, h, x);
    // a scale move of z and x together has no ratio of x alone
    const long bad = gm_normal_dense(&g, n, J, h, x, scale && !run->checking ? &move : NULL);
    if (run->checking) gm_ratio_quadratic(run, run->chain, gm_quadratic_after(x));
    if (scale) scale[2] = move.scale;
    if (bad) gm_not_drawn(run, name, NOT_POSITIVE_DEFINITE);
}

GM_HOST_ONLY void gm_normal_arrow_ratio(GmRun *run, uint32_t var, const char *name, long n, solve *J, solve *h, wide *x, long m, wide *D,
                                         wide *E, wide *k, wide *u, wide *scale)
{
    if (run->marginal) {
        if (run->marginal == GM_MARGINAL) run->result += gm_marginal_arrow(n, J, h, x, m, D, E, k, u);
        return;
    }
    Stream g = gm_joint_stream(run, var);
    GmScale move = {scale ? scale[0] : 0, scale ? scale[1] : 0, 1};
    if (run->checking) gm_arrow_before(n, J, h, x, m, D, E, k, u);
    if (gm_watching) gm_watch_arrow(run->chain, n, J, h, x, m, D, E, k, u);
    const long bad = gm_normal_arrow(&g, n, J, h, x, m, D, E, k, u, scale && !run->checking ? &move : NULL);
    if (run->checking) gm_ratio_quadratic(run, run->chain, gm_arrow_after(x, u));
    if (scale) scale[2] = move.scale;
    if (bad) gm_not_drawn(run, name, NOT_POSITIVE_DEFINITE);
}

GM_HOST_ONLY void gm_normal_rows_ratio(GmRun *run, uint32_t var, const char *name, long n, long p, wide *D, solve *h, solve *rows, wide *y,
                                        solve *M, wide *x, wide *scale)
{
    if (run->marginal) {
        if (run->marginal == GM_MARGINAL) run->result += gm_marginal_rows(n, p, D, h, rows, y, M, x);
        return;
    }
    Stream g = gm_joint_stream(run, var);
    GmScale move = {scale ? scale[0] : 0, scale ? scale[1] : 0, 1};
    if (run->checking) gm_rows_before(n, p, D, h, rows, y, x);
    if (gm_watching) gm_watch_rows(run->chain, n, p, D, h, rows, y, x);
    const long bad = gm_normal_rows(&g, n, p, D, h, rows, y, M, x, scale && !run->checking ? &move : NULL);
    if (run->checking) gm_ratio_quadratic(run, run->chain, gm_rows_after(x));
    if (scale) scale[2] = move.scale;
    if (bad) gm_not_drawn(run, name, NOT_POSITIVE_DEFINITE);
}

GM_HOST_ONLY void gm_normal_sparse_ratio(GmRun *run, GmKernel kernel, uint32_t var, const char *name, int number, solve *h, wide *x,
                                          wide *scale)
{
    gm_sparse_begin(number, run->chain);
    gm_team(kernel, run, run->chain, 1);
    if (run->marginal) {
        if (run->marginal == GM_MARGINAL) run->result += gm_marginal_sparse(number, h, x);
        return;
    }
    Stream g = gm_joint_stream(run, var);
    GmScale move = {scale ? scale[0] : 0, scale ? scale[1] : 0, 1};
    if (run->checking) gm_sparse_before(number, h, x);
    if (gm_watching) gm_watch_sparse(run->chain, number, h, x);
    const long bad = gm_normal_sparse(&g, number, h, x, scale && !run->checking ? &move : NULL);
    if (run->checking) gm_ratio_quadratic(run, run->chain, gm_sparse_after(number, x));
    if (scale) scale[2] = move.scale;
    if (bad) gm_not_drawn(run, name, bad == GM_NOT_SOLVED ? NOT_SOLVED : NOT_POSITIVE_DEFINITE);
}

#endif

GM_LAUNCHES launch_normal_dense(GmRun *run, uint32_t var, const char *name, long n, size_t J, size_t h, size_t x, size_t scale)
{
    gm_here(run);
    if (run->device) gm_device_normal_dense(run, var, name, n, J, h, x, scale);
    else
        ON_CPU(run,
               gm_normal_dense_ratio(run, var, name, n, gm_at(solve, s, J), gm_at(solve, s, h), gm_at(wide, s, x), gm_at(wide, s, scale)));
}

GM_LAUNCHES launch_normal_rows(GmRun *run, uint32_t var, const char *name, long n, long p, size_t D, size_t h, size_t rows, size_t y,
                               size_t M, size_t x, size_t scale)
{
    gm_here(run);
    if (run->device) gm_device_normal_rows(run, var, name, n, p, D, h, rows, y, M, x, scale);
    else
        ON_CPU(run, gm_normal_rows_ratio(run, var, name, n, p, gm_at(wide, s, D), gm_at(solve, s, h), gm_at(solve, s, rows),
                                         gm_at(wide, s, y), gm_at(solve, s, M), gm_at(wide, s, x), gm_at(wide, s, scale)));
}

GM_LAUNCHES launch_normal_arrow(GmRun *run, uint32_t var, const char *name, long n, size_t J, size_t h, size_t x, long m, size_t D,
                                size_t E, size_t k, size_t u, size_t scale)
{
    gm_here(run);
    if (run->device) gm_device_normal_arrow(run, var, name, n, J, h, x, m, D, E, k, u, scale);
    else
        ON_CPU(run,
               gm_normal_arrow_ratio(run, var, name, n, gm_at(solve, s, J), gm_at(solve, s, h), gm_at(wide, s, x), m, gm_at(wide, s, D),
                                     gm_at(wide, s, E), gm_at(wide, s, k), gm_at(wide, s, u), gm_at(wide, s, scale)));
}

GM_LAUNCHES launch_normal_sparse(GmRun *run, const char *kernel_name, GmKernel kernel, uint32_t var, const char *name, int number, size_t h,
                                 size_t x, size_t scale)
{
    gm_here(run);
    (void)kernel;
    if (run->device) gm_device_normal_sparse(run, kernel_name, var, name, number, x, scale);
    else ON_CPU(run, gm_normal_sparse_ratio(run, kernel, var, name, number, gm_at(solve, s, h), gm_at(wide, s, x), gm_at(wide, s, scale)));
}

GM_LAUNCHES launch_pattern(GmRun *run, const char *kernel_name, GmKernel kernel, const char *name, int number, long n, double most,
                           int by_lanes)
{
    (void)kernel;
    const int as_gpu = run->device || run->like_gpu;
    if (as_gpu && !by_lanes) {
        gm_pattern_in_turn(number, n, name);
        return;
    }
    if (run->device) gm_device_pattern(run, kernel_name, name, number, n, most);
#if !defined(__CUDACC__)
    else {
        gm_pattern_begin(number, n, most, name);
        gm_team(kernel, run, 0, 1);
        gm_pattern_end(number, as_gpu);
    }
#endif
}

GM_LAUNCHES launch_tell_rows(GmRun *run, GmKernel kernel, const char *name, int number, long n, int weighted)
{
    (void)kernel;
#if !defined(__CUDACC__)
    if (run->device || run->like_gpu) {
        gm_list_on_gpu(number, n, name);
        return;
    }
    if (gm_list_begin(number, n, name)) gm_team(kernel, run, 0, 1);
    gm_list_end(number, weighted);
#endif
}

// Draws between kernels:
//
//   NORMAL_DENSE(run, var, name, n, J, h, x)        x[n] ~ N(J^-1 h, J^-1); J and h are destroyed
//   NORMAL_DENSE_SCALED(..., scale)                 with a scale move: scale = {Q, count, the scale drawn}, see linalg.h
//   NORMAL_ROWS(run, var, name, n, p, D, h, R, y, M, x)          x[p] from n < p rows: precision D + R'R, shift h + R'y; M[n, n] is work
//                                                                space
//   NORMAL_ARROW(run, var, name, n, J, h, x, m, D, E, k, u)      see linalg.h
#define NORMAL_DENSE(run, var, name, n, J, h, x)                                           \
    do {                                                                                   \
        gm_data(run);                                                                      \
        launch_normal_dense(run, var, name, n, gm_of(J), gm_of(h), gm_of(x), GM_NO_FIELD); \
    } while (0)
#define NORMAL_DENSE_SCALED(run, var, name, n, J, h, x, scale)                              \
    do {                                                                                    \
        gm_data(run);                                                                       \
        launch_normal_dense(run, var, name, n, gm_of(J), gm_of(h), gm_of(x), gm_of(scale)); \
    } while (0)
#define NORMAL_ROWS(run, var, name, n, p, D, h, R, y, M, x)                                                                \
    do {                                                                                                                   \
        gm_data(run);                                                                                                      \
        launch_normal_rows(run, var, name, n, p, gm_of(D), gm_of(h), gm_of(R), gm_of(y), gm_of(M), gm_of(x), GM_NO_FIELD); \
    } while (0)
#define NORMAL_ROWS_SCALED(run, var, name, n, p, D, h, R, y, M, x, scale)                                                   \
    do {                                                                                                                    \
        gm_data(run);                                                                                                       \
        launch_normal_rows(run, var, name, n, p, gm_of(D), gm_of(h), gm_of(R), gm_of(y), gm_of(M), gm_of(x), gm_of(scale)); \
    } while (0)
//   PATTERN(kernel, run, name, number, n, most, by_lanes)       which places the terms of joint normal `number` have, see sparse.h; kernel
//                                                               goes through them, a KERNEL_TERMS if by_lanes, else a KERNEL_ONCE, which is
//                                                               for CPUs
//   NORMAL_SPARSE(kernel, run, var, name, number, h, x)          x[n] ~ N(J^-1 h, J^-1); kernel fills h, and J by SPARSE_ADD
#define PATTERN(kernel, run, name, number, n, most, by_lanes)                   \
    do {                                                                        \
        gm_data(run);                                                           \
        launch_pattern(run, GM_NAMED(kernel), name, number, n, most, by_lanes); \
    } while (0)
#define NORMAL_SPARSE(kernel, run, var, name, number, h, x) \
    launch_normal_sparse(run, GM_NAMED(kernel), var, name, number, gm_of(h), gm_of(x), GM_NO_FIELD)
#define NORMAL_SPARSE_SCALED(kernel, run, var, name, number, h, x, scale) \
    launch_normal_sparse(run, GM_NAMED(kernel), var, name, number, gm_of(h), gm_of(x), gm_of(scale))
//   LIST_ROWS(kernel, run, name, number, n, weighted)            whether the rows of joint normal `number` are listed, see sparse.h, by
//                                                                that kernel; LISTED: they are; LISTED_ALONE: and what other routes read is
//                                                                not made
#define LIST_ROWS(kernel, run, name, number, n, weighted)                                \
    do {                                                                                 \
        gm_data(run);                                                                    \
        launch_tell_rows(run, gm_function(GM_NAMED(kernel)), name, number, n, weighted); \
    } while (0)
#define LISTED(number)       gm_rows_listed(number)
#define LISTED_ALONE(number) gm_rows_listed_alone(number)
#define gm_function(...)     gm_second(__VA_ARGS__)
#define gm_second(a, b)      b
#define NORMAL_ARROW(run, var, name, n, J, h, x, m, D, E, k, u)                                                                       \
    do {                                                                                                                              \
        gm_data(run);                                                                                                                 \
        launch_normal_arrow(run, var, name, n, gm_of(J), gm_of(h), gm_of(x), m, gm_of(D), gm_of(E), gm_of(k), gm_of(u), GM_NO_FIELD); \
    } while (0)
#define NORMAL_ARROW_SCALED(run, var, name, n, J, h, x, m, D, E, k, u, scale)                                                          \
    do {                                                                                                                               \
        gm_data(run);                                                                                                                  \
        launch_normal_arrow(run, var, name, n, gm_of(J), gm_of(h), gm_of(x), m, gm_of(D), gm_of(E), gm_of(k), gm_of(u), gm_of(scale)); \
    } while (0)

#endif
