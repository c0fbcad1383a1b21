// describe.c -- an update in words and formulas, in the parameters of a textbook.
//
//   before   sigma: power_gamma, natural { a: -N - 2, b: -1/nu - 1/2*sum(i in 1:N, (y[i] - mu)^2) }, exponent -2
//   after    sigma^-2 ~ gamma(shape, rate)     shape = 1/2 + 1/2*N     rate = 1/nu + 1/2*sum(i in 1:N, (y[i] - mu)^2)
//
// Needs: the schedule.     Gives: lines for --explain and --emit=schedule, for the banner of an emitted program and for the comments above
// its kernels. Keeps: the graph, untouched. The textbook name of a family is its `law` in the stdlib.
#include <ctype.h>
#include <math.h>
#include <string.h>
#include "describe.h"
#include "../conditional.h"
#include "../update.h"
#include "../terms/plates.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/elaborate.h"
#include "../model/law.h"
#include "../algebra/block_terms.h"
#include "../algebra/band.h"
#include "../algebra/few_rows.h"
#include "../algebra/innovations.h"
#include "../algebra/pairs.h"
#include "../rewrite/joined.h"
#include "../updates/collapsed.h"
#include "../updates/categories.h"
#include "../updates/whiten.h"
#include "../updates/scales.h"
#include "../updates/conjugates.h"
#include "select.h"
#include "show.h"
#include "data_requirements.h"

static const char *text(const Graph *g, const Expr *e) { return ex_text(g->arena, e); }

// Beside `over` these loops: sums within the expression have other indices.
static const char *text_over(const Graph *g, const Expr *e, const Loops *l)
{
    ex_reserve_over(l->n, l->index);
    const char *t = text(g, e);
    ex_reserve_over(0, NULL);
    return t;
}

// An expression that prints as this text.
static Expr *named(Graph *g, const char *name)
{
    Var *v = NEW(g->arena, Var);
    *v = (Var){.name = name, .kind = VAR_PATTERN, .base = BASE_REAL, .lower_number = -INFINITY, .upper_number = INFINITY};
    return ex_ref(v, 0, NULL);
}

static bool mentions_any(const Expr *e, const Loops *l)
{
    for (int i = 0; i < l->n; i++)
        if (ex_mentions_index(e, l->index[i])) return true;
    return false;
}

static Expr *summed(Graph *g, const char *name, const Loops *l, Expr *value)
{
    Expr *e = named(g, name);
    e->var->spelled = arena_copy(g->arena, &(Spelled){*l, value}, sizeof(Spelled));
    return e;
}

Expr *total_of_part(Graph *g, const Conditional *c, const Part *p)
{
    Loops l = p->loops;
    Expr *value = ex_tidy(p->value);
    Expr *target[MAX_RANK];
    memcpy(target, p->target, sizeof target);
    for (int k = 0; p->scatter && k < c->var->rank && target[k]; k++) {
        Expr *t = target[k], *key = ex_index(c->element[k]);
        int at = -1;
        for (int i = 0; i < l.n; i++)
            if (t == ex_index(l.index[i]) && ex_is_num(l.index[i]->lo, 1) && l.index[i]->hi == c->var->dim[k]) at = i;
        for (int i = 0; i < l.n && at >= 0; i++)
            if (ex_mentions_index(l.index[i]->hi, l.index[at]) || ex_mentions_index(l.index[i]->lo, l.index[at])) at = -1;
        if (at < 0) {
            Expr *same = ex_call2("==", t, key);
            l.guard = l.guard ? ex_call2("&&", l.guard, same) : same;
            continue;
        }
        value = ex_replace(value, t, key);
        if (l.guard) l.guard = ex_replace(l.guard, t, key);
        for (int m = k + 1; m < c->var->rank && target[m]; m++) target[m] = ex_replace(target[m], t, key);  // of a diagonal
        memmove(l.index + at, l.index + at + 1, sizeof *l.index * (size_t)(l.n - 1 - at));
        l.n--;
    }
    if (l.n == 0 && !l.guard) return value;
    bool box = !l.guard && !mentions_any(value, &l);
    for (int i = 0; i < l.n && box; i++) box = ex_is_num(l.index[i]->lo, 1) && !mentions_any(l.index[i]->hi, &l);
    if (box) {
        for (int i = 0; i < l.n; i++) value = ex_mul2(value, l.index[i]->hi);
        return value;
    }
    double number = 1;  // written before the sum
    if (value->kind == EX_MUL && value->args[0]->kind == EX_NUM) number = value->args[0]->number;
    if (value->kind == EX_NUM && value->number < 0) number = value->number;
    value = ex_mul2(ex_num(1 / number), value);
    const char *name = l.n == 0 ? arena_printf(g->arena, "(%s where %s)", text(g, value), text(g, l.guard))
                                : arena_printf(g->arena, "sum(%s, %s)", loops_text(g, &l), text_over(g, value, &l));
    return ex_mul2(ex_num(number), summed(g, name, &l, value));
}

static const char *source_text(Graph *g, const Ast *e)
{
    return e->span.source ? arena_printf(g->arena, "%.*s", e->span.to - e->span.from, e->span.source->text + e->span.from) : "";
}

static void line(Graph *g, Description *d, const char *t, Statement as)
{
    ROOM(g->arena, d->line, d->n, d->lines_size);
    ROOM(g->arena, d->statement, d->n, d->statements_size);
    d->statement[d->n] = as;
    d->line[d->n++] = t;
}

// Of a log density: it grows by this.
static Statement adds(const char *words, Expr *value, const Loops *over, const Factor *f)
{
    return (Statement){.words = words, .name = "log density", .relation = "+=", .right = value, .over = *over, .factor = f};
}

static Statement is(const char *name, Expr *value) { return (Statement){.name = name, .relation = "=", .right = value}; }

static Statement becomes_so(const char *words, Expr *left, Expr *value)
{
    return (Statement){.words = words, .nleft = 1, .left = {left}, .relation = "=", .right = value};
}

static Statement words_alone(const char *words) { return (Statement){.words = words}; }

// ---- names of indices ----

static bool names_variable(const Graph *g, const char *name)
{
    for (int i = 0; i < g->nvars; i++)
        if (strcmp(g->vars[i]->name, name) == 0) return true;
    return false;
}

static bool names_loop(const Loops *l, int before, const char *name)
{
    for (int i = 0; i < before; i++)
        if (strcmp(l->index[i]->name, name) == 0) return true;
    return false;
}

// A name that neither a variable of the model nor another of the loops has.
static const char *free_name(const Graph *g, const Loops *l)
{
    static const char *const letters[] = {"j", "k", "l", "m", "n"};
    for (int round = 1;; round++)
        for (size_t i = 0; i < sizeof letters / sizeof *letters; i++) {
            const char *name = intern(round == 1 ? letters[i] : arena_printf(g->arena, "%s%d", letters[i], round));
            if (!names_loop(l, l->n, name) && !names_variable(g, name)) return name;
        }
}

// One index never names two things: loops whose names others have, or a variable, get names of their own, in the expressions as well.
static void name_apart(const Graph *g, Loops *l, Expr **e[], int n)
{
    for (int i = 0; i < l->n; i++) {
        Index *const old = l->index[i];
        if (!names_loop(l, i, old->name) && !names_variable(g, old->name)) continue;
        Expr *const by = ex_index(l->index[i] = index_new(free_name(g, l), old->lo, old->hi));
        for (int k = 0; k < n; k++)
            if (*e[k]) *e[k] = ex_replace_index(*e[k], old, by);
        for (int k = i + 1; k < l->n; k++) {
            Index *const later = l->index[k];
            if (!ex_mentions_index(later->lo, old) && !ex_mentions_index(later->hi, old)) continue;
            l->index[k] = index_new(later->name, ex_replace_index(later->lo, old, by), ex_replace_index(later->hi, old, by));
            for (int q = 0; q < n; q++)
                if (*e[q]) *e[q] = ex_replace_index(*e[q], later, ex_index(l->index[k]));
            if (l->guard) l->guard = ex_replace_index(l->guard, later, ex_index(l->index[k]));
        }
        if (l->guard) l->guard = ex_replace_index(l->guard, old, by);
    }
}

// Behind a term: the loops that it is summed over.
static const char *over_text(Graph *g, const Loops *l)
{
    return arena_printf(g->arena, "%s%s", l->n ? "   over " : l->guard ? "   " : "", loops_text(g, l));
}

static Loops plates_of(const Factor *f)
{
    Loops l = {.guard = f->plates.guard};
    for (int k = 0; k < f->plates.n; k++) l.index[l.n++] = f->plates.index[k];
    return l;
}

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
            const char *b = text(g, p->value);
            Expr *value = p->value;
            if (l.n) b = arena_printf(g->arena, "%s(%s, %s)", side ? "min" : "max", loops_text(g, &l), b);
            else if (l.guard) b = arena_printf(g->arena, "(%s where %s)", b, text(g, l.guard));
            if (l.n || l.guard) value = summed(g, b, &l, value);
            t = t ? arena_printf(g->arena, "%s, %s", t, b) : b;
            end = end ? ex_call2(side ? "min" : "max", end, value) : value;
            n++;
        }
        if (n > 1) t = arena_printf(g->arena, "%s(%s)", side ? "min" : "max", t);
        // the law is of its power
        if (t && c->family->power && c->power != 1)
            line(g, d, arena_printf(g->arena, "%s %s %s", text(g, c->current), side ? "<=" : ">=", t),
                 (Statement){.nleft = 1, .left = {c->current}, .relation = side ? "<=" : ">=", .right = end});
        else if (t) line(g, d, arena_printf(g->arena, "%s = %s", side ? "upper" : "lower", t), is(side ? "upper" : "lower", end));
    }
}

static void says(Graph *g, Description *d, const char *what, const char *is)
{
    d->what = what;
    d->is = d->brief = is;
    d->law = arena_printf(g->arena, "%s%s%s", what, *is == ':' ? "" : " ", is);
}

static const char *element_name(Graph *g, const Conditional *c)
{
    return c->array ? text(g, ex_ref(c->var, c->nbatch, c->current->args)) : text(g, c->current);
}

// Draws all elements along a chain of discrete unknowns together.
static bool along_chain(const Update *s)
{
    return s->kind == UPDATE_ENUM && !s->imputes &&
           (s->enumerate.at_once || (s->enumerate.by_messages && s->conditional->nbatch < s->conditional->var->rank));
}

// Chains that share a factor with that of s, and are given when it is drawn; NULL: none.
static const char *chains_beside(Graph *g, const Update *s)
{
    const char *names = NULL;
    const Var *v = s->block[0], *last = NULL;
    for (const Update *t = g->updates; t && along_chain(s); t = t->next) {
        const Var *w = t->block[0];
        if (w == v || w == last || !along_chain(t) || (t->joined && t->joined == s->joined && (s->nblock > 1 || t->nblock > 1)) ||
            (s->when == ON_CPU && t->when == ON_GPU) || (s->when == ON_GPU && t->when == ON_CPU))
            continue;
        bool both = false;
        for (const Factor *f = g->factors; f && !both; f = f->next)
            both = factor_counts(f, v, s->collapsed) && factor_mentions(f, v) && factor_mentions(f, w);
        if (!both) continue;
        last = w;  // a CPU and a GPU may have updates of their own for it
        names = names ? arena_printf(g->arena, "%s, %s", names, w->name) : w->name;
    }
    return names;
}

// The first of these names that the model does not have.
static const char *free_letter(const Graph *g, const char *const *letters)
{
    while (letters[1] && names_variable(g, *letters)) letters++;
    return *letters;
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
            if (i < nargs && strcmp(d->params[i]->name, word) == 0) word = text(g, args[i]);
        all = arena_printf(g->arena, "%s%s", all, word);
        from += n ? n : 1;
    }
    return all;
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
    Expr *x = named(g, free_letter(g, letters));
    x->var->lower_number = 0;
    Expr *density =
             ex_tidy(terms_with(elaborate(g, of->log_density, bind_arguments(g, of, of->nparams, d->drawn.args, x), 0, NULL), x->var)),
         *slope = ex_mul2(ex_num(1 / c->power - 1), ex_log(x));
    const char *v = text(g, c->current), *name = x->var->name;
    d->changed = (struct ChangedVariable){.of = c->current, .x = x, .power = c->power, .density = density};
    d->changed.line =
        arena_printf(g->arena, "with %s = %s^%g: log p(%s) = log p(%s) %s %s, by |d %s/d%s|, = %s + const", name, v, c->power, name, v,
                     1 / c->power < 1 ? "-" : "+", text(g, 1 / c->power < 1 ? ex_neg(slope) : slope), v, name, text(g, density));
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
        Statement as = is(own, ex_tidy(value));
        for (int k = 0; k < rank; k++) as.left[as.nleft++] = ex_index(c->element[c->nbatch + k]);
        line(g, d, arena_printf(g->arena, "%s = %s", left, text(g, as.right)), as);
        // of several terms: by its name from here on
        names_add(g, names, n->name, value->kind == EX_ADD || rank ? named(g, own) : value);
        names_add(g, by_name, n->name, named(g, own));
    }
}

// sigma^-2 ~ gamma(shape, rate), with shape and rate from the natural parameters.
static void exact(Graph *g, Description *d, const Conditional *c)
{
    const Distribution *f = c->family;
    const char *element = element_name(g, c);
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
            line(g, d, arena_printf(g->arena, "log density += %s", text(g, term)), adds(NULL, term, &(Loops){0}, NULL));
        }
    }
    if (!f->law) {
        says(g, d, element, arena_printf(g->arena, "~ %s%s", c->truncated ? "truncated " : "", f->name));
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
    says(g, d, element,
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
        line(g, d, arena_printf(g->arena, "%s = %s", text(g, left), text(g, value)), becomes_so(NULL, left, value));
    }
}

// A log density, or the weight of a value: a line for each part.
static void density(Graph *g, Description *d, const Update *s)
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
        line(g, d,
             arena_printf(g->arena, "log density += %s%s%s", text_over(g, value, &l),
                          l.n       ? "   over "
                          : l.guard ? "   "
                                    : "",
                          over),
             adds(NULL, value, &l, p->factor));
    }
}

// What is summed out of the law of a parent in a tree, in words.
static const char *children_of(Graph *g, Var *v)
{
    Var **list = NEW_N(g->arena, Var *, g->nvars + 1);
    const int n = summed_out_of(g, &v, 1, v->summing.sums, list);
    const char *names = n ? list[0]->name : NULL;
    for (int i = 1; i < n; i++) names = arena_printf(g->arena, i == n - 1 ? "%s and %s" : "%s, %s", names, list[i]->name);
    return names;
}

// Several unknowns by the product of their values.
static void joined(Graph *g, Description *d, const Update *s)
{
    const Joined *j = s->joined;
    const char *names = s->block[0]->name, *elements = text(g, ex_ref(j->var[0], j->product->rank, s->conditional->current->args));
    const bool chain = s->conditional->before, apart = j->nlinks > 1;
    for (int i = 1; i < s->nblock; i++) {
        names = arena_printf(g->arena, "%s%s%s", names, i + 1 < s->nblock ? ", " : " and ", s->block[i]->name);
        elements = arena_printf(g->arena, "%s, %s", elements, text(g, ex_ref(j->var[i], j->product->rank, s->conditional->current->args)));
    }
    d->method =
        chain ? arena_printf(g->arena,
                             "all elements of %s together, as one chain of the combinations of their values: %s products of two "
                             "numbers an element%s, against %s for one after the other; on a GPU parallel in time",
                             names, text(g, apart ? j->products : ex_pow(j->values, 2)),
                             apart ? ", sums over one after the other (Ghahramani and Jordan 1997)" : "", text(g, j->in_turn))
              : arena_printf(g->arena,
                             "%s jointly: every combination of their values is weighed, %s an element, against %s for one after the other",
                             names, text(g, j->values), text(g, j->in_turn));
    if (j->where)
        d->method =
            arena_printf(g->arena, "%s. This is done where %s, on a GPU where %s; elsewhere they are drawn one after the other, below",
                         d->method, text(g, j->where), text(g, j->on_gpu));
    d->elements = chain ? "together" : "independent elements in parallel";
    d->because = s->reason;
    says(g, d, arena_printf(g->arena, "(%s)", elements),
         chain ? ": every combination of values weighed by its density, the whole chain together"
               : ": every combination of values weighed by its density");
    d->law = arena_printf(g->arena, "P(%s = v) is proportional to its density at v, for all combinations v", elements);
    density(g, d, s);
}

// Whether a term of two elements of one array meets each pair twice, as (j, k) and as (k, j), with the same coefficient.
static bool meets_twice(const BlockTerm *t)
{
    const Expr *a = t->ref[0], *b = t->ref[1];
    int at = -1, differ = 0;
    for (int k = 0; a->var == b->var && k < a->nargs; k++)
        if (a->args[k] != b->args[k]) {
            at = k;
            differ++;
        }
    if (differ != 1 || a->args[at]->kind != EX_INDEX || b->args[at]->kind != EX_INDEX || t->loops.guard) return false;
    Index *j = a->args[at]->index, *k = b->args[at]->index;
    if (j->lo != k->lo || j->hi != k->hi) return false;
    Expr *other = ex_index(index_new(j->name, j->lo, j->hi)),
         *e = ex_replace_index(ex_replace_index(t->coefficient, j, other), k, ex_index(j));
    return ex_replace(e, other, ex_index(k)) == t->coefficient;
}

static int innovation_count(const Update *s)
{
    int n;
    innovation_vars(s->gaussian.innovations, &n);
    return n;
}

static const char *band_elements(Graph *g, const Update *s)
{
    const Band *b = s->gaussian.band;
    const char *size = ex_is_num(b->width, 1) ? "" : arena_printf(g->arena, ", %s elements at each", text(g, b->width));
    const char *panels = b->chain[0].npanel ? arena_printf(g->arena, "; a chain for each of %s", text(g, b->panels)) : "";
    const int nborder = s->nblock - (s->gaussian.innovations ? innovation_count(s) : b->nchain);
    const char *border = nborder ? arena_printf(g->arena, "; %s integrated over the chain, then the chain given %s",
                                                nborder > 1 ? "the others" : b->var[b->nchain]->name, nborder > 1 ? "them" : "it")
                                 : "";
    const char *lanes = ex_is_num(b->width, 1) && b->lag == 1 ? "" : "; on a GPU one lane for each chain";
    return arena_printf(g->arena, "a band along %s places%s, lag %d: one Cholesky factorisation of the band (Rue 2001)%s%s%s",
                        text(g, b->length), size, b->lag, panels, border, lanes);
}

// A line for an entry of the precision, or of the shift.
static void term_line(Graph *g, Description *d, const BlockTerm *t)
{
    const char *tail = t->loops.n ? "   over " : t->loops.guard ? "   " : "";
    const bool square = t->degree == 2;
    const double times = !square ? 1 : t->ref[0] == t->ref[1] || meets_twice(t) ? -2 : -1;
    Statement as = {.name = square ? d->J : d->h,
                    .nleft = t->degree,
                    .left = {t->ref[0], t->ref[1]},
                    .relation = "+=",
                    .over = t->loops,
                    .factor = t->factor};
    as.right = ex_tidy(ex_mul2(ex_num(times), t->coefficient));
    name_apart(g, &as.over, (Expr * *[]){&as.left[0], &as.left[1], &as.right}, 3);
    const char *over = loops_text(g, &as.over);
    if (square)
        line(g, d,
             arena_printf(g->arena, "%s[%s, %s] += %s%s%s", d->J, text(g, as.left[0]), text(g, as.left[1]),
                          text_over(g, as.right, &as.over), tail, over),
             as);
    else
        line(g, d, arena_printf(g->arena, "%s[%s] += %s%s%s", d->h, text(g, as.left[0]), text_over(g, as.right, &as.over), tail, over), as);
}

// How it is drawn: the first sentence, from the form of the precision.
static const char *block_elements(Graph *g, const Update *s)
{
    const char *last = s->block[s->nblock - 1]->name;
    if (s->gaussian.sparse && s->gaussian.listed)
        return "from rows of few entries, on a CPU: by a factor of the sparse precision (CHOLMOD), by conjugate gradients "
               "(Nishimura and Suchard 2022) or dense, whichever is predicted to take the least time (--profile prints that). "
               "The updates below replace it on a GPU, and where few rows take less";
    if (s->gaussian.sparse)
        return arena_printf(
            g->arena,
            "one Cholesky factorisation of a sparse precision, by CHOLMOD in an order that keeps it sparse, or dense where that is less "
            "work; on a CPU (Rue 2001). The updates below replace it on a GPU, and where data make it more than %d times their work",
            s->gaussian.most_work);
    if (s->gaussian.band) return band_elements(g, s);
    if (s->gaussian.arrow)
        return arena_printf(g->arena,
                            "an arrow-shaped precision: the elements of %s are independent given the others; %s is integrated out, "
                            "the others are drawn by Cholesky, then %s in parallel",
                            last, last, last);
    return s->gaussian.nbatch ? "one Cholesky for each element of the leading dimensions, in parallel"
                              : "one Cholesky factorisation, no inverse";
}

// Conditioned on a sum that is 0.
static void plane_line(Graph *g, Description *d, const Update *s)
{
    d->brief = "~ joint normal, their sum 0";
    const char *x = d->x, *J = d->J,
               *plane =
                   arena_printf(g->arena, "conditioned on the sum 0: %s - %s^-1 1 (1'%s^-1 1)^-1 1'%s  (Rue and Held 2005)", x, J, J, x);
    line(g, d, plane, words_alone(plane));
    d->elements = arena_printf(g->arena,
                               s->gaussian.diagonal ? "each element, then the correction that makes their sum 0%s"
                                                    : "one Cholesky factorisation%s, no inverse",
                               s->gaussian.nbatch ? "; for each element of the leading dimensions, in parallel" : "");
}

// What is drawn otherwise where rows are few.
static void rows_line(Graph *g, Description *d, const Update *s)
{
    if (s->gaussian.rows)
        d->elements = "one Cholesky factorisation, no inverse; with fewer rows than coefficients a system of rows by rows (Bhattacharya, "
                      "Chakraborty and Mallick 2016)";
    if (s->gaussian.rows && s->gaussian.rows->listed)
        d->elements = arena_printf(g->arena,
                                   "%s; on a CPU, where that is predicted to take less time (--profile prints it), from rows as they are: "
                                   "conjugate gradients (Nishimura and Suchard 2022), or a sparse factor",
                                   d->elements);
    else if (!s->gaussian.arrow && !s->gaussian.sparse && s->gaussian.no_rows)
        d->elements = arena_printf(g->arena, "%s, however few the rows: %s", d->elements, s->gaussian.no_rows);
}

static void block(Graph *g, Description *d, const Update *s)
{
    static const char *const precision[] = {"J", "Q", "Prec", NULL}, *const shift[] = {"h", "r", "shift", NULL},
                             *const vector[] = {"v", "b", "block", NULL};
    d->J = free_letter(g, precision);
    d->h = free_letter(g, shift);
    d->x = free_letter(g, vector);
    const char *normal = arena_printf(g->arena, "~ normal with precision %s and shift %s, mean %s^-1 %s", d->J, d->h, d->J, d->h);
    const char *drawn = s->gaussian.innovations ? s->gaussian.band->var[0]->name : NULL;
    for (int i = 1; drawn && i < s->nblock - innovation_count(s) + 1; i++)
        drawn = arena_printf(g->arena, "%s, %s", drawn, s->gaussian.band->var[i]->name);
    says(g, d, s->nblock > 1 ? arena_printf(g->arena, "(%s)", d->subject) : d->subject,
         drawn ? arena_printf(g->arena, "through (%s) %s", drawn, normal) : normal);
    d->brief = "~ joint normal";
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next) term_line(g, d, t);
    Loops loops;
    Expr *ref, *value;
    for (int k = 0; s->gaussian.innovations && innovation_at(s->gaussian.innovations, k, &loops, &ref, &value); k++) {
        Statement as = becomes_so(NULL, ref, ex_tidy(value));
        as.over = loops;
        line(g, d,
             arena_printf(g->arena, "%s = %s%s%s", text(g, ref), text_over(g, as.right, &loops), loops.n ? "   over " : "",
                          loops_text(g, &loops)),
             as);
    }
    d->elements = block_elements(g, s);
    if (s->gaussian.on_plane) plane_line(g, d, s);
    rows_line(g, d, s);
}

// A slice given the white noise of a vector.
static void white(Graph *g, Description *d, const Update *s)
{
    const White *w = s->slice.white;
    d->subject = arena_printf(g->arena, "%s, with %s", d->subject, w->vector->name);
    line(g, d,
         arena_printf(g->arena,
                      w->precision ? "with %s = %s + inverse(root') * noise, root = %s" : "with %s = %s + root * noise, root = %s",
                      text(g, w->current), text(g, w->mean), text(g, w->root)),
         (Statement){.words = w->precision ? "with the mean and the root of the precision" : "with the mean and the root of the covariance",
                     .nleft = 1,
                     .left = {w->mean},
                     .relation = "and",
                     .right = w->root});
    d->method = arena_printf(g->arena, "%s, given the noise that %s is made of in place of %s (Yu and Meng 2011)", d->method,
                             w->vector->name, w->vector->name);
}

// A power of c: a sum of numbers times numbers of elements. These are text, since terms that are made here would change the order of
// sums that are made later.
typedef struct Power {
    int n;
    struct {
        double times;
        const char *of;  // "": 1
    } term[24];
    bool failed;
} Power;

static void power_add(Power *p, double times, const char *of)
{
    int i = 0;
    while (i < p->n && strcmp(p->term[i].of, of) != 0) i++;
    p->failed |= i == (int)(sizeof p->term / sizeof *p->term);
    if (p->failed) return;
    if (i == p->n) {
        p->term[p->n].times = 0;
        p->term[p->n++].of = of;
    }
    p->term[i].times += times;
}

static void power_add_expr(const Graph *g, Power *p, double times, const Expr *e)
{
    if (e->kind == EX_NUM) power_add(p, times * e->number, "");
    else if (e->kind == EX_ADD)
        for (int i = 0; i < e->nargs; i++) power_add_expr(g, p, times, e->args[i]);
    else if (e->kind == EX_MUL && e->nargs == 2 && e->args[0]->kind == EX_NUM)
        power_add(p, times * e->args[0]->number, text(g, e->args[1]));
    else power_add(p, times, text(g, e));
}

static void power_add_all(Power *p, double times, const Power *other)
{
    for (int i = 0; i < other->n; i++) power_add(p, times * other->term[i].times, other->term[i].of);
}

static bool is_no_power(const Power *p)
{
    for (int i = 0; i < p->n; i++)
        if (p->term[i].times != 0) return false;
    return true;
}

static const char *power_text(const Graph *g, const char *c, const Power *p)
{
    const char *all = "";
    int n = 0;
    bool plain = false;
    for (int pass = 0; pass < 2; pass++)  // what is added before what is subtracted
        for (int i = 0; i < p->n; i++) {
            const double t = p->term[i].times, size = fabs(t);
            if (t == 0 || (t < 0) != (pass == 1)) continue;
            const bool one = size == 1 && *p->term[i].of;
            all = arena_printf(g->arena, "%s%s%s%s%s", all,
                               n       ? t < 0 ? " - " : " + "
                               : t < 0 ? "-"
                                       : "",
                               one ? "" : arena_printf(g->arena, "%.15g", size), *p->term[i].of && !one ? "*" : "", p->term[i].of);
            plain = n++ == 0 && (one || !*p->term[i].of) && !strpbrk(p->term[i].of, " *");
        }
    if (n == 1 && strcmp(all, "1") == 0) return c;
    return arena_printf(g->arena, n == 0 ? "%s^0" : plain ? "%s^%s" : "%s^(%s)", c, all);
}

// How many elements of it change.
static void add_elements(const Graph *g, Power *p, const Carried *m)
{
    const Expr *const *dim = (const Expr *const *)m->var->dim;
    const char *n = "";
    double number = 1;
    for (int k = 0; k < m->var->rank && !m->triangle; k++) {
        if (dim[k]->kind == EX_NUM) number *= dim[k]->number;
        else n = arena_printf(g->arena, dim[k]->kind == EX_ADD ? "%s%s(%s)" : "%s%s%s", n, *n ? "*" : "", text(g, dim[k]));
    }
    if (m->triangle && dim[0]->kind == EX_NUM) number = dim[0]->number * (dim[0]->number + 1) / 2;
    else if (m->triangle) n = arena_printf(g->arena, "%s*(%s + 1)/2", text(g, dim[0]), text(g, dim[0]));
    if (!m->triangle && m->var->rank == 1) power_add_expr(g, p, m->power, dim[0]);
    else power_add(p, m->power * number, n);
    if (m->fixed) power_add(p, -m->power, "");
}

// Whether one number multiplies all elements of what changes, so that their number is known.
static bool is_countable(const GroupMove *o)
{
    for (int i = 0; i < o->n; i++) {
        const Carried *m = &o->moved[i];
        if (m->where || m->log_jacobian || m->var->exists || (m->plates && m->plates->guard)) return false;
    }
    return !o->by->rank;
}

// The power of c that its law has, by a family.
static Power power_in_law(Graph *g, const Conditional *c)
{
    Power power = {0};
    for (const Part *p = c->natural; p; p = p->next)
        if (p->which < MAX_NATURAL && c->statistic[p->which] && c->statistic[p->which]->kind == EX_CALL &&
            c->statistic[p->which]->fn == FN_log)
            power_add_expr(g, &power, 1, total_of_part(g, c, p));
    return power;
}

// Why the law of c has the powers of c that it has: those of the Jacobian, of the Haar measure and of the densities.
static const char *measure_of(Graph *g, const Update *s)
{
    static const char *const letters[] = {"c", "a", "g", "k", "factor", NULL};
    const GroupMove *o = s->group_move;
    if (o->added || o->by->discrete || !s->conditional) return NULL;
    const char *c = free_letter(g, letters), *by = text(g, s->conditional->current), *each = "",
               *end = "both are in its density", *before = "";
    const bool family = s->kind == UPDATE_EXACT && !s->conditional->array, countable = is_countable(o);
    Power jacobian = {0}, left = {0};
    if (family) left = power_in_law(g, s->conditional);
    for (int i = 0; i < o->n; i++) {
        const Carried *m = &o->moved[i];
        Power power = {0};
        if (m->log_jacobian) return NULL;
        if (countable) add_elements(g, &power, m);
        else power_add(&power, m->power, "");
        power_add_all(&jacobian, 1, &power);
        each = arena_printf(g->arena, "%s%s%s%s %s", each, i ? ", " : "", !countable && m->var->rank ? "each " : "", m->var->name,
                            power_text(g, c, &power));
    }
    Power densities = {0};
    power_add_all(&densities, 1, &left);
    power_add_all(&densities, -1, &jacobian);
    power_add(&densities, 1, "");  // the Haar measure has -1
    const char *gives = "none is left";
    if (!is_no_power(&left)) gives = arena_printf(g->arena, "%s is left", power_text(g, c, &left));
    if (family && countable) end = gives;
    else if (family) end = arena_printf(g->arena, "with those of the densities, %s", gives);
    const bool all = countable && !densities.failed;
    if (family && all && !is_no_power(&densities))
        before = arena_printf(g->arena, "%s in the moved densities, ", power_text(g, c, &densities));
    const char *sizes = all ? arena_printf(g->arena, "%s the Jacobian (%s)", power_text(g, c, &jacobian), each)
                            : arena_printf(g->arena, "the Jacobian (%s)", each);
    return arena_printf(g->arena, "powers of %s = %s: %s%s, 1/%s from d%s/%s (the Haar measure, which rescaling %s leaves as it is): %s", c,
                        by, before, sizes, c, c, c, c, end);
}

// A group move: the coordinate that is drawn, and what changes with it.
static void group_move(Graph *g, Description *d, const Update *s)
{
    const GroupMove *o = s->group_move;
    const char *subject = "", *becomes = "";
    d->measure = measure_of(g, s);
    for (int i = 0; i < o->n; i++) {
        const Carried *m = &o->moved[i];
        subject = arena_printf(g->arena, "%s%s%s", subject, i ? ", " : "", m->var->name);
        becomes = arena_printf(g->arena, "%s%s%s = %s", becomes, i ? ",  " : "", text(g, m->element), text(g, m->value));
    }
    const char *counts = "", *drawn = "";
    for (int i = 0; i < o->nwindows; i++) {
        counts = arena_printf(g->arena, "%s%s%s", counts, i ? ", " : "", o->window[i].count->name);
        drawn = arena_printf(g->arena, "%s%s from p(%s | %s),  ", drawn, text(g, o->window[i].conditional->current),
                             o->window[i].count->name, o->by->name);
    }
    d->subject = arena_printf(g->arena, o->nwindows ? "%s, a group move with %s summed out" : "%s, a group move", subject, counts);
    Statement *as = NULL;
    for (int i = o->n; i-- > 0;) {
        Statement one = becomes_so(i || *drawn ? NULL : "then", o->moved[i].element, o->moved[i].value);
        one.next = as;
        as = arena_copy(g->arena, &one, sizeof one);
    }
    if (*drawn) {
        Statement first = words_alone(arena_printf(g->arena, "then %s", drawn));
        first.next = as;
        as = arena_copy(g->arena, &first, sizeof first);
    }
    line(g, d, arena_printf(g->arena, "then %s%s", drawn, becomes), as ? *as : words_alone("then"));
    d->method = arena_printf(g->arena, "%s, of a group move of %s (Liu and Sabatti 2000)", d->method, subject);
    if (o->transfer) {
        static const char says[] = "%s: %s (Diaconis and Sturmfels 1998); where it has many values, from some of them in a window";
        const bool table = o->transfer->along & (o->transfer->along - 1);
        d->method = arena_printf(
            g->arena, says, d->method,
            o->transfer->other ? "elements are drawn in each sweep, and an amount goes from one to the other"
            : table            ? "pairs are drawn in each sweep, and each changes by a multiple of +1 -1 -1 +1 in two rows and two columns"
                               : "pairs are drawn in each sweep, and an amount goes from one of a pair to the other");
    }
    if (o->nwindows)
        d->method = arena_printf(g->arena, "%s, %s summed over %s values around the current one and drawn afterwards", d->method, counts,
                                 text(g, o->window[0].value->hi));
    d->because = d->because && d->because != s->reason ? arena_printf(g->arena, "%s; %s", s->reason, d->because) : s->reason;
}

// What is drawn before a joint normal, which is integrated out.
static void scales(Graph *g, Description *d, const Update *s)
{
    const Scales *of = s->gaussian.scales;
    const char *names = "";
    for (int i = 0; of && i < of->n; i++) names = arena_printf(g->arena, "%s%s%s", names, i ? ", " : "", of->var[i]->name);
    if (of)
        d->method = arena_printf(g->arena,
                                 "%s. On a CPU %s %s slice sampled before it, with the joint normal integrated out. Each trial takes a "
                                 "factorisation; where a run measures that this gains little, it is done less often",
                                 d->method, names, of->n > 1 ? "are" : "is");
}

// What is accepted or not.
static void proposal(Graph *g, Description *d, const Update *s)
{
    const Proposal *of = s->gaussian.proposal;
    const Scales *scales = s->gaussian.scales;
    const char *names = "";
    for (int i = scales->n; i-- > 0;) names = arena_printf(g->arena, "%s%s%s", scales->var[i]->name, *names ? ", " : "", names);
    d->subject = arena_printf(g->arena, "%s, %s, proposed together", names, d->subject);
    d->brief = "~ joint normal, a proposal";
    for (int i = 0; i < of->n; i++) {
        const Loops l = plates_of(of->of[i].factor);
        Expr *value = ex_tidy(of->of[i].value);
        line(g, d,
             arena_printf(g->arena, "%s in place of %s%s", text_over(g, value, &l), text_over(g, of->of[i].density, &l), over_text(g, &l)),
             (Statement){.nleft = 1, .left = {value}, .relation = "in place of", .right = of->of[i].density, .over = l});
    }
    d->method = arena_printf(g->arena,
                             "%s; accepted by what the densities have besides the quadratics in their place, whose slopes and bends are "
                             "averages over warm-up (Gamerman 1997; Knorr-Held and Rue 2002)",
                             d->method);
    d->elements = arena_printf(g->arena,
                               "one Cholesky factorisation of a sparse precision, or a dense one where that is less work; on a CPU, unless "
                               "data make it more than %d times the work of going through its terms",
                               s->gaussian.most_work);
}

// ---- an update of each kind ----

static Description describe(Graph *g, const Update *s);

static void describe_exact(Graph *g, Description *d, const Update *s)
{
    const Conditional *c = s->conditional;
    const Law *law = c->family->law;
    d->method = arena_printf(g->arena, "exact draw: %s%s", c->truncated ? "truncated " : "", law ? law->dist : c->family->name);
    if (c->family->power && c->power != 1 && !c->array) d->method = arena_printf(g->arena, "%s, of its power %g", d->method, c->power);
    d->because = NULL;
    exact(g, d, c);
}

static void describe_own(Graph *g, Description *d, const Update *s)
{
    const Conditional *c = s->conditional;
    const Factor *f = c->own->factor;
    d->method = arena_printf(g->arena, "exact draw from its own distribution, %s%s: nothing else depends on it", f->dist->name,
                             f->truncated ? " between its ends" : "");
    d->because = c->because;
    const char *args = "";
    for (int i = 0; i < f->nargs; i++) args = arena_printf(g->arena, "%s%s%s", args, i ? ", " : "", text(g, f->args[i]));
    const char *ends = "";
    if (f->truncated)
        ends = arena_printf(g->arena, ", from %s to %s", f->lower ? text(g, f->lower) : "-inf", f->upper ? text(g, f->upper) : "inf");
    says(g, d, text(g, f->value), arena_printf(g->arena, "~ %s(%s)%s", f->dist->name, args, ends));
    d->drawn = (DrawnFrom){.of = f->value, .dist = f->dist->name, .nargs = f->nargs, .args = f->args, .truncated = f->truncated};
}

static void describe_values(Graph *g, Description *d, const Update *s)
{
    const Conditional *c = s->conditional;
    if (s->nblock > 1) {
        joined(g, d, s);
        return;
    }
    d->method =
        s->enumerate.at_once
            ? "all elements together, parallel in time: products of matrices, and maps from each element to the next (Hassan, "
              "Sarkka and Garcia-Fernandez 2021)"
        : s->enumerate.by_messages && c->nbatch < c->var->rank
            ? "all elements together (Scott 2002): messages from the last element to the first, then each is drawn given the one before it"
            : "every value is weighed by its density";
    d->because =
        s->when == ON_CPU ? arena_printf(g->arena, "%s; on a CPU", s->reason)
        : s->when == ON_GPU
            ? arena_printf(g->arena, s->enumerate.at_once ? "%s; on a GPU" : "%s; on a GPU, where neighbours are drawn one after the other",
                           c->because)
        : s->enumerate.by_messages ? s->reason
                                   : c->because;
    if (s->enumerate.predictive) {
        d->method = "every value is weighed by its density, weights integrated out: by the counts of all other elements (Liu 1994)";
        d->elements = s->enumerate.group ? arena_printf(g->arena, "one after the other where %s is the same, else in parallel",
                                                        text(g, s->enumerate.group))
                      : c->nbatch        ? d->elements
                                         : "one after the other";
        for (const Predictive *p = s->enumerate.predictive; p; p = p->next) {
            Expr *weight = ex_replace(p->ref, c->u, c->current);
            static const char counts[] = "the prior plus the counts of all others, over its sum";
            line(g, d, arena_printf(g->arena, "in place of %s: %s", text(g, weight), counts),
                 (Statement){.words = "in place of", .nleft = 1, .left = {weight}, .relation = arena_printf(g->arena, ": %s", counts)});
        }
    }
    const char *below = c->var->summing.parent && s->over_sum ? children_of(g, c->var) : NULL;
    if (below)
        d->method = arena_printf(g->arena, "%s, with %s summed out of its law and drawn after it (Zhang and Poole 1994)", d->method, below);
    const char *beside = chains_beside(g, s);
    if (s->joined) d->because = arena_printf(g->arena, "%s; where sizes do not allow a joint draw with others", d->because);
    if (beside)
        d->method = arena_printf(g->arena, "%s. It alternates with %s: each of these chains whole, given the others", d->method, beside);
    says(g, d, element_name(g, c),
         beside  ? arena_printf(g->arena, ": every value weighed by its density; the whole chain, alternating with %s", beside)
         : below ? arena_printf(g->arena, ": every value weighed by its density, %s summed out", below)
                 : ": every value weighed by its density");
    d->law = arena_printf(g->arena, "P(%s = v) is proportional to its density at v, for v in %s:%s", d->what, text(g, s->enumerate.lower),
                          text(g, s->enumerate.upper));
    density(g, d, s);
}

static void describe_pair(Graph *g, Description *d, const Update *s)
{
    const Conditional *c = s->conditional;
    const Pair *p = s->pair;
    const char *b = text(g, p->coefficient->current);
    d->method = arena_printf(g->arena,
                             "exact draw of both: values are weighed with %s integrated out (Geweke 1996), which is normal given each", b);
    says(g, d, arena_printf(g->arena, "(%s, %s)", element_name(g, c), b),
         arena_printf(g->arena, ": %s with %s integrated out, then %s", element_name(g, c), b, b));
    d->brief = ": drawn together";
    for (const Part *q = p->part; q; q = q->next) {
        Expr *value = ex_replace(ex_mul2(q->value, ex_pow(p->coefficient->u, q->which % 3)), p->coefficient->u, p->coefficient->current);
        const char *at = q->which < 3 ? "" : arena_printf(g->arena, " at %d", p->first + q->which / 3 - 1);
        value = ex_tidy(value);
        line(g, d, arena_printf(g->arena, "log density%s += %s%s", at, text_over(g, value, &q->loops), over_text(g, &q->loops)),
             adds(*at ? at + 1 : NULL, value, &q->loops, q->factor));
    }
}

static void describe_by_density(Graph *g, Description *d, const Update *s)
{
    const Conditional *c = s->conditional;
    const bool slice = s->kind == UPDATE_SLICE;
    d->method = slice ? "slice sampling (Neal 2003)"
                      : "random-walk Metropolis, its width adapted in warm-up towards accepting 0.44 (Gelman, Roberts and Gilks 1996)";
    d->because = c->because;
    const char *without = s->without ? arena_printf(g->arena, ", %s integrated out", s->without->plate->block[0]->name) : "";
    says(g, d, element_name(g, c), arena_printf(g->arena, "%s%s", slice ? ": slice sampled" : ": random-walk Metropolis", without));
    d->law = arena_printf(g->arena, "%s has the density below, up to a constant", d->what);
    density(g, d, s);
}

static void describe_elliptical(Graph *g, Description *d, const Update *s)
{
    const Conditional *c = s->conditional;
    d->method =
        "elliptical slice sampling (Murray, Adams and MacKay 2010): the vector is rotated towards a draw from its prior, by an angle "
        "from a slice of the rest of its density";
    d->elements = c->var->rank > 1 ? "each vector whole, one vector after the other" : "together";
    says(g, d, element_name(g, c), ": elliptical slice sampled as a whole");
    d->law = arena_printf(g->arena, "%s has its prior times the density below, up to a constant", d->what);
    density(g, d, s);
}

static void describe_gradients(Graph *g, Description *d, const Update *s)
{
    static const char *const words[] = {
#define METRIC(id, word, what) what,
#include "../../front/methods.def"
    };
    const char *metric = words[s->nuts.metric];
    if (s->nuts.steps) {
        d->method = arena_printf(g->arena,
                                 "Hamiltonian Monte Carlo (Neal 2011): trajectories of %d leapfrog steps, in "
                                 "coordinates without bounds; %s in warm-up",
                                 s->nuts.steps,
                                 arena_printf(g->arena, s->nuts.step > 0 ? "the %s is adapted" : "step size and %s are adapted", metric));
        if (s->nuts.anneal > 1)
            d->method = arena_printf(g->arena, "%s, in the first two thirds of which the temperature falls from %g to 1", d->method,
                                     s->nuts.anneal);
    } else if (s->nuts.chees)
        d->method = arena_printf(g->arena,
                                 "ChEES-HMC (Hoffman, Radul and Sountsov 2021): trajectories in "
                                 "coordinates without bounds, of one length for all chains; length, step size and metric are adapted in "
                                 "warm-up from all of them, the step size towards accepting %g",
                                 s->nuts.accept);
    else
        d->method = arena_printf(g->arena,
                                 "NUTS (Hoffman and Gelman 2014; Betancourt 2017): trajectories in "
                                 "coordinates without bounds; step size and %s are adapted in warm-up, towards accepting %g",
                                 metric, s->nuts.accept);
    says(g, d, s->nblock > 1 ? arena_printf(g->arena, "(%s)", d->subject) : d->subject,
         s->nblock > 1 ? ": drawn jointly by Hamiltonian Monte Carlo" : ": drawn by Hamiltonian Monte Carlo");
    d->law = arena_printf(g->arena, "%s has the density below, up to a constant", d->what);
    for (int i = 0; i < s->nuts.n; i++) {
        const Factor *f = s->nuts.factor[i];
        const Loops l = plates_of(f);
        line(g, d, arena_printf(g->arena, "log density += %s%s", text_over(g, f->log_density, &l), over_text(g, &l)),
             adds(NULL, f->log_density, &l, f));
    }
    d->elements = "together";
}

static void describe_categories(Graph *g, Description *d, const Update *s)
{
    const Categories *t = s->categories;
    const Description inner = describe(g, t->draw);
    t->draw->description = arena_copy(g->arena, &inner, sizeof inner);
    d->method = "joint normal, one category after the other, given Polya-Gamma latents that each category draws anew (Polson, Scott and "
                "Windle 2013)";
    says(g, d, s->nblock > 1 ? arena_printf(g->arena, "(%s)", d->subject) : d->subject, ": joint normals, one category after the other");
    d->law = arena_printf(g->arena, "for %s in %s:%s", t->current->name, text(g, t->lo), text(g, t->hi));
    for (const Softmax *m = t->softmax; m; m = m->next) {
        const Loops l = plates_of(m->factor);
        Expr *at_row = ex_ref(m->latent, m->offset->nargs, m->offset->args), *tilt = ex_sub(m->own, m->offset);
        line(g, d,
             arena_printf(g->arena, "%s ~ polya_gamma(%s, %s)%s", text(g, at_row), text_over(g, m->count, &l), text_over(g, tilt, &l),
                          over_text(g, &l)),
             (Statement){
                 .nleft = 1, .left = {at_row}, .relation = "~", .dist = "polya_gamma", .right = m->count, .right2 = tilt, .over = l});
    }
    for (int i = 0; i < inner.n; i++) line(g, d, inner.line[i], inner.statement[i]);
    if (t->shift) {
        const Description all = describe(g, t->shift);
        t->shift->description = arena_copy(g->arena, &all, sizeof all);
        const char *says =
            arena_printf(g->arena, "then a location move adds %s to all categories (Liu and Sabatti 2000): %s", all.what, t->shift->reason);
        line(g, d, says, words_alone(says));
        for (int i = 0; i < all.n; i++) line(g, d, all.line[i], all.statement[i]);
    }
    d->elements = inner.elements;
}

static void describe_gaussian(Graph *g, Description *d, const Update *s)
{
    d->method = "joint normal";
    block(g, d, s);
    scales(g, d, s);
}

static Description describe(Graph *g, const Update *s)
{
    static void (*const kinds[])(Graph *, Description *, const Update *) = {
#define UPDATE(id, name, describe, lower, what) [UPDATE_##id] = describe_##describe,
#include "../updates.def"
    };
    Description d = {.subject = "", .because = s->reason};
    for (int i = 0; i < s->nblock; i++) d.subject = arena_printf(g->arena, "%s%s%s", d.subject, i ? ", " : "", s->block[i]->name);
    const Conditional *c = s->conditional;
    if (c && c->var->rank)
        d.elements = c->array || c->nbatch == c->var->rank ? "conditionally independent, in parallel" : "coupled, one after the other";
    if (c) ex_reserve(c->var->rank, c->element);
    ex_reserve_variables(g->nvars, g->vars);
    kinds[s->kind](g, &d, s);
    if (s->group_move) group_move(g, &d, s);
    if (proposal_of(s)) proposal(g, &d, s);
    if (white_of(s)) white(g, &d, s);
    ex_reserve(0, NULL);
    ex_reserve_variables(0, NULL);
    return d;
}

// Of an update that does not draw.
static void for_mode(Graph *g, const Update *s, Description *d)
{
    if (s->does == EXPECTS) {
        d->method = s->kind == UPDATE_ENUM ? "expectation: the probability of each value given the parameters"
                                           : "expectation: of the statistics that the parameters depend on, given these";
        d->because = NULL;
        return;
    }
    if (s->kind == UPDATE_EXACT)
        d->method = arena_printf(g->arena, "maximum in closed form: %s%s", s->conditional->truncated ? "truncated " : "",
                                 s->conditional->family->name);
    else if (s->kind == UPDATE_GAUSSIAN) d->method = "maximum in closed form: the mean of the joint normal";
    else {
        d->method = "maximised numerically, one number at a time (golden sections, Brent 1973)";
        d->is = d->brief = ": maximised numerically";
    }
}

bool describe_updates(Graph *g)
{
    for (Update *s = g->updates; s; s = s->next) {
        Description d = describe(g, s);
        if (s->does != DRAWS) for_mode(g, s, &d);
        s->description = arena_copy(g->arena, &d, sizeof d);
    }
    return true;
}

void plan_print(FILE *out, const Graph *g)
{
    schedule_print(out, g);
    requirements_print(out, g);
}
