// scope.c -- which expressions have a name at a place of a kernel.
#include <string.h>
#include "scope.h"

const Var *scope_find(const Scope *s, const Expr *e)
{
    for (int i = s->n - 1; e->known && i >= 0; i--)  // few expressions have a name: these are counted
        if (s->known[i].key == e) return s->known[i].local;
    return NULL;
}

const Var *scope_find_negative(const Scope *s, const Expr *e)
{
    if (e->kind != EX_MUL || e->nargs < 3 || !ex_is_num(e->args[0], -1)) return NULL;
    for (int i = s->n - 1; i >= 0; i--) {
        const Expr *key = s->known[i].key;
        if (key && key->kind == EX_MUL && key->nargs == e->nargs - 1 &&
            memcmp(key->args, e->args + 1, sizeof *key->args * (size_t)key->nargs) == 0)
            return s->known[i].local;
    }
    return NULL;
}

void scope_know(Scope *s, const Expr *e, const Var *local)
{
    if (s->n == s->size) {
        Known *more = NEW_N(s->arena, Known, s->size = 2 * s->size + 16);
        if (s->n) memcpy(more, s->known, sizeof *more * (size_t)s->n);
        s->known = more;
    }
    s->known[s->n++] = (Known){e, local};
    ((Expr *)e)->known++;
}

void scope_leave(Scope *s, int n)
{
    while (s->n > n)
        if (s->known[--s->n].key) ((Expr *)s->known[s->n].key)->known--;
}

// If there are no series, what is read is what is mentioned, which is found faster than by a walk through all of the expression.
static bool reads(const Scope *s, const Expr *e, const Var *v) { return s->g->series ? ex_reads(e, v) : ex_mentions(e, v); }

static bool forget(const Var *v, void *with)
{
    Scope *s = with;
    if (v->kind == VAR_ELEMENT) return false;  // a local that grows: nothing is named that reads it
    for (int i = 0; i < s->n; i++)
        if (s->known[i].key && s->known[i].key->kind != EX_REF && reads(s, s->known[i].key, v)) {
            ((Expr *)s->known[i].key)->known--;
            s->known[i].key = NULL;
        }
    return false;
}

void scope_written(Scope *s, const Node *list) { writes(list, forget, s); }

void scope_wrote(Scope *s, const Node *n)
{
    Node alone = *n;
    alone.next = NULL;
    writes(&alone, forget, s);
}
