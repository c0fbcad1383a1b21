// closed.c -- products that are written as recursions, in closed form for the conditional of what they are made of.
//
//   before   rest[1] = 1;   rest[k] = rest[k-1]*(1 - v[k-1]) over k in 2:K         log(v[c[i]]*rest[c[i]])
//   after    rest[e] stands for prod(j in 1:e-1, 1 - v[j])                         log(v[c[i]]) + sum(j in 1:c[i]-1, log1m(v[j]))
//
// An unknown that enters a recursive definition is sliced, the series computed again for each value. A factor may see the logarithm of a
// product of first order, x[k] = x[k-1]*f(k) with f free of x. This log is a sum of terms with one factor each: the parts of a broken stick
// are beta given counts (conditionals.md, section 2). The factor itself is kept: what does not draw v reads the array, which
// costs one iteration an element.
//
// Side conditions: one variable, along one subscript from its first element on, other subscripts being loops; one statement of the first
// element and one of the others, without conditions; no reference stands in a sum or an array of the factor, where each of its terms would
// have a sum of its own; the product is gone from the result, every one stood in a logarithm of positive things. The series is computed
// again after the update.
#include "closed.h"
#include "../terms/reads.h"

// Is x*e, e[..] the element before, what the statement says? Gives x.
static Expr *ratio_of(Expr *value, Expr *before)
{
    if (value->kind == EX_ADD) {
        Expr *all = ex_num(0);
        for (int i = 0; i < value->nargs; i++) {
            Expr *one = ratio_of(value->args[i], before);
            if (!one) return NULL;
            all = ex_add2(all, one);
        }
        return all;
    }
    Expr *ratio = ex_replace(value, before, ex_num(1));
    return !ex_mentions(ratio, before->var) && ex_mul2(ratio, before) == value ? ratio : NULL;
}

typedef struct FoundRecursions {
    Expr *ref;
    bool other;
} FoundRecursions;

static void one_reference(Expr *ref, void *with)
{
    FoundRecursions *f = with;
    f->other |= f->ref && f->ref != ref;
    f->ref = ref;
}

// The number n of a guard key == n, or of n <= key && key <= end (which only says how far the array goes), each also of key + c; 0: it says
// something else.
static double first_of(const Expr *guard, Expr *key, bool equal)
{
    if (!guard || guard->kind != EX_CALL) return 0;
    if (!equal && guard->fn == FN_AND) {
        const double a = first_of(guard->args[0], key, false), b = first_of(guard->args[1], key, false);
        return a > 0 && b > 0 ? a > b ? a : b : 0;
    }
    if (guard->nargs != 2 || guard->fn != (equal ? FN_EQ : FN_LE)) return 0;
    for (int k = equal ? 0 : 1; k < 2; k++) {
        const Expr *by = ex_sub(guard->args[k], key);
        if (by->kind == EX_NUM && guard->args[1 - k]->kind == EX_NUM) return guard->args[1 - k]->number - by->number;
    }
    return !equal && ex_sub(guard->args[0], key)->kind == EX_NUM && !ex_mentions_index(guard->args[1], key->index) &&
                   !ex_unknown(guard->args[1])
               ? 1
               : 0;
}

typedef struct Closing {
    Recursion r;
    Expr *start, *ratio;
} Closing;

// From which element on a site goes in subscript `along`, which is to be one (`alone`) or all that follow; 0: it has a condition, or
// another form.
static double begins(const Series *s, const Site *t, int along, bool alone)
{
    Expr *key = ex_index(s->along);
    const Expr *at = t->subscript[along], *guard = t->plates.guard;
    if (!t->value || t->when || t->adds || t->again || t->ode || t->n != s->var[0]->rank) return 0;
    for (int k = 0; k < t->n; k++) {
        bool other = k == along || t->subscript[k]->kind == EX_INDEX;
        for (int m = 0; m < k; m++) other &= t->subscript[m] != t->subscript[k];
        if (!other) return 0;
    }
    if (at == key) return first_of(guard, key, alone);
    if (guard || (at->kind == EX_NUM) != alone) return 0;
    const Expr *least = alone ? at : at->kind == EX_INDEX ? at->index->lo : NULL;
    return least && least->kind == EX_NUM ? least->number : 0;
}

bool first_order(const Series *s, Recursion *r)
{
    const Var *x = s->var[0];
    if (s->n != 1 || s->backward || !s->sites || !s->sites->next || s->sites->next->next) return false;
    for (int way = 0; way < 2; way++)
        for (int along = 0; along < x->rank; along++) {
            *r = (Recursion){.s = s, .along = along, .first = way ? s->sites->next : s->sites, .next = way ? s->sites : s->sites->next};
            if (begins(s, r->first, along, true) != 1 || begins(s, r->next, along, false) != 2) continue;
            FoundRecursions f = {0};
            ex_references(r->next->value, x, one_reference, &f);
            if (!f.ref || f.other || f.ref->loose || ex_mentions(r->first->value, x)) continue;
            bool before = true;
            for (int k = 0; k < x->rank; k++)
                before &=
                    k == along ? ex_is_num(ex_sub(r->next->subscript[k], f.ref->args[k]), 1) : f.ref->args[k] == r->next->subscript[k];
            r->index = r->next->subscript[along]->index;
            r->before = f.ref;
            if (before && (r->first->subscript[along]->kind == EX_NUM || !ex_mentions_index(r->first->value, s->along))) return true;
        }
    return false;
}

// The recursion as start and ratio; false: it is no product of this form.
static bool as_product(const Series *s, Closing *c)
{
    if (!first_order(s, &c->r)) return false;
    c->start = c->r.first->value;
    c->ratio = ratio_of(c->r.next->value, c->r.before);
    return c->ratio != NULL;
}

static Expr *put_closed(Expr *e, void *with)
{
    const Closing *c = with;
    if (e->kind != EX_REF || e->var != c->r.s->var[0]) return NULL;
    Index *j = index_new(c->r.index->name, ex_num(1), ex_sub(e->args[c->r.along], ex_num(1)));
    Expr *start = c->start, *ratio = ex_replace_index(c->ratio, c->r.index, ex_add2(ex_index(j), ex_num(1)));
    for (int k = 0; k < e->nargs; k++) {
        if (k == c->r.along) continue;
        start = ex_replace(start, c->r.first->subscript[k], e->args[k]);
        ratio = ex_replace(ratio, c->r.next->subscript[k], e->args[k]);
    }
    return ex_mul2(start, ex_reduce("prod", j, j->lo, j->hi, ratio));
}

static void look_inside(Expr *ref, void *with) { *(bool *)with |= ref->loose > 0; }

static Look test_product(const Expr *e, void *with)
{
    return e->kind == EX_REDUCE && e->fn == FN_prod && ex_mentions(e, with) ? FOUND : LOOK;
}

// The log density with closed forms for the series through which v enters it; NULL: there are none.
Expr *in_closed_form(Graph *g, Expr *log_density, Var *v)
{
    Expr *e = log_density;
    for (const Series *s = g->series; s; s = s->next) {
        const Var *x = s->var[0];
        Closing c;
        bool inside = false;
        if (x->kind != VAR_SERIES || x->hidden || !ex_mentions(e, x) || !series_reads(s, v)) continue;
        ex_references(e, x, look_inside, &inside);
        if (inside || !as_product(s, &c)) return NULL;
        e = ex_map(e, put_closed, &c);
    }
    return e != log_density && !ex_find(e, test_product, v) ? e : NULL;
}
