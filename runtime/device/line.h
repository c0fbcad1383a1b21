// line.h -- an interval as the image of the line: x = T(y), for moves that know no bounds.
//
//   lo, hi       the ends, of which either or both may be infinite; T is the identity, lo + exp(y), hi - exp(y), or lo + (hi - lo) inv_logit(y)
//   from_line    T(y)                 to_line      its inverse
//   line_slope   dT/dy                line_log_slope   log |dT/dy|           line_bend   d log |dT/dy| / dy
//   line_by_lower, line_by_upper      what a density and log |dT/dy| change with an end
//
// Ends that are equal, and do not move, leave one value: y then has a logistic distribution of its own.
//
// Source: Stan Reference Manual, "Constraint Transforms". Error: a few roundings of the largest of lo, hi and x. Test: tests/runtime/line.c
#ifndef GM_LINE_H
#define GM_LINE_H

#include "special.h"

DEVICE double from_line(double y, double lo, double hi)
{
    if (lo > -INFINITY && hi < INFINITY) {
        const double x = y < 0 ? lo + (hi - lo) * inv_logit(y) : hi - (hi - lo) * inv_logit(-y);
        return clamp(x, lo, hi);
    }
    return lo > -INFINITY ? lo + exp(y) : hi < INFINITY ? hi - exp(y) : y;
}

DEVICE double to_line(double x, double lo, double hi)
{
    if (lo == hi) return 0;
    if (lo > -INFINITY && hi < INFINITY) return log((x - lo) / (hi - x));
    return lo > -INFINITY ? log(x - lo) : hi < INFINITY ? log(hi - x) : x;
}

DEVICE double line_slope(double y, double lo, double hi)
{
    if (lo > -INFINITY && hi < INFINITY) return (hi - lo) * inv_logit(y) * inv_logit(-y);
    return lo > -INFINITY ? exp(y) : hi < INFINITY ? -exp(y) : 1;
}

DEVICE double line_log_slope(double y, double lo, double hi)
{
    if (lo > -INFINITY && hi < INFINITY) return (lo == hi ? 0 : log(hi - lo)) - log1p_exp(-y) - log1p_exp(y);
    return lo > -INFINITY || hi < INFINITY ? y : 0;
}

DEVICE double line_bend(double y, double lo, double hi)
{
    if (lo > -INFINITY && hi < INFINITY) return inv_logit(-y) - inv_logit(y);
    return lo > -INFINITY || hi < INFINITY ? 1 : 0;
}

// Of a density whose derivative by x is `slope`: the derivative of it and of log |dT/dy| by the lower end, and by the upper one, y staying where it is.
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

#endif
