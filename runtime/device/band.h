// band.h -- joint normals along a chain: the precision is a band, or one for each of a panel, with a dense border.
//
//   density     proportional to exp(h'z + sum(p, k[p]'x[p]) - (z'A z + 2 sum(p, x[p]'E[p] z) + sum(p, x[p]'B[p] x[p]))/2), x[p] the elements of chain p, z those of the border
//   parameters  a chain has `length` nodes of `width` elements; elements more than `lag` nodes apart share no term. B: rows of (lag + 1)*width numbers, of element a of node t those of the nodes
//               t - lag .. t, of its own node the lower triangle. E: rows of `border` numbers. All as added up by a kernel; they become factors
//   method      B = LL' (the Cholesky factor of a band is one: Rue 2001); z from its Schur complement A - E'B^-1 E, x given z. Noise is numbered by element, so draws do not depend on who computes what
//               On a GPU a chain is a lane's, unless it is long and of scalars, each with the one before: then it is cut into chunks (below)
//   accuracy    that of a Cholesky factorisation (Higham 2002, chapter 10)
//   test        tests/stat/chains.py; tests/gpu/devices.py beside the CPU
#ifndef GM_BAND_H
#define GM_BAND_H

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
DEVICE_CALL long band_factor_line(const Band *b, long p)
{
    const long n = b->border, T = b->length;
    wide *B = b->B + 2 * p * T, *k = b->k + p * T, *E = b->E + p * T * n;
    wide reciprocal = 0, root = 0, before = 0;                 // of the element before: 1/d, its root, k without what is before
    for (long t = 0; t < T; t++) {
        const wide off = t ? B[2 * t] : 0, diagonal = B[2 * t + 1], m = off * reciprocal, d = diagonal - off * m;
        if (!(d > GM_PIVOT_LOST * diagonal) || !is_finite(d)) return t + 1;
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

// Factors chain p: the diagonal holds reciprocals; k becomes L^-1 k, E becomes L^-1 E. 0, or 1 + the element whose pivot is not positive.
DEVICE_CALL long band_factor(const Band *b, long p)
{
    const long w = b->width, m = (b->lag + 1) * w, n = b->border, rows = b->length * w;
    if (m == 2 && w == 1) return band_factor_line(b, p);
    wide *B = b->B + p * rows * m, *k = b->k + p * rows, *E = b->E + p * rows * n;
    long from = -(b->lag + 1) * w;                             // of the node: the first element that it may share terms with
    for (long r = 0, in_node = w; r < rows; r++, in_node++) {
        if (in_node == w) {
            in_node = 0;
            from += w;
        }
        const long begin = from > 0 ? from : 0;
        wide *row = B + r * m - from;
        for (long first = begin; first <= r; first += w)       // node by node
            for (long c = first; c < first + w && c <= r; c++) {
                const wide *of_c = B + c * m - (first - b->lag * w);
                const wide given = row[c];
                wide sum = given;
                for (long q = begin; q < c; q++) sum -= row[q] * of_c[q];
                if (c < r) {
                    row[c] = sum * of_c[c];
                    continue;
                }
                if (!(sum > GM_PIVOT_LOST * given) || !is_finite(sum)) return r + 1;
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

#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)

// log q(new) - log q(old) of a draw, and the size of what was added up for it.
static void band_claim(const GmRun *run, int chain, const Band *b, const wide *x, const wide *z, const wide *old_x, const wide *old_z)
{
    const long w = b->width, m = (b->lag + 1) * w, n = b->border, rows = b->length * w;
    wide v = 0, size = 0;
    for (long r = 0; r < b->panels * rows; r++) {
        const long p = r / rows, e = r - p * rows, from = (e / w - b->lag) * w, begin = from > 0 ? from : 0;
        const wide *row = b->B + r * m - from, *now = x + p * rows, *old = old_x + p * rows;
        wide by_now = 0, by_old = 0;                           // of terms with elements before, twice those off the diagonal
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
    gm_claim(run, chain, v, size);
}

// What is left when chains and border are integrated out (linalg.h, gm_marginal_dense).
static wide band_marginal(const Band *b, const wide *x, const wide *z)
{
    const long w = b->width, rows = b->length * w, n = b->border, all = b->panels * rows, m = (b->lag + 1) * w;
    wide sum = 0;
    for (long r = 0; r < all; r++) {                           // h - Jx
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
    for (long p = 0; p < b->panels; p++)
        if (band_factor(b, p)) return -INFINITY;
    for (long r = 0; r < all; r++) {                           // the diagonal holds reciprocals
        sum += 0.5 * b->k[r] * b->k[r] + log(b->B[r * m + b->lag * w + r % w]);
        for (long i = 0; i < n; i++) {
            const wide e = b->E[r * n + i];
            for (long j = 0; j <= i; j++) b->A[i * n + j] -= e * b->E[r * n + j];
            b->h[i] -= e * b->k[r];
        }
    }
    if (chol_factor(b->A, n)) return -INFINITY;
    chol_solve_lower(b->A, n, b->h);
    for (long j = 0; j < n; j++) sum += 0.5 * b->h[j] * b->h[j] - log(b->A[j * n + j]);
    return is_finite(sum) ? sum : -INFINITY;
}

static wide *band_copy(const wide *from, long n)
{
    wide *to = (wide *)malloc(sizeof(wide) * (size_t)(n + 1));
    if (!to) abort();
    for (long i = 0; i < n; i++) to[i] = from[i];
    return to;
}

#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

// ---- a long chain of scalars on a GPU: parallel in time ----
//
// Elements are cut into chunks of a size that follows from the length alone, a lane each. Without its chunk's last element a lane cannot go on, so each first eliminates its own elements given the last one before the
// chunk: what is left of precision and shift is a map from the pivot and shift of the element before to those of its last one. Two maps in a row are one of the same kind (the associative operation of Sarkka and
// Garcia-Fernandez 2021, in terms of precisions: a pivot is a sum of what is positive, so nothing cancels). 32 maps are made one, and 32 of these, until few are left; on the way back each lane learns where it starts
// and does what band_factor_line does. x goes backward in the same way: x before = alpha + beta x.

enum { BAND_FAN = 32, BAND_EDGE = 4, BAND_LONG = 2048, BAND_FEW = 256 };       // maps made one; elements of the border; least length, and most chains, of which this is faster than a lane a chain

typedef struct BandMap { wide u, q, r, left[BAND_EDGE + 1], right[BAND_EDGE + 1]; } BandMap;      // precision of the element before, of the pair, of the last one; shifts

DEVICE void band_store(wide *to, const BandMap *m, int n)
{
    to[0] = m->u;
    to[1] = m->q;
    to[2] = m->r;
    for (int j = 0; j <= n; j++) {
        to[3 + j] = m->left[j];
        to[4 + n + j] = m->right[j];
    }
}

DEVICE BandMap band_load(const wide *from, int n)
{
    BandMap m;
    m.u = from[0];
    m.q = from[1];
    m.r = from[2];
    for (int j = 0; j <= n; j++) {
        m.left[j] = from[3 + j];
        m.right[j] = from[4 + n + j];
    }
    return m;
}

// m, and then b: the last element of m is eliminated.
DEVICE void band_then(BandMap *m, const BandMap *b, int n)
{
    const wide reciprocal = 1 / (m->r + b->u), f = m->q * reciprocal, g = b->q * reciprocal;
    for (int j = 0; j <= n; j++) {
        const wide h = m->right[j] + b->left[j];
        m->left[j] -= f * h;
        m->right[j] = b->right[j] - g * h;
    }
    m->u -= m->q * f;
    m->q = -f * b->q;
    m->r = b->r - b->q * g;
}

// Chunks of a chain whose maps have room.
DEVICE long band_chunk(long length, int n)
{
    long size = BAND_FAN;
    while ((length / size + 2) * (4 + 3 * (n + 1)) * 34 / 32 + 64 * (4 + 3 * (n + 1)) > GM_ROOM) size *= 2;
    return size;
}

DEVICE_CALL long band_scan_factor(GmContext *GM, const Band *b, long p)
{
    const int n = (int)b->border, size = 4 + 3 * (n + 1), at = 3 + 2 * (n + 1);           // numbers of a map, and where those of its start are
    const long T = b->length, chunk = band_chunk(T, n);
    wide *B = b->B + 2 * p * T, *k = b->k + p * T, *E = b->E + p * T * n, *level[8];
    long count[8], failed = 0;
    int top = 0;
    count[0] = (T + chunk - 1) / chunk;
    level[0] = GM->place->partial + (long)GM->chain * GM_ROOM;
    for (long i = gm_thread; i < count[0]; i += gm_threads) {
        const long first = i * chunk, last = first + chunk < T ? first + chunk : T;
        BandMap m;
        m.u = 0;
        m.q = first ? B[2 * first] : 0;
        m.r = B[2 * first + 1];
        for (int j = 0; j <= n; j++) {
            m.left[j] = 0;
            m.right[j] = j < n ? E[first * n + j] : k[first];
        }
        for (long t = first + 1; t < last; t++) {
            BandMap one;
            one.u = 0;
            one.q = B[2 * t];
            one.r = B[2 * t + 1];
            for (int j = 0; j <= n; j++) {
                one.left[j] = 0;
                one.right[j] = j < n ? E[t * n + j] : k[t];
            }
            band_then(&m, &one, n);
        }
        band_store(level[0] + i * size, &m, n);
    }
    TEAM_BARRIER();
    while (count[top] > BAND_FAN) {
        count[top + 1] = (count[top] + BAND_FAN - 1) / BAND_FAN;
        level[top + 1] = level[top] + count[top] * size;
        for (long i = gm_thread; i < count[top + 1]; i += gm_threads) {
            const long last = (i + 1) * BAND_FAN < count[top] ? (i + 1) * BAND_FAN : count[top];
            BandMap m = band_load(level[top] + i * BAND_FAN * size, n);
            for (long c = i * BAND_FAN + 1; c < last; c++) {
                const BandMap next = band_load(level[top] + c * size, n);
                band_then(&m, &next, n);
            }
            band_store(level[top + 1] + i * size, &m, n);
        }
        top++;
        TEAM_BARRIER();
    }
    for (int l = top; l >= 0; l--) {                           // where each begins, from where those that it is a part of begin
        const long groups = l == top ? 1 : count[l + 1];
        for (long i = gm_thread; i < groups; i += gm_threads) {
            const long last = (i + 1) * BAND_FAN < count[l] ? (i + 1) * BAND_FAN : count[l];
            wide d = 1, h[BAND_EDGE + 1];
            for (int j = 0; j <= n; j++) h[j] = 0;
            if (l < top) {
                d = level[l + 1][i * size + at];
                for (int j = 0; j <= n; j++) h[j] = level[l + 1][i * size + at + 1 + j];
            }
            for (long c = i * BAND_FAN; c < last; c++) {
                wide *own = level[l] + c * size;
                const BandMap m = band_load(own, n);
                own[at] = d;
                for (int j = 0; j <= n; j++) own[at + 1 + j] = h[j];
                const wide g = m.q / (d + m.u);
                for (int j = 0; j <= n; j++) h[j] = m.right[j] - g * (h[j] + m.left[j]);
                d = m.r - m.q * g;
            }
        }
        TEAM_BARRIER();
    }
    for (long i = gm_thread; i < count[0]; i += gm_threads) {
        const long first = i * chunk, last = first + chunk < T ? first + chunk : T;
        const wide *own = level[0] + i * size;
        wide h[BAND_EDGE + 1], reciprocal = 1 / own[at], root = sqrt(reciprocal);
        for (int j = 0; j <= n; j++) h[j] = own[at + 1 + j];
        for (long t = first; t < last; t++) {
            const wide off = t ? B[2 * t] : 0, diagonal = B[2 * t + 1], m = off * reciprocal, d = diagonal - off * m;
            if (!failed && (!(d > GM_PIVOT_LOST * diagonal) || !is_finite(d))) failed = t + 1;
            B[2 * t] = off * root;
            reciprocal = 1 / d;
            root = sqrt(reciprocal);
            B[2 * t + 1] = root;
            for (int j = 0; j < n; j++) {
                h[j] = E[t * n + j] - m * h[j];
                E[t * n + j] = h[j] * root;
            }
            h[n] = k[t] - m * h[n];
            k[t] = h[n] * root;
        }
    }
    TEAM_BARRIER();
    return failed;
}

DEVICE_CALL void band_scan_solve(GmContext *GM, const Band *b, long p, const wide *z, wide *x, Sweep at, uint32_t var)
{
    const int n = (int)b->border;
    const long T = b->length, chunk = band_chunk(T, n);
    const wide *B = b->B + 2 * p * T, *E = b->E + p * T * n;
    wide *k = b->k + p * T, *to = x + p * T, *level[8];        // alpha, beta, and x behind
    long count[8];
    int top = 0;
    count[0] = (T + chunk - 1) / chunk;
    level[0] = GM->place->partial + (long)GM->chain * GM_ROOM;
    for (long i = gm_thread; i < count[0]; i += gm_threads) {
        const long first = i * chunk, last = first + chunk < T ? first + chunk : T;
        wide alpha = 0, beta = 1;
        for (long t = last - 1; t >= first; t--) {
            const wide l = t + 1 < T ? B[2 * t + 2] : 0, root = B[2 * t + 1];
            wide sum = k[t] + band_noise(at, var, p * T + t);
            for (int j = 0; j < n; j++) sum -= E[t * n + j] * z[j];
            k[t] = sum;
            alpha = (sum - l * alpha) * root;
            beta *= -l * root;
        }
        level[0][3 * i] = alpha;
        level[0][3 * i + 1] = beta;
    }
    TEAM_BARRIER();
    while (count[top] > BAND_FAN) {
        count[top + 1] = (count[top] + BAND_FAN - 1) / BAND_FAN;
        level[top + 1] = level[top] + 3 * count[top];
        for (long i = gm_thread; i < count[top + 1]; i += gm_threads) {
            const long last = (i + 1) * BAND_FAN < count[top] ? (i + 1) * BAND_FAN : count[top];
            wide alpha = 0, beta = 1;
            for (long c = last - 1; c >= i * BAND_FAN; c--) {
                alpha = level[top][3 * c] + level[top][3 * c + 1] * alpha;
                beta *= level[top][3 * c + 1];
            }
            level[top + 1][3 * i] = alpha;
            level[top + 1][3 * i + 1] = beta;
        }
        top++;
        TEAM_BARRIER();
    }
    for (int l = top; l >= 0; l--) {
        const long groups = l == top ? 1 : count[l + 1];
        for (long i = gm_thread; i < groups; i += gm_threads) {
            const long last = (i + 1) * BAND_FAN < count[l] ? (i + 1) * BAND_FAN : count[l];
            wide behind = l < top ? level[l + 1][3 * i + 2] : 0;
            for (long c = last - 1; c >= i * BAND_FAN; c--) {
                level[l][3 * c + 2] = behind;
                behind = level[l][3 * c] + level[l][3 * c + 1] * behind;
            }
        }
        TEAM_BARRIER();
    }
    for (long i = gm_thread; i < count[0]; i += gm_threads) {
        const long first = i * chunk, last = first + chunk < T ? first + chunk : T;
        wide behind = level[0][3 * i + 2];
        for (long t = last - 1; t >= first; t--) to[t] = behind = (k[t] - (t + 1 < T ? B[2 * t + 2] : 0) * behind) * B[2 * t + 1];
    }
    TEAM_BARRIER();
}

DEVICE int band_is_long(const Band *b) { return b->width == 1 && b->lag == 1 && b->border <= BAND_EDGE && b->length >= BAND_LONG && b->panels < BAND_FEW; }

#endif

DEVICE_CALL void draw_band(GmContext *GM, Sweep at, uint32_t var, const char *name, const Band *b, wide *x, wide *z)
{
    const long rows = b->length * b->width, n = b->border, all = b->panels * rows;
    long failed = 0;
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
    Band kept = *b;
    wide *old_x = NULL, *old_z = NULL;
    if (GM->run->marginal) {                                   // scales.h: nothing is drawn
        if (GM->lane == 0 && GM->run->marginal == GM_MARGINAL) GM->run->result += band_marginal(b, x, z);
        return;
    }
    if (CHECKING && GM->lane == 0) {
        kept.B = band_copy(b->B, all * (b->lag + 1) * b->width);
        kept.k = band_copy(b->k, all);
        kept.E = band_copy(b->E, all * n);
        kept.A = band_copy(b->A, n * n);
        kept.h = band_copy(b->h, n);
        old_x = band_copy(x, all);
        old_z = band_copy(z, n);
    }
    TEAM_BARRIER();
#endif
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    const int scan = band_is_long(b);
    for (long p = 0; p < b->panels && scan; p++) {
        const long bad = band_scan_factor(GM, b, p);
        if (bad) failed = p * rows + bad;
    }
#else
    const int scan = 0;
#endif
    if (!scan)
        LANES (p, b->panels) {
            const long bad = band_factor(b, p);
            if (bad) failed = p * rows + bad;
        }
    if (failed) FAULT(name, failed - 1, NOT_POSITIVE_DEFINITE);
    TEAM_BARRIER();
    if (n) {
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
        for (long i = 0; i < n; i++)
            for (long j = 0; j <= i + 1; j++) {
                wide sum = 0;
                SUM_ALONG (r, all, &sum) sum += b->E[r * n + i] * (j <= i ? b->E[r * n + j] : b->k[r]);
                ONE_LANE {
                    if (j <= i) b->A[i * n + j] -= sum;
                    else b->h[i] -= sum;
                }
            }
#else
        ONE_LANE {
            for (long r = 0; r < all; r++)
                for (long i = 0; i < n; i++) {
                    const wide e = b->E[r * n + i];
                    for (long j = 0; j <= i; j++) b->A[i * n + j] -= e * b->E[r * n + j];
                    b->h[i] -= e * b->k[r];
                }
        }
#endif
        ONE_LANE {
            const long bad = band_border(b, z, at, var);
            if (bad) FAULT(name, all + bad - 1, NOT_POSITIVE_DEFINITE);
        }
        TEAM_BARRIER();
    }
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    for (long p = 0; p < b->panels && scan; p++) band_scan_solve(GM, b, p, z, x, at, var);
#endif
    if (!scan) LANES (p, b->panels) band_solve(b, p, z, x, at, var);
    TEAM_BARRIER();
    ONE_LANE {
        if (all) VERIFY(x[all - 1], name, all - 1);
    }
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
    if (CHECKING && GM->lane == 0) {
        band_claim(GM->run, GM->chain, &kept, x, z, old_x, old_z);
        free(kept.B);
        free(kept.k);
        free(kept.E);
        free(kept.A);
        free(kept.h);
        free(old_x);
        free(old_z);
    }
#endif
}

#define DRAW_BAND(var, name, band, x, z) draw_band(GM, at, VAR_##var, name, band, x, z)

#endif
