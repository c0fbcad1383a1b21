// expect.h -- latents by their expectations, for modes.
#ifndef GMC_GRAPH_EXPECT_H
#define GMC_GRAPH_EXPECT_H
#include "../graph.h"

typedef struct Expected {  // the arrays that an update fills in place of a draw
    int n;
    // ENUM: the probabilities of the values; EXACT: expectations of these statistics of the family, by their number
    Var *of[MAX_NATURAL];
    int which[MAX_NATURAL];
    // for each element the log of the sum of the weights of its values, which is its term of the log density; NULL: the log density
    // computes this sum itself
    Var *evidence;
} Expected;

// Fills the updates that find expectations, each made by update_of, and the factors that updates of maximisation read; false after a
// message.
bool expectations(Graph *g, Update *(*update_of)(Graph *, Var *), Update **updates);
#endif
