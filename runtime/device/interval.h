// interval.h -- draws on an interval from densities that would be improper without it: a truncated family whose natural parameter has the
// other sign.
//
//   power form     exp(A t + c[0] e^t + c[1] e^-t)      t the log of a gamma, inverse gamma or generalised inverse Gaussian
//   normal form    exp(A t + c[0] t^2)                  c[0] > 0: high at the ends, low between them
//
//   parameters     any signs. An end may be infinite where the density falls off before it: at t = -inf A > 0 and c[1] <= 0, at inf c[0] <
//                  0 or (c[0] == 0 and A < 0); otherwise NaN
//   method         each term is convex or concave by its sign; on a piece of the interval it lies below its chord or its tangent. The sum
//                  of these lines is a hull, whose exponential is drawn by inversion; what is rejected cuts a piece in two (Gilks and Wild
//                  1992 for concave densities).
//   accuracy       exact but for rounding; 1.01 to 1.45 hulls a draw, with parameters from 1 to 10^6: every rejection mends the next
//   test           tests/runtime/truncated.c
#ifndef GM_INTERVAL_H
#define GM_INTERVAL_H

#include "rng.h"

enum { INTERVAL_POINTS = 40, INTERVAL_FIRST = 9 };

typedef struct Hull {
    int normal;  // which form
    double A, c[2];
    int n;            // points; pieces lie between them, and tails beyond the first and the last if the ends are infinite
    int left, right;  // is there a tail
    double t[INTERVAL_POINTS];
} Hull;

// Term i and its derivative, without its coefficient.
DEVICE double hull_term(const Hull *f, int i, double t) { return f->normal ? t * t : i ? exp(-t) : exp(t); }
DEVICE double hull_slope(const Hull *f, int i, double t) { return f->normal ? 2 * t : i ? -exp(-t) : exp(t); }

DEVICE double hull_density(const Hull *f, double t)
{
    double value = f->A * t;
    for (int i = 0; i < 2; i++)
        if (f->c[i] != 0) value += f->c[i] * hull_term(f, i, t);
    return value;
}

// The line above the density on a piece from a to b: its values there.
DEVICE void hull_line(const Hull *f, double a, double b, double *at_a, double *at_b)
{
    *at_a = f->A * a;
    *at_b = f->A * b;
    const double middle = 0.5 * (a + b);
    for (int i = 0; i < 2; i++) {
        if (f->c[i] == 0) continue;
        const double value = hull_term(f, i, middle), slope = hull_slope(f, i, middle);
        *at_a += f->c[i] * (f->c[i] > 0 ? hull_term(f, i, a) : value + slope * (a - middle));
        *at_b += f->c[i] * (f->c[i] > 0 ? hull_term(f, i, b) : value + slope * (b - middle));
    }
}

// The line above a tail that begins at t: slope, and the value at t. To the left e^t lies between 0 and its value at t; to the right e^-t
// does.
DEVICE void hull_tail(const Hull *f, int right, double t, double *at, double *slope)
{
    const int flat = right ? 1 : 0, steep = 1 - flat;
    const double tangent = f->c[steep] < 0 ? f->c[steep] * hull_slope(f, steep, t) : 0;
    *slope = f->A + tangent;
    *at =
        f->A * t + (f->c[flat] > 0 ? f->c[flat] * hull_term(f, flat, t) : 0) + (f->c[steep] < 0 ? f->c[steep] * hull_term(f, steep, t) : 0);
}

// The log of the integral of the exponential of a line of length w with these values at its ends.
DEVICE double hull_log_mass(double at_a, double at_b, double w)
{
    const double top = at_a > at_b ? at_a : at_b, d = fabs(at_b - at_a);
    return top + log(w) + (d < 1e-9 ? -0.5 * d : log(-expm1(-d) / d));
}

// A draw from the form with t in [lo, hi]. f holds the form; the rest is filled here.
DEVICE_CALL double interval_draw(Stream *g, Hull *f, double lo, double hi)
{
    if (!(lo < hi)) return lo == hi ? lo : NAN;
    f->left = lo == -INFINITY;
    f->right = hi == INFINITY;
    if (f->normal ? f->left || f->right : (f->left && f->c[1] > 0) || (f->right && f->c[0] > 0)) return NAN;
    double a = lo, b = hi;
    const double unit = 1 / (fabs(f->A) + 1e-3) + 1;
    if (f->left) a = f->right ? -unit : hi - unit;
    if (f->right) b = a + 2 * unit;
    f->n = INTERVAL_FIRST;
    for (int k = 0; k < f->n; k++) f->t[k] = k + 1 < f->n ? a + (b - a) * k / (INTERVAL_FIRST - 1) : b;
    for (int tries = 0; tries < 10000; tries++) {
        double mass[INTERVAL_POINTS + 1], most = -INFINITY, at, slope;  // mass[k]: before point k; mass[n] after the last
        for (int k = 0; k <= f->n; k++) {
            mass[k] = -INFINITY;
            if (k > 0 && k < f->n) {
                double at_a, at_b;
                hull_line(f, f->t[k - 1], f->t[k], &at_a, &at_b);
                if (f->t[k] > f->t[k - 1]) mass[k] = hull_log_mass(at_a, at_b, f->t[k] - f->t[k - 1]);
            } else if (k == 0 ? f->left : f->right) {
                hull_tail(f, k > 0, f->t[k ? k - 1 : 0], &at, &slope);
                if (!(k ? slope < 0 : slope > 0)) {  // does not fall off yet: further out, or never
                    if (f->n == INTERVAL_POINTS || tries > 200 || f->c[k ? 0 : 1] == 0) return NAN;
                    if (k) f->t[f->n] = f->t[f->n - 1] + unit;
                    else {
                        for (int j = f->n; j > 0; j--) f->t[j] = f->t[j - 1];
                        f->t[0] -= unit;
                    }
                    f->n++;
                    most = NAN;
                    break;
                }
                mass[k] = at - log(fabs(slope));
            }
            if (mass[k] > most) most = mass[k];
            if (!(mass[k] < INFINITY)) return NAN;
        }
        if (most != most) continue;
        if (most == -INFINITY) return NAN;
        double total = 0;
        for (int k = 0; k <= f->n; k++) total += mass[k] = exp(mass[k] - most);
        double u = uniform_open(g) * total;
        int k = 0;
        while (k < f->n && (u > mass[k] || mass[k] == 0)) u -= mass[k++];
        if (!(mass[k] > 0)) continue;
        const double v = uniform_open(g);
        double t, line;
        if (k == 0 || k == f->n) {
            const double from = f->t[k ? k - 1 : 0];
            hull_tail(f, k > 0, from, &at, &slope);
            t = from + log(v) / slope;
            line = at + slope * (t - from);
        } else {
            const double p = f->t[k - 1], w = f->t[k] - p;
            double at_a, at_b;
            hull_line(f, p, f->t[k], &at_a, &at_b);
            const double d = at_b - at_a;
            if (fabs(d) < 1e-9) t = p + v * w;
            else if (d > 0) t = f->t[k] + w / d * log1p(v * expm1(-d));
            else t = p + w / d * log1p(v * expm1(d));
            if (t < p) t = p;
            if (t > f->t[k]) t = f->t[k];
            line = at_a + d * ((t - p) / w);
        }
        const double value = hull_density(f, t);
        if (value != value) return NAN;
        if (log(uniform_open(g)) <= value - line) return t;
        if (f->n == INTERVAL_POINTS) continue;
        for (int j = f->n; j > k; j--) f->t[j] = f->t[j - 1];
        f->t[k] = t;
        f->n++;
    }
    return NAN;
}

#endif
