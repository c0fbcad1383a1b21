// updates.h -- updates of a schedule that is being made.
#ifndef GMC_GRAPH_UPDATES_H
#define GMC_GRAPH_UPDATES_H
#include "../update.h"

// the update that draws whole numbers with a least value, one element at a time; NULL: they are drawn otherwise
const Update *step_of_integers(Graph *g, const Var *v);
const Update *step_of_count(Graph *g, const Var *v);            // the same, if they have more than a few values
const Update *update_that_draws(const Graph *g, const Var *v);  // in each sweep, not by NUTS of a selection
bool is_of_series(const Graph *g, const Var *v);                // a series has to be computed again when v has changed
// the update of v, alone or in a block, that a group move may follow: not NUTS, and no other unknown summed out. NULL: there is none
const Update *update_in_sweep(const Graph *g, const Var *v);
bool by_data_colours(const Update *s);                   // elements are drawn in classes (colours) that are computed from the data
Update *update_new(Graph *g, UpdateKind kind, Span at);  // of no variable yet
void update_append(Update **list, Update *s);            // s and the updates after it
// where a group move is added: after all updates but NUTS of a method selection
Update **updates_of_sweep(Graph *g);
void update_insert(Update ***at, Update *s);  // inserts s at *at, and moves *at behind it; s may be NULL
// of a block that is jointly normal
Update *gaussian_update(Graph *g, Var *const *block, int n, bool arrow, int nbatch, const char *reason);
// of one variable, given its conditional
Update *single_update(Graph *g, UpdateKind kind, Var *v, Conditional *c, bool collapsed, const char *reason);
#endif
