// If this fails, an expression that is put into the body of a sum would be changed there, or the sums around would come apart: max(j in
// 1:N, w[j]) within sum(k in 1:N, ..) would read w[k].
#include <stdio.h>
#include <string.h>
#include "../../compiler/base/arena.h"
#include "../../compiler/graph/plan.h"

static int failed;

static void check(const char *what, Expr *got, Expr *wanted)
{
    printf("%s  %s: ", got == wanted ? "ok  " : "FAIL", what);
    ex_print(stdout, got);
    printf("\n");
    failed += got != wanted;
}

static Var N = {.name = "N", .kind = VAR_DATA}, w = {.name = "w", .kind = VAR_DATA, .rank = 1},
           X = {.name = "X", .kind = VAR_DATA, .rank = 2}, s = {.name = "s", .kind = VAR_PART};

static Expr *n_of(void)               { return ex_ref(&N, 0, NULL); }
static Expr *w_at(Expr *i)            { return ex_ref(&w, 1, &i); }
static Expr *X_at(Expr *i, Expr *j)   { return ex_ref(&X, 2, (Expr *[]){i, j}); }
static Expr *scalar(void)             { return ex_ref(&s, 0, NULL); }

// max(j in 1:N, w[j]), and one that is higher by a sum.
static Expr *largest(int higher)
{
    Index *j = index_new("j", ex_num(1), n_of()), *k = index_new("k", ex_num(1), n_of());
    Expr *of = higher ? ex_reduce("sum", k, ex_num(1), n_of(), X_at(ex_index(j), ex_index(k))) : w_at(ex_index(j));
    return ex_reduce("max", j, ex_num(1), n_of(), of);
}

// sum(k, [X[k, k] <= a] * max(j, X[k, j] * b)), in which a is under one binder and b under two.
static Expr *nested(Expr *a, Expr *b)
{
    Index *j = index_new("j", ex_num(1), n_of()), *k = index_new("k", ex_num(1), n_of());
    Expr *inner = ex_reduce("max", j, ex_num(1), n_of(), ex_mul2(X_at(ex_index(k), ex_index(j)), b));
    return ex_reduce("sum", k, ex_num(1), n_of(), ex_call3("if_else", ex_call2("<=", X_at(ex_index(k), ex_index(k)), a), inner, ex_num(0)));
}

int main(void)
{
    Arena *a = arena_new();
    expr_start(a);
    X.dim[0] = X.dim[1] = w.dim[0] = n_of();
    for (int higher = 0; higher < 2; higher++) {
        Expr *to = largest(higher);
        check("beside the index of the sum", ex_replace(nested(scalar(), ex_num(1)), scalar(), to), nested(to, ex_num(1)));
        check("under two binders", ex_replace(nested(ex_num(1), scalar()), scalar(), to), nested(ex_num(1), to));
        check("in both places", ex_replace(nested(scalar(), scalar()), scalar(), to), nested(to, to));
        check("and back", ex_replace(nested(to, to), to, scalar()), nested(scalar(), scalar()));
        Index *i = index_new("i", ex_num(1), n_of());
        check("for a loop's index", ex_replace_index(nested(ex_index(i), ex_index(i)), i, to), nested(to, to));
    }
    printf("%d failed\n", failed);
    return failed != 0;
}
