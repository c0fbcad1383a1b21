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
// Elements of arrays are below 2^37. What else draws for a variable in the same sweep has elements from one of STREAM_NUTS to STREAM_SCALES
// on: by the numbers of an element's own update it would depend on where the chain is.
//
// Method: Salmon, Moraes, Dror and Shaw 2011, Parallel random numbers: as easy as 1, 2, 3.
// Test:   tests/runtime/rng.c (published known answers, uniformity, distinct streams), tests/runtime/continuous.c (distributions).
#ifndef GM_RNG_H
#define GM_RNG_H

#include "base.h"
#include "special.h"

// Where a draw per row of data is the whole cost, the usual path must be inlined into the loop. Then the stream stays in registers and
// constants are folded. The unusual path must not be inlined. DEVICE leaves both to the compiler.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define DEVICE_USUAL   static __forceinline__ __device__
#define DEVICE_UNUSUAL DEVICE_CALL
#define DEVICE_TABLE   static __device__ const
#elif defined(GM_ELSEWHERE) || defined(GM_HERE)
#define DEVICE_USUAL   DEVICE
#define DEVICE_UNUSUAL DEVICE
#define DEVICE_TABLE   static const
#else
#define DEVICE_USUAL   static inline __attribute__((always_inline))
#define DEVICE_UNUSUAL static __attribute__((noinline, unused))
#define DEVICE_TABLE   static const
#endif

#define STREAM_NUTS     ((uint64_t)1 << 37)        // a transition of NUTS, whose first unknown the variable is
#define STREAM_PROPOSAL ((uint64_t)1 << 38)        // whether a proposal is accepted
#define STREAM_ORDER    (((uint64_t)1 << 38) + 1)  // in which order scales are drawn
#define STREAM_SCALES   ((uint64_t)1 << 39)        // scales with the joint normal of the variable integrated out

typedef struct Sweep {  // where a run stands: what all streams of one sweep have in common
    uint64_t seed;
    uint32_t chain;
    uint64_t sweep;
} Sweep;

typedef struct Stream {  // the numbers for one element of one variable in one sweep
    uint32_t key0, key1;
    uint32_t counter0, counter1, counter2, counter3;
    uint64_t spare;  // second half of the last block
    int has_spare;
    // of the last draw of a routine that makes it by its logarithm: log x, log (1 - x), exact where x has rounded to an end. NAN: there is
    // none
    double log_value, log_rest;
} Stream;

typedef struct Philox {
    uint32_t word0, word1, word2, word3;
} Philox;

// One round of Philox 4x32 with round key (key0, key1).
DEVICE_USUAL Philox philox_round(Philox c, uint32_t key0, uint32_t key1)
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
DEVICE_USUAL Philox philox(Philox c, uint32_t key0, uint32_t key1)
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
DEVICE_USUAL Stream stream(Sweep at, uint32_t variable, uint64_t element)
{
    uint64_t key = at.seed + 0x9E3779B97F4A7C15u;  // a bijection of 64 bits (finaliser of Steele, Lea and Flood 2014)
    key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
    key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
    key ^= key >> 31;

    Stream g;
    g.key0 = (uint32_t)key ^ at.chain;
    g.key1 = (uint32_t)(key >> 32);
    g.counter0 = (uint32_t)(at.sweep & 15u) << 28;
    g.counter1 = (uint32_t)(at.sweep >> 4);
    g.counter2 = (uint32_t)element;
    g.counter3 = (uint32_t)((element >> 32) & 255u) | variable << 8;
    g.spare = 0;
    g.has_spare = 0;
    g.log_value = g.log_rest = NAN;
    return g;
}

// 64 random bits.
DEVICE_USUAL uint64_t random_bits(Stream *g)
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
    g->spare = (uint64_t)c.word3 << 32 | c.word2;
    g->has_spare = 1;
    return (uint64_t)c.word1 << 32 | c.word0;
}

// A draw of many numbers that many hands make at once: part k >= 0 has the numbers of element + 1 + k, from the block at which g stands.
// The variable must have no use for these elements otherwise. Afterwards g is moved on by stream_pass, past what the parts have used.
DEVICE_USUAL Stream stream_part(const Stream *g, uint64_t k)
{
    Stream part = *g;
    const uint64_t element = ((uint64_t)(g->counter3 & 255u) << 32 | g->counter2) + 1 + k;
    part.counter2 = (uint32_t)element;
    part.counter3 = (g->counter3 & 0xFFFFFF00u) | ((uint32_t)(element >> 32) & 255u);
    part.has_spare = 0;
    return part;
}

DEVICE_USUAL void stream_pass(Stream *g)
{
    g->counter0 = (g->counter0 & 0xF0000000u) | ((g->counter0 + 64u) & 0x0FFFFFFFu);
    g->has_spare = 0;
}

// The next whole block: 128 random bits. A spare half of the one before stays for random_bits.
DEVICE_USUAL Philox random_block(Stream *g)
{
    Philox c;
    c.word0 = g->counter0;
    c.word1 = g->counter1;
    c.word2 = g->counter2;
    c.word3 = g->counter3;
    g->counter0 = (g->counter0 & 0xF0000000u) | ((g->counter0 + 1u) & 0x0FFFFFFFu);
    return philox(c, g->key0, g->key1);
}

// The double in (0, 1) for 64 random bits: an odd multiple of 2^-63, rounded. Near 0 the full 63 bits count, which gives
// inversions a left tail down to 1e-19; near 1 rounding would reach 1, hence the bound.
DEVICE_USUAL double open_unit(uint64_t bits)
{
    const double u = (double)(int64_t)(bits >> 1 | 1u) * 1.08420217248550443401e-19;
    return u < GM_BELOW_ONE ? u : GM_BELOW_ONE;
}

// Uniform on (0, 1), never 0 and never 1.
DEVICE double uniform_open(Stream *g) { return open_unit(random_bits(g)); }

// Exponential with rate 1, by inversion.
DEVICE double exponential_standard(Stream *g) { return -log(uniform_open(g)); }

// ---- normal ----
//
// The area under f(x) = exp(-x^2 / 2) is covered by 512 cells of equal area, so that a cell is chosen by a whole number and no function of
// the library is needed. Cells 256 to 510 are upright rectangles from 0 to 2.88, cell 511 is the tail beyond; cells 255 to 0 mirror them. A
// rectangle reaches up to f at its inner side, hence f there is (common area) / width. At its outer side f is f at the inner side times
// width / (width of the next). Both follow from the abscissae alone. A point below the outer side is accepted at once, others are compared
// with f. The cover exceeds the area by 0.8 %; 1.6 % of the points need the comparison. Cells suit intervals too: only those that meet the
// interval are drawn from (truncated.h).
//
// Method: rejection from a histogram of equal cells (Devroye 1986, Non-uniform random variate generation, VIII.2; Chopin 2011,
// Fast simulation of truncated Gaussian distributions). Tail: Robert 1995, Simulation of truncated normal variables.

// Abscissae x_0 .. x_255 with (x_(k+1) - x_k) f(x_k) = area = integral of f beyond x_255; x_256 continues the rule, so that the last
// rectangle knows its outer height; the value after it makes no point of the tail's cell pass as below the outer side.
#define GM_CELLS     512
#define GM_CELL_TAIL 2.88320143139927012
DEVICE_TABLE double gm_cell_sides[258] = {0.0,
                                          0.00493374161676628692,
                                          0.00986754328198948104,
                                          0.0148015250998920498,
                                          0.0197358072010102678,
                                          0.0246705097626714782,
                                          0.0296057530294907590,
                                          0.0345416573338960576,
                                          0.0394783431166908816,
                                          0.0444159309476636617,
                                          0.0493545415462529434,
                                          0.0542942958022776092,
                                          0.0592353147967413872,
                                          0.0641777198227209632,
                                          0.0691216324063470839,
                                          0.0740671743278881163,
                                          0.0790144676429456130,
                                          0.0839636347037715302,
                                          0.0889147981807168441,
                                          0.0938680810838214248,
                                          0.0988236067845551465,
                                          0.103781499037720340,
                                          0.108741882003525833,
                                          0.113704880269842965,
                                          0.118670618874654137,
                                          0.123639223328704587,
                                          0.128610819638368307,
                                          0.133585534328739154,
                                          0.138563494466958441,
                                          0.143544827685790478,
                                          0.148529662207457762,
                                          0.153518126867747747,
                                          0.158510351140403344,
                                          0.163506465161809594,
                                          0.168506599755989171,
                                          0.173510886459919702,
                                          0.178519457549186141,
                                          0.183532446063981756,
                                          0.188549985835471611,
                                          0.193572211512532751,
                                          0.198599258588885644,
                                          0.203631263430631795,
                                          0.208668363304212849,
                                          0.213710696404806867,
                                          0.218758401885177885,
                                          0.223811619884995307,
                                          0.228870491560640119,
                                          0.233935159115515385,
                                          0.239005765830878981,
                                          0.244082456097217034,
                                          0.249165375446177044,
                                          0.254254670583080264,
                                          0.259350489420033447,
                                          0.264452981109660705,
                                          0.269562296079476834,
                                          0.274678586066924128,
                                          0.279802004155095367,
                                          0.284932704809166414,
                                          0.290070843913562552,
                                          0.295216578809883498,
                                          0.300370068335612826,
                                          0.305531472863638376,
                                          0.310700954342611087,
                                          0.315878676338170632,
                                          0.321064804075067164,
                                          0.326259504480209479,
                                          0.331462946226670953,
                                          0.336675299778685670,
                                          0.341896737437668299,
                                          0.347127433389292455,
                                          0.352367563751663493,
                                          0.357617306624622988,
                                          0.362876842140223465,
                                          0.368146352514413368,
                                          0.373426022099973676,
                                          0.378716037440749154,
                                          0.384016587327218748,
                                          0.389327862853451353,
                                          0.394650057475494895,
                                          0.399983367071248465,
                                          0.405327990001869184,
                                          0.410684127174767414,
                                          0.416051982108246042,
                                          0.421431760997841702,
                                          0.426823672784428094,
                                          0.432227929224143930,
                                          0.437644744960210494,
                                          0.443074337596706465,
                                          0.448516927774370308,
                                          0.453972739248503452,
                                          0.459441998969050430,
                                          0.464924937162935308,
                                          0.470421787418736999,
                                          0.475932786773789539,
                                          0.481458175803796965,
                                          0.486998198715056280,
                                          0.492553103439385925,
                                          0.498123141731861393,
                                          0.503708569271463963,
                                          0.509309645764753191,
                                          0.514926635052678581,
                                          0.520559805220650989,
                                          0.526209428711999626,
                                          0.531875782444946177,
                                          0.537559147933233448,
                                          0.543259811410552182,
                                          0.548978063958916239,
                                          0.554714201641143227,
                                          0.560468525637604943,
                                          0.566241342387419630,
                                          0.572032963734266125,
                                          0.577843707077008484,
                                          0.583673895525328636,
                                          0.589523858060574089,
                                          0.595393929702037698,
                                          0.601284451678897055,
                                          0.607195771608052202,
                                          0.613128243678112162,
                                          0.619082228839793186,
                                          0.625058095003004828,
                                          0.631056217240913845,
                                          0.637076978001290676,
                                          0.643120767325458839,
                                          0.649187983075184142,
                                          0.655279031167858072,
                                          0.661394325820348321,
                                          0.667534289801909099,
                                          0.673699354696564742,
                                          0.679889961175402327,
                                          0.686106559279232544,
                                          0.692349608712103089,
                                          0.698619579146175441,
                                          0.704916950538504171,
                                          0.711242213460288008,
                                          0.717595869439193946,
                                          0.723978431315389753,
                                          0.730390423611956635,
                                          0.736832382920392539,
                                          0.743304858301957916,
                                          0.749808411705659909,
                                          0.756343618403718010,
                                          0.762911067445404595,
                                          0.769511362130207526,
                                          0.776145120501319586,
                                          0.782812975860521090,
                                          0.789515577305587980,
                                          0.796253590291428392,
                                          0.803027697216226459,
                                          0.809838598033953384,
                                          0.816687010894693128,
                                          0.823573672814323747,
                                          0.830499340375196215,
                                          0.837464790459560940,
                                          0.844470821017608795,
                                          0.851518251872119202,
                                          0.858607925561843151,
                                          0.865740708225895168,
                                          0.872917490531585880,
                                          0.880139188648297140,
                                          0.887406745270185820,
                                          0.894721130690701512,
                                          0.902083343932119111,
                                          0.909494413933520888,
                                          0.916955400800916144,
                                          0.924467397123461599,
                                          0.932031529360044538,
                                          0.939648959300815613,
                                          0.947320885608611863,
                                          0.955048545445595643,
                                          0.962833216190855106,
                                          0.970676217255170191,
                                          0.978578911999648699,
                                          0.986542709765484472,
                                          0.994569068022688935,
                                          1.00265949464630385,
                                          1.01081555032932339,
                                          1.01903885114234453,
                                          1.02733107125083425,
                                          1.03569394580185905,
                                          1.04412927399317675,
                                          1.05263892233875391,
                                          1.06122482814605731,
                                          1.06988900322188916,
                                          1.07863353782510986,
                                          1.08746060488633727,
                                          1.09637246451665007,
                                          1.10537146882947765,
                                          1.11446006710225952,
                                          1.12364081130713368,
                                          1.13291636204290360,
                                          1.14228949490387794,
                                          1.15176310732492539,
                                          1.16134022594629349,
                                          1.17102401454646972,
                                          1.18081778259669008,
                                          1.19072499449671045,
                                          1.20074927955825046,
                                          1.21089444281021458,
                                          1.22116447670852853,
                                          1.23156357384335997,
                                          1.24209614074781074,
                                          1.25276681292509353,
                                          1.26358047122600324,
                                          1.27454225972547040,
                                          1.28565760526651152,
                                          1.29693223886240766,
                                          1.30837221917397333,
                                          1.31998395830895264,
                                          1.33177425022565739,
                                          1.34375030206385664,
                                          1.35591976877374956,
                                          1.36829079146995201,
                                          1.38087204000345171,
                                          1.39367276032245721,
                                          1.40670282728547377,
                                          1.41997280369986399,
                                          1.43349400649042252,
                                          1.44727858105989352,
                                          1.46133958509289185,
                                          1.47569108328392949,
                                          1.49034825474881420,
                                          1.50532751521885309,
                                          1.52064665653482548,
                                          1.53632500647297006,
                                          1.55238361257478947,
                                          1.56884545445108831,
                                          1.58573569003426661,
                                          1.60308194252265571,
                                          1.62091463637874663,
                                          1.63926739282081870,
                                          1.65817749793698394,
                                          1.67768646006244337,
                                          1.69784067768878918,
                                          1.71869224533402362,
                                          1.74029993308832412,
                                          1.76273038682611650,
                                          1.78605961160921645,
                                          1.81037482249626420,
                                          1.83577677770533603,
                                          1.86238275331701677,
                                          1.89033038351345543,
                                          1.91978268712813243,
                                          1.95093474890577061,
                                          1.98402275443778366,
                                          2.01933644749038387,
                                          2.05723668932446145,
                                          2.09818084357581654,
                                          2.14276056482015010,
                                          2.19176001454326421,
                                          2.24624927516874044,
                                          2.30774179581636324,
                                          2.37847631814457941,
                                          2.46196177496065782,
                                          2.56414070980243998,
                                          2.69623373869126871,
                                          2.88320143139927012,
                                          3.19818576274984207,
                                          GM_HUGE};

typedef struct NormalCell {  // a point drawn in a cell
    double x;                // signed
    double inner;            // |x| at the inner side
    int below;               // surely below f
    int tail;                // in the tail's cell: x is not yet a draw
} NormalCell;

// A point in one of the cells first .. first + count - 1. The upper 52 bits choose cell and x, the lower 12 begin the height.
DEVICE_USUAL NormalCell normal_cell(uint64_t bits, int first, int count)
{
    const double at = ((double)(int64_t)(bits >> 12) + 0.5) * (count * 2.220446049250313e-16);  // in (0, count)
    const int whole = (int)at, n = first + whole - GM_CELLS / 2;
    const int k = n < 0 ? ~n : n;
    const double inner = gm_cell_sides[k], outer = gm_cell_sides[k + 1], width = outer - inner;
    NormalCell c;
    // no branch: it would be mispredicted half the time
    c.x = copysign(inner + (at - whole) * width, at - (GM_CELLS / 2 - first));
    c.inner = inner;
    c.below = (double)(int)((bits & 4095u) + 1) * 2.44140625e-4 * (gm_cell_sides[k + 2] - outer) <= width;
    c.tail = k == GM_CELLS / 2 - 1;
    return c;
}

// Until a proposal t is accepted with probability exp(-(t - gap)^2 / 2), where u decides; the next is exponential, mean `scale`.
DEVICE_UNUSUAL double normal_beyond_next(Stream *g, double t, double u, double gap, double scale)
{
    while (!(u <= exp(-0.5 * (t - gap) * (t - gap)))) {
        t = exponential_standard(g) * scale;
        u = uniform_open(g);
    }
    return t;
}

// t > 0 with density proportional to exp(-a t - t^2 / 2), a > 0: the distance of a standard normal beyond a, given that it is beyond.
// Robert's exponential with its best rate, (a + sqrt(a^2 + 4)) / 2 = a + gap; accepts > 0.76, > 0.9 for a > 1.2. Begins with `bits`.
DEVICE_USUAL double normal_beyond(Stream *g, uint64_t bits, double a)
{
    const double gap = 2 / (a + (a < 1e150 ? sqrt(a * a + 4) : a)), scale = 1 / (a + gap);
    const double t = -log(open_unit(bits)) * scale, u = open_unit(random_bits(g));
    if (u <= 1 - 0.5 * (t - gap) * (t - gap)) return t;  // decides most cases without exp
    Stream rest = *g;                                    // a copy, so that the usual path need not keep *g in memory
    const double next = normal_beyond_next(&rest, t, u, gap, scale);
    *g = rest;
    return next;
}

// Standard normal on [a, b] from the cells first .. first + count - 1, which must cover it, beginning with the given bits.
DEVICE_UNUSUAL double normal_from_cells(Stream *g, uint64_t bits, int first, int count, double a, double b)
{
    for (;;) {
        const NormalCell c = normal_cell(bits, first, count);
        double x = c.x;
        int below = c.below;
        if (c.tail) {
            const double beyond = GM_CELL_TAIL + normal_beyond(g, random_bits(g), GM_CELL_TAIL);
            x = c.x > 0 ? beyond : -beyond;
            below = 1;
        } else if (!below) {
            // relative to the inner side
            const double height = ((double)(int)(bits & 4095u) + uniform_open(g)) * 2.44140625e-4;
            below = height <= exp(-0.5 * (fabs(x) - c.inner) * (fabs(x) + c.inner));
        }
        if (below && x >= a && x <= b) return x;
        bits = random_bits(g);
    }
}

// The same; here is the usual path.
DEVICE_USUAL double normal_cells(Stream *g, uint64_t bits, int first, int count, double a, double b)
{
    const NormalCell c = normal_cell(bits, first, count);
    if (c.below & (c.x >= a) & (c.x <= b)) return c.x;
    Stream rest = *g;
    const double x = normal_from_cells(&rest, bits, first, count, a, b);
    *g = rest;
    return x;
}

// Normal with mean 0 and sd 1, never 0. 64 random bits nearly always; x is a multiple of about 1e-15, the tails have no bound.
DEVICE_USUAL double normal_standard(Stream *g) { return normal_cells(g, random_bits(g), 0, GM_CELLS, -INFINITY, INFINITY); }

#endif
