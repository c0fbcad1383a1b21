// comments.c -- the lines above kernels, for who reads the program: the law that each draws from, in the notation of the language.
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "../graph/plan/describe.h"
#include "lower.h"

const char *words(Lower *p, const char *format, ...)
{
    char *s;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&s, format, ap) < 0) abort();
    va_end(ap);
    const char *copy = arena_strdup(p->g->arena, s);
    free(s);
    return copy;
}

const char *math(Lower *p, const Expr *e) { return ex_text(p->g->arena, e); }

const char *line_of(Lower *p, Span s) { return span_place(p->g->arena, s); }

const char *loops_over(Lower *p, const Loops *l)
{
    const char *over = "";
    for (int i = 0; i < l->n; i++) over = words(p, "%s%s%s", over, i ? ", " : "  over ", l->index[i]->name);
    return over;
}

enum { WIDTH = 150, LONGEST = 400, MOST_LINES = 14 };  // of the comment above a kernel; --explain prints all of it
enum { LEAST_COLUMNS = 70, LAST_COLUMNS = 26 };        // of a line that ends at a good place; at its end any such place is better

// Where a line of a comment ends: behind a comma, before a sign, in a gap; else at any space.
int end_of_comment_line(const char *s, int room)
{
    int space = 0, good = 0, depth = 0, least = room;  // least: parentheses that are open there
    if ((int)strlen(s) <= room) return (int)strlen(s);
    for (int i = 1; i <= room; i++) {
        depth += (s[i - 1] == '(') - (s[i - 1] == ')');
        if (s[i] != ' ' || s[i - 1] == ' ') continue;
        space = i;
        if (i >= room - LAST_COLUMNS && good < room - LAST_COLUMNS) least = room;
        if (i < LEAST_COLUMNS || depth > least || !(strchr(",;:.", s[i - 1]) || strchr("+-=~( ", s[i + 1]))) continue;
        good = i;
        least = depth;
    }
    return good ? good : space ? space : (int)strcspn(s, " ");
}

void note(Lower *p, const char *format, ...)
{
    char *s;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&s, format, ap) < 0) abort();
    va_end(ap);
    int indent = (int)strspn(s, " ");
    for (const char *rest = s; *rest;) {
        const bool first = rest == s;
        const int room = COMMENT_COLUMNS - 3 - (first ? 0 : indent + 4) - (p->g->lesson ? 4 : 0);  // 4: inside a function
        const int n = end_of_comment_line(rest, room);
        p->comment = words(p, "%s// %*s%.*s\n", p->comment ? p->comment : "", first ? 0 : indent + 4, "", n, rest);
        rest += n + strspn(rest + n, " ");
    }
    free(s);
}

const char *cut_line(Lower *p, const char *line) { return strlen(line) <= WIDTH ? line : words(p, "%.*s...", WIDTH - 3, line); }

// A line that note() wraps: of what is longer than a few lines it says so.
static const char *cut_lines(Lower *p, const char *line)
{
    if (strlen(line) <= LONGEST) return line;
    return words(p, "%.*s ... all of it: gmc --explain", end_of_comment_line(line, LONGEST - 30), line);
}

static const Augmentation *rule_that_brought(const Graph *g, const Var *v)
{
    for (const Factor *f = g->factors; f && v->kind == VAR_AUXILIARY; f = f->next)
        if (f->rule && f->value && f->value->kind == EX_REF && f->value->var == v) return f->rule;
    return NULL;
}

enum { LONGEST_FACTOR = 100, LONGEST_STATEMENTS = 330 };

const char *factor_text(Lower *p, const Factor *f)
{
    if (!f->dist) {
        const char *term = math(p, f->log_density);
        return strlen(term) < LONGEST_FACTOR ? words(p, "target += %s", term) : words(p, "target += %.*s...", LONGEST_FACTOR, term);
    }
    if (!f->value) return f->dist->name;
    const char *all = words(p, "%s ~ %s(", math(p, f->value), f->dist->name);
    for (int i = 0; i < f->nargs; i++) all = words(p, "%s%s%s", all, i ? ", " : "", math(p, f->args[i]));
    return f->nargs && strlen(all) < LONGEST_FACTOR ? words(p, "%s)", all) : words(p, "%s ~ %s", math(p, f->value), f->dist->name);
}

// Whether a distribution has not been explained above an earlier kernel.
static bool once(Lower *p, const char *name)
{
    const char *key = intern(words(p, "meaning of %s", name));
    const bool first = !map_get(&p->cited, key);
    map_put(p->g->arena, &p->cited, key, (void *)key);
    return first;
}

// The statements of a rule that its auxiliary v occurs in, as "tau ~ root_inv_gamma(1/2, 1/nu_tau), nu_tau ~ inv_gamma(1/2, 0.04)"; NULL
// where one is no distribution, or they are fewer than two.
static const char *statements_with(Lower *p, const Augmentation *rule, const Var *v)
{
    const char *all = "";
    int n = 0;
    const Factor *original = NULL;
    for (const Factor *f = p->g->factors; f; f = f->next) {
        bool occurs = f->value && ex_mentions(f->value, v);
        for (int i = 0; i < f->nargs; i++) occurs |= ex_mentions(f->args[i], v);
        if (f->rule != rule || !occurs) continue;
        if (!f->dist || !f->value) return NULL;
        if (f->original && f->original->dist) original = f->original;
        const bool said = p->g->lesson && f->value->kind == EX_REF && f->value->var == v;  // its own law is of a power of it
        const char *meaning = !said && once(p, f->dist->name) ? meaning_of(p->g, f->dist, f->nargs, f->args) : NULL;
        all = words(p, "%s%s%s%s%s", all, n++ ? ", " : "", factor_text(p, f), meaning ? ": " : "", meaning ? meaning : "");
    }
    if (n < 2) return NULL;
    return original ? words(p, "%s; with %s integrated out, %s", all, v->name, factor_text(p, original)) : all;
}

static void comment_auxiliary(Lower *p, const Augmentation *rule, const Var *v)
{
    const bool cites = rule->reference && !map_get(&p->cited, rule->name);  // the reference once
    const char *statements = cites ? statements_with(p, rule, v) : NULL;
    note(p, "  an auxiliary of %s%s%s", rule->name, cites ? ": " : "", cites ? rule->reference : "");
    if (cites && statements && strlen(statements) <= LONGEST_STATEMENTS) note(p, "  by which %s", statements);
    map_put(p->g->arena, &p->cited, rule->name, (void *)rule);
}

// What stands once in a program: how the density of a power becomes that of its unknown. The number of such comments is that of powers.
static void comment_change(Lower *p, const Description *d)
{
    const char *key = intern(words(p, "power %g", d->changed.power));
    if (!d->changed.line || map_get(&p->cited, key)) return;
    map_put(p->g->arena, &p->cited, key, (void *)d);
    note(p, "  %s", d->changed.line);
}

// In a lesson: what an auxiliary is there for.
static const char *of_auxiliary(Lower *p, const Update *s)
{
    const Augmentation *rule = s->nblock == 1 ? rule_that_brought(p->g, s->block[0]) : NULL;
    const char *statements = rule ? statements_with(p, rule, s->block[0]) : NULL;
    return statements ? words(p, ", where %s", statements) : "";
}

void comment_update(Lower *p, const Update *s)
{
    const Description *d = s->description;
    const Conditional *c = s->conditional;
    const bool density = s->kind == UPDATE_ENUM || s->kind == UPDATE_SLICE || s->kind == UPDATE_METROPOLIS ||
                         s->kind == UPDATE_ELLIPTICAL || s->kind == UPDATE_NUTS;
    p->says_law = true;
    const char *because = density && !s->imputes ? d->because : s->kind == UPDATE_GAUSSIAN && !p->g->lesson ? s->reason : NULL;
    const char *more = s->imputes                                                     ? "     if values are missing"
                       : p->g->lesson                                                 ? of_auxiliary(p, s)
                       : c && c->var->rank && (c->array || c->nbatch == c->var->rank) ? "     in parallel"
                                                                                      : "";
    if (s->over_sum) because = because ? words(p, "%s; unknowns are summed out", because) : "unknowns are summed out";
    if (s->collapsed && !s->imputes && !(s->selection && s->kind == UPDATE_NUTS))
        because = because ? words(p, "%s; auxiliaries are integrated out", because) : "auxiliaries are integrated out";
    if (s->kind == UPDATE_NUTS) {
        note(p, "%s%s     %s", d->what, d->is, line_of(p, s->span));
        note(p, "  %s", because);
        note(p, "  its log density, of which the code leaves out constants; that of its coordinates has the log Jacobian besides");
    } else
        note(p, "%s | rest%s%s%s%s%s     %s", d->what, *d->is == ':' ? "" : " ", d->is, because ? density ? ", because " : "     " : "",
             because ? because : "", more, line_of(p, s->span));
    const Augmentation *rule = s->imputes || s->nblock != 1 || p->g->lesson ? NULL : rule_that_brought(p->g, s->block[0]);
    if (rule) comment_auxiliary(p, rule, s->block[0]);
    const char *row = "";  // short parameters share one line
    for (int i = 0; i < d->n && !density && s->kind != UPDATE_GAUSSIAN; i++) row = words(p, "%s%s%s", row, i ? ", " : "", d->line[i]);
    if (*row && strlen(row) <= WIDTH) note(p, "  %s", row);
    for (int i = 0; i < d->n && (!*row || strlen(row) > WIDTH); i++) {
        if (i == MOST_LINES - 1 && d->n > MOST_LINES) {
            note(p, "  and %d lines more: gmc --explain", d->n - i);
            break;
        }
        note(p, "  %s", cut_lines(p, d->line[i]));
    }
    const Distribution *law = d->drawn.dist && s->kind == UPDATE_EXACT ? library_distribution(p->g->stdlib, intern(d->drawn.dist)) : NULL;
    if (law && law->meaning && once(p, law->name)) note(p, "  %s: %s", law->name, meaning_of(p->g, law, d->drawn.nargs, d->drawn.args));
    if (d->measure) note(p, "  %s", d->measure);
    if (s->kind == UPDATE_EXACT) comment_change(p, d);
}
