// polynomial.h -- expansion in an element, or in the elements of a block.
#ifndef GMC_GRAPH_POLYNOMIAL_H
#define GMC_GRAPH_POLYNOMIAL_H
#include "../graph.h"

typedef struct Term {  // sum over loops of coefficient * product of refs
    Expr *coefficient;
    int degree;
    Expr *ref[4];
    Loops loops;  // only those opened while expanding
} Term;

// opaque: why it failed: it is none, or would be too long
typedef struct Terms {
    int n, size;
    Term *term;
    bool failed, too_long;
    Expr *opaque;
} Terms;

// What counts as an unknown of a polynomial: an element of the variables; with `wrapped`, log(v[..]), inverse(v)[..], log_determinant(v).
typedef struct Unknowns {
    Var *const *var;
    int n;
    bool wrapped;
} Unknowns;

// e as a polynomial in the unknowns, of at most `most` degree; equal monomials are merged.
Terms polynomial(Arena *a, Expr *e, const Unknowns *in, int most);
// of failed ones: "`...` (line 3) is not quadratic", and `not` says what
const char *terms_because(Arena *a, const Terms *t, const char * not, Span at);

// What is known of that polynomial before it is expanded: an upper bound of its degree and of the sums in one term, whether it has terms in
// the variable `apart`, in others, and products of the two (unless they cancel). failed: it is none of at most `most` degree.
typedef struct Degree {
    int degree, loops;
    bool own, other, both, failed;
} Degree;

// of at most `most`; `apart`: one of the unknowns, or NULL
Degree polynomial_degree(Expr *e, const Unknowns *in, const Var *apart, int most);
typedef struct Statistic {
    Expr *statistic;
    Expr *coefficient;
} Statistic;  // statistic: an expression in u alone
// many: too many to be listed, or too long: the one that there is is all of it
typedef struct Statistics {
    int n, size;
    Statistic *item;
    bool many;
} Statistics;
// e as a sum of coefficient * statistic(u), u any reference. What cannot be taken apart is a statistic of its own.
Statistics statistics(Arena *a, Expr *e, Expr *u);
Expr *free_of(Arena *a, Expr *e, Expr *u);  // and what is left: the terms without u
#endif
