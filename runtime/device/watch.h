// watch.h -- what the draw of one element was given, for `fit why` on a CPU: the routine, its arguments, its random numbers, the value.
//
//   normal_natural(&g, h_mu, q_mu)      draws as ever, and is noted if gm_watching is set and g is the stream that is looked for
//
// A stream is keyed by what is drawn, so that it alone says which element of which variable a draw is of. Included by kernels_cpu.h, after
// the samplers: what stands below concerns the program's own calls alone.
#ifndef GM_WATCH_H
#define GM_WATCH_H

// What is passed is a copy of the stream: one whose address goes elsewhere would not stay in registers.
#define WATCHED(sampler, said, g, ...)                                                                                       \
    __extension__({                                                                                                          \
        Stream *const gm_of = (g);                                                                                           \
        const __typeof__(sampler(gm_of, __VA_ARGS__)) gm_value = sampler(gm_of, __VA_ARGS__);                                \
        if (__builtin_expect(gm_watching, 0)) {                                                                              \
            const Stream gm_after = *gm_of;                                                                                  \
            const double gm_given[] = {__VA_ARGS__};                                                                         \
            gm_watch_draw(&gm_after, #sampler, said, gm_given, (int)(sizeof gm_given / sizeof *gm_given), (double)gm_value); \
        }                                                                                                                    \
        gm_value;                                                                                                            \
    })

// The routines by which families of the library draw a number (`draw` and `draw_truncated` in stdlib/distributions),
// but for truncated normals: rows draw latents by them, in loops that a look after each draw makes slower by a tenth.
#define normal_natural(g, ...)                WATCHED(normal_natural, #__VA_ARGS__, g, __VA_ARGS__)
#define power_gamma_natural(g, ...)           WATCHED(power_gamma_natural, #__VA_ARGS__, g, __VA_ARGS__)
#define power_gamma_natural_truncated(g, ...) WATCHED(power_gamma_natural_truncated, #__VA_ARGS__, g, __VA_ARGS__)
#define power_gig_natural(g, ...)             WATCHED(power_gig_natural, #__VA_ARGS__, g, __VA_ARGS__)
#define power_gig_natural_truncated(g, ...)   WATCHED(power_gig_natural_truncated, #__VA_ARGS__, g, __VA_ARGS__)
#define beta_natural(g, ...)                  WATCHED(beta_natural, #__VA_ARGS__, g, __VA_ARGS__)
#define beta_natural_truncated(g, ...)        WATCHED(beta_natural_truncated, #__VA_ARGS__, g, __VA_ARGS__)
#define power_natural_truncated(g, ...)       WATCHED(power_natural_truncated, #__VA_ARGS__, g, __VA_ARGS__)
#define exponential_natural_truncated(g, ...) WATCHED(exponential_natural_truncated, #__VA_ARGS__, g, __VA_ARGS__)
#define polya_gamma_natural(g, ...)           WATCHED(polya_gamma_natural, #__VA_ARGS__, g, __VA_ARGS__)
#define von_mises_natural(g, ...)             WATCHED(von_mises_natural, #__VA_ARGS__, g, __VA_ARGS__)
#define uniform_between(g, ...)               WATCHED(uniform_between, #__VA_ARGS__, g, __VA_ARGS__)

#endif
