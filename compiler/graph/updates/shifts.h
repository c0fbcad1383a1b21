// shifts.h -- locations, moved with what they are the locations of.
#ifndef GMC_GRAPH_SHIFTS_H
#define GMC_GRAPH_SHIFTS_H
#include "../graph.h"

bool find_shifts(Graph *g);  // adds the steps that move locations with what they are the locations of
#endif
