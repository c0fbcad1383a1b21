// sums.h -- one discrete unknown is summed out.
#ifndef GMC_GRAPH_SUMS_H
#define GMC_GRAPH_SUMS_H
#include "../graph.h"

// for which updates it is summed out: all others; those of the unknowns in its own law; the same as a trial, which may be undone; NUTS in a
// method selection
typedef enum { FOR_ALL, FOR_PARENTS, FOR_TRIAL, FOR_MOVES } Seen;

// sums v out as number `number`, along a chain only if `chains`. NULL: done; else why that is not possible
const char *sum_out(Graph *g, Var *v, int number, bool chains, Seen by);
const Factor *reading_latents(Graph *g, const Var *v);  // a factor of v whose latents cannot be integrated out; NULL: none
bool is_gathered(const Conditional *c);                 // rows name its elements
bool has_matrix(const Expr *e);                         // it is made of matrices, or of arrays
#endif
