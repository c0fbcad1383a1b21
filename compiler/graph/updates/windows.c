// windows.c -- rates of counts change against detection probabilities, with the counts summed over windows.
//
//   before   n[i] ~ poisson(lambda)   y[i,t] ~ binomial(n[i], p)
//   after    also: lambda becomes lambda*exp(c), p becomes p*exp(-c), c drawn with each n[i] summed over L values about its current value;
//            then n[i] is drawn among these values, given c
//
// Data identify lambda*p, the rate of detected counts, well, and lambda itself weakly, by the correlation of the y[i,t] of one n[i]. So
// lambda and p change against each other, and n with lambda. Given n both mix slowly.
//
// b[i] is uniform on {n[i] - (L - 1) h, ..., n[i] - h, n[i]}: an auxiliary that is independent of all else given n[i]. Given b[i], n[i] is
// one of b[i], b[i] + h, ..., b[i] + (L - 1) h, with the weights of its conditional; h does not depend on n. The maps T_c of (lambda, p)
// are a group with the Haar measure dc. So c is drawn from a density proportional to p(T_c x | b) |dT_c x/dx| with the counts summed out,
// and then the counts given c: this leaves p invariant (Liu and Sabatti 2000; van Dyk and Park 2008). The counts need not be summed anew
// for each c: if algebra shows that
//
//   log p(T_c x) - log p(x)  =  f(c) + sum over i of n[i] g_i(c)
//
// the sum over the window is that of w[i,k] exp((n_k - n[i]) g_i(c)), w[i,k] = p(n_k | rest)/p(n[i] | rest), times the density of c at the
// current n[i]. w is computed once, before c is drawn, and the sum is a polynomial in exp(h g_i(c)).
//
// Needs: the updates of the schedule.
// Gives: updates of c (SLICE) with `group_move` set and windows of counts in it, after which T_c is applied.
// Conditions: a rate multiplies an argument of the count's own distribution by exp(c), or adds c to it: a positive real times exp(c), one
// without bounds plus c. A detection parameter multiplies an argument of another statement of the counts by exp(-c): a positive real times
// exp(-c). Or it is the intercept of a logit, a real without bounds that is a term of a sum, and changes so that its own probability is
// multiplied by exp(-c). One of the two is a scalar that has a statement without a condition. Counts are drawn one by one, are independent
// given all else, and enter the changed factors as above. Rows do not name them if rows contribute different terms. The unknowns that
// change enter no recursion and decide no condition of a statement. No routine that takes an array whole reads them. They share no factor
// with unknowns that are summed out, and have no auxiliaries.
#include <math.h>
#include "windows.h"
#include "../terms/var.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/existence.h"
#include "../algebra/polynomial.h"
#include "../algebra/conditionals.h"
#include "group.h"
#include "updates.h"

enum { WINDOW = 32 };     // values of a window
enum { MOST_PAIRS = 8 };  // moves for each count

// v + c, v - c, v*exp(c), v*exp(-c), logit(inv_logit(v)*exp(-c))
typedef enum { ADDS, SUBTRACTS, MULTIPLIES, DIVIDES, LOGIT } How;

typedef struct Moved {
    Var *var;
    How how;
} Moved;

typedef struct Against {
    Group group;
    int n;
    Moved of[2];
} Against;

static bool moves(const Group *x, const Var *v)
{
    const Against *a = (const Against *)x;
    for (int i = 0; i < a->n; i++)
        if (a->of[i].var == v) return true;
    return false;
}

static Expr *coordinate(const Against *a) { return ex_ref(a->group.by, 0, NULL); }

// exp(-v) - (exp(-c) - 1): positive where exp(-c) times the probability is below 1.
static Expr *odds_against(Expr *v, Expr *c) { return ex_sub(ex_call1("exp", ex_neg(v)), ex_call1("expm1", ex_neg(c))); }

static Expr *moved_element(const Against *a, How how, Expr *v)
{
    Expr *c = coordinate(a);
    switch (how) {
    case ADDS: return ex_add2(v, c);
    case SUBTRACTS: return ex_sub(v, c);
    case MULTIPLIES: return ex_mul2(v, ex_call1("exp", c));
    case DIVIDES: return ex_mul2(v, ex_call1("exp", ex_neg(c)));
    case LOGIT: return ex_neg(ex_add2(c, ex_log(odds_against(v, c))));
    }
    return v;
}

// The logarithm of the derivative of what v becomes by v.
static Expr *log_jacobian(const Against *a, How how, Expr *v)
{
    Expr *c = coordinate(a);
    switch (how) {
    case ADDS:
    case SUBTRACTS: return ex_num(0);
    case MULTIPLIES: return c;
    case DIVIDES: return ex_neg(c);
    case LOGIT: return ex_neg(ex_add2(v, ex_log(odds_against(v, c))));
    }
    return ex_num(0);
}

static bool is_open(const Var *v) { return v->lower_number <= 0 && isinf(v->upper_number); }

// Where c keeps v between its ends.
static Expr *between_ends(const Against *a, How how, Expr *v)
{
    const double lo = v->var->lower_number, hi = v->var->upper_number;
    Expr *c = coordinate(a), *to_lo = lo > 0 ? ex_sub(ex_num(log(lo)), ex_log(v)) : ex_num(-INFINITY),
         *to_hi = isfinite(hi) ? ex_sub(ex_num(log(hi)), ex_log(v)) : ex_num(INFINITY);
    switch (how) {
    case ADDS:
    case SUBTRACTS: return ex_num(0);
    case MULTIPLIES: return is_open(v->var) ? ex_num(0) : ex_call3("within", c, to_lo, to_hi);
    case DIVIDES: return is_open(v->var) ? ex_num(0) : ex_call3("within", c, ex_neg(to_hi), ex_neg(to_lo));
    case LOGIT: return ex_call3("within", c, ex_call1("log_inv_logit", v), ex_num(INFINITY));
    }
    return ex_num(0);
}

static Expr *becomes(Group *x, Expr *ref)
{
    const Against *a = (const Against *)x;
    return moved_element(a, a->of[a->of[0].var != ref->var].how, ref);
}

static Against against(Graph *g, Var *by, int n, Moved one, Moved other)
{
    return (Against){.group = {.g = g, .by = by, .moves = moves, .becomes = becomes}, .n = n, .of = {one, other}};
}

// ---- counts ----

static Var *array_of(Graph *g, const char *what, const Var *count, Expr *more)
{
    Var *v = var_hidden(g, arena_printf(g->arena, "%s_%s", what, count->name), count->span, count->rank, count->dim);
    if (more) v->dim[v->rank++] = more;
    return v;
}

static Var *integers_of(Graph *g, const char *what, const Var *count)
{
    Var *v = array_of(g, what, count, NULL);
    v->base = BASE_INT;
    v->discrete = true;
    return v;
}

static bool varies_by_row(const Expr *e, const Loops *l)
{
    for (int k = 0; k < l->n; k++)
        if (ex_mentions_index(e, l->index[k])) return true;
    return false;
}

// A coefficient that all rows of a part have alike, times their number, which is made before c is tried.
static Expr *times_rows(Graph *g, Window *w, const Part *q, Expr *coefficient)
{
    int at = 0;
    while (at < w->nrows && w->of_rows[at] != q) at++;
    if (at == w->nrows) {
        w->of_rows[at] = q;
        w->rows[w->nrows++] = integers_of(g, "rows", w->count);
    }
    Expr *element[MAX_RANK];
    for (int k = 0; k < w->count->rank; k++) element[k] = ex_index(w->conditional->element[k]);
    return ex_mul2(ex_ref(w->rows[at], w->count->rank, element), coefficient);
}

// What T_c adds to the coefficient of an element of the count, in its log density; NULL: a condition is not met, or nothing.
static Expr *tilt_of(Against *a, Window *w)
{
    Graph *g = a->group.g;
    Var *count = w->count;
    const Conditional *c = w->conditional;
    Expr *all = ex_num(0);
    int nparts = 0;
    for (const Part *q = c->density; q; q = q->next) nparts++;
    w->of_rows = NEW_N(g->arena, const Part *, nparts + 1);
    w->rows = NEW_N(g->arena, Var *, nparts + 1);
    Conditional *scattered = conditional_scattered(g, count, false);
    for (const Part *q = c->density; q; q = q->next) {
        if (group_mentions(&a->group, q->loops.guard)) return NULL;
        for (int i = 0; i < q->loops.n; i++)
            if (group_mentions(&a->group, q->loops.index[i]->lo) || group_mentions(&a->group, q->loops.index[i]->hi)) return NULL;
        if (!group_mentions(&a->group, q->value)) continue;
        Expr *now = group_moved(&a->group, q->value);
        if (a->group.failed) return NULL;
        const Statistics s = statistics(g->arena, ex_sub(now, q->value), c->u);
        if (s.many) return NULL;
        for (int i = 0; i < s.n; i++) {
            if (s.item[i].statistic != c->u || ex_mentions(s.item[i].coefficient, c->u->var)) return NULL;
            Expr *sum = s.item[i].coefficient;
            if (q->loops.n && q->loops.guard && !varies_by_row(sum, &q->loops)) {
                if (ex_mentions(q->loops.guard, c->u->var)) return NULL;
                all = ex_add2(all, times_rows(g, w, q, sum));
                continue;
            }
            for (const Part *r = scattered->density; r; r = r->next)
                if (r->scatter && r->factor == q->factor) return NULL;
            if (q->loops.guard) sum = ex_call3("if_else", q->loops.guard, sum, ex_num(0));
            for (int k = q->loops.n - 1; k >= 0; k--)
                sum = ex_reduce("sum", q->loops.index[k], q->loops.index[k]->lo, q->loops.index[k]->hi, sum);
            all = ex_add2(all, sum);
        }
    }
    return ex_mentions(all, a->group.by) ? all : NULL;
}

// Whether a factor holds two of the counts.
static bool meet(Graph *g, Var *v, Var *w)
{
    const Reading of = factors_of(g, v);
    for (int q = 0; q < of.n; q++)
        if (factor_counts_at(of.factor[q], 0, false) && factor_mentions(of.factor[q], w)) return true;
    return false;
}

// Arrays that nothing reads.
static void give_back(const Window *w)
{
    for (int i = 0; i < w->nrows; i++) w->rows[i]->kind = VAR_ELEMENT;
    for (int i = 0; w->weights && i < 3; i++) ((Var *[]){w->below, w->apart, w->weights})[i]->kind = VAR_ELEMENT;
}

static bool add_window(Against *a, GroupMove *o, Var *count)
{
    Graph *g = a->group.g;
    if (count->rank == MAX_RANK || !step_of_count(g, count) || (count->lower && ex_unknown(count->lower)) ||
        (count->upper && ex_unknown(count->upper)))
        return false;
    for (int i = 0; i < o->nwindows; i++)
        if (meet(g, count, o->window[i].count)) return false;
    Conditional *c = conditional_density(g, count, false);
    if (c->recursion || c->closed || c->whole || c->nbatch < count->rank) return false;
    Window *w = &o->window[o->nwindows];
    *w = (Window){.count = count, .conditional = c};
    w->tilt = tilt_of(a, w);
    if (w->tilt) o->nwindows++;
    else give_back(w);
    return w->tilt;
}

// The arrays of a window, once the move is made; the log of what its sum is, as a factor over the elements.
static Factor *factor_of_window(Graph *g, Window *w, const Factor *like)
{
    const Var *v = w->count;
    w->below = integers_of(g, "below", v);
    w->apart = integers_of(g, "apart", v);
    w->weights = array_of(g, "weights", v, ex_num(WINDOW));
    Loops p = loops_of_indices(w->conditional->element, v->rank, var_domain(g, v, w->conditional->element));
    Index *k = index_new(intern("k"), ex_num(1), ex_num(WINDOW));
    Expr *at[MAX_RANK];
    for (int i = 0; i < v->rank; i++) at[i] = ex_index(p.index[i]);
    Expr *below = ex_ref(w->below, v->rank, at), *weights = ex_ref(w->weights, v->rank, at);
    at[v->rank] = ex_index(k);
    w->value = k;
    w->weight = ex_ref(w->weights, v->rank + 1, at);
    w->step = ex_mul2(ex_ref(w->apart, v->rank, at), w->tilt);
    return factor_of_ends(g, like, p,
                          ex_sub(ex_call3("log_tilted_sum", weights, k->hi, w->step), ex_mul2(ex_add2(below, ex_num(1)), w->step)));
}

// ---- the law of c ----

static bool factors_of_c(Against *a, GroupMove *o, Reading *out)
{
    Graph *g = a->group.g;
    Var *block[] = {a->of[0].var, a->of[1].var};
    const Reading of = factors_of_block(g, block, 2);
    out->n = 0;
    out->factor = NEW_N(g->arena, Factor *, of.n + 2 + o->nwindows);
    for (int q = 0; q < of.n; q++) {
        Factor *f = of.factor[q];
        if (!factor_counts_at(f, 0, false)) continue;
        if (decide_instances(f, group_moves, a) || f->function || group_mentions(&a->group, f->least) || group_mentions(&a->group, f->most))
            return false;
        if (!group_mentions(&a->group, f->log_density)) continue;
        Expr *e = group_moved(&a->group, f->log_density);
        if (a->group.failed) return false;
        if (ex_mentions(e, a->group.by)) out->factor[out->n++] = factor_of_move(g, f, e);
    }
    if (!out->n) return false;
    const Factor *like = out->factor[0];
    for (int i = 0; i < 2; i++) {  // the Jacobian, and ends
        Index *index[MAX_RANK];
        Expr *v = var_element(g, a->of[i].var, index), *e = ex_add2(log_jacobian(a, a->of[i].how, v), between_ends(a, a->of[i].how, v));
        if (!ex_mentions(e, a->group.by)) continue;
        out->factor[out->n++] = factor_of_ends(g, like, loops_of_indices(index, v->nargs, var_domain(g, a->of[i].var, index)), e);
    }
    for (int i = 0; i < o->nwindows; i++) out->factor[out->n++] = factor_of_window(g, &o->window[i], like);
    return true;
}

static bool is_auxiliary(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_AUXILIARY;
}

static bool may_move(Graph *g, const Var *v)
{
    if (!is_plain_real(v) || v->kind == VAR_AUXILIARY || v->part_of || is_switched_off(g, v, SETTING_GROUP_MOVE) || is_of_series(g, v) ||
        !update_in_sweep(g, v))
        return false;
    const Reading of = factors_of(g, v);
    for (int q = 0; q < of.n; q++)
        if (factor_counts_at(of.factor[q], 0, false) && ex_any_var(of.factor[q]->log_density, is_auxiliary, NULL)) return false;
    return true;
}

static Update *update_of_pair(Graph *g, Var *count, Moved rate, Moved seen)
{
    Var *by = var_hidden(g, arena_printf(g->arena, "shift_%s_%s", rate.var->name, seen.var->name), rate.var->span, 0, NULL);
    Against a = against(g, by, 2, rate, seen);
    GroupMove *o = group_move_new(g, by, true, 2);
    o->window = NEW_N(g->arena, Window, g->nvars);
    const int nvars = g->nvars;
    bool good = add_window(&a, o, count);
    for (int i = 0; i < nvars && good; i++)
        if (g->vars[i] != count) add_window(&a, o, g->vars[i]);
    Reading of = {0};
    Conditional *c = law_apart(g, by, good && factors_of_c(&a, o, &of) ? &of : NULL, false);
    for (int i = 0; i < o->nwindows && !c; i++) give_back(&o->window[i]);
    if (!c) return NULL;
    for (int i = 0; i < 2; i++) {
        Carried *to = group_move_carry(g, o, a.of[i].var);
        to->value = moved_element(&a, a.of[i].how, to->element);
        to->log_jacobian = log_jacobian(&a, a.of[i].how, to->element);
    }
    return group_update(g, UPDATE_SLICE, rate.var->span, c, o, NULL,
                        "data identify the product of a count and its rate, not each of the two");
}

// ---- which pairs there are ----

// An argument of f that v + c, or v*exp(c), changes: whether it, or its logarithm or its logit, is what it was and c.
typedef enum { NONE, ITSELF, LOGARITHM, ITS_LOGIT } Grows;

static Grows grows_by_c(Graph *g, const Factor *f, Moved of, Var *by)
{
    Against alone = against(g, by, 1, of, of), *a = &alone;
    const Expr *c = coordinate(a);
    for (int k = 0; k < f->nargs; k++) {
        Expr *e = f->args[k];
        if (ex_rank(e) || !group_mentions(&a->group, e)) continue;
        Expr *now = group_moved(&a->group, e);
        if (a->group.failed) continue;
        if (ex_sub(now, e) == c) return ITSELF;
        if (ex_positive(e) && ex_sub(ex_log(now), ex_log(e)) == c) return LOGARITHM;
        if (e->kind == EX_CALL && e->fn == FN_inv_logit && now->kind == EX_CALL && now->fn == FN_inv_logit &&
            ex_sub(now->args[0], e->args[0]) == c)
            return ITS_LOGIT;
    }
    return NONE;
}

// How v would move as a rate of the count, or as what sees it; false: it is neither.
static bool found(Graph *g, Var *count, Var *v, Var *c, bool rate, How *how)
{
    const Reading of = factors_of(g, count);
    for (int q = 0; q < of.n; q++) {
        const Factor *f = of.factor[q];
        const bool own = var_drawn(f) == count;
        if (!factor_counts_at(f, 0, false) || own != rate || !f->dist || !f->dist->discrete) continue;
        if (is_unbounded(v)) {
            const Grows grows = grows_by_c(g, f, (Moved){v, ADDS}, c);
            *how = rate ? ADDS : grows == LOGARITHM ? SUBTRACTS : LOGIT;
            if (grows != NONE) return true;
        } else if (v->lower_number >= 0 && grows_by_c(g, f, (Moved){v, MULTIPLIES}, c) == LOGARITHM) {
            *how = rate ? MULTIPLIES : DIVIDES;
            return true;
        }
    }
    return false;
}

// A scalar that a statement draws in any case.
static bool is_there(Graph *g, const Var *v)
{
    Index *none[MAX_RANK];
    return !v->rank && !var_domain(g, v, none);
}

// Those of the fewest subscripts: effects of sites need not move where their mean does.
static int find_moved(Graph *g, Var *count, Var *c, bool rate, Moved *out)
{
    int n = 0;
    for (int rank = 0; rank < MAX_RANK && !n; rank++)
        for (int i = 0; i < g->nvars && n < MOST_PAIRS; i++) {
            Var *v = g->vars[i];
            How how;
            if (v->rank == rank && may_move(g, v) && found(g, count, v, c, rate, &how)) out[n++] = (Moved){v, how};
        }
    return n;
}

bool find_windows(Graph *g)
{
    Update **last = updates_of_sweep(g);
    Var *c = NULL;
    for (int i = 0, n = g->nvars; i < n; i++) {
        Var *count = g->vars[i];
        if (!step_of_count(g, count)) continue;
        if (!c) c = var_unique(g, "shift", VAR_ELEMENT);
        Moved rate[MOST_PAIRS], seen[MOST_PAIRS];
        const int nrates = find_moved(g, count, c, true, rate), nseen = nrates ? find_moved(g, count, c, false, seen) : 0;
        for (int r = 0; r < nrates; r++)
            for (int k = 0; k < nseen && r * nseen + k < MOST_PAIRS; k++) {
                if (rate[r].var == seen[k].var || !(is_there(g, rate[r].var) || is_there(g, seen[k].var))) continue;
                bool made = false;  // for another count
                for (const Update *s = g->updates; s; s = s->next)
                    made |= s->group_move && s->group_move->nwindows && s->group_move->moved[0].var == rate[r].var &&
                            s->group_move->moved[1].var == seen[k].var;
                Update *s = made ? NULL : update_of_pair(g, count, rate[r], seen[k]);
                update_insert(&last, s);
            }
    }
    return true;
}
