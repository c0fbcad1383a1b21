// proposals.h -- scales and what they are the scales of, proposed together.
#ifndef GMC_GRAPH_PROPOSALS_H
#define GMC_GRAPH_PROPOSALS_H
#include "../graph.h"

bool find_proposals(Graph *g);  // adds the updates
#endif
