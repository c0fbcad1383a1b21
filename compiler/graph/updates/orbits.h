// orbits.h -- scales, moved with what they scale.
#ifndef GMC_GRAPH_ORBITS_H
#define GMC_GRAPH_ORBITS_H
#include "../graph.h"

bool find_orbits(Graph *g);  // adds the steps that move scales with what they scale
#endif
