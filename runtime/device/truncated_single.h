// truncated_single.h -- the normal distribution on an interval, in single precision: for the latents of models whose data are single.
//
//   density     exp(h x + q x^2) on [lo, hi], q <= 0, either end may be infinite
//   parameters  h real, q <= 0, lo <= hi (lo == hi gives lo), as normal_natural_truncated
//   method      In sd, from the end nearer to the mean: x in [a, a + w].
//               - a <= 4: inversion. One Philox block gives a bit, which chooses the half of the probability, and 63 bits, the position
//                 in it measured from its own end, so that both tails keep relative accuracy: Q(x) = T with T in (0, 1/2]. Then
//                 x = (1 - 2 T) p(-log(4 T (1 - T))), p by two polynomials, after Giles 2011, Approximating the erfinv function.
//                 Q itself by its ratio to the density, a polynomial in 1 / (1 + 0.35 x).
//               - a > 4, w > 20: rejection from an exponential (Robert 1995, Simulation of truncated normal variables); accepts > 0.96.
//               - narrow (w < 0.05), or a > 4 with both ends near: rejection from an exponential or the uniform on the interval.
//               No table and no loop in the usual path, one Philox block, four special functions: a warp stays together.
//   accuracy    x to 1e-6 sd, relative 1e-6 beyond a far end; probabilities to a relative 3e-6, in the tails too, which reach to
//               9 sd from the mean (probability 2e-20). No draw lies outside [lo, hi]; on an end only by rounding.
//   test        tests/runtime/truncated_single.c (the law on the CPU), tests/gpu/rows.cu (on a GPU)
#ifndef GM_TRUNCATED_SINGLE_H
#define GM_TRUNCATED_SINGLE_H

#include "rng.h"
#include "truncated.h"

// Special functions in the precision of the hardware: relative error 2^-22, of the logarithm absolute near 1.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
DEVICE_USUAL float fast_log2(float x)
{
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
DEVICE_USUAL float fast_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
DEVICE_USUAL float fast_inv(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
DEVICE_USUAL float fast_inv_sqrt(float x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#define DEVICE_APART static __noinline__ __device__
#else
DEVICE_USUAL float fast_log2(float x) { return log2f(x); }
DEVICE_USUAL float fast_exp2(float x) { return exp2f(x); }
DEVICE_USUAL float fast_inv(float x) { return 1 / x; }
DEVICE_USUAL float fast_inv_sqrt(float x) { return 1 / sqrtf(x); }
#define DEVICE_APART DEVICE_UNUSUAL
#endif

#define GM_FAR_SINGLE    4.0f   // in sd: beyond, the distance from the end would lose its digits in the difference
#define GM_WIDE_SINGLE   20.0f  // in sd: an end so far behind does not matter
#define GM_NARROW_SINGLE 0.05f
#define GM_LOG2_E        1.44269504f
#define GM_MINUS_LOG_2   (-0.69314718f)

// P(Z > y), 0 <= y; zero beyond 13. Relative error 1e-6.
DEVICE_USUAL float upper_tail_single(float y)
{
    y = fminf(y, 13.5f);
    const float t = fast_inv(fmaf(0.35f, y, 1));
    float r = 0.0489424463f;
    r = fmaf(r, t, -0.202119286f);
    r = fmaf(r, t, 0.240640817f);
    r = fmaf(r, t, -0.0170234335f);
    r = fmaf(r, t, 0.155961486f);
    r = fmaf(r, t, 0.133355097f);
    r = fmaf(r, t, 0.140270344f);
    r = fmaf(r, t, -2.73155459e-5f);
    return r * fast_exp2(-0.5f * GM_LOG2_E * y * y);
}

// The y >= 0 with P(Z > y) = t, 1e-24 <= t <= 1/2. Relative error 1e-6, down to y = 0.
DEVICE_USUAL float upper_quantile_single(float t)
{
    const float u = -fast_log2(4 * t * (1 - t)), e = fmaf(-2, t, 1);  // e is exact where it is small
    float p;
    if (u < 8.65617f) {
        p = 3.66106628e-8f;
        p = fmaf(p, u, -1.4177895e-6f);
        p = fmaf(p, u, 1.97110407e-5f);
        p = fmaf(p, u, -6.80931492e-5f);
        p = fmaf(p, u, -0.00105886918f);
        p = fmaf(p, u, 0.00781626367f);
        p = fmaf(p, u, 0.227442174f);
        p = fmaf(p, u, 1.25331373f);
    } else {
        const float r = fast_inv_sqrt(u);
        p = -319.592169f;
        p = fmaf(p, r, 517.449671f);
        p = fmaf(p, r, -330.304597f);
        p = fmaf(p, r, 107.489641f);
        p = fmaf(p, r, -17.6030638f);
        p = fmaf(p, r, 1.02551914f);
        p = fmaf(p, r, -0.227617095f);
        p = fmaf(p, r, 1.18255478f);
        p *= u * r;
    }
    return e * p;
}

// A number in (0, 1/2] with its full relative accuracy: 31 bits of `high` (its lowest is left over) and 32 of `low`.
DEVICE_USUAL float half_unit_single(uint32_t high, uint32_t low)
{
    return fmaf((float)(high >> 1), 2.32830644e-10f, fmaf((float)low, 5.42101086e-20f, 2.71050543e-20f));
}

// One attempt at t > 0 with density proportional to exp(-a t - t^2 / 2), a > 1: see normal_beyond. Negative if refused.
DEVICE_USUAL float normal_beyond_attempt_single(uint32_t high, uint32_t low, float a)
{
    const float square = fmaf(a, a, 4), gap = 2 * fast_inv(fmaf(square, fast_inv_sqrt(square), a));
    const float u = fmaf((float)high, 2.32830644e-10f, 1.16415322e-10f);  // (0, 1]
    const float t = GM_MINUS_LOG_2 * fast_log2(u) * fast_inv(a + gap), s = t - gap;
    const float v = fmaf((float)low, 2.32830644e-10f, 1.16415322e-10f);
    return v <= fast_exp2(-0.5f * GM_LOG2_E * s * s) ? fmaxf(t, 1e-30f) : -1;
}

// The attempts after the first two, which have used a block.
DEVICE_APART float normal_beyond_single_next(Stream g, float a)
{
    for (;;) {
        const uint64_t bits = random_bits(&g);
        const float t = normal_beyond_attempt_single((uint32_t)(bits >> 32), (uint32_t)bits, a);
        if (t > 0) return t;
    }
}

// The t in [0, w] below which a share u of the density exp(-rate t) on it lies; rate >= 0.
DEVICE float exponential_offset_single(float u, float rate, float w)
{
    const float s = rate * w;
    if (s == 0) return u * w;
    return fminf(-log1pf(u * expm1f(-s)) / rate, w);
}

// What the usual path below leaves out: narrow intervals, both ends in one tail, q = 0, and what has no density.
DEVICE_APART float normal_natural_truncated_apart(Stream g, float h, float q, float lo, float hi)
{
    if (!(lo < hi) | !(q <= 0) | (h != h)) return lo == hi ? lo : (float)NAN;
    if (q == 0) {  // exponential or uniform
        const float w = hi - lo, t = exponential_offset_single((float)uniform_open(&g), fabsf(h), w);
        if (!(t < (float)INFINITY)) return NAN;
        return fminf(fmaxf(h < 0 ? lo + t : hi - t, lo), hi);
    }
    const float sd = 1 / sqrtf(-2 * q), root = -2 * q * sd, mean = h * sd;
    const float below = fmaf(lo, root, -mean), above = fmaf(-hi, root, mean);
    const int lower = below >= above;
    const float a = lower ? below : above, w = (hi - lo) * root;
    if (!(a < 1e18f)) return lower ? lo : hi;  // no number lies between the end and the draw
    if (!(fabsf(mean) < 1e18f)) return fminf(fmaxf(mean * sd, lo), hi);
    float gap = a > 0 ? 2 / (a + sqrtf(fmaf(a, a, 4))) : 0;  // Robert's rate, less a
    if (gap > w) gap = 0;
    for (;;) {
        const float t = exponential_offset_single((float)uniform_open(&g), a > 0 ? a + gap : 0, w);
        const float s = a > 0 ? t - gap : a + t;  // a <= 0: from the uniform
        if ((float)uniform_open(&g) <= expf(-0.5f * s * s)) return fminf(fmaxf(lower ? lo + t * sd : hi - t * sd, lo), hi);
    }
}

// Density proportional to exp(h x + q x^2) on [lo, hi]; NaN where normal_natural_truncated gives it, and for q > 0: rows have no room for
// interval.h.
DEVICE_USUAL float normal_natural_truncated_single(Stream *g, float h, float q, float lo, float hi)
{
    const float sd = fast_inv_sqrt(-2 * q), root = -2 * q * sd, mean = h * sd;  // the mean in sd
    const float below = fmaf(lo, root, -mean), above = fmaf(-hi, root, mean);   // ends from the mean, outwards
    const int lower = below >= above;
    const float a = lower ? below : above, w = (hi - lo) * root;
    const int far_out = a > GM_FAR_SINGLE;
    if (!(w >= (far_out ? GM_WIDE_SINGLE : GM_NARROW_SINGLE)) | !(q < 0) | !(fabsf(mean) < 1e18f) | !(a < 1e18f)) {
        const float x = normal_natural_truncated_apart(*g, h, q, lo, hi);
        stream_pass(g);
        return x;
    }
    const Philox b = random_block(g);
    float t;      // the distance from the end, in sd
    float x = 0;  // or from the mean, outwards being negative
    if (far_out) {
        t = normal_beyond_attempt_single(b.word0, b.word1, a);
        if (t < 0) t = normal_beyond_attempt_single(b.word2, b.word3, a);
        if (t < 0) {
            t = normal_beyond_single_next(*g, a);
            stream_pass(g);
        }
    } else {
        const float tail = upper_tail_single(fabsf(a)), rest = 1 - tail;
        const float above_a = a < 0 ? rest : tail, below_a = a < 0 ? tail : rest;
        const float above_b = w < GM_WIDE_SINGLE ? upper_tail_single(a + w) : 0;  // a + w >= 0: a is the nearer end
        const float part = half_unit_single(b.word0, b.word1) * (above_a - above_b);
        const int inner = b.word0 & 1;  // the half next to a
        const int left = inner & (below_a + part < 0.5f);
        const float q_of_x = left ? below_a + part : inner ? above_a - part : above_b + part;
        const float y = upper_quantile_single(fminf(q_of_x, 0.5f));
        x = left ? -y : y;
        t = fmaxf(fabsf(x - a), 1e-8f);  // x < a only by rounding
    }
    // Beyond 1e4 sd the end says nothing about x.
    const float from = a < -1e4f ? mean * sd : lower ? lo : hi, step = (a < -1e4f ? x : t) * sd;
    return fminf(fmaxf(lower ? from + step : from - step, lo), hi);
}

// In CUDA the type of h says which: emitted code calls normal_natural_truncated for latents (real) and parameters (double) alike.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
DEVICE_USUAL float normal_natural_truncated_as(Stream *g, float h, float q, float lo, float hi)
{
    return normal_natural_truncated_single(g, h, q, lo, hi);
}
DEVICE_USUAL double normal_natural_truncated_as(Stream *g, double h, double q, double lo, double hi)
{
    return normal_natural_truncated(g, h, q, lo, hi);
}

template <class H, class Q, class Lo, class Hi>
static __forceinline__ __device__ H normal_natural_truncated(Stream *g, H h, Q q, Lo lo, Hi hi)
{
    return normal_natural_truncated_as(g, h, (H)q, (H)lo, (H)hi);
}
#endif

#endif
