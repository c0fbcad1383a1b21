// labels.c -- which numbers are labels only: names of components that can be permuted, and which dimensions of the variables run over them.
//
//   model    mu[k] ~ normal(0, 10) over k;  c[i] ~ categorical(w) over i;  y[i] ~ normal(mu[c[i]], s) over i
//   labels   of c: mu[k], w[k] and the values of c. Permuting the components leaves the log joint as it is.
//
// Loop indices, dimensions of variables and values of integers are gathered in classes: what is a subscript of a dimension belongs to its
// class, and what is compared with `==` is of one class. A class that holds the values of a discrete unknown is a set of labels. The log
// joint keeps its value under each permutation of them if nothing of the class is used in another way: its indices run over all of 1:K and
// are subscripts alone, no subscript is a number of its own, its arrays are constrained by nothing that has an order. What is used
// otherwise is noted with its place: there labels are identified, as far as is known. (No proof that the density changes: a symmetry that
// this does not find counts as identified.)
//
// Factors are those of the augmented joint, before unknowns are summed out: what leaves that as it is leaves the model's as it is.
// Definitions for the draws decide nothing, but each is looked at: its elements go with the labels, or it does not depend on them, or it is
// lost when labels are permuted.
//
// Needs: factors after augmentation, supports of integers.     Gives: g->labels.     Keeps: all else.
#include <string.h>
#include "labels.h"
#include "../terms/var.h"
#include "../terms/factor.h"
#include "../model/requirements.h"

// a dimension; dim -1: the values of an integer; var NULL: an index
typedef struct Node {
    const Var *var;
    int dim;
    const Index *index;
    int up;
} Node;
// used otherwise, in a factor, or in a definition
typedef struct Wrong {
    int node;
    const Factor *factor;
    const Var *defines;
    const char *because;
} Wrong;
typedef struct Use {
    int at, with;
    const Factor *factor;
} Use;  // a subscript of dimension `at`: a node, or -1

typedef struct LabelSearch {
    Graph *g;
    int n, size, nwrong, wrongs, nuse, uses;
    Node *node;
    Wrong *wrong;
    Use *use;
    // by variable its first node, by index its own; expressions of this factor that were looked at
    Map first, of_index, seen;
    const Factor *factor;
    const Var *defines;  // a definition for the draws: joins no two sets of labels
    Span span;
    int nopen;
    const Index *open[MAX_LOOPS];  // of a definition: the loops around, and sums and arrays that were opened
    bool *is_set;                  // by node, once factors are done: it is the root of a set
} LabelSearch;

// ---- classes ----

static int node_new(LabelSearch *s, Node n)
{
    if (s->n == s->size) {
        Node *more = NEW_N(s->g->arena, Node, s->size = s->size ? 2 * s->size : 64);
        if (s->n) memcpy(more, s->node, sizeof *more * (size_t)s->n);
        s->node = more;
        if (s->is_set) s->is_set = memcpy(NEW_N(s->g->arena, bool, s->size), s->is_set, sizeof *s->is_set * (size_t)s->n);
    }
    n.up = s->n;
    s->node[s->n] = n;
    return s->n++;
}

static int first_of(LabelSearch *s, const Var *v)
{
    int *first = map_get(&s->first, v);
    if (first) return *first;
    first = NEW(s->g->arena, int);
    *first = node_new(s, (Node){.var = v, .dim = -1});
    for (int d = 0; d < v->rank; d++) node_new(s, (Node){.var = v, .dim = d});
    map_put(s->g->arena, &s->first, v, first);
    return *first;
}

static int values_of(LabelSearch *s, const Var *v) { return first_of(s, v); }
static int dimension(LabelSearch *s, const Var *v, int d) { return first_of(s, v) + 1 + d; }

static int of_index(LabelSearch *s, const Index *i)
{
    int *n = map_get(&s->of_index, i);
    if (n) return *n;
    n = NEW(s->g->arena, int);
    *n = node_new(s, (Node){.index = i});
    map_put(s->g->arena, &s->of_index, i, n);
    return *n;
}

static int root(const LabelSearch *s, int n)
{
    while (s->node[n].up != n) n = s->node[n].up = s->node[s->node[n].up].up;
    return n;
}

static void otherwise(LabelSearch *s, int node, const char *because)
{
    if (s->nwrong == s->wrongs) {
        Wrong *more = NEW_N(s->g->arena, Wrong, s->wrongs = s->wrongs ? 2 * s->wrongs : 64);
        if (s->nwrong) memcpy(more, s->wrong, sizeof *more * (size_t)s->nwrong);
        s->wrong = more;
    }
    s->wrong[s->nwrong++] = (Wrong){node, s->factor, s->defines, because};
}

static const char *line(LabelSearch *s)
{
    return s->span.source ? arena_printf(s->g->arena, " (%s)", requirements_line(s->g, s->span)) : "";
}

static void join(LabelSearch *s, int a, int b)
{
    const int x = root(s, a), y = root(s, b);
    if (x == y) return;
    if (s->is_set && s->is_set[x] && s->is_set[y]) {
        otherwise(s, x, "two kinds of labels meet");
        otherwise(s, y, "two kinds of labels meet");
    } else if (s->is_set && s->is_set[y]) s->node[x].up = y;
    else s->node[y].up = x;
}

// ---- expressions ----

static void walk(LabelSearch *s, const Expr *e);
static void subscript(LabelSearch *s, const Expr *e, int at);

static void subscripts(LabelSearch *s, const Expr *ref)
{
    for (int d = 0; d < ref->nargs; d++) subscript(s, ref->args[d], dimension(s, ref->var, d));
}

// The node of an expression that can be a label: an index, or an element of integers; else -1.
static int label_of(LabelSearch *s, const Expr *e)
{
    if (e->kind == EX_INDEX) return of_index(s, e->index);
    if (e->kind != EX_REF || e->var->base != BASE_INT || e->nargs != e->var->rank || (e->var->kind == VAR_DATA && !e->var->rank)) return -1;
    subscripts(s, e);
    return values_of(s, e->var);
}

static void use(LabelSearch *s, int at, int with)
{
    if (s->nuse == s->uses) {
        Use *more = NEW_N(s->g->arena, Use, s->uses = s->uses ? 2 * s->uses : 64);
        if (s->nuse) memcpy(more, s->use, sizeof *more * (size_t)s->nuse);
        s->use = more;
    }
    s->use[s->nuse++] = (Use){at, with, s->factor};
}

static void subscript(LabelSearch *s, const Expr *e, int at)
{
    const int with = label_of(s, e);
    use(s, at, with);
    if (with >= 0) {
        join(s, with, at);
        return;
    }
    const Node *n = &s->node[at];
    otherwise(s, at, arena_printf(s->g->arena, "%s has a subscript of its own, %s%s", n->var->name, ex_quote(s->g->arena, e), line(s)));
    walk(s, e);
}

static Index *opened(LabelSearch *s, const Expr *e, bool array)
{
    Index *i = index_new(e->index->name, array ? ex_num(1) : e->args[0], array ? e->args[0] : e->args[1]);
    of_index(s, i);
    if (s->nopen < MAX_LOOPS) s->open[s->nopen++] = i;
    return i;
}

// In a definition: e, or some factors of the product e, are what c ~ categorical(...) has for the value k, an index around. Then they go
// with the label, whatever they are. What remains, or NULL if they are not found.
static const Expr *beside_weight(LabelSearch *s, const Expr *e)
{
    for (const Factor *f = s->g->factors; f && s->defines; f = f->next) {
        const Expr *drawn = f->value && f->value->kind == EX_REF ? f->value : NULL;
        if (!drawn || drawn->var->base != BASE_INT || !var_unknown(drawn->var) || f->original || f->nargs != 1 ||
            ex_rank(f->args[0]) != 1 || f->args[0]->kind == EX_REF)
            continue;
        for (int i = 0; i < s->nopen; i++) {
            const Expr *weight = ex_at(f->args[0], 1, (Expr *[]){ex_index((Index *)s->open[i])}), *rest = NULL;
            if (!ex_mentions_index(weight, s->open[i])) continue;
            if (weight == e) rest = ex_num(1);
            else if (e->kind == EX_MUL) {
                Expr *left[64];
                int n = 0, found = 0;
                const int parts = weight->kind == EX_MUL ? weight->nargs : 1;
                for (int a = 0; a < e->nargs && n < 64; a++) {
                    bool in = false;
                    for (int b = 0; b < parts; b++) in |= e->args[a] == (weight->kind == EX_MUL ? weight->args[b] : weight);
                    found += in;
                    if (!in) left[n++] = e->args[a];
                }
                if (found == parts && n < 64) rest = ex_mul(n, left);
            }
            if (!rest) continue;
            join(s, of_index(s, s->open[i]), values_of(s, drawn->var));
            return rest;
        }
    }
    return NULL;
}

// A vector of which only the set of its elements matters, or whose elements are looked up by `label` (or -1): the node of its subscript.
static int vector_of(LabelSearch *s, const Expr *e)
{
    if (e->kind == EX_REF && e->nargs + 1 == e->var->rank) {
        subscripts(s, e);
        return dimension(s, e->var, e->nargs);
    }
    if (e->kind != EX_ARRAY || e->args[1]->kind == EX_ARRAY) return -1;
    const int before = s->nopen;
    Index *i = opened(s, e, true);
    walk(s, e->args[0]);
    walk(s, ex_open(e, i));
    s->nopen = before;
    return of_index(s, i);
}

static bool any_order(FunctionId f)
{
    return f == FN_log_sum_exp || f == FN_sum || f == FN_prod || f == FN_max || f == FN_min || f == FN_mean || f == FN_sd ||
           f == FN_variance;
}

// e where it counts as a number.
static void walk(LabelSearch *s, const Expr *e)
{
    if (e->kind == EX_NUM || map_get(&s->seen, e)) return;
    map_put(s->g->arena, &s->seen, e, (void *)e);
    const char *in = line(s);
    const Expr *beside = s->defines && (e->kind == EX_MUL || e->kind == EX_CALL) ? beside_weight(s, e) : NULL;
    if (beside) {
        walk(s, beside);
        return;
    }
    switch (e->kind) {
    case EX_NUM: return;
    case EX_INDEX: otherwise(s, of_index(s, e->index), arena_printf(s->g->arena, "the number of a label matters%s", in)); return;
    case EX_REF:
        subscripts(s, e);
        for (int d = e->nargs; d < e->var->rank; d++)
            otherwise(s, dimension(s, e->var, d), arena_printf(s->g->arena, "%s is read as a whole%s", e->var->name, in));
        if (e->nargs == e->var->rank && e->var->base == BASE_INT)
            otherwise(s, values_of(s, e->var), arena_printf(s->g->arena, "the values of %s are used as numbers%s", e->var->name, in));
        return;
    case EX_CALL:
        if (e->fn == FN_EQ || e->fn == FN_NE || e->fn == FN_SAME) {
            const int a = label_of(s, e->args[0]), b = label_of(s, e->args[1]);
            if (a >= 0 && b >= 0) {
                join(s, a, b);
                return;
            }
        }
        if (any_order(e->fn) && e->nargs == 1 && ex_rank(e->args[0]) == 1 && vector_of(s, e->args[0]) >= 0) return;
        for (int i = 0; i < e->nargs; i++) walk(s, e->args[i]);
        return;
    case EX_AT:
        if (e->args[0]->kind == EX_CALL && (e->args[0]->fn == FN_softmax || e->args[0]->fn == FN_log_softmax) && e->nargs == 2) {
            const int along = vector_of(s, e->args[0]->args[0]), label = label_of(s, e->args[1]);
            if (along >= 0 && label >= 0) {
                join(s, along, label);
                return;
            }
        }
        for (int i = 0; i < e->nargs; i++) walk(s, e->args[i]);
        return;
    case EX_REDUCE: {
        const int before = s->nopen;
        Index *i = opened(s, e, false);
        walk(s, e->args[0]);
        walk(s, e->args[1]);
        walk(s, ex_open(e, i));
        s->nopen = before;
        return;
    }
    case EX_ARRAY: {
        const int before = s->nopen;
        Index *i = opened(s, e, true);
        otherwise(s, of_index(s, i), arena_printf(s->g->arena, "an array is read as a whole%s", in));
        walk(s, e->args[0]);
        walk(s, ex_open(e, i));
        s->nopen = before;
        return;
    }
    case EX_ADD:
    case EX_MUL:
    case EX_POW:
        for (int i = 0; i < e->nargs; i++) walk(s, e->args[i]);
    }
}

static void walk_plates(LabelSearch *s, const Loops *p)
{
    for (int k = 0; k < p->n; k++) {
        of_index(s, p->index[k]);
        walk(s, p->index[k]->lo);
        walk(s, p->index[k]->hi);
    }
    if (p->guard) walk(s, p->guard);
}

static void walk_site(LabelSearch *s, const Site *t)
{
    s->seen = (Map){0};
    s->span = t->span;
    walk_plates(s, &t->plates);
    s->nopen = 0;
    for (int k = 0; k < t->plates.n; k++) s->open[s->nopen++] = t->plates.index[k];
    for (int d = 0; d < t->n; d++) subscript(s, t->subscript[d], dimension(s, t->var, d));
    for (int k = 0; k < t->nargs && t->args; k++) {
        // the probabilities of values that are drawn
        const int n = t->dist && t->var->base == BASE_INT && ex_rank(t->args[k]) == 1 ? vector_of(s, t->args[k]) : -1;
        if (n >= 0) join(s, n, values_of(s, t->var));
        else walk(s, t->args[k]);
    }
    if (t->when) walk(s, t->when);
    if (!t->value) return;
    const int n = t->var->base == BASE_INT ? label_of(s, t->value) : -1;
    if (n >= 0) join(s, n, values_of(s, t->var));
    else walk(s, t->value);
}

// ---- sets ----

static bool drawn_for_itself(const Var *v) { return v->kind == VAR_PARAMETER || v->kind == VAR_LATENT || v->kind == VAR_AUXILIARY; }

// What no factor says: orders, elements of which some are computed, ranges that are not all labels.
static void look_at_variables(LabelSearch *s, int set, const Expr *count)
{
    s->factor = NULL;
    for (int k = 0, n = s->n; k < n; k++) {
        const Node it = s->node[k];
        if (root(s, k) != set) continue;
        if (it.index) {
            if (!ex_is_num(it.index->lo, 1) || it.index->hi != count)
                otherwise(s, k,
                          arena_printf(s->g->arena, "an index goes over %s to %s", ex_quote(s->g->arena, it.index->lo),
                                       ex_quote(s->g->arena, it.index->hi)));
            continue;
        }
        s->span = it.var->span;
        const char *name = it.var->name, *at = line(s);
        if (it.dim < 0) {
            if (it.var->kind == VAR_DATA) otherwise(s, k, arena_printf(s->g->arena, "labels are known from %s%s", name, at));
            else if (drawn_for_itself(it.var) && (!it.var->upper || it.var->upper != count || it.var->lower_number != 1))
                otherwise(s, k, arena_printf(s->g->arena, "the values of %s are not 1 to %s%s", name, ex_quote(s->g->arena, count), at));
            continue;
        }
        const Constraint c = it.var->constraint;
        if (it.var->dim[it.dim] != count)
            otherwise(s, k, arena_printf(s->g->arena, "%s has not %s elements%s", name, ex_quote(s->g->arena, count), at));
        if (c == CONSTRAINT_ORDERED || c == CONSTRAINT_POSITIVE_ORDERED) {
            if (it.dim == it.var->rank - 1) otherwise(s, k, arena_printf(s->g->arena, "%s is ordered%s", name, at));
        } else if ((c == CONSTRAINT_CHOLESKY_COV || c == CONSTRAINT_CHOLESKY_CORR) && it.dim >= it.var->rank - 2)
            otherwise(s, k, arena_printf(s->g->arena, "%s is a triangle%s", name, at));
        if (it.var->kind == VAR_LET) otherwise(s, k, arena_printf(s->g->arena, "%s is computed from data%s", name, at));
        if (it.var->partial && drawn_for_itself(it.var))
            otherwise(s, k, arena_printf(s->g->arena, "some elements of %s are computed%s", name, at));
    }
}

// f is the law of the labels: of c[i], or of the component that a mixture draws.
static bool is_law(LabelSearch *s, int set, const Factor *f)
{
    const Expr *r = f->value && f->value->kind == EX_REF ? f->value : NULL;
    if (r) return r->var->base == BASE_INT && var_unknown(r->var) && root(s, values_of(s, r->var)) == set;
    const Expr *of = f->original && f->original->ncomponents ? f->original->value : NULL;
    return of && of->kind == EX_REF && !ex_mentions(f->log_density, of->var);
}

// The first wrong use in a set that the log joint knows of.
static const Wrong *first_wrong(LabelSearch *s, int set)
{
    for (int k = 0; k < s->nwrong; k++)
        if (root(s, s->wrong[k].node) == set && (!s->wrong[k].defines || s->wrong[k].defines->kind == VAR_SERIES)) return &s->wrong[k];
    return NULL;
}

// Where an array has subscripts that are no labels, its own or the indices that run over it. NULL: nowhere.
static const Wrong *what_is_apart(LabelSearch *s, const Var *v, int d)
{
    const int at = dimension(s, v, d);
    for (int k = 0; k < s->nwrong; k++)
        if (s->wrong[k].node == at && (!s->wrong[k].defines || s->wrong[k].defines == v)) return &s->wrong[k];
    for (int u = 0; u < s->nuse; u++)
        for (int k = 0; k < s->nwrong && s->use[u].at == at && s->use[u].with >= 0 && s->node[s->use[u].with].index; k++)
            if (s->wrong[k].node == s->use[u].with && !s->wrong[k].defines) return &s->wrong[k];
    return NULL;
}

// What an expression may be, whichever way its choices go.
static bool may_be(const Expr *e, const Expr *value)
{
    if (e == value) return true;
    return e->kind == EX_CALL && e->fn == FN_if_else && (may_be(e->args[1], value) || may_be(e->args[2], value));
}

// w of `w[k] = v[k]*prod(...)` where c ~ categorical(w): the definition is substituted there, and this finds it again. The dimension, or
// -1.
static int weights_dimension(LabelSearch *s, int set, const Var *v)
{
    for (const Factor *f = s->g->factors; f && v->sites; f = f->next) {
        if (!is_law(s, set, f) || f->nargs != 1 || ex_rank(f->args[0]) != 1) continue;
        bool all = true;
        for (const Site *t = v->sites; t && all; t = t->next)
            all = t->value && t->n > 0 && may_be(ex_at(f->args[0], 1, &t->subscript[t->n - 1]), t->value);
        if (all) return v->sites->n - 1;
    }
    return -1;
}

// Labels that something else than their own law identifies are not to be permuted: an array that is looked up by label there has an order
// of its own.
static const char *why_not_permuted(LabelSearch *s, int set)
{
    for (int u = 0; u < s->nuse; u++) {
        const Use *q = &s->use[u];
        const Node *n = &s->node[q->at];
        if (root(s, q->at) != set || !drawn_for_itself(n->var) || !q->factor || q->with < 0 || s->node[q->with].index ||
            is_law(s, set, q->factor))
            continue;
        const Wrong *w = what_is_apart(s, n->var, n->dim);
        if (w) return w->because;
    }
    return NULL;
}

static void add_labelled(LabelSearch *s, Labelled ***last, const Var *v, int set)
{
    Labelled it = {.var = v};
    for (int d = 0; d < v->rank; d++)
        if (root(s, dimension(s, v, d)) == set) it.dims |= 1u << d;
    it.values = v->base == BASE_INT && root(s, values_of(s, v)) == set;
    if (drawn_for_itself(v))
        for (int d = 0; d < v->rank; d++) it.apart |= (it.dims >> d & 1) && what_is_apart(s, v, d);
    else
        for (int k = 0; k < s->nwrong; k++) it.lost |= s->wrong[k].defines == v && root(s, s->wrong[k].node) == set;
    // what a factor says of each value is as exchangeable as the factor, also where it lists the components of a mixture
    if (v->on_request) it.lost = false;
    const int weights = it.lost ? weights_dimension(s, set, v) : -1;
    if (weights >= 0) {
        it.dims = 1u << weights;
        it.lost = it.values = false;
    }
    if (!it.dims && !it.values && !it.lost) return;
    **last = NEW(s->g->arena, Labelled);
    ***last = it;
    *last = &(**last)->next;
}

// What factors, and definitions, say of which dimensions have the same numbers.
static void walk_all(LabelSearch *s)
{
    const Graph *g = s->g;
    for (int i = 0; i < g->nvars; i++) first_of(s, g->vars[i]);
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!factor_counts_at(f, 0, false)) continue;
        s->seen = (Map){0};
        s->factor = f;
        s->span = f->span;
        walk_plates(s, &f->plates);
        walk(s, f->log_density);
    }
    s->factor = NULL;
    for (int i = 0; i < g->nvars; i++)
        for (const Site *t = g->vars[i]->kind == VAR_SERIES && !g->vars[i]->hidden ? g->vars[i]->sites : NULL; t; t = t->next) {
            s->defines = g->vars[i];
            walk_site(s, t);
        }
    s->defines = NULL;
}

// The sets that have the values of an unknown which is drawn.
static void list_sets(LabelSearch *s)
{
    Graph *g = s->g;
    Labels **last = &g->labels;
    bool *sets = NEW_N(g->arena, bool, s->size);
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        if (!drawn_for_itself(v) || v->base != BASE_INT) continue;
        const int set = root(s, values_of(s, v));
        const Expr *count = NULL;
        for (int k = 0; k < s->n && count != v->upper; k++)  // as many as it has values, if an unknown has
            if (root(s, k) == set && !s->node[k].index && s->node[k].dim >= 0 && var_unknown(s->node[k].var) &&
                (!count || s->node[k].var->dim[s->node[k].dim] == v->upper))
                count = s->node[k].var->dim[s->node[k].dim];
        if (!count || sets[set]) continue;
        look_at_variables(s, set, count);
        sets[set] = true;
        Labels *l = *last = NEW(g->arena, Labels);
        *l = (Labels){.by = v, .count = (Expr *)count, .set = set};
        last = &l->next;
    }
    s->is_set = sets;
}

// What runs over a set: data, and variables that are permuted with it.
static void fill_set(LabelSearch *s, Labels *l)
{
    const Graph *g = s->g;
    const Wrong *w = first_wrong(s, l->set);
    Labelled **end = &l->vars;
    Alike **alike = &l->alike;
    l->identified = w ? w->because : NULL;
    l->not_permuted = w ? why_not_permuted(s, l->set) : NULL;
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        if (v->kind == VAR_DATA) {
            for (int d = 0; d < v->rank; d++)
                if (root(s, dimension(s, v, d)) == l->set) {
                    *alike = NEW(g->arena, Alike);
                    **alike = (Alike){.var = v, .dim = d};
                    alike = &(*alike)->next;
                }
        } else if (!v->hidden && v->kind != VAR_LET && v->kind != VAR_SUM) add_labelled(s, &end, v, l->set);
    }
}

bool find_labels(Graph *g)
{
    bool any = false;
    for (int i = 0; i < g->nvars; i++) any |= drawn_for_itself(g->vars[i]) && g->vars[i]->base == BASE_INT;
    if (!any) return true;
    LabelSearch *s = NEW(g->arena, LabelSearch);
    *s = (LabelSearch){.g = g};
    walk_all(s);
    list_sets(s);
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        for (const Site *t = v->kind == VAR_DERIVED || v->kind == VAR_PREDICTED ? v->sites : NULL; t; t = t->next) {
            s->defines = v;
            walk_site(s, t);
        }
    }
    for (Labels *l = g->labels; l; l = l->next) fill_set(s, l);
    return true;
}

void labels_print(FILE *out, const Graph *g)
{
    for (const Labels *l = g->labels; l; l = l->next) {
        fprintf(out, "labels of %s: 1 to ", l->by->name);
        ex_print(out, l->count);
        fprintf(out, l->identified ? ", identified: %s\n" : ", exchangeable\n", l->identified);
        for (const Alike *a = l->alike; a; a = a->next) fprintf(out, "  if %s is the same along dimension %d\n", a->var->name, a->dim + 1);
        if (l->not_permuted) fprintf(out, "  not permuted: %s\n", l->not_permuted);
        for (const Labelled *v = l->vars; v; v = v->next) {
            fprintf(out, "  %s:", v->var->name);
            for (int d = 0; d < v->var->rank; d++)
                if (v->dims >> d & 1) fprintf(out, " dimension %d", d + 1);
            fprintf(out, "%s%s%s\n", v->values ? " values" : "", v->apart ? " stays" : "", v->lost ? " depends on the labels" : "");
        }
    }
}
