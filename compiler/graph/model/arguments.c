// arguments.c -- what distributions ask of data, which the compiler sees of constants only.
//
//   y[i] ~ normal(mu, s[i])     requirements that not s[i] <= 0: arguments lie between the bounds of the parameter
//   z = log(x); y ~ normal(b * z, s)     requirements that z is a number, where a density reads it
//   target += binomial_lpmf(y[i] | n[i], p)     requirements that y[i] lies between 0 and n[i]
//   u[k] ~ normal(u[g[k]], s)   requirements that not g[k] == k: no element stands in its own distribution
//   u ~ icar(a, b, tau)         requires that each pair a[e], b[e] stands once, and that the edges leave no part of the nodes alone
//   y ~ mixture(W[1], ...)      requires that the weights add up to 1, where they are a slice of data or computed from data
//   b ~ multi_normal(m, S)      asks that S is a covariance matrix: an array that is taken whole has the constraint of the parameter, or,
//   on the left, of the support
//
// A bound itself is no value where the density there is no number: normal(mu, 0), but poisson(0) is.
#include <math.h>
#include "arguments.h"
#include "../terms/var.h"
#include "../terms/prover.h"
#include "../terms/ranges.h"
#include "elaborate.h"
#include "law.h"
#include "domains.h"
#include "density.h"

static bool test_response(const Var *v, void *with)
{
    (void)with;
    return v->response;
}
static bool test_unknown(const Var *v, void *with)
{
    (void)with;
    return var_unknown(v);
}
static bool is_of_data(const Var *v) { return v->kind == VAR_DATA || v->kind == VAR_LET; }
static bool test_data(const Var *v, void *with)
{
    (void)with;
    return is_of_data(v);
}

static bool number(const Ast *e, double *out)
{
    if (!e) return false;
    if (e->kind == AST_UNARY && e->op == OP_NEG && number(e->kid[0], out)) {
        *out = -*out;
        return true;
    }
    *out = e->number;
    return e->kind == AST_INT || e->kind == AST_REAL;
}

// The density with parameter k at x and the others well inside their bounds is a number, somewhere.
static bool is_number_at(Graph *g, const Distribution *d, int k, double x)
{
    Expr **args = NEW_N(g->arena, Expr *, d->nparams + 1);
    for (int i = 0; i < d->nparams; i++) {
        double lo = 0, hi = 0;
        const bool low = number(d->params[i]->lower, &lo), high = number(d->params[i]->upper, &hi);
        args[i] = ex_num(i == k ? x : low && high ? (lo + hi) / 2 : low ? lo + 1 : high ? hi - 1 : 0);
    }
    double first = 0;
    number(d->lower, &first);
    for (int t = 0; t < (d->discrete ? 2 : 1); t++) {  // bernoulli(1) is 1
        Factor f = {.log_density = ex_num(0), .if_missing = ex_num(0)};
        factor_density(g, &f, d, ex_num(d->discrete ? first + t : 0.5), d->nparams, args);
        if (f.log_density->kind == EX_NUM && isfinite(f.log_density->number)) return true;
    }
    return false;
}

static bool end_is_open(Graph *g, const Distribution *d, int k, double end, int side)
{
    if (d->value_rank && d->params[k]->type.base == BASE_INT) return false;
    for (int i = 0; i < d->nparams; i++)
        if (d->params[i]->type.rank) return true;  // arrays cannot be tried; none of theirs is
    if (d->value_rank) return true;
    if (!d->log_density) return false;
    return is_number_at(g, d, k, side ? end - 0.5 : end + 0.5) && !is_number_at(g, d, k, end);
}

static const Expr *data_in(const Expr *e)
{
    if (e->kind == EX_REF && is_of_data(e->var)) return e;
    for (int i = 0; i < e->nargs; i++) {
        const Expr *r = data_in(e->args[i]);
        if (r) return r;
    }
    return NULL;
}

// Is it data, with its last dimensions (rank of them) as they are?
static bool taken_whole(const Expr *e, int rank)
{
    return e->kind == EX_REF && e->var->kind == VAR_DATA && e->nargs == e->var->rank - rank;
}

// An end of a parameter's range that is a number once the sizes are known: wishart's nu is above rows(S) - 1.
static bool end_of(Graph *g, const Factor *f, const Ast *bound, double *end)
{
    if (!bound || number(bound, end)) return bound != NULL;
    const Expr *e = elaborate(g, bound, bind_arguments(g, f->dist, f->nargs, f->args, f->value), 0, NULL);
    *end = e->number;
    return e->kind == EX_NUM;
}

// Whether all arrays of a table are taken: by a loop over all of them, or by a table of labels, whose entries all mean something.
static bool takes_all(const Expr *e)
{
    for (int k = 0; k < e->nargs; k++) {
        const Expr *s = e->args[k];
        if (s->kind == EX_NUM || s->kind == EX_ADD) return false;
        if (s->kind == EX_INDEX && !(ex_is_num(s->index->lo, 1) && s->index->hi == e->var->dim[k])) return false;
    }
    return true;
}

void ask_of_array(Requirements *c, const Expr *e, int rank, Expr *guard, Constraint constraint, bool counts, const char *what, Span span)
{
    if (!rank || guard || !taken_whole(e, rank) || !takes_all(e)) return;  // else some of it may be anything
    Var *v = e->var;
    if (v->asked_by || v->constraint != CONSTRAINT_NONE || (constraint == CONSTRAINT_NONE && !counts)) return;
    v->asked = constraint;
    v->asked_counts = counts;
    v->asked_by = arena_printf(c->g->arena, "%s (%s)", what, requirements_line(c->g, span));
}

// ---- arrays written out in the model ----

enum { MOST_WRITTEN = 64 };

// Element i, j (or i alone) of an array of numbers; NaN: it is none.
static double written(Expr *e, int rank, int i, int j)
{
    const Expr *x = ex_at(e, rank, (Expr *[]){ex_num(i + 1), ex_num(j + 1)});
    return x->kind == EX_NUM ? x->number : NAN;
}

static const char *vector_fault(Arena *a, Expr *e, int n, const Decl *p)
{
    double sum = 0, low = -INFINITY, before = -INFINITY;
    const bool bounded = number(p->lower, &low);
    for (int i = 0; i < n; i++) {
        const double x = written(e, 1, i, 0);
        if (bounded && x <= low && p->type.base == BASE_REAL) return arena_printf(a, "above %g in every element", low);
        if (p->constraint == CONSTRAINT_SIMPLEX && x < 0) return "a simplex, without a negative element";
        if (p->constraint == CONSTRAINT_ORDERED && x <= before) return "in ascending order";
        before = x;
        sum += x;
    }
    return p->constraint == CONSTRAINT_SIMPLEX && fabs(sum - 1) > 1e-8 ? "a simplex, whose elements add up to 1" : NULL;
}

static const char *matrix_fault(Arena *a, Expr *e, int n, const Decl *p)
{
    const bool factor = p->constraint == CONSTRAINT_CHOLESKY_COV || p->constraint == CONSTRAINT_CHOLESKY_CORR;
    double *l = NEW_N(a, double, n *n + 1);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const double x = written(e, 2, i, j), y = written(e, 2, j, i);
            if (factor && j > i && x != 0 && !isnan(x)) return "a Cholesky factor, with 0 above the diagonal";
            if (factor && j == i && x <= 0) return "a Cholesky factor, with a positive diagonal";
            if (!factor && (isnan(x) != isnan(y) || fabs(x - y) > 1e-8 * fmax(1, fabs(x)))) return "a covariance matrix, and symmetric";
        }
    for (int i = 0; i < n && !factor; i++)  // Cholesky, as far as there are numbers
        for (int j = 0; j <= i; j++) {
            double sum = written(e, 2, i, j);
            for (int k = 0; k < j; k++) sum -= l[i * n + k] * l[j * n + k];
            if (i == j && sum <= 0) return "a covariance matrix, and positive definite";
            l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
        }
    return NULL;
}

static bool check_written(Requirements *c, const Factor *f, int k)
{
    const Decl *p = f->dist->params[k];
    Expr *e = f->args[k];
    const int rank = p->type.rank;
    if (rank < 1 || rank > 2 || e->kind != EX_ARRAY || ex_rank(e) != rank) return true;
    Expr *size = ex_dim(e, 0);
    if (size->kind != EX_NUM || size->number > MOST_WRITTEN || (rank == 2 && ex_dim(e, 1) != size)) return true;
    if (rank == 2 && (p->constraint == CONSTRAINT_NONE || p->constraint == CONSTRAINT_CORRELATION)) return true;
    const char *must = rank == 1 ? vector_fault(c->g->arena, e, (int)size->number, p) : matrix_fault(c->g->arena, e, (int)size->number, p);
    if (must) diag(c->g->diags, f->span, DIAG_E0402, p->name, f->dist->name, must, "not");
    return must == NULL;
}

static void ask_arrays(Requirements *c, const Factor *f)
{
    const Distribution *d = f->dist;
    for (int k = 0; k < f->nargs && k < d->nparams; k++)
        ask_of_array(c, f->args[k], d->params[k]->type.rank, f->plates.guard, d->params[k]->constraint, false,
                     arena_printf(c->g->arena, "the `%s` of %s", d->params[k]->name, d->name), f->span);
    if (f->value)
        ask_of_array(c, f->value, d->value_rank, f->plates.guard, support_table[d->support].constraint, d->support == SUPPORT_COUNTS,
                     arena_printf(c->g->arena, "drawn from %s", d->name), f->span);
}

// A list of integers, as the ends of edges: all lie between the bounds of the parameter, which are among its values. The density looks
// something up by them, so that they have to be known.
static bool require_integers(Requirements *c, const Factor *f, int k)
{
    Graph *g = c->g;
    const Decl *p = f->dist->params[k];
    Expr *e = f->args[k];
    if (ex_rank(e) != 1) return true;
    Index *along = index_new(p->name, ex_num(1), ex_dim(e, 0));
    Expr *place = ex_index(along), *x = ex_at(e, 1, &place), *end[2] = {NULL, NULL};
    const Env *env = bind_arguments(g, f->dist, f->nargs, f->args, f->value);
    for (int side = 0; side < 2; side++)
        if (side ? p->upper : p->lower) end[side] = elaborate(g, side ? p->upper : p->lower, env, 0, NULL);
    if (!ex_data_only(x) || (end[0] && !ex_data_only(end[0])) || (end[1] && !ex_data_only(end[1]))) {
        diag(g->diags, f->span, DIAG_E0402, p->name, f->dist->name, "known from data", "not");
        return false;
    }
    const Expr *named = data_in(x);
    for (int side = 0; side < 2; side++) {
        if (!end[side]) continue;
        Requirement q = {.span = f->span, .name = named ? named->var->name : p->name, .nparts = 1, .loops = {.guard = f->plates.guard}};
        for (int i = 0; i < f->plates.n; i++) q.loops.index[q.loops.n++] = f->plates.index[i];
        q.loops.index[q.loops.n++] = along;
        q.fails[0] = side ? ex_call2("<", end[1], x) : ex_call2("<", x, end[0]);
        q.part[0] = side ? ex_sub(end[1], x) : ex_sub(x, end[0]);
        q.nnumbers = 3;
        q.number[0] = place;
        q.number[1] = x;
        q.number[2] = end[side];
        q.says = arena_printf(g->arena, "element # of %s, the `%s` of %s, is #, and must be at %s # (%s)",
                              named ? named->var->name : "an argument", p->name, f->dist->name, side ? "most" : "least",
                              requirements_line(g, f->span));
        require(c, q);
    }
    return true;
}

// Data, or a definition; an array.
static const Expr *array_in(const Expr *e)
{
    if (e->kind == EX_REF && e->nargs) return e;
    for (int i = 0; i < e->nargs; i++) {
        const Expr *r = array_in(e->args[i]);
        if (r) return r;
    }
    return NULL;
}

// " at i = #, t = #": where the indices of the plates stand that it reads.
static const char *where_read(Graph *g, const Expr *e, const Loops *plates, Requirement *q)
{
    const char *at = "";
    for (int i = 0; i < plates->n && q->nnumbers < MAX_RANK; i++) {
        if (!ex_mentions_index(e, plates->index[i])) continue;
        q->number[q->nnumbers++] = ex_index(plates->index[i]);
        at = arena_printf(g->arena, "%s%s%s = #", at, i ? ", " : " at ", plates->index[i]->name);
    }
    return at;
}

// A simplex of data that is no whole array of the file, as a row of a matrix or one that is computed: it adds up to 1, and no element is
// negative.
static void require_simplex(Requirements *c, const Factor *f, int k)
{
    Graph *g = c->g;
    const Decl *p = f->dist->params[k];
    Expr *e = f->args[k];
    if (ex_rank(e) != 1 || f->plates.n == MAX_LOOPS) return;
    if (taken_whole(e, 1) && (e->var->constraint == CONSTRAINT_SIMPLEX || e->var->asked == CONSTRAINT_SIMPLEX)) return;
    Index *along = index_new(p->name, ex_num(1), ex_dim(e, 0));
    Expr *place = ex_index(along), *x = ex_at(e, 1, &place);
    const Expr *named = array_in(x);
    if (!ex_data_only(x) || !named) return;
    Expr *sum = ex_reduce("sum", along, ex_num(1), ex_dim(e, 0), x);
    Requirement q = {.span = f->span, .name = named->var->name, .nparts = 1, .loops = f->plates};
    q.fails[0] = ex_call1("!", ex_call2("<=", ex_call1("abs", ex_plus(sum, -1)), ex_num(1e-8)));
    q.says = arena_printf(g->arena, "the `%s` of %s%s, made of %s, must add up to 1, and do not (%s)", p->name, f->dist->name,
                          where_read(g, x, &f->plates, &q), named->var->name, requirements_line(g, f->span));
    require(c, q);
    if (ex_positive(x)) return;
    q = (Requirement){.span = f->span, .name = named->var->name, .nparts = 1, .loops = f->plates, .nnumbers = 1, .number = {place}};
    q.loops.index[q.loops.n++] = along;
    q.fails[0] = ex_call2("<", x, ex_num(0));
    q.says = arena_printf(g->arena, "element # of the `%s` of %s%s, made of %s, is negative (%s)", p->name, f->dist->name,
                          where_read(g, x, &f->plates, &q), named->var->name, requirements_line(g, f->span));
    require(c, q);
}

bool require_argument(Requirements *c, const Factor *f, int k)
{
    if (f->dist->params[k]->constraint == CONSTRAINT_SIMPLEX) require_simplex(c, f, k);
    if (f->dist->params[k]->type.base == BASE_INT && f->dist->params[k]->type.rank == 1) return require_integers(c, f, k);
    Graph *g = c->g;
    const Decl *p = f->dist->params[k];
    Expr *e = f->args[k];
    Index *along = NULL;  // the elements of a vector
    if (p->type.rank == 1 && taken_whole(e, 1) && (p->lower || p->upper)) {
        Expr *at[MAX_RANK];
        for (int i = 0; i < e->nargs; i++) at[i] = e->args[i];
        at[e->nargs] = ex_index(along = index_new(p->name, ex_num(1), e->var->dim[e->nargs]));
        e = ex_ref(e->var, e->nargs + 1, at);
    }
    if ((p->type.rank && !along) || ex_rank(e)) return true;
    for (int side = 0; side < 2; side++) {
        double end;
        if (!end_of(g, f, side ? p->upper : p->lower, &end)) continue;
        if (e->kind == EX_NUM) {
            if (e->number == end ? !end_is_open(g, f->dist, k, end, side) : (e->number < end) == side) continue;
            diag(g->diags, f->span, DIAG_E0403, p->name, f->dist->name, side ? "below" : "above", arena_printf(g->arena, "%g", end),
                 arena_printf(g->arena, "%g", e->number));
            return false;
        }
        Expr *data = NULL;  // beside what unknowns never make negative: t[i] in poisson(theta[i] * t[i])
        const bool factor = side == 0 && end == 0 && !ex_data_only(e) && is_factor_of_data(e, &data);
        Expr *of = factor ? data : e;
        if (!ex_data_only(of) || !ex_any_var(of, test_data, NULL)) continue;
        const bool open = end_is_open(g, f->dist, k, end, side), ref = of->kind == EX_REF;
        if (ref && (side ? of->var->upper_number < end || (of->var->upper_number == end && !open)
                         : of->var->lower_number > end || (of->var->lower_number == end && !open)))
            continue;
        const Expr *named = data_in(of);
        Requirement q = {.span = f->span, .name = named->var->name, .nparts = 1, .loops = {.guard = f->plates.guard}};
        for (int i = 0; i < f->plates.n; i++) q.loops.index[q.loops.n++] = f->plates.index[i];
        if (along) q.loops.index[q.loops.n++] = along;
        Expr *inside = ex_call2(open ? "<" : "<=", side ? of : ex_num(end), side ? ex_num(end) : of);  // NaN is not
        q.fails[0] = ref ? ex_call2(open ? "<=" : "<", side ? ex_num(end) : of, side ? of : ex_num(end)) : ex_call1("!", inside);
        const char *at = "";
        const int nsubscripts = named->loose ? 0 : named->nargs;  // within a sum, no one element is to blame
        for (int i = 0; i < nsubscripts; i++) {
            if (ex_data_only(named->args[i])) q.number[q.nnumbers++] = named->args[i];
            at = arena_printf(g->arena, "%s%s#", at, i ? ", " : "[");
        }
        q.says = arena_printf(g->arena, "%s%s%s%s%s, %sthe `%s` of %s, must be %s %g (%s)", named->var->name, at, nsubscripts ? "]" : "",
                              ref ? "" : ": ", ref ? "" : ex_text(g->arena, of), factor ? "a factor of " : "", p->name, f->dist->name,
                              open   ? side ? "below" : "above"
                              : side ? "at most"
                                     : "at least",
                              end, requirements_line(g, f->span));
        require(c, q);
        if (ref || side || factor) continue;
        q.fails[0] = ex_call1("!", ex_call2("<", e, ex_num(INFINITY)));
        q.says = arena_printf(g->arena, "%s%s%s: %s, the `%s` of %s, must be finite (%s)", named->var->name, at, nsubscripts ? "]" : "",
                              ex_text(g->arena, e), p->name, f->dist->name, requirements_line(g, f->span));
        require(c, q);
    }
    return true;
}

// ---- what a value that is tried makes of arguments ----

Expr *arguments_lie_inside(Graph *g, const Factor *f, const Var *v)
{
    Expr *all = NULL;
    if (!f->dist || f->dist->is_family) return NULL;
    for (int k = 0; k < f->nargs && k < f->dist->nparams; k++) {
        Expr *e = f->args[k];
        const Decl *p = f->dist->params[k];
        if (!(p->lower || p->upper) || p->type.rank || ex_rank(e) || !ex_mentions(e, v)) continue;
        double range[2], end;
        range_of(e, &range[0], &range[1]);
        for (int side = 0; side < 2; side++) {
            if (!end_of(g, f, side ? p->upper : p->lower, &end) || (side ? range[1] < end : range[0] > end)) continue;
            const bool open = end_is_open(g, f->dist, k, end, side),
                       never_at_end = (ex_positive(e) && !ex_may_vanish(e)) || (e->kind == EX_REF && e->var->base == BASE_REAL);
            if (range[side] == end && (!open || never_at_end)) continue;
            Expr *inside = ex_call2(open ? "<" : "<=", side ? e : ex_num(end), side ? ex_num(end) : e);
            all = all ? ex_call2("&&", all, inside) : inside;
        }
    }
    return all;
}

// ---- what is known of a density before its unknowns are ----

enum { MOST_PARTS = 20000 };  // looked at in a factor; beyond, what goes wrong is said where it goes wrong

typedef struct ArgumentParts {
    Requirements *c;
    const Factor *f;
    int left;
} ArgumentParts;

static const char *subscripts(Graph *g, const Expr *e, Requirement *k)
{
    const char *at = e->var->name;
    for (int i = 0; i < e->nargs; i++) {
        at = arena_printf(g->arena, "%s%s#", at, i ? ", " : "[");
        k->number[k->nnumbers++] = e->args[i];
    }
    return e->nargs ? arena_printf(g->arena, "%s]", at) : at;
}

// within(y[i], 0, n[i]) of data as a term: where it does not hold the density is 0 whatever the unknowns are.
static void require_term(Requirements *c, const Factor *f, const Loops *l, Expr *e)
{
    Graph *g = c->g;
    Expr *x = e->args[0], *lo = e->args[1], *hi = e->args[2];
    const Expr *named = data_in(x);
    if (!ex_data_only(e) || !named) return;
    Requirement k = {.span = f->span,
                     .name = named->var->name,
                     .loops = *l,
                     .nparts = 1,
                     .fails = {ex_call1("!", ex_call2("&&", ex_call2("<=", lo, x), ex_call2("<=", x, hi)))}};
    const char *what = x == named ? subscripts(g, x, &k) : ex_quote(g->arena, x), *is = "lies";
    if (x == named && x->var->base == BASE_INT) {
        k.number[k.nnumbers++] = x;
        is = "is #,";
    }
    const char *where = ex_is_num(hi, INFINITY) ? arena_printf(g->arena, "below %s", ex_quote(g->arena, lo))
                        : ex_is_num(lo, -INFINITY)
                            ? arena_printf(g->arena, "above %s", ex_quote(g->arena, hi))
                            : arena_printf(g->arena, "outside %s to %s", ex_quote(g->arena, lo), ex_quote(g->arena, hi));
    k.says = arena_printf(g->arena, "%s %s %s, where the density is 0 (%s)", what, is, where, requirements_line(g, f->span));
    require(c, k);
}

// A definition of data that a density reads is a number. (An infinite one may be meant, as an end.)
static void require_number(Requirements *c, const Factor *f, const Loops *l, Expr *e)
{
    if (e->var->base != BASE_REAL || e->nargs < e->var->rank || !ex_data_only(e)) return;
    for (int i = 0; i < e->nargs; i++)
        if (ex_any_var(e->args[i], test_response, NULL)) return;
    Requirement k = {.span = e->var->span, .name = e->var->name, .loops = *l, .nparts = 1, .fails = {ex_call1("missing", e)}};
    const char *what = subscripts(c->g, e, &k);
    k.says = arena_printf(c->g->arena, "%s, computed from data (%s), is not a number, and a density reads it (%s)", what,
                          requirements_line(c->g, e->var->span), requirements_line(c->g, f->span));
    require(c, k);
}

// Whatever is computed in every case: not the branches of a choice. `term`: a factor of the density by itself.
static void look_at_part(ArgumentParts *p, const Loops *l, Expr *e, bool term)
{
    if (!e->vars || p->left-- <= 0) return;
    switch (e->kind) {
    case EX_REF:
        if (e->var->kind == VAR_LET) require_number(p->c, p->f, l, e);
        return;
    case EX_REDUCE: {
        if (l->n == MAX_LOOPS) return;
        Loops more = *l;
        Index *i = index_new(e->index->name, e->args[0], e->args[1]);
        more.index[more.n++] = i;
        look_at_part(p, &more, ex_open(e, i), term && e->fn == FN_sum);
        return;
    }
    case EX_CALL:
        if (e->fn == FN_WITHIN && term && !p->f->dist) require_term(p->c, p->f, l, e);
        if (e->fn == FN_if_else || e->fn == FN_AND || e->fn == FN_OR) return;
        break;
    case EX_ARRAY: return;
    case EX_NUM:
    case EX_INDEX:
    case EX_ADD:
    case EX_MUL:
    case EX_POW:
    case EX_AT: break;
    }
    for (int i = 0; i < e->nargs; i++) look_at_part(p, l, e->args[i], term && e->kind == EX_ADD);
}

static void require_known(Requirements *c, const Factor *f)
{
    Loops l = {.guard = f->plates.guard};
    if (f->plates.n > MAX_LOOPS || (l.guard && ex_any_var(l.guard, test_unknown, NULL))) return;
    for (int i = 0; i < f->plates.n; i++) l.index[l.n++] = f->plates.index[i];
    look_at_part(&(ArgumentParts){c, f, MOST_PARTS}, &l, f->log_density, true);
}

// Data may decide which elements an argument has: of phi[to[e]] ~ normal(phi[from[e]], s) one that would occur in its own distribution is
// none (E0412, where the model says so itself). What data may take out of the argument, a choice or a coefficient that may be 0, is passed
// over.
static void require_apart(Requirements *c, const Factor *f, const Loops *l, Expr *value, Expr *e)
{
    switch (e->kind) {
    case EX_REF: break;
    case EX_MUL:
        for (int i = 0; i < e->nargs; i++)
            if (e->args[i]->kind != EX_NUM && !ex_unknown(e->args[i])) return;
    // fall through
    case EX_ADD:
    case EX_POW:
        for (int i = 0; i < e->nargs; i++) require_apart(c, f, l, value, e->args[i]);
        return;
    default: return;
    }
    if (e->var != value->var || e->nargs != value->nargs || e == value) return;
    Requirement k = {.span = f->span, .name = value->var->name, .loops = *l, .nparts = 1, .fails = {ex_num(1)}};
    for (int d = 0; d < e->nargs; d++) {
        Expr *here = value->args[d], *there = e->args[d], *apart = ex_sub(here, there);
        if (ex_unknown(here) || ex_unknown(there) || ex_any_var(here, test_response, NULL) || ex_any_var(there, test_response, NULL))
            return;
        if (prove_nonneg(l, ex_add2(apart, ex_num(-1))) || prove_nonneg(l, ex_add2(ex_neg(apart), ex_num(-1)))) return;
        if (here != there) k.fails[0] = ex_both(k.fails[0], ex_call2("==", here, there));
    }
    k.says =
        arena_printf(c->g->arena, "%s occurs in its own distribution (%s)", subscripts(c->g, value, &k), requirements_line(c->g, f->span));
    require(c, k);
}

static void require_others(Requirements *c, const Factor *f)
{
    Loops l = {.guard = f->plates.guard};
    if (!f->dist || !f->value || f->value->kind != EX_REF || !var_unknown(f->value->var) || f->plates.n > MAX_LOOPS ||
        (l.guard && ex_any_var(l.guard, test_unknown, NULL)))
        return;
    for (int i = 0; i < f->plates.n; i++) l.index[l.n++] = f->plates.index[i];
    for (int k = 0; k < f->nargs; k++) require_apart(c, f, &l, f->value, f->args[k]);
}

// What draws a component, with its argument under the name that it has in the model.
static const Distribution *of_weights(Graph *g, const char *name, const char *argument)
{
    const Distribution *draws = library_distribution(g->stdlib, intern(name));
    Distribution *d = NEW(g->arena, Distribution);
    Decl *p = NEW(g->arena, Decl);
    *d = *draws;
    *p = *draws->params[0];
    p->name = intern(argument);
    d->name = intern("mixture");
    d->params = NEW_N(g->arena, Decl *, 1);
    d->params[0] = p;
    return d;
}

// The weights of a mixture are the argument of what draws its component. Each of those that are written out lies between 0 and 1.
static bool require_weights(Requirements *c, const Factor *f)
{
    Expr *weights = f->weights;
    const bool several = ex_rank(weights);
    Factor pick = {.dist = of_weights(c->g, several ? "categorical" : "bernoulli", several ? "weights" : "weight"),
                   .nargs = 1,
                   .args = &weights,
                   .plates = f->plates,
                   .span = f->span};
    ask_arrays(c, &pick);
    if (!check_written(c, &pick, 0) || !require_argument(c, &pick, 0)) return false;
    bool good = true;
    const Expr *size = several ? ex_dim(weights, 0) : NULL;
    for (int k = 0; several && weights->kind == EX_ARRAY && size->kind == EX_NUM && k < size->number && k < MOST_WRITTEN && good; k++) {
        Expr *place = ex_num(k + 1), *one = ex_at(weights, 1, &place);
        Factor each = pick;
        each.dist = of_weights(c->g, "bernoulli", "weight");
        each.args = &one;
        good = !ex_data_only(one) || ex_rank(one) || require_argument(c, &each, 0);
    }
    return good;
}

// What a distribution requires of its arguments together, as far as they are data.
static void require_together(Requirements *c, const Factor *f)
{
    Graph *g = c->g;
    Expr *holds = elaborate(g, f->dist->require, bind_arguments(g, f->dist, f->nargs, f->args, f->value), 0, NULL);
    const Expr *named = data_in(holds);
    if (!ex_data_only(holds) || !named) return;
    Requirement q = {.span = f->span, .name = named->var->name, .nparts = 1, .loops = {.guard = f->plates.guard}};
    for (int i = 0; i < f->plates.n; i++) q.loops.index[q.loops.n++] = f->plates.index[i];
    q.fails[0] = ex_call1("!", holds);
    q.says = arena_printf(g->arena, "arguments of %s do not belong together: %s must be true (%s)", f->dist->name,
                          ast_text(g->arena, f->dist->require), requirements_line(g, f->span));
    require(c, q);
}

// The index of edges, which the runtime reads as text: under the name of nothing else.
static const char *name_of_edge(Graph *g, const Loops *around)
{
    for (int k = 1;; k++) {
        const char *name = intern(arena_printf(g->arena, "edge_%d", k));
        bool taken = map_get(&g->taken, name) != NULL;
        for (int i = 0; i < around->n; i++) taken |= around->index[i]->name == name;
        if (!taken) return name;
    }
}

// The edges of a graph that the density is about, which are looked at together when the data are there: no condition on one of them says
// that another is there again, or that they leave a part of the graph alone.
static void require_edges(Requirements *c, const Factor *f)
{
    Graph *g = c->g;
    const Distribution *d = f->dist;
    if (f->plates.n == MAX_LOOPS) return;
    const Env *env = bind_arguments(g, d, f->nargs, f->args, f->value);
    Index *along = index_new(name_of_edge(g, &f->plates), ex_num(1), shape_of(g, d->edge_from, env).dim[0]);
    Expr *at = ex_index(along);
    Edges *one = NEW(g->arena, Edges), **last = &g->edges;
    *one = (Edges){.span = f->span, .law = d->name, .loops = f->plates, .nodes = ex_dim(f->value, 0)};
    one->loops.index[one->loops.n++] = along;
    one->from = elaborate(g, d->edge_from, env, 1, &at);
    one->to = elaborate(g, d->edge_to, env, 1, &at);
    if (d->parts) one->parts = elaborate(g, d->parts, env, 0, NULL);
    if (one->parts && !ex_data_only(one->parts)) one->parts = NULL;
    if (!ex_data_only(one->from) || !ex_data_only(one->to)) return;
    while (*last) last = &(*last)->next;
    *last = one;
}

bool require_arguments(Requirements *c)
{
    for (const Factor *f = c->g->factors; f; f = f->next) {
        if (f->weights && !f->original && !require_weights(c, f)) return false;
        if (f->dist && !f->dist->is_family) ask_arrays(c, f);
        for (int k = 0; !f->original && f->dist && k < f->nargs && k < f->dist->nparams; k++)
            if (!check_written(c, f, k) || !require_argument(c, f, k)) return false;
        if (!f->original && f->dist && f->dist->require) require_together(c, f);
        if (!f->original && f->dist && f->dist->edge_from) require_edges(c, f);
        if (!f->original && !f->made) {
            require_known(c, f);
            require_others(c, f);
        }
    }
    return true;
}
