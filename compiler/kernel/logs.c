// logs.c -- logarithms of unknowns that may round to an end of their support.
//
//   v[k] ~ beta(1, alpha)      alpha | v ~ gamma(.., .. - sum log(1 - v[k]))
//                              with alpha = 0.001 half of the log(1 - v[k]) are below -690, where 1 - v[k] is 0
//
// An array beside v keeps log v[k], and where v lies between 0 and 1 another one log(1 - v[k]). What draws v writes them: exact draws are
// made by logarithms (runtime/device/gamma.h, beta.h, dirichlet.h), slices and HMC have coordinates that are such. What
// reads log v[k] then takes the kept one where v[k] itself is less precise (log_kept, special.h), wherever v[k] was written since.
//
// Needs: the schedule.     Gives: Var.kept_log, Var.kept_log1m, before any kernel is made.
// Conditions: v is an unknown of the model between 0 and infinity, 0 and 1, or a simplex; its own statement has log v or log(1 - v) times
// something unknown, so that its law, which is to be learnt, depends on how far out v lies.
// Or it has a small shape, and one of these: another statement has log v times something unknown; a scale move acts on it; it lies between
// 0 and 1 and is sliced or updated by HMC.
#include <math.h>
#include "lower.h"

#define SMALL_SHAPE 0.1  // P(v < 1e-308) is e^-71 with it

typedef struct Logs {
    const Var *v;
    bool read;
} Logs;

static Look find_log(const Expr *e, void *with)
{
    Logs *l = with;
    if (e->kind == EX_CALL && (e->fn == FN_log || e->fn == FN_log1m) && e->args[0]->kind == EX_REF && e->args[0]->var == l->v)
        l->read = true;
    return l->read ? FOUND : LOOK;
}

static bool reads_log(const Expr *e, const Var *v)
{
    Logs l = {v, false};
    ex_find(e, find_log, &l);
    return l.read;
}

static bool is_unknown(const Var *v, void *with) { return v != with && var_unknown(v); }

// log v times something unknown
static Look find_weighed_log(const Expr *e, void *with)
{
    Logs *l = with;
    if (e->kind != EX_MUL) return LOOK;
    for (int i = 0; i < e->nargs; i++)
        for (int k = 0; k < e->nargs; k++)
            if (i != k && reads_log(e->args[i], l->v) && ex_any_var(e->args[k], is_unknown, (void *)l->v)) return FOUND;
    return LOOK;
}

static bool lies_at_an_end(const Var *v)
{
    if ((v->kind != VAR_PARAMETER && v->kind != VAR_LATENT) || v->discrete || v->mixed || v->parts || v->part_of || v->hidden ||
        v->em.integrated)
        return false;
    if (v->constraint == CONSTRAINT_SIMPLEX) return true;
    return v->constraint == CONSTRAINT_NONE && v->lower_number == 0 && (isinf(v->upper_number) || v->upper_number == 1);
}

// log v times a number near -1: a gamma or beta with a parameter below SMALL_SHAPE
static Look find_small_shape(const Expr *e, void *with)
{
    const Logs *l = with;
    return e->kind == EX_MUL && e->nargs == 2 && e->args[0]->kind == EX_NUM && e->args[0]->number < SMALL_SHAPE - 1 &&
                   e->args[0]->number > -1 && reads_log(e->args[1], l->v)
               ? FOUND
               : LOOK;
}

// A scale that v is multiplied by may take it to an end, and from there.
static bool is_scaled(const Graph *g, const Var *v)
{
    for (const Update *s = g->updates; s; s = s->next)
        for (int i = 0; s->group_move && !s->group_move->added && i < s->group_move->n; i++)
            if (s->group_move->moved[i].var == v) return true;
    return false;
}

// A slice would go from one end towards the other by factors of e, and gradients end where doubles do: by its logarithms it reaches as far
// as its law.
static bool is_moved(const Graph *g, const Var *v)
{
    for (const Update *s = g->updates; s; s = s->next)
        for (int i = 0; i < s->nblock && (s->kind == UPDATE_SLICE || s->kind == UPDATE_NUTS) && !s->group_move && !s->imputes; i++)
            if (s->block[i] == v) return true;
    return false;
}

static bool rounds_and_is_read(const Graph *g, const Var *v)
{
    bool own = false, small = false, others = false;
    for (const Factor *f = g->factors; f; f = f->next) {
        const bool weighed = ex_find(f->log_density, find_weighed_log, &(Logs){v, false}),
                   is_own = f->value && f->value->kind == EX_REF && f->value->var == v;
        own |= is_own && weighed;
        small |= is_own && ex_find(f->log_density, find_small_shape, &(Logs){v, false});
        others |= !is_own && weighed;
    }
    return own || (small && (others || is_scaled(g, v) || (v->upper_number == 1 && v->constraint == CONSTRAINT_NONE && is_moved(g, v))));
}

void plan_logs(Lower *p)
{
    const Graph *g = p->g;
    if (g->method == METHOD_EM) return;
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if (!lies_at_an_end(v) || !rounds_and_is_read(g, v)) continue;
        v->lowered.kept_log = work_array(p, ROLE_LOGS, words(p, "log_%s", v->name), v->rank, v->dim);
        if (v->upper_number == 1 && v->constraint == CONSTRAINT_NONE)
            v->lowered.kept_log1m = work_array(p, ROLE_LOGS, words(p, "log1m_%s", v->name), v->rank, v->dim);
    }
}

// What is set here belongs to an element that has just been set.
void put_logs(Lower *p, Expr *element, Expr *log, Expr *log1m, Store how)
{
    Var *const to[] = {element->var->lowered.kept_log, element->var->lowered.kept_log1m};
    for (int i = 0; i < 2; i++)
        if (to[i])
            put_assign(p, ASSIGN_SET, place_element(ex_ref(to[i], element->nargs, element->args)), i ? log1m : log)->assign.how = how;
}
