// prover.h -- inequalities of whole numbers that follow from loops, conditions and declared bounds.
#ifndef GMC_GRAPH_PROVER_H
#define GMC_GRAPH_PROVER_H
#include "../graph.h"

bool prove_nonneg(const Loops *l, Expr *e);  // e, a whole number, is provably at least 0 within the loops
bool prove_length(Expr *n);                  // n, a whole number, is at least 0 in every run whose data satisfy the requirements
bool prove_never(const Loops *l);            // the loops' condition is never true
#endif
