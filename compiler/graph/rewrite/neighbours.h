// neighbours.h -- elements of discrete unknowns along a chain.
#ifndef GMC_GRAPH_NEIGHBOURS_H
#define GMC_GRAPH_NEIGHBOURS_H
#include "../conditional.h"

// How far from the element the others of its variable are that a part reads; false: not at one distance along the subscript.
typedef struct Neighbour {
    const Conditional *c;
    int along, apart;
    bool other, ok;
} Neighbour;

Expr *sum_over(const Loops *l, Expr *e);               // e summed over loops, where their condition holds
bool reads_past(const Conditional *c, const Part *q);  // the part holds what the chain remembers besides the element before
// the log density of what holds one element alone, as a function of its value; what does not depend on that goes to `apart`
Expr *own_density(const Conditional *c, Expr **apart);
Neighbour neighbour_of(const Conditional *c, const Part *q);  // which other element the part holds
Expr *element_beside(const Conditional *c, int apart);        // the element so far behind, or before, along the chain
Expr *link_before(const Conditional *c);                      // the log density of what holds the element and the one before it
bool along_neighbours(const Conditional *c);                  // its elements depend on their neighbours along one subscript
// fills local, link and before of one whose elements are independent, or along a chain, and keeps each pair once in its density
void take_at_once(Conditional *c);
#endif
