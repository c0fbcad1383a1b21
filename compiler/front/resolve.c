// resolve.c -- names: every use finds its declaration.
//
//   before   theta[j] ~ normal(mu, tau)          names are text
//   after    the same, with theta, j, mu and tau pointing at declarations; Model.decls lists all of them
//
// Order is free, so the blocks are read three times: written types first, then what `~` and `=` declare by themselves,
// then uses. A name that is wrong is reported once and stays marked, so that one mistake gives one message.
//
// Needs: parsed.     Gives: Ast.decl, Stmt.decl, Request.decls, Model.decls.
#include <string.h>
#include "resolve.h"

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

static void both(Resolve *r, const Stmt *drawn, Decl *d)
{
    const bool first = span_before(drawn->span, d->sites->span);
    Diag *m = diag(r->d, first ? d->sites->span : drawn->span, DIAG_E0209, d->name);
    diag_help(m, "the other statement is about line %d; each element is either drawn with `~` or computed with `=`",
              span_line(first ? drawn->span : d->sites->span));
    d->poisoned = true;
}

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
    for (Block *b = m->blocks; b; b = b->next) resolve_each_stmt(r, b->body, visit_stmt, report_hidden);
}

bool front_resolve(Arena *a, Model *m, const Library *lib, Diags *d)
{
    int errors = diags_errors(d);
    Resolve r = {.a = a, .d = d, .lib = lib, .m = m, .inliner = inliner_new(a, d), .modelling = true};
    if (!m->name) m->name = intern("model");
    front_place_arguments(a, m, lib, d);
    front_flatten_rows(a, m, d);
    if (!front_local_names(a, m, d)) return false;
    front_free_counts(a, m, lib, d);
    in_every_block(&r, m, declare_typed, false);
    in_every_block(&r, m, declare_stmt, false);
    in_every_block(&r, m, declare_flat, false);
    for (FunctionDecl *f = m->functions; f; f = f->next) resolve_function(&r, f);
    for (int i = 0; i < r.order.n; i++) check_name(&r, r.order.item[i]);
    for (int i = 0; i < r.order.n; i++) {
        r.predicting = ((Decl *)r.order.item[i])->block == BLOCK_PREDICT;
        resolve_use_decl(&r, r.order.item[i]);
    }
    in_every_block(&r, m, resolve_use_stmt, true);
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
        if (v->kind == DECL_DEFINITION) resolve_depth(&r, v);
        if (v->kind == DECL_VARIABLE && (v->block == BLOCK_LET || (v->block == BLOCK_PREDICT && !map_get(&r.marked, v))) && !v->poisoned) {
            Diag *m = diag(d, v->span, DIAG_E0210, v->name, v->block == BLOCK_LET ? "let" : "predict");
            if (v->block == BLOCK_PREDICT)
                diag_help(m, "it is computed by `%s = ...;` or drawn by `%s ~ ...;` in the predict block", v->name, v->name);
            v->poisoned = true;
        }
    }
    in_every_block(&r, m, resolve_left_side, false);
    resolve_order(&r, m);
    Map latents = {0}, asked = {0};
    for (Request *q = m->requests; q; q = q->next)
        if (q->block == BLOCK_AUGMENT && q->as) {
            if (map_get(&latents, q->as)) diag(d, q->span, DIAG_E0201, q->as);
            map_put(a, &latents, q->as, q);
        }
    for (Request *q = m->requests; q; q = q->next) resolve_request(&r, q, &latents, &asked);
    return diags_errors(d) == errors;
}
