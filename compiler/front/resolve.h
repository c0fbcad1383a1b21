// resolve.h -- what the files from uses.c to resolve.c share: one pass over the names of a model, or of a library.
#ifndef GMC_RESOLVE_H
#define GMC_RESOLVE_H
#include "check.h"

typedef struct Resolve {
    Arena *a;
    Diags *d;
    const Library *lib;
    Model *m;                // NULL: a library
    FunctionDecl *function;  // whose right side is being read
    Inliner *inliner;
    Map names;         // name -> Decl
    Map lost;          // name -> Decl, of names used but never defined
    List order;        // Decl, as met
    List scope;        // Decl of the indices around the place being read
    List where;        // the conditions around it; in a search, the declarations on the way
    bool modelling;    // not a library
    bool predicting;   // reading a predict block
    Map marked;        // statements under a condition, and data that some statement observes
    const Ast *whole;  // the right side of the definition that is being read: where a differential equation may be solved
} Resolve;

static inline void pop(List *l) { l->n--; }  // of `scope` or `where`: the place being read is left

// ---- uses.c ----

Decl *resolve_index(const Resolve *r, const char *name);   // an index around the place being read, or NULL
Decl *resolve_lookup(const Resolve *r, const char *name);  // the same, or a declaration
// The statement list `s`, each statement with the indices and conditions around it in scope.
void resolve_each_stmt(Resolve *r, Stmt *s, void (*visit)(Resolve *, Stmt *), bool report_hidden);
void resolve_undefined(Resolve *r, Ast *e);  // a message about a name; it is lost from here on
void resolve_use(Resolve *r, Ast *e);        // every name in e finds its declaration
void resolve_use_all(Resolve *r, Ast **kid, int n);
void resolve_use_decl(Resolve *r, Decl *d);
void resolve_use_stmt(Resolve *r, Stmt *s);
void resolve_function(Resolve *r, FunctionDecl *f);
void resolve_left_side(Resolve *r, Stmt *s);  // messages about what stands there

// ---- declared.c ----

void declared_twice(Resolve *r, Span at, const Decl *first);  // a message
void declare_typed(Resolve *r, Stmt *s);                      // written types, first
void declare_stmt(Resolve *r, Stmt *s);                       // then what `~` and `=` declare by themselves
void declare_flat(Resolve *r, Stmt *s);                       // and what has no distribution
Decl *declare_untyped(Resolve *r, DeclKind kind, const Ast *name, BlockKind block);

// ---- order.c ----

int resolve_depth(Resolve *r, Decl *d);    // how many definitions deep this one goes; circles get their messages
void resolve_order(Resolve *r, Model *m);  // Model.decls: data, then all else as it stands in the text

// ---- requests.c ----

// `latents`: names that requests give, `asked`: what they are about, so far
void resolve_request(Resolve *r, Request *q, Map *latents, Map *asked);
#endif
