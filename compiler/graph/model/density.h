// density.h -- the log density of a factor.
#ifndef GMC_GRAPH_DENSITY_H
#define GMC_GRAPH_DENSITY_H
#include "elaborate.h"

void factor_density(Graph *g, Factor *f, const Distribution *d, Expr *value, int nargs, Expr **args);  // fills log_density
Expr *factor_log_mass(Graph *g, Factor *f);  // of what lies between its ends; NULL: the library does not know it
Expr *component_density(Graph *g, const Factor *f, const Component *c);  // of the value of f, without the weight
void mixture_in_domains(Graph *g, Factor *f);  // components have density 0 where their arguments lie outside their domains
void added_in_domains(Graph *g);               // the same for densities in statements target +=
// of a factor whose components are listed: with its indicator summed out
void mixture_density(Graph *g, Factor *f, Expr *value);
void target_density(Graph *g, Factor *f, const Ast *e, const Env *env);  // of a statement target += e
void factor_ends(Factor *f, Expr *lo, Expr *hi);  // an interval that data may leave empty: to be checked at load; NULL: open
#endif
