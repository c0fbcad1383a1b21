// kernel.h -- kernels: what the lanes of a CPU or a GPU do, as trees; and the lists in which they are launched.
//
//   kernel draw_sigma_alpha: team
//     let a_sigma_alpha = -N - 2
//     reduce b_sigma_alpha over i in 1:N                      REDUCE: which sum, before it is decided which lanes take which iterations
//       loop i in 1:N shared by SUM_ALONG                     what `share` has made of it
//         update b_sigma_alpha += -1/2*(-alpha_c + alpha[i])^2
//     draw x from power_gamma_natural
//
// Values are expressions of the graph. A name for one (LET, KNOW) is valid from its node to the end of its scope, wherever the
// same expression occurs: since equal expressions are one, nothing has to be replaced. Local variables of a kernel are variables of kind
// VAR_ELEMENT. Cut into sections headed by the file that owns them.
#ifndef GMC_KERNEL_H
#define GMC_KERNEL_H
#include "../graph/plan.h"
#include "placement.h"

// ---- node.c: kernels as trees ----

typedef enum {
#define NODE(id, name, word, help) NODE_##id,
#include "kernel.def"
} NodeKind;

typedef enum {
#define KERNEL_KIND(id, macro, help) KERNEL_##id,
#include "kernel.def"
} KernelKind;

typedef enum {
#define SHARING(id, macro, help) SHARE_##id,
#include "kernel.def"
} Sharing;

// All lanes have the result of a sum or an extreme, and have waited for each other.
static inline bool is_reduced(Sharing how) { return how == SHARE_SUM_ALONG || how == SHARE_MIN_ALONG || how == SHARE_MAX_ALONG; }

typedef enum {
#define OP(id, sign, help) ASSIGN_##id,
#include "kernel.def"
} AssignOp;

typedef struct Count {  // a product of extents
    int n;
    Expr *factor[8];
} Count;

typedef struct Sub {  // a subscript of a work array: offset + the row-major place of `at` among dimensions first.. of `of`
    Expr *offset;     // NULL: none
    const Var *of;
    int first, n;
    Expr *const *at;
    Expr *extent;  // of this dimension of the array
} Sub;

typedef struct Place {  // what is set or added to: the first that is there
    Var *local;         // a local variable
    Expr *element;      // an element of a variable
    Var *array;         // an element of a work array at subs
    int n;
    Sub sub[3];
} Place;

// by the lane that is here; by one lane of the team, at the end or within; of the crew; added up over the calls of a KERNEL_SPAN; at a
// place that lanes share; when a segment is done
typedef enum { STORE_PLAIN, STORE_LAST, STORE_WITHIN, STORE_ELEMENT, STORE_SPAN, STORE_COUNT, STORE_TOTAL } Store;

typedef struct DrawArg {  // of a routine: the first that is there
    const char *name;     // in the call of the stdlib
    Expr *value;
    double number;
} DrawArg;

// what is stored in an integer: a number that is one and small enough; one that may need more than 32 bits; what a routine has drawn, a
// real; a state of a chain, a real
typedef enum { INTEGER_PLAIN, INTEGER_CHECKED, INTEGER_DRAWN, INTEGER_STATE } AsInteger;

// of what is drawn, u: log(u) and log(1 - u), where arrays keep these; NULL: none does
typedef struct KeptLogs {
    Expr *log, *log1m;
} KeptLogs;

typedef enum { DRAW_UNCHECKED, DRAW_FINITE, DRAW_COUNT } DrawCheck;

typedef struct Order {  // rows of a plate in the order of their groups, for sums by group
    Index *row;
    Expr *key, *guard;         // the group of a row, from 1; the condition of its plate
    Expr *extent;              // groups
    Var *keys, *first, *rows;  // of each row; where each group begins in `rows`
    // the key is drawn, and rows are ordered after each draw, on a GPU: room for that. NULL: they are ordered once
    Var *spare;
} Order;

// elements of a vector by colours that are found when data are read: elements[first[c]] .. elements[first[c + 1] - 1] have colour c, no two
// of which meet
typedef struct Classes {
    const Var *of;
    const Conflict *conflicts;
    Expr *pairs;       // how many
    Var *one, *other;  // of each pair, from 1; 0: there is none
    Var *first, *elements;
} Classes;

typedef enum { TRANSFORM_FROM, TRANSFORM_TO, TRANSFORM_CHAIN } Transformed;

// what values are weighed by, besides a number of each: the length of root[x]*(row - centre[x]), root[x] an upper triangle
typedef struct Distances {
    const Var *row, *centre, *root;
    double times;    // of its square
    Expr *of_value;  // the rest of the log density: elements of tables at the value
} Distances;

enum { MOST_VALUE_KEYS = 3, WEIGHTS_ASIDE = 4 };

// of values that a row may take: a table of exp of a part of the log density, by keys of the row (weights.c)
typedef struct ValueWeights {
    Var *var;  // [keys.., values and room]: a row begins at a multiple of WEIGHTS_ASIDE numbers
    int n;
    Index *index[MOST_VALUE_KEYS], *value;
    Expr *key[MOST_VALUE_KEYS];     // of the row that is drawn
    bool outcome[MOST_VALUE_KEYS];  // the key is data that the density computes with
    Expr *log, *weight;             // over the indices; weight: exp of it where that is known without exponentials, or NULL
    struct ValueWeights *next;
} ValueWeights;

// The chain rule of an effect u of a share, a centre, a spread and a scale (device/line.h): its derivative, and those by centre and spread.
typedef struct Chained {
    Expr *share, *centre, *spread, *scale, *effect;
    const Place *slope, *by_centre, *by_spread;
} Chained;

typedef struct Node Node;

typedef struct SymmetricProduct {  // what a row adds to places (j, k) of its group: times*factor(j)*factor(k)
    Expr *factor;                  // over the index of the places' rows
    Expr *times;                   // of the row alone
    // the loop over places j of another array of the same groups, to which the row adds vector_times*factor(j); or NULL
    const Node *vector;
    Expr *vector_times;
} SymmetricProduct;

struct Node {
    NodeKind kind;
    Node *next;
    Node *body;       // those with a scope of their own, and REDUCE, NEST
    Node *otherwise;  // of two, the one that is run if the body is not
    bool follows;     // outside.c: predictors follow the element that it changes, by `change`, which its text declares
    union {
#define MEMBERS(word, ...) \
    struct { \
        __VA_ARGS__ \
    } word;
#include "kernel.def"
    };
};

// Sums over rows of the weight of each value times something of the row: weights[row, value] * column, one for each value and place. On a
// GPU all are made together (device/columns.h).
enum { MOST_COLUMN_SUMS = 8, MOST_COLUMN_PLACES = 3, MOST_GIVEN = 4, COLUMN_ROOM = 1 << 22 };

// given: what is the same for all rows of a column
typedef struct ColumnSum {
    const Sum *sum;
    Index *row, *value, *place[MOST_COLUMN_PLACES];
    int nplaces;
    Expr *column;
    int ngiven;
    Var *given[MOST_GIVEN];
    Expr *is[MOST_GIVEN];
} ColumnSum;

// room: COLUMN_ROOM numbers for sums of chunks of rows
typedef struct Columns {
    const Var *weights;
    Var *room;
    int n;
    ColumnSum of[MOST_COLUMN_SUMS];
} Columns;

// The parts of the program, in its order. A student reads the first four; the last is what runs them.
typedef enum { PART_MODEL, PART_GIBBS, PART_HMC, PART_DENSITY, PART_TABLES, PART_FORWARD, PARTS } ProgramPart;

typedef struct Kernel {
    KernelKind kind;
    ProgramPart part;  // where it stands
    const char *name;
    const Index *row;  // KERNEL_ROW: of the row
    int terms;         // KERNEL_TEAM: it goes through the terms of the sparse joint normal of this number; 0: of none
    // KERNEL_TEAM, until tables.c: iterations of its loops compute matrices of their own, each by one lane
    bool by_one;
    bool on_request;          // KERNEL_TEAM: only some runs launch it
    bool shown;               // KERNEL_FUNCTION: a lesson calls it
    bool chains;              // KERNEL_FUNCTION: of the chains from the one to before the other that it is given
    const Var *unless_given;  // PART_FORWARD: the unknown that it draws; NULL: it draws replicates
    const Series *series;     // KERNEL_FUNCTION: it computes this one; or NULL
    bool context;             // KERNEL_FUNCTION: it gets the kernel that calls it as an argument
    // KERNEL_FUNCTION: the right side of a differential equation, or its derivatives; or it computes a solution
    const Ode *ode;
    enum { ODE_RIGHT_SIDE, ODE_DERIVATIVES, ODE_SOLUTION } of_ode;
    const char *comment;     // lines above it: the conditional that it draws from
    bool says_law;           // these begin with the law of its update
    const char *number;      // type of its locals: real or wide
    const Update *update;    // that it belongs to, or NULL
    const Columns *columns;  // KERNEL_TEAM: what its body does is that, too; or NULL
    // KERNEL_TEAM: it changes what predictors are made of, and computes those that it reads at its current values
    bool places;
    bool products;                   // KERNEL_TEAM: sums of products of a vector and itself, which a GPU makes by a routine
    const struct SharedDraw *alike;  // what begins at `alike_from` is a call of this function; NULL: nothing is
    const Node *alike_from;
    const Var *followed;  // a vector drawn one element after the other: predictors of it are kept up to date; or NULL
    Node *body, **last;
    int niterations;  // of loops that a team shares, in all
    Count *iterations;
    struct Kernel *next;
} Kernel;

typedef struct Kernels {
    Kernel *first, **last;
} Kernels;

Node *node_new(Arena *a, NodeKind kind);
const char *function_name(Arena *a, const char *name);  // with a _ more, if the runtime declares that
Var *local_new(Arena *a, const char *name);             // a local variable
Var *local_named(Arena *a, const char *name);           // one whose name is made of names of the model
Expr *local_ref(Var *local);
Count count_dims(const Var *v, int first, int n);

// What a node itself has, as its row of kernel.def says: the member that belongs to the kind of part is there.
typedef enum {
    HAS_VALUE,
    HAS_AT,
    HAS_PLACE,
    HAS_SIZE,
    HAS_WITHIN,
    HAS_INDEX,
    HAS_KEY,
    HAS_ARRAY,
    HAS_WRITTEN,
    HAS_INSIDE,
    HAS_AFTER,
    HAS_TRIES,
    HAS_AGAIN,
    HAS_DRAWN,
    HAS_FOLLOWED
} NodePartKind;

typedef struct NodePart {
    NodePartKind kind;
    Expr *e;
    const Place *place;
    const Var *v;
    const Index *index;
    const char *name, *type;
    bool grows;
    int times;
    const Node *list;
    const Conditional *c;
} NodePart;

bool each_part(const Node *n, bool (*f)(const NodePart *, void *), void *with);  // until f returns true, which is the result
bool draws_unknowns(const Node *list);                                           // some node of the list, or below it
void each_subscript(const Place *at, void (*f)(Expr *, void *), void *with);
// f of every variable that the nodes write, until it returns true
bool writes(const Node *list, bool (*f)(const Var *, void *), void *with);

bool reads_local(const Node *list, const Var *local);                  // whether a value or a place in the list, or below it, does
void drop_spare(Node **list);                                          // LETs that are spare (let.spare) and that nothing in the list reads
void each_expr(const Node *n, void (*f)(Expr *, void *), void *with);  // f of every expression that the node itself computes
// f of every array that the node itself reads or writes other than in each_expr
void each_array(const Node *n, bool (*f)(const Var *, void *), void *with);
bool ex_is_integer(const Expr *e);
bool needs_array(const Expr *e);                      // a matrix within an expression: each lane of a team would compute it
bool needs_own_array(const Expr *e, const Loops *l);  // one that each iteration of the loops computes for itself
bool ex_reads_response(const Expr *e);
bool reads_response(const Sum *s);  // so that it is made again after each imputation

enum { NUTS_DIAGNOSTICS = 6 };  // numbers for the draws that a block of NUTS keeps (runtime/device/launch_nuts.h)
// with more updates the C compiler would spend its time on copies of samplers: they are called, not copied into each update
enum { MANY_UPDATES = 64 };

// ---- forms.c: what nodes are written as ----

// of a call log(a + b) or pow(x, r): where one of `of` is kept by its logarithm, it is written by logarithms
typedef struct LogForm {
    int n;
    Expr **of, **log;  // unknowns in it, and log of each
    int nterms;
    Expr **term;  // log a, log b; of pow log x. None: a term may be negative
} LogForm;

// it reads an array whose values may lie outside of the dimension: emitted code looks each time
bool reads_wild(const Expr *subscript);

// ---- alike.c: scalars that are drawn alike ----

// a function that kernels share whose scalars have conditionals of one family: it draws, computes the ratio for --check, and stores
typedef struct SharedDraw {
    const char *name;
    const Kernel *first;  // it is written above this one
    const Node *from;     // the draw in that
    // with parameters for what a kernel hands it: the values of arguments of the draw, in their order
    const Node *draw, *ratio;
    struct SharedDraw *next;
} SharedDraw;

// ---- products.c ----

// eta[row, k] = sum(j, matrix[row, j]*coefficients[j, k]); with transposed coefficients[k, j]; of a vector of them there is one output
typedef struct Product {
    Var *matrix, *coefficients;
    bool transposed;
    Var *eta;
    Var *weight, *out;  // out = sum(row, matrix[row, j]*weight[row, k]), as the coefficients lie; NULL: only eta is wanted
    Var *sums;          // sum(row, weight[row, k]); or NULL
} Product;

Expr *outputs_of(const Product *r);  // of a row: how many columns the coefficients have

// ---- predictors.c ----

// a product, in an array that is filled before a kernel that reads it: by a row pass, if it has one output
typedef struct Predictor {
    Product of;
    const Kernel *pass;
    // coefficients that are made of several unknowns, lambda[j]*b[j]: that of element `at`; NULL: they are those of a vector
    Expr *value;
    Index *at;
    const Kernel *make;  // fills the array of them before the pass
} Predictor;

typedef struct PredictorUse {
    const Kernel *kernel;
    const Predictor *predictor;
    const Rows *only;  // read with fewer rows than coefficients only; NULL: always
    struct PredictorUse *next;
} PredictorUse;

// ---- launch.c: what the host does, in order ----

typedef enum {
#define LAUNCH(id, macro, help) LAUNCH_##id,
#include "kernel.def"
} LaunchKind;

typedef enum {
    ARG_EXTENT,
    ARG_COUNT,
    ARG_WORK,
    ARG_PLACE,
    ARG_NAME,
    ARG_FIELD,
    ARG_STREAM,
    ARG_STRING,
    ARG_FUNCTION,
    ARG_NUMBER,
    ARG_PRODUCT
} ArgKind;

enum { MOST_LAUNCH_ARGS = 20 };

typedef struct LaunchArg {
    ArgKind kind;
    Expr *extent;
    Count count;
    const Var *var;
    const char *string;
    double number;
    const Product *product;
    const char *setting;  // its name, `.depth = 10`; NULL: it is a positional argument
} LaunchArg;

typedef struct Launch {
    LaunchKind kind;
    const Kernel *kernel;  // NULL: a library call
    When when;
    const Rows *rows;               // of `when`
    int stands_in;                  // it is launched where the sparse block of this number is not drawn jointly; 0: always
    const struct UpdateCode *code;  // SCALES: of the update that it begins
    bool unless_kept;               // left out in a sweep, which has launched it
    bool once;                      // of a density with a joint normal integrated out: the same for all values tried in a sweep
    bool unread;                    // left out where only the draws and --check would read what it does, and do not
    bool shown;                     // a lesson has it
    int nargs;
    LaunchArg arg[MOST_LAUNCH_ARGS];
    struct Launch *next;
} Launch;

typedef struct Launches {
    Launch *first, **last;
} Launches;

typedef struct Ration {      // what draws of scales are rationed by, in multiply-adds
    Expr *sweep, *trial;     // of all other updates; of one trial, if all rows of data are different
    Expr *trial_as_counted;  // of one trial, in numbers of rows that are counted
    // numbers of the selection and of the joint normal that is sparse, or row-listed; 0: none
    int selection, sparse;
} Ration;

typedef struct UpdateCode {  // of one update of the schedule
    const Update *update;
    const char *name;
    const char *function;   // that launches it
    const Rows *waits_for;  // HMC of a selection: it is left out where these rows are listed; or NULL
    bool again;             // sums of responses are made again before it, since values were imputed
    bool shown;             // a lesson has it
    Launches made;          // statistics that a sweep makes before it
    Launches launches;
    const char *density_name;  // NUTS, and joint normals with scales: the function that launches
    // the log density and its gradient at given coordinates; or the density of all with the joint normal integrated out
    Launches density;
    const Kernel *collapsed;           // of scales: their density
    const Var *tuning;                 // of scales: what their draws keep
    Ration ration;                     // of scales
    const Var *machine, *diagnostics;  // NUTS: what it keeps of itself; its diagnostics of each sweep, for the draws
    const char *jacobian_name;
    Launches jacobian;  // the same of the transform alone, after these; none, if coordinates are the unknowns themselves
} UpdateCode;

// ---- lower.c ----

// ---- fields.c ----

typedef struct FieldBound {
    const Expr *value;
    double number;
} FieldBound;  // value NULL: the number

typedef struct Field {  // of Data or State, as the tables of the program describe it to the runtime
    const Var *var;
    // that values are checked against as they are read; of unknowns what is the same for all elements
    FieldBound lower, upper;
    int shape;  // the first field whose extents and bounds the same lines compute; -1: there are none
    // data: values may be missing, and the model may request that they are left out; none may be infinite
    bool may_miss, may_be_left_out, finite;
    const char *needed_for;   // data: why no value may be missing; or NULL
    int imputed;              // data: 1 + the number of the field of State that has them with missing values filled in; 0: none
    int extent_of[MAX_RANK];  // 1 + the number of the field of Data that is this extent; 0: none
    int rows_of;              // likewise of the lengths of its rows
    int upper_of;             // data: likewise of its upper bound
    bool shown;               // a lesson has it
} Field;

struct Program;
int field_of(const Field *list, int n, const Var *v);  // its place; -1: it is not there
// of the member of Data that holds the sum or end, from 1; 0: there is none
int total_number(const struct Program *p, const Expr *e);
// the first extent is 0 where there are many rows, or few. Rows that may be listed are read, or not, however many they are
bool keeps_rows_of_route(const Placement *at);

// ---- starts.c ----

typedef struct StartFactor {  // a factor that is 0 for some values of the unknowns: chains start where it is not
    const Factor *factor;
    const Loops *plates;
    const Expr *log_density;
    bool if_missing;  // only where a missing response has been filled in
    struct StartFactor *next;
} StartFactor;

typedef struct Definition {
    const Var *var;
    struct Definition *next;
} Definition;  // that such factors read, or graphs of data

// ---- prices.c: what a sweep costs, for a run ----

// In multiply-adds. What the factor of a sparse joint normal takes is known when data are there: gm_sparse_time.
#define SPARSE_SHARE        0.6   // of that time, where it is made on a CPU
#define SPARSE_LAUNCHES_GPU 2250  // on a GPU three launches and
#define SPARSE_SHARE_GPU    0.25  // what the flow of tiles takes, of multiply-adds that wait for each other some 4 ns

// in multiply-adds of one lane: the time that does not depend on the number of chains; the work of a chain, shared by all lanes
typedef struct CostOnGpu {
    Expr *alone, *work;
} CostOnGpu;

// of a joint normal that updates in its place may draw, or whose rows may be listed, as data decide
typedef struct SparsePrice {
    int number;
    bool listed;            // row by row
    bool with_hmc;          // it is drawn in a sweep by HMC, too
    CostOnGpu standing_in;  // if not listed
    Expr *updates, *hmc;    // if listed: what a sweep costs but for it, by separate updates and by HMC
    bool no_hmc;            // if listed: HMC is left out, since it reads X'X, which is not made
    struct SparsePrice *next;
} SparsePrice;

// of the draws of scales of an update; the factor of sparse joint normal `sparse`, 0 none, is made for each trial
typedef struct ScalesPrice {
    const Scales *scales;
    Expr *trial;
    int sparse;
    struct ScalesPrice *next;
} ScalesPrice;

enum { NUMBERS_OF_COST = 9 };

typedef struct Price {          // of a selection, or of the whole program
    int number;                 // of the selection; 0: the program
    Expr *of[NUMBERS_OF_COST];  // as GmSelection has them; NULL: left out, since there is only one method
    int ncounted;
    const Var **counted;  // whose different rows are counted
    SparsePrice *sparse, *listed;
    ScalesPrice *scales;
    struct Price *next;
} Price;

typedef struct PricedSelection {  // a selection, and what a run needs to know to choose
    const Selection *of;
    const Var *machine, *diagnostics;  // of its HMC update
    int nlatents;
    const Var **latent;  // auxiliaries that its separate updates draw
    struct PricedSelection *next;
} PricedSelection;

// unknowns that are drawn together, and have arrays and kernels that are called by them: `name`, which their number is part of
typedef struct NamedBlock {
    const char *name;
    int n;
    Var *const *var;
} NamedBlock;

// what of the runtime the program uses: HMC; joint normals by its kernels, those with few entries, weighted sums of
// squares; bands; states of chains, and those of several unknowns with a link for each
typedef struct RuntimeParts {
    bool hmc, normals, patterns, grams, bands, states, links;
} RuntimeParts;

typedef struct Program {
    const Graph *g;
    const Sum *sums;        // statistics: of the graph, and those that kernels request
    Placements placements;  // placement.h
    Kernels setup, sweep;   // in the order of the program
    int nupdates;
    UpdateCode *updates;
    Launches before;  // at the start of the sweep, of derive and of joint: series
    // setup; sums of responses, in it and in the sweep; the end of setup; quantities for the draws, and what undoes their NaN; the log
    // joint
    Launches prepare, refresh, again, finish, derive, restore, joint;
    Launches log_prior, log_lik, replicates;  // before `derive`, in runs that request them
    Launches forward;                         // draws without data, on the host alone
    bool joint_as_written;                    // the log joint density has no auxiliaries, or without --check has not
    const char *not_forward[2];               // why not: of unknowns, of responses. NULL: they can be drawn
    const char *not_as_data;                  // why what is drawn of a response is no data set of the model. NULL: it is one
    int nwork, work_size;
    Var **work;  // work arrays, one per chain
    int nblocks, blocks_size;
    NamedBlock *block;         // that have a number in place of the names of their unknowns
    const Expr *row_bytes[2];  // rows and columns of the last matrix that a draw passes over; NULL: none
    const Expr *row_width;     // columns of all matrices that row passes read; NULL: none
    bool row_widths;           // they differ
    bool wild;                 // there are subscripts that are looked at each time
    Map logs;                  // a call -> its LogForm
    int ndata, nstate;
    Field *data, *state;  // in their order
    int ntotals;
    const Expr **total;         // sums and ends of data that sizes are made of: members of Data hold them
    const char *total_name;     // of these members, before their numbers
    const StartFactor *starts;  // NULL: none
    const Definition *definitions;
    // of each selection; if there are several, or the model requests HMC, of the program as well. The last is that of a sweep
    const Price *prices;
    const PricedSelection *priced;
    RuntimeParts uses;
    const char *cpu_only;  // why it runs on the CPU alone; NULL: it does not
} Program;

bool any_wild(const Graph *g);  // there are subscripts that are looked at each time

// The passes over kernels, in their order (driver/passes.def); each reads what those before it have left.
typedef struct Lower Lower;
Lower *lower_new(const Graph *g);
const Program *lowered(const Lower *p);  // as the passes have left it
void lower(Lower *p);                    // lower.c, by a file for each kind of update
void tables(Lower *p);                   // tables.c
void share(Lower *p);                    // share.c
void outside(Lower *p);                  // outside.c
void predictors(Lower *p);               // predictors.c
void alone(Lower *p);                    // alone.c
void find_waits(Lower *p);               // waits.c
void placement(Lower *p);                // placement.c

// ---- complete.c: after the passes ----

void complete_program(Lower *p);  // what a program holds beside kernels and launches, for emission to print

// ---- comments.c ----

enum { COMMENT_COLUMNS = 140 };  // of a line, after which it goes on in the next one

int end_of_comment_line(const char *s, int room);  // how much of a comment, of one line, stands in so much room

// ---- lesson.c: what a lesson shows of a program, once it is complete ----

const char *lesson_refused(const Program *p);  // why there is none, NULL: there is one

// ---- cost.c ----

// operations, draws and bytes of one sweep of one chain, in the sizes of the data
const char *cost_text(const Program *p, const UpdateCode *s);

typedef struct SelectionCost {  // in multiply-adds, of one chain, in numbers of the data
    Expr *steps;                // a sweep by separate updates
    // a sweep by HMC: its fixed cost, and that of each evaluation of density and gradient, of which its trajectory has many
    Expr *move, *evaluation;
    struct {
        CostOnGpu steps, move, evaluation;
    } on_gpu;
} SelectionCost;
// Of the selection; NULL: of the whole program, all its selections together. HMC that the model requests counts among the updates then.
SelectionCost cost_of_selection(const Program *p, const Selection *of);
CostOnGpu cost_standing_in(const Program *p, int joint);  // of the updates in place of joint normal `joint`
// on a CPU, of all but the joint normal whose rows are listed
SelectionCost cost_where_listed(const Program *p, const Selection *of);
// of all other updates, and of one trial; factors of sparse joint normals are left out
void cost_of_scales(const Program *p, const UpdateCode *s, Expr **sweep, Expr **trial);

// ---- print.c, check.c ----

void kernels_print(FILE *out, const Program *p);                // --dump: kernels as trees, and their launches
const char *kernels_check(const Program *p, const char *pass);  // what the pass has left wrong, or NULL
#endif
