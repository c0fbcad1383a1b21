// augment.h -- rules of the stdlib applied to factors.
#ifndef GMC_GRAPH_AUGMENT_H
#define GMC_GRAPH_AUGMENT_H
#include "../graph.h"

// an extent for each loop; where another loop picks the end, room for the longest. False: memory is taken before that is known, as in
// first[j]:(first[j+1]-1)
bool loop_extents(const Loops *p, Expr **extent);
bool augment(Graph *g);  // applies the rules of the stdlib; false after a message
#endif
