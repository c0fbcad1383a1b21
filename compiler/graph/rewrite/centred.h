// centred.h -- models that are written non-centred.
#ifndef GMC_GRAPH_CENTRED_H
#define GMC_GRAPH_CENTRED_H
#include "../graph.h"

bool centre_model(Graph *g);  // models that are written non-centred
// which arguments a and s make (x - a)/s a density that knows neither; false: none do
bool centre_and_spread(Graph *g, const Distribution *d, int nargs, Expr *const *args, int *centre, int *spread);
#endif
