// build.h -- the model graph from the checked tree.
#ifndef GMC_GRAPH_BUILD_H
#define GMC_GRAPH_BUILD_H
#include "../graph.h"

bool  build(Graph *g);
Expr *written_out(Expr *e);                                      // with definitions of one value in place of their names
void  settle_values(Graph *g);                                   // the range of each discrete unknown, once its factors are there
const Distribution *not_drawn(const Factor *f);                  // the distribution, of a mixture the component, that the library cannot draw from; NULL: it can
void  replicate(Graph *g, const Factor *f, Expr *value);         // sites that draw `value` as the factor says
void observe_value(Graph *g, Factor *f, Span at, Expr *y, Expr *e);    // the data y say that e equals y
#endif
