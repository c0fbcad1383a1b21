// elements.c -- what updates that draw element by element have in common: how elements are shared out, the loops over them, where they are
// stored.
#include "lower.h"

// Whether elements are drawn one colour at a time, in parallel within each: a chain of neighbours, by k modulo colours; or a lattice.
static bool coloured(const Update *s) { return !s->imputes && colours_of(s->conditional) > 1; }

// Whether one of the parts is a sum for each element (a scattered one is made for all of them before).
bool any_loops(const Part *q)
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

Node *series_again(const Graph *g, const Conditional *c)
{
    Node *first = NULL, **last = &first;
    for (const Series *s = g->series; s && c->recursion; s = s->next) {
        if (s->var[0]->kind != VAR_SERIES || s->apart || !series_reads(s, c->var)) continue;
        Node *n = *last = node_new(g->arena, NODE_COMPUTE);
        n->compute.series = s;
        n->compute.chain = c->chain;
        last = &n->next;
    }
    return first;
}

KeptLogs kept_logs(const Conditional *c)
{
    return (KeptLogs){c->var->lowered.kept_log ? ex_call1("log", c->u) : NULL, c->var->lowered.kept_log1m ? ex_call1("log1m", c->u) : NULL};
}

// Elements whose conditionals have sums are drawn by crews. In one piece are drawn: missing values that depend on each other; values to
// choose from that are weighed without a sum; and what needs whole matrices, which every lane of a team would compute.
Shared shared_how(const Update *s, const RowDot *dot)
{
    const Conditional *c = s->conditional;
    const bool arrays = any_array(c->natural) || any_array(c->bounds) || any_array(c->density);
    if (s->imputes && s->kind != UPDATE_SLICE && c->var->rank && c->nbatch == c->var->rank && !c->recursion && !c->whole && !arrays)
        return BY_MISSING;
    if (s->imputes || c->recursion || (predictive_of(s) && c->nbatch == 0))
        return predictive_of(s) && s->enumerate.group ? BY_GROUPS : BY_ONE;
    if (dot && dot->sum) return BY_ROW;
    if (by_data_colours(s) && !arrays) return BY_CLASSES;
    if (coloured(s) || c->nbatch) {
        const bool sums = s->kind == UPDATE_EXACT ? any_loops(c->natural)
                                                  : (s->kind == UPDATE_SLICE || s->kind == UPDATE_METROPOLIS) && any_loops(c->density);
        const bool plain = arrays || c->whole || (c->nbatch && c->nbatch < c->var->rank);
        return sums && !plain ? BY_CREW : BY_ELEMENT;
    }
    if (s->kind == UPDATE_ENUM && !any_loops(c->density)) return BY_ONE;
    return arrays ? BY_ONE : BY_TEAM;
}

// Categories of the sums for one element.
static Count iterations_of_element(const Update *s)
{
    Count all = {0};
    bool any = false;
    for (const Part *q = s->kind == UPDATE_EXACT ? s->conditional->natural : s->conditional->density; q; q = q->next) {
        if (q->scatter || q->loops.n == 0) continue;
        const Count iterations = iterations_of_loops(&q->loops);
        if (!any || iterations.n > 0) all = iterations;  // the last: sums of one element mostly are of one length
        any = true;
    }
    return all;
}

// The vector whose elements a team draws one after the other, if it keeps the linear predictors up to date that they enter.
const Var *followed(const Conditional *c, Shared how)
{
    return how == BY_TEAM && c->var->rank == 1 && !c->whole && !c->var->discrete && var_unknown(c->var) && c->var->base == BASE_REAL
               ? c->var
               : NULL;
}

Kernel *open_elements_kernel(Lower *p, Shared how, const Update *s, const char *name)
{
    static const KernelKind kind[] = {
        [BY_ELEMENT] = KERNEL_ELEMENTS, [BY_MISSING] = KERNEL_ELEMENTS, [BY_ROW] = KERNEL_ROW,     [BY_CREW] = KERNEL_TEAM,
        [BY_TEAM] = KERNEL_TEAM,        [BY_CLASSES] = KERNEL_TEAM,     [BY_GROUPS] = KERNEL_TEAM, [BY_ONE] = KERNEL_ONCE};
    const Conditional *c = s->conditional;
    Kernel *k = open_kernel(p, kind[how], name, number_of(p, c->var));
    if (how == BY_ROW) k->row = c->element[0];
    return k;
}

// Loops over the elements that an update draws, missing ones or all, around what is put next. Returns the outermost, or NULL.
Node *enter_opened(Lower *p, Opened *o, Sharing how, const Var *of)
{
    Node *n = enter(p, NODE_LOOP);
    n->loop.how = how;
    n->loop.of = of;
    o->loop[o->n++] = n;
    return n;
}

// Pairs of elements that meet, and room for their colours, which setup finds (lower_orders): elements on a line of plates, or a rectangle
// of them.
static const Classes *classes_of(Lower *p, const Conditional *c)
{
    Classes *k = NEW(p->g->arena, Classes);
    Expr *more = ex_add2(c->var->dim[0], ex_num(1));
    const char *name = c->var->name;
    *k = (Classes){.of = c->var, .conflicts = c->conflicts, .pairs = ex_num(0)};
    for (const Conflict *q = c->conflicts; q; q = q->next) k->pairs = ex_add2(k->pairs, instances(&q->factor->plates));
    k->one = work_array(p, ROLE_ORDER, words(p, "one_%s", name), 1, &k->pairs);
    k->other = work_array(p, ROLE_ORDER, words(p, "other_%s", name), 1, &k->pairs);
    k->first = work_array(p, ROLE_ORDER, words(p, "class_%s", name), 1, &more);
    k->elements = work_array(p, ROLE_ORDER, words(p, "elements_%s", name), 1, c->var->dim);
    ROOM(p->g->arena, p->classes, p->nclasses, p->classes_size);
    p->classes[p->nclasses++] = k;
    return k;
}

Opened enter_elements(Lower *p, const Update *s, Shared how)
{
    const Conditional *c = s->conditional;
    const Var *v = c->var;
    const bool crew = how == BY_CREW;
    Opened o = {0};
    if (how == BY_ROW) return o;
    if (how == BY_CLASSES) {
        Node *n = enter_opened(p, &o, SHARE_CLASSES, v);
        n->loop.index[n->loop.n++] = c->element[0];
        n->loop.classes = classes_of(p, c);
        note_count(p, p->open, count_dims(v, 0, 1));
        return o;
    }
    if (how == BY_GROUPS) {  // groups of elements at once, those of one group one after the other
        Node *groups = enter_opened(p, &o, SHARE_ALONG, NULL), *rows = enter_opened(p, &o, SHARE_SERIAL, NULL);
        Index *group = index_new(intern("group"), ex_num(1), s->enumerate.ngroups);
        groups->loop.index[groups->loop.n++] = group;
        rows->loop.order = order_rows(p, c->element[0], s->enumerate.group, NULL, s->enumerate.ngroups);
        rows->loop.index[rows->loop.n++] = c->element[0];
        rows->loop.index[1] = group;
        note_count(p, p->open, count_dims(v, 0, 1));
        return o;
    }
    if (coloured(s)) {
        Node *n = enter_opened(p, &o, crew ? SHARE_COLOUR_CREW : SHARE_COLOUR, v);
        for (int k = 0; k < v->rank; k++) n->loop.index[n->loop.n++] = c->element[k];
        n->loop.colours = colours_of(c);
        n->loop.stride = c->stride;
        if (crew) n->loop.iterations = iterations_of_element(s);
        return o;
    }
    if (s->imputes) {
        Node *n = enter_opened(p, &o, how == BY_MISSING ? SHARE_MISSING : SHARE_IN_TURN, v);
        for (int k = 0; k < v->rank; k++) n->loop.index[n->loop.n++] = c->element[k];
        return o;
    }
    if (c->nbatch > 0) {
        Node *n = enter_opened(p, &o, crew ? SHARE_CREW : SHARE_EACH, v);
        for (int k = 0; k < c->nbatch; k++) n->loop.index[n->loop.n++] = c->element[k];
        if (crew) n->loop.iterations = iterations_of_element(s);
    }
    for (int k = c->nbatch; k < v->rank - (s->kind == UPDATE_ELLIPTICAL); k++) {  // an ellipse takes the last dimension whole
        Node *n = enter_opened(p, &o, SHARE_SERIAL, v);
        n->loop.index[n->loop.n++] = c->element[k];
        n->loop.field = k;  // which dimension
    }
    return o;
}

void leave_elements(Lower *p, Opened *o)
{
    if (o->test) leave(p, o->test);
    while (o->n > 0) leave(p, o->loop[--o->n]);
}

// The condition under which any of its elements exist, where that is the same for all; else NULL.
Expr *exists_whole(const Var *v)
{
    for (int k = 0; k < v->rank && v->exists; k++)
        if (ex_mentions_index(v->exists, v->own[k])) return NULL;
    return v->exists;
}

// The rest is for elements that exist; a scalar, too, may have its only statement under a condition.
void put_exists(Lower *p, Opened *o, Shared how, Expr *condition)
{
    if (o->n || how == BY_ROW) put_skip(p, condition);
    else if (condition) {
        o->test = enter(p, NODE_IF);
        o->test->test.condition = condition;
    }
}

// Those of a lattice end in rows of their last subscript, of which each colour has a part, rounded up.
static Count count_elements(const Update *s)
{
    const Conditional *c = s->conditional;
    Count n = count_dims(c->var, 0, coloured(s) ? c->var->rank : c->nbatch);
    if (coloured(s) && c->lattice > 1) n.factor[n.n - 1] = ex_add2(n.factor[n.n - 1], ex_num(c->lattice - 1));
    return n;
}

void launch_elements(Lower *p, const Update *s, Shared how, const RowDot *dot, const Kernel *k)
{
    const Var *v = s->conditional->var;
    Launch *l;
    switch (how) {
    case BY_ELEMENT:
        l = launch(p, coloured(s) ? LAUNCH_COLOURS : LAUNCH_EACH, k);
        with_count(l, count_elements(s));
        if (coloured(s)) with_number(l, colours_of(s->conditional));
        break;
    case BY_MISSING: with_field(launch(p, LAUNCH_MISSING, k), v); break;
    case BY_ROW: {
        const RowSum *r = fused_sum(p, s);
        l = launch(p, r && r->square ? LAUNCH_ROWS_AND : r ? LAUNCH_ROWS : LAUNCH_ROWS_ONLY, k);
        with_extent(l, dot->matrix->dim[0]);
        with_extent(l, dot->matrix->dim[1]);
        with_place(l, dot->matrix);
        with_name(l, dot->vector);
        if (r) with_name(l, r->out);
        if (r && r->square) with_name(l, r->scale);
        break;
    }
    case BY_CREW: {
        Count work = count_elements(s);
        const Count iterations = iterations_of_element(s);
        for (int i = 0; i < iterations.n && work.n < 8; i++) work.factor[work.n++] = iterations.factor[i];
        l = launch(p, coloured(s) ? LAUNCH_COLOURS_TEAM : LAUNCH_TEAM, k);
        with_count(l, work);
        if (coloured(s)) with_number(l, colours_of(s->conditional));
        break;
    }
    case BY_TEAM:
    case BY_CLASSES:
    case BY_GROUPS: launch_team(p, k); break;
    case BY_ONE: launch(p, LAUNCH_ONCE, k); break;
    }
}

// An element of the update is x: by one lane of a team.
Store store_of(Shared how, const Conditional *c)
{
    return how == BY_CREW ? STORE_ELEMENT : how != BY_TEAM ? STORE_PLAIN : c->var->rank > 0 ? STORE_WITHIN : STORE_LAST;
}

Node *put_store_at(Lower *p, Shared how, const Conditional *c, Expr *element, Var *x)
{
    Node *n = put_assign(p, ASSIGN_SET, place_element(element), local_ref(x));
    n->assign.how = store_of(how, c);
    return n;
}

Node *put_store(Lower *p, Shared how, const Conditional *c, Var *x) { return put_store_at(p, how, c, c->current, x); }

// Sums over the loops of a part, into locals.
Node *enter_part(Lower *p, const Loops *l)
{
    Node *n = enter_nest(p, NODE_REDUCE, l, 0, NULL, NULL);
    n->nest.op = ASSIGN_ADD;
    return n;
}

// A natural parameter's part as an expression of the element: its sum leaves the sweep if it can.
Expr *hoisted_part(Lower *p, const Conditional *c, const Part *q)
{
    Keys keys = {0};
    Loops loops = {.guard = q->loops.guard};
    if (q->scatter) {
        for (int k = 0; k < c->var->rank; k++) {
            if (keys.n == 4) return NULL;
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
    return hoist_sum(&p->statistics, &keys, &loops, q->value);
}

// The last first, so that numbers of their names are free again.
static void forget_sums(Lower *p, const Sum *s)
{
    if (!s) return;
    forget_sums(p, s->next);
    fresh_forget(p->statistics.names, s->var);
}

// What the sum would become outside the sweep, also where no statistics are made for it; NULL: it stays.
Expr *would_become(Lower *p, const Conditional *c, const Part *q)
{
    Sum **last = &p->statistics.first;
    while (*last) last = &(*last)->next;
    const bool only_closed = p->statistics.only_closed;
    p->statistics.only_closed = false;
    Expr *without = hoisted_part(p, c, q);
    p->statistics.only_closed = only_closed;
    forget_sums(p, *last);
    *last = NULL;
    return without;
}

bool leaves_sweep(Lower *p, const Conditional *c, const Part *q) { return would_become(p, c, q) != NULL; }
