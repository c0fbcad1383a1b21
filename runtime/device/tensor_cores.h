// tensor_cores.h -- products of single precision by tensor cores, which multiply numbers of 11 bits (type tf32): each number is a sum of
// two, and three of the four products are taken (Ootomo and Yokota 2022, IJHPCA 36). From compute capability 8.0 on; sums are cut off
// rather than rounded.
#ifndef GM_TENSOR_CORES_H
#define GM_TENSOR_CORES_H

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

// x = high + low to 2^-22 of x; both of type tf32 where what is below it is cut off, as the tensor cores do.
static __device__ __forceinline__ void cores_split(float x, unsigned &high, unsigned &low)
{
    high = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
    low = __float_as_uint(x - __uint_as_float(high));
}

// c += a b: 16 by 8, 8 by 8. Of lane 4 g + q: a[g, q], a[g + 8, q], a[g, q + 4], a[g + 8, q + 4]; b[q, g], b[q + 4, g]; c[g, 2 q], c[g, 2 q
// + 1], c[g + 8, 2 q], c[g + 8, 2 q + 1].
static __device__ __forceinline__ void cores_product(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    (void)c;
    (void)a;
    (void)b0;
    (void)b1;
#endif
}

#endif
#endif
