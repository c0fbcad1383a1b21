// prover.h -- what loops, conditions and declared bounds say of whole numbers.
#ifndef GMC_GRAPH_PROVER_H
#define GMC_GRAPH_PROVER_H
#include "../graph.h"

bool prove_nonneg(const Loops *l, Expr *e);  // e, a whole number, is provably at least 0 within the loops
bool prove_length(Expr *n);                  // n, a whole number, is at least 0 in every run that gets past the requirements
bool prove_never(const Loops *l);            // the loops' condition never holds
#endif
