// reflections.h -- unknowns of either sign that stand in products, turned together.
#ifndef GMC_GRAPH_REFLECTIONS_H
#define GMC_GRAPH_REFLECTIONS_H
#include "../graph.h"

bool find_reflections(Graph *g);  // adds the steps that turn the signs of unknowns that stand in products
#endif
