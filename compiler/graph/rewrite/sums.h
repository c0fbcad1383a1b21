// sums.h -- one discrete unknown is summed out.
#ifndef GMC_GRAPH_SUMS_H
#define GMC_GRAPH_SUMS_H
#include "../graph.h"

// who sees it summed out: all others; what its own law depends on; the same, to be taken back; NUTS in a method selection
typedef enum { FOR_ALL, FOR_PARENTS, FOR_TRIAL, FOR_MOVES } Seen;

// as the number `number`; along a chain only if there may be chains. Why it cannot; NULL: it is
const char *sum_out(Graph *g, Var *v, int number, bool chains, Seen by);
const Factor *reading_latents(Graph *g, const Var *v);  // a factor of v whose latents cannot be integrated out; NULL: none
bool is_gathered(const Conditional *c);                 // rows name its elements
bool has_matrix(const Expr *e);                         // it is made of matrices, or of arrays
#endif
