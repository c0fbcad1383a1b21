// prover.c -- whether a whole number is at least 0, from loops, conditions and declared bounds.
//
//   before   N - i, within i in 1:N
//   after    at least 0: i is at most N
//
// Needs: expressions, whose constructors ask how long a range is: these two files call each other.     Gives: answers; `false` says that it
// is not known. Each fact is a whole number that is at least 0. What is asked is at least 0 if it is once an index or a bounded number in
// it stands at its end, or once a fact is taken away.
#include "prover.h"
#include "var.h"

enum { MOST_FACTS = 24, MOST_ENDS = 7, DEEP = 6, BY_FACTS = DEEP - 3, PATIENCE = 5000, REMEMBERED = 8192 };

typedef struct ProverFacts {
    int n, napart, looked;    // looked: how much was tried to answer the question
    bool extents;             // what data must satisfy holds
    Expr *fact[MOST_FACTS];   // each is at least 0
    Expr *apart[MOST_FACTS];  // of whole numbers, each is not 0
    unsigned question;        // in `failed`
} ProverFacts;

// What was not proved so deep by the facts of a question, at its number: ends taken in another order lead to the same again.
static struct {
    const Expr *e;
    unsigned question;
    int deep;
} failed[REMEMBERED];

static void add_fact(ProverFacts *f, Expr *e)
{
    if (f->n < MOST_FACTS && e->kind != EX_NUM) f->fact[f->n++] = e;
}

static bool is_gap(const Expr *e) { return ex_is_num(e, GM_MISSING_INT); }

// What a condition says: of whole numbers, that a < b leaves at least 1 between them. That a value is missing says nothing of its size: it
// is outside the declared bounds then, from which anything would follow.
static void facts_of_condition(ProverFacts *f, Expr *c, bool holds)
{
    if (f->n == MOST_FACTS && f->napart == MOST_FACTS) return;
    const double gap = c->nargs == 2 && ex_is_whole(c->args[0]) && ex_is_whole(c->args[1]) ? -1 : 0;
    if (ex_is_call(c, FN_NOT)) facts_of_condition(f, c->args[0], !holds);
    if (ex_is_call(c, holds ? FN_AND : FN_OR))
        for (int i = 0; i < 2; i++) facts_of_condition(f, c->args[i], holds);
    if (ex_is_call(c, FN_LT)) add_fact(f, holds ? ex_plus(ex_sub(c->args[1], c->args[0]), gap) : ex_sub(c->args[0], c->args[1]));
    if (ex_is_call(c, FN_LE)) add_fact(f, holds ? ex_sub(c->args[1], c->args[0]) : ex_plus(ex_sub(c->args[0], c->args[1]), gap));
    if (ex_is_call(c, holds ? FN_EQ : FN_NE) && !is_gap(c->args[0]) && !is_gap(c->args[1]))
        for (int i = 0; i < 2; i++) add_fact(f, ex_sub(c->args[i], c->args[1 - i]));
    if (ex_is_call(c, holds ? FN_NE : FN_EQ) && gap != 0 && !is_gap(c->args[0]) && !is_gap(c->args[1]) && f->napart < MOST_FACTS)
        f->apart[f->napart++] = ex_sub(c->args[0], c->args[1]);
}

static bool nonneg(ProverFacts *f, Expr *e, int deep);

// The next question, by other facts.
static void ask(ProverFacts *f)
{
    static unsigned questions;
    f->looked = 0;
    f->question = ++questions;
}

// Another question by the same facts: what failed fails again, unless it failed for want of patience.
static void ask_again(ProverFacts *f)
{
    if (f->looked > PATIENCE) ask(f);
    f->looked = 0;
}

// What is not 0 and at least 0 is at least 1, which may imply the same of another one.
static void facts_of_apart(ProverFacts *f)
{
    for (bool progress = f->napart > 0; progress;) {
        progress = false;
        for (int i = 0; i < f->napart; i++)
            for (int side = 0; side < 2; side++) {
                Expr *e = side ? ex_neg(f->apart[i]) : f->apart[i];
                ask(f);
                if (!nonneg(f, e, DEEP)) continue;
                add_fact(f, ex_plus(e, -1));
                f->apart[i--] = f->apart[--f->napart];
                progress = true;
                break;
            }
    }
    ask(f);
}

static ProverFacts facts_of(const Loops *l)
{
    ProverFacts f = {0};
    // within a loop its range is not empty
    for (int i = 0; i < l->n; i++) add_fact(&f, ex_sub(l->index[i]->hi, l->index[i]->lo));
    if (l->guard) facts_of_condition(&f, l->guard, true);
    facts_of_apart(&f);
    return f;
}

// The ends of what is known of x, which counts c times: lower ones if c > 0, else upper ones. *every: all of them must do; else one.
static int ends_of(const ProverFacts *f, const Expr *x, double c, Expr *end[MOST_ENDS], bool *every)
{
    int n = 0;
    *every = false;
    if (x->kind == EX_INDEX && x->index->lo) end[n++] = c > 0 ? x->index->lo : x->index->hi;
    if (x->kind == EX_INDEX && !x->index->lo && c > 0 && x->index->least >= 0) end[n++] = ex_num(x->index->least);
    if (f->extents && x->extent && c > 0) end[n++] = ex_num(0);
    if (x->kind == EX_REF && x->var->base == BASE_INT) {
        Var *v = x->var;
        Expr *bound = c > 0 ? v->lower : v->upper;
        if (bound && bound != x && (v->kind == VAR_DATA || (v->discrete && var_unknown(v) && !ex_unknown(bound)))) end[n++] = bound;
        if (v->kind == VAR_LET && v->rank == 0 && v->sites && !v->sites->next && !v->sites->plates.n && !v->sites->plates.guard)
            end[n++] = v->sites->value;
    }
    if (ex_is_call(x, FN_fmin) || ex_is_call(x, FN_fmax)) {
        end[n++] = x->args[0];
        end[n++] = x->args[1];
        *every = ex_is_call(x, FN_fmin) == (c > 0);
    }
    if (ex_is_call(x, FN_if_else)) {
        end[n++] = x->args[1];
        end[n++] = x->args[2];
        *every = true;
    }
    if (x->kind == EX_CALL && (function_rows[x->fn].traits & TRAIT_YES_NO)) end[n++] = ex_num(c > 0 ? 0 : 1);
    return n;
}

// Is e, of which c * x is the term t, at least 0, where x lies between the ends of what is known of it?
static bool nonneg_at_end(ProverFacts *f, Expr *e, Expr *t, double c, Expr *x, int deep)
{
    Expr *end[MOST_ENDS];
    bool every;
    int n = ends_of(f, x, c, end, &every);
    if (ex_is_call(x, FN_MOD) && nonneg(f, x->args[0], deep - 1)) end[n++] = c > 0 ? ex_num(0) : ex_plus(x->args[1], -1);
    Expr *rest = n ? ex_sub(e, t) : NULL;
    for (int i = 0; i < n; i++)
        if (nonneg(f, ex_add2(rest, ex_mul2(ex_num(c), end[i])), deep - 1) != every) return !every;
    return every && n > 0;
}

static int terms_of(const Expr *e) { return e->kind == EX_ADD ? e->nargs : 1; }

// Term i of e, as *c times the number that is returned.
static Expr *term(Expr *e, int i, double *c)
{
    Expr *t = e->kind == EX_ADD ? e->args[i] : e;
    const bool times = t->kind == EX_MUL && t->nargs == 2 && t->args[0]->kind == EX_NUM;
    *c = times ? t->args[0]->number : 1;
    return times ? t->args[1] : t;
}

// Whether no number is reached in `deep` steps: each puts a number in the place of one term, or one term has no end. Sums of many bounded
// numbers are tried in vain else, for seconds.
static bool beyond_reach(const ProverFacts *f, Expr *e, int deep)
{
    int terms = 0;
    bool endless = false;
    if (f->extents || (f->n && deep > BY_FACTS)) return false;
    for (int i = 0; i < terms_of(e); i++) {
        double c;
        Expr *end[MOST_ENDS], *x = term(e, i, &c);
        if (x->kind == EX_NUM) continue;
        bool every;
        const int n = ends_of(f, x, c, end, &every);
        if (ex_is_call(x, FN_MOD)) return false;
        for (int k = 0; k < n; k++)
            if (end[k]->kind != EX_NUM) return false;
        terms++;
        endless |= n == 0;
    }
    return terms > deep || endless;
}

// Is e at least 0 once one of its numbers stands at an end, or once a fact is taken away?
static bool nonneg_by_facts(ProverFacts *f, Expr *e, int deep)
{
    if (beyond_reach(f, e, deep)) return false;
    for (int i = terms_of(e) - 1; i >= 0; i--) {  // indices come last
        double c;
        Expr *t = e->kind == EX_ADD ? e->args[i] : e, *x = term(e, i, &c);
        if (x->kind != EX_NUM && nonneg_at_end(f, e, t, c, x, deep)) return true;
    }
    for (int i = 0; i < f->n && deep > BY_FACTS; i++)
        if (nonneg(f, ex_sub(e, f->fact[i]), deep - 1)) return true;
    return false;
}

// Is e, a whole number, provably at least 0?
static bool nonneg(ProverFacts *f, Expr *e, int deep)
{
    if (e->kind == EX_NUM) return e->number >= 0;
    if (f->extents && e->extent) return true;
    const int at = e->id % REMEMBERED;
    if (deep == 0 || (failed[at].e == e && failed[at].question == f->question && failed[at].deep >= deep) || f->looked++ > PATIENCE)
        return false;
    if (nonneg_by_facts(f, e, deep)) return true;
    failed[at].e = e;
    failed[at].question = f->question;
    failed[at].deep = deep;
    return false;
}

bool prove_nonneg(const Loops *l, Expr *e)
{
    if (e->kind == EX_NUM) return e->number >= 0;
    ProverFacts f = facts_of(&(Loops){0});
    if (l->guard && nonneg(&f, e, DEEP)) return true;  // whatever the condition, which may have hundreds of parts
    f = facts_of(l);
    return nonneg(&f, e, DEEP);
}

bool prove_length(Expr *n)
{
    ProverFacts f = {.extents = true};
    ask(&f);
    return nonneg(&f, n, DEEP);
}

bool prove_never(const Loops *l)
{
    ProverFacts f = facts_of(l);
    for (int i = 0; i < f.n; i++, ask_again(&f))
        if (nonneg(&f, ex_sub(ex_num(-1), f.fact[i]), DEEP)) return true;
    return false;
}
