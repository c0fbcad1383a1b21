// explain.h -- --explain.
#ifndef GMC_EXPLAIN_H
#define GMC_EXPLAIN_H
#include <stdio.h>
#include "../kernel/kernel.h"

// A line for each unknown, then the law of each update; `full`: with costs, method selections, and what runs in parallel, and without the
// lines. After the passes over kernels.
void explain(FILE *out, const Program *p, bool full, const char *path);
#endif
