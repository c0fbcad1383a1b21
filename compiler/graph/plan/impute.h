// impute.h -- missing values of data are drawn.
#ifndef GMC_GRAPH_IMPUTE_H
#define GMC_GRAPH_IMPUTE_H
#include "../graph.h"

// appends the updates of responses that may have missing values; to `last` those that no other update reads
void impute(Graph *g, Update **first, Update **last);
#endif
