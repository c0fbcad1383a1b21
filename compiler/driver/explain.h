// explain.h -- --explain.
#ifndef GMC_EXPLAIN_H
#define GMC_EXPLAIN_H
#include <stdio.h>
#include "../kernel/kernel.h"

void explain(FILE *out, const Program *p);  // of all updates; after the passes over kernels
#endif
