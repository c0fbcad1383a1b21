// advise.c -- warnings about models that are right as text, and seldom what was meant.
//
// - priors that are near 0 for all that counts, gamma(eps, eps), whose mass there decides the posterior of a small variance (Gelman 2006,
//   Bayesian Analysis 1);
// - a uniform sd with a far end, for the same reason: all but a trifle of its mass lies where no sd is;
// - a location whose scale is so large that the prior is flat in all but name;
// - data that nothing reads, and unknowns that nothing depends on, beside data that are observed;
// - unknowns that are flat on a line without end, so that the posterior may not be proper;
// - a + u[g[i]] where u ~ normal(m, s), and a and m occur nowhere else: only a + m is in the likelihood.
//
// Which distributions these are the library says: near_zero, far_end, location, scale. What is asked for in so many words gets no warning:
// flat() and half_flat().
//
// Needs: typed, without errors.     Gives: warnings.     Keeps: all.
#include <math.h>
#include "types.h"

static const double FAR = 1e3, HUGE_SCALE = 1e4;

typedef struct Advice {
    Arena *a;
    Diags *d;
    const Library *lib;
    List stmts;     // Stmt: all that draw, define or add
    Map uses;       // Decl -> Uses
    Map added;      // Decl -> Uses, of those only within target += ...
    bool observes;  // some data have a distribution, or something is added to the density
} Advice;

typedef struct Uses {
    int n;
} Uses;

static int uses_of(const Advice *v, const Decl *d)
{
    const Uses *u = map_get(&v->uses, d);
    return u ? u->n : 0;
}

static void count(Advice *v, const Ast *e)
{
    if (!e) return;
    if (e->kind == AST_NAME && e->decl) {
        Uses *u = map_get(&v->uses, e->decl);
        if (!u) map_put(v->a, &v->uses, e->decl, u = NEW(v->a, Uses));
        u->n++;
    }
    for (int i = 0; i < e->nkids; i++) count(v, e->kid[i]);
}

static void count_decl(Advice *v, const Decl *d)
{
    for (int i = 0; i < d->type.rank && d->has_type; i++) count(v, d->type.dim[i]);
    count(v, d->lower);
    count(v, d->upper);
    count(v, d->init);
}

static void count_stmts(Advice *v, Stmt *s)
{
    for (; s; s = s->next) {
        if (s->kind == STMT_TILDE || s->kind == STMT_DEFINE || s->kind == STMT_TARGET) list_add(v->a, &v->stmts, s);
        const Ast *root = s->lhs ? place_root(s->lhs) : NULL;
        const bool own = root && root->decl && root->decl->kind != DECL_DATA;  // what it is about is no use of it
        for (int i = 1; s->lhs && own && i < s->lhs->nkids; i++) count(v, s->lhs->kid[i]);
        if (!own) count(v, s->lhs);
        for (const Stmt *part = s; part; part = part == s ? s->more : part->next)
            for (int i = 0; i < part->nargs; i++) count(v, part->args[i]);
        count(v, s->weights);
        count(v, s->lower);
        count(v, s->upper);
        count(v, s->rhs);
        count(v, s->cond);
        if (s->index) {
            count(v, s->index->lo);
            count(v, s->index->hi);
        }
        count_stmts(v, s->body);
    }
}

// ---- priors ----

// The argument of the parameter that e names.
static Ast *argument_of(const Stmt *s, const Distribution *d, const Ast *e)
{
    for (int i = 0; e && e->kind == AST_NAME && i < d->nparams && i < s->nargs; i++)
        if (d->params[i] == e->decl) return s->args[i];
    return NULL;
}

// Some statement has it as its scale, as a name or an element by itself.
static bool is_scale(const Advice *v, const Decl *d)
{
    for (int i = 0; i < v->stmts.n; i++) {
        const Stmt *s = v->stmts.item[i];
        const Distribution *dist = s->kind == STMT_TILDE && s->dist ? library_distribution(v->lib, s->dist) : NULL;
        Ast *scale = dist && !s->weights ? argument_of(s, dist, dist->scale) : NULL;
        const Ast *root = scale ? place_root(scale) : NULL;
        if (root && root->decl == d) return true;
    }
    return false;
}

static void advise_prior(Advice *v, const Stmt *s)
{
    const Distribution *d = s->dist && !s->weights && !s->more ? library_distribution(v->lib, s->dist) : NULL;
    const Decl *x = s->decl;
    if (!d || !x || x->kind != DECL_VARIABLE || s->block == BLOCK_PREDICT) return;
    double number;
    if (d->near_zero && types_constant(d->near_zero, d, s, &number) && number != 0) {
        const char *text = d->name, *before = "(";
        for (int i = 0; i < s->nargs; i++, before = ", ") text = arena_printf(v->a, "%s%s%s", text, before, ast_text(v->a, s->args[i]));
        Diag *m = diag(v->d, s->dist_span, DIAG_W0901, arena_printf(v->a, "%s)", text), x->name);
        diag_because(m, "nearly all of its mass lies beside 0 and far out, and a posterior near 0 follows the prior");
        diag_help(m, "a prior of the standard deviation says what is meant: s ~ half_normal(0, 1); with the scale of the data");
    }
    if (d->far_end && types_constant(d->far_end, d, s, &number) && number >= FAR && is_scale(v, x)) {
        Diag *m = diag(v->d, s->dist_span, DIAG_W0902, x->name, number);
        diag_because(m, "nine tenths of the prior lie above %g", number / 10);
        diag_help(m, "half_normal(0, scale) or half_cauchy(0, scale) with the scale of the data leave no end to choose");
    }
    if (d->location && d->scale && types_constant(d->scale, d, s, &number) && number >= HUGE_SCALE) {
        Diag *m = diag(v->d, s->dist_span, DIAG_W0903, number, x->name);
        diag_help(m, "a scale a few times that of what is plausible is as vague, and flat() says that nothing is known");
    }
}

static bool has_statement(const Decl *d)
{
    const Facts *f = d->front;
    return d->sites || (f && f->tildes.n);
}

// Has the model a density beside those of unknowns: data that have a distribution or are functions of unknowns, or target += ...?
static bool observes(const Advice *v)
{
    for (int i = 0; i < v->stmts.n; i++) {
        const Stmt *s = v->stmts.item[i];
        const Ast *root = s->lhs ? place_root(s->lhs) : NULL;
        const bool known = !root || !root->decl || root->decl->kind == DECL_DATA;
        if (s->kind == STMT_TARGET || (known && s->block != BLOCK_PREDICT)) return true;
    }
    return false;
}

static void advise_decl(Advice *v, const Decl *d)
{
    if (d->kind == DECL_VARIABLE && has_statement(d) && d->block != BLOCK_PREDICT && v->observes && !uses_of(v, d)) {
        Diag *m = diag(v->d, d->span, DIAG_W0907, d->name);
        diag_because(m, "the data say nothing of it: its draws are those of its distribution");
        diag_help(m, "a misspelt name, or a line that can go; a prediction stands in a predict block");
    }
    if (d->kind == DECL_DATA && !uses_of(v, d)) {
        Diag *m = diag(v->d, d->span, DIAG_W0904, d->name);
        diag_help(m, "a misspelt name, or a line that can go");
    }
    if (d->kind != DECL_VARIABLE || has_statement(d) || d->constraint != CONSTRAINT_NONE || (d->lower && d->upper) ||
        d->block == BLOCK_PREDICT)
        return;
    if (map_get(&v->added, d)) return;  // a factor may be its prior
    Diag *m = diag(v->d, d->span, DIAG_W0905, d->name);
    diag_because(m, "the posterior is proper only if the data inform on `%s` whatever the other unknowns are", d->name);
    const char *flat = d->lower ? "half_flat()" : "flat()";
    diag_help(m, "write a prior, %s ~ normal(0, 10); or, if that is meant, %s ~ %s;", d->name, d->name, flat);
}

// ---- sums ----

// An unknown that is one number by itself.
static const Decl *scalar_unknown(const Ast *e)
{
    return e->kind == AST_NAME && e->decl && e->decl->kind == DECL_VARIABLE && e->decl->type.rank == 0 ? e->decl : NULL;
}

// The location of all elements of u, if it is one unknown number: m of u[j] ~ normal(m, s).
static const Decl *location_of(const Advice *v, const Decl *u)
{
    const Facts *f = u->front;
    if (u->kind != DECL_VARIABLE || !f || f->tildes.n != 1 || u->sites || u->constraint != CONSTRAINT_NONE) return NULL;
    const Stmt *s = f->tildes.item[0];
    const Distribution *d = s->dist && !s->weights && !s->truncated ? library_distribution(v->lib, s->dist) : NULL;
    if (!d || d->support != SUPPORT_REAL || u->lower || u->upper) return NULL;
    const Ast *location = argument_of(s, d, d->location);
    return location ? scalar_unknown(location) : NULL;
}

static void add_terms(Advice *v, const Ast *e, List *terms)
{
    if (e->kind == AST_BINARY && e->op == OP_ADD) {
        add_terms(v, e->kid[0], terms);
        add_terms(v, e->kid[1], terms);
    } else list_add(v->a, terms, (void *)e);
}

static void advise_sums(Advice *v, const Ast *e)
{
    if (!e) return;
    if (e->kind == AST_BINARY && e->op == OP_ADD) {
        List terms = {0};
        add_terms(v, e, &terms);
        for (int i = 0; i < terms.n; i++)
            for (int k = 0; k < terms.n; k++) {
                const Decl *a = scalar_unknown(terms.item[i]);
                const Ast *root = i == k || !a ? NULL : place_root(terms.item[k]);
                const Decl *u = root && root->decl && root->decl->type.rank ? root->decl : NULL, *m = u ? location_of(v, u) : NULL;
                if (!m || m == a || uses_of(v, a) != 1 || uses_of(v, m) != 1 || uses_of(v, u) != 1) continue;
                Diag *w = diag(v->d, ((const Ast *)terms.item[i])->span, DIAG_W0906, a->name, m->name);
                diag_because(w, "`%s` is the mean of `%s`, which is added to `%s`", m->name, u->name, a->name);
                diag_help(w, "leave one of the two out: %s ~ normal(0, ...) around `%s`", u->name, a->name);
            }
    }
    for (int i = 0; i < e->nkids; i++) advise_sums(v, e->kid[i]);
}

void front_advise(Arena *a, Model *m, const Library *lib, Diags *d)
{
    Advice v = {.a = a, .d = d, .lib = lib};
    for (const Block *b = m->blocks; b; b = b->next) count_stmts(&v, b->body);
    for (int i = 0; i < m->ndecls; i++) count_decl(&v, m->decls[i]);
    for (const Request *r = m->requests; r; r = r->next)
        for (int i = 0; i < r->nsettings; i++) count(&v, r->setting[i].value);
    Advice target = {.a = a};
    for (int i = 0; i < v.stmts.n; i++)
        if (((const Stmt *)v.stmts.item[i])->kind == STMT_TARGET) count(&target, ((const Stmt *)v.stmts.item[i])->rhs);
    v.added = target.uses;
    v.observes = observes(&v);
    for (int i = 0; i < m->ndecls; i++) advise_decl(&v, m->decls[i]);
    for (int i = 0; i < v.stmts.n; i++) {
        const Stmt *s = v.stmts.item[i];
        if (s->kind == STMT_TILDE) advise_prior(&v, s);
        for (int k = 0; k < s->nargs; k++) advise_sums(&v, s->args[k]);
        advise_sums(&v, s->rhs);
    }
}
