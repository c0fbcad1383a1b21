// ascent.c -- maxima of a log density by L-BFGS.
//
//   direction   H * gradient by the two-loop recursion (Nocedal and Wright 2006, algorithm 7.4) over the last 6 iterations, from a diagonal
//               that is kept up to date with each step (Gilbert and Lemarechal 1989, section 4.2): coordinates may have scales that differ
//               by orders of magnitude
//   step        the strong Wolfe conditions (algorithms 3.5 and 3.6, c1 = 1e-4, c2 = 0.9), so that s'y > 0 for every pair; where
//               differences of the log density drown in rounding, by slopes alone (Hager and Zhang 2005). A place at which anything is not
//               finite lies beyond the end of the line
//   end         gradient' H gradient, twice what a step can gain where the log density is quadratic, is below `enough`
//   runs off    where coordinates that the last step has moved go on along it, to 10^8 times their size, and the log density is higher each
//               time (gm_ascent_runs_off)
//   cost        about 1.2 evaluations a step; 2 * 6 + 6 vectors of n numbers
//   polish      six pairs know little of a density whose scales differ by 10^6 and more along directions that are no axes, so that `gain`
//               is too crude there. Where L-BFGS ends, the Hessian is taken by differences of gradients, for n <= 500, and Newton's steps
//               (shifted to be definite) are taken as long as they gain anything. 2n evaluations a step
//   test        tests/host/ascent.c
#include "ascent.h"
#include "messages.h"
#include "../backends/blas.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TRIALS = 40, MOST_LEVEL = 20 };
static const double armijo = 1e-4, wolfe = 0.9;
static const double most_density = 1e300, most_coordinate = 1e100;

static double dot(long n, const double *a, const double *b)
{
    double sum = 0;
    for (long i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static double *numbers(long n) { return gm_alloc((size_t)n, sizeof(double)); }

GmAscent *gm_ascent_open(long n, GmTarget *target, void *of)
{
    GmAscent *a = gm_alloc(1, sizeof *a);
    *a = (GmAscent){.n = n,
                    .target = target,
                    .of = of,
                    .enough = 1e-12,
                    .x = numbers(n),
                    .gradient = numbers(n),
                    .diagonal = numbers(n),
                    .direction = numbers(n),
                    .trial_x = numbers(n),
                    .trial_gradient = numbers(n)};
    for (int k = 0; k < GM_ASCENT_PAIRS; k++) {
        a->s[k] = numbers(n);
        a->y[k] = numbers(n);
    }
    return a;
}

void gm_ascent_close(GmAscent *a)
{
    if (!a) return;
    for (int k = 0; k < GM_ASCENT_PAIRS; k++) {
        free(a->s[k]);
        free(a->y[k]);
    }
    free(a->x);
    free(a->gradient);
    free(a->diagonal);
    free(a->direction);
    free(a->trial_x);
    free(a->trial_gradient);
    free(a);
}

// log density and gradient, into `gradient`: -INFINITY if anything is not finite.
static double ask(GmAscent *a, const double *x, double *gradient)
{
    a->evaluations++;
    const double lp = a->target(a->of, x, gradient);
    if (lp == INFINITY) return INFINITY;
    bool finite = isfinite(lp);
    for (long i = 0; i < a->n && finite; i++) finite = isfinite(gradient[i]);
    return finite ? lp : -INFINITY;
}

// Nothing is remembered: a first step is at most 1 long.
static void forget(GmAscent *a)
{
    const double length = sqrt(dot(a->n, a->gradient, a->gradient));
    a->pairs = 0;
    for (long i = 0; i < a->n; i++) a->diagonal[i] = length > 1 ? 1 / length : 1;
}

bool gm_ascent_begin(GmAscent *a, const double *x)
{
    memmove(a->x, x, (size_t)a->n * sizeof *x);
    a->steps = a->evaluations = a->level = 0;
    a->last = NULL;
    a->log_density = ask(a, a->x, a->gradient);
    a->state = isfinite(a->log_density) ? GM_ASCENT_ON_ITS_WAY : a->log_density > 0 ? GM_ASCENT_UNBOUNDED : GM_ASCENT_NOWHERE;
    if (a->state == GM_ASCENT_ON_ITS_WAY) forget(a);
    return a->state == GM_ASCENT_ON_ITS_WAY;
}

// direction = H * gradient; gradient' H gradient.
static double find_direction(GmAscent *a)
{
    double *d = a->direction, along[GM_ASCENT_PAIRS];
    memcpy(d, a->gradient, (size_t)a->n * sizeof *d);
    for (int k = 0; k < a->pairs; k++) {
        along[k] = dot(a->n, a->s[k], d) / a->product[k];
        for (long i = 0; i < a->n; i++) d[i] -= along[k] * a->y[k][i];
    }
    for (long i = 0; i < a->n; i++) d[i] *= a->diagonal[i];
    for (int k = a->pairs; k-- > 0;) {
        const double back = dot(a->n, a->y[k], d) / a->product[k];
        for (long i = 0; i < a->n; i++) d[i] += (along[k] - back) * a->s[k][i];
    }
    return dot(a->n, a->gradient, d);
}

// The diagonal after a pair: that of the BFGS update of a diagonal matrix, scaled first so that y'Hy fits.
static void renew_diagonal(GmAscent *a, const double *s, const double *y, double product)
{
    double yy = 0, ss = 0;
    for (long i = 0; i < a->n; i++) {
        yy += a->diagonal[i] * y[i] * y[i];
        ss += s[i] * s[i] / a->diagonal[i];
    }
    for (long i = 0; i < a->n; i++) {
        const double was = a->diagonal[i], along = s[i] / was,
                     inverse = yy / (product * was) + y[i] * y[i] / product - yy * along * along / (product * ss);
        if (inverse > 0 && isfinite(1 / inverse)) a->diagonal[i] = 1 / inverse;
    }
}

// The trial becomes the place. A pair of too little curvature is not remembered.
static void take(GmAscent *a)
{
    const int oldest = a->pairs < GM_ASCENT_PAIRS ? a->pairs : GM_ASCENT_PAIRS - 1;
    double *s = a->s[oldest], *y = a->y[oldest], product, length;
    for (long i = 0; i < a->n; i++) {
        s[i] = a->trial_x[i] - a->x[i];
        y[i] = a->gradient[i] - a->trial_gradient[i];
    }
    product = dot(a->n, s, y);
    length = dot(a->n, y, y);
    double *swap = a->x;
    a->x = a->trial_x;
    a->trial_x = swap;
    swap = a->gradient;
    a->gradient = a->trial_gradient;
    a->trial_gradient = swap;
    a->log_density = a->trial_density;
    a->steps++;
    a->last = s;
    if (!(product > 1e-14 * length) || !isfinite(length) || !(product > DBL_MIN)) {
        if (oldest < a->pairs) a->pairs = oldest;  // its room is used up
        return;
    }
    memmove(a->s + 1, a->s, (size_t)oldest * sizeof *a->s);
    memmove(a->y + 1, a->y, (size_t)oldest * sizeof *a->y);
    memmove(a->product + 1, a->product, (size_t)oldest * sizeof *a->product);
    a->s[0] = s;
    a->y[0] = y;
    a->product[0] = product;
    a->pairs = oldest + 1;
    renew_diagonal(a, s, y, product);
}

// A place on the line: how far, the loss (minus the log density) and its slope.
typedef struct LineTrial {
    double step, loss, slope;
} LineTrial;

static LineTrial try(GmAscent *a, double step)
{
    for (long i = 0; i < a->n; i++) a->trial_x[i] = a->x[i] + step * a->direction[i];
    a->trial_density = ask(a, a->trial_x, a->trial_gradient);
    const bool finite = isfinite(a->trial_density);
    return (LineTrial){step, -a->trial_density, finite ? -dot(a->n, a->trial_gradient, a->direction) : 0};
}

// Between two places: where the cubic with their losses and slopes is least, if that is well inside, else the middle.
static double between(const LineTrial *low, const LineTrial *high)
{
    const double width = high->step - low->step, least = 0.1, middle = low->step + 0.5 * width;
    if (!isfinite(high->loss)) return low->step + 0.2 * width;
    const double d1 = low->slope + high->slope - 3 * (low->loss - high->loss) / (low->step - high->step),
                 square = d1 * d1 - low->slope * high->slope;
    if (!(square >= 0)) return middle;
    const double d2 = (width > 0 ? 1 : -1) * sqrt(square),
                 at = high->step - width * (high->slope + d2 - d1) / (high->slope - low->slope + 2 * d2), share = (at - low->step) / width;
    return !isfinite(share) ? middle : share < least ? low->step + least * width : share > 1 - least ? high->step - least * width : at;
}

// Along the direction, to where the Wolfe conditions hold. false: nowhere.
static bool search(GmAscent *a, double step)
{
    const LineTrial start = {0, -a->log_density, -a->gain};
    const double rounding = 1e-14 * fabs(start.loss);
    LineTrial low = start, high = {0, 0, 0};
    bool bracketed = false;
    for (int k = 0; k < MOST_TRIALS; k++) {
        const LineTrial t = try(a, step);
        if (t.loss == -INFINITY) return true;  // a density without a bound
        const bool lower = t.loss <= start.loss + armijo * step * start.slope;
        // to within the rounding of the log density
        const bool as_low = t.loss <= start.loss + rounding && t.slope <= (2 * armijo - 1) * start.slope;
        if (isfinite(t.loss) && (lower || as_low) && fabs(t.slope) <= -wolfe * start.slope) return true;
        if (!isfinite(t.loss) || !(lower || as_low) || (t.loss >= low.loss && !as_low)) {
            high = t;
            bracketed = true;
        } else {
            if (bracketed ? t.slope * (high.step - low.step) >= 0 : t.slope >= 0) {
                high = low;
                bracketed = true;
            }
            low = t;
        }
        if (bracketed && fabs(high.step - low.step) <= 1e-14 * fabs(high.step)) break;
        step = bracketed ? between(&low, &high) : 4 * step;
    }
    if (low.step == 0) return false;
    try(a, low.step);  // lower, if not flat enough
    return isfinite(a->trial_density);
}

static bool leaves(const GmAscent *a)
{
    if (a->log_density > most_density) return true;
    for (long i = 0; i < a->n; i++)
        if (fabs(a->x[i]) > most_coordinate) return true;
    return false;
}

bool gm_ascent_step(GmAscent *a)
{
    if (a->state != GM_ASCENT_ON_ITS_WAY) return false;
    a->gain = find_direction(a);
    if (!(a->gain > 0) && a->pairs > 0) {
        forget(a);
        a->gain = find_direction(a);
    }
    const bool remembers = a->pairs > 0;
    if (!(a->gain > (remembers ? a->enough : 0)) || (remembers && a->gain <= 1e-16 * fabs(a->log_density))) {
        a->state = GM_ASCENT_DONE;
        return false;
    }
    if (!search(a, 1)) {
        if (!remembers) {
            a->state = a->gain < 1e-8 ? GM_ASCENT_DONE : GM_ASCENT_STUCK;
            return false;
        }
        if (a->gain < 1e-8) {  // as far as rounding lets see
            a->state = GM_ASCENT_DONE;
            return false;
        }
        forget(a);
        a->gain = find_direction(a);
        if (!search(a, 1)) {
            a->state = GM_ASCENT_STUCK;
            return false;
        }
    }
    const double before = a->log_density;
    take(a);
    a->level = a->log_density - before <= 1e-13 * fabs(before) ? a->level + 1 : 0;
    if (leaves(a)) a->state = GM_ASCENT_UNBOUNDED;
    else if (a->level == MOST_LEVEL)  // rounding hides what steps gain
        a->state = a->gain < 1e-6 ? GM_ASCENT_DONE : GM_ASCENT_STUCK;
    return a->state == GM_ASCENT_ON_ITS_WAY;
}

// ---- to infinity ----

static const double seen = 1e-13, settled = 1e-3, farthest_log = 300;

// The log density that many times farther along the last step, whose largest coordinate, relative to its value, has the length `top`.
// Those that change by less than `settled` of that stay. Where that is too far for doubles, as for logarithms, e^300 is far.
static double far_out(GmAscent *a, double times, double top)
{
    double lp = -INFINITY;
    for (int logs = 0; logs < 2 && !isfinite(lp); logs++) {
        for (long i = 0; i < a->n; i++) {
            const double step = a->last[i], moves = fabs(step) < settled * top * (1 + fabs(a->x[i])) ? 0 : times * step / top;
            a->trial_x[i] = a->x[i] + (logs ? copysign(fmin(fabs(moves), fmax(farthest_log - fabs(a->x[i]), 0)), moves) : moves);
        }
        lp = ask(a, a->trial_x, a->trial_gradient);
    }
    return lp;
}

bool gm_ascent_runs_off(GmAscent *a)
{
    static const double times[] = {1, 10, 1e3, 1e5, 1e8};
    double top = 0, before = a->log_density;
    for (long i = 0; i < a->n && a->last; i++) top = fmax(top, fabs(a->last[i]) / (1 + fabs(a->x[i])));
    if (!isfinite(1 / top)) return false;
    for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
        const double lp = far_out(a, times[k], top);
        if (!isfinite(lp) || !(lp > a->log_density + seen * (1 + fabs(a->log_density)))) return false;
        if (k + 1 == sizeof times / sizeof *times) a->state = lp > before + 1 ? GM_ASCENT_UNBOUNDED : GM_ASCENT_RUNS_OFF;
        before = lp;
    }
    return true;
}

// ---- Newton's steps ----

enum { MOST_DENSE = 500, MOST_NEWTON = 50, MOST_LEVEL_NEWTON = 3 };
static const double newton_gain = 1e-9, newton_tells = 1e-4;

// Minus the Hessian, by differences that are wide enough to be seen beside the gradient's rounding. false: there is none, nothing is finite
// beside the place.
static bool find_curvature(GmAscent *a, double *matrix, double *above, double *below)
{
    const long n = a->n;
    for (long i = 0; i < n; i++) {
        double width = 1e-5 * (1 + fabs(a->x[i]));
        for (int wider = 0;; wider++) {
            memcpy(a->trial_x, a->x, (size_t)n * sizeof *a->x);
            a->trial_x[i] = a->x[i] + width;
            const double up = a->trial_x[i], to = ask(a, a->trial_x, above);
            a->trial_x[i] = a->x[i] - width;
            const double down = a->trial_x[i], from = ask(a, a->trial_x, below);
            if (!isfinite(to) || !isfinite(from)) {
                if (wider) break;  // as wide as it can be: what was found stays
                return false;
            }
            double seen = 0;
            for (long k = 0; k < n; k++) {
                matrix[i * n + k] = (below[k] - above[k]) / (up - down);
                seen = fmax(seen, fabs(below[k] - above[k]) / (fabs(below[k]) + fabs(above[k]) + DBL_MIN));
            }
            if (seen > 1e-7 || wider == 8) break;
            width *= 100;
        }
    }
    for (long i = 0; i < n; i++)
        for (long k = 0; k < i; k++) matrix[i * n + k] = matrix[k * n + i] = 0.5 * (matrix[i * n + k] + matrix[k * n + i]);
    return true;
}

// direction = Newton's, with the scaled matrix shifted until it is positive definite.
static bool newton_direction(GmAscent *a, const double *matrix, double *factor, double *scale)
{
    const long n = a->n;
    for (long i = 0; i < n; i++) scale[i] = matrix[i * n + i] != 0 ? 1 / sqrt(fabs(matrix[i * n + i])) : 1;
    for (double shift = 0; shift < 1e3; shift = shift == 0 ? 1e-10 : 10 * shift) {
        for (long i = 0; i < n; i++)
            for (long k = 0; k < n; k++) factor[i * n + k] = scale[i] * matrix[i * n + k] * scale[k] + (i == k ? shift : 0);
        for (long i = 0; i < n; i++) a->direction[i] = scale[i] * a->gradient[i];
        int bad;
        gm_blas()->dposv("U", &(int){(int)n}, &(int){1}, factor, &(int){(int)n}, a->direction, &(int){(int)n}, &bad, 1);
        if (bad) continue;
        for (long i = 0; i < n; i++) a->direction[i] *= scale[i];
        a->gain = dot(n, a->gradient, a->direction);
        return isfinite(a->gain);
    }
    return false;
}

void gm_ascent_polish(GmAscent *a, long most)
{
    if ((a->state != GM_ASCENT_DONE && a->state != GM_ASCENT_STUCK) || a->n > MOST_DENSE || a->n == 0) return;
    double *room = gm_alloc((size_t)(2 * a->n * a->n + 3 * a->n), sizeof *room), *matrix = room, *factor = matrix + a->n * a->n,
           *above = factor + a->n * a->n;
    int level = 0;
    for (int step = 0; step < MOST_NEWTON; step++) {
        if (!find_curvature(a, matrix, above, above + a->n) || !newton_direction(a, matrix, factor, above + 2 * a->n)) break;
        if (a->gain <= newton_gain) {
            a->state = GM_ASCENT_DONE;
            break;
        }
        if (!search(a, 1)) {
            a->state = a->gain < newton_tells ? GM_ASCENT_DONE : GM_ASCENT_STUCK;
            break;
        }
        const double before = a->log_density;
        take(a);
        level = a->log_density - before <= 1e-13 * fabs(before) ? level + 1 : 0;
        a->state = leaves(a)                   ? GM_ASCENT_UNBOUNDED
                   : level < MOST_LEVEL_NEWTON ? GM_ASCENT_ON_ITS_WAY
                   : a->gain < newton_tells    ? GM_ASCENT_DONE
                                               : GM_ASCENT_STUCK;
        if (a->state != GM_ASCENT_ON_ITS_WAY || a->evaluations >= most) break;
    }
    free(room);
}
