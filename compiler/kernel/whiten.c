// whiten.c -- what a covariance is made of, drawn given the white noise of its vector (graph/updates/whiten.c), which changes with it.
#include "lower.h"

// root: the triangle at what is tried.
static void put_root(Lower *p, const White *w, Var *root)
{
    Expr **at = NEW_N(p->g->arena, Expr *, 2);
    Loops all = {.n = 2};
    for (int k = 0; k < 2; k++) at[k] = ex_index(all.index[k] = index_new(intern(k ? "j" : "i"), ex_num(1), root->dim[k]));
    Node *n = enter_nest(p, NODE_NEST, &all, 2, at, NULL);
    put_assign(p, ASSIGN_SET, place_element(ex_ref(root, 2, at)), ex_at(w->root, 2, at));
    leave(p, n);
}

// Loops over the vectors, one after the other, and over the elements of one, from the last if `backward`.
static Opened enter_vectors(Lower *p, const White *w, bool backward)
{
    Opened o = {0};
    for (int k = 0; k < w->vector->rank; k++) {
        Node *n = enter_opened(p, &o, backward && k == w->vector->rank - 1 ? SHARE_BACKWARD : SHARE_SERIAL, NULL);
        n->loop.index[n->loop.n++] = w->element[k];
    }
    return o;
}

// The element of an array of the vector's shape whose last subscript is j.
static Expr *beside(const White *w, Var *array, Expr *j)
{
    Expr *at[MAX_RANK];
    for (int k = 0; k < array->rank; k++) at[k] = k < array->rank - 1 ? ex_index(w->element[k]) : j;
    return ex_ref(array, array->rank, at);
}

// sum over j in lo:hi of factor(j) * array[j], factor(j) = root[k, j] or, across, root[j, k].
static Expr *triangle_times(const White *w, Var *root, bool across, Var *array, Expr *lo, Expr *hi)
{
    Index *j = index_new(intern("j"), lo, hi);
    Expr *k = ex_index(w->element[w->vector->rank - 1]), *at = ex_index(j);
    return ex_reduce("sum", j, lo, hi, ex_mul2(ex_ref(root, 2, across ? (Expr *[]){at, k} : (Expr *[]){k, at}), beside(w, array, at)));
}

// Covariance: offset = root * noise, the noise by forward substitution. Precision: root' * offset = noise, the offset by backward
// substitution.
static void put_noise(Lower *p, const White *w, Var *root, Var *offset, Var *noise)
{
    Expr *n = root->dim[0], *k = ex_index(w->element[w->vector->rank - 1]), *own = ex_ref(root, 2, (Expr *[]){k, k});
    Opened o = enter_vectors(p, w, false);
    put_assign(p, ASSIGN_SET, place_element(beside(w, offset, k)), ex_sub(w->current, w->mean));
    leave_elements(p, &o);
    o = enter_vectors(p, w, false);
    put_assign(p, ASSIGN_SET, place_element(beside(w, noise, k)),
               w->precision
                   ? triangle_times(w, root, true, offset, k, n)
                   : ex_div(ex_sub(beside(w, offset, k), triangle_times(w, root, false, noise, ex_num(1), ex_sub(k, ex_num(1)))), own));
    leave_elements(p, &o);
}

static void put_vector(Lower *p, const White *w, Var *root, Var *offset, Var *noise)
{
    Expr *n = root->dim[0], *k = ex_index(w->element[w->vector->rank - 1]), *own = ex_ref(root, 2, (Expr *[]){k, k});
    Opened o = enter_vectors(p, w, w->precision);
    put_assign(p, ASSIGN_SET, place_element(beside(w, offset, k)),
               w->precision ? ex_div(ex_sub(beside(w, noise, k), triangle_times(w, root, true, offset, ex_add2(k, ex_num(1)), n)), own)
                            : triangle_times(w, root, false, noise, ex_num(1), k));
    put_assign(p, ASSIGN_SET, place_element(w->current), ex_add2(w->mean, beside(w, offset, k)));
    leave_elements(p, &o);
}

void update_white(Lower *p, const Update *s)
{
    const White *w = s->slice.white;
    Conditional *c = s->conditional;
    Var *v = c->var, *f = w->vector;
    comment_update(p, s);
    Expr *size = f->dim[f->rank - 1], *square[] = {size, size};
    Var *width = work_array(p, ROLE_TUNING, words(p, "width_%s", v->name), v->rank, v->dim),
        *root = work_array(p, ROLE_BLOCK, words(p, "root_%s", f->name), 2, square);
    Var *offset = work_array(p, ROLE_BLOCK, words(p, "offset_%s", f->name), f->rank, f->dim),
        *noise = work_array(p, ROLE_BLOCK, words(p, "noise_%s", f->name), f->rank, f->dim);
    Kernel *kernel = open_kernel(p, KERNEL_ONCE, words(p, "whiten_%s", v->name), "wide");
    Opened opened = enter_elements(p, s, BY_ONE);
    put_exists(p, &opened, BY_ONE, exists_at(v, c->element));
    put_root(p, w, root);
    put_noise(p, w, root, offset, noise);
    const DensityPiece *pieces = prepare_density(p, c, true, true, true);
    Var *streams = local_new(p->g->arena, "streams");  // others than those of the slice given the vector
    Expr *of[MAX_RANK + 1] = {ex_num(2)};
    streams->dim[streams->rank++] = ex_num(2);
    for (int k = 0; k < v->rank; k++) {
        of[k + 1] = ex_index(c->element[k]);
        streams->dim[streams->rank++] = v->dim[k];
    }
    Node *n = enter_walk(p, s, NODE_SLICE, width);
    n->slice.stream = ex_ref(streams, streams->rank, of);
    put_root(p, w, root);
    put_vector(p, w, root, offset, noise);
    put_density(p, pieces, local_new(p->g->arena, "lp"), false);
    leave(p, n);
    put_root(p, w, root);  // what was tried last need not be what is taken
    put_vector(p, w, root, offset, noise);
    leave_elements(p, &opened);
    close_kernel(p);
    launch(p, LAUNCH_ONCE, kernel);
}
