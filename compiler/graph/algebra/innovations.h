// innovations.h -- recursive definitions that are chains of normals.
#ifndef GMC_GRAPH_INNOVATIONS_H
#define GMC_GRAPH_INNOVATIONS_H
#include "block_terms.h"

typedef struct Innovations Innovations;  // the elements of a series, each linear in an innovation of its own

typedef struct InnovationChange {  // x = rest + coefficient*ref, of one statement
    Span span;
    Expr *x, *ref, *coefficient, *rest;
} InnovationChange;

Innovations *innovations_of(Graph *g, Var *x);  // of what its own statements compute; NULL: it has none
// the same, if no other series reads its elements or their innovations. NULL: it has none
Innovations *find_innovations(Graph *g, const Series *s);
Var *const *innovation_vars(const Innovations *in, int *n);  // the unknowns of which they are elements
Var *innovation_series(const Innovations *in);               // the variable whose elements have them
// statement k: over loops the innovation `ref` is `value`, in terms of the series; false: there is none
bool innovation_at(const Innovations *in, int k, Loops *loops, Expr **ref, Expr **value);
// statement k, over loops; false: there is none
bool innovation_change(const Innovations *in, int k, Loops *loops, InnovationChange *out);
// e with the innovations replaced by their values; *good false: a value is not known
Expr *in_terms_of_innovated(const Innovations *in, Expr *e, bool *good);
// f in terms of the series in place of the innovations; false: it is not known which innovations it reads
bool innovation_factors(Graph *g, const Innovations *in, const Factor *f, Factor **list);
bool innovation_coefficients_mention(const Innovations *in, const Var *v);  // if so, the Jacobian depends on v
// of block_terms, with the series in place of the innovations; false: they are not jointly quadratic
bool innovation_terms(Graph *g, const Innovations *in, Var *const *border, int nborder, BlockTerm **out);
#endif
