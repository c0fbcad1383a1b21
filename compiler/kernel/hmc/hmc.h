// hmc.h -- blocks that are updated by HMC or NUTS: what the files here know of one, and what they offer each other.
//
// The sections are headed by the file that owns them, in the reading order of README.md.
#ifndef GMC_HMC_H
#define GMC_HMC_H
#include "../lower.h"

// the derivative by one element, a local of the kernel
typedef struct Total {
    Expr *ref;
    Var *local;
    struct Total *next;
} Total;

typedef struct Pending {  // a derivative by elements that instances share
    Derivative *d;
    Expr *weight;        // as an element of the array that keeps it, or as it is
    Var *sums, *matrix;  // X'w, where a pass over rows has made it, and X; NULL: none
    Expr *times;         // what multiplies the sums
    bool keeps;          // it reads sums that the rows have kept
    bool put;
    struct Pending *next;
} Pending;

// of a value that is summed out, in a row
typedef struct Probability {
    Expr *of, *place;
    Loops loops;
    struct Probability *next;
} Probability;

// a sum that each row computes for its density: by name, and in an array for later loops; always: whichever choices the row makes
typedef struct KeptSum {
    Expr *sum;
    Var *local;
    Expr *place;
    bool always;
    struct KeptSum *next;
} KeptSum;

typedef struct Ends {  // of a variable's interval: the same for all elements, or arrays
    double number[2];
    Var *array[2], *slope[2];  // slope: the derivative by each, where they vary
    bool varies;               // with other variables of the block, which come before it in `order`
    // they depend on each other in a circle, or on more than elements of their own: trials beyond them are rejected
    bool unknown;
    // an angle, whose density has period 2 pi: there are no ends, and the coordinate is the angle plus a multiple of 2 pi
    bool is_angle;
} Ends;

// along: the centre reads elements that come before along this index; else NULL
typedef struct Prior {
    const Factor *f;
    Expr *element, *centre, *spread;
    Index *along;
    struct Prior *next;
} Prior;

typedef struct Root {  // of the covariance, or the precision, of vectors: L, lower triangular
    bool precision, varies;
    Expr *matrix;    // whose factor it is, factored at each place; NULL: its elements are those of
    Expr *elements;  // these, which may read
    Expr *fixed;     // the factor of what does not depend on the block, in an array; or NULL
    Var *of_fixed;
    Var *array, *slope;  // slope: the derivative by it
    // of each element, as in whitened.h; noise: by covariance, and then it is the right-hand side
    Var *apart, *noise, *left, *right, *pivot;
} Root;

typedef struct Centring {  // of effects whose prior has a centre and a spread that depend on the block
    Prior *priors;         // of its elements; NULL: its coordinates are its values
    Root *root;            // of vectors; NULL: each element has a spread
    Var *centre, *spread;  // of each element; 0 and 1: no prior names it
    Var *scale;            // spread to the power of the element's share
    Var *slope[2];         // the derivative by centre and spread
} Centring;

typedef struct Tied {  // of a variable whose elements are constrained together
    int nbatch;        // subscripts that count its values; 0 and no slope: elements are not constrained together
    Expr *length;      // coordinates of one value
    Var *slope;        // d log p / dx
    Var *log_slope;    // log |J| of each value
    Var *work;
} Tied;

enum { MOST_PRODUCTS = 6 };  // of one span

typedef struct RowSpan {  // factors whose instances are rows of matrices that are multiplied by matrices of the block
    Expr *n;              // rows
    int nproducts;
    Product *product[MOST_PRODUCTS];
    Total *totals;
    Var *sums;  // of the rows: the log density, then the totals
    struct RowSpan *next;
} RowSpan;

typedef struct Inverse {  // a matrix of which the density needs the inverse, or the log determinant
    Expr *of;
    Var *matrix, *inverse, *log_det;  // log_det: one element
    struct Inverse *next;
} Inverse;

typedef struct HmcBlock {  // a block
    Lower *p;
    const Update *update;
    const char *stem;
    Expr *size;
    Expr **offset;  // of each variable in the open kernel
    Ends *ends;
    int *order;  // of the variables: each after those that its ends read
    Tied *tied;
    Centring *centring;
    // of the coordinates: how far those of effects are standardised, and how far from the next sweep on; NULL: there are none
    Var *shares, *next_shares;
    Moving moving;  // the block, and the series that it enters
    Var **adjoint;  // of each variable of them
    Var *position, *gradient, *density, *machine;
    Var *lp;
    Total *totals, **last_total;
    Pending *pending, **last_pending;
    Probability *probabilities;  // that pending derivatives read
    RowSpan *spans;
    Inverse *inverses;
    Once *once;  // arrays that the density reads, behind the series in `moving`
    int nweights, nnamed;
    Expr **scalars;  // single elements that the density kernel has names for
    const char **names;
    int nscalars, scalars_size, names_size;
} HmcBlock;

// ---- coordinates.c: the coordinates of a block, and where derivatives by its elements are added ----

bool reads_block(const HmcBlock *m, const Expr *e);  // does e read a variable of the block?
bool is_moved(const HmcBlock *m, const Var *v);      // is v one of them?
const char *array_name(const HmcBlock *m, const char *what);  // of an array of the block
int at_block(const HmcBlock *m, const Var *v);       // which one it is
// of a variable that is computed of the block, the array of derivatives by it; else NULL
Var *adjoint_of(const HmcBlock *m, const Var *v);
const Tied *tied_of(const HmcBlock *m, const Var *v);   // what v is, of elements that are constrained together
Expr *coordinates_of(const HmcBlock *m, const Var *v);  // how many coordinates v has
void put_offsets(HmcBlock *m);                          // in each kernel, where the variables begin in the coordinates
// the element of an array over the coordinates that belongs to v[at...]
Expr *coordinate(const HmcBlock *m, Var *array, const Var *v, Expr *const *at);
Expr *of_ref(const HmcBlock *m, Var *array, const Expr *ref);          // the same of an element
Place gradient_place(const HmcBlock *m, const Expr *ref);              // where the derivative by an element is added
Expr *all_elements(const Var *v, Loops *l);                            // all elements of v that exist, as loops; returns the element
Node *each_element(HmcBlock *m, const Expr *element, const Loops *l);  // loops over them
Expr *like(Var *array, const Expr *element);                           // the element of an array that is as large as the variable
bool is_one_element(const Expr *ref);                                  // its subscripts are numbers
// An instance of the plates has this element for its own: each index of the plates is one subscript, and there are no others.
bool is_own(const Expr *ref, const Loops *plates);
// whether e, over the plates of f, has derivatives by the block
bool has_derivatives(const HmcBlock *m, const Factor *f, Expr *e);
// The same, of what is made of no series: what a coordinate is made of must be known, by derivatives too, before the element is.
bool is_simple(const HmcBlock *m, const Factor *f, Expr *e);

// ---- matrices.c ----

// Whether a matrix is symmetric by its expression, whatever the data: then its lower triangle is all there is to know.
bool surely_symmetric(HmcBlock *m, Expr *matrix);
// A matrix of expressions, into an array: the lower triangle, or all of it where it may not be symmetric.
void put_matrix(HmcBlock *m, Var *into, Expr *matrix, bool whole_matrix);
void factor_in_place(HmcBlock *m, Var *array, Expr *matrix);  // its Cholesky factor, into the array

// ---- ends.c: the interval of a variable ----

// Bounds of single elements that are not numbers: within(v[..], lo, hi), a term of a factor's log density.
typedef struct Bound {
    const Factor *f;
    const Expr *term;
    struct Bound *next;
} Bound;

// One of the functions of line.h, written out where the ends are numbers.
typedef enum { LINE_VALUE, LINE_SLOPE, LINE_LOG_SLOPE, LINE_BEND, LINE_INVERSE } LineTransform;

Bound *bounds_of(const HmcBlock *m, const Var *v);           // those of v that some factor names; NULL: none, or none beyond its numbers
bool end_reads(const Bound *b, const Var *v);                // one of the two ends reads v
Expr *finite_end(Expr *end);                                 // the end, 0 where it is a number
Expr *end_of(const Ends *e, int side, const Expr *element);  // of the interval of an element: side 0 is the lower end
bool is_free(const Ends *e);                                 // there are no ends
bool keeps_logs(const Ends *ends, const Expr *element);      // ends at which logarithms of the element are kept (logs.c)
// Of the coordinate q of an element; LINE_INVERSE: of the element.
Expr *line_transform(const Ends *ends, LineTransform what, Expr *q, const Expr *element);
void put_ends_of(HmcBlock *m, int i);                // the ends of all elements of variable i of the block, into their arrays
Expr *with_coordinates(const HmcBlock *m, Expr *e);  // log x as the coordinate of x, where that is what it is

// ---- angles.c ----

bool is_angle(const HmcBlock *m, Var *v);  // v lies between -pi and pi, and the density reads its cosine and sine alone
Expr *wrapped(Expr *q);                    // the angle at a coordinate
Expr *kept_winding(Expr *q, Expr *x);      // the coordinate of x: q, if it is one, within 3 pi

// ---- whitening.c: vectors with a joint normal prior ----

// The prior of a variable that is a vector, or vectors, for each element: a centre, and the whole of the matrix for a spread. NULL: it has
// none.
Prior *vectors_of(const HmcBlock *m, Var *v, Root **root);
void make_root(HmcBlock *m, Root *r, const Var *v);       // its arrays
Expr *element_of_root(const Root *r, Expr *const *at);    // element [j, k] of the factor, as an expression
void put_fixed_roots(HmcBlock *m);                        // factors that do not depend on the block are made once a sweep
void put_root(HmcBlock *m, const Root *r);                // the factor, of what has been placed
void put_whitened(HmcBlock *m, int i, Transformed part);  // a routine of whitened.h, for each vector of variable i
void put_share_of_vectors(HmcBlock *m, int b);            // how far its vectors are standardised, when shares have changed
void put_vectors_to(HmcBlock *m, int i);                  // from the vectors to their coordinates

// ---- centring.c: effects ----

// The priors of a variable's elements; NULL: some of them has none that serves, or they need none.
Prior *priors_of(const HmcBlock *m, Var *v, Root **root);
bool prior_reads(const Prior *r, const Var *v);          // a centre or a spread of the list reads v
const Prior *recursion_of(const Prior *r);               // the one whose centre reads elements that come before; or NULL
void put_centrings(HmcBlock *m);                         // the arrays of all variables that have some
Expr *share_of(const HmcBlock *m, const Expr *element);  // how far an element is standardised
// Centres, spreads and scales of all elements of variable i; of a recursion the centres as well, if its elements are known.
void put_centring(HmcBlock *m, int i, bool known);
// The element at its coordinate.
Expr *at_coordinate(const HmcBlock *m, const Centring *c, const Expr *x, Expr *share);
// its coordinate: the one that it has, if that gives its value
Expr *coordinate_at(const HmcBlock *m, const Centring *c, Expr *x);
void put_recursion(HmcBlock *m, int i);         // each element from its coordinate and those before it
void put_recursion_slopes(HmcBlock *m, int i);  // each element's derivative goes on to those before it

// ---- tied.c: elements that are constrained together ----

Tied tied_new(Lower *p, const Var *v);                      // of a variable; empty, if its elements are not constrained together
void put_transform(HmcBlock *m, Var *v, Transformed part);  // a routine of constrained_line.h, for each value of v
void put_tied_chain(HmcBlock *m, Var *v);                   // the chain rule, value by value

// ---- place.c: coordinates and variables ----

// What coordinates are made of: arrays, the order of the variables, and what is found once a sweep.
void put_ends(HmcBlock *m);
void put_enter(HmcBlock *m);     // the kernel from variables to coordinates, launched
Kernel *put_place(HmcBlock *m);  // the kernel from coordinates to variables, and what is computed of these

// ---- totals.c: what loops add up ----

enum { MOST_TOTALS = GM_MOST_TOTALS - 1 };  // that one loop adds up beside the log density

Total *total_of(Total *list, const Expr *ref);  // the local that an element has; NULL: none
// in the open kernel: a local for an element that is named by numbers; none for others
void declare_total(HmcBlock *m, const char *stem, Expr *ref, Expr *start);
// An array with a place for each instance of the plates, if that is a box; else NULL.
Expr *row_place(HmcBlock *m, const Loops *plates, ArrayRole role, const char *name);
Expr *weight_place(HmcBlock *m, const Loops *plates);  // the same, for the weight of each
void add_pending(HmcBlock *m, const Pending *w);       // a copy is added to those of the block

// ---- outputs.c: predictors of several outputs ----

// What a factor becomes: its terms that depend on the block, as a closed form where its sum over rows leaves the sweep.
typedef struct Prepared {
    Factor f;
    Derivative *terms;
    RowSpan *span;  // its rows; NULL: it is summed by itself
    Index *row;     // of its plates
    struct Prepared *next;
} Prepared;

// Predictors with several outputs become elements of products. False: there are none, or too many.
bool split_products(HmcBlock *m, Prepared *r);
const Product *product_with(const RowSpan *s, const Var *eta);  // the product whose predictors these are; or NULL
// the first factor of the list whose derivatives read the predictors
const Prepared *first_reader(const Prepared *list, const Product *of);
// A term that each row has for each of its predictors: the weights begin with it. NULL: they begin with 0.
const Derivative *whole_term(const Prepared *r, const Product *of);
void put_no_weight(Lower *p, const Product *of, const Index *row);  // the weights of a row are 0
// The weight of a predictor is set to, or grows by, the derivative of one term.
void put_weight(HmcBlock *m, const Product *of, const Derivative *d, Expr *weight, int nplates, AssignOp op);
// A term that is beside a predictor wherever this occurs gets the weights of the rows; the terms that this covers are added to `covered`.
void put_beside(HmcBlock *m, const Prepared *r, Product *of, const Derivative **covered, int *ncovered);
bool is_covered(const Derivative *d, const Derivative *const *covered, int n);  // d is one of the n

// ---- prepare.c ----

Prepared *prepare_all(HmcBlock *m);  // all factors that depend on the block

// ---- kept.c: sums that rows keep ----

// anywhere: in a weight, too, it is a sum that terms are compared with; later: for loops behind this one.
typedef struct Keeping {
    HmcBlock *m;
    const Prepared *r;
    KeptSum *first;
    bool anywhere, later, chosen;
    const Loops *loops;
} Keeping;

Look test_sum(const Expr *e, void *with);  // for ex_find: a reduction
// Names, in the open loop, for the sums that derivatives of a factor read.
Keeping name_sums(HmcBlock *m, const Prepared *r, const Derivative *const *covered, int ncovered);
Expr *in_this_loop(Keeping *k, Expr *e);    // e, with these names
Expr *in_later_loops(Keeping *k, Expr *e);  // e, with the arrays that keep the sums
// e, with arrays in the place of probabilities of the terms of such sums
Expr *in_places(Keeping *k, Expr *e, const Loops *loops);
void put_probabilities(HmcBlock *m);  // fills these

// ---- pending.c: derivatives by elements that instances share ----

bool row_sums_of(HmcBlock *m, Pending *w);        // X'w by a pass over the rows of X; false: the derivative is not of that form
void put_pending(HmcBlock *m, const Pending *w);  // one derivative, as a sum over its loops
void put_all_pending(HmcBlock *m);                // all that are left, those together that share a sum

// ---- factor.c ----

// the loop over the instances of a factor; first: of the list of all
void put_factor(HmcBlock *m, const Prepared *first, const Prepared *r);

// ---- adjoints.c: derivatives by what is computed of the block ----

// What elements that are computed give to the block, and to others that they are made of. Each statement is a factor; terms by `but` are
// left out; site: NULL, or the statements.
void put_sums(HmcBlock *m, const char *stem, int n, const Factor *statement, const Site *const *site, const Series *but);
void put_series_slopes(HmcBlock *m, const Series *s);  // of a series
void put_once(HmcBlock *m, const Once *o);             // of all arrays of the list, the last first
void put_factored(HmcBlock *m, const Factored *of);    // of a Cholesky factor
void put_inverse(HmcBlock *m, const Inverse *of);      // of an inverse and a log determinant

// ---- spans.c ----

// A kernel over the rows of products, and its launch, for the factors of the list that have this span.
void put_span(HmcBlock *m, RowSpan *s, const Prepared *first);
// What the rows of all spans have added up for an element that is named by numbers; NULL: for the log density.
Expr *from_spans(const HmcBlock *m, const Expr *ref);
void put_span_gradient(HmcBlock *m, const RowSpan *s);  // what the coefficients of its products get

// ---- chain.c ----

// In the open kernel, from the last variable to the first; what log |dx/dq| adds goes to the log density.
bool has_jacobian(const HmcBlock *m);  // whether some coordinate is not the unknown itself
void put_chain_rule(HmcBlock *m);

// ---- log_density.c ----

void put_log_density(HmcBlock *m, Prepared *first);  // the kernels of the log density and its gradient, launched
void put_jacobian(HmcBlock *m);                      // those of what the transform adds to it

#endif
