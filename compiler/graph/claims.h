// claims.h -- claims.c and coverage.c among themselves.
#ifndef GMC_CLAIMS_H
#define GMC_CLAIMS_H
#include "graph.h"

typedef struct Coverage Coverage;

typedef struct Claims {
    Graph  *g;
    Claim **last;
    Var    *defining;                    // a definition of data in whose statement we are: it is computed before claims are checked; or NULL
    bool    predicting;                  // in the predict block
    int     nindices;
    Index **index;                       // of loops, shared by claims
} Claims;

void        claim(Claims *c, Claim k);                                   // unless it follows from loops, conditions and bounds
const char *claims_line(Graph *g, Span s);                               // file.gm:12

bool claim_arguments(Claims *c);                                         // arguments.c; false: a constant is no value of its parameter
void ask_of_array(Claims *c, const Expr *e, int rank, Expr *guard, Constraint constraint, bool counts, const char *what, Span span);    // data taken whole: it satisfies the constraint, because it is `what`
bool claim_argument(Claims *c, const Factor *f, int k);      // the k-th alone; false: a constant is outside, which is reported

// ---- coverage.c ----

bool find_coverage(Claims *c);                                           // false: an element has two statements
void claim_named(Claims *c, Var *v, const Loops *l, Span at, int n, Expr *const *subscript);      // some statement draws or defines the element
void claim_whole(Claims *c, Var *v);                                     // all elements of an ordered vector have a statement, or none has
#endif
