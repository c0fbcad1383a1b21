// windows.c -- rates of counts against probabilities of seeing them, with the counts summed over windows.
//
//   before   n[i] ~ poisson(lambda)   y[i,t] ~ binomial(n[i], p)
//   after    also: lambda becomes lambda*exp(c), p becomes p*exp(-c), c drawn with each n[i] summed over L values about where it stands, among which it is drawn after it, given c
//
// Data tell lambda*p, the rate of what is seen, well, and what of it is the rate by how y[i,t] of one n[i] are alike: lambda and p move against each other, and n with lambda. Given n neither moves further than n tells of it.
//
// b[i] is uniform on {n[i] - (L - 1) h, ..., n[i] - h, n[i]}: an auxiliary that is independent of all else given n[i], given which n[i] is one of b[i], b[i] + h, ..., b[i] + (L - 1) h, with the weights that its conditional has there; h does not depend on n. The maps T_c of (lambda, p) are a group, whose Haar
// measure is dc, so c drawn from a density proportional to p(T_c x | b) |dT_c x/dx| with the counts summed out, and then the counts given it, leave p invariant (Liu and Sabatti 2000; van Dyk and Park 2008). The counts need not be summed anew for each c: where
//
//   log p(T_c x) - log p(x)  =  f(c) + sum over i of n[i] g_i(c)                     which is seen by algebra
//
// the sum over the window is that of w[i,k] exp((n_k - n[i]) g_i(c)), w[i,k] = p(n_k | rest)/p(n[i] | rest), times the density of c with n[i] as it is. w is made once, before c is tried, and the sum is a polynomial in exp(h g_i(c)).
//
// Needs: the steps of the schedule.     Gives: steps of c (SLICE) with `orbit` set and windows of counts in it, after which T_c is applied.
// Conditions: a rate is what makes an argument of the count's own distribution exp(c) times what it was, or adds c to it: a positive real by exp(c), one without bounds by + c. What sees counts makes an argument of another statement that holds them exp(-c) times what it
// was: a positive real by exp(-c); or is the intercept of a logit, a real without bounds that stands by itself in a sum, which moves such that its own probability becomes exp(-c) times what it was. One of the two is a scalar that has a statement without a condition. Counts are drawn one by one, are independent given all else, and
// stand as above in what moves; rows do not name them where what they add is not the same for all rows. What moves enters no recursion, decides no condition of a statement, is read by no routine that takes an array whole, meets nothing that is summed out, and has no auxiliaries.
#include <math.h>
#include <string.h>
#include "windows.h"
#include "../conditional.h"
#include "../step.h"
#include "../terms/var.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/existence.h"
#include "../algebra/polynomial.h"
#include "../algebra/conditionals.h"
#include "steps.h"

enum { WINDOW = 32 };                    // values of a window
enum { MOST_PAIRS = 8 };                 // moves for each count

typedef enum { ADDS, SUBTRACTS, MULTIPLIES, DIVIDES, LOGIT } How;         // v + c, v - c, v*exp(c), v*exp(-c), logit(inv_logit(v)*exp(-c))

typedef struct Moved { Var *var; How how; } Moved;

typedef struct Against {
    Graph *g;
    int    n;
    Moved  of[2];
    Var   *by;                           // c
    bool   failed;
} Against;

static bool moves(const Var *v, void *with)
{
    const Against *a = with;
    for (int i = 0; i < a->n; i++)
        if (a->of[i].var == v) return true;
    return false;
}

static bool mentions_moved(const Expr *e, const Against *a) { return e && ex_any_var(e, moves, (void *)a); }
static Expr *coordinate(const Against *a) { return ex_ref(a->by, 0, NULL); }

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
    case ADDS: case SUBTRACTS: return ex_num(0);
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
    Expr *c = coordinate(a), *to_lo = lo > 0 ? ex_sub(ex_num(log(lo)), ex_log(v)) : ex_num(-INFINITY), *to_hi = isfinite(hi) ? ex_sub(ex_num(log(hi)), ex_log(v)) : ex_num(INFINITY);
    switch (how) {
    case ADDS: case SUBTRACTS: return ex_num(0);
    case MULTIPLIES: return is_open(v->var) ? ex_num(0) : ex_call3("within", c, to_lo, to_hi);
    case DIVIDES: return is_open(v->var) ? ex_num(0) : ex_call3("within", c, ex_neg(to_hi), ex_neg(to_lo));
    case LOGIT: return ex_call3("within", c, ex_call1("log_inv_logit", v), ex_num(INFINITY));
    }
    return ex_num(0);
}

// T_c x in place of x.
static Expr *move(Expr *e, void *with)
{
    Against *a = with;
    if (a->failed || !mentions_moved(e, a)) return e;
    if (e->kind != EX_REF) {
        a->failed |= e->kind == EX_ARRAY || e->kind == EX_AT || (e->kind == EX_REDUCE && (mentions_moved(e->args[0], a) || mentions_moved(e->args[1], a)));
        return a->failed ? e : NULL;
    }
    a->failed |= e->nargs < e->var->rank || !moves(e->var, a);       // read whole, or in a subscript
    for (int k = 0; k < e->nargs; k++) a->failed |= mentions_moved(e->args[k], a);
    if (a->failed) return e;
    for (int i = 0; i < a->n; i++)
        if (a->of[i].var == e->var) return moved_element(a, a->of[i].how, e);
    return e;
}

static Expr *moved(Against *a, Expr *e)
{
    a->failed = false;
    return ex_map(e, move, a);
}

// ---- counts ----

static Var *array_of(Graph *g, const char *what, const Var *count, Expr *more)
{
    Var *v = var_unique(g, arena_printf(g->arena, "%s_%s", what, count->name), VAR_AUXILIARY);
    v->hidden = true;
    v->span = count->span;
    v->rank = count->rank;
    memcpy(v->dim, count->dim, sizeof v->dim);
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
    Graph *g = a->g;
    Var *count = w->count;
    const Conditional *c = w->conditional;
    Expr *all = ex_num(0);
    int nparts = 0;
    for (const Part *q = c->density; q; q = q->next) nparts++;
    w->of_rows = NEW_N(g->arena, const Part *, nparts + 1);
    w->rows = NEW_N(g->arena, Var *, nparts + 1);
    Conditional *scattered = conditional_scattered(g, count, false);
    for (const Part *q = c->density; q; q = q->next) {
        if (q->loops.guard && mentions_moved(q->loops.guard, a)) return NULL;
        for (int i = 0; i < q->loops.n; i++)
            if (mentions_moved(q->loops.index[i]->lo, a) || mentions_moved(q->loops.index[i]->hi, a)) return NULL;
        if (!mentions_moved(q->value, a)) continue;
        Expr *now = moved(a, q->value);
        if (a->failed) return NULL;
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
            for (int k = q->loops.n - 1; k >= 0; k--) sum = ex_reduce("sum", q->loops.index[k], q->loops.index[k]->lo, q->loops.index[k]->hi, sum);
            all = ex_add2(all, sum);
        }
    }
    return ex_mentions(all, a->by) ? all : NULL;
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

static bool add_window(Against *a, Orbit *o, Var *count)
{
    Graph *g = a->g;
    if (count->rank == MAX_RANK || !step_of_count(g, count) || (count->lower && ex_unknown(count->lower)) || (count->upper && ex_unknown(count->upper))) return false;
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
    Plates p = {.n = v->rank, .index = index_list(g->arena, w->conditional->element, v->rank, 0), .guard = var_domain(g, v, w->conditional->element)};
    Index *k = index_new(intern("k"), ex_num(1), ex_num(WINDOW));
    Expr *at[MAX_RANK];
    for (int i = 0; i < v->rank; i++) at[i] = ex_index(p.index[i]);
    Expr *below = ex_ref(w->below, v->rank, at), *weights = ex_ref(w->weights, v->rank, at);
    at[v->rank] = ex_index(k);
    w->value = k;
    w->weight = ex_ref(w->weights, v->rank + 1, at);
    w->step = ex_mul2(ex_ref(w->apart, v->rank, at), w->tilt);
    Factor *f = arena_copy(g->arena, like, sizeof *f);
    f->plates = p;
    f->log_density = ex_sub(ex_call3("log_tilted_sum", weights, k->hi, w->step), ex_mul2(ex_add2(below, ex_num(1)), w->step));
    f->value = f->if_missing = f->least = f->most = NULL;
    f->dist = NULL;
    f->observed = false;
    f->next = NULL;
    return f;
}

// ---- the law of c ----

static bool factors_of_c(Against *a, Orbit *o, Reading *out)
{
    Graph *g = a->g;
    Var *block[] = {a->of[0].var, a->of[1].var};
    const Reading of = factors_of_block(g, block, 2);
    out->n = 0;
    out->factor = NEW_N(g->arena, Factor *, of.n + 2 + o->nwindows);
    for (int q = 0; q < of.n; q++) {
        Factor *f = of.factor[q];
        if (!factor_counts_at(f, 0, false)) continue;
        if (decide_instances(f, moves, a) || f->function || mentions_moved(f->least, a) || mentions_moved(f->most, a)) return false;
        if (!mentions_moved(f->log_density, a)) continue;
        Expr *e = moved(a, f->log_density);
        if (a->failed) return false;
        if (!ex_mentions(e, a->by)) continue;
        Factor *c = out->factor[out->n++] = arena_copy(g->arena, f, sizeof *f);
        c->log_density = e;
        c->value = c->if_missing = NULL;
        c->dist = NULL;
        c->next = NULL;
    }
    if (!out->n) return false;
    const Factor *like = out->factor[0];
    for (int i = 0; i < 2; i++) {                // the Jacobian, and ends
        Index *index[MAX_RANK];
        Expr *v = var_element(g, a->of[i].var, index), *e = ex_add2(log_jacobian(a, a->of[i].how, v), between_ends(a, a->of[i].how, v));
        if (!ex_mentions(e, a->by)) continue;
        Factor *f = out->factor[out->n++] = arena_copy(g->arena, like, sizeof *f);
        f->plates = (Plates){.n = v->nargs, .index = index_list(g->arena, index, v->nargs, 0), .guard = var_domain(g, a->of[i].var, index)};
        f->log_density = e;
        f->least = f->most = NULL;
        f->observed = false;
    }
    for (int i = 0; i < o->nwindows; i++) out->factor[out->n++] = factor_of_window(g, &o->window[i], like);
    return true;
}

// Steps of a variable that moves: in every sweep, or by steps in place of moves along gradients, which may as well follow.
static bool is_drawn_in_sweep(const Graph *g, const Var *v)
{
    for (const Series *e = g->series; e; e = e->next)
        if (series_follows(e, v)) return false;
    const Step *s = step_that_draws(g, v);
    return s && s->kind != STEP_NUTS && (s->when == EVERY_SWEEP || s->when == WITHOUT_GRADIENTS) && !s->over_sum;
}

static bool is_auxiliary(const Var *v, void *with) { (void)with; return v->kind == VAR_AUXILIARY; }

static bool may_move(Graph *g, const Var *v)
{
    if (!is_plain_real(v) || v->kind == VAR_AUXILIARY || v->part_of || is_switched_off(g, v, SETTING_ORBIT) || !is_drawn_in_sweep(g, v)) return false;
    const Reading of = factors_of(g, v);
    for (int q = 0; q < of.n; q++)
        if (factor_counts_at(of.factor[q], 0, false) && ex_any_var(of.factor[q]->log_density, is_auxiliary, NULL)) return false;
    return true;
}

static Step *step_of_pair(Graph *g, Var *count, Moved rate, Moved seen)
{
    Against a = {.g = g, .n = 2, .of = {rate, seen}};
    a.by = var_unique(g, arena_printf(g->arena, "shift_%s_%s", rate.var->name, seen.var->name), VAR_AUXILIARY);
    a.by->hidden = true;
    a.by->span = rate.var->span;
    Orbit *o = NEW(g->arena, Orbit);
    *o = (Orbit){.by = a.by, .added = true, .n = 2, .moved = NEW_N(g->arena, Carried, 2), .window = NEW_N(g->arena, Window, g->nvars)};
    const int nvars = g->nvars;
    bool good = add_window(&a, o, count);
    for (int i = 0; i < nvars && good; i++)
        if (g->vars[i] != count) add_window(&a, o, g->vars[i]);
    Reading of = {0};
    Conditional *c = good && factors_of_c(&a, o, &of) ? conditional_given(g, a.by, &of, false) : NULL;
    if (!c || c->recursion || c->whole) {
        a.by->kind = VAR_ELEMENT;
        for (int i = 0; i < o->nwindows; i++) give_back(&o->window[i]);
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        Carried *to = &o->moved[i];
        *to = (Carried){.var = a.of[i].var};
        to->element = var_element(g, to->var, to->index);
        to->value = moved_element(&a, a.of[i].how, to->element);
        to->log_jacobian = log_jacobian(&a, a.of[i].how, to->element);
    }
    Step *s = NEW(g->arena, Step);
    *s = (Step){.kind = STEP_SLICE, .span = rate.var->span, .nblock = 1, .block = arena_copy(g->arena, &a.by, sizeof a.by), .conditional = c, .orbit = o,
                .reason = "data tell how many are seen, and little of whether these are many of few or few of many"};
    return s;
}

// ---- which pairs there are ----

static bool is_free(const Var *v) { return isinf(v->lower_number) && isinf(v->upper_number); }

// An argument of f that v + c, or v*exp(c), changes: whether it, or its logarithm or its logit, is what it was and c.
typedef enum { NONE, ITSELF, LOGARITHM, ITS_LOGIT } Grows;

static Grows grows_by_c(Against *a, const Factor *f)
{
    const Expr *c = coordinate(a);
    for (int k = 0; k < f->nargs; k++) {
        Expr *e = f->args[k];
        if (ex_rank(e) || !mentions_moved(e, a)) continue;
        Expr *now = moved(a, e);
        if (a->failed) continue;
        if (ex_sub(now, e) == c) return ITSELF;
        if (ex_positive(e) && ex_sub(ex_log(now), ex_log(e)) == c) return LOGARITHM;
        if (e->kind == EX_CALL && e->fn == FN_inv_logit && now->kind == EX_CALL && now->fn == FN_inv_logit && ex_sub(now->args[0], e->args[0]) == c) return ITS_LOGIT;
    }
    return NONE;
}

// How v would move as a rate of the count, or as what sees it; false: it is neither.
static bool found(Graph *g, Var *count, Var *v, Var *c, bool rate, How *how)
{
    const Reading of = factors_of(g, count);
    for (int q = 0; q < of.n; q++) {
        const Factor *f = of.factor[q];
        const bool own = f->value && f->value->kind == EX_REF && f->value->var == count;
        if (!factor_counts_at(f, 0, false) || own != rate || !f->dist || !f->dist->discrete) continue;
        if (is_free(v)) {
            const Grows grows = grows_by_c(&(Against){.g = g, .n = 1, .of = {{v, ADDS}}, .by = c}, f);
            *how = rate ? ADDS : grows == LOGARITHM ? SUBTRACTS : LOGIT;
            if (grows != NONE) return true;
        } else if (v->lower_number >= 0 && grows_by_c(&(Against){.g = g, .n = 1, .of = {{v, MULTIPLIES}}, .by = c}, f) == LOGARITHM) {
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
    Step **last = &g->steps;
    for (Step **at = &g->steps; *at; at = &(*at)->next)
        if ((*at)->when != WITH_GRADIENTS) last = &(*at)->next;
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
                bool made = false;               // for another count
                for (const Step *s = g->steps; s; s = s->next)
                    made |= s->orbit && s->orbit->nwindows && s->orbit->moved[0].var == rate[r].var && s->orbit->moved[1].var == seen[k].var;
                Step *s = made ? NULL : step_of_pair(g, count, rate[r], seen[k]);
                if (!s) continue;
                s->next = *last;
                *last = s;
                last = &s->next;
            }
    }
    return true;
}
