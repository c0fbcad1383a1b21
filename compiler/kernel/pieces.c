// pieces.c -- what shared loops are put together from: loops with their guard where it belongs, totals, statements.
#include <string.h>
#include "../graph/terms/naming.h"
#include "share.h"

enum { LONGEST_VALUE = 24 };  // of a name

// What is summed into it names it: total_slope_mu. What has no short name has a number.
Var *total_of_value(Share *s, const Expr *value)
{
    const Loops none = {0};
    const char *of = value_name(s->p->g, value, &none), *name = arena_printf(s->a, "total_%s", of);
    if (!*of || strlen(of) > LONGEST_VALUE || map_get(&s->p->g->taken, name))
        return local_new(s->a, intern(arena_printf(s->a, "total%d", ++s->temporaries)));
    Var *local = local_named(s->a, name);
    for (int k = 2; map_get(&s->totals, local->name); k++) local = local_named(s->a, arena_printf(s->a, "%s_%d", name, k));
    map_put(s->a, &s->totals, local->name, local);
    return local;
}

Node *loop_over(Share *s, Sharing how, Index *i, const Var *moving)
{
    Node *n = node_new(s->a, NODE_LOOP);
    n->loop.how = how;
    n->loop.n = 1;
    n->loop.index[0] = i;
    n->loop.moving = moving;
    n->loop.keeps = true;
    return n;
}

// The body where the guard is true.
Node *skip_unless(Share *s, Expr *guard, Node *body)
{
    Expr *left = condition_left(guard);
    if (!left) return body;
    Node *n = node_new(s->a, NODE_SKIP);
    n->skip.condition = left;
    n->next = body;
    return n;
}

Node *last_of(Node *n)
{
    while (n && n->next) n = n->next;
    return n;
}

// Whether the guard is tested right after loop i has begun.
static bool guard_here(const Loops *l, int i)
{
    if (!l->guard) return false;
    int last = l->n - 1;
    while (last >= 0 && !ex_mentions_index(l->guard, l->index[last])) last--;
    return i == (last < 0 ? l->n - 1 : last);
}

// Loops from..n-1 in order around `body`, the guard where it belongs.
Node *in_order(Share *s, const Loops *l, int from, Node *body, const Var *moving)
{
    for (int i = l->n - 1; i >= from; i--) {
        Node *n = loop_over(s, SHARE_SERIAL, l->index[i], moving);
        n->body = guard_here(l, i) ? skip_unless(s, l->guard, body) : body;
        body = n;
    }
    return body;
}

Node *with_guard(Share *s, const Loops *l, int i, Node *body) { return guard_here(l, i) ? skip_unless(s, l->guard, body) : body; }

Node *wrap_node(Share *s, NodeKind kind, Node *body)
{
    Node *n = node_new(s->a, kind);
    n->body = body;
    return n;
}

Node *under_condition(Share *s, Expr *condition, Node *body)
{
    Node *n = wrap_node(s, NODE_IF, body);
    n->test.condition = condition;
    return n;
}

Node *barrier(Share *s) { return node_new(s->a, NODE_BARRIER); }

Node *start_total(Share *s, Var *total)
{
    Node *n = node_new(s->a, NODE_LET);
    n->let.local = total;
    n->let.type = "wide";
    n->let.grows = true;
    n->let.value = ex_num(0);
    return n;
}

Node *add_value(Share *s, Var *total, Expr *value)
{
    Node *n = node_new(s->a, NODE_ASSIGN);
    n->assign.op = ASSIGN_ADD;
    n->assign.place.local = total;
    n->assign.value = value;
    return n;
}

// ---- the statements of a sum ----

// Different values that the statements add; -1: more than `most`.
int values_of(const Node *list, int most, Expr **value)
{
    int n = 0;
    for (; list; list = list->next) {
        int k = 0;
        while (k < n && value[k] != list->assign.value) k++;
        if (k < n) continue;
        if (n == most) return -1;
        value[n++] = list->assign.value;
    }
    return n;
}

// The arrays that they add to, in order; -1: more than 4.
int arrays_of(const Node *list, Var **array)
{
    int n = 0;
    for (; list; list = list->next) {
        Var *v = list->assign.place.array ? list->assign.place.array : list->assign.place.element->var;
        int k = 0;
        while (k < n && array[k] != v) k++;
        if (k < n) continue;
        if (n == 4) return -1;
        array[n++] = v;
    }
    return n;
}

Node *copy_list(Share *s, const Node *list)
{
    Node *first = NULL, **last = &first;
    for (; list; list = list->next) {
        *last = arena_copy(s->a, list, sizeof *list);
        (*last)->next = NULL;
        last = &(*last)->next;
    }
    return first;
}

// A value that several places get is computed once.
Node *named_once(Share *s, Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        bool again = false;
        for (const Node *m = n->next; m; m = m->next)
            again |= n->kind == NODE_ASSIGN && m->kind == NODE_ASSIGN && m->assign.value == n->assign.value;
        if (!again || n->assign.value->nargs == 0) continue;
        Node *t = node_new(s->a, NODE_LET);
        t->let.key = t->let.value = n->assign.value;
        t->let.local = local_new(s->a, intern(arena_printf(s->a, "t%d", ++s->temporaries)));
        t->let.type = "wide";
        t->next = list;
        return t;
    }
    return list;
}

Look test_no_lane(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REDUCE || e->kind == EX_AT || e->kind == EX_ARRAY || ex_rank(e) > 0 ? FOUND : LOOK;
}
