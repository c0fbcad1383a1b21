// block_terms.h -- the quadratic form of a block.
#ifndef GMC_GRAPH_BLOCK_TERMS_H
#define GMC_GRAPH_BLOCK_TERMS_H
#include "../graph.h"

typedef struct BlockTerm {  // J[ref0, ref1] or h[ref0] gets the sum over loops of coefficient
    const Factor *factor;   // where it comes from
    int degree;
    Expr *ref[2];
    Expr *coefficient;
    Loops loops;
    Span span;
    // of elements without a distribution, which nothing reads: independent standard normals, so that J is regular
    bool absent;
    bool by_rows;  // emission: summed by a pass over the rows of a dense matrix
    struct BlockTerm *next;
} BlockTerm;

// a term that a choice multiplies counts where the choice is made: elsewhere a subscript that data name need not have an element
void take_chosen(BlockTerm *b);
// false: not jointly quadratic
bool block_terms(Graph *g, Var *const *block, int nblock, BlockTerm **out, const char **because);
// of variables that enter these factors, which need not be the graph's
bool block_terms_given(Graph *g, Var *const *block, int nblock, const struct Reading *factors, BlockTerm **out, const char **because);
#endif
