// sha256.c -- SHA-256, as FIPS 180-4 describes it in section 6.2, by the processor's instructions for it where it has them: a run hashes
// its own program, which takes longer than to start otherwise. Test: tests/host/sha256.c (both ways), tests/host/nights.py (against another
// implementation).
#include "sha256.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <stdio.h>
#include <string.h>

// Of the cube roots of the first 64 primes: 32 bits behind the point.
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t right(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void add_block_anywhere(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 | (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 64; t++)
        w[t] = (right(w[t - 2], 17) ^ right(w[t - 2], 19) ^ w[t - 2] >> 10) + w[t - 7] +
               (right(w[t - 15], 7) ^ right(w[t - 15], 18) ^ w[t - 15] >> 3) + w[t - 16];
    for (int t = 0; t < 64; t++) {
        const uint32_t one = h + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + ((e & f) ^ (~e & g)) + K[t] + w[t],
                       two = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
    }
    const uint32_t more[8] = {a, b, c, d, e, f, g, h};
    for (int k = 0; k < 8; k++) state[k] += more[k];
}

#if defined(__x86_64__)
static bool has_instructions(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 29 & 1;
}

// Four rounds at a time: the instructions keep a, b, e, f in one register and c, d, g, h in another (Gulley et al. 2013).
__attribute__((target("sha,sse4.1"))) static void add_block_by_instructions(uint32_t state[8], const unsigned char *block)
{
    const __m128i bytes = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i abcd = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1),
                  efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
    const __m128i abef_before = _mm_alignr_epi8(abcd, efgh, 8), cdgh_before = _mm_blend_epi16(efgh, abcd, 0xf0);
    __m128i abef = abef_before, cdgh = cdgh_before, w[4];
    for (int k = 0; k < 16; k++) {
        __m128i *const now = &w[k % 4], *const last = &w[(k + 3) % 4];
        if (k < 4) *now = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(block + 16 * k)), bytes);
        else {
            const __m128i part = _mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(k + 1) % 4]), _mm_alignr_epi8(*last, w[(k + 2) % 4], 4));
            *now = _mm_sha256msg2_epu32(part, *last);
        }
        const __m128i with = _mm_add_epi32(*now, _mm_loadu_si128((const __m128i *)(K + 4 * k)));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, with);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(with, 0x0e));
    }
    const __m128i feba = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1b),
                  dchg = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#endif

static void add_blocks(uint32_t state[8], const unsigned char *block, size_t n)
{
#if defined(__x86_64__)
    static int instructions = -1;
    if (instructions < 0) instructions = has_instructions();
    for (; n > 0 && instructions; n--, block += 64) add_block_by_instructions(state, block);
#endif
    for (; n > 0; n--, block += 64) add_block_anywhere(state, block);
}

void gm_sha256_begin(GmSha256 *h)
{
    // of the square roots of the first 8 primes
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    *h = (GmSha256){.bytes = 0};
    memcpy(h->state, first, sizeof first);
}

void gm_sha256_add(GmSha256 *h, const void *bytes, size_t n)
{
    const unsigned char *from = bytes;
    while (n > 0) {
        const size_t used = h->bytes % sizeof h->block, room = sizeof h->block - used, whole = n - n % sizeof h->block;
        const size_t some = used == 0 && whole > 0 ? whole : n < room ? n : room;
        if (some == whole && used == 0) add_blocks(h->state, from, whole / sizeof h->block);
        else {
            memcpy(h->block + used, from, some);
            if (some == room) add_blocks(h->state, h->block, 1);
        }
        h->bytes += some;
        from += some;
        n -= some;
    }
}

void gm_sha256_end(GmSha256 *h, char text[GM_SHA256_ROOM])
{
    static const unsigned char one = 0x80, zero = 0;
    const uint64_t bits = 8 * h->bytes;
    unsigned char length[8];
    for (int k = 0; k < 8; k++) length[k] = (unsigned char)(bits >> (56 - 8 * k));
    gm_sha256_add(h, &one, 1);
    while (h->bytes % sizeof h->block != sizeof h->block - sizeof length) gm_sha256_add(h, &zero, 1);
    gm_sha256_add(h, length, sizeof length);
    for (int k = 0; k < 8; k++) snprintf(text + 8 * k, 9, "%08x", (unsigned)h->state[k]);
}

bool gm_sha256_file(const char *path, char text[GM_SHA256_ROOM], long *size)
{
    enum { BLOCK = 1 << 16 };
    char block[BLOCK];
    GmSha256 h;
    FILE *from = fopen(path, "rb");
    if (!from) return false;
    gm_sha256_begin(&h);
    for (size_t n; (n = fread(block, 1, BLOCK, from)) > 0;) gm_sha256_add(&h, block, n);
    const bool good = !ferror(from);
    fclose(from);
    *size = (long)h.bytes;
    gm_sha256_end(&h, text);
    return good;
}
