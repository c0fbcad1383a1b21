// locked.c -- counts that a label forces to 0, and that fix the label while they are not 0.
//
//   before   z[i] ~ bernoulli(psi);   K[i] ~ poisson(z[i] * l);
//   after    z[i] ~ bernoulli(psi);   K_free[i] ~ poisson(1 * l);   K[i] = z[i] == 0 ? 0 : K_free[i];
//
// z[i] = 0 forces K[i] = 0, and K[i] > 0 forces z[i] = 1: drawn one after the other, the two change only where K[i] happens to be 0, which
// is rare for a large rate. Rewritten so, K_free has its distribution whatever z is: while z is 0 it is what K would be otherwise (Carlin
// and Chib 1995). The law of all else is the same, and z can change freely. lp__ has the density of K_free.
//
// Conditions: the count has one statement, for one element, without a type, a truncation or a request. The label's only statement is one of
// 0 and 1. One element of the label occurs in the arguments. Where it is 0 the density of the count's distribution is 0 for all values but
// 0, as far as that follows from the arguments that are known then.
//
// Counts of at most FEW + 1 values are left as they are: they are summed out of the law of the label (graph/rewrite/trees.c), which is
// better.
//
// Needs: parsed.     Gives: statements.     Keeps: all others.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"

enum { FEW = 9 };  // as MOST_DEARER of graph/rewrite/trees.c

typedef struct Named {  // a statement that declares a name, or is about it
    const char *name;
    Stmt *stmt;
} Named;

typedef struct Locked {
    Arena *a;
    Diags *d;
    Model *m;
    const Library *lib;
    List stmts;  // all but blocks, loops and choices
    Named *named;
    int nnamed;  // by name
} Locked;

static void list_stmts(Locked *l, Stmt *s)
{
    for (; s; s = s->next) {
        if (s->body) list_stmts(l, s->body);
        else list_add(l->a, &l->stmts, s);
    }
}

static bool is_about(const Stmt *s, const char *name)
{
    Ast *root = s->lhs ? place_root(s->lhs) : NULL;
    return root && root->name == name;
}

static bool is_declared(const Stmt *s, const char *name) { return s->kind == STMT_DECLARE && s->decl && s->decl->name == name; }

static int by_name(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const Named *)a)->name, y = (uintptr_t)((const Named *)b)->name;
    return x < y ? -1 : x > y;
}

static void name_stmts(Locked *l)
{
    l->named = NEW_N(l->a, Named, 2 * l->stmts.n + 1);
    for (int i = 0; i < l->stmts.n; i++) {
        Stmt *s = l->stmts.item[i];
        Ast *root = s->lhs ? place_root(s->lhs) : NULL;
        if (root) l->named[l->nnamed++] = (Named){root->name, s};
        if (s->kind == STMT_DECLARE && s->decl) l->named[l->nnamed++] = (Named){s->decl->name, s};
    }
    qsort(l->named, (size_t)l->nnamed, sizeof *l->named, by_name);
}

// The first of the statements of a name, which follow each other.
static const Named *first_named(const Locked *l, const char *name)
{
    const Named *at = l->nnamed ? bsearch(&(Named){.name = name}, l->named, (size_t)l->nnamed, sizeof *l->named, by_name) : NULL;
    while (at && at > l->named && at[-1].name == name) at--;
    return at;
}

// The only statement about a name, which draws it; NULL: there are others, or a written type.
static Stmt *only_draw(const Locked *l, const char *name)
{
    Stmt *only = NULL;
    for (const Named *n = first_named(l, name); n && n < l->named + l->nnamed && n->name == name; n++) {
        Stmt *s = n->stmt;
        if (is_declared(s, name)) return NULL;
        if (!is_about(s, name)) continue;
        if (only || s->kind != STMT_TILDE || !s->dist || s->weights || s->truncated || s->decl ||
            (s->block != BLOCK_PRIOR && s->block != BLOCK_LATENT && s->block != BLOCK_LIKELIHOOD))
            return NULL;
        only = s;
    }
    for (const Request *r = l->m->requests; r; r = r->next)
        for (int i = 0; i < r->nnames; i++)
            if (r->names[i] == name) return NULL;
    return only;
}

static bool is_element(const Ast *e)
{
    if (e->kind == AST_NAME) return true;
    if (e->kind != AST_INDEX || e->kid[0]->kind != AST_NAME) return false;
    for (int i = 1; i < e->nkids; i++)
        if (e->kid[i]->kind == AST_ALL || e->kid[i]->kind == AST_RANGE) return false;
    return true;
}

// ---- values where the label is 0 ----

typedef struct Given {
    const Distribution *dist;
    const double *argument;
    double x;
    const Ast *label;
    double is;
} Given;

static bool same_text(const Ast *a, const Ast *b)  // before names are resolved
{
    if (a->kind != b->kind || a->nkids != b->nkids || a->name != b->name || a->number != b->number || a->op != b->op) return false;
    for (int i = 0; i < a->nkids; i++)
        if (!a->kid[i] != !b->kid[i] || (a->kid[i] && !same_text(a->kid[i], b->kid[i]))) return false;
    return true;
}

static double truth(double x, double y, bool holds) { return isnan(x) || isnan(y) ? NAN : holds; }

static double value_of(const Ast *e, const Given *at);

static double value_of_call(const Ast *e, const Given *at)
{
    const double x = e->nkids > 0 ? value_of(e->kid[0], at) : NAN, y = e->nkids > 1 ? value_of(e->kid[1], at) : NAN;
    if (e->nkids == 1 && e->name == intern("log")) return log(x);
    if (e->nkids == 1 && e->name == intern("log1m")) return log1p(-x);
    if (e->nkids == 1 && e->name == intern("lgamma")) return lgamma(x);
    if (e->nkids == 2 && e->name == intern("lchoose")) return x < y ? -INFINITY : lgamma(x + 1) - lgamma(y + 1) - lgamma(x - y + 1);
    return NAN;
}

// A number, or NAN: what is not known decides. What is not known is finite.
static double value_of(const Ast *e, const Given *at)
{
    double x, y;
    if (at->label && same_text(e, at->label)) return at->is;
    switch (e->kind) {
    case AST_INT:
    case AST_REAL: return e->number;
    case AST_NAME:
        if (!at->dist) return NAN;
        if (e->decl == at->dist->value) return at->x;
        for (int i = 0; i < at->dist->nparams; i++)
            if (at->dist->params[i] == e->decl) return at->argument[i];
        return NAN;
    case AST_UNARY: x = value_of(e->kid[0], at); return e->op == OP_NEG ? -x : truth(x, x, x == 0);
    case AST_COND: x = value_of(e->kid[0], at); return isnan(x) ? NAN : value_of(e->kid[x != 0 ? 1 : 2], at);
    case AST_CALL: return value_of_call(e, at);
    case AST_BINARY: break;
    case AST_STRING:
    case AST_INDEX:
    case AST_RANGE:
    case AST_ALL:
    case AST_TRANSPOSE:
    case AST_REDUCE:
    case AST_ARRAY:
    case AST_FUNCTION: return NAN;
    }
    x = value_of(e->kid[0], at);
    y = value_of(e->kid[1], at);
    switch (e->op) {
    case OP_ADD: return x == -INFINITY || y == -INFINITY ? -INFINITY : x + y;
    case OP_SUB: return x == -INFINITY ? x : x - y;
    case OP_MUL:
    case OP_ELT_MUL: return x == 0 || y == 0 ? 0 : x * y;  // 0 log 0 = 0
    case OP_DIV: return x == 0 ? 0 : x / y;
    case OP_EQ: return truth(x, y, x == y);
    case OP_NE: return truth(x, y, x != y);
    case OP_LT: return truth(x, y, x < y);
    case OP_LE: return truth(x, y, x <= y);
    case OP_GT: return truth(x, y, x > y);
    case OP_GE: return truth(x, y, x >= y);
    case OP_POW:
    case OP_ELT_DIV:
    case OP_AND:
    case OP_OR:
    case OP_MOD:
    case OP_NEG:
    case OP_NOT: break;
    }
    return NAN;
}

// Is the count 0 for certain where the label is `is`?
static bool is_forced(const Locked *l, const Stmt *count, const Ast *label, double is)
{
    const Distribution *dist = library_distribution(l->lib, count->dist);
    double argument[MAX_RANK];
    if (!dist || !dist->discrete || dist->value_rank || !dist->lower || !dist->log_density || dist->nparams != count->nargs ||
        count->nargs > MAX_RANK)
        return false;
    const Given first = {.label = label, .is = is};
    for (int i = 0; i < count->nargs; i++) argument[i] = value_of(count->args[i], &first);
    Given at = {.dist = dist, .argument = argument};
    if (value_of(dist->lower, &at) != 0) return false;
    const Given freed = {.label = label, .is = 1 - is};
    double other[MAX_RANK];
    for (int i = 0; i < count->nargs; i++) other[i] = value_of(count->args[i], &freed);
    if (dist->upper && value_of(dist->upper, &(Given){.dist = dist, .argument = other}) <= FEW) return false;
    static const double tried[] = {1, 2, 3, 10, 1000};
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        at.x = tried[i];
        const double end = dist->upper ? value_of(dist->upper, &at) : NAN;
        if (!(end < at.x) && value_of(dist->log_density, &at) != -INFINITY) return false;
    }
    at.x = 0;
    return value_of(dist->log_density, &at) != -INFINITY;
}

// ---- which label ----

static bool is_label(const Locked *l, const char *name)
{
    const Stmt *s = only_draw(l, name);
    const Distribution *d = s && is_element(s->lhs) ? library_distribution(l->lib, s->dist) : NULL;
    return d && d->discrete && d->lower && d->lower->kind == AST_INT && d->lower->number == 0 && d->upper && d->upper->kind == AST_INT &&
           d->upper->number == 1;
}

// The elements of labels that occur in e.
static void find_labels(const Locked *l, Ast *e, List *labels)
{
    const bool element = is_element(e);
    if (element && is_label(l, place_root(e)->name)) {
        for (int i = 0; i < labels->n; i++)
            if (same_text(labels->item[i], e)) return;
        list_add(l->a, labels, e);
        return;
    }
    for (int i = 0; i < e->nkids; i++)
        if (e->kid[i]) find_labels(l, e->kid[i], labels);
}

// ---- the statements that take its place ----

static Ast *node(const Locked *l, AstKind kind, Span at, int nkids, Ast *x, Ast *y, Ast *z)
{
    Ast *e = NEW(l->a, Ast), *kid[] = {x, y, z};
    *e = (Ast){.kind = kind, .span = at, .nkids = nkids, .depth = 1};
    e->kid = NEW_N(l->a, Ast *, nkids + 1);
    for (int i = 0; i < nkids; i++) {
        e->kid[i] = kid[i];
        if (kid[i]->depth >= e->depth) e->depth = kid[i]->depth + 1;
    }
    return e;
}

static Ast *integer(const Locked *l, Span at, double value)
{
    Ast *e = node(l, AST_INT, at, 0, NULL, NULL, NULL);
    e->number = value;
    return e;
}

// A copy, with another expression in the place of `from`, or another name in that of the root.
static Ast *copy(const Locked *l, const Ast *e, const Ast *from, double to, const char *name, const char *as)
{
    if (from && same_text(e, from)) return integer(l, e->span, to);
    Ast *c = arena_copy(l->a, e, sizeof *e);
    if (name && c->kind == AST_NAME && c->name == name) c->name = as;
    c->kid = NEW_N(l->a, Ast *, e->nkids + 1);
    for (int i = 0; i < e->nkids; i++) c->kid[i] = e->kid[i] ? copy(l, e->kid[i], from, to, name, as) : NULL;
    return c;
}

static bool names(const Ast *e, const char *name)
{
    if (e->name == name) return true;
    for (int i = 0; i < e->nkids; i++)
        if (e->kid[i] && names(e->kid[i], name)) return true;
    return false;
}

static void set_free(const Locked *l, Stmt *s, const Ast *label, double forced)
{
    const char *name = place_root(s->lhs)->name, *other = intern(arena_printf(l->a, "%s_free", name));
    for (int i = 0; i < l->stmts.n; i++) {  // a name that the model has
        const Stmt *t = l->stmts.item[i];
        if (is_about(t, other) || is_declared(t, other)) return;
    }
    Ast *equal = node(l, AST_BINARY, label->span, 2, copy(l, label, NULL, 0, NULL, NULL), integer(l, label->span, forced), NULL);
    equal->op = OP_EQ;
    Stmt *define = arena_copy(l->a, s, sizeof *s);
    *define = (Stmt){
        .kind = STMT_DEFINE, .span = s->span, .lhs = s->lhs, .block = s->block, .depth = s->depth, .outer = s->outer, .next = s->next};
    define->rhs = node(l, AST_COND, s->span, 3, equal, integer(l, s->span, 0), copy(l, s->lhs, NULL, 0, name, other));
    Diag *m = diag(l->d, s->lhs->span, DIAG_P0609, name, ast_text(l->a, label), forced);
    diag_because(m, "drawn separately, neither could change: it is written as %s, so that `%s` can", ast_text(l->a, define->rhs),
                 place_root((Ast *)label)->name);
    s->lhs = copy(l, s->lhs, NULL, 0, name, other);
    s->stands_for = name;
    Ast **args = NEW_N(l->a, Ast *, s->nargs);
    for (int i = 0; i < s->nargs; i++) args[i] = copy(l, s->args[i], label, 1 - forced, NULL, NULL);
    s->args = args;
    if (!s->outer || s->outer->kind == STMT_BLOCK) {
        s->next = define;
        return;
    }
    Stmt *draw = arena_copy(l->a, s, sizeof *s);  // the only statement of a loop or a choice: it becomes a group of two
    draw->next = define;
    define->next = NULL;
    *s = (Stmt){
        .kind = STMT_BLOCK, .span = s->span, .block = s->block, .outer = s->outer, .next = s->next, .body = draw, .depth = s->depth + 1};
    draw->outer = define->outer = s;
}

void front_free_counts(Arena *a, Model *m, const Library *lib, Diags *d)
{
    Locked l = {.a = a, .d = d, .m = m, .lib = lib};
    for (Block *b = m->blocks; b; b = b->next) list_stmts(&l, b->body);
    name_stmts(&l);
    for (int i = 0; i < l.stmts.n; i++) {
        Stmt *s = l.stmts.item[i];
        List labels = {0};
        if (s->kind != STMT_TILDE || !s->dist || s->more || !s->lhs || !is_element(s->lhs)) continue;
        const char *name = place_root(s->lhs)->name;
        for (int k = 0; k < s->nargs; k++) find_labels(&l, s->args[k], &labels);
        if (labels.n != 1 || only_draw(&l, name) != s || names(labels.item[0], name) || place_root(labels.item[0])->name == name) continue;
        for (int forced = 0; forced < 2; forced++)
            if (is_forced(&l, s, labels.item[0], forced) && !is_forced(&l, s, labels.item[0], 1 - forced)) {
                set_free(&l, s, labels.item[0], forced);
                break;
            }
    }
}
