// graph.h -- the model graph: variables, statements that compute, and factors over plates. What the files of this folder derive from it
// is declared in their own headers.
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
    VAR_PART,       // unknown, now an element of a vector that the compiler made: the vector is drawn, and this is its name for readers
    VAR_AUXILIARY,  // unknown, brought in by an augmentation
    VAR_DERIVED,    // a definition that depends on unknowns; its uses are substituted, its value is for the draws
    VAR_SERIES,     // a recursive definition that depends on unknowns: computed in the sweep, up to date whenever an update reads it
    VAR_PREDICTED,  // a definition in the predict block, or drawn there
    VAR_SUM,        // a statistic: of data only (computed once) or of one sweep
    VAR_PATTERN,    // a name that an augmentation's pattern binds
    VAR_ELEMENT,    // the element under study while a conditional is worked out
} VarKind;

// which draws a run stores of itself: as the kind has it; where it has few elements; only if a run asks for it
typedef enum { STORED_BY_KIND, STORED_IF_SMALL, STORED_IF_ASKED } Stored;

// predicted variables: computed in runs that ask for them
typedef enum { REQUEST_NONE, REQUEST_LOG_LIK, REQUEST_REPLICATES, REQUEST_LOG_PRIOR } OnRequest;

enum {
    // loops around a statement, those over the elements of a vectorised one among them; and sums in one term of a polynomial
    MAX_PLATES = 2 * MAX_RANK,
    MAX_LOOPS = 2 * MAX_PLATES,  // both
    MAX_STATISTICS = 64,         // of one variable: no family has as many
};

typedef struct Loops {  // around a statement (its plates), or of a sum: over indices, where a condition on data and indices is true
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
    // the last of `args` is the condition that arguments lie in their domains: where it is false, nothing is drawn
    bool guarded;
    bool within, exact;  // exact: the routine draws between `end[0]` and `end[1]`
    Expr *x, *end[2];    // placeholders for a value and the two ends, used in the arguments
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
    Site *sites;          // in order; `along` replaces the plate or number of that subscript
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
    bool left_out;           // response: the model requests that its missing values are left out of all other conditionals (left_out.c)
    bool may_be_left_out;    // response: the model could ask for that
    const char *needed_for;  // response: what is computed from it before sampling, so that no value may be missing; or NULL
    bool discrete;           // of finite or countable support
    Decl *decl;
    const char *lengths;  // its first dimension are rows of these lengths, one behind the other (front/ragged.c); or NULL
    Span span;
    Site *sites;
    Series *series;        // that it is part of, or NULL
    struct Sum *sum;       // VAR_SUM: how it is computed
    Var **parts;           // of a vector that the compiler made: whose elements they are, in order
    Var *part_of;          // VAR_PART: that vector
    int part_at;           // and which element of it, from 0
    bool partial;          // not all elements are drawn: others are computed for the draws, or do not exist
    const char *called[MAX_RANK];  // what loops of the model call its subscripts (terms/reads.c); NULL: no loop names one
    Index *own[MAX_RANK];  // parameters and latents: elements v[own...] have a statement
    Expr *exists;          // if this is true; NULL: all have one. find_domains fills both
    // predicted or a series, but not written to the draws: which component of a mixture is drawn, messages along a chain
    bool hidden;
    struct Var *component;  // predicted: the hidden variable that says which component of a mixture is drawn. NULL: none
    OnRequest on_request;   // predicted, by the compiler: only runs that ask for it have it
    bool lost;              // an error was reported about it
    // VAR_PATTERN of a description: the sum that its name spells out (plan/describe.c). Else NULL
    const struct Spelled *spelled;
    struct Var *in_place;  // a definition, once the model is centred: this is drawn in its place. Else NULL
    Stored stored;          // once the model is centred, draws are stored as those of the model as written
    // its elements have distributions of several supports, or one sum: no static support, each `~` brings bounds
    bool mixed;
    struct {         // rewrite/marginal.c, sums.c, trees.c, messages.c, joined.c: unknowns that are summed out
        int summed;  // it is summed out, as this number; 0: it is not
        // other discrete unknowns depend on it and are summed out of its conditional; those of them with `summed` are summed out of that
        // alone
        bool parent;
        bool offered;  // it can be summed out for NUTS, which is compared with Gibbs updates given it
        int nrows;     // of the array of first chains (alike): the arrays of data whose rows are compared
        Var **rows;
        Var *rows_counted;  // of that array: the number of different rows
        bool counts_rows;   // this variable is such a number; the runtime computes the cost of a sweep from it
        // of chains that differ by data alone: an array of the first chain with the same data as each; of that array, an array of how
        // many chains have these data
        Var *alike;
        // of a chain whose messages sum over the elements behind the current one only: arrays of the other terms of these messages
        // (messages.c). NULL: it is no such chain
        const struct Linked *linked;
        // summed out: the log density of each element at each value; along a chain, of this element and all behind it. NULL: there is none
        Var *messages;
        struct Joined *joined;  // drawn together with others, by the product of their values; NULL: it is not
        int chain;              // the subscript along which the chain runs, or the last one
        int sums;               // its update sees the joint in which so many unknowns are summed out (factor_counts_at)
    } summing;
    struct {               // rewrite/expect.c: --method em
        bool integrated;   // a latent that is replaced by its expectations; or an auxiliary whose augmentation was undone
        bool expectation;  // an array of expectations
        bool weights;      // and these are probabilities of the values of a discrete latent, along the last dimension
    } em;
    struct {                        // model/coverage.c, plan/data_requirements.c: what is known of its elements before the data are read
        struct Coverage *coverage;  // the elements that its statements name
        bool holes;                 // some elements may have no statement: they do not exist
        bool minds_missing;         // a LET: it leaves out missing values of responses
        bool unsure;                // a LET: its subscripts are known to be valid only after the requirements have been checked
        bool wild;                  // used in a subscript that some of its values take out of bounds: emitted code checks each time
    } known;
    struct {                 // kernel/once.c, entries.c, logs.c: arrays of kernels
        Expr *computed;      // an array of values computed once (kernel/once.c): an element is finite if this is
        bool filled_within;  // a work array: the kernel that reads it also fills it, and no earlier launch can read it
        // a work array: the precision of the sparse joint normal of this number, of which the runtime keeps the nonzero entries; 0: it is
        // none
        int pattern;
        // arrays of log x and log(1 - x) as drawn, for readers of logs of values that may round to 0 or 1 (kernel/logs.c). NULL: there is
        // none
        Var *kept_log, *kept_log1m;
        const char *note;  // for readers of a program: what a work array has; or NULL
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
    bool censored;        // of truncated: the ends are those of missing values, and the density is not divided
    Expr *lower, *upper;  // truncation
    bool observed;        // its value is data
    // observed: the term of the log density for a missing value: its support and truncation
    Expr *if_missing;
    // observed: the ends of support and truncation, if they depend on data alone; of integers, until settled, their range. NULL: open
    Expr *least, *most;
    const Var *region;    // of a declared unknown without a distribution: within its bounds. Else NULL
    const Var *ordered;   // its elements go up: the order of an ordered vector. Else NULL
    bool added;           // target +=
    const Var *function;  // data that are a function of an unknown, y = z > 0. Else NULL
    // support, truncation and declared bounds, where both ends are known from data: checked at load not to be empty. Else NULL
    Expr *from, *to;
    struct Factor *original;  // factor that an augmentation replaced to make this one, else NULL
    bool replaced;            // an augmentation has replaced it
    // it is used only in the updates of the missing values of its response; another factor replaces it for all other updates
    bool left_out;
    bool taken_back;           // --method em: the augmentation that made it is undone
    const Augmentation *rule;  // that made it
    // of a model that was centred, and of the mass of censored values: what the statement as written is about. Else NULL
    const Var *subject;
    const Var *sums_out;  // the sum over the values of an unknown, else NULL
    int made, gone;       // part of the joint from `made` unknowns summed out until the sum of number `gone` absorbs it (0: none does)
    struct Factor *next;
} Factor;

typedef struct Reading {
    int n, size;
    Factor **factor;
} Reading;  // the factors that a variable enters

typedef struct Applied {  // an augmentation that was applied
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
    struct Update *last_updates;  // schedule: those at its end, which the passes in between leave alone
    int nupdates;
    struct Selection *selections;
    struct Alone *no_selection;
    struct Sum *sums;
    struct Requirement *requirements;  // what is checked when the data have been read
    struct Edges *edges;               // graphs that densities are about, which are checked then too
    struct Observed *observed;         // what runs may ask for
    struct PriorTerm *priors;          // likewise: the terms of the log prior
    struct Forward *forward;           // draws without data, in order
    const char *sum_over_rows;         // a quantity of each row that reads such a sum of data: with other rows it is another one. Else NULL
    struct Labels *labels;             // kinds of labels
    Factor *written;                   // terms that only the model as written has: log Jacobians of its centred form
    int njoint;                        // joint normals with a sparse precision
    int nsums;                         // unknowns that are summed out
    int offers;                        // number of sums with which NUTS sees the offered unknowns summed out; 0: none is offered
    bool no_augment;
    // --method. OTHER: gmc chooses. GIBBS: NUTS only where the model requests it. NUTS: wherever it can be used, unless the model requests
    // another method. EM: the program finds modes, by expectations of latents and maxima of all other conditionals
    Method method;
    bool lesson;          // --lesson: sums are made where they are read, and one lane does everything in order
    bool supports_known;  // build: the supports that statements imply are known
    struct Added *added;  // build: the statements target +=, the last one first
    bool laws;            // elaborate: some expression calls a density by its name, normal_lpdf(y | mu, s)
    // build: on the left of `~`, where the name of a partly computed variable means the elements that are drawn
    const Decl *drawing;
    struct Slopes *slopes;          // gradient: derivatives of functions
    struct Factored *factored;      // gradient: the matrices whose Cholesky factors are mentioned
    struct Defined *defined[1024];  // elaborate: definitions at subscripts asked for before
} Graph;
#endif
