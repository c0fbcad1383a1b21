// parse.h -- what the lexer and the grammar share: the state of one parse, and the constructors of nodes.
#ifndef GMC_PARSE_H
#define GMC_PARSE_H
#include "../base/diag.h"
#include "ast.h"

typedef struct List {
    int n, room;
    void **item;
} List;

typedef struct StmtList {
    Stmt *first, *last;
} StmtList;

typedef struct Declarator {  // N, x[3], K = 256, y[g in 1:G][n[g]]
    const char *name;
    Span span;
    Decl *row;  // the index of the rows, g; or NULL
    List dims;
    Ast *init;
} Declarator;

typedef struct Call {
    const char *name;
    Span name_span, span;
    List args;
} Call;

typedef struct Truncation {
    bool present, censored;  // censored: C[lower, upper]
    Ast *lower, *upper;
} Truncation;

typedef struct TypeExpr {  // int<lower=0>, matrix[N, p], array[N] vector[p]
    Span span;
    Type type;
    Constraint constraint;
    Ast *lower, *upper;
    const char *word, *lacks;  // `vector` without its size, which may stand behind the name, and what it takes; or NULL
} TypeExpr;

typedef struct ResultType {  // of a function
    bool present;
    TypeExpr type;
} ResultType;

typedef struct Including {  // a file that is being read, while one that it includes is
    const Source *source;
    int at;
    void *buffer;  // the lexer's
    struct Including *outer;
} Including;

typedef struct Parse {
    Arena *arena;
    const Source *source;
    Diags *diags;
    Model *model;  // one of these two
    Library *stdlib;
    Including *including;  // the files around this one
    List read;             // const char *: real paths of all files so far; none is read twice
    int at;                // the lexer's place in the text
    int comment_at;        // where an open comment started
    bool started;          // the token that picks the language has been sent
    bool failed;
    bool quiet;       // no more syntax errors: they would follow from one already reported
    bool too_deep;    // reported once
    int bad_at;       // where the last character was that the lexer refused, 0 if none
    BlockKind block;  // being parsed
    Block **last_block;
    Request **last_request;
    Distribution *distribution;  // being parsed
    FunctionDecl *function;      // likewise; NULL: none
    Augmentation *augmentation;
    Pattern **last_pattern;
    Natural **last_natural;
} Parse;

void foreign_block_named(Parse *p, Span at, const char *words);  // its statements are parsed, and forgotten

void list_add(Arena *a, List *l, void *item);
Diag *parse_fail(Parse *p, Span at, DiagCode code, const char *a, const char *b);  // the text is refused, and read on
Decl *decl_new(Parse *p, DeclKind kind, const char *name, Span at);

// Expressions. Each node's depth is one more than its deepest child's; beyond MAX_DEPTH it is reported and made a leaf.
Ast *ast_number(Parse *p, Span at, AstKind kind, double value);
Ast *ast_name(Parse *p, Span at, const char *name);
Ast *density_call(Parse *p, Span at, const char *name, Span bar, Ast *value, List parameters);  // normal_lpdf(y | mu, sigma)
void bar_misplaced(Parse *p, Span at);
Ast *ast_labelled(Parse *p, Span at, const char *label, Ast *value);  // sd = s, among arguments
Ast *ast_list(Parse *p, Span at, AstKind kind, const char *name, List kids);
Ast *ast_index(Parse *p, Span at, Ast *array, List subscripts);
Ast *ast_binary(Parse *p, Span at, Op op, Ast *a, Ast *b);
Ast *ast_left_divide(Parse *p, Span at, Ast *a, Ast *b);  // a \ b
Ast *ast_unary(Parse *p, Span at, Op op, Ast *a);
Ast *ast_kids(Parse *p, Span at, AstKind kind, Ast *a, Ast *b, Ast *c);  // NULL ends the list, except in AST_RANGE
Ast *ast_function(Parse *p, Span at, const char *t, Span t_span, const char *y, Span y_span, Ast *body);
Ast *ast_reduce(Parse *p, Span at, const char *name, const char *index, Span index_span, Ast *lo, Ast *hi, Ast *body);

// Types.
TypeExpr type_scalar(Parse *p, Span at, BaseType base, List bounds);
TypeExpr type_sized(Parse *p, Span at, const char *word, List bounds, bool sized, List dims);
TypeExpr type_array(Parse *p, Span at, List dims, TypeExpr of);
Ast *bound(Parse *p, Span at, const char *name, Ast *value);  // a node that type_* read

// Statements.
Stmt *stmt_new(Parse *p, StmtKind kind, Span at);
StmtList stmt_one(Stmt *s);
StmtList stmt_join(StmtList a, StmtList b);
StmtList stmt_tilde(Parse *p, Span at, const TypeExpr *type, Declarator *declared, Ast *lhs, Call call, Truncation t);
StmtList stmt_define(Parse *p, Span at, Ast *lhs, Ast *rhs);
StmtList stmt_declare(Parse *p, Span at, TypeExpr type, List declarators);
StmtList stmt_for(Parse *p, Span at, List ranges, StmtList body);  // ranges: Decl of each index
StmtList stmt_if(Parse *p, Span at, Ast *cond, StmtList yes, StmtList no);
StmtList stmt_block(Parse *p, Span at, StmtList body);
StmtList stmt_add(Parse *p, Span at, Ast *lhs, Ast *rhs);  // target += rhs
StmtList stmt_not_one(Parse *p, Span at, Ast *e);
Decl *decl_new(Parse *p, DeclKind kind, const char *name, Span at);
Decl *decl_index(Parse *p, const char *name, Span at, Ast *lo, Ast *hi);
Truncation truncation(Parse *p, Span at, const char *word, Ast *lower, Ast *upper);  // word NULL: it has parentheses
Truncation truncation_of_one_end(Parse *p, Span at, Span end, const char *word);     // T[0]: below or above?

// Blocks and requests.
void block_add(Parse *p, Span at, StmtList body);
void request_add(Parse *p, Span at, List names, Span name_span, const char *by, List settings, const char *as);

// Files of the standard library.
void distribution_begin(Parse *p, Span at, const char *name, bool is_family);
void distribution_parameter(Parse *p, TypeExpr type, const char *name, Span at);
void distribution_support(Parse *p, Span at, const char *word, List args);
void distribution_part(Parse *p, Span at, const char *part, Ast *value);
void distribution_text(Parse *p, Span at, const char *part, const char *text);
void distribution_natural(Parse *p, const char *name, Ast *statistic);
void distribution_synonym(Parse *p, Span at, const char *word, const char *of);
void distribution_law(Parse *p, Span at, Ast *of, Call call);
void distribution_law_parameter(Parse *p, const char *name, Ast *value);
void distribution_end(Parse *p);
void augmentation_begin(Parse *p, Span at, const char *name);
void augmentation_match(Parse *p, Span at, Ast *lhs, Call call, Truncation t);
void augmentation_end(Parse *p);

// Files that are included.
void include_begin(Parse *p, void *scanner, Span at, const char *name);
void lexer_push(Parse *p, void *scanner, const Source *s);

// Functions of models and of the library.
void model_named(Parse *p, Span at, const char *name);
void formula_begin(Parse *p);
void formula_parameter(Parse *p, const TypeExpr *type, const char *name, Span at);
void formula_end(Parse *p, Span at, const char *name, const TypeExpr *type, Ast *body);

void syntax_error(Parse *p, Span at, const char *const *expected, int n);  // names of the tokens that would be allowed there
void nested_too_deeply(Parse *p, Span at);
#endif
