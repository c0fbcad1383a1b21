// var.h -- variables: made, and what they say of themselves.
#ifndef GMC_GRAPH_VAR_H
#define GMC_GRAPH_VAR_H
#include "../graph.h"

Var *var_new(Graph *g, const char *name, VarKind kind);     // the last one of the graph; the name is taken from now on
Var *var_unique(Graph *g, const char *stem, VarKind kind);  // a fresh name that starts with stem
bool var_unknown(const Var *v);                             // parameter, latent or auxiliary
bool is_real_unknown(const Var *v);                         // a continuous unknown, or an array of such, without a constraint beside ends
bool is_plain_real(const Var *v);                           // and with the same ends for all elements, none of which is computed
// of a value whose elements are constrained together: 1 vectors, 2 matrices, 0 there is none
int constraint_rank(const Var *v);
// values of v can be written in reals without bounds, for NUTS
bool has_coordinates(const Var *v, const char **because);
bool have_one_shape(const Var *v, const Var *w);  // as many dimensions, of the same extents
#endif
