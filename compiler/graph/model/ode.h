// ode.h -- solutions of differential equations.
#ifndef GMC_GRAPH_ODE_H
#define GMC_GRAPH_ODE_H
#include "../graph.h"

typedef struct Ode {
    Span span;
    const Site *site;
    Index *row, *column;         // the last two of its subscripts
    bool stiff;                  // by ode_bdf
    Expr *call;                  // of the solver
    Expr *start, *from, *times;  // the state at the start, its time, the times of the solution
    Expr *tolerance[2];          // relative, absolute
    Loops plates;                // around the statement: a solution for each iteration
    Var *time, *state, *inputs;  // local variables of the functions that are emitted
    Index *each;                 // the index of components that one expression describes. NULL: they are listed
    int ncomponents;
    Expr **component;  // of the right side, in terms of time, state and inputs
    int ninputs;
    Expr **input;  // the expressions whose values the elements of `inputs` have
    int narrays;
    Var **array;       // unknowns that the right side reads at subscripts of its own
    bool start_moves;  // the start depends on unknowns
    Expr *columns;     // derivatives of each element of the solution: by inputs, elements of arrays, start
    Var *slopes;       // the array of these; NULL: nothing needs them, or there are none
} Ode;

bool find_odes(Graph *g);                             // called by build
const Var *first_solution(const Graph *g);            // NULL: no differential equation is solved
bool is_solution(const Site *t);                      // the statement is that of a differential equation
const Ode *ode_of(const Graph *g, const Expr *call);  // NULL: none of the graph's
#endif
