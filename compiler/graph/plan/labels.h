// labels.h -- names of components that can be permuted.
#ifndef GMC_GRAPH_LABELS_H
#define GMC_GRAPH_LABELS_H
#include "../graph.h"

typedef struct Labelled {  // a variable that runs over labels
    const Var *var;
    unsigned dims;  // bit d: dimension d does
    bool values;    // its values are labels
    bool apart;     // its elements have an order of their own and are not permuted: stick-breaking proportions
    bool lost;      // a definition that depends on which label is which
    struct Labelled *next;
} Labelled;

// data along the labels: these are exchangeable only if nothing differs there
typedef struct Alike {
    const Var *var;
    int dim;
    struct Alike *next;
} Alike;

typedef struct Labels {  // 1 to count
    const Var *by;       // the first unknown whose values they are
    Expr *count;
    int set;                   // the class
    const char *identified;    // NULL: each permutation of them leaves the log joint as it is
    const char *not_permuted;  // why draws should not be permuted; NULL: they may be
    Alike *alike;
    Labelled *vars;  // all variables that depend on the labels
    struct Labels *next;
} Labels;

bool find_labels(Graph *g);                    // fills g->labels
void labels_print(FILE *out, const Graph *g);  // each kind of labels, with its variables
#endif
