// reflections.h -- unknowns of either sign that stand in products, turned together.
#ifndef GMC_GRAPH_REFLECTIONS_H
#define GMC_GRAPH_REFLECTIONS_H
#include "../graph.h"

bool find_reflections(Graph *g);  // adds the updates that reflect the signs of unknowns in products
#endif
