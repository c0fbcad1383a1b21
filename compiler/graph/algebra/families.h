// families.h -- the family that a conditional belongs to.
#ifndef GMC_GRAPH_FAMILIES_H
#define GMC_GRAPH_FAMILIES_H
#include "../graph.h"

void find_family(Graph *g, Conditional *c);      // fills family, power, natural, bounds; or because
void find_statistics(Graph *g, Conditional *c);  // fills `statistic`: what the natural parameters multiply
// of a scalar's family with these natural parameters: false if its law has none
bool arguments_of_law(Graph *g, const Conditional *c, Expr *const *natural, Expr **args);
#endif
