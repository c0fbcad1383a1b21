// extents.c -- extents as sums, c + k1*a1 + k2*a2 + ..., of atoms that are not taken apart; and numbers that the text says.
//
// Needs: trees.     Gives: expressions of extents, sums, numbers.     Keeps: the tree.
#include <math.h>
#include "types.h"

// ---- new nodes: extents ----

Ast *size_node(Types *t, AstKind kind, Span at, int nkids, Ast *x, Ast *y)
{
    Ast *e = NEW(t->a, Ast);
    *e = (Ast){.kind = kind, .span = at, .nkids = nkids, .type = {.base = BASE_INT}, .state = TYPE_KNOWN, .depth = 1};
    e->kid = NEW_N(t->a, Ast *, nkids);
    if (nkids > 0) {
        e->kid[0] = x;
        if (x->depth >= e->depth) e->depth = x->depth + 1;
    }
    if (nkids > 1) {
        e->kid[1] = y;
        if (y->depth >= e->depth) e->depth = y->depth + 1;
    }
    if (e->depth <= MAX_DEPTH) return e;
    if (!t->too_deep) diag(t->d, at, DIAG_E0104, MAX_DEPTH);
    t->too_deep = true;
    *e = (Ast){.kind = AST_INT, .span = at, .number = 1, .type = {.base = BASE_INT}, .state = TYPE_KNOWN, .depth = 1};
    return e;
}

Ast *size_int(Types *t, Span at, double value)
{
    Ast *e = size_node(t, AST_INT, at, 0, NULL, NULL);
    e->number = value;
    return e;
}

Ast *size_op(Types *t, Span at, Op op, Ast *x, Ast *y)
{
    Ast *e = size_node(t, AST_BINARY, at, 2, x, y);
    e->op = op;  // of no use if it came out too deep
    return e;
}

// ---- extents as sums ----

void add_size(Types *t, SizeSum *l, Ast *atom, double k)
{
    for (int i = 0; i < l->n; i++)
        if (ast_same(l->term[i].atom, atom)) {
            l->term[i].k += k;
            if (l->term[i].k == 0) l->term[i] = l->term[--l->n];
            return;
        }
    if (k == 0) return;
    if (!l->term) l->term = NEW_N(t->a, SizeTerm, MOST_SIZES + 1);
    if (l->n <= MOST_SIZES) l->term[l->n++] = (SizeTerm){atom, k};
}

void add_sizes(Types *t, SizeSum *to, const SizeSum *l, double k)
{
    to->c += k * l->c;
    for (int i = 0; i < l->n; i++) add_size(t, to, l->term[i].atom, k * l->term[i].k);
}

Ast *size_of_sum(Types *t, const SizeSum *l, Span at)
{
    Ast *e = NULL;
    for (int pass = 0; pass < 2; pass++)  // what is added first, then what is taken away
        for (int i = 0; i < l->n; i++) {
            double k = l->term[i].k, size = fabs(k);
            if ((k < 0) != (pass == 1)) continue;
            Ast *x = l->term[i].atom;
            if (size != 1) x = size_op(t, at, OP_MUL, size_int(t, at, size), x);
            if (!e && k < 0) e = size_int(t, at, l->c);
            e = e ? size_op(t, at, k < 0 ? OP_SUB : OP_ADD, e, x) : x;
        }
    if (!e) return size_int(t, at, l->c);
    bool used = e->kind == AST_BINARY && l->n && l->term[0].k < 0 && e->depth > 1;
    for (int i = 0; i < l->n; i++) used &= l->term[i].k < 0;
    if (l->c == 0 || used) return e;
    return size_op(t, at, l->c < 0 ? OP_SUB : OP_ADD, e, size_int(t, at, fabs(l->c)));
}

// ---- constants ----

bool constant_value(const Ast *e, const Binding *b, double *v)
{
    double x, y;
    switch (e->kind) {
    case AST_INT:
    case AST_REAL: *v = e->number; return true;
    case AST_NAME:
        if (!b) return false;
        for (int i = 0; i < b->dist->nparams; i++)
            if (b->dist->params[i] == e->decl) return constant_value(b->args[i], NULL, v);
        return false;
    case AST_UNARY:
        if (!constant_value(e->kid[0], b, &x)) return false;
        *v = e->op == OP_NEG ? -x : x == 0;
        return true;
    case AST_BINARY:
        if (!constant_value(e->kid[0], b, &x) || !constant_value(e->kid[1], b, &y)) return false;
        if (e->op == OP_ADD) *v = x + y;
        else if (e->op == OP_SUB) *v = x - y;
        else if (e->op == OP_MUL) *v = x * y;
        else if (e->op == OP_DIV) *v = x / y;
        else if (e->op == OP_POW) *v = pow(x, y);
        else if (e->op == OP_LE) *v = x <= y;
        else if (e->op == OP_GE) *v = x >= y;
        else if (e->op == OP_AND) *v = x != 0 && y != 0;
        else return false;
        return !isnan(*v);
    case AST_CALL:
        if (e->name == intern("pi")) {
            *v = acos(-1);
            return true;
        }
        if (e->name == intern("e")) {
            *v = exp(1);
            return true;
        }
        if (e->name == intern("infinity")) {
            *v = INFINITY;
            return true;
        }
        if (e->name == intern("negative_infinity")) {
            *v = -INFINITY;
            return true;
        }
        if (e->nkids != 1 || !constant_value(e->kid[0], b, &x)) return false;
        if (e->name == intern("sqrt")) *v = sqrt(x);
        else if (e->name == intern("exp")) *v = exp(x);
        else if (e->name == intern("log")) *v = log(x);
        else if (e->name == intern("square")) *v = x * x;
        else return false;
        return !isnan(*v);
    case AST_STRING:
    case AST_INDEX:
    case AST_RANGE:
    case AST_ALL:
    case AST_TRANSPOSE:
    case AST_COND:
    case AST_REDUCE:
    case AST_ARRAY:
    case AST_FUNCTION: return false;
    }
    return false;
}

bool types_constant(const Ast *e, const Distribution *d, const Stmt *s, double *value)
{
    const Binding b = {d, s->args};
    return constant_value(e, &b, value);
}

// ---- loop indices within an expression ----

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

Decl *types_index(const Ast *e) { return index_in(e, NULL); }
bool types_has_index(const Ast *e) { return types_index(e) != NULL; }
