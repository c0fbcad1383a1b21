// band.h -- joint normals whose precision is a band along a chain.
#ifndef GMC_GRAPH_BAND_H
#define GMC_GRAPH_BAND_H
#include "block_terms.h"

typedef struct ChainVar {  // which subscripts of a variable are what
    int along, npanel, panel[MAX_RANK], ninner, inner[MAX_RANK];
} ChainVar;

typedef struct Band {  // a joint normal whose precision is a band along a chain, or one for each of a panel, and a dense border
    Var **var;         // those of the block, or in place of innovations the series that they make
    int nchain;        // the first of them have a subscript along the chain; the others are the border
    ChainVar *chain;
    int lag;                        // elements further apart share no term
    Expr *panels, *length, *width;  // chains, nodes of a chain, elements of a node
    Expr *border;                   // elements of the border
    Expr **offset;                  // where each variable begins, within a node or within the border
    bool in_place;                  // the draw has the order of the only variable
} Band;

// between which numbers a - b lies for all values of their indices, at most 16 either way; false: it is not known, or more, or the
// difference varies and a itself lies between numbers, as those of a few elements do that are coupled each with each
bool band_apart(Expr *a, Expr *b, int *least, int *most);
Band *band_of(Graph *g, Var *const *block, int nblock, int nchain, const BlockTerm *terms);  // NULL: it is none
#endif
