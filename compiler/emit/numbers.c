// numbers.c -- numbers as C text: the shortest that is the same double, and what computed ones come from.
//
//   4     0.04     4 / 9.0     HALF_LOG_2PI + log(5.0)     2.2527126517342055 /* lgamma(1/10) */
//
// A formula is written in place of its number if C makes the same double of it, by roots, logarithms and arithmetic, which C compilers
// compute. Others are comments.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "out.h"
#include "../graph/terms/numbers.h"

static const double LONG_NUMBER = 1e9;  // whole numbers from here on are written as reals
static const double HALF_LOG_2PI = 0.91893853320467274178;
enum { SHORT_DIGITS = 12, MOST_DIVISOR = 100000, MOST_PARTS = 4 };

// A formula, and what C makes of it. c NULL: it is written as a comment.
typedef struct Worth {
    const char *c;
    Level level;
    double v;
} Worth;

static const Worth unwritten = {NULL, LOOSE, NAN};

static const char *decimal(const Out *o, double v, int most)
{
    char s[40];
    for (int digits = 6; digits <= most; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, v);
        if (strtod(s, NULL) != v) continue;
        return strpbrk(s, ".en") ? text(o, "%s", s) : text(o, "%s.0", s);
    }
    return NULL;
}

static Worth formula(const Out *o, const Expr *e);
static Worth computed(const Out *o, double v);

static const char *within(const Out *o, Worth w, Level least) { return w.level < least ? text(o, "(%s)", w.c) : w.c; }

// A number above 0. real: as an argument or a divisor, 5.0
static Worth positive(const Out *o, double v, bool real)
{
    if (v == floor(v) && v < LONG_NUMBER) return (Worth){text(o, real ? "%ld.0" : "%ld", (long)v), TIGHT, v};
    const char *c = decimal(o, v, SHORT_DIGITS);
    if (c) return (Worth){c, TIGHT, v};
    if (is_half_log_2pi(v)) return (Worth){"HALF_LOG_2PI", TIGHT, HALF_LOG_2PI};
    const Worth w = computed(o, v);
    if (w.c) return w;
    long above, below;
    if (number_fraction(v, MOST_DIVISOR, &above, &below) == 1) return (Worth){text(o, "%ld / %ld.0", above, below), MULTIPLICATIVE, v};
    return unwritten;
}

// What a function or a power is of: a number.
static Worth argument(const Out *o, const Expr *e) { return positive(o, e->args[0]->number, true); }

static Worth root_or_quotient(const Out *o, const Expr *e)
{
    const Worth x = argument(o, e);
    if (!x.c) return x;
    if (e->number == -1) return (Worth){text(o, "1 / %s", within(o, x, TIGHT)), MULTIPLICATIVE, 1 / x.v};
    if (e->number == 0.5) return (Worth){text(o, "sqrt(%s)", x.c), TIGHT, sqrt(x.v)};
    if (e->number == -0.5) return (Worth){text(o, "1 / sqrt(%s)", x.c), MULTIPLICATIVE, 1 / sqrt(x.v)};
    return unwritten;
}

static Worth logarithm(const Out *o, const Expr *e)
{
    const Worth x = argument(o, e);
    if (!x.c) return x;
    if (e->fn == FN_log) return (Worth){text(o, "log(%s)", x.c), TIGHT, log(x.v)};
    return x.level == TIGHT ? (Worth){text(o, "log1p(-%s)", x.c), TIGHT, log1p(-x.v)} : unwritten;
}

static bool is_log_2pi(const Expr *e) { return ex_is_call(e, FN_log) && ex_is_num(e->args[0], 2 * M_PI); }

static bool is_half_log(const Expr *e)
{
    return e->kind == EX_MUL && e->nargs == 2 && e->args[0]->kind == EX_NUM && fabs(e->args[0]->number) == 0.5 && is_log_2pi(e->args[1]);
}

// A product of two, but for the sign of its number.
static Worth multiple(const Out *o, const Expr *e)
{
    const Expr *a = e->args[0], *b = e->args[1];
    if (e->nargs != 2) return unwritten;
    if (is_half_log(e)) return (Worth){"HALF_LOG_2PI", TIGHT, HALF_LOG_2PI};
    const Worth times = a->kind == EX_NUM ? positive(o, fabs(a->number), false) : formula(o, a);
    if (!times.c) return times;
    if (b->kind == EX_POW && b->number == -1) {
        const Worth below = argument(o, b);
        return below.c ? (Worth){text(o, "%s / %s", times.c, within(o, below, TIGHT)), MULTIPLICATIVE, times.v / below.v} : below;
    }
    const Worth x = formula(o, b);
    if (!x.c || times.v == 1) return x;
    return (Worth){text(o, "%s * %s", within(o, times, MULTIPLICATIVE), within(o, x, TIGHT)), MULTIPLICATIVE, times.v * x.v};
}

static bool is_subtracted(const Expr *e)
{
    const Expr *first = e->kind == EX_MUL ? e->args[0] : e;
    return first->kind == EX_NUM && first->number < 0;
}

typedef struct Summand {
    Worth worth;
    int sign;
} Summand;

// An order of the parts, those that are added first, in which rounding makes the sum v.
static bool find_order(const Summand *part, int n, double v, double so_far, int used, int *order, int at)
{
    if (at == n) return so_far == v;
    for (int sign = 1; sign >= -1; sign -= 2)
        for (int i = 0; i < n; i++) {
            if (part[i].sign != sign || used >> i & 1) continue;
            order[at] = i;
            if (find_order(part, n, v, so_far + sign * part[i].worth.v, used | 1 << i, order, at + 1)) return true;
        }
    return false;
}

// spelled: log(2 pi)/2 is written out, of which the rounding is another one
static Worth sum_of(const Out *o, const Expr *e, double v, bool spelled)
{
    Summand part[MOST_PARTS];
    int order[MOST_PARTS];
    if (e->nargs > MOST_PARTS) return unwritten;
    for (int i = 0; i < e->nargs; i++) {
        const Expr *t = e->args[i];
        const Worth half = {"log(2 * GM_PI) / 2", MULTIPLICATIVE, log(2 * M_PI) / 2};
        const Worth w = spelled && is_half_log(t) ? half : t->kind == EX_NUM ? positive(o, fabs(t->number), false) : formula(o, t);
        part[i] = (Summand){w, is_subtracted(t) ? -1 : 1};
        if (!w.c) return unwritten;
    }
    if (!find_order(part, e->nargs, v, 0, 0, order, 0) || part[order[0]].sign < 0) return unwritten;
    const char *c = part[order[0]].worth.c;
    for (int i = 1; i < e->nargs; i++) c = text(o, "%s %c %s", c, part[order[i]].sign < 0 ? '-' : '+', part[order[i]].worth.c);
    return (Worth){c, ADDITIVE, v};
}

static Worth formula(const Out *o, const Expr *e)
{
    if (e->kind == EX_POW) return root_or_quotient(o, e);
    if (e->kind == EX_MUL) return multiple(o, e);
    if (ex_is_call(e, FN_log) || ex_is_call(e, FN_log1m)) return logarithm(o, e);
    return ex_is_call(e, FN_pi) ? (Worth){"GM_PI", TIGHT, M_PI} : unwritten;
}

// v by its formula, if C makes the same of it.
static Worth computed(const Out *o, double v)
{
    const Expr *e = number_formula(v);
    if (!e) return unwritten;
    Worth w = e->kind == EX_ADD ? sum_of(o, e, v, false) : is_subtracted(e) ? unwritten : formula(o, e);
    if (!w.c && e->kind == EX_ADD) w = sum_of(o, e, v, true);
    return w.v == v ? w : unwritten;
}

// The number as a decimal, with its formula as a comment.
static const char *remarked(const Out *o, double v)
{
    const Expr *e = number_formula(v);
    const char *c = decimal(o, v, 17);
    long above, below;
    if (e) return text(o, "%s /* %s */", c, ex_text(o->arena, e));
    return number_fraction(v, MOST_DIVISOR, &above, &below) ? text(o, "%s /* %ld/%ld */", c, above, below) : c;
}

Text number_text(const Out *o, double v)
{
    const bool minus = v < 0;
    if (isnan(v)) return (Text){"NAN", TIGHT, false};
    if (isinf(v)) return (Text){minus ? "-INFINITY" : "INFINITY", TIGHT, minus};
    if (v == 0) return (Text){"0", TIGHT, false};
    Worth w = computed(o, v);
    bool negated = false;  // -log(5), but log(0.2); -log(0.25), but log(5)
    if (!w.c) {
        w = computed(o, -v);
        negated = w.c || minus;
    }
    if (!w.c) w = positive(o, fabs(v), false);
    if (!w.c) w = (Worth){remarked(o, fabs(v)), TIGHT, fabs(v)};
    const char *c = within(o, w, MULTIPLICATIVE);
    return (Text){negated ? text(o, "-%s", c) : c, w.level < MULTIPLICATIVE ? TIGHT : w.level, negated};
}

const char *number_c(const Out *o, double v) { return number_text(o, v).c; }
