// describe_density.c -- a log density, or the weight of a value: a line for each part.
#include "describe.h"
#include "../terms/plates.h"
#include "../updates/conjugates.h"
#include "describe_parts.h"

// Sums over rows of a plate that is integrated out, as they are written.
static Expr *with_sums(Graph *g, const Update *s, Expr *e)
{
    const Without *w = s->without;
    if (!w || !w->n || w->plate->conditional->array) return e;
    Expr **is = NEW_N(g->arena, Expr *, w->n);
    for (int i = 0; i < w->n; i++) is[i] = total_of_part(g, w->plate->conditional, w->part[i]);
    return in_place_of_sums(w, e, is);
}

// Those of a vector that is integrated out have a line each.
static void sums_of_vector(Graph *g, Description *d, const Without *w)
{
    const Conditional *c = w->plate->conditional;
    for (int i = 0; i < w->n; i++) {
        Expr *value = total_of_part(g, c, w->part[i]);
        Expr *left = ex_ref(w->sum[i], c->var->rank, c->current->args);
        add_line(g, d, arena_printf(g->arena, "%s = %s", shown(g, left), shown(g, value)), statement_becomes(NULL, left, value));
    }
}

// A log density, or the weight of a value: a line for each part.
void describe_density(Graph *g, Description *d, const Update *s)
{
    const Conditional *c = s->conditional;
    if (s->without && s->without->plate->conditional->array) sums_of_vector(g, d, s->without);
    for (const Part *p = c->density; p; p = p->next) {
        Loops l = p->loops;
        for (int k = 0; p->scatter && k < c->var->rank && p->target[k]; k++) {
            Expr *same = ex_call2("==", p->target[k], ex_index(c->element[k]));
            l.guard = l.guard ? ex_call2("&&", l.guard, same) : same;
        }
        Expr *value = with_sums(g, s, ex_replace(p->value, c->u, c->current));
        name_apart(g, &l, (Expr * *[]){&value}, 1);
        const char *over = loops_text(g, &l);
        add_line(g, d,
                 arena_printf(g->arena, "log density += %s%s%s", shown_over(g, value, &l),
                              l.n       ? "   over "
                              : l.guard ? "   "
                                        : "",
                              over),
                 statement_adds(NULL, value, &l, p->factor));
    }
}
