// keyed_sums.h -- sums by group into places of the group, on a GPU: rows in the order of their groups, a block for a group, lanes for its
// places.
//
//   ORDER_KEYED(i, n, groups, key, keys, first, rows, spare);         key of row i, from 1: the team puts rows in the order of their keys,
//                                                                     equal keys in the order of the rows
//   EACH_SEGMENT (groups, n, first, places) {                         places of a group, of all totals
//       SEGMENT_PLACES2 (i, rows, j, n, k, m) {                       rows i of the group, and its n by m places
//           ADD_TOTAL(0, s->a[(g[i] - 1) * n * m + j * m + k], x);    total 0 of 4: the place grows by the sum of x over the rows
//       }
//   }
//
// A lane has four places. Where that needs fewer lanes than there are, others share the rows of a place, and add up what they have in a
// fixed order. A group that is large beside the others is cut into parts, a block each, whose totals wait in the room for partial sums. The
// order of all additions follows from the rows and their keys alone. The body is run once more after the rows, for one of them again: then
// ADD_TOTAL adds what was summed.
#ifndef GM_KEYED_SUMS_H
#define GM_KEYED_SUMS_H

// ---- the order ----
//
// A stable radix sort by digits of 8 bits (Satish, Harris and Garland 2009): each block counts the digits of its rows, counts are summed
// over digits and blocks, and each block moves its rows to their places, 256 at a time.

enum { GM_DIGITS = 256, GM_SORTING = 1024 };  // blocks that sort, at most

DEVICE void keyed_pass(GmContext *c, long n, const int *keys, const int *from, int *to, int shift)
{
    int *const count = block_room(), (*const of_warp)[GM_DIGITS] = (int(*)[GM_DIGITS])(block_room() + GM_DIGITS);
    const long blocks = gridDim.x < GM_SORTING ? gridDim.x : GM_SORTING, b = blockIdx.x, size = (n + blocks - 1) / blocks;
    const long first = b * size < n ? b * size : n, last = first + size < n ? first + size : n;
    const int t = (int)threadIdx.x, warp = t >> 5, lane = t & 31;
    int *all = (int *)(c->place->partial + (long)c->chain * GM_ROOM), *total = all + GM_DIGITS * GM_SORTING;
    count[t] = 0;
    __syncthreads();
    if (b < blocks) {
        for (long r = first + t; r < last; r += GM_THREADS) atomicAdd(&count[((keys[from ? from[r] : r] - 1) >> shift) & 255], 1);
        __syncthreads();
        all[t * blocks + b] = count[t];
    }
    team_barrier(c);
    // counts of a digit become where each block's rows begin among those of the digit
    for (long d = b; d < GM_DIGITS; d += gridDim.x) {
        int sum = 0;
        for (long begin = 0; begin < blocks; begin += GM_THREADS) {
            const int mine = begin + t < blocks ? __ldcg(&all[d * blocks + begin + t]) : 0;
            int up = mine;
            for (int o = 1; o < 32; o *= 2) {
                const int below = __shfl_up_sync(0xffffffffu, up, o);
                if (lane >= o) up += below;
            }
            __syncthreads();
            if (lane == 31) of_warp[0][warp] = up;
            __syncthreads();
            int before = 0, whole = 0;
            for (int w = 0; w < GM_THREADS / 32; w++) {
                before += w < warp ? of_warp[0][w] : 0;
                whole += of_warp[0][w];
            }
            if (begin + t < blocks) all[d * blocks + begin + t] = sum + before + up - mine;
            sum += whole;
        }
        if (t == 0) total[d] = sum;
    }
    team_barrier(c);
    if (b < blocks) {
        int at = 0;  // of digit t
        count[t] = __ldcg(&total[t]);
        __syncthreads();
        for (int d = 0; d < t; d++) at += count[d];
        at += __ldcg(&all[t * blocks + b]);
        __syncthreads();
        for (long begin = first; begin < last; begin += GM_THREADS) {
            const long r = begin + t;
            const bool here = r < last;
            const int row = !here ? 0 : from ? from[r] : (int)r, digit = here ? ((keys[row] - 1) >> shift) & 255 : -1;
            for (int w = 0; w < GM_THREADS / 32; w++) of_warp[w][t] = 0;
            __syncthreads();
            const unsigned same = __match_any_sync(0xffffffffu, digit);
            const int rank = __popc(same & ((1u << lane) - 1));
            if (here && rank == 0) of_warp[warp][digit] = __popc(same);
            __syncthreads();
            for (int w = 0; w < GM_THREADS / 32; w++) {  // of digit t: where each warp's begin
                const int these = of_warp[w][t];
                of_warp[w][t] = at;
                at += these;
            }
            __syncthreads();
            if (here) to[of_warp[warp][digit] + rank] = row;
            __syncthreads();
        }
    }
    team_barrier(c);
}

// What the keys are is in keys[n], and the team has seen it.
static __device__ __noinline__ void order_keyed(GmContext *c, long n, long groups, const int *keys, int *first, int *rows, int *spare)
{
    int passes = 1;
    while (passes < 4 && (groups - 1) >> (8 * passes)) passes++;
    const int *from = 0;
    for (int p = 0; p < passes; p++) {
        int *to = (passes - p) % 2 ? rows : spare;
        keyed_pass(c, n, keys, from, to, 8 * p);
        from = to;
    }
    for (long k = gm_thread; k <= groups; k += gm_threads) {  // the first row whose key is k + 1 at least
        long lo = 0, hi = n;
        while (lo < hi) {
            const long middle = (lo + hi) / 2;
            if (keys[__ldcg(&rows[middle])] < k + 1) lo = middle + 1;
            else hi = middle;
        }
        first[k] = (int)lo;
    }
    team_barrier(c);
}

#define ORDER_KEYED(i, n, groups, key, keys, first, rows, spare) \
    do {                                                         \
        ALONG (i, n) (keys)[i] = (key);                          \
        order_keyed(GM, n, groups, keys, first, rows, spare);    \
    } while (0)

// ---- segments ----
//
// First groups that are not large: many small ones of few places a warp each, others a block. Then parts of all large ones, then the sums
// of these. What is small, large, and a part, follows from the rows alone.

typedef enum { GM_SMALL, GM_WHOLE, GM_PART, GM_MERGED } GmWay;

// Large groups are cut into parts about as large as a group may be that is not, so that no block keeps the others waiting.
// large groups at most; rows of a part, and of a large group, at least
enum { GM_LARGE = 1024, GM_PART_ROWS = 512, GM_WHOLE_ROWS = 2048 };

// groups that are a warp's each: of so many rows and places at most, so many groups at least
enum { GM_WARP_ROWS = 512, GM_WARP_GROUPS = 512, GM_WARP_PLACES = 128 };

typedef struct GmSegments {
    const int *of;           // where groups begin
    long groups, limit;      // a group of more rows is large
    long small;              // one of so many rows at most is a warp's, if not 0
    int middle;              // whether a group is neither small nor large
    long at, first, last;    // group, part or large group; rows first .. last - 1 in their order
    long size, part, parts;  // rows of a part; the first of a large group, and how many it has
    long places;             // of a group, of all totals
    wide *room;
    GmWay way;
} GmSegments;

typedef struct GmLarge {
    int n, group[GM_LARGE], first_part[GM_LARGE + 1];
} GmLarge;

DEVICE GmLarge *segments_large(void) { return (GmLarge *)block_room(); }  // which has room for it

// The large groups in order, the same in all blocks; whether there are any of middling size, for a block.
DEVICE void segments_list(GmSegments *g)
{
    __shared__ int of_warp[GM_THREADS / 32];
    GmLarge *large = segments_large();
    const int t = (int)threadIdx.x;
    int n = 0;
    long most = 0, middle = 0;  // rows of a group of this thread's
#pragma unroll 4
    for (long k = t; k < g->groups; k += GM_THREADS) {
        const long size = g->of[k + 1] - g->of[k];
        if (size > most) most = size;
        if (size <= g->limit && size > middle) middle = size;
    }
    g->middle = __syncthreads_or(middle > g->small);
    if (!__syncthreads_or(most > g->limit)) {
        if (t == 0) large->n = 0;
        __syncthreads();
        return;
    }
    for (long begin = 0; begin < g->groups; begin += GM_THREADS) {
        const long k = begin + t;
        const bool is = k < g->groups && g->of[k + 1] - g->of[k] > g->limit;
        if (!__syncthreads_or(is)) continue;
        const unsigned of = __ballot_sync(0xffffffffu, is);
        if ((t & 31) == 0) of_warp[t >> 5] = __popc(of);
        __syncthreads();
        int before = n;
        for (int w = 0; w < GM_THREADS / 32; w++) {
            before += w < t >> 5 ? of_warp[w] : 0;
            n += of_warp[w];
        }
        if (is) large->group[before + __popc(of & ((1u << (t & 31)) - 1))] = (int)k;
        __syncthreads();
    }
    __syncthreads();
    for (int k = t; k < n; k += GM_THREADS)
        large->first_part[k + 1] = (int)((g->of[large->group[k] + 1] - g->of[large->group[k]] + g->size - 1) / g->size);
    __syncthreads();
    if (t == 0) {
        large->n = n;
        large->first_part[0] = 0;
        for (int k = 0; k < n; k++) large->first_part[k + 1] += large->first_part[k];
    }
    __syncthreads();
}

// Of so many groups and places: the rows of one that is a warp's, at most.
DEVICE long segments_small(long groups, long places) { return groups >= GM_WARP_GROUPS && places <= GM_WARP_PLACES ? GM_WARP_ROWS : 0; }

// Groups of at most `small` rows are a warp's, if not 0.
DEVICE GmSegments segments_begin(const GmContext *c, long groups, long n, const int *of, long places, long small)
{
    GmSegments g;
    // parts that there is room for; of them the last one of each large group
    const long most = GM_ROOM / (places > 0 ? places : 1), large = most / 3 < GM_LARGE ? most / 3 : (long)GM_LARGE;
    g.of = of;
    g.groups = groups;
    g.places = places;
    g.limit = large < 8 ? n : n / large > GM_WHOLE_ROWS ? n / large : GM_WHOLE_ROWS;
    g.size = large < 8 ? n : (n + most - large - 1) / (most - large);
    if (g.size < GM_PART_ROWS) g.size = GM_PART_ROWS;
    g.room = c->place->partial + (long)c->chain * GM_ROOM;
    g.small = small;
    g.way = GM_SMALL;
    g.at = gm_thread / 32 - gm_threads / 32;
    g.part = g.parts = 0;
    segments_list(&g);
    return g;
}

DEVICE int segments_next(GmContext *c, GmSegments *g)
{
    const GmLarge *large = segments_large();
    if (g->way == GM_SMALL) {
        for (g->at += gm_threads / 32; g->at < g->groups && g->small; g->at += gm_threads / 32) {
            g->first = g->of[g->at];
            g->last = g->of[g->at + 1];
            if (g->last > g->first && g->last - g->first <= g->small) return 1;
        }
        __syncthreads();
        g->way = GM_WHOLE;
        g->at = (long)blockIdx.x - gridDim.x;
    }
    if (g->way == GM_WHOLE) {
        for (g->at += gridDim.x; g->at < g->groups && g->middle; g->at += gridDim.x) {
            g->first = g->of[g->at];
            g->last = g->of[g->at + 1];
            if (g->last - g->first > g->small && g->last - g->first <= g->limit) return 1;
        }
        if (large->n == 0) return 0;
        team_barrier(c);  // someone may still read the partial sums of before
        g->way = GM_PART;
        g->at = (long)blockIdx.x - gridDim.x;
    }
    if (g->way == GM_PART) {
        g->at += gridDim.x;
        if (g->at < large->first_part[large->n]) {
            int k = 0, above = large->n;
            while (above - k > 1)
                if (large->first_part[(k + above) / 2] <= g->at) k = (k + above) / 2;
                else above = (k + above) / 2;
            g->first = g->of[large->group[k]] + (g->at - large->first_part[k]) * g->size;
            g->last = g->of[large->group[k] + 1];
            if (g->last > g->first + g->size) g->last = g->first + g->size;
            return 1;
        }
        team_barrier(c);
        g->way = GM_MERGED;
        g->at = (long)blockIdx.x - gridDim.x;
    }
    g->at += gridDim.x;
    if (g->at >= large->n) return 0;
    g->part = large->first_part[g->at];
    g->parts = large->first_part[g->at + 1] - g->part;
    g->first = g->last = g->of[large->group[g->at]];
    return 1;
}

enum { GM_AT_ONCE = 4 };  // places of a lane, so that what they read of a row is on its way together

typedef struct GmPlaces {
    long tile, places;    // where the places at hand begin; of a total
    long row;             // that the next rows begin with
    int crew, room;       // lanes of a warp, or of the block, that have the segment; where theirs begin in shared memory
    int lane, lanes;      // lanes that have the places among them: place t of this one is tile + t * lanes + lane
    int subset, subsets;  // such sets of lanes share the rows
    int from, to;         // this lane's among the rows at hand, every subsets-th
    int done;             // whether the rows are over
    int first[GM_AT_ONCE], second[GM_AT_ONCE];  // subscripts of its places
    wide total[4][GM_AT_ONCE];
} GmPlaces;

DEVICE GmPlaces places_begin(const GmSegments *g, long places)
{
    GmPlaces p;
    const int crew = g->way == GM_SMALL ? 32 : (int)GM_THREADS, t = (int)threadIdx.x % crew;
    p.places = places;
    p.crew = crew;
    p.room = (int)threadIdx.x - t;
    p.lanes = places > GM_AT_ONCE * crew ? crew : (int)((places + GM_AT_ONCE - 1) / GM_AT_ONCE);
    p.subsets = crew / p.lanes;
    p.subset = t / p.lanes;
    p.lane = t % p.lanes;
    p.tile = -(long)GM_AT_ONCE * p.lanes;
    return p;
}

DEVICE long places_place(const GmPlaces *p, int t) { return p->tile + (long)t * p->lanes + p->lane; }

// To this lane's next places, their totals at zero. Lanes without one go along.
DEVICE int places_next(const GmSegments *g, GmPlaces *p, long columns)
{
    p->tile += (long)GM_AT_ONCE * p->lanes;
    if (p->tile >= p->places) return 0;
    p->row = g->first;
    p->done = 0;
    for (int t = 0; t < GM_AT_ONCE; t++) {
        const int place = places_place(p, t) < p->places ? (int)places_place(p, t) : 0;
        p->first[t] = place / (int)columns;
        p->second[t] = place % (int)columns;
        for (int q = 0; q < 4; q++) p->total[q][t] = 0;
    }
    return 1;
}

DEVICE wide *segments_slot(const GmSegments *g, long part, int total, const GmPlaces *p, int t)
{
    return g->room + part * g->places + total * p->places + places_place(p, t);
}

// Lanes of a segment wait for each other.
DEVICE void places_wait(const GmPlaces *p)
{
    if (p->crew == 32) __syncwarp();
    else __syncthreads();
}

// Rows at hand: some of the segment.
DEVICE int *places_rows(void)
{
    __shared__ int rows[GM_THREADS];
    return rows;
}

DEVICE int places_more(const GmSegments *g, GmPlaces *p, const int *rows)
{
    const bool mine = p->subset < p->subsets;
    int *here = places_rows() + p->room;
    const int lane = (int)threadIdx.x - p->room;
    if (p->done) return 0;
    places_wait(p);
    if (p->row < g->last) {
        const int n = (int)(g->last - p->row < p->crew ? g->last - p->row : p->crew);
        if (lane < n) here[lane] = rows[p->row + lane];
        places_wait(p);
        p->row += n;
        p->from = p->subset;
        p->to = mine ? n : 0;
        return 1;
    }
    p->done = 1;
    p->from = 0;
    p->to = mine && p->subset == 0;
    if (lane == 0) here[0] = rows[g->first];
    const int totals = (int)(g->places / p->places);
    __shared__ wide part[GM_THREADS];
    for (int q = 0; q < 4; q++) {
        if (q >= totals) break;
        for (int t = 0; t < GM_AT_ONCE; t++) {
            if (p->subsets > 1) {  // lanes of a place, in their order
                places_wait(p);
                part[threadIdx.x] = p->total[q][t];
                places_wait(p);
                if (p->to)
                    for (int k = 1; k < p->subsets; k++) p->total[q][t] += part[threadIdx.x + k * p->lanes];
            }
            if (g->way == GM_MERGED && p->to && places_place(p, t) < p->places)
                for (long k = 0; k < g->parts; k++) p->total[q][t] += __ldcg(segments_slot(g, g->part + k, q, p, t));
        }
    }
    places_wait(p);
    return 1;
}

#define EACH_SEGMENT(groups, n, first_of, places)                                                                 \
    for (GmSegments gm_segment = segments_begin(GM, groups, n, first_of, places, segments_small(groups, places)); \
         segments_next(GM, &gm_segment);)
#define GM_PLACES(n, columns) for (GmPlaces gm_places = places_begin(&gm_segment, n); places_next(&gm_segment, &gm_places, columns);)
#define GM_UNROLLED_2         _Pragma("unroll 2")
#define GM_UNROLLED_4         _Pragma("unroll 4")
#define GM_PLACE_ROWS(i, rows, rows_at_once, at_once)                                                                                  \
    while (places_more(&gm_segment, &gm_places, rows))                                                                                 \
        GM_UNROLLED_##rows_at_once for (int gm_q = gm_places.from; gm_q < gm_places.to;                                                \
                                        gm_q += gm_places.subsets) for (long i = places_rows()[gm_places.room + gm_q], gm_i = 1; gm_i; \
                                                                        gm_i = 0) _Pragma("unroll")                                    \
    for (int gm_t = 0; gm_t < (at_once); gm_t++)
#define SEGMENT_PLACES0(i, rows) GM_PLACES(1, 1) GM_PLACE_ROWS(i, rows, 4, 1)
#define SEGMENT_PLACES1(i, rows, j, n) \
    GM_PLACES(n, n) GM_PLACE_ROWS(i, rows, 2, GM_AT_ONCE) for (long j = gm_places.second[gm_t], gm_j = 1; gm_j; gm_j = 0)
#define SEGMENT_PLACES2(i, rows, j, n, k, m) \
    GM_PLACES((n) * (m), m)                  \
    GM_PLACE_ROWS(i, rows, 2, GM_AT_ONCE) for (long j = gm_places.first[gm_t], k = gm_places.second[gm_t], gm_j = 1; gm_j; gm_j = 0)
#define EACH_KEYED                                 EACH_SEGMENT
#define KEYED_PLACES0(i, n, key, rows)             SEGMENT_PLACES0(i, rows)
#define KEYED_PLACES1(i, n, key, rows, j, m)       SEGMENT_PLACES1(i, rows, j, m)
#define KEYED_PLACES2(i, n, key, rows, j, m, k, l) SEGMENT_PLACES2(i, rows, j, m, k, l)
#define ADD_TOTAL(q, place_, x)                                                                                                        \
    do {                                                                                                                               \
        if (!gm_places.done) gm_places.total[q][gm_t] += (x);                                                                          \
        else if (places_place(&gm_places, gm_t) < gm_places.places) {                                                                  \
            if (gm_segment.way == GM_PART) *segments_slot(&gm_segment, gm_segment.at, q, &gm_places, gm_t) = gm_places.total[q][gm_t]; \
            else (place_) += gm_places.total[q][gm_t];                                                                                 \
        }                                                                                                                              \
    } while (0)

// ---- products ----
//
// Row i of a group adds times(i)*factor(i, j)*factor(i, k) to its places (j, k). To places j of a vector, if there is one, it adds
// vector_times(i)*factor(i, j). Some rows at a time have their factors in shared memory, each computed once. A lane has a tile of 4 by 4
// places below the diagonal, so that eight numbers that it reads serve sixteen multiply-adds. Other lanes with the same tile take other
// rows. These are added in a fixed order. Many groups that are small are a warp's each, others a block's, or parts of them as above: what
// is small follows from the rows alone.

enum { GM_TILE = 4, GM_STAGE = 12 * GM_THREADS, GM_MOST_FACTORS = 256, GM_WARP_FACTORS = 32 };

#define SEGMENT_PRODUCTS(m) ((m) <= GM_MOST_FACTORS)

typedef struct GmStage {
    wide factor[GM_STAGE], weight[GM_THREADS], vector_weight[GM_THREADS];
} GmStage;

DEVICE GmStage *segment_stage(void)
{
    __shared__ alignas(16) GmStage stage;
    return &stage;
}

template <int LANES_> static __device__ __forceinline__ void crew_wait(void)
{
    if (LANES_ == 32) __syncwarp();
    else __syncthreads();
}

// What a crew has in shared memory, and the size of the rows that it multiplies.
struct KeyedProducts {
    wide *stage, *weight, *vector_weight;
    int *here;
    int size, width, across, tiles, most;  // width: in whole tiles, `across` of them; tiles: of the lower triangle; rows at a time
};

template <int LANES_> static __device__ __forceinline__ KeyedProducts keyed_products_room(int size)
{
    const int crew = (int)threadIdx.x / LANES_, room = GM_STAGE / (GM_THREADS / LANES_);
    KeyedProducts p;
    p.stage = segment_stage()->factor + crew * room;
    p.weight = segment_stage()->weight + crew * LANES_;
    p.vector_weight = segment_stage()->vector_weight + crew * LANES_;
    p.here = places_rows() + crew * LANES_;
    p.size = size;
    p.width = (size + GM_TILE - 1) / GM_TILE * GM_TILE;
    p.across = p.width / GM_TILE;
    p.tiles = p.across * (p.across + 1) / 2;
    p.most = room / p.width < LANES_ ? room / p.width : LANES_;
    return p;
}

// A round: `mine` tiles from the one of that number on, which `subsets` of the lanes share, each for some of the rows.
struct KeyedRound {
    int first, mine, subsets, subset, down, left;  // down, left: of the lane's tile: its place in the lower triangle
};

template <int LANES_> static __device__ __forceinline__ KeyedRound keyed_products_round(const KeyedProducts &p, int first)
{
    const int t = (int)threadIdx.x % LANES_;
    KeyedRound r;
    r.first = first;
    r.mine = p.tiles - first < LANES_ ? p.tiles - first : LANES_;
    r.subsets = LANES_ / r.mine;
    r.subset = t / r.mine;
    const int tile = first + t % r.mine;
    r.down = 0;
    while ((r.down + 1) * (r.down + 2) / 2 <= tile) r.down++;
    r.left = tile - r.down * (r.down + 1) / 2;
    return r;
}

// n rows from `begin` on, and their weights, into shared memory. A lane has some factors of a row, which lie together as a rule.
template <int LANES_, bool VECTOR, typename Times, typename Factor, typename VectorTimes>
static __device__ __forceinline__ void keyed_products_stage(const KeyedProducts &p, const int *rows, long begin, int n, Times times,
                                                            Factor factor, VectorTimes vector_times)
{
    const int t = (int)threadIdx.x % LANES_;
    crew_wait<LANES_>();
    if (t < n) {
        p.here[t] = rows[begin + t];
        p.weight[t] = times(p.here[t]);
        if (VECTOR) p.vector_weight[t] = vector_times(p.here[t]);
    }
    crew_wait<LANES_>();
#pragma unroll 2
    for (int e = t; e < n * p.across; e += LANES_) {
        const int r = e / p.across, j = GM_TILE * (e - r * p.across);
        const long i = p.here[r];
        wide x[GM_TILE];
#pragma unroll
        for (int q = 0; q < GM_TILE; q++) x[q] = j + q < p.size ? factor(i, (long)(j + q)) : 0;
#pragma unroll
        for (int q = 0; q < GM_TILE; q++) p.stage[GM_TILE * e + q] = x[q];
    }
    crew_wait<LANES_>();
}

static __device__ __forceinline__ void keyed_products_add(const KeyedProducts &p, const KeyedRound &o, int n, wide (&sum)[GM_TILE][GM_TILE])
{
    for (int r = o.subset; r < n && o.subset < o.subsets; r += o.subsets) {
        const wide *x = p.stage + r * p.width, w = p.weight[r];
        wide a[GM_TILE], b[GM_TILE];
#pragma unroll
        for (int e = 0; e < GM_TILE; e++) {
            a[e] = w * x[GM_TILE * o.down + e];
            b[e] = x[GM_TILE * o.left + e];
        }
#pragma unroll
        for (int i = 0; i < GM_TILE; i++)
#pragma unroll
            for (int k = 0; k < GM_TILE; k++) sum[i][k] += a[i] * b[k];
    }
}

// The vector: lane t has its places t % width, and every shares-th row; lanes beyond have none.
template <int LANES_, typename VectorDone>
static __device__ __forceinline__ void keyed_products_vector(const KeyedProducts &p, int shares, wide vector_sum, VectorDone vector_done)
{
    const int t = (int)threadIdx.x % LANES_;
    if (t / p.width < shares) p.stage[t] = vector_sum;
    crew_wait<LANES_>();
    if (t < p.size) {
        wide x = 0;
        for (int s = 0; s < shares; s++) x += p.stage[s * p.width + t];
        vector_done(t, x);
    }
    crew_wait<LANES_>();
}

// The sums of a round, from all lanes that share a tile; half of the rows of tiles at a time: that much there is room for.
template <int LANES_, typename Done> static __device__ __forceinline__ void keyed_products_done(const KeyedProducts &p, const KeyedRound &o,
                                                                                                const wide (&sum)[GM_TILE][GM_TILE],
                                                                                                Done done)
{
    const int t = (int)threadIdx.x % LANES_;
#pragma unroll
    for (int half = 0; half < GM_TILE; half += GM_TILE / 2) {
        if (o.subset < o.subsets)
#pragma unroll
            for (int i = 0; i < GM_TILE / 2; i++)
#pragma unroll
                for (int k = 0; k < GM_TILE; k++)
                    p.stage[((i * GM_TILE + k) * o.subsets + o.subset) * o.mine + t % o.mine] = sum[half + i][k];
        crew_wait<LANES_>();
        for (int e = t; e < o.mine * GM_TILE * GM_TILE / 2; e += LANES_) {
            const int which = e % o.mine, place = e / o.mine;
            int d = 0;
            while ((d + 1) * (d + 2) / 2 <= o.first + which) d++;
            const int j = GM_TILE * d + half + place / GM_TILE, k = GM_TILE * (o.first + which - d * (d + 1) / 2) + place % GM_TILE;
            if (j >= p.size || k > j) continue;
            wide x = 0;
            for (int s = 0; s < o.subsets; s++) x += p.stage[(place * o.subsets + s) * o.mine + which];
            done(j, k, x);
        }
        crew_wait<LANES_>();
    }
}

// Rows first .. last - 1 by a crew of LANES_, a warp or a block; done(j, k, x) has the sum of a place with k <= j, vector_done(j, x) that
// of the vector.
template <int LANES_, bool VECTOR, typename Times, typename Factor, typename VectorTimes, typename Done, typename VectorDone>
static __device__ __forceinline__ void products_of_rows(const int *rows, long first, long last, const int size, Times times, Factor factor,
                                                        VectorTimes vector_times, Done done, VectorDone vector_done)
{
    const int t = (int)threadIdx.x % LANES_;
    const KeyedProducts p = keyed_products_room<LANES_>(size);
    const int shares = p.width < LANES_ ? LANES_ / p.width : 1, share = t / p.width;
    for (int round = 0; round < p.tiles; round += LANES_) {
        const KeyedRound o = keyed_products_round<LANES_>(p, round);
        wide sum[GM_TILE][GM_TILE], vector_sum = 0;
        for (int a = 0; a < GM_TILE; a++)
            for (int b = 0; b < GM_TILE; b++) sum[a][b] = 0;
        for (long begin = first; begin < last; begin += p.most) {
            const int n = (int)(last - begin < p.most ? last - begin : p.most);
            keyed_products_stage<LANES_, VECTOR>(p, rows, begin, n, times, factor, vector_times);
            keyed_products_add(p, o, n, sum);
            if (VECTOR && round == 0 && share < shares)
                for (int r = share; r < n; r += shares) vector_sum += p.vector_weight[r] * p.stage[r * p.width + t % p.width];
        }
        crew_wait<LANES_>();
        if (VECTOR && round == 0) keyed_products_vector<LANES_>(p, shares, vector_sum, vector_done);
        keyed_products_done<LANES_>(p, o, sum, done);
    }
}

template <bool VECTOR, typename Times, typename Factor, typename Add, typename VectorTimes, typename VectorAdd>
static __device__ __forceinline__ void segment_sums(GmContext *c, long groups, long n, const int *of, const int *rows, const int size,
                                                    Times times, Factor factor, Add add, VectorTimes vector_times, VectorAdd vector_add)
{
    const bool warps = groups >= GM_WARP_GROUPS && size <= GM_WARP_FACTORS;
    bool larger = !warps;  // whether a group is for a block
    for (long k = gm_thread / 32; k < groups && warps; k += gm_threads / 32) {
        const long first = of[k], last = of[k + 1];
        if (last <= first || last - first > GM_WARP_ROWS) continue;
        const long row = rows[first];
        products_of_rows<32, VECTOR>(
            rows, first, last, size, times, factor, vector_times,
            [&](int i, int j, wide x) {
                add(row, (long)i, (long)j, x);
                if (j < i) add(row, (long)j, (long)i, x);
            },
            [&](int j, wide x) { vector_add(row, (long)j, x); });
    }
    for (long k = threadIdx.x; k < groups && warps; k += GM_THREADS) larger |= of[k + 1] - of[k] > GM_WARP_ROWS;
    if (!__syncthreads_or(larger)) return;
    const long places = (long)size * (size + (VECTOR ? 1 : 0));
    GmSegments g = segments_begin(c, groups, n, of, places, 0);
    while (segments_next(c, &g)) {
        const long group = g.way == GM_MERGED ? segments_large()->group[g.at] : g.at;
        if (g.way == GM_WHOLE && warps && g.last - g.first <= GM_WARP_ROWS) continue;
        const long row = g.way == GM_PART ? 0 : rows[of[group]];
        products_of_rows<GM_THREADS, VECTOR>(
            rows, g.first, g.last, size, times, factor, vector_times,
            [&](int i, int j, wide x) {
                if (g.way == GM_PART) {
                    g.room[g.at * places + i * size + j] = x;
                    return;
                }
                if (g.way == GM_MERGED)
                    for (long part = g.part; part < g.part + g.parts; part++) x += __ldcg(&g.room[part * places + i * size + j]);
                add(row, (long)i, (long)j, x);
                if (j < i) add(row, (long)j, (long)i, x);
            },
            [&](int j, wide x) {
                if (g.way == GM_PART) {
                    g.room[g.at * places + (long)size * size + j] = x;
                    return;
                }
                if (g.way == GM_MERGED)
                    for (long part = g.part; part < g.part + g.parts; part++) x += __ldcg(&g.room[part * places + (long)size * size + j]);
                vector_add(row, (long)j, x);
            });
    }
}

template <typename Times, typename Factor, typename Add>
static __device__ __forceinline__ void segment_products(GmContext *c, long groups, long n, const int *of, const int *rows, long m,
                                                        Times times, Factor factor, Add add)
{
    segment_sums<false>(
        c, groups, n, of, rows, (int)m, times, factor, add, [](long) -> wide { return 0; }, [](long, long, wide) {});
}

template <typename Times, typename Factor, typename Add, typename VectorTimes, typename VectorAdd>
static __device__ __forceinline__ void segment_products(GmContext *c, long groups, long n, const int *of, const int *rows, long m,
                                                        Times times, Factor factor, Add add, VectorTimes vector_times, VectorAdd vector_add)
{
    segment_sums<true>(c, groups, n, of, rows, (int)m, times, factor, add, vector_times, vector_add);
}

#endif
