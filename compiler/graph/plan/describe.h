// describe.h -- an update for readers.
#ifndef GMC_GRAPH_DESCRIBE_H
#define GMC_GRAPH_DESCRIBE_H
#include "../conditional.h"

bool describe_updates(Graph *g);             // fills the description of each update
void plan_print(FILE *out, const Graph *g);  // the schedule, and the requirements
// a part's sum over its loops, for the element that the conditional is about. A gather's loops run over those rows that name the element
Expr *total_of_part(Graph *g, const Conditional *c, const Part *p);
// what a distribution that is in no textbook is, at these arguments: its square is inv_gamma(1/2, 1/nu); NULL: it is in textbooks
const char *meaning_of(const Graph *g, const Distribution *d, int nargs, Expr *const *args);
#endif
