// trees.h -- discrete unknowns whose laws depend on each other.
#ifndef GMC_GRAPH_TREES_H
#define GMC_GRAPH_TREES_H
#include "../graph.h"

int find_trees(Graph *g);  // how many sums they take
// how many sums are needed for children and parents that determine each other; 0: there are none, or a child cannot be summed out
int tied_in_trees(Graph *g);
bool untie_pair(Graph *g);    // sums one out that determines another; false: there is none
void warn_of_ties(Graph *g);  // about those that are left
#endif
