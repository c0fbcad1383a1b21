// data_requirements.c -- what data must satisfy for every element that the model reads to exist: checked once, when data are read.
//
//   before   y[i] ~ normal(u[g[i]], s) over i in 1:N           u has J elements, and nothing is declared of g
//   after    requirement: not g[i] < 1, not J < g[i]     at each i in 1:N
//
// Needs: the checked tree, its variables, the ranges of discrete unknowns.     Gives: g->requirements; Var.unsure, Var.wild.     Keeps:
// everything else. The tree is walked, not the factors: there a subscript stands as the user wrote it, under the conditions of the loops,
// `if` and `?:` around it. What follows from loops, conditions and declared bounds is not required. A discrete unknown, and a whole number
// that may be missing, takes all values of its range in turn. What depends on an unknown without a range is not known before it is read:
// the unknown is `wild`, and emitted code looks each time. Sizes that must agree and cannot be compared before are required too. Which
// elements statements name: coverage.c.
#include <math.h>
#include <string.h>
#include "../../front/front.h"
#include "data_requirements.h"
#include "../conditional.h"
#include "../update.h"
#include "../terms/var.h"
#include "../terms/print.h"
#include "../model/elaborate.h"
#include "../model/law.h"
#include "../model/requirements.h"
#include "../model/arguments.h"
#include "../model/coverage.h"

// ---- places in the model ----

typedef struct Place {  // where an expression stands
    Span span;          // the statement
    Loops loops;        // around it, with the conditions
    const Env *env;
} Place;

// An index with this range that no loop around has: the same for all places that ask alike, so that equal requirements are one.
static Index *index_at(Requirements *c, const Loops *l, const char *name, Expr *lo, Expr *hi)
{
    for (int i = 0; i < c->nindices; i++) {
        Index *x = c->index[i];
        bool taken = x->name != name || x->lo != lo || x->hi != hi;
        for (int k = 0; k < l->n && !taken; k++) taken = l->index[k] == x;
        if (!taken) return x;
    }
    Index **more = NEW_N(c->g->arena, Index *, c->nindices + 1);
    if (c->nindices) memcpy(more, c->index, sizeof *more * (size_t)c->nindices);
    c->index = more;
    return c->index[c->nindices++] = index_new(name, lo, hi);
}

static Index *enter(Requirements *c, Place *p, const char *name, Expr *lo, Expr *hi)
{
    Index *i = index_at(c, &p->loops, name, lo, hi);
    if (p->loops.n == MAX_LOOPS) {
        diag_help(diag(c->g->diags, p->span, DIAG_E0510, MAX_LOOPS), "the indices of sums and of arrays count too");
        return i;
    }
    p->loops.index[p->loops.n++] = i;
    return i;
}

static Place given(const Place *p, Expr *condition)
{
    Place q = *p;
    q.loops.guard = ex_both(q.loops.guard, condition);
    return q;
}

static void look(Requirements *c, const Place *p, const Ast *e);

static void look_at_kids(Requirements *c, const Place *p, const Ast *e)
{
    for (int i = 0; i < e->nkids; i++)
        if (e->kid[i]) look(c, p, e->kid[i]);
}

// Subscript number `which` of the element name[at...] lies in 1:dim.
static void require_inside(Requirements *c, const Place *p, const char *name, int n, Expr *const *at, int which, Expr *dim)
{
    Requirement k = {.span = p->span, .name = name, .loops = p->loops, .nparts = 2};
    Expr *s = at[which];
    k.part[0] = ex_plus(s, -1);
    k.part[1] = ex_sub(dim, s);
    k.fails[0] = ex_call2("<", s, ex_num(1));
    k.fails[1] = ex_call2("<", dim, s);
    const char *list = "";
    for (int i = 0; i < n; i++) {
        k.number[k.nnumbers++] = at[i];
        list = arena_printf(c->g->arena, "%s%s#", list, i ? ", " : "");
    }
    const char *looked_up = "";  // the datum that picks the element: it is what is to be mended
    if (s->kind == EX_REF && s->var->kind == VAR_DATA && s->nargs > 0 && s->nargs == s->var->rank && n + s->nargs + 1 <= MAX_RANK) {
        const char *at_datum = "";
        for (int i = 0; i < s->nargs; i++) {
            k.number[k.nnumbers++] = s->args[i];
            at_datum = arena_printf(c->g->arena, "%s%s#", at_datum, i ? ", " : "");
        }
        k.number[k.nnumbers++] = s;
        looked_up = arena_printf(c->g->arena, "%s[%s] is #, and ", s->var->name, at_datum);
    }
    k.number[k.nnumbers++] = dim;
    k.says = arena_printf(c->g->arena, "%s[%s] does not exist: %s%s goes from 1 to # (%s)", name, list, looked_up,
                          n > 1 ? arena_printf(c->g->arena, "subscript %d", which + 1) : "its subscript", requirements_line(c->g, p->span));
    require(c, k);
}

// A place of a row that is one of several, one behind the other: it lies within the row.
static void require_row(Requirements *c, const Place *p, const Ast *e)
{
    Graph *g = c->g;
    Expr *x[3];
    for (int i = 0; i < 3; i++) x[i] = elaborate(g, e->kid[i], p->env, 0, NULL);
    const char *name = e->row_of ? e->row_of : "within_row";
    if (!ex_data_only(x[0]) || !ex_data_only(x[1])) {
        diag(g->diags, p->span, DIAG_E0120, name, "and data must say which element is looked up");
        return;
    }
    Requirement k = {.span = p->span, .name = name, .loops = p->loops, .nparts = 2, .nnumbers = 2};
    Expr *lo = e->number < 0 ? ex_plus(x[1], -1) : x[1], *hi = e->number > 0 ? ex_plus(x[2], 1) : x[2];  // of a slice that may be empty
    k.part[0] = ex_sub(x[0], lo);
    k.part[1] = ex_sub(hi, x[0]);
    k.fails[0] = ex_call2("<", x[0], lo);
    k.fails[1] = ex_call2("<", hi, x[0]);
    k.number[0] = ex_plus(ex_sub(x[0], x[1]), 1);
    k.number[1] = ex_plus(ex_sub(x[2], x[1]), 1);
    k.says = arena_printf(g->arena, "element # of a row of %s does not exist: the row has # (%s)", name, requirements_line(g, p->span));
    require(c, k);
}

static void require_divisor(Requirements *c, const Place *p, const Ast *divisor)
{
    if (shape_of(c->g, divisor, p->env).rank) return;
    Expr *n = elaborate(c->g, divisor, p->env, 0, NULL);
    Requirement k = {
        .span = p->span, .name = "%", .loops = p->loops, .nparts = 1, .part = {ex_plus(n, -1)}, .fails = {ex_call2("==", n, ex_num(0))}};
    const char *text = ast_text(c->g->arena, divisor);
    k.says = arena_printf(c->g->arena, "%.40s%s is 0, and the remainder of a division by it is needed (%s)", text,
                          strlen(text) > 40 ? "..." : "", requirements_line(c->g, p->span));
    require(c, k);
}

// The times of a differential equation: none before the one before it, nor before the start. Its tolerances, where they are data: above 0.
static void require_times(Requirements *c, const Place *p, const Ast *e)
{
    Place q = *p;
    Expr *n = shape_of(c->g, e->kid[3], p->env).dim[0], *one = ex_num(1), *i = ex_index(enter(c, &q, intern("i"), ex_num(2), n)),
         *before = ex_add2(i, ex_num(-1));
    Requirement k = {.span = p->span, .name = "times", .loops = q.loops, .nparts = 1, .nnumbers = 1, .number = {i}};
    k.fails[0] = ex_call2("<", elaborate(c->g, e->kid[3], p->env, 1, &i), elaborate(c->g, e->kid[3], p->env, 1, &before));
    const char *text = ast_text(c->g->arena, e->kid[3]);
    k.says =
        arena_printf(c->g->arena, "times of a differential equation decrease: element # of %.40s%s is less than the one before it (%s)",
                     text, strlen(text) > 40 ? "..." : "", requirements_line(c->g, p->span));
    if (!ex_is_num(k.fails[0], 0)) require(c, k);
    const Place there = given(p, ex_call2("<=", one, n));
    Requirement first = {.span = p->span, .name = "the first time", .loops = there.loops, .nparts = 1};
    first.fails[0] = ex_call2("<", elaborate(c->g, e->kid[3], p->env, 1, &one), elaborate(c->g, e->kid[2], p->env, 0, NULL));
    first.says = arena_printf(c->g->arena, "the first time of a differential equation lies before that of its start (%s)",
                              requirements_line(c->g, p->span));
    if (!ex_is_num(first.fails[0], 0)) require(c, first);
    for (int k = 4; k < e->nkids; k++) {
        Expr *tolerance = elaborate(c->g, e->kid[k], p->env, 0, NULL), *fails = ex_call1("!", ex_call2("<", ex_num(0), tolerance));
        Requirement above = {.span = p->span, .name = "a tolerance", .loops = p->loops, .nparts = 1, .fails = {fails}};
        above.says =
            arena_printf(c->g->arena, "a tolerance of a differential equation is not above 0 (%s)", requirements_line(c->g, p->span));
        if (!ex_unknown(tolerance) && !ex_is_num(fails, 0)) require(c, above);
    }
}

// Two sizes that must agree: where they are compared as sums of names already, or not at all yet.
static void require_same_size(Requirements *c, const Place *p, const Ast *a, Expr *x, const Ast *b, Expr *y)
{
    const Expr *apart = x == y ? NULL : ex_sub(x, y);
    if (!apart || apart->kind == EX_NUM) return;
    Requirement k = {
        .span = p->span, .name = "sizes", .loops = p->loops, .nparts = 1, .fails = {ex_call2("!=", x, y)}, .nnumbers = 2, .number = {x, y}};
    const char *one = ast_text(c->g->arena, a), *two = ast_text(c->g->arena, b);
    k.says = arena_printf(c->g->arena, "sizes differ: %.40s%s has #, %.40s%s has # (%s)", one, strlen(one) > 40 ? "..." : "", two,
                          strlen(two) > 40 ? "..." : "", requirements_line(c->g, p->span));
    require(c, k);
}

static void same_shape(Requirements *c, const Place *p, const Ast *a, const Ast *b)
{
    const Shape x = shape_of(c->g, a, p->env), y = shape_of(c->g, b, p->env);
    for (int k = 0; k < x.rank && x.rank == y.rank; k++) require_same_size(c, p, a, x.dim[k], b, y.dim[k]);
}

static Var *var_of(const Graph *g, const Decl *d)
{
    if (d->user) return d->user;
    for (int i = 0; i < g->nvars; i++)
        if (g->vars[i]->decl == d) return g->vars[i];
    return NULL;
}

// The slice e, lo:hi, may be empty, hi = lo - 1. Where it ends before that it has no length. In `predict` one from a number on is
// empty then, as a loop is.
static void require_length(Requirements *c, const Place *p, const Ast *e, Expr *lo, Expr *hi)
{
    if (c->predicting && lo->kind == EX_NUM) return;
    Expr *n = ex_plus(ex_sub(hi, lo), 1);
    const char *name = arena_printf(c->g->arena, "%.60s", ast_text(c->g->arena, e));
    Requirement k = {.span = p->span, .name = name, .loops = p->loops, .nparts = 1, .part = {n}, .fails = {ex_call2("<", n, ex_num(0))}};
    k.nnumbers = 2;
    k.number[0] = lo;
    k.number[1] = hi;
    k.says = arena_printf(c->g->arena, "%s is a slice of negative length, #:# (%s)", name, requirements_line(c->g, p->span));
    require(c, k);
}

static const char *const index_names[] = {"i", "j", "k", "l", "m", "n"};

// The n-th subscript of e is a range.
static Expr *enter_range(Requirements *c, const Place *outside, Place *p, const Ast *e, const Ast *s, int n, Expr *extent)
{
    look_at_kids(c, outside, s);
    require_length(c, p, e, s->kid[0] ? elaborate(c->g, s->kid[0], p->env, 0, NULL) : ex_num(1),
                   s->kid[1] ? elaborate(c->g, s->kid[1], p->env, 0, NULL) : extent);
    Expr *lo = s->kid[0] ? elaborate(c->g, s->kid[0], p->env, 0, NULL) : ex_num(1),
         *hi = s->kid[1] ? elaborate(c->g, s->kid[1], p->env, 0, NULL) : extent;
    return ex_index(enter(c, p, intern(index_names[n]), lo, hi));
}

// x, or x[i, j] written as x[i][j] too: its subscripts lie inside, and the element exists. `left`: it is what a statement draws or defines.
static void look_at_element(Requirements *c, const Place *outside, const Ast *e, bool left)
{
    const Ast *level[2 * MAX_RANK], *base = e;
    int levels = 0;
    while (base->kind == AST_INDEX && levels < 2 * MAX_RANK) {
        level[levels++] = base;
        base = base->kid[0];
        for (int i = 1; i < base->nkids && base->kind == AST_INDEX; i++)  // x[a:b][k]: one after the other
            if (base->kid[i]->kind == AST_ALL || base->kid[i]->kind == AST_RANGE || shape_of(c->g, base->kid[i], outside->env).rank) {
                look(c, outside, base);
                left = true;  // what it is part of exists
                goto found;
            }
    }
found:;
    Place p = *outside;
    Shape shape = shape_of(c->g, base, p.env);
    const char *name = base->kind == AST_NAME ? base->name : ast_text(c->g->arena, base);
    if (strlen(name) > 40) name = arena_printf(c->g->arena, "%.37s...", name);
    Expr *at[MAX_RANK + 1];
    bool whole[MAX_RANK + 1] = {false};
    int n = 0, fixed = 0;  // `fixed` of the first n are numbers
    const Decl *ragged = base->kind == AST_NAME && base->decl && base->decl->ragged ? base->decl : NULL;
    for (int l = levels - 1; l >= 0; l--)
        for (int i = 1; i < level[l]->nkids && n < shape.rank; i++) {
            const Ast *s = level[l]->kid[i];
            if (ragged && !left && fixed == n) own_sizes(c->g, ragged, n, at, &shape);
            if (s->kind == AST_ALL) {
                whole[n] = true;
                at[n] = ex_index(enter(c, &p, intern(index_names[n]), ex_num(1), shape.dim[n]));
                n++;
                continue;
            }
            if (s->kind == AST_RANGE) {
                at[n] = enter_range(c, outside, &p, e, s, n, shape.dim[n]);
                n++;
                continue;
            }
            look(c, outside, s);
            const Shape of = shape_of(c->g, s, p.env);
            Expr *sub[MAX_RANK];
            for (int k = 0; k < of.rank; k++) sub[k] = ex_index(enter(c, &p, intern(index_names[k]), ex_num(1), of.dim[k]));
            fixed += fixed == n && of.rank == 0;
            at[n++] = elaborate(c->g, s, p.env, of.rank, sub);
        }
    if (ragged && !left && fixed > 0) own_sizes(c->g, ragged, fixed, at, &shape);
    const int written = n;
    for (; n < shape.rank; n++) {
        whole[n] = true;
        at[n] = ex_index(enter(c, &p, intern(index_names[n]), ex_num(1), shape.dim[n]));
    }
    for (int k = 0; k < written; k++)
        if (!whole[k]) require_inside(c, &p, name, written, at, k, shape.dim[k]);
    Var *v = base->kind == AST_NAME && base->decl ? var_of(c->g, base->decl) : NULL;
    if (v && !left) require_named(c, v, &p.loops, p.span, n, at);
    if (base->kind != AST_NAME && !left) look(c, outside, base);
}

// An argument of a vectorised statement has the extents of what is drawn, where it is not repeated; vectors and matrices beside a vector or
// matrix that is drawn have its size.
static void argument_fits(Requirements *c, const Place *p, const Ast *value, const Ast *arg, const Decl *param, const Shape *left,
                          int value_rank)
{
    const Shape x = shape_of(c->g, arg, p->env);
    const int extra = left->rank - value_rank, want = param ? param->type.rank : 0;
    for (int k = 0; k < x.rank - want && x.rank - want <= extra; k++)
        require_same_size(c, p, value, left->dim[extra - (x.rank - want) + k], arg, x.dim[k]);
    const int own = x.rank < want ? x.rank : x.rank - want;  // from here on it is one argument
    for (int k = own; k < x.rank && value_rank && left->rank; k++)
        if (!param->own_size[k - own]) require_same_size(c, p, value, left->dim[left->rank - 1], arg, x.dim[k]);
}

// Arguments i and j of a distribution that share a size which is not that of the value.
static void own_sizes_fit(Requirements *c, const Place *p, const Distribution *d, Ast *const *args, int i, int j)
{
    const Shape x = shape_of(c->g, args[i], p->env), y = shape_of(c->g, args[j], p->env);
    const int m = d->params[i]->type.rank, n = d->params[j]->type.rank;
    for (int k = 0; k < m && x.rank >= m; k++)
        for (int l = 0; l < n && y.rank >= n; l++)
            if (d->params[i]->own_size[k] && d->params[i]->own_size[k] == d->params[j]->own_size[l])
                require_same_size(c, p, args[i], x.dim[x.rank - m + k], args[j], y.dim[y.rank - n + l]);
}

static void arguments_share(Requirements *c, const Place *p, const Distribution *d, Ast *const *args, int nargs)
{
    for (int i = 0; i < nargs && i < d->nparams && d->value_rank; i++)
        for (int j = 0; j < i; j++) own_sizes_fit(c, p, d, args, i, j);
}

// A mixture has as many components as weights: a plate of them is as long as they are.
static void mixture_fits(Requirements *c, const Place *p, const Stmt *s, const Shape *left)
{
    const Shape w = shape_of(c->g, s->weights, p->env);
    const Distribution *d = s->dist ? library_distribution(c->g->stdlib, s->dist) : NULL;
    int n = 1;
    for (const Stmt *part = s->more; part; part = part->next) n++;
    if (!w.rank || !d) return;
    for (int k = 0; k < s->weights_each; k++) require_same_size(c, p, s->weights, w.dim[k], s->lhs, left->dim[k]);
    if (s->weights_each == w.rank) return;
    Expr *components = w.dim[w.rank - 1];
    if (n > 1) {
        require_same_size(c, p, s->weights, components, s->lhs, ex_num(n));
        return;
    }
    for (int i = 0; i < s->nargs && i < d->nparams; i++) {
        const Shape x = shape_of(c->g, s->args[i], p->env);
        const int extra = x.rank - d->params[i]->type.rank;
        if (!(s->by_component & 1U << i)) {
            argument_fits(c, p, s->lhs, s->args[i], d->params[i], left, d->value_rank);
            continue;
        }
        for (int k = 0; k < extra - 1; k++) require_same_size(c, p, s->args[i], x.dim[k], s->lhs, left->dim[k]);
        require_same_size(c, p, s->weights, components, s->args[i], x.dim[extra - 1]);
    }
}

// The scalar arguments of a density in an expression lie where those of a statement must.
static void require_law(Requirements *c, const Place *p, const Distribution *law, const Ast *e)
{
    Expr **args = NEW_N(c->g->arena, Expr *, law->nparams + 1);
    for (int i = 0; i < law->nparams; i++) {
        const int rank = shape_of(c->g, e->kid[i + 1], p->env).rank;
        args[i] = rank == 0                           ? elaborate(c->g, e->kid[i + 1], p->env, 0, NULL)
                  : rank == law->params[i]->type.rank ? elaborate_whole(c->g, e->kid[i + 1], p->env)
                                                      : NULL;
        if (!args[i]) return;  // repeated over the elements of the value
    }
    const Factor f = {.dist = law, .nargs = law->nparams, .args = args, .span = p->span, .plates = p->loops};
    for (int k = 0; k < law->nparams; k++) require_argument(c, &f, k);
}

// inverse(S) and its like go by the Cholesky factor: a matrix of data must have one.
static void ask_for_factor(Requirements *c, const Place *p, const Ast *e)
{
    const FunctionId f = function_id(e->name);
    const bool factored =
        f == FN_inverse || f == FN_inverse_spd || f == FN_determinant || f == FN_log_determinant || f == FN_cholesky_decompose;
    if (factored && shape_of(c->g, e->kid[0], p->env).rank == 2)
        ask_of_array(c, elaborate_whole(c->g, e->kid[0], p->env), 2, p->loops.guard, CONSTRAINT_COVARIANCE, false,
                     arena_printf(c->g->arena, "an argument of %s", e->name), p->span);
}

// head(), tail(), segment(): lengths are not negative, and the ends lie inside.
static void look_at_segment(Requirements *c, const Place *p, const Ast *e, FunctionId f, const Shape *a)
{
    const bool tail = f == FN_tail, segment = f == FN_segment;
    const char *name = ast_text(c->g->arena, e->kid[0]);
    Place q = *p;
    Expr *lo = segment ? elaborate(c->g, e->kid[1], p->env, 0, NULL) : ex_num(1),
         *n = elaborate(c->g, e->kid[segment ? 2 : 1], p->env, 0, NULL);
    if (tail) lo = ex_plus(ex_sub(a->dim[0], n), 1);
    Requirement k = {.span = p->span,
                     .name = name,
                     .loops = p->loops,
                     .nparts = 1,
                     .part = {n},
                     .fails = {ex_call2("<", n, ex_num(0))},
                     .nnumbers = 1,
                     .number = {n}};
    k.says = arena_printf(c->g->arena, "%s of %.40s has a negative length, # (%s)", e->name, name, requirements_line(c->g, p->span));
    require(c, k);
    Expr *at = ex_index(enter(c, &q, intern("i"), lo, ex_plus(ex_add2(lo, n), -1)));
    require_inside(c, &q, name, 1, &at, 0, a->dim[0]);
}

// row(), col(): the one that is given lies inside.
static void look_at_line(Requirements *c, const Place *p, const Ast *e, int which, const Shape *a)
{
    Place q = *p;
    Expr *at[2], *given_one = elaborate(c->g, e->kid[1], p->env, 0, NULL);
    at[which] = given_one;
    at[1 - which] = ex_index(enter(c, &q, intern("i"), ex_num(1), a->dim[1 - which]));
    require_inside(c, &q, ast_text(c->g->arena, e->kid[0]), 2, at, which, a->dim[which]);
}

static void look_at_covariance(Requirements *c, const Place *p, const Ast *e, FunctionId f, const Shape *a)
{
    const int between = is_between(f, e->nkids);
    const Shape b = shape_of(c->g, e->kid[2 + between], p->env);
    if (b.rank == 1) require_same_size(c, p, e->kid[0], a->rank == 2 ? a->dim[1] : ex_num(1), e->kid[2 + between], b.dim[0]);
    if (between && a->rank == 2) require_same_size(c, p, e->kid[0], a->dim[1], e->kid[1], shape_of(c->g, e->kid[1], p->env).dim[1]);
}

static void look_at_call(Requirements *c, const Place *p, const Ast *e)
{
    const FunctionId f = function_id(e->name);
    if (f == FN_rows || f == FN_cols || f == FN_size || f == FN_num_elements) return;  // says nothing of elements
    look_at_kids(c, p, e);
    if (e->nkids == 0) return;
    if (f == FN_within_row) {
        require_row(c, p, e);
        return;
    }
    if (is_solver(e->name)) {
        require_times(c, p, e);
        require_same_size(c, p, e->kid[0]->kid[2], shape_of(c->g, e->kid[0]->kid[2], p->env).dim[0], e->kid[1],
                          shape_of(c->g, e->kid[1], p->env).dim[0]);
        return;
    }
    ask_for_factor(c, p, e);
    const Shape a = shape_of(c->g, e->kid[0], p->env);
    LawPart part;
    const Distribution *law = law_function(c->g->stdlib, e->name, &part);
    if (law && e->nkids == law->nparams + 1) {  // normal_lpdf(y | mu, s): as y ~ normal(mu, s)
        for (int i = 0; i < law->nparams; i++)
            argument_fits(c, p, e->kid[0], e->kid[i + 1], law->params[i], &a, law->value_rank);
        arguments_share(c, p, law, e->kid + 1, law->nparams);
        require_law(c, p, law, e);
        return;
    }
    if ((f == FN_head || f == FN_tail || f == FN_segment) && a.rank == 1) look_at_segment(c, p, e, f, &a);
    else if ((f == FN_row || f == FN_col) && a.rank == 2) look_at_line(c, p, e, f == FN_col, &a);
    else if (f == FN_quad_form || f == FN_quad_form_diag) {
        const Shape b = shape_of(c->g, e->kid[1], p->env);
        for (int k = 0; a.rank == 2 && b.rank == 1 && k < 2; k++) require_same_size(c, p, e->kid[0], a.dim[k], e->kid[1], b.dim[0]);
    } else if (f == FN_gp_exp_quad_cov || f == FN_gp_exponential_cov || f == FN_gp_matern32_cov || f == FN_gp_matern52_cov ||
               f == FN_gp_periodic_cov)
        look_at_covariance(c, p, e, f, &a);
    else if (f == FN_append_col) require_same_size(c, p, e->kid[0], a.dim[0], e->kid[1], shape_of(c->g, e->kid[1], p->env).dim[0]);
    else if (f != FN_rep_vector && f != FN_rep_matrix && f != FN_rep_array && f != FN_append_row)  // these are not element by element
        for (int i = 1; i < e->nkids; i++) same_shape(c, p, e->kid[0], e->kid[i]);
}

static void look_at_product(Requirements *c, const Place *p, const Ast *e)
{
    const Shape a = shape_of(c->g, e->kid[0], p->env), b = shape_of(c->g, e->kid[1], p->env);
    const bool outer = a.rank == 1 && b.rank == 1 && e->kid[1]->kind == AST_TRANSPOSE && e->kid[0]->kind != AST_TRANSPOSE;
    if (a.rank && b.rank && !outer) require_same_size(c, p, e->kid[0], a.dim[a.rank - 1], e->kid[1], b.dim[0]);
}

static void look(Requirements *c, const Place *p, const Ast *e)
{
    if (!e) return;
    switch (e->kind) {
    case AST_INT:
    case AST_REAL:
    case AST_STRING:
    case AST_ALL: return;
    case AST_NAME:
        if (e->decl && e->decl->kind != DECL_INDEX) look_at_element(c, p, e, false);
        return;
    case AST_INDEX: look_at_element(c, p, e, false); return;
    case AST_CALL: look_at_call(c, p, e); return;
    case AST_COND: {
        look(c, p, e->kid[0]);
        Expr *when = elaborate(c->g, e->kid[0], p->env, 0, NULL);
        const Place yes = given(p, when), no = given(p, ex_call1("!", when));
        if (!ex_is_num(when, 0)) look(c, &yes, e->kid[1]);
        if (!ex_is_num(when, 1)) look(c, &no, e->kid[2]);
        return;
    }
    case AST_REDUCE: {
        look(c, p, e->kid[0]);
        look(c, p, e->kid[1]);
        Place q = *p;
        Index *i = enter(c, &q, e->decl->name, elaborate(c->g, e->kid[0], p->env, 0, NULL), elaborate(c->g, e->kid[1], p->env, 0, NULL));
        q.env = env_bind(c->g, p->env, e->decl, ex_index(i));
        look(c, &q, e->kid[2]);
        return;
    }
    case AST_BINARY: {
        look(c, p, e->kid[0]);
        if (e->op == OP_MOD) require_divisor(c, p, e->kid[1]);
        if (e->op == OP_AND || e->op == OP_OR) {  // the right side is asked only if the left does not decide
            Expr *first = elaborate(c->g, e->kid[0], p->env, 0, NULL);
            const Place q = given(p, e->op == OP_AND ? first : ex_call1("!", first));
            look(c, &q, e->kid[1]);
            return;
        }
        look(c, p, e->kid[1]);
        if (e->op == OP_MUL) look_at_product(c, p, e);
        else same_shape(c, p, e->kid[0], e->kid[1]);
        return;
    }
    case AST_FUNCTION: look(c, p, e->kid[2]); return;
    case AST_RANGE:
    case AST_UNARY:
    case AST_TRANSPOSE:
    case AST_ARRAY: look_at_kids(c, p, e); return;
    }
}

static void look_at_tilde(Requirements *c, const Place *p, const Stmt *s)
{
    const bool computed = s->decl && s->decl->kind == DECL_DEFINITION;  // from data: it is read here, as arguments are
    if (!computed && (s->lhs->kind == AST_NAME || s->lhs->kind == AST_INDEX)) look_at_element(c, p, s->lhs, true);
    else look(c, p, s->lhs);
    look(c, p, s->weights);
    look(c, p, s->lower);
    look(c, p, s->upper);
    const Shape left = shape_of(c->g, s->lhs, p->env);
    if (s->weights) mixture_fits(c, p, s, &left);
    if (s->lower) argument_fits(c, p, s->lhs, s->lower, NULL, &left, 0);
    if (s->upper) argument_fits(c, p, s->lhs, s->upper, NULL, &left, 0);
    for (const Stmt *part = s; part; part = part == s ? s->more : part->next) {
        const Distribution *d = part->dist ? library_distribution(c->g->stdlib, part->dist) : NULL;
        for (int i = 0; i < part->nargs; i++) {
            look(c, p, part->args[i]);
            if (d && i < d->nparams && (!s->weights || s->more))
                argument_fits(c, p, s->lhs, part->args[i], d->params[i], &left, d->value_rank);
        }
        if (d) arguments_share(c, p, d, part->args, part->nargs);
    }
}

// real<lower=0> z = log(x); of data lies within its declared bounds. (Where unknowns are among them, a factor of the density says so.)
static void require_declared(Requirements *c, const Place *outside, const Stmt *s)
{
    const Decl *d = s->decl;
    Graph *g = c->g;
    if (d->kind != DECL_DEFINITION || !(d->lower || d->upper) || (d->in_loop && d->in_loop != s->lhs)) return;
    Place p = *outside;
    const Shape left = shape_of(g, s->lhs, p.env);
    Expr *at[MAX_RANK], *number[2 * MAX_RANK];
    int n = 0;
    for (int k = 0; k < left.rank; k++) at[k] = ex_index(enter(c, &p, intern(index_names[k]), ex_num(1), left.dim[k]));
    Expr *value = elaborate(g, s->lhs, p.env, left.rank, at);
    bool plain = true;  // its subscripts are known
    for (int i = 1; s->lhs->kind == AST_INDEX && i < s->lhs->nkids; i++) {
        const Ast *sub = s->lhs->kid[i];
        plain &= sub->kind != AST_ALL && sub->kind != AST_RANGE && shape_of(g, sub, p.env).rank == 0;
        if (plain) number[n++] = elaborate(g, sub, p.env, 0, NULL);
    }
    for (int k = 0; k < left.rank; k++) number[n++] = at[k];
    const char *name = d->name;
    for (int k = 0; k < n && plain; k++) name = arena_printf(g->arena, "%s%s#%s", name, k ? ", " : "[", k + 1 == n ? "]" : "");
    for (int side = 0; side < 2; side++) {
        const Ast *bound = side ? d->upper : d->lower;
        if (!bound) continue;
        const int inner = bound->type.rank - left.rank;
        Expr *sub[MAX_RANK + 1];
        for (int k = 0; k < bound->type.rank; k++)
            sub[k] =
                k < inner ? elaborate(g, s->lhs->kid[s->lhs->nkids - inner + k], p.env, 0, NULL) : at[left.rank - bound->type.rank + k];
        Expr *end = elaborate(g, bound, p.env, bound->type.rank, sub);
        if (ex_unknown(value) || ex_unknown(end)) continue;
        Requirement k = {.span = p.span, .name = d->name, .loops = p.loops, .nparts = 1};
        k.fails[0] = side ? ex_call2("<", end, value) : ex_call2("<", value, end);
        if (ex_is_num(k.fails[0], 0)) continue;
        k.says = arena_printf(g->arena, "%s lies %s its declared bound, %s (%s)", name, side ? "above" : "below", ast_text(g->arena, bound),
                              requirements_line(g, p.span));
        for (int i = 0; i < n && plain; i++) k.number[k.nnumbers++] = number[i];
        require(c, k);
    }
}

// The iterations of a loop are counted from 1 (index_of_loop), where it is seen that it begins below. A subscript may requirement that it
// does not.
static void require_from_one(Requirements *c, const Place *p, Index *i)
{
    if (i->lo->kind == EX_NUM || begins_below(i->lo)) return;
    Expr *below = ex_call2("<", ex_index(i), ex_num(1)), *first = ex_call2("<", i->lo, ex_num(1)),
         *any = ex_both(p->loops.guard, ex_call2("<=", i->lo, i->hi));
    for (const Requirement *o = c->g->requirements; o; o = o->next)
        for (int k = 0; k < o->nparts; k++)
            if ((o->fails[k] == below && o->loops.guard == p->loops.guard) || (o->fails[k] == first && o->loops.guard == any)) return;
    Requirement k = {.span = p->span,
                     .name = i->name,
                     .loops = p->loops,
                     .nparts = 1,
                     .part = {ex_plus(ex_index(i), -1)},
                     .fails = {below},
                     .nnumbers = 1,
                     .number = {ex_index(i)}};
    k.says = arena_printf(c->g->arena, "a loop whose first index depends on data begins at %s = #, below 1 (%s)", i->name,
                          requirements_line(c->g, p->span));
    require(c, k);
}

static void walk(Requirements *c, const Stmt *s, const Place *at)
{
    for (; s; s = s->next) {
        Place p = *at;
        p.span = s->span;
        c->defining = NULL;
        c->predicting = s->block == BLOCK_PREDICT;
        switch (s->kind) {
        case STMT_TILDE: look_at_tilde(c, &p, s); break;
        case STMT_TARGET: look(c, &p, s->rhs); break;
        case STMT_DECLARE: break;
        case STMT_DEFINE:
            if (!s->decl) break;
            if (s->decl->user && ((Var *)s->decl->user)->kind == VAR_LET) c->defining = s->decl->user;
            look_at_element(c, &p, s->lhs, true);
            look(c, &p, s->rhs);
            if (shape_of(c->g, s->lhs, p.env).rank == shape_of(c->g, s->rhs, p.env).rank) same_shape(c, &p, s->lhs, s->rhs);
            c->defining = NULL;
            if (s->block != BLOCK_PREDICT) require_declared(c, &p, s);
            break;
        case STMT_FOR: {
            look(c, &p, s->index->lo);
            look(c, &p, s->index->hi);
            Index *i =
                enter(c, &p, s->index->name, elaborate(c->g, s->index->lo, p.env, 0, NULL), elaborate(c->g, s->index->hi, p.env, 0, NULL));
            p.env = env_bind(c->g, p.env, s->index, ex_index(i));
            walk(c, s->body, &p);
            require_from_one(c, &p, i);
            break;
        }
        case STMT_IF: {
            look(c, &p, s->cond);
            Expr *when = elaborate(c->g, s->cond, p.env, 0, NULL);
            p.loops.guard = ex_both(p.loops.guard, when);
            if (!ex_is_num(when, 0)) walk(c, s->body, &p);
            break;
        }
        case STMT_BLOCK: walk(c, s->body, &p); break;
        }
    }
}

bool find_requirements(Graph *g)
{
    Requirements c = {.g = g, .last = &g->requirements};
    if (!find_coverage(&c) || !require_arguments(&c)) return false;
    for (const Block *b = g->model->blocks; b; b = b->next) walk(&c, b->body, &(Place){.span = b->span});
    for (int i = 0; i < g->nvars; i++)
        if (var_unknown(g->vars[i]) &&
            (g->vars[i]->constraint == CONSTRAINT_ORDERED || g->vars[i]->constraint == CONSTRAINT_POSITIVE_ORDERED ||
             g->vars[i]->constraint == CONSTRAINT_SUM_TO_ZERO))
            require_whole(&c, g->vars[i]);
    for (const Update *s = g->updates; s; s = s->next)  // a value that is tried may be outside, too
        if (s->conditional && s->conditional->u) s->conditional->u->var->known.wild = s->conditional->var->known.wild;
    return diags_errors(g->diags) == 0;
}

void requirements_print(FILE *out, const Graph *g)
{
    for (const Requirement *k = g->requirements; k; k = k->next) {
        fprintf(out, "requirement %s: not ", k->name);
        for (int i = 0; i < k->nparts; i++) {
            if (i) fputs(", not ", out);
            ex_print(out, k->fails[i]);
        }
        plates_print(out, &k->loops);
        fprintf(out, "    (%s)\n", requirements_line((Graph *)g, k->span));
    }
}
