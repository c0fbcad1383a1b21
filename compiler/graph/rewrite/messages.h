// messages.h -- discrete unknowns along a chain, summed out from the last element to the first.
#ifndef GMC_GRAPH_MESSAGES_H
#define GMC_GRAPH_MESSAGES_H
#include "../graph.h"

Expr *first_alike(const Var *v, Expr *chain);                  // the first chain with the same data
Expr *message_at(const Var *v, Expr *const *at, Expr *state);  // the element of Var.messages
Expr *place_of_value(const Var *v, Expr *value);               // among the messages, from 1
Expr *value_at_place(const Var *v, Expr *place);               // and back
// makes the series of messages; gives log_sum_exp of the first, in terms of the other subscripts of the element
Expr *sum_along(Graph *g, const Conditional *c, Expr *local, bool moved);
Conditional *chain_density(Graph *g, Var *v, bool collapsed);  // of an element with its neighbours, or with a past
Conditional *conditional_chain(Graph *g, Var *v);              // of an element given the previous one, with those after it summed out
Conditional *conditional_at_once(Graph *g, Var *v);            // of all elements along a chain of discrete ones
#endif
