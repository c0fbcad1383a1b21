// elliptical.c -- a vector with a joint normal prior, updated whole by elliptical slice sampling (graph/updates/elliptical.c;
// device/elliptical.h).
#include "lower.h"

// along so many ellipses: a draw from the prior and some evaluations of the likelihood cost little beside the factor of the prior's matrix
// and the rest of a sweep
enum { ELLIPSES_A_SWEEP = 8 };

// A matrix that all vectors share, in an array that is filled before them.
static Expr *shared_matrix(Lower *p, const Conditional *c, Expr *e)
{
    bool shared = ex_rank(e) == 2 && e->kind != EX_REF;
    for (int k = 0; k < c->var->rank - 1; k++) shared &= !ex_mentions_index(e, c->element[k]);
    if (!shared) return e;
    Expr *dim[] = {ex_dim(e, 0), ex_dim(e, 1)}, **at = NEW_N(p->g->arena, Expr *, 2);
    Loops all = {.n = 2};
    for (int k = 0; k < 2; k++) at[k] = ex_index(all.index[k] = index_new(intern(k ? "j" : "i"), ex_num(1), dim[k]));
    Var *m = work_array(p, ROLE_BLOCK, words(p, "factor_%s", c->var->name), 2, dim);
    Node *n = enter_nest(p, NODE_NEST, &all, 2, at, NULL);
    put_assign(p, ASSIGN_SET, place_element(ex_ref(m, 2, at)), ex_at(e, 2, at));
    leave(p, n);
    return ex_ref(m, 0, NULL);
}

void update_elliptical(Lower *p, const Update *s)
{
    const Ellipse *e = s->ellipse;
    Conditional *c = s->conditional;
    Var *v = c->var;
    Arena *a = p->g->arena;
    const int nbatch = v->rank - 1;
    Expr *size = v->dim[nbatch], *k = ex_index(c->element[nbatch]);
    comment_update(p, s);
    note(p, "  normals: a draw from %s, less its mean; offset: %s less that mean", e->prior->dist->name, v->name);
    Var *mean = work_array(p, ROLE_BLOCK, words(p, "mean_%s", v->name), 1, &size);
    Var *normals = work_array(p, ROLE_BLOCK, words(p, "normals_%s", v->name), 1, &size),
        *offset = work_array(p, ROLE_BLOCK, words(p, "offset_%s", v->name), 1, &size);
    bool once = !any_loops(c->density);
    for (const Part *q = c->density; q; q = q->next) once |= needs_array(q->value);
    Kernel *kernel = open_kernel(p, once ? KERNEL_ONCE : KERNEL_TEAM, words(p, "elliptical_%s", v->name), "wide");
    DrawArg *arg = NEW_N(a, DrawArg, e->nargs + 1);
    for (int i = 0; i < e->nargs; i++) arg[i].value = shared_matrix(p, c, e->arg[i]);
    Opened opened = enter_elements(p, s, BY_TEAM);
    // Streams: one for the normals of an ellipse and one for its angle, by ellipse and vector.
    Var *streams = local_new(a, "streams");
    Index *repeat = index_new(intern("repeat"), ex_num(1), ex_num(ELLIPSES_A_SWEEP));
    Expr *of_normals[MAX_RANK + 1], *of_angle[MAX_RANK + 1];
    streams->dim[streams->rank++] = ex_num(2 * ELLIPSES_A_SWEEP);
    of_normals[0] = ex_index(repeat);
    of_angle[0] = ex_add2(ex_index(repeat), ex_num(ELLIPSES_A_SWEEP));
    for (int i = 0; i < nbatch; i++) {
        streams->dim[streams->rank++] = v->dim[i];
        of_normals[i + 1] = of_angle[i + 1] = ex_index(c->element[i]);
    }
    const DensityPiece *pieces = prepare_density(p, c, true, true, true);
    Node *loop = enter(p, NODE_LOOP);
    loop->loop.how = SHARE_SERIAL;
    loop->loop.index[loop->loop.n++] = repeat;
    Node *d = put(p, NODE_DRAW);
    d->draw.var = v;
    d->draw.element = ex_ref(streams, streams->rank, of_normals);
    Expr *first[MAX_RANK];
    for (int i = 0; i < v->rank; i++) first[i] = i < nbatch ? ex_index(c->element[i]) : ex_num(1);
    d->draw.vector = ex_ref(v, v->rank, first);
    d->draw.place = place_element(ex_ref(normals, 1, (Expr *[]){ex_num(1)}));
    d->draw.routine = e->routine;
    d->draw.nargs = e->nargs;
    d->draw.arg = arg;
    d->draw.whole = size;
    if (!once) put(p, NODE_BARRIER);
    Loops elements = {.n = 1, .index = {c->element[nbatch]}};
    Expr **target = arena_copy(a, &k, sizeof k);
    Node *n = enter_nest(p, NODE_NEST, &elements, 1, target, NULL);
    put_assign(p, ASSIGN_SET, place_element(ex_ref(mean, 1, &k)), e->mean);
    put_assign(p, ASSIGN_SET, place_element(ex_ref(offset, 1, &k)), ex_sub(c->current, ex_ref(mean, 1, &k)));
    put_assign(p, ASSIGN_SET, place_element(ex_ref(normals, 1, &k)), ex_sub(ex_ref(normals, 1, &k), ex_ref(mean, 1, &k)));
    leave(p, n);
    Node *ellipse = enter(p, NODE_ELLIPSE);
    ellipse->ellipse.c = c;
    ellipse->ellipse.vector = d->draw.vector;
    ellipse->ellipse.stream = ex_ref(streams, streams->rank, of_angle);
    ellipse->ellipse.cosine = local_new(a, "cosine");
    ellipse->ellipse.sine = local_new(a, "sine");
    n = enter_nest(p, NODE_NEST, &elements, 1, target, NULL);
    put_assign(p, ASSIGN_SET, place_element(c->current),
               ex_add(3, (Expr *[]){ex_ref(mean, 1, &k), ex_mul2(local_ref(ellipse->ellipse.cosine), ex_ref(offset, 1, &k)),
                                    ex_mul2(local_ref(ellipse->ellipse.sine), ex_ref(normals, 1, &k))}));
    leave(p, n);
    put_density(p, pieces, local_new(a, "lp"), false);
    leave(p, ellipse);
    leave(p, loop);
    leave_elements(p, &opened);
    close_kernel(p);
    if (once) launch(p, LAUNCH_ONCE, kernel);
    else launch_team(p, kernel);
}
