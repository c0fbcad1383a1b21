// exact.c -- draws from a recognised family, by sums into its natural parameters; and draws from the element's own distribution.
//
//   before   theta[j]: normal, natural { a, b }, sums over rows i       after   kernel draw_theta: for each j, a += .. and b += .. over i;
//                                                                                 draw theta[j]
//
// Sums that leave the sweep are statistics. Those of all elements over the same rows have a kernel before (scattered.c); those that a pass
// over rows makes are there already (rows.c).
//
// Needs: conditionals.     Gives: kernels and launches of the update.
#include <math.h>
#include <string.h>
#include "lower.h"

// Locals for the bounds; `number`: the numbers, where they are no more than that and the draw takes them as they are.
static void put_bounds(Lower *p, const Conditional *c, Var *const *bound, Expr **number)
{
    const double ends[2] = {c->var->lower_number, c->var->upper_number};
    const Part *alone[2] = {NULL, NULL};  // a bound by itself
    for (int side = 0; side < 2; side++) {
        int n = 0;
        for (const Part *b = c->bounds; b; b = b->next)
            if (b->which == side) {
                n++;
                alone[side] = b;
            }
        if (n != 1 || isfinite(ends[side]) || alone[side]->scatter || alone[side]->loops.n || alone[side]->loops.guard) alone[side] = NULL;
        if (number && n == 0) {
            number[side] = ex_num(ends[side]);
            continue;
        }
        const bool grows = n > 0 && !alone[side];
        Node *let = put_let(p, NULL, bound[side], alone[side] ? alone[side]->value : ex_num(ends[side]), grows ? "wide" : p->open->number);
        let->let.grows = grows;
    }
    for (const Part *b = c->bounds; b; b = b->next) {
        if (b == alone[0] || b == alone[1]) continue;
        Loops l = b->loops;
        if (b->scatter) {  // look for the element among all that are bounded
            Expr *same = NULL;
            for (int k = 0; k < c->var->rank; k++) {
                Expr *e = ex_call2("==", b->target[k], ex_index(c->element[k]));
                same = same ? ex_call2("&&", same, e) : e;
            }
            if (same) l.guard = l.guard ? ex_call2("&&", l.guard, same) : same;
        }
        Node *n = enter_part(p, &l);
        n->nest.op = b->which ? ASSIGN_MIN : ASSIGN_MAX;
        put_assign(p, n->nest.op, place_local(bound[b->which]), b->value);
        leave(p, n);
    }
}

static void put_ratio_of_law(Lower *p, const Conditional *c, Var *const *natural)
{
    Node *n = put_ratio(p, NULL);
    n->ratio.c = c;
    n->ratio.logs = kept_logs(c);
    if (c->nnatural == 0) return;
    for (const Natural *nat = c->family->natural; nat; nat = nat->next) {
        const Expr *s = c->statistic[n->ratio.n];
        n->ratio.natural[n->ratio.n] = natural[n->ratio.n];
        n->ratio.statistic[n->ratio.n] = c->statistic[n->ratio.n];
        n->ratio.square[n->ratio.n] = s->kind == EX_POW && s->args[0] == c->u && s->number == 2;
        n->ratio.n++;
    }
}

static void put_draw(Lower *p, const Update *s, Shared how, Var *const *natural, const Textbook *by_law)
{
    const Conditional *c = s->conditional;
    DrawArg *args = NEW_N(p->g->arena, DrawArg, 16);
    Var *drawn = NULL;
    const Node *draw = NULL;
    int n = 0, k = 0;
    for (const Natural *nat = c->family->natural; nat && !by_law->draw; nat = nat->next, k++)
        args[n++] = (DrawArg){.name = nat->name, .value = local_ref(natural[k])};
    n = textbook_arguments(by_law, args, n);
    if (c->family->power) args[n++] = (DrawArg){.name = c->family->power, .number = c->power};
    for (int i = 0; i < c->nbase && c->family->base->kid[i]->kind == AST_NAME; i++)
        args[n++] = (DrawArg){.name = c->family->base->kid[i]->name, .value = c->base_args[i]};
    if (c->truncated) {
        Var *bound[2] = {local_new(p->g->arena, "lower"), local_new(p->g->arena, "upper")};
        Expr *number[2] = {NULL, NULL};
        put_bounds(p, c, bound, by_law->draw ? number : NULL);
        for (int side = 0; side < 2; side++)
            args[n++] = (DrawArg){.name = bound[side]->name, .value = number[side] ? number[side] : local_ref(bound[side])};
    }
    for (int i = 0; i < (s->does == EXPECTS ? s->expected->n : 1); i++) {
        Var *x = local_new(p->g->arena, i ? intern(words(p, "x%d", i + 1)) : "x");
        Node *d = put(p, NODE_DRAW);
        draw = d;
        d->draw.var = c->var;
        d->draw.element = c->current;
        d->draw.x = x;
        d->draw.type = p->open->number;
        d->draw.law = by_law->draw != NULL;
        d->draw.call = by_law->draw         ? by_law->draw
                       : s->does == EXPECTS ? (c->truncated ? c->family->expectations_truncated : c->family->expectations)
                       : c->truncated       ? c->family->draw_truncated
                                            : c->family->draw;
        d->draw.expects = s->does == EXPECTS;
        d->draw.of = s->does == EXPECTS ? "" : s->does == MAXIMISES ? "_mode" : NULL;
        d->draw.which = s->does == EXPECTS ? s->expected->which[i] : 0;
        d->draw.nargs = n;
        d->draw.arg = args;
        d->draw.check = i ? DRAW_UNCHECKED : DRAW_FINITE;
        if (s->does == EXPECTS) put_store_at(p, how, c, ex_ref(s->expected->of[i], c->current->nargs, c->current->args), x);
        else drawn = x;
    }
    if (s->does == EXPECTS) return;
    if (s->marginal) put_ratio(p, NULL);
    else if (!by_law->draw) put_ratio_of_law(p, c, natural);
    put_store(p, how, c, drawn)->assign.drawn = by_law->draw ? draw : NULL;
    if (c->var->lowered.kept_log)
        put_logs(p, c->current, local_ref(local_new(p->g->arena, "g.log_value")), local_ref(local_new(p->g->arena, "g.log_rest")),
                 store_of(how, c));
}

typedef struct Routed {
    const Part *part;
    Expr *hoisted;
    const Rows *rows;
    struct Routed *next;
} Routed;

// Whether e reads a statistic with two subscripts, as X'X.
static bool test_square(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_SUM && v->sum && v->sum->n >= 2;
}
static bool reads_square(const Expr *e) { return ex_any_var(e, test_square, NULL); }

static void put_routed(Lower *p, const Routed *r, Var *natural, Expr *times)
{
    Node *test = enter(p, NODE_IF);
    test->test.few = r->rows;
    Node *sum = enter_part(p, &r->part->loops);
    put_assign(p, ASSIGN_ADD, place_local(natural), ex_mul2(times, r->part->value));
    leave(p, sum);
    p->at = &test->otherwise;
    put_assign(p, ASSIGN_ADD, place_local(natural), ex_mul2(times, r->hoisted));
    leave(p, test);
}

static bool same_loops(const Part *a, const Part *b) { return a->factor == b->factor && memcmp(&a->loops, &b->loops, sizeof(Loops)) == 0; }

// A quadratic form, beta'X'X beta, whose rows are passed over anyway: another sum over them stays. There the square of X*beta costs
// nothing.
static bool better_by_rows(Lower *p, const Conditional *c, const Part *q)
{
    if (q->scatter || q->loops.n == 0) return false;
    Expr *outside = would_become(p, c, q);
    if (!outside || !reads_square(outside)) return false;
    for (const Part *r = c->natural; r; r = r->next)
        if (r != q && !r->scatter && same_loops(r, q) && !would_become(p, c, r)) return true;
    return false;
}

// An end that is an integer variable and a number, at the last (first) value that the variable has; NULL: not known.
static Expr *farthest(Expr *e, bool last)
{
    Expr *ref = e->kind == EX_ADD && e->nargs == 2 && e->args[0]->kind == EX_NUM ? e->args[1] : e;
    Expr *value = ref->kind == EX_REF ? end_of_summed(ref->var, last) : NULL;
    return value ? ex_replace(e, ref, value) : NULL;
}

// A sum over the rows that reach the element, l <= last[i], or begin at it or before, first[i] <= l, of what is the same for all elements:
// totals by the last (first) element, added up from the element on (up to it). K elements and N rows take N + K*K additions in place of
// N*K. q as a part that is scattered; NULL: it is none of these.
typedef enum { ALONE, BEGINS, REACHES } Reach;  // a row counts for the element that it names; from it on; up to it

static Part *cumulated(Lower *p, const Conditional *c, const Part *q, Reach *reach)
{
    const Var *v = c->var;
    bool from = true, only = false;
    if (q->scatter || q->loops.n == 0 || v->rank != 1 || !q->loops.guard || ex_mentions_index(q->value, c->element[0])) return NULL;
    Expr *key = ex_index(c->element[0]), *end = NULL, *others = NULL, *todo[16] = {q->loops.guard};
    for (int i = 0; i < q->loops.n; i++)
        if (ex_mentions_index(q->loops.index[i]->lo, c->element[0]) || ex_mentions_index(q->loops.index[i]->hi, c->element[0])) return NULL;
    for (int n = 1; n > 0;) {  // conditions that are true together
        Expr *e = todo[--n];
        if (e->kind == EX_CALL && e->fn == FN_AND && n + 2 <= 16) {
            todo[n++] = e->args[1];
            todo[n++] = e->args[0];
            continue;
        }
        if (!ex_mentions_index(e, c->element[0])) {
            others = others ? ex_call2("&&", others, e) : e;
            continue;
        }
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
    if (!end) {  // all elements
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

typedef struct Cumulated {
    PartList parts;
    Var *array[MAX_NATURAL];
} Cumulated;  // of one direction

// The update with these sums taken out of it: what is left may need no sum for each element.
static const Update *take_cumulated(Lower *p, const Update *s, Cumulated *before, Cumulated *beyond)
{
    Conditional *c = s->conditional, *less = NULL;
    Part *kept = NULL, **last = &kept;
    for (Part *q = c->natural; q; q = q->next) {
        Reach reach = ALONE;
        const Rows *rows = q->scatter ? NULL : rows_of_factor(p, q->factor);
        Part *r = s->imputes || rows || ex_mentions(q->value, c->var) || c->nbatch < c->var->rank || !q->loops.guard ||
                          !ex_unknown(q->loops.guard)
                      ? NULL
                      : cumulated(p, c, q, &reach);
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
        if (!to->array[q->which])
            to->array[q->which] =
                work_array(p, ROLE_TOTALS, words(p, "%s_%s_%s", c->var->name, n->name, from ? "to" : "from"), 1, c->var->dim);
        add_part(p, &to->parts, r);
        less = c;
    }
    if (!less) return s;
    less = arena_copy(p->g->arena, c, sizeof *c);
    less->natural = kept;
    Update *out = arena_copy(p->g->arena, s, sizeof *s);
    out->conditional = less;
    return out;
}

// What the natural parameters of elements are sums of, by how each part is made.
typedef struct NaturalSums {
    Expr *closed[MAX_NATURAL];    // statistics, and parts without a loop
    Var *array[MAX_NATURAL];      // of parts scattered before the draws
    PartList inlined, scattered;  // row by row: at the draw of each element; before the draws
    Routed *routed;               // from statistics or row by row, as rows are many or few
    Cumulated before, beyond;     // of rows that begin at an element or before, and that reach it
} NaturalSums;

static void scatter_part(Lower *p, const Conditional *c, Part *q, NaturalSums *to)
{
    if (!to->array[q->which]) {
        const Natural *n = c->family->natural;
        for (int k = 0; k < q->which; k++) n = n->next;
        to->array[q->which] = work_array(p, ROLE_TOTALS, words(p, "%s_%s", c->var->name, n->name), c->var->rank, c->var->dim);
    }
    add_part(p, &to->scattered, q);
}

// Parts that stay sums over rows are scattered into work arrays before the draws.
static void sort_parts(Lower *p, const Update *s, NaturalSums *to)
{
    const Conditional *c = s->conditional;
    Expr **sum[MAX_NATURAL];
    int nparts = 0, nclosed[MAX_NATURAL] = {0};
    for (const Part *q = c->natural; q; q = q->next) nparts++;
    for (int k = 0; k < MAX_NATURAL; k++) sum[k] = NEW_N(p->g->arena, Expr *, nparts + 1);
    Routed **last_routed = &to->routed;
    for (Part *q = c->natural; q; q = q->next) {
        const Rows *rows = q->scatter ? NULL : rows_of_factor(p, q->factor);
        p->statistics.route = rows;
        const bool stays = s->imputes || ex_mentions(q->value, c->var) || better_by_rows(p, c, q);
        Expr *h = stays ? NULL : hoisted_part(p, c, q);
        p->statistics.route = NULL;
        if (h && rows && reads_square(h)) {
            *last_routed = NEW(p->g->arena, Routed);
            **last_routed = (Routed){q, h, rows, NULL};
            last_routed = &(*last_routed)->next;
            continue;
        }
        if (h && rows) h = hoisted_part(p, c, q);  // the statistics are needed by either route
        if (h) sum[q->which][nclosed[q->which]++] = h;
        else if (q->scatter) scatter_part(p, c, q, to);
        else if (q->loops.n == 0 && !q->loops.guard) sum[q->which][nclosed[q->which]++] = q->value;
        else add_part(p, &to->inlined, q);
    }
    for (int k = 0; k < MAX_NATURAL; k++) to->closed[k] = ex_add(nclosed[k], sum[k]);
}

static void put_sums_before(Lower *p, const Conditional *c, const NaturalSums *from)
{
    const Var *v = c->var;
    if (from->scattered.n) {
        note(p, "Sums over rows for each element of %s, before they are drawn", v->name);
        lower_scattered(p, c, &from->scattered, from->array, words(p, "sums_%s", v->name));
    }
    for (int side = 0; side < 2; side++) {
        const Cumulated *of = side ? &from->beyond : &from->before;
        if (!of->parts.n) continue;
        note(p, side ? "Sums over the rows whose last element of %s it is" : "Sums over the rows whose first element of %s it is", v->name);
        lower_scattered(p, c, &of->parts, of->array, words(p, side ? "sums_%s_to" : "sums_%s_from", v->name));
    }
}

// The k-th natural parameter of the element, but for the parts that are added row by row.
static Expr *known_sum(const Conditional *c, const NaturalSums *from, int k)
{
    Expr *e = from->closed[k];
    if (from->array[k]) e = ex_add2(e, ex_ref(from->array[k], c->var->rank, c->current->args));
    for (int side = 0; side < 2; side++) {
        Var *totals = (side ? &from->beyond : &from->before)->array[k];
        if (!totals) continue;
        Expr *key = ex_index(c->element[0]);
        Index *m = index_new(intern("m"), ex_num(1), c->var->dim[0]);
        Expr *at = ex_index(m), *counts = side ? ex_call2("<=", key, at) : ex_call2("<=", at, key);
        e = ex_add2(e, ex_reduce("sum", m, m->lo, m->hi, ex_call3("if_else", counts, ex_ref(totals, 1, &at), ex_num(0))));
    }
    return e;
}

// The natural parameters of an element, into names. Parts with the same loops share them.
static void put_natural(Lower *p, const Conditional *c, const NaturalSums *from, Textbook *by_law, Var **natural)
{
    Expr *times[MAX_NATURAL];  // what goes into them is multiplied by these
    int k = 0;
    for (const Natural *n = c->family->natural; n; n = n->next, k++) {
        Expr *e = known_sum(c, from, k);
        bool more = false;
        for (int i = 0; i < from->inlined.n; i++) more |= from->inlined.part[i]->which == k;
        for (const Routed *r = from->routed; r; r = r->next) more |= r->part->which == k;
        times[k] = ex_num(1);
        if (by_law->draw) {
            natural[k] = put_textbook(p, by_law, k, e, more, &times[k]);
            continue;
        }
        natural[k] = local_named(p->g->arena, words(p, "%s_%s", n->name, c->var->name));
        put_let(p, NULL, natural[k], e, more ? "wide" : p->open->number)->let.grows = more;
    }
    bool *done = NEW_N(p->g->arena, bool, from->inlined.n + 1);
    for (int i = 0; i < from->inlined.n; i++) {
        if (done[i]) continue;
        const Part *first = from->inlined.part[i];
        Node *sum = enter_part(p, &first->loops);
        for (int j = i; j < from->inlined.n; j++) {
            const Part *q = from->inlined.part[j];
            if (done[j] || !same_loops(q, first)) continue;
            done[j] = true;
            put_assign(p, ASSIGN_ADD, place_local(natural[q->which]), ex_mul2(times[q->which], q->value));
        }
        leave(p, sum);
    }
    for (const Routed *r = from->routed; r; r = r->next) put_routed(p, r, natural[r->part->which], times[r->part->which]);
}

// What the pass over rows gets of the element: weights of its row in sums over rows.
static void put_weights(Lower *p, const Update *s)
{
    const RowSum *r = fused_sum(p, s);
    Expr *element = ex_index(s->conditional->element[0]);
    Node *back = put(p, NODE_RETURN);
    back->row.weight = r ? ex_replace_index(r->weight, r->row, element) : ex_num(0);
    back->row.square = r && r->square ? ex_replace_index(r->square, r->row, element) : NULL;
}

void update_exact(Lower *p, const Update *s)
{
    NaturalSums sums = {0};
    s = take_cumulated(p, s, &sums.before, &sums.beyond);
    Conditional *c = s->conditional;
    Var *v = c->var;
    sort_parts(p, s, &sums);
    put_sums_before(p, c, &sums);
    comment_update(p, s);
    RowDot dot = {0};
    row_dot(p, s, &dot);
    const Shared how = shared_how(s, &dot);
    if (how == BY_ROW)
        note(p, "  a pass over the rows of %s, of which dot is that times %s; what it returns are weights of the row in sums over rows",
             dot.matrix->name, dot.vector->name);
    Kernel *kernel = open_elements_kernel(p, how, s, words(p, "%s_%s", s->imputes ? "impute" : "draw", v->name));
    kernel->followed = followed(c, how);
    if (how == BY_ROW) {
        Node *know = put(p, NODE_KNOW);
        know->let.key = dot.sum;
        know->let.local = local_new(p->g->arena, "dot");
    }
    Opened opened = enter_elements(p, s, how);
    if (opened.n) {  // what no element changes
        opened.loop[0]->loop.keeps = true;
        if (s->imputes || c->nbatch < v->rank) opened.loop[0]->loop.moving = v;
    }
    put_exists(p, &opened, how, exists_at(v, c->element));
    Textbook by_law = textbook_of(p, s, kernel);
    Var *natural[MAX_NATURAL];
    put_natural(p, c, &sums, &by_law, natural);
    put_textbook_later(p, &by_law);
    put_draw(p, s, how, natural, &by_law);
    if (how == BY_ROW) put_weights(p, s);
    leave_elements(p, &opened);
    close_kernel(p);
    launch_elements(p, s, how, &dot, kernel);
}

// ---- draws from the element's own distribution ----

void update_own(Lower *p, const Update *s)
{
    const Conditional *c = s->conditional;
    const Part *own = c->own;
    const Factor *f = own->factor;
    comment_update(p, s);
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
    put_ratio(p, NULL);
    put_store(p, how, c, x);
    leave_elements(p, &opened);
    close_kernel(p);
    launch_elements(p, s, how, NULL, kernel);
}
