// launch.h -- how kernels are launched; the host half of kernels.h.
//
//   LAUNCH(draw_theta, run, n)            KERNEL: n elements
//   LAUNCH_MISSING(impute_y, run, field)  KERNEL: the missing elements of a field of Data, counted from 1
//   LAUNCH_COLOURS(draw_x, run, n, 2)     KERNEL: the elements of one class modulo 2 after the other
//   LAUNCH_COLOURS_TEAM(draw_x, run, work, 2)         KERNEL_TEAM: the same
//   LAUNCH_ROWS(draw_z, run, n, p, X, beta, out)      ROW: dot = X[k]*beta for each row, out[p] = sum of weight * X[k]
//   LAUNCH_ROWS_AND(..., out, total)                  the same, and total[0] = the sum of what rows add to it
//   LAUNCH_ROWS_ONLY(draw_z, run, n, p, X, beta)      nothing is added up
//   LAUNCH_TEAM(draw_tau, run, work)      KERNEL_TEAM: `work` is the number of iterations of its loops
//   LAUNCH_ONCE(slice_R, run)             KERNEL_ONCE
//   LAUNCH_SHARED(sums_of_data, run, work)            KERNEL_TEAM, what it computes belongs to all chains
//
// On the CPU, chains run in parallel, each making a batch of sweeps by itself. If there are fewer chains than threads, threads share the
// elements of a launch. If the rows of row passes exceed the caches, chains run in lockstep instead, launch by launch. Then rows are read
// from memory once for all chains. The draws are the same. On a GPU a launch serves all chains of the run.
#ifndef GM_LAUNCH_H
#define GM_LAUNCH_H

#include "../host/device.h"

#ifdef __cplusplus
#define GM_C extern "C"
#else
#define GM_C
#endif

#define gm_of(field)        offsetof(State, field)
#define gm_of_chain(run, c) ((const State *)(run)->state + (c))
#define gm_data(run)                                 \
    const Data *const d = (const Data *)(run)->data; \
    (void)d

static inline int any_missing(const GmRun *run)
{
    for (int f = 0; run->missing && f < gm_model.n_data; f++)
        if (run->missing[f].count) return 1;
    return run->own_responses;
}

#define ANY_MISSING(run) any_missing(run)

static inline Sweep sweep_place(const GmRun *run, int chain)
{
    Sweep at;
    at.seed = run->seed;
    at.chain = (uint32_t)(run->first_chain + chain);
    at.sweep = (uint64_t)run->sweep + 1;
    return at;
}

// An array of data where the host may read it.
#define ON_HOST(run, x) ((const int *)((run)->device ? gm_device_on_host(run, x) : (x)))

// A kind of launch is a function, compiled once: a program may have a thousand launches. It knows a kernel by its name, on a GPU, and by
// its function.
#define GM_LAUNCHES           static __attribute__((noinline, unused)) void
#define gm_array(s, field)    (*(wide *const *)((const char *)(s) + (field)))
#define gm_at(type, s, field) ((field) == GM_NO_FIELD ? (type *)0 : *(type *const *)((const char *)(s) + (field)))

#if defined(__CUDACC__)

typedef void *GmKernel;
typedef void *GmRowKernel;
#define GM_NAMED(kernel) #kernel, NULL
#define ON_CPU(run, what) \
    do {                  \
    } while (0)
#define gm_here(run)                                 \
    const Data *const d = (const Data *)(run)->data; \
    const State *const s = gm_of_chain(run, 0);      \
    (void)d;                                         \
    (void)s
enum { GM_IN_STEP = -1, GM_CACHE = 0 };

#else

typedef void (*GmKernel)(GmContext *, const Data *, const State *, const Sweep);
typedef void (*GmRowKernel)(GmContext *, const Data *, const State *, const Sweep, const real *, real *, wide *);
#define GM_NAMED(kernel) #kernel, kernel

enum {
    GM_BLOCK = 512,            // elements a block
    GM_TEAM_WORK = 32768,      // work below which a team of several threads does not pay
    GM_ROWS = 4096,            // rows in a chunk of a row pass: its sums are added chunk by chunk
    GM_IN_STEP = -1,           // run->chain: a launch is for all chains
    GM_PRODUCT_CACHE = 32768,  // numbers in the rows that ROW_PRODUCTS takes at a time
    GM_CACHE = 16 << 20,       // bytes of rows above which chains run in lockstep
};

#define gm_here(run)                                                              \
    const Data *const d = (const Data *)(run)->data;                              \
    const State *const s = gm_of_chain(run, (run)->chain < 0 ? 0 : (run)->chain); \
    (void)d;                                                                      \
    (void)s
// Chains in lockstep that launches are for, by number.
static inline int gm_chains_going(const GmRun *run) { return run->going ? run->n_going : run->chains; }
static inline int gm_chain_going(const GmRun *run, int k) { return run->going ? run->going[k] : k; }

#define ON_CPU(run, what)                                                                                            \
    do {                                                                                                             \
        if ((run)->chain != GM_IN_STEP) {                                                                            \
            what;                                                                                                    \
            break;                                                                                                   \
        }                                                                                                            \
        GmRun *const gm_all = run;                                                                                   \
        const int gm_n = gm_chains_going(gm_all);                                                                    \
        _Pragma("omp parallel for num_threads(gm_all->threads < gm_n ? gm_all->threads : gm_n) schedule(static, 1)") \
        for (int gm_k = 0; gm_k < gm_n; gm_k++) {                                                                    \
            GmRun gm_one = *gm_all, *const run = &gm_one;                                                            \
            gm_one.chain = gm_chain_going(gm_all, gm_k);                                                             \
            gm_one.inner_threads = 1;                                                                                \
            gm_here(run);                                                                                            \
            what;                                                                                                    \
        }                                                                                                            \
    } while (0)

static inline GmContext gm_alone(GmRun *run, int chain, long first, long last)
{
    const GmContext c = {run, chain, first, last, 0, 1, 0, NULL};
    return c;
}

// By several threads.
GM_LAUNCHES gm_each_shared(GmKernel kernel, GmRun *run, long n, long blocks)
{
    const Data *const d = (const Data *)run->data;
    const State *const s = gm_of_chain(run, run->chain);
    const Sweep at = sweep_place(run, run->chain);
#pragma omp parallel for num_threads(run->inner_threads) schedule(static)
    for (long b = 0; b < blocks; b++) {
        GmContext context = gm_alone(run, run->chain, b * GM_BLOCK, (b + 1) * GM_BLOCK < n ? (b + 1) * GM_BLOCK : n);
        kernel(&context, d, s, at);
    }
}

static inline void gm_each(GmKernel kernel, GmRun *run, long n)
{
    const long blocks = (n + GM_BLOCK - 1) / GM_BLOCK;
    if (run->inner_threads > 1 && blocks > 1 && !run->checking) {
        gm_each_shared(kernel, run, n, blocks);
        return;
    }
    GmContext context = gm_alone(run, run->chain, 0, n);
    kernel(&context, (const Data *)run->data, gm_of_chain(run, run->chain), sweep_place(run, run->chain));
}

GM_LAUNCHES gm_team_shared(GmKernel kernel, GmRun *run, int chain)
{
    static wide partial[GM_PARTIALS];  // one team of several threads works at a time
    const Data *const d = (const Data *)run->data;
    const State *const s = gm_of_chain(run, chain);
    const Sweep at = sweep_place(run, chain);
#pragma omp parallel num_threads(run->inner_threads)
    {
        GmContext context = {run, chain, 0, 0, omp_get_thread_num(), omp_get_num_threads(), 0, partial};
        kernel(&context, d, s, at);
    }
}

static inline void gm_team(GmKernel kernel, GmRun *run, int chain, long work)
{
    if (run->inner_threads > 1 && work >= GM_TEAM_WORK && !run->checking) {
        gm_team_shared(kernel, run, chain);
        return;
    }
    GmContext context = gm_alone(run, chain, 0, 1);
    kernel(&context, (const Data *)run->data, gm_of_chain(run, chain), sweep_place(run, chain));
}

// Numbers that a product adds up: X'w, and 1'w if it is wanted.
static inline long gm_product_sums(const GmProduct *r) { return r->k * (r->p + (r->sums != GM_NO_FIELD)); }

// Adds what a chunk of rows has given, or begins with nothing.
static inline void gm_products_added(const State *s, const GmProduct *list, int count, size_t totals, long ntotals, const wide *sums)
{
    for (int k = 0; k < 2 * count + 1; k++) {
        const GmProduct *r = &list[k / 2];
        const size_t field = k == 2 * count ? totals : k % 2 ? r->sums : r->out;
        const long n = k == 2 * count ? ntotals : k % 2 ? r->k : r->p * r->k;
        if (field == GM_NO_FIELD) continue;
        wide *const to = gm_at(wide, s, field);
        for (long e = 0; e < n; e++) to[e] = sums ? to[e] + sums[e] : 0;
        if (sums) sums += n;
    }
}

// Rows of one chunk, a few at a time so that they are still in the cache when they are added up: out[p], then the total.
static inline void gm_row_chunk(GmRowKernel kernel, GmRun *run, int chain, long first, long last, long p, const real *X, const wide *beta,
                                wide *out)
{
    enum { MOST = 256 };
    real dot[MOST], weight[MOST];
    wide more = 0;
    const long fit = p > 0 ? 16384 / p : MOST, rows = fit < 8 ? 8 : fit > MOST ? MOST : fit;
    for (long i = first; i < last; i += rows) {
        const long n = i + rows < last ? rows : last - i;
        GmContext context = gm_alone(run, chain, i, i + n);
        rows_times(n, p, X + i * p, beta, dot);
        kernel(&context, (const Data *)run->data, gm_of_chain(run, chain), sweep_place(run, chain), dot, weight, &more);
        if (out) rows_added(n, p, X + i * p, weight, out);
    }
    if (out) out[p] += more;
}

// Sums of a chunk are p + 1 numbers, the last one the total; on the way, those of all chunks so far.
static inline void gm_add_rows(long p, const wide *sums, wide *out, wide *total)
{
    for (long j = 0; j < p; j++) out[j] += sums[j];
    if (total) *total += sums[p];
}

static inline void gm_rows(GmRowKernel kernel, GmRun *run, int chain, long n, long p, const real *X, const wide *beta, wide *out,
                           wide *total)
{
    const long chunks = (n + GM_ROWS - 1) / GM_ROWS;
    const int several = run->inner_threads > 1 && chunks > 1 && !run->checking;
    wide *sums = out ? (wide *)calloc((size_t)((several ? chunks : 1) * (p + 1)), sizeof *sums) : NULL;
    if (out && !sums) abort();
    for (long j = 0; j < p && out; j++) out[j] = 0;
    if (total) *total = 0;
    if (several) {
#pragma omp parallel for num_threads(run->inner_threads) schedule(static)
        for (long b = 0; b < chunks; b++)
            gm_row_chunk(kernel, run, chain, b * GM_ROWS, (b + 1) * GM_ROWS < n ? (b + 1) * GM_ROWS : n, p, X, beta,
                         out ? sums + b * (p + 1) : NULL);
        for (long b = 0; b < chunks && out; b++) gm_add_rows(p, sums + b * (p + 1), out, total);
    } else {
        for (long b = 0; b < chunks; b++) {
            for (long j = 0; j <= p && out; j++) sums[j] = 0;
            gm_row_chunk(kernel, run, chain, b * GM_ROWS, (b + 1) * GM_ROWS < n ? (b + 1) * GM_ROWS : n, p, X, beta, sums);
            if (out) gm_add_rows(p, sums, out, total);
        }
    }
    free(sums);
}

// The same for all chains: rows of a chunk are read once. Chunks, and the order in which they are added, are those of one chain alone.
static inline void gm_rows_in_step(GmRowKernel kernel, GmRun *run, long n, long p, const real *X, size_t beta, size_t out, size_t total)
{
    enum { MOST = 256 };
    const long chunks = (n + GM_ROWS - 1) / GM_ROWS, fit = p > 0 ? 16384 / p : MOST, rows = fit < 8 ? 8 : fit > MOST ? MOST : fit;
    const int chains = gm_chains_going(run);
    wide *sums = out != GM_NO_FIELD ? (wide *)calloc((size_t)(chunks * chains * (p + 1) + 1), sizeof *sums) : NULL;
    if (out != GM_NO_FIELD && !sums) abort();
#pragma omp parallel for num_threads(run->threads) schedule(static)
    for (long b = 0; b < chunks; b++) {
        real dot[MOST], weight[MOST];
        const long last = (b + 1) * GM_ROWS < n ? (b + 1) * GM_ROWS : n;
        for (long i = b * GM_ROWS; i < last; i += rows)
            for (int k = 0; k < chains; k++) {
                const int c = gm_chain_going(run, k);
                const long some = i + rows < last ? rows : last - i;
                const State *const s = gm_of_chain(run, c);
                wide none = 0, *mine = sums ? sums + (b * chains + k) * (p + 1) : NULL;
                GmContext context = gm_alone(run, c, i, i + some);
                rows_times(some, p, X + i * p, *(wide *const *)((const char *)s + beta), dot);
                kernel(&context, (const Data *)run->data, s, sweep_place(run, c), dot, weight, mine ? mine + p : &none);
                if (mine) rows_added(some, p, X + i * p, weight, mine);
            }
    }
    for (int k = 0; k < chains && sums; k++) {
        const char *s = (const char *)gm_of_chain(run, gm_chain_going(run, k));
        wide *to = *(wide *const *)(s + out), *whole = total != GM_NO_FIELD ? *(wide *const *)(s + total) : NULL;
        for (long j = 0; j < p; j++) to[j] = 0;
        if (whole) *whole = 0;
        for (long b = 0; b < chunks; b++) gm_add_rows(p, sums + (b * chains + k) * (p + 1), to, whole);
    }
    free(sums);
}

// Rows first .. last - 1 of ROW_PRODUCTS, a few at a time so that those of the matrices, the predictors and the weights are still in the
// cache: sums are what `back` gives, product after product, then the totals.
static inline void gm_products_chunk(GmKernel kernel, GmRun *run, int chain, long first, long last, const GmProduct *list, int count,
                                     wide *sums)
{
    const State *const s = gm_of_chain(run, chain);
    long widest = 0;
    for (int k = 0; k < count; k++) widest += list[k].p;
    const long fit = widest > 0 ? GM_PRODUCT_CACHE / widest : GM_ROWS, rows = fit < 16 ? 16 : fit > GM_ROWS ? GM_ROWS : fit / 16 * 16;
    for (long i = first; i < last; i += rows) {
        const long n = i + rows < last ? rows : last - i;
        for (int k = 0; k < count; k++) {
            const GmProduct *r = &list[k];
            rows_times_matrix(n, r->p, r->k, (const real *)r->X + i * r->p, gm_at(wide, s, r->coefficients), r->transposed,
                              gm_at(real, s, r->eta) + i * r->k);
        }
        if (!kernel) continue;
        wide *out = sums;
        for (int k = 0; k < count; k++) out += gm_product_sums(&list[k]);
        GmContext context = {run, chain, i, i + n, 0, 1, 0, out};
        kernel(&context, (const Data *)run->data, s, sweep_place(run, chain));
        out = sums;
        for (int k = 0; k < count; k++) {
            const GmProduct *r = &list[k];
            const real *const w = gm_at(real, s, r->weight) + i * r->k;
            rows_added_matrix(n, r->p, r->k, (const real *)r->X + i * r->p, w, r->transposed, out);
            for (long e = 0; e < n && r->sums != GM_NO_FIELD; e++)
                for (long o = 0; o < r->k; o++) out[r->p * r->k + o] += w[e * r->k + o];
            out += gm_product_sums(r);
        }
    }
}

// By chunks whose sums are added in order.
static inline void gm_products(GmKernel kernel, GmRun *run, int chain, long n, size_t totals, long ntotals, const GmProduct *list,
                               int count)
{
    const State *const s = gm_of_chain(run, chain);
    const long chunks = (n + GM_ROWS - 1) / GM_ROWS;
    const int several = run->inner_threads > 1 && chunks > 1 && !run->checking;
    long size = ntotals;
    for (int k = 0; k < count && kernel; k++) size += gm_product_sums(&list[k]);
    wide *sums = (wide *)calloc((size_t)((several ? chunks : 1) * size + 1), sizeof *sums);
    if (!sums) abort();
    if (kernel) gm_products_added(s, list, count, totals, ntotals, NULL);
#pragma omp parallel for num_threads(several ? run->inner_threads : 1) schedule(static) if (several)
    for (long b = 0; b < chunks; b++) {
        wide *mine = several ? sums + b * size : sums;
        for (long e = 0; e < size && !several; e++) mine[e] = 0;
        gm_products_chunk(kernel, run, chain, b * GM_ROWS, (b + 1) * GM_ROWS < n ? (b + 1) * GM_ROWS : n, list, count, mine);
        if (!several && kernel) gm_products_added(s, list, count, totals, ntotals, mine);
    }
    for (long b = 0; b < chunks && several && kernel; b++) gm_products_added(s, list, count, totals, ntotals, sums + b * size);
    free(sums);
}

static inline Stream gm_joint_stream(GmRun *run, uint32_t var)
{
    Stream g = stream(sweep_place(run, run->chain), var, 0);
#if defined(GM_MODES)
    g.has_spare = GM_NO_NOISE;
    g.log_value = g.log_rest = NAN;
#endif
    return g;
}

// A block that has no draw stays where it is in the first sweeps of warm-up: a start may be so far out that its weights span more than
// numbers hold. Later it stays for some sweeps at most (fault.c): a scale may come so near to 0. Whether it has a draw does not depend on
// where it is, so the rest of the sweep draws from its conditionals all the same.
static inline void gm_not_drawn(GmRun *run, const char *name, const char *what)
{
#if !defined(GM_MODES)
    if (!run->checking && !run->tried && gm_may_stay(run, run->chain, name)) {
        gm_stayed(name, 1);
        return;
    }
#endif
    gm_fault(run, run->chain, name, -1, what);
}

static inline void gm_normal_dense_ratio(GmRun *run, uint32_t var, const char *name, long n, solve *J, solve *h, wide *x, wide *scale)
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

static inline void gm_normal_arrow_ratio(GmRun *run, uint32_t var, const char *name, long n, solve *J, solve *h, wide *x, long m, wide *D,
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

static inline void gm_normal_rows_ratio(GmRun *run, uint32_t var, const char *name, long n, long p, wide *D, solve *h, solve *rows, wide *y,
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

static inline void gm_normal_sparse_ratio(GmRun *run, GmKernel kernel, uint32_t var, const char *name, int number, solve *h, wide *x,
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

// ---- launches, of either target ----

GM_LAUNCHES launch_each(GmRun *run, const char *name, GmKernel kernel, long n)
{
    (void)kernel;
    if (run->device) gm_device_each(run, name, n);
    else ON_CPU(run, gm_each(kernel, run, n));
}

GM_LAUNCHES launch_colours(GmRun *run, const char *name, GmKernel kernel, long n, long colours)
{
    (void)kernel;
    if (run->device) gm_device_colours(run, name, n, colours);
    else
        for (run->colour = 0; run->colour < colours; run->colour++)
            ON_CPU(run, gm_each(kernel, run, (n - run->colour + colours - 1) / colours));
}

GM_LAUNCHES launch_team(GmRun *run, const char *name, GmKernel kernel, long work)
{
    (void)kernel;
    if (run->device) gm_device_team(run, name, work);
    else ON_CPU(run, gm_team(kernel, run, run->chain, work));
}

GM_LAUNCHES launch_team_colours(GmRun *run, const char *name, GmKernel kernel, long work, long colours)
{
    (void)kernel;
    if (run->device) gm_device_team_colours(run, name, work, colours);
    else
        for (run->colour = 0; run->colour < colours; run->colour++) ON_CPU(run, gm_team(kernel, run, run->chain, work));
}

GM_LAUNCHES launch_once(GmRun *run, const char *name, GmKernel kernel)
{
    (void)kernel;
    if (run->device) gm_device_once(run, name);
    else ON_CPU(run, gm_team(kernel, run, run->chain, 1));
}

// For the first `chains` chains.
GM_LAUNCHES launch_shared(GmRun *run, const char *name, GmKernel kernel, long work, int chains)
{
    (void)kernel;
    if (run->device) gm_device_shared(run, name, work, chains);
    else
        for (int c = 0; c < chains; c++) ON_CPU(run, gm_team(kernel, run, c, work));
}

GM_LAUNCHES launch_rows(GmRun *run, const char *name, GmRowKernel kernel, long n, long p, const real *X, size_t beta, size_t out,
                        size_t total)
{
    (void)kernel;
    if (run->device) gm_device_rows(run, name, n, p, X, beta, out, total);
#if !defined(__CUDACC__)
    else if (run->chain == GM_IN_STEP) gm_rows_in_step(kernel, run, n, p, X, beta, out, total);
    else {
        gm_here(run);
        gm_rows(kernel, run, run->chain, n, p, X, gm_at(wide, s, beta), gm_at(wide, s, out), gm_at(wide, s, total));
    }
#endif
}

GM_LAUNCHES launch_products(GmRun *run, const char *name, GmKernel kernel, long n, size_t totals, long ntotals, const GmProduct *list,
                            int count)
{
    (void)kernel;
    if (run->device) gm_device_products(run, name, n, totals, ntotals, list, count);
    else ON_CPU(run, gm_products(kernel, run, run->chain, n, totals, ntotals, list, count));
}

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

// Where an update is a loop, each iteration has streams of its own: those of variable `var` of `count`.
#define GM_STREAM_OF_ITERATION(run, var, turn, count) gm_stream_of_iteration(run, var, turn, count)
static inline uint32_t gm_stream_of_iteration(GmRun *run, uint32_t var, long iteration, uint32_t count)
{
    if (iteration >= (1L << 24) / count)  // rng.h has room for 2^24
        gm_fault(run, run->chain < 0 ? 0 : run->chain, "iterations", iteration, "there are more iterations than streams of random numbers");
    return var + (uint32_t)iteration * count;
}

// Sizes read the data, d.
#define LAUNCH(kernel, run, n)                 \
    do {                                       \
        gm_data(run);                          \
        launch_each(run, GM_NAMED(kernel), n); \
    } while (0)
#define LAUNCH_MISSING(kernel, run, field) launch_each(run, GM_NAMED(kernel), (run)->missing ? (run)->missing[(field)-1].count : 0)
#define LAUNCH_COLOURS(kernel, run, n, colours)            \
    do {                                                   \
        gm_data(run);                                      \
        launch_colours(run, GM_NAMED(kernel), n, colours); \
    } while (0)
#define LAUNCH_TEAM(kernel, run, work)            \
    do {                                          \
        gm_data(run);                             \
        launch_team(run, GM_NAMED(kernel), work); \
    } while (0)
#define LAUNCH_COLOURS_TEAM(kernel, run, work, colours)            \
    do {                                                           \
        gm_data(run);                                              \
        launch_team_colours(run, GM_NAMED(kernel), work, colours); \
    } while (0)
#define LAUNCH_ONCE(kernel, run) launch_once(run, GM_NAMED(kernel))
#define GIVEN(run, var)          (((run)->given && (run)->given[VAR_##var]) || gm_is_kept(run, VAR_##var, -1))  // of `forward`
#define LAUNCH_SHARED(kernel, run, work)               \
    do {                                               \
        gm_data(run);                                  \
        launch_shared(run, GM_NAMED(kernel), work, 1); \
    } while (0)
#define LAUNCH_SHARED_UNLESS_MISSING(kernel, run, work)                                   \
    do {                                                                                  \
        gm_data(run);                                                                     \
        launch_shared(run, GM_NAMED(kernel), work, any_missing(run) ? (run)->chains : 1); \
    } while (0)
#define LAUNCH_ROWS_INTO(kernel, run, n, p, X, beta, out, total)       \
    do {                                                               \
        gm_here(run);                                                  \
        launch_rows(run, GM_NAMED(kernel), n, p, X, beta, out, total); \
    } while (0)
#define LAUNCH_ROWS(kernel, run, n, p, X, beta, out) \
    LAUNCH_ROWS_INTO(kernel, run, n, p, X, offsetof(State, beta), offsetof(State, out), GM_NO_FIELD)
#define LAUNCH_ROWS_AND(kernel, run, n, p, X, beta, out, total) \
    LAUNCH_ROWS_INTO(kernel, run, n, p, X, offsetof(State, beta), offsetof(State, out), offsetof(State, total))
#define LAUNCH_ROWS_ONLY(kernel, run, n, p, X, beta) LAUNCH_ROWS_INTO(kernel, run, n, p, X, offsetof(State, beta), GM_NO_FIELD, GM_NO_FIELD)

// Linear algebra between kernels, for all chains of a launch.
//
//   PRODUCT(run, n, TIMES(p, k, X, B, eta))         eta[n, k] = X B for X[n, p], of data, and B[p, k]; TIMES_TRANSPOSED: B[k, p]. k = 1:
//                                                   eta[n], B[p]
//   ROW_PRODUCTS(kernel, run, n, totals, m, TIMES_AND_BACK(p, k, X, B, eta, w, out), ...)
//                                                   such products; kernel, a KERNEL_SPAN, which reads eta, fills w[n, k] and adds to
//                                                   totals[m]; and out = X'w, which lies as B does; TIMES_AND_SUMS: and sums[k] = 1'w. On
//                                                   the CPU for some rows at a time; X is read from memory once
//   GRAM(run, n, p, scale, X, out)                  out[p, p] = scale * X'X, of data
//   WEIGHTED_GRAM(run, n, p, X, w, out)             out[p, p] = X' diag(w) X, per chain
//   ROW_SUMS(run, n, p, X, w, out)                  out[p] = X'w, per chain
//   ORDER_ROWS(run, n, groups, key, first, rows)    rows of group k: rows[first[k]] .. rows[first[k + 1] - 1], of all chains; key[n] from
//                                                   1, 0 for a row of no group
//   COLOUR_ELEMENTS(run, n, pairs, one, other, first, elements)     colour c of the elements 0 .. n - 1: elements[first[c]] ..
//                                                                   elements[first[c + 1] - 1], of all chains; one[i] and other[i], from 1,
//                                                                   have different
//                                                   colours; first[c] = n from the last colour on
//   NORMAL_DENSE(run, var, name, n, J, h, x)        x[n] ~ N(J^-1 h, J^-1); J and h are destroyed
//   NORMAL_DENSE_SCALED(..., scale)                 with a scale move: scale = {Q, count, the scale drawn}, see linalg.h
//   NORMAL_ROWS(run, var, name, n, p, D, h, R, y, M, x)          x[p] from n < p rows: precision D + R'R, shift h + R'y; M[n, n] is work
//                                                                space
//   NORMAL_ARROW(run, var, name, n, J, h, x, m, D, E, k, u)      see linalg.h
#define GRAM(run, n, p, scale, X, out)                                  \
    do {                                                                \
        gm_here(run);                                                   \
        if ((run)->device) gm_device_gram(run, n, p, scale, X, s->out); \
        else ON_CPU(run, gram_matrix(n, p, scale, X, s->out));          \
    } while (0)
#define WEIGHTED_GRAM(run, n, p, X, w, out)                                                                 \
    do {                                                                                                    \
        gm_here(run);                                                                                       \
        if ((run)->device) gm_device_weighted_gram(run, n, p, X, offsetof(State, w), offsetof(State, out)); \
        else ON_CPU(run, weighted_gram(n, p, X, s->w, s->out));                                             \
    } while (0)
#define ROW_SUMS(run, n, p, X, w, out)                                                                 \
    do {                                                                                               \
        gm_here(run);                                                                                  \
        if ((run)->device) gm_device_row_sums(run, n, p, X, offsetof(State, w), offsetof(State, out)); \
        else ON_CPU(run, row_sums(n, p, X, s->w, s->out));                                             \
    } while (0)
#define TIMES_OF(p, k, X, B, transposed, eta, w, out, sums)     \
    {                                                           \
        p, k, X, gm_of(B), transposed, gm_of(eta), w, out, sums \
    }
#define TIMES(p, k, X, B, eta)                                   TIMES_OF(p, k, X, B, 0, eta, GM_NO_FIELD, GM_NO_FIELD, GM_NO_FIELD)
#define TIMES_TRANSPOSED(p, k, X, B, eta)                        TIMES_OF(p, k, X, B, 1, eta, GM_NO_FIELD, GM_NO_FIELD, GM_NO_FIELD)
#define TIMES_AND_BACK(p, k, X, B, eta, w, out)                  TIMES_OF(p, k, X, B, 0, eta, gm_of(w), gm_of(out), GM_NO_FIELD)
#define TIMES_TRANSPOSED_AND_BACK(p, k, X, B, eta, w, out)       TIMES_OF(p, k, X, B, 1, eta, gm_of(w), gm_of(out), GM_NO_FIELD)
#define TIMES_AND_SUMS(p, k, X, B, eta, w, out, sums)            TIMES_OF(p, k, X, B, 0, eta, gm_of(w), gm_of(out), gm_of(sums))
#define TIMES_TRANSPOSED_AND_SUMS(p, k, X, B, eta, w, out, sums) TIMES_OF(p, k, X, B, 1, eta, gm_of(w), gm_of(out), gm_of(sums))
#define PRODUCT(run, n, ...)                                             \
    do {                                                                 \
        gm_here(run);                                                    \
        const GmProduct gm_list[] = {__VA_ARGS__};                       \
        launch_products(run, NULL, NULL, n, GM_NO_FIELD, 0, gm_list, 1); \
    } while (0)
#define ROW_PRODUCTS(kernel, run, n, totals, m, ...)                                                                             \
    do {                                                                                                                         \
        gm_here(run);                                                                                                            \
        const GmProduct gm_list[] = {__VA_ARGS__};                                                                               \
        launch_products(run, GM_NAMED(kernel), n, offsetof(State, totals), m, gm_list, (int)(sizeof gm_list / sizeof *gm_list)); \
    } while (0)
#define COLOUR_ELEMENTS(run, n, pairs, one, other, first, elements)                                           \
    do {                                                                                                      \
        gm_here(run);                                                                                         \
        if ((run)->device) gm_device_colour_elements(run, n, pairs, s->one, s->other, s->first, s->elements); \
        else gm_colour_elements(n, pairs, s->one, s->other, s->first, s->elements);                           \
    } while (0)
#define ORDER_ROWS(run, n, groups, key, first, rows)                                        \
    do {                                                                                    \
        gm_here(run);                                                                       \
        if ((run)->device) gm_device_order_rows(run, n, groups, s->key, s->first, s->rows); \
        else gm_order_rows(n, groups, s->key, s->first, s->rows);                           \
    } while (0)
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

// ---- HMC ----
//
//   NUTS(run, density, var, machine, position, value, gradient, diagnostics, .name = "mu, tau", .coordinates = n, .depth = 8, ...)
//
// moves position[n], which the caller has set, to the next draw (nuts.h); the settings are those of GmHmc, what is not written is as usual.
// density(run) is asked for value[0], the log density by the coordinates, value[1], that by the variables, and gradient[n] at position.
// Chains in lockstep need evaluations together; those that are done stay where they are. diagnostics[6] are CmdStan's accept_stat__ to
// energy__. With --check the densities make a ratio, and the gradient is compared with differences.

// The method that a chain uses for a selection; NULL: there is none, or it keeps to Gibbs updates.
static inline GmSelected *gm_selected(const GmRun *run, int selection, int chain)
{
    return selection && run->selected ? &run->selected[chain * gm_model.n_selections + selection - 1] : NULL;
}

#if !defined(__CUDACC__)

// nuts_begin and nuts_next, of the library that programs are linked with (host/nuts.c).
GM_C void gm_nuts_start(Nuts *m, Stream *g, const wide *x, const NutsSettings *settings, long sweep, long warmup);
GM_C int gm_nuts_ask(Nuts *m);

// The metric of a chain's HMC update, if it is not diagonal or may become so, else NULL; of the library, too (host/metrics.c).
GM_C Metric *gm_metric_of(struct GmMetrics *metrics, const GmRun *run, const GmHmc *of, int chain);

typedef void GmDensity(GmRun *run);

static inline Nuts *gm_nuts_of(const State *s, const GmHmc *of)
{
    Nuts *m = nuts_of(gm_array(s, of->machine), of->coordinates);
    if (of->standardised) m->standard = gm_array(s, of->standardised);
    return m;
}

static inline void gm_nuts_begin(GmRun *run, const GmHmc *of, int chain)
{
    const State *const s = gm_of_chain(run, chain);
    NutsSettings settings = {0};
    settings.target = of->accept;
    settings.max_depth = of->depth;
    settings.steps = of->steps;
    settings.step = of->step;
    if (nuts_room(of->coordinates) > of->room) abort();
    Nuts *const m = gm_nuts_of(s, of);
    m->linear = of->together ? NULL : gm_metric_of(run->metrics, run, of, chain);
    settings.same_density = of->alone && memcmp(gm_array(s, of->position), nuts_position(m), sizeof(wide) * (size_t)of->coordinates) == 0;
    Stream g = stream(sweep_place(run, chain), of->var, 0);
    // hot chains go to where a density is known to a few digits
    settings.temperature = run->checking ? 1 : nuts_temperature(of->anneal, run->sweep, run->warmup);
    const GmSelected *const c = gm_selected(run, of->selection, chain);
    if (c && c->target > settings.target) settings.target = c->target;
    if (of->together) chees_settings(m, &settings, run->sweep, run->warmup);
    gm_nuts_start(m, &g, gm_array(s, of->position), &settings, c ? run->sweep - c->first : run->sweep, c ? c->adapts : run->warmup);
}

// Whether another evaluation is asked for; where, or the draw, is in position[n].
static inline int gm_nuts_next(GmRun *run, const GmHmc *of, int chain, int answered)
{
    const State *const s = gm_of_chain(run, chain);
    Nuts *m = gm_nuts_of(s, of);
    if (answered) {
        m->log_density = *gm_array(s, of->value);
        memcpy(nuts_gradient(m), gm_array(s, of->gradient), sizeof(wide) * (size_t)of->coordinates);
    }
    const int more = gm_nuts_ask(m);
    memcpy(gm_array(s, of->position), nuts_position(m), sizeof(wide) * (size_t)of->coordinates);
    if (!more) {
        const double says[] = {m->accept_stat, m->stepsize, m->treedepth, m->n_leapfrog, m->divergent, m->energy};
        memcpy(gm_array(s, of->diagnostics), says, sizeof says);
    }
    GmSelected *const c = more ? NULL : gm_selected(run, of->selection, chain);
    if (c)
        gm_selected_moved(c, m->evaluations, m->divergent, m->failed != 0, m->energy,
                          m->linear && m->linear->used ? m->evaluations * metric_work(m->linear) : 0);
    if (!more && m->failed && !of->selection)
        gm_fault(run, chain, of->name, -1,
                 m->failed == 1 ? "the log density is not finite at the chain's state"
                                : "the gradient of the log density is not finite at the chain's state");
    return more;
}

static inline double gm_nuts_density(GmRun *run, const GmHmc *of, GmDensity *density, long i, double change)
{
    const State *const s = gm_of_chain(run, run->chain);
    wide *const x = gm_array(s, of->position), *const value = gm_array(s, of->value), kept = i < 0 ? 0 : x[i];
    if (i >= 0) x[i] += change;
    density(run);
    if (i >= 0) x[i] = kept;
    return value[i < 0];
}

static inline double gm_nuts_difference(GmRun *run, const GmHmc *of, GmDensity *density, long i, double h)
{
    const wide x = gm_array(gm_of_chain(run, run->chain), of->position)[i];
    const volatile wide above = x + h, below = x - h;  // as they are rounded
    return (gm_nuts_density(run, of, density, i, above - x) - gm_nuts_density(run, of, density, i, below - x)) / (above - below);
}

// Where all coordinates change by 2^-50 of themselves, some upwards and some downwards: the change of the density, and that of the
// derivative by coordinate i. A matrix that is nearly singular makes them large.
typedef struct GmShaken {
    double density, slope;
} GmShaken;

static inline GmShaken gm_nuts_shaken(GmRun *run, const GmHmc *of, GmDensity *density, long i, wide *kept)
{
    const State *const s = gm_of_chain(run, run->chain);
    wide *const x = gm_array(s, of->position), *const gradient = gm_array(s, of->gradient);
    const double lp = (density(run), *gm_array(s, of->value)), slope = gradient[i];
    memcpy(kept, x, sizeof *x * (size_t)of->coordinates);
    for (long k = 0; k < of->coordinates; k++) x[k] *= 1 + ((unsigned)k * 2654435761u >> 31 ? 0x1p-50 : -0x1p-50);
    density(run);
    const GmShaken moved = {fabs(*gm_array(s, of->value) - lp), fabs(gradient[i] - slope)};
    memcpy(x, kept, sizeof *x * (size_t)of->coordinates);
    return moved;
}

// The gradient at the chain's state against central differences, coordinate by coordinate: at most GM_COMPARED of them in one sweep. Their
// error is estimated from three widths: where a variable has lost digits, near an end of its support, a density is piecewise constant, and
// two differences may agree by chance.
static inline void gm_nuts_compare(GmRun *run, const GmHmc *of, GmDensity *density)
{
    enum { GM_COMPARED = 40, GM_WIDTHS = 6 };
    static const double widths[GM_WIDTHS] = {1e-4, 1e-2, 1e-6, 1e-8, 1e-10, 1e-12};
    const State *const s = gm_of_chain(run, run->chain);
    const wide *const x = gm_array(s, of->position), *const gradient = gm_array(s, of->gradient);
    const long skip = of->coordinates / GM_COMPARED + 1;
    wide *const kept = malloc(sizeof *kept * (size_t)of->coordinates);
    if (!kept) gm_fault(run, run->chain, of->name, -1, "there is no memory to compare its derivatives");
    for (long i = run->sweep % skip; kept && i < of->coordinates; i += skip) {
        const GmShaken moved = gm_nuts_shaken(run, of, density, i, kept);
        const double lp = (density(run), *gm_array(s, of->value)), slope = gradient[i];
        double difference = NAN, error = INFINITY;
        for (int width = 0, meets = 0; width < GM_WIDTHS && !meets; width++) {  // others where the first does not fit the scale
            const double h = widths[width] * (1 + 0.1 * fabs(x[i]));
            const double one = gm_nuts_difference(run, of, density, i, h), two = gm_nuts_difference(run, of, density, i, 2 * h);
            const double three = gm_nuts_difference(run, of, density, i, 3 * h),
                         apart = fmax(fabs(one - two), fmax(fabs(one - three), fabs(two - three)));
            const double at = one + (one - two) / 3, off = apart + (1e-13 * fabs(lp) + 30 * moved.density) / h + 30 * moved.slope;
            meets = !isfinite(at) ||
                    (fabs(slope - at) <= 1e-6 * (1 + fabs(slope)) + 10 * off && (width == 0 || off <= 1e-3 * (1 + fabs(slope))));
            if (width > 0 && !(meets && isfinite(at))) continue;
            difference = at;
            error = off;
        }
        // so far out a variable may be one of the last numbers before its end, and hardly change
        if (fabs(x[i]) > 16 && fabs(slope - difference) > 1e-6 * (1 + fabs(slope)) + 10 * error) {
            const double wide_one = gm_nuts_difference(run, of, density, i, fabs(x[i]) / 2);
            // where the density has a kink, or ends, this difference is no check
            if (!(fabs(wide_one - difference) <= 1e-3 * (1 + fabs(difference)))) difference = NAN;
        }
        gm_check_gradient(run, of->name, i, slope, difference, error);
    }
    free(kept);
}

// What the runtime makes of an HMC update, chain by chain: where it begins, or something else in its place.
static inline int gm_nuts_instead(GmRun *run, const GmHmc *of, GmDensity *density)
{
    if (!run->instead) return 0;
    int done = 0;
    if (run->chain != GM_IN_STEP) return run->instead(run, of, density);
    _Pragma("omp parallel for num_threads(run->threads) schedule(static, 1) reduction(|:done)")
    for (int c = 0; c < run->chains; c++) {
        GmRun one = *run;
        one.chain = c;
        one.inner_threads = 1;
        done |= run->instead(&one, of, density);
    }
    return done;
}

#endif

GM_LAUNCHES launch_nuts(GmRun *run, void (*density)(GmRun *), GmHmc of)
{
    if (of.alone == GM_UNLESS_MISSING && any_missing(run)) of.alone = 0;
    if (run->accept > 0) of.accept = run->accept;
    if (run->depth > 0) of.depth = run->depth;
    of.together = gm_goes_together(run, &of);
    const GmSelected *const of_all = gm_selected(run, of.selection, 0);  // on a GPU chains take the same
    of.first = of_all ? of_all->first : 0;
    of.adapts = of_all ? of_all->adapts : run->warmup;
    const int from = run->chain > 0 ? run->chain : 0, to = run->chain == GM_IN_STEP ? run->chains : from + 1;
    for (int c = from; of_all && c < to; c++)
        if (gm_selected(run, of.selection, c)->also) of.alone = 0;  // Gibbs updates have changed these unknowns
    if (run->device) {
        gm_device_hmc(run, &of, density);
        return;
    }
#if !defined(__CUDACC__)
    if (gm_nuts_instead(run, &of, density)) return;
    if (run->checking) gm_nuts_compare(run, &of, density);
    const double before = run->checking ? gm_nuts_density(run, &of, density, -1, 0) : 0;
    const int first = run->chain == GM_IN_STEP ? 0 : run->chain, end = run->chain == GM_IN_STEP ? run->chains : first + 1;
    int *const going = (int *)malloc(sizeof *going * (size_t)(end - first)), asked = end - first;
    if (!going) abort();
    for (int c = first; c < end; c++) {
        gm_nuts_begin(run, &of, c);
        going[c - first] = c;
    }
    // Chains in lockstep that have their draw are left out of what follows.
    for (int answered = 0; asked > 0; answered = 1) {
        int n = 0;
        for (int k = 0; k < asked; k++)
            if (gm_nuts_next(run, &of, going[k], answered)) going[n++] = going[k];
        asked = n;
        run->going = run->chain == GM_IN_STEP && n < run->chains ? going : NULL;
        run->n_going = n;
        if (n > 0) density(run);
    }
    run->going = NULL;
    free(going);
    if (run->checking && of.standardised && run->sweep == 0) {  // from the next sweep on coordinates of other kinds are checked
        wide *const standard = gm_array(gm_of_chain(run, run->chain), of.standardised);
        for (long i = 0; i < of.coordinates; i++) standard[i] = (double)(1 + i % 3) / 3;
    }
    if (run->checking) gm_ratio(run, run->chain, of.marginal ? NAN : gm_nuts_density(run, &of, density, -1, 0) - before, fabs(before));
#endif
}

#define NUTS(run, density, variable, room_of, place, log_density, slope, diagnostic, ...) \
    do {                                                                                  \
        gm_data(run);                                                                     \
        const GmHmc gm_hmc = {.machine = gm_of(room_of),                                  \
                              .position = gm_of(place),                                   \
                              .value = gm_of(log_density),                                \
                              .gradient = gm_of(slope),                                   \
                              .diagnostics = gm_of(diagnostic),                           \
                              .var = variable,                                            \
                              __VA_ARGS__};                                               \
        launch_nuts(run, density, gm_hmc);                                                \
    } while (0)

// ---- scales with a joint normal integrated out ----
//
//   SCALES(run, density, var, tuning, proposed, selection, sparse, sweep, trial, {"tau", gm_of(tau), 0, INFINITY, 1}, ...)
//
// draws these before the joint normal whose density, together with all that holds them, `density` evaluates (scales.h); costs of a sweep
// without this and of a trial in multiply-adds, those of the sparse factor of joint normal number `sparse` not among them. proposed: all
// that is drawn is a proposal (proposals.h). On a GPU nothing is done.
#include "scales.h"

#define SCALES(run, density, variable, room, proposed, selection, sparse, sweep, trial, ...)                                               \
    do {                                                                                                                                   \
        gm_data(run);                                                                                                                      \
        const GmScaleOf gm_list[] = {__VA_ARGS__};                                                                                         \
        launch_scales(run, density, variable, gm_of(room), proposed, gm_selected(run, selection, 0) ? selection : 0, sparse, sweep, trial, \
                      gm_list, (int)(sizeof gm_list / sizeof *gm_list));                                                                   \
    } while (0)

// ---- all chains ----

static inline void all_chains(GmRun *run, void (*what)(GmRun *))
{
    if (run->device) {
        run->chain = 0;
        what(run);
        return;
    }
#if !defined(__CUDACC__)
    if (run->chain == GM_IN_STEP) {
        gm_linalg_threads(1);
        what(run);
        return;
    }
    gm_linalg_threads(run->threads <= run->chains ? 1 : run->threads);
    const int outer = run->checking ? 1 : run->threads < run->chains ? run->threads : run->chains;
    if (outer > 1 && run->threads <= run->chains) {
#pragma omp parallel for num_threads(outer) schedule(static, 1)
        for (int c = 0; c < run->chains; c++) {
            GmRun one = *run;
            one.chain = c;
            one.inner_threads = 1;
            what(&one);
        }
        return;
    }
    for (int c = 0; c < run->chains; c++) {
        GmRun one = *run;
        one.chain = c;
        one.inner_threads = run->threads;
        what(&one);
    }
#endif
}

// A batch of sweeps of one chain: chains wait for each other once a batch, not once a sweep.
static inline void sweep_batch(GmRun *one, void (*sweep)(GmRun *))
{
    const long batch = one->batch > 0 ? one->batch : 1;
    for (long k = 0; k < batch; k++, one->sweep++) {
        sweep(one);
        if (!one->after) continue;
        for (int c = one->chain < 0 ? 0 : one->chain; c < (one->chain < 0 ? one->chains : one->chain + 1); c++) {
            GmRun after = *one;
            after.chain = c;
            one->after(&after);
        }
    }
}

// An update: what it draws; and a function that launches its kernels, or the one kernel that it launches and the iterations that the
// kernel's team shares, 0 for a KERNEL_ONCE. There may be two methods for the same variables, NUTS and Gibbs updates: method selection
// decides between them (host/selection.c).
enum { GM_EVERY_SWEEP, GM_WITHOUT_GRADIENTS, GM_WITH_GRADIENTS, GM_ON_CPU, GM_ON_GPU };

typedef struct GmUpdate {
    const char *name;
    void (*launches)(GmRun *);
    const char *kernel_name;
    GmKernel kernel;
    long work;
    int when, selection, hmc, joint;
} GmUpdate;

#define UPDATE(name, launches)                                 \
    {                                                          \
        name, launches, NULL, NULL, 0, GM_EVERY_SWEEP, 0, 0, 0 \
    }
#define UPDATE_HMC(name, launches)                             \
    {                                                          \
        name, launches, NULL, NULL, 0, GM_EVERY_SWEEP, 0, 1, 0 \
    }
#define UPDATE_WITH_GRADIENTS(name, launches, selection)                  \
    {                                                                     \
        name, launches, NULL, NULL, 0, GM_WITH_GRADIENTS, selection, 1, 0 \
    }
#define UPDATE_WITHOUT_GRADIENTS(name, launches, selection)                  \
    {                                                                        \
        name, launches, NULL, NULL, 0, GM_WITHOUT_GRADIENTS, selection, 0, 0 \
    }
#define UPDATE_ON_CPU(name, launches)                     \
    {                                                     \
        name, launches, NULL, NULL, 0, GM_ON_CPU, 0, 0, 0 \
    }
#define UPDATE_ON_GPU(name, launches)                     \
    {                                                     \
        name, launches, NULL, NULL, 0, GM_ON_GPU, 0, 0, 0 \
    }
// Of variables that the joint normal number `joint` draws together if that is taken (sparse.h): this is its update, or, -joint, one in its
// place.
#define UPDATE_JOINT(name, launches, joint)                        \
    {                                                              \
        name, launches, NULL, NULL, 0, GM_EVERY_SWEEP, 0, 0, joint \
    }
#define UPDATE_JOINT_WITHOUT_GRADIENTS(name, launches, selection, joint)         \
    {                                                                            \
        name, launches, NULL, NULL, 0, GM_WITHOUT_GRADIENTS, selection, 0, joint \
    }
#define UPDATE_TEAM(name, kernel, work)                             \
    {                                                               \
        name, NULL, GM_NAMED(kernel), work, GM_EVERY_SWEEP, 0, 0, 0 \
    }
#define UPDATE_ONCE(name, kernel)                                \
    {                                                            \
        name, NULL, GM_NAMED(kernel), 0, GM_EVERY_SWEEP, 0, 0, 0 \
    }

// Whether updates in its place draw them.
#define IN_PLACE_OF(run, number) gm_sparse_replaced(number)
#ifndef GM_LIKE_GPU
#define GM_LIKE_GPU 0  // 1, for tests: a CPU makes the updates that a GPU makes
#endif

#define TAKES_GPU_UPDATES(run) ((run)->device || (run)->like_gpu || GM_LIKE_GPU)

#include "proposals.h"

static inline int gm_takes(const GmRun *run, const GmUpdate *update, int chain)
{
    if (run->seeking) return update->hmc;
    if (update->joint) {
        const int number = update->joint > 0 ? update->joint : -update->joint;
        if (update->joint > 0 ? !gm_sparse_taken(number) : !gm_sparse_replaced(number)) return 0;
    }
    if (update->when == GM_EVERY_SWEEP || run->checking) return 1;
    if (update->when == GM_ON_CPU || update->when == GM_ON_GPU) return (update->when == GM_ON_GPU) == TAKES_GPU_UPDATES(run);
    const GmSelected *const c = gm_selected(run, update->selection, chain);
    return (c && c->gradients) == (update->when == GM_WITH_GRADIENTS) || (c && c->also);
}

static inline void gm_take(GmRun *run, const GmUpdate *update)
{
    if (update->launches) update->launches(run);
    else if (update->work) launch_team(run, update->kernel_name, update->kernel, update->work);
    else launch_once(run, update->kernel_name, update->kernel);
}

// Chains in lockstep, of which some make this update.
GM_LAUNCHES gm_take_apart(GmRun *run, const GmUpdate *update)
{
    int takes = 0;
    for (int c = 0; c < run->chains; c++) takes += gm_takes(run, update, c);
    if (takes == run->chains) gm_take(run, update);
    else
        for (int c = 0; c < run->chains && takes; c++) {
            GmRun one = *run;
            one.chain = c;
            if (gm_takes(run, update, c)) gm_take(&one, update);
        }
}

static inline void take_updates(GmRun *run, const GmUpdate *update, int n)
{
    for (const GmUpdate *end = update + n; update < end; update++)
        if (run->chain == GM_IN_STEP && update->selection) gm_take_apart(run, update);
        else if (!run->device && run->chain >= 0 && gm_chain_ended(run)) return;
        else if (gm_takes(run, update, run->chain < 0 ? 0 : run->chain)) gm_take(run, update);
}

// What is done after a kept sweep, for all chains.
#define GM_FOR_DRAWS(stage) \
    static void gm_##stage(GmRun *run) { all_chains(run, stage); }

// The emitted program's gm_model. What follows the numbers of fields and updates are other members of it.
#define GM_MODEL(model_name, file, data_count, state_count, update_count, ...)                                                      \
    static void gm_batch(GmRun *one) { sweep_batch(one, sweep); }                                                                   \
    static void gm_sweep(GmRun *run)                                                                                                \
    {                                                                                                                               \
        GmRun all = *run;                                                                                                           \
        all.chain = run->chains > 1 && !run->checking && gm_model.row_bytes && gm_model.row_bytes(run) > GM_CACHE ? GM_IN_STEP : 0; \
        all.inner_threads = 1;                                                                                                      \
        if (run->device) gm_device_sweeps(run, sweep);                                                                              \
        else all_chains(&all, gm_batch);                                                                                            \
    }                                                                                                                               \
    static double gm_joint(GmRun *run, int chain)                                                                                   \
    {                                                                                                                               \
        GmRun one = *run;                                                                                                           \
        one.chain = chain;                                                                                                          \
        one.inner_threads = 1;                                                                                                      \
        joint(&one);                                                                                                                \
        return run->device ? gm_device_result(run, chain) : one.result;                                                             \
    }                                                                                                                               \
    static const char *gm_update_name(int k) { return updates[k].name; }                                                            \
    static void gm_update_of_chain(GmRun *run) { take_updates(run, &updates[run->update], 1); }                                     \
    static int gm_update_hmc(int k) { return updates[k].hmc; }                                                                      \
    static void gm_update(GmRun *run, int k)                                                                                        \
    {                                                                                                                               \
        run->update = k;                                                                                                            \
        all_chains(run, gm_update_of_chain);                                                                                        \
        if (gm_model.refresh && ANY_MISSING(run)) gm_model.refresh(run);                                                            \
    }                                                                                                                               \
    GM_C const GmModel gm_model = {.name = model_name,                                                                              \
                                   .source = file,                                                                                  \
                                   .data = data_fields,                                                                             \
                                   .n_data = data_count,                                                                            \
                                   .data_size = sizeof(Data),                                                                       \
                                   .state = state_fields,                                                                           \
                                   .n_state = state_count,                                                                          \
                                   .state_size = sizeof(State),                                                                     \
                                   .setup = setup,                                                                                  \
                                   .sweep = gm_sweep,                                                                               \
                                   .log_joint = gm_joint,                                                                           \
                                   .n_updates = update_count,                                                                       \
                                   .update_name = gm_update_name,                                                                   \
                                   .update = gm_update,                                                                             \
                                   .update_hmc = gm_update_hmc,                                                                     \
                                   __VA_ARGS__};

#endif
