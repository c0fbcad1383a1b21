// within.h -- draws from part of a distribution, by its distribution function or its probabilities.
//
//   density     that of the distribution on [lo, hi], either end may be infinite
//   method      The program tries the distribution's own routine GM_TRIES times and takes the first draw between the ends. If there is
//   none,
//               Inversion or Weights gives a draw of the same law.
//   Inversion   the x with P(lo < X <= x) = u P(lo < X <= hi), by bisection on the doubles, from log_cdf or log_ccdf: whichever is the
//               smaller there, so that tails keep their digits
//   Weights     of integers: all values are weighed, from the end of the larger probability towards the other. Each replaces the current
//               one with its share of the sum so far (Chao 1982, A general purpose unequal probability sampling plan)
//   accuracy    Inversion: that of the distribution function, at most 64 steps. Weights: GM_MOST_WEIGHTS values at most. Values beyond
//               GM_FEW end it if they are less likely than those before and have less than 1e-18 of the sum
//   test        tests/runtime/within.c
#ifndef GM_WITHIN_H
#define GM_WITHIN_H

#include "rng.h"
#include "special.h"

#define GM_TRIES        64
#define GM_MOST_TRIES   1000000L  // where there is no other way
#define GM_FEW          4096      // of a finite range; of an infinite one GM_TRIES
#define GM_MOST_WEIGHTS 10000000L

// ---- doubles as integers, in the same order ----

DEVICE int64_t order_of(double x)
{
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    const int64_t bits = __double_as_longlong(x);
#else
    union {
        double x;
        int64_t bits;
    } u = {x};
    const int64_t bits = u.bits;
#endif
    return bits < 0 ? (int64_t)0x8000000000000000ull - bits : bits;
}

DEVICE double of_order(int64_t order)
{
    const int64_t bits = order < 0 ? (int64_t)0x8000000000000000ull - order : order;
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    return __longlong_as_double(bits);
#else
    union {
        int64_t bits;
        double x;
    } u = {bits};
    return u.x;
#endif
}

// ---- inversion ----

typedef struct Inversion {
    double x;             // where the distribution function is wanted
    double below, above;  // what the program puts here: log P(X <= x), log P(X > x)
    double lo, hi, u, target;
    double below_lo, above_lo;
    int64_t left, right;  // the draw lies in (left, right]
    int phase, upper;     // 0 begun, 1 at lo, 2 at hi, 3 between; by the upper tail
} Inversion;

// Where an end is that of the support, nothing lies beyond it, and the distribution function need not be asked.
DEVICE Inversion inversion_start(Stream *g, double lo, double hi)
{
    Inversion v;
    v.lo = lo;
    v.hi = hi;
    v.x = lo;
    v.u = uniform_open(g);
    v.below = v.above = v.below_lo = v.above_lo = v.target = 0;
    v.left = v.right = 0;
    v.phase = v.upper = 0;
    return v;
}

DEVICE int inversion_bracket(Inversion *v)
{
    const double below = v->below, above = v->above;  // at hi
    v->upper = v->above_lo < below;
    const double part = v->upper ? log_diff_exp(v->above_lo, above) : log_diff_exp(below, v->below_lo);
    v->target = log_sum_exp2(v->upper ? above : v->below_lo, log(v->u) + part);
    v->left = order_of(v->lo);
    v->right = order_of(v->hi);
    if (!(part > -INFINITY)) v->left = v->right = order_of(NAN);  // no digits left of what lies between
    v->phase = 3;
    return 1;
}

// Whether the distribution function is wanted at v->x.
DEVICE int inversion_next(Inversion *v, double support_lo, double support_hi)
{
    if (v->phase == 0) {
        v->phase = 1;
        v->x = v->lo;
        if (v->lo > support_lo) return 1;
        v->below = -INFINITY;
        v->above = 0;
    }
    if (v->phase == 1) {
        v->below_lo = v->below;
        v->above_lo = v->above;
        v->phase = 2;
        v->x = v->hi;
        if (v->hi < support_hi) return 1;
        v->below = 0;
        v->above = -INFINITY;
    }
    if (v->phase == 2) inversion_bracket(v);
    else if (v->upper ? v->above <= v->target : v->below >= v->target) v->right = order_of(v->x);
    else v->left = order_of(v->x);
    const uint64_t apart = (uint64_t)v->right - (uint64_t)v->left;  // more than an int64_t holds
    if (v->left >= v->right || apart < 2) return 0;
    v->x = of_order((int64_t)((uint64_t)v->left + apart / 2));
    return 1;
}

// NaN if the interval has no probability in doubles.
DEVICE double inversion_value(const Inversion *v)
{
    const double x = v->lo == v->hi ? v->lo : of_order(v->right);
    return x < v->lo ? v->lo : x > v->hi ? v->hi : x;
}

// ---- weights ----

typedef struct Weights {
    long x;             // whose log probability is wanted
    double log_weight;  // what the program puts here
    long lo, hi, first, value, count;
    double sum, last, top;  // of exp(log_weight - top)
    int phase, down;
} Weights;

// hi may be infinite; lo may not.
DEVICE Weights weights_start(double lo, double hi)
{
    Weights v;
    v.lo = lo < 9e18 ? (long)ceil(lo) : 9000000000000000000L;
    v.hi = hi < 9e18 ? (long)floor(hi) : 9000000000000000000L;
    v.x = v.first = v.value = v.lo;
    v.count = 0;
    v.log_weight = v.last = v.top = -INFINITY;
    v.sum = 0;
    v.phase = v.down = 0;
    return v;
}

// Whether the log probability of v->x is wanted.
DEVICE int weights_next(Stream *g, Weights *v)
{
    if (v->phase == 0) {  // at lo, to compare it with hi
        if (v->lo > v->hi) return 0;
        v->phase = v->hi < 9000000000000000000L && v->lo < v->hi ? 1 : 2;
        v->x = v->lo;
        return 1;
    }
    if (v->phase == 1) {
        v->last = v->log_weight;
        v->phase = 3;
        v->x = v->hi;
        return 1;
    }
    if (v->phase == 3) {
        v->down = v->log_weight > v->last;
        v->last = -INFINITY;
        v->phase = 2;
        if (!v->down) {
            v->x = v->lo;
            return 1;
        }
    }
    // v->x has its weight
    const double l = v->log_weight;
    if (l > v->top) {
        v->sum *= exp(v->top - l);
        v->top = l;
    }
    if (l > -INFINITY) {
        const double w = exp(l - v->top);
        v->sum += w;
        if (v->sum == w || uniform_open(g) * v->sum <= w) v->value = v->x;
    }
    v->count++;
    if (v->x == (v->down ? v->lo : v->hi)) return 0;
    if (v->count > (v->hi < 9000000000000000000L ? GM_FEW : GM_TRIES) && l < v->last && l - v->top < log(v->sum) - 41.5) return 0;
    if (v->count >= GM_MOST_WEIGHTS || l != l) {
        v->sum = 0;
        return 0;
    }
    v->last = l;
    v->x += v->down ? -1 : 1;
    return 1;
}

// NaN if no value has a probability, or if there are too many.
DEVICE double weights_value(const Weights *v) { return v->sum > 0 ? (double)v->value : NAN; }

#endif
