// naming.c -- names of statistics, from what is summed.
//
//   sum of y[i] over i with g[i] = k          sum_y_by_g[k]
//   sum of X[i, j]*X[i, k] over i             sum_X_X[j, k]
//   sum of 1 over i with g[i] = k             count_by_g[k]
//   sum of (x[i] - mean)^2 over i             sum_x_centred_squared
//   sum of y[i]*(mean - x[i]) over i          sum_y_x_centred_negated, of a local variable sum_y_mean_minus_x
//   sum of 1/s[i]^2 over i                    sum_inverse_s_squared
//
// A name says what a reader looks for, not all there is: what is left out stands in the comment above the sum. Equal names get numbers.
#include <ctype.h>
#include <string.h>
#include "naming.h"
#include "../conditional.h"
#include "../update.h"
#include "../sum.h"

enum { LONGEST = 40 };  // of a name, before it gets a number

typedef struct Words {
    char text[LONGEST + 1];
    size_t n;
    bool full;
    bool squared;   // what is said: its sign makes no difference
    size_t most;    // letters; 0: LONGEST. With it the sum itself stands beside the name, which leaves signs out
    size_t linked;  // where words at the end begin that belong to what follows; 0: there are none
    int choices;    // around what is said: of a choice within another nothing is
    bool exact;     // of a value, not of what is summed: a number that has no word, or a subscript that has, makes it full
} Words;

static void say(Words *w, const char *word)
{
    const size_t more = strlen(word) + (w->n > 0);
    if (w->full || w->n + more > (w->most ? w->most : LONGEST)) {
        w->full = true;
        return;
    }  // whole words, or none
    if (w->n) w->text[w->n++] = '_';
    strcpy(w->text + w->n, word);
    w->n = strlen(w->text);
    w->linked = 0;
}

// A word that belongs to the one after it: without that it does not stay.
static void say_link(Words *w, const char *word)
{
    const size_t from = w->linked ? w->linked : w->n;
    say(w, word);
    if (!w->full) w->linked = from;
}

static void drop_link(Words *w)
{
    if (w->linked) w->text[w->n = w->linked] = '\0';
    w->linked = 0;
}

// Whether nothing is left out that it was to end with.
static bool is_whole(const Words *w) { return !w->full && !w->linked; }

static bool moves(const Expr *e, const Loops *l)
{
    for (int i = 0; i < l->n; i++)
        if (ex_mentions_index(e, l->index[i])) return true;
    return false;
}

static void say_number(Words *w, double number)
{
    char t[16];
    if (number < 0 || number > 9999 || number != (int)number) {
        w->full |= w->exact;
        return;
    }
    snprintf(t, sizeof t, "%d", (int)number);
    say(w, t);
}

// Where a subscript is neither a loop's index nor another variable, how elements differ: y_before is y[i - 1].
static void say_subscript(Words *w, const Expr *s)
{
    if (s->kind == EX_NUM) say_number(w, s->number);
    else if (s->kind == EX_REF) {
        say_link(w, "of");
        say(w, s->var->name);
    } else if (s->kind == EX_ADD && s->args[0]->kind == EX_NUM) say(w, s->args[0]->number < 0 ? "before" : "after");
}

static bool test_total(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_SUM || v->kind == VAR_LET;
}
static Look test_sum(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REDUCE ? FOUND : LOOK;
}

static void say_expr(Words *w, const Expr *e, const Loops *l);

// A mean of each column, computed before: sum_y_by_column[j]/N.
static bool test_statistic(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_SUM;
}
static bool test_read(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_DATA && v->rank > 0;
}
static bool is_mean(const Expr *e) { return ex_any_var(e, test_statistic, NULL) && !ex_any_var(e, test_read, NULL); }

static bool is_minus(const Expr *t) { return t->kind == EX_MUL && t->args[0]->kind == EX_NUM && t->args[0]->number < 0; }

// What varies in a sum, and what was done to it: x - mean(x) is x_centred, y - 1/2 is y_shifted.
static void say_sum(Words *w, const Expr *e, const Loops *l)
{
    bool first = true, shifted = false, centred = false, negated = false;
    for (int k = 0; k < (w->most ? 2 : 1) * e->nargs; k++) {  // beside the sum: what is added, then what is subtracted
        const Expr *t = e->args[k % e->nargs];
        if (w->most && is_minus(t) != (k >= e->nargs)) continue;
        if (!w->exact && (!moves(t, l) || is_mean(t))) {
            shifted = true;
            centred |= ex_any_var(t, test_total, NULL) || ex_find(t, test_sum, NULL);
            continue;
        }
        const bool minus = is_minus(t);
        drop_link(w);  // what was to follow has no words
        if (first && minus && w->most && shifted && !w->squared) {
            say_link(w, centred ? "mean_minus" : "number_minus");
            shifted = false;
        } else if (first) negated = minus;
        else say_link(w, minus != negated ? "minus" : "plus");
        say_expr(w, t, l);
        first = false;
    }
    if (shifted) say(w, centred ? "centred" : "shifted");
    if (negated && !w->squared && !w->most) say(w, "negated");
}

static bool said_comparison(Words *w, const Expr *e, const Loops *l)
{
    static const struct {
        FunctionId fn;
        const char *word;
    } between[] = {{FN_EQ, "is"}, {FN_NE, "is_not"}, {FN_LT, "below"}, {FN_LE, "at_most"}};
    for (size_t k = 0; k < sizeof between / sizeof *between; k++)
        if (ex_is_call(e, between[k].fn)) {
            say_expr(w, e->args[0], l);
            say_link(w, between[k].word);
            say_expr(w, e->args[1], l);
            return true;
        }
    return false;
}

static Look test_missing(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_CALL && e->fn == FN_MISSING ? FOUND : LOOK;
}

// What is summed of observed values alone.
static bool of_observed(const Expr *e)
{
    return e->kind == EX_CALL && e->fn == FN_if_else && ex_is_num(e->args[1], 0) && ex_find(e->args[0], test_missing, NULL);
}

// The sum of 1/sigma^2 is sum_inverse_sigma_squared.
static bool says_nothing_yet(const Words *w) { return w->n == 0 || strcmp(w->text, "sum") == 0 || strcmp(w->text, "mean") == 0; }

static void say_choice(Words *w, const Expr *e, const Loops *l)
{
    if (w->choices && !w->exact) return;
    const bool not = ex_is_num(e->args[1], 0);
    const Expr *x = e->args[1 + not ];
    w->choices++;
    if (!ex_is_num(x, 1)) say_expr(w, x, l);
    if (!not &&!ex_is_num(e->args[2], 0)) {
        say_link(w, "or");
        say_expr(w, e->args[2], l);
    }
    w->choices--;
    if (of_observed(e)) {
        say(w, "observed");
        return;
    }
    Words where = {.n = 0};
    if (said_comparison(&where, e->args[0], l) && is_whole(&where)) {
        say_link(w, not ? "where_not" : "where");
        say(w, where.text);
    } else say(w, "chosen");
}

// A function of several things beside what is said is left out: its words would be taken for those.
static void say_call(Words *w, const Expr *e, const Loops *l)
{
    if (e->fn == FN_if_else) {
        say_choice(w, e, l);
        return;
    }
    if (said_comparison(w, e, l)) return;
    if (e->nargs > 1 && !w->exact && !says_nothing_yet(w)) return;
    if (!isalpha((unsigned char)*e->name)) {
        say(w, "chosen");
        return;
    }
    say(w, e->name);
    for (int i = 0; i < e->nargs; i++)
        if (w->exact || e->nargs == 1 || e->args[i]->kind != EX_NUM) say_expr(w, e->args[i], l);
}

// The sum over i of sum_x_by_i[i] is one of x.
static const char *summed_part(const char *name)
{
    static char part[LONGEST + 8];
    if (strlen(name) >= sizeof part) return name;
    strcpy(part, strncmp(name, "sum_", 4) == 0 ? name + 4 : name);
    char *by = strstr(part, "_by_");
    if (by) *by = '\0';
    return part;
}

static void say_expr(Words *w, const Expr *e, const Loops *l)
{
    if (w->full) return;
    switch (e->kind) {
    case EX_NUM: say_number(w, e->number); return;
    case EX_INDEX: say(w, e->index->name); return;
    case EX_REF:
        say(w, w->most && e->var->kind == VAR_SUM ? summed_part(e->var->name) : e->var->name);
        for (int k = 0; k < e->nargs; k++) say_subscript(w, e->args[k]);
        return;
    case EX_ADD: say_sum(w, e, l); return;
    case EX_MUL:  // y/sigma is y_over_sigma, whatever the order of factors
        if (w->exact && e->args[0]->kind == EX_NUM && e->args[0]->number != -1) w->full = true;
        for (int over = 0; over < 2; over++)
            for (int i = e->args[0]->kind == EX_NUM; i < e->nargs; i++)
                if ((e->args[i]->kind == EX_POW && e->args[i]->number < 0) == over) say_expr(w, e->args[i], l);
        return;
    case EX_POW: {
        if (e->number < 0) say_link(w, says_nothing_yet(w) ? "inverse" : "over");
        if (e->number == 0.5 || e->number == -0.5) say_link(w, "root");
        const bool squared = w->squared = e->number == 2 || e->number == -2;
        say_expr(w, e->args[0], l);
        if (squared) say(w, "squared");
        w->squared = false;
        if (squared) return;
        if (e->number == 3 || e->number == -3) say(w, "cubed");
        else if (e->number != 1 && e->number != -1 && e->number != 0.5 && e->number != -0.5) {
            say(w, "power");
            w->full |= w->exact;
        }
        return;
    }
    case EX_CALL: say_call(w, e, l); return;
    case EX_REDUCE:
        if (e->fn != FN_sum) say(w, e->name);
        say_expr(w, e->args[2], l);
        return;
    case EX_ARRAY: say_expr(w, e->args[1], l); return;
    case EX_AT: say_expr(w, e->args[0], l); return;
    }
}

// A column of a matrix whose rows are summed, as j and k in X[i, j]*X[i, k].
static bool is_column(const Expr *target, const Sum *s)
{
    if (target->kind != EX_INDEX) return false;
    const Expr *value = s->value;
    if (of_observed(value)) value = ex_is_num(value->args[2], 1) ? value->args[0]->args[0] : value->args[2];
    const bool product = value->kind == EX_MUL;
    for (int f = 0; f < (product ? value->nargs : 1); f++) {
        const Expr *e = product ? value->args[f] : value;
        if (e->kind != EX_REF || e->nargs != 2 || e->args[1] != target || e->args[0]->kind != EX_INDEX) continue;
        bool summed = moves(e->args[0], &s->loops);
        for (int k = 0; k < s->n; k++) summed &= s->target[k] != e->args[0];
        if (summed) return true;
    }
    return false;
}

const char *statistic_name(const Graph *g, const Sum *s)
{
    Words w = {.n = 0};
    if (ex_is_num(s->value, 1)) say(&w, "count");
    else if (of_observed(s->value) && ex_is_num(s->value->args[2], 1)) say(&w, "count_observed");
    else {
        say(&w, "sum");
        say_expr(&w, s->value, &s->loops);
        drop_link(&w);
    }
    bool by = false;
    for (int k = 0; k < s->n; k++) {
        Words key = {.n = 0};
        const bool column = is_column(s->target[k], s);
        if (column && s->value->kind == EX_MUL) continue;  // X'y: the matrix says it
        if (column) say(&key, "column");
        else say_expr(&key, s->target[k], &s->loops);
        if (!by && w.n + key.n + 4 > LONGEST) break;
        if (!by) say(&w, "by");
        say(&w, key.text);
        by = true;
    }
    Words where = {.n = 0};
    if (s->loops.guard && said_comparison(&where, s->loops.guard, &s->loops) && is_whole(&where) && w.n + where.n + 7 <= LONGEST) {
        say(&w, "where");
        say(&w, where.text);
    }
    return arena_printf(g->arena, "%s", w.text);
}

// A stem, "" if words are missing.
const char *value_name(const Graph *g, const Expr *e, const Loops *over)
{
    Words w = {.n = 0};
    say_expr(&w, e, over);
    return arena_printf(g->arena, "%s", w.full ? "" : w.text);
}

// What has no words that say it: a choice, an array, a sum within the one at `with`, an element by its number.
static Look test_unsaid(const Expr *e, void *with)
{
    for (int i = 0; e->kind == EX_REF && i < e->nargs; i++)
        if (e->args[i]->kind == EX_NUM || e->args[i]->kind == EX_ADD) return FOUND;
    const bool choice = e->kind == EX_CALL && (e->fn == FN_if_else || !isalpha((unsigned char)*e->name));
    return choice || e->kind == EX_ARRAY || e->kind == EX_AT || (e->kind == EX_REDUCE && e != with) ? FOUND : LOOK;
}

enum { LONGEST_LOCAL = 28, LONGEST_TOTAL = 36 };

// How many there are of what 1/fmax(count, 1) divides by: count. NULL: it is something else.
static const Var *divided_by(const Expr *over)
{
    const Expr *count = over->kind == EX_POW && over->number == -1 ? over->args[0] : NULL;
    if (!count || count->kind != EX_CALL || strcmp(count->name, "fmax") != 0 || count->args[0]->kind != EX_REF) return NULL;
    return count->args[0]->var->kind == VAR_SUM ? count->args[0]->var : NULL;
}

// A sum that is a statistic over how many there are, at least 1: their mean. NULL: it is none.
const Var *statistic_mean(const Expr *e)
{
    if (e->kind != EX_MUL || e->nargs != 2) return NULL;
    for (int i = 0; i < 2; i++) {
        const Expr *sum = e->args[i], *over = e->args[1 - i];
        if (sum->kind != EX_REF || sum->nargs || sum->var->kind != VAR_SUM || strncmp(sum->var->name, "sum_", 4) != 0) continue;
        const Expr *count = over->kind == EX_POW && over->number == -1 ? over->args[0] : NULL;
        if (count && count->kind == EX_CALL && strcmp(count->name, "fmax") == 0) return sum->var;
    }
    return NULL;
}

// The sum of beta[i]^2*x[i] is sum_beta_squared_x: the words that there is room for, since the sum itself stands on the line.
static const char *total_local_name(const Graph *g, const Expr *e)
{
    Index *i = index_new(ex_index_called(e), e->args[0], e->args[1]);
    const Loops over = {.n = 1, .index = {i}};
    Words w = {.most = LONGEST_TOTAL};
    say(&w, "sum");
    say_expr(&w, ex_open(e, i), &over);
    drop_link(&w);
    for (size_t k = 0; k < w.n; k++)
        if (!isalnum((unsigned char)w.text[k]) && w.text[k] != '_') return "";
    return strchr(w.text, '_') && !map_get(&g->taken, w.text) ? arena_printf(g->arena, "%s", w.text) : "";
}

// Of a local variable that has the value of e: log_sigma, inverse_sigma_squared; "" if this would be long, or leave something out that a
// reader would miss, or is the name of a variable of the model.
const char *local_name(const Graph *g, const Expr *e)
{
    const Loops none = {0};
    Words w = {.exact = true};
    const Var *sum = statistic_mean(e);
    if (sum) {
        const char *name = arena_printf(g->arena, "mean_%s", sum->name + strlen("sum_"));
        return map_get(&g->taken, name) ? "" : name;
    }
    const Var *count = divided_by(e);
    if (count && strlen(count->name) < LONGEST_LOCAL) {
        const char *name = arena_printf(g->arena, "inverse_%s", count->name);
        return map_get(&g->taken, name) ? "" : name;
    }
    if (e->kind == EX_REDUCE && e->fn == FN_sum) return total_local_name(g, e);
    if (ex_find(e, test_unsaid, (void *)e)) return "";
    say_expr(&w, e, &none);
    const bool good = !w.full && w.n <= LONGEST_LOCAL && isalpha((unsigned char)w.text[0]) && strchr(w.text, '_');
    return good && !map_get(&g->taken, w.text) ? arena_printf(g->arena, "%s", w.text) : "";
}

// A product of a sum and what it is divided by, or a sum alone.
const char *total_name(Graph *g, const Expr *e)
{
    const Loops none = {0};
    Words w = {.n = 0};
    const Expr *sum = e;
    for (int i = 0; e->kind == EX_MUL && i < e->nargs; i++)
        if (e->args[i]->kind == EX_REDUCE) sum = e->args[i];
    const bool mean = sum != e && sum->fn == FN_sum && e->nargs == 2;
    say(&w, mean ? "mean" : sum->name);
    say_expr(&w, sum->args[2], &none);
    return arena_printf(g->arena, "%s", w.text);
}

// ---- the line above a statistic ----

// Whether a reader would take the name for something else.
static bool means_something(const Graph *g, const Sum *s, const char *name)
{
    if (map_get(&g->taken, name)) return true;
    for (int i = 0; i < s->loops.n; i++)
        if (s->loops.index[i]->name == name) return true;
    return false;
}

// A subscript of the statistic: the index of a loop stands for itself, another key for the name that its first reader has for it, or a
// fresh one.
static const char *subscript_name(const Graph *g, const Sum *s, int k, const char *before)
{
    static const char *const fresh[] = {"k", "l", "m", "n", "o", "q"};
    if (s->target[k]->kind == EX_INDEX && moves(s->target[k], &s->loops)) return s->target[k]->index->name;
    const char *name = s->at[k] && s->at[k]->kind == EX_INDEX ? s->at[k]->index->name : intern(fresh[0]);
    for (size_t i = 0;
         i < sizeof fresh / sizeof *fresh && (means_something(g, s, name) || strstr(before, arena_printf(g->arena, "%s, ", name))); i++)
        name = intern(fresh[i]);
    return name;
}

enum { MOST_SERVED = 8 };  // updates that are named, and unknowns of one

static const char *server_text(const Graph *g, const Update *s)
{
    if (s->conditional) return ex_quote(g->arena, s->conditional->current);
    const char *names = "";
    for (int i = 0; i < s->nblock && i < MOST_SERVED; i++)
        names = arena_printf(g->arena, "%s%s%s", names, i ? ", " : "", s->block[i]->name);
    return s->nblock > MOST_SERVED ? arena_printf(g->arena, "(%s, and %d more)", names, s->nblock - MOST_SERVED)
           : s->nblock > 1         ? arena_printf(g->arena, "(%s)", names)
                                   : names;
}

// fmax(count, 1), which divides by 1 where nothing is observed, is count for a reader.
static Expr *plain_count(Expr *e, void *with)
{
    (void)with;
    const bool counted = ex_is_call(e, FN_fmax) && e->args[0]->kind == EX_REF && strncmp(e->args[0]->var->name, "count_", 6) == 0;
    return counted && e->args[0]->var->kind == VAR_SUM && ex_is_num(e->args[1], 1) ? e->args[0] : NULL;
}

// Whether it says no more than that some of its data are missing; of each, the text: Y[i, j].
static bool names_missing(const Graph *g, const Expr *e, const char **of, int *n)
{
    if (ex_is_call(e, FN_OR)) return names_missing(g, e->args[0], of, n) && names_missing(g, e->args[1], of, n);
    if (e->kind != EX_CALL || strcmp(e->name, "missing") != 0) return false;
    *of = arena_printf(g->arena, "%s%s%s", *of, (*n)++ ? ", " : "", ex_quote(g->arena, e->args[0]));
    return true;
}

// What is summed. Where data may be missing the sum is over what is observed, which *where says instead of a choice between it and 0.
static const char *summed_text(const Graph *g, const Sum *s, const char **where)
{
    const char *of = "";
    int n = 0;
    Expr *value = s->value;
    if (ex_is_call(value, FN_if_else) && ex_is_num(value->args[1], 0) && names_missing(g, value->args[0], &of, &n)) {
        value = value->args[2];
        *where = arena_printf(g->arena, "%s %s observed", of, n > 1 ? "are" : "is");
    }
    return ex_quote(g->arena, ex_map(value, plain_count, NULL));
}

const char *statistic_text(const Graph *g, const Sum *s)
{
    const char *at = "", *over = "", *with = "", *serves = "", *where = NULL, *summed = summed_text(g, s, &where);
    for (int k = 0; k < s->n; k++) {
        const char *name = subscript_name(g, s, k, at);
        at = arena_printf(g->arena, "%s%s%s", at, name, k + 1 < s->n ? ", " : "");
        if (s->target[k]->kind != EX_INDEX)
            with = arena_printf(g->arena, "%s%s%s = %s", with, *with ? ", " : " with ", ex_quote(g->arena, s->target[k]), name);
    }
    for (int i = 0; i < s->loops.n; i++) {
        bool own = false;
        for (int k = 0; k < s->n; k++) own |= s->target[k] == ex_index(s->loops.index[i]);
        if (!own) over = arena_printf(g->arena, "%s%s%s", over, *over ? ", " : " over ", s->loops.index[i]->name);
    }
    if (s->loops.guard) with = arena_printf(g->arena, "%s where %s", with, ex_quote(g->arena, s->loops.guard));
    if (where) with = arena_printf(g->arena, "%s %s %s", with, s->loops.guard ? "and" : "where", where);
    int n = 0;
    for (const Server *t = s->serves; t; t = t->next, n++)
        if (n < MOST_SERVED) serves = arena_printf(g->arena, "%s%s%s", serves, n ? ", " : "", server_text(g, t->update));
    if (s->purpose) serves = arena_printf(g->arena, "; %s", s->purpose);
    else if (n)
        serves = arena_printf(g->arena, "; serves the conditional%s of %s%s", n > 1 ? "s" : "", serves,
                              n > MOST_SERVED ? arena_printf(g->arena, " and %d more", n - MOST_SERVED) : "");
    return arena_printf(g->arena, "%s%s%s%s = sum of %s%s%s%s", s->var->name, s->n ? "[" : "", at, s->n ? "]" : "", summed, over, with,
                        serves);
}
