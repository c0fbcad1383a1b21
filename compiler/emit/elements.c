// elements.c -- an element of a variable in a kernel: its position, its stream of random numbers, its logarithms, and how it is stored.
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>
#include "nodes.h"

const char *element_text(const Out *o, const Expr *e)
{
    return !e || e->nargs == 0 ? "0" : o->flat ? o->flat : position_text(o, e->var, 0, e->var->rank, e->args).c;
}

const char *stream_text(const Out *o, const Var *v, const char *element)
{
    return text(o, "Stream g = stream(at, VAR_%s, %s);", c_name(o, v->name), element);
}

const char *kept_place(const Out *o, const Var *kept, const Expr *element) { return kept ? element_c(o, kept, element->args) : NULL; }

void know_logs(Out *o, const KeptLogs *logs, const char *log_x, const char *log1m_x)
{
    if (logs->log) know(o, logs->log, log_x);
    if (logs->log1m) know(o, logs->log1m, log1m_x);
}

void no_ratio(const Out *o)
{
    if (!o->g->lesson) line(o, "NO_RATIO();");
}

void checked(const Out *o, const char *format, ...)
{
    char *s;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&s, format, ap) < 0) abort();
    va_end(ap);
    if (!o->g->lesson) line(o, "%s", s);
    free(s);
}

void store(Out *o, const char *place, const char *x)
{
    if (o->crew) line(o, "ELEMENT_LANE %s = %s;", place, x);
    else line(o, o->team ? "SET(%s, %s);" : "%s = %s;", place, x);
}

bool is_one_statement(const Node *body)
{
    if (body && body->kind == NODE_LET) return body->let.twice;
    if (body && body->kind == NODE_ASSIGN && body->assign.chain) return !body->next->next->next->next;
    return body && (body->kind == NODE_ASSIGN || body->kind == NODE_RATIO) && !body->next;
}
