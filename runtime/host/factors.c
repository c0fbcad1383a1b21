// factors.c -- reads the factors that an emitted program names, and evaluates them.
//
//   "log(p)*y[j, t] + within(y[j, t], 0, n[j])"   over   "j in 1:J, t in 1:T"
//   "inverse_spd([k in 1:2, [j in 1:2, if_else(k == j, a, r)]])"   impossible where the matrix is not positive definite
//
// Evaluation is by intervals: each unknown is a range of values, the result a range that contains all results. Ranges are only as narrow as
// they can be found at a glance: x - x is not 0. Where each unknown is a number, so is the result. Impossible is what no value of the
// ranges makes a number, or what is -infinity for all of them.
#include "messages.h"
#include "factors.h"
#include "../device/gm.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    N_NUMBER,
    N_INDEX,
    N_STATE,
    N_DATA,
    N_UNSEEN,
    N_ADD,
    N_SUB,
    N_MUL,
    N_DIV,
    N_POW,
    N_NEG,
    N_NOT,
    N_COMPARE,
    N_CALL,
    N_WITHIN,
    N_REDUCE,
    N_ARRAY,
    N_MATRIX
} NodeKind;
typedef enum { C_EQ, C_NE, C_LT, C_LE, C_AND, C_OR, C_REST } Compare;
typedef enum { R_SUM, R_PROD, R_MIN, R_MAX, R_LOG_SUM_EXP } Reduction;

typedef enum { M_SPD, M_INVERSE, M_LOG_DETERMINANT, M_CHOLESKY } MatrixNeed;  // M_SPD: to be positive definite

typedef enum { SHAPE_UP, SHAPE_DOWN, SHAPE_EVEN, SHAPE_WAVE, SHAPE_TWO_UP, SHAPE_BRANCHES, SHAPE_UNKNOWN } Shape;

// A row of functions.def, as far as ranges need it.
typedef struct Function {
    const char *name;
    double (*f)(const double *);
    int n;  // of its arguments
    Shape shape;
    double from, to;  // its domain, of UP and DOWN
} Function;

struct Node {
    NodeKind kind;
    int which;  // index, field, comparison, reduction, what a matrix needs
    double number;
    const Function *f;  // of N_CALL
    int n;
    Node *arg[GM_MAX_RANK + 2];
    Node *next;
};

// ---- functions ----

// Functions whose names C has not, or has for other types.
#define abs(x)           fabs(x)
#define min(...)         fmin(__VA_ARGS__)
#define max(...)         fmax(__VA_ARGS__)
#define log_sum_exp(...) log_sum_exp2(__VA_ARGS__)
static double if_else(double c, double x, double y) { return c != 0 ? x : y; }

// The arguments of a call, by the column `ranges`.
#define TAKES_UP(from, to)   x[0]
#define TAKES_DOWN(from, to) x[0]
#define TAKES_EVEN           x[0]
#define TAKES_WAVE           x[0]
#define TAKES_ONE            x[0]
#define TAKES_TWO            x[0], x[1]
#define TAKES_TWO_UP         x[0], x[1]
#define TAKES_THREE          x[0], x[1], x[2]
#define TAKES_BRANCHES       x[0], x[1], x[2]
#pragma GCC diagnostic error "-Wimplicit-function-declaration"  // a row without a function in the runtime
#define ELEMENT(name, args, result, sign, traits, domain, ranges, dx, dy, dz) \
    static double f_##name(const double *x) { return (double)name(TAKES_##ranges); }
#include "../device/functions.def"
static double f_cube(const double *x) { return cube(x[0]); }

#define KNOWN_UP(from, to)   1, SHAPE_UP, from, to
#define KNOWN_DOWN(from, to) 1, SHAPE_DOWN, from, to
#define KNOWN_EVEN           1, SHAPE_EVEN, -INFINITY, INFINITY
#define KNOWN_WAVE           1, SHAPE_WAVE, -INFINITY, INFINITY
#define KNOWN_ONE            1, SHAPE_UNKNOWN, -INFINITY, INFINITY
#define KNOWN_TWO            2, SHAPE_UNKNOWN, 0, 0
#define KNOWN_TWO_UP         2, SHAPE_TWO_UP, 0, 0
#define KNOWN_THREE          3, SHAPE_UNKNOWN, 0, 0
#define KNOWN_BRANCHES       3, SHAPE_BRANCHES, 0, 0
static const Function functions[] = {
#define ELEMENT(name, args, result, sign, traits, domain, ranges, dx, dy, dz) {#name, f_##name, KNOWN_##ranges},
#include "../device/functions.def"
    // what the compiler makes of others
    {"cube", f_cube, KNOWN_UP(-INFINITY, INFINITY)},
    {"log_sum_exp2", f_log_sum_exp, KNOWN_TWO},
};

#undef abs
#undef min
#undef max
#undef log_sum_exp

// ---- reading ----

typedef struct Reader {
    const char *at;
    const GmModel *model;
    Node **nodes;  // chained here
    int n_index;
    char index[64][64];
    bool lost;      // something here is not understood
    bool computed;  // recursions and solutions are in memory, and are read there
} Reader;

static Node *read_sum(Reader *r);
static Node *read_listed(Reader *r);

static Node *node(Reader *r, NodeKind kind)
{
    Node *n = gm_alloc(1, sizeof *n);
    n->kind = kind;
    n->next = *r->nodes;
    *r->nodes = n;
    return n;
}

static Node *number_node(Reader *r, double x)
{
    Node *n = node(r, N_NUMBER);
    n->number = x;
    return n;
}

static Node *lost(Reader *r)
{
    r->lost = true;
    return number_node(r, 0);
}

// A function that has no ranges here, or an array as a whole: its value may be anything, and the expression around it is still evaluated.
static Node *unseen(Node *n)
{
    n->kind = N_UNSEEN;
    n->n = 0;
    return n;
}

static void blanks(Reader *r)
{
    while (*r->at == ' ') r->at++;
}

static bool skip(Reader *r, const char *word)
{
    blanks(r);
    const size_t n = strlen(word);
    if (strncmp(r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

static void expect(Reader *r, const char *word)
{
    if (!skip(r, word)) r->lost = true;
}

static bool word(Reader *r, char *out, size_t size)
{
    blanks(r);
    size_t n = 0;
    while (isalnum((unsigned char)r->at[n]) || r->at[n] == '_') n++;
    if (n == 0 || n >= size) return false;
    memcpy(out, r->at, n);
    out[n] = 0;
    r->at += n;
    return true;
}

static Node *binary(Reader *r, NodeKind kind, Node *a, Node *b)
{
    Node *n = node(r, kind);
    n->n = 2;
    n->arg[0] = a;
    n->arg[1] = b;
    return n;
}

// `name in lo:hi`, if the text goes on like this; the name counts from then on.
static bool read_range(Reader *r, Node **lo, Node **hi)
{
    const char *before = r->at;
    char name[64];
    if (!word(r, name, sizeof name) || !skip(r, "in ")) {
        r->at = before;
        return false;
    }
    *lo = read_sum(r);
    expect(r, ":");
    *hi = read_sum(r);
    if (r->n_index == 64) {
        r->lost = true;
        return true;
    }
    strcpy(r->index[r->n_index++], name);
    return true;
}

static Node *read_reduction(Reader *r, const char *name, Node *lo, Node *hi)
{
    static const char *const names[] = {"sum", "prod", "min", "max", "log_sum_exp"};
    Node *n = node(r, N_REDUCE);
    n->number = r->n_index - 1;
    n->n = 3;
    n->arg[0] = lo;
    n->arg[1] = hi;
    expect(r, ",");
    n->arg[2] = read_sum(r);
    expect(r, ")");
    r->n_index--;
    for (int k = 0; k < 5; k++)
        if (strcmp(name, names[k]) == 0) {
            n->which = k;
            return n;
        }
    return lost(r);
}

// An array, behind its `[`: `k in 1:n, element]`.
static Node *read_array(Reader *r)
{
    Node *n = node(r, N_ARRAY);
    n->n = 3;
    if (!read_range(r, &n->arg[0], &n->arg[1])) return lost(r);
    n->number = r->n_index - 1;
    expect(r, ",");
    n->arg[2] = read_sum(r);
    expect(r, "]");
    r->n_index--;
    return n;
}

// Of a function that gives an array, an element.
static Node *read_element(Reader *r, Node *n)
{
    if (!skip(r, "[")) return n;
    do read_sum(r);
    while (skip(r, ",") || !skip(r, "]"));
    return unseen(n);
}

static Node *read_call(Reader *r, const char *name)
{
    static const char *const of_matrices[] = {"inverse_spd", "inverse", "log_determinant", "cholesky_decompose"};
    Node *lo, *hi;
    if (read_range(r, &lo, &hi)) return read_reduction(r, name, lo, hi);
    Node *n = node(r, N_CALL);
    while (!r->lost && !skip(r, ")")) {
        if (n->n) expect(r, ",");
        if (n->n == GM_MAX_RANK + 2) return lost(r);
        n->arg[n->n++] = read_listed(r);
    }
    for (int k = 0; n->n == 1 && n->arg[0]->kind == N_ARRAY && n->arg[0]->arg[2]->kind == N_ARRAY && k < 4; k++)
        if (strcmp(name, of_matrices[k]) == 0) {
            n->kind = N_MATRIX;
            n->which = k;
            return n;
        }
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (n->n == functions[k].n && strcmp(name, functions[k].name) == 0) {
            n->f = &functions[k];
            return n;
        }
    if (n->n == 2 && strcmp(name, "same") == 0) {
        n->kind = N_COMPARE;
        n->which = C_EQ;
        return n;
    }
    if (n->n == 3 && strcmp(name, "within") == 0) {
        n->kind = N_WITHIN;
        return n;
    }
    return unseen(n);
}

static Node *read_name(Reader *r, const char *name)
{
    if (strcmp(name, "inf") == 0 || strcmp(name, "INFINITY") == 0) return number_node(r, INFINITY);
    for (int k = r->n_index - 1; k >= 0; k--)
        if (strcmp(r->index[k], name) == 0) {
            Node *n = node(r, N_INDEX);
            n->which = k;
            return n;
        }
    Node *n = NULL;
    for (int f = 0; f < r->model->n_state && !n; f++)
        if (strcmp(r->model->state[f].name, name) == 0) {
            n = node(r, (r->model->state[f].role == GM_DERIVED && !r->computed) || r->model->state[f].role == GM_PREDICTED ? N_UNSEEN
                                                                                                                           : N_STATE);
            n->which = f;
        }
    for (int f = 0; f < r->model->n_data && !n; f++)
        if (strcmp(r->model->data[f].name, name) == 0) {
            n = node(r, N_DATA);
            n->which = f;
        }
    if (!n) return lost(r);
    if (skip(r, "[")) do {
            if (n->n == GM_MAX_RANK) return lost(r);
            n->arg[n->n++] = read_sum(r);
        } while (skip(r, ",") || !skip(r, "]"));
    return n->n == (n->kind == N_DATA ? r->model->data : r->model->state)[n->which].rank ? n : unseen(n);
}

// What stands within parentheses or between commas: a sum, or two of them with a sign of comparison between.
static Node *read_listed(Reader *r)
{
    static const struct {
        const char *sign;
        Compare which;
    } signs[] = {{"==", C_EQ}, {"!=", C_NE}, {"<=", C_LE}, {"<", C_LT}, {"&&", C_AND}, {"||", C_OR}, {"%", C_REST}};
    Node *n = read_sum(r);
    for (size_t k = 0; k < sizeof signs / sizeof *signs; k++)
        if (skip(r, signs[k].sign)) {
            n = binary(r, N_COMPARE, n, read_sum(r));
            n->which = signs[k].which;
            break;
        }
    return n;
}

static Node *read_atom(Reader *r)
{
    char name[64];
    blanks(r);
    if (r->lost || !*r->at) return lost(r);
    if (skip(r, "!")) {
        Node *n = node(r, N_NOT);
        n->n = 1;
        n->arg[0] = read_atom(r);
        return n;
    }
    if (skip(r, "(")) {
        Node *n = read_listed(r);
        expect(r, ")");
        return n;
    }
    if (isdigit((unsigned char)*r->at) || *r->at == '.') {
        char *end;
        Node *n = number_node(r, strtod(r->at, &end));
        r->at = end;
        return n;
    }
    if (skip(r, "[")) return read_array(r);
    if (!word(r, name, sizeof name)) return lost(r);
    return skip(r, "(") ? read_element(r, read_call(r, name)) : read_name(r, name);
}

static Node *read_signed(Reader *r)
{
    if (skip(r, "-")) {
        Node *n = node(r, N_NEG);
        n->n = 1;
        n->arg[0] = read_signed(r);
        return n;
    }
    Node *n = read_atom(r);
    return skip(r, "^") ? binary(r, N_POW, n, read_signed(r)) : n;
}

static Node *read_product(Reader *r)
{
    Node *n = read_signed(r);
    for (;;)
        if (skip(r, "*")) n = binary(r, N_MUL, n, read_signed(r));
        else if (skip(r, "/")) n = binary(r, N_DIV, n, read_signed(r));
        else return n;
}

static Node *read_sum(Reader *r)
{
    Node *n = read_product(r);
    for (;;)
        if (skip(r, "+")) n = binary(r, N_ADD, n, read_product(r));
        else if (skip(r, "-")) n = binary(r, N_SUB, n, read_product(r));
        else return n;
}

static Node *read_all(Reader *r, const char *text)
{
    r->at = text;
    Node *n = read_sum(r);
    blanks(r);
    if (*r->at) r->lost = true;
    return n;
}

static Formula read_formula(Factors *all, const char *over, const char *guard, const char *at, const char *value)
{
    Reader r = {.at = over, .model = all->model, .nodes = &all->nodes, .computed = all->computed};
    Formula f = {0};
    while (f.n < 2 * GM_MAX_RANK && read_range(&r, &f.lo[f.n], &f.hi[f.n])) {
        f.n++;
        skip(&r, ",");
    }
    if (*r.at) r.lost = true;
    if (guard) f.guard = read_all(&r, guard);
    r.at = at;
    while (*r.at && f.rank < GM_MAX_RANK && !r.lost) {
        f.at[f.rank++] = read_sum(&r);
        skip(&r, ",");
    }
    f.value = value ? read_all(&r, value) : NULL;
    if (r.lost) f.value = NULL;
    return f;
}

// ---- evaluating ----

static const Range anything = {-INFINITY, INFINITY};

static Range range(Box *b, double lo, double hi, bool point)
{
    if (point && (isnan(lo) || isnan(hi))) b->impossible = true;
    return (Range){isnan(lo) ? -INFINITY : lo, isnan(hi) ? INFINITY : hi};
}

static bool is_point(Range r) { return r.lo == r.hi; }

static double times(double x, double y) { return x == 0 || y == 0 ? 0 : x * y; }  // 0 * log 0 = 0

static Range product(Range x, Range y)
{
    const double p[] = {times(x.lo, y.lo), times(x.lo, y.hi), times(x.hi, y.lo), times(x.hi, y.hi)};
    Range r = {p[0], p[0]};
    for (int k = 1; k < 4; k++) {
        r.lo = fmin(r.lo, p[k]);
        r.hi = fmax(r.hi, p[k]);
    }
    if (x.lo < 0 && x.hi > 0 && (isinf(y.lo) || isinf(y.hi))) return anything;
    return r;
}

static Range evaluate(const Node *n, Box *b);

static void note_read(Box *b, int field, long at)
{
    for (int k = b->n_read; k-- > 0;)
        if (b->read[k].field == field && b->read[k].at == at) return;
    if (b->n_read == b->size_read) {
        b->size_read = 2 * b->size_read + 16;
        b->read = gm_grow(b->read, (size_t)b->size_read, sizeof *b->read);
    }
    b->read[b->n_read++] = (struct Element){field, at};
}

static Range element(const Node *n, Box *b, long at)
{
    if (n->kind == N_DATA) {
        const char *place = (const char *)b->data->data + b->model->data[n->which].offset;
        const GmField *f = &b->model->data[n->which];
        if (f->rank == 0) {
            const double x = f->type != GM_INT   ? *(const double *)place
                             : !f->imputed_field ? (double)*(const long *)place
                                                 : *(const int32_t *)place;
            return (Range){x, x};
        }
        const double x = f->type == GM_INT ? (*(int32_t *const *)place)[at] : (*(double *const *)place)[at];
        return range(b, x, x, true);
    }
    if (b->asked) note_read(b, n->which, at);
    if (b->lo[n->which]) return (Range){b->lo[n->which][at], b->hi[n->which][at]};
    const void *array = gm_state_array(b->model, b->memory, b->chain, n->which);
    const double x = b->model->state[n->which].type == GM_INT ? ((const int32_t *)array)[at] : ((const double *)array)[at];
    return range(b, x, x, true);
}

// An element, or the smallest range of all that the subscripts may mean.
static Range reference(const Node *n, Box *b)
{
    enum { MOST = 10000 };
    const GmShape *s = n->kind == N_DATA ? &b->data->shape[n->which] : &b->memory->shape[n->which];
    long from[GM_MAX_RANK], to[GM_MAX_RANK], at[GM_MAX_RANK];
    double places = 1;
    const bool before = b->impossible;
    b->impossible = false;
    for (int k = 0; k < n->n; k++) {
        const Range r = evaluate(n->arg[k], b);
        if (b->impossible) return anything;
        const double lo = fmax(1, ceil(r.lo)), hi = fmin((double)s->dim[k], floor(r.hi));
        if (!(lo <= hi)) {
            b->impossible = true;
            return anything;
        }
        at[k] = from[k] = (long)lo;
        to[k] = (long)hi;
        places *= hi - lo + 1;
    }
    b->impossible = before;
    if (places > MOST) return anything;
    Range all = {INFINITY, -INFINITY};
    for (;;) {
        long linear = 0;
        for (int k = 0; k < n->n; k++) linear = linear * s->dim[k] + at[k] - 1;
        const Range r = element(n, b, linear);
        all.lo = fmin(all.lo, r.lo);
        all.hi = fmax(all.hi, r.hi);
        int k = n->n - 1;
        for (; k >= 0 && at[k] == to[k]; k--) at[k] = from[k];
        if (k < 0) return all;
        at[k]++;
    }
}

static Range power(Box *b, Range x, Range e)
{
    const bool point = is_point(x) && is_point(e);
    if (point) {
        const double v = pow(x.lo, e.lo);
        return range(b, v, v, true);
    }
    if (!is_point(e)) {
        if (x.lo < 0) return anything;
        return (Range){0, INFINITY};
    }
    const double r = e.lo;
    const bool whole = r == floor(r), even = whole && fmod(r, 2) == 0;
    if (!whole) {
        if (x.hi < 0) {
            b->impossible = true;
            return anything;
        }
        x.lo = fmax(x.lo, 0);
    }
    if (r < 0 && x.lo <= 0 && x.hi >= 0) return even ? (Range){pow(fmax(-x.lo, x.hi), r), INFINITY} : anything;
    const double a = pow(x.lo, r), c = pow(x.hi, r);
    if (even && x.lo < 0 && x.hi > 0) return (Range){0, fmax(a, c)};
    return range(b, fmin(a, c), fmax(a, c), false);
}

static Range compare(Box *b, Compare which, Range x, Range y)
{
    const Range yes = {1, 1}, no = {0, 0}, maybe = {0, 1};
    const bool x_true = 0 < x.lo || x.hi < 0, x_false = x.lo == 0 && x.hi == 0;
    const bool y_true = 0 < y.lo || y.hi < 0, y_false = y.lo == 0 && y.hi == 0;
    switch (which) {
    case C_EQ: return is_point(x) && is_point(y) && x.lo == y.lo ? yes : x.hi < y.lo || y.hi < x.lo ? no : maybe;
    case C_NE: return is_point(x) && is_point(y) && x.lo == y.lo ? no : x.hi < y.lo || y.hi < x.lo ? yes : maybe;
    case C_LT: return x.hi < y.lo ? yes : x.lo >= y.hi ? no : maybe;
    case C_LE: return x.hi <= y.lo ? yes : x.lo > y.hi ? no : maybe;
    case C_AND: return x_true && y_true ? yes : x_false || y_false ? no : maybe;
    case C_OR: return x_true || y_true ? yes : x_false && y_false ? no : maybe;
    case C_REST:
        if (is_point(x) && is_point(y) && y.lo != 0) {
            const double v = fmod(x.lo, y.lo);
            return range(b, v, v, true);
        }
        break;
    }
    return anything;
}

static Range call1(Box *b, const Function *f, Range x)
{
    if (x.hi < f->from || x.lo > f->to) {
        b->impossible = true;
        return anything;
    }
    if (is_point(x)) {
        const double v = f->f(&x.lo);
        return range(b, v, v, true);
    }
    const double lo = fmax(x.lo, f->from), hi = fmin(x.hi, f->to), zero = 0, at_lo = f->f(&lo), at_hi = f->f(&hi);
    switch (f->shape) {
    case SHAPE_UP: return range(b, at_lo, at_hi, false);
    case SHAPE_DOWN: return range(b, at_hi, at_lo, false);
    case SHAPE_EVEN: return range(b, lo <= 0 && hi >= 0 ? f->f(&zero) : fmin(at_lo, at_hi), fmax(at_lo, at_hi), false);
    case SHAPE_WAVE: return (Range){-1, 1};
    case SHAPE_TWO_UP:
    case SHAPE_BRANCHES:
    case SHAPE_UNKNOWN: break;
    }
    // the least value is -0.1215, at 1.46
    if (f->f == f_lgamma && lo >= 0) return range(b, lo >= 2 ? at_lo : -0.1215, fmax(at_lo, at_hi), false);
    return anything;
}

// A function of several arguments.
static Range call(Box *b, const Node *n)
{
    const Function *f = n->f;
    Range x[3];
    double lo[3], hi[3];
    bool point = true;
    for (int k = 0; k < n->n; k++) {
        x[k] = evaluate(n->arg[k], b);
        lo[k] = x[k].lo;
        hi[k] = x[k].hi;
        point &= is_point(x[k]);
    }
    if (f->f == f_log_diff_exp && hi[0] <= lo[1]) {
        b->impossible = true;
        return anything;
    }
    if (point) {
        const double v = f->f(lo);
        return range(b, v, v, true);
    }
    if (f->shape == SHAPE_TWO_UP) return range(b, f->f(lo), f->f(hi), false);
    if (f->f == f_log_diff_exp) return (Range){-INFINITY, hi[0]};
    return anything;
}

static Range choice(const Node *n, Box *b)
{
    const Range c = evaluate(n->arg[0], b);
    if (b->impossible) return anything;
    if (c.lo > 0 || c.hi < 0) return evaluate(n->arg[1], b);
    if (c.lo == 0 && c.hi == 0) return evaluate(n->arg[2], b);
    const Range x = evaluate(n->arg[1], b);
    const bool not_x = b->impossible;
    b->impossible = false;
    const Range y = evaluate(n->arg[2], b);
    const bool not_y = b->impossible;
    b->impossible = not_x && not_y;
    return not_x ? y : not_y ? x : (Range){fmin(x.lo, y.lo), fmax(x.hi, y.hi)};
}

// A term of a sum of densities that is 0 leaves the others; impossible is the sum if all terms are.
static Range term(const Node *n, Box *b, bool *any)
{
    const Range none = {-INFINITY, -INFINITY};
    b->impossible = false;
    const Range x = evaluate(n, b);
    if (!b->impossible) *any = true;
    return b->impossible ? none : x;
}

static Range sum_of_two(const Node *n, Box *b)
{
    const bool before = b->impossible;
    bool any = false;
    const Range x = term(n->arg[0], b, &any), y = term(n->arg[1], b, &any);
    b->impossible = before || !any;
    return any ? (Range){log_sum_exp2(x.lo, y.lo), log_sum_exp2(x.hi, y.hi)} : anything;
}

static Range inside(const Node *n, Box *b)
{
    const Range x = evaluate(n->arg[0], b), lo = evaluate(n->arg[1], b), hi = evaluate(n->arg[2], b);
    if (x.hi < lo.lo || x.lo > hi.hi || lo.lo > hi.hi) b->impossible = true;
    if (lo.lo > hi.hi && is_point(lo) && is_point(hi) && !b->empty) {
        b->empty = true;
        b->end[0] = lo.lo;
        b->end[1] = hi.lo;
    }
    return x.lo >= lo.hi && x.hi <= hi.lo ? (Range){0, 0} : (Range){-INFINITY, 0};
}

// Ends of a range that are infinite are not reached, those of a point are: log(0) and any number is minus infinity.
static Range add(Box *b, Range x, Range y)
{
    if (x.hi == -INFINITY || y.hi == -INFINITY) return (Range){-INFINITY, -INFINITY};
    return range(b, x.lo + y.lo, x.hi + y.hi, is_point(x) && is_point(y));
}

static Range reduce(const Node *n, Box *b)
{
    const Range lo = evaluate(n->arg[0], b), hi = evaluate(n->arg[1], b);
    const Reduction which = (Reduction)n->which;
    if (b->impossible || !is_point(lo) || !is_point(hi) || hi.lo - lo.lo > 1e8) return anything;
    Range all = which == R_SUM    ? (Range){0, 0}
                : which == R_PROD ? (Range){1, 1}
                : which == R_MIN  ? (Range){INFINITY, INFINITY}
                                  : (Range){-INFINITY, -INFINITY};
    const int slot = (int)n->number;
    const long before = b->index[slot];
    const bool impossible = b->impossible;
    bool any = hi.lo < lo.lo;  // a term that is not impossible, of a sum of densities
    for (long i = (long)lo.lo; i <= (long)hi.lo; i++) {
        b->index[slot] = i;
        const Range x = which == R_LOG_SUM_EXP ? term(n->arg[2], b, &any) : evaluate(n->arg[2], b);
        switch (which) {
        case R_SUM: all = add(b, all, x); break;
        case R_PROD: all = product(all, x); break;
        case R_MIN: all = (Range){fmin(all.lo, x.lo), fmin(all.hi, x.hi)}; break;
        case R_MAX: all = (Range){fmax(all.lo, x.lo), fmax(all.hi, x.hi)}; break;
        case R_LOG_SUM_EXP: all = (Range){log_sum_exp2(all.lo, x.lo), log_sum_exp2(all.hi, x.hi)}; break;
        }
    }
    b->index[slot] = before;
    if (which == R_LOG_SUM_EXP) b->impossible = impossible || !any;
    return all;
}

// A symmetric matrix with elements in these ranges cannot be positive definite: one on the diagonal is not positive, or one off it is
// too large for these two.
static bool never_definite(long n, const Range *x)
{
    for (long i = 0; i < n; i++) {
        if (x[i * n + i].hi <= 0) return true;
        for (long j = 0; j < i; j++) {
            const Range r = x[i * n + j];
            const double least = r.lo > 0 ? r.lo : r.hi < 0 ? -r.hi : 0;
            if (least > 0 && least * least >= x[i * n + i].hi * x[j * n + j].hi) return true;
        }
    }
    return false;
}

// How much a symmetric matrix lacks: the least t for which A + t I is positive definite, beside the largest element, from 0 to 1.
static double shortfall(long n, const double *A, double *work)
{
    double most = 0, lo = 0, hi;
    for (long k = 0; k < n * n; k++) most = fmax(most, fabs(A[k]));
    hi = most * (double)n;
    for (int k = 0; k < 20; k++) {
        const double t = (lo + hi) / 2;
        for (long i = 0; i < n * n; i++) work[i] = A[i] + (i / n == i % n ? t : 0);
        if (chol_factor(work, n)) lo = t;
        else hi = t;
    }
    return most > 0 ? hi / (most + hi) : 1;
}

static bool has_what_it_needs(MatrixNeed need, long n, const double *A, double *work)
{
    switch (need) {
    case M_SPD: return log_determinant_of(n, A) > -INFINITY;
    case M_LOG_DETERMINANT: return isfinite(log_determinant_of(n, A));
    case M_INVERSE: inverse_into(n, A, work); break;
    case M_CHOLESKY: cholesky_decompose_into(n, A, work); break;
    }
    for (long k = 0; k < n * n; k++)
        if (isnan(work[k])) return false;
    return true;
}

// Impossible where a matrix has no factor, or no inverse. Large ones are not looked at: each look at one would take too long.
static Range matrix(const Node *f, Box *b)
{
    enum { MOST = 50 };
    const Node *rows = f->arg[0], *row = rows->arg[2];
    const int i = (int)rows->number, j = (int)row->number;
    const Range height = evaluate(rows->arg[1], b);
    const long n = (long)height.hi, index_i = b->index[i], index_j = b->index[j];
    if (b->impossible || !is_point(height) || n < 1 || n > MOST) return anything;
    Range *x = gm_alloc((size_t)(n * n), sizeof *x);
    double *A = gm_alloc((size_t)(2 * n * n), sizeof *A);
    bool square = true, point = true;
    for (b->index[i] = 1; b->index[i] <= n && square; b->index[i]++) {
        const Range width = evaluate(row->arg[1], b);
        square = is_point(width) && width.lo == (double)n;
        for (b->index[j] = 1; b->index[j] <= n && square; b->index[j]++) {
            const long at = (b->index[i] - 1) * n + b->index[j] - 1;
            x[at] = evaluate(row->arg[2], b);
            A[at] = x[at].lo;
            point &= is_point(x[at]);
        }
    }
    b->index[i] = index_i;
    b->index[j] = index_j;
    b->looked += (double)(n * n);
    if (square && !b->impossible)
        b->impossible = point ? !has_what_it_needs((MatrixNeed)f->which, n, A, A + n * n) : f->which == M_SPD && never_definite(n, x);
    b->short_by = b->impossible && point && square && f->which == M_SPD ? shortfall(n, A, A + n * n) : 0;
    free(A);
    free(x);
    return anything;
}

static Range evaluate(const Node *n, Box *b)
{
    switch (n->kind) {
    case N_NUMBER: return (Range){n->number, n->number};
    case N_INDEX: return (Range){(double)b->index[n->which], (double)b->index[n->which]};
    case N_STATE:
    case N_DATA: return reference(n, b);
    case N_UNSEEN:
    case N_ARRAY: return anything;
    case N_MATRIX: return matrix(n, b);
    case N_NEG: {
        const Range x = evaluate(n->arg[0], b);
        return (Range){-x.hi, -x.lo};
    }
    case N_NOT: {
        const Range x = evaluate(n->arg[0], b);
        return x.lo == 0 && x.hi == 0 ? (Range){1, 1} : x.lo > 0 || x.hi < 0 ? (Range){0, 0} : (Range){0, 1};
    }
    case N_REDUCE: return reduce(n, b);
    case N_CALL:
        if (n->f->shape == SHAPE_BRANCHES) return choice(n, b);
        if (n->f->f == f_log_sum_exp) return sum_of_two(n, b);
        return n->n == 1 ? call1(b, n->f, evaluate(n->arg[0], b)) : call(b, n);
    case N_WITHIN: return inside(n, b);
    case N_ADD:
    case N_SUB:
    case N_MUL:
    case N_DIV:
    case N_POW:
    case N_COMPARE: break;
    }
    const bool already = b->impossible;
    const Range x = evaluate(n->arg[0], b);
    if (n->kind == N_MUL && x.lo == 0 && x.hi == 0) {  // whatever the other is: a branch that does not count
        if (b->asked) evaluate(n->arg[1], b);
        b->impossible = already;
        return x;
    }
    const Range y = evaluate(n->arg[1], b);
    switch (n->kind) {
    case N_ADD: return add(b, x, y);
    case N_SUB: return add(b, x, (Range){-y.hi, -y.lo});
    case N_MUL:
        if (y.lo == 0 && y.hi == 0) b->impossible = already;
        return product(x, y);
    case N_DIV:
        if (y.lo == 0 && y.hi == 0) b->impossible = true;
        if (y.lo <= 0 && y.hi >= 0) return anything;
        return product(x, (Range){1 / y.hi, 1 / y.lo});
    case N_POW: return power(b, x, y);
    case N_COMPARE: return compare(b, (Compare)n->which, x, y);
    case N_CALL:
    case N_WITHIN:
    case N_NUMBER:
    case N_INDEX:
    case N_STATE:
    case N_DATA:
    case N_UNSEEN:
    case N_NEG:
    case N_NOT:
    case N_REDUCE: break;
    case N_ARRAY:
    case N_MATRIX: break;
    }
    return anything;
}

Range formula_range(const Formula *f, Box *b)
{
    b->impossible = b->empty = false;
    b->short_by = 0;
    return evaluate(f->value, b);
}

static bool ends_of_terms(const Node *n, Box *b, bool (*cut)(int, long, double, double, void *), void *with)
{
    if (n->kind == N_ADD) return ends_of_terms(n->arg[0], b, cut, with) && ends_of_terms(n->arg[1], b, cut, with);
    if (n->kind == N_SUB) return ends_of_terms(n->arg[0], b, cut, with);
    if (n->kind != N_WITHIN || n->arg[0]->kind != N_STATE) return true;
    b->impossible = false;
    const Range lo = evaluate(n->arg[1], b), hi = evaluate(n->arg[2], b);
    const bool sure = !b->impossible;
    b->impossible = false;
    b->asked = true;
    b->n_read = 0;
    for (int k = 0; k < n->arg[0]->n; k++)  // what its subscripts read is not it
        evaluate(n->arg[0]->arg[k], b);
    const int before = b->n_read;
    evaluate(n->arg[0], b);
    b->asked = false;
    return !sure || before > 0 || b->n_read != 1 || cut(b->read[0].field, b->read[0].at, lo.lo, hi.hi, with);
}

bool formula_ends(const Formula *f, Box *b, bool (*cut)(int field, long at, double lo, double hi, void *with), void *with)
{
    return ends_of_terms(f->value, b, cut, with);
}

bool formula_of_matrix(const Formula *f) { return f->value && f->value->kind == N_MATRIX; }

bool range_possible(const Box *b, Range r) { return !b->impossible && r.hi > -INFINITY && r.lo < INFINITY; }

static bool visit_from(const Formula *f, int k, Box *b, bool (*visit)(const Formula *, Box *, void *), void *with)
{
    b->impossible = false;
    if (k == f->n) {
        if (f->guard) {
            const bool asked = b->asked;
            b->asked = false;
            const Range guard = evaluate(f->guard, b);
            b->asked = asked;
            if (b->impossible || (guard.lo == 0 && guard.hi == 0)) return true;
        }
        return visit(f, b, with);
    }
    const Range lo = evaluate(f->lo[k], b), hi = evaluate(f->hi[k], b);
    if (b->impossible || !is_point(lo) || !is_point(hi)) return true;
    for (long i = (long)lo.lo; i <= (long)hi.lo; i++) {
        b->index[k] = i;
        if (!visit_from(f, k + 1, b, visit, with)) return false;
    }
    return true;
}

void formula_visit(const Formula *f, Box *b, bool (*visit)(const Formula *, Box *, void *), void *with)
{
    if (f->value) visit_from(f, 0, b, visit, with);
}

void formula_visit_part(const Formula *f, Box *b, int part, int parts, bool (*visit)(const Formula *, Box *, void *), void *with)
{
    if (!f->value) return;
    if (f->n == 0) {
        if (part == 0) visit_from(f, 0, b, visit, with);
        return;
    }
    b->impossible = false;
    const Range lo = evaluate(f->lo[0], b), hi = evaluate(f->hi[0], b);
    if (b->impossible || !is_point(lo) || !is_point(hi)) return;
    const long first = (long)lo.lo, n = (long)hi.lo - first + 1;
    for (long i = n * part / parts; i < n * (part + 1) / parts; i++) {
        b->index[0] = first + i;
        if (!visit_from(f, 1, b, visit, with)) return;
    }
}

// ---- all of a model ----

static bool store_definition(const Formula *f, Box *b, void *with)
{
    bool *progress = with;
    long linear = 0;
    const GmShape *s = &b->memory->shape[f->field];
    for (int k = 0; k < f->rank; k++) {
        b->impossible = false;
        const Range at = evaluate(f->at[k], b);
        if (b->impossible || !is_point(at) || at.lo < 1 || at.lo > (double)s->dim[k]) return true;
        linear = linear * s->dim[k] + (long)at.lo - 1;
    }
    b->impossible = false;
    const Range x = evaluate(f->value, b);
    if (b->impossible || !is_point(x)) return true;
    void *array = gm_state_array(b->model, b->memory, 0, f->field);
    if (b->model->state[f->field].type == GM_INT) {
        int32_t *place = &((int32_t *)array)[linear];
        *progress |= *place != (int32_t)x.lo;
        *place = (int32_t)x.lo;
    } else {
        double *place = &((double *)array)[linear];
        *progress |= *place != x.lo;
        *place = x.lo;
    }
    return true;
}

// Definitions that read each other settle after as many rounds as there are, at most. They are the same for all chains, whose arrays are
// one.
static void evaluate_definitions(Factors *f, const GmMemory *m, const GmData *d)
{
    int n = 0;
    while (f->model->definitions && f->model->definitions[n].name) n++;
    Formula *formula = gm_alloc((size_t)n, sizeof *formula);
    Box b = {.model = f->model, .memory = m, .data = d};
    b.lo = gm_alloc((size_t)f->model->n_state, sizeof *b.lo);
    b.hi = gm_alloc((size_t)f->model->n_state, sizeof *b.hi);
    for (int k = 0; k < n; k++) {
        const GmDefinition *s = &f->model->definitions[k];
        formula[k] = read_formula(f, s->over, s->guard, s->at, s->value);
        for (int field = 0; field < f->model->n_state; field++)
            if (strcmp(f->model->state[field].name, s->name) == 0) formula[k].field = field;
    }
    bool progress = true;
    for (int round = 0; progress && round <= n; round++) {
        progress = false;
        for (int k = 0; k < n; k++) formula_visit(&formula[k], &b, store_definition, &progress);
    }
    free(b.lo);
    free(b.hi);
    free(formula);
}

void factors_open(Factors *f, const GmModel *model, const GmMemory *m, const GmData *d, bool computed)
{
    *f = (Factors){.model = model, .computed = computed};
    while (model->factors && model->factors[f->n].text) f->n++;
    f->formula = gm_alloc((size_t)f->n, sizeof *f->formula);
    for (int k = 0; k < f->n; k++)
        f->formula[k] = read_formula(f, model->factors[k].over, model->factors[k].guard, "", model->factors[k].log_density);
    if (f->n || model->edges) evaluate_definitions(f, m, d);
}

Formula formula_read(Factors *f, const char *over, const char *guard, const char *value) { return read_formula(f, over, guard, "", value); }

void factors_close(Factors *f)
{
    for (Node *n = f->nodes, *next; n; n = next) {
        next = n->next;
        free(n);
    }
    free(f->formula);
    *f = (Factors){0};
}
