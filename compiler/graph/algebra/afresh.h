// afresh.h -- what may be updated with auxiliaries integrated out.
#ifndef GMC_GRAPH_AFRESH_H
#define GMC_GRAPH_AFRESH_H
#include "../graph.h"

bool can_collapse(Graph *g, const Var *v);  // v may be updated with auxiliaries integrated out
// what is made of a response before sampling, so that its values cannot be missing; NULL: nothing
const char *needed_for(Graph *g, const Var *v);
#endif
