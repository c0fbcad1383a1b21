// If this failed, a posterior that is not proper would be sampled as if it were, or a scale next to 0 for one sweep would end a run.
#include <stdio.h>

#include "../../runtime/host/host.h"

static int failures;

static void expect(int is, int wanted, const char *what, long sweep)
{
    if (is == wanted) return;
    printf("FAIL %s, sweep %ld: %s\n", what, sweep, is ? "stays" : "is a fault");
    failures++;
}

static int may_stay(long sweep, long warmup, int chain, const char *name)
{
    const GmRun run = { .sweep = sweep, .warmup = warmup, .first_chain = chain };
    return gm_may_stay(&run, 0, name);
}

int main(void)
{
    // Never proper: all of the first 50 sweeps of warm-up, and not one more.
    for (long k = 0; k < 50; k++) expect(may_stay(k, 1000, 0, "a"), 1, "from the start", k);
    expect(may_stay(50, 1000, 0, "a"), 0, "from the start", 50);
    // Without warm-up, and later: 20 in a row. Another chain, or block, is counted for itself.
    for (long k = 0; k < 20; k++) expect(may_stay(k, 0, 1, "a"), 1, "without warm-up", k);
    expect(may_stay(20, 0, 1, "a"), 0, "without warm-up", 20);
    expect(may_stay(20, 0, 2, "a"), 1, "another chain", 20);
    expect(may_stay(20, 0, 1, "b"), 1, "another block", 20);
    // A block that is drawn in every tenth sweep is in a row, too.
    for (long k = 0; k < 20; k++) expect(may_stay(500 + 10 * k, 100, 3, "a"), 1, "every tenth sweep", 500 + 10 * k);
    expect(may_stay(700, 100, 3, "a"), 0, "every tenth sweep", 700);
    // Now and then: 100 times in all.
    for (long k = 0; k < 100; k++) expect(may_stay(500 + 11 * k, 100, 4, "a"), 1, "now and then", 500 + 11 * k);
    expect(may_stay(1600, 100, 4, "a"), 0, "now and then", 1600);
    // A new run knows nothing of the last.
    gm_fault_clear();
    expect(may_stay(1600, 100, 4, "a"), 1, "a new run", 1600);
    gm_fault_clear();
    return failures > 0;
}
