// samplers.c -- slice samplers, Metropolis updates, elliptical slices, and slices along a constraint. Each requests the log density at a
// value until it has the new one; the density is the body of the node.
#include <math.h>
#include "nodes.h"

void emit_density(Out *o, const Node *n, const Conditional *c, const char *place, const Node *again, const KeptLogs *logs)
{
    if (place) store(o, place, "x");
    emit_again(o, again);
    SCOPE
    {
        scope_wrote(o->scope, n);
        if (!c->whole && c->u) know(o, c->u, "x");
        if (!c->whole && c->u && logs) know_logs(o, logs, "sl.log_x", "sl.log1m_x");
        line(o, "wide lp = 0;");
        o->write(o, n->body);
    }
}

static bool is_positive(const Var *v) { return !v->discrete && v->lower_number == 0 && !isfinite(v->upper_number); }

// The call that a sampler begins with: along x, log x of what is positive, and where logarithms are kept along log x or logit x.
static const char *begin_text(const Out *o, const Node *n, const char *sampler, const char *lo, const char *hi)
{
    const Conditional *c = n->slice.c;
    const Var *v = c->var;
    if (!n->slice.logs.log) return text(o, "%s_begin%s(&sl, &g, start, %s, %s, width);", sampler, is_positive(v) ? "_log" : "", lo, hi);
    const char *log = text(o, "start == current ? log_kept(current, %s) : log(start)", kept_place(o, v->lowered.kept_log, c->current));
    if (is_positive(v)) return text(o, "slice_begin_log_kept(&sl, &g, start, %s, %s, %s, width);", log, lo, hi);
    return text(o, "slice_begin_logit_kept(&sl, &g, start, %s, start == current ? log1m_kept(current, %s) : log1m(start), %s, %s, width);",
                log, kept_place(o, v->lowered.kept_log1m, c->current), lo, hi);
}

// A slice or Metropolis update: both request the log density at sl.x until they have the new value.
void emit_slice(Out *o, const Node *n)
{
    const bool metropolis = n->kind == NODE_METROPOLIS;
    const char *sampler = n->slice.climbs ? "climb" : metropolis ? "metropolis" : "slice";
    const Conditional *c = n->slice.c;
    const Var *v = c->var;
    const char *place = place_text(o, &(Place){.element = c->current}), *element = element_text(o, n->slice.element);
    const char *width = v->rank ? text(o, "s->%s[%s]", n->slice.width->name, position_text(o, v, 0, v->rank, c->current->args).c)
                                : scalar_text(o, n->slice.width);
    const char *lo = n->slice.lo ? expr_c(o, n->slice.lo, LOOSE) : "-INFINITY",
               *hi = n->slice.hi ? expr_c(o, n->slice.hi, LOOSE) : "INFINITY";
    line(o, "%s", stream_text(o, v, n->slice.stream ? element_text(o, n->slice.stream) : element));
    line(o, "const wide current = %s, width = slice_width(%s, %s);", place, width, n->slice.start ? expr_c(o, n->slice.start, LOOSE) : "1");
    line(o, "wide start = current;");
    if (n->slice.ratios) checked(o, "wide began = 0;");
    line(o, "%s sl;", n->slice.climbs ? "Climb" : metropolis ? "Metropolis" : "Slice");
    const bool integer = v->discrete && v->base == BASE_INT;
    BLOCK ("for (int attempt = 0; attempt < (WARMING_UP ? 100 : 1); attempt++)") {
        line(o, "if (attempt) start = slice_restart(&g, current, attempt, %s, %s);", lo, hi);
        line(o, "%s", begin_text(o, n, sampler, lo, hi));
        BLOCK ("while (%s_next(&sl))", sampler) {
            line(o, "const %s x = %s;", integer ? "long" : "wide",
                 integer       ? "(long)floor(sl.x + 0.5)"
                 : v->discrete ? "floor(sl.x + 0.5)"
                               : "sl.x");
            if (n->slice.logs.log) line(o, "(void)x;");  // a density may read its logarithm alone
            emit_density(o, n, c, c->whole ? place : NULL, n->slice.again, &n->slice.logs);
            line(o, "sl.log_density = lp;");
            if (n->slice.ratios) checked(o, "if (sl.x == start) began = lp;");
        }
        line(o, "if (!sl.failed) break;");
    }
    store(o, place,
          integer       ? "(int)floor(sl.x + 0.5)"
          : v->discrete ? "floor(sl.x + 0.5)"
          : v->hidden   ? "sl.failed ? current : sl.x"
                        : "sl.x");
    if (n->slice.logs.log) {
        store(o, kept_place(o, v->lowered.kept_log, c->current), "sl.log_x");
        if (v->lowered.kept_log1m) store(o, kept_place(o, v->lowered.kept_log1m, c->current), "sl.log1m_x");
    }
    if (n->follows) line(o, "const wide change = sl.x - current;");
    emit_again(o, n->slice.again);
    // a group move is left out then
    if (!v->hidden) line(o, "if (sl.failed) FAULT(\"%s\", %s, \"its log density is not finite at the chain's state\");", v->name, element);
    line(o, "if (WARMING_UP) %s%s = %s_adapt(width, &sl, %s);",
         o->crew   ? "ELEMENT_LANE "
         : o->team ? "ONE_LANE "
                   : "",
         width, sampler, metropolis ? "SWEEP" : "start");
    if (n->slice.ratios) checked(o, "if (CHECKING) RATIO(sl.failed || sl.x == start ? 0 : sl.log_density - began);");
    else no_ratio(o);
}

// Elliptical slice sampling. The stream that the draw from the prior has used stays one lane's.
void emit_ellipse(Out *o, const Node *n)
{
    const Var *v = n->ellipse.c->var;
    const char *element = element_text(o, n->ellipse.vector);
    line(o, "Stream rotation = stream(at, VAR_%s, %s);", c_name(o, v->name), element_text(o, n->ellipse.stream));
    line(o, "Ellipse ellipse;");
    line(o, "ellipse_begin(&ellipse, &rotation, WARMING_UP ? 100 : 0);");
    BLOCK ("while (ellipse_next(&ellipse))") {
        if (o->team) line(o, "TEAM_BARRIER();");
        line(o, "const wide %s = ellipse.cosine, %s = ellipse.sine;", n->ellipse.cosine->name, n->ellipse.sine->name);
        scope_wrote(o->scope, n);
        line(o, "wide lp = 0;");
        o->write(o, n->body);
        line(o, "ellipse.log_density = lp;");
    }
    line(o, "if (ellipse.failed) FAULT(\"%s\", %s, \"its log density is not finite at the chain's state\");", v->name, element);
    no_ratio(o);
}

// ---- along a constraint ----

static const char *move_name(Constraint c, bool climbs)
{
    switch (c) {
    case CONSTRAINT_SIMPLEX: return climbs ? "SIMPLEX" : "RATIO";
    case CONSTRAINT_UNIT_VECTOR: return "UNIT";
    case CONSTRAINT_SUM_TO_ZERO: return "SUM_TO_ZERO";
    case CONSTRAINT_COVARIANCE: return "COVARIANCE";
    case CONSTRAINT_CORRELATION: return "CORRELATION";
    case CONSTRAINT_CHOLESKY_COV: return "CHOLESKY_COV";
    case CONSTRAINT_NONE:
    case CONSTRAINT_ORDERED:
    case CONSTRAINT_POSITIVE_ORDERED:
    case CONSTRAINT_CHOLESKY_CORR: break;
    }
    return "CHOLESKY_CORR";
}

// One coordinate of a value of which the elements are constrained together.
static void emit_one_line(Out *o, const Node *n)
{
    const Conditional *c = n->constrained.c;
    const Var *v = c->var;
    const bool once = !n->constrained.inside;
    const char *sampler = n->constrained.climbs ? "climb" : "slice", *lane = once || o->g->lesson ? "" : "ONE_LANE ";
    if (v->lowered.kept_log)
        line(o, "ConstrainedLine m = constrained_begin_logs(value, &s->%s[batch * size], size, move);", v->lowered.kept_log->name);
    else line(o, "ConstrainedLine m = constrained_begin(GM_LINE_%s, value, size, move);", move_name(v->constraint, n->constrained.climbs));
    line(o, "if (!m.moves) continue;");
    line(o, "Stream g = stream(at, VAR_%s, batch * size * size + move);", c_name(o, v->name));
    line(o, "const wide width = slice_width(widths[move], %s);", n->constrained.start ? expr_c(o, n->constrained.start, LOOSE) : "1");
    line(o, "%s sl;", n->constrained.climbs ? "Climb" : "Slice");
    line(o, "%s_begin(&sl, &g, m.start, m.lo, m.hi, width);", sampler);
    BLOCK ("while (%s_next(&sl))", sampler) {
        if (!once) {
            if (!o->g->lesson) line(o, "TEAM_BARRIER();");
            line(o, "%s%s = constrained_set(&m, sl.x);", lane, scalar_text(o, n->constrained.inside));
        }
        line(o, "if (!%s) { sl.log_density = -INFINITY; continue; }",
             once ? "constrained_set(&m, sl.x)" : scalar_text(o, n->constrained.inside));
        emit_density(o, n, c, NULL, n->constrained.again, NULL);
        const bool slope = (v->constraint == CONSTRAINT_SIMPLEX || v->constraint == CONSTRAINT_CHOLESKY_CORR) && !n->constrained.climbs;
        line(o, slope ? "sl.log_density = lp + constrained_slope(&m, sl.x);" : "sl.log_density = lp;");
    }
    if (!once && !o->g->lesson) line(o, "TEAM_BARRIER();");
    line(o, "%sconstrained_set(&m, sl.x);", lane);
    emit_again(o, n->constrained.again);
    line(o, "if (sl.failed) FAULT(\"%s\", move, \"its log density is not finite at the chain's state\");", v->name);
    line(o, "if (WARMING_UP) %swidths[move] = %s_adapt(width, &sl, m.start);", lane, sampler);
    no_ratio(o);
}

void emit_constrained(Out *o, const Node *n)
{
    const Var *v = n->constrained.c->var;
    const bool vector = n->constrained.vector;
    const char *name = c_name(o, v->name), *width = n->constrained.width->name;
    Count batches = count_dims(v, 0, v->rank - (vector ? 1 : 2));
    line(o, "const long size = %s;", extent_c(o, v->dim[v->rank - 1], LOOSE));
    BLOCK ("for (long batch = 0; batch < %s; batch++)", count_text(o, &batches)) {
        line(o, "wide *value = &s->%s[batch * size%s], *widths = &s->%s[batch * size%s];", name, vector ? "" : " * size", width,
             vector ? "" : " * size");
        BLOCK ("for (long move = 0; move < %s; move++)", vector ? "size - 1" : "size * size") emit_one_line(o, n);
    }
}
