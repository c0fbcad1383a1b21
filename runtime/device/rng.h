// rng.h -- streams of random numbers without state: Philox 4x32-10, a counter-based generator.
//
// A block of 128 random bits is a pure function of a key and a counter. Key: seed and chain. Counter: sweep, variable, element
// and the number of the block within the stream. So a draw depends on what is drawn and not on which thread draws it, and a run
// gives the same draws for any number of threads, blocks or GPUs.
//
//   counter   word 0   block number (28 bits), low 4 bits of the sweep
//             word 1   bits 4..35 of the sweep
//             word 2   low 32 bits of the element
//             word 3   bits 32..39 of the element, variable (24 bits)
//
// Two streams of one run share no number as long as element < 2^40, sweep < 2^36, variable < 2^24 and a stream gives at most
// 2^29 uniforms: the map into (key, counter) is then one to one. Seeds are mixed, so that neighbouring seeds have unrelated keys.
//
// Method: Salmon, Moraes, Dror and Shaw 2011, Parallel random numbers: as easy as 1, 2, 3.
// Test:   tests/runtime/rng.c (published known answers, uniformity, distinct streams), tests/runtime/continuous.c (distributions).
#ifndef GM_RNG_H
#define GM_RNG_H

#include "base.h"
#include "special.h"

typedef struct Sweep {          // where a run stands: what all streams of one sweep have in common
    uint64_t seed;
    uint32_t chain;
    uint64_t sweep;
} Sweep;

typedef struct Stream {         // the numbers for one element of one variable in one sweep
    uint32_t key0, key1;
    uint32_t counter0, counter1, counter2, counter3;
    uint64_t spare;             // second half of the last block
    int      has_spare;
} Stream;

typedef struct Philox { uint32_t word0, word1, word2, word3; } Philox;

// One round of Philox 4x32 with round key (key0, key1).
DEVICE Philox philox_round(Philox c, uint32_t key0, uint32_t key1)
{
    const uint64_t p = (uint64_t)0xD2511F53u * c.word0;
    const uint64_t q = (uint64_t)0xCD9E8D57u * c.word2;
    c.word0 = (uint32_t)(q >> 32) ^ c.word1 ^ key0;
    c.word1 = (uint32_t)q;
    c.word2 = (uint32_t)(p >> 32) ^ c.word3 ^ key1;
    c.word3 = (uint32_t)p;
    return c;
}

// Ten rounds, written out: no compiler then keeps the loop.
DEVICE Philox philox(Philox c, uint32_t key0, uint32_t key1)
{
    const uint32_t up0 = 0x9E3779B9u, up1 = 0xBB67AE85u;
    c = philox_round(c, key0, key1);
    c = philox_round(c, key0 + up0, key1 + up1);
    c = philox_round(c, key0 + 2 * up0, key1 + 2 * up1);
    c = philox_round(c, key0 + 3 * up0, key1 + 3 * up1);
    c = philox_round(c, key0 + 4 * up0, key1 + 4 * up1);
    c = philox_round(c, key0 + 5 * up0, key1 + 5 * up1);
    c = philox_round(c, key0 + 6 * up0, key1 + 6 * up1);
    c = philox_round(c, key0 + 7 * up0, key1 + 7 * up1);
    c = philox_round(c, key0 + 8 * up0, key1 + 8 * up1);
    return philox_round(c, key0 + 9 * up0, key1 + 9 * up1);
}

// The stream of (at, variable, element). Ranges: see above.
DEVICE Stream stream(Sweep at, uint32_t variable, uint64_t element)
{
    uint64_t key = at.seed + 0x9E3779B97F4A7C15u;        // a bijection of 64 bits (finaliser of Steele, Lea and Flood 2014)
    key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
    key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
    key ^= key >> 31;

    Stream g;
    g.key0     = (uint32_t)key ^ at.chain;
    g.key1     = (uint32_t)(key >> 32);
    g.counter0 = (uint32_t)(at.sweep & 15u) << 28;
    g.counter1 = (uint32_t)(at.sweep >> 4);
    g.counter2 = (uint32_t)element;
    g.counter3 = (uint32_t)((element >> 32) & 255u) | variable << 8;
    g.spare    = 0;
    g.has_spare = 0;
    return g;
}

// 64 random bits.
DEVICE uint64_t random_bits(Stream *g)
{
    if (g->has_spare) {
        g->has_spare = 0;
        return g->spare;
    }
    Philox c;
    c.word0 = g->counter0;
    c.word1 = g->counter1;
    c.word2 = g->counter2;
    c.word3 = g->counter3;
    c = philox(c, g->key0, g->key1);
    g->counter0 = (g->counter0 & 0xF0000000u) | ((g->counter0 + 1u) & 0x0FFFFFFFu);
    g->spare     = (uint64_t)c.word3 << 32 | c.word2;
    g->has_spare = 1;
    return (uint64_t)c.word1 << 32 | c.word0;
}

// The double in (0, 1) for 64 random bits: an odd multiple of 2^-63, rounded. Near 0 the full 63 bits count, which gives
// inversions a left tail down to 1e-19; near 1 rounding would reach 1, hence the bound.
DEVICE double open_unit(uint64_t bits)
{
    const double u = (double)(int64_t)(bits >> 1 | 1u) * 1.08420217248550443401e-19;
    return u < GM_BELOW_ONE ? u : GM_BELOW_ONE;
}

// Uniform on (0, 1), never 0 and never 1.
DEVICE double uniform_open(Stream *g) { return open_unit(random_bits(g)); }

// Normal with mean 0 and sd 1, by inversion: one uniform a draw, no rejection, so that the CPU and the GPU agree to rounding.
DEVICE double normal_standard(Stream *g) { return inv_Phi(uniform_open(g)); }

// Exponential with rate 1, by inversion.
DEVICE double exponential_standard(Stream *g) { return -log(uniform_open(g)); }

#endif
