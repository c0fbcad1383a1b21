// If this failed, joint normals with a sparse precision would be drawn from another distribution, or a precision that is not positive
// definite would be taken.
//
// Matrices whose entries and order are chosen at random, J = (entries) + a diagonal that dominates: L L' is J in that order, to rounding, L
// has no entries that a dense factor has not, and both solutions solve.
#include "toy.h"
#include "../../runtime/backends/simplicial.h"

#include <math.h>

enum { MOST = 60 };

static double dense[MOST][MOST], factor[MOST][MOST];

static int random_below(int n) { return rand() / (RAND_MAX / n + 1); }

// Of n elements, each pair meets with probability `meet`; a diagonal of `strength` times what dominates.
static void try_matrix(int n, double meet, double strength)
{
    int first[MOST + 1] = { 0 }, row[MOST * MOST] = { 0 }, order[MOST] = { 0 }, entries = 0;
    double value[MOST * MOST] = { 0 }, x[MOST] = { 0 }, b[MOST] = { 0 }, sums[MOST] = { 0 }, most = 0, residual = 0, other = 0;
    memset(dense, 0, sizeof dense);
    for (int j = 0; j < n; j++)
        for (int i = j + 1; i < n; i++)
            if (rand() < meet * RAND_MAX) {
                dense[i][j] = dense[j][i] = 2.0 * rand() / RAND_MAX - 1;
                sums[i] += fabs(dense[i][j]);
                sums[j] += fabs(dense[i][j]);
            }
    for (int j = 0; j < n; j++) {
        dense[j][j] = strength * (sums[j] + 0.1);
        first[j] = entries;
        for (int i = j; i < n; i++)
            if (dense[i][j] != 0) {
                row[entries] = i;
                value[entries++] = dense[i][j];
            }
        order[j] = j;
    }
    first[n] = entries;
    for (int k = n - 1; k > 0; k--) {
        const int other_place = random_below(k + 1), kept = order[k];
        order[k] = order[other_place];
        order[other_place] = kept;
    }
    GmSimplicial *s = gm_simplicial_open(n, first, row, order);
    double *L = calloc((size_t)s->entries, sizeof *L), *work = calloc(MOST, sizeof *work);
    const long bad = gm_simplicial_factor(s, value, L, work);
    if (strength < 0) {
        check(bad == 1, "%d elements, a negative diagonal: place %ld", n, bad);
    } else {
        long missing = 0;
        memset(factor, 0, sizeof factor);
        for (int j = 0; j < n; j++)
            for (long e = s->first[j]; e < s->first[j + 1]; e++) factor[s->row[e]][j] = L[e];
        for (int i = 0; i < n; i++)
            for (int j = 0; j <= i; j++) {
                double sum = 0;
                for (int k = 0; k <= j; k++) sum += factor[i][k] * factor[j][k];
                most = fmax(most, fabs(sum - dense[order[i]][order[j]]));
                missing += factor[i][j] == 0 && fabs(sum - dense[order[i]][order[j]]) > 0;
            }
        for (int i = 0; i < n; i++) x[i] = b[i] = 2.0 * rand() / RAND_MAX - 1;
        gm_simplicial_solve(s, L, x);
        for (int i = 0; i < n; i++) {
            double sum = -b[i];
            for (int k = 0; k <= i; k++) sum += factor[i][k] * x[k];
            residual = fmax(residual, fabs(sum));
        }
        memcpy(x, b, sizeof x);
        gm_simplicial_solve_transposed(s, L, x);
        for (int i = 0; i < n; i++) {
            double sum = -b[i];
            for (int k = i; k < n; k++) sum += factor[k][i] * x[k];
            other = fmax(other, fabs(sum));
        }
        double left = 0;
        for (int i = 0; i < n; i++) left = fmax(left, fabs(work[i]));
        check(bad == 0 && most < 1e-12 && residual < 1e-12 && other < 1e-12 && left == 0 && missing == 0,
              "%d elements, %d entries, %ld in the factor: off by %.1g, %.1g, %.1g", n, entries, s->entries, most, residual, other);
    }
    free(L);
    free(work);
    gm_simplicial_close(s);
}

int main(void)
{
    srand(5);
    static const double meet[] = { 0, 0.02, 0.1, 0.5, 1 };
    for (int k = 0; k < 5; k++)
        for (int n = 1; n <= MOST; n = 2 * n + 1 > MOST && n < MOST ? MOST : 2 * n + 1) try_matrix(n, meet[k], 1.1);
    try_matrix(7, 0.5, -1);
    return failures > 0;
}
