// naming.h -- readable names of statistics.
#ifndef GMC_GRAPH_NAMING_H
#define GMC_GRAPH_NAMING_H
#include "../graph.h"

const char *statistic_name(const Graph *g, const Sum *s);  // sum_x_by_group: another variable may have this name
// of what is computed for each instance of loops: log_w, over_s_squared
const char *value_name(const Graph *g, const Expr *e, const Loops *over);
const char *local_name(const Graph *g, const Expr *e);  // of one value: log_sigma, inverse_sigma_squared; "" if that says too little
const Var *statistic_mean(const Expr *e);                      // the statistic of which it is the mean over what is observed; or NULL
const char *total_name(Graph *g, const Expr *e);  // of a sum over data alone: mean_x, sum_x, max_x
// sum_x_by_group[k] = sum of x[i] over i with group[i] = k; serves the conditional of mu[j]
const char *statistic_text(const Graph *g, const Sum *s);
#endif
