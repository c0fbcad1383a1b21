// launch_nuts.h -- HMC updates (launch.h).
//
//   NUTS(run, density, var, machine, position, value, gradient, diagnostics, .name = "mu, tau", .coordinates = n, .depth = 8, ...)
//
// moves position[n], which the caller has set, to the next draw (nuts.h); the settings are those of GmHmc, what is not written is as usual.
// density(run) is asked for value[BY_COORDINATES] and value[BY_UNKNOWNS], the log densities, and gradient[n] at position.
// Chains in lockstep need evaluations together; those that are done stay where they are. diagnostics[6] are CmdStan's accept_stat__ to
// energy__. With --check the densities make a ratio, and the gradient is compared with differences.
#ifndef GM_LAUNCH_NUTS_H
#define GM_LAUNCH_NUTS_H

#include "launch_elements.h"

// The method that a chain uses for a selection; NULL: there is none, or it keeps to Gibbs updates.
GM_HOST_ONLY GmSelected *gm_selected(const GmRun *run, int selection, int chain)
{
    return selection && run->selected ? &run->selected[chain * gm_model.n_selections + selection - 1] : NULL;
}

#if !defined(__CUDACC__)

// nuts_begin and nuts_next, of the library that programs are linked with (host/nuts.c).
GM_C void gm_nuts_start(Nuts *m, Stream *g, const wide *x, const NutsSettings *settings, long sweep, long warmup);
GM_C int gm_nuts_ask(Nuts *m);

// The metric of a chain's HMC update, if it is not diagonal or may become so, else NULL; of the library, too (host/metrics.c).
GM_C Metric *gm_metric_of(struct GmMetrics *metrics, const GmRun *run, const GmHmc *of, int chain);

typedef void GmDensity(GmRun *run);

GM_HOST_ONLY Nuts *gm_nuts_of(const State *s, const GmHmc *of)
{
    Nuts *m = nuts_of(gm_array(s, of->machine), of->coordinates);
    if (of->standardised) m->standard = gm_array(s, of->standardised);
    return m;
}

GM_HOST_ONLY void gm_nuts_begin(GmRun *run, const GmHmc *of, int chain)
{
    const State *const s = gm_of_chain(run, chain);
    NutsSettings settings = {0};
    settings.target = of->accept;
    settings.max_depth = of->depth;
    settings.steps = of->steps;
    settings.step = of->step;
    settings.walls = of->walls;
    if (nuts_room(of->coordinates) > of->room) abort();
    Nuts *const m = gm_nuts_of(s, of);
    if (run->sweep <= run->warmup) m->left = 0;
    m->linear = of->together ? NULL : gm_metric_of(run->metrics, run, of, chain);
    settings.same_density = of->alone && memcmp(gm_array(s, of->position), nuts_position(m), sizeof(wide) * (size_t)of->coordinates) == 0;
    Stream g = stream(sweep_place(run, chain), of->var, STREAM_NUTS);
    // hot chains go to where a density is known to a few digits
    settings.temperature = run->checking ? 1 : nuts_temperature(of->anneal, run->sweep, run->warmup);
    const GmSelected *const c = gm_selected(run, of->selection, chain);
    if (c && c->target > settings.target) settings.target = c->target;
    if (of->together) chees_settings(m, &settings, run->sweep, run->warmup);
    gm_nuts_start(m, &g, gm_array(s, of->position), &settings, c ? run->sweep - c->first : run->sweep, c ? c->adapts : run->warmup);
}

// Whether another evaluation is asked for; where, or the draw, is in position[n].
GM_HOST_ONLY int gm_nuts_next(GmRun *run, const GmHmc *of, int chain, int answered)
{
    const State *const s = gm_of_chain(run, chain);
    Nuts *m = gm_nuts_of(s, of);
    if (answered) {
        m->log_density = *gm_array(s, of->value);
        memcpy(nuts_gradient(m), gm_array(s, of->gradient), sizeof(wide) * (size_t)of->coordinates);
    }
    const int more = gm_nuts_ask(m);
    memcpy(gm_array(s, of->position), nuts_position(m), sizeof(wide) * (size_t)of->coordinates);
    if (!more) {
        const double says[] = {m->accept_stat, m->stepsize, m->treedepth, m->n_leapfrog, m->divergent, m->energy};
        memcpy(gm_array(s, of->diagnostics), says, sizeof says);
    }
    GmSelected *const c = more || run->checking ? NULL : gm_selected(run, of->selection, chain);
    if (c)
        gm_selected_moved(c, m->evaluations, m->divergent, m->failed != 0, m->energy,
                          m->linear && m->linear->used ? m->evaluations * metric_work(m->linear) : 0);
    if (!more && m->failed && !of->selection)
        gm_fault(run, chain, of->name, -1,
                 m->failed == 1 ? "the log density is not finite at the chain's state"
                                : "the gradient of the log density is not finite at the chain's state");
    return more;
}

GM_HOST_ONLY double gm_nuts_density(GmRun *run, const GmHmc *of, GmDensity *density, long i, double change)
{
    const State *const s = gm_of_chain(run, run->chain);
    wide *const x = gm_array(s, of->position), *const value = gm_array(s, of->value), kept = i < 0 ? 0 : x[i];
    if (i >= 0) x[i] += change;
    density(run);
    if (i >= 0) x[i] = kept;
    return value[i < 0];
}

GM_HOST_ONLY double gm_nuts_difference(GmRun *run, const GmHmc *of, GmDensity *density, long i, double h)
{
    const wide x = gm_array(gm_of_chain(run, run->chain), of->position)[i];
    const volatile wide above = x + h, below = x - h;  // as they are rounded
    return (gm_nuts_density(run, of, density, i, above - x) - gm_nuts_density(run, of, density, i, below - x)) / (above - below);
}

// Where all coordinates change by 2^-50 of themselves, some upwards and some downwards: the change of the density, and that of the
// derivative by coordinate i. A matrix that is nearly singular makes them large.
typedef struct GmShaken {
    double density, slope;
} GmShaken;

GM_HOST_ONLY GmShaken gm_nuts_shaken(GmRun *run, const GmHmc *of, GmDensity *density, long i, wide *kept)
{
    const State *const s = gm_of_chain(run, run->chain);
    wide *const x = gm_array(s, of->position), *const gradient = gm_array(s, of->gradient);
    const double lp = (density(run), *gm_array(s, of->value)), slope = gradient[i];
    memcpy(kept, x, sizeof *x * (size_t)of->coordinates);
    for (long k = 0; k < of->coordinates; k++) x[k] *= 1 + ((unsigned)k * 2654435761u >> 31 ? 0x1p-50 : -0x1p-50);
    density(run);
    const GmShaken moved = {fabs(*gm_array(s, of->value) - lp), fabs(gradient[i] - slope)};
    memcpy(x, kept, sizeof *x * (size_t)of->coordinates);
    return moved;
}

// The gradient at the chain's state against central differences, coordinate by coordinate: at most GM_COMPARED of them in one sweep. Their
// error is estimated from three widths: where a variable has lost digits, near an end of its support, a density is piecewise constant, and
// two differences may agree by chance.
GM_HOST_ONLY void gm_nuts_compare(GmRun *run, const GmHmc *of, GmDensity *density)
{
    enum { GM_COMPARED = 40, GM_WIDTHS = 6 };
    static const double widths[GM_WIDTHS] = {1e-4, 1e-2, 1e-6, 1e-8, 1e-10, 1e-12};
    const State *const s = gm_of_chain(run, run->chain);
    const wide *const x = gm_array(s, of->position), *const gradient = gm_array(s, of->gradient);
    const long skip = of->coordinates / GM_COMPARED + 1;
    wide *const kept = malloc(sizeof *kept * (size_t)of->coordinates);
    if (!kept) gm_fault(run, run->chain, of->name, -1, "there is no memory to compare its derivatives");
    for (long i = run->sweep % skip; kept && i < of->coordinates; i += skip) {
        const GmShaken moved = gm_nuts_shaken(run, of, density, i, kept);
        const double lp = (density(run), *gm_array(s, of->value)), slope = gradient[i];
        double difference = NAN, error = INFINITY;
        for (int width = 0, meets = 0; width < GM_WIDTHS && !meets; width++) {  // others where the first does not fit the scale
            const double h = widths[width] * (1 + 0.1 * fabs(x[i]));
            const double one = gm_nuts_difference(run, of, density, i, h), two = gm_nuts_difference(run, of, density, i, 2 * h);
            const double three = gm_nuts_difference(run, of, density, i, 3 * h),
                         apart = fmax(fabs(one - two), fmax(fabs(one - three), fabs(two - three)));
            const double at = one + (one - two) / 3, off = apart + (1e-13 * fabs(lp) + 30 * moved.density) / h + 30 * moved.slope;
            meets = !isfinite(at) ||
                    (fabs(slope - at) <= 1e-6 * (1 + fabs(slope)) + 10 * off && (width == 0 || off <= 1e-3 * (1 + fabs(slope))));
            if (width > 0 && !(meets && isfinite(at))) continue;
            difference = at;
            error = off;
        }
        // so far out a variable may be one of the last numbers before its end, and hardly change
        if (fabs(x[i]) > 16 && fabs(slope - difference) > 1e-6 * (1 + fabs(slope)) + 10 * error) {
            const double wide_one = gm_nuts_difference(run, of, density, i, fabs(x[i]) / 2);
            // where the density has a kink, or ends, this difference is no check
            if (!(fabs(wide_one - difference) <= 1e-3 * (1 + fabs(difference)))) difference = NAN;
        }
        gm_check_gradient(run, of->name, i, slope, difference, error);
    }
    free(kept);
}

// What the runtime makes of an HMC update, chain by chain: where it begins, or something else in its place.
GM_HOST_ONLY int gm_nuts_instead(GmRun *run, const GmHmc *of, GmDensity *density)
{
    if (!run->instead) return 0;
    int done = 0;
    if (run->chain != GM_IN_STEP) return run->instead(run, of, density);
    _Pragma("omp parallel for num_threads(run->threads) schedule(static, 1) reduction(|:done)")
    for (int c = 0; c < run->chains; c++) {
        GmRun one = *run;
        one.chain = c;
        one.inner_threads = 1;
        done |= run->instead(&one, of, density);
    }
    return done;
}

#endif

GM_LAUNCHES launch_nuts(GmRun *run, void (*density)(GmRun *), GmHmc of)
{
    if (of.alone == GM_UNLESS_MISSING && any_missing(run)) of.alone = 0;
    if (run->accept > 0) of.accept = run->accept;
    if (run->depth > 0) of.depth = run->depth;
    of.together = gm_goes_together(run, &of);
    const GmSelected *const of_all = gm_selected(run, of.selection, 0);  // on a GPU chains take the same
    of.first = of_all ? of_all->first : 0;
    of.adapts = of_all ? of_all->adapts : run->warmup;
    const int from = run->chain > 0 ? run->chain : 0, to = run->chain == GM_IN_STEP ? run->chains : from + 1;
    for (int c = from; of_all && c < to; c++)
        if (gm_selected(run, of.selection, c)->also) of.alone = 0;  // Gibbs updates have changed these unknowns
    if (run->device) {
        gm_device_hmc(run, &of, density);
        return;
    }
#if !defined(__CUDACC__)
    if (gm_nuts_instead(run, &of, density)) return;
    if (run->checking == GM_CHECK_ALL) gm_nuts_compare(run, &of, density);
    const double before = run->checking ? gm_nuts_density(run, &of, density, -1, 0) : 0;
    const int first = run->chain == GM_IN_STEP ? 0 : run->chain, end = run->chain == GM_IN_STEP ? run->chains : first + 1;
    int *const going = (int *)malloc(sizeof *going * (size_t)(end - first)), asked = end - first;
    if (!going) abort();
    for (int c = first; c < end; c++) {
        gm_nuts_begin(run, &of, c);
        going[c - first] = c;
    }
    // Chains in lockstep that have their draw are left out of what follows.
    for (int answered = 0; asked > 0; answered = 1) {
        int n = 0;
        for (int k = 0; k < asked; k++)
            if (gm_nuts_next(run, &of, going[k], answered)) going[n++] = going[k];
        asked = n;
        run->going = run->chain == GM_IN_STEP && n < run->chains ? going : NULL;
        run->n_going = n;
        if (n > 0) density(run);
    }
    run->going = NULL;
    free(going);
    if (run->checking && of.standardised && run->sweep == 0) {  // from the next sweep on coordinates of other kinds are checked
        wide *const standard = gm_array(gm_of_chain(run, run->chain), of.standardised);
        for (long i = 0; i < of.coordinates; i++) standard[i] = (double)(1 + i % 3) / 3;
    }
    if (run->checking) gm_ratio(run, run->chain, of.marginal ? NAN : gm_nuts_density(run, &of, density, -1, 0) - before, fabs(before));
#endif
}

// Its random numbers are those of its first unknown's stream from the element STREAM_NUTS on.
#define NUTS_STREAM(x) VAR_##x
#define NUTS(run, density, variable, room_of, place, log_density, slope, diagnostic, ...) \
    do {                                                                                  \
        gm_data(run);                                                                     \
        const GmHmc gm_hmc = {.machine = gm_of(room_of),                                  \
                              .position = gm_of(place),                                   \
                              .value = gm_of(log_density),                                \
                              .gradient = gm_of(slope),                                   \
                              .diagnostics = gm_of(diagnostic),                           \
                              .var = variable,                                            \
                              __VA_ARGS__};                                               \
        launch_nuts(run, density, gm_hmc);                                                \
    } while (0)

#endif
