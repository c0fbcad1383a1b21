// nodes.h -- the files that write the body of a kernel, among themselves: one function a kind of node.
#ifndef GMC_NODES_H
#define GMC_NODES_H
#include "out.h"

// ---- elements.c ----

bool is_one_statement(const Node *body);  // a plain one, which may be on the line that begins a loop or an `if`
bool only_ratios(const Node *list);  // the nodes do nothing but for --check
bool is_sum_of(const Out *o, const Node *n);   // the name of a sum from 0 that one statement adds up (loops.c)
bool begins_sum(const Out *o, const Node *n);  // the name of a sum, whose loop follows on its line (loops.c)
// its place in its array, by which streams and faults name it; of a scalar 0
const char *element_text(const Out *o, const Expr *e);
// the stream of random numbers of an element: Stream g
const char *stream_text(const Out *o, const Var *v, const char *element);
// of the logarithm of an element; NULL: none is kept
const char *kept_place(const Out *o, const Var *kept, const Expr *element);
// log x and log(1 - x) of what is drawn are written as these
void know_logs(Out *o, const KeptLogs *logs, const char *log_x, const char *log1m_x);
void no_ratio(const Out *o);                                    // --check has no ratio for this update
void checked(const Out *o, const char *format, ...) PRINTS(2);  // a line for --check, which a lesson is without
void store(Out *o, const char *place, const char *x);           // by a lane of the crew or the team that is here

// ---- the kinds of nodes, each in the file named for it in README.md. Those that have a body write it by o->write ----

#define NODE(id, name, word, help) void emit_##word(Out *o, const Node *n);
#include "../kernel/kernel.def"

void emit_draw_by_law(const Out *o, const Node *draw, const Node *store);  // one DRAW with what is stored
void emit_shared_draw(Out *o, const SharedDraw *f);                        // the function that kernels call
void call_shared_draw(Out *o, const Kernel *k);
// lp, of the value x that is tried, put in its place if there is one
void emit_density(Out *o, const Node *n, const Conditional *c, const char *place, const Node *again, const KeptLogs *logs);
void emit_classify(Out *o, const Node *n);
void emit_again(Out *o, const Node *again);  // series, after what they read has changed
void emit_given(Out *o, const Ode *ode);     // what a function of a differential equation is given
void emit_columns(Out *o, const Columns *c);

// ---- nodes.c: all kinds ----

void emit_list(Out *o, const Node *list);  // to the end of the block

// ---- kernels.c ----

const char *header_text(const Out *o, const Kernel *k);  // its comment and its head
void emit_kernel(Out *o, const Kernel *k);
// In a lesson: its comment, the law alone; its body, in a function that has the bodies of others as well.
const char *law_text(const Out *o, const Kernel *k);
void emit_body(Out *o, const Kernel *k);
#endif
