// arguments.h -- what data must satisfy to be arguments of distributions.
#ifndef GMC_GRAPH_ARGUMENTS_H
#define GMC_GRAPH_ARGUMENTS_H
#include "requirements.h"

bool require_arguments(Requirements *c);  // false: a constant is no value of its parameter
// data taken whole: it satisfies the constraint, because it is `what`
void ask_of_array(Requirements *c, const Expr *e, int rank, Expr *guard, Constraint constraint, bool counts, const char *what, Span span);
bool require_argument(Requirements *c, const Factor *f, int k);  // the k-th alone; false: a constant is outside, which is reported

// the condition that arguments which hold v lie in their domains; NULL: they always do
Expr *arguments_lie_inside(Graph *g, const Factor *f, const Var *v);
#endif
