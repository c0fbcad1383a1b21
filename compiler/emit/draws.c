// draws.c -- exact draws: a call of a routine of the stdlib, the check of its result, and its ratio for --check.
#include <ctype.h>
#include <string.h>
#include "nodes.h"

static const char *arg_text(const Out *o, const DrawArg *a)
{
    if (!a->value) return text(o, "%.17g", a->number);
    if (ex_rank(a->value) > 0) return whole_text(o, a->value);
    return expr_c(o, a->value, LOOSE);
}

// A call of the stdlib with the values of its names.
static const char *rule_text(const Out *o, const Ast *a, const Node *n)
{
    switch (a->kind) {
    case AST_NAME:
        for (int i = 0; i < n->draw.nargs; i++)
            if (n->draw.arg[i].name && strcmp(n->draw.arg[i].name, a->name) == 0) return arg_text(o, &n->draw.arg[i]);
        return a->name;
    case AST_INT:
    case AST_REAL: return text(o, "%.17g", a->number);
    case AST_UNARY: return text(o, "-%s", rule_text(o, a->kid[0], n));
    case AST_BINARY: {
        const char *op = a->op == OP_ADD ? "+" : a->op == OP_SUB ? "-" : a->op == OP_DIV ? "/" : "*";
        return text(o, "(%s %s %s)", rule_text(o, a->kid[0], n), op, rule_text(o, a->kid[1], n));
    }
    case AST_CALL: {
        const char *list = "";
        for (int i = 0; i < a->nkids; i++) list = text(o, "%s%s%s", list, i ? ", " : "", rule_text(o, a->kid[i], n));
        return text(o, "%s(%s)", a->name, list);
    }
    case AST_STRING:
    case AST_INDEX:
    case AST_RANGE:
    case AST_ALL:
    case AST_TRANSPOSE:
    case AST_COND:
    case AST_REDUCE:
    case AST_ARRAY:
    case AST_FUNCTION: break;
    }
    return "0";
}

static const char *capitals(const Out *o, const char *name)
{
    char *c = arena_strdup(o->arena, name);
    for (char *at = c; *at; at++) *at = (char)toupper((unsigned char)*at);
    return c;
}

// The arguments of a draw, each after a comma.
static const char *draw_list(const Out *o, const Node *n)
{
    const char *list = "";
    for (int i = 0; n->draw.call && i < n->draw.call->nkids; i++) list = text(o, "%s, %s", list, rule_text(o, n->draw.call->kid[i], n));
    for (int i = 0; !n->draw.call && i < n->draw.nargs; i++) {
        const Expr *e = n->draw.arg[i].value, *next = i + 1 < n->draw.nargs ? n->draw.arg[i + 1].value : NULL;
        list = text(o, "%s, %s", list, arg_text(o, &n->draw.arg[i]));
        if (e && !n->draw.whole && ex_rank(e) == 1 && (!next || ex_rank(next) == 0))
            list = text(o, "%s, %s", list, extent_c(o, ex_dim((Expr *)e, 0), LOOSE));
    }
    return list;
}

// DRAW(theta, k, NORMAL(mean, precision)): the draw, its ratio and its store.
void emit_draw_by_law(const Out *o, const Node *draw, const Node *store)
{
    static const char *const macro[] = {
        [STORE_PLAIN] = "DRAW", [STORE_LAST] = "TEAM_DRAW", [STORE_WITHIN] = "TEAM_DRAW_NEXT", [STORE_ELEMENT] = "CREW_DRAW"};
    const char *list = draw_list(o, draw), *law = text(o, "%s(%s)", capitals(o, draw->draw.call->name), list + 2);
    const char *name = c_name(o, draw->draw.var->name), *element = element_text(o, draw->draw.element);
    if (o->g->lesson) {
        line(o, "%s = DRAW(%s, %s, %s);", place_text(o, &store->assign.place), name, element, law);
        return;
    }
    line(o, "%s(%s, %s, %s);", macro[store->assign.how], name, element, law);
}

void emit_draw(Out *o, const Node *n)
{
    if (n->draw.law) return;  // where it is stored
    const char *element = element_text(o, n->draw.element), *list = draw_list(o, n),
               *routine = n->draw.call ? n->draw.call->name : n->draw.routine;
    if (n->draw.of) {
        const char *which = n->draw.expects ? text(o, "%d", n->draw.which) : "";
        if (!n->draw.expects && *list) list += 2;  // no stream, and no comma after it
        line(o, "const %s %s = %s%s(%s%s);", n->draw.type, n->draw.x->name, routine, n->draw.of, which, list);
        if (n->draw.check == DRAW_FINITE) line(o, "VERIFY(x, \"%s\", %s);", n->draw.var->name, element);
        return;
    }
    if (!n->draw.goes_on) line(o, "%s", stream_text(o, n->draw.var, element));
    const char *x = n->draw.x ? n->draw.x->name : "x";
    if (n->draw.x) line(o, "const %s %s = %s(&g%s);", n->draw.type, n->draw.x->name, routine, list);
    else if (n->draw.whole)
        line(o,
             "%sif (%s(&g%s, %s, &%s)) FAULT(\"%s\", %s, \"no draw from its prior is possible: an argument is out of range, or a matrix "
             "not positive definite\");",
             o->team ? "ONE_LANE " : "", routine, list, extent_c(o, n->draw.whole, LOOSE), place_text(o, &n->draw.place), n->draw.var->name,
             element_text(o, n->draw.vector));
    else line(o, "%s = %s(&g%s);", place_text(o, &n->draw.place), routine, list);
    switch (n->draw.check) {
    case DRAW_UNCHECKED: break;
    case DRAW_FINITE: line(o, "VERIFY(%s, \"%s\", %s);", x, n->draw.var->name, element); break;
    case DRAW_COUNT:
        line(o, "if (!(%s >= 0 && %s <= 2147483647)) FAULT(\"%s\", %s, \"its draw is not a count of 32 bits\");", x, x, n->draw.var->name,
             element);
        break;
    }
}

// ---- ratios for --check ----

// The ratio of what logarithms are kept of is by these: the value itself may have rounded to an end of its support.
static void know_drawn(Out *o, const Node *n)
{
    know(o, n->ratio.c->u, "x");
    know_logs(o, &n->ratio.logs, "log_kept(x, g.log_value)", "log1m_kept(x, g.log_rest)");
}

static void know_former(Out *o, const Node *n)
{
    const Conditional *c = n->ratio.c;
    const char *log = n->ratio.logs.log ? text(o, "log_kept(old, %s)", kept_place(o, c->var->lowered.kept_log, c->current)) : NULL;
    const char *rest = n->ratio.logs.log1m ? text(o, "log1m_kept(old, %s)", kept_place(o, c->var->lowered.kept_log1m, c->current)) : NULL;
    know(o, c->u, "old");
    know_logs(o, &n->ratio.logs, log, rest);
}

// The ratio of an exact draw: log q at the new value less log q at the old.
static const char *ratio_list(Out *o, const Node *n)
{
    const char *list = NULL;
    for (int k = 0; k < n->ratio.n; k++) {
        const Expr *s = n->ratio.statistic[k];
        const char *now = "", *then = "";
        SCOPE
        {
            know_drawn(o, n);
            now = expr_c(o, s, ADDITIVE);
        }
        SCOPE
        {
            know_former(o, n);
            then = expr_c(o, s, MULTIPLICATIVE - (s->kind == EX_POW));
        }
        // terms apart, so that their sizes are known
        const char *difference = n->ratio.square[k] ? "((x - old) * (x + old))" : text(o, "(%s - %s)", now, then);
        list = text(o, "%s%s%s * %s", list ? list : "", list ? ", " : "", n->ratio.natural[k]->name, difference);
    }
    return list;
}

// Whether the nodes do nothing but for --check: a lesson has no ratios, and no loops of nothing else.
bool only_ratios(const Node *list)
{
    for (; list; list = list->next)
        if (list->kind != NODE_RATIO && !(list->kind == NODE_LOOP && list->body && only_ratios(list->body))) return false;
    return true;
}

void emit_ratio(Out *o, const Node *n)
{
    if (o->g->lesson) return;
    if (!n->ratio.c && n->ratio.value) {
        const char *list = "";
        for (int i = 0; i < (n->ratio.value->kind == EX_ADD ? n->ratio.value->nargs : 1); i++)
            list = text(o, "%s%s%s", list, i ? ", " : "",
                        expr_c(o, n->ratio.value->kind == EX_ADD ? n->ratio.value->args[i] : n->ratio.value, LOOSE));
        line(o, "if (CHECKING) RATIO(%s);", list);
    } else if (!n->ratio.c) line(o, "NO_RATIO();");
    else if (n->ratio.n == 0) line(o, "RATIO(0);");
    else
        line(o, "if (CHECKING) { const %s old = %s; RATIO(%s); }", o->kernel->number,
             place_text(o, &(Place){.element = n->ratio.c->current}), ratio_list(o, n));
}

// ---- scalars that are drawn alike ----

// The function that kernels call.
void emit_shared_draw(Out *o, const SharedDraw *f)
{
    const Node *n = f->draw;
    const char *parameters = "";
    for (int i = 0; i < n->draw.nargs; i++)
        if (n->draw.arg[i].value) parameters = text(o, "%s, const %s %s", parameters, n->draw.type, n->draw.arg[i].name);
    line(o, "// A scalar with a conditional of this family: its draw, its ratio for --check, and where it is kept.");
    FUNCTION("SHARED_DRAW %s(GmContext *GM, const Sweep at, const int id, const char *name, wide *place%s)", f->name, parameters)
    {
        line(o, "Stream g = stream(at, id, 0);");
        line(o, "const %s x = %s(&g%s);", n->draw.type, n->draw.call->name, draw_list(o, n));
        line(o, "VERIFY(x, name, 0);");
        line(o, "if (CHECKING) { const %s old = *place; RATIO(%s); }", f->first->number, ratio_list(o, f->ratio));
        line(o, "*place = x;");
    }
}

void call_shared_draw(Out *o, const Kernel *k)
{
    const Node *n = k->alike_from;
    const char *name = n->draw.var->name, *arguments = "";
    for (int i = 0; i < n->draw.nargs; i++)
        if (n->draw.arg[i].value) arguments = text(o, "%s, %s", arguments, expr_c(o, n->draw.arg[i].value, LOOSE));
    line(o, "%s(GM, at, VAR_%s, \"%s\", s->%s%s);", k->alike->name, c_name(o, name), name, c_name(o, name), arguments);
}
