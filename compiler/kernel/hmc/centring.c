// centring.c -- effects: elements whose prior has a centre and a spread that depend on the block.
//
// u with a prior of centre m and spread s, which are updated with it, has the coordinate q of
//
//   u = m + s^c (q - (1 - c) m)         log |du/dq| = c log s
//
// c = 0 is the centred form, c = 1 the non-centred form; values between suit effects that the data identify in part
// (Papaspiliopoulos, Roberts and Skold 2007, Statistical Science 22; Gorinova, Moore and Hoffman 2020, ICML). c is kept for each element,
// and found in warm-up (nuts.h). Where m, s and a density g of u are given, with l = log g:
//
//   dl/dq = s^c dl/du      dl/dm: (1 - (1 - c) s^c) dl/du more      d(l + log |du/dq|)/ds: c ((u - m) dl/du + 1)/s more
//
// Vectors with a joint normal prior, v[i, ...] ~ multi_normal(m, S), have the factor of S for a spread, which they share (whitening.c).
#include <math.h>
#include <stdlib.h>
#include "hmc.h"

// Centre and spread by algebra: two of the distribution's arguments.
static bool find_scaled(const HmcBlock *m, Prior *r)
{
    const Factor *f = r->f;
    int centre, spread;
    if (!centre_and_spread((Graph *)m->p->g, f->dist, f->nargs, f->args, &centre, &spread)) return false;
    r->centre = f->args[centre];
    r->spread = f->args[spread];
    return true;
}

// Each instance has an element for its own.
static bool is_of_one(const Expr *ref, const Loops *plates)
{
    int indices = 0;
    for (int k = 0; k < ref->nargs; k++)
        for (int i = 0; i < plates->n; i++) {
            if (!ex_mentions_index(ref->args[k], plates->index[i])) continue;
            if (ref->args[k]->kind != EX_INDEX) return false;
            indices++;
        }
    return indices == plates->n;
}

// Elements of v that a centre reads: they come before the prior's own along one of its indices, by a number.
typedef struct Before {
    const Var *v;
    const Expr *element;
    int along;
    bool ok;
} Before;

static Look test_before(const Expr *e, void *with)
{
    Before *b = with;
    if (e->kind != EX_REF || e->var != b->v) return LOOK;
    int apart = 0;
    b->ok &= e->nargs == b->element->nargs;
    for (int k = 0; k < e->nargs && b->ok; k++) {
        const Expr *back = ex_sub(b->element->args[k], e->args[k]);
        if (ex_is_num(back, 0)) continue;
        b->ok &= back->kind == EX_NUM && back->number >= 1 && (b->along < 0 || b->along == k);
        b->along = k;
        apart++;
    }
    b->ok &= apart == 1;
    return b->ok ? SKIP : FOUND;
}

// Whether the elements that its centre reads come before: then it can be computed element by element, and so can its derivatives.
static bool find_recursion(const HmcBlock *m, const Var *v, Prior *r)
{
    if (ex_reads(r->spread, v)) return false;
    if (!ex_reads(r->centre, v)) return true;
    Before b = {v, r->element, -1, true};
    ex_find(r->centre, test_before, &b);
    if (!b.ok || b.along < 0 || r->element->args[b.along]->kind != EX_INDEX || r->f->plates.guard) return false;
    r->along = r->element->args[b.along]->index;
    for (int k = 0; k < r->f->plates.n; k++)  // other indices do not change where it begins and ends
        if (r->f->plates.index[k] != r->along &&
            (ex_mentions_index(r->along->lo, r->f->plates.index[k]) || ex_mentions_index(r->along->hi, r->f->plates.index[k])))
            return false;
    Factor f = *r->f;
    Derivative *terms;
    const char *why;
    f.log_density = r->centre;
    if (!derivatives(m->p->g, &f, m->update->block, m->update->nblock, &terms, &why)) return false;
    for (const Derivative *d = terms; d; d = d->next)
        if (d->ref->var == v && d->loops.n != f.plates.n) return false;
    return true;
}

const Prior *recursion_of(const Prior *r)
{
    while (r && !r->along) r = r->next;
    return r;
}

// The priors of a variable's elements; NULL: some of them has none that serves, or they need none.
Prior *priors_of(const HmcBlock *m, Var *v, Root **root)
{
    Prior *first = NULL, **last = &first;
    bool varies = false;
    *root = NULL;
    if (v->base == BASE_INT || tied_of(m, v)->slope || isfinite(v->lower_number) || isfinite(v->upper_number) || bounds_of(m, v))
        return NULL;
    if (v->rank && (first = vectors_of(m, v, root))) return first;
    for (int i = 0; i < m->update->nuts.n; i++) {
        const Factor *f = m->update->nuts.factor[i];
        if (!f->value || f->value->kind != EX_REF || f->value->var != v) continue;
        Prior r = {.f = f, .element = f->value};
        if (!f->dist || f->truncated || f->ncomponents || !is_of_one(f->value, &f->plates) || !find_scaled(m, &r)) return NULL;
        if (!find_recursion(m, v, &r) || (r.along && recursion_of(first)) || !is_simple(m, f, ex_add2(r.centre, r.spread))) return NULL;
        varies |= reads_block(m, r.centre) || reads_block(m, r.spread);
        *last = arena_copy(m->p->g->arena, &r, sizeof r);
        last = &(*last)->next;
    }
    return varies ? first : NULL;
}

bool prior_reads(const Prior *r, const Var *v)
{
    for (; r; r = r->next)
        if (ex_reads(r->centre, v) || ex_reads(r->spread, v)) return true;
    return false;
}

void put_centrings(HmcBlock *m)
{
    Lower *p = m->p;
    for (int i = 0; i < m->update->nblock; i++) {
        Centring *c = &m->centring[i];
        const Var *v = m->update->block[i];
        if (!c->priors) continue;
        if (!m->shares) {
            m->shares = work_array(p, ROLE_TUNING, array_name(m, "non_centring"), 1, &m->size);
            m->next_shares = work_array(p, ROLE_TUNING, array_name(m, "next_non_centring"), 1, &m->size);
        }
        c->centre = work_array(p, ROLE_BLOCK, words(p, "centre_%s", v->name), v->rank, v->dim);
        if (c->root) {
            c->slope[0] = work_array(p, ROLE_BLOCK, words(p, "slope_centre_%s", v->name), v->rank, v->dim);
            make_root(m, c->root, v);
            continue;
        }
        c->spread = work_array(p, ROLE_BLOCK, words(p, "spread_%s", v->name), v->rank, v->dim);
        c->scale = work_array(p, ROLE_BLOCK, words(p, "scale_%s", v->name), v->rank, v->dim);
        c->slope[0] = work_array(p, ROLE_BLOCK, words(p, "slope_centre_%s", v->name), v->rank, v->dim);
        c->slope[1] = work_array(p, ROLE_BLOCK, words(p, "slope_spread_%s", v->name), v->rank, v->dim);
    }
}

static Expr *is_short(const Prior *r) { return ex_call2("<=", ex_sub(r->along->hi, r->along->lo), ex_call("longest_recursion", 0, NULL)); }

static Expr *share_if_short(const HmcBlock *m, const Expr *element) { return of_ref(m, m->shares, element); }

// How far an element is standardised. A recursion is one lane's work: one that is too long for that stays as it is written.
Expr *share_of(const HmcBlock *m, const Expr *element)
{
    const Prior *r = recursion_of(m->centring[at_block(m, element->var)].priors);
    Expr *share = of_ref(m, m->shares, element);
    return r ? ex_call3("if_else", is_short(r), share, ex_num(0)) : share;
}

// The prior of all elements there are?
static bool is_of_all(const Prior *r, const Var *v)
{
    bool all = !r->next && !r->f->plates.guard;
    for (int k = 0; k < v->rank && all; k++)
        all = r->element->args[k]->kind == EX_INDEX && ex_is_num(r->element->args[k]->index->lo, 1) &&
              r->element->args[k]->index->hi == v->dim[k];
    return all;
}

// Centres, spreads and scales of all elements of a variable; of a recursion the centres as well, if its elements are known.
void put_centring(HmcBlock *m, int i, bool known)
{
    Lower *p = m->p;
    const Centring *c = &m->centring[i];
    const Var *v = m->update->block[i];
    Loops l;
    Expr *x = all_elements(v, &l);
    l.guard = NULL;
    put_barrier(p);
    if (!is_of_all(c->priors, v)) {
        Node *n = each_element(m, x, &l);
        put_assign(p, ASSIGN_SET, place_element(like(c->centre, x)), ex_num(0));
        if (!c->root) put_assign(p, ASSIGN_SET, place_element(like(c->spread, x)), ex_num(1));
        leave(p, n);
    }
    for (const Prior *r = c->priors; r; r = r->next) {
        const Loops over = r->f->plates;
        if (r != c->priors || !is_of_all(r, v)) put_barrier(p);
        Node *n = enter_nest(p, NODE_NEST, &over, r->element->nargs, r->element->args, NULL);
        if (!r->along || known) put_assign(p, ASSIGN_SET, place_element(like(c->centre, r->element)), r->centre);
        if (!c->root) put_assign(p, ASSIGN_SET, place_element(like(c->spread, r->element)), r->spread);
        leave(p, n);
    }
    put_barrier(p);
    if (c->root) {
        put_root(m, c->root);
        return;
    }
    Node *n = each_element(m, x, &l);
    put_assign(p, ASSIGN_SET, place_element(like(c->scale, x)), ex_call2("standard_scale", share_of(m, x), like(c->spread, x)));
    leave(p, n);
}

// The element at a coordinate.
Expr *at_coordinate(const HmcBlock *m, const Centring *c, const Expr *x, Expr *share)
{
    if (c->root) return ex_add2(like(c->centre, x), like(c->root->apart, x));
    return ex_call("from_standard", 4, (Expr *[]){of_ref(m, m->position, x), share, like(c->centre, x), like(c->scale, x)});
}

// Its coordinate: the one that it has, if that gives its value.
Expr *coordinate_at(const HmcBlock *m, const Centring *c, Expr *x)
{
    Expr *fresh = ex_call("to_standard", 4, (Expr *[]){x, share_of(m, x), like(c->centre, x), like(c->scale, x)});
    return ex_call("kept_coordinate", 4, (Expr *[]){of_ref(m, m->position, x), at_coordinate(m, c, x, share_of(m, x)), x, fresh});
}

// The loops of a recursion's prior: chains side by side, each in order, or from the last element to the first with `t` for its index.
static Node *enter_recursion(HmcBlock *m, const Prior *r, Index *t)
{
    Lower *p = m->p;
    Loops beside = {0};
    for (int k = 0; k < r->f->plates.n; k++)
        if (r->f->plates.index[k] != r->along) beside.index[beside.n++] = r->f->plates.index[k];
    put_barrier(p);
    Node *only = enter(p, NODE_IF);
    only->test.condition = is_short(r);
    if (beside.n) enter_nest(p, NODE_NEST, &beside, 0, NULL, NULL);
    else enter(p, NODE_LANE);
    enter_loop(p, SHARE_SERIAL, t);
    return only;
}

// Each element from its coordinate and those before it.
void put_recursion(HmcBlock *m, int i)
{
    const Centring *c = &m->centring[i];
    const Prior *r = recursion_of(c->priors);
    Node *n = enter_recursion(m, r, r->along);
    put_assign(m->p, ASSIGN_SET, place_element(like(c->centre, r->element)), r->centre);
    put_assign(m->p, ASSIGN_SET, place_element(r->element), at_coordinate(m, c, r->element, share_if_short(m, r->element)));
    leave(m->p, n);
}

// Each element's derivative goes on to those before it, by way of its centre: it is complete when those of all later ones are.
void put_recursion_slopes(HmcBlock *m, int i)
{
    const Centring *c = &m->centring[i];
    const Prior *r = recursion_of(c->priors);
    Factor f = *r->f;
    Derivative *terms;
    const char *why;
    f.log_density = r->centre;
    if (!derivatives(m->p->g, &f, m->update->block, m->update->nblock, &terms, &why)) abort();  // find_recursion has checked
    Index *back = index_new(r->along->name, r->along->lo, r->along->hi);
    Expr *from_last = ex_sub(ex_add2(back->lo, back->hi), ex_index(back)),
         *slope =
             ex_call3("standard_by_centre", share_if_short(m, r->element), like(c->scale, r->element), of_ref(m, m->gradient, r->element));
    Node *n = enter_recursion(m, r, back);
    for (const Derivative *d = terms; d; d = d->next) {
        if (d->ref->var != m->update->block[i]) continue;
        Expr *value = ex_mul(3, (Expr *[]){slope, d->weight, d->rest});
        put_assign(m->p, ASSIGN_ADD, place_element(ex_replace_index(of_ref(m, m->gradient, d->ref), r->along, from_last)),
                   ex_replace_index(value, r->along, from_last));
    }
    leave(m->p, n);
}
