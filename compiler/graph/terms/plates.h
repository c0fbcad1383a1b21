// plates.h -- loops around a statement, and of a sum.
#ifndef GMC_GRAPH_PLATES_H
#define GMC_GRAPH_PLATES_H
#include "../graph.h"

const char *loops_text(const Graph *g, const Loops *l);  // i in 1:N, j in 1:p where ...
#endif
