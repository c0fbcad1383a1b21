// scale_moves.c -- scale moves: a scale is multiplied with its effects, or against unknowns that it is multiplied with.
//
//   before   theta[j] ~ normal(mu, tau)
//   after    also: (tau, theta[j]) becomes (c*tau, mu + c*(theta[j] - mu)), c > 0 drawn from p(moved) * c^J dc,
//            J the number of theta: the plate's own density is c^-J times its former value
//
// Given theta, tau hardly changes if data identify theta weakly, and the converse. The maps T_c are a group with the Haar measure dc/c
// (group.c). c has an element for each element of the scale; conditionals.c finds its family as for any unknown, else it is slice sampled.
//
// Positive effects may change by their logarithm: a[j] ~ lognormal(m, tau) becomes exp(m + c*(log(a[j]) - m)). Densities are then those of
// log(a[j]).
//
// For vectors with a covariance, the covariance is the scale: a matrix, or the parameters that it is computed from.
//
// Needs: the updates of the schedule.     Gives: updates of c (EXACT or SLICE) with `group_move` set, after which T_c is applied.
// Conditions: the scale is a positive real without another constraint. Each plate of effects is real, without bounds, or positive and
// multiplied about 0. The plate's statement draws v[i, j] over i and j, and contains the scale once. It is invariant up to a power of c,
// for one of the powers that are tried. The fixed point is 0, or one of the statement's arguments that no move changes, or, for a random
// walk, the element that another statement draws alone. Or terms outside of statements are invariant about 0, and one statement draws all
// of v, flat or not. Positive auxiliaries between a scale and its prior change by the power that leaves their density invariant. Data whose
// statement contains the scale itself identify it, and no move is made. Only the scale may have ends: a truncated plate does not change.
// The unknowns that change enter no recursion but sums over the states of chains, which are computed before they are read. They decide no
// condition of a statement, are read by no routine that takes an array whole, and share no factor with unknowns that are summed out.
#include <math.h>
#include <string.h>
#include "scale_moves.h"
#include "../terms/var.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../algebra/polynomial.h"
#include "../algebra/conditionals.h"
#include "group.h"
#include "updates.h"

enum { MOST_MOVED = 8 };

typedef struct Mover {  // how v[index..] moves
    Var *var;
    int power;  // by c^power
    Index *index[MAX_RANK];
    Expr *centre;  // about this, in terms of the indices
    int n;
    Expr *scale[MAX_RANK];  // by c[scale..]
    const Factor *factor;   // that draws it as a plate; NULL: it has the shape of c, or is a matrix
    Expr *each;             // coordinates that an instance of this draws, or the matrix has
    Expr *fixed;            // an element that stays, about which the others move; or NULL
    bool logged;            // log(v) moves so, about `centre`
} Mover;

typedef struct Action {
    Group group;
    int n;
    Mover mover[MOST_MOVED];
} Action;

static const Mover *mover_of(const Action *a, const Var *v)
{
    for (int i = 0; i < a->n; i++)
        if (a->mover[i].var == v) return &a->mover[i];
    return NULL;
}

static bool moves(const Group *x, const Var *v) { return mover_of((const Action *)x, v); }
static bool mentions_moved(const Expr *e, const Action *a) { return group_mentions(&a->group, e); }

static Expr *coordinate_at(const Action *a, const Mover *m, Expr *const *args)
{
    Expr *at[MAX_RANK];
    for (int k = 0; k < m->n; k++) at[k] = at_subscripts(m->scale[k], m->var->rank, m->index, args);
    return ex_ref(a->group.by, m->n, at);
}

// What v[args], or its logarithm, becomes.
static Expr *moved_coordinate(const Action *a, const Mover *m, Expr *const *args)
{
    Expr *centre = at_subscripts(m->centre, m->var->rank, m->index, args), *ref = ex_ref(m->var, m->var->rank, args);
    return ex_add2(centre, ex_mul2(ex_pow(coordinate_at(a, m, args), m->power), ex_sub(m->logged ? ex_log(ref) : ref, centre)));
}

static Expr *moved_element(const Action *a, const Mover *m, Expr *const *args)
{
    Expr *to = moved_coordinate(a, m, args);
    return m->logged ? ex_call1("exp", to) : to;
}

// Whether a number has this logarithm.
static Expr *has_exponential(Expr *log_x) { return ex_both(ex_call2("<", ex_num(-744.4), log_x), ex_call2("<", log_x, ex_num(709.78))); }

// Ends of a positive scale are ends of c. NULL: it moves otherwise.
static Expr *moved_between(const Action *a, const Expr *e)
{
    Expr *x = e->args[0], *end[2];
    const Mover *m = x->kind == EX_REF && x->nargs == x->var->rank ? mover_of(a, x->var) : NULL;
    if (!m || m->logged || m->power != 1 || !ex_is_num(m->centre, 0) || !ex_positive(x)) return NULL;
    for (int side = 0; side < 2; side++) {
        end[side] = e->args[1 + side];
        if (end[side]->kind == EX_CALL) return NULL;  // a choice, which may be infinite
        if (end[side]->kind != EX_NUM || (end[side]->number != 0 && !isinf(end[side]->number))) end[side] = ex_div(end[side], x);
    }
    if (ex_is_num(end[0], 0)) end[0] = ex_num(-INFINITY);  // c is positive
    return ex_call3("within", coordinate_at(a, m, x->args), end[0], end[1]);
}

// ---- matrices ----
//
// Sigma = diag(s) R diag(s), or a matrix that is drawn: where what moves multiplies it by a power of c, so it does what is made of it.

typedef struct Degrees {
    double of;
    bool any, failed;
} Degrees;

static Degrees degree(const Action *a, const Expr *e);

// Terms of a sum, or branches: of one degree. Zero has any.
static Degrees common_degree(const Action *a, Expr *const *e, int n)
{
    Degrees d = {.any = true};
    for (int i = 0; i < n && !d.failed; i++) {
        const Degrees one = degree(a, e[i]);
        d.failed = one.failed || (!one.any && !d.any && one.of != d.of);
        if (!one.any) d = (Degrees){one.of, false, d.failed};
    }
    return d;
}

// The power of c by which e, a number or an array, is multiplied.
static Degrees degree(const Action *a, const Expr *e)
{
    const Degrees none = {.failed = true};
    Degrees d = {.any = ex_is_num(e, 0)};
    const Mover *m;
    if (!mentions_moved(e, a)) return d;
    switch (e->kind) {
    case EX_REF:
        m = mover_of(a, e->var);
        if (m) d = ex_is_num(m->centre, 0) && !m->logged ? (Degrees){.of = m->power} : none;
        for (int k = 0; k < e->nargs; k++) d.failed |= mentions_moved(e->args[k], a);
        return d;
    case EX_MUL:
        for (int i = 0; i < e->nargs; i++) {
            const Degrees one = degree(a, e->args[i]);
            d = (Degrees){d.of + one.of, false, d.failed || one.failed};
        }
        return d;
    case EX_POW:
        d = degree(a, e->args[0]);
        d.of *= e->number;
        return d;
    case EX_ADD: return common_degree(a, e->args, e->nargs);
    case EX_ARRAY: return mentions_moved(e->args[0], a) ? none : degree(a, e->args[1]);
    case EX_AT:
        for (int k = 1; k < e->nargs; k++)
            if (mentions_moved(e->args[k], a)) return none;
        return degree(a, e->args[0]);
    case EX_REDUCE: return e->fn != FN_sum || mentions_moved(e->args[0], a) || mentions_moved(e->args[1], a) ? none : degree(a, e->args[2]);
    case EX_CALL:
        if (e->fn == FN_if_else) return mentions_moved(e->args[0], a) ? none : common_degree(a, e->args + 1, 2);
        d = e->fn == FN_inverse || e->fn == FN_cholesky_decompose ? degree(a, e->args[0]) : none;
        d.of *= e->fn == FN_inverse ? -1 : 0.5;
        return d;
    default: return none;
    }
}

// An element of a matrix that a function gives, or the logarithm of its determinant; NULL: it moves otherwise.
static Expr *moved_matrix(const Action *a, Expr *e)
{
    const bool at = e->kind == EX_AT, log_det = e->kind == EX_CALL && e->fn == FN_log_determinant;
    if ((!at && !log_det) || a->group.by->rank) return NULL;
    const Degrees d = degree(a, at ? e : e->args[0]);
    if (d.failed) return NULL;
    Expr *c = ex_ref(a->group.by, 0, NULL);
    return at ? ex_mul2(ex_pow(c, d.of), e)
              : ex_add2(e, ex_mul(3, (Expr *[]){ex_num(d.of), ex_length(ex_num(1), ex_dim(e->args[0], 0)), ex_log(c)}));
}

static Expr *becomes(Group *x, Expr *ref) { return moved_element((Action *)x, mover_of((Action *)x, ref->var), ref->args); }

// Ends and matrices.
static Expr *moved_otherwise(Group *x, Expr *e)
{
    const Action *a = (const Action *)x;
    Expr *within = e->kind == EX_CALL && e->fn == FN_WITHIN && !mentions_moved(e->args[1], a) && !mentions_moved(e->args[2], a)
                       ? moved_between(a, e)
                       : NULL;
    return within ? within : moved_matrix(a, e);
}

// The one element of v in e; NULL: there are several, those that a sum goes over among them.
static Expr *only_outside_sums(Expr *e, const Var *v)
{
    Expr *ref = only_reference(e, v);
    return ref && !ref->loose ? ref : NULL;
}

// Whether moved differs from was by a multiple of log c at most; its multiple into `times`.
static bool is_invariant(Action *a, Expr *was, Expr **times)
{
    Expr *now = group_moved(&a->group, was);
    if (a->group.failed) return false;
    Expr *c = only_outside_sums(now, a->group.by);
    *times = ex_num(0);  // times log c
    if (!ex_mentions(now, a->group.by)) return true;
    if (!c) return false;
    Expr *stands = ex_ref(var_new(a->group.g, a->group.by->name, VAR_ELEMENT), 0, NULL);
    stands->var->lower_number = a->group.by->lower_number;
    stands->var->upper_number = a->group.by->upper_number;
    const Statistics s = statistics(a->group.g->arena, ex_replace(now, c, stands), stands);
    if (s.many) return false;
    for (int i = 0; i < s.n; i++) {
        if (s.item[i].statistic != ex_log(stands) || ex_mentions(s.item[i].coefficient, stands->var)) return false;
        *times = ex_mul2(s.item[i].coefficient, ex_log(c));
    }
    return true;
}

static bool is_positive(const Var *v) { return v->lower_number == 0 && isinf(v->upper_number); }
static bool is_scale(const Var *v) { return v->lower_number >= 0; }

// v[i, j] of a statement over i and j, each its own subscript.
static bool draws_plate(const Factor *f)
{
    const Expr *ref = f->value;
    return var_drawn(f) && ref->nargs == ref->var->rank && ref->nargs == f->plates.n && has_own_plates(f, ref);
}

// Elements that a statement draws, each instance one of its own: v[1], v[t], v[2, t].
static bool draws_elements(const Factor *f)
{
    const Expr *ref = f->value;
    int used = 0;
    if (ref->nargs != ref->var->rank) return false;
    for (int k = 0; k < ref->nargs; k++) {
        if (ref->args[k]->kind == EX_NUM) continue;
        bool here = false;
        for (int i = 0; i < f->plates.n; i++) here |= ref->args[k] == ex_index(f->plates.index[i]);
        for (int i = 0; i < k; i++) here &= ref->args[i] != ref->args[k];
        if (!here) return false;
        used++;
    }
    return used == f->plates.n;
}

static bool draws(const Factor *f, const Var *v) { return factor_counts_at(f, 0, false) && var_drawn(f) == v; }

// Whether all statements of v draw such elements; an element that one draws alone into `alone`, or NULL.
static bool are_plain(Graph *g, const Var *v, Expr **alone)
{
    const Reading of = factors_of(g, v);
    *alone = NULL;
    for (int q = 0; q < of.n; q++) {
        if (!draws(of.factor[q], v)) continue;
        if (!draws_elements(of.factor[q])) return false;
        if (!of.factor[q]->plates.n && !of.factor[q]->plates.guard && !*alone) *alone = of.factor[q]->value;
    }
    return true;
}

static Mover mover_of_plate(const Factor *f, int power, Expr *centre, const Expr *scale)
{
    Mover m = {.var = f->value->var, .power = power, .centre = centre, .n = scale->nargs, .factor = f, .each = ex_num(1)};
    for (int k = 0; k < f->value->nargs; k++) m.index[k] = f->value->args[k]->index;
    memcpy(m.scale, scale->args, sizeof *m.scale * (size_t)scale->nargs);
    return m;
}

static Mover mover_of_scale(const Graph *g, Var *s, int power)
{
    Mover m = {.var = s, .power = power, .centre = ex_num(0), .n = s->rank, .each = ex_num(1)};
    const Expr *element = var_element(g, s, m.index);
    for (int k = 0; k < s->rank; k++) m.scale[k] = element->args[k];
    return m;
}

// Log density by the logarithm of what f draws, where that moves: x's density times x.
static Expr *density_that_moves(const Action *a, const Factor *f)
{
    for (int i = 0; i < a->n; i++)
        if (a->mover[i].logged && draws(f, a->mover[i].var)) return ex_add2(f->log_density, ex_log(f->value));
    return f->log_density;
}

// Positive elements by their logarithms, about 0 or an argument.
static bool add_logged_plate(Action *a, const Factor *f, const Expr *scale)
{
    Expr *times;
    for (int i = -1; i < f->nargs; i++) {
        Expr *centre = i < 0 ? ex_num(0) : f->args[i];
        if (i >= 0 && (ex_rank(centre) || ex_mentions(centre, f->value->var) || mentions_moved(centre, a))) continue;
        Mover *m = &a->mover[a->n++];
        *m = mover_of_plate(f, 1, centre, scale);
        m->logged = true;
        if (is_invariant(a, density_that_moves(a, f), &times)) return true;
        a->n--;
    }
    return false;
}

// The plate that f draws, about one of its arguments or 0; false: f is not invariant. The scale is a->mover[0].
static bool add_plate(Action *a, const Factor *f)
{
    Var *u = f->value->var;
    Expr *scale = only_outside_sums(f->log_density, a->mover[0].var), *times, *alone;
    if (!is_plain_real(u) || u->kind == VAR_AUXILIARY || mover_of(a, u) || a->n == MOST_MOVED || !(is_unbounded(u) || is_positive(u)) ||
        !scale || !draws_plate(f) || !are_plain(a->group.g, u, &alone))
        return false;
    for (int k = 0; k < scale->nargs; k++)
        if (ex_unknown(scale->args[k])) return false;
    // a walk about where it begins; about 0; about an argument
    for (int i = alone && is_unbounded(u) ? -2 : -1; i < f->nargs; i++) {
        Expr *centre = i == -2 ? alone : i < 0 ? ex_num(0) : f->args[i];
        if (i >= 0 && (ex_rank(centre) || ex_mentions(centre, u) || mentions_moved(centre, a) || is_positive(u))) continue;
        a->mover[a->n] = mover_of_plate(f, 1, centre, scale);
        if (i == -2) a->mover[a->n].fixed = alone;
        a->n++;
        if (is_invariant(a, f->log_density, &times)) return true;
        a->n--;
    }
    return is_positive(u) && add_logged_plate(a, f, scale);
}

// The one statement of v, if it draws all of it over its indices.
static const Factor *plate_of(Graph *g, const Var *v)
{
    const Reading of = factors_of(g, v);
    const Factor *only = NULL;
    for (int q = 0; q < of.n; q++) {
        if (!draws(of.factor[q], v)) continue;
        if (only || !draws_plate(of.factor[q])) return NULL;
        only = of.factor[q];
    }
    return only;
}

// The same where its density does not mention it; no statement else may draw it.
static const Factor *flat_plate_of(const Graph *g, const Var *v)
{
    const Factor *only = NULL;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!draws(f, v)) continue;
        if (only || !draws_plate(f) || ex_mentions(f->log_density, v)) return NULL;
        only = f;
    }
    return only;
}

static bool draws_whole(const Factor *f)
{
    for (int k = 0; k < f->value->nargs; k++) {
        const Index *i = f->value->args[k]->index;
        if (!ex_is_num(i->lo, 1) || i->hi != f->value->var->dim[k]) return false;
    }
    return !f->plates.guard;
}

// What a term beside the statements scales, target += -square((u[a] - u[b])/s)/2, about 0; false: the term is not invariant.
static bool add_field(Action *a, const Factor *f)
{
    Var *s = a->mover[0].var;
    const int before = a->n;
    Expr *scale = ex_ref(s, 0, NULL), *times;
    for (int i = 0; i < a->group.g->nvars && !s->rank; i++) {
        Var *u = a->group.g->vars[i];
        if (mover_of(a, u) || !var_unknown(u) || !is_plain_real(u) || u->kind == VAR_AUXILIARY || !u->rank || !is_unbounded(u) ||
            !ex_mentions(f->log_density, u))
            continue;
        const Factor *flat = flat_plate_of(a->group.g, u), *plate = flat ? flat : plate_of(a->group.g, u);
        if (!plate || !draws_whole(plate) || a->n == MOST_MOVED) continue;
        Mover *m = &a->mover[a->n++];
        *m = mover_of_plate(plate, 1, ex_num(0), scale);
        for (int k = 0; k < u->rank && flat; k++) m->each = ex_mul2(m->each, u->dim[k]);
    }
    if (a->n > before && is_invariant(a, f->log_density, &times)) return true;
    a->n = before;
    return false;
}

// Positive auxiliaries that tie what moves to its prior: of the scale's shape, by the power that leaves the tie as it is.
static void add_auxiliaries(Action *a)
{
    Var *s = a->mover[0].var;
    const Reading of = factors_of(a->group.g, s);
    for (int q = 0; q < of.n; q++) {
        const Factor *f = of.factor[q];
        Expr *times;
        if (!factor_counts_at(f, 0, false) || !ex_mentions(f->log_density, s) || is_invariant(a, f->log_density, &times)) continue;
        for (int i = 0; i < a->group.g->nvars; i++) {
            Var *v = a->group.g->vars[i];
            if (v->kind != VAR_AUXILIARY || !is_plain_real(v) || !is_positive(v) || v->rank != s->rank || mover_of(a, v) ||
                a->n == MOST_MOVED || !ex_mentions(f->log_density, v))
                continue;
            const Expr *ref = only_outside_sums(f->log_density, v), *scale = only_outside_sums(f->log_density, s);
            bool same = ref && scale;
            for (int k = 0; k < s->rank && same; k++) same = v->dim[k] == s->dim[k] && ref->args[k] == scale->args[k];
            static const int powers[] = {1, -1, 2, -2, 4, -4};
            for (size_t k = 0; k < sizeof powers / sizeof *powers && same; k++) {
                a->mover[a->n++] = mover_of_scale(a->group.g, v, powers[k]);
                if (is_invariant(a, f->log_density, &times)) break;
                a->n--;
            }
        }
    }
}

// ---- the law of c ----

static Reading factors_moved(Graph *g, const Action *a)
{
    Var *block[MOST_MOVED];
    for (int i = 0; i < a->n; i++) block[i] = a->mover[i].var;
    return factors_of_block(g, block, a->n);
}

// A factor with one instance for each element of c, at the indices of p; NULL: it is another one. What these add to the power of c is then
// one term, which often vanishes.
static Expr *at_element(const Action *a, const Factor *f, Expr *e, const Loops *p)
{
    const Expr *c = only_outside_sums(e, a->group.by);
    if (!c || f->plates.guard || f->plates.n != p->n) return NULL;
    for (int k = 0; k < p->n; k++) {
        const Index *i = f->plates.index[k];
        if (c->args[k] != ex_index(f->plates.index[k]) || !ex_is_num(i->lo, 1) || i->hi != a->group.by->dim[k]) return NULL;
    }
    for (int k = 0; k < p->n; k++) e = ex_replace_index(e, f->plates.index[k], ex_index(p->index[k]));
    return e;
}

// An end of something else than c alone: of an element that data may fix, as a censored response does where it is seen.
static Look test_end(const Expr *e, void *with)
{
    const Action *a = with;
    if (e->kind != EX_CALL || e->fn != FN_WITHIN || !ex_mentions(e, a->group.by)) return LOOK;
    return e->args[0]->kind != EX_REF || e->args[0]->var != a->group.by || ex_mentions(e->args[1], a->group.by) ||
                   ex_mentions(e->args[2], a->group.by)
               ? FOUND
               : LOOK;
}

// Where c keeps the scale between the ends of its values.
static Expr *between_ends(const Action *a, Index **index)
{
    const Mover *m = &a->mover[0];
    const Var *s = m->var;
    if (s->rank != a->group.by->rank) return ex_num(0);  // a matrix, or positive
    Expr *at[MAX_RANK], *end[2] = {ex_num(-INFINITY), ex_num(INFINITY)};
    for (int k = 0; k < s->rank; k++) at[k] = ex_index(index[k]);
    Expr *value = ex_ref((Var *)s, s->rank, at);
    const bool turned = m->power < 0;
    if (s->lower_number > 0) end[turned] = ex_pow(ex_div(ex_num(s->lower_number), value), 1.0 / m->power);
    if (isfinite(s->upper_number)) end[!turned] = ex_pow(ex_div(ex_num(s->upper_number), value), 1.0 / m->power);
    return end[0]->kind == EX_NUM && end[1]->kind == EX_NUM ? ex_num(0)
                                                            : ex_call3("within", ex_ref(a->group.by, s->rank, at), end[0], end[1]);
}

// The factors of c: those of the model with T_c x for x, with c for each element of a plate that its statement draws. The rest of the
// Jacobian and of the Haar measure is one more. false: a condition is not met.
static bool factors_of_c(Graph *g, Action *a, Reading *out)
{
    const Reading of = factors_moved(g, a);
    out->factor = NEW_N(g->arena, Factor *, of.n + 1);
    Loops p = {.n = a->group.by->rank};
    Expr *power = ex_num(-1);
    for (int i = 0; i < a->n; i++)
        if (!a->mover[i].factor || !ex_mentions(a->mover[i].factor->log_density, a->mover[i].var))
            power = ex_add2(power, ex_mul2(ex_num(a->mover[i].power), a->mover[i].each));
    Expr *own = ex_mul2(power, ex_log(var_element(g, a->group.by, p.index)));
    const Factor *prior = NULL;
    for (int i = 0; i < a->n && !prior; i++) prior = a->mover[i].factor;
    for (int q = 0; q < of.n; q++) {
        Factor *f = of.factor[q];
        if (!factor_counts_at(f, 0, false)) continue;
        if (decide_instances(f, group_moves, a)) return false;
        if (!mentions_moved(f->log_density, a)) continue;
        Expr *e = density_that_moves(a, f), *times;
        e = is_invariant(a, e, &times) ? times : group_moved(&a->group, e);
        if (a->group.failed || ex_find(e, test_end, a)) return false;
        for (int i = 0; i < a->n; i++) {
            const Mover *m = &a->mover[i];
            if (m->factor && draws(f, m->var) && f->value != m->fixed)
                e = ex_add2(e, ex_mul(3, (Expr *[]){ex_num(m->power), m->each, ex_log(coordinate_at(a, m, f->value->args))}));
            if (m->logged && draws(f, m->var))
                e = ex_add2(e, ex_call3("if_else", has_exponential(moved_coordinate(a, m, f->value->args)), ex_num(0), ex_num(-INFINITY)));
        }
        if (!ex_mentions(e, a->group.by)) continue;
        Expr *one = at_element(a, f, e, &p);
        if (one) {
            own = ex_add2(own, one);
            prior = f;
        } else out->factor[out->n++] = factor_with(g, f, e);
    }
    own = ex_add2(own, between_ends(a, p.index));
    if (!ex_mentions(own, a->group.by)) return true;
    out->factor[out->n++] = factor_of_ends(g, prior, p, own);
    return true;
}

static Update *scale_move(Graph *g, Action *a)
{
    Selection *selection = NULL;
    Reading of = {0};
    for (int i = 0; i < a->n; i++)
        if (!in_one_sweep(g, a->mover[i].var, i, &selection)) return NULL;
    if (!factors_of_c(g, a, &of)) return NULL;
    Conditional *c = law_of_move(g, a->group.by, &of, true);
    if (!draws_apart(c)) return NULL;
    GroupMove *o = group_move_new(g, a->group.by, false, a->n);
    for (int i = 0; i < a->n; i++) {
        const Mover *m = &a->mover[i];
        Carried *to = group_move_carry_at(o, m->var, m->index);
        to->power = m->power;
        to->plates = m->factor ? &m->factor->plates : NULL;
        to->triangle = m->var->constraint != CONSTRAINT_NONE;
        to->fixed = m->fixed;
        to->c = coordinate_at(a, m, to->element->args);
        to->value = moved_element(a, m, to->element->args);
    }
    return group_update(g, c->family ? UPDATE_EXACT : UPDATE_SLICE, a->mover[0].var->span, c, o, selection,
                        "given its effects, a scale mixes slowly where data identify these weakly");
}

// c, one number or an element for each of the scale.
static Var *scale_new(Graph *g, const char *name, const Var *s, int rank)
{
    Var *by = var_hidden(g, arena_printf(g->arena, "scale_%s", name), s->span, rank, s->dim);
    by->lower_number = 0;
    return by;
}

static Action action_of(Graph *g, Var *by)
{
    return (Action){.group = {.g = g, .by = by, .moves = moves, .becomes = becomes, .instead = moved_otherwise, .sums = true}};
}

static Update *scale_update(Graph *g, Var *s)
{
    if (is_switched_off(g, s, SETTING_GROUP_MOVE)) return NULL;
    if (!is_plain_real(s) || s->kind == VAR_AUXILIARY || !is_scale(s)) return NULL;
    static const int powers[] = {1, 2, -2, -1};
    const Reading of = factors_of(g, s);
    bool scales = false;
    for (int q = 0; q < of.n; q++) {
        const Factor *f = of.factor[q];
        if (!factor_counts_at(f, 0, false)) continue;
        if (f->observed && ex_mentions(f->log_density, s)) return NULL;
        scales |= !var_drawn(f) ? !s->rank && ex_mentions(f->log_density, s)
                                : f->value->var != s && is_plain_real(f->value->var) && f->value->var->kind != VAR_AUXILIARY;
    }
    if (!scales) return NULL;
    Var *by = NULL;
    for (size_t k = 0; k < sizeof powers / sizeof *powers; k++) {
        if (!by) by = scale_new(g, s->name, s, s->rank);
        Action a = action_of(g, by);
        a.n = 1;
        a.mover[0] = mover_of_scale(g, s, powers[k]);
        for (int q = 0; q < of.n; q++) {
            const Factor *f = of.factor[q];
            if (!factor_counts_at(f, 0, false) || !ex_mentions(f->log_density, s)) continue;
            if (!var_drawn(f)) add_field(&a, f);
            else if (f->value->var != s && var_unknown(f->value->var)) add_plate(&a, f);
        }
        Update *update = NULL;
        if (a.n > 1) {
            add_auxiliaries(&a);
            update = scale_move(g, &a);
        }
        if (update) return update;
    }
    if (by) by->kind = VAR_ELEMENT;
    return NULL;
}

// ---- a scale against the scales that it is multiplied with ----
//
// beta[j] ~ normal(0, tau*lambda[j]): as (tau, lambda[j]) become (c*tau, lambda[j]/c) nothing but their priors changes. It costs a sum over
// lambda.

static bool add_against(Action *a, const Var *v, int power)
{
    const Factor *f = a->n < MOST_MOVED ? plate_of(a->group.g, v) : NULL;
    if (!f) return false;
    a->mover[a->n++] = mover_of_plate(f, power, ex_num(0), a->mover[0].centre);  // c is one: no subscripts
    a->mover[a->n - 1].n = 0;
    return true;
}

// Positive auxiliaries of the shape of v that tie its elements to their prior.
static void add_plates_of_auxiliaries(Action *a, const Var *v)
{
    static const int powers[] = {1, -1, 2, -2};
    const Reading of = factors_of(a->group.g, v);
    for (int q = 0; q < of.n; q++) {
        const Factor *f = of.factor[q];
        Expr *times;
        if (!draws(f, v) || is_invariant(a, f->log_density, &times)) continue;
        for (int i = 0; i < a->group.g->nvars; i++) {
            const Var *w = a->group.g->vars[i];
            if (w->kind != VAR_AUXILIARY || !is_plain_real(w) || !is_positive(w) || w->rank != v->rank || mover_of(a, w) ||
                !ex_mentions(f->log_density, w))
                continue;
            const Expr *ref = only_outside_sums(f->log_density, w);
            bool same = ref;
            for (int k = 0; k < v->rank && same; k++) same = ref->args[k] == f->value->args[k] && w->dim[k] == v->dim[k];
            for (size_t k = 0; k < sizeof powers / sizeof *powers && same; k++) {
                if (!add_against(a, w, powers[k])) break;
                if (is_invariant(a, f->log_density, &times)) break;
                a->n--;
            }
        }
    }
}

static Update *step_against(Graph *g, Var *s, Var *z)
{
    if (!is_plain_real(z) || z->kind == VAR_AUXILIARY || !z->rank || !is_positive(z) || is_switched_off(g, z, SETTING_GROUP_MOVE))
        return NULL;
    const Reading of_s = factors_of(g, s), of_z = factors_of(g, z);
    bool meet = false;
    for (int q = 0; q < of_z.n && !meet; q++)
        meet = factor_counts_at(of_z.factor[q], 0, false) && !draws(of_z.factor[q], z) && ex_mentions(of_z.factor[q]->log_density, z) &&
               ex_mentions(of_z.factor[q]->log_density, s);
    if (!meet) return NULL;
    Var *by = scale_new(g, arena_printf(g->arena, "%s_%s", s->name, z->name), s, 0);
    Action a = action_of(g, by);
    a.n = 1;
    a.mover[0] = mover_of_scale(g, s, 1);
    bool good = add_against(&a, z, -1);
    for (int k = 0; k < 2; k++) {
        const Reading *of = k ? &of_z : &of_s;
        for (int q = 0; q < of->n && good; q++) {
            const Factor *f = of->factor[q];
            Expr *times;
            good = !factor_counts_at(f, 0, false) || draws(f, s) || draws(f, z) || is_invariant(&a, f->log_density, &times);
        }
    }
    Update *update = NULL;
    if (good) {
        add_auxiliaries(&a);
        add_plates_of_auxiliaries(&a, z);
        update = scale_move(g, &a);
    }
    if (!update) by->kind = VAR_ELEMENT;
    else update->reason = "given each other, the factors of a product mix slowly";
    return update;
}

// ---- vectors by their covariance ----
//
// u[j] ~ multi_normal(m, Sigma): (Sigma, u[j]) becomes (c^2*Sigma, m + c*(u[j] - m)), where Sigma is a matrix that is drawn, by covariance,
// precision or Cholesky factor; or a scale that multiplies all of it; or, if there is none, all scales that it is made of are multiplied by
// c.

// Whether a statement draws vectors v[j], each of its plates a subscript, and no other draws an element.
static bool draws_vectors(Graph *g, const Factor *f)
{
    const Expr *ref = f->value;
    if (!factor_counts_at(f, 0, false) || !ref || ref->kind != EX_REF || ref->nargs != ref->var->rank - 1 || ref->nargs != f->plates.n ||
        f->truncated || f->plates.guard)
        return false;
    if (!is_plain_real(ref->var) || ref->var->kind == VAR_AUXILIARY || !is_unbounded(ref->var)) return false;
    if (!has_own_plates(f, ref)) return false;
    const Reading of = factors_of(g, ref->var);
    for (int q = 0; q < of.n; q++)
        if (of.factor[q] != f && draws(of.factor[q], ref->var)) return false;
    return true;
}

// The vectors about 0 or an argument; false: f is not invariant.
static bool add_vectors(Action *a, const Factor *f)
{
    const Var *u = f->value->var;
    Expr *times;
    if (mover_of(a, u) || a->n == MOST_MOVED) return false;
    for (int i = -1; i < f->nargs; i++) {
        if (i >= 0 && (ex_rank(f->args[i]) != 1 || ex_mentions(f->args[i], u) || mentions_moved(f->args[i], a))) continue;
        Mover m = {.var = (Var *)u, .power = 1, .factor = f, .each = u->dim[u->rank - 1]};
        for (int k = 0; k < u->rank - 1; k++) m.index[k] = f->value->args[k]->index;
        m.index[u->rank - 1] = index_new(intern("k"), ex_num(1), u->dim[u->rank - 1]);
        Expr *along = ex_index(m.index[u->rank - 1]);
        m.centre = i < 0 ? ex_num(0) : ex_at(f->args[i], 1, &along);
        a->mover[a->n++] = m;
        if (is_invariant(a, f->log_density, &times)) return true;
        a->n--;
    }
    return false;
}

static bool is_drawn_matrix(const Var *v)
{
    return v->kind == VAR_PARAMETER && v->base == BASE_REAL && v->rank == 2 &&
           (v->constraint == CONSTRAINT_COVARIANCE || v->constraint == CONSTRAINT_CHOLESKY_COV) && !v->parts && !v->summing.summed &&
           !v->summing.sums;
}

// What the covariance in f is to be multiplied with: a matrix, or the scale `alone`, or all positive scales, of which only the first may
// have ends.
static bool add_scales_of(Action *a, const Factor *f, const Var *alone, int power)
{
    Graph *g = a->group.g;
    bool matrix = false;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < g->nvars; i++) {
            Var *v = g->vars[i];
            bool read = false;
            for (int k = 0; k < f->nargs; k++) read |= ex_rank(f->args[k]) == 2 && ex_mentions(f->args[k], v);
            if (!read || (alone && v != alone) || a->n == MOST_MOVED - 1 || is_switched_off(g, v, SETTING_GROUP_MOVE)) continue;
            if (side == 0 && is_drawn_matrix(v)) {
                if (matrix) return false;
                Mover m = mover_of_scale(g, v, power);
                m.n = 0;
                m.each = ex_mul(3, (Expr *[]){ex_num(0.5), v->dim[0], ex_add2(v->dim[0], ex_num(1))});
                a->mover[a->n++] = m;
                matrix = true;
            }
            if (side == 0 || matrix || !is_plain_real(v) || v->kind == VAR_AUXILIARY || v->rank > 1 ||
                !(a->n ? is_positive(v) : is_scale(v)))
                continue;
            if (!v->rank) a->mover[a->n++] = mover_of_scale(g, v, power);
            else if (!a->n && !is_positive(v)) continue;
            else {
                const Factor *drawn = plate_of(g, v);
                if (!drawn) return false;
                a->mover[a->n++] = mover_of_plate(drawn, power, ex_num(0), ex_num(0));
            }
        }
    return a->n > 0;
}

static bool moves_both(const Graph *g, const Var *v, const Var *w)
{
    for (const Update *s = g->updates; s; s = s->next) {
        int found = 0;
        for (int i = 0; s->group_move && i < s->group_move->n; i++)
            found += s->group_move->moved[i].var == v || s->group_move->moved[i].var == w;
        if (found == 2) return true;
    }
    return false;
}

// Of f, which draws vectors.
static Update *vectors_step(Graph *g, const Factor *f, const Var *alone)
{
    static const int powers[] = {1, 2, -2, -1};
    Var *by = NULL;
    const Update *drawn = update_that_draws(g, f->value->var);
    for (size_t k = 0; k < sizeof powers / sizeof *powers; k++) {
        Action a = action_of(g, by);
        if (!add_scales_of(&a, f, alone, powers[k])) continue;
        // whiten.c moves each scale by itself
        if (drawn && drawn->kind == UPDATE_ELLIPTICAL && a.mover[0].var->constraint == CONSTRAINT_NONE) return NULL;
        bool identified = false;
        const int nscales = a.n;
        for (int i = 0; i < nscales; i++) {
            const Reading of = factors_of(g, a.mover[i].var);
            for (int q = 0; q < of.n; q++) identified |= factor_counts_at(of.factor[q], 0, false) && of.factor[q]->observed;
        }
        if (identified) return NULL;
        if (!by) by = scale_new(g, f->value->var->name, f->value->var, 0);
        a.group.by = by;
        if (!add_vectors(&a, f)) continue;
        for (const Factor *other = f->next; other; other = other->next)
            if (mentions_moved(other->log_density, &a) && draws_vectors(g, other)) add_vectors(&a, other);
        Update *update = scale_move(g, &a);
        if (update) return update;
    }
    if (by) by->kind = VAR_ELEMENT;
    return NULL;
}

bool find_scale_moves(Graph *g)
{
    Update **last = updates_of_sweep(g);
    const int n = g->nvars;
    for (int i = 0; i < n; i++) {
        Var *v = g->vars[i];
        Update *s = scale_update(g, v);
        for (int k = -1; k < n; k++) {
            if (k >= 0)
                s = is_plain_real(v) && v->kind != VAR_AUXILIARY && !v->rank && is_positive(v) &&
                            !is_switched_off(g, v, SETTING_GROUP_MOVE) && v != g->vars[k]
                        ? step_against(g, v, g->vars[k])
                        : NULL;
            update_insert(&last, s);
        }
    }
    for (const Factor *f = g->factors; f; f = f->next) {
        bool any = false;
        if (!draws_vectors(g, f)) continue;
        for (int i = 0; i <= n && !(i == n && any); i++) {
            const Var *alone = i < n ? g->vars[i] : NULL;
            Update *s = NULL;
            if (alone && !(is_drawn_matrix(alone) || is_scale(alone))) continue;
            const bool moved = alone && f->value && f->value->kind == EX_REF && moves_both(g, alone, f->value->var);
            if (!moved) s = vectors_step(g, f, alone);
            any |= moved || s;
            update_insert(&last, s);
        }
    }
    return true;
}
