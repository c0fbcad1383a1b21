// alike.c -- scalars that are drawn alike share a function.
//
//   before   500 kernels    Stream g = stream(at, VAR_mu, 0); const wide x = normal_natural(&g, a_mu, b_mu); VERIFY(..) RATIO(..)
//                           *s->mu = x;
//   after    500 calls      drawn_by_normal_natural(GM, at, VAR_mu, "mu", s->mu, a_mu, b_mu);
//
// In a program of many updates the C compiler would spend its time on copies of a sampler: a scalar is drawn, checked and stored by a call
// of a function that all scalars share whose conditionals are of one family.
//
// Needs: the kernels as the passes have left them.     Gives: Kernel.alike.     Keeps: the nodes, which are what the call does.
#include <string.h>
#include "lower.h"

static bool test_other(const Var *v, void *with)
{
    const Conditional *c = with;
    return v != c->var && v != c->u->var;
}

// The draw in the kernel from which on it is a draw, its ratio and its store, which read nothing of the kernel but values of the draw's
// arguments; or NULL.
static const Node *drawn_alone(const Program *p, const Kernel *k)
{
    if (k->kind != KERNEL_SCALAR || p->nupdates <= MANY_UPDATES) return NULL;
    const Node *n = k->body;
    while (n && n->kind != NODE_DRAW) n = n->next;
    if (!n || !n->draw.x || !n->draw.call || n->draw.check != DRAW_FINITE || n->draw.var->rank > 0 ||
        placement_of(p, n->draw.var)->type != TYPE_WIDE)
        return NULL;
    const Node *ratio = n->next, *store = ratio ? ratio->next : NULL;
    if (!store || store->next || ratio->kind != NODE_RATIO || !ratio->ratio.c || ratio->ratio.n == 0 || store->kind != NODE_ASSIGN)
        return NULL;
    if (store->assign.op != ASSIGN_SET || store->assign.times || store->assign.place.local ||
        store->assign.place.element != ratio->ratio.c->current)
        return NULL;
    if (ratio->ratio.c->var != n->draw.var || store->assign.value->kind != EX_REF || store->assign.value->var != n->draw.x) return NULL;
    for (int i = 0; i < n->draw.nargs; i++) {
        const Expr *value = n->draw.arg[i].value;
        bool natural = !value;
        for (int j = 0; j < ratio->ratio.n && value; j++) natural |= value->kind == EX_REF && value->var == ratio->ratio.natural[j];
        if (!natural) return NULL;
    }
    for (int j = 0; j < ratio->ratio.n; j++)
        if (ex_any_var(ratio->ratio.statistic[j], test_other, (void *)ratio->ratio.c)) return NULL;
    return n;
}

// The argument of the draw that a natural parameter is; -1: none.
static int argument_of(const Node *draw, const Var *natural)
{
    for (int i = draw->draw.nargs - 1; i >= 0; i--)
        if (draw->draw.arg[i].value && draw->draw.arg[i].value->var == natural) return i;
    return -1;
}

static bool same_draw(const Node *a, const Node *b)
{
    if (!ast_same(a->draw.call, b->draw.call) || strcmp(a->draw.type, b->draw.type) != 0 || a->draw.nargs != b->draw.nargs) return false;
    for (int i = 0; i < a->draw.nargs; i++) {
        const DrawArg *x = &a->draw.arg[i], *y = &b->draw.arg[i];
        if (x->name != y->name || !x->value != !y->value || (!x->value && x->number != y->number)) return false;
    }
    return true;
}

// The same statistics of what is drawn, times the same arguments of the draw.
static bool same_ratio(const Node *a, const Node *b)
{
    const Conditional *c = a->next->ratio.c, *d = b->next->ratio.c;
    if (a->next->ratio.n != b->next->ratio.n || c->var->lowered.kept_log != d->var->lowered.kept_log ||
        c->var->lowered.kept_log1m != d->var->lowered.kept_log1m)
        return false;
    for (int j = 0; j < a->next->ratio.n; j++) {
        if (argument_of(a, a->next->ratio.natural[j]) != argument_of(b, b->next->ratio.natural[j])) return false;
        if (ex_replace(a->next->ratio.statistic[j], c->u, d->u) != b->next->ratio.statistic[j]) return false;
    }
    return true;
}

// One more function: the nodes with parameters for the names that they read.
static SharedDraw *function_of_draw(Arena *a, const Kernel *k, const Node *n, int same)
{
    SharedDraw *f = NEW(a, SharedDraw);
    Node *draw = arena_copy(a, n, sizeof *n), *ratio = arena_copy(a, n->next, sizeof *n);
    draw->draw.arg = NEW_N(a, DrawArg, n->draw.nargs + 1);
    for (int i = 0; i < n->draw.nargs; i++) {
        draw->draw.arg[i] = n->draw.arg[i];
        if (!n->draw.arg[i].value) continue;
        Var *parameter = local_new(a, n->draw.arg[i].name);
        draw->draw.arg[i].value = local_ref(parameter);
        for (int j = 0; j < ratio->ratio.n; j++)
            if (n->draw.arg[i].value->var == n->next->ratio.natural[j]) ratio->ratio.natural[j] = parameter;
    }
    *f = (SharedDraw){.name = arena_printf(a, same ? "drawn_by_%s_%d" : "drawn_by_%s", n->draw.call->name, same + 1),
                      .first = k,
                      .draw = draw,
                      .ratio = ratio};
    return f;
}

void share_draws(Lower *p)
{
    SharedDraw *all = NULL, **last = &all;
    for (int list = 0; list < 2; list++)
        for (Kernel *k = list ? p->out->sweep.first : p->out->setup.first; k; k = k->next) {
            const Node *n = drawn_alone(p->out, k);
            if (!n) continue;
            SharedDraw *f = NULL;
            int same = 0;
            for (SharedDraw *one = all; one && !f; one = one->next) {
                if (one->first->number == k->number && same_draw(one->from, n) && same_ratio(one->from, n)) f = one;
                same += one->from->draw.call->name == n->draw.call->name;
            }
            if (!f) {
                f = *last = function_of_draw(p->g->arena, k, n, same);
                f->from = n;
                last = &f->next;
            }
            k->alike = f;
            k->alike_from = n;
        }
}
