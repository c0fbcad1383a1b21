// var.h -- variables, and properties that follow from their kind.
#ifndef GMC_GRAPH_VAR_H
#define GMC_GRAPH_VAR_H
#include "../graph.h"

Var *var_new(Graph *g, const char *name, VarKind kind);     // added to the graph; its name is reserved
Var *var_unique(Graph *g, const char *stem, VarKind kind);  // a fresh name that starts with stem
bool var_unknown(const Var *v);                             // parameter, latent or auxiliary
bool is_real_unknown(const Var *v);                         // a continuous unknown, or an array of such, without a constraint beside ends
bool is_plain_real(const Var *v);                           // also: all elements have the same ends, and none is computed
// dimensions of a value whose elements are constrained together: 1 vector, 2 matrix, 0 none
int constraint_rank(const Var *v);
// values of v can be written in reals without bounds, for NUTS
bool has_coordinates(const Var *v, const char **because);
bool have_one_shape(const Var *v, const Var *w);  // as many dimensions, of the same extents
#endif
