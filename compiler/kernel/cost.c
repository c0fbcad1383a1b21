// cost.c -- what an update costs in one sweep of one chain, in the sizes of the data.
//
//   loop i in 1:N shared by SUM_ALONG            4*N operations, 8*N bytes read
//     update b += -1/2*(alpha[i] - alpha_c)^2
//
// Operations are those of arithmetic, and calls of functions, each as one. Bytes are those of the elements of arrays that are read, each
// time, in double precision: a cache may save most of them. Library calls cost what their algorithms do: a Cholesky factorisation of p by
// p is p^3/3, X'X is n p^2.
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
#include "cost_inside.h"

// TRIED_OF_SCALE: as GM_SCALES_FEW_TRIALS in runtime/device/scales.h
enum { TRIED_OF_SCALE = 7 };

// In multiply-adds: a launch; a launch of the library, and the fewest rows of a matrix that goes to it; a trajectory and each of its
// leapfrog steps.
enum { LAUNCHED = 60, LIBRARY = 4000, LEAST_LIBRARY = 13, HMC_UPDATE = 1200, EVALUATION = 150 };
enum { VECTORS_OF_HMC = 40, VECTORS_OF_EVALUATION = 8 };  // besides what they cost for each coordinate

// On a GPU, in multiply-adds of one lane that wait for each other (some 4 ns; measured on one H200, as docs/performance.md has it): a
// launch within a graph, 3 us; what every sweep launches besides its updates; a trajectory and each of its leapfrog steps: the launch of
// NUTS itself, its sums, and the iteration of a loop within the graph.
enum { LAUNCHED_ON_GPU = 750, SWEEP_ON_GPU = 2000, HMC_ON_GPU = 2500, EVALUATION_ON_GPU = 2500 };
enum { USUAL_EVALUATIONS = 15 };                                         // of a trajectory by NUTS: three or four doublings
static const double at_once = 1.0 / 16384, bytes_at_once = 1.0 / 20000;  // that are done, and read, in the time of one

// of an operation of the library; of a product of a matrix by a vector
static const double in_library = 0.15, by_vector = 0.08;

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
        cost_operate(c, cost_expanded(cost_expanded(ex_mul2(ex_num(r->out ? 4 : 2), outputs_of(r)), rows), r->matrix->dim[1]));
        c->bytes = ex_add2(c->bytes, cost_expanded(cost_expanded(ex_num(8), rows), r->matrix->dim[1]));
    }
}

// A draw of n normals by a factor of a matrix of size a.
static void count_factored(Routine *r, Expr *a, Expr *operations, Expr *n)
{
    cost_labour(&r->c, operations, in_library);
    r->lane = ex_mul2(ex_num(COLUMN), a);
    cost_draw(&r->c, n, cost_units("normal_natural", DRAW).alone);
    r->in_lapack = true;
}

static void count_routine(Routine *r, const Launch *l, Expr *a, Expr *b)
{
    Cost *c = &r->c;
    switch (l->kind) {
    case LAUNCH_ROWS:
    case LAUNCH_ROWS_AND:
    case LAUNCH_ROWS_ONLY:
        *c = cost_times(*c, a);
        r->launches = l->kind == LAUNCH_ROWS_ONLY ? 1 : 2;
        cost_labour(c, cost_expanded(cost_expanded(ex_num(l->kind == LAUNCH_ROWS_ONLY ? 2 : 4), a), b), by_vector);
        c->bytes = ex_add2(c->bytes, cost_expanded(cost_expanded(ex_num(8), a), b));
        break;
    case LAUNCH_PRODUCT:
    case LAUNCH_ROW_PRODUCTS: count_products(c, l, a); break;
    case LAUNCH_ROW_SUMS:
    case LAUNCH_GRAM:
    case LAUNCH_WEIGHTED_GRAM:
        if (l->kind == LAUNCH_ROW_SUMS) cost_labour(c, cost_expanded(cost_expanded(ex_num(2), a), b), by_vector);
        else cost_labour(c, ex_mul2(a, ex_pow(b, 2)), in_library);
        r->launches = 2;
        c->bytes = ex_add2(c->bytes, cost_expanded(cost_expanded(ex_num(8), a), b));
        break;
    case LAUNCH_NORMAL_DENSE:
    case LAUNCH_NORMAL_DENSE_SCALED: count_factored(r, a, cost_cubed(a, 1.0 / 3), a); break;
    case LAUNCH_NORMAL_ARROW:
    case LAUNCH_NORMAL_ARROW_SCALED:
    case LAUNCH_NORMAL_ROWS:
    case LAUNCH_NORMAL_ROWS_SCALED:
        count_factored(r, a, ex_add2(ex_mul2(b, ex_pow(a, 2)), cost_cubed(a, 1.0 / 3)), ex_add2(a, b));
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
    Routine r = {.c = l->kernel ? cost_of_body(k, l->kernel->body) : cost_none(), .launches = 1};
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
    cost_add(to, r.c);
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
    Cost all = cost_none(), one = cost_none();
    Expr *iterations = NULL;
    for (const Launch *l = list->first; l; l = l->next) {
        if (l->kind == LAUNCH_CATEGORIES || l->kind == LAUNCH_WHERE) {
            iterations = l->kind == LAUNCH_WHERE && k->where_made ? ex_num(1) : l->arg[0].extent;
            one = cost_none();
        } else if (l->kind == LAUNCH_CHECKED || l->kind == LAUNCH_ADAPTS)
            while (l->kind != LAUNCH_END) l = l->next;
        else if (l->kind == LAUNCH_END) {
            cost_add(&all, cost_times(one, iterations));
            iterations = NULL;
        } else if (is_taken(l->when, k->route) && !l->unless_kept) {
            Cost c = cost_none();
            count_launch(k, l, &c);
            cost_add(iterations ? &one : &all, l->once ? cost_times(c, ex_num(1.0 / TRIED_OF_SCALE)) : c);
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
    const Var *of = totalled(e);
    if (is_data_total(e) && !(of && of->rank > 1)) return e;
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
        return ex_mul2(by_sizes(ex_replace_index(ex_open(e, j), j, middle)), cost_rows(lo, hi));
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
    Cost every = cost_none();
    MethodCosts w = {cost_none(), cost_none(), cost_none()};
    for (int i = 0; i < p->nupdates; i++) {
        const Update *s = p->updates[i].update;
        if (s->imputes || (int)s->when == other || (other == ON_GPU ? s->joint < 0 : s->joint > 0) ||
            (of && s->selection && s->selection != of))
            continue;
        cost_add(&every, count_launches(p, &p->updates[i].made, route));
        Cost launches = where_taken(count_launches(p, &p->updates[i].launches, route), s, other == ON_CPU), evaluation = cost_none();
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
        if (asked) cost_add(&launches, cost_times(evaluation, ex_num(s->nuts.steps ? s->nuts.steps : USUAL_EVALUATIONS)));
        else cost_add(&w.evaluation, evaluation);
        cost_add(!s->selection ? &every : s->when == WITH_GRADIENTS ? &w.hmc : &w.updates, launches);
    }
    every.lane = ex_add2(every.lane, ex_num(SWEEP_ON_GPU));
    cost_add(&w.updates, every);
    cost_add(&w.hmc, every);
    return w;
}

void cost_of_scales(const Program *p, const UpdateCode *of, Expr **sweep, Expr **trial)
{
    const When route = IF_MANY;
    Cost all = cost_none();
    for (int i = 0; i < p->nupdates; i++) {
        const Update *s = p->updates[i].update;
        if (s->imputes || s->when == ON_GPU || s->when == WITH_GRADIENTS || s->joint < 0) continue;
        cost_add(&all, count_launches(p, &p->updates[i].made, route));
        cost_add(&all, where_taken(count_launches(p, &p->updates[i].launches, route), s, false));
    }
    *sweep = by_sizes(all.work);
    const Cost one = count_launches(p, &of->density, route);  // up to the draw, which a trial leaves out
    *trial = by_sizes(ex_sub(one.work, ex_mul2(ex_num(cost_units("normal_natural", DRAW).alone), one.draws)));
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
    Cost all = cost_none();
    for (int i = 0; i < p->nupdates; i++) {
        const Update *s = p->updates[i].update;
        if (s->imputes || s->when == ON_CPU || s->joint != -joint) continue;
        cost_add(&all, count_launches(p, &p->updates[i].made, IF_MANY));
        cost_add(&all, count_launches(p, &p->updates[i].launches, IF_MANY));
    }
    return on_gpu(all);
}

SelectionCost cost_where_listed(const Program *p, const Selection *of)
{
    const MethodCosts cpu = count_methods(p, of, ON_GPU, IF_LISTED);
    return (SelectionCost){
        .steps = by_sizes(cpu.updates.work), .move = by_sizes(cpu.hmc.work), .evaluation = by_sizes(cpu.evaluation.work)};
}
