// factor.c -- factors of the log joint and statements that compute: made, copied, changed, and when each counts.
//
// Needs: variables and expressions.     Gives: factors in g->factors, in the order in which they were made; a copy follows what it
// was made of.
#include "factor.h"

// Numbers count from 0 in each graph.
static int factor_number(const Graph *g)
{
    static int next;
    if (!g->factors) next = 0;
    return next++;
}

Loops loops_of_indices(Index *const *index, int n, Expr *guard)
{
    Loops l = {.n = n, .guard = guard};
    for (int i = 0; i < n; i++) l.index[i] = index[i];
    return l;
}

Factor *factor_new(Graph *g, Span at, Loops plates)
{
    Factor *f = NEW(g->arena, Factor);
    f->span = at;
    f->plates = plates;
    f->log_density = f->if_missing = ex_num(0);
    g->reading = NULL;
    f->id = factor_number(g);
    *g->last_factor = f;
    g->last_factor = &f->next;
    return f;
}

Factor *factor_beside(Graph *g, Factor *f)
{
    Factor *copy = arena_copy(g->arena, f, sizeof *f);
    copy->id = factor_number(g);
    g->reading = NULL;
    if (g->last_factor == &f->next) g->last_factor = &copy->next;
    return f->next = copy;
}

void factor_add(Factor *f, Expr *e) { f->log_density = ex_add2(f->log_density, e); }

Factor *factor_with(Graph *g, const Factor *f, Expr *log_density)
{
    Factor *out = arena_copy(g->arena, f, sizeof *f);
    out->log_density = log_density;
    out->next = NULL;
    return out;
}

static void change(Expr **e, Expr *(*how)(Expr *, void *), void *with)
{
    if (*e) *e = how(*e, with);
}

void factor_change(Factor *f, Expr *(*how)(Expr *, void *), void *with)
{
    change(&f->log_density, how, with);
    change(&f->value, how, with);
    for (int i = 0; i < f->nargs; i++) change(&f->args[i], how, with);
    for (int k = 0; k < f->ncomponents; k++) {
        change(&f->component[k].weight, how, with);
        for (int i = 0; i < f->component[k].nargs; i++) change(&f->component[k].args[i], how, with);
    }
    Expr **rest[] = {&f->lower, &f->upper, &f->if_missing, &f->least, &f->most, &f->from, &f->to};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) change(rest[i], how, with);
}

void site_change(Site *t, Expr *(*how)(Expr *, void *), void *with)
{
    change(&t->value, how, with);
    for (int i = 0; i < t->nargs; i++) change(&t->args[i], how, with);
    for (int i = 0; i < 2; i++) change(&t->end[i], how, with);
}

// The statement that latents of an augmentation stand for: as it is written, or, of a response that is left out where it is missing, as the
// others see it.
const Factor *factor_written(const Factor *f)
{
    while (f->original && !f->original->left_out) f = f->original;
    return f;
}

bool factor_counts_at(const Factor *f, int sums, bool collapsed)
{
    const Factor *written = factor_written(f);
    if (f->left_out || f->taken_back || sums < written->made || (written->gone && written->gone <= sums)) return false;
    return collapsed ? f == written : !f->replaced;
}

bool factor_counts(const Factor *f, const Var *v, bool collapsed)
{
    return v->left_out ? f->left_out : factor_counts_at(f, v->summing.sums, collapsed);
}

// Whether v decides if an instance of f stands, or what values its data may have: a response with missing values may.
bool factor_decided_by(const Factor *f, const Var *v)
{
    if (f->plates.guard && ex_mentions(f->plates.guard, v)) return true;
    return f->observed && ((f->least && ex_mentions(f->least, v)) || (f->most && ex_mentions(f->most, v)));
}

bool decide_instances(const Factor *f, bool (*are)(const Var *v, void *with), void *with)
{
    bool they = f->plates.guard && ex_any_var(f->plates.guard, are, with);
    for (int i = 0; i < f->plates.n && !they; i++)
        they = ex_any_var(f->plates.index[i]->lo, are, with) || ex_any_var(f->plates.index[i]->hi, are, with);
    return they;
}

bool factor_draws(const Factor *f, const Var *v) { return f->dist && f->value && f->value->kind == EX_REF && f->value->var == v; }
