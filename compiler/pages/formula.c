// formula.c -- formulas made of expressions.
//
//   before   -1/2*(-mu + theta[k])^2/tau^2                 after   the fraction -(theta_k - mu)^2 over 2 tau^2
//
// Numbers and negative powers make one fraction, sums begin with what is positive, sums over loops stand last. Arrays and choices that
// gmc made of a list are written as that list. Needs: the graph, whose expressions these are. Keeps: the graph.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "formula.h"

enum { MOST_PARTS = 1500, MOST_LISTED = 8 };  // of a formula; of a list that is written out
enum { LEVEL_ANY, LEVEL_SUM, LEVEL_PRODUCT, LEVEL_ATOM };

// ---- parts ----

static Formula *node(Notation *t, FormulaKind kind, int n)
{
    Formula *f = NEW(t->arena, Formula);
    *f = (Formula){.kind = kind, .n = n, .kid = n ? NEW_N(t->arena, const Formula *, n) : NULL};
    return f;
}

static const Formula *leaf(Notation *t, FormulaKind kind, const char *text)
{
    Formula *f = node(t, kind, 0);
    f->text = text;
    return f;
}

static const Formula *of_two(Notation *t, FormulaKind kind, const Formula *a, const Formula *b)
{
    Formula *f = node(t, kind, 2);
    f->kid[0] = a;
    f->kid[1] = b;
    return f;
}

const Formula *formula_sign(Notation *t, SignId sign)
{
    Formula *f = node(t, FORMULA_SIGN, 0);
    f->sign = sign;
    return f;
}

const Formula *formula_word(Notation *t, const char *text) { return leaf(t, FORMULA_WORD, text); }

const Formula *formula_letter(Notation *t, const char *text) { return leaf(t, FORMULA_INDEX, text); }

const Formula *formula_prose(Notation *t, const char *text) { return leaf(t, FORMULA_PROSE, text); }

static const Formula *symbol(Notation *t, const char *name, bool marked)
{
    Formula *f = node(t, FORMULA_SYMBOL, 0);
    const SplitName split = split_name(t->arena, name);
    f->text = name;
    f->split = arena_copy(t->arena, &split, sizeof split);
    f->marked = marked;
    return f;
}

const Formula *formula_symbol(Notation *t, const Var *v) { return symbol(t, v->name, true); }

const Formula *formula_fenced(Notation *t, char open, const Formula *inner)
{
    Formula *f = node(t, FORMULA_FENCED, 1);
    f->open = open;
    f->kid[0] = inner;
    return f;
}

const Formula *formula_power(Notation *t, const Formula *base, const Formula *exponent) { return of_two(t, FORMULA_POWER, base, exponent); }

const Formula *formula_row(Notation *t, int n, const Formula *const *kids)
{
    if (n == 1) return kids[0];
    Formula *f = node(t, FORMULA_ROW, n);
    f->n = 0;
    for (int i = 0; i < n; i++)
        if (kids[i]) f->kid[f->n++] = kids[i];
    return f;
}

const Formula *formula_list(Notation *t, int n, const Formula *const *kids)
{
    Formula *f = node(t, FORMULA_ROW, n ? 2 * n - 1 : 0);
    for (int i = 0; i < n; i++) {
        if (i) f->kid[2 * i - 1] = formula_sign(t, SIGN_COMMA);
        f->kid[2 * i] = kids[i];
    }
    return f;
}

const Formula *formula_call(Notation *t, const char *name, int n, const Formula *const *kids)
{
    return ROW(t, formula_word(t, name), formula_fenced(t, '(', formula_list(t, n, kids)));
}

static const Formula *indexed(Notation *t, const Formula *base, int n, const Formula *const *below)
{
    if (!n) return base;
    Formula *f = node(t, FORMULA_INDEXED, n + 1);
    f->kid[0] = base;
    for (int i = 0; i < n; i++) f->kid[i + 1] = below[i];
    return f;
}

// ---- names of indices ----

typedef struct IndexName {
    const Index *index;
    const Expr *lo, *hi;
    const char *name;
    int open;    // so many ranges of it are around what is being written
    bool fixed;  // the name is its alone
} IndexName;

Notation notation_new(Graph *g) { return (Notation){.arena = g->arena, .g = g}; }

static bool names_a_variable(const Graph *g, const char *name)
{
    for (int i = 0; i < g->nvars; i++)
        if (strcmp(g->vars[i]->name, name) == 0) return true;
    return false;
}

static bool is_free(const Notation *t, const char *name, const Expr *lo, const Expr *hi)
{
    for (int i = 0; i < t->n; i++) {
        const IndexName *s = &t->names[i];
        if (strcmp(s->name, name) == 0 && (s->fixed || s->open || s->lo != lo || s->hi != hi)) return false;
    }
    return !names_a_variable(t->g, name);
}

static IndexName *name_new(Notation *t, const Index *i, const Expr *lo, const Expr *hi, const char *name)
{
    ROOM(t->arena, t->names, t->n, t->size);
    t->names[t->n] = (IndexName){.index = i, .lo = lo, .hi = hi, .name = name};
    return &t->names[t->n++];
}

void notation_fix(Notation *t, const Index *i, const char *name)
{
    if (is_free(t, name, NULL, NULL)) name_new(t, i, i->lo, i->hi, name)->fixed = true;
}

static bool is_open(const Notation *t, const char *name)
{
    for (int k = 0; k < t->n; k++)
        if (t->names[k].open && strcmp(t->names[k].name, name) == 0) return true;
    return false;
}

static IndexName *name_of(Notation *t, const Index *i, const Expr *lo, const Expr *hi)
{
    static const char letters[] = "ijklmnrstuv";
    for (int k = t->n - 1; k >= 0; k--)
        if (t->names[k].index == i && (t->names[k].open || t->names[k].fixed)) return &t->names[k];
    for (int k = t->n - 1; k >= 0; k--)
        if (t->names[k].index == i && t->names[k].lo == lo && t->names[k].hi == hi && !is_open(t, t->names[k].name)) return &t->names[k];
    size_t n = strlen(i->name);
    while (n > 1 && i->name[n - 1] >= '0' && i->name[n - 1] <= '9') n--;
    const char *name = arena_printf(t->arena, "%.*s", (int)n, i->name);
    for (int k = 0; !is_free(t, name, lo, hi) && letters[k]; k++) name = arena_printf(t->arena, "%c", letters[k]);
    for (int k = 2; !is_free(t, name, lo, hi); k++) name = arena_printf(t->arena, "%.*s%d", (int)n, i->name, k);
    return name_new(t, i, lo, hi, name);
}

void notation_open(Notation *t, const Loops *over)
{
    for (int k = 0; k < over->n; k++) name_of(t, over->index[k], over->index[k]->lo, over->index[k]->hi)->open++;
}

void notation_close(Notation *t, const Loops *over)
{
    for (int k = 0; k < over->n; k++) name_of(t, over->index[k], over->index[k]->lo, over->index[k]->hi)->open--;
}

// ---- expressions ----

static const Formula *write(Notation *t, const Expr *e, int outer);

static const Formula *fence_unless(Notation *t, bool as_it_is, const Formula *f) { return as_it_is ? f : formula_fenced(t, '(', f); }

static const Formula *number_text(Notation *t, const char *text)
{
    const char *e = strchr(text, 'e');
    if (strcmp(text, "inf") == 0) return formula_sign(t, SIGN_INFINITE);
    if (!e) return leaf(t, FORMULA_NUMBER, text);
    const Formula *power =
        formula_power(t, leaf(t, FORMULA_NUMBER, "10"), leaf(t, FORMULA_NUMBER, arena_printf(t->arena, "%d", atoi(e + 1))));
    if (e - text == 1 && *text == '1') return power;
    return ROW(t, leaf(t, FORMULA_NUMBER, arena_printf(t->arena, "%.*s", (int)(e - text), text)), formula_sign(t, SIGN_CROSS), power);
}

// The numerator and the denominator of a positive number; NULL: 1.
static void fraction_of(Notation *t, double v, const Formula **above, const Formula **below)
{
    const char *text = ex_text(t->arena, ex_num(v)), *slash = strchr(text, '/');
    const char *numerator = slash ? arena_printf(t->arena, "%.*s", (int)(slash - text), text) : text;
    *above = strcmp(numerator, "1") == 0 ? NULL : number_text(t, numerator);
    *below = slash ? leaf(t, FORMULA_NUMBER, slash + 1) : NULL;
}

// A computed number by what it was computed of.
static Expr *by_formula(Expr *e) { return e->formula ? e->formula : e; }

static bool is_negative(const Expr *e)
{
    return (e->kind == EX_NUM && e->number < 0) || (e->kind == EX_MUL && e->args[0]->kind == EX_NUM && e->args[0]->number < 0);
}

static const Formula *write_sum(Notation *t, const Expr *e)
{
    const Expr *number = e->args[0]->formula;
    const int spread = number && number->kind == EX_ADD ? number->nargs : 1;  // terms of a formula are terms of the sum
    Formula *f = node(t, FORMULA_ROW, 2 * (e->nargs + spread - 1));
    f->n = 0;
    for (int negative = 0; negative < 2; negative++)
        for (int i = 0; i < e->nargs + spread - 1; i++) {
            Expr *term = i >= spread ? e->args[i - spread + 1] : spread > 1 ? number->args[i] : by_formula(e->args[0]);
            if (is_negative(term) != negative) continue;
            const bool first = f->n == 0;
            if (negative) f->kid[f->n++] = formula_sign(t, first ? SIGN_NEGATIVE : SIGN_MINUS);
            else if (!first) f->kid[f->n++] = formula_sign(t, SIGN_PLUS);
            f->kid[f->n++] = write(t, negative ? ex_neg(term) : term, negative ? LEVEL_PRODUCT : LEVEL_SUM);
        }
    return f;
}

static bool is_big(const Expr *e) { return e->kind == EX_REDUCE || (e->kind == EX_REF && e->var->spelled && e->var->spelled->loops.n); }

typedef struct Factors {
    int n, size;
    const Formula **of;
} Factors;

static void put(Notation *t, Factors *l, const Formula *f)
{
    if (!f) return;
    ROOM(t->arena, l->of, l->n, l->size);
    l->of[l->n++] = f;
}

static const Formula *side_by_side(Notation *t, const Factors *l)
{
    Formula *f = node(t, FORMULA_ROW, l->n ? 2 * l->n - 1 : 0);
    for (int i = 0; i < l->n; i++) {
        if (i) f->kid[2 * i - 1] = formula_sign(t, SIGN_TIMES);
        f->kid[2 * i] = l->of[i];
    }
    return l->n == 1 ? l->of[0] : f;
}

// Whether a factor would need parentheses among others: they come last.
static bool is_long(const Expr *e) { return e->kind == EX_ADD; }

static const Formula *write_product(Notation *t, const Expr *e)
{
    Factors above = {0}, below = {0}, big = {0};
    int nabove = 0, nbelow = 0;
    bool negative = false;
    for (int i = 0; i < e->nargs; i++) {
        const Expr *a = by_formula(e->args[i]);
        if (a->kind == EX_NUM) {
            const Formula *n, *d;
            negative = a->number < 0;
            fraction_of(t, negative ? -a->number : a->number, &n, &d);
            put(t, &above, n);
            put(t, &below, d);
            nabove += n != NULL;
            nbelow += d != NULL;
        } else if (a->kind == EX_POW && a->number < 0) nbelow++;
        else nabove += !is_big(a);
    }
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < e->nargs; i++) {
            Expr *a = by_formula(e->args[i]);
            const bool divides = a->kind == EX_POW && a->number < 0;
            if (a->kind == EX_NUM) continue;
            if (divides) a = ex_pow(a, -1);
            if (is_long(a) != last) continue;
            if (divides) put(t, &below, write(t, a, nbelow > 1 ? LEVEL_PRODUCT : LEVEL_ANY));
            else if (is_big(a)) {
                if (big.n) big.of[big.n - 1] = formula_fenced(t, '(', big.of[big.n - 1]);
                put(t, &big, write(t, a, LEVEL_PRODUCT));
            } else put(t, &above, write(t, a, nabove > 1 || big.n || !nbelow ? LEVEL_PRODUCT : LEVEL_ANY));
        }
    if (below.n) {
        if (!above.n) put(t, &above, leaf(t, FORMULA_NUMBER, "1"));
        const Formula *fraction = of_two(t, FORMULA_FRACTION, side_by_side(t, &above), side_by_side(t, &below));
        above = (Factors){0};
        put(t, &above, fraction);
    }
    for (int i = 0; i < big.n; i++) put(t, &above, big.of[i]);
    const Formula *f = side_by_side(t, &above);
    return negative ? ROW(t, formula_sign(t, SIGN_NEGATIVE), f) : f;
}

static SignId sign_of(FunctionId fn)
{
    switch ((int)fn) {
    case FN_NE: return SIGN_NOT_EQUAL;
    case FN_LT:
    case FN_IN_TAIL: return SIGN_LESS;
    case FN_LE: return SIGN_AT_MOST;
    case FN_AND: return SIGN_AND;
    case FN_OR: return SIGN_OR;
    default: return SIGN_EQUALS;
    }
}

static bool is_condition(const Expr *e)
{
    return e->kind == EX_CALL && ((function_rows[e->fn].infix && e->fn != FN_MOD) || e->fn == FN_NOT || e->fn == FN_MISSING);
}

const Formula *formula_condition(Notation *t, const Expr *e)
{
    if (!is_condition(e)) return write(t, e, LEVEL_ANY);
    if (e->fn == FN_NOT) return ROW(t, formula_sign(t, SIGN_NOT), formula_fenced(t, '(', formula_condition(t, e->args[0])));
    if (e->fn == FN_MISSING) return ROW(t, write(t, e->args[0], LEVEL_ATOM), formula_prose(t, " is missing"));
    const Formula *side[2];
    const Expr *first = e->args[0];
    // 1 + k <= T is k < T
    const bool below =
        e->fn == FN_LE && first->kind == EX_ADD && ex_is_num(first->args[0], 1) && ex_is_whole(first) && ex_is_whole(e->args[1]);
    if (below) first = ex_plus((Expr *)first, -1);
    for (int i = 0; i < 2; i++) {
        const Expr *a = i ? e->args[1] : first;
        side[i] = is_condition(a) ? fence_unless(t, e->fn == a->fn || e->fn == FN_AND, formula_condition(t, a)) : write(t, a, LEVEL_SUM);
    }
    return ROW(t, side[0], formula_sign(t, below ? SIGN_LESS : sign_of(e->fn)), side[1]);
}

// ---- lists that the model has written out ----

// A choice by the value of an index among 1, 2, ...: of what, and how many; 0: it is none.
static int choice_among(const Expr *e, const Index **by)
{
    int n = 0;
    for (*by = NULL; ex_is_call(e, FN_if_else); e = e->args[2], n++) {
        const Expr *c = e->args[0];
        if (!ex_is_call(c, FN_EQ) || c->nargs != 2) break;
        const Expr *i = c->args[0]->kind == EX_INDEX ? c->args[0] : c->args[1], *k = i == c->args[0] ? c->args[1] : c->args[0];
        if (i->kind != EX_INDEX || !ex_is_num(k, n + 1) || (*by && *by != i->index)) break;
        *by = i->index;
    }
    return n && n < MOST_LISTED ? n + 1 : 0;
}

static const Formula *bracketed(Notation *t, const Factors *items) { return formula_fenced(t, '[', formula_list(t, items->n, items->of)); }

// Whether the index has n values: then a choice among n is a list of them.
static bool has_values(Notation *t, const Index *i, int n)
{
    for (int k = t->n - 1; k >= 0; k--)
        if (t->names[k].index == i && (t->names[k].open || t->names[k].fixed)) return ex_is_num(t->names[k].hi, n);
    return i->hi && ex_is_num(i->hi, n);
}

// [a, b][i]; NULL: e is no such choice. Of choices within each other, [[a, b], [c, d]][i, j].
static const Formula *write_choice(Notation *t, const Expr *e)
{
    const Index *by, *inner = NULL;
    const int n = choice_among(e, &by);
    if (!n || !has_values(t, by, n)) return NULL;
    Factors items = {0};
    bool nested = true;
    int columns = 0;
    const Expr *item[MOST_LISTED];
    for (int k = 0; k < n; k++) {
        item[k] = k + 1 < n ? e->args[1] : e;
        if (k + 1 < n) e = e->args[2];
        const Index *own;
        const int m = choice_among(item[k], &own);
        nested &= m > 0 && (!inner || (own == inner && m == columns)) && own != by;
        inner = own;
        columns = m;
    }
    nested = nested && has_values(t, inner, columns);
    for (int k = 0; k < n; k++) {
        if (!nested) {
            put(t, &items, write(t, item[k], LEVEL_ANY));
            continue;
        }
        Factors row = {0};
        const Expr *rest = item[k];
        for (int m = 1; m < columns; m++, rest = rest->args[2]) put(t, &row, write(t, rest->args[1], LEVEL_ANY));
        put(t, &row, write(t, rest, LEVEL_ANY));
        put(t, &items, bracketed(t, &row));
    }
    const Formula *at[2] = {leaf(t, FORMULA_INDEX, name_of(t, by, by->lo, by->hi)->name), NULL};
    if (nested) at[1] = leaf(t, FORMULA_INDEX, name_of(t, inner, inner->lo, inner->hi)->name);
    return indexed(t, bracketed(t, &items), nested ? 2 : 1, at);
}

static bool has_choice_by(const Expr *e, const Index *i)
{
    const Index *by;
    for (int k = 0; k < e->nargs; k++)
        if (has_choice_by(e->args[k], i)) return true;
    return choice_among(e, &by) && by == i;
}

// An array of a fixed length that picks its elements by their number, as the list that it is.
static const Formula *write_array(Notation *t, const Expr *e)
{
    const Expr *n = e->args[0], *body = e->args[1];
    Expr *times = ex_identity_times(e);
    if (times) {
        const Formula *size = write(t, n, LEVEL_ANY), *identity = indexed(t, formula_letter(t, "I"), 1, &size);
        return ex_is_num(times, 1) ? identity : ROW(t, write(t, times, LEVEL_PRODUCT), formula_sign(t, SIGN_TIMES), identity);
    }
    const bool short_one = n->kind == EX_NUM && n->number >= 1 && n->number <= MOST_LISTED;
    if (short_one && has_choice_by(body, e->index)) {
        Factors items = {0};
        for (int k = 1; k <= (int)n->number; k++) put(t, &items, write(t, ex_replace_index((Expr *)body, e->index, ex_num(k)), LEVEL_ANY));
        return bracketed(t, &items);
    }
    if (!ex_mentions_index(body, e->index)) {
        const Formula *args[] = {write(t, body, LEVEL_ANY), write(t, n, LEVEL_ANY)};
        return formula_call(t, "rep_vector", 2, args);
    }
    const int at = (int)(name_of(t, e->index, ex_num(1), n) - t->names);
    t->names[at].open++;
    const Formula *range = ROW(t, leaf(t, FORMULA_INDEX, t->names[at].name), formula_sign(t, SIGN_IN), leaf(t, FORMULA_NUMBER, "1"),
                               formula_sign(t, SIGN_TO), write(t, n, LEVEL_ATOM));
    const Formula *f = write(t, body, LEVEL_ANY);
    t->names[at].open--;
    if (body->kind != EX_ARRAY || f->kind != FORMULA_INDEXED || f->kid[0]->kind != FORMULA_FENCED || f->kid[0]->open != '(')
        return indexed(t, formula_fenced(t, '(', f), 1, &range);
    const Formula *both[3] = {range};  // an array of arrays: one pair of parentheses
    if (f->n > 3) return indexed(t, formula_fenced(t, '(', f), 1, &range);
    for (int k = 1; k < f->n; k++) both[k] = f->kid[k];
    return indexed(t, f->kid[0], f->n, both);
}

// ---- calls ----

static const Formula *write_cases(Notation *t, const Expr *e)
{
    int n = 1;
    for (const Expr *c = e; ex_is_call(c, FN_if_else); c = c->args[2]) n++;
    Formula *f = node(t, FORMULA_CASES, 2 * n);
    for (int k = 0; k < n; k++, e = k < n ? e->args[2] : e) {
        f->kid[2 * k] = write(t, k + 1 < n ? e->args[1] : e, LEVEL_ANY);
        f->kid[2 * k + 1] = k + 1 < n ? formula_condition(t, e->args[0]) : NULL;
    }
    return f;
}

static const Formula *exp_of(Notation *t, const void *e) { return formula_call(t, "exp", 1, (const Formula *[]){write(t, e, LEVEL_ANY)}); }

static const Formula *greek_call(Notation *t, bool log, const char *letter, const Formula *argument)
{
    return ROW(t, log ? formula_word(t, "log") : NULL, symbol(t, letter, false), formula_fenced(t, '(', argument));
}

// lo <= x <= hi, without an end that is infinite.
static const Formula *write_within(Notation *t, const Expr *e)
{
    const bool from = !(e->args[1]->kind == EX_NUM && isinf(e->args[1]->number)),
               to = !(e->args[2]->kind == EX_NUM && isinf(e->args[2]->number));
    return ROW(t, from ? write(t, e->args[1], LEVEL_SUM) : NULL, from ? formula_sign(t, SIGN_AT_MOST) : NULL,
               write(t, e->args[0], LEVEL_SUM), to ? formula_sign(t, SIGN_AT_MOST) : NULL, to ? write(t, e->args[2], LEVEL_SUM) : NULL);
}

static const Formula *write_call(Notation *t, const Expr *e)
{
    const Formula *f;
    if (is_condition(e)) return ROW(t, formula_sign(t, SIGN_INDICATOR), formula_fenced(t, '[', formula_condition(t, e)));
    switch ((int)e->fn) {
    case FN_pi: return names_a_variable(t->g, "pi") ? formula_word(t, "pi") : symbol(t, "pi", false);
    case FN_if_else: return (f = write_choice(t, e)) ? f : write_cases(t, e);
    case FN_log1p: return formula_call(t, "log", 1, (const Formula *[]){write_sum(t, ex_plus(e->args[0], 1))});
    case FN_log1m: return formula_call(t, "log", 1, (const Formula *[]){write(t, ex_sub(ex_num(1), e->args[0]), LEVEL_ANY)});
    case FN_log_sum_exp:
    case FN_log_sum_exp2:
        if (e->nargs != 2) break;
        return formula_call(t, "log", 1,
                            (const Formula *[]){ROW(t, exp_of(t, e->args[0]), formula_sign(t, SIGN_PLUS), exp_of(t, e->args[1]))});
    case FN_lgamma: return greek_call(t, true, "Gamma", write(t, e->args[0], LEVEL_ANY));
    case FN_Phi: return greek_call(t, false, "Phi", write(t, e->args[0], LEVEL_ANY));
    case FN_log_Phi: return greek_call(t, true, "Phi", write(t, e->args[0], LEVEL_ANY));
    case FN_log_determinant: return ROW(t, formula_word(t, "log"), formula_fenced(t, '|', write(t, e->args[0], LEVEL_ANY)));
    case FN_inverse: return formula_power(t, write(t, e->args[0], LEVEL_ATOM), leaf(t, FORMULA_NUMBER, "-1"));
    case FN_abs:
    case FN_fabs: return formula_fenced(t, '|', write(t, e->args[0], LEVEL_ANY));
    case FN_pow: return formula_power(t, write(t, e->args[0], LEVEL_ATOM), write(t, e->args[1], LEVEL_ANY));
    case FN_WITHIN:
        return ROW(t, formula_word(t, "log"), formula_sign(t, SIGN_THIN), formula_sign(t, SIGN_INDICATOR),
                   formula_fenced(t, '[', write_within(t, e)));
    default: break;
    }
    const bool solves = e->fn == FN_ode_rk45 || e->fn == FN_ode_bdf;  // its last two arguments are names
    Factors args = {0};
    for (int i = 0; i < (solves ? 4 : e->nargs); i++) put(t, &args, write(t, e->args[i], LEVEL_ANY));
    return formula_call(t, e->name, args.n, args.of);
}

// ---- sums over loops ----

static const struct {
    const char *name;
    SignId sign;
} reductions[] = {{"sum", SIGN_SUM}, {"prod", SIGN_PRODUCT}, {"min", SIGN_MINIMUM}, {"max", SIGN_MAXIMUM}};

// The sum, or another reduction, over one index; a guard stands where the range would begin.
static const Formula *write_big(Notation *t, SignId sign, const Index *i, Expr *lo, Expr *hi, const Expr *guard,
                                const Formula *(*body)(Notation *, const void *), const void *with)
{
    Formula *f = node(t, FORMULA_BIG, 3);
    f->sign = sign;
    const Formula *to = write(t, hi, LEVEL_ANY), *from = write(t, lo, LEVEL_ANY);
    const int at = (int)(name_of(t, i, lo, hi) - t->names);
    t->names[at].open++;
    const Formula *name = leaf(t, FORMULA_INDEX, t->names[at].name);
    f->kid[0] =
        guard ? ROW(t, name, formula_sign(t, SIGN_SO_THAT), formula_condition(t, guard)) : ROW(t, name, formula_sign(t, SIGN_EQUALS), from);
    f->kid[1] = guard ? NULL : to;
    f->kid[2] = body(t, with);
    t->names[at].open--;
    return f;
}

static const Formula *body_of(Notation *t, const void *e) { return write(t, e, LEVEL_PRODUCT); }

typedef struct Rest {  // of loops, from `at` on
    const Loops *over;
    int at;
    const Expr *value;
    SignId sign;
} Rest;

static const Formula *sum_from(Notation *t, const void *with)
{
    const Rest *r = with;
    if (r->at == r->over->n) return write(t, r->value, LEVEL_PRODUCT);
    const Index *i = r->over->index[r->at];
    const bool last = r->at + 1 == r->over->n;
    return write_big(t, r->sign, i, i->lo, i->hi, last ? r->over->guard : NULL, sum_from, &(Rest){r->over, r->at + 1, r->value, r->sign});
}

// The same, of an expression as it stands.
static const Formula *sum_over(Notation *t, const Loops *over, const Expr *e)
{
    if (!over->n && over->guard)
        return ROW(t, formula_sign(t, SIGN_INDICATOR), formula_fenced(t, '[', formula_condition(t, over->guard)),
                   formula_sign(t, SIGN_TIMES), write(t, e, LEVEL_PRODUCT));
    return sum_from(t, &(Rest){over, 0, e, SIGN_SUM});
}

// An end that is there under a condition, or the nearest of several; without one it is infinite.
static const Formula *end_over(Notation *t, const Spelled *s)
{
    const bool lower = s->of == SPELLED_LOWER;
    if (s->loops.n) return sum_from(t, &(Rest){&s->loops, 0, s->value, lower ? SIGN_MAXIMUM : SIGN_MINIMUM});
    const Formula *infinite = formula_sign(t, SIGN_INFINITE);
    Formula *f = node(t, FORMULA_CASES, 4);
    f->kid[0] = write(t, s->value, LEVEL_ANY);
    f->kid[1] = formula_condition(t, s->loops.guard);
    f->kid[2] = lower ? ROW(t, formula_sign(t, SIGN_NEGATIVE), infinite) : infinite;
    f->kid[3] = NULL;
    return f;
}

const Formula *formula_loops(Notation *t, const Loops *over)
{
    Factors all = {0};
    for (int i = 0; i < over->n; i++) {
        const Index *x = over->index[i];
        put(t, &all,
            ROW(t, leaf(t, FORMULA_INDEX, name_of(t, x, x->lo, x->hi)->name), formula_sign(t, SIGN_EQUALS), write(t, x->lo, LEVEL_ATOM),
                formula_sign(t, SIGN_TO), write(t, x->hi, LEVEL_ATOM)));
    }
    if (over->guard) put(t, &all, ROW(t, formula_prose(t, all.n ? " where " : "where "), formula_condition(t, over->guard)));
    return all.n ? formula_list(t, all.n, all.of) : NULL;
}

static const Formula *write_ref(Notation *t, const Expr *e)
{
    const Var *v = e->var;
    if (v->spelled && v->spelled->of != SPELLED_SUM) return end_over(t, v->spelled);
    if (v->spelled) return sum_over(t, &v->spelled->loops, v->spelled->value);
    if (v->parts && e->nargs == 1 && e->args[0]->kind == EX_NUM) return formula_symbol(t, v->parts[(int)e->args[0]->number - 1]);
    if (v->kind == VAR_PATTERN) return formula_word(t, v->name);
    Factors at = {0};
    for (int i = 0; i < e->nargs; i++) put(t, &at, write(t, e->args[i], LEVEL_ANY));
    return indexed(t, formula_symbol(t, v), at.n, at.of);
}

static int level_of(const Notation *t, const Expr *e)
{
    switch (e->kind) {
    case EX_ADD: return LEVEL_SUM;
    case EX_NUM:
        if (e->formula) return level_of(t, e->formula);
        return e->number < 0 || strpbrk(ex_text(t->arena, e), "/e") ? LEVEL_PRODUCT : LEVEL_ATOM;
    case EX_MUL: return LEVEL_PRODUCT;
    case EX_POW: return e->number < 0 ? LEVEL_PRODUCT : LEVEL_ATOM;
    case EX_REDUCE: return LEVEL_PRODUCT;
    case EX_ARRAY: {
        const Expr *times = ex_identity_times(e);
        return times && !ex_is_num(times, 1) ? LEVEL_PRODUCT : LEVEL_ATOM;
    }
    case EX_REF: return e->var->spelled ? LEVEL_PRODUCT : LEVEL_ATOM;
    default: return LEVEL_ATOM;
    }
}

static const Formula *write_reduction(Notation *t, const Expr *e)
{
    if (strcmp(e->name, "log_sum_exp") == 0)
        return ROW(t, formula_word(t, "log"), formula_sign(t, SIGN_THIN),
                   write_big(t, SIGN_SUM, e->index, e->args[0], e->args[1], NULL, exp_of, e->args[2]));
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (strcmp(reductions[i].name, e->name) == 0)
            return write_big(t, reductions[i].sign, e->index, e->args[0], e->args[1], NULL, body_of, e->args[2]);
    abort();  // a reduction without a sign
}

static const Formula *write_plainly(Notation *t, const Expr *e)
{
    switch (e->kind) {
    case EX_NUM: {
        if (e->formula) return write_plainly(t, e->formula);
        const Formula *above, *below;
        const bool negative = e->number < 0;
        fraction_of(t, negative ? -e->number : e->number, &above, &below);
        const Formula *f = above ? above : leaf(t, FORMULA_NUMBER, "1");
        if (below) f = of_two(t, FORMULA_FRACTION, f, below);
        return negative ? ROW(t, formula_sign(t, SIGN_NEGATIVE), f) : f;
    }
    case EX_INDEX: return leaf(t, FORMULA_INDEX, name_of(t, e->index, e->index->lo, e->index->hi)->name);
    case EX_REF: return write_ref(t, e);
    case EX_ADD: return write_sum(t, e);
    case EX_MUL: return write_product(t, e);
    case EX_POW:
        if (e->number < 0) return of_two(t, FORMULA_FRACTION, leaf(t, FORMULA_NUMBER, "1"), write(t, ex_pow((Expr *)e, -1), LEVEL_ANY));
        if (e->number == 0.5) {
            Formula *f = node(t, FORMULA_ROOT, 1);
            f->kid[0] = write(t, e->args[0], LEVEL_ANY);
            return f;
        }
        return formula_power(t, write(t, e->args[0], LEVEL_ATOM), write(t, ex_num(e->number), LEVEL_ANY));
    case EX_CALL: return write_call(t, e);
    case EX_REDUCE: return write_reduction(t, e);
    case EX_ARRAY: return write_array(t, e);
    case EX_AT: {
        Factors at = {0};
        for (int i = 1; i < e->nargs; i++) put(t, &at, write(t, e->args[i], LEVEL_ANY));
        return indexed(t, fence_unless(t, e->args[0]->kind == EX_ARRAY, write(t, e->args[0], LEVEL_ANY)), at.n, at.of);
    }
    }
    return NULL;
}

static const Formula *write(Notation *t, const Expr *e, int outer)
{
    if (++t->parts > MOST_PARTS) return formula_sign(t, SIGN_CUT);
    return fence_unless(t, level_of(t, e) >= outer, write_plainly(t, e));
}

const Formula *formula_of(Notation *t, const Expr *e)
{
    t->parts = 0;
    return write(t, e, LEVEL_ANY);
}

const Formula *formula_sum(Notation *t, const Loops *over, const Expr *e)
{
    t->parts = 0;
    return over->n || over->guard ? sum_over(t, over, e) : write(t, e, LEVEL_ANY);
}

// ---- names ----

static const GreekLetter greek_letters[] = {
#define GREEK(name, code)           {#name, code, "\\" #name},
#define GREEK_AS(name, code, latex) {#name, code, latex},
    GREEK(alpha, "&#945;") GREEK(beta, "&#946;") GREEK(gamma, "&#947;") GREEK(delta, "&#948;") GREEK_AS(epsilon, "&#949;", "\\varepsilon")
        GREEK(zeta, "&#950;") GREEK(eta, "&#951;") GREEK(theta, "&#952;") GREEK(iota, "&#953;") GREEK(kappa, "&#954;")
            GREEK(lambda, "&#955;") GREEK(mu, "&#956;") GREEK(nu, "&#957;") GREEK(xi, "&#958;") GREEK_AS(omicron, "&#959;", "o")
                GREEK(pi, "&#960;") GREEK(rho, "&#961;") GREEK(sigma, "&#963;") GREEK(tau, "&#964;") GREEK(upsilon, "&#965;")
                    GREEK(phi, "&#966;") GREEK(chi, "&#967;") GREEK(psi, "&#968;") GREEK(omega, "&#969;") GREEK(Gamma, "&#915;")
                        GREEK(Delta, "&#916;") GREEK(Theta, "&#920;") GREEK(Lambda, "&#923;") GREEK(Xi, "&#926;") GREEK(Pi, "&#928;")
                            GREEK(Sigma, "&#931;") GREEK(Phi, "&#934;") GREEK(Psi, "&#936;") GREEK(Omega, "&#937;")
#undef GREEK
#undef GREEK_AS
};

static const GreekLetter *greek(const char *name)
{
    for (size_t i = 0; i < sizeof greek_letters / sizeof *greek_letters; i++)
        if (strcmp(greek_letters[i].name, name) == 0) return &greek_letters[i];
    return NULL;
}

SplitName split_name(Arena *a, const char *name)
{
    const char *mark = strchr(name, '_');
    SplitName s = {.base = name, .greek = greek(name)};
    if (s.greek || !mark || mark == name || !mark[1]) return s;
    const char *base = arena_printf(a, "%.*s", (int)(mark - name), name);
    const GreekLetter *letter = greek(base);
    if (!letter && mark - name > 1) return s;
    const SplitName below = split_name(a, mark + 1);
    return (SplitName){.base = base, .greek = letter, .below = arena_copy(a, &below, sizeof below)};
}
