// expr.h -- symbolic expressions: immutable, hash-consed, in a normal form.
//
// Two expressions are equal exactly if their pointers are. Every expression is a scalar function of loop indices, data and
// variables, written in index notation: the vector X*beta does not exist, its element i is sum(j, X[i,j]*beta[j]). An
// array occurs only where a routine needs one whole, as in inverse(S)[j,k]: a variable with fewer subscripts than its
// rank, or an ARRAY (a comprehension).
//
// Normal form, kept by the constructors: sums and products are flat and sorted, equal terms and powers are collected, a
// number comes first. Numeric factors are multiplied into a sum that is alone and taken out of one that has other factors (x*(2*a - 2*b)
// is 2*x*(a - b)). Logs of products of positive things are split. Zero times anything is zero, also what is infinite or undefined: the
// density of 0 successes of probability 0 is 1 (0 log 0 = 0), and if_else(c, a, 0)*t means if_else(c, a*t, 0). Code that evaluates a
// product has to follow this rule (ex_absorbed). Subscripts count from 1, as in the model.
#ifndef GMC_EXPR_H
#define GMC_EXPR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "../../base/arena.h"
#include "../../front/functions.h"

typedef struct Expr Expr;
typedef struct Var Var;
typedef struct Index Index;

typedef enum {
    EX_NUM,     // number
    EX_REF,     // var[arg0, arg1, ...]
    EX_INDEX,   // a loop index
    EX_ADD,     // arg0 + arg1 + ...
    EX_MUL,     // arg0 * arg1 * ...
    EX_POW,     // arg0 ^ number
    EX_CALL,    // name(arg0, ...)
    EX_REDUCE,  // name(index in arg0:arg1, arg2)      name: sum, prod, min, max
    EX_ARRAY,   // [arg1 for index in 1:arg0]          arg1 may again be an ARRAY
    EX_AT,      // arg0[arg1, ...]                     arg0 a CALL that gives an array
} ExprKind;

// A loop index. Loops have names and ranges of their own. The index that a REDUCE or an ARRAY binds is one of
// the canonical indices `bound(height)`, so that equal reductions are the same expression whatever their index was called.
struct Index {
    const char *name;
    Expr *lo, *hi;  // inclusive; NULL for canonical indices
    int id;
    int height;  // > 0: canonical index of reductions of this height
    int least;   // what it is never below: 1, 0, or -1 for anything
    bool written;  // of a loop that the model writes
};

struct Expr {
    ExprKind kind;
    int id;      // order of creation: the order of sums and products
    int height;  // nesting of reductions
    int nargs;
    double number;
    Expr *formula;     // of a NUM that was computed: by what, for readers; NULL: it is short (numbers.h)
    const char *name;  // of a CALL or REDUCE
    FunctionId fn;     // its row in functions.def
    unsigned hash;
    Var *var;
    Index *index;
    Expr **args;
    uint64_t vars;     // bit (var id mod 64) of every variable below
    uint64_t indices;  // bit (index id mod 64) of every index below
    double size;       // nodes of the tree: more than there are expressions, where they share parts
    // an array has this many elements, or a statement requires so many: a program refuses data with which it is negative
    bool extent;
    int known;                // emission: names that it has in the current C scope
    int loose;                // height of the highest canonical index below that no reduction below binds; 0: none
    signed char diverges[2];  // whether it may be infinite or no number: 1 yes, 2 no, 0 not asked
    // numbers of the last walk that visited this node: of simple walks, of walks with a test (which may start others), of emission
    uint64_t seen, met[3], kept;
    Expr *chain;
};

void expr_start(Arena *a);  // once for a compilation: empties the table

// What was made before some moment. expr_forget takes all expressions and canonical indices out of the table that were made since: none of
// them may be in use then.
typedef struct ExprMark {
    unsigned count;
    int next_id, next_index;
} ExprMark;
ExprMark expr_mark(void);
void expr_forget(ExprMark since);

Expr *ex_num(double v);
Expr *ex_pi(void);
Expr *ex_ref(Var *v, int n, Expr *const *subscripts);
Expr *ex_index(Index *i);
Expr *ex_add(int n, Expr *const *terms);
Expr *ex_mul(int n, Expr *const *factors);
Expr *ex_pow(Expr *base, double exponent);
Expr *ex_call(const char *name, int n, Expr *const *args);
Expr *ex_reduce(const char *name, Index *i, Expr *lo, Expr *hi, Expr *body);
Expr *ex_array(Index *i, Expr *extent, Expr *body);
Expr *ex_at(Expr *array, int n, Expr *const *subscripts);  // subscripts an array-valued expression, as far as it can be

Expr *ex_add2(Expr *a, Expr *b);
Expr *ex_whole(Expr *e);  // a count for readers: what of it is a number is rounded, 19/3 + 12*N as 6 + 12*N
Expr *ex_sub(Expr *a, Expr *b);    // a - b
Expr *ex_plus(Expr *a, double c);  // a + c
Expr *ex_mul2(Expr *a, Expr *b);
Expr *ex_div(Expr *a, Expr *b);
Expr *ex_neg(Expr *a);
Expr *ex_call1(const char *name, Expr *a);
Expr *ex_call2(const char *name, Expr *a, Expr *b);
Expr *ex_call3(const char *name, Expr *a, Expr *b, Expr *c);
Expr *ex_log(Expr *a);
Expr *ex_both(Expr *condition, Expr *other);    // both conditions; NULL: no condition
Expr *ex_either(Expr *condition, Expr *other);  // one of the conditions; condition NULL: the other
// a term of a log density: 0 where x lies between the ends, else -infinity. NULL: open
Expr *ex_within(Expr *x, Expr *lo, Expr *hi);
Expr *ex_inner(Expr *a, Expr *b, bool smaller);  // the smaller, or the larger, of two ends
Expr *ex_length(Expr *lo, Expr *hi);             // how many lo:hi has: none where hi < lo

Index *index_new(const char *name, Expr *lo, Expr *hi);  // a fresh loop index
// The index of a loop as the model writes it, and the value of its name within the loop. Rows are counted from 1 in arrays and in orders by
// group: a loop from a lower number, `k in 0:n`, is k in 1:n + 1, with k - 1 as its value.
Index *index_of_loop(const char *name, Expr *lo, Expr *hi, Expr **value);
bool begins_below(const Expr *lo);  // a number below 1, or less than a number by data: -K, 1 - K

bool ex_is_num(const Expr *e, double v);  // the number v
static inline bool ex_is_call(const Expr *e, FunctionId fn) { return e->kind == EX_CALL && e->fn == fn; }
bool ex_is_whole(const Expr *e);                        // a whole number, whatever its variables are
bool ex_scalar_multiple(Expr *e, Expr **c, Expr **A);   // e = c * A, A a variable or an inverse
bool ex_positive(const Expr *e);                        // provably > 0 (or >= 0 up to a null set)
bool ex_may_vanish(const Expr *e);                      // may be exactly 0: counts, data, sums of them, choices between these
bool ex_above_zero(const Expr *e);                      // provably > 0: not data or counts that may be 0, nor a sum that may have no term
bool ex_may_diverge(const Expr *e);                     // may be infinite or undefined where what it reads is finite: log(x) where x is 0
bool ex_has_pole(const Expr *e);                        // diverges at values that have a positive probability: log(n) of a count n
bool ex_absorbed(const Expr *product, int k);           // factor k may diverge where another one is 0: their product is 0 then
bool ex_mentions(const Expr *e, const Var *v);          // v occurs in it
bool ex_mentions_index(const Expr *e, const Index *i);  // i occurs in it
bool ex_any_var(const Expr *e, bool (*test)(const Var *, void *), void *with);  // a variable in it passes the test
typedef enum { LOOK, SKIP, FOUND } Look;  // the answer of a test of a part: search its parts, skip them, this is the one
bool ex_find(const Expr *e, Look (*test)(const Expr *, void *), void *with);  // each part is tested once
enum { MAX_TREE = 100000 };  // a tree with more parts than this, shared ones counted each time, is not walked part by part
void ex_settle(void);        // from now on the facts known of variables are final: answers may be cached
uint64_t ex_walk(void);      // a fresh number for `kept`
void ex_references(Expr *e, const Var *v, void (*f)(Expr *, void *), void *with);  // f of each reference to v, once
Expr *ex_replace(Expr *e, Expr *from, Expr *to);                                   // every occurrence of the subexpression
Expr *ex_replace_index(Expr *e, Index *from, Expr *to);
Expr *ex_open(const Expr *reduce, Index *fresh);                // the body with its bound index replaced
Expr *ex_map(Expr *e, Expr *(*f)(Expr *, void *), void *with);  // rebuild bottom up
int ex_rank(const Expr *e);                                     // number of subscripts still to come
Expr *ex_dim(Expr *e, int k);                                   // extent of dimension k of an array-valued expression

// The name of an index that the model writes; NULL: it is none.
static inline const char *index_written(const Expr *e) { return e->kind == EX_INDEX && e->index->written ? e->index->name : NULL; }
// What the model calls the index of a sum, by an array that is read at it; else the name of the canonical index.
const char *ex_index_called(const Expr *reduce);
void ex_print(FILE *f, const Expr *e);  // in the language's own notation
// until it is called again, no sum within an expression is printed with the name of one of these indices, which a reader has met
void ex_reserve(int n, Index *const *index);
void ex_reserve_over(int n, Index *const *index);   // likewise, of the loops that the text is over
void ex_reserve_variables(int n, Var *const *var);  // and names that variables have
char *ex_text(Arena *a, const Expr *e);             // the same as a string
char *ex_formula(Arena *a, const Expr *e);          // the same for the runtime to read: every list by its index (runtime/host/factors.c)
char *ex_quote(Arena *a, const Expr *e);            // for messages: a line at most
Expr *ex_identity_times(const Expr *e);             // of a matrix that is this times the identity; NULL: it is none
bool ex_unknown(const Expr *e);                     // mentions an unknown
bool ex_data_only(const Expr *e);                   // mentions data, lets and indices at most
// The difference reads better the other way round: mu - y[i], where y[i] - mu is meant.
bool ex_backward(const Expr *e);
// Which sums of a product are written the other way round, so that no sign is left for it; how many. What is fixed stays.
int ex_turned(const Expr *product, bool *turn, bool (*fixed)(const Expr *, const void *), const void *with);
Expr *ex_tidy(Expr *e);                             // a number before a product goes into a sum among its factors

// log(2 pi)/2, which normalisers of normals have, to within the rounding of the quotient.
static inline bool is_half_log_2pi(double v)
{
    const double half = 0.91893853320467274178, its_rounding = 2.3e-16, off = v - half;
    return -its_rounding < off && off < its_rounding;
}
#endif
