// collapsed.c -- collapsed updates: indicators drawn with their weights integrated out (graph/updates/collapsed.c): counts of the weights,
// which follow each element.
//
//   count    n[k] = natural parameter of w[k] + 1, with all elements counted; their logs
//   draw     for each element, one after the other: n[old] -= 1; weigh its values with log(n[value]) in place of log w[value]; n[new] += 1
//
// An element changes two places, so logs are kept beside the counts and no value that is weighed takes one.
#include "lower.h"

typedef struct Exchange {
    Expr *from, *to;
} Exchange;

static Expr *put_for(Expr *e, void *with)
{
    const Exchange *x = with;
    return e == x->from ? x->to : NULL;
}

// The first n subscripts of the weights' element, of an array that has as many.
static Expr *place_of(Var *of, const Expr *ref) { return ex_ref(of, of->rank, ref->args); }

typedef struct Counted {
    Var *counts, *logs;
    Expr *more;
} Counted;  // logs = log(counts + more)

static Counted counted(Lower *p, const char *what, const Update *s, const Var *v, int rank, Expr *more)
{
    return (Counted){work_array(p, ROLE_TOTALS, words(p, "%s_%s_%s", what, v->name, s->block[0]->name), rank, v->dim),
                     work_array(p, ROLE_TOTALS, words(p, "log_%s_%s_%s", what, v->name, s->block[0]->name), rank, v->dim), more};
}

static Expr *log_at(const Counted *n, Expr *at) { return ex_call1("log", ex_add2(ex_ref(n->counts, at->nargs, at->args), n->more)); }

// Sums of the natural parameters of the weights, or of each vector of them.
static void put_counts(Lower *p, const Conditional *natural, const Counted *n)
{
    put_fill(p, n->counts, count_dims(n->counts, 0, n->counts->rank), false);
    put(p, NODE_BARRIER);
    for (const Part *q = natural->natural; q; q = q->next) {
        Expr **target = arena_copy(p->g->arena, q->target, sizeof q->target);
        Node *sum = enter_nest(p, NODE_REDUCE, &q->loops, n->counts->rank, target, n->counts->dim);
        put_assign(p, ASSIGN_ADD, place_element(ex_ref(n->counts, n->counts->rank, target)), q->value);
        leave(p, sum);
    }
    put(p, NODE_BARRIER);
    Loops all = {0};
    Expr **at = NEW_N(p->g->arena, Expr *, MAX_RANK);
    for (int k = 0; k < n->counts->rank; k++) {
        static const char *const names[] = {"a", "b", "c", "e", "f", "h"};
        at[k] = ex_index(all.index[all.n++] = index_new(intern(names[k % 6]), ex_num(1), n->counts->dim[k]));
    }
    Expr *place = ex_ref(n->logs, n->counts->rank, at);
    Node *nest = enter_nest(p, NODE_NEST, &all, n->counts->rank, at, NULL);
    put_assign(p, ASSIGN_SET, place_element(place), log_at(n, place));
    leave(p, nest);
}

// The conditional with counts for weights; the places that change by 1 with each element go to `changes`.
Conditional *with_counts(Lower *p, const Update *s, CountChanges *changes)
{
    Conditional *c = arena_copy(p->g->arena, s->conditional, sizeof *c);
    for (const Predictive *w = s->enumerate.predictive; w; w = w->next) {
        const Var *v = w->weights;
        Counted of[2] = {counted(p, "counts", s, v, v->rank, ex_num(1)), {0}};
        if (w->varies) of[1] = counted(p, "totals", s, v, v->rank - 1, v->dim[v->rank - 1]);
        note(p, "Counts in place of %s, all elements of %s among them", v->name, s->block[0]->name);
        Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, "count_%s_%s", v->name, s->block[0]->name), "wide");
        for (int i = 0; i <= w->varies; i++) put_counts(p, w->natural, &of[i]);
        close_kernel(p);
        launch_team(p, k);
        Expr *log_w = place_of(of[0].logs, w->ref);
        if (w->varies) log_w = ex_sub(log_w, place_of(of[1].logs, w->ref));
        Exchange x = {ex_call1("log", w->ref), log_w};
        Part *first = NULL, **last = &first;
        for (const Part *q = c->density; q; q = q->next) {
            *last = arena_copy(p->g->arena, q, sizeof *q);
            if (ex_mentions(q->value, v)) (*last)->value = ex_map(q->value, put_for, &x);
            (*last)->next = NULL;
            last = &(*last)->next;
        }
        c->density = first;
        for (int i = 0; i <= w->varies; i++) {
            Expr *place = ex_replace(place_of(of[i].counts, w->ref), c->u, c->current);
            ROOM(p->g->arena, changes->change, changes->n, changes->size);
            changes->change[changes->n++] =
                (CountChange){place, ex_ref(of[i].logs, place->nargs, place->args), log_at(&of[i], place), w->guard};
        }
    }
    return c;
}

void put_count_changes(Lower *p, const CountChanges *changes, double by)
{
    for (int i = 0; i < changes->n; i++) {
        const CountChange *m = &changes->change[i];
        Node *test = m->guard ? enter(p, NODE_IF) : NULL;
        if (test) test->test.condition = m->guard;
        put_assign(p, ASSIGN_ADD, place_element(m->place), ex_num(by));
        put_assign(p, ASSIGN_SET, place_element(m->log_place), m->log_value);
        if (test) leave(p, test);
    }
}
