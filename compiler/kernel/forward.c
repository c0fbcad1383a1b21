// forward.c -- draws without data: a kernel for each variable that is drawn from its own statement, and what is computed between them.
//
//   gamma(2, 1), normal(0, tau)      forward_tau draws tau, forward_mu then mu, forward_y then y_rep; series that a law reads before it
//
// Each is a kernel of its own, so that what one reads is there: predictors and tables are made between launches.
//
// Needs: g->forward.     Gives: kernels, and their launches in order; a host runs them. Unknowns that are given
// are not drawn.
#include <math.h>
#include "lower.h"
#include "../graph/plan/forward.h"

// Elements of the response that no statement draws have the values of the data.
static void put_data(Lower *p, const Forward *f)
{
    Loops l = {.n = f->into->rank};
    Expr *at[MAX_RANK];
    for (int k = 0; k < f->into->rank; k++)
        at[k] = ex_index(l.index[k] = index_new(intern(k == 0 ? "i" : k == 1 ? "j" : "k"), ex_num(1), f->into->dim[k]));
    Node *nest = enter_nest(p, NODE_NEST, &l, l.n, NULL, NULL);
    nest->nest.moving = f->into;
    put_assign(p, ASSIGN_SET, place_element(ex_ref(f->into, l.n, at)), ex_ref((Var *)f->of, l.n, at));
    leave(p, nest);
}

// Elements of each vector in increasing order: neighbours change places as often as there are elements.
static void put_sorted(Lower *p, Var *v)
{
    const int k = v->rank - 1;
    Loops l = {.n = v->rank + 1};
    Expr *at[MAX_RANK], *next[MAX_RANK];
    for (int i = 0; i < k; i++) at[i] = next[i] = ex_index(l.index[i] = index_new(intern(i == 0 ? "i" : "j"), ex_num(1), v->dim[i]));
    l.index[k] = index_new(intern("round"), ex_num(1), v->dim[k]);
    l.index[k + 1] = index_new(intern("k"), ex_num(2), v->dim[k]);
    at[k] = ex_sub(ex_index(l.index[k + 1]), ex_num(1));
    next[k] = ex_index(l.index[k + 1]);
    Expr *here = ex_ref(v, v->rank, at), *there = ex_ref(v, v->rank, next);
    Node *loop[MAX_RANK + 1];
    for (int i = 0; i < l.n; i++) {
        loop[i] = enter(p, NODE_LOOP);
        loop[i]->loop.how = SHARE_SERIAL;
        loop[i]->loop.n = 1;
        loop[i]->loop.index[0] = l.index[i];
    }
    Var *least = local_new(p->g->arena, "least"), *most = local_new(p->g->arena, "most");
    put_let(p, NULL, least, ex_call2("fmin", here, there), "wide");
    put_let(p, NULL, most, ex_call2("fmax", here, there), "wide");
    put_assign(p, ASSIGN_SET, place_element(here), local_ref(least));
    put_assign(p, ASSIGN_SET, place_element(there), local_ref(most));
    for (int i = l.n; i-- > 0;) leave(p, loop[i]);
}

static bool reads_series(const Lower *p, const Forward *f, const Series *s)
{
    (void)p;
    for (const Site *t = f->sites; t; t = t->next)
        for (int i = 0; i < s->n; i++) {
            for (int k = 0; k < t->nargs; k++)
                if (ex_mentions(t->args[k], s->var[i])) return true;
            if (t->when && ex_mentions(t->when, s->var[i])) return true;
        }
    return false;
}

// The series of the sweep, once what one of them reads has changed.
static void launch_series(Lower *p, const Forward *f)
{
    bool any = false;
    for (const Series *s = p->g->series; s; s = s->next)
        any |= s->var[0]->kind == VAR_SERIES && !s->var[0]->hidden && reads_series(p, f, s);
    if (any) launch(p, LAUNCH_ONCE, p->series);
}

void lower_forward(Lower *p)
{
    Program *out = p->out;
    for (const Forward *f = p->g->forward; f; f = f->next)
        if (f->refused && !out->not_forward[f->for_responses])
            out->not_forward[f->for_responses] = f->of ? words(p, "%s: %s", f->of->name, f->refused) : f->refused;
    for (const Factor *f = p->g->factors; f && !out->not_as_data; f = f->next)
        if (f->censored && f->value)
            out->not_as_data = words(p, "%s: which of its values are censored, and between which ends, does not follow from the model (%s)",
                                     f->value->var->name, line_of(p, f->span));
    for (const Forward *f = p->g->forward; f; f = f->next) {
        if (f->refused) continue;
        note(p, "%s from the law of its own statement%s", f->of->name, f->of == f->into ? "" : ", as the replicate");
        p->launches = &out->forward;
        launch_series(p, f);
        Kernel *k = open_kernel(p, KERNEL_ONCE, words(p, "forward_%s", f->of->name), "wide");
        if (f->of == f->into) k->unless_given = f->into;
        if (f->begins_with_data) put_data(p, f);
        if (f->begins_with_nan) {
            Node *anew = enter(p, NODE_IF);
            anew->test.condition = local_ref(local_new(p->g->arena, "IS_DRAWN"));
            anew->test.drawn = f->into;
            put_fill(p, f->into, count_dims(f->into, 0, f->into->rank), true)->fill.value = "NAN";
            leave(p, anew);
        }
        for (const Site *t = f->sites; t;) t = put_site(p, t);
        if (f->sorted) put_sorted(p, f->into);
        if (close_kernel(p)) launch(p, LAUNCH_ONCE, k);
    }
}
