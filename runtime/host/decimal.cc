// decimal.cc -- the shortest decimal number that reads back to a double, by Dragonbox (Jeon 2022), made callable from C. The library is a
// header; nothing of C++ is needed to link. decimal.c does the same without it, some thirty times slower.
#include <dragonbox/dragonbox.h>
#include "decimal.h"

extern "C" uint64_t gm_decimal(double x, int *exponent)
{
    const auto decimal = jkj::dragonbox::to_decimal(x, jkj::dragonbox::policy::sign::ignore);
    *exponent = decimal.exponent;
    return decimal.significand;
}
