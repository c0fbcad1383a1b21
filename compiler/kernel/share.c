// kernel.c -- what kernels of all kinds are written with: headers and launches, loops, places to add to.
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lower.h"

Var *work_array(Program *p, const char *name, int rank, Expr *const *dim)
{
    Var *v = var_unique(p->g, name, VAR_SUM);
    v->rank = rank;
    for (int k = 0; k < rank; k++) v->dim[k] = dim[k];
    ROOM(p->g->arena, p->work, p->nwork, p->work_size);
    p->work[p->nwork++] = v;
    return v;
}

const char *math(Program *p, const Expr *e) { return ex_text(p->g->arena, e); }

const char *line_of(Program *p, Span s)
{
    const char *path = s.source ? s.source->path : "", *slash = strrchr(path, '/');
    return text(&p->w, "%s:%d", slash ? slash + 1 : path, span_line(s));
}

const char *wrap(Program *p, const char *c) { return strchr(c, ' ') ? text(&p->w, "(%s)", c) : c; }

const char *number_of(const Var *v) { return v->narrow ? "real" : "wide"; }

static const char *end_lines(Program *p)
{
    fclose(p->w.out);
    const char *lines = arena_strdup(p->g->arena, p->lines);
    free(p->lines);
    p->lines = NULL;
    return lines;
}

void begin_comment(Program *p) { p->w.out = open_memstream(&p->lines, &p->nlines); }
void end_comment(Program *p) { end_lines(p); }

void begin_kernel(Program *p, const char *kind, const char *name, const char *number)
{
    static const char *const macro[] = {
#define KERNEL_KIND(id, macro, help) [KERNEL_##id] = macro,
#include "kernel.def"
    };
    Writer *w = &p->w;
    Kernel *k = NEW(p->g->arena, Kernel);
    k->name = name;
    while (strcmp(macro[k->kind], kind) != 0) k->kind++;
    k->comment = end_lines(p);
    if (!p->list->first) p->list->last = &p->list->first;
    *p->list->last = k;
    p->list->last = &k->next;
    begin_comment(p);
    forget_all(w);
    p->nturns = 0;
    p->open = k;
    p->kernel = name;
    w->team = k->kind == KERNEL_TEAM;
    w->crew = false;
    w->number = number;
    w->indent = 1;
}

void end_kernel(Program *p)
{
    Writer *w = &p->w;
    release_scratch(w);
    w->indent = 0;
    Node *n = NEW(p->g->arena, Node);
    n->kind = NODE_TEXT;
    n->text.lines = end_lines(p);
    p->open->body = n;
    begin_comment(p);
    w->moving = NULL;
    w->team = false;
    p->open = NULL;
    p->kernel = NULL;
}

void launch(Program *p, int step, const char *format, ...)
{
    char *s;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&s, format, ap) < 0) abort();
    va_end(ap);
    const char *old = p->launches[step] ? p->launches[step] : "";
    const size_t n = strlen(s);
    if (s[0] == '}') p->launch_indent--;
    p->launches[step] = (char *)text(&p->w, "%s%*s%s%s\n", old, 4 * (1 + p->launch_indent), "", s, s[n - 1] == '{' || s[n - 1] == '}' ? "" : ";");
    if (s[n - 1] == '{') p->launch_indent++;
    free(s);
}

// Turns of the loops that a team shares, in all.
const char *team_work(Program *p)
{
    const char *all = NULL;
    for (int i = 0; i < p->nturns; i++) all = all ? text(&p->w, "%s + %s", all, p->turns[i]) : p->turns[i];
    return all ? all : "1";
}

void launch_kernel(Program *p, int step, const char *how, const char *kernel, const char *format, ...)
{
    char *arguments;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&arguments, format, ap) < 0) abort();
    va_end(ap);
    for (int i = 0; i < p->nuses; i++) {
        const PredictorUse *u = &p->use[i];
        if (strcmp(u->kernel, kernel) != 0 || (p->step && p->predictor[u->predictor].computed == p->step)) continue;
        launch(p, step, "%s", predictor_pass(p, u));
        p->predictor[u->predictor].computed = !u->only && p->launch_indent == 0 ? p->step : NULL;
    }
    launch(p, step, "%s(%s, run%s%s)", how, kernel, *arguments ? ", " : "", arguments);
    free(arguments);
}

void launch_team(Program *p, int step, const char *kernel) { launch_kernel(p, step, "LAUNCH_TEAM", kernel, "%s", team_work(p)); }

static void note_turns(Program *p, const char *turns)
{
    for (int i = 0; i < p->nturns; i++)
        if (strcmp(p->turns[i], turns) == 0) return;
    ROOM(p->g->arena, p->turns, p->nturns, p->turns_size);
    p->turns[p->nturns++] = turns;
}

// Whether e holds an index that is bound outside of it.
static Look array(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_AT || (e->kind == EX_CALL && strcmp(e->name, "log_determinant") == 0) ? FOUND : LOOK;
}

bool needs_array(const Expr *e)
{
    return e && ex_find(e, array, NULL);
}

static Look own_array(const Expr *e, void *with)
{
    const Loops *l = with;
    if (array(e, NULL) != FOUND) return LOOK;
    if (e->args[0]->loose) return FOUND;
    for (int i = 0; i < l->n; i++)
        if (ex_mentions_index(e->args[0], l->index[i])) return FOUND;
    return LOOK;
}

bool needs_own_array(const Expr *e, const Loops *l) { return e && ex_find(e, own_array, (void *)l); }

const char *count_of(Program *p, const Var *v, int dims)
{
    const char *c = NULL;
    for (int k = 0; k < dims; k++) {
        const char *n = write_extent(&p->w, v->dim[k]);
        bool wide = strchr(n, ' ') != NULL;
        n = wide ? text(&p->w, "(%s)", n) : n;
        c = c ? text(&p->w, "%s * %s", c, n) : text(&p->w, "%s%s", dims > 1 ? "(long)" : "", n);
    }
    return c ? c : "1";
}

// The guard of a loop nest, as early as its indices are known: after loop i.
static void write_guard(Program *p, const Loops *l, int i)
{
    Writer *w = &p->w;
    if (!l->guard) return;
    bool later = false, here = ex_mentions_index(l->guard, l->index[i]);
    for (int k = i + 1; k < l->n; k++) later |= ex_mentions_index(l->guard, l->index[k]);
    if (!later && (here || i + 1 == l->n)) put(w, "if (!(%s)) continue;", write_expr(w, l->guard));
}

static void name_outside(Program *p, const Loops *l, int from, int nvalues, Expr *const *values)
{
    Loops inner = {.n = l->n - from};
    memcpy(inner.index, l->index + from, sizeof *inner.index * (size_t)inner.n);
    int last = l->n - 1;                         // the loop in which the guard is asked
    while (last > 0 && l->guard && !ex_mentions_index(l->guard, l->index[last])) last--;
    if (l->guard && !(l->n && ex_mentions_index(l->guard, l->index[last]))) last = l->n - 1;
    if (from <= last) inner.guard = l->guard;
    for (int k = 0; k < nvalues; k++) keep_outside(&p->w, values[k], &inner);
}

static void open_rest(Program *p, const Loops *l, int from, int nvalues, Expr *const *values)
{
    for (int i = from; i < l->n; i++) {
        name_outside(p, l, i, nvalues, values);
        open_loop(&p->w, l->index[i]);
        write_guard(p, l, i);
    }
}

// Opens loops with what they do not change named first, the guard inside.
void open_loops(Program *p, const Loops *l, int nvalues, Expr *const *values) { open_rest(p, l, 0, nvalues, values); }

// Turns of loops whose ranges do not depend on each other.
const char *turns_of(Program *p, const Loops *l)
{
    Writer *w = &p->w;
    const char *c = NULL;
    for (int i = 0; i < l->n; i++) {
        bool varies = false;
        for (int k = 0; k < l->n; k++) varies |= ex_mentions_index(l->index[i]->hi, l->index[k]);
        for (int k = 0; k < w->nnamed; k++) varies |= ex_mentions_index(l->index[i]->hi, w->named[k].index);
        if (varies || needs_array(l->index[i]->hi) || ex_unknown(l->index[i]->hi)) continue;
        const char *n = wrap(p, write_extent(w, l->index[i]->hi));
        c = c ? text(w, "%s * %s", c, n) : text(w, "%s%s", l->n > 1 ? "(long)" : "", n);
    }
    return c ? c : "1";
}

// SUM_ALONG (i, n, totals), ALONG (i, n), LANES (i, n): a loop that the lanes of a team share.
static void open_shared(Program *p, const char *how, Index *i, const char *totals)
{
    Writer *w = &p->w;
    const char *lo = write_subscript(w, i->lo), *hi = write_extent(w, i->hi), *c = fresh_index(w, i), *more = totals ? text(w, ", %s", totals) : "";
    if (strcmp(lo, "0") == 0) open_brace(w, "%s (%s, %s%s)", how, c, hi, more);
    else open_brace(w, "%s_FROM (%s, %s, %s - %s%s)", how, c, lo, hi, wrap(p, lo), more);
}

void open_sum(Program *p, const Loops *l, const char *totals, int nvalues, Expr *const *values)
{
    Writer *w = &p->w;
    if (!w->team || l->n == 0) { open_rest(p, l, 0, nvalues, values); return; }
    name_outside(p, l, 0, nvalues, values);
    note_turns(p, turns_of(p, l));
    open_shared(p, w->crew ? "SUM_TURNS" : "SUM_ALONG", l->index[0], totals);
    w->team = false;
    write_guard(p, l, 0);
    open_rest(p, l, 1, nvalues, values);
}

void open_along(Program *p, const Loops *l)
{
    Writer *w = &p->w;
    note_turns(p, turns_of(p, l));
    for (int i = 0; i < l->n; i++) {
        if (i == 0) open_shared(p, "ALONG", l->index[0], NULL);
        else open_loop(w, l->index[i]);
        w->team = false;
        write_guard(p, l, i);
    }
}

static bool bare(const Expr *e, const Index *i) { return e->kind == EX_INDEX && e->index == i; }

// ---- sums by group ----

// The rows in order of their groups: made once, found again for another plate of the same rows and groups.
static const Order *order_of(Program *p, Index *row, Expr *key, Expr *guard, Expr *extent)
{
    Writer *w = &p->w;
    for (int i = 0; i < p->norders; i++) {
        const Order *o = &p->order[i];
        if (o->row->hi == row->hi && o->row->lo == row->lo && o->extent == extent && ex_replace_index(key, row, ex_index(o->row)) == o->key &&
            (guard ? ex_replace_index(guard, row, ex_index(o->row)) : NULL) == o->guard) return o;
    }
    ROOM(p->g->arena, p->order, p->norders, p->order_size);
    const char *stem = key->kind == EX_REF ? key->var->name : "group";
    Order *o = &p->order[p->norders++];
    *o = (Order){row, key, guard, extent, NULL, NULL, NULL};
    Expr *more = ex_add2(extent, ex_num(1));
    o->keys = work_array(p, text(w, "key_%s", stem), 1, &row->hi);
    o->first = work_array(p, text(w, "first_%s", stem), 1, &more);
    o->rows = work_array(p, text(w, "rows_%s", stem), 1, &row->hi);
    Var *all[] = {o->keys, o->first, o->rows};
    for (int k = 0; k < 3; k++) {
        all[k]->base = BASE_INT;
        all[k]->once = true;
    }
    return o;
}

void emit_orders(Program *p)
{
    Writer *w = &p->w;
    if (!p->norders) return;
    put(w, "// The group of each row, for sums by group; 0: in none.");
    begin_kernel(p, "KERNEL_TEAM", "groups", "wide");
    for (int i = 0; i < p->norders; i++) {
        const Order *o = &p->order[i];
        int m = mark(w);
        const char *n = write_extent(w, o->row->hi), *c = fresh_index(w, o->row);
        const char *key = o->key->kind == EX_REF ? write_expr(w, o->key) : text(w, "%s + 1", write_subscript(w, o->key));
        note_turns(p, n);
        const char *inside = o->guard ? write_expr(w, o->guard) : NULL;
        if (!ex_is_num(o->row->lo, 1)) inside = text(w, "%s >= %s%s%s", c, write_subscript(w, o->row->lo), inside ? " && " : "", inside ? inside : "");
        w->team = false;
        put(w, inside ? "ALONG (%s, %s) s.%s[%s] = %s ? %s : 0;" : "ALONG (%s, %s) s.%s[%s] = %s%s;", c, n, o->keys->name, c, inside ? inside : "", key);
        w->team = true;
        forget(w, m);
    }
    end_kernel(p);
}

// The one subscript that is a gather of data, key[row]; the others do not vary or are loops of their own. -1: there is no such thing.
static int one_gather(const Loops *l, int n, Expr *const *target, int *row)
{
    int at = -1;
    for (int k = 0; k < n; k++) {
        int varies = 0, last = -1;
        for (int i = 0; i < l->n; i++)
            if (ex_mentions_index(target[k], l->index[i])) { varies++; last = i; }
        if (varies == 0) continue;
        if (bare(target[k], l->index[last]) && varies == 1) continue;
        if (varies != 1 || !ex_data_only(target[k]) || (at >= 0 && target[at] != target[k])) return -1;
        at = k;
        *row = last;
    }
    if (at < 0) return -1;
    for (int k = 0; k < n; k++)
        if (bare(target[k], l->index[*row])) return -1;
    return at;
}

static bool sum_by_group(Program *p, const Loops *l, int n, Expr *const *target, Expr *const *extent, Expr *value, AddEntry add, void *with)
{
    Writer *w = &p->w;
    int row = -1, at = extent ? one_gather(l, n, target, &row) : -1;
    if (at < 0) return false;
    Index *i = l->index[row];
    Loops places = {0}, within = {0};
    for (int k = 0; k < l->n; k++) {
        bool place = false;
        for (int q = 0; q < n; q++) place |= bare(target[q], l->index[k]);
        for (int q = 0; q < l->n; q++)
            if (ex_mentions_index(l->index[k]->hi, l->index[q]) || ex_mentions_index(l->index[k]->lo, l->index[q])) return false;
        if (k == row) continue;
        if (place) places.index[places.n++] = l->index[k];
        else within.index[within.n++] = l->index[k];
    }
    if (ex_unknown(extent[at]) || ex_unknown(i->hi) || ex_reads_response(target[at])) return false;    // responses: their values may be missing, and move
    Expr *guard = NULL;                          // what the row alone decides picks the rows; the rest is asked within
    bool alone = l->guard != NULL;
    for (int k = 0; k < l->n && l->guard; k++) alone &= k == row || !ex_mentions_index(l->guard, l->index[k]);
    if (alone && ex_data_only(l->guard) && !ex_reads_response(l->guard)) guard = l->guard;
    const Order *o = order_of(p, i, target[at], guard, extent[at]);
    if (!o) return false;
    Expr **values = value->kind == EX_CALL && strcmp(value->name, "scattered") == 0 ? value->args : &value;
    const int count = values == &value ? 1 : value->nargs;
    if (count > 4) return false;
    int m = mark(w);
    Index *group = index_new(intern("k"), ex_num(1), extent[at]);
    const char *rows = wrap(p, write_extent(w, i->hi)), *groups = write_extent(w, extent[at]), *g = fresh_index(w, group);
    note_turns(p, turns_of(p, l));
    open_brace(w, "EACH_GROUP (%s, %s, %s)", g, groups, rows);
    w->team = false;
    open_rest(p, &places, 0, 0, NULL);
    const char *total[4], *into = "";
    for (int k = 0; k < count; k++) {
        total[k] = text(w, "total%d", ++w->temporaries);
        put(w, "wide %s = 0;", total[k]);
        into = text(w, "%s, &%s", into, total[k]);
    }
    int m2 = mark(w);
    open_brace(w, "SUM_ROWS (%s, %s, s.%s, s.%s%s)", fresh_index(w, i), g, o->first->name, o->rows->name, into);
    if (l->guard && !guard && within.n == 0) put(w, "if (!(%s)) continue;", write_expr(w, l->guard));
    if (!guard) within.guard = within.n ? l->guard : NULL;
    open_rest(p, &within, 0, count, values);
    for (int k = 0; k < count; k++) add_to(p, total[k], values[k]);
    close_loops(p, &within);
    close_brace(w);
    forget(w, m2);
    for (int k = 0; k < count; k++) know(w, values[k], total[k]);
    w->group = target[at];
    w->group_name = g;
    open_brace(w, "GROUP_LANE");
    add(p, value, with);
    close_brace(w);
    w->group = NULL;
    close_loops(p, &places);
    close_brace(w);
    w->team = true;
    put(w, "TEAM_BARRIER();");
    forget(w, m);
    return true;
}

// ---- sums over rows into places ----

static const Var *array_named(Program *p, const char *name)
{
    for (int i = 0; i < p->nwork; i++)
        if (strcmp(p->work[i]->name, name) == 0) return p->work[i];
    for (const Sum *s = p->g->sums; s; s = s->next)
        if (strcmp(s->var->name, name) == 0) return s->var;
    return NULL;
}

// What was written since begin_into becomes the body of a loop over rows i that adds to places of the arrays which it names.
typedef struct Into { FILE *out; char *body; size_t size; Index *row; const char *name; } Into;

static void begin_into(Program *p, Into *t, Index *row)
{
    Writer *w = &p->w;
    t->row = row;
    t->out = w->out;
    t->name = NULL;
    p->ninto = 0;
    w->indent++;
    w->out = open_memstream(&t->body, &t->size);
    t->name = fresh_index(w, row);
}

static void end_into(Program *p, Into *t, const char *how)
{
    Writer *w = &p->w;
    fclose(w->out);
    w->out = t->out;
    w->indent--;
    const char *arrays = "", *lo = write_subscript(w, t->row->lo), *hi = write_extent(w, t->row->hi);
    const char *rows = strcmp(lo, "0") == 0 ? hi : text(w, "%s - %s", hi, wrap(p, lo));
    for (int i = 0; i < p->ninto && p->ninto <= 4; i++) {
        const Var *v = array_named(p, p->into[i]);
        arrays = text(w, "%s, %s, %s", arrays, p->into[i], count_of(p, v, v->rank));
    }
    open_brace(w, "%s%d (%s, %s, %s%s)", how, p->ninto <= 4 ? p->ninto : 0, t->name, lo, rows, arrays);
    fputs(t->body, w->out);
    free(t->body);
    close_brace(w);
    put(w, "TEAM_BARRIER();");
}

void scatter(Program *p, const Loops *l, int n, Expr *const *target, Expr *const *extent, Expr *value, AddEntry add, void *with)
{
    Writer *w = &p->w;
    const bool team = w->team;
    if (team) name_outside(p, l, 0, 1, &value);  // these names hold to the end of the kernel
    int m = mark(w);
    bool out[MAX_LOOPS] = {false}, direct = true, any = false;
    for (int k = 0; k < n; k++) {
        bool found = false, varies = false;
        for (int i = 0; i < l->n; i++) {
            if (bare(target[k], l->index[i])) { found = true; out[i] = true; }
            if (ex_mentions_index(target[k], l->index[i])) varies = true;
        }
        any |= varies;
        if (varies && !found) direct = false;
    }
    if (!team || l->n == 0) {
        bool braces = open_guard(p, l), one = team && l->n == 0;
        if (one) { open_brace(w, "ONE_LANE"); w->team = false; }
        else if (l->n == 0 && !braces) open_brace(w, "%s", "");
        open_rest(p, l, 0, 1, &value);
        add(p, value, with);
        close_loops(p, l);
        if (one || (l->n == 0 && !braces)) close_brace(w);
        if (braces) close_brace(w);
        w->team = team;
        forget(w, m);
        return;
    }
    // Order: loops that are summed over, then loops over places.
    Loops o = {.guard = l->guard};
    int summed = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < l->n; i++)
            if (out[i] == (pass == 1)) { o.index[o.n++] = l->index[i]; summed += pass == 0; }
    for (int i = 0; i < o.n && direct; i++)
        for (int k = 0; k < o.n; k++) {
            const bool moves = ex_mentions_index(o.index[i]->lo, o.index[k]) || ex_mentions_index(o.index[i]->hi, o.index[k]);
            if (moves && (k > i || i >= summed)) direct = false;
        }
    if (!any || !direct) {
        if (any && sum_by_group(p, l, n, target, extent, value, add, with)) return;
        if (any) {                               // gathers: a lane adds to the places whose keys are its own
            Into into;
            name_outside(p, l, 0, 1, &value);
            begin_into(p, &into, l->index[0]);
            w->team = false;
            write_guard(p, l, 0);
            open_rest(p, l, 1, 1, &value);
            p->own = true;
            add(p, value, with);
            p->own = false;
            for (int i = 1; i < l->n; i++) close_brace(w);
            end_into(p, &into, "SUM_KEYED");
            w->team = team;
            note_turns(p, turns_of(p, l));
            forget(w, m);
            return;
        }
        if (value->kind == EX_CALL && strcmp(value->name, "scattered") == 0) {
            open_brace(w, "ONE_LANE");
            w->team = false;
            open_rest(p, l, 0, 1, &value);
            add(p, value, with);
            close_loops(p, l);
            close_brace(w);
            w->team = team;
            forget(w, m);
            return;
        }
        const char *total = text(w, "total%d", ++w->temporaries);       // one place
        put(w, "wide %s = 0;", total);
        open_sum(p, l, text(w, "&%s", total), 1, &value);
        add_to(p, total, value);
        close_loops(p, l);
        forget(w, m);
        know(w, value, total);
        open_brace(w, "ONE_LANE");
        w->team = false;
        add(p, value, with);
        close_brace(w);
        w->team = team;
        forget(w, m);
        return;
    }
    Into into;
    for (int i = 0; i < summed; i++) {
        name_outside(p, &o, i, 1, &value);
        if (i == 0) begin_into(p, &into, o.index[0]);
        else open_loop(w, o.index[i]);
        w->team = false;
        write_guard(p, &o, i);
    }
    name_outside(p, &o, summed, 1, &value);
    note_turns(p, turns_of(p, &o));
    const char *how = summed ? "PLACES" : "ALONG";
    int next = summed + 1;
    if (o.n - summed >= 2 && ex_is_num(o.index[summed]->lo, 1) && ex_is_num(o.index[summed + 1]->lo, 1)) {
        const char *n1 = write_extent(w, o.index[summed]->hi), *n2 = write_extent(w, o.index[summed + 1]->hi);
        const char *a = fresh_index(w, o.index[summed]), *b = fresh_index(w, o.index[summed + 1]);
        open_brace(w, "%s2 (%s, %s, %s, %s)", how, a, n1, b, n2);
        next = summed + 2;
        w->team = false;
        write_guard(p, &o, summed);
        write_guard(p, &o, summed + 1);
    } else {
        open_shared(p, how, o.index[summed], NULL);
        w->team = false;
        write_guard(p, &o, summed);
    }
    open_rest(p, &o, next, 1, &value);
    add(p, value, with);
    for (int i = next; i < o.n; i++) close_brace(w);
    close_brace(w);
    for (int i = 1; i < summed; i++) close_brace(w);
    if (summed) end_into(p, &into, "SUM_INTO");
    w->team = team;
    forget(w, m);
}

void close_loops(Program *p, const Loops *l)
{
    for (int i = 0; i < l->n; i++) close_brace(&p->w);
}

// A guard that no loop carries.
bool open_guard(Program *p, const Loops *l)
{
    if (!l->guard) return false;
    bool carried = false;
    for (int i = 0; i < l->n; i++) carried |= ex_mentions_index(l->guard, l->index[i]);
    if (carried || l->n > 0) return false;
    open_brace(&p->w, "if (%s)", write_expr(&p->w, l->guard));
    return true;
}

bool starts_minus(const char *c) { return c[0] == '-' && strncmp(c, "-INF", 4) != 0; }

// s.array[position] += value, by the lane whose place it is.
void add_at(Program *p, const char *array, const char *position, const char *value)
{
    Writer *w = &p->w;
    const bool minus = starts_minus(value) && !strstr(value, " + ") && !strstr(value, " - ");
    const char *place = position ? text(w, "s.%s[%s]", array, position) : text(w, "*s.%s", array);
    const char *own = p->own && position ? text(w, "if (OWN(%s)) ", position) : "";
    bool met = false;
    for (int i = 0; i < p->ninto; i++) met |= strcmp(p->into[i], array) == 0;
    if (!met && p->ninto < 8) p->into[p->ninto++] = array;
    put(w, "%s%s %s= %s;", own, place, minus ? "-" : "+", minus ? value + 1 : value);
}

void add_to(Program *p, const char *place, Expr *value)
{
    const char *c = write_expr(&p->w, value);
    if (starts_minus(c) && !strstr(c, " + ") && !strstr(c, " - ")) put(&p->w, "%s -= %s;", place, c + 1);
    else put(&p->w, "%s += %s;", place, c);
}

// ---- expressions of stdlib `draw` calls ----

static const char *rule_arg(Program *p, const Ast *a, int n, const Arg *args)
{
    Writer *w = &p->w;
    switch (a->kind) {
    case AST_NAME:
        for (int i = 0; i < n; i++)
            if (strcmp(args[i].name, a->name) == 0) return args[i].c;
        return a->name;
    case AST_INT: case AST_REAL: return text(w, "%.17g", a->number);
    case AST_UNARY: return text(w, "-%s", rule_arg(p, a->kid[0], n, args));
    case AST_BINARY: {
        const char *op = a->op == OP_ADD ? "+" : a->op == OP_SUB ? "-" : a->op == OP_DIV ? "/" : "*";
        return text(w, "(%s %s %s)", rule_arg(p, a->kid[0], n, args), op, rule_arg(p, a->kid[1], n, args));
    }
    case AST_CALL: {
        const char *list = "";
        for (int i = 0; i < a->nkids; i++) list = text(w, "%s%s%s", list, i ? ", " : "", rule_arg(p, a->kid[i], n, args));
        return text(w, "%s(%s)", a->name, list);
    }
    case AST_STRING: case AST_INDEX: case AST_RANGE: case AST_ALL: case AST_TRANSPOSE: case AST_COND: case AST_REDUCE: case AST_ARRAY: break;
    }
    return "0";
}

const char *draw_call(Program *p, const Ast *call, int n, const Arg *args)
{
    const char *list = "&g";
    for (int i = 0; i < call->nkids; i++) list = text(&p->w, "%s, %s", list, rule_arg(p, call->kid[i], n, args));
    return text(&p->w, "%s(%s)", call->name, list);
}

// ---- the element loop that most steps share ----

// EACH over the first `parallel` dimensions, ordinary loops over the rest; returns the loops opened inside. EACH_ELEMENT for crews, which share
// `turns` turns for each element.
int open_elements(Program *p, const Var *v, Index *const *element, int parallel, const char *turns)
{
    Writer *w = &p->w;
    int opened = 0;
    if (parallel > 0) {
        const char *names[MAX_RANK];
        for (int k = 0; k < parallel; k++) names[k] = element[k]->name;
        const char *name = parallel == 1 ? names[0] : "e", *count = count_of(p, v, parallel);
        if (turns) open_brace(w, "EACH_ELEMENT (%s, %s, %s)", name, count, turns);
        else open_brace(w, "EACH (%s, %s)", name, count);
        if (parallel > 1) {
            const char *stride = NULL;
            for (int k = parallel - 1; k >= 0; k--) {
                const char *n = write_extent(w, v->dim[k]);
                if (strchr(n, ' ')) n = text(w, "(%s)", n);
                if (k == 0) put(w, "const long %s = e / (%s);", names[k], stride);
                else if (!stride) put(w, "const long %s = e %% %s;", names[k], n);
                else put(w, "const long %s = e / (%s) %% %s;", names[k], stride, n);
                stride = !stride ? n : text(w, "%s%s * %s", strncmp(stride, "(long)", 6) == 0 ? "" : "(long)", stride, n);     // sizes are ints, their products longs
            }
        }
        for (int k = 0; k < parallel; k++) name_index(w, element[k], names[k]);
        opened++;
    }
    for (int k = parallel; k < v->rank; k++) {
        open_brace(w, "for (long %s = 0; %s < %s; %s++)", element[k]->name, element[k]->name, write_extent(w, v->dim[k]), element[k]->name);
        name_index(w, element[k], element[k]->name);
        opened++;
    }
    return opened;
}

const char *stream_text(Program *p, const Var *v, const char *element)
{
    return text(&p->w, "Stream g = stream(at, VAR_%s, %s);", v->name, element);
}

const char *place_of(Program *p, const Conditional *c)
{
    Writer *w = &p->w;
    if (c->var->rank == 0) return text(w, "*%s", var_place(w, c->var));
    return text(w, "%s[%s]", var_place(w, c->var), write_position(w, c->var, c->current->args));
}

