// kernels.h -- how kernels are written; included by an emitted program after its Data and State. The same text runs on both targets.
//
//   KERNEL(draw_theta) { EACH (j, d->J) { ... } }        elements on their own, in parallel
//   KERNEL(impute_y) { EACH_MISSING (e, field) { ... } }  missing elements of field number `field` of Data; MISSING_IN_TURN in a
//   KERNEL_ONCE ROW(draw_z, k) { ... return row_weight(w); }          row k of a matrix X: `dot` is X[k]*beta; w*X[k] is added to a sum;
//                                                         row_weight_and(w, t): and t to a total
//   KERNEL_SPAN(rows_of_B) { ... }                        some rows at a time, between two products of matrices (launch_rows.h):
//                                                         SPAN (i, n, &a) { a += ...; } those that it is called for; SPAN_TOTAL(k, place,
//                                                         a): place is the sum over all calls
//   KERNEL_TEAM(draw_tau) { ... }                         a team of lanes for each chain runs the body together
//   KERNEL_PRODUCTS(collect_U) { ... }                    the same, with sums of products by group (keyed_sums.h)
//   KERNEL_ON_REQUEST(log_likelihood) { ... }             the same; few runs launch it, so the C compiler may save its work
//   KERNEL_PRIOR(log_prior) { ... }                       the same, of numbers for each kept draw: it does save its work
//   KERNEL_ONCE(slice_R) { ... }                          one lane for each chain
//   KERNEL_SCALAR(draw_mu) { ... }                        the same, without loops
//   KERNEL_PART(some_factors_1) { ... return lp; }        a part of a long kernel, which calls it
//   SHARED_DRAW drawn_by_normal_natural(...) { ... }      how many scalars are drawn, kernels call it
//
// In a team, local variables are each lane's own and equal; work is shared by these loops, after which all lanes wait for each other:
//
//   ALONG (j, n) { ... }                                  iterations j = 0 .. n-1, in any order; ALONG_FROM (j, first, n) begins at first
//   ALONG2 (j, n, k, m) { ... }                           pairs (j, k)
//   SUM_ALONG (i, n, &a, &b) { a += ...; b += ...; }      then a and b have grown by the whole sums, in every lane
//   SUM_ALONG2 (i, n, j, m, &a) { a += ...; }             the same over pairs
//   SUM_OF (a, i, n) += ...;                              declares a, this sum; SUM_OF2 (a, i, n, j, m): over pairs
//   MIN_ALONG (i, n, &a) { a = fmin(a, ...); }            then a is the smallest of all, and of what it was; MAX_ALONG: the largest
//   LANES (j, n) { ... }, LANES2 (j, n, k, m) { ... }     as ALONG, each lane the same elements every time, and nobody waits
//   EACH_GROUP (k, K, n) {                                groups k = 0 .. K-1 of n rows, shared among the lanes; then TEAM_BARRIER()
//       SUM_ROWS (i, k, first, rows, &a) { a += ...; }    over the rows of group k, see ORDER_ROWS in launch_elements.h
//       SUM_SORTED (r, k, first, &a) { a += ...; }        the same by the places of these rows in the order of groups, where data lie by
//                                                         these
//       GROUP_LANE { ... } }                              by one lane
//   EACH_ELEMENT (k, K, n) {                              elements k = 0 .. K-1, each by a crew of lanes that suits sums of n terms
//       SUM_CREW (i, n, &a, &b) { a += ...; }            shared by the crew; SUM_CREW_FROM (i, first, n, ...)
//       ELEMENT_LANE s->x[k] = ...; }                     by one lane of the crew
//   SUM_INTO1 (i, first, n, a, na) {                      rows i = first .. first + n - 1, added to places of the array s->a[na]; then
//                                                         TEAM_BARRIER()
//       PLACES (j, m) { s->a[j] += ...; }                 every lane the places that are its own; PLACES2 (j, m, k, l): pairs
//   SUM_KEYED1 (i, first, n, a, na) {                     the same where the row says which place
//       if (OWN(key)) s->a[key] += ...; }                 SUM_INTO2 .. 4, SUM_KEYED2 .. 4: of several arrays; 0: of any
//   EACH_MATRIX (e, count, n) {                           matrices e = 0 .. count-1 of n by n, each by a crew of lanes
//       CREW(inverse_into, n, A, out); }                  a routine by all lanes of the crew
//   ONE_LANE { ... }                                      by one lane
//   TEAM_SCRATCH(n), TEAM_RELEASE(p)                      a buffer of n numbers that lanes near each other share
//   TEAM_FILL (i, n) { p[i] = ...; }                      by those lanes; then all have it
//   TEAM_ONCE f(p);  TEAM_VALUE(f(p))                     the same, by one of them
//   STORE(place, x)  SET(place, x)                        place = x at the end of a kernel; within it
//
// Sums are taken over fixed chunks, then chunk by chunk, so that they depend neither on the number of threads nor on the grid.
// Streams are keyed by element, so the draws do not either.
#ifndef GM_KERNELS_H
#define GM_KERNELS_H

#if defined(GM_KERNELS_ELSEWHERE) || defined(GM_KERNELS_HERE)
#undef DEVICE
#define DEVICE GM_HOST_ONLY
#endif

enum {
    GM_MOST_CHUNKS = 4096,
    GM_PARTIALS = 2 * GM_MOST_TOTALS * GM_MOST_CHUNKS,
    GM_ROOM = 8 * GM_PARTIALS
};  // of partial sums, a chain on a GPU

// Elements in a chunk of a sum over n: a function of n alone.
DEVICE long chunk_size(long n)
{
    const long least = 2048, even = ((n + GM_MOST_CHUNKS - 1) / GM_MOST_CHUNKS + 255) / 256 * 256;
    return even > least ? even : least;
}

// The largest of n whole data, 0 if there are none.
DEVICE long greatest(const int *x, long n)
{
    long most = 0;
    for (long i = 0; i < n; i++)
        if (x[i] > most) most = x[i];
    return most;
}

// The most elements, hi[i] - lo[i] + more, of n slices of data; 0 if there are none.
DEVICE long longest(const int *hi, const int *lo, long more, long n)
{
    long most = 0;
    for (long i = 0; i < n; i++)
        if ((long)hi[i] - lo[i] + more > most) most = (long)hi[i] - lo[i] + more;
    return most;
}

// The smallest of n whole data, 0 if there are none.
DEVICE long smallest(const int *x, long n)
{
    long all = n ? x[0] : 0;
    for (long i = 1; i < n; i++)
        if (x[i] < all) all = x[i];
    return all;
}

// The sum of n whole data.
DEVICE long total_of(const int *x, long n)
{
    long all = 0;
    for (long i = 0; i < n; i++) all += x[i];
    return all;
}

// What a row of a row pass gives back: the weight with which X[k] enters the sum over rows, and what it adds to a total of its own.
typedef struct RowWeight {
    real shift, more;
} RowWeight;

DEVICE RowWeight row_weight_and(real shift, real more)
{
    RowWeight w;
    w.shift = shift;
    w.more = more;
    return w;
}

DEVICE RowWeight row_weight(real shift) { return row_weight_and(shift, 0); }

#define NOT_FINITE "its draw is not a finite number: its conditional is improper, or a value it depends on overflowed"
#define NOT_POSITIVE_DEFINITE                                                                                                   \
    "its joint normal conditional is not proper: priors and data leave an element of it free, or a combination of elements (a " \
    "coefficient or a part of a graph that neither identifies, or columns that are collinear to within rounding: centre "       \
    "them), or a value it depends on overflowed or fell to 0"
#define NOT_SOLVED                                                                                                                   \
    "conjugate gradients do not come close enough to a solution, and its precision has no factor that fits: its columns are nearly " \
    "collinear under a vague prior (standardise them, or give the prior a smaller scale)"
#define VERIFY(x, name, element)                             \
    do {                                                     \
        if (!is_finite(x)) FAULT(name, element, NOT_FINITE); \
    } while (0)
#define SUM_ALONG(i, n, ...) SUM_ALONG_FROM(i, 0, n, __VA_ARGS__)
#define SUM_OF(a, i, n) SUM_OF_FROM(a, i, 0, n)
#define SUM_OF_FROM(a, i, from, n) \
    wide a = 0;                    \
    SUM_ALONG_FROM (i, from, n, &a) a
#define SUM_OF2(a, i, n, j, m) \
    wide a = 0;                \
    SUM_ALONG2 (i, n, j, m, &a) a
#define MIN_ALONG(i, n, x)   MIN_ALONG_FROM(i, 0, n, x)
#define MAX_ALONG(i, n, x)   MAX_ALONG_FROM(i, 0, n, x)
#define SUM_CREW(i, n, ...)  SUM_CREW_FROM(i, 0, n, __VA_ARGS__)
#define COUNT_ROWS(i, n)     COUNT_ROWS_FROM(i, 0, n)
#define ALONG(i, n)          ALONG_FROM (i, 0, n)
#define LANES(i, n)          LANES_FROM(i, 0, n)
#define PLACES(j, n)         PLACES_FROM(j, 0, n)
// An entry of a symmetric matrix and its mirror image, at these places of its array.
#define ADD_TWICE(array, here, there, x) \
    do {                                 \
        const wide gm_x = (x);           \
        (array)[here] += gm_x;           \
        (array)[there] += gm_x;          \
    } while (0)
// Rows that name element k, by one lane; one of those that a team or a crew shares.
#define NAMED_ROW(i, rows, row) \
    const long i = (rows)[row]; \
    (void)i
#define ROWS_OF(i, k, first, rows) for (long gm_r = (first)[k], i; gm_r < (first)[(k) + 1] && (i = (rows)[gm_r], (void)i, 1); gm_r++)
#define OF_COLOUR(n, count)        (((n)-COLOUR + (count)-1) / (count))
#define PER_COLOUR(n, count)       (((n) + (count)-1) / (count))
#define SCRATCH(n)                 ((wide *)malloc(sizeof(wide) * (size_t)((n) + 1)))
#define RELEASE(p)                 free(p)

DEVICE wide dirichlet_ratio(const wide *alpha, long n, const wide *x, const wide *old)
{
    wide v = 0;
    for (long i = 0; i < n; i++) v += times_log(alpha[i] - 1, log(x[i]) - log(old[i]));
    return v;
}

// The same of logarithms that are kept (special.h, log_kept): old has those of before.
DEVICE wide dirichlet_ratio_logs(const wide *alpha, long n, const wide *x, const wide *logs, const wide *old)
{
    wide v = 0;
    for (long i = 0; i < n; i++) v += times_log(alpha[i] - 1, log_kept(x[i], logs[i]) - old[i]);
    return v;
}

// Of a normal whose precision is D and whose shift is h, element by element.
DEVICE wide normal_diagonal_ratio(const wide *D, const wide *h, long n, const wide *x, const wide *old)
{
    wide v = 0;
    for (long i = 0; i < n; i++) v += (x[i] - old[i]) * (h[i] - 0.5 * D[i] * (x[i] + old[i]));
    return v;
}

DEVICE wide wishart_ratio(wide d, const wide *B, long n, const wide *x, const wide *old)
{
    wide v = d * (log_determinant_of(n, x) - log_determinant_of(n, old));
    for (long i = 0; i < n * n; i++) v += B[i] * (x[i] - old[i]);
    return v;
}

DEVICE wide inv_wishart_ratio(wide d, const wide *B, long n, const wide *x, const wide *old)
{
    wide *a = SCRATCH(2 * n * n), *b = a + n * n;
    inverse_into(n, x, a);
    inverse_into(n, old, b);
    wide v = d * (log_determinant_of(n, x) - log_determinant_of(n, old));
    for (long i = 0; i < n * n; i++) v += B[i] * (a[i] - b[i]);
    RELEASE(a);
    return v;
}

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#include "kernels_cuda.h"
#else
#include "kernels_cpu.h"
#endif

// s->var[element] is drawn from the law: by the stream that is its own, looked at, compared for --check, and stored.
//
//   DRAW(theta, k, NORMAL(mean, precision))      by one lane            TEAM_DRAW        by a team, at the end of its kernel
//   CREW_DRAW                                    by a crew of lanes     TEAM_DRAW_NEXT   by a team, which goes on
//
// A law is a name and its arguments. The headers of samplers have for each the routine NAME_drawn, and NAME_ratio_terms: log q at the
// new value less log q at the old.
#define DRAW(var, element, law)           GM_DRAW(GM_PUT, var, element, law)
#define TEAM_DRAW(var, element, law)      GM_DRAW(STORE, var, element, law)
#define TEAM_DRAW_NEXT(var, element, law) GM_DRAW(SET, var, element, law)
#define CREW_DRAW(var, element, law)      GM_DRAW(GM_PUT_ELEMENT, var, element, law)
#define GM_PUT(place, x)                  (place) = (x)
#define GM_PUT_ELEMENT(place, x)          ELEMENT_LANE(place) = (x)
#define GM_DRAW(put, var, element, name, ...)                                                  \
    do {                                                                                       \
        Stream gm_stream = stream(at, VAR_##var, element);                                     \
        const GM_TYPE_OF(s->var[element]) gm_drawn = name##_drawn(&gm_stream, __VA_ARGS__);    \
        VERIFY(gm_drawn, GM_NAME_OF(var), element);                                            \
        if (CHECKING) RATIO(name##_ratio_terms(gm_drawn, (wide)s->var[element], __VA_ARGS__)); \
        LOOKED_AT(put, name, __VA_ARGS__);                                                     \
        put(s->var[element], gm_drawn);                                                        \
    } while (0)

// Position i of an array of n that may lie outside it: then a fault, and a place that can be read.
#define INSIDE(i, n, name) inside(GM, i, n, name)

DEVICE long inside(GmContext *GM, long i, long n, const char *name)
{
    if (i >= 0 && i < n) return i;
    const long found[] = {i + 1, n};
    FAULT_AT(name, found, 2, "its subscript is # and goes from 1 to #");
    return 0;
}
// The number of an integer that is stored: 32 bits hold it, or it is a fault.
#define INTEGER(x, name) integer_of_32_bits(GM, x, name)

DEVICE int integer_of_32_bits(GmContext *GM, wide x, const char *name)
{
    if (x >= -2147483647 && x <= 2147483647) return (int)x;
    const long none[] = {0};
    FAULT_AT(name, none, 0, "it is not an integer of 32 bits; a real has room for larger numbers (1.0 * n)");
    return 0;
}

// The same of what was drawn, and looked at: 0 where it was a fault.
#define INTEGER_DRAWN(x) ((x) >= -2147483647 && (x) <= 2147483647 ? (int)(x) : 0)

// The remainder of i divided by n, of the sign of i.
#define REMAINDER(i, n) remainder_of(GM, i, n)

DEVICE long remainder_of(GmContext *GM, long i, long n)
{
    if (n != 0) return i % n;
    const long none[] = {0};
    FAULT_AT("%", none, 0, "the remainder of a division by 0 is asked for");
    return 0;
}
#if !defined(__CUDACC_RTC__) && !defined(GM_LESSON)
#include "launch.h"
#endif

#if defined(GM_KERNELS_ELSEWHERE) || defined(GM_KERNELS_HERE)
#undef DEVICE
#define DEVICE static inline
#endif

#endif
