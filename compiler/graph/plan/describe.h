// describe.h -- a step for readers.
#ifndef GMC_GRAPH_DESCRIBE_H
#define GMC_GRAPH_DESCRIBE_H
#include "../graph.h"

bool describe_updates(Graph *g);             // fills the description of each step
void plan_print(FILE *out, const Graph *g);  // the schedule, and the requirements
#endif
