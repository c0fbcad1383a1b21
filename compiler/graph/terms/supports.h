// supports.h -- ends of the values of variables.
#ifndef GMC_GRAPH_SUPPORTS_H
#define GMC_GRAPH_SUPPORTS_H
#include "../graph.h"

// the first (side 0) and the last value of an integer, if they are known from data; else NULL
Expr *end_of_summed(const Var *v, int side);
// of an unknown: in terms of data if all elements have the same one, else a number, which may be infinite
Expr *end_of_value(const Var *v, int side);
double number_of_values(const Var *v);  // of an integer with both ends; INFINITY: not known as a number
// whether an end (0: lower) of a support or truncation lies inside of a bound, as far as is known; NULL: none
bool lies_within(const Expr *bound, const Expr *end, int side);
#endif
