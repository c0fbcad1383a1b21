// whitening.c -- vectors with a joint normal prior: the factor of its matrix, by which each element has a centre and a spread given those
// before it (device/whitened.h).
#include <string.h>
#include "hmc.h"

static bool reads_index_of(const Expr *e, const Loops *plates)
{
    for (int k = 0; k < plates->n; k++)
        if (ex_mentions_index(e, plates->index[k])) return true;
    return false;
}

static Expr *triangle_at(const Factor *f, Expr *matrix)
{
    return ex_at(matrix, 2, (Expr *[]){ex_index(f->plates.index[0]), ex_index(f->plates.index[1])});
}

// What the factor of a covariance, or of a precision, is made of: c * A has sqrt(c) times the factor of A, which need not depend on the
// block.
static bool find_root(const HmcBlock *m, const Factor *prior, Root *r)
{
    Expr *L = joint_root((Graph *)m->p->g, prior, &r->precision), *c = ex_num(1), *A;
    if (!L || ex_rank(L) != 2 || L->loose || reads_index_of(L, &prior->plates)) return false;
    r->varies = reads_block(m, L);
    if (L->kind != EX_CALL || L->fn != FN_cholesky_decompose) r->elements = L;
    else if (!ex_scalar_multiple(L->args[0], &c, &A)) A = L->args[0];
    if (r->elements) A = L;
    const bool fixed = !r->elements && !reads_block(m, A);
    if (fixed) r->fixed = A;
    else if (!r->elements) r->matrix = L->args[0];
    if (fixed) r->elements = ex_pow(c, 0.5);
    for (int i = m->update->nblock; i < m->moving.n; i++)
        if (ex_reads(L, m->moving.var[i])) return false;
    if (!r->varies || fixed) return !r->varies || has_derivatives(m, prior, r->elements);
    Expr *moving = r->matrix ? r->matrix : r->elements;
    if (r->matrix ? !stands_alone(L) : !stands_alone(ex_call1("cholesky_decompose", L))) return false;
    const Factor f = matrix_factor(moving, prior->value->var, m->update->span);
    return has_derivatives(m, &f, triangle_at(&f, moving));
}

// The prior of a variable that is a vector, or vectors, for each element: a centre, and the whole of the matrix for a spread. NULL: it has
// none.
Prior *vectors_of(const HmcBlock *m, Var *v, Root **root)
{
    Graph *g = (Graph *)m->p->g;
    const Factor *f = joint_prior(g, v, false);
    if (!f || v->exists || v->known.holes || f->plates.n == MAX_PLATES) return NULL;
    bool other = true, there = false;
    for (int i = 0; i < m->update->nuts.n; i++) {
        const Factor *o = m->update->nuts.factor[i];
        there |= o == f;
        other &= o == f || !o->value || o->value->kind != EX_REF || o->value->var != v;
    }
    Root r = {0};
    if (!there || !other || !find_root(m, f, &r)) return NULL;
    Factor *each = arena_copy(g->arena, f, sizeof *f);
    Index *k = index_new(intern("k"), ex_num(1), v->dim[v->rank - 1]), **index = NEW_N(g->arena, Index *, f->plates.n + 1);
    Expr *at[MAX_RANK], *mean = elaborate_rule(g, f->dist->mean, f->dist->nparams, f->dist->params, f->args);
    for (int i = 0; i < f->plates.n; i++) {
        index[i] = f->plates.index[i];
        at[i] = f->value->args[i];
    }
    index[f->plates.n] = k;
    at[v->rank - 1] = ex_index(k);
    each->plates = loops_of_indices(index, f->plates.n + 1, NULL);
    Prior p = {.f = each,
               .element = ex_ref(v, v->rank, at),
               .centre = ex_at(mean, 1, (Expr *[]){ex_index(k)}),
               .spread = r.matrix ? r.matrix : r.elements};
    if (!is_simple(m, each, p.centre)) return NULL;
    *root = arena_copy(g->arena, &r, sizeof r);
    return arena_copy(g->arena, &p, sizeof p);
}

void make_root(HmcBlock *m, Root *r, const Var *v)
{
    Lower *p = m->p;
    Expr *const n = v->dim[v->rank - 1], *const dim[] = {n, n};
    r->array = work_array(p, ROLE_BLOCK, words(p, "root_%s", v->name), 2, dim);
    if (r->fixed) r->of_fixed = work_array(p, ROLE_BLOCK, words(p, "fixed_root_%s", v->name), 2, dim);
    if (r->varies) r->slope = work_array(p, ROLE_BLOCK, words(p, "slope_root_%s", v->name), 2, dim);
    r->apart = work_array(p, ROLE_BLOCK, words(p, "apart_%s", v->name), v->rank, v->dim);
    r->left = work_array(p, ROLE_BLOCK, words(p, "left_%s", v->name), v->rank, v->dim);
    r->right = work_array(p, ROLE_BLOCK, words(p, r->precision ? "right_%s" : "noise_%s", v->name), v->rank, v->dim);
    r->noise = r->precision ? NULL : r->right;
    r->pivot = work_array(p, ROLE_BLOCK, words(p, "pivot_%s", v->name), v->rank, v->dim);
}

// Element [j, k] of the factor, as an expression.
Expr *element_of_root(const Root *r, Expr *const *at)
{
    return r->fixed ? ex_mul2(r->elements, ex_ref(r->of_fixed, 2, at)) : ex_at(r->elements, 2, at);
}

// The factor, of what has been placed.
void put_root(HmcBlock *m, const Root *r)
{
    Lower *p = m->p;
    put_barrier(p);
    if (r->matrix) {
        factor_in_place(m, r->array, r->matrix);
        return;
    }
    const Factor f = matrix_factor(ex_ref(r->array, 0, NULL), r->array, m->update->span);
    const Loops l = f.plates;
    Expr *at[] = {ex_index(l.index[0]), ex_index(l.index[1])};
    Node *n = enter_nest(p, NODE_NEST, &l, 2, arena_copy(p->g->arena, at, sizeof at), NULL);
    put_assign(p, ASSIGN_SET, place_element(ex_ref(r->array, 2, at)), element_of_root(r, at));
    leave(p, n);
    put_barrier(p);
}

// The first element of an array over the elements of v, or over the coordinates, of the vector that loops over all but the last subscript
// are at.
static Expr *first_of_vector(const HmcBlock *m, Var *array, const Var *v)
{
    Expr *at[MAX_RANK];
    for (int k = 0; k < v->rank; k++) at[k] = k < v->rank - 1 ? ex_index(v->own[k]) : ex_num(1);
    return array == m->position || array == m->gradient || array == m->shares ? coordinate(m, array, v, at) : ex_ref(array, v->rank, at);
}

void put_whitened(HmcBlock *m, int i, Transformed part)
{
    const Centring *c = &m->centring[i];
    const Root *r = c->root;
    const Var *v = m->update->block[i];
    Loops l = {.n = v->rank - 1};
    for (int k = 0; k < l.n; k++) l.index[k] = v->own[k];
    Node *nest = l.n ? enter_nest(m->p, NODE_NEST, &l, 0, NULL, NULL) : enter(m->p, NODE_LANE), *n = put(m->p, NODE_WHITENED);
    const bool chain = part == TRANSFORM_CHAIN;
    n->whitened.part = part;
    n->whitened.precision = r->precision;
    n->whitened.root = r->array;
    n->whitened.size = v->dim[v->rank - 1];
    n->whitened.shares = first_of_vector(m, m->shares, v);
    n->whitened.mean = chain ? NULL : first_of_vector(m, c->centre, v);
    n->whitened.from = part == TRANSFORM_TO ? first_of_vector(m, r->left, v) : NULL;
    n->whitened.q = chain ? NULL : first_of_vector(m, m->position, v);
    n->whitened.apart = chain && !r->precision ? NULL : first_of_vector(m, r->apart, v);
    n->whitened.noise = r->noise ? first_of_vector(m, r->noise, v) : NULL;
    n->whitened.slope = chain ? first_of_vector(m, m->gradient, v) : NULL;
    n->whitened.by_mean = chain ? first_of_vector(m, c->slope[0], v) : NULL;
    n->whitened.left = chain ? first_of_vector(m, r->left, v) : NULL;
    n->whitened.right = chain && r->precision ? first_of_vector(m, r->right, v) : NULL;
    n->whitened.pivot = chain ? first_of_vector(m, r->pivot, v) : NULL;
    leave(m->p, nest);
    put_barrier(m->p);
}

// Factors that do not depend on the block are made once a sweep.
void put_fixed_roots(HmcBlock *m)
{
    Lower *p = m->p;
    for (int i = 0; i < m->update->nblock; i++) {
        const Root *r = m->centring[i].priors ? m->centring[i].root : NULL;
        if (!r || !r->fixed) continue;
        note(p, "The Cholesky factor of the matrix in the prior of %s, up to its scale", m->update->block[i]->name);
        Kernel *k = open_kernel(p, KERNEL_ONCE, words(p, "make_%s", r->of_fixed->name), "wide");
        factor_in_place(m, r->of_fixed, r->fixed);
        close_kernel(p);
        launch(p, LAUNCH_ONCE, k);
    }
}

enum { SHORT_VECTOR = 8, DECIDED = 2 };

// Whether those before an element of the vector determine it to a thirtieth of its sd.
static Expr *is_determined(const Root *r, const Var *v)
{
    Index *j = index_new(intern("j"), ex_num(1), v->dim[v->rank - 1]), *i = index_new(intern("i"), ex_num(1), ex_index(j));
    Expr *at[] = {ex_index(j), ex_index(i)}, *variance = ex_reduce("sum", i, i->lo, i->hi, ex_pow(ex_ref(r->array, 2, at), 2));
    at[1] = at[0];
    return ex_call2("<", ex_num(0),
                    ex_reduce("sum", j, j->lo, j->hi, ex_call2("<", ex_pow(ex_ref(r->array, 2, at), 2), ex_mul2(ex_num(1e-3), variance))));
}

// A long vector that the data identify in small part is white noise as a whole, if one of its elements is nearly determined by those before
// it: how nearly changes by orders of magnitude with what the covariance is made of. That is decided when shares have changed, and kept: it
// may not follow the state.
void put_share_of_vectors(HmcBlock *m, int b)
{
    Lower *p = m->p;
    Loops l;
    const Var *v = m->update->block[b];
    const Root *r = m->centring[b].root;
    Expr *const n = v->dim[v->rank - 1], *x = all_elements(v, &l), *at[MAX_RANK], *next = of_ref(m, m->next_shares, x),
                *share = of_ref(m, m->shares, x);
    Index *k = index_new(intern("j"), ex_num(1), n);
    memcpy(at, x->args, sizeof *at * (size_t)v->rank);
    at[v->rank - 1] = ex_index(k);
    Expr *all = ex_call2("&&", ex_call2("<", ex_num(SHORT_VECTOR), n),
                         ex_call2("<", ex_mul2(ex_num(0.5), n), ex_reduce("sum", k, k->lo, k->hi, coordinate(m, m->next_shares, v, at))));
    if (!r->precision) all = ex_call2("&&", all, is_determined(r, v));
    Node *nest = each_element(m, x, &l);
    put_assign(p, ASSIGN_SET, place_element(share),
               ex_call3("if_else", ex_call2("<=", ex_num(DECIDED), next), ex_sub(next, ex_num(DECIDED)),
                        ex_call3("if_else", all, ex_num(1), next)));
    leave(p, nest);
    put_barrier(p);
    nest = each_element(m, x, &l);
    put_assign(p, ASSIGN_SET, place_element(next), ex_add2(share, ex_num(DECIDED)));
    leave(p, nest);
    put_barrier(p);
}

void put_vectors_to(HmcBlock *m, int i)
{
    Lower *p = m->p;
    Loops l;
    Expr *x = all_elements(m->update->block[i], &l);
    Node *n = each_element(m, x, &l);
    put_assign(p, ASSIGN_SET, place_element(like(m->centring[i].root->left, x)), x);
    leave(p, n);
    put_barrier(p);
    put_whitened(m, i, TRANSFORM_TO);
}
