// columns.h -- linear predictors that are written out, as a matrix of data times a vector.
#ifndef GMC_GRAPH_COLUMNS_H
#define GMC_GRAPH_COLUMNS_H
#include "../graph.h"

bool find_columns(Graph *g);  // vectors of unknowns and matrices of data in place of sums of products
#endif
