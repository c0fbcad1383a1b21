// predict.c -- draws that are not of the posterior: those of the predict block, and replicates of data.
//
//   before   y_new ~ poisson(lambda) T(1, );
//   after    a site of y_new: the routine of poisson, its arguments, and the ends between which it draws
//
// Needs: densities with their arguments.     Gives: sites.
#include <math.h>
#include <string.h>
#include "predict.h"
#include "../terms/var.h"
#include "../terms/supports.h"
#include "elaborate.h"
#include "law.h"
#include "domains.h"

static Expr *stand_in(Graph *g, const char *name, bool whole)
{
    Var *v = var_new(g, intern(name), VAR_ELEMENT);
    if (whole) v->base = BASE_INT;
    return ex_ref(v, 0, NULL);
}

// What a draw of the predict block reads if it has to lie between two ends: see Site.
static void draw_within(Graph *g, Site *site, const Env *env, Expr *const *end, Expr *const *support)
{
    const Distribution *d = site->dist;
    site->within = true;
    site->exact = d->sample_truncated != NULL;
    for (int side = 0; side < 2; side++) site->end[side] = stand_in(g, side ? "upper" : "lower", d->discrete);
    if (site->exact) {
        for (int side = 0; side < 2; side++) env = env_bind(g, env, d->ends[side], site->end[side]);
        site->sample = d->sample_truncated->name;
        site->nargs = 0;
        for (int i = 0; i < d->sample_truncated->nkids; i++)
            site->args[site->nargs++] = elaborate_whole(g, d->sample_truncated->kid[i], env);
    }
    site->nsample = site->nargs;
    for (int side = 0; side < 2; side++) site->args[site->nargs++] = end[side] ? end[side] : ex_num(side ? INFINITY : -INFINITY);
    for (int side = 0; side < 2; side++) site->args[site->nargs++] = support[side] ? support[side] : ex_num(side ? INFINITY : -INFINITY);
    if (site->exact) return;
    site->x = stand_in(g, "x", d->discrete);
    env = env_bind(g, env, d->value, site->x);
    if (d->discrete) site->args[site->nargs++] = elaborate(g, d->log_density, env, 0, NULL);
    else if (d->cdf && d->ccdf) {
        site->args[site->nargs++] = elaborate(g, d->cdf, env, 0, NULL);
        site->args[site->nargs++] = elaborate(g, d->ccdf, env, 0, NULL);
    }
}

// Whether the library can draw from it: by a routine, or by weighing integers.
static bool can_be_drawn(const Distribution *d) { return d->sample || (d->discrete && !d->value_rank); }

// A draw that is not of the posterior: a site. Ends of its truncation and declared bounds hold together. Integers without a routine are
// drawn by their weights. It goes to the end of a list.
static Site *draw_site(Graph *g, Span span, const Distribution *d, Loops plates, Expr *value, int nargs, Expr **args, Expr *lo, Expr *hi,
                       Site **last)
{
    const int most = d->sample ? d->sample->nkids : 0, truncated = d->sample_truncated ? d->sample_truncated->nkids : 0;
    Site *site = NEW(g->arena, Site);
    *site = (Site){.span = span, .var = value->var, .plates = plates, .n = value->nargs, .dist = d, .nargs = most, .nsample = most};
    memcpy(site->subscript, value->args, sizeof *site->subscript * (size_t)value->nargs);
    for (int k = site->n; k < value->var->rank; k++) site->subscript[k] = ex_num(1);  // a vector or a matrix: where it begins
    site->args = NEW_N(g->arena, Expr *, (most > truncated ? most : truncated) + 8);
    const Env *env = bind_arguments(g, d, nargs, args, value);
    if (d->sample) {
        site->sample = d->sample->name;
        for (int i = 0; i < most; i++) site->args[i] = elaborate_whole(g, d->sample->kid[i], env);
    }
    Expr *end[2] = {lo, hi}, *support[2], *declared[2] = {value->var->lower, value->var->upper};
    support_ends(g, d, nargs, args, value, &support[0], &support[1]);
    for (int side = 0; side < 2 && d->support == SUPPORT_CIRCLE; side++) support[side] = side ? ex_pi() : ex_neg(ex_pi());
    bool within = !site->sample;
    for (int side = 0; side < 2; side++) {
        if (d->value_rank == 0 && declared[side]) end[side] = end[side] ? ex_inner(end[side], declared[side], side) : declared[side];
        if (lies_within(end[side], support[side], side)) end[side] = NULL;
        within |= end[side] != NULL;
    }
    if (within) draw_within(g, site, env, end, support);
    else if (d->discrete) {  // what a routine gives for arguments out of range lies outside
        site->args[site->nargs++] = support[0] ? support[0] : ex_num(-INFINITY);
        site->args[site->nargs++] = support[1] ? support[1] : ex_num(INFINITY);
    }
    // of vectors and matrices the routine reports it
    Expr *inside = d->value_rank ? NULL : whole_domains(g, d, nargs, args, value, d->discrete && !within);
    if (inside) site->args[site->nargs++] = inside;
    site->guarded = inside != NULL;
    while (*last) last = &(*last)->next;
    *last = site;
    return site;
}

// A draw in the predict block.
Site *predict(Graph *g, const Stmt *s, const Distribution *d, Loops plates, Expr *value, Expr **args, Expr *lo, Expr *hi)
{
    if (value->kind != EX_REF || !can_be_drawn(d)) {
        Diag *m = diag(g->diags, s->dist_span, DIAG_E0503, d->name);
        if (!d->sample && d->support == SUPPORT_COUNTS)
            diag_help(m, "it does not say how many are counted; draw one category after the other, each from what is left: binomial(n, "
                         "theta[1]), ... (with theta from its distribution, if that is summed out)");
        return NULL;
    }
    const Constraint c = value->var->constraint;
    if (constraint_rank(value->var) == 1 && support_table[d->support].constraint != c) {
        Diag *m = diag(g->diags, s->dist_span, DIAG_E0503, value->var->name);
        diag_because(m, "its elements are constrained together, and `%s` would draw them as if they were not", d->name);
        diag_help(m, c == CONSTRAINT_SUM_TO_ZERO ? "draw an ordinary vector and subtract its mean: vector[K] w ~ normal(0, s); x = w - "
                                                   "mean(w); (for elements of one variance that is the same)"
                     : c == CONSTRAINT_ORDERED || c == CONSTRAINT_POSITIVE_ORDERED
                         ? "draw an ordinary vector and sort it: vector[K] w ~ ...; x = sort_asc(w); (for elements of one distribution "
                           "that is the same)"
                         : "compute it from draws that are not");
        return NULL;
    }
    return draw_site(g, s->span, d, plates, value, s->nargs, args, lo, hi, &value->var->sites);
}

// Which component of a mixture an element is drawn from: a hidden variable beside the one that is predicted.
static Var *hidden_component(Graph *g, const Var *v, Span span, int rank, OnRequest on_request)
{
    Var *c = var_unique(g, arena_printf(g->arena, "component_of_%s", v->name), VAR_PREDICTED);
    c->base = BASE_INT;
    c->discrete = c->hidden = true;
    c->span = span;
    c->rank = rank;
    c->on_request = on_request;
    memcpy(c->dim, v->dim, sizeof *c->dim * (size_t)rank);
    return c;
}

const Distribution *not_drawn(const Factor *f)
{
    for (int i = 0; i < f->ncomponents; i++)
        if (!can_be_drawn(f->component[i].dist)) return f->component[i].dist;
    return f->ncomponents || can_be_drawn(f->dist) ? NULL : f->dist;
}

void draw_as(Graph *g, const Factor *f, Expr *value, OnRequest on_request, Site **of_component, Site **last)
{
    const bool cut = f->truncated && !f->censored;
    if (!f->ncomponents) {
        draw_site(g, f->span, f->dist, f->plates, value, f->nargs, f->args, cut ? f->lower : NULL, cut ? f->upper : NULL, last);
        return;
    }
    Var *c = value->var->component;
    if (!c || c->rank != value->nargs) c = value->var->component = hidden_component(g, value->var, f->span, value->nargs, on_request);
    Expr *component = ex_ref(c, value->nargs, value->args), *most = f->plate ? f->plate->hi : ex_num(f->ncomponents);
    Index *k = index_new(intern("k"), ex_num(1), most);
    Expr *weight = f->plate ? ex_replace_index(f->component[0].weight, f->plate, ex_index(k)) : f->component[f->ncomponents - 1].weight;
    for (int i = f->ncomponents - 1; i-- > 0;)
        weight = ex_call3("if_else", ex_call2("==", ex_index(k), ex_num(i + 1)), f->component[i].weight, weight);
    Expr *weights = ex_array(k, most, weight);
    draw_site(g, f->span, library_distribution(g->stdlib, intern("categorical")), f->plates, component, 1, &weights, NULL, NULL,
              of_component ? of_component : &c->sites);
    for (int i = 0; i < f->ncomponents; i++) {
        const Component *part = &f->component[i];
        Expr **args = NEW_N(g->arena, Expr *, part->nargs + 1);
        for (int a = 0; a < part->nargs; a++) args[a] = f->plate ? ex_replace_index(part->args[a], f->plate, component) : part->args[a];
        Site *site = draw_site(g, f->span, part->dist, f->plates, value, part->nargs, args, NULL, NULL, last);
        if (!f->plate) site->when = ex_call2("==", component, ex_num(i + 1));
        site->again = i > 0;
    }
}

void replicate(Graph *g, const Factor *f, Expr *value) { draw_as(g, f, value, value->var->on_request, NULL, &value->var->sites); }

// A mixture in the predict block: a hidden variable says which component each element is drawn from, and each component is a site for its
// elements. A plate of components is one site, whose arguments the hidden variable looks up.
void predict_mixture(Graph *g, const Stmt *s, const StmtScope *scope, int extra, Index *const *more, Expr *const *at, Expr *value)
{
    Var *v = value->var, *c = hidden_component(g, v, s->span, value->nargs, v->on_request);
    Expr *component = ex_ref(c, value->nargs, value->args), *weights = elaborate_weights(g, s, scope->env, extra, at);
    if (ex_rank(weights) == 0) {
        Index *k = index_new(intern("k"), ex_num(1), ex_num(2));
        weights = ex_array(k, ex_num(2), ex_call3("if_else", ex_call2("==", ex_index(k), ex_num(1)), weights, ex_sub(ex_num(1), weights)));
    }
    // which component is drawn follows from elements before it: one series
    if (ex_mentions(weights, v)) v->decl->recursive = true;
    Stmt pick = *s;
    pick.nargs = 1;
    pick.dist = intern("categorical");
    predict(g, &pick, library_distribution(g->stdlib, pick.dist), plates_of(g, scope, s->span, extra, more), component, &weights, NULL,
            NULL);
    int n = 0;
    for (const Stmt *part = s; part; part = part == s ? s->more : part->next) {
        const Distribution *d = library_distribution(g->stdlib, part->dist);
        Expr **args = NEW_N(g->arena, Expr *, part->nargs + 1);
        n++;
        for (int i = 0; i < part->nargs; i++) {
            const int want = i < d->nparams ? d->params[i]->type.rank : 0;
            args[i] = elaborate_of_component(g, part, i, scope->env, want, extra, at, component);
        }
        Expr *end[2], *declared[2] = {v->lower, v->upper};
        support_ends(g, d, part->nargs, args, value, &end[0], &end[1]);
        for (int side = 0; side < 2 && d->value_rank == 0; side++) {
            if (!declared[side] || lies_within(declared[side], end[side], side)) continue;
            diag_help(diag(g->diags, s->span, DIAG_E0404, "mixture", "of several distributions"),
                      "the declared bound of `%s` would truncate it", v->name);
            return;
        }
        Site *site = predict(g, part, d, plates_of(g, scope, s->span, extra, more), value, args, NULL, NULL);
        if (!site) return;
        if (s->more) site->when = ex_call2("==", component, ex_num(n));
        site->again = n > 1;
    }
}
