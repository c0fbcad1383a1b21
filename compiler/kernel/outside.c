// outside.c -- what loops do not change is computed before them, and what expressions need before the statement that has them.
//
//   before   loop i in 1:N shared by SUM_ALONG                  after    let c1 = 1/sigma^2
//              update a += x[i]/sigma^2 * sum(j in 1:K, w[j])            reduce sum1 = sum(j in 1:K, w[j])
//                                                                        loop i in 1:N shared by SUM_ALONG
//                                                                          update a += x[i]/sigma^2 * sum(j in 1:K, w[j])
//
// Expressions stay as they are: a name is valid for its expression to the end of the scope (scope.h). A power, a call, a sum over an index
// or a sum of terms that has an unknown is named before the outermost loop that does not change it; then sums within expressions, matrices
// that a routine makes and arrays that it reads get nodes of their own in front of the statement.
//
// Needs: share done.     Gives: expressions without anything that needs a statement but has no name.     Keeps: the order of statements.
#include <math.h>
#include <string.h>
#include "lower.h"
#include "scope.h"

typedef enum { BY_LANE, BY_CREW_OF_LANES, BY_ALL_LANES } Who;  // who runs what is written here: sums are shared among them

// It, or a product that it is -1 times, has a name.
static bool is_known(const Scope *s, const Expr *e) { return scope_find(s, e) || scope_find_negative(s, e); }

typedef struct Walk {
    Lower *p;
    Arena *a;
    Kernel *kernel;
    Scope scope;
    Node **at;  // new nodes go here
    Who who;
    int temporaries;
    Map names;                   // of local variables
    const Expr *group;           // a subscript that is the group of a loop
    bool chosen;                 // within a choice
    bool statements;             // what needs no statement stays where it is
    struct LoopLocal *declared;  // locals of the loop that is looked into: what reads them stays
} Walk;

typedef struct LoopLocal {
    const Var *local;
    struct LoopLocal *next;
} LoopLocal;

static void need(Walk *w, Expr *e);
static void need_whole(Walk *w, Expr *e);
static void need_matrix(Walk *w, Expr *e);
static void keep_outside(Walk *w, Expr *e, const Loops *inner, const Var *moving);
static void visit_loop(Walk *w, Node *n);
static void walk(Walk *w, Node **first);

static Node *insert(Walk *w, NodeKind kind)
{
    Node *n = node_new(w->a, kind);
    n->next = *w->at;
    *w->at = n;
    w->at = &n->next;
    return n;
}

static Var *temporary(Walk *w, const char *stem) { return local_new(w->a, intern(arena_printf(w->a, "%s%d", stem, ++w->temporaries))); }

// A local variable by what it is, log_sigma, if that is short; else by a number.
static Var *named(Walk *w, const char *stem, const Expr *e)
{
    const char *name = local_name(w->p->g, e);
    if (!*name) return temporary(w, stem);
    Var *local = local_named(w->a, name);
    for (int k = 2; map_get(&w->names, local->name); k++) local = local_named(w->a, arena_printf(w->a, "%s_%d", name, k));
    map_put(w->a, &w->names, local->name, local);
    return local;
}

static bool take_local(const Var *v, void *with)
{
    Walk *w = with;
    if (v->kind == VAR_ELEMENT) map_put(w->a, &w->names, v->name, (void *)v);
    return false;
}

static bool take_part(const NodePart *part, void *with)
{
    Walk *w = with;
    if (part->kind == HAS_INSIDE || part->kind == HAS_AFTER) map_put(w->a, &w->names, part->name, (void *)part->name);
    if (part->kind == HAS_VALUE || part->kind == HAS_KEY || part->kind == HAS_WITHIN) ex_any_var(part->e, take_local, w);
    if (part->kind == HAS_PLACE && part->place->local) take_local(part->place->local, w);
    return false;
}

// Names that local variables have before any is given here.
static void take_names(Walk *w, const Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        each_part(n, take_part, w);
        each_array(n, take_local, w);
        if (n->kind == NODE_LET || n->kind == NODE_KNOW) take_local(n->let.local, w);
        take_names(w, n->body);
        take_names(w, n->otherwise);
    }
}

// Walks a list that is made here, in a scope of its own if it has one.
static void inner(Walk *w, Node **body, Who who, bool scope)
{
    Node **at = w->at;
    const Who outer = w->who;
    const int mark = w->scope.n;
    w->who = who;
    walk(w, body);
    w->who = outer;
    w->at = at;
    if (scope) scope_leave(&w->scope, mark);
}

// ---- what an expression needs ----

static bool whole_in_place(const Walk *w, const Expr *e)
{
    return e->kind == EX_REF && e->var->base == BASE_REAL && !is_real(w->p->out, e->var);
}

// A size: the sum, the largest or the least of data is written as a call.
static void need_extent(Walk *w, Expr *e)
{
    if (!has_data_total(e)) need(w, e);
}

static void need_extents(Walk *w, const Var *v)
{
    for (int k = 1; k < v->rank; k++) need_extent(w, v->dim[k]);
}

// ---- products of matrices ----

// A sum within another one, as in element (j, k) of W*C*W', sum(m, sum(l, W[j, l]*C[l, m])*W[k, m]): the inner sum has j and m and not k.
typedef struct Inner {
    const Walk *w;
    const Loops *over;
    const Index *own;
    Expr *found;
} Inner;

static int indices_held(const Loops *over, const Expr *e)
{
    int n = 0;
    for (int i = 0; i < over->n; i++) n += ex_mentions_index(e, over->index[i]);
    return n;
}

static Look inner_sum(const Expr *e, void *with)
{
    Inner *s = with;
    // may not exist elsewhere
    if (e->kind == EX_CALL && (e->fn == FN_if_else || e->fn == FN_AND || e->fn == FN_OR)) return SKIP;
    if (e->kind != EX_REDUCE || e->loose || e->fn != FN_sum || scope_find(&s->w->scope, e)) return LOOK;
    const int held = indices_held(s->over, e);
    if (held == 0 || held == s->over->n || !ex_mentions_index(e, s->own) || ex_rank(e->args[2]) > 0 ||
        predicted(s->w->p, s->w->kernel, (Expr *)e))
        return LOOK;
    s->found = (Expr *)e;
    return FOUND;
}

typedef struct Outer {
    Inner inner;
    Expr *sum, *opened;
    Index *index;
} Outer;

static Look outer_sum(const Expr *e, void *with)
{
    Outer *o = with;
    if (e->kind == EX_CALL && (e->fn == FN_if_else || e->fn == FN_AND || e->fn == FN_OR)) return SKIP;
    if (e->kind != EX_REDUCE || e->loose || e->fn != FN_sum || !ex_is_num(e->args[0], 1) || indices_held(o->inner.over, e->args[1]))
        return LOOK;
    o->index = index_new(ex_index_called(e), e->args[0], e->args[1]);
    o->opened = ex_open(e, o->index);
    o->inner.own = o->index;
    if (!ex_find(o->opened, inner_sum, &o->inner)) return LOOK;
    o->sum = (Expr *)e;
    return FOUND;
}

// An element of an array as the loops over all of them compute it, sums that change with some of these loops alone in arrays that are
// filled before: a product of three matrices takes 2 N^3 operations, and not N^4. In kernels whose lanes are all here, since each chain has
// one such array.
static Expr *products_outside(Walk *w, Expr *value, const Loops *over)
{
    const bool team = w->kernel->kind == KERNEL_TEAM && w->who == BY_ALL_LANES;
    if (!team && w->kernel->kind != KERNEL_ONCE) return value;
    Outer o = {.inner = {.w = w, .over = over}};
    while (ex_find(value, outer_sum, &o)) {
        Expr *dim[MAX_RANK], *at[MAX_RANK], *in_place[MAX_RANK], *product = o.inner.found;
        Index *fresh[MAX_RANK];
        int n = 0;
        for (int i = 0; i <= over->n; i++) {
            Index *of = i < over->n ? over->index[i] : o.index;
            if (!ex_mentions_index(o.inner.found, of)) continue;
            if (n == MAX_RANK || ex_unknown(of->hi)) return value;
            in_place[n] = ex_index(of);
            dim[n] = of->hi;
            fresh[n] = index_new(of->name, ex_num(1), of->hi);
            at[n] = ex_index(fresh[n]);
            product = ex_replace_index(product, of, at[n]);
            n++;
        }
        Var *array = work_array(w->p, ROLE_BLOCK, arena_printf(w->a, "product_%s", w->kernel->name), n, dim);
        array->lowered.filled_within = true;
        Node *first = NULL, **last = &first;
        for (int i = 0; i < n; i++) {
            Node *loop = i ? *last = node_new(w->a, NODE_LOOP) : (first = insert(w, NODE_LOOP));
            loop->loop.how = i || !team ? SHARE_SERIAL : SHARE_ALONG;
            loop->loop.n = 1;
            loop->loop.index[0] = fresh[i];
            last = &loop->body;
        }
        Node *set = *last = node_new(w->a, NODE_ASSIGN);
        set->assign.op = ASSIGN_SET;
        set->assign.place = place_element(ex_ref(array, n, arena_copy(w->a, at, sizeof *at * (size_t)n)));
        set->assign.value = product;
        visit_loop(w, first);
        Expr *body = ex_replace(o.opened, o.inner.found, ex_ref(array, n, in_place));
        value = ex_replace(value, o.sum, ex_reduce(o.sum->name, o.index, o.sum->args[0], o.sum->args[1], body));
    }
    return value;
}

static void need_whole(Walk *w, Expr *e)
{
    if (e->kind == EX_CALL && (e->fn == FN_inverse || e->fn == FN_inverse_spd || e->fn == FN_cholesky_decompose)) {
        need_matrix(w, e);
        return;
    }
    if (whole_in_place(w, e)) {
        need_extents(w, e->var);
        for (int i = 0; i < e->nargs; i++) need(w, e->args[i]);
        return;
    }
    if (scope_find(&w->scope, e)) return;
    const int rank = ex_rank(e);
    Expr *at[MAX_RANK];
    Loops over = {.n = rank};
    for (int k = 0; k < rank; k++) need_extent(w, ex_dim(e, k));
    Var *local = temporary(w, "array");
    for (int k = 0; k < rank; k++) at[k] = ex_index(over.index[k] = index_new(intern(k ? "k" : "j"), ex_num(1), ex_dim(e, k)));
    Expr *value = ex_at(e, rank, at);
    keep_outside(w, value, &over, NULL);
    value = products_outside(w, value, &over);
    Node *n = insert(w, NODE_ARRAY);
    n->array.key = e;
    n->array.local = local;
    for (int k = 0; k < rank; k++) n->array.index[k] = over.index[k];
    n->array.value = value;
    // What one element needs comes within the loops over all.
    Node **outer = w->at;
    const Who who = w->who;
    const int mark = w->scope.n;
    w->who = BY_LANE;
    w->at = &n->body;
    need(w, n->array.value);
    w->who = who;
    w->at = outer;
    scope_leave(&w->scope, mark);
    scope_know(&w->scope, e, n->array.local);
}

static void need_matrix(Walk *w, Expr *e)
{
    if (scope_find(&w->scope, e)) return;
    need_extent(w, ex_dim(e->args[0], 0));
    need_whole(w, e->args[0]);
    Node *n = insert(w, NODE_MATRIX);
    n->matrix.key = e;
    n->matrix.local = temporary(w, "matrix");
    scope_know(&w->scope, e, n->matrix.local);
}

static void keep_outside(Walk *w, Expr *e, const Loops *inner, const Var *moving);

static Node *let(Walk *w, Expr *key, Var *local, Expr *value)
{
    Node *n = insert(w, NODE_LET);
    n->let.key = key;
    n->let.local = local;
    n->let.value = value;
    n->let.type = key && ex_is_integer(key) ? "long" : w->kernel->number;
    if (key) scope_know(&w->scope, key, local);
    return n;
}

// ---- log-sum-exp ----

static Look test_long(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REDUCE || e->kind == EX_AT || (e->kind == EX_CALL && e->fn != FN_if_else && !function_rows[e->fn].infix) ||
                   (e->kind == EX_POW && e->number != 2)
               ? FOUND
               : LOOK;
}

static bool is_short(const Expr *e) { return e->size <= 60 && !ex_find(e, test_long, NULL); }

static Node *list_of(Node *node, Node *next)
{
    node->next = next;
    return node;
}

static Node *growing(Walk *w, Var *local, double start)
{
    Node *n = node_new(w->a, NODE_LET);
    n->let.local = local;
    n->let.type = "wide";
    n->let.grows = true;
    n->let.value = ex_num(start);
    return n;
}

static Node *each_turn(Walk *w, Index *i, AssignOp op, Var *local, Expr *value)
{
    Node *loop = node_new(w->a, NODE_LOOP), *update = loop->body = node_new(w->a, NODE_ASSIGN);
    loop->loop.how = SHARE_SERIAL;
    loop->loop.n = loop->loop.ntotals = 1;
    loop->loop.index[0] = i;
    loop->loop.total[0] = local;
    update->assign.op = op;
    update->assign.place.local = local;
    update->assign.value = value;
    return loop;
}

// Of terms that are quickly computed twice: the largest, then the sum of the exponentials of the others, by no branch.
static void sum_of_exponentials(Walk *w, Expr *e, Index *i, Expr *value)
{
    Var *most = temporary(w, "most"), *sum = temporary(w, "sum");
    Expr *m = local_ref(most), *finite = ex_call2("&&", ex_call2("<", ex_num(-INFINITY), m), ex_call2("<", m, ex_num(INFINITY)));
    Node *r = insert(w, NODE_REDUCE), *last = node_new(w->a, NODE_LET);
    r->nest.loops = (Loops){.n = 1, .index = {i}};
    r->nest.op = ASSIGN_LOG_ADD;
    last->let.key = e;
    last->let.local = temporary(w, "lse");
    last->let.value = ex_call3("if_else", finite, ex_add2(m, ex_call1("log", local_ref(sum))), m);
    last->let.type = w->kernel->number;
    r->body =
        list_of(growing(w, most, -INFINITY),
                list_of(each_turn(w, i, ASSIGN_SET, most, ex_call3("if_else", ex_call2("<", value, m), m, value)),
                        list_of(growing(w, sum, 0), list_of(each_turn(w, i, ASSIGN_ADD, sum, ex_call1("exp", ex_sub(value, m))), last))));
    inner(w, &r->body, w->who, false);
}

typedef struct Within {
    const Walk *w;
    const Expr *sum;
} Within;

static Look sum_within(const Expr *e, void *with)
{
    Within *s = with;
    if (scope_find(&s->w->scope, e)) return SKIP;
    if (e->kind != EX_REDUCE) return LOOK;
    s->sum = e;
    return FOUND;
}

// A team shares the terms of this sum, each of which may hold another sum: by these iterations a launch has its blocks.
static void note_terms(const Walk *w, Index *i, const Expr *value)
{
    Within s = {.w = w};
    Loops l = {.n = 1, .index = {i}};
    if (ex_find(value, sum_within, &s)) l.index[l.n++] = index_new(ex_index_called(s.sum), s.sum->args[0], s.sum->args[1]);
    note_count(w->p, w->kernel, iterations_of_loops(&l));
}

static void need_sum(Walk *w, Expr *e)
{
    const bool sum = e->fn == FN_sum, max = e->fn == FN_max, product = e->fn == FN_prod, lse = e->fn == FN_log_sum_exp;
    Expr *held = predicted(w->p, w->kernel, e);
    Var *total = lse ? temporary(w, "lse") : named(w, e->name, e);
    if (held) {
        need(w, held);
        let(w, e, total, held);
        return;
    }
    Index *i = index_new(ex_index_called(e), e->args[0], e->args[1]);
    Expr *value = ex_open(e, i);
    const Loops over = {.n = 1, .index = {i}};
    keep_outside(w, value, &over, NULL);
    if (lse && is_short(value)) {
        sum_of_exponentials(w, e, i, value);
        return;
    }
    const bool extreme = !sum && !product && !lse;
    const bool shared = (sum && w->who != BY_LANE) || (extreme && w->who == BY_ALL_LANES);
    Node *r = insert(w, NODE_REDUCE);
    r->nest.loops = over;
    r->nest.op = sum ? ASSIGN_ADD : product ? ASSIGN_MUL : lse ? ASSIGN_LOG_ADD : max ? ASSIGN_MAX : ASSIGN_MIN;
    Node *start = r->body = node_new(w->a, NODE_LET), *loop = start->next = node_new(w->a, NODE_LOOP),
         *update = loop->body = node_new(w->a, NODE_ASSIGN);
    start->let.local = total;
    start->let.type = lse ? "LogSum" : shared ? "wide" : w->kernel->number;
    start->let.grows = true;
    start->let.value = lse ? NULL : ex_num(sum ? 0 : product ? 1 : max ? -INFINITY : INFINITY);
    const Sharing along = max ? SHARE_MAX_ALONG : extreme ? SHARE_MIN_ALONG : SHARE_SUM_ALONG;
    loop->loop.how = !shared ? SHARE_SERIAL : w->who == BY_CREW_OF_LANES ? SHARE_SUM_CREW : along;
    if (loop->loop.how == SHARE_SUM_ALONG && w->kernel->kind == KERNEL_TEAM) note_terms(w, i, value);
    loop->loop.n = loop->loop.ntotals = 1;
    loop->loop.index[0] = i;
    loop->loop.total[0] = total;
    update->assign.op = r->nest.op;
    update->assign.place.local = total;
    update->assign.value = value;
    Node *last = loop->next = node_new(w->a, lse ? NODE_LET : NODE_KNOW);
    last->let.key = e;
    last->let.local = lse ? local_named(w->a, arena_printf(w->a, "%s_value", total->name)) : total;
    last->let.log_sum = total;
    last->let.type = w->kernel->number;
    // Only the body of a shared loop is one lane's; that of another is still everybody's.
    inner(w, &r->body, w->who, false);
}

// What is longer than this is written in parts that have names: an expression that shares its parts may be too long to write out.
enum { LONGEST = 2000 };

static Look statement(const Expr *e, void *with)
{
    const Walk *w = with;
    if (e->nargs && is_known(&w->scope, e)) return SKIP;
    return e->size > LONGEST || e->kind == EX_REDUCE || e->kind == EX_AT || (e->kind == EX_CALL && e->fn == FN_log_determinant) ? FOUND
                                                                                                                                : LOOK;
}

static bool needs_statements(Walk *w, const Expr *e) { return ex_find(e, statement, w); }

static void need_choice(Walk *w, Expr *e)
{
    need(w, e->args[0]);
    if (!needs_statements(w, e->args[1]) && !needs_statements(w, e->args[2])) {
        need(w, e->args[1]);
        need(w, e->args[2]);
        return;
    }
    Node *n = insert(w, NODE_CHOICE);
    n->choice.key = e;
    n->choice.local = temporary(w, "choice");
    for (int side = 1; side <= 2; side++) {
        Node *set = node_new(w->a, NODE_ASSIGN);
        set->assign.place.local = n->choice.local;
        set->assign.value = e->args[side];
        Node **body = side == 1 ? &n->body : &n->otherwise;
        *body = set;
        inner(w, body, w->who, true);
    }
    scope_know(&w->scope, e, n->choice.local);
}

static void need_parts(Walk *w, Expr *e);

static void need(Walk *w, Expr *e)
{
    if (e->nargs == 0 || is_known(&w->scope, e)) return;
    need_parts(w, e);
    if (statistic_mean(e) && !w->p->g->lesson && !e->loose) {  // it is read again and again where data may be missing
        let(w, e, named(w, "c", e), e);
        return;
    }
    if (e->size <= LONGEST || e->kind == EX_REF || e->kind == EX_REDUCE || ex_rank(e) > 0 || scope_find(&w->scope, e)) return;
    let(w, e, temporary(w, "part"), e);
}

static void need_parts(Walk *w, Expr *e)
{
    switch (e->kind) {
    case EX_NUM:
    case EX_INDEX: return;
    case EX_REF:
        if (e->nargs < e->var->rank) {
            need_whole(w, e);
            return;
        }
        need_extents(w, e->var);
        for (int i = 0; i < e->nargs; i++)
            if (e->args[i] != w->group) need(w, e->args[i]);
        return;
    case EX_ADD:
        for (int i = 0; i < e->nargs; i++) need(w, e->args[(i + (e->args[0]->kind == EX_NUM)) % e->nargs]);
        return;
    case EX_MUL:
    case EX_POW:
        for (int i = 0; i < e->nargs; i++) need(w, e->args[i]);
        return;
    case EX_CALL:
        if (e->fn == FN_if_else) {
            need_choice(w, e);
            return;
        }
        if (e->fn == FN_log_determinant) {
            need_extent(w, ex_dim(e->args[0], 0));
            need_whole(w, e->args[0]);
            let(w, e, temporary(w, "log_det"), e)->let.type = "wide";
            return;
        }
        for (int i = 0; i < e->nargs; i++) {
            if (ex_rank(e->args[i]) > 0) need_whole(w, e->args[i]);
            else need(w, e->args[i]);
        }
        return;
    case EX_REDUCE: need_sum(w, e); return;
    case EX_ARRAY: need_whole(w, e); return;
    case EX_AT:
        need_matrix(w, e->args[0]);
        for (int k = 1; k < e->nargs; k++) {
            if (k > 1) need_extent(w, ex_dim(e->args[0], k - 1));
            need(w, e->args[k]);
        }
        return;
    }
}

// ---- what loops do not change ----

static bool changes(const Expr *e, const Loops *inner)
{
    if (e->loose) return true;  // belongs to a sum further out
    for (int i = 0; i < inner->n; i++)
        if (ex_mentions_index(e, inner->index[i])) return true;
    return false;
}

static bool reads_declared(const Walk *w, const Expr *e)
{
    for (const LoopLocal *d = w->declared; d; d = d->next)
        if (ex_mentions(e, d->local)) return true;
    return false;
}

static bool worth_naming(const Expr *e)
{
    switch (e->kind) {
    case EX_POW:
    case EX_REDUCE: return true;
    case EX_CALL: return e->fn != FN_WITHIN && e->nargs > 0;
    case EX_ADD: return e->nargs > 1 && ex_unknown(e) && !ex_is_integer(e);  // a subscript is written one less
    case EX_NUM:
    case EX_REF:
    case EX_INDEX:
    case EX_ARRAY:
    case EX_AT: break;
    case EX_MUL: return statistic_mean(e) != NULL;
    }
    return false;
}

// Whether e reads an element that may exist only where a guard is true: u[g[i]], x[t - 1].
static Look look_up(const Expr *e, void *with)
{
    (void)with;
    for (int i = 0; i < e->nargs && e->kind == EX_REF; i++)
        if (e->args[i]->kind != EX_INDEX && e->args[i]->kind != EX_NUM) return FOUND;
    return LOOK;
}

static bool looks_up(const Expr *e) { return ex_find(e, look_up, NULL); }

// What is not there, or divides by a whole number that may be 0, if a choice is made otherwise.
static Look test_chosen(const Expr *e, void *with)
{
    (void)with;
    if (e->kind == EX_AT || e->kind == EX_ARRAY || e->kind == EX_REDUCE || (e->kind == EX_CALL && ex_is_integer(e))) return FOUND;
    for (int k = 0; k < e->nargs && e->kind == EX_REF; k++)
        if (e->args[k]->kind != EX_INDEX || !e->args[k]->index->lo || !ex_is_num(e->args[k]->index->lo, 1) ||
            e->args[k]->index->hi != e->var->dim[k])
            return FOUND;
    return e->kind == EX_REF && e->nargs < e->var->rank ? FOUND : LOOK;
}

// The parts of e that the inner loops do not change. Where these test a guard, parts that may exist only where it is true are left out. Of
// a choice only the condition; but sites of a series choose by the element, and have the same parts again and again.
static void keep(Walk *w, Expr *e, const Loops *inner, const Var *moving, uint64_t walk)
{
    if (e->nargs == 0 || e->kept == walk || is_known(&w->scope, e)) return;
    e->kept = walk;
    const bool statements = w->statements || w->p->g->lesson;
    if (worth_naming(e) && !(statements && !needs_statements(w, e)) && !(w->chosen && ex_find(e, test_chosen, NULL)) &&
        !(inner->guard && looks_up(e)) && !changes(e, inner) && !reads_declared(w, e) && !(moving && ex_mentions(e, moving)) &&
        ex_rank(e) == 0) {
        Expr *exists = reads_inside(w->p->g, e);
        if (!exists || !needs_statements(w, e)) {
            need(w, e);
            if (!scope_find(&w->scope, e)) let(w, e, named(w, "c", e), exists ? ex_call3("if_else", exists, e, ex_num(0)) : e);
            return;
        }
    }
    if (e->kind == EX_AT && !w->chosen && !(inner->guard && looks_up(e->args[0])) && !reads_inside(w->p->g, e->args[0]) &&
        !changes(e->args[0], inner) && !reads_declared(w, e) && !(moving && ex_mentions(e->args[0], moving))) {
        need_matrix(w, e->args[0]);
        return;
    }
    if (e->kind == EX_CALL && (e->fn == FN_if_else || e->fn == FN_AND || e->fn == FN_OR)) {
        keep(w, e->args[0], inner, moving, walk);  // the rest may not be safe to compute
        const bool chosen = w->chosen;
        w->chosen = true;
        for (int i = 1; i < e->nargs && e->fn == FN_if_else && w->kernel->kind == KERNEL_FUNCTION; i++)
            keep(w, e->args[i], inner, moving, walk);
        w->chosen = chosen;
        return;
    }
    // it will be in an array: its terms are not computed here
    if (e->kind == EX_REDUCE && !e->loose && predicted(w->p, w->kernel, e)) return;
    for (int i = 0; i < e->nargs; i++) keep(w, e->args[i], inner, moving, walk);
}

static void keep_outside(Walk *w, Expr *e, const Loops *inner, const Var *moving) { keep(w, e, inner, moving, ex_walk()); }

static bool test_element(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_ELEMENT;
}

// Parts of the values below a loop that neither it nor a loop within changes.
static void keep_values(Walk *w, const Node *list, const Loops *loops, const Var *moving)
{
    Loops here = *loops;
    const Loops *in = &here;
    for (const Node *n = list; n; n = n->next) {
        if (n->kind == NODE_SKIP) here.guard = n->skip.condition;
        if (n->kind == NODE_ASSIGN) keep_outside(w, n->assign.value, in, moving);
        if (n->kind == NODE_LET) {
            if (n->let.value) keep_outside(w, n->let.value, in, moving);
            LoopLocal *d = NEW(w->a, LoopLocal);
            *d = (LoopLocal){n->let.local, w->declared};
            w->declared = d;
        }
        for (int i = 0; n->kind == NODE_SAMPLE && i < n->sample.site->nargs; i++) {
            Expr *e = n->sample.site->args[i];
            if (!ex_any_var(e, test_element, NULL)) keep_outside(w, e, in, moving);  // does not speak of the value to be drawn
        }
        if (n->kind == NODE_BOUNDS) {
            const Factor *f = n->bounds.factor;
            Expr *ends[] = {n->bounds.interval ? f->from : f->least, n->bounds.interval ? f->to : f->most};
            for (int i = 0; i < 2; i++)
                if (ends[i]) keep_outside(w, ends[i], in, moving);
        }
        if (n->kind == NODE_IF && !n->test.few) {
            Loops guarded = *in;
            guarded.guard = n->test.condition;
            keep_values(w, n->body, &guarded, moving);
            keep_values(w, n->otherwise, &guarded, moving);
        }
        Loops more = *in;
        const int most = (int)(sizeof more.index / sizeof *more.index);
        if (n->kind == NODE_LOOP && more.n + n->loop.n > most) continue;
        for (int i = 0; n->kind == NODE_LOOP && i < n->loop.n; i++) more.index[more.n++] = n->loop.index[i];
        if (n->kind == NODE_LOOP || n->kind == NODE_REDUCE || n->kind == NODE_LANE ||
            (n->kind == NODE_NEST && n->nest.loops.n == 0 && !n->nest.loops.guard && w->kernel->kind == KERNEL_FUNCTION))
            keep_values(w, n->body, &more, moving);
    }
}

// ---- matrices that neither a sampler's trials nor the elements that are drawn change ----

typedef struct Steady {
    Walk *w;
    const Node *list;
    const Var *moving;
    Loops inner;
} Steady;

static bool test_read(const Var *v, void *with) { return v->kind != VAR_ELEMENT && ex_mentions(with, v); }

// Whether a matrix may be computed before the list, which has these loops around its place: no value that is tried, no local and
// nothing that the list writes is in it.
static bool steady(const Steady *s, Expr *e)
{
    return !changes(e, &s->inner) && !(s->inner.guard && looks_up(e)) && !reads_inside(s->w->p->g, e) &&
           !ex_any_var(e, test_element, NULL) && !(s->moving && ex_mentions(e, s->moving)) && !writes(s->list, test_read, e);
}

static void keep_matrices_of(const Steady *s, Expr *e, uint64_t walk)
{
    if (e->nargs == 0 || e->kept == walk || is_known(&s->w->scope, e)) return;
    e->kept = walk;
    if (e->kind == EX_CALL && (e->fn == FN_if_else || e->fn == FN_AND || e->fn == FN_OR)) return;  // may not be safe to compute
    if (e->kind == EX_AT && steady(s, e->args[0])) {
        need_matrix(s->w, e->args[0]);
        return;
    }
    if (e->kind == EX_CALL && e->fn == FN_log_determinant && steady(s, e)) {
        need(s->w, e);
        return;
    }
    for (int i = 0; i < e->nargs; i++) keep_matrices_of(s, e->args[i], walk);
}

static void keep_matrices_in(const Steady *s, const Node *list)
{
    Steady here = *s;
    for (const Node *n = list; n; n = n->next) {
        if (n->kind == NODE_SKIP) here.inner.guard = n->skip.condition;
        if (n->kind == NODE_ASSIGN) keep_matrices_of(&here, n->assign.value, ex_walk());
        if (n->kind == NODE_LET && n->let.value) keep_matrices_of(&here, n->let.value, ex_walk());
        if (n->kind == NODE_IF) continue;  // may not be safe to compute
        Steady more = here;
        const Loops *l = n->kind == NODE_REDUCE || n->kind == NODE_NEST ? &n->nest.loops : NULL;
        const int added = l ? l->n : n->kind == NODE_LOOP ? n->loop.n : 0;
        if (more.inner.n + added > (int)(sizeof more.inner.index / sizeof *more.inner.index)) continue;
        for (int i = 0; i < added; i++) more.inner.index[more.inner.n++] = l ? l->index[i] : n->loop.index[i];
        if (l && l->guard) more.inner.guard = l->guard;
        keep_matrices_in(&more, n->body);
    }
}

// moving: is written by the list, though no node of it shows that; or NULL. A series is computed again within samplers: what reads one
// stays.
static void keep_matrices(Walk *w, const Node *list, const Var *moving)
{
    const bool alone = w->kernel->kind == KERNEL_ONCE || (w->kernel->kind == KERNEL_TEAM && w->who == BY_ALL_LANES);
    if (alone && !w->p->g->series) keep_matrices_in(&(Steady){.w = w, .list = list, .moving = moving}, list);
}

// ---- statements ----

static void need_place(Walk *w, const Place *at)
{
    if (at->element) {
        need_extents(w, at->element->var);
        for (int i = 0; i < at->element->nargs; i++)
            if (at->element->args[i] != w->group) need(w, at->element->args[i]);
    }
    for (int k = 0; at->array && k < at->n; k++) {
        const Sub *s = &at->sub[k];
        if (k && s->extent) need_extent(w, s->extent);
        for (int i = 0; i < s->n; i++) {
            if (i && s->of) need_extent(w, s->of->dim[s->first + i]);
            if (s->at[i] != w->group) need(w, s->at[i]);
        }
    }
}

static void need_argument(Walk *w, Expr *e)
{
    if (ex_rank(e) == 0) {
        need(w, e);
        return;
    }
    need_whole(w, e);
    need_extent(w, ex_dim(e, 0));
}

static void need_count(Walk *w, const Count *c)
{
    for (int i = 0; i < c->n; i++) need_extent(w, c->factor[i]);
}

// An element of a vector is drawn, and the kernel reads predictors that it enters: they follow.
static void follow_after(Walk *w, Node *n, Expr *element, Var *change)
{
    Node *after = follow(w->p, w->kernel, element->args[0], change), *last = after;
    while (last->next) last = last->next;
    last->next = n->next;
    n->next = after;
}

static void keep_predictors(Walk *w, Node *n)
{
    Expr *element = n->assign.place.element;
    if (n->assign.op != ASSIGN_SET || !element || !w->kernel->followed || element->var != w->kernel->followed ||
        !reads_predictor(w->p, w->kernel))
        return;
    Var *change = local_new(w->a, "change");
    let(w, NULL, change, ex_sub(n->assign.value, element));
    follow_after(w, n, element, change);
}

static void visit_loop(Walk *w, Node *n)
{
    if (n->loop.keeps) {
        Loops all = {.n = n->loop.n};
        memcpy(all.index, n->loop.index, sizeof *all.index * (size_t)all.n);
        keep_values(w, n->body, &all, n->loop.moving);
        w->declared = NULL;
    }
    if (n->loop.of && n->loop.how == SHARE_SERIAL) {
        Node *rest = n->next;
        n->next = NULL;  // the loop alone
        keep_matrices(w, n, n->loop.of);
        n->next = rest;
    }
    for (int i = 0; i < n->loop.n; i++) {
        if (n->loop.index[i]->lo) need(w, n->loop.index[i]->lo);
        need_extent(w, n->loop.of ? n->loop.of->dim[i] : n->loop.index[i]->hi);
    }
    need_count(w, &n->loop.iterations);
    scope_written(&w->scope, n->body);  // before the second iteration
    const Who who = n->loop.how == SHARE_SERIAL || n->loop.how == SHARE_BACKWARD    ? w->who
                    : n->loop.how == SHARE_CREW || n->loop.how == SHARE_COLOUR_CREW ? BY_CREW_OF_LANES
                                                                                    : BY_LANE;
    inner(w, &n->body, who, true);
}

static bool need_part(const NodePart *part, void *with)
{
    Walk *w = with;
    switch (part->kind) {
    case HAS_VALUE: need_argument(w, part->e); break;
    case HAS_AT: need_place(w, &(Place){.element = part->e}); break;
    case HAS_PLACE: need_place(w, part->place); break;
    case HAS_SIZE: need_extent(w, part->e); break;
    case HAS_INDEX: need_extent(w, part->index->hi); break;
    case HAS_WITHIN:
    case HAS_KEY:
    case HAS_ARRAY:
    case HAS_WRITTEN:
    case HAS_INSIDE:
    case HAS_AFTER:
    case HAS_TRIES:
    case HAS_AGAIN:
    case HAS_DRAWN:
    case HAS_FOLLOWED: break;
    }
    return false;
}

static void visit_let(Walk *w, Node *n)
{
    const Var *known = n->let.key ? scope_find(&w->scope, n->let.key) : NULL;
    if (known && reads_local(n->next, n->let.local)) {  // it has a name already, and this one is read, too
        n->let.value = local_ref((Var *)known);
        n->let.key = NULL;
        return;
    }
    if (known) {
        n->kind = NODE_KNOW;
        n->let.local = (Var *)known;
        return;
    }
    if (n->let.value) need(w, n->let.value);
    if (n->let.key) scope_know(&w->scope, n->let.key, n->let.local);
}

static void visit_lane(Walk *w, Node *n)
{
    const Expr *group = w->group;
    if (n->lane.key) w->group = n->lane.key;
    else if (w->who != BY_LANE) {  // sums are shared before one lane is alone
        w->statements = true;
        keep_values(w, n->body, &(Loops){0}, NULL);
        w->statements = false;
        w->declared = NULL;
    }
    inner(w, &n->body, BY_LANE, true);
    w->group = group;
}

// The value that is drawn is named within.
static void visit_sample(Walk *w, Node *n)
{
    const Site *t = n->sample.site;
    for (int i = 0; i < t->nargs && i < t->nsample + 4; i++) need_argument(w, t->args[i]);
    if (t->guarded) need_argument(w, t->args[t->nargs - 1]);  // behind those of a search, which are computed within
    need_place(w, &(Place){.element = ex_ref(t->var, t->n, t->subscript)});
    inner(w, &n->body, w->who, true);
}

// The body is run again and again, after what the node writes has changed.
static void visit_trials(Walk *w, Node *n)
{
    scope_wrote(&w->scope, n);
    inner(w, &n->body, w->who, true);
}

static bool find_followed(const NodePart *part, void *with)
{
    const Conditional **c = with;
    if (part->kind == HAS_FOLLOWED) *c = part->c;
    return *c != NULL;
}

// Where the node changes an element, predictors that hold it follow.
static void visit_sampler(Walk *w, Node *n)
{
    const Conditional *c = NULL;
    if (!each_part(n, find_followed, &c)) {
        visit_trials(w, n);
        return;
    }
    keep_matrices(w, n->body, c->whole ? c->var : NULL);
    visit_trials(w, n);
    if (!w->kernel->followed || !reads_predictor(w->p, w->kernel)) return;
    n->follows = true;
    follow_after(w, n, c->current, local_new(w->a, "change"));
}

static void visit(Walk *w, Node *n)
{
    switch (n->kind) {
    case NODE_LET: visit_let(w, n); return;
    case NODE_KNOW: scope_know(&w->scope, n->let.key, n->let.local); return;
    case NODE_REDUCE:
    case NODE_NEST: inner(w, &n->body, w->who, false); return;
    case NODE_LOOP: visit_loop(w, n); return;
    case NODE_LANE: visit_lane(w, n); return;
    case NODE_SAMPLE: visit_sample(w, n); return;
    default: each_part(n, need_part, w);
    }
    switch (n->kind) {
    case NODE_IF:
        if (!n->test.negated) w->p->few_only = n->test.few;
        inner(w, &n->body, w->who, true);
        w->p->few_only = NULL;
        inner(w, &n->otherwise, w->who, true);
        break;
    case NODE_ASSIGN: keep_predictors(w, n); break;
    default: visit_sampler(w, n);
    }
}

static void walk(Walk *w, Node **first)
{
    Node **at = first;
    while (*at) {
        Node *n = *at;
        w->at = at;
        visit(w, n);
        scope_wrote(&w->scope, n);
        at = &n->next;
    }
}

void name_outside(Lower *p, Kernel *k)
{
    Walk w = {.p = p,
              .a = p->g->arena,
              .kernel = k,
              .scope = {.arena = p->g->arena, .g = p->g},
              .who = k->kind == KERNEL_TEAM ? BY_ALL_LANES : BY_LANE};
    take_names(&w, k->body);
    walk(&w, &k->body);
    scope_leave(&w.scope, 0);
}
