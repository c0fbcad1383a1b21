// declare.h -- the variables of a model.
#ifndef GMC_GRAPH_DECLARE_H
#define GMC_GRAPH_DECLARE_H
#include "elaborate.h"

bool declare(Graph *g);                                                             // false after a message
void set_shape(Graph *g, Var *v, const Decl *d);                                    // rank and dimensions, as declared
void note_extent(Expr *e);                                                          // marks e as the number of elements of an array
Expr *bound_at(Graph *g, const Var *v, int side, Expr *const *at, const Env *env);  // the declared bound of one element
// marks variables whose elements have several supports; seen: by number, NULL at first
void find_mixed(const Graph *g, const Stmt *s, const char **seen);
#endif
