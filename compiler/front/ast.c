// ast.c -- nodes of the tree, as the grammar makes them, and the two functions that start the parser.
//
// What the grammar is too coarse to refuse is refused here: a left side that is no name, a matrix with one size,
// a statement in the wrong kind of block.
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "front.h"
#include "check.h"
#include "parse.h"
#include "grammar.h"

int yylex_init_extra(Parse *p, void **scanner);
int yylex_destroy(void *scanner);
void *yy_scan_bytes(const char *bytes, int size, void *scanner);

// ---- lists ----

void list_add(Arena *a, List *l, void *item)
{
    if (l->n == l->room) {
        int room = l->room ? 2 * l->room : 4;
        void **larger = NEW_N(a, void *, room);
        if (l->n) memcpy(larger, l->item, sizeof *larger * (size_t)l->n);
        l->item = larger;
        l->room = room;
    }
    l->item[l->n++] = item;
}

Diag *parse_fail(Parse *p, Span at, DiagCode code, const char *a, const char *b)
{
    p->failed = true;
    return diag(p->diags, at, code, a, b);
}

// ---- expressions ----

static Ast *node(Parse *p, Span at, AstKind kind, List kids)
{
    Ast *e = NEW(p->arena, Ast);
    e->kind = kind;
    e->span = at;
    int depth = 0;
    for (int i = 0; i < kids.n; i++) {
        Ast *kid = kids.item[i];
        if (kid && kid->depth > depth) depth = kid->depth;
    }
    if (depth >= MAX_DEPTH) {
        nested_too_deeply(p, at);
        e->kind = AST_INT;
        return e;
    }
    e->nkids = kids.n;
    e->kid = (Ast **)kids.item;
    e->depth = depth + 1;
    return e;
}

static List list3(Parse *p, int n, Ast *a, Ast *b, Ast *c)
{
    List l = {0};
    if (n > 0) list_add(p->arena, &l, a);
    if (n > 1) list_add(p->arena, &l, b);
    if (n > 2) list_add(p->arena, &l, c);
    return l;
}

Ast *ast_number(Parse *p, Span at, AstKind kind, double value)
{
    Ast *e = node(p, at, kind, (List){0});
    e->number = value;
    return e;
}

Ast *ast_name(Parse *p, Span at, const char *name)
{
    Ast *e = node(p, at, AST_NAME, (List){0});
    e->name = name;
    return e;
}

void bar_misplaced(Parse *p, Span at)
{
    Diag *m = parse_fail(p, at, DIAG_E0102, "`|`", NULL);
    diag_help(m,
              "arguments are separated by commas, but for functions of a distribution, normal_lpdf(y | mu, sigma); `or` is written `||`");
}

Ast *density_call(Parse *p, Span at, const char *name, Span bar, Ast *value, List parameters)
{
    const char *suffix;
    if (!without_suffix(name, &suffix) || strcmp(suffix, "_rng") == 0) bar_misplaced(p, bar);
    List all = list3(p, 1, value, NULL, NULL);
    for (int i = 0; i < parameters.n; i++) list_add(p->arena, &all, parameters.item[i]);
    return ast_list(p, at, AST_CALL, name, all);
}

Ast *ast_labelled(Parse *p, Span at, const char *label, Ast *value)
{
    if (p->stdlib) parse_fail(p, at, DIAG_E0417, "a file of the library", NULL);
    value->label = label;
    value->label_span = at;
    return value;
}

Ast *ast_list(Parse *p, Span at, AstKind kind, const char *name, List kids)
{
    Ast *e = node(p, at, kind, kids);
    e->name = name;
    return e;
}

Ast *ast_index(Parse *p, Span at, Ast *array, List subscripts)
{
    List kids = {0};
    list_add(p->arena, &kids, array);
    for (int i = 0; i < subscripts.n; i++) list_add(p->arena, &kids, subscripts.item[i]);
    return node(p, at, AST_INDEX, kids);
}

Ast *ast_binary(Parse *p, Span at, Op op, Ast *a, Ast *b)
{
    Ast *e = node(p, at, AST_BINARY, list3(p, 2, a, b, NULL));
    e->op = op;
    return e;
}

Ast *ast_left_divide(Parse *p, Span at, Ast *a, Ast *b)
{
    return ast_list(p, at, AST_CALL, intern("mdivide_left"), list3(p, 2, a, b, NULL));
}

Ast *ast_unary(Parse *p, Span at, Op op, Ast *a)
{
    Ast *e = node(p, at, AST_UNARY, list3(p, 1, a, NULL, NULL));
    e->op = op;
    return e;
}

Ast *ast_kids(Parse *p, Span at, AstKind kind, Ast *a, Ast *b, Ast *c)
{
    int n = kind == AST_RANGE ? 2 : c ? 3 : b ? 2 : a ? 1 : 0;
    return node(p, at, kind, list3(p, n, a, b, c));
}

Ast *ast_reduce(Parse *p, Span at, const char *name, const char *index, Span index_span, Ast *lo, Ast *hi, Ast *body)
{
    Ast *e = node(p, at, AST_REDUCE, list3(p, 3, lo, hi, body));
    e->name = name;
    e->decl = decl_index(p, index, index_span, lo, hi);
    if (name != intern("sum") && name != intern("prod") && name != intern("min") && name != intern("max")) {
        Diag *m = parse_fail(p, at, DIAG_E0205, arena_printf(p->arena, "%s(%s in ...)", name, index), NULL);
        diag_help(m, "sum, prod, min and max take an index");
    }
    return e;
}

Ast *ast_function(Parse *p, Span at, const char *t, Span t_span, const char *y, Span y_span, Ast *body)
{
    Ast *name[2] = {ast_name(p, t_span, t), ast_name(p, y_span, y)};
    for (int i = 0; i < 2; i++) {
        name[i]->decl = NEW(p->arena, Decl);
        *name[i]->decl = (Decl){.kind = DECL_PARAMETER,
                                .name = name[i]->name,
                                .span = name[i]->span,
                                .block = p->block,
                                .type = {.base = BASE_REAL},
                                .order = -1};
    }
    return node(p, at, AST_FUNCTION, list3(p, 3, name[0], name[1], body));
}

// ---- declared types ----

Ast *bound(Parse *p, Span at, const char *name, Ast *value)
{
    if (name != intern("lower") && name != intern("upper")) {
        Diag *m = parse_fail(p, at, DIAG_E0113, name, NULL);
        diag_help(m, "bounds are `lower` and `upper`, as in real<lower=0, upper=1>");
    }
    return ast_list(p, at, AST_CALL, name, list3(p, 1, value, NULL, NULL));
}

static void set_bounds(TypeExpr *t, List bounds)
{
    for (int i = 0; i < bounds.n; i++) {
        const Ast *b = bounds.item[i];
        if (b->kind != AST_CALL) continue;  // cut off for its depth
        if (b->name == intern("lower")) t->lower = b->kid[0];
        if (b->name == intern("upper")) t->upper = b->kid[0];
    }
}

TypeExpr type_scalar(Parse *p, Span at, BaseType base, List bounds)
{
    (void)p;
    TypeExpr t = {.span = at, .type = {.base = base}};
    set_bounds(&t, bounds);
    return t;
}

static const struct {
    const char *word;
    Constraint constraint;
    int rank, least, most;
    const char *takes;
} words[] = {
    {"vector", CONSTRAINT_NONE, 1, 1, 1, "one size, as in vector[N]"},
    {"row_vector", CONSTRAINT_NONE, 1, 1, 1, "one size, as in row_vector[N]"},
    {"matrix", CONSTRAINT_NONE, 2, 2, 2, "two sizes, as in matrix[N, p]"},
    {"simplex", CONSTRAINT_SIMPLEX, 1, 1, 1, "one size, as in simplex[K]"},
    {"ordered", CONSTRAINT_ORDERED, 1, 1, 1, "one size, as in ordered[K]"},
    {"positive_ordered", CONSTRAINT_POSITIVE_ORDERED, 1, 1, 1, "one size, as in positive_ordered[K]"},
    {"unit_vector", CONSTRAINT_UNIT_VECTOR, 1, 1, 1, "one size, as in unit_vector[K]"},
    {"sum_to_zero_vector", CONSTRAINT_SUM_TO_ZERO, 1, 1, 1, "one size, as in sum_to_zero_vector[K]"},
    {"cov_matrix", CONSTRAINT_COVARIANCE, 2, 1, 1, "one size, as in cov_matrix[p]"},
    {"corr_matrix", CONSTRAINT_CORRELATION, 2, 1, 1, "one size, as in corr_matrix[p]"},
    {"cholesky_factor_cov", CONSTRAINT_CHOLESKY_COV, 2, 1, 1, "one size, as in cholesky_factor_cov[p]"},
    {"cholesky_factor_corr", CONSTRAINT_CHOLESKY_CORR, 2, 1, 1, "one size, as in cholesky_factor_corr[p]"},
};

TypeExpr type_sized(Parse *p, Span at, const char *word, List bounds, bool sized, List dims)
{
    TypeExpr t = {.span = at, .type = {.base = BASE_REAL}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].word, word) != 0) continue;
        t.constraint = words[i].constraint;
        t.type.rank = words[i].rank;
        if (!sized && !p->stdlib && !p->function) {
            t.word = word;
            t.lacks = words[i].takes;
        }
        if (sized && (dims.n < words[i].least || dims.n > words[i].most)) {
            parse_fail(p, at, DIAG_E0110, word, words[i].takes);
            dims.n = 0;
        }
        if (dims.n)
            for (int k = 0; k < t.type.rank; k++) t.type.dim[k] = dims.item[k < dims.n ? k : dims.n - 1];
    }
    set_bounds(&t, bounds);
    if (t.constraint != CONSTRAINT_NONE && bounds.n) parse_fail(p, at, DIAG_E0110, word, "no bounds: its values are bounded already");
    return t;
}

static Type outer_dims(Parse *p, Span at, List dims, Type inner)
{
    Type t = {.base = inner.base, .rank = dims.n + inner.rank};
    if (t.rank > MAX_RANK) {
        p->failed = true;
        diag(p->diags, at, DIAG_E0313, MAX_RANK);
        return inner;
    }
    for (int i = 0; i < dims.n; i++) t.dim[i] = dims.item[i];
    for (int i = 0; i < inner.rank; i++) t.dim[dims.n + i] = inner.dim[i];
    return t;
}

TypeExpr type_array(Parse *p, Span at, List dims, TypeExpr of)
{
    static void *const unsized[1];
    if (dims.n == 0) {
        if (!p->stdlib && !p->function) parse_fail(p, at, DIAG_E0110, "array", "its sizes, as in array[N] real");
        dims = (List){1, 1, (void **)unsized};
    }
    of.type = outer_dims(p, at, dims, of.type);
    of.span = span_join(at, of.span);
    return of;
}

// ---- statements ----

static const char *const block_names[] = {"data", "let", "prior", "latent", "likelihood", "augment", "infer", "predict"};

static void misplaced(Parse *p, Span at, const char *what)
{
    Diag *m = parse_fail(p, at, DIAG_E0111, what, block_names[p->block]);
    if (p->block == BLOCK_DATA) diag_help(m, "a data block declares what the data file holds; definitions from data go into a let block");
    if (p->block == BLOCK_LET) diag_help(m, "a let block holds definitions `name = expression;`");
}

Stmt *stmt_new(Parse *p, StmtKind kind, Span at)
{
    Stmt *s = NEW(p->arena, Stmt);
    s->kind = kind;
    s->span = at;
    s->block = p->block;
    s->depth = 1;
    return s;
}

StmtList stmt_one(Stmt *s) { return (StmtList){s, s}; }

StmtList stmt_join(StmtList a, StmtList b)
{
    if (!a.first) return b;
    if (!b.first) return a;
    a.last->next = b.first;
    return (StmtList){a.first, b.last};
}

Decl *decl_new(Parse *p, DeclKind kind, const char *name, Span at)
{
    Decl *d = NEW(p->arena, Decl);
    d->kind = kind;
    d->name = name;
    d->span = at;
    d->block = p->block;
    d->order = -1;
    return d;
}

// A size of the row that `index` counts: n of n[g].
static Ast *size_of_row(Ast *size, const char *index)
{
    const bool of_row = size && size->kind == AST_INDEX && size->nkids == 2 && size->kid[0]->kind == AST_NAME &&
                        size->kid[1]->kind == AST_NAME && size->kid[1]->name == index;
    return of_row ? size->kid[0] : size;
}

// vector y[g in 1:G][n[g]], vector[n[g]] y[g in 1:G] and real y[g in 1:G, n[g]] are real y[G, n]. Gives the sizes behind the name.
static List sizes_by_rows(Parse *p, const Declarator *v, const TypeExpr *type, Type *inner)
{
    List outer = {0};
    if (v->row->lo->kind != AST_INT || v->row->lo->number != 1)
        parse_fail(p, v->row->span, DIAG_E0120, v->name, "which are counted from 1");
    list_add(p->arena, &outer, v->row->hi);
    if (type->lacks && v->dims.n != inner->rank) parse_fail(p, type->span, DIAG_E0110, type->word, type->lacks);
    for (int i = 0; i < v->dims.n; i++) {
        Ast *size = size_of_row(v->dims.item[i], v->row->name);
        if (!type->lacks) list_add(p->arena, &outer, size);
        else if (i < inner->rank) inner->dim[i] = size;
    }
    for (int i = 0; i < inner->rank; i++) inner->dim[i] = size_of_row(inner->dim[i], v->row->name);
    return outer;
}

static Decl *declare(Parse *p, const TypeExpr *type, const Declarator *v)
{
    Decl *d = decl_new(p, p->block == BLOCK_DATA ? DECL_DATA : DECL_VARIABLE, v->name, v->span);
    Type inner = type->type;
    const List outer = v->row ? sizes_by_rows(p, v, type, &inner) : v->dims;
    if (type->lacks && !v->row) parse_fail(p, type->span, DIAG_E0110, type->word, type->lacks);
    d->has_type = true;
    d->type = outer_dims(p, v->span, outer, inner);
    d->outer = outer.n;
    d->constraint = type->constraint;
    d->lower = type->lower;
    d->upper = type->upper;
    return d;
}

static Ast *name_of(Parse *p, const Declarator *v) { return ast_name(p, v->span, v->name); }

// The name that a left side is about: of beta, beta[j], beta[j][k], else NULL.
static bool is_place(const Ast *e)
{
    while (e->kind == AST_INDEX) e = e->kid[0];
    return e->kind == AST_NAME;
}

// y ~ mixture(w, normal(a, s), normal(b, t)): a statement for each component, the first of them with the weights.
static void split_mixture(Parse *p, Stmt *s, Call call)
{
    bool good = call.args.n >= 2;
    Stmt **last = &s->more;
    for (int i = 0; i < call.args.n; i++) {
        Ast *e = call.args.item[i];
        if (e->label) parse_fail(p, e->label_span, DIAG_E0417, "`mixture`", NULL);
        e->label = NULL;
    }
    for (int i = 1; i < call.args.n && good; i++) {
        const Ast *c = call.args.item[i];
        if (c->kind != AST_CALL) {
            good = false;
            break;
        }
        Stmt *part = i == 1 ? s : stmt_new(p, STMT_TILDE, c->span);
        part->lhs = s->lhs;
        part->dist = c->name;
        part->dist_span = c->span;
        part->nargs = c->nkids;
        part->args = c->kid;
        if (i == 1) continue;
        *last = part;
        last = &part->next;
    }
    s->weights = call.args.n ? call.args.item[0] : NULL;
    if (good) return;
    Diag *m = parse_fail(p, call.span, DIAG_E0114, NULL, NULL);
    diag_help(m, "each component is a distribution with its arguments: mixture(w, normal(a, s), normal(b, t))");
}

StmtList stmt_tilde(Parse *p, Span at, const TypeExpr *type, Declarator *declared, Ast *lhs, Call call, Truncation t)
{
    Stmt *s = stmt_new(p, STMT_TILDE, at);
    if (type) s->decl = declare(p, type, declared);
    s->lhs = lhs ? lhs : name_of(p, declared);
    s->dist = call.name;
    s->dist_span = call.name_span;
    s->nargs = call.args.n;
    s->args = (Ast **)call.args.item;
    s->truncated = t.present;
    s->censored = t.censored;
    s->lower = t.lower;
    s->upper = t.upper;
    if (!p->stdlib && call.name == intern("mixture")) split_mixture(p, s, call);
    if (!p->stdlib && (p->block == BLOCK_DATA || p->block == BLOCK_LET)) misplaced(p, at, "a `~` statement");
    return stmt_one(s);
}

const char *inverse_link(const char *name)
{
    static const char *const links[][2] = {{"logit", "inv_logit"}, {"log", "exp"}, {"probit", "Phi"}, {"cloglog", "inv_cloglog"}};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (strcmp(name, links[i][0]) == 0) return links[i][1];
    return NULL;
}

StmtList stmt_define(Parse *p, Span at, Ast *lhs, Ast *rhs)
{
    Stmt *s = stmt_new(p, STMT_DEFINE, at);
    if (lhs->kind == AST_CALL && lhs->nkids == 1 && inverse_link(lhs->name) && is_place(lhs->kid[0])) {
        s->link = lhs->name;
        lhs = lhs->kid[0];
    }
    if (!is_place(lhs)) {
        Diag *m = parse_fail(p, lhs->span, DIAG_E0108, "this", "=");
        diag_help(m, "a definition has a name on its left, perhaps with subscripts or inside logit, log, probit or cloglog");
        return (StmtList){0};
    }
    s->lhs = lhs;
    s->rhs = rhs;
    if (p->block == BLOCK_DATA) misplaced(p, at, "a definition");
    return stmt_one(s);
}

StmtList stmt_declare(Parse *p, Span at, TypeExpr type, List declarators)
{
    StmtList all = {0};
    for (int i = 0; i < declarators.n; i++) {
        Declarator *v = declarators.item[i];
        bool defines = v->init && p->block != BLOCK_DATA;
        Stmt *s = stmt_new(p, defines ? STMT_DEFINE : STMT_DECLARE, declarators.n == 1 ? at : v->span);
        s->decl = declare(p, &type, v);
        if (defines) {
            s->lhs = name_of(p, v);
            s->rhs = v->init;
        } else {
            s->decl->init = v->init;
            if (v->init && s->decl->type.rank) parse_fail(p, v->span, DIAG_E0110, v->name, "no default: only scalar data have one");
        }
        all = stmt_join(all, stmt_one(s));
    }
    return all;
}

// One statement for a list of them.
static Stmt *single(Parse *p, Span at, StmtList list)
{
    if (list.first && !list.first->next) return list.first;
    return stmt_block(p, at, list).first;
}

static void set_body(Parse *p, Stmt *s, Stmt *body)
{
    s->body = body;
    for (Stmt *b = body; b; b = b->next) b->outer = s;
    for (const Stmt *b = body; b; b = b->next)
        if (b->depth >= s->depth) s->depth = b->depth + 1;
    if (s->depth > MAX_DEPTH) {
        nested_too_deeply(p, s->span);
        s->body = NULL;
        s->kind = STMT_BLOCK;
        s->depth = 1;
    }
}

StmtList stmt_block(Parse *p, Span at, StmtList body)
{
    Stmt *s = stmt_new(p, STMT_BLOCK, at);
    set_body(p, s, body.first);
    return stmt_one(s);
}

Decl *decl_index(Parse *p, const char *name, Span at, Ast *lo, Ast *hi)
{
    Decl *d = decl_new(p, DECL_INDEX, name, at);
    d->lo = lo;
    d->hi = hi;
    d->type.base = BASE_INT;
    return d;
}

StmtList stmt_for(Parse *p, Span at, List ranges, StmtList body)
{
    if (p->block == BLOCK_DATA) misplaced(p, at, "a loop");
    Stmt *inner = single(p, at, body);
    for (int i = ranges.n - 1; i >= 0; i--) {
        Stmt *s = stmt_new(p, STMT_FOR, at);
        s->index = ranges.item[i];
        set_body(p, s, inner);
        inner = s;
    }
    return stmt_one(inner);
}

StmtList stmt_if(Parse *p, Span at, Ast *cond, StmtList yes, StmtList no)
{
    if (p->block == BLOCK_DATA) misplaced(p, at, "a condition");
    Stmt *s = stmt_new(p, STMT_IF, at);
    s->cond = cond;
    set_body(p, s, single(p, at, yes));
    if (!no.first) return stmt_one(s);
    Stmt *other = stmt_new(p, STMT_IF, at);
    other->cond = ast_unary(p, cond->span, OP_NOT, cond);
    set_body(p, other, single(p, at, no));
    return stmt_join(stmt_one(s), stmt_one(other));
}

StmtList stmt_add(Parse *p, Span at, Ast *lhs, Ast *rhs)
{
    if (lhs->kind != AST_NAME || lhs->name != intern("target")) {
        Diag *m = parse_fail(p, lhs->span, DIAG_E0112, NULL, NULL);
        diag_help(m, "names are defined once; sums are written sum(i in 1:N, ...)");
        return (StmtList){0};
    }
    if (p->block == BLOCK_DATA || p->block == BLOCK_LET || p->block == BLOCK_PREDICT) misplaced(p, at, "`target +=`");
    Stmt *s = stmt_new(p, STMT_TARGET, at);
    s->rhs = rhs;
    return stmt_one(s);
}

StmtList stmt_not_one(Parse *p, Span at, Ast *e)
{
    int right = e->kind == AST_BINARY && e->op == OP_LT ? e->kid[1]->span.from : 0;
    bool arrow = right > 0 && p->source->text[right] == '-' && p->source->text[right - 1] == '<';
    Diag *m = parse_fail(p, at, arrow ? DIAG_E0107 : DIAG_E0106, NULL, NULL);
    const char *hint = e->kind == AST_CALL ? foreign_statement(e->name) : NULL;
    if (hint) diag_help(m, "%s", hint);
    else if (arrow) diag_help(m, "`%.*s = ...;`", e->kid[0]->span.to - e->kid[0]->span.from, p->source->text + e->kid[0]->span.from);
    else if (e->kind == AST_NAME)
        diag_help(m, "`%s ~ distribution(...);` or `%s = expression;`; `real %s;` declares an unknown, flat without a `~`", e->name,
                  e->name, e->name);
    else diag_help(m, "a statement is `x ~ distribution(...);` or `name = expression;`");
    return (StmtList){0};
}

static void truncation_misspelt(Parse *p, Span at)
{
    const char *text = p->source->text + at.from, *open = memchr(text, '(', (size_t)(at.to - at.from));
    Diag *m = parse_fail(p, at, DIAG_E0109, NULL, NULL);
    if (open)
        diag_help(m, "`T[%.*s]`: the density is that of the distribution between the two, and integrates to 1",
                  (int)(text + (at.to - at.from) - open) - 2, open + 1);
}

Truncation truncation(Parse *p, Span at, const char *word, Ast *lower, Ast *upper)
{
    const bool censored = word && strcmp(word, "C") == 0;
    if (!censored && (!word || strcmp(word, "T") != 0)) truncation_misspelt(p, at);
    return (Truncation){.present = true, .censored = censored, .lower = lower, .upper = upper};
}

Truncation truncation_of_one_end(Parse *p, Span at, Span end, const char *word)
{
    if (strcmp(word, "C") == 0) {
        Diag *m = parse_fail(p, at, DIAG_E0109, NULL, NULL);
        diag_help(m, "a censored value is written C[lower, ] where it lies above, C[, upper] where below");
        return (Truncation){0};
    }
    const char *text = p->source->text + end.from;
    const int n = end.to - end.from;
    diag_help(parse_fail(p, at, DIAG_E0109, NULL, NULL), "`T[%.*s, ]` leaves out what lies below %.*s, `T[, %.*s]` what lies above", n,
              text, n, text, n, text);
    return (Truncation){0};
}

// ---- blocks and requests ----

void foreign_block_named(Parse *p, Span at, const char *words)
{
    const char *hint = foreign_block(words);
    Diag *m = parse_fail(p, at, DIAG_E0115, words, NULL);
    diag_help(m, "%s", hint ? hint : "a model has the blocks data, let, prior, latent, likelihood, predict, augment and infer");
    p->block = BLOCK_PRIOR;
    p->quiet = true;
}

void block_add(Parse *p, Span at, StmtList body)
{
    Block *b = NEW(p->arena, Block);
    *b = (Block){.kind = p->block, .span = at, .body = body.first};
    *p->last_block = b;
    p->last_block = &b->next;
}

void request_add(Parse *p, Span at, List names, Span name_span, const char *by, List settings, const char *as)
{
    (void)name_span;
    Request *r = NEW(p->arena, Request);
    *r = (Request){.span = at, .block = p->block, .nnames = names.n, .names = (const char **)names.item, .by = by, .as = as};
    r->nsettings = settings.n;
    r->setting = NEW_N(p->arena, Setting, settings.n);
    for (int i = 0; i < settings.n; i++) r->setting[i] = *(const Setting *)settings.item[i];
    *p->last_request = r;
    p->last_request = &r->next;
}

// ---- files that are included ----

Source *(*front_read)(Arena *, const char *) = source_read;

static const char *real_path(Parse *p, const char *path)
{
    char real[PATH_MAX];
    return intern(realpath(path, real) ? real : arena_printf(p->arena, "%s", path));
}

// include "file.gm"; a path that is not absolute begins in the folder of the file that has the line. A file counts once, however often
// it is included.
void include_begin(Parse *p, void *scanner, Span at, const char *name)
{
    const char *slash = strrchr(p->source->path, '/'), *path = name;
    if (*name != '/' && slash) path = arena_printf(p->arena, "%.*s%s", (int)(slash + 1 - p->source->path), p->source->path, name);
    if (!p->read.n) list_add(p->arena, &p->read, (void *)real_path(p, p->source->path));
    const char *real = real_path(p, path);
    bool open = real == real_path(p, p->source->path), known = false;
    for (const Including *i = p->including; i; i = i->outer) open |= real == real_path(p, i->source->path);
    for (int i = 0; i < p->read.n; i++) known |= p->read.item[i] == real;
    Source *s = NULL;
    if (open) parse_fail(p, at, DIAG_E0118, name, NULL);
    else if (!known) {
        struct stat is;
        const bool other = stat(path, &is) == 0 && !S_ISREG(is.st_mode);  // a pipe would be waited for
        s = other ? NULL : front_read(p->arena, path);
        if (!s) parse_fail(p, at, DIAG_E0117, path, other ? "it is no regular file" : strerror(errno));
        else {
            const char *from = p->source->included, *end = from ? strrchr(from, '/') : NULL;
            s->order = p->read.n;
            s->included = *name != '/' && end ? arena_printf(p->arena, "%.*s%s", (int)(end + 1 - from), from, name) : name;
        }
        list_add(p->arena, &p->read, (void *)real);
    }
    lexer_push(p, scanner, s ? s : source_from_string(p->arena, path, ""));
}

void model_named(Parse *p, Span at, const char *name)
{
    if (!p->model->name) p->model->name = name;
    else
        diag_help(parse_fail(p, at, DIAG_E0121, p->model->name, name),
                  "one `model` line, of this file or of one that it includes, names the model");
}

// ---- starting the parser ----

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// The end of the text before byte `from`, comments to the end of a line left out: 0 if there are only blanks.
static int before(const Source *s, int from, bool *same_line)
{
    *same_line = true;
    while (from > 0 && (is_blank(s->text[from - 1]) || s->text[from - 1] == '\n')) {
        if (s->text[from - 1] == '\n') *same_line = false;
        from--;
        int start = from;
        while (start > 0 && s->text[start - 1] != '\n') start--;
        const char *hash = memchr(s->text + start, '#', (size_t)(from - start));
        if (hash && !*same_line) from = (int)(hash - s->text);
    }
    return from;
}

static bool is_reserved(const char *word)
{
    if (!strcmp(word, "for") || !strcmp(word, "in") || !strcmp(word, "if") || !strcmp(word, "else") || !strcmp(word, "int") ||
        !strcmp(word, "real") || !strcmp(word, "array"))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(word, words[i].word)) return true;
    return false;
}

static bool among(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

// What would be allowed at the place of an error, in words: closing punctuation; everything that starts an expression as "an expression";
// operators and words of the language, which are allowed in many places, only if there is nothing else.
static const char *expectation(Parse *p, const char *const *names, int n)
{
    static const char *const closing[] = {"`;`", "`)`", "`]`", "`}`", "`{`", "`(`", "`,`", "`~`", "`=`"};
    List words = {0};
    if (among(names, n, "an integer") && among(names, n, "a name")) list_add(p->arena, &words, "an expression");
    else {
        if (among(names, n, "a name")) list_add(p->arena, &words, "a name");
        for (size_t i = 0; i < sizeof closing / sizeof *closing; i++)
            if (among(names, n, closing[i]) && words.n < 4) list_add(p->arena, &words, (void *)closing[i]);
    }
    if (!words.n)
        for (int i = 0; i < n && n <= 6; i++) list_add(p->arena, &words, (void *)names[i]);
    const char *text = NULL;
    for (int i = 0; i < words.n; i++)
        text = !text ? words.item[i] : arena_printf(p->arena, "%s%s%s", text, i == words.n - 1 ? " or " : ", ", (char *)words.item[i]);
    return text;
}

// A statement that lacks its `;` runs into the next line. The error is found there: at the first word, or behind it, since a name
// could have begun a truncation.
static int unfinished_line(Span at)
{
    const Source *s = at.source;
    bool same_line;
    int end = before(s, at.from, &same_line);
    if (same_line && (s->text[at.from] == '~' || s->text[at.from] == '=' || s->text[at.from] == '[')) {
        while (end > 0 && (s->text[end - 1] == '_' || isalnum((unsigned char)s->text[end - 1]))) end--;
        end = before(s, end, &same_line);
    }
    bool unfinished = end > 0 && !same_line && (size_t)at.from < s->size && !strchr(";{}", s->text[end - 1]);
    return unfinished ? span_line((Span){s, end - 1, end, NULL}) : 0;
}

// The hint for `while (...) {`, at its brace.
static const char *statement_of_call(Span at)
{
    const char *text = at.source->text;
    int from = at.from;
    while (from > 0 && !strchr(";{}\n", text[from - 1])) from--;
    while (isspace((unsigned char)text[from])) from++;
    int to = from;
    while (text[to] == '_' || isalnum((unsigned char)text[to])) to++;
    return foreign_statement(intern_n(text + from, (size_t)(to - from)));
}

// Whether T[...] or C[...] stands before this place.
static bool follows_ends(Span at)
{
    const char *text = at.source->text;
    int k = at.from - 1, depth = 0;
    while (k > 0 && isspace((unsigned char)text[k])) k--;
    if (k < 1 || !strchr("])", text[k])) return false;
    for (; k > 0; k--) {
        depth += strchr("])", text[k]) != NULL;
        depth -= strchr("[(", text[k]) != NULL;
        if (depth == 0) break;
    }
    return k > 1 && strchr("TC", text[k - 1]) && isspace((unsigned char)text[k - 2]);
}

// The help of a syntax error, or NULL: what other languages write there, and what is written here.
static const char *syntax_hint(Parse *p, Span at, const char *const *expected, int n)
{
    const char *text = at.source->text + at.from;
    const int length = at.to - at.from, line = unfinished_line(at);
    const char *word = intern_n(text, (size_t)length), *statement = *text == '{' ? statement_of_call(at) : NULL;
    if (statement) return statement;
    if (*text == '{' && p->function) return "a function is one expression: function real line(real a, real b, real x) = a + b * x;";
    if (length == 1 && strchr("TC", *text) && (text[1] == '[' || text[1] == '(') && follows_ends(at))
        return "a statement has T[ , ] or C[ , ], not both";
    if (line) return arena_printf(p->arena, "is a `;` missing at the end of line %d?", line);
    if (*text == '=' && at.from > 0 && strchr("-*/", text[-1])) return "statements add to `target`, and to nothing else: target += -e;";
    if (*text == '"') return "a file is included outside of blocks, by: include \"file.gm\";";
    if (*text == '*' && at.from > 0 && text[-1] == '*') return "a power is written a ^ b";
    if (is_reserved(word) && among(expected, n, "a name"))
        return arena_printf(p->arena, "`%s` is a word of the language and cannot be a name", word);
    return NULL;
}

void syntax_error(Parse *p, Span at, const char *const *expected, int n)
{
    p->failed = true;
    if (p->quiet) return;
    p->quiet = at.source != p->source;  // an included file ends within a block: what follows is out of step
    if (p->bad_at && at.from >= p->bad_at && !memchr(at.source->text + p->bad_at, '\n', (size_t)(at.from - p->bad_at))) return;
    int length = at.to - at.from;
    if (length == 1 && at.source->text[at.from] == '|') {
        bar_misplaced(p, at);
        return;
    }
    const char *text = at.source->text + at.from, *what = expectation(p, expected, n);
    const char *found =
        (size_t)at.from >= at.source->size ? "the end of the file" : arena_printf(p->arena, "`%.*s`", length > 60 ? 60 : length, text);
    Diag *m = parse_fail(p, at, DIAG_E0101,
                         what ? arena_printf(p->arena, "expected %s, found %s", what, found)
                              : arena_printf(p->arena, "%s is not expected here", found),
                         NULL);
    const char *hint = syntax_hint(p, at, expected, n);
    if (hint) diag_help(m, "%s", hint);
}

void nested_too_deeply(Parse *p, Span at)
{
    p->failed = true;
    if (!p->too_deep) diag(p->diags, at, DIAG_E0104, MAX_DEPTH);
    p->too_deep = true;
}

static bool parse(Parse *p)
{
    void *scanner;
    if (yylex_init_extra(p, &scanner)) return false;
    yy_scan_bytes(p->source->text, (int)p->source->size, scanner);
    if (yyparse(scanner, p)) p->failed = true;
    yylex_destroy(scanner);
    return !p->failed;
}

bool front_parse_model(Arena *a, const Source *s, Diags *d, Model **out)
{
    Model *m = NEW(a, Model);
    Parse p = {.arena = a, .source = s, .diags = d, .model = m, .last_block = &m->blocks, .last_request = &m->requests};
    *out = m;
    return parse(&p);
}

bool front_parse_library(Arena *a, const Source *s, Diags *d, Library *lib)
{
    Parse p = {.arena = a, .source = s, .diags = d, .stdlib = lib, .block = BLOCK_PRIOR};
    return parse(&p);
}
