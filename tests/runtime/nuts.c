// If this failed, unknowns drawn together by NUTS or HMC would not have their joint distribution, or trees would not be those of the
// method. Or warm-up would not learn step size and metric.
//
// 100,000 draws a law. Bounds as in check.h: false alarms 2e-9 for z, 7e-10 for KS; a bound that differs is given where it is used.
#define DRAWS 100000
#include "check.h"
#include "../../runtime/device/nuts.h"
#include "../../runtime/device/normal.h"
#include "../../runtime/device/gamma.h"
#include "chained_normals.h"
#include <gsl/gsl_cdf.h>

// ---- densities: value up to a constant, gradient in g ----

typedef double Density(long n, const double *x, double *g);

static void draw_chained(Stream *g, long n, double *x)
{
    for (long i = 0; i < n; i++) x[i] = i ? RHO * x[i - 1] + sqrt(1 - RHO * RHO) * normal_standard(g) : normal_standard(g);
}

static double standard(long n, const double *x, double *g)
{
    double lp = 0;
    for (long i = 0; i < n; i++) {
        lp -= 0.5 * x[i] * x[i];
        g[i] = -x[i];
    }
    return lp;
}

// sd 10^(-3), ..., 10^3, means 0, 1, 2, ... in units of sd.
static double scale_of(long n, long i) { return n > 1 ? pow(10, -3 + 6.0 * (double)i / (double)(n - 1)) : 1; }
static double scaled(long n, const double *x, double *g)
{
    double lp = 0;
    for (long i = 0; i < n; i++) {
        const double s = scale_of(n, i), z = x[i] / s - (double)i;
        lp -= 0.5 * z * z;
        g[i] = -z / s;
    }
    return lp;
}

#define SHAPE 0.7
static double log_gamma(long n, const double *x, double *g)     // exp(x) ~ gamma(SHAPE, 1)
{
    (void)n;
    g[0] = SHAPE - exp(x[0]);
    return SHAPE * x[0] - exp(x[0]);
}

static double banana(long n, const double *x, double *g)        // x ~ normal(0, 1), y ~ normal(x^2 - 1, 0.7)
{
    (void)n;
    const double e = (x[1] - x[0] * x[0] + 1) / 0.49;
    g[0] = -x[0] + 2 * x[0] * e;
    g[1] = -e;
    return -0.5 * x[0] * x[0] - 0.5 * 0.49 * e * e;
}

static double bounded(long n, const double *x, double *g)       // exponential: beyond 0 nothing is finite
{
    (void)n;
    g[0] = x[0] > 0 ? -1 : NAN;
    return x[0] > 0 ? -x[0] : -INFINITY;
}

// exp(x_i) ~ gamma(50 (i + 1), 1): far above its mode the gradient is that of an exponential.
static double counts(long n, const double *x, double *g)
{
    double lp = 0;
    for (long i = 0; i < n; i++) {
        const double a = 50 * (double)(i + 1), r = exp(x[i]);
        lp += a * x[i] - r;
        g[i] = a - r;
    }
    return lp;
}

static double precision;
static double given_precision(long n, const double *x, double *g)
{
    double lp = 0;
    for (long i = 0; i < n; i++) {
        lp -= 0.5 * precision * x[i] * x[i];
        g[i] = -precision * x[i];
    }
    return lp;
}

static double funnel(long n, const double *x, double *g)        // v ~ normal(0, 3), the others normal(0, exp(v / 2))
{
    const double v = x[0];
    double squares = 0;
    for (long i = 1; i < n; i++) {
        squares += x[i] * x[i];
        g[i] = -x[i] * exp(-v);
    }
    g[0] = -v / 9 + 0.5 * squares * exp(-v) - 0.5 * (double)(n - 1);
    return -v * v / 18 - 0.5 * squares * exp(-v) - 0.5 * (double)(n - 1) * v;
}

// ---- chains ----

static long total_evaluations, total_leapfrogs, total_divergent, total_failed;

static Nuts *machine(long n)
{
    static wide *room;
    room = (wide *)realloc(room, sizeof(wide) * (size_t)nuts_room(n));
    memset(room, 0, sizeof(wide) * (size_t)nuts_room(n));
    return nuts_of(room, n);
}

static void transition(Nuts *m, Stream *g, const double *x, const NutsSettings *s, long sweep, long warmup, Density *f)
{
    nuts_begin(m, g, x, s, sweep, warmup);
    while (nuts_next(m)) m->log_density = f(m->n, nuts_position(m), nuts_gradient(m));
    total_evaluations += m->evaluations;
    total_leapfrogs += m->n_leapfrog;
    total_divergent += m->divergent;
    total_failed += m->failed;
}

// A chain that nothing else updates: every sweep continues with the density and gradient of the last.
static void sweep_alone(Nuts *m, uint32_t variable, const NutsSettings *s, long sweep, long warmup, Density *f)
{
    const Sweep at = { SEED, 0, (uint64_t)sweep };
    Stream g = stream(at, variable, 0);
    NutsSettings here = *s;
    here.same_density = sweep > 0;
    transition(m, &g, NULL, &here, sweep, warmup, f);
}

// ---- the method, as it is written recursively ----

typedef struct Point { double x[32], p[32], g[32], lp; } Point;
typedef struct Tree { double first[32], last[32], sum[32]; } Tree;

static struct {
    long     n;
    Density *f;
    double   step, start, weight, accepted;
    int      n_leapfrog, divergent, leaf;
    Stream  *g;
    double   metric[32];
    Point    trial;
    double   trial_energy;
} R;

static double energy_of(const Point *z)
{
    double h = -z->lp;
    for (long i = 0; i < R.n; i++) h += 0.5 * R.metric[i] * z->p[i] * z->p[i];
    return h;
}

static void leapfrog(Point *z, double step)
{
    for (long i = 0; i < R.n; i++) {
        z->p[i] += 0.5 * step * z->g[i];
        z->x[i] += step * R.metric[i] * z->p[i];
    }
    z->lp = R.f(R.n, z->x, z->g);
    for (long i = 0; i < R.n; i++) z->p[i] += 0.5 * step * z->g[i];
}

static double along(const double *p, const double *sum)
{
    double d = 0;
    for (long i = 0; i < R.n; i++) d += R.metric[i] * p[i] * sum[i];
    return d;
}

static void add(double *out, const double *a, const double *b)
{
    for (long i = 0; i < R.n; i++) out[i] = a[i] + b[i];
}

static int joined(Tree *t, const Tree *a, const Tree *b)
{
    double sum[32];
    memcpy(t->first, a->first, sizeof t->first);
    memcpy(t->last, b->last, sizeof t->last);
    add(t->sum, a->sum, b->sum);
    int on = along(t->first, t->sum) > 0 && along(t->last, t->sum) > 0;
    add(sum, a->sum, b->first);
    on = on && along(a->first, sum) > 0 && along(b->first, sum) > 0;
    add(sum, b->sum, a->last);
    return on && along(a->last, sum) > 0 && along(b->last, sum) > 0;
}

static int build(int depth, int side, Point *z, Tree *t)
{
    if (depth > 0) {
        Tree a, b;
        return build(depth - 1, side, z, &a) && build(depth - 1, side, z, &b) && joined(t, &a, &b);
    }
    leapfrog(z, side * R.step);
    R.n_leapfrog++;
    const double h = energy_of(z);
    if (!(h - R.start <= 1000) || h == -INFINITY) {
        R.divergent = 1;
        return 0;
    }
    const double w = exp(R.start - h);
    R.accepted += w < 1 ? w : 1;
    R.weight += w;
    if (R.leaf++ == 0 || uniform_open(R.g) * R.weight < w) {
        R.trial = *z;
        R.trial_energy = h;
    }
    memcpy(t->first, z->p, sizeof t->first);
    memcpy(t->last, z->p, sizeof t->last);
    memcpy(t->sum, z->p, sizeof t->sum);
    return 1;
}

// One transition; the draw in z. Its depth.
static int recursive(Point *z, double *energy)
{
    Stream part = *R.g;
    for (long i = 0; i < R.n; i++) {
        if (i % 2 == 0) part = stream_part(R.g, (uint64_t)i / 2);
        z->p[i] = normal_standard(&part) / sqrt(R.metric[i]);
    }
    stream_pass(R.g);
    Point end[2] = { *z, *z };
    Tree  tree, half, whole;
    memcpy(tree.first, z->p, sizeof tree.first);
    memcpy(tree.last, z->p, sizeof tree.last);
    memcpy(tree.sum, z->p, sizeof tree.sum);
    R.start = *energy = energy_of(z);
    R.accepted = R.n_leapfrog = R.divergent = 0;
    double weight = 1;
    int depth = 0;
    while (depth < NUTS_DEPTH) {
        const int side = uniform_open(R.g) < 0.5 ? -1 : 1;
        R.weight = R.leaf = 0;
        if (!build(depth, side, &end[side > 0], &half)) break;
        depth++;
        if (uniform_open(R.g) * weight < R.weight) {
            *z = R.trial;
            *energy = R.trial_energy;
        }
        weight += R.weight;
        // The tree in the direction of the subtree: its first end is the other one.
        if (side < 0) {
            double swap[32];
            memcpy(swap, tree.first, sizeof swap);
            memcpy(tree.first, tree.last, sizeof swap);
            memcpy(tree.last, swap, sizeof swap);
        }
        const int on = joined(&whole, &tree, &half);
        tree = whole;
        if (side < 0) {
            memcpy(tree.first, whole.last, sizeof tree.first);
            memcpy(tree.last, whole.first, sizeof tree.last);
        }
        if (!on) break;
    }
    return depth;
}

static void same_trees(const char *what, long n, Density *f, double least_step, double most_step, long count)
{
    NutsSettings s;
    memset(&s, 0, sizeof s);
    s.metric = NUTS_GIVEN;
    Nuts  *m = machine(n);
    Point  z;
    long   different = 0, steps = 0, divergent = 0, deepest = 0, early = 0;
    double worst = 0;
    for (long i = 0; i < n; i++) z.x[i] = 0.3;
    for (long k = 0; k < count; k++) {
        const Sweep at = { SEED, 1, (uint64_t)k };
        Stream a = stream(at, 11, 0), b = a;
        s.step = R.step = least_step * pow(most_step / least_step, (double)k / (double)count);
        R.n = n;
        R.f = f;
        R.g = &b;
        for (long i = 0; i < n; i++) R.metric[i] = nuts_metric(m)[i] = i % 2 ? 0.5 : 2;
        z.lp = f(n, z.x, z.g);
        double energy;
        transition(m, &a, z.x, &s, k, 0, f);
        const int depth = recursive(&z, &energy);
        different += m->treedepth != depth || m->n_leapfrog != R.n_leapfrog || m->divergent != R.divergent;
        for (long i = 0; i < n; i++) worst = fmax(worst, fabs(z.x[i] - nuts_position(m)[i]));
        worst = fmax(worst, fmax(fabs(energy - m->energy), fabs(z.lp - m->log_density)));
        worst = fmax(worst, fabs(m->accept_stat - R.accepted / R.n_leapfrog));
        steps += m->n_leapfrog;
        divergent += m->divergent;
        deepest = m->treedepth > deepest ? m->treedepth : deepest;
        early += m->n_leapfrog != (1 << m->treedepth) - 1;
        for (long i = 0; i < n; i++) z.x[i] = nuts_position(m)[i];
        if (k % 20 == 0)
            for (long i = 0; i < n; i++) z.x[i] *= 0.5;
    }
    printf("     %-60s %ld steps, deepest %ld, %ld ended within a subtree, %ld divergent\n", what, steps, deepest, early, divergent);
    check(what, "different", (double)different, 0);
    check(what, "apart", worst, 1e-6);
}

// ---- invariance ----

typedef void Exact(Stream *g, long n, double *x);
typedef double Score(const double *x);         // standard uniform, for a draw of the law

static void exact_log_gamma(Stream *g, long n, double *x) { (void)n; x[0] = log(gamma_shape_rate(g, SHAPE, 1)); }
static void exact_bounded(Stream *g, long n, double *x)   { (void)n; x[0] = exponential_standard(g); }
static void exact_banana(Stream *g, long n, double *x)
{
    (void)n;
    x[0] = normal_standard(g);
    x[1] = x[0] * x[0] - 1 + 0.7 * normal_standard(g);
}

static double score_first(const double *x)     { return gsl_cdf_ugaussian_P(x[0]); }
static double score_fifth(const double *x)     { return gsl_cdf_ugaussian_P(x[4]); }
static double score_gap(const double *x)       { return gsl_cdf_ugaussian_P((x[1] - x[0]) / sqrt(2 * (1 - RHO))); }
static double score_pair(const double *x)      { return gsl_cdf_ugaussian_P((x[3] + x[4]) / sqrt(2 * (1 + RHO))); }
static double score_length(const double *x)
{
    return gsl_cdf_chisq_P(x[0] * x[0] + (x[1] - RHO * x[0]) * (x[1] - RHO * x[0]) / (1 - RHO * RHO), 2);
}
static double score_log_gamma(const double *x) { return gsl_cdf_gamma_P(exp(x[0]), SHAPE, 1); }
static double score_exponential(const double *x) { return gsl_cdf_exponential_P(x[0], 1); }
static double score_banana(const double *x)    { return gsl_cdf_ugaussian_P((x[1] - x[0] * x[0] + 1) / 0.7); }

// Exact draws, `times` transitions with a metric that is wrong by up to 7 in variance, and the law again. Also that it changes.
static void invariant(const char *what, long n, Density *f, Exact *exact, int times, const NutsSettings *s, Score *const *scores)
{
    static double all[DRAWS][30];
    Nuts *m = machine(n);
    const uint32_t variable = next_variable++;
    long stuck = 0;
    total_failed = total_leapfrogs = total_divergent = 0;
    for (long k = 0; k < DRAWS; k++) {
        const Sweep at = { SEED, 2, 0 };
        Stream g = stream(at, variable, (uint64_t)k << 8);
        double x[30];
        exact(&g, n, x);
        const double before = x[0];
        for (int t = 0; t < times; t++) {
            for (long i = 0; i < n; i++) nuts_metric(m)[i] = i % 3 == 0 ? 0.4 : i % 3 == 1 ? 1 : 2.7;
            stream_pass(&g);
            transition(m, &g, x, s, 0, 0, f);
            g = m->g;
            for (long i = 0; i < n; i++) x[i] = nuts_position(m)[i];
        }
        stuck += x[0] == before;
        memcpy(all[k], x, sizeof x);
    }
    printf("     %-60s %.1f steps a transition, %.2g divergent\n", what, (double)total_leapfrogs / DRAWS / times,
           (double)total_divergent / DRAWS / times);
    check(what, "failed", (double)total_failed, 0);
    check(what, "stuck", (double)stuck, 0.5 * DRAWS);
    for (int k = 0; scores[k]; k++) {
        for (long i = 0; i < DRAWS; i++) draws[i] = scores[k](all[i]);
        check_moments(what, 0.5, 1.0 / 12);
        CHECK_KS(what, x);
    }
}

static void invariances(void)
{
    static Score *const gauss[] = {score_first, score_fifth, score_gap, score_pair, score_length, NULL},
                        *const skewed[] = {score_log_gamma, NULL}, *const bent[] = {score_first, score_banana, NULL},
                        *const half[] = {score_exponential, NULL};
    NutsSettings s;
    memset(&s, 0, sizeof s);
    s.metric = NUTS_GIVEN;
    s.step = 0.45;
    invariant("NUTS, 5 normals in a chain", 5, chained, draw_chained, 1, &s, gauss);
    invariant("NUTS, 30 normals in a chain", 30, chained, draw_chained, 1, &s, gauss);
    s.step = 0.6;
    invariant("NUTS, 5 normals, steps near the limit, 3 transitions", 5, chained, draw_chained, 3, &s, gauss);
    s.max_depth = 2;
    invariant("NUTS, 5 normals, two doublings, 3 transitions", 5, chained, draw_chained, 3, &s, gauss);
    s.max_depth = 0;
    s.step = 1.5;
    invariant("NUTS, log gamma, 3 transitions", 1, log_gamma, exact_log_gamma, 3, &s, skewed);
    s.step = 0.5;
    invariant("NUTS, banana, 3 transitions", 2, banana, exact_banana, 3, &s, bent);
    invariant("NUTS, exponential, -infinity beyond its end, 3 transitions", 1, bounded, exact_bounded, 3, &s, half);
    s.steps = 7;
    s.step = 0.4;
    invariant("HMC, 5 normals in a chain, 3 transitions", 5, chained, draw_chained, 3, &s, gauss);
    invariant("HMC, banana, 3 transitions", 2, banana, exact_banana, 3, &s, bent);
    s.steps = 2;
    invariant("HMC, exponential, 3 transitions", 1, bounded, exact_bounded, 3, &s, half);
}

// ---- the integrator ----

// `count` leapfrog steps of the machine's own; the energy afterwards.
static double steps_of(Nuts *m, int side, double step, long count, Density *f)
{
    double h = 0;
    m->side = side;
    nuts_set_step(m, step);
    for (long k = 0; k < count; k++) {
        nuts_kick_and_drift(m);
        m->log_density = f(m->n, nuts_position(m), nuts_gradient(m));
        h = nuts_arrive(m);
    }
    return h;
}

static void integrator(void)
{
    const long n = 5;
    Nuts *m = machine(n);
    double back = 0, ratio = 0, error[2] = { 0, 0 }, sum = 0, squares = 0;
    m->cooling = 1;
    nuts_fill(m, NUTS_METRIC, 1);
    for (long k = 0; k < DRAWS; k++) {
        const Sweep at = { SEED, 3, (uint64_t)k };
        Stream g = stream(at, 12, 0);
        double x[5];
        draw_chained(&g, n, x);
        m->g = g;
        stream_pass(&m->g);
        double *position = nuts_position(m), p[5];
        for (int half = 0; half < 2; half++) {
            memcpy(position, x, sizeof x);
            m->log_density = chained(n, position, nuts_gradient(m));
            if (half == 0) {
                m->draw_density = m->log_density;
                nuts_push(m);
                memcpy(p, nuts_vector(m, NUTS_MOMENTUM), sizeof p);
            }
            memcpy(nuts_vector(m, NUTS_MOMENTUM), p, sizeof p);
            const double d = steps_of(m, 1, half ? 0.05 : 0.1, half ? 28 : 14, chained) - m->start;
            error[half] += d * d;
            if (half == 0) {
                sum += exp(-d);
                squares += exp(-2 * d);
            } else if (k < 1000) {
                steps_of(m, -1, 0.05, 28, chained);
                for (long i = 0; i < n; i++) back = fmax(back, fabs(position[i] - x[i]) + fabs(nuts_vector(m, NUTS_MOMENTUM)[i] - p[i]));
            }
        }
    }
    check("28 steps and 28 back", "apart", back, 1e-10);
    ratio = sqrt(error[0] / error[1]);
    check("error of the energy, halved step: 4", "ratio", fabs(ratio - 4), 0.2);
    const double mean = sum / DRAWS, se = sqrt((squares / DRAWS - mean * mean) / DRAWS);
    check("E exp(-dH) = 1", "z", fabs(mean - 1) / se, BOUND_Z);
}

// ---- warm-up ----

// Mean and variance of coordinate i against known ones, from draws of a chain: standard errors from 50 batches. A t of 49 degrees of
// freedom above 8 is a matter of 2e-10.
static void batch_check(const char *what, const double *x, long count, double mean, double variance)
{
    for (int power = 1; power <= 2; power++) {
        double sum = 0, squares = 0;
        for (int b = 0; b < 50; b++) {
            double s = 0;
            for (long k = b * (count / 50); k < (b + 1) * (count / 50); k++) s += power == 1 ? x[k] : (x[k] - mean) * (x[k] - mean);
            s /= (double)(count / 50);
            sum += s;
            squares += s * s;
        }
        sum /= 50;
        const double se = sqrt((squares / 50 - sum * sum) / 49);
        check(what, power == 1 ? "t mean" : "t var", fabs(sum - (power == 1 ? mean : variance)) / se, 8);
    }
}

typedef struct Run { double accept, leapfrogs, step, divergent, warm_leapfrogs; } Run;

static double kept[7][20000];

static Run run(Nuts *m, uint32_t variable, const NutsSettings *s, long warmup, long count, Density *f)
{
    Run r = { 0, 0, 0, 0, 0 };
    for (long k = 0; k < warmup + count; k++) {
        sweep_alone(m, variable, s, k, warmup, f);
        if (k < warmup) {
            r.warm_leapfrogs += m->n_leapfrog;
            continue;
        }
        r.accept += m->accept_stat / (double)count;
        r.leapfrogs += m->n_leapfrog / (double)count;
        r.divergent += m->divergent;
        r.step = m->stepsize;
        for (long i = 0; i < m->n && i < 7; i++) kept[i][k - warmup] = nuts_position(m)[i];
    }
    return r;
}

static void warm_up(void)
{
    char what[100];
    NutsSettings s;
    memset(&s, 0, sizeof s);
    // Scales from 0.001 to 1000.
    Nuts *m = machine(7);
    for (long i = 0; i < 7; i++) nuts_position(m)[i] = 1;
    total_evaluations = total_leapfrogs = 0;
    Run r = run(m, 21, &s, 1000, 10000, scaled);
    printf("     scales 1e-3 to 1e3: step %.3f, acceptance %.3f, %.1f steps a draw, %.1f in warm-up\n", r.step, r.accept, r.leapfrogs,
           r.warm_leapfrogs / 1000);
    check("scales 1e-3 to 1e3", "acceptance", fabs(r.accept - 0.8), 0.07);
    check("scales 1e-3 to 1e3", "steps", r.leapfrogs, 8);
    check("scales 1e-3 to 1e3", "diverged", r.divergent, 0);
    check("one evaluation a step, few others", "extra", (double)(total_evaluations - total_leapfrogs), 60);
    for (long i = 0; i < 7; i++) {
        const double sd = scale_of(7, i);
        snprintf(what, sizeof what, "scales 1e-3 to 1e3, coordinate %ld", i);
        check(what, "metric", fabs(nuts_metric(m)[i] / (sd * sd) - 1), 1e-6);      // gradients are linear: no noise
        batch_check(what, kept[i], 10000, (double)i * sd, sd * sd);
    }
    // Correlated: the Fisher divergence's metric is the sd of x_i over that of its gradient, sqrt((1 - RHO^2) / (1 + RHO^2)) within the
    // chain, sqrt(1 - RHO^2) at its ends.
    m = machine(5);
    r = run(m, 22, &s, 1000, 10000, chained);
    printf("     5 normals in a chain: step %.3f, acceptance %.3f, %.1f steps a draw\n", r.step, r.accept, r.leapfrogs);
    check("5 normals in a chain", "acceptance", fabs(r.accept - 0.8), 0.07);
    check("5 normals in a chain", "metric", fabs(nuts_metric(m)[2] / sqrt((1 - RHO * RHO) / (1 + RHO * RHO)) - 1),
          0.3);  // of some 100 draws
    check("5 normals in a chain", "metric", fabs(nuts_metric(m)[0] / sqrt(1 - RHO * RHO) - 1), 0.3);
    for (long i = 0; i < 5; i++) batch_check("5 normals in a chain", kept[i], 10000, 0, 1);
    // n = 1 and n = 1000. An energy error of a normal is step^2 / 8 times the change of x^2, and changes along the trajectory have half
    // their greatest variance: acceptance 0.8 needs the sum's variance n step^4 / 32 to be 0.507^2.
    m = machine(1);
    r = run(m, 23, &s, 300, 10000, standard);
    printf("     1 normal: step %.3f, acceptance %.3f, %.1f steps a draw\n", r.step, r.accept, r.leapfrogs);
    check("1 normal", "steps", r.leapfrogs, 4);
    batch_check("1 normal", kept[0], 10000, 0, 1);
    m = machine(1000);
    for (long i = 0; i < 1000; i++) nuts_position(m)[i] = 2 * sin((double)i);
    r = run(m, 24, &s, 400, 1000, standard);
    printf("     1000 normals: step %.3f, acceptance %.3f, %.1f steps a draw\n", r.step, r.accept, r.leapfrogs);
    check("1000 normals", "step", fabs(r.step / pow(32 * 0.257 / 1000, 0.25) - 1), 0.2);
    check("1000 normals", "acceptance", fabs(r.accept - 0.8), 0.05);
    check("1000 normals", "steps", r.leapfrogs, 16);
    batch_check("1000 normals", kept[0], 1000, 0, 1);
    // Short warm-ups, from far out.
    for (int w = 0; w < 3; w++) {
        const long warmup = w == 0 ? 0 : w == 1 ? 20 : 100;
        m = machine(7);
        for (long i = 0; i < 7; i++) nuts_position(m)[i] = scale_of(7, i) * ((double)i + 3 * sin((double)i + 1));
        r = run(m, 25, &s, warmup, 5000, scaled);
        snprintf(what, sizeof what, "scales 1e-3 to 1e3 after a warm-up of %ld", warmup);
        printf("     %-60s step %.3f, acceptance %.3f, %.1f steps a draw, %.1f in warm-up\n", what, r.step, r.accept, r.leapfrogs,
               r.warm_leapfrogs / (double)(warmup + !warmup));
        if (warmup) {
            check(what, "acceptance", fabs(r.accept - 0.8), 0.15);
            check(what, "steps", r.leapfrogs, 12);
        }
        for (long i = 0; i < 7; i++) batch_check(what, kept[i], 5000, (double)i * scale_of(7, i), scale_of(7, i) * scale_of(7, i));
    }
    // HMC with its step size adapted.
    m = machine(5);
    s.steps = 5;
    r = run(m, 26, &s, 1000, 10000, chained);
    printf("     HMC, 5 normals in a chain: step %.3f, acceptance %.3f\n", r.step, r.accept);
    check("HMC, 5 normals in a chain", "acceptance", fabs(r.accept - 0.8), 0.07);
    for (long i = 0; i < 5; i++) batch_check("HMC, 5 normals in a chain", kept[i], 10000, 0, 1);
    // At temperature 4 variances are four times as large.
    m = machine(5);
    s.temperature = 4;
    r = run(m, 27, &s, 1000, 10000, chained);
    for (long i = 0; i < 5; i++) batch_check("HMC at temperature 4", kept[i], 10000, 0, 4);
    s.steps = 0;
    m = machine(5);
    r = run(m, 28, &s, 1000, 10000, chained);
    for (long i = 0; i < 5; i++) batch_check("NUTS at temperature 4", kept[i], 10000, 0, 4);
    s.temperature = 0;
    check("a temperature of 1000 falls by 0.9 a sweep", "off", fabs(nuts_temperature(1000, 30, 100) / (1000 * pow(0.9006, 30)) - 1), 0.01);
    check("it is 1000 at first, and 1 from two thirds on", "not",
          !(nuts_temperature(1000, 0, 100) == 1000 && nuts_temperature(1000, 65, 100) > 1 && nuts_temperature(1000, 66, 100) == 1 &&
            nuts_temperature(1000, 5000, 100) == 1),
          0);
    check("without annealing, or without warm-up, it is 1", "not", !(nuts_temperature(0, 0, 100) == 1 && nuts_temperature(1000, 0, 0) == 1),
          0);
    // Curvature without bound: the steps diverge, and that is reported. Where exp(v / 2) is 0.018 a step of 0.4 leads out of the law from
    // nearly everywhere.
    m = machine(10);
    r = run(m, 29, &s, 1000, 10000, funnel);
    printf("     funnel: step %.3f, acceptance %.3f, %.1f steps a draw, %g divergent\n", r.step, r.accept, r.leapfrogs, r.divergent);
    check("a funnel", "accepted", r.accept, 0.98);
    m = machine(10);
    s.metric = NUTS_UNIT;
    s.step = 0.4;
    for (long i = 0; i < 10; i++) nuts_position(m)[i] = i ? 0.02 : -8;
    r = run(m, 31, &s, 0, 50, funnel);
    check("in the neck of a funnel steps of 0.4 diverge", "not", 50 - r.divergent, 10);
}

// Starts where gradients are millions of times those of the law: what the metric learns from there is forgotten.
static void far_out(void)
{
    char what[100];
    NutsSettings s;
    memset(&s, 0, sizeof s);
    for (long warmup = 100; warmup >= 0; warmup -= 50) {
        Nuts *m = machine(5);
        for (long i = 0; i < 5; i++) nuts_position(m)[i] = 14;
        const Run r = run(m, 30, &s, warmup, 200, counts);
        snprintf(what, sizeof what, "from a gradient of 10^6, warm-up of %ld", warmup);
        printf("     %-60s step %.3f, acceptance %.3f, %.1f steps a draw, %.1f in warm-up\n", what, r.step, r.accept, r.leapfrogs,
               r.warm_leapfrogs / (double)(warmup + !warmup));
        check(what, "1 - accepted", 1 - r.accept, 0.3);
        check(what, "steps", warmup ? r.leapfrogs : 0, 10);
        for (long i = 0; i < 5 && warmup > 0; i++) check(what, "metric", fabs(log(nuts_metric(m)[i] * 50 * (double)(i + 1))), 1);
    }
}

// As one update of a sweep, its density changing with what the other draws: precision ~ gamma(3, 1), x_i ~ normal(0, precision^(-1/2)).
// Then var(x_i) = E 1 / precision = 1 / 2.
static void composed(void)
{
    const long n = 5, warmup = 500, count = 20000;
    NutsSettings s;
    memset(&s, 0, sizeof s);
    for (int steps = 0; steps < 8; steps += 4) {
        Nuts *m = machine(n);
        double x[5] = { 1, 1, 1, 1, 1 };
        precision = 1;
        s.steps = steps;
        for (long k = 0; k < warmup + count; k++) {
            const Sweep at = { SEED, 6, (uint64_t)k };
            Stream g = stream(at, 15, 0), h = stream(at, 16, 0);
            transition(m, &g, x, &s, k, warmup, given_precision);
            double squares = 0;
            for (long i = 0; i < n; i++) {
                x[i] = nuts_position(m)[i];
                squares += x[i] * x[i];
            }
            precision = gamma_shape_rate(&h, 3 + 0.5 * (double)n, 1 + 0.5 * squares);
            if (k >= warmup) {
                kept[0][k - warmup] = x[0];
                kept[1][k - warmup] = precision;
            }
        }
        const char *what = steps ? "HMC in a sweep" : "NUTS in a sweep";
        batch_check(what, kept[0], count, 0, 0.5);
        batch_check(what, kept[1], count, 3, 3);
    }
}

static void starts(void)
{
    NutsSettings s;
    memset(&s, 0, sizeof s);
    const Sweep at = { SEED, 4, 0 };
    Stream g = stream(at, 13, 0);
    Nuts *m = machine(1);
    double x = -1;
    nuts_begin(m, &g, &x, &s, 0, 10);
    int asked = 0;
    for (; nuts_next(m); asked++) m->log_density = bounded(1, nuts_position(m), nuts_gradient(m));
    check("density 0 at the start fails and stays", "not", !(m->failed == 1 && nuts_position(m)[0] == -1 && asked == 1), 0);
    x = 1;
    nuts_begin(m, &g, &x, &s, 0, 10);
    while (nuts_next(m)) {
        m->log_density = 0;
        nuts_gradient(m)[0] = INFINITY;
    }
    check("an infinite gradient at the start fails and stays", "not", !(m->failed == 2 && nuts_position(m)[0] == 1), 0);
    nuts_begin(m, &g, &x, &s, 0, 10);
    while (nuts_next(m)) m->log_density = bounded(1, nuts_position(m), nuts_gradient(m));
    check("and it goes on from a sound one", "not", !(m->failed == 0 && nuts_position(m)[0] > 0), 0);
    // The same draws whether the first evaluation is saved or not, and evaluations are as many as leapfrog steps where it is.
    double last[2][5];
    long spent[2];
    for (int saved = 0; saved < 2; saved++) {
        m = machine(5);
        s.step = 0.3;
        total_evaluations = total_leapfrogs = 0;
        for (long k = 0; k < 100; k++) {
            const Sweep here = { SEED, 5, (uint64_t)k };
            Stream h = stream(here, 14, 0);
            s.same_density = saved && k > 0;
            transition(m, &h, NULL, &s, k, 50, chained);
        }
        memcpy(last[saved], nuts_position(m), sizeof last[saved]);
        spent[saved] = total_evaluations - total_leapfrogs;
    }
    check("draws without the first evaluation", "differ", memcmp(last[0], last[1], sizeof last[0]) != 0, 0);
    check("evaluations besides steps", "wrong", spent[0] != 100 || spent[1] != 1, 0);
}

// ---- metrics that are not diagonal ----

enum { ROTATED = 40 };
static double turned[ROTATED][ROTATED], spread[ROTATED];

// Normal, with variances `spread` along directions that are no coordinates: x = turned' z. Five of them are 100 and more, or 1/100 and
// less; the condition is 10^4 of scales that have no pattern.
static void rotate_target(void)
{
    const Sweep at = { SEED, 7, 0 };
    Stream g = stream(at, 17, 0);
    for (int k = 0; k < ROTATED; k++) {
        for (int i = 0; i < ROTATED; i++) turned[k][i] = normal_standard(&g);
        for (int j = 0; j < k; j++) {
            double d = 0;
            for (int i = 0; i < ROTATED; i++) d += turned[k][i] * turned[j][i];
            for (int i = 0; i < ROTATED; i++) turned[k][i] -= d * turned[j][i];
        }
        double d = 0;
        for (int i = 0; i < ROTATED; i++) d += turned[k][i] * turned[k][i];
        for (int i = 0; i < ROTATED; i++) turned[k][i] /= sqrt(d);
        spread[k] = k < 3 ? 100 : k < 5 ? 0.01 : 1;
    }
}

static double scale_at(long i) { return 1 + (double)(i % 4); }

static double rotated(long n, const double *x, double *g)
{
    double lp = 0;
    for (long i = 0; i < n; i++) g[i] = 0;
    for (long k = 0; k < n; k++) {
        double z = 0;
        for (long i = 0; i < n; i++) z += turned[k][i] * x[i] / scale_at(i);
        lp -= 0.5 * z * z / spread[k];
        for (long i = 0; i < n; i++) g[i] -= turned[k][i] * z / spread[k] / scale_at(i);
    }
    return lp;
}

// The variance of x_i.
static double rotated_variance(long i)
{
    double v = 0;
    for (int k = 0; k < ROTATED; k++) v += turned[k][i] * turned[k][i] * spread[k];
    return v * scale_at(i) * scale_at(i);
}

// Along direction k, in units of its sd.
static double rotated_score(const double *x, int k)
{
    double z = 0;
    for (int i = 0; i < ROTATED; i++) z += turned[k][i] * x[i] / scale_at(i);
    return z / sqrt(spread[k]);
}

static void draw_rotated(Stream *g, double *x)
{
    memset(x, 0, sizeof(double) * ROTATED);
    for (int k = 0; k < ROTATED; k++) {
        const double z = sqrt(spread[k]) * normal_standard(g);
        for (int i = 0; i < ROTATED; i++) x[i] += turned[k][i] * z * scale_at(i);
    }
}

// A warm-up that learns the metric, then what the metric must be: steps are few, moments exact. Then the integrator with it: back to where
// it came from, with an energy error that falls four times as the step halves. And E exp(-dH) = 1, whose momenta have to be drawn from the
// law of the kinetic energy.
static void metric_of_kind(MetricKind kind, const char *what, double most_steps, int steps)
{
    const long n = ROTATED, count = 4000;
    char name[100];
    NutsSettings s;
    memset(&s, 0, sizeof s);
    s.steps = steps;
    Nuts *m = machine(n);
    m->linear = metric_open(n, kind, (MetricCost){.evaluation = 40.0 * n, .each = 1}, 1000);
    double *along = (double *)malloc(sizeof(double) * 5 * (size_t)count), leapfrogs = 0, accepted = 0;
    for (long k = 0; k < 1000 + count; k++) {
        sweep_alone(m, 40 + (uint32_t)kind, &s, k, 1000, rotated);
        if (k < 1000) continue;
        leapfrogs += m->n_leapfrog / (double)count;
        accepted += m->accept_stat / (double)count;
        const double *x = nuts_position(m);
        for (int j = 0; j < 5; j++) along[j * count + k - 1000] = rotated_score(x, j < 4 ? 2 * j : 5);
        for (long i = 0; i < 3; i++) kept[i][k - 1000] = x[i];
    }
    printf("     %-40s step %.3f, acceptance %.3f, %.1f steps a draw, rank %d, eigenvalues from %.2g to %.2g, measured gain %.3g\n", what,
           m->step, accepted, leapfrogs, m->linear->rank, m->linear->smallest, m->linear->largest, m->linear->gain);
    check(what, "steps", leapfrogs, most_steps);
    check(what, "acceptance", fabs(accepted - 0.8), 0.1);
    check(what, "unused", m->linear->used != (kind != METRIC_DIAGONAL), 0);
    for (long i = 0; i < 3; i++) batch_check(what, kept[i], count, 0, rotated_variance(i));
    for (int j = 0; j < 5; j++) batch_check(what, along + j * count, count, 0, 1);
    free(along);
    double back = 0, error[2] = { 0, 0 }, sum = 0, squares = 0;
    const double step = m->step;
    const long trials = 2000;
    m->cooling = 1;
    for (long k = 0; k < trials; k++) {
        const Sweep at = { SEED, 8, (uint64_t)k };
        Stream g = stream(at, 18, 0);
        double x[ROTATED], p[ROTATED];
        draw_rotated(&g, x);
        m->g = g;
        stream_pass(&m->g);
        for (int half = 0; half < 2; half++) {
            memcpy(nuts_position(m), x, sizeof x);
            m->draw_density = m->log_density = rotated(n, x, nuts_gradient(m));
            if (half == 0) {
                nuts_push(m);
                memcpy(p, nuts_vector(m, NUTS_MOMENTUM), sizeof p);
            }
            memcpy(nuts_vector(m, NUTS_MOMENTUM), p, sizeof p);
            NUTS_FIND_PUSH(m);
            const double d = steps_of(m, 1, half ? 0.25 * step : 0.5 * step, half ? 16 : 8, rotated) - m->start;
            error[half] += d * d;
            if (half == 0) {
                sum += exp(-d);
                squares += exp(-2 * d);
                continue;
            }
            steps_of(m, -1, 0.25 * step, 16, rotated);
            for (long i = 0; i < n; i++)
                back = fmax(back, fabs(nuts_position(m)[i] - x[i]) + fabs(nuts_vector(m, NUTS_MOMENTUM)[i] - p[i]));
        }
    }
    snprintf(name, sizeof name, "%s, 16 steps and 16 back", what);
    check(name, "apart", back, 1e-9);
    snprintf(name, sizeof name, "%s, error of the energy, halved step: 4", what);
    check(name, "ratio", fabs(sqrt(error[0] / error[1]) - 4), 0.3);
    const double mean = sum / (double)trials, se = sqrt((squares / (double)trials - mean * mean) / (double)trials);
    snprintf(name, sizeof name, "%s, E exp(-dH) = 1", what);
    check(name, "z", fabs(mean - 1) / se, BOUND_Z);
    metric_close(m->linear);
}

// Standard normals whose sum, signs alternating, is held to a hundredth of its variance: one narrow direction in more coordinates than
// there are draws to learn from.
#define HELD 99.0
static double held(long n, const double *x, double *g)
{
    double sum = 0, lp = 0;
    for (long i = 0; i < n; i++) sum += i % 2 ? -x[i] : x[i];
    for (long i = 0; i < n; i++) {
        g[i] = -x[i] - (i % 2 ? -1 : 1) * HELD * sum / (double)n;
        lp += 0.5 * x[i] * g[i];
    }
    return lp;
}

static void metric_of_many(MetricKind kind, const char *what)
{
    const long n = 300, count = 3000;
    NutsSettings s;
    memset(&s, 0, sizeof s);
    Nuts *m = machine(n);
    m->linear = metric_open(n, kind, (MetricCost){.evaluation = 30.0 * n, .each = 1}, 600);
    double *along = (double *)malloc(sizeof(double) * (size_t)count), leapfrogs = 0;
    for (long k = 0; k < 600 + count; k++) {
        sweep_alone(m, 50 + (uint32_t)kind, &s, k, 600, held);
        if (k < 600) continue;
        leapfrogs += m->n_leapfrog / (double)count;
        const double *x = nuts_position(m);
        double sum = 0;
        for (long i = 0; i < n; i++) sum += i % 2 ? -x[i] : x[i];
        along[k - 600] = sum / sqrt((double)n / (1 + HELD));
        kept[0][k - 600] = x[0];
    }
    printf("     %-40s step %.3f, %.1f steps a draw, rank %d, eigenvalues from %.2g to %.2g, gain %.3g\n", what, m->step, leapfrogs,
           m->linear->rank, m->linear->smallest, m->linear->largest, m->linear->gain);
    check(what, "steps", leapfrogs, kind == METRIC_DIAGONAL ? 100 : 20);
    check(what, "not used as asked", m->linear->used != (kind != METRIC_DIAGONAL), 0);
    batch_check(what, kept[0], count, 0, 1 - HELD / (1 + HELD) / (double)n);
    batch_check(what, along, count, 0, 1);
    free(along);
    metric_close(m->linear);
}

// Where a diagonal metric is right, or there is no time to learn another one, a choice stays with it.
static void metric_not_taken(void)
{
    NutsSettings s;
    memset(&s, 0, sizeof s);
    Nuts *m = machine(30);
    m->linear = metric_open(30, METRIC_CHOSEN, (MetricCost){.evaluation = 1200, .each = 1}, 1000);
    const Run r = run(m, 46, &s, 1000, 100, standard);
    check("30 standard normals: diagonal", "not", m->linear->used || r.leapfrogs > 8, 0);
    metric_close(m->linear);
    m = machine(ROTATED);
    m->linear = metric_open(ROTATED, METRIC_CHOSEN, (MetricCost){.evaluation = 1200, .each = 1}, 60);
    run(m, 47, &s, 60, 100, rotated);
    check("a warm-up of 60 sweeps: diagonal", "not", m->linear->used, 0);
    metric_close(m->linear);
}

// Where transitions diverge the curvature is not that of one metric: a chosen metric goes back to the diagonal, in its trial and later, and
// stays there; a requested one stays. Draws are exact, and trajectories short where the metric is used.
static void metric_given_up(MetricKind kind, MetricStage diverges_when, int used, const char *what)
{
    double diagonal[ROTATED], x[ROTATED], g[ROTATED];
    Metric *m = metric_open(ROTATED, kind, (MetricCost){.evaluation = 1200, .each = 1}, 1000);
    int was_used = 0, diverged = 0;
    for (long i = 0; i < ROTATED; i++) diagonal[i] = rotated_variance(i);
    for (long k = 0; k < 1000; k++) {
        const Sweep at = { SEED, 48, (uint64_t)k };
        Stream s = stream(at, 17, 0);
        draw_rotated(&s, x);
        rotated(ROTATED, x, g);
        const int divergent = !diverged && m->used && m->stage == diverges_when && m->since == 30;
        diverged |= divergent;
        metric_adapt(m, x, g, diagonal, 1, m->used ? 7 : 200, divergent, 1000 - k);
        was_used |= m->used;
    }
    check(what, "not used", !was_used, 0);
    check(what, "diverged", diverged != (diverges_when != METRIC_REFUSED), 0);
    check(what, "used", m->used != used, 0);
    metric_close(m);
}

static void metrics(void)
{
    rotate_target();
    metric_given_up(METRIC_CHOSEN, METRIC_REFUSED, 1, "a choice where nothing diverges");
    metric_given_up(METRIC_CHOSEN, METRIC_TRYING, 0, "a choice that diverges in its trial");
    metric_given_up(METRIC_CHOSEN, METRIC_TAKEN, 0, "a choice that diverges later");
    metric_given_up(METRIC_LOW_RANK, METRIC_TAKEN, 1, "a request that diverges");
    metric_of_kind(METRIC_DIAGONAL, "rotated, diagonal", 1000, 0);
    metric_of_kind(METRIC_LOW_RANK, "rotated, low rank", 12, 0);
    metric_of_kind(METRIC_DENSE, "rotated, dense", 12, 0);
    metric_of_kind(METRIC_CHOSEN, "rotated, chosen", 12, 0);
    metric_of_kind(METRIC_LOW_RANK, "rotated, low rank, HMC", 12, 5);
    metric_of_many(METRIC_DIAGONAL, "one narrow of 300, diagonal");
    metric_of_many(METRIC_LOW_RANK, "one narrow of 300, low rank");
    metric_of_many(METRIC_CHOSEN, "one narrow of 300, chosen");
    metric_of_many(METRIC_DENSE, "one narrow of 300, dense");
    metric_not_taken();
}

int main(void)
{
    metrics();
    integrator();
    same_trees("recursive trees, 4 normals in a chain", 4, chained, 0.01, 1.5, 3000);
    same_trees("recursive trees, 30 normals in a chain", 30, chained, 0.02, 1.2, 1000);
    same_trees("recursive trees, funnel", 5, funnel, 0.05, 3, 3000);
    same_trees("recursive trees, exponential", 1, bounded, 0.01, 3, 1000);
    starts();
    warm_up();
    far_out();
    composed();
    invariances();
    return finish();
}
