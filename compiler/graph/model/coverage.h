// coverage.h -- which elements of a variable have statements.
#ifndef GMC_GRAPH_COVERAGE_H
#define GMC_GRAPH_COVERAGE_H
#include "requirements.h"

bool find_coverage(Requirements *c);  // false: an element has two statements
// some statement draws or defines the element
void require_named(Requirements *c, Var *v, const Loops *l, Span at, int n, Expr *const *subscript);
void require_whole(Requirements *c, Var *v);                    // all elements of an ordered vector have a statement, or none has
Expr *element_exists(Graph *g, Var *v, Index *const *element);  // the condition, by counting; NULL: always
// the element to which a statement gives a distribution, also through a function of it; NULL: none, or several
const Expr *drawn_by(const Factor *f);
// several functions of one element may have distributions, as y[i] and log(y[i])
bool coverage_overlaid(const Var *v);
#endif
