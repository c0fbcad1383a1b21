// nuts.h -- blocks that are moved along gradients.
#ifndef GMC_GRAPH_NUTS_H
#define GMC_GRAPH_NUTS_H
#include "../graph.h"

extern const Request all_by_nuts;  // what gmc asks for by itself

bool has_gradient(Graph *g, Var *v, const char **because);  // its values are moved along gradients, or because says why not
// as_written: wherever latents can be integrated out, or are not drawn at all
Update *nuts_update(Graph *g, const Request *asked, Var *const *block, int n, bool as_written);
bool has_jump(const Expr *log_density, Var *const *block, int n);  // the density jumps as the block moves
bool block_jumps(Graph *g, Var *const *block, int n);              // and so does that of some factor that the block enters
#endif
