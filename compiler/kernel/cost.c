// cost.c -- what an update costs in one sweep of one chain, in the sizes of the data.
//
//   loop i in 1:N shared by SUM_ALONG            4*N operations, 8*N bytes read
//     update b += -1/2*(alpha[i] - alpha_c)^2
//
// Operations are those of arithmetic, and calls of functions, each as one. Bytes are those of the elements of arrays that are read, each
// time, in double precision: a cache may save most of them. What has a name is computed once. Of branches all are counted; a slice sampler
// is taken to try six values. Library calls cost what their algorithms do: a Cholesky factorisation of p by p is p^3/3, X'X is n p^2.
//
// For method selection all is added up in one unit, multiply-adds: functions and draws by cost.def, in loops of the library a quarter of
// one. Never in seconds: a run makes the same choice on any machine.
//
// On a GPU what a sweep costs is, first of all, its launches, and what one lane has to do in sequence (`lane`): all that is shared is done
// at once, as far as there are lanes. Both are multiply-adds of one lane that wait for each other, of some 4 ns; the rest is work, in the
// same unit where all lanes share it.
//
// The same table is made of the whole program: by it a run chooses its device (runtime/host/device_auto.c).
//
// Needs: the kernels as all passes leave them.     Keeps: them, untouched.
#include <math.h>
#include <string.h>
#include "kernel.h"
#include "scope.h"

// TRIED_OF_SCALE: as GM_SCALES_FEW_TRIALS in runtime/device/scales.h
enum { TRIED_BY_SLICE = 6, TRIED_BY_TRANSFER = 8, TRIED_OF_SCALE = 7 };

// In multiply-adds: a call; a draw; a division; a power; a launch; a launch of the library, and the fewest rows
// of a matrix that goes to it; an iteration of a loop; a value tried; a product of numbers with exponents; a trajectory and each of its
// leapfrog steps.
enum {
    CALL = 15,
    DRAW = 60,
    DIVISION = 4,
    POWER = 60,
    LAUNCHED = 60,
    LIBRARY = 4000,
    LEAST_LIBRARY = 13,
    ITERATION = 1,
    TRY = 150,
    SCALED = 8,
    HMC_UPDATE = 1200,
    EVALUATION = 150
};
enum { VECTORS_OF_HMC = 40, VECTORS_OF_EVALUATION = 8 };  // besides what they cost for each coordinate

// On a GPU, in multiply-adds of one lane that wait for each other (some 4 ns; measured on one H200, as docs/performance.md has it): a
// launch within a graph, 3 us; a sum by a team; times the cube root of its iterations, what it takes blocks to wait for each other (some 1
// us by one block, some 7 by two hundred, both estimates); a column of a Cholesky factor and its solves; lanes of a crew; what every sweep
// launches besides its updates; a trajectory and each of its leapfrog steps: the launch of NUTS itself, its sums, and the iteration of a
// loop within the graph.
enum {
    LAUNCHED_ON_GPU = 750,
    TEAM_SUM = 200,
    MORE_BLOCKS = 40,
    COLUMN = 45,
    CREW = 32,
    SWEEP_ON_GPU = 2000,
    HMC_ON_GPU = 2500,
    EVALUATION_ON_GPU = 2500
};
enum { USUAL_EVALUATIONS = 15 };                       // of a trajectory by NUTS, where nothing is known of it: three or four doublings
enum { CHUNK_OF_STATES = 32, WAITS_OF_STATES = 180 };  // device/states.h: 0.27 ms for 3000 times of 4 states
// device/band_scan.h: a walk of 10^5 places takes 0.21 ms, of 10^6 0.45
enum { MOST_SCANNED = 8, BAND_ELEMENT = 60, WAITS_OF_BAND = 25000 };
static const double SHARE_OF_BAND = 0.03;
static const double at_once = 1.0 / 16384, bytes_at_once = 1.0 / 20000;  // that are done, and read, in the time of one

// of an operation of the library; of a product of a matrix by a vector
static const double in_library = 0.15, by_vector = 0.08;
enum { SHORT = 12 };  // iterations of an inner loop, too few to do several at once

// Of an operation or a call by itself, and in a loop without draws, of which processors do several iterations at once (8 numbers of
// double precision).
typedef struct Units {
    double alone, in_row;
} Units;
static const Units operation = {1, 0.2}, division = {DIVISION, 1};
enum { POWER_IN_ROW = 25 };

// work: in multiply-adds; row: where a loop is done several elements at once; lane: those that one lane makes in sequence
typedef struct Cost {
    Expr *operations, *draws, *bytes, *work, *row, *lane;
} Cost;

typedef struct Counter {
    const Program *p;
    Scope scope;
    When route;  // which one is counted
    // calls of functions in the scopes that are open: an equal one costs nothing more, as the C compiler makes it once
    Expr **called;
    int ncalled, room;
    bool where_made;  // launches that depend on sizes are counted as if they were made
} Counter;

static Cost none(void) { return (Cost){ex_num(0), ex_num(0), ex_num(0), ex_num(0), ex_num(0), ex_num(0)}; }

static void add(Cost *to, Cost more)
{
    to->operations = ex_add2(to->operations, more.operations);
    to->draws = ex_add2(to->draws, more.draws);
    to->bytes = ex_add2(to->bytes, more.bytes);
    to->work = ex_add2(to->work, more.work);
    to->row = ex_add2(to->row, more.row);
    to->lane = ex_add2(to->lane, more.lane);
}

// Of one iteration alone, and of one of several at once.
static void spend_in_row(Cost *to, Expr *units, Expr *in_row)
{
    to->work = ex_add2(to->work, units);
    to->row = ex_add2(to->row, in_row);
    to->lane = ex_add2(to->lane, units);
}

static void spend(Cost *to, Expr *units) { spend_in_row(to, units, units); }

// n operations, which take `units` each.
static void labour_in_row(Cost *to, Expr *n, Units u)
{
    to->operations = ex_add2(to->operations, n);
    spend_in_row(to, ex_mul2(ex_num(u.alone), n), ex_mul2(ex_num(u.in_row), n));
}

static void labour(Cost *to, Expr *n, double units) { labour_in_row(to, n, (Units){units, units}); }

static void operate(Cost *to, Expr *n) { labour_in_row(to, n, operation); }

static Units units_of(const char *name, double otherwise)
{
    static const struct {
        const char *name;
        Units units;
    } known[] = {
#define COST_OF(name, alone, in_row) {#name, {alone, in_row}},
#include "cost.def"
    };
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) return known[i].units;
    return (Units){otherwise, otherwise};
}

static Units units_of_power(double power)
{
    return power == 2 || power == 3                                      ? operation
           : power == -1 || power == -2 || power == 0.5 || power == -0.5 ? division
                                                                         : (Units){POWER, POWER_IN_ROW};
}

static void draw(Cost *to, Expr *n, double units)
{
    to->draws = ex_add2(to->draws, n);
    spend(to, ex_mul2(ex_num(units), n));
}

// Sums are multiplied out, so that equal terms meet.
static Expr *expanded(Expr *a, Expr *n)
{
    if (n->kind == EX_ADD && a->kind != EX_NUM) {
        Expr *all = ex_num(0);
        for (int i = 0; i < n->nargs; i++) all = ex_add2(all, expanded(a, n->args[i]));
        return all;
    }
    if (a->kind != EX_ADD) return ex_mul2(a, n);
    Expr *all = ex_num(0);
    for (int i = 0; i < a->nargs; i++) all = ex_add2(all, expanded(a->args[i], n));
    return all;
}

static Cost times(Cost c, Expr *n)
{
    return (Cost){expanded(c.operations, n), expanded(c.draws, n), expanded(c.bytes, n),
                  expanded(c.work, n),       expanded(c.row, n),   expanded(c.lane, n)};
}

// Costs are polynomials in sizes: what a range has where it is not empty.
static Expr *rows_of(Expr *lo, Expr *hi) { return ex_add(3, (Expr *[]){hi, ex_neg(lo), ex_num(1)}); }

static Expr *summed(Expr *e, const Index *i, Expr *lo, Expr *hi)
{
    if (!ex_mentions_index(e, i)) return expanded(e, rows_of(lo, hi));
    Index *j = index_new(i->name, lo, hi);
    return ex_reduce("sum", j, lo, hi, ex_replace_index(e, (Index *)i, ex_index(j)));
}

static Cost over(Cost c, const Index *i, Expr *lo, Expr *hi)
{
    return (Cost){summed(c.operations, i, lo, hi), summed(c.draws, i, lo, hi), summed(c.bytes, i, lo, hi),
                  summed(c.work, i, lo, hi),       summed(c.row, i, lo, hi),   summed(c.lane, i, lo, hi)};
}

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
        operate(to, ex_num(e->nargs - 1));
        for (int i = 0; i < e->nargs; i++) count_expr(k, e->args[i], to);
        break;
    case EX_POW:
    case EX_CALL:
    case EX_AT:
        if (e->kind == EX_POW) labour_in_row(to, ex_num(1), units_of_power(e->number));
        else if (e->kind == EX_CALL) {
            if (called_before(k, e)) break;
            const Units u = units_of(e->name, CALL);
            labour_in_row(to, ex_num(reads_kept(e) ? 2 : 1), u);
        }
        for (int i = 0; i < e->nargs; i++) count_expr(k, e->args[i], to);
        break;
    case EX_REDUCE:
    case EX_ARRAY: {
        const bool sum = e->kind == EX_REDUCE;
        Expr *lo = sum ? e->args[0] : ex_num(1), *hi = e->args[sum];
        Index *j = index_new(ex_index_called(e), lo, hi);
        Cost body = none();
        count_expr(k, ex_open(e, j), &body);
        if (sum) operate(&body, ex_num(1));
        add(to, over(body, j, lo, hi));
        break;
    }
    }
}

// ---- nodes ----

static Cost count_list(Counter *k, const Node *list);

static Cost count_scope(Counter *k, const Node *body)
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
    if (how == SHARE_GROUPS) return times(c, n->loop.order->extent);
    if (how == SHARE_SEGMENTS) return c;  // its body has the rows of all groups
    if (how == SHARE_SEGMENT_PLACES) {
        for (int i = n->loop.n - 1; i > 0; i--) c = over(c, n->loop.index[i], n->loop.index[i]->lo, n->loop.index[i]->hi);
        return times(c, n->loop.order->row->hi);
    }
    if (how == SHARE_ROWS || n->loop.order) return times(c, ex_mul2(n->loop.order->row->hi, ex_pow(n->loop.order->extent, -1)));
    if (n->loop.of) return times(c, how == SHARE_SERIAL ? n->loop.of->dim[n->loop.field] : size(n->loop.of, 0, n->loop.n));
    for (int i = n->loop.n - 1; i >= 0; i--) c = over(c, n->loop.index[i], n->loop.index[i]->lo, n->loop.index[i]->hi);
    return c;
}

static bool holds_loop(const Node *list)
{
    for (const Node *n = list; n; n = n->next)
        if (n->kind == NODE_LOOP || holds_loop(n->body) || (n->kind == NODE_IF && holds_loop(n->otherwise))) return true;
    return false;
}

// Where several iterations may be done at once: of a loop over pairs, those of the inner one, if it is long enough.
static Expr *work_at_once(const Node *n, Cost c)
{
    const Index *inner = n->loop.n > 1 && !n->loop.order && !n->loop.of ? n->loop.index[n->loop.n - 1] : NULL;
    if (!inner) return c.row;
    return ex_add2(c.row, ex_mul2(ex_add2(c.work, ex_neg(c.row)), ex_call2("<=", rows_of(inner->lo, inner->hi), ex_num(SHORT))));
}

static Cost count_loop(Counter *k, const Node *n)
{
    Cost c = count_scope(k, n->body);
    spend_in_row(&c, ex_num(ITERATION), ex_num(operation.in_row));
    if (ex_is_num(c.draws, 0) && !holds_loop(n->body)) c.work = work_at_once(n, c);
    c.row = c.work;
    Expr *of_a_turn = c.lane;
    c = count_iterations(n, c);
    const bool waits = is_reduced(n->loop.how) || n->loop.how == SHARE_INTO || n->loop.how == SHARE_KEYED;
    Expr *sum = ex_num(0);
    if (waits) {
        Cost one = none();
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

static Expr *cubed(Expr *n, double share) { return ex_mul2(ex_num(share), ex_pow(n, 3)); }

// A differential equation is solved in steps, whose number depends on the data: for an estimate, a few for each time of the solution.
enum { EVALUATIONS_OF_A_STEP = 6, STEPS_AT_LEAST = 20 };

static Cost count_solution(Counter *k, const Ode *o, bool slopes)
{
    const Kernel *const lists[] = {k->p->setup.first, k->p->sweep.first};
    Expr *n = ex_dim(o->call, 1),
         *evaluations = ex_mul2(ex_num(EVALUATIONS_OF_A_STEP), ex_add2(ex_dim(o->call, 0), ex_num(STEPS_AT_LEAST)));
    Cost one = none();
    for (int i = 0; i < 2; i++)
        for (const Kernel *f = lists[i]; f; f = f->next)
            if (f->ode == o && (f->of_ode == ODE_RIGHT_SIDE || (slopes && f->of_ode == ODE_DERIVATIVES)))
                add(&one, count_scope(k, f->body));
    operate(&one, ex_mul2(ex_num(2), n));
    if (slopes) operate(&one, ex_mul(4, (Expr *[]){ex_num(2), n, n, o->columns}));
    return times(one, evaluations);
}

static Cost count_series(Counter *k, const Series *s, bool slopes, bool one)
{
    Cost c = none();
    for (const Kernel *f = k->p->sweep.first; f; f = f->next)
        if (f->series == s) add(&c, count_scope(k, one ? f->body->body : f->body));
    const Ode *o = s->var[0]->sites->ode;
    if (!o || !slopes) return c;
    Cost more = count_solution(k, o, true);
    for (int i = 0; i < o->plates.n; i++) more = times(more, rows_of(o->plates.index[i]->lo, o->plates.index[i]->hi));
    add(&c, more);
    return c;
}

static Cost tried(Counter *k, const Node *body)
{
    Cost c = count_scope(k, body);
    spend(&c, ex_num(TRY));
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
        Cost one = none();
        count_expr(c->k, part->e, &one);
        c->within = one;
    }
    return false;
}

// As the row of kernel.def has it: values, tables that it fills, and a body that is run once, or for each value tried.
static void count_parts(Counter *k, const Node *n, Cost *to)
{
    Counting with = {.k = k, .to = to, .places = ex_num(1), .within = none(), .again = none()};
    each_part(n, count_part, &with);
    each_part(n, count_table, &with);
    add(to, times(with.within, with.places));
    if (each_part(n, find_tries, &with)) {
        add(to, times(tried(k, n->body), ex_num(with.tries)));
        each_part(n, count_again, &with);
        add(to, times(with.again, ex_num(with.tries)));
        draw(to, ex_num(1), units_of("uniform_between", DRAW).alone);
    } else add(to, count_scope(k, n->body));
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
    if (!units) units = ex_num(units_of(routine, DRAW).alone);
    to->draws = ex_add2(to->draws, draws);
    spend(to, ex_mul2(units, draws));
    if (n->draw.whole) operate(to, ex_mul2(ex_num(0.5), ex_pow(n->draw.whole, 2)));
}

static void count_weigh(Counter *k, const Node *n, Cost *to)
{
    // each element has values of its own
    const bool transfer = n->weigh.last->kind == EX_REF && n->weigh.last->var->hidden;
    Expr *values = ex_add(3, (Expr *[]){n->weigh.last, ex_neg(n->weigh.first), ex_num(1)});
    add(to, times(count_scope(k, n->body), transfer ? ex_num(TRIED_BY_TRANSFER) : values));
    draw(to, ex_num(1), units_of("uniform_between", DRAW).alone);
}

static void count_constrained(Counter *k, const Node *n, Cost *to)
{
    Cost c = times(tried(k, n->body), ex_num(TRIED_BY_SLICE));
    draw(&c, ex_num(1), units_of("uniform_between", DRAW).alone);
    add(to, times(c, size(n->constrained.c->var, 0, n->constrained.c->var->rank)));
}

// A warp or a block draws each.
static void count_draw_array(Counter *k, const Node *n, Cost *to)
{
    (void)k;
    const Var *v = n->whole.c->var;
    Expr *last = v->dim[v->rank - 1];
    Cost c = none();
    draw(&c, size(v, 0, v->rank), DRAW);
    if (v->constraint != CONSTRAINT_SIMPLEX) operate(&c, ex_mul2(size(v, 0, n->whole.c->nbatch), cubed(last, 3)));
    c.lane = v->constraint == CONSTRAINT_SIMPLEX ? ex_mul2(ex_num((double)DRAW / CREW), last) : cubed(last, 3.0 / CREW);
    add(to, c);
}

static void count_draw_band(Counter *k, const Node *n, Cost *to)
{
    (void)k;
    const Band *b = n->band.update->gaussian.band;
    Expr *node = ex_mul2(b->length, b->width), *elements = ex_mul2(b->panels, node),
         *row = ex_add2(ex_mul2(ex_num(b->lag + 1), b->width), b->border);
    Cost c = none();
    operate(&c, ex_mul2(elements, ex_mul2(row, row)));
    draw(&c, ex_add2(elements, b->border), units_of("normal_natural", DRAW).alone);
    // of one lane, or in chunks: less than either by a half at most
    c.lane = ex_mul2(node, ex_add2(ex_mul2(row, row), ex_num(BAND_ELEMENT)));
    if (b->width->kind == EX_NUM && b->lag * b->width->number <= MOST_SCANNED) {
        Expr *scan = ex_mul2(row, ex_add2(ex_num(WAITS_OF_BAND), ex_mul2(ex_num(SHARE_OF_BAND), elements)));
        c.lane = ex_mul(3, (Expr *[]){c.lane, scan, ex_pow(ex_add2(c.lane, scan), -1)});
    }
    add(to, c);
}

// A product of two matrices for each element, and another row of them; a lane has those of a chunk.
static void count_draw_states(Counter *k, const Node *n, Cost *to)
{
    (void)k;
    Expr *elements = ex_mul2(n->states.panels, n->states.length), *values = n->states.values;
    Cost c = none();
    // drawn on a CPU, too, where one lane goes along a chain and sums over one unknown after the other
    if (n->states.joined) {
        const Joined *j = n->states.joined;
        Expr *row = j->nlinks && j->link[0].of >= 0 ? j->products : j->nlinks ? ex_pow(values, 2) : values;
        labour(&c, ex_mul2(elements, ex_mul2(ex_num(2), row)), SCALED);
        draw(&c, elements, DRAW);
        c.bytes = ex_mul(3, (Expr *[]){ex_num(4 * 8), elements, values});
        c.lane = ex_add2(ex_mul2(ex_num(4 * CHUNK_OF_STATES * SCALED), row), ex_num(WAITS_OF_STATES * (TEAM_SUM + MORE_BLOCKS)));
        add(to, c);
        return;
    }
    labour(&c, ex_mul2(elements, ex_mul2(ex_pow(values, 2), ex_add2(values, ex_num(2)))), SCALED);
    draw(&c, elements, DRAW);
    c.bytes = ex_mul(3, (Expr *[]){ex_num(4 * 8), elements, values});
    c.lane = ex_add2(ex_mul2(ex_num(4 * CHUNK_OF_STATES * SCALED), ex_pow(values, 2)), ex_num(WAITS_OF_STATES * (TEAM_SUM + MORE_BLOCKS)));
    add(to, c);
}

// A warp draws each.
static void count_draw_normal(Counter *k, const Node *n, Cost *to)
{
    (void)k;
    Expr *batches = size(n->normal.update->block[0], 0, n->normal.update->gaussian.nbatch);
    Cost c = none();
    if (!n->normal.update->gaussian.diagonal) operate(&c, ex_mul2(batches, cubed(n->normal.size, 1.0 / 3)));
    draw(&c, ex_mul2(batches, n->normal.size), units_of("normal_natural", DRAW).alone);
    c.lane = ex_mul2(ex_num(COLUMN), n->normal.size);
    add(to, c);
}

static void count_compute(Counter *k, const Node *n, Cost *to)
{
    add(to, count_series(k, n->compute.series, n->compute.slopes, n->compute.chain));
}

static void count_solve(Counter *k, const Node *n, Cost *to)
{
    add(to, count_scope(k, n->body));
    add(to, count_solution(k, n->solve.ode, false));
}

// The rows of kernel.def that say by themselves what a node costs.
#define OPERATIONS(share, size, power) operate(to, ex_mul2(ex_num(share), ex_pow(size, power)));
#define DRAWS_OF(count, routine)       draw(to, count, routine ? units_of(routine, DRAW).alone : DRAW);
#define LIST(list)                     add(to, count_scope(k, list));
#define COUNTED(word)                  count_##word(k, n, to);
#define SPENDS(id, ...) \
    case NODE_##id: __VA_ARGS__ break;

static void count_node(Counter *k, const Node *n, Cost *to)
{
    Counting with = {.k = k, .to = to};
    switch (n->kind) {
    case NODE_LOOP: add(to, count_loop(k, n)); break;
    case NODE_NEST:
    case NODE_REDUCE: add(to, count_list(k, n->body)); break;
    case NODE_LANE: add(to, count_scope(k, n->body)); break;
    case NODE_IF:
        if (n->test.few) {
            const bool body = n->test.negated == (k->route == IF_MANY);
            add(to, count_scope(k, body ? n->body : n->otherwise));
            break;
        }
        count_expr(k, n->test.condition, to);
        add(to, count_scope(k, n->body));
        if (!n->test.rare) add(to, count_scope(k, n->otherwise));
        break;
    case NODE_LET:
        if (n->let.value && n->let.value->kind == EX_CALL && n->let.value->fn == FN_log_determinant)
            operate(to, cubed(ex_dim(n->let.value->args[0], 0), 1.0 / 3));
        else each_part(n, count_part, &with);
        if (n->let.key) scope_know(&k->scope, n->let.key, n->let.local);
        break;
    case NODE_KNOW: scope_know(&k->scope, n->let.key, n->let.local); break;
    case NODE_ARRAY: {
        Cost c = count_list(k, n->body);
        count_expr(k, n->array.value, &c);
        for (int d = ex_rank(n->array.key) - 1; d >= 0; d--) c = over(c, n->array.index[d], n->array.index[d]->lo, n->array.index[d]->hi);
        add(to, c);
        scope_know(&k->scope, n->array.key, n->array.local);
        break;
    }
    case NODE_MATRIX:
        operate(to, cubed(ex_dim(n->matrix.key->args[0], 0), 1));
        scope_know(&k->scope, n->matrix.key, n->matrix.local);
        break;
    case NODE_CHOICE:
        add(to, count_scope(k, n->body));
        add(to, count_scope(k, n->otherwise));
        scope_know(&k->scope, n->choice.key, n->choice.local);
        break;
    case NODE_ASSIGN:
        count_expr(k, n->assign.value, to);
        if (n->assign.op != ASSIGN_SET) operate(to, ex_num(1));
        if (n->assign.times) operate(to, ex_num(1));
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
    Cost c = none(), some = none();
    Expr *share = NULL;
    for (const Node *n = list; n; n = n->next) {
        Expr *here = n->kind == NODE_SKIP                 ? share_of_first(n->skip.condition)
                     : n->kind == NODE_IF && !n->test.few ? share_of_first(n->test.condition)
                                                          : NULL;
        if (here && !share) {
            Cost one = none();
            count_node(k, n, &one);
            add(&c, times(one, here));
            operate(&c, ex_num(1));  // a comparison of two whole numbers
            if (n->kind == NODE_SKIP) share = here;
        } else count_node(k, n, share ? &some : &c);
        scope_wrote(&k->scope, n);
    }
    if (share) add(&c, times(some, share));
    return c;
}

// ---- launches ----

// What a routine of the runtime makes of a launch, beside its kernel.
typedef struct Routine {
    Cost c;
    Expr *lane;  // the longest of a lane, on a GPU
    int launches;
    bool in_lapack;
} Routine;

static void count_products(Cost *c, const Launch *l, Expr *rows)
{
    for (int i = 0; i < l->nargs; i++) {
        const Product *r = l->arg[i].kind == ARG_PRODUCT ? l->arg[i].product : NULL;
        if (!r) continue;
        operate(c, expanded(expanded(ex_mul2(ex_num(r->out ? 4 : 2), outputs_of(r)), rows), r->matrix->dim[1]));
        c->bytes = ex_add2(c->bytes, expanded(expanded(ex_num(8), rows), r->matrix->dim[1]));
    }
}

// A draw of n normals by a factor of a matrix of size a.
static void count_factored(Routine *r, Expr *a, Expr *operations, Expr *n)
{
    labour(&r->c, operations, in_library);
    r->lane = ex_mul2(ex_num(COLUMN), a);
    draw(&r->c, n, units_of("normal_natural", DRAW).alone);
    r->in_lapack = true;
}

static void count_routine(Routine *r, const Launch *l, Expr *a, Expr *b)
{
    Cost *c = &r->c;
    switch (l->kind) {
    case LAUNCH_ROWS:
    case LAUNCH_ROWS_AND:
    case LAUNCH_ROWS_ONLY:
        *c = times(*c, a);
        r->launches = l->kind == LAUNCH_ROWS_ONLY ? 1 : 2;
        labour(c, expanded(expanded(ex_num(l->kind == LAUNCH_ROWS_ONLY ? 2 : 4), a), b), by_vector);
        c->bytes = ex_add2(c->bytes, expanded(expanded(ex_num(8), a), b));
        break;
    case LAUNCH_PRODUCT:
    case LAUNCH_ROW_PRODUCTS: count_products(c, l, a); break;
    case LAUNCH_ROW_SUMS:
    case LAUNCH_GRAM:
    case LAUNCH_WEIGHTED_GRAM:
        if (l->kind == LAUNCH_ROW_SUMS) labour(c, expanded(expanded(ex_num(2), a), b), by_vector);
        else labour(c, ex_mul2(a, ex_pow(b, 2)), in_library);
        r->launches = 2;
        c->bytes = ex_add2(c->bytes, expanded(expanded(ex_num(8), a), b));
        break;
    case LAUNCH_NORMAL_DENSE:
    case LAUNCH_NORMAL_DENSE_SCALED: count_factored(r, a, cubed(a, 1.0 / 3), a); break;
    case LAUNCH_NORMAL_ARROW:
    case LAUNCH_NORMAL_ARROW_SCALED:
    case LAUNCH_NORMAL_ROWS:
    case LAUNCH_NORMAL_ROWS_SCALED:
        count_factored(r, a, ex_add2(ex_mul2(b, ex_pow(a, 2)), cubed(a, 1.0 / 3)), ex_add2(a, b));
        r->launches = 3;
        break;
    case LAUNCH_PATTERN:
    case LAUNCH_LIST_ROWS:
    case LAUNCH_SCALES:
    case LAUNCH_NORMAL_SPARSE:
    case LAUNCH_NORMAL_SPARSE_SCALED:
    case LAUNCH_NUTS:
    case LAUNCH_STOP:
    case LAUNCH_EACH:
    case LAUNCH_MISSING:
    case LAUNCH_COLOURS:
    case LAUNCH_COLOURS_TEAM:
    case LAUNCH_TEAM:
    case LAUNCH_ONCE:
    case LAUNCH_SHARED:
    case LAUNCH_SHARED_UNLESS_MISSING:
    case LAUNCH_ORDER_ROWS:
    case LAUNCH_COLOUR_ELEMENTS:
    case LAUNCH_CATEGORIES:
    case LAUNCH_WHERE:
    case LAUNCH_CHECKED:
    case LAUNCH_PROPOSE:
    case LAUNCH_ADAPTS:
    case LAUNCH_DECIDE:
    case LAUNCH_END: break;
    }
}

static void count_launch(Counter *k, const Launch *l, Cost *to)
{
    Routine r = {.c = l->kernel ? count_scope(k, l->kernel->body) : none(), .launches = 1};
    r.lane = r.c.lane;
    Expr *a = NULL, *b = NULL;
    for (int i = 0; i < l->nargs; i++)
        if (l->arg[i].kind == ARG_EXTENT) {
            if (!a) a = l->arg[i].extent;
            else if (!b) b = l->arg[i].extent;
        }
    count_routine(&r, l, a, b);
    Expr *launched = ex_num(LAUNCHED);
    if (r.in_lapack) launched = ex_add2(launched, ex_mul2(ex_num(LIBRARY), ex_call2("<=", ex_num(LEAST_LIBRARY), a)));
    r.c.work = ex_add2(r.c.work, launched);
    r.c.lane = ex_add2(r.lane, ex_num(r.launches * LAUNCHED_ON_GPU));
    add(to, r.c);
}

// Whether what is made under a condition belongs to a route: IF_MANY, IF_FEW (rows not listed) or IF_LISTED.
static bool is_taken(When when, When route)
{
    switch (when) {
    case ALWAYS: return true;
    case IF_FEW: return route != IF_MANY;
    case IF_SYSTEM: return route == IF_FEW;
    case UNLESS_LISTED: return route != IF_LISTED;
    case IF_MANY:
    case IF_LISTED: return when == route;
    }
    return true;
}

// A list of launches; those of the host's loops count once for each iteration.
static Cost count_all(Counter *k, const Launches *list)
{
    Cost all = none(), one = none();
    Expr *iterations = NULL;
    for (const Launch *l = list->first; l; l = l->next) {
        if (l->kind == LAUNCH_CATEGORIES || l->kind == LAUNCH_WHERE) {
            iterations = l->kind == LAUNCH_WHERE && k->where_made ? ex_num(1) : l->arg[0].extent;
            one = none();
        } else if (l->kind == LAUNCH_CHECKED || l->kind == LAUNCH_ADAPTS)
            while (l->kind != LAUNCH_END) l = l->next;
        else if (l->kind == LAUNCH_END) {
            add(&all, times(one, iterations));
            iterations = NULL;
        } else if (is_taken(l->when, k->route) && !l->unless_kept) {
            Cost c = none();
            count_launch(k, l, &c);
            add(iterations ? &one : &all, l->once ? times(c, ex_num(1.0 / TRIED_OF_SCALE)) : c);
        }
    }
    return all;
}

static bool by_route(const Node *list)
{
    for (const Node *n = list; n; n = n->next)
        if ((n->kind == NODE_IF && n->test.few) || by_route(n->otherwise) || by_route(n->body)) return true;
    return false;
}

static const char *route_text(const Program *p, const UpdateCode *s, When route)
{
    Counter k = {.where_made = true, .p = p, .route = route, .scope = {.arena = p->g->arena, .g = p->g}};
    Cost c = count_all(&k, &s->launches);
    for (const Launch *l = s->made.first; l; l = l->next) count_launch(&k, l, &c);
    Arena *a = p->g->arena;
    if (s->update->kind == UPDATE_GAUSSIAN && ex_is_num(c.draws, 0))
        return arena_printf(a, "%s operations to fill J and h, besides the factor of J and a normal for each element, %s bytes read",
                            ex_text(a, ex_whole(c.operations)), ex_text(a, c.bytes));
    return arena_printf(a, "%s operation%s, %s draw%s, %s bytes read", ex_text(a, ex_whole(c.operations)),
                        ex_is_num(c.operations, 1) ? "" : "s", ex_text(a, c.draws), ex_is_num(c.draws, 1) ? "" : "s", ex_text(a, c.bytes));
}

const char *cost_text(const Program *p, const UpdateCode *s)
{
    bool routes = false;
    for (const Launch *l = s->launches.first; l; l = l->next) routes |= l->when != ALWAYS || (l->kernel && by_route(l->kernel->body));
    const char *many = route_text(p, s, IF_MANY);
    const char *of = s->update->imputes ? ", for each missing value" : "";
    return routes ? arena_printf(p->g->arena, "%s%s; with fewer rows than coefficients %s", many, of, route_text(p, s, IF_FEW))
                  : arena_printf(p->g->arena, "%s%s", many, of);
}

// ---- costs for method selection ----

// In numbers of the data alone, so that the host can compute it: a sum over a loop that is not the same for all is taken in its middle, and
// a number that differs from element to element is their mean.
static Expr *by_sizes(Expr *e)
{
    if (is_data_total(e)) return e;
    switch (e->kind) {
    case EX_NUM: return e;
    case EX_REF:
        if (e->var->summing.counts_rows) return e;
        if (e->var->kind == VAR_DATA && e->var->rank == 0 && e->var->base == BASE_INT && !e->var->response) return e;
        if (e->var->kind == VAR_DATA && e->var->rank == 1 && e->nargs == 1 && e->var->base == BASE_INT && !e->var->response) {
            Index *i = index_new("i", ex_num(1), e->var->dim[0]);
            Expr *at = ex_index(i), *total = ex_reduce("sum", i, ex_num(1), e->var->dim[0], ex_ref(e->var, 1, &at));
            if (is_data_total(total)) return ex_mul2(total, ex_pow(by_sizes(e->var->dim[0]), -1));
        }
        return ex_num(1);
    case EX_ADD:
    case EX_MUL: {
        Expr *all = ex_num(e->kind == EX_MUL);
        for (int i = 0; i < e->nargs; i++)
            all = e->kind == EX_ADD ? ex_add2(all, by_sizes(e->args[i])) : ex_mul2(all, by_sizes(e->args[i]));
        return all;
    }
    case EX_POW: return ex_pow(by_sizes(e->args[0]), e->number);
    case EX_REDUCE: {
        if (e->fn != FN_sum) return by_sizes(e->args[1]);
        Expr *lo = by_sizes(e->args[0]), *hi = by_sizes(e->args[1]), *middle = ex_mul2(ex_num(0.5), ex_add2(lo, hi));
        Index *j = index_new(ex_index_called(e), e->args[0], e->args[1]);
        return ex_mul2(by_sizes(ex_replace_index(ex_open(e, j), j, middle)), rows_of(lo, hi));
    }
    case EX_CALL:
        if (e->fn == FN_LE) return ex_call2("<=", by_sizes(e->args[0]), by_sizes(e->args[1]));  // of sizes: 1 or 0
        if (e->fn == FN_fmax && e->args[1]->kind == EX_NUM) return by_sizes(e->args[0]);
        return e->nargs ? by_sizes(e->args[e->nargs - 1]) : ex_num(1);  // of a choice, or of the larger of two sizes, one
    case EX_INDEX:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return ex_num(1);
}

static Cost count_launches(const Program *p, const Launches *list, When route)
{
    Counter k = {.p = p, .route = route, .scope = {.arena = p->g->arena, .g = p->g}};
    return count_all(&k, list);
}

typedef struct MethodCosts {
    Cost updates, hmc, evaluation;
} MethodCosts;

// The cost of an update that only some sizes take: unknowns drawn together, or one after the other.
static Cost where_taken(Cost c, const Update *s, bool gpu)
{
    if (!s->joined || !s->joined->where) return c;
    Expr *where = gpu ? s->joined->on_gpu : s->joined->where,
         *times = s->nblock > 1 ? ex_call3("if_else", where, ex_num(1), ex_num(0)) : ex_call3("if_else", where, ex_num(0), ex_num(1));
    return (Cost){ex_mul2(times, c.operations), ex_mul2(times, c.draws), ex_mul2(times, c.bytes),
                  ex_mul2(times, c.work),       ex_mul2(times, c.row),   ex_mul2(times, c.lane)};
}

// `of`: the selection; NULL: the program, with all of them. `other`: updates that this device does not take. HMC that the model requests is
// made in every sweep, with a trajectory of the usual length.
static MethodCosts count_methods(const Program *p, const Selection *of, int other, When route)
{
    Cost every = none();
    MethodCosts w = {none(), none(), none()};
    for (int i = 0; i < p->nupdates; i++) {
        const Update *s = p->updates[i].update;
        if (s->imputes || (int)s->when == other || (other == ON_GPU ? s->joint < 0 : s->joint > 0) ||
            (of && s->selection && s->selection != of))
            continue;
        add(&every, count_launches(p, &p->updates[i].made, route));
        Cost launches = where_taken(count_launches(p, &p->updates[i].launches, route), s, other == ON_CPU), evaluation = none();
        const bool asked = !of && !s->selection && s->kind == UPDATE_NUTS;
        if (s->when == WITH_GRADIENTS || asked) {
            evaluation = count_launches(p, &p->updates[i].density, route);
            Expr *n = NULL;
            for (const Launch *l = p->updates[i].launches.first; l; l = l->next)
                for (int k = 0; k < l->nargs && l->kind == LAUNCH_NUTS && !n; k++)
                    if (l->arg[k].kind == ARG_EXTENT) n = l->arg[k].extent;
            launches.work = ex_add(3, (Expr *[]){launches.work, ex_num(HMC_UPDATE), ex_mul2(ex_num(VECTORS_OF_HMC), n)});
            evaluation.work = ex_add(3, (Expr *[]){evaluation.work, ex_num(EVALUATION), ex_mul2(ex_num(VECTORS_OF_EVALUATION), n)});
            launches.lane = ex_add2(launches.lane, ex_num(HMC_ON_GPU));
            evaluation.lane = ex_add2(evaluation.lane, ex_num(EVALUATION_ON_GPU));
        }
        if (asked) add(&launches, times(evaluation, ex_num(s->nuts.steps ? s->nuts.steps : USUAL_EVALUATIONS)));
        else add(&w.evaluation, evaluation);
        add(!s->selection ? &every : s->when == WITH_GRADIENTS ? &w.hmc : &w.updates, launches);
    }
    every.lane = ex_add2(every.lane, ex_num(SWEEP_ON_GPU));
    add(&w.updates, every);
    add(&w.hmc, every);
    return w;
}

void cost_of_scales(const Program *p, const UpdateCode *of, Expr **sweep, Expr **trial)
{
    const When route = IF_MANY;
    Cost all = none();
    for (int i = 0; i < p->nupdates; i++) {
        const Update *s = p->updates[i].update;
        if (s->imputes || s->when == ON_GPU || s->when == WITH_GRADIENTS || s->joint < 0) continue;
        add(&all, count_launches(p, &p->updates[i].made, route));
        add(&all, where_taken(count_launches(p, &p->updates[i].launches, route), s, false));
    }
    *sweep = by_sizes(all.work);
    const Cost one = count_launches(p, &of->density, route);  // up to the draw, which a trial leaves out
    *trial = by_sizes(ex_sub(one.work, ex_mul2(ex_num(units_of("normal_natural", DRAW).alone), one.draws)));
}

static CostOnGpu on_gpu(Cost c)
{
    return (CostOnGpu){by_sizes(c.lane), by_sizes(ex_add2(ex_mul2(ex_num(at_once), c.work), ex_mul2(ex_num(bytes_at_once), c.bytes)))};
}

SelectionCost cost_of_selection(const Program *p, const Selection *of)
{
    const MethodCosts cpu = count_methods(p, of, ON_GPU, IF_MANY), gpu = count_methods(p, of, ON_CPU, IF_MANY);
    return (SelectionCost){by_sizes(cpu.updates.work),
                           by_sizes(cpu.hmc.work),
                           by_sizes(cpu.evaluation.work),
                           {on_gpu(gpu.updates), on_gpu(gpu.hmc), on_gpu(gpu.evaluation)}};
}

CostOnGpu cost_standing_in(const Program *p, int joint)
{
    Cost all = none();
    for (int i = 0; i < p->nupdates; i++) {
        const Update *s = p->updates[i].update;
        if (s->imputes || s->when == ON_CPU || s->joint != -joint) continue;
        add(&all, count_launches(p, &p->updates[i].made, IF_MANY));
        add(&all, count_launches(p, &p->updates[i].launches, IF_MANY));
    }
    return on_gpu(all);
}

SelectionCost cost_where_listed(const Program *p, const Selection *of)
{
    const MethodCosts cpu = count_methods(p, of, ON_GPU, IF_LISTED);
    return (SelectionCost){
        .steps = by_sizes(cpu.updates.work), .move = by_sizes(cpu.hmc.work), .evaluation = by_sizes(cpu.evaluation.work)};
}
