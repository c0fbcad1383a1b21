// reflections.c -- unknowns of either sign that stand in products, turned together.
//
//   before   y[i, j] ~ normal(m[j] + load[j]*f[i], s[j]),   load[1] > 0: the others' signs go by it
//   after    also: all load[j] but load[1], and all f[i], become minus themselves, or stay, in proportion to their density
//
// Where load[1] is near 0, f and its loadings stand as well with the wrong sign, and no step by step takes them to the other: a chain that begins there stays. To turn them and to leave them are a group of two, whose Haar
// measure counts and whose Jacobian is 1: drawn in proportion to p, one of the two leaves p invariant (Liu and Sabatti 2000, theorem 1). c is a variable of its own, 0 or 1, with factors in which what is turned stands for x.
//
// Where a subscript stands in all references of a product, sum(k in 1:K, load[j, k]*f[i, k]), each of its values has a sign of its own: columns, of which c is a vector.
//
// Needs: the steps of the schedule.     Gives: steps of c (ENUM) with `orbit` set, after which the sign is applied.
// Conditions: the set is begun by an unknown of either sign in a product, and has all such unknowns that are multiplied with it in factors that it would change. With those as well that are multiplied with it and are positive, which stay,
// every factor but the priors of these would be as it was: the model is symmetric but for signs that it gives. Some factor does change, and two unknowns or more are turned. Elements are whole arrays, or those at numbers
// that stand in all references outside their own statement: f[i, 2]. What is turned enters no recursion, decides no condition or range, is no subscript, and meets nothing that is summed out or read as an array.
#include <math.h>
#include <string.h>
#include "graph.h"

enum { MOST_TURNED = 16 };

typedef struct Turned { Var *var; Expr *at[MAX_RANK]; int column; bool stays; } Turned;     // elements with these numbers for subscripts, any where NULL; of a column, whose number is this subscript; stays: positive, and turned in thought alone

typedef struct Reflection {
    Graph *g;
    Turned turned[MOST_TURNED];
    int    n;
    Var   *sign;                         // of each column: 1 or -1; NULL: all that is turned has one sign
    bool   all;                          // those that stay, too
    bool   failed, grown;
} Reflection;

static const Turned *turned_of(const Reflection *x, const Var *v)
{
    for (int i = 0; i < x->n; i++)
        if (x->turned[i].var == v && (x->all || !x->turned[i].stays)) return &x->turned[i];
    return NULL;
}

static bool is_moved(const Var *v, void *with) { return turned_of(with, v); }
static bool mentions_moved(const Expr *e, const Reflection *x) { return e && ex_any_var(e, is_moved, (void *)x); }

// Whether this element is turned; x->failed: it may be.
static bool is_turned(Reflection *x, const Expr *ref)
{
    const Turned *t = turned_of(x, ref->var);
    if (!t) return false;
    x->failed |= ref->nargs < t->var->rank;
    for (int k = 0; k < ref->nargs; k++) {
        x->failed |= mentions_moved(ref->args[k], x);
        if (!t->at[k] || t->at[k] == ref->args[k]) continue;
        x->failed |= ref->args[k]->kind != EX_NUM;
        return false;
    }
    return true;
}

static Expr *turn(Expr *e, void *with)
{
    Reflection *x = with;
    if (x->failed || !mentions_moved(e, x)) return e;
    if (e->kind == EX_REF && x->sign && is_turned(x, e)) return ex_mul2(ex_ref(x->sign, 1, &e->args[turned_of(x, e->var)->column]), e);
    if (e->kind == EX_REF) return is_turned(x, e) ? ex_neg(e) : e;
    x->failed |= e->kind == EX_ARRAY || e->kind == EX_AT || (e->kind == EX_REDUCE && (mentions_moved(e->args[0], x) || mentions_moved(e->args[1], x)));
    return x->failed ? e : NULL;
}

// The sign that multiplies e; NULL: none does.
static Expr *sign_before(const Expr *e, const Var *sign)
{
    for (int i = 0; i < (e->kind == EX_MUL ? e->nargs : 1); i++) {
        Expr *f = e->kind == EX_MUL ? e->args[i] : (Expr *)e;
        if (f->kind == EX_REF && f->var == sign) return f;
    }
    return NULL;
}

// A sign of all branches of a choice is one before it.
static Expr *before_choice(Expr *e, void *with)
{
    if (!ex_mentions(e, with)) return e;
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
    x->failed = false;
    e = ex_map(e, turn, x);
    return x->sign ? ex_map(ex_map(e, before_choice, x->sign), without_squares, x->sign) : e;
}

static bool draws(const Factor *f, const Var *v) { return f->value && f->value->kind == EX_REF && f->value->var == v; }

typedef struct Only { const Expr *ref; bool several; } Only;

static void find_only(Expr *ref, void *with)
{
    Only *o = with;
    o->several |= o->ref && o->ref != ref;
    o->ref = ref;
}

static bool mentions_turned(const Expr *e, const Reflection *x)
{
    for (int i = 0; i < x->n; i++)
        if (!x->turned[i].stays && ex_mentions((Expr *)e, x->turned[i].var)) return true;
    return false;
}

// Whether f stays as it is: so do priors of what stays. Of the statement that draws one of its elements each that is told without asking which are turned.
static bool stays(Reflection *x, const Factor *f)
{
    Expr *e = f->log_density;
    for (int i = 0; i < x->n; i++) {
        Only o = {0};
        if (!draws(f, x->turned[i].var)) continue;
        if (x->turned[i].stays) {
            if (x->all && !mentions_turned(e, x)) return true;
            break;
        }
        ex_references(e, x->turned[i].var, find_only, &o);
        if (o.several || !o.ref || o.ref->nargs < x->turned[i].var->rank) break;
        const Expr *without = ex_replace(e, (Expr *)o.ref, ex_num(0));
        if (!mentions_moved(without, x) && ex_replace(e, (Expr *)o.ref, ex_neg((Expr *)o.ref)) == e) return true;
    }
    return turned(x, e) == e && !x->failed;
}

static bool stays_positive(const Var *v) { return v->lower_number >= 0; }
static bool is_free(const Var *v) { return isinf(v->lower_number) && isinf(v->upper_number); }
static bool may_turn(const Var *v) { return v->kind != VAR_AUXILIARY && is_plain_real(v) && (is_free(v) || stays_positive(v)); }

// The set has the elements at the numbers in ref from now on, or all of the dimension where it had others.
static void add(Reflection *x, const Expr *ref)
{
    for (int i = 0; i < x->n; i++) {
        Turned *t = &x->turned[i];
        if (t->var != ref->var) continue;
        for (int k = 0; k < t->var->rank; k++) {
            if (!t->at[k] || ref->args[k] == t->at[k]) continue;
            if (ref->args[k]->kind == EX_NUM && i == 0) return;          // another factor of the same array
            t->at[k] = NULL;
            x->grown = true;
        }
        return;
    }
    x->failed |= x->n == MOST_TURNED;
    if (x->failed) return;
    Turned *t = &x->turned[x->n++];
    *t = (Turned){.var = ref->var, .stays = !is_free(ref->var)};
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
    x->failed |= n != 1 || ref->var->dim[column] != x->sign->dim[0] || x->n == MOST_TURNED;
    for (int i = 0; i < x->n; i++) x->failed |= x->turned[i].var == ref->var;        // by another subscript
    if (x->failed) return;
    x->turned[x->n++] = (Turned){.var = ref->var, .column = column, .stays = !is_free(ref->var)};
    x->grown = true;
}

static bool is_factor(const Expr *e) { return e->kind == EX_REF && e->nargs == e->var->rank && may_turn(e->var); }

// Of a factor of a product, which may be a choice: the column of what is turned; and others that turn with it.
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
    if (!x->failed && is_factor(e) && !is_turned(x, e)) add_column(x, e, at);
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
        for (int i = 0; i < e->nargs && at && !x->failed; i++) add_columns(x, e->args[i], at);
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
    return factors_of_block(x->g, block, n);
}

// Whether the model is symmetric but for the signs that it gives.
static bool find_set(Reflection *x)
{
    bool symmetric = false;
    x->all = true;
    for (x->grown = true; x->grown;) {
        x->grown = x->failed = false;
        symmetric = true;
        const Reading of = factors_turned(x);
        for (int q = 0; q < of.n && !x->grown; q++) {
            const Factor *f = of.factor[q];
            if (!factor_counts_at(f, 0, false) || stays(x, f)) continue;
            symmetric = x->failed = false;
            ex_find(f->log_density, find_partners, x);
            if (x->failed) return false;
        }
    }
    int given = 0;
    for (int i = 0; i < x->n; i++) given += x->turned[i].stays;
    return symmetric && given && x->n - given > 1;
}

// Columns: where all of them, with what stays, may be turned, to turn what stays alone is to turn the rest. Where k == j, j of a plate, that is column j: only its rows are read then.
typedef struct Staying { Reflection *x; const Factor *f; Var *by; } Staying;

static bool is_plate(const Factor *f, const Expr *e)
{
    bool plate = false;
    for (int i = 0; i < f->plates.n; i++) plate |= e == ex_index(f->plates.index[i]);
    return plate;
}

static Expr *turn_what_stays(Expr *e, void *with)
{
    const Staying *s = with;
    if (e->kind == EX_CALL && e->fn == FN_if_else && e->args[0]->kind == EX_CALL && e->args[0]->fn == FN_EQ) {
        Expr *const *same = e->args[0]->args;
        const int plate = is_plate(s->f, same[1]);
        if (same[!plate]->kind == EX_INDEX && is_plate(s->f, same[plate]) && !is_plate(s->f, same[!plate]))
            return ex_call3("if_else", e->args[0], ex_map(ex_replace(e->args[1], same[!plate], same[plate]), turn_what_stays, with), ex_map(e->args[2], turn_what_stays, with));
    }
    const Turned *t = e->kind == EX_REF ? turned_of(s->x, e->var) : NULL;
    if (!t || !t->stays) return NULL;
    return ex_mul2(ex_add2(ex_num(1), ex_mul2(ex_num(-2), ex_ref(s->by, 1, &e->args[t->column]))), e);
}

static bool factors_of_columns(Reflection *x, Var *by, Reading *out)
{
    x->all = true;
    const Reading of = factors_turned(x);
    out->factor = NEW_N(x->g->arena, Factor *, of.n + 1);
    for (int q = 0; q < of.n; q++) {
        Factor *f = of.factor[q];
        if (!factor_counts_at(f, 0, false)) continue;
        if (decide_instances(f, is_moved, x)) return false;
        if (!mentions_turned(f->log_density, x)) continue;                  // the prior of what stays
        Expr *is = ex_map(f->log_density, turn_what_stays, &(Staying){x, f, by});
        if (is == f->log_density) continue;
        Factor *c = out->factor[out->n++] = arena_copy(x->g->arena, f, sizeof *f);
        c->log_density = is;
        c->next = NULL;
    }
    return out->n > 0;
}

static bool factors_of_c(Reflection *x, Var *by, Reading *out)
{
    if (x->sign) return factors_of_columns(x, by, out);
    x->all = false;
    const Reading of = factors_turned(x);
    out->factor = NEW_N(x->g->arena, Factor *, of.n + 1);
    for (int q = 0; q < of.n; q++) {
        Factor *f = of.factor[q];
        if (!factor_counts_at(f, 0, false)) continue;
        if (decide_instances(f, is_moved, x)) return false;
        if (!mentions_moved(f->log_density, x) || stays(x, f)) continue;
        Expr *is = turned(x, f->log_density);
        if (x->failed) return false;
        Factor *c = out->factor[out->n++] = arena_copy(x->g->arena, f, sizeof *f);
        c->log_density = ex_call3("if_else", ex_call2("==", ex_ref(by, 0, NULL), ex_num(1)), is, f->log_density);
        c->next = NULL;
    }
    return out->n > 0;
}

static Step *reflection_step(Reflection *x)
{
    Graph *g = x->g;
    const Competition *competition = NULL;
    int n = 0;
    x->all = false;
    for (int i = 0; i < x->n; i++) {
        const Var *v = x->turned[i].var;
        if (x->turned[i].stays) continue;
        for (const Series *e = g->series; e; e = e->next)
            if (series_follows(e, v)) return NULL;
        const Step *s = step_that_draws(g, v);
        if (!s || s->kind == STEP_NUTS || (s->when != EVERY_SWEEP && s->when != WITHOUT_GRADIENTS) || s->over_sum || is_switched_off(g, v, "orbit")) return NULL;
        if (n++ && s->competition != competition) return NULL;
        competition = s->competition;
    }
    Var *by = var_unique(g, arena_printf(g->arena, "signs_%s", x->turned[0].var->name), VAR_AUXILIARY);
    by->hidden = by->discrete = true;
    by->base = BASE_INT;
    by->lower_number = 0;
    by->upper_number = 1;
    by->span = x->turned[0].var->span;
    if (x->sign) {
        by->rank = 1;
        by->dim[0] = x->sign->dim[0];
    }
    Reading of = {0};
    Conditional *c = factors_of_c(x, by, &of) ? conditional_given(g, by, &of, false) : NULL;
    if (!c || c->recursion || c->whole) {
        by->kind = VAR_ELEMENT;
        return NULL;
    }
    Orbit *o = NEW(g->arena, Orbit);
    *o = (Orbit){.by = by, .added = true, .moved = NEW_N(g->arena, Carried, n)};
    for (int i = 0; i < x->n; i++) {
        const Turned *t = &x->turned[i];
        if (t->stays) continue;
        Carried *to = &o->moved[o->n++];
        *to = (Carried){.var = t->var};
        to->element = var_element(g, t->var, to->index);
        to->c = x->sign ? ex_ref(by, 1, &to->element->args[t->column]) : ex_ref(by, 0, NULL);
        Expr *turns = ex_call2("==", to->c, ex_num(1));
        for (int k = 0; k < t->var->rank; k++)
            if (t->at[k]) turns = ex_call2("&&", turns, ex_call2("==", ex_index(to->index[k]), t->at[k]));
        to->value = ex_call3("if_else", turns, ex_neg(to->element), to->element);
    }
    Step *s = NEW(g->arena, Step);
    *s = (Step){.kind = STEP_ENUM, .span = by->span, .nblock = 1, .block = arena_copy(g->arena, &by, sizeof by), .conditional = c, .orbit = o, .enumerate = {.lower = ex_num(0), .upper = ex_num(1)},
                .when = competition ? WITHOUT_GRADIENTS : EVERY_SWEEP, .competition = (Competition *)competition, .reason = "step by step, no sign of a product changes"};
    return s;
}

static bool same_set(const Reflection *x, const Reflection *y)
{
    if (x->n != y->n || !x->sign != !y->sign) return false;
    for (int i = 0; i < x->n; i++) {
        bool found = false;
        for (int j = 0; j < y->n && !found; j++) found = x->turned[i].var == y->turned[j].var && x->turned[i].column == y->turned[j].column && memcmp(x->turned[i].at, y->turned[j].at, sizeof x->turned[i].at) == 0;
        if (!found) return false;
    }
    return true;
}

typedef struct Begun { Graph *g; Var *sign; Reflection *set; int n, size; } Begun;

static void put_set(Begun *b, const Reflection *x)
{
    for (int k = 0; k < b->n; k++)
        if (same_set(x, &b->set[k])) return;
    ROOM(b->g->arena, b->set, b->n, b->size);
    b->set[b->n++] = *x;
}

// Each unknown of either sign in a product begins a set, by the numbers among its subscripts, and one of columns by each of the others.
static Look begin(const Expr *e, void *with)
{
    Begun *b = with;
    if (e->kind != EX_MUL) return LOOK;
    for (int i = 0; i < e->nargs; i++) {
        const Expr *ref = e->args[i];
        if (!is_factor(ref) || !is_free(ref->var)) continue;
        Reflection x = {.g = b->g};
        add(&x, ref);
        put_set(b, &x);
        for (int k = 0; k < ref->nargs; k++) {
            if (ref->args[k]->kind != EX_INDEX) continue;
            Reflection columns = {.g = b->g, .sign = b->sign, .n = 1, .turned = {{.var = ref->var, .column = k}}};
            put_set(b, &columns);
        }
    }
    return LOOK;
}

void find_reflections(Graph *g)
{
    if (g->by_em || g->by_nuts) return;
    Begun b = {.g = g, .sign = var_unique(g, "sign", VAR_ELEMENT)};
    b.sign->rank = 1;
    b.sign->dim[0] = ex_num(1);
    for (const Factor *f = g->factors; f; f = f->next)
        if (factor_counts_at(f, 0, false)) ex_find(f->log_density, begin, &b);
    Step **last = &g->steps;
    for (Step **at = &g->steps; *at; at = &(*at)->next)
        if ((*at)->when != WITH_GRADIENTS) last = &(*at)->next;
    for (int i = 0; i < b.n; i++) {
        Reflection *x = &b.set[i];
        if (x->sign) b.sign->dim[0] = x->turned[0].var->dim[x->turned[0].column];
        bool known = !find_set(x);
        for (int k = 0; k < i && !known; k++) known = same_set(x, &b.set[k]);
        Step *s = known ? NULL : reflection_step(x);
        if (!s) continue;
        s->next = *last;
        *last = s;
        last = &s->next;
    }
}
