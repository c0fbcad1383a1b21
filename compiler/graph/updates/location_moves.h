// location_moves.h -- location moves: a location and the effects around it change by the same amount.
#ifndef GMC_GRAPH_LOCATION_MOVES_H
#define GMC_GRAPH_LOCATION_MOVES_H
#include "../graph.h"

bool find_location_moves(Graph *g);  // adds the updates
#endif
