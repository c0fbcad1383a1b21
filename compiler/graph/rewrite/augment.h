// augment.h -- rules of the stdlib applied to factors.
#ifndef GMC_GRAPH_AUGMENT_H
#define GMC_GRAPH_AUGMENT_H
#include "../graph.h"

// an extent for each loop; if the end depends on another loop, that of the longest. False: the extent is not known when memory is
// allocated, as in first[j]:(first[j+1]-1)
bool loop_extents(const Loops *p, Expr **extent);
bool augment(Graph *g);  // applies the rules of the stdlib; false after a message
#endif
