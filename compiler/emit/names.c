// names.c -- C names of what a kernel reads, while it is written: variables of the model, indices of loops, expressions that have a name.
//
// An index is written with a mark before it. Here its name differs from those of the loops around it and of local variables; rename.c makes
// it differ from all else.
#include <string.h>
#include "../base/words.h"
#include "out.h"

const char *c_name(const Out *o, const char *name) { return word_apart(o->arena, name, word_reserved); }

const char *marked(const Out *o, const char *index) { return text(o, "%c%s", INDEX_MARK, index); }

void name_index(Out *o, const Index *i, const char *c)
{
    NamedIndex *one = NEW(o->arena, NamedIndex);
    *one = (NamedIndex){i, *c == INDEX_MARK ? c : marked(o, c), o->named};
    o->named = one;
}

const char *index_text(const Out *o, const Index *i)
{
    for (const NamedIndex *n = o->named; n; n = n->before)
        if (n->index == i) return n->text;
    return i->name;
}

void take_name(Out *o, const char *name)
{
    Taken *one = NEW(o->arena, Taken);
    *one = (Taken){name, o->taken};
    o->taken = one;
}

// Whether a loop around this place is written so, a local variable of the kernel, or what most kernels have. What else it must not meet is
// looked for below.
static bool name_taken(const Out *o, const char *c)
{
    static const char *const used[] = {"d", "s", "at", "g", "x", "run", "n", "dot", "lower", "upper", "tries", "search", NULL};
    for (int k = 0; used[k]; k++)
        if (strcmp(used[k], c) == 0) return true;
    for (const Taken *t = o->taken; t; t = t->before)
        if (strcmp(t->name, c) == 0) return true;
    for (const NamedIndex *n = o->named; n; n = n->before)
        if (strcmp(n->text + 1, c) == 0) return true;
    return false;
}

const char *fresh_index(Out *o, const Index *i)
{
    const char *c = c_name(o, i->name);
    for (int k = 2; name_taken(o, c); k++) c = text(o, "%s%d", i->name, k);
    c = marked(o, c);
    name_index(o, i, c);
    return c;
}

void know(Out *o, const Expr *e, const char *name)
{
    Var *local = NEW(o->arena, Var);
    local->name = name;
    scope_know(o->scope, e, local);
}

// ---- fields of Data and State ----

static const char *number_in(const Out *o, const char *stem, const Field *list, int n, const Var *v)
{
    return v && field_of(list, n, v) >= 0 ? text(o, "%s_%s", stem, v->name) : "0";
}

const char *data_number(const Out *o, const Program *p, const Var *v) { return number_in(o, "DATA", p->data, p->ndata, v); }
const char *state_number(const Out *o, const Program *p, const Var *v) { return number_in(o, "STATE", p->state, p->nstate, v); }
