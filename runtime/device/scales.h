// scales.h -- unknowns that a joint normal is given, drawn one after the other with the joint normal integrated out.
//
//   target      exp(L(s) + g(s)'J(s)^-1 g(s)/2)/sqrt|J(s)|, s one of them and the others as they are: what is left of the joint density when x is integrated out. J and h are precision and shift of x given s, g = h - J x0, L the
//               log joint density at x0, which is x as it stands
//   method      slice sampling (slice.h), of the logarithm of what is positive. A trial puts s in its place and asks the program: it adds L up, collects J and h and factors J. The draw of x given them follows, so that
//               both are one block, and no other step may come between
//   how often   once in so many sweeps that it takes no longer than the rest of a sweep, or than ENOUGH multiply-adds. Early in the warm-up the correlation r is measured between what is drawn so and what the other steps
//               make of it in the next sweep: without these draws s has an autocorrelation time of (1 + r)/(1 - r) sweeps. Where that is less than 1.5 times what a draw takes, they are made for a tenth of the time only. Nothing but
//               sizes and draws of the warm-up enters, and nothing changes after it
//   --check     the draw claims L after it less L before it
//   test        tests/stat/scales.py
#ifndef GM_SCALES_H
#define GM_SCALES_H

typedef struct GmScaleOf { const char *name; size_t value; double lo, hi; long count; } GmScaleOf;

#if !defined(__CUDACC__)

typedef struct GmScaleRoom {                 // of one element, kept by the chain
    wide width, after, paired;               // of the slice; what was drawn last, in the slice's coordinate, and whether the next sweep is to be compared with it
    wide n, mean[2], squares[2], products;   // of such pairs
} GmScaleRoom;

enum { GM_SCALE_ROOM = sizeof(GmScaleRoom) / sizeof(wide), GM_SCALES_HEAD = 3 };       // head: sweeps from one draw to the next, draws, trials

static const double GM_SCALES_ENOUGH = 2e6, GM_SCALES_FEW_TRIALS = 7, GM_SCALES_SHARE = 0.1;

static double scales_coordinate(const GmScaleOf *of, wide x) { return of->lo >= 0 && x > 0 ? log(x) : x; }

static double scales_density(const GmRun *run, void (*density)(GmRun *), int which)
{
    GmRun one = *run;
    int fault = 0;
    one.marginal = which;
    one.tried = &fault;
    density(&one);
    return fault ? -INFINITY : one.result;
}

static void scales_pair(GmScaleRoom *r, double before, double after)
{
    const double d[2] = {before - r->mean[0], after - r->mean[1]};
    r->n++;
    for (int k = 0; k < 2; k++) r->mean[k] += d[k] / r->n;
    r->products += d[0] * (after - r->mean[1]);
    r->squares[0] += d[0] * (before - r->mean[0]);
    r->squares[1] += d[1] * (after - r->mean[1]);
}

// Sweeps from one draw to the next.
static double scales_every(const wide *head, const GmScaleRoom *room, long elements, double sweep, double trial, int measured)
{
    const double trials = head[1] > 0 ? head[2] / head[1] : GM_SCALES_FEW_TRIALS * (double)elements, draw = trials * trial;
    const double often = fmax(1, ceil(draw / fmax(sweep, GM_SCALES_ENOUGH)));
    double time = 1;
    if (!measured) return often;
    for (long k = 0; k < elements; k++) {
        const GmScaleRoom *r = &room[k];
        const double all = sqrt(r->squares[0] * r->squares[1]), c = all > 0 ? r->products / all : 1;
        time = fmax(time, c < 0.999 ? (1 + c) / (1 - c) : 2000);
    }
    return time * sweep > 1.5 * (often * sweep + draw) ? often : fmax(often, ceil(draw / (GM_SCALES_SHARE * sweep)));
}

static inline void gm_scales(GmRun *run, void (*density)(GmRun *), uint32_t var, wide *head, GmChoice *choice, double sweep, double trial, const GmScaleOf *of, int n)
{
    const State *const s = gm_of_chain(run, run->chain);
    const Sweep at = sweep_place(run, run->chain);
    GmScaleRoom *const room = (GmScaleRoom *)(head + GM_SCALES_HEAD);
    long elements = 0, end = run->warmup / 12 > 60 ? run->warmup / 12 : run->warmup / 2 < 60 ? run->warmup / 2 : 60;
    for (int i = 0; i < n; i++)
        for (long k = 0; k < of[i].count; k++, elements++) {
            GmScaleRoom *r = &room[elements];
            if (r->paired > 0 && run->sweep >= end / 3 && run->sweep <= end) scales_pair(r, r->after, scales_coordinate(&of[i], gm_at(wide, s, of[i].value)[k]));
            r->paired = 0;
        }
    if (run->sweep == 0 || (run->sweep == end && end >= 30)) head[0] = scales_every(head, room, elements, sweep, trial, run->sweep > 0);
    if (!run->checking && run->sweep % (long)head[0] != 0) return;
    const double was = run->checking ? scales_density(run, density, GM_GIVEN_X) : 0;
    double known = NAN;                      // at the values as they are
    long trials = 0, e = 0;
    for (int i = 0; i < n; i++)
        for (long k = 0; k < of[i].count; k++, e++) {
            GmScaleRoom *r = &room[e];
            wide *const x = &gm_at(wide, s, of[i].value)[k];
            const wide start = *x, width = slice_width(r->width, 1);
            Stream g = stream(at, var, ((uint64_t)1 << 39) + (uint64_t)e);
            Slice sl;
            if (of[i].lo == 0 && of[i].hi == INFINITY) slice_begin_log(&sl, &g, start, of[i].lo, of[i].hi, width);
            else slice_begin(&sl, &g, start, of[i].lo, of[i].hi, width);
            while (slice_next(&sl)) {
                *x = sl.x;
                if (sl.phase == SLICE_AT_X0 && known == known) sl.log_density = known;
                else {
                    sl.log_density = scales_density(run, density, GM_MARGINAL);
                    trials++;
                }
            }
            *x = sl.x;
            known = sl.failed || sl.x == sl.x0 ? NAN : sl.log_density;
            if (sl.failed) continue;
            if (run->sweep < run->warmup) r->width = head[1] > 0 ? slice_adapt(width, &sl, start) : sl.right - sl.left;       // at first they may be made in few sweeps
            r->after = scales_coordinate(&of[i], *x);
            r->paired = 1;
        }
    head[1]++;
    head[2] += (wide)trials;
    if (choice) choice->scales += trial * (double)trials;
    if (!run->checking) return;
    const double is = scales_density(run, density, GM_GIVEN_X);
    gm_claim(run, run->chain, is - was, fabs(is) + fabs(was));
}

#endif

GM_LAUNCHES launch_scales(GmRun *run, void (*density)(GmRun *), uint32_t var, size_t tuning, int competition, int sparse, double sweep, double trial, const GmScaleOf *of, int n)
{
#if !defined(__CUDACC__)
    const double factor = sparse ? gm_sparse_work(sparse) : 0;
    if (run->device || run->like_gpu || factor < 0) return;
    gm_here(run);
    ON_CPU(run, gm_scales(run, density, var, gm_at(wide, s, tuning), gm_choice(run, competition, run->chain), sweep + factor, trial + factor, of, n));
#endif
}

#endif
