// write.h -- expressions as C text: what the emitter writes with.
#ifndef GMC_WRITE_H
#define GMC_WRITE_H
#include "../graph/graph.h"

typedef struct Known { const Expr *e; const char *text; } Known;
typedef struct Named { const Index *index; const char *text; } Named;

typedef struct Writer {
    Graph *g;
    Arena *arena;
    FILE  *out;
    int    indent;
    int    temporaries;
    Known *known;            // expressions that have a name in the current C scope
    int    nknown, known_size;
    Named *named;            // C names of loop indices
    int    nnamed, named_size;
    struct { int known, named; } *mark;                 // how many there were of both, at each mark that is not passed
    int    nmarks, mark_size;
    const Var *moving;       // the variable that the kernel writes: nothing that reads it may leave a loop
    struct { const char *name; int indent; bool team; } *scratch;       // buffers to release at the end of the kernel
    int    nscratch, scratch_size;
    const Expr *group;       // a subscript that is a loop's group: it is written as
    const char *group_name;
    bool   careful;          // data have not been checked: a subscript may be outside its array
    bool   host;             // what is written runs on the host: sizes, before there is a run
    bool   as_read;          // responses as they stand in the files, missing values unfilled
    bool   team;             // every lane of a team writes this line: sums are shared among them
    bool   crew;             // a team whose crews draw elements: of a crew, not of the whole team
    const char *number;      // type of local variables: real or wide
    const char *(*predicted)(void *program, Expr *e);    // a sum that an array holds already: the element's C text, or NULL
    void  *program;
} Writer;

void        put(Writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));    // one indented line
void        open_brace(Writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void        close_brace(Writer *w);                          // releases buffers of the scope
void        release_scratch(Writer *w);
const char *text(Writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *write_expr(Writer *w, Expr *e);                  // writes what e needs first, gives e as a C expression
const char *write_factor(Writer *w, Expr *e);                // the same, in parentheses unless it binds tightly
const char *write_subscript(Writer *w, Expr *e);             // counted from 0
const char *write_position(Writer *w, const Var *v, Expr *const *subscript);    // row-major position
const char *write_extent(Writer *w, Expr *e);                // a size: long
const char *var_place(Writer *w, const Var *v);              // d.X or s.beta
const char *c_name(Writer *w, const char *name);
void        name_index(Writer *w, const Index *i, const char *c);
const char *fresh_index(Writer *w, const Index *i);          // a C name for a loop index that no other has here
const char *open_loop(Writer *w, Index *i);                  // for (long i = lo - 1; i < hi; i++) {
void        know(Writer *w, const Expr *e, const char *c);
void        keep_outside(Writer *w, Expr *e, const Loops *inner);     // names the parts of e that the loops do not change
int         mark(Writer *w);
void        forget(Writer *w, int mark);                    // what was named since
void        forget_all(Writer *w);                          // at the beginning of a kernel
#endif
