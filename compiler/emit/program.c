// program.c -- the emitted program: data, state, a kernel per step, the sweep.
//
// Needs: the schedule.     Gives: CUDA C text that includes runtime/device/gm.h.
// Emission decides which sums leave the sweep (hoist.c) and in which order loops nest; everything else was decided before.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../front/front.h"
#include "emit.h"
#include "write.h"

typedef struct Program {
    Graph  *g;
    Writer  w;
    Var    *work[1024];          // work arrays, one per chain
    int     nwork;
    char   *kernels;             // text of the kernels and of the sweep, in order
    FILE   *sweep;               // launches, in the order of the sweep
    int     nsteps;
    const char *step_name[512];
    char   *launches[512];       // per step
} Program;

// ---- helpers ----

static Var *work_array(Program *p, const char *name, int rank, Expr *const *dim)
{
    Var *v = var_unique(p->g, name, VAR_SUM);
    v->rank = rank;
    for (int k = 0; k < rank; k++) v->dim[k] = dim[k];
    p->work[p->nwork++] = v;
    return v;
}

static const char *math(Program *p, const Expr *e) { return ex_text(p->g->arena, e); }

static const char *line_of(Program *p, Span s)
{
    const char *path = s.source ? s.source->path : "", *slash = strrchr(path, '/');
    return text(&p->w, "%s:%d", slash ? slash + 1 : path, span_line(s));
}

static void begin_kernel(Program *p, const char *kind, const char *name)
{
    Writer *w = &p->w;
    w->nknown = w->nnamed = w->temporaries = w->nscratch = 0;
    open_brace(w, "%s(%s)", kind, name);
}

static void end_kernel(Program *p)
{
    Writer *w = &p->w;
    close_brace(w);
    fputc('\n', w->out);
    w->moving = NULL;
}

static void launch(Program *p, int step, const char *how, const char *kernel, const char *size)
{
    const char *old = p->launches[step] ? p->launches[step] : "";
    p->launches[step] = (char *)(size ? text(&p->w, "%s    %s(%s, run, %s);\n", old, how, kernel, size)
                                      : text(&p->w, "%s    %s(%s, run);\n", old, how, kernel));
}

static const char *count_of(Program *p, const Var *v, int dims)
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

// Opens loops with what they do not change named first, the guard inside.
static void open_loops(Program *p, const Loops *l, int nvalues, Expr *const *values)
{
    Writer *w = &p->w;
    for (int i = 0; i < l->n; i++) {
        Loops inner = {.n = l->n - i};
        memcpy(inner.index, l->index + i, sizeof *inner.index * (size_t)inner.n);
        for (int k = 0; k < nvalues; k++) keep_outside(w, values[k], &inner);
        open_loop(w, l->index[i]);
        bool last = i + 1 == l->n;
        if (l->guard) {                          // as early as its indices are known
            bool later = false, here = ex_mentions_index(l->guard, l->index[i]);
            for (int k = i + 1; k < l->n; k++) later |= ex_mentions_index(l->guard, l->index[k]);
            if (!later && (here || last)) put(w, "if (!(%s)) continue;", write_expr(w, l->guard));
        }
    }
}

static void close_loops(Program *p, const Loops *l)
{
    for (int i = 0; i < l->n; i++) close_brace(&p->w);
}

// A guard that no loop carries.
static bool open_guard(Program *p, const Loops *l)
{
    if (!l->guard) return false;
    bool carried = false;
    for (int i = 0; i < l->n; i++) carried |= ex_mentions_index(l->guard, l->index[i]);
    if (carried || l->n > 0) return false;
    open_brace(&p->w, "if (%s)", write_expr(&p->w, l->guard));
    return true;
}

static bool starts_minus(const char *c) { return c[0] == '-' && strncmp(c, "-INF", 4) != 0; }

static void add_to(Program *p, const char *place, Expr *value)
{
    const char *c = write_expr(&p->w, value);
    if (starts_minus(c) && !strstr(c, " + ") && !strstr(c, " - ")) put(&p->w, "%s -= %s;", place, c + 1);
    else put(&p->w, "%s += %s;", place, c);
}

// ---- expressions of stdlib `draw` calls ----

typedef struct Arg { const char *name, *c; } Arg;

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

static const char *draw_call(Program *p, const Ast *call, int n, const Arg *args)
{
    const char *list = "&g";
    for (int i = 0; i < call->nkids; i++) list = text(&p->w, "%s, %s", list, rule_arg(p, call->kid[i], n, args));
    return text(&p->w, "%s(%s)", call->name, list);
}

// ---- the element loop that most steps share ----

// EACH over the first `parallel` dimensions, ordinary loops over the rest; returns the loops opened inside.
static int open_elements(Program *p, const Var *v, Index *const *element, int parallel)
{
    Writer *w = &p->w;
    int opened = 0;
    if (parallel > 0) {
        const char *names[MAX_RANK];
        for (int k = 0; k < parallel; k++) names[k] = element[k]->name;
        if (parallel == 1) open_brace(w, "EACH (%s, %s)", names[0], count_of(p, v, 1));
        else {
            open_brace(w, "EACH (e, %s)", count_of(p, v, parallel));
            const char *stride = NULL;
            for (int k = parallel - 1; k >= 0; k--) {
                const char *n = write_extent(w, v->dim[k]);
                if (strchr(n, ' ')) n = text(w, "(%s)", n);
                if (k == 0) put(w, "const long %s = e / (%s);", names[k], stride);
                else if (!stride) put(w, "const long %s = e %% %s;", names[k], n);
                else put(w, "const long %s = e / (%s) %% %s;", names[k], stride, n);
                stride = stride ? text(w, "%s * %s", stride, n) : n;
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

// Elements of v that exist: those that a `~` statement names. NULL: all.
static Expr *domain_guard(Program *p, const Var *v, Index *const *element)
{
    Expr *any = NULL;
    for (const Factor *f = p->g->factors; f; f = f->next) {
        if (f->replaced || !f->value || f->value->kind != EX_REF || f->value->var != v) continue;
        Expr *here = NULL;
        Expr *condition = f->plates.guard;
        bool whole = true;
        for (int k = 0; k < f->value->nargs; k++) {
            Expr *s = f->value->args[k], *key = ex_index(element[k]);
            const Index *plate = NULL;
            for (int i = 0; i < f->plates.n; i++)
                if (s == ex_index(f->plates.index[i])) plate = f->plates.index[i];
            if (!plate) {
                bool varies = false;
                for (int i = 0; i < f->plates.n; i++) varies |= ex_mentions_index(s, f->plates.index[i]);
                if (varies) return NULL;         // a gather: taken to cover all
                here = here ? ex_call2("&&", here, ex_call2("==", s, key)) : ex_call2("==", s, key);
                whole = false;
                continue;
            }
            Expr *tests[2] = {NULL, NULL};
            if (!ex_is_num(plate->lo, 1)) tests[0] = ex_call2("<=", plate->lo, ex_index((Index *)plate));
            if (plate->hi != v->dim[k]) tests[1] = ex_call2("<=", ex_index((Index *)plate), plate->hi);
            for (int i = 0; i < 2; i++)
                if (tests[i]) { here = here ? ex_call2("&&", here, tests[i]) : tests[i]; whole = false; }
        }
        if (condition) { here = here ? ex_call2("&&", here, condition) : condition; whole = false; }
        if (whole) return NULL;
        for (int k = 0; k < f->value->nargs; k++)
            if (f->value->args[k]->kind == EX_INDEX) here = ex_replace(here, f->value->args[k], ex_index(element[k]));
        any = any ? ex_call2("||", any, here) : here;
    }
    return any;
}

static const char *stream_text(Program *p, const Var *v, const char *element)
{
    return text(&p->w, "Stream g = stream(at, VAR_%s, %s);", v->name, element);
}

static const char *place_of(Program *p, const Conditional *c)
{
    Writer *w = &p->w;
    if (c->var->rank == 0) return text(w, "*%s", var_place(w, c->var));
    return text(w, "%s[%s]", var_place(w, c->var), write_position(w, c->var, c->current->args));
}

// ---- exact steps ----

static const char *element_text(Program *p, const Conditional *c) { return math(p, c->current); }

static void comment_exact(Program *p, const Step *s)
{
    Writer *w = &p->w;
    const Conditional *c = s->conditional;
    put(w, "// %s | the rest  ~  %s%s%s%s", element_text(p, c), c->truncated ? "truncated " : "", c->family->name,
        c->family->power && c->power != 1 ? text(w, ", %s^%g in place of %s", c->var->name, c->power, c->var->name) : "",
        s->imputes ? "     missing values of the data" : c->var->rank && c->nbatch == c->var->rank ? "     in parallel" : "");
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
        put(w, "%sreal %s = %s;", n == 0 || alone[side] ? "const " : "", side ? "upper" : "lower", alone[side] ? write_expr(w, alone[side]->value) : end);
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
        put(w, b->which ? "upper = fmin(upper, %s);" : "lower = fmax(lower, %s);", write_expr(w, b->value));
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

// Opens the loop over the elements that a step draws, missing ones or all; *element is the element's position. Returns the
// number of loops opened.
static int open_turns(Program *p, const Step *s, int parallel, const char **element)
{
    Writer *w = &p->w;
    const Conditional *c = s->conditional;
    const Var *v = c->var;
    if (coloured(s)) {
        const char *k = c->element[0]->name;
        open_brace(w, "EACH (turn, OF_COLOUR(%s, %d))", write_extent(w, v->dim[0]), c->colours);
        put(w, "const long %s = turn * %d + COLOUR;", k, c->colours);
        name_index(w, c->element[0], k);
        *element = k;
        return 1;
    }
    if (!s->imputes) {
        int opened = open_elements(p, v, c->element, parallel);
        *element = v->rank ? write_position(w, v, c->current->args) : "0";
        return opened;
    }
    open_brace(w, "EACH_MISSING (e, %s)", missing_of(p, v));
    const char *stride = NULL;
    for (int k = v->rank - 1; k >= 0; k--) {
        const char *n = write_extent(w, v->dim[k]);
        if (k == 0) put(w, "const long %s = e%s;", c->element[k]->name, stride ? text(w, " / (%s)", stride) : "");
        else put(w, "const long %s = e%s %% (%s);", c->element[k]->name, stride ? text(w, " / (%s)", stride) : "", n);
        stride = stride ? text(w, "%s * (%s)", stride, n) : text(w, "(%s)", n);
        name_index(w, c->element[k], c->element[k]->name);
    }
    *element = v->rank ? "e" : "0";
    return 1;
}

static void launch_elements(Program *p, const Step *s, int step, int parallel, const char *name)
{
    const Var *v = s->conditional->var;
    if (coloured(s)) {
        const char *old = p->launches[step] ? p->launches[step] : "";
        p->launches[step] = (char *)text(&p->w, "%s    LAUNCH_COLOURS(%s, run, %s, %d);\n", old, name, count_of(p, v, 1), s->conditional->colours);
    } else if (!s->imputes && parallel) launch(p, step, "LAUNCH", name, count_of(p, v, parallel));
    else launch(p, step, "LAUNCH_ONCE", name, NULL);
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
        const char *t = text(w, "%s * (%s - %s)", natural[k], new, strpbrk(old, "+-") ? text(w, "(%s)", old) : old);
        list = list ? text(w, "%s + %s", list, t) : t;
    }
    put(w, "if (CHECKING) { const real old = %s; CLAIM(%s); }", place, list);
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
    put(w, "const real x = %s;", draw_call(p, c->truncated ? c->family->draw_truncated : c->family->draw, n, args));
    put(w, "VERIFY(x, \"%s\", %s);", c->var->name, element);
    if (s->marginal) put(w, "NO_CLAIM();");
    else emit_claim(p, c, natural, place);
    put(w, "%s = x;", place);
}

static bool test_moving(const Part *q, const Var *v) { return ex_mentions(q->value, v); }

static void step_exact(Program *p, const Step *s, int step)
{
    Writer *w = &p->w;
    Conditional *c = s->conditional;
    Var *v = c->var;
    const char *name = text(w, "%s_%s", s->imputes ? "impute" : "draw", v->name);
    // Parts that stay sums over rows: scattered into work arrays before the draws.
    Var *array[4] = {0};
    Expr *closed[4];
    for (int k = 0; k < 4; k++) closed[k] = ex_num(0);
    Part *inline_parts[256];
    int ninline = 0;
    Part *scattered[256];
    int nscattered = 0;
    for (Part *q = c->natural; q; q = q->next) {
        Expr *h = s->imputes || test_moving(q, v) ? NULL : hoisted_part(p, c, q);
        if (h) { closed[q->which] = ex_add2(closed[q->which], h); continue; }
        if (q->scatter) {
            if (!array[q->which]) {
                const Natural *n = c->family->natural;
                for (int k = 0; k < q->which; k++) n = n->next;
                array[q->which] = work_array(p, text(w, "%s_%s", v->name, n->name), v->rank, v->dim);
            }
            scattered[nscattered++] = q;
        } else if (q->loops.n == 0 && !q->loops.guard) closed[q->which] = ex_add2(closed[q->which], q->value);
        else inline_parts[ninline++] = q;
    }
    comment_exact(p, s);
    if (nscattered) {
        const char *sums = text(w, "sums_%s", v->name);
        begin_kernel(p, "KERNEL_ONCE", sums);
        for (int k = 0; k < 4; k++)
            if (array[k]) put(w, "for (long e = 0; e < %s; e++) s.%s[e] = 0;", count_of(p, v, v->rank), array[k]->name);
        bool done[256] = {false};
        for (int i = 0; i < nscattered; i++) {
            if (done[i]) continue;
            Expr *values[64];
            int n = 0;
            for (int j = i; j < nscattered; j++)
                if (scattered[j]->factor == scattered[i]->factor && n < 64) values[n++] = scattered[j]->value;
            int m = mark(w);
            bool braces = open_guard(p, &scattered[i]->loops);
            open_loops(p, &scattered[i]->loops, n, values);
            for (int j = i; j < nscattered; j++) {
                if (done[j] || scattered[j]->factor != scattered[i]->factor) continue;
                done[j] = true;
                add_to(p, text(w, "s.%s[%s]", array[scattered[j]->which]->name, write_position(w, v, scattered[j]->target)), scattered[j]->value);
            }
            close_loops(p, &scattered[i]->loops);
            if (braces) close_brace(w);
            forget(w, m);
        }
        end_kernel(p);
        launch(p, step, "LAUNCH_ONCE", sums, NULL);
    }
    int parallel = s->imputes ? 0 : c->nbatch;
    begin_kernel(p, parallel || coloured(s) ? "KERNEL" : "KERNEL_ONCE", name);
    if (!parallel || parallel < v->rank) w->moving = v;
    // What no element changes.
    Loops all = {0};
    for (int k = 0; k < v->rank; k++) all.index[all.n++] = c->element[k];
    for (int k = 0; k < 4; k++) if (v->rank) keep_outside(w, closed[k], &all);
    for (int i = 0; i < ninline && v->rank; i++) {
        Loops inner = all;
        for (int k = 0; k < inline_parts[i]->loops.n && inner.n < 2 * MAX_RANK + 4; k++) inner.index[inner.n++] = inline_parts[i]->loops.index[k];
        keep_outside(w, inline_parts[i]->value, &inner);
    }
    w->moving = NULL;
    int opened = 0;
    const char *element;
    opened = open_turns(p, s, parallel, &element);
    Expr *guard = domain_guard(p, v, c->element);
    if (guard && opened) put(w, "if (!(%s)) continue;", write_expr(w, guard));
    const char *natural[4];
    int k = 0;
    for (const Natural *n = c->family->natural; n; n = n->next, k++) {
        Expr *e = closed[k];
        if (array[k]) e = ex_add2(e, ex_ref(array[k], v->rank, c->current->args));
        bool more = false;
        for (int i = 0; i < ninline; i++) more |= inline_parts[i]->which == k;
        natural[k] = text(w, "%s_%s", n->name, v->name);
        const char *c_text = write_expr(w, e);
        put(w, "%sreal %s = %s;", more ? "" : "const ", natural[k], c_text);
    }
    bool done[256] = {false};
    for (int i = 0; i < ninline; i++) {          // parts with the same loops share them
        if (done[i]) continue;
        Expr *values[64];
        int n = 0;
        for (int j = i; j < ninline; j++)
            if (inline_parts[j]->factor == inline_parts[i]->factor && memcmp(&inline_parts[j]->loops, &inline_parts[i]->loops, sizeof(Loops)) == 0 && n < 64)
                values[n++] = inline_parts[j]->value;
        int m = mark(w);
        bool braces = open_guard(p, &inline_parts[i]->loops);
        open_loops(p, &inline_parts[i]->loops, n, values);
        for (int j = i; j < ninline; j++) {
            if (done[j] || inline_parts[j]->factor != inline_parts[i]->factor || memcmp(&inline_parts[j]->loops, &inline_parts[i]->loops, sizeof(Loops)) != 0) continue;
            done[j] = true;
            add_to(p, natural[inline_parts[j]->which], inline_parts[j]->value);
        }
        close_loops(p, &inline_parts[i]->loops);
        if (braces) close_brace(w);
        forget(w, m);
    }
    emit_draw(p, s, natural, element);
    while (opened-- > 0) close_brace(w);
    end_kernel(p);
    launch_elements(p, s, step, parallel, name);
}

// ---- enumeration and slice sampling ----

// The log density of the element as a function of x: what does not hold u is left out; sums whose terms are a statistic of u
// times something free of u are made once, before the values are tried.
typedef struct Pieces { int nonce; Expr *once[64]; const char *name[64]; int nloop; Part loop[128]; } Pieces;

// The terms of a sum that mention v.
static Expr *relevant(Expr *e, const Var *v)
{
    if (!ex_mentions(e, v)) return ex_num(0);
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

static void prepare_density(Program *p, const Conditional *c, Pieces *out)
{
    Writer *w = &p->w;
    for (const Part *q = c->density; q; q = q->next) {
        if (c->whole) {
            if (out->nloop < 128) { out->loop[out->nloop] = *q; out->loop[out->nloop++].value = relevant(q->value, c->var); }
            continue;
        }
        if (q->loops.n == 0 && !q->loops.guard) {
            Part r = *q;
            Expr *e = q->value, *keep = ex_num(0);
            for (int i = 0; i < (e->kind == EX_ADD ? e->nargs : 1); i++) {
                Expr *t = e->kind == EX_ADD ? e->args[i] : e;
                if (ex_mentions(t, c->u->var)) keep = ex_add2(keep, t);
            }
            r.value = keep;
            if (out->nloop < 128) out->loop[out->nloop++] = r;
            continue;
        }
        Statistics s = statistics(p->g->arena, q->value, c->u);
        Expr *rest = ex_num(0);
        for (int i = 0; i < s.n; i++) {
            Expr *stat = s.item[i].statistic;
            bool local = false;
            for (int k = 0; k < q->loops.n; k++) local |= ex_mentions_index(stat, q->loops.index[k]);
            if (local || out->nonce == 64 || ex_unknown(ex_replace(stat, c->u, ex_num(1)))) { rest = ex_add2(rest, ex_mul2(s.item[i].coefficient, stat)); continue; }
            const char *t = text(w, "a%d", ++w->temporaries);
            int m = mark(w);
            put(w, "real %s = 0;", t);
            bool braces = open_guard(p, &q->loops);
            open_loops(p, &q->loops, 1, &s.item[i].coefficient);
            add_to(p, t, s.item[i].coefficient);
            close_loops(p, &q->loops);
            if (braces) close_brace(w);
            forget(w, m);
            out->once[out->nonce] = stat;
            out->name[out->nonce++] = t;
        }
        if (!ex_is_num(rest, 0) && out->nloop < 128) {
            out->loop[out->nloop] = *q;
            out->loop[out->nloop++].value = rest;
        }
    }
}

static void write_density(Program *p, const Conditional *c, const Pieces *d, const char *target)
{
    Writer *w = &p->w;
    int m0 = mark(w);
    if (!c->whole) know(w, c->u, "x");
    for (int i = 0; i < d->nonce; i++) put(w, "%s += %s * %s;", target, d->name[i], write_factor(w, d->once[i]));
    for (int i = 0; i < d->nloop; i++) {
        const Part *q = &d->loop[i];
        int m = mark(w);
        bool braces = open_guard(p, &q->loops);
        open_loops(p, &q->loops, 1, (Expr *[]){q->value});
        add_to(p, target, q->value);
        close_loops(p, &q->loops);
        if (braces) close_brace(w);
        forget(w, m);
    }
    forget(w, m0);
}

static void step_density(Program *p, const Step *s, int step)
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
    int parallel = s->imputes ? 0 : c->nbatch;
    begin_kernel(p, parallel || coloured(s) ? "KERNEL" : "KERNEL_ONCE", name);
    int opened = 0;
    const char *element;
    opened = open_turns(p, s, parallel, &element);
    Expr *guard = domain_guard(p, v, c->element);
    if (guard && opened) put(w, "if (!(%s)) continue;", write_expr(w, guard));
    const char *place = place_of(p, c);
    Pieces pieces = {0};
    prepare_density(p, c, &pieces);
    put(w, "%s", stream_text(p, v, element));
    if (slice) {
        const char *wp = v->rank ? text(w, "s.%s[%s]", width->name, write_position(w, v, c->current->args)) : text(w, "*s.%s", width->name);
        const char *lo = isfinite(v->lower_number) ? text(w, "%.17g", v->lower_number) : "-INFINITY";
        const char *hi = isfinite(v->upper_number) ? text(w, "%.17g", v->upper_number) : "INFINITY";
        if (v->discrete) {
            lo = isfinite(v->lower_number) ? text(w, "%.17g", v->lower_number - 0.5) : "-INFINITY";
            hi = isfinite(v->upper_number) ? text(w, "%.17g", v->upper_number + 0.5) : "INFINITY";
        }
        put(w, "const real current = %s, width = slice_width(%s, %s);", place, wp, s->width ? write_expr(w, s->width) : "1");
        put(w, "real start = current;");
        put(w, "Slice sl;");
        bool positive = !v->discrete && v->lower_number == 0 && !isfinite(v->upper_number);
        open_brace(w, "for (int attempt = 0; attempt < (WARMING_UP ? 100 : 1); attempt++)");
        put(w, "if (attempt) start = slice_restart(&g, current, attempt, %s, %s);", lo, hi);
        put(w, "%s(&sl, &g, start, %s, %s, width);", positive ? "slice_begin_log" : "slice_begin", lo, hi);
        open_brace(w, "while (slice_next(&sl))");
        put(w, "const real x = %s;", v->discrete ? "floor(sl.x + 0.5)" : "sl.x");
        if (c->whole) put(w, "%s = x;", place);
        put(w, "real lp = 0;");
        write_density(p, c, &pieces, "lp");
        put(w, "sl.log_density = lp;");
        close_brace(w);
        put(w, "if (!sl.failed) break;");
        close_brace(w);
        put(w, "%s = %s;", place, v->discrete ? "floor(sl.x + 0.5)" : "sl.x");
        put(w, "if (sl.failed) FAULT(\"%s\", %s, \"its log density is not finite where the chain stands\");", v->name, element);
        put(w, "if (WARMING_UP) %s = slice_adapt(width, &sl, start);", wp);
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
        weights = work_array(p, text(w, "weights_%s", v->name), n, dims);
        Expr *at[MAX_RANK + 1];
        for (int k = 0; k < own; k++) at[k] = ex_index(c->element[k]);
        at[n - 1] = ex_num(1);
        put(w, "real *weight = &s.%s[%s];", weights->name, write_position(w, weights, at));
        put(w, "const long old = %s;", place);
        open_brace(w, "for (long value = 0; value < values; value++)");
        put(w, "const long x = first + value;");
        if (c->whole) put(w, "%s = x;", place);
        put(w, "real lp = 0;");
        write_density(p, c, &pieces, "lp");
        put(w, "weight[value] = lp;");
        close_brace(w);
        put(w, "const real old_weight = CHECKING ? weight[old - first] : 0;");
        put(w, "if (CHECKING) NEW_WEIGHTS(weight, values);");
        put(w, "const long chosen = categorical_log_weights(&g, weight, values);");
        put(w, "if (chosen < 1) FAULT(\"%s\", %s, \"no value has a positive probability\");", v->name, element);
        put(w, "const long x = chosen < 1 ? old : first + chosen - 1;");
        put(w, s->marginal ? "NO_CLAIM();" : "if (CHECKING) CLAIM(CHECK_WEIGHT(x - first) - old_weight);");
        put(w, "%s = x;", place);
    }
    while (opened-- > 0) close_brace(w);
    end_kernel(p);
    launch_elements(p, s, step, parallel, name);
}

// ---- arrays whose elements are constrained together, without a family: slice sampled along the constraint ----

static void step_constrained(Program *p, const Step *s, int step)
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
    begin_kernel(p, "KERNEL_ONCE", name);
    const char *n = write_extent(w, v->dim[v->rank - 1]), *batches = "1";
    for (int d = 0; d < v->rank - (vector ? 1 : 2); d++) batches = text(w, "%s * (%s)", batches, write_extent(w, v->dim[d]));
    put(w, "const long size = %s;", n);
    open_brace(w, "for (long batch = 0; batch < %s; batch++)", batches);
    put(w, "real *value = &s.%s[batch * size%s], *widths = &s.%s[batch * size%s];", c_name(w, v->name), vector ? "" : " * size", width->name, vector ? "" : " * size");
    open_brace(w, "for (long move = 0; move < %s; move++)", vector ? "size - 1" : "size * size");
    put(w, "ConstrainedMove m = constrained_begin(GM_MOVE_%s, value, size, move);",
        k == CONSTRAINT_SIMPLEX ? "SIMPLEX" : k == CONSTRAINT_UNIT_VECTOR ? "UNIT" : k == CONSTRAINT_COVARIANCE ? "COVARIANCE"
        : k == CONSTRAINT_CORRELATION ? "CORRELATION" : k == CONSTRAINT_CHOLESKY_COV ? "CHOLESKY_COV" : "CHOLESKY_CORR");
    put(w, "if (!m.moves) continue;");
    put(w, "Stream g = stream(at, VAR_%s, batch * size * size + move);", v->name);
    put(w, "const real width = slice_width(widths[move], %s);", s->width ? write_expr(w, s->width) : "1");
    put(w, "Slice sl;");
    put(w, "slice_begin(&sl, &g, m.start, m.lo, m.hi, width);");
    open_brace(w, "while (slice_next(&sl))");
    put(w, "if (!constrained_set(&m, sl.x)) { sl.log_density = -INFINITY; continue; }");
    put(w, "real lp = 0;");
    Pieces pieces = {0};
    prepare_density(p, c, &pieces);
    write_density(p, c, &pieces, "lp");
    put(w, "sl.log_density = lp;");
    close_brace(w);
    put(w, "constrained_set(&m, sl.x);");
    put(w, "if (sl.failed) FAULT(\"%s\", move, \"its log density is not finite where the chain stands\");", v->name);
    put(w, "if (WARMING_UP) widths[move] = slice_adapt(width, &sl, m.start);");
    put(w, "NO_CLAIM();");
    close_brace(w);
    close_brace(w);
    end_kernel(p);
    launch(p, step, "LAUNCH_ONCE", name, NULL);
}

// ---- arrays drawn whole ----

static void scatter_terms(Program *p, int n, const Part *const *parts, const char *(*place)(Program *, const Part *, void *), void *with)
{
    Writer *w = &p->w;
    for (int i = 0; i < n; i++) {
        const Part *q = parts[i];
        int m = mark(w);
        bool braces = open_guard(p, &q->loops);
        open_loops(p, &q->loops, 1, (Expr *[]){q->value});
        add_to(p, place(p, q, with), q->value);
        close_loops(p, &q->loops);
        if (braces) close_brace(w);
        forget(w, m);
    }
}

typedef struct ArrayPlace { Var *scalar, *array; int nbatch; } ArrayPlace;

static const char *array_place(Program *p, const Part *q, void *with)
{
    ArrayPlace *a = with;
    Writer *w = &p->w;
    Var *v = q->which == 0 && a->scalar ? a->scalar : a->array;
    if (v->rank == 0) return text(w, "*s.%s", v->name);
    return text(w, "s.%s[%s]", v->name, write_position(w, v, q->target));
}

static void step_array(Program *p, const Step *s, int step)
{
    Writer *w = &p->w;
    Conditional *c = s->conditional;
    Var *v = c->var;
    bool simplex = v->constraint == CONSTRAINT_SIMPLEX;
    const char *sums = text(w, "sums_%s", v->name), *name = text(w, "draw_%s", v->name);
    ArrayPlace place = {.nbatch = c->nbatch};
    place.array = work_array(p, text(w, "%s_natural", v->name), v->rank, v->dim);
    if (!simplex) place.scalar = work_array(p, text(w, "%s_degrees", v->name), c->nbatch, v->dim);
    const char *batch = v->name;
    for (int k = 0; k < c->nbatch; k++) batch = text(w, "%s%s%s", batch, k ? ", " : "[", c->element[k]->name);
    put(w, "// %s%s | the rest  ~  %s", batch, c->nbatch ? "]" : "", c->family->name);
    put(w, "//   %s", line_of(p, v->span));
    const Part *parts[256];
    int n = 0;
    for (const Part *q = c->natural; q && n < 256; q = q->next) {
        parts[n++] = q;
        const char *over = "", *target = "";
        for (int i = 0; i < q->loops.n; i++) over = text(w, "%s%s%s", over, i ? ", " : "  over ", q->loops.index[i]->name);
        for (int k = 0; k < MAX_RANK && q->target[k]; k++) target = text(w, "%s%s%s", target, k ? ", " : "[", math(p, q->target[k]));
        put(w, "//   %s%s%s += %s%s", simplex ? "a" : q->which ? "B" : "d", target, q->target[0] ? "]" : "", math(p, q->value), over);
    }
    begin_kernel(p, "KERNEL_ONCE", sums);
    put(w, "for (long e = 0; e < %s; e++) s.%s[e] = 0;", count_of(p, place.array, v->rank), place.array->name);
    if (place.scalar) put(w, "for (long e = 0; e < %s; e++) s.%s[e] = 0;", count_of(p, place.scalar, c->nbatch), place.scalar->name);
    scatter_terms(p, n, parts, array_place, &place);
    end_kernel(p);
    launch(p, step, "LAUNCH_ONCE", sums, NULL);
    begin_kernel(p, c->nbatch ? "KERNEL" : "KERNEL_ONCE", name);
    int opened = 0;
    if (c->nbatch) { open_brace(w, "EACH (e, %s)", count_of(p, v, c->nbatch)); opened = 1; }
    const char *e = c->nbatch ? "e" : "0";
    put(w, "%s", stream_text(p, v, e));
    const char *size = write_extent(w, v->dim[v->rank - 1]);
    put(w, "const long n = %s;", size);
    const char *elements = simplex ? "n" : "n * n";
    const char *at = c->nbatch ? text(w, "e * %s", simplex ? "n" : "n * n") : "0";
    put(w, "real *x = &s.%s[%s];", c_name(w, v->name), at);
    put(w, "SAVE_OLD(x, %s);", elements);
    if (simplex) put(w, "%s(&g, &s.%s[%s], n, x);", c->family->draw->name, place.array->name, at);
    else {
        put(w, "real *work = SCRATCH(3 * n * n);");
        put(w, "%s(&g, s.%s[%s], &s.%s[%s], n, x, work);", c->family->draw->name, place.scalar->name, e, place.array->name, at);
        put(w, "RELEASE(work);");
    }
    put(w, "VERIFY(x[0], \"%s\", %s);", v->name, e);
    if (simplex) put(w, "if (CHECKING) CLAIM(dirichlet_claim(&s.%s[%s], n, x, OLD));", place.array->name, at);
    else put(w, "if (CHECKING) CLAIM(%s_claim(s.%s[%s], &s.%s[%s], n, x, OLD));", c->family->name, place.scalar->name, e, place.array->name, at);
    if (opened) close_brace(w);
    end_kernel(p);
    if (c->nbatch) launch(p, step, "LAUNCH", name, count_of(p, v, c->nbatch));
    else launch(p, step, "LAUNCH_ONCE", name, NULL);
}

// ---- Gaussian blocks ----

typedef struct BlockPlace {
    const Step *step;
    Var *J, *h, *E, *D, *k;      // precision and shift of the dense part; coupling, diagonal precision and shift of the arrow's
    const char *offset[64];
    const Var *var[64];
    int n;
} BlockPlace;

static int block_position(const BlockPlace *b, const Var *v)
{
    for (int i = 0; i < b->n; i++)
        if (b->var[i] == v) return i;
    return -1;
}

static bool is_arrow(const BlockPlace *b, const Var *v) { return b->step->arrow && b->var[b->n - 1] == v; }

// Position of an element inside its block, and inside its batch for batched blocks.
static const char *inner_position(Program *p, const BlockPlace *b, Expr *ref)
{
    Writer *w = &p->w;
    const Var *v = ref->var;
    int nb = b->step->nbatch;
    const char *pos = NULL;
    for (int k = nb; k < v->rank; k++) {
        const char *i = write_subscript(w, ref->args[k]);
        pos = pos ? text(w, "(%s) * (%s) + %s", pos, write_extent(w, v->dim[k]), i) : i;
    }
    if (!pos) pos = "0";
    const char *off = is_arrow(b, v) ? "" : b->offset[block_position(b, v)];
    if (off[0] == 0 || strcmp(off, "0") == 0) return pos;
    return strcmp(pos, "0") == 0 ? off : text(w, "%s + %s", off, pos);
}

static const char *batch_position(Program *p, const BlockPlace *b, Expr *ref)
{
    const Var *v = ref->var;
    const char *pos = NULL;
    for (int k = 0; k < b->step->nbatch; k++) {
        const char *i = write_subscript(&p->w, ref->args[k]);
        pos = pos ? text(&p->w, "(%s) * (%s) + %s", pos, write_extent(&p->w, v->dim[k]), i) : i;
    }
    return pos ? pos : "0";
}

static const char *wrap(Program *p, const char *c) { return strchr(c, ' ') ? text(&p->w, "(%s)", c) : c; }

static void add_entry(Program *p, const char *place, const char *sign, const char *value)
{
    Writer *w = &p->w;
    bool minus = starts_minus(value), simple = !strstr(value, " + ") && !strstr(value, " - ");
    if (minus && simple) put(w, "%s %s= %s;", place, sign[0] == '+' ? "-" : "+", value + 1);
    else put(w, "%s %s= %s;", place, sign, value);
}

static void add_block_term(Program *p, const BlockPlace *b, const BlockTerm *t, Expr *value)
{
    Writer *w = &p->w;
    const char *c = write_expr(w, value);
    bool batched = b->step->nbatch > 0;
    const char *bp = batched ? wrap(p, batch_position(p, b, t->ref[0])) : NULL;
    if (t->degree == 1) {
        bool arrow = is_arrow(b, t->ref[0]->var);
        const char *i = inner_position(p, b, t->ref[0]);
        const char *place = batched ? text(w, "s.%s[%s * n + %s]", b->h->name, bp, i) : text(w, "s.%s[%s]", arrow ? b->k->name : b->h->name, i);
        add_entry(p, place, "+", c);
        return;
    }
    bool a0 = is_arrow(b, t->ref[0]->var), a1 = is_arrow(b, t->ref[1]->var);
    const char *i = inner_position(p, b, t->ref[0]), *j = inner_position(p, b, t->ref[1]);
    if (a0 && a1) {
        add_entry(p, text(w, "s.%s[%s]", b->D->name, i), "-", write_expr(w, ex_mul2(ex_num(2), value)));
        return;
    }
    if (a0 || a1) {
        const char *row = a0 ? i : j, *col = a0 ? j : i;
        add_entry(p, text(w, "s.%s[%s * n + %s]", b->E->name, wrap(p, row), col), "-", c);
        return;
    }
    const char *base = batched ? text(w, "(%s * n + ", bp) : "(", *J = b->J->name;
    if (strcmp(i, j) == 0) {
        add_entry(p, text(w, "s.%s[%s%s) * n + %s]", J, base, i, j), "-", write_expr(w, ex_mul2(ex_num(2), value)));
        return;
    }
    if (strpbrk(c, " (")) {
        const char *tname = text(w, "t%d", ++w->temporaries);
        put(w, "const real %s = %s;", tname, c);
        c = tname;
    }
    add_entry(p, text(w, "s.%s[%s%s) * n + %s]", J, base, i, j), "-", c);
    add_entry(p, text(w, "s.%s[%s%s) * n + %s]", J, base, j, i), "-", c);
}

// Keys of a term: the different subscripts that vary with its loops.
static bool term_keys(const BlockTerm *t, Keys *keys, Index **fresh)
{
    *keys = (Keys){0};
    for (int r = 0; r < t->degree; r++)
        for (int k = 0; k < t->ref[r]->nargs; k++) {
            Expr *s = t->ref[r]->args[k];
            bool varies = false, seen = false;
            for (int i = 0; i < t->loops.n; i++) varies |= ex_mentions_index(s, t->loops.index[i]);
            for (int i = 0; i < keys->n; i++) seen |= keys->key[i] == s;
            if (!varies || seen) continue;
            if (keys->n == 4) return false;
            static const char *const names[] = {"a", "b", "c", "e"};
            keys->key[keys->n] = s;
            keys->extent[keys->n] = t->ref[r]->var->dim[k];
            fresh[keys->n] = index_new(intern(names[keys->n]), ex_num(1), keys->extent[keys->n]);
            keys->at[keys->n] = ex_index(fresh[keys->n]);
            keys->n++;
        }
    return true;
}

static void accumulate(Program *p, const BlockPlace *b, const BlockTerm *t)
{
    Writer *w = &p->w;
    Keys keys;
    Index *fresh[4];
    BlockTerm u = *t;
    bool sums = term_keys(t, &keys, fresh);
    int plain = 0;
    for (int i = 0; i < keys.n; i++) plain += keys.key[i]->kind == EX_INDEX;
    if (sums && !(plain == keys.n && keys.n == t->loops.n)) {            // there is something to sum
        Expr *h = hoist_sum(p->g, &keys, &t->loops, t->coefficient);
        if (h) {
            for (int r = 0; r < u.degree; r++)
                for (int k = 0; k < keys.n; k++) u.ref[r] = ex_replace(u.ref[r], keys.key[k], keys.at[k]);
            u.coefficient = h;
            u.loops = (Loops){.n = keys.n};
            for (int k = 0; k < keys.n; k++) u.loops.index[k] = fresh[k];
        }
    }
    int m = mark(w);
    bool braces = open_guard(p, &u.loops);
    bool scope = u.loops.n == 0 && !braces;
    if (scope) open_brace(w, "%s", "");
    open_loops(p, &u.loops, 1, &u.coefficient);
    add_block_term(p, b, &u, u.coefficient);
    close_loops(p, &u.loops);
    if (braces || scope) close_brace(w);
    forget(w, m);
}

static Expr *size_of(const Var *v, int from)
{
    Expr *n = ex_num(1);
    for (int k = from; k < v->rank; k++) n = ex_mul2(n, v->dim[k]);
    return n;
}

static void step_gaussian(Program *p, const Step *s, int step)
{
    Writer *w = &p->w;
    BlockPlace b = {.step = s};
    const char *stem = s->block[0]->name, *title = "";
    int ndense = s->nblock - s->arrow;
    Expr *size = ex_num(0);
    for (int i = 0; i < s->nblock; i++) {
        b.var[b.n++] = s->block[i];
        title = text(w, "%s%s%s", title, i ? ", " : "", s->block[i]->name);
        if (i < ndense) size = ex_add2(size, size_of(s->block[i], s->nbatch));
    }
    Var *first = s->block[0], *effects = s->arrow ? s->block[s->nblock - 1] : NULL;
    Expr *batch = ex_num(1);
    for (int k = 0; k < s->nbatch; k++) batch = ex_mul2(batch, first->dim[k]);
    b.J = work_array(p, text(w, "precision_%s", stem), 3, (Expr *[]){batch, size, size});
    b.h = work_array(p, text(w, "shift_%s", stem), 2, (Expr *[]){batch, size});
    if (effects) {
        Expr *n = size_of(effects, 0);
        b.E = work_array(p, text(w, "coupling_%s", effects->name), 2, (Expr *[]){n, size});
        b.D = work_array(p, text(w, "precision_%s", effects->name), 1, &n);
        b.k = work_array(p, text(w, "shift_%s", effects->name), 1, &n);
    }
    put(w, "// (%s) | the rest  ~  normal with precision J and shift h, mean J^-1 h     %s", title, s->reason);
    put(w, "//   %s%s", line_of(p, first->span), effects ? text(w, "; the elements of %s are independent given the others: an arrow", effects->name) : "");
    if (s->scaled) put(w, "//   %s is scaled together with it: s^2 ~ gamma(count/2, (sum of squares - h'J^-1 h)/2)  (Liu and Wu 1999)", s->scaled_latent->var->name);
    for (const BlockTerm *t = s->terms; t; t = t->next) {
        const char *over = "";
        for (int i = 0; i < t->loops.n; i++) over = text(w, "%s%s%s", over, i ? ", " : "  over ", t->loops.index[i]->name);
        if (t->degree == 2) put(w, "//   J[%s, %s] += %s%s", math(p, t->ref[0]), math(p, t->ref[1]), math(p, ex_mul2(ex_num(t->ref[0] == t->ref[1] ? -2 : -1), t->coefficient)), over);
        else put(w, "//   h[%s] += %s%s", math(p, t->ref[0]), math(p, t->coefficient), over);
    }
    const char *collect = text(w, "collect_%s", stem), *draw = text(w, "draw_%s", stem);
    begin_kernel(p, "KERNEL_ONCE", collect);
    const char *n = write_extent(w, size);
    put(w, "const long n = %s;", n);
    const char *off = "0";
    for (int i = 0; i < ndense; i++) {
        if (i == 0) b.offset[0] = "0";
        else {
            b.offset[i] = text(w, "at_%s", s->block[i]->name);
            put(w, "const long %s = %s;", b.offset[i], off);
        }
        const char *len = write_extent(w, size_of(s->block[i], s->nbatch));
        off = strcmp(off, "0") == 0 ? len : text(w, "%s + %s", off, wrap(p, len));
    }
    const char *nb = write_extent(w, batch);
    put(w, "for (long e = 0; e < %s * n * n; e++) s.%s[e] = 0;", wrap(p, nb), b.J->name);
    put(w, "for (long e = 0; e < %s * n; e++) s.%s[e] = 0;", wrap(p, nb), b.h->name);
    if (effects) {
        const char *ne = wrap(p, write_extent(w, size_of(effects, 0)));
        put(w, "for (long e = 0; e < %s; e++) s.%s[e] = s.%s[e] = 0;", ne, b.D->name, b.k->name);
        put(w, "for (long e = 0; e < %s * n; e++) s.%s[e] = 0;", ne, b.E->name);
    }
    for (const BlockTerm *t = s->terms; t; t = t->next) accumulate(p, &b, t);
    end_kernel(p);
    launch(p, step, "LAUNCH_ONCE", collect, NULL);
    if (s->nbatch) {
        begin_kernel(p, "KERNEL", draw);
        put(w, "const long n = %s;", write_extent(w, size));
        open_brace(w, "EACH (e, %s)", count_of(p, first, s->nbatch));
        put(w, "%s", stream_text(p, first, "e"));
        put(w, "real *x = &s.%s[e * n];", c_name(w, first->name));
        put(w, "SAVE_OLD(x, n);");
        put(w, "if (CHECKING) CLAIM_QUADRATIC_BEFORE(n, &s.%s[e * n * n], &s.%s[e * n], x);", b.J->name, b.h->name);
        put(w, "if (normal_draw(&g, n, &s.%s[e * n * n], &s.%s[e * n], x)) FAULT(\"%s\", e, NOT_POSITIVE_DEFINITE);", b.J->name, b.h->name, first->name);
        put(w, "if (CHECKING) CLAIM_QUADRATIC_AFTER(x);");
        close_brace(w);
        end_kernel(p);
        launch(p, step, "LAUNCH", draw, count_of(p, first, s->nbatch));
        return;
    }
    begin_kernel(p, "KERNEL_ONCE", draw);
    put(w, "const long n = %s;", write_extent(w, size));
    put(w, "%s", stream_text(p, first, "0"));
    bool direct = ndense == 1;
    if (direct) put(w, "real *x = s.%s;", c_name(w, first->name));
    else {
        put(w, "real *x = SCRATCH(n);");
        put(w, "long e = 0;");
        for (int i = 0; i < ndense; i++) {
            const char *len = write_extent(w, size_of(s->block[i], 0));
            if (s->block[i]->rank == 0) put(w, "x[e++] = *s.%s;", c_name(w, s->block[i]->name));
            else put(w, "for (long k = 0; k < %s; k++) x[e++] = s.%s[k];", len, c_name(w, s->block[i]->name));
        }
    }
    const char *scale = "NULL";
    if (s->scaled) {
        scale = "&scale";
        Loops l = {0};
        Expr *count = ex_num(1);
        for (int i = 0; i < s->scaled->plates.n; i++) {
            Index *k = s->scaled->plates.index[i];
            l.index[l.n++] = k;
            count = ex_mul2(count, ex_add(3, (Expr *[]){k->hi, ex_neg(k->lo), ex_num(1)}));
        }
        Expr *square = ex_mul2(s->scaled_weight, ex_pow(s->scaled_latent, 2));
        put(w, "real squares = 0;");
        int m = mark(w);
        open_loops(p, &l, 1, &square);
        add_to(p, "squares", square);
        close_loops(p, &l);
        forget(w, m);
        put(w, "GmScale scale = {squares, %s, 1};", write_expr(w, count));
    }
    if (effects)
        put(w, "if (normal_draw_arrow(GM, &g, n, s.%s, s.%s, x, %s, s.%s, s.%s, s.%s, s.%s, %s)) FAULT(\"%s\", 0, NOT_POSITIVE_DEFINITE);",
            b.J->name, b.h->name, write_extent(w, size_of(effects, 0)), b.D->name, b.E->name, b.k->name, c_name(w, effects->name), scale, stem);
    else put(w, "if (normal_draw_dense(GM, &g, n, s.%s, s.%s, x, %s)) FAULT(\"%s\", 0, NOT_POSITIVE_DEFINITE);", b.J->name, b.h->name, scale, stem);
    if (s->scaled) {
        Loops l = {0};
        for (int i = 0; i < s->scaled->plates.n; i++) l.index[l.n++] = s->scaled->plates.index[i];
        int m = mark(w);
        open_loops(p, &l, 0, NULL);
        put(w, "%s *= scale.scale;", write_expr(w, s->scaled_latent));
        close_loops(p, &l);
        forget(w, m);
    }
    if (!direct) {
        put(w, "e = 0;");
        for (int i = 0; i < ndense; i++) {
            const char *len = write_extent(w, size_of(s->block[i], 0));
            if (s->block[i]->rank == 0) put(w, "*s.%s = x[e++];", c_name(w, s->block[i]->name));
            else put(w, "for (long k = 0; k < %s; k++) s.%s[k] = x[e++];", len, c_name(w, s->block[i]->name));
        }
        put(w, "RELEASE(x);");
    }
    end_kernel(p);
    launch(p, step, "LAUNCH_ONCE", draw, NULL);
}

// ---- what is computed once: lets and sums of data ----

static bool test_response(const Var *v, void *with) { (void)with; return v->kind == VAR_DATA && v->response; }

static bool reads_response(const Sum *s) { return ex_any_var(s->value, test_response, NULL); }

static void emit_site(Program *p, const Var *v, const Site *t)
{
    Writer *w = &p->w;
    Loops l = {.guard = t->plates.guard};
    for (int i = 0; i < t->plates.n; i++) l.index[l.n++] = t->plates.index[i];
    int m = mark(w);
    bool braces = open_guard(p, &l);
    w->moving = v;
    open_loops(p, &l, t->value ? 1 : t->nargs, t->value ? (Expr *[]){t->value} : t->args);
    const char *pos = write_position(w, v, t->subscript);
    const char *place = v->rank ? text(w, "%s[%s]", var_place(w, v), pos) : text(w, "*%s", var_place(w, v));
    if (t->value) put(w, "%s = %s;", place, write_expr(w, t->value));
    else {
        if (l.n == 0) open_brace(w, "%s", "");
        put(w, "%s", stream_text(p, v, pos));
        const char *list = "&g";
        for (int i = 0; i < t->nargs; i++) {
            list = text(w, "%s, %s", list, write_expr(w, t->args[i]));
            if (ex_rank(t->args[i]) == 1 && (i + 1 == t->nargs || ex_rank(t->args[i + 1]) == 0)) list = text(w, "%s, %s", list, write_extent(w, ex_dim(t->args[i], 0)));
        }
        if (t->n < v->rank) put(w, "%s(%s, &%s);", t->sample, list, place);
        else put(w, "%s = %s(%s);", place, t->sample, list);
        if (l.n == 0) close_brace(w);
    }
    close_loops(p, &l);
    if (braces) close_brace(w);
    w->moving = NULL;
    forget(w, m);
}

// A Gram matrix of a data matrix, sum(i, w[i]*X[i,j]*X[i,k]): one library call in place of three loops.
static bool emit_gram(Program *p, const Sum *s)
{
    Writer *w = &p->w;
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
    if (!A || !B || A->var != B->var || A->var->base != BASE_REAL || A->var->dim[0] != i->hi || A->var->dim[1] != j->hi || !ex_is_num(i->lo, 1)) return false;
    put(w, "gram_matrix(%s, %s, %.17g, %s, s.%s);", write_extent(w, i->hi), write_extent(w, j->hi), number, var_place(w, A->var), s->var->name);
    return true;
}

static void emit_sum(Program *p, const Sum *s)
{
    Writer *w = &p->w;
    const char *over = "";
    for (int i = 0; i < s->loops.n; i++) over = text(w, "%s%s%s", over, i ? ", " : " over ", s->loops.index[i]->name);
    const char *target = "";
    for (int k = 0; k < s->n; k++) target = text(w, "%s%s%s", target, k ? ", " : "[", math(p, s->target[k]));
    put(w, "// %s%s%s = sum of %s%s", s->var->name, target, s->n ? "]" : "", math(p, s->value), over);
    if (emit_gram(p, s)) return;
    const char *total = text(w, "total%d", ++w->temporaries);
    if (s->n) put(w, "for (long e = 0; e < %s; e++) s.%s[e] = 0;", count_of(p, s->var, s->n), s->var->name);
    else put(w, "real %s = 0;", total);
    int m = mark(w);
    bool braces = open_guard(p, &s->loops);
    open_loops(p, &s->loops, 1, (Expr *[]){s->value});
    add_to(p, s->n ? text(w, "s.%s[%s]", s->var->name, write_position(w, s->var, s->target)) : total, s->value);
    close_loops(p, &s->loops);
    if (braces) close_brace(w);
    forget(w, m);
    if (!s->n) put(w, "*s.%s = %s;", s->var->name, total);
}

static bool test_lets(const Var *v, void *with) { return v->kind == VAR_LET && !((bool *)with)[v->id]; }

static void emit_setup(Program *p)
{
    Writer *w = &p->w;
    Graph *g = p->g;
    bool *done = calloc((size_t)g->nvars + 1, sizeof *done);
    bool any = false;
    for (int i = 0; i < g->nvars; i++) any |= g->vars[i]->kind == VAR_LET;
    if (any) {
        put(w, "// Quantities that follow from the data alone, computed once.");
        begin_kernel(p, "KERNEL_ONCE", "definitions");
        for (bool progress = true; progress;) {
            progress = false;
            for (int i = 0; i < g->nvars; i++) {
                Var *v = g->vars[i];
                if (v->kind != VAR_LET || done[v->id]) continue;
                bool ready = true;
                done[v->id] = true;              // it may read itself
                for (const Site *t = v->sites; t; t = t->next) ready &= !ex_any_var(t->value, test_lets, done);
                if (!ready) { done[v->id] = false; continue; }
                put(w, "// %s, %s", v->name, line_of(p, v->span));
                for (const Site *t = v->sites; t; t = t->next) emit_site(p, v, t);
                progress = true;
            }
        }
        end_kernel(p);
    }
    put(w, "// Data must lie in the support of their distributions.");
    begin_kernel(p, "KERNEL_ONCE", "check_data");
    for (const Factor *f = g->factors; f; f = f->next) {
        if (f->original || !f->observed || !f->dist || (!f->least && !f->most) || f->value->kind != EX_REF || f->value->nargs < f->value->var->rank) continue;
        Loops l = {.guard = f->plates.guard};
        for (int i = 0; i < f->plates.n; i++) l.index[l.n++] = f->plates.index[i];
        Expr *values[3] = {f->value, f->least ? f->least : f->value, f->most ? f->most : f->value};
        int m = mark(w);
        bool braces = open_guard(p, &l);
        open_loops(p, &l, 3, values);
        const char *y = write_expr(w, f->value), *lo = f->least ? text(w, "%s < %s", y, write_factor(w, f->least)) : NULL;
        const char *hi = f->most ? text(w, "%s > %s", y, write_factor(w, f->most)) : NULL;
        put(w, "if (%s%s%s) FAULT(\"%s\", %s, \"the value lies outside the support of %s (%s)\");", lo ? lo : "", lo && hi ? " || " : "", hi ? hi : "",
            f->value->var->name, write_position(w, f->value->var, f->value->args), f->dist->name, line_of(p, f->span));
        close_loops(p, &l);
        if (braces) close_brace(w);
        forget(w, m);
    }
    end_kernel(p);
    for (int pass = 0; pass < 2; pass++) {
        put(w, pass == 0 ? "// Sums of data: computed once." : "// Sums that hold a response: computed once, or after each imputation if values are missing.");
        begin_kernel(p, "KERNEL_ONCE", pass == 0 ? "sums_of_data" : "sums_of_responses");
        for (const Sum *s = g->sums; s; s = s->next)
            if (reads_response(s) == (pass == 1)) emit_sum(p, s);
        end_kernel(p);
    }
    free(done);
}

// ---- the log joint, and quantities for the draws ----

static void emit_log_joint(Program *p)
{
    Writer *w = &p->w;
    put(w, "// The log joint density of data, variables and auxiliaries, up to a constant.");
    begin_kernel(p, "KERNEL_ONCE", "log_joint");
    put(w, "real lp = 0;");
    for (const Factor *f = p->g->factors; f; f = f->next) {
        if (f->replaced || !(ex_unknown(f->log_density) || ex_any_var(f->log_density, test_response, NULL))) continue;
        put(w, "// %s%s", f->dist ? f->dist->name : "target", f->rule ? text(w, ", by %s", f->rule->name) : "");
        Loops l = {.guard = f->plates.guard};
        for (int i = 0; i < f->plates.n; i++) l.index[l.n++] = f->plates.index[i];
        int m = mark(w);
        bool braces = open_guard(p, &l);
        open_loops(p, &l, 1, (Expr *[]){f->log_density});
        add_to(p, "lp", f->log_density);
        close_loops(p, &l);
        if (braces) close_brace(w);
        forget(w, m);
    }
    put(w, "GM->result = lp;");
    end_kernel(p);
}

static bool test_predicted(const Var *v, void *with) { return v->kind == VAR_PREDICTED && !((bool *)with)[v->id]; }

static void emit_derive(Program *p)
{
    Writer *w = &p->w;
    Graph *g = p->g;
    put(w, "// Quantities for the draws, computed after each kept sweep.");
    begin_kernel(p, "KERNEL_ONCE", "derived");
    bool *done = calloc((size_t)g->nvars + 1, sizeof *done);
    for (bool progress = true; progress;) {
        progress = false;
        for (int i = 0; i < g->nvars; i++) {
            Var *v = g->vars[i];
            if ((v->kind != VAR_DERIVED && v->kind != VAR_PREDICTED) || done[v->id]) continue;
            bool ready = true;
            done[v->id] = true;
            for (const Site *t = v->sites; t; t = t->next) {
                if (t->value) ready &= !ex_any_var(t->value, test_predicted, done);
                for (int k = 0; k < t->nargs; k++) ready &= !ex_any_var(t->args[k], test_predicted, done);
            }
            if (!ready) { done[v->id] = false; continue; }
            for (const Site *t = v->sites; t; t = t->next) emit_site(p, v, t);
            progress = true;
        }
    }
    end_kernel(p);
    free(done);
}

// ---- structs and tables ----

static bool in_state(const Var *v)
{
    switch (v->kind) {
    case VAR_DATA: return v->response;
    case VAR_LET: case VAR_PARAMETER: case VAR_LATENT: case VAR_AUXILIARY: case VAR_DERIVED: case VAR_PREDICTED: return true;
    case VAR_SUM: case VAR_PATTERN: case VAR_ELEMENT: break;
    }
    return false;
}

static const char *dims_text(Program *p, const Var *v)
{
    if (v->rank == 0) return "";
    const char *t = "";
    for (int k = 0; k < v->rank; k++) t = text(&p->w, "%s%s%s", t, k ? ", " : "[", math(p, v->dim[k]));
    return text(&p->w, "%s]", t);
}

static const char *constraint_name(Constraint c)
{
    switch (c) {
    case CONSTRAINT_NONE: return "GM_ANY";
    case CONSTRAINT_SIMPLEX: return "GM_SIMPLEX";
    case CONSTRAINT_ORDERED: return "GM_ORDERED";
    case CONSTRAINT_POSITIVE_ORDERED: return "GM_POSITIVE_ORDERED";
    case CONSTRAINT_UNIT_VECTOR: return "GM_UNIT_VECTOR";
    case CONSTRAINT_COVARIANCE: return "GM_COVARIANCE";
    case CONSTRAINT_CORRELATION: return "GM_CORRELATION";
    case CONSTRAINT_CHOLESKY_COV: return "GM_CHOLESKY_COV";
    case CONSTRAINT_CHOLESKY_CORR: return "GM_CHOLESKY_CORR";
    }
    return "GM_ANY";
}

static int state_fields(Program *p, Var **out)
{
    int n = 0;
    for (int i = 0; i < p->g->nvars; i++)
        if (in_state(p->g->vars[i])) out[n++] = p->g->vars[i];
    for (Sum *s = p->g->sums; s; s = s->next) out[n++] = s->var;
    for (int i = 0; i < p->nwork; i++) out[n++] = p->work[i];
    return n;
}

static void emit_structs(Program *p, FILE *out, Var **state, int nstate)
{
    Writer *w = &p->w;
    fprintf(out, "typedef struct Data {\n");
    for (int i = 0; i < p->g->nvars; i++) {
        const Var *v = p->g->vars[i];
        if (v->kind != VAR_DATA) continue;
        fprintf(out, "    %s %s%s;%s%s%s\n", v->base == BASE_INT ? "int" : "real", v->rank ? "*" : "", c_name(w, v->name), v->rank ? "      // " : "",
                v->rank ? v->name : "", v->rank ? dims_text(p, v) : "");
    }
    fprintf(out, "} Data;\n\ntypedef struct State {          // of one chain\n");
    for (int i = 0; i < nstate; i++) {
        const Var *v = state[i];
        const char *note = v->kind == VAR_AUXILIARY ? "auxiliary " : v->kind == VAR_SUM && v->sum ? "sums of data " : v->kind == VAR_SUM ? "work " : "";
        fprintf(out, "    %s *%s;      // %s%s%s\n", v->base == BASE_INT ? "int" : "real", c_name(w, v->name), note, v->name, dims_text(p, v));
    }
    fprintf(out, "} State;\n\n");
    fprintf(out, "enum {                           // streams of random numbers\n    VAR_NONE = 0,\n");
    for (int i = 0; i < nstate; i++)
        if (state[i]->kind != VAR_SUM && state[i]->kind != VAR_LET) fprintf(out, "    VAR_%s = %d,\n", state[i]->name, i + 1);
    fprintf(out, "};\n\n");
}

static const char *role_of(const Var *v)
{
    switch (v->kind) {
    case VAR_DATA: return v->response ? "GM_IMPUTED" : "GM_DATA";
    case VAR_PARAMETER: return "GM_PARAMETER";
    case VAR_LATENT: return "GM_LATENT";
    case VAR_AUXILIARY: return "GM_AUXILIARY";
    case VAR_DERIVED: return "GM_DERIVED";
    case VAR_PREDICTED: return "GM_PREDICTED";
    case VAR_LET: case VAR_SUM: case VAR_PATTERN: case VAR_ELEMENT: break;
    }
    return "GM_SUM";
}

static int field_of(Var **list, int n, const Var *v)
{
    for (int i = 0; i < n; i++)
        if (list[i] == v) return i;
    return -1;
}

static bool imputable(const Program *p, const Var *v)
{
    for (const Step *s = p->g->steps; s; s = s->next)
        if (s->imputes && s->block[0] == v) return true;
    return false;
}

static void emit_tables(Program *p, FILE *out, Var **state, int nstate)
{
    Writer *w = &p->w;
    Graph *g = p->g;
    int ndata = 0;
    FILE *keep = w->out;
    w->out = out;
    fprintf(out, "static const GmField data_fields[] = {\n");
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        if (v->kind != VAR_DATA) continue;
        ndata++;
        const char *bounds = "";
        if (v->lower) bounds = text(w, "<lower=%s%s", math(p, v->lower), v->upper ? "" : ">");
        if (v->upper) bounds = text(w, "%s%supper=%s>", bounds, v->lower ? ", " : "<", math(p, v->upper));
        const char *extents = "";
        for (int k = 0; k < v->rank; k++) {
            int scalar = 0, at = 0;
            for (int j = 0; j < g->nvars; j++) {
                if (g->vars[j]->kind != VAR_DATA) continue;
                at++;
                if (v->dim[k]->kind == EX_REF && v->dim[k]->var == g->vars[j] && g->vars[j]->rank == 0) scalar = at;
            }
            extents = text(w, "%s%s%d", extents, k ? ", " : "", scalar);
        }
        fprintf(out, "    {.name = \"%s\", .type = %s, .role = GM_DATA, .constraint = %s, .rank = %d, .offset = offsetof(Data, %s), .has_default = %d, .may_miss = %d, .imputed_field = %d, .where = \"%s\",\n     .declared = \"%s%s %s%s\", .extent_of = {%s}},\n",
                v->name, v->base == BASE_INT ? "GM_INT" : "GM_REAL", constraint_name(v->constraint), v->rank, c_name(w, v->name), v->init != NULL,
                v->response && imputable(p, v), v->response ? field_of(state, nstate, v) : -1, line_of(p, v->span),
                v->base == BASE_INT ? "int" : "real", bounds, v->name, dims_text(p, v), *extents ? extents : "0");
    }
    if (!ndata) fprintf(out, "    {0},\n");
    fprintf(out, "};\n\nstatic const GmField state_fields[] = {\n");
    for (int i = 0; i < nstate; i++) {
        const Var *v = state[i];
        int shared = v->kind == VAR_LET || (v->kind == VAR_SUM && v->sum && !reads_response(v->sum)) ? 1 : v->kind == VAR_SUM && v->sum ? 2 : 0;
        fprintf(out, "    {.name = \"%s\", .type = %s, .role = %s, .constraint = %s, .rank = %d, .offset = offsetof(State, %s), .imputed_field = -1, .shared = %d, .where = \"%s\"},\n",
                v->name, v->base == BASE_INT ? "GM_INT" : "GM_REAL", role_of(v), constraint_name(v->constraint), v->rank, c_name(w, v->name), shared,
                v->span.source ? line_of(p, v->span) : "");
    }
    if (!nstate) fprintf(out, "    {0},\n");
    fprintf(out, "};\n\n");
    // Shapes. Sizes read data only; a bound may read data too.
    for (int which = 0; which < 2; which++) {
        fprintf(out, "static void %s_shape(int field, const void *data, GmShape *shape)\n{\n    const Data d = *(const Data *)data;\n    (void)d;\n    shape->lower = -INFINITY;\n    shape->upper = INFINITY;\n    switch (field) {\n", which ? "state" : "data");
        int field = 0;
        int n = which ? nstate : g->nvars;
        for (int i = 0; i < n; i++) {
            Var *v = which ? state[i] : g->vars[i];
            if (!which && v->kind != VAR_DATA) continue;
            fprintf(out, "    case %d:        // %s\n", field++, v->name);
            w->indent = 2;
            w->nknown = w->nnamed = w->temporaries = w->nscratch = 0;
            open_brace(w, "%s", "");
            put(w, "shape->rank = %d;", v->rank);
            for (int k = 0; k < v->rank; k++) put(w, "shape->dim[%d] = %s;", k, write_extent(w, v->dim[k]));
            bool bounds_data = v->kind == VAR_DATA;
            if (bounds_data && v->lower) put(w, "shape->lower = %s;", write_expr(w, v->lower));
            else if (isfinite(v->lower_number)) put(w, "shape->lower = %.17g;", v->lower_number);
            else if (v->lower && !ex_unknown(v->lower) && v->discrete) put(w, "shape->lower = %s;", write_expr(w, v->lower));
            if (bounds_data && v->upper) put(w, "shape->upper = %s;", write_expr(w, v->upper));
            else if (isfinite(v->upper_number)) put(w, "shape->upper = %.17g;", v->upper_number);
            else if (v->upper && !ex_unknown(v->upper) && v->discrete) put(w, "shape->upper = %s;", write_expr(w, v->upper));
            put(w, "break;");
            close_brace(w);
        }
        w->indent = 0;
        fprintf(out, "    }\n}\n\n");
    }
    fprintf(out, "static double data_default(int field, const void *data)\n{\n    const Data d = *(const Data *)data;\n    (void)d;\n    switch (field) {\n");
    int field = 0;
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if (v->kind != VAR_DATA) continue;
        if (v->init) fprintf(out, "    case %d: return %s;\n", field, write_expr(w, v->init));
        field++;
    }
    fprintf(out, "    }\n    return 0;\n}\n\n");
    w->out = keep;
}

// ---- the program ----

static void emit_banner(Program *p, FILE *out, const char *source)
{
    const char *slash = strrchr(source, '/');
    fprintf(out, "// %s, compiled by gmc.\n//\n// One sweep draws, in this order:\n", slash ? slash + 1 : source);
    for (const Step *s = p->g->steps; s; s = s->next) {
        const char *names = "";
        for (int i = 0; i < s->nblock; i++) names = text(&p->w, "%s%s%s", names, i ? ", " : "", s->block[i]->name);
        const char *how = s->kind == STEP_GAUSSIAN ? "joint normal"
                        : s->kind == STEP_ENUM ? "all values weighed"
                        : s->kind == STEP_SLICE ? "slice sampled"
                        : text(&p->w, "%s%s", s->conditional->truncated ? "truncated " : "", s->conditional->family->name);
        fprintf(out, "//   %-28s %s%s%s\n", names, how, s->imputes ? " (missing values only)" : "", text(&p->w, "     %s", line_of(p, s->span)));
    }
    fprintf(out, "//\n// In kernels d is the data, s the state of one chain, at the place in the run that keys the random numbers.\n");
    fprintf(out, "// Subscripts count from 1 in comments, as in the model, and from 0 in the code.\n\n#include \"gm.h\"\n\n");
}

void emit_program(FILE *out, Graph *g, const char *source)
{
    Program *p = NEW(g->arena, Program);
    p->g = g;
    Writer *w = &p->w;
    w->g = g;
    w->arena = g->arena;
    size_t size;
    w->out = open_memstream(&p->kernels, &size);
    int n = 0;
    for (const Step *s = g->steps; s && n < 512; s = s->next, n++) {
        const char *names = "";
        for (int i = 0; i < s->nblock; i++) names = text(w, "%s%s%s", names, i ? ", " : "", s->block[i]->name);
        p->step_name[n] = text(w, "%s%s", s->imputes ? "missing " : "", names);
        switch (s->kind) {
        case STEP_EXACT:
            if (s->conditional->array) step_array(p, s, n);
            else step_exact(p, s, n);
            break;
        case STEP_GAUSSIAN: step_gaussian(p, s, n); break;
        case STEP_ENUM: case STEP_SLICE: {
            Constraint k = s->block[0]->constraint;
            if (k == CONSTRAINT_NONE || k == CONSTRAINT_ORDERED || k == CONSTRAINT_POSITIVE_ORDERED) step_density(p, s, n);
            else step_constrained(p, s, n);
            break;
        }
        }
    }
    p->nsteps = n;
    emit_derive(p);
    emit_log_joint(p);
    fclose(w->out);
    // Setup comes first in the file, but knows its sums only now.
    char *setup;
    w->out = open_memstream(&setup, &size);
    emit_setup(p);
    fclose(w->out);
    Var **state = NEW_N(g->arena, Var *, g->nvars + p->nwork + 1024);
    int nstate = state_fields(p, state);
    emit_banner(p, out, source);
    emit_structs(p, out, state, nstate);
    fputs("#include \"kernels.h\"\n\n", out);
    fputs(setup, out);
    fputs(p->kernels, out);
    bool lets = false;
    for (int i = 0; i < g->nvars; i++) lets |= g->vars[i]->kind == VAR_LET;
    fprintf(out, "// ---- the sweep ----\n\n");
    for (int i = 0; i < n; i++) {
        fprintf(out, "static void step_%d(GmRun *run)            // %s\n{\n%s}\n\n", i + 1, p->step_name[i], p->launches[i] ? p->launches[i] : "");
    }
    fprintf(out, "static void sweep(GmRun *run)\n{\n");
    bool imputing = false, responses = false;
    for (const Sum *s = g->sums; s; s = s->next) responses |= reads_response(s);
    int k = 0;
    for (const Step *s = g->steps; s && k < n; s = s->next, k++) {
        if (!s->imputes && imputing && responses) { fprintf(out, "    if (ANY_MISSING(run)) LAUNCH_ONCE(sums_of_responses, run);\n"); imputing = false; }
        imputing |= s->imputes;
        fprintf(out, "    step_%d(run);\n", k + 1);
    }
    fprintf(out, "}\n\nstatic void setup(GmRun *run)\n{\n%s    LAUNCH_SHARED(sums_of_data, run);\n    LAUNCH_SHARED_UNLESS_MISSING(sums_of_responses, run);\n}\n\n", lets ? "    LAUNCH_SHARED(definitions, run);\n    LAUNCH_SHARED(check_data, run);\n" : "    LAUNCH_SHARED(check_data, run);\n");
    fprintf(out, "static void derive(GmRun *run)\n{\n    LAUNCH_ONCE(derived, run);\n}\n\n");
    fprintf(out, "static void joint(GmRun *run)\n{\n    LAUNCH_ONCE(log_joint, run);\n}\n\n");
    fprintf(out, "// ---- what the runtime asks ----\n\n");
    emit_tables(p, out, state, nstate);
    fprintf(out, "static const char *const step_names[] = {");
    for (int i = 0; i < n; i++) fprintf(out, "\"%s\", ", p->step_name[i]);
    fprintf(out, "NULL};\n\nstatic void (*const steps[])(GmRun *) = {");
    for (int i = 0; i < n; i++) fprintf(out, "step_%d, ", i + 1);
    fprintf(out, "NULL};\n\n");
    int ndata = 0;
    for (int i = 0; i < g->nvars; i++) ndata += g->vars[i]->kind == VAR_DATA;
    const char *slash = strrchr(source, '/');
    fprintf(out, "GM_MODEL(\"%s\", \"%s\", %d, %d, %d)\n", g->model->name ? g->model->name : "model", slash ? slash + 1 : source, ndata, nstate, n);
    free(setup);
    free(p->kernels);
}

// The kernels alone: the comment above each, and its name.
void emit_kernels(FILE *out, Graph *g, const char *source)
{
    char *program;
    size_t size;
    FILE *f = open_memstream(&program, &size);
    emit_program(f, g, source);
    fclose(f);
    char *comment = program, *next;
    bool open = false;
    for (char *line = strstr(program, "#include \"kernels.h\""); line && *line; line = next) {
        next = strchr(line, '\n');
        if (!next) break;
        *next++ = 0;
        if (strncmp(line, "//", 2) == 0) {
            if (!open) comment = line;
            open = true;
        } else {
            if (strncmp(line, "KERNEL", 6) == 0) {
                for (char *c = comment; open && c < line; c += strlen(c) + 1) fprintf(out, "%s\n", c);
                char *brace = strrchr(line, '{');
                if (brace) *brace = 0;
                fprintf(out, "%s\n\n", line);
            }
            open = false;
        }
    }
    free(program);
}
