// adjoints.h -- sums and products of adjoints.
#ifndef GMC_GRAPH_ADJOINTS_H
#define GMC_GRAPH_ADJOINTS_H
#include "../graph.h"

bool is_partial(const Expr *e);                   // a choice with a branch that is 0
bool all_partial(const Expr *e);                  // that, or a sum of such
bool is_choice(const Expr *e);                    // if_else(c, a, b)
Expr *choice_of(Expr *c, Expr *a, Expr *b);       // if_else(c, a, b)
Expr *adjoint_plus(Expr *a, Expr *b);             // choices by the same condition become one
Expr *adjoint_times(Expr *a, Expr *b);            // within the branches of a partial choice
Expr *when_chosen(Expr *e);                       // when a partial choice, or a sum of them, is not 0
Expr *adjoint_where(Expr *c, Expr *e, bool yes);  // e where the condition c has this value
#endif
