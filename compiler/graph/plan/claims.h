// claims.h -- what data must satisfy for every element that the model reads to exist.
#ifndef GMC_GRAPH_CLAIMS_H
#define GMC_GRAPH_CLAIMS_H
#include "../graph.h"

bool find_claims(Graph *g);                    // fills g->claims; false after a message
void claims_print(FILE *out, const Graph *g);  // each requirement, with its loops and line
#endif
