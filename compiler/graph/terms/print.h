// print.h -- a graph as text.
#ifndef GMC_GRAPH_PRINT_H
#define GMC_GRAPH_PRINT_H
#include "../graph.h"

void plates_print(FILE *out, const Loops *p);   //  over i in 1:N where ...
void factor_print(FILE *out, const Factor *f);  // normal(y[i] | mu, s), or the term of target +=
void graph_print(FILE *out, const Graph *g);    // variables, series, factors
#endif
