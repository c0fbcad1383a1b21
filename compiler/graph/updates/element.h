// element.h -- the update of one variable by itself.
#ifndef GMC_GRAPH_ELEMENT_H
#define GMC_GRAPH_ELEMENT_H
#include "../rewrite/joined.h"

// singly: not together with its other elements, along their chain. no_plane: why it is not jointly normal given that its sum is 0
Update *element_update(Graph *g, Var *v, bool singly, const char *no_plane);
Update *update_on_gpu(Graph *g, Var *v, const Update *on_cpu);  // all elements along a chain at once, parallel in time
Update *joined_update(Graph *g, const Joined *j);               // several unknowns by the product of their values
#endif
