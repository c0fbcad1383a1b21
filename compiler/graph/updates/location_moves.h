// location_moves.h -- locations, moved with what they are the locations of.
#ifndef GMC_GRAPH_LOCATION_MOVES_H
#define GMC_GRAPH_LOCATION_MOVES_H
#include "../graph.h"

bool find_location_moves(Graph *g);  // adds the updates that move locations with what they are the locations of
#endif
