// density.c -- the log density of a factor: that of its distribution with what support, truncation and data add; of a mixture, the log of
// the sum over its components.
//
//   before   normal(y[i] | mu, s) T(0, ), mu an unknown with a positive support
//   after    -((y[i] - mu)/s)^2/2 - log(s) - log(2*pi)/2 - log P(0 <= y[i])
//
// Needs: a factor with its plates.     Gives: Factor.log_density and the ends of its support; of unknowns, what is known of theirs.
#include <math.h>
#include <string.h>
#include "density.h"
#include "../terms/var.h"
#include "../terms/ranges.h"
#include "../terms/supports.h"
#include "../terms/factor.h"
#include "law.h"
#include "domains.h"

// The value lies between lo and hi (either may be NULL): the variable's static support if these are numbers and the
// statement covers the variable, else a term of the log density.
static void restrict_support(Factor *f, Var *v, Expr *lo, Expr *hi)
{
    bool numbers = (!lo || lo->kind == EX_NUM) && (!hi || hi->kind == EX_NUM);
    if (v && !v->mixed) {
        double least = -INFINITY, most = INFINITY, other;
        if (lo) range_of(lo, &least, &other);
        if (hi) range_of(hi, &other, &most);
        if (least > v->lower_number) v->lower_number = least;
        if (most < v->upper_number) v->upper_number = most;
        if (numbers) return;
    }
    if (!f->value) return;
    if (f->observed && (!lo || !ex_unknown(lo)) && (!hi || !ex_unknown(hi)))
        f->if_missing = ex_add2(f->if_missing, ex_within(f->value, lo, hi));
    else factor_add(f, ex_within(f->value, lo, hi));
}

// log P(lo <= x <= hi) of a distribution of integers, by adding up the density.
static Expr *log_mass(Graph *g, const Distribution *d, int nargs, Expr **args, Expr *lo, Expr *hi)
{
    Index *k = index_new(intern("k"), lo, hi);
    Expr *density = elaborate(g, d->log_density, bind_arguments(g, d, nargs, args, ex_index(k)), 0, NULL);
    if (lo == hi) return ex_replace_index(density, k, lo);
    return ex_reduce("log_sum_exp", k, lo, hi, density);
}

// The normaliser of truncated integers: the probability of what is left where that is a finite sum, else one less that of what is cut off.
// NULL: neither is finite, or, if only a few terms are wanted, neither is known to be short.
static Expr *log_mass_left(Graph *g, const Factor *f, const Distribution *d, int nargs, Expr **args, bool few)
{
    enum { FEW = 16 };
    const Env *env = bind_arguments(g, d, nargs, args, f->value);
    Expr *least = d->lower ? elaborate(g, d->lower, env, 0, NULL) : NULL, *most = d->upper ? elaborate(g, d->upper, env, 0, NULL) : NULL;
    Expr *lo = !f->lower ? least
               : least   ? ex_inner(least, f->lower, false)
                         : f->lower,
         *hi = !f->upper ? most
               : most    ? ex_inner(most, f->upper, true)
                         : f->upper;
    Expr *cut = f->lower && least && !f->upper ? ex_sub(f->lower, least) : NULL;  // values cut off below, none above
    if (cut && cut->kind == EX_NUM && cut->number <= 0) return ex_num(0);
    if (few && !(cut && cut->kind == EX_NUM && cut->number <= FEW)) {
        const Expr *span = lo && hi ? ex_sub(hi, lo) : NULL;
        if (!span || span->kind != EX_NUM || span->number >= FEW) return NULL;
    }
    if (cut && (!hi || cut->kind == EX_NUM))
        return ex_call1("log1m_exp", log_mass(g, d, nargs, args, least, ex_add2(f->lower, ex_num(-1))));
    return lo && hi ? log_mass(g, d, nargs, args, lo, hi) : NULL;
}

// An end of a truncation that is an end of the support, or infinite, leaves nothing out: a log of nothing has no derivative, nor have
// distribution functions at an end. Sums and products have.
static Expr *unless_at_end(Expr *end, int side, Expr *support, Expr *there, Expr *else_)
{
    if (serves_at_end(else_)) return else_;
    Expr *reached = support ? ex_call2("at end", end, support) : at_infinity(end, side);
    return reached ? ex_call3("if_else", reached, there, else_) : else_;
}

static bool is_open(const Expr *end, int side) { return end && end->kind == EX_NUM && end->number == (side ? INFINITY : -INFINITY); }

// log P(lower <= x <= upper) of a factor with ends, which may lie beyond those of the support, where distribution functions are not asked.
// 0 where nothing is cut off. NULL: the library does not know it; *needed: it depends on unknowns.
static Expr *log_mass_between(Graph *g, Factor *f, const Distribution *d, int nargs, Expr **args, bool *needed)
{
    *needed = false;
    if (d->log_density && d->log_density->kind == AST_INT) return ex_num(0);  // flat: there is nothing to normalise
    Expr *ends[2], *lo = f->lower, *hi = f->upper;
    support_ends(g, d, nargs, args, f->value, &ends[0], &ends[1]);
    if (lo && ends[0]) lo = lies_within(lo, ends[0], 0) ? NULL : ex_inner(lo, ends[0], false);
    if (hi && ends[1]) hi = lies_within(hi, ends[1], 1) ? NULL : ex_inner(hi, ends[1], true);
    if (is_open(lo, 0)) lo = NULL;
    if (is_open(hi, 1)) hi = NULL;
    if (!lo && !hi) return ex_num(0);
    *needed = (lo && ex_unknown(lo)) || (hi && ex_unknown(hi));
    for (int i = 0; i < nargs; i++) *needed |= ex_unknown(args[i]);
    Expr *before = lo && d->discrete ? ex_add2(lo, ex_num(-1)) : lo;  // cdf(before) is cut off below
    // logs of the probabilities below and above each end
    Expr *below[2] = {NULL, NULL}, *above[2] = {NULL, NULL}, *left = NULL;
    for (int side = 0; side < 2; side++) {
        Expr *end = side ? hi : before;
        if (end && d->cdf) below[side] = elaborate(g, d->cdf, bind_arguments(g, d, nargs, args, end), 0, NULL);
        if (end && d->ccdf) above[side] = elaborate(g, d->ccdf, bind_arguments(g, d, nargs, args, end), 0, NULL);
    }
    if (d->discrete) left = log_mass_left(g, f, d, nargs, args, true);
    if (!left && (lo || hi)) {
        Expr *all = ex_num(0),
             *from = above[0]   ? above[0]
                     : below[0] ? ex_call1("log1m_exp", below[0])
                                : NULL,
             *to = below[1]   ? below[1]
                   : above[1] ? ex_call1("log1m_exp", above[1])
                              : NULL;
        if (lo && from) from = unless_at_end(lo, 0, ends[0], all, from);
        if (hi && to) to = unless_at_end(hi, 1, ends[1], all, to);
        if (!hi) left = from;
        else if (!lo) left = to;
        else if (below[1]) {
            left = ex_call2("log_diff_exp", below[1], below[0]);
            if (above[0])  // in the upper tail by what lies above: what lies below is 1 there in doubles
                left = ex_call3("if_else", ex_call2("in tail", above[0], below[1]), ex_call2("log_diff_exp", above[0], above[1]), left);
            left = unless_at_end(hi, 1, ends[1], from, unless_at_end(lo, 0, ends[0], below[1], left));
        } else if (above[0])
            left = unless_at_end(hi, 1, ends[1], from, unless_at_end(lo, 0, ends[0], to, ex_call2("log_diff_exp", above[0], above[1])));
        if (!left && d->discrete) left = log_mass_left(g, f, d, nargs, args, false);
    }
    return left;
}

Expr *factor_log_mass(Graph *g, Factor *f)
{
    bool needed;
    return log_mass_between(g, f, f->dist, f->nargs, f->args, &needed);
}

// The normaliser of a truncation.
static void normalise(Graph *g, Factor *f, const Distribution *d, int nargs, Expr **args)
{
    bool needed;
    Expr *left = log_mass_between(g, f, d, nargs, args, &needed);
    if (left && left->kind == EX_NUM && left->number == 0) return;
    if (left) factor_add(f, ex_neg(left));
    else if (needed) {
        Diag *m = diag(g->diags, f->span, DIAG_E0502, d->name);
        diag_help(m, "the normaliser of a truncated `%s` depends on its unknown arguments; give the distribution log_cdf and log_ccdf",
                  d->name);
    } else if (!f->original) {
        Diag *m = diag(g->diags, f->span, DIAG_P0604, d->name);
        diag_because(m, "its distribution function is not known to the library; the draws are right");
    }
}

// A variable that a distribution draws whole has its constraint, unless the model declares one.
static void constrain_whole(Var *v, const Distribution *d)
{
    const Constraint c = support_table[d->support].constraint;
    if (c == CONSTRAINT_SIMPLEX || (c != CONSTRAINT_NONE && v->constraint == CONSTRAINT_NONE)) v->constraint = c;
}

// An interval that data may leave empty.
void factor_ends(Factor *f, Expr *lo, Expr *hi)
{
    if (!lo || !hi || (lo->kind == EX_NUM && hi->kind == EX_NUM) || !ex_data_only(lo) || !ex_data_only(hi)) return;
    f->from = lo;
    f->to = hi;
}

// An angle lies from -pi to pi, unless the model gives an interval of at most 2 pi.
static void restrict_to_circle(Factor *f, Var *v)
{
    const Expr *lo = f->truncated ? f->lower : NULL, *hi = f->truncated ? f->upper : NULL;
    if (lo && hi && lo->kind == EX_NUM && hi->kind == EX_NUM && hi->number - lo->number <= 2 * M_PI * (1 + 1e-6)) return;
    restrict_support(f, v, ex_neg(ex_pi()), ex_pi());
}

// The log density of one instance, with what the support and the truncation add.
void factor_density(Graph *g, Factor *f, const Distribution *d, Expr *value, int nargs, Expr **args)
{
    f->dist = d;
    f->value = value;
    f->nargs = nargs;
    f->args = args;
    f->observed = ex_data_only(value);
    const Env *env = bind_arguments(g, d, nargs, args, value);
    if (d->log_density) factor_add(f, elaborate(g, d->log_density, env, 0, NULL));
    Var *v = value->kind == EX_REF && (var_unknown(value->var)) ? value->var : NULL;
    if (v) {
        if (d->support == SUPPORT_POSITIVE) restrict_support(f, v, ex_num(0), NULL);
        if (d->support == SUPPORT_UNIT) restrict_support(f, v, ex_num(0), ex_num(1));
        if (d->support == SUPPORT_CIRCLE) restrict_to_circle(f, v);
        if (d->support == SUPPORT_SIMPLEX) restrict_support(f, v, ex_num(0), ex_num(1));
        constrain_whole(v, d);
        if (d->discrete) v->discrete = true;
    }
    if (f->observed && d->support == SUPPORT_CIRCLE) restrict_to_circle(f, NULL);
    if (f->observed && d->support == SUPPORT_POSITIVE) {
        f->least = ex_num(0);
        restrict_support(f, NULL, f->least, NULL);
    }
    if (f->observed && d->support == SUPPORT_UNIT) {
        f->least = ex_num(0);
        f->most = ex_num(1);
        restrict_support(f, NULL, f->least, f->most);
    }
    if (d->lower || d->upper) {
        Expr *lo = d->lower ? elaborate(g, d->lower, env, 0, NULL) : NULL, *hi = d->upper ? elaborate(g, d->upper, env, 0, NULL) : NULL;
        if (f->observed && lo && !ex_unknown(lo)) f->least = lo;
        if (f->observed && hi && !ex_unknown(hi)) f->most = hi;
        if (v && v->discrete) {  // settle_values makes one range of those of all statements
            f->least = lo;
            f->most = hi;
        } else restrict_support(f, v, lo, hi);
    }
    if (f->truncated) {
        if (!v || !v->discrete) restrict_support(f, v, f->lower, f->upper);
        if (v && v->discrete && f->lower) f->least = f->least ? ex_inner(f->least, f->lower, false) : f->lower;
        if (v && v->discrete && f->upper) f->most = f->most ? ex_inner(f->most, f->upper, true) : f->upper;
        if (f->observed && f->lower && !ex_unknown(f->lower)) f->least = f->least ? ex_inner(f->least, f->lower, false) : f->lower;
        if (f->observed && f->upper && !ex_unknown(f->upper)) f->most = f->most ? ex_inner(f->most, f->upper, true) : f->upper;
        if (!f->censored) normalise(g, f, d, nargs, args);
    }
    if (d->value_rank) return;
    Expr *lo, *hi;
    support_ends(g, d, nargs, args, value, &lo, &hi);
    if (f->lower && f->truncated) lo = lo ? ex_inner(lo, f->lower, false) : f->lower;
    if (f->upper && f->truncated) hi = hi ? ex_inner(hi, f->upper, true) : f->upper;
    factor_ends(f, lo, hi);
}

// ---- mixtures ----

static Distribution *mixture_of(Graph *g, const Distribution *like, bool same)
{
    Distribution *d = NEW(g->arena, Distribution);
    *d = (Distribution){.name = "mixture",
                        .span = like->span,
                        .discrete = like->discrete,
                        .value_rank = like->value_rank,
                        .support = same               ? like->support
                                   : like->value_rank ? SUPPORT_VECTOR
                                   : like->discrete   ? SUPPORT_INTEGER
                                                      : SUPPORT_REAL};
    return d;
}

Expr *component_density(Graph *g, const Factor *f, const Component *c)
{
    Expr *e = elaborate(g, c->dist->log_density, bind_arguments(g, c->dist, c->nargs, c->args, f->value), 0, NULL), *lo, *hi;
    support_ends(g, c->dist, c->nargs, c->args, f->value, &lo, &hi);
    // where others are possible, this one is not
    if (lo && lo != f->least) e = ex_call3("if_else", ex_call2("<=", lo, f->value), e, ex_num(-INFINITY));
    if (hi && hi != f->most) e = ex_call3("if_else", ex_call2("<=", f->value, hi), e, ex_num(-INFINITY));
    if (c->dist->support == SUPPORT_CIRCLE && f->dist->support != SUPPORT_CIRCLE && !f->observed)
        e = ex_call3("if_else", ex_call2("<=", ex_call1("fabs", f->value), ex_pi()), e, ex_num(-INFINITY));
    Expr *inside = inside_domains(g, c->dist, c->nargs, c->args, f->value);
    return inside ? ex_call3("if_else", inside, e, ex_num(-INFINITY)) : e;
}

// The log of the sum over components.
static Expr *mixture_sum(Graph *g, const Factor *f)
{
    Expr *sum = NULL;
    for (int i = f->ncomponents - 1; i >= 0; i--) {
        Expr *e = ex_add2(ex_log(f->component[i].weight), component_density(g, f, &f->component[i]));
        sum = f->plate ? ex_reduce("log_sum_exp", f->plate, f->plate->lo, f->plate->hi, e) : sum ? ex_call2("log_sum_exp2", e, sum) : e;
    }
    return sum;
}

void mixture_in_domains(Graph *g, Factor *f)
{
    for (int i = 0; i < f->ncomponents; i++) {
        if (!inside_domains(g, f->component[i].dist, f->component[i].nargs, f->component[i].args, f->value)) continue;
        Expr *sum = mixture_sum(g, f);
        g->supports_known = false;  // and what there was before
        f->log_density = ex_add2(ex_sub(f->log_density, mixture_sum(g, f)), sum);
        g->supports_known = true;
        return;
    }
}

// A mixture with its indicator summed out. Its support is the widest of its components'.
void mixture_density(Graph *g, Factor *f, Expr *value)
{
    bool same = true, open[2] = {false, false};
    f->value = value;
    f->observed = ex_data_only(value);
    for (int i = 0; i < f->ncomponents; i++) {
        const Component *c = &f->component[i];
        Expr *end[2];
        same &= c->dist->support == f->component[0].dist->support;
        support_ends(g, c->dist, c->nargs, c->args, value, &end[0], &end[1]);
        for (int side = 0; side < 2; side++) {
            Expr **widest = side ? &f->most : &f->least;
            if (!end[side] || (f->plate && ex_mentions_index(end[side], f->plate)) || (f->observed && ex_unknown(end[side])))
                open[side] = true;
            else *widest = !*widest || *widest == end[side] ? end[side] : ex_inner(*widest, end[side], side == 0);
        }
    }
    if (open[0]) f->least = NULL;
    if (open[1]) f->most = NULL;
    f->dist = mixture_of(g, f->component[0].dist, same);
    Var *v = value->kind == EX_REF && var_unknown(value->var) ? value->var : NULL;
    if (v && f->dist->discrete) v->discrete = true;
    if (v && same) constrain_whole(v, f->dist);
    factor_add(f, mixture_sum(g, f));
    if (!(v && v->discrete)) restrict_support(f, v, f->least, f->most);
    if (v && f->dist->support == SUPPORT_CIRCLE) restrict_to_circle(f, v);
}

// ---- statements target += ----

// c*f(...), f one of the functions that are written with log Gamma. NULL: e is something else.
static const Expr *term_of(const Expr *e, FunctionId fn, double *c)
{
    const bool times = e->kind == EX_MUL && e->nargs == 2 && e->args[0]->kind == EX_NUM;
    const Expr *call = times ? e->args[1] : e;
    *c = times ? e->args[0]->number : 1;
    return call->kind == EX_CALL && call->fn == fn ? call : NULL;
}

// lgamma(x + n) - lgamma(x) as lgamma_rise(x, n), n at least 0, which keeps its digits where x is large. Of all pairs, a number n is taken
// first.
static Expr *lgamma_rises(Expr *e)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; e->kind == EX_ADD && i < e->nargs; i++)
            for (int k = 0; k < e->nargs; k++) {
                double one, other;
                const Expr *more = term_of(e->args[i], FN_lgamma, &one), *less = i != k ? term_of(e->args[k], FN_lgamma, &other) : NULL;
                if (!more || !less || !(one * other < 0) || !ex_positive(more->args[0]) || !ex_positive(less->args[0])) continue;
                Expr *apart = ex_sub(more->args[0], less->args[0]);
                double least, most;
                range_of(apart, &least, &most);
                if (apart->kind == EX_NUM ? !(apart->number > 0) : pass == 0 || !(least >= 0)) continue;
                Expr *rise = ex_call2("lgamma_rise", less->args[0], apart), *times = ex_num(copysign(fmin(fabs(one), fabs(other)), one));
                return lgamma_rises(ex_add2(e, ex_mul2(times, ex_add2(rise, ex_sub((Expr *)less, (Expr *)more)))));
            }
    return e;
}

// lbeta(x + n, y + m) - lbeta(x, y): by log Gamma, of which all are then taken together.
static Expr *lbeta_apart(Expr *e)
{
    for (int i = 0; e->kind == EX_ADD && i < e->nargs; i++)
        for (int k = i + 1; k < e->nargs; k++) {
            double one, other;
            const Expr *a = term_of(e->args[i], FN_lbeta, &one), *b = term_of(e->args[k], FN_lbeta, &other);
            if (!a || !b || one != -other) continue;
            Expr *sum = ex_sub(e, ex_add(2, (Expr *[]){e->args[i], e->args[k]}));
            for (int which = 0; which < 2; which++) {
                Expr *const *of = which ? b->args : a->args, *c = ex_num(which ? other : one);
                Expr *each =
                    ex_sub(ex_add2(ex_call1("lgamma", of[0]), ex_call1("lgamma", of[1])), ex_call1("lgamma", ex_add2(of[0], of[1])));
                sum = ex_add2(sum, ex_mul2(c, each));
            }
            return lbeta_apart(sum);
        }
    return e;
}

static Expr *with_rises(Expr *e, void *with)
{
    (void)with;
    return lgamma_rises(lbeta_apart(e));
}

static Expr *added_term(Graph *g, const Ast *e, const Env *env)
{
    return added_density(ex_map(elaborate(g, e, env, 0, NULL), with_rises, NULL));
}

// The expression is elaborated again where it holds densities and supports are known.
typedef struct Added {
    Factor *factor;
    const Ast *written;
    const Env *env;
    struct Added *next;
} Added;

void target_density(Graph *g, Factor *f, const Ast *e, const Env *env)
{
    f->log_density = added_term(g, e, env);
    Added *a = NEW(g->arena, Added);
    *a = (Added){f, e, env, g->added};
    g->added = a;
}

void added_in_domains(Graph *g)
{
    if (!g->laws) return;
    memset(g->defined, 0, sizeof g->defined);  // definitions may hold densities, too
    for (Added *a = g->added; a; a = a->next) a->factor->log_density = added_term(g, a->written, a->env);
}
