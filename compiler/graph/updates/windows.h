// windows.h -- rates of counts change together with parameters of the likelihood of the counts.
#ifndef GMC_GRAPH_WINDOWS_H
#define GMC_GRAPH_WINDOWS_H
#include "../graph.h"

bool find_windows(Graph *g);  // adds the updates
#endif
