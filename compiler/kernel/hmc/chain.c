// chain.c -- by the chain rule from derivatives by the variables to derivatives by the coordinates.
#include <stdlib.h>
#include "hmc.h"

// Of several ends this one, up to rounding: the outermost was found at the variables, and this end may be written in their coordinates,
// log(a) as that of a.
static Expr *is_outermost(Expr *end, Expr *outermost)
{
    Expr *size = ex_add2(ex_call1("abs", outermost), ex_num(1e-4));
    return ex_call2("<=", ex_call1("abs", ex_sub(end, outermost)), ex_mul2(ex_num(1e-12), size));
}

// What moving ends of a variable give to the variables that they are made of.
static void put_end_slopes(HmcBlock *m, int i)
{
    Lower *p = m->p;
    const Ends *ends = &m->ends[i];
    Loops l;
    Expr *x = all_elements(m->update->block[i], &l), *q = of_ref(m, m->position, x), *g = of_ref(m, m->gradient, x);
    Node *n = each_element(m, x, &l);
    for (int side = 0; side < 2; side++)
        put_assign(p, ASSIGN_SET, place_element(ex_ref(ends->slope[side], x->nargs, x->args)),
                   ex_call(side ? "line_by_upper" : "line_by_lower", 4, (Expr *[]){q, end_of(ends, 0, x), end_of(ends, 1, x), g}));
    leave(p, n);
    put_barrier(p);
    for (const Bound *b = bounds_of(m, m->update->block[i]); b; b = b->next) {
        Factor f = *b->f;
        Expr *ref = b->term->args[0], *sum = ex_num(0);
        for (int side = 0; side < 2; side++) {
            Expr *end = b->term->args[1 + side];
            if (!reads_block(m, end)) continue;
            Expr *decides = is_outermost(end, end_of(ends, side, ref));
            sum = ex_add2(sum, ex_call3("if_else", decides, ex_mul2(end, ex_ref(ends->slope[side], ref->nargs, ref->args)), ex_num(0)));
        }
        if (ex_is_num(sum, 0)) continue;
        f.log_density = sum;
        Derivative *terms;
        const char *why;
        if (!derivatives(p->g, &f, m->update->block, m->update->nblock, &terms, &why)) abort();  // order_ends has checked
        for (Derivative *d = terms; d; d = d->next) {
            Pending w = {.d = d, .weight = d->weight};
            put_pending(m, &w);
            put_barrier(p);
        }
    }
}

// What vectors give to the factor that they share, and by way of it to the variables that this is made of; their own derivatives, and those
// by their centres.
static void put_vector_slopes(HmcBlock *m, int i)
{
    Lower *p = m->p;
    const Root *r = m->centring[i].root;
    const Var *v = m->update->block[i];
    Loops l;
    Expr *x = all_elements(v, &l), *k = ex_index(v->own[v->rank - 1]), *diagonal = ex_call1("log", ex_ref(r->array, 2, (Expr *[]){k, k})),
         *share = of_ref(m, m->shares, x);
    Node *n = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
    n->nest.op = ASSIGN_ADD;
    put_assign(p, ASSIGN_ADD, place_local(m->lp), ex_mul(3, (Expr *[]){ex_num(r->precision ? -1 : 1), share, diagonal}));
    leave(p, n);
    put_barrier(p);
    put_whitened(m, i, TRANSFORM_CHAIN);
    if (!r->slope) return;
    put_fill(p, r->slope, count_dims(r->slope, 0, 2), false);
    put_barrier(p);
    Index *j = index_new(intern("j"), ex_num(1), v->dim[v->rank - 1]),
          *below = index_new(v->own[v->rank - 1]->name, ex_num(1), ex_sub(ex_index(j), ex_num(1)));
    Expr *row[MAX_RANK], *column[MAX_RANK], **at = NEW_N(p->g->arena, Expr *, 4);
    for (int i = 0; i < v->rank; i++) row[i] = column[i] = x->args[i];
    row[v->rank - 1] = at[0] = ex_index(j);
    column[v->rank - 1] = at[1] = ex_index(below);
    at[2] = at[3] = k;
    Loops pairs = l;
    pairs.index[pairs.n - 1] = j;
    pairs.index[pairs.n++] = below;
    n = enter_nest(p, NODE_REDUCE, &pairs, 2, at, r->slope->dim);
    put_assign(p, ASSIGN_ADD, place_element(ex_ref(r->slope, 2, at)),
               ex_mul2(ex_ref(r->left, v->rank, row), ex_ref(r->right, v->rank, column)));
    leave(p, n);
    put_barrier(p);
    n = enter_nest(p, NODE_REDUCE, &l, 2, at + 2, r->slope->dim);
    put_assign(p, ASSIGN_ADD, place_element(ex_ref(r->slope, 2, at + 2)), like(r->pivot, x));
    leave(p, n);
    put_barrier(p);
    Factor f = matrix_factor(ex_ref(r->slope, 0, NULL), r->slope, m->update->span);
    Expr *sub[] = {ex_index(f.plates.index[0]), ex_index(f.plates.index[1])};
    if (r->matrix) {
        Node *lane = enter(p, NODE_LANE), *factor = put(p, NODE_FACTOR);
        factor->factor.matrix = r->array;
        factor->factor.adjoint = r->slope;
        leave(p, lane);
        put_barrier(p);
        f = matrix_factor(r->matrix, r->slope, m->update->span);
    } else f.log_density = ex_mul2(ex_ref(r->slope, 2, sub), element_of_root(r, sub));
    put_sums(m, words(p, "by_root_%s", v->name), 1, &f, NULL, NULL);
}

// What a standardised variable gives to the variables that its centre and its spread are made of, and its own derivatives.
static void put_centring_slopes(HmcBlock *m, int i)
{
    Lower *p = m->p;
    const Centring *c = &m->centring[i];
    if (recursion_of(c->priors)) put_recursion_slopes(m, i);
    put_barrier(p);
    if (c->root) put_vector_slopes(m, i);
    else {
        Loops l;
        Expr *x = all_elements(m->update->block[i], &l), *g = of_ref(m, m->gradient, x), *share = share_of(m, x),
             *scale = like(c->scale, x), *spread = like(c->spread, x);
        Node *n = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
        n->nest.op = ASSIGN_ADD;
        put_assign(p, ASSIGN_ADD, place_local(m->lp), ex_mul2(share, ex_call1("log", spread)));
        put_assign(p, ASSIGN_SET, place_element(like(c->slope[0], x)), ex_call3("standard_by_centre", share, scale, g));
        put_assign(p, ASSIGN_SET, place_element(like(c->slope[1], x)),
                   ex_call("standard_by_spread", 5, (Expr *[]){x, share, like(c->centre, x), spread, g}));
        put_assign(p, ASSIGN_SET, place_element(g), ex_mul2(g, scale));
        leave(p, n);
        put_barrier(p);
    }
    for (const Prior *r = c->priors; r; r = r->next) {
        Factor f = *r->f;
        f.log_density = ex_mul2(r->centre, like(c->slope[0], r->element));
        if (!c->root) f.log_density = ex_add2(f.log_density, ex_mul2(r->spread, like(c->slope[1], r->element)));
        Derivative *terms;
        const char *why;
        if (!derivatives(p->g, &f, m->update->block, m->update->nblock, &terms, &why)) abort();  // is_simple has checked
        for (Derivative *d = terms; d; d = d->next) {
            if (d->ref->var == m->update->block[i]) continue;
            put_pending(m, &(Pending){.d = d, .weight = d->weight});
            put_barrier(p);
        }
    }
}

bool has_jacobian(const HmcBlock *m)
{
    bool any = false;
    for (int i = 0; i < m->update->nblock; i++)
        any |= m->tied[i].slope || !is_free(&m->ends[i]) || m->centring[i].priors || m->update->block[i]->exists;
    return any;
}

// Above the chain rule: with effects, those of their centres and spreads come after them.
static const char *chain_text(const HmcBlock *m)
{
    const char *effects = "";
    for (int i = 0; i < m->update->nblock; i++)
        if (m->centring[i].priors && !m->centring[i].root)
            effects = words(m->p, "%s%s%s", effects, *effects ? ", " : "", m->update->block[i]->name);
    const char *chain = "from unknowns x to coordinates q: d lp/dq = d lp/dx * dx/dq + d log|dx/dq|/dq; lp gains log|dx/dq|";
    return *effects ? words(m->p, "%s. First %s: by centre and spread lp depends on what these are made of as well", chain, effects)
                    : chain;
}

// By the chain rule: d/dq = d/dx dx/dq + d log |dx/dq| / dq, from the last variable to the first: what comes later may have ends that
// depend with what comes before. Elements that do not exist are independent and standard normal.
void put_chain_rule(HmcBlock *m)
{
    Lower *p = m->p;
    if (has_jacobian(m)) put(p, NODE_COMMENT)->text.lines = chain_text(m);
    for (int o = m->update->nblock - 1; o >= 0; o--) {
        const int i = m->order[o];
        Var *v = m->update->block[i];
        const Ends *ends = &m->ends[i];
        if (ends->slope[0]) put_end_slopes(m, i);
        Loops l;
        if (m->tied[i].slope) {
            put_tied_chain(m, v);
            continue;
        }
        Expr *x = all_elements(v, &l), *q = of_ref(m, m->position, x), *g = of_ref(m, m->gradient, x);
        if (m->centring[i].priors) put_centring_slopes(m, i);
        if (!is_free(ends)) {
            Expr *log_slope = line_transform(ends, LINE_LOG_SLOPE, q, x),
                 *value = ex_add2(ex_mul2(g, line_transform(ends, LINE_SLOPE, q, x)), line_transform(ends, LINE_BEND, q, x));
            Node *n = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
            n->nest.op = ASSIGN_ADD;
            put_assign(p, ASSIGN_ADD, place_local(m->lp), log_slope);
            put_assign(p, ASSIGN_SET, place_element(g), value);
            leave(p, n);
        }
        if (!l.guard) continue;
        l.guard = ex_call1("!", l.guard);
        Node *n = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
        n->nest.op = ASSIGN_ADD;
        put_assign(p, ASSIGN_ADD, place_local(m->lp), ex_mul2(ex_num(-0.5), ex_pow(q, 2)));
        put_assign(p, ASSIGN_SET, place_element(g), ex_neg(q));
        leave(p, n);
    }
}
