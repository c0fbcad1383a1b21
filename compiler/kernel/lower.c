// lower.c -- the schedule as kernels and launches.
//
// Needs: the schedule.     Gives: a Program. Which sums leave the sweep (graph/plan/hoist.c) is decided here; who shares which loop, and what is computed
// outside of loops, by the passes over its kernels.
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "lower.h"

// ---- text for readers ----

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

const char *line_of(Lower *p, Span s)
{
    return span_place(p->g->arena, s);
}

const char *loops_over(Lower *p, const Loops *l)
{
    const char *over = "";
    for (int i = 0; i < l->n; i++) over = words(p, "%s%s%s", over, i ? ", " : "  over ", l->index[i]->name);
    return over;
}

void note(Lower *p, const char *format, ...)
{
    char *s;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&s, format, ap) < 0) abort();
    va_end(ap);
    p->comment = words(p, "%s// %s\n", p->comment ? p->comment : "", s);
    free(s);
}

enum { WIDTH = 150, MOST_LINES = 12 };           // of the comment above a kernel; --explain prints all of it

const char *cut_line(Lower *p, const char *line)
{
    return strlen(line) <= WIDTH ? line : words(p, "%.*s...", WIDTH - 3, line);
}

void comment_step(Lower *p, const Step *s)
{
    const Description *d = s->description;
    const Conditional *c = s->conditional;
    const bool density = s->kind == STEP_ENUM || s->kind == STEP_SLICE || s->kind == STEP_METROPOLIS || s->kind == STEP_ELLIPTICAL || s->kind == STEP_NUTS;
    const char *because = density && !s->imputes ? d->because : s->kind == STEP_GAUSSIAN ? s->reason : NULL;
    const char *more = s->imputes ? "     if values are missing" : c && c->var->rank && (c->array || c->nbatch == c->var->rank) ? "     in parallel" : "";
    if (s->over_sum) because = because ? words(p, "%s; unknowns are summed out", because) : "unknowns are summed out";
    if (s->collapsed && !s->imputes && !(s->competition && s->kind == STEP_NUTS)) because = because ? words(p, "%s; auxiliaries are integrated out", because) : "auxiliaries are integrated out";
    note(p, "%s | rest%s%s%s%s%s     %s", d->what, *d->is == ':' ? "" : " ", d->is, because ? density ? ", because " : "     " : "", because ? because : "", more, line_of(p, s->span));
    const char *row = "";                        // short parameters stand on one line
    for (int i = 0; i < d->n && !density && s->kind != STEP_GAUSSIAN; i++) row = words(p, "%s%s%s", row, i ? ", " : "", d->line[i]);
    if (*row && strlen(row) <= WIDTH) note(p, "  %s", row);
    for (int i = 0; i < d->n && (!*row || strlen(row) > WIDTH); i++) {
        if (i == MOST_LINES - 1 && d->n > MOST_LINES) {
            note(p, "  and %d lines more: gmc --explain", d->n - i);
            break;
        }
        note(p, "  %s", cut_line(p, d->line[i]));
    }
}

// ---- kernels ----

static Var *with_size(Lower *p, Var *v, int rank, Expr *const *dim)
{
    v->rank = rank;
    for (int k = 0; k < rank; k++) v->dim[k] = dim[k];
    Program *out = p->out;
    ROOM(p->g->arena, out->work, out->nwork, out->work_size);
    out->work[out->nwork++] = v;
    return v;
}

Var *work_array(Lower *p, ArrayRole role, const char *name, int rank, Expr *const *dim)
{
    return with_size(p, place_array(p->out, fresh_var(&p->names, name, VAR_SUM), role), rank, dim);
}

Var *copy_array(Lower *p, const Var *of, const char *name)
{
    return with_size(p, place_copy(p->out, fresh_var(&p->names, name, VAR_SUM), of), of->rank, of->dim);
}

const char *number_of(const Lower *p, const Var *v) { return is_real(p->out, v) ? "real" : "wide"; }

Loops loops_of(const Plates *plates)
{
    Loops l = {.guard = plates->guard};
    for (int i = 0; i < plates->n; i++) l.index[l.n++] = plates->index[i];
    return l;
}

// No function of the program or of the runtime has it. What is called by its name, as compute_x, has the same from function_name.
const char *kernel_name(Lower *p, const char *name)
{
    const char *c = intern(function_name(p->g->arena, name)), *first = c;
    for (int k = 2; map_get(&p->kernel_names, c); k++) c = intern(words(p, "%s_%d", first, k));
    map_put(p->g->arena, &p->kernel_names, c, (void *)c);
    return c;
}

Kernel *open_kernel(Lower *p, KernelKind kind, const char *name, const char *number)
{
    Kernel *k = NEW(p->g->arena, Kernel);
    k->kind = kind;
    k->name = kernel_name(p, name);
    k->number = number;
    k->step = p->step;
    k->comment = p->comment ? p->comment : "";
    p->comment = NULL;
    p->open = k;
    p->at = &k->body;
    return k;
}

// A kernel that does nothing is left out.
bool close_kernel(Lower *p)
{
    Kernel *k = p->open;
    bool any = false;
    drop_spare(&k->body);
    for (const Node *n = k->body; n; n = n->next) any |= n->kind != NODE_COMMENT;
    p->open = NULL;
    p->at = NULL;
    if (!any) return false;
    if (!p->list->first) p->list->last = &p->list->first;
    *p->list->last = k;
    p->list->last = &k->next;
    return true;
}

Node *put(Lower *p, NodeKind kind)
{
    Node *n = node_new(p->g->arena, kind);
    *p->at = n;
    p->at = &n->next;
    return n;
}

Node *enter(Lower *p, NodeKind kind)
{
    Node *n = put(p, kind);
    p->at = &n->body;
    return n;
}

void leave(Lower *p, Node *n) { p->at = &n->next; }

Node *put_let(Lower *p, Expr *key, Var *local, Expr *value, const char *type)
{
    Node *n = put(p, NODE_LET);
    n->let.key = key;
    n->let.local = local;
    n->let.value = value;
    n->let.type = type;
    return n;
}

// Where e is not 0 because of a choice that multiplies it; NULL: nothing is said. What a choice leaves out need not have an element to be added to.
Expr *chosen_where(Expr *e)
{
    if (e->kind == EX_POW && e->number > 0) return chosen_where(e->args[0]);
    if (e->kind == EX_CALL && e->fn == FN_if_else) {
        if (ex_is_num(e->args[1], 0)) return ex_call1("!", e->args[0]);
        return ex_is_num(e->args[2], 0) ? e->args[0] : NULL;
    }
    Expr *all = NULL;
    for (int i = 0; i < e->nargs && e->kind == EX_MUL; i++) {
        Expr *one = chosen_where(e->args[i]);
        if (one) all = all ? ex_call2("&&", all, one) : one;
    }
    return all;
}

Loops loops_where_chosen(const Loops *l, Expr *value, int n, Expr *const *target)
{
    Loops out = *l;
    bool leaves = false;
    for (int k = 0; k < n; k++) leaves |= target[k]->kind != EX_INDEX;       // a place that data name
    Expr *where = leaves ? chosen_where(value) : NULL;
    if (where) out.guard = out.guard ? ex_call2("&&", out.guard, where) : where;
    return out;
}

Place place_local(Var *v) { return (Place){.local = v}; }
Place place_element(Expr *ref) { return (Place){.element = ref}; }

Node *put_update(Lower *p, UpdateOp op, Place at, Expr *value)
{
    Node *n = put(p, NODE_UPDATE);
    n->update.op = op;
    n->update.place = at;
    for (int k = 0; k < at.n; k++)               // the subscripts may be in an array that goes away
        if (at.sub[k].n) n->update.place.sub[k].at = arena_copy(p->g->arena, at.sub[k].at, sizeof *at.sub[k].at * (size_t)at.sub[k].n);
    n->update.value = value;
    return n;
}

Node *enter_nest(Lower *p, NodeKind kind, const Loops *l, int n, Expr *const *target, Expr *const *extent)
{
    Node *nest = enter(p, kind);
    nest->nest.loops = *l;
    nest->nest.n = n;
    nest->nest.target = target;
    nest->nest.extent = extent;
    nest->nest.op = UPDATE_ADD;
    return nest;
}

Node *put_fill(Lower *p, Var *array, Count count, bool waits)
{
    Node *n = put(p, NODE_FILL);
    n->fill.array = array;
    n->fill.count = count;
    n->fill.waits = waits;
    return n;
}

// ---- launches ----

Launch *launch(Lower *p, LaunchKind kind, const Kernel *k)
{
    Launch *l = NEW(p->g->arena, Launch);
    l->kind = kind;
    l->kernel = k;
    l->when = p->when;
    l->rows = p->when == ALWAYS ? NULL : p->when_rows;
    l->stands_in = p->stands_in;
    if (!p->launches->first) p->launches->last = &p->launches->first;
    *p->launches->last = l;
    p->launches->last = &l->next;
    return l;
}

static LaunchArg *argument(Launch *l, ArgKind kind)
{
    if (l->nargs == MOST_LAUNCH_ARGS) abort();           // no launch has as many
    l->arg[l->nargs].kind = kind;
    return &l->arg[l->nargs++];
}

void launch_team(Lower *p, const Kernel *k) { argument(launch(p, LAUNCH_TEAM, k), ARG_WORK); }
void with_extent(Launch *l, Expr *e) { argument(l, ARG_EXTENT)->extent = e; }
void with_count(Launch *l, Count c) { argument(l, ARG_COUNT)->count = c; }
void with_place(Launch *l, const Var *v) { argument(l, ARG_PLACE)->var = v; }
void with_name(Launch *l, const Var *v) { argument(l, ARG_NAME)->var = v; }
void with_stream(Launch *l, const Var *v) { argument(l, ARG_STREAM)->var = v; }
void with_string(Launch *l, const char *s) { argument(l, ARG_STRING)->string = s; }
void with_function(Launch *l, const char *name) { argument(l, ARG_FUNCTION)->string = name; }
void with_number(Launch *l, double v) { argument(l, ARG_NUMBER)->number = v; }
void with_product(Launch *l, const Product *r) { argument(l, ARG_PRODUCT)->product = r; }
void as_setting(Launch *l, const char *name) { l->arg[l->nargs - 1].setting = name; }

// ---- the program ----

static void lower_step(Lower *p, const Step *s, StepCode *code)
{
    if (s->orbit) before_orbit(p, s);
    Launch **own = p->launches->first ? p->launches->last : &p->launches->first;
    switch (s->kind) {
    case STEP_EXACT:
        if (s->conditional->array) step_array(p, s);
        else step_exact(p, s);
        break;
    case STEP_OWN: step_own(p, s); break;
    case STEP_PAIR: step_pair(p, s); break;
    case STEP_GAUSSIAN:
        step_gaussian(p, s);
        if (s->gaussian.scales) lower_scales(p, s, code, own);
        break;
    case STEP_ELLIPTICAL: step_elliptical(p, s); break;
    case STEP_NUTS: step_nuts(p, s, code); break;
    case STEP_TURNS: step_turns(p, s); break;
    case STEP_ENUM: case STEP_SLICE: case STEP_METROPOLIS: {
        if (s->white) {
            step_white(p, s);
            break;
        }
        const Constraint k = s->block[0]->constraint;
        if (s->at_once) step_states(p, s);
        else if (k == CONSTRAINT_NONE || k == CONSTRAINT_ORDERED || k == CONSTRAINT_POSITIVE_ORDERED) step_density(p, s);
        else step_constrained(p, s);
        break;
    }
    }
    if (s->orbit) along_orbit(p, s);
    if (s->proposal) lower_proposal(p, s, code);
}

void launch_messages(Lower *p, const Var *m)
{
    Launch *l = launch(p, m->series->chains ? LAUNCH_EACH : LAUNCH_ONCE, p->messages[m->id]);
    if (m->series->chains) with_extent(l, m->dim[0]);
}

static bool site_reads(const Var *m, const Var *v)
{
    for (const Site *t = m->sites; t; t = t->next)
        if (ex_mentions(t->value, v)) return true;
    return false;
}

// Messages along a chain are made before each step that reads them: not all that they are made of is drawn by steps that read them.
static void put_messages(Lower *p, const Step *s)
{
    const Reading of = factors_of_block((Graph *)p->g, s->block, s->nblock);
    const int sums = s->kind == STEP_NUTS ? s->nuts.sums : block_sums(s->block, s->nblock);
    for (int i = 0; p->messages && i < p->g->nvars; i++) {
        const Var *m = p->g->vars[i];
        if (m->kind != VAR_SERIES || !m->hidden) continue;
        bool reads = s->conditional && s->by_messages && s->block[0]->messages == m;
        for (int q = 0; q < of.n && s->over_sum && !reads; q++) reads = of.factor[q]->made && factor_counts_at(of.factor[q], sums, true) && ex_mentions(of.factor[q]->log_density, m);
        if (!reads) continue;
        for (const Series *made = p->g->series; made != m->series; made = made->next)          // arrays that they are made of
            if (made->var[0]->hidden && site_reads(m, made->var[0])) launch_messages(p, made->var[0]);
        launch_messages(p, m);
    }
}

// Before which steps sums and copies of responses are made again.
static void note_again(Program *out)
{
    bool imputing = false;
    for (int i = 0; i < out->nsteps; i++) {
        const bool imputes = out->steps[i].step->imputes;
        out->steps[i].again = !imputes && imputing;
        imputing = imputes || (imputing && !out->steps[i].again);
    }
}

static void lower_steps(Lower *p)
{
    Program *out = p->out;
    for (const Step *s = p->g->steps; s; s = s->next) out->nsteps++;
    out->steps = NEW_N(p->g->arena, StepCode, out->nsteps + 1);
    bool responses = false;
    int n = 0;
    for (const Step *s = p->g->steps; s; s = s->next, n++) {
        const char *names = "";
        for (int i = 0; i < s->nblock; i++) names = words(p, "%s%s%s", names, i ? ", " : "", s->block[i]->name);
        for (int i = 0; s->kind == STEP_GAUSSIAN && s->gaussian.scales && i < s->gaussian.scales->n; i++) names = words(p, "%s%s%s", names, i ? ", " : ", after ", s->gaussian.scales->var[i]->name);
        for (int i = 0; s->orbit && i < s->orbit->n; i++) names = words(p, "%s%s%s", i ? names : "", i ? ", " : "orbit of ", s->orbit->moved[i].var->name);
        if (s->proposal) names = words(p, "proposal of %s", names);
        if (s->white) names = words(p, "%s, with %s", names, s->white->vector->name);
        StepCode *code = &out->steps[n];
        code->step = s;
        code->name = words(p, "%s%s", s->imputes ? "missing " : "", names);
        p->step = p->statistics.serving = s;
        p->launches = &code->launches;
        put_messages(p, s);
        lower_step(p, s, code);
        if (s->conditional && s->conditional->closed && !s->conditional->recursion) launch(p, LAUNCH_ONCE, p->series);      // other steps read the series that this one did not
    }
    p->step = p->statistics.serving = NULL;
    for (const Sum *s = p->statistics.first; s; s = s->next) responses |= s->data_only && reads_response(s);
    if (responses) note_again(out);
}

// Rows of so many columns are read by kernels that are compiled for them.
void reads_rows(Lower *p, const Expr *columns)
{
    Program *out = p->out;
    out->row_widths |= out->row_width && out->row_width != columns;
    out->row_width = columns;
}

// What row passes read: the bytes of the last one of a draw, and the columns, if they are the same for all.
static void row_sizes(Lower *p)
{
    Program *out = p->out;
    for (const Step *s = p->g->steps; s; s = s->next) {
        RowDot dot = {0};
        if (turns_dot(p->out, s, &dot)) reads_rows(p, dot.matrix->dim[1]);
        if (s->kind != STEP_EXACT || !row_dot(p, s, &dot)) continue;
        for (int k = 0; k < 2; k++) out->row_bytes[k] = dot.matrix->dim[k];
        reads_rows(p, dot.matrix->dim[1]);
    }
    for (int k = 0; k < p->npredictors; k++) {
        if (p->predictor[k]->pass) reads_rows(p, p->predictor[k]->of.matrix->dim[1]);
    }
}

void each_kernel(Lower *p, void (*pass)(Lower *, Kernel *))
{
    for (Kernel *k = p->out->setup.first; k; k = k->next) pass(p, k);
    for (Kernel *k = p->out->sweep.first; k; k = k->next) pass(p, k);
}

// ---- the passes ----

Lower *lower_new(const Graph *g)
{
    Lower *p = NEW(g->arena, Lower);
    p->out = NEW(g->arena, Program);
    p->out->g = p->g = g;
    p->names = (Fresh){.g = g, .nvars = g->nvars};
    p->statistics = (Sums){.g = g, .names = &p->names, .first = g->sums};
    place_variables(p->out);
    list_rows(p);
    ex_settle();
    return p;
}

const Program *lowered(const Lower *p) { return p->out; }

void lower(Lower *p)
{
    Program *out = p->out;
    plan_rows(p);
    plan_logs(p);
    p->list = &out->sweep;
    lower_series(p);
    lower_steps(p);
    lower_keyed(p);
    lower_observed(p);
    lower_derive(p);
    lower_log_joint(p);
    p->list = &out->setup;
    lower_setup(p);                              // it comes first in the program, but knows its sums only now
    out->sums = p->statistics.first;
    place_sums(out, out->sums);
}

void share(Lower *p)
{
    each_kernel(p, share_loops);
    Kernel *last = p->out->setup.first;
    while (last && last->next) last = last->next;
    lower_orders(p);
    if (lower_sorted(p)) note_again(p->out);
    for (Kernel *k = last ? last->next : p->out->setup.first; k; k = k->next) share_loops(p, k);
}

void outside(Lower *p) { each_kernel(p, name_outside); }

void predictors(Lower *p)
{
    Program *out = p->out;
    lower_predictors(p);
    for (int i = 0; i < out->nsteps; i++) {
        refresh_predictors(p, &out->steps[i].density);
        refresh_predictors(p, &out->steps[i].launches);
    }
    refresh_predictors(p, &out->log_lik);
    refresh_predictors(p, &out->replicates);
    refresh_predictors(p, &out->derive);
    refresh_predictors(p, &out->joint);
    row_sizes(p);
}

void placement(Lower *p) { place_routes(p->out); }
