// local.c -- names that are declared and defined within a loop, without a subscript: each iteration has its own.
//
//   before   for (i in 1:N) { real mu = a + b*x[i]; y[i] ~ normal(mu, s); }
//   after    for (i in 1:N) { real mu[i] = a + b*x[i]; y[i] ~ normal(mu[i], s); }
//
// The subscripts are the indices of the loops around it, counted from 1 where a loop is seen to begin below: mu[i + K + 1] of -K:K. An
// index that goes along rows, as ragged.c makes it, names the row as well. The name holds from its declaration to the end of the braces
// around it; elsewhere it is refused. `real mu;` counts if `mu = ...;` follows.
//
// Needs: parsed, rows flat.     Gives: declarations with subscripts, and these where the name is used.     Keeps: all else.
#include "check.h"

typedef struct Local {
    Arena *a;
    Diags *d;
    Model *m;
    const Stmt *at;  // the declaration
    const char *name;
    Decl *index[MAX_RANK];
    int n;
    Map done;  // names that have their subscripts
} Local;

static Ast *name_of(const Local *l, Span at, const char *name)
{
    Ast *e = NEW(l->a, Ast);
    *e = (Ast){.kind = AST_NAME, .span = at, .name = name, .depth = 1};
    return e;
}

// sum(mu in 1:K, mu): the name is another one there, which is refused later, as it hides this one.
static bool hides(const Ast *e, const char *name)
{
    return (e->kind == AST_REDUCE && e->name == name) ||
           (e->kind == AST_FUNCTION && (ast_names(e->kid[0], name) || ast_names(e->kid[1], name)));
}

static int depth_above(Ast *const *kid, int n)
{
    int most = 0;
    for (int i = 0; i < n; i++)
        if (kid[i] && kid[i]->depth > most) most = kid[i]->depth;
    return most + 1;
}

static Ast *copy_at(const Local *l, Span at, const Ast *e)
{
    if (!e) return NULL;
    Ast *of = arena_copy(l->a, e, sizeof *e);
    of->span = at;
    of->kid = NEW_N(l->a, Ast *, e->nkids);
    for (int i = 0; i < e->nkids; i++) of->kid[i] = copy_at(l, at, e->kid[i]);
    return of;
}

static Ast *plus(const Local *l, Span at, Ast *a, Ast *b)
{
    Ast **kid = NEW_N(l->a, Ast *, 2), *e = NEW(l->a, Ast);
    kid[0] = a;
    kid[1] = b;
    *e = (Ast){.kind = AST_BINARY, .op = OP_ADD, .span = at, .kid = kid, .nkids = 2, .depth = depth_above(kid, 2)};
    return e;
}

// An index as a subscript: i, or i + 1 where it begins with 0, i + K + 1 where it begins with -K.
static Ast *counted_from_1(const Local *l, Span at, const Decl *index)
{
    Ast *i = name_of(l, at, index->name), *one = NEW(l->a, Ast);
    *one = (Ast){.kind = AST_INT, .span = at, .number = 1, .depth = 1};
    const Ast *lo = index->lo;
    if (lo && lo->kind == AST_INT && lo->number == 0) return plus(l, at, i, one);
    if (!lo || lo->kind != AST_UNARY || lo->op != OP_NEG) return i;
    const Ast *below = lo->kid[0];
    if (below->kind != AST_INT) return plus(l, at, plus(l, at, i, copy_at(l, at, below)), one);
    one->number += below->number;
    return plus(l, at, i, one);
}

// e, the name or name[...], with the indices before its subscripts.
static void subscript(Local *l, Ast *e)
{
    const int given = e->kind == AST_INDEX ? e->nkids - 1 : 0, n = 1 + l->n + given;
    Ast **kid = NEW_N(l->a, Ast *, n);
    kid[0] = name_of(l, e->span, l->name);
    for (int i = 0; i < l->n; i++) kid[1 + i] = counted_from_1(l, e->span, l->index[i]);
    for (int i = 0; i < given; i++) kid[1 + l->n + i] = e->kid[1 + i];
    map_put(l->a, &l->done, kid[0], kid[0]);
    *e = (Ast){.kind = AST_INDEX, .span = e->span, .kid = kid, .nkids = n, .depth = depth_above(kid, n)};
}

static void rewrite(Local *l, Ast *e)
{
    if (!e || hides(e, l->name)) return;
    const Ast *root = e->kind == AST_INDEX ? e->kid[0] : e;
    if (root->kind == AST_NAME && root->name == l->name && !map_get(&l->done, root)) subscript(l, e);
    for (int i = 0; i < e->nkids; i++) {
        if (!e->kid[i] || map_get(&l->done, e->kid[i])) continue;
        rewrite(l, e->kid[i]);
        if (e->kid[i]->depth >= e->depth) e->depth = e->kid[i]->depth + 1;
    }
}

// Every expression of a statement, but for those within its braces.
static void each(Local *l, Stmt *s, void (*visit)(Local *, Ast *))
{
    visit(l, s->lhs);
    visit(l, s->rhs);
    visit(l, s->weights);
    visit(l, s->lower);
    visit(l, s->upper);
    visit(l, s->cond);
    for (int i = 0; i < s->nargs; i++) visit(l, s->args[i]);
    const Decl *d[] = {s->decl, s->index};
    for (int k = 0; k < 2; k++) {
        if (!d[k]) continue;
        visit(l, d[k]->lower);
        visit(l, d[k]->upper);
        visit(l, d[k]->lo);
        visit(l, d[k]->hi);
        for (int i = 0; i < d[k]->type.rank; i++) visit(l, d[k]->type.dim[i]);
    }
}

// All of a list, up to the declaration.
static void each_of(Local *l, Stmt *s, void (*visit)(Local *, Ast *))
{
    for (; s && s != l->at; s = s->next) {
        each(l, s, visit);
        each_of(l, s->more, visit);
        each_of(l, s->body, visit);
    }
}

static void refuse(Local *l, Ast *e)
{
    if (!e || !l->name || hides(e, l->name)) return;
    if (e->kind == AST_NAME && e->name == l->name && !map_get(&l->done, e)) {
        Diag *m = diag(l->d, e->span, DIAG_E0218, l->name, span_line(l->at->decl->span));
        diag_help(m, "there each iteration has its own `%s`: with subscripts, %s, it can be used everywhere", l->name,
                  ast_text(l->a, l->at->lhs));
        l->name = NULL;
        return;
    }
    for (int i = 0; i < e->nkids; i++) refuse(l, e->kid[i]);
}

// A statement elsewhere that declares the name, or is about it.
static const Stmt *other(const Local *l, const Stmt *s)
{
    for (; s && s != l->at; s = s->next) {
        const Ast *root = s->lhs ? place_root(s->lhs) : NULL;
        if ((root && root->name == l->name) || (s->decl && s->decl->name == l->name)) return s;
        const Stmt *within = other(l, s->body);
        if (within) return within;
    }
    return NULL;
}

// The indices of the loops, the outermost first; false: there is none.
static bool find_indices(Local *l)
{
    Decl *around[MAX_DEPTH];
    int n = 0;
    for (const Stmt *o = l->at->outer; o && n < MAX_DEPTH; o = o->outer) {
        if (o->kind != STMT_FOR) continue;
        if (o->index->name == l->name) return false;  // which is an error
        bool named = false;
        for (int i = 0; i < n; i++) named |= around[i]->places && ast_names(around[i]->hi, o->index->name);
        if (!named) around[n++] = o->index;
    }
    if (n + l->at->decl->type.rank > MAX_RANK) {
        diag(l->d, l->at->decl->span, DIAG_E0313, MAX_RANK);
        return false;
    }
    for (l->n = 0; l->n < n; l->n++) l->index[l->n] = around[n - 1 - l->n];
    return n > 0;
}

static bool defined_in(const Stmt *s, const char *name)
{
    for (; s; s = s->next)
        if ((s->kind == STMT_DEFINE && !s->decl && s->lhs->kind == AST_NAME && s->lhs->name == name) || defined_in(s->body, name))
            return true;
    return false;
}

static bool is_local(const Stmt *s)
{
    if (!s->decl || !s->decl->has_type || s->decl->outer) return false;
    return s->kind == STMT_DEFINE ? s->lhs->kind == AST_NAME && !s->link : s->kind == STMT_DECLARE && defined_in(s->next, s->decl->name);
}

static void make_own(Local *l, Stmt *s)
{
    Decl *d = s->decl;
    *l = (Local){.a = l->a, .d = l->d, .m = l->m, .at = s, .name = d->name};
    if (!find_indices(l)) return;
    rewrite(l, s->rhs);
    l->at = NULL;
    each_of(l, s->next, rewrite);
    l->at = s;
    for (int i = d->type.rank; i-- > 0;) d->type.dim[i + l->n] = d->type.dim[i];
    for (int i = 0; i < l->n; i++) d->type.dim[i] = counted_from_1(l, d->span, l->index[i]);
    d->type.rank += l->n;
    d->outer = l->n;
    Decl *along = l->n == 1 && l->index[0]->places ? l->index[0] : NULL;
    if (along) d->lengths = along->lengths = along->places->kid[0]->name;
    Ast *place = name_of(l, d->span, d->name);
    subscript(l, place);
    s->lhs = place;
    for (Block *b = l->m->blocks; b; b = b->next) {
        const Stmt *first = other(l, b->body);
        if (!first) continue;
        Diag *m = diag(l->d, d->span, DIAG_E0201, d->name);
        diag_help(m, "the other statement is on line %d: a name of a loop is one of the model, give one of the two another name",
                  span_line(first->span));
        return;
    }
    for (Block *b = l->m->blocks; b; b = b->next) each_of(l, b->body, refuse);
}

static void find(Local *l, Stmt *s)
{
    for (; s; s = s->next) {
        if (is_local(s)) make_own(l, s);
        find(l, s->body);
    }
}

bool front_local_names(Arena *a, Model *m, Diags *d)
{
    const int errors = diags_errors(d);
    Local l = {.a = a, .d = d, .m = m};
    for (Block *b = m->blocks; b; b = b->next) find(&l, b->body);
    return diags_errors(d) == errors;
}
