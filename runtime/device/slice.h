// slice.h -- slice sampling of one real, without function pointers: the sampler asks, the caller answers.
//
//     Slice sl;
//     slice_begin(&sl, g, x0, lo, hi, width);
//     while (slice_next(&sl)) sl.log_density = <log density at sl.x, up to a constant>;
//     x = sl.x;
//
//   target      any density on [lo, hi], either end may be infinite; slice_begin_log: on 0 <= lo < x < hi, in the coordinate log x (the
//               Jacobian is added here), `width` then in units of log x. slice_begin_log_kept, slice_begin_logit_kept: the logarithms of x
//               are given, and those of the new value are sl.log_x, sl.log1m_x
//   parameters  width > 0, about the width of the density; a bad one costs evaluations, not correctness
//   method      Neal 2003, Slice sampling: stepping out (figure 3) with the limit of m expansions split at random, then shrinkage (figure
//               5). Leaves the target invariant for every fixed width and m; adapt the width in warm-up only, from sl.right - sl.left. m =
//               1000; along log x as many as span a factor of about e^8, and 4 at least. Where a chain starts far out, the log density may
//               be so low that the slice is all of 0 < x, of which a uniform draw of log x is 0.
//   errors      log density at x0 not finite, or x0 outside its support: sl.failed = 1, the value stays x0. At a trial -infinity, NaN or
//               +infinity counts as density 0.
//   test        tests/runtime/slice.c
#ifndef GM_SLICE_H
#define GM_SLICE_H

#include "rng.h"
#include "special.h"

typedef enum {    // what the value just answered was for
    SLICE_START,  // nothing asked yet
    SLICE_AT_X0,
    SLICE_LEFT,  // is the left end still inside the slice?
    SLICE_RIGHT,
    SLICE_TRIAL,
    SLICE_DONE,
} SlicePhase;

#define SLICE_EXPANSIONS 1000
#define SLICE_REACH      8.0  // along log x

typedef struct Slice {
    double x;            // where the log density is wanted; at the end the new value
    double log_density;  // the caller's answer
    double left, right;  // the bracket, in the sampler's coordinate
    int evaluations;
    int failed;
    Stream *g;
    SlicePhase phase;
    int log_scale;          // the coordinate is log x
    int logit_scale;        // or logit x
    int keeps;              // logarithms are kept: x stays where it has one
    double log_x, log1m_x;  // then: log x, log(1 - x), exact where x has rounded to an end
    double t0, trial;       // start and trial, in the sampler's coordinate
    double x0;
    double lo, hi, width;  // in the sampler's coordinate
    double level;          // log of the slice's height
    long expansions, left_steps, right_steps;
} Slice;

DEVICE_CALL void slice_begin(Slice *s, Stream *g, double x0, double lo, double hi, double width)
{
    s->x = s->x0 = s->t0 = s->trial = x0;
    s->log_density = 0;
    s->left = s->right = x0;
    s->evaluations = 0;
    s->failed = !(x0 >= lo && x0 <= hi) || !is_finite(x0) || !(width > 0);
    s->g = g;
    s->phase = s->failed ? SLICE_DONE : SLICE_START;
    s->log_scale = s->logit_scale = s->keeps = 0;
    s->lo = lo;
    s->hi = hi;
    s->width = width;
    s->level = 0;
    s->expansions = SLICE_EXPANSIONS;
    s->left_steps = s->right_steps = 0;
}

DEVICE long slice_reach(double width)
{
    return width > SLICE_REACH / 4 ? 4 : width < SLICE_REACH / SLICE_EXPANSIONS ? SLICE_EXPANSIONS : 1 + (long)(SLICE_REACH / width);
}

DEVICE void slice_along_log(Slice *s, double log_x0, double lo, double hi, double width)
{
    s->log_scale = 1;
    s->expansions = slice_reach(width);
    s->t0 = s->trial = s->left = s->right = log_x0;
    s->lo = lo > 0 ? log(lo) : -INFINITY;
    s->hi = hi < INFINITY ? log(hi) : INFINITY;
}

// For a positive variable.
DEVICE_CALL void slice_begin_log(Slice *s, Stream *g, double x0, double lo, double hi, double width)
{
    slice_begin(s, g, x0, lo > 0 ? lo : 0, hi, width);
    if (!(x0 > 0)) {
        s->failed = 1;
        s->phase = SLICE_DONE;
        return;
    }
    slice_along_log(s, log(x0), lo, hi, width);
}

// The same where logarithms are kept: log_x0 is that of x0, also where x0 has rounded to an end.
DEVICE_CALL void slice_begin_log_kept(Slice *s, Stream *g, double x0, double log_x0, double lo, double hi, double width)
{
    slice_begin(s, g, x0, lo > 0 ? lo : 0, hi, width);
    s->keeps = 1;
    if (s->failed) return;
    slice_along_log(s, log_x0, lo, hi, width);
    s->log_x = log_x0;
}

// For a variable between 0 and 1, in the coordinate logit x (the Jacobian is added here), its logarithms being kept.
DEVICE_CALL void slice_begin_logit_kept(Slice *s, Stream *g, double x0, double log_x0, double log1m_x0, double lo, double hi, double width)
{
    slice_begin(s, g, x0, lo > 0 ? lo : 0, hi < 1 ? hi : 1, width);
    s->keeps = 1;
    if (s->failed) return;
    s->logit_scale = 1;
    s->expansions = slice_reach(width);
    s->log_x = log_x0;
    s->log1m_x = log1m_x0;
    s->t0 = s->trial = s->left = s->right = log_x0 - log1m_x0;
    s->lo = lo > 0 ? logit(lo) : -INFINITY;
    s->hi = hi < 1 ? logit(hi) : INFINITY;
}

DEVICE void slice_logs(Slice *s, double t)
{
    if (!s->keeps) return;
    s->log_x = s->logit_scale ? log_inv_logit(t) : t;
    s->log1m_x = s->logit_scale ? log1m_inv_logit(t) : NAN;
}

// Asks for the log density at coordinate t. Returns 1.
DEVICE_CALL int slice_ask(Slice *s, double t, SlicePhase phase)
{
    s->trial = t;
    s->x = s->logit_scale ? from_logit(t) : !s->log_scale ? t : s->keeps ? from_log(t) : exp(t);
    slice_logs(s, t);
    s->phase = phase;
    s->evaluations++;
    return 1;
}

// The trial within the bracket.
DEVICE_CALL int slice_ask_trial(Slice *s)
{
    const double t = s->left + uniform_open(s->g) * (s->right - s->left);
    return slice_ask(s, clamp(t, s->lo, s->hi), SLICE_TRIAL);
}

// The next step of stepping out to the right, or the first trial. An end of the support ends the bracket.
DEVICE_CALL int slice_ask_right(Slice *s)
{
    if (s->right >= s->hi) {
        s->right = s->hi;
        return slice_ask_trial(s);
    }
    if (s->right_steps-- > 0) return slice_ask(s, s->right, SLICE_RIGHT);
    return slice_ask_trial(s);
}

DEVICE_CALL int slice_ask_left(Slice *s)
{
    if (s->left <= s->lo) {
        s->left = s->lo;
        return slice_ask_right(s);
    }
    if (s->left_steps-- > 0) return slice_ask(s, s->left, SLICE_LEFT);
    return slice_ask_right(s);
}

// 1: the caller evaluates the log density at s->x and calls again. 0: s->x is the new value.
DEVICE_CALL int slice_next(Slice *s)
{
    // The target in the sampler's coordinate; what is not finite is outside every slice.
    double f = s->log_density + (s->log_scale ? s->trial : s->logit_scale ? s->log_x + s->log1m_x : 0);
    if (!is_finite(f)) f = -INFINITY;

    switch (s->phase) {
    case SLICE_START: return slice_ask(s, s->t0, SLICE_AT_X0);

    case SLICE_AT_X0:
        if (f == -INFINITY) {
            s->failed = 1;
            break;
        }
        s->level = f - exponential_standard(s->g);
        s->left = s->t0 - uniform_open(s->g) * s->width;
        s->right = s->left + s->width;
        s->left_steps = (long)(uniform_open(s->g) * (double)s->expansions);
        s->right_steps = s->expansions - 1 - s->left_steps;
        return slice_ask_left(s);

    case SLICE_LEFT:
        if (f > s->level) {
            s->left -= s->width;
            return slice_ask_left(s);
        }
        return slice_ask_right(s);

    case SLICE_RIGHT:
        if (f > s->level) {
            s->right += s->width;
            return slice_ask_right(s);
        }
        return slice_ask_trial(s);

    case SLICE_TRIAL:
        if (f > s->level) {
            s->phase = SLICE_DONE;
            return 0;  // s->x is the trial
        }
        if (s->trial < s->t0) s->left = s->trial;
        else s->right = s->trial;
        // A bracket of rounding's width around x0: x0 itself is the only point left.
        if (!(s->right - s->left > 1e-15 * fabs(s->t0)) || s->evaluations > 5000) break;
        return slice_ask_trial(s);

    case SLICE_DONE: break;
    }
    s->phase = SLICE_DONE;
    s->x = s->x0;
    slice_logs(s, s->t0);
    return 0;
}

#endif
