// watch.h -- what the draw of one element was given, for `fit why` on a CPU: the routine, its arguments, its random numbers, the value.
//
//   DRAW(mu, 0, NORMAL(mean, precision))     draws as ever, and is noted if gm_watching is set and the stream is the one looked for
//   normal_natural(&g, h_mu, q_mu)           the same
//
// A stream is keyed by what is drawn, so that it alone says which element of which variable a draw is of. Included by kernels_cpu.h, after
// the samplers: what stands below concerns the program's own calls alone.
#ifndef GM_WATCH_H
#define GM_WATCH_H

// What is passed is a copy of the stream: one whose address goes elsewhere would not stay in registers.
#define GM_LOOK_AT(g, routine, said, value, ...)                                                                         \
    do {                                                                                                                 \
        if (__builtin_expect(gm_watching, 0)) {                                                                          \
            const Stream gm_after = g;                                                                                   \
            const double gm_given[] = {__VA_ARGS__};                                                                     \
            gm_watch_draw(&gm_after, routine, said, gm_given, (int)(sizeof gm_given / sizeof *gm_given), (double)value); \
        }                                                                                                                \
    } while (0)

// In DRAW and its like (kernels.h), where `put` says by whom: laws by their names. A normal on an interval is noted where a team draws
// it alone: rows draw latents by it, in loops that a look after each draw makes slower by a tenth.
#define LOOKED_AT(put, name, ...)             LOOKED_AT_##put(name, #name, #__VA_ARGS__, __VA_ARGS__)
#define LOOKED_AT_STORE(name, law, said, ...) GM_LOOK_AT(gm_stream, law, said, gm_drawn, __VA_ARGS__)
#define LOOKED_AT_SET(name, law, said, ...)   GM_LOOK_AT(gm_stream, law, said, gm_drawn, __VA_ARGS__)
#define LOOKED_AT_GM_PUT(name, ...)           LOOKED_AT_##name(__VA_ARGS__)
#define LOOKED_AT_GM_PUT_ELEMENT(name, ...)   LOOKED_AT_##name(__VA_ARGS__)
#define LOOKED_AT_any(law, said, ...)         GM_LOOK_AT(gm_stream, law, said, gm_drawn, __VA_ARGS__)
#define LOOKED_AT_normal                      LOOKED_AT_any
#define LOOKED_AT_power_gamma                 LOOKED_AT_any
#define LOOKED_AT_power_gamma_within          LOOKED_AT_any
#define LOOKED_AT_power_gig                   LOOKED_AT_any
#define LOOKED_AT_power_gig_within            LOOKED_AT_any
#define LOOKED_AT_beta                        LOOKED_AT_any
#define LOOKED_AT_beta_within                 LOOKED_AT_any
#define LOOKED_AT_normal_within(...)          ((void)0)

#define WATCHED(sampler, said, g, ...)                                                        \
    __extension__({                                                                           \
        Stream *const gm_of = (g);                                                            \
        const __typeof__(sampler(gm_of, __VA_ARGS__)) gm_value = sampler(gm_of, __VA_ARGS__); \
        GM_LOOK_AT(*gm_of, #sampler, said, gm_value, __VA_ARGS__);                            \
        gm_value;                                                                             \
    })

// The routines by which families of the library draw a number (`draw` and `draw_truncated` in stdlib/distributions),
// but for normals on intervals.
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
