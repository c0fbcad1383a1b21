// em.c -- `fit map` of a program that gmc made with --method em: each sweep is an iteration of expectation-maximisation
// (compiler/graph/rewrite/expect.c), and none lowers the log density with latents integrated out, which is computed with the expectations.
// A decrease beyond rounding is a fault of the program, and ends it.
//
//   stops     when the remaining distance, by the rate at which changes shrink (Aitken; McLachlan and Krishnan 2008, section 4.9), is below
//             1e-10 of the log density and 1e-8 of every unknown
//   faster    after two iterations from q0 over q1 to q2, in coordinates without bounds (coordinates.c): to q0 + 2 a r + a^2 v, r = q1 -
//             q0, v = q2 - q1 - r, a = |r|/|v| (SQUAREM: Varadhan and Roland 2008, scheme 3). If the log density there is not above that of
//             q2, q2 stays; the next ones are then tried with a half as long, and only each second time
//   starts    three of four from a random partition: latents are laid on values at random, before the first iteration. The others, and all
//             with --init FILE, from unknowns at random places. After 30 iterations, and after 60, those that have not converged and are in
//             the lower half of those that remain are given up (short runs: Biernacki, Celeux and Govaert 2003)
//   meet      numbers that are equal and cannot pass each other (neighbouring cutpoints of a category without rows) are changed together
//             where iterations end. No change of one of them shows the log density along the face on which they lie. Where that gains,
//             iterations go on, with such a change after each two
//   no mode   a limit where a change of one number alone, or of two that bound each other (a + b < 1), would gain more than 0.01 of the log
//             density (by differences) is not called a mode
//   no bound  a start whose maximisation has no finite maximum ends there; the others go on. So does one that rises until rounding makes it
//             fall, as where an sd goes to 0 and its effects with it. From points that differ by rounding alone, the same iteration then
//             ends at other heights
//   runs off  where the last change leads on to infinity: the log density on that line is higher as far out again, and 10, 1000 and 100,000
//             times as far, as of coefficients under perfect separation. That is tested where iterations end, and after 500, 1000, 2000,
//             ... of them
//
// Starts run one after the other where they share the arrays of expectations, which may be as large as rows times values. That is so on a
// GPU, which has the State of one chain, and where the arrays of all starts would be large (memory.c). Each start then computes its
// expectations again, since the arrays have another's.
#include "fields.h"
#include "em.h"
#include "../device/modes.h"
#include "coordinates.h"
#include "device_inside.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_ITERATIONS = 20000,
    MOST_SLOPES = 400,
    LEAST_SLOPES = 40,
    LEAST_SLOPES_ON_WAY = 1,
    MOST_MET = 40,
    MOST_EDGES = 10,
    ROUND = 10,
    REPEATS = 4
};

static const long JUDGED[] = {30, 60};

static const double ALIKE = 1e-6, SEEN = 1e-13, STEEP = 1e-2, CLOSE_BY = 1e-6;

// What is within rounding. Where data and probabilities are single, expectations of rows are right to some 1e-7 of themselves, and so are
// all that is made of them.
typedef struct Tolerance {
    double close, level, falls;
} Tolerance;
static const Tolerance in_double = {1e-8, 1e-10, 1e-9}, in_single = {1e-5, 1e-8, 1e-7};

typedef struct Trace {
    long iteration;
    double log_density;
} Trace;

typedef struct Way {       // of one start
    double *last;          // the unknowns after the iteration before
    double *q[3], *trial;  // coordinates: where two iterations began, and where each has led
    double longest;        // how far, in units of |r|, a step may go
    long looks;            // iterations after which it is asked whether it runs off
    bool meets;            // numbers that have met were moved together
    bool waits;            // the last longer step has failed: two iterations without one
    Trace *trace;
    long n, room;
    char *runs_off;  // what does
} Way;

typedef struct Em {
    const GmModel *model;
    const GmMemory *memory;
    const GmOptions *options;
    GmRun *run, *on_device;  // on_device: of a GPU; NULL: all is done on the CPU
    GmEmEnd *end;
    Way *way;
    GmCoordinates coordinates;
    bool accelerates;
    long most;     // iterations of a start
    long n;        // numbers of each start
    bool in_turn;  // starts share arrays
    int there;     // whose expectations stand in them; -1: nobody's
    Tolerance within;
    bool single;
} Em;

static bool is_unknown(const GmField *f) { return gm_is_drawn_real(f) && !f->part_of; }

// The largest change of a number, relative to its size and to that of the largest of its array; `last` is brought up to date.
static double change_of(const Em *em, int chain)
{
    Way *w = &em->way[chain];
    double most = 0;
    long at = 0;
    for (int f = 0; f < em->model->n_state; f++) {
        if (!is_unknown(&em->model->state[f])) continue;
        const double *x = gm_state_array(em->model, em->memory, chain, f);
        const long n = gm_shape_size(&em->memory->shape[f]);
        double top = 0;
        for (long i = 0; i < n; i++) top = fmax(top, fabs(x[i]));
        for (long i = 0; i < n; i++, at++) {
            const double d = fabs(x[i] - w->last[at]) / (fabs(x[i]) + 1e-3 * top + 1e-100);
            if (d > most) most = d;
            w->last[at] = x[i];
        }
    }
    return most;
}

// The unknowns are where they were before the iteration.
static void put_last(const Em *em, int chain)
{
    const double *from = em->way[chain].last;
    for (int f = 0; f < em->model->n_state; f++) {
        if (!is_unknown(&em->model->state[f])) continue;
        const long n = gm_shape_size(&em->memory->shape[f]);
        memcpy(gm_state_array(em->model, em->memory, chain, f), from, (size_t)n * sizeof *from);
        from += n;
    }
}

static void keep_trace(Way *w, long iteration, double lp)
{
    if (w->n == w->room) {
        w->room = 2 * w->room + 64;
        w->trace = gm_grow(w->trace, (size_t)w->room, sizeof *w->trace);
    }
    w->trace[w->n++] = (Trace){iteration, lp};
}

// ---- one start ----

// Unknowns of a start to the device, or from there.
static void move_unknowns(const Em *em, int start, bool to_device)
{
    for (int f = 0; f < em->model->n_state; f++) {
        if (!is_unknown(&em->model->state[f])) continue;
        void *x = gm_state_array(em->model, em->memory, start, f);
        if (to_device) gm_device_send_field(em->on_device->device, em->memory, f, x);
        else gm_device_download(em->on_device->device, em->memory, 0, f, x);
    }
}

// Expectations, or an iteration, of a start; false: an update has failed. *lp: the log density after it.
static bool take(Em *em, GmRun *one, void (*what)(GmRun *), double *lp)
{
    int failed = 0;
    if (em->on_device) {
        GmRun *on = em->on_device;
        on->sweep = one->sweep;
        gm_device_turn(on->device, one->first_chain + one->chain, one->sweep);
        what(on);
        failed = gm_device_stumbled(on->device);
        *lp = failed ? -INFINITY : em->model->log_joint(on, 0);
        return !failed;
    }
    one->tried = &failed;
    what(one);
    one->tried = NULL;
    *lp = failed ? -INFINITY : em->model->log_joint(one, one->chain);
    return !failed;
}

// Expectations where the start stands, and the log density there; -INFINITY, where there is none: that is no fault.
static double density_here(Em *em, GmRun *one)
{
    double lp;
    if (em->on_device) move_unknowns(em, one->chain, true);
    take(em, one, em->model->expect_chain, &lp);
    if (em->in_turn) em->there = one->chain;
    return isnan(lp) ? -INFINITY : lp;
}

// Each unknown to a neighbour among doubles, or floats, this way or that.
static void round_unknowns(const Em *em, int chain, unsigned long long *bits)
{
    const double unit = em->single ? 1.2e-7 : 2.3e-16;
    for (int f = 0; f < em->model->n_state; f++) {
        if (!is_unknown(&em->model->state[f])) continue;
        double *x = gm_state_array(em->model, em->memory, chain, f);
        for (long i = 0, n = gm_shape_size(&em->memory->shape[f]); i < n; i++) {
            *bits = *bits * 6364136223846793005u + 1442695040888963407u;
            x[i] *= 1 + (*bits >> 63 ? unit : -unit);
        }
    }
}

// What rounding does to an iteration from `last`, where the log density is `before`, to lp: the largest change of either, with unknowns
// that are rounded otherwise, before and after it. The start is at `last` afterwards.
static double noise_of(Em *em, GmRun *one, double before, double lp)
{
    unsigned long long bits = 1;
    double most = 0;
    for (int k = 0; k < REPEATS; k++) {
        double again;
        put_last(em, one->chain);
        round_unknowns(em, one->chain, &bits);
        const double began = density_here(em, one);
        if (!take(em, one, em->model->iterate_chain, &again)) again = INFINITY;
        if (em->on_device) move_unknowns(em, one->chain, false);
        round_unknowns(em, one->chain, &bits);
        const double ends[3] = {began - before, again - lp, density_here(em, one) - lp};
        for (int i = 0; i < 3; i++) most = fmax(most, isnan(ends[i]) ? INFINITY : fabs(ends[i]));
    }
    put_last(em, one->chain);
    return most;
}

// An iteration. What it has gained; *change: of the unknowns.
static double iterate(Em *em, GmRun *one, double *change)
{
    GmEmEnd *e = &em->end[one->chain];
    Way *w = &em->way[one->chain];
    double lp;
    const bool failed = !take(em, one, em->model->iterate_chain, &lp);
    one->sweep++;
    e->iterations++;
    // an update whose density has no maximum: a component on one point, an improper conditional. Other starts may do better
    if (failed) {
        e->state = GM_ASCENT_UNBOUNDED;
        put_last(em, one->chain);
        return 0;
    }
    const double before = e->log_density, gain = lp - before;
    const bool fell = before > -INFINITY && gain < -em->within.falls * (1 + fabs(lp));
    const double noise = fell ? noise_of(em, one, before, lp) : 0;
    if (fell && noise > -0.1 * gain) {  // as far as doubles go: at a mode, or on the way to where there is none
        const double rose = w->n > 1 ? before - w->trace[w->n - 2].log_density : INFINITY;
        e->state = noise < STEEP ? GM_ASCENT_DONE : rose > STEEP ? GM_ASCENT_UNBOUNDED : GM_ASCENT_STUCK;
        return 0;
    }
    if (em->on_device) move_unknowns(em, one->chain, false);
    *change = change_of(em, one->chain);
    if (isnan(lp) || lp == -INFINITY) {
        e->state = w->n > 0 ? GM_ASCENT_UNBOUNDED : GM_ASCENT_NOWHERE;  // the former: where doubles end
        return 0;
    }
    e->log_density = lp;
    keep_trace(w, e->iterations, lp);
    if (lp > 1e300) e->state = GM_ASCENT_UNBOUNDED;
    if (fell) {
        e->fell = gain;
        e->state = GM_ASCENT_STUCK;
    }
    return gain;
}

// From two iterations to where they lead. The start is at q[2], or where the log density is higher.
static void accelerate(Em *em, GmRun *one)
{
    GmEmEnd *e = &em->end[one->chain];
    Way *w = &em->way[one->chain];
    const long n = em->coordinates.n;
    double rr = 0, vv = 0;
    for (long i = 0; i < n; i++) {
        const double r = w->q[1][i] - w->q[0][i], v = w->q[2][i] - w->q[1][i] - r;
        rr += r * r;
        vv += v * v;
    }
    const double a = fmin(sqrt(rr / vv), w->longest);
    if (!(a > 1.01) || !isfinite(rr) || !isfinite(a)) return;
    for (long i = 0; i < n; i++) {
        const double r = w->q[1][i] - w->q[0][i], v = w->q[2][i] - w->q[1][i] - r;
        w->trial[i] = w->q[0][i] + 2 * a * r + a * a * v;
    }
    gm_coordinates_put(&em->coordinates, one->chain, w->trial);
    const double lp = density_here(em, one);
    e->iterations++;
    if (lp > e->log_density) {
        e->log_density = lp;
        keep_trace(w, e->iterations, lp);
        w->longest *= a == w->longest ? 4 : 1;
    } else {
        gm_coordinates_put(&em->coordinates, one->chain, w->q[2]);
        e->log_density = density_here(em, one);
        w->longest = fmax(0.5 * a, 2);
        w->waits = true;
    }
    change_of(em, one->chain);
}

// Whether the last change leads off to infinity: however far out, the log density is higher.
static bool runs_off(Em *em, GmRun *one)
{
    static const double times[] = {1, 10, 1e3, 1e5};
    Way *w = &em->way[one->chain];
    const long n = em->coordinates.n;
    double top = 0, farthest = 0;
    long at = -1;
    for (long i = 0; i < n; i++) {
        const double step = w->q[2][i] - w->q[1][i], size = fabs(step) / (1 + fabs(w->q[2][i]));
        if (!gm_coordinates_outward(&em->coordinates, i, step)) continue;
        top = fmax(top, size);
        if (fabs(step) > farthest) {
            farthest = fabs(step);
            at = i;
        }
    }
    if (at < 0 || !isfinite(1 / top)) return false;
    gm_coordinates_put(&em->coordinates, one->chain, w->q[2]);
    const double here = density_here(em, one);
    bool higher = true;
    for (size_t k = 0; k < sizeof times / sizeof *times && higher; k++) {
        for (long i = 0; i < n; i++) {
            const double step = w->q[2][i] - w->q[1][i];
            w->trial[i] = w->q[2][i] + (gm_coordinates_outward(&em->coordinates, i, step) ? times[k] * step / top : 0);
        }
        gm_coordinates_put(&em->coordinates, one->chain, w->trial);
        higher = density_here(em, one) > here + SEEN * (1 + fabs(here));
    }
    gm_coordinates_put(&em->coordinates, one->chain, w->q[2]);
    density_here(em, one);
    if (higher) w->runs_off = gm_coordinates_name(&em->coordinates, one->chain, at);
    return higher;
}

// ---- numbers that meet ----

static double unit_of(double x) { return fmax(fabs(x), 1e-3); }

typedef struct Number {
    double *at, x;
} Number;  // where it stands, and its value there
typedef struct Met {
    Number *number;
    long n;
} Met;  // next to each other, in order

static bool is_ordered(const GmField *f) { return f->constraint == GM_ORDERED || f->constraint == GM_POSITIVE_ORDERED; }

static int by_value(const void *a, const void *b)
{
    const Number *p = a, *q = b;
    return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->at > q->at) - (p->at < q->at);
}

// All numbers that may meet, in order; to be freed. Those at an end of their support stay.
static Number *in_order(const Em *em, int chain, long *n)
{
    Number *all = gm_alloc((size_t)em->n + 1, sizeof *all);
    *n = 0;
    for (int f = 0; f < em->model->n_state; f++) {
        const GmField *field = &em->model->state[f];
        if (!is_unknown(field) || (field->constraint != GM_ANY && !is_ordered(field))) continue;
        const GmShape *s = &em->memory->shape[f];
        double *x = gm_state_array(em->model, em->memory, chain, f);
        for (long i = 0; i < gm_shape_size(s); i++) {
            const double near = fmin(x[i] - s->lower, s->upper - x[i]);
            if (isfinite(x[i]) && !(near < 1e-14 * fmax(1, fabs(x[i])))) all[(*n)++] = (Number){x + i, x[i]};
        }
    }
    qsort(all, (size_t)*n, sizeof *all, by_value);
    return all;
}

// Of each run of numbers that lie within rounding of their neighbours all; then what can go down, the first of them, and what can go up,
// the last. How many sets there are, MOST_MET at most.
static int find_met(Number *all, long n, Met *met)
{
    int k = 0;
    for (long begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && all[end].x - all[end - 1].x <= CLOSE_BY * unit_of(all[end].x); end++) {}
        for (long i = end; i > begin + 1 && k < MOST_MET; i--) met[k++] = (Met){all + begin, i - begin};
        for (long i = begin + 1; i + 1 < end && k < MOST_MET; i++) met[k++] = (Met){all + i, end - i};
    }
    return k;
}

// The log density where the set has moved by t, its order kept.
static double density_moved(Em *em, GmRun *one, const Met *m, double t)
{
    for (long i = 0; i < m->n; i++) {
        *m->number[i].at = m->number[i].x + t;
        if (i > 0 && *m->number[i].at <= *m->number[i - 1].at && m->number[i].x > m->number[i - 1].x)
            *m->number[i].at = nextafter(*m->number[i - 1].at, INFINITY);
    }
    return density_here(em, one);
}

// Each set to its maximum along the line on which it changes as one. Whether that has gained anything.
static bool move_met(Em *em, GmRun *one)
{
    GmEmEnd *e = &em->end[one->chain];
    Met met[MOST_MET];
    long n;
    Number *all = in_order(em, one->chain, &n);
    const int sets = find_met(all, n, met);
    bool gained = false;
    for (int k = 0; k < sets; k++) {
        const double here = e->log_density, seen = (em->single ? em->within.falls : SEEN) * (1 + fabs(here)),
                     h = 1e-4 * unit_of(met[k].number->x);
        const double up = density_moved(em, one, &met[k], h), down = density_moved(em, one, &met[k], -h), bend = 2 * here - up - down;
        double lp = -INFINITY;
        if (up > here + seen || down > here + seen || (isfinite(bend) && bend > 0 && 0.125 * (up - down) * (up - down) / bend > seen)) {
            Climb c;
            climb_begin_on(&c, 0, -INFINITY, INFINITY, h, 0);
            while (climb_next(&c)) c.log_density = density_moved(em, one, &met[k], c.x);
            lp = density_moved(em, one, &met[k], c.x);
        }
        if (!(lp > here + seen)) {
            density_moved(em, one, &met[k], 0);
            continue;
        }
        e->log_density = lp;
        gained = true;
        for (long i = 0; i < met[k].n; i++) met[k].number[i].x = *met[k].number[i].at;
    }
    free(all);
    if (gained) {
        keep_trace(&em->way[one->chain], e->iterations, e->log_density);
        change_of(em, one->chain);
    }
    return gained;
}

// Two iterations, and what they suggest.
static void cycle(Em *em, GmRun *one)
{
    GmEmEnd *e = &em->end[one->chain];
    Way *w = &em->way[one->chain];
    double change[2] = {0, 0}, gain = 0;
    for (int k = 0; k < 3; k++) {
        if (k > 0) gain = iterate(em, one, &change[k - 1]);
        if (e->state != GM_ASCENT_ON_ITS_WAY || gm_fault_raised() || (k == 1 && e->iterations >= em->most)) return;
        if (em->accelerates) gm_coordinates_take(&em->coordinates, one->chain, w->q[k]);
    }
    const double rate = change[0] > 0 ? fmin(change[1] / change[0], 0.999999) : 0;
    e->change = change[1] * fmax(1, rate / (1 - rate));
    const bool done = e->iterations > 3 && e->change < em->within.close &&
                      fabs(gain) * fmax(1, 1 / (1 - rate)) < em->within.level * (1 + fabs(e->log_density)),
               late = e->iterations >= w->looks;
    if (late) w->looks *= 2;
    if ((done || late) && em->accelerates && runs_off(em, one)) e->state = GM_ASCENT_RUNS_OFF;
    else if ((done || w->meets) && move_met(em, one)) w->meets = true;
    else if (done) e->state = GM_ASCENT_DONE;
    else if (em->accelerates && !w->waits && e->iterations < em->most) accelerate(em, one);
    else w->waits = false;
}

// ---- all starts ----

static bool goes(const Em *em, int c, long to)
{
    return em->end[c].state == GM_ASCENT_ON_ITS_WAY && em->end[c].iterations < to && em->end[c].iterations < em->most &&
           !gm_fault_raised() && !gm_interrupted() && !(em->on_device && gm_device_lost(em->on_device->device));
}

// Expectations of the sweep before the first iteration are random partitions.
static long before_first(const Em *em) { return em->options->init_file ? 1 : 0; }

static void go(Em *em, int c, int threads, long to)
{
    GmRun one = *em->run;
    one.chain = c;
    one.inner_threads = threads;
    one.sweep = em->end[c].iterations ? 1 + em->end[c].iterations : before_first(em);
    if (em->in_turn && em->there != c && goes(em, c, to)) density_here(em, &one);
    one.sweep = 1 + em->end[c].iterations;
    while (goes(em, c, to)) cycle(em, &one);
}

static void begin(Em *em, int c)
{
    GmRun one = *em->run;
    one.chain = c;
    one.inner_threads = em->in_turn ? em->options->threads : 1;
    one.sweep = before_first(em);
    change_of(em, c);
    em->end[c].log_density = density_here(em, &one);
    if (em->end[c].log_density == -INFINITY) em->end[c].state = GM_ASCENT_NOWHERE;
    if (one.sweep == 0) em->end[c].log_density = -INFINITY;  // of the unknowns before the partition: iterations are not measured by it
}

// All that go on, to so many iterations: each by a thread, or one after the other by all threads.
static int go_on(Em *em, long to)
{
    int going = 0, list[em->run->chains];
    for (int c = 0; c < em->run->chains; c++)
        if (goes(em, c, to)) list[going++] = c;
    if (going >= em->options->threads && !em->in_turn) {
#pragma omp parallel for schedule(dynamic, 1)
        for (int i = 0; i < going; i++) go(em, list[i], 1, to);
    } else
        for (int i = 0; i < going; i++) go(em, list[i], em->options->threads, to);
    return going;
}

static void leave_behind(Em *em)
{
    const int n = em->run->chains;
    bool left[n];
    double best = -INFINITY;
    int stand = 0;
    for (int c = 0; c < n; c++) {  // those that have ended without a mode do not count
        const bool stands = em->end[c].state == GM_ASCENT_ON_ITS_WAY || em->end[c].state == GM_ASCENT_DONE;
        stand += stands;
        if (stands) best = fmax(best, em->end[c].log_density);
    }
    for (int c = 0; c < n; c++) {
        int higher = 0;
        for (int k = 0; k < n; k++)
            higher += (em->end[k].state == GM_ASCENT_ON_ITS_WAY || em->end[k].state == GM_ASCENT_DONE) &&
                      em->end[k].log_density > em->end[c].log_density;
        left[c] =
            em->end[c].state == GM_ASCENT_ON_ITS_WAY && 2 * higher >= stand && em->end[c].log_density < best - ALIKE * (1 + fabs(best));
    }
    for (int c = 0; c < n; c++)
        if (left[c]) em->end[c].state = GM_ASCENT_LEFT;
}

static void say(const Em *em, long to, int going, bool bar)
{
    double best = -INFINITY;
    for (int c = 0; c < em->run->chains; c++) best = fmax(best, em->end[c].log_density);
    if (bar) {
        fprintf(stderr, "\riteration %ld, log density %.10g, %d start%s going on ", to, best, going, going == 1 ? "" : "s");
        fflush(stderr);
    } else if (em->options->refresh > 0 && to % em->options->refresh < ROUND)
        gm_note("iteration %ld: log density %.10g, %d start%s going on", to, best, going, going == 1 ? "" : "s");
}

// ---- the slope, by differences ----

typedef struct Edge {
    double *at, out;
} Edge;  // a number beyond which there is no density, on the side of `out`, 1 or -1

typedef struct Slope {
    GmRun *run;
    Em *em;
    int chain;
    long left;
    double most, here, gain;  // here: the log density; gain: the largest that a change would have
    Edge edge[MOST_EDGES];
    int edges;
} Slope;

static double density_at(Slope *s)
{
    GmRun one = *s->run;
    one.chain = s->chain;
    one.inner_threads = s->em->options->threads;
    one.sweep = 1;  // no random partition
    return density_here(s->em, &one);
}

// By the parabola through three places. Where that has no top nothing is said: derivatives by differences are no proof.
static void take_slope(Slope *s, double up, double down, double width)
{
    const double slope = fabs(up - down) / width, bend = (2 * s->here - up - down) / (0.25 * width * width);
    if (isfinite(slope) && slope > s->most) s->most = slope;
    if (bend > 0 && isfinite(bend)) s->gain = fmax(s->gain, 0.5 * slope * slope / bend);
}

// Of a number within bounds: by log(x - lower), log(upper - x), the log odds, or x in units of its own size.
static void slope_of_number(Slope *s, double *x, double lower, double upper)
{
    const double was = *x, near = fmin(was - lower, upper - was), unit = isfinite(near) ? near : unit_of(was), h = 1e-4 * unit;
    if (isfinite(near) && near < 1e-14 * fmax(1, fabs(was))) return;  // at an end of its support
    *x = was + h;
    const double up = density_at(s);
    *x = was - h;
    const double down = density_at(s);
    *x = was;
    take_slope(s, up, down, 2 * h / unit);
    if ((up == -INFINITY) != (down == -INFINITY) && s->edges < MOST_EDGES) s->edge[s->edges++] = (Edge){x, up == -INFINITY ? 1 : -1};
    s->left--;
}

// Two numbers that bound each other, as by a + b < 1: one increases, the other decreases.
static void slope_of_edges(Slope *s)
{
    for (int i = 0; i < s->edges; i++)
        for (int j = 0; j < i; j++) {
            const Edge *a = &s->edge[i], *b = &s->edge[j];
            const double x = *a->at, y = *b->at, unit = fmin(unit_of(x), unit_of(y)), h = 1e-4 * unit;
            double at[2];
            for (int side = 0; side < 2; side++) {  // what makes room does so by a little more, for rounding
                *a->at = x + (side ? -(1 + 1e-7) * h : h) * a->out;
                *b->at = y - (side ? -h : (1 + 1e-7) * h) * b->out;
                at[side] = density_at(s);
            }
            *a->at = x;
            *b->at = y;
            take_slope(s, at[0], at[1], 2e-4);
        }
}

// Of weights that add up to 1: by the logarithm of one of them, the others in proportion.
static void slope_of_simplex(Slope *s, double *x, long n)
{
    double *was = gm_alloc((size_t)n, sizeof *was);
    memcpy(was, x, (size_t)n * sizeof *was);
    for (long k = 0; k < n && s->left > 0; k++) {
        if (was[k] < 1e-200 || was[k] > 1 - 1e-14) continue;
        double at[2];
        for (int side = 0; side < 2; side++) {  // those that have vanished stay
            const double h = side ? -1e-4 : 1e-4, sum = 1 + was[k] * expm1(h);
            for (long j = 0; j < n; j++) x[j] = was[j] < 1e-200 ? was[j] : was[j] * (j == k ? exp(h) : 1) / sum;
            at[side] = density_at(s);
        }
        take_slope(s, at[0], at[1], 2e-4);
        s->left--;
    }
    memcpy(x, was, (size_t)n * sizeof *was);
    free(was);
}

// Of a covariance: by its elements, in units of the standard deviations.
static void slope_of_covariance(Slope *s, double *x, long n)
{
    for (long i = 0; i < n && s->left > 0; i++)
        for (long j = 0; j <= i && s->left > 0; j++) {
            const double was = x[i * n + j], unit = sqrt(x[i * n + i] * x[j * n + j]), h = 1e-5 * unit;
            x[i * n + j] = x[j * n + i] = was + h;
            const double up = density_at(s);
            x[i * n + j] = x[j * n + i] = was - h;
            const double down = density_at(s);
            x[i * n + j] = x[j * n + i] = was;
            take_slope(s, up, down, 2e-5);
            s->left--;
        }
}

// Of an ordered vector: of each number between its neighbours.
static void slope_of_ordered(Slope *s, double *x, long n, bool positive)
{
    for (long k = 0; k < n && s->left > 0; k++)
        slope_of_number(s, x + k, k ? x[k - 1] : positive ? 0 : -INFINITY, k + 1 < n ? x[k + 1] : INFINITY);
}

// Of numbers that have met: as one.
static void slope_of_met(Slope *s)
{
    GmRun one = *s->run;
    one.chain = s->chain;
    one.inner_threads = s->em->options->threads;
    one.sweep = 1;
    Met met[MOST_MET];
    long n;
    Number *all = in_order(s->em, s->chain, &n);
    const int sets = find_met(all, n, met);
    for (int k = 0; k < sets; k++) {
        const double unit = unit_of(met[k].number->x), up = density_moved(s->em, &one, &met[k], 1e-4 * unit),
                     down = density_moved(s->em, &one, &met[k], -1e-4 * unit);
        density_moved(s->em, &one, &met[k], 0);
        take_slope(s, up, down, 2e-4);
    }
    free(all);
}

// The largest derivative at some of the numbers, those that a stride meets: as many as the iterations have paid for, two passes each.
// Whether it is a mode is worth LEAST_SLOPES of them; where
// --iterations has ended the way that is not asked.
static double slope_at(Em *em, GmRun *run, int chain, double *gain)
{
    const long some = em->end[chain].iterations / 2, least = em->end[chain].state == GM_ASCENT_DONE ? LEAST_SLOPES : LEAST_SLOPES_ON_WAY;
    const long most = some < least ? least : some > MOST_SLOPES ? MOST_SLOPES : some;
    Slope s = {.run = run, .em = em, .chain = chain, .left = most};
    s.here = density_at(&s);
    const long stride = em->n / most + 1;
    for (int f = 0; f < em->model->n_state; f++) {
        const GmField *field = &em->model->state[f];
        const GmShape *shape = &em->memory->shape[f];
        const long n = gm_shape_size(shape);
        if (!is_unknown(field) || n == 0) continue;
        double *x = gm_state_array(em->model, em->memory, chain, f);
        const long size = shape->rank ? shape->dim[shape->rank - 1] : 1;
        for (long i = 0; i < n && s.left > 0;) {
            if (field->constraint == GM_SIMPLEX) slope_of_simplex(&s, x + i, size), i += size * (1 + stride / size);
            else if (field->constraint == GM_COVARIANCE)
                slope_of_covariance(&s, x + i, size), i += size * size * (1 + stride / (size * size));
            else if (is_ordered(field))
                slope_of_ordered(&s, x + i, size, field->constraint == GM_POSITIVE_ORDERED), i += size * (1 + stride / size);
            else if (field->constraint == GM_ANY) slope_of_number(&s, x + i, shape->lower, shape->upper), i += stride;
            else i = n;  // of others only the density says whether a change is possible
        }
    }
    slope_of_met(&s);
    slope_of_edges(&s);
    density_at(&s);
    *gain = s.gain;
    return s.most;
}

static bool write_traces(const Em *em, const GmOptions *o)
{
    char *path = gm_format("%s_trace.csv", o->output);
    GmFile out;
    const bool open = gm_output_open(&out, path, false);
    free(path);
    if (!open) return false;
    FILE *f = out.to;
    fprintf(f, "# log density of %s, latents integrated out, after each iteration\nstart,iteration,log_density\n", em->model->name);
    for (int c = 0; c < o->chains; c++)
        for (long i = 0; i < em->way[c].n; i++)
            fprintf(f, "%d,%ld,%.17g\n", c + 1, em->way[c].trace[i].iteration, em->way[c].trace[i].log_density);
    return gm_output_done(&out);
}

// Expectations fit into this machine's memory; else a message.
static bool memory_suffices(const Em *em)
{
    const GmOptions *o = em->options;
    const char *largest = "";
    const double bytes = (double)gm_memory_by_start(em->model, em->memory, &largest) * (em->in_turn ? 1 : o->chains),
                 memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (em->on_device || bytes <= memory) return true;
    gm_error("map: expectations of latents (%s and others) take %.3g GB, and this machine has %.3g GB of memory: fewer rows, or fewer "
             "values, or a sample of the rows",
             largest, bytes / 1e9, memory / 1e9);
    return false;
}

static void ways_open(Em *em)
{
    const GmModel *model = em->model;
    const GmOptions *o = em->options;
    em->accelerates = gm_coordinates_open(&em->coordinates, model, em->memory);
    for (int f = 0; f < model->n_state; f++)
        if (is_unknown(&model->state[f])) em->n += gm_shape_size(&em->memory->shape[f]);
    em->way = gm_alloc((size_t)o->chains, sizeof *em->way);
    for (int c = 0; c < o->chains; c++) {
        Way *w = &em->way[c];
        w->last = gm_alloc((size_t)em->n + 1, sizeof *w->last);
        w->trial = gm_alloc((size_t)em->n + 1, sizeof *w->trial);
        for (int k = 0; k < 3; k++) w->q[k] = gm_alloc((size_t)em->n + 1, sizeof *w->q[k]);
        w->longest = 4;
        w->looks = 500;
        em->end[c] = (GmEmEnd){.state = GM_ASCENT_ON_ITS_WAY, .log_density = -INFINITY, .slope = NAN};
    }
}

static void ways_close(Em *em)
{
    for (int c = 0; c < em->options->chains; c++) {
        Way *w = &em->way[c];
        em->end[c].runs_off = w->runs_off;
        free(w->last), free(w->trial), free(w->trace);
        for (int k = 0; k < 3; k++) free(w->q[k]);
    }
    free(em->way);
}

// All starts, until each has ended.
static void run_starts(Em *em)
{
    const GmOptions *o = em->options;
    const bool bar = !o->quiet && o->refresh == 0 && isatty(STDERR_FILENO);
#pragma omp parallel for schedule(dynamic) if (!em->in_turn)
    for (int c = 0; c < o->chains; c++) begin(em, c);
    int judged = 0;
    for (long to = ROUND;; to += ROUND) {
        const int going = go_on(em, to);
        if (going == 0) break;
        say(em, to, going, bar);
        if (judged < (int)(sizeof JUDGED / sizeof *JUDGED) && to >= JUDGED[judged]) {
            leave_behind(em);
            judged++;
        }
    }
    if (bar) fprintf(stderr, "\r%78s\r", "");
}

// The start with the largest density of those that ended well; -1: none. all: the iterations of all.
static int best_end(const Em *em, long *all)
{
    GmEmEnd *end = em->end;
    const GmOptions *o = em->options;
    int best = -1;
    *all = 0;
    for (int c = 0; c < o->chains; c++) {
        *all += end[c].iterations;
        if (o->iterations && end[c].state == GM_ASCENT_ON_ITS_WAY) end[c].state = GM_ASCENT_CUT;
        if ((end[c].state == GM_ASCENT_DONE || end[c].state == GM_ASCENT_CUT) && (best < 0 || end[c].log_density > end[best].log_density))
            best = c;
    }
    return best;
}

// Whether each start has risen, and where the best one ended.
static GmExit judge_ends(Em *em, int best)
{
    GmEmEnd *end = em->end;
    GmExit status = gm_interrupted() ? GM_EXIT_INTERRUPTED : GM_EXIT_OK;
    if (em->on_device && gm_device_lost(em->on_device->device)) status = em->on_device->device->status;
    else if (best >= 0 && !gm_fault_raised() && !em->single) {  // differences of what is single say nothing
        double gain;
        end[best].slope = slope_at(em, em->run, best, &gain);
        if (end[best].state == GM_ASCENT_DONE && gain > STEEP) end[best].state = GM_ASCENT_STUCK;
    }
    for (int c = 0; c < em->options->chains; c++)
        if (end[c].fell < 0) {
            gm_error("start %d: iteration %ld lowered the log density by %.3g: a maximisation is wrong. Please keep the model and "
                     "the data, and report it",
                     c + 1, end[c].iterations, -end[c].fell);
            status = GM_EXIT_FAULT;
        }
    return status;
}

GmExit gm_em(const GmModel *model, GmRun *run, GmRun *on_device, const GmMemory *m, const GmOptions *o, GmEmEnd *end)
{
    Em em = {.model = model,
             .memory = m,
             .options = o,
             .run = run,
             .on_device = on_device,
             .end = end,
             .most = o->iterations ? o->iterations : MOST_ITERATIONS,
             .in_turn = m->in_turn || on_device,
             .there = -1,
             .single = on_device && on_device->device->precision != GM_DOUBLE};
    em.within = em.single ? in_single : in_double;
    if (!memory_suffices(&em)) return GM_EXIT_MEMORY;
    const double began = gm_seconds();
    ways_open(&em);
    run->warmup = MOST_ITERATIONS * 2;
    run_starts(&em);
    long all;
    const int best = best_end(&em, &all);
    const double seconds = gm_seconds() - began;
    if (!gm_fault_raised() && !gm_interrupted())
        gm_note("%ld iterations of %d start%s in %.3g s, %.3g ms each; seed %llu", all, o->chains, o->chains > 1 ? "s" : "", seconds,
                1000 * seconds / (double)(all > 0 ? all : 1), (unsigned long long)o->seed);
    if (on_device && on_device->device->profile && all > 0) gm_device_profile_print(on_device->device, stdout, all);
    GmExit status = judge_ends(&em, best);
    if (status == GM_EXIT_OK && o->output && !write_traces(&em, o)) status = GM_EXIT_FAULT;
    ways_close(&em);
    return status;
}
