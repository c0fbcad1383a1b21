// history.h -- chains whose elements depend on more than the previous one.
#ifndef GMC_GRAPH_HISTORY_H
#define GMC_GRAPH_HISTORY_H
#include "../graph.h"

typedef struct Past {  // the states of a chain: a value, and the summaries of all elements so far; numbers, states from 0
    Arena *arena;
    int nvalues, nsummaries, nstates;
    double first;             // value
    Var **stand;              // placeholders of the summaries before the element k, l, ...: stand[q][k, l, ...]
    double *before;           // their values before the first element
    double *value, *summary;  // of state s: value[s], summary[s*nsummaries + q]
    int *next, *start;        // the state after s if the value is first + k: next[s*nvalues + k]; of the first element: start[k]
} Past;

// NULL: its factors read no element before the previous one, or read them in a form that is not recognised
Conditional *conditional_with_past(Graph *g, Var *v, bool collapsed);
Past *no_past(Graph *g, double first, int nvalues);  // of a chain that remembers nothing: its states are its values
// Summary q of the previous state, which is counted from 1; is_first: the condition that there is no previous state.
Expr *remembered(const Past *p, int q, Expr *before, Expr *is_first);
// the state of an element with this value, in terms of the state before it
Expr *state_behind(const Past *p, Expr *before, Expr *value, Expr *is_first);
#endif
