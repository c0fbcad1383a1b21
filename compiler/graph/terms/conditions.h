// conditions.h -- what is left of conditions.
#ifndef GMC_GRAPH_CONDITIONS_H
#define GMC_GRAPH_CONDITIONS_H
#include "../graph.h"

// what the ranges of its indices do not decide; NULL: it always holds; the number 0: it never does
Expr *condition_left(Expr *condition);
bool goes_on(const Expr *condition);  // of a choice whose sides are equal where it switches, or everywhere: no jump of a density
#endif
