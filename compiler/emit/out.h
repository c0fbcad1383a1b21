// out.h -- what the program is written with: lines, and expressions as C text.
#ifndef GMC_OUT_H
#define GMC_OUT_H
#include <stdio.h>
#include "../kernel/kernel.h"
#include "../kernel/scope.h"

enum { INDEX_MARK = 1 };                          // before the name of an index, until its function is written (names.c)

typedef struct Named { const Index *index; const char *text; } Named;

typedef struct Out {
    const Program *program;
    const Graph *g;
    Arena       *arena;
    FILE        *file;
    int          indent;
    bool         brief, follows; // the next scope is one statement, on the line that begins it; a line has begun
    Scope        scope;          // expressions that have a name here
    int          nnamed, size;
    Named       *named;          // C names of loop indices
    int          ntaken, taken_size;
    const char **taken;          // names of the kernel's local variables
    const Kernel *kernel;
    bool         team, crew;     // lines are run by all lanes of a team, or of a crew
    const Expr  *group;          // a subscript that is a loop's group: it is written as
    const char  *group_name;
    bool         careful;        // data have not been checked: a subscript may be outside its array
    Map          real;           // expressions that were asked whether they are of type real, not wide
    bool         host;           // what is written runs on the host: sizes, before there is a run
    bool         launching;      // what is written are the sizes of a launch: on the host, where arrays of a run on a GPU are not
    bool         as_read;        // responses as they stand in the files, missing values unfilled
    const char  *flat;           // position of the element that is drawn, where a loop gives it
    struct { const char *name; int depth; bool team; } buffer[64];   // to release at the end of their scopes
    int          nbuffers, depth;
    int          nstreams;       // of one turn of a step that takes turns
    bool         in_turns;       // what is written are launches of one of its turns
    bool         in_checked;     // and within that, launches for --check alone
} Out;

// A C expression: its outermost operator, and whether it begins with a minus that negates all of it.
typedef enum { LOOSE, ADDITIVE, MULTIPLICATIVE, TIGHT } Level;
typedef struct Text { const char *c; Level level; bool minus; } Text;

void        line(Out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));     // one indented line
void        begin(Out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));    // a line that ends in {
void        end(Out *o);
const char *text(Out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
Text        expr_text(Out *o, const Expr *e);
const char *expr_c(Out *o, const Expr *e, Level least);          // in parentheses if it binds less tightly
Text        negated_text(Out *o, const Expr *e);                 // its opposite: k < 1 of k >= 1, !c of another condition
Text        subscript_text(Out *o, const Expr *e);               // counted from 0
Text        position_text(Out *o, const Var *v, int first, int n, Expr *const *at, const Expr *offset);   // row-major among n dimensions from first, plus offset; a subscript NULL: the first
const char *first_position(Out *o, const Var *v, int n, Expr *const *at);     // of the first element with these n subscripts
const char *element_c(Out *o, const Var *v, Expr *const *at);                 // an element: s->beta[..]
const char *index_c(Out *o, const Index *i);                     // counted from 0
Text        extent_text(Out *o, const Expr *e);                  // a size: long
const char *extent_c(Out *o, const Expr *e, Level least);
const char *few_c(Out *o, const Rows *r);                        // whether rows are few, or told one by one
const char *count_text(Out *o, const Count *c);                  // a product of extents
const char *place_text(Out *o, const Place *at);
const char *position_c(Out *o, const Place *at);                 // of an element in its array
const char *var_text(Out *o, const Var *v);                      // d.X or s.beta
const char *number_c(Out *o, double v);                           // the shortest text that is v
const char *c_name(Out *o, const char *name);
const char *whole_text(Out *o, const Expr *e);                   // an array, as a pointer
const char *paren(Out *o, Text t, Level least);
const char *marked(Out *o, const char *index);                   // an index, for names.c
const char *fresh_index(Out *o, const Index *i);                 // a C name for a loop index that no loop around it and no local variable has
void        name_index(Out *o, const Index *i, const char *c);
const char *math_text(Out *o, const Expr *e);                    // in the language's notation
const char *source_line(Out *o, Span s);                             // file.gm:12

// ---- names.c ----

void write_named(FILE *out, Arena *a, const char *program);      // the program, each index with a name that nothing else has in its function

// ---- nodes.c ----

void emit_kernel(Out *o, const Kernel *k);
void emit_header(Out *o, const Kernel *k, const char *end);
#endif
