// update.h -- an update of the sweep: what it draws, and from what.
#ifndef GMC_GRAPH_UPDATE_H
#define GMC_GRAPH_UPDATE_H
#include "graph.h"

typedef enum {
#define UPDATE(id, name, describe, lower, what) UPDATE_##id,
#include "updates.def"
} UpdateKind;

typedef struct Selection {  // two methods for the same unknowns; a run finds out which is better (runtime/host/selection.c)
    int number;             // from 1
    int n;
    // continuous unknowns that share factors of the model as written: a whole connected set, or those of it that would be sliced
    Var **block;
    bool auxiliaries;  // exact conditionals need some, NUTS integrates them out
    bool coupled;      // unknowns that would be sliced depend on each other: if no trial is made, NUTS draws the block
    int nsummed;
    Var **summed;  // discrete unknowns that NUTS sees summed out; they are drawn after it
    struct Selection *next;
} Selection;

typedef struct Alone {  // a connected set without a selection, and why
    int n;
    Var **block;
    const char *because;
    struct Alone *next;
} Alone;

typedef struct Carried {  // an unknown that a group move changes: element becomes value
    Var *var;
    int power;  // it is multiplied by c^power
    Index *index[MAX_RANK];
    Expr *element, *c, *value;  // in terms of the indices
    Expr *fixed;                // an element that stays where it is; or NULL
    const Loops *plates;        // of the statement that draws it; NULL: it has the shape of c
    bool triangle;              // a matrix, whose elements above the diagonal are no coordinates
    Expr *where;                // the elements that change; NULL: all
    Expr *log_jacobian;         // windows.c: of its change; NULL: that of `power`
} Carried;

typedef struct Window {  // windows.c: counts that a group move sees summed over a window of values around the current one
    Var *count;
    Conditional *conditional;  // of an element of them
    Expr *tilt;                // c adds this to the coefficient of the element in its log density, in terms of conditional->element
    // the number of values of the window below the element, their distance, and the density at each of them relative to the largest
    Var *below, *apart, *weights;
    Index *value;  // the number of a value, from 1
    Expr *weight;  // of it: the element of `weights`
    Expr *step;    // c adds so much more to the logarithm of the weight of a value than to that of the previous value
    int nrows;
    const struct Part **of_rows;  // parts of the density over rows in which the tilt is the same, and
    Var **rows;                   // the number of such rows of each element
} Window;

// transfers.c: the elements that c changes against each other, and how far; found before each draw of c
typedef struct Transfer {
    Var *moved, *of;  // of: c
    Var *other;       // against this; NULL: elements of `moved` against each other
    unsigned along;   // then bit d: in dimension d each subscript has a partner
    // of these dimensions: who is whose partner (device/transfers.h)
    Var *distance[MAX_RANK], *phase[MAX_RANK], *partner[MAX_RANK];
    Var *place[2][MAX_RANK];   // of moved and other, in dimensions that c does not have: the subscript of the element that changes
    Var *step, *first, *last;  // of each element of c: its step, and the values among which it is drawn
    Index *element[MAX_RANK];
    Expr *lowest, *highest;  // the smallest and the largest change of the element
} Transfer;

// scale_moves.c, exchanges.c, transfers.c, location_moves.c, windows.c, reflections.c: the update draws c, and then changes these
typedef struct GroupMove {
    Var *by;         // c: 1 leaves all as it is
    bool added;      // or 0 does: exchanges.c, transfers.c, location_moves.c, reflections.c
    bool by_priors;  // what changes enters the law of c by its priors alone
    Expr *where;     // a condition on sizes: something changes; NULL: always
    int n;
    Carried *moved;
    int nwindows;
    Window *window;            // counts that are summed out for c, and drawn after it
    const Transfer *transfer;  // the elements that c changes are found before it is drawn; or NULL
} GroupMove;

typedef struct Without {  // conjugates.c: a plate that an update sees integrated out
    const struct Update *plate;
    int n;
    const struct Part **part;  // sums over rows in natural parameters of an element, and
    // their placeholders in the law: sum[i][element]. Lowering replaces them by statistics of data, or by sums that are made before the
    // update
    Var **sum;
} Without;

typedef struct Tangent {  // proposals.c: of the predictor of a factor, in place of its log density
    const Factor *factor;
    Expr *density;    // its terms in the block
    Expr *predictor;  // linear in the block
    // of the log density at the chain's state: its derivative by the predictor, and minus the second one
    Expr *slope, *bend;
    Expr *at[3];  // their averages over warm-up, an element for each instance: predictor, slope, bend
    Expr *value;  // at[1]*(predictor - at[0]) - at[2]/2*(predictor - at[0])^2
} Tangent;

typedef struct Proposal {  // of the update's block with its scales, from the joint that has quadratics in place of these factors
    Var *name;             // identifies its random numbers
    int n;
    Tangent *of;
} Proposal;

// A line of a description as expressions, for pages that write formulas: `name[left...] relation right over loops`
typedef struct Statement {
    const char *words;  // before the formula: "then"; NULL: none
    const char *name;   // of a parameter, J or h; NULL: `left` is the left side
    int nleft;          // subscripts of the name, or 1
    Expr *left[2];
    const char *relation;  // =, +=, ~, <=, >=, for; NULL: the line is words alone
    const char *dist;      // after ~: with right and right2 for arguments
    Expr *right, *right2;
    Loops over;
    const Factor *factor;          // that it comes from; or NULL
    const struct Statement *next;  // of the same line
} Statement;

typedef enum { SPELLED_SUM, SPELLED_LOWER, SPELLED_UPPER } SpelledAs;  // a sum; the largest of lower ends; the smallest of upper ones

typedef struct Spelled {  // what the name of a VAR_PATTERN spells out
    Loops loops;
    Expr *value;
    SpelledAs of;
} Spelled;

// of ~ dist(args), an exact draw; dist NULL: the law is another one
typedef struct DrawnFrom {
    Expr *of;
    const char *dist;
    int nargs;
    Expr **args;
    bool truncated;
} DrawnFrom;

typedef struct Description {  // all text is in the model's names; NULL: nothing to say
    const char *subject;      // alpha_c, alpha
    const char *what, *is;    // given the rest: sigma^-2, ~ gamma(shape, rate); or phi, : slice sampled
    const char *brief;        // the same as `is`, or shorter
    const char *law;          // sigma^-2 ~ gamma(shape, rate); phi has the density below, up to a constant
    int n, lines_size, statements_size;
    const char **line;     // shape = ..., rate = ...
    Statement *statement;  // the same as expressions
    DrawnFrom drawn;
    // how the density becomes this law, where it is that of a power, x = sigma^-2, or of a group move
    struct ChangedVariable {
        Expr *of, *x;  // the unknown, and a name for its power; of NULL: there is none
        double power;
        Expr *density;  // log density of x by the law, up to a constant
        const char *line;
    } changed;
    const char *measure;    // of a group move: Jacobian and Haar measure; NULL: there is none to be said
    const char *J, *h, *x;  // of a joint normal: what its precision, its shift and its block are called
    const char *method;     // how it is drawn
    const char *because;    // why so
    const char *elements;   // what runs in parallel
} Description;

// Members of one kind are in the union: who reads one has asked for the kind, or calls a function below, which does.
typedef struct Update {
    UpdateKind kind;
    Span span;
    int nblock;
    Var **block;               // GAUSSIAN: dense variables first, then the diagonal one if `arrow`; else one
    Conditional *conditional;  // of one element; NULL if it is GAUSSIAN, CATEGORIES or NUTS
    const char *reason;        // shown by --explain

    bool collapsed;  // auxiliaries are integrated out of its density
    bool over_sum;   // unknowns are summed out of it
    bool marginal;   // it does not draw from the conditional given all others: --check cannot compare it with the joint
    bool imputes;    // impute.c: it draws missing values of data only

    // select.c: its place in the sweep. WITH and WITHOUT: a method of its selection, of which a run takes one
    enum { EVERY_SWEEP, WITHOUT_GRADIENTS, WITH_GRADIENTS, ON_CPU, ON_GPU } when;
    struct Selection *selection;  // or NULL: there is one way to draw the block
    // the number of a sparse block: this update is it; -number: it replaces the block on a GPU, and where the block would be too much work;
    // 0: neither
    int joint;

    // joined.c: a set that is drawn together, or (of one unknown) its draw by itself, for sizes for which the set is not; or NULL
    const struct Joined *joined;
    const GroupMove *group_move;     // EXACT, ENUM, SLICE, GAUSSIAN: others change with what is drawn; or NULL
    const struct Without *without;   // conjugates.c: a plate that is integrated out, and drawn next; or NULL
    const Description *description;  // describe.c: for readers
    // expect.c, in a program for modes: EXPECTS finds expectations of the block, MAXIMISES the mode of its conditional
    enum { DRAWS, EXPECTS, MAXIMISES } does;
    struct Expected *expected;  // EXPECTS: the arrays that it fills; NULL: another update

    union {
        struct {  // GAUSSIAN
            struct BlockTerm *terms;
            bool arrow;                       // the last variable's elements are conditionally independent given the rest
            int nbatch;                       // leading dimensions over which the block is independent
            bool on_plane;                    // one variable, each of whose vectors has the sum 0
            bool diagonal;                    // the same, and its precision is diagonal
            const struct Update *categories;  // it draws one category of this update, which is in the schedule; or NULL
            const Proposal *proposal;         // proposals.c: what is drawn is a proposal, which is accepted or not; or NULL
            const struct Scales *scales;      // scales.c: drawn before it, with it integrated out; or NULL
            // chains.c: the precision is a band along a chain; or NULL
            const struct Band *band;
            const struct Innovations *innovations;  // the series that the block's first variables are innovations of; or NULL
            // complete.c: the factor of latents that are scaled together with the draw, or NULL
            Factor *scaled;
            Expr *scaled_latent;  // its latent, and the weight w in exp(-w z^2 / 2)
            Expr *scaled_weight;
            // few_rows.c: how to draw it if rows->count < rows->size, or NULL; and why not
            const struct Rows *rows;
            const char *no_rows;
            // several plates, or elements that are coupled in pairs: the number of the sparse block, whose precision is kept by its
            // entries; 0: it is none
            int sparse;
            int most_work;              // it is drawn jointly if that takes at most so many times the work of the updates that replace it
            int ndense;                 // so many variables come first that have few elements, or couple all of them
            const struct Rows *listed;  // sets.c: factors whose terms of degree 2 are row-listed; or NULL
        } gaussian;
        struct {                                  // ENUM
            Expr *lower, *upper;                  // values
            bool by_messages;                     // from its array of log densities; along a chain, all elements together
            bool at_once;                         // all elements along a chain, parallel in time (kernel/states.c)
            const struct Predictive *predictive;  // collapsed.c: weights that are integrated out, or NULL
            // if predictive: the number of the vector of weights that an element counts in, known from data, and how many vectors there
            // are. Elements of different vectors are drawn in parallel. NULL: all elements are drawn one after the other
            Expr *group, *ngroups;
        } enumerate;
        struct {                        // SLICE, METROPOLIS
            Expr *width;                // to start from, if the model says one
            const struct White *white;  // SLICE: given the white noise of a vector, which changes with it; or NULL
        } slice;
        struct Categories *categories;  // CATEGORIES
        const struct Pair *pair;        // PAIR
        const struct Ellipse *ellipse;  // ELLIPTICAL
        struct {                        // NUTS
            int n;
            Factor **factor;     // whose densities read the block
            double accept;       // what the step size aims at
            int depth;           // of a trajectory: at most 2^depth steps
            int steps;           // HMC: of every trajectory; 0: NUTS
            bool named, chees;   // the model requests the method by name; chains adapt together
            double step;         // HMC: their size; 0: adapted
            double anneal;       // HMC: temperature that warm-up begins with
            int metric;          // a MetricKind (runtime/device/metric.h)
            int sums;            // of factor_counts_at: how many sums over values of others it sees
            const Factor *wall;  // the first condition that what is computed lies in its domain; or NULL
        } nuts;
    };
    struct Update *next;
} Update;

// what an update of another kind has not: false or NULL
static inline bool update_by_messages(const Update *s) { return s->kind == UPDATE_ENUM && s->enumerate.by_messages; }
static inline bool update_at_once(const Update *s) { return s->kind == UPDATE_ENUM && s->enumerate.at_once; }
static inline const struct Predictive *predictive_of(const Update *s) { return s->kind == UPDATE_ENUM ? s->enumerate.predictive : NULL; }
static inline const struct White *white_of(const Update *s) { return s->kind == UPDATE_SLICE ? s->slice.white : NULL; }
static inline const Proposal *proposal_of(const Update *s) { return s->kind == UPDATE_GAUSSIAN ? s->gaussian.proposal : NULL; }
// the update of which s draws one category; NULL: none
static inline const Update *all_categories_of(const Update *s) { return s->kind == UPDATE_GAUSSIAN ? s->gaussian.categories : NULL; }
#endif
