// library_names.c -- the names in a library: parameters of distributions and functions, patterns of augmentations.
//
// Needs: parsed.     Gives: Ast.decl.     Keeps: the tree.
#include <string.h>
#include "resolve.h"

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
    resolve_use_all(r, e->kid, e->nkids);
}

static void lacks(Resolve *r, const Distribution *d, const char *what)
{
    diag(r->d, d->span, DIAG_E0803, d->is_family ? "family" : "distribution", d->name, what);
}

static void resolve_params(Resolve *r, Distribution *d)
{
    for (int i = 0; i < d->nparams; i++) {
        Decl *v = d->params[i];
        if (map_get(&r->names, v->name)) declared_twice(r, v->span, map_get(&r->names, v->name));
        map_put(r->a, &r->names, v->name, v);
        list_add(r->a, &r->order, v);
        name_sizes(r, v);
    }
}

static void resolve_synonyms(Resolve *r, const Distribution *d)
{
    for (const Synonym *s = d->synonyms; s; s = s->next) {
        Decl *of = map_get(&r->names, s->of);
        if (map_get(&r->names, s->word)) declared_twice(r, s->span, map_get(&r->names, s->word));
        if (!of) diag(r->d, s->span, DIAG_E0413, d->name, s->of);
        for (const Synonym *o = d->synonyms; o != s; o = o->next)
            if (o->word == s->word) diag(r->d, s->span, DIAG_E0804, "synonym", s->word);
    }
}

// The value `x`, whose size the parameters decide if they can.
static void resolve_value(Resolve *r, Distribution *d)
{
    d->value = bind(r, DECL_PARAMETER, intern("x"), d->span, (Type){.base = d->discrete ? BASE_INT : BASE_REAL, .rank = d->value_rank});
    for (int i = 0; i < d->nparams; i++) resolve_use_decl(r, d->params[i]);  // bounds may read the size of the value
    resolve_use(r, d->lower);
    resolve_use(r, d->upper);
    resolve_use(r, d->size);
    if (mentions_decl(d->size, d->value)) d->size = NULL;  // covariance(rows(x)): the parameters do not decide it
    else if (!d->size && d->value_rank)
        for (int i = 0; i < d->nparams && !d->size; i++)
            if (d->params[i]->type.rank) d->size = size_call(r, "rows", d->params[i], d->span);
    for (int i = 0; i < d->value_rank; i++) d->value->type.dim[i] = d->size ? d->size : size_call(r, "rows", d->value, d->span);
}

// The law that readers know, in parameters of its own.
static void resolve_law(Resolve *r, const Distribution *d)
{
    resolve_use(r, d->law->of);
    for (Natural *n = d->law->parameter; n; n = n->next) {
        resolve_use(r, n->statistic);
        n->decl = bind(r, DECL_PARAMETER, n->name, n->statistic->span, (Type){.base = BASE_REAL});
    }
    for (int i = 0; i < d->law->nargs; i++) resolve_use(r, d->law->args[i]);
    use_routine(r, d->draw_law, "`draw_law`");
    use_routine(r, d->draw_law_truncated, "`draw_law_truncated`");
}

static void resolve_family(Resolve *r, Distribution *d)
{
    const Type real = {.base = BASE_REAL};
    if (d->power) bind(r, DECL_PARAMETER, d->power, d->span, real);
    for (Natural *n = d->natural; n; n = n->next) resolve_use(r, n->statistic);
    if (d->base && d->base->kind == AST_CALL)  // its names that nobody else binds are bound by it
        for (int i = 0; i < d->base->nkids; i++) {
            const Ast *k = d->base->kid[i];
            if (k->kind == AST_NAME && !resolve_lookup(r, k->name)) bind(r, DECL_PARAMETER, k->name, k->span, real);
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
    if (d->law) resolve_law(r, d);
    if (!d->law && (d->draw_law || d->draw_law_truncated)) lacks(r, d, "a law");
    if (!d->draw && !d->draw_truncated) lacks(r, d, "a routine that draws");
}

static void resolve_density(Resolve *r, Distribution *d)
{
    if (!d->log_density) lacks(r, d, "a log_density");
    resolve_use(r, d->log_density);
    resolve_use(r, d->mean);
    resolve_use(r, d->mode);
    resolve_use(r, d->covariance_root);
    resolve_use(r, d->precision_root);
    resolve_use(r, d->cdf);
    resolve_use(r, d->ccdf);
    resolve_use(r, d->location);
    resolve_use(r, d->scale);
    resolve_use(r, d->near_zero);
    resolve_use(r, d->far_end);
    resolve_use(r, d->require);
    resolve_use(r, d->edge_from);
    resolve_use(r, d->edge_to);
    resolve_use(r, d->parts);
    if (!d->edge_from != !d->edge_to || (d->parts && !d->edge_from)) lacks(r, d, "both edge_from and edge_to");
    use_routine(r, d->sample, "`sample`");
    if (!d->sample_truncated) return;
    const Type real = {.base = BASE_REAL};
    d->ends[0] = bind(r, DECL_PARAMETER, intern("lower"), d->span, real);
    d->ends[1] = bind(r, DECL_PARAMETER, intern("upper"), d->span, real);
    use_routine(r, d->sample_truncated, "`sample_truncated`");
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
    resolve_params(r, d);
    resolve_synonyms(r, d);
    resolve_value(r, d);
    if (d->is_family) resolve_family(r, d);
    else resolve_density(r, d);
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
    resolve_use_all(r, e->kid, e->nkids);
}

static void declare_latent(Resolve *r, Stmt *s)
{
    if (s->kind != STMT_TILDE && s->kind != STMT_DEFINE) return;
    Ast *root = place_root(s->lhs);
    if (!root || resolve_index(r, root->name)) {
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
        resolve_use_stmt(r, p->stmt);
        const Ast *root = place_root(p->stmt->lhs);
        p->stmt->decl = root ? root->decl : NULL;
        for (int i = 0; i < g->npatterns; i++)
            if (!pattern_binds(p->stmt, g->patterns[i])) diag(r->d, p->stmt->span, DIAG_E0806, g->name, g->patterns[i]->name);
    }
    if (g->where) use_condition(r, g->where);
    resolve_each_stmt(r, g->replace, declare_latent, false);
    resolve_each_stmt(r, g->replace, resolve_use_stmt, true);
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
