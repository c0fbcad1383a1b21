// ode.c -- solvers of differential equations (device/ode.h), with the derivatives of solutions by what goes into them.
//
// What is integrated is one vector, the state and its derivatives, of each component those by all inputs: Y = (y, S). CVODES has a vector
// for each input. Steps are chosen by the error of the state alone. So a solution is the same number for number, whether its derivatives
// are asked for or not. With the steps fixed they are the derivatives of the numbers that the method gives, errors of the method included
// (internal numerical differentiation, Bock 1981). So HMC sees one density.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../backends/library.h"
#include "../device/ode.h"
#include "messages.h"

// Between two times of the solution at most MOST_STEPS. An explicit method on a stiff equation keeps its steps so short that it will not
// get there: this is taken for certain once TRIED steps in a row were such that MOST_STEPS like them do not reach the next time. A sampler
// that looks far out would wait for seconds, often, otherwise.
enum { MOST_STEPS = 1000000, TRIED = 1000 };

static pthread_mutex_t noting = PTHREAD_MUTEX_INITIALIZER;
static char failure[200];

const char *gm_ode_failure(void) { return failure[0] ? failure : NULL; }

static bool fail(const char *what, double t)
{
    pthread_mutex_lock(&noting);
    snprintf(failure, sizeof failure, "%s at time %g", what, t);
    pthread_mutex_unlock(&noting);
    return false;
}

static double *room(long n)
{
    double *x = calloc((size_t)(n > 0 ? n : 1), sizeof *x);
    if (!x) {
        gm_error("no memory is left for a differential equation");
        exit(GM_EXIT_USAGE);
    }
    return x;
}

void gm_ode_begin(Ode *o, int checking)
{
    const double small = 1e-13;
    if (checking && o->relative > small) o->relative = small;
    if (checking && o->absolute > small) o->absolute = small;
    o->input = room(o->ninput + o->n + o->times);
    o->start = o->input + o->ninput;
    o->time = o->start + o->n;
}

void gm_ode_end(Ode *o) { free(o->input); }

static bool all_finite(const double *x, long n)
{
    for (long i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

// ---- the equation and its derivatives ----

typedef struct Slopes {
    const Ode *o;
    long columns;  // 0: the equation alone
    double *by_state, *by_input;
} Slopes;

// dS[c] = J S[c] + df/dp[c], S in columns of n.
static void differentiate(const Slopes *w, double t, const double *y, double *const *S, double *const *dS)
{
    const long n = w->o->n, by = w->o->by;
    memset(w->by_state, 0, sizeof *w->by_state * (size_t)(n * n));
    memset(w->by_input, 0, sizeof *w->by_input * (size_t)(n * by));
    if (w->o->slopes) w->o->slopes(w->o, t, y, w->by_state, w->by_input);
    for (long c = 0; c < w->columns; c++)
        for (long i = 0; i < n; i++) {
            double sum = c < by ? w->by_input[i * by + c] : 0;
            for (long j = 0; j < n; j++) sum += w->by_state[i * n + j] * S[c][j];
            dS[c][i] = sum;
        }
}

// ---- explicit Runge-Kutta ----

// Loops over the state and its derivatives, which take nearly all of the time, are the same operations in the same order for vectors of any
// width.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("avx2", "default"), optimize("O3", "fp-contract=off")))
#else
#define WIDE
#endif

// y += a * x
WIDE static void add_to(long n, double *restrict y, double a, const double *restrict x)
{
    for (long i = 0; i < n; i++) y[i] += a * x[i];
}

// y = x + h * (a[0] k[0] + ... + a[s - 1] k[s - 1]), s up to 6; of 7 without x.
WIDE static void combine(long n, double *restrict y, const double *restrict x, double h, int s, const double *a, double *const *k)
{
    const double a0 = a[0], a1 = s > 1 ? a[1] : 0, a2 = s > 2 ? a[2] : 0, a3 = s > 3 ? a[3] : 0, a4 = s > 4 ? a[4] : 0,
                 a5 = s > 5 ? a[5] : 0, a6 = s > 6 ? a[6] : 0;
    const double *const k0 = k[0], *const k1 = k[1], *const k2 = k[2], *const k3 = k[3], *const k4 = k[4], *const k5 = k[5],
                        *const k6 = k[6];
    switch (s) {
    case 1:
        for (long i = 0; i < n; i++) y[i] = x[i] + h * (a0 * k0[i]);
        break;
    case 2:
        for (long i = 0; i < n; i++) y[i] = x[i] + h * (a0 * k0[i] + a1 * k1[i]);
        break;
    case 3:
        for (long i = 0; i < n; i++) y[i] = x[i] + h * (a0 * k0[i] + a1 * k1[i] + a2 * k2[i]);
        break;
    case 4:
        for (long i = 0; i < n; i++) y[i] = x[i] + h * (a0 * k0[i] + a1 * k1[i] + a2 * k2[i] + a3 * k3[i]);
        break;
    case 5:
        for (long i = 0; i < n; i++) y[i] = x[i] + h * (a0 * k0[i] + a1 * k1[i] + a2 * k2[i] + a3 * k3[i] + a4 * k4[i]);
        break;
    case 6:
        for (long i = 0; i < n; i++) y[i] = x[i] + h * (a0 * k0[i] + a1 * k1[i] + a2 * k2[i] + a3 * k3[i] + a4 * k4[i] + a5 * k5[i]);
        break;
    case 7:
        for (long i = 0; i < n; i++) y[i] = h * (a0 * k0[i] + a1 * k1[i] + a2 * k2[i] + a3 * k3[i] + a4 * k4[i] + a5 * k5[i] + a6 * k6[i]);
        break;
    }
}

typedef struct Rk {
    Slopes w;
} Rk;

static void evaluate(Rk *r, double t, double *Y, double *dY)
{
    const Slopes *w = &r->w;
    const long n = w->o->n, by = w->o->by, columns = w->columns;
    w->o->right_side(w->o, t, Y, dY);
    if (!columns) return;
    memset(w->by_state, 0, sizeof *w->by_state * (size_t)(n * n));
    memset(w->by_input, 0, sizeof *w->by_input * (size_t)(n * by));
    if (w->o->slopes) w->o->slopes(w->o, t, Y, w->by_state, w->by_input);
    for (long i = 0; i < n; i++) {
        double *const to = dY + n + i * columns;
        memcpy(to, w->by_input + i * by, sizeof *to * (size_t)by);
        memset(to + by, 0, sizeof *to * (size_t)(columns - by));
        for (long j = 0; j < n; j++)  // of compartments, each reads few
            if (w->by_state[i * n + j] != 0) add_to(columns, to, w->by_state[i * n + j], Y + n + j * columns);
    }
}

// The root mean square of x by what the tolerances allow at y and at z.
static double size_of(const Ode *o, const double *x, const double *y, const double *z)
{
    double sum = 0;
    for (long i = 0; i < o->n; i++) {
        const double a = fabs(y[i]), b = fabs(z[i]), scaled = x[i] / (o->absolute + o->relative * (a > b ? a : b));
        sum += scaled * scaled;
    }
    return sqrt(sum / (double)o->n);
}

// A first step after Hairer, Norsett and Wanner 1993, section II.4, from the slopes k1 at t; `trial` and `k2` are work.
static double first_step(Rk *r, double t, double end, double *Y, const double *k1, double *trial, double *k2)
{
    const Ode *o = r->w.o;
    const double d0 = size_of(o, Y, Y, Y), d1 = size_of(o, k1, Y, Y);
    double h = d0 < 1e-5 || d1 < 1e-5 ? 1e-6 : 0.01 * d0 / d1;
    if (h > end - t) h = end - t;
    for (long i = 0; i < o->n; i++) trial[i] = Y[i] + h * k1[i];
    o->right_side(o, t + h, trial, k2);
    for (long i = 0; i < o->n; i++) trial[i] = k2[i] - k1[i];
    const double d2 = size_of(o, trial, Y, Y) / h, most = d1 > d2 ? d1 : d2;
    const double h1 = most <= 1e-15 ? fmax(1e-6, h * 1e-3) : pow(0.01 / most, 0.2);
    const double best = fmin(100 * h, h1);
    return isfinite(best) && best > 0 ? fmin(best, end - t) : h;
}

// Dormand and Prince's method of order 5, its error estimate, and its interpolation of order 4.
static const double rk_c[7] = {0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1};
static const double rk_a[7][6] = {{0},
                                  {1.0 / 5},
                                  {3.0 / 40, 9.0 / 40},
                                  {44.0 / 45, -56.0 / 15, 32.0 / 9},
                                  {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
                                  {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
                                  {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}};
static const double rk_e[7] = {71.0 / 57600, 0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200, 22.0 / 525, -1.0 / 40};
static const double rk_d[7] = {-12715105075.0 / 11282082432.0,  0,
                               87487479700.0 / 32700410799.0,   -10690763975.0 / 1880347072.0,
                               701980252875.0 / 199316789632.0, -1453857185.0 / 822651844.0,
                               69997945.0 / 29380423.0};

// Where the solver is: Y at t, with the columns of slopes; `next` after a step of h, by the derivatives k.
typedef struct Stepping {
    const Ode *o;
    Rk r;
    long n, columns, size;
    double *Y, *next, *trial, *bent, *k[7];
    double t, h;
    long done;  // times that are passed
} Stepping;

static void keep_solution(Stepping *s, const double *y, double *z, double *slopes)
{
    memcpy(z + s->done * s->n, y, sizeof *z * (size_t)s->n);
    if (s->columns) memcpy(slopes + s->done * s->n * s->columns, y + s->n, sizeof *slopes * (size_t)(s->n * s->columns));
}

// A step that is tried; gives: its error in units of the tolerance.
static double try_step(Stepping *s)
{
    for (int i = 1; i < 7; i++) {
        double *const at = i == 6 ? s->next : s->trial;
        combine(s->size, at, s->Y, s->h, i, rk_a[i], s->k);
        evaluate(&s->r, s->t + rk_c[i] * s->h, at, s->k[i]);
    }
    combine(s->n, s->trial, NULL, s->h, 7, rk_e, s->k);
    return size_of(s->o, s->trial, s->Y, s->next);
}

// The solution at the times that the step from t to `to` passes.
static void interpolate(Stepping *s, double to, double *z, double *slopes)
{
    const Ode *o = s->o;
    const double h = s->h, *const Y = s->Y, *const next = s->next, *const bent = s->bent, *const k0 = s->k[0], *const k6 = s->k[6];
    double *const trial = s->trial;
    combine(s->size, s->bent, NULL, h, 7, rk_d, s->k);
    for (; s->done < o->times && o->time[s->done] <= to; s->done++) {
        const double u = (o->time[s->done] - s->t) / h, v = 1 - u;
        for (long i = 0; i < s->size; i++) {
            const double rise = next[i] - Y[i], b = h * k0[i] - rise, m = rise - h * k6[i] - b;
            trial[i] = o->time[s->done] == to ? next[i] : Y[i] + u * (rise + v * (b + u * (m + v * bent[i])));
        }
        keep_solution(s, trial, z, slopes);
    }
}

// From the start to the last time; false: the solver gave up, and has said why.
static bool step_to_end(Stepping *s, double end, double *z, double *slopes)
{
    const Ode *o = s->o;
    double before = 1e-4;
    bool rejected = false;
    long steps = 0, hopeless = 0;
    while (s->done < o->times) {
        hopeless = o->time[s->done] - s->t > MOST_STEPS * s->h ? hopeless + 1 : 0;
        if (++steps > MOST_STEPS || hopeless > TRIED) return fail("a differential equation takes too many steps", s->t);
        if (!(s->h > 1e-14 * fmax(fabs(s->t), 1e-14 * (end - o->from))))
            return fail("steps of a differential equation become too small", s->t);
        if (s->t + 1.01 * s->h >= end) s->h = end - s->t;
        const double error = try_step(s);
        if (!(error <= 1)) {
            s->h *= isfinite(error) ? fmax(0.2, 0.9 * pow(error, -0.2)) : 0.1;
            rejected = true;
            continue;
        }
        const bool last = s->t + s->h >= end;
        const double to = last ? end : s->t + s->h;
        if (o->time[s->done] <= to) {
            interpolate(s, to, z, slopes);
            steps = 0;
        }
        const double grow = 0.9 * pow(fmax(error, 1e-10), -0.17) * pow(before, 0.04);
        before = fmax(error, 1e-4);
        s->t = to;
        s->h *= fmax(0.2, fmin(rejected ? 1 : 10, grow));
        rejected = false;
        double *const swap = s->Y;
        s->Y = s->next;
        s->next = swap;
        memcpy(s->k[0], s->k[6], sizeof *s->Y * (size_t)s->size);
    }
    return true;
}

static bool runge_kutta(const Ode *o, double *z, double *slopes)
{
    const long n = o->n, columns = slopes ? o->columns : 0, size = n * (1 + columns);
    double *const work = room(11 * size + n * n + n * o->by);
    Stepping s = {.o = o,
                  .r = {{o, columns, work + 11 * size, work + 11 * size + n * n}},
                  .n = n,
                  .columns = columns,
                  .size = size,
                  .Y = work,
                  .next = work + size,
                  .trial = work + 2 * size,
                  .bent = work + 3 * size,
                  .t = o->from};
    for (int i = 0; i < 7; i++) s.k[i] = work + (4 + i) * size;
    memcpy(s.Y, o->start, sizeof *s.Y * (size_t)n);
    for (long j = 0; j < columns - o->by; j++) s.Y[n + j * columns + o->by + j] = 1;
    const double end = o->times ? o->time[o->times - 1] : s.t;
    evaluate(&s.r, s.t, s.Y, s.k[0]);
    bool good = (all_finite(s.Y, n) && all_finite(s.k[0], n)) || fail("the right side of a differential equation is not finite", s.t);
    s.h = good && end > s.t ? first_step(&s.r, s.t, end, s.Y, s.k[0], s.trial, s.k[1]) : 0;
    for (; good && s.done < o->times && o->time[s.done] <= s.t; s.done++) keep_solution(&s, s.Y, z, slopes);  // at the start
    good = good && step_to_end(&s, end, z, slopes);
    free(work);
    return good;
}

// ---- backward differentiation, by CVODES ----

typedef void *Vector;  // N_Vector, SUNMatrix and SUNLinearSolver are pointers that CVODES makes and takes
typedef int Flow(double t, Vector y, Vector slope, void *with);
typedef int Jacobian(double t, Vector y, Vector slope, Vector J, void *with, Vector work1, Vector work2, Vector work3);
typedef int Sensitivities(int columns, double t, Vector y, Vector slope, Vector *S, Vector *dS, void *with, Vector work1, Vector work2);

// The functions of SUNDIALS 6 and 7 that are called. Reals are doubles, indices 64 bits: how the library is built unless somebody asks for
// something else.
#define CVODES(X)                                                                           \
    X(int, SUNContext_Create, (void *communicator, void **context))                         \
    X(int, SUNContext_Free, (void **context))                                               \
    X(Vector, N_VNew_Serial, (long n, void *context))                                       \
    X(Vector *, N_VCloneVectorArray, (int count, Vector like))                              \
    X(void, N_VDestroyVectorArray, (Vector * all, int count))                               \
    X(double *, N_VGetArrayPointer, (Vector v))                                             \
    X(void, N_VDestroy, (Vector v))                                                         \
    X(Vector, SUNDenseMatrix, (long rows, long columns, void *context))                     \
    X(double *, SUNDenseMatrix_Data, (Vector A))                                            \
    X(void, SUNMatDestroy, (Vector A))                                                      \
    X(Vector, SUNLinSol_Dense, (Vector y, Vector A, void *context))                         \
    X(int, SUNLinSolFree, (Vector solver))                                                  \
    X(void *, CVodeCreate, (int method, void *context))                                     \
    X(int, CVodeInit, (void *cv, Flow *f, double t, Vector y))                              \
    X(int, CVodeSStolerances, (void *cv, double relative, double absolute))                 \
    X(int, CVodeSetUserData, (void *cv, void *with))                                        \
    X(int, CVodeSetMaxNumSteps, (void *cv, long most))                                      \
    X(int, CVodeSetLinearSolver, (void *cv, Vector solver, Vector A))                       \
    X(int, CVodeSetJacFn, (void *cv, Jacobian *f))                                          \
    X(int, CVodeSensInit, (void *cv, int columns, int method, Sensitivities *f, Vector *S)) \
    X(int, CVodeSensSStolerances, (void *cv, double relative, double *absolute))            \
    X(int, CVodeSetSensErrCon, (void *cv, int controlled))                                  \
    X(int, CVode, (void *cv, double to, Vector y, double *t, int task))                     \
    X(int, CVodeGetSens, (void *cv, double *t, Vector *S))                                  \
    X(void, CVodeFree, (void **cv))

static struct {
#define X(type, name, args) type(*name) args;
    CVODES(X)
#undef X
    int (*CVodeSetErrFile)(void *cv, FILE *to);         // SUNDIALS 6
    int (*SUNContext_ClearErrHandlers)(void *context);  // SUNDIALS 7
    bool there;
    char why[300];
} cvodes;

static void find_cvodes(void)
{
    static const char *const sonames[] = {"libsundials_cvodes.so.6", "libsundials_cvodes.so.7", NULL}, *const core[] = {
                                                                                                           "libsundials_core.so.7", NULL};
    char where[200] = "";
    void *library = gm_library_open(sonames, core, "GM_CVODES", "", where, sizeof where);
    bool all = library != NULL;
#define X(type, name, args) all = all && gm_library_symbol(library, #name, &cvodes.name);
    CVODES(X)
#undef X
    cvodes.there = all;
    if (all && !gm_library_symbol(library, "CVodeSetErrFile", &cvodes.CVodeSetErrFile)) cvodes.CVodeSetErrFile = NULL;
    if (all && !gm_library_symbol(library, "SUNContext_ClearErrHandlers", &cvodes.SUNContext_ClearErrHandlers))
        cvodes.SUNContext_ClearErrHandlers = NULL;
    if (!all)
        snprintf(cvodes.why, sizeof cvodes.why, "ode_bdf needs the library CVODES of SUNDIALS: sudo apt-get install libsundials-cvodes6");
}

typedef struct Bdf {
    Slopes w;
    double **from, **to;
} Bdf;

static int bdf_flow(double t, Vector y, Vector slope, void *with)
{
    const Bdf *b = with;
    double *const to = cvodes.N_VGetArrayPointer(slope);
    b->w.o->right_side(b->w.o, t, cvodes.N_VGetArrayPointer(y), to);
    return all_finite(to, b->w.o->n) ? 0 : 1;  // a shorter step may do
}

static int bdf_jacobian(double t, Vector y, Vector slope, Vector J, void *with, Vector work1, Vector work2, Vector work3)
{
    const Bdf *b = with;
    const long n = b->w.o->n;
    double *const to = cvodes.SUNDenseMatrix_Data(J);
    (void)slope;
    (void)work1;
    (void)work2;
    (void)work3;
    memset(b->w.by_state, 0, sizeof *b->w.by_state * (size_t)(n * n));
    memset(b->w.by_input, 0, sizeof *b->w.by_input * (size_t)(n * b->w.o->by));
    b->w.o->slopes(b->w.o, t, cvodes.N_VGetArrayPointer(y), b->w.by_state, b->w.by_input);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) to[j * n + i] = b->w.by_state[i * n + j];  // by columns
    return all_finite(to, n * n) ? 0 : 1;
}

static int bdf_slopes(int columns, double t, Vector y, Vector slope, Vector *S, Vector *dS, void *with, Vector work1, Vector work2)
{
    const Bdf *b = with;
    (void)slope;
    (void)work1;
    (void)work2;
    for (int c = 0; c < columns; c++) {
        b->from[c] = cvodes.N_VGetArrayPointer(S[c]);
        b->to[c] = cvodes.N_VGetArrayPointer(dS[c]);
    }
    differentiate(&b->w, t, cvodes.N_VGetArrayPointer(y), b->from, b->to);
    for (int c = 0; c < columns; c++)
        if (!all_finite(b->to[c], b->w.o->n)) return 1;
    return 0;
}

// The solution at the i-th time, and its slopes, if these are asked for.
static void keep_backward(const Ode *o, long i, const double *at, Vector *S, double *z, double *slopes)
{
    const long n = o->n, columns = slopes ? o->columns : 0;
    memcpy(z + i * n, at, sizeof *z * (size_t)n);
    for (long c = 0; c < columns; c++) {
        const double *const s = cvodes.N_VGetArrayPointer(S[c]);
        for (long k = 0; k < n; k++) slopes[(i * n + k) * columns + c] = s[k];
    }
}

static bool backward(const Ode *o, double *z, double *slopes)
{
    enum { BDF = 2, NORMAL = 1, STAGGERED = 2 };
    const long n = o->n, columns = slopes ? o->columns : 0;
    double *const work = room(n * n + n * o->by + columns + 1), *const allowed = work + n * n + n * o->by;
    double **const column = malloc(sizeof *column * (size_t)(2 * columns + 1));
    if (!column) abort();
    Bdf b = {{o, columns, work, work + n * n}, column, column + columns};
    void *context = NULL, *cv = NULL;
    if (cvodes.SUNContext_Create(NULL, &context)) abort();
    if (cvodes.SUNContext_ClearErrHandlers) cvodes.SUNContext_ClearErrHandlers(context);
    Vector y = cvodes.N_VNew_Serial(n, context), A = cvodes.SUNDenseMatrix(n, n, context), solver = cvodes.SUNLinSol_Dense(y, A, context),
           *S = NULL;
    double *const at = cvodes.N_VGetArrayPointer(y);
    memcpy(at, o->start, sizeof *at * (size_t)n);
    cv = cvodes.CVodeCreate(BDF, context);
    if (!cv) abort();
    if (cvodes.CVodeSetErrFile) cvodes.CVodeSetErrFile(cv, NULL);
    bool good = !cvodes.CVodeInit(cv, bdf_flow, o->from, y) && !cvodes.CVodeSStolerances(cv, o->relative, o->absolute) &&
                !cvodes.CVodeSetUserData(cv, &b) && !cvodes.CVodeSetMaxNumSteps(cv, MOST_STEPS) &&
                !cvodes.CVodeSetLinearSolver(cv, solver, A) && (!o->slopes || !cvodes.CVodeSetJacFn(cv, bdf_jacobian));
    if (columns) {
        S = cvodes.N_VCloneVectorArray((int)columns, y);
        for (long c = 0; c < columns; c++) {
            double *const s = cvodes.N_VGetArrayPointer(S[c]);
            memset(s, 0, sizeof *s * (size_t)n);
            if (c >= o->by) s[c - o->by] = 1;
            allowed[c] = o->absolute;
        }
        good = good && !cvodes.CVodeSensInit(cv, (int)columns, STAGGERED, bdf_slopes, S) &&
               !cvodes.CVodeSensSStolerances(cv, o->relative, allowed) && !cvodes.CVodeSetSensErrCon(cv, 0);
    }
    double t = o->from;
    good = good || fail("CVODES refuses a differential equation", t);
    for (long i = 0; i < o->times && good; i++) {
        if (o->time[i] > t || (i && o->time[i] > o->time[i - 1])) {
            if (cvodes.CVode(cv, o->time[i], y, &t, NORMAL) < 0) {
                good = fail("CVODES cannot go on with a differential equation", t);
                break;
            }
            if (columns && cvodes.CVodeGetSens(cv, &t, S)) {
                good = fail("CVODES has no derivatives of a solution", t);
                break;
            }
        }
        keep_backward(o, i, at, S, z, columns ? slopes : NULL);
    }
    cvodes.CVodeFree(&cv);
    if (S) cvodes.N_VDestroyVectorArray(S, (int)columns);
    cvodes.SUNLinSolFree(solver);
    cvodes.SUNMatDestroy(A);
    cvodes.N_VDestroy(y);
    cvodes.SUNContext_Free(&context);
    free(column);
    free(work);
    return good;
}

// ---- both ----

const char *gm_ode_solve(const Ode *o, double *z, double *slopes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!isfinite(o->from) || !all_finite(o->time, o->times)) return "a time of its differential equation is not finite";
    for (long i = 0; i < o->times; i++)
        if (o->time[i] < (i ? o->time[i - 1] : o->from))
            return i ? "the times of its differential equation decrease"
                     : "the first time of its differential equation lies before that of the start";
    if (!(o->relative > 0 && o->absolute > 0)) return "a tolerance of its differential equation is not above 0";
    if (o->stiff) {
        pthread_once(&once, find_cvodes);
        if (!cvodes.there) return cvodes.why;
    }
    const bool slope = slopes && o->columns > 0;
    bool good = all_finite(o->start, o->n) && all_finite(o->input, o->ninput);
    if (!good) fail("an input of a differential equation is not finite", o->from);
    good = good && (o->n == 0 || (o->stiff ? backward : runge_kutta)(o, z, slope ? slopes : NULL));
    good = good && (all_finite(z, o->n * o->times) || fail("the solution of a differential equation is not finite", o->from));
    for (long i = 0; i < o->n * o->times && !good; i++) z[i] = NAN;
    for (long i = 0; i < o->n * o->times * o->columns && !good && slope; i++) slopes[i] = NAN;
    return NULL;
}
