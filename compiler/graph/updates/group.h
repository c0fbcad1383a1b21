// group.h -- group moves: a transformation of several unknowns by a number c that is drawn (Liu and Sabatti 2000).
#ifndef GMC_GRAPH_GROUP_H
#define GMC_GRAPH_GROUP_H
#include "../conditional.h"
#include "../update.h"

// The transformation T_c, as functions of the file that proposes it. It is the first member of that file's struct, which its functions get.
typedef struct Group Group;
struct Group {
    Graph *g;
    Var *by;                                      // c
    bool (*moves)(const Group *x, const Var *v);  // whether elements of v change
    Expr *(*becomes)(Group *x, Expr *ref);        // the new value of such an element; its subscripts do not change
    // the new value of e, which is no reference; NULL: its parts are transformed. The member is NULL if no such e needs care
    Expr *(*instead)(Group *x, Expr *e);
    bool sums;    // new values may have sums of their own
    bool failed;  // T_c cannot be applied: an array that changes is read whole or in a subscript, or the file rejects it
};

bool group_moves(const Var *v, void *x);             // `moves`, for walks over expressions
bool group_mentions(const Group *x, const Expr *e);  // e, which may be NULL, mentions something that changes
Expr *group_moved(Group *x, Expr *e);                // e with T_c x for x, or x->failed
Expr *group_moved_part(Group *x, Expr *e);           // the same for parts of what `instead` takes apart; x->failed is kept

// Conditions.
// A move may follow the update of v, without a series to compute again. *selection is its selection, or NULL; it must be that of the
// `before` variables tested earlier.
bool in_one_sweep(const Graph *g, const Var *v, int before, Selection **selection);
Var *var_drawn(const Factor *f);                        // the variable to whose elements a statement gives a distribution; NULL: none
bool has_own_plates(const Factor *f, const Expr *ref);  // subscripts of ref are plates of f, no two of them the same
// the element of v that e reads; NULL: there is none, there are several, or v is read whole
Expr *only_reference(const Expr *e, const Var *v);
bool is_unbounded(const Var *v);  // it has no ends that are numbers

// The law of c.
// c, or another array of the move, under a fresh name
Var *var_hidden(Graph *g, const char *name, Span at, int rank, Expr *const *dim);
Factor *factor_of_move(Graph *g, const Factor *f, Expr *log_density);              // f with this log density, and no distribution
Factor *factor_of_ends(Graph *g, const Factor *like, Loops p, Expr *log_density);  // a factor without data: a Jacobian, or ends
// of an element of c, in a family if these are asked for and there is one
Conditional *law_of_move(Graph *g, Var *by, const Reading *of, bool families);
bool draws_apart(const Conditional *c);  // elements of c are drawn by themselves
// the law if they are; NULL, also if `of` is: there is none, and nothing reads c
Conditional *law_apart(Graph *g, Var *by, const Reading *of, bool families);

// The update.
// e with these in place of the indices, all at once
Expr *at_subscripts(Expr *e, int rank, Index *const *index, Expr *const *args);
GroupMove *group_move_new(Graph *g, Var *by, bool added, int room);       // of no unknowns yet; added: the identity is c = 0, else c = 1
Carried *group_move_carry(Graph *g, GroupMove *o, Var *v);                // adds v[k, l, ...], with indices of its own
Carried *group_move_carry_at(GroupMove *o, Var *v, Index *const *index);  // with these
// draws c from its law, then changes the unknowns of the group move; in a selection, with its Gibbs updates
Update *group_update(Graph *g, UpdateKind kind, Span at, Conditional *law, GroupMove *o, Selection *selection, const char *reason);
#endif
