// derive.c -- quantities for the draws: definitions, predictions, what is not drawn, and what runs request besides.
//
// Needs: definitions.     Gives: kernels after a kept sweep, and what undoes the NaN of elements that do not exist.
#include <math.h>
#include "lower.h"

static bool is_for_draws(const Var *v) { return (v->kind == VAR_DERIVED || v->kind == VAR_PREDICTED) && !v->on_request; }
static bool is_replicate(const Var *v) { return v->on_request == REQUEST_REPLICATES; }
static bool waits_for_predicted(const Var *v, void *with) { return v->kind == VAR_PREDICTED && !((bool *)with)[v->id]; }

// What the draws have for an element that does not exist.
static Expr *absent_value(Lower *p, const Var *v)
{
    return v->base == BASE_INT ? ex_num(GM_MISSING_INT) : local_ref(local_new(p->g->arena, "NAN"));
}

// The elements of v that no statement has; NULL: there are none.
static Expr *absent_element(const Var *v, Loops *l)
{
    if (v->kind != VAR_PARAMETER && v->kind != VAR_LATENT && v->kind != VAR_AUXILIARY) return NULL;
    if (v->kind == VAR_AUXILIARY && v->rank > 0 && !v->partial) return NULL;
    if (v->known.coverage && !v->known.holes) return NULL;
    l->n = v->rank;
    if (!v->exists) return NULL;
    Expr *at[MAX_RANK];
    for (int k = 0; k < v->rank; k++) at[k] = ex_index(l->index[k] = v->own[k]);
    l->guard = ex_call1("!", v->exists);
    return ex_ref((Var *)v, v->rank, at);
}

// They do not exist in the draws either.
static void put_absent(Lower *p, Var *v)
{
    Loops l = {0};
    Expr *element = absent_element(v, &l);
    if (!element) return;
    Node *nest = enter_nest(p, NODE_NEST, &l, v->rank, element->args, NULL), *test = enter(p, NODE_IF);
    test->test.condition = ex_call1("!", local_ref(local_new(p->g->arena, "CHECKING")));
    put_assign(p, ASSIGN_SET, place_element(element), absent_value(p, v));
    leave(p, test);
    leave(p, nest);
}

// A value that an element which does not exist may have while chains are swept: nothing reads it but sums that take 0 times it or a
// function of it.
static Expr *harmless(const Var *v, Expr *const *at)
{
    Expr *lo = isfinite(v->lower_number) ? ex_num(v->lower_number) : v->lower && !ex_unknown(v->lower) ? v->lower : NULL;
    Expr *hi = isfinite(v->upper_number) ? ex_num(v->upper_number) : v->upper && !ex_unknown(v->upper) ? v->upper : NULL;
    Expr *last = v->rank ? at[v->rank - 1] : NULL, *size = v->rank ? v->dim[v->rank - 1] : NULL;
    switch (v->constraint) {
    case CONSTRAINT_SIMPLEX: return ex_pow(size, -1);
    case CONSTRAINT_UNIT_VECTOR: return ex_pow(size, -0.5);
    case CONSTRAINT_SUM_TO_ZERO: return ex_num(0);
    case CONSTRAINT_ORDERED:
    case CONSTRAINT_POSITIVE_ORDERED: return last;
    case CONSTRAINT_COVARIANCE:
    case CONSTRAINT_CORRELATION:
    case CONSTRAINT_CHOLESKY_COV:
    case CONSTRAINT_CHOLESKY_CORR: return ex_call2("==", at[v->rank - 2], last);
    case CONSTRAINT_NONE: break;
    }
    if (v->base == BASE_INT) return lo ? lo : hi ? hi : ex_num(0);
    if (lo && hi) return ex_mul2(ex_num(0.5), ex_add2(lo, hi));
    return lo ? ex_add2(lo, ex_num(1)) : hi ? ex_sub(hi, ex_num(1)) : ex_num(0);
}

// Missing values that no statement draws: the draws do not show the values in their place while chains are swept (hide), which comes back
// afterwards.
static void lower_undrawn(Lower *p, const Var *v, bool hide)
{
    if (!v->rank || !v->exists || (v->known.coverage && !v->known.holes)) return;
    bool imputed = false;
    for (const Update *s = p->g->updates; s; s = s->next) imputed |= s->imputes && s->block[0] == v;
    if (!imputed) return;
    Expr *at[MAX_RANK];
    for (int k = 0; k < v->rank; k++) at[k] = ex_index(v->own[k]);
    Expr *element = ex_ref((Var *)v, v->rank, at);
    note(p, hide ? "Missing elements of %s that no statement draws have no value in the draws." : "They have one again.", v->name);
    Kernel *k = open_kernel(p, KERNEL_ELEMENTS, words(p, hide ? "hide_%s" : "restore_%s", v->name), "wide");
    Node *loop = enter(p, NODE_LOOP);
    loop->loop.how = SHARE_MISSING;
    loop->loop.of = v;
    for (int i = 0; i < v->rank; i++) loop->loop.index[loop->loop.n++] = v->own[i];
    Expr *undrawn = ex_call1("!", v->exists);
    put(p, NODE_SKIP)->skip.condition =
        hide ? ex_call2("&&", ex_call1("!", local_ref(local_new(p->g->arena, "CHECKING"))), undrawn) : undrawn;
    put_assign(p, ASSIGN_SET, place_element(element), hide ? absent_value(p, v) : harmless(v, element->args));
    leave(p, loop);
    if (close_kernel(p)) with_field(launch(p, LAUNCH_MISSING, k), v);
}

// After a draw is stored: what put_absent made NaN is a number again.
static void lower_restore(Lower *p)
{
    note(p, "Elements that do not exist are numbers again, once a draw is stored.");
    Kernel *k = open_kernel(p, KERNEL_TEAM, "restore_absent", "wide");
    for (int i = 0; i < p->g->nvars; i++) {
        Loops l = {0};
        Var *v = p->g->vars[i];
        Expr *element = absent_element(v, &l);
        if (!element) continue;
        Node *nest = enter_nest(p, NODE_NEST, &l, v->rank, element->args, NULL);
        put_assign(p, ASSIGN_SET, place_element(element), harmless(v, element->args));
        leave(p, nest);
    }
    p->launches = &p->out->restore;
    if (close_kernel(p)) launch_team(p, k);
    for (int i = 0; i < p->g->nvars; i++) lower_undrawn(p, p->g->vars[i], false);
}

static void put_prior(Lower *p, const PriorTerm *t, const char *name)
{
    Var *total = NULL;
    Expr *value = ex_num(0);  // of statements without loops
    for (int i = 0; i < t->n; i++) {
        const Factor *f = t->factor[i];
        const Loops l = f->plates;
        if (!l.n && !l.guard) {
            value = ex_add2(value, f->log_density);
            continue;
        }
        if (!total) {
            total = local_new(p->g->arena, name);
            put_let(p, NULL, total, ex_num(0), "wide")->let.grows = true;
        }
        Node *sum = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
        sum->nest.op = ASSIGN_ADD;
        put_assign(p, ASSIGN_ADD, place_local(total), f->log_density);
        leave(p, sum);
    }
    Node *once = enter_nest(p, NODE_NEST, &(Loops){0}, 0, NULL, NULL);
    once->nest.moving = t->term;
    put_assign(p, ASSIGN_SET, place_element(ex_ref(t->term, 0, NULL)), total ? ex_add2(value, local_ref(total)) : value);
    leave(p, once);
}

// The terms of the log prior, for runs that request it. They are no part of what is drawn, and stand with the tables.
void lower_priors(Lower *p)
{
    const ProgramPart part = p->part;
    p->part = PART_TABLES;
    for (int once = 0; once < 2; once++) {
        note(p, "The log prior, one term for each unknown, in runs that request it.");
        Kernel *k = open_kernel(p, KERNEL_TEAM, once ? "log_prior_by_one" : "log_prior", "wide");
        k->by_one = once;
        k->on_request = true;
        for (const PriorTerm *t = p->g->priors; t; t = t->next) {
            bool own = false;
            for (int i = 0; i < t->n; i++) own |= needs_own_array(t->factor[i]->log_density, &t->factor[i]->plates);
            if (t->missing || own != (once != 0)) continue;
            put_prior(p, t, words(p, "total_%s", t->term->name));
        }
        if (close_kernel(p)) launch_kernel(p, &p->out->log_prior, k);
    }
    p->part = part;
}

// Of each variable that is observed, for runs that request it: they come before `derive`, which makes elements that do not exist NaN.
void lower_observed(Lower *p)
{
    for (int once = 0; once < 2; once++) {  // what needs matrices of its own is computed by one lane
        note(p, "The pointwise log-likelihood, in runs that request it.");
        Kernel *k = open_kernel(p, KERNEL_TEAM, once ? "log_likelihood_by_one" : "log_likelihood", "wide");
        k->by_one = once;
        k->on_request = true;
        for (int i = 0; i < p->g->nvars; i++) {
            Var *v = p->g->vars[i];
            if (v->on_request != REQUEST_LOG_LIK) continue;
            bool own = false;
            for (const Site *t = v->sites; t; t = t->next) {
                const Loops l = t->plates;
                own |= needs_own_array(t->value, &l);
            }
            if (own != (once != 0)) continue;
            if (v->known.holes) put_fill(p, v, count_dims(v, 0, v->rank), true)->fill.value = "NAN";
            put_sites(p, v);
        }
        if (close_kernel(p)) launch_kernel(p, &p->out->log_lik, k);
    }
    bool whole = false;
    for (int i = 0; i < p->g->nvars; i++) whole |= is_replicate(p->g->vars[i]) && site_needs_array(p->g->vars[i]);
    note(p, "Replicates of what is observed, in runs that request them.");
    Kernel *k = open_kernel(p, whole ? KERNEL_ONCE : KERNEL_TEAM, "replicate", "wide");
    k->on_request = true;
    put_in_order(p, is_replicate, waits_for_predicted, false, true);
    if (close_kernel(p)) launch_kernel(p, &p->out->replicates, k);
}

void lower_derive(Lower *p)
{
    p->launches = &p->out->derive;
    for (int i = 0; i < p->g->nvars; i++) lower_undrawn(p, p->g->vars[i], true);
    note(p, "Quantities for the draws, computed after each kept sweep.");
    bool whole = false;
    for (int i = 0; i < p->g->nvars; i++) whole |= is_for_draws(p->g->vars[i]) && site_needs_array(p->g->vars[i]);
    Kernel *k = open_kernel(p, whole ? KERNEL_ONCE : KERNEL_TEAM, "derived", "wide");
    for (int i = 0; i < p->g->nvars; i++) put_absent(p, p->g->vars[i]);
    for (int i = 0; i < p->g->nvars; i++) {  // elements that are computed, of variables whose others are drawn
        const Var *v = p->g->vars[i];
        if (!var_unknown(v) || !v->sites) continue;
        put_sites(p, v);
    }
    put_in_order(p, is_for_draws, waits_for_predicted, false, true);
    if (close_kernel(p)) launch_kernel(p, &p->out->derive, k);
    lower_restore(p);
}
