// cost_inside.h -- what the files of costs have in common: a cost, and how costs are added up.
//
//   cost_units.c    units, and the arithmetic of costs
//   cost_body.c     expressions, and the nodes of a kernel
//   cost.c          launches and updates: for `--explain`, method selection, and the choice of a device
//
// Private to compiler/kernel.
#ifndef GMC_COST_INSIDE_H
#define GMC_COST_INSIDE_H

#include "kernel.h"
#include "scope.h"

// In multiply-adds: a draw of which nothing is known. On a GPU, of one lane that waits: a column of a Cholesky factor and its solves.
enum { DRAW = 60, COLUMN = 45 };

// Of an operation or a call by itself, and in a loop without draws, of which processors do several iterations at once (8 numbers of
// double precision).
typedef struct Units {
    double alone, in_row;
} Units;
static const Units operation = {1, 0.2};

// work: in multiply-adds; row: where a loop is done several elements at once; lane: those that one lane makes in sequence
typedef struct Cost {
    Expr *operations, *draws, *bytes, *work, *row, *lane;
} Cost;

typedef struct Counter {
    const Program *p;
    Scope scope;
    When route;  // which one is counted
    // calls of functions in the scopes that are open: an equal one costs nothing more, as the C compiler makes it once
    Expr **called;
    int ncalled, room;
    bool where_made;  // launches that depend on sizes are counted as if they were made
} Counter;

// ---- cost_units.c ----

Units cost_units(const char *name, double otherwise);  // of a function or a draw of cost.def; of another, `otherwise`
Units cost_units_of_power(double power);

Cost cost_none(void);
void cost_add(Cost *to, Cost more);
void cost_spend(Cost *to, Expr *units);                       // multiply-adds that are no operations of the model
void cost_spend_in_row(Cost *to, Expr *units, Expr *in_row);  // of one iteration alone, and of one of several at once
void cost_labour(Cost *to, Expr *n, double units);            // n operations, which take `units` each
void cost_labour_in_row(Cost *to, Expr *n, Units u);
void cost_operate(Cost *to, Expr *n);             // n operations of arithmetic
void cost_draw(Cost *to, Expr *n, double units);  // n draws
Expr *cost_expanded(Expr *a, Expr *n);            // a n, multiplied out
Expr *cost_cubed(Expr *n, double share);          // share n^3
Expr *cost_rows(Expr *lo, Expr *hi);              // how many lo ... hi are
Cost cost_times(Cost c, Expr *n);
Cost cost_over(Cost c, const Index *i, Expr *lo, Expr *hi);  // summed over i in lo:hi

// ---- cost_body.c ----

Cost cost_of_body(Counter *k, const Node *body);  // of the nodes of a kernel

#endif
