// neighbours.h -- elements of discrete unknowns along a chain.
#ifndef GMC_GRAPH_NEIGHBOURS_H
#define GMC_GRAPH_NEIGHBOURS_H
#include "../conditional.h"

// The distance of the other element of the variable that a part reads; ok false: there is no single distance along the subscript.
typedef struct Neighbour {
    const Conditional *c;
    int along, apart;
    bool other, ok;
} Neighbour;

Expr *sum_over(const Loops *l, Expr *e);               // e summed over loops, where their condition is true
bool reads_past(const Conditional *c, const Part *q);  // the part depends on more of the past than the previous element
// the log density of the terms in one element alone, as a function of its value; terms that do not depend on it go to `apart`
Expr *own_density(const Conditional *c, Expr **apart);
Neighbour neighbour_of(const Conditional *c, const Part *q);  // the other element in the part
Expr *element_beside(const Conditional *c, int apart);        // the element at this distance along the chain
Expr *link_before(const Conditional *c);                      // the log density of the terms in the element and the previous one
bool along_neighbours(const Conditional *c);                  // its elements depend on their neighbours along one subscript
// fills local, link and before of one whose elements are independent, or along a chain, and keeps each pair once in its density
void take_at_once(Conditional *c);
#endif
