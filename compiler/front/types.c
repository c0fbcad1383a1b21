// types.c -- the types of a model: of every declaration (shapes.c), and of every statement with its expressions (expressions.c).
//
//   before   for (j in 1:J) theta[j] ~ normal(mu, tau);
//   after    theta: real[J]     mu, tau: real     theta[j]: real
//
// A statement's left side has the shape that its distribution or its right side gives; ends of a truncation, components of a mixture and
// conditions are what they have to be.
//
// Needs: resolved.     Gives: Decl.type, Ast.type, Ast.state.     Keeps: the tree, apart from the expressions of extents.
#include <math.h>
#include <string.h>
#include "types.h"

// ---- statements ----

static const char *support_text(const Distribution *d)
{
    switch (d->value_rank) {
    case 0: return d->discrete ? "integers" : "reals";
    case 1: return "vectors";
    }
    return "matrices";
}

// An end of a truncation: a scalar, or one for each element of what is drawn.
static bool end_fits(Types *t, const Stmt *s, Ast *end)
{
    if (!types_of(t, end)) return false;
    const Type *value = &s->lhs->type;
    if (!end->type.rank || s->lhs->state != TYPE_KNOWN || end->type.rank != value->rank)
        return types_need_scalar(t, end, "a bound of a truncation");
    for (int k = 0; k < value->rank; k++)
        if (!types_same_size(t, end->span, end->type.dim[k], value->dim[k])) return false;
    return true;
}

static void check_truncation(Types *t, Stmt *s, const Distribution *dist)
{
    Ast *ends[2] = {s->lower, s->upper};
    bool good = true;
    for (int i = 0; i < 2; i++)
        if (ends[i]) {
            good = end_fits(t, s, ends[i]) && good;
            // ends of censored integers are data, which may be infinite, and then they are reals
            if (good && dist->discrete && !dist->value_rank && !s->censored && !(ends[i]->type.rank && ends[i]->type.base == BASE_INT))
                good = types_need_int(t, ends[i], "a bound of truncated integers");
        }
    if (dist->value_rank) {
        Span at = s->lower ? s->lower->span : s->upper ? s->upper->span : s->span;
        diag(t->d, at, DIAG_E0404, dist->name, "not on the real line");
        return;
    }
    double lo, hi;
    if (good && ends[0] && ends[1] && constant_value(ends[0], NULL, &lo) && constant_value(ends[1], NULL, &hi) &&
        (lo > hi || (lo == hi && !dist->discrete)))
        diag(t->d, span_join(ends[0]->span, ends[1]->span), DIAG_E0409, types_text(t, ends[0]), types_text(t, ends[1]));
}

static bool elementwise(Constraint c)
{
    return c == CONSTRAINT_NONE || c == CONSTRAINT_ORDERED || c == CONSTRAINT_POSITIVE_ORDERED || c == CONSTRAINT_SUM_TO_ZERO;
}

// Constants may leave no value between the ends of the support, those of T[ ], and declared bounds.
static void check_interval(Types *t, const Stmt *s, const Distribution *dist)
{
    const Binding b = {dist, s->args};
    const Decl *d = s->decl && s->decl->kind == DECL_VARIABLE ? s->decl : NULL;
    const Ast *lower[3] = {dist->lower, s->lower, d ? d->lower : NULL}, *upper[3] = {dist->upper, s->upper, d ? d->upper : NULL};
    double lo = dist->support == SUPPORT_POSITIVE || dist->support == SUPPORT_UNIT ? 0 : -INFINITY,
           hi = dist->support == SUPPORT_UNIT ? 1 : INFINITY, end;
    for (int i = 0; i < 3; i++) {
        if (lower[i] && constant_value(lower[i], i ? NULL : &b, &end) && end > lo) lo = end;
        if (upper[i] && constant_value(upper[i], i ? NULL : &b, &end) && end < hi) hi = end;
    }
    if (dist->value_rank || lo < hi || (lo == hi && dist->discrete)) return;
    Diag *m = diag(t->d, s->dist_span, DIAG_E0409, arena_printf(t->a, "%g", lo), arena_printf(t->a, "%g", hi));
    diag_help(m, "values of `%s`%s lie between the two", dist->name,
              s->truncated || (d && (d->lower || d->upper)) ? ", as far as its truncation leaves them," : "");
}

static void check_tilde(Types *t, Stmt *s);

// Is the last dimension of the weights that of the components? A vector as long as the left side has a weight for each element.
static bool is_weights(Types *t, const Stmt *s, int n)
{
    const Type *w = &s->weights->type;
    double excess;
    if (w->rank != 1 || s->lhs->type.rank < 1) return false;
    const SizeRelation each = compare_sizes(t, w->dim[0], s->lhs->type.dim[0], &excess);
    return each != SIZES_SAME || compare_sizes(t, w->dim[0], size_int(t, s->weights->span, n), &excess) == SIZES_SAME;
}

// The weights of a mixture and its components beside the first.
static void check_mixture(Types *t, Stmt *s)
{
    const Distribution *first = s->dist ? library_distribution(t->lib, s->dist) : NULL;
    int n = 1;
    for (Stmt *part = s->more; part; part = part->next) {
        check_tilde(t, part);
        n++;
        const Distribution *dist = part->dist ? library_distribution(t->lib, part->dist) : NULL;
        if (!first || !dist) continue;
        if (first->discrete != dist->discrete || first->value_rank != dist->value_rank)
            diag(t->d, part->dist_span, DIAG_E0411,
                 arena_printf(t->a, "`%s` draws %s, and `%s` draws %s", first->name, support_text(first), dist->name, support_text(dist)));
    }
    if (!types_of(t, s->weights)) return;
    const Type *w = &s->weights->type;
    const int repeated = s->lhs->state == TYPE_KNOWN && first ? s->lhs->type.rank - first->value_rank : 0;
    const bool numbers = repeated > 0 && w->rank == repeated && n == 2 && !is_weights(t, s, n);  // w[i] and 1 - w[i]
    if (!(w->rank == 0 && n == 2) && w->rank != 1 && !(repeated > 0 && w->rank == repeated + 1) && !numbers) {
        Diag *m = diag(
            t->d, s->weights->span, DIAG_E0411,
            arena_printf(t->a, "%s weights for %s", w->rank ? "a matrix of" : "one number as", plural(t->a, n, "component", "components")));
        diag_help(m, w->rank ? "a vector with the weights of one element, as in mixture(W[i], ...), or a matrix with a row for each"
                             : "two components have weights w and 1 - w; more have a simplex");
        return;
    }
    s->weights_each = w->rank && !numbers ? w->rank - 1 : w->rank;
    for (int k = 0; k < s->weights_each; k++)
        if (!types_same_size(t, s->weights->span, w->dim[k], s->lhs->type.dim[k])) return;
    if (w->rank > 0 && !numbers && n > 1) types_same_size(t, s->weights->span, w->dim[w->rank - 1], size_int(t, s->weights->span, n));
    if (s->truncated)
        diag(t->d, s->lower ? s->lower->span : s->upper ? s->upper->span : s->span, DIAG_E0404, "mixture", "of several distributions");
}

// y[i] ~ weibull(a, b) C[lo[i], hi[i]]: y is data.
static void check_censored(Types *t, Stmt *s)
{
    const Ast *root = place_root(s->lhs);
    if (!root || !s->decl || s->decl->kind != DECL_DATA || s->block == BLOCK_PREDICT) {
        Diag *m = diag(t->d, s->lhs->span, DIAG_E0418, types_text(t, s->lhs), root ? "none" : "an expression");
        diag_help(m, "an unknown is truncated, T[lower, upper]");
        return;
    }
    if (s->lower) types_need_data(t, s->lower, "an end of what is censored");
    if (s->upper) types_need_data(t, s->upper, "an end of what is censored");
}

static void check_tilde(Types *t, Stmt *s)
{
    if (s->censored) check_censored(t, s);
    bool good = types_of(t, s->lhs);
    if (s->weights) check_mixture(t, s);
    for (int i = 0; i < s->nargs; i++) good = types_of(t, s->args[i]) && good;
    if (!s->dist) return;
    const Distribution *dist = library_distribution(t->lib, s->dist);
    const int errors = diags_errors(t->d);
    if (s->truncated && !s->weights) check_truncation(t, s, dist);
    if (!good) return;
    if (errors == diags_errors(t->d)) check_interval(t, s, dist);
    const Type *value = &s->lhs->type;
    Decl *d = s->decl;
    if (value->rank < dist->value_rank) {
        diag(t->d, s->lhs->span, DIAG_E0408, dist->name, support_text(dist), types_describe(t, value));
        return;
    }
    if (dist->size) {
        Ast *size = types_substitute(t, dist->size, dist, s->args);
        for (int k = value->rank - dist->value_rank; k < value->rank; k++)
            if (!types_same_size(t, s->lhs->span, value->dim[k], size)) return;
    }
    for (int i = 0; i < s->nargs; i++) types_argument(t, s, dist, i, value);
    if (!d) return;
    bool declared = d->has_type && place_root(s->lhs);
    if (dist->discrete && (declared ? d->type.base == BASE_REAL : value->base == BASE_REAL)) {
        Diag *m = diag(t->d, s->lhs->span, DIAG_E0405, dist->name, d->name);
        if (d->kind == DECL_DATA) diag_help(m, "line %d could say: int %s", span_line(d->span), d->name);
    }
    if (d->kind != DECL_VARIABLE) return;
    if (!dist->discrete && declared && d->type.base == BASE_INT) diag(t->d, s->lhs->span, DIAG_E0406, dist->name, d->name);
    if (dist->discrete && declared && d->type.base == BASE_REAL) return;
    if ((d->lower || d->upper) && dist->value_rank) diag(t->d, s->lhs->span, DIAG_E0407, d->name, dist->name, support_text(dist));
    if (!elementwise(d->constraint) && dist->value_rank == 0) {
        static const char *const words[] = {
#define X(id, text) text,
            CONSTRAINTS(X)
#undef X
        };
        diag(t->d, s->lhs->span, DIAG_E0410, words[d->constraint], dist->name, support_text(dist));
    }
}

// Are the elements that subscript `sub` takes, as the indices of loops and sums run, all below or all above `fixed`?
static bool apart(Types *t, Ast *sub, Ast *fixed)
{
    Ast *lo = sub, *hi = sub;
    double excess;
    if (sub->kind == AST_ALL) return false;
    if (sub->kind == AST_RANGE) {
        lo = sub->kid[0];
        hi = sub->kid[1];
    } else if (sub->kind == AST_NAME && sub->decl && sub->decl->kind == DECL_INDEX) {
        lo = sub->decl->lo;
        hi = sub->decl->hi;
    }
    if (hi && !types_has_index(hi) && types_of(t, hi) && compare_sizes(t, hi, fixed, &excess) == SIZES_DIFFERENT && excess < 0) return true;
    return lo && !types_has_index(lo) && types_of(t, lo) && compare_sizes(t, lo, fixed, &excess) == SIZES_DIFFERENT && excess > 0;
}

// alpha[K] = -sum(alpha[1:K - 1]); a computed element may read others of its name which surely are no elements of the same statement.
static bool reads_others(Types *t, Ast *e, const Stmt *s)
{
    if (!e || e->kind == AST_ALL) return true;
    if (e->kind == AST_NAME) return e->decl != s->decl;
    if (e->kind == AST_INDEX && e->kid[0]->kind == AST_NAME && e->kid[0]->decl == s->decl) {
        bool others = false;
        for (int k = 1; k < e->nkids && k < s->lhs->nkids && !others; k++) {
            Ast *fixed = s->lhs->kid[k];
            if (fixed->kind == AST_ALL || fixed->kind == AST_RANGE || types_has_index(fixed) || !types_of(t, fixed)) continue;
            others = apart(t, e->kid[k], fixed);
        }
        for (int k = 1; k < e->nkids && others; k++) others = reads_others(t, e->kid[k], s);
        return others;
    }
    for (int i = 0; i < e->nkids; i++)
        if (!reads_others(t, e->kid[i], s)) return false;
    return true;
}

// Are its values whole numbers? Those of integers are, and what floor, ceil and round leave of a real, so int<lower=1> k = floor(x / 10);
// needs no conversion.
static bool whole(const Ast *e)
{
    if (e->type.base == BASE_INT) return true;
    switch (e->kind) {
    case AST_CALL: return e->name == intern("floor") || e->name == intern("ceil") || e->name == intern("round");
    case AST_UNARY: return e->op == OP_NEG && whole(e->kid[0]);
    case AST_BINARY: return (e->op == OP_ADD || e->op == OP_SUB || e->op == OP_MUL) && whole(e->kid[0]) && whole(e->kid[1]);
    case AST_COND: return whole(e->kid[1]) && whole(e->kid[2]);
    case AST_INDEX:
    case AST_TRANSPOSE: return whole(e->kid[0]);
    case AST_INT:
    case AST_REAL:
    case AST_STRING:
    case AST_NAME:
    case AST_RANGE:
    case AST_ALL:
    case AST_REDUCE:
    case AST_ARRAY:
    case AST_FUNCTION: return false;
    }
    return false;
}

// W[j, i] beside W[i, j]
static bool mirrors(const Ast *a, const Ast *b)
{
    return a->kind == AST_INDEX && b->kind == AST_INDEX && a->nkids == 3 && b->nkids == 3 && ast_same(a->kid[0], b->kid[0]) &&
           ast_same(a->kid[1], b->kid[2]) && ast_same(a->kid[2], b->kid[1]);
}

static void check_define(Types *t, Stmt *s)
{
    if (s->decl && s->decl->kind == DECL_VARIABLE && !s->decl->poisoned && !reads_others(t, s->rhs, s)) {
        Diag *m = diag(t->d, s->rhs->span, DIAG_E0208, s->decl->name);
        if (mirrors(s->rhs, s->lhs))
            diag_help(m,
                      "a symmetric matrix is computed whole from a triangle with a name of its own: S[i, j] = j <= i ? L[i, j] : L[j, i];");
        else
            diag_help(m,
                      "some elements of `%s` are drawn; one that is computed may depend on those before or after it: x[K] = -sum(x[1:K - "
                      "1]); a recursion starts from a name of its own: "
                      "x_1 ~ normal(0, 1); x[1] = x_1; for (t in 2:T) x[t] = r * x[t - 1];",
                      s->decl->name);
        s->decl->poisoned = true;
        return;
    }

    bool left = types_of(t, s->lhs), right = types_of(t, s->rhs);
    if (!left || !right) return;
    if (s->block == BLOCK_LET && !types_need_data(t, s->rhs, "a definition in a let block")) return;
    const Type *x = &s->lhs->type, *y = &s->rhs->type;
    if (x->rank != y->rank) {
        diag(t->d, s->rhs->span, DIAG_E0312, s->decl ? s->decl->name : "this", types_describe(t, x), types_describe(t, y));
        return;
    }
    for (int k = 0; k < x->rank; k++)
        if (!types_same_size(t, s->rhs->span, x->dim[k], y->dim[k])) return;
    const char *culprit;
    if (s->decl && s->decl->kind == DECL_DATA && s->block != BLOCK_LET && depends_on_data_only(t->a, s->rhs, &culprit)) {
        Diag *m = diag(t->d, s->lhs->span, DIAG_E0206, s->decl->name);
        diag_help(m, "data may equal a function of unknowns, as in y[i] = z[i] > 0; the right side here is data only");
        return;
    }
    if (x->base == BASE_INT && (!whole(s->rhs) || s->link)) {
        Diag *m = diag(t->d, s->rhs->span, DIAG_E0310, arena_printf(t->a, "the value of `%s`", s->decl ? s->decl->name : "this"));
        diag_help(m, "round(x), floor(x) and ceil(x) of a real are whole numbers, which an int takes");
    }
}

static void check_stmts(Types *t, Stmt *s)
{
    for (; s; s = s->next) {
        const int before = diags_errors(t->d);
        switch (s->kind) {
        case STMT_TILDE: check_tilde(t, s); break;
        case STMT_DEFINE: check_define(t, s); break;
        case STMT_DECLARE: break;
        case STMT_TARGET:
            if (types_of(t, s->rhs) && s->rhs->type.rank) {
                Diag *m = diag(t->d, s->rhs->span, DIAG_E0309, "what is added to target", types_describe(t, &s->rhs->type));
                diag_help(m, "target += sum(...);");
            }
            break;
        case STMT_FOR:
            if (types_need_int(t, s->index->lo, "an end of a range")) types_need_data(t, s->index->lo, "the range of a loop");
            if (types_need_int(t, s->index->hi, "an end of a range")) types_need_data(t, s->index->hi, "the range of a loop");
            check_stmts(t, s->body);
            break;
        case STMT_IF:
            if (types_of(t, s->cond) && types_need_scalar(t, s->cond, "a condition")) types_need_data(t, s->cond, "a condition");
            check_stmts(t, s->body);
            break;
        case STMT_BLOCK: check_stmts(t, s->body); break;
        }
        if (t->failing && !s->body && diags_errors(t->d) > before) list_add(t->a, t->failing, s);
    }
}

void types_model(Types *t, Model *m)
{
    for (int i = 0; i < m->ndecls; i++) types_shape(t, m->decls[i]);
    for (const Block *b = m->blocks; b; b = b->next) check_stmts(t, b->body);
    for (const Request *r = m->requests; r; r = r->next)
        for (int i = 0; i < r->nsettings; i++) {
            Ast *value = r->setting[i].value;
            if (r->setting[i].id != SETTING_METRIC && types_of(t, value) && types_need_scalar(t, value, "a setting"))
                types_need_data(t, value, "a setting");
        }
}

// ---- the library ----

static void type_body(Types *t, Ast *e, int rank, const char *what)
{
    if (!e || !types_of(t, e) || e->type.rank == rank) return;
    diag(t->d, e->span, DIAG_E0309, what, types_describe(t, &e->type));
}

static void type_routine(Types *t, Ast *e)
{
    if (!e || e->kind != AST_CALL) return;
    for (int i = 0; i < e->nkids; i++) types_of(t, e->kid[i]);
    types_known(e, (Type){.base = BASE_REAL});
}

void types_library(Arena *a, Library *lib, Diags *d)
{
    Types t = {.a = a, .d = d, .lib = lib};
    for (Distribution *p = lib->distributions; p; p = p->next) {
        for (int i = 0; i < p->nparams; i++) types_shape(&t, p->params[i]);
        type_body(&t, p->lower, 0, "an end of the support");
        type_body(&t, p->upper, 0, "an end of the support");
        if (p->size) types_need_int(&t, p->size, "a size");
        type_body(&t, p->log_density, 0, "log_density");
        type_body(&t, p->cdf, 0, "log_cdf");
        type_body(&t, p->ccdf, 0, "log_ccdf");
        if (p->mean) types_of(&t, p->mean);
        if (p->mode) types_of(&t, p->mode);
        if (p->covariance_root) types_of(&t, p->covariance_root);
        if (p->precision_root) types_of(&t, p->precision_root);
        type_body(&t, p->location, 0, "a location");
        type_body(&t, p->scale, 0, "a scale");
        type_body(&t, p->near_zero, 0, "near_zero");
        type_body(&t, p->far_end, 0, "far_end");
        type_body(&t, p->require, 0, "requires");
        type_body(&t, p->edge_from, 1, "edge_from");
        type_body(&t, p->edge_to, 1, "edge_to");
        type_body(&t, p->parts, 0, "parts");
        for (Natural *n = p->natural; n; n = n->next)
            if (types_of(&t, n->statistic)) n->decl->type.rank = n->statistic->type.rank;  // of log_determinant(x), 0
        type_routine(&t, p->sample);
        type_routine(&t, p->sample_truncated);
        type_routine(&t, p->base);
        type_routine(&t, p->draw);
        type_routine(&t, p->draw_truncated);
        type_routine(&t, p->expectations);
        type_routine(&t, p->expectations_truncated);
        for (Natural *n = p->law ? p->law->parameter : NULL; n; n = n->next)
            if (types_of(&t, n->statistic)) n->decl->type = n->statistic->type;
        for (int i = 0; p->law && i < p->law->nargs; i++) types_of(&t, p->law->args[i]);
        if (p->law) types_of(&t, p->law->of);
        if (p->law) type_routine(&t, p->draw_law);
        if (p->law) type_routine(&t, p->draw_law_truncated);
    }
}
