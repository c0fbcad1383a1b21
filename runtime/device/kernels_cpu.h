// kernels_cpu.h -- kernels.h on the CPU: a kernel is a function called for a range of elements, or by the threads of a team.
#ifndef GM_KERNELS_CPU_H
#define GM_KERNELS_CPU_H

#include <omp.h>

typedef struct GmCpuContext {
    GmRun *run;
    int chain;         // within the run
    long first, last;  // elements of this call: KERNEL
    int lane, lanes;   // KERNEL_TEAM
    int half;          // of `partial`: sums alternate, so that nobody waits before the next
    wide *partial;     // GM_PARTIALS, of the team; NULL for a team of one
} GmContext;

#define GM                    gm_context
#define GM_NAME_OF(var)       gm_model.state[VAR_##var - 1].name
#define GM_TYPE_OF(place)     __typeof__(place)
#define GM_GIVEN              GmContext *GM, const Data *restrict d, const State *restrict s, const Sweep at
#define KERNEL(name)          static void name(GM_GIVEN)
#define KERNEL_ONCE(name)     KERNEL(name)
#define KERNEL_TEAM(name)     KERNEL(name)
#define KERNEL_PRODUCTS(name) KERNEL(name)
// In a program of many updates most kernels are scalar, and most of the compiler's time would be spent on a few operations around a call of
// a sampler.
#if defined(GM_MANY_UPDATES) && !defined(GM_CHEAPLY) && defined(__GNUC__) && !defined(__clang__)
#define GM_CHEAPLY __attribute__((optimize("O0")))
#elif !defined(GM_CHEAPLY)
#define GM_CHEAPLY
#endif
#define KERNEL_ON_REQUEST(name) static GM_CHEAPLY void name(GM_GIVEN)
// Draws without data: few of them are made, and optimising them is most of what they would cost. So it is with the log prior, of kept draws
// in runs that request it.
#if defined(__GNUC__) && !defined(__clang__)
#define KERNEL_FORWARD(name) static __attribute__((optimize("O1"))) void name(GM_GIVEN)
#define KERNEL_PRIOR(name)   static __attribute__((optimize("O0"))) void name(GM_GIVEN)
#else
#define KERNEL_FORWARD(name) KERNEL(name)
#define KERNEL_PRIOR(name)   KERNEL(name)
#endif
#define KERNEL_SCALAR(name)     static GM_CHEAPLY void name(GM_GIVEN)
#define KERNEL_PART(name)       static GM_CHEAPLY wide name(GmContext *GM, const Data *restrict d, const State *restrict s)
#define SHARED_DRAW             static void
#define EACH(i, n)              for (long i = GM->first; i < GM->last; i++)
#define EACH_MISSING(e, field) \
    for (long gm_m = GM->first, e; gm_m < GM->last && (e = GM->run->missing[(field)-1].index[gm_m], (void)e, 1); gm_m++)
#define MISSING_IN_TURN(e, field)                                                                                                        \
    for (long gm_m = 0, e;                                                                                                               \
         gm_m < (GM->run->missing ? GM->run->missing[(field)-1].count : 0) && (e = GM->run->missing[(field)-1].index[gm_m], (void)e, 1); \
         gm_m++)

// The program's own exp, expm1, log and log1p are those without calls: loops over rows are then done several rows at a time.
#ifndef GM_MANY_UPDATES
#define exp(x)   exp_row(x)
#define log(x)   log_row(x)
#define expm1(x) expm1_row(x)
#define log1p(x) log1p_row(x)
#endif

// Before a loop whose iterations may be taken in any order, several at a time. (Initial values are set in a loop of its own around it, or
// gcc loses the pragma.)
#if defined(__GNUC__) && !defined(__clang__)
#define GM_ANY_ORDER _Pragma("GCC ivdep")
#else
#define GM_ANY_ORDER
#endif

// Rows first .. last - 1: dot[] is given, weight[] is filled, *more grows.
#define ROW(name, k)                                                             \
    static inline RowWeight name##_row(GM_GIVEN, const long k, const real dot);  \
    static void name(GM_GIVEN, const real *dot, real *weight, wide *more)        \
    {                                                                            \
        wide sum = 0;                                                            \
        GM_ANY_ORDER                                                             \
        for (long k = GM->first; k < GM->last; k++) {                            \
            const RowWeight w = name##_row(GM, d, s, at, k, dot[k - GM->first]); \
            weight[k - GM->first] = w.shift;                                     \
            sum += w.more;                                                       \
        }                                                                        \
        *more += sum;                                                            \
    }                                                                            \
    static inline RowWeight name##_row(GM_GIVEN, const long k, const real dot)

// Some rows; totals grow over the calls.
#define KERNEL_SPAN(name)       KERNEL(name)
#define SPAN(i, n, ...)         for (long i = GM->first; i < GM->last; i++)
#define SPAN_TOTAL(k, place, x) (GM->partial[k] += (x))

// An entry of the precision of a joint normal that is collected (backends/sparse.h).
#define SPARSE_ADD(i, j, x)   gm_sparse_add(i, j, x)
#define SPARSE_SHIFT(h, j, x) ((h)[j] += (x))
// A kernel that lists the terms of a sparse joint normal, and its loops.
#define KERNEL_TERMS(name, number) KERNEL_TEAM(name)
#define EACH_TERM_FROM(i, from, n) for (long gm_0 = (from), gm_to = gm_0 + (n), i = gm_0; i < gm_to; i++)
#define EACH_TERM(i, n)            EACH_TERM_FROM(i, 0, n)
#define EACH_TERM2(i, n, j, m)     EACH_TERM(i, n) for (long j = 0; j < (m); j++)
// The precision has r r' more, r a row of these entries times `root`: it begins, and gets an entry.
#define SPARSE_ROW(root) gm_sparse_row(root)
#define SPARSE_PUT(j, x) gm_sparse_put(j, x)
// The shift has `target` such rows more; the row gets a row of a matrix, x[p], from place j on.
#define SPARSE_TARGET(target)   gm_sparse_target(target)
#define SPARSE_PUT_ROW(j, x, p) gm_sparse_put_row(j, x, p)
// Fewer rows than coefficients, or rows that are listed: no matrix of coefficients by coefficients is computed.
#define FEW_ROWS(number, rows, size) (gm_rows_listed(number) || (rows) < (size))

// ---- teams ----

GM_HOST_ONLY void team_barrier(GmContext *c)
{
    if (c->lanes > 1) {
#pragma omp barrier
    }
}

#define TEAM_BARRIER()   team_barrier(GM)
#define gm_part(n, lane) ((n) * (long)(lane) / GM->lanes)
#define EACH_OF_CLASSES(k, n, first, elements)                                   \
    for (long gm_class = 0; (first)[gm_class] < (n); gm_class++, TEAM_BARRIER()) \
        for (long gm_e = (first)[gm_class] + GM->lane, k; gm_e < (first)[gm_class + 1] && (k = (elements)[gm_e], 1); gm_e += GM->lanes)
#define LANES_FROM(i, from, n)                                                                                                         \
    for (long gm_n = (n), gm_0 = (from), i = gm_0 + gm_part(gm_n, GM->lane), gm_to = gm_0 + gm_part(gm_n, GM->lane + 1), gm_begun = 0; \
         !gm_begun; gm_begun = 1)                                                                                                      \
    GM_ANY_ORDER for (; i < gm_to; i++)
#define LANES2(i, n, j, m) LANES_FROM(i, 0, n) GM_ANY_ORDER for (long j = 0; j < (m); j++)
#define ALONG_FROM(i, from, n) \
    for (int gm_once = 1; gm_once; gm_once = 0, TEAM_BARRIER()) LANES_FROM(i, from, n)
#define ALONG2(i, n, j, m)                                      \
    for (int gm_once = 1; gm_once; gm_once = 0, TEAM_BARRIER()) \
        LANES2 (i, n, j, m)
#define ONE_LANE                                                \
    for (int gm_once = 1; gm_once; gm_once = 0, TEAM_BARRIER()) \
        if (GM->lane == 0)
#define SET(place, x)                                         \
    do {                                                      \
        const wide gm_x = (x);                                \
        TEAM_BARRIER();                                       \
        if (GM->lane == 0) (place) = (__typeof__(place))gm_x; \
        TEAM_BARRIER();                                       \
    } while (0)
#define STORE(place, x) SET(place, x)

#define TEAM_SCRATCH(n) SCRATCH(n)
#define TEAM_RELEASE(p) RELEASE(p)
#define TEAM_FILL(i, n) for (long i = 0, gm_n = (n); i < gm_n; i++)
#define TEAM_ONCE
#define TEAM_VALUE(x) (x)

// Copied to each sum, so that what it adds up stays in registers; a program of many updates calls them once a chunk.
#if defined(GM_KERNELS_ELSEWHERE) || defined(GM_KERNELS_HERE)
#define GM_SUM_LINKAGE GM_HOST_ONLY
#elif defined(GM_MANY_UPDATES)
#define GM_SUM_LINKAGE static __attribute__((noinline, unused))
#else
#define GM_SUM_LINKAGE static inline __attribute__((always_inline))
#endif

typedef struct GmCpuSum {
    long n, size, chunks, chunk, first, last;
    int started;
    wide base[GM_MOST_TOTALS], sum[GM_MOST_TOTALS];
} GmSum;

GM_SUM_LINKAGE GmSum sum_begin(const GmContext *c, long n, int count, wide *const *into)
{
    GmSum s;
    s.n = n;
    s.size = chunk_size(n);
    s.chunks = (n + s.size - 1) / s.size;
    s.chunk = c->lane - c->lanes;
    s.started = 0;
    for (int k = 0; k < count; k++) {
        s.base[k] = *into[k];
        s.sum[k] = *into[k] = 0;
    }
    return s;
}

// said: the totals as the program has them, then what the sum is over, for `fit why`.
GM_SUM_LINKAGE int sum_next(GmContext *c, GmSum *s, int count, wide *const *into, const char *said, const char *over)
{
    if (s->started)
        for (int k = 0; k < count; k++) {
            if (c->lanes == 1) s->sum[k] += *into[k];
            else c->partial[((long)c->half * GM_MOST_TOTALS + k) * GM_MOST_CHUNKS + s->chunk] = *into[k];
            *into[k] = 0;
        }
    s->started = 1;
    s->chunk += c->lanes;
    if (s->chunk < s->chunks) {
        s->first = s->chunk * s->size;
        s->last = s->first + s->size < s->n ? s->first + s->size : s->n;
        return 1;
    }
    if (c->lanes > 1) {
        team_barrier(c);
        for (int k = 0; k < count; k++) {
            // volatile: one after the other
            const volatile wide *partial = c->partial + ((long)c->half * GM_MOST_TOTALS + k) * GM_MOST_CHUNKS;
            for (long b = 0; b < s->chunks; b++) s->sum[k] += partial[b];
        }
        c->half = !c->half;
    }
    for (int k = 0; k < count; k++) *into[k] = add_log(s->base[k], s->sum[k]);
    if (__builtin_expect(gm_watching, 0))
        for (int k = 0; k < count; k++) gm_watch_sum(c->chain, said, over, k, *into[k]);
    return 0;
}

// sign -1: *x becomes the smallest of all lanes', 1: the largest.
GM_HOST_ONLY void extreme_of_lanes(GmContext *c, wide sign, wide *x)
{
    if (c->lanes == 1) return;
    volatile wide *partial = c->partial + (long)c->half * GM_MOST_TOTALS * GM_MOST_CHUNKS;
    partial[c->lane] = *x;
    team_barrier(c);
    for (long b = 0; b < c->lanes; b++) *x = sign * fmax(sign * *x, sign * partial[b]);
    c->half = !c->half;
}

#define MIN_ALONG_FROM(i, from, n, x) \
    for (int gm_once = 1; gm_once; gm_once = 0, extreme_of_lanes(GM, -1, x)) LANES_FROM(i, from, n)
#define MAX_ALONG_FROM(i, from, n, x) \
    for (int gm_once = 1; gm_once; gm_once = 0, extreme_of_lanes(GM, 1, x)) LANES_FROM(i, from, n)

#define SUM_ALONG_FROM(i, from, n, ...)                                                                                          \
    for (wide * gm_into[] = {__VA_ARGS__}, **gm_go = gm_into; gm_go; gm_go = 0)                                                  \
        for (GmSum gm_sum = sum_begin(GM, n, (int)(sizeof gm_into / sizeof *gm_into), gm_into);                                  \
             sum_next(GM, &gm_sum, (int)(sizeof gm_into / sizeof *gm_into), gm_into, #__VA_ARGS__, #i " < " #n);)                \
            for (long gm_0 = (from), i = gm_0 + gm_sum.first, gm_to = gm_0 + gm_sum.last, gm_begun = 0; !gm_begun; gm_begun = 1) \
    GM_ANY_ORDER for (; i < gm_to; i++)

#define SUM_ALONG2(i, n, j, m, ...) SUM_ALONG_FROM(i, 0, n, __VA_ARGS__) GM_ANY_ORDER for (long j = 0; j < (m); j++)

// Elements, each by one lane.
#define PER_ELEMENT(iterations, count)     ((iterations) / ((count) > 0 ? (count) : 1))
#define EACH_ELEMENT(k, count, iterations) LANES (k, count)
#define SUM_CREW_FROM(i, from, n, ...)     for (long gm_0 = (from), i = gm_0, gm_to = gm_0 + (n); i < gm_to; i++)
#define ELEMENT_LANE

// Sums over rows into places: every lane goes through all rows and adds to its own places.
#define SUM_INTO0(i, from, n, ...) for (long gm_0 = (from), i = gm_0, gm_i = gm_0 + (n); i < gm_i; i++)
#define SUM_INTO1                  SUM_INTO0
#define SUM_INTO2                  SUM_INTO0
#define SUM_INTO3                  SUM_INTO0
#define SUM_INTO4                  SUM_INTO0
#define SUM_KEYED0                 SUM_INTO0
#define SUM_KEYED1                 SUM_INTO0
#define SUM_KEYED2                 SUM_INTO0
#define SUM_KEYED3                 SUM_INTO0
#define SUM_KEYED4                 SUM_INTO0
#define PLACES_FROM(j, at, n)      LANES_FROM(j, at, n)
#define PLACES2(j, n, k, m)        LANES2 (j, n, k, m)
#define OWN(key)                   (GM->lanes == 1 || (long)(key) % GM->lanes == GM->lane)

// Counts at places that rows pick: whole numbers are exact, whatever the order.
#define COUNT_ROWS_FROM(i, from, n) \
    for (long gm_n = (n), gm_0 = (from), i = gm_0 + gm_part(gm_n, GM->lane), gm_to = gm_0 + gm_part(gm_n, GM->lane + 1); i < gm_to; i++)
#define COUNT(place, x) count_at(GM, &(place), x)

GM_HOST_ONLY void count_at(const GmContext *c, wide *place, wide x)
{
    if (c->lanes == 1) *place += x;
    else {
#pragma omp atomic
        *place += x;
    }
}

// Rows of tables of weights, each by one lane.
#define EACH_WEIGHTS(row, n) LANES (row, n)
#define WEIGHTS_TURNS(v, n)  for (long v = 0, gm_v = (n); v < gm_v; v++)
#define WEIGHTS_TOP(top)     (top)

// Simplexes, each by one lane.
#define EACH_SIMPLEX(e, rows, n)                          LANES (e, rows)
#define DRAW_SIMPLEX(routine, var, e, a, n, x)            routine##_row(at, var, e, a, n, x, NULL)
#define DRAW_SIMPLEX_LOGS(routine, var, e, a, n, x, logs) routine##_row(at, var, e, a, n, x, logs)
#define EACH_MATRIX(e, count, n)                          LANES (e, count)
#define CREW(routine, ...)                                routine(__VA_ARGS__)
#define CREW_SCRATCH(n)                                   SCRATCH(n)
#define CREW_RELEASE(p)                                   RELEASE(p)

// Sums by group into places: each group by one lane, row by row.
#define EACH_SEGMENT(groups, n, first, totals)                           \
    for (long gm_k = GM->lane, gm_r; gm_k < (groups); gm_k += GM->lanes) \
        for (const int *gm_of = (first) + gm_k; gm_of; gm_of = 0)
#define GM_SEGMENT_ROWS(i, rows) for (long i = (gm_r = gm_of[0]); gm_r < gm_of[1] && (i = (rows)[gm_r], (void)i, 1); gm_r++)
#define GM_ALL_PLACES(j, n) \
    for (long j = 0, gm_to = (n), gm_begun = 0; !gm_begun; gm_begun = 1) GM_ANY_ORDER for (; j < gm_to; j++)
#define SEGMENT_PLACES1(i, rows, j, n)       GM_SEGMENT_ROWS(i, rows) GM_ALL_PLACES(j, n)
#define SEGMENT_PLACES2(i, rows, j, n, k, m) GM_SEGMENT_ROWS(i, rows) for (long j = 0; j < (n); j++) GM_ALL_PLACES(k, m)
#define ADD_TOTAL(q, place, x)               ((place) += (x))

// The same by keys that were drawn: every lane goes through all rows, in their order, and adds those whose keys are its own.
#define ORDER_KEYED(i, n, groups, key, keys, first, rows, spare) ((void)0)
#define EACH_KEYED(groups, n, first, totals)                     for (int gm_once = 1; gm_once; gm_once = 0)
#define KEYED_PLACES0(i, n, key, rows)          \
    for (long i = 0, gm_n = (n); i < gm_n; i++) \
        if (OWN(key))
#define KEYED_PLACES1(i, n, key, rows, j, m)       KEYED_PLACES0(i, n, key, rows) GM_ALL_PLACES(j, m)
#define KEYED_PLACES2(i, n, key, rows, j, m, k, l) KEYED_PLACES0(i, n, key, rows) for (long j = 0; j < (m); j++) GM_ALL_PLACES(k, l)

// Sums by group: each group by one lane, its rows in order.
#define EACH_GROUP(k, groups, n)         for (long k = GM->lane; k < (groups); k += GM->lanes)
#define SUM_ROWS(i, k, first, rows, ...) for (long gm_r = (first)[k], i; gm_r < (first)[(k) + 1] && (i = (rows)[gm_r], (void)i, 1); gm_r++)
#define SUM_SORTED(r, k, first, ...)     for (long r = (first)[k]; r < (first)[(k) + 1]; r++)
#define GROUP_LANE

// ---- faults and checks ----

#define COLOUR                           (GM->run->colour)
#define WARMING_UP                       (GM->run->sweep < GM->run->warmup)
#define SWEEP                            (GM->run->sweep)
#define FAULT(name, element, what)       gm_fault(GM->run, GM->chain, name, element, what)
#define FAULT_AT(name, numbers, n, says) gm_fault_at(GM->run, GM->chain, name, says, n, numbers)
#define RESULT(v)                                 \
    do {                                          \
        if (GM->lane == 0) GM->run->result = (v); \
    } while (0)
// Draws without data leave elements as they are that the run keeps.
#define IS_DRAWN(variable)             (!gm_is_kept(GM->run, variable, -1))
#define UNLESS_KEPT(variable, element) if (!gm_is_kept(GM->run, variable, element))
#define CHECKING  (GM->run->checking)
#define FOR_MODES (GM->run->seeking)
#define RATIO(...)                                                                   \
    do {                                                                             \
        const wide gm_t[] = {__VA_ARGS__};                                           \
        gm_ratio_terms(GM->run, GM->chain, gm_t, (int)(sizeof gm_t / sizeof *gm_t)); \
    } while (0)
#define NO_RATIO() gm_ratio(GM->run, GM->chain, NAN, 0)
#define SAVE_OLD(x, n)                                            \
    const wide *OLD = CHECKING ? gm_save(x, n) : (const wide *)0; \
    (void)OLD
#define SAVE_OLD_LOGS(x, logs, n)                                            \
    const wide *OLD = CHECKING ? gm_save_logs(x, logs, n) : (const wide *)0; \
    (void)OLD
#define NEW_WEIGHTS(w, n)                   gm_save(w, n)
#define CHECK_WEIGHT(k)                     gm_saved()[k]
#define RATIO_QUADRATIC_BEFORE(n, J, h, x)  gm_quadratic_before(n, J, h, x)
#define RATIO_QUADRATIC_AFTER(x)            gm_ratio_quadratic(GM->run, GM->chain, gm_quadratic_after(x))
#define MARGINAL_NORMALS(count, n, J, h, x) marginal_normals(GM, count, n, J, h, x)

// v: log q at the new value less log q at the old; size: the sum of the absolute values of what was added up for it, which bounds its
// rounding.
GM_HOST_ONLY void gm_ratio(const GmRun *run, int chain, double v, double size)
{
    if (!run->checking) return;
    run->check_log_q[chain] += v;
    if (run->check_size) run->check_size[chain] += size;
    if (run->check_ratios && v == v) run->check_ratios[chain]++;
}

GM_HOST_ONLY void gm_ratio_terms(const GmRun *run, int chain, const wide *term, int n)
{
    double v = 0, size = 0;
    for (int i = 0; i < n; i++) {
        v += term[i];
        size += fabs(term[i]);
    }
    gm_ratio(run, chain, v, size);
}

GM_HOST_ONLY void gm_ratio_quadratic(const GmRun *run, int chain, double v) { gm_ratio(run, chain, v, gm_quadratic_size()); }

// Joint normals of a plate while scales are being drawn (scales.h): nothing is drawn, and what is left of their densities when they are
// integrated out is added to the result. 0: they are to be drawn.
GM_HOST_ONLY int marginal_normals(GmContext *GM, long count, long n, double *J, double *h, const double *x)
{
    wide sum = 0, *const into[] = {&sum};
    if (!GM->run->marginal) return 0;
    if (GM->run->marginal == GM_GIVEN_X) return 1;
    for (GmSum part = sum_begin(GM, count, 1, into); sum_next(GM, &part, 1, into, "sum", "groups");)
        sum += gm_marginal_each(part.last - part.first, n, J + part.first * n * n, h + part.first * n, x + part.first * n);
    if (GM->lane == 0) GM->run->result += sum;
    return 1;
}

GM_HOST_ONLY double normal_draw(Stream *g, long n, double *J, const double *h, double *x)
{
    return (double)normal_precision_shift(g, n, J, h, x);
}

#include "watch.h"

#endif
