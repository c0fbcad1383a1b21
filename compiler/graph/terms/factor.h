// factor.h -- factors of the log joint, and statements that compute.
#ifndef GMC_GRAPH_FACTOR_H
#define GMC_GRAPH_FACTOR_H
#include "../graph.h"

Loops loops_of_indices(Index *const *index, int n, Expr *guard);          // these n indices, where guard is true; NULL: always
Factor *factor_new(Graph *g, Span at, Loops plates);                      // of density 1, after all others
Factor *factor_beside(Graph *g, Factor *f);                               // a copy, next after it
void factor_add(Factor *f, Expr *e);                                      // to its log density
Factor *factor_with(Graph *g, const Factor *f, Expr *log_density);        // a copy that is not added to the graph
void factor_change(Factor *f, Expr *(*how)(Expr *, void *), void *with);  // changes its expressions, but not ranges and condition
void site_change(Site *t, Expr *(*how)(Expr *, void *), void *with);      // the same of a statement that computes
const Factor *factor_written(const Factor *f);                            // the factor as written, if augmentations replaced it
// Whether f is part of the joint that the update of v sees, or of that with so many unknowns summed out: the augmented one, or (collapsed)
// the model as written, auxiliaries integrated out.
bool factor_counts(const Factor *f, const Var *v, bool collapsed);
bool factor_counts_at(const Factor *f, int sums, bool collapsed);  // the same of a joint with so many unknowns summed out
// v decides whether an instance exists, or which values its data may have
bool factor_decided_by(const Factor *f, const Var *v);
// whether some of these variables enter its condition or the ends of its loops
bool decide_instances(const Factor *f, bool (*are)(const Var *v, void *with), void *with);
bool factor_draws(const Factor *f, const Var *v);  // it is a statement that gives elements of v a distribution
#endif
