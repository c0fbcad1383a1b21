// decimal.h -- a double as a decimal number: decimal.cc, or decimal.c where there is no Dragonbox.
#ifndef GM_DECIMAL_H
#define GM_DECIMAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C"
#endif
    // x = significand * 10^exponent, with as few digits (at most 17) as read back to x, and no zero at their end. x > 0 and finite.
    uint64_t
    gm_decimal(double x, int *exponent);

#endif
