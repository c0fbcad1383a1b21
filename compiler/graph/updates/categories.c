// categories.c -- the coefficients of a softmax, one category after the other: each category is drawn with Polya-Gamma latents of its own.
//
//   before   y[i] ~ categorical_logit(X[i] * B):     sum(j, X[i,j]*B[j,y[i]]) - log_sum_exp(k, sum(j, X[i,j]*B[j,k]))
//   after    for c in 1:K     eta[i,k] = sum(j, X[i,j]*B[j,k])     C[i] = log_sum_exp(k other than c, eta[i,k])
//                             w[i] ~ polya_gamma(1, eta[i,c] - C[i])
//                             B[,c] ~ joint normal:     (y[i] == c)*eta[i,c] - (eta[i,c] - C[i])/2 - w[i]*(eta[i,c] - C[i])^2/2
//
// As a function of eta[i,c] alone, -n*log_sum_exp(eta[i,]) is -n*C[i] - n*log(1 + exp(eta[i,c] - C[i])). That is a logistic likelihood with
// an offset free of column c (Polson, Scott and Windle 2013, section 3.3, with C[i] subtracted). The latents are drawn anew for each
// category, given its offset at that time, and are not stored: (w, B[,c]) is one draw from a joint density whose margin over w is the
// model's conditional of B[,c] (docs/conditionals.md, section 7).
//
// Categories may be an index of variables, or be listed: a variable that enters one category alone is drawn once. A logarithm of a sum of
// exponentials that is written out is a softmax, too.
//
// Needs: augment done.     Gives: an update of kind UPDATE_CATEGORIES, which draws one or more variables by category.
#include <math.h>
#include <string.h>
#include "categories.h"
#include "../update.h"
#include "../terms/var.h"
#include "../terms/ranges.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../algebra/polynomial.h"
#include "../algebra/block_terms.h"
#include "../rewrite/augment.h"

// ---- which variables have categories ----

// The one subscript of v that is the index k, in every reference to v in e; -1: there is none, or not the same everywhere.
typedef struct SoftmaxSearch {
    const Index *k;
    int at;
    bool other;
} SoftmaxSearch;

static void find_subscript(Expr *ref, void *with)
{
    SoftmaxSearch *f = with;
    int at = -1, times = 0;
    for (int i = 0; i < ref->nargs; i++)
        if (ex_mentions_index(ref->args[i], f->k)) {
            times++;
            if (ref->args[i]->kind == EX_INDEX) at = i;
        }
    if (ref->nargs < ref->var->rank || times != 1 || at < 0 || (f->at >= 0 && f->at != at)) f->other = true;
    f->at = at;
}

static int category_subscript(Expr *e, const Var *v, const Index *k)
{
    SoftmaxSearch f = {k, -1, false};
    ex_references(e, v, find_subscript, &f);
    return f.other ? -1 : f.at;
}

static bool may_be_coefficient(const Graph *g, const Var *v)
{
    const Request *asked = request_of(g, v);
    return (v->kind == VAR_PARAMETER || v->kind == VAR_LATENT) && v->base == BASE_REAL && !v->discrete &&
           v->constraint == CONSTRAINT_NONE && !isfinite(v->lower_number) && !isfinite(v->upper_number) && !v->parts &&
           !v->summing.summed && (!asked || asked->method == METHOD_GIBBS);
}

// ---- the sums that a softmax is made of ----

// The term exp(x), times a positive number: x and the number's log; NULL: another.
static Expr *exponent_of(Expr *e)
{
    if (e->kind == EX_NUM) return e->number > 0 ? ex_log(e) : NULL;
    if (e->kind == EX_CALL && e->fn == FN_exp) return e->args[0];
    if (e->kind != EX_MUL || e->nargs != 2 || e->args[0]->kind != EX_NUM || !(e->args[0]->number > 0)) return NULL;
    Expr *x = exponent_of(e->args[1]);
    return x ? ex_add2(ex_log(e->args[0]), x) : NULL;
}

// e as log_sum_exp over categories: itself, or log(1 + exp(a) + exp(b)), log(1 + sum(k in 1:K, exp(eta[k]))), whose terms become
// categories, those of the sum first. NULL: something else. One exponential beside a number is no softmax, but a logistic function.
static Expr *log_sum_of(const Expr *e)
{
    enum { MOST = 16 };
    if (e->kind == EX_REDUCE && e->fn == FN_log_sum_exp) return (Expr *)e;
    if (e->kind != EX_CALL || (e->fn != FN_log && e->fn != FN_log1p)) return NULL;
    Expr *terms = e->fn == FN_log1p ? ex_add2(ex_num(1), e->args[0]) : e->args[0], *of[MOST], *sum = NULL;
    int n = 0, exponentials = 0;
    for (int i = 0; i < (terms->kind == EX_ADD ? terms->nargs : 1); i++) {
        Expr *t = terms->kind == EX_ADD ? terms->args[i] : terms;
        if (t->kind == EX_REDUCE && t->fn == FN_sum && !sum && ex_is_num(t->args[0], 1)) {
            sum = t;
            continue;
        }
        Expr *x = exponent_of(t);
        if (!x || n == MOST) return NULL;
        exponentials += t->kind != EX_NUM;
        of[n++] = x;
    }
    if (!sum && exponentials < 2) return NULL;
    Expr *hi = sum ? sum->args[1] : ex_num(0);
    Index *k = index_new(intern("k"), ex_num(1), ex_add2(hi, ex_num(n)));
    Expr *at = ex_index(k), *value = ex_num(0);
    for (int i = n - 1; i >= 0; i--)
        value = i == n - 1 ? of[i] : ex_call3("if_else", ex_call2("==", at, ex_add2(hi, ex_num(i + 1))), of[i], value);
    if (sum) {
        Expr *x = exponent_of(ex_open(sum, k));
        if (!x) return NULL;
        value = n ? ex_call3("if_else", ex_call2("<=", at, hi), x, value) : x;
    }
    return ex_reduce("log_sum_exp", k, k->lo, k->hi, value);
}

// Element c of such a sum.
static Expr *category(const Expr *sum, int c)
{
    Index *k = index_new(sum->index->name, sum->args[0], sum->args[1]);
    return ex_replace_index(ex_open(sum, k), k, ex_num(c));
}

enum { MOST_LISTED = 16 };

static bool is_listed(const Expr *sum)
{
    return sum->args[0]->kind == EX_NUM && sum->args[1]->kind == EX_NUM && sum->args[1]->number - sum->args[0]->number < MOST_LISTED;
}

// Which categories have coefficients: the range of the loop that their statements have in common; otherwise all of the subscript's.
static void range_of_categories(Graph *g, const Var *v, int at, Expr **lo, Expr **hi)
{
    bool same = true;
    *lo = *hi = NULL;
    for (const Factor *f = g->factors; f && same; f = f->next) {
        if (!f->value || f->value->kind != EX_REF || f->value->var != v) continue;
        const Expr *s = at < f->value->nargs ? f->value->args[at] : NULL;
        same = s && s->kind == EX_INDEX && !s->index->height && (!*lo || (s->index->lo == *lo && s->index->hi == *hi));
        if (!same) continue;
        *lo = s->index->lo;
        *hi = s->index->hi;
        for (int i = 0; i < f->plates.n; i++)
            same &= !ex_mentions_index(*lo, f->plates.index[i]) && !ex_mentions_index(*hi, f->plates.index[i]);
    }
    if (same && *lo && !ex_unknown(*lo) && !ex_unknown(*hi)) return;
    *lo = ex_num(1);
    *hi = v->dim[at];
}

// ---- a factor as a function of the columns ----

typedef struct TakingCategory {
    Graph *g;
    Categories *t;
    Expr *current;     // the category that is being drawn
    Softmax *softmax;  // of this factor, in a list that other factors' precede
} TakingCategory;

static int member_of(const Categories *t, const Var *v)
{
    for (int i = 0; i < t->n; i++)
        if (t->var[i] == v) return i;
    return -1;
}

static bool test_member(const Var *v, void *with) { return member_of(with, v) >= 0; }
static bool mentions_members(const Expr *e, const Categories *t) { return ex_any_var(e, test_member, (void *)t); }

static Expr *column_of(const Categories *t, int member, const Expr *ref)
{
    Expr *at[MAX_RANK];
    int n = 0;
    for (int k = 0; k < ref->nargs; k++)
        if (k != t->at[member]) at[n++] = ref->args[k];  // all of them, of a variable of one category
    return ex_ref(t->column[member], n, at);
}

// Conditions on the category that is being drawn and on indices of loops, as far as their ranges decide them.
static Expr *decided(Expr *e, void *with)
{
    const TakingCategory *k = with;
    if (e->kind == EX_CALL && e->nargs == 2 && (e->fn == FN_AND || e->fn == FN_OR)) {
        // the one that decides it alone
        Expr *a = ex_map(e->args[0], decided, with), *b = ex_map(e->args[1], decided, with), *none = ex_num(e->fn == FN_OR);
        if (a == none || b == none) return none;
        return a->kind == EX_NUM ? b : b->kind == EX_NUM ? a : a == e->args[0] && b == e->args[1] ? NULL : ex_call2(e->name, a, b);
    }
    if (e->kind == EX_CALL && e->fn == FN_LE) {
        const Expr *low = e->args[0], *high = e->args[1];
        if (high->kind == EX_INDEX && high->index->lo && high->index->lo == low) return ex_num(1);
        if (low->kind == EX_INDEX && low->index->hi && low->index->hi == high) return ex_num(1);
    }
    if (e->kind != EX_CALL || e->nargs != 2 || !(e->args[0] == k->current || e->args[1] == k->current) || e->args[0] == e->args[1])
        return NULL;
    const bool left = e->args[0] == k->current;
    Expr *other = e->args[left];
    // positive: other lies below, above all categories
    const Expr *below = ex_sub(k->t->lo, other), *above = ex_sub(other, k->t->hi);
    const bool under = below->kind == EX_NUM && below->number > 0, over = above->kind == EX_NUM && above->number > 0;
    const bool at_most_lo = below->kind == EX_NUM && below->number >= 0, at_least_hi = above->kind == EX_NUM && above->number >= 0;
    switch (e->fn) {
    case FN_EQ: return under || over ? ex_num(0) : NULL;
    case FN_NE: return under || over ? ex_num(1) : NULL;
    case FN_LE:  // category <= other, or other <= category
        if (left) return at_least_hi ? ex_num(1) : under ? ex_num(0) : NULL;
        return at_most_lo ? ex_num(1) : over ? ex_num(0) : NULL;
    case FN_LT:
        if (left) return over ? ex_num(1) : at_most_lo ? ex_num(0) : NULL;
        return under ? ex_num(1) : at_least_hi ? ex_num(0) : NULL;
    default: return NULL;
    }
}

static Expr *where_turn_within(const TakingCategory *k, Expr *lo, Expr *hi)
{
    Expr *low = ex_call2("<=", lo, k->current), *high = ex_call2("<=", k->current, hi);
    return ex_map(ex_call2("&&", low, high), decided, (void *)k);
}

// Do all references to members in the body of a sum name the category by the sum's own index?
typedef struct OwnIndex {
    const Categories *t;
    const Index *k;
    bool other;
} OwnIndex;

static Look test_own_index(const Expr *e, void *with)
{
    const OwnIndex *o = with;
    const int m = e->kind == EX_REF ? member_of(o->t, e->var) : -1;
    if (m < 0) return LOOK;
    if (o->t->at[m] < 0 || e->nargs < e->var->rank || e->args[o->t->at[m]]->kind != EX_INDEX || e->args[o->t->at[m]]->index != o->k)
        return FOUND;
    for (int i = 0; i < e->nargs; i++)
        if (i != o->t->at[m] && (ex_mentions_index(e->args[i], o->k) || mentions_members(e->args[i], o->t))) return FOUND;
    return SKIP;
}

// Elements of members at the category `current` become those of the columns, wherever they stand; others stay.
static Expr *take(Expr *e, void *with)
{
    TakingCategory *k = with;
    const Categories *t = k->t;
    if (!mentions_members(e, t)) return e;
    for (const Softmax *s = k->softmax; s; s = s->next)
        if (s->sum == e) return ex_add2(ex_mul2(ex_num(0.5), ex_sub(s->own, s->offset)), s->offset);
    if (e->kind == EX_REF) {
        const int m = member_of(t, e->var);
        if (m < 0 || e->nargs < e->var->rank) return NULL;
        if (t->at[m] < 0) return column_of(t, m, e);
        Expr *s = e->args[t->at[m]], *column = column_of(t, m, e);
        if (s == k->current) return column;
        Expr *is = ex_call3("if_else", ex_map(ex_call2("==", s, k->current), decided, k), ex_num(1), ex_num(0));
        return ex_add2(ex_mul2(is, column), ex_mul2(ex_sub(ex_num(1), is), e));
    }
    if (e->kind == EX_REDUCE && e->fn == FN_sum && !mentions_members(e->args[0], t) && !mentions_members(e->args[1], t)) {
        OwnIndex own = {t, e->index, false};
        if (ex_find(e->args[2], test_own_index, &own)) return NULL;  // each reference asks for itself
        Expr *old = ex_map(ex_replace_index(e->args[2], e->index, k->current), decided, k), *new = ex_map(old, take, k);
        return ex_add2(e,
                       ex_mul2(ex_call3("if_else", where_turn_within(k, e->args[0], e->args[1]), ex_num(1), ex_num(0)), ex_sub(new, old)));
    }
    return NULL;
}

// ---- softmaxes ----

typedef struct Softmaxes {
    const Categories *t;
    Expr *sum[8];
    int n;
    bool many;
} Softmaxes;

static Look find_sums(const Expr *e, void *with)
{
    Softmaxes *s = with;
    if (!mentions_members(e, s->t)) return SKIP;
    if (!log_sum_of(e)) return LOOK;
    for (int i = 0; i < s->n; i++)
        if (s->sum[i] == e) return SKIP;
    if (s->n == 8) {
        s->many = true;
        return FOUND;
    }
    s->sum[s->n++] = (Expr *)e;
    return SKIP;
}

// A variable with an element for each instance of the plates, and behind them one for each category, if these are given.
static Var *row_variable(Graph *g, const Factor *f, const char *name, Expr *categories)
{
    Var *v = var_unique(g, name, VAR_AUXILIARY);
    const Loops *p = &f->plates;
    v->span = f->span;
    loop_extents(p, v->dim);
    v->rank = p->n;
    if (categories) v->dim[v->rank++] = categories;
    v->hidden = true;
    return v;
}

static Expr *at_row(Var *v, const Factor *f, Expr *category)
{
    Expr *at[MAX_RANK];
    int n = 0;
    for (; n < f->plates.n; n++) at[n] = ex_index(f->plates.index[n]);
    if (category) at[n++] = category;
    return ex_ref(v, n, at);
}

// The sum as a part of the factor: -count * sum, count known and not negative. False: something else.
static bool open_softmax(TakingCategory *k, const Factor *f, Expr *sum, const char **because)
{
    Graph *g = k->g;
    Var *l = var_new(g, "log_sum", VAR_ELEMENT);
    Expr *stands = ex_ref(l, 0, NULL);
    const Terms terms = polynomial(g->arena, ex_replace(f->log_density, sum, stands), &(Unknowns){&l, 1, false}, 1);
    Expr *count = NULL;
    *because = "the log of a sum over categories is not multiplied by a known count";
    for (int i = 0; i < terms.n && !terms.failed; i++) {
        if (terms.term[i].degree == 0) continue;
        if (count || terms.term[i].loops.n) return false;
        count = ex_neg(terms.term[i].coefficient);
    }
    double least = -INFINITY, most = INFINITY;
    if (!count || ex_unknown(count)) return false;
    if (!ex_positive(count)) range_of(count, &least, &most);
    else least = 0;
    if (least < 0 || f->plates.n >= MAX_RANK) return false;
    Expr *extent[MAX_RANK];
    *because = "the size of a loop around it is not known when memory is allocated";
    if (!loop_extents(&f->plates, extent)) return false;
    *because = "the log of a sum over categories is not multiplied by a known count";
    const Expr *over = log_sum_of(sum);
    if (ex_unknown(over->args[0]) || ex_unknown(over->args[1])) return false;
    for (int i = 0; i < f->plates.n; i++)
        if (ex_mentions_index(over->args[1], f->plates.index[i])) {
            *because = "the number of categories differs from row to row";
            return false;
        }
    Softmax *s = NEW(g->arena, Softmax);
    *s = (Softmax){.factor = f, .sum = sum, .count = count, .k = index_new(over->index->name, over->args[0], over->args[1])};
    s->eta = ex_open(over, s->k);
    *because = "its elements enter several categories";
    if (k->t->at[0] < 0 && !is_listed(over)) return false;
    for (int c = (int)over->args[0]->number; k->t->at[0] < 0 && c <= (int)over->args[1]->number; c++)
        if (mentions_members(category(over, c), k->t) != ex_is_num(k->current, c)) return false;
    for (int i = 0; i < k->t->n; i++)
        if (k->t->at[i] >= 0 && ex_mentions(s->eta, k->t->var[i]) && category_subscript(s->eta, k->t->var[i], s->k) != k->t->at[i])
            return false;
    const char *stem = k->t->var[0]->name;
    s->all = row_variable(g, f, arena_printf(g->arena, "eta_%s", stem), over->args[1]);
    s->latent = row_variable(g, f, arena_printf(g->arena, "omega_%s", stem), NULL);
    Var *offset = row_variable(g, f, arena_printf(g->arena, "offset_%s", stem), NULL);
    s->offset = at_row(offset, f, NULL);
    Expr *at_current = ex_map(ex_replace_index(s->eta, s->k, k->current), decided, k);
    s->own = ex_map(at_current, take, k);
    s->next = k->softmax;
    k->softmax = s;
    return true;
}

// ---- the joint normal of the columns ----

// A choice in a coefficient beside an entry of a matrix: the entry stands before it, where sums over rows see it.
static Expr *entries_first(Expr *e)
{
    if (e->kind == EX_MUL) {
        Expr *all = ex_num(1);
        for (int i = 0; i < e->nargs; i++) all = ex_mul2(all, entries_first(e->args[i]));
        return all;
    }
    if (e->kind != EX_CALL || e->fn != FN_if_else) return e;
    const int zero = ex_is_num(e->args[2], 0) ? 2 : ex_is_num(e->args[1], 0) ? 1 : 0;
    if (!zero) return e;
    Expr *value = entries_first(e->args[3 - zero]), *outside = ex_num(1), *inside = ex_num(1);
    for (int i = 0; i < (value->kind == EX_MUL ? value->nargs : 1); i++) {
        Expr *one = value->kind == EX_MUL ? value->args[i] : value;
        const bool entry =
            one->kind == EX_REF && one->var->rank == 2 && one->var->base == BASE_REAL && one->var->kind == VAR_DATA && !one->var->response;
        if (entry) outside = ex_mul2(outside, one);
        else inside = ex_mul2(inside, one);
    }
    return ex_mul2(outside, ex_call3("if_else", e->args[0], zero == 2 ? inside : ex_num(0), zero == 2 ? ex_num(0) : inside));
}

// All references of the factor name the category by one of its plates: that plate is solved for the category.
static Index *solved_plate(const Categories *t, const Factor *f)
{
    for (int i = 0; i < f->plates.n; i++) {
        OwnIndex own = {t, f->plates.index[i], false};
        if (!ex_find(f->log_density, test_own_index, &own)) return f->plates.index[i];
    }
    return NULL;
}

// augment { y by none; }
static bool left_as_written(const Graph *g, const Factor *f)
{
    for (const Request *r = f->value && f->value->kind == EX_REF ? g->model->requests : NULL; r; r = r->next)
        for (int i = 0; r->block == BLOCK_AUGMENT && i < r->nnames; i++)
            if (r->names[i] == f->value->var->name && r->method == METHOD_NONE) return true;
    return false;
}

// The factor at the category that is drawn now, its plate of categories being solved for: the other plates, the conditions, the density.
static void settle_plate(TakingCategory *k, const Factor *f, Index *plate, Factor *shadow)
{
    Loops *p = &shadow->plates;
    p->n = 0;
    shadow->log_density = ex_replace_index(f->log_density, plate, k->current);
    if (f->plates.guard) p->guard = ex_replace_index(f->plates.guard, plate, k->current);
    Expr *from[MAX_PLATES], *to[MAX_PLATES];
    int n = 0;
    for (int i = 0; i < f->plates.n; i++) {
        Index *one = f->plates.index[i];
        if (one == plate) continue;
        Expr *lo = ex_replace_index(one->lo, plate, k->current), *hi = ex_replace_index(one->hi, plate, k->current);
        for (int m = 0; m < n; m++) {
            lo = ex_replace(lo, from[m], to[m]);
            hi = ex_replace(hi, from[m], to[m]);
        }
        if (lo != one->lo || hi != one->hi) {
            Index *fresh = index_new(one->name, lo, hi);
            from[n] = ex_index(one);
            to[n++] = ex_index(fresh);
            one = fresh;
        }
        p->index[p->n++] = one;
    }
    for (int m = 0; m < n; m++) {
        shadow->log_density = ex_replace(shadow->log_density, from[m], to[m]);
        if (p->guard) p->guard = ex_replace(p->guard, from[m], to[m]);
    }
    Expr *within = where_turn_within(k, plate->lo, plate->hi);
    if (!ex_is_num(within, 1)) p->guard = p->guard ? ex_call2("&&", p->guard, within) : within;
    shadow->log_density = ex_map(shadow->log_density, decided, k);
    if (p->guard) p->guard = ex_map(p->guard, decided, k);
    if (p->guard && ex_is_num(p->guard, 1)) p->guard = NULL;
}

// One term of the polynomial; sums over rows see products only, so that each part of a coefficient is a term of its own.
static bool append_term(TakingCategory *k, Factor *shadow, const Term *m, BlockTerm ***last, const char **because)
{
    const Expr *sum = m->coefficient->kind == EX_ADD ? m->coefficient : NULL;
    for (int part = 0; part < (sum ? sum->nargs : 1); part++) {
        BlockTerm *b = NEW(k->g->arena, BlockTerm);
        *b = (BlockTerm){.degree = m->degree,
                         .ref = {m->ref[0], m->ref[1]},
                         .coefficient = entries_first(ex_map(sum ? sum->args[part] : m->coefficient, decided, k)),
                         .span = shadow->span,
                         .factor = shadow,
                         .loops = {.guard = shadow->plates.guard}};
        for (int r = 0; r < m->degree; r++)
            if (m->ref[r]->nargs < m->ref[r]->var->rank) {
                *because = "a routine needs it whole";
                return false;
            }
        for (int n = 0; n < shadow->plates.n; n++) b->loops.index[b->loops.n++] = shadow->plates.index[n];
        for (int n = 0; n < m->loops.n; n++) b->loops.index[b->loops.n++] = m->loops.index[n];
        **last = b;
        *last = &b->next;
    }
    return true;
}

static bool factor_terms(TakingCategory *k, const Factor *f, BlockTerm ***last, const char **because)
{
    Graph *g = k->g;
    Categories *t = k->t;
    Factor *shadow = arena_copy(g->arena, f, sizeof *f);
    k->softmax = NULL;
    Softmaxes sums = {.t = t};
    ex_find(f->log_density, find_sums, &sums);
    Index *plate = sums.n ? NULL : solved_plate(t, f);
    if (plate) settle_plate(k, f, plate, shadow);
    if (sums.n && left_as_written(g, f)) {
        *because = "the model requests no latents";
        return false;
    }
    if (sums.many) {
        *because = "too many logs of sums in one statement";
        return false;
    }
    for (int i = 0; i < sums.n; i++)
        if (!open_softmax(k, f, sums.sum[i], because)) return false;
    Expr *e = ex_map(shadow->log_density, take, k);
    for (const Softmax *s = k->softmax; s; s = s->next)
        e = ex_add2(e, ex_mul2(ex_num(-0.5), ex_mul2(at_row(s->latent, f, NULL), ex_pow(ex_sub(s->own, s->offset), 2))));
    shadow->log_density = e;
    const Terms terms = polynomial(g->arena, e, &(Unknowns){t->column, t->n, false}, 2);
    if (terms.failed) {
        *because = arena_printf(g->arena, "`%s` (line %d) is not quadratic", ex_quote(g->arena, terms.opaque), span_line(f->span));
        return false;
    }
    for (int i = 0; i < terms.n; i++)
        if (terms.term[i].degree > 0 && !append_term(k, shadow, &terms.term[i], last, because)) return false;
    Softmax **end = &t->softmax;
    while (*end) end = &(*end)->next;
    *end = k->softmax;
    return true;
}

// A column whose elements are coupled with each other, and scalars, are drawn by one Cholesky factorisation.
static bool is_dense(const BlockTerm *terms, const Var *column)
{
    if (column->rank == 0) return true;
    for (const BlockTerm *t = terms; t; t = t->next)
        if (t->degree == 2 && t->ref[0] != t->ref[1] && t->ref[0]->var == column && t->ref[1]->var == column) return true;
    return false;
}

static Var *new_column(Graph *g, const Var *v, int at, const char *stem)
{
    Var *c = var_unique(g, arena_printf(g->arena, "%s_%s", stem, v->name), VAR_AUXILIARY);
    c->span = v->span;
    c->hidden = true;
    for (int i = 0; i < v->rank; i++)
        if (i != at) c->dim[c->rank++] = v->dim[i];
    return c;
}

// The update of these variables; NULL, and why: they are not drawn so.
static Update *try_update(Graph *g, Var *const *var, const int *at, int n, Expr *lo, Expr *hi, bool *dense, const char **because)
{
    Categories *t = NEW(g->arena, Categories);
    *t = (Categories){.n = n,
                      .var = arena_copy(g->arena, var, sizeof *var * (size_t)n),
                      .at = arena_copy(g->arena, at, sizeof *at * (size_t)n),
                      .column = NEW_N(g->arena, Var *, n),
                      .lo = lo,
                      .hi = hi};
    t->current = var_unique(g, arena_printf(g->arena, "turn_%s", var[0]->name), VAR_AUXILIARY);
    t->current->base = BASE_INT;
    t->current->discrete = t->current->hidden = true;
    t->current->span = var[0]->span;
    for (int i = 0; i < n; i++) t->column[i] = new_column(g, var[i], at[i], "column");
    TakingCategory k = {.g = g, .t = t, .current = at[0] < 0 ? lo : ex_ref(t->current, 0, NULL)};
    Update *draw = NEW(g->arena, Update);
    BlockTerm **last = &draw->gaussian.terms;
    const Reading enters = factors_of_block(g, var, n);
    for (int q = 0; q < enters.n; q++) {
        const Factor *f = enters.factor[q];
        bool any = false;
        for (int i = 0; i < n && !any; i++) any = factor_mentions(f, var[i]);
        if (!factor_counts_at(f, block_sums(var, n), false) || !any) continue;
        if (!mentions_members(f->log_density, t) || (f->plates.guard && mentions_members(f->plates.guard, t))) {
            *because = "it decides which elements a statement has, or enters a recursion";
            return NULL;
        }
        if (!factor_terms(&k, f, &last, because)) return NULL;
    }
    if (!t->softmax) return NULL;
    for (int i = 0; i < n; i++) dense[i] = is_dense(draw->gaussian.terms, t->column[i]);
    Update *s = NEW(g->arena, Update);
    s->kind = UPDATE_CATEGORIES;
    s->span = draw->span = var[0]->span;
    s->block = t->var;
    s->nblock = n;
    s->categories = t;
    s->reason = "in a softmax each category is logistic given the others";
    draw->kind = UPDATE_GAUSSIAN;
    draw->block = t->column;
    draw->nblock = n;
    draw->gaussian.arrow = n > 1 && !dense[n - 1];
    draw->reason = s->reason;
    draw->gaussian.no_rows = "columns are drawn one after the other";
    t->draw = draw;
    draw->gaussian.categories = s;
    return s;
}

// ---- all categories at once ----
//
// Without a reference, all predictors of a row may move by the same number and the softmax stays as it is. Column after column this
// direction is walked in small steps, while the prior alone decides it: B[, k] + shift for all k, shift drawn from the density of B + shift
// as a function of it. The moves are a group of translations, so nothing but that density enters (Liu and Sabatti 2000).

typedef struct Shifting {
    const Categories *t;
    enum { ADD_SHIFT, ONLY_SHIFT, ONLY_REST } what;
    Expr *moved[8];
    Expr *const *sum;
    int n;
} Shifting;

static Expr *shifted(Expr *e, void *with)
{
    const Shifting *s = with;
    if (!mentions_members(e, s->t)) return e;
    for (int i = 0; i < s->n; i++)
        if (s->sum[i] == e) return ex_add2(e, s->moved[i]);
    const int m = e->kind == EX_REF ? member_of(s->t, e->var) : -1;
    if (m < 0) return NULL;
    Expr *at[MAX_RANK];
    int n = 0;
    for (int k = 0; k < e->nargs; k++)
        if (k != s->t->at[m]) at[n++] = e->args[k];
    Expr *by = ex_ref(s->t->by[m], n, at);
    return s->what == ADD_SHIFT ? ex_add2(e, by) : s->what == ONLY_SHIFT ? by : ex_num(0);
}

// The terms of a factor in the shifts; false: a softmax sees them, or they are not quadratic.
static bool shift_terms(Graph *g, Categories *t, Factor *f, BlockTerm ***last)
{
    Softmaxes sums = {.t = t};
    ex_find(f->log_density, find_sums, &sums);
    Shifting k = {.t = t};
    for (int i = 0; i < sums.n; i++) {
        const Expr *over = log_sum_of(sums.sum[i]);
        Index *c = index_new(over->index->name, over->args[0], over->args[1]);
        Expr *eta = ex_open(over, c);
        k.what = ONLY_SHIFT;
        Expr *with = ex_map(eta, shifted, &k);
        k.what = ONLY_REST;
        k.moved[i] = ex_sub(with, ex_map(eta, shifted, &k));
        if (ex_mentions_index(k.moved[i], c)) return false;
    }
    k.what = ADD_SHIFT;
    k.n = sums.n;
    k.sum = sums.sum;
    const Terms terms = polynomial(g->arena, ex_map(f->log_density, shifted, &k), &(Unknowns){t->by, t->n, false}, 2);
    if (terms.failed) return false;
    for (int i = 0; i < terms.n; i++) {
        const Term *m = &terms.term[i];
        if (m->degree == 0) continue;
        if (sums.n) return false;  // the softmax sees it, or may see it
        BlockTerm *b = NEW(g->arena, BlockTerm);
        *b = (BlockTerm){.degree = m->degree,
                         .ref = {m->ref[0], m->ref[1]},
                         .coefficient = m->coefficient,
                         .span = f->span,
                         .factor = f,
                         .loops = {.guard = f->plates.guard}};
        for (int n = 0; n < f->plates.n; n++) b->loops.index[b->loops.n++] = f->plates.index[n];
        for (int n = 0; n < m->loops.n; n++) b->loops.index[b->loops.n++] = m->loops.index[n];
        **last = b;
        *last = &b->next;
    }
    return true;
}

static Update *shift_of(Graph *g, const Update *of)
{
    Categories *t = of->categories;
    for (int i = 0; i < t->n; i++)
        if (t->at[i] < 0 || !ex_is_num(t->lo, 1) || t->hi != t->var[i]->dim[t->at[i]]) return NULL;
    for (const Softmax *m = t->softmax; m; m = m->next)
        if (m->k->lo != t->lo || m->k->hi != t->hi) return NULL;
    t->by = NEW_N(g->arena, Var *, t->n);
    for (int i = 0; i < t->n; i++) t->by[i] = new_column(g, t->var[i], t->at[i], "shift");
    Update *s = NEW(g->arena, Update);
    BlockTerm **last = &s->gaussian.terms;
    const Reading enters = factors_of_block(g, t->var, t->n);
    for (int q = 0; q < enters.n; q++) {
        Factor *f = enters.factor[q];
        if (!factor_counts_at(f, block_sums(t->var, t->n), false) || !mentions_members(f->log_density, t)) continue;
        if (!shift_terms(g, t, f, &last)) return NULL;
    }
    s->kind = UPDATE_GAUSSIAN;
    s->span = of->span;
    s->block = t->by;
    s->nblock = t->n;
    s->gaussian.arrow = t->draw->gaussian.arrow;
    s->gaussian.nbatch = t->draw->gaussian.nbatch;
    s->gaussian.no_rows = "its prior alone decides";
    s->reason = "the softmax does not change when all categories change by the same amount";
    s->gaussian.categories = of;
    for (const BlockTerm *b = s->gaussian.terms; b && (s->gaussian.arrow || s->gaussian.nbatch); b = b->next)
        if (b->degree == 2 && b->ref[0] != b->ref[1] && b->ref[0]->var == t->by[t->n - 1] && b->ref[1]->var == t->by[t->n - 1]) return NULL;
    return s;
}

// The same; the variables of an attempt that fails are nobody's.
static Update *update_of(Graph *g, Var *const *var, const int *at, int n, Expr *lo, Expr *hi, bool *dense, const char **because)
{
    const int first = g->nvars;
    Update *s = try_update(g, var, at, n, lo, hi, dense, because);
    for (int i = first; i < g->nvars && !s; i++) g->vars[i]->kind = VAR_ELEMENT;
    return s;
}

static void forget(Graph *g, const Update *s)
{
    const Categories *t = s->categories;
    t->current->kind = VAR_ELEMENT;
    for (int i = 0; i < t->n; i++) t->column[i]->kind = VAR_ELEMENT;
    for (const Softmax *m = t->softmax; m; m = m->next) m->all->kind = m->latent->kind = m->offset->var->kind = VAR_ELEMENT;
    (void)g;
}

// ---- which variables go together ----

// Coefficients and one plate of effects are drawn together, if they are jointly normal; else each by itself.
static Update *largest_step(Graph *g, Var *const *var, const int *at, int n, Expr *lo, Expr *hi)
{
    bool dense[16];
    const char *because = NULL;
    Update *s = update_of(g, var, at, n, lo, hi, dense, &because);
    if (s && n > 1) {
        int effects = -1, m = 0, at2[16];
        Var *kept[16];
        for (int i = 0; i < n; i++) {
            if (!dense[i]) {
                if (effects < 0) effects = i;
                continue;
            }
            kept[m] = var[i];
            at2[m++] = at[i];
        }
        if (effects >= 0) {
            kept[m] = var[effects];
            at2[m++] = at[effects];
        }
        if (effects >= 0 && (m < n || effects != n - 1)) {
            forget(g, s);
            s = update_of(g, kept, at2, m, lo, hi, dense, &because);
        }
    }
    for (int m = 0; m < n && !s && n > 1; m++) s = update_of(g, &var[m], &at[m], 1, lo, hi, dense, &because);
    if (!s) return NULL;
    if (s->nblock == 1 && s->categories->column[0]->rank && !dense[0])
        s->categories->draw->gaussian.nbatch = s->categories->column[0]->rank;
    s->categories->shift = shift_of(g, s);
    for (int m = 0; m < s->nblock && !s->categories->shift && s->categories->by; m++) s->categories->by[m]->kind = VAR_ELEMENT;
    return s;
}

// Variables with a subscript that is the category.
static Update *step_by_subscript(Graph *g, const Expr *sum, Var *const *free, int nfree)
{
    Index *k = index_new(sum->index->name, sum->args[0], sum->args[1]);
    Expr *eta = ex_open(sum, k), *lo = NULL, *hi = NULL;
    Var *var[16];
    int at[16], n = 0;
    for (int m = 0; m < nfree && n < 16; m++) {
        if (!ex_mentions(eta, free[m]) || !free[m]->rank || !may_be_coefficient(g, free[m])) continue;
        const int s = category_subscript(eta, free[m], k);
        Expr *first, *last;
        if (s < 0) continue;
        range_of_categories(g, free[m], s, &first, &last);
        if (n && (first != lo || last != hi)) continue;  // another update has them
        lo = first;
        hi = last;
        var[n] = free[m];
        at[n++] = s;
    }
    return n ? largest_step(g, var, at, n, lo, hi) : NULL;
}

// Variables that enter one category alone, of a softmax whose categories are listed: [a1 + b1*x[i], a2 + b2*x[i], 0].
static Update *update_of_listed(Graph *g, const Expr *sum, Var *const *free, int nfree)
{
    if (!is_listed(sum)) return NULL;
    const int lo = (int)sum->args[0]->number, hi = (int)sum->args[1]->number;
    for (int c = lo; c <= hi; c++) {
        Var *var[16];
        int at[16], n = 0;
        for (int m = 0; m < nfree && n < 16; m++) {
            bool alone = may_be_coefficient(g, free[m]) && ex_mentions(category(sum, c), free[m]);
            for (int other = lo; other <= hi && alone; other++) alone = other == c || !ex_mentions(category(sum, other), free[m]);
            if (!alone) continue;
            var[n] = free[m];
            at[n++] = -1;
        }
        Update *s = n ? largest_step(g, var, at, n, ex_num(c), ex_num(c)) : NULL;
        if (s) return s;
    }
    return NULL;
}

Update *categories_update(Graph *g, Var *const *free, int nfree)
{
    if (g->nsums) return NULL;
    for (Factor *f = g->factors; f; f = f->next) {
        if (f->replaced || nfree == 0) continue;
        Categories any = {.n = nfree, .var = (Var **)free};
        Softmaxes sums = {.t = &any};
        ex_find(f->log_density, find_sums, &sums);
        for (int i = 0; i < sums.n; i++) {
            const Expr *sum = log_sum_of(sums.sum[i]);
            Update *s = step_by_subscript(g, sum, free, nfree);
            if (!s) s = update_of_listed(g, sum, free, nfree);
            if (s) return s;
        }
    }
    return NULL;
}

Update *categories_block(Graph *g, Var *const *block, int n)
{
    Update *s = categories_update(g, block, n);
    if (!s || s->nblock == n) return s;
    forget(g, s);
    for (int i = 0; i < s->nblock && s->categories->shift; i++) s->categories->by[i]->kind = VAR_ELEMENT;
    return NULL;
}

// Elements that no statement draws are independent and standard normal, so that the precision is regular.
void complete_categories(Graph *g, Update *s)
{
    Categories *t = s->categories;
    BlockTerm **last = &t->draw->gaussian.terms;
    while (*last) last = &(*last)->next;
    for (int i = 0; i < t->n; i++) {
        const Var *v = t->var[i];
        Var *c = t->column[i];
        if (!v->exists) continue;
        Loops l = {.n = c->rank};
        Expr *element = var_element(g, c, l.index),
             *exists = t->at[i] < 0 ? v->exists : ex_replace_index(v->exists, v->own[t->at[i]], ex_ref(t->current, 0, NULL));
        for (int k = 0, m = 0; k < v->rank; k++)
            if (k != t->at[i]) exists = ex_replace_index(exists, v->own[k], ex_index(l.index[m++]));
        TakingCategory k = {.g = g, .t = t, .current = ex_ref(t->current, 0, NULL)};
        exists = ex_map(exists, decided, &k);
        if (ex_is_num(exists, 1)) continue;
        t->shift = NULL;  // it would move what is drawn for them
        l.guard = ex_call1("!", exists);
        BlockTerm *b = NEW(g->arena, BlockTerm);
        *b = (BlockTerm){.factor = t->softmax->factor,
                         .degree = 2,
                         .ref = {element, element},
                         .coefficient = ex_num(-0.5),
                         .loops = l,
                         .span = v->span,
                         .absent = true};
        *last = b;
        last = &b->next;
    }
}
