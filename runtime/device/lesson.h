// lesson.h -- what a program by `gmc --lesson` includes: one chain of Gibbs updates in plain C.
//
// clang-format off
//   INT(J, lower, upper); REAL(s, lower, upper);         d->J, d->s are read from the files, and lie between the bounds
//   REAL_ARRAY(y, lower, upper, n, ..)                   d->y[n, ..], likewise
//   SIZE(J, lower, upper, y, k, rank)                    d->J, or else the k-th extent of y
//   INT_OR(K, 10, lower, upper)                          d->K, or else its default 10
//   START(mu, lower, upper)                              s->mu gets its starting value; it is a column of the draws
//   START_ARRAY(theta, lower, upper, n, ..)              s->theta[n, ..], likewise; START_LATENT: no column
//   INT_THAT, REAL_THAT, START_THAT(constraint, ..)      the same of simplexes, covariance matrices, ...
//   ROOM(a, n, ..); ZERO(a, n)                           memory for an array; all of it becomes zero
//   REFUSE(name, says, i, ..)                            data are not what the model needs: the message, with numbers for its #
//   SHOW(z); SHOW_ARRAY(z, n, ..)                        a column of the draws, computed after each sweep
//   while (next_sweep()) { .. }                          sweeps: each after the warm-up prints a draw
//   x = DRAW(mu, k, NORMAL(mean, precision))             a draw, by the stream of random numbers of element k of mu
//   draw_joint_normal(VAR_b, "b", n, J, h, b)            b[n] ~ normal with precision J[n, n] and shift h[n], which are spent
//   draw_arrow(.., n, J, h, x, m, D, E, k, u)            the same of (x[n], u[m]); D[m]: precision of u, E[m, n]: with x, k[m]: its shift
// clang-format on
//
// The samplers, streams and starting values are those of all programs by gmc: for a seed the draws are the same to within rounding. What
// reads data and writes draws is in runtime/host/lesson.c. A draw that is not a finite number ends the program.
// Test: tests/emit/lesson.test.
#ifndef GM_LESSON_H
#define GM_LESSON_H
#define GM_LESSON
#include "gm.h"
#include "kernels.h"
#include "../host/lesson.h"

static Sweep at;                                 // where the chain is
static GmContext gm_lesson_lane = {.lanes = 1};  // one lane does everything
static GmContext *const gm_context = &gm_lesson_lane;

#undef DRAW
#define DRAW(var, element, law) GM_LESSON_DRAW(var, element, law)
#define GM_LESSON_DRAW(var, element, name, ...) \
    gm_lesson_finite(name##_drawn((Stream[]){stream(at, VAR_##var, element)}, __VA_ARGS__), #var, element)

#undef CHECKING
#define CHECKING 0

#define GM_COUNT(...) (int)(sizeof((long[]){__VA_ARGS__}) / sizeof(long))
#define GM_EXTENTS(...) \
    GM_COUNT(__VA_ARGS__), (long[]) { __VA_ARGS__ }

// Data are not what the model needs: the message, whose # are the numbers.
#define REFUSE(name, says, ...) FAULT_AT(name, ((const long[]){__VA_ARGS__}), GM_COUNT(__VA_ARGS__), says)

#define begin(argc, argv) (gm_lesson_lane.run = gm_lesson_begin(argc, argv, &at))
#define next_sweep()      gm_lesson_next(&at)
#define end()             gm_lesson_end()

#define INT(name, lower, upper) d->name = *(int *)gm_lesson_data(#name, GM_INT, GM_ANY, lower, upper, 0, NULL)
#define SIZE(name, lower, upper, array, k, rank) \
    d->name = gm_lesson_size(#name, lower, upper, #array, sizeof *d->array == sizeof(int) ? GM_INT : GM_REAL, k, rank)
#define INT_OR(name, otherwise, lower, upper)  d->name = (int)gm_lesson_number(#name, GM_INT, otherwise, lower, upper)
#define REAL_OR(name, otherwise, lower, upper) d->name = gm_lesson_number(#name, GM_REAL, otherwise, lower, upper)
#define REAL(name, lower, upper)               d->name = *(double *)gm_lesson_data(#name, GM_REAL, GM_ANY, lower, upper, 0, NULL)
#define INT_ARRAY(name, lower, upper, ...)     INT_THAT(GM_ANY, name, lower, upper, __VA_ARGS__)
#define REAL_ARRAY(name, lower, upper, ...)    REAL_THAT(GM_ANY, name, lower, upper, __VA_ARGS__)
#define INT_THAT(constraint, name, lower, upper, ...) \
    d->name = gm_lesson_data(#name, GM_INT, constraint, lower, upper, GM_EXTENTS(__VA_ARGS__))
#define REAL_THAT(constraint, name, lower, upper, ...) \
    d->name = gm_lesson_data(#name, GM_REAL, constraint, lower, upper, GM_EXTENTS(__VA_ARGS__))

#define GM_TYPE_OF_LESSON(x) (sizeof(x) == sizeof(int) ? GM_INT : GM_WIDE)
#define GM_START(show, name, lower, upper) \
    gm_lesson_start(&s->name, GM_TYPE_OF_LESSON(s->name), GM_ANY, #name, VAR_##name - 1, show, lower, upper, 0, NULL)
#define GM_START_THAT(show, constraint, name, lower, upper, ...)                                                                        \
    gm_lesson_start(s->name = gm_lesson_room(sizeof *s->name, GM_EXTENTS(__VA_ARGS__)), GM_TYPE_OF_LESSON(*s->name), constraint, #name, \
                    VAR_##name - 1, show, lower, upper, GM_EXTENTS(__VA_ARGS__))
#define START(name, lower, upper)                              GM_START(1, name, lower, upper)
#define START_ARRAY(name, lower, upper, ...)                   GM_START_THAT(1, GM_ANY, name, lower, upper, __VA_ARGS__)
#define START_THAT(constraint, name, lower, upper, ...)        GM_START_THAT(1, constraint, name, lower, upper, __VA_ARGS__)
#define START_LATENT(name, lower, upper)                       GM_START(0, name, lower, upper)
#define START_LATENT_ARRAY(name, lower, upper, ...)            GM_START_THAT(0, GM_ANY, name, lower, upper, __VA_ARGS__)
#define START_LATENT_THAT(constraint, name, lower, upper, ...) GM_START_THAT(0, constraint, name, lower, upper, __VA_ARGS__)
#define ROOM(name, ...)                                        (s->name = gm_lesson_room(sizeof *s->name, GM_EXTENTS(__VA_ARGS__)))
#define ZERO(name, n)                                          memset(s->name, 0, sizeof *s->name *(size_t)(n))
#define SHOW(name)                                             gm_lesson_show(#name, &s->name, sizeof s->name, 0, NULL)
#define SHOW_ARRAY(name, ...)                                  gm_lesson_show(#name, s->name, sizeof *s->name, GM_EXTENTS(__VA_ARGS__))

static inline double gm_lesson_finite(double x, const char *name, long element)
{
    if (!is_finite(x)) gm_fault(gm_lesson_lane.run, 0, name, element, NOT_FINITE);
    return x;
}

// scale: what a scale of latents is drawn with; scale[2] becomes that scale. NULL: there is none.
static inline void draw_joint_normal_scaled(uint32_t var, const char *name, long n, double *J, double *h, double *x, double *scale)
{
    Stream g = stream(at, var, 0);
    GmScale move = {scale ? scale[0] : 0, scale ? scale[1] : 0, 1};
    if (gm_normal_dense(&g, n, J, h, x, scale ? &move : NULL)) gm_fault(gm_lesson_lane.run, 0, name, 0, NOT_POSITIVE_DEFINITE);
    if (scale) scale[2] = move.scale;
}

static inline void draw_joint_normal(uint32_t var, const char *name, long n, double *J, double *h, double *x)
{
    draw_joint_normal_scaled(var, name, n, J, h, x, NULL);
}

static inline void draw_arrow_scaled(uint32_t var, const char *name, long n, double *J, double *h, double *x, long m, double *D, double *E,
                                     double *k, double *u, double *scale)
{
    Stream g = stream(at, var, 0);
    GmScale move = {scale ? scale[0] : 0, scale ? scale[1] : 0, 1};
    if (gm_normal_arrow(&g, n, J, h, x, m, D, E, k, u, scale ? &move : NULL))
        gm_fault(gm_lesson_lane.run, 0, name, 0, NOT_POSITIVE_DEFINITE);
    if (scale) scale[2] = move.scale;
}

static inline void draw_arrow(uint32_t var, const char *name, long n, double *J, double *h, double *x, long m, double *D, double *E,
                              double *k, double *u)
{
    draw_arrow_scaled(var, name, n, J, h, x, m, D, E, k, u, NULL);
}
#endif
