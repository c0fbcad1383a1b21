// cost_body.c -- what one run of a kernel's body costs: expressions, loops, draws.
//
// What has a name is computed once, and so are equal calls within a scope. Of branches all are counted; a slice sampler is taken to try six
// values.
//
// Needs: the kernels as all passes leave them.     Gives: cost_of_body.     Keeps: them, untouched.
#include <math.h>
#include <string.h>
#include "cost_inside.h"

enum { TRIED_BY_SLICE = 6, TRIED_BY_TRANSFER = 8 };

// In multiply-adds: a call; an iteration of a loop; a value tried; a product of numbers with exponents.
enum { CALL = 15, ITERATION = 1, TRY = 150, SCALED = 8, LOG_ADD = 10 };

// On a GPU, in multiply-adds of one lane that wait for each other (cost.c): a sum by a team; times the cube root of its iterations, what it
// takes blocks to wait for each other (some 1 us by one block, some 7 by two hundred, both estimates); lanes of a crew.
enum { TEAM_SUM = 200, MORE_BLOCKS = 40, CREW = 32 };
enum { CHUNK_OF_STATES = 32, WAITS_OF_STATES = 180 };  // device/states.h: 0.27 ms for 3000 times of 4 states
// device/band_scan.h: a walk of 10^5 places takes 0.21 ms, of 10^6 0.45
enum { MOST_SCANNED = 8, BAND_ELEMENT = 60, WAITS_OF_BAND = 25000 };
static const double SHARE_OF_BAND = 0.03;
enum { SHORT = 12 };  // iterations of an inner loop, too few to do several at once

// ---- expressions ----

static bool called_before(Counter *k, Expr *e)
{
    for (int i = 0; i < k->ncalled; i++)
        if (k->called[i] == e) return true;
    ROOM(k->p->g->arena, k->called, k->ncalled, k->room);
    k->called[k->ncalled++] = e;
    return false;
}

// A logarithm that is kept beside its value: it is taken by a choice, row by row.
static bool reads_kept(const Expr *e)
{
    return (e->fn == FN_log || e->fn == FN_log1m) && e->args[0]->kind == EX_REF && e->args[0]->var->lowered.kept_log;
}

static void count_expr(Counter *k, Expr *e, Cost *to)
{
    if (scope_find(&k->scope, e)) return;
    switch (e->kind) {
    case EX_NUM:
    case EX_INDEX: break;
    case EX_REF:
        if (e->var->rank && e->nargs) to->bytes = ex_add2(to->bytes, ex_num(e->var->base == BASE_INT ? 4 : 8));
        for (int i = 0; i < e->nargs; i++)
            if (e->args[i]->kind == EX_REF) count_expr(k, e->args[i], to);  // a gather; other subscripts cost next to nothing
        break;
    case EX_ADD:
    case EX_MUL:
        cost_operate(to, ex_num(e->nargs - 1));
        for (int i = 0; i < e->nargs; i++) count_expr(k, e->args[i], to);
        break;
    case EX_POW:
    case EX_CALL:
    case EX_AT:
        if (e->kind == EX_POW) cost_labour_in_row(to, ex_num(1), cost_units_of_power(e->number));
        else if (e->kind == EX_CALL) {
            if (called_before(k, e)) break;
            const Units u = cost_units(e->name, CALL);
            cost_labour_in_row(to, ex_num(reads_kept(e) ? 2 : 1), u);
        }
        for (int i = 0; i < e->nargs; i++) count_expr(k, e->args[i], to);
        break;
    case EX_REDUCE:
    case EX_ARRAY: {
        const bool sum = e->kind == EX_REDUCE;
        Expr *lo = sum ? e->args[0] : ex_num(1), *hi = e->args[sum];
        Index *j = index_new(ex_index_called(e), lo, hi);
        Cost body = cost_none();
        count_expr(k, ex_open(e, j), &body);
        if (sum) cost_operate(&body, ex_num(1));
        cost_add(to, cost_over(body, j, lo, hi));
        break;
    }
    }
}

// ---- nodes ----

static Cost count_list(Counter *k, const Node *list);

Cost cost_of_body(Counter *k, const Node *body)
{
    const int known = k->scope.n, called = k->ncalled;
    const Cost c = count_list(k, body);
    scope_leave(&k->scope, known);
    k->ncalled = called;
    return c;
}

static Expr *size(const Var *v, int first, int n)
{
    Expr *all = ex_num(1);
    for (int d = first; d < first + n; d++) all = ex_mul2(all, v->dim[d]);
    return all;
}

// Whether lanes share the iterations of a loop, each its own.
static bool is_shared(Sharing how) { return how != SHARE_SERIAL && how != SHARE_BACKWARD && how != SHARE_IN_TURN && how != SHARE_ROWS; }

static Cost count_iterations(const Node *n, Cost c)
{
    const Sharing how = n->loop.how;
    if (how == SHARE_MISSING || how == SHARE_IN_TURN) return c;  // of each missing value
    if (how == SHARE_GROUPS) return cost_times(c, n->loop.order->extent);
    if (how == SHARE_SEGMENTS) return c;  // its body has the rows of all groups
    if (how == SHARE_SEGMENT_PLACES) {
        for (int i = n->loop.n - 1; i > 0; i--) c = cost_over(c, n->loop.index[i], n->loop.index[i]->lo, n->loop.index[i]->hi);
        return cost_times(c, n->loop.order->row->hi);
    }
    if (how == SHARE_ROWS || n->loop.order) return cost_times(c, ex_mul2(n->loop.order->row->hi, ex_pow(n->loop.order->extent, -1)));
    if (n->loop.of) return cost_times(c, how == SHARE_SERIAL ? n->loop.of->dim[n->loop.field] : size(n->loop.of, 0, n->loop.n));
    for (int i = n->loop.n - 1; i >= 0; i--) c = cost_over(c, n->loop.index[i], n->loop.index[i]->lo, n->loop.index[i]->hi);
    return c;
}

static bool holds_loop(const Node *list)
{
    for (const Node *n = list; n; n = n->next)
        if (n->kind == NODE_LOOP || holds_loop(n->body) || (n->kind == NODE_IF && holds_loop(n->otherwise))) return true;
    return false;
}

// Where several iterations may be done at once: of a loop over pairs, those of the inner one, if it is long enough; and so within the
// iterations of another loop.
static Expr *work_at_once(const Node *n, Cost c)
{
    const bool within = n->loop.n > 1 || n->loop.how == SHARE_SERIAL;
    const Index *inner = within && n->loop.n > 0 && !n->loop.order && !n->loop.of ? n->loop.index[n->loop.n - 1] : NULL;
    if (!inner) return c.row;
    return ex_add2(c.row, ex_mul2(ex_add2(c.work, ex_neg(c.row)), ex_call2("<=", cost_rows(inner->lo, inner->hi), ex_num(SHORT))));
}

static Cost count_loop(Counter *k, const Node *n)
{
    Cost c = cost_of_body(k, n->body);
    cost_spend_in_row(&c, ex_num(ITERATION), ex_num(operation.in_row));
    if (ex_is_num(c.draws, 0) && !holds_loop(n->body)) c.work = work_at_once(n, c);
    c.row = c.work;
    Expr *of_a_turn = c.lane;
    c = count_iterations(n, c);
    const bool waits = is_reduced(n->loop.how) || n->loop.how == SHARE_INTO || n->loop.how == SHARE_KEYED;
    Expr *sum = ex_num(0);
    if (waits) {
        Cost one = cost_none();
        one.operations = ex_num(1);
        sum = ex_add2(ex_num(TEAM_SUM), ex_mul2(ex_num(MORE_BLOCKS), ex_pow(count_iterations(n, one).operations, 1.0 / 3)));
    }
    if (n->loop.how == SHARE_SUM_CREW) c.lane = ex_mul2(ex_num(1.0 / CREW), c.lane);
    else if (is_shared(n->loop.how)) c.lane = ex_add2(of_a_turn, sum);
    return c;
}

typedef struct Counting {
    Counter *k;
    Cost *to;
    // of a table: its places, and what one of them costs
    Expr *places;
    Cost within;
    // values for which the body is run; and what is computed again for each
    int tries;
    Cost again;
} Counting;

static void count_one(Expr *e, void *with)
{
    const Counting *c = with;
    count_expr(c->k, e, c->to);
}

// An element that is read by its place is the routine's.
static bool count_part(const NodePart *part, void *with)
{
    if (part->kind == HAS_VALUE) count_one(part->e, with);
    if (part->kind == HAS_PLACE) each_subscript(part->place, count_one, with);
    return false;
}

// A differential equation is solved in steps, whose number depends on the data: for an estimate, a few for each time of the solution.
enum { EVALUATIONS_OF_A_STEP = 6, STEPS_AT_LEAST = 20 };

static Cost count_solution(Counter *k, const Ode *o, bool slopes)
{
    const Kernel *const lists[] = {k->p->setup.first, k->p->sweep.first};
    Expr *n = ex_dim(o->call, 1),
         *evaluations = ex_mul2(ex_num(EVALUATIONS_OF_A_STEP), ex_add2(ex_dim(o->call, 0), ex_num(STEPS_AT_LEAST)));
    Cost one = cost_none();
    for (int i = 0; i < 2; i++)
        for (const Kernel *f = lists[i]; f; f = f->next)
            if (f->ode == o && (f->of_ode == ODE_RIGHT_SIDE || (slopes && f->of_ode == ODE_DERIVATIVES)))
                cost_add(&one, cost_of_body(k, f->body));
    cost_operate(&one, ex_mul2(ex_num(2), n));
    if (slopes) cost_operate(&one, ex_mul(4, (Expr *[]){ex_num(2), n, n, o->columns}));
    return cost_times(one, evaluations);
}

static Cost count_series(Counter *k, const Series *s, bool slopes, bool one)
{
    Cost c = cost_none();
    for (const Kernel *f = k->p->sweep.first; f; f = f->next)
        if (f->series == s) cost_add(&c, cost_of_body(k, one ? f->body->body : f->body));
    const Ode *o = s->var[0]->sites->ode;
    if (!o || !slopes) return c;
    Cost more = count_solution(k, o, true);
    for (int i = 0; i < o->plates.n; i++) more = cost_times(more, cost_rows(o->plates.index[i]->lo, o->plates.index[i]->hi));
    cost_add(&c, more);
    return c;
}

static Cost tried(Counter *k, const Node *body)
{
    Cost c = cost_of_body(k, body);
    cost_spend(&c, ex_num(TRY));
    return c;
}

static void count_node(Counter *k, const Node *n, Cost *to);

static bool find_tries(const NodePart *part, void *with)
{
    if (part->kind == HAS_TRIES) ((Counting *)with)->tries = part->times;
    return part->kind == HAS_TRIES;
}

// What is computed again for each value.
static bool count_again(const NodePart *part, void *with)
{
    Counting *c = with;
    for (const Node *n = part->kind == HAS_AGAIN ? part->list : NULL; n; n = n->next) count_node(c->k, n, &c->again);
    return false;
}

// A table is filled with the last of its expressions, for all values of its indices.
static bool count_table(const NodePart *part, void *with)
{
    Counting *c = with;
    if (part->kind == HAS_INDEX) c->places = ex_mul2(c->places, part->index->hi);
    if (part->kind == HAS_WITHIN) {
        Cost one = cost_none();
        count_expr(c->k, part->e, &one);
        c->within = one;
    }
    return false;
}

// As the row of kernel.def has it: values, tables that it fills, and a body that is run once, or for each value tried.
static void count_parts(Counter *k, const Node *n, Cost *to)
{
    Counting with = {.k = k, .to = to, .places = ex_num(1), .within = cost_none(), .again = cost_none()};
    each_part(n, count_part, &with);
    each_part(n, count_table, &with);
    cost_add(to, cost_times(with.within, with.places));
    if (each_part(n, find_tries, &with)) {
        cost_add(to, cost_times(tried(k, n->body), ex_num(with.tries)));
        each_part(n, count_again, &with);
        cost_add(to, cost_times(with.again, ex_num(with.tries)));
        cost_draw(to, ex_num(1), cost_units("uniform_between", DRAW).alone);
    } else cost_add(to, cost_of_body(k, n->body));
}

// What draws, by the name that it has in the runtime.
static const char *routine_of(const Counter *k, const Node *draw)
{
    if (!draw->draw.call) return draw->draw.routine;
    return draw->draw.law ? arena_printf(k->p->g->arena, "%s_drawn", draw->draw.call->name) : draw->draw.call->name;
}

static bool is_no_data(const Var *v, void *with)
{
    (void)with;
    return v->kind != VAR_DATA;
}

// The first argument of a routine; NULL: it is an expression of others.
static Expr *first_argument(const Node *n)
{
    const Ast *call = n->draw.call, *first = call && call->nkids ? call->kid[0] : NULL;
    for (int i = 0; i < n->draw.nargs; i++) {
        const DrawArg *a = &n->draw.arg[i];
        if (call && (!first || first->kind != AST_NAME || !a->name || strcmp(a->name, first->name) != 0)) continue;
        return a->value ? a->value : ex_num(a->number);
    }
    return NULL;
}

// A routine that adds up as many draws as a count says: of an unknown one, many. NULL: no such routine.
static Expr *units_by_count(const char *routine, const Node *n)
{
    static const struct {
        const char *name;
        double once, each, most, beyond;
    } known[] = {
#define COST_BY_COUNT(name, ...) {#name, __VA_ARGS__},
#include "cost.def"
    };
    for (size_t i = 0; routine && i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, routine) != 0) continue;
        Expr *count = first_argument(n);
        if (!count || ex_any_var(count, is_no_data, NULL)) return ex_num(known[i].beyond);
        Expr *all = ex_plus(ex_mul2(ex_num(known[i].each), count), known[i].once - known[i].beyond);
        return ex_plus(ex_mul2(ex_call2("<=", count, ex_num(known[i].most)), all), known[i].beyond);
    }
    return NULL;
}

static void count_draw(Counter *k, const Node *n, Cost *to)
{
    const char *routine = routine_of(k, n);
    Expr *units = units_by_count(routine, n), *draws = n->draw.whole ? n->draw.whole : ex_num(1);
    if (!units) units = ex_num(cost_units(routine, DRAW).alone);
    to->draws = ex_add2(to->draws, draws);
    cost_spend(to, ex_mul2(units, draws));
    if (n->draw.whole) cost_operate(to, ex_mul2(ex_num(0.5), ex_pow(n->draw.whole, 2)));
}

static void count_weigh(Counter *k, const Node *n, Cost *to)
{
    // each element has values of its own
    const bool transfer = n->weigh.last->kind == EX_REF && n->weigh.last->var->hidden;
    Expr *values = ex_add(3, (Expr *[]){n->weigh.last, ex_neg(n->weigh.first), ex_num(1)});
    cost_add(to, cost_times(cost_of_body(k, n->body), transfer ? ex_num(TRIED_BY_TRANSFER) : values));
    cost_draw(to, ex_num(1), cost_units("uniform_between", DRAW).alone);
}

static void count_constrained(Counter *k, const Node *n, Cost *to)
{
    Cost c = cost_times(tried(k, n->body), ex_num(TRIED_BY_SLICE));
    cost_draw(&c, ex_num(1), cost_units("uniform_between", DRAW).alone);
    cost_add(to, cost_times(c, size(n->constrained.c->var, 0, n->constrained.c->var->rank)));
}

// A warp or a block draws each.
static void count_draw_array(Counter *k, const Node *n, Cost *to)
{
    (void)k;
    const Var *v = n->whole.c->var;
    Expr *last = v->dim[v->rank - 1];
    Cost c = cost_none();
    cost_draw(&c, size(v, 0, v->rank), DRAW);
    if (v->constraint != CONSTRAINT_SIMPLEX) cost_operate(&c, ex_mul2(size(v, 0, n->whole.c->nbatch), cost_cubed(last, 3)));
    c.lane = v->constraint == CONSTRAINT_SIMPLEX ? ex_mul2(ex_num((double)DRAW / CREW), last) : cost_cubed(last, 3.0 / CREW);
    cost_add(to, c);
}

static void count_draw_band(Counter *k, const Node *n, Cost *to)
{
    (void)k;
    const Band *b = n->band.update->gaussian.band;
    Expr *node = ex_mul2(b->length, b->width), *elements = ex_mul2(b->panels, node),
         *row = ex_add2(ex_mul2(ex_num(b->lag + 1), b->width), b->border);
    Cost c = cost_none();
    cost_operate(&c, ex_mul2(elements, ex_mul2(row, row)));
    cost_draw(&c, ex_add2(elements, b->border), cost_units("normal_natural", DRAW).alone);
    // of one lane, or in chunks: less than either by a half at most
    c.lane = ex_mul2(node, ex_add2(ex_mul2(row, row), ex_num(BAND_ELEMENT)));
    if (b->width->kind == EX_NUM && b->lag * b->width->number <= MOST_SCANNED) {
        Expr *scan = ex_mul2(row, ex_add2(ex_num(WAITS_OF_BAND), ex_mul2(ex_num(SHARE_OF_BAND), elements)));
        c.lane = ex_mul(3, (Expr *[]){c.lane, scan, ex_pow(ex_add2(c.lane, scan), -1)});
    }
    cost_add(to, c);
}

// A product of two matrices for each element, and another row of them; a lane has those of a chunk.
static void count_draw_states(Counter *k, const Node *n, Cost *to)
{
    (void)k;
    Expr *elements = ex_mul2(n->states.panels, n->states.length), *values = n->states.values;
    Cost c = cost_none();
    // drawn on a CPU, too, where one lane goes along a chain and sums over one unknown after the other
    if (n->states.joined) {
        const Joined *j = n->states.joined;
        Expr *row = j->nlinks && j->link[0].of >= 0 ? j->products : j->nlinks ? ex_pow(values, 2) : values;
        cost_labour(&c, ex_mul2(elements, ex_mul2(ex_num(2), row)), SCALED);
        cost_draw(&c, elements, DRAW);
        c.bytes = ex_mul(3, (Expr *[]){ex_num(4 * 8), elements, values});
        c.lane = ex_add2(ex_mul2(ex_num(4 * CHUNK_OF_STATES * SCALED), row), ex_num(WAITS_OF_STATES * (TEAM_SUM + MORE_BLOCKS)));
        cost_add(to, c);
        return;
    }
    cost_labour(&c, ex_mul2(elements, ex_mul2(ex_pow(values, 2), ex_add2(values, ex_num(2)))), SCALED);
    cost_draw(&c, elements, DRAW);
    c.bytes = ex_mul(3, (Expr *[]){ex_num(4 * 8), elements, values});
    c.lane = ex_add2(ex_mul2(ex_num(4 * CHUNK_OF_STATES * SCALED), ex_pow(values, 2)), ex_num(WAITS_OF_STATES * (TEAM_SUM + MORE_BLOCKS)));
    cost_add(to, c);
}

// A warp draws each.
static void count_draw_normal(Counter *k, const Node *n, Cost *to)
{
    (void)k;
    Expr *batches = size(n->normal.update->block[0], 0, n->normal.update->gaussian.nbatch);
    Cost c = cost_none();
    if (!n->normal.update->gaussian.diagonal) cost_operate(&c, ex_mul2(batches, cost_cubed(n->normal.size, 1.0 / 3)));
    cost_draw(&c, ex_mul2(batches, n->normal.size), cost_units("normal_natural", DRAW).alone);
    c.lane = ex_mul2(ex_num(COLUMN), n->normal.size);
    cost_add(to, c);
}

static void count_compute(Counter *k, const Node *n, Cost *to)
{
    cost_add(to, count_series(k, n->compute.series, n->compute.slopes, n->compute.chain));
}

static void count_solve(Counter *k, const Node *n, Cost *to)
{
    cost_add(to, cost_of_body(k, n->body));
    cost_add(to, count_solution(k, n->solve.ode, false));
}

// The rows of kernel.def that say by themselves what a node costs.
#define OPERATIONS(share, size, power) cost_operate(to, ex_mul2(ex_num(share), ex_pow(size, power)));
#define DRAWS_OF(count, routine)       cost_draw(to, count, routine ? cost_units(routine, DRAW).alone : DRAW);
#define LIST(list)                     cost_add(to, cost_of_body(k, list));
#define COUNTED(word)                  count_##word(k, n, to);
#define SPENDS(id, ...) \
    case NODE_##id: __VA_ARGS__ break;

static void count_node(Counter *k, const Node *n, Cost *to)
{
    Counting with = {.k = k, .to = to};
    switch (n->kind) {
    case NODE_LOOP: cost_add(to, count_loop(k, n)); break;
    case NODE_NEST:
    case NODE_REDUCE: cost_add(to, count_list(k, n->body)); break;
    case NODE_LANE: cost_add(to, cost_of_body(k, n->body)); break;
    case NODE_IF:
        if (n->test.few) {
            const bool body = n->test.negated == (k->route == IF_MANY);
            cost_add(to, cost_of_body(k, body ? n->body : n->otherwise));
            break;
        }
        count_expr(k, n->test.condition, to);
        cost_add(to, cost_of_body(k, n->body));
        if (!n->test.rare) cost_add(to, cost_of_body(k, n->otherwise));
        break;
    case NODE_LET:
        if (n->let.value && n->let.value->kind == EX_CALL && n->let.value->fn == FN_log_determinant)
            cost_operate(to, cost_cubed(ex_dim(n->let.value->args[0], 0), 1.0 / 3));
        else each_part(n, count_part, &with);
        if (n->let.key) scope_know(&k->scope, n->let.key, n->let.local);
        break;
    case NODE_KNOW: scope_know(&k->scope, n->let.key, n->let.local); break;
    case NODE_ARRAY: {
        Cost c = count_list(k, n->body);
        count_expr(k, n->array.value, &c);
        for (int d = ex_rank(n->array.key) - 1; d >= 0; d--)
            c = cost_over(c, n->array.index[d], n->array.index[d]->lo, n->array.index[d]->hi);
        cost_add(to, c);
        scope_know(&k->scope, n->array.key, n->array.local);
        break;
    }
    case NODE_MATRIX:
        cost_operate(to, cost_cubed(ex_dim(n->matrix.key->args[0], 0), 1));
        scope_know(&k->scope, n->matrix.key, n->matrix.local);
        break;
    case NODE_CHOICE:
        cost_add(to, cost_of_body(k, n->body));
        cost_add(to, cost_of_body(k, n->otherwise));
        scope_know(&k->scope, n->choice.key, n->choice.local);
        break;
    case NODE_ASSIGN:
        count_expr(k, n->assign.value, to);
        if (n->assign.op == ASSIGN_LOG_ADD) cost_labour(to, ex_num(1), LOG_ADD);
        else if (n->assign.op != ASSIGN_SET) cost_operate(to, ex_num(1));
        if (n->assign.times) cost_operate(to, ex_num(1));
        break;
    case NODE_DRAW:
        each_part(n, count_part, &with);
        count_draw(k, n, to);
        break;
#include "kernel.def"
    default: count_parts(k, n, to);
    }
}

// Of chains with the same data a loop goes through the first alone (graph/rewrite/messages.c): the share of those, of which the rows are
// counted when data are there; NULL: the condition does not mention it.
typedef struct First {
    const Graph *g;
    const Var *v;
} First;

static Look test_first(const Expr *e, void *with)
{
    First *f = with;
    if (e->kind != EX_CALL || e->fn != FN_EQ) return LOOK;
    for (int k = 0; k < 2; k++)
        if (e->args[k]->kind == EX_REF && e->args[k]->var->summing.nrows && e->args[1 - k] == e->args[k]->args[0]) f->v = e->args[k]->var;
    return f->v ? FOUND : LOOK;
}

static Expr *share_of_first(const Expr *condition)
{
    First f = {0};
    return condition && ex_find(condition, test_first, &f) ? ex_mul2(ex_ref(f.v->summing.rows_counted, 0, NULL), ex_pow(f.v->dim[0], -1))
                                                           : NULL;
}

// What follows `continue` is done in some iterations only.
static Cost count_list(Counter *k, const Node *list)
{
    Cost c = cost_none(), some = cost_none();
    Expr *share = NULL;
    for (const Node *n = list; n; n = n->next) {
        Expr *here = n->kind == NODE_SKIP                 ? share_of_first(n->skip.condition)
                     : n->kind == NODE_IF && !n->test.few ? share_of_first(n->test.condition)
                                                          : NULL;
        if (here && !share) {
            Cost one = cost_none();
            count_node(k, n, &one);
            cost_add(&c, cost_times(one, here));
            cost_operate(&c, ex_num(1));  // a comparison of two whole numbers
            if (n->kind == NODE_SKIP) share = here;
        } else count_node(k, n, share ? &some : &c);
        scope_wrote(&k->scope, n);
    }
    if (share) cost_add(&c, cost_times(some, share));
    return c;
}
