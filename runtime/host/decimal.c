// decimal.c -- as decimal.cc, by formatting and reading back: for machines without Dragonbox or a C++ compiler.
#include "decimal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t gm_decimal(double x, int *exponent)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {  // 15 do for most numbers that people type, 17 always
        snprintf(text, sizeof text, "%.*e", digits - 1, x);
        if (strtod(text, NULL) == x) break;
    }
    char *e = strchr(text, 'e');
    uint64_t significand = (uint64_t)(text[0] - '0');
    for (const char *at = text + 2; at < e; at++) significand = 10 * significand + (uint64_t)(*at - '0');
    *exponent = atoi(e + 1) - (int)(e - text - 2);
    for (; significand % 10 == 0; significand /= 10) ++*exponent;
    return significand;
}
