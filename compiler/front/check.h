// check.h -- what resolve.c and types.c share (check.c), and nobody else needs.
#ifndef GMC_CHECK_H
#define GMC_CHECK_H
#include "front.h"
#include "../base/map.h"
#include "parse.h"

// What the passes find out about a declaration (Decl.front).
typedef struct Facts {
    List tildes;  // Stmt: its distributions, for DECL_VARIABLE
    enum { DATA_UNKNOWN, DATA_ASKED, DATA_ONLY, DATA_NOT } data_only;
    struct Facts *unsure;  // data_only: the next that was found so while a definition of its circle was being examined
    enum { SHAPE_UNKNOWN, SHAPE_ASKED, SHAPE_KNOWN } shape;
    bool provisional_used;   // while SHAPE_ASKED, the shape that follows from its subscripts alone was read
    bool visited, visiting;  // in the search for cycles
    int depth;               // definitions through definitions below, at most MAX_DEPTH
    Stmt *last_site;         // end of Decl.sites
    Type *from_uses;         // the size that uses decide of an unknown whose statements decide none (sizes.c)
    bool ambiguous;          // one of several unknowns whose sizes would serve alike: none is decided
    struct SizeSum *extent;  // a whole number defined in a let block, as a sum of data
    bool written_out;        // its elements are being replaced by what defines them
} Facts;

Facts *facts(Arena *a, Decl *d);

// Elements by their subscripts (elements.c).
enum { MANY_SITES = 60 };                         // beyond, a model was written by a program: a quadratic search is not worth it
bool mentions_decl(const Ast *e, const Decl *d);  // d occurs in e
bool same_elements(const Ast *x, const Ast *y);   // subscripts that run over the same elements: equal, or of loops with equal ranges
bool elements_cover(const Stmt *site, const Stmt *drawn);  // a definition is one of all elements that a `~` draws
// A definition written element by element, of which some equal others, S[2, 1] = S[1, 2], is no recursion.
void elements_known(const Decl *d);

// The name that a left side is about (beta of beta[j][k]), or NULL if it is a longer expression.
Ast *place_root(Ast *e);

// True if e has only data, indices and definitions of these; else *culprit names what is none of them.
bool depends_on_data_only(Arena *a, const Ast *e, const char **culprit);
bool decl_data_only(Arena *a, Decl *d, const char **culprit);

// "normal(mu, sigma)"
const char *signature(Arena *a, const char *name, Decl *const *params, int n);

// Functions (functions.def).
bool function_exists(const char *name);
const char *nearest_function(const char *name);

// Names that users bring from elsewhere (hints.def): what to write instead, or NULL.
const char *foreign_distribution(const char *name);
const char *foreign_function(const char *name);
const char *foreign_statement(const char *name);
const char *foreign_block(const char *words);
const char *foreign_name(const char *name);
// normal of Stan's normal_lpdf, normal_rng, ...; NULL: it has no such suffix
const char *without_suffix(const char *name, const char **suffix);

// The closest of some names, if it is close enough to be a slip.
typedef struct Nearest {
    const char *wanted, *best;
    int distance;
    bool is_function;  // of three letters, another one makes another word: only one that is left out or too much is a slip (lag, log)
} Nearest;
void nearest_try(Nearest *n, const char *candidate);

// Functions of the model and of the library (inline.c).
const FunctionDecl *function_named(const Model *m, const Library *lib, const char *name, int nargs);  // nargs -1: any number
typedef struct Inliner Inliner;
Inliner *inliner_new(Arena *a, Diags *d);
// The right side of a function with these arguments; false after a message. `taken` says whether a name is in use at the call.
bool inline_call(Inliner *in, Ast *call, const FunctionDecl *f, bool (*taken)(void *, const char *), void *closure);

// Arguments given by name go to the places of their parameters (arguments.c); called by front_resolve before anything else.
void front_place_arguments(Arena *a, Model *m, const Library *lib, Diags *d);

// Arrays with rows of different lengths become one vector each (ragged.c); called by front_resolve before names are looked up.
void front_flatten_rows(Arena *a, Model *m, Diags *d);

// Names that a loop declares and defines without a subscript get one (local.c); called by front_resolve before names are looked up.
// false after a message.
bool front_local_names(Arena *a, Model *m, Diags *d);

// Counts that a label forces to 0 get statements that leave the label free (locked.c); called by front_resolve before names are looked up.
void front_free_counts(Arena *a, Model *m, const Library *lib, Diags *d);

// Names, and then types, of the bodies in a library; called by front_resolve_library.
void resolve_library(Arena *a, Library *lib, Diags *d);  // library_names.c
void types_library(Arena *a, Library *lib, Diags *d);    // types.c

const char *plural(Arena *a, int n, const char *one, const char *many);  // "1 argument", "2 arguments"
#endif
