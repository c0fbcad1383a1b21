// expr.c -- constructors that keep expressions in normal form; substitution.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "expr.h"
#include "numbers.h"
#include "table.h"
#include "prover.h"

// ---- sums ----

static Expr *scaled(double c, Expr *e);

static double sum_of(double a, double b)
{
    number_sum(a, b);
    return a + b;
}

static double product_of(double a, double b)
{
    number_product(a, b);
    return a * b;
}

// A term of a sum as number times the rest.
static double split_number(Expr *e, Expr **rest)
{
    if (e->kind == EX_NUM) {
        *rest = NULL;
        return e->number;
    }
    if (e->kind == EX_MUL && e->args[0]->kind == EX_NUM) {
        *rest = e->nargs == 2 ? e->args[1] : expr_cons((Expr){.kind = EX_MUL, .nargs = e->nargs - 1, .args = e->args + 1});
        return e->args[0]->number;
    }
    *rest = e;
    return 1;
}

typedef struct {
    Expr *rest;
    double number;
} Portion;

static int by_id(const void *a, const void *b)
{
    const Portion *x = a, *y = b;
    return (x->rest->id > y->rest->id) - (x->rest->id < y->rest->id);
}

// a/b of a product, which a quotient is: a*b^-1
static Expr *numerator(const Expr *product, Expr **denominator)
{
    Expr *n = ex_num(1), *d = ex_num(1);
    for (int i = 0; i < product->nargs; i++)
        if (product->args[i]->kind == EX_POW && product->args[i]->number < 0) d = ex_mul2(d, ex_pow(product->args[i], -1));
        else n = ex_mul2(n, product->args[i]);
    *denominator = d;
    return n;
}

// 1 - p without the difference, where p near 1 would leave nothing: 1 - inv_logit(x) = inv_logit(-x), 1 - Phi(x) = Phi(-x), 1 - a/(a + b) =
// b/(a + b). NULL: it is not known how.
static Expr *complement(const Expr *p)
{
    if (p->kind == EX_CALL && (p->fn == FN_inv_logit || p->fn == FN_Phi)) return ex_call1(p->name, ex_neg(p->args[0]));
    if (p->kind != EX_MUL) return NULL;
    Expr *d, *n = numerator(p, &d);
    if (d->kind != EX_ADD) return NULL;
    Expr *rest = ex_sub(d, n);
    return rest->kind == EX_ADD || rest->kind == EX_NUM ? rest->kind == EX_NUM && rest->number > 0 ? ex_mul2(rest, ex_pow(d, -1)) : NULL
                                                        : ex_mul2(rest, ex_pow(d, -1));
}

Expr *ex_add(int n, Expr *const *terms)
{
    int most = 0;
    for (int i = 0; i < n; i++) most += terms[i]->kind == EX_ADD ? terms[i]->nargs : 1;
    Portion *part = malloc(sizeof *part * (size_t)(most + 1));
    int count = 0;
    double constant = 0, size = 0;
    for (int i = 0; i < n; i++) {
        int kids = terms[i]->kind == EX_ADD ? terms[i]->nargs : 1;
        for (int k = 0; k < kids; k++) {
            Expr *rest, *t = terms[i]->kind == EX_ADD ? terms[i]->args[k] : terms[i];
            double c = split_number(t, &rest);
            if (!rest) {
                constant = sum_of(constant, c);
                size = fmax(size, fabs(c));
            }
            else part[count++] = (Portion){rest, c};
        }
    }
    qsort(part, (size_t)count, sizeof *part, by_id);
    Expr **out = malloc(sizeof *out * (size_t)(count + 2));
    int m = 0;
    if (constant != 0) out[m++] = ex_num(number_tidy_sum(constant, size));
    for (int i = 0; i < count;) {
        double c = 0, most = 0;
        Expr *rest = part[i].rest;
        for (; i < count && part[i].rest == rest; i++) {
            c = sum_of(c, part[i].number);
            most = fmax(most, fabs(part[i].number));
        }
        if (c != 0) out[m++] = scaled(number_tidy_sum(c, most), rest);
    }
    Expr *rest, *e = m == 2 && ex_is_num(out[0], 1) && split_number(out[1], &rest) == -1 ? complement(rest) : NULL;
    if (!e) e = m == 0 ? ex_num(0) : m == 1 ? out[0] : expr_cons((Expr){.kind = EX_ADD, .nargs = m, .args = out});
    free(part);
    free(out);
    return e;
}

// ---- products ----

// exp(x)*inv_logit(-x) = inv_logit(x), of which a logistic function that is written out is made: exp(x)/(1 + exp(x)).
static bool join_logistic(Expr **factor, int *n)
{
    for (int i = 0; i < *n; i++)
        for (int k = 0; k < *n && factor[i]->kind == EX_CALL && factor[i]->fn == FN_inv_logit; k++) {
            if (factor[k]->kind != EX_CALL || factor[k]->fn != FN_exp || factor[k]->args[0] != ex_neg(factor[i]->args[0])) continue;
            factor[i] = ex_call1("inv_logit", factor[k]->args[0]);
            factor[k] = factor[--*n];
            return true;
        }
    return false;
}

// c * e for e without a number in front.
static Expr *scaled(double c, Expr *e)
{
    if (c == 1) return e;
    if (c == 0) return ex_num(0);
    if (e->kind == EX_NUM) return ex_num(number_tidy(product_of(c, e->number)));
    if (e->kind == EX_ADD) {
        Expr **t = malloc(sizeof *t * (size_t)e->nargs);
        for (int i = 0; i < e->nargs; i++) {
            Expr *rest;
            double k = split_number(e->args[i], &rest);
            const double both = number_tidy(product_of(c, k));
            t[i] = rest ? scaled(both, rest) : ex_num(both);
        }
        Expr *s = expr_cons((Expr){.kind = EX_ADD, .nargs = e->nargs, .args = t});
        free(t);
        return s;
    }
    int n = e->kind == EX_MUL ? e->nargs : 1;
    Expr **f = malloc(sizeof *f * (size_t)(n + 1));
    f[0] = ex_num(c);
    if (e->kind == EX_MUL) memcpy(f + 1, e->args, sizeof *f * (size_t)n);
    else f[1] = e;
    Expr *p = expr_cons((Expr){.kind = EX_MUL, .nargs = n + 1, .args = f});
    free(f);
    return p;
}

// The number that comes out of a sum in a product, where it leaves fewer numbers in it: 2 of 2*a - 4*b, -1 of -a - b, 1 of y - 1/2. What
// begins with 1, 1 - p/2, is looked for as it is.
static double common_factor(const Expr *sum)
{
    const double most_times = 1000, most = 1e15;  // numbers of about one size, of which no power overflows
    if (ex_is_num(sum->args[0], 1)) return 1;
    double least = INFINITY;
    Expr *rest;
    bool negative = true;
    int fewer = 0;
    for (int i = 0; i < sum->nargs; i++) {
        const double c = split_number(sum->args[i], &rest);
        least = fmin(least, fabs(c));
        negative &= c < 0;
    }
    for (int i = 0; i < sum->nargs; i++) {
        const double c = fabs(split_number(sum->args[i], &rest)), times = c / least;
        if (!(times <= most_times) || times != floor(times)) return 1;
        if (rest) fewer += (c != 1) - (times != 1);
    }
    return (fewer > 0 && least < most && 1 / least < most ? least : 1) * (negative ? -1 : 1);
}

static Expr *divided(Expr *sum, double c)
{
    Expr **t = malloc(sizeof *t * (size_t)sum->nargs);
    for (int i = 0; i < sum->nargs; i++) {
        Expr *rest;
        const double of = split_number(sum->args[i], &rest), k = of / c;
        number_product(of, 1 / c);
        t[i] = rest ? scaled(k, rest) : ex_num(k);
    }
    Expr *s = expr_cons((Expr){.kind = EX_ADD, .nargs = sum->nargs, .args = t});
    free(t);
    return s;
}

static bool is_whole(double r) { return r == floor(r); }

// x^r for a whole r, where it came from a root or a log: for x < 0 there is no value. If an unknown x may be so, exp(r*log(x)) says it.
static Expr *power_of_positive(Expr *x, double r)
{
    if (ex_positive(x) || ex_data_only(x)) return ex_pow(x, r);
    Expr *e = ex_mul2(ex_num(r), ex_log(x));
    return expr_cons((Expr){.kind = EX_CALL, .name = intern("exp"), .fn = FN_exp, .nargs = 1, .args = &e});
}

Expr *ex_mul(int n, Expr *const *factors)
{
    int most = 0;
    for (int i = 0; i < n; i++) most += factors[i]->kind == EX_MUL ? factors[i]->nargs : 1;
    Portion *part = malloc(sizeof *part * (size_t)(most + 1));
    int count = 0;
    double number = 1;
    for (int i = 0; i < n; i++) {
        int kids = factors[i]->kind == EX_MUL ? factors[i]->nargs : 1;
        for (int k = 0; k < kids; k++) {
            Expr *f = factors[i]->kind == EX_MUL ? factors[i]->args[k] : factors[i];
            if (f->kind == EX_NUM) number = product_of(number, f->number);
            else if (f->kind == EX_POW) part[count++] = (Portion){f->args[0], f->number};
            else part[count++] = (Portion){f, 1};
        }
    }
    if (number == 0) {
        free(part);
        return ex_num(0);
    }
    number = number_tidy(number);
    qsort(part, (size_t)count, sizeof *part, by_id);
    Expr **out = malloc(sizeof *out * (size_t)(count + 1));
    int m = 0;
    bool again = false;
    for (int i = 0; i < count;) {
        double exponent = 0;
        Expr *base = part[i].rest;
        bool broken = false;  // sqrt(x)*sqrt(x) has no value where x < 0
        for (; i < count && part[i].rest == base; i++) {
            exponent += part[i].number;
            broken |= !is_whole(part[i].number);
        }
        if (exponent == 0) continue;
        Expr *p = broken && is_whole(exponent) ? power_of_positive(base, exponent) : ex_pow(base, exponent);
        if (p->kind == EX_MUL || p->kind == EX_NUM) again = true;
        out[m++] = p;
    }
    while (join_logistic(out, &m)) again = true;
    for (int i = 0; i < m && m > 1; i++) {  // x*(2*a - 2*b) is 2*x*(a - b)
        const double common = out[i]->kind == EX_ADD ? common_factor(out[i]) : 1;
        if (common == 1) continue;
        out[i] = divided(out[i], common);
        number = product_of(number, common);
        again = true;
    }
    Expr *e;
    if (again) {
        out[m] = ex_num(number);
        e = ex_mul(m + 1, out);
    } else {
        e = m == 0 ? ex_num(number) : scaled(number, m == 1 ? out[0] : expr_cons((Expr){.kind = EX_MUL, .nargs = m, .args = out}));
    }
    free(part);
    free(out);
    return e;
}

Expr *ex_pow(Expr *base, double r)
{
    if (r == 0) return ex_num(1);
    if (r == 1) return base;
    bool integer = r == floor(r);
    switch (base->kind) {
    case EX_NUM: {
        double v = r < 0 ? 1 / pow(base->number, -r) : pow(base->number, r);
        number_power(base->number, r, v);
        if (isfinite(v)) return ex_num(number_tidy(v));
        break;
    }
    case EX_POW:  // (x^a)^r = x^(a r): always for integer r; otherwise only if x^a is not the square of a negative number
        if (is_whole(base->number * r) && !(integer && is_whole(base->number))) {
            if (integer || ex_positive(base->args[0]) || fmod(base->number, 2) != 0)
                return power_of_positive(base->args[0], base->number * r);
        } else if (integer || ex_positive(base->args[0]) || fmod(base->number, 2) != 0) return ex_pow(base->args[0], base->number * r);
        break;
    case EX_MUL: {
        int positive = 0;
        for (int i = 0; i < base->nargs; i++) positive += ex_positive(base->args[i]);
        if (integer || positive >= base->nargs - 1) {
            Expr **f = malloc(sizeof *f * (size_t)base->nargs);
            for (int i = 0; i < base->nargs; i++) f[i] = ex_pow(base->args[i], r);
            Expr *p = ex_mul(base->nargs, f);
            free(f);
            return p;
        }
        break;
    }
    case EX_CALL:
        if (base->fn == FN_exp) return ex_call1("exp", ex_mul2(ex_num(r), base->args[0]));
        break;
    case EX_ADD: {  // 1/(1 + exp(e)) = inv_logit(-e)
        if (r == -1 && base->nargs == 2 && ex_is_num(base->args[0], 1) && base->args[1]->kind == EX_CALL && base->args[1]->fn == FN_exp)
            return ex_call1("inv_logit", ex_neg(base->args[1]->args[0]));
        const double common = integer ? common_factor(base) : 1, out = pow(common, r);
        if (common != 1 && isnormal(out)) return ex_mul2(ex_num(number_tidy(out)), ex_pow(divided(base, common), r));
        break;
    }
    case EX_REF:
    case EX_INDEX:
    case EX_REDUCE:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return expr_cons((Expr){.kind = EX_POW, .number = r, .nargs = 1, .args = &base});
}

Expr *ex_add2(Expr *a, Expr *b) { return ex_add(2, (Expr *[]){a, b}); }
Expr *ex_mul2(Expr *a, Expr *b) { return ex_mul(2, (Expr *[]){a, b}); }
Expr *ex_neg(Expr *a) { return ex_mul2(ex_num(-1), a); }
Expr *ex_sub(Expr *a, Expr *b) { return ex_add2(a, ex_neg(b)); }
Expr *ex_plus(Expr *a, double c) { return ex_add2(a, ex_num(c)); }
Expr *ex_div(Expr *a, Expr *b)
{
    if (a->kind == EX_NUM && b->kind == EX_NUM && b->number == 0) return ex_num(a->number / b->number);
    return ex_mul2(a, ex_pow(b, -1));
}

Expr *ex_whole(Expr *e)
{
    const Expr *number = e->kind == EX_ADD ? e->args[0] : e;
    return number->kind == EX_NUM ? ex_add2(e, ex_num(round(number->number) - number->number)) : e;
}

// ---- calls ----

// What a function makes of a number.
static Expr *called(const char *name, double x, double result)
{
    number_call(name, x, result);
    return ex_num(result);
}

Expr *ex_pi(void)
{
    number_pi();
    return ex_num(M_PI);
}

// exp(x), a number above 0, their product
static bool is_exponential(const Expr *e)
{
    if (e->kind == EX_NUM) return e->number > 0;
    if (e->kind == EX_MUL && e->nargs == 2) return e->args[0]->kind == EX_NUM && is_exponential(e->args[0]) && is_exponential(e->args[1]);
    return e->kind == EX_CALL && e->fn == FN_exp;
}

Expr *ex_log(Expr *a)
{
    if (a->kind == EX_NUM && a->number > 0) return called("log", a->number, log(a->number));
    if (a->kind == EX_POW && (ex_positive(a->args[0]) || fmod(a->number, 2) != 0)) return ex_mul2(ex_num(a->number), ex_log(a->args[0]));
    if (a->kind == EX_MUL) {
        int positive = 0;
        bool negative = false;  // -z of a z that is not negative: the whole is 0, or has no log
        for (int i = 0; i < a->nargs; i++) {
            positive += ex_positive(a->args[i]);
            negative |= a->args[i]->kind == EX_NUM && a->args[i]->number < 0;
        }
        // the whole is positive, so the last one is too
        if (positive >= a->nargs - 1 && !(negative && positive == a->nargs - 1)) {
            Expr **t = malloc(sizeof *t * (size_t)a->nargs);
            for (int i = 0; i < a->nargs; i++) t[i] = ex_log(a->args[i]);
            Expr *s = ex_add(a->nargs, t);
            free(t);
            return s;
        }
    }
    if (a->kind == EX_CALL) {
        if (a->fn == FN_exp) return a->args[0];
        if (a->fn == FN_pow && ex_positive(a->args[0])) return ex_mul2(a->args[1], ex_log(a->args[0]));
        if (a->fn == FN_inv_logit) return ex_call1("log_inv_logit", a->args[0]);
        if (a->fn == FN_inv_cloglog) return ex_call1("log1m_exp", ex_neg(ex_call1("exp", a->args[0])));
        if (a->fn == FN_Phi) return ex_call1("log_Phi", a->args[0]);
        if (a->fn == FN_if_else) return ex_call3("if_else", a->args[0], ex_log(a->args[1]), ex_log(a->args[2]));
    }
    if (a->kind == EX_REDUCE && a->fn == FN_prod && ex_positive(a->args[2])) {  // log of a product: the sum of the logs
        Index *j = index_new(a->index->name, a->args[0], a->args[1]);
        return ex_reduce("sum", j, j->lo, j->hi, ex_log(ex_open(a, j)));
    }
    if (a->kind == EX_ADD && a->nargs == 2 && ex_is_num(a->args[0], 1)) {  // log(1 - x)
        Expr *rest;
        if (split_number(a->args[1], &rest) == -1) return ex_call1("log1m", rest);
    }
    if (a->kind == EX_ADD && a->nargs == 2 && is_exponential(a->args[0]) && is_exponential(a->args[1]))  // log(exp(x) + exp(y))
        return ex_is_num(a->args[0], 1) ? ex_call1("log1p_exp", ex_log(a->args[1]))
                                        : ex_call2("log_sum_exp2", ex_log(a->args[0]), ex_log(a->args[1]));
    return expr_cons((Expr){.kind = EX_CALL, .name = intern("log"), .fn = FN_log, .nargs = 1, .args = &a});
}

static bool is_inverse(const Expr *e) { return e->kind == EX_CALL && e->nargs == 1 && e->fn == FN_inverse; }

static bool is_identity(const Expr *e)
{
    if (e->kind != EX_ARRAY || e->args[1]->kind != EX_ARRAY || e->args[0] != e->args[1]->args[0]) return false;
    const Expr *row = e->args[1], *at = row->args[1];
    Expr *i = ex_index(e->index), *j = ex_index(row->index);
    return ex_is_call(at, FN_SAME) && ((at->args[0] == i && at->args[1] == j) || (at->args[0] == j && at->args[1] == i));
}

// (t * exp(b) * m^a)^r = t^r * exp(r b) * m^(r a), for t and m > 0: what is a power itself leaves the product, so that recognition sees m.
// Plain factors stay together, since x / sigma is of order 1 where x^r and sigma^-r need not be.
static Expr *power_of_product(Expr *base, Expr *r)
{
    if (base->kind == EX_CALL && base->nargs == 1 && base->fn == FN_exp) return ex_call1("exp", ex_mul2(r, base->args[0]));
    if (base->kind == EX_CALL && base->nargs == 2 && base->fn == FN_pow && ex_positive(base->args[0]))
        return ex_call2("pow", base->args[0], ex_mul2(r, base->args[1]));
    if (base->kind == EX_POW && ex_positive(base->args[0]) && base->args[0]->kind != EX_REF && base->args[0]->kind != EX_ADD)
        return ex_call2("pow", base->args[0], ex_mul2(ex_num(base->number), r));
    if (base->kind != EX_MUL) return NULL;
    for (int i = 0; i < base->nargs; i++)
        if (!ex_positive(base->args[i])) return NULL;
    Expr *plain = ex_num(1), *out = ex_num(1);
    bool any = false;
    for (int i = 0; i < base->nargs; i++) {
        Expr *p = power_of_product(base->args[i], r);
        any |= p != NULL;
        if (p) out = ex_mul2(out, p);
        else plain = ex_mul2(plain, base->args[i]);
    }
    return any ? ex_mul2(out, ex_call2("pow", plain, r)) : NULL;
}

bool ex_scalar_multiple(Expr *e, Expr **factor, Expr **matrix)
{
    if (e->kind != EX_ARRAY || e->args[1]->kind != EX_ARRAY) return false;
    Expr *inner = e->args[1], *body = inner->args[1], *c = ex_num(1), *A = NULL;
    if (body->kind != EX_MUL) return false;
    for (int i = 0; i < body->nargs; i++) {
        Expr *f = body->args[i];
        if (!ex_mentions_index(f, e->index) && !ex_mentions_index(f, inner->index)) {
            c = ex_mul2(c, f);
            continue;
        }
        if (A) return false;
        A = f;
    }
    if (!A || (A->kind != EX_REF && A->kind != EX_AT) || A->nargs < 2) return false;
    if (A->args[A->nargs - 2] != ex_index(e->index) || A->args[A->nargs - 1] != ex_index(inner->index)) return false;
    Index *j = index_new("j", NULL, NULL), *k = index_new("k", NULL, NULL);
    Expr *plain = ex_replace_index(ex_replace_index(A, e->index, ex_index(j)), inner->index, ex_index(k));
    *matrix = ex_array(j, e->args[0], ex_array(k, inner->args[0], plain));
    *factor = c;
    return (*matrix)->kind == EX_REF || is_inverse(*matrix);
}

// log(1 + n/d) = log(n + d) - log(d), where n + d is simple.
static Expr *log1p_ratio(Expr *x)
{
    if (x->kind != EX_MUL) return NULL;
    Expr *d, *n = numerator(x, &d), *sum = ex_add2(n, d);
    return ex_is_num(d, 1) || sum->kind == EX_ADD ? NULL : ex_sub(ex_log(sum), ex_log(d));
}

// Functions of one number that a compiler may compute.
static bool constant1(FunctionId fn, double x, double *out)
{
    static double (*const known[NFN])(double) = {
        [FN_exp] = exp, [FN_lgamma] = lgamma, [FN_fabs] = fabs,   [FN_floor] = floor, [FN_ceil] = ceil,   [FN_sin] = sin, [FN_cos] = cos,
        [FN_tan] = tan, [FN_log1p] = log1p,   [FN_expm1] = expm1, [FN_tanh] = tanh,   [FN_round] = round, [FN_erf] = erf, [FN_erfc] = erfc};
    if (!known[fn]) return false;
    *out = known[fn](x);
    return isfinite(*out);
}

static bool constant2(FunctionId fn, double a, double b, double *out)
{
    switch (fn) {
    case FN_EQ:
    case FN_AT_END: *out = a == b; break;
    case FN_NE: *out = a != b; break;
    case FN_LT:
    case FN_IN_TAIL: *out = a < b; break;
    case FN_LE: *out = a <= b; break;
    case FN_fmax: *out = fmax(a, b); break;
    case FN_fmin: *out = fmin(a, b); break;
    case FN_AND: *out = a != 0 && b != 0; break;
    case FN_OR: *out = a != 0 || b != 0; break;
    case FN_pow: *out = pow(a, b); break;
    default: return false;
    }
    return isfinite(*out);
}

static bool is_comparison(FunctionId fn) { return fn == FN_EQ || fn == FN_NE || fn == FN_LT || fn == FN_LE; }

// log(1 - x); NULL: as it is written.
static Expr *log1m_simpler(const char *name, Expr *x)
{
    if (x->kind == EX_CALL) {
        if (x->fn == FN_inv_cloglog) return ex_neg(ex_call1("exp", x->args[0]));
        if (x->fn == FN_inv_logit) return ex_call1("log_inv_logit", ex_neg(x->args[0]));
        if (x->fn == FN_Phi) return ex_call1("log_Phi", ex_neg(x->args[0]));
        if (x->fn == FN_if_else) return ex_call3("if_else", x->args[0], ex_call1(name, x->args[1]), ex_call1(name, x->args[2]));
        if (x->fn == FN_exp) return ex_call1("log1m_exp", x->args[0]);
    }
    if (x->kind == EX_ADD && x->nargs == 2 && ex_is_num(x->args[0], 1)) return ex_log(ex_sub(ex_num(1), x));
    Expr *rest = complement(x);
    if (rest) return ex_log(rest);
    return x->kind == EX_NUM && x->number < 1 ? called("log1m", x->number, log1p(-x->number)) : NULL;
}

static Expr *log1p_simpler(Expr *x)
{
    Expr *simple = log1p_ratio(x), *less;
    if (simple) return simple;
    if (split_number(x, &less) == -1) return ex_call1("log1m", less);
    return is_exponential(x) ? ex_call1("log1p_exp", ex_log(x)) : NULL;
}

static Expr *log_determinant_simpler(const char *name, Expr *x)
{
    Expr *c, *A;
    if (is_inverse(x)) return ex_neg(ex_call1(name, x->args[0]));
    if (is_identity(x)) return ex_num(0);
    return ex_scalar_multiple(x, &c, &A) ? ex_add2(ex_mul2(ex_length(ex_num(1), ex_dim(A, 0)), ex_log(c)), ex_call1(name, A)) : NULL;
}

// A call of one argument in its normal form; NULL: as it is written.
static Expr *simpler_of_one(FunctionId fn, const char *name, Expr *x)
{
    if (fn == FN_log) return ex_log(x);
    if (fn == FN_sqrt) return ex_pow(x, 0.5);
    if (fn == FN_square) return ex_pow(x, 2);
    if (fn == FN_inv) return ex_pow(x, -1);
    if (fn == FN_inv_sqrt) return ex_pow(x, -0.5);
    if (fn == FN_inv_square) return ex_pow(x, -2);
    if (fn == FN_NOT && x->kind == EX_NUM) return ex_num(x->number == 0);
    if (fn == FN_exp && x->kind == EX_CALL && x->fn == FN_log) return power_of_positive(x->args[0], 1);
    if (fn == FN_exp && x->kind == EX_MUL && x->nargs == 2 && x->args[0]->kind == EX_NUM && x->args[1]->kind == EX_CALL &&
        x->args[1]->fn == FN_log)
        return is_whole(x->args[0]->number) ? power_of_positive(x->args[1]->args[0], x->args[0]->number)
                                            : ex_pow(x->args[1]->args[0], x->args[0]->number);
    if (fn == FN_inverse && is_inverse(x)) return x->args[0];
    if ((fn == FN_inverse || fn == FN_cholesky_decompose) && is_identity(x)) return x;
    if (fn == FN_log1p_exp) return ex_neg(ex_call1("log_inv_logit", ex_neg(x)));
    if (fn == FN_logit && x->kind == EX_CALL && x->fn == FN_inv_logit) return x->args[0];
    if (fn == FN_inv_Phi && x->kind == EX_CALL && x->fn == FN_Phi) return x->args[0];
    double v;
    Expr *simple = fn == FN_log1m             ? log1m_simpler(name, x)
                   : fn == FN_log1p           ? log1p_simpler(x)
                   : fn == FN_log_determinant ? log_determinant_simpler(name, x)
                                              : NULL;
    if (simple) return simple;
    return x->kind == EX_NUM && constant1(fn, x->number, &v) ? called(name, x->number, v) : NULL;
}

// A comparison of whole numbers: 2 <= 1 + k is 1 <= k.
static Expr *compared(FunctionId fn, const char *name, Expr *const *args)
{
    const Expr *apart = ex_sub(args[0], args[1]);
    if (apart->kind == EX_NUM)
        return ex_num(fn == FN_EQ   ? apart->number == 0
                      : fn == FN_NE ? apart->number != 0
                      : fn == FN_LT ? apart->number < 0
                                    : apart->number <= 0);
    for (int i = 0; i < 2; i++)
        if (args[i]->kind == EX_NUM && args[1 - i]->kind == EX_ADD && args[1 - i]->args[0]->kind == EX_NUM) {
            Expr *less = ex_neg(args[1 - i]->args[0]), *both[2] = {ex_add2(args[0], less), ex_add2(args[1], less)};
            return ex_call(name, 2, both);
        }
    return NULL;
}

static Expr *simpler_of_two(FunctionId fn, const char *name, Expr *const *args)
{
    Expr *const a = args[0], *const b = args[1];
    double v;
    if (a->kind == EX_NUM && b->kind == EX_NUM && constant2(fn, a->number, b->number, &v)) return ex_num(v);
    if (is_comparison(fn) && ex_is_whole(a) && ex_is_whole(b)) return compared(fn, name, args);
    if (fn == FN_fmax && b->kind == EX_NUM && a->kind == EX_CALL && a->fn == FN_fmax && a->args[1]->kind == EX_NUM)
        return ex_call2("fmax", a->args[0], ex_num(fmax(a->args[1]->number, b->number)));
    if (fn == FN_lbeta && (ex_is_num(a, 1) || ex_is_num(b, 1))) return ex_neg(ex_log(args[ex_is_num(a, 1)]));
    if (fn == FN_SAME && (a == b || (a->kind == EX_NUM && b->kind == EX_NUM))) return ex_num(a == b);
    if (fn != FN_pow) return NULL;
    if (b->kind == EX_NUM) return ex_pow(a, b->number);
    return ex_is_num(a, 1) ? a : power_of_product(a, b);
}

static Expr *simpler_of_three(FunctionId fn, Expr *const *args)
{
    if (fn == FN_WITHIN && args[0]->kind == EX_NUM && args[1]->kind == EX_NUM && args[2]->kind == EX_NUM)
        return ex_num(args[1]->number <= args[0]->number && args[0]->number <= args[2]->number ? 0 : -INFINITY);
    if (fn != FN_if_else) return NULL;
    if (args[0]->kind == EX_NUM) return args[0]->number != 0 ? args[1] : args[2];
    return args[1] == args[2] ? args[1] : NULL;
}

Expr *ex_call(const char *name, int n, Expr *const *args)
{
    name = intern(name);
    FunctionId fn = function_id(name);
    if (n == 1 && fn == FN_abs) {
        name = intern("fabs");
        fn = FN_fabs;
    }
    Expr *simple = n == 1   ? simpler_of_one(fn, name, args[0])
                   : n == 2 ? simpler_of_two(fn, name, args)
                   : n == 3 ? simpler_of_three(fn, args)
                            : NULL;
    return simple ? simple : expr_cons((Expr){.kind = EX_CALL, .name = name, .fn = fn, .nargs = n, .args = (Expr **)args});
}

// Is c, or c with its sides changed, one of the conditions that `all` joins by `by`?
static bool joins(const Expr *all, FunctionId by, const Expr *c)
{
    if (all == c) return true;
    if (all->kind != EX_CALL) return false;
    if (all->fn == by) return joins(all->args[0], by, c) || joins(all->args[1], by, c);
    return all->fn == FN_EQ && c->kind == EX_CALL && c->fn == FN_EQ && all->args[0] == c->args[1] && all->args[1] == c->args[0];
}

Expr *ex_both(Expr *a, Expr *b)
{
    if (!a || !b) return a ? a : b;
    return ex_is_num(b, 1) || joins(a, FN_AND, b) ? a : ex_is_num(a, 1) ? b : ex_call2("&&", a, b);
}

Expr *ex_either(Expr *a, Expr *b) { return !a ? b : joins(a, FN_OR, b) ? a : ex_call2("||", a, b); }

// The smaller (or larger) of two ends.
Expr *ex_inner(Expr *a, Expr *b, bool smaller)
{
    if (a->kind != EX_NUM || b->kind != EX_NUM) return ex_call2(smaller ? "fmin" : "fmax", a, b);
    return (a->number < b->number) == smaller ? a : b;
}

Expr *ex_within(Expr *x, Expr *lo, Expr *hi) { return ex_call3("within", x, lo ? lo : ex_num(-INFINITY), hi ? hi : ex_num(INFINITY)); }

Expr *ex_call1(const char *name, Expr *a) { return ex_call(name, 1, &a); }
Expr *ex_call2(const char *name, Expr *a, Expr *b) { return ex_call(name, 2, (Expr *[]){a, b}); }
Expr *ex_call3(const char *name, Expr *a, Expr *b, Expr *c) { return ex_call(name, 3, (Expr *[]){a, b, c}); }

// ---- reductions and arrays ----

Index *index_of_loop(const char *name, Expr *lo, Expr *hi, Expr **value)
{
    const bool below = begins_below(lo);
    Index *i = below ? index_new(name, ex_num(1), ex_add2(ex_sub(hi, lo), ex_num(1))) : index_new(name, lo, hi);
    i->written = true;
    *value = below ? ex_add2(ex_sub(ex_index(i), ex_num(1)), lo) : ex_index(i);
    return i;
}

// Gives the reduction its canonical index. What has just been put into the body may have made the reductions there higher than it was. Then
// one of them would bind the index of a reduction around it. That one is about to be rebuilt: this height is passed over, and taken
// again once the index around is another one.
static Expr *bind(ExprKind kind, const char *name, Index *i, Expr *lo, Expr *hi, Expr *body)
{
    for (;;) {
        int height = 1 + body->height;
        if (lo && lo->height >= height) height = lo->height + 1;
        if (hi->height >= height) height = hi->height + 1;
        Index *b;
        while ((b = index_bound(height, kind == EX_REDUCE ? index_least(lo) : 1)) != i && ex_mentions_index(body, b)) height++;
        if (b == i) break;
        body = ex_replace_index(body, i, ex_index(b));
        i = b;
    }
    if (kind == EX_REDUCE)
        return expr_cons((Expr){
            .kind = kind, .name = intern(name), .fn = function_id(intern(name)), .index = i, .nargs = 3, .args = (Expr *[]){lo, hi, body}});
    return expr_cons((Expr){.kind = kind, .index = i, .nargs = 2, .args = (Expr *[]){hi, body}});
}

// A sum gives away what does not depend on its index and falls apart over the terms of its body only when asked
// (see poly.c); a body free of the index is multiplied by the extent.
static bool is_factor(const Expr *e, Expr *n)
{
    return e->kind == EX_AT && e->nargs == 3 && e->args[0]->kind == EX_CALL && e->args[0]->fn == FN_cholesky_decompose &&
           ex_dim(e->args[0], 0) == n;
}

// L the Cholesky factor of A: sum(k, L[i, k]*L[j, k]) is A[i, j], and sum(k, log(L[k, k])) half the log determinant of A.
static Expr *sum_of_factor(const Index *k, Expr *n, const Expr *body)
{
    Expr *const at = ex_index((Index *)k);
    const bool square = body->kind == EX_POW && body->number == 2, log = body->kind == EX_CALL && body->fn == FN_log;
    const Expr *a = square || log || (body->kind == EX_MUL && body->nargs == 2) ? body->args[0] : NULL, *b = square || log ? a
                                                                                                             : a           ? body->args[1]
                                                                                                                           : NULL;
    if (!a || !is_factor(a, n) || !is_factor(b, n) || a->args[0] != b->args[0] || a->args[2] != at || b->args[2] != at ||
        ex_mentions_index(a->args[0], k))
        return NULL;
    Expr *A = a->args[0]->args[0];
    if (log) return a->args[1] == at ? ex_mul2(ex_num(0.5), ex_call1("log_determinant", A)) : NULL;
    if (ex_mentions_index(a->args[1], k) || ex_mentions_index(b->args[1], k)) return NULL;
    return ex_at(A, 2, (Expr *[]){a->args[1], b->args[1]});
}

enum { FEW_VALUES = 16 };  // of an index, for a choice by it to be looked at value by value

// sum(k in 1:3, (k == 2 ? a : 0) * x[k]) is a * x[2].
static Expr *only_term(Index *i, const Expr *lo, const Expr *hi, Expr *body)
{
    if (lo->kind != EX_NUM || hi->kind != EX_NUM || hi->number - lo->number >= FEW_VALUES) return NULL;
    const int n = body->kind == EX_MUL ? body->nargs : 1;
    for (int k = 0; k < n; k++) {
        Expr *choice = body->kind == EX_MUL ? body->args[k] : body;
        if (choice->kind != EX_CALL || choice->fn != FN_if_else || !ex_mentions_index(choice->args[0], i)) continue;
        int others = 0;  // than 0
        double at = 0;
        for (double v = lo->number; v <= hi->number && others < 2; v++) {
            if (ex_is_num(ex_replace_index(choice, i, ex_num(v)), 0)) continue;
            others++;
            at = v;
        }
        if (others < 2) return others ? ex_replace_index(body, i, ex_num(at)) : ex_num(0);
    }
    return NULL;
}

// A range may be empty by more than one: 3:T has no element where T is 1, and hi - lo + 1 is -1 there.
Expr *ex_length(Expr *lo, Expr *hi)
{
    Expr *n = ex_add(3, (Expr *[]){hi, ex_neg(lo), ex_num(1)});
    return prove_length(n) ? n : ex_call2("fmax", n, ex_num(0));
}

Expr *ex_reduce(const char *name, Index *i, Expr *lo, Expr *hi, Expr *body)
{
    if (function_id(intern(name)) == FN_sum) {
        if (!ex_mentions_index(body, i)) return ex_mul2(body, ex_length(lo, hi));
        if (lo == hi) return ex_replace_index(body, i, lo);
        if (body->kind == EX_CALL && body->fn == FN_SAME) return ex_num(1);
        if (body->kind == EX_MUL) {
            Expr **in = malloc(sizeof *in * (size_t)(2 * body->nargs)), **out = in + body->nargs;
            int nin = 0, nout = 0;
            for (int k = 0; k < body->nargs; k++)
                if (ex_mentions_index(body->args[k], i)) in[nin++] = body->args[k];
                else out[nout++] = body->args[k];
            Expr *e = NULL;
            for (int k = 0; k < nin && !e; k++)  // a row of the identity picks one term
                if (in[k]->kind == EX_CALL && in[k]->fn == FN_SAME)
                    for (int side = 0; side < 2 && !e; side++)
                        if (in[k]->args[side] == ex_index(i) && !ex_mentions_index(in[k]->args[1 - side], i))
                            e = ex_replace_index(body, i, in[k]->args[1 - side]);
            if (!e && nout > 0) e = ex_mul2(ex_mul(nout, out), ex_reduce(name, i, lo, hi, ex_mul(nin, in)));
            free(in);
            if (e) return e;
        }
        Expr *e = only_term(i, lo, hi, body);
        if (!e && ex_is_num(lo, 1)) e = sum_of_factor(i, hi, body);
        if (e) return e;
    }
    return bind(EX_REDUCE, name, i, lo, hi, body);
}

Expr *ex_array(Index *i, Expr *extent, Expr *body)
{
    // [v[.., j] for j] over v's whole dimension is v[..].
    if (body->kind == EX_REF && body->nargs > 0 && body->args[body->nargs - 1]->kind == EX_INDEX &&
        body->args[body->nargs - 1]->index == i && body->var->dim[body->nargs - 1] == extent && body->nargs == body->var->rank) {
        bool alone = true;
        for (int k = 0; k + 1 < body->nargs; k++) alone &= !ex_mentions_index(body->args[k], i);
        if (alone) return ex_ref(body->var, body->nargs - 1, body->args);
    }
    if (body->kind == EX_REF && body->nargs > 0 && body->nargs < body->var->rank && body->args[body->nargs - 1]->kind == EX_INDEX &&
        body->args[body->nargs - 1]->index == i && body->var->dim[body->nargs - 1] == extent) {
        bool alone = true;
        for (int k = 0; k + 1 < body->nargs; k++) alone &= !ex_mentions_index(body->args[k], i);
        if (alone) return ex_ref(body->var, body->nargs - 1, body->args);
    }
    // [[A[j, k] for k] for j], A a matrix that a function gives
    if (body->kind == EX_ARRAY && body->args[1]->kind == EX_AT && body->args[1]->nargs == 3) {
        Expr *at = body->args[1], *A = at->args[0];
        if (at->args[1] == ex_index(i) && at->args[2] == ex_index(body->index) && !ex_mentions_index(A, i) &&
            !ex_mentions_index(A, body->index) && ex_rank(A) == 2 && ex_dim(A, 0) == extent && ex_dim(A, 1) == body->args[0])
            return A;
    }
    if (body->kind == EX_AT && body->args[body->nargs - 1]->kind == EX_INDEX && body->args[body->nargs - 1]->index == i &&
        body->nargs == 2 && !ex_mentions_index(body->args[0], i))
        return body->args[0];
    return bind(EX_ARRAY, NULL, i, NULL, extent, body);
}

Expr *ex_open(const Expr *e, Index *fresh) { return ex_replace_index(e->args[e->nargs - 1], e->index, ex_index(fresh)); }

Expr *ex_at(Expr *array, int n, Expr *const *subscripts)
{
    if (n == 0) return array;
    if (array->kind == EX_REF && array->nargs < array->var->rank) {
        Expr *all[2 * MAX_RANK];
        memcpy(all, array->args, sizeof *all * (size_t)array->nargs);
        int take = array->var->rank - array->nargs < n ? array->var->rank - array->nargs : n;
        memcpy(all + array->nargs, subscripts, sizeof *all * (size_t)take);
        return ex_at(ex_ref(array->var, array->nargs + take, all), n - take, subscripts + take);
    }
    if (array->kind == EX_ARRAY) return ex_at(ex_replace_index(array->args[1], array->index, subscripts[0]), n - 1, subscripts + 1);
    if (array->kind == EX_CALL && array->fn == FN_inverse && n == 2) {
        Expr *c, *A;
        if (ex_scalar_multiple(array->args[0], &c, &A)) return ex_div(ex_at(ex_call1("inverse", A), 2, subscripts), c);
        const Expr *S = array->args[0], *k = subscripts[0], *l = subscripts[1];
        const bool symmetric = S->kind == EX_REF && S->nargs == S->var->rank - 2 &&
                               (S->var->constraint == CONSTRAINT_COVARIANCE || S->var->constraint == CONSTRAINT_CORRELATION);
        if (symmetric && l->kind == EX_NUM && (k->kind != EX_NUM || k->number > l->number))
            return ex_at(array, 2, (Expr *[]){subscripts[1], subscripts[0]});
    }
    if (array->kind == EX_CALL && array->fn == FN_if_else)
        return ex_call3("if_else", array->args[0], ex_at(array->args[1], n, subscripts), ex_at(array->args[2], n, subscripts));
    if (array->kind == EX_AT) {
        Expr *all[2 * MAX_RANK + 1];
        memcpy(all, array->args, sizeof *all * (size_t)array->nargs);
        memcpy(all + array->nargs, subscripts, sizeof *all * (size_t)n);
        return expr_cons((Expr){.kind = EX_AT, .nargs = array->nargs + n, .args = all});
    }
    Expr *all[2 * MAX_RANK + 1] = {array};
    memcpy(all + 1, subscripts, sizeof *all * (size_t)n);
    return expr_cons((Expr){.kind = EX_AT, .nargs = n + 1, .args = all});
}

static int call_rank(const Expr *e)
{
    if (e->fn == FN_inverse || e->fn == FN_inverse_spd || e->fn == FN_cholesky_decompose || e->fn == FN_identity_matrix ||
        e->fn == FN_ode_rk45 || e->fn == FN_ode_bdf)
        return 2;
    if (e->fn == FN_sort_asc || e->fn == FN_sort_desc || e->fn == FN_sort_indices_asc || e->fn == FN_sort_indices_desc) return 1;
    if (e->fn == FN_if_else) return ex_rank(e->args[1]);
    return 0;
}

int ex_rank(const Expr *e)
{
    switch (e->kind) {
    case EX_REF: return e->var->rank - e->nargs;
    case EX_ARRAY: return 1 + ex_rank(e->args[1]);
    case EX_AT: return ex_rank(e->args[0]) - (e->nargs - 1);
    case EX_CALL: return call_rank(e);
    case EX_NUM:
    case EX_INDEX:
    case EX_ADD:
    case EX_MUL:
    case EX_POW:
    case EX_REDUCE: return 0;
    }
    return 0;
}

Expr *ex_dim(Expr *e, int k)
{
    switch (e->kind) {
    case EX_REF: return e->var->dim[e->nargs + k];
    case EX_ARRAY: return k == 0 ? e->args[0] : ex_dim(e->args[1], k - 1);
    case EX_AT: return ex_dim(e->args[0], k + e->nargs - 1);
    case EX_CALL:
        if (e->fn == FN_if_else) return ex_dim(e->args[1], k);
        if (e->fn == FN_identity_matrix) return e->args[0];
        if (e->fn == FN_ode_rk45 || e->fn == FN_ode_bdf) return ex_dim(e->args[k ? 1 : 3], 0);
        return ex_dim(e->args[0], k);
    case EX_NUM:
    case EX_INDEX:
    case EX_ADD:
    case EX_MUL:
    case EX_POW:
    case EX_REDUCE: break;
    }
    return ex_num(1);
}

// ---- rebuilding ----

// A number before a product goes into a sum among its factors: -1/2*(-2*a + b)/c is (a - 1/2*b)/c.
// An even power of a difference that is the right way round.
static Expr *turned_power(Expr *e)
{
    const bool even = e->kind == EX_POW && fmod(e->number, 2) == 0;
    return even && ex_backward(e->args[0]) ? ex_pow(ex_neg(e->args[0]), e->number) : e;
}

// Differences of a product, the right way round.
static Expr *turned(Expr *e)
{
    bool *turn = malloc(sizeof *turn * (size_t)e->nargs);
    const int n = ex_turned(e, turn, NULL, NULL);
    bool any = n > 0;
    for (int i = 0; i < e->nargs; i++) any |= turned_power(e->args[i]) != e->args[i];
    Expr *all = any ? ex_num(1) : e;
    for (int i = 0; any && i < e->nargs; i++) all = ex_mul2(all, turn[i] ? ex_neg(e->args[i]) : turned_power(e->args[i]));
    free(turn);
    return all;
}

Expr *ex_tidy(Expr *e)
{
    if (e->kind == EX_MUL && e->args[0]->kind != EX_NUM) return turned(e);
    if (e->kind != EX_MUL) return turned_power(e);
    int into = 0;  // a minus goes to a sum that reads better with it
    for (int i = 1; i < e->nargs; i++) {
        if (e->args[i]->kind != EX_ADD) continue;
        if (!into || (e->args[0]->number < 0 && ex_backward(e->args[i]) && !ex_backward(e->args[into]))) into = i;
    }
    if (!into) return turned(e);
    Expr *rest = ex_mul2(e->args[0], e->args[into]);
    for (int k = 1; k < e->nargs; k++)
        if (k != into) rest = ex_mul2(rest, e->args[k]);
    return rest->kind == EX_MUL ? turned(rest) : rest;
}

// The same kind of expression from new arguments, in normal form again.
static Expr *rebuild(Expr *e, Expr **args)
{
    switch (e->kind) {
    case EX_NUM:
    case EX_INDEX: return e;
    case EX_REF: return ex_ref(e->var, e->nargs, args);
    case EX_ADD: return ex_add(e->nargs, args);
    case EX_MUL: return ex_mul(e->nargs, args);
    case EX_POW: return ex_pow(args[0], e->number);
    case EX_CALL: return ex_call(e->name, e->nargs, args);
    case EX_REDUCE: return ex_reduce(e->name, e->index, args[0], args[1], args[2]);
    case EX_ARRAY: return ex_array(e->index, args[0], args[1]);
    case EX_AT: return ex_at(args[0], e->nargs - 1, args + 1);
    }
    return e;
}

// Substitution rebuilds shared subexpressions once per call. What it made of them stands in a table, at most half full, that begins on the
// stack.
typedef struct {
    Expr *from, *to;
} Memo;
typedef struct {
    Expr *(*leaf)(Expr *, void *);  // what takes the place of e, or NULL: look further down
    void *with;
    const Expr *sought;  // what does not hold it stays as it is; NULL: look everywhere
    Memo *slot, few[64];
    unsigned size, count;
} Walk;

static Memo *memo(const Walk *w, const Expr *e)
{
    for (unsigned h = (unsigned)e->id * 0x9E3779B1u >> 8;; h++) {
        Memo *m = &w->slot[h & (w->size - 1)];
        if (!m->from || m->from == e) return m;
    }
}

static void remember(Walk *w, Expr *from, Expr *to)
{
    if (2 * ++w->count > w->size) {
        Memo *old = w->slot;
        const unsigned n = w->size;
        w->size = 4 * n;
        w->slot = calloc(w->size, sizeof *w->slot);
        for (unsigned i = 0; i < n; i++)
            if (old[i].from) *memo(w, old[i].from) = old[i];
        if (old != w->few) free(old);
    }
    *memo(w, from) = (Memo){from, to};
}

static Expr *walk(Expr *e, Walk *w)
{
    const Expr *s = w->sought;  // parts are older than what they are part of
    if (s && (e->id < s->id || (s->vars & ~e->vars) || (s->indices & ~e->indices))) return e;
    Expr *new = w->leaf(e, w->with);
    if (new) return new;
    if (e->nargs == 0) return e;
    const Memo *known = memo(w, e);
    if (known->from) return known->to;
    Expr *few[8], **args = e->nargs <= 8 ? few : malloc(sizeof *args * (size_t)e->nargs);
    bool changed = false;
    // in its body the index is its own
    const bool hides = s && s->kind == EX_INDEX && (e->kind == EX_REDUCE || e->kind == EX_ARRAY) && e->index == s->index;
    for (int i = 0; i < e->nargs; i++) {
        args[i] = hides && i == e->nargs - 1 ? e->args[i] : walk(e->args[i], w);
        changed |= args[i] != e->args[i];
    }
    Expr *out = changed ? rebuild(e, args) : e;
    if (args != few) free(args);
    remember(w, e, out);
    return out;
}

static Expr *walk_all(Expr *e, Expr *(*leaf)(Expr *, void *), void *with, const Expr *sought)
{
    Walk w = {.leaf = leaf, .with = with, .sought = sought, .size = 64};
    w.slot = w.few;
    Expr *out = walk(e, &w);
    if (w.slot != w.few) free(w.slot);
    return out;
}

static Expr *replace_leaf(Expr *e, void *with)
{
    Expr **pair = with;
    return e == pair[0] ? pair[1] : NULL;
}

Expr *ex_replace(Expr *e, Expr *from, Expr *to) { return walk_all(e, replace_leaf, (Expr *[]){from, to}, from); }
Expr *ex_replace_index(Expr *e, Index *from, Expr *to) { return ex_replace(e, ex_index(from), to); }
Expr *ex_map(Expr *e, Expr *(*f)(Expr *, void *), void *with) { return walk_all(e, f, with, NULL); }
