// band_factor.h -- band.h, a chain by one lane: the factor of its band, and the solves.
#ifndef GM_BAND_FACTOR_H
#define GM_BAND_FACTOR_H

typedef struct Band {
    long panels, length, width, lag, border;
    wide *B, *k, *E, *A, *h;
} Band;

DEVICE wide band_noise(Sweep at, uint32_t var, long element)
{
    Stream g = stream(at, var, (uint64_t)element);
    return normal_standard(&g);
}

// A chain of scalars, each with the one before: l = off/sqrt(d before), d = diagonal - off^2/d before.
DEVICE_CALL long band_factor_line(const Band *b, long p, wide lost)
{
    const long n = b->border, T = b->length;
    wide *B = b->B + 2 * p * T, *k = b->k + p * T, *E = b->E + p * T * n;
    wide reciprocal = 0, root = 0, before = 0;  // of the element before: 1/d, its root, k without what is before
    for (long t = 0; t < T; t++) {
        const wide off = t ? B[2 * t] : 0, diagonal = B[2 * t + 1], m = off * reciprocal, d = diagonal - off * m;
        if (!(d > lost * diagonal) || !is_finite(d)) return t + 1;
        for (long j = 0; j < n; j++) E[t * n + j] -= off * root * (t ? E[(t - 1) * n + j] : 0);
        B[2 * t] = off * root;
        before = k[t] - m * before;
        reciprocal = 1 / d;
        root = sqrt(reciprocal);
        B[2 * t + 1] = root;
        k[t] = before * root;
        for (long j = 0; j < n; j++) E[t * n + j] *= root;
    }
    return 0;
}

// Factors chain p: the diagonal holds reciprocals; k becomes L^-1 k, E becomes L^-1 E. 0, or 1 + the element whose pivot is not above
// `lost` of its diagonal element.
DEVICE_CALL long band_factor(const Band *b, long p, wide lost)
{
    const long w = b->width, m = (b->lag + 1) * w, n = b->border, rows = b->length * w;
    if (m == 2 && w == 1) return band_factor_line(b, p, lost);
    wide *B = b->B + p * rows * m, *k = b->k + p * rows, *E = b->E + p * rows * n;
    long from = -(b->lag + 1) * w;  // of the node: the first element that it may share terms with
    for (long r = 0, in_node = w; r < rows; r++, in_node++) {
        if (in_node == w) {
            in_node = 0;
            from += w;
        }
        const long begin = from > 0 ? from : 0;
        wide *row = B + r * m - from;
        for (long first = begin; first <= r; first += w)  // node by node
            for (long c = first; c < first + w && c <= r; c++) {
                const wide *of_c = B + c * m - (first - b->lag * w);
                const wide given = row[c];
                wide sum = given;
                for (long q = begin; q < c; q++) sum -= row[q] * of_c[q];
                if (c < r) {
                    row[c] = sum * of_c[c];
                    continue;
                }
                if (!(sum > lost * given) || !is_finite(sum)) return r + 1;
                row[r] = 1 / sqrt(sum);
            }
        wide sum = k[r];
        for (long q = begin; q < r; q++) sum -= row[q] * k[q];
        k[r] = sum * row[r];
        for (long j = 0; j < n; j++) {
            wide of_j = E[r * n + j];
            for (long q = begin; q < r; q++) of_j -= row[q] * E[q * n + j];
            E[r * n + j] = of_j * row[r];
        }
    }
    return 0;
}

// L'x = L^-1 (k - E z) + noise, from the last element on.
DEVICE_CALL void band_solve(const Band *b, long p, const wide *z, wide *x, Sweep at, uint32_t var)
{
    const long w = b->width, m = (b->lag + 1) * w, n = b->border, rows = b->length * w;
    wide *k = b->k + p * rows, *to = x + p * rows;
    const wide *B = b->B + p * rows * m, *E = b->E + p * rows * n;
    if (m == 2 && w == 1) {
        wide after = 0;
        for (long t = rows - 1; t >= 0; t--) {
            wide sum = k[t] + band_noise(at, var, p * rows + t);
            for (long j = 0; j < n; j++) sum -= E[t * n + j] * z[j];
            to[t] = (sum - after) * B[2 * t + 1];
            after = B[2 * t] * to[t];
        }
        return;
    }
    for (long r = rows - 1; r >= 0; r--) {
        const long from = (r / w - b->lag) * w, begin = from > 0 ? from : 0;
        const wide *row = B + r * m - from;
        wide sum = k[r] + band_noise(at, var, p * rows + r);
        for (long j = 0; j < n; j++) sum -= E[r * n + j] * z[j];
        to[r] = sum * row[r];
        for (long q = begin; q < r; q++) k[q] -= row[q] * to[r];
    }
}

// The border, when A and h have lost what the chains have: drawn into z. 0, or 1 + the element whose pivot is not positive.
DEVICE_CALL long band_border(const Band *b, wide *z, Sweep at, uint32_t var)
{
    const long n = b->border, failed = chol_factor(b->A, n);
    if (failed) return failed;
    for (long j = 0; j < n; j++) z[j] = b->h[j];
    chol_solve_lower(b->A, n, z);
    for (long j = 0; j < n; j++) z[j] += band_noise(at, var, b->panels * b->length * b->width + j);
    chol_solve_upper(b->A, n, z);
    return 0;
}

#endif
