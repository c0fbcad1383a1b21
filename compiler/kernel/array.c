// array.c -- arrays with a family of their own, drawn whole.
//
//   before   p[k]: dirichlet, natural a[k] += .. over rows       after   kernel sums_p: a[k];  kernel draw_p: all of p, array by array
//
// A simplex is drawn by its counts a + 1, as its law has them. The 1 goes into the term of its own statement, where alpha - 1 becomes
// alpha: sums of numbers would round an alpha below 1e-16 to 0. Where some simplexes
// may have no statement, 1 is added to all: those without are uniform, and nothing reads them.
//
// Needs: conditionals, statistics by key (keyed.c).     Gives: kernels and launches of the update.
#include "lower.h"

// Whether this is the one term of a statement of v, for every element of a simplex.
static bool is_own_term(const Conditional *c, const Part *q)
{
    const Var *v = c->var;
    const Expr *last = q->target[v->rank - 1];
    int n = 0;
    for (const Part *r = c->natural; r; r = r->next) n += r->factor == q->factor;
    return n == 1 && factor_draws(q->factor, v) && last->kind == EX_INDEX && ex_is_num(last->index->lo, 1) &&
           last->index->hi == v->dim[v->rank - 1];
}

void update_array(Lower *p, const Update *s)
{
    Conditional *c = s->conditional;
    Var *v = c->var;
    const bool simplex = v->constraint == CONSTRAINT_SIMPLEX;
    Var *array = work_array(p, ROLE_TOTALS, words(p, simplex ? "%s_counts" : "%s_natural", v->name), v->rank, v->dim), *scalar = NULL;
    if (!simplex) scalar = work_array(p, ROLE_TOTALS, words(p, "%s_degrees", v->name), c->nbatch, v->dim);
    bool whole = false;
    for (const Part *q = c->natural; q; q = q->next) whole |= needs_own_array(q->value, &q->loops);
    note(p, "Sums over rows for %s, before it is drawn", v->name);
    Kernel *sums = open_kernel(p, KERNEL_TEAM, words(p, "sums_%s", v->name), "wide");
    sums->by_one = whole;
    put_fill(p, array, count_dims(v, 0, v->rank), false);
    if (scalar) put_fill(p, scalar, count_dims(v, 0, c->nbatch), false);
    put_barrier(p);
    Part *parts = c->natural, one = {.loops = loops_of_indices(c->element, v->rank, NULL), .value = ex_num(1), .next = parts};
    bool all_own = !v->exists && !v->known.holes;  // every simplex has a statement, and the 1 is in its term
    for (const Part *q = parts; q && simplex; q = q->next) all_own &= !factor_draws(q->factor, v) || is_own_term(c, q);
    bool some = false;
    for (const Part *q = parts; q && simplex; q = q->next) some |= is_own_term(c, q);
    for (int k = 0; k < v->rank; k++) one.target[k] = c->current->args[k];
    if (simplex && !(all_own && some)) parts = &one;
    for (const Part *q = parts; q; q = q->next) {
        Var *to = q->which == 0 && scalar ? scalar : array;
        Loops loops = q->loops;
        Expr **target = NEW_N(p->g->arena, Expr *, to->rank + 1), *value = q->value;
        const bool own = parts != &one && simplex && is_own_term(c, q);
        if (own || !hoisted_by_key(p, &q->loops, to->rank, q->target, to->dim, q->value, &loops, target, &value)) {
            loops = q->loops;
            value = own ? ex_plus(q->value, 1) : q->value;
            for (int k = 0; k < to->rank; k++) target[k] = q->target[k];
        }
        Node *n = enter_nest(p, NODE_REDUCE, &loops, to->rank, target, to->dim);
        put_assign(p, ASSIGN_ADD, place_element(ex_ref(to, to->rank, target)), value);
        leave(p, n);
    }
    close_kernel(p);
    launch_team(p, sums);
    comment_update(p, s);
    const bool shared = c->nbatch && s->does == DRAWS;  // long simplexes and matrices by more than a lane
    Kernel *draw = open_kernel(p, shared ? KERNEL_TEAM : c->nbatch ? KERNEL_ELEMENTS : KERNEL_ONCE, words(p, "draw_%s", v->name), "wide");
    put_skip(p, exists_whole(v));
    Node *n = put(p, NODE_DRAW_ARRAY);
    n->whole.c = c;
    n->whole.array = array;
    n->whole.scalar = scalar;
    n->whole.mode = p->g->method == METHOD_EM;
    if (shared) note_count(p, draw, count_dims(v, 0, v->rank));
    close_kernel(p);
    if (shared) {
        launch_team(p, draw);
        return;
    }
    Launch *l = launch(p, c->nbatch ? LAUNCH_EACH : LAUNCH_ONCE, draw);
    if (c->nbatch) with_count(l, count_dims(v, 0, c->nbatch));
}
