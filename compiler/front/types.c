// types.c -- element type and shape of every declaration and expression.
//
//   before   for (j in 1:J) theta[j] ~ normal(mu, tau);
//   after    theta: real[J]     mu, tau: real     theta[j]: real
//
// Extents are expressions over data, which are compared as sums (extents.c): K - 1 and K - 2 + 1 are the same, K and K - 1 differ, and N
// and M differ because they are two names. What this cannot decide (N and 3) is left to the program's start, when the data are there.
//
// A variable without a written type gets its shape from the left sides of its statements: the subscript t + 1 with t in 1:(T - 1)
// reaches T. A distribution on vectors or an argument that is a vector adds dimensions behind. Shapes are worked out on
// demand, in the order in which they depend on each other.
//
// Needs: resolved.     Gives: Decl.type, Ast.type, Ast.state.     Keeps: the tree, apart from the expressions of extents.
#include <math.h>
#include <string.h>
#include "functions.h"
#include "types.h"

static bool type_of(Types *t, Ast *e);
static void shape(Types *t, Decl *d);

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

// ---- extents as sums: of names and calls, by the types of what they are about ----

static SizeSum atom(Types *t, Ast *e)
{
    SizeSum l = {0};
    add_size(t, &l, e, 1);
    return l;
}

static SizeSum size_as_sum(Types *t, Ast *e);

// A whole number that a let block defines is replaced by its right side.
static SizeSum linear_name(Types *t, Ast *e)
{
    Decl *d = e->decl;
    const char *culprit;
    if (!d || d->kind != DECL_DEFINITION || d->poisoned || !d->sites || d->sites->next_site || d->sites->link ||
        d->sites->lhs->kind != AST_NAME || !depends_on_data_only(t->a, e, &culprit))
        return atom(t, e);
    Facts *f = facts(t->a, d);
    if (!f->extent) {
        f->extent = NEW(t->a, SizeSum);
        *f->extent = atom(t, e);  // should it be defined by itself
        shape(t, d);
        if (!d->poisoned && d->type.rank == 0 && d->type.base == BASE_INT && type_of(t, d->sites->rhs))
            *f->extent = size_as_sum(t, d->sites->rhs);
    }
    return *f->extent;
}

// rows(X), size(x), ... of something whose shape is known is that extent.
static SizeSum linear_call(Types *t, Ast *e)
{
    if (e->nkids != 1 || !type_of(t, e->kid[0])) return atom(t, e);
    const Ast *of = e->kid[0];
    bool rows = e->name == intern("rows") || e->name == intern("size");
    bool cols = e->name == intern("cols"), all = e->name == intern("num_elements");
    int k = cols ? 1 : 0;
    if (!(rows || cols || all) || of->type.rank <= k || (all && of->type.rank != 1)) return atom(t, e);
    Ast *dim = of->type.dim[k];
    bool itself = of->kind == AST_NAME && dim->kind == AST_CALL && dim->nkids == 1 && dim->kid[0]->decl == of->decl;
    return itself ? atom(t, dim) : size_as_sum(t, dim);  // a parameter of a distribution: its extent is called rows(mu)
}

static SizeSum size_as_sum(Types *t, Ast *e)
{
    SizeSum l = {0};
    if (e->kind == AST_INT) {
        l.c = e->number;
        return l;
    }
    if (e->kind == AST_NAME) return linear_name(t, e);
    if (e->kind == AST_CALL) return linear_call(t, e);
    if (e->kind == AST_UNARY && e->op == OP_NEG) {
        SizeSum x = size_as_sum(t, e->kid[0]);
        add_sizes(t, &l, &x, -1);
        return l;
    }
    if (e->kind == AST_BINARY && (e->op == OP_ADD || e->op == OP_SUB)) {
        SizeSum x = size_as_sum(t, e->kid[0]), y = size_as_sum(t, e->kid[1]);
        add_sizes(t, &l, &x, 1);
        add_sizes(t, &l, &y, e->op == OP_ADD ? 1 : -1);
        return l.n > MOST_SIZES ? atom(t, e) : l;
    }
    if (e->kind == AST_BINARY && e->op == OP_MUL) {
        SizeSum *before = map_get(&t->linear, e);
        if (before) return *before;
        SizeSum x = size_as_sum(t, e->kid[0]), y = size_as_sum(t, e->kid[1]);
        if (x.n == 0) add_sizes(t, &l, &y, x.c);
        else if (y.n == 0) add_sizes(t, &l, &x, y.c);
        else l = atom(t, e);
        map_put(t->a, &t->linear, e, arena_copy(t->a, &l, sizeof l));
        return l;
    }
    return atom(t, e);
}

static Ast *extent_plus(Types *t, Ast *e, double c)
{
    SizeSum l = size_as_sum(t, e);
    l.c += c;
    return size_of_sum(t, &l, e->span);
}

static Ast *extent_sum(Types *t, Ast *x, Ast *y)
{
    SizeSum l = {0}, lx = size_as_sum(t, x), ly = size_as_sum(t, y);
    add_sizes(t, &l, &lx, 1);
    add_sizes(t, &l, &ly, 1);
    return l.n > MOST_SIZES ? size_op(t, x->span, OP_ADD, x, y) : size_of_sum(t, &l, x->span);
}

// hi - lo + 1
static Ast *extent_between(Types *t, Ast *lo, Ast *hi)
{
    SizeSum l = {.c = 1}, a = size_as_sum(t, lo), b = size_as_sum(t, hi);
    add_sizes(t, &l, &b, 1);
    add_sizes(t, &l, &a, -1);
    return size_of_sum(t, &l, hi->span);
}

typedef enum { SIZES_SAME, SIZES_DIFFERENT, SIZES_UNDECIDED } SizeRelation;

// *excess: by how much x exceeds y, where the difference is a number.
static SizeRelation compare_sizes(Types *t, Ast *x, Ast *y, double *excess)
{
    *excess = 0;
    if (ast_same(x, y)) return SIZES_SAME;
    SizeSum l = {0}, lx = size_as_sum(t, x), ly = size_as_sum(t, y);
    add_sizes(t, &l, &lx, 1);
    add_sizes(t, &l, &ly, -1);
    if (l.n == 0) {
        *excess = l.c;
        return l.c == 0 ? SIZES_SAME : SIZES_DIFFERENT;
    }
    bool names = lx.n == 1 && ly.n == 1 && lx.c == 0 && ly.c == 0 && lx.term[0].k == 1 && ly.term[0].k == 1 &&
                 lx.term[0].atom->kind == AST_NAME && ly.term[0].atom->kind == AST_NAME;
    return names ? SIZES_DIFFERENT : SIZES_UNDECIDED;
}

// ---- words for messages ----

// An expression, cut short if it is long.
static const char *text_of(Types *t, const Ast *e)
{
    enum { LONG = 60 };
    const char *text = ast_text(t->a, e);
    return strlen(text) <= LONG ? text : arena_printf(t->a, "%.*s...", LONG - 3, text);
}

static const char *describe(Types *t, const Type *type)
{
    switch (type->rank) {
    case 0: return type->base == BASE_INT ? "an integer" : "a real";
    case 1: return arena_printf(t->a, "a vector of %s", type->dim[0] ? text_of(t, type->dim[0]) : "unknown size");
    case 2:
        if (!type->dim[0] || !type->dim[1]) return "a matrix";
        return arena_printf(t->a, "a matrix of %s by %s", text_of(t, type->dim[0]), text_of(t, type->dim[1]));
    }
    return arena_printf(t->a, "an array %s", ast_type_text(t->a, type));
}

static const char *describe_rank(int rank)
{
    static const char *const words[] = {"a scalar",
                                        "a vector",
                                        "a matrix",
                                        "an array of 3 dimensions",
                                        "an array of 4 dimensions",
                                        "an array of 5 dimensions",
                                        "an array of 6 dimensions"};
    return words[rank < 0 ? 0 : rank > MAX_RANK ? MAX_RANK : rank];
}

static bool same_size(Types *t, Span at, Ast *x, Ast *y)
{
    double excess;
    if (!x || !y) return true;
    const SizeRelation r = compare_sizes(t, x, y, &excess);
    t->undecided += r == SIZES_UNDECIDED;
    if (r != SIZES_DIFFERENT) return true;
    diag(t->d, at, DIAG_E0302, text_of(t, x), text_of(t, y));
    return false;
}

// ---- expressions ----

static bool poison(Ast *e)
{
    e->state = TYPE_POISONED;
    e->type = (Type){.base = BASE_REAL};
    return false;
}

static bool known(Ast *e, Type type)
{
    e->type = type;
    e->state = TYPE_KNOWN;
    return true;
}

static bool need_scalar(Types *t, const Ast *e, const char *what)
{
    if (e->type.rank == 0) return true;
    diag(t->d, e->span, DIAG_E0309, what, describe(t, &e->type));
    return false;
}

static bool need_int(Types *t, Ast *e, const char *what)
{
    if (!type_of(t, e) || !need_scalar(t, e, what)) return false;
    if (e->type.base == BASE_INT) return true;
    diag(t->d, e->span, DIAG_E0310, what);
    return false;
}

static bool need_data(Types *t, const Ast *e, const char *what)
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
            diag(t->d, at, DIAG_E0301, op, describe(t, into), describe(t, other));
            return false;
        }
        for (int i = 0; i < into->rank; i++)
            if (!same_size(t, at, into->dim[i], other->dim[i])) return false;
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
    if (!a->rank || !b->rank) return join(t, e->span, &type, b, "*") ? known(e, type) : poison(e);
    if (a->rank > 2 || b->rank > 2) {
        diag(t->d, e->span, DIAG_E0301, "*", describe(t, a), describe(t, b));
        return poison(e);
    }
    if (a->rank == 1 && b->rank == 1 && y->kind == AST_TRANSPOSE && x->kind != AST_TRANSPOSE)
        return known(e, matrix_type(a->dim[0], b->dim[0]));  // v * w'
    if (!same_size(t, e->span, a->dim[a->rank - 1], b->dim[0])) return poison(e);
    if (a->rank == 1 && b->rank == 1) return known(e, (Type){.base = a->base == BASE_INT && b->base == BASE_INT ? BASE_INT : BASE_REAL});
    if (a->rank == 1) return known(e, vector_type(BASE_REAL, b->dim[1]));
    if (b->rank == 1) return known(e, vector_type(BASE_REAL, a->dim[0]));
    return known(e, matrix_type(a->dim[0], b->dim[1]));
}

static bool type_binary(Types *t, Ast *e)
{
    bool left = type_of(t, e->kid[0]), right = type_of(t, e->kid[1]);
    if (!left || !right) return poison(e);
    const Type *a = &e->kid[0]->type, *b = &e->kid[1]->type;
    Type type = *a;
    const char *op = op_words[e->op];
    switch (e->op) {
    case OP_MUL: return type_product(t, e);
    case OP_DIV:
        if (a->rank && b->rank) {
            Diag *m = diag(t->d, e->span, DIAG_E0301, op, describe(t, a), describe(t, b));
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
    return known(e, type);
}

// A subscript that is a known number, against an extent that is one.
static bool check_subscript(Types *t, const Ast *s, const Ast *dim)
{
    double k, n;
    if (!constant_value(s, NULL, &k)) return true;
    bool sized = dim && constant_value(dim, NULL, &n);
    if (k >= 1 && (!sized || k <= n)) return true;
    Diag *m = diag(t->d, s->span, DIAG_E0311, text_of(t, s), dim ? text_of(t, dim) : "the size");
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
            if (s->kid[i]) good = need_int(t, s->kid[i], "an end of a range") && check_subscript(t, s->kid[i], dim) && good;
        if (!good) return false;
        Ast *hi = s->kid[1] ? s->kid[1] : dim;
        out->dim[out->rank++] = s->kid[0] ? extent_between(t, s->kid[0], hi) : hi;
        return true;
    }
    if (!type_of(t, s)) return false;
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

// Indices that an expression runs over itself.
typedef struct SubscriptBound {
    const Decl *index;
    const struct SubscriptBound *next;
} SubscriptBound;

// An index of a loop in e, or NULL.
static Decl *index_in(const Ast *e, const SubscriptBound *bound)
{
    if (e->kind == AST_NAME) {
        if (!e->decl || e->decl->kind != DECL_INDEX) return NULL;
        for (const SubscriptBound *b = bound; b; b = b->next)
            if (b->index == e->decl) return NULL;
        return e->decl;
    }
    const SubscriptBound own = {e->kind == AST_REDUCE ? e->decl : NULL, bound};
    for (int i = 0; i < e->nkids; i++) {
        Decl *found = e->kid[i] ? index_in(e->kid[i], &own) : NULL;
        if (found) return found;
    }
    return NULL;
}

static bool has_index(const Ast *e) { return index_in(e, NULL) != NULL; }

// e with the subscripts of a left side, indices, replaced by those of a use; NULL if it reads others.
static Ast *at_subscripts(Types *t, Ast *e, const Ast *lhs, Ast *const *sub)
{
    if (!has_index(e)) return e;
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
    return type_of(t, copy) ? copy : NULL;
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
        if (sub->kind == AST_ALL || sub->kind == AST_RANGE || !type_of(t, sub) || sub->type.rank ||
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
    bool good = type_of(t, e->kid[0]);
    const Type of = good ? sizes_at(t, e) : e->kid[0]->type, *array = &of;
    int n = e->nkids - 1;
    if (good && n > array->rank) {
        Diag *m = diag(t->d, e->span, DIAG_E0304, arena_printf(t->a, "`%s`", text_of(t, e->kid[0])),
                       plural(t->a, array->rank, "dimension", "dimensions"), n);
        const Decl *undecided = array->rank == 0 ? sizes_undecided_in(t->a, t->lib, e->kid[0]) : NULL;
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
    return known(e, type);
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

// The type of a call whose arguments fit. `common`: of the elementwise arguments.
static bool result(Types *t, Ast *e, const Function *f, Type common)
{
    Type first = e->nkids ? e->kid[0]->type : (Type){0}, type = {.base = BASE_REAL};
    switch (f->result) {
    case RESULT_EACH: common.base = BASE_REAL; return known(e, common);
    case RESULT_EACH_SAME: return known(e, common);
    case RESULT_EACH_INT: common.base = BASE_INT; return known(e, common);
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
        return known(e, common);
    case RESULT_REP_VECTOR: type = vector_type(BASE_REAL, e->kid[1]); break;
    case RESULT_REP_ARRAY:
    case RESULT_REP_ARRAY_REAL:
        if (e->nkids - 1 + first.rank > MAX_RANK) {
            diag(t->d, e->span, DIAG_E0313, MAX_RANK);
            return poison(e);
        }
        type.base = f->result == RESULT_REP_ARRAY ? first.base : BASE_REAL;
        for (int i = 1; i < e->nkids; i++) type.dim[type.rank++] = e->kid[i];
        for (int i = 0; i < first.rank; i++) type.dim[type.rank++] = first.dim[i];
        break;
    case RESULT_TO_VECTOR: {
        bool simple = true;  // a product of products of ... would grow without end
        for (int i = 0; i < first.rank; i++) simple &= first.dim[i]->depth == 1;
        Ast *n = first.rank ? first.dim[0] : size_int(t, e->span, 1);
        if (simple)
            for (int i = 1; i < first.rank; i++) n = size_op(t, e->span, OP_MUL, n, first.dim[i]);
        else if (first.rank > 1) {
            n = size_node(t, AST_CALL, e->span, 1, e->kid[0], NULL);
            if (n->kind == AST_CALL) n->name = intern("num_elements");
        }
        type = vector_type(BASE_REAL, n);
        break;
    }
    case RESULT_APPEND_ROW: {
        Type second = e->kid[1]->type;
        if (first.rank > 1 || second.rank > 1) {
            diag(t->d, e->span, DIAG_E0301, e->name, describe(t, &first), describe(t, &second));
            return poison(e);
        }
        Ast *one = size_int(t, e->span, 1);
        type = vector_type(first.base == BASE_INT && second.base == BASE_INT ? BASE_INT : BASE_REAL,
                           extent_sum(t, first.rank ? first.dim[0] : one, second.rank ? second.dim[0] : one));
        break;
    }
    case RESULT_APPEND_COL: {  // a vector is a column
        const Type second = e->kid[1]->type;
        Ast *one = size_int(t, e->span, 1);
        if (!same_size(t, e->span, first.dim[0], second.dim[0])) return poison(e);
        type = matrix_type(first.dim[0], extent_sum(t, first.rank == 2 ? first.dim[1] : one, second.rank == 2 ? second.dim[1] : one));
        break;
    }
    case RESULT_BETWEEN: {
        const Type second = e->kid[1]->type;
        if (first.rank != second.rank) {
            diag(t->d, e->span, DIAG_E0301, e->name, describe(t, &first), describe(t, &second));
            return poison(e);
        }
        if (first.rank == 2 && !same_size(t, e->span, first.dim[1], second.dim[1])) return poison(e);
        type = matrix_type(first.dim[0], second.dim[0]);
        break;
    }
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
    return known(e, type);
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
        return same_size(t, e->span, e->kid[0]->type.dim[0], e->kid[1]->type.dim[0]);
    if (name == intern("quad_form") || name == intern("quad_form_diag"))
        return same_size(t, e->span, e->kid[0]->type.dim[1], e->kid[1]->type.dim[0]);
    const Type *scale = e->nkids ? &e->kid[e->nkids - 1]->type : NULL;
    if (strncmp(name, "gp_", 3) == 0 && scale->rank == 1)  // one for each column
        return same_size(t, e->span, e->kid[0]->type.rank == 2 ? e->kid[0]->type.dim[1] : size_int(t, e->span, 1), scale->dim[0]);
    static const char *const square[] = {"inverse", "inverse_spd",        "determinant", "log_determinant",
                                         "trace",   "cholesky_decompose", "diagonal"};
    for (size_t i = 0; i < sizeof square / sizeof *square; i++)
        if (strcmp(name, square[i]) == 0) return same_size(t, e->span, e->kid[0]->type.dim[0], e->kid[0]->type.dim[1]);
    return true;
}

static void check_argument(Types *t, Stmt *s, const Distribution *dist, int i, const Type *value);

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
        diag(t->d, e->kid[0]->span, DIAG_E0408, dist->name, dist->value_rank == 1 ? "vectors" : "matrices", describe(t, value));
    else if (dist->discrete && value->base != BASE_INT)
        diag(t->d, e->kid[0]->span, DIAG_E0305, 1, e->name, "an integer", describe(t, value));
    else {
        Stmt s = {.args = e->kid + 1, .nargs = dist->nparams};
        for (int i = 0; i < dist->nparams; i++) check_argument(t, &s, dist, i, value);
    }
    return diags_errors(t->d) == before ? known(e, (Type){.base = BASE_REAL}) : poison(e);
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
    if (!type_of(t, start)) {
        poison(f);
        return false;
    }
    if (start->type.rank != 1) {
        diag(t->d, start->span, DIAG_E0305, 2, e->name, "a vector", describe(t, &start->type));
        return poison(f);
    }
    f->kid[0]->decl->type = (Type){.base = BASE_REAL};
    f->kid[1]->decl->type = vector_type(BASE_REAL, start->type.dim[0]);
    Ast *slope = f->kid[2];
    if (!type_of(t, slope)) return poison(f);
    if (slope->type.rank != 1) {
        Diag *m = diag(t->d, slope->span, DIAG_E0305, 1, e->name, "a function with a vector for its value", describe(t, &slope->type));
        diag_help(m, "one derivative for each element of the state: [a, b] for two");
        return poison(f);
    }
    return same_size(t, slope->span, slope->type.dim[0], start->type.dim[0]) ? known(f, slope->type) : poison(f);
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
    for (int i = solver; i < e->nkids; i++) good = type_of(t, e->kid[i]) && good;
    for (int i = 2; i < e->nkids && solver && good; i++)
        good = need_data(t, e->kid[i], i == 2 ? "the time of the start" : i == 3 ? "the times of a solution" : "a tolerance");
    if (!good) return poison(e);
    if (!function_exists(e->name)) {  // reported by resolve, or a base measure
        for (const Distribution *d = t->lib->distributions; d; d = d->next)
            if (d->base && d->base->kind == AST_CALL && d->base->name == e->name) return known(e, (Type){.base = BASE_REAL});
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
            Diag *m = diag(t->d, e->kid[i]->span, DIAG_E0305, i + 1, e->name, letter_words(c), describe(t, arg));
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
    for (int i = 0; i < 3; i++) good = type_of(t, e->kid[i]) && good;
    if (!good || !need_scalar(t, e->kid[0], "a condition")) return poison(e);
    Type type = e->kid[1]->type;
    return join(t, e->span, &type, &e->kid[2]->type, "? :") ? known(e, type) : poison(e);
}

static bool type_reduce(Types *t, Ast *e)
{
    bool good = need_int(t, e->kid[0], "an end of a range") && need_data(t, e->kid[0], "the range of a sum");
    good = need_int(t, e->kid[1], "an end of a range") && need_data(t, e->kid[1], "the range of a sum") && good;
    good = type_of(t, e->kid[2]) && good;
    if (!good || !need_scalar(t, e->kid[2], "what is summed over an index")) return poison(e);
    return known(e, e->kid[2]->type);
}

static bool type_array_literal(Types *t, Ast *e)
{
    bool good = true;
    for (int i = 0; i < e->nkids; i++) good = type_of(t, e->kid[i]) && good;
    if (!good) return poison(e);
    Type type = e->kid[0]->type;
    for (int i = 1; i < e->nkids; i++) {
        const Type *other = &e->kid[i]->type;
        if (other->rank != type.rank) {
            diag(t->d, e->kid[i]->span, DIAG_E0301, "[ ]", describe(t, &type), describe(t, other));
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
    return known(e, type);
}

static bool type_of_kind(Types *t, Ast *e);

// ---- calls of functions ----

static const char *describe_kind(const Type *type)
{
    return type->rank == 0 && type->base == BASE_INT ? "an integer" : describe_rank(type->rank);
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
        if (!type_of(t, c->args[i])) return poison(e);
        if (!f->params[i]->has_type || is_of_kind(&c->args[i]->type, &f->params[i]->type)) continue;
        const char *wanted = describe_kind(&f->params[i]->type);
        Diag *m = diag(t->d, c->args[i]->span, DIAG_E0305, i + 1, f->name, wanted, describe(t, &c->args[i]->type));
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
    diag(t->d, c->body, DIAG_E0217, f->name, describe(t, &e->type), describe_kind(&f->type));
    return poison(e);
}

static bool type_of(Types *t, Ast *e)
{
    if (e->state != TYPE_UNKNOWN) return e->state == TYPE_KNOWN;
    return e->inlined ? type_inlined(t, e) : type_of_kind(t, e);
}

static bool type_of_kind(Types *t, Ast *e)
{
    switch (e->kind) {
    case AST_INT: return known(e, (Type){.base = BASE_INT});
    case AST_REAL: return known(e, (Type){.base = BASE_REAL});
    case AST_STRING: return poison(e);
    case AST_NAME:
        if (!e->decl || e->decl->poisoned) return poison(e);
        shape(t, e->decl);
        return e->decl->poisoned ? poison(e) : known(e, e->decl->type);
    case AST_INDEX: return type_index(t, e);
    case AST_RANGE:
    case AST_ALL: return poison(e);  // only in subscripts, which do not come here
    case AST_CALL: return type_call(t, e);
    case AST_BINARY: return type_binary(t, e);
    case AST_UNARY: {
        if (!type_of(t, e->kid[0])) return poison(e);
        Type type = e->kid[0]->type;
        if (e->op == OP_NOT) type.base = BASE_INT;
        return known(e, type);
    }
    case AST_TRANSPOSE: {
        if (!type_of(t, e->kid[0])) return poison(e);
        Type type = e->kid[0]->type;
        if (type.rank == 0 || type.rank > 2) {
            diag(t->d, e->span, DIAG_E0305, 1, "'", "a vector or a matrix", describe(t, &type));
            return poison(e);
        }
        if (type.rank == 2) type = (Type){type.base, 2, {type.dim[1], type.dim[0]}};
        return known(e, type);
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

// ---- shapes of declarations ----

// max(j in 1:J, e), for each index j in e. A size that loops decide, as last[j] - first[j] + 1 elements of slices.
static Ast *largest_over(Types *t, Ast *e)
{
    const char *culprit;
    for (int rounds = 0; rounds < 20; rounds++) {
        Decl *index = index_in(e, NULL);
        if (!index) return e;
        if (!type_of(t, index->lo) || !type_of(t, index->hi) || !depends_on_data_only(t->a, index->lo, &culprit) ||
            !depends_on_data_only(t->a, index->hi, &culprit))
            return NULL;
        Ast *most = size_node(t, AST_REDUCE, e->span, 3, index->lo, index->hi);
        if (most->kind != AST_REDUCE) return NULL;  // too deep
        most->name = intern("max");
        most->decl = index;
        most->kid[2] = e;
        if (e->depth >= most->depth) most->depth = e->depth + 1;
        e = most;
    }
    return NULL;
}

// The largest value that a subscript, or an extent, takes as the indices in it run over their loops; NULL if no expression of data gives
// it.
static Ast *largest_of(Types *t, Ast *subscript, bool extent)
{
    if (!type_of(t, subscript) || subscript->type.rank) return NULL;
    SizeSum l = size_as_sum(t, subscript);
    const SizeSum written = l;
    for (int rounds = 0; rounds < 20; rounds++) {
        int i = 0;
        while (i < l.n && !(l.term[i].atom->kind == AST_NAME && l.term[i].atom->decl && l.term[i].atom->decl->kind == DECL_INDEX)) i++;
        if (i == l.n) break;
        Ast *name = l.term[i].atom, *end = l.term[i].k > 0 ? name->decl->hi : name->decl->lo;
        double k = l.term[i].k;
        if (!type_of(t, end)) return NULL;
        SizeSum next = {0}, at_end = size_as_sum(t, end);
        add_sizes(t, &next, &l, 1);
        add_size(t, &next, name, -k);
        add_sizes(t, &next, &at_end, k);
        if (next.n > MOST_SIZES) return NULL;
        l = next;
    }
    const char *culprit;
    bool apart = true;
    for (int i = 0; i < l.n; i++) apart &= l.term[i].k > 0 || !has_index(l.term[i].atom);
    for (int i = 0; i < l.n && apart; i++) {  // slices i in first[j]:last[j] reach max(last)
        const Ast *e = l.term[i].atom;
        if (l.term[i].k < 0 || e->kind != AST_INDEX || e->nkids != 2 || e->kid[0]->kind != AST_NAME || !has_index(e->kid[1]) ||
            e->kid[0]->type.rank != 1)
            continue;
        bool end = depends_on_data_only(t->a, e->kid[0], &culprit);
        for (int k = 0; k < written.n; k++) end &= written.term[k].atom != e;  // u[g[i]]: looked up, which decides nothing
        if (!end) continue;
        Ast *most = NEW(t->a, Ast);
        *most = (Ast){.kind = AST_CALL, .span = e->span, .name = intern("max"), .nkids = 1, .kid = e->kid, .depth = e->depth};
        if (type_of(t, most)) l.term[i].atom = most;
    }
    bool loops = extent, looked_up = false, data = true;
    for (int i = 0; i < l.n; i++) data &= depends_on_data_only(t->a, l.term[i].atom, &culprit);
    for (int k = 0; k < written.n; k++)
        loops |= written.term[k].atom->kind == AST_NAME && written.term[k].k > 0 && has_index(written.term[k].atom);
    for (int i = 0; i < l.n; i++) {
        if (!has_index(l.term[i].atom)) continue;
        looked_up = true;
        for (int k = 0; k < written.n; k++) loops &= extent || l.term[i].k < 0 || !ast_same(written.term[k].atom, l.term[i].atom);
    }
    if (!data || (looked_up && !loops)) return NULL;
    Ast *end = size_of_sum(t, &l, subscript->span);
    return looked_up ? largest_over(t, end) : end;
}

static Ast *largest(Types *t, Ast *subscript) { return largest_of(t, subscript, false); }

// The subscripts of a left side, x[i][j] as x[i, j].
static bool subscripts(Types *t, const Ast *lhs, List *out)
{
    if (lhs->kind == AST_NAME) return true;
    if (!subscripts(t, lhs->kid[0], out)) return false;
    for (int i = 0; i < out->n; i++) {
        const Ast *s = out->item[i];
        if (s->kind == AST_ALL || s->kind == AST_RANGE) return false;
    }
    for (int i = 1; i < lhs->nkids; i++) list_add(t->a, out, lhs->kid[i]);
    return out->n <= MAX_RANK;
}

// An extent of a distribution's value, in terms of the arguments: rows(mu) is the length of mu.
static Ast *substitute(Types *t, Ast *e, const Distribution *dist, Ast **args)
{
    if (e->kind == AST_CALL && e->nkids == 1 && e->kid[0]->kind == AST_NAME)
        for (int i = 0; i < dist->nparams; i++) {
            int extra = args[i]->type.rank - dist->params[i]->type.rank, k = e->name == intern("cols");
            if (dist->params[i] == e->kid[0]->decl && extra >= 0 && extra + k < args[i]->type.rank) return args[i]->type.dim[extra + k];
        }
    if (e->kind == AST_NAME)
        for (int i = 0; i < dist->nparams; i++)
            if (dist->params[i] == e->decl) return args[i];
    if (!e->nkids) return e;
    Ast *copy = arena_copy(t->a, e, sizeof *e);
    copy->kid = NEW_N(t->a, Ast *, e->nkids);
    for (int i = 0; i < e->nkids; i++) copy->kid[i] = substitute(t, e->kid[i], dist, args);
    copy->state = TYPE_UNKNOWN;
    type_of(t, copy);
    return copy;
}

// Whether a left side is one element: all its subscripts are numbers.
static bool is_element(const List *subs)
{
    for (int i = 0; i < subs->n; i++) {
        const Ast *s = subs->item[i];
        if (s->kind == AST_ALL || s->kind == AST_RANGE) return false;
    }
    return subs->n > 0;
}

// The shape that the right side of a statement gives to its left side: the repeated dimensions of the arguments, then the value's.
// Arguments repeat only for a whole: x ~ normal(m, s) has the shape of m, while in x[i] ~ normal(m, s) a vector m is a mistake.
static bool shape_of_right(Types *t, Stmt *s, const List *subs, Type *out)
{
    if (s->kind == STMT_DEFINE) {
        if (!type_of(t, s->rhs)) return false;
        *out = s->rhs->type;
        if (s->link) out->base = BASE_REAL;
        return true;
    }
    if (!s->dist) return false;
    const Distribution *dist = library_distribution(t->lib, s->dist);
    bool good = true;
    for (int i = 0; i < s->nargs; i++) good = type_of(t, s->args[i]) && good;
    if (!good) return false;
    *out = (Type){.base = dist->discrete ? BASE_INT : BASE_REAL};
    for (int i = 0; i < s->nargs; i++) {
        const Type *arg = &s->args[i]->type;
        int extra = is_element(subs) || (s->weights && !s->more) ? 0 : arg->rank - dist->params[i]->type.rank;
        for (int k = out->rank; k < extra; k++) out->dim[out->rank++] = arg->dim[k];
    }
    if (out->rank + dist->value_rank > MAX_RANK) {
        diag(t->d, s->span, DIAG_E0313, MAX_RANK);
        return false;
    }
    Ast *size = dist->size ? substitute(t, dist->size, dist, s->args) : NULL;
    for (int k = 0; k < dist->value_rank; k++) out->dim[out->rank++] = size;
    return true;
}

// A loop over unknown many: reported where the loop is checked.
static bool has_unknown_range(Types *t, const Ast *e)
{
    const char *culprit;
    if (e->kind == AST_NAME && e->decl && e->decl->kind == DECL_INDEX)
        return !depends_on_data_only(t->a, e->decl->lo, &culprit) || !depends_on_data_only(t->a, e->decl->hi, &culprit);
    for (int i = 0; i < e->nkids; i++)
        if (e->kid[i] && has_unknown_range(t, e->kid[i])) return true;
    return false;
}

// The shape of a variable that follows from one statement; an extent that it does not decide is NULL.
static bool shape_from_site(Types *t, Stmt *s, const List *subs, const Type *right, Type *out)
{
    int taken = 0;
    *out = (Type){.base = right->base};
    for (int i = 0; i < subs->n; i++) {
        Ast *sub = subs->item[i];
        Ast *dim = NULL;
        if (sub->kind == AST_ALL) dim = taken < right->rank ? right->dim[taken++] : NULL;
        else if (sub->kind == AST_RANGE) {
            if (sub->kid[1]) dim = largest(t, sub->kid[1]);
            taken++;
        } else {
            dim = largest(t, sub);
            bool reported = sub->state == TYPE_POISONED || sub->type.base == BASE_REAL || has_unknown_range(t, sub);
            if (!dim && reported) return false;
        }
        out->dim[out->rank++] = dim;
    }
    if (out->rank + (right->rank > taken ? right->rank - taken : 0) > MAX_RANK) {
        diag(t->d, s->span, DIAG_E0313, MAX_RANK);
        return false;
    }
    for (; taken < right->rank; taken++) {
        Ast *dim = right->dim[taken];
        out->dim[out->rank++] = dim && has_index(dim) ? largest_of(t, dim, true) : dim;
    }
    return true;
}

// Both sites are right: the larger extent, where it is known which is larger.
static bool merge(Types *t, Type *into, const Type *other)
{
    if (into->rank != other->rank) return false;
    for (int k = 0; k < into->rank; k++) {
        double excess, number;
        Ast *x = into->dim[k], *y = other->dim[k];
        if (!x || !y) {
            into->dim[k] = x ? x : y;
            continue;
        }
        switch (compare_sizes(t, x, y, &excess)) {
        case SIZES_SAME: break;
        case SIZES_DIFFERENT:
            if (excess == 0) return false;  // two names
            if (excess < 0) into->dim[k] = y;
            break;
        case SIZES_UNDECIDED:
            if (constant_value(x, NULL, &number)) into->dim[k] = y;
            else if (!constant_value(y, NULL, &number)) return false;
            break;
        }
    }
    if (other->base == BASE_REAL) into->base = BASE_REAL;
    return true;
}

static void suggest_type(Diag *m, const Decl *d, BaseType base)
{
    diag_help(m, base == BASE_INT ? "write its type, for example int %s[N]" : "write its type, for example vector[N] %s", d->name);
}

static void undecided(Types *t, Decl *d, Span at)
{
    Diag *m = diag(t->d, at, DIAG_E0307, d->name);
    suggest_type(m, d, d->type.base);
    d->poisoned = true;
}

static bool names_decl(const Ast *e, const Decl *d)
{
    if (e->decl == d) return true;
    for (int i = 0; i < e->nkids; i++)
        if (e->kid[i] && names_decl(e->kid[i], d)) return true;
    return false;
}

// A statement whose right side does not read the variable decides whether the elements are vectors or matrices, as u[1] ~ multi_normal(m,
// S) beside u[t] ~ multi_normal(A * u[t - 1], S). Adds these dimensions to those of the left sides.
static void start_of_series(Types *t, Decl *d, const List *sites, const List *subs)
{
    const Facts *f = facts(t->a, d);
    bool others = false;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < sites->n; i++) {
            Stmt *s = sites->item[i];
            bool of_itself = s->kind == STMT_DEFINE && names_decl(s->rhs, d);
            for (int k = 0; k < s->nargs; k++) of_itself |= names_decl(s->args[k], d);
            others |= of_itself;
            Type right, type;
            if (pass == 0 || !others || of_itself || subs[i].n != d->type.rank) continue;
            if (!shape_of_right(t, s, &subs[i], &right) || right.rank == 0 || !shape_from_site(t, s, &subs[i], &right, &type)) continue;
            if (f->provisional_used || type.rank <= d->type.rank) return;
            for (int k = d->type.rank; k < type.rank; k++) d->type.dim[k] = type.dim[k];
            d->type.rank = type.rank;
            return;
        }
}

enum { MOST_ASKED = 32 };  // definitions that a recursion goes through, at most: more are not looked through

static bool has_whole_values(Types *t, Decl *d, List *asked);

// Whether an expression's values are whole numbers as far as is known before what it reads has a type.
static bool is_whole(Types *t, const Ast *e, List *asked)
{
    switch (e->kind) {
    case AST_INT: return true;
    case AST_NAME: return e->decl && has_whole_values(t, e->decl, asked);
    case AST_INDEX:
    case AST_TRANSPOSE: return is_whole(t, e->kid[0], asked);
    case AST_UNARY: return e->op == OP_NOT || is_whole(t, e->kid[0], asked);
    case AST_BINARY:
        return (e->op == OP_ADD || e->op == OP_SUB || e->op == OP_MUL) && is_whole(t, e->kid[0], asked) && is_whole(t, e->kid[1], asked);
    case AST_COND: return is_whole(t, e->kid[1], asked) && is_whole(t, e->kid[2], asked);
    case AST_REDUCE: return is_whole(t, e->kid[2], asked);
    case AST_REAL:
    case AST_STRING:
    case AST_CALL:
    case AST_RANGE:
    case AST_ALL:
    case AST_ARRAY:
    case AST_FUNCTION: return false;
    }
    return false;
}

// The same of all statements of a variable. One that is being examined already occurs in what it is computed from: if all else is whole,
// so is it.
static bool has_whole_values(Types *t, Decl *d, List *asked)
{
    if (d->has_type || d->kind == DECL_DATA || d->kind == DECL_INDEX) return d->kind == DECL_INDEX || d->type.base == BASE_INT;
    for (int i = 0; i < asked->n; i++)
        if (asked->item[i] == d) return true;
    if (asked->n == MOST_ASKED) return false;
    list_add(t->a, asked, d);
    const List *tildes = &facts(t->a, d)->tildes;
    for (int i = 0; i < tildes->n; i++) {
        const Stmt *s = tildes->item[i];
        if (!s->dist || !library_distribution(t->lib, s->dist)->discrete) return false;
    }
    for (const Stmt *s = d->sites; s; s = s->next_site)
        if (s->kind == STMT_DEFINE && (s->link || !is_whole(t, s->rhs, asked))) return false;
    return true;
}

// Whether all indices of loops in e are subscripts of the left side.
static bool at_indices(const Ast *e, const Ast *lhs)
{
    if (!has_index(e)) return true;
    if (e->kind == AST_NAME)
        for (int i = 1; i < lhs->nkids; i++)
            if (lhs->kid[i]->decl == e->decl) return true;
    bool all = e->kind != AST_NAME && e->kind != AST_REDUCE;
    for (int i = 0; i < e->nkids && all; i++) all = !e->kid[i] || at_indices(e->kid[i], lhs);
    return all;
}

// The statement, if it defines z[j] for an index j and sizes of the right side depend on j.
static Stmt *ragged(Stmt *s)
{
    if (s->kind != STMT_DEFINE || s->lhs->kind != AST_INDEX || s->lhs->kid[0]->kind != AST_NAME) return NULL;
    for (int i = 1; i < s->lhs->nkids; i++) {
        const Ast *sub = s->lhs->kid[i];
        if (sub->kind != AST_NAME || !sub->decl || sub->decl->kind != DECL_INDEX) return NULL;
        for (int k = 1; k < i; k++)
            if (s->lhs->kid[k]->decl == sub->decl) return NULL;
    }
    bool some = false;
    for (int k = 0; k < s->rhs->type.rank; k++) {
        const Ast *dim = s->rhs->type.dim[k];
        if (!dim || !has_index(dim)) continue;
        if (!at_indices(dim, s->lhs)) return NULL;
        some = true;
    }
    return some ? s : NULL;
}

static void infer(Types *t, Decl *d, const List *sites)
{
    Facts *f = facts(t->a, d);
    int widest = 0;
    d->type = (Type){.base = BASE_REAL};
    List *subs = NEW_N(t->a, List, sites->n);
    for (int i = 0; i < sites->n; i++) {  // what follows from the left sides, while the right sides are being typed
        Stmt *s = sites->item[i];
        subs[i] = (List){0};
        if (!subscripts(t, s->lhs, &subs[i])) {
            undecided(t, d, s->lhs->span);
            return;
        }
        if (subs[i].n > widest) widest = subs[i].n;
        if (s->kind == STMT_TILDE && s->dist && library_distribution(t->lib, s->dist)->discrete) d->type.base = BASE_INT;
    }
    for (int i = 0; i < sites->n; i++) {
        Type type;
        if (subs[i].n != widest || !shape_from_site(t, sites->item[i], &subs[i], &(Type){.base = d->type.base}, &type)) continue;
        if (d->type.rank == 0) d->type = type;
        else if (!merge(t, &d->type, &type)) break;
    }
    if (has_whole_values(t, d, &(List){0})) d->type.base = BASE_INT;  // for what is computed from it, and it from that
    start_of_series(t, d, sites, subs);
    Type provisional = d->type, all = {0};
    bool some = false;
    for (int i = 0; i < sites->n; i++) {
        Stmt *s = sites->item[i];
        Type right, type;
        if (!shape_of_right(t, s, &subs[i], &right) || !shape_from_site(t, s, &subs[i], &right, &type)) {
            d->poisoned = true;
            continue;
        }
        if (!some) all = type;
        else if (!merge(t, &all, &type)) {
            Diag *m = diag(t->d, s->lhs->span, DIAG_E0308, d->name, ast_type_text(t->a, &all), ast_type_text(t->a, &type));
            suggest_type(m, d, all.base);
            d->poisoned = true;
            return;
        }
        some = true;
    }
    if (d->poisoned) return;
    for (int k = 0; k < all.rank; k++)
        if (!all.dim[k]) {
            undecided(t, d, d->span);
            return;
        }
    if (f->from_uses && all.rank == 0) {  // a use has decided the size (sizes.c)
        const BaseType base = all.base;
        all = *f->from_uses;
        all.base = base;
    }
    if (d->kind == DECL_DEFINITION && sites->n == 1) d->ragged = ragged(sites->item[0]);
    if (f->provisional_used && provisional.rank != all.rank) {
        undecided(t, d, d->span);
        return;
    }
    d->type = all;
}

// One bound of all elements, or a bound for each: of the shape of the type. Bounds of data are one number each.
static bool bound_fits(Types *t, const Decl *d, const Ast *bound)
{
    const int leading = d->in_loop ? d->in_loop->nkids - 1 : 0;
    if (bound->type.rank == 0 || d->kind == DECL_DATA || bound->type.rank != d->type.rank - leading)
        return need_scalar(t, bound, "a bound");
    for (int k = 0; k < bound->type.rank; k++)
        if (!same_size(t, bound->span, bound->type.dim[k], d->type.dim[leading + k])) return false;
    return true;
}

// Does a statement elsewhere name elements that the type in the loop does not give the variable? Reported.
static bool reaches_beyond(Types *t, Decl *d, Ast *const *extent, int leading)
{
    List sites = facts(t->a, d)->tildes;
    for (Stmt *s = d->sites; s; s = s->next_site) list_add(t->a, &sites, s);
    for (int i = 0; i < sites.n; i++) {
        Stmt *s = sites.item[i];
        List subs = {0};
        if (s->lhs == d->in_loop || !subscripts(t, s->lhs, &subs)) continue;
        for (int k = 0; k < leading && k < subs.n; k++) {
            Ast *sub = subs.item[k],
                *end = sub->kind == AST_ALL     ? NULL
                       : sub->kind == AST_RANGE ? sub->kid[1]
                                                : sub,
                *most = end ? largest(t, end) : NULL;
            double excess;
            if (!most || compare_sizes(t, most, extent[k], &excess) != SIZES_DIFFERENT || excess <= 0) continue;
            Diag *m = diag(t->d, s->lhs->span, DIAG_E0308, d->name, ast_text(t->a, d->in_loop), ast_text(t->a, s->lhs));
            diag_help(m,
                      "the type in the loop ends at %s, and this statement reaches %s; what has neither the type nor a distribution of "
                      "that loop has a name of its own",
                      text_of(t, extent[k]), text_of(t, most));
            d->poisoned = true;
            return true;
        }
    }
    return false;
}

// A type in a loop: the largest values of the subscripts are extents before its own.
static void shape_in_loop(Types *t, Decl *d)
{
    const int leading = d->in_loop->nkids - 1;
    Ast *extent[MAX_RANK];
    for (int k = 0; k < leading; k++) {
        extent[k] = largest(t, d->in_loop->kid[k + 1]);
        if (extent[k]) continue;
        if (d->in_loop->kid[k + 1]->state != TYPE_POISONED && !has_unknown_range(t, d->in_loop->kid[k + 1])) undecided(t, d, d->span);
        d->poisoned = true;
        return;
    }
    if (reaches_beyond(t, d, extent, leading)) return;
    memmove(d->type.dim + leading, d->type.dim, sizeof *d->type.dim * (size_t)d->type.rank);
    memcpy(d->type.dim, extent, sizeof *extent * (size_t)leading);
    d->type.rank += leading;
}

// The expressions of a written type: sizes and bounds.
static void check_written(Types *t, Decl *d)
{
    if (d->in_loop) shape_in_loop(t, d);
    if (d->poisoned) return;
    for (int i = 0; i < d->type.rank; i++)
        if (d->type.dim[i] && !(need_int(t, d->type.dim[i], "a size") && need_data(t, d->type.dim[i], "a size"))) d->poisoned = true;
    Ast *ends[] = {d->lower, d->upper, d->init};
    static const char *const words[] = {"a bound", "a bound", "a default"};
    for (int i = 0; i < 3; i++)
        if (ends[i] && type_of(t, ends[i]) && (i == 2 ? need_scalar(t, ends[i], words[i]) : bound_fits(t, d, ends[i])) &&
            (i == 2 || d->kind == DECL_DATA))
            need_data(t, ends[i], words[i]);
    if (d->init && d->init->state == TYPE_KNOWN && d->type.base == BASE_INT && d->init->type.base != BASE_INT)
        diag(t->d, d->init->span, DIAG_E0310, "a default");
    double lo, hi;
    if (d->lower && d->upper && constant_value(d->lower, NULL, &lo) && constant_value(d->upper, NULL, &hi) && lo >= hi &&
        !(lo == hi && d->type.base == BASE_INT))
        diag(t->d, span_join(d->lower->span, d->upper->span), DIAG_E0409, text_of(t, d->lower), text_of(t, d->upper));
}

static void shape(Types *t, Decl *d)
{
    Facts *f = facts(t->a, d);
    if (f->shape == SHAPE_KNOWN) return;
    if (f->shape == SHAPE_ASKED) {
        f->provisional_used = true;
        return;
    }
    f->shape = SHAPE_ASKED;
    if (d->has_type || d->kind == DECL_DATA) {
        f->shape = SHAPE_KNOWN;
        check_written(t, d);
    } else if (d->kind == DECL_VARIABLE) {
        List all = {0};
        for (int i = 0; i < f->tildes.n; i++) list_add(t->a, &all, f->tildes.item[i]);
        for (Stmt *s = d->sites; s; s = s->next_site) list_add(t->a, &all, s);  // some elements are computed
        infer(t, d, &all);
    } else if (d->kind == DECL_DEFINITION) {
        List sites = {0};
        for (Stmt *s = d->sites; s; s = s->next_site) list_add(t->a, &sites, s);
        infer(t, d, &sites);
    }
    f->shape = SHAPE_KNOWN;
}

// ---- statements ----

static const char *support_text(const Distribution *d)
{
    switch (d->value_rank) {
    case 0: return d->discrete ? "integers" : "reals";
    case 1: return "vectors";
    }
    return "matrices";
}

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
                       arena_printf(t->a, "%g", end), text_of(t, s->args[i]));
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
            const char *left = text_of(t, s->lhs);
            Diag *m = diag(t->d, arg->span, DIAG_E0411,
                           arena_printf(t->a, "sizes do not decide whether `%s` has an element for each component or for each of `%s`",
                                        text_of(t, arg), left));
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

static void check_argument(Types *t, Stmt *s, const Distribution *dist, int i, const Type *value)
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
                if (!same_size(t, arg->span, arg->type.dim[k], value->dim[k])) return;
            if (same_size(t, arg->span, arg->type.dim[extra - 1], w->dim[w->rank - 1])) check_constant(t, s, dist, i);
            return;
        }
    }
    if (extra != 0 && extra != repeated) {
        Diag *m = diag(t->d, arg->span, DIAG_E0402, param->name, dist->name, describe_rank(param->type.rank), describe(t, &arg->type));
        const Decl *undecided = sizes_undecided_in(t->a, t->lib, arg);
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
        if (!same_size(t, arg->span, arg->type.dim[k], value->dim[k])) return;
    // vectors and matrices beside a vector or matrix value have its size, or one of their own that some of them share
    for (int k = extra; k < arg->type.rank && dist->value_rank; k++) {
        const char *own = param->own_size[k - extra];
        for (int j = 0; j < i && own; j++)
            for (int n = 0; n < dist->params[j]->type.rank; n++) {
                const Type *other = &s->args[j]->type;
                if (dist->params[j]->own_size[n] != own || other->rank < dist->params[j]->type.rank) continue;
                if (!same_size(t, arg->span, arg->type.dim[k], other->dim[other->rank - dist->params[j]->type.rank + n])) return;
            }
        if (!own && !same_size(t, arg->span, arg->type.dim[k], value->dim[value->rank - 1])) return;
    }
    check_constant(t, s, dist, i);
}

// An end of a truncation: a scalar, or one for each element of what is drawn.
static bool end_fits(Types *t, const Stmt *s, Ast *end)
{
    if (!type_of(t, end)) return false;
    const Type *value = &s->lhs->type;
    if (!end->type.rank || s->lhs->state != TYPE_KNOWN || end->type.rank != value->rank)
        return need_scalar(t, end, "a bound of a truncation");
    for (int k = 0; k < value->rank; k++)
        if (!same_size(t, end->span, end->type.dim[k], value->dim[k])) return false;
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
                good = need_int(t, ends[i], "a bound of truncated integers");
        }
    if (dist->value_rank) {
        Span at = s->lower ? s->lower->span : s->upper ? s->upper->span : s->span;
        diag(t->d, at, DIAG_E0404, dist->name, "not on the real line");
        return;
    }
    double lo, hi;
    if (good && ends[0] && ends[1] && constant_value(ends[0], NULL, &lo) && constant_value(ends[1], NULL, &hi) &&
        (lo > hi || (lo == hi && !dist->discrete)))
        diag(t->d, span_join(ends[0]->span, ends[1]->span), DIAG_E0409, text_of(t, ends[0]), text_of(t, ends[1]));
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
    if (!type_of(t, s->weights)) return;
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
        if (!same_size(t, s->weights->span, w->dim[k], s->lhs->type.dim[k])) return;
    if (w->rank > 0 && !numbers && n > 1) same_size(t, s->weights->span, w->dim[w->rank - 1], size_int(t, s->weights->span, n));
    if (s->truncated)
        diag(t->d, s->lower ? s->lower->span : s->upper ? s->upper->span : s->span, DIAG_E0404, "mixture", "of several distributions");
}

// y[i] ~ weibull(a, b) C[lo[i], hi[i]]: y is data.
static void check_censored(Types *t, Stmt *s)
{
    const Ast *root = place_root(s->lhs);
    if (!root || !s->decl || s->decl->kind != DECL_DATA || s->block == BLOCK_PREDICT) {
        Diag *m = diag(t->d, s->lhs->span, DIAG_E0418, text_of(t, s->lhs), root ? "none" : "an expression");
        diag_help(m, "an unknown is truncated, T[lower, upper]");
        return;
    }
    if (s->lower) need_data(t, s->lower, "an end of what is censored");
    if (s->upper) need_data(t, s->upper, "an end of what is censored");
}

static void check_tilde(Types *t, Stmt *s)
{
    if (s->censored) check_censored(t, s);
    bool good = type_of(t, s->lhs);
    if (s->weights) check_mixture(t, s);
    for (int i = 0; i < s->nargs; i++) good = type_of(t, s->args[i]) && good;
    if (!s->dist) return;
    const Distribution *dist = library_distribution(t->lib, s->dist);
    const int errors = diags_errors(t->d);
    if (s->truncated && !s->weights) check_truncation(t, s, dist);
    if (!good) return;
    if (errors == diags_errors(t->d)) check_interval(t, s, dist);
    const Type *value = &s->lhs->type;
    Decl *d = s->decl;
    if (value->rank < dist->value_rank) {
        diag(t->d, s->lhs->span, DIAG_E0408, dist->name, support_text(dist), describe(t, value));
        return;
    }
    if (dist->size) {
        Ast *size = substitute(t, dist->size, dist, s->args);
        for (int k = value->rank - dist->value_rank; k < value->rank; k++)
            if (!same_size(t, s->lhs->span, value->dim[k], size)) return;
    }
    for (int i = 0; i < s->nargs; i++) check_argument(t, s, dist, i, value);
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
    if (hi && !has_index(hi) && type_of(t, hi) && compare_sizes(t, hi, fixed, &excess) == SIZES_DIFFERENT && excess < 0) return true;
    return lo && !has_index(lo) && type_of(t, lo) && compare_sizes(t, lo, fixed, &excess) == SIZES_DIFFERENT && excess > 0;
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
            if (fixed->kind == AST_ALL || fixed->kind == AST_RANGE || has_index(fixed) || !type_of(t, fixed)) continue;
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

    bool left = type_of(t, s->lhs), right = type_of(t, s->rhs);
    if (!left || !right) return;
    if (s->block == BLOCK_LET && !need_data(t, s->rhs, "a definition in a let block")) return;
    const Type *x = &s->lhs->type, *y = &s->rhs->type;
    if (x->rank != y->rank) {
        diag(t->d, s->rhs->span, DIAG_E0312, s->decl ? s->decl->name : "this", describe(t, x), describe(t, y));
        return;
    }
    for (int k = 0; k < x->rank; k++)
        if (!same_size(t, s->rhs->span, x->dim[k], y->dim[k])) return;
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
            if (type_of(t, s->rhs) && s->rhs->type.rank) {
                Diag *m = diag(t->d, s->rhs->span, DIAG_E0309, "what is added to target", describe(t, &s->rhs->type));
                diag_help(m, "target += sum(...);");
            }
            break;
        case STMT_FOR:
            if (need_int(t, s->index->lo, "an end of a range")) need_data(t, s->index->lo, "the range of a loop");
            if (need_int(t, s->index->hi, "an end of a range")) need_data(t, s->index->hi, "the range of a loop");
            check_stmts(t, s->body);
            break;
        case STMT_IF:
            if (type_of(t, s->cond) && need_scalar(t, s->cond, "a condition")) need_data(t, s->cond, "a condition");
            check_stmts(t, s->body);
            break;
        case STMT_BLOCK: check_stmts(t, s->body); break;
        }
        if (t->failing && !s->body && diags_errors(t->d) > before) list_add(t->a, t->failing, s);
    }
}

void types_model(Types *t, Model *m)
{
    for (int i = 0; i < m->ndecls; i++) shape(t, m->decls[i]);
    for (const Block *b = m->blocks; b; b = b->next) check_stmts(t, b->body);
    for (const Request *r = m->requests; r; r = r->next)
        for (int i = 0; i < r->nsettings; i++) {
            Ast *value = r->setting[i].value;
            if (r->setting[i].id != SETTING_METRIC && type_of(t, value) && need_scalar(t, value, "a setting"))
                need_data(t, value, "a setting");
        }
}

bool front_types(Arena *a, Model *m, const Library *lib, Diags *d)
{
    int errors = diags_errors(d);
    sizes_from_uses(a, m, lib);
    Types t = {.a = a, .d = d, .lib = lib};
    types_model(&t, m);
    if (diags_errors(d) == errors) sizes_check(a, m, lib, d);
    return diags_errors(d) == errors;
}

// ---- for sizes.c ----

bool types_constant(const Ast *e, const Distribution *d, const Stmt *s, double *value)
{
    const Binding b = {d, s->args};
    return constant_value(e, &b, value);
}
bool types_of(Types *t, Ast *e) { return type_of(t, e); }
bool types_has_index(const Ast *e) { return has_index(e); }
bool types_merge(Types *t, Type *into, const Type *other) { return merge(t, into, other); }

bool types_same(Types *t, const Type *x, const Type *y)
{
    double excess;
    if (x->rank != y->rank) return false;
    for (int k = 0; k < x->rank; k++)
        if (compare_sizes(t, x->dim[k], y->dim[k], &excess) != SIZES_SAME) return false;
    return true;
}

static Ast *upper_end(Types *t, Ast *e, int through);

// The largest value of what has this name: its declared bound, the end of its distribution's support, what its only definition computes.
static Ast *upper_end_of(Types *t, Ast *e, const Decl *d, int through)
{
    const char *culprit;
    const List *tildes = d->front ? &((const Facts *)d->front)->tildes : NULL;
    if (d->upper) return !has_index(d->upper) && depends_on_data_only(t->a, d->upper, &culprit) && type_of(t, d->upper) ? d->upper : NULL;
    if (d->kind == DECL_DEFINITION && d->sites && !d->sites->next_site && !d->sites->link && through > 0) {
        Ast *end = upper_end(t, d->sites->rhs, through - 1);
        if (end) return end;
    }
    if (d->kind == DECL_VARIABLE && tildes->n == 1) {
        const Stmt *s = tildes->item[0];
        const Distribution *dist = s->dist && !s->weights ? library_distribution(t->lib, s->dist) : NULL;
        if (!dist || !dist->discrete || dist->value_rank || !dist->upper) return NULL;
        for (int i = 0; i < s->nargs; i++)
            if (!type_of(t, s->args[i])) return NULL;
        Ast *end = substitute(t, dist->upper, dist, s->args);
        return end && !has_index(end) && type_of(t, end) && end->type.rank == 0 && end->type.base == BASE_INT &&
                       depends_on_data_only(t->a, end, &culprit)
                   ? end
                   : NULL;
    }
    return e->kind == AST_NAME && e->type.rank == 0 && depends_on_data_only(t->a, e, &culprit) ? e : NULL;
}

static Ast *upper_end(Types *t, Ast *e, int through)
{
    if (!type_of(t, e) || e->type.base != BASE_INT) return NULL;
    Ast *x, *y;
    double number;
    switch (e->kind) {
    case AST_INT: return e;
    case AST_NAME: return e->decl->kind == DECL_INDEX ? largest(t, e) : upper_end_of(t, e, e->decl, through);
    case AST_INDEX: return e->kid[0]->kind == AST_NAME ? upper_end_of(t, e, e->kid[0]->decl, through) : NULL;
    case AST_BINARY:
        if (e->op != OP_ADD && e->op != OP_SUB) return NULL;
        x = upper_end(t, e->kid[0], through);
        if (e->op == OP_ADD) return x && (y = upper_end(t, e->kid[1], through)) ? extent_sum(t, x, y) : NULL;
        return x && constant_value(e->kid[1], NULL, &number) ? extent_plus(t, x, -number) : NULL;
    case AST_COND: {
        Type of = {.rank = 1, .dim = {upper_end(t, e->kid[1], through)}}, other = {.rank = 1, .dim = {upper_end(t, e->kid[2], through)}};
        return of.dim[0] && other.dim[0] && merge(t, &of, &other) ? of.dim[0] : NULL;
    }
    case AST_REAL:
    case AST_STRING:
    case AST_RANGE:
    case AST_ALL:
    case AST_CALL:
    case AST_UNARY:
    case AST_TRANSPOSE:
    case AST_REDUCE:
    case AST_ARRAY:
    case AST_FUNCTION: return NULL;
    }
    return NULL;
}

Ast *types_largest(Types *t, Ast *subscript)
{
    Ast *end = upper_end(t, subscript, MOST_ASKED);
    return end ? end : largest(t, subscript);
}

// ---- the library ----

static void type_body(Types *t, Ast *e, int rank, const char *what)
{
    if (!e || !type_of(t, e) || e->type.rank == rank) return;
    diag(t->d, e->span, DIAG_E0309, what, describe(t, &e->type));
}

static void type_routine(Types *t, Ast *e)
{
    if (!e || e->kind != AST_CALL) return;
    for (int i = 0; i < e->nkids; i++) type_of(t, e->kid[i]);
    known(e, (Type){.base = BASE_REAL});
}

void types_library(Arena *a, Library *lib, Diags *d)
{
    Types t = {.a = a, .d = d, .lib = lib};
    for (Distribution *p = lib->distributions; p; p = p->next) {
        for (int i = 0; i < p->nparams; i++) shape(&t, p->params[i]);
        type_body(&t, p->lower, 0, "an end of the support");
        type_body(&t, p->upper, 0, "an end of the support");
        if (p->size) need_int(&t, p->size, "a size");
        type_body(&t, p->log_density, 0, "log_density");
        type_body(&t, p->cdf, 0, "log_cdf");
        type_body(&t, p->ccdf, 0, "log_ccdf");
        if (p->mean) type_of(&t, p->mean);
        if (p->mode) type_of(&t, p->mode);
        if (p->covariance_root) type_of(&t, p->covariance_root);
        if (p->precision_root) type_of(&t, p->precision_root);
        type_body(&t, p->location, 0, "a location");
        type_body(&t, p->scale, 0, "a scale");
        type_body(&t, p->near_zero, 0, "near_zero");
        type_body(&t, p->far_end, 0, "far_end");
        type_body(&t, p->require, 0, "requires");
        type_body(&t, p->edge_from, 1, "edge_from");
        type_body(&t, p->edge_to, 1, "edge_to");
        type_body(&t, p->parts, 0, "parts");
        for (Natural *n = p->natural; n; n = n->next)
            if (type_of(&t, n->statistic)) n->decl->type.rank = n->statistic->type.rank;  // of log_determinant(x), 0
        type_routine(&t, p->sample);
        type_routine(&t, p->sample_truncated);
        type_routine(&t, p->base);
        type_routine(&t, p->draw);
        type_routine(&t, p->draw_truncated);
        type_routine(&t, p->expectations);
        type_routine(&t, p->expectations_truncated);
        for (Natural *n = p->law ? p->law->parameter : NULL; n; n = n->next)
            if (type_of(&t, n->statistic)) n->decl->type = n->statistic->type;
        for (int i = 0; p->law && i < p->law->nargs; i++) type_of(&t, p->law->args[i]);
        if (p->law) type_of(&t, p->law->of);
        if (p->law) type_routine(&t, p->draw_law);
        if (p->law) type_routine(&t, p->draw_law_truncated);
    }
}
