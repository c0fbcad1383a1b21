// expect.c -- posterior modes by expectation-maximisation: latents are replaced by expectations in the conditionals of parameters.
//
//   before   categorical(c[i] | w), normal(y[i] | mu[c[i]], s), both over i
//   after    probability_c[i, k] * log(w[k]), probability_c[i, k] * normal(y[i] | mu[k], s), both over i and k
//            and an update that fills probability_c: P(c[i] = k | all else)
//
// Needs: --method em; augment and marginals done.     Gives: the updates of expectation, and the factors that the updates of maximisation
// read. The joint with latents integrated out is kept for the log density.
//
// The expectation of the log joint is over the latents, given the current parameters. It is a lower bound of the log density with latents
// integrated out, and equal to it at these parameters (Dempster, Laird and Rubin 1977). So a change of one block of parameters that raises
// it (ECM: Meng and Rubin 1993) raises that density. It is a sum over factors, and exact by this substitution if a factor
//   contains one discrete latent: the sum over its values of probability times factor;
//   is linear in statistics t(z) of one continuous auxiliary z, which are those of the family of its conditional: E t(z) in place of t(z).
// The augmentation of any other auxiliary, or of one whose family has no such expectations, is undone: the factor as written is used again,
// and its unknowns are maximised without the auxiliary.
#include <math.h>
#include <string.h>
#include "expect.h"
#include "../conditional.h"
#include "../update.h"
#include "../terms/var.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../algebra/polynomial.h"
#include "../algebra/families.h"

// ---- what a factor holds ----

typedef struct Held {
    Expr *ref;
    bool several;
} Held;

static void take_reference(Expr *e, void *with)
{
    Held *h = with;
    h->several |= h->ref && h->ref != e;
    h->ref = e;
}

static Held held(const Factor *f, const Var *v)
{
    Held h = {0};
    ex_references(f->log_density, v, take_reference, &h);
    if (f->plates.guard) ex_references(f->plates.guard, v, take_reference, &h);
    return h;
}

static bool in_ranges(const Factor *f, const Var *v)
{
    for (int i = 0; i < f->plates.n; i++)
        if (ex_mentions(f->plates.index[i]->lo, v) || ex_mentions(f->plates.index[i]->hi, v)) return true;
    return false;
}

// The subscripts of a reference are in terms of the plates: none belongs to a sum within.
static Look test_bound(const Expr *e, void *with)
{
    const Loops *p = with;
    if (e->kind != EX_INDEX) return LOOK;
    for (int i = 0; i < p->n; i++)
        if (p->index[i] == e->index) return SKIP;
    return FOUND;
}

static bool outside_sums(const Factor *f, const Expr *ref)
{
    for (int k = 0; k < ref->nargs; k++)
        if (ex_find(ref->args[k], test_bound, (void *)&f->plates)) return false;
    return true;
}

static bool is_latent(const Graph *g, const Var *v)
{
    return g->method == METHOD_EM && (v->summing.summed || v->kind == VAR_AUXILIARY) && var_unknown(v) && !v->em.expectation;
}

// A factor that the updates of maximisation read, or that of an expectation.
static bool is_read(const Graph *g, const Factor *f, const Var *v)
{
    return factor_counts_at(f, v->summing.summed ? v->summing.summed - 1 : g->nsums, false);
}

static const Var *another_latent(const Graph *g, const Factor *f, const Var *v)
{
    for (int i = 0; i < g->nvars; i++)
        if (g->vars[i] != v && is_latent(g, g->vars[i]) && !g->vars[i]->em.integrated && factor_mentions(f, g->vars[i])) return g->vars[i];
    return NULL;
}

// ---- auxiliaries that cannot stand ----

// Which of the statistics of its family a statistic of the element `ref` is; -1: none.
static int which_statistic(const Conditional *c, Expr *ref, const Expr *statistic)
{
    for (int m = 0; m < c->nnatural; m++)
        if (c->statistic[m] && ex_replace(c->statistic[m], c->u, ref) == statistic) return m;
    return -1;
}

static const char *line_of(Graph *g, Span at) { return arena_printf(g->arena, "line %d", span_line(at)); }

// Why the expectation of the log joint is not that of statistics of the auxiliary v alone; NULL: it is.
static const char *obstacle(Graph *g, Var *v, const Conditional *c)
{
    const Reading of = factors_of(g, v);
    if (!v->discrete) {
        if (!c || !c->family || c->array) return "its conditional has no known family";
        if (c->nbatch < v->rank) return "its elements depend on each other";
        if (!(c->truncated ? c->family->expectations_truncated : c->family->expectations))
            return arena_printf(g->arena, "the expectations of the statistics of %s%s are not known", c->truncated ? "a truncated " : "",
                                c->family->name);
    }
    for (int q = 0; q < of.n; q++) {
        const Factor *f = of.factor[q];
        if (!is_read(g, f, v) || !factor_mentions(f, v)) continue;
        const Held h = held(f, v);
        const Var *other = another_latent(g, f, v);
        if (other) return arena_printf(g->arena, "it meets `%s` in the statement of %s", other->name, line_of(g, f->span));
        if (!h.ref || h.several || in_ranges(f, v) || !outside_sums(f, h.ref))
            return arena_printf(g->arena, "the statement of %s has several of its elements", line_of(g, f->span));
        if (v->discrete) continue;
        if (f->plates.guard && ex_mentions(f->plates.guard, v))
            return arena_printf(g->arena, "the condition of %s depends on it", line_of(g, f->span));
        const Statistics s = statistics(g->arena, f->log_density, h.ref);
        for (int k = 0; k < s.n; k++) {
            if (ex_unknown(ex_replace(s.item[k].statistic, h.ref, ex_num(1))))
                return arena_printf(g->arena, "in the statement of %s unknowns are its ends, or cannot be separated from it",
                                    line_of(g, f->span));
            if (ex_unknown(s.item[k].coefficient) && which_statistic(c, h.ref, s.item[k].statistic) < 0)
                return arena_printf(g->arena, "the statement of %s is not linear in the statistics of its conditional",
                                    line_of(g, f->span));
        }
    }
    return NULL;
}

// The statement that an augmentation has replaced is there again, without its latents.
static void take_back(Graph *g, const Applied *a)
{
    for (Factor *f = g->factors; f; f = f->next)
        for (const Factor *o = f->original; o; o = o->original)
            if (o == a->factor) f->taken_back = true;
    a->factor->replaced = false;
    for (Applied *b = g->applied; b; b = b->next) {
        bool within = b == a;
        for (const Factor *o = b->factor; o && !within; o = o->original) within = o == a->factor;
        if (!within) continue;
        for (int i = 0; i < g->nvars; i++)
            if (g->vars[i]->kind == VAR_AUXILIARY && g->vars[i] == b->latent) g->vars[i]->em.integrated = true;
    }
    g->reading = NULL;
}

static const Applied *applied_for(const Graph *g, const Var *v)
{
    for (const Applied *a = g->applied; a; a = a->next)
        if (a->latent == v) return a;
    return NULL;
}

// ---- the factors of maximisation ----

static Var *array_of(Graph *g, const Var *v, const char *stem, Expr *values)
{
    Var *e = var_unique(g, arena_printf(g->arena, "%s_%s", stem, v->name), VAR_AUXILIARY);
    e->span = v->span;
    e->base = BASE_REAL;
    e->em.expectation = true;
    e->lower_number = -INFINITY;
    e->upper_number = INFINITY;
    for (int k = 0; k < v->rank; k++) e->dim[e->rank++] = v->dim[k];
    if (values) e->dim[e->rank++] = values;
    return e;
}

static Factor *expected_factor(Graph *g, Factor *f, const Var *v, Loops plates)
{
    Factor *q = factor_new(g, f->span, plates);
    q->rule = f->rule;
    if (v->summing.summed) {
        for (Factor *s = g->factors; s; s = s->next)
            if (s->sums_out == v) q->original = s;
    } else {
        q->original = f;
        f->replaced = true;
    }
    return q;
}

// The factor that stands for all that v is in, with v summed out; NULL: another latent is summed out of it in turn.
static Factor *sum_over(const Graph *g, const Var *v)
{
    Factor *sum = NULL;
    for (Factor *f = g->factors; f; f = f->next)
        if (f->sums_out == v) sum = f;
    return sum && !sum->gone && sum->plates.n == v->rank ? sum : NULL;
}

// Whether what the update weighs values by is all that this factor adds up: a sum by messages is the same array, and without rows that name
// the element all terms are in the weights (kernel/density.c).
static bool weighs_all(const Update *s, const Factor *sum)
{
    if (update_by_messages(s)) return true;
    for (const Part *q = s->conditional->density; q; q = q->next)
        if (q->loops.n || q->loops.guard) return false;
    return !s->conditional->whole && sum != NULL;
}

// The log of the sum of weights goes along with the probabilities: the log density reads it.
static void keep_evidence(Graph *g, Update *s, Var *v)
{
    Factor *sum = sum_over(g, v);
    Expr *at[MAX_RANK];
    if (!sum || !weighs_all(s, sum)) return;
    s->expected->evidence = array_of(g, v, "evidence", NULL);
    for (int k = 0; k < v->rank; k++) at[k] = ex_index(sum->plates.index[k]);
    sum->log_density = ex_ref(s->expected->evidence, v->rank, at);
}

// log p(.. | z = k) times the probability of k, over the values k.
static void by_values(Graph *g, Update *s, Var *v)
{
    Expr *first = s->enumerate.lower, *last = s->enumerate.upper;
    Var *p = s->expected->of[s->expected->n++] = array_of(g, v, "probability", ex_add2(ex_sub(last, first), ex_num(1)));
    p->em.weights = true;
    Factor *end = g->factors;
    while (end && end->next) end = end->next;
    for (Factor *f = g->factors; f; f = f == end ? NULL : f->next) {
        if (!is_read(g, f, v) || !factor_mentions(f, v)) continue;
        const Held h = held(f, v);
        Index *k = index_new(v->name, first, last);
        Expr *sub[MAX_RANK], *value = ex_index(k);
        int n = 0;
        for (; n < h.ref->nargs; n++) sub[n] = h.ref->args[n];
        sub[n++] = ex_add2(ex_sub(value, first), ex_num(1));
        Loops plates = {.n = f->plates.n};
        for (int i = 0; i < plates.n; i++) plates.index[i] = f->plates.index[i];
        plates.index[plates.n++] = k;
        plates.guard = f->plates.guard ? ex_replace(f->plates.guard, h.ref, value) : NULL;
        Factor *q = expected_factor(g, f, v, plates);
        q->log_density = ex_mul2(ex_ref(p, n, sub), ex_replace(f->log_density, h.ref, value));
    }
    keep_evidence(g, s, v);
}

// E t(z) for each statistic that has an unknown coefficient.
static void by_statistics(Graph *g, Update *s, Var *v)
{
    const Conditional *c = s->conditional;
    Var *of[MAX_NATURAL] = {NULL};
    Factor *end = g->factors;
    while (end && end->next) end = end->next;
    for (Factor *f = g->factors; f; f = f == end ? NULL : f->next) {
        if (!is_read(g, f, v) || !factor_mentions(f, v)) continue;
        const Held h = held(f, v);
        Expr *e = free_of(g->arena, f->log_density, h.ref);
        const Statistics t = statistics(g->arena, f->log_density, h.ref);
        for (int k = 0; k < t.n; k++) {
            if (!ex_unknown(t.item[k].coefficient)) continue;
            const int m = which_statistic(c, h.ref, t.item[k].statistic);
            if (!of[m]) {
                of[m] = array_of(g, v, "expected", NULL);
                s->expected->which[s->expected->n] = m;
                s->expected->of[s->expected->n++] = of[m];
            }
            e = ex_add2(e, ex_mul2(t.item[k].coefficient, ex_ref(of[m], h.ref->nargs, h.ref->args)));
        }
        Factor *q = expected_factor(g, f, v, f->plates);
        q->log_density = e;
    }
}

static bool refuse(Graph *g, const Var *v, const char *because)
{
    Diag *m = diag(g->diags, v->span, DIAG_E0514, v->name);
    diag_because(m, "%s", because);
    diag_help(m, "`infer { %s by marginal; }` and --method nuts maximise by gradients, where it can be summed out; or draw it", v->name);
    return false;
}

// Updates that find the expectations, in `*updates`; false after a message.
bool expectations(Graph *g, Update *(*update_of)(Graph *, Var *), Update **updates)
{
    const int nvars = g->nvars;
    Update **of = NEW_N(g->arena, Update *, nvars + 1);
    for (int i = 0; i < nvars; i++) {
        Var *v = g->vars[i];
        if (var_unknown(v) && v->discrete && v->kind != VAR_AUXILIARY && !v->summing.summed)
            return refuse(g, v, "it is discrete, and its values do not lie between two ends known from data");
    }
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < nvars && !again; i++) {
            Var *v = g->vars[i];
            of[i] = NULL;
            if (!is_latent(g, v) || v->em.integrated) continue;
            of[i] = update_of(g, v);
            Conditional *c = of[i] ? of[i]->conditional : NULL;
            if (c && !c->array) find_statistics(g, c);
            const char *because = v->discrete && (!c || of[i]->kind != UPDATE_ENUM || (c->nbatch < v->rank))
                                      ? "its elements depend on each other, as the states of a chain do"
                                      : obstacle(g, v, of[i] && of[i]->kind == UPDATE_EXACT ? c : NULL);
            if (!because) continue;
            if (v->kind != VAR_AUXILIARY || v->discrete) return refuse(g, v, because);
            const Applied *a = applied_for(g, v);
            if (!a) return refuse(g, v, because);
            take_back(g, a);
            again = true;
        }
    }
    for (int i = 0; i < nvars; i++) {
        Var *v = g->vars[i];
        if (!of[i]) continue;
        of[i]->expected = NEW(g->arena, Expected);
        if (v->discrete) by_values(g, of[i], v);
        else by_statistics(g, of[i], v);
        v->em.integrated = true;
        of[i]->does = EXPECTS;
        Update **last = updates;
        while (*last) last = &(*last)->next;
        *last = of[i];
    }
    for (Factor *f = g->factors; f; f = f->next) f->replaced |= f->sums_out != NULL;
    g->reading = NULL;
    return true;
}
