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

// An ellipse of a vector, as it is put: its element k, and the arrays of its plane.
typedef struct EllipsePlace {
    const Ellipse *e;
    const Conditional *c;
    int nbatch;
    Expr *size, *k;
    Var *mean, *normals, *offset;
    Loops elements;
    Expr **target;
} EllipsePlace;

static EllipsePlace ellipse_place(Lower *p, const Update *s)
{
    const Conditional *c = s->conditional;
    const Var *v = c->var;
    EllipsePlace o = {.e = s->ellipse, .c = c, .nbatch = v->rank - 1};
    o.size = v->dim[o.nbatch];
    o.k = ex_index(c->element[o.nbatch]);
    o.mean = work_array(p, ROLE_BLOCK, words(p, "mean_%s", v->name), 1, &o.size);
    o.normals = work_array(p, ROLE_BLOCK, words(p, "normals_%s", v->name), 1, &o.size);
    o.offset = work_array(p, ROLE_BLOCK, words(p, "offset_%s", v->name), 1, &o.size);
    return o;
}

// One for the normals of an ellipse and one for its angle, by ellipse and vector.
static Var *streams_of(Lower *p, const EllipsePlace *o, Index *repeat, Expr **of_normals, Expr **of_angle)
{
    Var *streams = local_new(p->g->arena, "streams");
    streams->dim[streams->rank++] = ex_num(2 * ELLIPSES_A_SWEEP);
    of_normals[0] = ex_index(repeat);
    of_angle[0] = ex_add2(ex_index(repeat), ex_num(ELLIPSES_A_SWEEP));
    for (int i = 0; i < o->nbatch; i++) {
        streams->dim[streams->rank++] = o->c->var->dim[i];
        of_normals[i + 1] = of_angle[i + 1] = ex_index(o->c->element[i]);
    }
    return streams;
}

// A draw from the prior, whole; gives: the vector.
static const Expr *put_normals(Lower *p, const EllipsePlace *o, Expr *stream, DrawArg *arg)
{
    Var *v = o->c->var;
    Expr *first[MAX_RANK];
    Node *d = put(p, NODE_DRAW);
    d->draw.var = v;
    d->draw.element = stream;
    for (int i = 0; i < v->rank; i++) first[i] = i < o->nbatch ? ex_index(o->c->element[i]) : ex_num(1);
    d->draw.vector = ex_ref(v, v->rank, first);
    d->draw.place = place_element(ex_ref(o->normals, 1, (Expr *[]){ex_num(1)}));
    d->draw.routine = o->e->routine;
    d->draw.nargs = o->e->nargs;
    d->draw.arg = arg;
    d->draw.whole = o->size;
    return d->draw.vector;
}

// The mean, and both axes of the plane about it.
static void put_axes(Lower *p, const EllipsePlace *o)
{
    Expr *k = o->k;
    Node *n = enter_nest(p, NODE_NEST, &o->elements, 1, o->target, NULL);
    put_assign(p, ASSIGN_SET, place_element(ex_ref(o->mean, 1, &k)), o->e->mean);
    put_assign(p, ASSIGN_SET, place_element(ex_ref(o->offset, 1, &k)), ex_sub(o->c->current, ex_ref(o->mean, 1, &k)));
    put_assign(p, ASSIGN_SET, place_element(ex_ref(o->normals, 1, &k)), ex_sub(ex_ref(o->normals, 1, &k), ex_ref(o->mean, 1, &k)));
    leave(p, n);
}

// The place on the ellipse that is tried, and the density there.
static void put_ellipse(Lower *p, const EllipsePlace *o, const Expr *vector, Expr *stream, const DensityPiece *pieces)
{
    Arena *a = p->g->arena;
    Expr *k = o->k;
    Node *ellipse = enter(p, NODE_ELLIPSE);
    ellipse->ellipse.c = o->c;
    ellipse->ellipse.vector = vector;
    ellipse->ellipse.stream = stream;
    ellipse->ellipse.cosine = local_new(a, "cosine");
    ellipse->ellipse.sine = local_new(a, "sine");
    Node *n = enter_nest(p, NODE_NEST, &o->elements, 1, o->target, NULL);
    put_assign(p, ASSIGN_SET, place_element(o->c->current),
               ex_add(3, (Expr *[]){ex_ref(o->mean, 1, &k), ex_mul2(local_ref(ellipse->ellipse.cosine), ex_ref(o->offset, 1, &k)),
                                    ex_mul2(local_ref(ellipse->ellipse.sine), ex_ref(o->normals, 1, &k))}));
    leave(p, n);
    put_density(p, pieces, local_new(a, "lp"), false);
    leave(p, ellipse);
}

void update_elliptical(Lower *p, const Update *s)
{
    const Ellipse *e = s->ellipse;
    Conditional *c = s->conditional;
    Var *v = c->var;
    comment_update(p, s);
    note(p, "  normals: a draw from %s, less its mean; offset: %s less that mean", e->prior->dist->name, v->name);
    EllipsePlace o = ellipse_place(p, s);
    bool once = !any_loops(c->density);
    for (const Part *q = c->density; q; q = q->next) once |= needs_array(q->value);
    Kernel *kernel = open_kernel(p, once ? KERNEL_ONCE : KERNEL_TEAM, words(p, "elliptical_%s", v->name), "wide");
    DrawArg *arg = NEW_N(p->g->arena, DrawArg, e->nargs + 1);
    for (int i = 0; i < e->nargs; i++) arg[i].value = shared_matrix(p, c, e->arg[i]);
    Opened opened = enter_elements(p, s, BY_TEAM);
    Index *repeat = index_new(intern("repeat"), ex_num(1), ex_num(ELLIPSES_A_SWEEP));
    Expr *of_normals[MAX_RANK + 1], *of_angle[MAX_RANK + 1];
    Var *streams = streams_of(p, &o, repeat, of_normals, of_angle);
    const DensityPiece *pieces = prepare_density(p, c, true, true, true);
    Node *loop = enter(p, NODE_LOOP);
    loop->loop.how = SHARE_SERIAL;
    loop->loop.index[loop->loop.n++] = repeat;
    const Expr *vector = put_normals(p, &o, ex_ref(streams, streams->rank, of_normals), arg);
    if (!once) put(p, NODE_BARRIER);
    o.elements = (Loops){.n = 1, .index = {c->element[o.nbatch]}};
    o.target = arena_copy(p->g->arena, &o.k, sizeof o.k);
    put_axes(p, &o);
    put_ellipse(p, &o, vector, ex_ref(streams, streams->rank, of_angle), pieces);
    leave(p, loop);
    leave_elements(p, &opened);
    close_kernel(p);
    if (once) launch(p, LAUNCH_ONCE, kernel);
    else launch_team(p, kernel);
}
