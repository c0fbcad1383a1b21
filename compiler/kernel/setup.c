// setup.c -- what surrounds the sweep: definitions and sums of data, the log joint, quantities for the draws.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "lower.h"

// ---- what is computed once: lets and sums of data ----

static bool test_response(const Var *v, void *with) { (void)with; return v->kind == VAR_DATA && v->response; }

bool ex_reads_response(const Expr *e) { return e && ex_any_var(e, test_response, NULL); }

bool reads_response(const Sum *s)
{
    bool yes = ex_reads_response(s->value) || ex_reads_response(s->loops.guard);
    for (int k = 0; k < s->n; k++) yes |= ex_reads_response(s->target[k]);
    for (int k = 0; k < s->loops.n; k++) yes |= ex_reads_response(s->loops.index[k]->lo) || ex_reads_response(s->loops.index[k]->hi);
    return yes;
}

// ---- draws of the predict block ----

static const char *call_of_routine(Program *p, const Site *t)
{
    Writer *w = &p->w;
    const char *list = "&g";
    for (int i = 0; i < t->nsample; i++) {
        list = text(w, "%s, %s", list, write_expr(w, t->args[i]));
        if (t->n == t->var->rank && ex_rank(t->args[i]) == 1) list = text(w, "%s, %s", list, write_extent(w, ex_dim(t->args[i], 0)));
    }
    return list;
}

// A vector or a matrix, in its place.
static void draw_whole(Program *p, const Site *t, const char *place, const char *pos)
{
    Writer *w = &p->w;
    const char *n = write_extent(w, t->var->dim[t->var->rank - 1]), *list = call_of_routine(p, t);
    put(w, "%s", stream_text(p, t->var, pos));
    put(w, "if (%s(%s, %s, &%s)) FAULT(\"%s\", %s, \"its draw from %s is not possible: an argument is out of range, or a matrix not positive definite (%s)\");",
        t->sample, list, n, place, t->var->name, pos, t->dist->name, line_of(p, t->span));
}

// A number that has to lie between two ends, as x: see within.h.
static void draw_within(Program *p, const Site *t, const char *pos)
{
    Writer *w = &p->w;
    Expr *const *rest = t->args + t->nsample;
    const char *lo = write_expr(w, rest[0]), *hi = write_expr(w, rest[1]), *least = write_expr(w, rest[2]), *most = write_expr(w, rest[3]);
    put(w, "wide lower = %s, upper = %s;", lo, hi);
    if (!ex_is_num(rest[2], -INFINITY)) put(w, "if (lower < %s) lower = %s;", least, least);
    if (!ex_is_num(rest[3], INFINITY)) put(w, "if (upper > %s) upper = %s;", most, most);
    put(w, "if (!(lower <= upper)) FAULT(\"%s\", %s, \"no value of %s lies between its ends (%s)\");", t->var->name, pos, t->dist->name, line_of(p, t->span));
    put(w, "wide x = NAN;");
    if (t->exact) {
        for (int side = 0; side < 2; side++) know(w, t->end[side], side ? "upper" : "lower");
        put(w, "x = %s(%s);", t->sample, call_of_routine(p, t));
        put(w, "if (!is_finite(x)) FAULT(\"%s\", %s, \"its truncated %s could not be drawn: an argument is out of range, or so little of it lies between the ends (%s)\");",
            t->var->name, pos, t->dist->name, line_of(p, t->span));
        return;
    }
    const bool search = t->dist->discrete || t->nargs > t->nsample + 4;
    if (t->sample) {
        const char *list = call_of_routine(p, t);
        put(w, "for (long tries = 0; tries < %s && !(x >= lower && x <= upper); tries++) x = %s(%s);", search ? "GM_TRIES" : "GM_MOST_TRIES", t->sample, list);
    }
    open_brace(w, "if (!(x >= lower && x <= upper))");
    int m = mark(w);
    if (t->dist->discrete) {
        put(w, "Weights search = weights_start(lower, upper);");
        open_brace(w, "while (weights_next(&g, &search))");
        know(w, t->x, "search.x");
        put(w, "search.log_weight = %s;", write_expr(w, rest[4]));
        close_brace(w);
        put(w, "x = weights_value(&search);");
    } else if (search) {
        put(w, "Inversion search = inversion_start(&g, lower, upper);");
        open_brace(w, "while (inversion_next(&search, %s, %s))", least, most);
        know(w, t->x, "search.x");
        put(w, "search.below = %s;", write_expr(w, rest[4]));
        put(w, "search.above = %s;", write_expr(w, rest[5]));
        close_brace(w);
        put(w, "x = inversion_value(&search);");
    }
    forget(w, m);
    put(w, "if (!(x >= lower && x <= upper)) FAULT(\"%s\", %s, \"so little of %s lies between its ends that it cannot be drawn (%s)\");",
        t->var->name, pos, t->dist->name, line_of(p, t->span));
    close_brace(w);
}

static void draw_one(Program *p, const Site *t, const char *place, const char *pos)
{
    Writer *w = &p->w;
    const char *list = t->within ? NULL : call_of_routine(p, t);
    put(w, "%s", stream_text(p, t->var, pos));
    if (t->within) draw_within(p, t, pos);
    else put(w, "const wide x = %s(%s);", t->sample, list);
    if (t->dist->discrete && !t->within)
        for (int side = 0; side < 2; side++) {
            Expr *end = t->args[t->nsample + side];
            if (end->kind != EX_NUM || isfinite(end->number))
                put(w, "if (!(x %s %s)) FAULT(\"%s\", %s, \"it cannot be drawn from %s: an argument is out of range (%s)\");", side ? "<=" : ">=", write_factor(w, end),
                    t->var->name, pos, t->dist->name, line_of(p, t->span));
        }
    if (t->var->base == BASE_INT) put(w, "if (!(x >= -2147483647 && x <= 2147483647)) FAULT(\"%s\", %s, \"its draw is not an integer of 32 bits\");", t->var->name, pos);
    else put(w, "VERIFY(x, \"%s\", %s);", t->var->name, pos);
    put(w, "%s = x;", place);
}

// ---- definitions ----

// One element that a statement computes or draws.
typedef struct SiteEntry { const Var *var; const Site *site; } SiteEntry;

static void add_site(Program *p, Expr *value, void *with)
{
    const SiteEntry *e = with;
    const Var *v = e->var;
    const Site *t = e->site;
    Writer *w = &p->w;
    const char *pos = write_position(w, v, t->subscript);
    const char *place = v->rank ? text(w, "%s[%s]", var_place(w, v), pos) : text(w, "*%s", var_place(w, v));
    if (t->value) { put(w, "%s = %s;", place, write_expr(w, value)); return; }
    open_brace(w, "%s", "");                     // a scope for the names of the draw
    if (t->n < v->rank) draw_whole(p, t, place, pos);
    else draw_one(p, t, place, pos);
    close_brace(w);
}

static bool test_element(const Var *v, void *with) { (void)with; return v->kind == VAR_ELEMENT; }

static void emit_site(Program *p, const Var *v, const Site *t)
{
    Writer *w = &p->w;
    Loops l = {.guard = t->plates.guard};
    for (int i = 0; i < t->plates.n; i++) l.index[l.n++] = t->plates.index[i];
    SiteEntry entry = {v, t};
    Expr **outside = NEW_N(w->arena, Expr *, t->nargs + 1);      // arguments that do not speak of the value to be drawn
    int n = 0;
    for (int i = 0; i < t->nargs; i++)
        if (!ex_any_var(t->args[i], test_element, NULL)) outside[n++] = t->args[i];
    Expr *value = t->value ? t->value : n ? ex_call("scattered", n, outside) : ex_num(0);
    w->moving = v;
    const bool team = w->team, itself = ex_mentions(value, v);
    if (team && itself && l.n > 0) {             // it reads what it computed before: in order
        open_brace(w, "ONE_LANE");
        w->team = false;
    }
    Expr *target[MAX_RANK];
    for (int k = 0; k < l.n && k < MAX_RANK; k++) target[k] = ex_index(l.index[k]);      // each turn computes its own element
    scatter(p, &l, l.n, target, NULL, value, add_site, &entry);
    if (team && itself && l.n > 0) close_brace(w);
    w->team = team;
    w->moving = NULL;
}

// ---- series: elements that depend on each other, one after the other ----

static void write_series(Program *p, const Series *s)
{
    Writer *w = &p->w;
    const char *c = fresh_index(w, s->along), *n = write_extent(w, s->along->hi);
    open_brace(w, s->backward ? "for (long %1$s = %2$s; %1$s-- > 0;)" : "for (long %1$s = 0; %1$s < %2$s; %1$s++)", c, n);
    for (const Site *t = s->sites; t; t = t->next) {
        int m = mark(w);
        Loops l = {.guard = t->plates.guard};
        for (int i = 0; i < t->plates.n; i++) l.index[l.n++] = t->plates.index[i];
        SiteEntry entry = {t->var, t};
        const bool draw = !t->value || l.n;
        bool inside = false;                     // a condition on the indices of the loops
        for (int i = 0; i < l.n && l.guard; i++) inside |= ex_mentions_index(l.guard, l.index[i]);
        if (l.guard && !inside) open_brace(w, "if (%s)", write_expr(w, l.guard));
        else if (draw) open_brace(w, "%s", "");
        for (int i = 0; i < l.n; i++) open_loop(w, l.index[i]);
        if (inside) open_brace(w, "if (%s)", write_expr(w, l.guard));
        add_site(p, t->value, &entry);
        if (inside) close_brace(w);
        for (int i = 0; i < l.n; i++) close_brace(w);
        if ((l.guard && !inside) || draw) close_brace(w);
        forget(w, m);
    }
    close_brace(w);
}

// Functions in which a subscript may be outside its array are told of the kernel that calls them.
const char *wild_context(const Program *p)
{
    for (int i = 0; i < p->g->nvars; i++)
        if (p->g->vars[i]->wild) return "GM, ";
    return "";
}

bool emit_series(Program *p)
{
    Writer *w = &p->w;
    bool any = false;
    for (const Series *s = p->g->series; s; s = s->next) {
        if (s->var[0]->kind != VAR_SERIES) continue;
        any = true;
        const char *names = "";
        for (int i = 0; i < s->n; i++) names = text(w, "%s%s%s", names, i ? ", " : "", s->var[i]->name);
        put(w, "// %s: each element from those before it", names);
        for (const Site *t = s->sites; t; t = t->next) put(w, "//   %s = %s, %s", math(p, ex_ref(t->var, t->n, t->subscript)), math(p, t->value), line_of(p, t->span));
        begin_kernel(p, "DEVICE void", text(w, "compute_%s", s->var[0]->name), "wide");
        p->open->context = *wild_context(p) != 0;
        write_series(p, s);
        end_kernel(p);
    }
    if (!any) return false;
    put(w, "// All series, from the state as it is.");
    begin_kernel(p, "KERNEL_ONCE", "series", "wide");
    for (const Series *s = p->g->series; s; s = s->next)
        if (s->var[0]->kind == VAR_SERIES) put(w, "compute_%s(%sd, s);", s->var[0]->name, wild_context(p));
    end_kernel(p);
    return true;
}

static bool site_needs_array(const Var *v)
{
    for (const Site *t = v->sites; t; t = t->next) {
        if (t->value ? needs_array(t->value) : t->n < v->rank) return true;
        for (int i = 0; i < t->nargs; i++)
            if (needs_array(t->args[i]) || (t->sample && ex_rank(t->args[i]) > 0)) return true;
    }
    return false;
}

// A Gram matrix of a data matrix, sum(i, w[i]*X[i,j]*X[i,k]): one library call in place of three loops.
static bool emit_gram(Program *p, const Sum *s)
{
    Writer *w = &p->w;
    if (reads_response(s)) return false;
    if (s->n != 2 || s->loops.n != 3 || s->loops.guard || s->value->kind != EX_MUL) return false;
    Index *i = s->loops.index[0], *j = s->loops.index[1], *k = s->loops.index[2];
    if (s->target[0] != ex_index(j) || s->target[1] != ex_index(k)) return false;
    Expr *A = NULL, *B = NULL;
    double number = 1;
    for (int f = 0; f < s->value->nargs; f++) {
        Expr *e = s->value->args[f];
        if (e->kind == EX_NUM) number = e->number;
        else if (e->kind == EX_REF && e->nargs == 2 && e->args[0] == ex_index(i) && e->args[1] == ex_index(j) && !A) A = e;
        else if (e->kind == EX_REF && e->nargs == 2 && e->args[0] == ex_index(i) && e->args[1] == ex_index(k) && !B) B = e;
        else return false;
    }
    if (!A || !B || A->var != B->var || A->var->base != BASE_REAL || A->var->dim[0] != i->hi || A->var->dim[1] != j->hi || A->var->dim[1] != k->hi || !ex_is_num(i->lo, 1) || !ex_is_num(j->lo, 1) ||
        !ex_is_num(k->lo, 1)) return false;
    const char *unless = s->var->rows ? text(w, "if (!few_%s(run)) ", s->var->rows->name) : "";
    p->grams = text(w, "%s    %sGRAM(run, %s, %s, %.17g, %s, %s);\n", p->grams ? p->grams : "", unless, write_extent(w, i->hi), write_extent(w, j->hi), number,
                    var_place(w, A->var), s->var->name);
    return true;
}

static void add_sum(Program *p, Expr *value, void *with)
{
    const Sum *s = with;
    add_at(p, s->var->name, s->n ? write_position(&p->w, s->var, s->target) : NULL, write_expr(&p->w, value));
}

static void emit_sum(Program *p, Sum *s)
{
    Writer *w = &p->w;
    const char *over = "";
    for (int i = 0; i < s->loops.n; i++) over = text(w, "%s%s%s", over, i ? ", " : " over ", s->loops.index[i]->name);
    const char *target = "";
    for (int k = 0; k < s->n; k++) target = text(w, "%s%s%s", target, k ? ", " : "[", math(p, s->target[k]));
    const bool gram = emit_gram(p, s);
    put(w, "// %s%s%s = sum of %s%s%s", s->var->name, target, s->n ? "]" : "", math(p, s->value), over, gram ? ": a matrix product, see setup" : "");
    if (gram) return;
    if (s->var->rows) open_brace(w, "if (!(%s))", few_rows(p, s->var->rows));
    if (s->n) put(w, w->team ? "ALONG (e, %s) s.%s[e] = 0;" : "for (long e = 0; e < %s; e++) s.%s[e] = 0;", count_of(p, s->var, s->n), s->var->name);
    else put(w, w->team ? "ONE_LANE *s.%s = 0;" : "*s.%s = 0;", s->var->name);
    int m = mark(w);
    scatter(p, &s->loops, s->n, s->target, s->var->dim, s->value, add_sum, s);
    if (!s->var->rows) return;
    forget(w, m);                                // names of the block
    close_brace(w);
}

// All that v is computed with: itself, or its series.
static void mark_done(const Var *v, bool *done, bool is)
{
    done[v->id] = is;
    for (int k = 0; v->series && k < v->series->n; k++) done[v->series->var[k]->id] = is;
}

static void emit_sites(Program *p, const Var *v)
{
    Writer *w = &p->w;
    if (!v->series) {
        for (const Site *t = v->sites; t; t = t->next) emit_site(p, v, t);
        return;
    }
    const bool team = w->team;
    if (team) open_brace(w, "ONE_LANE");
    w->team = false;
    write_series(p, v->series);
    w->team = team;
    if (team) close_brace(w);
}

static bool test_lets(const Var *v, void *with) { return v->kind == VAR_LET && !((bool *)with)[v->id]; }

// Whether a statement reads what is not computed yet: in its value, its subscripts, its condition or its ranges.
static bool waits(const Site *t, bool (*test)(const Var *, void *), bool *done)
{
    bool yes = (t->value && ex_any_var(t->value, test, done)) || (t->plates.guard && ex_any_var(t->plates.guard, test, done));
    for (int k = 0; k < t->nargs; k++) yes |= ex_any_var(t->args[k], test, done);
    for (int k = 0; k < t->n; k++) yes |= ex_any_var(t->subscript[k], test, done);
    for (int k = 0; k < t->plates.n; k++) yes |= ex_any_var(t->plates.index[k]->lo, test, done) || ex_any_var(t->plates.index[k]->hi, test, done);
    return yes;
}

// Leaves out data of which something missing decides whether the statement stands or what its support is.
typedef struct Undecided { Program *p; const Var *itself; } Undecided;

static Look skip_one(const Expr *e, void *with)
{
    Program *p = ((Undecided *)with)->p;
    const Var *itself = ((Undecided *)with)->itself;
    Writer *w = &p->w;
    if (!e->vars) return SKIP;
    if (e->kind == EX_REF && e->nargs == e->var->rank && e->var != itself && test_response(e->var, NULL)) {
        const char *name = c_name(w, e->var->name), *at = e->nargs ? text(w, "[%s]", write_position(w, e->var, e->args)) : "";
        put(w, e->var->base == BASE_INT ? "if (d.%s%s == -2147483648.0) continue;" : "if (!(d.%1$s%2$s == d.%1$s%2$s)) continue;", name, at);
    }
    return LOOK;
}

static void skip_undecided(Program *p, const Expr *e, const Var *itself)
{
    if (e) ex_find(e, skip_one, &(Undecided){p, itself});
}

static void check_value(Program *p, Expr *value, void *with)
{
    const Factor *f = with;
    Writer *w = &p->w;
    (void)value;
    skip_undecided(p, f->plates.guard, NULL);
    skip_undecided(p, f->least, f->value->var);
    skip_undecided(p, f->most, f->value->var);
    const Var *v = f->value->var;                // as read from the file: in the state, missing values have been filled in
    const char *at = v->rank ? write_position(w, v, f->value->args) : NULL, *name = c_name(w, v->name);
    const char *y = v->kind == VAR_LET ? text(w, at ? "s.%s[%s]" : "*s.%s", name, at) : at ? text(w, "d.%s[%s]", name, at) : text(w, "d.%s", name);
    const char *lo = f->least ? text(w, "%s < %s", y, write_factor(w, f->least)) : NULL, *hi = f->most ? text(w, "%s > %s", y, write_factor(w, f->most)) : NULL;
    const char *outside = text(w, "%s%s%s", lo ? lo : "", lo && hi ? " || " : "", hi ? hi : "");
    if (v->base == BASE_INT) outside = text(w, lo && hi ? "%s != -2147483648.0 && (%s)" : "%s != -2147483648.0 && %s", y, outside);      // a missing int; a missing real is NaN
    put(w, "if (%s) FAULT(\"%s\", %s, \"the value lies outside the support of %s (%s)\");", outside, v->name, at ? at : "0", f->dist->name, line_of(p, f->span));
}

static void check_interval(Program *p, Expr *value, void *with)
{
    const Factor *f = with;
    Writer *w = &p->w;
    const Var *v = f->region ? f->region : f->value->kind == EX_REF ? f->value->var : NULL;
    if (!v) return;
    Expr *from = value->args[0], *to = value->args[1];
    const char *at = f->region || !v->rank ? "0" : write_position(w, v, f->value->args);
    const bool integer = f->dist ? f->dist->discrete : v->discrete;
    put(w, "if (!(%s %s %s)) FAULT(\"%s\", %s, \"no value lies between the ends of its support (%s)\");", write_factor(w, from), integer ? "<=" : "<", write_factor(w, to), v->name, at,
        line_of(p, f->span));
}

static void check_each(Program *p, const Factor *f, int n, Expr **values, void (*check)(Program *, Expr *, void *))
{
    Loops l = {.guard = f->plates.guard};
    for (int i = 0; i < f->plates.n; i++) l.index[l.n++] = f->plates.index[i];
    Expr *target[MAX_RANK];
    for (int k = 0; k < l.n && k < MAX_RANK; k++) target[k] = ex_index(l.index[k]);
    scatter(p, &l, l.n < MAX_RANK ? l.n : MAX_RANK, target, NULL, ex_call("scattered", n, values), check, (void *)f);
}

// What data must satisfy for every element to exist. Nothing is computed outside a condition. While subscripts are checked, those within them may be wrong.
static bool emit_claims(Program *p, bool counted)
{
    Writer *w = &p->w;
    bool any = false;
    w->careful = !counted;
    w->as_read = true;
    for (const Claim *c = p->g->claims; c; c = c->next) {
        if (c->counted != counted) continue;
        any = true;
        int m = mark(w);
        if (c->loops.n) open_along(p, &c->loops);
        else {
            open_brace(w, "ONE_LANE");
            w->team = false;
            if (c->loops.guard) open_brace(w, "if (%s)", write_expr(w, c->loops.guard));
        }
        const char *fails = write_expr(w, c->fails[0]);
        if (c->nparts == 2) fails = text(w, "%s || %s", fails, write_expr(w, c->fails[1]));
        const char *list = "";
        for (int i = 0; i < c->nnumbers; i++) list = text(w, "%s%s(long)(%s)", list, i ? ", " : "", write_expr(w, c->number[i]));
        put(w, "if (%s) { const long found[] = {%s}; FAULT_AT(\"%s\", found, %d, \"%s\"); }", fails, *list ? list : "0", c->name, c->nnumbers, c->says);
        close_loops(p, &c->loops);
        if (!c->loops.n && c->loops.guard) close_brace(w);
        if (!c->loops.n) close_brace(w);
        w->team = true;
        forget(w, m);
    }
    w->careful = w->as_read = false;
    return any;
}

void emit_setup(Program *p)
{
    Writer *w = &p->w;
    Graph *g = p->g;
    bool *done = calloc((size_t)g->nvars + 1, sizeof *done);
    bool any = false;
    for (int i = 0; i < g->nvars; i++) any |= g->vars[i]->kind == VAR_LET;
    if (any) {
        put(w, "// Quantities that follow from the data alone, computed once.");
        bool whole = false;
        for (int i = 0; i < g->nvars; i++) whole |= g->vars[i]->kind == VAR_LET && site_needs_array(g->vars[i]);
        begin_kernel(p, whole ? "KERNEL_ONCE" : "KERNEL_TEAM", "definitions", "wide");
        for (bool progress = true; progress;) {
            progress = false;
            for (int i = 0; i < g->nvars; i++) {
                Var *v = g->vars[i];
                if (v->kind != VAR_LET || done[v->id]) continue;
                bool ready = true;
                mark_done(v, done, true);        // it may read itself
                for (int k = 0; k < (v->series ? v->series->n : 1); k++)
                    for (const Site *t = (v->series ? v->series->var[k] : v)->sites; t; t = t->next) ready &= !waits(t, test_lets, done);
                if (!ready) { mark_done(v, done, false); continue; }
                put(w, "// %s, %s", v->name, line_of(p, v->span));
                w->careful = v->unsure;
                emit_sites(p, v);
                w->careful = false;
                progress = true;
            }
        }
        end_kernel(p);
        p->work_of_setup[0] = whole ? NULL : team_work(p);
    }
    put(w, "// Data must lie in the support of their distributions%s.", g->claims ? ", and subscripts inside their arrays" : "");
    begin_kernel(p, "KERNEL_TEAM", "check_data", "wide");
    w->careful = g->claims != NULL;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (f->from && !f->original && (f->region || f->value->kind == EX_REF)) check_each(p, f, 2, (Expr *[]){f->from, f->to}, check_interval);
        if (f->original || !f->observed || !f->dist || (!f->least && !f->most) || f->value->kind != EX_REF || f->value->nargs < f->value->var->rank) continue;
        check_each(p, f, 3, (Expr *[]){f->value, f->least ? f->least : f->value, f->most ? f->most : f->value}, check_value);
    }
    w->careful = false;
    emit_claims(p, false);
    end_kernel(p);
    p->work_of_setup[1] = team_work(p);
    for (int pass = 0; pass < 2; pass++) {
        put(w, pass == 0 ? "// Sums of data: computed once." : "// Sums that hold a response: computed once, or after each imputation if values are missing.");
        bool whole = false;
        for (Sum *s = g->sums; s; s = s->next) whole |= reads_response(s) == (pass == 1) && needs_own_array(s->value, &s->loops);
        begin_kernel(p, whole ? "KERNEL_ONCE" : "KERNEL_TEAM", pass == 0 ? "sums_of_data" : "sums_of_responses", "wide");
        for (Sum *s = g->sums; s; s = s->next)
            if (reads_response(s) == (pass == 1)) emit_sum(p, s);
        end_kernel(p);
        p->work_of_setup[2 + pass] = whole ? NULL : team_work(p);
    }
    emit_orders(p);
    if (p->norders) p->work_of_groups = team_work(p);
    for (const Claim *c = g->claims; c && !p->work_of_elements; c = c->next)
        if (c->counted) p->work_of_elements = "1";
    if (p->work_of_elements) {
        put(w, "// Elements that are read must have a statement, and no element two.");
        begin_kernel(p, "KERNEL_TEAM", "check_elements", "wide");
        emit_claims(p, true);
        end_kernel(p);
        p->work_of_elements = team_work(p);
    }
    free(done);
}

// ---- the log joint, and quantities for the draws ----

void emit_log_joint(Program *p)
{
    Writer *w = &p->w;
    put(w, "// The log joint density of data, variables and auxiliaries.");
    bool whole = false;
    for (const Factor *f = p->g->factors; f; f = f->next) {
        Loops l = {0};
        for (int i = 0; i < f->plates.n; i++) l.index[l.n++] = f->plates.index[i];
        whole |= !f->replaced && needs_own_array(f->log_density, &l);
    }
    begin_kernel(p, whole ? "KERNEL_ONCE" : "KERNEL_TEAM", "log_joint", "wide");
    put(w, "wide lp = 0;");
    for (const Factor *f = p->g->factors; f; f = f->next) {
        if (f->replaced || ex_is_num(f->log_density, 0)) continue;
        put(w, "// %s%s", f->dist ? f->dist->name : "target", f->rule ? text(w, ", by %s", f->rule->name) : "");
        Loops l = {.guard = f->plates.guard};
        for (int i = 0; i < f->plates.n; i++) l.index[l.n++] = f->plates.index[i];
        int m = mark(w);
        const bool team = w->team, braces = open_guard(p, &l);
        open_sum(p, &l, "&lp", 1, (Expr *[]){f->log_density});
        add_to(p, "lp", f->log_density);
        close_loops(p, &l);
        w->team = team;
        if (braces) close_brace(w);
        forget(w, m);
    }
    for (const Step *s = p->g->steps; s; s = s->next)
        for (const BlockTerm *t = s->kind == STEP_GAUSSIAN ? s->terms : NULL; t; t = t->next) {
            if (!t->absent) continue;
            put(w, "// elements of %s without a statement", t->ref[0]->var->name);
            Expr *e = ex_mul2(t->coefficient, ex_pow(t->ref[0], 2));
            int m = mark(w);
            const bool team = w->team;
            open_brace(w, "if (CHECKING)");
            const bool braces = open_guard(p, &t->loops);
            open_sum(p, &t->loops, "&lp", 1, &e);
            add_to(p, "lp", e);
            close_loops(p, &t->loops);
            w->team = team;
            if (braces) close_brace(w);
            close_brace(w);
            forget(w, m);
        }
    put(w, "RESULT(lp);");
    end_kernel(p);
    p->work_of_joint = whole ? NULL : team_work(p);
}

static void add_absence(Program *p, Expr *value, void *with)
{
    const Var *v = with;
    (void)with;
    put(&p->w, "if (!CHECKING) %s[%s] = NAN;", var_place(&p->w, v), write_position(&p->w, v, value->args));
}

// Elements without a statement do not exist, in the draws too.
static void emit_absent(Program *p, Var *v)
{
    if ((v->kind != VAR_PARAMETER && v->kind != VAR_LATENT) || !v->rank || v->base == BASE_INT) return;
    Loops l = {.n = v->rank};
    Expr *element = var_element(p->g, v, l.index), *domain = var_domain(p->g, v, l.index), *target[MAX_RANK];
    if (!domain) return;
    v->partial = true;
    l.guard = ex_call1("!", domain);
    for (int k = 0; k < v->rank; k++) target[k] = ex_index(l.index[k]);
    scatter(p, &l, v->rank, target, NULL, element, add_absence, v);
}

static bool test_predicted(const Var *v, void *with) { return v->kind == VAR_PREDICTED && !((bool *)with)[v->id]; }

void emit_derive(Program *p)
{
    Writer *w = &p->w;
    Graph *g = p->g;
    put(w, "// Quantities for the draws, computed after each kept sweep.");
    bool whole = false;
    for (int i = 0; i < g->nvars; i++) whole |= (g->vars[i]->kind == VAR_DERIVED || g->vars[i]->kind == VAR_PREDICTED) && site_needs_array(g->vars[i]);
    begin_kernel(p, whole ? "KERNEL_ONCE" : "KERNEL_TEAM", "derived", "wide");
    for (int i = 0; i < g->nvars; i++) emit_absent(p, g->vars[i]);
    for (int i = 0; i < g->nvars; i++) {                 // elements that are computed, of variables whose others are drawn
        Var *v = g->vars[i];
        if (!var_unknown(v) || !v->sites) continue;
        v->partial = true;
        emit_sites(p, v);
    }
    bool *done = calloc((size_t)g->nvars + 1, sizeof *done);
    for (bool progress = true; progress;) {
        progress = false;
        for (int i = 0; i < g->nvars; i++) {
            Var *v = g->vars[i];
            if ((v->kind != VAR_DERIVED && v->kind != VAR_PREDICTED) || done[v->id]) continue;
            bool ready = true;
            mark_done(v, done, true);
            for (int i = 0; i < (v->series ? v->series->n : 1); i++)
                for (const Site *t = (v->series ? v->series->var[i] : v)->sites; t; t = t->next) ready &= !waits(t, test_predicted, done);
            if (!ready) { mark_done(v, done, false); continue; }
            if (v->holes && !v->series) {        // elements without a statement are no numbers
                const char *none = v->base == BASE_INT ? "-2147483647 - 1" : "NAN";
                if (v->rank) put(w, w->team ? "ALONG (e, %s) s.%s[e] = %s;" : "for (long e = 0; e < %s; e++) s.%s[e] = %s;", count_of(p, v, v->rank), c_name(w, v->name), none);
                else put(w, w->team ? "ONE_LANE *s.%s = %s;" : "*s.%s = %s;", c_name(w, v->name), none);
            }
            emit_sites(p, v);
            progress = true;
        }
    }
    end_kernel(p);
    p->work_of_derived = whole ? NULL : team_work(p);
    free(done);
}

