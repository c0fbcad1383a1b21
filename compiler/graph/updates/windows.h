// windows.h -- rates of counts, moved against what sees these.
#ifndef GMC_GRAPH_WINDOWS_H
#define GMC_GRAPH_WINDOWS_H
#include "../graph.h"

bool find_windows(Graph *g);  // adds the updates that move rates of counts against what sees them
#endif
