// checks.c -- what is looked at before the first sweep, or before a draw: requirements of the data, values inside their supports, ends of
// intervals.
#include "nodes.h"

static void emit_interval(Out *o, const Factor *f)
{
    const Var *v = f->region ? f->region : f->value->var;
    const char *at = f->region || !v->rank ? "0" : position_text(o, v, 0, v->rank, f->value->args).c;
    const bool integer = f->dist ? f->dist->discrete : v->discrete;
    line(o, "if (!(%s %s %s)) FAULT(\"%s\", %s, \"the lower end of its support must %s the upper end: no value lies "
         "between them (%s)\");", expr_c(o, f->from, TIGHT), integer ? "<=" : "<", expr_c(o, f->to, TIGHT), v->name, at,
         integer ? "not lie above" : "lie below", source_line(o, f->span));
}

void emit_check(Out *o, const Node *n)
{
    const Requirement *c = n->check.requirement;
    const char *fails = expr_c(o, c->fails[0], c->nparts == 2 ? ADDITIVE : LOOSE), *list = "";
    if (c->nparts == 2) fails = text(o, "%s || %s", fails, expr_c(o, c->fails[1], ADDITIVE));
    for (int i = 0; i < c->nnumbers; i++)
        list = text(o, o->g->lesson ? "%s%s%s" : "%s%s(long)(%s)", list, i ? ", " : "", expr_c(o, c->number[i], LOOSE));
    if (o->g->lesson) {
        line(o, "if (%s) REFUSE(\"%s\", \"%s\", %s);", fails, c->name, c->says, *list ? list : "0");
        return;
    }
    line(o, "if (%s) { const long found[] = {%s}; FAULT_AT(\"%s\", found, %d, \"%s\"); }", fails, *list ? list : "0", c->name, c->nnumbers,
         c->says);
}

void emit_bounds(Out *o, const Node *n)
{
    const Factor *f = n->bounds.factor;
    if (n->bounds.interval) {
        emit_interval(o, f);
        return;
    }
    const Var *v = f->value->var;  // as read from the file: in the state, missing values have been filled in
    const char *at = v->rank ? position_text(o, v, 0, v->rank, f->value->args).c : NULL, *name = c_name(o, v->name);
    const char *y = at ? text(o, "d->%s[%s]", name, at) : text(o, "d->%s", name);
    if (v->kind == VAR_LET) y = at ? text(o, "s->%s[%s]", name, at) : scalar_text(o, v);
    const char *lo = f->least ? text(o, "%s < %s", y, expr_c(o, f->least, TIGHT)) : NULL,
               *hi = f->most ? text(o, "%s > %s", y, expr_c(o, f->most, TIGHT)) : NULL;
    const char *outside = text(o, "%s%s%s", lo ? lo : "", lo && hi ? " || " : "", hi ? hi : "");
    // a missing int; a missing real is NaN
    if (v->base == BASE_INT) outside = text(o, lo && hi ? "!IS_MISSING(%s) && (%s)" : "!IS_MISSING(%s) && %s", y, outside);
    const char *from = f->least ? ex_quote(o->arena, f->least) : NULL, *to = f->most ? ex_quote(o->arena, f->most) : NULL;
    const char *of = f->censored ? "of the ends that C[ ] gives" : text(o, "the support of %s", f->dist->name);
    line(o, "if (%s) FAULT(\"%s\", %s, \"the value lies outside %s, %s%s%s (%s)\");", outside, v->name, at ? at : "0", of,
         from ? from : "up", !to ? " and up" : " to ", to ? to : "", source_line(o, f->span));
}
