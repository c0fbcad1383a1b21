// crew.h -- small dense linear algebra on a GPU: a crew of lanes for each matrix of a plate.
//
//   EACH_MATRIX (e, count, n) {                           matrices e = 0 .. count-1 of n by n, each by a crew; in a KERNEL_TEAM
//       CREW(inverse_into, n, A, out);                    the routine of that name, by all lanes of the crew; what it gives is the same in
//                                                         every lane
//   }
//
// A crew is a lane where matrices are tiny and many, else a warp, or a block from 23 rows on. Matrices are worked on in shared memory, up
// to 64 by 64; larger ones in memory that the crew takes for that. Routines are those of chol.h, multivariate.h and gm.h: the same steps
// from the same random numbers, in an order of additions that depends on the size alone, so that draws are those of the CPU up to rounding.
// All lanes of a crew draw the numbers of an element's stream, which takes no longer than one lane doing so. Arguments may be anywhere in
// memory; out is not A. Each routine ends when all lanes see what it has written. Test: tests/gpu/threads.test, devices.py (keyed_scatter)
#ifndef GM_CREW_H
#define GM_CREW_H

// numbers in shared memory: a matrix and two vectors of 64; of 22 for each warp
enum { GM_CREW_ROOM = 64 * 66, GM_TINY_MATRIX = 3 };

typedef struct GmCrew {
    int rank, lanes;   // this lane, of so many
    long first, step;  // elements of the crew
    wide *room;        // n * n + 2 n numbers
    wide *taken;       // where they are not in shared memory
} GmCrew;

DEVICE wide *crew_room(void)
{
    __shared__ wide room[GM_CREW_ROOM];
    return room;
}

DEVICE void crew_wait(const GmCrew &c)
{
    if (c.lanes > 32) __syncthreads();
    else if (c.lanes > 1) __syncwarp();
}

DEVICE GmCrew crew_begin(long count, long n)
{
    GmCrew c;
    const long size = n * (n + 2), of_warp = GM_CREW_ROOM / (GM_THREADS / 32);
    c.lanes = n <= GM_TINY_MATRIX && count >= 4096 ? 1 : size <= of_warp ? 32 : (int)blockDim.x;
    c.rank = (int)threadIdx.x % c.lanes;
    c.first = gm_thread / c.lanes;
    c.step = gm_threads / c.lanes;
    c.taken = (wide *)0;
    c.room = crew_room() + (c.lanes == 32 ? threadIdx.x / 32 * of_warp : 0);
    if (c.lanes == 1) c.room = crew_room() + (long)threadIdx.x * (GM_CREW_ROOM / GM_THREADS);
    if (c.lanes > 32 && size > GM_CREW_ROOM) c.room = c.taken = block_value(threadIdx.x == 0 ? SCRATCH(size) : (wide *)0);
    return c;
}

DEVICE void crew_end(const GmCrew &c)
{
    if (c.lanes > 32) __syncthreads();
    if (c.taken && c.rank == 0) RELEASE(c.taken);
}

#define EACH_MATRIX(e, count, n)                                                                                  \
    for (GmCrew gm_crew = crew_begin(count, n), *gm_go = &gm_crew; gm_go; gm_go = (GmCrew *)0, crew_end(gm_crew)) \
        for (long e = gm_crew.first, gm_n = (count); e < gm_n; e += gm_crew.step)
#define CREW_SCRATCH(n)    ((wide *)0)  // the room is enough
#define CREW_RELEASE(p)    ((void)(p))
#define CREW(routine, ...) routine##_by_crew(gm_crew, __VA_ARGS__)

// ---- factors ----

// The lower triangle of L, a copy of which the lanes have just made, becomes its factor: chol_factor, a column at a time. The upper
// triangle is not looked at.
DEVICE long chol_factor_by_crew(const GmCrew &c, wide *L, long n)
{
    crew_wait(c);
    for (long j = 0; j < n; j++) {
        const wide diagonal = L[j * n + j];
        wide pivot = diagonal;
        for (long k = 0; k < j; k++) pivot -= L[j * n + k] * L[j * n + k];
        if (!(pivot > GM_PIVOT_LOST * diagonal) || !is_finite(pivot)) return j + 1;
        const wide root = sqrt(pivot);
        for (long i = j + 1 + c.rank; i < n; i += c.lanes) {
            wide sum = L[i * n + j];
            for (long k = 0; k < j; k++) sum -= L[i * n + k] * L[j * n + k];
            L[i * n + j] = sum / root;
        }
        crew_wait(c);
        if (c.rank == 0) L[j * n + j] = root;  // nobody reads it before the factor is whole
    }
    crew_wait(c);
    return 0;
}

// The factor of times*A in the room.
DEVICE long crew_factor(const GmCrew &c, wide times, const wide *A, long n)
{
    crew_wait(c);
    for (long e = c.rank; e < n * n; e += c.lanes) c.room[e] = times * A[e];
    return chol_factor_by_crew(c, c.room, n);
}

DEVICE void crew_fill(const GmCrew &c, wide *out, long n, wide value)
{
    for (long e = c.rank; e < n; e += c.lanes) out[e] = value;
    crew_wait(c);
}

DEVICE wide log_determinant_of_by_crew(const GmCrew &c, long n, const wide *A)
{
    if (!matrix_is_symmetric(A, n)) return NAN;
    return crew_factor(c, 1, A, n) ? -INFINITY : chol_log_determinant(c.room, n);
}

DEVICE void log_determinant_into_by_crew(const GmCrew &c, long n, const wide *A, wide *out)
{
    const wide value = log_determinant_of_by_crew(c, n, A);
    if (c.rank == 0) *out = value;
    crew_wait(c);
}

DEVICE void cholesky_decompose_into_by_crew(const GmCrew &c, long n, const wide *A, wide *out)
{
    const long bad = !matrix_is_symmetric(A, n) || crew_factor(c, 1, A, n);
    for (long e = c.rank; e < n * n; e += c.lanes) out[e] = bad ? NAN : e % n > e / n ? 0 : c.room[e];
    crew_wait(c);
}

DEVICE void cholesky_transposed_into_by_crew(const GmCrew &c, long n, const wide *A, wide *out)
{
    const long bad = !matrix_is_symmetric(A, n) || crew_factor(c, 1, A, n);
    for (long e = c.rank; e < n * n; e += c.lanes) out[e] = bad ? NAN : e % n < e / n ? 0 : c.room[e % n * n + e / n];
    crew_wait(c);
}

// L becomes its inverse, row by row: a row of it needs those above, and of L the row alone.
DEVICE void crew_invert_factor(const GmCrew &c, wide *L, long n)
{
    for (long i = 0; i < n; i++) {
        const wide root = L[i * n + i];
        for (long begin = 0; begin < i; begin += c.lanes) {
            const long j = begin + c.rank;
            wide sum = 0;
            for (long k = j; k < i; k++) sum += L[i * n + k] * L[k * n + j];
            crew_wait(c);
            if (j < i) L[i * n + j] = -sum / root;
        }
        crew_wait(c);
        if (c.rank == 0) L[i * n + i] = 1 / root;
        crew_wait(c);
    }
}

DEVICE void inverse_into_by_crew(const GmCrew &c, long n, const wide *A, wide *out)
{
    if (!matrix_is_symmetric(A, n) || crew_factor(c, 1, A, n)) {  // a crew inverts symmetric ones alone
        crew_fill(c, out, n * n, NAN);
        return;
    }
    wide *const M = c.room;
    crew_invert_factor(c, M, n);
    for (long e = c.rank; e < n * n; e += c.lanes) {
        const long i = e / n, j = e % n;
        wide sum = 0;
        for (long k = i > j ? i : j; k < n; k++) sum += M[k * n + i] * M[k * n + j];
        out[e] = sum;
    }
    crew_wait(c);
}

// ---- draws ----

// x with L x = b in place of b, a lane for some of its elements.
DEVICE void crew_solve_lower(const GmCrew &c, const wide *L, long n, wide *b)
{
    for (long i = 0; i < n; i++) {
        const wide x = b[i] / L[i * n + i];
        crew_wait(c);
        for (long k = i + c.rank; k < n; k += c.lanes) b[k] = k == i ? x : b[k] - L[k * n + i] * x;
        crew_wait(c);
    }
}

// The same with L'.
DEVICE void crew_solve_upper(const GmCrew &c, const wide *L, long n, wide *b)
{
    for (long i = n - 1; i >= 0; i--) {
        const wide x = b[i] / L[i * n + i];
        crew_wait(c);
        for (long k = c.rank; k <= i; k += c.lanes) b[k] = k == i ? x : b[k] - L[i * n + k] * x;
        crew_wait(c);
    }
}

// normal_precision_shift; J stays as it is.
DEVICE wide normal_draw_by_crew(const GmCrew &c, Stream *g, long n, const wide *J, const wide *h, wide *x)
{
    const long failed = crew_factor(c, 1, J, n);
    if (failed) return (wide)failed;
    wide *const b = c.room + n * n;
    for (long i = c.rank; i < n; i += c.lanes) b[i] = h[i];
    crew_wait(c);
    crew_solve_lower(c, c.room, n, b);
    for (long i = 0; i < n; i++) {
        const wide e = normal_standard(g);
        if (i % c.lanes == c.rank) b[i] += e;
    }
    crew_wait(c);
    crew_solve_upper(c, c.room, n, b);
    for (long i = c.rank; i < n; i += c.lanes) x[i] = b[i];
    crew_wait(c);
    return 0;
}

// bartlett, with zeros above the diagonal.
DEVICE void crew_bartlett(const GmCrew &c, Stream *g, wide df, long n, wide *A)
{
    int whose = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            const wide a = j < i ? normal_standard(g) : j == i ? sqrt(2.0) * exp(0.5 * log_gamma_standard(g, 0.5 * (df - (wide)i))) : 0;
            if (whose == c.rank) A[i * n + j] = a;
            whose = whose + 1 == c.lanes ? 0 : whose + 1;
        }
    crew_wait(c);
}

// out = C C'.
DEVICE void crew_square(const GmCrew &c, const wide *C, long n, wide *out)
{
    for (long e = c.rank; e < n * n; e += c.lanes) {
        wide sum = 0;
        for (long k = 0; k < n; k++) sum += C[e / n * n + k] * C[e % n * n + k];
        out[e] = sum;
    }
    crew_wait(c);
}

// Matrices that are drawn stand in `out` while they are made, their factor in the room.
DEVICE wide wishart_natural_by_crew(const GmCrew &c, Stream *g, wide d, const wide *B, long n, wide *out, wide *)
{
    const long failed = crew_factor(c, -2, B, n);
    if (failed) return (wide)failed;
    wide *const C = c.room;
    crew_bartlett(c, g, 2 * d + (wide)n + 1, n, out);
    for (long j = c.rank; j < n; j += c.lanes)  // C' X = A, a lane for a column
        for (long i = n - 1; i >= 0; i--) {
            wide sum = out[i * n + j];
            for (long k = i + 1; k < n; k++) sum -= C[k * n + i] * out[k * n + j];
            out[i * n + j] = sum / C[i * n + i];
        }
    crew_wait(c);
    for (long e = c.rank; e < n * n; e += c.lanes) C[e] = out[e];
    crew_wait(c);
    crew_square(c, C, n, out);
    return 0;
}

DEVICE wide inv_wishart_natural_by_crew(const GmCrew &c, Stream *g, wide d, const wide *B, long n, wide *out, wide *)
{
    const long failed = crew_factor(c, -2, B, n);
    if (failed) return (wide)failed;
    wide *const C = c.room;
    crew_bartlett(c, g, -2 * d - (wide)n - 1, n, out);
    for (long j = c.rank; j < n; j += c.lanes)  // A m = row j of C, a lane for a row, which becomes m
        for (long i = 0; i < n; i++) {
            wide sum = i <= j ? C[j * n + i] : 0;
            for (long k = 0; k < i; k++) sum -= out[i * n + k] * C[j * n + k];
            C[j * n + i] = sum / out[i * n + i];
        }
    crew_wait(c);
    crew_square(c, C, n, out);
    return 0;
}

#endif
