// lower.h -- the files that make kernels of updates, among themselves.
#ifndef GMC_LOWER_H
#define GMC_LOWER_H
#include "../front/front.h"
#include "kernel.h"

typedef struct RowDot {  // sum(j, matrix[row, j]*vector[j]), the linear predictor of a row
    Var *matrix, *vector;
    Expr *sum;  // as written in the conditional
} RowDot;

typedef struct RowSum {    // sum(row, weight*matrix[row, j]) for each j: part of the precision or the shift of a joint draw
    const Update *update;  // that needs it
    Var *matrix, *vector;  // the element is vector[j]
    Expr *other;           // precision between vector[j] and this element; NULL: shift
    Index *row;
    Expr *weight;
    Var *out;
    const Update *fused;  // the draw whose row pass adds it up, or NULL
    Expr *square;         // of row `row`: what the scale move of the joint draw sums over rows, if the row pass does; or NULL
    Var *scale;           // where that goes
    struct RowSum *next;
} RowSum;

typedef struct RowGram {  // sum(row, weight*matrix[row, j]*matrix[row, k]): precision of vector[j] and vector[k]
    const Update *update;
    Var *matrix, *vector;
    Index *row;
    Expr *weight;
    Var *out;
    struct RowGram *next;
} RowGram;

typedef struct RestOfRows {  // an array of a value for each row (unchanged.c)
    Var *array;
    const struct Kernel *kernel;  // that filled it last
} RestOfRows;

typedef struct Sorted {  // data of rows in the order of their groups
    const Order *order;
    const Var *of;
    Var *copy;
    struct Sorted *next;
} Sorted;

typedef struct TermList {
    const BlockTerm *term;
    struct TermList *next;
} TermList;

struct Lower {
    const Graph *g;
    Program *out;
    Fresh names;  // of work arrays and statistics
    Sums statistics;
    Kernels *list;        // that kernels are added to
    Kernel *open;         // kernel being made
    Map kernel_names;     // of those that there are
    Map rows_of;          // a factor -> the rows of a joint normal that may be few
    Node **at;            // its nodes are added here
    const char *comment;  // lines above the next kernel
    ProgramPart part;     // of the program that the next kernels are in, but those of HMC
    Map cited;            // rules of augmentations whose reference stands above an earlier kernel
    bool says_law;        // the lines above the next kernel begin with a law
    Launches *launches;   // that launches are added to
    When when;            // of the launches that are added
    const Rows *when_rows;
    const Rows *few_only;  // what is looked at runs with fewer rows than coefficients only
    int nclasses, classes_size;
    Classes **classes;
    int norders;
    Order **order;
    Sorted *sorted;
    RowSum *row_sums;
    RowGram *row_grams;
    TermList *by_rows;        // terms of joint draws that a pass over rows sums
    const Kernel *series;     // computes all series that are no messages; NULL: there are none
    const Kernel **messages;  // along chains: the kernel that computes them, by the number of the variable
    int npredictors;
    Predictor **predictor;
    PredictorUse *uses;
    int nmade;  // arrays of coefficients
    int nrests, rests_size;
    RestOfRows *rest;                                // of rows, that trials leave as it is
    const Update *update;                            // whose kernels are being made, or NULL
    Kernel *definitions, *check, *sums, *responses;  // of setup, or NULL
    Launches grams;
    Launches patterns;     // of sparse joint normals
    Launches row_lists;    // which joint normals are row-listed
    Launches standing_in;  // sums of data that only updates in place of these read
    int stands_in;         // of the launches that are added
};

// ---- comments.c: for who reads the program ----

const char *words(Lower *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *math(Lower *p, const Expr *e);           // in the language's notation
const char *cut_line(Lower *p, const char *line);    // to the width of a comment
const char *line_of(Lower *p, Span s);               // file.gm:12
const char *loops_over(Lower *p, const Loops *l);    // "  over i, j"
const char *factor_text(Lower *p, const Factor *f);  // theta[j] ~ normal(mu, tau)
void comment_update(Lower *p, const Update *s);      // the law that the next kernel draws from, in textbook form: lines above it
void note(Lower *p, const char *format, ...) __attribute__((format(printf, 2, 3)));  // a line above the next kernel

// ---- put.c: a kernel in the making ----

// a new one, of each chain, whose name begins so
Var *work_array(Lower *p, ArrayRole role, const char *name, int rank, Expr *const *dim);
Var *copy_array(Lower *p, const Var *of, const char *name);  // of data or a definition: with its size, type and home
const char *number_of(const Lower *p, const Var *v);         // real or wide
const char *kernel_name(Lower *p, const char *name);         // the same, with a number where another kernel has it
// what arrays and kernels of unknowns that are drawn together are called by: mu_tau_theta; of many or long names block_1
const char *block_name(Lower *p, Var *const *var, int n);
Kernel *open_kernel(Lower *p, KernelKind kind, const char *name, const char *number);  // number: type of its locals
bool close_kernel(Lower *p);                                                           // all passes; false: it is empty and was left out
void each_kernel(Lower *p, void (*pass)(Lower *, Kernel *));                           // of setup, then of the sweep
Node *put(Lower *p, NodeKind kind);                                                    // a node where the open kernel goes on
Node *enter(Lower *p, NodeKind kind);                                                  // what is put now is in its body
Node *enter_loop(Lower *p, Sharing how, Index *i);                                     // the same, over one index
void leave(Lower *p, Node *n);                                                         // what is put now comes after it
// A local of the open kernel; key: the expression that has its name, or NULL.
Node *put_let(Lower *p, Expr *key, Var *local, Expr *value, const char *type);
Place place_local(Var *v);
Place place_element(Expr *ref);
Node *put_assign(Lower *p, AssignOp op, Place at, Expr *value);  // sets the place, adds to it, ...
Node *put_ratio(Lower *p, Expr *value);  // for --check: the log ratio of densities is the value; NULL: it is not checked
// Loops around a statement with n subscripts, `target`, each up to its extent.
Node *enter_nest(Lower *p, NodeKind kind, const Loops *l, int n, Expr *const *target, Expr *const *extent);
Var *local_integer(Lower *p, const char *name);  // a local variable that is a whole number
// the local x from this routine of one argument or two, by random numbers of an element of v; whatever it gives is taken
Node *put_random(Lower *p, Var *v, Expr *element, Var *x, const char *routine, Expr *one, Expr *other);
Node *put_fill(Lower *p, Var *array, Count count, bool waits);  // all of the array is 0; waits: lanes wait for it
void put_barrier(Lower *p);                                     // where a team shares the open kernel
void put_skip(Lower *p, Expr *condition);                       // goes on only where it is true; NULL: always

// ---- loops.c ----

Expr *chosen_where(Expr *e);  // where e is not 0 because of a choice that multiplies it; NULL: there is none
// less the iterations that add 0 to an element that may not exist
Loops loops_where_chosen(const Loops *l, Expr *value, int n, Expr *const *target);
bool free_index(const Expr *e);                 // it has the index of a loop around it
Expr *instances(const Loops *p);                // how many there are of plates from 1, whose ranges do not depend on each other
Count iterations_of_loops(const Loops *l);      // as far as that is a product
void note_count(Lower *p, Kernel *k, Count c);  // a loop of the kernel that a team shares has so many iterations
Index *index_of_key(Lower *p, const char *called, Expr *extent, Index *const *before, int n);  // in place of a key of a statistic

// ---- launch.c: launches in the making ----

Launch *launch(Lower *p, LaunchKind kind, const Kernel *k);      // added to the list that is open
void launch_team(Lower *p, const Kernel *k);                     // with the iterations of its loops
void launch_kernel(Lower *p, Launches *list, const Kernel *k);   // of a team, or by one lane: as a launch of this list
void launch_shared(Lower *p, LaunchKind kind, const Kernel *k);  // of what all chains share; nothing where there is no kernel
void with_extent(Launch *l, Expr *e);                            // an argument: a number of the data
void with_count(Launch *l, Count c);                             // elements
void with_place(Launch *l, const Var *v);                        // d.X
void with_name(Launch *l, const Var *v);                         // X
void with_stream(Launch *l, const Var *v);                       // whose random numbers it takes
void with_field(Launch *l, const Var *v);                        // the number of a field of Data
void with_string(Launch *l, const char *s);                      // in quotes
void with_function(Launch *l, const char *name);                 // a name of the program or of the runtime
void with_number(Launch *l, double v);                           // as it is
void with_product(Launch *l, const Product *r);                  // its arrays
void as_setting(Launch *l, const char *name);                    // the last argument has a name

// ---- logs.c ----

void plan_logs(Lower *p);                                                   // arrays for all unknowns that need them
void put_logs(Lower *p, Expr *element, Expr *log, Expr *log1m, Store how);  // into them, beside the element

// ---- textbook.c: parameters of the law in place of natural ones ----

typedef struct Parameter {
    const char *name;
    Var *local;
    Expr *value;   // in locals of natural parameters, and of parameters before it
    bool is_read;  // by the draw, or by a parameter that is
    int natural;   // it is `times` this one, and `more`: sums go into it; -1: it follows from others
    Expr *times, *more;
    Expr *closed;  // what the kernel computes for it, without a loop; or NULL
} Parameter;

typedef struct Textbook {
    const Ast *draw;     // a call of the stdlib; NULL: the draw is by natural parameters
    const char *number;  // type of the kernel's locals
    int n, nnatural;
    Parameter parameter[MAX_NATURAL];
    const char *natural_name[MAX_NATURAL];
    Var *natural[MAX_NATURAL];  // their locals
    Expr *closed[MAX_NATURAL];  // what stands for one; NULL: its local
    bool wide[MAX_NATURAL];     // it is a sum over loops
} Textbook;

Textbook textbook_of(Lower *p, const Update *s, const Kernel *k);
// The local that sums into natural parameter k go into, and what they are multiplied by; it begins with the closed ones.
Var *put_textbook(Lower *p, Textbook *t, int k, Expr *closed, bool grows, Expr **times);
void put_textbook_later(Lower *p, const Textbook *t);             // after all sums: what follows from them
int textbook_arguments(const Textbook *t, DrawArg *args, int n);  // of the draw, from place n on; how many there are then

// ---- of the complete program, for emission ----

void form_kernel(Lower *p, Kernel *k);  // forms.c
void share_draws(Lower *p);             // alike.c
void find_uses(Lower *p);               // uses.c
void find_unread(Lower *p);             // unread.c
void find_rations(Lower *p);            // prices.c
void find_fields(Lower *p);             // fields.c
void find_starts(Lower *p);             // starts.c
void find_lesson(Lower *p);             // lesson.c
void find_prices(Lower *p);             // prices.c
void price_selections(Lower *p);        // prices.c

// ---- products.c ----

bool is_index(const Expr *e, const Index *i);          // i and nothing else
bool whole_range(const Index *i, const Expr *extent);  // from 1 to the extent
bool is_matrix(const Program *p, const Var *v);        // of data, or a definition of data, that a GPU may keep in single precision
// Whether e = sum(j, matrix[row, j]*coefficients[j, column]), all of j; column is NULL for a vector.
bool product_of(const Lower *p, const Expr *e, Product *out, Expr **row, Expr **column);
bool same_product(const Product *a, const Product *b);  // of the same matrix and coefficients

// ---- once.c ----

typedef struct Once {  // var[index..] = value over plates: before the loops that read it
    Var *var;
    Expr *original, *value;  // value: with elements of arrays that come before this one in the list
    Loops plates;
    struct Once *next;
} Once;

// e over plates; the list grows by arrays that it reads then
Expr *compute_once(Lower *p, const Moving *moving, const char *stem, Once **list, Expr *e, const Loops *plates);

// ---- predictors.c: for kernels other than row passes ----

const Predictor *predictor_of(Lower *p, const Product *r);  // one for all kernels
void make_room(Lower *p, Product *r, bool weights);         // its arrays
// the array element that is e, if it is a predictor that the kernel may read; else NULL
Expr *predicted(Lower *p, const Kernel *k, Expr *e);
bool reads_predictor(const Lower *p, const Kernel *k);                // of the vector that the kernel follows
Node *follow(Lower *p, const Kernel *k, Expr *element, Var *change);  // after an element of it has changed
void refresh_predictors(Lower *p, Launches *l);                       // row passes before the kernels that read what they fill
void lower_predictors(Lower *p);                                      // the kernels that fill them

// ---- rows.c: row passes ----

const Rows *rows_of_factor(const Lower *p, const Factor *f);  // of the joint draw that may take these rows one by one, or NULL
void list_rows(Lower *p);                                     // for it
void plan_rows(Lower *p);                                     // which sums over rows are made by row passes
void reads_rows(Lower *p, const Expr *columns);               // a launch reads rows of so many columns
// the draw of a plate of rows that reads a linear predictor of dense rows
bool row_dot(const Lower *p, const Update *s, RowDot *dot);
bool categories_dot(const Program *out, const Update *s, RowDot *dot);  // the same of coefficients drawn category by category
const RowSum *fused_sum(const Lower *p, const Update *draw);            // the first that the row pass of a draw makes; or NULL
// whose row pass makes the sum of squares of a scale move, or NULL
const RowSum *fused_squares(const Lower *p, const Update *joint);
bool in_row_pass(const Lower *p, const BlockTerm *t);  // a row pass makes the sum of this term
// value = times * matrix[row, column], ref = vector[column], all of both; times may depend on the column
bool row_sum_of(const Lower *p, const Expr *ref, Expr *value, const Index *row, const Index *column, Var **matrix, Expr **times);
// out[j] = sum(row, weights[row]*matrix[row, j])
void launch_row_sums(Lower *p, const Var *matrix, const Var *weights, Var *out);
void update_row_sums(Lower *p, const Update *s);  // passes that no draw makes on its way

// ---- weights.c ----

// tables whose product is the density of a value up to a factor; NULL: there are none
ValueWeights *weights_of_values(Lower *p, const Kernel *k, const Node *weigh, int nrows, Index *const *row);

// ---- distances.c: rows that are classified by distances ----

// of the node that weighs values, `weighed` being the value, for the row i; NULL: no value is weighed
void find_distances(Lower *p, const Kernel *kernel, Node *n, const Expr *weighed, const Index *i);

// ---- sorted.c: data of rows in the order of their groups ----

// a loop over rows of `group` reads data in their order, by their place; false: it reads something else of them
bool sort_rows(Lower *p, const Kernel *k, const Order *o, Index *row, Index *group, Node *body, Index **place);
// the same of a loop over all rows, in an order that there is, if elements are read by its groups
bool sort_all_rows(Lower *p, const Kernel *k, Index *row, Node *body, Index **place);
bool lower_sorted(Lower *p);  // after share; true: responses are copied, too

// ---- groups.c, share.c: which lanes take which iterations ----

// rows in the order of their groups, made once for all
const Order *order_rows(Lower *p, Index *row, Expr *key, Expr *guard, Expr *extent);
void share_loops(Lower *p, Kernel *k);  // of a kernel, among lanes

// ---- outside.c ----

void name_outside(Lower *p, Kernel *k);  // of all that the loops of a kernel do not change

// ---- elements.c: what updates that draw element by element have in common ----

// how the elements of an update are shared out
typedef enum { BY_ELEMENT, BY_MISSING, BY_ROW, BY_CREW, BY_TEAM, BY_CLASSES, BY_GROUPS, BY_ONE } Shared;
typedef struct Opened {
    int n;
    Node *loop[MAX_RANK + 1], *test;
} Opened;  // the loops over them

Node *series_again(const Graph *g, const Conditional *c);  // computes the series that an element enters, after it has changed
KeptLogs kept_logs(const Conditional *c);
Shared shared_how(const Update *s, const RowDot *dot);
bool any_loops(const Part *q);  // one of the parts is a sum for each element
Kernel *open_elements_kernel(Lower *p, Shared how, const Update *s, const char *name);
// the vector whose elements a team draws one after the other, if it keeps predictors of it up to date; or NULL
const Var *followed(const Conditional *c, Shared how);
// loops over the elements that an update draws, missing ones or all, around what is put next
Opened enter_elements(Lower *p, const Update *s, Shared how);
void leave_elements(Lower *p, Opened *o);                             // what is put now comes after them
Node *enter_opened(Lower *p, Opened *o, Sharing how, const Var *of);  // one more loop
Expr *exists_whole(const Var *v);                                     // the condition under which v has elements; NULL: always
void put_exists(Lower *p, Opened *o, Shared how, Expr *condition);    // the rest is for elements that exist
Store store_of(Shared how, const Conditional *c);                     // how the element is stored
// the same of another element of its array
Node *put_store_at(Lower *p, Shared how, const Conditional *c, Expr *element, Var *x);
Node *put_store(Lower *p, Shared how, const Conditional *c, Var *x);  // the element is x: by one lane of a team
Node *enter_part(Lower *p, const Loops *l);                           // sums over the loops of a part, into locals
// a part as an expression of the element: its sum leaves the sweep; NULL: it cannot
Expr *hoisted_part(Lower *p, const Conditional *c, const Part *q);
Expr *would_become(Lower *p, const Conditional *c, const Part *q);  // the same, and no statistics are made for it
bool leaves_sweep(Lower *p, const Conditional *c, const Part *q);
// with as many lanes as the elements need
void launch_elements(Lower *p, const Update *s, Shared how, const RowDot *dot, const Kernel *k);

// ---- unchanged.c ----

// the density of a row, with what trials leave as it is in arrays, which are filled in the open kernel
Expr *without_rest(Lower *p, const Conditional *c, const Loops *l, Expr *density);

// ---- collapsed.c: indicators with their weights integrated out ----

// Places that lose 1 before an element is drawn and get it after.
typedef struct CountChange {
    Expr *place, *log_place, *log_value, *guard;
} CountChange;  // and the log of it
typedef struct CountChanges {
    int n, size;
    CountChange *change;
} CountChanges;
Conditional *with_counts(Lower *p, const Update *s, CountChanges *changes);  // the conditional of the update, with weights as counts
void put_count_changes(Lower *p, const CountChanges *changes, double by);    // adds `by` to all places

// ---- scattered.c: sums for all elements, before they are drawn ----

typedef struct PartList {
    int n, size;
    const Part **part;
    bool *done;
} PartList;

void add_part(Lower *p, PartList *l, const Part *q);  // at its end
// into the array of each natural parameter that has one
void lower_scattered(Lower *p, const Conditional *c, const PartList *l, Var *const *array, const char *name);

// ---- density.c: the density of an element ----

typedef struct DensityPiece {
    Loops loops;  // those that are summed for each value
    Expr *value;  // or, of what was summed once, the statistic that it multiplies
    Var *once;
    Expr *near, *far;  // of what was summed once, where that is valid, or NULL; and what is summed for each value elsewhere
    bool guarded;      // counted 0 times (no rows, choices, conditions) it is 0, even where it is no number: log(x) for x <= 0
    struct DensityPiece *next;
} DensityPiece;

// What the density of an element is made of; sums that no value changes are made in the open kernel. all: with what does not depend on the
// element; walks: some of all values are tried; tried: by all lanes of a team.
DensityPiece *prepare_density(Lower *p, const Conditional *c, bool all, bool walks, bool tried);
// adds it to a local; weighed: of a value among others
void put_density(Lower *p, const DensityPiece *d, Var *lp, bool weighed);
Node *enter_walk(Lower *p, const Update *s, NodeKind kind, Var *width);  // the node that draws an element by its density

// ---- entries.c: precision and shift of a joint normal ----

typedef struct BlockPlace {
    const Update *update;
    Var *J, *h, *E, *D, *k;  // precision and shift of the dense part; coupling, diagonal precision and shift of the arrow's
    // with few rows: precision apart from them, rows and targets; diagonal: all of the precision, of a block that has no more
    Var *diagonal, *rows, *y;
    Var *row;       // with few rows: its dimensions are those of the plates of the rows
    Var *entries;   // with a sparse precision: that, of which the runtime keeps the entries that there are; else NULL
    bool few;       // this route is being made, or there is a diagonal alone
    Var *n;         // the local that is the size of the dense part
    Expr **offset;  // where each variable begins in it; NULL: at 0
} BlockPlace;

Sub inner_sub(const BlockPlace *b, Expr *ref);           // an element's place in its batch of the block
Place place_at(Var *array, int n, Sub a, Sub b, Sub c);  // of up to three subscripts
// One entry, in a pair of places off the diagonal if `mirrored`, of which `side` 1 and 2 are the first and its mirror image alone.
void put_entry(Lower *p, const BlockPlace *b, const BlockTerm *t, bool mirrored, int side, Expr *value);
// a sum over the loops, into places with these subscripts
Node *enter_entries(Lower *p, const Loops *l, int n, Expr *const *target, Expr *const *extent);
void accumulate(Lower *p, const BlockPlace *b, const BlockTerm *t);  // adds a term to its places

// Precision and shift of variables first, ... of a block, of which `offset` is where each begins. border_place: in the open kernel; J
// NULL: there are none.
typedef struct BorderPlace {
    const Update *update;
    Var *J, *h, *n;
    Expr **offset;
} BorderPlace;
BorderPlace border_place(Lower *p, const Update *s, int first, Var *J, Var *h, Expr *size, Expr *const *offset);
void border_entry(Lower *p, const BorderPlace *b, const BlockTerm *t);  // adds a term between them

// ---- the updates: a file for each kind ----

void update_exact(Lower *p, const Update *s);                   // exact.c
void update_own(Lower *p, const Update *s);                     // exact.c
void update_density(Lower *p, const Update *s);                 // density.c
void fill_window(Lower *p, const Window *w);                    // before a group move that sums counts over windows, and
void draw_window(Lower *p, const Window *w);                    // after its number is drawn
void update_constrained(Lower *p, const Update *s);             // constrained.c
void update_elliptical(Lower *p, const Update *s);              // elliptical.c
void update_white(Lower *p, const Update *s);                   // whiten.c
void update_pair(Lower *p, const Update *s);                    // pair.c
void update_array(Lower *p, const Update *s);                   // array.c
void update_band(Lower *p, const Update *s);                    // band.c
void update_gaussian(Lower *p, const Update *s);                // joint.c
void update_states(Lower *p, const Update *s);                  // states.c
void update_categories(Lower *p, const Update *s);              // categories.c
void update_nuts(Lower *p, const Update *s, UpdateCode *code);  // hmc/nuts.c
void before_group_move(Lower *p, const Update *s);              // group_moves.c: what is drawn starts from the identity
void along_group_move(Lower *p, const Update *s);               // and is then applied to the others
// scales.c: what is drawn with a joint normal integrated out, once the launches of that are there: from *own on
void lower_scales(Lower *p, const Update *s, UpdateCode *code, Launch **own);
// proposals.c: around the launches of the update, once these are there
void lower_proposal(Lower *p, const Update *s, UpdateCode *code);

// ---- sites.c: what one statement computes or draws ----

// a draw between two ends looks for its value: by weights of integers, or by a distribution function, the arguments after the ends
bool is_searched(const Site *t);

void put_element(Lower *p, const Site *t);      // one element
const Site *put_site(Lower *p, const Site *t);  // in its loops, and those after it that share them; which is the next

// ---- series.c: elements that depend on each other, one after the other ----

void lower_odes(Lower *p, bool lets);          // functions of all solutions: lets, those of data
void put_series(Lower *p, const Series *s);    // the loops that compute one
bool lower_series(Lower *p);                   // functions that compute the series of the sweep; false: there are none
void launch_messages(Lower *p, const Var *m);  // what computes them, chain by chain where there are several

// ---- definitions.c ----

bool site_needs_array(const Var *v);     // some statement of v computes a matrix within an expression
void put_sites(Lower *p, const Var *v);  // all statements of v
// of a kind, each after what it waits for
void put_in_order(Lower *p, bool (*kind)(const Var *), bool (*test)(const Var *, void *), bool titles, bool holes);

// ---- what surrounds the sweep: setup.c, keyed.c, orders.c, log_joint.c, derive.c ----

void put_sum(Lower *p, const Sum *s);  // adds up a statistic, in the open kernel
void lower_setup(Lower *p);            // the kernels that run once
void lower_keyed(Lower *p);            // statistics by what the sweep draws, and their launches
// A sum as elements of a statistic by keys that the sweep draws; false: it is none.
bool hoisted_by_key(Lower *p, const Loops *l, int n, Expr *const *target, Expr *const *extent, Expr *value, Loops *places, Expr **at,
                    Expr **out);
void lower_orders(Lower *p);     // after share
void lower_log_joint(Lower *p);  // its kernels
void lower_priors(Lower *p);     // the log prior, term by term
void lower_observed(Lower *p);   // log-likelihoods and replicates
void lower_forward(Lower *p);    // draws without data
void lower_derive(Lower *p);     // of what the draws hold besides unknowns
#endif
