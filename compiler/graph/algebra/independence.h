// independence.h -- which elements of a variable are independent given the others.
#ifndef GMC_GRAPH_INDEPENDENCE_H
#define GMC_GRAPH_INDEPENDENCE_H
#include "../conditional.h"
#include "mentions.h"

// The distances of elements that share a factor: differences of subscripts, if these are constants.
enum { MOST_DISTANCES = 256 };
// hidden: data do not decide which elements meet
typedef struct Apartness {
    int n;
    int by[MOST_DISTANCES][MAX_RANK];
    bool unknown;
    Conflict *conflicts;
    bool hidden;
} Apartness;

bool known_from_data(const Expr *e);  // data without missing values
// a factor with several references couples elements: nbatch, colours, and how far they lie apart. arena NULL: no conflicts are listed
void couple_elements(Arena *arena, Conditional *c, const Factor *f, const Mentions *m, Apartness *apart);
void find_lattice(Conditional *c, const Apartness *d);  // fills lattice and stride
// in how many classes all elements are drawn, those of each class in parallel; 0: there are no such classes
int colours_of(const Conditional *c);
#endif
