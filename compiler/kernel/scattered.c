// scattered.c -- sums for the natural parameters of all elements of a variable, over the same rows, before they are drawn.
//
//   before   a[g[i]] += x[i] over i, b[g[i]] += y[i] over i       after   one kernel, one loop over i
//
// Needs: parts of a conditional.     Gives: a kernel and its launch.
#include <string.h>
#include "lower.h"

void add_part(Lower *p, PartList *l, const Part *q)
{
    if (l->n == l->size) {
        l->size = 2 * l->size + 8;
        const Part **more = NEW_N(p->g->arena, const Part *, l->size);
        if (l->n) memcpy(more, l->part, sizeof *more * (size_t)l->n);
        l->part = more;
    }
    l->part[l->n++] = q;
}

// Sums for the natural parameters of all elements, over the same rows, before they are drawn.
void lower_scattered(Lower *p, const Conditional *c, const PartList *l, Var *const *array, const char *name)
{
    const Var *v = c->var;
    Kernel *k = open_kernel(p, KERNEL_TEAM, name, "wide");
    for (int i = 0; i < MAX_NATURAL; i++)
        if (array[i]) put_fill(p, array[i], count_dims(v, 0, v->rank), true);
    bool *done = NEW_N(p->g->arena, bool, l->n);
    for (int i = 0; i < l->n; i++) {
        if (done[i]) continue;
        const Part *first = l->part[i];
        const Loops loops = loops_where_chosen(&first->loops, first->value, v->rank, first->target);
        Node *n = enter_nest(p, NODE_REDUCE, &loops, v->rank, first->target, v->dim);
        for (int j = i; j < l->n; j++) {
            const Part *q = l->part[j];
            if (done[j] || q->factor != first->factor || memcmp(q->target, first->target, sizeof q->target) != 0) continue;
            if (q->loops.n != first->loops.n || memcmp(q->loops.index, first->loops.index, sizeof q->loops.index) != 0) continue;
            if (loops_where_chosen(&q->loops, q->value, v->rank, q->target).guard != loops.guard) continue;
            done[j] = true;
            put_assign(p, ASSIGN_ADD, place_element(ex_ref(array[q->which], v->rank, q->target)), q->value);
        }
        leave(p, n);
    }
    if (close_kernel(p)) launch_team(p, k);
}
