// nuts.h -- Hamiltonian Monte Carlo for n reals together: the sampler asks, the caller answers, as in slice.h.
//
//     Nuts *m = nuts_of(room, n);                          // room: nuts_room(n) numbers, zero before the first sweep, kept between sweeps
//     nuts_begin(m, g, x, &settings, sweep, warmup);
//     while (nuts_next(m)) {
//         m->log_density = <log density at nuts_position(m), up to a constant>;
//         nuts_gradient(m)[i] = <its derivative by coordinate i>;
//     }
//     x[i] = nuts_position(m)[i];                          // unless m->failed
//
//   lanes       on a GPU the threads of a block, or of several that run at once, may do this together: each with a copy of the header
//               (nuts_shared), which all of them take through the same states; vectors are theirs in turn, element i belongs to thread i %
//               lanes, and sums are taken over all. One thread writes the header back (nuts_kept).
//
//   target      any differentiable density on R^n, up to a constant; divided into 1 / temperature: exp(log_density / T)
//   methods     settings.steps == 0: NUTS, the multinomial variant (Betancourt 2017, A conceptual introduction to Hamiltonian Monte Carlo):
//               trees double in random directions (Hoffman and Gelman 2014) until p_sharp . rho <= 0 at an end of a subtree, also across
//               the halves of it, as in Stan since 2.21. Trees are built without recursion: each half that waits for the other keeps three
//               vectors (Lao and Dillon 2019; Phan, Pradhan and Jankowiak 2019), and the tree is the recursive one. Within a subtree a
//               point is drawn by its weight as points come, between trees the new one is preferred. settings.steps > 0: that many leapfrog
//               steps and one Metropolis decision (Duane et al. 1987).
//   cost        one evaluation a leapfrog step, and one at the start of a transition unless settings.same_density
//   warm-up     sweeps before `warmup`, afterwards nothing is adapted. Step size: doubled or halved until one step is accepted with 0.8,
//               then dual averaging towards settings.target (Hoffman and Gelman 2014). Metric: diagonal, its inverse is sd of the draws
//               over sd of their gradients, from the draws since the last window but one began. That makes the Fisher divergence from a
//               normal distribution least (Seyboldt, Carlson and Carpenter 2025). The first metric is 1 / |gradient|. The first 30 % have
//               short windows, the last 15 % adapt the step size alone. m->linear may have a metric of low rank, or a dense one (metric.h).
//               With a warm-up of 0 sweeps step size and metric are those of the first search.
//   effects     m->standard, if there are any, are the degrees of non-centring that the caller's density uses from the next transition on.
//               0 is the value of an effect u itself (centred), 1 the standardised effect z = (u - centre) / spread (non-centred); values
//               between are partially non-centred. They are 0 at first, 1 from the second sweep of warm-up on, and after a sixth of it what
//               the data identify. z given all else has precision 1 + (information on u) spread^2, which is the variance of the derivative
//               of the log density by z. c = 1 / precision makes a normal u independent of its centre (Papaspiliopoulos, Roberts and Skold
//               2007, Statistical Science 22). With each change step size and metric begin anew. Not where the step size is given, nor in
//               less than 20 sweeps of warm-up.
//   errors      log density or gradient not finite at the start of a transition: m->failed, the position stays. Elsewhere it counts as a
//               divergence, as does an energy that is 1000 above that of the start: the point is never taken, NUTS ends the tree there.
//   memory      NUTS_VECTORS = 47 vectors of n numbers and a header: 26 for the halves of trees, 8 for the estimates of the metric
//   numbers     those of g, and those of the streams of the n elements after that of g (stream_part)
//   test        tests/runtime/nuts.c, tests/gpu/nuts.cu
#ifndef GM_NUTS_H
#define GM_NUTS_H

#include "metric.h"
#include "rng.h"
#include "special.h"

#define NUTS_DEPTH    10      // doublings at most: 1023 leapfrog steps
#define NUTS_ENERGY   1000.0  // an energy so far above the start's is a divergence
#define NUTS_LEAST    1e-20   // bounds of the inverse metric
#define NUTS_MOST     1e20
#define NUTS_SEARCHES 100  // trials for the first step size
#define NUTS_WEAK \
    3.0  // precisions of standardised effects: up to this they stay so, since a density that rises without end as the spread falls is worse
         // than one that is skewed,
#define NUTS_STRONG      60.0  // and beyond this they are effects as they are written
#define NUTS_FIRST_DEPTH 5     // doublings at most while the metric is a guess from one gradient: some coordinates may move far too slowly

enum {  // vectors of n numbers, behind the header
    NUTS_POSITION,
    NUTS_GRADIENT,
    NUTS_MOMENTUM,  // the point that moves: one end of the tree
    NUTS_FAR_POSITION,
    NUTS_FAR_GRADIENT,
    NUTS_FAR_MOMENTUM,   // the other end, in the same order
    NUTS_NEAR_MOMENTUM,  // where the subtree being built began
    NUTS_SUM,            // of the momenta of the tree
    NUTS_FIRST,
    NUTS_FIRST_GRADIENT,  // the draw so far and the subtree's, m->draw says which is which
    NUTS_SECOND,
    NUTS_SECOND_GRADIENT,
    NUTS_METRIC,      // inverse of the metric's diagonal: variances, roughly; D where the metric is that of metric.h
    NUTS_FOREGROUND,  // means and sums of squares, of draws and of gradients
    NUTS_BACKGROUND = NUTS_FOREGROUND + 4,
    NUTS_POOL = NUTS_BACKGROUND + 4,  // halves that wait: one vector at level 0, three at the others, one in passing
    NUTS_VECTORS = NUTS_POOL + 3 * NUTS_DEPTH - 4,
};

typedef enum {
    NUTS_ADAPTED,  // diagonal, learned in warm-up
    NUTS_UNIT,     // the identity
    NUTS_GIVEN,    // what the caller wrote to nuts_metric(m)
} NutsMetric;

typedef struct NutsSettings {  // zero everywhere: NUTS as usual
    int steps;                 // 0: NUTS; else HMC by so many leapfrog steps
    int max_depth;             // of NUTS; 0: NUTS_DEPTH, the largest
    NutsMetric metric;
    int same_density;    // log density, gradient and position are those with which the last transition ended
    double step;         // size of a step; 0: adapted in warm-up
    double target;       // mean acceptance that the step size aims at; 0: 0.8
    int waits;           // what the coordinates of effects become is settled by the caller
    double temperature;  // 0: 1. Steps are sqrt(T) times as long: those that are stable stay so
    int walls;  // the line of the model where what is computed may leave its domain, beyond which the density is 0; 0: there is none
} NutsSettings;

typedef enum { NUTS_AS_WRITTEN, NUTS_STANDARD, NUTS_SETTLED } NutsStandard;

typedef enum { NUTS_BEGUN, NUTS_AT_START, NUTS_SEARCHING, NUTS_MOVING, NUTS_DONE } NutsPhase;  // what the answer will be for

typedef enum { NUTS_LAUNCH, NUTS_DOUBLE, NUTS_LEAP, NUTS_FINISH, NUTS_STOP } NutsNext;  // what it leads to

typedef struct NutsLength {     // of trajectories that all chains share (chees.h)
    double log_time, log_mean;  // of their time; averaged, late ones more
    double square;              // of the slope, averaged
    long moves, averaged;
} NutsLength;

// vectors: momenta at its ends, in the order built, and their sum
typedef struct NutsHalf {
    signed char first, last, sum;
} NutsHalf;

typedef struct Nuts {
    double log_density;  // the caller's answer; at the end that of the draw
    // Of the transition, as CmdStan's columns of these names mean them.
    double accept_stat, stepsize, energy;
    int treedepth, n_leapfrog, divergent;
    int failed;       // 1: the log density at the start is not finite; 2: the gradient
    int evaluations;  // answers asked for, the search for a step size included
    // Kept between transitions.
    int known;         // not 0: there were transitions
    int search;        // a step size is to be searched for
    int metric_known;  // the metric is an estimate from draws
    long n;
    Metric *linear;    // a metric that is not diagonal, or may become so; NULL: it is diagonal
    int standardised;  // a NutsStandard: what m->standard holds
    int noted;         // on a GPU: sweeps whose draws the host has not read yet
    long left;         // divergent transitions that left such a domain, after warm-up
    double step;
    double centre, error, log_step, log_step_mean;  // dual averaging
    long averaged;
    long foreground, background;  // draws in the estimates
    NutsLength length;
    // Of the transition alone.
    wide *vectors;  // behind the header
    // how far the coordinates of effects are standardised from the next transition on, n numbers; NULL: none is
    wide *standard;
    int lane, lanes;  // this thread among those that share the vectors: 0 of 1, if it is alone
    int turn;         // 0 or 1: the half of `shares` that is in use
    // several blocks: room for their shares of sums, 2 * NUTS_MOST_BLOCKS * NUTS_MOST_SUMS numbers; else NULL
    double *shares;
    uint32_t *meeting;  // where they wait for each other: two counters, as team_barrier has them
    Stream g;
    NutsPhase phase;
    NutsSettings settings;
    long sweep, warmup;
    double cooling;              // 1 / T
    double kick, drift;          // half a step of momentum per gradient, a step of position per velocity
    double start;                // energy at the start
    double base;                 // weights are exp(start - energy - base)
    double weight, half_weight;  // sums over tree and subtree
    double accepted;             // sum of acceptance probabilities
    double draw_energy, draw_density, trial_energy, trial_density;
    int draw;                     // NUTS_FIRST or NUTS_SECOND; the subtree's point is in the other
    int side;                     // 1 or -1: direction of the subtree
    int leaf;                     // points of the subtree so far
    int ahead, behind;            // points of the tree on either side of the start
    int draw_place, trial_place;  // signed number of steps from the start
    int tries, doubling;          // of the search for a step size
    int spares;
    NutsHalf half[NUTS_DEPTH];
    signed char spare[3 * NUTS_DEPTH];
} Nuts;

#define NUTS_HEADER ((long)((sizeof(Nuts) + sizeof(wide) - 1) / sizeof(wide)))

// 1 in width as long as the room that the compiler gives is enough, else the C compiler stops here.
typedef char NutsHasRoom[sizeof(Nuts) <= NUTS_HEADER_ROOM * sizeof(wide) && (int)NUTS_VECTORS <= (int)NUTS_VECTORS_ROOM ? 1 : -1];

// Numbers that a chain of n coordinates needs.
DEVICE long nuts_room(long n) { return NUTS_HEADER + NUTS_VECTORS * n; }

DEVICE Nuts *nuts_of(wide *room, long n)
{
    Nuts *m = (Nuts *)(void *)room;
    m->n = n;
    m->vectors = room + NUTS_HEADER;
    m->standard = 0;
    m->lane = 0;
    m->lanes = 1;
    m->turn = 0;
    m->shares = 0;
    m->meeting = 0;
    return m;
}

DEVICE wide *nuts_vector(Nuts *m, int which) { return m->vectors + which * m->n; }
DEVICE wide *nuts_position(Nuts *m) { return nuts_vector(m, NUTS_POSITION); }
DEVICE wide *nuts_gradient(Nuts *m) { return nuts_vector(m, NUTS_GRADIENT); }
DEVICE wide *nuts_metric(Nuts *m) { return nuts_vector(m, NUTS_METRIC); }

// ---- work on vectors, shared by lanes ----

// NUTS_EACH (i, m, n): the elements that are this lane's. nuts_sums: v[k] are sums over all of them, the same in every lane, always added
// in the same order.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

enum { NUTS_MOST_LANES = 1024, NUTS_MOST_BLOCKS = 16, NUTS_MOST_SUMS = 6 };  // lanes: of a block

#define NUTS_EACH(i, m) \
    _Pragma("unroll 4") \
    for (long i = (m)->lane; i < (m)->n; i += (m)->lanes)
#define NUTS_ALONE(m) ((m)->lanes == 1)

// For blocks of threads, a multiple of 32 of them in each: the header of this thread. One block: shares and meeting are NULL; else
// blockIdx.x says which it is.
DEVICE Nuts nuts_shared(wide *room, long n, double *shares, uint32_t *meeting)
{
    Nuts m = *(Nuts *)(void *)room;
    m.n = n;
    m.vectors = room + NUTS_HEADER;
    m.standard = 0;
    m.lane = (int)(threadIdx.x + (shares ? blockIdx.x * blockDim.x : 0));
    m.lanes = (int)(blockDim.x * (shares ? gridDim.x : 1));
    m.turn = 0;
    m.shares = shares;
    m.meeting = meeting;
    return m;
}

// All wait for each other, and see what the others wrote.
DEVICE void nuts_meet(const Nuts *m)
{
    __syncthreads();
    if (!m->shares) return;
    if (threadIdx.x == 0) {
        volatile uint32_t *turn = m->meeting + 1;
        const uint32_t now = *turn;
        __threadfence();
        if (atomicAdd(m->meeting, 1u) == gridDim.x - 1) {
            *m->meeting = 0;
            __threadfence();
            *turn = now + 1;
        } else {
            while (*turn == now) {}
        }
        __threadfence();
    }
    __syncthreads();
}

// Once all have come here, and so have read what is there.
DEVICE void nuts_kept(wide *room, const Nuts *m)
{
    nuts_meet(m);
    if (m->lane == 0) *(Nuts *)(void *)room = *m;
}

template <int count> static __device__ __forceinline__ void nuts_sums(Nuts *m, double (&v)[count])
{
    __shared__ double part[NUTS_MOST_SUMS][NUTS_MOST_LANES / 32];
    if (m->lanes == 1) return;
    for (int k = 0; k < count; k++)
        for (int o = 16; o; o >>= 1) v[k] += __shfl_xor_sync(0xffffffffu, v[k], o);
    if (blockDim.x > 32) {
        __syncthreads();
        if (threadIdx.x % 32 == 0)
            for (int k = 0; k < count; k++) part[k][threadIdx.x / 32] = v[k];
        __syncthreads();
        for (int k = 0; k < count; k++) {
            v[k] = 0;
            for (int w = 0; w < (int)blockDim.x / 32; w++) v[k] += part[k][w];
        }
    }
    if (!m->shares) return;
    volatile double *all = m->shares + m->turn * NUTS_MOST_BLOCKS * NUTS_MOST_SUMS;
    if (threadIdx.x == 0)
        for (int k = 0; k < count; k++) all[blockIdx.x * NUTS_MOST_SUMS + k] = v[k];
    nuts_meet(m);
    const int from = (int)threadIdx.x % 32;  // all shares at once: one after the other each would wait for memory
    for (int k = 0; k < count; k++) v[k] = from < (int)gridDim.x ? all[from * NUTS_MOST_SUMS + k] : 0;
    for (int k = 0; k < count; k++)
        for (int o = 16; o; o >>= 1) v[k] += __shfl_xor_sync(0xffffffffu, v[k], o);
    m->turn = !m->turn;  // nobody writes there again before all have met once more
}

#else
#define NUTS_EACH(i, m) for (long i = 0; i < (m)->n; i++)
#define NUTS_ALONE(m)   1
#define nuts_sums(m, v) ((void)0)
#endif

DEVICE void nuts_copy(Nuts *m, int to, int from)
{
    wide *__restrict__ a = nuts_vector(m, to);
    const wide *__restrict__ b = nuts_vector(m, from);
    NUTS_EACH (i, m) a[i] = b[i];
}

// The two ends of the tree change places: position, gradient and momentum.
DEVICE void nuts_turn(Nuts *m)
{
    for (int k = 0; k < 3; k++) {
        wide *__restrict__ a = nuts_vector(m, NUTS_POSITION + k), *__restrict__ b = nuts_vector(m, NUTS_FAR_POSITION + k);
        NUTS_EACH (i, m) {
            const wide x = a[i];
            a[i] = b[i];
            b[i] = x;
        }
    }
}

DEVICE void nuts_fill(Nuts *m, int which, double value)
{
    wide *a = nuts_vector(m, which);
    NUTS_EACH (i, m) a[i] = value;
}

DEVICE int nuts_all_finite(Nuts *m, int which)
{
    const wide *a = nuts_vector(m, which);
    double bad[] = {0};
    NUTS_EACH (i, m) bad[0] += !is_finite(a[i]);
    nuts_sums(m, bad);
    return bad[0] == 0;
}

// A momentum from its law, normal(0, metric); its kinetic energy. Each two coordinates have numbers of their own.
DEVICE double nuts_draw_momentum(Nuts *m)
{
    wide *__restrict__ p = nuts_vector(m, NUTS_MOMENTUM);
    const wide *__restrict__ v = nuts_vector(m, NUTS_METRIC);
    double twice[] = {0};
    Stream part = m->g;
    NUTS_EACH (i, m) {
        const int second = (int)(i % 2);
        if (!second || !NUTS_ALONE(m)) part = stream_part(&m->g, (uint64_t)i / 2);
        if (second && !NUTS_ALONE(m)) normal_standard(&part);  // another lane's
        const double z = normal_standard(&part);
        p[i] = z / sqrt(v[i]);
        twice[0] += z * z;
    }
    nuts_sums(m, twice);
    stream_pass(&m->g);
    return 0.5 * twice[0];
}

// ---- metrics that are not diagonal (metric.h) ----

#define NUTS_LINEAR(m) ((m)->linear && (m)->linear->used)

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

// out = x + sum of (of[r] . x) to[r] over vectors of low rank.
DEVICE_CALL void nuts_by_rank(Nuts *m, const wide *of, const wide *to, const wide *__restrict__ x, wide *__restrict__ out)
{
    const int rank = m->linear->rank;
    NUTS_EACH (i, m) out[i] = x[i];
    for (int first = 0; first < rank; first += METRIC_SUMS) {
        double c[METRIC_SUMS] = {0};
        for (int r = 0; r < METRIC_SUMS && first + r < rank; r++) {
            const wide *__restrict__ a = of + (first + r) * m->n;
            double sum = 0;
            NUTS_EACH (i, m) sum += a[i] * x[i];
            c[r] = sum;
        }
        nuts_sums(m, c);
        for (int r = 0; r < METRIC_SUMS && first + r < rank; r++) {
            const wide *__restrict__ b = to + (first + r) * m->n;
            NUTS_EACH (i, m) out[i] += c[r] * b[i];
        }
    }
}

// out = D^-1/2 A D^1/2 x: element i is the sum of by_column[j*n + i] scaled x[j]. Lanes of a warp go through the same j side by side:
// elements that are 0 are read with the others.
DEVICE_CALL void nuts_by_dense(Nuts *m, const wide *__restrict__ by_column, int lower, const wide *__restrict__ x, wide *__restrict__ out)
{
    const Metric *l = m->linear;
    const wide *__restrict__ scale = l->scale;
    wide *scaled = l->last;
    NUTS_EACH (i, m) scaled[i] = scale[i] * x[i];
    if (!NUTS_ALONE(m)) nuts_meet(m);
    NUTS_EACH (i, m) {
        const long warp = i / 32 * 32, from = lower ? warp : 0, to = lower || warp + 32 > m->n ? m->n : warp + 32;
        double sum = 0;
        _Pragma("unroll 8")
        for (long j = from; j < to; j++) sum += by_column[j * m->n + i] * scaled[j];
        out[i] = sum / scale[i];
    }
    if (!NUTS_ALONE(m)) nuts_meet(m);  // `scaled` is written again
}

// As metric_push and metric_drift.
DEVICE const wide *nuts_find_push(Nuts *m)
{
    Metric *l = m->linear;
    if (l->full) nuts_by_dense(m, l->lower, 1, nuts_gradient(m), l->push);
    else nuts_by_rank(m, l->along, l->across, nuts_gradient(m), l->push);
    return l->push;
}

DEVICE const wide *nuts_find_drift(Nuts *m)
{
    Metric *l = m->linear;
    if (l->full) nuts_by_dense(m, l->upper, 0, nuts_vector(m, NUTS_MOMENTUM), l->velocity);
    else nuts_by_rank(m, l->along, l->across, nuts_vector(m, NUTS_MOMENTUM), l->velocity);
    return l->velocity;
}

// For the host, which changes the metric between sweeps: nothing changes here.
DEVICE int nuts_linear_due(const Nuts *m, int moved)
{
    (void)m, (void)moved;
    return 0;
}

DEVICE int nuts_adapt_linear(Nuts *m, int moved, int divergent, long left)
{
    Metric *l = m->linear;
    const long row = m->noted;
    if (row >= METRIC_ROWS) return 0;
    const wide *__restrict__ x = nuts_position(m), *__restrict__ g = nuts_gradient(m);
    wide *__restrict__ draw = l->draws + row * m->n, *__restrict__ gradient = l->gradients + row * m->n;
    NUTS_EACH (i, m) {
        draw[i] = x[i];
        gradient[i] = g[i];
    }
    if (m->lane == 0) {
        l->notes[row].moved = moved;
        l->notes[row].evaluations = m->evaluations;
        l->notes[row].divergent = divergent;
        l->notes[row].left = left;
    }
    m->noted++;
    return 0;
}

#else

DEVICE const wide *nuts_find_push(Nuts *m) { return metric_push(m->linear, nuts_gradient(m)); }
DEVICE const wide *nuts_find_drift(Nuts *m) { return metric_drift(m->linear, nuts_vector(m, NUTS_MOMENTUM)); }
DEVICE int nuts_linear_due(const Nuts *m, int moved) { return metric_due(m->linear, moved); }
DEVICE int nuts_adapt_linear(Nuts *m, int moved, int divergent, long left)
{
    return metric_adapt(m->linear, nuts_position(m), nuts_gradient(m), nuts_metric(m), moved, m->evaluations, divergent, left);
}

#endif

// What the gradient at the chain's state adds to momenta, once it is known; the gradient itself with a diagonal metric.
#define NUTS_PUSH(m)      (NUTS_LINEAR(m) ? (const wide *)(m)->linear->push : nuts_gradient(m))
#define NUTS_FIND_PUSH(m) ((void)(NUTS_LINEAR(m) && nuts_find_push(m)))

// The move of a leapfrog step by a metric that is not diagonal.
DEVICE void nuts_drift_linear(Nuts *m)
{
    wide *__restrict__ x = nuts_vector(m, NUTS_POSITION);
    const wide *__restrict__ v = nuts_vector(m, NUTS_METRIC), *__restrict__ velocity = nuts_find_drift(m);
    const double drift = m->side * m->drift;
    NUTS_EACH (i, m) x[i] += drift * v[i] * velocity[i];
}

// First half of a leapfrog step and its move.
DEVICE void nuts_kick_and_drift(Nuts *m)
{
    wide *__restrict__ x = nuts_vector(m, NUTS_POSITION), *__restrict__ p = nuts_vector(m, NUTS_MOMENTUM);
    const wide *__restrict__ g = NUTS_PUSH(m), *__restrict__ v = nuts_vector(m, NUTS_METRIC);
    const double kick = m->side * m->kick, drift = NUTS_LINEAR(m) ? 0 : m->side * m->drift;
    NUTS_EACH (i, m) {
        p[i] += kick * g[i];
        x[i] += drift * v[i] * p[i];
    }
    if (NUTS_LINEAR(m)) nuts_drift_linear(m);
}

// Its second half; the kinetic energy.
DEVICE double nuts_kick(Nuts *m)
{
    NUTS_FIND_PUSH(m);
    wide *__restrict__ p = nuts_vector(m, NUTS_MOMENTUM);
    const wide *__restrict__ g = NUTS_PUSH(m), *__restrict__ v = nuts_vector(m, NUTS_METRIC);
    const double kick = m->side * m->kick;
    double twice[] = {0};
    NUTS_EACH (i, m) {
        p[i] += kick * g[i];
        twice[0] += v[i] * p[i] * p[i];
    }
    nuts_sums(m, twice);
    return 0.5 * twice[0];
}

// Halves a and b, which follow each other, become one: the sum of their momenta in a.sum. Whether neither the whole turns back, nor a with
// the first point of b, nor b with the last point of a: at both ends of each the velocity has a part along the sum of its momenta.
DEVICE int nuts_join(Nuts *m, NutsHalf a, NutsHalf b)
{
    const wide *v = nuts_vector(m, NUTS_METRIC), *a_first = nuts_vector(m, a.first), *a_last = nuts_vector(m, a.last);
    const wide *b_first = nuts_vector(m, b.first), *b_last = nuts_vector(m, b.last), *b_sum = nuts_vector(m, b.sum);
    wide *__restrict__ sum = nuts_vector(m, a.sum);
    double whole_first = 0, whole_last = 0, a_begin = 0, a_end = 0, b_begin = 0, b_end = 0;
    NUTS_EACH (i, m) {
        const double all = sum[i] + b_sum[i], whole = v[i] * all;
        const double with_next = v[i] * (sum[i] + b_first[i]), with_last = v[i] * (b_sum[i] + a_last[i]);
        whole_first += whole * a_first[i];
        whole_last += whole * b_last[i];
        a_begin += with_next * a_first[i];
        a_end += with_next * b_first[i];
        b_begin += with_last * a_last[i];
        b_end += with_last * b_last[i];
        sum[i] = all;
    }
    double along[] = {whole_first, whole_last, a_begin, a_end, b_begin, b_end};
    nuts_sums(m, along);
    return along[0] > 0 && along[1] > 0 && along[2] > 0 && along[3] > 0 && along[4] > 0 && along[5] > 0;
}

// The same for single points, momenta a and that of the point that moves; their sum to vector `to`.
DEVICE int nuts_join_points(Nuts *m, int a, int to)
{
    const wide *__restrict__ v = nuts_vector(m, NUTS_METRIC), *__restrict__ first = nuts_vector(m, a),
                             *__restrict__ last = nuts_vector(m, NUTS_MOMENTUM);
    wide *__restrict__ sum = nuts_vector(m, to);
    double begin = 0, end = 0;
    NUTS_EACH (i, m) {
        const double both = first[i] + last[i], velocity = v[i] * both;
        begin += velocity * first[i];
        end += velocity * last[i];
        sum[i] = both;
    }
    double along[] = {begin, end};
    nuts_sums(m, along);
    return along[0] > 0 && along[1] > 0;
}

// Adds the draw and its gradient to the estimates that begin at vector `to`, as number k (Welford 1962).
DEVICE void nuts_estimate(Nuts *m, int to, long k)
{
    for (int which = 0; which < 2; which++) {
        const wide *__restrict__ x = nuts_vector(m, which ? NUTS_GRADIENT : NUTS_POSITION);
        wide *__restrict__ mean = nuts_vector(m, to + 2 * which), *__restrict__ squares = nuts_vector(m, to + 2 * which + 1);
        NUTS_EACH (i, m) {
            const double d = x[i] - (k > 1 ? mean[i] : 0);
            mean[i] = k > 1 ? mean[i] + d / (double)k : d;
            squares[i] = k > 1 ? squares[i] + d * (x[i] - mean[i]) : 0;
        }
    }
}

// The metric from the foreground's estimates. A coordinate where either does not vary keeps its own. Whether it is another metric: most
// variances are not within a factor of 2.
DEVICE int nuts_set_metric(Nuts *m)
{
    wide *__restrict__ v = nuts_vector(m, NUTS_METRIC);
    const wide *__restrict__ draws = nuts_vector(m, NUTS_FOREGROUND + 1), *__restrict__ gradients = nuts_vector(m, NUTS_FOREGROUND + 3);
    double moved[] = {0};
    NUTS_EACH (i, m) {
        const double old = v[i], ratio = sqrt(draws[i] / gradients[i]);
        if (ratio > 0 && is_finite(ratio)) v[i] = clamp(ratio, NUTS_LEAST, NUTS_MOST);
        moved[0] += v[i] > 2 * old || v[i] < 0.5 * old;
    }
    nuts_sums(m, moved);
    return 2 * moved[0] > (double)m->n;
}

DEVICE void nuts_first_metric(Nuts *m)
{
    wide *__restrict__ v = nuts_vector(m, NUTS_METRIC);
    const wide *__restrict__ g = nuts_vector(m, NUTS_GRADIENT);
    NUTS_EACH (i, m) v[i] = g[i] == 0 ? 1 : clamp(1 / fabs(g[i]), NUTS_LEAST, NUTS_MOST);
}

// ---- adaptation ----

// Dual averaging begins anew, around so many times the step size that is.
DEVICE void nuts_average_anew(Nuts *m, double times)
{
    m->log_step = m->log_step_mean = log(m->step);
    m->centre = m->log_step + log(times);
    m->error = 0;
    m->averaged = 0;
}

DEVICE void nuts_adapt_step(Nuts *m, double accept, double target)
{
    const double t = (double)++m->averaged, share = 1 / (t + 10), late = pow(t, -0.75);
    m->error = (1 - share) * m->error + share * (target - accept);
    m->log_step = clamp(m->centre - m->error * sqrt(t) / 0.05, -40, 16);
    m->log_step_mean = late * m->log_step + (1 - late) * m->log_step_mean;
    m->step = exp(m->log_step);
}

DEVICE void nuts_adapt_metric(Nuts *m, long last_window)
{
    const int moved = m->divergent ? m->draw_place > 4 || m->draw_place < -4 : m->draw_place != 0;
    const int early = m->sweep < (long)(0.3 * (double)m->warmup);
    const long window = early              ? m->warmup >= 100  ? 10
                                             : m->warmup >= 30 ? m->warmup / 10
                                                               : 3
                        : m->warmup >= 320 ? 80
                        : m->warmup >= 12  ? m->warmup / 4
                                           : 3;
    if (moved) {
        nuts_estimate(m, NUTS_FOREGROUND, ++m->foreground);
        nuts_estimate(m, NUTS_BACKGROUND, ++m->background);
    }
    if (m->background >= window && m->sweep + window <= last_window) {
        for (int k = 0; k < 4; k++) nuts_copy(m, NUTS_FOREGROUND + k, NUTS_BACKGROUND + k);
        m->foreground = m->background;
        m->background = 0;
    }
    if (m->foreground < 3) return;
    // the step size was for another metric
    if (!NUTS_LINEAR(m) || nuts_linear_due(m, moved)) m->search |= (nuts_set_metric(m) || !m->metric_known) && m->settings.step == 0;
    m->metric_known = 1;
    // A step size that is tried out, far above the mean so far, may diverge anywhere.
    const int divergent = m->divergent && m->stepsize < 1.5 * exp(m->log_step_mean);
    if (m->linear && (!m->standard || m->standardised == NUTS_SETTLED) && nuts_adapt_linear(m, moved, divergent, last_window - m->sweep))
        m->search = m->settings.step == 0;
}

// How far an effect is standardised whose standardised coordinate has this precision given all else.
DEVICE double nuts_share(double precision)
{
    return precision < NUTS_WEAK ? 1 : precision > NUTS_STRONG ? 0 : square(NUTS_WEAK / precision);
}

// The coordinates of effects stay what they become, and all that was learned in others is forgotten.
DEVICE void nuts_settle(Nuts *m)
{
    m->standardised = NUTS_SETTLED;
    m->known = m->metric_known = 0;
    m->foreground = m->background = 0;
}

// Coordinates of effects change with the next transition, and with them the density that it begins with.
DEVICE int nuts_standardise(Nuts *m)
{
    const long settles = m->warmup / 6 > 10 ? m->warmup / 6 : 10;
    wide *__restrict__ c = m->standard;
    if (!m->standard || m->settings.step > 0 || m->settings.metric != NUTS_ADAPTED || m->warmup < 20 || m->standardised == NUTS_SETTLED)
        return 0;
    const int standard = m->standardised == NUTS_STANDARD;
    if (standard && (m->settings.waits || m->sweep < settles || m->foreground < 5)) return 0;
    const wide *__restrict__ mean = nuts_vector(m, NUTS_FOREGROUND + 2), *__restrict__ squares = nuts_vector(m, NUTS_FOREGROUND + 3);
    NUTS_EACH (i, m) c[i] = standard ? nuts_share(squares[i] / (double)m->foreground + mean[i] * mean[i]) : 1;
    nuts_settle(m);
    if (!standard) m->standardised = NUTS_STANDARD;
    return 1;
}

DEVICE void nuts_adapt(Nuts *m)
{
    if (nuts_standardise(m)) return;
    const long last_window = m->warmup - (long)(0.15 * (double)m->warmup);
    // points far out at a high temperature say nothing of the scales at temperature 1
    if (m->cooling < 1) m->foreground = m->background = 0;
    else if (m->settings.metric == NUTS_ADAPTED && m->sweep < last_window) nuts_adapt_metric(m, last_window);
    if (m->settings.step > 0 || m->search) return;
    nuts_adapt_step(m, m->accept_stat, m->settings.target > 0 ? m->settings.target : 0.8);
    if (m->sweep == m->warmup - 1) m->step = exp(m->log_step_mean);
}

// The temperature of sweep `sweep` where warm-up begins at `first`: it falls by the same factor from sweep to sweep and is 1, exactly, from
// two thirds of warm-up on. (Beam, Ghosh and Doyle 2016, Journal of Computational and Graphical Statistics 25: from 1000 by 0.9 a sweep, 66
// of 100.)
DEVICE double nuts_temperature(double first, long sweep, long warmup)
{
    const long falls = 2 * warmup / 3;
    return first > 1 && sweep < falls ? pow(first, 1 - (double)sweep / (double)falls) : 1;
}

// ---- the transition ----

// Begins the update of sweep `sweep`, counted from 0, of which the first `warmup` adapt. x: the chain's state, n numbers; NULL: it is in
// nuts_position(m).
DEVICE_CALL void nuts_begin(Nuts *m, Stream *g, const wide *x, const NutsSettings *settings, long sweep, long warmup)
{
    wide *position = nuts_position(m);
    if (x)
        NUTS_EACH (i, m) position[i] = x[i];
    m->g = *g;
    m->phase = NUTS_BEGUN;
    m->settings = *settings;
    if (!(m->settings.max_depth > 0 && m->settings.max_depth < NUTS_DEPTH)) m->settings.max_depth = NUTS_DEPTH;
    if (settings->metric == NUTS_ADAPTED && sweep < warmup && !m->metric_known && m->settings.max_depth > NUTS_FIRST_DEPTH)
        m->settings.max_depth = NUTS_FIRST_DEPTH;
    m->sweep = sweep;
    m->warmup = warmup;
    m->cooling = settings->temperature > 0 ? 1 / settings->temperature : 1;
    m->accept_stat = m->stepsize = m->energy = 0;
    m->treedepth = m->n_leapfrog = m->divergent = m->failed = m->evaluations = 0;
}

DEVICE void nuts_set_step(Nuts *m, double step)
{
    m->step = step;
    m->kick = 0.5 * step * sqrt(m->cooling);
    m->drift = step / sqrt(m->cooling);
}

// The energy where the step led, with its second half; infinite if anything is not finite.
DEVICE double nuts_arrive(Nuts *m)
{
    const double kinetic = nuts_kick(m), h = kinetic - m->cooling * m->log_density;
    return is_finite(h) ? h : INFINITY;
}

DEVICE int nuts_leaves(const Nuts *m) { return m->settings.walls && !is_finite(m->log_density); }

// A new momentum at the chain's state.
DEVICE void nuts_push(Nuts *m)
{
    NUTS_FIND_PUSH(m);
    const double kinetic = nuts_draw_momentum(m);
    m->start = kinetic - m->cooling * m->draw_density;
    m->side = 1;
}

DEVICE void nuts_return(Nuts *m)
{
    nuts_copy(m, NUTS_POSITION, m->draw);
    nuts_copy(m, NUTS_GRADIENT, m->draw + 1);
    m->log_density = m->draw_density;
}

// The draw is the chain's state.
DEVICE void nuts_finish(Nuts *m)
{
    nuts_return(m);
    m->energy = m->draw_energy;
    m->accept_stat = m->accepted / (m->n_leapfrog > 0 ? m->n_leapfrog : 1);
    if (m->sweep < m->warmup) nuts_adapt(m);
    m->phase = NUTS_DONE;
}

// A subtree as large as the tree begins, with a step from one of its ends.
DEVICE void nuts_double(Nuts *m)
{
    const int side = uniform_open(&m->g) < 0.5 ? -1 : 1;
    if (side != m->side && m->treedepth > 0) {
        nuts_turn(m);
        NUTS_FIND_PUSH(m);
    }
    m->side = side;
    nuts_copy(m, NUTS_NEAR_MOMENTUM, NUTS_MOMENTUM);
    m->leaf = 0;
    m->half_weight = 0;
    m->spares = 0;
    for (int k = NUTS_POOL + 3 * m->treedepth - 1; k-- > NUTS_POOL;) m->spare[m->spares++] = (signed char)k;
}

// A trajectory from the draw, the chain's state.
DEVICE NutsNext nuts_launch(Nuts *m)
{
    m->phase = NUTS_MOVING;
    m->stepsize = m->step;
    m->base = m->accepted = 0;
    m->weight = 1;
    m->draw_energy = m->start;
    m->draw_place = m->ahead = m->behind = 0;
    if (m->settings.steps > 0) return NUTS_LEAP;
    for (int k = 0; k < 3; k++) nuts_copy(m, NUTS_FAR_POSITION + k, NUTS_POSITION + k);
    nuts_copy(m, NUTS_SUM, NUTS_MOMENTUM);
    return NUTS_DOUBLE;
}

// The answer at the start: what has to be set up once.
DEVICE NutsNext nuts_started(Nuts *m)
{
    const NutsSettings *s = &m->settings;
    m->failed = !is_finite(m->log_density) ? 1 : !nuts_all_finite(m, NUTS_GRADIENT) ? 2 : 0;
    if (m->failed) return NUTS_STOP;
    m->draw = NUTS_FIRST;
    nuts_copy(m, m->draw, NUTS_POSITION);
    nuts_copy(m, m->draw + 1, NUTS_GRADIENT);
    m->draw_density = m->log_density;
    if (s->metric == NUTS_UNIT) nuts_fill(m, NUTS_METRIC, 1);
    if (!m->known) {
        m->known = m->search = 1;
        m->step = 1 / sqrt(sqrt((double)m->n));
        if (s->metric == NUTS_ADAPTED) {
            nuts_first_metric(m);
            nuts_estimate(m, NUTS_FOREGROUND, m->foreground = 1);
            nuts_estimate(m, NUTS_BACKGROUND, m->background = 1);
        }
    }
    nuts_set_step(m, s->step > 0 ? s->step : m->step);
    if (s->step > 0) m->search = 0;
    if (!m->search) return NUTS_LAUNCH;
    m->tries = 0;
    m->phase = NUTS_SEARCHING;
    return NUTS_LEAP;
}

// The answer after one step of the search. Each trial has a momentum of its own.
DEVICE NutsNext nuts_searched(Nuts *m)
{
    const double h = nuts_arrive(m);
    // Far out an energy that falls by much means that the step size is too large. In warm-up such steps are welcome, since they come down
    // fast; the step size that is kept must be stable.
    const double gain = m->start - h, enough = log(0.8);
    const int well = gain > enough && (m->sweep < m->warmup || gain < -enough);
    nuts_return(m);
    if (m->tries++ == 0) m->doubling = well;
    if (well == m->doubling && m->tries < NUTS_SEARCHES && m->step < 1e5 && m->step > 1e-15) {
        nuts_set_step(m, m->doubling ? 2 * m->step : 0.5 * m->step);
        return NUTS_LEAP;
    }
    m->search = 0;
    nuts_average_anew(m, 10);
    return NUTS_LAUNCH;
}

// The point that moved becomes the subtree's.
DEVICE void nuts_try(Nuts *m, double energy, int place)
{
    const int trial = m->draw == NUTS_FIRST ? NUTS_SECOND : NUTS_FIRST;
    nuts_copy(m, trial, NUTS_POSITION);
    nuts_copy(m, trial + 1, NUTS_GRADIENT);
    m->trial_energy = energy;
    m->trial_density = m->log_density;
    m->trial_place = place;
}

DEVICE void nuts_take(Nuts *m)
{
    m->draw = m->draw == NUTS_FIRST ? NUTS_SECOND : NUTS_FIRST;
    m->draw_energy = m->trial_energy;
    m->draw_density = m->trial_density;
    m->draw_place = m->trial_place;
}

// A point of an HMC trajectory. Only what is not finite ends it early, so that the way back would end too.
DEVICE NutsNext nuts_stepped(Nuts *m)
{
    const double h = nuts_arrive(m);
    m->n_leapfrog++;
    if (!(h - m->start <= NUTS_ENERGY)) m->divergent = 1;
    m->left += nuts_leaves(m);
    if (h < INFINITY && m->n_leapfrog < m->settings.steps) return NUTS_LEAP;
    const double ratio = h < m->start ? 1 : exp(m->start - h);
    nuts_try(m, h, m->n_leapfrog);  // whatever comes of it: chees.h reads it
    if (uniform_open(&m->g) < ratio) nuts_take(m);
    m->accepted = ratio * m->n_leapfrog;
    return NUTS_FINISH;
}

DEVICE int nuts_spare(Nuts *m) { return m->spare[--m->spares]; }

DEVICE void nuts_release(Nuts *m, int which)
{
    if (which >= NUTS_POOL) m->spare[m->spares++] = (signed char)which;
}

// The subtree, complete and sound, joins the tree.
DEVICE NutsNext nuts_grown(Nuts *m)
{
    if (m->side > 0) m->ahead += m->leaf;
    else m->behind += m->leaf;
    m->treedepth++;
    if (uniform_open(&m->g) * m->weight < m->half_weight) nuts_take(m);
    m->weight += m->half_weight;
    return m->treedepth < m->settings.max_depth ? NUTS_DOUBLE : NUTS_FINISH;
}

// A point of the subtree. Halves are joined as carries of the binary counter `leaf`.
DEVICE NutsNext nuts_moved(Nuts *m)
{
    const double h = nuts_arrive(m), gain = m->start - h;
    m->n_leapfrog++;
    if (!(gain >= -NUTS_ENERGY)) {
        m->divergent = 1;
        m->left += nuts_leaves(m);
        return NUTS_FINISH;
    }
    if (gain - m->base > 400) {  // a start far out: weights stay within doubles
        const double less = exp(m->base - gain);
        m->weight *= less;
        m->half_weight *= less;
        m->base = gain;
    }
    const double w = exp(gain - m->base);
    m->accepted += gain > 0 ? 1 : m->base == 0 ? w : exp(gain);
    m->half_weight += w;
    const int index = m->leaf++;
    if (index == 0 || uniform_open(&m->g) * m->half_weight < w) nuts_try(m, h, m->side > 0 ? m->ahead + m->leaf : -m->behind - m->leaf);

    NutsHalf half;
    half.first = half.last = half.sum = NUTS_MOMENTUM;
    int level = 0;
    if (index & 1) {
        half.first = m->half[0].first;
        half.sum = (signed char)nuts_spare(m);
        if (!nuts_join_points(m, half.first, half.sum)) return NUTS_FINISH;
        level = 1;
    }
    for (; level <= m->treedepth; level++) {
        // The tree is as large as the subtree: it is the last that joins.
        const int whole = level == m->treedepth;
        NutsHalf before = m->half[level];
        if (whole) {
            before.first = NUTS_FAR_MOMENTUM;
            before.last = NUTS_NEAR_MOMENTUM;
            before.sum = NUTS_SUM;
        } else if (!(index >> level & 1)) break;
        const int sound = nuts_join(m, before, half);
        if (whole) {
            const NutsNext next = nuts_grown(m);
            return sound ? next : NUTS_FINISH;
        }
        if (!sound) return NUTS_FINISH;
        nuts_release(m, half.first);
        nuts_release(m, half.sum);
        nuts_release(m, before.last);
        half.first = before.first;
        half.sum = before.sum;
    }
    half.last = (signed char)nuts_spare(m);
    nuts_copy(m, half.last, NUTS_MOMENTUM);
    if (level == 0) half.first = half.sum = half.last;
    m->half[level] = half;
    return NUTS_LEAP;
}

// 1: the caller evaluates log density and gradient at nuts_position(m) and calls again. 0: nuts_position(m) is the next draw.
DEVICE_CALL int nuts_next(Nuts *m)
{
    NutsNext next = NUTS_STOP;
    switch (m->phase) {
    case NUTS_BEGUN:
        if (!m->settings.same_density || !m->known) {
            m->phase = NUTS_AT_START;
            m->evaluations = 1;
            return 1;
        }
        next = nuts_started(m);
        break;
    case NUTS_AT_START: next = nuts_started(m); break;
    case NUTS_SEARCHING: next = nuts_searched(m); break;
    case NUTS_MOVING: next = m->settings.steps > 0 ? nuts_stepped(m) : nuts_moved(m); break;
    case NUTS_DONE: break;
    }
    if (next == NUTS_LAUNCH || m->phase == NUTS_SEARCHING) nuts_push(m);
    if (next == NUTS_LAUNCH) next = nuts_launch(m);
    if (next == NUTS_DOUBLE) nuts_double(m);
    if (next == NUTS_FINISH) nuts_finish(m);
    if (next == NUTS_FINISH || next == NUTS_STOP) {
        m->phase = NUTS_DONE;
        return 0;
    }
    nuts_kick_and_drift(m);
    m->evaluations++;
    return 1;
}

#endif
