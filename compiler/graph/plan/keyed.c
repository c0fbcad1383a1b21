// keyed.c -- sums over rows by a key that is drawn in the sweep: what the rows of one key have in common leaves the sum.
//
//   before   J[mu[c[i], k], mu[c[i], j]] += inverse(Sigma[c[i]])[k, j]        over i, k, j        an inverse for each of N rows
//            S[c[i], k, j] += (y[i, k] - mu[c[i], k])*(y[i, j] - mu[c[i], j]) over i, k, j
//   after    J[mu[a, k], mu[a, j]] += n[a]*inverse(Sigma[a])[k, j]            over a, k, j
//            S[a, k, j] += Syy[a, k, j] + Sy[a, k]*(m[j] - mu[a, j]) + ...    over a, k, j
//
// n, Sy and Syy are counts, sums and cross products by key of data around their mean m over all rows, so that squares keep their digits.
// They are made again after each draw of the key (kernel/keyed.c), and all conditionals that read them share them.
//
// Weighted sums are such, too: where a latent is there by the probabilities of its values (expect.c), these are weights of the rows of each
// value,
//
//   before   J[mu[c, k], mu[c, j]] += probability_c[i, c]*inverse(Sigma[c])[k, j]    over i, c, k, j
//   after    J[mu[c, k], mu[c, j]] += n[c]*inverse(Sigma[c])[k, j],   n[c] = sum(i, probability_c[i, c])
//
// A sum is left as it is if something else in it is drawn row by row. The same holds if a statistic would have more terms than the sum (a
// square of a linear predictor).
#include <string.h>
#include "keyed.h"
#include "../sum.h"
#include "../terms/var.h"
#include "../algebra/polynomial.h"

enum { MOST_SHIFTS = 4 };

// A discrete unknown at a place known from data. Where it may lie outside of what it picks, the sum stays, and looks each time.
bool is_drawn_key(const Expr *e)
{
    if (e->kind != EX_REF || !var_unknown(e->var) || e->var->base != BASE_INT || e->var->known.wild || e->nargs != e->var->rank || e->loose)
        return false;
    for (int i = 0; i < e->nargs; i++)
        if (!ex_data_only(e->args[i])) return false;
    return true;
}

bool has_drawn_key(int n, Expr *const *target)
{
    for (int i = 0; i < n; i++)
        if (is_drawn_key(target[i])) return true;
    return false;
}

static bool test_weights(const Var *v, void *with)
{
    (void)with;
    return v->em.weights;
}

bool reads_weights(const Expr *e) { return ex_any_var(e, test_weights, NULL); }

// What does not change while updates read statistics: data, and probabilities of latents once these are found.
static bool is_given(const Var *v) { return v->kind == VAR_DATA || v->kind == VAR_LET || v->kind == VAR_SUM || v->em.weights; }

// What stands for a part of the sum that depends on the row by its keys alone, while the sum is taken apart.
typedef struct Stand {
    Var *var;
    Expr *is;
} Stand;

typedef struct TakingKey {
    Sums *to;
    const Keys *keys;
    const Loops *l;
    int depth;  // loops of the sum and within it
    int nstands;
    Stand stand[MOST_SHIFTS];
} TakingKey;

static Expr *at_keys(const Keys *keys, Expr *e)
{
    for (int i = 0; i < keys->n; i++) e = ex_replace(e, keys->key[i], keys->at[i]);
    return e;
}

static bool by_key_alone(const TakingKey *t, Expr *e) { return !varies(at_keys(t->keys, e), t->l); }

static bool plain_key(const Keys *keys, const Index *i)
{
    for (int k = 0; k < keys->n; k++)
        if (keys->key[k] == ex_index((Index *)i)) return true;
    return false;
}

// The mean of data over rows, for each value of the keys that are indices of loops; NULL: they are the same for all rows, or a loop depends
// on another.
static Expr *mean_by_column(const TakingKey *t, Expr *data)
{
    Loops own = {.guard = t->l->guard}, rows = {.guard = t->l->guard};
    Expr *target[MAX_RANK], *extent[MAX_RANK];
    int n = 0;
    for (int i = 0; i < t->l->n; i++) {
        Index *of = t->l->index[i];
        if (varies(of->lo, t->l) || varies(of->hi, t->l)) return NULL;
        if (!ex_mentions_index(data, of)) {
            if (t->l->guard && ex_mentions_index(t->l->guard, of)) return NULL;
            continue;
        }
        own.index[own.n++] = of;
        if (!plain_key(t->keys, of)) {
            rows.index[rows.n++] = of;
            continue;
        }
        if (n == MAX_RANK || !ex_is_num(of->lo, 1) || (t->l->guard && ex_mentions_index(t->l->guard, of))) return NULL;
        target[n] = ex_index(of);
        extent[n++] = of->hi;
    }
    if (rows.n == 0) return NULL;
    Expr *total = statistic(t->to, &own, n, target, extent, where_observed(t->to->g, data, data), target),
         *observed = where_observed(t->to->g, data, ex_num(1));
    Expr *count = ex_is_num(observed, 1) ? statistic(t->to, &rows, 0, NULL, NULL, observed, NULL)
                                         : statistic(t->to, &own, n, target, extent, observed, target);
    return ex_div(total, ex_call2("fmax", count, ex_num(1)));
}

// y[i] - mu[c[i]] as (y[i] - mean) + s, where s stands for mean - mu[c[i]].
static Expr *centred(TakingKey *t, Expr *sum)
{
    Expr *data = ex_num(0), *fixed = ex_num(0), *rest = ex_num(0);
    if (sum->kind != EX_ADD || t->nstands == MOST_SHIFTS) return sum;
    for (int i = 0; i < sum->nargs; i++) {
        Expr *e = sum->args[i];
        if (ex_data_only(e)) *(varies(e, t->l) ? &data : &fixed) = ex_add2(varies(e, t->l) ? data : fixed, e);
        else if (by_key_alone(t, e)) fixed = ex_add2(fixed, e);
        else rest = ex_add2(rest, e);
    }
    if (ex_is_num(data, 0) || ex_data_only(fixed)) return sum;
    Expr *mean = mean_by_column(t, data);
    if (!mean) return sum;
    Var *v = NEW(t->to->g->arena, Var);
    *v = (Var){.name = "shift", .kind = VAR_ELEMENT, .id = t->to->names->nvars++, .base = BASE_REAL};
    t->stand[t->nstands++] = (Stand){v, ex_add2(fixed, mean)};
    return ex_add(3, (Expr *[]){ex_sub(data, mean), rest, ex_ref(v, 0, NULL)});
}

typedef struct Collected {
    const Keys *keys;
    Unknowns *in;
    bool many;
} Collected;

static bool collect(const Var *v, void *with)
{
    Collected *c = with;
    if (is_given(v)) return false;
    for (int k = 0; k < c->keys->n; k++)
        if (c->keys->key[k]->kind == EX_REF && c->keys->key[k]->var == v) return false;
    for (int i = 0; i < c->in->n; i++)
        if (c->in->var[i] == v) return false;
    if (c->in->n == 16) return c->many = true;
    ((Var **)c->in->var)[c->in->n++] = (Var *)v;
    return false;
}

static bool test_unknown(const Var *v, void *with)
{
    (void)with;
    return !is_given(v);
}

static Expr *stands_for(const TakingKey *t, Expr *ref)
{
    for (int k = 0; k < t->nstands; k++)
        if (ref->kind == EX_REF && ref->var == t->stand[k].var) return t->stand[k].is;
    return ref;
}

// An index of a loop that runs over all places and that nothing else in the statistic asks for: the statistic is the same at all of them.
static bool spare(const TakingKey *t, int key, const Expr *coefficient)
{
    const Keys *k = t->keys;
    if (k->key[key]->kind != EX_INDEX) return false;
    const Index *i = k->key[key]->index;
    if (!ex_is_num(i->lo, 1) || i->hi != k->extent[key] || ex_mentions_index(coefficient, i) ||
        (t->l->guard && ex_mentions_index(t->l->guard, i)))
        return false;
    for (int m = 0; m < k->n; m++)
        if (m != key && ex_mentions_index(k->key[m], i)) return false;
    for (int m = 0; m < t->l->n; m++)
        if (ex_mentions_index(t->l->index[m]->lo, i) || ex_mentions_index(t->l->index[m]->hi, i)) return false;
    return true;
}

// One monomial: data coefficient times references that depend on the row by its keys alone, over rows and the monomial's own loops.
static Expr *keyed_term(const TakingKey *t, const Term *m)
{
    Loops all = {.guard = t->l->guard};
    Expr *target[MAX_RANK], *extent[MAX_RANK], *at[MAX_RANK];
    bool left[MAX_LOOPS] = {false};
    int n = 0;
    if (ex_any_var(m->coefficient, test_unknown, NULL)) return NULL;
    for (int k = 0; k < t->keys->n; k++) {
        if (spare(t, k, m->coefficient)) {
            for (int i = 0; i < t->l->n; i++) left[i] |= t->keys->key[k] == ex_index(t->l->index[i]);
            continue;
        }
        target[n] = t->keys->key[k];
        extent[n] = t->keys->extent[k];
        at[n++] = t->keys->at[k];
    }
    for (int i = 0; i < t->l->n; i++)
        if (!left[i]) all.index[all.n++] = t->l->index[i];
    for (int i = 0; i < m->loops.n; i++) {
        Index *own = m->loops.index[i];
        if (!ex_is_num(own->lo, 1) || varies(own->hi, t->l) || varies(own->hi, &m->loops)) return NULL;
        if (!ex_mentions_index(m->coefficient, own)) continue;
        if (n == MAX_RANK || all.n == MAX_LOOPS) return NULL;
        all.index[all.n++] = own;
        target[n] = at[n] = ex_index(own);
        extent[n++] = own->hi;
    }
    if (all.n > t->depth) return NULL;
    Expr *e = ex_num(1);
    for (int r = 0; r < m->degree; r++) {
        Expr *ref = at_keys(t->keys, stands_for(t, m->ref[r]));
        if (varies(ref, t->l)) return NULL;
        e = ex_mul2(e, ref);
    }
    e = ex_mul2(e, statistic(t->to, &all, n, target, extent, m->coefficient, at));
    for (int i = m->loops.n - 1; i >= 0; i--) e = ex_reduce("sum", m->loops.index[i], m->loops.index[i]->lo, m->loops.index[i]->hi, e);
    return e;
}

// How deep sums stand within each other.
static int depth_of(const Expr *e)
{
    int most = 0;
    for (int i = 0; i < e->nargs; i++) {
        const int d = depth_of(e->args[i]);
        if (d > most) most = d;
    }
    return most + (e->kind == EX_REDUCE);
}

Expr *hoist_keyed(Sums *to, const Keys *keys, const Loops *l, Expr *value)
{
    if (value->size > MAX_TREE) return NULL;
    if (value->kind == EX_ADD) {
        Expr *all = ex_num(0);
        for (int i = 0; i < value->nargs; i++) {
            Expr *h = hoist_keyed(to, keys, l, value->args[i]);
            if (!h) return NULL;
            all = ex_add2(all, h);
        }
        return all;
    }
    TakingKey t = {.to = to, .keys = keys, .l = l, .depth = l->n + depth_of(value)};
    Expr *outside = ex_num(1), *inside = ex_num(1);
    for (int i = 0; i < (value->kind == EX_MUL ? value->nargs : 1); i++) {
        Expr *f = value->kind == EX_MUL ? value->args[i] : value;
        if (!varies(f, l)) outside = ex_mul2(outside, f);
        else if (!ex_data_only(f) && by_key_alone(&t, f)) outside = ex_mul2(outside, at_keys(keys, f));
        else if (f->kind == EX_POW && f->number == 2) inside = ex_mul2(inside, ex_pow(centred(&t, f->args[0]), 2));
        else inside = ex_mul2(inside, centred(&t, f));
    }
    Var *vars[16];
    Unknowns in = {vars, 0, true};
    Collected c = {keys, &in, false};
    ex_any_var(inside, collect, &c);
    if (c.many) return NULL;
    Terms terms = polynomial(to->g->arena, inside, &in, 4);
    if (terms.failed) return NULL;
    Expr *all = ex_num(0);
    for (int i = 0; i < terms.n; i++) {
        Expr *h = keyed_term(&t, &terms.term[i]);
        if (!h) return NULL;
        all = ex_add2(all, h);
    }
    return ex_mul2(outside, all);
}

// ---- conditions on the value ----

// Whether the index runs over rows: it is neither the value nor a key that is a loop.
static bool mentions_rows(const Keys *keys, const Loops *l, const Index *value, const Expr *e)
{
    for (int i = 0; i < l->n; i++)
        if (l->index[i] != value && !plain_key(keys, l->index[i]) && ex_mentions_index(e, l->index[i])) return true;
    return false;
}

// probability_c[i, c]: c is a value, whose weights are summed over rows.
static Look weighs(const Expr *e, void *with)
{
    return e->kind == EX_REF && e->var->em.weights && e->args[e->nargs - 1] == ex_index(with) ? FOUND : LOOK;
}

// Where a condition, or a key, depends on the value alone, rows are summed for each value first:
//
//   before   sum(i, c where (l < c), probability_c[i, c])          a pass over rows for each value and each l
//   after    sum(c, l < c ? n[c] : 0)
static Expr *by_value_first(Sums *to, const Keys *keys, const Loops *l, Expr *value, Index *of)
{
    if (plain_key(keys, of) || !ex_is_num(of->lo, 1) || varies(of->hi, l) || !ex_find(value, weighs, of)) return NULL;
    if (l->guard && mentions_rows(keys, l, of, l->guard)) return NULL;
    Index *place = index_new(of->name, of->lo, of->hi);
    Keys own = {.n = 1, .key = {ex_index(of)}, .extent = {of->hi}, .at = {ex_index(place)}};
    Loops rows = {0};
    Expr *holds = l->guard;
    bool decides = l->guard && ex_mentions_index(l->guard, of);
    for (int k = 0; k < keys->n; k++) {
        Expr *key = keys->key[k];
        if (key->kind == EX_INDEX) {
            if (ex_mentions_index(value, key->index)) {
                own.key[own.n] = key;
                own.extent[own.n] = keys->extent[k];
                own.at[own.n++] = keys->at[k];
            } else if (holds) holds = ex_replace(holds, key, keys->at[k]);
            continue;
        }
        if (!ex_mentions_index(key, of) || mentions_rows(keys, l, of, key)) return NULL;
        Expr *same = ex_call2("==", key, keys->at[k]);
        holds = holds ? ex_call2("&&", holds, same) : same;
        decides = true;
    }
    if (!decides || own.n == MAX_RANK) return NULL;
    for (int k = 1; k < own.n; k++) holds = ex_replace(holds, own.key[k], own.at[k]);
    for (int i = 0; i < l->n; i++)
        if (l->index[i] == of || !plain_key(keys, l->index[i]) || ex_mentions_index(value, l->index[i])) rows.index[rows.n++] = l->index[i];
    Expr *e = hoist_keyed(to, &own, &rows, value);
    if (!e) return NULL;
    return ex_reduce("sum", place, place->lo, place->hi, ex_call3("if_else", ex_replace_index(holds, of, ex_index(place)), e, ex_num(0)));
}

Expr *hoist_weighted(Sums *to, const Keys *keys, const Loops *l, Expr *value)
{
    Sum **last = &to->first;
    while (*last) last = &(*last)->next;
    for (int i = 0; i < l->n; i++) {
        Expr *e = by_value_first(to, keys, l, value, l->index[i]);
        if (e) return e;
        for (Sum *s = *last; s; s = s->next) fresh_forget(to->names, s->var);
        *last = NULL;
    }
    return hoist_keyed(to, keys, l, value);
}
