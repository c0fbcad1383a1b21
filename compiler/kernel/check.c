// check.c -- what is true of kernels after each pass. A broken rule is a fault of the pass that broke it, and is named with it.
//
//   always           an index is within a loop over it; a local variable is declared before it is read, and grows only if it is marked so;
//                    arrays have a place, and an update writes none that is one for all chains; a REDUCE only adds, multiplies, ...;
//                    every kernel is launched, with sizes that are known before the sweep
//   from `share`     iterations are shared only where a team or a crew runs the loop
//   from `outside`   a sum within an expression has a name; the name of a subscript is of a whole number
//
// Within all nodes: choices, draws of the predict block, supports, requirements.
#include <string.h>
#include "kernel.h"
#include "scope.h"

typedef struct DeclaredLocal {
    const char *name, *type;
    bool grows;
} DeclaredLocal;  // a local variable: C knows it by its name

typedef struct Check {
    const Program *p;
    const Kernel *kernel;
    bool shared, named;  // the passes are done
    bool setup;          // a kernel of setup
    bool team, crew;
    bool alone;  // this is printed without the names around it: data as they are read
    Scope scope;
    int n, size;
    const Index **index;  // that are bound here
    int nlocals, locals_size;
    DeclaredLocal *local;
    const Expr *group;  // a subscript that is the group of a loop
    const char *wrong;
} Check;

static void fail(Check *c, const char *what)
{
    if (!c->wrong) c->wrong = c->kernel ? arena_printf(c->p->g->arena, "kernel %s: %s", c->kernel->name, what) : what;
}

static void bind(Check *c, const Index *i)
{
    ROOM(c->p->g->arena, c->index, c->n, c->size);
    c->index[c->n++] = i;
}

static void declare(Check *c, const char *name, const char *type, bool grows)
{
    ROOM(c->p->g->arena, c->local, c->nlocals, c->locals_size);
    c->local[c->nlocals++] = (DeclaredLocal){name, type, grows};
}

static const DeclaredLocal *declared(const Check *c, const char *name)
{
    for (int i = c->nlocals - 1; i >= 0; i--)
        if (strcmp(c->local[i].name, name) == 0) return &c->local[i];
    return NULL;
}

static void check_var(Check *c, const Var *v)
{
    if (v->kind == VAR_PATTERN) fail(c, arena_printf(c->p->g->arena, "`%s` is a name of a rule", v->name));
    else if (v->kind == VAR_ELEMENT) {
        if (!declared(c, v->name)) fail(c, arena_printf(c->p->g->arena, "`%s` is read before it is declared", v->name));
    } else if (placement_of(c->p, v)->var != v) fail(c, arena_printf(c->p->g->arena, "the array `%s` has no place", v->name));
}

static Look test_subscript(const Expr *e, void *with)
{
    Check *c = with;
    const Var *local = e == c->group ? NULL : scope_find(&c->scope, e);
    const DeclaredLocal *d = local ? declared(c, local->name) : NULL;
    if (!d || !d->type || strcmp(d->type, "long") == 0) return local || e->kind == EX_REF || e->kind == EX_CALL ? SKIP : LOOK;
    fail(c, arena_printf(c->p->g->arena, "a subscript has `%s`, which is of type %s", d->name, d->type));
    return FOUND;
}

static Look test_part(const Expr *e, void *with)
{
    Check *c = with;
    if (e == c->group) return SKIP;
    const Var *local = c->alone ? NULL : scope_find(&c->scope, e);
    if (local) {
        if (!declared(c, local->name))
            fail(c, arena_printf(c->p->g->arena, "%s has the name `%s`, which is not declared", ex_text(c->p->g->arena, e), local->name));
        return c->wrong ? FOUND : SKIP;
    }
    if (e->kind == EX_INDEX && e->index->height == 0) {
        for (int i = 0; i < c->n; i++)
            if (c->index[i] == e->index) return SKIP;
        fail(c, arena_printf(c->p->g->arena, "`%s` is outside a loop over it", e->index->name));
        return FOUND;
    }
    if (e->kind == EX_REF) {
        check_var(c, e->var);
        if (e->nargs > e->var->rank) fail(c, arena_printf(c->p->g->arena, "%s has too many subscripts", ex_text(c->p->g->arena, e)));
        for (int k = 0; k < e->nargs && !c->alone; k++)
            if (ex_is_integer(e->args[k])) ex_find(e->args[k], test_subscript, c);
    }
    // Sizes are written as calls.
    if (e->kind == EX_REDUCE && c->named && !c->alone && !is_data_total(e)) {
        fail(c, arena_printf(c->p->g->arena, "%s has no name", ex_text(c->p->g->arena, e)));
        return FOUND;
    }
    return c->wrong ? FOUND : LOOK;
}

static void check_expr(Expr *e, void *with)
{
    Check *c = with;
    if (!e) return;
    bool bound = e->loose == 0;
    for (int i = 0; i < c->n && !bound; i++) bound = c->index[i]->height == e->loose;
    if (!bound) fail(c, arena_printf(c->p->g->arena, "%s has an index of a sum, outside of it", ex_text(c->p->g->arena, e)));
    ex_find(e, test_part, c);
}

// ---- places ----

static bool check_written(const Var *v, void *with)
{
    Check *c = with;
    if (v->kind == VAR_ELEMENT || v->lowered.pattern) return false;  // the runtime keeps entries of a sparse precision
    const Placement *at = placement_of(c->p, v);
    if (at->var != v) fail(c, arena_printf(c->p->g->arena, "the array `%s` is written and has no place", v->name));
    else if (at->home == HOME_DATA) fail(c, arena_printf(c->p->g->arena, "data are written: `%s`", v->name));
    else if ((at->home == HOME_SETUP || at->home == HOME_RESPONSES) != c->setup)
        fail(c,
             arena_printf(c->p->g->arena,
                          c->setup ? "setup writes `%s`, which belongs to a chain" : "an update writes `%s`, which is one for all chains",
                          v->name));
    return false;
}

static void check_grows(Check *c, const Var *local)
{
    const DeclaredLocal *d = declared(c, local->name);
    if (!d) fail(c, arena_printf(c->p->g->arena, "`%s` is written before it is declared", local->name));
    else if (!d->grows) fail(c, arena_printf(c->p->g->arena, "`%s` is constant, and is written", local->name));
}

static void check_assign(Check *c, const Node *n)
{
    const Place *at = &n->assign.place;
    if (at->local) check_grows(c, at->local);
    if (at->element && !at->local && at->element->nargs != at->element->var->rank)
        fail(c, arena_printf(c->p->g->arena, "an element of `%s` is written with too few subscripts", at->element->var->name));
}

// ---- what is printed by nodes of their own ----

static void check_support(Check *c, const Factor *f)
{
    Expr *const part[] = {f->plates.guard, f->least, f->most, f->from, f->to};
    c->alone = true;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) check_expr(part[i], c);
    c->alone = false;
}

static bool for_team(Sharing how)
{
    switch (how) {
    case SHARE_ALONG:
    case SHARE_LANES:
    case SHARE_TERMS:
    case SHARE_SUM_ALONG:
    case SHARE_MIN_ALONG:
    case SHARE_MAX_ALONG:
    case SHARE_INTO:
    case SHARE_KEYED:
    case SHARE_COUNTED:
    case SHARE_GROUPS:
    case SHARE_SEGMENTS:
    case SHARE_CREW:
    case SHARE_COLOUR_CREW:
    case SHARE_MATRICES:
    case SHARE_CLASSES: return true;
    case SHARE_SERIAL:
    case SHARE_BACKWARD:
    case SHARE_EACH:
    case SHARE_COLOUR:
    case SHARE_MISSING:
    case SHARE_IN_TURN:
    case SHARE_SUM_CREW:
    case SHARE_PLACES:
    case SHARE_ROWS:
    case SHARE_SPAN:
    case SHARE_SEGMENT_PLACES: break;
    }
    return false;
}

static void check_list(Check *c, const Node *list);

static void check_scope(Check *c, const Node *body, bool team, bool crew)
{
    const bool t = c->team, w = c->crew;
    const int known = c->scope.n, bound = c->n, nlocals = c->nlocals;
    c->team = team;
    c->crew = crew;
    check_list(c, body);
    c->team = t;
    c->crew = w;
    c->n = bound;
    c->nlocals = nlocals;
    scope_leave(&c->scope, known);
}

static void check_ends(Check *c, const Index *i)
{
    check_expr(i->lo, c);
    check_expr(i->hi, c);
}

static void check_loop(Check *c, const Node *n)
{
    const Sharing how = n->loop.how;
    const int bound = c->n;
    if (c->shared && for_team(how) && !c->team) fail(c, "iterations are shared where one lane runs the loop");
    if (c->shared && how == SHARE_SUM_CREW && !c->crew) fail(c, "iterations are shared by a crew where there is none");
    for (int i = 0; i < n->loop.n; i++) {
        if (!n->loop.of && how != SHARE_GROUPS && how != SHARE_ROWS) check_ends(c, n->loop.index[i]);
        bind(c, n->loop.index[i]);
    }
    for (int i = 0; i < n->loop.ntotals; i++) {
        const DeclaredLocal *d = declared(c, n->loop.total[i]->name);
        if (!d || !d->grows)
            fail(c, arena_printf(c->p->g->arena, "iterations of a loop add to `%s`, which %s", n->loop.total[i]->name,
                                 d ? "is constant" : "is not declared"));
    }
    for (int i = 0; i < n->loop.narrays; i++) check_written(n->loop.array[i], c);
    scope_written(&c->scope, n->body);
    const bool crew = how == SHARE_CREW || how == SHARE_COLOUR_CREW, serial = how == SHARE_SERIAL || how == SHARE_BACKWARD;
    check_scope(c, n->body, serial && c->team, crew || (serial && c->crew));
    c->n = bound;
}

// ---- all kinds ----

static void check_nest(Check *c, const Node *n)
{
    const int bound = c->n;
    for (int i = 0; i < n->nest.loops.n && !c->shared; i++) {
        check_ends(c, n->nest.loops.index[i]);
        bind(c, n->nest.loops.index[i]);
    }
    if (!c->shared) check_expr(n->nest.loops.guard, c);
    for (int i = 0; i < n->nest.n && !c->shared && n->nest.target; i++) check_expr(n->nest.target[i], c);
    for (const Node *m = n->body; m && n->kind == NODE_REDUCE; m = m->next)
        // an instance may keep something at a place of its own
        if (m->kind == NODE_ASSIGN && m->assign.op == ASSIGN_SET && (n->nest.n || m->assign.place.local)) fail(c, "a sum sets a place");
    check_list(c, n->body);
    c->n = bound;
}

static void check_lane(Check *c, const Node *n)
{
    const Expr *group = c->group;
    if (n->lane.key) c->group = n->lane.key;
    check_scope(c, n->body, false, false);
    c->group = group;
}

static void check_array(Check *c, const Node *n)
{
    const int known = c->scope.n, nlocals = c->nlocals, bound = c->n;
    const bool team = c->team;
    for (int k = 0; k < ex_rank(n->array.key); k++) {
        check_ends(c, n->array.index[k]);
        bind(c, n->array.index[k]);
    }
    c->team = false;
    check_list(c, n->body);
    check_expr(n->array.value, c);
    c->team = team;
    c->n = bound;
    c->nlocals = nlocals;
    scope_leave(&c->scope, known);
    declare(c, n->array.local->name, NULL, false);
    scope_know(&c->scope, n->array.key, n->array.local);
}

static void check_choice(Check *c, const Node *n)
{
    check_expr(n->choice.key->args[0], c);
    declare(c, n->choice.local->name, c->kernel->number, true);
    check_scope(c, n->body, c->team, c->crew);
    check_scope(c, n->otherwise, c->team, c->crew);
    scope_know(&c->scope, n->choice.key, n->choice.local);
}

static void check_sample(Check *c, const Node *n)
{
    const Site *t = n->sample.site;
    const int nlocals = c->nlocals;
    declare(c, "x", "wide", false);
    if (t->x) declare(c, t->x->var->name, "wide", false);
    for (int side = 0; side < 2; side++)
        if (t->end[side]) declare(c, t->end[side]->var->name, "wide", false);
    for (int k = 0; k < t->n; k++) check_expr(t->subscript[k], c);
    c->nlocals = nlocals;
    static const char *const search[] = {"search.log_weight", "search.below", "search.above"};
    for (int k = 0; k < 3; k++) declare(c, search[k], "wide", true);
    declare(c, "x", "wide", false);
    check_scope(c, n->body, c->team, c->crew);
    c->nlocals = nlocals;
}

static bool check_part(const NodePart *part, void *with)
{
    Check *c = with;
    switch (part->kind) {
    case HAS_VALUE: check_expr(part->e, c); break;
    case HAS_AT:
        // an array that is a local has no elements: it numbers streams
        if (part->e->var->kind != VAR_ELEMENT) check_var(c, part->e->var);
        each_subscript(&(Place){.element = part->e}, check_expr, c);
        break;
    case HAS_PLACE: each_subscript(part->place, check_expr, c); break;
    case HAS_INDEX: bind(c, part->index); break;
    case HAS_ARRAY:
        if (part->v->kind == VAR_ELEMENT) check_var(c, part->v);
        break;
    case HAS_WRITTEN:
        if (part->v->kind == VAR_ELEMENT) check_grows(c, part->v);
        break;
    case HAS_SIZE:
    case HAS_WITHIN:
    case HAS_KEY:
    case HAS_INSIDE:
    case HAS_AFTER:
    case HAS_TRIES:
    case HAS_AGAIN:
    case HAS_DRAWN:
    case HAS_FOLLOWED: break;
    }
    return false;
}

// Of the body. A value that is tried has replaced another: what has a name that reads it is computed again.
static bool declare_inside(const NodePart *part, void *with)
{
    static const Var x = {.name = "x", .kind = VAR_ELEMENT};
    Check *c = with;
    if (part->kind == HAS_INSIDE) declare(c, part->name, part->type, part->grows);
    if (part->kind != HAS_TRIES) return false;
    declare(c, "lp", "wide", true);
    if (part->type) declare(c, x.name, part->type, false);
    if (part->e) scope_know(&c->scope, part->e, &x);
    return false;
}

static bool check_within(const NodePart *part, void *with)
{
    if (part->kind == HAS_WITHIN) check_expr(part->e, with);
    return false;
}

static bool declare_after(const NodePart *part, void *with)
{
    if (part->kind == HAS_AFTER) declare(with, part->name, part->type, false);
    return false;
}

static bool test_tries(const NodePart *part, void *with)
{
    (void)with;
    return part->kind == HAS_TRIES;
}

// A node as its row of kernel.def has it.
static void check_parts(Check *c, const Node *n)
{
    const int bound = c->n, known = c->scope.n, nlocals = c->nlocals;
    each_part(n, check_part, c);
    if (each_part(n, test_tries, NULL)) scope_wrote(&c->scope, n);
    each_part(n, declare_inside, c);
    each_part(n, check_within, c);
    c->n = bound;
    check_scope(c, n->body, c->team, c->crew);
    check_scope(c, n->otherwise, c->team, c->crew);
    c->nlocals = nlocals;
    scope_leave(&c->scope, known);
    each_part(n, declare_after, c);
}

static void check_node(Check *c, const Node *n)
{
    switch (n->kind) {
    case NODE_NEST:
    case NODE_REDUCE: check_nest(c, n); break;
    case NODE_LOOP: check_loop(c, n); break;
    case NODE_LANE: check_lane(c, n); break;
    case NODE_LET:
        each_expr(n, check_expr, c);
        declare(c, n->let.local->name, n->let.type, n->let.grows || !n->let.value);
        if (n->let.key) scope_know(&c->scope, n->let.key, n->let.local);
        break;
    case NODE_KNOW:
        if (!declared(c, n->let.local->name))
            fail(c, arena_printf(c->p->g->arena, "`%s` is known before it is declared", n->let.local->name));
        scope_know(&c->scope, n->let.key, n->let.local);
        break;
    case NODE_ARRAY: check_array(c, n); break;
    case NODE_MATRIX:
        declare(c, n->matrix.local->name, NULL, false);
        scope_know(&c->scope, n->matrix.key, n->matrix.local);
        break;
    case NODE_CHOICE: check_choice(c, n); break;
    case NODE_SAMPLE: check_sample(c, n); break;
    case NODE_BOUNDS: check_support(c, n->bounds.factor); break;
    case NODE_ASSIGN:
        check_assign(c, n);
        check_parts(c, n);
        break;
    default: check_parts(c, n);
    }
}

static void check_list(Check *c, const Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        check_node(c, n);
        Node alone = *n;
        alone.next = alone.body = alone.otherwise = NULL;
        writes(&alone, check_written, c);
        scope_wrote(&c->scope, n);
    }
}

// ---- launches ----

static bool launches(const Launches *list, const Kernel *k)
{
    for (const Launch *l = list->first; l; l = l->next)
        if (l->kernel == k) return true;
    return false;
}

static bool launched(const Program *p, const Kernel *k)
{
    const Launches *const lists[] = {&p->prepare, &p->refresh,    &p->again,  &p->finish,  &p->before, &p->log_prior,
                                     &p->log_lik, &p->replicates, &p->derive, &p->restore, &p->joint,  &p->forward};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (launches(lists[i], k)) return true;
    for (int i = 0; i < p->nupdates; i++)
        if (launches(&p->updates[i].made, k) || launches(&p->updates[i].launches, k) || launches(&p->updates[i].density, k) ||
            launches(&p->updates[i].jacobian, k))
            return true;
    return false;
}

static void check_size(Check *c, Expr *e, const char *of)
{
    check_expr(e, c);
    if (ex_unknown(e))
        fail(c, arena_printf(c->p->g->arena, "the size %s of a launch of %s changes in the sweep", ex_text(c->p->g->arena, e), of));
}

static void check_launches(Check *c, const Launches *list)
{
    c->alone = true;  // sizes are computed on the host
    for (const Launch *l = list->first; l; l = l->next) {
        const char *of = l->kernel ? l->kernel->name : "a library call";
        if (l->when != ALWAYS && !l->rows) fail(c, arena_printf(c->p->g->arena, "a launch of %s has a condition on no rows", of));
        for (int i = 0; i < l->nargs; i++) {
            const LaunchArg *a = &l->arg[i];
            if (a->kind == ARG_EXTENT) check_size(c, a->extent, of);
            for (int k = 0; k < a->count.n && a->kind == ARG_COUNT; k++) check_size(c, a->count.factor[k], of);
            if (a->kind == ARG_PLACE || a->kind == ARG_NAME) check_var(c, a->var);
            const Product *r = a->kind == ARG_PRODUCT ? a->product : NULL;
            const Var *const part[] = {r ? r->matrix : NULL, r ? r->coefficients : NULL, r ? r->eta : NULL,
                                       r ? r->weight : NULL, r ? r->out : NULL,          r ? r->sums : NULL};
            for (size_t k = 0; k < sizeof part / sizeof *part; k++)
                if (part[k]) check_var(c, part[k]);
        }
    }
    c->alone = false;
}

const char *kernels_check(const Program *p, const char *pass)
{
    if (strcmp(pass, "placement") == 0) return placements_check(p);
    const bool lowered = strcmp(pass, "lower") == 0 || strcmp(pass, "tables") == 0, shared = strcmp(pass, "share") == 0;
    Check c = {.p = p, .shared = !lowered, .named = !lowered && !shared, .scope = {.arena = p->g->arena, .g = p->g}};
    const Kernel *const lists[] = {p->setup.first, p->sweep.first};
    for (int i = 0; i < 2; i++)
        for (const Kernel *k = lists[i]; k && !c.wrong; k = k->next) {
            c.kernel = k;
            // what fills predictors, and their coefficients, comes first, too
            c.setup = i == 0 && k->kind != KERNEL_ROW && k->kind != KERNEL_ELEMENTS;
            c.n = c.nlocals = 0;
            c.team = k->kind == KERNEL_TEAM;
            declare(&c, "CHECKING", "int", false);
            declare(&c, "FOR_MODES", "int", false);
            declare(&c, "BY_COORDINATES", "int", false);
            declare(&c, "BY_UNKNOWNS", "int", false);
            declare(&c, "IS_DRAWN", "int", false);
            declare(&c, "NAN", "wide", false);
            if (k->row) {
                declare(&c, "dot", "wide", false);
                bind(&c, k->row);
            }
            if (k->ode && k->of_ode != ODE_SOLUTION) {
                const char *const given[] = {k->ode->time->name, k->ode->state->name, k->ode->inputs->name, "slope",
                                             "by_state",         "by_input"};
                for (size_t n = 0; n < sizeof given / sizeof *given; n++) declare(&c, given[n], "wide", n > 2);
                for (int n = 0; n < k->ode->plates.n; n++) bind(&c, k->ode->plates.index[n]);
            }
            check_list(&c, k->body);
            scope_leave(&c.scope, 0);
            if (!lowered && k->kind != KERNEL_FUNCTION && k->kind != KERNEL_PART && !launched(p, k)) fail(&c, "nothing launches it");
        }
    c.kernel = NULL;
    c.n = c.nlocals = 0;
    const Launches *const all[] = {&p->prepare, &p->refresh,    &p->again,  &p->finish,  &p->before, &p->log_prior,
                                   &p->log_lik, &p->replicates, &p->derive, &p->restore, &p->joint,  &p->forward};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check_launches(&c, all[i]);
    for (int i = 0; i < p->nupdates; i++) {
        check_launches(&c, &p->updates[i].density);
        check_launches(&c, &p->updates[i].jacobian);
        check_launches(&c, &p->updates[i].made);
        check_launches(&c, &p->updates[i].launches);
    }
    return c.wrong;
}
