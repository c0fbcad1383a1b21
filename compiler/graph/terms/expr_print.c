// expr_print.c -- expressions as text, in the language's own notation.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../graph.h"
#include "expr.h"
#include "numbers.h"

enum { P_LISTED = -1, P_ADD = 1, P_MUL, P_POW, P_ATOM };  // P_LISTED: commas or parentheses stand around it

enum { MOST_DIVISOR = 100000 };  // of what is printed as a fraction
enum { PRINTED = 2000 };         // parts: what shares its parts may be longer than any file when it is written out
static int printed;

static void print(FILE *f, const Expr *e, int outer);
static void print_list(FILE *f, const Expr *e, int from)
{
    for (int i = from; i < e->nargs; i++) {
        if (i > from) fputs(", ", f);
        print(f, e->args[i], P_LISTED);
    }
}

static bool plain;  // numbers, lists, identity matrices and what picks an element are written by what they are made of

// The formula of a computed number, where readers see one.
static const Expr *shown_formula(const Expr *e) { return !plain && e->formula && !is_half_log_2pi(fabs(e->number)) ? e->formula : NULL; }

static void print_number(FILE *f, double v)
{
    if (is_half_log_2pi(fabs(v))) fprintf(f, "%slog(2*pi())/2", v < 0 ? "-" : "");
    else if (fabs(v) < 1e15 && v == (long)v) fprintf(f, "%ld", (long)v);
    else {
        for (int d = 2; d <= 12; d++)  // small fractions print as fractions
            if (v * d == floor(v * d) && fabs(v * d) < 1000) {
                fprintf(f, "%ld/%d", (long)(v * d), d);
                return;
            }
        char s[32];
        snprintf(s, sizeof s, "%.12g", v);
        if (strtod(s, NULL) == v) {
            fputs(s, f);
            return;
        }
        long above, below;  // and what is no short decimal, if it is one at all
        if (number_fraction(v, MOST_DIVISOR, &above, &below)) fprintf(f, "%ld/%ld", above, below);
        else fprintf(f, "%.15g", v);
    }
}

// The index that a reduction binds prints under its canonical name, unless something else in the body has that name: a plate's index, a
// reduction around it, a variable. Then it prints under the next name that is free.
static struct {
    const Index *index;
    const char *name;
    const Expr *hi;  // of its range
} shown[64];
static int nshown;

static const char *name_shown(const Index *i)
{
    for (int k = nshown - 1; k >= 0; k--)
        if (shown[k].index == i) return shown[k].name;
    return i->name;
}

typedef struct Taken {
    const Index *own;
    const char *name;
} Taken;

static Look test_taken(const Expr *e, void *with)
{
    const Taken *t = with;
    if (e->kind == EX_INDEX && e->index->height && e->index->height < t->own->height) return SKIP;  // of a sum within: it gets a name later
    if (e->kind == EX_INDEX) return e->index != t->own && strcmp(name_shown(e->index), t->name) == 0 ? FOUND : SKIP;
    return e->var && strcmp(e->var->name, t->name) == 0 ? FOUND : LOOK;
}

static bool name_taken(const Expr *e, const Index *own, const char *name) { return ex_find(e, test_taken, &(Taken){own, name}); }

static Index *const *reserved;
static int nreserved;

void ex_reserve(int n, Index *const *index)
{
    reserved = index;
    nreserved = n;
}

static Index *const *reserved_over;
static int nreserved_over;

void ex_reserve_over(int n, Index *const *index)
{
    reserved_over = index;
    nreserved_over = n;
}

static Var *const *reserved_vars;
static int nreserved_vars;

void ex_reserve_variables(int n, Var *const *var)
{
    reserved_vars = var;
    nreserved_vars = n;
}

static bool is_reserved(const char *name)
{
    for (int i = 0; i < nreserved; i++)
        if (reserved[i] && strcmp(reserved[i]->name, name) == 0) return true;
    for (int i = 0; i < nreserved_over; i++)
        if (strcmp(reserved_over[i]->name, name) == 0) return true;
    for (int i = 0; i < nshown && i < (int)(sizeof shown / sizeof *shown); i++)  // of the sums around it
        if (strcmp(shown[i].name, name) == 0) return true;
    for (int i = 0; i < nreserved_vars; i++)
        if (strcmp(reserved_vars[i]->name, name) == 0) return true;
    return false;
}

// An array that is read at the index, and of which the model calls this subscript by a name that is free here.
typedef struct Called {
    const Expr *body;
    const Index *own;
    const char *name;
} Called;

static bool is_free(const Expr *body, const Index *own, const char *name) { return !is_reserved(name) && !name_taken(body, own, name); }

static Look test_called(const Expr *e, void *with)
{
    Called *c = with;
    for (int k = 0; e->kind == EX_REF && k < e->nargs; k++) {
        const char *name = e->var->called[k];
        if (!name || e->args[k]->kind != EX_INDEX || e->args[k]->index != c->own || !is_free(c->body, c->own, name)) continue;
        c->name = name;
        return FOUND;
    }
    return LOOK;
}

const char *ex_index_called(const Expr *e)
{
    static const char *const names[] = {"j", "k", "l", "m", "n", "j2", "k2", "l2", "m2", "n2", "j3", "k3", "l3", "m3", "n3", NULL};
    const Expr *body = e->args[e->nargs - 1];
    Called c = {body, e->index, NULL};
    if (ex_find(body, test_called, &c)) return c.name;
    const char *name = e->index->name;
    for (int k = 0; !is_free(body, e->index, name) && names[k]; k++) name = names[k];
    return intern(name);
}

static const char *show_index(const Expr *e)
{
    const char *name = ex_index_called(e);
    if (nshown < (int)(sizeof shown / sizeof *shown)) {
        shown[nshown].index = e->index;
        shown[nshown].name = name;
        shown[nshown].hi = e->args[e->nargs - 2];
    }
    nshown++;
    return name;
}

// ---- lists that the model has written out ----

enum { MOST_LISTED = 8 };  // elements of one

// Choices by an index among 1, 2, ...: how many, with the rest as the last one; 0: e begins with none.
static int choices_by(const Expr *e, const Index **by)
{
    int n = 0;
    for (*by = NULL; ex_is_call(e, FN_if_else); e = e->args[2], n++) {
        const Expr *c = e->args[0];
        if (!ex_is_call(c, FN_EQ)) break;
        const Expr *i = c->args[0]->kind == EX_INDEX ? c->args[0] : c->args[1], *k = i == c->args[0] ? c->args[1] : c->args[0];
        if (i->kind != EX_INDEX || !ex_is_num(k, n + 1) || (*by && *by != i->index)) break;
        *by = i->index;
    }
    return n && n < MOST_LISTED ? n + 1 : 0;
}

static bool chooses_by(const Expr *e, const Index *i)
{
    const Index *by;
    for (int k = 0; k < e->nargs; k++)
        if (chooses_by(e->args[k], i)) return true;
    return choices_by(e, &by) && by == i;
}

static const Expr *last_value(const Index *i)
{
    for (int k = nshown - 1; k >= 0; k--)
        if (shown[k].index == i) return shown[k].hi;
    return i->hi;
}

// Whether it is one of so many elements, by their number, and by which index; 0: it is not.
static int element_of(const Expr *e, const Index **by)
{
    const int n = choices_by(e, by);
    const Expr *hi = n ? last_value(*by) : NULL;
    return hi && ex_is_num(hi, n) ? n : 0;
}

static const Expr *element_at(const Expr *e, int k, int n)
{
    for (int i = 1; i < k; i++) e = e->args[2];
    return k < n ? e->args[1] : e;
}

static void print_items(FILE *f, const Expr *e, int n, int columns)
{
    fputc('[', f);
    for (int k = 1; k <= n; k++) {
        if (k > 1) fputs(", ", f);
        if (columns) print_items(f, element_at(e, k, n), columns, 0);
        else print(f, element_at(e, k, n), 0);
    }
    fputc(']', f);
}

// [a, b][i], where i is one of 1 and 2; [[a, b], [c, d]][i, j].
static bool print_element(FILE *f, const Expr *e)
{
    const Index *by, *inner = NULL, *own;
    const int n = plain ? 0 : element_of(e, &by);
    if (!n) return false;
    int columns = element_of(element_at(e, 1, n), &inner);
    for (int k = 2; k <= n && columns; k++)
        if (element_of(element_at(e, k, n), &own) != columns || own != inner) columns = 0;
    print_items(f, e, n, columns);
    fprintf(f, "[%s", name_shown(by));
    if (columns) fprintf(f, ", %s", name_shown(inner));
    fputc(']', f);
    return true;
}

static bool is_same(const Expr *e, const Index *i, const Index *j)
{
    return ex_is_call(e, FN_SAME) && e->args[0]->kind == EX_INDEX && e->args[1]->kind == EX_INDEX &&
           ((e->args[0]->index == i && e->args[1]->index == j) || (e->args[0]->index == j && e->args[1]->index == i));
}

Expr *ex_identity_times(const Expr *e)
{
    if (e->kind != EX_ARRAY || e->args[1]->kind != EX_ARRAY || e->args[0] != e->args[1]->args[0]) return NULL;
    const Expr *inner = e->args[1];
    Expr *body = inner->args[1], *times = ex_num(1);
    if (is_same(body, e->index, inner->index)) return times;
    bool found = false;
    for (int k = 0; body->kind == EX_MUL && k < body->nargs; k++) {
        if (is_same(body->args[k], e->index, inner->index)) found = true;
        else times = ex_mul2(times, body->args[k]);
    }
    return found && !ex_mentions_index(times, e->index) && !ex_mentions_index(times, inner->index) ? times : NULL;
}

// An array that picks its elements by their number is the list of these; one of equal elements a repeated element.
static bool print_written_out(FILE *f, const Expr *e)
{
    if (plain) return false;
    const Expr *n = e->args[0], *body = e->args[1], *times = ex_identity_times(e);
    if (times) {
        if (!ex_is_num(times, 1)) {
            print(f, times, P_MUL);
            fputc('*', f);
        }
        fputs("identity_matrix(", f);
        print(f, n, 0);
        fputc(')', f);
        return true;
    }
    if (!ex_mentions_index(body, e->index) && ex_rank(body) == 0) {
        fputs("rep_vector(", f);
        print(f, body, 0);
        fputs(", ", f);
        print(f, n, 0);
        fputc(')', f);
        return true;
    }
    if (n->kind != EX_NUM || n->number < 1 || n->number > MOST_LISTED || !chooses_by(body, e->index)) return false;
    fputc('[', f);
    for (int k = 1; k <= (int)n->number; k++) {
        if (k > 1) fputs(", ", f);
        print(f, ex_replace_index((Expr *)body, e->index, ex_num(k)), 0);
    }
    fputc(']', f);
    return true;
}

// log(2 pi)/2 in a formula
static bool is_half_log(const Expr *e)
{
    return e->kind == EX_MUL && e->nargs == 2 && ex_is_num(e->args[0], 0.5) && ex_is_call(e->args[1], FN_log) &&
           ex_is_num(e->args[1]->args[0], 2 * M_PI);
}

static bool is_subtracted(const Expr *t)
{
    const Expr *n = t->kind == EX_MUL ? t->args[0] : t;
    return n->kind == EX_NUM && n->number < 0;
}

static void print_num(FILE *f, const Expr *e, int outer)
{
    if (shown_formula(e)) {
        print(f, e->formula, outer);
        return;
    }
    const bool apart = outer >= P_MUL && (e->number < 0 || e->number != floor(e->number));
    if (apart) fputc('(', f);
    print_number(f, e->number);
    if (apart) fputc(')', f);
}

static void print_ref(FILE *f, const Expr *e)
{
    if (e->var->parts && e->nargs == 1 && e->args[0]->kind == EX_NUM) {
        fputs(e->var->parts[(int)e->args[0]->number - 1]->name, f);
        return;
    }
    fputs(e->var->name, f);
    if (!e->nargs) return;
    fputc('[', f);
    print_list(f, e, 0);
    fputc(']', f);
}

// x - mu, not -mu + x, as pages have it
static void print_add(FILE *f, const Expr *e)
{
    bool first = true;
    const Expr *number = shown_formula(e->args[0]);
    const bool sum = number && number->kind == EX_ADD;
    const int spread = sum ? number->nargs : 1;  // terms of a formula are terms of the sum
    for (int minus = 0; minus < 2; minus++)
        for (int i = 0; i < e->nargs + spread - 1; i++) {
            const Expr *t = i >= spread ? e->args[i - spread + 1] : sum ? number->args[i] : number ? number : e->args[0];
            if (is_subtracted(t) != minus) continue;
            fputs(minus ? first ? "-" : " - " : first ? "" : " + ", f);
            if (minus) print(f, ex_neg((Expr *)t), t->kind == EX_NUM ? P_ADD : P_MUL);
            else print(f, t, P_ADD);
            first = false;
        }
}

// a*b/c: what has a negative power is divided by, after the rest
static void print_mul(FILE *f, const Expr *e)
{
    bool first = true;
    int from = 0;
    if (e->args[0]->kind == EX_NUM && e->args[0]->number == -1) {
        fputc('-', f);
        from = 1;
    }
    for (int i = from; i < e->nargs; i++) {
        if (e->args[i]->kind == EX_POW && e->args[i]->number < 0) continue;
        if (!first) fputc('*', f);
        print(f, e->args[i], first && e->args[i]->kind == EX_NUM && !shown_formula(e->args[i]) ? P_ADD : P_MUL);
        first = false;
    }
    if (first) fputc('1', f);
    for (int i = from; i < e->nargs; i++)
        if (e->args[i]->kind == EX_POW && e->args[i]->number < 0) {
            fputc('/', f);
            print(f, ex_pow((Expr *)e->args[i], -1), P_POW);
        }
}

static void print_pow(FILE *f, const Expr *e, int outer)
{
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
}

static void print_infix(FILE *f, const Expr *e, int outer)
{
    const bool below = e->fn == FN_LE && e->args[0]->kind == EX_ADD && ex_is_num(e->args[0]->args[0], 1) && ex_is_whole(e->args[0]) &&
                       ex_is_whole(e->args[1]);
    if (outer != P_LISTED) fputc('(', f);
    print(f, below ? ex_add2(e->args[0], ex_num(-1)) : e->args[0], P_ADD);  // 1 + k <= T is k < T
    const bool named = e->fn == FN_AT_END || e->fn == FN_IN_TAIL || e->fn == FN_SAME;
    fprintf(f, " %s ", below ? "<" : named ? function_rows[e->fn].infix : e->name);
    print(f, e->args[1], P_ADD);
    if (outer != P_LISTED) fputc(')', f);
}

static void print_call(FILE *f, const Expr *e, int outer)
{
    if (e->fn == FN_if_else && print_element(f, e)) return;
    if (e->fn == FN_MOD || function_rows[e->fn].infix) {
        print_infix(f, e, outer);
        return;
    }
    fprintf(f, "%s(", e->name);
    if (e->fn == FN_ode_rk45 || e->fn == FN_ode_bdf) {  // as it is written
        fprintf(f, "(%s, %s) -> ", e->args[6]->var->name, e->args[7]->var->name);
        print(f, e->args[0], 0);
        for (int i = 1; i < (ex_is_num(e->args[4], 1e-6) && ex_is_num(e->args[5], 1e-6) ? 4 : 6); i++) {
            fputs(", ", f);
            print(f, e->args[i], 0);
        }
    } else print_list(f, e, 0);
    fputc(')', f);
}

// sum(i in 1:n, x), [i in 1:n, x]
static void print_range(FILE *f, const Expr *e)
{
    const bool array = e->kind == EX_ARRAY;
    if (array && print_written_out(f, e)) return;
    char *range;
    size_t size;
    FILE *r = open_memstream(&range, &size);  // the ends of the range are outside of the index
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
}

static void print(FILE *f, const Expr *e, int outer)
{
    if (++printed > PRINTED) {
        fputs("...", f);
        return;
    }
    const bool enclosed = !is_half_log(e) && ((e->kind == EX_ADD && outer > P_ADD) || (e->kind == EX_MUL && outer > P_MUL));
    if (enclosed) fputc('(', f);
    switch (e->kind) {
    case EX_NUM: print_num(f, e, outer); break;
    case EX_INDEX: fputs(name_shown(e->index), f); break;
    case EX_REF: print_ref(f, e); break;
    case EX_ADD: print_add(f, e); break;
    case EX_MUL:
        if (is_half_log(e)) {
            print(f, e->args[1], 0);
            fputs("/2", f);
        } else print_mul(f, e);
        break;
    case EX_POW: print_pow(f, e, outer); break;
    case EX_CALL: print_call(f, e, outer); break;
    case EX_REDUCE:
    case EX_ARRAY: print_range(f, e); break;
    case EX_AT:
        print(f, e->args[0], P_ATOM);
        fputc('[', f);
        print_list(f, e, 1);
        fputc(']', f);
        break;
    }
    if (enclosed) fputc(')', f);
}

void ex_print(FILE *f, const Expr *e)
{
    printed = 0;
    print(f, e, 0);
}

char *ex_formula(Arena *a, const Expr *e)
{
    plain = true;
    char *t = ex_text(a, e);
    plain = false;
    return t;
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
