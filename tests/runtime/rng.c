// If this failed, random numbers would not be Philox's, would repeat between streams, or a uniform could be 0 or 1.
#include "check.h"

static int compare_bits(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// The three known answers that Salmon et al. publish with Random123 for ten rounds.
static void known_answers(void)
{
    static const struct { uint32_t counter[4], key[2], answer[4]; } row[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { ~0u, ~0u, ~0u, ~0u }, { ~0u, ~0u }, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (int k = 0; k < 3; k++) {
        const Philox c = { row[k].counter[0], row[k].counter[1], row[k].counter[2], row[k].counter[3] };
        const Philox r = philox(c, row[k].key[0], row[k].key[1]);
        const uint32_t got[4] = { r.word0, r.word1, r.word2, r.word3 };
        check("philox known answer", "differs", memcmp(got, row[k].answer, sizeof got) != 0, 0);
    }
}

// All numbers of many streams that differ in one coordinate only are distinct. By chance two of 3e6 numbers of 64 bits agree with
// probability 3e-7.
static void distinct_streams(void)
{
    enum { PER = 10, STREAMS = 50000, ALL = 6 * PER * STREAMS };
    uint64_t *all = malloc(ALL * sizeof *all);
    long n = 0;
    for (long i = 1; i <= STREAMS; i++)
        for (int what = 0; what < 6; what++) {
            Sweep    at = { SEED, 0, 0 };
            uint32_t variable = 0;
            uint64_t element = 0;
            switch (what) {
            case 0: at.seed += (uint64_t)i; break;
            case 1: at.chain = (uint32_t)i; break;
            case 2: at.sweep = (uint64_t)i * 1000003u; break;
            case 3: variable = (uint32_t)i; break;
            case 4: element = (uint64_t)i; break;
            case 5: element = (uint64_t)i << 24; break;
            }
            Stream g = stream(at, variable, element);
            for (int k = 0; k < PER; k++) all[n++] = random_bits(&g);
        }
    qsort(all, (size_t)n, sizeof *all, compare_bits);
    long repeats = 0;
    for (long i = 1; i < n; i++) repeats += all[i] == all[i - 1];
    check("streams that differ in one coordinate share numbers", "repeats", (double)repeats, 0);
    free(all);
}

// The rectangles and the tail of normal_standard have one area, up to the rounding of the sides (4e-16 of widths of 0.005 and more).
static void normal_cells_equal(void)
{
    const double tail = sqrt(2 * atan(1)) * erfc(GM_CELL_TAIL / sqrt(2));
    double       worst = fabs(gm_cell_sides[GM_CELLS / 2 - 1] - GM_CELL_TAIL);
    for (int k = 0; k < GM_CELLS / 2; k++) {
        const double x = gm_cell_sides[k], error = fabs((gm_cell_sides[k + 1] - x) * exp(-0.5 * x * x) / tail - 1);
        if (error > worst) worst = error;
    }
    check("cells of the normal have equal areas", "error", worst, 4e-13);
}

// Counts of normal_standard in intervals finer than its cells, and out to 4.5 sd: a flaw of one cell would not show in a KS distance.
static void normal_fine(void)
{
    enum { CELLS = 1800 };
    static double observed[CELLS + 2], expected[CELLS + 2];
    const long   n = 8000000;
    const Sweep  at = { SEED, 0, 0 };
    Stream       g = stream(at, next_variable++, 0);
    for (long i = 0; i < n; i++) {
        const double x = (normal_standard(&g) + 4.5) * (CELLS / 9.0);
        observed[x < 0 ? 0 : x >= CELLS ? CELLS + 1 : 1 + (int)x]++;
    }
    double below = 0;
    for (int k = 0; k < CELLS + 2; k++) {
        const double p = k <= CELLS ? 0.5 * erfc((4.5 - 9.0 * k / CELLS) / sqrt(2)) : 1;
        expected[k] = n * (p - below);
        below = p;
    }
    check_counts("normal_standard in steps of 0.005", observed, expected, CELLS + 2);
}

int main(void)
{
    known_answers();
    distinct_streams();

    check("smallest uniform is 0", "is 0", open_unit(0) == 0, 0);
    check("largest uniform is 1", "is 1", open_unit(~(uint64_t)0) >= 1, 0);

    CASE_KS(uniform_open(g), x);
    DRAW(uniform_open(g));
    check_moments("uniform_open", 0.5, 1.0 / 12);

    // Neighbouring elements and neighbouring draws of one stream: products of centred uniforms have mean 0 and variance 1/144.
    double previous = 0.5, lag = 0, within = 0;
    Sweep  at = { SEED, 1, 7 };
    for (long i = 0; i < DRAWS; i++) {
        Stream g = stream(at, 3, (uint64_t)i);
        const double u = uniform_open(&g), v = uniform_open(&g), w = uniform_open(&g);
        lag += (u - 0.5) * (previous - 0.5);
        within += (u - 0.5) * (v - 0.5) + (v - 0.5) * (w - 0.5);
        previous = u;
    }
    check("neighbouring elements are correlated", "z", fabs(lag) * 12 / sqrt(DRAWS), BOUND_Z);
    check("draws of one stream are correlated", "z", fabs(within) * 12 / sqrt(2.0 * DRAWS), BOUND_Z);

    // The third number of a stream is the first of its next block, whatever was drawn before.
    Stream a = stream(at, 3, 5), b = a;
    (void)random_bits(&a);
    (void)random_bits(&a);
    b.counter0 += 1;
    check("blocks follow the counter", "differs", random_bits(&a) != random_bits(&b), 0);

    // Part k of a draw is the stream of the element after k others, also across the 32-bit halves of its number.
    Stream whole = stream(at, 3, 0xFFFFFFFEu), part = stream_part(&whole, 4), alone = stream(at, 3, 0x100000003u);
    check("parts are elements", "differs", random_bits(&part) != random_bits(&alone), 0);
    stream_pass(&whole);
    part = stream_part(&whole, 4);
    alone.counter0 += 63;
    alone.has_spare = 0;
    check("the next draw has other numbers", "differs", random_bits(&part) != random_bits(&alone), 0);

    CASE_KS(normal_standard(g), 0.5 * erfc(-x / sqrt(2)));
    normal_cells_equal();
    normal_fine();
    CASE_KS(exponential_standard(g), -expm1(-x));
    return finish();
}
