// show.h -- the schedule as text.
#ifndef GMC_GRAPH_SHOW_H
#define GMC_GRAPH_SHOW_H
#include "../graph.h"

void schedule_print(FILE *out, const Graph *g);  // with the law of each update, if describe_updates has run
#endif
