// mentions.h -- references to a variable in a factor, and the plates at which they are one element.
#ifndef GMC_GRAPH_MENTIONS_H
#define GMC_GRAPH_MENTIONS_H
#include "../conditional.h"

enum { MAX_MENTIONS = 64 };  // each is compared with each
typedef struct Mentions {
    int n, size;
    Expr **ref;
    bool dense;
    bool too_many;
    bool partial;
} Mentions;
typedef struct Solved {
    Part *part;
    bool gather;
    bool ok;
} Solved;

void find_mentions(Arena *a, Expr *e, const Var *v, Mentions *m);      // the different references to v
int plate_of(const Loops *p, const Index *i);                          // its number; -1: it is none of them
bool plate_shift(const Loops *p, Expr *e, int *plate, double *shift);  // e as plate + shift
bool never_same(Expr *a, Expr *b);                                     // two references in one instance are never the same element
// subscripts of ref = element for the plates: a part in terms of the element
Solved solve(Graph *g, Conditional *c, Factor *f, Expr *ref, bool scatter_allowed);
bool stands_nowhere(const Part *p);  // the part has no element, for any sizes
// a factor unchanged, over its instances that mention the element
Part *whole_factor(Graph *g, const Conditional *c, Factor *f, const Mentions *m);
void part_append(Part **list, Part *p);  // appends p and the parts after it
#endif
