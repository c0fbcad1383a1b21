// history.h -- chains whose elements remember more than the one before.
#ifndef GMC_GRAPH_HISTORY_H
#define GMC_GRAPH_HISTORY_H
#include "../graph.h"

typedef struct Past {  // the states of a chain: a value, and the summaries behind the element; all numbers, states from 0
    Arena *arena;
    int nvalues, nsummaries, nstates;
    double first;             // value
    Var **stand;              // of each summary before the element k, l, ...: stand[q][k, l, ...]
    double *before;           // what that is before the first element
    double *value, *summary;  // of state s: value[s], summary[s*nsummaries + q]
    int *next, *start;        // the state of the value first + k behind s: next[s*nvalues + k]; of the first element: start[k]
} Past;

// NULL: its factors read nothing of the past but the element before, or what they read is not understood
Conditional *conditional_with_past(Graph *g, Var *v, bool collapsed);
Past *no_past(Graph *g, double first, int nvalues);  // of a chain that remembers nothing: its states are its values
// In terms of the state before, from 1: summary q of it, and the state of an element with this value behind it; is_first: there is none
// before.
Expr *remembered(const Past *p, int q, Expr *before, Expr *is_first);
// the state of an element with this value, in terms of the state before it
Expr *state_behind(const Past *p, Expr *before, Expr *value, Expr *is_first);
#endif
