// data_requirements.h -- what data must satisfy for every element that the model reads to exist.
#ifndef GMC_GRAPH_DATA_REQUIREMENTS_H
#define GMC_GRAPH_DATA_REQUIREMENTS_H
#include "../graph.h"

bool find_requirements(Graph *g);                    // fills g->requirements; false after a message
void requirements_print(FILE *out, const Graph *g);  // each requirement, with its loops and line
#endif
