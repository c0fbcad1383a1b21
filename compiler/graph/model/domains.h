// domains.h -- whether arguments lie in the domains of their parameters.
#ifndef GMC_GRAPH_DOMAINS_H
#define GMC_GRAPH_DOMAINS_H
#include "../graph.h"

typedef struct Domain {  // x lies between two ends, NULL: open, for each value of an index
    Expr *x, *end[2];
    Index *along;  // NULL: there is one x
} Domain;

// the condition that arguments lie in their domains; NULL: they always do, or supports are not known yet
Expr *inside_domains(Graph *g, const Distribution *d, int nargs, Expr **args, Expr *value);
// The same for a draw, of whatever arguments: before supports are known with terms that will be true. `only_unseen`: order, and weights
// that add up; what else is asked is seen in what the routine draws.
Expr *whole_domains(Graph *g, const Distribution *d, int nargs, Expr **args, Expr *value, bool only_unseen);
// e is `data` times a factor that is not negative: then data are checked, and no condition is added
bool is_factor_of_data(Expr *e, Expr **data);
bool moves_freely(const Expr *e);                // a sweep may change it by less than 1, or it may be missing in data
// x lies on the inner side of the end (0: lower) in any case; or it does so for a factor of it that data have, or a trial weighs
bool end_is_certain(Expr *x, Expr *end, int side);
bool end_is_kept(Expr *x, Expr *end, int side);
bool domain_in_doubt(Domain *d);                 // removes ends that x can never cross; true if one is left
// the ends that the k-th argument must respect and might not; x is NULL: there are none
Domain domain_of_argument(Graph *g, const Distribution *dist, int nargs, Expr **args, Expr *value, int k);
#endif
