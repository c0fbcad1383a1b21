// choices.h -- rows in which data decide which elements of an unknown are read, as factors of their own.
#ifndef GMC_GRAPH_CHOICES_H
#define GMC_GRAPH_CHOICES_H
#include "../graph.h"

bool split_choices(Graph *g);  // a factor for the rows of each branch
#endif
