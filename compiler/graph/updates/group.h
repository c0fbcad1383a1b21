// group.h -- group moves: several unknowns become something else together, by a number that is drawn for it.
#ifndef GMC_GRAPH_GROUP_H
#define GMC_GRAPH_GROUP_H
#include "../conditional.h"
#include "../update.h"

// T_c, as the file that proposes it says it. It stands first in the struct of that file, which is what its functions are given.
typedef struct Group Group;
struct Group {
    Graph *g;
    Var *by;                                      // c
    bool (*moves)(const Group *x, const Var *v);  // whether elements of v move
    Expr *(*becomes)(Group *x, Expr *ref);        // an element of such; its subscripts do not move
    // what becomes of e, which is no reference; NULL: what becomes of its parts. The member is NULL where there is nothing of the kind
    Expr *(*instead)(Group *x, Expr *e);
    bool sums;    // what is put in may have sums of its own
    bool failed;  // something that moves is read whole, or in a subscript, or the file says so: T_c is not known
};

bool group_moves(const Var *v, void *x);             // `moves`, for walks over expressions
bool group_mentions(const Group *x, const Expr *e);  // something that moves stands in e, which may be NULL
Expr *group_moved(Group *x, Expr *e);                // e with T_c x for x, or x->failed
Expr *group_moved_part(Group *x, Expr *e);           // the same of what `instead` takes apart: x->failed stays if it was

// Conditions.
// a move may follow the update of v, no series has to be computed again, and its selection, which may be NULL, is that of
// `before` variables asked for earlier
bool in_one_sweep(const Graph *g, const Var *v, int before, Selection **selection);
Var *var_drawn(const Factor *f);                        // the variable that a statement draws elements of; NULL: it draws none
bool has_own_plates(const Factor *f, const Expr *ref);  // subscripts of ref are plates of f, no two of them the same
// the element of v that e reads; NULL: there is none, there are several, or v is read whole
Expr *only_reference(const Expr *e, const Var *v);
bool is_unbounded(const Var *v);  // it has no ends that are numbers

// The law of c.
// c, and other arrays of the move: named like nothing else
Var *var_hidden(Graph *g, const char *name, Span at, int rank, Expr *const *dim);
Factor *factor_of_move(Graph *g, const Factor *f, Expr *log_density);              // f with this in its place, which draws nothing
Factor *factor_of_ends(Graph *g, const Factor *like, Loops p, Expr *log_density);  // a Jacobian, or ends: nothing of data
// of an element of c, in a family if these are asked for and there is one
Conditional *law_of_move(Graph *g, Var *by, const Reading *of, bool families);
bool draws_apart(const Conditional *c);  // elements of c are drawn by themselves
// the law if they are; NULL, also if `of` is: there is none, and nothing reads c
Conditional *law_apart(Graph *g, Var *by, const Reading *of, bool families);

// The update.
// e with these in place of the indices, all at once
Expr *at_subscripts(Expr *e, int rank, Index *const *index, Expr *const *args);
GroupMove *group_move_new(Graph *g, Var *by, bool added, int room);       // moves nothing yet; added: 0 leaves all as it is, else 1 does
Carried *group_move_carry(Graph *g, GroupMove *o, Var *v);                // v[k, l, ...] moves, with indices of its own
Carried *group_move_carry_at(GroupMove *o, Var *v, Index *const *index);  // with these
// that draws c by its law and then moves what the group_move says; in a selection, in place of gradients
Update *group_update(Graph *g, UpdateKind kind, Span at, Conditional *law, GroupMove *o, Selection *selection, const char *reason);
#endif
