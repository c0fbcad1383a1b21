// graph.h -- the model graph: variables, and factors over plates; then how each variable is drawn.
//
// Cut into sections headed by the file that owns them, in pipeline order.
#ifndef GMC_GRAPH_H
#define GMC_GRAPH_H

#include "../base/diag.h"
#include "../base/map.h"
#include "../front/ast.h"
#include "expr.h"

// ---- build.c: the log joint as factors over plates ----

typedef enum {
    VAR_DATA,          // read from the data files
    VAR_LET,           // computed once from data
    VAR_PARAMETER,     // unknown
    VAR_LATENT,        // unknown, one per observation: declared in a `latent` block
    VAR_PART,          // unknown, an element of a vector that the compiler made, which is what is drawn: nothing mentions it but names
    VAR_AUXILIARY,     // unknown, brought in by an augmentation
    VAR_DERIVED,       // a definition that depends on unknowns; its uses are substituted, its value is for the draws
    VAR_SERIES,        // a recursive definition that depends on unknowns: computed in the sweep, up to date whenever a step reads it
    VAR_PREDICTED,     // a definition in the predict block, or drawn there
    VAR_SUM,           // a statistic: of data only (computed once) or of one sweep
    VAR_PATTERN,       // a name that an augmentation's pattern binds
    VAR_ELEMENT,       // the element under study while a conditional is worked out
} VarKind;

typedef enum { REQUEST_NONE, REQUEST_LOG_LIK, REQUEST_REPLICATES } OnRequest;      // predicted variables: computed in runs that ask for them

typedef struct Plates {                  // loops over indices, with a condition on data and indices
    int     n;
    Index **index;
    Expr   *guard;                       // NULL: always
} Plates;

typedef struct Site {                    // one statement that computes elements of a LET, DERIVED or PREDICTED variable
    Span         span;
    Var         *var;
    Plates       plates;
    int          n;
    Expr        *subscript[MAX_RANK];
    Expr        *value;                  // what they are; NULL for a draw
    const Distribution *dist;            // of a draw
    const char  *sample;                 // routine that draws, or NULL: the values are weighed
    int          nargs, nsample;         // arguments, the first of which are the routine's; then what else the draw reads, if it is `within`
    Expr       **args;                   // two ends: these, the ends of the support, and of `x` the log density (integers) or log_cdf and log_ccdf
    bool         guarded;                // the last of `args` is the condition that arguments lie in their domains: where it does not hold, there is no draw
    bool         within, exact;          // exact: the routine draws between `end[0]` and `end[1]`
    Expr        *x, *end[2];             // stand for a value and the ends in the arguments
    Expr        *when;                   // a component of a mixture: the component drawn is this one. Else NULL
    bool         adds;                   // of a series: to what sites before it have computed
    bool         again;                  // a component behind the first: the elements are those of the site before
    struct Ode  *ode;                    // the value is the solution of a differential equation; else NULL
    struct Site *next;
} Site;

typedef struct Series {                  // definitions whose elements depend on each other, computed together along one subscript
    int            n;
    Var          **var;                  // in the order in which they are computed at one value of the subscript
    Index         *along;
    bool           backward;             // from the last to the first
    bool           apart;                // only one step reads it, which computes it before
    bool           chains;               // the first subscript of each variable tells chains apart, of which none reads another
    Site          *sites;                // with `along` for the plate or number that stood there; in order
    struct Series *next;                 // series that read this one come later
} Series;

struct Var {
    const char *name;
    int         id;
    VarKind     kind;
    BaseType    base;
    int         rank;
    Expr       *dim[MAX_RANK];
    Constraint  constraint;
    Constraint  asked;                   // data: of what a distribution takes whole, where the declaration says nothing; counts: no element is negative
    bool        asked_counts;
    const char *asked_by;                // "the `Sigma` of multi_normal (m.gm:4)"
    double      lower_number, upper_number;   // static support: -INFINITY, INFINITY if open
    Expr       *lower, *upper;           // declared bounds of data, checked at load; finite support of an integer variable
    Expr       *init;                    // default of a data scalar
    bool        response;                // data on the left of `~`: may have missing values
    bool        left_out;                // response: the model asks that its missing values are left out of what others see (left_out.c)
    bool        may_be_left_out;         // response: the model could ask for that
    const char *needed_for;              // response: what is made of it before sampling, so that no value may be missing; or NULL
    bool        discrete;                // of finite or countable support
    Decl       *decl;
    Span        span;
    Site       *sites;
    Series     *series;                  // that it is part of, or NULL
    struct Sum *sum;                     // VAR_SUM: how it is computed
    Var       **parts;                   // of a vector that the compiler made: whose elements they are, in order
    Var        *part_of;                 // VAR_PART: that vector
    int         part_at;                 // and which element of it, from 0
    bool        partial;                 // not all elements are drawn: others are computed for the draws, or do not exist
    Index      *own[MAX_RANK];           // parameters and latents: elements v[own...] have a statement
    Expr       *exists;                  // where this holds; NULL: all do. find_domains fills both
    bool        hidden;                  // predicted or a series, but not for the draws: which component of a mixture is drawn, messages along a chain
    OnRequest   on_request;              // predicted, by the compiler: only runs that ask for it have it
    bool        lost;                    // an error was reported on it
    struct Coverage *coverage;           // what its statements name
    bool        holes;                   // some elements may have no statement: they do not exist
    bool        minds_missing;           // a LET: a value of a response that is missing does not enter it
    bool        unsure;                  // a LET: computed with subscripts that are known to lie inside only when claims have been checked
    Expr       *computed;                // an array of what is computed once in a place (kernel/once.c): its elements are as finite as this
    bool        filled_within;           // a work array: the kernel that reads it fills it, and no launch before that can read it
    bool        wild;                    // read in a subscript that may be outside for some of its values: emitted code looks each time
    int         summed;                  // it is summed out, as this number; 0: it is not
    bool        parent;                  // laws of others depend on it, which are summed out of its conditional: those of them with `summed` are for no others to see
    bool        offered;                 // it can be summed out for a move that competes with steps given it
    int         nrows;                   // the first chain with the same data: the arrays of data whose rows are compared
    Var       **rows;
    Var        *rows_counted;            // of that: stands for how many different rows there are
    bool        counts_rows;             // is such a number, of which a program tells the runtime what a sweep costs
    Var        *alike;                   // along chains that data alone tell apart: the first chain with the same data; of that, how many there are of each
    const struct Linked *linked;         // along a chain whose messages are of what comes behind the element, and not of the element itself: arrays of what these hold besides (marginal.c). NULL: it is no such chain
    Var        *messages;                // summed out: an array of each element's log density at each value; along a chain, of all from this element on. NULL: there is none
    struct Var *in_place;                // a definition, once the model is centred: this is drawn in its place. Else NULL
    struct Joined *joined;               // drawn together with others, by the product of their values; NULL: it is not
    int         chain;                   // the subscript that the chain goes along, or the last
    int         sums;                    // how many sums over values of others what moves it has behind it
    bool        integrated;              // --method em: a latent that is there by its expectations; or an auxiliary that was taken back
    bool        expectation;             // --method em: an array of expectations
    bool        weights;                 // and it has the probability of each value of a discrete latent, the last dimension
    bool        mixed;                   // its elements have distributions of several supports, or one sum: no static support, each `~` brings bounds
    int         pattern;                 // a work array: the precision of the joint normal of this number, of which the runtime keeps the entries that there are; 0: it is none
    Var        *kept_log, *kept_log1m;   // arrays of log x and log(1 - x) as they were drawn, where others read these of values that may round to an end (kernel/logs.c). NULL: there is none
    const char *cached_text;
};

typedef struct Component {               // of a mixture
    const Distribution *dist;
    int                 nargs;
    Expr              **args;
    Expr               *weight;
} Component;

typedef struct Factor {
    int                 id;
    Span                span;
    Plates              plates;
    Expr               *log_density;     // of one instance
    const Distribution *dist;            // NULL: target +=, or a constraint
    Expr               *value;           // scalar value of the distribution, else NULL
    int                 nargs;
    Expr              **args;            // arguments; arrays for array parameters
    int                 ncomponents;     // a mixture: its components; one if they are a plate
    Expr               *weights;         // a mixture: its weights, as they are written
    Component          *component;
    Index              *plate;           // of components: weight and args are those at this index; NULL: they are listed
    bool                truncated;
    Expr               *lower, *upper;   // truncation
    bool                observed;        // its value is data
    Expr               *if_missing;      // observed: what a missing value adds to the log density, the ends of its support and truncation
    Expr               *least, *most;    // observed: support and truncation, where data alone decide them; integers, until settled: their range. NULL if open
    const Var          *region;          // of a declared unknown without a distribution: within its bounds. Else NULL
    bool                added;           // target +=
    const Var          *function;        // data that are a function of an unknown, y = z > 0. Else NULL
    Expr               *from, *to;       // support, truncation and declared bounds, where data alone tell both ends: checked at load not to be empty. Else NULL
    struct Factor      *original;        // factor that an augmentation replaced to make this one, else NULL
    bool                replaced;        // an augmentation took its place
    bool                left_out;        // as written: of the missing values of its response alone. What stands in its place is for the others
    bool                taken_back;      // --method em: the factor that it was made from stands as written
    const Augmentation *rule;            // that made it
    const Var          *sums_out;        // the sum over the values of an unknown, else NULL
    int                 made, gone;      // it counts from this number of sums on, until this sum takes it in (0: none does)
    struct Factor      *next;
} Factor;

typedef struct Reading { int n, size; Factor **factor; } Reading;       // the factors that a variable enters

typedef struct Applied {                 // an augmentation at work
    const Augmentation *rule;
    Factor             *factor;          // what it replaced
    Var                *latent;          // the first latent
    struct Applied     *next;
} Applied;

typedef struct Graph {
    Arena         *arena;
    Diags         *diags;
    const Model   *model;
    const Library *stdlib;
    int            nvars, vars_size;
    Var          **vars;                 // in order of declaration; auxiliaries and sums follow
    Map            taken, numbered;      // names of variables and declarations; the number that a fresh name was made with last
    struct Reading *reading;             // conditionals: the factors that each variable enters, by its number; NULL: not looked up yet
    int            nreading;
    Factor        *factors, **last_factor;
    Applied       *applied, **last_applied;
    Series        *series;               // of lets, of the sweep, of predictions
    struct Step   *steps;                // schedule: the sweep
    int            nsteps;
    struct Competition *competitions;
    struct Alone  *no_competition;
    struct Sum    *sums;
    struct Claim  *claims;               // what is checked when the data have been read
    struct Observed *observed;           // what runs may ask for
    struct Labels *labels;               // kinds of labels
    Factor        *written;              // what the density of the model as written has besides: logs of the Jacobian of its centred form
    int            njoint;               // joint normals with a sparse precision
    int            nsums;                // unknowns that are summed out
    int            offers;               // with so many sums behind them moves see what is offered summed out; 0: nothing is
    bool           no_augment;
    bool           by_gibbs;             // --method gibbs: gradients move what the model asks for alone
    bool           by_nuts;              // --method nuts: whatever gradients can move is moved so, unless the model asks for something else
    bool           by_em;                // --method em: the program looks for modes: latents by expectations, all else by maxima of conditionals
    bool           supports_known;       // build: every statement has said what it tells of supports
    struct Added  *added;                // build: the statements target +=, the last one first
    bool           laws;                 // elaborate: some expression holds a density by its name, normal_lpdf(y | mu, s)
    const Decl    *drawing;              // build: on the left of `~`, where a name of which some elements are computed stands for those drawn
    struct Slopes *slopes;               // gradient: derivatives of functions
    struct Factored *factored;           // gradient: matrices that are factored, wherever factors mention that
    struct Defined *defined[1024];       // elaborate: definitions at subscripts asked for before
} Graph;

bool  build(Graph *g);
bool  find_series(Graph *g);                                     // series.c: called by build
bool  add_series(Graph *g, Var *v);                              // of v alone, which has sites, behind those that there are; false: it goes along no subscript
Series *series_along(Graph *g, Var *v, int along);               // the definitions of v in the order of this subscript, upwards; NULL: they do not go along it
Expr *in_closed_form(Graph *g, Expr *log_density, Var *v);       // closed.c: products that are written as recursions, as products. NULL: v enters others, or not by logarithms
typedef struct Recursion {               // x[1] = first, x[k] = next in x[k-1], along one subscript, others being loops
    const Series *s;
    const Site   *first, *next;
    int           along;
    Index        *index;                 // of the subscript along, in `next`
    Expr         *before;                // x[k-1] there
} Recursion;

bool  first_order(const Series *s, Recursion *r);                // closed.c: false: it has another form
Series *series_in_chains(Graph *g, const Var *v);               // the only series that v enters, if its first subscript tells chains apart, each of which reads elements of v with this first subscript alone; or NULL
bool  series_reads_own(const Series *s, const Var *v, const Expr *e, Expr *chain);      // whether e reads both with this first subscript alone
Expr *written_out(Expr *e);                                      // with definitions of one value in place of their names
void  settle_values(Graph *g);                                   // the range of each discrete unknown, once its factors are there
const Distribution *not_drawn(const Factor *f);                  // the distribution, of a mixture the component, that the library cannot draw from; NULL: it can
void  replicate(Graph *g, const Factor *f, Expr *value);         // sites that draw `value` as the factor says
const char *graph_check(const Graph *g, const char *pass);       // check.c: what the pass has left wrong, or NULL

// ---- ranges.c ----

void  range_of(const Expr *e, double *lo, double *hi);            // between which numbers e lies, as far as declared types and supports tell
bool  never_negative(Expr *e);                                   // provably at least 0, wherever it is a number

// ---- domains.c: arguments that unknowns may take out of their domains ----


// ---- ode.c: solutions of differential equations ----

typedef struct Ode {
    Span         span;
    const Site  *site;
    Index       *row, *column;           // the last two of its subscripts
    bool         stiff;                  // by ode_bdf
    Expr        *call;                   // of the solver
    Expr        *start, *from, *times;   // the state at the start, its time, the times of the solution
    Expr        *tolerance[2];           // relative, absolute
    Plates       plates;                 // around the statement: a solution for each turn
    Var         *time, *state, *inputs;  // local variables of the functions that are emitted
    Index       *each;                   // of components: of one that stands for all. NULL: they are listed
    int          ncomponents;
    Expr       **component;              // of the right side, in terms of time, state and inputs
    int          ninputs;
    Expr       **input;                  // what the elements of `inputs` stand for
    int          narrays;
    Var        **array;                  // unknowns that the right side reads at subscripts of its own
    bool         start_moves;            // the start depends on unknowns
    Expr        *columns;                // derivatives of each element of the solution: by inputs, elements of arrays, start
    Var         *slopes;                 // they; NULL: nothing needs them, or there are none
} Ode;

struct Derivative;
bool  find_odes(Graph *g);                                       // called by build
const Var *first_solution(const Graph *g);                       // NULL: no differential equation is solved
bool  is_solution(const Site *t);
const Ode *ode_of(const Graph *g, const Expr *call);             // NULL: none of the graph's
bool  ode_derivatives(const Graph *g, const Ode *o, int k, struct Derivative **terms, const char **because);     // of component k, by state, inputs, elements of arrays
bool  ode_differentiable(const Graph *g, const Ode *o, const char **because);    // its solution has derivatives by its inputs

// ---- choices.c: rows in which data decide which elements of an unknown are read, as factors of their own ----

void split_choices(Graph *g);

// ---- columns.c ----

void find_columns(Graph *g);             // called by build

// ---- totals.c ----

void find_totals(Graph *g);              // called by build

// ---- sizes.c ----

bool check_sizes(Graph *g);              // called by build: false after a message
bool is_size(const Expr *e);             // made of data as they are read: memory can be taken by it
bool is_data_total(const Expr *e);       // sum, max or min of a whole vector of integers of the data: it may stand in a size
typedef struct Slices { const Var *hi, *lo; int hi_from, lo_from; long more; Expr *n; } Slices;      // hi[hi_from + i] - lo[lo_from + i] + more, i in 0 to n - 1
bool is_longest_slice(const Expr *e, Slices *s);
bool has_data_total(const Expr *e);

// ---- left_out.c ----

bool leave_missing_out(Graph *g);        // responses of which the model asks `y by marginal`: false after a message

// ---- centred.c ----

bool centre_model(Graph *g);                                          // models that are written non-centred
bool centre_and_spread(Graph *g, const Distribution *d, int nargs, Expr *const *args, int *centre, int *spread);       // which arguments a and s make (x - a)/s a density that knows neither; false: none do

// ---- augment.c ----

bool loop_extents(const Plates *p, Expr **extent);                // an extent for each loop; where another loop picks the end, room for the longest. False: memory is taken before that is known, as in first[j]:(first[j+1]-1)
bool augment(Graph *g);
void observe_value(Graph *g, Factor *f, Span at, Expr *y, Expr *e);    // build.c: the data y say that e equals y

// ---- marginal.c: discrete unknowns that are summed out ----

bool marginals(Graph *g);
int summed_out_of(Graph *g, Var *const *block, int n, int sums, Var **out);       // schedule.c: the unknowns that are summed out of what the block reads with so many sums behind it; their number

// ---- ties.c: discrete unknowns that hold each other ----

enum { MOST_TIED = 8 };
// The discrete unknowns in f (with `missing`: and responses, some of which may be missing) whose possible values are not connected by changes of one of them at a time, into `tied`; their number, 0 if there are none.
int tied_in(Graph *g, const Factor *f, bool missing, Var **tied);
double number_at(const Expr *e, int n, Expr *const *ref, const double *value);      // with these values of at most MOST_TIED references; NAN: other things decide

// ---- polynomial.c: expansion in an element, or in the elements of a block ----

enum {
    MAX_PLATES = 2 * MAX_RANK,           // loops around a statement, those over the elements of a vectorised one among them; and sums in one term of a polynomial
    MAX_LOOPS = 2 * MAX_PLATES,          // both
    MAX_STATISTICS = 64,                 // of one variable: no family has as many
};

typedef struct Loops {                   // sums: plates and the indices of reductions
    int    n;
    Index *index[MAX_LOOPS];
    Expr  *guard;
} Loops;

typedef struct Term {                    // sum over loops of coefficient * product of refs
    Expr *coefficient;
    int   degree;
    Expr *ref[4];
    Loops loops;                         // only those opened while expanding
} Term;

typedef struct Terms { int n, size; Term *term; bool failed, too_long; Expr *opaque; } Terms;       // opaque: why it failed: it is none, or would be too long

// What counts as an unknown of a polynomial: an element of the variables; with `wrapped`, log(v[..]), inverse(v)[..], log_determinant(v).
typedef struct Unknowns { Var *const *var; int n; bool wrapped; } Unknowns;

// e as a polynomial in the unknowns, of at most `most` degree; equal monomials are merged.
Terms polynomial(Arena *a, Expr *e, const Unknowns *in, int most);
const char *terms_because(Arena *a, const Terms *t, const char *not, Span at);       // of failed ones: "`...` (line 3) is not quadratic", and `not` says what

// What is known of that polynomial before it is expanded: an upper bound of its degree and of the sums in one term, whether it has terms in the variable
// `apart`, in others, and products of the two (unless they cancel). failed: it is none of at most `most` degree.
typedef struct Degree { int degree, loops; bool own, other, both, failed; } Degree;
Degree polynomial_degree(Expr *e, const Unknowns *in, const Var *apart, int most);

typedef struct Statistic { Expr *statistic; Expr *coefficient; } Statistic;    // statistic: an expression in u alone
typedef struct Statistics { int n, size; Statistic *item; bool many; } Statistics;     // many: too many to be listed, or too long: the one that there is is all of it

// e as a sum of coefficient * statistic(u), u any reference. What cannot be taken apart is a statistic of its own.
Statistics statistics(Arena *a, Expr *e, Expr *u);
Expr *free_of(Arena *a, Expr *e, Expr *u);                            // and what is left: the terms without u

// ---- conditionals.c: what each variable's update sees ----

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
bool by_data_colours(const struct Step *s);                           // elements are drawn by colours that are found when data are read
int colours_of(const Conditional *c);                                 // in how many turns all elements are drawn, those of each at once; 0: there are no such classes
Conditional *conditional_scattered(Graph *g, Var *v, bool collapsed); // what is gathered stands as a part of all its rows, for the elements that they name
Conditional *conditional_density(Graph *g, Var *v, bool collapsed);   // the same for a step that evaluates the density: what is gathered stands under its condition, no part is scattered
Conditional *conditional_given(Graph *g, Var *v, const struct Reading *factors, bool scatter);   // of a variable that enters these factors, which need not be the graph's
Conditional *conditional_whole(Graph *g, Var *v, bool collapsed);     // every factor that mentions v, read from the state
Conditional *conditional_chain(Graph *g, Var *v);                     // marginal.c: of an element given the one before it, those behind it summed out
Conditional *conditional_density_of(Graph *g, Var *v, const struct Reading *factors, bool collapsed);      // conditional_density of a variable that enters these factors
Conditional *conditional_at_once(Graph *g, Var *v);                   // marginal.c: of all elements along a chain of discrete ones
bool has_few_values(const Conditional *c);
Conditional *conditional_array(Graph *g, Var *v);                     // the last one or two dimensions at once: simplex, covariance

// ---- joined.c: discrete unknowns that are drawn together, by the product of their values ----

enum { MOST_JOINED = 4, FEW_STATES = 32 };

typedef struct JoinedLink {              // of the element and the one before: the transition of one unknown, given what is new of those behind it and what was of those before it in the list
    int   of;                            // of the set; -1: of all together
    bool  alone;                         // it reads no others
    Expr *density;
} JoinedLink;

typedef struct Joined {                  // of one shape
    int          n;
    Var         *var[MOST_JOINED];
    Expr        *count[MOST_JOINED];     // how many values each has
    Var         *product;                // stands for all: values from 0, those of the first unknown running first
    Var         *part[MOST_JOINED];      // part[i][p]: what var[i] is where the product is p
    Expr        *values, *products, *in_turn;        // of the product; products of numbers that an element takes together, and in turn
    Expr        *where, *on_gpu;         // sizes for which they are drawn together, and on a GPU; NULL: always
    bool         collapsed;
    Conditional *conditional;            // local and link in terms of part[i][u] and part[i][before]; before NULL: elements are independent
    int          nlinks;                 // in the order in which messages are summed
    JoinedLink   link[MOST_JOINED];
} Joined;

void find_joined(Graph *g);

// ---- history.c: chains whose elements remember more than the one before ----

typedef struct Past {                    // the states of a chain: a value, and the summaries behind the element; all numbers, states from 0
    Arena  *arena;
    int     nvalues, nsummaries, nstates;
    double  first;                       // value
    Var   **stand;                       // of each summary before the element k, l, ...: stand[q][k, l, ...]
    double *before;                      // what that is before the first element
    double *value, *summary;             // of state s: value[s], summary[s*nsummaries + q]
    int    *next, *start;                // the state of the value first + k behind s: next[s*nvalues + k]; of the first element: start[k]
} Past;

Conditional *conditional_with_past(Graph *g, Var *v, bool collapsed);  // NULL: its factors read nothing of the past but the element before, or what they read is not understood
Past *no_past(Graph *g, double first, int nvalues);                    // of a chain that remembers nothing: its states are its values
// In terms of the state before, from 1: summary q of it, and the state of an element with this value behind it; is_first: there is none before.
Expr *remembered(const Past *p, int q, Expr *before, Expr *is_first);
Expr *state_behind(const Past *p, Expr *before, Expr *value, Expr *is_first);

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

// ---- gradient.c: derivatives of a factor by the elements of a block ----

typedef struct Derivative {              // d log density / d ref gets the sum over loops of weight * rest
    const Factor *factor;
    Expr *ref;                           // element of an unknown of the block, its subscripts in terms of the loops' indices
    Expr *weight;                        // the adjoint where the path to it enters the first sum: in the indices of the factor's plates alone. All that stands in one
                                         // linear predictor has the same weight, the derivative by the predictor
    Expr *rest;                          // what the predictor and the opened sums multiply it with; 1 where nothing does. It may not exist where the weight is 0 by a choice, unless it has that choice, too
    Expr *inner, *last;                  // rest = inner * last: the adjoint where the path enters the last sum, in the indices of the first ninner loops, and what this
    int   ninner;                        // sum multiplies it with: exp(eta[i, k] - log_sum_exp) and X[i, j] of softmax regression. NULL: only one sum, or none, was opened
    Loops loops;                         // the plates of the factor, with its guard, then the sums that were opened
    struct Derivative *next;
} Derivative;

bool read_derivatives(Graph *g);         // the derivatives of functions, from front/functions.def
// The terms of the derivatives of one factor by the elements of the variables of the block; everything else is constant. Those of one element over the same loops with the
// same weight are one. False: something has no derivative that is known, and because says what.
bool derivatives(const Graph *g, const Factor *f, Var *const *block, int nblock, Derivative **out, const char **because);

typedef struct Factored {                // the Cholesky factor of a matrix of expressions, as an array
    Expr *call;                          // cholesky_decompose(matrix), the same wherever it stands
    Var  *var;
    Span  span;                          // of the factor of the model that mentions it first
    struct Factored *next;
} Factored;

typedef struct Moving {                  // unknowns, and what is computed from them into arrays
    int            n, nseries, nfactored;
    Var          **var;                  // the unknowns, then the variables of the series, then the factors
    const Series **series;               // that the unknowns enter, each after those that it reads
    Factored      *factored;             // of matrices that read the unknowns, none a series: an array of nfactored
} Moving;

Moving block_with_series(const Graph *g, Var *const *block, int n, int sums);
bool   in_series(const Series *s, const Var *v);
// A statement of a series as a factor: adjoint[..] times what the element is. Its derivatives by the block and the series are what this element gives to their adjoints.
Factor site_factor(const Site *t, Var *adjoint);
Var   *adjoint_new(const Graph *g, const Var *v);        // adjoint_v, of the shape of v
bool   series_differentiable(const Graph *g, const Moving *b, const char **because);      // and the matrices that are factored
bool   stands_alone(const Expr *call);                   // a function of a matrix of expressions, none of which needs another matrix, the same wherever it stands
Expr  *by_factors(const Moving *b, Expr *e);             // e with elements of these arrays for elements of the factors
Factor matrix_factor(const Graph *g, Expr *matrix, Var *adjoint, Span at);          // as site_factor, of a matrix that is factored: adjoint[j, k]*matrix[j, k] in its lower triangle, which decides the factor
bool   derivatives_moving(const Graph *g, const Factor *f, const Moving *b, Derivative **out, const char **because);     // of a factor of the model, by all that moves
void gradient_print(FILE *out, const Graph *g);          // of the model as written, by each continuous unknown

// ---- feasible.c: which factors may be zero where a chain starts ----

typedef enum { VANISHES_NEVER, VANISHES_IF_MISSING, VANISHES } Vanishing;      // IF_MISSING: only where a missing response has been filled in

Vanishing factor_vanishing(const Factor *f);

typedef struct FactorPart {              // of a factor that holds arrays: a term without any, or a matrix that has to have a factor
    Expr  *log_density;                  // inverse_spd(matrix), if it is symmetric, or log_determinant, inverse, cholesky_decompose of it
    Plates plates;                       // without indices that it does not read
    bool   if_missing;
} FactorPart;

int factor_parts(Arena *a, const Factor *f, FactorPart **out);        // those that may not be finite
bool factor_confines_missing(const Factor *f);         // the ends of its support that data and responses give: a missing one may start outside of them

// ---- schedule.c: how each variable is drawn, and in which order ----


#define STEPS(X)                                                                              \
    X(EXACT,      "exact",      "draw from a recognised family")                              \
    X(OWN,        "own",        "draw from its own distribution: nothing else depends on it") \
    X(GAUSSIAN,   "gaussian",   "joint draw of a block from its precision and shift")         \
    X(ENUM,       "enum",       "finite support: weigh every value")                          \
    X(PAIR,       "pair",       "an indicator with its coefficient integrated out, then both") \
    X(SLICE,      "slice",      "slice sample one real, or a plate of them")                  \
    X(METROPOLIS, "metropolis", "random-walk Metropolis for one real, or a plate of them")    \
    X(ELLIPTICAL, "elliptical", "move a vector with a normal prior along an ellipse")         \
    X(NUTS,       "nuts",       "move a block of reals together along gradients")              \
    X(TURNS,      "turns",      "coefficients by category, one category after the other, each with latents of its own")
typedef enum {
#define X(id, name, help) STEP_##id,
    STEPS(X)
#undef X
} StepKind;

typedef struct Rows {                    // few_rows.c: a block's precision is diagonal but for one factor's instances, the rows
    const char   *name;                  // of the block's first variable
    const Factor *factor;                // its plates run over the rows; where its guard is false, a row is empty
    Expr         *count, *size;          // how many rows, how many coefficients
    Expr         *weight, *shift;        // log density of a row: -weight/2 (phi'x)^2 + shift (phi'x), weight >= 0
    BlockTerm    *phi;                   // a row's entries, all of degree 1: phi[ref] += coefficient; loops are those within the row
    int           told;                  // each is a number, or a row of a matrix of data: its number among joint normals that may be told row by row to the runtime; 0: they are not
    struct Rows  *next;                  // of the same sparse block
} Rows;                                  // the terms of other factors: of degree 2 to the diagonal D > 0, of degree 1 to a shift of their own

typedef struct ChainVar {                // band.c: which subscripts of a variable are what
    int along, npanel, panel[MAX_RANK], ninner, inner[MAX_RANK];
} ChainVar;

typedef struct Band {                    // a joint normal whose precision is a band along a chain, or one for each of a panel, and a dense border
    Var     **var;                       // those of the block, or in place of innovations the series that they make
    int       nchain;                    // the first of them have a subscript along the chain; the others are the border
    ChainVar *chain;
    int       lag;                       // elements further apart share no term
    Expr     *panels, *length, *width;   // chains, nodes of a chain, elements of a node
    Expr     *border;                    // elements of the border
    Expr    **offset;                    // where each variable begins, within a node or within the border
    bool      in_place;                  // the draw has the order of the only variable
} Band;

bool band_apart(Expr *a, Expr *b, int *least, int *most);        // between which numbers a - b lies for all values of their indices, at most 16 either way; false: it is not known, or more, or the difference varies and a itself lies between numbers, as those of a few elements do that are coupled each with each
Band *band_of(Graph *g, Var *const *block, int nblock, int nchain, const BlockTerm *terms);      // NULL: it is none

// ---- innovations.c: recursive definitions that are chains of normals ----

typedef struct Innovations Innovations;                               // the elements of a series, each linear in an innovation of its own
typedef struct InnovationChange {       // x = rest + coefficient*ref, of one statement
    Span  span;
    Expr *x, *ref, *coefficient, *rest;
} InnovationChange;

Innovations *innovations_of(Graph *g, Var *x);                        // of what its own statements compute; NULL: it has none
Innovations *find_innovations(Graph *g, const Series *s);             // the same, if nothing else that recurs reads what they make or are. NULL: it has none
Var *const *innovation_vars(const Innovations *in, int *n);           // the unknowns of which they are elements
Var *innovation_series(const Innovations *in);
bool innovation_at(const Innovations *in, int k, Loops *loops, Expr **ref, Expr **value);       // statement k: over loops the innovation `ref` is `value`, in terms of the series; false: there is none
bool innovation_change(const Innovations *in, int k, Loops *loops, InnovationChange *out);       // statement k, over loops; false: there is none
Expr *in_terms_of_innovated(const Innovations *in, Expr *e, bool *good);                         // e with what innovations are in their place; not good: it cannot be told
bool innovation_factors(Graph *g, const Innovations *in, const Factor *f, Factor **list);        // f with the series in place of the innovations; false: it cannot be told which these are
bool innovation_coefficients_mention(const Innovations *in, const Var *v);                       // then the Jacobian holds v
bool innovation_terms(Graph *g, const Innovations *in, Var *const *border, int nborder, BlockTerm **out);      // of block_terms, with the series in place of the innovations; false: they are not jointly quadratic

typedef struct Softmax {                 // turns.c: -count*log_sum_exp(k, eta) in a factor
    const Factor *factor;
    Expr         *sum;                   // the log_sum_exp
    Expr         *count;                 // known, not negative
    Index        *k;
    Expr         *eta;                   // the predictor of category k
    Expr         *own;                   // that of the category whose turn it is, in the columns
    Var          *all;                   // eta of each row and category, kept while they take turns
    Var          *latent;                // polya_gamma(count, own - offset)
    Expr         *offset;                // log_sum_exp of eta over the other categories
    struct Softmax *next;
} Softmax;

typedef struct Turns {                   // turns.c: what is drawn one category after the other
    int      n;
    Var    **var, **column;              // column: the elements of var whose subscript `at` is `turn`
    int     *at;                         // -1: the variable has one category alone, lo = hi, and the column is all of it
    Expr    *lo, *hi;                    // the categories
    Var     *turn;                       // the one whose turn it is
    Softmax *softmax;
    struct Step *draw;                   // STEP_GAUSSIAN of the columns
    struct Step *shift;                  // the same of what all categories are moved by together, if the softmaxes do not see that; or NULL
    Var    **by;                         // its variables
} Turns;

typedef struct Competition {             // two ways to draw the same unknowns; a run finds out which is better (runtime/host/choice.c)
    int         number;                  // from 1
    int         n;
    Var       **block;                   // continuous unknowns that meet in factors as written, all of a connected set, or those of it that would be sliced
    bool        auxiliaries;             // exact conditionals need some, moves along gradients leave them out
    bool        coupled;                 // unknowns that would be sliced depend on each other: without a measurement gradients move the block
    int         nsummed;
    Var       **summed;                  // discrete unknowns that the move sees summed out; their draws follow it
    struct Competition *next;
} Competition;

typedef struct Alone {                   // a connected set without a competition, and why
    int         n;
    Var       **block;
    const char *because;
    struct Alone *next;
} Alone;

// ---- pairs.c: an unknown of few values and the coefficient that it switches on, multiplies or scales ----

enum { MOST_OF_PAIR = 8 };

// Given the value number m of the indicator, the log density of the coefficient x is constant + linear*x + square*x^2: each a sum of parts.
typedef struct Pair {
    Conditional *indicator, *coefficient;        // of one element, with the same subscripts
    int          first, n;                       // values of the indicator
    Part        *part;                           // which = pair_part(m, k): k 0 constant, 1 linear, 2 square; m -1: the same at all values
} Pair;

static inline int pair_part(int m, int k) { return 3 * (m + 1) + k; }
const Pair *find_pair(Graph *g, Var *z);         // NULL: it has no such coefficient

// ---- collapsed.c: indicators with their weights integrated out ----

typedef struct Predictive {              // how the conditional of an indicator's element holds a vector of probabilities: log ref, once
    Var         *weights;
    Conditional *natural;                // that of the weights: Dirichlet
    Expr        *ref;                    // its element, subscripts in terms of u
    Expr        *guard;                  // when it counts; NULL: always
    bool         varies;                 // the value picks among several vectors
    struct Predictive *next;
} Predictive;

struct Step *collapsed_step(Graph *g, Var *v);                        // NULL: v reads no weights that are integrated out, or cannot be drawn so (after a message)
bool  collapses_served(Graph *g, const struct Step *steps);            // false after a message

typedef struct Server { const struct Step *step; struct Server *next; } Server;

typedef struct Sum {                     // a statistic, an array target[...] += sum over loops of value
    Var   *var;
    Loops  loops;
    int    n;
    Expr  *target[MAX_RANK];             // subscripts, in terms of the loops' indices
    Expr  *at[MAX_RANK];                 // the same where it was asked for first: names for the subscripts
    Expr  *value;
    bool   data_only;                    // computed once for the run; else a subscript is an unknown, and it is computed again when that was drawn
    struct Server *serves;               // steps that read it, in order
    const char *purpose;                 // what else it is for; or NULL
    bool   asked_apart;                  // something beside the steps reads it
    const Rows *route;                   // only the route with many rows of this draw reads it; NULL: others do, too
    struct Sum *next;
} Sum;

typedef struct Carried {                 // an unknown that a move along an orbit changes: element becomes value
    Var   *var;
    int    power;                        // it is multiplied by c^power
    Index *index[MAX_RANK];
    Expr  *element, *c, *value;          // in terms of the indices
    Expr  *fixed;                        // an element that stays where it is; or NULL
    const Plates *plates;                // of the statement that draws it; NULL: it has the shape of c
    bool   triangle;                     // a matrix, whose elements above the diagonal are no coordinates
    Expr  *where;                        // it moves; NULL: everywhere
    Expr  *log_jacobian;                 // windows.c: of its move; NULL: as power says
} Carried;

typedef struct Window {                  // windows.c: counts that a move sees summed over a window of values about where each stands
    Var         *count;
    Conditional *conditional;            // of an element of them
    Expr        *tilt;                   // what c adds to the coefficient of the element in its log density, in terms of conditional->element
    Var         *below, *apart, *weights;        // how many values of the window are below the element, how far they are apart, and the density at each of them, over the largest
    Index       *value;                  // the number of a value, from 1
    Expr        *weight;                 // of it: the element of `weights`
    Expr        *step;                   // what c adds to the logarithm of the weight of each value more than to that of the value before
    int          nrows;
    const Part **of_rows;                // parts of the density whose rows the tilt has alike, and
    Var        **rows;                   // how many of them there are for each element
} Window;

typedef struct Transfer {                // transfers.c: which elements c moves against each other, and how far it may; found before each draw of c
    Var      *moved, *of;                // of: c
    Var      *other;                     // against this; NULL: elements of `moved` against each other
    unsigned  along;                     // then bit d: in dimension d each subscript has a partner
    Var      *distance[MAX_RANK], *phase[MAX_RANK], *partner[MAX_RANK];     // of these dimensions: who is whose partner (device/transfers.h)
    Var      *place[2][MAX_RANK];        // of moved and other, in dimensions that c does not have: the subscript of what moves
    Var      *step, *first, *last;       // of each element of c: it moves by this; the values among which it is drawn
    Index    *element[MAX_RANK];
    Expr     *lowest, *highest;          // the least and the most that element may move by
} Transfer;

typedef struct Orbit {                   // orbits.c, exchanges.c, transfers.c, shifts.c, windows.c, reflections.c: the step draws c, and then moves these
    Var   *by;                           // c: 1 leaves all as it is
    bool   added;                        // or 0 does: exchanges.c, transfers.c, shifts.c, reflections.c
    bool   by_priors;                    // what moves has no other terms in the law of c
    Expr  *where;                        // sizes: something moves; NULL: always
    int    n;
    Carried *moved;
    int    nwindows;
    Window *window;                      // counts that are summed out for c, and drawn after it
    const Transfer *transfer;            // what c moves was found before it was drawn; or NULL
} Orbit;

typedef struct Without {                 // conjugates.c: a plate that a step sees integrated out
    const struct Step *plate;
    int          n;
    const Part **part;                   // sums over rows in natural parameters of an element, and
    Var        **sum;                    // what stands for them in the law: sum[i][element]. Lowering puts statistics of data in their place, or sums that are made before the step
} Without;

typedef struct Step {
    StepKind     kind;
    Span         span;
    int          nblock;
    Var        **block;                  // GAUSSIAN: dense variables first, then the diagonal one if `arrow`; else one
    Conditional *conditional;            // of one element; not GAUSSIAN
    bool         collapsed;              // SLICE, METROPOLIS, ENUM: density with auxiliaries integrated out
    const char  *reason;                 // shown by --explain
    bool         marginal;               // its law has auxiliaries integrated out: --check cannot compare it with the joint
    const struct Without *without;       // conjugates.c: a plate that is integrated out, and drawn next; or NULL
    bool         by_messages;            // ENUM: from its array of log densities; along a chain, all elements together
    bool         at_once;                // ENUM: all elements along a chain, parallel in time (kernel/states.c)
    const struct Joined *joined;         // ENUM: a set that is drawn together, or (of one unknown) its draw in turn, for sizes for which it is not; or NULL
    bool         over_sum;               // it sees unknowns summed out
    bool         imputes;                // missing values of data only
    enum { EVERY_SWEEP, WITHOUT_GRADIENTS, WITH_GRADIENTS, ON_CPU, ON_GPU } when;       // WITH and WITHOUT: a method of its competition, of which a run takes one
    struct Competition *competition;     // or NULL: there is one way to draw the block
    int          joint;                  // the number of a sparse block: this step is it; -number: it stands in for it, on a GPU and where that would be too much work; 0: neither
    const struct Step *in_turns;         // of a joint normal: it is a turn of this step, which stands in the schedule; or NULL
    const struct Description *description;       // describe.c: for readers
    bool         expects;                // --method em: its expectations are found, not a draw; all other steps take the modes of their conditionals
    int          nexpected;
    const Predictive *predictive;        // ENUM: weights that are integrated out, or NULL
    const Orbit *orbit;                  // EXACT, SLICE, GAUSSIAN: what is drawn moves others; or NULL
    const struct Proposal *proposal;     // GAUSSIAN: what is drawn is a proposal, which is accepted or not; or NULL
    const struct White *white;           // SLICE: given the white noise of a vector, which moves along; or NULL
    Expr        *shelf, *shelves;        // and which of so many groups of weights an element of one subscript counts in, by data alone: groups are drawn at once. NULL: elements take turns
    Var         *evidence;               // of a latent: for each element the log of the sum over its values of what they weigh, which is what the log density has of it; NULL: that adds it up itself
    Var         *expected[MAX_NATURAL];  // arrays of expectations: ENUM: the probabilities of the values; EXACT: of these statistics of the family
    int          which[MAX_NATURAL];
    union {
        struct {                         // GAUSSIAN
            BlockTerm  *terms;
            bool        arrow;           // the last variable's elements are conditionally independent given the rest
            Factor     *scaled;          // the factor of latents that are scaled together with the draw, or NULL
            Expr       *scaled_latent;   // its latent, and the weight w in exp(-w z^2 / 2)
            Expr       *scaled_weight;
            const Rows *rows;            // how to draw it if rows->count < rows->size, or NULL
            const char *no_rows;         // why not
            int         nbatch;          // leading dimensions over which the block is independent
            bool        on_plane;        // one variable, each of whose vectors has the sum 0
            bool        diagonal;        // the same, and its precision has nothing but the diagonal
            const Band *band;            // its precision is a band along a chain; or NULL
            const Innovations *innovations;      // the block's first variables; what is drawn is the series that they make. Or NULL
            int         sparse;          // several plates, or elements that are coupled in pairs: its number among such blocks, whose precision is kept by the entries that there are; 0: it is none
            int         most_work;       // of a sparse block: it is drawn jointly if that takes no more than so many times the work of the steps that stand in for it
            const struct Scales *scales; // drawn before it, with it integrated out; or NULL
            int         ndense;          // of a sparse block: so many variables come first that have few elements, or couple all of them
            const Rows *listed;          // of a sparse block: factors whose terms of degree 2 are told row by row; or NULL
        } gaussian;
        Turns *turns;                    // TURNS
        struct { Expr *lower, *upper; } enumerate;                  // ENUM: values
        const Pair *pair;                // PAIR
        const struct Ellipse *ellipse;   // ELLIPTICAL
        struct { Expr *width; } slice;   // SLICE, METROPOLIS: width to start from, if the model says one
        struct {                         // NUTS
            int      n;
            Factor **factor;             // whose densities read the block
            double   accept;             // what the step size aims at
            int      depth;              // of a trajectory: at most 2^depth steps
            int      steps;              // HMC: of every trajectory; 0: NUTS
            bool     named, chees;       // the model asks for the move by name; chains adapt together
            double   step;               // HMC: their size; 0: adapted
            double   anneal;             // HMC: temperature that warm-up begins with
            int      metric;             // of front's `metrics`
            int      sums;               // of factor_counts_at: how many sums over values of others it sees
        } nuts;
    };
    struct Step *next;
} Step;

// ---- elliptical.c: a vector with a joint normal prior and any likelihood ----

typedef struct Ellipse {
    const Factor *prior;                 // the statement whose law the ellipse is drawn from
    Conditional  *conditional;           // density: everything else, of one vector v[i, ...] if each factor holds one, else of all
    const char   *routine;               // draws from the prior: of the library's `sample`
    int           nargs;
    Expr         *arg[MAX_RANK];
    Expr         *mean;                  // of the element that is studied
} Ellipse;

Ellipse *find_ellipse(Graph *g, Var *v, bool collapsed, const char **because);      // NULL: *because says why there is none
const Factor *joint_prior(Graph *g, Var *v, bool collapsed);        // the statement that gives each vector v[i, ...] a joint normal law of its own; NULL: there is none

// ---- orbits.c, exchanges.c, shifts.c, scales.c: what moves more than one step does ----

void find_windows(Graph *g);                                     // windows.c: adds the steps that move rates of counts against what sees them
Expr *in_place_of_sums(const Without *w, Expr *e, Expr *const *is);      // is[i] in place of sum[i], in terms of the plate's conditional
void find_conjugates(Graph *g);                                  // conjugates.c: parameters of a plate of conjugate unknowns, drawn with these integrated out
void find_orbits(Graph *g);                                      // adds the steps that move scales with what they scale
void find_exchanges(Graph *g);                                   // and those that move counts against each other
void find_transfers(Graph *g);                                   // the same of elements of one array that are added up
void find_shifts(Graph *g);                                      // and locations with what they are the locations of
void find_reflections(Graph *g);                                 // and unknowns of either sign that stand in products

typedef struct Scales {                  // drawn before a joint normal, which is integrated out
    int      n, nfactors;
    Var    **var;
    Factor **factor;                     // all that the log density has of them
} Scales;

void find_scales(Graph *g);
Scales *scales_of(Graph *g, const Step *s);                       // of a joint normal; NULL: there are none

// ---- proposals.c: scales and what they are the scales of, proposed together ----

typedef struct Tangent {               // of the predictor of a factor, in place of its log density
    const Factor *factor;
    Expr         *density;               // its terms that hold the block
    Expr         *predictor;             // linear in the block
    Expr         *slope, *bend;          // of the log density as the chain stands: its derivative by the predictor, and less the second one
    Expr         *at[3];                 // what warm-up has found of them, an element for each instance: predictor, slope, bend
    Expr         *value;                 // at[1]*(predictor - at[0]) - at[2]/2*(predictor - at[0])^2
} Tangent;

typedef struct Proposal {                // of the step's block with its scales, from the joint that has quadratics in place of these factors
    Var       *name;                     // its random numbers are of this
    int        n;
    Tangent *of;
} Proposal;

void find_proposals(Graph *g);                                   // adds the steps

// ---- whiten.c: a vector's white noise in place of the vector ----

typedef struct White {
    Var          *vector;                // mean + root * noise, or the solution of root' * (vector - mean) = noise
    const Factor *prior;
    Expr         *root;                  // lower triangular
    bool          precision;             // root * root' is the precision, else the covariance
    Index        *element[MAX_RANK];
    Expr         *current, *mean;        // of vector[element...]
} White;

Expr *joint_root(Graph *g, const Factor *prior, bool *precision);          // the triangle that the normals of a joint normal prior are multiplied with, or for a precision that whose transpose they are divided by; NULL: none
void find_whitened(Graph *g);                                    // adds slices of what covariances are made of

Step *turns_step(Graph *g, Var *const *free, int nfree);         // turns.c: a step that draws some of them category by category; NULL: there are none
Step *turns_block(Graph *g, Var *const *block, int n);            // the same of all of them together
void complete_turns(Graph *g, Step *s);                          // once find_domains has been there
// ---- expect.c: latents by their expectations, for modes ----

// Fills the steps that find expectations, each made by step_of, and the factors that steps of maximisation read; false after a message.
bool expectations(Graph *g, Step *(*step_of)(Graph *, Var *), Step **steps);

// ---- sets.c: joint normals of several plates ----

bool has_pattern(const BlockTerm *terms);                        // which elements they hold depends on sizes and data without missing values alone
bool coupled_in_pairs(Graph *g, Var *v, const BlockTerm *terms);          // its elements are coupled in pairs or lists that loops name, or by few rows, and not each with each
void find_listed(Graph *g, Step *s);                             // fills `listed` of a sparse block
int  stands_in(const Sum *s);                                    // of a statistic that only steps read which stand in for sparse block k: k; else 0
const Rows *listed_in(const Step *s, const Factor *f);           // whether it tells this factor row by row; or NULL

void find_rows(Graph *g, Step *s);       // few_rows.c: fills rows or no_rows of a joint normal
const Var *matrix_of_entries(const BlockTerm *t);               // of a term of Rows.phi: the matrix of data whose row its entries are, each element of a vector by its column; or NULL
Rows *factor_rows(Graph *g, Var *const *block, int n, const Factor *f);      // one factor as rows of weight, shift and phi, without their count; NULL: it has another form
bool schedule(Graph *g);
const char *only_on_cpu(const Graph *g);                         // why its program runs on the CPU alone; NULL: it does not
void schedule_print(FILE *out, const Graph *g);                  // with the law of each step, once describe_steps has been there
bool complete_blocks(Graph *g);                                  // joint normals hold all elements of their variables, also those that do not exist; then their routes
void conditionals_print(FILE *out, const Graph *g);

// ---- describe.c: a step for readers ----

typedef struct Description {             // all text is in the model's names; NULL: nothing to say
    const char *subject;                 // alpha_c, alpha
    const char *what, *is;               // given the rest: sigma^-2, ~ gamma(shape, rate); or phi, : slice sampled
    const char *brief;                   // the same as `is`, or shorter
    const char *law;                     // sigma^-2 ~ gamma(shape, rate); phi has the density below, up to a constant
    int         n;
    const char **line;                   // shape = ..., rate = ...
    const char *method;                  // how it is drawn
    const char *because;                 // why so
    const char *elements;                // what runs in parallel
} Description;

bool describe_steps(Graph *g);                                   // fills the description of each step
void plan_print(FILE *out, const Graph *g);                      // the schedule, and the claims

// ---- claims.c, coverage.c: what data must satisfy for every element that the model reads to exist ----

typedef struct Claim {                   // checked once, when the data have been read
    Span        span;                    // the statement
    const char *name;                    // of the variable
    Loops       loops;                   // at each turn of which none of these may hold
    int         nparts;
    Expr       *fails[2];
    Expr       *part[2];                 // the same as a number that must not be negative; NULL: it is none
    const char *says;                    // the message: each # stands for a number
    int         nnumbers;
    Expr       *number[MAX_RANK + 1];
    bool        counted;                 // it reads how often elements are named, which are sums of data
    struct Claim *next;
} Claim;


// ---- observed.c: log-likelihoods and replicates of what is observed, for runs that ask for them ----

typedef struct Observed {                // a variable, or a statement that is not about one
    const char *name;
    const Var  *var;                     // or NULL
    Span        span;                    // of its first statement
    Var        *log_lik, *replicate;     // NULL: not made,
    const char *no_log_lik, *no_replicate;       // because
    struct Observed *next;
} Observed;

bool find_observed(Graph *g);
void observed_print(FILE *out, const Graph *g);

// ---- labels.c: names of components that can be permuted ----

typedef struct Labelled {                // a variable that runs over labels
    const Var *var;
    unsigned   dims;                     // bit d: dimension d does
    bool       values;                   // its values are labels
    bool       apart;                    // its elements have an order of their own, and stay where they are: the parts of a stick
    bool       lost;                     // a definition that depends on which label is which
    struct Labelled *next;
} Labelled;

typedef struct Alike { const Var *var; int dim; struct Alike *next; } Alike;     // data along the labels: these are exchangeable only if nothing differs there

typedef struct Labels {                  // 1 to count
    const Var  *by;                      // the first unknown whose values they are
    Expr       *count;
    int         set;                     // labels.c: the class
    const char *told_apart;              // NULL: each permutation of them leaves the log joint as it is
    const char *not_permuted;            // why draws should not be permuted; NULL: they may be
    Alike      *alike;
    Labelled   *vars;                    // all others do not depend on the labels
    struct Labels *next;
} Labels;

bool find_labels(Graph *g);
void labels_print(FILE *out, const Graph *g);

// ---- hoist.c: sums that depend on data only leave the sweep ----

typedef struct Fresh {                   // of variables made beside a graph, which stays as it is
    const Graph *g;
    int          nvars;                  // theirs and the graph's: the number of the next one
    Map          taken, numbered;
} Fresh;

typedef struct Sums {                    // statistics of data: those of the graph, and those that are asked for
    const Graph *g;
    Fresh       *names;
    Sum         *first;
    const Rows  *route;                  // what is asked for now serves only the route with many rows of this draw; NULL: all
    const Step  *serving;                // and this step, or NULL
} Sums;

Var *fresh_var(Fresh *n, const char *stem, VarKind kind);        // a variable with a name that nothing has, beginning with stem
void fresh_forget(Fresh *n, const Var *v);                       // the name is free again

typedef struct Keys { int n; Expr *key[MAX_RANK], *extent[MAX_RANK], *at[MAX_RANK]; } Keys;

// The sum over loops of value, over the rows whose keys equal `at`, as an expression over statistics of data;
// NULL if it must stay in the sweep.
Expr *hoist_sum(Sums *to, const Keys *keys, const Loops *loops, Expr *value);
Expr *keys_at(const Keys *keys, Expr *ref);                       // the reference with its subscripts that are keys at `at`
bool  varies(const Expr *e, const Loops *l);                      // with an index of the loops
Expr *where_observed(const Graph *g, Expr *data, Expr *value);    // the value where nothing that the data hold is missing, else 0
Expr *statistic(Sums *to, const Loops *loops, int n, Expr *const *target, Expr *const *extent, Expr *value, Expr *const *at);      // sum of data by targets, at `at`: found again if it exists

// ---- keyed.c: the same where a key is drawn in the sweep ----

bool  is_drawn_key(const Expr *e);                                // c[i], of a discrete unknown
bool  has_drawn_key(int n, Expr *const *target);
bool  reads_weights(const Expr *e);                               // probability_c[i, k], of the values of a latent that is there by its expectations
Expr *hoist_weighted(Sums *to, const Keys *keys, const Loops *l, Expr *value);   // of hoist_sum, if the value reads weights
Expr *hoist_keyed(Sums *to, const Keys *keys, const Loops *l, Expr *value);      // of hoist_sum, if a key is one

// ---- naming.c: what a reader calls a statistic ----

const char *statistic_name(const Graph *g, const Sum *s);              // sum_x_by_group: a stem, which may be taken
const char *value_name(const Graph *g, const Expr *e, const Loops *over);      // of what is computed for each instance of loops: log_w, over_s_squared
const char *total_name(Graph *g, const Expr *e);                 // of a sum over data alone: mean_x, sum_x, max_x
const char *statistic_text(const Graph *g, const Sum *s);              // sum_x_by_group[k] = sum of x[i] over i with group[i] = k; serves the conditional of mu[j]

#include "var.h"
#include "prover.h"
#include "plates.h"
#include "requests.h"
#include "supports.h"
#include "factor.h"
#include "reads.h"
#include "print.h"
#endif
