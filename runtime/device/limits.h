// limits.h -- numbers that the compiler writes programs by, and that the runtime and the device headers hold to: each stands here alone.
//
// Included by C of the compiler, C and C++ of the runtime, and programs on a GPU: definitions of integers, nothing else.
#ifndef GM_LIMITS_H
#define GM_LIMITS_H

#define GM_MAX_RANK    6                   // dimensions of an array
#define GM_MOST_INT    2147483647          // an int holds 32 bits
#define GM_MISSING_INT (-GM_MOST_INT - 1)  // a missing int; a missing real is NaN

enum {
    GM_MOST_TOTALS = 4,      // sums that the iterations of one loop add to
    WEIGHED_AT_ONCE = 16,    // weights of a discrete unknown that one lane keeps in an array
    NUTS_HEADER_ROOM = 256,  // doubles that a block of NUTS keeps by itself, at most,
    NUTS_VECTORS_ROOM = 48,  // and for each of its coordinates (nuts.h)
    // NUTS is selected with so many hundredths of the effective draws for the same work: if none of its transitions diverged, some, and all
    GAIN_UNDIVERGED = 130,
    GAIN_SOME_DIVERGED = 160,
    GAIN_ALL_DIVERGED = 500,
};

#endif
