// observed.c -- the log-likelihood of what is observed, point by point, and replicates of it: for runs that ask for them (fit --log-lik,
// --predict).
//
//   before   normal(y[i] | mu, s) over i in 1:N
//   after    log_lik_y[i] = log normal(y[i] | mu, s) over i in 1:N;    y_rep[i] ~ normal(mu, s) over i in 1:N
//
// Both are of the model as written: what an augmentation replaced counts, not what took its place. A distribution of vectors gives one
// number for each vector. An element has one statement at most, or there is no log-likelihood of it (coverage.c), so each is computed once,
// on its own.
//
// Needs: factors, and which elements they name.     Gives: predicted variables that only runs which ask for them have.     Keeps: all else.
#include <string.h>
#include "observed.h"
#include "../sum.h"
#include "../terms/var.h"
#include "../terms/print.h"
#include "../model/predict.h"
#include "../model/requirements.h"
#include "../model/coverage.h"

static Observed *add(Graph *g, Observed ***last, const char *name, const Var *v, Span at)
{
    Observed *o = NEW(g->arena, Observed);
    *o = (Observed){.name = name, .var = v, .span = at};
    **last = o;
    *last = &o->next;
    return o;
}

static Var *asked_of_run(Graph *g, const char *name, const Observed *of, OnRequest what, int rank)
{
    Var *v = var_unique(g, name, VAR_PREDICTED);
    v->on_request = what;
    v->span = of->span;
    v->rank = rank;
    v->lengths = of->var->lengths;
    memcpy(v->dim, of->var->dim, sizeof *v->dim * (size_t)rank);
    // elements without a statement have no value
    v->known.holes = v->partial = of->var->kind != VAR_DATA || !of->var->response || of->var->known.holes;
    return v;
}

static bool is_about(const Factor *f, const Var *v)
{
    const Expr *r = drawn_by(f);
    return r && r->var == v;
}

static void find_log_lik(Graph *g, Observed *o)
{
    int rank = -1;
    if (coverage_overlaid(o->var)) {
        o->no_log_lik = arena_printf(g->arena, "several functions of an element have distributions (%s)", requirements_line(g, o->span));
        return;
    }
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!is_about(f, o->var)) continue;
        const int n = drawn_by(f)->nargs;
        if (rank >= 0 && n != rank) {
            o->no_log_lik = arena_printf(g->arena, "some statements are about its elements, others about vectors of them (%s)",
                                         requirements_line(g, f->span));
            return;
        }
        rank = n;
    }
    o->log_lik = asked_of_run(g, arena_printf(g->arena, "log_lik_%s", o->name), o, REQUEST_LOG_LIK, rank);
    Site **last = &o->log_lik->sites;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!is_about(f, o->var)) continue;
        Site *site = *last = NEW(g->arena, Site);
        *site = (Site){.span = f->span, .var = o->log_lik, .plates = f->plates, .n = rank, .value = f->log_density};
        memcpy(site->subscript, drawn_by(f)->args, sizeof *site->subscript * (size_t)rank);
        last = &site->next;
    }
}

static void find_replicate(Graph *g, Observed *o)
{
    bool whole = true;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!is_about(f, o->var)) continue;
        const Distribution *d = not_drawn(f);
        const bool apart =
            !f->ncomponents && constraint_rank(o->var) == 1 && support_table[f->dist->support].constraint != o->var->constraint;
        if (apart)
            o->no_replicate =
                arena_printf(g->arena, "its elements are constrained together, and %s would draw them as if they were not (%s)",
                             f->dist->name, requirements_line(g, f->span));
        else if (drawn_by(f) != f->value)
            o->no_replicate = arena_printf(g->arena, "what has a distribution is a function of it (%s)", requirements_line(g, f->span));
        else if (d)
            o->no_replicate = arena_printf(g->arena, "there is no routine that draws from %s (%s)", d->name, requirements_line(g, f->span));
        if (o->no_replicate) return;
        whole &= f->dist->discrete;
    }
    o->replicate = asked_of_run(g, arena_printf(g->arena, "%s_rep", o->name), o, REQUEST_REPLICATES, o->var->rank);
    if (whole) o->replicate->base = BASE_INT;
    o->replicate->discrete = whole;
    for (const Factor *f = g->factors; f; f = f->next)
        if (is_about(f, o->var)) replicate(g, f, ex_ref(o->replicate, f->value->nargs, f->value->args));
}

// Whether v is an integer that says how many there are, of elements of an array or of iterations of a loop: no datum about anything.
static bool is_count_of_elements(const Graph *g, const Var *v)
{
    if (v->base != BASE_INT || v->response) return false;
    for (int i = 0; i < g->nvars; i++)
        for (int k = 0; k < g->vars[i]->rank; k++)
            if (g->vars[i]->dim[k] && ex_mentions(g->vars[i]->dim[k], v)) return true;
    for (const Factor *f = g->factors; f; f = f->next)
        for (int i = 0; i < f->plates.n; i++)
            if (ex_mentions(f->plates.index[i]->lo, v) || ex_mentions(f->plates.index[i]->hi, v)) return true;
    return false;
}

typedef struct Readings {
    const Graph *g;
    const Var *found;
    bool *entered;  // by number of a variable: a series may read itself
} Readings;

// Data that are no such counts, also where a definition or a statistic is computed from them.
static bool test_reads(const Var *v, void *with)
{
    Readings *r = with;
    if (v->kind == VAR_DATA) {
        if (!is_count_of_elements(r->g, v)) r->found = v;
    } else if (v->kind == VAR_SUM) {
        if (v->sum) ex_any_var(v->sum->value, test_reads, r);
    } else if ((v->kind == VAR_LET || v->kind == VAR_SERIES) && !r->entered[v->id]) {
        r->entered[v->id] = true;
        for (const Site *t = v->sites; t && !r->found; t = t->next)
            if (t->value) ex_any_var(t->value, test_reads, r);
    }
    return r->found != NULL;
}

const Var *data_read(const Graph *g, const Factor *f)
{
    Readings r = {.g = g, .entered = NEW_N(g->arena, bool, g->nvars + 1)};
    ex_any_var(f->log_density, test_reads, &r);
    if (!r.found && f->plates.guard) ex_any_var(f->plates.guard, test_reads, &r);
    return r.found;
}

// Terms of the log density that read data and are about no variable.
static const char *about_nothing(Graph *g, const Factor *f)
{
    if (f->original || f->replaced || (f->censored && f->added)) return NULL;
    const char *line = requirements_line(g, f->span);
    if (f->function)
        return arena_printf(g->arena, "%s is a function of an unknown, and certain if that is given (%s)", f->function->name, line);
    const Var *data = f->added && ex_unknown(f->log_density) ? data_read(g, f) : NULL;
    if (data)
        return arena_printf(g->arena, "the term of %s reads data `%s` and does not name the values whose density it is", line, data->name);
    if (f->dist && f->value && ex_data_only(f->value) && !drawn_by(f))
        return arena_printf(
            g->arena, "the value on the left of `~` is not one element or vector of a variable, nor a function of one element (%s)", line);
    return NULL;
}

bool find_observed(Graph *g)
{
    Observed **last = &g->observed;
    for (const Factor *f = g->factors; f; f = f->next) {
        const Expr *r = drawn_by(f);
        if (!r) {
            const char *because = about_nothing(g, f);
            if (!because) continue;
            Observed *o = add(g, &last, NULL, NULL, f->span);
            o->no_log_lik = o->no_replicate = because;
            continue;
        }
        if (!ex_data_only(f->value)) continue;
        bool known = false;
        for (const Observed *o = g->observed; o && !known; o = o->next) known = o->var == r->var;
        if (!known) add(g, &last, r->var->name, r->var, f->span);
    }
    for (Observed *o = g->observed; o; o = o->next) {
        if (!o->var) continue;
        find_log_lik(g, o);
        find_replicate(g, o);
    }
    return true;
}

static void sites_print(FILE *out, const Var *v)
{
    for (const Site *t = v ? v->sites : NULL; t; t = t->next) {
        fprintf(out, "%s", v->name);
        for (int k = 0; k < t->n; k++) {
            fputs(k ? ", " : "[", out);
            ex_print(out, t->subscript[k]);
        }
        fputs(t->n ? "]" : "", out);
        if (t->value) {
            fputs(" = ", out);
            ex_print(out, t->value);
        } else fprintf(out, " ~ %s", t->dist->name);
        if (t->when) {
            fputs(" if ", out);
            ex_print(out, t->when);
        }
        plates_print(out, &t->plates);
        fputc('\n', out);
    }
}

void observed_print(FILE *out, const Graph *g)
{
    for (const Observed *o = g->observed; o; o = o->next) {
        const char *name = o->name ? o->name : requirements_line((Graph *)g, o->span);
        sites_print(out, o->log_lik);
        if (o->no_log_lik) fprintf(out, "no log-likelihood of %s: %s\n", name, o->no_log_lik);
        sites_print(out, o->replicate);
        if (o->no_replicate) fprintf(out, "no replicates of %s: %s\n", name, o->no_replicate);
    }
}
