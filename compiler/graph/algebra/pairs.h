// pairs.h -- an unknown of few values and the coefficient that it switches on, multiplies or scales.
#ifndef GMC_GRAPH_PAIRS_H
#define GMC_GRAPH_PAIRS_H
#include "../conditional.h"

enum { MOST_OF_PAIR = 8 };

// Given the value number m of the indicator, the log density of the coefficient x is constant + linear*x + square*x^2: each a sum of parts.
typedef struct Pair {
    Conditional *indicator, *coefficient;  // of one element, with the same subscripts
    int first, n;                          // values of the indicator
    Part *part;                            // which = pair_part(m, k): k 0 constant, 1 linear, 2 square; m -1: the same at all values
} Pair;

static inline int pair_part(int m, int k) { return 3 * (m + 1) + k; }
const Pair *find_pair(Graph *g, Var *z);  // NULL: it has no such coefficient
#endif
