// windows.c -- counts over windows (graph/updates/windows.c).
#include <math.h>
#include <string.h>
#include "lower.h"

// values are a part of the width apart that slices of the count have, which warm-up adapts
enum { WIDTHS_APART = 6, MOST_APART = 1 << 20, MOST_COUNT = GM_MOST_INT };

// Of slices of the count, if it is sliced.
static const Var *width_of(const Lower *p, const Var *count)
{
    const char *name = intern(arena_printf(p->g->arena, "width_%s", count->name));
    const Update *s = update_that_draws(p->g, count);
    for (int i = 0; s->kind == UPDATE_SLICE && i < p->out->nwork; i++)
        if (p->out->work[i]->name == name) return p->out->work[i];
    return NULL;
}

// Two group moves may have windows of the same counts.
static const char *name_of_window(const Window *w) { return w->below->name + strlen("below_"); }

// What a kernel of a window has names for.
typedef struct Filling {
    const Window *w;
    const Conditional *c;  // at the value that is tried
    Var *value, *lp, *below, *apart, *top;
    Store store;
} Filling;

// The window's conditional with `value` for the element.
static Conditional *at_tried_value(Lower *p, const Window *w, Var *value)
{
    Conditional *c = arena_copy(p->g->arena, w->conditional, sizeof *c);
    c->u = local_ref(value);
    Part **last = &c->density;
    for (const Part *q = w->conditional->density; q; q = q->next) {
        Part *r = *last = arena_copy(p->g->arena, q, sizeof *q);
        r->value = ex_replace(q->value, w->conditional->u, c->u);
        if (r->loops.guard) r->loops.guard = ex_replace(r->loops.guard, w->conditional->u, c->u);
        last = &r->next;
    }
    return c;
}

// below[i], uniform; how far apart values are; the numbers of rows.
static void put_window(Lower *p, const Filling *o)
{
    const Window *w = o->w;
    Var *v = w->count;
    Expr **args = o->c->current->args, *element = ex_ref(w->below, v->rank, args), *last_below = ex_sub(w->value->hi, ex_num(1));
    put_random(p, w->below, element, o->below, "discrete_uniform", ex_num(0), last_below);
    put_assign(p, ASSIGN_SET, place_element(element), local_ref(o->below))->assign.how = o->store;
    const Var *width = width_of(p, v);
    put_let(p, NULL, o->apart,
            width ? ex_call2("fmin", ex_num(MOST_APART),
                             ex_call2("fmax", ex_num(1),
                                      ex_call1("floor", ex_mul2(ex_num(1.0 / WIDTHS_APART), ex_ref((Var *)width, v->rank, args)))))
                  : ex_num(1),
            "long");
    put_assign(p, ASSIGN_SET, place_element(ex_ref(w->apart, v->rank, args)), local_ref(o->apart))->assign.how = o->store;
    for (int i = 0; i < w->nrows; i++) {
        Var *rows = local_new(p->g->arena, intern(words(p, "rows%d", i + 1)));
        put_let(p, NULL, rows, ex_num(0), "wide")->let.grows = true;
        Node *sum = enter_part(p, &w->of_rows[i]->loops);
        put_assign(p, ASSIGN_ADD, place_local(rows), ex_num(1));
        leave(p, sum);
        put_assign(p, ASSIGN_SET, place_element(ex_ref(w->rows[i], v->rank, args)), local_ref(rows))->assign.how = o->store;
    }
}

static Node *enter_values(Lower *p, const Window *w)
{
    Node *loop = enter(p, NODE_LOOP);
    loop->loop.how = SHARE_SERIAL;
    loop->loop.index[loop->loop.n++] = w->value;
    return loop;
}

// The log density at each value of the window, and their largest.
static void put_densities(Lower *p, const Filling *o, const DensityPiece *pieces)
{
    const Window *w = o->w;
    const Conditional *c = o->c;
    Var *v = w->count;
    put_let(p, NULL, o->top, ex_num(-INFINITY), "wide")->let.grows = true;
    Node *loop = enter_values(p, w);
    put_let(p, NULL, o->value,
            ex_add2(c->current,
                    ex_mul2(local_ref(o->apart), ex_add(3, (Expr *[]){ex_index(w->value), ex_num(-1), ex_neg(local_ref(o->below))}))),
            "long");
    put_let(p, NULL, o->lp, ex_num(0), "wide")->let.grows = true;
    Node *test = enter(p, NODE_IF);
    test->test.condition =
        ex_call2("&&", ex_call2("<=", end_of_value(v, 0), c->u),
                 ex_call2("<=", c->u,
                          v->upper_number <= MOST_COUNT || end_of_value(v, 1)->kind != EX_NUM ? end_of_value(v, 1) : ex_num(MOST_COUNT)));
    put_density(p, pieces, o->lp, true);
    p->at = &test->otherwise;
    put_assign(p, ASSIGN_SET, place_local(o->lp), ex_num(-INFINITY));
    leave(p, test);
    put_assign(p, ASSIGN_MAX, place_local(o->top), local_ref(o->lp));
    put_assign(p, ASSIGN_SET, place_element(w->weight), local_ref(o->lp))->assign.how = o->store;
    leave(p, loop);
}

// below[i], uniform, and the log density of each element at the values of the window that so many of are below it.
void fill_window(Lower *p, const Window *w)
{
    Var *v = w->count;
    Filling f = {.w = w, .value = local_integer(p, "value"), .lp = local_new(p->g->arena, "lp")};
    f.below = local_integer(p, "below");
    f.apart = local_integer(p, "apart");
    f.top = local_new(p->g->arena, "top");
    Conditional *c = at_tried_value(p, w, f.value);
    f.c = c;
    const Update s = {.kind = UPDATE_SLICE, .nblock = 1, .block = &v, .conditional = c};
    note(p, "The log density of each %s at %s values about its own, the window placed at random", v->name, math(p, w->value->hi));
    const Shared how = shared_how(&s, NULL);
    Kernel *k = open_elements_kernel(p, how, &s, words(p, "window_%s", name_of_window(w)));
    k->number = "wide";
    Opened o = enter_elements(p, &s, how);
    put_exists(p, &o, how, exists_at(v, c->element));
    const DensityPiece *pieces = prepare_density(p, c, false, false, false);
    f.store = how == BY_CREW ? STORE_ELEMENT : how == BY_TEAM ? STORE_LAST : STORE_PLAIN;
    put_window(p, &f);
    put_densities(p, &f, pieces);
    Node *loop = enter_values(p, w);
    put_assign(p, ASSIGN_SET, place_element(w->weight), ex_call1("exp", ex_sub(w->weight, local_ref(f.top))))->assign.how = f.store;
    leave(p, loop);
    leave_elements(p, &o);
    close_kernel(p);
    launch_elements(p, &s, how, NULL, k);
}

// Each element given c, which has not been applied yet.
void draw_window(Lower *p, const Window *w)
{
    Var *v = w->count, *x = local_new(p->g->arena, "x"), *streams = local_new(p->g->arena, "streams");
    note(p, "Each %s of its window, given %s", v->name, p->update->group_move->by->name);
    const Update s = {.kind = UPDATE_SLICE, .nblock = 1, .block = &v, .conditional = w->conditional};
    Conditional *c = w->conditional;
    Kernel *k = open_elements_kernel(p, BY_ELEMENT, &s, words(p, "draw_window_%s", name_of_window(w)));
    k->number = "wide";
    Opened o = enter_elements(p, &s, BY_ELEMENT);
    put_exists(p, &o, BY_ELEMENT, exists_at(v, c->element));
    Var *step = local_new(p->g->arena, "step");
    put_let(p, NULL, step, w->step, "wide");
    Expr *weights = ex_ref(w->weights, v->rank, c->current->args),
         *old = ex_replace_index(w->weight, w->value, ex_add2(ex_ref(w->below, v->rank, c->current->args), ex_num(1)));
    put_ratio(p, ex_sub(ex_sub(ex_call3("log_tilted_sum", weights, w->value->hi, ex_num(0)),
                               ex_call3("log_tilted_sum", weights, w->value->hi, local_ref(step))),
                        ex_log(old)));
    Node *loop = enter(p, NODE_LOOP);
    loop->loop.how = SHARE_SERIAL;
    loop->loop.index[loop->loop.n++] = w->value;
    put_assign(p, ASSIGN_SET, place_element(w->weight), ex_add2(ex_log(w->weight), ex_mul2(ex_index(w->value), local_ref(step))));
    leave(p, loop);
    Expr *of[MAX_RANK + 1] = {ex_num(2)};  // streams of another number than those by which the window was placed
    streams->dim[streams->rank++] = ex_num(2);
    for (int i = 0; i < v->rank; i++) {
        of[i + 1] = ex_index(c->element[i]);
        streams->dim[streams->rank++] = v->dim[i];
    }
    put_random(p, w->below, ex_ref(streams, streams->rank, of), x, "categorical_logits", weights, NULL)->draw.type = "long";
    Node *test = enter(p, NODE_IF);  // 0: some density is not a number, and nothing has changed
    test->test.condition = ex_call2("<=", ex_num(1), local_ref(x));
    put_ratio(p, ex_replace_index(w->weight, w->value, local_ref(x)));
    put_assign(
        p, ASSIGN_SET, place_element(c->current),
        ex_add2(c->current, ex_mul2(ex_ref(w->apart, v->rank, c->current->args),
                                    ex_add(3, (Expr *[]){local_ref(x), ex_num(-1), ex_neg(ex_ref(w->below, v->rank, c->current->args))}))));
    leave(p, test);
    leave_elements(p, &o);
    close_kernel(p);
    launch_elements(p, &s, BY_ELEMENT, NULL, k);
}
