// zeros.h -- densities that are 0 where arguments leave their domains.
#ifndef GMC_GRAPH_ZEROS_H
#define GMC_GRAPH_ZEROS_H
#include "../graph.h"

void keep_domains(Graph *g);  // called by build
#endif
