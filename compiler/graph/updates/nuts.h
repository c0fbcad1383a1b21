// nuts.h -- blocks that are drawn by HMC or NUTS.
#ifndef GMC_GRAPH_NUTS_H
#define GMC_GRAPH_NUTS_H
#include "../graph.h"

extern const Request all_by_nuts;  // the request that gmc makes by itself

bool has_gradient(Graph *g, Var *v, const char **because);  // NUTS can draw it; if not, *because says why
// as_written: with the density of the model as written wherever latents can be integrated out, or are not drawn
Update *nuts_update(Graph *g, const Request *asked, Var *const *block, int n, bool as_written);
bool has_jump(const Expr *log_density, Var *const *block, int n);  // the density has jumps along the block

// Of the factors that a block enters. Walls: where what is computed may leave its domain, of an argument as a rule, and nothing else jumps.
typedef enum { NO_JUMPS, WALLS, JUMPS } Jumps;
Jumps block_jumps(Graph *g, Var *const *block, int n);
#endif
