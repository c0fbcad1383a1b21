// schedule.h -- how each variable is drawn, and in which order.
#ifndef GMC_GRAPH_SCHEDULE_H
#define GMC_GRAPH_SCHEDULE_H
#include "../graph.h"

bool schedule(Graph *g);                  // an update for each unknown; the passes behind it add others
bool complete_sweep(Graph *g);            // once all updates are there
const char *only_on_cpu(const Graph *g);  // why its program runs on the CPU alone; NULL: it does not
#endif
