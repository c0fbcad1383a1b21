// check.c -- what holds of kernels after each pass. A broken rule is a fault of the pass that broke it, and is named with it.
//
//   always           an index stands within a loop over it; a REDUCE only adds, multiplies, ...
//   from `share`     turns are shared only where a team or a crew runs the loop
//   from `outside`   a sum within an expression has a name
#include <string.h>
#include "kernel.h"
#include "scope.h"

typedef struct Check {
    const Program *p;
    const Kernel  *kernel;
    bool           shared, named;        // the passes are done
    bool           team, crew;
    Scope          scope;
    int            n, size;
    const Index  **index;                // that are bound here
    const Expr    *group;                // a subscript that is the group of a loop
    const char    *wrong;
} Check;

static void fail(Check *c, const char *what)
{
    if (!c->wrong) c->wrong = arena_printf(c->p->g->arena, "kernel %s: %s", c->kernel->name, what);
}

static void bind(Check *c, const Index *i)
{
    ROOM(c->p->g->arena, c->index, c->n, c->size);
    c->index[c->n++] = i;
}

static Look test_part(const Expr *e, void *with)
{
    Check *c = with;
    if (e == c->group || scope_find(&c->scope, e)) return SKIP;
    if (e->kind == EX_INDEX && e->index->height == 0) {
        for (int i = 0; i < c->n; i++)
            if (c->index[i] == e->index) return SKIP;
        fail(c, arena_printf(c->p->g->arena, "`%s` stands outside a loop over it", e->index->name));
        return FOUND;
    }
    // Sizes are written as calls, and a choice computes one of its sides alone.
    if (e->kind == EX_REDUCE && c->named && !is_greatest(e)) {
        fail(c, arena_printf(c->p->g->arena, "%s has no name", ex_text(c->p->g->arena, e)));
        return FOUND;
    }
    return e->kind == EX_CALL && e->fn == FN_if_else ? SKIP : LOOK;
}

static void check_expr(Expr *e, void *with) { ex_find(e, test_part, with); }

static bool for_team(Sharing how)
{
    switch (how) {
    case SHARE_ALONG: case SHARE_SUM_ALONG: case SHARE_INTO: case SHARE_KEYED: case SHARE_GROUPS: case SHARE_CREW: case SHARE_COLOUR_CREW: return true;
    case SHARE_SERIAL: case SHARE_BACKWARD: case SHARE_EACH: case SHARE_COLOUR: case SHARE_MISSING: case SHARE_IN_TURN: case SHARE_SUM_TURNS: case SHARE_PLACES: case SHARE_ROWS: break;
    }
    return false;
}

static void check_list(Check *c, const Node *list);

static void check_scope(Check *c, const Node *body, bool team, bool crew)
{
    const bool t = c->team, w = c->crew;
    const int known = c->scope.n, bound = c->n;
    c->team = team;
    c->crew = crew;
    check_list(c, body);
    c->team = t;
    c->crew = w;
    c->n = bound;
    scope_leave(&c->scope, known);
}

static void check_loop(Check *c, const Node *n)
{
    const Sharing how = n->loop.how;
    const int bound = c->n;
    if (c->shared && for_team(how) && !c->team) fail(c, "turns are shared where one lane runs the loop");
    if (c->shared && how == SHARE_SUM_TURNS && !c->crew) fail(c, "turns are shared by a crew where there is none");
    for (int i = 0; i < n->loop.n; i++) bind(c, n->loop.index[i]);
    scope_written(&c->scope, n->body);
    const bool crew = how == SHARE_CREW || how == SHARE_COLOUR_CREW, serial = how == SHARE_SERIAL || how == SHARE_BACKWARD;
    check_scope(c, n->body, serial && c->team, crew || (serial && c->crew));
    c->n = bound;
}

static void check_list(Check *c, const Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        const int bound = c->n;
        switch (n->kind) {
        case NODE_NEST: case NODE_REDUCE:
            for (int i = 0; i < n->nest.loops.n && !c->shared; i++) bind(c, n->nest.loops.index[i]);
            for (const Node *m = n->body; m && n->kind == NODE_REDUCE; m = m->next)
                if (m->kind == NODE_UPDATE && m->update.op == UPDATE_SET) fail(c, "a sum sets a place");
            check_list(c, n->body);
            c->n = bound;
            break;
        case NODE_LOOP: check_loop(c, n); break;
        case NODE_LANE: {
            const Expr *group = c->group;
            if (n->lane.key) c->group = n->lane.key;
            check_scope(c, n->body, false, false);
            c->group = group;
            break;
        }
        case NODE_IF:
            each_expr(n, check_expr, c);
            check_scope(c, n->body, c->team, c->crew);
            check_scope(c, n->test.otherwise, c->team, c->crew);
            break;
        case NODE_LET:
            each_expr(n, check_expr, c);
            if (n->let.key) scope_know(&c->scope, n->let.key, n->let.local);
            break;
        case NODE_KNOW: scope_know(&c->scope, n->let.key, n->let.local); break;
        case NODE_ARRAY: scope_know(&c->scope, n->array.key, n->array.local); break;
        case NODE_MATRIX: scope_know(&c->scope, n->matrix.key, n->matrix.local); break;
        case NODE_CHOICE: scope_know(&c->scope, n->choice.key, n->choice.local); break;
        case NODE_SLICE: case NODE_METROPOLIS: case NODE_WEIGH: case NODE_MOVE:
            each_expr(n, check_expr, c);
            scope_wrote(&c->scope, n);
            check_scope(c, n->body, c->team, c->crew);
            break;
        case NODE_COMMENT: case NODE_SKIP: case NODE_UPDATE: case NODE_FILL: case NODE_BARRIER: case NODE_DRAW: case NODE_SAMPLE: case NODE_CLAIM: case NODE_BOUNDS: case NODE_CHECK:
        case NODE_DRAW_ARRAY: case NODE_DRAW_NORMAL: case NODE_COPY: case NODE_COMPUTE: case NODE_RETURN: case NODE_RESULT:
            each_expr(n, check_expr, c);
            break;
        }
        scope_wrote(&c->scope, n);
    }
}

const char *kernels_check(const Program *p, const char *pass)
{
    if (strcmp(pass, "placement") == 0) return placements_check(p);
    const bool lowered = strcmp(pass, "lower") == 0, shared = strcmp(pass, "share") == 0;
    Check c = {.p = p, .shared = !lowered, .named = !lowered && !shared, .scope = {.arena = p->g->arena}};
    const Kernel *const lists[] = {p->setup.first, p->sweep.first};
    for (int i = 0; i < 2; i++)
        for (const Kernel *k = lists[i]; k && !c.wrong; k = k->next) {
            c.kernel = k;
            c.n = 0;
            c.team = k->kind == KERNEL_TEAM;
            if (k->row) bind(&c, k->row);
            check_list(&c, k->body);
            scope_leave(&c.scope, 0);
        }
    return c.wrong;
}
