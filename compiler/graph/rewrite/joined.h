// joined.h -- discrete unknowns that are drawn together, by the product of their values.
#ifndef GMC_GRAPH_JOINED_H
#define GMC_GRAPH_JOINED_H
#include "../graph.h"

enum { MOST_JOINED = 4, FEW_STATES = 32 };

// the transition of one unknown from the previous element: given the new values of those after it in the list, and the previous values of
// those before it
typedef struct JoinedLink {
    int of;      // its number in the set; -1: all together
    bool alone;  // it reads no others
    Expr *density;
} JoinedLink;

typedef struct Joined {  // of one shape
    int n;
    Var *var[MOST_JOINED];
    Expr *count[MOST_JOINED];  // how many values each has
    Var *product;              // one unknown for all: values from 0, the first unknown varies fastest
    Var *part[MOST_JOINED];    // part[i][p]: the value of var[i] where the product is p
    // number of values of the product; multiplications for an element drawn jointly, and one unknown after the other
    Expr *values, *products, *in_turn;
    Expr *where, *on_gpu;  // conditions on sizes for a joint draw, on a CPU and on a GPU; NULL: always
    bool collapsed;
    // local and link in terms of part[i][u] and part[i][before]; before NULL: elements are independent
    Conditional *conditional;
    int nlinks;  // in the order in which messages are summed
    JoinedLink link[MOST_JOINED];
} Joined;

void find_joined(Graph *g);  // fills Var.joined
#endif
