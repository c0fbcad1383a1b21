// out.h -- what the program is written with: its lines and blocks, and expressions as C text.
//
// A block of the program is a block here:
//
//   BLOCK ("for (long j = 0; j < %s; j++)", size) {           for (long j = 0; j < d->J; j++) {
//       o->team = false;                                          lp += s->theta[j];
//       line(o, "lp += %s[j];", array);                       }
//   }
//
// In it `o` is a copy of the o around it. What a block sets of how things are written, a lane that is alone, names of indices, expressions
// that have a name, ends with it; nobody sets it back.
#ifndef GMC_OUT_H
#define GMC_OUT_H
#include <stdio.h>
#include "../kernel/kernel.h"
#include "../kernel/scope.h"

typedef struct Page Page;  // layout.c: the text so far

typedef struct NamedIndex {
    const Index *index;
    const char *text;
    const struct NamedIndex *before;
} NamedIndex;  // a C name of a loop index
typedef struct Taken {
    const char *name;
    const struct Taken *before;
} Taken;  // of a local variable of the kernel
// scratch memory, released where its block ends
typedef struct Buffer {
    const char *name;
    bool team;
    const struct Buffer *before;
} Buffer;

typedef struct Out {
    // the program
    const Program *program;
    const Graph *g;
    Arena *arena;
    Page *page;
    Scope *scope;                                    // expressions that have a name here
    Map *real;                                       // expressions -> whether they are of type real, not wide
    void (*write)(struct Out *o, const Node *list);  // the nodes of a body, of all kinds (nodes.c)

    // how expressions are written
    const Kernel *kernel;
    bool team, crew;    // lines are run by all lanes of a team, or of a crew
    bool careful;       // data have not been checked: a subscript may be outside its array
    bool host;          // what is written runs on the host: sizes, before there is a run
    bool launching;     // what is written are the sizes of a launch: on the host, where arrays of a run on a GPU are not
    bool as_read;       // responses as they are in the files, missing values unfilled
    const Expr *group;  // a subscript that is a loop's group: it is written as
    const char *group_name;
    const char *flat;  // position of the element that is drawn, where a loop gives it
    const NamedIndex *named;
    const Taken *taken;
    const Var *sum_of;  // the sum whose declaration the next loop writes

    // launches
    bool in_category;     // within the loop over categories
    int standing_in;      // in place of the joint normal of this number; 0: none
    const Launch *under;  // the condition of this launch is true

    // the block
    int indent, depth;  // depth: blocks of the kernel around this place
    bool braces;
    bool sole;            // the node that is written is the only one of its block, whose names are then its own
    const char *closing;  // what its last line is
    int known;            // names in the scope where it begins; -1: what it names goes on
    const Buffer *buffers;
    struct Out *outer;
} Out;

// ---- layout.c: lines and blocks ----

#define PRINTS(k) __attribute__((format(printf, k, k + 1)))

Page *page_new(Arena *a, FILE *to, bool plain);
void page_close(Page *p);                                    // all of it is written
void line(const Out *o, const char *format, ...) PRINTS(2);  // one line, indented, or the rest of one
void part(const Out *o, const char *format, ...) PRINTS(2);  // of a line that goes on
void end_line(const Out *o);                                 // that has begun
void blank(const Out *o);
void begin_brief(const Out *o, const char *head);  // a block on one line
void end_brief(const Out *o);
void directive(const Out *o, const char *format, ...) PRINTS(2);  // a line of the preprocessor
const char *text(const Out *o, const char *format, ...) PRINTS(2);

// What follows one of these is a statement or a block of C, in which o is that of the block. It is not left by return.
#define IN_BLOCK(begin)                                                         \
    for (Out block_ = begin, *open_ = &block_; open_; open_ = block_end(open_)) \
        for (Out *o = open_; o; o = NULL)
#define BLOCK(...)             IN_BLOCK(block_begin(o, true, __VA_ARGS__))        // head {  }
#define PLAIN_BLOCK            IN_BLOCK(block_plain(o))                           // {  }
#define NOTED(with, note, ...) IN_BLOCK(block_noted(o, with, note, __VA_ARGS__))  // head {  note     and the last line is `with`
#define CASES(...)             IN_BLOCK(block_cases(o, __VA_ARGS__))              // of a switch, which are below its head
#define INDENTED               IN_BLOCK(block_indented(o))                        // lines of a case
#define BODY(braces, ...)      IN_BLOCK(block_begin(o, braces, __VA_ARGS__))      // without braces one statement, on the line of the head
#define OTHERWISE              IN_BLOCK(block_otherwise(o, NULL))                 // after a block: } else {  }
#define OTHERWISE_IF(c)        IN_BLOCK(block_otherwise(o, c))                    // } else if (c) {  }
#define ENDING(with, ...)      IN_BLOCK(block_ending(o, with, __VA_ARGS__))       // a list or a struct: the last line is `with`
#define FUNCTION(...)          IN_BLOCK(function_begin(o, __VA_ARGS__))           // or a kernel
#define SAME_BLOCK             IN_BLOCK(same_block(o))   // how its lines are written ends with it, names of expressions do not
#define SCOPE                  IN_BLOCK(scope_begin(o))  // no block of the program: what is named in it has that name there alone

Out block_begin(Out *o, bool braces, const char *format, ...) PRINTS(3);
Out block_plain(Out *o);
Out block_noted(Out *o, const char *with, const char *note, const char *format, ...) PRINTS(4);
Out block_cases(Out *o, const char *format, ...) PRINTS(2);
Out block_indented(Out *o);
Out block_otherwise(Out *o, const char *condition);
Out block_ending(Out *o, const char *with, const char *format, ...) PRINTS(3);
Out function_begin(Out *o, const char *format, ...) PRINTS(2);
Out scope_begin(Out *o);
Out same_block(Out *o);
Out *block_end(Out *o);                                   // NULL
void buffer(Out *o, const char *name, const char *size);  // scratch memory, to the end of the block

// ---- names.c: names ----

enum { INDEX_MARK = 1 };  // before the name of an index, until its function is written

const char *c_name(const Out *o, const char *name);   // of a variable of the model, if need be apart from words of C
const char *marked(const Out *o, const char *index);  // an index, for rename.c
const char *fresh_index(Out *o, const Index *i);      // a C name for a loop index that no loop around it and no local variable has
void name_index(Out *o, const Index *i, const char *c);
const char *index_text(const Out *o, const Index *i);  // that name
void take_name(Out *o, const char *name);              // a local variable has it
void know(Out *o, const Expr *e, const char *name);    // the expression is written as this, to the end of the block

// The number of a field of Data or State, from 1; v NULL, or no field: 0.
const char *data_number(const Out *o, const Program *p, const Var *v);
const char *state_number(const Out *o, const Program *p, const Var *v);

// ---- rename.c ----

// each index with a name that nothing else has in the function
void write_named(FILE *out, Arena *a, const char *function, size_t n, bool plain);  // plain: numbers of all types are doubles

// ---- wrap.c ----

void write_wrapped(FILE *out, const char *all, size_t n);  // its lines, long ones as several

// ---- numbers.c, text.c: expressions ----

// A C expression: its outermost operator, and whether it begins with a minus that negates all of it.
typedef enum { LOOSE, ADDITIVE, MULTIPLICATIVE, TIGHT } Level;
typedef struct Text {
    const char *c;
    Level level;
    bool minus;
} Text;

Text number_text(const Out *o, double v);    // as short as it can be; a computed one by its formula
const char *number_c(const Out *o, double v);
Text expr_text(const Out *o, const Expr *e);
const char *expr_c(const Out *o, const Expr *e, Level least);  // in parentheses if it binds less tightly
Text negated_text(const Out *o, const Expr *e);                // its opposite: k < 1 of k >= 1, !c of another condition
Text subscript_text(const Out *o, const Expr *e);              // counted from 0
const char *index_c(const Out *o, const Index *i);             // counted from 0
// row-major among n dimensions from first; a subscript NULL: the first
Text position_text(const Out *o, const Var *v, int first, int n, Expr *const *at);
const char *first_position(const Out *o, const Var *v, int n, Expr *const *at);  // of the first element with these n subscripts
const char *element_c(const Out *o, const Var *v, Expr *const *at);              // an element: s->beta[..]
Text extent_text(const Out *o, const Expr *e);                                   // a size: long
const char *extent_c(const Out *o, const Expr *e, Level least);
const char *few_c(const Out *o, const Rows *r);        // whether rows are few, or listed one by one
const char *count_text(const Out *o, const Count *c);  // a product of extents
const char *place_text(const Out *o, const Place *at);
const char *position_c(const Out *o, const Place *at);  // of an element in its array
const char *var_text(const Out *o, const Var *v);       // d.X or s.beta
const char *scalar_text(const Out *o, const Var *v);    // the value of one without subscripts: *s->mu, in a lesson s->mu
const char *whole_text(const Out *o, const Expr *e);    // an array, as a pointer
const char *paren(const Out *o, Text t, Level least);
const char *math_text(const Out *o, const Expr *e);     // in the language's notation
const char *formula_text(const Out *o, const Expr *e);  // the same, as the runtime reads it
const char *source_line(const Out *o, Span s);          // file.gm:12
#endif
