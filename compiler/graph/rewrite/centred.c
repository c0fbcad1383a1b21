// centred.c -- the centred form of a model that is written non-centred.
//
//   before   z[t] ~ normal(0, 1)     x[t] = x[t - 1] + s*z[t]     y[t] ~ poisson_log(x[t])        x is a definition
//   after    x[t] ~ normal(x[t - 1], s)     y[t] ~ poisson_log(x[t])        z[t] = (x[t] - x[t - 1])/s, for the draws
//
// Both are the same model. Let x[k] = rest + c z[k] with c > 0, and z[k] of a family with centre m and spread r. Given rest and c, x[k] is
// of that family, with centre rest + c m and spread c r. Group moves, collapsed updates, joint normals and proposals are found in the
// centred form. NUTS chooses for each element a form between the two (docs/gradients.md).
//
// The density of the model as written, by z, is that by x times the product of all c. Their logarithms are in g->written: lp__ and modes
// include them, updates do not.
//
// x is a latent if some z is one. Draws are stored as those of the model as written: z of a `latent` block only if a run asks for it.
//
// Needs: build done.     Gives: x as an unknown, z as a definition.     Keeps: everything else.
// Conditions: those of innovations.c, with z and x one to one. c contains an unknown, or x is a recursion. c is positive. Neither c nor the
// rest contains data, since `--new` computes definitions again from other data. One statement draws all of z, from a family with a centre
// and a spread. No request names x or z, no bounds are declared for them, no recursion reads z, and the elements of z that a factor reads
// are known.
#include <math.h>
#include <string.h>
#include "centred.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/elaborate.h"
#include "../model/density.h"
#include "../algebra/innovations.h"

// ---- centre and spread of a distribution ----

static Expr *real_above(const Graph *g, const char *name, double lower)
{
    Var *v = NEW(g->arena, Var);
    *v = (Var){.name = name, .kind = VAR_ELEMENT, .id = 63, .base = BASE_REAL, .lower_number = lower, .upper_number = INFINITY};
    return ex_ref(v, 0, NULL);
}

static Expr *of_known_sign(Expr *e, void *with)
{
    (void)with;
    if (e->kind != EX_CALL || (e->fn != FN_fabs && e->fn != FN_LT && e->fn != FN_LE)) return NULL;
    Expr *x = e->fn == FN_fabs ? e->args[0] : ex_sub(e->args[1], e->args[0]), *minus = ex_neg(x);
    if (ex_positive(x)) return e->fn == FN_fabs ? x : ex_num(1);
    return !ex_positive(minus) ? NULL : e->fn == FN_fabs ? minus : ex_num(0);
}

static Expr *density_at(Graph *g, const Distribution *d, Expr *const *args, Expr *x)
{
    Decl **name = NEW_N(g->arena, Decl *, d->nparams + 1);
    Expr **value = NEW_N(g->arena, Expr *, d->nparams + 1);
    for (int i = 0; i < d->nparams; i++) {
        name[i] = d->params[i];
        value[i] = args[i];
    }
    name[d->nparams] = d->value;
    value[d->nparams] = x;
    return elaborate_rule(g, d->log_density, d->nparams + 1, name, value);
}

// Whether the log density of x, with a and s for two of its arguments, has them as (x - a)/s alone, but for -log(s): then x = a + s z makes
// a density of z that knows neither. Asked for either sign of z apart, of which |x - a| and choices by it are then known.
static bool is_scaled(Graph *g, const Distribution *d, Expr *const *args, int centre, int spread)
{
    Expr *a = real_above(g, "a", -INFINITY), *s = real_above(g, "s", 0), *z = real_above(g, "z", 0),
         **with = NEW_N(g->arena, Expr *, d->nparams + 1);
    for (int i = 0; i < d->nparams; i++) with[i] = i == centre ? a : i == spread ? s : args[i];
    for (int sign = -1; sign <= 1; sign += 2) {
        Expr *density = density_at(g, d, with, ex_add2(a, ex_mul(3, (Expr *[]){ex_num(sign), s, z}))),
             *rest = ex_add2(ex_map(density, of_known_sign, NULL), ex_call1("log", s));
        if (ex_reads(rest, a->var) || ex_reads(rest, s->var)) return false;
    }
    return true;
}

bool centre_and_spread(Graph *g, const Distribution *d, int nargs, Expr *const *args, int *centre, int *spread)
{
    for (int i = 0; i < nargs && nargs == d->nparams && d->log_density; i++)
        for (int k = i + 1; k < nargs; k++) {
            if (ex_rank(args[i]) || ex_rank(args[k]) || !is_scaled(g, d, args, i, k)) continue;
            *centre = i;
            *spread = k;
            return true;
        }
    return false;
}

// ---- what is centred ----

typedef struct Centred {
    Graph *g;
    Var *x;
    Innovations *in;
    Factor **prior;  // of each variable of innovations
    Var *const *z;
    int nz;
} Centred;

// Data, with which `--new` computes definitions again; and what is a definition since another model was centred and stands in a statement
// whose elements are not known.
static bool test_kept_out(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_DATA || v->kind == VAR_LET || v->in_place;
}

static bool bounds_mention(const Graph *g, const Var *z)
{
    for (int i = 0; i < g->nvars; i++)
        if ((g->vars[i]->lower && ex_mentions(g->vars[i]->lower, z)) || (g->vars[i]->upper && ex_mentions(g->vars[i]->upper, z)))
            return true;
    return false;
}

static bool plates_mention(const Loops *p, const Var *z)
{
    for (int i = 0; i < p->n; i++)
        if (ex_mentions(p->index[i]->lo, z) || ex_mentions(p->index[i]->hi, z)) return true;
    return p->guard && ex_mentions(p->guard, z);
}

// The plate of a statement that subscript e is, but for a number; NULL: none.
static Index *plate_of(const Loops *p, Expr *e)
{
    for (int i = 0; i < p->n; i++)
        if (ex_sub(e, ex_index(p->index[i]))->kind == EX_NUM) return p->index[i];
    return NULL;
}

// The only statement that draws z, over all of its elements; NULL: there is none.
static Factor *prior_of(const Graph *g, const Var *z)
{
    Factor *only = NULL;
    for (Factor *f = g->factors; f; f = f->next) {
        if (!f->value || !ex_mentions(f->value, z)) continue;
        if (only || f->value->kind != EX_REF || f->value->nargs != f->plates.n) return NULL;
        only = f;
    }
    if (!only || !only->dist || only->truncated || only->ncomponents || only->dist->value_rank || only->plates.guard) return NULL;
    for (int k = 0; k < only->value->nargs; k++) {
        const Index *plate = plate_of(&only->plates, only->value->args[k]);
        if (!plate) return NULL;
        for (int j = 0; j < k; j++)
            if (plate_of(&only->plates, only->value->args[j]) == plate) return NULL;
    }
    return only;
}

// The statement as one of a family with a centre and a spread: std_normal() is normal(0, 1).
static const Distribution *family_of(Graph *g, const Factor *f, Expr ***args, int *centre, int *spread)
{
    *args = f->args;
    if (centre_and_spread(g, f->dist, f->nargs, f->args, centre, spread)) return f->dist;
    static const double standard[] = {0, 1};
    Expr **of = *args = NEW_N(g->arena, Expr *, 2);
    for (int k = 0; k < 2; k++) of[k] = ex_num(standard[k]);
    for (const Distribution *d = g->stdlib->distributions; d; d = d->next)
        if (!d->is_family && !d->discrete && !d->value_rank && d->nparams == 2 && d->log_density && f->dist->nparams == 0 &&
            f->dist->log_density && centre_and_spread(g, d, 2, of, centre, spread) && *centre == 0 &&
            density_at(g, d, of, f->value) == density_at(g, f->dist, NULL, f->value))
            return d;
    return NULL;
}

static bool may_be_centred(const Graph *g, const Var *x)
{
    if ((x->kind != VAR_SERIES && x->kind != VAR_DERIVED) || !x->decl || x->decl->lower || x->decl->upper || x->base != BASE_REAL ||
        x->hidden || request_of(g, x))
        return false;
    if (x->series && x->series->n > 1) return false;
    for (const Factor *f = g->factors; f; f = f->next)
        if (f->value && f->value->kind == EX_REF && f->value->var == x) return false;
    return true;
}

static bool changes_are_known(const Centred *c)
{
    bool unknown = c->x->kind == VAR_SERIES;
    Loops loops;
    InnovationChange of;
    for (int k = 0; innovation_change(c->in, k, &loops, &of); k++) {
        if (!ex_above_zero(of.coefficient) || ex_any_var(of.coefficient, test_kept_out, NULL) || ex_any_var(of.rest, test_kept_out, NULL))
            return false;
        unknown |= ex_unknown(of.coefficient);
    }
    return unknown;
}

static bool has_equation(const Graph *g)
{
    for (int i = 0; i < g->nvars; i++)
        for (const Site *t = g->vars[i]->sites; t; t = t->next)
            if (t->ode) return true;
    return false;
}

static bool may_be_definition(Centred *c, const Var *z)
{
    Graph *g = c->g;
    if ((z->kind != VAR_PARAMETER && z->kind != VAR_LATENT) || !z->decl || z->decl->lower || z->decl->upper || z->decl->init || z->sites ||
        bounds_mention(g, z) || has_equation(g))
        return false;
    for (const Series *s = g->series; s; s = s->next)
        if (s->var[0] != c->x && series_reads(s, z)) return false;
    return true;
}

// ---- factors by x ----

static Expr *by_x(const Centred *c, Expr *e, bool *good) { return e && *good ? in_terms_of_innovated(c->in, e, good) : e; }

static Expr **all_by_x(const Centred *c, Expr *const *e, int n, bool *good)
{
    Expr **to = NEW_N(c->g->arena, Expr *, n + 1);
    for (int i = 0; i < n; i++) to[i] = by_x(c, e[i], good);
    return to;
}

// A factor that reads z, with what z is in its place. false: it is not known.
static bool factor_by_x(const Centred *c, const Factor *f, Factor *out)
{
    bool good = true;
    *out = *f;
    for (int i = 0; i < c->nz; i++)
        if (plates_mention(&f->plates, c->z[i])) return false;
    Expr **const own[] = {&out->log_density, &out->value, &out->weights, &out->lower, &out->upper,
                          &out->if_missing,  &out->least, &out->most,    &out->from,  &out->to};
    for (size_t k = 0; k < sizeof own / sizeof *own; k++) *own[k] = by_x(c, *own[k], &good);
    out->args = all_by_x(c, f->args, f->nargs, &good);
    out->component = NEW_N(c->g->arena, Component, f->ncomponents + 1);
    for (int i = 0; i < f->ncomponents; i++) {
        out->component[i] = f->component[i];
        out->component[i].args = all_by_x(c, f->component[i].args, f->component[i].nargs, &good);
        out->component[i].weight = by_x(c, f->component[i].weight, &good);
    }
    return good;
}

static bool is_prior(const Centred *c, const Factor *f)
{
    for (int i = 0; i < c->nz; i++)
        if (c->prior[i] == f) return true;
    return false;
}

static bool reads_z(const Centred *c, const Factor *f)
{
    bool any = false;
    for (int i = 0; i < c->nz; i++) {
        any |= factor_mentions(f, c->z[i]) || plates_mention(&f->plates, c->z[i]) || (f->if_missing && ex_mentions(f->if_missing, c->z[i]));
        for (int k = 0; k < f->nargs; k++) any |= ex_mentions(f->args[k], c->z[i]);
    }
    return any;
}

static bool all_factors(const Centred *c, bool change)
{
    for (Factor *f = c->g->factors; f; f = f->next) {
        Factor to;
        if (is_prior(c, f) || !reads_z(c, f)) continue;
        if (!factor_by_x(c, f, &to)) return false;
        if (change) *f = to;
    }
    return true;
}

// Definitions read x, too, so that those that are linear in unknowns of their own may be centred after that. Where it is not known which
// elements of z one reads, it reads z, which is computed before it.
static void definitions_by_x(const Centred *c)
{
    for (int i = 0; i < c->g->nvars; i++)
        for (Site *t = c->g->vars[i] == c->x ? NULL : c->g->vars[i]->sites; t; t = t->next) {
            bool good = true;
            Expr *value = by_x(c, t->value, &good);
            if (good) t->value = value;
        }
}

// ---- the statements that draw x, and z for the draws ----

static Loops fresh_plates(const Loops *loops, Index **fresh)
{
    for (int i = 0; i < loops->n; i++) fresh[i] = index_new(loops->index[i]->name, loops->index[i]->lo, loops->index[i]->hi);
    return loops_of_indices(fresh, loops->n, NULL);
}

static Expr *with_fresh(Expr *e, const Loops *loops, Index *const *fresh)
{
    for (int i = 0; i < loops->n; i++) e = ex_replace_index(e, loops->index[i], ex_index(fresh[i]));
    return e;
}

// e, of an instance of the statement about z, for the element ref.
static Expr *of_element(const Factor *prior, Expr *e, const Expr *ref)
{
    Index *at[MAX_RANK];
    for (int k = 0; k < ref->nargs; k++) {  // two steps: a subscript may hold an index of the statement
        Expr *subscript = prior->value->args[k];
        Index *plate = plate_of(&prior->plates, subscript);
        at[k] = index_new(plate->name, ex_num(1), ref->var->dim[k]);
        e = ex_replace_index(e, plate, ex_sub(ex_index(at[k]), ex_sub(subscript, ex_index(plate))));
    }
    for (int k = 0; k < ref->nargs; k++) e = ex_replace_index(e, at[k], ref->args[k]);
    return e;
}

static void put_written(Graph *g, const Var *z, Span at, Loops plates, Expr *log_density)
{
    if (ex_is_num(log_density, 0)) return;
    Factor *f = NEW(g->arena, Factor), **last = &g->written;
    *f = (Factor){.span = at, .subject = z, .plates = plates, .log_density = log_density, .if_missing = ex_num(0), .id = -1};
    while (*last) last = &(*last)->next;
    *last = f;
}

static void draw_x(const Centred *c, const Loops *loops, const InnovationChange *of, Factor **last)
{
    Graph *g = c->g;
    Factor *prior = NULL;
    for (int i = 0; i < c->nz; i++)
        if (c->z[i] == of->ref->var) prior = c->prior[i];
    int centre, spread;
    Expr **args;
    const Distribution *d = family_of(g, prior, &args, &centre, &spread);
    Index *fresh[MAX_PLATES];
    const Loops plates = fresh_plates(loops, fresh);
    Expr **to = NEW_N(g->arena, Expr *, d->nparams + 1);
    for (int i = 0; i < d->nparams; i++) {
        to[i] = of_element(prior, args[i], of->ref);
        if (i == centre) to[i] = ex_add2(of->rest, ex_mul2(of->coefficient, to[i]));
        if (i == spread) to[i] = ex_mul2(of->coefficient, to[i]);
        to[i] = with_fresh(to[i], loops, fresh);
    }
    Factor *f = *last = factor_beside(g, *last), *const next = f->next;
    *f = (Factor){.id = f->id,
                  .span = prior->span,
                  .subject = of->ref->var,
                  .plates = plates,
                  .log_density = ex_num(0),
                  .if_missing = ex_num(0),
                  .next = next};
    factor_density(g, f, d, with_fresh(of->x, loops, fresh), d->nparams, to);
    put_written(g, of->ref->var, prior->span, plates, with_fresh(ex_call1("log", of->coefficient), loops, fresh));
}

static void compute_z(const Centred *c, const Loops *loops, const InnovationChange *of)
{
    Graph *g = c->g;
    Var *z = of->ref->var;
    Site *t = NEW(g->arena, Site), **last = &z->sites;
    Index *fresh[MAX_PLATES];
    *t = (Site){.span = of->span, .var = z, .plates = fresh_plates(loops, fresh), .n = z->rank};
    t->value = with_fresh(ex_div(ex_sub(of->x, of->rest), of->coefficient), loops, fresh);
    for (int k = 0; k < z->rank; k++) t->subscript[k] = with_fresh(of->ref->args[k], loops, fresh);
    while (*last) last = &(*last)->next;
    *last = t;
}

static void take_out(Graph *g, Factor *f)
{
    Factor **at = &g->factors;
    while (*at != f) at = &(*at)->next;
    *at = f->next;
    if (g->last_factor == &f->next) g->last_factor = at;
}

static void make_unknown(Graph *g, Var *x, bool latent)
{
    Series **s = &g->series;
    while (*s && *s != x->series) s = &(*s)->next;
    if (*s) *s = (*s)->next;
    x->series = NULL;
    x->sites = NULL;
    x->kind = latent ? VAR_LATENT : VAR_PARAMETER;
    if (latent) x->stored = STORED_IF_SMALL;
}

static bool any_latent(const Centred *c)
{
    bool any = false;
    for (int i = 0; i < c->nz; i++) any |= c->z[i]->kind == VAR_LATENT;
    return any;
}

static void change(Centred *c)
{
    Graph *g = c->g;
    Loops loops;
    InnovationChange of;
    all_factors(c, true);
    definitions_by_x(c);
    make_unknown(g, c->x, any_latent(c));
    Factor *last = c->prior[0];
    for (int k = 0; innovation_change(c->in, k, &loops, &of); k++) {
        draw_x(c, &loops, &of, &last);
        compute_z(c, &loops, &of);
    }
    for (int i = 0; i < c->nz; i++) {
        take_out(g, c->prior[i]);
        if (c->z[i]->kind == VAR_LATENT) c->z[i]->stored = STORED_IF_ASKED;
        c->z[i]->kind = VAR_PREDICTED;
        c->z[i]->in_place = c->x;
    }
    g->reading = NULL;
}

static void centre_one(Graph *g, Var *x)
{
    Centred c = {.g = g, .x = x};
    int centre, spread;
    Expr **args;
    if (!may_be_centred(g, x) || !(c.in = innovations_of(g, x)) || !changes_are_known(&c)) return;
    c.z = innovation_vars(c.in, &c.nz);
    c.prior = NEW_N(g->arena, Factor *, c.nz);
    for (int i = 0; i < c.nz; i++)
        if (!may_be_definition(&c, c.z[i]) || !(c.prior[i] = prior_of(g, c.z[i])) || !family_of(g, c.prior[i], &args, &centre, &spread))
            return;
    for (int i = 0; i < c.nz; i++)  // the statements of other innovations may read them
        for (int k = 0; k < c.nz; k++)
            if (k != i && reads_z(&(Centred){.g = g, .z = &c.z[k], .nz = 1}, c.prior[i])) return;
    if (all_factors(&c, false)) change(&c);
}

bool centre_model(Graph *g)
{
    for (int i = 0, n = g->nvars; i < n; i++) centre_one(g, g->vars[i]);
    return true;
}
