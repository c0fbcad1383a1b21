// ends.c -- the interval of a variable: where its ends are, and the element as an image of the line.
#include <math.h>
#include "hmc.h"

Expr *end_of(const Ends *e, int side, const Expr *element)
{
    return e->array[side] ? ex_ref(e->array[side], element->nargs, element->args) : ex_num(e->number[side]);
}

bool is_free(const Ends *e) { return !e->array[0] && isinf(e->number[0]) && isinf(e->number[1]); }

// Ends at which logarithms of the element are kept (logs.c).
bool keeps_logs(const Ends *ends, const Expr *element)
{
    return element->var->lowered.kept_log && !ends->array[0] && ends->number[0] == 0 &&
           (isinf(ends->number[1]) || (element->var->lowered.kept_log1m && ends->number[1] == 1));
}

Expr *line_transform(const Ends *ends, LineTransform what, Expr *q, const Expr *element)
{
    static const char *const name[] = {"from_line", "line_slope", "line_log_slope", "line_bend", "to_line"};
    Expr *lo = end_of(ends, 0, element), *hi = end_of(ends, 1, element);
    const bool below = !ends->array[0] && isfinite(ends->number[0]), above = !ends->array[0] && isfinite(ends->number[1]),
               kept = keeps_logs(ends, element);
    if (kept && what == LINE_VALUE) return ex_call1(above ? "from_logit" : "from_log", q);
    // whose quotients by x and by 1 - x are numbers
    if (kept && above && what == LINE_SLOPE) return ex_mul2((Expr *)element, ex_sub(ex_num(1), (Expr *)element));
    if (kept && above && what == LINE_INVERSE) return ex_sub(ex_call1("log", (Expr *)element), ex_call1("log1m", (Expr *)element));
    if (ends->array[0] || (below && above)) return ex_call3(name[what], q, lo, hi);
    Expr *sign = ex_num(above ? -1 : 1), *end = above ? hi : lo;
    switch (what) {
    case LINE_VALUE: return ex_add2(end, ex_mul2(sign, ex_call1("exp", q)));
    case LINE_SLOPE: return ends->number[0] == 0 ? (Expr *)element : ex_mul2(sign, ex_call1("exp", q));
    case LINE_LOG_SLOPE: return q;
    case LINE_BEND: return ex_num(1);
    case LINE_INVERSE: return ex_call1("log", ex_mul2(sign, ex_sub(q, end)));
    }
    return q;
}

Bound *bounds_of(const HmcBlock *m, const Var *v)
{
    Bound *first = NULL, **last = &first;
    if (tied_of(m, v)->slope) return NULL;
    for (int i = 0; i < m->update->nuts.n; i++) {
        const Factor *f = m->update->nuts.factor[i];
        const Expr *e = f->log_density;
        for (int k = 0; k < (e->kind == EX_ADD ? e->nargs : 1); k++) {
            const Expr *t = e->kind == EX_ADD ? e->args[k] : e;
            if (t->kind != EX_CALL || t->fn != FN_WITHIN || t->args[0]->kind != EX_REF || t->args[0]->var != v) continue;
            if (t->args[1]->kind == EX_NUM && t->args[1]->number <= v->lower_number && t->args[2]->kind == EX_NUM &&
                t->args[2]->number >= v->upper_number)
                continue;
            *last = NEW(m->p->g->arena, Bound);
            **last = (Bound){f, t, NULL};
            last = &(*last)->next;
        }
    }
    return first;
}

Expr *finite_end(Expr *end) { return end->kind == EX_NUM ? ex_num(0) : end; }

bool end_reads(const Bound *b, const Var *v) { return ex_reads(b->term->args[1], v) || ex_reads(b->term->args[2], v); }

// x = exp(q), where the variables have been placed: log x is the coordinate.
static bool is_exponential(const HmcBlock *m, const Var *v)
{
    const Ends *ends = &m->ends[at_block(m, v)];
    return !tied_of(m, v)->slope && !ends->array[0] && ends->number[0] == 0 && isinf(ends->number[1]);
}

typedef struct LogsOfUnknowns {
    const HmcBlock *m;
    Expr **at;
    int n, size;
} LogsOfUnknowns;

static Look collect_logs(const Expr *e, void *with)
{
    LogsOfUnknowns *c = with;
    if (e->kind != EX_CALL || e->fn != FN_log || e->args[0]->kind != EX_REF) return LOOK;
    const Var *v = e->args[0]->var;
    bool found = false;
    for (int i = 0; i < c->m->update->nblock; i++) found |= c->m->update->block[i] == v;
    if (!found || !is_exponential(c->m, v)) return LOOK;
    for (int i = 0; i < c->n; i++)
        if (c->at[i] == e) return LOOK;
    ROOM(c->m->p->g->arena, c->at, c->n, c->size);
    c->at[c->n++] = (Expr *)e;
    return LOOK;
}

Expr *with_coordinates(const HmcBlock *m, Expr *e)
{
    LogsOfUnknowns c = {.m = m};
    ex_find(e, collect_logs, &c);
    for (int i = 0; i < c.n; i++) e = ex_replace(e, c.at[i], of_ref(m, m->position, c.at[i]->args[0]));
    return e;
}

// The ends of all elements of a variable, into their arrays.
void put_ends_of(HmcBlock *m, int i)
{
    Lower *p = m->p;
    const Ends *ends = &m->ends[i];
    Loops l;
    Expr *element = all_elements(m->update->block[i], &l);
    l.guard = NULL;
    Node *n = each_element(m, element, &l);
    for (int side = 0; side < 2; side++) put_assign(p, ASSIGN_SET, place_element(end_of(ends, side, element)), ex_num(ends->number[side]));
    leave(p, n);
    for (const Bound *b = bounds_of(m, m->update->block[i]); b; b = b->next) {
        const Loops over = b->f->plates;
        for (int side = 0; side < 2; side++) {
            Expr *end = b->term->args[1 + side];
            if (end->kind == EX_NUM && isinf(end->number)) continue;
            put_barrier(p);
            Node *each =
                over.n ? enter_nest(p, NODE_NEST, &over, b->term->args[0]->nargs, b->term->args[0]->args, NULL) : enter(p, NODE_LANE);
            put_assign(p, side ? ASSIGN_MIN : ASSIGN_MAX, place_element(end_of(ends, side, b->term->args[0])), end);
            leave(p, each);
        }
    }
    put_barrier(p);
}
