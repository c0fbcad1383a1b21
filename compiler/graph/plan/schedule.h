// schedule.h -- how each variable is drawn, and in which order.
#ifndef GMC_GRAPH_SCHEDULE_H
#define GMC_GRAPH_SCHEDULE_H
#include "../graph.h"

bool schedule(Graph *g);                  // an update for each unknown; later passes add others
bool complete_sweep(Graph *g);            // the last pass of the updates
const char *only_on_cpu(const Graph *g);  // why the program can run on a CPU only; NULL: it also runs on a GPU
#endif
