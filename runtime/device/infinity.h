// infinity.h -- INFINITY and NAN as doubles.
//
// C's are floats, so `x ? n : NAN` of an int n is a float too, in which counts above 2^24 are rounded. NVRTC has none; base.h defines them
// alike.
#ifndef GM_INFINITY_H
#define GM_INFINITY_H

#include <math.h>

#undef INFINITY
#undef NAN
#define INFINITY (__builtin_inf())
#define NAN      (__builtin_nan(""))

#endif
