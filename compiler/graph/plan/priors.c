// priors.c -- the log prior, one term for each unknown, for runs that ask for it (fit --log-prior).
//
//   before   normal(mu | 0, 10)     normal(theta[j] | mu, tau) over j in 1:J     half_cauchy(tau | 5)     normal(y[j] | theta[j], s[j])
//   after    lprior_mu = log normal(mu | 0, 10)     lprior_theta = sum of log normal(theta[j] | mu, tau) over j in 1:J     lprior_tau = ...
//
// The term of an unknown has the factors whose subject it is, one number whatever its shape. Like the log-likelihoods of observed.c, it is
// of the model as written. An auxiliary has no term: the density of what an augmentation replaced counts. In the centred form the factor of
// x, and the Jacobian, make up the term of z (Factor.subject).
//
// Some factors are about no single unknown: target +=, laws of sums of unknowns. They have a term of their own, "other", if they read no
// data but the lengths of arrays and loops. Supports and orders have none: their density is 1 wherever a chain is. Factors of data are
// likelihood, but for missing values: these are unknowns.
//
// Needs: factors.     Gives: g->priors, in order of the factors.     Keeps: all else.
#include <string.h>
#include "priors.h"
#include "observed.h"
#include "../terms/factor.h"
#include "../terms/print.h"
#include "../terms/var.h"
#include "../model/coverage.h"

static bool is_taken(const Graph *g, const char *name)
{
    for (int i = 0; i < g->nvars; i++)
        if (strcmp(g->vars[i]->name, name) == 0) return true;
    return false;
}

// No unknown has this name.
static const char *name_of_others(Graph *g)
{
    const char *name = "other";
    for (int k = 2; is_taken(g, name); k++) name = arena_printf(g->arena, "other_%d", k);
    return name;
}

// As the model calls it.
static const char *name_of(const Var *of) { return of->decl && of->decl->stands_for ? of->decl->stands_for : of->name; }

static PriorTerm *prior_of(Graph *g, const Var *of, const Factor *f)
{
    PriorTerm **last = &g->priors;
    for (; *last; last = &(*last)->next)
        if ((*last)->of == of) return *last;
    PriorTerm *t = *last = NEW(g->arena, PriorTerm);
    *t = (PriorTerm){.name = of ? name_of(of) : name_of_others(g), .of = of};
    t->missing = of && of->kind == VAR_DATA && !f->subject;
    t->term = var_unique(g, arena_printf(g->arena, "lprior_%s", t->name), VAR_PREDICTED);
    t->term->on_request = REQUEST_LOG_PRIOR;
    t->term->span = f->span;
    return t;
}

// Whether a factor is part of a term; of which unknown or response, in `of`. The runtime refuses a log prior where there are other terms of
// data (about_nothing of observed.c).
static bool has_prior(const Graph *g, const Factor *f, const Var **of)
{
    *of = f->subject;
    if (!factor_counts_at(f, 0, true)) return false;
    if (f->subject) return true;
    const Expr *r = drawn_by(f);
    *of = r ? r->var : NULL;
    if (r && ex_data_only(f->value)) return r->var->kind == VAR_DATA && r->var->response && !r->var->left_out;
    if (r) return true;  // even if that is 0, of uniform(0, 1)
    if (ex_is_num(f->log_density, 0)) return false;
    if (f->region || f->ordered || f->function) return false;
    if (f->dist) return f->value && !ex_data_only(f->value);
    return f->added && !(ex_unknown(f->log_density) && data_read(g, f));
}

static void add_to(Graph *g, const Var *of, const Factor *f)
{
    PriorTerm *t = prior_of(g, of, f);
    if (t->missing) return;
    if (t->n == t->room) {
        const Factor **more = NEW_N(g->arena, const Factor *, 2 * t->room + 4);
        for (int k = 0; k < t->n; k++) more[k] = t->factor[k];
        t->factor = more;
        t->room = 2 * t->room + 4;
    }
    t->factor[t->n++] = f;
}

// Of a vector that the compiler made of unknowns: each of them has its own term. false: it is not known which instance is of which.
static bool add_parts(Graph *g, const Var *of, const Factor *f)
{
    const Expr *r = drawn_by(f);
    if (!r || r->nargs != 1 || f->plates.guard) return false;
    if (r->args[0]->kind == EX_NUM && !f->plates.n) {
        add_to(g, of->parts[(int)r->args[0]->number - 1], f);
        return true;
    }
    Index *k = f->plates.n == 1 ? f->plates.index[0] : NULL;
    if (!k || r->args[0]->kind != EX_INDEX || r->args[0]->index != k || k->lo->kind != EX_NUM || k->hi->kind != EX_NUM) return false;
    for (int i = (int)k->lo->number; i <= (int)k->hi->number; i++) {
        Factor *one = NEW(g->arena, Factor);
        *one = *f;
        one->plates = (Loops){0};
        one->log_density = ex_replace_index(f->log_density, k, ex_num(i));
        add_to(g, of->parts[i - 1], one);
    }
    return true;
}

static void add(Graph *g, const Factor *f)
{
    const Var *of;
    if (has_prior(g, f, &of) && !(of && of->parts && add_parts(g, of, f))) add_to(g, of, f);
}

bool find_priors(Graph *g)
{
    for (const Factor *f = g->factors; f; f = f->next) add(g, f);
    for (const Factor *f = g->written; f; f = f->next) add(g, f);
    return true;
}

void priors_print(FILE *out, const Graph *g)
{
    for (const PriorTerm *t = g->priors; t; t = t->next) {
        if (t->missing) fprintf(out, "%s = the density of missing values of %s\n", t->term->name, t->name);
        for (int k = 0; k < t->n; k++) {
            fprintf(out, "%s %s ", t->term->name, k ? "+=" : "=");
            ex_print(out, t->factor[k]->log_density);
            plates_print(out, &t->factor[k]->plates);
            fputc('\n', out);
        }
    }
}
