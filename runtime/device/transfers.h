// transfers.h -- between which elements of an array counts are exchanged, and from how many values the change is drawn.
//
//   partners    1 .. n in pairs; who has nobody is his own partner. With a distance above 0 pairs lie so far apart: blocks of two times the
//               distance, the first of which begins `phase` before 1, the first half of each with the second. Distances are drawn with
//               equal weights of their logarithms: neighbours, which are often in one sum, are likely. With distance 0 the places of a
//               pair, from 0, add up to the phase modulo n: all pairs are as likely. So are all made where n is small, but 2, and half of
//               them elsewhere
//   window      the change is a multiple of `step`, drawn from GM_TRANSFER_VALUES values, of which `below` are below 0. If all that it may
//               be, low .. high, are no more, they are these. Else `step` is a power of 2, at most what makes the window as wide as high -
//               low, and below is uniform. A change alters low and high alike, so the same window is as likely to be drawn from its other
//               end
//   parameters  n >= 1; low <= 0 <= high, whole numbers
//   used by     updates of compiler/graph/updates/transfers.c
//   test        tests/runtime/discrete.c
#ifndef GM_TRANSFERS_H
#define GM_TRANSFERS_H

#include "rng.h"

enum { GM_TRANSFER_VALUES = 32, GM_TRANSFER_FEW = 8 };

DEVICE_CALL long transfer_distance(Stream *g, long n)
{
    const double u = uniform_open(g);
    if (n <= 2) return 1;
    if (n <= GM_TRANSFER_FEW || u < 0.5) return 0;
    const long d = (long)floor(exp((2 * u - 1) * log((double)n)));
    return d < 1 ? 1 : d;
}

DEVICE_CALL long transfer_phase(Stream *g, long n, long distance)
{
    const double u = uniform_open(g);
    return n <= 2 ? 0 : (long)floor(u * (double)(distance ? 2 * distance : n));
}

DEVICE_CALL long transfer_partner(long k, long n, long distance, long phase)
{
    if (!distance) return (n + phase - (k - 1)) % n + 1;
    const long to = (k - 1 + phase) % (2 * distance) < distance ? k + distance : k - distance;
    return to < 1 || to > n ? k : to;
}

DEVICE_CALL double transfer_step(Stream *g, double low, double high)
{
    const double values = high - low + 1, u = uniform_open(g);
    if (values <= GM_TRANSFER_VALUES) return 1;
    return exp2(floor(u * (1 + ceil(log2(values / GM_TRANSFER_VALUES)))));
}

DEVICE_CALL double transfer_below(Stream *g, double low, double high)
{
    const double u = uniform_open(g);
    return high - low < GM_TRANSFER_VALUES ? -low : floor(u * GM_TRANSFER_VALUES);
}

DEVICE double transfer_first(double low, double step, double below) { return fmax(-below, ceil(low / step)); }
DEVICE double transfer_last(double high, double step, double below) { return fmin(GM_TRANSFER_VALUES - 1 - below, floor(high / step)); }

#endif
