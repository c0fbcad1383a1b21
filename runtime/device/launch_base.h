// launch_base.h -- what all launches share (launch.h): the place of a sweep, fields of the state, a kernel by its name or its function,
// and chains in parallel or in lockstep.
#ifndef GM_LAUNCH_BASE_H
#define GM_LAUNCH_BASE_H

#include "../host/device.h"

#ifndef GM_LIKE_GPU
#define GM_LIKE_GPU 0  // 1, for tests: a CPU makes the updates that a GPU makes
#endif
#if defined(GM_MODES)
#define GM_NO_DRAWS 1
#else
#define GM_NO_DRAWS 0
#endif
// What is compiled for all programs reads what each is. A program defines GM_MODES, if it does, as nothing; else it is a name.
#define GM_TEXT_OF(x)  #x
#define GM_IS_NOTHING(...) (sizeof GM_TEXT_OF(__VA_ARGS__) == 1)
#define GM_OF_PROGRAM
#if defined(GM_KERNELS_ELSEWHERE)
#undef GM_OF_PROGRAM
#define GM_OF_PROGRAM const int gm_program_like_gpu = GM_LIKE_GPU, gm_program_has_no_draws = GM_IS_NOTHING(GM_MODES);
#elif defined(GM_KERNELS_HERE)
extern const int gm_program_like_gpu, gm_program_has_no_draws;
#undef GM_LIKE_GPU
#undef GM_NO_DRAWS
#define GM_LIKE_GPU gm_program_like_gpu
#define GM_NO_DRAWS gm_program_has_no_draws
#endif

#ifdef __cplusplus
#define GM_C extern "C"
#else
#define GM_C
#endif

#define gm_of(field)        offsetof(State, field)
#if defined(GM_ANY_STATE)  // Data and State are not known yet
#define gm_of_chain(run, c) ((const State *)((const char *)(run)->state + (size_t)(c)*gm_model.state_size))
#else
#define gm_of_chain(run, c) ((const State *)(run)->state + (c))
#endif
#define gm_data(run)                                 \
    const Data *const d = (const Data *)(run)->data; \
    (void)d

GM_HOST_ONLY int any_missing(const GmRun *run)
{
    for (int f = 0; run->missing && f < gm_model.n_data; f++)
        if (run->missing[f].count) return 1;
    return run->own_responses;
}

#define ANY_MISSING(run) any_missing(run)

GM_HOST_ONLY Sweep sweep_place(const GmRun *run, int chain)
{
    Sweep at;
    at.seed = run->seed;
    at.chain = (uint32_t)(run->first_chain + chain);
    at.sweep = (uint64_t)run->sweep + 1;
    return at;
}

// An array of data where the host may read it.
#define ON_HOST(run, x) ((const int *)((run)->device ? gm_device_on_host(run, x) : (x)))

// A kind of launch is a function, compiled once: a program may have a thousand launches. It knows a kernel by its name, on a GPU, and by
// its function.
#if defined(GM_KERNELS_ELSEWHERE) || defined(GM_KERNELS_HERE)
#define GM_LAUNCHES GM_HOST_ONLY void
#else
#define GM_LAUNCHES static __attribute__((noinline, unused)) void
#endif
#define gm_array(s, field)    (*(wide *const *)((const char *)(s) + (field)))
#define gm_at(type, s, field) ((field) == GM_NO_FIELD ? (type *)0 : *(type *const *)((const char *)(s) + (field)))

#if defined(__CUDACC__)

typedef void *GmKernel;
typedef void *GmRowKernel;
#define GM_NAMED(kernel) #kernel, NULL
#define ON_CPU(run, what) \
    do {                  \
    } while (0)
#define gm_here(run)                                 \
    const Data *const d = (const Data *)(run)->data; \
    const State *const s = gm_of_chain(run, 0);      \
    (void)d;                                         \
    (void)s
enum { GM_IN_STEP = -1, GM_CACHE = 0 };

#else

typedef void (*GmKernel)(GmContext *, const Data *, const State *, const Sweep);
typedef void (*GmRowKernel)(GmContext *, const Data *, const State *, const Sweep, const real *, real *, wide *);
#define GM_NAMED(kernel) #kernel, kernel

enum {
    GM_BLOCK = 512,            // elements a block
    GM_TEAM_WORK = 32768,      // work below which a team of several threads does not pay
    GM_ROWS = 4096,            // rows in a chunk of a row pass: its sums are added chunk by chunk
    GM_IN_STEP = -1,           // run->chain: a launch is for all chains
    GM_PRODUCT_CACHE = 32768,  // numbers in the rows that ROW_PRODUCTS takes at a time
    GM_CACHE = 16 << 20,       // bytes of rows above which chains run in lockstep
};

#define gm_here(run)                                                              \
    const Data *const d = (const Data *)(run)->data;                              \
    const State *const s = gm_of_chain(run, (run)->chain < 0 ? 0 : (run)->chain); \
    (void)d;                                                                      \
    (void)s
// Chains in lockstep that launches are for, by number.
GM_HOST_ONLY int gm_chains_going(const GmRun *run) { return run->going ? run->n_going : run->chains; }
GM_HOST_ONLY int gm_chain_going(const GmRun *run, int k) { return run->going ? run->going[k] : k; }

#define ON_CPU(run, what)                                                                                            \
    do {                                                                                                             \
        if ((run)->chain != GM_IN_STEP) {                                                                            \
            what;                                                                                                    \
            break;                                                                                                   \
        }                                                                                                            \
        GmRun *const gm_all = run;                                                                                   \
        const int gm_n = gm_chains_going(gm_all);                                                                    \
        _Pragma("omp parallel for num_threads(gm_all->threads < gm_n ? gm_all->threads : gm_n) schedule(static, 1)") \
        for (int gm_k = 0; gm_k < gm_n; gm_k++) {                                                                    \
            GmRun gm_one = *gm_all, *const run = &gm_one;                                                            \
            gm_one.chain = gm_chain_going(gm_all, gm_k);                                                             \
            gm_one.inner_threads = 1;                                                                                \
            gm_here(run);                                                                                            \
            what;                                                                                                    \
        }                                                                                                            \
    } while (0)

GM_HOST_ONLY GmContext gm_alone(GmRun *run, int chain, long first, long last)
{
    const GmContext c = {run, chain, first, last, 0, 1, 0, NULL};
    return c;
}

#endif

#endif
