// scale_moves.h -- scales, moved with what they scale.
#ifndef GMC_GRAPH_SCALE_MOVES_H
#define GMC_GRAPH_SCALE_MOVES_H
#include "../graph.h"

bool find_scale_moves(Graph *g);  // adds the updates that move scales with what they scale
#endif
