// whitened.h -- vectors with a normal prior as images of whitened ones, for HMC, which knows neither its mean nor its covariance.
//
// An element with those before it has a normal distribution, of which the centre M[k] and the sd s[k] are known; it is standardised by a
// share c[k] of its own, as in line.h:
//
//   by covariance  L L':   z[k] = (u[k] - M[k]) / s[k],    M[k] = m[k] + sum(L[k, i] z[i], i < k),                s[k] = L[k, k]
//   by precision   L L':   from the last to the first,     M[k] = m[k] - sum(L[i, k] (u[i] - m[i]), i > k) s[k],  s[k] = 1 / L[k, k]
//
//   u[k] = M[k] + s[k]^c[k] (q[k] - (1 - c[k]) M[k])       log |du/dq| = sum(c log s)
//
// c = 0 leaves u as it is, c = 1 makes q white noise: u = m + L q, or L' (u - m) = q.
//
//   chain      by: the derivative of a function f by u, becomes that by q. by_mean: what f gives to m besides. left, right, pivot: f + log
//              |du/dq| has the derivatives left[i] right[k] by L[i, k], i > k, and pivot[k] by L[k, k]
//
// L is n by n, row-major, of which the lower triangle is read. Nothing may overlap. Source: the normal distribution's conditionals; reverse
// accumulation (docs/gradients.md); Papaspiliopoulos, Roberts and Skold 2007, Statistical Science 22. Accuracy: that of products and solves
// with L. Test: tests/runtime/whitened.c
#ifndef GM_WHITENED_H
#define GM_WHITENED_H

#include "line.h"

DEVICE wide whitened_sd(const wide *L, long n, long k, int precision) { return precision ? 1 / L[k * n + k] : L[k * n + k]; }

// M[k], r being u - m; of r, or by covariance z, the elements that it is made of are there.
DEVICE wide whitened_centre(long n, const wide *L, long k, const wide *m, const wide *r, const wide *z, int precision)
{
    wide sum = 0;
    for (long i = 0; i < k && !precision; i++) sum += L[k * n + i] * z[i];
    for (long i = k + 1; i < n && precision; i++) sum -= L[i * n + k] * r[i];
    return m[k] + (precision ? sum / L[k * n + k] : sum);
}

// u - m from q.
DEVICE void whitened_out(long n, const wide *L, const wide *c, const wide *m, const wide *q, wide *r, wide *z, int precision)
{
    for (long e = 0; e < n; e++) {
        const long k = precision ? n - 1 - e : e;
        const wide M = whitened_centre(n, L, k, m, r, z, precision), s = whitened_sd(L, n, k, precision),
                   u = c[k] == 0 ? q[k] : from_standard(q[k], c[k], M, standard_scale(c[k], s));
        r[k] = u - m[k];
        if (!precision) z[k] = (u - M) / s;
    }
}

// q of u, unless it is that already: coordinates stay where they are if the vector does.
DEVICE void whitened_in(long n, const wide *L, const wide *c, const wide *m, const wide *u, wide *q, wide *r, wide *z, int precision)
{
    int stays = 1;
    whitened_out(n, L, c, m, q, r, z, precision);
    for (long k = 0; k < n; k++) stays &= m[k] + r[k] == u[k];
    for (long e = 0; e < n && !stays; e++) {
        const long k = precision ? n - 1 - e : e;
        const wide M = whitened_centre(n, L, k, m, r, z, precision), s = whitened_sd(L, n, k, precision);
        q[k] = c[k] == 0 ? u[k] : to_standard(u[k], c[k], M, standard_scale(c[k], s));
        r[k] = u[k] - m[k];
        if (!precision) z[k] = (u[k] - M) / s;
    }
}

DEVICE_CALL void whitened_from(long n, const wide *L, const wide *c, const wide *m, const wide *q, wide *r, wide *z)
{
    whitened_out(n, L, c, m, q, r, z, 0);
}
DEVICE_CALL void whitened_from_precision(long n, const wide *L, const wide *c, const wide *m, const wide *q, wide *r)
{
    whitened_out(n, L, c, m, q, r, NULL, 1);
}
DEVICE_CALL void whitened_to(long n, const wide *L, const wide *c, const wide *m, const wide *u, wide *q, wide *r, wide *z)
{
    whitened_in(n, L, c, m, u, q, r, z, 0);
}
DEVICE_CALL void whitened_to_precision(long n, const wide *L, const wide *c, const wide *m, const wide *u, wide *q, wide *r)
{
    whitened_in(n, L, c, m, u, q, r, NULL, 1);
}

// From the last element back: what M[k] gets goes on to each z before it, and pivot adds that up until the loop comes to them. The z on the
// right side is given.
DEVICE_CALL void whitened_chain(long n, const wide *L, const wide *c, const wide *z, wide *by, wide *by_mean, wide *left, wide *pivot)
{
    for (long k = 0; k < n; k++) pivot[k] = 0;
    for (long k = n - 1; k >= 0; k--) {
        const wide s = L[k * n + k], scale = standard_scale(c[k], s), later = pivot[k] / s;
        left[k] = by_mean[k] = standard_by_centre(c[k], scale, by[k]) - (1 - c[k]) * scale * later;
        pivot[k] = c[k] * (by[k] * z[k] + 1 / s) - (1 - c[k]) * later * z[k];
        by[k] = scale * (by[k] + later);
        for (long i = 0; i < k; i++) pivot[i] += L[k * n + i] * left[k];
    }
}

// From the first element on; what stands on the left is -r.
DEVICE_CALL void whitened_chain_precision(long n, const wide *L, const wide *c, const wide *r, wide *by, wide *by_mean, wide *left,
                                          wide *right, wide *pivot)
{
    for (long k = 0; k < n; k++) pivot[k] = 0;
    for (long k = 0; k < n; k++)  // sum(L[i, k] r[i], i > k)
        for (long i = 0; i < k; i++) pivot[i] += L[k * n + i] * r[k];
    for (long k = 0; k < n; k++) {
        const wide s = 1 / L[k * n + k], apart = -pivot[k] * s, z = (r[k] - apart) / s;  // apart: M[k] - m[k]
        wide onward = 0;
        for (long i = 0; i < k; i++) onward += L[k * n + i] * right[i];
        const wide by_u = by[k] - onward, scale = standard_scale(c[k], s), by_centre = standard_by_centre(c[k], scale, by_u);
        left[k] = -r[k];
        right[k] = by_centre * s;
        pivot[k] = -c[k] * (by_u * z + 1 / s) * s * s - right[k] * apart;
        by[k] = scale * by_u;
        by_mean[k] = by_centre + onward;
    }
}

#endif
