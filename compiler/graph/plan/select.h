// select.h -- blocks for which the warm-up selects between Gibbs updates and NUTS.
#ifndef GMC_GRAPH_SELECT_H
#define GMC_GRAPH_SELECT_H
#include "../graph.h"

bool select_method(Graph *g);  // connected sets of unknowns
bool move_together(Graph *g);  // unknowns that would be sliced one by one although they depend on each other
// the unknowns that are summed out of what the block reads with so many sums behind it; their number
int summed_out_of(Graph *g, Var *const *block, int n, int sums, Var **out);
#endif
