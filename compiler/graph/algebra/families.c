// families.c -- the family that a conditional belongs to: the smallest one whose statistics include all statistics of its parts.
//
//   before   -(y[i] - u)^2/(2*s^2) over i, -u^2/200
//   after    normal, natural { u: sum(y)/s^2, u^2: -N/(2*s^2) - 1/200 }
//
// Needs: parts in terms of u.     Gives: family, power, natural, bounds; because, if there is none.
#include <math.h>
#include <string.h>
#include "families.h"
#include "../conditional.h"
#include "../model/elaborate.h"
#include "../model/law.h"
#include "polynomial.h"
#include "mentions.h"

// Whether anything but the whole circle bounds it.
static bool bounded_on_circle(const Part *bounds)
{
    for (const Part *b = bounds; b; b = b->next)
        if (b->value->kind != EX_NUM || b->value->number != (b->which ? M_PI : -M_PI)) return true;
    return false;
}

static bool same_support(const Distribution *f, const Var *v, const Part *bounds, bool *truncated)
{
    const bool bounded = f->support == SUPPORT_CIRCLE ? bounded_on_circle(bounds) : bounds != NULL;
    bool lower = isfinite(v->lower_number), upper = isfinite(v->upper_number);
    if (f->support == SUPPORT_REAL) *truncated = lower || upper || bounded;
    else if (f->support == SUPPORT_CIRCLE)
        *truncated = ((lower || upper) && !(v->lower_number == -M_PI && v->upper_number == M_PI)) || bounded;
    else if (f->support == SUPPORT_POSITIVE) {
        if (!(v->lower_number >= 0)) return false;
        *truncated = v->lower_number > 0 || upper || bounded;
    } else if (f->support == SUPPORT_UNIT) {
        if (!(v->lower_number >= 0 && v->upper_number <= 1)) return false;
        *truncated = v->lower_number > 0 || v->upper_number < 1 || bounded;
    } else if (f->support == SUPPORT_INTERVAL) {
        *truncated = true;
        return (lower && upper) || bounded;
    } else return false;
    return !*truncated || f->draw_truncated != NULL;
}

// The statistics of a family with an exponent: `x^k` at k = power.
static Expr *family_statistic(Graph *g, const Distribution *f, const Natural *s, double power, Expr *u)
{
    if (!f->power) return elaborate_rule(g, s->statistic, 1, (Decl *[]){f->value}, (Expr *[]){u});
    const Ast *a = s->statistic;
    if (a->kind == AST_BINARY && a->op == OP_POW) {
        double sign = a->kid[1]->kind == AST_UNARY ? -1 : 1;
        return ex_pow(u, sign * power);
    }
    return elaborate_rule(g, a, 1, (Decl *[]){f->value}, (Expr *[]){u});
}

enum { BASE_MEASURE = 100 };  // in place of a natural parameter: what the family's base measure holds

static bool family_matches(Graph *g, const Distribution *f, double power, Expr *u, const Statistics *s, int *which, Conditional *c)
{
    int count = 0;
    for (const Natural *n = f->natural; n; n = n->next) count++;
    Expr **list = NEW_N(g->arena, Expr *, count + 1);
    count = 0;
    for (const Natural *n = f->natural; n; n = n->next) list[count++] = family_statistic(g, f, n, power, u);
    c->nbase = 0;
    bool based = false;
    for (int i = 0; i < s->n; i++) {
        which[i] = -1;
        for (int k = 0; k < count; k++)
            if (list[k] == s->item[i].statistic) which[i] = k;
        if (which[i] >= 0) continue;
        const Ast *b = f->base;
        Expr *e = s->item[i].statistic;
        if (!b || based || e->kind != EX_CALL || e->name != b->name || e->nargs != b->nkids || e->args[b->nkids - 1] != u ||
            !ex_is_num(s->item[i].coefficient, 1))
            return false;
        c->base_args = NEW_N(g->arena, Expr *, b->nkids);
        for (int k = 0; k + 1 < b->nkids; k++) {
            if (ex_mentions(e->args[k], u->var)) return false;
            c->base_args[c->nbase++] = e->args[k];
        }
        based = true;
        which[i] = BASE_MEASURE;
    }
    return !f->base || based;
}

// Smallest family whose statistics include all that were found. `all` merges the statistics of every part.
static bool recognise(Graph *g, Conditional *c, const Statistics *all)
{
    double powers[2 * MAX_STATISTICS + 1];
    int npowers = 0;
    powers[npowers++] = 1;
    for (int i = 0; i < all->n; i++) {
        Expr *e = all->item[i].statistic;
        if (e->kind == EX_POW && e->args[0] == c->u) {
            powers[npowers++] = e->number;
            powers[npowers++] = -e->number;
        }
    }
    int which[MAX_STATISTICS];
    if (all->many) return false;
    for (int size = 0; size <= MAX_NATURAL; size++)
        for (const Distribution *f = g->stdlib->distributions; f; f = f->next) {
            if (!f->is_family || f->value_rank) continue;
            int count = 0;
            for (const Natural *n = f->natural; n; n = n->next) count++;
            bool truncated;
            if (count != size || !same_support(f, c->var, c->bounds, &truncated)) continue;
            for (int k = 0; k < (f->power ? npowers : 1); k++)
                if (family_matches(g, f, powers[k], c->u, all, which, c)) {
                    c->family = f;
                    c->power = powers[k];
                    c->truncated = truncated;
                    c->nnatural = count;
                    return true;
                }
        }
    c->nbase = 0;
    return false;
}

static void add_bound(Graph *g, Conditional *c, const Part *part, Expr *bound, int which)
{
    if (bound->kind == EX_NUM && isinf(bound->number)) return;
    Part *p = NEW(g->arena, Part);
    *p = *part;
    p->value = bound;
    p->which = which;
    p->next = c->bounds;
    c->bounds = p;
}

// 0 <= e, e affine in u: a bound on u. The sign of the coefficient decides the side, and need not be known before the run.
static bool affine_bound(Graph *g, Conditional *c, const Part *part, Expr *e)
{
    Statistics s = statistics(g->arena, e, c->u);
    if (s.n == 0) return true;
    if (s.n != 1 || s.item[0].statistic != c->u) return false;
    Expr *k = s.item[0].coefficient, *rest = ex_replace(e, c->u, ex_num(0));
    if (ex_mentions(k, c->u->var) || ex_mentions(rest, c->u->var)) return false;
    Expr *end = ex_neg(ex_div(rest, k));
    if (k->kind == EX_NUM) {
        add_bound(g, c, part, end, k->number > 0 ? 0 : 1);
        return true;
    }
    for (int side = 0; side < 2; side++) {
        Expr *here = side ? ex_call2("<", k, ex_num(0)) : ex_call2("<", ex_num(0), k);
        add_bound(g, c, part, ex_call3("if_else", here, end, ex_num(side ? INFINITY : -INFINITY)), side);
    }
    return true;
}

// within(u, lo, hi) and within(x, .., u): bounds on u. Returns the density without them.
static Expr *take_bounds(Graph *g, Conditional *c, const Part *part, bool *ok)
{
    Expr *e = part->value;
    Expr **terms = e->kind == EX_ADD ? e->args : &e;
    int n = e->kind == EX_ADD ? e->nargs : 1;
    Expr *rest = ex_num(0);
    for (int i = 0; i < n; i++) {
        Expr *t = terms[i];
        if (t->kind != EX_CALL || t->fn != FN_WITHIN || !ex_mentions(t, c->u->var)) {
            rest = ex_add2(rest, t);
            continue;
        }
        Expr *x = t->args[0];
        for (int side = 0; side < 2; side++) {
            Expr *b = t->args[1 + side];
            bool inside = x == c->u && !ex_mentions(b, c->u->var), reversed = b == c->u && !ex_mentions(x, c->u->var);
            Expr *bound = inside ? b : x;
            int which = side;
            if (reversed) which = 1 - side;  // u <= x: x bounds u from above
            if (b->kind == EX_CALL && b->fn == FN_if_else && !inside && !ex_mentions(x, c->u->var) && !ex_mentions(b->args[0], c->u->var) &&
                (b->args[1] == c->u || b->args[2] == c->u)) {
                reversed = true;
                which = 1 - side;
                Expr *open = ex_num(which ? INFINITY : -INFINITY);
                bound = b->args[1] == c->u ? ex_call3("if_else", b->args[0], x, open) : ex_call3("if_else", b->args[0], open, x);
            }
            if (!inside && !reversed) {
                if (ex_mentions(b, c->u->var) || ex_mentions(x, c->u->var)) {
                    if (!ex_mentions(b, c->u->var) && b->kind == EX_NUM && isinf(b->number)) continue;
                    const bool choice = b->kind == EX_CALL && b->fn == FN_if_else;  // an end may be infinite
                    if (choice || !affine_bound(g, c, part, side ? ex_sub(b, x) : ex_sub(x, b))) *ok = false;
                }
                continue;
            }
            add_bound(g, c, part, bound, which);
        }
    }
    return rest;
}

// All statistics of the density, each once, bounds taken out of it. Scattered parts are summed before elements are drawn: allowed if
// elements are independent. False: one enters a bound otherwise than alone.
static bool all_statistics(Graph *g, Conditional *c, Statistics *all)
{
    bool ok = true;
    for (Part *p = c->density; p; p = p->next) {
        Expr *rest = take_bounds(g, c, p, &ok);
        Statistics s = statistics(g->arena, rest, c->u);
        for (int i = 0; i < s.n; i++) {
            bool seen = false;
            for (int k = 0; k < all->n; k++) seen |= all->item[k].statistic == s.item[i].statistic;
            if (seen) continue;
            if (all->n == MAX_STATISTICS) {
                all->many = true;
                break;
            }
            ROOM(g->arena, all->item, all->n, all->size);
            all->item[all->n++] = s.item[i];
        }
        all->many |= s.many;
    }
    return ok;
}

static const char *why_no_family(Graph *g, const Conditional *c, const Statistics *all)
{
    char *text = arena_strdup(g->arena, "");
    ex_reserve(c->var->rank, c->element);  // sums within have other indices than the element
    for (int i = 0; i < all->n; i++) {     // a line of them
        const char *statistic = ex_quote(g->arena, ex_replace(all->item[i].statistic, c->u, c->current));
        const bool fits = strlen(text) + strlen(statistic) < 100 || i == 0;
        text = arena_printf(g->arena, "%s%s%s", text, i ? ", " : "", fits ? statistic : "...");
        if (!fits) break;
    }
    ex_reserve(0, NULL);
    if (all->n == 0) return arena_strdup(g->arena, "nothing in the model makes it proper on its support");
    return arena_printf(g->arena, "no family has the statistics { %s }%s", text,
                        c->bounds || isfinite(c->var->lower_number) || isfinite(c->var->upper_number) ? " on its support" : "");
}

// The coefficients of a part, with the natural parameters that they belong to.
static void take_natural(Graph *g, Conditional *c, Part *p)
{
    bool dummy = true;
    Part *keep = c->bounds;
    Statistics s = statistics(g->arena, take_bounds(g, c, p, &dummy), c->u);
    c->bounds = keep;
    int which[MAX_STATISTICS];
    Conditional scratch = *c;
    family_matches(g, c->family, c->power, c->u, &s, which, &scratch);
    for (int i = 0; i < s.n; i++) {
        int k = which[i];
        if (k == BASE_MEASURE) continue;
        if (k < 0) {  // another part brought the base measure
            const Natural *n = c->family->natural;
            for (k = 0; n; n = n->next, k++)
                if (family_statistic(g, c->family, n, c->power, c->u) == s.item[i].statistic) break;
            if (!n) continue;
        }
        Part *q = NEW(g->arena, Part);
        *q = *p;
        q->next = NULL;
        q->which = k;
        q->value = s.item[i].coefficient;
        part_append(&c->natural, q);
    }
}

// The parts of the density by the statistics of the smallest family that has all of them; what stands in the way is c->because.
void find_family(Graph *g, Conditional *c)
{
    Statistics all = {0};
    if (!all_statistics(g, c, &all)) c->because = "it enters a bound other than alone";
    else if (all.many)
        c->because = arena_printf(g->arena, "it has more than %d statistics, or coefficients of theirs are too long to be written out",
                                  MAX_STATISTICS);
    else if (!recognise(g, c, &all)) c->because = why_no_family(g, c, &all);
    else
        for (Part *p = c->density; p; p = p->next) take_natural(g, c, p);
}

// The statistics of a family, of the element u: what its natural parameters multiply.
void find_statistics(Graph *g, Conditional *c)
{
    int k = 0;
    if (!c->family || c->array || c->nnatural == 0) return;
    for (const Natural *n = c->family->natural; n; n = n->next)
        c->statistic[k++] = n->statistic->kind == AST_BINARY && n->statistic->op == OP_POW && c->family->power
                                ? ex_pow(c->u, n->statistic->kid[1]->kind == AST_UNARY ? -c->power : c->power)
                                : elaborate_rule(g, n->statistic, 1, (Decl *[]){c->family->value}, (Expr *[]){c->u});
}

// The arguments of the law that the family of a scalar has.
bool arguments_of_law(Graph *g, const Conditional *c, Expr *const *natural, Expr **args)
{
    const Distribution *f = c->family;
    Names names = {0};
    if (!f || !f->law || c->array) return false;
    for (const Natural *n = f->natural; n; n = n->next) names_add(g, &names, n->name, *natural++);
    if (f->power) names_add(g, &names, f->power, ex_num(c->power));
    for (int i = 0; i < c->nbase; i++) names_add(g, &names, f->base->kid[i]->name, c->base_args[i]);
    for (const Natural *n = f->law->parameter; n; n = n->next)
        names_add(g, &names, n->name, elaborate(g, n->statistic, names_bind(g, NULL, n->statistic, &names), 0, NULL));
    for (int i = 0; i < f->law->nargs; i++) args[i] = elaborate(g, f->law->args[i], names_bind(g, NULL, f->law->args[i], &names), 0, NULL);
    return true;
}
