// metropolis.h -- a random-walk Metropolis update of one real: the sampler asks for a density, the caller answers, as in slice.h.
//
//     Metropolis m;
//     metropolis_begin(&m, g, x0, lo, hi, width);
//     while (metropolis_next(&m)) m.log_density = <log density at m.x, up to a constant>;
//     x = m.x;
//
//   target      any density on [lo, hi], either end may be infinite; metropolis_begin_log: on lo < x < hi, lo >= 0, by a walk in log x
//               (the Jacobian is added here), `width` then in units of log x
//   parameters  width > 0, the sd of the normal step; a bad one costs mixing, not correctness
//   method      Metropolis et al. 1953. A step beyond an end is rejected. metropolis_adapt: Robbins and Monro 1951 on log width, towards
//               accepting 0.44, the best for one coordinate (Gelman, Roberts and Gilks 1996); in warm-up only.
//   errors      log density at x0 not finite, or x0 outside its support: m.failed = 1, the value stays x0. At the trial -infinity, NaN or
//               +infinity counts as density 0.
//   test        tests/runtime/metropolis.c
#ifndef GM_METROPOLIS_H
#define GM_METROPOLIS_H

#include "rng.h"

typedef struct Metropolis {
    double x;            // where the log density is wanted; at the end the new value
    double log_density;  // the caller's answer
    double accepted;     // probability with which the trial was accepted
    int failed;
    Stream *g;
    int asked;      // how many answers were asked for
    int log_scale;  // the walk is in log x
    double x0, lo, hi, width;
    double level;  // log density of the walk at x0
} Metropolis;

DEVICE_CALL void metropolis_begin(Metropolis *m, Stream *g, double x0, double lo, double hi, double width)
{
    m->x = m->x0 = x0;
    m->log_density = m->accepted = m->level = 0;
    m->failed = !(x0 >= lo && x0 <= hi) || !is_finite(x0) || !(width > 0);
    m->g = g;
    m->asked = m->log_scale = 0;
    m->lo = lo;
    m->hi = hi;
    m->width = width;
}

// For a positive variable.
DEVICE_CALL void metropolis_begin_log(Metropolis *m, Stream *g, double x0, double lo, double hi, double width)
{
    metropolis_begin(m, g, x0, lo, hi, width);
    m->failed |= !(x0 > 0);
    m->log_scale = 1;
}

// 1: the caller evaluates the log density at m->x and calls again. 0: m->x is the new value.
DEVICE_CALL int metropolis_next(Metropolis *m)
{
    if (m->failed || m->asked > 2) return 0;
    const double f = m->log_density + (m->log_scale ? log(m->x) : 0);
    if (m->asked++ == 0) return 1;  // at x0
    if (m->asked == 2) {
        m->level = f;
        m->failed = !is_finite(f);
        if (m->failed) return 0;
        const double step = m->width * normal_standard(m->g);
        m->x = m->log_scale ? m->x0 * exp(step) : m->x0 + step;
        if (m->x >= m->lo && m->x <= m->hi && is_finite(m->x) && !(m->log_scale && m->x <= 0)) return 1;
    } else m->accepted = is_finite(f) ? f >= m->level ? 1 : exp(f - m->level) : 0;
    m->asked = 3;
    if (!(uniform_open(m->g) < m->accepted)) m->x = m->x0;
    return 0;
}

// The width for the next sweep, `sweep` being the number of those before this one: steps get smaller slowly enough to reach any width.
DEVICE double metropolis_adapt(double width, const Metropolis *m, double sweep)
{
    const double w = width * exp((m->accepted - 0.44) * pow(sweep + 1, -0.6));
    return !m->failed && is_finite(w) && w > 1e-300 ? w : width;
}

#endif
