// elliptical.h -- elliptical slice sampling of a vector with a normal prior, without function pointers: the sampler asks, the caller
// answers.
//
//     Ellipse e;
//     ellipse_begin(&e, g, restarts);
//     while (ellipse_next(&e)) {
//         x = mean + e.cosine * (x0 - mean) + e.sine * (normal - mean);       x0: the chain's state; normal: a draw from the prior
//         e.log_density = <log of what multiplies the prior, at x, up to a constant>;
//     }                                                                       x is the new value
//
//   target      any density relative to a normal prior of x
//   parameters  restarts: how many angles are tried from a start of density 0, which is for warm-up alone; 0: such a start fails
//   method      Murray, Adams and MacKay 2010, Elliptical slice sampling: an angle from a bracket around the first one, which shrinks
//               towards 0
//   errors      log density at x0 not finite: e.failed = 1, and x is x0 again. At a trial -infinity, NaN or +infinity counts as density 0.
//   test        tests/runtime/elliptical.c
#ifndef GM_ELLIPTICAL_H
#define GM_ELLIPTICAL_H

#include "rng.h"

typedef enum { ELLIPSE_START, ELLIPSE_AT_X0, ELLIPSE_TRIAL, ELLIPSE_BACK, ELLIPSE_DONE } EllipsePhase;

typedef struct Ellipse {
    double cosine, sine;        // of the angle where the log density is wanted
    double log_density;         // the caller's answer
    double angle, left, right;  // the bracket
    double level;               // log of the slice's height
    int evaluations, restarts;
    int failed;
    Stream *g;
    EllipsePhase phase;
} Ellipse;

DEVICE_CALL void ellipse_begin(Ellipse *e, Stream *g, int restarts)
{
    e->cosine = 1;
    e->sine = e->log_density = e->angle = e->left = e->right = e->level = 0;
    e->evaluations = e->failed = 0;
    e->restarts = restarts;
    e->g = g;
    e->phase = ELLIPSE_START;
}

// Asks for the log density at an angle. Returns 1.
DEVICE_CALL int ellipse_ask(Ellipse *e, double angle, EllipsePhase phase)
{
    e->angle = angle;
    e->cosine = phase == ELLIPSE_TRIAL ? cos(angle) : 1;
    e->sine = phase == ELLIPSE_TRIAL ? sin(angle) : 0;
    e->phase = phase;
    e->evaluations++;
    return 1;
}

// Back to where the chain stood: the caller evaluates once more, and is not heard.
DEVICE_CALL int ellipse_back(Ellipse *e) { return ellipse_ask(e, 0, ELLIPSE_BACK); }

// 1: the caller evaluates the log density at the angle and calls again. 0: x is the new value.
DEVICE_CALL int ellipse_next(Ellipse *e)
{
    const double two_pi = 6.283185307179586477;
    const double f = is_finite(e->log_density) ? e->log_density : -INFINITY;
    switch (e->phase) {
    case ELLIPSE_START: return ellipse_ask(e, 0, ELLIPSE_AT_X0);

    case ELLIPSE_AT_X0: {
        e->failed = f == -INFINITY;
        if (e->failed && e->restarts == 0) return ellipse_back(e);
        // -infinity from a start of density 0: any angle of positive density will do
        e->level = f - exponential_standard(e->g);
        const double angle = two_pi * uniform_open(e->g);
        e->left = angle - two_pi;
        e->right = angle;
        return ellipse_ask(e, angle, ELLIPSE_TRIAL);
    }

    case ELLIPSE_TRIAL:
        if (f > e->level) {
            e->failed = 0;
            e->phase = ELLIPSE_DONE;
            return 0;
        }
        if (e->failed) {  // nothing is known of where to look
            if (e->evaluations > e->restarts) return ellipse_back(e);
            return ellipse_ask(e, two_pi * uniform_open(e->g), ELLIPSE_TRIAL);
        }
        if (e->angle < 0) e->left = e->angle;
        else e->right = e->angle;
        if (!(e->right - e->left > 1e-15) || e->evaluations > 1000) return ellipse_back(e);
        return ellipse_ask(e, e->left + uniform_open(e->g) * (e->right - e->left), ELLIPSE_TRIAL);

    case ELLIPSE_BACK:
    case ELLIPSE_DONE: break;
    }
    e->phase = ELLIPSE_DONE;
    return 0;
}

#endif
