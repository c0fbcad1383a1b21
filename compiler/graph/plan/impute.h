// impute.h -- missing values of data are drawn.
#ifndef GMC_GRAPH_IMPUTE_H
#define GMC_GRAPH_IMPUTE_H
#include "../graph.h"

// updates of responses that may have missing values; those of `last` nothing else sees
void impute(Graph *g, Update **first, Update **last);
#endif
