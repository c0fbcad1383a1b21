// base.h -- what every device header stands on: one spelling for "a function that both targets can call".
//
// The samplers are compiled three ways: as C11 for CPUs, by nvcc, and by NVRTC, which has no standard headers. They therefore use no
// library beyond the mathematical functions that CUDA offers too, no static data and no allocation. They keep to the part of C that is also
// C++: no compound literals, no designated initialisers, no variable length arrays.
#ifndef GM_BASE_H
#define GM_BASE_H

#include "limits.h"

#if defined(__CUDACC_RTC__)
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
#ifndef INFINITY
#define INFINITY (__longlong_as_double(0x7ff0000000000000LL))
#endif
#ifndef NAN
#define NAN (__longlong_as_double(0x7ff8000000000000LL))
#endif
#else
#include <stdint.h>
#include "infinity.h"
#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define DEVICE static inline __device__
// Large functions, and those of unusual paths. Calling them instead of inlining them would halve compilation. But ptxas (13.0, its default
// -O3) makes programs of the calls that hang or write 2 bytes beside weights[mine], an address that the kernel keeps in a register across
// the call. These are calls nested in calls from the row pass, on paths that few rows in 100,000 take. The same text is right with
// --ptxas-options=-O1 (the draws of inlined functions bit for bit) and with -O0 (one NVIDIA H200, logistic regression of 500,000 rows);
// memcheck, racecheck, synccheck and the sanitizers of the CPU find nothing of ours. -O1 costs more than it saves (1.6 ms a sweep against
// 1.2). GM_CALLS is for tests of whether a program compiles.
#ifdef GM_CALLS
#define DEVICE_CALL static __device__ __noinline__
#else
#define DEVICE_CALL static inline __device__
#endif
#elif defined(GM_ELSEWHERE)
// Tests compile the functions of gm.h once and not with each program (tests/cc): an object with GM_HERE has them, programs with
// GM_ELSEWHERE call them. At the end of gm.h DEVICE is `static inline` again.
#define DEVICE extern inline __attribute__((gnu_inline))
#elif defined(GM_HERE)
#define DEVICE
#else
#define DEVICE static inline
#endif
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
#define DEVICE_CALL DEVICE
#endif
// Functions of kernels.h and launch.h that run on the host alone. Tests compile them once too, for Data and State of any fields
// (GM_ANY_STATE): an object with GM_KERNELS_HERE has them, programs with GM_KERNELS_ELSEWHERE call them.
#if defined(GM_KERNELS_ELSEWHERE)
#define GM_HOST_ONLY extern inline __attribute__((gnu_inline))
#define GM_ANY_STATE
#elif defined(GM_KERNELS_HERE)
#define GM_HOST_ONLY
#define GM_ANY_STATE
#else
#define GM_HOST_ONLY static inline
#endif
// Functions that loops over rows compute: copied to each place, so that a loop is done several rows at a time.
#if defined(__GNUC__) && !defined(__CUDACC__) && !defined(__CUDACC_RTC__) && !defined(GM_MANY_UPDATES) && !defined(GM_HERE)
#define DEVICE_ROW static inline __attribute__((always_inline))
#else
#define DEVICE_ROW DEVICE
#endif

#define HALF_LOG_2PI  0.91893853320467274178
#define IS_MISSING(x) ((x) == -2147483648.0)  // of whole numbers; of reals
#define IS_NAN(x)     ((x) != (x))

// A pivot of a Cholesky factor below this share of its diagonal element is made of rounding alone: columns are collinear to within the
// rounding of doubles.
#define GM_PIVOT_LOST 2e-15

// Below this share its logarithm and what is divided by it are too far off for a density that is compared with others: where a scale nears
// 0 the rounding of a joint normal's factor would make the density rise. A sampler that counts such values as impossible, and leaves a
// chain that is there to other steps, keeps the target: it has that of the others' set, and does nothing outside.
#define GM_PIVOT_POOR 5e-12

// Types of numbers in memory. On the CPU they are all double; on a GPU, --precision says.
#ifndef GM_PRECISION
#define GM_PRECISION double
#endif
#ifndef GM_SOLVE_PRECISION
#define GM_SOLVE_PRECISION double
#endif
typedef GM_PRECISION real;         // data and latents
typedef double wide;               // parameters, sums, work arrays
typedef GM_SOLVE_PRECISION solve;  // precision matrices and shifts of joint normal draws

#define GM_PI           3.14159265358979323846
#define GM_SQRT_HALF    0.70710678118654752440
#define GM_SQRT_2PI     2.50662827463100050242
#define GM_LOG_SQRT_2PI 0.91893853320467274178
#define GM_LOG_2        0.69314718055994530942
#define GM_EULER        0.57721566490153286061
#define GM_TINY         2.2250738585072014e-308  // smallest positive normal double: positive draws never fall below it
#define GM_HUGE         1.7976931348623157e308   // largest double: positive draws never exceed it
#define GM_LEAST \
    1e-300  // draws of powers of gamma variables stay between these two, so that squares of what has them for a variance or a precision,
            // and ratios to a scale, are numbers
#define GM_MOST 1e300
#define GM_LEAST_DIAGONAL \
    (4 * GM_TINY)  // a Cholesky factor of a correlation matrix has more on its diagonal, so that 1 divided by it is a number
#define GM_BELOW_ONE 0.99999999999999988898  // largest double below 1

// C takes an int where a double is wanted; C++ needs to know which of sqrt(float) and sqrt(double) is meant. nvcc's headers do that,
// NVRTC has none.
#if defined(__CUDACC_RTC__)
// clang-format off
#define GM_WHOLE1(f)                                                              \
    DEVICE double f(int x)  { return f((double)x); }                              \
    DEVICE double f(long x) { return f((double)x); }
#define GM_WHOLE2_OF(f, A, B) DEVICE double f(A x, B y) { return f((double)x, (double)y); }
#define GM_WHOLE2(f)                                                              \
    GM_WHOLE2_OF(f, int, int)    GM_WHOLE2_OF(f, int, long)   GM_WHOLE2_OF(f, int, float)   GM_WHOLE2_OF(f, int, double)  \
    GM_WHOLE2_OF(f, long, int)   GM_WHOLE2_OF(f, long, long)  GM_WHOLE2_OF(f, long, float)  GM_WHOLE2_OF(f, long, double) \
    GM_WHOLE2_OF(f, float, int)  GM_WHOLE2_OF(f, float, long) GM_WHOLE2_OF(f, double, int)  GM_WHOLE2_OF(f, double, long) \
    GM_WHOLE2_OF(f, float, double) GM_WHOLE2_OF(f, double, float)
GM_WHOLE1(sqrt) GM_WHOLE1(cbrt) GM_WHOLE1(exp) GM_WHOLE1(expm1) GM_WHOLE1(log) GM_WHOLE1(log1p) GM_WHOLE1(log2) GM_WHOLE1(log10)
GM_WHOLE1(lgamma) GM_WHOLE1(tgamma)
GM_WHOLE1(sin) GM_WHOLE1(cos) GM_WHOLE1(tan) GM_WHOLE1(asin) GM_WHOLE1(acos) GM_WHOLE1(atan) GM_WHOLE1(sinh) GM_WHOLE1(cosh)
GM_WHOLE1(tanh) GM_WHOLE1(erf) GM_WHOLE1(erfc)
GM_WHOLE1(floor) GM_WHOLE1(ceil) GM_WHOLE1(round) GM_WHOLE1(trunc) GM_WHOLE1(fabs)
GM_WHOLE2(fmax) GM_WHOLE2(fmin) GM_WHOLE2(fmod) GM_WHOLE2(atan2) GM_WHOLE2(hypot)
GM_WHOLE2_OF(pow, int, int) GM_WHOLE2_OF(pow, int, long) GM_WHOLE2_OF(pow, int, float) GM_WHOLE2_OF(pow, int, double)
GM_WHOLE2_OF(pow, long, int) GM_WHOLE2_OF(pow, long, long)
GM_WHOLE2_OF(pow, long, float) GM_WHOLE2_OF(pow, long, double) GM_WHOLE2_OF(pow, float, long) GM_WHOLE2_OF(pow, double, long)
#endif

// The sum of two log densities: where one is that of the density 0 the other need not be a number.
DEVICE double add_log(double a, double b)
{
    return a == -INFINITY || b == -INFINITY ? -INFINITY : a + b;
}
// clang-format on

#endif
