// expr.c -- constructors that keep expressions in normal form; substitution; printing.
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "expr.h"
#include "var.h"
#include "prover.h"

// ---- the table of all expressions ----

static struct { Arena *arena; Expr **slot; unsigned size, count; int next_id, next_index, nbound, bound_size, level; Index **bound; uint64_t walks; bool settled; } table;     // level: walks under way

void expr_start(Arena *a)
{
    table.arena = a;
    table.size = 1u << 12;
    table.slot = NEW_N(a, Expr *, table.size);
    table.count = 0;
    table.next_id = table.next_index = table.nbound = table.bound_size = 0;
    table.bound = NULL;
    table.walks = 0;
    table.settled = false;
    table.level = 0;
}

static unsigned mix(unsigned h, uint64_t v)
{
    v *= 0x9E3779B97F4A7C15ull;              // of a double like 0.5 only the first bits are not 0: they reach all places
    v = (v ^ v >> 32) * 0x9E3779B97F4A7C15ull;
    return (h ^ (unsigned)(v >> 32)) * 0x01000193u + (unsigned)v;
}

static unsigned hash_of(const Expr *e)
{
    uint64_t bits;
    memcpy(&bits, &e->number, sizeof bits);
    unsigned h = mix(17u + (unsigned)e->kind, bits);
    h = mix(h, (uintptr_t)e->name);
    h = mix(h, (uintptr_t)e->var);               // not its number: local variables of kernels have one for all
    h = mix(h, e->index ? (uint64_t)e->index->id + 1 : 0);
    for (int i = 0; i < e->nargs; i++) h = mix(h, (uint64_t)e->args[i]->id);
    return h;
}

static bool same(const Expr *a, const Expr *b)
{
    if (a->hash != b->hash || a->kind != b->kind || a->nargs != b->nargs || a->name != b->name || a->var != b->var ||
        a->index != b->index || memcmp(&a->number, &b->number, sizeof a->number) != 0)
        return false;
    for (int i = 0; i < a->nargs; i++)
        if (a->args[i] != b->args[i]) return false;
    return true;
}

static void grow(void)
{
    unsigned size = table.size * 2;
    Expr **slot = NEW_N(table.arena, Expr *, size);
    for (unsigned i = 0; i < table.size; i++)
        for (Expr *e = table.slot[i], *next; e; e = next) {
            next = e->chain;
            e->chain = slot[e->hash & (size - 1)];
            slot[e->hash & (size - 1)] = e;
        }
    table.slot = slot;
    table.size = size;
}

// The one expression equal to `draft`; draft's arguments are copied.
static Expr *cons(Expr draft)
{
    draft.hash = hash_of(&draft);
    for (Expr *e = table.slot[draft.hash & (table.size - 1)]; e; e = e->chain)
        if (same(e, &draft)) return e;
    if (++table.count > table.size) grow();
    Expr *e = NEW(table.arena, Expr);
    Expr **args = draft.args;
    *e = draft;
    e->id = table.next_id++;
    e->args = NEW_N(table.arena, Expr *, draft.nargs + 1);
    e->vars = draft.var ? 1ull << (draft.var->id & 63) : 0;
    e->indices = draft.kind == EX_INDEX ? 1ull << (draft.index->id & 63) : 0;
    e->size = 1;
    e->seen = e->met[0] = e->met[1] = e->met[2] = e->kept = 0;
    e->extent = false;
    e->known = e->diverges[0] = e->diverges[1] = 0;
    e->loose = draft.kind == EX_INDEX ? draft.index->height : 0;
    e->height = 0;
    for (int i = 0; i < draft.nargs; i++) {
        e->args[i] = args[i];
        e->vars |= args[i]->vars;
        e->indices |= args[i]->indices;
        e->size += args[i]->size;
        if (args[i]->height > e->height) e->height = args[i]->height;
        const bool binds = (draft.kind == EX_REDUCE || draft.kind == EX_ARRAY) && i == draft.nargs - 1 && args[i]->loose == draft.index->height;
        if (!binds && args[i]->loose > e->loose) e->loose = args[i]->loose;
    }
    if (e->kind == EX_REDUCE || e->kind == EX_ARRAY) e->height = e->index->height;
    e->chain = table.slot[e->hash & (table.size - 1)];
    table.slot[e->hash & (table.size - 1)] = e;
    return e;
}

// What an index that begins at lo is never below. Dimensions of arrays (NULL) begin at 1.
static int least_from(const Expr *lo)
{
    if (!lo) return 1;
    if (lo->kind == EX_NUM) return lo->number >= 1 ? 1 : lo->number >= 0 ? 0 : -1;
    if (lo->kind == EX_INDEX) return lo->index->least;
    if (!ex_positive(lo)) return -1;
    const bool one = lo->kind == EX_ADD ? lo->args[0]->kind == EX_NUM && lo->args[0]->number >= 1 : lo->kind == EX_REF && lo->var->lower_number >= 1;
    return one ? 1 : 0;
}

Index *index_new(const char *name, Expr *lo, Expr *hi)
{
    Index *i = NEW(table.arena, Index);
    *i = (Index){.name = name, .lo = lo, .hi = hi, .id = table.next_index++, .least = least_from(lo)};
    return i;
}

bool begins_below(const Expr *lo)
{
    if (lo->kind != EX_ADD) return lo->kind == EX_NUM ? lo->number < 1 : lo->kind == EX_MUL && lo->args[0]->kind == EX_NUM && lo->args[0]->number < 0;
    bool all = true;
    for (int i = lo->args[0]->kind == EX_NUM; i < lo->nargs; i++) all &= begins_below(lo->args[i]);
    return all;
}

Index *index_of_loop(const char *name, Expr *lo, Expr *hi, Expr **turn)
{
    const bool below = begins_below(lo);
    Index *i = below ? index_new(name, ex_num(1), ex_add2(ex_sub(hi, lo), ex_num(1))) : index_new(name, lo, hi);
    *turn = below ? ex_add2(ex_sub(ex_index(i), ex_num(1)), lo) : ex_index(i);
    return i;
}

Index **index_list(Arena *a, Index *const *list, int n, int room)
{
    Index **copy = NEW_N(a, Index *, n + room);
    if (n) memcpy(copy, list, sizeof *copy * (size_t)n);
    return copy;
}

// The canonical index of reductions of this height, over values from `least` on.
static Index *bound(int height, int least)
{
    static const char *const names[] = {"", "j", "k", "l", "m", "n"};
    const int at = 3 * height + least + 1;
    while (table.nbound <= at) {
        ROOM(table.arena, table.bound, table.nbound, table.bound_size);
        table.bound[table.nbound++] = NULL;
    }
    if (!table.bound[at]) {
        Index *i = index_new(height <= 5 ? intern(names[height]) : intern(arena_printf(table.arena, "j%d", height)), NULL, NULL);
        i->height = height;
        i->least = least;
        table.bound[at] = i;
    }
    return table.bound[at];
}

// A walk over an expression visits what is shared once: true the first time that it comes to e.
static bool first_visit(const Expr *e, uint64_t walk)
{
    if (e->seen == walk) return false;
    ((Expr *)e)->seen = walk;
    return true;
}

// ---- leaves ----

Expr *ex_num(double v) { return cons((Expr){.kind = EX_NUM, .number = v == 0 ? 0 : v}); }
Expr *ex_index(Index *i) { return cons((Expr){.kind = EX_INDEX, .index = i}); }

Expr *ex_ref(Var *v, int n, Expr *const *subscripts)
{
    return cons((Expr){.kind = EX_REF, .var = v, .nargs = n, .args = (Expr **)subscripts});
}

bool ex_is_num(const Expr *e, double v) { return e->kind == EX_NUM && e->number == v; }

bool ex_is_whole(const Expr *e)
{
    if (e->kind == EX_NUM) return e->number == floor(e->number);
    if (e->kind == EX_REF) return e->var->base == BASE_INT;
    for (int i = 0; i < e->nargs && (e->kind == EX_ADD || e->kind == EX_MUL); i++)
        if (!ex_is_whole(e->args[i])) return false;
    return e->kind == EX_ADD || e->kind == EX_MUL || e->kind == EX_INDEX;
}

// 1 - p, 1 - 0.3*p - q: a number less multiples of continuous variables, none of which takes away more than its upper bound times its coefficient.
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
static bool from_first(const Expr *e) { return e->nargs == 2 && e->args[0]->kind == EX_NUM && e->args[1]->kind == EX_INDEX && e->args[0]->number + e->args[1]->index->least >= 0; }

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
    case EX_CALL:
        return e->fn == FN_pow ? positive(e->args[0], walk) : sign_not_negative(function_rows[e->fn].sign);
    case EX_REDUCE: return positive(e->args[2], walk);
    case EX_ARRAY: return positive(e->args[1], walk);
    case EX_AT: return false;
    }
    return false;
}

bool ex_positive(const Expr *e) { return positive(e, ++table.walks); }

// ---- numbers ----

// A computed number, freed of its rounding: 0.2 * 0.2 is 0.04000000000000001, and is taken to be 0.04. If v is within a few units in the last place of a
// decimal of at most 12 digits, or of a fraction with a divisor of at most 1000, that is what was meant. Fewer than 1 in 1000 other numbers
// are as close to one of these; they move by no more than their own rounding. Equal coefficients that were computed along different ways become one.
static double tidy(double v)
{
    if (v == 0 || !isfinite(v) || (v == floor(v) && fabs(v) < 1e15)) return v;
    const double close = 2 * DBL_EPSILON * fabs(v);
    char s[32];
    snprintf(s, sizeof s, "%.12g", v);
    double decimal = strtod(s, NULL);
    if (fabs(decimal - v) <= close) return decimal;
    double x = fabs(v), n = 1, d = 0, older_n = 0, older_d = 1;          // as close a fraction is a convergent of the continued fraction of v
    for (;;) {
        const double whole = floor(x), next_n = whole * n + older_n, next_d = whole * d + older_d;
        if (next_n >= 1000 || next_d > 1000) return v;
        older_n = n;
        older_d = d;
        n = next_n;
        d = next_d;
        const double fraction = copysign(n / d, v);
        if (n != 0 && d >= 3 && fabs(fraction - v) <= close) return fraction;
        if (x == whole) return v;
        x = 1 / (x - whole);
    }
}

// ---- sums ----

static Expr *scaled(double c, Expr *e);

// A term of a sum as number times the rest.
static double split_number(Expr *e, Expr **rest)
{
    if (e->kind == EX_NUM) { *rest = NULL; return e->number; }
    if (e->kind == EX_MUL && e->args[0]->kind == EX_NUM) {
        *rest = e->nargs == 2 ? e->args[1] : cons((Expr){.kind = EX_MUL, .nargs = e->nargs - 1, .args = e->args + 1});
        return e->args[0]->number;
    }
    *rest = e;
    return 1;
}

typedef struct { Expr *rest; double number; } Portion;

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

// 1 - p without the difference, where p near 1 would leave nothing: 1 - inv_logit(x) = inv_logit(-x), 1 - Phi(x) = Phi(-x), 1 - a/(a + b) = b/(a + b). NULL: it is not known how.
static Expr *complement(const Expr *p)
{
    if (p->kind == EX_CALL && (p->fn == FN_inv_logit || p->fn == FN_Phi)) return ex_call1(p->name, ex_neg(p->args[0]));
    if (p->kind != EX_MUL) return NULL;
    Expr *d, *n = numerator(p, &d);
    if (d->kind != EX_ADD) return NULL;
    Expr *rest = ex_sub(d, n);
    return rest->kind == EX_ADD || rest->kind == EX_NUM ? rest->kind == EX_NUM && rest->number > 0 ? ex_mul2(rest, ex_pow(d, -1)) : NULL : ex_mul2(rest, ex_pow(d, -1));
}

Expr *ex_add(int n, Expr *const *terms)
{
    int most = 0;
    for (int i = 0; i < n; i++) most += terms[i]->kind == EX_ADD ? terms[i]->nargs : 1;
    Portion *part = malloc(sizeof *part * (size_t)(most + 1));
    int count = 0;
    double constant = 0;
    for (int i = 0; i < n; i++) {
        int kids = terms[i]->kind == EX_ADD ? terms[i]->nargs : 1;
        for (int k = 0; k < kids; k++) {
            Expr *rest, *t = terms[i]->kind == EX_ADD ? terms[i]->args[k] : terms[i];
            double c = split_number(t, &rest);
            if (!rest) constant += c;
            else part[count++] = (Portion){rest, c};
        }
    }
    qsort(part, (size_t)count, sizeof *part, by_id);
    Expr **out = malloc(sizeof *out * (size_t)(count + 2));
    int m = 0;
    if (constant != 0) out[m++] = ex_num(tidy(constant));
    for (int i = 0; i < count;) {
        double c = 0;
        Expr *rest = part[i].rest;
        for (; i < count && part[i].rest == rest; i++) c += part[i].number;
        if (c != 0) out[m++] = scaled(tidy(c), rest);
    }
    Expr *rest, *e = m == 2 && ex_is_num(out[0], 1) && split_number(out[1], &rest) == -1 ? complement(rest) : NULL;
    if (!e) e = m == 0 ? ex_num(0) : m == 1 ? out[0] : cons((Expr){.kind = EX_ADD, .nargs = m, .args = out});
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
    if (e->kind == EX_NUM) return ex_num(tidy(c * e->number));
    if (e->kind == EX_ADD) {
        Expr **t = malloc(sizeof *t * (size_t)e->nargs);
        for (int i = 0; i < e->nargs; i++) {
            Expr *rest;
            double k = split_number(e->args[i], &rest);
            t[i] = rest ? scaled(tidy(c * k), rest) : ex_num(tidy(c * k));
        }
        Expr *s = cons((Expr){.kind = EX_ADD, .nargs = e->nargs, .args = t});
        free(t);
        return s;
    }
    int n = e->kind == EX_MUL ? e->nargs : 1;
    Expr **f = malloc(sizeof *f * (size_t)(n + 1));
    f[0] = ex_num(c);
    if (e->kind == EX_MUL) memcpy(f + 1, e->args, sizeof *f * (size_t)n);
    else f[1] = e;
    Expr *p = cons((Expr){.kind = EX_MUL, .nargs = n + 1, .args = f});
    free(f);
    return p;
}

// The number that comes out of a sum in a product, where it leaves fewer numbers in it: 2 of 2*a - 4*b, -1 of -a - b, 1 of y - 1/2. What begins with 1, 1 - p/2, is looked for as it is.
static double common_factor(const Expr *sum)
{
    const double most_times = 1000, most = 1e15;      // numbers of about one size, of which no power overflows
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
        const double k = split_number(sum->args[i], &rest) / c;
        t[i] = rest ? scaled(k, rest) : ex_num(k);
    }
    Expr *s = cons((Expr){.kind = EX_ADD, .nargs = sum->nargs, .args = t});
    free(t);
    return s;
}

static bool is_whole(double r) { return r == floor(r); }

// x^r for a whole r, where it came from a root or a log: for x < 0 there is no value. If an unknown x may be so, exp(r*log(x)) says it.
static Expr *power_of_positive(Expr *x, double r)
{
    if (ex_positive(x) || ex_data_only(x)) return ex_pow(x, r);
    Expr *e = ex_mul2(ex_num(r), ex_log(x));
    return cons((Expr){.kind = EX_CALL, .name = intern("exp"), .fn = FN_exp, .nargs = 1, .args = &e});
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
            if (f->kind == EX_NUM) number *= f->number;
            else if (f->kind == EX_POW) part[count++] = (Portion){f->args[0], f->number};
            else part[count++] = (Portion){f, 1};
        }
    }
    if (number == 0) { free(part); return ex_num(0); }
    number = tidy(number);
    qsort(part, (size_t)count, sizeof *part, by_id);
    Expr **out = malloc(sizeof *out * (size_t)(count + 1));
    int m = 0;
    bool again = false;
    for (int i = 0; i < count;) {
        double exponent = 0;
        Expr *base = part[i].rest;
        bool broken = false;                     // sqrt(x)*sqrt(x) has no value where x < 0
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
    for (int i = 0; i < m && m > 1; i++) {       // x*(2*a - 2*b) is 2*x*(a - b)
        const double common = out[i]->kind == EX_ADD ? common_factor(out[i]) : 1;
        if (common == 1) continue;
        out[i] = divided(out[i], common);
        number *= common;
        again = true;
    }
    Expr *e;
    if (again) {
        out[m] = ex_num(number);
        e = ex_mul(m + 1, out);
    } else {
        e = m == 0 ? ex_num(number) : scaled(number, m == 1 ? out[0] : cons((Expr){.kind = EX_MUL, .nargs = m, .args = out}));
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
        if (isfinite(v)) return ex_num(tidy(v));
        break;
    }
    case EX_POW:          // (x^a)^r = x^(a r): always for integer r; otherwise only if x^a is not the square of a negative number
        if (is_whole(base->number * r) && !(integer && is_whole(base->number))) {
            if (integer || ex_positive(base->args[0]) || fmod(base->number, 2) != 0) return power_of_positive(base->args[0], base->number * r);
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
    case EX_ADD: {        // 1/(1 + exp(e)) = inv_logit(-e)
        if (r == -1 && base->nargs == 2 && ex_is_num(base->args[0], 1) && base->args[1]->kind == EX_CALL &&
            base->args[1]->fn == FN_exp)
            return ex_call1("inv_logit", ex_neg(base->args[1]->args[0]));
        const double common = integer ? common_factor(base) : 1, out = pow(common, r);
        if (common != 1 && isnormal(out)) return ex_mul2(ex_num(tidy(out)), ex_pow(divided(base, common), r));
        break;
    }
    case EX_REF: case EX_INDEX: case EX_REDUCE: case EX_ARRAY: case EX_AT: break;
    }
    return cons((Expr){.kind = EX_POW, .number = r, .nargs = 1, .args = &base});
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

// ---- calls ----

// exp(x), a number above 0, their product
static bool is_exponential(const Expr *e)
{
    if (e->kind == EX_NUM) return e->number > 0;
    if (e->kind == EX_MUL && e->nargs == 2) return e->args[0]->kind == EX_NUM && is_exponential(e->args[0]) && is_exponential(e->args[1]);
    return e->kind == EX_CALL && e->fn == FN_exp;
}

Expr *ex_log(Expr *a)
{
    if (a->kind == EX_NUM && a->number > 0) return ex_num(log(a->number));
    if (a->kind == EX_POW && (ex_positive(a->args[0]) || fmod(a->number, 2) != 0))
        return ex_mul2(ex_num(a->number), ex_log(a->args[0]));
    if (a->kind == EX_MUL) {
        int positive = 0;
        bool negative = false;                 // -z of a z that is not negative: the whole is 0, or has no log
        for (int i = 0; i < a->nargs; i++) {
            positive += ex_positive(a->args[i]);
            negative |= a->args[i]->kind == EX_NUM && a->args[i]->number < 0;
        }
        if (positive >= a->nargs - 1 && !(negative && positive == a->nargs - 1)) {        // the whole is positive, so the last one is too
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
    if (a->kind == EX_REDUCE && a->fn == FN_prod && ex_positive(a->args[2])) {      // log of a product: the sum of the logs
        Index *j = index_new(a->index->name, a->args[0], a->args[1]);
        return ex_reduce("sum", j, j->lo, j->hi, ex_log(ex_open(a, j)));
    }
    if (a->kind == EX_ADD && a->nargs == 2 && ex_is_num(a->args[0], 1)) {      // log(1 - x)
        Expr *rest;
        if (split_number(a->args[1], &rest) == -1) return ex_call1("log1m", rest);
    }
    if (a->kind == EX_ADD && a->nargs == 2 && is_exponential(a->args[0]) && is_exponential(a->args[1]))       // log(exp(x) + exp(y))
        return ex_is_num(a->args[0], 1) ? ex_call1("log1p_exp", ex_log(a->args[1])) : ex_call2("log_sum_exp2", ex_log(a->args[0]), ex_log(a->args[1]));
    return cons((Expr){.kind = EX_CALL, .name = intern("log"), .fn = FN_log, .nargs = 1, .args = &a});
}

static bool is_inverse(const Expr *e) { return e->kind == EX_CALL && e->nargs == 1 && e->fn == FN_inverse; }

// (t * exp(b) * m^a)^r = t^r * exp(r b) * m^(r a), for t and m > 0: what is a power itself leaves the product, so that recognition sees m. Plain factors stay together,
// since x / sigma is of order 1 where x^r and sigma^-r need not be.
static Expr *power_of_product(Expr *base, Expr *r)
{
    if (base->kind == EX_CALL && base->nargs == 1 && base->fn == FN_exp) return ex_call1("exp", ex_mul2(r, base->args[0]));
    if (base->kind == EX_CALL && base->nargs == 2 && base->fn == FN_pow && ex_positive(base->args[0])) return ex_call2("pow", base->args[0], ex_mul2(r, base->args[1]));
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
        if (!ex_mentions_index(f, e->index) && !ex_mentions_index(f, inner->index)) { c = ex_mul2(c, f); continue; }
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
        [FN_exp] = exp, [FN_lgamma] = lgamma, [FN_fabs] = fabs, [FN_floor] = floor, [FN_ceil] = ceil, [FN_sin] = sin, [FN_cos] = cos,
        [FN_tan] = tan, [FN_log1p] = log1p, [FN_expm1] = expm1, [FN_tanh] = tanh, [FN_round] = round, [FN_erf] = erf, [FN_erfc] = erfc};
    if (!known[fn]) return false;
    *out = known[fn](x);
    return isfinite(*out);
}

static bool constant2(FunctionId fn, double a, double b, double *out)
{
    switch (fn) {
    case FN_EQ: case FN_AT_END: *out = a == b; break;
    case FN_NE: *out = a != b; break;
    case FN_LT: case FN_IN_TAIL: *out = a < b; break;
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

Expr *ex_call(const char *name, int n, Expr *const *args)
{
    double v;
    name = intern(name);
    FunctionId fn = function_id(name);
    if (n == 1) {
        Expr *x = args[0];
        if (fn == FN_log) return ex_log(x);
        if (fn == FN_sqrt) return ex_pow(x, 0.5);
        if (fn == FN_square) return ex_pow(x, 2);
        if (fn == FN_inv) return ex_pow(x, -1);
        if (fn == FN_inv_sqrt) return ex_pow(x, -0.5);
        if (fn == FN_inv_square) return ex_pow(x, -2);
        if (fn == FN_NOT && x->kind == EX_NUM) return ex_num(x->number == 0);
        if (fn == FN_abs) { name = intern("fabs"); fn = FN_fabs; }
        if (fn == FN_exp && x->kind == EX_CALL && x->fn == FN_log) return power_of_positive(x->args[0], 1);
        if (fn == FN_exp && x->kind == EX_MUL && x->nargs == 2 && x->args[0]->kind == EX_NUM &&
            x->args[1]->kind == EX_CALL && x->args[1]->fn == FN_log)
            return is_whole(x->args[0]->number) ? power_of_positive(x->args[1]->args[0], x->args[0]->number) : ex_pow(x->args[1]->args[0], x->args[0]->number);
        if (fn == FN_log1m && x->kind == EX_CALL && x->fn == FN_inv_cloglog) return ex_neg(ex_call1("exp", x->args[0]));
        if (fn == FN_log1m && x->kind == EX_CALL && x->fn == FN_inv_logit)
            return ex_call1("log_inv_logit", ex_neg(x->args[0]));
        if (fn == FN_log1m && x->kind == EX_CALL && x->fn == FN_Phi)
            return ex_call1("log_Phi", ex_neg(x->args[0]));
        if (fn == FN_log1m && x->kind == EX_CALL && x->fn == FN_if_else)
            return ex_call3("if_else", x->args[0], ex_call1(name, x->args[1]), ex_call1(name, x->args[2]));
        if (fn == FN_log1m && x->kind == EX_ADD && x->nargs == 2 && ex_is_num(x->args[0], 1))
            return ex_log(ex_sub(ex_num(1), x));
        if (fn == FN_log1m && x->kind == EX_CALL && x->fn == FN_exp) return ex_call1("log1m_exp", x->args[0]);
        if (fn == FN_log1m) {
            Expr *rest = complement(x);
            if (rest) return ex_log(rest);
        }
        if (fn == FN_log1p) {
            Expr *simple = log1p_ratio(x), *less;
            if (simple) return simple;
            if (split_number(x, &less) == -1) return ex_call1("log1m", less);
            if (is_exponential(x)) return ex_call1("log1p_exp", ex_log(x));
        }
        if (fn == FN_inverse && is_inverse(x)) return x->args[0];
        if (fn == FN_log_determinant && is_inverse(x)) return ex_neg(ex_call1(name, x->args[0]));
        if (fn == FN_log_determinant) {
            Expr *c, *A;
            if (ex_scalar_multiple(x, &c, &A)) return ex_add2(ex_mul2(ex_length(ex_num(1), ex_dim(A, 0)), ex_log(c)), ex_call1(name, A));
        }
        if (fn == FN_log1p_exp) return ex_neg(ex_call1("log_inv_logit", ex_neg(x)));
        if (fn == FN_logit && x->kind == EX_CALL && x->fn == FN_inv_logit) return x->args[0];
        if (fn == FN_inv_Phi && x->kind == EX_CALL && x->fn == FN_Phi) return x->args[0];
        if (fn == FN_log1m && x->kind == EX_NUM && x->number < 1) return ex_num(log1p(-x->number));
        if (x->kind == EX_NUM && constant1(fn, x->number, &v)) return ex_num(v);
    }
    if (n == 2 && args[0]->kind == EX_NUM && args[1]->kind == EX_NUM && constant2(fn, args[0]->number, args[1]->number, &v))
        return ex_num(v);
    if (n == 2 && is_comparison(fn) && ex_is_whole(args[0]) && ex_is_whole(args[1])) {       // 2 <= 1 + k is 1 <= k
        const Expr *apart = ex_sub(args[0], args[1]);
        if (apart->kind == EX_NUM) return ex_num(fn == FN_EQ ? apart->number == 0 : fn == FN_NE ? apart->number != 0 : fn == FN_LT ? apart->number < 0 : apart->number <= 0);
        for (int i = 0; i < 2; i++)
            if (args[i]->kind == EX_NUM && args[1 - i]->kind == EX_ADD && args[1 - i]->args[0]->kind == EX_NUM) {
                Expr *less = ex_neg(args[1 - i]->args[0]), *both[2] = {ex_add2(args[0], less), ex_add2(args[1], less)};
                return ex_call(name, 2, both);
            }
    }
    if (n == 2 && fn == FN_fmax && args[1]->kind == EX_NUM && args[0]->kind == EX_CALL && args[0]->fn == FN_fmax && args[0]->args[1]->kind == EX_NUM)
        return ex_call2("fmax", args[0]->args[0], ex_num(fmax(args[0]->args[1]->number, args[1]->number)));
    if (n == 2 && fn == FN_lbeta && (ex_is_num(args[0], 1) || ex_is_num(args[1], 1)))
        return ex_neg(ex_log(args[ex_is_num(args[0], 1)]));
    if (n == 2 && fn == FN_SAME && args[0] == args[1]) return ex_num(1);
    if (n == 2 && fn == FN_pow && args[1]->kind == EX_NUM) return ex_pow(args[0], args[1]->number);
    if (n == 2 && fn == FN_pow) {
        if (ex_is_num(args[0], 1)) return args[0];
        Expr *simple = power_of_product(args[0], args[1]);
        if (simple) return simple;
    }
    if (n == 3 && fn == FN_WITHIN && args[0]->kind == EX_NUM && args[1]->kind == EX_NUM && args[2]->kind == EX_NUM)
        return ex_num(args[1]->number <= args[0]->number && args[0]->number <= args[2]->number ? 0 : -INFINITY);
    if (n == 3 && fn == FN_if_else) {
        if (args[0]->kind == EX_NUM) return args[0]->number != 0 ? args[1] : args[2];
        if (args[1] == args[2]) return args[1];
    }
    return cons((Expr){.kind = EX_CALL, .name = name, .fn = fn, .nargs = n, .args = (Expr **)args});
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

Expr *ex_within(Expr *x, Expr *lo, Expr *hi)
{
    return ex_call3("within", x, lo ? lo : ex_num(-INFINITY), hi ? hi : ex_num(INFINITY));
}

Expr *ex_call1(const char *name, Expr *a) { return ex_call(name, 1, &a); }
Expr *ex_call2(const char *name, Expr *a, Expr *b) { return ex_call(name, 2, (Expr *[]){a, b}); }
Expr *ex_call3(const char *name, Expr *a, Expr *b, Expr *c) { return ex_call(name, 3, (Expr *[]){a, b, c}); }

// ---- reductions and arrays ----

// Gives the reduction its canonical index. What has just been put into the body may have made the reductions there higher than it was, so that one of them would bind the index of
// a reduction around it, which is about to be rebuilt: that height is passed over, and taken again once the index around is another one.
static Expr *bind(ExprKind kind, const char *name, Index *i, Expr *lo, Expr *hi, Expr *body)
{
    for (;;) {
        int height = 1 + body->height;
        if (lo && lo->height >= height) height = lo->height + 1;
        if (hi->height >= height) height = hi->height + 1;
        Index *b;
        while ((b = bound(height, kind == EX_REDUCE ? least_from(lo) : 1)) != i && ex_mentions_index(body, b)) height++;
        if (b == i) break;
        body = ex_replace_index(body, i, ex_index(b));
        i = b;
    }
    if (kind == EX_REDUCE) return cons((Expr){.kind = kind, .name = intern(name), .fn = function_id(intern(name)), .index = i, .nargs = 3, .args = (Expr *[]){lo, hi, body}});
    return cons((Expr){.kind = kind, .index = i, .nargs = 2, .args = (Expr *[]){hi, body}});
}

// A sum gives away what does not depend on its index and falls apart over the terms of its body only when asked
// (see poly.c); a body free of the index is multiplied by the extent.
static bool is_factor(const Expr *e, Expr *n) { return e->kind == EX_AT && e->nargs == 3 && e->args[0]->kind == EX_CALL && e->args[0]->fn == FN_cholesky_decompose && ex_dim(e->args[0], 0) == n; }

// L the Cholesky factor of A: sum(k, L[i, k]*L[j, k]) is A[i, j], and sum(k, log(L[k, k])) half the log determinant of A.
static Expr *sum_of_factor(const Index *k, Expr *n, const Expr *body)
{
    Expr *const at = ex_index((Index *)k);
    const bool square = body->kind == EX_POW && body->number == 2, log = body->kind == EX_CALL && body->fn == FN_log;
    const Expr *a = square || log || (body->kind == EX_MUL && body->nargs == 2) ? body->args[0] : NULL, *b = square || log ? a : a ? body->args[1] : NULL;
    if (!a || !is_factor(a, n) || !is_factor(b, n) || a->args[0] != b->args[0] || a->args[2] != at || b->args[2] != at || ex_mentions_index(a->args[0], k)) return NULL;
    Expr *A = a->args[0]->args[0];
    if (log) return a->args[1] == at ? ex_mul2(ex_num(0.5), ex_call1("log_determinant", A)) : NULL;
    if (ex_mentions_index(a->args[1], k) || ex_mentions_index(b->args[1], k)) return NULL;
    return ex_at(A, 2, (Expr *[]){a->args[1], b->args[1]});
}

enum { FEW_VALUES = 16 };                // of an index, for a choice by it to be looked at value by value

// sum(k in 1:3, (k == 2 ? a : 0) * x[k]) is a * x[2].
static Expr *only_term(Index *i, const Expr *lo, const Expr *hi, Expr *body)
{
    if (lo->kind != EX_NUM || hi->kind != EX_NUM || hi->number - lo->number >= FEW_VALUES) return NULL;
    const int n = body->kind == EX_MUL ? body->nargs : 1;
    for (int k = 0; k < n; k++) {
        Expr *choice = body->kind == EX_MUL ? body->args[k] : body;
        if (choice->kind != EX_CALL || choice->fn != FN_if_else || !ex_mentions_index(choice->args[0], i)) continue;
        int others = 0;                  // than 0
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
            for (int k = 0; k < nin && !e; k++)          // a row of the identity picks one term
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
    if (body->kind == EX_ARRAY && body->args[1]->kind == EX_AT && body->args[1]->nargs == 3) {       // [[A[j, k] for k] for j], A a matrix that a function gives
        Expr *at = body->args[1], *A = at->args[0];
        if (at->args[1] == ex_index(i) && at->args[2] == ex_index(body->index) && !ex_mentions_index(A, i) && !ex_mentions_index(A, body->index) && ex_rank(A) == 2 &&
            ex_dim(A, 0) == extent && ex_dim(A, 1) == body->args[0]) return A;
    }
    if (body->kind == EX_AT && body->args[body->nargs - 1]->kind == EX_INDEX && body->args[body->nargs - 1]->index == i &&
        body->nargs == 2 && !ex_mentions_index(body->args[0], i))
        return body->args[0];
    return bind(EX_ARRAY, NULL, i, NULL, extent, body);
}

Expr *ex_open(const Expr *e, Index *fresh)
{
    return ex_replace_index(e->args[e->nargs - 1], e->index, ex_index(fresh));
}

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
        const bool symmetric = S->kind == EX_REF && S->nargs == S->var->rank - 2 && (S->var->constraint == CONSTRAINT_COVARIANCE || S->var->constraint == CONSTRAINT_CORRELATION);
        if (symmetric && l->kind == EX_NUM && (k->kind != EX_NUM || k->number > l->number)) return ex_at(array, 2, (Expr *[]){subscripts[1], subscripts[0]});
    }
    if (array->kind == EX_CALL && array->fn == FN_if_else)
        return ex_call3("if_else", array->args[0], ex_at(array->args[1], n, subscripts), ex_at(array->args[2], n, subscripts));
    if (array->kind == EX_AT) {
        Expr *all[2 * MAX_RANK + 1];
        memcpy(all, array->args, sizeof *all * (size_t)array->nargs);
        memcpy(all + array->nargs, subscripts, sizeof *all * (size_t)n);
        return cons((Expr){.kind = EX_AT, .nargs = array->nargs + n, .args = all});
    }
    Expr *all[2 * MAX_RANK + 1] = {array};
    memcpy(all + 1, subscripts, sizeof *all * (size_t)n);
    return cons((Expr){.kind = EX_AT, .nargs = n + 1, .args = all});
}

static int call_rank(const Expr *e)
{
    if (e->fn == FN_inverse || e->fn == FN_inverse_spd || e->fn == FN_cholesky_decompose || e->fn == FN_identity_matrix || e->fn == FN_ode_rk45 || e->fn == FN_ode_bdf) return 2;
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
    case EX_NUM: case EX_INDEX: case EX_ADD: case EX_MUL: case EX_POW: case EX_REDUCE: return 0;
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
    case EX_NUM: case EX_INDEX: case EX_ADD: case EX_MUL: case EX_POW: case EX_REDUCE: break;
    }
    return ex_num(1);
}

// ---- questions ----

static bool test_unknown(const Var *v, void *with) { (void)with; return var_unknown(v) || v->kind == VAR_PART || v->kind == VAR_ELEMENT || v->kind == VAR_SERIES || v->kind == VAR_PREDICTED; }
bool ex_unknown(const Expr *e) { return ex_any_var(e, test_unknown, NULL); }

static bool test_not_data(const Var *v, void *with) { (void)with; return v->kind != VAR_DATA && v->kind != VAR_LET; }
bool ex_data_only(const Expr *e) { return !ex_any_var(e, test_not_data, NULL); }

static bool test_countable(const Var *v, void *with)
{
    (void)with;
    return v->base == BASE_INT || v->discrete || v->kind == VAR_SUM || v->kind == VAR_DATA || v->kind == VAR_LET;
}

static bool test_continuous(const Var *v, void *with) { return !test_countable(v, with); }

static bool may_vanish(const Expr *e, uint64_t walk)
{
    if (!first_visit(e, walk)) return false;         // ex_any_var has walks of its own
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
        if (e->indices && !(begins && ex_positive(e))) return true;         // i - 1
    }   // fall through
    case EX_MUL:
        for (int i = 0; i < e->nargs; i++)
            if (e->args[i]->kind != EX_NUM && may_vanish(e->args[i], walk)) return true;
        return false;
    case EX_REF: return test_countable(e->var, NULL) && e->var->lower_number <= 0;
    case EX_ARRAY: case EX_AT: break;
    }
    return false;
}

bool ex_may_vanish(const Expr *e) { return may_vanish(e, ++table.walks); }

static Look test_maybe_empty(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REDUCE && e->fn == FN_sum && !(e->args[0]->kind == EX_NUM && e->args[1]->kind == EX_NUM && e->args[1]->number >= e->args[0]->number) ? FOUND : LOOK;
}

bool ex_above_zero(const Expr *e) { return ex_positive(e) && !ex_may_vanish(e) && !ex_find(e, test_maybe_empty, NULL); }

// Whether e can be exactly 1, as far as what is not continuous decides.
static bool may_be_one(const Expr *e)
{
    if (e->size > MAX_TREE) return true;
    switch (e->kind) {
    case EX_NUM: return e->number == 1;
    case EX_REF: return test_countable(e->var, NULL);
    case EX_MUL: case EX_POW:
        for (int i = 0; i < e->nargs; i++)
            if (e->args[i]->kind != EX_NUM && !may_be_one(e->args[i])) return false;
        return true;
    case EX_CALL:
        if (e->fn == FN_if_else) return may_be_one(e->args[1]) || may_be_one(e->args[2]);
        return ex_any_var(e, test_countable, NULL) && !ex_any_var(e, test_continuous, NULL);
    case EX_ADD: return !ex_any_var(e, test_continuous, NULL);
    case EX_REDUCE: return may_be_one(e->args[2]);
    case EX_INDEX: case EX_ARRAY: case EX_AT: break;
    }
    return true;
}

// `likely`: with a positive probability, not only where a continuous value falls on a point or is rounded to it.
static bool diverges_anew(const Expr *e, bool likely, uint64_t walk);

static bool diverges(const Expr *e, bool likely, uint64_t walk)
{
    if (!table.settled) return diverges_anew(e, likely, walk);
    if (!e->diverges[likely]) ((Expr *)e)->diverges[likely] = diverges_anew(e, likely, walk) ? 1 : 2;
    return e->diverges[likely] == 1;
}

// Whether times*e may rise without end, or be undefined, not only fall: log(p) + 2*log(q) falls. Parts are looked at more than once: only where answers are kept.
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
    case EX_NUM: case EX_REF: case EX_POW: case EX_INDEX: case EX_ARRAY: case EX_AT: break;
    }
    return true;
}

static bool diverges_anew(const Expr *e, bool likely, uint64_t walk)
{
    if (!table.settled && !first_visit(e, walk)) return false;
    switch (e->kind) {
    case EX_NUM: return !isfinite(e->number);
    case EX_REF:                                 // a definition is as finite as its right sides
        if (e->var->computed) return diverges(e->var->computed, likely, walk);
        for (const Site *t = e->var->kind == VAR_LET && !e->var->series ? e->var->sites : NULL; t; t = t->next)
            if (t->value && diverges(t->value, likely, walk)) return true;
        return false;
    case EX_CALL:
        if (function_rows[e->fn].traits & TRAIT_LOG_END) {
            if (!likely || diverges(e->args[0], likely, walk)) return true;
            return e->fn == FN_log ? ex_may_vanish(e->args[0]) : e->fn == FN_log1m ? may_be_one(e->args[0]) : ex_any_var(e, test_countable, NULL) && !ex_any_var(e, test_continuous, NULL);
        }
        if (function_rows[e->fn].sign == SIGN_UNIT || (function_rows[e->fn].traits & TRAIT_BOUNDED)) return false;
        if (e->fn == FN_exp && table.settled) return rises(e->args[0], 1, likely, walk);
        for (int i = e->fn == FN_if_else; i < e->nargs; i++)
            if (diverges(e->args[i], likely, walk)) return true;
        return false;
    case EX_ADD: case EX_MUL: case EX_POW:
        for (int i = 0; i < e->nargs; i++)
            if (diverges(e->args[i], likely, walk)) return true;
        return false;
    case EX_REDUCE: return diverges(e->args[2], likely, walk);
    case EX_INDEX: case EX_ARRAY: case EX_AT: break;
    }
    return false;
}

bool ex_may_diverge(const Expr *e) { return diverges(e, false, ++table.walks); }
bool ex_has_pole(const Expr *e) { return diverges(e, true, ++table.walks); }

bool ex_absorbed(const Expr *product, int k)
{
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

bool ex_mentions(const Expr *e, const Var *v) { return mentions(e, v, ++table.walks); }

static void references(Expr *e, const Var *v, void (*f)(Expr *, void *), void *with, uint64_t walk)
{
    if (!(e->vars >> (v->id & 63) & 1) || !first_visit(e, walk)) return;
    if (e->var == v) f(e, with);
    for (int i = 0; i < e->nargs; i++) references(e->args[i], v, f, with, walk);
}

void ex_references(Expr *e, const Var *v, void (*f)(Expr *, void *), void *with) { references(e, v, f, with, ++table.walks); }

static bool mentions_index(const Expr *e, const Index *i, uint64_t walk)
{
    if (!(e->indices >> (i->id & 63) & 1)) return false;
    if (e->kind == EX_INDEX) return e->index == i;
    if (!first_visit(e, walk)) return false;
    for (int k = 0; k < e->nargs; k++)
        if (mentions_index(e->args[k], i, walk)) return true;
    return false;
}

bool ex_mentions_index(const Expr *e, const Index *i) { return mentions_index(e, i, ++table.walks); }

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

static int deepest(void) { return table.level < 3 ? table.level : 2; }

bool ex_any_var(const Expr *e, bool (*test)(const Var *, void *), void *with)
{
    const int level = deepest();
    table.level++;
    const bool found = any_var(e, test, with, level, ++table.walks);
    table.level--;
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
    table.level++;
    const bool found = find(e, test, with, level, ++table.walks);
    table.level--;
    return found;
}

void ex_settle(void) { table.settled = true; }

uint64_t ex_walk(void) { return ++table.walks; }

// ---- rebuilding ----

// A number before a product goes into a sum among its factors: -1/2*(-2*a + b)/c is (a - 1/2*b)/c.
Expr *ex_tidy(Expr *e)
{
    if (e->kind != EX_MUL || e->args[0]->kind != EX_NUM) return e;
    for (int i = 1; i < e->nargs; i++) {
        if (e->args[i]->kind != EX_ADD) continue;
        Expr *rest = ex_mul2(e->args[0], e->args[i]);
        for (int k = 1; k < e->nargs; k++)
            if (k != i) rest = ex_mul2(rest, e->args[k]);
        return rest;
    }
    return e;
}

// The same kind of expression from new arguments, in normal form again.
static Expr *rebuild(Expr *e, Expr **args)
{
    switch (e->kind) {
    case EX_NUM: case EX_INDEX: return e;
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

// Substitution rebuilds shared subexpressions once per call. What it made of them stands in a table, at most half full, that begins on the stack.
typedef struct { Expr *from, *to; } Memo;
typedef struct {
    Expr   *(*leaf)(Expr *, void *);         // what takes the place of e, or NULL: look further down
    void     *with;
    const Expr *sought;                      // what does not hold it stays as it is; NULL: look everywhere
    Memo     *slot, few[64];
    unsigned  size, count;
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
    const Expr *s = w->sought;               // parts are older than what they are part of
    if (s && (e->id < s->id || (s->vars & ~e->vars) || (s->indices & ~e->indices))) return e;
    Expr *new = w->leaf(e, w->with);
    if (new) return new;
    if (e->nargs == 0) return e;
    const Memo *known = memo(w, e);
    if (known->from) return known->to;
    Expr *few[8], **args = e->nargs <= 8 ? few : malloc(sizeof *args * (size_t)e->nargs);
    bool changed = false;
    const bool hides = s && s->kind == EX_INDEX && (e->kind == EX_REDUCE || e->kind == EX_ARRAY) && e->index == s->index;      // in its body the index is its own
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

// ---- printing ----

enum { P_ADD = 1, P_MUL, P_POW, P_ATOM };

enum { PRINTED = 2000 };                     // parts: what shares its parts may be longer than any file when it is written out
static int printed;

static void print(FILE *f, const Expr *e, int outer);

static void print_list(FILE *f, const Expr *e, int from)
{
    for (int i = from; i < e->nargs; i++) {
        if (i > from) fputs(", ", f);
        print(f, e->args[i], 0);
    }
}

static void print_number(FILE *f, double v)
{
    if (fabs(v) < 1e15 && v == (long)v) fprintf(f, "%ld", (long)v);
    else {
        for (int d = 2; d <= 12; d++)              // small fractions print as fractions
            if (v * d == floor(v * d) && fabs(v * d) < 1000) { fprintf(f, "%ld/%d", (long)(v * d), d); return; }
        char s[32];
        snprintf(s, sizeof s, "%.12g", v);
        if (strtod(s, NULL) == v) { fputs(s, f); return; }
        for (int d = 13; d <= 1000; d++)           // and what is no short decimal, if it is one at all
            if (fabs(round(v * d)) < 1000 && round(v * d) / d == v && v != 0) { fprintf(f, "%ld/%d", (long)round(v * d), d); return; }
        fprintf(f, "%.15g", v);
    }
}

// The index that a reduction binds prints under its canonical name, unless something else in the body has that name: a plate's index, a
// reduction around it, a variable. Then it prints under the next name that is free.
static struct { const Index *index; const char *name; } shown[64];
static int nshown;

static const char *name_shown(const Index *i)
{
    for (int k = nshown - 1; k >= 0; k--)
        if (shown[k].index == i) return shown[k].name;
    return i->name;
}

typedef struct Taken { const Index *own; const char *name; } Taken;

static Look test_taken(const Expr *e, void *with)
{
    const Taken *t = with;
    if (e->kind == EX_INDEX) return e->index != t->own && strcmp(name_shown(e->index), t->name) == 0 ? FOUND : SKIP;
    return e->var && strcmp(e->var->name, t->name) == 0 ? FOUND : LOOK;
}

static bool name_taken(const Expr *e, const Index *own, const char *name) { return ex_find(e, test_taken, &(Taken){own, name}); }

static const char *show_index(const Expr *e)
{
    static const char *const names[] = {"j", "k", "l", "m", "n", "j2", "k2", "l2", "m2", "n2", "j3", "k3", "l3", "m3", "n3", NULL};
    const Expr *body = e->args[e->nargs - 1];
    const char *name = e->index->name;
    for (int k = 0; name_taken(body, e->index, name) && names[k]; k++) name = names[k];
    if (nshown < (int)(sizeof shown / sizeof *shown)) {
        shown[nshown].index = e->index;
        shown[nshown].name = name;
    }
    nshown++;
    return name;
}

static void print(FILE *f, const Expr *e, int outer)
{
    if (++printed > PRINTED) { fputs("...", f); return; }
    switch (e->kind) {
    case EX_NUM:
        if (e->number < 0 || e->number != floor(e->number)) {
            if (outer >= P_MUL) fputc('(', f);
            print_number(f, e->number);
            if (outer >= P_MUL) fputc(')', f);
        } else print_number(f, e->number);
        break;
    case EX_INDEX: fputs(name_shown(e->index), f); break;
    case EX_REF:
        if (e->var->parts && e->nargs == 1 && e->args[0]->kind == EX_NUM) { fputs(e->var->parts[(int)e->args[0]->number - 1]->name, f); break; }
        fputs(e->var->name, f);
        if (e->nargs) { fputc('[', f); print_list(f, e, 0); fputc(']', f); }
        break;
    case EX_ADD:
        if (outer > P_ADD) fputc('(', f);
        for (int i = 0; i < e->nargs; i++) {
            const Expr *t = e->args[i];
            bool minus = (t->kind == EX_NUM && t->number < 0) || (t->kind == EX_MUL && t->args[0]->kind == EX_NUM && t->args[0]->number < 0);
            if (minus) {
                fputs(i ? " - " : "-", f);
                print(f, ex_neg((Expr *)t), t->kind == EX_NUM ? P_ADD : P_MUL);
            } else {
                if (i) fputs(" + ", f);
                print(f, t, P_ADD);
            }
        }
        if (outer > P_ADD) fputc(')', f);
        break;
    case EX_MUL: {
        if (outer > P_MUL) fputc('(', f);
        bool first = true;
        int from = 0;
        if (e->args[0]->kind == EX_NUM && e->args[0]->number == -1) { fputc('-', f); from = 1; }
        for (int i = from; i < e->nargs; i++) {
            if (e->args[i]->kind == EX_POW && e->args[i]->number < 0) continue;
            if (!first) fputc('*', f);
            print(f, e->args[i], first && e->args[i]->kind == EX_NUM ? P_ADD : P_MUL);
            first = false;
        }
        if (first) fputc('1', f);
        for (int i = from; i < e->nargs; i++)
            if (e->args[i]->kind == EX_POW && e->args[i]->number < 0) {
                fputc('/', f);
                print(f, ex_pow((Expr *)e->args[i], -1), P_POW);
            }
        if (outer > P_MUL) fputc(')', f);
        break;
    }
    case EX_POW:
        if (e->number < 0) {
            if (outer >= P_MUL) fputc('(', f);
            fputs("1/", f);
            print(f, ex_pow((Expr *)e, -1), P_POW);
            if (outer >= P_MUL) fputc(')', f);
        } else if (e->number == 0.5) {
            fputs("sqrt(", f);
            print(f, e->args[0], 0);
            fputc(')', f);
        } else {
            print(f, e->args[0], P_ATOM);
            fputc('^', f);
            print(f, ex_num(e->number), P_ATOM);
        }
        break;
    case EX_CALL: {
        if (e->fn == FN_MOD || (function_rows[e->fn].infix && e->fn != FN_SAME)) {
            const bool below = e->fn == FN_LE && e->args[0]->kind == EX_ADD && ex_is_num(e->args[0]->args[0], 1) && ex_is_whole(e->args[0]) && ex_is_whole(e->args[1]);
            fputc('(', f);
            print(f, below ? ex_add2(e->args[0], ex_num(-1)) : e->args[0], P_ADD);            // 1 + k <= T is k < T
            fprintf(f, " %s ", below ? "<" : e->fn == FN_AT_END || e->fn == FN_IN_TAIL ? function_rows[e->fn].infix : e->name);
            print(f, e->args[1], P_ADD);
            fputc(')', f);
            return;
        }
        fprintf(f, "%s(", e->name);
        if (e->fn == FN_ode_rk45 || e->fn == FN_ode_bdf) {       // as it is written
            fprintf(f, "(%s, %s) -> ", e->args[6]->var->name, e->args[7]->var->name);
            print(f, e->args[0], 0);
            for (int i = 1; i < (ex_is_num(e->args[4], 1e-6) && ex_is_num(e->args[5], 1e-6) ? 4 : 6); i++) {
                fputs(", ", f);
                print(f, e->args[i], 0);
            }
        } else print_list(f, e, 0);
        fputc(')', f);
        break;
    }
    case EX_REDUCE:
    case EX_ARRAY: {
        const bool array = e->kind == EX_ARRAY;
        char *range;
        size_t size;
        FILE *r = open_memstream(&range, &size);         // the ends of the range are outside of the index
        if (array) fputc('1', r);
        else print(r, e->args[0], P_ATOM);
        fputc(':', r);
        print(r, e->args[e->nargs - 2], P_ATOM);
        fclose(r);
        fprintf(f, "%s%c%s in %s, ", array ? "" : e->name, array ? '[' : '(', show_index(e), range);
        print(f, e->args[e->nargs - 1], 0);
        nshown--;
        fputc(array ? ']' : ')', f);
        free(range);
        break;
    }
    case EX_AT:
        print(f, e->args[0], P_ATOM);
        fputc('[', f);
        print_list(f, e, 1);
        fputc(']', f);
        break;
    }
}

void ex_print(FILE *f, const Expr *e)
{
    printed = 0;
    print(f, e, 0);
}

char *ex_text(Arena *a, const Expr *e)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    ex_print(f, e);
    fclose(f);
    char *copy = arena_strdup(a, text);
    free(text);
    return copy;
}

char *ex_quote(Arena *a, const Expr *e)
{
    enum { LINE = 90 };
    char *t = ex_text(a, e);
    return strlen(t) <= LINE ? t : arena_printf(a, "%.*s...", LINE - 3, t);
}
