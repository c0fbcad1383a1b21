// predict.c -- draws of the predict block, and of what the model draws from a distribution itself: one element of a statement.
#include <math.h>
#include "nodes.h"

static const char *routine_arguments(const Out *o, const Site *t)
{
    const char *list = "&g";
    for (int i = 0; i < t->nsample; i++) {
        const Expr *e = t->args[i];
        list = text(o, "%s, %s", list, ex_rank(e) > 0 ? whole_text(o, e) : expr_c(o, e, LOOSE));
        if (t->n == t->var->rank && ex_rank(e) == 1) list = text(o, "%s, %s", list, extent_c(o, ex_dim((Expr *)e, 0), LOOSE));
    }
    return list;
}

// The body of the node computes what the search needs of each value.
static void emit_search(Out *o, const Node *n, const char *least, const char *most)
{
    const Site *t = n->sample.site;
    const bool discrete = t->dist->discrete;
    if (discrete) line(o, "Weights search = weights_start(lower, upper);");
    else line(o, "Inversion search = inversion_start(&g, lower, upper);");
    BLOCK ("%s", discrete ? "while (weights_next(&g, &search))" : text(o, "while (inversion_next(&search, %s, %s))", least, most)) {
        know(o, t->x, "search.x");
        o->write(o, n->body);
    }
    line(o, "x = %s(&search);", discrete ? "weights_value" : "inversion_value");
}

// A number that has to lie between two ends, as x: see within.h.
static void emit_within(Out *o, const Node *n, const char *pos)
{
    const Site *t = n->sample.site;
    Expr *const *rest = t->args + t->nsample;
    const char *name = t->var->name, *dist = t->dist->name, *where = source_line(o, t->span), *least = expr_c(o, rest[2], LOOSE),
               *most = expr_c(o, rest[3], LOOSE);
    line(o, "wide lower = %s, upper = %s;", expr_c(o, rest[0], LOOSE), expr_c(o, rest[1], LOOSE));
    if (!ex_is_num(rest[2], -INFINITY)) line(o, "if (lower < %s) lower = %s;", least, least);
    if (!ex_is_num(rest[3], INFINITY)) line(o, "if (upper > %s) upper = %s;", most, most);
    line(o, "if (!(lower <= upper)) FAULT(\"%s\", %s, \"no value of %s lies between its ends (%s)\");", name, pos, dist, where);
    line(o, "wide x = NAN;");
    if (t->exact) {
        know(o, t->end[0], "lower");
        know(o, t->end[1], "upper");
        line(o, "x = %s(%s);", t->sample, routine_arguments(o, t));
        line(o,
             "if (!is_finite(x)) FAULT(\"%s\", %s, \"its truncated %s could not be drawn: an argument is out of range, or so little of it "
             "lies between the ends (%s)\");",
             name, pos, dist, where);
        return;
    }
    const bool search = n->sample.searches;
    if (t->sample)
        line(o, "for (long tries = 0; tries < %s && !(x >= lower && x <= upper); tries++) x = %s(%s);",
             search ? "GM_TRIES" : "GM_MOST_TRIES", t->sample, routine_arguments(o, t));
    BLOCK ("if (!(x >= lower && x <= upper))") {
        if (search) emit_search(o, n, least, most);
        line(o,
             "if (!(x >= lower && x <= upper)) FAULT(\"%s\", %s, \"so little of %s lies between its ends that it cannot be drawn (%s)\");",
             name, pos, dist, where);
    }
}

// What arguments of a law may be that a draw is not made of, after "an argument is out of range".
static const char *other_fault(const Distribution *d)
{
    for (int k = 0; k < d->nparams; k++) {
        const Constraint c = d->params[k]->constraint;
        if (c == CONSTRAINT_SIMPLEX) return ", or weights do not add up to 1";
        if (c == CONSTRAINT_COVARIANCE) return ", or a matrix is not symmetric and positive definite";
        if (c == CONSTRAINT_CHOLESKY_COV || c == CONSTRAINT_CHOLESKY_CORR)
            return ", or a matrix is not lower triangular with a positive diagonal";
    }
    return "";
}

void emit_sample(Out *o, const Node *n)
{
    const Site *t = n->sample.site;
    const Var *v = t->var;
    const char *pos = v->rank ? first_position(o, v, t->n, t->subscript) : "0",
               *place = v->rank ? text(o, "%s[%s]", var_text(o, v), pos) : scalar_text(o, v);
    const char *name = v->name, *where = source_line(o, t->span);
    IN_BLOCK(n->sample.unless_kept ? block_begin(o, true, "UNLESS_KEPT(VAR_%s, %s)", c_name(o, v->name), pos)
             : o->sole             ? same_block(o)
                                   : block_plain(o))
    {  // for the names of the draw
        if (t->guarded)
            line(o, "if (!%s) FAULT(\"%s\", %s, \"it cannot be drawn from %s: an argument is out of range%s (%s)\");",
                 expr_c(o, t->args[t->nargs - 1], TIGHT), name, pos, t->dist->name, other_fault(t->dist), where);
        line(o, "%s", stream_text(o, v, pos));
        if (t->n < v->rank) {  // a vector or a matrix, in its place
            line(o,
                 "if (%s(%s, %s, &%s)) FAULT(\"%s\", %s, \"its draw from %s is not possible: an argument is out of range%s (%s)\");",
                 t->sample, routine_arguments(o, t), extent_c(o, v->dim[v->rank - 1], LOOSE), place, name, pos, t->dist->name,
                 other_fault(t->dist), where);
        } else {
            if (t->within) emit_within(o, n, pos);
            else line(o, "const wide x = %s(%s);", t->sample, routine_arguments(o, t));
            for (int side = 0; side < 2 && t->dist->discrete && !t->within; side++) {
                const Expr *bound = t->args[t->nsample + side];
                if (bound->kind != EX_NUM || isfinite(bound->number))
                    line(o, "if (!(x %s %s)) FAULT(\"%s\", %s, \"it cannot be drawn from %s: an argument is out of range (%s)\");",
                         side ? "<=" : ">=", expr_c(o, bound, TIGHT), name, pos, t->dist->name, where);
            }
            if (v->base == BASE_INT)
                line(o, "if (!(x >= -2147483647 && x <= 2147483647)) FAULT(\"%s\", %s, \"its draw is not an integer of 32 bits\");", name,
                     pos);
            else line(o, "VERIFY(x, \"%s\", %s);", name, pos);
            line(o, v->base == BASE_INT ? "%s = INTEGER_DRAWN(x);" : "%s = x;", place);
        }
    }
}
