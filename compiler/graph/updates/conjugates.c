// conjugates.c -- parameters of the distribution of a plate of conjugate unknowns, drawn with the plate integrated out.
//
//   before   p[i] ~ beta(a, b)   y[i] ~ binomial(n[i], p[i])        slices: a | p, b; b | p, a                     p | a, b, y exactly
//   after    log p(a, b | y) = log p(a, b) + sum(i, lbeta(a + y[i], b + n[i] - y[i]) - lbeta(a, b))
//            slices of it: a | b; b | a; (a, b) -> (a, b) exp(c)                                                   then p | a, b, y
//
// Given the plate, a parameter of its distribution mixes slowly if data identify each element weakly. Parameters of which data identify
// only the ratio mix slowly at a fixed ratio. Let p[i] be drawn exactly, from a family with natural parameters e[i]. The integral over p[i]
// of all factors that contain it is exp(A(e[i])), where A is the log normaliser of the family: minus the terms of the family's log density
// that do not contain p[i], at e[i] (Gelman et al. 2013, Bayesian Data Analysis, section 5.3, for the beta and the binomial). The terms of
// p's own statement without p[i], -lbeta(a, b), remain. The plate is drawn directly after these updates: no update reads its elements
// before (van Dyk and Park 2008, partially collapsed Gibbs).
//
// The same of vectors, u[h] ~ dirichlet(c*w) with counts n[h, k] of labels. The integral is Dirichlet-multinomial,
// lgamma(c) - lgamma(c + n[h]) + sum(k, lgamma(c*w[k] + n[h, k]) - lgamma(c*w[k])), and sees no log of a share that rounds to 0. Teh et al.
// 2006 (Journal of the American Statistical Association 101) draw a number of tables for each term, given which c and w have families.
// Slices of the integral itself need no such latent, which could only slow them down. Each value tried costs as many terms.
//
// Conditions: the elements of the plate are independent given all other unknowns, and have a family with a named law, without truncation.
// Sums over its rows are of data, or computed before the update. The parameter is a real that is sliced given the plate, or shares the
// plate with one that is. Among the factors of the plate it occurs in the plate's own statement only. The plate enters no other integral.
// For the common factor exp(c): two or more of these parameters, positive without an upper end, of one shape, in one statement.
#include <math.h>
#include <string.h>
#include "conjugates.h"
#include "../terms/var.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/elaborate.h"
#include "../model/law.h"
#include "../model/existence.h"
#include "../algebra/families.h"
#include "../algebra/conditionals.h"
#include "group.h"
#include "updates.h"

enum { MOST_PARAMETERS = 8 };

typedef struct Plate {
    Graph *g;
    Update *update;  // that draws it
    Factor *own;     // its statement
    Without *without;
    // what is left of its factors once it is integrated out, but for terms without what the statement hangs on
    Factor *integral;
    int n;
    Update *parameter[MOST_PARAMETERS];  // updates of what is drawn without it
} Plate;

static bool is_ordinary(const Update *s)
{
    return s->nblock == 1 && s->conditional && !s->imputes && !s->collapsed && !s->marginal && !s->over_sum && !s->group_move &&
           s->does != EXPECTS && !s->joined && !predictive_of(s) && !white_of(s) && s->joint == 0 &&
           (s->when == EVERY_SWEEP || s->when == WITHOUT_GRADIENTS);
}

// The statement of all elements of v; NULL: there are several, or another form.
static Factor *own_statement(Graph *g, Var *v)
{
    Factor *own = NULL;
    const Reading of = factors_of(g, v);
    for (int q = 0; q < of.n; q++) {
        Factor *f = of.factor[q];
        if (!factor_counts(f, v, false)) continue;  // of a joint in which others are summed out
        if (f->replaced || f->original || f->made || f->sums_out || f->function || f->truncated || f->ncomponents) return NULL;
        if (!f->value || f->value->kind != EX_REF || f->value->var != v) continue;
        if (own || !f->dist) return NULL;
        own = f;
    }
    return own;
}

static bool is_another(const Var *v, void *with) { return v != with; }

// Whether it is a coefficient times a function of u alone.
static bool is_term(const Expr *e, const Expr *u)
{
    for (int i = 0; i < (e->kind == EX_MUL ? e->nargs : 1); i++) {
        const Expr *f = e->kind == EX_MUL ? e->args[i] : e;
        if (ex_mentions(f, u->var) && (ex_any_var(f, is_another, (void *)u->var) || f->kind == EX_ADD)) return false;
    }
    return true;
}

// What a log density has besides terms of the element; NULL: it cannot be distinguished. Terms of a vector stand in sums over its elements.
static Expr *without_element(const Expr *e, const Expr *u)
{
    Expr *rest = ex_num(0);
    for (int i = 0; i < (e->kind == EX_ADD ? e->nargs : 1); i++) {
        Expr *t = e->kind == EX_ADD ? e->args[i] : (Expr *)e;
        if (!ex_mentions(t, u->var)) rest = ex_add2(rest, t);
        else if (t->kind == EX_REDUCE && t->name == intern("sum") && !ex_mentions(t->args[0], u->var) && !ex_mentions(t->args[1], u->var)) {
            Index *k = index_new(intern("k"), t->args[0], t->args[1]);
            Expr *inner = without_element(ex_open(t, k), u);
            if (!inner) return NULL;
            rest = ex_add2(rest, ex_reduce(intern("sum"), k, t->args[0], t->args[1], inner));
        } else if (!is_term(t, u)) return NULL;
    }
    return rest;
}

// Sums over rows as they stand in the law.
static Expr *sum_of(Plate *p, const Part *q)
{
    Graph *g = p->g;
    const Conditional *c = p->update->conditional;
    if (!q->scatter && !q->loops.n) return q->loops.guard ? ex_call3("if_else", q->loops.guard, q->value, ex_num(0)) : q->value;
    const char *name = p->without->n ? arena_printf(g->arena, "n%d_%s", p->without->n + 1, c->var->name)
                                     : arena_printf(g->arena, "n_%s", c->var->name);  // a vector's description has it: counts
    Var *v = var_unique(g, name, VAR_ELEMENT);
    v->rank = c->var->rank;
    memcpy(v->dim, c->var->dim, sizeof v->dim);
    p->without->part[p->without->n] = q;
    p->without->sum[p->without->n++] = v;
    return ex_ref(v, c->var->rank, c->current->args);
}

typedef struct InPlace {
    const Without *of;
    Expr *const *is;
} InPlace;

// A sum over elements is opened for it: what takes the place may be a sum itself, with an index of the same kind.
static Expr *in_place(Expr *e, void *with)
{
    const InPlace *w = with;
    const Conditional *c = w->of->plate->conditional;
    bool holds = false;
    for (int i = 0; i < w->of->n; i++) {
        if (e->kind == EX_REF && e->var == w->of->sum[i]) return at_subscripts(w->is[i], e->nargs, c->element, e->args);
        holds |= ex_mentions(e, w->of->sum[i]);
    }
    if (e->kind != EX_REDUCE || !holds) return NULL;
    Expr *lo = ex_map(e->args[0], in_place, with), *hi = ex_map(e->args[1], in_place, with);
    Index *k = index_new(intern("k"), lo, hi);
    return ex_reduce(e->name, k, lo, hi, ex_map(ex_open(e, k), in_place, with));
}

Expr *in_place_of_sums(const Without *w, Expr *e, Expr *const *is) { return ex_map(e, in_place, &(InPlace){w, is}); }

// A(e), up to a constant; NULL: the law's log density is not of this form.
static Expr *log_normaliser(Plate *p)
{
    Graph *g = p->g;
    const Conditional *c = p->update->conditional;
    Expr *args[MAX_RANK], *natural[MAX_NATURAL];
    for (int k = 0; k < MAX_NATURAL; k++) natural[k] = ex_num(0);
    for (const Part *q = c->natural; q; q = q->next) natural[q->which] = ex_add2(natural[q->which], sum_of(p, q));
    const Law *law = c->family->law;
    if (law->nargs > MAX_RANK || !arguments_of_law(g, c, natural, args)) return NULL;
    const Distribution *d = library_distribution(g->stdlib, law->dist);
    if (!d || !d->log_density || d->nparams != law->nargs) return NULL;
    Var *x = var_new(g, intern("x"), VAR_ELEMENT);
    Expr *u = ex_ref(x, 0, NULL);
    x->lower_number = c->var->lower_number;
    x->upper_number = c->var->upper_number;
    Expr *rest = without_element(elaborate(g, d->log_density, bind_arguments(g, d, law->nargs, args, u), 0, NULL), u);
    return rest ? ex_neg(rest) : NULL;
}

// Sums of data over rows leave the sweep; others, scattered to the elements that data or labels pick, are made before the update.
static bool can_be_summed(const Part *q)
{
    bool data = ex_data_only(q->value) && (!q->loops.guard || ex_data_only(q->loops.guard));
    for (int k = 0; k < q->loops.n; k++) data &= ex_data_only(q->loops.index[k]->lo) && ex_data_only(q->loops.index[k]->hi);
    return data || q->scatter || !q->loops.n;
}

static bool find_integral(Plate *p)
{
    Graph *g = p->g;
    const Conditional *c = p->update->conditional;
    Expr *all = ex_num(0), *guard = var_domain(g, c->var, c->element);
    int nparts = 0;
    for (const Part *q = c->natural; q; q = q->next, nparts++)
        if (!can_be_summed(q)) return false;
    p->without = NEW(g->arena, Without);
    *p->without =
        (Without){.plate = p->update, .part = NEW_N(g->arena, const Part *, nparts + 1), .sum = NEW_N(g->arena, Var *, nparts + 1)};
    for (const Part *q = c->density; q; q = q->next) {
        if (q->factor != p->own) continue;
        if (q->scatter || q->loops.n || (q->loops.guard && !ex_data_only(q->loops.guard))) return false;
        if (q->loops.guard) guard = guard ? ex_both(guard, q->loops.guard) : q->loops.guard;
        Expr *rest = without_element(q->value, c->u);
        if (!rest) return false;
        all = ex_add2(all, rest);
    }
    Expr *a = log_normaliser(p);
    if (!a) return false;
    p->integral = factor_of_ends(g, p->own, loops_of_indices(c->element, c->var->rank, guard), ex_add2(all, a));
    return !ex_mentions(p->integral->log_density, c->var);
}

// ---- vectors ----

// A part of the vector's own statement, at the element; NULL: it has another form.
static Expr *own_part(const Conditional *c, const Part *q)
{
    Expr *value = q->loops.guard ? ex_call3("if_else", q->loops.guard, q->value, ex_num(0)) : q->value;
    if (q->loops.n != c->var->rank) return NULL;
    for (int k = 0; k < c->var->rank; k++) {
        const Expr *t = q->target[k];
        if (!t || t->kind != EX_INDEX || !ex_is_num(t->index->lo, 1) || t->index->hi != c->var->dim[k]) return NULL;
        for (int j = 0; j < k; j++)
            if (q->target[j] == t) return NULL;
        value = ex_replace_index(value, t->index, ex_index(c->element[k]));
    }
    return value;
}

// The log normaliser at the natural parameters of a vector, up to a constant; NULL: the law's log density is not of this form.
static Expr *log_normaliser_whole(Plate *p, Expr *const *natural)
{
    Graph *g = p->g;
    const Conditional *c = p->update->conditional;
    const Distribution *f = c->family;
    Names names = {0};
    for (const Natural *n = f->natural; n; n = n->next) {
        Expr *e = *natural++;
        for (int k = c->var->rank - 1; k >= c->nbatch; k--) e = ex_array(c->element[k], c->var->dim[k], e);
        names_add(g, &names, n->name, e);
    }
    for (const Natural *n = f->law->parameter; n; n = n->next)
        names_add(g, &names, n->name, elaborate_whole(g, n->statistic, names_bind(g, NULL, n->statistic, &names)));
    Expr *args[MAX_RANK];
    if (f->law->nargs > MAX_RANK) return NULL;
    for (int i = 0; i < f->law->nargs; i++)
        args[i] = elaborate_whole(g, f->law->args[i], names_bind(g, NULL, f->law->args[i], &names));
    const Distribution *d = library_distribution(g->stdlib, f->law->dist);
    if (!d || !d->log_density || d->nparams != f->law->nargs) return NULL;
    Var *x = var_new(g, intern("x"), VAR_ELEMENT);
    x->rank = c->var->rank - c->nbatch;
    memcpy(x->dim, c->var->dim + c->nbatch, sizeof *x->dim * (size_t)x->rank);
    x->constraint = c->var->constraint;
    Expr *u = ex_ref(x, 0, NULL);
    Expr *rest = without_element(elaborate(g, d->log_density, bind_arguments(g, d, f->law->nargs, args, u), 0, NULL), u);
    return rest ? ex_neg(rest) : NULL;
}

static bool find_integral_whole(Plate *p)
{
    Graph *g = p->g;
    const Conditional *c = p->update->conditional;
    const Var *v = c->var;
    Expr *natural[MAX_NATURAL], *rest = without_element(p->own->log_density, c->current);
    for (int k = 0; k < MAX_NATURAL; k++) natural[k] = ex_num(0);
    int nparts = 0;
    for (const Part *q = c->natural; q; q = q->next) nparts++;
    if (!rest || p->own->plates.n != c->nbatch || p->own->plates.guard || var_domain(g, v, c->element)) return false;
    p->without = NEW(g->arena, Without);
    *p->without =
        (Without){.plate = p->update, .part = NEW_N(g->arena, const Part *, nparts + 1), .sum = NEW_N(g->arena, Var *, nparts + 1)};
    bool own = false;
    for (const Part *q = c->natural; q; q = q->next) {
        const bool prior = q->factor == p->own;
        Expr *e = prior ? own_part(c, q) : can_be_summed(q) ? sum_of(p, q) : NULL;
        if (!e) return false;
        natural[q->which] = ex_add2(natural[q->which], e);
        for (int k = 0; k < c->nbatch && prior; k++) {
            if (p->own->plates.index[k] != q->target[k]->index) return false;
            if (!own) rest = ex_replace_index(rest, q->target[k]->index, ex_index(c->element[k]));
        }
        own |= prior;
    }
    Expr *a = own ? log_normaliser_whole(p, natural) : NULL;
    if (!a) return false;
    p->integral = factor_of_ends(g, p->own, loops_of_indices(c->element, c->nbatch, NULL), ex_add2(rest, a));
    return !ex_mentions(p->integral->log_density, v);
}

static bool find_plate(Graph *g, Update *s, Plate *p)
{
    if (s->kind != UPDATE_EXACT || !is_ordinary(s)) return false;
    const Conditional *c = s->conditional;
    const Var *v = c->var;
    const bool whole = c->array && v->constraint == CONSTRAINT_SIMPLEX;
    if (!c->family || !c->family->law || c->truncated || c->bounds || c->nbase || c->whole || c->recursion || c->closed || c->carried ||
        c->with || v->rank == 0)
        return false;
    if (!whole && (c->array || c->nbatch < v->rank || v->constraint != CONSTRAINT_NONE)) return false;
    if (v->discrete || (v->kind != VAR_PARAMETER && v->kind != VAR_LATENT) || is_of_series(g, v)) return false;
    if (request_of(g, v) && !is_collapsed(g, v)) return false;
    *p = (Plate){.g = g, .update = s, .own = own_statement(g, (Var *)v)};
    return p->own && (whole ? find_integral_whole(p) : find_integral(p));
}

static bool is_it(const Var *v, void *with) { return v == with; }

// Whether, of all that holds the plate, the parameter stands in its own statement alone.
static bool hangs_on(const Plate *p, Var *h)
{
    bool own = false;
    const Reading of = factors_of(p->g, h);
    for (int q = 0; q < of.n; q++) {
        const Factor *f = of.factor[q];
        if (!factor_counts(f, h, false)) continue;
        if (f->replaced || f->original || f->made || f->sums_out) return false;
        if (!factor_mentions(f, p->update->block[0])) continue;
        if (f != p->own || decide_instances(f, is_it, h)) return false;
        own = true;
    }
    return own;
}

// These factors with the plate integrated out.
static Reading factors_without(Graph *g, const Reading of, const Plate *p)
{
    Reading out = {.factor = NEW_N(g->arena, Factor *, of.n + 1)};
    for (int q = 0; q < of.n; q++) out.factor[out.n++] = of.factor[q] == p->own ? p->integral : of.factor[q];
    return out;
}

static bool is_parameter(Graph *g, const Update *s, const Update *of_plate)
{
    const Var *v = s->block[0];
    return (s->kind == UPDATE_SLICE || (s->kind == UPDATE_EXACT && !s->conditional->array)) && is_ordinary(s) &&
           s->when == of_plate->when && s->selection == of_plate->selection && is_plain_real(v) && v->kind != VAR_AUXILIARY &&
           !v->part_of && v->constraint == CONSTRAINT_NONE && !s->conditional->recursion &&
           !s->conditional->closed && !request_of(g, v) && !is_of_series(g, v);
}

// ---- a common factor ----

static bool is_positive(const Var *v) { return v->lower_number == 0 && !v->lower && isinf(v->upper_number) && !v->upper; }

typedef struct Common {
    Group group;
    int n;
    Var *var[MOST_PARAMETERS];
} Common;

static bool is_common(const Group *x, const Var *v)
{
    const Common *c = (const Common *)x;
    for (int i = 0; i < c->n; i++)
        if (c->var[i] == v) return true;
    return false;
}

// h exp(c) in place of h.
static Expr *grown(Group *x, Expr *h) { return ex_mul2(h, ex_call1("exp", ex_ref(x->by, h->nargs, h->args))); }

static Update *common_update(Graph *g, const Plate *p)
{
    Common common = {.group = {.g = g, .moves = is_common, .becomes = grown}};
    for (int i = 0; i < p->n; i++) {
        Var *v = p->parameter[i]->block[0];
        if (!is_positive(v) || is_switched_off(g, v, SETTING_GROUP_MOVE) || (common.n && !have_one_shape(v, common.var[0]))) continue;
        Index *index[MAX_RANK];
        var_element(g, v, index);
        if (!var_domain(g, v, index)) common.var[common.n++] = v;
    }
    if (common.n < 2) return NULL;
    bool known = true;
    Var *first = common.var[0],
        *by = common.group.by = var_hidden(g, arena_printf(g->arena, "grow_%s", first->name), first->span, first->rank, first->dim);
    Reading of = factors_without(g, factors_of_block(g, common.var, common.n), p),
            moved = {.factor = NEW_N(g->arena, Factor *, of.n + common.n)};
    GroupMove *o = group_move_new(g, by, true, common.n);
    o->by_priors = true;
    for (int q = 0; q < of.n; q++) {
        Factor *f = of.factor[q];
        known &= !decide_instances(f, group_moves, &common);
        Expr *e = group_moved(&common.group, f->log_density);
        known &= !common.group.failed;
        if (ex_mentions(e, by)) moved.factor[moved.n++] = factor_with(g, f, e);
    }
    for (int i = 0; i < common.n; i++) {  // the Jacobian
        Carried *to = group_move_carry(g, o, common.var[i]);
        Expr *c = ex_ref(by, to->element->nargs, to->element->args);
        to->value = grown(&common.group, to->element);
        to->log_jacobian = c;
        if (moved.n) moved.factor[moved.n++] = factor_of_ends(g, moved.factor[0], loops_of_indices(to->index, to->var->rank, NULL), c);
    }
    Conditional *c = law_apart(g, by, known && moved.n ? &moved : NULL, false);
    if (!c) return NULL;
    Update *s = group_update(g, UPDATE_SLICE, first->span, c, o, p->update->selection, "data identify their ratio better than their size");
    s->marginal = true;
    s->when = p->update->when;
    s->without = p->without;
    return s;
}

// ---- the sweep ----

static void take_out(Graph *g, const Update *s)
{
    Update **at = &g->updates;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
}

static void insert(Graph *g, Update *s, const Update *before)
{
    Update **at = &g->updates;
    while (*at != before) at = &(*at)->next;
    s->next = *at;
    *at = s;
}

// Parameters that two plates share are drawn without one of them.
bool find_conjugates(Graph *g)
{
    int nupdates = 0;
    for (const Update *s = g->updates; s; s = s->next) nupdates++;
    Update **updates = NEW_N(g->arena, Update *, nupdates + 1);
    nupdates = 0;
    for (Update *s = g->updates; s; s = s->next) updates[nupdates++] = s;
    for (int k = 0; k < nupdates; k++) {
        Plate p;
        if (!find_plate(g, updates[k], &p)) continue;
        for (int i = 0; i < nupdates && p.n < MOST_PARAMETERS; i++)
            if (updates[i] != p.update && is_parameter(g, updates[i], p.update) && hangs_on(&p, updates[i]->block[0]))
                p.parameter[p.n++] = updates[i];
        bool sliced = false;  // parameters that have a family are left to it where all have
        for (int i = 0; i < p.n; i++) sliced |= p.parameter[i]->kind == UPDATE_SLICE;
        int n = 0;
        Conditional *law[MOST_PARAMETERS];
        for (int i = 0; i < p.n && sliced; i++) {
            Update *s = p.parameter[i];
            const Reading of = factors_without(g, factors_of(g, s->block[0]), &p);
            Conditional *c = conditional_given(g, s->block[0], &of, false);
            if (c->recursion || c->closed || c->nbatch < s->conditional->nbatch) continue;
            c->because = s->kind == UPDATE_SLICE ? s->conditional->because
                                                 : arena_printf(g->arena, "given `%s` it would mix slowly", p.update->block[0]->name);
            law[n] = c;
            p.parameter[n++] = s;
        }
        p.n = n;
        if (!n) continue;
        for (int i = 0; i < n; i++) {
            Update *s = p.parameter[i];
            s->kind = UPDATE_SLICE;
            s->conditional = law[i];
            s->marginal = true;
            s->without = p.without;
            take_out(g, s);
            insert(g, s, p.update);
        }
        Update *common = common_update(g, &p);
        if (common) insert(g, common, p.update);
    }
    return true;
}
