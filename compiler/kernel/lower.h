// lower.h -- the files that make kernels of steps, among themselves.
#ifndef GMC_LOWER_H
#define GMC_LOWER_H
#include "../front/front.h"
#include "kernel.h"

typedef struct RowDot {          // sum(j, matrix[row, j]*vector[j]), the linear predictor of a row
    Var  *matrix, *vector;
    Expr *sum;                   // as it stands in the conditional
} RowDot;

typedef struct RowSum {          // sum(row, weight*matrix[row, j]) for each j: part of the precision or the shift of a joint draw
    const Step *step;            // that needs it
    Var   *matrix, *vector;      // the element is vector[j]
    Expr  *other;                // precision between vector[j] and this element; NULL: shift
    Index *row;
    Expr  *weight;
    Var   *out;
    const Step *fused;           // the draw whose row pass adds it up, or NULL
    Expr  *square;               // of row `row`: what the scale move of the joint draw sums over rows, if the row pass does; or NULL
    Var   *scale;                // where that goes
    struct RowSum *next;
} RowSum;

typedef struct RowGram {         // sum(row, weight*matrix[row, j]*matrix[row, k]): precision of vector[j] and vector[k]
    const Step *step;
    Var   *matrix, *vector;
    Index *row;
    Expr  *weight;
    Var   *out;
    struct RowGram *next;
} RowGram;

typedef struct RestOfRows {      // an array of a value for each row (trials.c)
    Var *array;
    const struct Kernel *kernel; // that filled it last
} RestOfRows;

typedef struct Sorted {          // data of rows in the order of their groups
    const Order *order;
    const Var *of;
    Var   *copy;
    struct Sorted *next;
} Sorted;

typedef struct TermList { const BlockTerm *term; struct TermList *next; } TermList;

struct Lower {
    const Graph *g;
    Program   *out;
    Fresh      names;            // of work arrays and statistics
    Sums       statistics;
    Kernels   *list;             // that kernels are added to
    Kernel    *open;             // kernel being made
    Map        kernel_names;     // of those that there are
    Map        rows_of;          // a factor -> the rows of a joint normal that may be few
    Node     **at;               // its nodes are added here
    const char *comment;         // lines above the next kernel
    Launches  *launches;         // that launches are added to
    When       when;             // of the launches that are added
    const Rows *when_rows;
    const Rows *few_only;        // what is looked at runs with fewer rows than coefficients only
    int        nclasses, classes_size;
    Classes  **classes;
    int        norders;
    Order    **order;
    Sorted    *sorted;
    RowSum    *row_sums;
    RowGram   *row_grams;
    TermList  *by_rows;          // terms of joint draws that a pass over rows sums
    const Kernel *series;                // computes all series that are no messages; NULL: there are none
    const Kernel **messages;             // along chains: the kernel that computes them, by the number of the variable
    int        npredictors;
    Predictor **predictor;
    PredictorUse *uses;
    int        nmade;            // arrays of coefficients
    int        nrests, rests_size;
    RestOfRows *rest;            // of rows, that trials leave as it is
    const Step *step;            // whose kernels are being made, or NULL
    Kernel    *definitions, *check, *sums, *responses;     // of setup, or NULL
    Launches   grams;
    Launches   patterns;         // of sparse joint normals
    Launches   told;             // whether rows of joint normals are told one by one
    Launches   standing_in;      // sums of data that only what stands in for these reads
    int        stands_in;        // of the launches that are added
};

// ---- lower.c ----

// collapsed.c: places that lose 1 before an element is drawn and get it after
typedef struct Move { Expr *place, *log_place, *log_value, *guard; } Move;      // and the log of it
typedef struct Moves { int n, size; Move *move; } Moves;
Conditional *with_counts(Lower *p, const Step *s, Moves *moves);
void        put_moves(Lower *p, const Moves *moves, double by);

Var        *work_array(Lower *p, ArrayRole role, const char *name, int rank, Expr *const *dim);
Var        *copy_array(Lower *p, const Var *of, const char *name);   // of data or a definition: with its size, type and home
const char *words(Lower *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *math(Lower *p, const Expr *e);                           // in the language's notation
const char *cut_line(Lower *p, const char *line);                    // to the width of a comment
const char *line_of(Lower *p, Span s);                               // file.gm:12
const char *loops_over(Lower *p, const Loops *l);                    // "  over i, j"
void        comment_step(Lower *p, const Step *s);                   // the law that the next kernel draws from, in textbook form: lines above it
void        note(Lower *p, const char *format, ...) __attribute__((format(printf, 2, 3)));    // a line above the next kernel
const char *kernel_name(Lower *p, const char *name);
Kernel     *open_kernel(Lower *p, KernelKind kind, const char *name, const char *number);     // number: type of its locals
bool        close_kernel(Lower *p);                                  // all passes; false: it is empty and was left out
Node       *put(Lower *p, NodeKind kind);
Node       *enter(Lower *p, NodeKind kind);                          // what is put now is in its body
void        leave(Lower *p, Node *n);
Node       *put_let(Lower *p, Expr *key, Var *local, Expr *value, const char *type);
Node       *put_update(Lower *p, UpdateOp op, Place at, Expr *value);
Node       *enter_nest(Lower *p, NodeKind kind, const Loops *l, int n, Expr *const *target, Expr *const *extent);
Node       *put_fill(Lower *p, Var *array, Count count, bool waits);
Place       place_local(Var *v);
Place       place_element(Expr *ref);
int         missing_field(const Lower *p, const Var *v);              // its number among the fields of Data
Expr       *chosen_where(Expr *e);                                   // where e is not 0 because of a choice that multiplies it; NULL: nothing is said
const char *number_of(const Lower *p, const Var *v);                 // real or wide
void        plan_logs(Lower *p);
void        put_logs(Lower *p, Expr *element, Expr *log, Expr *log1m, Store how);
Loops       loops_of(const Plates *p);
Loops       loops_where_chosen(const Loops *l, Expr *value, int n, Expr *const *target);     // without the turns that add 0 to an element that may not exist

Launch *launch(Lower *p, LaunchKind kind, const Kernel *k);
void    launch_team(Lower *p, const Kernel *k);                      // with the turns of its loops
void launch_messages(Lower *p, const Var *m);           // what computes them, chain by chain where there are several
void    with_extent(Launch *l, Expr *e);
void    with_count(Launch *l, Count c);
void    with_place(Launch *l, const Var *v);                         // d.X
void    with_name(Launch *l, const Var *v);                          // X
void    with_stream(Launch *l, const Var *v);
void    with_string(Launch *l, const char *s);
void    with_function(Launch *l, const char *name);
void    with_number(Launch *l, double v);
void    as_setting(Launch *l, const char *name);                    // the last argument has a name

// ---- the passes over a kernel ----

void  each_kernel(Lower *p, void (*pass)(Lower *, Kernel *));
void  share_loops(Lower *p, Kernel *k);                                    // share.c
Count turns_of_loops(const Loops *l);
void  note_count(Lower *p, Kernel *k, Count c);
const Order *order_rows(Lower *p, Index *row, Expr *key, Expr *guard, Expr *extent);      // share.c: rows in the order of their groups, made once for all who ask
bool  sort_rows(Lower *p, const Kernel *k, const Order *o, Index *row, Index *group, Node *body, Index **place);      // sorted.c: a loop over rows of `group` reads data in their order, by their place; false: it reads something else of them
bool  sort_all_rows(Lower *p, const Kernel *k, Index *row, Node *body, Index **place);                 // the same of a loop over all rows, in an order that there is, if elements are read by its groups
bool  lower_sorted(Lower *p);                                             // after share; true: responses are copied, too
void  name_outside(Lower *p, Kernel *k);                                  // outside.c

void    with_product(Launch *l, const Product *r);

// ---- of the complete program, for emission ----

void  form_kernel(Lower *p, Kernel *k);                                    // forms.c
void  share_draws(Lower *p);                                              // alike.c
void  find_uses(Lower *p);                                                // uses.c
void  find_rations(Lower *p);                                             // prices.c
void  find_fields(Lower *p);                                              // fields.c
void  find_starts(Lower *p);                                              // starts.c
void  find_prices(Lower *p);                                              // prices.c
void  find_contests(Lower *p);                                            // prices.c

// ---- products.c ----

// Whether e = sum(j, matrix[row, j]*coefficients[j, column]), all of j; column is NULL for a vector.
bool  product_of(const Lower *p, const Expr *e, Product *out, Expr **row, Expr **column);
bool  same_product(const Product *a, const Product *b);
void  make_room(Lower *p, Product *r, bool weights);                 // its arrays

// ---- once.c ----

typedef struct Once {            // var[index..] = value over plates: before the loops that read it
    Var   *var;
    Expr  *original, *value;     // value: with elements of arrays that stand before this one in the list
    Plates plates;
    struct Once *next;
} Once;

Expr *compute_once(Lower *p, const Moving *moving, const char *stem, Once **list, Expr *e, const Plates *plates);        // e over plates; the list grows by arrays that it reads then

// ---- rows.c ----

const Rows *rows_of_factor(const Lower *p, const Factor *f);         // of the joint draw that may take these rows one by one, or NULL
void        list_rows(Lower *p);                                     // for it
void          plan_rows(Lower *p);
void          reads_rows(Lower *p, const Expr *columns);                                       // a launch reads rows of so many columns
bool          row_dot(const Lower *p, const Step *s, RowDot *dot);                   // the draw of a plate of rows that reads a linear predictor of dense rows
bool          turns_dot(const Program *out, const Step *s, RowDot *dot);                // the same of columns that take turns
const RowSum *fused_sum(const Lower *p, const Step *draw);
const RowSum *fused_squares(const Lower *p, const Step *joint);      // whose row pass makes the sum of squares of a scale move, or NULL
bool          in_row_pass(const Lower *p, const BlockTerm *t);
const Predictor *predictor_of(Lower *p, const Product *r);           // one for all kernels
Expr         *predicted(Lower *p, const Kernel *k, Expr *e);         // the array element that holds e, if it is a predictor that the kernel may read; else NULL
bool          reads_predictor(const Lower *p, const Kernel *k);      // of the vector that the kernel follows
Node         *follow(Lower *p, const Kernel *k, Expr *element, Var *change);     // after an element of it has changed
void          refresh_predictors(Lower *p, Launches *l);             // row passes before the kernels that read what they fill
void          lower_predictors(Lower *p);
bool          row_sum_of(const Lower *p, const Expr *ref, Expr *value, const Index *row, const Index *column, Var **matrix, Expr **times);     // value = times * matrix[row, column], ref = vector[column], all of both; times may depend on the column
void          launch_row_sums(Lower *p, const Var *matrix, const Var *weights, Var *out);            // out[j] = sum(row, weights[row]*matrix[row, j])
void          step_row_sums(Lower *p, const Step *s);                // passes that no draw makes on its way

// ---- element.c: what steps that draw element by element have in common ----

typedef enum { BY_ELEMENT, BY_MISSING, BY_ROW, BY_CREW, BY_TEAM, BY_CLASSES, BY_SHELVES, BY_ONE } Shared;        // how the elements of a step are shared out
typedef struct Opened { int n; Node *loop[MAX_RANK + 1], *test; } Opened;               // the loops over them

Expr   *instances(const Plates *p);                      // of plates from 1, whose ranges do not depend on each other
Shared  shared_how(const Step *s, const RowDot *dot);
Kernel *open_elements_kernel(Lower *p, Shared how, const Step *s, const char *name);
Opened  enter_elements(Lower *p, const Step *s, Shared how);         // loops over the elements that a step draws, missing ones or all, around what is put next
void    leave_elements(Lower *p, Opened *o);
void    put_exists(Lower *p, Opened *o, Shared how, Expr *condition);        // the rest is for elements that exist
void    put_store(Lower *p, Shared how, const Conditional *c, Var *x);      // the element is x: by one lane of a team
Node   *enter_part(Lower *p, const Loops *l);                        // sums over the loops of a part, into locals
Expr   *hoisted_part(Lower *p, const Conditional *c, const Part *q); // a part as an expression of the element: its sum leaves the sweep; NULL: it cannot
void    launch_elements(Lower *p, const Step *s, Shared how, const RowDot *dot, const Kernel *k);

// ---- setup.c ----

bool is_searched(const Site *t);                                     // a draw between two ends looks for its value: by weights of integers, or by a distribution function, which stand behind the ends

// ---- the steps: element.c, pair.c, joint.c ----

void  put_skip(Lower *p, Expr *condition);                           // goes on only where it holds; NULL: always
Expr *exists_whole(const Var *v);
void step_exact(Lower *p, const Step *s);
void step_own(Lower *p, const Step *s);
void step_density(Lower *p, const Step *s);
void fill_window(Lower *p, const Window *w);                          // before an orbit that sums counts over windows, and
void draw_window(Lower *p, const Window *w);                          // after its number is drawn
void step_pair(Lower *p, const Step *s);
void step_constrained(Lower *p, const Step *s);
void step_elliptical(Lower *p, const Step *s);
void step_white(Lower *p, const Step *s);
void step_array(Lower *p, const Step *s);
void step_gaussian(Lower *p, const Step *s);
// Precision and shift of variables first, ... of a block, of which `offset` says where each begins. border_place: in the open kernel; J NULL: there are none.
typedef struct BorderPlace { const Step *step; Var *J, *h, *n; Expr **offset; } BorderPlace;
BorderPlace border_place(Lower *p, const Step *s, int first, Var *J, Var *h, Expr *size, Expr *const *offset);
void border_entry(Lower *p, const BorderPlace *b, const BlockTerm *t);         // adds a term between them
void step_band(Lower *p, const Step *s);                             // band.c
void step_states(Lower *p, const Step *s);                           // states.c
void step_turns(Lower *p, const Step *s);                            // turns.c
void before_orbit(Lower *p, const Step *s);                          // orbits.c: what is drawn starts from where nothing moves
void lower_scales(Lower *p, const Step *s, StepCode *code, Launch **own);    // scales.c: what is drawn with a joint normal integrated out, once the launches of that are there: from *own on
void along_orbit(Lower *p, const Step *s);                           // and then moves others
void lower_proposal(Lower *p, const Step *s, StepCode *code);        // proposals.c: around the launches of the step, once these are there
void step_nuts(Lower *p, const Step *s, StepCode *code);             // gradient.c

// ---- trials.c ----

Expr *without_rest(Lower *p, const Conditional *c, const Loops *l, Expr *density);      // the density of a row, with what trials leave as it is in arrays, which are filled in the open kernel

// ---- weights.c ----

ValueWeights *weights_of_values(Lower *p, const Kernel *k, const Node *weigh, int nrows, Index *const *row);      // tables whose product is the density of a value up to a factor; NULL: there are none

// ---- keyed.c ----

void lower_keyed(Lower *p);                                          // statistics by what the sweep draws, and their launches
bool hoisted_by_key(Lower *p, const Loops *l, int n, Expr *const *target, Expr *const *extent, Expr *value, Loops *places, Expr **at, Expr **out);

// ---- setup.c ----

void put_sum(Lower *p, const Sum *s);

bool ex_reads_response(const Expr *e);
bool lower_series(Lower *p);                                         // functions that compute the series of the sweep; false: there are none
void lower_setup(Lower *p);
void lower_orders(Lower *p);                                         // after share
void lower_log_joint(Lower *p);
void lower_observed(Lower *p);                                       // log-likelihoods and replicates
void lower_derive(Lower *p);
#endif
