// categories.h -- coefficients by category, one category after the other.
#ifndef GMC_GRAPH_CATEGORIES_H
#define GMC_GRAPH_CATEGORIES_H
#include "../graph.h"

typedef struct Softmax {  // -count*log_sum_exp(k, eta) in a factor
    const Factor *factor;
    Expr *sum;    // the log_sum_exp
    Expr *count;  // known, not negative
    Index *k;
    Expr *eta;     // the predictor of category k
    Expr *own;     // that of the category that is being drawn, in the columns
    Var *all;      // eta of each row and category, kept while they are drawn one after the other
    Var *latent;   // polya_gamma(count, own - offset)
    Expr *offset;  // log_sum_exp of eta over the other categories
    struct Softmax *next;
} Softmax;

typedef struct Categories {  // what is drawn one category after the other
    int n;
    Var **var, **column;  // column: the elements of var whose subscript `at` is `current`
    int *at;              // -1: the variable has one category alone, lo = hi, and the column is all of it
    Expr *lo, *hi;        // the categories
    Var *current;         // the one that is being drawn
    Softmax *softmax;
    struct Update *draw;   // UPDATE_GAUSSIAN of the columns
    struct Update *shift;  // of an amount added to all categories, if the softmaxes do not change with it; or NULL
    Var **by;              // its variables
} Categories;

// an update that draws some of them category by category; NULL: there are none
Update *categories_update(Graph *g, Var *const *free, int nfree);
Update *categories_block(Graph *g, Var *const *block, int n);  // the same of all of them together
void complete_categories(Graph *g, Update *s);                 // once find_domains has been there
#endif
