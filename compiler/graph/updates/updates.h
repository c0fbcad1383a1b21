// updates.h -- updates of a schedule that is being made.
#ifndef GMC_GRAPH_UPDATES_H
#define GMC_GRAPH_UPDATES_H
#include "../update.h"

// that draws whole numbers with a least value one by one; NULL: they are drawn otherwise
const Update *step_of_integers(Graph *g, const Var *v);
const Update *step_of_count(Graph *g, const Var *v);            // and more than a few of them
const Update *update_that_draws(const Graph *g, const Var *v);  // in each sweep, not along gradients
bool is_of_series(const Graph *g, const Var *v);                // a series has to be computed again when v has changed
// that draws v by itself or with others, but not along gradients or with others summed out: a move may follow it. NULL: there is none
const Update *update_in_sweep(const Graph *g, const Var *v);
bool by_data_colours(const Update *s);                   // elements are drawn by colours that are found when data are read
Update *update_new(Graph *g, UpdateKind kind, Span at);  // of no variable yet
void update_append(Update **list, Update *s);            // s, and what comes behind it
// where a group move is added: after all updates but NUTS of a method selection
Update **updates_of_sweep(Graph *g);
void update_insert(Update ***at, Update *s);  // there, and `at` goes behind it; NULL: nothing is
// of a block that is jointly normal
Update *gaussian_update(Graph *g, Var *const *block, int n, bool arrow, int nbatch, const char *reason);
// of one variable, given its conditional
Update *single_update(Graph *g, UpdateKind kind, Var *v, Conditional *c, bool collapsed, const char *reason);
#endif
