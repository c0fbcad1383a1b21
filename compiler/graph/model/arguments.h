// arguments.h -- what data must satisfy to be arguments of distributions.
#ifndef GMC_GRAPH_ARGUMENTS_H
#define GMC_GRAPH_ARGUMENTS_H
#include "requirements.h"

bool require_arguments(Requirements *c);  // false: a constant is no value of its parameter
// requires that an array of data, passed whole, satisfies the constraint; `what` says as which argument
void ask_of_array(Requirements *c, const Expr *e, int rank, Expr *guard, Constraint constraint, bool counts, const char *what, Span span);
bool require_argument(Requirements *c, const Factor *f, int k);  // the k-th alone; false: a constant is outside, which is reported

// the condition that arguments which mention v lie in their domains; NULL: they always do
Expr *arguments_lie_inside(Graph *g, const Factor *f, const Var *v);
#endif
