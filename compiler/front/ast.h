// ast.h -- the checked tree: models and stdlib files alike.
//
// The parser builds it, resolve gives every name its declaration, types gives every expression
// its element type and shape. Nodes live in the driver's arena and are never freed. Everything later reads
// this tree and nothing of the text.
#ifndef GMC_AST_H
#define GMC_AST_H

#include "../../runtime/device/limits.h"
#include <stdbool.h>
#include <stddef.h>
#include "../base/arena.h"
#include "../base/source.h"

typedef struct Ast Ast;
typedef struct Decl Decl;
typedef struct Stmt Stmt;
typedef struct Block Block;

// ---- shapes and types (filled by shapes.c and expressions.c) ----

#define MAX_RANK    GM_MAX_RANK
#define MAX_NATURAL 4  // natural parameters of a family, which are summed together

typedef enum { BASE_INT, BASE_REAL } BaseType;

typedef struct Type {
    BaseType base;
    int rank;            // 0 scalar, 1 vector or array, 2 matrix or array of vectors, ...
    Ast *dim[MAX_RANK];  // extents, outermost first; integer expressions over data
} Type;

// What a declared type restricts beyond shape: which values are allowed.
#define CONSTRAINTS(X)                      \
    X(NONE, "")                             \
    X(SIMPLEX, "simplex")                   \
    X(ORDERED, "ordered")                   \
    X(POSITIVE_ORDERED, "positive_ordered") \
    X(UNIT_VECTOR, "unit_vector")           \
    X(SUM_TO_ZERO, "sum_to_zero_vector")    \
    X(COVARIANCE, "cov_matrix")             \
    X(CORRELATION, "corr_matrix") X(CHOLESKY_COV, "cholesky_factor_cov") X(CHOLESKY_CORR, "cholesky_factor_corr")
typedef enum {
#define X(id, text) CONSTRAINT_##id,
    CONSTRAINTS(X)
#undef X
} Constraint;

// Where the values of a distribution lie: support.def.
typedef enum {
    SUPPORT_NONE,  // not given yet
#define SUPPORT(id, word, rank, ends, sized, discrete, constraint, from_line, log_jacobian) SUPPORT_##id,
#include "support.def"
#undef SUPPORT
    SUPPORTS
} Support;

typedef struct SupportRow {
    const char *word;
    int rank, ends;  // of a value; numbers in parentheses behind the word
    bool sized, discrete;
    Constraint constraint;  // of a variable that is drawn whole
    const char *from_line, *log_jacobian;
} SupportRow;

extern const SupportRow support_table[SUPPORTS];  // ast.c

// ---- expressions ----

typedef enum {
    AST_INT,        // 3                       number
    AST_REAL,       // 0.5                     number
    AST_STRING,     // "text"                  name
    AST_NAME,       // beta                    name, decl
    AST_INDEX,      // x[i, j]                 kid[0] the array, kid[1..] the subscripts (AST_RANGE or AST_ALL keep a dimension)
    AST_RANGE,      // 1:K  (in subscripts; either end may be NULL: `2:`)
    AST_ALL,        // x[, j]
    AST_CALL,       // exp(x)                  name, kid[]
    AST_BINARY,     // a + b                   op, kid[0..1]   ops: + - * / ^ .* ./ == != < <= > >= && || %
    AST_UNARY,      // -a  !a                  op, kid[0]
    AST_TRANSPOSE,  // a'                      kid[0]
    AST_COND,       // c ? a : b               kid[0..2]
    // sum(k in lo:hi, e)      name is "sum", "prod", "min" or "max"; decl the index; kid[0] lo, kid[1] hi, kid[2] body
    AST_REDUCE,
    AST_ARRAY,     // [a, b, c]               kid[]
    AST_FUNCTION,  // (t, y) -> e             kid[0], kid[1] the names, whose decls it declares; kid[2] the body
} AstKind;

typedef enum {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_POW,
    OP_ELT_MUL,
    OP_ELT_DIV,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_AND,
    OP_OR,
    OP_MOD,
    OP_NEG,
    OP_NOT
} Op;

#define MAX_DEPTH 4000  // of expressions; statements nest less

typedef enum { TYPE_UNKNOWN, TYPE_KNOWN, TYPE_POISONED } TypeState;  // poisoned: an error has been reported below

struct Ast {
    AstKind kind;
    Span span;
    Op op;
    double number;
    const char *name;  // interned
    Decl *decl;        // AST_NAME, AST_REDUCE: resolve
    Type type;         // types
    int nkids;
    Ast **kid;
    int depth;        // of the tree below, at most MAX_DEPTH: passes may recurse
    TypeState state;  // expressions.c: whether `type` may be read
    // of an argument that was given by name, sd = s: that name, until arguments.c has put it in its place
    const char *label;
    Span label_span;
    const char *row_of;             // of within_row, which ragged.c has made: the array
    const struct Inlined *inlined;  // this is the right side of a function that was called here
};

// `function real f(real x, vector v) = e;`: a call is replaced by e, with the arguments in the places of the parameters.
typedef struct FunctionDecl {
    const char *name;
    Span span;
    bool typed;  // the type of the value is written
    Type type;
    int nparams;
    Decl **params;  // has_type: its kind is written; else it takes anything
    Ast *body;
    enum { FUNCTION_READ, FUNCTION_ASKED, FUNCTION_RESOLVED } state;
    bool poisoned;  // an error has been reported: calls are not replaced
    struct FunctionDecl *next;
} FunctionDecl;

typedef struct Inlined {
    const FunctionDecl *function;
    Ast **args;
    Span body;                     // of the right side, called from here
    const struct Inlined *within;  // the right side is a call itself; or NULL
} Inlined;

// ---- declarations: everything that has a name ----

typedef enum {
    DECL_DATA,        // read from the data file
    DECL_VARIABLE,    // the left side of some `~`, or declared without one (flat)
    DECL_DEFINITION,  // the left side of some `=`, substituted wherever it is used
    DECL_INDEX,       // the i of `for (i in 1:N)` or of sum(i in 1:N, ...)
    DECL_PARAMETER,   // an argument of a distribution (stdlib files), or the t or y of (t, y) -> e
    DECL_PATTERN,     // a name that an augmentation's `match` binds
} DeclKind;

typedef enum { BLOCK_DATA, BLOCK_LET, BLOCK_PRIOR, BLOCK_LATENT, BLOCK_LIKELIHOOD, BLOCK_AUGMENT, BLOCK_INFER, BLOCK_PREDICT } BlockKind;

struct Decl {
    DeclKind kind;
    const char *name;  // interned
    Span span;         // where it is declared (first site)
    BlockKind block;
    Type type;
    Constraint constraint;
    Ast *lower, *upper;  // declared bounds or NULL
    int outer;           // sizes behind the name, as in real x[N]
    // declared in a loop: the left side there, x[i], whose subscripts replaced these sizes; its bounds may read the indices
    Ast *in_loop;
    Ast *init;                // `int K = 256;` in data: default
    Ast *lo, *hi;             // DECL_INDEX: range
    const char *own_size[2];  // DECL_PARAMETER: names of sizes that are not those of the value: the E of array[E] int node
    bool has_type;            // the user wrote a type
    const char *stands_for;   // what the model calls it: K, of a K_free that locked.c made; or NULL
    int order;                // declaration order over the model, dense from 0
    Stmt *sites;              // DECL_DEFINITION: the statements that define it (linked by next_site)
    // DECL_DEFINITION: its one statement, z[j] = ..., where sizes of the right side differ by the indices that are its subscripts
    Stmt *ragged;
    const char *lengths;  // rows of different lengths, one behind the other: the name of the array with their lengths; or NULL
    // DECL_INDEX: it goes along such rows; how many places there are, sum(n), or NULL. With `lengths`: a local name has the index alone
    Ast *places;
    bool observed;        // DECL_DATA: some statement draws it, so that values may be missing
    bool recursive;       // DECL_DEFINITION: its elements depend on others of it, perhaps through other definitions
    bool poisoned;        // an error has been reported: no further messages about it
    void *front;          // private to resolve and types
    void *user;           // for the stage that builds the model graph
};

// ---- statements ----

typedef enum {
    STMT_TILDE,    // lhs ~ dist(args) T[lower, upper]
    STMT_DEFINE,   // lhs = rhs       (lhs name or name[i,...]; or of link(name[i]) = rhs, see link)
    STMT_DECLARE,  // real<lower=0> sigma;      a variable with a flat prior, or shape only if sites follow
    STMT_TARGET,   // target += rhs
    STMT_FOR,      // for (index in lo:hi) body
    STMT_IF,       // if (cond) body            cond over data and indices only
    STMT_BLOCK,    // { ... }
} StmtKind;

struct Stmt {
    StmtKind kind;
    Span span;
    Ast *lhs;          // TILDE: any expression (log(y[i]) ~ ...); DEFINE: name or indexed name
    const char *dist;  // TILDE
    Span dist_span;
    int nargs;
    Ast **args;    // TILDE
    Ast *weights;  // TILDE: of a mixture, else NULL; dist and args are then those of its first component
    Stmt *more;    // TILDE: the other components of a mixture, as statements of their own, linked by next
    // types: of a mixture whose components are one plate: bit i: argument i has, behind the dimensions of what is repeated, one for them
    unsigned by_component;
    int weights_each;  // types: dimensions of the weights of a mixture, from the first, that are those of what is repeated
    bool truncated;
    bool censored;           // TILDE: C[lower, upper] in place of T[lower, upper]: missing values lie there
    Ast *lower, *upper;      // TILDE: T[lower, upper], NULL for an open end
    const char *stands_for;  // TILDE: for Decl.stands_for
    const char *link;        // DEFINE: "logit", "log", "probit", "cloglog" if the left side was link(name), else NULL
    Ast *rhs;                // DEFINE, TARGET
    Decl *decl;              // what it declares or defines (TILDE on data: the data's Decl)
    Decl *index;             // FOR
    Ast *cond;               // IF
    Stmt *body;              // FOR, IF: one statement; BLOCK: first of a list
    const Stmt *outer;       // FOR, IF or BLOCK around it, or NULL
    struct Lookup *lookups;  // DEFINE: for build
    bool busy;               // DEFINE: for build: its right side is being read
    Stmt *next;              // next statement of the same list
    Stmt *next_site;         // next definition of the same name
    BlockKind block;
    int depth;  // statements nested below
};

// ---- augment and infer: requests ----

typedef enum {
    METHOD_OTHER,  // gmc chooses; of a request: what it names is a rule, or is not known
#define METHOD(id, word, where) METHOD_##id,
#include "methods.def"
    METHODS
} Method;

enum { ASKED_BY_INFER = 1, ASKED_BY_OPTION = 2, ASKED_BY_AUGMENT = 4 };  // where a method is named

typedef enum {
    SETTING_OTHER,
#define SETTING(id, word, kind) SETTING_##id,
#include "methods.def"
    SETTINGS
} SettingId;

typedef struct Setting {  // width = 2
    const char *name;
    Ast *value;
    SettingId id;  // resolve
    // resolve: of a metric its MetricKind (runtime/device/metric.h); of a switch whether it is on; of others 0
    int word;
} Setting;

typedef struct Request {  // y by RULE as z;   (alpha, beta) by gibbs;   tau by none;
    Span span;
    BlockKind block;  // BLOCK_AUGMENT or BLOCK_INFER
    int nnames;
    const char **names;
    Decl **decls;    // resolve
    const char *by;  // RULE, gibbs
    Method method;   // resolve
    const char *as;  // augment: name of the new variable, or NULL
    int nsettings;   // infer: `x by slice(width = 2)`
    Setting *setting;
    struct Request *next;
} Request;

// the method of this name there (requests.c); METHOD_OTHER if there is none
Method method_named(const char *word, int where);

// ---- stdlib: distributions, families, augmentations ----

typedef struct Natural {  // `a on log(x);`
    const char *name;
    Ast *statistic;
    Decl *decl;
    struct Natural *next;
} Natural;

// `law x^k ~ gamma(shape, rate) { shape = (a + 1) / k; rate = -b; }`: a family in the parameters of a textbook
typedef struct Law {
    Ast *of;  // x, or a power of it
    const char *dist;
    int nargs;
    Ast **args;
    Natural *parameter;  // name and value (as `statistic`), in terms of the natural parameters and of those before it
} Law;

typedef struct Synonym {  // `mean = mu;` among the synonyms of a distribution
    const char *word, *of;
    Span span;
    struct Synonym *next;
} Synonym;

typedef struct Distribution {  // distribution normal(real mu, real<lower=0> sigma) { ... }    (a family has no parameters)
    const char *name;
    Span span;
    bool is_family;
    int nparams;
    Decl **params;
    Synonym *synonyms;  // other names of its parameters, for arguments by name
    bool discrete;      // support of integers
    Support support;
    Ast *lower, *upper;  // support's ends for "interval" and "integer" (NULL: infinite)
    Ast *size;           // extent of each dimension of a vector or matrix value, or NULL if the parameters do not decide it
    int value_rank;      // 0 scalar, 1 simplex, vector, counts, 2 covariance, correlation, ...
    Decl *value;         // the x in the bodies below, rank by support
    Ast *log_density;
    Ast *mean, *mode;  // or NULL
    // of a joint normal: L with L*L' its covariance, or its precision. One of them, or NULL
    Ast *covariance_root, *precision_root;
    Ast *cdf;               // log of the distribution function, for truncation, or NULL (name: log_cdf)
    Ast *ccdf;              // log of the upper tail probability (name: log_ccdf)
    Ast *sample;            // AST_CALL of a runtime routine with the parameters, or NULL
    Ast *sample_truncated;  // same with `lower` and `upper` in scope, which lie in the support, or NULL
    Decl *ends[2];          // these two
    Natural *natural;       // family part: names of natural parameters and their statistics
    Law *law;               // family part: for readers, or NULL
    Ast *base;              // family part: a base measure term, e.g. polya_gamma_base(b, x); its other arguments bind
    const char *power;      // family part: name of the exponent k that may take any nonzero value, or NULL
    Ast *draw;              // AST_CALL of a runtime routine with the natural parameters
    Ast *draw_truncated;    // same with `lower` and `upper` in scope, or NULL
    // family part: a routine with parameters of the law, whose draw and ratio for --check the runtime has under this name; or NULL
    Ast *draw_law, *draw_law_truncated;
    // family part: of its statistics, called with the number of one, from 0, before its arguments; or NULL
    Ast *expectations, *expectations_truncated;
    // for warnings about priors: the parameters that shift and stretch the values; where most of the mass of a prior lies beside 0 and far
    // out (a condition); an end of the support that is seldom known. Or NULL
    Ast *location, *scale, *near_zero, *far_end;
    Ast *require;         // a condition on arguments that are data, or NULL (name: requires)
    // of a density that is about a graph on the elements of x: the nodes that its edges join, and the number of parts without edges between
    // them, whatever it is if NULL. Or NULL
    Ast *edge_from, *edge_to, *parts;
    const char *meaning;  // for readers, in the names of the parameters: of a distribution that is in no textbook; or NULL
    const char *reference;
    struct Distribution *next;
} Distribution;

typedef struct Pattern {  // y ~ bernoulli(Phi(eta)) T[lo, hi]
    Stmt *stmt;
    struct Pattern *next;
} Pattern;

// What the `where` of an augmentation requires of an expression.
#define CONDITIONS(X) X(LINEAR, "linear") X(DATA, "data") X(UNKNOWN, "unknown") X(POSITIVE, "positive") X(CONSTANT, "constant")
typedef enum {
    CONDITION_OTHER,
#define X(id, word) CONDITION_##id,
    CONDITIONS(X)
#undef X
} Condition;

typedef struct Augmentation {
    const char *name;
    Span span;
    Pattern *match;  // alternatives
    Ast *where;      // conjunction of calls like linear(eta), data(y), unknown(s), or NULL
    int npatterns;
    Decl **patterns;  // names bound by match
    int nlatents;
    Decl **latents;  // names that `replace` introduces
    Stmt *replace;
    const char *reference;
    struct Augmentation *next;
} Augmentation;

// ---- a model, and the library it uses ----

struct Block {
    BlockKind kind;
    Span span;
    Stmt *body;
    Block *next;
};

typedef struct Model {
    const char *name;
    Block *blocks;
    Request *requests;
    FunctionDecl *functions;
    int ndecls;
    Decl **decls;  // data, variables and definitions, in order of declaration
} Model;

typedef struct Library {
    Distribution *distributions;  // linked in order of reading, with families among them
    Augmentation *augmentations;
    FunctionDecl *functions;
} Library;

#endif
