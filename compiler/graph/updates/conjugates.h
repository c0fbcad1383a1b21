// conjugates.h -- parameters of a plate of conjugate unknowns, drawn with these integrated out.
#ifndef GMC_GRAPH_CONJUGATES_H
#define GMC_GRAPH_CONJUGATES_H
#include "../update.h"

// is[i] in place of sum[i], in terms of the plate's conditional
Expr *in_place_of_sums(const Without *w, Expr *e, Expr *const *is);
bool find_conjugates(Graph *g);  // parameters of a plate of conjugate unknowns, drawn with these integrated out
#endif
