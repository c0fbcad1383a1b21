// impute.c -- missing values of data are drawn, too: from the distribution of the statement that observes them, given what else reads them.
//
// Needs: responses marked.     Gives: updates, of which those that nothing else sees come last.
#include <math.h>
#include <string.h>
#include "impute.h"
#include "../conditional.h"
#include "../update.h"
#include "../terms/requests.h"
#include "../terms/reads.h"
#include "../algebra/conditionals.h"
#include "../algebra/afresh.h"
#include "../updates/updates.h"

// Within what bounds the missing values of v lie, as far as those declared do not say it: terms of the log density while its conditional is
// worked out. Data that are there were checked.
static void bound_missing(Graph *g, const Var *v, bool on)
{
    for (Factor *f = g->factors; f; f = f->next) {
        if (!f->value || f->value->kind != EX_REF || f->value->var != v) continue;
        Expr **terms = f->if_missing->kind == EX_ADD ? f->if_missing->args : &f->if_missing;
        for (int i = 0; i < (f->if_missing->kind == EX_ADD ? f->if_missing->nargs : 1); i++) {
            if (terms[i]->kind != EX_CALL) continue;
            const Expr *lo = terms[i]->args[1], *hi = terms[i]->args[2];
            if (lo->kind == EX_NUM && lo->number <= v->lower_number && hi->kind == EX_NUM && hi->number >= v->upper_number) continue;
            f->log_density = on ? ex_add2(f->log_density, terms[i]) : ex_sub(f->log_density, terms[i]);
        }
    }
}

// One end of the values of an integer response: as declared, or the outermost of what its statements say; NULL: open, or not the same for
// all elements.
static Expr *end_of_values(const Graph *g, const Var *v, int side)
{
    Expr *outer = side ? v->upper : v->lower;
    const double number = side ? v->upper_number : v->lower_number;
    if (outer || isfinite(number)) return outer ? outer : ex_num(number);
    for (const Factor *f = g->factors; f; f = f->next) {
        if (f->original || !f->dist || !f->value || f->value->kind != EX_REF || f->value->var != v) continue;
        Expr *end = side ? f->most : f->least;
        for (int i = 0; i < f->plates.n && end; i++)
            if (ex_mentions_index(end, f->plates.index[i])) end = NULL;
        if (!end || ex_mentions(end, v)) return NULL;
        outer = !outer || outer == end ? end : ex_call2(side ? "fmax" : "fmin", outer, end);
    }
    return outer;
}

// Responses may have missing values: these are drawn first, from the model as written; or last, in a draw of their own, if nothing has seen
// them.
void impute(Graph *g, Update **first, Update **last)
{
    int n = g->nvars;
    for (int i = 0; i < n; i++) {
        Var *v = g->vars[i];
        if (v->kind != VAR_DATA || !v->response) continue;
        bool tied = false;  // elements that are constrained together cannot miss one by one
        for (const Factor *f = g->factors; f; f = f->next)
            tied |= f->dist && f->value && ex_rank(f->value) > 0 && ex_mentions(f->value, v) && f->dist->support != SUPPORT_VECTOR;
        if (tied || (v->needed_for = needed_for(g, v))) continue;
        VarKind kind = v->kind;
        v->kind = VAR_LATENT;
        for (Factor *f = g->factors; f; f = f->next)
            if (f->dist && f->value && f->value->var == v) v->discrete |= f->dist->discrete;
        bound_missing(g, v, true);
        Conditional *c = conditional_element(g, v, true);
        Expr *lower = v->discrete ? end_of_values(g, v, 0) : NULL, *upper = v->discrete ? end_of_values(g, v, 1) : NULL;
        bool finite = lower && upper;
        const bool few = finite && upper->kind == EX_NUM;  // else as many as the data say
        UpdateKind how = c->family ? UPDATE_EXACT : !few && conditional_own(g, c, true) ? UPDATE_OWN : finite ? UPDATE_ENUM : UPDATE_SLICE;
        bound_missing(g, v, false);
        v->kind = kind;
        Update *s = single_update(g, how, v, c, true, "missing values of data");
        s->imputes = true;
        s->marginal = false;
        const Reading enters = factors_of(g, v);
        for (int q = 0; q < enters.n; q++)
            s->marginal |= enters.factor[q]->replaced && !enters.factor[q]->original && factor_mentions(enters.factor[q], v);
        if (how == UPDATE_ENUM) {
            s->enumerate.lower = lower;
            s->enumerate.upper = upper;
        }
        v->may_be_left_out &= how != UPDATE_SLICE && c->nbatch == v->rank;
        if (v->left_out && (how == UPDATE_SLICE || c->nbatch < v->rank)) {
            Diag *m = diag(g->diags, request_of(g, v)->span, DIAG_E0513, v->name);
            diag_because(m, "its missing values are drawn last, in one draw, and %s",
                         how == UPDATE_SLICE ? "there is no routine that draws from their distribution"
                                             : "its elements depend on each other");
            diag_help(m, "leave the request out: missing values are then drawn given all that they enter");
        }
        update_append(v->left_out ? last : first, s);
    }
}
