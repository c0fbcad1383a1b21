// launch_elements.h -- LAUNCH, LAUNCH_TEAM and their like (launch.h): kernels by elements, by teams, and by one lane.
#ifndef GM_LAUNCH_ELEMENTS_H
#define GM_LAUNCH_ELEMENTS_H

#include "launch_base.h"

#if !defined(__CUDACC__)

// By several threads.
GM_LAUNCHES gm_each_shared(GmKernel kernel, GmRun *run, long n, long blocks)
{
    const Data *const d = (const Data *)run->data;
    const State *const s = gm_of_chain(run, run->chain);
    const Sweep at = sweep_place(run, run->chain);
#pragma omp parallel for num_threads(run->inner_threads) schedule(static)
    for (long b = 0; b < blocks; b++) {
        GmContext context = gm_alone(run, run->chain, b * GM_BLOCK, (b + 1) * GM_BLOCK < n ? (b + 1) * GM_BLOCK : n);
        kernel(&context, d, s, at);
    }
}

GM_HOST_ONLY void gm_each(GmKernel kernel, GmRun *run, long n)
{
    const long blocks = (n + GM_BLOCK - 1) / GM_BLOCK;
    if (run->inner_threads > 1 && blocks > 1 && !run->checking) {
        gm_each_shared(kernel, run, n, blocks);
        return;
    }
    GmContext context = gm_alone(run, run->chain, 0, n);
    kernel(&context, (const Data *)run->data, gm_of_chain(run, run->chain), sweep_place(run, run->chain));
}

GM_LAUNCHES gm_team_shared(GmKernel kernel, GmRun *run, int chain)
{
    static wide partial[GM_PARTIALS];  // one team of several threads works at a time
    const Data *const d = (const Data *)run->data;
    const State *const s = gm_of_chain(run, chain);
    const Sweep at = sweep_place(run, chain);
#pragma omp parallel num_threads(run->inner_threads)
    {
        GmContext context = {run, chain, 0, 0, omp_get_thread_num(), omp_get_num_threads(), 0, partial};
        kernel(&context, d, s, at);
    }
}

GM_HOST_ONLY void gm_team(GmKernel kernel, GmRun *run, int chain, long work)
{
    if (run->inner_threads > 1 && work >= GM_TEAM_WORK && !run->checking) {
        gm_team_shared(kernel, run, chain);
        return;
    }
    GmContext context = gm_alone(run, chain, 0, 1);
    kernel(&context, (const Data *)run->data, gm_of_chain(run, chain), sweep_place(run, chain));
}

#endif

GM_LAUNCHES launch_each(GmRun *run, const char *name, GmKernel kernel, long n)
{
    (void)kernel;
    if (run->device) gm_device_each(run, name, n);
    else ON_CPU(run, gm_each(kernel, run, n));
}

GM_LAUNCHES launch_colours(GmRun *run, const char *name, GmKernel kernel, long n, long colours)
{
    (void)kernel;
    if (run->device) gm_device_colours(run, name, n, colours);
    else
        for (run->colour = 0; run->colour < colours; run->colour++)
            ON_CPU(run, gm_each(kernel, run, (n - run->colour + colours - 1) / colours));
}

GM_LAUNCHES launch_team(GmRun *run, const char *name, GmKernel kernel, long work)
{
    (void)kernel;
    if (run->device) gm_device_team(run, name, work);
    else ON_CPU(run, gm_team(kernel, run, run->chain, work));
}

GM_LAUNCHES launch_team_colours(GmRun *run, const char *name, GmKernel kernel, long work, long colours)
{
    (void)kernel;
    if (run->device) gm_device_team_colours(run, name, work, colours);
    else
        for (run->colour = 0; run->colour < colours; run->colour++) ON_CPU(run, gm_team(kernel, run, run->chain, work));
}

GM_LAUNCHES launch_once(GmRun *run, const char *name, GmKernel kernel)
{
    (void)kernel;
    if (run->device) gm_device_once(run, name);
    else ON_CPU(run, gm_team(kernel, run, run->chain, 1));
}

// For the first `chains` chains.
GM_LAUNCHES launch_shared(GmRun *run, const char *name, GmKernel kernel, long work, int chains)
{
    (void)kernel;
    if (run->device) gm_device_shared(run, name, work, chains);
    else
        for (int c = 0; c < chains; c++) ON_CPU(run, gm_team(kernel, run, c, work));
}

// Where an update is a loop, each iteration has streams of its own: those of variable `var` of `count`.
#define GM_STREAM_OF_ITERATION(run, var, turn, count) gm_stream_of_iteration(run, var, turn, count)
GM_HOST_ONLY uint32_t gm_stream_of_iteration(GmRun *run, uint32_t var, long iteration, uint32_t count)
{
    if (iteration >= (1L << 24) / count)  // rng.h has room for 2^24
        gm_fault(run, run->chain < 0 ? 0 : run->chain, "iterations", iteration, "there are more iterations than streams of random numbers");
    return var + (uint32_t)iteration * count;
}

// Sizes read the data, d.
#define LAUNCH(kernel, run, n)                 \
    do {                                       \
        gm_data(run);                          \
        launch_each(run, GM_NAMED(kernel), n); \
    } while (0)
#define LAUNCH_MISSING(kernel, run, field) launch_each(run, GM_NAMED(kernel), (run)->missing ? (run)->missing[(field)-1].count : 0)
#define LAUNCH_COLOURS(kernel, run, n, colours)            \
    do {                                                   \
        gm_data(run);                                      \
        launch_colours(run, GM_NAMED(kernel), n, colours); \
    } while (0)
#define LAUNCH_TEAM(kernel, run, work)            \
    do {                                          \
        gm_data(run);                             \
        launch_team(run, GM_NAMED(kernel), work); \
    } while (0)
#define LAUNCH_COLOURS_TEAM(kernel, run, work, colours)            \
    do {                                                           \
        gm_data(run);                                              \
        launch_team_colours(run, GM_NAMED(kernel), work, colours); \
    } while (0)
#define LAUNCH_ONCE(kernel, run) launch_once(run, GM_NAMED(kernel))
#define GIVEN(run, var)          (((run)->given && (run)->given[VAR_##var]) || gm_is_kept(run, VAR_##var, -1))  // of `forward`
#define LAUNCH_SHARED(kernel, run, work)               \
    do {                                               \
        gm_data(run);                                  \
        launch_shared(run, GM_NAMED(kernel), work, 1); \
    } while (0)
#define LAUNCH_SHARED_UNLESS_MISSING(kernel, run, work)                                   \
    do {                                                                                  \
        gm_data(run);                                                                     \
        launch_shared(run, GM_NAMED(kernel), work, any_missing(run) ? (run)->chains : 1); \
    } while (0)

// Rows by group, and elements by colour:
//
//   ORDER_ROWS(run, n, groups, key, first, rows)    rows of group k: rows[first[k]] .. rows[first[k + 1] - 1], of all chains; key[n] from
//                                                   1, 0 for a row of no group
//   COLOUR_ELEMENTS(run, n, pairs, one, other, first, elements)     colour c of the elements 0 .. n - 1: elements[first[c]] ..
//                                                                   elements[first[c + 1] - 1], of all chains; one[i] and other[i], from 1,
//                                                                   have different
//                                                   colours; first[c] = n from the last colour on
#define COLOUR_ELEMENTS(run, n, pairs, one, other, first, elements)                                           \
    do {                                                                                                      \
        gm_here(run);                                                                                         \
        if ((run)->device) gm_device_colour_elements(run, n, pairs, s->one, s->other, s->first, s->elements); \
        else gm_colour_elements(n, pairs, s->one, s->other, s->first, s->elements);                           \
    } while (0)
#define ORDER_ROWS(run, n, groups, key, first, rows)                                        \
    do {                                                                                    \
        gm_here(run);                                                                       \
        if ((run)->device) gm_device_order_rows(run, n, groups, s->key, s->first, s->rows); \
        else gm_order_rows(n, groups, s->key, s->first, s->rows);                           \
    } while (0)

#endif
