// joined.c -- discrete unknowns of one shape that share factors, drawn together: by the product of their values, element by element or
// along chains.
//
//   before   a[t] ~ categorical(P[a[t-1]]), b[t] ~ categorical(Q[b[t-1], a[t]]), y[t] ~ normal(mu[a[t]] + nu[b[t]], s)
//   after    one chain of pairs: local[t](a, b); link of b from (b, b') given a', then link of a from (a, a') given b
//
// Needs: augment done, ranges of discrete unknowns known.     Gives: for each set the conditional of an element of the product, and its
// links to the previous element, one for each unknown. Keeps: the factors.
//
// A transition of the product is one of each unknown after the other (Ghahramani and Jordan 1997): messages are summed over the new value
// of the first unknown, which then has its previous value, then over the next one. That takes K1 K2 (K1 + K2) products an element in place
// of (K1 K2)^2. A term may read previous values of unknowns earlier in the order, and new values of later ones; an order is searched for
// that suits all terms. Without one the product has one link.
//
// Given each other, unknowns that determine each other mix slowly, or cannot change. Jointly they cost more. The rule: a joint draw takes
// at most MOST_DEARER times the products of separate draws, and there are at most MOST_TOGETHER combinations of values; on a GPU
// MOST_ON_GPU, where chunks of time are products of matrices. If numbers of values are data, sizes decide. Labels that do not depend on
// other elements, and are often weighed by tables if drawn one by one, are drawn together for at most MOST_ON_GPU combinations, known as
// numbers. `infer { (a, b) by gibbs; }` draws them jointly at any cost, `infer { a by gibbs(joint = off); }` one by one.
#include <math.h>
#include <string.h>
#include "joined.h"
#include "../conditional.h"
#include "../terms/var.h"
#include "../terms/supports.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../algebra/conditionals.h"
#include "../algebra/afresh.h"
#include "../algebra/pairs.h"
#include "neighbours.h"

// subscripts that the arrays of a draw have besides
enum { MOST_DEARER = 10, MOST_TOGETHER = 1024, MOST_ON_GPU = 16, SUBSCRIPTS_MORE = 2 };

// ---- what the model requests ----

// ---- factors in terms of the product ----

typedef struct Joining {
    Joined *j;
    bool failed;
} Joining;

static bool is_member(const Var *v, void *with)
{
    const Joined *j = with;
    bool any = false;
    for (int i = 0; i < j->n; i++) any |= v == j->var[i];
    return any;
}

static bool mentions_any(const Joined *j, const Expr *e) { return ex_any_var(e, is_member, (void *)j); }

static Expr *product_at(Expr *e, void *with)
{
    Joining *to = with;
    for (int i = 0; i < to->j->n && e->kind == EX_REF; i++) {
        if (e->var != to->j->var[i]) continue;
        to->failed |= e->nargs != e->var->rank;
        for (int k = 0; k < e->nargs; k++) to->failed |= mentions_any(to->j, e->args[k]);
        if (to->failed) return e;
        return ex_ref(to->j->part[i], 1, (Expr *[]){ex_ref(to->j->product, e->nargs, e->args)});
    }
    return NULL;
}

// The conditional of an element of the product; NULL: elements are neither independent nor along a chain.
static Conditional *of_product(Graph *g, Joined *j)
{
    Joining to = {j, false};
    bool collapsed = true;
    for (int i = 0; i < j->n; i++) collapsed &= can_collapse(g, j->var[i]);
    j->collapsed = collapsed;
    const Reading all = factors_of_block(g, j->var, j->n);
    Reading in = {.factor = NEW_N(g->arena, Factor *, all.n + 1)};
    Factor **from = NEW_N(g->arena, Factor *, all.n + 1);
    for (int q = 0; q < all.n; q++) {
        Factor *f = all.factor[q];
        bool mentions = false;
        for (int i = 0; i < j->n; i++) mentions |= factor_counts(f, j->var[i], collapsed) && factor_mentions(f, j->var[i]);
        if (!mentions) continue;
        for (int i = 0; i < j->n; i++)
            if (factor_mentions(f, j->var[i])) f = weighed(g, f, j->var[i]);
        if (decide_instances(f, is_member, j)) return NULL;
        Factor *copy = in.factor[in.n++] = arena_copy(g->arena, f, sizeof *f);
        from[in.n - 1] = all.factor[q];
        copy->log_density = ex_map(f->log_density, product_at, &to);
        for (int i = 0; i < j->n; i++) to.failed |= ex_reads(copy->log_density, j->var[i]);  // through a series
        if (to.failed) return NULL;
    }
    Conditional *c = conditional_density_of(g, j->product, &in, collapsed);
    if (c->whole || c->recursion || c->closed || !(c->nbatch == j->product->rank || along_neighbours(c))) return NULL;
    for (const Part *q = conditional_given(g, j->product, &in, true)->density; q; q = q->next)
        if (q->scatter) return NULL;  // rows name their elements: a pass over all of them for each
    for (Part *q = c->density; q; q = q->next)
        for (int k = 0; k < in.n; k++)
            if (q->factor == in.factor[k]) q->factor = from[k];
    take_at_once(c);
    return c;
}

// ---- links ----

static Look is_it(const Expr *e, void *with) { return e == with ? FOUND : LOOK; }
static bool ex_holds(const Expr *e, Expr *part) { return ex_find(e, is_it, part); }

// Which unknowns a term reads at the element before, and at the element.
typedef struct JoinedReads {
    unsigned before, here;
} JoinedReads;

static JoinedReads reads_of(const Joined *j, const Conditional *c, const Expr *e)
{
    JoinedReads r = {0, 0};
    for (int i = 0; i < j->n; i++) {
        if (ex_holds(e, ex_ref(j->part[i], 1, (Expr *[]){c->before}))) r.before |= 1u << i;
        if (ex_holds(e, ex_ref(j->part[i], 1, (Expr *[]){c->u}))) r.here |= 1u << i;
    }
    return r;
}

// The unknown whose link a term belongs to where those in `done` stand at their values before: -1, none yet.
static bool has_place(JoinedReads r, int at, unsigned done) { return !(r.before & ~(done | 1u << at)) && !(r.here & done); }

// Puts links in the order in which messages are summed over the unknowns; false: some term has no place.
static bool order_links(Graph *g, Joined *j, const Conditional *c, unsigned done, int n)
{
    Expr *const one = c->link, *const *term = one->kind == EX_ADD ? one->args : &c->link;
    const int nterms = one->kind == EX_ADD ? one->nargs : 1;
    if (n == j->n) {
        for (int k = 0; k < n; k++) j->link[k].density = ex_num(0);
        for (int t = 0; t < nterms; t++) {
            const JoinedReads r = reads_of(j, c, term[t]);
            unsigned before = 0;
            int at = -1;
            for (int k = 0; k < n && at < 0; before |= 1u << j->link[k++].of)
                if (has_place(r, j->link[k].of, before) && (!(r.before | r.here) || (r.before | r.here) >> j->link[k].of & 1)) at = k;
            if (at < 0) return false;
            j->link[at].density = ex_add2(j->link[at].density, term[t]);
            j->link[at].alone &= !((r.before | r.here) & ~(1u << j->link[at].of));
        }
        return true;
    }
    for (int i = 0; i < j->n; i++) {
        if (done >> i & 1) continue;
        j->link[n] = (JoinedLink){.of = i, .alone = true};
        if (order_links(g, j, c, done | 1u << i, n + 1)) return true;
    }
    return false;
}

// ---- the rule ----

static Expr *at_most(Expr *a, Expr *b) { return ex_call2("<=", a, b); }

static bool holds(const Expr *e) { return e->kind == EX_NUM && e->number != 0; }
static bool fails(const Expr *e) { return e->kind == EX_NUM && e->number == 0; }

static Expr *also(Expr *a, Expr *b) { return holds(a) ? b : holds(b) ? a : ex_call2("&&", a, b); }

static void find_rule(Joined *j, bool chain, bool asked)
{
    Expr *values = ex_num(1), *sum = ex_num(0), *squares = ex_num(0);
    for (int i = 0; i < j->n; i++) {
        values = ex_mul2(values, j->count[i]);
        sum = ex_add2(sum, j->count[i]);
        squares = ex_add2(squares, ex_pow(j->count[i], 2));
    }
    j->values = values;
    j->products = chain ? ex_mul2(values, sum) : values;
    j->in_turn = chain ? squares : sum;
    if (asked) return;
    Expr *rule[] = {at_most(values, ex_num(MOST_TOGETHER)), at_most(j->products, ex_mul2(ex_num(MOST_DEARER), j->in_turn)),
                    at_most(values, ex_num(MOST_ON_GPU))};
    const bool never = fails(rule[0]) || fails(rule[1]) || (!chain && !holds(rule[2]));
    if (never || !(holds(rule[1]) && holds(rule[2]))) j->where = also(rule[0], rule[1]);
    j->on_gpu = j->where ? also(j->where, rule[2]) : NULL;
    if (never) j->where = ex_num(0);
}

// ---- sets ----

static bool may_be_joined(Graph *g, const Var *v)
{
    if ((v->kind != VAR_PARAMETER && v->kind != VAR_LATENT) || !v->discrete || v->base != BASE_INT || v->constraint != CONSTRAINT_NONE ||
        v->summing.summed || v->summing.messages || v->summing.joined || v->part_of || !v->rank || v->rank + SUBSCRIPTS_MORE > MAX_RANK)
        return false;
    const Expr *first = end_of_summed(v, 0), *last = end_of_summed(v, 1);
    if (!first || !last || (request_of(g, v) && !together_asked(g, v))) return false;
    return first->kind != EX_NUM || last->kind != EX_NUM || (last->number > first->number && last->number - first->number < FEW_STATES);
}

static bool meet(Graph *g, const Var *v, const Var *w)
{
    const Reading of = factors_of(g, v);
    for (int q = 0; q < of.n; q++)
        if (factor_counts(of.factor[q], v, true) && factor_mentions(of.factor[q], w)) return true;
    return false;
}

// Whether v by itself would be drawn by the weights of its values, as the set is.
static bool is_weighed(Graph *g, Var *v)
{
    const Conditional *c = conditional_density(g, v, can_collapse(g, v));
    return !c->whole && !c->recursion && !c->closed && !find_pair(g, v);
}

static Joined *joined_of(Graph *g, Var *const *var, int n)
{
    Joined *j = NEW(g->arena, Joined);
    const Var *first = var[0];
    const char *name = first->name;
    j->n = n;
    for (int i = 1; i < n; i++) name = arena_printf(g->arena, "%s_%s", name, var[i]->name);
    Var *w = j->product = var_unique(g, name, VAR_ELEMENT);
    w->base = BASE_INT;
    w->discrete = true;
    w->span = first->span;
    w->summing.sums = first->summing.sums;
    w->rank = first->rank;
    memcpy(w->dim, first->dim, sizeof w->dim);
    for (int i = 0; i < n; i++) {
        j->var[i] = var[i];
        j->count[i] = ex_add2(ex_sub(end_of_summed(var[i], 1), end_of_summed(var[i], 0)), ex_num(1));
    }
    const Request *asked = together_asked(g, first);
    for (int i = 1; i < n; i++)
        if (together_asked(g, var[i]) != asked || var[i]->summing.sums != first->summing.sums) return NULL;
    Expr *values = ex_num(1);
    for (int i = 0; i < n; i++) values = ex_mul2(values, j->count[i]);
    w->lower_number = 0;
    w->lower = ex_num(0);
    w->upper = ex_sub(values, ex_num(1));
    if (w->upper->kind == EX_NUM) w->upper_number = w->upper->number;
    for (int i = 0; i < n; i++) {
        Var *p = j->part[i] = var_unique(g, arena_printf(g->arena, "%s_of_%s", var[i]->name, name), VAR_ELEMENT);
        p->base = BASE_INT;
        p->discrete = true;
        p->rank = 1;
        p->dim[0] = values;
        p->lower_number = var[i]->lower_number;
        p->upper_number = var[i]->upper_number;
        p->lower = var[i]->lower;
        p->upper = var[i]->upper;
    }
    Conditional *c = j->conditional = of_product(g, j);
    if (!c) return NULL;
    const bool chain = c->before != NULL;
    find_rule(j, chain, asked != NULL);
    if (j->where && fails(j->where)) return NULL;
    if (!chain) return j;
    // where the sum of the numbers is no less than their product, one link is no dearer
    Expr *one = ex_add2(values, ex_neg(ex_div(j->products, values)));
    if ((one->kind == EX_NUM && one->number <= 0) || !order_links(g, j, c, 0, 0))
        j->link[j->nlinks++] = (JoinedLink){.of = -1, .alone = true, .density = c->link};
    else j->nlinks = n;
    return j;
}

// What is printed of the conditional, and read by later stages, is in terms of the unknowns.
typedef struct Parting {
    const Joined *j;
    const Conditional *c;
} Parting;

static Expr *part_of(Expr *e, void *with)
{
    const Parting *of = with;
    for (int i = 0; i < of->j->n && e->kind == EX_REF; i++)
        if (e->var == of->j->part[i])
            return ex_ref(of->j->var[i], of->j->product->rank, e->args[0] == of->c->u ? of->c->current->args : e->args[0]->args);
    return NULL;
}

static void settle(Joined *j)
{
    Conditional *c = j->conditional;
    Parting of = {j, c};
    for (Part *q = c->density; q; q = q->next) {
        q->value = ex_map(q->value, part_of, &of);
        if (q->loops.guard) q->loops.guard = ex_map(q->loops.guard, part_of, &of);
    }
    c->var = j->var[0];
    c->current = ex_ref(c->var, c->var->rank, c->current->args);
    for (int i = 0; i < j->n; i++) j->var[i]->summing.joined = j;
}

void find_joined(Graph *g)
{
    for (int i = 0, nvars = g->nvars; i < nvars; i++) {
        Var *set[MOST_JOINED] = {g->vars[i]};
        Joined *best = NULL;
        int n = 1;
        if (!may_be_joined(g, set[0])) continue;
        for (int k = i + 1; k < nvars && n < MOST_JOINED; k++) {
            Var *w = g->vars[k];
            bool near = false;
            for (int q = 0; q < n && may_be_joined(g, w) && have_one_shape(set[0], w); q++) near |= meet(g, set[q], w);
            if (!near || (n == 1 && !is_weighed(g, set[0])) || !is_weighed(g, w)) continue;
            set[n] = w;
            Joined *more = joined_of(g, set, n + 1);
            if (!more) continue;
            best = more;
            n++;
        }
        if (best) settle(best);
    }
}
