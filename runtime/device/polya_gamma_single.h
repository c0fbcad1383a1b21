// polya_gamma_single.h -- the Polya-Gamma distribution PG(b, c) in single precision: for the latents of models whose data are single.
//
//   density, parameters   as in polya_gamma.h
//   method      b = 1: rejection from a lognormal distribution. J = 4 PG(1, c) has, with z = |c| / 2, the density cosh(z) exp(-z^2 x / 2)
//               f(x),
//                 f(x) = sqrt(2 / (pi x^3)) (exp(-1 / 2x) - 3 exp(-9 / 2x) + 5 exp(-25 / 2x) - ..)          for x < 0.64
//                      = pi / 2 (exp(-pi^2 x / 8) - 3 exp(-9 pi^2 x / 8) + 5 exp(-25 pi^2 x / 8) - ..)      beyond
//               (Devroye 2009, as in Polson, Scott and Windle 2013). Behind the terms written here the series is below 1e-15 of the first,
//               so the density is evaluated, not enclosed. log J has a density that falls off faster than any normal one on both sides: the
//               proposal is normal in log x, with the centre and the variance that accept most, as functions of z: 0.917 at z = 0, 0.95 at
//               2, 1 - 0.09 / z beyond. They and the bound of the quotient of the densities were fitted to the optimum found numerically
//               (120 values of z up to 100). One Philox block gives two proposals and the numbers that decide them, so that 0.7 % of the
//               draws at most need another; the path is the same for all z: a warp stays together. b = 2, 3, .. 7: sums of these. Others:
//               polya_gamma.h.
//   accuracy    the density within a relative 5e-6 (functions of the hardware, 2^-22); beyond 6.6 sd of the proposal on either side nothing
//               is proposed, where the law has less than 1e-11. For z > 10^6 every proposal is taken: 1e-7 of the law.
//   test        tests/runtime/polya_gamma_single.c (the law on the CPU), tests/gpu/laws.py (on a GPU)
#ifndef GM_POLYA_GAMMA_SINGLE_H
#define GM_POLYA_GAMMA_SINGLE_H

#include "polya_gamma.h"
#include "truncated_single.h"

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
DEVICE_USUAL float fast_sin(float x)
{
    float y;
    asm("sin.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
DEVICE_USUAL float fast_cos(float x)
{
    float y;
    asm("cos.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#else
DEVICE_USUAL float fast_sin(float x) { return sinf(x); }
DEVICE_USUAL float fast_cos(float x) { return cosf(x); }
#endif

typedef struct PolyaGammaSingle {  // what the proposals for one c have in common
    float z;                       // |c| / 2
    float log2_centre, log2_step;  // log2 x = centre + step * standard normal
    float level;                   // log2 of the bound of the quotient of the densities, but for what all c share
} PolyaGammaSingle;

DEVICE_USUAL PolyaGammaSingle polya_gamma_single_setup(float c)
{
    PolyaGammaSingle f;
    f.z = 0.5f * fabsf(c);
    const float v = fast_exp2(-GM_LOG2_E * f.z);
    const float centre = f.z + 0.5f + v * fmaf(v, fmaf(v, -0.5555f, 1.26f), 0.0925f);  // 1 / x there
    const float precision = f.z + 0.166666667f + v * fmaf(v, fmaf(v, fmaf(v, 2.024f, -4.642f), 3.376f), 0.392f);
    // -log of the share that is accepted
    const float refused = fmaf(v, fmaf(v, fmaf(v, 0.0687912f, -0.1280838f), 0.0690345f), 0.10248f) * fast_inv(centre);
    f.log2_centre = -fast_log2(centre);
    f.log2_step = GM_LOG2_E * fast_inv_sqrt(precision);
    // cosh(z) = exp(z) (1 + v^2) / 2
    f.level = fmaf(0.5f, fast_log2(precision), GM_LOG2_E * refused) - fast_log2(fmaf(v, v, 1));
    return f;
}

// A proposal from the standard normal `normal`; negative if the bits `height` refuse it.
DEVICE_USUAL float polya_gamma_single_attempt(const PolyaGammaSingle *f, float normal, uint32_t height)
{
    const float log2_x = fmaf(f->log2_step, normal, f->log2_centre), x = fast_exp2(log2_x), inverse = fast_exp2(-log2_x);
    const int left = x < 0.64f;
    const float q = fast_exp2(-GM_LOG2_E * (left ? 4 * inverse : 9.8696044f * x));  // the terms of the series by their powers
    const float series = fmaf(q, fmaf(5 * q, q, -3), 1), s = fmaf(-f->z, x, 1);
    // log2(pi / 4 sqrt(2 pi))
    const float side = left ? -0.5f * log2_x : log2_x + 0.977240352f + GM_LOG2_E * fmaf(0.5f, inverse, -1.23370055f * x);
    const float quotient = fast_exp2(fmaf(0.5f * GM_LOG2_E, fmaf(normal, normal, -s * s * inverse), side - f->level)) * series;
    const float u = fmaf((float)height, 2.32830644e-10f, 1.16415322e-10f);
    return u > quotient && f->z < 1e6f ? -1 : x;
}

// Two attempts, from one block.
DEVICE_USUAL float polya_gamma_single_attempts(const PolyaGammaSingle *f, Philox b)
{
    // pi 2^-31
    const float u = fmaf((float)b.word0, 2.32830644e-10f, 1.16415322e-10f), angle = 1.46291808e-9f * (float)(int32_t)b.word1;
    // Box and Muller 1958
    const float square = fmaxf(2 * GM_MINUS_LOG_2 * fast_log2(u), 1e-20f), radius = square * fast_inv_sqrt(square);
    const float x = polya_gamma_single_attempt(f, radius * fast_cos(angle), b.word2);
    return x < 0 ? polya_gamma_single_attempt(f, radius * fast_sin(angle), b.word3) : x;
}

// A draw from PG(1, c).
DEVICE_USUAL float polya_gamma_one_single(Stream *g, float c)
{
    const PolyaGammaSingle f = polya_gamma_single_setup(c);
    float x;
    do x = polya_gamma_single_attempts(&f, random_block(g));
    while (x < 0);
    return c == c ? fmaxf(0.25f * x, 1.2e-38f) : (float)NAN;
}

// b other than 1.
DEVICE_APART float polya_gamma_apart_single(Stream g, double b, float c)
{
    if (!(b >= 1 && b < 8 && b == (int)b)) return (float)polya_gamma(&g, b, c);
    float sum = 0;
    for (int i = 0; i < (int)b; i++) sum += polya_gamma_one_single(&g, c);
    return sum;
}

DEVICE_USUAL float polya_gamma_single(Stream *g, double b, float c)
{
    if (b == 1) return polya_gamma_one_single(g, c);
    const float x = polya_gamma_apart_single(*g, b, c);
    stream_pass(g);
    return x;
}

// In CUDA the type of the tilt says which: emitted code calls polya_gamma_natural for latents (real) and parameters (double) alike.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
template <class Number> struct PolyaGammaIn {
    typedef double number;
    static __forceinline__ __device__ double draw(Stream *g, double b, double c) { return polya_gamma(g, b, c); }
};
template <> struct PolyaGammaIn<float> {
    typedef float number;
    static __forceinline__ __device__ float draw(Stream *g, double b, float c) { return polya_gamma_single(g, b, c); }
};

template <class Count, class Number>
static __forceinline__ __device__ typename PolyaGammaIn<Number>::number polya_gamma(Stream *g, Count b, Number c)
{
    return PolyaGammaIn<Number>::draw(g, (double)b, c);
}
template <class Count, class Number>
static __forceinline__ __device__ typename PolyaGammaIn<Number>::number polya_gamma_natural(Stream *g, Count b, Number n)
{
    return PolyaGammaIn<Number>::draw(g, (double)b, n < 0 ? sqrt(-2 * n) : n == n ? 0 : n);
}
#endif

#endif
