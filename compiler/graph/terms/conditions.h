// conditions.h -- conditions, simplified by the ranges of their indices.
#ifndef GMC_GRAPH_CONDITIONS_H
#define GMC_GRAPH_CONDITIONS_H
#include "../graph.h"

// the part that the ranges of its indices do not decide; NULL: it is always true; the number 0: it never is
Expr *condition_left(Expr *condition);
bool goes_on(const Expr *condition);  // a choice by it has equal sides where it switches, or everywhere: the density does not jump
#endif
