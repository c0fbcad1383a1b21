// element.c -- steps that draw a variable element by element: exact draws, enumeration, slice sampling.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "lower.h"

// ---- exact steps ----

static const char *element_text(Program *p, const Conditional *c) { return math(p, c->current); }

static void comment_exact(Program *p, const Step *s)
{
    Writer *w = &p->w;
    const Conditional *c = s->conditional;
    put(w, "// %s | the rest  ~  %s%s%s%s", element_text(p, c), c->truncated ? "truncated " : "", c->family->name,
        c->family->power && c->power != 1 ? text(w, ", %s^%g in place of %s", c->var->name, c->power, c->var->name) : "",
        s->imputes ? "     if values are missing" : c->var->rank && c->nbatch == c->var->rank ? "     in parallel" : "");
    put(w, "//   %s", line_of(p, c->var->span));
    const Natural *n = c->family->natural;
    for (int k = 0; n; n = n->next, k++)
        for (const Part *q = c->natural; q; q = q->next) {
            if (q->which != k) continue;
            const char *over = "";
            for (int i = 0; i < q->loops.n; i++) over = text(w, "%s%s%s", over, i ? ", " : "  over ", q->loops.index[i]->name);
            const char *target = "";
            if (q->scatter) {
                target = " where ";
                for (int d = 0; d < c->var->rank; d++) target = text(w, "%s%s%s = %s", target, d ? ", " : "", math(p, q->target[d]), c->element[d]->name);
            }
            put(w, "//   %s += %s%s%s", n->name, math(p, q->value), over, target);
        }
}

// A natural parameter's part as an expression of the element: its sum leaves the sweep if it can.
static Expr *hoisted_part(Program *p, const Conditional *c, const Part *q)
{
    Keys keys = {0};
    Loops loops = {.guard = q->loops.guard};
    if (q->scatter) {
        for (int k = 0; k < c->var->rank; k++) {
            keys.key[keys.n] = q->target[k];
            keys.extent[keys.n] = c->var->dim[k];
            keys.at[keys.n++] = ex_index(c->element[k]);
        }
    } else {
        if (q->loops.n == 0) return NULL;
        for (int k = 0; k < c->var->rank; k++) {
            bool used = ex_mentions_index(q->value, c->element[k]) || (q->loops.guard && ex_mentions_index(q->loops.guard, c->element[k]));
            for (int i = 0; i < q->loops.n; i++)
                used |= ex_mentions_index(q->loops.index[i]->hi, c->element[k]) || ex_mentions_index(q->loops.index[i]->lo, c->element[k]);
            if (!used) continue;
            if (keys.n == 4) return NULL;
            keys.key[keys.n] = keys.at[keys.n] = ex_index(c->element[k]);
            keys.extent[keys.n++] = c->var->dim[k];
            loops.index[loops.n++] = c->element[k];
        }
    }
    for (int i = 0; i < q->loops.n; i++) loops.index[loops.n++] = q->loops.index[i];
    return hoist_sum(p->g, &keys, &loops, q->value);
}

static void emit_bounds(Program *p, const Conditional *c)
{
    Writer *w = &p->w;
    const double ends[2] = {c->var->lower_number, c->var->upper_number};
    const Part *alone[2] = {NULL, NULL};         // a bound that stands for itself
    for (int side = 0; side < 2; side++) {
        int n = 0;
        for (const Part *b = c->bounds; b; b = b->next)
            if (b->which == side) { n++; alone[side] = b; }
        if (n != 1 || isfinite(ends[side]) || alone[side]->scatter || alone[side]->loops.n || alone[side]->loops.guard) alone[side] = NULL;
        const char *end = isfinite(ends[side]) ? text(w, "%.17g", ends[side]) : side ? "INFINITY" : "-INFINITY";
        put(w, "%s%s %s = %s;", n == 0 || alone[side] ? "const " : "", w->number, side ? "upper" : "lower", alone[side] ? write_expr(w, alone[side]->value) : end);
    }
    for (const Part *b = c->bounds; b; b = b->next) {
        if (b == alone[0] || b == alone[1]) continue;
        Loops l = b->loops;
        if (b->scatter) {                        // look for the element among all that are bounded
            Expr *same = NULL;
            for (int k = 0; k < c->var->rank; k++) {
                Expr *e = ex_call2("==", b->target[k], ex_index(c->element[k]));
                same = same ? ex_call2("&&", same, e) : e;
            }
            if (same) l.guard = l.guard ? ex_call2("&&", l.guard, same) : same;
        }
        int m = mark(w);
        bool braces = open_guard(p, &l);
        open_loops(p, &l, 1, (Expr *[]){b->value});
        put(w, b->which ? "upper = fmin(upper, (%s)%s);" : "lower = fmax(lower, (%s)%s);", w->number, write_factor(w, b->value));
        close_loops(p, &l);
        if (braces) close_brace(w);
        forget(w, m);
    }
}

static const char *missing_of(Program *p, const Var *v)
{
    int field = 0;
    for (int i = 0; i < p->g->nvars && p->g->vars[i] != v; i++) field += p->g->vars[i]->kind == VAR_DATA;
    return text(&p->w, "%d", field);
}

// Elements of one colour at a time: a chain of neighbours, drawn in parallel within each class of k modulo colours.
static bool coloured(const Step *s)
{
    const Conditional *c = s->conditional;
    return !s->imputes && !c->whole && c->colours > 1 && c->nbatch == 0 && c->var->rank == 1;
}

// How the elements of a step are shared out.
typedef enum { BY_ELEMENT, BY_MISSING, BY_ROW, BY_CREW, BY_TEAM, BY_ONE } Sharing;

// Whether one of the parts is a sum for each element (a scattered one is made for all of them before).
static bool any_loops(const Part *q)
{
    for (; q; q = q->next)
        if (q->loops.n > 0 && !q->scatter) return true;
    return false;
}

static bool any_array(const Part *q)
{
    for (; q; q = q->next)
        if (needs_array(q->value)) return true;
    return false;
}

// Elements whose conditionals hold sums are drawn by crews. In one piece are drawn: missing values that depend on each other; values to choose from that are weighed without a sum; and what needs whole matrices on the way, which
// every lane of a team would compute.
static Sharing sharing_of(const Step *s, const RowDot *dot)
{
    const Conditional *c = s->conditional;
    const bool arrays = any_array(c->natural) || any_array(c->bounds) || any_array(c->density);
    if (s->imputes && s->kind != STEP_SLICE && c->var->rank && c->nbatch == c->var->rank && !c->recursion && !c->whole && !arrays) return BY_MISSING;
    if (s->imputes || c->recursion) return BY_ONE;
    if (dot && dot->sum) return BY_ROW;
    if (coloured(s) || c->nbatch) {
        const bool sums = s->kind == STEP_EXACT ? any_loops(c->natural) : s->kind == STEP_SLICE && any_loops(c->density);
        const bool plain = arrays || c->whole || (c->nbatch && c->nbatch < c->var->rank);
        return sums && !plain ? BY_CREW : BY_ELEMENT;
    }
    if (s->kind == STEP_ENUM && !any_loops(c->density)) return BY_ONE;
    return arrays ? BY_ONE : BY_TEAM;
}

// Opens the loop over the elements that a step draws, missing ones or all; *element is the element's position. Returns the
// number of loops opened. `turns`: of the sums for an element, if crews draw them, or NULL.
static int open_turns(Program *p, const Step *s, int parallel, const char *turns, const char **element)
{
    Writer *w = &p->w;
    const Conditional *c = s->conditional;
    const Var *v = c->var;
    if (coloured(s)) {
        const char *k = c->element[0]->name;
        if (turns) open_brace(w, "EACH_ELEMENT (turn, OF_COLOUR(%s, %d), %s)", write_extent(w, v->dim[0]), c->colours, turns);
        else open_brace(w, "EACH (turn, OF_COLOUR(%s, %d))", write_extent(w, v->dim[0]), c->colours);
        put(w, "const long %s = turn * %d + COLOUR;", k, c->colours);
        name_index(w, c->element[0], k);
        *element = k;
        return 1;
    }
    if (!s->imputes) {
        int opened = open_elements(p, v, c->element, parallel, turns);
        *element = v->rank ? write_position(w, v, c->current->args) : "0";
        return opened;
    }
    open_brace(w, "%s (e, %s)", sharing_of(s, NULL) == BY_MISSING ? "EACH_MISSING" : "MISSING_IN_TURN", missing_of(p, v));
    const char *stride = NULL;
    for (int k = v->rank - 1; k >= 0; k--) {
        const char *n = write_extent(w, v->dim[k]);
        if (k == 0) put(w, "const long %s = e%s;", c->element[k]->name, stride ? text(w, " / (%s)", stride) : "");
        else put(w, "const long %s = e%s %% (%s);", c->element[k]->name, stride ? text(w, " / (%s)", stride) : "", n);
        stride = stride ? text(w, "%s%s * (%s)", strncmp(stride, "(long)", 6) == 0 ? "" : "(long)", stride, n) : text(w, "(%s)", n);
        name_index(w, c->element[k], c->element[k]->name);
    }
    *element = v->rank ? "e" : "0";
    return 1;
}

// The vector whose elements a team draws one after the other, if it keeps the linear predictors up to date that they enter.
static const Var *followed(const Conditional *c, Sharing sharing)
{
    return sharing == BY_TEAM && c->var->rank == 1 && !c->whole && !c->var->discrete && var_unknown(c->var) && c->var->base == BASE_REAL ? c->var : NULL;
}

static void begin_elements(Program *p, Sharing sharing, const Step *s, const char *name)
{
    static const char *const kind[] = {[BY_ELEMENT] = "KERNEL", [BY_MISSING] = "KERNEL", [BY_ROW] = "ROW", [BY_CREW] = "KERNEL_TEAM", [BY_TEAM] = "KERNEL_TEAM", [BY_ONE] = "KERNEL_ONCE"};
    const Conditional *c = s->conditional;
    begin_kernel(p, kind[sharing], name, number_of(c->var));
    if (sharing == BY_ROW) p->open->row = c->element[0]->name;
    p->w.crew = sharing == BY_CREW;
}

// Turns of the sums for one element.
static const char *turns_of_element(Program *p, const Step *s)
{
    const char *all = NULL;
    for (const Part *q = s->kind == STEP_EXACT ? s->conditional->natural : s->conditional->density; q; q = q->next) {
        if (q->scatter || q->loops.n == 0) continue;
        const char *turns = turns_of(p, &q->loops);
        if (!all || strcmp(turns, "1") != 0) all = turns;            // the last: sums of one element mostly are of one length
    }
    return all;
}

static void launch_elements(Program *p, const Step *s, int step, Sharing sharing, const RowDot *dot, const char *name)
{
    Writer *w = &p->w;
    const Var *v = s->conditional->var;
    switch (sharing) {
    case BY_ELEMENT:
        if (coloured(s)) launch_kernel(p, step, "LAUNCH_COLOURS", name, "%s, %d", count_of(p, v, 1), s->conditional->colours);
        else launch_kernel(p, step, "LAUNCH", name, "%s", count_of(p, v, s->conditional->nbatch));
        break;
    case BY_MISSING: launch_kernel(p, step, "LAUNCH_MISSING", name, "%s", missing_of(p, v)); break;
    case BY_ROW: {
        const RowSum *r = fused_sum(p, s);
        const char *sizes = text(w, "%s, %s, %s, %s", write_extent(w, dot->matrix->dim[0]), write_extent(w, dot->matrix->dim[1]),
                                 var_place(w, dot->matrix), c_name(w, dot->vector->name));
        if (r && r->square) launch_kernel(p, step, "LAUNCH_ROWS_AND", name, "%s, %s, %s", sizes, r->out->name, r->scale->name);
        else if (r) launch_kernel(p, step, "LAUNCH_ROWS", name, "%s, %s", sizes, r->out->name);
        else launch_kernel(p, step, "LAUNCH_ROWS_ONLY", name, "%s", sizes);
        break;
    }
    case BY_CREW: {
        const char *turns = turns_of_element(p, s), *count = count_of(p, v, coloured(s) ? 1 : s->conditional->nbatch);
        const char *work = text(w, "(long)%s * %s", wrap(p, count), wrap(p, turns));
        if (coloured(s)) launch_kernel(p, step, "LAUNCH_COLOURS_TEAM", name, "%s, %d", work, s->conditional->colours);
        else launch_kernel(p, step, "LAUNCH_TEAM", name, "%s", work);
        break;
    }
    case BY_TEAM: launch_team(p, step, name); break;
    case BY_ONE: launch_kernel(p, step, "LAUNCH_ONCE", name, "%s", ""); break;
    }
}

// place = x, by one lane of a team; `more` elements follow.
static void store(Program *p, const char *place, const char *x, bool more)
{
    if (p->w.crew) put(&p->w, "ELEMENT_LANE %s = %s;", place, x);
    else if (p->w.team) put(&p->w, "%s(%s, %s);", more ? "SET" : "STORE", place, x);
    else put(&p->w, "%s = %s;", place, x);
}

// The claim of an exact draw, for --check: log q at the new value less log q at the old.
static void emit_claim(Program *p, const Conditional *c, const char *const *natural, const char *place)
{
    Writer *w = &p->w;
    if (c->nnatural == 0) { put(w, "CLAIM(0);"); return; }
    const char *list = NULL;
    int k = 0;
    for (const Natural *n = c->family->natural; n; n = n->next, k++) {
        Expr *s = n->statistic->kind == AST_BINARY && n->statistic->op == OP_POW && c->family->power
                      ? ex_pow(c->u, n->statistic->kid[1]->kind == AST_UNARY ? -c->power : c->power)
                      : elaborate_rule(p->g, n->statistic, 1, (Decl *[]){c->family->value}, (Expr *[]){c->u});
        int m = mark(w);
        know(w, c->u, "x");
        const char *new = write_expr(w, s);
        forget(w, m);
        know(w, c->u, "old");
        const char *old = write_expr(w, s);
        forget(w, m);
        // terms apart, so that their sizes are known; a difference of squares without the squares
        const char *difference = s->kind == EX_POW && s->args[0] == c->u && s->number == 2 ? "((x - old) * (x + old))"
                               : text(w, "(%s - %s)", new, strpbrk(old, "+-") ? text(w, "(%s)", old) : old);
        const char *t = text(w, "%s * %s", natural[k], difference);
        list = list ? text(w, "%s, %s", list, t) : t;
    }
    put(w, "if (CHECKING) { const %s old = %s; CLAIM(%s); }", w->number, place, list);
}

static void emit_draw(Program *p, const Step *s, const char *const *natural, const char *element)
{
    Writer *w = &p->w;
    const Conditional *c = s->conditional;
    Arg args[16];
    int n = 0;
    int k = 0;
    for (const Natural *nat = c->family->natural; nat; nat = nat->next, k++) args[n++] = (Arg){nat->name, natural[k]};
    if (c->family->power) args[n++] = (Arg){c->family->power, text(w, "%.17g", c->power)};
    for (int i = 0; i < c->nbase && c->family->base->kid[i]->kind == AST_NAME; i++)
        args[n++] = (Arg){c->family->base->kid[i]->name, write_expr(w, c->base_args[i])};
    args[n++] = (Arg){"lower", "lower"};
    args[n++] = (Arg){"upper", "upper"};
    if (c->truncated) emit_bounds(p, c);
    put(w, "%s", stream_text(p, c->var, element));
    const char *place = place_of(p, c);
    put(w, "const %s x = %s;", w->number, draw_call(p, c->truncated ? c->family->draw_truncated : c->family->draw, n, args));
    put(w, "VERIFY(x, \"%s\", %s);", c->var->name, element);
    if (s->marginal) put(w, "NO_CLAIM();");
    else emit_claim(p, c, natural, place);
    const bool follows = p->followed && reads_predictor(p, c->var);
    if (follows) put(w, "const %s change = x - %s;", w->number, place);
    store(p, place, "x", c->var->rank > 0);
    if (follows) follow(p, c->var, c->current->args[0], "change");
}

// Sums for the natural parameters of all elements, over the same rows.
enum { SCATTERED = 16 };                         // in one loop over the rows; others have a loop of their own
typedef struct Scattered { const Var *var; int n; const Part *part[SCATTERED]; Var *array[SCATTERED]; } Scattered;

static void add_scattered(Program *p, Expr *value, void *with)
{
    const Scattered *s = with;
    Writer *w = &p->w;
    const char *at = s->var->rank ? write_position(w, s->var, s->part[0]->target) : NULL;
    for (int k = 0; k < s->n; k++) add_at(p, s->array[k]->name, at, write_expr(w, s->n == 1 ? value : value->args[k]));
}

typedef struct Routed { Part *part; Expr *hoisted; const Rows *rows; } Routed;

// Whether e reads a statistic with two subscripts, as X'X.
static bool test_square(const Var *v, void *with) { (void)with; return v->kind == VAR_SUM && v->sum && v->sum->n >= 2; }
static bool reads_square(const Expr *e) { return ex_any_var(e, test_square, NULL); }

static void add_routed(Program *p, const Routed *r, const char *natural)
{
    Writer *w = &p->w;
    const bool team = w->team;
    int m = mark(w);
    open_brace(w, "if (%s)", few_rows(p, r->rows));
    p->few_only = r->rows;
    bool braces = open_guard(p, &r->part->loops);
    open_sum(p, &r->part->loops, text(w, "&%s", natural), 1, &r->part->value);
    add_to(p, natural, r->part->value);
    close_loops(p, &r->part->loops);
    w->team = team;
    if (braces) close_brace(w);
    forget(w, m);
    p->few_only = NULL;
    w->indent--;
    open_brace(w, "} else");
    put(w, "%s += %s;", natural, write_expr(w, r->hoisted));
    close_brace(w);
    forget(w, m);
}

static bool test_moving(const Part *q, const Var *v) { return ex_mentions(q->value, v); }

void step_exact(Program *p, const Step *s, int step)
{
    Writer *w = &p->w;
    Conditional *c = s->conditional;
    Var *v = c->var;
    const char *name = text(w, "%s_%s", s->imputes ? "impute" : "draw", v->name);
    // Parts that stay sums over rows: scattered into work arrays before the draws.
    Var *array[4] = {0};
    Expr *closed[4];
    int nparts = 0, nclosed[4] = {0};
    for (const Part *q = c->natural; q; q = q->next) nparts++;
    Expr **sum[4], **values = NEW_N(w->arena, Expr *, nparts + 1);
    for (int k = 0; k < 4; k++) sum[k] = NEW_N(w->arena, Expr *, nparts + 1);
    Part **inline_parts = NEW_N(w->arena, Part *, nparts + 1);
    int ninline = 0;
    Part **scattered = NEW_N(w->arena, Part *, nparts + 1);
    int nscattered = 0;
    Routed *routed = NEW_N(w->arena, Routed, nparts + 1);        // sums that are made from statistics or row by row, as rows are many or few
    int nrouted = 0;
    for (Part *q = c->natural; q; q = q->next) {
        const Rows *rows = q->scatter ? NULL : rows_of_factor(p, q->factor);
        p->g->hoisting_for = rows;
        Expr *h = s->imputes || test_moving(q, v) ? NULL : hoisted_part(p, c, q);
        p->g->hoisting_for = NULL;
        if (h && rows && reads_square(h)) { routed[nrouted++] = (Routed){q, h, rows}; continue; }
        if (h && rows) h = hoisted_part(p, c, q);        // the statistics are needed by either route
        if (h) { sum[q->which][nclosed[q->which]++] = h; continue; }
        if (q->scatter) {
            if (!array[q->which]) {
                const Natural *n = c->family->natural;
                for (int k = 0; k < q->which; k++) n = n->next;
                array[q->which] = work_array(p, text(w, "%s_%s", v->name, n->name), v->rank, v->dim);
            }
            scattered[nscattered++] = q;
        } else if (q->loops.n == 0 && !q->loops.guard) sum[q->which][nclosed[q->which]++] = q->value;
        else inline_parts[ninline++] = q;
    }
    for (int k = 0; k < 4; k++) closed[k] = ex_add(nclosed[k], sum[k]);
    comment_exact(p, s);
    if (nscattered) {
        const char *sums = text(w, "sums_%s", v->name);
        begin_kernel(p, "KERNEL_TEAM", sums, "wide");
        for (int k = 0; k < 4; k++)
            if (array[k]) put(w, "ALONG (e, %s) s.%s[e] = 0;", count_of(p, v, v->rank), array[k]->name);
        bool *done = NEW_N(w->arena, bool, nparts);
        for (int i = 0; i < nscattered; i++) {
            if (done[i]) continue;
            Scattered here = {.var = v};
            for (int j = i; j < nscattered; j++) {
                const Part *q = scattered[j];
                if (done[j] || here.n == SCATTERED || q->factor != scattered[i]->factor) continue;
                if (j > i && memcmp(q->target, scattered[i]->target, sizeof q->target) != 0) continue;
                done[j] = true;
                values[here.n] = q->value;
                here.part[here.n] = q;
                here.array[here.n++] = array[q->which];
            }
            Expr *all = here.n == 1 ? values[0] : ex_call("scattered", here.n, values);
            scatter(p, &scattered[i]->loops, v->rank, scattered[i]->target, v->dim, all, add_scattered, &here);
        }
        end_kernel(p);
        launch_team(p, step, sums);
    }
    const int parallel = s->imputes ? 0 : c->nbatch;
    RowDot dot = {0};
    row_dot(s, &dot);
    const Sharing sharing = sharing_of(s, &dot);
    begin_elements(p, sharing, s, name);
    p->followed = followed(c, sharing);
    if (!parallel || parallel < v->rank) w->moving = v;
    // What no element changes.
    Loops all = {0};
    for (int k = 0; k < v->rank; k++) all.index[all.n++] = c->element[k];
    for (int k = 0; k < 4 && sharing != BY_ROW; k++) if (v->rank) keep_outside(w, closed[k], &all);
    for (int i = 0; i < ninline && v->rank && sharing != BY_ROW; i++) {
        Loops inner = all;
        inner.guard = inline_parts[i]->loops.guard;
        for (int k = 0; k < inline_parts[i]->loops.n; k++) inner.index[inner.n++] = inline_parts[i]->loops.index[k];
        keep_outside(w, inline_parts[i]->value, &inner);
    }
    w->moving = NULL;
    int opened = 0;
    const char *element;
    if (sharing == BY_ROW) {
        element = c->element[0]->name;
        name_index(w, c->element[0], element);
        know(w, dot.sum, "dot");
    } else opened = open_turns(p, s, parallel, sharing == BY_CREW ? turns_of_element(p, s) : NULL, &element);
    Expr *guard = var_domain(p->g, v, c->element);
    if (guard && sharing == BY_ROW) put(w, "if (!(%s)) return row_weight(0);", write_expr(w, guard));
    else if (guard && opened) put(w, "if (!(%s)) continue;", write_expr(w, guard));
    const char *natural[4];
    int k = 0;
    for (const Natural *n = c->family->natural; n; n = n->next, k++) {
        Expr *e = closed[k];
        if (array[k]) e = ex_add2(e, ex_ref(array[k], v->rank, c->current->args));
        bool more = false;
        for (int i = 0; i < ninline; i++) more |= inline_parts[i]->which == k;
        for (int i = 0; i < nrouted; i++) more |= routed[i].part->which == k;
        natural[k] = text(w, "%s_%s", n->name, v->name);
        const char *c_text = write_expr(w, e);
        put(w, "%s%s %s = %s;", more ? "" : "const ", more ? "wide" : w->number, natural[k], c_text);
    }
    bool *done = NEW_N(w->arena, bool, nparts + 1);
    for (int i = 0; i < ninline; i++) {          // parts with the same loops share them
        if (done[i]) continue;
        int n = 0;
        for (int j = i; j < ninline; j++)
            if (inline_parts[j]->factor == inline_parts[i]->factor && memcmp(&inline_parts[j]->loops, &inline_parts[i]->loops, sizeof(Loops)) == 0)
                values[n++] = inline_parts[j]->value;
        int m = mark(w);
        const bool team = w->team, braces = open_guard(p, &inline_parts[i]->loops);
        const char *totals = "";
        for (int k2 = 0; k2 < 4; k2++) {
            bool here = false;
            for (int j = i; j < ninline; j++)
                here |= inline_parts[j]->which == k2 && inline_parts[j]->factor == inline_parts[i]->factor &&
                        memcmp(&inline_parts[j]->loops, &inline_parts[i]->loops, sizeof(Loops)) == 0;
            if (here) totals = text(w, "%s%s&%s", totals, *totals ? ", " : "", natural[k2]);
        }
        open_sum(p, &inline_parts[i]->loops, totals, n, values);
        for (int j = i; j < ninline; j++) {
            if (done[j] || inline_parts[j]->factor != inline_parts[i]->factor || memcmp(&inline_parts[j]->loops, &inline_parts[i]->loops, sizeof(Loops)) != 0) continue;
            done[j] = true;
            add_to(p, natural[inline_parts[j]->which], inline_parts[j]->value);
        }
        close_loops(p, &inline_parts[i]->loops);
        w->team = team;
        if (braces) close_brace(w);
        forget(w, m);
    }
    for (int i = 0; i < nrouted; i++) add_routed(p, &routed[i], natural[routed[i].part->which]);
    emit_draw(p, s, natural, element);
    if (sharing == BY_ROW) {
        const RowSum *r = fused_sum(p, s);
        const char *weight = r ? write_expr(w, ex_replace_index(r->weight, r->row, ex_index(c->element[0]))) : "0";
        if (r && r->square) put(w, "return row_weight_and(%s, %s);", weight, write_expr(w, ex_replace_index(r->square, r->row, ex_index(c->element[0]))));
        else put(w, "return row_weight(%s);", weight);
    }
    while (opened-- > 0) close_brace(w);
    p->followed = NULL;
    end_kernel(p);
    launch_elements(p, s, step, sharing, &dot, name);
}

// ---- draws from the element's own distribution ----

void step_own(Program *p, const Step *s, int step)
{
    Writer *w = &p->w;
    const Conditional *c = s->conditional;
    const Part *own = c->own;
    const Factor *f = own->factor;
    const char *name = text(w, "%s_%s", s->imputes ? "impute" : "draw", c->var->name);
    put(w, "// %s | the rest  ~  %s, in which alone it stands%s", element_text(p, c), f->dist->name, s->imputes ? "     if values are missing" : "");
    put(w, "//   %s; log density %s", line_of(p, f->span), math(p, f->log_density));
    const Sharing sharing = sharing_of(s, NULL);
    begin_elements(p, sharing, s, name);
    const char *element;
    int opened = open_turns(p, s, s->imputes ? 0 : c->nbatch, NULL, &element);
    if (own->loops.guard) put(w, opened ? "if (!(%s)) continue;" : "if (!(%s)) return;", write_expr(w, own->loops.guard));
    put(w, "%s", stream_text(p, c->var, element));
    const char *list = "&g", *place = place_of(p, c);
    for (int i = 0; i < own->value->nargs; i++) list = text(w, "%s, %s", list, write_expr(w, own->value->args[i]));
    put(w, "const %s x = %s(%s);", f->dist->discrete ? "wide" : w->number, own->value->name, list);
    if (f->dist->discrete) put(w, "if (!(x >= 0 && x <= 2147483647)) FAULT(\"%s\", %s, \"its draw is not a count of 32 bits\");", c->var->name, element);
    else put(w, "VERIFY(x, \"%s\", %s);", c->var->name, element);
    put(w, "NO_CLAIM();");
    store(p, place, "x", c->var->rank > 0);
    while (opened-- > 0) close_brace(w);
    end_kernel(p);
    launch_elements(p, s, step, sharing, NULL, name);
}

// ---- enumeration and slice sampling ----

// The series that an element enters, after its value in the state has changed.
static void compute_again(Program *p, const Conditional *c)
{
    for (const Series *s = p->g->series; s && c->recursion; s = s->next)
        if (s->var[0]->kind == VAR_SERIES && series_reads(s, c->var)) put(&p->w, "compute_%s(%sd, s);", s->var[0]->name, wild_context(p));
}

// The log density of the element as a function of x: what does not hold u is left out; sums whose terms are a statistic of u
// times something free of u are made once, before the values are tried.
typedef struct Once { Expr *statistic; const char *name; bool guarded; } Once;
typedef struct Pieces { int nonce, once_size; Once *once; int nloop, loop_size; Part *loop; } Pieces;

static void add_piece(Program *p, Pieces *out, const Part *q, Expr *value)
{
    ROOM(p->g->arena, out->loop, out->nloop, out->loop_size);
    out->loop[out->nloop] = *q;
    out->loop[out->nloop++].value = value;
}

// The terms of a sum that mention v.
static Expr *relevant(Expr *e, const Var *v)
{
    if (!ex_reads(e, v)) return ex_num(0);
    if (e->kind == EX_ADD) {
        Expr *keep = ex_num(0);
        for (int i = 0; i < e->nargs; i++) keep = ex_add2(keep, relevant(e->args[i], v));
        return keep;
    }
    if (e->kind == EX_REDUCE && strcmp(e->name, "sum") == 0 && !ex_mentions(e->args[0], v) && !ex_mentions(e->args[1], v)) {
        Index *j = index_new(e->index->name, e->args[0], e->args[1]);
        return ex_reduce("sum", j, j->lo, j->hi, relevant(ex_open(e, j), v));
    }
    return e;
}

// Whether a statistic is the same function of u in every turn of the part's loops, whatever the state.
static bool is_common(const Part *q, const Conditional *c, Expr *statistic)
{
    for (int k = 0; k < q->loops.n; k++)
        if (ex_mentions_index(statistic, q->loops.index[k])) return false;
    return !ex_unknown(ex_replace(statistic, c->u, ex_num(1)));
}

static Look choice_of(const Expr *e, void *u) { return e->kind == EX_CALL && strcmp(e->name, "if_else") == 0 && ex_mentions(e, u) ? FOUND : LOOK; }

static bool holds_choice(const Expr *e, const Var *u)
{
    return ex_find(e, choice_of, (void *)u);
}

// The terms of a part that stay whole: with a choice that cannot be made before values are tried, since a branch that is not taken may be undefined; and
// with a coefficient that may be infinite, since z*log(p) + (1 - z)*log1m(p) at p = 1 has values for z = 0 and 1, but not as log1m(p) + z*(log(p) - log1m(p)).
static Expr *undivided(Program *p, const Conditional *c, const Part *q)
{
    Expr *e = q->value, *all = ex_num(0);
    for (int i = 0; i < (e->kind == EX_ADD ? e->nargs : 1); i++) {
        Expr *t = e->kind == EX_ADD ? e->args[i] : e;
        const bool choice = holds_choice(t, c->u->var);
        if (!choice && !(c->var->discrete && ex_mentions(t, c->u->var) && ex_has_pole(t))) continue;
        Statistics s = statistics(p->g->arena, t, c->u);
        bool whole = false;
        for (int k = 0; k < s.n; k++)
            whole |= (choice && !is_common(q, c, s.item[k].statistic)) || (c->var->discrete && ex_has_pole(s.item[k].coefficient));
        if (whole) all = ex_add2(all, t);
    }
    return all;
}

static void prepare_density(Program *p, const Conditional *c, Pieces *out)
{
    Writer *w = &p->w;
    for (const Part *q = c->density; q; q = q->next) {
        if (c->whole) {
            add_piece(p, out, q, relevant(q->value, c->var));
            continue;
        }
        if (q->loops.n == 0 && !q->loops.guard) {
            Expr *e = q->value, *keep = ex_num(0);
            for (int i = 0; i < (e->kind == EX_ADD ? e->nargs : 1); i++) {
                Expr *t = e->kind == EX_ADD ? e->args[i] : e;
                if (ex_mentions(t, c->u->var)) keep = ex_add2(keep, t);
            }
            add_piece(p, out, q, keep);
            continue;
        }
        Expr *rest = undivided(p, c, q);
        Statistics s = statistics(p->g->arena, ex_sub(q->value, rest), c->u);
        for (int i = 0; i < s.n; i++) {
            Expr *stat = s.item[i].statistic;
            if (!is_common(q, c, stat)) { rest = ex_add2(rest, ex_mul2(s.item[i].coefficient, stat)); continue; }
            const char *t = text(w, "a%d", ++w->temporaries);
            int m = mark(w);
            const bool team = w->team;
            put(w, "wide %s = 0;", t);
            bool braces = open_guard(p, &q->loops);
            open_sum(p, &q->loops, text(w, "&%s", t), 1, &s.item[i].coefficient);
            add_to(p, t, s.item[i].coefficient);
            close_loops(p, &q->loops);
            w->team = team;
            if (braces) close_brace(w);
            forget(w, m);
            const bool guarded = ((c->var->discrete && ex_may_diverge(stat)) || q->loops.guard != NULL) && stat != c->u && !(stat->kind == EX_POW && stat->args[0] == c->u && stat->number > 0);
            ROOM(w->arena, out->once, out->nonce, out->once_size);
            out->once[out->nonce++] = (Once){stat, t, guarded};
        }
        if (!ex_is_num(rest, 0)) add_piece(p, out, q, rest);
    }
}

static void write_density(Program *p, const Conditional *c, const Pieces *d, const char *target)
{
    Writer *w = &p->w;
    int m0 = mark(w);
    if (!c->whole) know(w, c->u, "x");
    for (int i = 0; i < d->nonce; i++) {         // where it is left out or counted 0 times, it may be infinite: log(x) for x <= 0
        const char *stat = write_factor(w, d->once[i].statistic);
        put(w, "%s%s += %s * %s;", d->once[i].guarded ? text(w, "if (%s != 0) ", d->once[i].name) : "", target, d->once[i].name, stat);
    }
    for (int i = 0; i < d->nloop; i++) {
        const Part *q = &d->loop[i];
        int m = mark(w);
        const bool team = w->team, braces = open_guard(p, &q->loops);
        open_sum(p, &q->loops, text(w, "&%s", target), 1, (Expr *[]){q->value});
        add_to(p, target, q->value);
        close_loops(p, &q->loops);
        w->team = team;
        if (braces) close_brace(w);
        forget(w, m);
    }
    forget(w, m0);
}

void step_density(Program *p, const Step *s, int step)
{
    Writer *w = &p->w;
    Conditional *c = s->conditional;
    Var *v = c->var;
    bool slice = s->kind == STEP_SLICE;
    const char *name = text(w, "%s_%s", s->imputes ? "impute" : slice ? "slice" : "draw", v->name);
    put(w, "// %s | the rest%s: %s", element_text(p, c), s->collapsed && !s->imputes ? ", auxiliaries integrated out" : "",
        slice ? "no family is recognised, slice sampled (Neal 2003)" : "one of finitely many values, each weighed by its density");
    put(w, "//   %s%s%s", line_of(p, v->span), c->because && !s->imputes ? "; " : "", c->because && !s->imputes ? c->because : "");
    for (const Part *q = c->density; q; q = q->next) {
        const char *over = "";
        for (int i = 0; i < q->loops.n; i++) over = text(w, "%s%s%s", over, i ? ", " : "  over ", q->loops.index[i]->name);
        put(w, "//   log density += %s%s", math(p, q->value), over);
    }
    Var *width = NULL, *weights = NULL;
    if (slice) width = work_array(p, text(w, "width_%s", v->name), v->rank, v->dim);
    const int parallel = s->imputes ? 0 : c->nbatch;
    const Sharing sharing = sharing_of(s, NULL);
    begin_elements(p, sharing, s, name);
    p->followed = slice ? followed(c, sharing) : NULL;
    int opened = 0;
    const char *element;
    opened = open_turns(p, s, parallel, sharing == BY_CREW ? turns_of_element(p, s) : NULL, &element);
    Expr *guard = var_domain(p->g, v, c->element);
    if (guard && opened) put(w, "if (!(%s)) continue;", write_expr(w, guard));
    const char *place = place_of(p, c);
    Pieces pieces = {0};
    prepare_density(p, c, &pieces);
    put(w, "%s", stream_text(p, v, element));
    if (slice) {
        const char *wp = v->rank ? text(w, "s.%s[%s]", width->name, write_position(w, v, c->current->args)) : text(w, "*s.%s", width->name);
        const char *lo = isfinite(v->lower_number) ? text(w, "%.17g", v->lower_number) : "-INFINITY";
        const char *hi = isfinite(v->upper_number) ? text(w, "%.17g", v->upper_number) : "INFINITY";
        const bool integer = v->discrete && v->base == BASE_INT;
        if (v->discrete) {                           // an int holds 32 bits
            lo = isfinite(v->lower_number) ? text(w, "%.17g", v->lower_number - 0.5) : integer ? "-2147483647.5" : "-INFINITY";
            hi = isfinite(v->upper_number) ? text(w, "%.17g", v->upper_number + 0.5) : integer ? "2147483647.5" : "INFINITY";
        }
        put(w, "const wide current = %s, width = slice_width(%s, %s);", place, wp, s->width ? write_expr(w, s->width) : "1");
        put(w, "wide start = current;");
        put(w, "Slice sl;");
        bool positive = !v->discrete && v->lower_number == 0 && !isfinite(v->upper_number);
        open_brace(w, "for (int attempt = 0; attempt < (WARMING_UP ? 100 : 1); attempt++)");
        put(w, "if (attempt) start = slice_restart(&g, current, attempt, %s, %s);", lo, hi);
        put(w, "%s(&sl, &g, start, %s, %s, width);", positive ? "slice_begin_log" : "slice_begin", lo, hi);
        open_brace(w, "while (slice_next(&sl))");
        put(w, "const %s x = %s;", integer ? "long" : "wide", integer ? "(long)floor(sl.x + 0.5)" : v->discrete ? "floor(sl.x + 0.5)" : "sl.x");
        if (c->whole) store(p, place, "x", true);
        compute_again(p, c);
        put(w, "wide lp = 0;");
        write_density(p, c, &pieces, "lp");
        put(w, "sl.log_density = lp;");
        close_brace(w);
        put(w, "if (!sl.failed) break;");
        close_brace(w);
        store(p, place, v->discrete ? "floor(sl.x + 0.5)" : "sl.x", true);
        if (p->followed) follow(p, v, c->current->args[0], "(sl.x - current)");
        compute_again(p, c);
        put(w, "if (sl.failed) FAULT(\"%s\", %s, \"its log density is not finite where the chain stands\");", v->name, element);
        put(w, "if (WARMING_UP) %s%s = slice_adapt(width, &sl, start);", w->crew ? "ELEMENT_LANE " : w->team ? "ONE_LANE " : "", wp);
        put(w, "NO_CLAIM();");
    } else {
        const char *lo = write_factor(w, s->lower), *hi = write_factor(w, s->upper);
        put(w, "const long first = %s, values = %s - first + 1;", lo, hi);
        Expr *dims[MAX_RANK + 1];
        Expr *count = ex_add(3, (Expr *[]){s->upper, ex_neg(s->lower), ex_num(1)});
        int n = 0;
        const int own = coloured(s) ? 1 : parallel;          // dimensions whose elements are weighed at the same time
        for (int k = 0; k < own; k++) dims[n++] = v->dim[k];
        dims[n++] = count;
        const bool moves = ex_unknown(count) || ex_reads_response(count);     // how many values there are is known in the sweep only
        const bool buffer = sharing == BY_MISSING || moves;
        if (!buffer) {
            weights = work_array(p, text(w, "weights_%s", v->name), n, dims);
            Expr *at[MAX_RANK + 1];
            for (int k = 0; k < own; k++) at[k] = ex_index(c->element[k]);
            at[n - 1] = ex_num(1);
            put(w, "wide *weight = &s.%s[%s];", weights->name, write_position(w, weights, at));
        } else put(w, "wide *weight = %sSCRATCH(%s);", w->team ? "TEAM_" : "", moves ? "values > 0 ? values : 1" : "values");
        put(w, "const long old = %s;", place);
        open_brace(w, "for (long value = 0; value < values; value++)");
        put(w, "const long x = first + value;");
        if (c->whole) store(p, place, "x", true);
        compute_again(p, c);
        put(w, "wide lp = 0;");
        write_density(p, c, &pieces, "lp");
        put(w, w->team ? "ONE_LANE weight[value] = lp;" : "weight[value] = lp;");
        close_brace(w);
        const bool team = w->team;
        if (team) open_brace(w, "ONE_LANE");
        w->team = false;
        if (!s->marginal) put(w, "const wide old_weight = CHECKING%s ? weight[old - first] : 0;", moves ? " && old >= first && old - first < values" : "");
        if (!s->marginal) put(w, "if (CHECKING) NEW_WEIGHTS(weight, values);");
        put(w, "const long chosen = categorical_log_weights(&g, weight, values);");
        put(w, "if (chosen < 1) FAULT(\"%s\", %s, \"no value has a positive probability\");", v->name, element);
        put(w, "const long x = chosen < 1 ? old : first + chosen - 1;");
        put(w, s->marginal ? "NO_CLAIM();" : "if (CHECKING) CLAIM(CHECK_WEIGHT(x - first) - old_weight);");
        put(w, "%s = x;", place);
        if (buffer && !team) put(w, "RELEASE(weight);");
        compute_again(p, c);
        if (team) close_brace(w);
        if (buffer && team) put(w, "TEAM_RELEASE(weight);");
        w->team = team;
    }
    while (opened-- > 0) close_brace(w);
    p->followed = NULL;
    end_kernel(p);
    launch_elements(p, s, step, sharing, NULL, name);
}

// ---- arrays whose elements are constrained together, without a family: slice sampled along the constraint ----

void step_constrained(Program *p, const Step *s, int step)
{
    Writer *w = &p->w;
    Conditional *c = s->conditional;
    Var *v = c->var;
    Constraint k = v->constraint;
    bool vector = k == CONSTRAINT_SIMPLEX || k == CONSTRAINT_UNIT_VECTOR;
    const char *name = text(w, "slice_%s", v->name);
    static const char *const coordinate[] = {
        [CONSTRAINT_NONE] = "", [CONSTRAINT_ORDERED] = "", [CONSTRAINT_POSITIVE_ORDERED] = "",
        [CONSTRAINT_SIMPLEX] = "mass moves between neighbours, their sum stays",
        [CONSTRAINT_UNIT_VECTOR] = "neighbours turn in their plane, the length stays",
        [CONSTRAINT_COVARIANCE] = "an element and its mirror image move while the matrix stays positive definite",
        [CONSTRAINT_CORRELATION] = "an element and its mirror image move while the matrix stays positive definite",
        [CONSTRAINT_CHOLESKY_COV] = "elements of the lower triangle move, the diagonal stays positive",
        [CONSTRAINT_CHOLESKY_CORR] = "an element moves against the diagonal of its row, whose length stays one"};
    put(w, "// %s | the rest: no family is recognised, slice sampled; %s", v->name, coordinate[k]);
    put(w, "//   %s; %s", line_of(p, v->span), c->because ? c->because : "");
    Var *width = work_array(p, text(w, "width_%s", v->name), v->rank, v->dim);
    bool once = c->recursion || !any_loops(c->density);
    for (const Part *q = c->density; q; q = q->next) once |= needs_array(q->value);
    Var *inside = once ? NULL : work_array(p, text(w, "inside_%s", v->name), 0, NULL);
    begin_kernel(p, once ? "KERNEL_ONCE" : "KERNEL_TEAM", name, "wide");
    const char *n = write_extent(w, v->dim[v->rank - 1]), *batches = "1";
    for (int d = 0; d < v->rank - (vector ? 1 : 2); d++) batches = text(w, "%s * (%s)", batches, write_extent(w, v->dim[d]));
    put(w, "const long size = %s;", n);
    open_brace(w, "for (long batch = 0; batch < %s; batch++)", batches);
    put(w, "wide *value = &s.%s[batch * size%s], *widths = &s.%s[batch * size%s];", c_name(w, v->name), vector ? "" : " * size", width->name, vector ? "" : " * size");
    open_brace(w, "for (long move = 0; move < %s; move++)", vector ? "size - 1" : "size * size");
    put(w, "ConstrainedMove m = constrained_begin(GM_MOVE_%s, value, size, move);",
        k == CONSTRAINT_SIMPLEX ? "SIMPLEX" : k == CONSTRAINT_UNIT_VECTOR ? "UNIT" : k == CONSTRAINT_COVARIANCE ? "COVARIANCE"
        : k == CONSTRAINT_CORRELATION ? "CORRELATION" : k == CONSTRAINT_CHOLESKY_COV ? "CHOLESKY_COV" : "CHOLESKY_CORR");
    put(w, "if (!m.moves) continue;");
    put(w, "Stream g = stream(at, VAR_%s, batch * size * size + move);", v->name);
    put(w, "const wide width = slice_width(widths[move], %s);", s->width ? write_expr(w, s->width) : "1");
    put(w, "Slice sl;");
    put(w, "slice_begin(&sl, &g, m.start, m.lo, m.hi, width);");
    open_brace(w, "while (slice_next(&sl))");
    if (!once) {
        put(w, "TEAM_BARRIER();");
        put(w, "ONE_LANE *s.%s = constrained_set(&m, sl.x);", inside->name);
    }
    put(w, "if (!%s) { sl.log_density = -INFINITY; continue; }", once ? "constrained_set(&m, sl.x)" : text(w, "*s.%s", inside->name));
    compute_again(p, c);
    put(w, "wide lp = 0;");
    Pieces pieces = {0};
    prepare_density(p, c, &pieces);
    write_density(p, c, &pieces, "lp");
    put(w, "sl.log_density = lp;");
    close_brace(w);
    if (!once) put(w, "TEAM_BARRIER();");
    put(w, "%sconstrained_set(&m, sl.x);", once ? "" : "ONE_LANE ");
    compute_again(p, c);
    put(w, "if (sl.failed) FAULT(\"%s\", move, \"its log density is not finite where the chain stands\");", v->name);
    put(w, "if (WARMING_UP) %swidths[move] = slice_adapt(width, &sl, m.start);", once ? "" : "ONE_LANE ");
    put(w, "NO_CLAIM();");
    close_brace(w);
    close_brace(w);
    end_kernel(p);
    if (once) launch_kernel(p, step, "LAUNCH_ONCE", name, "%s", "");
    else launch_team(p, step, name);
}

