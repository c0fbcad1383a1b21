// columns.c -- linear predictors that are written out, as the product of a matrix and a vector.
//
//   before   y[i] ~ normal(b1*x1[i] + b2*square(x2[i]) + ... + b40*x40[i], s)                 40 unknowns, 820 sums of products
//   after    y[i] ~ normal(sum(j in 1:40, columns[i,j]*b1_to_b40[j]), s)                      one of each
//            columns[i,1] = x1[i], columns[i,2] = x2[i]^2, ...                                computed once
//
// From here on such a model is the one that has a matrix: whatever is known of X*beta holds (Gram matrices, row passes, few rows,
// predictors that are kept). The unknowns keep their names: in files, draws and messages b3 is b3, and its place in memory is the vector's
// third. Elements of a vector that the model has, beta[1]*x1[i] + beta[2]*x2[i] + ..., need the matrix only.
//
// What else moves in a term, z[i] in b1*x1[i]*z[i] + b2*x2[i]*z[i] + ..., is taken out of the sum of those terms that share it.
//
// Unknowns are put into one vector if they are real, unbounded, linear wherever they occur but for their own `~`, and have the same kind of
// distribution there: then what draws one of them draws all.
//
// Needs: the graph as built.     Gives: VAR_PART unknowns, the vectors that they are parts of, matrices as lets.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "columns.h"
#include "../terms/var.h"
#include "../terms/factor.h"
#include "../terms/feasible.h"

enum { FEWEST = 6 };  // terms: fewer are as well off by themselves

typedef struct Scalar {  // of a scalar unknown
    bool candidate;
    int statements;
    const Distribution *dist;
    Var *vector;  // that it is element `at` of, or NULL
    int at;
} Scalar;

typedef struct Matrix {  // columns that were made
    Var *var;
    Loops rows;
    int n;
    Expr **column;  // in terms of the indices of `rows`; NULL: zero
    struct Matrix *next;
} Matrix;

typedef struct Columns {
    Graph *g;
    Scalar *part;  // by variable
    int nparts;
    Matrix *matrices;
    const Loops *plates;  // around the expression at hand
    Span span;
    bool making;   // matrices may be made for it
    Map done;      // sums that were met, to what was made of them
    Expr *hidden;  // stands for linear terms while other occurrences are looked for
} Columns;

static Scalar *part_of(const Columns *x, const Var *v) { return v->id < x->nparts ? &x->part[v->id] : NULL; }

static bool test_not_fixed(const Var *v, void *with)
{
    (void)with;
    return (v->kind != VAR_DATA && v->kind != VAR_LET) || v->response;
}
static bool is_fixed(const Expr *e) { return !ex_any_var(e, test_not_fixed, NULL); }

// An unknown that may be multiplied by a column: a candidate, or an element of a vector with a number for its subscript.
static bool is_coefficient(const Columns *x, const Expr *e)
{
    if (e->kind != EX_REF) return false;
    const Scalar *p = part_of(x, e->var);
    if (e->nargs == 0) return p && p->candidate;
    const Var *v = e->var;
    return var_unknown(v) && v->rank == 1 && e->nargs == 1 && v->base == BASE_REAL && !v->discrete && v->constraint == CONSTRAINT_NONE &&
           e->args[0]->kind == EX_NUM && e->args[0]->number >= 1 && e->args[0]->number <= 10000;
}

typedef struct ColumnTerm {  // a term: coefficient * column * rest
    Expr *coefficient;
    Expr *column;  // of data
    Expr *rest;    // 1, or what else moves: the z[i] of b1*x1[i]*z[i]
} ColumnTerm;

static bool linear_term(const Columns *x, Expr *t, ColumnTerm *l)
{
    *l = (ColumnTerm){NULL, ex_num(1), ex_num(1)};
    Expr **factors = t->kind == EX_MUL ? t->args : &t;
    for (int i = 0; i < (t->kind == EX_MUL ? t->nargs : 1); i++) {
        Expr *f = factors[i];
        if (!l->coefficient && is_coefficient(x, f)) l->coefficient = f;
        else if (f->loose) return false;
        else if (is_fixed(f)) l->column = ex_mul2(l->column, f);
        else l->rest = ex_mul2(l->rest, f);
    }
    return l->coefficient && !ex_mentions(l->rest, l->coefficient->var);
}

static bool in_loops(const Expr *e, const Loops *p)
{
    for (int i = 0; i < p->n; i++)
        if (ex_mentions_index(e, p->index[i])) return true;
    return false;
}

// ---- every expression of a factor or a statement ----

// ---- which unknowns ----

static Expr *hide_leaf(Expr *e, void *with)
{
    Columns *x = with;
    if (e->kind != EX_ADD) return NULL;
    Expr *known = map_get(&x->done, e), **rest = known ? NULL : NEW_N(x->g->arena, Expr *, e->nargs + 1);
    if (known) return known;
    ColumnTerm l;
    for (int i = 0; i < e->nargs; i++)
        rest[i] = linear_term(x, e->args[i], &l) ? ex_mul2(x->hidden, ex_map(l.rest, hide_leaf, x)) : ex_map(e->args[i], hide_leaf, x);
    known = ex_add(e->nargs, rest);
    map_put(x->g->arena, &x->done, e, known);
    return known;
}

static bool test_reject(const Var *v, void *with)
{
    const Columns *x = with;
    if (part_of(x, v)) part_of(x, v)->candidate = false;
    return false;
}

static void reject(Columns *x, const Expr *e)
{
    if (e) ex_any_var(e, test_reject, x);
}

// Elsewhere than in linear terms, and in its own `~`.
static void reject_others(Columns *x, Factor *f)
{
    const Var *own = f->value && f->value->kind == EX_REF && f->value->nargs == 0 ? f->value->var : NULL;
    const bool keep = own && part_of(x, own)->candidate;
    reject(x, keep ? f->log_density : ex_map(f->log_density, hide_leaf, x));
    Expr *const rest[] = {f->lower, f->upper, f->least, f->most, f->from, f->to, f->if_missing, f->plates.guard};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) reject(x, rest[i]);
    if (keep) part_of(x, own)->candidate = true;
}

static Look test_long(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_ADD && e->nargs >= FEWEST ? FOUND : LOOK;
}

static void find_candidates(Columns *x)
{
    Graph *g = x->g;
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        x->part[i].candidate = v->kind == VAR_PARAMETER && v->decl && v->rank == 0 && v->base == BASE_REAL && !v->discrete && !v->mixed &&
                               !v->series && v->constraint == CONSTRAINT_NONE && !v->lower && !v->upper && isinf(v->lower_number) &&
                               isinf(v->upper_number);
        for (const Request *r = g->model->requests; r && x->part[i].candidate; r = r->next)
            for (int k = 0; k < r->nnames; k++)
                if (r->names[k] == v->name) x->part[i].candidate = false;
    }
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!f->value || f->value->kind != EX_REF || f->value->nargs) continue;
        Scalar *p = part_of(x, f->value->var);
        if (p->statements++ || f->region || f->plates.n || f->plates.guard) p->candidate = false;
        p->dist = f->ncomponents ? NULL : f->dist;
        p->candidate &= p->dist != NULL && !f->truncated;
    }
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        x->part[i].candidate &= x->part[i].statements == 1;
        reject(x, v->lower);
        reject(x, v->upper);
        for (const Site *t = v->kind == VAR_SERIES ? v->sites : NULL; t; t = t->next) reject(x, t->value);
    }
    for (const Series *s = g->series; s; s = s->next)
        for (const Site *t = s->sites; t; t = t->next) reject(x, t->value);
    for (Factor *f = g->factors; f; f = f->next) {
        FactorPart *part;
        // starts are looked for by name
        const bool named = factor_vanishing(f) != VANISHES_NEVER || factor_parts(g->arena, f, &part) > 0;
        if (named) reject(x, f->log_density);
        reject_others(x, f);
    }
}

// ---- vectors of them ----

static int by_order(const void *a, const void *b) { return (*(Var *const *)a)->id - (*(Var *const *)b)->id; }

static void make_vector(Columns *x, Var **member, int n)
{
    Graph *g = x->g;
    qsort(member, (size_t)n, sizeof *member, by_order);
    Var *v = var_unique(g, arena_printf(g->arena, "%s_to_%s", member[0]->name, member[n - 1]->name), VAR_PARAMETER);
    v->rank = 1;
    v->dim[0] = ex_num(n);
    v->span = member[0]->span;
    v->parts = arena_copy(g->arena, member, sizeof *member * (size_t)n);
    for (int k = 0; k < n; k++) {
        member[k]->kind = VAR_PART;
        member[k]->part_of = v;
        member[k]->part_at = k;
        *part_of(x, member[k]) = (Scalar){.candidate = true, .vector = v, .at = k};
    }
}

// The unknowns of a long sum, by the kind of their distributions.
static Look test_group(const Expr *e, void *with)
{
    Columns *x = with;
    if (e->kind != EX_ADD || e->nargs < FEWEST) return LOOK;
    Var **member = NEW_N(x->g->arena, Var *, e->nargs);
    ColumnTerm *term = NEW_N(x->g->arena, ColumnTerm, e->nargs);
    bool *taken = NEW_N(x->g->arena, bool, e->nargs);
    for (int i = 0; i < e->nargs; i++)  // taken: by another group, or no term of a linear predictor at all
        taken[i] = !linear_term(x, e->args[i], &term[i]) || term[i].coefficient->nargs || !in_loops(term[i].column, x->plates);
    for (int first = 0; first < e->nargs; first++) {
        if (taken[first]) continue;
        const Distribution *dist = NULL;
        const Expr *rest = NULL;
        int n = 0;
        for (int i = first; i < e->nargs; i++) {
            if (taken[i]) continue;
            const ColumnTerm l = term[i];
            const Scalar *p = part_of(x, l.coefficient->var);
            if (p->vector || (n && (p->dist != dist || l.rest != rest))) continue;
            bool seen = false;
            for (int k = 0; k < n; k++) seen |= member[k] == l.coefficient->var;
            dist = p->dist;
            rest = l.rest;
            taken[i] = true;
            if (!seen) member[n++] = l.coefficient->var;
        }
        if (n >= FEWEST) make_vector(x, member, n);
    }
    return LOOK;
}

// ---- matrices ----

// The loops that columns go over: those they mention, or all of them under a condition. false: they are no rows of a matrix.
static bool rows_of(const Columns *x, Expr *const *column, int n, Loops *rows)
{
    const Loops *p = x->plates;
    if (p->guard && !is_fixed(p->guard)) return false;
    *rows = (Loops){.guard = p->guard};
    for (int i = 0; i < p->n; i++) {
        Index *at = p->index[i];
        bool used = p->guard != NULL;
        for (int k = 0; k < n; k++) used |= column[k] && ex_mentions_index(column[k], at);
        if (!used) continue;
        if (at->lo->kind != EX_NUM || at->lo->number < 1 || !is_fixed(at->hi) || in_loops(at->hi, p) || rows->n + 2 > MAX_RANK)
            return false;
        rows->index[rows->n++] = at;
    }
    return rows->n > 0;
}

static Expr *renamed(Expr *e, const Loops *from, const Loops *to)
{
    for (int i = 0; e && i < from->n; i++) e = ex_replace_index(e, from->index[i], ex_index(to->index[i]));
    return e;
}

static Matrix *find_matrix(const Columns *x, Expr *const *column, int n, const Loops *rows)
{
    for (Matrix *m = x->matrices; m; m = m->next) {
        bool same = m->n == n && m->rows.n == rows->n;
        for (int i = 0; i < rows->n && same; i++)
            same = rows->index[i]->lo == m->rows.index[i]->lo && rows->index[i]->hi == m->rows.index[i]->hi;
        same = same && renamed(rows->guard, rows, &m->rows) == m->rows.guard;
        for (int k = 0; k < n && same; k++) same = renamed(column[k], rows, &m->rows) == m->column[k];
        if (same) return m;
    }
    return NULL;
}

// X, if the columns are all those of a matrix, as they stand.
static Var *matrix_itself(Expr *const *column, int n, const Loops *rows)
{
    if (rows->n != 1 || rows->guard || !column[0] || column[0]->kind != EX_REF || column[0]->nargs != 2 ||
        !ex_is_num(column[0]->var->dim[1], n))
        return NULL;
    for (int k = 0; k < n; k++)
        if (!column[k] || column[k]->kind != EX_REF || column[k]->nargs != 2 || column[k]->var != column[0]->var ||
            column[k]->args[0] != ex_index(rows->index[0]) || !ex_is_num(column[k]->args[1], k + 1))
            return NULL;
    return column[0]->var;
}

static Matrix *make_matrix(Columns *x, Expr *const *column, int n, const Loops *rows)
{
    Graph *g = x->g;
    Matrix *m = NEW(g->arena, Matrix);
    Var *v = var_unique(g, "columns", VAR_LET);
    *m = (Matrix){.var = v, .n = n, .column = NEW_N(g->arena, Expr *, n), .next = x->matrices};
    v->span = x->span;
    v->known.unsure = true;
    m->rows = (Loops){.n = rows->n};
    for (int i = 0; i < rows->n; i++) {
        m->rows.index[i] = index_new(rows->index[i]->name, rows->index[i]->lo, rows->index[i]->hi);
        v->dim[v->rank++] = rows->index[i]->hi;
    }
    v->dim[v->rank++] = ex_num(n);
    m->rows.guard = renamed(rows->guard, rows, &m->rows);
    Site **last = &v->sites;
    for (int k = 0; k < n; k++) {
        m->column[k] = renamed(column[k], rows, &m->rows);
        if (!column[k]) continue;
        Site *t = *last = NEW(g->arena, Site);
        last = &t->next;
        *t = (Site){.span = x->span, .var = v, .plates = m->rows, .value = m->column[k]};
        for (int i = 0; i < rows->n; i++) t->subscript[t->n++] = ex_index(m->rows.index[i]);
        t->subscript[t->n++] = ex_num(k + 1);
    }
    return x->matrices = m;
}

static Expr *element(const Columns *x, const Expr *coefficient)
{
    const Scalar *p = part_of(x, coefficient->var);
    return p && p->vector ? ex_ref(p->vector, 1, (Expr *[]){ex_num(p->at + 1)}) : (Expr *)coefficient;
}

static Expr *change_leaf(Expr *e, void *with);

// The terms of one vector in a sum, of those that share what else moves; NULL: they stay as they are.
static Expr *product(Columns *x, const Expr *sum, Var *v, const Expr *rest, bool *taken)
{
    Graph *g = x->g;
    ColumnTerm l;
    int n = 0, found = 0;
    for (int i = 0; i < sum->nargs; i++) {
        if (!linear_term(x, sum->args[i], &l) || l.rest != rest || element(x, l.coefficient)->var != v) continue;
        const int k = (int)element(x, l.coefficient)->args[0]->number;
        if (k > n) n = k;
        found++;
    }
    if (v->parts) n = (int)v->dim[0]->number;
    if (found < FEWEST || 2 * found < n) return NULL;
    Expr **column = NEW_N(g->arena, Expr *, n), *first = NULL;
    memset(column, 0, sizeof *column * (size_t)n);
    for (int i = 0; i < sum->nargs; i++) {
        if (!linear_term(x, sum->args[i], &l) || l.rest != rest || element(x, l.coefficient)->var != v) continue;
        Expr **to = &column[(int)element(x, l.coefficient)->args[0]->number - 1];
        *to = *to ? ex_add2(*to, l.column) : l.column;
    }
    for (int k = 0; k < n && !first; k++) first = column[k];
    const double scale = first->kind == EX_NUM                                     ? first->number
                         : first->kind == EX_MUL && first->args[0]->kind == EX_NUM ? first->args[0]->number
                                                                                   : 1;
    for (int k = 0; k < n; k++)
        if (column[k]) column[k] = ex_mul2(ex_num(1 / scale), column[k]);
    Loops rows;
    if (!rows_of(x, column, n, &rows)) return NULL;
    Var *matrix = matrix_itself(column, n, &rows);
    const Matrix *m = matrix ? NULL : find_matrix(x, column, n, &rows);
    if (!matrix && !m && !x->making) return NULL;
    if (!matrix) matrix = (m ? m : make_matrix(x, column, n, &rows))->var;
    for (int i = 0; i < sum->nargs; i++)
        taken[i] |= linear_term(x, sum->args[i], &l) && l.rest == rest && element(x, l.coefficient)->var == v;
    Index *j = index_new(intern("j"), ex_num(1), ex_num(n));
    Expr *at[MAX_RANK], *of = ex_index(j);
    for (int i = 0; i < rows.n; i++) at[i] = ex_index(rows.index[i]);
    at[rows.n] = of;
    return ex_mul2(ex_num(scale), ex_reduce("sum", j, j->lo, j->hi, ex_mul2(ex_ref(matrix, rows.n + 1, at), ex_ref(v, 1, &of))));
}

static Expr *change_leaf(Expr *e, void *with)
{
    Columns *x = with;
    if (e->kind == EX_REF && e->nargs == 0 && part_of(x, e->var) && part_of(x, e->var)->vector) return element(x, e);
    if (e->kind != EX_ADD) return NULL;
    Expr *known = map_get(&x->done, e);
    if (known) return known;
    Expr **out = NEW_N(x->g->arena, Expr *, 2 * e->nargs);
    ColumnTerm *tried = NEW_N(x->g->arena, ColumnTerm, e->nargs), l;
    bool *taken = NEW_N(x->g->arena, bool, e->nargs);
    int n = 0, ntried = 0;
    memset(taken, 0, sizeof *taken * (size_t)e->nargs);
    for (int i = 0; i < e->nargs && e->nargs >= FEWEST; i++) {
        if (taken[i] || !linear_term(x, e->args[i], &l)) continue;
        l.coefficient = element(x, l.coefficient);
        Var *v = l.coefficient->var;
        bool again = v->rank == 0;
        for (int k = 0; k < ntried; k++) again |= tried[k].coefficient->var == v && tried[k].rest == l.rest;
        if (again) continue;
        tried[ntried++] = l;
        Expr *p = product(x, e, v, l.rest, taken);
        if (p) out[n++] = ex_mul2(ex_map(l.rest, change_leaf, x), p);
    }
    for (int i = 0; i < e->nargs; i++)
        if (!taken[i]) out[n++] = ex_map(e->args[i], change_leaf, x);
    known = ex_add(n, out);
    map_put(x->g->arena, &x->done, e, known);
    return known;
}

static Expr *change_expr(Expr *e, void *with) { return ex_map(e, change_leaf, with); }

static bool bare(const Loops *p) { return p && p->n == 0 && !p->guard; }

// What was made of sums holds for the next expression too, if neither stands in a loop nor brings matrices: definitions of definitions
// share most of theirs.
static void begin(Columns *x, const Loops *plates, Span span, bool making)
{
    const bool same = !making && !x->making && bare(x->plates) && bare(plates);
    x->plates = plates;
    x->span = span;
    x->making = making;
    if (!same) x->done = (Map){0};
}

bool find_columns(Graph *g)
{
    bool any = false;
    for (const Factor *f = g->factors; f && !any; f = f->next) any = ex_find(f->log_density, test_long, NULL);
    if (!any) return true;
    Columns x = {.g = g};
    x.hidden = ex_ref(var_new(g, intern("linear terms"), VAR_ELEMENT), 0, NULL);
    x.nparts = g->nvars;
    x.part = NEW_N(g->arena, Scalar, g->nvars);
    memset(x.part, 0, sizeof *x.part * (size_t)g->nvars);
    find_candidates(&x);
    for (const Factor *f = g->factors; f; f = f->next) {
        x.plates = &f->plates;
        ex_find(f->log_density, test_group, &x);
    }
    for (int i = 0; i < x.nparts; i++) x.part[i].candidate &= x.part[i].vector != NULL;
    for (Factor *f = g->factors; f; f = f->next) {
        begin(&x, &f->plates, f->span, true);
        factor_change(f, change_expr, &x);
    }
    for (int i = 0; i < x.nparts; i++)
        for (Site *t = g->vars[i]->kind == VAR_DERIVED || g->vars[i]->kind == VAR_PREDICTED ? g->vars[i]->sites : NULL; t; t = t->next) {
            begin(&x, &t->plates, t->span, false);  // for the draws: with the columns that there are
            site_change(t, change_expr, &x);
        }
    return true;
}
