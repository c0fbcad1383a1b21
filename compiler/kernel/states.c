// states.c -- states along chains, each chain drawn whole, parallel in time (device/states.h): what the draw is made of, the draw, and the states in their places.
//
//   weights_z[panel, t, j]       log density of what holds element t alone, at value j
//   links_z[panel, t, i, 2*j]    log density of what holds it, at j, and the one before, at i; without the subscripts that it does not depend on
//   parts_z                      room for products of matrices
//
// Needs: a step whose elements are drawn at once.     Gives: kernels that fill these, draw, and put the states where they belong.
#include "lower.h"

typedef struct Chains {                  // the subscripts of the variable, but for that along the chains, and how many chains there are
    const Conditional *c;
    int    n;
    Expr  *at[MAX_RANK], *dim[MAX_RANK];
    Loops  over;                         // them
    Expr  *panels, *inside;
} Chains;

static Chains chains_of(const Conditional *c)
{
    const Var *v = c->var;
    Chains h = {.c = c, .panels = ex_num(1), .inside = ex_num(1)};
    for (int k = 0; k < v->rank; k++) {
        if (k == v->chain) continue;
        h.at[h.n] = c->current->args[k];
        h.dim[h.n++] = v->dim[k];
        h.over.index[h.over.n++] = c->element[k];
        h.panels = ex_mul2(h.panels, v->dim[k]);
        if (k > v->chain) h.inside = ex_mul2(h.inside, v->dim[k]);
    }
    return h;
}

static void add_dim(Expr **list, int *n, Expr *e) { list[(*n)++] = e; }

// The element of an array at these subscripts is e, over their loops.
static void put_values(Lower *p, const Loops *l, Var *array, int n, Expr **at, Expr *e)
{
    Expr **target = arena_copy(p->g->arena, at, sizeof *at * (size_t)n);
    Node *nest = enter_nest(p, NODE_NEST, l, n, target, NULL);
    put_update(p, UPDATE_SET, place_element(ex_ref(array, n, at)), e);
    leave(p, nest);
}

void step_states(Lower *p, const Step *s)
{
    const Conditional *c = s->conditional;
    Var *v = c->var;
    const Chains h = chains_of(c);
    Expr *length = v->dim[v->chain], *first = end_of_summed(v, 0), *less = ex_sub(first, ex_num(1)), *values = ex_sub(end_of_summed(v, 1), less);
    Index *t = c->element[v->chain], *i = index_new(intern("i"), ex_num(1), values), *j = index_new(intern("j"), ex_num(1), values);
    Expr *at_i = ex_add2(ex_index(i), less), *at_j = ex_add2(ex_index(j), less), *link = ex_replace(ex_replace(c->link, c->before, at_i), c->u, at_j);
    bool by_panel = false, by_time = ex_mentions_index(link, t);
    for (int k = 0; k < h.n; k++) by_panel |= ex_mentions_index(link, h.over.index[k]);
    Expr *dim[MAX_RANK], *at[MAX_RANK], *square = ex_pow(values, 2);
    int n = h.n;
    for (int k = 0; k < n; k++) dim[k] = h.dim[k];
    add_dim(dim, &n, length);
    add_dim(dim, &n, values);
    Var *weights = work_array(p, ROLE_BLOCK, words(p, "weights_%s", v->name), n, dim);
    dim[n - 2] = ex_add2(length, ex_num(8));
    Var *parts = work_array(p, ROLE_BLOCK, words(p, "parts_%s", v->name), n, dim);
    n = 0;
    for (int k = 0; k < h.n && by_panel; k++) add_dim(dim, &n, h.dim[k]);
    if (by_time) add_dim(dim, &n, length);
    add_dim(dim, &n, values);
    add_dim(dim, &n, ex_mul2(ex_num(2), values));
    Var *links = work_array(p, ROLE_BLOCK, words(p, "links_%s", v->name), n, dim);

    comment_step(p, s);
    Kernel *weigh = open_kernel(p, KERNEL_TEAM, words(p, "weigh_%s", v->name), "wide");
    Loops over = {.n = 1, .index = {t}};         // along the chains first: they may be few
    n = 0;
    for (int k = 0; k < h.n; k++) {
        over.index[over.n++] = h.over.index[k];
        add_dim(at, &n, h.at[k]);
    }
    add_dim(at, &n, ex_index(t));
    add_dim(at, &n, ex_index(j));
    over.index[over.n++] = j;
    put_values(p, &over, weights, n, at, ex_replace(c->local, c->u, at_j));
    over = (Loops){0};
    n = 0;
    Index *ahead = index_new(t->name, ex_num(1), ex_sub(length, ex_num(1)));
    if (by_time) over.index[over.n++] = ahead;
    for (int k = 0; k < h.n && by_panel; k++) {
        over.index[over.n++] = h.over.index[k];
        add_dim(at, &n, h.at[k]);
    }
    if (by_time) {
        Expr *later = ex_add2(ex_index(ahead), ex_num(1));
        link = ex_replace_index(link, t, later);
        add_dim(at, &n, later);
    }
    over.index[over.n++] = i;
    over.index[over.n++] = j;
    add_dim(at, &n, ex_index(i));
    add_dim(at, &n, ex_mul2(ex_num(2), ex_index(j)));
    put_values(p, &over, links, n, at, link);
    close_kernel(p);
    launch_team(p, weigh);

    note(p, "Messages from the last element to the first, then states from the first to the last");
    Kernel *draw = open_kernel(p, KERNEL_TEAM, words(p, "draw_at_once_%s", v->name), "wide");
    Node *d = put(p, NODE_DRAW_STATES);
    d->states.var = v;
    d->states.weight = weights;
    d->states.link = links;
    d->states.part = parts;
    d->states.panels = h.panels;
    d->states.length = length;
    d->states.values = values;
    d->states.inside = h.inside;
    d->states.by_panel = !by_panel ? ex_num(0) : by_time ? ex_mul2(length, square) : square;
    d->states.by_time = by_time ? square : ex_num(0);
    note_count(p, draw, (Count){3, {h.panels, length, values}});
    close_kernel(p);
    launch_team(p, draw);

    note(p, "The states, to their places");
    Kernel *place = open_kernel(p, KERNEL_TEAM, words(p, "place_%s", v->name), "wide");
    over = (Loops){.n = 1, .index = {t}};
    for (int k = 0; k < h.n; k++) over.index[over.n++] = h.over.index[k];
    at[h.n + 1] = ex_num(1);
    n = h.n + 2;
    at[h.n] = ex_index(t);
    for (int k = 0; k < h.n; k++) at[k] = h.at[k];
    over.guard = exists_at(v, c->element);
    Node *nest = enter_nest(p, NODE_NEST, &over, v->rank, c->current->args, NULL);
    put_update(p, UPDATE_SET, place_element(c->current), ex_add2(ex_ref(weights, n, at), first));
    leave(p, nest);
    close_kernel(p);
    launch_team(p, place);
}
