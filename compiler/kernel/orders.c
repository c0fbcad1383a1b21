// orders.c -- rows in the order of their groups, and elements by classes: computed once, when share.c has requested them.
//
// Needs: loops with their sharing.     Gives: the kernel of groups and pairs, and all launches of setup in their order.
#include "lower.h"

// The pairs of elements that factors read, one factor after the other.
static void put_pairs(Lower *p, const Classes *k)
{
    Expr *before = ex_num(0);
    for (const Conflict *q = k->conflicts; q; q = q->next) {
        const Loops *plates = &q->factor->plates;
        const Loops l = {.n = plates->n, .index = {plates->index[0], plates->n > 1 ? plates->index[1] : NULL}};
        Expr **at = NEW_N(p->g->arena, Expr *, 1), *place = ex_index(l.index[0]);
        if (l.n > 1) place = ex_add2(ex_mul2(ex_add2(place, ex_num(-1)), l.index[1]->hi), ex_index(l.index[1]));
        *at = ex_add2(before, place);
        Node *n = enter_nest(p, NODE_NEST, &l, 1, at, NULL);
        for (int side = 0; side < 2; side++) {
            Expr *element = side ? q->b : q->a;
            if (plates->guard) element = ex_call3("if_else", plates->guard, element, ex_num(0));
            put_assign(p, ASSIGN_SET, place_element(ex_ref(side ? k->other : k->one, 1, at)), element);
        }
        leave(p, n);
        before = ex_add2(before, instances(plates));
    }
}

static void append(Launches *to, const Launches *more)
{
    if (!more->first) return;
    if (!to->first) to->last = &to->first;
    *to->last = more->first;
    to->last = more->last;
}

// The group of each row of an order; 0 where it is in none.
static void put_groups(Lower *p, const Order *o)
{
    Expr *row = ex_index(o->row), *inside = o->guard, *key = o->key;
    if (!ex_is_num(o->row->lo, 1)) {
        Expr *from = ex_call2("<=", o->row->lo, row);
        inside = inside ? ex_call2("&&", from, inside) : from;
    }
    Index *all = index_new(o->row->name, ex_num(1), o->row->hi);
    const Loops l = {.n = 1, .index = {all}};
    Expr **at = NEW_N(p->g->arena, Expr *, 1);
    *at = ex_index(all);
    if (inside) key = ex_call3("if_else", inside, key, ex_num(0));
    Node *n = enter_nest(p, NODE_NEST, &l, 1, at, NULL);
    put_assign(p, ASSIGN_SET, place_element(ex_ref(o->keys, 1, at)), ex_replace_index(key, o->row, *at));
    leave(p, n);
}

static void launch_orders(Lower *p)
{
    for (int i = 0; i < p->nclasses; i++) {
        const Classes *q = p->classes[i];
        Launch *l = launch(p, LAUNCH_COLOUR_ELEMENTS, NULL);
        with_extent(l, q->of->dim[0]);
        with_extent(l, q->pairs);
        with_name(l, q->one);
        with_name(l, q->other);
        with_name(l, q->first);
        with_name(l, q->elements);
    }
    for (int i = 0; i < p->norders; i++) {
        const Order *o = p->order[i];
        if (o->spare) continue;
        Launch *l = launch(p, LAUNCH_ORDER_ROWS, NULL);
        with_extent(l, o->row->hi);
        with_extent(l, o->extent);
        with_name(l, o->keys);
        with_name(l, o->first);
        with_name(l, o->rows);
    }
}

// The group of each row, and the launches of setup in their order.
void lower_orders(Lower *p)
{
    Kernel *k = NULL;
    bool any = false;
    for (int i = 0; i < p->norders; i++) any |= !p->order[i]->spare;
    any |= p->nclasses > 0;
    if (any) {
        note(p, p->nclasses ? "The group of each row, for sums by group, and the elements that meet; 0: in none."
                            : "The group of each row, for sums by group; 0: in none.");
        k = open_kernel(p, KERNEL_TEAM, "groups", "wide");
    }
    for (int i = 0; i < p->norders; i++)
        if (!p->order[i]->spare) put_groups(p, p->order[i]);
    for (int i = 0; i < p->nclasses; i++) put_pairs(p, p->classes[i]);
    if (k) close_kernel(p);
    p->launches = &p->out->prepare;
    launch_shared(p, LAUNCH_SHARED, p->definitions);
    launch_shared(p, LAUNCH_SHARED, p->check);
    if (p->g->requirements) launch(p, LAUNCH_STOP, NULL);
    launch_shared(p, LAUNCH_SHARED, k);
    launch_orders(p);
    append(p->launches, &p->row_lists);
    launch_shared(p, LAUNCH_SHARED, p->sums);
    append(p->launches, &p->grams);
    append(p->launches, &p->patterns);
    append(p->launches, &p->standing_in);
}
