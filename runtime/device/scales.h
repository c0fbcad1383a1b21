// scales.h -- collapsed updates of the unknowns that a joint normal is given: drawn one after the other with the joint normal integrated
// out.
//
//   target      exp(L(s) + g(s)'J(s)^-1 g(s)/2)/sqrt|J(s)|, s one of them and the others given: the joint density with x integrated out. J
//               and h are precision and shift of x given s, g = h - J x0, L the log joint density at x0, the present value of x
//   method      slice sampling (slice.h), of the logarithm of what is positive. For a trial value of s the program adds up L, collects J
//               and h and factors J. The draw of x given them follows, so that both are one block, and no other update may come between
//   how often   once in so many sweeps that it takes no longer than the rest of a sweep, or than ENOUGH multiply-adds. Early in the warm-up
//               two correlations are measured: r, between what is drawn so and its value after the other updates of the next sweep, and
//               q, of s before and after the draw itself. r is taken a standard error higher than estimated. s has an autocorrelation time
//               of (1 + r)/(1 - r) sweeps if these draws are left out, and (1 + qr)/(1 - qr) with them, as far as both are reversible.
//               Those with the longest times are still drawn, so many that the longest time of all, times the work of a sweep, is least.
//               The others are drawn for a tenth of the time. This depends on sizes and draws of the warm-up alone, and nothing changes
//               after it
//   proposals   where all that is drawn is a proposal (proposals.h) nothing is measured, and each is drawn in each proposal, in an order or
//               its reverse
//   --check     the draw ratios L after it less L before it
//   test        tests/stat/scales.py
#ifndef GM_SCALES_H
#define GM_SCALES_H

typedef struct GmScaleOf {
    const char *name;
    size_t value;
    double lo, hi;
    long count;
} GmScaleOf;

// Trials of a draw where none was made so far. Emitted programs have it in their costs, whichever compiler takes them.
enum { GM_SCALES_FEW_TRIALS = 7 };

#if !defined(__CUDACC__)

typedef struct GmPairs {
    wide n, mean[2], squares[2], products;
} GmPairs;

typedef struct GmScaleRoom {  // of one element, kept by the chain
    // of the slice; what was drawn last, in the slice's coordinate, and whether the next sweep is to be compared with it
    wide width, after, paired;
    GmPairs others, own;  // such pairs; before and after a draw
    wide draws, trials;   // so far
    wide every;           // sweeps from one draw to the next
} GmScaleRoom;

static const double GM_SCALES_ENOUGH = 2e6, GM_SCALES_SHARE = 0.1, GM_SCALES_FEW_PAIRS = 8, GM_SCALES_ERRORS = 1;

static double scales_coordinate(const GmScaleOf *of, wide x) { return of->lo >= 0 && x > 0 ? log(x) : x; }

// again: no other unknown has changed since the last call.
static double scales_density(const GmRun *run, void (*density)(GmRun *), int which, int again)
{
    GmRun one = *run;
    int fault = 0;
    one.marginal = which;
    one.again = again;
    one.tried = &fault;
    density(&one);
    return fault ? -INFINITY : one.result;
}

static void pairs_add(GmPairs *r, double before, double after)
{
    const double d[2] = {before - r->mean[0], after - r->mean[1]};
    r->n++;
    for (int k = 0; k < 2; k++) r->mean[k] += d[k] / r->n;
    r->products += d[0] * (after - r->mean[1]);
    r->squares[0] += d[0] * (before - r->mean[0]);
    r->squares[1] += d[1] * (after - r->mean[1]);
}

// Multiply-adds of a draw.
static double scales_work(const GmScaleRoom *r, double trial)
{
    return trial * (r->draws > 0 ? r->trials / r->draws : GM_SCALES_FEW_TRIALS);
}

static double pairs_correlation(const GmPairs *r, double otherwise)
{
    const double all = sqrt(r->squares[0] * r->squares[1]);
    return all > 0 && r->n >= GM_SCALES_FEW_PAIRS ? fmax(0, r->products / all) : otherwise;
}

// What the correlation may be, by a standard error of Fisher's z: few pairs know it to little, and the less a chain has gone around, the
// lower it seems to be.
static double pairs_most(const GmPairs *r)
{
    const double c = pairs_correlation(r, 1);
    return c < 1 ? tanh(atanh(c) + GM_SCALES_ERRORS / sqrt(r->n - 3)) : 1;
}

// Sweeps between draws that are independent, by the other updates alone, and with draws in each sweep; 2000 at most, and where that is
// not known.
static double scales_time(const GmScaleRoom *r, int drawn)
{
    const double c = pairs_most(&r->others) * (drawn ? pairs_correlation(&r->own, 0) : 1);
    return c < 0.999 ? (1 + c) / (1 - c) : 2000;
}

// What it takes to have independent draws of all, if those of at least this time are drawn so; *every: sweeps from one draw of these to the
// next.
static double scales_value(const GmScaleRoom *room, long elements, double sweep, double trial, double least, double *every)
{
    double work = 0, time = 1;
    for (long k = 0; k < elements; k++) {
        const int drawn = scales_time(&room[k], 0) >= least;
        if (drawn) work += scales_work(&room[k], trial);
        time = fmax(time, scales_time(&room[k], drawn));
    }
    *every = fmax(1, ceil(work / fmax(sweep, GM_SCALES_ENOUGH)));
    return fmax(time, work > 0 ? *every : 1) * (sweep + work / *every);
}

static void scales_choose(GmScaleRoom *room, long elements, double sweep, double trial, int measured)
{
    double least = measured ? INFINITY : 0, every, value = scales_value(room, elements, sweep, trial, least, &every), rest = 0;
    for (long k = 0; k < elements && measured; k++) {
        double often;
        const double of = scales_value(room, elements, sweep, trial, scales_time(&room[k], 0), &often);
        if (!(of < value)) continue;
        value = of;
        least = scales_time(&room[k], 0);
        every = often;
    }
    for (long k = 0; k < elements; k++) rest += scales_time(&room[k], 0) < least ? scales_work(&room[k], trial) : 0;
    for (long k = 0; k < elements; k++)
        room[k].every = scales_time(&room[k], 0) < least ? fmax(every, ceil(rest / (GM_SCALES_SHARE * sweep))) : every;
}

static long scales_before(const GmScaleOf *of, int n)
{
    long elements = 0;
    for (int i = 0; i < n; i++) elements += of[i].count;
    return elements;
}

// Of a proposal: whether scales are drawn from the last to the first, as they are with probability 1/2, so that all of their draws together
// are reversible.
static int scales_turn_back(Sweep at, uint32_t var)
{
    Stream g = stream(at, var, STREAM_ORDER);
    return uniform_open(&g) < 0.5;
}

GM_HOST_ONLY void gm_scales(GmRun *run, void (*density)(GmRun *), uint32_t var, GmScaleRoom *room, int proposed, GmSelected *selected,
                             double sweep, double trial, const GmScaleOf *of, int n)
{
    const State *const s = gm_of_chain(run, run->chain);
    const Sweep at = sweep_place(run, run->chain);
    long elements = 0, end = run->warmup / 12 > 60 ? run->warmup / 12 : run->warmup / 2 < 60 ? run->warmup / 2 : 60;
    for (int i = 0; i < n; i++)
        for (long k = 0; k < of[i].count; k++, elements++) {
            GmScaleRoom *r = &room[elements];
            if (r->paired > 0 && run->sweep >= end / 3 && run->sweep <= end)
                pairs_add(&r->others, r->after, scales_coordinate(&of[i], gm_at(wide, s, of[i].value)[k]));
            r->paired = 0;
        }
    if (elements > 0 && (room->every == 0 || run->sweep == 0 || (run->sweep == end && end >= 30)))
        scales_choose(room, elements, sweep, trial, run->sweep > 0 && room->every > 0 && !proposed);
    const double was = run->checking ? scales_density(run, density, GM_GIVEN_X, 0) : 0;
    double known = NAN;  // at the values as they are
    long trials = 0;
    const int backward = proposed && scales_turn_back(at, var);
    for (int turn = 0; turn < n; turn++) {
        const int i = backward ? n - 1 - turn : turn;
        for (long again = 0; again < of[i].count; again++) {
            const long k = backward ? of[i].count - 1 - again : again, e = scales_before(of, i) + k;
            GmScaleRoom *r = &room[e];
            if (!run->checking && !proposed && run->sweep % (long)r->every != 0) continue;
            wide *const x = &gm_at(wide, s, of[i].value)[k];
            const wide start = *x, width = slice_width(r->width, 1);
            Stream g = stream(at, var, STREAM_SCALES + (uint64_t)e);
            Slice sl;
            if (of[i].lo == 0 && of[i].hi == INFINITY) slice_begin_log(&sl, &g, start, of[i].lo, of[i].hi, width);
            else slice_begin(&sl, &g, start, of[i].lo, of[i].hi, width);
            while (slice_next(&sl)) {
                *x = sl.x;
                if (sl.phase == SLICE_AT_X0 && known == known) sl.log_density = known;
                else {
                    sl.log_density = scales_density(run, density, GM_MARGINAL, trials > 0);
                    trials++;
                    r->trials++;
                }
            }
            *x = sl.x;
            known = sl.failed || sl.x == sl.x0 ? NAN : sl.log_density;
            if (sl.failed) continue;
            // at first they may be made in few sweeps
            if (run->sweep < run->warmup) r->width = r->draws > 0 ? slice_adapt(width, &sl, start) : sl.right - sl.left;
            r->draws++;
            r->after = scales_coordinate(&of[i], *x);
            r->paired = 1;
            if (run->sweep >= end / 3 && run->sweep < end) pairs_add(&r->own, scales_coordinate(&of[i], start), r->after);
        }
    }
    // from then on it is measured what the updates cost (host/selection.c)
    if (selected && run->sweep >= run->warmup / 12) selected->scales += trial * (double)trials;
    if (!run->checking) return;
    const double is = scales_density(run, density, GM_GIVEN_X, 0);
    gm_ratio(run, run->chain, is - was, fabs(is) + fabs(was));
}

#endif

GM_LAUNCHES launch_scales(GmRun *run, void (*density)(GmRun *), uint32_t var, size_t tuning, int proposed, int selection, int sparse,
                          double sweep, double trial, const GmScaleOf *of, int n)
{
#if !defined(__CUDACC__)
    const double factor = sparse ? gm_sparse_work(sparse) : 0;
    if (run->device || run->like_gpu || run->timed || factor < 0 || gm_as_in_lesson()) return;
    gm_here(run);
    ON_CPU(run, gm_scales(run, density, var, (GmScaleRoom *)gm_at(wide, s, tuning), proposed, gm_selected(run, selection, run->chain),
                          sweep + factor, trial + factor, of, n));
#endif
}

#endif
