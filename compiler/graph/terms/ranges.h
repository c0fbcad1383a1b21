// ranges.h -- between which numbers expressions lie.
#ifndef GMC_GRAPH_RANGES_H
#define GMC_GRAPH_RANGES_H
#include "../graph.h"

// between which numbers e lies, as far as it follows from declared types and supports
void range_of(const Expr *e, double *lo, double *hi);
bool never_negative(Expr *e);  // provably at least 0, wherever it is a number
#endif
