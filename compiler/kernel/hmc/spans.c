// spans.c -- the rows of products, a few at a time, before the density (ROW_PRODUCTS of device/launch_rows.h).
#include "hmc.h"

// Before the density: the rows of products, a few at a time. What they add up is where the density begins.
void put_span(HmcBlock *m, RowSpan *s, const Prepared *first)
{
    Lower *p = m->p;
    const char *stem = s == m->spans ? m->stem : words(p, "%s_%s", m->stem, s->product[0]->eta->name);
    note(p, "The log density of the rows of %s, and the weight of each predictor", s->product[0]->matrix->name);
    Kernel *k = open_kernel(p, KERNEL_SPAN, words(p, "rows_of_%s", stem), "wide");
    Var *const lp = m->lp;
    Total *const totals = m->totals, **const last_total = m->last_total;
    m->lp = local_new(p->g->arena, "lp");
    put_let(p, NULL, m->lp, ex_num(0), "wide")->let.grows = true;
    m->totals = NULL;
    m->last_total = &m->totals;
    for (const Prepared *r = first; r; r = r->next)
        for (const Derivative *d = r->span == s ? r->terms : NULL; d; d = d->next) declare_total(m, "slope", d->ref, ex_num(0));
    s->totals = m->totals;
    for (const Prepared *r = first; r; r = r->next)
        if (r->span == s) put_factor(m, first, r);
    int n = 1;
    for (const Total *t = s->totals; t; t = t->next) n++;
    s->sums = work_array(p, ROLE_TOTALS, words(p, "sums_%s", stem), 1, (Expr *[]){ex_num(n)});
    n = 1;
    put_assign(p, ASSIGN_SET, place_element(ex_ref(s->sums, 1, (Expr *[]){ex_num(n++)})), local_ref(m->lp))->assign.how = STORE_SPAN;
    for (const Total *t = s->totals; t; t = t->next)
        put_assign(p, ASSIGN_SET, place_element(ex_ref(s->sums, 1, (Expr *[]){ex_num(n++)})), local_ref(t->local))->assign.how = STORE_SPAN;
    m->lp = lp;
    m->totals = totals;
    m->last_total = last_total;
    close_kernel(p);
    Launch *l = launch(p, LAUNCH_ROW_PRODUCTS, k);
    with_extent(l, s->n);
    with_name(l, s->sums);
    with_extent(l, ex_num(n - 1));
    for (int i = 0; i < s->nproducts; i++) {
        with_product(l, s->product[i]);
        reads_rows(p, s->product[i]->matrix->dim[1]);
    }
}

// What the rows of all spans have added up for an element that is named by numbers.
Expr *from_spans(const HmcBlock *m, const Expr *ref)
{
    Expr *sum = ex_num(0);
    for (const RowSpan *s = m->spans; s; s = s->next) {
        int n = ref ? 2 : 1;
        const Total *t = s->totals;
        for (; t && ref && t->ref != ref; t = t->next) n++;
        if (t || !ref) sum = ex_add2(sum, ex_ref(s->sums, 1, (Expr *[]){ex_num(n)}));
    }
    return sum;
}

void put_span_gradient(HmcBlock *m, const RowSpan *s)
{
    for (int i = 0; i < s->nproducts; i++) {
        const Product *r = s->product[i];
        Loops l;
        Expr *x = all_elements(r->coefficients, &l);
        l.guard = NULL;
        Node *n = each_element(m, x, &l);
        put_assign(m->p, ASSIGN_ADD, gradient_place(m, x), ex_ref(r->out, x->nargs, x->args));
        leave(m->p, n);
    }
    put_barrier(m->p);
}
