// weights.c -- values whose weights are products of numbers in tables.
//
//   before   kernel draw_z                                    after   kernel weights_draw_z
//              weigh z[n] in 1:K                                        weights weights_z_1[a, v] of theta[a, v]
//                lp += log(theta[doc[n], z])                            weights weights_z_2[a, v] of phi[v, a]
//                lp += log(phi[z, w[n]])                              kernel draw_z
//                                                                       weigh z[n] in 1:K by weights_z_1[doc[n], z]*weights_z_2[w[n], z],
//                                                                       or else as before
//
// The log density of a value is a sum of terms, each of which depends on the row through keys alone: integers that are subscripts, or the
// row's own index. Then exp of a term is a number for each key and value. Rows of the tables have the values side by side, in whichever
// order the unknown is stored. They are divided by their largest number, which does not change the draw. So no row takes an exponential or
// a logarithm, and what it reads lies together. In two cases the row is weighed as before, by logarithms (device/weights.h). A product
// leaves the range of numbers, because what is likely by one table is hardly possible by another; or a number is 0 or not finite.
//
// Where that may be done: in kernels with a lane for each element; every subscript that has a key or the value is that alone, over the
// whole of its dimension; one unknown that a term reads has a dimension for each key and for the value, so that a table costs no more than
// the draw of that; every term has the value, or is a number. Data of few values that a term computes with, such as an outcome of a
// Bernoulli distribution, are keys, too.
//
// Needs: kernels as lowered.     Called by: tables.c, which fills the tables before launches that read them.
#include "lower.h"

enum { MOST_WEIGHTS = 4, MAX_TERM = 1000, MOST_OUTCOMES = 8 };

typedef struct Weighing {
    const Expr *u;  // the value that is weighed
    int nrows;
    Index *const *row;  // loops around
    Expr *key;          // that was found
    ValueWeights *of;
} Weighing;

static bool mentions_a_row(const Weighing *t, const Expr *e)
{
    for (int i = 0; i < t->nrows; i++)
        if (ex_mentions_index(e, t->row[i])) return true;
    return false;
}

static Look find_key(const Expr *e, void *with)
{
    Weighing *t = with;
    if (e == t->u) return SKIP;
    for (int k = 0; e->kind == EX_REF && k < e->nargs; k++) {
        Expr *at = e->args[k];
        if (at == t->u || !mentions_a_row(t, at)) continue;
        if (at->kind != EX_INDEX &&
            (at->kind != EX_REF || at->nargs != at->var->rank || at->loose || at->var->base != BASE_INT || at->var->kind == VAR_ELEMENT))
            continue;
        t->key = at;
        return FOUND;
    }
    return LOOK;
}

// An integer of the row that a term computes with, of few values whose ends are declared: y[n]*log(p[z]) + (1 - y[n])*log1m(p[z]).
static Look find_outcome(const Expr *e, void *with)
{
    Weighing *t = with;
    if (e->kind != EX_REF) return LOOK;
    const Var *v = e->var;
    if (v->kind == VAR_DATA && v->base == BASE_INT && e->nargs == v->rank && !e->loose && e != t->u && mentions_a_row(t, e) &&
        v->upper_number - v->lower_number < MOST_OUTCOMES) {
        t->key = (Expr *)e;
        return FOUND;
    }
    return SKIP;
}

static Expr *extent_at(const Expr *e, const Expr *at)
{
    for (int k = 0; e->kind == EX_REF && k < e->nargs; k++)
        if (e->args[k] == at) return e->var->dim[k];
    Expr *extent = NULL;
    for (int k = 0; k < e->nargs && !extent; k++) extent = extent_at(e->args[k], at);
    return extent;
}

static Look test_loops(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REDUCE || e->kind == EX_AT || e->kind == EX_ARRAY || ex_rank(e) > 0 ? FOUND : LOOK;
}

// Whether e reads an element at something else than an index of the table over the whole of a dimension, or has sums or arrays, which
// would need loops.
static Look test_elsewhere(const Expr *e, void *with)
{
    const ValueWeights *w = with;
    if (e->kind == EX_REF)
        for (int k = 0; k < e->nargs; k++)
            for (int i = 0; i <= w->n; i++) {
                const Index *j = i < w->n ? w->index[i] : w->value;
                if (ex_mentions_index(e->args[k], j) && (!is_index(e->args[k], j) || e->var->dim[k] != j->hi)) return FOUND;
            }
    return test_loops(e, NULL);
}

static Look test_covers(const Expr *e, void *with)
{
    const ValueWeights *w = with;
    if (e->kind != EX_REF) return LOOK;
    // data alone: of the values only
    if ((w->n > 0 && !var_unknown(e->var)) || e->var->base != BASE_REAL || !ex_mentions_index(e, w->value)) return SKIP;
    for (int i = 0; i < w->n; i++)
        if (!w->outcome[i] && !ex_mentions_index(e, w->index[i])) return SKIP;
    return FOUND;
}

static bool test_local(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_ELEMENT || v->kind == VAR_SERIES;
}

static bool test_same(const Var *v, void *with) { return v == with; }

static Look test_exp(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_CALL && e->fn == FN_exp ? FOUND : LOOK;
}

// A term as a table over keys and value; false: it is none.
static bool table_of_term(Weighing *t, Expr *e, Expr *last, const Var *drawn, ValueWeights *w)
{
    *w = (ValueWeights){.log = e};
    t->of = w;
    if (e->size > MAX_TERM) return false;
    while (w->n < MOST_VALUE_KEYS && ex_find(w->log, find_outcome, t)) {
        const double lo = t->key->var->lower_number, n = t->key->var->upper_number - lo + 1;
        if (!(n >= 1)) return false;
        w->outcome[w->n] = true;
        w->key[w->n] = ex_add2(t->key, ex_num(1 - lo));
        w->index[w->n] = index_new(intern("y"), ex_num(1), ex_num(n));
        w->log = ex_replace(w->log, t->key, ex_add2(ex_index(w->index[w->n]), ex_num(lo - 1)));
        w->n++;
    }
    while (w->n < MOST_VALUE_KEYS && ex_find(w->log, find_key, t)) {
        Expr *extent = extent_at(w->log, t->key);
        if (!extent || !ex_data_only(extent) || extent->indices) return false;
        w->key[w->n] = t->key;
        w->index[w->n] = index_new(intern(w->n ? "b" : "a"), ex_num(1), extent);
        w->log = ex_replace(w->log, t->key, ex_index(w->index[w->n]));
        w->n++;
    }
    w->value = index_new(intern("value"), ex_num(1), last);
    Expr *with_value = ex_replace(w->log, (Expr *)t->u, ex_index(w->value));
    if (with_value == w->log || with_value->loose) return false;
    w->log = with_value;
    if (mentions_a_row(t, w->log) || ex_find(w->log, test_elsewhere, w) || !ex_find(w->log, test_covers, w) ||
        ex_any_var(w->log, test_local, NULL) || ex_any_var(w->log, test_same, (void *)drawn))
        return false;
    return true;
}

static bool same_keys(const ValueWeights *a, const ValueWeights *b)
{
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
        if (a->key[i] != b->key[i] || a->index[i]->hi != b->index[i]->hi) return false;
    return true;
}

// The tables whose product is the density of a value up to a factor, or NULL.
ValueWeights *weights_of_values(Lower *p, const Kernel *kernel, const Node *n, int nrows, Index *const *row)
{
    const Conditional *c = n->weigh.c;
    if (kernel->kind != KERNEL_ELEMENTS || nrows == 0 || !c->u || c->whole || n->weigh.varies || n->weigh.expects ||
        !ex_is_num(n->weigh.first, 1) || !ex_data_only(n->weigh.last) || n->weigh.last->indices)
        return NULL;
    Weighing t = {.u = c->u, .nrows = nrows, .row = row};
    ValueWeights *all = NULL, **end = &all, found;
    Expr *constant = ex_num(0);
    int count = 0;
    for (const Node *m = n->body; m; m = m->next) {
        const Node *put = m->body;
        if (m->kind == NODE_COMMENT) continue;
        if (m->kind != NODE_REDUCE || m->nest.loops.n || m->nest.loops.guard || !put || put->next || put->kind != NODE_ASSIGN ||
            (put->assign.op != ASSIGN_ADD && put->assign.op != ASSIGN_ADD_LOG) || put->assign.times)
            return NULL;
        Expr *e = put->assign.value;
        for (int k = 0; k < (e->kind == EX_ADD ? e->nargs : 1); k++) {
            Expr *term = e->kind == EX_ADD ? e->args[k] : e;
            if (ex_data_only(term) && !term->indices && !ex_find(term, test_loops, NULL)) {
                constant = ex_add2(constant, term);
                continue;
            }
            if (!table_of_term(&t, term, n->weigh.last, c->var, &found)) return NULL;
            ValueWeights *same = all;
            while (same && !same_keys(same, &found)) same = same->next;
            if (same) {
                for (int i = 0; i < found.n; i++) found.log = ex_replace_index(found.log, found.index[i], ex_index(same->index[i]));
                same->log = ex_add2(same->log, ex_replace_index(found.log, found.value, ex_index(same->value)));
                continue;
            }
            if (++count > MOST_WEIGHTS) return NULL;
            *end = arena_copy(p->g->arena, &found, sizeof found);
            end = &(*end)->next;
        }
    }
    // if that is no number, neither are the weights, and rows are weighed as before
    if (all) all->log = ex_add2(all->log, constant);
    count = 0;
    for (ValueWeights *w = all; w; w = w->next) {
        Expr *dim[MOST_VALUE_KEYS + 1], *weight = ex_call1("exp", w->log);
        for (int i = 0; i < w->n; i++) dim[i] = w->index[i]->hi;
        dim[w->n] = ex_add2(n->weigh.last, ex_num(WEIGHTS_ASIDE - 1));  // rows begin at multiples of 4 numbers
        w->var = work_array(p, ROLE_WEIGHTS, words(p, "weights_%s_%d", c->var->name, ++count), w->n + 1, dim);
        if (!ex_find(weight, test_exp, NULL)) w->weight = weight;
    }
    return all;
}
