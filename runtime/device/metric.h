// metric.h -- metrics of nuts.h that are not diagonal: of low rank, and dense. Products on a CPU and all estimates are in host/metric.c,
// products on a GPU in nuts.h, which knows of lanes.
//
//   M^-1 = D^1/2 F F' D^1/2     D diagonal: the inverse metric that nuts.h keeps
//     low rank                  F = I + U (S - I) U', the columns of U orthonormal, n by rank, S diagonal: the eigenvalues of F F' are
//                               those of S^2 along U, else 1
//     dense                     F = L, lower triangular
//
// nuts.h moves q = D^-1/2 F' D^1/2 p in place of the momentum p. Its law is normal(0, D^-1), and p' M^-1 p* = q' D q*: kinetic energy and
// turning criterion are those of the diagonal metric D. Two things differ:
//
//   gradient    the force on q is  D^-1/2 F' D^1/2 times the gradient                   metric_push
//   velocity    x' = M^-1 p = D times  D^-1/2 F D^1/2 q                                 metric_drift
//
//   cost        2 * 2 n rank multiply-adds an evaluation, or n (n + 1)
//   estimate    from the last draws and their gradients, scaled by D: of all metrics the geometric mean of cov(draws) and cov(gradients)^-1
//               makes the Fisher divergence from a normal distribution least (Seyboldt, Carlson and Carpenter 2025); for draws of a normal
//               it is the covariance, however few they are. Where coordinates are more than half of the draws it is taken in the span of
//               the leading principal components of both: along a wide direction draws vary most, along a narrow one gradients. Low rank
//               keeps at most METRIC_RANK eigenvectors, whose eigenvalues lie beyond 1/2 and 2; dense keeps all there are.
//   chosen      METRIC_CHOSEN begins diagonal. What low rank may save is the root of the ratio of the extreme eigenvalues, sqrt(condition),
//               over that of those which stay; the vectors are as many as make this, divided by what an evaluation then costs, the largest.
//               If that is 1.5 or more, some sweeps of warm-up try it. What is compared is evaluations times their cost for one effective
//               draw, by the autocorrelation of neighbouring draws. The new metric stays if that falls by a fifth on average over the
//               coordinates. It also stays if that falls to less than half along the slowest direction of its vectors, and does not rise by
//               a fifth on average. For one wide direction that is no coordinate slows all coordinates a little, and itself by much. If a
//               sweep of the trial, or three before it, diverged, it does not stay. If one diverges later in the warm-up, the metric is
//               diagonal again. The curvature then changes from place to place, which no one metric describes, and shorter trajectories
//               would hide it. Costs are counted, never timed.
//   on a GPU    estimates are the host's: a chain notes its draws, and every METRIC_ROWS sweeps of warm-up the host reads what it has
//               noted, and writes there what comes of it (host/device_metrics.c)
//   test        tests/runtime/nuts.c, tests/gpu/nuts.cu
#ifndef GM_METRIC_H
#define GM_METRIC_H

#include "base.h"

enum {
    METRIC_RANK = 10,    // vectors of a metric of low rank, at most
    METRIC_DRAWS = 128,  // that it is estimated from
    METRIC_MOST = 2000,  // coordinates that METRIC_CHOSEN looks at
    METRIC_MOST_DENSE = 1000,
    METRIC_ROWS = 20,  // sweeps that a chain on a GPU notes, at most, before the host reads them
};

typedef enum { METRIC_CHOSEN, METRIC_DIAGONAL, METRIC_LOW_RANK, METRIC_DENSE } MetricKind;

typedef enum { METRIC_WATCHING, METRIC_TRYING, METRIC_TAKEN, METRIC_REFUSED } MetricStage;

typedef struct MetricCount {  // over some sweeps
    long sweeps, evaluations, divergent;
    double *jumps;  // coordinate by coordinate: squared differences of neighbouring draws
} MetricCount;

typedef struct MetricNote {  // of a sweep on a GPU: the arguments of metric_note, and how many sweeps may still change the metric
    int moved, evaluations, divergent;
    long left;
} MetricNote;

// of a product with F or F', and of an evaluation with a diagonal metric, in multiply-adds, or in what takes as long as one of them
typedef struct MetricCost {
    double evaluation;
    double each;        // multiply-add that the products of low rank or of a dense metric make
    double sums, turn;  // on a GPU: a sum over coordinates by a team; one of those that a lane adds up for itself
} MetricCost;

typedef struct Metric {
    long n;
    MetricKind kind;
    MetricStage stage;
    int used;                  // 0: the metric is D
    int full;                  // 1: L; 0: low rank
    int rank;                  // of low rank
    double smallest, largest;  // eigenvalues that it has besides 1
    MetricCost cost;
    double gain;              // measured: work for an effective draw, diagonal over low rank
    wide *push, *velocity;    // what metric_push and metric_drift return
    wide *along, *across;     // low rank: D^1/2 U, D^-1/2 U (S - I), vector by vector
    wide *scale, *lower;      // dense: D^1/2; D^1/2 L D^-1/2 would be this, unscaled: L, row by row
    wide *upper;              // on a GPU: L'
    long window, kept;        // draws that there is room for; that came: number k is in row k % window
    wide *draws, *gradients;  // on a GPU: the last METRIC_ROWS at most, with the arguments of metric_note
    MetricNote *notes;
    long next;     // estimates are made when so many have come
    long since;    // sweeps since the metric changed
    int diverged;  // one of them that counts did
    long tried;    // how many draws had come when the trial began
    MetricCount before, now;
    wide *last;  // draw; on a GPU room for n numbers
} Metric;

// Cost of an evaluation's two products: with `rank` vectors of low rank, or dense. Sums over coordinates are made for SUMS vectors at a
// time.
enum { METRIC_SUMS = 5 };
DEVICE double metric_products(const MetricCost *c, double n, int rank, int full)
{
    return full ? n * (n + 1) * c->each + 2 * n * c->turn
                : 4 * n * rank * c->each + 2 * (double)((rank + METRIC_SUMS - 1) / METRIC_SUMS) * c->sums;
}

// The same as it is, in use.
DEVICE double metric_work(const Metric *m) { return metric_products(&m->cost, (double)m->n, m->rank, m->full); }

#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)

// A metric for n coordinates, diagonal at first; METRIC_DENSE: n <= METRIC_MOST_DENSE. warmup: sweeps in which draws may come. NULL: there
// is no memory.
Metric *metric_open(long n, MetricKind kind, MetricCost cost, long warmup);
void metric_close(Metric *m);

// Once nothing is adapted any more: what only estimates need is given back. Whether the metric is in use.
int metric_settle(Metric *m);

// Where the metric is in use. What is returned holds until the next call.
const wide *metric_push(Metric *m, const wide *gradient);
const wide *metric_drift(Metric *m, const wide *momentum);

// Whether metric_adapt will make another estimate, if it is given another draw or not: then D is to be what is known of it.
int metric_due(const Metric *m, int moved);

// After a sweep of warm-up: the chain's state, its gradient, D, whether that may count as another draw, what the sweep took, whether
// it diverged, and how many sweeps may still change the metric. 1: the metric is another now.
int metric_adapt(Metric *m, const wide *draw, const wide *gradient, const wide *diagonal, int moved, int evaluations, int divergent,
                 long left);

// The same in two parts, for sweeps that come some at a time: what a sweep adds, without a change of the metric; then what all of them
// change.
void metric_note(Metric *m, const wide *draw, const wide *gradient, int moved, int evaluations, int divergent);
int metric_decide(Metric *m, const wide *diagonal, long left);

// Whether a metric of n coordinates may be other than diagonal; whether it may become a dense one: then there is room for that.
int metric_is_looked_at(long n, MetricKind kind);
int metric_is_dense(long n, MetricKind kind);

#endif

#endif
