// reflections.c -- reflections: unknowns that are multiplied with each other change sign together, or one grows as the other shrinks.
//
//   before   y[i, j] ~ normal(m[j] + load[j]*f[i], s[j]),   load[1] > 0 fixes the signs of the others
//   after    also: all load[j] but load[1], and all f[i], become minus themselves, or stay, in proportion to their density
//
// Where load[1] is near 0, f and its loadings may have the wrong sign. Updates of single unknowns do not change that: a chain that begins
// there stays. The reflection and the identity are a group of two elements, with the counting measure and Jacobian 1 (group.c). c is 0
// or 1.
//
// Elements of an array stay, too, if their own statements are not symmetric: b[1] ~ normal(0, 2) T[0, ]. The law of c then consists of the
// rows that read them. Of columns, all elements that such statements draw stay: load[k, k] ~ half_normal(0, 1).
//
// If all references of a product have a common subscript, sum(k in 1:K, load[j, k]*f[i, k]), each of its values has a sign of its own: then
// c is a vector over these columns.
//
//   also     load[j] becomes load[j]/c, and f[i] becomes c*f[i], c > 0 drawn from the priors of both
//
// Given f its loadings are almost determined, and the converse, while data identify only their product. These maps are a group with Haar
// measure dc/c. The Jacobian is c^n, n the number of elements of f less those of load: no row of the likelihood is read. With normal priors
// the statistics of c are log c, c^2 and c^-2.
//
// Needs: the updates of the schedule.     Gives: updates of c (ENUM) with `group_move` set, after which the sign is applied.
// Conditions of a reflection: the set begins with an unknown of either sign in a product, and contains all such unknowns that are
// multiplied with it in factors that would change. Positive unknowns in these products keep their sign. If they changed it as well, no
// factor would change, except their priors, and statements without loops or that draw reflected unknowns: the model is symmetric but for
// signs that it fixes itself. Some factor does change, and at least two unknowns change sign. Elements are whole arrays, or those at
// numbers that all references outside their own statement have: f[i, 2]. They enter no recursion, decide no condition or range, are no
// subscripts, and share no factor with unknowns that are summed out or with arrays that are read whole.
//
// Conditions of load/c, c*f: an unknown of either sign, and the unknowns that are multiplied with it, positive or not, sums of such among
// them, without ends but 0. Every factor is unchanged, except the statements that draw the elements, one each.
#include <math.h>
#include <string.h>
#include "reflections.h"
#include "../terms/var.h"
#include "../terms/conditions.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../algebra/conditionals.h"
#include "group.h"
#include "updates.h"

enum { MOST_TURNED = 16, MOST_GIVEN = 8 };
enum { MOST_PARTS = 2000 };  // of a factor that is looked through for what to stretch

// elements with these numbers for subscripts, any where NULL; of a column, whose number is this subscript; stays, or drawn by the
// statements given: turned in thought alone; power: stretched by this power of c
typedef struct Turned {
    Var *var;
    Expr *at[MAX_RANK];
    int column;
    bool stays;
    const Factor *given[MOST_GIVEN];
    int ngiven;
    int power;
} Turned;

typedef struct Reflection {
    Group group;  // by: what stretches, of each column that has a sign, or one number; NULL: signs are turned
    Turned turned[MOST_TURNED];
    int n;
    Var *sign;  // of each column: 1 or -1; NULL: all that is turned has one sign
    bool all;   // those that stay, too
    bool grown;
} Reflection;

static const Turned *turned_of(const Reflection *x, const Var *v)
{
    for (int i = 0; i < x->n; i++)
        if (x->turned[i].var == v && (x->all || !x->turned[i].stays)) return &x->turned[i];
    return NULL;
}

static bool moves(const Group *x, const Var *v) { return turned_of((const Reflection *)x, v); }
static bool mentions_moved(const Expr *e, const Reflection *x) { return group_mentions(&x->group, e); }

// Whether this element is turned; x->group.failed: it may be.
static bool is_turned(Reflection *x, const Expr *ref)
{
    const Turned *t = turned_of(x, ref->var);
    if (!t) return false;
    for (int i = 0; i < t->ngiven && !x->all; i++) {
        bool differs = false;
        const Expr *one = t->given[i]->value;
        if (ref == one) return false;
        for (int k = 0; k < ref->nargs; k++) differs |= ref->args[k]->kind == EX_NUM && ref->args[k] != one->args[k];
        x->group.failed |= !differs;
    }
    x->group.failed |= ref->nargs < t->var->rank;
    for (int k = 0; k < ref->nargs; k++) {
        x->group.failed |= mentions_moved(ref->args[k], x);
        if (!t->at[k] || t->at[k] == ref->args[k]) continue;
        x->group.failed |= ref->args[k]->kind != EX_NUM;
        return false;
    }
    return true;
}

static Expr *stretch_at(const Reflection *x, const Turned *t, Expr *const *args)
{
    return ex_ref(x->group.by, x->group.by->rank, &args[t->column]);
}

static Expr *becomes(Group *group, Expr *ref)
{
    Reflection *x = (Reflection *)group;
    if (!is_turned(x, ref)) return ref;
    const Turned *t = turned_of(x, ref->var);
    return x->group.by ? ex_mul2(ex_pow(stretch_at(x, t, ref->args), t->power), ref)
           : x->sign   ? ex_mul2(ex_ref(x->sign, 1, &ref->args[t->column]), ref)
                       : ex_neg(ref);
}

// The sign, or power of c, that multiplies e; NULL: none does.
static Expr *sign_before(const Expr *e, const Var *sign)
{
    for (int i = 0; i < (e->kind == EX_MUL ? e->nargs : 1); i++) {
        Expr *f = e->kind == EX_MUL ? e->args[i] : (Expr *)e, *of = f->kind == EX_POW ? f->args[0] : f;
        if (of->kind == EX_REF && of->var == sign) return f;
    }
    return NULL;
}

static Expr *before_choice(Expr *e, void *with);

// One of all terms of a sum is one before it.
static Expr *before_sum(Expr *e, void *with)
{
    Expr *before = NULL, *all = ex_num(0), *rest = ex_num(0);
    for (int i = 0; i < e->nargs; i++)
        if (!ex_mentions(e->args[i], with)) return NULL;
    for (int i = 0; i < e->nargs; i++) {
        Expr *term = ex_map(e->args[i], before_choice, with), *of = sign_before(term, with);
        if (!i) before = of;
        if (of != before) before = NULL;
        all = ex_add2(all, term);
        if (before) rest = ex_add2(rest, ex_div(term, before));
    }
    return before ? ex_mul2(before, rest) : all;
}

// A sign of all branches of a choice is one before it.
static Expr *before_choice(Expr *e, void *with)
{
    if (!ex_mentions(e, with)) return e;
    if (e->kind == EX_ADD) return before_sum(e, with);
    if (e->kind != EX_CALL || e->fn != FN_if_else || ex_mentions(e->args[0], with)) return NULL;
    Expr *branch[2], *of[2];
    for (int i = 0; i < 2; i++) of[i] = sign_before(branch[i] = ex_map(e->args[1 + i], before_choice, with), with);
    Expr *sign = of[0] ? of[0] : of[1];
    for (int i = 0; i < 2 && sign; i++)
        if (of[i] != sign && !ex_is_num(branch[i], 0)) sign = NULL;
    if (!sign) return ex_call3("if_else", e->args[0], branch[0], branch[1]);
    return ex_mul2(sign, ex_call3("if_else", e->args[0], ex_div(branch[0], sign), ex_div(branch[1], sign)));
}

// The square of a sign is 1.
static Expr *without_squares(Expr *e, void *with)
{
    if (!ex_mentions(e, with)) return e;
    return e->kind == EX_POW && e->args[0]->kind == EX_REF && e->args[0]->var == with && e->number == 2 ? ex_num(1) : NULL;
}

static Expr *turned(Reflection *x, Expr *e)
{
    e = group_moved(&x->group, e);
    if (x->group.by) return ex_map(e, before_choice, x->group.by);
    return x->sign ? ex_map(ex_map(e, before_choice, x->sign), without_squares, x->sign) : e;
}

static bool mentions_turned(const Expr *e, const Reflection *x)
{
    for (int i = 0; i < x->n; i++)
        if (!x->turned[i].stays && ex_mentions((Expr *)e, x->turned[i].var)) return true;
    return false;
}

// Where the element with these subscripts is one that the statement f draws; NULL: they do not determine its indices.
static Expr *where_drawn(const Factor *f, Expr *const *args)
{
    Expr *where = f->plates.guard;
    Index *at[MAX_RANK];
    for (int k = 0; k < f->value->nargs; k++) {
        at[k] = index_new("at", NULL, NULL);
        where = ex_both(where, ex_call2("==", ex_index(at[k]), f->value->args[k]));
    }
    for (int i = 0; i < f->plates.n; i++) {
        Index *const j = f->plates.index[i];
        where = ex_both(where, ex_both(ex_call2("<=", j->lo, ex_index(j)), ex_call2("<=", ex_index(j), j->hi)));
    }
    for (int i = 0; i < f->plates.n; i++) {
        int k = 0;
        while (k < f->value->nargs && f->value->args[k] != ex_index(f->plates.index[i])) k++;
        if (k == f->value->nargs) return NULL;
        where = ex_replace_index(where, f->plates.index[i], ex_index(at[k]));
    }
    for (int k = 0; k < f->value->nargs; k++) where = ex_replace_index(where, at[k], args[k]);
    return where;
}

// Whether the statement f of ref, one element at numbers, or of columns any that its indices go over, identifies its sign: a truncation, a
// mean that is not 0. It stays from now on.
static bool is_given(Reflection *x, const Factor *f, const Expr *ref)
{
    Turned *t = (Turned *)turned_of(x, ref->var);
    bool one = true;
    if (!x->all || x->group.by || ref != f->value) return false;
    for (int i = 0; i < t->ngiven; i++)
        if (t->given[i] == f) return true;
    if (x->sign) one = !where_drawn(f, ref->args) || decide_instances(f, group_moves, x);
    else if (f->plates.n || f->plates.guard) return false;
    for (int k = 0; k < ref->nargs && !x->sign; k++) {
        if (ref->args[k]->kind != EX_NUM || (t->at[k] && t->at[k] != ref->args[k])) return false;
        one &= t->at[k] != NULL;
    }
    if (one || t->ngiven == MOST_GIVEN) return false;
    t->given[t->ngiven++] = f;
    return true;
}

// Whether f draws elements that are known whichever are reflected, and stays as it is.
static bool is_prior(Reflection *x, const Factor *f)
{
    Expr *e = f->log_density;
    for (int i = 0; i < x->n; i++) {
        if (var_drawn(f) != x->turned[i].var) continue;
        if (x->turned[i].stays) return x->all && !mentions_turned(e, x);
        Expr *ref = only_reference(e, x->turned[i].var);
        if (!ref) return false;
        if (mentions_moved(ex_replace(e, ref, ex_num(0)), x)) continue;
        if (ex_replace(e, ref, ex_neg(ref)) == e || is_given(x, f, ref)) return true;
    }
    return false;
}

// Whether f stays as it is: so do priors of what stays.
static bool stays(Reflection *x, const Factor *f)
{
    return is_prior(x, f) || (turned(x, f->log_density) == f->log_density && !x->group.failed);
}

static bool stays_positive(const Var *v) { return v->lower_number >= 0; }
static bool may_turn(const Var *v) { return v->kind != VAR_AUXILIARY && is_real_unknown(v) && (is_unbounded(v) || stays_positive(v)); }

// The set has the elements at the numbers in ref from now on, or all of the dimension where it had others.
static void add(Reflection *x, const Expr *ref)
{
    for (int i = 0; i < x->n; i++) {
        Turned *t = &x->turned[i];
        if (t->var != ref->var) continue;
        for (int k = 0; k < t->var->rank; k++) {
            if (!t->at[k] || ref->args[k] == t->at[k]) continue;
            if (ref->args[k]->kind == EX_NUM && i == 0) return;  // another factor of the same array
            t->at[k] = NULL;
            x->grown = true;
        }
        return;
    }
    x->group.failed |= x->n == MOST_TURNED;
    if (x->group.failed) return;
    Turned *t = &x->turned[x->n++];
    *t = (Turned){.var = ref->var, .stays = !is_unbounded(ref->var)};
    for (int k = 0; k < t->var->rank; k++) t->at[k] = ref->args[k]->kind == EX_NUM ? ref->args[k] : NULL;
    x->grown = true;
}

// The set has the column of ref whose number is `at` from now on.
static void add_column(Reflection *x, const Expr *ref, const Expr *at)
{
    int column = -1, n = 0;
    for (int k = 0; k < ref->nargs; k++)
        if (ref->args[k] == at) {
            column = k;
            n++;
        }
    x->group.failed |= n != 1 || ref->var->dim[column] != x->sign->dim[0] || x->n == MOST_TURNED;
    for (int i = 0; i < x->n; i++) x->group.failed |= x->turned[i].var == ref->var;  // by another subscript
    if (x->group.failed) return;
    x->turned[x->n++] = (Turned){.var = ref->var, .column = column, .stays = !is_unbounded(ref->var)};
    x->grown = true;
}

static bool is_factor(const Expr *e) { return e->kind == EX_REF && e->nargs == e->var->rank && may_turn(e->var); }

// Of a factor of a product, which may be a choice: the column of what is reflected; and others that are reflected with it.
static const Expr *column_in(Reflection *x, const Expr *e)
{
    if (e->kind == EX_CALL && e->fn == FN_if_else) {
        const Expr *at = column_in(x, e->args[1]);
        return at ? at : column_in(x, e->args[2]);
    }
    return is_factor(e) && is_turned(x, e) ? e->args[turned_of(x, e->var)->column] : NULL;
}

static void add_columns(Reflection *x, const Expr *e, const Expr *at)
{
    for (int i = 1; i < 3 && e->kind == EX_CALL && e->fn == FN_if_else; i++) add_columns(x, e->args[i], at);
    if (!x->group.failed && is_factor(e) && !is_turned(x, e)) add_column(x, e, at);
}

// Those that are multiplied with what is turned.
static Look find_partners(const Expr *e, void *with)
{
    Reflection *x = with;
    bool any = false;
    if (e->kind != EX_MUL) return LOOK;
    if (x->sign) {
        const Expr *at = NULL;
        for (int i = 0; i < e->nargs && !at; i++) at = column_in(x, e->args[i]);
        for (int i = 0; i < e->nargs && at && !x->group.failed; i++) add_columns(x, e->args[i], at);
        return LOOK;
    }
    for (int i = 0; i < e->nargs; i++) any |= is_factor(e->args[i]) && is_turned(x, e->args[i]);
    for (int i = 0; i < e->nargs && any; i++)
        if (is_factor(e->args[i]) && !is_turned(x, e->args[i])) add(x, e->args[i]);
    return LOOK;
}

static Reading factors_turned(Reflection *x)
{
    Var *block[MOST_TURNED];
    int n = 0;
    for (int i = 0; i < x->n; i++)
        if (turned_of(x, x->turned[i].var)) block[n++] = x->turned[i].var;
    return factors_of_block(x->group.g, block, n);
}

// Whether there are statements of the array beside those that identify signs.
static bool draws_others(const Graph *g, const Turned *t)
{
    bool others = false;
    for (const Factor *f = g->factors; f; f = f->next) {
        bool given = !factor_counts_at(f, 0, false) || var_drawn(f) != t->var;
        for (int i = 0; i < t->ngiven; i++) given |= f == t->given[i];
        others |= !given;
    }
    return others;
}

static Look test_within(const Expr *e, void *with)
{
    return e->kind == EX_CALL && e->fn == FN_WITHIN && mentions_moved(e, with) ? FOUND : LOOK;
}

// Whether f, which turned is another, costs little for each sign: it draws what is turned, or has no rows.
static bool costs_little(Reflection *x, const Factor *f)
{
    bool own = false;
    for (int i = 0; i < x->n && !own; i++) own = !x->turned[i].stays && var_drawn(f) == x->turned[i].var;
    if (x->sign || x->group.by || !(own || f->plates.n == 0) || ex_find(f->log_density, test_within, x)) return false;
    turned(x, f->log_density);
    return !x->group.failed;
}

// Whether the model is symmetric but for the signs that it gives, and statements that cost little.
static bool find_set(Reflection *x)
{
    bool symmetric = false;
    int rest = 0;
    x->all = true;
    for (x->grown = true; x->grown;) {
        x->grown = x->group.failed = false;
        symmetric = true;
        rest = 0;
        const Reading of = factors_turned(x);
        for (int q = 0; q < of.n && !x->grown; q++) {
            const Factor *f = of.factor[q];
            if (!factor_counts_at(f, 0, false) || stays(x, f)) continue;
            x->group.failed = false;
            ex_find(f->log_density, find_partners, x);
            if (x->group.failed && !x->grown) return false;
            const bool little = !x->grown && costs_little(x, f);
            x->group.failed = false;
            rest += little;
            symmetric &= little;
        }
    }
    int staying = 0, given = 0;
    for (int i = 0; i < x->n; i++) {
        staying += x->turned[i].stays;
        given += x->turned[i].ngiven > 0;
        if (x->sign && x->turned[i].ngiven && !draws_others(x->group.g, &x->turned[i])) return false;
    }
    return symmetric && staying + given + rest && given + (rest > 0) < 2 && x->n - staying > 1;
}

// Columns: where all of them, with what stays, may be reflected, to reflect what stays alone is to reflect the rest. Where k == j, j of a
// plate, that is column j: only its rows are read then.
typedef struct Staying {
    Reflection *x;
    const Factor *f;
    Var *by;
} Staying;

static bool is_plate(const Factor *f, const Expr *e)
{
    bool plate = false;
    for (int i = 0; i < f->plates.n; i++) plate |= e == ex_index(f->plates.index[i]);
    return plate;
}

// Whether one of these conditions is that two indices are the same.
static bool implies(const Expr *all, const Expr *a, const Expr *b)
{
    if (all->kind != EX_CALL) return false;
    if (all->fn == FN_AND) return implies(all->args[0], a, b) || implies(all->args[1], a, b);
    return all->fn == FN_EQ && ((all->args[0] == a && all->args[1] == b) || (all->args[0] == b && all->args[1] == a));
}

// An element that stays, turned by the sign of its column; where the condition does not hold, it does not stay.
static Expr *turned_at(const Staying *s, const Turned *t, Expr *e)
{
    Expr *turns = ex_mul2(ex_add2(ex_num(1), ex_mul2(ex_num(-2), ex_ref(s->by, 1, &e->args[t->column]))), e), *where = NULL;
    for (int i = 0; i < t->ngiven; i++) {
        Expr *drawn = where_drawn(t->given[i], e->args);
        where = where ? ex_either(where, drawn) : drawn;
    }
    if (where) where = condition_left(where);
    return where ? ex_call3("if_else", where, turns, e) : turns;
}

// The index of a plate that the number of the column is where elements stay; NULL: there is none.
static Expr *plate_at(const Staying *s, const Turned *t, Expr *e)
{
    Expr *const at = e->args[t->column];
    if (at->kind != EX_INDEX || is_plate(s->f, at)) return NULL;
    for (int k = 0; k < e->nargs; k++) {
        bool always = t->ngiven > 0;
        for (int i = 0; i < t->ngiven && always; i++)
            always = is_plate(s->f, e->args[k]) && implies(where_drawn(t->given[i], e->args), e->args[k], at);
        if (always) return e->args[k];
    }
    return NULL;
}

static Expr *turn_what_stays(Expr *e, void *with)
{
    const Staying *s = with;
    if (e->kind == EX_CALL && e->fn == FN_if_else && e->args[0]->kind == EX_CALL && e->args[0]->fn == FN_EQ) {
        Expr *const *same = e->args[0]->args;
        const int plate = is_plate(s->f, same[1]);
        if (same[!plate]->kind == EX_INDEX && is_plate(s->f, same[plate]) && !is_plate(s->f, same[!plate]))
            return ex_call3("if_else", e->args[0], ex_map(ex_replace(e->args[1], same[!plate], same[plate]), turn_what_stays, with),
                            ex_map(e->args[2], turn_what_stays, with));
    }
    const Turned *t = e->kind == EX_REF ? turned_of(s->x, e->var) : NULL;
    if (!t || !(t->stays || t->ngiven)) return NULL;
    Expr *const at = e->args[t->column], *is = plate_at(s, t, e);
    if (is) return ex_call3("if_else", ex_call2("==", at, is), turned_at(s, t, ex_replace(e, at, is)), e);
    return turned_at(s, t, e);
}

static bool factors_of_columns(Reflection *x, Var *by, Reading *out)
{
    x->all = true;
    const Reading of = factors_turned(x);
    out->factor = NEW_N(x->group.g->arena, Factor *, of.n + 1);
    for (int q = 0; q < of.n; q++) {
        Factor *f = of.factor[q];
        if (!factor_counts_at(f, 0, false)) continue;
        if (decide_instances(f, group_moves, x)) return false;
        if (!mentions_turned(f->log_density, x) || is_prior(x, f)) continue;  // the prior of what stays, and of what is reflected
        Expr *is = ex_map(f->log_density, turn_what_stays, &(Staying){x, f, by});
        if (is != f->log_density) out->factor[out->n++] = factor_with(x->group.g, f, is);
    }
    return out->n > 0;
}

// The statement f where its index `gone` is this number. false: f does not go over it, or another of its ranges depends on it.
static bool put_in(Factor *f, Index *gone, Expr *number)
{
    Loops left = {.guard = f->plates.guard};
    for (int i = 0; i < f->plates.n; i++) {
        Index *const j = f->plates.index[i];
        if (j == gone) continue;
        if (ex_mentions_index(j->lo, gone) || ex_mentions_index(j->hi, gone)) return false;
        left.index[left.n++] = j;
    }
    if (left.n == f->plates.n) return false;
    if (left.guard) left.guard = ex_replace_index(left.guard, gone, number);
    left.guard = condition_left(ex_both(left.guard, ex_both(ex_call2("<=", gone->lo, number), ex_call2("<=", number, gone->hi))));
    f->plates = left;
    if (f->value) f->value = ex_replace_index(f->value, gone, number);
    f->log_density = ex_replace_index(f->log_density, gone, number);
    return true;
}

static bool is_nowhere(const Factor *f) { return f->plates.guard && ex_is_num(f->plates.guard, 0); }

// How a factor reads an array of which elements stay: by numbers; by other subscripts, in one reference, or several.
typedef struct Refs {
    const Reflection *x;
    const Expr *ref;
    const Turned *of;
    bool numbers, several;
} Refs;

static Look find_symbolic(const Expr *e, void *with)
{
    Refs *r = with;
    const Turned *t = e->kind == EX_REF ? turned_of(r->x, e->var) : NULL;
    bool symbolic = false;
    if (!t || !t->ngiven) return LOOK;
    for (int k = 0; k < e->nargs; k++) symbolic |= e->args[k]->kind != EX_NUM;
    r->several |= symbolic && r->ref && r->ref != e;
    r->numbers |= !symbolic;
    if (symbolic) {
        r->ref = e;
        r->of = t;
    }
    return LOOK;
}

// The rows of f in which ref is the given element: an index of f that stands for a subscript becomes its number; another subscript is one
// of data, and a condition. NULL with x->group.failed: neither.
static Factor *at_given(Reflection *x, const Factor *f, const Expr *ref, Expr *given)
{
    Factor *out = factor_with(x->group.g, f, f->log_density);
    for (int k = 0; k < given->nargs; k++) {
        const Expr *is = ref->args[k];
        if (is == given->args[k]) continue;
        if (is->kind == EX_NUM) return NULL;
        if (is->kind == EX_INDEX && put_in(out, is->index, given->args[k])) continue;
        x->group.failed |= is->kind == EX_INDEX || ex_unknown(is);
        out->plates.guard = ex_both(out->plates.guard, ex_call2("==", (Expr *)is, given->args[k]));
    }
    if (x->group.failed || is_nowhere(out)) return NULL;
    out->log_density = ex_replace(out->log_density, (Expr *)ref, given);
    return out;
}

// f as it is for either sign, if it is not the same. false: what is turned in it is not known.
static bool put_turned(Reflection *x, Factor *f, Var *by, Reading *out)
{
    Expr *is = turned(x, f->log_density);
    if (x->group.failed) return false;
    if (is == f->log_density) return true;
    out->factor[out->n++] =
        factor_with(x->group.g, f, ex_call3("if_else", ex_call2("==", ex_ref(by, 0, NULL), ex_num(1)), is, f->log_density));
    return true;
}

// Where elements stay, of a factor's rows those that read one of them: all others are the same turned or not.
static bool factors_of_c(Reflection *x, Var *by, Reading *out)
{
    if (x->sign) return factors_of_columns(x, by, out);
    x->all = false;
    const Reading of = factors_turned(x);
    out->factor = NEW_N(x->group.g->arena, Factor *, of.n * MOST_GIVEN + 1);
    for (int q = 0; q < of.n; q++) {
        Factor *f = of.factor[q];
        if (!factor_counts_at(f, 0, false)) continue;
        if (decide_instances(f, group_moves, x)) return false;
        if (!mentions_moved(f->log_density, x) || stays(x, f)) continue;
        Refs in = {.x = x};
        ex_find(f->log_density, find_symbolic, &in);
        if (in.several || (in.ref && in.numbers)) return false;
        if (!in.ref && !put_turned(x, f, by, out)) return false;
        for (int i = 0; in.ref && i < in.of->ngiven; i++) {
            x->group.failed = false;
            Factor *at = at_given(x, f, in.ref, in.of->given[i]->value);
            if (x->group.failed || (at && !put_turned(x, at, by, out))) return false;
        }
    }
    return out->n > 0;
}

static Update *reflection_update(Reflection *x)
{
    Graph *g = x->group.g;
    Selection *selection = NULL;
    int n = 0;
    x->all = false;
    for (int i = 0; i < x->n; i++)
        if (!x->turned[i].stays &&
            (is_switched_off(g, x->turned[i].var, SETTING_GROUP_MOVE) || !in_one_sweep(g, x->turned[i].var, n++, &selection)))
            return NULL;
    Var *by = var_hidden(g, arena_printf(g->arena, "signs_%s", x->turned[0].var->name), x->turned[0].var->span, x->sign ? 1 : 0,
                         x->sign ? x->sign->dim : NULL);
    by->discrete = true;
    by->base = BASE_INT;
    by->lower_number = 0;
    by->upper_number = 1;
    Reading of = {0};
    Conditional *c = factors_of_c(x, by, &of) ? law_of_move(g, by, &of, false) : NULL;
    if (!c || c->recursion || c->whole) {
        by->kind = VAR_ELEMENT;
        return NULL;
    }
    GroupMove *o = group_move_new(g, by, true, n);
    for (int i = 0; i < x->n; i++) {
        const Turned *t = &x->turned[i];
        if (t->stays) continue;
        Carried *to = group_move_carry(g, o, t->var);
        to->c = x->sign ? ex_ref(by, 1, &to->element->args[t->column]) : ex_ref(by, 0, NULL);
        Expr *turns = ex_call2("==", to->c, ex_num(1));
        for (int k = 0; k < t->var->rank; k++)
            if (t->at[k]) turns = ex_call2("&&", turns, ex_call2("==", ex_index(to->index[k]), t->at[k]));
        for (int k = 0; k < t->ngiven; k++) turns = ex_call2("&&", turns, ex_call1("!", where_drawn(t->given[k], to->element->args)));
        to->value = ex_call3("if_else", turns, ex_neg(to->element), to->element);
    }
    Update *s = group_update(g, UPDATE_ENUM, by->span, c, o, selection, "updates of single unknowns do not change the signs of a product");
    s->enumerate.lower = ex_num(0);
    s->enumerate.upper = ex_num(1);
    return s;
}

// ---- stretched ----

static bool may_stretch(const Var *v)
{
    return v->kind != VAR_AUXILIARY && is_plain_real(v) && (is_unbounded(v) || (v->lower_number == 0 && isinf(v->upper_number)));
}

static bool is_stretchable(const Expr *e) { return e->kind == EX_REF && e->nargs == e->var->rank && may_stretch(e->var); }

static bool is_either(const Expr *e) { return e->kind == EX_ADD || (e->kind == EX_CALL && e->fn == FN_if_else); }

// Terms of a sum, branches of a choice.
static Expr *const *either_of(const Expr *e, int *n)
{
    *n = e->kind == EX_ADD ? e->nargs : 2;
    return e->kind == EX_ADD ? e->args : e->args + 1;
}

// What of a product, or of a term or branch of one of its factors, is stretched: *at the factor; NULL: nothing is.
static const Turned *stretched_in(Reflection *x, const Expr *e, const Expr **at)
{
    int n;
    const Turned *t = NULL;
    if (is_either(e)) {
        Expr *const *of = either_of(e, &n);
        for (int i = 0; i < n && !t; i++) t = stretched_in(x, of[i], at);
    } else if (e->kind == EX_MUL) {
        for (int i = 0; i < e->nargs && !t; i++)
            if (!is_either(e->args[i])) t = stretched_in(x, e->args[i], at);
    } else if (is_stretchable(e) && is_turned(x, e)) {
        t = turned_of(x, e->var);
        *at = e;
    }
    return t;
}

// Multiplies e by this power of c: one of its factors that is not stretched, of each term or branch; column NULL: by one number.
static void stretch(Reflection *x, const Expr *e, int power, const Expr *column)
{
    int n;
    const Expr *at;
    if (is_either(e)) {
        Expr *const *of = either_of(e, &n);
        for (int i = 0; i < n; i++)
            if (!stretched_in(x, of[i], &at)) stretch(x, of[i], power, column);
        return;
    }
    for (int i = 0; i < (e->kind == EX_MUL ? e->nargs : 1); i++) {
        const Expr *f = e->kind == EX_MUL ? e->args[i] : e;
        if (!is_stretchable(f)) continue;
        const int before = x->n;
        if (column) add_column(x, f, column);
        else add(x, f);
        if (x->n > before) {
            x->turned[before].power = power;
            x->turned[before].stays = false;
        }
        return;
    }
}

// A product of which one factor is stretched: the first other one shrinks.
static Look find_counterpart(const Expr *e, void *with)
{
    Reflection *x = with;
    const Turned *t = NULL;
    const Expr *at, *other = NULL, *also;
    for (int i = 0; e->kind == EX_MUL && i < e->nargs && !t && !x->group.failed; i++) {
        t = stretched_in(x, e->args[i], &at);
        if (!t) continue;
        const int power = t->power;
        const Expr *column = x->sign ? at->args[t->column] : NULL;
        if (is_either(e->args[i])) stretch(x, e->args[i], power, column);
        for (int j = 0; j < e->nargs && !other; j++)
            if (j != i && (is_either(e->args[j]) || is_stretchable(e->args[j]))) other = e->args[j];
        if (other && !stretched_in(x, other, &also)) stretch(x, other, -power, column);
    }
    return LOOK;
}

static bool draws_member(const Reflection *x, const Factor *f) { return var_drawn(f) && turned_of(x, var_drawn(f)); }

// Whether the model is as it was but for the statements that draw what is stretched.
static bool find_stretched(Reflection *x)
{
    bool same = false;
    for (x->grown = true; x->grown;) {
        x->grown = x->group.failed = false;
        same = true;
        const Reading of = factors_turned(x);
        for (int q = 0; q < of.n && !x->grown; q++) {
            const Factor *f = of.factor[q];
            if (!factor_counts_at(f, 0, false)) continue;
            if (f->log_density->size > MOST_PARTS) return false;
            if (draws_member(x, f)) continue;
            if (turned(x, f->log_density) == f->log_density && !x->group.failed) continue;
            same = x->group.failed = false;
            ex_find(f->log_density, find_counterpart, x);
            if (x->group.failed) return false;
        }
    }
    return same && x->n > 1;
}

// The statement f at the elements that are stretched: a subscript that is one number, where f goes over it, is put in. NULL: none of them
// is.
static Factor *at_numbers(Reflection *x, const Factor *f)
{
    Graph *g = x->group.g;
    const Turned *t = turned_of(x, f->value->var);
    Factor *out = factor_with(g, f, f->log_density);
    x->group.failed |= f->value->nargs < t->var->rank;
    for (int k = 0; k < t->var->rank && !x->group.failed; k++) {
        const Expr *is = f->value->args[k];
        if (!t->at[k] || is == t->at[k]) continue;
        if (is->kind == EX_NUM) return NULL;
        x->group.failed |= is->kind != EX_INDEX || !put_in(out, is->index, t->at[k]);
        if (x->group.failed || is_nowhere(out)) return NULL;
    }
    return x->group.failed ? NULL : out;
}

// An end that c would move across.
static Look test_end(const Expr *e, void *with)
{
    return e->kind == EX_CALL && e->fn == FN_WITHIN && ex_mentions((Expr *)e, with) ? FOUND : LOOK;
}

// The law of c: the statements that draw what is stretched, with the Jacobian, and the Haar measure. false: a condition is not met.
static bool factors_of_stretch(Reflection *x, Reading *out)
{
    Graph *g = x->group.g;
    bool identified = false;
    int n = 0;
    for (const Factor *f = g->factors; f; f = f->next) n++;
    out->n = 0;
    out->factor = NEW_N(g->arena, Factor *, n + 2);
    const Reading of = factors_turned(x);
    for (int q = 0; q < of.n; q++)
        if (factor_counts_at(of.factor[q], 0, false) && decide_instances(of.factor[q], group_moves, x)) return false;
    for (const Factor *f = g->factors; f; f = f->next) {  // also those that are flat
        if (!factor_counts_at(f, 0, false) || !draws_member(x, f)) continue;
        x->group.failed = false;
        Factor *c = at_numbers(x, f);
        if (x->group.failed) return false;
        if (!c) continue;
        const Turned *t = turned_of(x, f->value->var);
        Expr *is = turned(x, c->log_density), *by = stretch_at(x, t, c->value->args);
        if (x->group.failed || ex_find(is, test_end, x->group.by)) return false;
        identified |= is != c->log_density;
        c->log_density = ex_add2(is, ex_mul2(ex_num(t->power), ex_log(by)));
        c->value = NULL;
        c->dist = NULL;
        out->factor[out->n++] = c;
    }
    for (int i = 0; i < x->n; i++) {
        bool drawn = false;
        for (const Factor *f = g->factors; f && !drawn; f = f->next) drawn = var_drawn(f) == x->turned[i].var;
        if (!drawn) return false;
    }
    if (!identified) return false;
    Loops p = {.n = x->group.by->rank};
    out->factor[out->n++] = factor_of_ends(g, out->factor[0], p, ex_neg(ex_log(var_element(g, x->group.by, p.index))));
    return true;
}

static Update *stretch_update(Reflection *x)
{
    Graph *g = x->group.g;
    const Update *first = NULL;
    for (int i = 0; i < x->n; i++) {
        const Var *v = x->turned[i].var;
        for (const Series *e = g->series; e; e = e->next)
            if (e->var[0]->kind == VAR_SERIES && series_reads(e, v)) return NULL;
        const Update *s = update_in_sweep(g, v);
        if (!s || is_switched_off(g, v, SETTING_GROUP_MOVE) || (first && s->selection != first->selection)) return NULL;
        first = s;
    }
    Reading of = {0};
    Var *by = x->group.by = var_hidden(g, arena_printf(g->arena, "scale_%s", x->turned[0].var->name), x->turned[0].var->span,
                                       x->sign ? 1 : 0, x->sign ? x->sign->dim : NULL);
    by->lower_number = 0;
    Conditional *c = law_apart(g, by, factors_of_stretch(x, &of) ? &of : NULL, true);
    if (!c) return NULL;
    GroupMove *o = group_move_new(g, by, false, x->n);
    o->by_priors = true;
    for (int i = 0; i < x->n; i++) {
        const Turned *t = &x->turned[i];
        Carried *to = group_move_carry(g, o, t->var);
        to->power = t->power;
        to->c = stretch_at(x, t, to->element->args);
        to->value = ex_mul2(ex_pow(to->c, t->power), to->element);
        for (int k = 0; k < t->var->rank; k++)
            if (t->at[k]) to->where = ex_both(to->where, ex_call2("==", ex_index(to->index[k]), t->at[k]));
        if (to->where) to->value = ex_call3("if_else", to->where, to->value, to->element);
    }
    return group_update(g, c->family ? UPDATE_EXACT : UPDATE_SLICE, by->span, c, o, first->selection,
                        "given each other, the factors of a product mix slowly");
}

// ---- which there are ----

static bool same_set(const Reflection *x, const Reflection *y)
{
    if (x->n != y->n || !x->sign != !y->sign || !x->group.by != !y->group.by) return false;
    for (int i = 0; i < x->n; i++) {
        bool found = false;
        for (int j = 0; j < y->n && !found; j++)
            found = x->turned[i].var == y->turned[j].var && x->turned[i].column == y->turned[j].column &&
                    memcmp(x->turned[i].at, y->turned[j].at, sizeof x->turned[i].at) == 0;
        if (!found) return false;
    }
    return true;
}

// c, each: what stretches, one number, or one of each column, while sets are looked for
typedef struct Begun {
    Graph *g;
    Var *sign, *c, *each;
    Reflection *set;
    int n, size;
} Begun;

static void put_set(Begun *b, const Reflection *x)
{
    for (int k = 0; k < b->n; k++)
        if (same_set(x, &b->set[k])) return;
    ROOM(b->g->arena, b->set, b->n, b->size);
    b->set[b->n++] = *x;
}

static Reflection reflection_of(Graph *g, Var *c)
{
    return (Reflection){.group = {.g = g, .by = c, .moves = moves, .becomes = becomes}, .all = c};
}

// Each unknown in a product begins a set, by the numbers among its subscripts, and one of columns by each of the others: of those of either
// sign to be turned, of others to be stretched alone.
static Look begin(const Expr *e, void *with)
{
    Begun *b = with;
    if (e->kind != EX_MUL) return LOOK;
    for (int i = 0; i < e->nargs; i++) {
        const Expr *ref = e->args[i];
        for (int stretched = !is_factor(ref) || !is_unbounded(ref->var); stretched < 1 + is_stretchable(ref); stretched++) {
            Reflection x = reflection_of(b->g, stretched ? b->c : NULL);
            add(&x, ref);
            x.turned[0].power = stretched;
            x.turned[0].stays &= !stretched;
            put_set(b, &x);
            for (int k = 0; k < ref->nargs; k++) {
                if (ref->args[k]->kind != EX_INDEX) continue;
                Reflection columns = reflection_of(b->g, stretched ? b->each : NULL);
                columns.sign = b->sign;
                columns.turned[columns.n++] = (Turned){.var = ref->var, .column = k, .power = stretched};
                put_set(b, &columns);
            }
        }
    }
    return LOOK;
}

// Scales alone are moved against each other by scale_moves.c.
static bool holds_free(const Reflection *x)
{
    for (int i = 0; i < x->n; i++)
        if (is_unbounded(x->turned[i].var)) return true;
    return false;
}

bool find_reflections(Graph *g)
{
    Begun b = {.g = g,
               .sign = var_unique(g, "sign", VAR_ELEMENT),
               .c = var_unique(g, "stretch", VAR_ELEMENT),
               .each = var_unique(g, "stretch", VAR_ELEMENT)};
    b.sign->rank = b.each->rank = 1;
    b.sign->dim[0] = b.each->dim[0] = ex_num(1);
    b.c->lower_number = b.each->lower_number = 0;
    for (const Factor *f = g->factors; f; f = f->next)
        if (factor_counts_at(f, 0, false)) ex_find(f->log_density, begin, &b);
    Update **last = updates_of_sweep(g);
    for (int i = 0; i < b.n; i++) {
        Reflection *x = &b.set[i];
        if (x->sign) b.sign->dim[0] = b.each->dim[0] = x->turned[0].var->dim[x->turned[0].column];
        bool known = x->group.by ? !find_stretched(x) || !holds_free(x) : !find_set(x);
        for (int k = 0; k < i && !known; k++) known = same_set(x, &b.set[k]);
        if (!known) update_insert(&last, x->group.by ? stretch_update(x) : reflection_update(x));
    }
    return true;
}
