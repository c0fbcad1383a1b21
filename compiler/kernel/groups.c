// groups.c -- sums by group: rows in the order of their groups, which are made once (Order), a lane or a block for each group.
//
//   reduce over i in 1:N: update a[g[i]] += x[i]      by_group      loop k in 1:K shared by EACH_GROUP, over the rows of k alone
//                                                     by_segment    EACH_SEGMENT: several places a group, or keys that are drawn
//   sum over i in 1:N where g[i] == k, k drawn        own_rows      a loop over the rows that name the element that is drawn
#include <string.h>
#include "share.h"

// The rows in order of their groups: made once, found again for another plate of the same rows and groups.
const Order *order_rows(Lower *p, Index *row, Expr *key, Expr *guard, Expr *extent)
{
    Arena *a = p->g->arena;
    for (int i = 0; i < p->norders; i++) {
        const Order *o = p->order[i];
        if (o->row->hi == row->hi && o->row->lo == row->lo && o->extent == extent &&
            ex_replace_index(key, row, ex_index(o->row)) == o->key &&
            (guard ? ex_replace_index(guard, row, ex_index(o->row)) : NULL) == o->guard)
            return o;
    }
    const char *stem = key->kind == EX_REF ? key->var->name : "group";
    Order *o = NEW(a, Order), **all = NEW_N(a, Order *, p->norders + 1);
    if (p->norders) memcpy(all, p->order, sizeof *all * (size_t)p->norders);
    p->order = all;
    all[p->norders++] = o;
    const bool drawn = !ex_data_only(key);
    const ArrayRole role = drawn ? ROLE_KEYED : ROLE_ORDER;
    *o = (Order){.row = row, .key = key, .guard = guard, .extent = extent};
    Expr *more = ex_add2(extent, ex_num(1));
    o->keys = work_array(p, role, arena_printf(a, "key_%s", stem), 1, &row->hi);
    o->first = work_array(p, role, arena_printf(a, "first_%s", stem), 1, &more);
    o->rows = work_array(p, role, arena_printf(a, "rows_%s", stem), 1, &row->hi);
    if (drawn) o->spare = work_array(p, role, arena_printf(a, "spare_%s", stem), 1, &row->hi);
    return o;
}

static const Order *order_of(Share *s, Index *row, Expr *key, Expr *guard, Expr *extent)
{
    return order_rows(s->p, row, key, guard, extent);
}

// The one subscript that is a gather of data, key[row]; the others do not vary or are loops of their own. -1: there is no such thing.
static int one_gather(const Loops *l, int n, Expr *const *target, int *row, bool drawn)
{
    int at = -1;
    for (int k = 0; k < n; k++) {
        int varies = 0, last = -1;
        for (int i = 0; i < l->n; i++)
            if (ex_mentions_index(target[k], l->index[i])) {
                varies++;
                last = i;
            }
        if (varies == 0) continue;
        if (is_index(target[k], l->index[last]) && varies == 1) continue;
        if (varies != 1 || !(drawn ? is_drawn_key(target[k]) : ex_data_only(target[k])) || (at >= 0 && target[at] != target[k])) return -1;
        at = k;
        *row = last;
    }
    if (at < 0) return -1;
    for (int k = 0; k < n; k++)
        if (is_index(target[k], l->index[*row])) return -1;
    return at;
}

// Arrays of setup have their sizes from the data files: what is computed first is too late for them.
static bool test_late(const Var *v, void *with)
{
    (void)with;
    return v->kind != VAR_DATA || v->response;
}

typedef struct NamedGroup {
    Expr *key, *part, *is;
    Index *row, *group;
    bool left;
} NamedGroup;

// The group of a row where places name it: the key itself, or its part that varies, g[i] of g[i] + 1, where a constant has been added to
// others. What else names the row is left.
static Expr *name_group(NamedGroup *n, Expr *e)
{
    if (!e || e == n->key) return e;  // a key by itself is emitted as the group
    e = ex_replace(ex_replace(e, n->key, ex_index(n->group)), n->part, n->is);
    n->left |= ex_mentions_index(e, n->row);
    return e;
}

// Places that a lane adds to when the rows of a group have been summed: none of them is in scope. false: the group does not determine them.
static bool places_by_group(Share *s, Node *list, Expr *key, Index *row, Index *group)
{
    NamedGroup n = {.key = key, .part = key, .is = ex_index(group), .row = row, .group = group};
    if (key->kind == EX_ADD) {
        Expr *rest = ex_num(0);
        for (int i = 0; i < key->nargs; i++)
            if (!ex_mentions_index(key->args[i], row)) rest = ex_add2(rest, key->args[i]);
        n.part = ex_sub(key, rest);
        n.is = ex_sub(n.is, rest);
    }
    for (Node *m = list; m; m = m->next) {
        Place *at = &m->assign.place;
        at->element = name_group(&n, at->element);
        for (int q = 0; q < at->n; q++) {
            Expr **subs = NEW_N(s->a, Expr *, at->sub[q].n);
            for (int i = 0; i < at->sub[q].n; i++) subs[i] = name_group(&n, at->sub[q].at[i]);
            at->sub[q].at = subs;
            at->sub[q].offset = name_group(&n, at->sub[q].offset);
        }
    }
    return !n.left;
}

// A total for each value, and what adds to it in a row; totals: these at 0, *last: their end.
static Node *start_totals(Share *s, Node *rows, int count, Expr *const *value, Var **total, Node **totals, Node ***last)
{
    Node *adds = NULL;
    *totals = NULL;
    *last = totals;
    for (int k = 0; k < count; k++) {
        total[k] = total_of_value(s, value[k]);
        **last = start_total(s, total[k]);
        *last = &(**last)->next;
        rows->loop.total[rows->loop.ntotals++] = total[k];
    }
    for (int k = count - 1; k >= 0; k--) {
        Node *add = add_value(s, total[k], value[k]);
        add->next = adds;
        adds = add;
    }
    return adds;
}

Node *by_group(Share *s, const Node *sum)
{
    const Loops *l = &sum->nest.loops;
    Expr *const *target = sum->nest.target;
    const int n = sum->nest.n;
    int row = -1, at = sum->nest.extent ? one_gather(l, n, target, &row, false) : -1;
    if (at < 0) return NULL;
    Index *i = l->index[row];
    Loops places = {0}, within = {0};
    for (int k = 0; k < l->n; k++) {
        bool place = false;
        for (int q = 0; q < n; q++) place |= is_index(target[q], l->index[k]);
        for (int q = 0; q < l->n; q++)
            if (ex_mentions_index(l->index[k]->hi, l->index[q]) || ex_mentions_index(l->index[k]->lo, l->index[q])) return NULL;
        if (k == row) continue;
        if (place) places.index[places.n++] = l->index[k];
        else within.index[within.n++] = l->index[k];
    }
    Expr *extent = sum->nest.extent[at], *value[4];
    // responses: their values may be missing, and change
    if (i->least < 1 || ex_any_var(extent, test_late, NULL) || ex_any_var(i->hi, test_late, NULL) || ex_reads_response(target[at]))
        return NULL;
    Expr *guard = NULL;  // what the row alone decides picks the rows; the rest is tested within
    bool alone = l->guard != NULL;
    for (int k = 0; k < l->n && l->guard; k++) alone &= k == row || !ex_mentions_index(l->guard, l->index[k]);
    if (alone && ex_data_only(l->guard) && !ex_reads_response(l->guard)) guard = l->guard;
    const int count = values_of(sum->body, 4, value);
    if (count < 0) return NULL;
    Node *lane = wrap_node(s, NODE_LANE, copy_list(s, sum->body));
    Index *group = index_new(intern("k"), ex_num(1), extent);
    if (!places_by_group(s, lane->body, target[at], i, group)) return NULL;
    const Order *o = order_of(s, i, target[at], guard, extent);
    Var *total[4];
    Node *rows = loop_over(s, SHARE_ROWS, i, NULL), *totals, **last;
    Node *adds = start_totals(s, rows, count, value, total, &totals, &last);
    within.guard = !guard && within.n ? l->guard : NULL;
    rows->loop.order = o;
    rows->body = in_order(s, &within, 0, adds, NULL);
    if (l->guard && !guard && !within.n) rows->body = skip_unless(s, l->guard, adds);
    *last = rows;
    for (Node *m = lane->body; m; m = m->next)
        for (int k = 0; k < count; k++)
            if (m->assign.value == value[k]) {
                m->assign.value = local_ref(total[k]);
                break;
            }
    rows->loop.sorted = sort_rows(s->p, s->kernel, o, i, group, rows->body, &rows->loop.index[0]);
    lane->lane.key = target[at];
    lane->lane.group = group;
    rows->next = lane;
    Node *groups = loop_over(s, SHARE_GROUPS, group, NULL);
    groups->loop.order = o;
    rows->loop.index[1] = group;  // whose rows they are
    groups->body = in_order(s, &places, 0, totals, NULL);
    note_count(s->p, s->kernel, iterations_of_loops(l));
    groups->next = barrier(s);
    return groups;
}

// What a row adds to each place of a matrix of its group, as a product that is the same for (j, k) and (k, j). Its factors need no loops.
// NULL: it has another form. The matrix is then summed as such (keyed_sums.h).
static SymmetricProduct *symmetric_product(Share *s, const Node *body, Index *j, Index *k)
{
    if (body->next || j->hi != k->hi || body->assign.times || ex_find(body->assign.value, test_no_lane, NULL)) return NULL;
    const Place *at = &body->assign.place;
    const Expr *e = body->assign.value;
    bool first = false, second = false;
    for (int i = 0; at->element && i < at->element->nargs; i++) {
        first |= is_index(at->element->args[i], j);
        second |= is_index(at->element->args[i], k);
    }
    for (int q = 0; q < at->n; q++)
        for (int i = 0; i < at->sub[q].n; i++) {
            first |= is_index(at->sub[q].at[i], j);
            second |= is_index(at->sub[q].at[i], k);
        }
    if (!first || !second || e->kind != EX_MUL) return NULL;
    SymmetricProduct p = {.factor = ex_num(1), .times = ex_num(1)};
    Expr *other = ex_num(1);
    for (int i = 0; i < e->nargs; i++) {
        const bool of_j = ex_mentions_index(e->args[i], j), of_k = ex_mentions_index(e->args[i], k);
        if (of_j && of_k) return NULL;
        Expr **to = of_j ? &p.factor : of_k ? &other : &p.times;
        *to = ex_mul2(*to, e->args[i]);
    }
    if (!ex_mentions_index(p.factor, j) || ex_replace_index(p.factor, j, ex_index(k)) != other) return NULL;
    return arena_copy(s->a, &p, sizeof p);
}

// Places of a group, one or a row and columns of them, to which all its rows add: a block for a group, a lane for a place. Keys that are
// drawn are ordered before.
Node *by_segment(Share *s, const Node *sum, bool drawn)
{
    const Loops *l = &sum->nest.loops;
    Expr *const *target = sum->nest.target;
    const int n = sum->nest.n;
    int row = -1, at = sum->nest.extent ? one_gather(l, n, target, &row, drawn) : -1;
    if (at < 0 || l->n > 3) return NULL;
    Index *i = l->index[row], *place[2];
    int places = 0;
    for (int k = 0; k < l->n; k++) {
        bool found = false;
        for (int q = 0; q < l->n; q++)
            if (ex_mentions_index(l->index[k]->hi, l->index[q]) || ex_mentions_index(l->index[k]->lo, l->index[q])) return NULL;
        if (k == row) continue;
        for (int q = 0; q < n; q++) found |= is_index(target[q], l->index[k]);
        if (!found || !ex_is_num(l->index[k]->lo, 1)) return NULL;
        place[places++] = l->index[k];
    }
    Expr *extent = sum->nest.extent[at];
    if (!ex_is_num(i->lo, 1) || ex_unknown(extent) || ex_unknown(i->hi) || (drawn ? l->guard != NULL : places == 0)) return NULL;
    if (!drawn && (ex_any_var(extent, test_late, NULL) || ex_any_var(i->hi, test_late, NULL) || ex_reads_response(target[at]))) return NULL;
    Expr *guard = NULL;
    if (l->guard) {
        for (int k = 0; k < l->n; k++)
            if (k != row && ex_mentions_index(l->guard, l->index[k])) return NULL;
        if (!ex_data_only(l->guard) || ex_reads_response(l->guard)) return NULL;
        guard = l->guard;
    }
    Var *array[4];
    int statements = 0;
    for (const Node *m = sum->body; m; m = m->next, statements++)
        if (m->kind != NODE_ASSIGN || m->assign.op != ASSIGN_ADD || m->assign.place.local || needs_array(m->assign.value)) return NULL;
    if (statements > 4 || arrays_of(sum->body, array) != statements) return NULL;
    const Order *o = order_of(s, i, target[at], guard, extent);
    Node *rows = loop_over(s, SHARE_SEGMENT_PLACES, i, NULL), *segments = node_new(s->a, NODE_LOOP);
    for (int k = 0; k < places; k++) rows->loop.index[rows->loop.n++] = place[k];
    rows->loop.order = segments->loop.order = o;
    rows->loop.keeps = true;
    rows->body = copy_list(s, sum->body);
    if (places == 2) rows->loop.product = symmetric_product(s, rows->body, place[0], place[1]);
    int number = 0;
    for (Node *m = rows->body; m; m = m->next) {
        m->assign.how = STORE_TOTAL;
        m->assign.total = number++;
    }
    segments->loop.how = SHARE_SEGMENTS;
    segments->loop.keeps = true;
    segments->loop.iterations.n = 1;
    segments->loop.iterations.factor[0] = ex_num(number);
    for (int k = 0; k < places; k++) segments->loop.iterations.factor[segments->loop.iterations.n++] = place[k]->hi;
    segments->body = rows;
    segments->next = barrier(s);
    note_count(s->p, s->kernel, iterations_of_loops(l));
    if (!drawn || s->ordered == o) return segments;
    Node *order = node_new(s->a, NODE_ORDER);
    order->order.order = o;
    order->next = segments;
    if (places) s->ordered = o;  // else it is done under a condition
    return order;
}

// ---- the rows of an element ----

// How many elements a loop over them has by the index e; NULL: it is none of theirs.
static Expr *elements_by(const Share *s, const Expr *e)
{
    for (int i = 0; i < s->nelements; i++) {
        const Node *n = s->elements[i];
        for (int k = 0; k < n->loop.n; k++)
            if (is_index(e, n->loop.index[k])) return n->loop.of->dim[n->loop.how == SHARE_SERIAL ? n->loop.field : k];
    }
    return NULL;
}

static Expr *joined(Expr *a, Expr *b) { return a ? ex_call2("&&", a, b) : b; }

enum { MOST_CONDITIONS = 16 };

// Rows that count for the element they name, g[i] == k: the loop over them comes first, and goes through those of the element alone. false:
// there is no such condition, or its parts are not there when rows are ordered.
bool own_rows(Share *s, const Node *sum, Loops *l, const Order **order, Index **element)
{
    Expr *todo[MOST_CONDITIONS], *part[MOST_CONDITIONS];
    int n = 0, todos = 0, row = -1, at = -1;
    if (!l->guard || !s->nelements || sum->nest.careful || s->p->g->lesson) return false;
    for (todo[todos++] = l->guard; todos > 0;) {
        Expr *e = todo[--todos];
        const bool both = e->kind == EX_CALL && e->fn == FN_AND;
        if (n + todos + 2 > MOST_CONDITIONS) return false;
        if (both) {
            todo[todos++] = e->args[1];
            todo[todos++] = e->args[0];
        } else part[n++] = e;
    }
    Expr *key = NULL, *extent = NULL;
    for (int i = 0; i < n && at < 0; i++)
        for (int side = 0; side < 2 && at < 0 && part[i]->kind == EX_CALL && part[i]->fn == FN_EQ; side++) {
            int varies = 0;
            key = part[i]->args[side];
            Expr *named = part[i]->args[1 - side];
            extent = elements_by(s, named);
            if (!extent || ex_any_var(extent, test_late, NULL) || !ex_data_only(key) || ex_reads_response(key) || key->kind == EX_INDEX)
                continue;
            for (int k = 0; k < l->n; k++)
                if (ex_mentions_index(key, l->index[k])) {
                    varies++;
                    row = k;
                }
            if (varies != 1) continue;
            Index *i_row = l->index[row];
            bool plain = !ex_any_var(i_row->hi, test_late, NULL) && !ex_any_var(i_row->lo, test_late, NULL) && !free_index(i_row->hi) &&
                         !free_index(i_row->lo) && !needs_array(i_row->hi);
            Expr *alone = ex_replace_index(key, i_row, ex_num(1));
            if (!plain || free_index(alone) || i_row->least < 1) continue;
            at = i;
            *element = named->index;
        }
    if (at < 0) return false;
    Expr *guard = NULL, *within = NULL;  // what the row alone decides picks the rows; the rest is tested within
    for (int i = 0; i < n; i++) {
        if (i == at) continue;
        const bool by_row =
            ex_data_only(part[i]) && !ex_reads_response(part[i]) && !free_index(ex_replace_index(part[i], l->index[row], ex_num(1)));
        if (by_row) guard = joined(guard, part[i]);
        else within = joined(within, part[i]);
    }
    *order = order_of(s, l->index[row], key, guard, extent);
    Index *i = l->index[row];
    memmove(l->index + 1, l->index, sizeof *l->index * (size_t)row);
    l->index[0] = i;
    l->guard = within;
    return true;
}
