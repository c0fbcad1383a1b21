// sets.h -- joint normals of several plates.
#ifndef GMC_GRAPH_SETS_H
#define GMC_GRAPH_SETS_H
#include "block_terms.h"
#include "few_rows.h"

// its elements are coupled in pairs or lists that loops name, or by few rows, and not each with each
bool coupled_in_pairs(Graph *g, Var *v, const BlockTerm *terms);
void find_listed(Graph *g, Update *s);                    // fills `listed` of a sparse block
int stands_in(const Sum *s);                              // k, if only updates that replace the sparse block k read the statistic; else 0
const Rows *listed_in(const Update *s, const Factor *f);  // whether this factor is row-listed there; or NULL
#endif
