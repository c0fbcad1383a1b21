// adjoints.c -- derivatives by what is computed of the block go on to what it was made of: series, what is computed once, Cholesky factors,
// inverses.
//
// Of a series one lane makes adjoints, from the last element to the first: an element's own derivative is complete then, and goes on to
// those that it was made of. What it was made of else gets sums over elements.
#include <stdlib.h>
#include "hmc.h"

// Whether a statement may read elements at the same value of the subscript that the series goes along.
typedef struct Row {
    const Series *series;
    int along;
} Row;

static Look test_row(const Expr *e, void *with)
{
    const Row *r = with;
    if (e->kind != EX_REF || !in_series(r->series, e->var)) return LOOK;
    const Expr *apart = r->along < e->nargs ? ex_sub(e->args[r->along], ex_index(r->series->along)) : NULL;
    return !apart || apart->kind != EX_NUM || apart->number == 0 ? FOUND : LOOK;
}

static bool reads_its_row(const Series *s, const Site *t)
{
    int along = 0;
    while (along < t->n && t->subscript[along] != ex_index(s->along)) along++;
    return ex_find(t->value, test_row, &(Row){s, along});
}

// A sum over the values of a state whose logarithm is the element itself, in the derivatives of that element: it has been computed. Where
// rows add to an element, it is none of their sums.
static Expr *as_computed(const Site *t, Expr *e)
{
    Expr *v = t->value;
    const bool sum = (v->kind == EX_REDUCE && v->fn == FN_log_sum_exp) || (v->kind == EX_CALL && v->fn == FN_log_sum_exp2);
    return sum && !t->adds ? ex_replace(e, v, ex_ref(t->var, t->n, t->subscript)) : e;
}

// Adjoints within a series: in the reverse of the order in which its elements are computed, each goes on to the elements that this one was
// made of.
static void put_adjoints(HmcBlock *m, const Series *s)
{
    Lower *p = m->p;
    int n = 0;
    for (const Site *t = s->sites; t; t = t->next) n++;
    const Site **site = NEW_N(p->g->arena, const Site *, n + 1);
    n = 0;
    for (const Site *t = s->sites; t; t = t->next) site[n++] = t;
    Node *lane = enter(p, NODE_LANE), *along = enter(p, NODE_LOOP);
    along->loop.how = s->backward ? SHARE_SERIAL : SHARE_BACKWARD;
    along->loop.n = 1;
    along->loop.index[0] = s->along;
    while (n-- > 0) {
        const Site *t = site[n];
        const Loops *plates = &t->plates;
        Factor f = site_factor(t, adjoint_of(m, t->var));
        Derivative *terms;
        const char *why;
        f.plates = (Loops){.n = plates->n + 1, .guard = plates->guard};
        f.plates.index[0] = s->along;
        for (int i = 0; i < plates->n; i++) f.plates.index[1 + i] = plates->index[i];
        if (!derivatives(p->g, &f, m->moving.var, m->moving.n, &terms, &why)) abort();  // the schedule has checked
        bool any = false, within = false;
        for (const Derivative *d = terms; d; d = d->next) any |= in_series(s, d->ref->var);
        if (!any) continue;
        const bool row = plates->n && reads_its_row(s, t);  // then rows go backward, too, each element with all its terms
        for (int i = 0; i < plates->n; i++) within |= plates->guard && ex_mentions_index(plates->guard, plates->index[i]);
        Node *test = plates->guard && !within ? enter(p, NODE_IF) : NULL, *loop[MAX_PLATES];
        if (test) test->test.condition = plates->guard;
        for (int i = 0; i < plates->n && row; i++) {
            loop[i] = enter(p, NODE_LOOP);
            loop[i]->loop.how = SHARE_BACKWARD;
            loop[i]->loop.n = 1;
            loop[i]->loop.index[0] = plates->index[i];
        }
        Node *inner = row && within ? enter(p, NODE_IF) : NULL;
        if (inner) inner->test.condition = plates->guard;
        for (const Derivative *d = terms; d; d = d->next) {
            if (!in_series(s, d->ref->var)) continue;
            Loops l = {.guard = test || inner ? NULL : d->loops.guard};
            for (int i = row ? 1 + plates->n : 1; i < d->loops.n; i++) l.index[l.n++] = d->loops.index[i];
            Node *nest = enter_nest(p, NODE_NEST, &l, 0, NULL, NULL);
            nest->nest.moving = adjoint_of(m, d->ref->var);
            put_assign(p, ASSIGN_ADD, gradient_place(m, d->ref), as_computed(t, ex_mul2(d->weight, d->rest)));
            leave(p, nest);
        }
        if (inner) leave(p, inner);
        for (int i = plates->n - 1; i >= 0 && row; i--) leave(p, loop[i]);
        if (test) leave(p, test);
    }
    leave(p, along);
    leave(p, lane);
    put_barrier(p);
}

// What elements that are computed give to the block, and to others that they are made of: sums over the elements. Each statement is a
// factor, and terms by `but` are not for here.
void put_sums(HmcBlock *m, const char *stem, int n, const Factor *statement, const Site *const *site, const Series *but)
{
    Lower *p = m->p;
    Derivative **terms = NEW_N(p->g->arena, Derivative *, n + 1);
    for (int i = 0; i < n; i++) {
        const char *why;
        if (!derivatives(p->g, &statement[i], m->moving.var, m->moving.n, &terms[i], &why)) abort();  // the schedule has checked
        Derivative **d = &terms[i];
        while (*d) {
            if (but && in_series(but, (*d)->ref->var)) *d = (*d)->next;
            else {
                if (site) (*d)->weight = as_computed(site[i], (*d)->weight);
                if (site) (*d)->rest = as_computed(site[i], (*d)->rest);
                d = &(*d)->next;
            }
        }
    }
    for (int i = 0; i < n; i++)
        for (const Derivative *d = terms[i]; d; d = d->next)
            if (d->loops.n == statement[i].plates.n) declare_total(m, stem, d->ref, ex_num(0));
    for (int i = 0; i < n; i++) {
        const Loops l = statement[i].plates;
        Node *sum = NULL;
        int here = 0;
        for (const Derivative *d = terms[i]; d; d = d->next) {
            const Total *t = d->loops.n == l.n ? total_of(m->totals, d->ref) : NULL;
            if (!t) continue;
            if (sum && here++ > MOST_TOTALS) {
                leave(p, sum);
                sum = NULL;
            }
            if (!sum) {
                sum = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
                sum->nest.op = ASSIGN_ADD;
                here = 1;
            }
            put_assign(p, ASSIGN_ADD, place_local(t->local), ex_mul2(d->weight, d->rest));
        }
        if (sum) leave(p, sum);
    }
    Node *lane = m->totals ? enter(p, NODE_LANE) : NULL;
    for (const Total *t = m->totals; t; t = t->next) put_assign(p, ASSIGN_ADD, gradient_place(m, t->ref), local_ref(t->local));
    if (lane) leave(p, lane);
    for (int i = 0; i < n; i++)
        for (Derivative *d = terms[i]; d; d = d->next) {
            if (d->loops.n == statement[i].plates.n && total_of(m->totals, d->ref)) continue;
            put_barrier(p);
            put_pending(m, &(Pending){.d = d, .weight = d->weight});
        }
    m->totals = NULL;
    m->last_total = &m->totals;
    put_barrier(p);
}

void put_series_slopes(HmcBlock *m, const Series *s)
{
    Lower *p = m->p;
    put(p, NODE_COMMENT)->text.lines = words(p, "%s", s->var[0]->name);
    if (!s->var[0]->sites->ode) put_adjoints(m, s);  // elements of a solution are not made of each other
    Factor *statement = NULL;
    const Site **site = NULL;
    int n = 0, size = 0, room = 0;
    for (int i = 0; i < s->n; i++)
        for (const Site *t = s->var[i]->sites; t; t = t->next) {
            ROOM(p->g->arena, statement, n, size);
            ROOM(p->g->arena, site, n, room);
            site[n] = t;
            statement[n++] = site_factor(t, adjoint_of(m, t->var));
        }
    put_sums(m, words(p, "by_%s", s->var[0]->name), n, statement, site, s);
}

// Arrays that are computed once, from the last to the first: it may read those before it.
void put_once(HmcBlock *m, const Once *o)
{
    if (!o) return;
    put_once(m, o->next);
    Expr *at[MAX_RANK];
    for (int k = 0; k < o->plates.n; k++) at[k] = ex_index(o->plates.index[k]);
    const Factor f = {
        .span = m->update->span, .plates = o->plates, .log_density = ex_mul2(ex_ref(adjoint_of(m, o->var), o->plates.n, at), o->value)};
    put(m->p, NODE_COMMENT)->text.lines = o->var->name;
    put_sums(m, words(m->p, "by_%s", o->var->name), 1, &f, NULL, NULL);
}

// Adjoints of Cholesky factors become those of the matrices, in place.
void put_factored(HmcBlock *m, const Factored *of)
{
    Lower *p = m->p;
    Var *adjoint = adjoint_of(m, of->var);
    put(p, NODE_COMMENT)->text.lines = of->var->name;
    Node *lane = enter(p, NODE_LANE), *n = put(p, NODE_FACTOR);
    n->factor.matrix = of->var;
    n->factor.adjoint = adjoint;
    leave(p, lane);
    put_barrier(p);
    const Factor f = matrix_factor(of->call->args[0], adjoint, of->span);
    put_sums(m, words(p, "by_%s", of->var->name), 1, &f, NULL, NULL);
}

void put_inverse(HmcBlock *m, const Inverse *of)
{
    Lower *p = m->p;
    put(p, NODE_COMMENT)->text.lines = of->inverse->name;
    Node *lane = enter(p, NODE_LANE), *n = put(p, NODE_FACTOR);
    n->factor.matrix = of->matrix;
    n->factor.inverse = of->inverse;
    n->factor.log_det = of->log_det;
    n->factor.adjoint = adjoint_of(m, of->inverse);
    n->factor.log_det_adjoint = adjoint_of(m, of->log_det);
    leave(p, lane);
    put_barrier(p);
    const Factor f = matrix_factor(of->of, n->factor.adjoint, m->update->span);
    put_sums(m, words(p, "by_%s", of->inverse->name), 1, &f, NULL, NULL);
}
