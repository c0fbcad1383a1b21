// share.c -- which lanes take which iterations of a loop, and the sums that follow from that.
//
//   before   reduce over i in 1:N: update a[g[i]] += x[i]      after   loop k in 1:K shared by EACH_GROUP
//                                                                        let total1 = 0
//                                                                        loop i of the rows of k, total1: update total1 += x[i]
//                                                                        lane: update a[k] += total1
//
// Of a sum (REDUCE), by what it adds to:
//   locals                                         SUM_ALONG in a team, SUM_CREW in a crew: chunks of the first loop; of the rows that
//   name the element that is drawn,
//                                                  g[i] == k with g of the data: those alone, in the order of their groups
//   one place                                      the same into a local, which one lane adds
//   places that loops of their own run over        SUM_INTO over what is summed, PLACES within; ALONG if nothing is
//   places that a gather of data picks             EACH_GROUP: rows in the order of their groups, made once (Order); EACH_SEGMENT: several
//   places a group places that something else picks               SUM_KEYED: each lane adds to the places that are its own; whole numbers:
//   COUNT_ROWS;
//                                                  statistics: EACH_SEGMENT, after the rows were put in the order of their keys
// What each instance does on its own (NEST) is shared by ALONG. A single lane does all in order. A guard is tested as early as its indices
// are known.
//
// Needs: kernels as lowered.     Gives: loops with their sharing below each REDUCE and NEST; iterations of the kernel; orders of rows.
#include <stdlib.h>
#include "share.h"

// With at most so many places of all arrays chunks of rows have places of their own on a GPU, which takes longer the more there are: for
// 10^6 rows on an H200 with 9, 300 and 6000 places 0.18, 2.1 and (ordered) 0.44 ms for one chain, 0.29, 2.2 and 1.5 for four.
enum { FEW_PLACES = 64 };

// ---- a nest, by who runs it ----

static bool writes_element(const Node *n) { return n->kind == NODE_ASSIGN && !n->assign.place.local; }

// No loops: what all threads know they add alike, and one of them writes elements.
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
    const bool extreme = s->team && !order && (sum->nest.op == ASSIGN_MIN || sum->nest.op == ASSIGN_MAX);
    const bool shared = ((s->team || s->crew) && sum->nest.op == ASSIGN_ADD) || extreme;
    const Sharing how = sum->nest.op == ASSIGN_MIN   ? SHARE_MIN_ALONG
                        : sum->nest.op == ASSIGN_MAX ? SHARE_MAX_ALONG
                        : s->crew                    ? SHARE_SUM_CREW
                                                     : SHARE_SUM_ALONG;
    Node *n = shared ? loop_over(s, how, l->index[0], sum->nest.moving)
                     : in_order(s, l, 0, sum->body, sum->nest.moving);
    n->loop.order = order;
    if (order) n->loop.index[1] = element;  // whose rows they are
    s->own |= order != NULL;
    s->others |= !order;
    if (!shared) return n;
    for (const Node *m = sum->body; m; m = m->next) {
        int k = 0;
        if (m->kind != NODE_ASSIGN || !m->assign.place.local) continue;  // what an instance keeps, at places of its own
        while (k < n->loop.ntotals && n->loop.total[k] != m->assign.place.local) k++;
        if (k < n->loop.ntotals) continue;
        if (k == GM_MOST_TOTALS) abort();  // who makes such a sum keeps to it
        n->loop.total[n->loop.ntotals++] = m->assign.place.local;
    }
    n->body = with_guard(s, l, 0, in_order(s, l, 1, sum->body, sum->nest.moving));
    if (order) n->loop.sorted = sort_rows(s->p, s->kernel, order, n->loop.index[0], element, n->body, &n->loop.index[0]);
    else if (s->kernel->update && !extreme) sort_all_rows(s->p, s->kernel, n->loop.index[0], n->body, &n->loop.index[0]);
    note_count(s->p, s->kernel, iterations_of_loops(l));
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
        Var *total = total_of_value(s, value[k]);
        *last = start_total(s, total);
        last = &(*last)->next;
        *adds = add_value(s, total, value[k]);
        adds = &(*adds)->next;
        for (Node *m = lane->body; m; m = m->next)
            if (m->assign.value == value[k]) m->assign.value = local_ref(total);
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

// Whether terms of a sparse precision are listed, or of its shift.
static bool lists_terms(const Node *body)
{
    for (const Node *n = body; n; n = n->next)
        if (n->kind == NODE_ASSIGN && n->assign.place.array && n->assign.place.array->lowered.pattern) return true;
    return false;
}

// Each term has a number of its own, so that nobody waits.
static Node *in_terms(Share *s, const Loops *l, Node *body, const Var *moving)
{
    if (l->n > 0) {
        note_count(s->p, s->kernel, iterations_of_loops(l));
        return in_pairs(s, SHARE_TERMS, l, 0, body, moving, true);
    }
    Node *once = loop_over(s, SHARE_TERMS, index_new(intern("once"), ex_num(1), ex_num(1)), moving);
    once->body = body;
    return l->guard ? under_condition(s, l->guard, once) : once;
}

// Which of the loops of a sum are a subscript of its target, and whether all that the target depends on are.
typedef struct Targets {
    bool out[MAX_LOOPS];
    bool direct;  // loops that are summed over may run outside of loops over places
    bool any;     // more than one place
} Targets;

static Targets targets_of(const Loops *l, int n, Expr *const *target)
{
    Targets t = {.direct = true};
    for (int k = 0; k < n; k++) {
        bool found = false, varies = false;
        for (int i = 0; i < l->n; i++) {
            if (is_index(target[k], l->index[i])) {
                found = true;
                t.out[i] = true;
            }
            if (ex_mentions_index(target[k], l->index[i])) varies = true;
        }
        t.any |= varies;
        if (varies && !found) t.direct = false;
    }
    return t;
}

// The loops that are summed over, then those over places; gives: how many are summed over.
static int order_loops(const Loops *l, Targets *t, Loops *o)
{
    int summed = 0;
    o->guard = l->guard;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < l->n; i++)
            if (t->out[i] == (pass == 1)) {
                o->index[o->n++] = l->index[i];
                summed += pass == 0;
            }
    for (int i = 0; i < o->n && t->direct; i++)
        for (int k = 0; k < o->n; k++) {
            const bool moves = ex_mentions_index(o->index[i]->lo, o->index[k]) || ex_mentions_index(o->index[i]->hi, o->index[k]);
            if (moves && (k > i || i >= summed)) t->direct = false;
        }
    return summed;
}

// Counts of rows by their keys.
static Node *counted(Share *s, const Node *sum, Node *body)
{
    const Loops *l = &sum->nest.loops;
    Node *each = loop_over(s, SHARE_COUNTED, l->index[0], sum->nest.moving);
    for (Node *m = body; m; m = m->next)
        if (m->kind == NODE_ASSIGN) m->assign.how = STORE_COUNT;
    each->body = with_guard(s, l, 0, in_order(s, l, 1, body, sum->nest.moving));
    each->next = barrier(s);
    return each;
}

// A loop over rows, which lanes share; each has sums of its own. `o`: loops in order, if rows are summed into all places; NULL: into that
// of their key.
static Node *by_rows(Share *s, const Node *sum, Node *body, const Loops *o, int summed)
{
    const Loops *l = &sum->nest.loops;
    Node *rows = loop_over(s, o ? SHARE_INTO : SHARE_KEYED, o ? o->index[0] : l->index[0], sum->nest.moving);
    rows->loop.narrays = arrays_of(sum->body, rows->loop.array);
    if (rows->loop.narrays < 0) rows->loop.narrays = 0;
    if (o) {
        Node *places = in_pairs(s, SHARE_PLACES, o, summed, body, sum->nest.moving, true);
        for (int i = summed - 1; i >= 1; i--) {
            Node *loop = loop_over(s, SHARE_SERIAL, o->index[i], sum->nest.moving);
            loop->body = with_guard(s, o, i, places);
            places = loop;
        }
        rows->body = with_guard(s, o, 0, places);
    } else {
        for (Node *m = body; m; m = m->next)
            if (m->kind == NODE_ASSIGN) m->assign.own = true;
        rows->body = with_guard(s, l, 0, in_order(s, l, 1, body, sum->nest.moving));
    }
    rows->next = barrier(s);
    return rows;
}

// Sums into places, or what instances do on their own, by a team.
static Node *by_team(Share *s, const Node *sum)
{
    const Loops *l = &sum->nest.loops;
    Node *body = named_once(s, sum->body);
    if (lists_terms(sum->body)) return in_terms(s, l, body, sum->nest.moving);
    if (l->n == 0) {
        Node *lane = wrap_node(s, NODE_LANE, body);
        return l->guard ? under_condition(s, l->guard, lane) : lane;
    }
    if (sum->kind != NODE_REDUCE) {
        note_count(s->p, s->kernel, iterations_of_loops(l));
        return in_pairs(s, SHARE_ALONG, l, 0, body, sum->nest.moving, !sum->nest.plain);
    }
    Targets t = targets_of(l, sum->nest.n, sum->nest.target);
    if (!t.any) return into_one_place(s, sum);
    Loops o = {0};
    const int summed = order_loops(l, &t, &o);
    Node *many = NULL;
    if (!t.direct) {
        Node *groups = by_segment(s, sum, false);
        if (!groups && sum->nest.statistic && !sum->nest.counts) many = by_segment(s, sum, true);
        if (many && l->n > 1) return many;  // one place a key: with few keys chunks of rows have places of their own
        if (!groups && !many) groups = by_group(s, sum);
        if (groups) return groups;
    }
    note_count(s->p, s->kernel, iterations_of_loops(l));
    if (t.direct && !summed) return in_pairs(s, SHARE_ALONG, &o, 0, body, sum->nest.moving, true);
    if (!t.direct && sum->nest.counts) return counted(s, sum, body);
    Node *rows = by_rows(s, sum, body, t.direct ? &o : NULL, summed);
    if (!many) return rows;
    Expr *places = ex_num(rows->loop.narrays);
    for (int k = 0; k < sum->nest.n; k++) places = ex_mul2(places, sum->nest.extent[k]);
    Node *test = under_condition(s, ex_call2("<=", places, ex_num(FEW_PLACES)), rows);
    test->otherwise = many;
    return test;
}

static bool adds_to_locals(const Node *sum)
{
    const Node *first = sum->body;
    while (first && first->kind == NODE_LET) first = first->next;
    return sum->kind == NODE_REDUCE && first && first->kind == NODE_ASSIGN && first->assign.place.local;
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

static void share_nest(Share *s, Node *n)
{
    if (adds_to_locals(n)) n->body = into_locals(s, n);
    else if (s->team) n->body = by_team(s, n);
    else {
        Node *body = in_order(s, &n->nest.loops, 0, named_once(s, n->body), n->nest.moving);
        if (n->nest.loops.n == 0) body = n->nest.loops.guard ? under_condition(s, n->nest.loops.guard, body) : body;
        n->body = body;
    }
    if (n->nest.plain) keep_nothing(n->body);
}

static void share_loop(Share *s, Node *n)
{
    if (n->loop.of) s->elements[s->nelements++] = n;
    if (n->loop.how == SHARE_SERIAL || n->loop.how == SHARE_BACKWARD) share_list(s, n->body);
    else {
        s->own = s->others = false;
        share_scope(s, n->body, false, n->loop.how == SHARE_CREW || n->loop.how == SHARE_COLOUR_CREW);
        n->loop.own_rows = n->loop.how == SHARE_CREW && s->own && !s->others;
    }
    if (n->loop.of) s->nelements--;
}

static bool count_index(const NodePart *part, void *with)
{
    Count *c = with;
    if (part->kind == HAS_INDEX) c->factor[c->n++] = part->index->hi;
    return false;
}

static void share_list(Share *s, Node *list)
{
    for (Node *n = list; n; n = n->next) {
        Count own = {0};  // iterations of loops that the node itself is
        switch (n->kind) {
        case NODE_REDUCE:
        case NODE_NEST: share_nest(s, n); break;
        case NODE_LOOP: share_loop(s, n); break;
        case NODE_LANE: share_scope(s, n->body, false, false); break;
        default:
            each_part(n, count_index, &own);
            if (own.n) note_count(s->p, s->kernel, own);
            share_list(s, n->body);
            share_list(s, n->otherwise);
        }
    }
}

// The rows of segments that a sum has become: its only loop; or NULL.
static Node *rows_of_segments(const Node *sum)
{
    if (!sum || sum->kind != NODE_REDUCE || !sum->body || sum->body->kind != NODE_LOOP || sum->body->loop.how != SHARE_SEGMENTS)
        return NULL;
    return sum->body->body;
}

// Sums of products, and next to them a vector for each of the same groups, with the same factors: the factors are read once for both.
static void take_vectors(Node *list)
{
    for (Node *n = list; n; n = n->next) {
        Node *rows = rows_of_segments(n), *of = rows && rows->loop.product ? rows_of_segments(n->next) : NULL;
        if (!of || of->loop.n != 2 || of->loop.order != rows->loop.order || of->body->next || of->body->assign.times ||
            of->loop.index[1]->hi != rows->loop.index[1]->hi)
            continue;
        Index *const *i = rows->loop.index;
        Expr *e = ex_replace_index(ex_replace_index(of->body->assign.value, of->loop.index[0], ex_index(i[0])), of->loop.index[1],
                                   ex_index(i[1]));
        Expr *times = ex_div(e, rows->loop.product->factor);
        if (ex_mentions_index(times, i[1]) || ex_find(times, test_no_lane, NULL)) continue;
        rows->loop.product->vector = of;
        rows->loop.product->vector_times = times;
        n->next->body->loop.with = rows->loop.index[1]->hi;
    }
}

// ---- sums over the rows of the same groups ----

// Loops over groups that a sum has become: the totals of a group, the loop over its rows, and the lane that adds them to their places.
typedef struct GroupSums {
    Node *groups, *rows, *lane;
} GroupSums;

static bool only_adds(const Node *list)
{
    for (; list; list = list->next)
        if (list->kind != NODE_ASSIGN) return false;
    return true;
}

static bool group_sums(const Node *sum, GroupSums *out)
{
    if (sum->kind != NODE_REDUCE || !sum->body || sum->body->kind != NODE_LOOP || sum->body->loop.how != SHARE_GROUPS) return false;
    Node *n = sum->body->body;
    while (n && n->kind == NODE_LET) n = n->next;
    *out = (GroupSums){sum->body, n, n ? n->next : NULL};
    return n && n->kind == NODE_LOOP && n->loop.how == SHARE_ROWS && only_adds(n->body) && out->lane && out->lane->kind == NODE_LANE &&
           only_adds(out->lane->body);
}

// The same sum of a row, by another index.
static Var *total_of(const Node *rows, const Expr *value)
{
    for (const Node *m = rows->body; m; m = m->next)
        if (m->assign.value == value) return m->assign.place.local;
    return NULL;
}

static Expr *renamed(Expr *e, Index *from, Index *to) { return e ? ex_replace_index(e, from, ex_index(to)) : NULL; }

// A place of m, by the group of n: it may have the key in place of the group.
static Expr *place_renamed(const GroupSums *n, const GroupSums *m, Expr *e)
{
    if (!e) return NULL;
    return renamed(ex_replace(e, m->lane->lane.key, n->lane->lane.key), m->groups->loop.index[0], n->groups->loop.index[0]);
}

static void rename_places(Share *s, const GroupSums *n, const GroupSums *m, Place *at)
{
    at->element = place_renamed(n, m, at->element);
    for (int q = 0; q < at->n; q++) {
        Expr **subs = NEW_N(s->a, Expr *, at->sub[q].n);
        for (int i = 0; i < at->sub[q].n; i++) subs[i] = place_renamed(n, m, at->sub[q].at[i]);
        at->sub[q].at = subs;
        at->sub[q].offset = place_renamed(n, m, at->sub[q].offset);
    }
}

// What m sums over the rows of groups is summed by the loops of n. false: other rows, or too many sums.
static bool join_sums(Share *s, const GroupSums *n, const GroupSums *m)
{
    const Node *a = n->rows, *b = m->rows;
    if (a->loop.order != b->loop.order || a->loop.sorted != b->loop.sorted || a->loop.ntotals + b->loop.ntotals > GM_MOST_TOTALS)
        return false;
    for (Node *add = b->body, *next; add; add = next) {
        next = add->next;
        Expr *value = renamed(add->assign.value, b->loop.index[0], a->loop.index[0]);
        value = renamed(value, m->groups->loop.index[0], n->groups->loop.index[0]);
        Var *own = add->assign.place.local, *total = total_of(a, value);
        if (!total) {
            Node **at = &n->groups->body, *start = start_total(s, total = own);
            while ((*at)->kind == NODE_LET) at = &(*at)->next;
            start->next = *at;
            *at = start;
            last_of(n->rows->body)->next = add_value(s, own, value);
            n->rows->loop.total[n->rows->loop.ntotals++] = own;
        }
        for (Node *place = m->lane->body; place; place = place->next)
            if (place->assign.value == local_ref(own)) place->assign.value = local_ref(total);
    }
    for (Node *place = m->lane->body; place; place = place->next) rename_places(s, n, m, &place->assign.place);
    last_of(n->lane->body)->next = m->lane->body;
    return true;
}

// Rows are passed over once for all sums by the same groups. What lies between them adds as well, so that no place is read.
static void join_groups(Share *s, Node *list)
{
    GroupSums one, other;
    for (Node *n = list; n; n = n->next) {
        if (!group_sums(n, &one)) continue;
        for (Node *before = n; before->next && before->next->kind == NODE_REDUCE;) {
            if (group_sums(before->next, &other) && join_sums(s, &one, &other)) before->next = before->next->next;
            else before = before->next;
        }
    }
}

void share_loops(Lower *p, Kernel *k)
{
    Share s = {.p = p, .a = p->g->arena, .kernel = k, .team = k->kind == KERNEL_TEAM && !p->g->lesson};
    share_list(&s, k->body);
    take_vectors(k->body);
    join_groups(&s, k->body);
}
