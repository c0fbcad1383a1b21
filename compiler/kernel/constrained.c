// constrained.c -- arrays whose elements are constrained together, without a family: slice sampled along the constraint.
//
// Needs: conditionals.     Gives: kernels and launches of the update.
#include "lower.h"

void update_constrained(Lower *p, const Update *s)
{
    Conditional *c = s->conditional;
    Var *v = c->var;
    static const char *const coordinate[] = {
        [CONSTRAINT_NONE] = "",
        [CONSTRAINT_ORDERED] = "",
        [CONSTRAINT_POSITIVE_ORDERED] = "",
        [CONSTRAINT_SIMPLEX] = "mass passes between neighbours, their sum stays",
        [CONSTRAINT_UNIT_VECTOR] = "neighbours rotate in their plane, the length stays",
        [CONSTRAINT_SUM_TO_ZERO] = "one element changes, all others share what makes up for it",
        [CONSTRAINT_COVARIANCE] = "an element and its mirror image change while the matrix stays positive definite",
        [CONSTRAINT_CORRELATION] = "an element and its mirror image change while the matrix stays positive definite",
        [CONSTRAINT_CHOLESKY_COV] = "elements of the lower triangle change, the diagonal stays positive",
        [CONSTRAINT_CHOLESKY_CORR] = "an element changes with the diagonal of its row, whose length stays one"};
    comment_update(p, s);
    note(p, "  %s", coordinate[v->constraint]);
    Var *width = work_array(p, ROLE_TUNING, words(p, "width_%s", v->name), v->rank, v->dim);
    bool once = c->recursion || !any_loops(c->density);
    for (const Part *q = c->density; q; q = q->next) once |= needs_array(q->value);
    Kernel *kernel = open_kernel(p, once ? KERNEL_ONCE : KERNEL_TEAM, words(p, "slice_%s", v->name), "wide");
    put_skip(p, exists_whole(v));
    Node *n = enter(p, NODE_CONSTRAINED);
    n->constrained.c = c;
    n->constrained.width = width;
    n->constrained.inside = once ? NULL : work_array(p, ROLE_TUNING, words(p, "inside_%s", v->name), 0, NULL);
    n->constrained.start = s->slice.width;
    n->constrained.again = series_again(p->g, c);
    n->constrained.vector = constraint_rank(v) == 1;
    n->constrained.climbs = p->g->method == METHOD_EM;
    const DensityPiece *pieces = prepare_density(p, c, s->expected && s->expected->evidence, true, false);
    put_density(p, pieces, local_new(p->g->arena, "lp"), false);
    leave(p, n);
    close_kernel(p);
    if (once) launch(p, LAUNCH_ONCE, kernel);
    else launch_team(p, kernel);
}
