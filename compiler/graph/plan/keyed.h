// keyed.h -- the statistics of hoist.h, by keys that are drawn in the sweep.
#ifndef GMC_GRAPH_KEYED_H
#define GMC_GRAPH_KEYED_H
#include "hoist.h"

bool is_drawn_key(const Expr *e);                // c[i], of a discrete unknown
bool has_drawn_key(int n, Expr *const *target);  // one of the targets is such a key
bool reads_weights(const Expr *e);               // reads probability_c[i, k]: of the values of a latent that is replaced by expectations
Expr *hoist_weighted(Sums *to, const Keys *keys, const Loops *l, Expr *value);  // as hoist_sum, if the value reads such weights
Expr *hoist_keyed(Sums *to, const Keys *keys, const Loops *l, Expr *value);     // as hoist_sum, if a key is drawn
#endif
