// kernels.h -- how kernels are written and launched; included by an emitted program after its Data and State.
//
//   KERNEL(draw_theta) { EACH (j, d.J) { ... } }     one element a turn, in parallel
//   KERNEL_ONCE(sums)  { ... }                       once for a chain
//   LAUNCH(draw_theta, run, d.J);                    for the chain(s) of `run`
//   LAUNCH_COLOURS(draw_x, run, d.T, 2);             odd elements, then even ones: EACH (turn, OF_COLOUR(d.T, 2))
//
// On the CPU a kernel is a function called for a range of elements: chains run in parallel, and if there are fewer chains
// than threads, blocks of elements do. Streams are keyed by element, so the draws do not depend on the blocks.
#ifndef GM_KERNELS_H
#define GM_KERNELS_H

#include <omp.h>

typedef struct GmContext {
    GmRun *run;
    long   first, last;          // elements of this call
    int    chain;                // within the run
    double result;               // log_joint
} GmContext;

#define GM                gm_context
#define KERNEL(name)      static void name(GmContext *GM, const Data d, const State s, const Sweep at)
#define KERNEL_ONCE(name) KERNEL(name)
#define EACH(i, n)        for (long i = GM->first; i < GM->last; i++)
#define EACH_MISSING(e, field) \
    for (long gm_m = 0, e; gm_m < (GM->run->missing ? GM->run->missing[field].count : 0) && (e = GM->run->missing[field].index[gm_m], 1); gm_m++)

typedef void (*GmKernel)(GmContext *, const Data, const State, const Sweep);

enum { GM_BLOCK = 512 };         // elements a block

static inline Sweep sweep_place(const GmRun *run, int chain)
{
    const Sweep at = {run->seed, (uint32_t)(run->first_chain + chain), (uint64_t)run->sweep + 1};
    return at;
}

static inline double launch_chain(GmKernel kernel, GmRun *run, int chain, long n)
{
    const Data d = *(const Data *)run->data;
    const State s = ((const State *)run->state)[chain];
    const Sweep at = sweep_place(run, chain);
    const long blocks = (n + GM_BLOCK - 1) / GM_BLOCK;
    if (run->inner_threads > 1 && blocks > 1 && !run->checking) {
        #pragma omp parallel for num_threads(run->inner_threads) schedule(static)
        for (long b = 0; b < blocks; b++) {
            GmContext context = {run, b * GM_BLOCK, (b + 1) * GM_BLOCK < n ? (b + 1) * GM_BLOCK : n, chain, 0};
            kernel(&context, d, s, at);
        }
        return 0;
    }
    GmContext context = {run, 0, n, chain, 0};
    kernel(&context, d, s, at);
    return context.result;
}

#define LAUNCH(kernel, run, n)                                              \
    do {                                                                    \
        const Data d = *(const Data *)(run)->data;                          \
        (void)d;                                                            \
        launch_chain(kernel, run, (run)->chain, n);                         \
    } while (0)
#define LAUNCH_COLOURS(kernel, run, n, colours)                             \
    do {                                                                    \
        const Data d = *(const Data *)(run)->data;                          \
        (void)d;                                                            \
        for ((run)->colour = 0; (run)->colour < (colours); (run)->colour++) \
            launch_chain(kernel, run, (run)->chain, ((n) - (run)->colour + (colours) - 1) / (colours)); \
    } while (0)
#define COLOUR              (GM->run->colour)
#define OF_COLOUR(n, count) (((n) - COLOUR + (count) - 1) / (count))
#define LAUNCH_ONCE(kernel, run) ((run)->result = launch_chain(kernel, run, (run)->chain, 1))
#define LAUNCH_SHARED(kernel, run) launch_chain(kernel, run, 0, 1)
#define LAUNCH_SHARED_UNLESS_MISSING(kernel, run)                           \
    for (int gm_c = 0; gm_c < (any_missing(run) ? (run)->chains : 1); gm_c++) launch_chain(kernel, run, gm_c, 1)
#define ANY_MISSING(run) any_missing(run)

#define SCRATCH(n)  ((real *)malloc(sizeof(real) * (size_t)((n) + 1)))
#define RELEASE(p)  free(p)

// ---- faults and checks ----

#define FAULT(name, element, what) gm_fault(GM->run, GM->chain, name, element, what)
#define VERIFY(x, name, element)   do { if (!is_finite(x)) FAULT(name, element, "its draw is not a finite number: its conditional is improper, or a value it depends on overflowed"); } while (0)
#define NOT_POSITIVE_DEFINITE      "its joint normal conditional is not proper: a coefficient has neither a proper prior nor data, or a value it depends on overflowed"
#define WARMING_UP                 (GM->run->sweep < GM->run->warmup)
#define CHECKING                   (GM->run->checking)
#define CLAIM(v)                   gm_claim(GM, v)
#define NO_CLAIM()                 gm_claim(GM, NAN)
#define SAVE_OLD(x, n)             const real *OLD = CHECKING ? gm_save(x, n) : (const real *)0; (void)OLD
#define NEW_WEIGHTS(w, n)          gm_save(w, n)
#define CHECK_WEIGHT(k)            gm_saved()[k]
#define CLAIM_QUADRATIC_BEFORE(n, J, h, x) gm_quadratic_before(n, J, h, x)
#define CLAIM_QUADRATIC_AFTER(x)   gm_claim(GM, gm_quadratic_after(x))

static inline void gm_claim(GmContext *c, double v) { if (c->run->checking) c->run->check_log_q[c->chain] += v; }

static inline double normal_draw_dense(GmContext *c, Stream *g, long n, double *J, double *h, double *x, GmScale *scale)
{
    if (c->run->checking) scale = NULL;          // a move of z and x together makes no claim about x alone
    if (c->run->checking) gm_quadratic_before(n, J, h, x);
    const long bad = gm_normal_dense(g, n, J, h, x, scale);
    if (c->run->checking) gm_claim(c, gm_quadratic_after(x));
    return (double)bad;
}

static inline double normal_draw_arrow(GmContext *c, Stream *g, long n, double *J, double *h, double *x, long m, const double *D, double *E,
                                       double *k, double *u, GmScale *scale)
{
    if (c->run->checking) scale = NULL;
    if (c->run->checking) gm_arrow_before(n, J, h, x, m, D, E, k, u);
    const long bad = gm_normal_arrow(g, n, J, h, x, m, D, E, k, u, scale);
    if (c->run->checking) gm_claim(c, gm_arrow_after(x, u));
    return (double)bad;
}

static inline double normal_draw(Stream *g, long n, double *J, const double *h, double *x) { return (double)normal_precision_shift(g, n, J, h, x); }

static inline double dirichlet_claim(const double *a, long n, const double *x, const double *old)
{
    double v = 0;
    for (long i = 0; i < n; i++) v += a[i] * (log(x[i]) - log(old[i]));
    return v;
}

static inline double wishart_claim(double d, const double *B, long n, const double *x, const double *old)
{
    double v = d * (log_determinant_of(n, x) - log_determinant_of(n, old));
    for (long i = 0; i < n * n; i++) v += B[i] * (x[i] - old[i]);
    return v;
}

static inline double inv_wishart_claim(double d, const double *B, long n, const double *x, const double *old)
{
    double *a = SCRATCH(2 * n * n), *b = a + n * n;
    inverse_into(n, x, a);
    inverse_into(n, old, b);
    double v = d * (log_determinant_of(n, x) - log_determinant_of(n, old));
    for (long i = 0; i < n * n; i++) v += B[i] * (a[i] - b[i]);
    RELEASE(a);
    return v;
}

static inline int any_missing(const GmRun *run)
{
    for (int f = 0; run->missing && f < gm_model.n_data; f++)
        if (run->missing[f].count) return 1;
    return 0;
}

// ---- all chains ----

static inline void all_chains(GmRun *run, void (*what)(GmRun *))
{
    gm_linalg_threads(run->threads <= run->chains ? 1 : run->threads);
    const int outer = run->checking ? 1 : run->threads < run->chains ? run->threads : run->chains;
    if (outer > 1 && run->threads <= run->chains) {
        #pragma omp parallel for num_threads(outer) schedule(static, 1)
        for (int c = 0; c < run->chains; c++) {
            GmRun one = *run;
            one.chain = c;
            one.inner_threads = 1;
            what(&one);
        }
        return;
    }
    for (int c = 0; c < run->chains; c++) {
        GmRun one = *run;
        one.chain = c;
        one.inner_threads = run->threads;
        what(&one);
    }
}

// A batch of sweeps of one chain: chains wait for each other once a batch, not once a sweep.
static inline void sweep_batch(GmRun *one, void (*sweep)(GmRun *))
{
    const long batch = one->batch > 0 ? one->batch : 1;
    for (long k = 0; k < batch; k++, one->sweep++) {
        sweep(one);
        if (one->after) one->after(one);
    }
}

#define GM_MODEL(model_name, file, data_count, state_count, step_count)                                               \
    static void gm_batch(GmRun *one)  { sweep_batch(one, sweep); }                                                    \
    static void gm_sweep(GmRun *run)  { all_chains(run, gm_batch); }                                                  \
    static void gm_derive(GmRun *run) { all_chains(run, derive); }                                                    \
    static double gm_joint(GmRun *run, int chain)                                                                     \
    {                                                                                                                 \
        GmRun one = *run;                                                                                             \
        one.chain = chain;                                                                                            \
        one.inner_threads = 1;                                                                                        \
        joint(&one);                                                                                                  \
        return one.result;                                                                                            \
    }                                                                                                                 \
    static void gm_step(GmRun *run, int k)                                                                            \
    {                                                                                                                 \
        all_chains(run, steps[k]);                                                                                    \
        if (ANY_MISSING(run)) LAUNCH_SHARED_UNLESS_MISSING(sums_of_responses, run);                                   \
    }                                                                                                                 \
    const GmModel gm_model = {                                                                                        \
        .name = model_name, .source = file, .data = data_fields, .n_data = data_count, .data_size = sizeof(Data),     \
        .state = state_fields, .n_state = state_count, .state_size = sizeof(State), .data_shape = data_shape,         \
        .data_default = data_default, .state_shape = state_shape, .setup = setup, .sweep = gm_sweep,                  \
        .derive = gm_derive, .derive_chain = derive, .log_joint = gm_joint, .n_steps = step_count, .step_names = step_names, .step = gm_step, \
    };

#endif
