// expect.h -- latents by their expectations, for modes.
#ifndef GMC_GRAPH_EXPECT_H
#define GMC_GRAPH_EXPECT_H
#include "../graph.h"

// Fills the steps that find expectations, each made by step_of, and the factors that steps of maximisation read; false after a message.
bool expectations(Graph *g, Step *(*step_of)(Graph *, Var *), Step **steps);
#endif
