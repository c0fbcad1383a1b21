// lower.h -- the files that make kernels of steps, among themselves.
#ifndef GMC_LOWER_H
#define GMC_LOWER_H
#include "../front/front.h"
#include "kernel.h"
#include "write.h"

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
} RowSum;

typedef struct RowGram {         // sum(row, weight*matrix[row, j]*matrix[row, k]): precision of vector[j] and vector[k]
    const Step *step;
    Var   *matrix, *vector;
    Index *row;
    Expr  *weight;
    Var   *out;
} RowGram;

typedef struct Predictor {       // sum(j, matrix[row, j]*vector[j]) of every row, in an array that a row pass fills before a kernel that reads it
    Var *matrix, *vector, *out;
    const Step *computed;        // the step that has computed it already
} Predictor;

typedef struct PredictorUse {
    const char *kernel;
    int         predictor;
    const Rows *only;            // read with fewer rows than coefficients only; NULL: always
} PredictorUse;

typedef struct Order {           // rows of a plate in the order of their groups, for sums by group
    Index *row;
    Expr  *key, *guard;          // the group of a row, from 1; the condition of its plate
    Expr  *extent;               // groups
    Var   *keys, *first, *rows;  // of each row; where each group begins in `rows`
} Order;

typedef struct Program {
    Graph  *g;
    Writer  w;
    Var   **work;                // work arrays, one per chain
    int     nwork, work_size;
    Kernels setup, sweep, *list; // kernels in the order of the program; the list that grows
    bool    series;              // there are series to compute in the sweep
    char   *lines;               // what is being written: a comment, or the body of a kernel
    size_t  nlines;
    int     nsteps;
    const char **step_name;
    char  **launches;            // per step
    int     launch_indent;
    const char **turns;          // of the shared loops of the kernel being written
    int     nturns, turns_size;
    bool    own;                 // places are picked by a gather: each lane adds to its own
    const char *into[8];         // arrays added to within a loop of rows
    int     ninto;
    const char *work_of_setup[4];    // definitions, check_data, sums_of_data, sums_of_responses
    const char *work_of_derived, *work_of_joint, *work_of_groups, *work_of_elements;
    const char *grams;           // launches of Gram matrices, after the sums of data
    RowSum *row_sum;
    int     nrow_sums, row_sum_size;
    Order  *order;
    int     norders, order_size;
    RowGram *row_gram;
    int     nrow_grams, row_gram_size;
    Predictor *predictor;
    int     npredictors, predictor_size;
    PredictorUse *use;
    int     nuses, use_size;
    Kernel     *open;            // kernel being written, or NULL
    const char *kernel;          // its name
    const Step *step;            // whose kernels are being written, or NULL
    const Rows *few_only;        // what is being written runs with fewer rows than coefficients only
    const Var *followed;         // a vector drawn one element after the other: the kernel keeps its predictors up to date; or NULL
} Program;

// ---- kernel.c ----

Var        *work_array(Program *p, const char *name, int rank, Expr *const *dim);
const char *math(Program *p, const Expr *e);                         // in the language's notation
const char *line_of(Program *p, Span s);                             // file.gm:12
const char *wrap(Program *p, const char *c);                         // in parentheses if it has blanks
void        begin_kernel(Program *p, const char *kind, const char *name, const char *number);   // number: type of local variables
void        end_kernel(Program *p);
void        begin_comment(Program *p);                               // lines above the next kernel
void        end_comment(Program *p);
void        launch(Program *p, int step, const char *format, ...) __attribute__((format(printf, 3, 4)));
// A launch, LAUNCH_HOW(kernel, run, ...), after the row passes of the predictors that the kernel reads. `format`: what follows `run`.
void        launch_kernel(Program *p, int step, const char *how, const char *kernel, const char *format, ...) __attribute__((format(printf, 5, 6)));
void        launch_team(Program *p, int step, const char *kernel);   // with the turns of the loops written since begin_kernel
const char *team_work(Program *p);
const char *count_of(Program *p, const Var *v, int dims);
void        open_along(Program *p, const Loops *l);                  // loops that a team shares, with nothing named outside them
void        open_loops(Program *p, const Loops *l, int nvalues, Expr *const *values);
bool        open_guard(Program *p, const Loops *l);
void        close_loops(Program *p, const Loops *l);
bool        starts_minus(const char *c);
void        add_to(Program *p, const char *place, Expr *value);
bool        needs_array(const Expr *e);                              // a matrix computed on the way: a team would do it many times
bool        needs_own_array(const Expr *e, const Loops *l);          // one that each turn of the loops computes for itself
const char *number_of(const Var *v);                                 // real or wide

// Sums of several values over the same loops, into locals: shared by the lanes of a team.
void open_sum(Program *p, const Loops *l, const char *totals, int nvalues, Expr *const *values);
// Places of an array += value, over loops: shared by the lanes of a team. `target`: subscripts that pick the place, `extent` what they
// run to (NULL: each turn has a place of its own). `add` writes the statement for a value; everything opened is closed.
typedef void (*AddEntry)(Program *p, Expr *value, void *with);
void scatter(Program *p, const Loops *l, int n, Expr *const *target, Expr *const *extent, Expr *value, AddEntry add, void *with);
void emit_orders(Program *p);
void add_at(Program *p, const char *array, const char *position, const char *value);

typedef struct Arg { const char *name, *c; } Arg;
const char *draw_call(Program *p, const Ast *call, int n, const Arg *args);

int         open_elements(Program *p, const Var *v, Index *const *element, int parallel, const char *turns);
const char *turns_of(Program *p, const Loops *l);                    // of a loop nest, in all
const char *stream_text(Program *p, const Var *v, const char *element);
const char *place_of(Program *p, const Conditional *c);

// ---- rows.c ----

const Rows *rows_of_factor(const Program *p, const Factor *f);       // of the joint draw that may take these rows one by one, or NULL
const char *few_rows(Program *p, const Rows *r);                     // the condition: fewer rows than coefficients

void          plan_rows(Program *p);
bool          row_dot(const Step *s, RowDot *dot);                   // the draw of a plate of rows that reads a linear predictor of dense rows
const RowSum *fused_sum(const Program *p, const Step *draw);
const RowSum *fused_squares(const Program *p, const Step *joint);    // whose row pass makes the sum of squares of a scale move, or NULL
bool          in_row_pass(const Program *p, const Step *s, const BlockTerm *t);
// The array element that holds e, if e is the linear predictor of a row of a dense matrix and the kernel being written may read it; else NULL.
const char   *predicted(void *program, Expr *e);
bool          reads_predictor(const Program *p, const Var *v);      // whether the kernel being written reads a predictor of v
void          follow(Program *p, const Var *v, Expr *element, const char *change);     // after v[element] += change: its predictors
const char   *predictor_pass(Program *p, const PredictorUse *u);     // the launch that computes a predictor
void          emit_predictors(Program *p);
void          step_row_sums(Program *p, const Step *s, int step);    // passes that no draw makes on its way

// ---- the steps: element.c, joint.c ----

void step_exact(Program *p, const Step *s, int step);
void step_own(Program *p, const Step *s, int step);
void step_density(Program *p, const Step *s, int step);
void step_constrained(Program *p, const Step *s, int step);
void step_array(Program *p, const Step *s, int step);
void step_gaussian(Program *p, const Step *s, int step);

// ---- lower.c, setup.c ----

Program *lower(Graph *g);

bool ex_reads_response(const Expr *e);
bool reads_response(const Sum *s);                                   // so that it is made again after each imputation
bool emit_series(Program *p);                                        // functions that compute the series of the sweep; false: there are none
const char *wild_context(const Program *p);                          // "GM, " if there are subscripts that are looked at each time, else ""
void emit_setup(Program *p);
void emit_log_joint(Program *p);
void emit_derive(Program *p);
#endif
