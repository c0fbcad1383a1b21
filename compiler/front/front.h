// front.h -- text to checked tree, for models and for the standard library.
//
//   parse -> resolve -> types
//
// Each of the three reports the errors that it finds and returns false if there are any. After a failed parse the rest should not
// run. Resolve and types can both run over a tree with errors, since whatever is wrong is marked and reported once.
#ifndef GMC_FRONT_H
#define GMC_FRONT_H
#include <stdio.h>
#include "../base/diag.h"
#include "ast.h"

// How a file that a model includes is read: source_read, or what the driver has put in its place.
extern Source *(*front_read)(Arena *, const char *path);

// Syntax only. *out is set even after errors, to what could be read.
bool front_parse_model(Arena *a, const Source *s, Diags *d, Model **out);

// Appends the distributions, families and augmentations of one file.
bool front_parse_library(Arena *a, const Source *s, Diags *d, Library *lib);

// Names in the bodies of the library, and the types of distributions and families. Call it once,
// after all files are parsed, before any model is resolved.
bool front_resolve_library(Arena *a, Library *lib, Diags *d);

// Names. Afterwards every AST_NAME has its declaration and every Stmt its decl. Model.decls has data, variables and definitions in order of
// declaration, except that sizes among data precede their uses.
bool front_resolve(Arena *a, Model *m, const Library *lib, Diags *d);

// Element types and shapes of every declaration and expression.
bool front_types(Arena *a, Model *m, const Library *lib, Diags *d);

// Warnings about priors that are seldom meant, and names of no use. After types, of a model without errors.
void front_advise(Arena *a, Model *m, const Library *lib, Diags *d);

const Distribution *library_distribution(const Library *lib, const char *name);  // not a family; name interned; NULL if none
const Distribution *library_family(const Library *lib, const char *name);
const Augmentation *library_augmentation(const Library *lib, const char *name);

// normal_lpdf(y | mu, sigma), normal_lcdf, normal_lccdf, normal_cdf, poisson_lpmf: functions that a distribution of the library brings.
// Arguments: the value, and the distribution's. NULL if the name is none of a distribution's.
typedef enum { LAW_DENSITY, LAW_LOG_CDF, LAW_LOG_CCDF, LAW_CDF } LawPart;
const Distribution *law_function(const Library *lib, const char *name, LawPart *part);

Condition condition_of(const Ast *e);        // linear(eta) and the like; CONDITION_OTHER: it is none
const char *inverse_link(const char *name);  // logit: inv_logit; NULL if no definition has this on its left side
bool is_solver(const char *name);            // ode_rk45, ode_bdf: functions that solve a differential equation

// Equality of expressions as written, after resolve.
bool ast_same(const Ast *a, const Ast *b);

// Whether the expression has this name, as it is written.
bool ast_names(const Ast *e, const char *name);

// Text: no addresses, the same for the same model; parentheses only where the grammar needs them.
void ast_print(FILE *out, const Model *m);
void ast_print_expr(FILE *out, const Ast *e);
void ast_print_type(FILE *out, const Type *t);  // "int", "real[N, p]"
const char *ast_text(Arena *a, const Ast *e);   // an expression as a string
const char *ast_type_text(Arena *a, const Type *t);
#endif
