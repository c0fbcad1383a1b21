// series.h -- definitions whose elements depend on each other.
#ifndef GMC_GRAPH_SERIES_H
#define GMC_GRAPH_SERIES_H
#include "../graph.h"

bool find_series(Graph *g);  // called by build
void suppose_series(Graph *g);  // those that are not negative, as far as it is known of what they read, have a lower end of 0
// adds a series of v alone, from the sites of v, after all others; false: no subscript gives an order
bool add_series(Graph *g, Var *v);
// the definitions of v in ascending order of this subscript; NULL: that is no order in which they can be computed
Series *series_along(Graph *g, Var *v, int along);
// the only series that v enters, if its first subscript distinguishes chains, each of which reads elements of v with this first subscript
// alone; or NULL
Series *series_in_chains(Graph *g, const Var *v);
// whether e reads both with this first subscript alone
bool series_reads_own(const Series *s, const Var *v, const Expr *e, Expr *chain);
#endif
