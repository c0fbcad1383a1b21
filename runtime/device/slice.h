// slice.h -- slice sampling of one real, without function pointers: the sampler asks, the caller answers.
//
//     Slice sl;
//     slice_begin(&sl, g, x0, lo, hi, width);
//     while (slice_next(&sl)) sl.log_density = <log density at sl.x, up to a constant>;
//     x = sl.x;
//
//   target      any density on [lo, hi], either end may be infinite; slice_begin_log: on 0 <= lo < x < hi, in the coordinate log x
//               (the Jacobian is added here), `width` then in units of log x
//   parameters  width > 0, about the width of the density; a bad one costs evaluations, not correctness
//   method      Neal 2003, Slice sampling: stepping out (figure 3) with the limit of m expansions split at random, then
//               shrinkage (figure 5). Leaves the target invariant for every fixed width and m; adapt the width in warm-up only, from
//               sl.right - sl.left. m = 1000; along log x as many as go over a factor of some e^8, and 4 at least: where a chain starts
//               far out the log density may be so low that the slice holds all of 0 < x, of which a uniform draw of log x is 0.
//   errors      log density at x0 not finite, or x0 outside its support: sl.failed = 1, the value stays x0. At a trial -infinity, NaN or
//               +infinity counts as density 0.
//   test        tests/runtime/slice.c
#ifndef GM_SLICE_H
#define GM_SLICE_H

#include "rng.h"

typedef enum {                  // what the value just answered was for
    SLICE_START,                // nothing asked yet
    SLICE_AT_X0,
    SLICE_LEFT,                 // is the left end still inside the slice?
    SLICE_RIGHT,
    SLICE_TRIAL,
    SLICE_DONE,
} SlicePhase;

#define SLICE_EXPANSIONS 1000
#define SLICE_REACH      8.0    // along log x

typedef struct Slice {
    double     x;               // where the log density is wanted; at the end the new value
    double     log_density;     // the caller's answer
    double     left, right;     // the bracket, in the sampler's coordinate
    int        evaluations;
    int        failed;
    Stream    *g;
    SlicePhase phase;
    int        log_scale;       // the coordinate is log x
    double     t0, trial;       // start and trial, in the sampler's coordinate
    double     x0;
    double     lo, hi, width;   // in the sampler's coordinate
    double     level;           // log of the slice's height
    long       expansions, left_steps, right_steps;
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
    s->log_scale = 0;
    s->lo = lo;
    s->hi = hi;
    s->width = width;
    s->level = 0;
    s->expansions = SLICE_EXPANSIONS;
    s->left_steps = s->right_steps = 0;
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
    s->log_scale = 1;
    s->expansions = width > SLICE_REACH / 4 ? 4 : width < SLICE_REACH / SLICE_EXPANSIONS ? SLICE_EXPANSIONS : 1 + (long)(SLICE_REACH / width);
    s->t0 = s->trial = s->left = s->right = log(x0);
    s->lo = lo > 0 ? log(lo) : -INFINITY;
    s->hi = hi < INFINITY ? log(hi) : INFINITY;
}

// Asks for the log density at coordinate t. Returns 1.
DEVICE_CALL int slice_ask(Slice *s, double t, SlicePhase phase)
{
    s->trial = t;
    s->x = s->log_scale ? exp(t) : t;
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

// The next step out to the right, or the first trial. An end of the support ends the bracket.
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
    double f = s->log_density + (s->log_scale ? s->trial : 0);
    if (!is_finite(f)) f = -INFINITY;

    switch (s->phase) {
    case SLICE_START:
        return slice_ask(s, s->t0, SLICE_AT_X0);

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
            return 0;                                    // s->x is the trial
        }
        if (s->trial < s->t0) s->left = s->trial; else s->right = s->trial;
        // A bracket of rounding's width around x0: x0 itself is the only point left.
        if (!(s->right - s->left > 1e-15 * fabs(s->t0)) || s->evaluations > 5000) break;
        return slice_ask_trial(s);

    case SLICE_DONE:
        break;
    }
    s->phase = SLICE_DONE;
    s->x = s->x0;
    return 0;
}

#endif
