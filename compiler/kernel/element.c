// element.c -- steps that draw a variable element by element: exact draws, enumeration, slice sampling, Metropolis steps.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "lower.h"

// ---- what the steps have in common ----

// Whether elements are drawn one colour at a time, in parallel within each: a chain of neighbours, by k modulo colours; or a lattice.
static bool coloured(const Step *s) { return !s->imputes && colours_of(s->conditional) > 1; }

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
Shared shared_how(const Step *s, const RowDot *dot)
{
    const Conditional *c = s->conditional;
    const bool arrays = any_array(c->natural) || any_array(c->bounds) || any_array(c->density);
    if (s->imputes && s->kind != STEP_SLICE && c->var->rank && c->nbatch == c->var->rank && !c->recursion && !c->whole && !arrays) return BY_MISSING;
    if (s->imputes || c->recursion || (s->predictive && c->nbatch == 0)) return s->shelf ? BY_SHELVES : BY_ONE;
    if (dot && dot->sum) return BY_ROW;
    if (by_data_colours(s) && !arrays) return BY_CLASSES;
    if (coloured(s) || c->nbatch) {
        const bool sums = s->kind == STEP_EXACT ? any_loops(c->natural) : (s->kind == STEP_SLICE || s->kind == STEP_METROPOLIS) && any_loops(c->density);
        const bool plain = arrays || c->whole || (c->nbatch && c->nbatch < c->var->rank);
        return sums && !plain ? BY_CREW : BY_ELEMENT;
    }
    if (s->kind == STEP_ENUM && !any_loops(c->density)) return BY_ONE;
    return arrays ? BY_ONE : BY_TEAM;
}

int missing_field(const Lower *p, const Var *v)
{
    int field = 0;
    for (int i = 0; i < p->g->nvars && p->g->vars[i] != v; i++) field += p->g->vars[i]->kind == VAR_DATA;
    return field;
}

// Turns of the sums for one element.
static Count turns_of_element(const Step *s)
{
    Count all = {0};
    bool any = false;
    for (const Part *q = s->kind == STEP_EXACT ? s->conditional->natural : s->conditional->density; q; q = q->next) {
        if (q->scatter || q->loops.n == 0) continue;
        const Count turns = turns_of_loops(&q->loops);
        if (!any || turns.n > 0) all = turns;    // the last: sums of one element mostly are of one length
        any = true;
    }
    return all;
}

// The vector whose elements a team draws one after the other, if it keeps the linear predictors up to date that they enter.
static const Var *followed(const Conditional *c, Shared how)
{
    return how == BY_TEAM && c->var->rank == 1 && !c->whole && !c->var->discrete && var_unknown(c->var) && c->var->base == BASE_REAL ? c->var : NULL;
}

Kernel *open_elements_kernel(Lower *p, Shared how, const Step *s, const char *name)
{
    static const KernelKind kind[] = {[BY_ELEMENT] = KERNEL_ELEMENTS, [BY_MISSING] = KERNEL_ELEMENTS, [BY_ROW] = KERNEL_ROW, [BY_CREW] = KERNEL_TEAM, [BY_TEAM] = KERNEL_TEAM, [BY_CLASSES] = KERNEL_TEAM, [BY_SHELVES] = KERNEL_TEAM, [BY_ONE] = KERNEL_ONCE};
    const Conditional *c = s->conditional;
    Kernel *k = open_kernel(p, kind[how], name, number_of(p, c->var));
    if (how == BY_ROW) k->row = c->element[0];
    return k;
}

// Loops over the elements that a step draws, missing ones or all, around what is put next. Returns the outermost, or NULL.
static Node *enter_loop(Lower *p, Opened *o, Sharing how, const Var *of)
{
    Node *n = enter(p, NODE_LOOP);
    n->loop.how = how;
    n->loop.of = of;
    o->loop[o->n++] = n;
    return n;
}

// Pairs of elements that meet, and room for their colours, which setup finds (lower_orders): elements on a line of plates, or a rectangle of them.
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

Expr *instances(const Plates *p)
{
    Expr *n = ex_num(1);
    for (int i = 0; i < p->n; i++) n = ex_mul2(n, p->index[i]->hi);
    return n;
}

Opened enter_elements(Lower *p, const Step *s, Shared how)
{
    const Conditional *c = s->conditional;
    const Var *v = c->var;
    const bool crew = how == BY_CREW;
    Opened o = {0};
    if (how == BY_ROW) return o;
    if (how == BY_CLASSES) {
        Node *n = enter_loop(p, &o, SHARE_CLASSES, v);
        n->loop.index[n->loop.n++] = c->element[0];
        n->loop.classes = classes_of(p, c);
        note_count(p, p->open, count_dims(v, 0, 1));
        return o;
    }
    if (how == BY_SHELVES) {                     // groups of elements at once, those of one in turn
        Node *groups = enter_loop(p, &o, SHARE_ALONG, NULL), *rows = enter_loop(p, &o, SHARE_SERIAL, NULL);
        Index *group = index_new(intern("group"), ex_num(1), s->shelves);
        groups->loop.index[groups->loop.n++] = group;
        rows->loop.order = order_rows(p, c->element[0], s->shelf, NULL, s->shelves);
        rows->loop.index[rows->loop.n++] = c->element[0];
        rows->loop.index[1] = group;
        note_count(p, p->open, count_dims(v, 0, 1));
        return o;
    }
    if (coloured(s)) {
        Node *n = enter_loop(p, &o, crew ? SHARE_COLOUR_CREW : SHARE_COLOUR, v);
        for (int k = 0; k < v->rank; k++) n->loop.index[n->loop.n++] = c->element[k];
        n->loop.colours = colours_of(c);
        n->loop.stride = c->stride;
        if (crew) n->loop.turns = turns_of_element(s);
        return o;
    }
    if (s->imputes) {
        Node *n = enter_loop(p, &o, how == BY_MISSING ? SHARE_MISSING : SHARE_IN_TURN, v);
        for (int k = 0; k < v->rank; k++) n->loop.index[n->loop.n++] = c->element[k];
        n->loop.field = missing_field(p, v);
        return o;
    }
    if (c->nbatch > 0) {
        Node *n = enter_loop(p, &o, crew ? SHARE_CREW : SHARE_EACH, v);
        for (int k = 0; k < c->nbatch; k++) n->loop.index[n->loop.n++] = c->element[k];
        if (crew) n->loop.turns = turns_of_element(s);
    }
    for (int k = c->nbatch; k < v->rank - (s->kind == STEP_ELLIPTICAL); k++) {       // an ellipse takes the last dimension whole
        Node *n = enter_loop(p, &o, SHARE_SERIAL, v);
        n->loop.index[n->loop.n++] = c->element[k];
        n->loop.field = k;                       // which dimension
    }
    return o;
}

void leave_elements(Lower *p, Opened *o)
{
    if (o->test) leave(p, o->test);
    while (o->n > 0) leave(p, o->loop[--o->n]);
}

void put_skip(Lower *p, Expr *condition)
{
    if (condition) put(p, NODE_SKIP)->skip.condition = condition;
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
static Count count_elements(const Step *s)
{
    const Conditional *c = s->conditional;
    Count n = count_dims(c->var, 0, coloured(s) ? c->var->rank : c->nbatch);
    if (coloured(s) && c->lattice > 1) n.factor[n.n - 1] = ex_add2(n.factor[n.n - 1], ex_num(c->lattice - 1));
    return n;
}

void launch_elements(Lower *p, const Step *s, Shared how, const RowDot *dot, const Kernel *k)
{
    const Var *v = s->conditional->var;
    Launch *l;
    switch (how) {
    case BY_ELEMENT:
        l = launch(p, coloured(s) ? LAUNCH_COLOURS : LAUNCH_EACH, k);
        with_count(l, count_elements(s));
        if (coloured(s)) with_number(l, colours_of(s->conditional));
        break;
    case BY_MISSING: with_number(launch(p, LAUNCH_MISSING, k), missing_field(p, v)); break;
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
        const Count turns = turns_of_element(s);
        for (int i = 0; i < turns.n && work.n < 8; i++) work.factor[work.n++] = turns.factor[i];
        l = launch(p, coloured(s) ? LAUNCH_COLOURS_TEAM : LAUNCH_TEAM, k);
        with_count(l, work);
        if (coloured(s)) with_number(l, colours_of(s->conditional));
        break;
    }
    case BY_TEAM: case BY_CLASSES: case BY_SHELVES: launch_team(p, k); break;
    case BY_ONE: launch(p, LAUNCH_ONCE, k); break;
    }
}

// An element of the step is x: by one lane of a team.
static Store store_of(Shared how, const Conditional *c) { return how == BY_CREW ? STORE_ELEMENT : how != BY_TEAM ? STORE_PLAIN : c->var->rank > 0 ? STORE_WITHIN : STORE_LAST; }

static void put_store_at(Lower *p, Shared how, const Conditional *c, Expr *element, Var *x)
{
    put_update(p, UPDATE_SET, place_element(element), local_ref(x))->update.how = store_of(how, c);
}

void put_store(Lower *p, Shared how, const Conditional *c, Var *x) { put_store_at(p, how, c, c->current, x); }

// Sums over the loops of a part, into locals.
Node *enter_part(Lower *p, const Loops *l)
{
    Node *n = enter_nest(p, NODE_REDUCE, l, 0, NULL, NULL);
    n->nest.op = UPDATE_ADD;
    return n;
}

// ---- exact steps ----

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

static void put_bounds(Lower *p, const Conditional *c, Var *const *bound)
{
    const double ends[2] = {c->var->lower_number, c->var->upper_number};
    const Part *alone[2] = {NULL, NULL};         // a bound that stands for itself
    for (int side = 0; side < 2; side++) {
        int n = 0;
        for (const Part *b = c->bounds; b; b = b->next)
            if (b->which == side) { n++; alone[side] = b; }
        if (n != 1 || isfinite(ends[side]) || alone[side]->scatter || alone[side]->loops.n || alone[side]->loops.guard) alone[side] = NULL;
        Node *let = put_let(p, NULL, bound[side], alone[side] ? alone[side]->value : ex_num(ends[side]), p->open->number);
        let->let.grows = n > 0 && !alone[side];
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
        Node *n = enter_part(p, &l);
        n->nest.op = b->which ? UPDATE_MIN : UPDATE_MAX;
        put_update(p, n->nest.op, place_local(bound[b->which]), b->value);
        leave(p, n);
    }
}

static void put_claim(Lower *p, const Conditional *c, Var *const *natural)
{
    Node *n = put(p, NODE_CLAIM);
    n->claim.c = c;
    if (c->nnatural == 0) return;
    for (const Natural *nat = c->family->natural; nat; nat = nat->next) {
        n->claim.natural[n->claim.n] = natural[n->claim.n];
        n->claim.statistic[n->claim.n] = c->statistic[n->claim.n];
        n->claim.n++;
    }
}

static void put_draw(Lower *p, const Step *s, Shared how, Var *const *natural)
{
    const Conditional *c = s->conditional;
    DrawArg *args = NEW_N(p->g->arena, DrawArg, 16);
    Var *drawn = NULL;
    int n = 0, k = 0;
    for (const Natural *nat = c->family->natural; nat; nat = nat->next, k++) args[n++] = (DrawArg){.name = nat->name, .value = local_ref(natural[k])};
    if (c->family->power) args[n++] = (DrawArg){.name = c->family->power, .number = c->power};
    for (int i = 0; i < c->nbase && c->family->base->kid[i]->kind == AST_NAME; i++) args[n++] = (DrawArg){.name = c->family->base->kid[i]->name, .value = c->base_args[i]};
    if (c->truncated) {
        Var *bound[2] = {local_new(p->g->arena, "lower"), local_new(p->g->arena, "upper")};
        put_bounds(p, c, bound);
        for (int side = 0; side < 2; side++) args[n++] = (DrawArg){.name = bound[side]->name, .value = local_ref(bound[side])};
    }
    for (int i = 0; i < (s->expects ? s->nexpected : 1); i++) {
        Var *x = local_new(p->g->arena, i ? intern(words(p, "x%d", i + 1)) : "x");
        Node *d = put(p, NODE_DRAW);
        d->draw.var = c->var;
        d->draw.element = c->current;
        d->draw.x = x;
        d->draw.type = p->open->number;
        d->draw.call = s->expects ? (c->truncated ? c->family->expectations_truncated : c->family->expectations) : c->truncated ? c->family->draw_truncated : c->family->draw;
        d->draw.expects = s->expects;
        d->draw.of = s->expects ? "" : p->g->by_em ? "_mode" : NULL;
        d->draw.which = s->which[i];
        d->draw.nargs = n;
        d->draw.arg = args;
        d->draw.check = i ? DRAW_UNCHECKED : DRAW_FINITE;
        if (s->expects) put_store_at(p, how, c, ex_ref(s->expected[i], c->current->nargs, c->current->args), x);
        else drawn = x;
    }
    if (s->expects) return;
    if (s->marginal) put(p, NODE_CLAIM);
    else put_claim(p, c, natural);
    put_store(p, how, c, drawn);
    if (c->var->kept_log) put_logs(p, c->current, local_ref(local_new(p->g->arena, "g.log_value")), local_ref(local_new(p->g->arena, "g.log_rest")), store_of(how, c));
}

typedef struct Routed { const Part *part; Expr *hoisted; const Rows *rows; struct Routed *next; } Routed;

// Whether e reads a statistic with two subscripts, as X'X.
static bool test_square(const Var *v, void *with) { (void)with; return v->kind == VAR_SUM && v->sum && v->sum->n >= 2; }
static bool reads_square(const Expr *e) { return ex_any_var(e, test_square, NULL); }

static void put_routed(Lower *p, const Routed *r, Var *natural)
{
    Node *test = enter(p, NODE_IF);
    test->test.few = r->rows;
    Node *sum = enter_part(p, &r->part->loops);
    put_update(p, UPDATE_ADD, place_local(natural), r->part->value);
    leave(p, sum);
    p->at = &test->test.otherwise;
    put_update(p, UPDATE_ADD, place_local(natural), r->hoisted);
    leave(p, test);
}

static bool same_loops(const Part *a, const Part *b) { return a->factor == b->factor && memcmp(&a->loops, &b->loops, sizeof(Loops)) == 0; }

typedef struct PartList { int n, size; const Part **part; bool *done; } PartList;

static void add_part(Lower *p, PartList *l, const Part *q)
{
    if (l->n == l->size) {
        l->size = 2 * l->size + 8;
        const Part **more = NEW_N(p->g->arena, const Part *, l->size);
        if (l->n) memcpy(more, l->part, sizeof *more * (size_t)l->n);
        l->part = more;
    }
    l->part[l->n++] = q;
}

// Sums for the natural parameters of all elements, over the same rows, before they are drawn.
static void lower_scattered(Lower *p, const Conditional *c, const PartList *l, Var *const *array, const char *name)
{
    const Var *v = c->var;
    Kernel *k = open_kernel(p, KERNEL_TEAM, name, "wide");
    for (int i = 0; i < MAX_NATURAL; i++)
        if (array[i]) put_fill(p, array[i], count_dims(v, 0, v->rank), true);
    bool *done = NEW_N(p->g->arena, bool, l->n);
    for (int i = 0; i < l->n; i++) {
        if (done[i]) continue;
        const Part *first = l->part[i];
        const Loops loops = loops_where_chosen(&first->loops, first->value, v->rank, first->target);
        Node *n = enter_nest(p, NODE_REDUCE, &loops, v->rank, first->target, v->dim);
        for (int j = i; j < l->n; j++) {
            const Part *q = l->part[j];
            if (done[j] || q->factor != first->factor || memcmp(q->target, first->target, sizeof q->target) != 0) continue;
            if (q->loops.n != first->loops.n || memcmp(q->loops.index, first->loops.index, sizeof q->loops.index) != 0) continue;
            if (loops_where_chosen(&q->loops, q->value, v->rank, q->target).guard != loops.guard) continue;
            done[j] = true;
            put_update(p, UPDATE_ADD, place_element(ex_ref(array[q->which], v->rank, q->target)), q->value);
        }
        leave(p, n);
    }
    if (close_kernel(p)) launch_team(p, k);
}

// An end that is an integer variable and a number, at the last (first) value that the variable has; NULL: not known.
static Expr *farthest(Expr *e, bool last)
{
    Expr *ref = e->kind == EX_ADD && e->nargs == 2 && e->args[0]->kind == EX_NUM ? e->args[1] : e;
    Expr *value = ref->kind == EX_REF ? end_of_summed(ref->var, last) : NULL;
    return value ? ex_replace(e, ref, value) : NULL;
}

// A sum over the rows that reach the element, l <= last[i], or begin at it or before, first[i] <= l, of what is the same for all elements: totals by the last (first) element, added up from the element on (up to it).
// K elements and N rows take N + K*K additions in place of N*K. q as a part that is scattered; NULL: it is none of these.
typedef enum { ALONE, BEGINS, REACHES } Reach;           // a row counts for the element that it names; from it on; up to it

static Part *cumulated(Lower *p, const Conditional *c, const Part *q, Reach *reach)
{
    const Var *v = c->var;
    bool from = true, only = false;
    if (q->scatter || q->loops.n == 0 || v->rank != 1 || !q->loops.guard || ex_mentions_index(q->value, c->element[0])) return NULL;
    Expr *key = ex_index(c->element[0]), *end = NULL, *others = NULL, *todo[16] = {q->loops.guard};
    for (int i = 0; i < q->loops.n; i++)
        if (ex_mentions_index(q->loops.index[i]->lo, c->element[0]) || ex_mentions_index(q->loops.index[i]->hi, c->element[0])) return NULL;
    for (int n = 1; n > 0;) {                    // conditions that hold together
        Expr *e = todo[--n];
        if (e->kind == EX_CALL && e->fn == FN_AND && n + 2 <= 16) { todo[n++] = e->args[1]; todo[n++] = e->args[0]; continue; }
        if (!ex_mentions_index(e, c->element[0])) { others = others ? ex_call2("&&", others, e) : e; continue; }
        if (end || e->kind != EX_CALL || (e->fn != FN_LE && e->fn != FN_EQ)) return NULL;
        only = e->fn == FN_EQ;
        const bool reaches = ex_mentions_index(e->args[0], c->element[0]);
        Expr *rest = ex_sub(e->args[!reaches ? 1 : 0], key);
        if (ex_mentions_index(rest, c->element[0]) || ex_mentions_index(e->args[reaches ? 1 : 0], c->element[0])) return NULL;
        end = ex_sub(e->args[reaches ? 1 : 0], rest);
        from = reaches;
    }
    Part *r = arena_copy(p->g->arena, q, sizeof *q);
    r->scatter = true;
    *reach = !end ? REACHES : only ? ALONE : from ? REACHES : BEGINS;
    if (!end) {                                  // all elements
        r->target[0] = v->dim[0];
        return r;
    }
    if (only) {
        r->loops.guard = ex_both(others, ex_call2("&&", ex_call2("<=", ex_num(1), end), ex_call2("<=", end, v->dim[0])));
        r->target[0] = end;
        return r;
    }
    Expr *exists = from ? ex_call2("<=", ex_num(1), end) : ex_call2("<=", end, v->dim[0]);
    r->loops.guard = ex_both(others, exists);
    Expr *most = farthest(end, from);
    Expr *room = most ? from ? ex_sub(v->dim[0], most) : ex_sub(most, ex_num(1)) : NULL;
    const bool inside = room && room->kind == EX_NUM && room->number >= 0;
    r->target[0] = inside ? end : from ? ex_call2("fmin", end, v->dim[0]) : ex_call2("fmax", end, ex_num(1));
    return r;
}

typedef struct Cumulated { PartList parts; Var *array[MAX_NATURAL]; } Cumulated;     // of one direction

// The step with these sums taken out of it: what is left may need no sum for each element.
static const Step *take_cumulated(Lower *p, const Step *s, Cumulated *before, Cumulated *beyond)
{
    Conditional *c = s->conditional, *less = NULL;
    Part *kept = NULL, **last = &kept;
    for (Part *q = c->natural; q; q = q->next) {
        Reach reach = ALONE;
        const Rows *rows = q->scatter ? NULL : rows_of_factor(p, q->factor);
        Part *r = s->imputes || rows || ex_mentions(q->value, c->var) || c->nbatch < c->var->rank || !q->loops.guard || !ex_unknown(q->loops.guard) ? NULL : cumulated(p, c, q, &reach);
        if (!r || reach == ALONE) {
            *last = arena_copy(p->g->arena, r ? r : q, sizeof *q);
            (*last)->next = NULL;
            last = &(*last)->next;
            if (r) less = c;
            continue;
        }
        const bool from = reach == REACHES;
        Cumulated *to = from ? beyond : before;
        const Natural *n = c->family->natural;
        for (int k = 0; k < q->which; k++) n = n->next;
        if (!to->array[q->which]) to->array[q->which] = work_array(p, ROLE_TOTALS, words(p, "%s_%s_%s", c->var->name, n->name, from ? "to" : "from"), 1, c->var->dim);
        add_part(p, &to->parts, r);
        less = c;
    }
    if (!less) return s;
    less = arena_copy(p->g->arena, c, sizeof *c);
    less->natural = kept;
    Step *out = arena_copy(p->g->arena, s, sizeof *s);
    out->conditional = less;
    return out;
}

void step_exact(Lower *p, const Step *s)
{
    Cumulated before = {0}, beyond = {0};        // of rows that begin at an element or before, and that reach it
    s = take_cumulated(p, s, &before, &beyond);
    Conditional *c = s->conditional;
    Var *v = c->var;
    // Parts that stay sums over rows: scattered into work arrays before the draws.
    Var *array[MAX_NATURAL] = {0};
    Expr *closed[MAX_NATURAL], **sum[MAX_NATURAL];
    int nparts = 0, nclosed[MAX_NATURAL] = {0};
    for (const Part *q = c->natural; q; q = q->next) nparts++;
    for (int k = 0; k < MAX_NATURAL; k++) sum[k] = NEW_N(p->g->arena, Expr *, nparts + 1);
    PartList inlined = {0}, scattered = {0};
    Routed *routed = NULL, **last_routed = &routed;      // sums that are made from statistics or row by row, as rows are many or few
    for (Part *q = c->natural; q; q = q->next) {
        const Rows *rows = q->scatter ? NULL : rows_of_factor(p, q->factor);
        p->statistics.route = rows;
        Expr *h = s->imputes || ex_mentions(q->value, v) ? NULL : hoisted_part(p, c, q);
        p->statistics.route = NULL;
        if (h && rows && reads_square(h)) {
            *last_routed = NEW(p->g->arena, Routed);
            **last_routed = (Routed){q, h, rows, NULL};
            last_routed = &(*last_routed)->next;
            continue;
        }
        if (h && rows) h = hoisted_part(p, c, q);        // the statistics are needed by either route
        if (h) { sum[q->which][nclosed[q->which]++] = h; continue; }
        if (q->scatter) {
            if (!array[q->which]) {
                const Natural *n = c->family->natural;
                for (int k = 0; k < q->which; k++) n = n->next;
                array[q->which] = work_array(p, ROLE_TOTALS, words(p, "%s_%s", v->name, n->name), v->rank, v->dim);
            }
            add_part(p, &scattered, q);
        } else if (q->loops.n == 0 && !q->loops.guard) sum[q->which][nclosed[q->which]++] = q->value;
        else add_part(p, &inlined, q);
    }
    for (int k = 0; k < MAX_NATURAL; k++) closed[k] = ex_add(nclosed[k], sum[k]);
    if (scattered.n) {
        note(p, "Sums over rows for each element of %s, before they are drawn", v->name);
        lower_scattered(p, c, &scattered, array, words(p, "sums_%s", v->name));
    }
    for (int side = 0; side < 2; side++) {
        Cumulated *of = side ? &beyond : &before;
        if (!of->parts.n) continue;
        note(p, side ? "Sums over the rows whose last element of %s it is" : "Sums over the rows whose first element of %s it is", v->name);
        lower_scattered(p, c, &of->parts, of->array, words(p, side ? "sums_%s_to" : "sums_%s_from", v->name));
    }
    comment_step(p, s);
    RowDot dot = {0};
    row_dot(p, s, &dot);
    const Shared how = shared_how(s, &dot);
    Kernel *kernel = open_elements_kernel(p, how, s, words(p, "%s_%s", s->imputes ? "impute" : "draw", v->name));
    kernel->followed = followed(c, how);
    if (how == BY_ROW) {
        Node *know = put(p, NODE_KNOW);
        know->let.key = dot.sum;
        know->let.local = local_new(p->g->arena, "dot");
    }
    Opened opened = enter_elements(p, s, how);
    if (opened.n) {                              // what no element changes
        opened.loop[0]->loop.keeps = true;
        if (s->imputes || c->nbatch < v->rank) opened.loop[0]->loop.moving = v;
    }
    put_exists(p, &opened, how, exists_at(v, c->element));
    Var *natural[MAX_NATURAL];
    int k = 0;
    for (const Natural *n = c->family->natural; n; n = n->next, k++) {
        Expr *e = closed[k];
        if (array[k]) e = ex_add2(e, ex_ref(array[k], v->rank, c->current->args));
        for (int side = 0; side < 2; side++) {
            Var *totals = (side ? &beyond : &before)->array[k];
            if (!totals) continue;
            Expr *key = ex_index(c->element[0]);
            Index *m = index_new(intern("m"), ex_num(1), v->dim[0]);
            Expr *at = ex_index(m), *counts = side ? ex_call2("<=", key, at) : ex_call2("<=", at, key);
            e = ex_add2(e, ex_reduce("sum", m, m->lo, m->hi, ex_call3("if_else", counts, ex_ref(totals, 1, &at), ex_num(0))));
        }
        bool more = false;
        for (int i = 0; i < inlined.n; i++) more |= inlined.part[i]->which == k;
        for (const Routed *r = routed; r; r = r->next) more |= r->part->which == k;
        natural[k] = local_named(p->g->arena, words(p, "%s_%s", n->name, v->name));
        put_let(p, NULL, natural[k], e, more ? "wide" : kernel->number)->let.grows = more;
    }
    bool *done = NEW_N(p->g->arena, bool, inlined.n + 1);
    for (int i = 0; i < inlined.n; i++) {        // parts with the same loops share them
        if (done[i]) continue;
        Node *sum = enter_part(p, &inlined.part[i]->loops);
        for (int j = i; j < inlined.n; j++) {
            if (done[j] || !same_loops(inlined.part[j], inlined.part[i])) continue;
            done[j] = true;
            put_update(p, UPDATE_ADD, place_local(natural[inlined.part[j]->which]), inlined.part[j]->value);
        }
        leave(p, sum);
    }
    for (const Routed *r = routed; r; r = r->next) put_routed(p, r, natural[r->part->which]);
    put_draw(p, s, how, natural);
    if (how == BY_ROW) {
        const RowSum *r = fused_sum(p, s);
        Node *back = put(p, NODE_RETURN);
        back->row.weight = r ? ex_replace_index(r->weight, r->row, ex_index(c->element[0])) : ex_num(0);
        back->row.square = r && r->square ? ex_replace_index(r->square, r->row, ex_index(c->element[0])) : NULL;
    }
    leave_elements(p, &opened);
    close_kernel(p);
    launch_elements(p, s, how, &dot, kernel);
}

// ---- draws from the element's own distribution ----

void step_own(Lower *p, const Step *s)
{
    const Conditional *c = s->conditional;
    const Part *own = c->own;
    const Factor *f = own->factor;
    comment_step(p, s);
    const Shared how = shared_how(s, NULL);
    Kernel *kernel = open_elements_kernel(p, how, s, words(p, "%s_%s", s->imputes ? "impute" : "draw", c->var->name));
    Opened opened = enter_elements(p, s, how);
    put_exists(p, &opened, how, own->loops.guard);
    Var *x = local_new(p->g->arena, "x");
    Node *d = put(p, NODE_DRAW);
    d->draw.var = c->var;
    d->draw.element = c->current;
    d->draw.x = x;
    d->draw.type = f->dist->discrete ? "wide" : kernel->number;
    d->draw.routine = own->value->name;
    d->draw.nargs = own->value->nargs;
    d->draw.arg = NEW_N(p->g->arena, DrawArg, own->value->nargs + 1);
    for (int i = 0; i < own->value->nargs; i++) d->draw.arg[i].value = own->value->args[i];
    d->draw.check = f->dist->discrete ? DRAW_COUNT : DRAW_FINITE;
    put(p, NODE_CLAIM);
    put_store(p, how, c, x);
    leave_elements(p, &opened);
    close_kernel(p);
    launch_elements(p, s, how, NULL, kernel);
}

// ---- enumeration, slice sampling, Metropolis steps ----

static bool reads_tried(const Expr *e, const Conditional *c) { return ex_reads(e, c->var) || (c->carried && ex_reads(e, c->carried)); }

// The terms of a sum that trials change.
static Expr *relevant(Expr *e, const Conditional *c)
{
    if (!reads_tried(e, c)) return ex_num(0);
    if (e->kind == EX_ADD) {
        Expr *keep = ex_num(0);
        for (int i = 0; i < e->nargs; i++) keep = ex_add2(keep, relevant(e->args[i], c));
        return keep;
    }
    if (e->kind == EX_REDUCE && e->fn == FN_sum && !reads_tried(e->args[0], c) && !reads_tried(e->args[1], c)) {
        Index *j = index_new(e->index->name, e->args[0], e->args[1]);
        return ex_reduce("sum", j, j->lo, j->hi, relevant(ex_open(e, j), c));
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

static bool is_end(const Expr *e) { return e->kind == EX_CALL && e->fn == FN_WITHIN; }

static Look choice_of(const Expr *e, void *u) { return e->kind == EX_CALL && e->fn == FN_if_else && ex_mentions(e, u) ? FOUND : LOOK; }
static Look end_of(const Expr *e, void *with) { (void)with; return is_end(e) ? FOUND : LOOK; }
static bool holds_end(const Expr *e) { return ex_find(e, end_of, NULL); }
static bool holds_choice(const Expr *e, const Var *u) { return ex_find(e, choice_of, (void *)u); }

// The terms of a part that stay whole: with a choice that cannot be made before values are tried, since a branch that is not taken may be undefined; and
// with a coefficient that may be infinite, since z*log(p) + (1 - z)*log1m(p) at p = 1 has values for z = 0 and 1, but not as log1m(p) + z*(log(p) - log1m(p)).
static Expr *undivided(Lower *p, const Conditional *c, const Part *q)
{
    Expr *e = q->value, *all = ex_num(0);
    const bool decides = c->var->discrete && ends_decide_all(e);
    for (int i = 0; i < (e->kind == EX_ADD ? e->nargs : 1); i++) {
        Expr *t = e->kind == EX_ADD ? e->args[i] : e;
        const bool choice = holds_choice(t, c->u->var);
        if (!choice && !decides && !(c->var->discrete && ex_mentions(t, c->u->var) && ex_has_pole(t))) continue;
        Statistics s = statistics(p->g->arena, t, c->u);
        bool whole = false;
        for (int k = 0; k < s.n && decides; k++)
            if (is_common(q, c, s.item[k].statistic) && may_fail(s.item[k].statistic)) return e;         // it is looked at together with the ends
        for (int k = 0; k < s.n; k++)
            whole |= (choice && !is_common(q, c, s.item[k].statistic)) || (c->var->discrete && ex_has_pole(s.item[k].coefficient));
        if (whole) all = ex_add2(all, t);
    }
    return all;
}

// The log density of the element as a function of x: what does not hold u is left out, unless all is wanted; sums whose terms are a statistic of u
// times something free of u are made once, before the values are tried. walks: some of all values are tried; tried: by all lanes of a team, so that what no trial changes of a row is an array.
typedef struct Piece {
    Loops  loops;                // those that are summed for each value
    Expr  *value;                // or, of what was summed once, the statistic that it multiplies
    Var   *once;
    Expr  *near, *far;           // of what was summed once, where that holds, or NULL; and what is summed for each value elsewhere
    bool   guarded;              // counted 0 times (no rows, choices, conditions) it is 0, even where it is no number: log(x) for x <= 0
    struct Piece *next;
} Piece;

static Piece *add_piece(Lower *p, Piece ***last, Piece q)
{
    **last = arena_copy(p->g->arena, &q, sizeof q);
    *last = &(**last)->next;
    return **last;
}

// exp(f(u) + r), f the same in every turn and r free of u: exp(f(u) - f(u0)) times the sum of exp(f(u0) + r), u0 where the chain stands, so that trials make no sum. Far from u0, where one of the two may be beyond what a number holds, the sum is
// made as it is written.
static bool add_exponentials(Lower *p, const Conditional *c, const Part *q, const Statistic *s, Var *total, Piece ***last)
{
    const Expr *e = s->statistic;
    if (e->kind != EX_CALL || e->fn != FN_exp || e->args[0]->kind != EX_ADD) return false;
    const Expr *sum = e->args[0];
    Expr *of_u = ex_num(0), *rest = ex_num(0);
    for (int i = 0; i < sum->nargs; i++) {
        Expr **side = ex_mentions(sum->args[i], c->u->var) ? &of_u : &rest;
        *side = ex_add2(*side, sum->args[i]);
    }
    if (!is_common(q, c, of_u)) return false;
    Expr *there = ex_replace(of_u, c->u, c->current), *far = ex_sub(of_u, there), *all = local_ref(total);
    put_let(p, NULL, total, ex_num(0), "wide")->let.grows = true;
    Node *n = enter_part(p, &q->loops);
    put_update(p, UPDATE_ADD, place_local(total), ex_mul2(s->coefficient, ex_call1("exp", ex_add2(there, rest))));
    leave(p, n);
    add_piece(p, last, (Piece){.loops = q->loops, .value = ex_call1("exp", far), .once = total,
                               .near = ex_call2("&&", ex_call2("<", ex_pow(far, 2), ex_num(1e5)), ex_call2("<", ex_pow(all, 2), ex_num(1e300))), .far = ex_mul2(s->coefficient, s->statistic)});
    return true;
}

static Piece *prepare_density(Lower *p, const Conditional *c, bool all, bool walks, bool tried)
{
    Piece *once = NULL, **last_once = &once, *each = NULL, **last = &each;
    int sums = 0;
    for (const Part *q = c->density; q; q = q->next) {
        if (c->whole) {
            Expr *e = relevant(q->value, c);
            add_piece(p, &last, (Piece){.loops = q->loops, .value = tried ? without_rest(p, c, &q->loops, e) : e});
            continue;
        }
        if (q->loops.n == 0 && !q->loops.guard) {
            Expr *e = q->value, *keep = ex_num(0);
            for (int i = 0; i < (e->kind == EX_ADD ? e->nargs : 1); i++) {
                Expr *t = e->kind == EX_ADD ? e->args[i] : e;
                if (all || ex_mentions(t, c->u->var)) keep = ex_add2(keep, t);
            }
            add_piece(p, &last, (Piece){.value = keep});
            continue;
        }
        Expr *rest = undivided(p, c, q);
        Statistics s = statistics(p->g->arena, ex_sub(q->value, rest), c->u);
        for (int i = 0; i < s.n; i++) {
            Expr *stat = s.item[i].statistic;
            Var *total = local_new(p->g->arena, intern(words(p, "a%d", sums + 1)));
            const bool common = is_common(q, c, stat);
            const bool made = common || (walks && add_exponentials(p, c, q, &s.item[i], total, &last_once));
            sums += made;
            if (!made) rest = ex_add2(rest, ex_mul2(s.item[i].coefficient, stat));
            if (!common) continue;
            put_let(p, NULL, total, ex_num(0), "wide")->let.grows = true;
            Node *n = enter_part(p, &q->loops);
            put_update(p, UPDATE_ADD, place_local(total), s.item[i].coefficient);
            leave(p, n);
            const bool finite = stat == c->u || (stat->kind == EX_POW && stat->args[0] == c->u && stat->number > 0 && stat->number == floor(stat->number));
            add_piece(p, &last_once, (Piece){.value = stat, .once = total, .guarded = !finite});
        }
        if (!ex_is_num(rest, 0)) add_piece(p, &last, (Piece){.loops = q->loops, .value = tried ? without_rest(p, c, &q->loops, rest) : rest});
    }
    *last_once = each;
    return once;
}

// Of a value that is weighed, one factor of density 0 makes it impossible, whatever the others are there.
static void put_density(Lower *p, const Piece *d, Var *lp, bool weighed)
{
    bool zero = false, fails = false;
    for (const Piece *q = d; q && weighed; q = q->next) {
        zero |= holds_end(q->value) || ex_has_pole(q->value);
        fails |= may_fail(q->value);
    }
    for (; d; d = d->next) {
        Node *test = NULL, *sum = NULL;
        if (d->once) {
            if (d->guarded || d->near) {
                test = enter(p, NODE_IF);
                test->test.condition = d->near ? d->near : ex_call2("!=", local_ref(d->once), ex_num(0));
            }
        } else sum = enter_part(p, &d->loops);
        put_update(p, zero && fails ? UPDATE_ADD_LOG : UPDATE_ADD, place_local(lp), weighed ? ends_decide(d->value) : d->value)->update.times = d->once;
        if (sum) leave(p, sum);
        if (test) leave(p, test);
        if (!d->near) continue;
        p->at = &test->test.otherwise;
        sum = enter_part(p, &d->loops);
        put_update(p, UPDATE_ADD, place_local(lp), d->far);
        leave(p, sum);
        leave(p, test);
        test->test.rare = true;
    }
}

static Expr *bound_of(const Var *v, int side)
{
    const double most = v->discrete && v->base == BASE_INT ? 2147483647.0 : INFINITY, shift = v->discrete ? side ? 0.5 : -0.5 : 0;      // an int holds 32 bits
    Expr *end = end_of_value(v, side);
    if (end->kind != EX_NUM) return ex_add2(end, ex_num(shift));
    const double number = isfinite(end->number) ? end->number : side ? most : -most;
    return isfinite(number) ? ex_num(number + shift) : NULL;
}

// What the elements of a chain remember is kept in an array, as they are drawn (graph/algebra/history.c).
typedef struct Kept { const Var *stand; Var *array; } Kept;

static Expr *kept_leaf(Expr *e, void *with)
{
    const Kept *k = with;
    return e->kind == EX_REF && e->var == k->stand ? ex_ref(k->array, e->nargs, e->args) : NULL;
}

static Conditional *with_states(Lower *p, const Conditional *c)
{
    Conditional *out = arena_copy(p->g->arena, c, sizeof *c);
    Kept k = {c->state->var, work_array(p, ROLE_STATES, c->state->var->name, c->var->rank, c->var->dim)};
    Part **last = &out->density;
    for (const Part *q = c->density; q; q = q->next) {
        Part *r = *last = arena_copy(p->g->arena, q, sizeof *q);
        r->value = ex_map(q->value, kept_leaf, &k);
        if (r->loops.guard) r->loops.guard = ex_map(r->loops.guard, kept_leaf, &k);
        last = &r->next;
    }
    out->state = ex_map(c->state, kept_leaf, &k);
    out->state_is = ex_map(c->state_is, kept_leaf, &k);
    return out;
}

// A slice sampler or a Metropolis step of the element that is studied, between the ends that its type has; its body is to follow.
// The end of a whole number's slices, if those of its own distribution differ between elements, as those of x[n] ~ discrete_range(first[n], last[n]): beyond them what it looks up need not exist.
static Expr *own_end(const Conditional *c, Expr *end, int side)
{
    if (!c->u || c->whole || !c->var->discrete) return end;
    for (const Part *q = c->density; q; q = q->next) {
        if (q->loops.n || q->scatter) continue;
        Expr *const *term = q->value->kind == EX_ADD ? q->value->args : &q->value;
        for (int i = 0; i < (q->value->kind == EX_ADD ? q->value->nargs : 1); i++) {
            const bool ends = term[i]->kind == EX_CALL && term[i]->fn == FN_WITHIN && term[i]->args[0] == c->u && !ex_mentions(term[i]->args[1 + side], c->var);
            Expr *own = ends ? term[i]->args[1 + side] : NULL, *none = ex_num(side ? INFINITY : -INFINITY);
            if (!own || own == none) continue;
            own = ex_add2(own, ex_num(side ? 0.5 : -0.5));
            if (q->loops.guard) own = ex_call3("if_else", q->loops.guard, own, none);
            end = end ? ex_call2(side ? "fmin" : "fmax", end, own) : own;
        }
    }
    return end;
}

static Node *enter_walk(Lower *p, const Step *s, NodeKind kind, Var *width)
{
    const Conditional *c = s->conditional;
    const Var *v = c->var;
    Node *n = enter(p, kind);
    n->slice.c = c;
    n->slice.element = c->current;
    n->slice.width = width;
    n->slice.start = s->slice.width;
    n->slice.lo = own_end(c, bound_of(v, 0), 0);
    n->slice.hi = own_end(c, bound_of(v, 1), 1);
    return n;
}

// Sums over rows of a plate that is integrated out: statistics of data, or made before the step.
static const Step *with_statistics(Lower *p, const Step *s)
{
    const Without *w = s->without;
    if (!w || !w->n) return s;
    const Conditional *plate = w->plate->conditional;
    Arena *a = p->g->arena;
    Expr **is = NEW_N(a, Expr *, w->n);
    Var *array[MAX_NATURAL] = {0};
    PartList made = {0};
    for (int i = 0; i < w->n; i++) {
        const Part *q = w->part[i];
        if ((is[i] = hoisted_part(p, plate, q))) continue;
        if (!q->scatter) abort();                // conjugates.c leaves these alone
        const bool first = !array[q->which];
        if (first) array[q->which] = work_array(p, ROLE_TOTALS, words(p, "%s_sum%d_for_%s", plate->var->name, q->which + 1, s->block[0]->name), plate->var->rank, plate->var->dim);
        is[i] = first ? ex_ref(array[q->which], plate->var->rank, plate->current->args) : ex_num(0);
        add_part(p, &made, q);
    }
    if (made.n) {
        note(p, "Sums over rows for each element of %s, which is integrated out", plate->var->name);
        lower_scattered(p, plate, &made, array, words(p, "sums_%s_for_%s", plate->var->name, s->block[0]->name));
    }
    Conditional *c = arena_copy(a, s->conditional, sizeof *c);
    Part **last = &c->density;
    for (const Part *q = s->conditional->density; q; q = q->next) {
        Part *r = *last = arena_copy(a, q, sizeof *q);
        r->value = in_place_of_sums(w, q->value, is);
        last = &r->next;
    }
    Step *out = arena_copy(a, s, sizeof *s);
    out->conditional = c;
    return out;
}

void step_density(Lower *p, const Step *s)
{
    Moves moves = {0};
    s = with_statistics(p, s);
    Conditional *c = s->predictive ? with_counts(p, s, &moves) : s->conditional->state ? with_states(p, s->conditional) : s->conditional;
    Var *v = c->var;
    const bool metropolis = s->kind == STEP_METROPOLIS, slice = s->kind == STEP_SLICE, walks = slice || metropolis;     // walks: from the value it has
    comment_step(p, s);
    Var *width = walks ? work_array(p, ROLE_TUNING, words(p, "width_%s", v->name), v->rank, v->dim) : NULL;
    const Shared how = shared_how(s, NULL);
    Kernel *kernel = open_elements_kernel(p, how, s, words(p, "%s_%s", s->imputes ? "impute" : metropolis ? "walk" : slice ? "slice" : s->by_messages && c->nbatch < v->rank ? "draw_together" : "draw", v->name));
    kernel->followed = walks ? followed(c, how) : NULL;
    Opened opened = enter_elements(p, s, how);
    put_exists(p, &opened, how, exists_at(v, c->element));
    Var *lp = local_new(p->g->arena, "lp");
    put_moves(p, &moves, -1);
    const Piece *pieces = prepare_density(p, c, s->evidence != NULL, walks, slice && (how == BY_TEAM || how == BY_ONE));
    if (walks) {
        Node *n = enter_walk(p, s, metropolis ? NODE_METROPOLIS : NODE_SLICE, width);
        n->slice.claims = s->orbit && s->orbit->nwindows;
        put_density(p, pieces, lp, false);
        leave(p, n);
    } else {
        Node *n = enter(p, NODE_WEIGH);
        n->weigh.c = c;
        n->weigh.element = c->current;
        n->weigh.first = s->enumerate.lower;
        n->weigh.last = s->enumerate.upper;
        n->weigh.marginal = s->marginal;
        Expr *count = ex_add(3, (Expr *[]){s->enumerate.upper, ex_neg(s->enumerate.lower), ex_num(1)});
        n->weigh.moves = ex_unknown(count) || ex_reads_response(count);      // how many values there are is known in the sweep only
        n->weigh.expects = s->expects;
        if (s->expects) {                        // an array of probabilities keeps them
            Expr *at[MAX_RANK + 1];
            for (int k = 0; k < v->rank; k++) at[k] = ex_index(c->element[k]);
            at[v->rank] = ex_num(1);
            n->weigh.weights = s->expected[0];
            n->weigh.at = ex_ref(s->expected[0], v->rank + 1, at);
            if (s->evidence) n->weigh.evidence = ex_ref(s->evidence, v->rank, at);
        } else if (how == BY_TEAM && !n->weigh.moves) {         // else the choice goes along with the weights, and none is kept
            Expr *dim = count->kind == EX_NUM ? count : ex_call2("fmax", count, ex_num(0)), *at = ex_num(1);     // data may leave no value, and are told so
            n->weigh.weights = work_array(p, ROLE_TOTALS, words(p, "weights_%s", v->name), 1, &dim);
            n->weigh.at = ex_ref(n->weigh.weights, 1, &at);
        }
        put_density(p, pieces, lp, true);
        leave(p, n);
        if (c->state) put_update(p, UPDATE_SET, place_element(c->state), c->state_is);
    }
    put_moves(p, &moves, 1);
    leave_elements(p, &opened);
    close_kernel(p);
    launch_elements(p, s, how, NULL, kernel);
}

// ---- counts over windows (graph/updates/windows.c) ----

enum { WIDTHS_APART = 6, MOST_APART = 1 << 20, MOST_COUNT = 2147483647 };      // values are a part of the width apart that slices of the count have, which warm-up adapts

// Of slices of the count, if it is sliced.
static const Var *width_of(const Lower *p, const Var *count)
{
    const char *name = intern(arena_printf(p->g->arena, "width_%s", count->name));
    const Step *s = step_that_draws(p->g, count);
    for (int i = 0; s->kind == STEP_SLICE && i < p->out->nwork; i++)
        if (p->out->work[i]->name == name) return p->out->work[i];
    return NULL;
}

// Two moves may have windows of the same counts.
static const char *name_of_window(const Window *w) { return w->below->name + strlen("below_"); }

// below[i], uniform, and the log density of each element at the values of the window that so many of are below it.
void fill_window(Lower *p, const Window *w)
{
    Var *v = w->count, *value = local_new(p->g->arena, "value"), *lp = local_new(p->g->arena, "lp"), *below = local_new(p->g->arena, "below"), *apart = local_new(p->g->arena, "apart"), *top = local_new(p->g->arena, "top");
    value->base = below->base = apart->base = BASE_INT;
    value->discrete = below->discrete = apart->discrete = true;
    Conditional *c = arena_copy(p->g->arena, w->conditional, sizeof *c);
    c->u = local_ref(value);
    Part **last = &c->density;
    for (const Part *q = w->conditional->density; q; q = q->next) {
        Part *r = *last = arena_copy(p->g->arena, q, sizeof *q);
        r->value = ex_replace(q->value, w->conditional->u, c->u);
        if (r->loops.guard) r->loops.guard = ex_replace(r->loops.guard, w->conditional->u, c->u);
        last = &r->next;
    }
    const Step s = {.kind = STEP_SLICE, .nblock = 1, .block = &v, .conditional = c};
    note(p, "The log density of each %s at %s values about where it stands, the window lying at random", v->name, math(p, w->value->hi));
    const Shared how = shared_how(&s, NULL);
    Kernel *k = open_elements_kernel(p, how, &s, words(p, "window_%s", name_of_window(w)));
    k->number = "wide";
    Opened o = enter_elements(p, &s, how);
    put_exists(p, &o, how, exists_at(v, c->element));
    const Piece *pieces = prepare_density(p, c, false, false, false);
    Node *d = put(p, NODE_DRAW);
    d->draw.var = w->below;
    d->draw.element = ex_ref(w->below, v->rank, c->current->args);
    d->draw.x = below;
    d->draw.type = "long";
    d->draw.routine = "discrete_uniform";
    d->draw.nargs = 2;
    d->draw.arg = NEW_N(p->g->arena, DrawArg, 2);
    d->draw.arg[0].value = ex_num(0);
    d->draw.arg[1].value = ex_sub(w->value->hi, ex_num(1));
    d->draw.check = DRAW_UNCHECKED;
    const Store store = how == BY_CREW ? STORE_ELEMENT : how == BY_TEAM ? STORE_LAST : STORE_PLAIN;
    put_update(p, UPDATE_SET, place_element(d->draw.element), local_ref(below))->update.how = store;
    const Var *width = width_of(p, v);
    put_let(p, NULL, apart, width ? ex_call2("fmin", ex_num(MOST_APART), ex_call2("fmax", ex_num(1), ex_call1("floor", ex_mul2(ex_num(1.0 / WIDTHS_APART), ex_ref((Var *)width, v->rank, c->current->args))))) : ex_num(1), "long");
    put_update(p, UPDATE_SET, place_element(ex_ref(w->apart, v->rank, c->current->args)), local_ref(apart))->update.how = store;
    for (int i = 0; i < w->nrows; i++) {
        Var *rows = local_new(p->g->arena, intern(words(p, "rows%d", i + 1)));
        put_let(p, NULL, rows, ex_num(0), "wide")->let.grows = true;
        Node *sum = enter_part(p, &w->of_rows[i]->loops);
        put_update(p, UPDATE_ADD, place_local(rows), ex_num(1));
        leave(p, sum);
        put_update(p, UPDATE_SET, place_element(ex_ref(w->rows[i], v->rank, c->current->args)), local_ref(rows))->update.how = store;
    }
    put_let(p, NULL, top, ex_num(-INFINITY), "wide")->let.grows = true;
    Node *loop = enter(p, NODE_LOOP);
    loop->loop.how = SHARE_SERIAL;
    loop->loop.index[loop->loop.n++] = w->value;
    put_let(p, NULL, value, ex_add2(c->current, ex_mul2(local_ref(apart), ex_add(3, (Expr *[]){ex_index(w->value), ex_num(-1), ex_neg(local_ref(below))}))), "long");
    put_let(p, NULL, lp, ex_num(0), "wide")->let.grows = true;
    Node *test = enter(p, NODE_IF);
    test->test.condition = ex_call2("&&", ex_call2("<=", end_of_value(v, 0), c->u), ex_call2("<=", c->u, v->upper_number <= MOST_COUNT || end_of_value(v, 1)->kind != EX_NUM ? end_of_value(v, 1) : ex_num(MOST_COUNT)));
    put_density(p, pieces, lp, true);
    p->at = &test->test.otherwise;
    put_update(p, UPDATE_SET, place_local(lp), ex_num(-INFINITY));
    leave(p, test);
    put_update(p, UPDATE_MAX, place_local(top), local_ref(lp));
    put_update(p, UPDATE_SET, place_element(w->weight), local_ref(lp))->update.how = store;
    leave(p, loop);
    loop = enter(p, NODE_LOOP);
    loop->loop.how = SHARE_SERIAL;
    loop->loop.index[loop->loop.n++] = w->value;
    put_update(p, UPDATE_SET, place_element(w->weight), ex_call1("exp", ex_sub(w->weight, local_ref(top))))->update.how = store;
    leave(p, loop);
    leave_elements(p, &o);
    close_kernel(p);
    launch_elements(p, &s, how, NULL, k);
}

// Each element given c, which has not moved anything yet.
void draw_window(Lower *p, const Window *w)
{
    Var *v = w->count, *x = local_new(p->g->arena, "x"), *streams = local_new(p->g->arena, "streams");
    note(p, "Each %s of its window, given %s", v->name, p->step->orbit->by->name);
    const Step s = {.kind = STEP_SLICE, .nblock = 1, .block = &v, .conditional = w->conditional};
    Conditional *c = w->conditional;
    Kernel *k = open_elements_kernel(p, BY_ELEMENT, &s, words(p, "draw_window_%s", name_of_window(w)));
    k->number = "wide";
    Opened o = enter_elements(p, &s, BY_ELEMENT);
    put_exists(p, &o, BY_ELEMENT, exists_at(v, c->element));
    Var *step = local_new(p->g->arena, "step");
    put_let(p, NULL, step, w->step, "wide");
    Expr *weights = ex_ref(w->weights, v->rank, c->current->args), *old = ex_replace_index(w->weight, w->value, ex_add2(ex_ref(w->below, v->rank, c->current->args), ex_num(1)));
    put(p, NODE_CLAIM)->claim.value = ex_sub(ex_sub(ex_call3("log_tilted_sum", weights, w->value->hi, ex_num(0)), ex_call3("log_tilted_sum", weights, w->value->hi, local_ref(step))), ex_log(old));
    Node *loop = enter(p, NODE_LOOP);
    loop->loop.how = SHARE_SERIAL;
    loop->loop.index[loop->loop.n++] = w->value;
    put_update(p, UPDATE_SET, place_element(w->weight), ex_add2(ex_log(w->weight), ex_mul2(ex_index(w->value), local_ref(step))));
    leave(p, loop);
    Expr *of[MAX_RANK + 1] = {ex_num(2)};        // streams of another number than those that said where the window lies
    streams->dim[streams->rank++] = ex_num(2);
    for (int i = 0; i < v->rank; i++) {
        of[i + 1] = ex_index(c->element[i]);
        streams->dim[streams->rank++] = v->dim[i];
    }
    Node *d = put(p, NODE_DRAW);
    d->draw.var = w->below;
    d->draw.element = ex_ref(streams, streams->rank, of);
    d->draw.x = x;
    d->draw.type = "long";
    d->draw.routine = "categorical_logits";
    d->draw.nargs = 1;
    d->draw.arg = NEW_N(p->g->arena, DrawArg, 1);
    d->draw.arg[0].value = weights;
    d->draw.check = DRAW_UNCHECKED;
    Node *test = enter(p, NODE_IF);              // 0: some density is not a number, and nothing has moved
    test->test.condition = ex_call2("<=", ex_num(1), local_ref(x));
    put(p, NODE_CLAIM)->claim.value = ex_replace_index(w->weight, w->value, local_ref(x));
    put_update(p, UPDATE_SET, place_element(c->current), ex_add2(c->current, ex_mul2(ex_ref(w->apart, v->rank, c->current->args), ex_add(3, (Expr *[]){local_ref(x), ex_num(-1), ex_neg(ex_ref(w->below, v->rank, c->current->args))}))));
    leave(p, test);
    leave_elements(p, &o);
    close_kernel(p);
    launch_elements(p, &s, BY_ELEMENT, NULL, k);
}

// ---- arrays whose elements are constrained together, without a family: slice sampled along the constraint ----

void step_constrained(Lower *p, const Step *s)
{
    Conditional *c = s->conditional;
    Var *v = c->var;
    static const char *const coordinate[] = {
        [CONSTRAINT_NONE] = "", [CONSTRAINT_ORDERED] = "", [CONSTRAINT_POSITIVE_ORDERED] = "",
        [CONSTRAINT_SIMPLEX] = "mass moves between neighbours, their sum stays",
        [CONSTRAINT_UNIT_VECTOR] = "neighbours turn in their plane, the length stays",
        [CONSTRAINT_SUM_TO_ZERO] = "one element moves, all others share what makes up for it",
        [CONSTRAINT_COVARIANCE] = "an element and its mirror image move while the matrix stays positive definite",
        [CONSTRAINT_CORRELATION] = "an element and its mirror image move while the matrix stays positive definite",
        [CONSTRAINT_CHOLESKY_COV] = "elements of the lower triangle move, the diagonal stays positive",
        [CONSTRAINT_CHOLESKY_CORR] = "an element moves against the diagonal of its row, whose length stays one"};
    comment_step(p, s);
    note(p, "  %s", coordinate[v->constraint]);
    Var *width = work_array(p, ROLE_TUNING, words(p, "width_%s", v->name), v->rank, v->dim);
    bool once = c->recursion || !any_loops(c->density);
    for (const Part *q = c->density; q; q = q->next) once |= needs_array(q->value);
    Kernel *kernel = open_kernel(p, once ? KERNEL_ONCE : KERNEL_TEAM, words(p, "slice_%s", v->name), "wide");
    put_skip(p, exists_whole(v));
    Node *n = enter(p, NODE_MOVE);
    n->move.c = c;
    n->move.width = width;
    n->move.inside = once ? NULL : work_array(p, ROLE_TUNING, words(p, "inside_%s", v->name), 0, NULL);
    n->move.start = s->slice.width;
    const Piece *pieces = prepare_density(p, c, s->evidence != NULL, true, false);
    put_density(p, pieces, local_new(p->g->arena, "lp"), false);
    leave(p, n);
    close_kernel(p);
    if (once) launch(p, LAUNCH_ONCE, kernel);
    else launch_team(p, kernel);
}

// ---- a vector with a joint normal prior, moved whole along an ellipse ----

enum { TURNS_A_SWEEP = 8 };      // along as many ellipses: a draw from the prior and some evaluations of the rest cost little beside the factor of the prior's matrix and what else a sweep does with it

// A matrix that all vectors share, in an array that is filled before them.
static Expr *shared_matrix(Lower *p, const Conditional *c, Expr *e)
{
    bool shared = ex_rank(e) == 2 && e->kind != EX_REF;
    for (int k = 0; k < c->var->rank - 1; k++) shared &= !ex_mentions_index(e, c->element[k]);
    if (!shared) return e;
    Expr *dim[] = {ex_dim(e, 0), ex_dim(e, 1)}, **at = NEW_N(p->g->arena, Expr *, 2);
    Loops all = {.n = 2};
    for (int k = 0; k < 2; k++) at[k] = ex_index(all.index[k] = index_new(intern(k ? "j" : "i"), ex_num(1), dim[k]));
    Var *m = work_array(p, ROLE_BLOCK, words(p, "factor_%s", c->var->name), 2, dim);
    Node *n = enter_nest(p, NODE_NEST, &all, 2, at, NULL);
    put_update(p, UPDATE_SET, place_element(ex_ref(m, 2, at)), ex_at(e, 2, at));
    leave(p, n);
    return ex_ref(m, 0, NULL);
}

void step_elliptical(Lower *p, const Step *s)
{
    const Ellipse *e = s->ellipse;
    Conditional *c = s->conditional;
    Var *v = c->var;
    Arena *a = p->g->arena;
    const int nbatch = v->rank - 1;
    Expr *size = v->dim[nbatch], *k = ex_index(c->element[nbatch]);
    comment_step(p, s);
    note(p, "  normals: a draw from %s, less its mean; offset: %s less that mean", e->prior->dist->name, v->name);
    Var *mean = work_array(p, ROLE_BLOCK, words(p, "mean_%s", v->name), 1, &size);
    Var *normals = work_array(p, ROLE_BLOCK, words(p, "normals_%s", v->name), 1, &size), *offset = work_array(p, ROLE_BLOCK, words(p, "offset_%s", v->name), 1, &size);
    bool once = !any_loops(c->density);
    for (const Part *q = c->density; q; q = q->next) once |= needs_array(q->value);
    Kernel *kernel = open_kernel(p, once ? KERNEL_ONCE : KERNEL_TEAM, words(p, "turn_%s", v->name), "wide");
    DrawArg *arg = NEW_N(a, DrawArg, e->nargs + 1);
    for (int i = 0; i < e->nargs; i++) arg[i].value = shared_matrix(p, c, e->arg[i]);
    Opened opened = enter_elements(p, s, BY_TEAM);
    // Streams: one for the normals of a turn and one for its angle, by turn and vector.
    Var *streams = local_new(a, "streams");
    Index *turn = index_new(intern("turn"), ex_num(1), ex_num(TURNS_A_SWEEP));
    Expr *of_normals[MAX_RANK + 1], *of_angle[MAX_RANK + 1];
    streams->dim[streams->rank++] = ex_num(2 * TURNS_A_SWEEP);
    of_normals[0] = ex_index(turn);
    of_angle[0] = ex_add2(ex_index(turn), ex_num(TURNS_A_SWEEP));
    for (int i = 0; i < nbatch; i++) {
        streams->dim[streams->rank++] = v->dim[i];
        of_normals[i + 1] = of_angle[i + 1] = ex_index(c->element[i]);
    }
    const Piece *pieces = prepare_density(p, c, true, true, true);
    Node *loop = enter(p, NODE_LOOP);
    loop->loop.how = SHARE_SERIAL;
    loop->loop.index[loop->loop.n++] = turn;
    Node *d = put(p, NODE_DRAW);
    d->draw.var = v;
    d->draw.element = ex_ref(streams, streams->rank, of_normals);
    Expr *first[MAX_RANK];
    for (int i = 0; i < v->rank; i++) first[i] = i < nbatch ? ex_index(c->element[i]) : ex_num(1);
    d->draw.vector = ex_ref(v, v->rank, first);
    d->draw.place = place_element(ex_ref(normals, 1, (Expr *[]){ex_num(1)}));
    d->draw.routine = e->routine;
    d->draw.nargs = e->nargs;
    d->draw.arg = arg;
    d->draw.whole = size;
    if (!once) put(p, NODE_BARRIER);
    Loops elements = {.n = 1, .index = {c->element[nbatch]}};
    Expr **target = arena_copy(a, &k, sizeof k);
    Node *n = enter_nest(p, NODE_NEST, &elements, 1, target, NULL);
    put_update(p, UPDATE_SET, place_element(ex_ref(mean, 1, &k)), e->mean);
    put_update(p, UPDATE_SET, place_element(ex_ref(offset, 1, &k)), ex_sub(c->current, ex_ref(mean, 1, &k)));
    put_update(p, UPDATE_SET, place_element(ex_ref(normals, 1, &k)), ex_sub(ex_ref(normals, 1, &k), ex_ref(mean, 1, &k)));
    leave(p, n);
    Node *ellipse = enter(p, NODE_ELLIPSE);
    ellipse->ellipse.c = c;
    ellipse->ellipse.vector = d->draw.vector;
    ellipse->ellipse.stream = ex_ref(streams, streams->rank, of_angle);
    ellipse->ellipse.cosine = local_new(a, "cosine");
    ellipse->ellipse.sine = local_new(a, "sine");
    n = enter_nest(p, NODE_NEST, &elements, 1, target, NULL);
    put_update(p, UPDATE_SET, place_element(c->current),
               ex_add(3, (Expr *[]){ex_ref(mean, 1, &k), ex_mul2(local_ref(ellipse->ellipse.cosine), ex_ref(offset, 1, &k)), ex_mul2(local_ref(ellipse->ellipse.sine), ex_ref(normals, 1, &k))}));
    leave(p, n);
    put_density(p, pieces, local_new(a, "lp"), false);
    leave(p, ellipse);
    leave(p, loop);
    leave_elements(p, &opened);
    close_kernel(p);
    if (once) launch(p, LAUNCH_ONCE, kernel);
    else launch_team(p, kernel);
}

// ---- what a covariance is made of, given the white noise of the vector ----

// root: the triangle at what is tried.
static void put_root(Lower *p, const White *w, Var *root)
{
    Expr **at = NEW_N(p->g->arena, Expr *, 2);
    Loops all = {.n = 2};
    for (int k = 0; k < 2; k++) at[k] = ex_index(all.index[k] = index_new(intern(k ? "j" : "i"), ex_num(1), root->dim[k]));
    Node *n = enter_nest(p, NODE_NEST, &all, 2, at, NULL);
    put_update(p, UPDATE_SET, place_element(ex_ref(root, 2, at)), ex_at(w->root, 2, at));
    leave(p, n);
}

// Loops over the vectors, one after the other, and over the elements of one, from the last if `backward`.
static Opened enter_vectors(Lower *p, const White *w, bool backward)
{
    Opened o = {0};
    for (int k = 0; k < w->vector->rank; k++) {
        Node *n = enter_loop(p, &o, backward && k == w->vector->rank - 1 ? SHARE_BACKWARD : SHARE_SERIAL, NULL);
        n->loop.index[n->loop.n++] = w->element[k];
    }
    return o;
}

// The element of an array of the vector's shape whose last subscript is j.
static Expr *beside(const White *w, Var *array, Expr *j)
{
    Expr *at[MAX_RANK];
    for (int k = 0; k < array->rank; k++) at[k] = k < array->rank - 1 ? ex_index(w->element[k]) : j;
    return ex_ref(array, array->rank, at);
}

// sum over j in lo:hi of factor(j) * array[j], factor(j) = root[k, j] or, across, root[j, k].
static Expr *triangle_times(const White *w, Var *root, bool across, Var *array, Expr *lo, Expr *hi)
{
    Index *j = index_new(intern("j"), lo, hi);
    Expr *k = ex_index(w->element[w->vector->rank - 1]), *at = ex_index(j);
    return ex_reduce("sum", j, lo, hi, ex_mul2(ex_ref(root, 2, across ? (Expr *[]){at, k} : (Expr *[]){k, at}), beside(w, array, at)));
}

// Covariance: offset = root * noise, the noise by forward substitution. Precision: root' * offset = noise, the offset by backward substitution.
static void put_noise(Lower *p, const White *w, Var *root, Var *offset, Var *noise)
{
    Expr *n = root->dim[0], *k = ex_index(w->element[w->vector->rank - 1]), *own = ex_ref(root, 2, (Expr *[]){k, k});
    Opened o = enter_vectors(p, w, false);
    put_update(p, UPDATE_SET, place_element(beside(w, offset, k)), ex_sub(w->current, w->mean));
    leave_elements(p, &o);
    o = enter_vectors(p, w, false);
    put_update(p, UPDATE_SET, place_element(beside(w, noise, k)),
               w->precision ? triangle_times(w, root, true, offset, k, n) : ex_div(ex_sub(beside(w, offset, k), triangle_times(w, root, false, noise, ex_num(1), ex_sub(k, ex_num(1)))), own));
    leave_elements(p, &o);
}

static void put_vector(Lower *p, const White *w, Var *root, Var *offset, Var *noise)
{
    Expr *n = root->dim[0], *k = ex_index(w->element[w->vector->rank - 1]), *own = ex_ref(root, 2, (Expr *[]){k, k});
    Opened o = enter_vectors(p, w, w->precision);
    put_update(p, UPDATE_SET, place_element(beside(w, offset, k)),
               w->precision ? ex_div(ex_sub(beside(w, noise, k), triangle_times(w, root, true, offset, ex_add2(k, ex_num(1)), n)), own) : triangle_times(w, root, false, noise, ex_num(1), k));
    put_update(p, UPDATE_SET, place_element(w->current), ex_add2(w->mean, beside(w, offset, k)));
    leave_elements(p, &o);
}

void step_white(Lower *p, const Step *s)
{
    const White *w = s->white;
    Conditional *c = s->conditional;
    Var *v = c->var, *f = w->vector;
    comment_step(p, s);
    Expr *size = f->dim[f->rank - 1], *square[] = {size, size};
    Var *width = work_array(p, ROLE_TUNING, words(p, "width_%s", v->name), v->rank, v->dim), *root = work_array(p, ROLE_BLOCK, words(p, "root_%s", f->name), 2, square);
    Var *offset = work_array(p, ROLE_BLOCK, words(p, "offset_%s", f->name), f->rank, f->dim), *noise = work_array(p, ROLE_BLOCK, words(p, "noise_%s", f->name), f->rank, f->dim);
    Kernel *kernel = open_kernel(p, KERNEL_ONCE, words(p, "whiten_%s", v->name), "wide");
    Opened opened = enter_elements(p, s, BY_ONE);
    put_exists(p, &opened, BY_ONE, exists_at(v, c->element));
    put_root(p, w, root);
    put_noise(p, w, root, offset, noise);
    const Piece *pieces = prepare_density(p, c, true, true, true);
    Var *streams = local_new(p->g->arena, "streams");            // others than those of the slice given the vector
    Expr *of[MAX_RANK + 1] = {ex_num(2)};
    streams->dim[streams->rank++] = ex_num(2);
    for (int k = 0; k < v->rank; k++) {
        of[k + 1] = ex_index(c->element[k]);
        streams->dim[streams->rank++] = v->dim[k];
    }
    Node *n = enter_walk(p, s, NODE_SLICE, width);
    n->slice.stream = ex_ref(streams, streams->rank, of);
    put_root(p, w, root);
    put_vector(p, w, root, offset, noise);
    put_density(p, pieces, local_new(p->g->arena, "lp"), false);
    leave(p, n);
    put_root(p, w, root);                        // what was tried last need not be what is taken
    put_vector(p, w, root, offset, noise);
    leave_elements(p, &opened);
    close_kernel(p);
    launch(p, LAUNCH_ONCE, kernel);
}
