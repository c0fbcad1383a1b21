// conditional.h -- what the update of one variable sees: its log density as parts, and what is recognised of it.
#ifndef GMC_GRAPH_CONDITIONAL_H
#define GMC_GRAPH_CONDITIONAL_H
#include "graph.h"

typedef struct Part {  // a piece of a conditional: sum over loops of value, for the element picked by the target
    Factor *factor;
    Loops loops;   // plates that remain, with the condition under which they count
    bool scatter;  // found by a gather: value belongs to element `target`, all plates are looped over
    Expr *target[MAX_RANK];
    Expr *value;
    int which;  // natural parameter, or 0 lower and 1 upper bound
    struct Part *next;
} Part;

typedef struct Conflict {  // elements a and b of a vector stand in one instance of a factor; their subscripts are data's
    const Factor *factor;
    Expr *a, *b;
    struct Conflict *next;
} Conflict;

typedef struct Conditional {
    Var *var;
    Index *element[MAX_RANK];  // k, l, ...: the element studied is var[k, l, ...]
    Expr *current;             // var[k, l, ...]
    Expr *u;                   // stands for it in the densities below
    Part *density;             // log density as a function of u; scatter parts carry an equality in their loops' guard
    // of a series that the variable enters: the series is computed again for each value tried. NULL: none
    const Var *recursion;
    Expr *chain;  // the chain of that series that alone reads the element; NULL: any may
    bool closed;  // it enters a series that its parts hold in closed form: the series is computed again after the update
    bool whole;   // some factor could not be solved for u: densities read the state itself
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
    Expr **base_args;       // what the call of the base measure holds beside the value
    bool array;             // a simplex or a matrix drawn whole: natural parameters are arrays, targets their subscripts
    const char *because;    // why nothing better applies
    const Factor *couples;  // holds several elements, if they are not independent
    Part *own;              // UPDATE_OWN: value is a call of the distribution's routine, with its arguments
    // elements of a chain remember more than the one before: stand-ins of it are in the parts. NULL: they do not
    const struct Past *past;
    Expr *state;     // stand-in of where the element stands among the states of the chain, and
    Expr *state_is;  // what that is once the element is drawn, in terms of the state before. NULL: no update draws them
    // of elements along a chain that are drawn at once: log densities of what holds one alone, and of what holds it and the one before,
    // which stands in it as `before`
    Expr *local, *link, *before;
    const Var *carried;  // whole: a vector that the update moves with the variable, and the density reads, too. NULL: none
    // of an element with the same subscripts that is studied together with this one: it, too, is replaced by its u where both stand. NULL:
    // none
    const struct Conditional *with;
} Conditional;
#endif
