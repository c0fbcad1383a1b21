// check.h -- conditions that every pass must leave true.
#ifndef GMC_GRAPH_CHECK_H
#define GMC_GRAPH_CHECK_H
#include "../graph.h"

const char *graph_check(const Graph *g, const char *pass);  // the condition that the pass broke, or NULL
#endif
