// describe_group.c -- a group move: what changes with the number that is drawn, and which powers of that number its law has.
#include <math.h>
#include <string.h>
#include "describe.h"
#include "describe_parts.h"
#include "../terms/reads.h"

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
        power_add(p, times * e->args[0]->number, shown(g, e->args[1]));
    else power_add(p, times, shown(g, e));
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
        else n = arena_printf(g->arena, dim[k]->kind == EX_ADD ? "%s%s(%s)" : "%s%s%s", n, *n ? "*" : "", shown(g, dim[k]));
    }
    if (m->triangle && dim[0]->kind == EX_NUM) number = dim[0]->number * (dim[0]->number + 1) / 2;
    else if (m->triangle) n = arena_printf(g->arena, "%s*(%s + 1)/2", shown(g, dim[0]), shown(g, dim[0]));
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

// The power of c by which a product of unknowns changes, in *power; false: it is none that is known.
static bool power_of_product(const GroupMove *o, const Expr *e, double times, double *power)
{
    if (e->kind == EX_POW) return power_of_product(o, e->args[0], times * e->number, power);
    if (e->kind == EX_MUL) {
        for (int i = 0; i < e->nargs; i++)
            if (!power_of_product(o, e->args[i], times, power)) return false;
        return true;
    }
    for (int i = 0; i < o->n; i++) {
        if (!ex_reads(e, o->moved[i].var)) continue;
        if (e->kind != EX_REF || o->moved[i].fixed) return false;
        *power += times * o->moved[i].power;
    }
    return true;
}

// The same of a density, from the logarithms that are terms of its own.
static double power_of_density(const GroupMove *o, const Expr *e, double times)
{
    double all = 0;
    if (e->kind == EX_ADD)
        for (int i = 0; i < e->nargs; i++) all += power_of_density(o, e->args[i], times);
    else if (e->kind == EX_MUL && e->nargs == 2 && e->args[0]->kind == EX_NUM)
        return power_of_density(o, e->args[1], times * e->args[0]->number);
    else if (e->kind == EX_CALL && e->fn == FN_log && !power_of_product(o, e->args[0], times, &all)) return 0;
    return all;
}

// How many densities the factor is.
static const char *instances_of(const Graph *g, const Factor *f, double *number)
{
    const char *n = "";
    for (int k = 0; k < f->plates.n; k++) {
        const Index *i = f->plates.index[k];
        if (!ex_is_num(i->lo, 1)) return NULL;
        if (i->hi->kind == EX_NUM) *number *= i->hi->number;
        else n = arena_printf(g->arena, i->hi->kind == EX_ADD ? "%s%s(%s)" : "%s%s%s", n, *n ? "*" : "", shown(g, i->hi));
    }
    return f->plates.guard ? NULL : n;
}

// Which densities these powers are of; "" where they are not found one by one.
static const char *densities_text(Graph *g, const GroupMove *o, const char *c, const Power *whole)
{
    const char *all = "";
    Power rest = *whole;
    for (const Factor *f = g->factors; f; f = f->next) {
        double number = f->replaced || f->left_out || f->taken_back || f->gone ? 0 : power_of_density(o, f->log_density, 1);
        if (number == 0) continue;
        const char *of = instances_of(g, f, &number);
        if (!of || !f->value || f->value->kind != EX_REF) return "";
        Power one = {0};
        power_add(&one, number, of);
        power_add_all(&rest, -1, &one);
        all = arena_printf(g->arena, "%s%s%s %s", all, *all ? ", " : " (of ", f->value->var->name, power_text(g, c, &one));
    }
    return *all && is_no_power(&rest) && !rest.failed ? arena_printf(g->arena, "%s)", all) : "";
}

// Why the law of c has the powers of c that it has: those of the Jacobian, of the Haar measure and of the densities.
static const char *measure_of(Graph *g, const Update *s)
{
    static const char *const letters[] = {"c", "a", "g", "k", "factor", NULL};
    const GroupMove *o = s->group_move;
    if (o->added || o->by->discrete || !s->conditional) return NULL;
    const char *c = free_letter(g, letters), *by = shown(g, s->conditional->current), *each = "", *end = "both are in its density",
               *before = "";
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
        before = arena_printf(g->arena, "%s in the moved densities%s, ", power_text(g, c, &densities), densities_text(g, o, c, &densities));
    const char *sizes = all ? arena_printf(g->arena, "%s the Jacobian (%s)", power_text(g, c, &jacobian), each)
                            : arena_printf(g->arena, "the Jacobian (%s)", each);
    return arena_printf(g->arena, "powers of %s = %s%s: %s%s, 1/%s from d%s/%s (the Haar measure, invariant to rescaling): %s", c, by,
                        g->lesson ? "" : " beside exponentials", before, sizes, c, c, c, end);
}

// A group move: the coordinate that is drawn, and what changes with it.
void describe_group_move(Graph *g, Description *d, const Update *s)
{
    const GroupMove *o = s->group_move;
    const char *subject = "", *becomes = "";
    d->measure = measure_of(g, s);
    for (int i = 0; i < o->n; i++) {
        const Carried *m = &o->moved[i];
        subject = arena_printf(g->arena, "%s%s%s", subject, i ? ", " : "", m->var->name);
        becomes = arena_printf(g->arena, "%s%s%s = %s", becomes, i ? ",  " : "", shown(g, m->element), shown(g, m->value));
    }
    const char *counts = "", *drawn = "";
    for (int i = 0; i < o->nwindows; i++) {
        counts = arena_printf(g->arena, "%s%s%s", counts, i ? ", " : "", o->window[i].count->name);
        drawn = arena_printf(g->arena, "%s%s from p(%s | %s),  ", drawn, shown(g, o->window[i].conditional->current),
                             o->window[i].count->name, o->by->name);
    }
    d->subject = arena_printf(g->arena, o->nwindows ? "%s, a group move with %s summed out" : "%s, a group move", subject, counts);
    Statement *as = NULL;
    for (int i = o->n; i-- > 0;) {
        Statement one = statement_becomes(i || *drawn ? NULL : "then", o->moved[i].element, o->moved[i].value);
        one.next = as;
        as = arena_copy(g->arena, &one, sizeof one);
    }
    if (*drawn) {
        Statement first = statement_words(arena_printf(g->arena, "then %s", drawn));
        first.next = as;
        as = arena_copy(g->arena, &first, sizeof first);
    }
    add_line(g, d, arena_printf(g->arena, "then %s%s", drawn, becomes), as ? *as : statement_words("then"));
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
                                 shown(g, o->window[0].value->hi));
    d->because = d->because && d->because != s->reason ? arena_printf(g->arena, "%s; %s", s->reason, d->because) : s->reason;
}
