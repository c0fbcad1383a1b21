// elaborate.c -- the checked tree in index notation.
//
//   before   X * beta            (a vector)
//   after    sum(j in 1:p, X[i,j]*beta[j])      its element i
//
// Needs: names and types checked.     Gives: scalar expressions.
// Definitions are substituted where they are used; those of data alone become variables of their own (VAR_LET).
#include <math.h>
#include <string.h>
#include "../../base/words.h"
#include "elaborate.h"
#include "../terms/reads.h"
#include "../terms/var.h"
#include "../terms/prover.h"
#include "law.h"

const Env *env_bind(Graph *g, const Env *outer, const Decl *decl, Expr *value)
{
    Env *e = NEW(g->arena, Env);
    *e = (Env){decl, value, outer};
    return e;
}

static Expr *lookup(const Env *env, const Decl *d)
{
    for (; env; env = env->outer)
        if (env->decl == d) return env->value;
    return NULL;
}

static Shape scalar_shape(void) { return (Shape){0}; }
static Shape vector_shape(Expr *n) { return (Shape){1, {n}}; }
static Shape matrix_shape(Expr *n, Expr *m) { return (Shape){2, {n, m}}; }

static Shape expr_shape(Expr *e)
{
    Shape s = {.rank = ex_rank(e)};
    for (int k = 0; k < s.rank; k++) s.dim[k] = ex_dim(e, k);
    return s;
}

static Expr *elab0(Graph *g, const Ast *e, const Env *env) { return elaborate(g, e, env, 0, NULL); }

// ---- shapes ----

static Expr *range_lo(Graph *g, const Ast *r, const Env *env) { return r->kid[0] ? elab0(g, r->kid[0], env) : ex_num(1); }

// A dimension as a number: of x[3:K] it is K - 2, and 0 where K is 1.
static Expr *extent_of(Shape s, int k) { return ex_length(ex_num(1), s.dim[k]); }

static Expr *count_all(Shape s)
{
    Expr *n = ex_num(1);
    for (int k = 0; k < s.rank; k++) n = ex_mul2(n, extent_of(s, k));
    return n;
}

void own_sizes(Graph *g, const Decl *d, int n, Expr *const *subscript, Shape *whole)
{
    const Stmt *s = d->ragged;
    const int leading = s ? s->lhs->nkids - 1 : 0;
    if (!s || n < leading || leading + s->rhs->type.rank != whole->rank) return;
    const Env *at = NULL;
    for (int i = 0; i < leading; i++) {
        if (!subscript[i] || ex_unknown(subscript[i])) return;
        at = env_bind(g, at, s->lhs->kid[1 + i]->decl, subscript[i]);
    }
    const Shape own = shape_of(g, s->rhs, at);
    for (int k = 0; k < own.rank && leading + k < whole->rank; k++) whole->dim[leading + k] = own.dim[k];
}

// The sizes of z in z[j], where each z[j] has sizes of its own and j is known from data.
static void sizes_at(Graph *g, const Ast *e, const Env *env, Shape *whole)
{
    const Decl *d = e->kid[0]->kind == AST_NAME ? e->kid[0]->decl : NULL;
    if (!d || !d->ragged) return;
    Expr *subscript[MAX_RANK] = {NULL};
    int n = 0;
    for (int i = 1; i < e->nkids && n < MAX_RANK; i++, n++) {
        const Ast *sub = e->kid[i];
        if (sub->kind != AST_ALL && sub->kind != AST_RANGE && shape_of(g, sub, env).rank == 0) subscript[n] = elab0(g, sub, env);
    }
    own_sizes(g, d, n, subscript, whole);
}

static Shape index_shape(Graph *g, const Ast *e, const Env *env)
{
    Shape base = shape_of(g, e->kid[0], env), s = {0};
    int k = 0;
    sizes_at(g, e, env, &base);
    for (int i = 1; i < e->nkids; i++, k++) {
        const Ast *sub = e->kid[i];
        if (k >= base.rank) break;
        if (sub->kind == AST_ALL) s.dim[s.rank++] = base.dim[k];
        else if (sub->kind == AST_RANGE) {
            Expr *hi = sub->kid[1] ? elab0(g, sub->kid[1], env) : base.dim[k];
            s.dim[s.rank++] = ex_add(3, (Expr *[]){hi, ex_neg(range_lo(g, sub, env)), ex_num(1)});
        } else {
            Shape t = shape_of(g, sub, env);
            for (int m = 0; m < t.rank; m++) s.dim[s.rank++] = t.dim[m];
        }
    }
    for (; k < base.rank; k++) s.dim[s.rank++] = base.dim[k];
    return s;
}

static Shape widest(Graph *g, const Ast *e, const Env *env, Shape first)
{
    Shape best = first;
    for (int i = 1; i < e->nkids; i++) {
        Shape s = shape_of(g, e->kid[i], env);
        if (s.rank > best.rank) best = s;
    }
    return best;
}

bool is_between(FunctionId f, int nargs)
{
    return f == FN_gp_periodic_cov ? nargs == 5
                                   : nargs == 4 && (f == FN_gp_exp_quad_cov || f == FN_gp_exponential_cov || f == FN_gp_matern32_cov ||
                                                    f == FN_gp_matern52_cov);
}

static Shape call_shape(Graph *g, const Ast *e, const Env *env)
{
    const FunctionId f = function_id(e->name);
    const Result result = function_rows[f].result;
    LawPart part;
    if (e->nkids == 1 && (f == FN_min || f == FN_max || f == FN_log_sum_exp)) return scalar_shape();
    if (strchr(e->name, '_') && law_function(g->stdlib, e->name, &part)) return scalar_shape();
    if (result == RESULT_REAL || result == RESULT_INT || result == RESULT_SCALAR) return scalar_shape();
    const Shape a = e->nkids > 0 ? shape_of(g, e->kid[0], env) : scalar_shape();
    switch (result) {
    case RESULT_LIKE:
    case RESULT_LIKE_REAL:
    case RESULT_LIKE_INT: return a;
    case RESULT_REP_VECTOR:
    case RESULT_LENGTH_2: return vector_shape(elab0(g, e->kid[1], env));
    case RESULT_LENGTH_3: return vector_shape(elab0(g, e->kid[2], env));
    case RESULT_LENGTH_ROWS: return vector_shape(a.dim[0]);
    case RESULT_LENGTH_COLS: return vector_shape(a.dim[1]);
    case RESULT_ONE_MORE: return vector_shape(ex_plus(a.dim[0], 1));
    case RESULT_SQUARE_ROWS:
        return matrix_shape(a.dim[0], is_between(f, e->nkids) ? shape_of(g, e->kid[1], env).dim[0] : a.dim[0]);
    case RESULT_SQUARE_COLS: return matrix_shape(a.dim[1], a.dim[1]);
    case RESULT_SQUARE_1: {
        Expr *n = elab0(g, e->kid[0], env);
        return matrix_shape(n, n);
    }
    case RESULT_REP_ARRAY:
    case RESULT_REP_ARRAY_REAL: {
        Shape s = {.rank = e->nkids - 1};
        for (int i = 1; i < e->nkids; i++) s.dim[i - 1] = elab0(g, e->kid[i], env);
        for (int k = 0; k < a.rank; k++) s.dim[s.rank++] = a.dim[k];
        return s;
    }
    case RESULT_TO_VECTOR:
        if (a.rank == 2) return vector_shape(ex_mul2(a.dim[0], a.dim[1]));
        return a.rank ? a : vector_shape(ex_num(1));
    case RESULT_APPEND_ROW: return vector_shape(ex_add2(count_all(a), count_all(shape_of(g, e->kid[1], env))));
    case RESULT_APPEND_COL: {
        const Shape b = shape_of(g, e->kid[1], env);
        return matrix_shape(a.dim[0], ex_add2(a.rank == 2 ? a.dim[1] : ex_num(1), b.rank == 2 ? b.dim[1] : ex_num(1)));
    }
    case RESULT_BETWEEN:  // of the second row of a name
    case RESULT_SOLUTION: return matrix_shape(shape_of(g, e->kid[3], env).dim[0], shape_of(g, e->kid[1], env).dim[0]);
    case RESULT_EACH:
    case RESULT_EACH_SAME:
    case RESULT_EACH_INT:
    case RESULT_CHOICE:
    case RESULT_REAL:
    case RESULT_INT:
    case RESULT_SCALAR: break;
    }
    return widest(g, e, env, a);
}

Shape shape_of(Graph *g, const Ast *e, const Env *env)
{
    const bool composed = e->kind == AST_BINARY || e->kind == AST_COND || e->kind == AST_UNARY || e->kind == AST_CALL;
    // not looked through at each depth of what it stands in
    if (composed && e->state == TYPE_KNOWN && e->type.rank == 0) return scalar_shape();
    switch (e->kind) {
    case AST_INT:
    case AST_REAL:
    case AST_STRING:
    case AST_REDUCE:
    case AST_FUNCTION: return scalar_shape();
    case AST_NAME: {
        Expr *bound = e->decl ? lookup(env, e->decl) : NULL;
        if (bound) return expr_shape(bound);
        if (!e->decl) return scalar_shape();
        if (e->decl->user) return expr_shape(ex_ref(e->decl->user, 0, NULL));
        Shape s = {.rank = e->decl->type.rank};
        for (int k = 0; k < s.rank; k++) s.dim[k] = elab0(g, e->decl->type.dim[k], NULL);
        return s;
    }
    case AST_INDEX: return index_shape(g, e, env);
    case AST_RANGE:
    case AST_ALL: return scalar_shape();
    case AST_CALL: return call_shape(g, e, env);
    case AST_UNARY: return shape_of(g, e->kid[0], env);
    case AST_TRANSPOSE: {
        Shape s = shape_of(g, e->kid[0], env);
        return s.rank == 2 ? matrix_shape(s.dim[1], s.dim[0]) : s;
    }
    case AST_COND: {
        Shape a = shape_of(g, e->kid[1], env), b = shape_of(g, e->kid[2], env);
        return a.rank >= b.rank ? a : b;
    }
    case AST_ARRAY: {
        Shape s = {.rank = 1, .dim = {ex_num(e->nkids)}};
        if (e->nkids) {
            Shape k = shape_of(g, e->kid[0], env);
            for (int i = 0; i < k.rank; i++) s.dim[s.rank++] = k.dim[i];
        }
        return s;
    }
    case AST_BINARY: {
        Shape a = shape_of(g, e->kid[0], env), b = shape_of(g, e->kid[1], env);
        if (e->op == OP_MUL && a.rank && b.rank) {
            if (a.rank == 2 && b.rank == 1) return vector_shape(a.dim[0]);
            if (a.rank == 1 && b.rank == 2) return vector_shape(b.dim[1]);
            if (a.rank == 2 && b.rank == 2) return matrix_shape(a.dim[0], b.dim[1]);
            if (e->kid[1]->kind == AST_TRANSPOSE && e->kid[0]->kind != AST_TRANSPOSE) return matrix_shape(a.dim[0], b.dim[0]);
            return scalar_shape();
        }
        return a.rank >= b.rank ? a : b;
    }
    }
    return scalar_shape();
}

// ---- elements ----

static const char *op_name(Op op)
{
    switch (op) {
    case OP_EQ: return "==";
    case OP_NE: return "!=";
    case OP_LT:
    case OP_GT: return "<";
    case OP_LE:
    case OP_GE: return "<=";
    case OP_AND: return "&&";
    case OP_OR: return "||";
    case OP_MOD: return "%";
    case OP_NOT: return "!";
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_POW:
    case OP_ELT_MUL:
    case OP_ELT_DIV:
    case OP_NEG: break;
    }
    return "?";
}

static Expr *sum_over(Expr *n, Expr *body, Index *j) { return ex_reduce("sum", j, ex_num(1), n, body); }

// An operand of an elementwise operation: a scalar is repeated.
static Expr *operand(Graph *g, const Ast *e, const Env *env, int n, Expr *const *at)
{
    int rank = shape_of(g, e, env).rank;
    if (rank == 0) return elab0(g, e, env);
    return elaborate(g, e, env, rank, n > rank ? at + (n - rank) : at);
}

static Expr *product(Graph *g, const Ast *e, const Env *env, int n, Expr *const *at)
{
    const Ast *x = e->kid[0], *y = e->kid[1];
    Shape a = shape_of(g, x, env), b = shape_of(g, y, env);
    if (!a.rank || !b.rank) return ex_mul2(operand(g, x, env, n, at), operand(g, y, env, n, at));
    if (a.rank == 1 && b.rank == 1 && y->kind == AST_TRANSPOSE && x->kind != AST_TRANSPOSE)
        return ex_mul2(elaborate(g, x, env, 1, at), elaborate(g, y, env, 1, at + 1));
    Index *j = index_new("j", NULL, NULL);
    Expr *l[2] = {at && n ? at[0] : NULL, ex_index(j)}, *r[2] = {ex_index(j), NULL};
    if (a.rank == 1) l[0] = ex_index(j);
    if (b.rank == 2) r[1] = a.rank == 2 ? at[1] : at[0];
    return sum_over(b.dim[0], ex_mul2(elaborate(g, x, env, a.rank, l), elaborate(g, y, env, b.rank, r)), j);
}

// v[at...] summed (or otherwise reduced) over all its dimensions.
static Expr *reduce_all(Graph *g, const char *name, const Ast *v, const Env *env)
{
    Shape s = shape_of(g, v, env);
    if (s.rank == 0) return elab0(g, v, env);
    Index *j[MAX_RANK];
    Expr *at[MAX_RANK];
    for (int k = 0; k < s.rank; k++) at[k] = ex_index(j[k] = index_new("j", NULL, NULL));
    Expr *body = elaborate(g, v, env, s.rank, at);
    for (int k = s.rank - 1; k >= 0; k--) body = ex_reduce(name, j[k], ex_num(1), s.dim[k], body);
    return body;
}

static Expr *variance(Graph *g, const Ast *v, const Env *env)
{
    Shape s = shape_of(g, v, env);
    Expr *n = count_all(s), *mean = ex_div(reduce_all(g, "sum", v, env), n);
    Index *j[MAX_RANK];
    Expr *at[MAX_RANK];
    for (int k = 0; k < s.rank; k++) at[k] = ex_index(j[k] = index_new("j", NULL, NULL));
    Expr *body = ex_pow(ex_sub(elaborate(g, v, env, s.rank, at), mean), 2);
    for (int k = s.rank - 1; k >= 0; k--) body = ex_reduce("sum", j[k], ex_num(1), s.dim[k], body);
    return ex_div(body, ex_plus(n, -1));
}

// What stands for the t or the y of (t, y) -> e: a local variable of the function that is emitted.
static Expr *parameter(Graph *g, const Ast *name, Expr *extent)
{
    Decl *d = name->decl;
    if (!d->user) {
        // of the function that it is a parameter of
        static const char *const used[] = {"d", "s", "p", "ode", "slope", "by_state", "by_input", NULL};
        const char *text = word_apart(g->arena, d->name, word_declared);
        for (int i = 0; used[i]; i++)
            if (strcmp(used[i], d->name) == 0) text = arena_printf(g->arena, "%s_", d->name);
        Var *v = var_unique(g, text, VAR_ELEMENT);
        if (extent) {
            v->rank = 1;
            v->dim[0] = extent;
        }
        d->user = v;
    }
    return ex_ref(d->user, 0, NULL);
}

// A differential equation: its right side, start, first time, times and tolerances, then what stands for time and state.
static Expr *solution(Graph *g, const Ast *e, const Env *env)
{
    Expr *start = elaborate_whole(g, e->kid[1], env), *args[8];
    const Ast *f = e->kid[0];
    args[6] = parameter(g, f->kid[0], NULL);
    args[7] = parameter(g, f->kid[1], ex_dim(start, 0));
    args[0] = elaborate_whole(g, f->kid[2], env);
    args[1] = start;
    args[2] = elab0(g, e->kid[2], env);
    args[3] = elaborate_whole(g, e->kid[3], env);
    for (int i = 4; i < 6; i++) args[i] = e->nkids > i ? elab0(g, e->kid[i], env) : ex_num(1e-6);
    return ex_call(e->name, 8, args);
}

// Covariances of Gaussian processes (Rasmussen and Williams 2006, chapter 4) between points i and j, in the scaled distance r: |x_i -
// x_j|/rho, or of rows of a matrix the Euclidean one, each column by its own rho if rho is a vector. Where two points are one, r has no
// slope, and is the number 0: r^2 alone would be differentiated as 0/0.
static Expr *covariance(Graph *g, const Ast *e, const Env *env, Expr *const *at)
{
    const FunctionId f = function_id(e->name);
    const bool between = is_between(f, e->nkids);  // two sets of points
    const Ast *x = e->kid[0], *y = between ? e->kid[1] : x;
    Ast *const *given = e->kid + between;  // what follows the points: given[1], ...
    const Shape points = shape_of(g, x, env);
    const bool scales = shape_of(g, given[2], env).rank == 1, smooth = f == FN_gp_exp_quad_cov, periodic = f == FN_gp_periodic_cov;
    Expr *a = ex_pow(elab0(g, given[1], env), 2), *rho = scales ? NULL : elab0(g, given[2], env), *r, *r2;
    if (points.rank == 1) {
        Expr *d = ex_sub(elaborate(g, x, env, 1, at), elaborate(g, y, env, 1, at + 1));
        if (scales) rho = elaborate(g, given[2], env, 1, (Expr *[]){ex_num(1)});
        if (periodic)
            return ex_mul2(
                a,
                ex_call1("exp",
                         ex_mul2(ex_num(-2),
                                 ex_pow(ex_div(ex_call1("sin", ex_div(ex_mul2(ex_pi(), d), elab0(g, given[3], env))), rho), 2))));
        r2 = ex_pow(ex_div(d, rho), 2);
        r = ex_div(ex_call1("fabs", d), rho);
    } else {
        Index *k = index_new("k", NULL, NULL);
        Expr *kk = ex_index(k), *d = ex_sub(elaborate(g, x, env, 2, (Expr *[]){at[0], kk}), elaborate(g, y, env, 2, (Expr *[]){at[1], kk}));
        Expr *apart = sum_over(points.dim[1], ex_pow(d, 2), k),
             *same = ex_unknown(apart) && !between ? ex_call2("==", at[0], at[1]) : ex_call2("==", apart, ex_num(0));
        r2 =
            scales ? sum_over(points.dim[1], ex_pow(ex_div(d, elaborate(g, given[2], env, 1, &kk)), 2), k) : ex_div(apart, ex_pow(rho, 2));
        r = scales || ex_unknown(apart) ? ex_call3("if_else", same, ex_num(0), ex_call1("sqrt", r2)) : ex_div(ex_call1("sqrt", apart), rho);
        if (periodic) {
            Expr *distance = ex_unknown(apart) ? ex_call3("if_else", same, ex_num(0), ex_call1("sqrt", apart)) : ex_call1("sqrt", apart);
            return ex_mul2(
                a,
                ex_call1("exp",
                         ex_mul2(ex_num(-2),
                                 ex_pow(ex_div(ex_call1("sin", ex_div(ex_mul2(ex_pi(), distance), elab0(g, given[3], env))), rho),
                                        2))));
        }
    }
    if (smooth) return ex_mul2(a, ex_call1("exp", ex_mul2(ex_num(-0.5), r2)));
    Expr *s = ex_mul2(ex_pow(ex_num(f == FN_gp_matern32_cov ? 3 : f == FN_gp_matern52_cov ? 5 : 1), 0.5), r),
         *decay = ex_call1("exp", ex_neg(s));
    if (f == FN_gp_exponential_cov) return ex_mul2(a, decay);
    Expr *bend = f == FN_gp_matern32_cov ? ex_plus(s, 1) : ex_add(3, (Expr *[]){ex_num(1), s, ex_mul2(ex_num(5.0 / 3), r2)});
    return ex_mul(3, (Expr *[]){a, bend, decay});
}

static Expr *constant_of(FunctionId f, const Ast *e)
{
    if (f == FN_pi) return ex_pi();
    if (f == FN_e && e->nkids == 0) return ex_num(M_E);
    if (f == FN_infinity) return ex_num(INFINITY);
    if (f == FN_negative_infinity) return ex_num(-INFINITY);
    if (f == FN_machine_precision) return ex_num(0x1p-52);
    return NULL;
}

// A call whose first argument has a shape, at an element of its value.
typedef struct Call {
    Graph *g;
    const Ast *e, *a, *b;  // its first two arguments
    const Env *env;
    FunctionId f;
    Shape s;  // of a
    int n;
    Expr *const *at;  // the element
    Index *j;         // of a sum over elements
    Expr *ij;
} Call;

// What is one number of all elements, or of the shape; NULL: another function.
static Expr *over_all(const Call *c)
{
    const FunctionId f = c->f;
    Graph *const g = c->g;
    const Ast *const a = c->a;
    if (f == FN_sum || f == FN_prod) return reduce_all(g, c->e->name, a, c->env);
    if (c->e->nkids == 1 && (f == FN_min || f == FN_max || f == FN_log_sum_exp)) return reduce_all(g, c->e->name, a, c->env);
    if (f == FN_min || f == FN_max)
        return ex_call2(f == FN_min ? "fmin" : "fmax", operand(g, a, c->env, c->n, c->at), operand(g, c->b, c->env, c->n, c->at));
    if (f == FN_mean) return ex_div(reduce_all(g, "sum", a, c->env), count_all(c->s));
    if (f == FN_variance) return variance(g, a, c->env);
    if (f == FN_sd) return ex_pow(variance(g, a, c->env), 0.5);
    if (f == FN_rows || f == FN_size) return c->s.rank ? extent_of(c->s, 0) : ex_num(1);
    if (f == FN_cols) return c->s.rank > 1 ? extent_of(c->s, 1) : ex_num(1);
    if (f == FN_num_elements) return count_all(c->s);
    return NULL;
}

// Sums over the elements of vectors, and what is made of them.
static Expr *of_vectors(const Call *c)
{
    const FunctionId f = c->f;
    Graph *const g = c->g;
    const Env *const env = c->env;
    const Ast *const a = c->a, *const b = c->b;
    Expr *const *const at = c->at, *ij = c->ij;
    Index *const j = c->j;
    const Shape s = c->s;
    if (f == FN_dot_product) return sum_over(s.dim[0], ex_mul2(elaborate(g, a, env, 1, &ij), elaborate(g, b, env, 1, &ij)), j);
    if (f == FN_dot_self) return sum_over(s.dim[0], ex_pow(elaborate(g, a, env, 1, &ij), 2), j);
    if (f == FN_norm2) return ex_pow(sum_over(s.dim[0], ex_pow(elaborate(g, a, env, 1, &ij), 2), j), 0.5);
    if (f == FN_squared_distance)
        return sum_over(s.dim[0], ex_pow(ex_sub(elaborate(g, a, env, 1, &ij), elaborate(g, b, env, 1, &ij)), 2), j);
    if (f == FN_rank)
        return sum_over(s.dim[0], ex_call2("<", elaborate(g, a, env, 1, &ij), elaborate(g, a, env, 1, (Expr *[]){elab0(g, b, env)})), j);
    if (f == FN_cumulative_sum) return ex_reduce("sum", j, ex_num(1), at[0], elaborate(g, a, env, 1, &ij));
    if (f == FN_softmax || f == FN_log_softmax) {
        Expr *l = ex_sub(elaborate(g, a, env, 1, at), reduce_all(g, "log_sum_exp", a, env));
        return f == FN_softmax ? ex_call1("exp", l) : l;
    }
    if (f == FN_stick_breaking) {
        Expr *rest = ex_reduce("prod", j, ex_num(1), ex_plus(at[0], -1), ex_sub(ex_num(1), elaborate(g, a, env, 1, &ij)));
        Expr *last = ex_call2("==", at[0], ex_plus(s.dim[0], 1));
        return ex_mul2(ex_call3("if_else", last, ex_num(1), elaborate(g, a, env, 1, (Expr *[]){ex_call2("fmin", at[0], s.dim[0])})), rest);
    }
    return NULL;
}

// Elements of the arguments in other places.
static Expr *rearranged(const Call *c)
{
    const FunctionId f = c->f;
    Graph *const g = c->g;
    const Env *const env = c->env;
    const Ast *const a = c->a, *const b = c->b;
    Expr *const *const at = c->at;
    const Shape s = c->s;
    if (f == FN_rep_vector || f == FN_rep_matrix) return elab0(g, a, env);
    if (f == FN_rep_array) return elaborate(g, a, env, s.rank, at + (c->e->nkids - 1));
    if (f == FN_to_row_vector || (f == FN_to_vector && s.rank == 1)) return elaborate(g, a, env, c->n, at);
    if (f == FN_to_vector && s.rank == 0) return elab0(g, a, env);
    if (f == FN_to_vector) {  // column by column
        Expr *k = ex_plus(at[0], -1), *col = ex_call1("floor", ex_div(k, s.dim[0]));
        return elaborate(g, a, env, 2, (Expr *[]){ex_plus(ex_sub(k, ex_mul2(col, s.dim[0])), 1), ex_plus(col, 1)});
    }
    if (f == FN_diagonal) return elaborate(g, a, env, 2, (Expr *[]){at[0], at[0]});
    if (f == FN_row) return elaborate(g, a, env, 2, (Expr *[]){elab0(g, b, env), at[0]});
    if (f == FN_col) return elaborate(g, a, env, 2, (Expr *[]){at[0], elab0(g, b, env)});
    if (f == FN_reverse) return elaborate(g, a, env, 1, (Expr *[]){ex_plus(ex_sub(s.dim[0], at[0]), 1)});
    if (f == FN_head) return elaborate(g, a, env, 1, at);
    if (f == FN_tail) return elaborate(g, a, env, 1, (Expr *[]){ex_add(3, (Expr *[]){at[0], s.dim[0], ex_neg(elab0(g, b, env))})});
    if (f == FN_segment) return elaborate(g, a, env, 1, (Expr *[]){ex_plus(ex_add2(at[0], elab0(g, b, env)), -1)});
    if (f == FN_append_row) {
        Expr *na = s.rank ? extent_of(s, 0) : ex_num(1);
        return ex_call3("if_else", ex_call2("<=", at[0], na), operand(g, a, env, 1, at),
                        operand(g, b, env, 1, (Expr *[]){ex_sub(at[0], na)}));
    }
    if (f == FN_append_col) {
        const Shape t = shape_of(g, b, env);
        Expr *na = s.rank == 2 ? extent_of(s, 1) : ex_num(1), *of_b[] = {at[0], ex_sub(at[1], na)};
        return ex_call3("if_else", ex_call2("<=", at[1], na), elaborate(g, a, env, s.rank, at), elaborate(g, b, env, t.rank, of_b));
    }
    return NULL;
}

// Matrices: what is computed of a whole one, and products.
static Expr *of_matrices(const Call *c)
{
    const FunctionId f = c->f;
    Graph *const g = c->g;
    const Env *const env = c->env;
    const Ast *const a = c->a, *const b = c->b;
    Expr *const *const at = c->at, *ij = c->ij;
    Index *const j = c->j;
    const Shape s = c->s;
    if (f == FN_inverse || f == FN_inverse_spd || f == FN_cholesky_decompose || f == FN_sort_asc || f == FN_sort_desc ||
        f == FN_sort_indices_asc || f == FN_sort_indices_desc)
        return ex_at(ex_call1(f == FN_inverse_spd ? "inverse" : c->e->name, elaborate_whole(g, a, env)), c->n, at);
    if (f == FN_log_determinant) return ex_call1(c->e->name, elaborate_whole(g, a, env));
    if (f == FN_determinant) return ex_call1("exp", ex_call1("log_determinant", elaborate_whole(g, a, env)));
    if (f == FN_identity_matrix) return ex_call2("same", at[0], at[1]);
    if (f == FN_diag_matrix) return ex_mul2(ex_call2("same", at[0], at[1]), elaborate(g, a, env, 1, at));
    if (f == FN_trace) return sum_over(s.dim[0], elaborate(g, a, env, 2, (Expr *[]){ij, ij}), j);
    if (f == FN_gp_exp_quad_cov || f == FN_gp_exponential_cov || f == FN_gp_matern32_cov || f == FN_gp_matern52_cov ||
        f == FN_gp_periodic_cov)
        return covariance(g, c->e, env, at);
    if (f == FN_tcrossprod || f == FN_crossprod) {
        bool t = f == FN_tcrossprod;
        Expr *l[2] = {t ? at[0] : ij, t ? ij : at[0]}, *r[2] = {t ? at[1] : ij, t ? ij : at[1]};
        return sum_over(t ? s.dim[1] : s.dim[0], ex_mul2(elaborate(g, a, env, 2, l), elaborate(g, a, env, 2, r)), j);
    }
    if (f == FN_quad_form) {  // quad_form(A, v) = v'Av
        Index *k = index_new("k", NULL, NULL);
        Expr *kk = ex_index(k);
        return sum_over(s.dim[0],
                        sum_over(s.dim[0],
                                 ex_mul(3, (Expr *[]){elaborate(g, b, env, 1, &ij), elaborate(g, a, env, 2, (Expr *[]){ij, kk}),
                                                      elaborate(g, b, env, 1, &kk)}),
                                 k),
                        j);
    }
    if (f == FN_quad_form_diag)
        return ex_mul(3, (Expr *[]){elaborate(g, a, env, 2, at), elaborate(g, b, env, 1, at), elaborate(g, b, env, 1, at + 1)});
    return NULL;
}

// Everything else works element by element.
static Expr *by_element(const Call *c)
{
    const FunctionId f = c->f;
    const int m = c->e->nkids;
    Expr **args = NEW_N(c->g->arena, Expr *, m);
    for (int i = 0; i < m; i++) args[i] = operand(c->g, c->e->kid[i], c->env, c->n, c->at);
    if (f == FN_fma) return ex_add2(ex_mul2(args[0], args[1]), args[2]);
    if (f == FN_cbrt && ex_positive(args[0])) return ex_pow(args[0], 1.0 / 3);  // a power of a negative number is none
    if (f == FN_choose) return ex_call1("exp", ex_call("lchoose", 2, args));
    if (f == FN_std_normal_lcdf) return ex_call1("log_Phi", args[0]);
    if (f == FN_log_sum_exp) return ex_call("log_sum_exp2", 2, args);
    return ex_call(c->e->name, m, args);
}

static Expr *call(Graph *g, const Ast *e, const Env *env, int n, Expr *const *at)
{
    if (is_solver(e->name)) return ex_at(solution(g, e, env), n, at);
    const FunctionId f = function_id(e->name);
    Expr *value = constant_of(f, e);
    if (value) return value;
    LawPart part;
    const Distribution *law = strchr(e->name, '_') ? law_function(g->stdlib, e->name, &part) : NULL;
    if (law) return law_of(g, e, env, law, part);
    if (e->nkids == 0) return ex_call(e->name, 0, NULL);
    Call c = {g, e, e->kid[0], e->nkids > 1 ? e->kid[1] : NULL, env, f, shape_of(g, e->kid[0], env), n, at, NULL, NULL};
    value = over_all(&c);
    if (value) return value;
    if (f == FN_within_row) return elaborate(g, c.a, env, 0, NULL);
    c.j = index_new("j", NULL, NULL);
    c.ij = ex_index(c.j);
    value = of_vectors(&c);
    if (!value) value = rearranged(&c);
    if (!value) value = of_matrices(&c);
    return value ? value : by_element(&c);
}

static Expr *subscripted(Graph *g, const Ast *e, const Env *env, int n, Expr *const *at)
{
    Shape base = shape_of(g, e->kid[0], env);
    Expr *sub[2 * MAX_RANK];
    int k = 0, used = 0;
    for (int i = 1; i < e->nkids; i++, k++) {
        const Ast *s = e->kid[i];
        if (s->kind == AST_ALL) sub[k] = at[used++];
        else if (s->kind == AST_RANGE) sub[k] = ex_plus(ex_add2(at[used++], range_lo(g, s, env)), -1);
        else {
            int rank = shape_of(g, s, env).rank;
            sub[k] = elaborate(g, s, env, rank, rank ? at + used : NULL);
            used += rank;
        }
    }
    while (used < n) sub[k++] = at[used++];
    return elaborate(g, e->kid[0], env, k < base.rank ? k : base.rank, sub);
}

// A definition at the given subscripts: the right side of the statement that defines them.
static Expr *definition(Graph *g, const Decl *d, int n, Expr *const *at, const Env *use);

// An operator that works element by element.
static Expr *operated(Graph *g, const Ast *e, const Env *env, int n, Expr *const *at)
{
    Expr *a = operand(g, e->kid[0], env, n, at), *b = operand(g, e->kid[1], env, n, at);
    switch (e->op) {
    case OP_ADD: return ex_add2(a, b);
    case OP_SUB: return ex_sub(a, b);
    case OP_DIV:
    case OP_ELT_DIV: return ex_div(a, b);
    case OP_MUL:
    case OP_ELT_MUL: return ex_mul2(a, b);
    case OP_POW: return b->kind == EX_NUM ? ex_pow(a, b->number) : ex_call2("pow", a, b);
    case OP_GT:
    case OP_GE: return ex_call2(op_name(e->op), b, a);
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_AND:
    case OP_OR:
    case OP_MOD: return ex_call2(op_name(e->op), a, b);
    case OP_NEG:
    case OP_NOT: break;
    }
    return a;
}

static bool is_size_definition(const Decl *d);

static bool is_int_data(const Ast *e, int rank)
{
    const Decl *d = e->kind == AST_NAME ? e->decl : NULL;
    return d && d->kind == DECL_DATA && d->type.base == BASE_INT && d->type.rank == rank && !d->observed;
}

static bool may_be_size(const Ast *e)
{
    if (e->kind == AST_NAME) return is_int_data(e, 0) || (e->decl && is_size_definition(e->decl));
    int from = 0;
    if (e->kind == AST_CALL) {
        if (e->name != intern("sum") && e->name != intern("min") && e->name != intern("max")) return false;
        if (e->nkids == 1) return is_int_data(e->kid[0], 1);
    } else if (e->kind == AST_INDEX) {
        if (!is_int_data(e->kid[0], e->nkids - 1)) return false;
        from = 1;
    } else if (e->kind == AST_BINARY) {
        if (e->op == OP_DIV || e->op == OP_ELT_DIV || e->op == OP_POW) return false;
    } else if (e->kind != AST_INT && e->kind != AST_UNARY && e->kind != AST_COND) return false;
    for (int i = from; i < e->nkids; i++)
        if (!may_be_size(e->kid[i])) return false;
    return true;
}

// An integer of the data by another name, h = N - 2: what memory is taken by is then known before anything is computed.
static bool is_size_definition(const Decl *d)
{
    const Stmt *s = d->kind == DECL_DEFINITION && d->type.base == BASE_INT && d->type.rank == 0 && !d->recursive ? d->sites : NULL;
    return s && !s->next_site && !s->outer && !s->link && s->rhs && may_be_size(s->rhs);
}

Expr *elaborate(Graph *g, const Ast *e, const Env *env, int n, Expr *const *at)
{
    switch (e->kind) {
    case AST_INT:
    case AST_REAL: return ex_num(e->number);
    case AST_STRING:
    case AST_FUNCTION: return ex_num(0);
    case AST_NAME: {
        Expr *bound = e->decl ? lookup(env, e->decl) : NULL;
        if (bound) return ex_at(bound, n, at);
        if (!e->decl) return ex_num(0);
        if (e->decl->kind == DECL_VARIABLE && e->decl->sites && n == e->decl->type.rank && g->drawing != e->decl)
            return definition(g, e->decl, n, at, env);
        if (e->decl->user && !is_size_definition(e->decl)) return ex_ref(e->decl->user, n, at);
        return definition(g, e->decl, n, at, env);
    }
    case AST_INDEX: return subscripted(g, e, env, n, at);
    case AST_RANGE:
    case AST_ALL: return ex_num(0);
    case AST_CALL: return call(g, e, env, n, at);
    case AST_UNARY: {
        Expr *a = elaborate(g, e->kid[0], env, n, at);
        return e->op == OP_NEG ? ex_neg(a) : ex_call1("!", a);
    }
    case AST_TRANSPOSE:
        if (n == 2) return elaborate(g, e->kid[0], env, 2, (Expr *[]){at[1], at[0]});
        return elaborate(g, e->kid[0], env, n, at);
    case AST_COND:
        return ex_call3("if_else", elab0(g, e->kid[0], env), operand(g, e->kid[1], env, n, at), operand(g, e->kid[2], env, n, at));
    case AST_REDUCE: {
        Expr *lo = elab0(g, e->kid[0], env), *hi = elab0(g, e->kid[1], env), *turn;
        Index *i = index_of_loop(e->decl->name, lo, hi, &turn);
        Expr *body = elab0(g, e->kid[2], env_bind(g, env, e->decl, turn));
        name_by_sum(body, i);
        return ex_reduce(e->name, i, i->lo, i->hi, body);
    }
    case AST_ARRAY: {
        if (at[0]->kind == EX_NUM && at[0]->number >= 1 && at[0]->number <= e->nkids)
            return elaborate(g, e->kid[(int)at[0]->number - 1], env, n - 1, at + 1);
        Expr *out = elaborate(g, e->kid[e->nkids - 1], env, n - 1, at + 1);
        for (int k = e->nkids - 2; k >= 0; k--)
            out = ex_call3("if_else", ex_call2("==", at[0], ex_num(k + 1)), elaborate(g, e->kid[k], env, n - 1, at + 1), out);
        return out;
    }
    case AST_BINARY: return e->op == OP_MUL ? product(g, e, env, n, at) : operated(g, e, env, n, at);
    }
    return ex_num(0);
}

Expr *elaborate_whole(Graph *g, const Ast *e, const Env *env)
{
    Shape s = shape_of(g, e, env);
    if (s.rank == 0) return elab0(g, e, env);
    Index *j[MAX_RANK];
    Expr *at[MAX_RANK];
    for (int k = 0; k < s.rank; k++) at[k] = ex_index(j[k] = index_new("j", NULL, NULL));
    Expr *body = elaborate(g, e, env, s.rank, at);
    for (int k = s.rank - 1; k >= 0; k--) body = ex_array(j[k], s.dim[k], body);
    return body;
}

// ---- definitions ----

static bool is_index(const Ast *sub) { return sub->kind == AST_NAME && sub->decl && sub->decl->kind == DECL_INDEX; }

// Does a use of a definition stand in the very loops of its statement, at the element that these define? Then their indices mean the same
// there.
static bool same_turn(Graph *g, const Stmt *s, Expr *const *at, const Env *use)
{
    for (const Lookup *l = s->lookups; l; l = l->next)
        if (!lookup(use, l->index)) return false;
    for (int i = 1; i < s->lhs->nkids; i++)
        if (is_index(s->lhs->kid[i]) && lookup(use, s->lhs->kid[i]->decl) != at[i - 1]) return false;
    for (int i = 1; i < s->lhs->nkids; i++)
        if (s->lhs->kid[i]->kind != AST_ALL && s->lhs->kid[i]->kind != AST_RANGE && elab0(g, s->lhs->kid[i], use) != at[i - 1])
            return false;
    return true;
}

static Expr *both(Expr *when, Expr *and) { return when ? ex_call2("&&", when, and) : and; }

// The conditions around a statement.
static Expr *conditions(Graph *g, const Stmt *s, const Env *env, Expr *when)
{
    if (!s) return when;
    when = conditions(g, s->outer, env, when);
    if (s->kind != STMT_IF) return when;
    Expr *here = elab0(g, s->cond, env);
    return both(when, here);
}

// The subscripts of a defining statement, `name[i, j] = ...`: an index is bound to the subscript asked for, anything else
// becomes a condition. Indices that are no subscript are looked up by them.
static Expr *define(Graph *g, const Decl *d, int n, Expr *const *at, const Env *use)
{
    Expr *out = NULL;
    int nsites = 0;
    for (const Stmt *s = d->sites; s; s = s->next_site) nsites++;
    Expr **value = NEW_N(g->arena, Expr *, nsites + 1), **condition = NEW_N(g->arena, Expr *, nsites + 1);
    const bool drawn = d->kind == DECL_VARIABLE;  // the other elements are
    const bool several = nsites > 1 || drawn;     // ranges and conditions distinguish them
    nsites = 0;
    for (const Stmt *s = d->sites; s; s = s->next_site) {
        if (drawn && s->busy) continue;  // its value does not depend on itself
        const Env *env = NULL;
        Expr *when = NULL;
        int k = 0;
        const bool here = s->lookups && same_turn(g, s, at, use);
        if (s->lhs->kind == AST_INDEX)
            for (int i = 1; i < s->lhs->nkids; i++)
                if (is_index(s->lhs->kid[i]) && !lookup(env, s->lhs->kid[i]->decl)) env = env_bind(g, env, s->lhs->kid[i]->decl, at[i - 1]);
        for (const Lookup *l = s->lookups; l; l = l->next) {
            Expr *index = here ? lookup(use, l->index) : ex_ref(l->table, l->table->rank, at);
            env = env_bind(g, env, l->index, index);
            if (several && !here && l == s->lookups) when = ex_call2("<=", ex_num(1), index);
        }
        const Env *met = NULL;
        Expr *rest[2 * MAX_RANK];  // subscripts of the right side: those of dimensions that the left side leaves whole
        int nrest = 0;
        if (s->lhs->kind == AST_INDEX)
            for (int i = 1; i < s->lhs->nkids; i++, k++) {
                const Ast *sub = s->lhs->kid[i];
                if (sub->kind == AST_ALL || sub->kind == AST_RANGE) {
                    const bool slice = sub->kind == AST_RANGE;
                    rest[nrest++] = slice ? ex_plus(ex_sub(at[k], range_lo(g, sub, env)), 1) : at[k];
                    if (!several || !slice) continue;
                    Expr *in = ex_call2("<=", range_lo(g, sub, env), at[k]);
                    if (sub->kid[1]) in = ex_call2("&&", in, ex_call2("<=", at[k], elab0(g, sub->kid[1], env)));
                    when = both(when, in);
                } else if (is_index(sub) && !lookup(met, sub->decl)) {
                    met = env_bind(g, met, sub->decl, at[k]);
                    if (!several || s->lookups) continue;
                    Expr *lo = elab0(g, sub->decl->lo, env), *hi = elab0(g, sub->decl->hi, env);
                    if (!prove_nonneg(&(Loops){0}, ex_sub(at[k], lo))) when = both(when, ex_call2("<=", lo, at[k]));
                    if (!prove_nonneg(&(Loops){0}, ex_sub(hi, at[k]))) when = both(when, ex_call2("<=", at[k], hi));
                } else if (!s->lookups) {
                    Expr *same = ex_call2("==", at[k], elab0(g, sub, env));
                    when = both(when, same);
                }
            }
        if (several) when = conditions(g, s->outer, env, when);
        while (k < n) rest[nrest++] = at[k++];
        ((Stmt *)s)->busy = true;
        Expr *v = elaborate(g, s->rhs, env, nrest, rest);
        ((Stmt *)s)->busy = false;
        if (s->link) v = ex_call1(inverse_link(s->link), v);
        value[nsites] = v;
        condition[nsites++] = when;
    }
    if (drawn) out = ex_ref(d->user, n, at);
    for (int i = nsites - 1; i >= 0; i--) out = !out || !condition[i] ? value[i] : ex_call3("if_else", condition[i], value[i], out);
    return out ? out : ex_num(0);
}

// A definition and the subscripts at which it was asked for. Definitions that use others several times would otherwise be substituted
// exponentially often.
typedef struct Defined {
    struct Defined *next;
    const Decl *decl;
    int n;
    Expr *at[2 * MAX_RANK], *value;
} Defined;

static Expr *definition(Graph *g, const Decl *d, int n, Expr *const *at, const Env *use)
{
    for (const Stmt *s = d->sites; s; s = s->next_site)
        if (s->lookups || d->kind == DECL_VARIABLE) return define(g, d, n, at, use);

    unsigned slot = (unsigned)d->order;
    for (int k = 0; k < n; k++) slot = slot * 31 + (unsigned)at[k]->id;
    slot %= sizeof g->defined / sizeof *g->defined;
    for (const Defined *m = g->defined[slot]; m; m = m->next) {
        bool same = m->decl == d && m->n == n;
        for (int k = 0; k < n && same; k++) same = m->at[k] == at[k];
        if (same) return m->value;
    }
    Defined *m = NEW(g->arena, Defined);
    *m = (Defined){.decl = d, .n = n, .value = define(g, d, n, at, NULL)};
    for (int k = 0; k < n; k++) m->at[k] = at[k];
    m->next = g->defined[slot];
    g->defined[slot] = m;
    return m->value;
}

// An argument for one element of a vectorised statement: leading subscripts are the element's.
Expr *elaborate_argument(Graph *g, const Ast *a, const Env *env, int want, int extra, Expr *const *at)
{
    Expr *whole = elaborate_whole(g, a, env);
    int rank = ex_rank(whole);
    if (rank <= want || extra == 0) return whole;
    int take = rank - want < extra ? rank - want : extra;
    return ex_at(whole, take, at + (extra - take));
}

Expr *elaborate_weights(Graph *g, const Stmt *s, const Env *env, int extra, Expr *const *at)
{
    Expr *whole = elaborate_whole(g, s->weights, env);
    const int n = s->weights_each;
    return n ? ex_at(whole, n, at + (extra - n)) : whole;
}

Expr *elaborate_of_component(Graph *g, const Stmt *s, int i, const Env *env, int want, int extra, Expr *const *at, Expr *component)
{
    if (!(s->by_component & 1U << i)) return elaborate_argument(g, s->args[i], env, want, extra, at);
    Expr *whole = elaborate_whole(g, s->args[i], env), *sub[MAX_RANK + 1];
    const int n = ex_rank(whole) - want;
    for (int k = 0; k < n - 1; k++) sub[k] = at[k];
    sub[n - 1] = component;
    return ex_at(whole, n, sub);
}

Expr *elaborate_rule(Graph *g, const Ast *e, int n, Decl *const *names, Expr *const *values)
{
    const Env *env = NULL;
    for (int i = 0; i < n; i++)
        if (names[i]) env = env_bind(g, env, names[i], values[i]);
    return elaborate_whole(g, e, env);
}
