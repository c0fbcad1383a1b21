// sizes.c -- sizes that uses decide, of unknowns whose statements decide none.
//
//   before   beta ~ normal(0, 5);   u ~ normal(0, tau);   y ~ normal(X * beta + u[g], s);      types fail: beta and u are taken for one
//   number after    beta: real[p]   u: real[J], from matrix[N, p] X and int<lower=1, upper=J> g[N]
//
// An unknown of `name ~ distribution(numbers)` is one number, unless it has subscripts somewhere: each then reaches as far as its subscript
// does. Where a statement does not type-check with one number, the shapes of its neighbours in the statement are tried, and the fewest
// unknowns that have to be vectors get them. If several choices do equally, none is made, and the messages are those of one number. So
// nothing that type-checks changes.
//
// Each trial types the whole model in silence and is forgotten: models are small, and trials few (MOST_TRIALS).
//
// One number that type-checks may still not be what was meant: theta ~ normal(mu, tau); y ~ normal(theta, se); shares one theta among all
// y. In `latent` that is an error, elsewhere a warning if all that theta depends on is unknown, too; `real theta` declares that it is
// meant.
//
// Needs: resolved.     Gives: Facts.from_uses.     Keeps: the tree, untyped.
#include <string.h>
#include "types.h"

enum { MOST_TRIALS = 2000, MOST_SHAPES = 12, MOST_TOGETHER = 3, MOST_PARTS = 16 };

typedef struct Shapes {
    Decl *d;
    int n;
    Type shape[MOST_SHAPES];
} Shapes;  // neighbours of one unknown in its statement

typedef struct Sizes {
    Arena *a;
    Model *m;
    const Library *lib;
    Types t;          // of the last trial
    Decl *before;     // the declarations as they were
    List bare;        // Decl: unknowns without a size
    List statements;  // Stmt: all that draw, define or add
    List failing;     // Stmt: those that the last trial could not type
    Shapes *shapes;   // by place in `bare`
    int trials;
} Sizes;

static int place_of(const List *l, const void *item)
{
    for (int i = 0; i < l->n; i++)
        if (l->item[i] == item) return i;
    return -1;
}

// ---- trials ----

static void visit_stmts(Sizes *z, Stmt *s)
{
    for (; s; s = s->next) {
        if (s->kind == STMT_TILDE || s->kind == STMT_DEFINE || s->kind == STMT_TARGET) list_add(z->a, &z->statements, s);
        visit_stmts(z, s->body);
    }
}

typedef void Visit(Sizes *z, Ast *e);

static void visit_parts(Sizes *z, const Stmt *s, Visit *visit)
{
    Ast *part[] = {s->lhs, s->rhs, s->weights, s->lower, s->upper};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i]) visit(z, part[i]);
    for (int i = 0; i < s->nargs; i++) visit(z, s->args[i]);
    for (const Stmt *more = s->more; more; more = more->next) visit_parts(z, more, visit);
}

static void forget(Sizes *z, Ast *e)
{
    e->state = TYPE_UNKNOWN;
    if (e->kind == AST_REDUCE) forget(z, e->kid[0]);
    for (const Inlined *c = e->inlined; c; c = c->within)
        for (int i = 0; i < c->function->nparams; i++) forget(z, c->args[i]);
    for (int i = 0; i < e->nkids; i++)
        if (e->kid[i]) forget(z, e->kid[i]);
}

static void forget_all(Sizes *z, Stmt *s)
{
    for (; s; s = s->next) {
        visit_parts(z, s, forget);
        if (s->cond) forget(z, s->cond);
        if (s->index) {
            forget(z, s->index->lo);
            forget(z, s->index->hi);
        }
        forget_all(z, s->body);
    }
}

// The tree as resolve left it.
static void restore(Sizes *z)
{
    for (int i = 0; i < z->m->ndecls; i++) {
        Decl *d = z->m->decls[i];
        *d = z->before[i];
        Facts *f = facts(z->a, d);
        f->shape = SHAPE_UNKNOWN;
        f->provisional_used = false;
        f->extent = NULL;
        Ast *written[] = {d->lower, d->upper, d->init, d->in_loop};
        for (int k = 0; k < 4; k++)
            if (written[k]) forget(z, written[k]);
        for (int k = 0; k < d->type.rank && (d->has_type || d->kind == DECL_DATA); k++)
            if (d->type.dim[k]) forget(z, d->type.dim[k]);
    }
    for (const Block *b = z->m->blocks; b; b = b->next) forget_all(z, b->body);
    for (const Request *r = z->m->requests; r; r = r->next)
        for (int i = 0; i < r->nsettings; i++) forget(z, r->setting[i].value);
}

static bool is_typed(const Stmt *s)
{
    const Ast *part[] = {s->lhs, s->rhs, s->weights, s->lower, s->upper};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i] && part[i]->state != TYPE_KNOWN) return false;
    for (int i = 0; i < s->nargs; i++)
        if (s->args[i]->state != TYPE_KNOWN) return false;
    return !s->more || is_typed(s->more);
}

// Types the model with the sizes that are decided now.
static void try_types(Sizes *z)
{
    restore(z);
    z->trials++;
    z->failing = (List){0};
    z->t = (Types){.a = z->a, .d = diags_new(z->a), .lib = z->lib, .failing = &z->failing};
    types_model(&z->t, z->m);
    for (int i = 0; i < z->statements.n; i++) {
        Stmt *s = z->statements.item[i];
        if (!is_typed(s) && place_of(&z->failing, s) < 0) list_add(z->a, &z->failing, s);
    }
}

// ---- sizes by subscripts ----

static bool whole_subscript(const Ast *s) { return s->kind == AST_ALL || s->kind == AST_RANGE; }

// As far as the subscripts of one use reach; an extent that it does not decide is NULL.
static Type reach(Sizes *z, const Ast *use)
{
    Type type = {.base = BASE_REAL};
    for (int i = 1; i < use->nkids && type.rank < MAX_RANK; i++) {
        Ast *s = use->kid[i]->kind == AST_RANGE ? use->kid[i]->kid[1] : use->kid[i];
        type.dim[type.rank++] = !s || s->kind == AST_ALL ? NULL : types_largest(&z->t, s);
    }
    return type;
}

// Facts.from_uses while uses are being read: as far as those seen reach. One of another rank, or of another name, leaves it undecided.
static void read_subscripts(Sizes *z, Ast *e)
{
    for (int i = 0; i < e->nkids; i++)
        if (e->kid[i]) read_subscripts(z, e->kid[i]);
    if (e->kind != AST_INDEX || e->kid[0]->kind != AST_NAME) return;
    const int at = place_of(&z->bare, e->kid[0]->decl);
    if (at < 0) return;
    Shapes *uses = &z->shapes[at];
    const Type type = reach(z, e);
    if (uses->n == 0) uses->shape[uses->n++] = type;
    else if (uses->n == 1 && !types_merge(&z->t, &uses->shape[0], &type)) uses->n = 2;
}

// The unknowns that have subscripts somewhere. Whether one of them got a size.
static bool size_by_subscripts(Sizes *z)
{
    bool some = false;
    for (int i = 0; i < z->bare.n; i++) z->shapes[i] = (Shapes){.d = z->bare.item[i]};
    for (int i = 0; i < z->statements.n; i++) visit_parts(z, z->statements.item[i], read_subscripts);
    for (int i = 0; i < z->bare.n; i++) {
        const Shapes *uses = &z->shapes[i];
        bool whole = uses->n == 1;
        for (int k = 0; whole && k < uses->shape[0].rank; k++) whole = uses->shape[0].dim[k] != NULL;
        if (!whole) continue;
        facts(z->a, uses->d)->from_uses = arena_copy(z->a, &uses->shape[0], sizeof uses->shape[0]);
        some = true;
    }
    return some;
}

// ---- sizes by neighbours in a statement ----

static void propose(Sizes *z, Decl *d, const Type *type)
{
    const int at = place_of(&z->bare, d);
    if (at < 0 || type->rank == 0 || type->rank > 2) return;
    Shapes *s = &z->shapes[at];
    const char *culprit;
    for (int k = 0; k < type->rank; k++)
        if (!type->dim[k] || types_has_index(type->dim[k]) || !depends_on_data_only(z->a, type->dim[k], &culprit)) return;
    for (int i = 0; i < s->n; i++)
        if (types_same(&z->t, &s->shape[i], type)) return;
    if (s->n < MOST_SHAPES) s->shape[s->n++] = *type;
}

// The extents of the neighbour of a name, alone, and its whole shape.
static void propose_beside(Sizes *z, const List *names, const Type *type)
{
    for (int i = 0; i < names->n; i++) {
        propose(z, names->item[i], type);
        for (int k = 0; k < type->rank; k++) propose(z, names->item[i], &(Type){.base = BASE_REAL, .rank = 1, .dim = {type->dim[k]}});
    }
}

static void names_below(Sizes *z, const Ast *e, List *names)
{
    if (e->kind == AST_NAME && place_of(&z->bare, e->decl) >= 0 && place_of(names, e->decl) < 0) list_add(z->a, names, e->decl);
    for (int i = 0; i < e->nkids; i++)
        if (e->kid[i]) names_below(z, e->kid[i], names);
}

static bool has_shape(const Ast *e) { return e && e->state == TYPE_KNOWN && e->type.rank > 0 && !whole_subscript(e); }

static void read_beside(Sizes *z, Ast *e)
{
    for (int i = 0; i < e->nkids; i++) {
        if (!e->kid[i]) continue;
        read_beside(z, e->kid[i]);
        List names = {0};
        if (e->nkids > 1 && e->kind != AST_INDEX && e->kind != AST_FUNCTION) names_below(z, e->kid[i], &names);
        for (int k = 0; k < e->nkids && names.n; k++)
            if (k != i && has_shape(e->kid[k])) propose_beside(z, &names, &e->kid[k]->type);
    }
}

static void read_statement(Sizes *z, const Stmt *s)
{
    visit_parts(z, s, read_beside);
    const Ast *part[MOST_PARTS + 2];
    int n = 0;
    if (s->lhs) part[n++] = s->lhs;
    if (s->rhs) part[n++] = s->rhs;
    for (int i = 0; i < s->nargs && i < MOST_PARTS; i++) part[n++] = s->args[i];
    for (int i = 0; i < n; i++) {
        List names = {0};
        names_below(z, part[i], &names);
        for (int k = 0; k < n; k++)
            if (k != i && has_shape(part[k])) propose_beside(z, &names, &part[k]->type);
    }
}

// Does a statement depend on the unknown, by itself or through definitions?
static bool depends(Sizes *z, const Ast *e, const Decl *d, List *seen)
{
    if (e->kind == AST_NAME && e->decl) {
        if (e->decl == d) return true;
        if (e->decl->kind != DECL_DEFINITION || place_of(seen, e->decl) >= 0) return false;
        list_add(z->a, seen, e->decl);
        for (const Stmt *s = e->decl->sites; s; s = s->next_site)
            if (s->rhs && depends(z, s->rhs, d, seen)) return true;
    }
    for (int i = 0; i < e->nkids; i++)
        if (e->kid[i] && depends(z, e->kid[i], d, seen)) return true;
    return false;
}

static bool statement_depends(Sizes *z, const Stmt *s, const Decl *d)
{
    List seen = {0};
    const Ast *part[] = {s->lhs, s->rhs, s->weights, s->lower, s->upper};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i] && depends(z, part[i], d, &seen)) return true;
    for (int i = 0; i < s->nargs; i++)
        if (depends(z, s->args[i], d, &seen)) return true;
    return s->more && statement_depends(z, s->more, d);
}

typedef struct Choice {
    int n, of[MOST_TOGETHER], shape[MOST_TOGETHER];
} Choice;

typedef struct Quest {
    const Stmt *target;  // the statement that has to be typed
    List failed;         // what failed before
    Shapes *among;       // unknowns that it depends on
    int n;
    Choice best;
    List ambiguous;        // Decl: those of the choices as good as the best
    int found, undecided;  // how many these are; sizes that they leave to the data
} Quest;

static void decide(Sizes *z, const Quest *q, const Choice *c, bool on)
{
    for (int i = 0; i < c->n; i++) {
        const Shapes *s = &q->among[c->of[i]];
        facts(z->a, s->d)->from_uses = on ? arena_copy(z->a, &s->shape[c->shape[i]], sizeof s->shape[0]) : NULL;
    }
}

static void weigh(Sizes *z, Quest *q, const Choice *c)
{
    if (z->trials >= MOST_TRIALS) return;
    decide(z, q, c, true);
    try_types(z);
    decide(z, q, c, false);
    if (place_of(&z->failing, q->target) >= 0) return;
    for (int i = 0; i < z->failing.n; i++)
        if (place_of(&q->failed, z->failing.item[i]) < 0) return;
    if (q->found && z->t.undecided > q->undecided) return;
    if (q->found == 0 || z->t.undecided < q->undecided) {
        q->found = 0;
        q->ambiguous.n = 0;
    }
    q->found++;
    q->undecided = z->t.undecided;
    q->best = *c;
    for (int i = 0; i < c->n; i++) list_add(z->a, &q->ambiguous, q->among[c->of[i]].d);
}

// All choices of `left` more unknowns, from the unknown `from` on.
static void choose(Sizes *z, Quest *q, Choice *c, int left, int from)
{
    if (left == 0) {
        weigh(z, q, c);
        return;
    }
    for (int i = from; i < q->n; i++)
        for (int k = 0; k < q->among[i].n; k++) {
            c->of[c->n] = i;
            c->shape[c->n++] = k;
            choose(z, q, c, left - 1, i + 1);
            c->n--;
        }
}

static bool size_by_shapes(Sizes *z, const Stmt *target)
{
    Quest q = {.target = target, .failed = z->failing, .among = NEW_N(z->a, Shapes, z->bare.n)};
    for (int i = 0; i < z->bare.n; i++) z->shapes[i] = (Shapes){.d = z->bare.item[i]};
    for (int i = 0; i < z->statements.n; i++) read_statement(z, z->statements.item[i]);
    for (int i = 0; i < z->bare.n; i++)
        if (z->shapes[i].n && !facts(z->a, z->shapes[i].d)->from_uses && statement_depends(z, target, z->shapes[i].d))
            q.among[q.n++] = z->shapes[i];
    for (int together = 1; together <= MOST_TOGETHER && !q.found; together++) choose(z, &q, &(Choice){0}, together, 0);
    if (q.found == 1) decide(z, &q, &q.best, true);
    else
        for (int i = 0; i < q.ambiguous.n; i++) facts(z->a, q.ambiguous.item[i])->ambiguous = true;
    try_types(z);
    return q.found == 1;
}

// Gives unknowns without a size (undecided.c) those that their uses decide (Facts.from_uses).
static void from_uses(Arena *a, Model *m, const Library *lib)
{
    Sizes z = {.a = a, .m = m, .lib = lib, .before = NEW_N(a, Decl, m->ndecls + 1)};
    for (int i = 0; i < m->ndecls; i++) {
        z.before[i] = *m->decls[i];
        if (undecided_size(a, lib, m->decls[i])) list_add(a, &z.bare, m->decls[i]);
    }
    if (!z.bare.n) return;
    z.shapes = NEW_N(a, Shapes, z.bare.n);
    for (Block *b = m->blocks; b; b = b->next) visit_stmts(&z, b->body);
    try_types(&z);
    if (z.failing.n && size_by_subscripts(&z)) try_types(&z);
    for (int i = 0; i < z.failing.n && z.trials < MOST_TRIALS;) i = size_by_shapes(&z, z.failing.item[i]) ? 0 : i + 1;
    restore(&z);
}

// ---- one number for all ----

// Is one number repeated for the elements of a vector in e, and does it depend on d?
static bool repeats(Sizes *z, const Ast *e, const Decl *d)
{
    List seen = {0};
    if (e->state != TYPE_KNOWN || e->type.rank == 0) return false;
    if (e->kind == AST_NAME && e->decl && e->decl->kind == DECL_DEFINITION) {
        const Stmt *s = e->decl->sites;
        return s && s->lhs->kind == AST_NAME && s->rhs && repeats(z, s->rhs, d);
    }
    if (e->kind != AST_BINARY && e->kind != AST_UNARY && e->kind != AST_CALL) return false;
    for (int i = 0; i < e->nkids; i++) {
        const Ast *kid = e->kid[i];
        if (kid->state == TYPE_KNOWN && kid->type.rank == 0 && e->kind == AST_BINARY && depends(z, kid, d, &seen)) return true;
        if (repeats(z, kid, d)) return true;
    }
    return false;
}

static bool serves_all(Sizes *z, const Stmt *s, const Decl *d)
{
    const Distribution *dist = s->kind == STMT_TILDE && s->dist ? library_distribution(z->lib, s->dist) : NULL;
    if (s->kind == STMT_DEFINE) return s->lhs->kind == AST_NAME && s->block != BLOCK_PREDICT && repeats(z, s->rhs, d);
    if (!dist || s->decl == d || s->block == BLOCK_PREDICT || s->lhs->type.rank <= dist->value_rank) return false;
    for (int i = 0; i < s->nargs; i++) {
        List seen = {0};
        const Ast *arg = s->args[i];
        if (arg->type.rank == 0 && dist->params[i]->type.rank == 0 ? depends(z, arg, d, &seen) : repeats(z, arg, d)) return true;
    }
    return s->more && serves_all(z, s->more, d);
}

// May s have one number for the elements of a vector, whatever the number?
static bool may_serve_all(const Sizes *z, const Stmt *s)
{
    for (; s; s = s->more) {
        const Distribution *dist = s->kind == STMT_TILDE && s->dist ? library_distribution(z->lib, s->dist) : NULL;
        if (s->block != BLOCK_PREDICT && (dist ? s->lhs->type.rank > dist->value_rank : s->kind == STMT_DEFINE)) return true;
    }
    return false;
}

// Has its distribution two arguments or more, all of them unknown? Then it is like the elements of a plate.
static bool like_an_element(Sizes *z, Decl *d)
{
    const Facts *f = facts(z->a, d);
    const Stmt *s = f->tildes.item[0];
    const char *culprit;
    if (f->tildes.n != 1 || s->nargs < 2) return false;
    for (int i = 0; i < s->nargs; i++)
        if (depends_on_data_only(z->a, s->args[i], &culprit)) return false;
    return true;
}

// Is the unknown d a term of a sum that has others?
static bool is_term(const Ast *e, const Decl *d)
{
    if (e->kind == AST_NAME && e->decl && e->decl->kind == DECL_DEFINITION) {
        const Stmt *s = e->decl->sites;
        return s && s->lhs->kind == AST_NAME && s->rhs && is_term(s->rhs, d);
    }
    if (e->kind != AST_BINARY || (e->op != OP_ADD && e->op != OP_SUB)) return false;
    for (int i = 0; i < 2; i++)
        if ((e->kid[i]->kind == AST_NAME && e->kid[i]->decl == d) || is_term(e->kid[i], d)) return true;
    return false;
}

// Is the unknown `of` in the law of d, and in no other statement but its own?
static bool serves_alone(Sizes *z, const Decl *of, const Decl *d)
{
    const Stmt *own = facts(z->a, (Decl *)d)->tildes.item[0];
    if (of == d || of->kind != DECL_VARIABLE || of->type.rank || !statement_depends(z, own, of)) return false;
    for (int i = 0; i < z->statements.n; i++) {
        const Stmt *s = z->statements.item[i];
        if (s != own && s->decl != of && s->kind != STMT_DEFINE && statement_depends(z, s, of)) return false;
    }
    return true;
}

// Is d a term beside others in s, with a law that has an unknown of its own? eps of `eps ~ normal(0, tau); y ~ normal(mu + eps, s);`, where
// one number says nothing of tau.
static bool like_an_effect(Sizes *z, const Stmt *s, const Decl *d)
{
    bool term = s->rhs && is_term(s->rhs, d);
    for (int i = 0; i < s->nargs; i++) term |= is_term(s->args[i], d);
    for (int i = 0; term && i < z->m->ndecls; i++)
        if (serves_alone(z, z->m->decls[i], d)) return true;
    return false;
}

static void report(Sizes *z, Decl *d, const Stmt *at, Diags *diags)
{
    const bool latent = d->block == BLOCK_LATENT || d->block == BLOCK_LIKELIHOOD;
    const Stmt *own = facts(z->a, d)->tildes.item[0];
    const Type *of = &at->lhs->type;
    Diag *m = latent ? diag(diags, own->lhs->span, DIAG_E0316, d->name, ast_text(z->a, at->lhs), span_line(at->span))
                     : diag(diags, own->lhs->span, DIAG_W0608, d->name, ast_text(z->a, at->lhs), span_line(at->span));
    const char *shape = of->rank == 1   ? arena_printf(z->a, "vector[%s]", ast_text(z->a, of->dim[0]))
                        : of->rank == 2 ? arena_printf(z->a, "matrix[%s, %s]", ast_text(z->a, of->dim[0]), ast_text(z->a, of->dim[1]))
                                        : "a type with sizes before";
    diag_help(m, "%s %s ~ ... has one for each; real %s ~ ... declares that one number is meant", shape, d->name, d->name);
}

// After types: one number shared by all elements of a vectorised statement, where one for each was probably meant.
static void check_shared(Arena *a, Model *m, const Library *lib, Diags *d)
{
    Sizes z = {.a = a, .m = m, .lib = lib};
    for (Block *b = m->blocks; b; b = b->next) visit_stmts(&z, b->body);
    Stmt **may = NEW_N(a, Stmt *, z.statements.n);
    int n = 0;
    for (int k = 0; k < z.statements.n; k++)
        if (may_serve_all(&z, z.statements.item[k])) may[n++] = z.statements.item[k];
    for (int i = 0; i < m->ndecls; i++) {
        Decl *of = m->decls[i];
        if (of->type.rank || !undecided_size(a, lib, of) || of->block == BLOCK_PREDICT) continue;
        const bool element = of->block != BLOCK_PRIOR || like_an_element(&z, of);
        for (int k = 0; k < n; k++)
            if (serves_all(&z, may[k], of) && (element || like_an_effect(&z, may[k], of))) {
                report(&z, of, may[k], d);
                break;
            }
    }
}

// ---- the types of a model ----

bool front_types(Arena *a, Model *m, const Library *lib, Diags *d)
{
    int errors = diags_errors(d);
    from_uses(a, m, lib);
    Types t = {.a = a, .d = d, .lib = lib};
    types_model(&t, m);
    if (diags_errors(d) == errors) check_shared(a, m, lib, d);
    return diags_errors(d) == errors;
}
