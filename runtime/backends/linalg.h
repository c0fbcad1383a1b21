// linalg.h -- linear algebra over LAPACK, and draws from joint normals given by precision and shift.
//
// All matrices are row-major and symmetric ones are stored whole. Functions that draw return 0, or k if the k-th pivot of the
// precision matrix is not positive (nothing was drawn then) or the k-th element drawn is not finite. The standard normals are parts of
// the stream g (rng.h), so the variable that g is keyed by has no other elements.
#ifndef GM_LINALG_H
#define GM_LINALG_H

#include <stddef.h>
#include "../device/rng.h"

// Threads that share one call. Not to be called while chains run in parallel. Results do not depend on it.
void gm_linalg_threads(int n);

// out[p, p] = scale * X'X for X[n, p]. Both triangles are filled.
void gram_matrix(long n, long p, double scale, const double *X, double *out);

// out[p, p] = X' diag(w) X for X[n, p] and weights w[n] of any sign. Both triangles are filled.
void weighted_gram(long n, long p, const double *X, const double *w, double *out);

// out[p] = X'w.
void row_sums(long n, long p, const double *X, const double *w, double *out);

// Parts of a row pass over rows X[n, p]: dot[n] = X beta; out[p] += X'w.
void rows_times(long n, long p, const double *X, const double *beta, double *dot);
void rows_added(long n, long p, const double *X, const double *w, double *out);

// The same with a matrix, of which a row has k outputs: eta[n, k] = X B, B[p, k] or, transposed, B[k, p]; out += X'W for W[n, k], which
// lies as B does.
void rows_times_matrix(long n, long p, long k, const double *X, const double *B, int transposed, double *eta);
void rows_added_matrix(long n, long p, long k, const double *X, const double *W, int transposed, double *out);

// A scale move together with the draw. h is linear in latents z, which otherwise enter the density by exp(-Q/2), Q quadratic, and by the
// sign of each. With x integrated out the density of s along (s z) is s^(count-1) exp(-s^2 (Q - h'J^-1 h)/2). So s^2 is drawn from
// gamma(count/2, (Q - h'J^-1 h)/2), h is scaled, x drawn (Liu and Wu 1999; Hobert and Marchev 2008). The caller scales z.
typedef struct GmScale {
    double Q, count, scale;
} GmScale;

// A stream whose `has_spare` is this gives no noise: then joint normals are at their means.
enum { GM_NO_NOISE = -1 };

// x[n] ~ N(J^-1 h, J^-1): J = LL', v = L^-1 h, x = L'^-1 (v + e), e standard normal. One Cholesky, no inverse (Rue 2001).
// J and h are destroyed. scale: NULL, or a scale move to make first.
long gm_normal_dense(Stream *g, long n, double *J, double *h, double *x, GmScale *scale);

// (x[n], u[m]) ~ N with precision [[J, E'], [E, diag(D)]] and shift (h, k); E is m by n. The effects u are integrated out to draw
// x from the Schur complement J - E' D^-1 E, then drawn given x, independently. J, h, E, k are destroyed.
long gm_normal_arrow(Stream *g, long n, double *J, double *h, double *x, long m, const double *D, double *E, double *k, double *u,
                     GmScale *scale);

// The same law from n <= p rows: precision diag(D) + rows' rows and shift h + rows' y, where row i is
// sqrt(w_i) phi_i' and y_i = c_i / sqrt(w_i) if the density of x is exp(h'x - x'Dx/2 + sum of c_i phi_i'x - w_i (phi_i'x)^2/2).
// Nothing p by p is formed: with R = rows D^-1/2, k = D^-1/2 h, M = I + R R' and standard normals e1, e2
//     x = D^-1/2 (u + R' M^-1 (y - R u + e2)),   u = k + e1
// (Bhattacharya, Chakraborty and Mallick 2016 for h = 0, y of weight one). One product n^2 p, one Cholesky n^3/3. The likelihood's shift
// comes as y, not as rows' y: that keeps the digits where a prior is vague. D[p], h[p], rows[n, p] and y[n] are destroyed; M[n, n] is work
// space. Returns 0; k <= p if D[k] is not positive or x[k] not finite, counted from 1; p + k if the k-th pivot of M is not positive.
long gm_normal_rows(Stream *g, long n, long p, double *D, double *h, double *rows, double *y, double *M, double *x, GmScale *scale);

// What is left of the density of x, exp(h'x - x'Jx/2), over its value at the x given, when x is integrated out: g'J^-1 g/2 - log|J|/2 with
// g = h - Jx; of an arrow, and from few rows, the same with precision and shift as above; of `count` independent normals, that of all.
// -infinity where J is not positive definite, or pivots have too few digits (GM_PIVOT_POOR). All but x and u is destroyed. x may be NULL in
// the first two: 0.
double gm_marginal_dense(long n, double *J, double *h, const double *x);
double gm_marginal_each(long count, long n, double *J, double *h, const double *x);
double gm_marginal_arrow(long n, double *J, double *h, const double *x, long m, const double *D, double *E, double *k, const double *u);
double gm_marginal_rows(long n, long p, double *D, double *h, double *rows, double *y, double *M, const double *x);

// --check: log density up to a constant at the old value is kept by `before`; `after` gives the difference at the new one.
void gm_quadratic_before(long n, const double *J, const double *h, const double *x);
double gm_quadratic_after(const double *x);
double gm_quadratic_size(void);  // of the terms that the last ratio added up
void gm_arrow_before(long n, const double *J, const double *h, const double *x, long m, const double *D, const double *E, const double *k,
                     const double *u);
double gm_arrow_after(const double *x, const double *u);
void gm_rows_before(long n, long p, const double *D, const double *h, const double *rows, const double *y, const double *x);
double gm_rows_after(const double *x);

// A copy of x[n] that the next call of gm_save of this thread overwrites.
const double *gm_save(const double *x, long n);
const double *gm_save_logs(const double *x, const double *logs, long n);  // of log_kept(x, logs), device/special.h
const double *gm_saved(void);

#endif
