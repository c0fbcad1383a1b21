// scales.h -- scales that are drawn before a joint normal, which is integrated out.
#ifndef GMC_GRAPH_SCALES_H
#define GMC_GRAPH_SCALES_H
#include "../graph.h"

typedef struct Scales {  // drawn before a joint normal, which is integrated out
    int n, nfactors;
    Var **var;
    Factor **factor;  // all factors that mention them
} Scales;

bool find_scales(Graph *g);                    // fills gaussian.scales
Scales *scales_of(Graph *g, const Update *s);  // of a joint normal; NULL: there are none
#endif
