// If this failed, labels of components would be permuted otherwise than costs say: the assignment would not be the one of least cost, or no
// permutation.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../runtime/device/rng.h"
#include "../../runtime/host/messages.h"
#include "../../runtime/host/relabel.h"

// The least cost over all permutations of the columns from `at` on.
static double least(int n, const double *cost, int *to, int at)
{
    if (at == n)
        return 0;
    double best = INFINITY;
    for (int k = at; k < n; k++) {
        const int l = to[k];
        to[k] = to[at];
        to[at] = l;
        const double x = cost[at * n + l] + least(n, cost, to, at + 1);
        best = x < best ? x : best;
        to[at] = to[k];
        to[k] = l;
    }
    return best;
}

int main(void)
{
    int failures = 0;
    long cases = 0;
    for (int n = 1; n <= 7; n++)
        for (int k = 0; k < 400; k++) {
            Stream g = stream((Sweep){ .seed = 1 }, (uint32_t)n, (uint64_t)k);
            double cost[49];
            for (int i = 0; i < n * n; i++) {            // real costs, or small integers: many ties; of either sign
                const double u = uniform_open(&g);
                cost[i] = k % 3 == 0 ? u : k % 3 == 1 ? floor(4 * u) - 2 : -1e6 * u * u;
            }
            int to[7], seen[7] = { 0 }, all[7];
            const double got = gm_assign(n, cost, to);
            double sum = 0;
            bool permutation = true;
            for (int i = 0; i < n; i++) {
                permutation &= to[i] >= 0 && to[i] < n && !seen[to[i]]++;
                sum += permutation ? cost[i * n + to[i]] : 0;
                all[i] = i;
            }
            const double best = least(n, cost, all, 0), tolerance = 1e-12 * (1 + fabs(best));
            if (!permutation || fabs(got - sum) > tolerance || fabs(got - best) > tolerance) {
                printf("FAIL n %d case %d: cost %.17g, of the permutation %.17g, least %.17g\n", n, k, got, sum, best);
                failures++;
            }
            cases++;
        }
    // A thousand labels: the permutation by which the rows were reordered is found again.
    enum { MANY = 1000 };
    double *cost = gm_alloc((size_t)MANY * MANY, sizeof *cost);
    int *to = gm_alloc(MANY, sizeof *to), wrong = 0;
    for (int i = 0; i < MANY; i++)
        for (int j = 0; j < MANY; j++)
            cost[i * MANY + j] = (j - (i * 7 + 3) % MANY) * (double)(j - (i * 7 + 3) % MANY);
    gm_assign(MANY, cost, to);
    for (int i = 0; i < MANY; i++)
        wrong += to[i] != (i * 7 + 3) % MANY;
    printf(wrong ? "FAIL %d of 1000 labels are wrong\n" : "ok   a permutation of 1000 labels (%d wrong)\n", wrong);
    free(cost);
    free(to);
    printf("%ld matrices, %d failed\n", cases, failures);
    return failures || wrong;
}
