// log_density.c -- the kernels of the log density and its gradient by the coordinates.
#include "hmc.h"

// The log density by the coordinates, and by the variables: the names of their places are those of device/line.h, from 0.
enum { BY_COORDINATES = 1, BY_VARIABLES = 2 };

static Expr *density_place(const HmcBlock *m, int which)
{
    Var *place = local_new(m->p->g->arena, which == BY_COORDINATES ? "BY_COORDINATES" : "BY_UNKNOWNS");
    place->base = BASE_INT;
    return ex_ref(m->density, 1, (Expr *[]){ex_plus(local_ref(place), 1)});
}

static void put_density_store(HmcBlock *m, int which)
{
    Lower *p = m->p;
    if (which == BY_COORDINATES && !m->totals) {
        Node *last = put_assign(p, ASSIGN_SET, place_element(density_place(m, which)), local_ref(m->lp));
        if (p->open->kind == KERNEL_TEAM) last->assign.how = STORE_LAST;
        return;
    }
    put_barrier(p);
    Node *lane = enter(p, NODE_LANE);
    put_assign(p, ASSIGN_SET, place_element(density_place(m, which)), local_ref(m->lp));
    for (const Total *t = m->totals; t; t = t->next) put_assign(p, ASSIGN_ADD, gradient_place(m, t->ref), local_ref(t->local));
    m->totals = NULL;
    m->last_total = &m->totals;
    leave(p, lane);  // all wait for it
}

// Passes over rows for sums that wait. Before the first the kernel k, which fills their weights, ends; gives: whether there is one.
static bool launch_pending_rows(HmcBlock *m, Kernel *k)
{
    Lower *p = m->p;
    bool rows = false;
    for (Pending *w = m->pending; w; w = w->next) {
        Launches *const list = p->launches;
        Launches later = {0};
        p->launches = &later;
        const bool one = row_sums_of(m, w);
        p->launches = list;
        if (!one) continue;
        if (!rows) {  // the weights are filled by the kernel that ends here
            put_density_store(m, BY_VARIABLES);
            close_kernel(p);
            launch_team(p, k);
        }
        rows = true;
        if (!later.first) continue;  // one pass serves several
        if (!p->launches->first) p->launches->last = &p->launches->first;
        *p->launches->last = later.first;
        p->launches->last = later.last;
    }
    return rows;
}

void put_log_density(HmcBlock *m, Prepared *first)
{
    Lower *p = m->p;
    bool whole_arrays = false;
    for (const Prepared *r = first; r; r = r->next) {
        const Loops l = r->f.plates;
        whole_arrays |= needs_own_array(r->f.log_density, &l);
        for (const Derivative *d = r->terms; d; d = d->next) whole_arrays |= needs_own_array(ex_mul2(d->weight, d->rest), &d->loops);
    }
    for (RowSpan *s = m->spans; s; s = s->next) put_span(m, s, first);
    comment_update(p, m->update);
    Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, "density_%s", m->stem), "wide");
    k->by_one = whole_arrays;
    put_offsets(m);
    m->lp = local_new(p->g->arena, "lp");
    put_let(p, NULL, m->lp, from_spans(m, NULL), "wide")->let.grows = true;
    for (const Prepared *r = first; r; r = r->next)
        for (const Derivative *d = r->terms; d; d = d->next) declare_total(m, "slope", d->ref, from_spans(m, d->ref));
    put_fill(p, m->gradient, (Count){1, {m->size}}, false);
    for (int i = 0; i < m->update->nblock; i++)
        if (m->tied[i].slope) put_fill(p, m->tied[i].slope, count_dims(m->tied[i].slope, 0, m->tied[i].slope->rank), false);
    for (int i = m->update->nblock; i < m->moving.n; i++)
        put_fill(p, m->adjoint[i], count_dims(m->adjoint[i], 0, m->adjoint[i]->rank), false);
    put_barrier(p);
    for (const RowSpan *s = m->spans; s; s = s->next) put_span_gradient(m, s);
    for (const Prepared *r = first; r; r = r->next)
        if (!r->span) put_factor(m, first, r);
    const bool rows = launch_pending_rows(m, k);
    if (rows) {
        note(p, "The gradient of the log density of %s, from what %s and the passes over rows have left", m->update->description->what,
             k->name);
        k = open_kernel(p, KERNEL_TEAM, words(p, "gradient_%s", m->stem), "wide");
        k->by_one = whole_arrays;
        put_offsets(m);
        m->lp = local_new(p->g->arena, "lp");
        put_let(p, NULL, m->lp, density_place(m, BY_VARIABLES), "wide")->let.grows = true;
    } else put_density_store(m, BY_VARIABLES);
    put_all_pending(m);
    if (m->moving.nseries || m->moving.nfactored || m->inverses || m->once) put_barrier(p);
    put_once(m, m->once);
    for (const Inverse *i = m->inverses; i; i = i->next) put_inverse(m, i);
    for (int i = 0; i < m->moving.nfactored; i++) put_factored(m, &m->moving.factored[i]);
    for (int i = m->moving.nseries - 1; i >= 0; i--) put_series_slopes(m, m->moving.series[i]);
    put_chain_rule(m);
    put_density_store(m, BY_COORDINATES);
    close_kernel(p);
    launch_team(p, k);
}

// What the transform adds to the log density and to its gradient where the density is computed as well: modes by the variables leave it
// out.
void put_jacobian(HmcBlock *m)
{
    Lower *p = m->p;
    if (!has_jacobian(m)) return;
    note(p, "The log Jacobian and its gradient: what the log density of the coordinates has besides that of %s",
         m->update->description->subject);
    Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, "jacobian_%s", m->stem), "wide");
    k->part = PART_TABLES;  // the chain rule, which the density has as well
    put_offsets(m);
    m->lp = local_new(p->g->arena, "lp");
    put_let(p, NULL, m->lp, ex_num(0), "wide")->let.grows = true;
    put_fill(p, m->gradient, (Count){1, {m->size}}, false);
    for (int i = 0; i < m->update->nblock; i++)
        if (m->tied[i].slope) put_fill(p, m->tied[i].slope, count_dims(m->tied[i].slope, 0, m->tied[i].slope->rank), false);
    put_barrier(p);
    put_chain_rule(m);
    put_density_store(m, BY_COORDINATES);
    close_kernel(p);
    launch_team(p, k);
}
