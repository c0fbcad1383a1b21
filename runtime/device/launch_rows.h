// launch_rows.h -- passes over the rows of a matrix of data (launch.h): row passes, products with matrices, sums over rows.
#ifndef GM_LAUNCH_ROWS_H
#define GM_LAUNCH_ROWS_H

#include "launch_base.h"

#if !defined(__CUDACC__)

// Numbers that a product adds up: X'w, and 1'w if it is wanted.
GM_HOST_ONLY long gm_product_sums(const GmProduct *r) { return r->k * (r->p + (r->sums != GM_NO_FIELD)); }

// Adds what a chunk of rows has given, or begins with nothing.
GM_HOST_ONLY void gm_products_added(const State *s, const GmProduct *list, int count, size_t totals, long ntotals, const wide *sums)
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
GM_HOST_ONLY void gm_row_chunk(GmRowKernel kernel, GmRun *run, int chain, long first, long last, long p, const real *X, const wide *beta,
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
GM_HOST_ONLY void gm_add_rows(long p, const wide *sums, wide *out, wide *total)
{
    for (long j = 0; j < p; j++) out[j] += sums[j];
    if (total) *total += sums[p];
}

GM_HOST_ONLY void gm_rows(GmRowKernel kernel, GmRun *run, int chain, long n, long p, const real *X, const wide *beta, wide *out,
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
GM_HOST_ONLY void gm_rows_in_step(GmRowKernel kernel, GmRun *run, long n, long p, const real *X, size_t beta, size_t out, size_t total)
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
GM_HOST_ONLY void gm_products_chunk(GmKernel kernel, GmRun *run, int chain, long first, long last, const GmProduct *list, int count,
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
GM_HOST_ONLY void gm_products(GmKernel kernel, GmRun *run, int chain, long n, size_t totals, long ntotals, const GmProduct *list,
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

#endif

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

#endif
