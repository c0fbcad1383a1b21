// share.h -- who shares which loop: what share.c puts together, and from what (pieces.c, groups.c).
#ifndef GMC_SHARE_H
#define GMC_SHARE_H
#include "lower.h"

typedef struct Share {
    Lower *p;
    Arena *a;
    Kernel *kernel;
    bool team, crew;  // who runs the loop; neither: one lane
    int temporaries;
    Map totals;  // names of locals that are summed into
    const Order *ordered;            // rows by a key that is drawn, which the kernel has put in order; or NULL
    const Node *elements[MAX_RANK];  // the loops over elements around it
    int nelements;
    bool own, others;  // sums of the crew that are over the rows of its element; over others
} Share;

// ---- pieces.c ----

Var *total_of_value(Share *s, const Expr *value);  // a local to sum it into, by what is summed

Node *loop_over(Share *s, Sharing how, Index *i, const Var *moving);  // one loop, without a body
// loops from..n-1 in order around `body`, the guard where it belongs
Node *in_order(Share *s, const Loops *l, int from, Node *body, const Var *moving);
// the body of loop i, where the guard is true, if it is tested there
Node *with_guard(Share *s, const Loops *l, int i, Node *body);
Node *skip_unless(Share *s, Expr *guard, Node *body);          // the body where the guard is true
Node *under_condition(Share *s, Expr *condition, Node *body);  // the same of a whole statement
Node *wrap_node(Share *s, NodeKind kind, Node *body);          // a node with this body
Node *barrier(Share *s);
Node *last_of(Node *n);                              // the end of a list
Node *start_total(Share *s, Var *total);             // a local that is 0 at first, and
Node *add_value(Share *s, Var *total, Expr *value);  // grows by the value
Look test_no_lane(const Expr *e, void *with);        // for ex_find: what needs loops or arrays of its own

// Of the statements of a sum:
int values_of(const Node *list, int most, Expr **value);  // different values that they add; -1: more than `most`
int arrays_of(const Node *list, Var **array);             // the arrays that they add to, in order; -1: more than 4
Node *copy_list(Share *s, const Node *list);
Node *named_once(Share *s, Node *list);  // a value that several places get is computed once

// ---- groups.c: each gives the nodes in the place of a sum; NULL, or false: it is not of that form ----

Node *by_group(Share *s, const Node *sum);                // places that a gather of data picks
Node *by_segment(Share *s, const Node *sum, bool drawn);  // several places a group; drawn: by keys that the sweep draws
// Rows that count for the element they name: the loop over them comes first in *l, and goes through those of *element alone, in *order.
bool own_rows(Share *s, const Node *sum, Loops *l, const Order **order, Index **element);

#endif
