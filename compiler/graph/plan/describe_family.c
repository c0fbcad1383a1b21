// describe_family.c -- an exact draw: sigma^-2 ~ gamma(shape, rate), from natural parameters to those of a textbook.
//
// Needs: a conditional that a family has.     Gives: its law, a line for each parameter, its ends, the change of variable of a power.
#include <ctype.h>
#include <math.h>
#include <string.h>
#include "describe.h"
#include "../terms/plates.h"
#include "../model/law.h"
#include "describe_parts.h"

// The ends of a truncated draw.
static void bounds(Graph *g, Description *d, const Conditional *c)
{
    const double ends[2] = {c->var->lower_number, c->var->upper_number};
    for (int side = 0; side < 2; side++) {
        const char *t = isfinite(ends[side]) ? arena_printf(g->arena, "%.15g", ends[side]) : NULL;
        int n = t != NULL;
        Expr *end = t ? ex_num(ends[side]) : NULL;
        for (const Part *p = c->bounds; p; p = p->next) {
            if (p->which != side) continue;
            Loops l = p->loops;
            for (int k = 0; p->scatter && k < c->var->rank && p->target[k]; k++) {
                Expr *same = ex_call2("==", p->target[k], ex_index(c->element[k]));
                l.guard = l.guard ? ex_call2("&&", l.guard, same) : same;
            }
            const char *b = shown(g, p->value);
            Expr *value = p->value;
            if (l.n) b = arena_printf(g->arena, "%s(%s, %s)", side ? "min" : "max", loops_text(g, &l), b);
            else if (l.guard) b = arena_printf(g->arena, "(%s where %s)", b, shown(g, l.guard));
            if (l.n || l.guard) value = end_expr(g, b, &l, value, side);
            t = t ? arena_printf(g->arena, "%s, %s", t, b) : b;
            end = end ? ex_call2(side ? "min" : "max", end, value) : value;
            n++;
        }
        if (n > 1) t = arena_printf(g->arena, "%s(%s)", side ? "min" : "max", t);
        // the law is of its power
        if (t && c->family->power && c->power != 1)
            add_line(g, d, arena_printf(g->arena, "%s %s %s", shown(g, c->current), side ? "<=" : ">=", t),
                     (Statement){.nleft = 1, .left = {c->current}, .relation = side ? "<=" : ">=", .right = end});
        else if (t)
            add_line(g, d, arena_printf(g->arena, "%s = %s", side ? "upper" : "lower", t), statement_is(side ? "upper" : "lower", end));
    }
}

// The name of a parameter of a law: with a prime where a variable of the model has it.
static const char *parameter_name(Graph *g, const char *name)
{
    return names_variable(g, name) ? intern(arena_printf(g->arena, "%s'", name)) : name;
}

const char *meaning_of(const Graph *g, const Distribution *d, int nargs, Expr *const *args)
{
    const char *all = "";
    if (!d || !d->meaning) return NULL;
    for (const char *from = d->meaning; *from;) {
        size_t n = 0;
        while (isalnum((unsigned char)from[n]) || from[n] == '_') n++;
        const char *word = arena_printf(g->arena, "%.*s", (int)(n ? n : 1), from);
        for (int i = 0; i < (n ? d->nparams : 0); i++)
            if (i < nargs && strcmp(d->params[i]->name, word) == 0) word = shown(g, args[i]);
        all = arena_printf(g->arena, "%s%s", all, word);
        from += n ? n : 1;
    }
    return all;
}

static const char *source_text(Graph *g, const Ast *e)
{
    return e->span.source ? arena_printf(g->arena, "%.*s", e->span.to - e->span.from, e->span.source->text + e->span.from) : "";
}

// The argument of a law as the stdlib writes it, its parameters under these names.
static const char *argument_of(Graph *g, const Law *law, const Ast *e)
{
    const char *from = source_text(g, e), *all = "";
    while (*from) {
        size_t n = 0;
        while (isalnum((unsigned char)from[n]) || from[n] == '_') n++;
        const char *word = arena_printf(g->arena, "%.*s", (int)(n ? n : 1), from);
        for (const Natural *p = n ? law->parameter : NULL; p; p = p->next)
            if (strcmp(p->name, word) == 0) word = parameter_name(g, p->name);
        all = arena_printf(g->arena, "%s%s", all, word);
        from += n ? n : 1;
    }
    return all;
}

// The terms of a log density that hold x.
static Expr *terms_with(const Expr *e, const Var *x)
{
    if (!ex_mentions(e, x)) return ex_num(0);
    if (e->kind != EX_ADD) return (Expr *)e;
    Expr *sum = ex_num(0);
    for (int i = 0; i < e->nargs; i++) sum = ex_add2(sum, terms_with(e->args[i], x));
    return sum;
}

// Where the law is that of a power: its density is that of the unknown times the derivative of the unknown by the power.
static void change_of_variable(Graph *g, Description *d, const Conditional *c)
{
    static const char *const letters[] = {"u", "q", "w", "power", NULL};  // no other notion has these
    const Distribution *of = library_distribution(g->stdlib, intern(c->family->law->dist));
    if (!of || !of->log_density || of->nparams != d->drawn.nargs || c->array) return;
    Expr *x = named_expr(g, free_letter(g, letters));
    x->var->lower_number = 0;
    Expr *density =
             ex_tidy(terms_with(elaborate(g, of->log_density, bind_arguments(g, of, of->nparams, d->drawn.args, x), 0, NULL), x->var)),
         *slope = ex_mul2(ex_num(1 / c->power - 1), ex_log(x));
    const char *v = shown(g, c->current), *name = x->var->name;
    d->changed = (struct ChangedVariable){.of = c->current, .x = x, .power = c->power, .density = density};
    d->changed.line =
        arena_printf(g->arena, "with %s = %s^%g: log p(%s) = log p(%s) %s %s, by |d %s/d%s|, = %s + const", name, v, c->power, name, v,
                     1 / c->power < 1 ? "-" : "+", shown(g, 1 / c->power < 1 ? ex_neg(slope) : slope), v, name, shown(g, density));
}

// A line for each parameter of the law. by_name: each by its name, where it is one of several terms.
static void law_parameters(Graph *g, Description *d, const Conditional *c, Names *names, Names *by_name)
{
    for (int i = 0; i < names->n; i++) names_add(g, by_name, names->name[i], names->value[i]);
    for (const Natural *n = c->family->law->parameter; n; n = n->next) {
        const Env *env = names_bind(g, NULL, n->statistic, names);
        const int rank = n->decl->type.rank;
        Expr *value = elaborate(g, n->statistic, env, rank, c->current->args + c->nbatch);
        const char *const own = parameter_name(g, n->name), *left = own;
        for (int k = 0; k < rank; k++)
            left = arena_printf(g->arena, "%s%s%s%s", left, k ? ", " : "[", c->element[c->nbatch + k]->name, k + 1 == rank ? "]" : "");
        Statement as = statement_is(own, ex_tidy(value));
        for (int k = 0; k < rank; k++) as.left[as.nleft++] = ex_index(c->element[c->nbatch + k]);
        add_line(g, d, arena_printf(g->arena, "%s = %s", left, shown(g, as.right)), as);
        // of several terms: by its name from here on
        names_add(g, names, n->name, value->kind == EX_ADD || rank ? named_expr(g, own) : value);
        names_add(g, by_name, n->name, named_expr(g, own));
    }
}

// sigma^-2 ~ gamma(shape, rate), with shape and rate from the natural parameters.
void describe_family(Graph *g, Description *d, const Conditional *c)
{
    const Distribution *f = c->family;
    const char *element = shown_element(g, c);
    Names names = {0};
    int which = 0;
    for (const Natural *n = f->natural; n; n = n->next, which++) {
        Expr *sum = ex_num(0);
        for (const Part *p = c->natural; p; p = p->next)
            if (p->which == which) sum = ex_add2(sum, total_of_part(g, c, p));
        if (n->decl) {
            for (int k = c->var->rank - 1; k >= c->nbatch && c->array && n->decl->type.rank; k--)
                sum = ex_array(c->element[k], c->var->dim[k], sum);
        }
        names_add(g, &names, n->name, sum);
        if (!f->law) {
            Expr *s = elaborate_rule(g, n->statistic, 1, (Decl *[]){f->value}, (Expr *[]){c->current});
            Expr *term = ex_mul2(sum, s);
            add_line(g, d, arena_printf(g->arena, "log density += %s", shown(g, term)), statement_adds(NULL, term, &(Loops){0}, NULL));
        }
    }
    if (!f->law) {
        describe_law(g, d, element, arena_printf(g->arena, "~ %s%s", c->truncated ? "truncated " : "", f->name));
        d->drawn = (DrawnFrom){.of = c->current, .dist = f->name, .truncated = c->truncated};
        if (c->truncated) bounds(g, d, c);
        return;
    }
    if (f->power) names_add(g, &names, f->power, ex_num(c->power));
    for (int i = 0; i < c->nbase; i++) names_add(g, &names, f->base->kid[i]->name, c->base_args[i]);
    names_add(g, &names, intern("x"), c->array ? ex_ref(c->var, c->nbatch, c->current->args) : c->current);
    const char *args = "";
    for (int i = 0; i < f->law->nargs; i++)
        args = arena_printf(g->arena, "%s%s%s", args, i ? ", " : "", argument_of(g, f->law, f->law->args[i]));
    if (f->power && c->power != 1) element = arena_printf(g->arena, "%s^%g", element, c->power);
    describe_law(
        g, d, element,
        arena_printf(g->arena, "~ %s(%s)%s", f->law->dist, args, c->truncated && f->support != SUPPORT_INTERVAL ? ", truncated" : ""));
    Names by_name = {0};
    law_parameters(g, d, c, &names, &by_name);
    d->drawn = (DrawnFrom){.of = c->array ? ex_ref(c->var, c->nbatch, c->current->args) : ex_pow(c->current, f->power ? c->power : 1),
                           .dist = f->law->dist,
                           .nargs = f->law->nargs,
                           .args = NEW_N(g->arena, Expr *, f->law->nargs + 1),
                           .truncated = c->truncated && f->support != SUPPORT_INTERVAL};
    for (int i = 0; i < f->law->nargs; i++) {
        const Env *env = names_bind(g, NULL, f->law->args[i], &by_name);
        d->drawn.args[i] = elaborate_whole(g, f->law->args[i], env);
    }
    if (f->power && c->power != 1) change_of_variable(g, d, c);
    if (c->truncated) bounds(g, d, c);
}
