// expressions.c -- element type and shape of every expression.
//
//   before   mu[g[i]] + X[i] * beta        mu: real[J]   X: real[N, p]   beta: real[p]
//   after    real, each part of it with its type too; one that does not fit is poisoned after its message
//
// An argument of a distribution has the shape of its parameter, or repeats it, in a statement and in normal_lpdf(y | mu, s) alike.
//
// Needs: resolved.     Gives: Ast.type, Ast.state.     Keeps: the tree.
#include <string.h>
#include "functions.h"
#include "types.h"

// ---- functions ----

typedef struct Function {
    const char *name, *args;
    Result result;
} Function;

static const Function functions[] = {
#define FUNCTION(name, args, result) {#name, args, RESULT_##result},
#include "../../runtime/device/functions.def"
#undef FUNCTION
};
enum { NFUNCTIONS = sizeof functions / sizeof *functions };

static bool repeats(const Function *f) { return strstr(f->args, "...") != NULL; }
static int least(const Function *f) { return repeats(f) ? (int)strlen(f->args) - 3 : (int)strlen(f->args); }

static char letter(const Function *f, int i)
{
    int n = least(f);
    return f->args[i < n ? i : n - 1];
}

static const Function *find_function(const char *name, int nargs)
{
    for (int i = 0; i < NFUNCTIONS; i++) {
        const Function *f = &functions[i];
        if (strcmp(f->name, name) == 0 && (nargs == least(f) || (repeats(f) && nargs > least(f)))) return f;
    }
    return NULL;
}

// ---- expressions ----

static bool poison(Ast *e)
{
    e->state = TYPE_POISONED;
    e->type = (Type){.base = BASE_REAL};
    return false;
}

bool types_known(Ast *e, Type type)
{
    e->type = type;
    e->state = TYPE_KNOWN;
    return true;
}

bool types_need_scalar(Types *t, const Ast *e, const char *what)
{
    if (e->type.rank == 0) return true;
    diag(t->d, e->span, DIAG_E0309, what, types_describe(t, &e->type));
    return false;
}

bool types_need_int(Types *t, Ast *e, const char *what)
{
    if (!types_of(t, e) || !types_need_scalar(t, e, what)) return false;
    if (e->type.base == BASE_INT) return true;
    diag(t->d, e->span, DIAG_E0310, what);
    return false;
}

bool types_need_data(Types *t, const Ast *e, const char *what)
{
    const char *culprit = NULL;
    if (depends_on_data_only(t->a, e, &culprit)) return true;
    diag(t->d, e->span, DIAG_E0211, what, culprit);
    return false;
}

// The common shape of operands that are repeated if scalar. `into` starts as the first operand's type.
static bool join(Types *t, Span at, Type *into, const Type *other, const char *op)
{
    BaseType base = into->base == BASE_INT && other->base == BASE_INT ? BASE_INT : BASE_REAL;
    if (into->rank == 0) *into = *other;
    else if (other->rank != 0) {
        if (into->rank != other->rank) {
            diag(t->d, at, DIAG_E0301, op, types_describe(t, into), types_describe(t, other));
            return false;
        }
        for (int i = 0; i < into->rank; i++)
            if (!types_same_size(t, at, into->dim[i], other->dim[i])) return false;
    }
    into->base = base;
    return true;
}

static Type vector_type(BaseType base, Ast *n) { return (Type){.base = base, .rank = 1, .dim = {n}}; }

static Type matrix_type(Ast *n, Ast *m) { return (Type){.base = BASE_REAL, .rank = 2, .dim = {n, m}}; }

static const char *const op_words[] = {"+", "-", "*", "/", "^", ".*", "./", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "%", "-", "!"};

static bool type_product(Types *t, Ast *e)
{
    const Ast *x = e->kid[0], *y = e->kid[1];
    const Type *a = &x->type, *b = &y->type;
    Type type = *a;
    if (!a->rank || !b->rank) return join(t, e->span, &type, b, "*") ? types_known(e, type) : poison(e);
    if (a->rank > 2 || b->rank > 2) {
        diag(t->d, e->span, DIAG_E0301, "*", types_describe(t, a), types_describe(t, b));
        return poison(e);
    }
    if (a->rank == 1 && b->rank == 1 && y->kind == AST_TRANSPOSE && x->kind != AST_TRANSPOSE)
        return types_known(e, matrix_type(a->dim[0], b->dim[0]));  // v * w'
    if (!types_same_size(t, e->span, a->dim[a->rank - 1], b->dim[0])) return poison(e);
    if (a->rank == 1 && b->rank == 1)
        return types_known(e, (Type){.base = a->base == BASE_INT && b->base == BASE_INT ? BASE_INT : BASE_REAL});
    if (a->rank == 1) return types_known(e, vector_type(BASE_REAL, b->dim[1]));
    if (b->rank == 1) return types_known(e, vector_type(BASE_REAL, a->dim[0]));
    return types_known(e, matrix_type(a->dim[0], b->dim[1]));
}

static bool type_binary(Types *t, Ast *e)
{
    bool left = types_of(t, e->kid[0]), right = types_of(t, e->kid[1]);
    if (!left || !right) return poison(e);
    const Type *a = &e->kid[0]->type, *b = &e->kid[1]->type;
    Type type = *a;
    const char *op = op_words[e->op];
    switch (e->op) {
    case OP_MUL: return type_product(t, e);
    case OP_DIV:
        if (a->rank && b->rank) {
            Diag *m = diag(t->d, e->span, DIAG_E0301, op, types_describe(t, a), types_describe(t, b));
            diag_help(m, "element by element is written ./");
            return poison(e);
        }
        break;
    case OP_MOD:
        if (a->base != BASE_INT || b->base != BASE_INT) {
            diag(t->d, e->span, DIAG_E0310, "an operand of `%`");
            return poison(e);
        }
        break;
    case OP_ADD:
    case OP_SUB:
    case OP_POW:
    case OP_ELT_MUL:
    case OP_ELT_DIV:
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
    case OP_AND:
    case OP_OR:
    case OP_NEG:
    case OP_NOT: break;
    }
    if (!join(t, e->span, &type, b, op)) return poison(e);
    switch (e->op) {
    case OP_DIV:
    case OP_POW:
    case OP_ELT_DIV: type.base = BASE_REAL; break;
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
    case OP_AND:
    case OP_OR: type.base = BASE_INT; break;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_ELT_MUL:
    case OP_MOD:
    case OP_NEG:
    case OP_NOT: break;
    }
    return types_known(e, type);
}

// A subscript that is a known number, against an extent that is one.
static bool check_subscript(Types *t, const Ast *s, const Ast *dim)
{
    double k, n;
    if (!constant_value(s, NULL, &k)) return true;
    bool sized = dim && constant_value(dim, NULL, &n);
    if (k >= 1 && (!sized || k <= n)) return true;
    Diag *m = diag(t->d, s->span, DIAG_E0311, types_text(t, s), dim ? types_text(t, dim) : "the size");
    if (k == 0) diag_help(m, "indices start from 1");
    return false;
}

static bool type_subscript(Types *t, Ast *s, Ast *dim, Type *out)
{
    if (s->kind == AST_ALL) {
        s->state = TYPE_KNOWN;
        out->dim[out->rank++] = dim;
        return true;
    }
    if (s->kind == AST_RANGE) {
        s->state = TYPE_KNOWN;
        bool good = true;
        for (int i = 0; i < 2; i++)
            if (s->kid[i]) good = types_need_int(t, s->kid[i], "an end of a range") && check_subscript(t, s->kid[i], dim) && good;
        if (!good) return false;
        Ast *hi = s->kid[1] ? s->kid[1] : dim;
        out->dim[out->rank++] = s->kid[0] ? extent_between(t, s->kid[0], hi) : hi;
        return true;
    }
    if (!types_of(t, s)) return false;
    if (s->type.base != BASE_INT) {
        diag(t->d, s->span, DIAG_E0303);
        return false;
    }
    if (out->rank + s->type.rank > MAX_RANK) {
        diag(t->d, s->span, DIAG_E0313, MAX_RANK);
        return false;
    }
    for (int i = 0; i < s->type.rank; i++) out->dim[out->rank++] = s->type.dim[i];  // a gather: u[group]
    return s->type.rank || check_subscript(t, s, dim);
}

// e with the subscripts of a left side, indices, replaced by those of a use; NULL if it reads others.
static Ast *at_subscripts(Types *t, Ast *e, const Ast *lhs, Ast *const *sub)
{
    if (!types_has_index(e)) return e;
    if (e->kind == AST_REDUCE) return NULL;
    if (e->kind == AST_NAME) {
        for (int i = 1; i < lhs->nkids; i++)
            if (lhs->kid[i]->decl == e->decl) return sub[i];
        return NULL;
    }
    Ast *copy = arena_copy(t->a, e, sizeof *e);
    copy->kid = NEW_N(t->a, Ast *, e->nkids);
    for (int i = 0; i < e->nkids; i++) {
        copy->kid[i] = e->kid[i] ? at_subscripts(t, e->kid[i], lhs, sub) : NULL;
        if (e->kid[i] && !copy->kid[i]) return NULL;
        if (copy->kid[i] && copy->kid[i]->depth >= copy->depth) copy->depth = copy->kid[i]->depth + 1;
    }
    if (copy->depth > MAX_DEPTH) return NULL;
    copy->state = TYPE_UNKNOWN;
    return types_of(t, copy) ? copy : NULL;
}

// The sizes of z[j] where each z[j] has sizes of its own, if j is known from data.
static Type sizes_at(Types *t, const Ast *e)
{
    Type type = e->kid[0]->type;
    const Stmt *s = e->kid[0]->kind == AST_NAME && e->kid[0]->decl ? e->kid[0]->decl->ragged : NULL;
    const int leading = s ? s->lhs->nkids - 1 : 0;
    const char *culprit;
    if (!s || e->nkids - 1 < leading || leading + s->rhs->type.rank != type.rank) return type;
    for (int i = 1; i <= leading; i++) {
        Ast *sub = e->kid[i];
        if (sub->kind == AST_ALL || sub->kind == AST_RANGE || !types_of(t, sub) || sub->type.rank ||
            !depends_on_data_only(t->a, sub, &culprit))
            return type;
    }
    for (int k = 0; k < s->rhs->type.rank; k++) {
        Ast *dim = s->rhs->type.dim[k] ? at_subscripts(t, s->rhs->type.dim[k], s->lhs, e->kid) : NULL;
        if (dim) type.dim[leading + k] = dim;
    }
    return type;
}

static bool type_index(Types *t, Ast *e)
{
    bool good = types_of(t, e->kid[0]);
    const Type of = good ? sizes_at(t, e) : e->kid[0]->type, *array = &of;
    int n = e->nkids - 1;
    if (good && n > array->rank) {
        Diag *m = diag(t->d, e->span, DIAG_E0304, arena_printf(t->a, "`%s`", types_text(t, e->kid[0])),
                       plural(t->a, array->rank, "dimension", "dimensions"), n);
        const Decl *undecided = array->rank == 0 ? undecided_size_in(t->a, t->lib, e->kid[0]) : NULL;
        if (undecided)
            diag_help(m,
                      "nothing decides the size of `%s`: write it, vector[J] %s ~ ...; or give what looks it up its bounds, int<lower=1, "
                      "upper=J> g[N]",
                      undecided->name, undecided->name);
        else if (array->rank == 0) diag_help(m, "a scalar takes no subscript");
        good = false;
    }
    Type type = {.base = array->base};
    for (int i = 1; i <= n; i++) good = type_subscript(t, e->kid[i], good ? array->dim[i - 1] : NULL, &type) && good;
    if (!good) return poison(e);
    if (type.rank + array->rank - n > MAX_RANK) {
        diag(t->d, e->span, DIAG_E0313, MAX_RANK);
        return poison(e);
    }
    for (int i = n; i < array->rank; i++) type.dim[type.rank++] = array->dim[i];
    return types_known(e, type);
}

static const char *letter_words(char c)
{
    switch (c) {
    case 's': return "a scalar";
    case 'i': return "an integer";
    case 'v': return "a vector";
    case 'm': return "a matrix";
    case 'p': return "a vector or a matrix";
    case 'w': return "a scalar or a vector";
    case 'a': return "a vector or an array";
    }
    return "a number";
}

static bool fits(char c, const Type *type)
{
    switch (c) {
    case 's': return type->rank == 0;
    case 'i': return type->rank == 0 && type->base == BASE_INT;
    case 'v': return type->rank == 1;
    case 'm': return type->rank == 2;
    case 'p': return type->rank == 1 || type->rank == 2;
    case 'w': return type->rank <= 1;
    case 'a': return type->rank >= 1;
    }
    return true;
}

// The elements of an array, of as many more subscripts as there are sizes.
static bool repeated_type(Types *t, Ast *e, Type *type)
{
    const Type first = e->kid[0]->type;
    if (e->nkids - 1 + first.rank > MAX_RANK) {
        diag(t->d, e->span, DIAG_E0313, MAX_RANK);
        return false;
    }
    for (int i = 1; i < e->nkids; i++) type->dim[type->rank++] = e->kid[i];
    for (int i = 0; i < first.rank; i++) type->dim[type->rank++] = first.dim[i];
    return true;
}

// How many elements to_vector() gives.
static Ast *length_of_all(Types *t, const Ast *e)
{
    const Type first = e->kid[0]->type;
    bool simple = true;  // a product of products of ... would grow without end
    for (int i = 0; i < first.rank; i++) simple &= first.dim[i]->depth == 1;
    Ast *n = first.rank ? first.dim[0] : size_int(t, e->span, 1);
    if (simple)
        for (int i = 1; i < first.rank; i++) n = size_op(t, e->span, OP_MUL, n, first.dim[i]);
    else if (first.rank > 1) {
        n = size_node(t, AST_CALL, e->span, 1, e->kid[0], NULL);
        if (n->kind == AST_CALL) n->name = intern("num_elements");
    }
    return n;
}

static bool differ_in_rank(Types *t, const Ast *e)
{
    const Type *first = &e->kid[0]->type, *second = &e->kid[1]->type;
    diag(t->d, e->span, DIAG_E0301, e->name, types_describe(t, first), types_describe(t, second));
    return false;
}

// The type of what two arguments are put together to; false: they do not fit.
static bool together_type(Types *t, const Ast *e, Result result, Type *type)
{
    const Type first = e->kid[0]->type, second = e->kid[1]->type;
    if (result == RESULT_APPEND_ROW) {
        if (first.rank > 1 || second.rank > 1) return differ_in_rank(t, e);
        Ast *one = size_int(t, e->span, 1);
        *type = vector_type(first.base == BASE_INT && second.base == BASE_INT ? BASE_INT : BASE_REAL,
                            extent_sum(t, first.rank ? first.dim[0] : one, second.rank ? second.dim[0] : one));
        return true;
    }
    if (result == RESULT_APPEND_COL) {  // a vector is a column
        Ast *one = size_int(t, e->span, 1);
        if (!types_same_size(t, e->span, first.dim[0], second.dim[0])) return false;
        *type = matrix_type(first.dim[0], extent_sum(t, first.rank == 2 ? first.dim[1] : one, second.rank == 2 ? second.dim[1] : one));
        return true;
    }
    if (first.rank != second.rank) return differ_in_rank(t, e);
    if (first.rank == 2 && !types_same_size(t, e->span, first.dim[1], second.dim[1])) return false;
    *type = matrix_type(first.dim[0], second.dim[0]);
    return true;
}

// The type of a call whose arguments fit. `common`: of the elementwise arguments.
static bool result(Types *t, Ast *e, const Function *f, Type common)
{
    Type first = e->nkids ? e->kid[0]->type : (Type){0}, type = {.base = BASE_REAL};
    switch (f->result) {
    case RESULT_EACH: common.base = BASE_REAL; return types_known(e, common);
    case RESULT_EACH_SAME: return types_known(e, common);
    case RESULT_EACH_INT: common.base = BASE_INT; return types_known(e, common);
    case RESULT_REAL: break;
    case RESULT_INT: type.base = BASE_INT; break;
    case RESULT_SCALAR: type.base = first.base; break;
    case RESULT_LIKE: type = first; break;
    case RESULT_LIKE_REAL:
        type = first;
        type.base = BASE_REAL;
        break;
    case RESULT_LIKE_INT:
        type = first;
        type.base = BASE_INT;
        break;
    case RESULT_CHOICE:
        common.base = e->kid[1]->type.base == BASE_INT && e->kid[2]->type.base == BASE_INT ? BASE_INT : BASE_REAL;
        return types_known(e, common);
    case RESULT_REP_VECTOR: type = vector_type(BASE_REAL, e->kid[1]); break;
    case RESULT_REP_ARRAY:
    case RESULT_REP_ARRAY_REAL:
        type.base = f->result == RESULT_REP_ARRAY ? first.base : BASE_REAL;
        if (!repeated_type(t, e, &type)) return poison(e);
        break;
    case RESULT_TO_VECTOR: type = vector_type(BASE_REAL, length_of_all(t, e)); break;
    case RESULT_APPEND_ROW:
    case RESULT_APPEND_COL:
    case RESULT_BETWEEN:
        if (!together_type(t, e, f->result, &type)) return poison(e);
        break;
    case RESULT_LENGTH_2: type = vector_type(first.base, e->kid[1]); break;
    case RESULT_LENGTH_3: type = vector_type(first.base, e->kid[2]); break;
    case RESULT_LENGTH_ROWS: type = vector_type(first.base, first.dim[0]); break;
    case RESULT_LENGTH_COLS: type = vector_type(first.base, first.dim[1]); break;
    case RESULT_ONE_MORE: type = vector_type(BASE_REAL, extent_plus(t, first.dim[0], 1)); break;
    case RESULT_SQUARE_ROWS: type = matrix_type(first.dim[0], first.dim[0]); break;
    case RESULT_SQUARE_COLS: type = matrix_type(first.dim[1], first.dim[1]); break;
    case RESULT_SQUARE_1: type = matrix_type(e->kid[0], e->kid[0]); break;
    case RESULT_SOLUTION: type = matrix_type(e->kid[3]->type.dim[0], e->kid[1]->type.dim[0]); break;
    }
    return types_known(e, type);
}

static void count_error(Types *t, const Ast *e)
{
    char list[60] = "";
    for (int i = 0; i < NFUNCTIONS; i++)
        if (strcmp(functions[i].name, e->name) == 0)
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d%s", *list ? " or " : "", least(&functions[i]),
                     repeats(&functions[i]) ? " or more" : "");
    diag(t->d, e->span, DIAG_E0306, e->name, arena_printf(t->a, "%s argument%s", list, strcmp(list, "1") ? "s" : ""), e->nkids);
}

// Functions of a vector and a matrix whose sizes are tied.
static bool check_sizes(Types *t, const Ast *e)
{
    const char *name = e->name;
    if (name == intern("dot_product") || name == intern("squared_distance"))
        return types_same_size(t, e->span, e->kid[0]->type.dim[0], e->kid[1]->type.dim[0]);
    if (name == intern("quad_form") || name == intern("quad_form_diag"))
        return types_same_size(t, e->span, e->kid[0]->type.dim[1], e->kid[1]->type.dim[0]);
    const Type *scale = e->nkids ? &e->kid[e->nkids - 1]->type : NULL;
    if (strncmp(name, "gp_", 3) == 0 && scale->rank == 1)  // one for each column
        return types_same_size(t, e->span, e->kid[0]->type.rank == 2 ? e->kid[0]->type.dim[1] : size_int(t, e->span, 1), scale->dim[0]);
    static const char *const square[] = {"inverse", "inverse_spd",        "determinant", "log_determinant",
                                         "trace",   "cholesky_decompose", "diagonal"};
    for (size_t i = 0; i < sizeof square / sizeof *square; i++)
        if (strcmp(name, square[i]) == 0) return types_same_size(t, e->span, e->kid[0]->type.dim[0], e->kid[0]->type.dim[1]);
    return true;
}

// normal_lpdf(y | mu, sigma) and its like: shapes as in a statement, y ~ normal(mu, sigma); over vectors it is the sum.
static bool type_law(Types *t, Ast *e, const Distribution *dist)
{
    if (e->nkids != dist->nparams + 1) {
        diag(t->d, e->span, DIAG_E0306, e->name, plural(t->a, dist->nparams + 1, "argument", "arguments"), e->nkids);
        return poison(e);
    }
    const int before = diags_errors(t->d);
    const Type *value = &e->kid[0]->type;
    if (value->rank < dist->value_rank)
        diag(t->d, e->kid[0]->span, DIAG_E0408, dist->name, dist->value_rank == 1 ? "vectors" : "matrices", types_describe(t, value));
    else if (dist->discrete && value->base != BASE_INT)
        diag(t->d, e->kid[0]->span, DIAG_E0305, 1, e->name, "an integer", types_describe(t, value));
    else {
        Stmt s = {.args = e->kid + 1, .nargs = dist->nparams};
        for (int i = 0; i < dist->nparams; i++) types_argument(t, &s, dist, i, value);
    }
    return diags_errors(t->d) == before ? types_known(e, (Type){.base = BASE_REAL}) : poison(e);
}

// The right side of a differential equation, (t, y) -> slope: y has the size of the state, and so has the slope.
static bool type_right_side(Types *t, Ast *e)
{
    Ast *f = e->kid[0], *start = e->kid[1];
    if (f->kind != AST_FUNCTION) {
        Diag *m = diag(t->d, f->span, DIAG_E0314, e->name);
        diag_help(m, "its value is the derivative of the state: %s((t, y) -> -k * y, y0, t0, ts)", e->name);
        return false;
    }
    if (!types_of(t, start)) {
        poison(f);
        return false;
    }
    if (start->type.rank != 1) {
        diag(t->d, start->span, DIAG_E0305, 2, e->name, "a vector", types_describe(t, &start->type));
        return poison(f);
    }
    f->kid[0]->decl->type = (Type){.base = BASE_REAL};
    f->kid[1]->decl->type = vector_type(BASE_REAL, start->type.dim[0]);
    Ast *slope = f->kid[2];
    if (!types_of(t, slope)) return poison(f);
    if (slope->type.rank != 1) {
        Diag *m =
            diag(t->d, slope->span, DIAG_E0305, 1, e->name, "a function with a vector for its value", types_describe(t, &slope->type));
        diag_help(m, "one derivative for each element of the state: [a, b] for two");
        return poison(f);
    }
    return types_same_size(t, slope->span, slope->type.dim[0], start->type.dim[0]) ? types_known(f, slope->type) : poison(f);
}

static bool type_call(Types *t, Ast *e)
{
    bool good = true;
    const bool solver = is_solver(e->name);
    if (solver && !find_function(e->name, e->nkids)) {
        count_error(t, e);
        return poison(e);
    }
    if (solver && !type_right_side(t, e)) good = false;
    for (int i = solver; i < e->nkids; i++) good = types_of(t, e->kid[i]) && good;
    for (int i = 2; i < e->nkids && solver && good; i++)
        good = types_need_data(t, e->kid[i], i == 2 ? "the time of the start" : i == 3 ? "the times of a solution" : "a tolerance");
    if (!good) return poison(e);
    if (!function_exists(e->name)) {  // reported by resolve, or a base measure
        for (const Distribution *d = t->lib->distributions; d; d = d->next)
            if (d->base && d->base->kind == AST_CALL && d->base->name == e->name) return types_known(e, (Type){.base = BASE_REAL});
        LawPart part;
        const Distribution *law = law_function(t->lib, e->name, &part);
        return law ? type_law(t, e, law) : poison(e);
    }
    const Function *f = find_function(e->name, e->nkids);
    if (!f) {
        count_error(t, e);
        return poison(e);
    }
    Type common = {.base = BASE_INT};
    for (int i = 0; i < e->nkids; i++) {
        char c = letter(f, i);
        const Type *arg = &e->kid[i]->type;
        if (!fits(c, arg)) {
            Diag *m = diag(t->d, e->kid[i]->span, DIAG_E0305, i + 1, e->name, letter_words(c), types_describe(t, arg));
            if (arg->rank == 0 && c == 'a' && !strcmp(e->name, "sum")) diag_help(m, "a sum over an index is written sum(i in 1:N, ...)");
            good = false;
        } else if (c == 'e') {
            good = join(t, e->span, &common, arg, e->name) && good;
        }
    }
    return good && check_sizes(t, e) ? result(t, e, f, common) : poison(e);
}

static bool type_cond(Types *t, Ast *e)
{
    bool good = true;
    for (int i = 0; i < 3; i++) good = types_of(t, e->kid[i]) && good;
    if (!good || !types_need_scalar(t, e->kid[0], "a condition")) return poison(e);
    Type type = e->kid[1]->type;
    return join(t, e->span, &type, &e->kid[2]->type, "? :") ? types_known(e, type) : poison(e);
}

static bool type_reduce(Types *t, Ast *e)
{
    bool good = types_need_int(t, e->kid[0], "an end of a range") && types_need_data(t, e->kid[0], "the range of a sum");
    good = types_need_int(t, e->kid[1], "an end of a range") && types_need_data(t, e->kid[1], "the range of a sum") && good;
    good = types_of(t, e->kid[2]) && good;
    if (!good || !types_need_scalar(t, e->kid[2], "what is summed over an index")) return poison(e);
    return types_known(e, e->kid[2]->type);
}

static bool type_array_literal(Types *t, Ast *e)
{
    bool good = true;
    for (int i = 0; i < e->nkids; i++) good = types_of(t, e->kid[i]) && good;
    if (!good) return poison(e);
    Type type = e->kid[0]->type;
    for (int i = 1; i < e->nkids; i++) {
        const Type *other = &e->kid[i]->type;
        if (other->rank != type.rank) {
            diag(t->d, e->kid[i]->span, DIAG_E0301, "[ ]", types_describe(t, &type), types_describe(t, other));
            return poison(e);
        }
        if (!join(t, e->kid[i]->span, &type, other, "[ ]")) return poison(e);
    }
    if (type.rank == MAX_RANK) {
        diag(t->d, e->span, DIAG_E0313, MAX_RANK);
        return poison(e);
    }
    memmove(type.dim + 1, type.dim, sizeof *type.dim * (MAX_RANK - 1));
    type.dim[0] = size_int(t, e->span, e->nkids);
    type.rank++;
    return types_known(e, type);
}

static bool type_of_kind(Types *t, Ast *e);

// ---- arguments of distributions ----

static void check_constant(Types *t, const Stmt *s, const Distribution *dist, int i)
{
    const Decl *param = dist->params[i];
    Binding b = {dist, s->args};
    double v, end;
    if (s->args[i]->type.rank || !constant_value(s->args[i], NULL, &v)) return;
    const Ast *ends[2] = {param->lower, param->upper};
    for (int k = 0; k < 2; k++) {
        if (!ends[k] || !constant_value(ends[k], &b, &end) || (k ? v <= end : v >= end)) continue;
        Diag *m = diag(t->d, s->args[i]->span, DIAG_E0403, param->name, dist->name, k ? "at most" : "at least",
                       arena_printf(t->a, "%g", end), types_text(t, s->args[i]));
        for (const Synonym *w = dist->synonyms; w; w = w->next)
            if (w->word == intern("sd") && w->of == param->name)
                diag_help(m, "`%s` of %s is the standard deviation", param->name, dist->name);
    }
}

// What an argument of `y ~ mixture(w, normal(m, s))`, with dimensions more than its distribution takes, has elements for: each element of
// y, each component, or each component of each element.
typedef enum { TO_ELEMENT, TO_COMPONENT, TO_NEITHER } Belongs;

static Belongs belongs(Types *t, Stmt *s, const Ast *arg, int extra, int repeated, const Type *value)
{
    bool component = extra == 1 || extra == repeated + 1;
    if (extra == 1 && repeated == 1) {
        double excess;
        const Type *w = &s->weights->type;
        const SizeRelation by = compare_sizes(t, arg->type.dim[0], w->dim[w->rank - 1], &excess),
                           each = compare_sizes(t, arg->type.dim[0], value->dim[0], &excess);
        if (by == each && by != SIZES_DIFFERENT) {
            const char *left = types_text(t, s->lhs);
            Diag *m = diag(t->d, arg->span, DIAG_E0411,
                           arena_printf(t->a, "sizes do not decide whether `%s` has an element for each component or for each of `%s`",
                                        types_text(t, arg), left));
            diag_help(m, "for (i in 1:rows(%s)) %s[i] ~ mixture(...); with a subscript i where an argument has an element for each", left,
                      left);
            return TO_NEITHER;
        }
        component = by == SIZES_SAME || each == SIZES_DIFFERENT;
    }
    for (int i = 0; component && i < s->nargs; i++)
        if (s->args[i] == arg) s->by_component |= 1U << i;
    return component ? TO_COMPONENT : TO_ELEMENT;
}

void types_argument(Types *t, Stmt *s, const Distribution *dist, int i, const Type *value)
{
    const Ast *arg = s->args[i];
    const Decl *param = dist->params[i];
    int extra = arg->type.rank - param->type.rank, repeated = value->rank - dist->value_rank;
    if (s->weights && !s->more && s->weights->state == TYPE_KNOWN && s->weights->type.rank > 0 && extra > 0) {
        const Belongs to = belongs(t, s, arg, extra, repeated, value);
        if (to == TO_NEITHER) return;
        if (to == TO_COMPONENT) {
            const Type *w = &s->weights->type;
            for (int k = 0; k < extra - 1; k++)
                if (!types_same_size(t, arg->span, arg->type.dim[k], value->dim[k])) return;
            if (types_same_size(t, arg->span, arg->type.dim[extra - 1], w->dim[w->rank - 1])) check_constant(t, s, dist, i);
            return;
        }
    }
    if (extra != 0 && extra != repeated) {
        Diag *m = diag(t->d, arg->span, DIAG_E0402, param->name, dist->name, types_describe_rank(param->type.rank),
                       types_describe(t, &arg->type));
        const Decl *undecided = undecided_size_in(t->a, t->lib, arg);
        if (undecided)
            diag_help(m, "nothing decides the size of `%s`, which is one number then: write it, for example vector[K] %s ~ ...",
                      undecided->name, undecided->name);
        else if (param->type.rank == 0 && repeated == 0) diag_help(m, "write what belongs to one element, as in y[i] or X[i]*beta");
        return;
    }
    if (param->type.base == BASE_INT && arg->type.base != BASE_INT) {
        diag(t->d, arg->span, DIAG_E0402, param->name, dist->name, "an integer", "a real");
        return;
    }
    for (int k = 0; k < extra; k++)
        if (!types_same_size(t, arg->span, arg->type.dim[k], value->dim[k])) return;
    // vectors and matrices beside a vector or matrix value have its size, or one of their own that some of them share
    for (int k = extra; k < arg->type.rank && dist->value_rank; k++) {
        const char *own = param->own_size[k - extra];
        for (int j = 0; j < i && own; j++)
            for (int n = 0; n < dist->params[j]->type.rank; n++) {
                const Type *other = &s->args[j]->type;
                if (dist->params[j]->own_size[n] != own || other->rank < dist->params[j]->type.rank) continue;
                if (!types_same_size(t, arg->span, arg->type.dim[k], other->dim[other->rank - dist->params[j]->type.rank + n])) return;
            }
        if (!own && !types_same_size(t, arg->span, arg->type.dim[k], value->dim[value->rank - 1])) return;
    }
    check_constant(t, s, dist, i);
}

// ---- calls of functions ----

static const char *describe_kind(const Type *type)
{
    return type->rank == 0 && type->base == BASE_INT ? "an integer" : types_describe_rank(type->rank);
}

static bool is_of_kind(const Type *type, const Type *kind)
{
    return type->rank == kind->rank && (kind->base == BASE_REAL || type->base == BASE_INT);
}

// e is the right side of a function. Its span is that of the call, but while the right side is read.
static bool type_inlined(Types *t, Ast *e)
{
    const Inlined *c = e->inlined;
    const FunctionDecl *f = c->function;
    for (int i = 0; i < f->nparams; i++) {
        if (!types_of(t, c->args[i])) return poison(e);
        if (!f->params[i]->has_type || is_of_kind(&c->args[i]->type, &f->params[i]->type)) continue;
        const char *wanted = describe_kind(&f->params[i]->type);
        Diag *m = diag(t->d, c->args[i]->span, DIAG_E0305, i + 1, f->name, wanted, types_describe(t, &c->args[i]->type));
        diag_help(m, "`%s` is a function of %s", f->name, span_place(t->a, f->span));
        return poison(e);
    }
    const Span call = e->span;
    e->span = c->body;
    e->inlined = c->within;
    const bool good = e->inlined ? type_inlined(t, e) : type_of_kind(t, e);
    e->span = call;
    e->inlined = c;
    if (!good || !f->typed || is_of_kind(&e->type, &f->type)) return good;
    Diag *m = diag(t->d, c->body, DIAG_E0217, f->name, types_describe(t, &e->type), describe_kind(&f->type));
    diag_help(m, "a function without a kind gives what its right side is: function %s", signature(t->a, f->name, f->params, f->nparams));
    return poison(e);
}

bool types_of(Types *t, Ast *e)
{
    if (e->state != TYPE_UNKNOWN) return e->state == TYPE_KNOWN;
    return e->inlined ? type_inlined(t, e) : type_of_kind(t, e);
}

static bool type_of_kind(Types *t, Ast *e)
{
    switch (e->kind) {
    case AST_INT: return types_known(e, (Type){.base = BASE_INT});
    case AST_REAL: return types_known(e, (Type){.base = BASE_REAL});
    case AST_STRING: return poison(e);
    case AST_NAME:
        if (!e->decl || e->decl->poisoned) return poison(e);
        types_shape(t, e->decl);
        return e->decl->poisoned ? poison(e) : types_known(e, e->decl->type);
    case AST_INDEX: return type_index(t, e);
    case AST_RANGE:
    case AST_ALL: return poison(e);  // only in subscripts, which do not come here
    case AST_CALL: return type_call(t, e);
    case AST_BINARY: return type_binary(t, e);
    case AST_UNARY: {
        if (!types_of(t, e->kid[0])) return poison(e);
        Type type = e->kid[0]->type;
        if (e->op == OP_NOT) type.base = BASE_INT;
        return types_known(e, type);
    }
    case AST_TRANSPOSE: {
        if (!types_of(t, e->kid[0])) return poison(e);
        Type type = e->kid[0]->type;
        if (type.rank == 0 || type.rank > 2) {
            diag(t->d, e->span, DIAG_E0305, 1, "'", "a vector or a matrix", types_describe(t, &type));
            return poison(e);
        }
        if (type.rank == 2) type = (Type){type.base, 2, {type.dim[1], type.dim[0]}};
        return types_known(e, type);
    }
    case AST_COND: return type_cond(t, e);
    case AST_REDUCE: return type_reduce(t, e);
    case AST_ARRAY: return type_array_literal(t, e);
    case AST_FUNCTION: {
        Diag *m = diag(t->d, e->span, DIAG_E0315, "a function");
        diag_help(m, "it is the first argument of ode_rk45 or ode_bdf");
        return poison(e);
    }
    }
    return poison(e);
}
