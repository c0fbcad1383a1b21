// priors.h -- the log prior, one term for each unknown, for runs that ask for it.
#ifndef GMC_GRAPH_PRIORS_H
#define GMC_GRAPH_PRIORS_H
#include "../graph.h"

typedef struct PriorTerm {  // a term of the log prior
    const char *name;       // of the unknown, or of the response; "other": of statements about no single unknown
    const Var *of;          // the unknown, or the response; NULL: other
    bool missing;           // of a response: the density of its missing values, which the runtime adds up from its log-likelihood
    Var *term;              // where it is kept
    int n, room;            // the factors that it adds up
    const Factor **factor;
    struct PriorTerm *next;
} PriorTerm;

bool find_priors(Graph *g);                    // fills g->priors
void priors_print(FILE *out, const Graph *g);  // the terms
#endif
