// claims.h -- what data must satisfy for every element that the model reads to exist.
#ifndef GMC_GRAPH_CLAIMS_H
#define GMC_GRAPH_CLAIMS_H
#include "../graph.h"

bool find_claims(Graph *g);
void claims_print(FILE *out, const Graph *g);
#endif
