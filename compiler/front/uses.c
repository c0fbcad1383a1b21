// uses.c -- scopes, and the names that are used in them: each finds its declaration, or gets a message that says what may be meant.
//
// Needs: declared, but for indices.     Gives: Ast.decl, Stmt.dist.     Keeps: the tree, but for calls of the model's functions.
#include <string.h>
#include "resolve.h"

// ---- scopes ----

// After so many mistakes the search for what was meant, all names against all, is not worth its time.
static bool worth_a_hint(const Resolve *r)
{
    enum { MANY = 100 };
    return diags_errors(r->d) < MANY;
}

Decl *resolve_index(const Resolve *r, const char *name)
{
    for (int i = r->scope.n - 1; i >= 0; i--) {
        Decl *d = r->scope.item[i];
        if (d->name == name) return d;
    }
    return NULL;
}

Decl *resolve_lookup(const Resolve *r, const char *name)
{
    Decl *d = resolve_index(r, name);
    return d ? d : map_get(&r->names, name);
}

static void push_index(Resolve *r, Decl *index)
{
    Decl *other = resolve_lookup(r, index->name);
    if (other) {
        Diag *m = diag(r->d, index->span, DIAG_E0207, index->name, index->name);
        diag_help(m, "the other is on line %d; choose a different name for the index", span_line(other->span));
    }
    list_add(r->a, &r->scope, index);
}

// The statement list `s`, each statement with the indices and conditions around it in scope.
void resolve_each_stmt(Resolve *r, Stmt *s, void (*visit)(Resolve *, Stmt *), bool report_hidden)
{
    for (; s; s = s->next) {
        visit(r, s);
        switch (s->kind) {
        case STMT_FOR:
            if (report_hidden) push_index(r, s->index);
            else list_add(r->a, &r->scope, s->index);
            resolve_each_stmt(r, s->body, visit, report_hidden);
            pop(&r->scope);
            break;
        case STMT_IF:
            list_add(r->a, &r->where, s);
            resolve_each_stmt(r, s->body, visit, report_hidden);
            pop(&r->where);
            break;
        case STMT_BLOCK: resolve_each_stmt(r, s->body, visit, report_hidden); break;
        case STMT_TILDE:
        case STMT_DEFINE:
        case STMT_DECLARE:
        case STMT_TARGET: break;
        }
    }
}

// ---- uses ----

// Among the functions of the language, of the library and of the model.
static const char *nearest_of_all(const Resolve *r, const char *name)
{
    Nearest near = {.wanted = name, .is_function = true};
    for (const FunctionDecl *f = r->m ? r->m->functions : NULL; f; f = f->next) nearest_try(&near, f->name);
    for (const FunctionDecl *f = r->lib->functions; f; f = f->next) nearest_try(&near, f->name);
    const char *other = nearest_function(name);
    if (other) nearest_try(&near, other);
    return near.best;
}

static bool is_index_in(const Stmt *s, const char *name)
{
    for (; s; s = s->next)
        if ((s->kind == STMT_FOR && s->index->name == name) || is_index_in(s->body, name)) return true;
    return false;
}

// Of some loop of the model.
static bool is_index_elsewhere(const Resolve *r, const char *name)
{
    for (const Block *b = r->m ? r->m->blocks : NULL; b; b = b->next)
        if (is_index_in(b->body, name)) return true;
    return false;
}

void resolve_undefined(Resolve *r, Ast *e)
{
    Decl *d = map_get(&r->lost, e->name);
    if (!d) {
        d = NEW(r->a, Decl);
        *d = (Decl){.kind = DECL_VARIABLE, .name = e->name, .span = e->span, .order = -1, .poisoned = true};
        map_put(r->a, &r->lost, e->name, d);
        Diag *m = diag(r->d, e->span, DIAG_E0203, e->name);
        if (!worth_a_hint(r)) {
            e->decl = d;
            return;
        }
        Nearest near = {.wanted = e->name};
        for (int i = 0; i < r->order.n; i++) nearest_try(&near, ((Decl *)r->order.item[i])->name);
        for (int i = 0; i < r->scope.n; i++) nearest_try(&near, ((Decl *)r->scope.item[i])->name);
        Decl *same = near.best ? resolve_lookup(r, near.best) : NULL;
        const FunctionDecl *f = r->function;
        if (f) diag_help(m, "a function knows its arguments alone: %s", signature(r->a, f->name, f->params, f->nparams));
        else if (is_index_elsewhere(r, e->name))
            diag_help(m, "`%s` is an index, known in the statements of its loop alone: a size is the same in all iterations", e->name);
        else if (e->name == intern("pi") || e->name == intern("e")) diag_help(m, "the constant is written %s()", e->name);
        else if (same) diag_help(m, "`%s` is defined on line %d", near.best, span_line(same->span));
        else if (function_exists(e->name)) diag_help(m, "`%s` is a function: its arguments follow in parentheses", e->name);
        else if (library_distribution(r->lib, e->name)) diag_help(m, "`%s` is a distribution: it is written after `~`", e->name);
    }
    e->decl = d;
}

static bool is_base_measure(const Resolve *r, const char *name)
{
    for (const Distribution *d = r->lib->distributions; d; d = d->next)
        if (d->base && d->base->kind == AST_CALL && d->base->name == name) return true;
    return false;
}

// What is wrong with normal_lpmf, gig_lcdf: there is the distribution, but not this function of it.
static const char *law_hint(const Resolve *r, const char *name)
{
    static const char *const suffixes[] = {"_lpdf", "_lpmf", "_lccdf", "_lcdf", "_cdf"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const size_t m = strlen(suffixes[i]);
        if (n <= m || strcmp(name + n - m, suffixes[i]) != 0) continue;
        const char *stem = intern(arena_printf(r->a, "%.*s", (int)(n - m), name));
        const Distribution *d = library_distribution(r->lib, stem);
        if (!d) continue;
        if (i >= 2) return arena_printf(r->a, "the library does not know the distribution function of `%s`", stem);
        return arena_printf(r->a, "the log density of `%s` is %s_%s", stem, stem, i == 0 ? "lpmf" : "lpdf");
    }
    return NULL;
}

// What other languages call a density: normal_pdf, normal_logpdf, and normal_log of older Stan.
static const char *density_hint(const Resolve *r, const char *name)
{
    static const char *const suffixes[] = {"_pdf", "_pmf", "_logpdf", "_logpmf", "_log"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const size_t m = strlen(suffixes[i]);
        if (n <= m || strcmp(name + n - m, suffixes[i]) != 0) continue;
        const char *stem = intern(arena_printf(r->a, "%.*s", (int)(n - m), name));
        LawPart part;
        if (!library_distribution(r->lib, stem)) continue;
        const char *density = intern(arena_printf(r->a, "%s_lpdf", stem));
        if (!law_function(r->lib, density, &part)) density = arena_printf(r->a, "%s_lpmf", stem);
        return arena_printf(r->a, "the log density of `%s` is %s", stem, density);
    }
    return NULL;
}

static void check_function(Resolve *r, const Ast *e)
{
    LawPart part;
    if (function_exists(e->name) || is_base_measure(r, e->name) || (r->modelling && law_function(r->lib, e->name, &part))) return;
    const FunctionDecl *f = function_named(r->m, r->lib, e->name, -1);
    if (f) {
        Diag *m = diag(r->d, e->span, DIAG_E0306, e->name, plural(r->a, f->nparams, "argument", "arguments"), e->nkids);
        diag_help(m, "%s", signature(r->a, f->name, f->params, f->nparams));
        return;
    }
    Diag *m = diag(r->d, e->span, DIAG_E0205, e->name);
    const char *hint = foreign_function(e->name), *suffix, *stem = without_suffix(e->name, &suffix);
    if (hint) diag_help(m, "%s", hint);
    else if (stem && library_distribution(r->lib, stem) && strcmp(suffix, "_rng") == 0)
        diag_help(m, "`~` draws, in the predict block too: z ~ %s(...);", stem);
    else if (law_hint(r, e->name)) diag_help(m, "%s", law_hint(r, e->name));
    else if (density_hint(r, e->name)) diag_help(m, "%s", density_hint(r, e->name));
    else if (resolve_lookup(r, e->name)) diag_help(m, "`%s` is a variable: subscripts are written in brackets, %s[i]", e->name, e->name);
    else if (library_distribution(r->lib, e->name)) diag_help(m, "`%s` is a distribution: it is written after `~`", e->name);
    else if (nearest_of_all(r, e->name)) diag_help(m, "is `%s` meant?", nearest_of_all(r, e->name));
}

// ---- functions of the model and of the library ----

static bool name_is_taken(void *resolve, const char *name) { return resolve_lookup(resolve, name) != NULL; }

static void check_function_name(Resolve *r, const FunctionDecl *f)
{
    LawPart part;
    const char *what = function_exists(f->name)                ? "a function of the language"
                       : law_function(r->lib, f->name, &part)  ? "a function of a distribution"
                       : library_distribution(r->lib, f->name) ? "a distribution"
                       : is_base_measure(r, f->name)           ? "a base measure"
                                                               : NULL;
    if (what) diag(r->d, f->span, DIAG_E0215, f->name, what);
    for (const FunctionDecl *o = r->m ? r->m->functions : r->lib->functions; o != f; o = o->next) {
        if (o->name != f->name || o->nparams != f->nparams) continue;
        Diag *m = diag(r->d, f->span, DIAG_E0201, f->name);
        diag_help(m, "the first definition is on line %d", span_line(o->span));
    }
}

void resolve_function(Resolve *r, FunctionDecl *f)
{
    if (f->state == FUNCTION_RESOLVED) return;
    if (f->state == FUNCTION_ASKED) {
        if (!f->poisoned) {
            Diag *m = diag(r->d, f->span, DIAG_E0214, f->name);
            diag_help(m, "a call is replaced by the right side; what recurs is a series, %s",
                      "x[1] = ...; for (t in 2:T) x[t] = ... x[t - 1] ...;");
        }
        f->poisoned = true;
        return;
    }
    f->state = FUNCTION_ASKED;
    const int before = diags_errors(r->d);
    Resolve inner = {.a = r->a, .d = r->d, .lib = r->lib, .m = r->m, .function = f, .inliner = r->inliner, .modelling = r->modelling};
    check_function_name(r, f);
    for (int i = 0; i < f->nparams; i++) {
        map_put(r->a, &inner.names, f->params[i]->name, f->params[i]);
        list_add(r->a, &inner.order, f->params[i]);
    }
    resolve_use(&inner, f->body);
    f->poisoned |= diags_errors(r->d) > before;
    f->state = FUNCTION_RESOLVED;
}

// True: e is a call of a function, and is its right side now; or a message has been given, and nothing more is said of it.
static bool use_function(Resolve *r, Ast *e)
{
    FunctionDecl *f = (FunctionDecl *)function_named(r->m, r->lib, e->name, e->nkids);
    if (!f) return false;
    resolve_use_all(r, e->kid, e->nkids);
    resolve_function(r, f);
    if (!f->poisoned && inline_call(r->inliner, e, f, name_is_taken, r)) return true;
    *e = (Ast){.kind = AST_STRING, .span = e->span, .name = e->name, .depth = 1};
    return true;
}

// Calls below are deeper when they are replaced.
static void deepen(Resolve *r, Ast *e)
{
    for (int i = 0; i < e->nkids; i++)
        if (e->kid[i] && e->kid[i]->depth >= e->depth) e->depth = e->kid[i]->depth + 1;
    if (e->depth <= MAX_DEPTH) return;
    diag(r->d, e->span, DIAG_E0104, MAX_DEPTH);
    *e = (Ast){.kind = AST_INT, .span = e->span, .depth = 1};
}

void resolve_use(Resolve *r, Ast *e)
{
    if (!e) return;
    if (e->kind == AST_NAME) {
        e->decl = resolve_lookup(r, e->name);
        if (!e->decl) resolve_undefined(r, e);
        else if (e->decl->block == BLOCK_PREDICT && e->decl->kind != DECL_INDEX && !r->predicting) diag(r->d, e->span, DIAG_E0213, e->name);
        return;
    }
    if (e->kind == AST_CALL && use_function(r, e)) return;
    if (e->kind == AST_CALL) check_function(r, e);
    if (e->kind == AST_CALL && is_solver(e->name) && e != r->whole) {
        Diag *m = diag(r->d, e->span, DIAG_E0315, "the solution of a differential equation");
        diag_help(m, "it is a definition of its own: z = %s(...); or, in a loop, z[j] = %s(...);", e->name, e->name);
    }
    if (e->kind == AST_FUNCTION) {
        for (int i = 0; i < 2; i++) push_index(r, e->kid[i]->decl);
        resolve_use(r, e->kid[2]);
        for (int i = 0; i < 2; i++) pop(&r->scope);
        deepen(r, e);
        return;
    }
    if (e->kind == AST_REDUCE) {
        resolve_use(r, e->kid[0]);
        resolve_use(r, e->kid[1]);
        push_index(r, e->decl);
        resolve_use(r, e->kid[2]);
        pop(&r->scope);
        deepen(r, e);
        return;
    }
    for (int i = 0; i < e->nkids; i++) resolve_use(r, e->kid[i]);
    deepen(r, e);
}

void resolve_use_all(Resolve *r, Ast **kid, int n)
{
    for (int i = 0; i < n; i++) resolve_use(r, kid[i]);
}

static const Decl *first_data(const Ast *e)
{
    if (!e) return NULL;
    if (e->kind == AST_NAME) return e->decl && e->decl->kind == DECL_DATA ? e->decl : NULL;
    const Decl *d = NULL;
    for (int i = 0; i < e->nkids && !d; i++) d = first_data(e->kid[i]);
    return d;
}

void resolve_use_decl(Resolve *r, Decl *d)
{
    for (int i = 0; i < d->type.rank; i++) resolve_use(r, d->type.dim[i]);
    if (!d->in_loop) resolve_use(r, d->lower);  // else where its loop is read
    if (!d->in_loop) resolve_use(r, d->upper);
    resolve_use(r, d->init);
}

static void check_distribution(Resolve *r, Stmt *s)
{
    if (!s->dist) {  // its arguments were wrong
        if (s->decl && s->decl->kind == DECL_VARIABLE) s->decl->poisoned = true;
        return;
    }
    const Distribution *dist = library_distribution(r->lib, s->dist);
    if (!dist) {
        Diag *m = diag(r->d, s->dist_span, DIAG_E0204, s->dist);
        const char *hint = foreign_distribution(s->dist), *suffix, *stem = without_suffix(s->dist, &suffix);
        Nearest near = {.wanted = s->dist};
        for (const Distribution *d = r->lib->distributions; d; d = d->next)
            if (!d->is_family) nearest_try(&near, d->name);
        if (hint) diag_help(m, "%s", hint);
        else if (stem && library_distribution(r->lib, stem)) diag_help(m, "after `~` a distribution has no suffix: %s(...)", stem);
        else if (near.best) diag_help(m, "is `%s` meant?", near.best);
        else if (function_exists(s->dist)) diag_help(m, "a definition is written with `=`");
        else if (resolve_lookup(r, s->dist)) diag_help(m, "`%s` is a name of the model; docs/stdlib.md lists the distributions", s->dist);
        if (s->decl && s->decl->kind == DECL_VARIABLE) s->decl->poisoned = true;
        s->dist = NULL;
        return;
    }
    if (s->nargs == dist->nparams) return;
    Diag *m = diag(r->d, s->dist_span, DIAG_E0401, s->dist, plural(r->a, dist->nparams, "argument", "arguments"), s->nargs);
    diag_help(m, "%s", signature(r->a, dist->name, dist->params, dist->nparams));
    if (s->decl && s->decl->kind == DECL_VARIABLE) s->decl->poisoned = true;
    s->dist = NULL;
}

// Whether an index is among the subscripts, or ends the range of one that is. Ranges may be slices: i in first[j]:last[j].
static bool runs_with(const Resolve *r, const Ast *subscripts, const Decl *index)
{
    if (mentions_decl(subscripts, index)) return true;
    for (int i = 0; i < r->scope.n; i++) {
        const Decl *inner = r->scope.item[i];
        if (inner == index || !(mentions_decl(inner->lo, index) || mentions_decl(inner->hi, index))) continue;
        if (runs_with(r, subscripts, inner)) return true;
    }
    return false;
}

// A loop gives a name one value for each index, so the index has to be among its subscripts.
static void check_indices(Resolve *r, const Stmt *s)
{
    const Ast *root = place_root(s->lhs);
    for (int i = 0; root && i < r->scope.n; i++) {
        const Decl *index = r->scope.item[i];
        if (runs_with(r, s->lhs, index)) continue;
        Diag *m = diag(r->d, s->lhs->span, DIAG_E0212, root->name, index->name);
        const char *end = s->lhs->kind == AST_INDEX ? "..., " : "";
        diag_help(m, "each has its own: %s[%s%s]", root->name, end, index->name);
        return;
    }
}

// z, z[j], z[j, , ]: of what it names, no part.
static bool takes_all(const Ast *lhs)
{
    for (int i = 1; i < lhs->nkids; i++)
        if (lhs->kid[i]->kind == AST_RANGE || (lhs->kid[i]->kind != AST_ALL && lhs->kid[i - 1]->kind == AST_ALL)) return false;
    return lhs->kind == AST_NAME || (lhs->kind == AST_INDEX && lhs->kid[0]->kind == AST_NAME);
}

void resolve_use_stmt(Resolve *r, Stmt *s)
{
    r->predicting = s->block == BLOCK_PREDICT;
    if (s->decl && s->decl->in_loop && s->decl->in_loop == s->lhs) {
        resolve_use(r, s->decl->lower);
        resolve_use(r, s->decl->upper);
    }
    switch (s->kind) {
    case STMT_TILDE:
        resolve_use(r, s->lhs);
        resolve_use_all(r, s->args, s->nargs);
        resolve_use(r, s->weights);
        resolve_use(r, s->lower);
        resolve_use(r, s->upper);
        check_distribution(r, s);
        for (Stmt *part = s->more; part; part = part->next) {
            part->decl = s->decl;
            resolve_use_all(r, part->args, part->nargs);
            check_distribution(r, part);
        }
        check_indices(r, s);
        break;
    case STMT_DEFINE:
        resolve_use(r, s->lhs);
        if (s->rhs->kind == AST_CALL && is_solver(s->rhs->name) && !s->link && takes_all(s->lhs) && s->decl &&
            s->decl->kind == DECL_DEFINITION) {
            r->whole = s->rhs;
            s->decl->recursive = true;  // an array that is computed, not substituted
        }
        resolve_use(r, s->rhs);
        check_indices(r, s);
        break;
    case STMT_DECLARE:
        if (s->decl && s->decl->in_loop) resolve_use(r, s->decl->in_loop);
        break;
    case STMT_TARGET: resolve_use(r, s->rhs); break;
    case STMT_FOR:
        resolve_use(r, s->index->lo);
        resolve_use(r, s->index->hi);
        resolve_use(r, s->index->places);
        break;
    case STMT_IF: resolve_use(r, s->cond); break;
    case STMT_BLOCK: break;
    }
}

// A sum of unknowns times data, or of their sums: its Jacobian, if there is one, is a constant.
static bool is_linear(Resolve *r, const Ast *e, bool *unknown)
{
    const char *culprit = NULL;
    if (depends_on_data_only(r->a, e, &culprit)) return true;
    *unknown = true;
    const bool left = e->nkids > 0 && depends_on_data_only(r->a, e->kid[0], &culprit),
               right = e->nkids > 1 && depends_on_data_only(r->a, e->kid[1], &culprit);
    switch (e->kind) {
    case AST_NAME: return e->decl && e->decl->kind == DECL_VARIABLE;
    case AST_INDEX:
        for (int i = 1; i < e->nkids; i++)
            if (!depends_on_data_only(r->a, e->kid[i], &culprit)) return false;
        return is_linear(r, e->kid[0], unknown);
    case AST_BINARY:
        switch (e->op) {
        case OP_ADD:
        case OP_SUB: return is_linear(r, e->kid[0], unknown) && is_linear(r, e->kid[1], unknown);
        case OP_MUL:
        case OP_ELT_MUL: return (left || right) && is_linear(r, e->kid[left], unknown);
        case OP_DIV:
        case OP_ELT_DIV: return right && is_linear(r, e->kid[0], unknown);
        default: return false;
        }
    case AST_UNARY: return e->op == OP_NEG && is_linear(r, e->kid[0], unknown);
    case AST_TRANSPOSE: return is_linear(r, e->kid[0], unknown);
    case AST_CALL: return e->nkids == 1 && (e->name == intern("sum") || e->name == intern("mean")) && is_linear(r, e->kid[0], unknown);
    case AST_REDUCE: return e->name == intern("sum") && left && right && is_linear(r, e->kid[2], unknown);
    case AST_COND: return left && is_linear(r, e->kid[1], unknown) && is_linear(r, e->kid[2], unknown);
    case AST_INT:
    case AST_REAL:
    case AST_STRING:
    case AST_RANGE:
    case AST_ALL:
    case AST_ARRAY:
    case AST_FUNCTION: return false;
    }
    return false;
}

// sum(u) ~ normal(0, s): target += normal_lpdf(sum(u) | 0, s), a factor of the density beside the distributions of the unknowns.
static bool is_factor(Resolve *r, Stmt *s)
{
    bool unknown = false;
    if (s->block == BLOCK_PREDICT || s->block == BLOCK_LET || s->block == BLOCK_DATA || s->more || s->lower || s->upper || !s->dist ||
        !library_distribution(r->lib, s->dist) || library_distribution(r->lib, s->dist)->discrete || !is_linear(r, s->lhs, &unknown) ||
        !unknown)
        return false;
    Ast *call = NEW(r->a, Ast);
    *call = (Ast){.kind = AST_CALL,
                  .span = s->span,
                  .name = intern(arena_printf(r->a, "%s_lpdf", s->dist)),
                  .nkids = 1 + s->nargs,
                  .kid = NEW_N(r->a, Ast *, 1 + s->nargs)};
    call->kid[0] = s->lhs;
    for (int i = 0; i < s->nargs; i++) call->kid[1 + i] = s->args[i];
    for (int i = 0; i < call->nkids; i++)
        if (call->kid[i]->depth >= call->depth) call->depth = call->kid[i]->depth + 1;
    s->kind = STMT_TARGET;
    s->rhs = call;
    return true;
}

// log(y[i]) ~ ...: an expression of data may be drawn; of unknowns, one that is linear; another would need its Jacobian.
void resolve_left_side(Resolve *r, Stmt *s)
{
    if (s->kind != STMT_TILDE || place_root(s->lhs)) return;
    const char *culprit = NULL;
    s->decl = (Decl *)first_data(s->lhs);
    if (depends_on_data_only(r->a, s->lhs, &culprit) && s->decl) return;
    if (culprit && is_factor(r, s)) return;
    Diag *m = diag(r->d, s->lhs->span, DIAG_E0108, "this expression", "~");
    if (culprit && s->dist && library_distribution(r->lib, s->dist) && s->block != BLOCK_PREDICT && !s->more && !s->lower && !s->upper)
        diag_help(m,
                  "only data, and sums of unknowns times data, are allowed here, and `%s` is unknown: give `%s` its own distribution; or "
                  "write target += %s_%s(... | ...), a factor of the density without a Jacobian",
                  culprit, culprit, s->dist, library_distribution(r->lib, s->dist)->discrete ? "lpmf" : "lpdf");
    else if (culprit)
        diag_help(m, "only data may be transformed here, and `%s` is unknown: give `%s` its own distribution", culprit, culprit);
    else diag_help(m, "a name, a name with subscripts, or an expression of data is written to the left of `~`");
}
