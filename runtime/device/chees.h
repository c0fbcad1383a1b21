// chees.h -- Hamiltonian Monte Carlo of many chains that adapt together: all take trajectories of one length, one step size and one metric,
// so that each does the same work.
//
//     sweep 0 ...... A                    NUTS, each chain for itself: from wherever it starts to where the distribution lies
//     sweep A ...... W - 1                HMC of ceil(u T / step) leapfrog steps, u in (1/2, 3/2) the same for all; after each sweep step,
//                                         T and metric are adapted from all chains
//     from sweep W on                     the same, nothing is adapted
//
//   effects     half of the first A sweeps on, what their coordinates are is settled for all chains alike, by what the derivatives of all
//               say (nuts.h)
//
//   method      ChEES-HMC (Hoffman, Radul and Sountsov 2021, An adaptive-MCMC scheme for setting trajectory lengths in Hamiltonian Monte
//               Carlo): the change that a trajectory makes to the squared distance from the centre, C = E (|x' - E x'|^2 - |x - E x|^2)^2 /
//               4, is largest where the slowest directions have gone through a quarter of their period. C divided by the length, which is
//               the cost, favours lengths that are too short for the draws themselves (Sountsov and Hoffman 2021, Focusing on difficult
//               directions for learning HMC trajectory lengths). So log C - CHEES_COST log T is maximised. Distances are those of the
//               metric, expectations are means over chains, of proposals weighed by their acceptance. log T follows its derivative by Adam
//               (Kingma and Ba 2015) without momentum. u is van der Corput's sequence, base 2, in the number of the sweep. Measured on 100
//               independent normals, 50 normals correlated by 0.9 and a logistic regression: u in (1/2, 3/2) gave up to 1.5 times the draws
//               of u in (0, 2). CHEES_COST = 0.2 kept T from wandering where C hardly changes with it.
//   step size   dual averaging (Hoffman and Gelman 2014) of the mean acceptance over chains
//   metric      diagonal, as in nuts.h: sd of the draws over sd of their gradients, of all chains, over windows that double; the last 15 %
//               of warm-up keep it
//   errors      those of HMC (nuts.h). Fewer than CHEES_CHAINS chains or CHEES_WARMUP sweeps of warm-up give too little
//   memory      that of nuts.h: start and proposal are where the two trees' draws would be, the estimates are chain 0's; what chains share
//               each has a copy of
//   lanes       on a GPU a thread works at a coordinate of all chains; sums over coordinates are taken by warps, and those in order
//   test        tests/stat/together.py, tests/gpu/devices.py
#ifndef GM_CHEES_H
#define GM_CHEES_H

#include "nuts.h"

#define CHEES_CHAINS 4  // at the least
#define CHEES_WARMUP 100
#define CHEES_STEPS  1000  // leapfrog steps of a trajectory, at most
#define CHEES_DEPTH  7     // most doublings while chains go by NUTS.
#define CHEES_ACCEPT 0.8   // mean acceptance, if nothing else is asked for
#define CHEES_RATE   0.05  // a usual change of log T
#define CHEES_COST   0.2   // how much the cost of a trajectory counts
#define CHEES_SUMS   2     // of a chain: change of the squared distance; half its derivative by time

typedef struct Chees {       // of an HMC update of all chains
    const void *states;      // State, chain by chain,
    uint64_t size, machine;  // its bytes, and the place of the machine in it
    long n;                  // coordinates
    int chains;
    long sweep, warmup;  // the sweep that has been made
    double target;
} Chees;

DEVICE Nuts *chees_machine(const Chees *w, int chain)
{
    return (Nuts *)*(void *const *)((const char *)w->states + (uint64_t)chain * w->size + w->machine);
}
DEVICE wide *chees_vector(const Chees *w, int chain, int which) { return (wide *)chees_machine(w, chain) + NUTS_HEADER + which * w->n; }

// Sweeps that chains go by NUTS.
DEVICE long chees_apart(long warmup) { return warmup < 200 ? 20 : warmup < 1000 ? warmup / 10 : 100; }

// Sweeps before the coordinates of effects are settled.
DEVICE long chees_alone(long warmup) { return chees_apart(warmup) / 2; }

// Whether chains meet after this sweep.
DEVICE int chees_meets(long sweep, long warmup)
{
    return sweep < warmup && (sweep + 1 >= chees_apart(warmup) || sweep + 1 == chees_alone(warmup));
}

// Whether a window of the metric ends with this sweep.
DEVICE int chees_window_ends(long sweep, long warmup)
{
    const long last = warmup - (long)(0.15 * (double)warmup);
    long end = chees_apart(warmup), length = 10;
    while (end <= sweep && end < last) {
        end += length;
        length *= 2;
        if (end + length > last) end = last;
    }
    return sweep + 1 == end;
}

// Number k >= 1 of van der Corput's sequence, base 2: its bits behind the point, in reverse.
DEVICE double chees_corput(long k)
{
    double x = 0, bit = 0.5;
    for (; k > 0; k >>= 1, bit *= 0.5) x += bit * (double)(k & 1);
    return x;
}

// What a transition of a chain takes; the rest of the settings stays.
DEVICE void chees_settings(const Nuts *m, NutsSettings *s, long sweep, long warmup)
{
    const long apart = chees_apart(warmup);
    s->waits = 1;
    if (sweep < apart) {
        if (!(s->max_depth > 0 && s->max_depth < CHEES_DEPTH)) s->max_depth = CHEES_DEPTH;
        return;
    }
    const double steps = ceil((0.5 + chees_corput(sweep - apart + 1)) * exp(m->length.log_time) / m->step);
    s->steps = steps >= 1 ? steps < CHEES_STEPS ? (int)steps : CHEES_STEPS : 1;
    s->step = m->step;
    s->metric = NUTS_GIVEN;
}

// ---- after a sweep: one coordinate of all chains ----

typedef struct CheesCentre {
    double start, end, scale;
} CheesCentre;  // means over chains; 1 / sd^2

DEVICE int chees_begins(const Chees *w) { return w->sweep + 1 == chees_apart(w->warmup); }
DEVICE int chees_settles(const Chees *w) { return w->sweep + 1 == chees_alone(w->warmup); }

// Whether trajectories of all have been made, of which there are sums.
DEVICE int chees_goes(const Chees *w) { return w->sweep + 1 > chees_apart(w->warmup); }

DEVICE void chees_set_metric(const Chees *w, long i, double draws, double gradients)
{
    const double ratio = sqrt(draws / gradients);
    if (!(ratio > 0 && is_finite(ratio))) return;
    for (int c = 0; c < w->chains; c++) chees_vector(w, c, NUTS_METRIC)[i] = clamp(ratio, NUTS_LEAST, NUTS_MOST);
}

// The estimates of all chains, each made by itself, as one; the first metric that they share. One that does not vary has the mean of
// theirs.
DEVICE void chees_join(const Chees *w, long i)
{
    double squares[2], v = 0;
    for (int c = 0; c < w->chains; c++) v += log(chees_vector(w, c, NUTS_METRIC)[i]);
    for (int c = 0; c < w->chains; c++) chees_vector(w, c, NUTS_METRIC)[i] = exp(v / w->chains);
    for (int which = 0; which < 2; which++) {
        const int to = NUTS_FOREGROUND + 2 * which;
        double mean = 0, count = 0;
        for (int c = 0; c < w->chains; c++) {
            const double k = (double)chees_machine(w, c)->foreground;
            count += k;
            mean += k > 0 ? k * chees_vector(w, c, to)[i] : 0;
        }
        mean /= count;
        squares[which] = 0;
        for (int c = 0; c < w->chains; c++) {
            const double k = (double)chees_machine(w, c)->foreground, away = chees_vector(w, c, to)[i] - mean;
            squares[which] += k > 0 ? chees_vector(w, c, to + 1)[i] + k * away * away : 0;
        }
    }
    chees_set_metric(w, i, squares[0], squares[1]);
}

// How far effects are standardised, by the precisions of all chains.
DEVICE void chees_standardise(const Chees *w, long i)
{
    double precision = 0, count = 0;
    for (int c = 0; c < w->chains; c++) {
        const double k = (double)chees_machine(w, c)->foreground, mean = chees_vector(w, c, NUTS_FOREGROUND + 2)[i];
        if (!(k > 0)) continue;
        count += k;
        precision += chees_vector(w, c, NUTS_FOREGROUND + 3)[i] + k * mean * mean;
    }
    for (int c = 0; c < w->chains && count > 0; c++) {
        wide *const standard = chees_machine(w, c)->standard;
        if (standard) standard[i] = nuts_share(precision / count);
    }
}

// The draws of this sweep and their gradients enter the estimates that chain 0 keeps for all (Chan, Golub and LeVeque 1983); at the end of
// a window they are the metric.
DEVICE void chees_estimate(const Chees *w, long i)
{
    const double before = (double)chees_machine(w, 0)->foreground, all = before + w->chains;
    double squares[2];
    for (int which = 0; which < 2; which++) {
        wide *const mean = chees_vector(w, 0, NUTS_FOREGROUND + 2 * which) + i, *const square = mean + w->n;
        double sum = 0, within = 0;
        for (int c = 0; c < w->chains; c++) sum += chees_vector(w, c, which ? NUTS_GRADIENT : NUTS_POSITION)[i];
        sum /= w->chains;
        for (int c = 0; c < w->chains; c++) {
            const double away = chees_vector(w, c, which ? NUTS_GRADIENT : NUTS_POSITION)[i] - sum;
            within += away * away;
        }
        const double away = before > 0 ? sum - *mean : 0;
        *square = before > 0 ? *square + within + away * away * before * w->chains / all : within;
        *mean = before > 0 ? *mean + away * w->chains / all : sum;
        squares[which] = *square;
    }
    if (chees_window_ends(w->sweep, w->warmup)) chees_set_metric(w, i, squares[0], squares[1]);
}

// Everything that is done at coordinate i but for the sums of chains, for which it gives the centre.
DEVICE CheesCentre chees_coordinate(const Chees *w, long i)
{
    CheesCentre at = {0, 0, 1 / chees_vector(w, 0, NUTS_METRIC)[i]};
    if (chees_begins(w)) chees_join(w, i);
    if (chees_settles(w)) chees_standardise(w, i);
    if (!chees_goes(w)) return at;
    double weights = 0;
    for (int c = 0; c < w->chains; c++) {
        const double accept = chees_machine(w, c)->accept_stat;
        at.start += chees_vector(w, c, NUTS_FIRST)[i];
        if (accept > 0) at.end += accept * chees_vector(w, c, NUTS_SECOND)[i];  // else it may be no number
        weights += accept;
    }
    at.start /= w->chains;
    at.end /= weights > 0 ? weights : 1;
    chees_estimate(w, i);
    return at;
}

// What the coordinate adds to the sums of a chain.
DEVICE void chees_add(const Chees *w, long i, int chain, const CheesCentre *at, double *sums)
{
    if (!(chees_machine(w, chain)->accept_stat > 0)) return;
    const double start = chees_vector(w, chain, NUTS_FIRST)[i] - at->start, end = chees_vector(w, chain, NUTS_SECOND)[i] - at->end;
    sums[0] += (end * end - start * start) * at->scale;
    sums[1] += end * chees_vector(w, chain, NUTS_MOMENTUM)[i];
}

// ---- after a sweep: step size and length ----

DEVICE void chees_start(const Chees *w, Nuts *m)
{
    double log_step = 0, time = 0;
    for (int c = 0; c < w->chains; c++) {
        const Nuts *one = chees_machine(w, c);
        log_step += (one->averaged > 0 ? one->log_step_mean : log(one->step)) / w->chains;
        time += one->n_leapfrog * one->stepsize / w->chains;
    }
    m->step = exp(log_step);
    // below where it will be: short trajectories are cheap, and NUTS goes on until the ends turn back
    m->length.log_time = m->length.log_mean = log(fmax(0.25 * time, m->step));
    m->length.square = 0;
    m->length.moves = m->length.averaged = 0;
}

// log T by the derivative of the criterion, times C; then its mean, in which late ones weigh more (Shamir and Zhang 2013).
DEVICE void chees_adapt_length(const Chees *w, Nuts *m, const double *sums, long stride)
{
    NutsLength *l = &m->length;
    const double time = m->n_leapfrog * m->stepsize;
    double weights = 0, slope = 0, value = 0;
    for (int c = 0; c < w->chains; c++) {
        const double accept = chees_machine(w, c)->accept_stat, change = sums[c * stride], along = sums[c * stride + 1];
        if (!(accept > 0) || !is_finite(change) || !is_finite(along)) continue;
        weights += accept;
        slope += accept * change * along;
        value += accept * change * change;
    }
    const double g = weights > 0 ? (time * slope - CHEES_COST * 0.25 * value) / weights : 0;
    if (!is_finite(g * g)) return;
    const double k = (double)++l->moves, late = 4 / ((double)++l->averaged + 3);
    l->square = 0.95 * l->square + 0.05 * g * g;
    const double size = sqrt(l->square / (1 - pow(0.95, k)));
    if (size > 0) l->log_time += CHEES_RATE * g / size;
    l->log_time = clamp(l->log_time, log(m->step), log(CHEES_STEPS / 1.5 * m->step));
    l->log_mean += late * (l->log_time - l->log_mean);
}

// sums: CHEES_SUMS of each chain, over its coordinates; from one chain's to the next's are `stride` numbers.
DEVICE void chees_adapt(const Chees *w, const double *sums, long stride)
{
    Nuts *m = chees_machine(w, 0);
    if (chees_settles(w)) {
        for (int c = 0; c < w->chains; c++)
            if (chees_machine(w, c)->standard) nuts_settle(chees_machine(w, c));
        return;
    }
    if (chees_begins(w)) {
        chees_start(w, m);
        nuts_average_anew(m, 1);
        m->foreground = 0;  // they counted what is of a start
    } else {
        double accept = 0;
        for (int c = 0; c < w->chains; c++) accept += chees_machine(w, c)->accept_stat / w->chains;
        nuts_adapt_step(m, accept, w->target > 0 ? w->target : CHEES_ACCEPT);
        chees_adapt_length(w, m, sums, stride);
        m->foreground += w->chains;
        if (chees_window_ends(w->sweep, w->warmup)) {
            m->foreground = 0;
            m->length.averaged = 0;
            nuts_average_anew(m, 1);
        }
    }
    if (w->sweep == w->warmup - 1) {
        m->step = exp(m->log_step_mean);
        m->length.log_time = m->length.log_mean;
    }
    for (int c = 1; c < w->chains; c++) {
        chees_machine(w, c)->step = m->step;
        chees_machine(w, c)->length = m->length;
    }
}

#endif
