// band_scan.h -- band.h on a GPU: long chains, parallel in time.
//
// A block is `lag` nodes: it shares terms with the block before and the one after alone, so that the precision is block tridiagonal. Blocks
// are cut into chunks of a size that follows from lengths alone, a lane each. Without its chunk's last block a lane cannot go on, so each
// first eliminates its own blocks given the last one before the chunk: what is left of precision and shift is a map from precision and
// shift of the block before to those of its last one. Two maps in a row are one of the same kind (the associative operation of Sarkka and
// Garcia-Fernandez 2021, in terms of precisions: what is eliminated is the Schur complement of a positive definite matrix). 32 maps are
// made one, and 32 of these, until few are left; on the way back each lane learns where it starts and does what band_factor does. x goes
// backward in the same way: x of the last block before = alpha + beta x of the block after.
//
// SIZE elements of a block and EDGE of the border are known to the compiler, so that matrices are in registers; 0 and -1: they are not, but
// at most BAND_BLOCK and BAND_EDGE. test: tests/gpu/threads/band.cpp, beside one lane
#ifndef GM_BAND_SCAN_H
#define GM_BAND_SCAN_H

#include "band_factor.h"

// maps made one; elements of the border and of a block; blocks that a lane factors while a map is made and used; chains, with so many of
// which a lane each is enough
enum { BAND_FAN = 32, BAND_EDGE = 4, BAND_BLOCK = 8, BAND_STEPS = 8, BAND_FEW = 8192 };

#define BAND_EACH(i, n) \
    _Pragma("unroll")   \
    for (int i = 0; i < (n); i++)

// A block's matrices and right sides: the border's elements and the shift.
template <int SIZE, int EDGE> struct BandSizes {
    static const int block = SIZE ? SIZE : BAND_BLOCK, sides = (EDGE < 0 ? BAND_EDGE : EDGE) + 1;
    int b, s;  // those of this chain
};

template <int SIZE, int EDGE> static __device__ __forceinline__ BandSizes<SIZE, EDGE> band_sizes(const Band *b)
{
    BandSizes<SIZE, EDGE> z;
    z.b = SIZE ? SIZE : (int)(b->lag * b->width);
    z.s = EDGE >= 0 ? EDGE + 1 : (int)b->border + 1;
    return z;
}

// Precision of the block before (its lower triangle), of the pair (rows: the last one), and of the last one; shifts, a row for each right
// side.
template <int SIZE, int EDGE> struct BandMap {
    typedef BandSizes<SIZE, EDGE> Sizes;
    wide u[Sizes::block][Sizes::block], q[Sizes::block][Sizes::block], r[Sizes::block][Sizes::block], left[Sizes::sides][Sizes::block],
        right[Sizes::sides][Sizes::block];
};

// What is known of a chain up to a block: its precision and shifts, without what is before.
template <int SIZE, int EDGE> struct BandStart {
    typedef BandSizes<SIZE, EDGE> Sizes;
    wide r[Sizes::block][Sizes::block], h[Sizes::sides][Sizes::block];
};

DEVICE long band_triangle(long b) { return b * (b + 1) / 2; }

// Numbers of a map, and of a start after them.
DEVICE long band_map_size(long b, long s) { return 2 * band_triangle(b) + b * b + 2 * b * s; }
DEVICE long band_start_size(long b, long s) { return band_triangle(b) + b * s; }
DEVICE long band_behind_size(long b) { return b * b + 2 * b; }  // alpha, beta, and x behind

template <int SIZE> static __device__ __forceinline__ wide *band_put(wide *to, wide m[][SIZE], int rows, int columns, bool triangle)
{
    BAND_EACH (i, rows)
        BAND_EACH (j, columns)
            if (!triangle || j <= i) *to++ = m[i][j];
    return to;
}

template <int SIZE>
static __device__ __forceinline__ const wide *band_get(const wide *from, wide m[][SIZE], int rows, int columns, bool triangle)
{
    BAND_EACH (i, rows)
        BAND_EACH (j, columns)
            if (!triangle || j <= i) m[i][j] = *from++;
    return from;
}

template <int SIZE, int EDGE> static __device__ __forceinline__ void band_store(wide *to, BandMap<SIZE, EDGE> *m, BandSizes<SIZE, EDGE> z)
{
    to = band_put(to, m->u, z.b, z.b, true);
    to = band_put(to, m->q, z.b, z.b, false);
    to = band_put(to, m->r, z.b, z.b, true);
    to = band_put(to, m->left, z.s, z.b, false);
    band_put(to, m->right, z.s, z.b, false);
}

template <int SIZE, int EDGE>
static __device__ __forceinline__ void band_load(const wide *from, BandMap<SIZE, EDGE> *m, BandSizes<SIZE, EDGE> z)
{
    from = band_get(from, m->u, z.b, z.b, true);
    from = band_get(from, m->q, z.b, z.b, false);
    from = band_get(from, m->r, z.b, z.b, true);
    from = band_get(from, m->left, z.s, z.b, false);
    band_get(from, m->right, z.s, z.b, false);
}

// m = L D L': 1/D on the diagonal, L below.
template <int SIZE> static __device__ __forceinline__ void band_pivots(wide m[][SIZE], int b)
{
    BAND_EACH (j, b) {
        m[j][j] = 1 / m[j][j];
        BAND_EACH (i, b)
            BAND_EACH (k, b)
                if (k > j && i >= k) m[i][k] -= m[i][j] * m[j][j] * m[k][j];
        BAND_EACH (i, b)
            if (i > j) m[i][j] *= m[j][j];
    }
}

// v = L^-1 v, v[0], v[step], ...
template <int SIZE> static __device__ __forceinline__ void band_forward(wide m[][SIZE], wide *v, int step, int b)
{
    BAND_EACH (i, b)
        BAND_EACH (k, b)
            if (k < i) v[i * step] -= m[i][k] * v[k * step];
}

// f = L^-1 f, by columns.
template <int SIZE> static __device__ __forceinline__ void band_couplings(wide m[][SIZE], wide f[][SIZE], int b)
{
    BAND_EACH (j, b) band_forward(m, &f[0][j], SIZE, b);
}

// m, and then c: the last block of m is eliminated.
template <int SIZE, int EDGE>
static __device__ __forceinline__ void band_then(BandMap<SIZE, EDGE> *m, BandMap<SIZE, EDGE> *c, BandSizes<SIZE, EDGE> z)
{
    enum { MOST = BandSizes<SIZE, EDGE>::block };
    wide g[MOST][MOST], q[MOST][MOST];
    BAND_EACH (i, z.b)
        BAND_EACH (j, z.b) {
            if (j <= i) m->r[i][j] += c->u[i][j];
            g[i][j] = c->q[j][i];
        }
    band_pivots<MOST>(m->r, z.b);
    band_couplings<MOST>(m->r, m->q, z.b);
    band_couplings<MOST>(m->r, g, z.b);
    BAND_EACH (e, z.s) {
        BAND_EACH (i, z.b) m->right[e][i] += c->left[e][i];
        band_forward<MOST>(m->r, m->right[e], 1, z.b);
        BAND_EACH (i, z.b) m->right[e][i] *= m->r[i][i];
        BAND_EACH (j, z.b) {
            wide right = c->right[e][j];
            BAND_EACH (i, z.b) {
                m->left[e][j] -= m->q[i][j] * m->right[e][i];
                right -= g[i][j] * m->right[e][i];
            }
            q[0][j] = right;
        }
        BAND_EACH (j, z.b) m->right[e][j] = q[0][j];
    }
    BAND_EACH (i, z.b)
        BAND_EACH (j, z.b) {
            wide sum = 0;
            BAND_EACH (k, z.b) {
                const wide scaled = m->r[k][k] * m->q[k][j];
                sum -= g[k][i] * scaled;
                if (j <= i) m->u[i][j] -= m->q[k][i] * scaled;
            }
            q[i][j] = sum;
        }
    wide r[MOST][MOST];
    BAND_EACH (i, z.b)
        BAND_EACH (j, z.b)
            if (j <= i) {
                wide sum = c->r[i][j];
                BAND_EACH (k, z.b) sum -= g[k][i] * m->r[k][k] * g[k][j];
                r[i][j] = sum;
            }
    BAND_EACH (i, z.b)
        BAND_EACH (j, z.b) {
            m->q[i][j] = q[i][j];
            if (j <= i) m->r[i][j] = r[i][j];
        }
}

// Through a map: what is known up to its last block.
template <int SIZE, int EDGE>
static __device__ __forceinline__ void band_pass(BandStart<SIZE, EDGE> *start, const BandMap<SIZE, EDGE> *m, BandSizes<SIZE, EDGE> z)
{
    enum { MOST = BandSizes<SIZE, EDGE>::block };
    wide g[MOST][MOST], v[MOST];
    BAND_EACH (i, z.b)
        BAND_EACH (j, z.b) {
            if (j <= i) start->r[i][j] += m->u[i][j];
            g[i][j] = m->q[j][i];
        }
    band_pivots<MOST>(start->r, z.b);
    band_couplings<MOST>(start->r, g, z.b);
    BAND_EACH (e, z.s) {
        BAND_EACH (i, z.b) v[i] = start->h[e][i] + m->left[e][i];
        band_forward<MOST>(start->r, v, 1, z.b);
        BAND_EACH (i, z.b) v[i] *= start->r[i][i];
        BAND_EACH (j, z.b) {
            wide right = m->right[e][j];
            BAND_EACH (i, z.b) right -= g[i][j] * v[i];
            start->h[e][j] = right;
        }
    }
    BAND_EACH (i, z.b) v[i] = start->r[i][i];
    BAND_EACH (i, z.b)
        BAND_EACH (j, z.b)
            if (j <= i) {
                wide sum = m->r[i][j];
                BAND_EACH (k, z.b) sum -= g[k][i] * v[k] * g[k][j];
                start->r[i][j] = sum;
            }
}

// Block k of a chain: its coupling with the block before (rows: its own), its precision and right sides. Elements beyond the last one are
// alone.
template <int SIZE, int EDGE>
static __device__ __forceinline__ void band_block(const Band *b, const wide *B, const wide *E, const wide *h, long k,
                                                  wide q[][BandSizes<SIZE, EDGE>::block], wide r[][BandSizes<SIZE, EDGE>::block],
                                                  wide right[][BandSizes<SIZE, EDGE>::block], BandSizes<SIZE, EDGE> z)
{
    const long rows = b->length * b->width, m = (b->lag + 1) * b->width;
    const int w = (int)b->width;
    BAND_EACH (i, z.b) {
        const long at = k * z.b + i;
        const int from = i / w * w;  // of the block before, the first element in its row
        const bool is = at < rows;
        const wide *row = B + (is ? at : 0) * m;
        BAND_EACH (j, z.b) {
            q[i][j] = is && k > 0 && j >= from ? row[j - from] : 0;
            if (j <= i) r[i][j] = is ? row[z.b + j - from] : (wide)(i == j);
        }
        BAND_EACH (e, z.s) right[e][i] = !is ? 0 : e + 1 < z.s ? E[at * (z.s - 1) + e] : h[at];
    }
}

// Chunks of the chains of a panel whose numbers have room; `each` of them a chunk.
DEVICE long band_chunk(const Band *b, long each)
{
    const long size = b->lag * b->width, blocks = (b->length + b->lag - 1) / b->lag;
    long chunk = size > 2 ? 8 : BAND_FAN;
    while (b->panels * ((blocks / chunk + 2) * each * 34 / 32 + 64 * each) > GM_ROOM && chunk < blocks) chunk *= 2;
    return chunk;
}

#define BAND_INLINE static __device__ __forceinline__

// those of one chain, `numbers` each; chains are one after the other
typedef struct BandLevels {
    wide *at[8];
    long count[8];
    int top;
} BandLevels;

DEVICE void band_levels(BandLevels *l, GmContext *GM, const Band *b, long chunk, long numbers)
{
    l->top = 0;
    l->count[0] = ((b->length + b->lag - 1) / b->lag + chunk - 1) / chunk;
    l->at[0] = GM->place->partial + (long)GM->chain * GM_ROOM;
    while (l->count[l->top] > BAND_FAN) {
        l->count[l->top + 1] = (l->count[l->top] + BAND_FAN - 1) / BAND_FAN;
        l->at[l->top + 1] = l->at[l->top] + b->panels * l->count[l->top] * numbers;
        l->top++;
    }
}

// What all lanes know of a scan, beside its levels: those are in memory, being looked up.
template <int SIZE, int EDGE> struct BandScan {
    const Band *b;
    BandSizes<SIZE, EDGE> z;
    long rows, m, blocks, numbers, chunk;
    long at;  // of the numbers of a chunk: where it begins
};

template <int SIZE, int EDGE> BAND_INLINE void band_scan(BandScan<SIZE, EDGE> &s, const Band *b, long at, long numbers)
{
    s.b = b;
    s.z = band_sizes<SIZE, EDGE>(b);
    s.rows = b->length * b->width;
    s.m = (b->lag + 1) * b->width;
    s.blocks = (b->length + b->lag - 1) / b->lag;
    s.at = at;
    s.numbers = numbers;
    s.chunk = band_chunk(b, numbers);
}

// The c-th chunk of all chains: blocks first .. last - 1 of chain p.
struct BandChunk {
    long p, first, last;
};
template <int SIZE, int EDGE> BAND_INLINE BandChunk band_chunk_at(const BandScan<SIZE, EDGE> &s, const BandLevels &l, long c)
{
    const long p = c / l.count[0], first = (c - p * l.count[0]) * s.chunk;
    return {p, first, first + s.chunk < s.blocks ? first + s.chunk : s.blocks};
}

// The g-th group of a level: parts first .. last - 1 of the level below, of chain p.
BAND_INLINE BandChunk band_group_at(long g, long groups, long parts)
{
    const long p = g / groups, first = (g - p * groups) * BAND_FAN;
    return {p, first, first + BAND_FAN < parts ? first + BAND_FAN : parts};
}

template <int SIZE, int EDGE> BAND_INLINE void band_no_start(BandMap<SIZE, EDGE> *m, BandSizes<SIZE, EDGE> z)
{
    BAND_EACH (i, z.b)
        BAND_EACH (j, z.b) m->u[i][j] = 0;
    BAND_EACH (e, z.s)
        BAND_EACH (i, z.b) m->left[e][i] = 0;
}

// The map of each chunk of a chain.
template <int SIZE, int EDGE> BAND_INLINE void band_maps(const BandScan<SIZE, EDGE> &s, const BandLevels &l)
{
    const BandSizes<SIZE, EDGE> z = s.z;
    for (long c = gm_thread; c < s.b->panels * l.count[0]; c += gm_threads) {
        const BandChunk k = band_chunk_at(s, l, c);
        const wide *B = s.b->B + k.p * s.rows * s.m, *h = s.b->k + k.p * s.rows, *E = s.b->E + k.p * s.rows * (z.s - 1);
        BandMap<SIZE, EDGE> all;
        band_no_start(&all, z);
        band_block<SIZE, EDGE>(s.b, B, E, h, k.first, all.q, all.r, all.right, z);
        for (long i = k.first + 1; i < k.last; i++) {
            BandMap<SIZE, EDGE> one;
            band_no_start(&one, z);
            band_block<SIZE, EDGE>(s.b, B, E, h, i, one.q, one.r, one.right, z);
            band_then(&all, &one, z);
        }
        band_store(l.at[0] + c * s.numbers, &all, z);
    }
}

// Maps of more and more chunks, up the levels.
template <int SIZE, int EDGE> BAND_INLINE void band_up(GmContext *GM, const BandScan<SIZE, EDGE> &s, const BandLevels &l)
{
    for (int up = 0; up < l.top; up++) {
        for (long g = gm_thread; g < s.b->panels * l.count[up + 1]; g += gm_threads) {
            const BandChunk k = band_group_at(g, l.count[up + 1], l.count[up]);
            const wide *from = l.at[up] + k.p * l.count[up] * s.numbers;
            BandMap<SIZE, EDGE> all, next;
            band_load(from + k.first * s.numbers, &all, s.z);
            for (long c = k.first + 1; c < k.last; c++) {
                band_load(from + c * s.numbers, &next, s.z);
                band_then(&all, &next, s.z);
            }
            band_store(l.at[up + 1] + g * s.numbers, &all, s.z);
        }
        TEAM_BARRIER();
    }
}

// Where each begins, from where those that it is a part of begin, down the levels.
template <int SIZE, int EDGE> BAND_INLINE void band_down(GmContext *GM, const BandScan<SIZE, EDGE> &s, const BandLevels &l)
{
    const BandSizes<SIZE, EDGE> z = s.z;
    for (int down = l.top; down >= 0; down--) {
        const long groups = down == l.top ? 1 : l.count[down + 1];
        for (long g = gm_thread; g < s.b->panels * groups; g += gm_threads) {
            const BandChunk k = band_group_at(g, groups, l.count[down]);
            wide *own = l.at[down] + (k.p * l.count[down] + k.first) * s.numbers;
            BandStart<SIZE, EDGE> start;
            BAND_EACH (i, z.b)
                BAND_EACH (j, z.b) start.r[i][j] = i == j;
            BAND_EACH (e, z.s)
                BAND_EACH (i, z.b) start.h[e][i] = 0;
            if (down < l.top) band_get(band_get(l.at[down + 1] + g * s.numbers + s.at, start.r, z.b, z.b, true), start.h, z.s, z.b, false);
            for (long c = k.first; c < k.last; c++, own += s.numbers) {
                BandMap<SIZE, EDGE> next;
                band_load(own, &next, z);
                band_put(band_put(own + s.at, start.r, z.b, z.b, true), start.h, z.s, z.b, false);
                band_pass(&start, &next, z);
            }
        }
        TEAM_BARRIER();
    }
}

// The block before a chunk. r: from its precision to its factor, reciprocals on the diagonal; h: to L^-1 times its right sides.
template <int SIZE, int EDGE> BAND_INLINE void band_before(BandStart<SIZE, EDGE> &before, BandSizes<SIZE, EDGE> z)
{
    BAND_EACH (j, z.b) {
        BAND_EACH (k, z.b)
            if (k < j) before.r[j][j] -= before.r[j][k] * before.r[j][k];
        before.r[j][j] = 1 / sqrt(before.r[j][j]);
        BAND_EACH (i, z.b)
            if (i > j) {
                BAND_EACH (k, z.b)
                    if (k < j) before.r[i][j] -= before.r[i][k] * before.r[j][k];
                before.r[i][j] *= before.r[j][j];
            }
        BAND_EACH (e, z.s) {
            BAND_EACH (k, z.b)
                if (k < j) before.h[e][j] -= before.r[j][k] * before.h[e][k];
            before.h[e][j] *= before.r[j][j];
        }
    }
}

// Block k of chain p, factored in its place given the block before, which it then is; failed: as band_scan_factor has it.
template <int SIZE, int EDGE>
BAND_INLINE void band_factor_block(const BandScan<SIZE, EDGE> &s, long p, long k, BandStart<SIZE, EDGE> &before, long *failed)
{
    enum { MOST = BandSizes<SIZE, EDGE>::block };
    const BandSizes<SIZE, EDGE> z = s.z;
    const int w = (int)s.b->width;
    wide *B = s.b->B + p * s.rows * s.m, *h = s.b->k + p * s.rows, *E = s.b->E + p * s.rows * (z.s - 1);
    wide q[MOST][MOST], r[MOST][MOST], right[BandSizes<SIZE, EDGE>::sides][MOST];
    band_block<SIZE, EDGE>(s.b, B, E, h, k, q, r, right, z);
    BAND_EACH (i, z.b) {
        const long row = k * z.b + i;
        const int from = i / w * w;
        wide *to = B + row * s.m;
        const bool is = row < s.rows;
        BAND_EACH (j, z.b) {
            BAND_EACH (o, z.b)
                if (o < j) q[i][j] -= q[i][o] * before.r[j][o];
            q[i][j] *= before.r[j][j];
            if (is && j >= from) to[j - from] = q[i][j];
        }
        const wide given = r[i][i];
        BAND_EACH (j, z.b)
            if (j <= i) {
                BAND_EACH (o, z.b) r[i][j] -= q[i][o] * q[j][o];
                BAND_EACH (o, z.b)
                    if (o < j) r[i][j] -= r[i][o] * r[j][o];
                if (j < i) r[i][j] *= r[j][j];
                else {
                    if (is && !*failed && (!(r[i][i] > GM_PIVOT_LOST * given) || !is_finite(r[i][i]))) *failed = p * s.rows + row + 1;
                    r[i][i] = 1 / sqrt(r[i][i]);
                }
                if (is) to[z.b + j - from] = r[i][j];
            }
        BAND_EACH (e, z.s) {
            wide v = right[e][i];
            BAND_EACH (o, z.b) v -= q[i][o] * before.h[e][o];
            BAND_EACH (o, z.b)
                if (o < i) v -= r[i][o] * right[e][o];
            right[e][i] = v *= r[i][i];
            if (!is) continue;
            if (e + 1 < z.s) E[row * (z.s - 1) + e] = v;
            else h[row] = v;
        }
    }
    BAND_EACH (i, z.b)
        BAND_EACH (j, z.b)
            if (j <= i) before.r[i][j] = r[i][j];
    BAND_EACH (e, z.s)
        BAND_EACH (i, z.b) before.h[e][i] = right[e][i];
}

// Factors all chains, as band_factor does; 0, or 1 + the element, of all chains, whose pivot this lane found not positive.
template <int SIZE, int EDGE> static __device__ __noinline__ long band_scan_factor(GmContext *GM, const Band *b)
{
    const BandSizes<SIZE, EDGE> z = band_sizes<SIZE, EDGE>(b);
    const long at = band_map_size(z.b, z.s);
    BandScan<SIZE, EDGE> s;
    band_scan(s, b, at, at + band_start_size(z.b, z.s));
    BandLevels l;
    band_levels(&l, GM, b, s.chunk, s.numbers);
    long failed = 0;
    band_maps(s, l);
    TEAM_BARRIER();
    band_up(GM, s, l);
    band_down(GM, s, l);
    for (long c = gm_thread; c < b->panels * l.count[0]; c += gm_threads) {
        const BandChunk k = band_chunk_at(s, l, c);
        BandStart<SIZE, EDGE> before;
        band_get(band_get(l.at[0] + c * s.numbers + at, before.r, z.b, z.b, true), before.h, z.s, z.b, false);
        band_before(before, z);
        for (long i = k.first; i < k.last; i++) band_factor_block(s, k.p, i, before, &failed);
    }
    TEAM_BARRIER();
    return failed;
}

// v = L'^-1 v for block k, whose factor stands in B.
template <int SIZE, int EDGE>
static __device__ __forceinline__ void band_back(wide r[][BandSizes<SIZE, EDGE>::block], wide *v, int step, BandSizes<SIZE, EDGE> z)
{
    BAND_EACH (back, z.b) {
        const int i = z.b - 1 - back;
        BAND_EACH (o, z.b)
            if (o > i) v[i * step] -= r[o][i] * v[o * step];
        v[i * step] *= r[i][i];
    }
}

// x of a chunk, from its last block to its first. again 0: as if x behind were 0 (alpha), and what it is multiplied by (beta), into the
// numbers of the chunk; 1: with x behind, which these have.
template <int SIZE, int EDGE> BAND_INLINE void band_solve_chunk(const BandScan<SIZE, EDGE> &s, const BandLevels &l, long c, int again,
                                                                const wide *edge, wide *x, Sweep at, uint32_t var)
{
    enum { MOST = BandSizes<SIZE, EDGE>::block, SIDES = BandSizes<SIZE, EDGE>::sides };
    const BandSizes<SIZE, EDGE> z = s.z;
    const BandChunk chunk = band_chunk_at(s, l, c);
    const long p = chunk.p, rows = s.rows;
    const wide *B = s.b->B + p * rows * s.m, *E = s.b->E + p * rows * (z.s - 1);
    wide *h = s.b->k + p * rows, *own = l.at[0] + c * s.numbers;
    wide alpha[MOST], beta[MOST][MOST], q[MOST][MOST], after[MOST][MOST], r[MOST][MOST], right[SIDES][MOST];
    BAND_EACH (i, z.b) {
        alpha[i] = again ? own[z.b * z.b + z.b + i] : 0;
        BAND_EACH (j, z.b) beta[i][j] = i == j;
    }
    if (chunk.last < s.blocks) band_block<SIZE, EDGE>(s.b, B, E, h, chunk.last, after, r, right, z);
    else {
        BAND_EACH (i, z.b)
            BAND_EACH (j, z.b) after[i][j] = 0;
    }
    for (long k = chunk.last - 1; k >= chunk.first; k--) {
        wide v[MOST], next[MOST][MOST];
        band_block<SIZE, EDGE>(s.b, B, E, h, k, q, r, right, z);
        BAND_EACH (i, z.b) {
            const long row = k * z.b + i;
            wide sum = right[z.s - 1][i];
            if (!again && row < rows) {
                sum += band_noise(at, var, p * rows + row);
                BAND_EACH (e, z.s - 1) sum -= right[e][i] * edge[e];
                h[row] = sum;
            }
            BAND_EACH (o, z.b) sum -= after[o][i] * alpha[o];
            v[i] = sum;
            if (!again)
                BAND_EACH (j, z.b) {
                    wide product = 0;
                    BAND_EACH (o, z.b) product -= after[o][i] * beta[o][j];
                    next[i][j] = product;
                }
        }
        band_back<SIZE, EDGE>(r, v, 1, z);
        if (!again)
            BAND_EACH (j, z.b) band_back<SIZE, EDGE>(r, &next[0][j], MOST, z);
        BAND_EACH (i, z.b) {
            alpha[i] = v[i];
            if (again && k * z.b + i < rows) x[p * rows + k * z.b + i] = v[i];
            BAND_EACH (j, z.b) {
                if (!again) beta[i][j] = next[i][j];
                after[i][j] = q[i][j];
            }
        }
    }
    if (again) return;
    BAND_EACH (i, z.b) own[i] = alpha[i];
    band_put<MOST>(own + z.b, beta, z.b, z.b, false);
}

// alpha and beta of a group, from those of its parts.
template <int SIZE, int EDGE> BAND_INLINE void band_behind_up(const BandScan<SIZE, EDGE> &s, const BandLevels &l, int up, long g)
{
    enum { MOST = BandSizes<SIZE, EDGE>::block };
    const BandSizes<SIZE, EDGE> z = s.z;
    const BandChunk k = band_group_at(g, l.count[up + 1], l.count[up]);
    const wide *from = l.at[up] + k.p * l.count[up] * s.numbers;
    wide *to = l.at[up + 1] + g * s.numbers, alpha[MOST], beta[MOST][MOST];
    BAND_EACH (i, z.b) {
        alpha[i] = 0;
        BAND_EACH (j, z.b) beta[i][j] = i == j;
    }
    for (long c = k.last - 1; c >= k.first; c--) {
        const wide *one = from + c * s.numbers;
        wide v[MOST], next[MOST][MOST];
        BAND_EACH (i, z.b) {
            v[i] = one[i];
            BAND_EACH (o, z.b) v[i] += one[z.b + i * z.b + o] * alpha[o];
            BAND_EACH (j, z.b) {
                wide sum = 0;
                BAND_EACH (o, z.b) sum += one[z.b + i * z.b + o] * beta[o][j];
                next[i][j] = sum;
            }
        }
        BAND_EACH (i, z.b) {
            alpha[i] = v[i];
            BAND_EACH (j, z.b) beta[i][j] = next[i][j];
        }
    }
    BAND_EACH (i, z.b) to[i] = alpha[i];
    band_put<MOST>(to + z.b, beta, z.b, z.b, false);
}

// x behind each part of a group, from x behind the group.
template <int SIZE, int EDGE>
BAND_INLINE void band_behind_down(const BandScan<SIZE, EDGE> &s, const BandLevels &l, int down, long g, long groups)
{
    enum { MOST = BandSizes<SIZE, EDGE>::block };
    const BandSizes<SIZE, EDGE> z = s.z;
    const long kept = z.b * z.b + z.b;
    const BandChunk k = band_group_at(g, groups, l.count[down]);
    wide behind[MOST], v[MOST];
    BAND_EACH (i, z.b) behind[i] = down < l.top ? l.at[down + 1][g * s.numbers + kept + i] : 0;
    for (long c = k.last - 1; c >= k.first; c--) {
        wide *one = l.at[down] + (k.p * l.count[down] + c) * s.numbers;
        BAND_EACH (i, z.b) {
            one[kept + i] = behind[i];
            v[i] = one[i];
            BAND_EACH (o, z.b) v[i] += one[z.b + i * z.b + o] * behind[o];
        }
        BAND_EACH (i, z.b) behind[i] = v[i];
    }
}

// As band_solve, of all chains.
template <int SIZE, int EDGE>
static __device__ __noinline__ void band_scan_solve(GmContext *GM, const Band *b, const wide *edge, wide *x, Sweep at, uint32_t var)
{
    BandScan<SIZE, EDGE> s;
    band_scan(s, b, 0, band_behind_size(band_sizes<SIZE, EDGE>(b).b));
    BandLevels l;
    band_levels(&l, GM, b, s.chunk, s.numbers);
    for (int again = 0; again < 2; again++) {
        for (long c = gm_thread; c < b->panels * l.count[0]; c += gm_threads) band_solve_chunk(s, l, c, again, edge, x, at, var);
        TEAM_BARRIER();
        if (again) break;
        for (int up = 0; up < l.top; up++) {
            for (long g = gm_thread; g < b->panels * l.count[up + 1]; g += gm_threads) band_behind_up(s, l, up, g);
            TEAM_BARRIER();
        }
        for (int down = l.top; down >= 0; down--) {
            const long groups = down == l.top ? 1 : l.count[down + 1];
            for (long g = gm_thread; g < b->panels * groups; g += gm_threads) band_behind_down(s, l, down, g, groups);
            TEAM_BARRIER();
        }
    }
}

// Whether the scan takes fewer operations one after the other than a lane for each chain does.
DEVICE bool band_is_long(const Band *b)
{
    const long size = b->lag * b->width, sides = b->border + 1, blocks = (b->length + b->lag - 1) / b->lag;
    if (size > BAND_BLOCK || b->border > BAND_EDGE || blocks == 0) return false;
    const long chunk = band_chunk(b, band_map_size(size, sides) + band_start_size(size, sides));
    long fan = 0;
    for (long n = (blocks + chunk - 1) / chunk; n > 1; n = (n + BAND_FAN - 1) / BAND_FAN) fan += n < BAND_FAN ? n : BAND_FAN;
    return blocks > BAND_STEPS * (chunk + fan) && b->panels < BAND_FEW;
}

#endif
