// questions.c -- what an expression says of itself: its sign, whether it may vanish or diverge, what it mentions. Each part that is shared
// is looked at once.
#include <math.h>
#include "questions.h"
#include "var.h"

static struct {
    int level;
    uint64_t walks;
    bool settled;
} walking;  // level: walks under way

void questions_start(void)
{
    walking.level = 0;
    walking.walks = 0;
    walking.settled = false;
}

// A walk over an expression visits what is shared once: true the first time that it comes to e.
static bool first_visit(const Expr *e, uint64_t walk)
{
    if (e->seen == walk) return false;
    ((Expr *)e)->seen = walk;
    return true;
}

// ---- numbers ----

bool ex_is_num(const Expr *e, double v) { return e->kind == EX_NUM && e->number == v; }

bool ex_is_whole(const Expr *e)
{
    if (e->kind == EX_NUM) return e->number == floor(e->number);
    if (e->kind == EX_REF) return e->var->base == BASE_INT;
    for (int i = 0; i < e->nargs && (e->kind == EX_ADD || e->kind == EX_MUL); i++)
        if (!ex_is_whole(e->args[i])) return false;
    return e->kind == EX_ADD || e->kind == EX_MUL || e->kind == EX_INDEX;
}

// 1 - p, 1 - 0.3*p - q: a number less multiples of continuous variables, none of which takes away more than its upper bound times its
// coefficient.
static bool leaves_some(const Expr *e)
{
    if (e->args[0]->kind != EX_NUM) return false;
    double least = e->args[0]->number;
    for (int i = 1; i < e->nargs; i++) {
        const Expr *t = e->args[i];
        const bool times = t->kind == EX_MUL && t->nargs == 2 && t->args[0]->kind == EX_NUM;
        const double c = times ? t->args[0]->number : 1;
        const Var *v = (times ? t->args[1] : t)->var;
        if ((times ? t->args[1] : t)->kind != EX_REF || v->discrete || v->kind == VAR_DATA) return false;
        least += c * (c > 0 ? v->lower_number : v->upper_number);
    }
    return least >= 0;
}

// k - 1 of an index k from 1.
static bool from_first(const Expr *e)
{
    return e->nargs == 2 && e->args[0]->kind == EX_NUM && e->args[1]->kind == EX_INDEX &&
           e->args[0]->number + e->args[1]->index->least >= 0;
}

// All parts that it looks at must be positive: what this walk has seen is, or the answer is no already.
static bool positive(const Expr *e, uint64_t walk)
{
    if (e->nargs && e->kind != EX_REF && !first_visit(e, walk)) return true;
    switch (e->kind) {
    case EX_NUM: return e->number >= 0;
    case EX_REF: return e->var->lower_number >= 0;
    case EX_INDEX: return e->index->least >= 0;
    case EX_ADD:
        if (leaves_some(e) || from_first(e)) return true;
        for (int i = 0; i < e->nargs; i++)
            if (!positive(e->args[i], walk)) return false;
        return true;
    case EX_MUL:
        for (int i = 0; i < e->nargs; i++)
            if (!positive(e->args[i], walk)) return false;
        return true;
    case EX_POW: return fmod(e->number, 2) == 0 || positive(e->args[0], walk);
    case EX_CALL: return e->fn == FN_pow ? positive(e->args[0], walk) : sign_not_negative(function_rows[e->fn].sign);
    case EX_REDUCE: return positive(e->args[2], walk);
    case EX_ARRAY: return positive(e->args[1], walk);
    case EX_AT: return false;
    }
    return false;
}

bool ex_positive(const Expr *e) { return positive(e, ++walking.walks); }

// ---- what it is made of ----

static bool test_unknown(const Var *v, void *with)
{
    (void)with;
    return var_unknown(v) || v->kind == VAR_PART || v->kind == VAR_ELEMENT || v->kind == VAR_SERIES || v->kind == VAR_PREDICTED;
}
bool ex_unknown(const Expr *e) { return ex_any_var(e, test_unknown, NULL); }

static bool test_not_data(const Var *v, void *with)
{
    (void)with;
    return v->kind != VAR_DATA && v->kind != VAR_LET;
}
bool ex_data_only(const Expr *e) { return !ex_any_var(e, test_not_data, NULL); }

static bool test_countable(const Var *v, void *with)
{
    (void)with;
    return v->base == BASE_INT || v->discrete || v->kind == VAR_SUM || v->kind == VAR_DATA || v->kind == VAR_LET;
}

static bool test_continuous(const Var *v, void *with) { return !test_countable(v, with); }

static bool may_vanish(const Expr *e, uint64_t walk)
{
    if (!first_visit(e, walk)) return false;  // ex_any_var has walks of its own
    switch (e->kind) {
    case EX_NUM: return e->number == 0;
    case EX_INDEX: return e->index->least < 1;
    case EX_POW: return e->number > 0 && may_vanish(e->args[0], walk);
    case EX_CALL:
        if (sign_positive(function_rows[e->fn].sign) || (function_rows[e->fn].traits & TRAIT_APART)) return false;
        if (e->fn == FN_if_else) return may_vanish(e->args[1], walk) || may_vanish(e->args[2], walk);
        return ex_any_var(e, test_countable, NULL);
    case EX_REDUCE: return may_vanish(e->args[2], walk);
    case EX_ADD: {
        const bool begins = e->args[0]->kind == EX_NUM && e->args[0]->number > 0;
        if (e->indices && !(begins && ex_positive(e))) return true;  // i - 1
    }                                                                // fall through
    case EX_MUL:
        for (int i = 0; i < e->nargs; i++)
            if (e->args[i]->kind != EX_NUM && may_vanish(e->args[i], walk)) return true;
        return false;
    case EX_REF: return test_countable(e->var, NULL) && e->var->lower_number <= 0;
    case EX_ARRAY:
    case EX_AT: break;
    }
    return false;
}

bool ex_may_vanish(const Expr *e) { return may_vanish(e, ++walking.walks); }

static Look test_maybe_empty(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REDUCE && e->fn == FN_sum &&
                   !(e->args[0]->kind == EX_NUM && e->args[1]->kind == EX_NUM && e->args[1]->number >= e->args[0]->number)
               ? FOUND
               : LOOK;
}

bool ex_above_zero(const Expr *e) { return ex_positive(e) && !ex_may_vanish(e) && !ex_find(e, test_maybe_empty, NULL); }

// Whether e can be exactly 1, as far as what is not continuous decides.
static bool may_be_one(const Expr *e)
{
    if (e->size > MAX_TREE) return true;
    switch (e->kind) {
    case EX_NUM: return e->number == 1;
    case EX_REF: return test_countable(e->var, NULL);
    case EX_MUL:
    case EX_POW:
        for (int i = 0; i < e->nargs; i++)
            if (e->args[i]->kind != EX_NUM && !may_be_one(e->args[i])) return false;
        return true;
    case EX_CALL:
        if (e->fn == FN_if_else) return may_be_one(e->args[1]) || may_be_one(e->args[2]);
        return ex_any_var(e, test_countable, NULL) && !ex_any_var(e, test_continuous, NULL);
    case EX_ADD: return !ex_any_var(e, test_continuous, NULL);
    case EX_REDUCE: return may_be_one(e->args[2]);
    case EX_INDEX:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return true;
}

// `likely`: with a positive probability, not only where a continuous value falls on a point or is rounded to it.
static bool diverges_anew(const Expr *e, bool likely, uint64_t walk);

static bool diverges(const Expr *e, bool likely, uint64_t walk)
{
    if (!walking.settled) return diverges_anew(e, likely, walk);
    if (!e->diverges[likely]) ((Expr *)e)->diverges[likely] = diverges_anew(e, likely, walk) ? 1 : 2;
    return e->diverges[likely] == 1;
}

// Whether times*e may rise without end, or be undefined, not only fall: log(p) + 2*log(q) falls. Parts are looked at more than once: only
// where answers are kept.
static bool rises(const Expr *e, double times, bool likely, uint64_t walk)
{
    if (!diverges(e, likely, walk)) return false;
    switch (e->kind) {
    case EX_ADD:
        for (int i = 0; i < e->nargs; i++)
            if (rises(e->args[i], times, likely, walk)) return true;
        return false;
    case EX_MUL: return e->nargs != 2 || e->args[0]->kind != EX_NUM || rises(e->args[1], times * e->args[0]->number, likely, walk);
    case EX_CALL: {
        if (e->fn == FN_if_else) return rises(e->args[1], times, likely, walk) || rises(e->args[2], times, likely, walk);
        bool falls = times > 0 && (e->fn == FN_log || e->fn == FN_log1p || e->fn == FN_log1m);
        for (int i = 0; i < e->nargs; i++) falls &= !diverges(e->args[i], likely, walk);
        return !falls;
    }
    case EX_REDUCE: return (e->fn != FN_sum && e->fn != FN_log_sum_exp) || rises(e->args[2], times, likely, walk);
    case EX_NUM:
    case EX_REF:
    case EX_POW:
    case EX_INDEX:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return true;
}

static bool diverges_anew(const Expr *e, bool likely, uint64_t walk)
{
    if (!walking.settled && !first_visit(e, walk)) return false;
    switch (e->kind) {
    case EX_NUM: return !isfinite(e->number);
    case EX_REF:  // a definition is as finite as its right sides
        if (e->var->lowered.computed) return diverges(e->var->lowered.computed, likely, walk);
        for (const Site *t = e->var->kind == VAR_LET && !e->var->series ? e->var->sites : NULL; t; t = t->next)
            if (t->value && diverges(t->value, likely, walk)) return true;
        return false;
    case EX_CALL:
        if (function_rows[e->fn].traits & TRAIT_LOG_END) {
            if (!likely || diverges(e->args[0], likely, walk)) return true;
            return e->fn == FN_log     ? ex_may_vanish(e->args[0])
                   : e->fn == FN_log1m ? may_be_one(e->args[0])
                                       : ex_any_var(e, test_countable, NULL) && !ex_any_var(e, test_continuous, NULL);
        }
        if (function_rows[e->fn].sign == SIGN_UNIT || (function_rows[e->fn].traits & TRAIT_BOUNDED)) return false;
        if (e->fn == FN_exp && walking.settled) return rises(e->args[0], 1, likely, walk);
        for (int i = e->fn == FN_if_else; i < e->nargs; i++)
            if (diverges(e->args[i], likely, walk)) return true;
        return false;
    case EX_ADD:
    case EX_MUL:
    case EX_POW:
        for (int i = 0; i < e->nargs; i++)
            if (diverges(e->args[i], likely, walk)) return true;
        return false;
    case EX_REDUCE: return diverges(e->args[2], likely, walk);
    case EX_INDEX:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return false;
}

bool ex_may_diverge(const Expr *e) { return diverges(e, false, ++walking.walks); }
bool ex_has_pole(const Expr *e) { return diverges(e, true, ++walking.walks); }

// Ends that are passed, and matrices that are not positive definite.
static Look test_no_number(const Expr *e, void *with)
{
    (void)with;
    if (e->kind == EX_REF && e->var->lowered.computed) return ex_find(e->var->lowered.computed, test_no_number, NULL) ? FOUND : LOOK;
    if (e->kind != EX_CALL || ex_data_only(e)) return LOOK;
    return e->fn == FN_WITHIN || e->fn == FN_inverse || e->fn == FN_inverse_spd || e->fn == FN_log_determinant ||
                   e->fn == FN_cholesky_decompose
               ? FOUND
               : LOOK;
}

static Look test_no_count(const Expr *e, void *with)
{
    (void)with;
    switch (e->kind) {
    case EX_NUM: return SKIP;
    case EX_REF: return e->var->kind == VAR_DATA && e->var->base == BASE_INT && e->nargs == 0 ? SKIP : FOUND;
    case EX_CALL: return e->fn == FN_fmin ? LOOK : FOUND;
    case EX_INDEX:
    case EX_ADD:
    case EX_MUL:
    case EX_POW:
    case EX_REDUCE:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return FOUND;
}

// A number of rows that may be none, fmin(1, N) too: what is the same for all rows counts so often.
static bool counts_rows(const Expr *e) { return e->kind != EX_NUM && !ex_find(e, test_no_count, NULL) && ex_may_vanish(e); }

bool ex_absorbed(const Expr *product, int k)
{
    for (int i = 0; i < product->nargs; i++)
        if (i != k && counts_rows(product->args[i]) && ex_find(product->args[k], test_no_number, NULL)) return true;
    if (!ex_may_diverge(product->args[k])) return false;
    for (int i = 0; i < product->nargs; i++)
        if (i != k && ex_may_vanish(product->args[i])) return true;
    return false;
}

static bool mentions(const Expr *e, const Var *v, uint64_t walk)
{
    if (!(e->vars >> (v->id & 63) & 1)) return false;
    if (e->var == v) return true;
    if (!first_visit(e, walk)) return false;
    for (int i = 0; i < e->nargs; i++)
        if (mentions(e->args[i], v, walk)) return true;
    return false;
}

bool ex_mentions(const Expr *e, const Var *v) { return mentions(e, v, ++walking.walks); }

static void references(Expr *e, const Var *v, void (*f)(Expr *, void *), void *with, uint64_t walk)
{
    if (!(e->vars >> (v->id & 63) & 1) || !first_visit(e, walk)) return;
    if (e->var == v) f(e, with);
    for (int i = 0; i < e->nargs; i++) references(e->args[i], v, f, with, walk);
}

void ex_references(Expr *e, const Var *v, void (*f)(Expr *, void *), void *with) { references(e, v, f, with, ++walking.walks); }

static bool mentions_index(const Expr *e, const Index *i, uint64_t walk)
{
    if (!(e->indices >> (i->id & 63) & 1)) return false;
    if (e->kind == EX_INDEX) return e->index == i;
    if (!first_visit(e, walk)) return false;
    for (int k = 0; k < e->nargs; k++)
        if (mentions_index(e->args[k], i, walk)) return true;
    return false;
}

bool ex_mentions_index(const Expr *e, const Index *i) { return mentions_index(e, i, ++walking.walks); }

// The test may start walks of its own: what these have visited is looked at again.
static bool any_var(const Expr *e, bool (*test)(const Var *, void *), void *with, int level, uint64_t walk)
{
    if (!e->vars || e->met[level] == walk) return false;
    ((Expr *)e)->met[level] = walk;
    if (e->var && test(e->var, with)) return true;
    for (int i = 0; i < e->nargs; i++)
        if (any_var(e->args[i], test, with, level, walk)) return true;
    return false;
}

static int deepest(void) { return walking.level < 3 ? walking.level : 2; }

bool ex_any_var(const Expr *e, bool (*test)(const Var *, void *), void *with)
{
    const int level = deepest();
    walking.level++;
    const bool found = any_var(e, test, with, level, ++walking.walks);
    walking.level--;
    return found;
}

static bool find(const Expr *e, Look (*test)(const Expr *, void *), void *with, int level, uint64_t walk)
{
    if (e->met[level] == walk) return false;
    ((Expr *)e)->met[level] = walk;
    const Look here = test(e, with);
    if (here != LOOK) return here == FOUND;
    for (int i = 0; i < e->nargs; i++)
        if (find(e->args[i], test, with, level, walk)) return true;
    return false;
}

bool ex_find(const Expr *e, Look (*test)(const Expr *, void *), void *with)
{
    const int level = deepest();
    walking.level++;
    const bool found = find(e, test, with, level, ++walking.walks);
    walking.level--;
    return found;
}

void ex_settle(void) { walking.settled = true; }

uint64_t ex_walk(void) { return ++walking.walks; }

// ---- which way round a difference is read ----

static bool is_minus(const Expr *term) { return term->kind == EX_MUL && term->args[0]->kind == EX_NUM && term->args[0]->number < 0; }

// What a reader looks at first: the term with the most subscripts, of these an element of data.
static int weight_of(const Expr *term)
{
    const Expr *only = is_minus(term) && term->nargs == 2 && ex_is_num(term->args[0], -1) ? term->args[1] : term;
    int most = only->kind == EX_REF ? only->nargs : 0;
    for (int i = 0; only->kind == EX_MUL && i < only->nargs; i++)
        if (only->args[i]->kind == EX_REF && only->args[i]->nargs > most) most = only->args[i]->nargs;
    return 2 * most + (only->kind == EX_REF && only->nargs && !var_unknown(only->var));
}

bool ex_backward(const Expr *e)
{
    if (e->kind != EX_ADD || e->args[0]->kind == EX_NUM) return false;
    int most[2] = {0, 0};  // of the terms without a minus, of those with one
    for (int i = 0; i < e->nargs; i++) {
        int *of = &most[is_minus(e->args[i])];
        if (weight_of(e->args[i]) > *of) *of = weight_of(e->args[i]);
    }
    return most[1] > most[0];
}

// Numbers without subscripts, at least half of them with a minus.
static bool turns_alike(const Expr *e)
{
    int minus = 0;
    for (int i = 0; i < e->nargs && e->kind == EX_ADD; i++) {
        if (e->args[i]->kind == EX_NUM || weight_of(e->args[i])) return false;
        minus += is_minus(e->args[i]);
    }
    return minus > 0 && 2 * minus >= e->nargs;
}

int ex_turned(const Expr *product, bool *turn, bool (*fixed)(const Expr *, const void *), const void *with)
{
    int n = 0, last = 0;
    bool minus = false;
    for (int i = 0; i < product->nargs; i++) {
        const Expr *f = product->args[i];
        minus |= f->kind == EX_NUM && f->number < 0;
        turn[i] = ex_backward(f) && !(fixed && fixed(f, with));
        if (!turn[i]) continue;
        n++;
        last = i;
    }
    for (int i = 0; minus && n == 0 && i < product->nargs; i++)
        if (turns_alike(product->args[i]) && !(fixed && fixed(product->args[i], with))) turn[i] = n++ == 0;
    if (n % 2 && !minus) {  // a sign that nothing takes
        turn[last] = false;
        n--;
    }
    return n;
}
