// augment.c -- data augmentations of the stdlib, applied to factors.
//
//   before   bernoulli(y[i] | Phi(e))
//   after    normal(z_y[i] | e, 1)     z_y[i] > 0 exactly if y[i] = 1
//
// Needs: the graph built.     Gives: new factors and auxiliary variables. Each replaced factor is kept, marked, for updates that integrate
// the auxiliary out.     Rules: stdlib/augment.
#include "augment.h"
#include "../terms/var.h"
#include "../terms/requests.h"
#include "../terms/reads.h"
#include "../terms/factor.h"
#include "../model/elaborate.h"
#include "../model/law.h"
#include "../model/density.h"
#include "../model/observe.h"
#include "../model/settle.h"
#include "../model/sizes.h"
#include "../algebra/polynomial.h"

typedef struct Match {
    const Augmentation *rule;
    Expr **bound;
} Match;  // bound: what each name of the pattern stands for

static int pattern_index(const Augmentation *r, const Decl *d)
{
    for (int i = 0; i < r->npatterns; i++)
        if (r->patterns[i] == d) return i;
    return -1;
}

static bool match_expr(Graph *g, Match *m, const Ast *p, Expr *e)
{
    switch (p->kind) {
    case AST_NAME: {
        int k = p->decl ? pattern_index(m->rule, p->decl) : -1;
        if (k < 0) return false;
        if (m->bound[k]) return m->bound[k] == e;
        m->bound[k] = e;
        return true;
    }
    case AST_CALL:
        if (e->kind != EX_CALL || e->name != p->name || e->nargs != p->nkids) return false;
        for (int i = 0; i < p->nkids; i++)
            if (!match_expr(g, m, p->kid[i], e->args[i])) return false;
        return true;
    case AST_INT:
    case AST_REAL: return ex_is_num(e, p->number);
    case AST_UNARY:
        return p->op == OP_NEG && (p->kid[0]->kind == AST_INT || p->kid[0]->kind == AST_REAL) && ex_is_num(e, -p->kid[0]->number);
    case AST_STRING:
    case AST_INDEX:
    case AST_RANGE:
    case AST_ALL:
    case AST_BINARY:
    case AST_TRANSPOSE:
    case AST_COND:
    case AST_REDUCE:
    case AST_ARRAY:
    case AST_FUNCTION: break;
    }
    return false;
}

// A truncation bound of the pattern against the factor's: an open end matches an open end.
static bool match_bound(Graph *g, Match *m, const Ast *p, Expr *e)
{
    if (!p) return e == NULL;
    return e && match_expr(g, m, p, e);
}

static bool affine_in_some(Graph *g, Expr *e)
{
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if (!var_unknown(v) || v->discrete || !ex_mentions(e, v)) continue;
        Terms t = polynomial(g->arena, e, &(Unknowns){&v, 1, false}, 1);
        if (!t.failed) return true;
    }
    return false;
}

// Known when the model is compiled: it holds no variable and no index of a loop.
static Look test_varies(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REF || (e->kind == EX_INDEX && !e->index->height) ? FOUND : LOOK;
}
static bool is_constant(const Expr *e) { return !ex_find(e, test_varies, NULL); }

static bool holds(Graph *g, const Match *m, const Ast *w)
{
    if (!w) return true;
    if (w->kind == AST_BINARY && w->op == OP_AND) return holds(g, m, w->kid[0]) && holds(g, m, w->kid[1]);
    if (w->kind == AST_BINARY && w->op == OP_OR) return holds(g, m, w->kid[0]) || holds(g, m, w->kid[1]);
    if (w->kind == AST_UNARY && w->op == OP_NOT) return !holds(g, m, w->kid[0]);
    const Condition condition = condition_of(w);
    if (condition == CONDITION_OTHER) return false;
    for (int i = 0; i < m->rule->npatterns; i++)
        if (!m->bound[i]) return false;
    Expr *e = elaborate_rule(g, w->kid[0], m->rule->npatterns, m->rule->patterns, m->bound);
    switch (condition) {
    case CONDITION_LINEAR: return affine_in_some(g, e);
    case CONDITION_UNKNOWN: return ex_unknown(e);
    case CONDITION_DATA: return !ex_unknown(e);
    case CONDITION_POSITIVE: return ex_positive(e) && !ex_is_num(e, 0);
    case CONDITION_CONSTANT: return is_constant(e);
    case CONDITION_OTHER: break;
    }
    return false;
}

static bool match_factor(Graph *g, Match *m, const Augmentation *rule, const Factor *f)
{
    for (const Pattern *p = rule->match; p; p = p->next) {
        if (p->stmt->dist != f->dist->name || p->stmt->nargs != f->nargs || p->stmt->truncated != f->truncated || f->censored)
            continue;
        *m = (Match){.rule = rule, .bound = NEW_N(g->arena, Expr *, rule->npatterns + 1)};
        bool ok = match_expr(g, m, p->stmt->lhs, f->value);
        for (int i = 0; ok && i < f->nargs; i++) ok = match_expr(g, m, p->stmt->args[i], f->args[i]);
        if (ok && f->truncated) ok = match_bound(g, m, p->stmt->lower, f->lower) && match_bound(g, m, p->stmt->upper, f->upper);
        if (ok && holds(g, m, rule->where)) return true;
    }
    return false;
}

// ---- rows of a statement ----

bool loop_extents(const Loops *p, Expr **extent)
{
    for (int i = 0; i < p->n; i++) {
        extent[i] = p->index[i]->hi;
        for (int k = i - 1; k >= 0; k--)
            if (ex_mentions_index(extent[i], p->index[k]))
                extent[i] = ex_reduce("max", p->index[k], p->index[k]->lo, p->index[k]->hi, extent[i]);
        if (!is_size(extent[i])) return false;
    }
    return true;
}

static Look test_moving(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REF && ((e->var->kind != VAR_DATA && e->var->kind != VAR_LET) || e->var->response) ? FOUND : LOOK;
}

// Of latents: a dimension for each loop, or else the subscripts of the value, of which no statement names an element twice. -1: neither.
// (Which elements there are must not change in the sweep then.)
static int row_subscripts(const Factor *f, Expr **dim, Expr **at)
{
    const Loops *p = &f->plates;
    if (p->n <= MAX_RANK && loop_extents(p, dim)) {
        for (int i = 0; i < p->n; i++) at[i] = ex_index(p->index[i]);
        return p->n;
    }
    if (!f->value || f->value->kind != EX_REF || f->value->var->parts || (p->guard && ex_find(p->guard, test_moving, NULL))) return -1;
    for (int k = 0; k < f->value->nargs; k++) {
        dim[k] = f->value->var->dim[k];
        at[k] = f->value->args[k];
    }
    return f->value->nargs;
}

static Expr *new_latent(Graph *g, const Factor *f, const char *stem)
{
    Var *v = var_unique(g, stem, VAR_AUXILIARY);
    Expr *at[MAX_RANK];
    v->span = f->span;
    v->rank = row_subscripts(f, v->dim, at);
    return ex_ref(v, v->rank, at);
}

static bool mentions_plate(const Expr *e, const Loops *p)
{
    for (int i = 0; e && i < p->n; i++)
        if (ex_mentions_index(e, p->index[i])) return true;
    return false;
}

// Where the range of a loop holds another's index, its own index is in another's, or the condition asks for it.
static bool is_linked(const Loops *p, int at)
{
    if (mentions_plate(p->index[at]->lo, p) || mentions_plate(p->index[at]->hi, p) ||
        (p->guard && ex_mentions_index(p->guard, p->index[at])))
        return true;
    for (int i = 0; i < p->n; i++)
        if (ex_mentions_index(p->index[i]->lo, p->index[at]) || ex_mentions_index(p->index[i]->hi, p->index[at])) return true;
    return false;
}

// j_of_y[i] for y[i] in the slice of j, 0 where it is in none: a LET with the subscripts that decide.
static Expr *slice_of(Graph *g, const Factor *f, const Loops *p, Index *j, int n, Expr *const *dim, Expr *const *at)
{
    Var *v = var_unique(g, arena_printf(g->arena, "%s_of_%s", j->name, f->value->var->name), VAR_LET);
    Site *none = NEW(g->arena, Site), *own = NEW(g->arena, Site);
    *none = (Site){.span = f->span, .var = v, .plates = {.n = n}, .n = n, .value = ex_num(0), .next = own};
    *own = (Site){.span = f->span, .var = v, .plates = *p, .n = n, .value = ex_index(j)};
    v->base = BASE_INT;
    v->span = f->span;
    v->rank = n;
    v->sites = none;
    if (j->least >= 0) v->lower_number = 0;
    v->known.unsure = true;  // the loops' ends are data, which may name elements that do not exist
    for (int k = 0; k < n; k++) {
        v->dim[k] = dim[k];
        none->plates.index[k] = index_new(at[k]->index->name, ex_num(1), dim[k]);
        none->subscript[k] = ex_index(none->plates.index[k]);
        own->subscript[k] = at[k];
    }
    return ex_ref(v, n, at);
}

typedef struct Places {
    int n;
    Index *from[MAX_PLATES];
    Expr *to[MAX_PLATES];
} Places;

static Expr *moved(const Places *m, Expr *e)
{
    for (int i = 0; e && i < m->n; i++) e = ex_replace_index(e, m->from[i], m->to[i]);
    return e;
}

// What a statement is made of, at these places.
static void move_all(Graph *g, Factor *rows, const Factor *f, const Places *m)
{
    rows->value = moved(m, f->value);
    rows->log_density = moved(m, f->log_density);
    rows->lower = moved(m, f->lower);
    rows->upper = moved(m, f->upper);
    rows->weights = moved(m, f->weights);
    rows->args = NEW_N(g->arena, Expr *, f->nargs + 1);
    for (int i = 0; i < f->nargs; i++) rows->args[i] = moved(m, f->args[i]);
    rows->component = NEW_N(g->arena, Component, f->ncomponents + 1);
    for (int c = 0; c < f->ncomponents; c++) {
        Component *own = &rows->component[c];
        *own = f->component[c];
        own->weight = moved(m, own->weight);
        own->args = NEW_N(g->arena, Expr *, own->nargs + 1);
        for (int i = 0; i < own->nargs; i++) own->args[i] = moved(m, f->component[c].args[i]);
    }
}

// The statement with a loop over the elements of its value in place of slices that other loops pick, of which each element looks up its
// own:
//
//   before   y[i] ~ f(u[j]) over j in 1:J, i in first[j]:last[j]
//   after    y[i] ~ f(u[j_of_y[i]]) over i in 1:N where 1 <= j_of_y[i]
//
// Latents are then one for each element, whatever the slices, and are drawn without a search for theirs. NULL: it is left as it is.
static Factor *by_elements(Graph *g, const Factor *f)
{
    const Loops *p = &f->plates;
    const Expr *value = f->value;
    Expr *extent[MAX_PLATES], *dim[MAX_RANK], *at[MAX_RANK];
    bool named[MAX_PLATES] = {false};
    Places m = {0};
    int n = 0;
    if (p->n > MAX_PLATES || loop_extents(p, extent) || value->kind != EX_REF || value->var->parts ||
        (f->plate && (mentions_plate(f->plate->lo, p) || mentions_plate(f->plate->hi, p))))
        return NULL;
    Factor *rows = arena_copy(g->arena, f, sizeof *f);
    rows->plates = (Loops){0};
    for (int k = 0; k < value->nargs; k++) {
        int own = -1;
        for (int i = 0; i < p->n; i++)
            if (value->args[k] == ex_index(p->index[i])) own = i;
        if (own < 0 && mentions_plate(value->args[k], p)) return NULL;
        if (own < 0) continue;
        if (named[own]) return NULL;
        named[own] = true;
        Index *each = index_new(p->index[own]->name, ex_num(1), value->var->dim[k]);
        rows->plates.index[rows->plates.n++] = each;
        m.from[m.n] = p->index[own];
        m.to[m.n++] = ex_index(each);
        if (!is_linked(p, own)) {
            if (!ex_is_num(p->index[own]->lo, 1) || p->index[own]->hi != each->hi) return NULL;
            continue;
        }
        dim[n] = value->var->dim[k];
        at[n++] = value->args[k];
    }
    if (n == 0) return NULL;
    bool picks = false;  // the condition holds an index that the slices give: it says which slice
    int counted = -1;    // a slice from 1 on: 0 is none
    for (int i = 0; i < p->n; i++) {
        picks |= !named[i] && p->guard && ex_mentions_index(p->guard, p->index[i]);
        if (!named[i] && p->index[i]->least == 1) counted = i;
    }
    if (counted < 0 || (picks && ex_find(p->guard, test_moving, NULL))) return NULL;  // or the subscripts decide all
    Loops slices = *p;
    if (!picks) slices.guard = NULL;
    for (int i = 0; i < p->n; i++) {
        if (named[i]) continue;
        m.from[m.n] = p->index[i];
        m.to[m.n++] = slice_of(g, f, &slices, p->index[i], n, dim, at);
    }
    for (int i = 0; i < m.n; i++) m.to[i] = moved(&m, m.to[i]);
    rows->plates.guard = ex_call2("<=", ex_num(1), moved(&m, ex_index(p->index[counted])));
    if (p->guard && !picks) rows->plates.guard = ex_call2("&&", rows->plates.guard, moved(&m, p->guard));
    move_all(g, rows, f, &m);
    return rows;
}

static const Request *request_for(const Graph *g, const Factor *f)
{
    if (f->value->kind != EX_REF) return NULL;
    for (const Request *r = g->model->requests; r; r = r->next) {
        if (r->block != BLOCK_AUGMENT) continue;
        for (int i = 0; i < r->nnames; i++)
            if (r->names[i] == f->value->var->name) return r;
    }
    return NULL;
}

// A latent has a dimension for each loop around the statement, if a variable may have as many and their sizes are known; else those of the
// value, if that is an element; else the statement is left as it is written, and that is said.
static bool has_room(Graph *g, const Factor *f, const Request *req)
{
    Expr *dim[MAX_RANK], *at[MAX_RANK];
    if (f->plates.n <= MAX_RANK && row_subscripts(f, dim, at) >= 0) return true;
    const char *name = f->value->kind == EX_REF ? f->value->var->name : f->dist->name;
    const char *why = f->plates.n <= MAX_RANK
                          ? "its loops have ends that are not sizes, and its value is no element that latents could have the subscripts of"
                          : arena_printf(g->arena,
                                         "%s the combinations of %d indices, and a latent has at most %d dimensions; one loop over all "
                                         "combinations of several indices does the same",
                                         req ? "its statement covers" : "it covers", f->plates.n, MAX_RANK);
    if (req) diag_help(diag(g->diags, req->span, DIAG_E0505, req->by, name), "%s", why);
    else diag_because(diag(g->diags, f->span, DIAG_P0603, name), "%s", why);
    return false;
}

// of: the factor, or that by elements of its value.
static void apply(Graph *g, Factor *f, const Factor *of, const Match *m, const Request *req)
{
    const Augmentation *rule = m->rule;
    int n = rule->npatterns + rule->nlatents;
    Decl **names = NEW_N(g->arena, Decl *, n);
    Expr **values = NEW_N(g->arena, Expr *, n);
    for (int i = 0; i < rule->npatterns; i++) {
        names[i] = rule->patterns[i];
        values[i] = m->bound[i];
    }
    Applied *done = NEW(g->arena, Applied);
    *done = (Applied){.rule = rule, .factor = f};
    for (int i = 0; i < rule->nlatents; i++) {
        const char *stem = i == 0 && req && req->as ? req->as : rule->latents[i]->name;
        if (!(i == 0 && req && req->as) && f->value->kind == EX_REF) stem = arena_printf(g->arena, "%s_%s", stem, f->value->var->name);
        Expr *latent = new_latent(g, of, stem);
        if (i == 0) done->latent = latent->var;
        names[rule->npatterns + i] = rule->latents[i];
        values[rule->npatterns + i] = latent;
    }
    *g->last_applied = done;
    g->last_applied = &done->next;
    f->replaced = true;
    for (const Stmt *s = rule->replace; s; s = s->next) {
        Factor *new = factor_new(g, f->span, of->plates);
        new->original = f;
        new->rule = rule;
        if (s->kind == STMT_TARGET) new->log_density = elaborate_rule(g, s->rhs, n, names, values);
        else if (s->kind == STMT_DEFINE)
            observe_value(g, new, f->span, elaborate_rule(g, s->lhs, n, names, values), elaborate_rule(g, s->rhs, n, names, values));
        else if (s->kind == STMT_TILDE) {
            const Distribution *d = library_distribution(g->stdlib, s->dist);
            if (!d) continue;
            Expr **args = NEW_N(g->arena, Expr *, s->nargs + 1);
            for (int i = 0; i < s->nargs; i++) args[i] = elaborate_rule(g, s->args[i], n, names, values);
            new->truncated = s->truncated;
            if (s->lower) new->lower = elaborate_rule(g, s->lower, n, names, values);
            if (s->upper) new->upper = elaborate_rule(g, s->upper, n, names, values);
            factor_density(g, new, d, elaborate_rule(g, s->lhs, n, names, values), s->nargs, args);
        }
    }
}

// The argument of a mixture's component z: m[1], m[2], ... are m[z]; others are chosen by z, if they differ.
static Expr *chosen(const Factor *f, Expr *z, Expr *(*of)(const Component *, int), int which)
{
    Expr *first = of(&f->component[0], which);
    if (f->plate) return ex_replace_index(first, f->plate, z);
    bool same = true;
    for (int k = 1; k < f->ncomponents; k++) same &= of(&f->component[k], which) == first;
    if (same) return first;
    for (int at = 0; first->kind == EX_REF && at < first->nargs; at++) {
        bool gather = true;
        for (int k = 0; k < f->ncomponents && gather; k++) {
            const Expr *e = of(&f->component[k], which);
            gather = e->kind == EX_REF && e->var == first->var && e->nargs == first->nargs && ex_is_num(e->args[at], k + 1);
            for (int i = 0; i < first->nargs && gather; i++) gather = i == at || e->args[i] == first->args[i];
        }
        if (!gather) continue;
        Expr *sub[MAX_RANK];
        for (int i = 0; i < first->nargs; i++) sub[i] = i == at ? z : first->args[i];
        return ex_ref(first->var, first->nargs, sub);
    }
    if (ex_rank(first) > 0) return NULL;
    Expr *e = of(&f->component[f->ncomponents - 1], which);
    for (int k = f->ncomponents - 2; k >= 0; k--) e = ex_call3("if_else", ex_call2("==", z, ex_num(k + 1)), of(&f->component[k], which), e);
    return e;
}

static Expr *argument_of(const Component *c, int which) { return c->args[which]; }
static Expr *weight_of(const Component *c, int which)
{
    (void)which;
    return c->weight;
}

// A mixture is drawn with an indicator of each value's component: z of 1:K with the weights' probabilities, and the value given z.
static void indicate(Graph *g, Factor *written, const Factor *f, const Request *req)
{
    static const Augmentation rule = {.name = "mixture_indicator", .reference = "Diebolt and Robert 1994"};
    const char *stem = req && req->as ? req->as : f->value->kind == EX_REF ? arena_printf(g->arena, "z_%s", f->value->var->name) : "z";
    Expr *z = new_latent(g, f, stem), *most = f->plate ? f->plate->hi : ex_num(f->ncomponents);
    Var *v = z->var;
    v->base = BASE_INT;
    v->discrete = true;
    v->lower = ex_num(1);
    v->lower_number = 1;
    v->upper = most;
    if (most->kind == EX_NUM) v->upper_number = most->number;
    Applied *done = NEW(g->arena, Applied);
    *done = (Applied){.rule = &rule, .factor = written, .latent = v};
    *g->last_applied = done;
    g->last_applied = &done->next;
    written->replaced = true;
    Factor *weight = factor_new(g, f->span, f->plates), *value = factor_new(g, f->span, f->plates);
    weight->original = value->original = written;
    weight->rule = value->rule = &rule;
    Expr *w = chosen(f, z, weight_of, 0), *e = ex_log(f->component[f->ncomponents - 1].weight);
    for (int k = f->ncomponents - 2; k >= 0; k--)
        e = ex_call3("if_else", ex_call2("==", z, ex_num(k + 1)), ex_log(f->component[k].weight), e);
    // logs of listed weights are statistics, the log of a choice is not
    weight->log_density = f->plate || w->kind == EX_REF ? ex_log(w) : e;
    value->value = f->value;
    value->observed = f->observed;
    Factor given = *f;  // component_density compares a component's ends with the whole's
    bool alike = true;
    for (int k = 1; k < f->ncomponents; k++) alike &= f->component[k].dist == f->component[0].dist;
    Component one = f->component[0];
    one.args = NEW_N(g->arena, Expr *, one.nargs + 1);
    for (int i = 0; i < one.nargs && alike; i++)
        alike = (one.args[i] = chosen(f, z, argument_of, i)) &&
                (f->plate || one.args[i]->kind == EX_REF || one.args[i] == f->component[0].args[i]);
    if (alike) value->log_density = component_density(g, &given, &one);
    else {
        e = component_density(g, &given, &f->component[f->ncomponents - 1]);
        for (int k = f->ncomponents - 2; k >= 0; k--)
            e = ex_call3("if_else", ex_call2("==", z, ex_num(k + 1)), component_density(g, &given, &f->component[k]), e);
        value->log_density = e;
    }
}

// Whether all unknowns of a statement are moved by gradients, which need no latents.
typedef struct AskedAugmentation {
    const Graph *g;
    bool other;
} AskedAugmentation;

static bool test_other_method(const Var *v, void *with)
{
    AskedAugmentation *a = with;
    if (!var_unknown(v)) return false;
    bool nuts = a->g->method == METHOD_NUTS && has_coordinates(v, NULL);
    const Request *r = request_of(a->g, v);
    if (r) nuts = asks_for_gradients(r);
    a->other |= !nuts;
    return a->other;
}

static bool by_gradients(const Graph *g, const Factor *f)
{
    AskedAugmentation a = {g, false};
    return ex_unknown(f->log_density) && !ex_any_var(f->log_density, test_other_method, &a);
}

// Whether what moves the others sees a sum in its place, which latents would not make conjugate.
static bool test_marginal(const Var *v, void *with) { return asked_marginal(with, v); }
static bool is_summed(const Graph *g, const Factor *f) { return ex_any_var(f->log_density, test_marginal, (void *)g); }

bool augment(Graph *g)
{
    for (Factor *f = g->factors; f; f = f->next) {  // factors made here are visited later in this loop
        if (!f->dist || f->replaced || !f->value) continue;
        int depth = 0;
        for (const Factor *o = f; o != factor_written(o); o = o->original) depth++;
        const Request *req = request_for(g, f);
        if (depth > 3 || (g->no_augment && !req) || (req && req->method == METHOD_NONE) ||
            (!req && (by_gradients(g, f) || is_summed(g, f))))
            continue;
        if (f->ncomponents && (!req || req->method == METHOD_INDICATOR)) {
            const Factor *rows = by_elements(g, f);
            if (has_room(g, rows ? rows : f, req)) indicate(g, f, rows ? rows : f, req);
            continue;
        }
        bool known = !req, done = false;
        for (const Augmentation *rule = g->stdlib->augmentations; rule && !done; rule = rule->next) {
            if (req && depth == 0 && req->by != rule->name) continue;
            known = true;
            Match m;
            if (!match_factor(g, &m, rule, f)) continue;
            const Factor *rows = by_elements(g, f);
            if (rows && !match_factor(g, &m, rule, rows)) match_factor(g, &m, rule, f), rows = NULL;
            if (has_room(g, rows ? rows : f, req)) apply(g, f, rows ? rows : f, &m, req);
            done = true;
        }
        if (req && depth == 0 && !done) {
            Diag *m = diag(g->diags, req->span, DIAG_E0505, req->by, f->value->var->name);
            diag_help(m, known ? "the rule's pattern or its conditions do not hold for `%s`" : "there is no rule `%s` in the stdlib",
                      known ? f->dist->name : req->by);
        }
    }
    name_subscripts(g);
    settle_values(g);
    return diags_errors(g->diags) == 0;
}
