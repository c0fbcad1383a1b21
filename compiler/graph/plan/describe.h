// describe.h -- an update for readers.
#ifndef GMC_GRAPH_DESCRIBE_H
#define GMC_GRAPH_DESCRIBE_H
#include "../graph.h"

bool describe_updates(Graph *g);             // fills the description of each update
void plan_print(FILE *out, const Graph *g);  // the schedule, and the requirements
#endif
