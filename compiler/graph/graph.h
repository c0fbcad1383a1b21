// graph.h -- the model graph: variables, statements that compute, and factors over plates. What files of the folder make of it stands in
// their own headers.
#ifndef GMC_GRAPH_H
#define GMC_GRAPH_H

#include "../base/diag.h"
#include "../base/map.h"
#include "../front/ast.h"
#include "terms/expr.h"

// What a graph leads to, in headers of its own.
typedef struct Update Update;
typedef struct Sum Sum;
typedef struct Requirement Requirement;
typedef struct Conditional Conditional;
typedef struct Graph Graph;

typedef enum {
    VAR_DATA,       // read from the data files
    VAR_LET,        // computed once from data
    VAR_PARAMETER,  // unknown
    VAR_LATENT,     // unknown, one per observation: declared in a `latent` block
    VAR_PART,       // unknown, an element of a vector that the compiler made, which is what is drawn: nothing mentions it but names
    VAR_AUXILIARY,  // unknown, brought in by an augmentation
    VAR_DERIVED,    // a definition that depends on unknowns; its uses are substituted, its value is for the draws
    VAR_SERIES,     // a recursive definition that depends on unknowns: computed in the sweep, up to date whenever an update reads it
    VAR_PREDICTED,  // a definition in the predict block, or drawn there
    VAR_SUM,        // a statistic: of data only (computed once) or of one sweep
    VAR_PATTERN,    // a name that an augmentation's pattern binds
    VAR_ELEMENT,    // the element under study while a conditional is worked out
} VarKind;

// predicted variables: computed in runs that ask for them
typedef enum { REQUEST_NONE, REQUEST_LOG_LIK, REQUEST_REPLICATES } OnRequest;

enum {
    // loops around a statement, those over the elements of a vectorised one among them; and sums in one term of a polynomial
    MAX_PLATES = 2 * MAX_RANK,
    MAX_LOOPS = 2 * MAX_PLATES,  // both
    MAX_STATISTICS = 64,         // of one variable: no family has as many
};

typedef struct Loops {  // around a statement (its plates), or of a sum: over indices, where a condition on data and indices holds
    int n;
    Index *index[MAX_LOOPS];
    Expr *guard;
} Loops;

typedef struct Site {  // one statement that computes elements of a LET, DERIVED or PREDICTED variable
    Span span;
    Var *var;
    Loops plates;
    int n;
    Expr *subscript[MAX_RANK];
    Expr *value;               // what they are; NULL for a draw
    const Distribution *dist;  // of a draw
    const char *sample;        // routine that draws, or NULL: the values are weighed
    // arguments, the first of which are the routine's; then what else the draw reads, if it is `within`
    int nargs, nsample;
    // two ends: these, the ends of the support, and of `x` the log density (integers) or log_cdf and log_ccdf
    Expr **args;
    // the last of `args` is the condition that arguments lie in their domains: where it does not hold, there is no draw
    bool guarded;
    bool within, exact;  // exact: the routine draws between `end[0]` and `end[1]`
    Expr *x, *end[2];    // stand for a value and the ends in the arguments
    Expr *when;          // a component of a mixture: the component drawn is this one. Else NULL
    bool adds;           // of a series: to what sites before it have computed
    bool again;          // a component behind the first: the elements are those of the site before
    struct Ode *ode;     // the value is the solution of a differential equation; else NULL
    struct Site *next;
} Site;

typedef struct Series {  // definitions whose elements depend on each other, computed together along one subscript
    int n;
    Var **var;  // in the order in which they are computed at one value of the subscript
    Index *along;
    bool backward;        // from the last to the first
    bool apart;           // only one update reads it, which computes it before
    bool chains;          // the first subscript of each variable distinguishes chains, of which none reads another
    Site *sites;          // with `along` for the plate or number that stood there; in order
    struct Series *next;  // series that read this one come later
} Series;

struct Var {
    const char *name;
    int id;
    VarKind kind;
    BaseType base;
    int rank;
    Expr *dim[MAX_RANK];
    Constraint constraint;
    // data: of what a distribution takes whole, where the declaration says nothing; counts: no element is negative
    Constraint asked;
    bool asked_counts;
    const char *asked_by;               // "the `Sigma` of multi_normal (m.gm:4)"
    double lower_number, upper_number;  // static support: -INFINITY, INFINITY if open
    Expr *lower, *upper;                // declared bounds of data, checked at load; finite support of an integer variable
    Expr *init;                         // default of a data scalar
    bool response;                      // data on the left of `~`: may have missing values
    bool left_out;                      // response: the model asks that its missing values are left out of what others see (left_out.c)
    bool may_be_left_out;               // response: the model could ask for that
    const char *needed_for;             // response: what is made of it before sampling, so that no value may be missing; or NULL
    bool discrete;                      // of finite or countable support
    Decl *decl;
    Span span;
    Site *sites;
    Series *series;        // that it is part of, or NULL
    struct Sum *sum;       // VAR_SUM: how it is computed
    Var **parts;           // of a vector that the compiler made: whose elements they are, in order
    Var *part_of;          // VAR_PART: that vector
    int part_at;           // and which element of it, from 0
    bool partial;          // not all elements are drawn: others are computed for the draws, or do not exist
    Index *own[MAX_RANK];  // parameters and latents: elements v[own...] have a statement
    Expr *exists;          // where this holds; NULL: all do. find_domains fills both
    // predicted or a series, but not for the draws: which component of a mixture is drawn, messages along a chain
    bool hidden;
    OnRequest on_request;  // predicted, by the compiler: only runs that ask for it have it
    bool lost;             // an error was reported on it
    // VAR_PATTERN of a description: the sum that its name spells out (plan/describe.c). Else NULL
    const struct Spelled *spelled;
    struct Var *in_place;  // a definition, once the model is centred: this is drawn in its place. Else NULL
    // its elements have distributions of several supports, or one sum: no static support, each `~` brings bounds
    bool mixed;
    struct {         // rewrite/marginal.c, sums.c, trees.c, messages.c, joined.c: unknowns that are summed out
        int summed;  // it is summed out, as this number; 0: it is not
        // laws of others depend on it, which are summed out of its conditional: those of them with `summed` are for no others to see
        bool parent;
        bool offered;  // it can be summed out for NUTS, which is compared with Gibbs updates given it
        int nrows;     // the first chain with the same data: the arrays of data whose rows are compared
        Var **rows;
        Var *rows_counted;  // of that: stands for how many different rows there are
        bool counts_rows;   // is such a number, from which the runtime knows what a sweep costs
        // along chains that differ by data alone: the first chain with the same data; of that, how many there are of each
        Var *alike;
        // along a chain whose messages are of what comes behind the element, and not of the element itself: arrays of what these hold
        // besides (messages.c). NULL: it is no such chain
        const struct Linked *linked;
        // summed out: an array of each element's log density at each value; along a chain, of all from this element on. NULL: there is none
        Var *messages;
        struct Joined *joined;  // drawn together with others, by the product of their values; NULL: it is not
        int chain;              // the subscript that the chain goes along, or the last
        int sums;               // how many sums over values of others what moves it has behind it
    } summing;
    struct {               // rewrite/expect.c: --method em
        bool integrated;   // --method em: a latent that is there by its expectations; or an auxiliary that was taken back
        bool expectation;  // --method em: an array of expectations
        bool weights;      // and it has the probability of each value of a discrete latent, the last dimension
    } em;
    struct {                        // model/coverage.c, plan/data_requirements.c: what is known of its elements before the data are read
        struct Coverage *coverage;  // what its statements name
        bool holes;                 // some elements may have no statement: they do not exist
        bool minds_missing;         // a LET: a value of a response that is missing does not enter it
        bool unsure;                // a LET: computed with subscripts that are known to lie inside only when requirements have been checked
        bool wild;                  // read in a subscript that may be outside for some of its values: emitted code looks each time
    } known;
    struct {                 // kernel/once.c, entries.c, logs.c: arrays of kernels
        Expr *computed;      // an array of what is computed once in a place (kernel/once.c): its elements are as finite as this
        bool filled_within;  // a work array: the kernel that reads it fills it, and no launch before that can read it
        // a work array: the precision of the joint normal of this number, of which the runtime keeps the entries that there are; 0: it is
        // none
        int pattern;
        // arrays of log x and log(1 - x) as they were drawn, where others read these of values that may round to an end (kernel/logs.c).
        // NULL: there is none
        Var *kept_log, *kept_log1m;
    } lowered;
};

typedef struct Component {  // of a mixture
    const Distribution *dist;
    int nargs;
    Expr **args;
    Expr *weight;
} Component;

typedef struct Factor {
    int id;
    Span span;
    Loops plates;
    Expr *log_density;         // of one instance
    const Distribution *dist;  // NULL: target +=, or a constraint
    Expr *value;               // scalar value of the distribution, else NULL
    int nargs;
    Expr **args;      // arguments; arrays for array parameters
    int ncomponents;  // a mixture: its components; one if they are a plate
    Expr *weights;    // a mixture: its weights, as they are written
    Component *component;
    Index *plate;  // of components: weight and args are those at this index; NULL: they are listed
    bool truncated;
    Expr *lower, *upper;  // truncation
    bool observed;        // its value is data
    // observed: what a missing value adds to the log density, the ends of its support and truncation
    Expr *if_missing;
    // observed: support and truncation, where data alone decide them; integers, until settled: their range. NULL if open
    Expr *least, *most;
    const Var *region;    // of a declared unknown without a distribution: within its bounds. Else NULL
    bool added;           // target +=
    const Var *function;  // data that are a function of an unknown, y = z > 0. Else NULL
    // support, truncation and declared bounds, where both ends are known from data: checked at load not to be empty. Else NULL
    Expr *from, *to;
    struct Factor *original;  // factor that an augmentation replaced to make this one, else NULL
    bool replaced;            // an augmentation took its place
    // as written: of the missing values of its response alone. What stands in its place is for the others
    bool left_out;
    bool taken_back;           // --method em: the factor that it was made from stands as written
    const Augmentation *rule;  // that made it
    const Var *sums_out;       // the sum over the values of an unknown, else NULL
    int made, gone;            // it counts from this number of sums on, until this sum takes it in (0: none does)
    struct Factor *next;
} Factor;

typedef struct Reading {
    int n, size;
    Factor **factor;
} Reading;  // the factors that a variable enters

typedef struct Applied {  // an augmentation at work
    const Augmentation *rule;
    Factor *factor;  // what it replaced
    Var *latent;     // the first latent
    struct Applied *next;
} Applied;

typedef struct Graph {
    Arena *arena;
    Diags *diags;
    const Model *model;
    const Library *stdlib;
    int nvars, vars_size;
    Var **vars;               // in order of declaration; auxiliaries and sums follow
    Map taken, numbered;      // names of variables and declarations; the number that a fresh name was made with last
    struct Reading *reading;  // conditionals: the factors that each variable enters, by its number; NULL: not looked up yet
    int nreading;
    Factor *factors, **last_factor;
    Applied *applied, **last_applied;
    Series *series;               // of lets, of the sweep, of predictions
    struct Update *updates;       // schedule: the sweep
    struct Update *last_updates;  // schedule: those that it ends with, which no pass between looks at
    int nupdates;
    struct Selection *selections;
    struct Alone *no_selection;
    struct Sum *sums;
    struct Requirement *requirements;  // what is checked when the data have been read
    struct Observed *observed;         // what runs may ask for
    struct Labels *labels;             // kinds of labels
    Factor *written;                   // what the density of the model as written has besides: logs of the Jacobian of its centred form
    int njoint;                        // joint normals with a sparse precision
    int nsums;                         // unknowns that are summed out
    int offers;                        // with so many sums behind them moves see what is offered summed out; 0: nothing is
    bool no_augment;
    // --method. OTHER: gmc chooses. GIBBS: gradients move what the model requests alone; NUTS: whatever they can move, unless the model
    // asks for something else. EM: the program looks for modes: latents by expectations, all else by maxima of conditionals
    Method method;
    bool supports_known;  // build: what statements imply on supports is known
    struct Added *added;  // build: the statements target +=, the last one first
    bool laws;            // elaborate: some expression holds a density by its name, normal_lpdf(y | mu, s)
    // build: on the left of `~`, where a name of which some elements are computed stands for those drawn
    const Decl *drawing;
    struct Slopes *slopes;          // gradient: derivatives of functions
    struct Factored *factored;      // gradient: matrices that are factored, wherever factors mention that
    struct Defined *defined[1024];  // elaborate: definitions at subscripts asked for before
} Graph;
#endif
