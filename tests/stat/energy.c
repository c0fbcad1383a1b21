// A sampler in place of host/nuts.c: after warm-up, before each transition, it measures what leapfrog steps do to the energy under the
// density kernels of a program, and prints it at the end.
//
//   steps of the size that was adapted                    E exp(-dH) = 1 in the stationary distribution (Neal 2011)
//   steps of an eighth of it, and twice as many of half   the error of the energy is of second order: medians of |dH| are 4 to 1
//   the same way back                                     leads to where it began
#include <stdio.h>
#include <stdlib.h>
#include "../../runtime/device/nuts.h"

enum { STEPS = 8, PIECES = 4 };

static const struct { int from_start, side, steps; double size; } piece[PIECES] = {
    { 1, 1, STEPS, 1 }, { 1, 1, STEPS, 0.125 }, { 1, 1, 2 * STEPS, 0.0625 }, { 0, -1, 2 * STEPS, 0.0625 },
};

static struct {
    const Nuts *moved;                   // the first block of the program; others are left alone
    Nuts    kept;                        // of the transition that follows
    int     asked, at, steps;            // pieces and steps so far
    wide   *start;                       // position, gradient, momentum
    double *change[3];                   // dH of the pieces forward, of each measurement
    double  apart;
    long    n, size;
} E;

static int by_size(const void *a, const void *b)
{
    const double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return (x > y) - (x < y);
}

static void tell(void)
{
    double mean = 0, squares = 0;
    for (long b = 0; b < 50; b++) {      // batches: what follows each other is not independent
        double sum = 0;
        for (long k = b * (E.n / 50); k < (b + 1) * (E.n / 50); k++) sum += exp(-E.change[0][k]) / (double)(E.n / 50);
        mean += sum / 50;
        squares += sum * sum / 50;
    }
    for (int k = 1; k < 3; k++) qsort(E.change[k], (size_t)E.n, sizeof(double), by_size);
    printf("energy: n %ld, E exp(-dH) %.4f, z %.2f, ratio %.4f, apart %.3g\n", E.n, mean, (mean - 1) / sqrt((squares - mean * mean) / 49),
           fabs(E.change[1][E.n / 2]) / fabs(E.change[2][E.n / 2]), E.apart);
}

static void keep(Nuts *m, int restore)
{
    static const int which[] = { NUTS_POSITION, NUTS_GRADIENT, NUTS_MOMENTUM };
    for (int k = 0; k < 3; k++) {
        wide *a = nuts_vector(m, which[k]), *b = E.start + k * m->n;
        for (long i = 0; i < m->n; i++)
            if (restore) a[i] = b[i];
            else b[i] = a[i];
    }
}

static void begin_piece(Nuts *m)
{
    if (piece[E.at].from_start) keep(m, 1);
    m->side = piece[E.at].side;
    nuts_set_step(m, piece[E.at].size * E.kept.step);
    E.steps = 0;
    nuts_kick_and_drift(m);
}

static void end_piece(Nuts *m, double h)
{
    if (E.at < 3) {
        if (E.n == E.size) {
            E.size = 2 * E.size + 1000;
            for (int k = 0; k < 3; k++) E.change[k] = realloc(E.change[k], sizeof(double) * (size_t)E.size);
        }
        E.change[E.at][E.n] = h - m->start;
        return;
    }
    for (long i = 0; i < m->n; i++) {
        const double x = E.start[i], p = E.start[2 * m->n + i];
        E.apart = fmax(E.apart, fabs(nuts_position(m)[i] - x) / (1 + fabs(x)) + fabs(nuts_vector(m, NUTS_MOMENTUM)[i] - p) / (1 + fabs(p)));
    }
    E.n++;
}

void gm_nuts_start(Nuts *m, Stream *g, const wide *x, const NutsSettings *settings, long sweep, long warmup)
{
    nuts_begin(m, g, x, settings, sweep, warmup);
    if (E.moved && m != E.moved) return;
    E.asked = 0;
    E.at = sweep < warmup ? PIECES : 0;
    if (E.moved) return;
    E.moved = m;
    E.start = calloc(3 * (size_t)m->n, sizeof(wide));
    atexit(tell);
}

int gm_nuts_ask(Nuts *m)
{
    if (m != E.moved || E.at == PIECES) return nuts_next(m);
    if (E.asked++ == 0) {                // the density at the chain's state
        E.kept = *m;
        return 1;
    }
    if (E.asked == 2) {
        m->draw_density = m->log_density;
        nuts_push(m);
        keep(m, 0);
        begin_piece(m);
        return 1;
    }
    const double h = nuts_arrive(m);
    if (++E.steps < piece[E.at].steps) {
        nuts_kick_and_drift(m);
        return 1;
    }
    end_piece(m, h);
    if (++E.at < PIECES) {
        begin_piece(m);
        return 1;
    }
    keep(m, 1);
    *m = E.kept;
    return nuts_next(m);
}
