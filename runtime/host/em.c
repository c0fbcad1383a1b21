// em.c -- `fit map` of a program that gmc made with --method em: each sweep is an iteration of expectation-maximisation (compiler/graph/expect.c), and none lowers the log density with latents
// integrated out. That is computed after each of them: a fall beyond rounding is a fault of the program, and ends it.
//
//   stops     when what is left of the way, by the rate at which steps shrink (Aitken; McLachlan and Krishnan 2008, section 4.9), is below 1e-10 of the log density and 1e-8 of every unknown
//   starts    every other one from a random partition: latents are laid on values at random, in the first sweep. The others, and all with --init FILE, from unknowns at random places.
#include "em.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ITERATIONS = 20000, MOST_SLOPES = 400 };

static const double CLOSE = 1e-8, LEVEL = 1e-10, FALLS = 1e-9;

typedef struct Way {                     // of one start
    double *last;                        // the unknowns after the iteration before
    double  change, rate;                // of the unknowns, the largest; and of changes, how they shrink
    double  gain, floor;                 // of the last iteration; what rounding may take
    double *trace;
    long    n, room;
} Way;

typedef struct Em {
    const GmModel  *model;
    const GmMemory *memory;
    GmEmEnd        *end;
    Way            *way;
    long            n;                   // numbers of each start
} Em;

static bool is_unknown(const GmField *f) { return (f->role == GM_PARAMETER || f->role == GM_LATENT) && f->type != GM_INT && !f->part_of; }

// The largest change of a number, relative to its size and to that of the largest of its array; `last` is brought up to date.
static double change_of(const Em *em, int chain)
{
    Way *w = &em->way[chain];
    double most = 0;
    long at = 0;
    for (int f = 0; f < em->model->n_state; f++) {
        if (!is_unknown(&em->model->state[f]))
            continue;
        const double *x = gm_state_array(em->model, em->memory, chain, f);
        const long n = gm_shape_size(&em->memory->shape[f]);
        double top = 0;
        for (long i = 0; i < n; i++)
            top = fmax(top, fabs(x[i]));
        for (long i = 0; i < n; i++, at++) {
            const double d = fabs(x[i] - w->last[at]) / (fabs(x[i]) + 1e-3 * top + 1e-100);
            if (d > most)
                most = d;
            w->last[at] = x[i];
        }
    }
    return most;
}

static void keep_trace(Way *w, double lp)
{
    if (w->n == w->room) {
        w->room = 2 * w->room + 64;
        w->trace = gm_grow(w->trace, (size_t)w->room, sizeof *w->trace);
    }
    w->trace[w->n++] = lp;
}

// After an iteration, by each start for itself.
static void after_iteration(GmRun *one)
{
    Em *em = one->host;
    GmEmEnd *e = &em->end[one->chain];
    Way *w = &em->way[one->chain];
    if (e->state != GM_ASCENT_ON_ITS_WAY || gm_fault_raised())
        return;
    const double lp = em->model->log_joint(one, one->chain), before = e->log_density;
    const double change = change_of(em, one->chain);
    e->iterations++;
    if (isnan(lp) || lp == -INFINITY) {
        e->state = GM_ASCENT_NOWHERE;
        return;
    }
    e->log_density = lp;
    keep_trace(w, lp);
    if (lp > 1e300) {
        e->state = GM_ASCENT_UNBOUNDED;
        return;
    }
    if (w->n == 1) {
        w->change = change;
        return;
    }
    w->gain = lp - before;
    w->floor = FALLS * (1 + fabs(lp));
    if (w->gain < -w->floor) {
        e->fell = w->gain;
        e->state = GM_ASCENT_STUCK;
        return;
    }
    w->rate = w->change > 0 ? fmin(change / w->change, 0.999999) : 0;
    w->change = change;
    const double left = change * fmax(1, w->rate / (1 - w->rate));
    e->change = left;
    if (w->n > 3 && left < CLOSE && fabs(w->gain) * fmax(1, 1 / (1 - w->rate)) < LEVEL * (1 + fabs(lp)))
        e->state = GM_ASCENT_DONE;
}

// ---- the slope, by differences ----

typedef struct Slope { GmRun *run; const GmModel *model; int chain; long left; double most; } Slope;

static double density_at(Slope *s)
{
    GmRun one = *s->run;
    one.chain = s->chain;
    one.inner_threads = 1;
    s->model->expect_chain(&one);
    return s->model->log_joint(s->run, s->chain);
}

static void take_slope(Slope *s, double up, double down, double width)
{
    const double slope = fabs(up - down) / width;
    if (isfinite(slope) && slope > s->most)
        s->most = slope;
}

// Of a number within bounds: by log(x - lower), log(upper - x), the log odds, or x in units of its own size.
static void slope_of_number(Slope *s, double *x, double lower, double upper)
{
    const double was = *x, near = fmin(was - lower, upper - was), unit = isfinite(near) ? near : fmax(fabs(was), 1e-3), h = 1e-4 * unit;
    if (isfinite(near) && near < 1e-14 * fmax(1, fabs(was)))
        return;                          // at an end of its support
    *x = was + h;
    const double up = density_at(s);
    *x = was - h;
    const double down = density_at(s);
    *x = was;
    take_slope(s, up, down, 2 * h / unit);
    s->left--;
}

// Of weights that add up to 1: by the logarithm of one of them, the others in proportion.
static void slope_of_simplex(Slope *s, double *x, long n)
{
    double *was = gm_alloc((size_t)n, sizeof *was);
    memcpy(was, x, (size_t)n * sizeof *was);
    for (long k = 0; k < n && s->left > 0; k++) {
        if (was[k] < 1e-200 || was[k] > 1 - 1e-14)
            continue;
        double at[2];
        for (int side = 0; side < 2; side++) {       // those that have vanished stay
            const double h = side ? -1e-4 : 1e-4, sum = 1 + was[k] * expm1(h);
            for (long j = 0; j < n; j++)
                x[j] = was[j] < 1e-200 ? was[j] : was[j] * (j == k ? exp(h) : 1) / sum;
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

static double slope_at(const Em *em, GmRun *run, int chain)
{
    Slope s = { run, em->model, chain, MOST_SLOPES, 0 };
    for (int f = 0; f < em->model->n_state; f++) {
        const GmField *field = &em->model->state[f];
        const GmShape *shape = &em->memory->shape[f];
        const long n = gm_shape_size(shape);
        if (!is_unknown(field) || n == 0)
            continue;
        double *x = gm_state_array(em->model, em->memory, chain, f);
        const long size = shape->rank ? shape->dim[shape->rank - 1] : 1;
        for (long i = 0; i < n && s.left > 0;) {
            if (field->constraint == GM_SIMPLEX)
                slope_of_simplex(&s, x + i, size), i += size;
            else if (field->constraint == GM_COVARIANCE)
                slope_of_covariance(&s, x + i, size), i += size * size;
            else if (field->constraint == GM_ANY)
                slope_of_number(&s, x + i, shape->lower, shape->upper), i++;
            else
                i = n;                   // others are told by the density alone
        }
    }
    return s.most;
}

static bool write_traces(const Em *em, const GmOptions *o)
{
    char *path = gm_format("%s_trace.csv", o->output);
    FILE *f = fopen(path, "w");
    bool good = f != NULL;
    if (f) {
        fprintf(f, "# log density of %s, latents integrated out, after each iteration\nstart,iteration,log_density\n", em->model->name);
        for (int c = 0; c < o->chains; c++)
            for (long i = 0; i < em->way[c].n; i++)
                fprintf(f, "%d,%ld,%.17g\n", c + 1, i + 1, em->way[c].trace[i]);
        good = !ferror(f);
        good &= fclose(f) == 0;
    }
    if (!good)
        gm_error("%s: cannot be written", path);
    free(path);
    return good;
}

GmExit gm_em(const GmModel *model, GmRun *run, const GmMemory *m, const GmOptions *o, GmEmEnd *end)
{
    Em em = { .model = model, .memory = m, .end = end };
    for (int f = 0; f < model->n_state; f++)
        if (is_unknown(&model->state[f]))
            em.n += gm_shape_size(&m->shape[f]);
    em.way = gm_alloc((size_t)o->chains, sizeof *em.way);
    for (int c = 0; c < o->chains; c++) {
        em.way[c].last = gm_alloc((size_t)em.n + 1, sizeof *em.way[c].last);
        end[c] = (GmEmEnd){ .state = GM_ASCENT_ON_ITS_WAY, .log_density = -INFINITY };
    }
    run->host = &em;
    run->after = after_iteration;
    run->warmup = MOST_ITERATIONS + 2;
    run->batch = 1;
    bool going = true;
    run->sweep = o->init_file ? 1 : 0;
    model->expect(run);
    for (run->sweep = 1; going && run->sweep <= MOST_ITERATIONS && !gm_fault_raised() && !gm_interrupted(); run->sweep++) {
        model->sweep(run);
        going = false;
        for (int c = 0; c < o->chains; c++)
            going |= end[c].state == GM_ASCENT_ON_ITS_WAY;
    }
    GmExit status = gm_interrupted() ? GM_EXIT_INTERRUPTED : GM_EXIT_OK;
    #pragma omp parallel for schedule(dynamic)
    for (int c = 0; c < o->chains; c++)
        if (end[c].state == GM_ASCENT_DONE && !gm_fault_raised())
            end[c].slope = slope_at(&em, run, c);
    for (int c = 0; c < o->chains; c++)
        if (end[c].fell < 0) {
            gm_error("start %d: iteration %ld lowered the log density by %.3g: a step of maximisation is wrong. Please keep the model and the data, and report it", c + 1, end[c].iterations, -end[c].fell);
            status = GM_EXIT_FAULT;
        }
    if (status == GM_EXIT_OK && o->output && !write_traces(&em, o))
        status = GM_EXIT_FAULT;
    for (int c = 0; c < o->chains; c++)
        free(em.way[c].last), free(em.way[c].trace);
    free(em.way);
    run->after = NULL;
    return status;
}
