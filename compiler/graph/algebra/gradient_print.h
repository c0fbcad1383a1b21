// gradient_print.h -- derivatives for readers.
#ifndef GMC_GRAPH_GRADIENT_PRINT_H
#define GMC_GRAPH_GRADIENT_PRINT_H
#include "../graph.h"

void gradient_print(FILE *out, const Graph *g);  // of the model as written, by each continuous unknown
#endif
