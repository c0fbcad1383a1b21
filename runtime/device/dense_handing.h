// dense_handing.h -- what dense_tiles.h needs of a GPU's instructions: numbers that blocks hand on to each other, and reciprocals.
#ifndef GM_DENSE_HANDING_H
#define GM_DENSE_HANDING_H

// ---- numbers that say themselves that they are there ----

DEVICE void dense_publish(double *to, double v) { *(volatile double *)to = v == v ? v : __longlong_as_double(0x7ff8000000000000LL); }
DEVICE void dense_publish(float *to, float v) { *(volatile float *)to = v == v ? v : __int_as_float(0x7fc00000); }

DEVICE bool dense_absent(double v) { return __double_as_longlong(v) == -1; }
DEVICE bool dense_absent(float v) { return __float_as_int(v) == -1; }

template <typename T> static __device__ __forceinline__ T dense_await(const T *from)
{
    T v;
    do v = *(const volatile T *)from;
    while (dense_absent(v));
    return v;
}

// Four of them, `step` elements apart: read together until the last is there.
template <typename T> static __device__ __forceinline__ void dense_await4(const T *from, int step, T v[4])
{
    do {
#pragma unroll
        for (int e = 0; e < 4; e++) v[e] = *(const volatile T *)(from + e * step);
    } while (dense_absent(v[0]) || dense_absent(v[1]) || dense_absent(v[2]) || dense_absent(v[3]));
}

DEVICE int dense_acquire(const int *from)
{
    int v;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
    return v;
}

DEVICE void dense_release(int *to, int v)
{
    __threadfence();
    asm volatile("st.release.gpu.global.s32 [%0], %1;" : : "l"(to), "r"(v) : "memory");
}

// ---- reciprocals ----

// 1 / p = start (1 + rest), to rounding for normal p > 0 whose result is normal; something for others, which are reported elsewhere.
DEVICE void dense_reciprocal(double p, double *start, double *rest)
{
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(*start) : "d"(p));  // 20 bits, then thrice as many
    const double e = fma(-p, *start, 1.0);
    *rest = fma(e, e, e);
}

DEVICE void dense_reciprocal(float p, float *start, float *rest)
{
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(*start) : "f"(p));
    *rest = fmaf(-p, *start, 1.0f);
}

DEVICE double dense_inverse_root(double p)
{
    double r;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(p));
    const double e = fma(-p * r, r, 1.0);
    return fma(r * e, fma(e, 0.375, 0.5), r);
}

DEVICE float dense_inverse_root(float p) { return rsqrtf(p); }

#endif
