// numbers.c -- computed numbers: freed of their rounding; as fractions; and by the formula that they were computed by.
//
//   before   log(5)     log(6.283185307179586)/2, where 6.283185307179586 is 2*pi()     the sum of both, negative
//   after    1.6094379124341003     0.9189385332046727     -2.528376445638773, of which the formula is -log(5) - 1/2*log(2*pi())
//
// A formula is a sum of multiples of functions of numbers. Its parts are expressions that no constructor of expr.c has seen: log(5) stays a
// call. The first formula of a number is kept; a number has the same one in all expressions.
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "numbers.h"
#include "table.h"

enum { MOST_TERMS = 12, MOST_DIVISOR = 1000 };

// How far it may be from v for v to be it but for rounding.
static double rounding_of(double v) { return 2 * DBL_EPSILON * fabs(v); }

// The decimal of at most 12 digits next to v.
static double decimal_of(double v)
{
    if (fabs(v) < 1e6 && 8 * v == floor(8 * v)) return v;  // halves to eighths: they have at most nine digits
    char s[32];
    snprintf(s, sizeof s, "%.12g", v);
    return strtod(s, NULL);
}

// A fraction within `close` of v, a convergent of its continued fraction, with a divisor of 3 to `most` and a numerator below `most`.
static bool find_fraction(double v, double close, long most, double *above, double *below)
{
    double x = fabs(v), n = 1, d = 0, older_n = 0, older_d = 1;
    for (;;) {
        const double whole = floor(x), next_n = whole * n + older_n, next_d = whole * d + older_d;
        if (next_n >= (double)most || next_d > (double)most) return false;
        older_n = n;
        older_d = d;
        n = next_n;
        d = next_d;
        if (n != 0 && d >= 3 && fabs(copysign(n / d, v) - v) <= close) break;
        if (x == whole) return false;
        x = 1 / (x - whole);
    }
    *above = n;
    *below = d;
    return true;
}

// A computed number, freed of its rounding: 0.2 * 0.2 is 0.04000000000000001, and is taken to be 0.04. So is any v within a few units in
// the last place of a decimal of at most 12 digits, or of a fraction with a divisor of at most 1000. Fewer than 1 in 1000 other numbers are
// as close to one of these; they change by no more than their own rounding. Equal coefficients that were computed differently become one.
double number_tidy_sum(double v, double size)
{
    if (v == 0 || !isfinite(v) || (v == floor(v) && fabs(v) < 1e15)) return v;
    const double decimal = decimal_of(v), close = rounding_of(fmax(size, fabs(v)));
    if (fabs(decimal - v) <= close) return decimal;
    double n, d;
    return find_fraction(v, close, MOST_DIVISOR, &n, &d) ? copysign(n / d, v) : v;
}

double number_tidy(double v) { return number_tidy_sum(v, 0); }

int number_fraction(double v, long most, long *above, long *below)
{
    double n, d;
    if (v == 0 || !isfinite(v) || !find_fraction(v, rounding_of(v), most, &n, &d)) return 0;
    *above = (long)copysign(n, v);
    *below = (long)d;
    return copysign(n / d, v) == v ? 1 : 2;
}

// ---- formulas ----

Expr *number_formula(double v)
{
    const Expr *e = ex_num(v);
    return e->formula;
}

typedef struct Multiple {
    double times;
    Expr *of;  // NULL: 1
} Multiple;

typedef struct Terms {
    int n;
    Multiple term[MOST_TERMS];
} Terms;

static void add_multiple(Terms *t, double times, Expr *of)
{
    for (int i = 0; i < t->n && i < MOST_TERMS; i++)
        if (t->term[i].of == of) {
            t->term[i].times = number_tidy(t->term[i].times + times);
            return;
        }
    if (t->n < MOST_TERMS) t->term[t->n] = (Multiple){times, of};
    t->n++;
}

// c times a term of a formula: a number, a product that begins with one, or something else.
static void add_term(Terms *t, double c, Expr *e)
{
    if (e->kind == EX_NUM) add_multiple(t, c * e->number, NULL);
    else if (e->kind == EX_MUL && e->args[0]->kind == EX_NUM && e->nargs == 2)
        add_multiple(t, number_tidy(c * e->args[0]->number), e->args[1]);
    else add_multiple(t, c, e);
}

// c times a number, by its formula if it has one.
static void add_number(Terms *t, double c, double v)
{
    Expr *e = number_formula(v);
    if (!e) add_multiple(t, c * v, NULL);
    else if (e->kind != EX_ADD) add_term(t, c, e);
    for (int i = 0; e && e->kind == EX_ADD && i < e->nargs; i++) add_term(t, c, e->args[i]);
}

static Expr *multiple(const Multiple *m)
{
    if (!m->of) return ex_num(number_tidy(m->times));
    return m->times == 1 ? m->of : expr_cons((Expr){.kind = EX_MUL, .nargs = 2, .args = (Expr *[]){ex_num(m->times), m->of}});
}

static Expr *whole_sum(const Terms *t)
{
    Expr *part[MOST_TERMS];
    int n = 0;
    if (t->n > MOST_TERMS) return NULL;
    for (int i = 0; i < t->n; i++)
        if (t->term[i].times != 0) part[n++] = multiple(&t->term[i]);
    return n == 0 ? NULL : n == 1 ? part[0] : expr_cons((Expr){.kind = EX_ADD, .nargs = n, .args = part});
}

static bool is_short(double v)
{
    double n, d;
    return !isfinite(v) || decimal_of(v) == v || number_tidy(v) != v || find_fraction(v, 0, MOST_DIVISOR, &n, &d);
}

static void keep(double v, Expr *formula)
{
    if (formula && !ex_num(v)->formula && !is_short(v)) ex_num(v)->formula = formula;
}

static void keep_both(double v, Expr *formula)
{
    if (!formula || formula == ex_num(v)) return;
    keep(v, formula);
    Terms negative = {0};
    add_number(&negative, -1, v);
    if (ex_num(v)->formula) keep(-v, whole_sum(&negative));
}

void number_sum(double a, double b)
{
    if (a == 0 || b == 0 || !(number_formula(a) || number_formula(b))) return;
    Terms t = {0};
    add_number(&t, 1, a);
    add_number(&t, 1, b);
    keep_both(a + b, whole_sum(&t));
}

void number_product(double a, double b)
{
    Expr *x = number_formula(a), *y = number_formula(b);
    if (!x && !y) return;
    Terms t = {0};
    if (x && y) add_multiple(&t, 1, expr_cons((Expr){.kind = EX_MUL, .nargs = 2, .args = (Expr *[]){x, y}}));
    else add_number(&t, x ? b : a, x ? a : b);
    keep_both(a * b, whole_sum(&t));
}

void number_power(double base, double r, double result)
{
    Expr *x = ex_num(base);
    keep_both(result, expr_cons((Expr){.kind = EX_POW, .number = r, .nargs = 1, .args = &x}));
}

void number_call(const char *name, double x, double result)
{
    Expr *of = ex_num(x);
    name = intern(name);
    keep_both(result, expr_cons((Expr){.kind = EX_CALL, .name = name, .fn = function_id(name), .nargs = 1, .args = &of}));
}

void number_pi(void) { keep_both(M_PI, expr_cons((Expr){.kind = EX_CALL, .name = intern("pi"), .fn = FN_pi})); }
