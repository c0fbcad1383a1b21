// line.h -- an interval as the image of the line, x = T(y), and effects as images of standardised ones, for HMC, which knows no bounds and
// no scales.
//
//   lo, hi       the ends, of which either or both may be infinite; T is the identity, lo + exp(y), hi - exp(y), or lo + (hi - lo)
//                inv_logit(y)
//   from_line    T(y)                 to_line      its inverse
//   line_slope   dT/dy                line_log_slope   log |dT/dy|           line_bend   d log |dT/dy| / dy
//   line_by_lower, line_by_upper      what a density and log |dT/dy| change with an end
//
// Ends that are equal, and do not change, leave one value: y then has a logistic distribution of its own.
//
// Source: Stan Reference Manual, "Constraint Transforms". Error: a few roundings of the largest of lo, hi and x. Test: tests/runtime/line.c
#ifndef GM_LINE_H
#define GM_LINE_H

#include "special.h"

DEVICE_ROW double from_line(double y, double lo, double hi)
{
    if (lo > -INFINITY && hi < INFINITY) {
        const double x = y < 0 ? lo + (hi - lo) * inv_logit(y) : hi - (hi - lo) * inv_logit(-y);
        return clamp(x, lo, hi);
    }
    return lo > -INFINITY ? lo + exp_row(y) : hi < INFINITY ? hi - exp_row(y) : y;
}

DEVICE double to_line(double x, double lo, double hi)
{
    if (lo == hi) return 0;
    if (lo > -INFINITY && hi < INFINITY) return log((x - lo) / (hi - x));
    return lo > -INFINITY ? log(x - lo) : hi < INFINITY ? log(hi - x) : x;
}

DEVICE_ROW double line_slope(double y, double lo, double hi)
{
    if (lo > -INFINITY && hi < INFINITY) return (hi - lo) * inv_logit(y) * inv_logit(-y);
    return lo > -INFINITY ? exp_row(y) : hi < INFINITY ? -exp_row(y) : 1;
}

DEVICE_ROW double line_log_slope(double y, double lo, double hi)
{
    if (lo > -INFINITY && hi < INFINITY) return (lo == hi ? 0 : log_row(hi - lo)) - fabs(y) - 2 * log1p_unit(exp_minus(fabs(y)));
    return lo > -INFINITY || hi < INFINITY ? y : 0;
}

DEVICE_ROW double line_bend(double y, double lo, double hi)
{
    if (lo > -INFINITY && hi < INFINITY) return inv_logit(-y) - inv_logit(y);
    return lo > -INFINITY || hi < INFINITY ? 1 : 0;
}

// Of a density whose derivative by x is `slope`: the derivative of it and of log |dT/dy| by the lower end, and by the upper one, y staying
// where it is.
DEVICE double line_by_lower(double y, double lo, double hi, double slope)
{
    if (lo > -INFINITY && hi < INFINITY) return slope * inv_logit(-y) - 1 / (hi - lo);
    return lo > -INFINITY ? slope : 0;
}

DEVICE double line_by_upper(double y, double lo, double hi, double slope)
{
    if (lo > -INFINITY && hi < INFINITY) return slope * inv_logit(y) + 1 / (hi - lo);
    return lo == -INFINITY && hi < INFINITY ? slope : 0;
}

enum { BY_COORDINATES, BY_UNKNOWNS };  // which of the two log densities: the first has the log Jacobian besides

// Effects: u with a prior of centre m and spread s, standardised by the share c, is  u = m + scale (q - (1 - c) m),  scale = s^c: c = 0
// leaves u as it is, c = 1 makes it (u - m) / s. log |du/dq| = c log(s). Of a density whose derivative by u is `slope`, standard_by_centre
// and standard_by_spread are the derivatives of it and of log |du/dq| by m and s, q staying where it is, and scale * slope that by q.

// What one lane computes, element by element, for effects of which each has a centre that is made of those before it.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
DEVICE long longest_recursion(void) { return 1000; }
#else
DEVICE long longest_recursion(void) { return 100000; }
#endif
DEVICE double standard_scale(double c, double s) { return c == 0 ? 1 : c == 1 ? s : pow(s, c); }
DEVICE double from_standard(double q, double c, double m, double scale) { return m + scale * (q - (1 - c) * m); }
DEVICE double to_standard(double u, double c, double m, double scale) { return (u - m) / scale + (1 - c) * m; }
DEVICE double standard_by_centre(double c, double scale, double slope) { return slope * (1 - (1 - c) * scale); }
DEVICE double standard_by_spread(double u, double c, double m, double s, double slope)
{
    return c == 0 ? 0 : c * (slope * (u - m) + 1) / s;
}

// The chain rule of one effect: `slope` becomes the derivative by q, *by_m and *by_s those by m and s; returns log |du/dq|.
DEVICE double standard_chain(double c, double m, double s, double scale, double u, double *slope, double *by_m, double *by_s)
{
    *by_m = standard_by_centre(c, scale, *slope);
    *by_s = standard_by_spread(u, c, m, s, *slope);
    *slope = scale * *slope;
    return c == 0 ? 0 : c * log(s);
}

// The coordinate of the value x: the present one, q, if it gives x, so that no rounding moves it; else another.
DEVICE double kept_coordinate(double q, double at_q, double x, double other) { return at_q == x ? q : other; }

#endif
