// domains.h -- whether arguments lie in the domains of their parameters.
#ifndef GMC_GRAPH_DOMAINS_H
#define GMC_GRAPH_DOMAINS_H
#include "../graph.h"

typedef struct Domain {  // x lies between two ends, NULL: open, for each value of an index
    Expr *x, *end[2];
    Index *along;  // NULL: there is one x
} Domain;

// the condition that arguments lie in their domains; NULL: they do, or supports are not known yet
Expr *inside_domains(Graph *g, const Distribution *d, int nargs, Expr **args, Expr *value);
// the same whether it is known to hold or not
Expr *whole_domains(Graph *g, const Distribution *d, int nargs, Expr **args, Expr *value);
// an argument is `data` times what is not negative: a requirement of data, and no term
bool is_factor_of_data(Expr *e, Expr **data);
bool moves_freely(const Expr *e);                // a sweep may change it by less than a whole number, or data may lack it
bool end_is_kept(Expr *x, Expr *end, int side);  // x lies on the inner side of the end (0: lower) in any case
bool domain_in_doubt(Domain *d);                 // takes out ends that are kept in any case; whether one is left
// what the k-th argument must satisfy, and does not in any case; x is NULL: nothing
Domain domain_of_argument(Graph *g, const Distribution *dist, int nargs, Expr **args, Expr *value, int k);
#endif
