// share.c -- which lanes take which turns of a loop, and the sums that follow from that.
//
//   before   reduce over i in 1:N: update a[g[i]] += x[i]      after   loop k in 1:K shared by EACH_GROUP
//                                                                        let total1 = 0
//                                                                        loop i of the rows of k, total1: update total1 += x[i]
//                                                                        lane: update a[k] += total1
//
// Of a sum (REDUCE), by what it adds to:
//   locals                                         SUM_ALONG in a team, SUM_TURNS in a crew: chunks of the first loop; of the rows that name the element that is drawn,
//                                                  g[i] == k with g of the data: those alone, in the order of their groups
//   one place                                      the same into a local, which one lane adds
//   places that loops of their own run over        SUM_INTO over what is summed, PLACES within; ALONG if nothing is
//   places that a gather of data picks             EACH_GROUP: rows in the order of their groups, made once (Order); EACH_SEGMENT: several places a group
//   places that something else picks               SUM_KEYED: each lane adds to the places that are its own; whole numbers: COUNT_ROWS;
//                                                  statistics: EACH_SEGMENT, after the rows were put in the order of their keys
// What each instance does on its own (NEST) is shared by ALONG. A single lane does all in order. A guard is asked as early as its indices are known.
//
// Needs: kernels as lowered.     Gives: loops with their sharing below each REDUCE and NEST; turns of the kernel; orders of rows.
#include <stdlib.h>
#include <string.h>
#include "lower.h"

typedef struct Share {
    Lower *p;
    Arena   *a;
    Kernel  *kernel;
    bool     team, crew;         // who runs what is being looked at; neither: one lane
    int      temporaries;
    const Order *ordered;        // rows by a key that is drawn, which the kernel has put in order; or NULL
    const Node *elements[MAX_RANK];      // the loops over elements around it
    int         nelements;
    bool        own, others;     // sums of the crew that are over the rows of its element; over others
} Share;

// ---- pieces ----

static Node *loop_over(Share *s, Sharing how, Index *i, const Var *moving)
{
    Node *n = node_new(s->a, NODE_LOOP);
    n->loop.how = how;
    n->loop.n = 1;
    n->loop.index[0] = i;
    n->loop.moving = moving;
    n->loop.keeps = true;
    return n;
}

// The body where the guard holds.
static Node *skip_unless(Share *s, Expr *guard, Node *body)
{
    Expr *left = condition_left(guard);
    if (!left) return body;
    Node *n = node_new(s->a, NODE_SKIP);
    n->skip.condition = left;
    n->next = body;
    return n;
}

static Node *last_of(Node *n)
{
    while (n && n->next) n = n->next;
    return n;
}

// Whether the guard is asked right after loop i has begun.
static bool guard_here(const Loops *l, int i)
{
    if (!l->guard) return false;
    int last = l->n - 1;
    while (last >= 0 && !ex_mentions_index(l->guard, l->index[last])) last--;
    return i == (last < 0 ? l->n - 1 : last);
}

// Loops from..n-1 in order around `body`, the guard where it belongs.
static Node *in_order(Share *s, const Loops *l, int from, Node *body, const Var *moving)
{
    for (int i = l->n - 1; i >= from; i--) {
        Node *n = loop_over(s, SHARE_SERIAL, l->index[i], moving);
        n->body = guard_here(l, i) ? skip_unless(s, l->guard, body) : body;
        body = n;
    }
    return body;
}

static Node *with_guard(Share *s, const Loops *l, int i, Node *body)
{
    return guard_here(l, i) ? skip_unless(s, l->guard, body) : body;
}

static Node *wrap_node(Share *s, NodeKind kind, Node *body)
{
    Node *n = node_new(s->a, kind);
    n->body = body;
    return n;
}

static Node *under_condition(Share *s, Expr *condition, Node *body)
{
    Node *n = wrap_node(s, NODE_IF, body);
    n->test.condition = condition;
    return n;
}

static Node *barrier(Share *s) { return node_new(s->a, NODE_BARRIER); }

static Node *start_total(Share *s, Var *total)
{
    Node *n = node_new(s->a, NODE_LET);
    n->let.local = total;
    n->let.type = "wide";
    n->let.grows = true;
    n->let.value = ex_num(0);
    return n;
}

static Node *add_value(Share *s, Var *total, Expr *value)
{
    Node *n = node_new(s->a, NODE_UPDATE);
    n->update.op = UPDATE_ADD;
    n->update.place.local = total;
    n->update.value = value;
    return n;
}

// ---- the statements of a sum ----

// Different values that the statements add; -1: more than `most`.
static int values_of(const Node *list, int most, Expr **value)
{
    int n = 0;
    for (; list; list = list->next) {
        int k = 0;
        while (k < n && value[k] != list->update.value) k++;
        if (k < n) continue;
        if (n == most) return -1;
        value[n++] = list->update.value;
    }
    return n;
}

// The arrays that they add to, in order; -1: more than 4.
static int arrays_of(const Node *list, Var **array)
{
    int n = 0;
    for (; list; list = list->next) {
        Var *v = list->update.place.array ? list->update.place.array : list->update.place.element->var;
        int k = 0;
        while (k < n && array[k] != v) k++;
        if (k < n) continue;
        if (n == 4) return -1;
        array[n++] = v;
    }
    return n;
}

static Node *copy_list(Share *s, const Node *list)
{
    Node *first = NULL, **last = &first;
    for (; list; list = list->next) {
        *last = arena_copy(s->a, list, sizeof *list);
        (*last)->next = NULL;
        last = &(*last)->next;
    }
    return first;
}

// A value that several places get is computed once.
static Node *named_once(Share *s, Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        bool again = false;
        for (const Node *m = n->next; m; m = m->next) again |= n->kind == NODE_UPDATE && m->kind == NODE_UPDATE && m->update.value == n->update.value;
        if (!again || n->update.value->nargs == 0) continue;
        Node *t = node_new(s->a, NODE_LET);
        t->let.key = t->let.value = n->update.value;
        t->let.local = local_new(s->a, intern(arena_printf(s->a, "t%d", ++s->temporaries)));
        t->let.type = "wide";
        t->next = list;
        return t;
    }
    return list;
}

// ---- sums by group ----

// The rows in order of their groups: made once, found again for another plate of the same rows and groups.
const Order *order_rows(Lower *p, Index *row, Expr *key, Expr *guard, Expr *extent)
{
    Arena *a = p->g->arena;
    for (int i = 0; i < p->norders; i++) {
        const Order *o = p->order[i];
        if (o->row->hi == row->hi && o->row->lo == row->lo && o->extent == extent && ex_replace_index(key, row, ex_index(o->row)) == o->key &&
            (guard ? ex_replace_index(guard, row, ex_index(o->row)) : NULL) == o->guard) return o;
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

static const Order *order_of(Share *s, Index *row, Expr *key, Expr *guard, Expr *extent) { return order_rows(s->p, row, key, guard, extent); }

// The one subscript that is a gather of data, key[row]; the others do not vary or are loops of their own. -1: there is no such thing.
static int one_gather(const Loops *l, int n, Expr *const *target, int *row, bool drawn)
{
    int at = -1;
    for (int k = 0; k < n; k++) {
        int varies = 0, last = -1;
        for (int i = 0; i < l->n; i++)
            if (ex_mentions_index(target[k], l->index[i])) { varies++; last = i; }
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
static bool test_late(const Var *v, void *with) { (void)with; return v->kind != VAR_DATA || v->response; }

typedef struct Named { Expr *key, *part, *is; Index *row, *group; bool left; } Named;

// The group of a row where places name it: the key itself, or its part that varies, g[i] of g[i] + 1, where a constant has been added to others. What else names the row is left.
static Expr *name_group(Named *n, Expr *e)
{
    if (!e || e == n->key) return e;             // a key that stands alone is emitted as the group
    e = ex_replace(ex_replace(e, n->key, ex_index(n->group)), n->part, n->is);
    n->left |= ex_mentions_index(e, n->row);
    return e;
}

// Places that a lane adds to when the rows of a group have been summed: none of them is in scope. false: they cannot be told by the group.
static bool places_by_group(Share *s, Node *list, Expr *key, Index *row, Index *group)
{
    Named n = {.key = key, .part = key, .is = ex_index(group), .row = row, .group = group};
    if (key->kind == EX_ADD) {
        Expr *rest = ex_num(0);
        for (int i = 0; i < key->nargs; i++)
            if (!ex_mentions_index(key->args[i], row)) rest = ex_add2(rest, key->args[i]);
        n.part = ex_sub(key, rest);
        n.is = ex_sub(n.is, rest);
    }
    for (Node *m = list; m; m = m->next) {
        Place *at = &m->update.place;
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

static Node *by_group(Share *s, const Node *sum)
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
    if (i->least < 1 || ex_any_var(extent, test_late, NULL) || ex_any_var(i->hi, test_late, NULL) || ex_reads_response(target[at])) return NULL;    // responses: their values may be missing, and move
    Expr *guard = NULL;                          // what the row alone decides picks the rows; the rest is asked within
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
    Node *rows = loop_over(s, SHARE_ROWS, i, NULL), *adds = NULL, *totals = NULL, **last = &totals;
    for (int k = 0; k < count; k++) {
        total[k] = local_new(s->a, intern(arena_printf(s->a, "total%d", ++s->temporaries)));
        *last = start_total(s, total[k]);
        last = &(*last)->next;
        rows->loop.total[rows->loop.ntotals++] = total[k];
    }
    for (int k = count - 1; k >= 0; k--) {
        Node *add = add_value(s, total[k], value[k]);
        add->next = adds;
        adds = add;
    }
    within.guard = !guard && within.n ? l->guard : NULL;
    rows->loop.order = o;
    rows->body = in_order(s, &within, 0, adds, NULL);
    if (l->guard && !guard && !within.n) rows->body = skip_unless(s, l->guard, adds);
    *last = rows;
    for (Node *m = lane->body; m; m = m->next)
        for (int k = 0; k < count; k++)
            if (m->update.value == value[k]) { m->update.value = local_ref(total[k]); break; }
    rows->loop.sorted = sort_rows(s->p, s->kernel, o, i, group, rows->body, &rows->loop.index[0]);
    lane->lane.key = target[at];
    lane->lane.group = group;
    rows->next = lane;
    Node *groups = loop_over(s, SHARE_GROUPS, group, NULL);
    groups->loop.order = o;
    rows->loop.index[1] = group;                 // whose rows they are
    groups->body = in_order(s, &places, 0, totals, NULL);
    note_count(s->p, s->kernel, turns_of_loops(l));
    groups->next = barrier(s);
    return groups;
}

static Look test_no_lane(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REDUCE || e->kind == EX_AT || e->kind == EX_ARRAY || ex_rank(e) > 0 ? FOUND : LOOK;
}

// What a row adds to each place of a matrix of its group as a product that is the same for (j, k) and (k, j), of expressions that need no loops; NULL: it is none. The matrix is then summed as such (keyed_sums.h).
static SymmetricProduct *symmetric_product(Share *s, const Node *body, Index *j, Index *k)
{
    if (body->next || j->hi != k->hi || body->update.times || ex_find(body->update.value, test_no_lane, NULL)) return NULL;
    const Place *at = &body->update.place;
    const Expr *e = body->update.value;
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

// Places of a group, one or a row and columns of them, to which all its rows add: a block for a group, a lane for a place. Keys that are drawn are ordered before.
static Node *by_segment(Share *s, const Node *sum, bool drawn)
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
        if (m->kind != NODE_UPDATE || m->update.op != UPDATE_ADD || m->update.place.local || needs_array(m->update.value)) return NULL;
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
        m->update.how = STORE_TOTAL;
        m->update.total = number++;
    }
    segments->loop.how = SHARE_SEGMENTS;
    segments->loop.keeps = true;
    segments->loop.turns.n = 1;
    segments->loop.turns.factor[0] = ex_num(number);
    for (int k = 0; k < places; k++) segments->loop.turns.factor[segments->loop.turns.n++] = place[k]->hi;
    segments->body = rows;
    segments->next = barrier(s);
    note_count(s->p, s->kernel, turns_of_loops(l));
    if (!drawn || s->ordered == o) return segments;
    Node *order = node_new(s->a, NODE_ORDER);
    order->order.order = o;
    order->next = segments;
    if (places) s->ordered = o;                  // else it is done under a condition
    return order;
}

// With at most so many places of all arrays chunks of rows have places of their own on a GPU, which takes longer the more there are: for 10^6 rows on an H200 with 9, 300
// and 6000 places 0.18, 2.1 and (ordered) 0.44 ms for one chain, 0.29, 2.2 and 1.5 for four.
enum { FEW_PLACES = 64 };

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

// Rows that count for the element they name, g[i] == k: the loop over them comes first, and goes through those of the element alone. false: there is no such condition, or its parts are not there when rows are ordered.
static bool own_rows(Share *s, const Node *sum, Loops *l, const Order **order, Index **element)
{
    Expr *todo[MOST_CONDITIONS], *part[MOST_CONDITIONS];
    int n = 0, todos = 0, row = -1, at = -1;
    if (!l->guard || !s->nelements || sum->nest.careful) return false;
    for (todo[todos++] = l->guard; todos > 0;) {
        Expr *e = todo[--todos];
        const bool both = e->kind == EX_CALL && e->fn == FN_AND;
        if (n + todos + 2 > MOST_CONDITIONS) return false;
        if (both) { todo[todos++] = e->args[1]; todo[todos++] = e->args[0]; }
        else part[n++] = e;
    }
    Expr *key = NULL, *extent = NULL;
    for (int i = 0; i < n && at < 0; i++)
        for (int side = 0; side < 2 && at < 0 && part[i]->kind == EX_CALL && part[i]->fn == FN_EQ; side++) {
            int varies = 0;
            key = part[i]->args[side];
            Expr *named = part[i]->args[1 - side];
            extent = elements_by(s, named);
            if (!extent || ex_any_var(extent, test_late, NULL) || !ex_data_only(key) || ex_reads_response(key) || key->kind == EX_INDEX) continue;
            for (int k = 0; k < l->n; k++)
                if (ex_mentions_index(key, l->index[k])) { varies++; row = k; }
            if (varies != 1) continue;
            Index *i_row = l->index[row];
            bool plain = !ex_any_var(i_row->hi, test_late, NULL) && !ex_any_var(i_row->lo, test_late, NULL) && !free_index(i_row->hi) && !free_index(i_row->lo) && !needs_array(i_row->hi);
            Expr *alone = ex_replace_index(key, i_row, ex_num(1));
            if (!plain || free_index(alone) || i_row->least < 1) continue;
            at = i;
            *element = named->index;
        }
    if (at < 0) return false;
    Expr *guard = NULL, *within = NULL;          // what the row alone decides picks the rows; the rest is asked within
    for (int i = 0; i < n; i++) {
        if (i == at) continue;
        const bool by_row = ex_data_only(part[i]) && !ex_reads_response(part[i]) && !free_index(ex_replace_index(part[i], l->index[row], ex_num(1)));
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

// ---- a nest, by who runs it ----

static bool writes_element(const Node *n) { return n->kind == NODE_UPDATE && !n->update.place.local; }

// Without loops: what all threads know they add alike, and one of them writes elements.
static Node *once_each(Share *s, Node *body)
{
    for (Node **at = &body; s->team && *at; at = &(*at)->next) {
        Node **end = at;
        while (*end && writes_element(*end)) end = &(*end)->next;
        if (end == at) continue;
        Node *const rest = *end;
        *end = NULL;
        *at = wrap_node(s, NODE_LANE, *at);
        (*at)->next = rest;
    }
    return body;
}

// Sums into locals.
static Node *into_locals(Share *s, const Node *sum)
{
    Loops rows = sum->nest.loops;
    const Order *order = NULL;
    Index *element = NULL;
    if (rows.n == 0) return rows.guard ? under_condition(s, rows.guard, once_each(s, sum->body)) : once_each(s, sum->body);
    own_rows(s, sum, &rows, &order, &element);
    const Loops *l = &rows;
    const bool shared = (s->team || s->crew) && sum->nest.op == UPDATE_ADD;
    Node *n = shared ? loop_over(s, s->crew ? SHARE_SUM_TURNS : SHARE_SUM_ALONG, l->index[0], sum->nest.moving) : in_order(s, l, 0, sum->body, sum->nest.moving);
    n->loop.order = order;
    if (order) n->loop.index[1] = element;       // whose rows they are
    s->own |= order != NULL;
    s->others |= !order;
    if (!shared) return n;
    for (const Node *m = sum->body; m; m = m->next) {
        int k = 0;
        if (m->kind != NODE_UPDATE || !m->update.place.local) continue;      // what an instance keeps, at places of its own
        while (k < n->loop.ntotals && n->loop.total[k] != m->update.place.local) k++;
        if (k < n->loop.ntotals) continue;
        if (k == MOST_OF_LOOP) abort();          // who makes such a sum keeps to it
        n->loop.total[n->loop.ntotals++] = m->update.place.local;
    }
    n->body = with_guard(s, l, 0, in_order(s, l, 1, sum->body, sum->nest.moving));
    if (order) n->loop.sorted = sort_rows(s->p, s->kernel, order, n->loop.index[0], element, n->body, &n->loop.index[0]);
    else if (s->kernel->step) sort_all_rows(s->p, s->kernel, n->loop.index[0], n->body, &n->loop.index[0]);
    note_count(s->p, s->kernel, turns_of_loops(l));
    return n;
}

// Sums into one place: into locals first.
static Node *into_one_place(Share *s, const Node *sum)
{
    Expr *value[4];
    const int count = values_of(sum->body, 4, value);
    if (count < 0) return wrap_node(s, NODE_LANE, in_order(s, &sum->nest.loops, 0, sum->body, sum->nest.moving));
    Node *first = NULL, **last = &first, *lane = wrap_node(s, NODE_LANE, copy_list(s, sum->body));
    Node locals = *sum;
    locals.body = NULL;
    Node **adds = &locals.body;
    for (int k = 0; k < count; k++) {
        Var *total = local_new(s->a, intern(arena_printf(s->a, "total%d", ++s->temporaries)));
        *last = start_total(s, total);
        last = &(*last)->next;
        *adds = add_value(s, total, value[k]);
        adds = &(*adds)->next;
        for (Node *m = lane->body; m; m = m->next)
            if (m->update.value == value[k]) m->update.value = local_ref(total);
    }
    *last = into_locals(s, &locals);
    last_of(first)->next = lane;
    return first;
}

static bool depend(const Loops *l, const Index *i)
{
    for (int k = 0; k < l->n; k++)
        if (ex_mentions_index(i->lo, l->index[k]) || ex_mentions_index(i->hi, l->index[k])) return true;
    return false;
}

static Node *in_pairs(Share *s, Sharing how, const Loops *o, int at, Node *body, const Var *moving, bool pairs)
{
    Node *n = loop_over(s, how, o->index[at], moving);
    int next = at + 1;
    if (pairs && o->n - at >= 2 && ex_is_num(o->index[at]->lo, 1) && ex_is_num(o->index[at + 1]->lo, 1) && !depend(o, o->index[at + 1])) {
        n->loop.n = 2;
        n->loop.index[1] = o->index[at + 1];
        next++;
    }
    n->body = in_order(s, o, next, body, moving);
    for (int i = next - 1; i >= at; i--) n->body = with_guard(s, o, i, n->body);
    return n;
}

// Whether entries of a sparse precision are told, or of its shift.
static bool tells_terms(const Node *body)
{
    for (const Node *n = body; n; n = n->next)
        if (n->kind == NODE_UPDATE && n->update.place.array && n->update.place.array->pattern) return true;
    return false;
}

// Each term has a number of its own, so that nobody waits.
static Node *in_terms(Share *s, const Loops *l, Node *body, const Var *moving)
{
    if (l->n > 0) {
        note_count(s->p, s->kernel, turns_of_loops(l));
        return in_pairs(s, SHARE_TERMS, l, 0, body, moving, true);
    }
    Node *once = loop_over(s, SHARE_TERMS, index_new(intern("once"), ex_num(1), ex_num(1)), moving);
    once->body = body;
    return l->guard ? under_condition(s, l->guard, once) : once;
}

// Sums into places, or what instances do on their own, by a team.
static Node *by_team(Share *s, const Node *sum)
{
    const Loops *l = &sum->nest.loops;
    Expr *const *target = sum->nest.target;
    const int n = sum->nest.n;
    const bool adds = sum->kind == NODE_REDUCE;
    Node *body = named_once(s, sum->body);
    if (tells_terms(sum->body)) return in_terms(s, l, body, sum->nest.moving);
    if (l->n == 0) {
        Node *lane = wrap_node(s, NODE_LANE, body);
        return l->guard ? under_condition(s, l->guard, lane) : lane;
    }
    bool out[MAX_LOOPS] = {false}, direct = true, any = false;
    for (int k = 0; k < n; k++) {
        bool found = false, varies = false;
        for (int i = 0; i < l->n; i++) {
            if (is_index(target[k], l->index[i])) { found = true; out[i] = true; }
            if (ex_mentions_index(target[k], l->index[i])) varies = true;
        }
        any |= varies;
        if (varies && !found) direct = false;
    }
    if (!adds) {
        note_count(s->p, s->kernel, turns_of_loops(l));
        return in_pairs(s, SHARE_ALONG, l, 0, body, sum->nest.moving, !sum->nest.plain);
    }
    if (!any) return into_one_place(s, sum);
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
    Node *many = NULL;
    if (!direct) {
        Node *groups = by_segment(s, sum, false);
        if (!groups && sum->nest.statistic && !sum->nest.counts) many = by_segment(s, sum, true);
        if (many && l->n > 1) return many;       // one place a key: with few keys chunks of rows have places of their own
        if (!groups && !many) groups = by_group(s, sum);
        if (groups) return groups;
    }
    note_count(s->p, s->kernel, turns_of_loops(l));
    if (direct && !summed) return in_pairs(s, SHARE_ALONG, &o, 0, body, sum->nest.moving, true);
    if (!direct && sum->nest.counts) {
        Node *each = loop_over(s, SHARE_COUNTED, l->index[0], sum->nest.moving);
        for (Node *m = body; m; m = m->next)
            if (m->kind == NODE_UPDATE) m->update.how = STORE_COUNT;
        each->body = with_guard(s, l, 0, in_order(s, l, 1, body, sum->nest.moving));
        each->next = barrier(s);
        return each;
    }
    Node *rows = loop_over(s, direct ? SHARE_INTO : SHARE_KEYED, direct ? o.index[0] : l->index[0], sum->nest.moving);
    rows->loop.narrays = arrays_of(sum->body, rows->loop.array);
    if (rows->loop.narrays < 0) rows->loop.narrays = 0;
    if (direct) {
        Node *places = in_pairs(s, SHARE_PLACES, &o, summed, body, sum->nest.moving, true);
        for (int i = summed - 1; i >= 1; i--) {
            Node *loop = loop_over(s, SHARE_SERIAL, o.index[i], sum->nest.moving);
            loop->body = with_guard(s, &o, i, places);
            places = loop;
        }
        rows->body = with_guard(s, &o, 0, places);
    } else {
        for (Node *m = body; m; m = m->next)
            if (m->kind == NODE_UPDATE) m->update.own = true;
        rows->body = with_guard(s, l, 0, in_order(s, l, 1, body, sum->nest.moving));
    }
    rows->next = barrier(s);
    if (!many) return rows;
    Expr *places = ex_num(rows->loop.narrays);
    for (int k = 0; k < n; k++) places = ex_mul2(places, sum->nest.extent[k]);
    Node *test = under_condition(s, ex_call2("<=", places, ex_num(FEW_PLACES)), rows);
    test->test.otherwise = many;
    return test;
}

static bool adds_to_locals(const Node *sum)
{
    const Node *first = sum->body;
    while (first && first->kind == NODE_LET) first = first->next;
    return sum->kind == NODE_REDUCE && first && first->kind == NODE_UPDATE && first->update.place.local;
}

static void share_list(Share *s, Node *list);

static void keep_nothing(Node *list)
{
    for (Node *n = list; n; n = n->next)
        if (n->kind == NODE_LOOP) {
            n->loop.keeps = false;
            keep_nothing(n->body);
        }
}

static void share_scope(Share *s, Node *list, bool team, bool crew)
{
    const bool t = s->team, c = s->crew;
    s->team = team;
    s->crew = crew;
    share_list(s, list);
    s->team = t;
    s->crew = c;
}

static void share_list(Share *s, Node *list)
{
    for (Node *n = list; n; n = n->next)
        switch (n->kind) {
        case NODE_REDUCE: case NODE_NEST:
            if (adds_to_locals(n)) n->body = into_locals(s, n);
            else if (s->team) n->body = by_team(s, n);
            else {
                Node *body = in_order(s, &n->nest.loops, 0, named_once(s, n->body), n->nest.moving);
                if (n->nest.loops.n == 0) body = n->nest.loops.guard ? under_condition(s, n->nest.loops.guard, body) : body;
                n->body = body;
            }
            if (n->nest.plain) keep_nothing(n->body);
            break;
        case NODE_LOOP:
            if (n->loop.of) s->elements[s->nelements++] = n;
            if (n->loop.how == SHARE_SERIAL || n->loop.how == SHARE_BACKWARD) share_list(s, n->body);
            else {
                s->own = s->others = false;
                share_scope(s, n->body, false, n->loop.how == SHARE_CREW || n->loop.how == SHARE_COLOUR_CREW);
                n->loop.own_rows = n->loop.how == SHARE_CREW && s->own && !s->others;
            }
            if (n->loop.of) s->nelements--;
            break;
        case NODE_LANE: share_scope(s, n->body, false, false); break;
        case NODE_IF:
            share_list(s, n->body);
            share_list(s, n->test.otherwise);
            break;
        case NODE_SLICE: case NODE_METROPOLIS: case NODE_WEIGH: case NODE_ELLIPSE: case NODE_MOVE: case NODE_SOLVE: share_list(s, n->body); break;
        case NODE_WEIGHTS: {
            Count c = {0};
            for (int i = 0; i < n->weights.of->n; i++) c.factor[c.n++] = n->weights.of->index[i]->hi;
            c.factor[c.n++] = n->weights.of->value->hi;
            note_count(s->p, s->kernel, c);
            break;
        }
        case NODE_COMMENT: case NODE_LET: case NODE_KNOW: case NODE_SKIP: case NODE_UPDATE: case NODE_FILL: case NODE_ORDER: case NODE_BARRIER: case NODE_ARRAY: case NODE_MATRIX:
        case NODE_CHOICE: case NODE_DRAW: case NODE_SAMPLE: case NODE_CLAIM: case NODE_CHECK: case NODE_BOUNDS: case NODE_DRAW_ARRAY: case NODE_DRAW_NORMAL: case NODE_DRAW_BAND: case NODE_DRAW_STATES: case NODE_TRANSFORM: case NODE_WHITENED: case NODE_FACTOR: case NODE_ROUTINE: case NODE_COPY: case NODE_COMPUTE: case NODE_CALL: case NODE_RETURN:
        case NODE_RESULT: break;
        }
}

// The rows of segments that a sum has become: its only loop; or NULL.
static Node *rows_of_segments(const Node *sum)
{
    if (!sum || sum->kind != NODE_REDUCE || !sum->body || sum->body->kind != NODE_LOOP || sum->body->loop.how != SHARE_SEGMENTS) return NULL;
    return sum->body->body;
}

// Sums of products, and next to them a vector for each of the same groups, with the same factors: the factors are read once for both.
static void take_vectors(Node *list)
{
    for (Node *n = list; n; n = n->next) {
        Node *rows = rows_of_segments(n), *of = rows && rows->loop.product ? rows_of_segments(n->next) : NULL;
        if (!of || of->loop.n != 2 || of->loop.order != rows->loop.order || of->body->next || of->body->update.times || of->loop.index[1]->hi != rows->loop.index[1]->hi) continue;
        Index *const *i = rows->loop.index;
        Expr *e = ex_replace_index(ex_replace_index(of->body->update.value, of->loop.index[0], ex_index(i[0])), of->loop.index[1], ex_index(i[1]));
        Expr *times = ex_div(e, rows->loop.product->factor);
        if (ex_mentions_index(times, i[1]) || ex_find(times, test_no_lane, NULL)) continue;
        rows->loop.product->vector = of;
        rows->loop.product->vector_times = times;
        n->next->body->loop.with = rows->loop.index[1]->hi;
    }
}

void share_loops(Lower *p, Kernel *k)
{
    Share s = {.p = p, .a = p->g->arena, .kernel = k, .team = k->kind == KERNEL_TEAM};
    share_list(&s, k->body);
    take_vectors(k->body);
}
