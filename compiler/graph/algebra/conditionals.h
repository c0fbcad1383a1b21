// conditionals.h -- what each variable's update sees.
#ifndef GMC_GRAPH_CONDITIONALS_H
#define GMC_GRAPH_CONDITIONALS_H
#include "../graph.h"

typedef struct Part {                    // a piece of a conditional: sum over loops of value, for the element picked by the target
    Factor *factor;
    Loops   loops;                       // plates that remain, with the condition under which they count
    bool    scatter;                     // found by a gather: value belongs to element `target`, all plates are looped over
    Expr   *target[MAX_RANK];
    Expr   *value;
    int     which;                       // natural parameter, or 0 lower and 1 upper bound
    struct Part *next;
} Part;

typedef struct Conflict {                // elements a and b of a vector stand in one instance of a factor; their subscripts are data's
    const Factor *factor;
    Expr *a, *b;
    struct Conflict *next;
} Conflict;

typedef struct Conditional {
    Var        *var;
    Index      *element[MAX_RANK];       // k, l, ...: the element studied is var[k, l, ...]
    Expr       *current;                 // var[k, l, ...]
    Expr       *u;                       // stands for it in the densities below
    Part       *density;                 // log density as a function of u; scatter parts carry an equality in their loops' guard
    const Var  *recursion;               // of a series that the variable enters: the series is computed again for each value tried. NULL: none
    Expr       *chain;                   // the chain of that series that alone reads the element; NULL: any may
    bool        closed;                  // it enters a series that its parts hold in closed form: the series is computed again after the step
    bool        whole;                   // some factor could not be solved for u: densities read the state itself
    int         nbatch;                  // leading dimensions over which elements are conditionally independent
    int         colours;                 // > 1: in the dimension after these, elements of one class modulo colours are independent
    int         lattice, stride[MAX_RANK];   // > 1: elements, of two or more subscripts after these, whose (stride . subscripts) is the same modulo lattice are independent; the last stride is 1
    Conflict   *conflicts;               // of a vector without such classes: colours are found when data are read; NULL: not known, or there are none
    const Distribution *family;          // recognised, or NULL
    double      power;                   // its exponent
    bool        truncated;
    int         nnatural;
    Part       *natural;                 // which: position in the family's list
    Expr       *statistic[4];            // of u, in the order of the family's list: filled for the steps of the schedule
    Part       *bounds;
    int         nbase;
    Expr      **base_args;               // what the call of the base measure holds beside the value
    bool        array;                   // a simplex or a matrix drawn whole: natural parameters are arrays, targets their subscripts
    const char *because;                 // why nothing better applies
    const Factor *couples;               // holds several elements, if they are not independent
    Part       *own;                     // STEP_OWN: value is a call of the distribution's routine, with its arguments
    const struct Past *past;             // elements of a chain remember more than the one before: stand-ins of it are in the parts. NULL: they do not
    Expr       *state;                   // stand-in of where the element stands among the states of the chain, and
    Expr       *state_is;                // what that is once the element is drawn, in terms of the state before. NULL: no step draws them
    Expr       *local, *link, *before;   // of elements along a chain that are drawn at once: log densities of what holds one alone, and of what holds it and the one before, which stands in it as `before`
    const Var  *carried;                 // whole: a vector that the step moves with the variable, and the density reads, too. NULL: none
    const struct Conditional *with;      // of an element with the same subscripts that is studied together with this one: it, too, is replaced by its u where both stand. NULL: none
} Conditional;

Conditional *conditional_element(Graph *g, Var *v, bool collapsed);   // one element at a time
int colours_of(const Conditional *c);                                 // in how many turns all elements are drawn, those of each at once; 0: there are no such classes
Conditional *conditional_scattered(Graph *g, Var *v, bool collapsed); // what is gathered stands as a part of all its rows, for the elements that they name
Conditional *conditional_density(Graph *g, Var *v, bool collapsed);   // the same for a step that evaluates the density: what is gathered stands under its condition, no part is scattered
Conditional *conditional_given(Graph *g, Var *v, const struct Reading *factors, bool scatter);   // of a variable that enters these factors, which need not be the graph's
Conditional *conditional_whole(Graph *g, Var *v, bool collapsed);     // every factor that mentions v, read from the state
Conditional *conditional_density_of(Graph *g, Var *v, const struct Reading *factors, bool collapsed);      // conditional_density of a variable that enters these factors
Conditional *conditional_array(Graph *g, Var *v);                     // the last one or two dimensions at once: simplex, covariance

typedef struct BlockTerm {               // J[ref0, ref1] or h[ref0] gets the sum over loops of coefficient
    const Factor *factor;                // where it comes from
    int    degree;
    Expr  *ref[2];
    Expr  *coefficient;
    Loops  loops;
    Span   span;
    bool   absent;                       // of elements that no statement draws and nothing reads: independent and standard normal, so that J is regular
    bool   by_rows;                      // emission: summed by a pass over the rows of a dense matrix
    struct BlockTerm *next;
} BlockTerm;

// The log density of z[k, ...] and b[k, ...] as a function of both: parts in terms of the u of each. z->with is b, whose subscripts are those of z. Fills nbatch of z; NULL: they cannot be told apart.
Part *joint_density(Graph *g, Conditional *z, Conditional *b);
bool has_all_elements(Graph *g, const Var *v);                        // a statement draws each
void take_chosen(BlockTerm *b);                                   // a term that a choice multiplies counts where the choice is made: elsewhere a subscript that data name need not have an element
bool block_terms(Graph *g, Var *const *block, int nblock, BlockTerm **out, const char **because);   // false: not jointly quadratic
bool block_terms_given(Graph *g, Var *const *block, int nblock, const struct Reading *factors, BlockTerm **out, const char **because);        // of variables that enter these factors, which need not be the graph's
bool conditional_own(Graph *g, Conditional *c, bool collapsed);       // fills own, if the only factor of the element is its distribution
void find_statistics(Graph *g, Conditional *c);
void domains_print(FILE *out, const Graph *g);
bool find_domains(Graph *g);                                          // which elements of each variable have a statement
Expr *var_domain(Graph *g, const Var *v, Index *const *element);      // whether v[element...] has one; NULL: all elements do
Expr *exists_at(const Var *v, Index *const *element);                    // the same, once find_domains has been there
Factor *weighed(Graph *g, Factor *f, const Var *v);                   // f as the conditional of v sees it
Expr *ends_decide(Expr *e);                                           // outside of the ends that it holds the density is 0, and nothing else is computed
bool may_fail(const Expr *e);                                         // holds functions that need not be numbers outside of the support
bool ends_decide_all(const Expr *e);                                   // a term says where the value lies, and others may fail where it does not
bool arguments_of_law(Graph *g, const Conditional *c, Expr *const *natural, Expr **args);      // of a scalar's family with these natural parameters: false if its law has none
#endif
