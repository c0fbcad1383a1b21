// centred.h -- models that are written non-centred.
#ifndef GMC_GRAPH_CENTRED_H
#define GMC_GRAPH_CENTRED_H
#include "../graph.h"

bool centre_model(Graph *g);  // models that are written non-centred
// the arguments a and s for which the density of (x - a)/s depends on neither; false: there are none
bool centre_and_spread(Graph *g, const Distribution *d, int nargs, Expr *const *args, int *centre, int *spread);
#endif
