// scale_moves.h -- scale moves: a scale and its effects are multiplied by the same number.
#ifndef GMC_GRAPH_SCALE_MOVES_H
#define GMC_GRAPH_SCALE_MOVES_H
#include "../graph.h"

bool find_scale_moves(Graph *g);  // adds the updates
#endif
