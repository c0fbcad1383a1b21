// plates.c -- loops: those around a statement, those of a sum.
#include <string.h>
#include "plates.h"

const char *loops_text(const Graph *g, const Loops *l)
{
    const char *t = "";
    for (int i = 0; i < l->n; i++)
        t = arena_printf(g->arena, "%s%s%s in %s:%s", t, i ? ", " : "", l->index[i]->name, ex_text(g->arena, l->index[i]->lo),
                         ex_text(g->arena, l->index[i]->hi));
    return l->guard ? arena_printf(g->arena, "%s%swhere %s", t, l->n ? " " : "", ex_text(g->arena, l->guard)) : t;
}
