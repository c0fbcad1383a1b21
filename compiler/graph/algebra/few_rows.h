// few_rows.h -- joint normals whose precision is diagonal but for one factor's instances, the rows.
#ifndef GMC_GRAPH_FEW_ROWS_H
#define GMC_GRAPH_FEW_ROWS_H
#include "block_terms.h"

typedef struct Rows {      // a block's precision is diagonal but for one factor's instances, the rows
    const char *name;      // of the block's first variable
    const Factor *factor;  // its plates run over the rows; where its guard is false, a row is empty
    Expr *count, *size;    // how many rows, how many coefficients
    Expr *weight, *shift;  // log density of a row: -weight/2 (phi'x)^2 + shift (phi'x), weight >= 0
    BlockTerm *phi;        // a row's entries, all of degree 1: phi[ref] += coefficient; loops are those within the row
    // each is a number, or a row of a matrix of data: its number among joint normals that may be row-listed for the runtime; 0: they
    // are not
    int listed;
    struct Rows *next;  // of the same sparse block
} Rows;                 // the terms of other factors: of degree 2 to the diagonal D > 0, of degree 1 to a shift of their own

bool has_pattern(const BlockTerm *terms);  // the elements in them depend only on sizes and on data without missing values
void find_rows(Graph *g, Update *s);       // fills rows or no_rows of a joint normal
// of a term of Rows.phi: the matrix of data whose row its entries are, each element of a vector by its column; or NULL
const Var *matrix_of_entries(const BlockTerm *t);
// one factor as rows of weight, shift and phi, without their count; NULL: it has another form
Rows *factor_rows(Graph *g, Var *const *block, int n, const Factor *f);
#endif
