// print.h -- a graph as text.
#ifndef GMC_GRAPH_PRINT_H
#define GMC_GRAPH_PRINT_H
#include "../graph.h"

void  plates_print(FILE *out, const Plates *p);
void  factor_print(FILE *out, const Factor *f);
void  graph_print(FILE *out, const Graph *g);
#endif
