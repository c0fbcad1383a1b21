// conditional.h -- what the update of one variable sees: its log density as parts, and what is recognised of it.
#ifndef GMC_GRAPH_CONDITIONAL_H
#define GMC_GRAPH_CONDITIONAL_H
#include "graph.h"

typedef struct Part {  // a term of a conditional: the sum of value over loops, for the element that `target` names
    Factor *factor;
    Loops loops;   // plates that remain, with the condition under which they count
    bool scatter;  // found by a gather: value belongs to element `target`, all plates are looped over
    Expr *target[MAX_RANK];
    Expr *value;
    int which;  // natural parameter, or 0 lower and 1 upper bound
    struct Part *next;
} Part;

typedef struct Conflict {  // elements a and b of a vector are in the same instance of a factor; their subscripts are data
    const Factor *factor;
    Expr *a, *b;
    struct Conflict *next;
} Conflict;

typedef struct Conditional {
    Var *var;
    Index *element[MAX_RANK];  // k, l, ...: the element studied is var[k, l, ...]
    Expr *current;             // var[k, l, ...]
    Expr *u;                   // placeholder for it in the densities below
    Part *density;             // log density as a function of u; scatter parts carry an equality in their loops' guard
    // of a series that the variable enters: the series is computed again for each value tried. NULL: none
    const Var *recursion;
    Expr *chain;  // the chain of that series that alone reads the element; NULL: any may
    bool closed;  // it enters a series of which its parts have the closed form: the series is computed again after the update
    bool whole;   // some factor could not be solved for u: its density reads the current state
    int nbatch;   // leading dimensions over which elements are conditionally independent
    int colours;  // > 1: in the dimension after these, elements of one class modulo colours are independent
    // > 1: elements, of two or more subscripts after these, whose (stride . subscripts) is the same modulo lattice are independent; the
    // last stride is 1
    int lattice, stride[MAX_RANK];
    // of a vector without such classes: colours are found when data are read; NULL: not known, or there are none
    Conflict *conflicts;
    const Distribution *family;  // recognised, or NULL
    double power;                // its exponent
    bool truncated;
    int nnatural;
    Part *natural;       // which: position in the family's list
    Expr *statistic[4];  // of u, in the order of the family's list: filled for the updates of the schedule
    Part *bounds;
    int nbase;
    Expr **base_args;       // further arguments of the base measure, after the value
    bool array;             // a simplex or a matrix drawn whole: natural parameters are arrays, targets their subscripts
    const char *because;    // why nothing better applies
    const Factor *couples;  // a factor that mentions several elements; NULL: they are independent
    Part *own;              // UPDATE_OWN: value is a call of the distribution's routine, with its arguments
    // of a chain whose elements depend on more than the previous one: the parts have placeholders for it. NULL: they do not
    const struct Past *past;
    Expr *state;     // placeholder for the element's state in the chain, and
    Expr *state_is;  // its value once the element is drawn, in terms of the previous state. NULL: no update draws them
    // of elements along a chain that are drawn at once: the log density of the terms in one element alone, and of those in it and the
    // previous element, whose placeholder is `before`
    Expr *local, *link, *before;
    const Var *carried;  // whole: a vector that the update changes together with the variable, and that the density reads. NULL: none
    // the conditional of another element with the same subscripts, derived together with this one: terms in both have the u of each.
    // NULL: none
    const struct Conditional *with;
} Conditional;
#endif
