// observed.h -- log-likelihoods and replicates of what is observed, for runs that ask for them.
#ifndef GMC_GRAPH_OBSERVED_H
#define GMC_GRAPH_OBSERVED_H
#include "../graph.h"

typedef struct Observed {  // a variable, or a statement that is not about one
    const char *name;
    const Var *var;                         // or NULL
    Span span;                              // of its first statement
    Var *log_lik, *replicate;               // NULL: not made,
    const char *no_log_lik, *no_replicate;  // because
    struct Observed *next;
} Observed;

bool find_observed(Graph *g);                    // fills g->observed; false after a message
// Data that the density of f reads, or the condition on which it stands: not those that only say how many elements an array has, or
// iterations a loop. NULL: there are none.
const Var *data_read(const Graph *g, const Factor *f);
void observed_print(FILE *out, const Graph *g);  // the variables that runs may ask for
#endif
