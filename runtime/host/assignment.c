// assignment.c -- the permutation of least cost.
//
// Rows are assigned one after the other. For each, a path of alternating unassigned and assigned pairs of least reduced cost cost[k][l] -
// u[k] - v[l] >= 0 is found as Dijkstra's algorithm finds shortest paths, and the assignment changed along it; u and v then keep reduced
// costs at 0 on assigned pairs and at least 0 elsewhere, which proves the assignment the best. Kuhn 1955, Naval Research Logistics
// Quarterly 2; Jonker and Volgenant 1987, Computing 38. tests/host/assignment.c compares with all permutations.
#include "messages.h"
#include "relabel.h"

#include <math.h>
#include <stdlib.h>

double gm_assign(int n, const double *cost, int *to)
{
    const size_t room = (size_t)n + 1;
    double *u = gm_alloc(room, sizeof *u), *v = gm_alloc(room, sizeof *v), *least = gm_alloc(room, sizeof *least);
    // rows and columns count from 1, 0 is none
    int *row = gm_alloc(room, sizeof *row), *before = gm_alloc(room, sizeof *before);
    bool *done = gm_alloc(room, sizeof *done);
    for (int k = 1; k <= n; k++) {
        row[0] = k;
        int at = 0;
        for (int l = 0; l <= n; l++) {
            least[l] = INFINITY;
            done[l] = false;
        }
        do {  // the path grows to the column that is nearest
            done[at] = true;
            const int from = row[at];
            double step = INFINITY;
            int next = 0;
            for (int l = 1; l <= n; l++) {
                if (done[l]) continue;
                const double reduced = cost[(size_t)(from - 1) * (size_t)n + (size_t)(l - 1)] - u[from] - v[l];
                if (reduced < least[l]) {
                    least[l] = reduced;
                    before[l] = at;
                }
                if (least[l] < step) {
                    step = least[l];
                    next = l;
                }
            }
            for (int l = 0; l <= n; l++) {
                if (done[l]) {
                    u[row[l]] += step;
                    v[l] -= step;
                } else {
                    least[l] -= step;
                }
            }
            at = next;
        } while (row[at]);
        while (at) {
            row[at] = row[before[at]];
            at = before[at];
        }
    }
    double sum = 0;
    for (int l = 1; l <= n; l++) {
        to[row[l] - 1] = l - 1;
        sum += cost[(size_t)(row[l] - 1) * (size_t)n + (size_t)(l - 1)];
    }
    free(u);
    free(v);
    free(least);
    free(row);
    free(before);
    free(done);
    return sum;
}
