// reflections.h -- reflections: unknowns in products change sign together.
#ifndef GMC_GRAPH_REFLECTIONS_H
#define GMC_GRAPH_REFLECTIONS_H
#include "../graph.h"

bool find_reflections(Graph *g);  // adds the updates
#endif
