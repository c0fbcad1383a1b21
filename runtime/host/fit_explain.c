// fit_explain.c -- what ended a run, or keeps one from beginning, in words.
#include "fields.h"
#include "fit_inside.h"

#include <math.h>
#include <stdlib.h>

bool gm_fit_in_order(int status) { return status == GM_EXIT_OK || (status >= GM_EXIT_TIME && status <= GM_EXIT_APART); }

void gm_fit_explain_end(const GmFit *f, int status)
{
    const GmOptions *o = &f->options;
    char *worst =
        status == GM_EXIT_FEW || status == GM_EXIT_APART ? gm_column_label(&f->draws, f->model, &f->memory, f->stop.worst, '[') : NULL;
    if (status == GM_EXIT_OK && gm_stop_rules(o))
        gm_note("enough after %ld draws per chain%s", f->draws.kept,
                f->stop.in_order ? ", with the components of each draw in order: their labels may be permuted" : "");
    else if (status == GM_EXIT_TIME)
        gm_error("--max-time %g: stopped after %ld sweeps; %ld draws per chain are kept", o->max_time, f->sweeps, f->draws.kept);
    else if (status == GM_EXIT_DIVERGED)
        gm_error("--stop-on-divergence: a transition of chain %d diverged in sweep %ld after warm-up; %ld draws per chain are kept",
                 o->first_chain + f->stop.chain, (long)f->stop.first, f->draws.kept);
    else if (status == GM_EXIT_FEW)
        gm_error("--until-ess %g: %s has a smaller effective sample size after %ld draws per chain; --samples N allows more", o->until_ess,
                 worst, f->draws.kept);
    else if (status == GM_EXIT_APART)
        gm_error("--until-rhat %g: R-hat of %s is larger after %ld draws per chain; --samples N allows more", o->until_rhat, worst,
                 f->draws.kept);
    else if (status != GM_EXIT_OK)
        gm_error("%s after %ld sweeps; %ld draws per chain are kept", status == GM_EXIT_INTERRUPTED ? "interrupted" : "stopped", f->sweeps,
                 f->draws.kept);
    free(worst);
}

// A definition of data that is no number somewhere: names the element. (On a GPU the arrays are not here.)
static bool explain_definition(const GmFit *f)
{
    const GmModel *model = f->model;
    for (int k = 0; k < model->n_state && !f->device; k++) {
        const GmField *field = &model->state[k];
        if (field->role != GM_SUM || !field->shared || !field->where || field->partial || field->type == GM_INT) continue;
        const GmShape *shape = &f->memory.shape[k];
        const double *x = gm_state_array(model, &f->memory, 0, k);
        for (long i = 0; i < gm_shape_size(shape); i++)
            if (!isfinite(x[i])) {
                char *name = gm_element_name(field->name, shape->rank, shape->dim, i);
                gm_error("  %s is %s (%s): that may be the cause, and with it the data that it is computed from", name,
                         isnan(x[i]) ? "NaN, not a number" : "infinite", field->where);
                free(name);
                return true;
            }
    }
    return false;
}

void gm_fit_explain_large(const GmFit *f)
{
    static const double LARGE = 1e150;  // room for sums of squares
    for (int k = 0; k < f->model->n_data; k++) {
        const GmField *field = &f->model->data[k];
        const GmShape *s = &f->data.shape[k];
        const GmValue *v = field->type == GM_INT ? NULL : gm_values_find(&f->data.values, field->name);
        const long size = v ? gm_shape_size(s) : 0;
        for (long i = 0; i < size; i++) {
            const double x = ((const double *)v->elements)[i];
            if (!isfinite(x) || fabs(x) < LARGE) continue;
            char *name = gm_element_name(field->name, s->rank, s->dim, i);
            gm_error("  %s: %s = %.10g is so large that its square is no number: in other units it would be", v->source, name, x);
            free(name);
            return;
        }
    }
}

// What has no density at a chain's state: a matrix, a factor or, before the first sweep has ended, an observed value.
static void explain_place(const GmFit *f, int chain, bool first)
{
    gm_fit_explain_large(f);
    gm_data_tell_far(&f->data, f->model, GM_DATA_FAR, "  ", "");
    char *zero = f->device ? NULL : gm_singular_matrix(f->model, &f->memory, chain);
    if (!zero && !f->device) zero = gm_zero_factor(f->model, &f->memory, &f->data, chain);
    if (!zero && !f->device && first) zero = gm_infinite_log_lik(f->model, &f->memory, &f->data, &f->run, chain);
    if (zero) gm_error("  there %s", zero);
    free(zero);
}

void gm_fit_explain_fault(const GmFit *f)
{
    if (!gm_fault_raised() || explain_definition(f)) return;
    explain_place(f, gm_fault_chain() - f->run.first_chain, gm_fault_sweep() == 0);
    if (gm_fault_sweep() < f->options.warmup)
        gm_error("  if the start is the cause: --init FILE gives the values to start from, --init R starts nearer to zero (1)%s",
                 f->device && gm_fault_sweep() == 0 ? "; --device cpu looks for other places" : "");
}

bool gm_fit_begin_with_density(GmFit *f)
{
    const int chain = gm_second_starts(f->model, &f->memory, &f->data, &f->options, &f->run);
    if (chain < 0) return true;
    gm_error("chain %d: no starting values with positive density were found, neither at %d random places nearer and nearer to zero nor by "
             "changes of the best of them. --init FILE gives values to start from; "
             "see whether the data can be",
             f->run.first_chain + chain + 1, GM_SECOND_STARTS);
    if (!explain_definition(f)) explain_place(f, chain, true);
    return false;
}

bool gm_fit_impossible(const GmFit *f)
{
    const GmDraws *d = &f->draws;
    for (int c = 0; c < d->chains && f->options.log_joint && d->kept > 0; c++) {
        if (d->possible[c]) continue;
        gm_error(
            "chain %d: lp__ is NaN or -infinity in all draws: the density is 0, or no number, at every state of the chain. These are no "
            "draws of the posterior",
            d->first_chain + c);
        gm_fit_explain_large(f);
        char *zero = f->device ? NULL : gm_zero_factor(f->model, &f->memory, &f->data, c);
        if (zero) gm_error("  there %s", zero);
        free(zero);
        return true;
    }
    return false;
}
