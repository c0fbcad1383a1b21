// conditionals.h -- what each variable's update sees.
#ifndef GMC_GRAPH_CONDITIONALS_H
#define GMC_GRAPH_CONDITIONALS_H
#include "../conditional.h"

Conditional *conditional_element(Graph *g, Var *v, bool collapsed);  // one element at a time
// a gather is a part over all its rows, scattered to the elements that they name
Conditional *conditional_scattered(Graph *g, Var *v, bool collapsed);
// the same for an update that evaluates the density: a gather is a part under its condition, and no part is scattered
Conditional *conditional_density(Graph *g, Var *v, bool collapsed);
// of a variable that enters these factors, which need not be the graph's
Conditional *conditional_given(Graph *g, Var *v, const struct Reading *factors, bool scatter);
Conditional *conditional_whole(Graph *g, Var *v, bool collapsed);  // every factor that mentions v, read from the state
// conditional_density of a variable that enters these factors
Conditional *conditional_density_of(Graph *g, Var *v, const struct Reading *factors, bool collapsed);
Conditional *conditional_array(Graph *g, Var *v);  // the last one or two dimensions at once: simplex, covariance

// The log density of z[k, ...] and b[k, ...] as a function of both: parts in terms of the u of each. z->with is b, whose subscripts are
// those of z. Fills nbatch of z; NULL: they cannot be distinguished.
Part *joint_density(Graph *g, Conditional *z, Conditional *b);
// fills own, if the only factor of the element is its distribution
bool conditional_own(Graph *g, Conditional *c, bool collapsed);
Factor *weighed(Graph *g, Factor *f, const Var *v);  // f as the conditional of v sees it
#endif
