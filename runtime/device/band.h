// band.h -- joint normals along a chain: the precision is a band, or one for each of a panel, with a dense border.
//
//   density     proportional to exp(h'z + sum(p, k[p]'x[p]) - (z'A z + 2 sum(p, x[p]'E[p] z) + sum(p, x[p]'B[p] x[p]))/2), x[p] the
//               elements of chain p, z those of the border
//   parameters  a chain has `length` nodes of `width` elements; elements more than `lag` nodes apart share no term. B: rows of (lag +
//               1)*width numbers, of element a of node t those of the nodes t - lag .. t, of its own node the lower triangle. E: rows of
//               `border` numbers. All as added up by a kernel; they become factors
//   method      B = LL' (the Cholesky factor of a band is one: Rue 2001); z from its Schur complement A - E'B^-1 E, x given z. Noise is
//               numbered by element, so draws do not depend on who computes what On a GPU a chain is a lane's, unless it is long: then it
//               is cut into chunks (band_scan.h)
//   accuracy    that of a Cholesky factorisation (Higham 2002, chapter 10)
//   test        tests/stat/chains.py; tests/gpu/devices.py beside the CPU
#ifndef GM_BAND_H
#define GM_BAND_H

#include "band_factor.h"

#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)

// log q(new) - log q(old) of a draw, and the size of what was added up for it.
static void band_ratio(const GmRun *run, int chain, const Band *b, const wide *x, const wide *z, const wide *old_x, const wide *old_z)
{
    const long w = b->width, m = (b->lag + 1) * w, n = b->border, rows = b->length * w;
    wide v = 0, size = 0;
    for (long r = 0; r < b->panels * rows; r++) {
        const long p = r / rows, e = r - p * rows, from = (e / w - b->lag) * w, begin = from > 0 ? from : 0;
        const wide *row = b->B + r * m - from, *now = x + p * rows, *old = old_x + p * rows;
        wide by_now = 0, by_old = 0;  // of terms with elements before, twice those off the diagonal
        for (long q = begin; q < e; q++) {
            by_now += row[q] * now[q];
            by_old += row[q] * old[q];
        }
        for (long j = 0; j < n; j++) {
            by_now += b->E[r * n + j] * z[j];
            by_old += b->E[r * n + j] * old_z[j];
        }
        const wide to = now[e] * (b->k[r] - by_now - 0.5 * row[e] * now[e]), was = old[e] * (b->k[r] - by_old - 0.5 * row[e] * old[e]);
        v += to - was;
        size += fabs(to) + fabs(was);
    }
    for (long j = 0; j < n; j++) {
        wide by_now = 0.5 * b->A[j * n + j] * z[j], by_old = 0.5 * b->A[j * n + j] * old_z[j];
        for (long i = 0; i < j; i++) {
            by_now += b->A[j * n + i] * z[i];
            by_old += b->A[j * n + i] * old_z[i];
        }
        v += z[j] * (b->h[j] - by_now) - old_z[j] * (b->h[j] - by_old);
        size += fabs(z[j] * (b->h[j] - by_now)) + fabs(old_z[j] * (b->h[j] - by_old));
    }
    gm_ratio(run, chain, v, size);
}

static wide *band_copy(const wide *from, long n)
{
    wide *to = (wide *)malloc(sizeof(wide) * (size_t)(n + 1));
    if (!to) abort();
    for (long i = 0; i < n; i++) to[i] = from[i];
    return to;
}

// What is left when chains and border are integrated out (linalg.h, gm_marginal_dense).
static wide band_marginal(const Band *b, const wide *x, const wide *z)
{
    const long w = b->width, rows = b->length * w, n = b->border, all = b->panels * rows, m = (b->lag + 1) * w;
    wide sum = 0;
    for (long r = 0; r < all; r++) {  // h - Jx
        const long p = r / rows, e = r - p * rows, from = (e / w - b->lag) * w, begin = from > 0 ? from : 0;
        const wide *row = b->B + r * m - from, *of = x + p * rows;
        wide *k = b->k + p * rows;
        for (long q = begin; q < e; q++) {
            k[e] -= row[q] * of[q];
            k[q] -= row[q] * of[e];
        }
        k[e] -= row[e] * of[e];
        for (long j = 0; j < n; j++) {
            k[e] -= b->E[r * n + j] * z[j];
            b->h[j] -= b->E[r * n + j] * of[e];
        }
    }
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) b->h[i] -= b->A[(i > j ? i : j) * n + (i > j ? j : i)] * z[j];
    wide *diagonal = band_copy(b->A, n * n);  // without what the chains take from it
    for (long p = 0; p < b->panels && sum == 0; p++)
        if (band_factor(b, p, GM_PIVOT_POOR)) sum = -INFINITY;
    for (long r = 0; r < all && is_finite(sum); r++) {  // the diagonal holds reciprocals
        sum += 0.5 * b->k[r] * b->k[r] + log(b->B[r * m + b->lag * w + r % w]);
        for (long i = 0; i < n; i++) {
            const wide e = b->E[r * n + i];
            for (long j = 0; j <= i; j++) b->A[i * n + j] -= e * b->E[r * n + j];
            b->h[i] -= e * b->k[r];
        }
    }
    if (!is_finite(sum) || chol_factor(b->A, n)) sum = -INFINITY;
    else chol_solve_lower(b->A, n, b->h);
    for (long j = 0; j < n && is_finite(sum); j++) {
        const wide root = b->A[j * n + j];
        sum = root * root < GM_PIVOT_POOR * diagonal[j * n + j] ? -INFINITY : sum + 0.5 * b->h[j] * b->h[j] - log(root);
    }
    free(diagonal);
    return is_finite(sum) ? sum : -INFINITY;
}

#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#include "band_scan.h"
#define BAND_DRAW template <int SIZE, int EDGE> static __device__ __noinline__ void

// The border given what the chains leave of it: A - E'E, h - E'k.
DEVICE void band_to_border(GmContext *GM, const Band *b)
{
    const long n = b->border, all = b->panels * b->length * b->width;
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i + 1; j++) {
            wide sum = 0;
            SUM_ALONG (r, all, &sum) sum += b->E[r * n + i] * (j <= i ? b->E[r * n + j] : b->k[r]);
            ONE_LANE
            {
                if (j <= i) b->A[i * n + j] -= sum;
                else b->h[i] -= sum;
            }
        }
}
#else
#define BAND_DRAW DEVICE_CALL void

DEVICE void band_to_border(GmContext *GM, const Band *b)
{
    const long n = b->border, all = b->panels * b->length * b->width;
    ONE_LANE
    {
        for (long r = 0; r < all; r++)
            for (long i = 0; i < n; i++) {
                const wide e = b->E[r * n + i];
                for (long j = 0; j <= i; j++) b->A[i * n + j] -= e * b->E[r * n + j];
                b->h[i] -= e * b->k[r];
            }
    }
}

// What --check compares the draw with: the block before it, and what was drawn last.
typedef struct BandKept {
    Band b;
    wide *x, *z;
} BandKept;

DEVICE BandKept band_keep(const Band *b, const wide *x, const wide *z)
{
    const long n = b->border, all = b->panels * b->length * b->width;
    BandKept kept = {*b, NULL, NULL};
    kept.b.B = band_copy(b->B, all * (b->lag + 1) * b->width);
    kept.b.k = band_copy(b->k, all);
    kept.b.E = band_copy(b->E, all * n);
    kept.b.A = band_copy(b->A, n * n);
    kept.b.h = band_copy(b->h, n);
    kept.x = band_copy(x, all);
    kept.z = band_copy(z, n);
    return kept;
}

DEVICE void band_kept_free(BandKept *kept)
{
    free(kept->b.B);
    free(kept->b.k);
    free(kept->b.E);
    free(kept->b.A);
    free(kept->b.h);
    free(kept->x);
    free(kept->z);
}
#endif

BAND_DRAW draw_band(GmContext *GM, Sweep at, uint32_t var, const char *name, const Band *b, wide *x, wide *z)
{
    const long rows = b->length * b->width, n = b->border, all = b->panels * rows;
    long failed = 0;
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
    BandKept kept = {*b, NULL, NULL};
    if (GM->run->marginal) {  // scales.h: nothing is drawn
        if (GM->lane == 0 && GM->run->marginal == GM_MARGINAL) GM->run->result += band_marginal(b, x, z);
        return;
    }
    if (CHECKING && GM->lane == 0) kept = band_keep(b, x, z);
    TEAM_BARRIER();
    const int scan = 0;
#else
    const int scan = band_is_long(b);
    if (scan) failed = band_scan_factor<SIZE, EDGE>(GM, b);
#endif
    if (!scan)
        LANES (p, b->panels) {
            const long bad = band_factor(b, p, GM_PIVOT_LOST);
            if (bad) failed = p * rows + bad;
        }
    if (failed) FAULT(name, failed - 1, NOT_POSITIVE_DEFINITE);
    TEAM_BARRIER();
    if (n) {
        band_to_border(GM, b);
        ONE_LANE
        {
            const long bad = band_border(b, z, at, var);
            if (bad) FAULT(name, all + bad - 1, NOT_POSITIVE_DEFINITE);
        }
        TEAM_BARRIER();
    }
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    if (scan) band_scan_solve<SIZE, EDGE>(GM, b, z, x, at, var);
#endif
    if (!scan)
        LANES (p, b->panels) band_solve(b, p, z, x, at, var);
    TEAM_BARRIER();
    ONE_LANE
    {
        if (all) VERIFY(x[all - 1], name, all - 1);
    }
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
    if (CHECKING && GM->lane == 0) {
        band_ratio(GM->run, GM->chain, &kept.b, x, z, kept.x, kept.z);
        band_kept_free(&kept);
    }
#endif
}

// size: elements of `lag` nodes, 0: not known to the compiler; edge: elements of the border, -1: not known.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define DRAW_BAND(var, name, size, edge, band, x, z) draw_band<size, edge>(GM, at, VAR_##var, name, band, x, z)
#else
#define DRAW_BAND(var, name, size, edge, band, x, z) draw_band(GM, at, VAR_##var, name, band, x, z)
#endif

#endif
