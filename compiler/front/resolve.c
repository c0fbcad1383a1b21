// resolve.c -- names: every use finds its declaration.
//
//   before   theta[j] ~ normal(mu, tau)          names are text
//   after    the same, with theta, j, mu and tau pointing at declarations; Model.decls lists all of them
//
// Order is free, so the blocks are read three times: written types first, then what `~` and `=` declare by themselves,
// then uses. A name that is wrong is reported once and stays marked, so that one mistake gives one message.
//
// Needs: parsed.     Gives: Ast.decl, Stmt.decl, Request.decls, Model.decls.
#include <stdlib.h>
#include <string.h>
#include "check.h"

typedef struct Resolve {
    Arena *a;
    Diags *d;
    const Library *lib;
    Model *m;                // NULL: a library
    FunctionDecl *function;  // whose right side is being read
    Inliner *inliner;
    Map names;         // name -> Decl
    Map lost;          // name -> Decl, of names used but never defined
    List order;        // Decl, as met
    List scope;        // Decl of the indices around the place being read
    List where;        // the conditions around it; in a search, the declarations on the way
    bool modelling;    // not a library
    bool predicting;   // reading a predict block
    Map marked;        // statements under a condition, and data that some statement observes
    const Ast *whole;  // the right side of the definition that is being read: where a differential equation may be solved
} Resolve;

// ---- scopes ----

// After so many mistakes the search for what was meant, all names against all, is not worth its time.
static bool worth_a_hint(const Resolve *r)
{
    enum { MANY = 100 };
    return diags_errors(r->d) < MANY;
}

static Decl *index_in_scope(const Resolve *r, const char *name)
{
    for (int i = r->scope.n - 1; i >= 0; i--) {
        Decl *d = r->scope.item[i];
        if (d->name == name) return d;
    }
    return NULL;
}

static Decl *lookup(const Resolve *r, const char *name)
{
    Decl *d = index_in_scope(r, name);
    return d ? d : map_get(&r->names, name);
}

static void push_index(Resolve *r, Decl *index)
{
    Decl *other = lookup(r, index->name);
    if (other) {
        Diag *m = diag(r->d, index->span, DIAG_E0207, index->name, index->name);
        diag_help(m, "the other is on line %d; choose a different name for the index", span_line(other->span));
    }
    list_add(r->a, &r->scope, index);
}

static void pop(List *l) { l->n--; }

// The statement list `s`, each statement with the indices and conditions around it in scope.
static void each_stmt(Resolve *r, Stmt *s, void (*visit)(Resolve *, Stmt *), bool report_hidden)
{
    for (; s; s = s->next) {
        visit(r, s);
        switch (s->kind) {
        case STMT_FOR:
            if (report_hidden) push_index(r, s->index);
            else list_add(r->a, &r->scope, s->index);
            each_stmt(r, s->body, visit, report_hidden);
            pop(&r->scope);
            break;
        case STMT_IF:
            list_add(r->a, &r->where, s);
            each_stmt(r, s->body, visit, report_hidden);
            pop(&r->where);
            break;
        case STMT_BLOCK: each_stmt(r, s->body, visit, report_hidden); break;
        case STMT_TILDE:
        case STMT_DEFINE:
        case STMT_DECLARE:
        case STMT_TARGET: break;
        }
    }
}

// ---- what is declared ----

static void add(Resolve *r, Decl *d)
{
    map_put(r->a, &r->names, d->name, d);
    list_add(r->a, &r->order, d);
}

static void twice(Resolve *r, Span at, const Decl *first)
{
    Diag *m = diag(r->d, at, DIAG_E0201, first->name);
    diag_help(m, "the first definition is on line %d", span_line(first->span));
}

// real<lower=0> m[i]; m[i] = ...; in a loop is real<lower=0> m[i] = ...;
static void hand_over(Stmt *s)
{
    for (Stmt *t = s->next; t; t = t->next) {
        if ((t->kind != STMT_TILDE && t->kind != STMT_DEFINE) || t->decl || !t->lhs || t->lhs->kind != AST_INDEX ||
            t->lhs->nkids != s->lhs->nkids)
            continue;
        bool same = true;
        for (int i = 0; i < s->lhs->nkids; i++) same &= ast_same(t->lhs->kid[i], s->lhs->kid[i]);
        if (!same) continue;
        t->decl = s->decl;
        t->decl->in_loop = t->lhs;
        t->decl->outer = 0;
        s->decl = NULL;
        s->kind = STMT_BLOCK;
        return;
    }
}

// real<lower=lo[i]> b[i] ~ ...; in a loop: what follows the name are subscripts, and the loop decides its extents.
static void declare_in_loop(Resolve *r, Stmt *s)
{
    Decl *d = s->decl;
    if (!r->scope.n || !d->outer || d->kind == DECL_DATA) return;
    Ast *name = NEW(r->a, Ast), *place = NEW(r->a, Ast);
    *name = (Ast){.kind = AST_NAME, .span = d->span, .name = d->name, .depth = 1};
    *place = (Ast){.kind = AST_INDEX, .span = d->span, .nkids = d->outer + 1, .depth = 2};
    place->kid = NEW_N(r->a, Ast *, d->outer + 1);
    place->kid[0] = name;
    for (int i = 0; i < d->outer; i++) {
        place->kid[i + 1] = d->type.dim[i];
        if (d->type.dim[i]->depth >= place->depth) place->depth = d->type.dim[i]->depth + 1;
    }
    memmove(d->type.dim, d->type.dim + d->outer, sizeof *d->type.dim * (size_t)(d->type.rank - d->outer));
    d->type.rank -= d->outer;
    d->in_loop = s->lhs = place;
    if (s->kind == STMT_DECLARE) hand_over(s);
}

static void declare_typed(Resolve *r, Stmt *s)
{
    if (!s->decl) return;
    declare_in_loop(r, s);
    if (!s->decl) return;  // the next statement's
    Decl *first = map_get(&r->names, s->decl->name);
    if (first) {
        twice(r, s->decl->span, first);
        s->decl = first;
        first->poisoned = true;
        return;
    }
    if (s->kind == STMT_DEFINE) s->decl->kind = DECL_DEFINITION;
    add(r, s->decl);
}

static Decl *declare_untyped(Resolve *r, DeclKind kind, const Ast *name, BlockKind block)
{
    Decl *d = NEW(r->a, Decl);
    d->kind = kind;
    d->name = name->name;
    d->span = name->span;
    d->block = block;
    add(r, d);
    return d;
}

static void both(Resolve *r, const Stmt *drawn, Decl *d)
{
    const bool first = span_before(drawn->span, d->sites->span);
    Diag *m = diag(r->d, first ? d->sites->span : drawn->span, DIAG_E0209, d->name);
    diag_help(m, "the other statement is about line %d; each element is either drawn with `~` or computed with `=`",
              span_line(first ? drawn->span : d->sites->span));
    d->poisoned = true;
}

// to_vector(e) as e; NULL: it is none.
static Ast *within_to_vector(const Ast *e)
{
    return e->kind == AST_CALL && e->nkids == 1 && e->name == intern("to_vector") ? e->kid[0] : NULL;
}

// to_vector(z) ~ std_normal(); for an unknown z is z ~ std_normal(); arguments that are no numbers are of its shape, or to_vector of such.
static void take_whole(Resolve *r, Stmt *s)
{
    Ast *whole = within_to_vector(s->lhs), *root = whole ? place_root(whole) : NULL;
    const Decl *d = root ? map_get(&r->names, root->name) : NULL;
    const Distribution *dist = s->dist ? library_distribution(r->lib, s->dist) : NULL;
    if (!root || s->more || !dist || dist->value_rank || (d && d->kind != DECL_VARIABLE)) return;
    for (int i = 0; i < s->nargs; i++)
        if (within_to_vector(s->args[i])) s->args[i] = within_to_vector(s->args[i]);
    s->lhs = whole;
}

static void declare_tilde(Resolve *r, Stmt *s)
{
    take_whole(r, s);
    const Ast *root = place_root(s->lhs);
    if (!root) return;  // log(y[i]) ~ ...: seen to when names are resolved
    if (index_in_scope(r, root->name)) {
        diag(r->d, root->span, DIAG_E0108, arena_printf(r->a, "the index `%s`", root->name), "~");
        return;
    }
    Decl *d = s->decl ? s->decl : map_get(&r->names, root->name);
    if (!d) d = declare_untyped(r, DECL_VARIABLE, root, s->block);
    s->decl = d;
    if (d->kind == DECL_DEFINITION) list_add(r->a, &facts(r->a, d)->tildes, s);
    if (d->kind == DECL_VARIABLE) {
        if (!facts(r->a, d)->tildes.n) d->block = s->block;
        list_add(r->a, &facts(r->a, d)->tildes, s);
    }
}

static void declare_definition(Resolve *r, Stmt *s)
{
    const Ast *root = place_root(s->lhs);
    if (index_in_scope(r, root->name)) {
        diag(r->d, root->span, DIAG_E0108, arena_printf(r->a, "the index `%s`", root->name), "=");
        return;
    }
    Decl *d = s->decl ? s->decl : map_get(&r->names, root->name);
    if (!d) d = declare_untyped(r, DECL_DEFINITION, root, s->block);
    s->decl = d;
    if (d->kind == DECL_DATA) {  // y[i] = z[i] > 0: a deterministic observation
        if (s->block == BLOCK_LET || s->block == BLOCK_PREDICT) {
            Diag *m = diag(r->d, s->lhs->span, DIAG_E0206, d->name);
            diag_help(m, "`%s` is read from the data file (line %d); give the result another name", d->name, span_line(d->span));
        } else if (s->link) {
            diag(r->d, s->lhs->span, DIAG_E0206, d->name);
        }
        return;
    }
    if (d->kind == DECL_VARIABLE) {
        d->kind = DECL_DEFINITION;  // `real m;` and `m = ...;` apart
        d->block = s->block;
    }
    Facts *f = facts(r->a, d);
    *(f->last_site ? &f->last_site->next_site : &d->sites) = s;
    f->last_site = s;
}

static void declare(Resolve *r, Stmt *s)
{
    if (s->kind == STMT_TILDE) declare_tilde(r, s);
    if (s->kind == STMT_DEFINE) declare_definition(r, s);
}

// A type in a loop, of what no statement is about: density 1 for the elements that the loop names. Otherwise it decides the shape;
// bounds, which may read the loop's indices, need a statement there.
static void declare_flat(Resolve *r, Stmt *s)
{
    Decl *d = s->decl;
    if (s->kind != STMT_DECLARE || !d || !d->in_loop) return;
    if ((facts(r->a, d)->tildes.n || d->sites) && !d->lower && !d->upper) return;
    s->kind = STMT_TILDE;
    s->dist = intern("flat");
    s->dist_span = s->span;
    declare_tilde(r, s);
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

static void undefined(Resolve *r, Ast *e)
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
        Decl *same = near.best ? lookup(r, near.best) : NULL;
        const FunctionDecl *f = r->function;
        if (f) diag_help(m, "a function knows its arguments alone: %s", signature(r->a, f->name, f->params, f->nparams));
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
    else if (lookup(r, e->name)) diag_help(m, "`%s` is a variable: subscripts are written in brackets, %s[i]", e->name, e->name);
    else if (library_distribution(r->lib, e->name)) diag_help(m, "`%s` is a distribution: it is written after `~`", e->name);
    else if (nearest_of_all(r, e->name)) diag_help(m, "is `%s` meant?", nearest_of_all(r, e->name));
}

static void use_all(Resolve *r, Ast **kid, int n);
static void use(Resolve *r, Ast *e);

// ---- functions of the model and of the library ----

static bool name_is_taken(void *resolve, const char *name) { return lookup(resolve, name) != NULL; }

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

static void resolve_function(Resolve *r, FunctionDecl *f)
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
    use(&inner, f->body);
    f->poisoned |= diags_errors(r->d) > before;
    f->state = FUNCTION_RESOLVED;
}

// True: e is a call of a function, and is its right side now; or a message has been given, and nothing more is said of it.
static bool use_function(Resolve *r, Ast *e)
{
    FunctionDecl *f = (FunctionDecl *)function_named(r->m, r->lib, e->name, e->nkids);
    if (!f) return false;
    use_all(r, e->kid, e->nkids);
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

static void use(Resolve *r, Ast *e)
{
    if (!e) return;
    if (e->kind == AST_NAME) {
        e->decl = lookup(r, e->name);
        if (!e->decl) undefined(r, e);
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
        use(r, e->kid[2]);
        for (int i = 0; i < 2; i++) pop(&r->scope);
        deepen(r, e);
        return;
    }
    if (e->kind == AST_REDUCE) {
        use(r, e->kid[0]);
        use(r, e->kid[1]);
        push_index(r, e->decl);
        use(r, e->kid[2]);
        pop(&r->scope);
        deepen(r, e);
        return;
    }
    for (int i = 0; i < e->nkids; i++) use(r, e->kid[i]);
    deepen(r, e);
}

static void use_all(Resolve *r, Ast **kid, int n)
{
    for (int i = 0; i < n; i++) use(r, kid[i]);
}

static const Decl *first_data(const Ast *e)
{
    if (!e) return NULL;
    if (e->kind == AST_NAME) return e->decl && e->decl->kind == DECL_DATA ? e->decl : NULL;
    const Decl *d = NULL;
    for (int i = 0; i < e->nkids && !d; i++) d = first_data(e->kid[i]);
    return d;
}

static void use_decl(Resolve *r, Decl *d)
{
    for (int i = 0; i < d->type.rank; i++) use(r, d->type.dim[i]);
    if (!d->in_loop) use(r, d->lower);  // else where its loop is read
    if (!d->in_loop) use(r, d->upper);
    use(r, d->init);
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
        else if (lookup(r, s->dist) || function_exists(s->dist)) diag_help(m, "a definition is written with `=`");
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

static void use_stmt(Resolve *r, Stmt *s)
{
    r->predicting = s->block == BLOCK_PREDICT;
    if (s->decl && s->decl->in_loop && s->decl->in_loop == s->lhs) {
        use(r, s->decl->lower);
        use(r, s->decl->upper);
    }
    switch (s->kind) {
    case STMT_TILDE:
        use(r, s->lhs);
        use_all(r, s->args, s->nargs);
        use(r, s->weights);
        use(r, s->lower);
        use(r, s->upper);
        check_distribution(r, s);
        for (Stmt *part = s->more; part; part = part->next) {
            part->decl = s->decl;
            use_all(r, part->args, part->nargs);
            check_distribution(r, part);
        }
        check_indices(r, s);
        break;
    case STMT_DEFINE:
        use(r, s->lhs);
        if (s->rhs->kind == AST_CALL && is_solver(s->rhs->name) && !s->link && takes_all(s->lhs) && s->decl &&
            s->decl->kind == DECL_DEFINITION) {
            r->whole = s->rhs;
            s->decl->recursive = true;  // an array that is computed, not substituted
        }
        use(r, s->rhs);
        check_indices(r, s);
        break;
    case STMT_DECLARE:
        if (s->decl && s->decl->in_loop) use(r, s->decl->in_loop);
        break;
    case STMT_TARGET: use(r, s->rhs); break;
    case STMT_FOR:
        use(r, s->index->lo);
        use(r, s->index->hi);
        break;
    case STMT_IF: use(r, s->cond); break;
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
static void check_left_side(Resolve *r, Stmt *s)
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

// ---- names with a meaning ----

// target = e; would define a name where a factor of the density is meant (data may have the name: nothing is read from files by mistake).
// Programs that read CmdStan's files take a column whose name ends in `__` for a diagnostic of the sampler.
static void check_name(Resolve *r, Decl *d)
{
    const size_t n = strlen(d->name);
    const bool column = n > 2 && strcmp(d->name + n - 2, "__") == 0;
    const char *hint = d->kind == DECL_DATA ? NULL : foreign_name(d->name);
    if (!hint && !column) return;
    Diag *m = diag(r->d, d->span, DIAG_E0116, d->name,
                   d->kind == DECL_DATA       ? "data"
                   : d->kind == DECL_VARIABLE ? "an unknown"
                                              : "a definition");
    if (hint) diag_help(m, "%s", hint);
    else diag_help(m, "names that end in `__` are columns of the output about the sampler, such as lp__");
    d->poisoned = true;
}

// ---- the same elements twice ----

static bool conditional(const Resolve *r, const Stmt *s) { return map_get(&r->marked, s) != NULL; }

static void check_twice(Resolve *r, Decl *d, bool drawn)
{
    List sites = {0};
    if (d->kind == DECL_DEFINITION && !drawn)
        for (Stmt *s = d->sites; s; s = s->next_site) list_add(r->a, &sites, s);
    else if (drawn) sites = facts(r->a, d)->tildes;
    if (sites.n > MANY_SITES) return;
    for (int j = 1; j < sites.n; j++)
        for (int i = 0; i < j; i++) {
            const Stmt *x = sites.item[i], *y = sites.item[j];
            if (conditional(r, x) || conditional(r, y)) continue;
            bool whole = x->lhs->kind == AST_NAME || y->lhs->kind == AST_NAME;
            if (!whole && !same_elements(x->lhs, y->lhs)) continue;
            Diag *m = diag(r->d, y->lhs->span, drawn ? DIAG_E0202 : DIAG_E0201, d->name);
            if (x->span.source == y->lhs->span.source) diag_help(m, "the first is on line %d", span_line(x->span));
            else diag_help(m, "the first is in %s", span_place(r->a, x->span));
            if (drawn) diag_help(m, "another factor of the joint density is written target += ...;");
            d->poisoned = true;
            return;
        }
}

// ---- elements drawn and elements computed ----

// A name with both `~` and `=`. A definition of data alone is data, and its `~` an observation. Otherwise some elements are drawn and
// others computed, as in alpha[1] = 0; for (j in 2:J) alpha[j] ~ ...; the name is then an unknown with definitions (Decl.sites).
static void settle_both(Resolve *r, Decl *d)
{
    const List *drawn = &facts(r->a, d)->tildes;
    if (d->kind != DECL_DEFINITION || !drawn->n || d->poisoned) return;
    const char *culprit;
    bool data = decl_data_only(r->a, d, &culprit);
    // m ~ ...; m = mean(y); in prior is a slip
    for (const Stmt *t = d->sites; t; t = t->next_site) data &= t->block == BLOCK_LET || t->block == BLOCK_LIKELIHOOD;
    for (int i = 0; i < drawn->n; i++) {
        const Stmt *s = drawn->item[i];
        bool covered = false, whole = s->lhs->kind == AST_NAME;
        for (const Stmt *t = d->sites; t; t = t->next_site) {
            covered |= elements_cover(t, s) || (data && (t->block == BLOCK_LET || whole));
            whole |= t->lhs->kind == AST_NAME;
        }
        if (data && covered) {
            if (i == 0) d->observed = true;
            continue;
        }
        if (covered || whole || d->observed || s->block == BLOCK_PREDICT || d->block == BLOCK_PREDICT) {
            both(r, s, d);
            return;
        }
    }
    if (d->observed) return;
    if (d->constraint == CONSTRAINT_SUM_TO_ZERO) {
        Diag *m = diag(r->d, d->sites->span, DIAG_E0209, d->name);
        diag_because(m, "elements of a vector whose sum is 0 are drawn together");
        diag_help(m, "leave the definition out, or declare an ordinary vector, one element of which is computed: x[K] = -sum(x[1:K - 1]);");
        d->poisoned = true;
        return;
    }
    d->kind = DECL_VARIABLE;
    d->block = ((const Stmt *)drawn->item[0])->block;
    facts(r->a, d)->data_only = DATA_UNKNOWN;
}

// ---- definitions in a circle ----

static int visit(Resolve *r, Decl *d);

// How many definitions deep the names in e go; each is recursion in what follows, so there is a limit.
static int visit_names(Resolve *r, const Ast *e)
{
    if (!e) return 0;
    if (e->kind == AST_NAME && e->decl && e->decl->kind == DECL_DEFINITION) return visit(r, e->decl);
    int deepest = 0;
    for (int i = 0; i < e->nkids; i++) {
        int depth = visit_names(r, e->kid[i]);
        if (depth > deepest) deepest = depth;
    }
    return deepest;
}

static void too_deep(Resolve *r, Decl *d)
{
    if (!d->poisoned) diag(r->d, d->span, DIAG_E0104, MAX_DEPTH);
    d->poisoned = true;
}

static int visit(Resolve *r, Decl *d)
{
    Facts *f = facts(r->a, d);
    if (f->visited) return f->depth;
    if (f->visiting) {
        int first = r->where.n - 1;
        while (first > 0 && r->where.item[first] != d) first--;
        bool elements = true;  // is all in the circle defined element by element?
        for (int i = first; i < r->where.n; i++)
            for (const Stmt *s = ((Decl *)r->where.item[i])->sites; s; s = s->next_site) elements &= s->lhs->kind == AST_INDEX;
        for (int i = first; i < r->where.n && elements; i++) ((Decl *)r->where.item[i])->recursive = true;
        if (!elements && !d->poisoned) {
            Diag *m = diag(r->d, d->span, DIAG_E0208, d->name);
            diag_help(m, "a definition is replaced by its right side wherever it is used, so it cannot contain itself");
            diag_help(m, "a series is defined element by element: x[1] = ...; for (t in 2:T) x[t] = ... x[t - 1] ...;");
        }
        d->poisoned |= !elements;
        return 0;
    }
    if (r->where.n >= MAX_DEPTH) {
        too_deep(r, d);
        return 0;
    }
    f->visiting = true;
    list_add(r->a, &r->where, d);
    for (const Stmt *s = d->sites; s; s = s->next_site) {
        int right = visit_names(r, s->rhs), left = 0;
        for (int i = 1; i < s->lhs->nkids; i++) left = visit_names(r, s->lhs->kid[i]);
        if (right > f->depth) f->depth = right;
        if (left > f->depth) f->depth = left;
    }
    pop(&r->where);
    if (++f->depth > MAX_DEPTH) {
        too_deep(r, d);
        f->depth = 0;
    }
    f->visiting = false;
    f->visited = true;
    const char *culprit;
    decl_data_only(r->a, d, &culprit);  // now, when all it depends on is known, it takes no deep recursion
    return f->depth;
}

// ---- requests ----

typedef enum { NUMBER, SWITCH, METRIC } SettingKind;

static const struct {
    const char *word;
    int where;
} methods[METHODS] = {
    [METHOD_OTHER] = {"", 0},
#define INFER                   ASKED_BY_INFER
#define OPTION                  ASKED_BY_OPTION
#define AUGMENT                 ASKED_BY_AUGMENT
#define METHOD(id, word, where) [METHOD_##id] = {word, where},
#include "methods.def"
#undef INFER
#undef OPTION
#undef AUGMENT
};

static const struct {
    const char *word;
    SettingKind kind;
} settings[SETTINGS] = {
    [SETTING_OTHER] = {"", NUMBER},
#define SETTING(id, word, kind) [SETTING_##id] = {word, kind},
#include "methods.def"
};

static const bool takes[METHODS][SETTINGS] = {
#define TAKES(method, setting) [METHOD_##method][SETTING_##setting] = true,
#include "methods.def"
};

static const char *const metrics[] = {
#define METRIC(id, word, what) word,
#include "methods.def"
};

Method method_named(const char *word, int where)
{
    for (Method m = METHOD_OTHER + 1; m < METHODS; m++)
        if (methods[m].where & where && strcmp(methods[m].word, word) == 0) return m;
    return METHOD_OTHER;
}

static SettingId setting_named(const char *word)
{
    for (SettingId s = SETTING_OTHER + 1; s < SETTINGS; s++)
        if (strcmp(settings[s].word, word) == 0) return s;
#define SETTING_ALSO(id, older) \
    if (strcmp(older, word) == 0) return SETTING_##id;
#include "methods.def"
    return SETTING_OTHER;
}

// The number of a word that a setting takes; -1: it takes no such word.
static int word_of(SettingKind kind, const Ast *e)
{
    static const char *const switches[] = {"off", "on"};
    const char *const *words = kind == METRIC ? metrics : switches;
    const int n = kind == METRIC ? sizeof metrics / sizeof *metrics : 2;
    for (int k = 0; e->kind == AST_NAME && k < n; k++)
        if (strcmp(e->name, words[k]) == 0) return k;
    return -1;
}

// "gibbs, slice and collapsed"
static const char *words_of_infer(Arena *a)
{
    const char *list = "", *last = NULL;
    for (Method m = METHOD_OTHER + 1; m < METHODS; m++) {
        if (!(methods[m].where & ASKED_BY_INFER)) continue;
        if (last) list = arena_printf(a, "%s%s%s", list, *list ? ", " : "", last);
        last = methods[m].word;
    }
    return arena_printf(a, "%s and %s", list, last);
}

static void check_infer(Resolve *r, Request *q)
{
    if (!q->method) {
        Diag *m = diag(r->d, q->span, DIAG_E0702, q->by);
        Nearest near = {.wanted = q->by};
        for (Method k = METHOD_OTHER + 1; k < METHODS; k++)
            if (methods[k].where & ASKED_BY_INFER) nearest_try(&near, methods[k].word);
        if (near.best) diag_help(m, "is `%s` meant?", near.best);
        else diag_help(m, "methods are %s", words_of_infer(r->a));
    }
    for (int i = 0; i < q->nsettings; i++) {
        Setting *s = &q->setting[i];
        s->id = setting_named(s->name);
        const SettingKind kind = settings[s->id].kind;
        const int word = kind == NUMBER ? 0 : word_of(kind, s->value);
        if (word < 0) {
            Diag *m = diag(r->d, s->value->span, DIAG_E0708, s->name);
            diag_help(m, kind == METRIC ? "diagonal, low_rank, dense, or chosen: of low rank where the warm-up measures that it pays"
                         : s->id == SETTING_GROUP_MOVE
                             ? "on or off: whether a group move also changes it together with others, as a scale with its effects"
                             : "on or off: whether it is also drawn with a joint normal integrated out");
        } else if (kind == NUMBER) use(r, s->value);
        s->word = word;
        if (q->method && !takes[q->method][s->id]) diag(r->d, s->value->span, DIAG_E0705, q->by, s->name);
        for (int k = 0; k < i; k++)
            if (s->id != SETTING_OTHER && q->setting[k].id == s->id) diag(r->d, s->value->span, DIAG_E0706, s->name);
    }
}

static void check_augment(Resolve *r, Request *q)
{
    const Augmentation *rule = library_augmentation(r->lib, q->by);
    if (!rule && !q->method) {
        Diag *m = diag(r->d, q->span, DIAG_E0701, q->by);
        Nearest near = {.wanted = q->by};
        for (const Augmentation *g = r->lib->augmentations; g; g = g->next) nearest_try(&near, g->name);
        if (near.best) diag_help(m, "is `%s` meant?", near.best);
    }
    for (int i = 0; i < q->nsettings; i++) {
        use(r, q->setting[i].value);
        diag(r->d, q->setting[i].value->span, DIAG_E0705, q->by, q->setting[i].name);
    }
    if (!q->as) return;
    if (q->method == METHOD_NONE || (rule && rule->nlatents == 0)) diag(r->d, q->span, DIAG_E0707, q->by);
    Decl *other = map_get(&r->names, q->as);
    if (other) twice(r, q->span, other);
}

static bool is_observed(const Resolve *r, const Decl *d) { return map_get(&r->marked, d) != NULL; }

static void resolve_request(Resolve *r, Request *q, Map *latents, Map *asked)
{
    q->method = method_named(q->by, q->block == BLOCK_AUGMENT ? ASKED_BY_AUGMENT : ASKED_BY_INFER);
    q->decls = NEW_N(r->a, Decl *, q->nnames);
    for (int i = 0; i < q->nnames; i++) {
        Decl *d = map_get(&r->names, q->names[i]);
        q->decls[i] = d;
        if (!d && map_get(latents, q->names[i])) continue;  // a latent named by `as`: it has no declaration yet
        if (!d) {
            Ast name = {.kind = AST_NAME, .span = q->span, .name = q->names[i]};
            undefined(r, &name);
            q->decls[i] = name.decl;
            continue;
        }
        bool data = d->kind == DECL_DATA && !((q->block == BLOCK_AUGMENT || q->method == METHOD_MARGINAL) && is_observed(r, d));
        if (data || d->kind == DECL_DEFINITION)
            diag(r->d, q->span, DIAG_E0704, d->name, d->kind == DECL_DATA ? "data" : "a definition",
                 q->block == BLOCK_AUGMENT ? "an augmentation replaces a `~` statement" : "a method draws an unknown");
        const void *key = q->block == BLOCK_AUGMENT ? (void *)d : (void *)&d->name;
        if (map_get(asked, key)) diag(r->d, q->span, DIAG_E0706, d->name);
        map_put(r->a, asked, key, d);
    }
    if (q->block == BLOCK_AUGMENT) check_augment(r, q);
    else check_infer(r, q);
}

// ---- order ----

static int by_place(const void *x, const void *y)
{
    const Decl *a = *(Decl *const *)x, *b = *(Decl *const *)y;
    return span_before(a->span, b->span) ? -1 : span_before(b->span, a->span);
}

static void place_data(Resolve *r, Model *m, Decl *d);

static void place_names(Resolve *r, Model *m, const Ast *e)
{
    if (!e) return;
    if (e->kind == AST_NAME && e->decl && e->decl->kind == DECL_DATA) place_data(r, m, e->decl);
    for (int i = 0; i < e->nkids; i++) place_names(r, m, e->kid[i]);
}

static void place_data(Resolve *r, Model *m, Decl *d)
{
    Facts *f = facts(r->a, d);
    if (f->visited) return;
    if (r->where.n >= MAX_DEPTH) {
        too_deep(r, d);
        return;
    }
    if (f->visiting) {
        if (!d->poisoned) diag(r->d, d->span, DIAG_E0208, d->name);
        d->poisoned = true;
        return;
    }
    f->visiting = true;
    list_add(r->a, &r->where, d);
    for (int i = 0; i < d->type.rank; i++) place_names(r, m, d->type.dim[i]);
    place_names(r, m, d->lower);
    place_names(r, m, d->upper);
    place_names(r, m, d->init);
    pop(&r->where);
    f->visiting = false;
    f->visited = true;
    d->order = m->ndecls;
    m->decls[m->ndecls++] = d;
}

static void put_in_order(Resolve *r, Model *m)
{
    if (r->order.n) qsort(r->order.item, (size_t)r->order.n, sizeof *r->order.item, by_place);
    m->ndecls = 0;
    m->decls = NEW_N(r->a, Decl *, r->order.n);
    for (int i = 0; i < r->order.n; i++) {
        Decl *d = r->order.item[i];
        if (d->kind == DECL_DATA) place_data(r, m, d);
    }
    for (int i = 0; i < r->order.n; i++) {
        Decl *d = r->order.item[i];
        if (d->kind == DECL_DATA) continue;
        d->order = m->ndecls;
        m->decls[m->ndecls++] = d;
    }
}

// ---- models ----

// which statements are under a condition; which data are observed, and what is predicted
static void mark_sites(Resolve *r, Stmt *s)
{
    if (r->where.n) map_put(r->a, &r->marked, s, s);
    if (s->decl && (s->decl->kind == DECL_DATA || s->decl->block == BLOCK_PREDICT) && s->kind != STMT_DECLARE)
        map_put(r->a, &r->marked, s->decl, s);
    if (s->decl && s->decl->kind == DECL_DATA && s->kind == STMT_TILDE) s->decl->observed = true;
}

static void in_every_block(Resolve *r, Model *m, void (*visit_stmt)(Resolve *, Stmt *), bool report_hidden)
{
    for (Block *b = m->blocks; b; b = b->next) each_stmt(r, b->body, visit_stmt, report_hidden);
}

bool front_resolve(Arena *a, Model *m, const Library *lib, Diags *d)
{
    int errors = diags_errors(d);
    Resolve r = {.a = a, .d = d, .lib = lib, .m = m, .inliner = inliner_new(a, d), .modelling = true};
    if (!m->name) m->name = intern("model");
    front_place_arguments(a, m, lib, d);
    front_flatten_rows(a, m, d);
    front_free_counts(a, m, lib, d);
    in_every_block(&r, m, declare_typed, false);
    in_every_block(&r, m, declare, false);
    in_every_block(&r, m, declare_flat, false);
    for (FunctionDecl *f = m->functions; f; f = f->next) resolve_function(&r, f);
    for (int i = 0; i < r.order.n; i++) check_name(&r, r.order.item[i]);
    for (int i = 0; i < r.order.n; i++) {
        r.predicting = ((Decl *)r.order.item[i])->block == BLOCK_PREDICT;
        use_decl(&r, r.order.item[i]);
    }
    in_every_block(&r, m, use_stmt, true);
    in_every_block(&r, m, mark_sites, false);
    for (int i = 0; i < r.order.n; i++) settle_both(&r, r.order.item[i]);
    for (int i = 0; i < r.order.n; i++)
        for (int drawn = 0; drawn < 2; drawn++) check_twice(&r, r.order.item[i], drawn);
    for (int i = 0; i < r.order.n; i++) {
        Decl *v = r.order.item[i];
        if (v->kind == DECL_DEFINITION) elements_known(v);
    }
    for (int i = 0; i < r.order.n; i++) {
        Decl *v = r.order.item[i];
        if (v->kind == DECL_DEFINITION) visit(&r, v);
        if (v->kind == DECL_VARIABLE && (v->block == BLOCK_LET || (v->block == BLOCK_PREDICT && !map_get(&r.marked, v))) && !v->poisoned) {
            Diag *m = diag(d, v->span, DIAG_E0210, v->name, v->block == BLOCK_LET ? "let" : "predict");
            if (v->block == BLOCK_PREDICT)
                diag_help(m, "it is computed by `%s = ...;` or drawn by `%s ~ ...;` in the predict block", v->name, v->name);
            v->poisoned = true;
        }
    }
    in_every_block(&r, m, check_left_side, false);
    put_in_order(&r, m);
    Map latents = {0}, asked = {0};
    for (Request *q = m->requests; q; q = q->next)
        if (q->block == BLOCK_AUGMENT && q->as) {
            if (map_get(&latents, q->as)) diag(d, q->span, DIAG_E0201, q->as);
            map_put(a, &latents, q->as, q);
        }
    for (Request *q = m->requests; q; q = q->next) resolve_request(&r, q, &latents, &asked);
    return diags_errors(d) == errors;
}

// ---- the library ----

static Decl *bind(Resolve *r, DeclKind kind, const char *name, Span at, Type type)
{
    Decl *d = NEW(r->a, Decl);
    *d = (Decl){.kind = kind, .name = name, .span = at, .type = type, .order = -1};
    map_put(r->a, &r->names, name, d);
    list_add(r->a, &r->order, d);
    return d;
}

static Ast *size_call(Resolve *r, const char *function, Decl *of, Span at)
{
    Ast *name = NEW(r->a, Ast), *call = NEW(r->a, Ast);
    *name = (Ast){.kind = AST_NAME, .span = at, .name = of->name, .decl = of, .depth = 1};
    *call = (Ast){.kind = AST_CALL, .span = at, .name = intern(function), .nkids = 1, .depth = 2};
    call->kid = arena_copy(r->a, &name, sizeof name);
    return call;
}

// The sizes of a parameter without written ones: rows(mu), cols(S).
static void name_sizes(Resolve *r, Decl *v)
{
    if (v->type.rank > 0 && !v->type.dim[0]) v->type.dim[0] = size_call(r, "rows", v, v->span);
    if (v->type.rank > 1 && !v->type.dim[1]) v->type.dim[1] = size_call(r, "cols", v, v->span);
    for (int i = 2; i < v->type.rank; i++)
        if (!v->type.dim[i]) v->type.dim[i] = v->type.dim[1];
}

// A routine of the runtime: its arguments are resolved, its name is not.
static void use_routine(Resolve *r, Ast *e, const char *what)
{
    if (!e) return;
    if (e->kind != AST_CALL) {
        diag(r->d, e->span, DIAG_E0807, what);
        return;
    }
    use_all(r, e->kid, e->nkids);
}

static void lacks(Resolve *r, const Distribution *d, const char *what)
{
    diag(r->d, d->span, DIAG_E0803, d->is_family ? "family" : "distribution", d->name, what);
}

static void resolve_distribution(Resolve *r, Distribution *d)
{
    r->names = (Map){0};
    r->lost = (Map){0};
    r->order = (List){0};
    for (const Distribution *o = r->lib->distributions; o != d; o = o->next)
        if (o->name == d->name && o->is_family == d->is_family)
            diag(r->d, d->span, DIAG_E0804, d->is_family ? "family" : "distribution", d->name);
    int nnatural = 0;
    for (const Natural *n = d->natural; n; n = n->next) nnatural++;
    if (nnatural > MAX_NATURAL) diag(r->d, d->span, DIAG_E0808, d->name, MAX_NATURAL);
    if (!d->support) {
        lacks(r, d, "a support");
        d->support = SUPPORT_REAL;
    }
    for (int i = 0; i < d->nparams; i++) {
        Decl *v = d->params[i];
        if (map_get(&r->names, v->name)) twice(r, v->span, map_get(&r->names, v->name));
        map_put(r->a, &r->names, v->name, v);
        list_add(r->a, &r->order, v);
        name_sizes(r, v);
    }
    for (const Synonym *s = d->synonyms; s; s = s->next) {
        Decl *of = map_get(&r->names, s->of);
        if (map_get(&r->names, s->word)) twice(r, s->span, map_get(&r->names, s->word));
        if (!of) diag(r->d, s->span, DIAG_E0413, d->name, s->of);
        for (const Synonym *o = d->synonyms; o != s; o = o->next)
            if (o->word == s->word) diag(r->d, s->span, DIAG_E0804, "synonym", s->word);
    }
    d->value = bind(r, DECL_PARAMETER, intern("x"), d->span, (Type){.base = d->discrete ? BASE_INT : BASE_REAL, .rank = d->value_rank});
    for (int i = 0; i < d->nparams; i++) use_decl(r, d->params[i]);  // bounds may read the size of the value
    use(r, d->lower);
    use(r, d->upper);
    use(r, d->size);
    if (mentions_decl(d->size, d->value)) d->size = NULL;  // covariance(rows(x)): the parameters do not decide it
    else if (!d->size && d->value_rank)
        for (int i = 0; i < d->nparams && !d->size; i++)
            if (d->params[i]->type.rank) d->size = size_call(r, "rows", d->params[i], d->span);
    for (int i = 0; i < d->value_rank; i++) d->value->type.dim[i] = d->size ? d->size : size_call(r, "rows", d->value, d->span);
    if (d->is_family) {
        const Type real = {.base = BASE_REAL};
        if (d->power) bind(r, DECL_PARAMETER, d->power, d->span, real);
        for (Natural *n = d->natural; n; n = n->next) use(r, n->statistic);
        if (d->base && d->base->kind == AST_CALL)  // its names that nobody else binds are bound by it
            for (int i = 0; i < d->base->nkids; i++) {
                const Ast *k = d->base->kid[i];
                if (k->kind == AST_NAME && !lookup(r, k->name)) bind(r, DECL_PARAMETER, k->name, k->span, real);
            }
        use_routine(r, d->base, "a base measure");
        for (Natural *n = d->natural; n; n = n->next)
            n->decl = bind(r, DECL_PARAMETER, n->name, n->statistic->span, (Type){.base = BASE_REAL, .rank = d->value_rank});
        use_routine(r, d->draw, "`draw`");
        use_routine(r, d->expectations, "`expectations`");
        bind(r, DECL_PARAMETER, intern("lower"), d->span, real);
        bind(r, DECL_PARAMETER, intern("upper"), d->span, real);
        use_routine(r, d->draw_truncated, "`draw_truncated`");
        use_routine(r, d->expectations_truncated, "`expectations_truncated`");
        if (d->law) {
            use(r, d->law->of);
            for (Natural *n = d->law->parameter; n; n = n->next) {
                use(r, n->statistic);
                n->decl = bind(r, DECL_PARAMETER, n->name, n->statistic->span, real);
            }
            for (int i = 0; i < d->law->nargs; i++) use(r, d->law->args[i]);
            use_routine(r, d->draw_law, "`draw_law`");
            use_routine(r, d->draw_law_truncated, "`draw_law_truncated`");
        }
        if (!d->law && (d->draw_law || d->draw_law_truncated)) lacks(r, d, "a law");
        if (!d->draw && !d->draw_truncated) lacks(r, d, "a routine that draws");
        return;
    }
    if (!d->log_density) lacks(r, d, "a log_density");
    use(r, d->log_density);
    use(r, d->mean);
    use(r, d->mode);
    use(r, d->covariance_root);
    use(r, d->precision_root);
    use(r, d->cdf);
    use(r, d->ccdf);
    use(r, d->location);
    use(r, d->scale);
    use(r, d->near_zero);
    use(r, d->far_end);
    use(r, d->require);
    use(r, d->edge_from);
    use(r, d->edge_to);
    use(r, d->parts);
    if (!d->edge_from != !d->edge_to || (d->parts && !d->edge_from)) lacks(r, d, "both edge_from and edge_to");
    use_routine(r, d->sample, "`sample`");
    if (!d->sample_truncated) return;
    const Type real = {.base = BASE_REAL};
    d->ends[0] = bind(r, DECL_PARAMETER, intern("lower"), d->span, real);
    d->ends[1] = bind(r, DECL_PARAMETER, intern("upper"), d->span, real);
    use_routine(r, d->sample_truncated, "`sample_truncated`");
}

static void bind_pattern_names(Resolve *r, const Ast *e)
{
    if (!e) return;
    if (e->kind == AST_NAME && !map_get(&r->names, e->name)) bind(r, DECL_PATTERN, e->name, e->span, (Type){0});
    for (int i = 0; i < e->nkids; i++) bind_pattern_names(r, e->kid[i]);
}

static void bind_pattern(Resolve *r, const Stmt *s)
{
    bind_pattern_names(r, s->lhs);
    for (int i = 0; i < s->nargs; i++) bind_pattern_names(r, s->args[i]);
    bind_pattern_names(r, s->lower);
    bind_pattern_names(r, s->upper);
}

static bool pattern_binds(const Stmt *s, const Decl *d)
{
    bool yes = mentions_decl(s->lhs, d) || mentions_decl(s->lower, d) || mentions_decl(s->upper, d);
    for (int i = 0; i < s->nargs; i++) yes |= mentions_decl(s->args[i], d);
    return yes;
}

static void use_condition(Resolve *r, Ast *e)
{
    if (e->kind == AST_BINARY && e->op == OP_AND) {
        use_condition(r, e->kid[0]);
        use_condition(r, e->kid[1]);
        return;
    }
    if (condition_of(e) == CONDITION_OTHER) {
        Diag *m = diag(r->d, e->span, DIAG_E0805, e->kind == AST_CALL ? e->name : ast_text(r->a, e));
        diag_help(m, "conditions are linear, data, unknown, positive and constant, of one argument each, joined by `&&`");
    }
    use_all(r, e->kid, e->nkids);
}

static void declare_latent(Resolve *r, Stmt *s)
{
    if (s->kind != STMT_TILDE && s->kind != STMT_DEFINE) return;
    Ast *root = place_root(s->lhs);
    if (!root || index_in_scope(r, root->name)) {
        diag(r->d, s->lhs->span, DIAG_E0108, "this", s->kind == STMT_TILDE ? "~" : "=");
        return;
    }
    Decl *d = map_get(&r->names, root->name);
    if (!d) {
        d = declare_untyped(r, s->kind == STMT_TILDE ? DECL_VARIABLE : DECL_DEFINITION, root, BLOCK_LATENT);
        d->order = -1;
    }
    s->decl = d;
    if (d->kind == DECL_DEFINITION) {
        s->next_site = d->sites;
        d->sites = s;
    }
}

static void resolve_augmentation(Resolve *r, Augmentation *g)
{
    r->names = (Map){0};
    r->lost = (Map){0};
    r->order = (List){0};
    for (const Augmentation *o = r->lib->augmentations; o != g; o = o->next)
        if (o->name == g->name) diag(r->d, g->span, DIAG_E0804, "augmentation", g->name);
    if (!g->match) {
        diag(r->d, g->span, DIAG_E0803, "augmentation", g->name, "a match");
        return;
    }
    if (!g->replace) diag(r->d, g->span, DIAG_E0803, "augmentation", g->name, "a replace");
    for (Pattern *p = g->match; p; p = p->next) bind_pattern(r, p->stmt);
    g->npatterns = r->order.n;
    g->patterns = arena_copy(r->a, r->order.item, sizeof *g->patterns * (size_t)r->order.n);
    for (Pattern *p = g->match; p; p = p->next) {
        use_stmt(r, p->stmt);
        const Ast *root = place_root(p->stmt->lhs);
        p->stmt->decl = root ? root->decl : NULL;
        for (int i = 0; i < g->npatterns; i++)
            if (!pattern_binds(p->stmt, g->patterns[i])) diag(r->d, p->stmt->span, DIAG_E0806, g->name, g->patterns[i]->name);
    }
    if (g->where) use_condition(r, g->where);
    each_stmt(r, g->replace, declare_latent, false);
    each_stmt(r, g->replace, use_stmt, true);
    List latents = {0};
    for (int i = g->npatterns; i < r->order.n; i++) {
        Decl *d = r->order.item[i];
        if (d->kind == DECL_VARIABLE) list_add(r->a, &latents, d);
    }
    g->nlatents = latents.n;
    g->latents = (Decl **)latents.item;
}

void resolve_library(Arena *a, Library *lib, Diags *d)
{
    Resolve r = {.a = a, .d = d, .lib = lib, .inliner = inliner_new(a, d)};
    for (FunctionDecl *f = lib->functions; f; f = f->next) resolve_function(&r, f);
    for (Distribution *p = lib->distributions; p; p = p->next) resolve_distribution(&r, p);
    for (Augmentation *g = lib->augmentations; g; g = g->next) resolve_augmentation(&r, g);
}
