// sum.h -- a statistic of data, or of one sweep.
#ifndef GMC_GRAPH_SUM_H
#define GMC_GRAPH_SUM_H
#include "graph.h"

typedef struct Server {
    const struct Update *update;
    struct Server *next;
} Server;

typedef struct Sum {  // a statistic, an array target[...] += sum over loops of value
    Var *var;
    Loops loops;
    int n;
    Expr *target[MAX_RANK];  // subscripts, in terms of the loops' indices
    Expr *at[MAX_RANK];      // the same where it was asked for first: names for the subscripts
    Expr *value;
    // computed once for the run; else a subscript is an unknown, and the sum is computed again after that is drawn
    bool data_only;
    struct Server *serves;     // updates that read it, in order
    const char *purpose;       // its other use, for readers; or NULL
    bool asked_apart;          // something other than an update reads it
    const struct Rows *route;  // it is read only where this draw has many rows; NULL: elsewhere, too
    struct Sum *next;
} Sum;
#endif
