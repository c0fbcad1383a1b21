// textbook.c -- a draw in the parameters of the law above its kernel, in place of natural parameters.
//
//   family   power_gamma: a on log(x), b on x^k; shape = (a + 1)/k, rate = -b; draw_law = power_gamma(k, shape, rate)
//   before   let a = -J - 2; let b = -1/nu, which grows; b -= square(theta[j] - mu)/2 over j
//   after    let shape = J/2 + 1/2; let rate = 1/nu, which grows; rate += square(theta[j] - mu)/2 over j
//
// A parameter that is a number times one natural parameter, and something more, is summed up in its place. A natural parameter that is left
// over has a local if it is a sum over loops. Other parameters follow when all sums are there: mean = h/precision.
//
// Natural parameters stay where something follows the draw that reads it, as logarithms that are kept, and where many scalars share a
// function; of a family that names no routine for its law (`draw_law`); and of a normal within bounds h, since precision may be 0.
#include "../graph/model/law.h"
#include "lower.h"

static bool names(const Ast *e, const char *name)
{
    if (e->kind == AST_NAME && e->name == name) return true;
    for (int i = 0; i < e->nkids; i++)
        if (names(e->kid[i], name)) return true;
    return false;
}

static const Ast *draw_of(Lower *p, const Update *s, const Kernel *k)
{
    const Conditional *c = s->conditional;
    const Var *v = c->var;
    const Ast *draw = c->truncated ? c->family->draw_law_truncated : c->family->draw_law;
    const bool others_read_it = k->followed || v->lowered.kept_log || v->lowered.kept_log1m || s->does != DRAWS || s->marginal;
    return others_read_it || v->base != BASE_REAL || p->out->nupdates > MANY_UPDATES || c->nnatural == 0 ? NULL : draw;
}

static bool reads(const Expr *e, const Var *local) { return ex_mentions(e, local); }

// The law's parameters in natural ones, which are locals here; false: some are arrays.
static bool write_parameters(Lower *p, Textbook *t, const Conditional *c)
{
    Graph *g = (Graph *)p->g;  // for its arena
    Names bound = {0};
    for (const Natural *n = c->family->natural; n; n = n->next) {
        t->natural_name[t->nnatural] = n->name;
        t->natural[t->nnatural] = local_named(g->arena, n->name);
        names_add(g, &bound, n->name, local_ref(t->natural[t->nnatural++]));
    }
    if (c->family->power) names_add(g, &bound, c->family->power, ex_num(c->power));
    for (int i = 0; i < c->nbase; i++) names_add(g, &bound, c->family->base->kid[i]->name, c->base_args[i]);
    names_add(g, &bound, intern("x"), c->current);
    for (const Natural *n = c->family->law->parameter; n; n = n->next) {
        if (n->decl->type.rank || t->n == MAX_NATURAL) return false;
        Parameter *of = &t->parameter[t->n++];
        *of = (Parameter){.name = n->name, .local = local_named(g->arena, n->name), .natural = -1};
        of->value = elaborate(g, n->statistic, names_bind(g, NULL, n->statistic, &bound), 0, NULL);
        of->is_read = names(t->draw, n->name);
        names_add(g, &bound, n->name, local_ref(of->local));
    }
    return true;
}

// Which parameters the draw reads, itself or by others.
static void find_read(Textbook *t)
{
    for (int i = t->n - 1; i >= 0; i--)
        for (int j = 0; j < i; j++)
            t->parameter[j].is_read |= t->parameter[i].is_read && reads(t->parameter[i].value, t->parameter[j].local);
}

static bool reads_no_other(const Textbook *t, const Parameter *of, int k)
{
    for (int j = 0; j < t->nnatural; j++)
        if (j != k && reads(of->value, t->natural[j])) return false;
    for (int j = 0; j < t->n; j++)
        if (reads(of->value, t->parameter[j].local)) return false;
    return true;
}

// A parameter that is a number times natural parameter k, and something more, if no other reads that.
static void take_sums(Textbook *t, int k)
{
    Parameter *only = NULL;
    int n = names(t->draw, t->natural_name[k]);
    for (int i = 0; i < t->n; i++) {
        if (!t->parameter[i].is_read || !reads(t->parameter[i].value, t->natural[k])) continue;
        only = &t->parameter[i];
        n++;
    }
    if (n != 1 || !only || !reads_no_other(t, only, k)) return;
    Expr *it = local_ref(t->natural[k]), *more = ex_replace(only->value, it, ex_num(0)),
         *times = ex_sub(ex_replace(only->value, it, ex_num(1)), more);
    if (times->kind != EX_NUM || ex_add2(ex_mul2(times, it), more) != only->value) return;
    only->natural = k;
    only->times = times;
    only->more = more;
}

Textbook textbook_of(Lower *p, const Update *s, const Kernel *k)
{
    Textbook t = {.draw = draw_of(p, s, k), .number = k->number};
    if (!t.draw) return t;
    if (!write_parameters(p, &t, s->conditional)) return (Textbook){0};
    find_read(&t);
    for (int i = 0; i < t.nnatural; i++) take_sums(&t, i);
    return t;
}

Var *put_textbook(Lower *p, Textbook *t, int k, Expr *closed, bool grows, Expr **times)
{
    Var *local = t->natural[k];
    for (int i = 0; i < t->n; i++) {
        Parameter *of = &t->parameter[i];
        if (of->natural != k) continue;
        local = of->local;
        closed = ex_add2(ex_mul2(of->times, closed), of->more);
        of->closed = grows ? NULL : closed;
        *times = of->times;
    }
    t->wide[k] = grows;
    t->closed[k] = local == t->natural[k] && !grows && !names(t->draw, t->natural_name[k]) ? closed : NULL;
    if (!t->closed[k]) put_let(p, NULL, local, closed, grows ? "wide" : t->number)->let.grows = grows;
    return local;
}

// Without what cancels: mean = (theta/sigma^2)/precision is theta where precision is 1/sigma^2.
static Expr *cancelled(const Textbook *t, Expr *value)
{
    Expr *whole = value;
    for (int i = 0; i < t->n; i++)
        if (t->parameter[i].closed) whole = ex_replace(whole, local_ref(t->parameter[i].local), t->parameter[i].closed);
    return whole->size < value->size ? whole : value;
}

void put_textbook_later(Lower *p, const Textbook *t)
{
    for (int i = 0; i < t->n; i++) {
        const Parameter *of = &t->parameter[i];
        if (!of->is_read || of->natural >= 0) continue;
        Expr *value = of->value;
        bool wide = false;
        for (int k = 0; k < t->nnatural; k++) {
            if (!reads(of->value, t->natural[k])) continue;
            wide |= t->wide[k];
            if (t->closed[k]) value = ex_replace(value, local_ref(t->natural[k]), t->closed[k]);
        }
        put_let(p, NULL, of->local, cancelled(t, value), wide ? "wide" : t->number);
    }
}

int textbook_arguments(const Textbook *t, DrawArg *args, int n)
{
    for (int k = 0; t->draw && k < t->nnatural; k++)
        if (names(t->draw, t->natural_name[k])) args[n++] = (DrawArg){.name = t->natural_name[k], .value = local_ref(t->natural[k])};
    for (int i = 0; t->draw && i < t->n; i++)
        if (t->parameter[i].is_read) args[n++] = (DrawArg){.name = t->parameter[i].name, .value = local_ref(t->parameter[i].local)};
    return n;
}
