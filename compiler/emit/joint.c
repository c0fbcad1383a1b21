// joint.c -- draws of vectors and matrices at once, and the routines around them: transforms of what is constrained, factors of matrices.
#include "nodes.h"

// One simplex or matrix, number `e`; `at` is where it begins. Long ones are drawn by more than a lane.
static void emit_one_array(Out *o, const Node *n, const char *e, bool by_team)
{
    const Conditional *c = n->whole.c;
    const Var *v = c->var;
    const bool simplex = v->constraint == CONSTRAINT_SIMPLEX, shared = by_team && simplex, crew = by_team && !simplex;
    const char *elements = simplex ? "n" : "n * n", *at = c->nbatch ? text(o, "e * %s", elements) : "0";
    const char *array = n->whole.array->name, *scalar = !n->whole.scalar ? NULL
                                                        : o->g->lesson && !n->whole.scalar->rank
                                                            ? scalar_text(o, n->whole.scalar)
                                                            : text(o, "s->%s[%s]", n->whole.scalar->name, e);
    if (!shared) line(o, "%s", stream_text(o, v, e));
    if (!by_team) line(o, "const long n = %s;", extent_c(o, v->dim[v->rank - 1], LOOSE));
    line(o, "wide *x = &s->%s[%s];", c_name(o, v->name), at);
    if (v->lowered.kept_log) checked(o, "SAVE_OLD_LOGS(x, &s->%s[%s], %s);", v->lowered.kept_log->name, at, elements);
    else checked(o, "SAVE_OLD(x, %s);", elements);
    const char *const routine = c->family->draw_law ? c->family->draw_law->name : c->family->draw->name;
    const char *first = n->whole.mode ? "" : "&g, ", *mode = n->whole.mode ? "_mode" : "";
    const char *logs = v->lowered.kept_log ? text(o, ", &s->%s[%s]", v->lowered.kept_log->name, at) : "";
    if (shared)
        line(o, "DRAW_SIMPLEX%s(%s, VAR_%s, e, &s->%s[%s], n, x%s);", v->lowered.kept_log ? "_LOGS" : "", routine,
             c_name(o, v->name), array, at, logs);
    else if (simplex && v->lowered.kept_log) line(o, "%s_logs(&g, &s->%s[%s], n, x%s);", routine, array, at, logs);
    else if (simplex) line(o, "%s%s(%s&s->%s[%s], n, x);", routine, mode, first, array, at);
    else {
        const char *whole = text(o, "%s%s", routine, mode);
        line(o, "wide *work = %sSCRATCH(3 * n * n);", crew ? "CREW_" : "");
        line(o, "%s%s%s, &s->%s[%s], n, x, work);", crew ? text(o, "CREW(%s, ", whole) : text(o, "%s(", whole), first, scalar, array,
             at);
        line(o, "%sRELEASE(work);", crew ? "CREW_" : "");
    }
    line(o, "VERIFY(x[0], \"%s\", %s);", v->name, e);
    if (simplex && v->lowered.kept_log) checked(o, "if (CHECKING) RATIO(dirichlet_ratio_logs(&s->%s[%s], n, x%s, OLD));", array, at, logs);
    else if (simplex) checked(o, "if (CHECKING) RATIO(dirichlet_ratio(&s->%s[%s], n, x, OLD));", array, at);
    else checked(o, "if (CHECKING) RATIO(%s_ratio(%s, &s->%s[%s], n, x, OLD));", c->family->name, scalar, array, at);
}

void emit_draw_array(Out *o, const Node *n)
{
    const Conditional *c = n->whole.c;
    const Var *v = c->var;
    const bool by_team = o->team && c->nbatch;
    if (by_team) line(o, "const long n = %s;", extent_c(o, v->dim[v->rank - 1], LOOSE));
    if (!c->nbatch) {
        emit_one_array(o, n, "0", by_team);
        return;
    }
    const Count count = count_dims(v, 0, c->nbatch);
    const char *elements = count_text(o, &count);
    BLOCK ("%s", o->g->lesson ? text(o, "for (long e = 0; e < %s; e++)", elements)
                 : !by_team   ? text(o, "EACH (e, %s)", elements)
                              : text(o, "%s (e, %s, n)", v->constraint == CONSTRAINT_SIMPLEX ? "EACH_SIMPLEX" : "EACH_MATRIX", elements))
        emit_one_array(o, n, "e", by_team);
}

// That of number e.
static void emit_one_normal(Out *o, const Node *n, const char *count)
{
    const Update *s = n->normal.update;
    const Var *first = s->block[0];
    const char *J = n->normal.J->name, *h = n->normal.h->name;
    const char *category = s->gaussian.categories ? element_c(o, s->gaussian.categories->categories->current, NULL) : NULL;
    line(o, "%s", stream_text(o, first, category ? text(o, "e + %s * (long)%s", count, category) : "e"));
    line(o, "wide *x = &s->%s[e * n];", c_name(o, first->name));
    checked(o, "SAVE_OLD(x, n);");
    if (s->gaussian.diagonal) {
        line(o, "if (normal_diagonal_sum_to_zero(&g, n, &s->%s[e * n], &s->%s[e * n], x)) FAULT(\"%s\", e * n, NOT_POSITIVE_DEFINITE);", J,
             h, first->name);
        checked(o, "if (CHECKING) RATIO(normal_diagonal_ratio(&s->%s[e * n], &s->%s[e * n], n, x, OLD));", J, h);
        return;
    }
    checked(o, "if (CHECKING) RATIO_QUADRATIC_BEFORE(n, &s->%s[e * n * n], &s->%s[e * n], x);", J, h);
    if (s->gaussian.on_plane) {
        line(o, "wide *work = SCRATCH(n);");
        line(o, "if (normal_sum_to_zero(&g, n, &s->%s[e * n * n], &s->%s[e * n], x, work)) FAULT(\"%s\", e * n, NOT_POSITIVE_DEFINITE);", J,
             h, first->name);
        line(o, "RELEASE(work);");
    } else if (o->team)
        line(o, "if (CREW(normal_draw, &g, n, &s->%s[e * n * n], &s->%s[e * n], x)) FAULT(\"%s\", e * n, NOT_POSITIVE_DEFINITE);", J, h,
             first->name);
    else
        line(o, "if (normal_%s(&g, n, &s->%s[e * n * n], &s->%s[e * n], x)) FAULT(\"%s\", e * n, NOT_POSITIVE_DEFINITE);",
             n->normal.mode ? "mode" : "draw", J, h, first->name);
    checked(o, "if (CHECKING) RATIO_QUADRATIC_AFTER(x);");
}

void emit_draw_normal(Out *o, const Node *n)
{
    const Update *s = n->normal.update;
    const Var *first = s->block[0];
    const Count batches = count_dims(first, 0, s->gaussian.nbatch);
    const char *count = count_text(o, &batches);
    line(o, "const long n = %s;", extent_c(o, n->normal.size, LOOSE));
    if (s->gaussian.scales && !o->g->lesson)
        line(o, "if (MARGINAL_NORMALS(%s, n, s->%s, s->%s, s->%s)) return;", count, n->normal.J->name, n->normal.h->name,
             c_name(o, first->name));
    BLOCK (o->g->lesson ? "for (long e = 0; e < %s; e++)" : o->team ? "EACH_MATRIX (e, %s, n)" : "EACH (e, %s)", count)
        emit_one_normal(o, n, count);
}

void emit_draw_band(Out *o, const Node *n)
{
    const Update *s = n->band.update;
    const Band *b = s->gaussian.band;
    const char *name = s->block[0]->name;
    const char *panels = extent_c(o, b->panels, LOOSE), *length = extent_c(o, b->length, LOOSE), *width = extent_c(o, b->width, LOOSE);
    if (n->band.z)
        line(o, "const Band band = {%s, %s, %s, %d, %s, s->%s, s->%s, s->%s, s->%s, s->%s};", panels, length, width, b->lag,
             extent_c(o, b->border, LOOSE), n->band.B->name, n->band.k->name, n->band.E->name, n->band.A->name, n->band.h->name);
    else
        line(o, "const Band band = {%s, %s, %s, %d, 0, s->%s, s->%s, NULL, NULL, NULL};", panels, length, width, b->lag, n->band.B->name,
             n->band.k->name);
    line(o, "DRAW_BAND(%s, \"%s\", %d, %d, &band, s->%s, %s);", c_name(o, name), name, n->band.block, n->band.edge,
         c_name(o, n->band.x->name), n->band.z ? text(o, "s->%s", n->band.z->name) : "(wide *)0");
}

void emit_draw_states(Out *o, const Node *n)
{
    const char *name = n->states.var->name, *size[6];
    Expr *const of[] = {n->states.panels, n->states.length, n->states.values, n->states.inside, n->states.by_panel, n->states.by_time};
    for (int k = 0; k < 6; k++) size[k] = extent_c(o, of[k], LOOSE);
    const Joined *j = n->states.joined;
    const bool apart = n->states.apart;
    // of each link stride, values, whether it reads no others
    const char *together = o->program->uses.links && !apart ? ", 0, {{0, 0, 0}}" : "";
    for (int l = 0; apart && l < j->nlinks; l++) {
        const JoinedLink *one = &j->link[l];
        together = text(o, "%s{%s, %s, %d}%s", l ? together : text(o, ", %d, {", j->nlinks), extent_c(o, n->states.stride[l], LOOSE),
                        extent_c(o, j->count[one->of], LOOSE), one->alone, l + 1 < j->nlinks ? ", " : "}");
    }
    line(o, "const States states = {%s, %s, %s, %s, %s, %s, s->%s, (Scaled *)s->%s, s->%s%s};", size[0], size[1], size[2], size[3], size[4],
         size[5], n->states.weight->name, n->states.link->name, n->states.part->name, together);
    line(o, "DRAW_STATES(%s, \"%s\", &states);", c_name(o, name), name);
}

// ---- routines of matrices within expressions ----

void emit_transform(Out *o, const Node *n)
{
    static const char *const name[] = {[CONSTRAINT_NONE] = "",
                                       [CONSTRAINT_SIMPLEX] = "simplex",
                                       [CONSTRAINT_ORDERED] = "ordered",
                                       [CONSTRAINT_POSITIVE_ORDERED] = "positive_ordered",
                                       [CONSTRAINT_UNIT_VECTOR] = "unit_vector",
                                       [CONSTRAINT_SUM_TO_ZERO] = "sum_to_zero",
                                       [CONSTRAINT_COVARIANCE] = "covariance",
                                       [CONSTRAINT_CORRELATION] = "correlation",
                                       [CONSTRAINT_CHOLESKY_COV] = "cholesky_cov",
                                       [CONSTRAINT_CHOLESKY_CORR] = "cholesky_corr"};
    const Var *v = n->transform.var;
    const bool within = n->transform.within;
    const char *of = within ? "ordered_within" : name[v->constraint], *size = extent_c(o, v->dim[v->rank - 1], LOOSE);
    if (within) size = text(o, "%s, %s, %s", size, number_c(o, v->lower_number), number_c(o, v->upper_number));
    Expr *const part[] = {n->transform.y, n->transform.x, n->transform.work, n->transform.slope, n->transform.out, n->transform.log_slope};
    enum { Y, X, WORK, SLOPE, OUT, LOG_SLOPE };
    const char *place[6];
    for (int i = 0; i < 6; i++) place[i] = part[i] ? place_text(o, &(Place){.element = part[i]}) : "";
    const char *logs = v->lowered.kept_log ? text(o, ", &%s", kept_place(o, v->lowered.kept_log, n->transform.x)) : "";
    switch (n->transform.part) {
    case TRANSFORM_FROM:
        line(o, "%s_from_line%s(%s, &%s, &%s%s);", of, v->lowered.kept_log ? "_logs" : "", size, place[Y], place[X], logs);
        break;
    case TRANSFORM_TO:
        line(o, "%s_to_line%s(%s, &%s%s, &%s, &%s);", of, v->lowered.kept_log ? "_logs" : "", size, place[X], logs, place[Y], place[WORK]);
        break;
    case TRANSFORM_CHAIN:
        line(o, "%s = %s_chain(%s, &%s, &%s, &%s, &%s, &%s);", place[LOG_SLOPE], of, size, place[Y], place[X], place[SLOPE], place[OUT],
             place[WORK]);
        break;
    }
}

// A routine of whitened.h, on first elements of its arrays.
void emit_whitened(Out *o, const Node *n)
{
    static const char *const part[] = {[TRANSFORM_FROM] = "from", [TRANSFORM_TO] = "to", [TRANSFORM_CHAIN] = "chain"};
    Expr *const array[] = {n->whitened.shares, n->whitened.mean,  n->whitened.from,  n->whitened.q,
                           n->whitened.apart,  n->whitened.noise, n->whitened.slope, n->whitened.by_mean,
                           n->whitened.left,   n->whitened.right, n->whitened.pivot};
    const char *places = "";
    for (size_t i = 0; i < sizeof array / sizeof *array; i++)
        if (array[i]) places = text(o, "%s, &%s", places, place_text(o, &(Place){.element = array[i]}));
    line(o, "whitened_%s%s(%s, s->%s%s);", part[n->whitened.part], n->whitened.precision ? "_precision" : "",
         extent_c(o, n->whitened.size, LOOSE), n->whitened.root->name, places);
}

// A matrix becomes its factor, or an adjoint of the factor one of the matrix; of some the inverse and the log determinant.
void emit_factor(Out *o, const Node *n)
{
    const char *size = extent_c(o, n->factor.matrix->dim[0], LOOSE);
    const char *of = n->factor.matrix->name;
    if (n->factor.inverse && n->factor.adjoint)
        line(o, "inverse_adjoint(%s, s->%s, s->%s[0], s->%s, s->%s);", size, n->factor.inverse->name, n->factor.log_det_adjoint->name,
             n->factor.adjoint->name, of);
    else if (n->factor.inverse)
        line(o, "inverse_and_log_det%s(%s, s->%s, s->%s, s->%s);", n->factor.unsure ? "_if_symmetric" : "", size, of,
             n->factor.inverse->name, n->factor.log_det->name);
    else if (n->factor.adjoint) line(o, "chol_adjoint(%s, s->%s, s->%s);", size, of, n->factor.adjoint->name);
    else line(o, "chol_%s(%s, s->%s);", n->factor.unsure ? "if_symmetric" : "in_place", size, of);
}

void emit_copy(Out *o, const Node *n)
{
    const char *off = NULL, *sizes = "";  // where it begins: so many scalars, and arrays before them
    int scalars = 0;
    for (int i = 0; i < n->copy.n; i++) {
        const Var *v = n->copy.var[i];
        Count count = count_dims(v, 0, v->rank);
        const char *len = count_text(o, &count), *name = c_name(o, v->name);
        if (v->rank == 0) {
            const char *place = text(o, "s->%s[%s]", n->copy.joint->name, off ? off : "0"), *value = scalar_text(o, n->copy.var[i]);
            line(o, o->team ? "ONE_LANE %s = %s;" : "%s = %s;", n->copy.gather ? place : value, n->copy.gather ? value : place);
        } else {
            const char *place = text(o, "s->%s[%s%se]", n->copy.joint->name, off ? off : "", off ? " + " : ""),
                       *value = text(o, "s->%s[e]", name);
            line(o, o->team ? "ALONG (e, %s) %s = %s;" : "for (long e = 0; e < %s; e++) %s = %s;", len, n->copy.gather ? place : value,
                 n->copy.gather ? value : place);
        }
        if (v->rank == 0) scalars++;
        else sizes = text(o, "%s%s%s", sizes, *sizes ? " + " : "", len);
        off = scalars ? text(o, "%d%s%s", scalars, *sizes ? " + " : "", sizes) : sizes;
    }
}
