// chains.h -- joint normals along a chain.
#ifndef GMC_GRAPH_CHAINS_H
#define GMC_GRAPH_CHAINS_H
#include "blocks.h"

// all of a block that the model asks for; NULL: it is no chain with a border
Update *chain_of(Graph *g, Candidate *list, int n, Var *const *block, int m);
// the chain that begins with a variable; NULL: its elements are no chain
Update *grow_chain(Graph *g, Growing *b, Candidate *list, int n, Candidate *first);
// of a series whose elements have innovations of their own; NULL: it has none
Update *innovations_update(Graph *g, Candidate *list, int n, const Series *series);
#endif
