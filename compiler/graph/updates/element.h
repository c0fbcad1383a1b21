// element.h -- the step of one variable by itself.
#ifndef GMC_GRAPH_ELEMENT_H
#define GMC_GRAPH_ELEMENT_H
#include "../rewrite/joined.h"

// singly: not together with its other elements, along their chain. no_plane: why it is not jointly normal given that its sum is 0
Step *element_step(Graph *g, Var *v, bool singly, const char *no_plane);
Step *step_on_gpu(Graph *g, Var *v, const Step *on_cpu);  // all elements along a chain at once, parallel in time
Step *joined_step(Graph *g, const Joined *j);             // several unknowns by the product of their values
#endif
