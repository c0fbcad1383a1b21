// left_out.h -- responses whose missing values are left out of all other conditionals.
#ifndef GMC_GRAPH_LEFT_OUT_H
#define GMC_GRAPH_LEFT_OUT_H
#include "../graph.h"

bool leave_missing_out(Graph *g);  // responses of which the model asks `y by marginal`: false after a message
#endif
