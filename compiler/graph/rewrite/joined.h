// joined.h -- discrete unknowns that are drawn together, by the product of their values.
#ifndef GMC_GRAPH_JOINED_H
#define GMC_GRAPH_JOINED_H
#include "../graph.h"

enum { MOST_JOINED = 4, FEW_STATES = 32 };

// of the element and the one before: the transition of one unknown, given what is new of those behind it and what was of those before it in
// the list
typedef struct JoinedLink {
    int of;      // of the set; -1: of all together
    bool alone;  // it reads no others
    Expr *density;
} JoinedLink;

typedef struct Joined {  // of one shape
    int n;
    Var *var[MOST_JOINED];
    Expr *count[MOST_JOINED];  // how many values each has
    Var *product;              // stands for all: values from 0, those of the first unknown running first
    Var *part[MOST_JOINED];    // part[i][p]: what var[i] is where the product is p
    // of the product; products of numbers that an element takes together, and in turn
    Expr *values, *products, *in_turn;
    Expr *where, *on_gpu;  // sizes for which they are drawn together, and on a GPU; NULL: always
    bool collapsed;
    // local and link in terms of part[i][u] and part[i][before]; before NULL: elements are independent
    Conditional *conditional;
    int nlinks;  // in the order in which messages are summed
    JoinedLink link[MOST_JOINED];
} Joined;

void find_joined(Graph *g);  // fills Var.joined
#endif
