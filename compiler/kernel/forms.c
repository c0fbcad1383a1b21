// forms.c -- what emission needs of a node beside what the passes have made of it, computed once no node changes any more.
//
//   before   update z[n[i], 1] += x[i]                  after   the same, where 1 <= n[i] <= N: `exists`
//            a * log(u + v)                                     and in Program.logs that it is made of log u and log v
//
// Needs: the kernels as the passes have left them.     Gives: these members of nodes and kernels, and Program.logs.
// Keeps: all else.
#include <string.h>
#include "lower.h"

// ---- updates ----

// The condition that a place is there whose subscripts no loop changes, which the model reads under a condition: sums for it are made
// whatever the data, and are 0 then.
static Expr *place_exists(const Graph *g, const Place *at)
{
    Expr *all = NULL;
    const Expr *e = at->element;
    for (int k = 0; e && k < e->nargs; k++) all = ex_both(all, subscript_inside(g, e->args[k], e->var->dim[k]));
    for (int i = 0; at->array && i < at->n; i++) {
        const Sub *sub = &at->sub[i];
        for (int k = 0; sub->of && k < sub->n; k++) all = ex_both(all, subscript_inside(g, sub->at[k], sub->of->dim[sub->first + k]));
    }
    return all;
}

// Entries of a row of a joint normal that come at once, as many as the row of the matrix that they are.
static bool puts_row(const Node *n)
{
    return n->assign.place.array && n->assign.place.array->lowered.pattern && n->assign.place.n == 1 && n->assign.op == ASSIGN_SET;
}

// Definitions of integers are stored with 32 bits; what is added or multiplied may need more.
static bool may_overflow(const Var *v, const Expr *value)
{
    if (v->kind != VAR_LET && v->kind != VAR_DERIVED && v->kind != VAR_PREDICTED) return false;
    return value->kind == EX_ADD || value->kind == EX_MUL || value->kind == EX_POW || value->kind == EX_REDUCE ||
           (value->kind == EX_CALL && !function_rows[value->fn].infix && value->fn != FN_NOT && value->fn != FN_MOD);
}

static AsInteger as_integer(const Node *n)
{
    const Expr *at = n->assign.place.element, *value = n->assign.value;
    if (!at || at->var->base != BASE_INT) return INTEGER_PLAIN;
    if (may_overflow(at->var, value)) return INTEGER_CHECKED;
    if (value->kind == EX_REF && value->var->kind == VAR_ELEMENT) return INTEGER_DRAWN;
    return ex_is_integer(value) ? INTEGER_PLAIN : INTEGER_STATE;
}

static void form_assign(const Graph *g, Node *n)
{
    n->assign.puts_row = puts_row(n);
    n->assign.integer = as_integer(n);
    n->assign.exists = n->assign.puts_row ? NULL : place_exists(g, &n->assign.place);
}

static bool adds_plainly(const Node *n, const Expr *value)
{
    return n && n->kind == NODE_ASSIGN && n->assign.op == ASSIGN_ADD && n->assign.how == STORE_PLAIN && n->assign.value == value &&
           n->assign.place.array && !n->assign.place.array->lowered.pattern && !n->assign.own && !n->assign.times && !n->assign.drawn &&
           !n->assign.exists;
}

// An entry of a symmetric matrix and its mirror image.
static bool adds_twice(const Node *list)
{
    const Node *first = list->next, *other = first ? first->next : NULL;
    return list->let.key && list->let.key == list->let.value && !list->let.grows && adds_plainly(first, list->let.key) &&
           adds_plainly(other, list->let.key) && !other->next && first->assign.place.array == other->assign.place.array;
}

static bool sets_to(const Node *n, const char *function, int nargs)
{
    return n && n->kind == NODE_ASSIGN && n->assign.op == ASSIGN_SET && n->assign.how == STORE_PLAIN && !n->assign.exists &&
           n->assign.value->kind == EX_CALL && n->assign.value->nargs == nargs && strcmp(n->assign.value->name, function) == 0;
}

// lp += c*log(s), the derivatives by centre and spread, slope = slope*scale (hmc/chain.c).
static const Chained *chained(Arena *a, const Node *n)
{
    const Node *centre = n->next, *spread = centre ? centre->next : NULL, *slope = spread ? spread->next : NULL;
    if (n->assign.op != ASSIGN_ADD || !n->assign.place.local || n->assign.how != STORE_PLAIN) return NULL;
    if (!sets_to(centre, "standard_by_centre", 3) || !sets_to(spread, "standard_by_spread", 5)) return NULL;
    Expr *const *by = spread->assign.value->args, *share = by[1], *scale = centre->assign.value->args[1], *g = by[4];
    const bool last = slope && slope->kind == NODE_ASSIGN && slope->assign.op == ASSIGN_SET && slope->assign.how == STORE_PLAIN &&
                      slope->assign.value == ex_mul2(g, scale) && slope->assign.place.element == g;
    if (!last || n->assign.value != ex_mul2(share, ex_call1("log", by[3]))) return NULL;
    Chained *c = NEW(a, Chained);
    *c = (Chained){share, by[2], by[3], scale, by[0], &slope->assign.place, &centre->assign.place, &spread->assign.place};
    return c;
}

// ---- loops over missing values ----

static bool part_mentions(const NodePart *part, void *with)
{
    const Index *i = with;
    if (part->e && ex_mentions_index(part->e, i)) return true;
    const Place *at = part->kind == HAS_PLACE ? part->place : NULL;
    if (!at) return false;
    if (at->element && ex_mentions_index(at->element, i)) return true;
    for (int k = 0; k < at->n; k++)
        for (int j = 0; j < at->sub[k].n; j++)
            if (ex_mentions_index(at->sub[k].at[j], i)) return true;
    return false;
}

// Whether the text of a list names an index. A DRAW names the number of its element alone; of kinds other than those below it is assumed.
static bool names_index(const Node *list, const Index *i)
{
    for (const Node *n = list; n; n = n->next) {
        switch (n->kind) {
        case NODE_COMMENT: break;
        case NODE_NEST:
        case NODE_REDUCE:  // its loops are below it, and no text names its target
            if (names_index(n->body, i)) return true;
            break;
        case NODE_LET:
        case NODE_KNOW:
        case NODE_IF:
        case NODE_LOOP:
            if (each_part(n, part_mentions, (void *)i) || names_index(n->body, i) || names_index(n->otherwise, i)) return true;
            break;
        case NODE_ASSIGN:
            if (!n->assign.drawn && each_part(n, part_mentions, (void *)i)) return true;
            if (n->assign.exists && ex_mentions_index(n->assign.exists, i)) return true;
            break;
        case NODE_DRAW:
            if (!n->draw.law) return true;
            for (int k = 0; k < n->draw.nargs; k++)
                if (n->draw.arg[k].value && ex_mentions_index(n->draw.arg[k].value, i)) return true;
            break;
        default: return true;
        }
    }
    return false;
}

static void form_loop(Node *n)
{
    if (n->loop.how != SHARE_MISSING && n->loop.how != SHARE_IN_TURN) return;
    for (int k = 0; k < n->loop.n; k++) n->loop.unnamed[k] = !names_index(n->body, n->loop.index[k]);
}

// ---- differential equations ----

static const Kernel *function_of(const Program *p, const Ode *ode, int which)
{
    const Kernel *const lists[] = {p->setup.first, p->sweep.first};
    for (int i = 0; i < 2; i++)
        for (const Kernel *k = lists[i]; k; k = k->next)
            if (k->ode == ode && (int)k->of_ode == which) return k;
    return NULL;
}

static void form_solve(const Program *p, Node *n)
{
    const Ode *ode = n->solve.ode;
    n->solve.by = ode->start_moves ? ex_sub(ode->columns, ex_dim(ode->call, 1)) : ode->columns;
    n->solve.slopes = n->solve.asked && ode->slopes && placement_of(p, ode->slopes)->var == ode->slopes;
    n->solve.derivatives = function_of(p, ode, ODE_DERIVATIVES) != NULL;
}

// ---- all kinds ----

static void form_list(const Program *p, Node *list)
{
    for (Node *n = list; n; n = n->next) {
        if (n->kind == NODE_ASSIGN) form_assign(p->g, n);
        if (n->kind == NODE_SOLVE) form_solve(p, n);
        form_list(p, n->body);
        form_list(p, n->otherwise);
        if (n->kind == NODE_LOOP) form_loop(n);  // after what is below it
    }
    for (Node *n = list; n; n = n->next)
        if (n->kind == NODE_LET) n->let.twice = adds_twice(n);
        else if (n->kind == NODE_ASSIGN) n->assign.chain = chained(p->g->arena, n);
}

static bool sums_products(const Node *list)
{
    for (const Node *n = list; n; n = n->next)
        if ((n->kind == NODE_LOOP && n->loop.product) || sums_products(n->body) || sums_products(n->otherwise)) return true;
    return false;
}

// ---- logarithms ----
//
// An unknown that may round to an end of its support is read by its logarithm, where an array keeps that (logs.c): log(x + y) is made of
// log x and log y, pow(x, r) of log x. Emission sees which of them have a name at the call.

typedef struct LogCalls {
    Arena *arena;
    Map *forms;
    int n, size;
    const Expr **call;
} LogCalls;

static Look test_call(const Expr *e, void *with)
{
    LogCalls *c = with;
    const bool sum = e->kind == EX_CALL && e->fn == FN_log && e->args[0]->kind == EX_ADD,
               power = e->kind == EX_CALL && e->fn == FN_pow && e->args[0]->kind == EX_REF;
    if ((!sum && !power) || map_get(c->forms, e)) return LOOK;
    ROOM(c->arena, c->call, c->n, c->size);
    c->call[c->n++] = e;
    return LOOK;
}

typedef struct Refs {
    Arena *arena;
    int n, size;
    const Expr **of;
} Refs;

static Look test_unknown(const Expr *e, void *with)
{
    Refs *u = with;
    if (e->kind != EX_REF || e->nargs < e->var->rank) return LOOK;
    ROOM(u->arena, u->of, u->n, u->size);
    u->of[u->n++] = e;
    return SKIP;
}

static void log_form(LogCalls *c, const Expr *call)
{
    Refs u = {.arena = c->arena};
    Expr *of = call->args[0];
    const bool sum = of->kind == EX_ADD;
    ex_find(of, test_unknown, &u);
    if (!u.n) return;
    LogForm *f = NEW(c->arena, LogForm);
    f->n = u.n;
    f->of = NEW_N(c->arena, Expr *, u.n);
    f->log = NEW_N(c->arena, Expr *, u.n);
    for (int i = 0; i < u.n; i++) f->log[i] = ex_log(f->of[i] = (Expr *)u.of[i]);
    bool positive = true;
    for (int i = 0; i < of->nargs && sum; i++) positive = positive && ex_positive(of->args[i]);
    f->nterms = !positive ? 0 : sum ? of->nargs : 1;
    f->term = NEW_N(c->arena, Expr *, f->nterms + 1);
    for (int i = 0; i < f->nterms; i++) f->term[i] = ex_log(sum ? of->args[i] : of);
    map_put(c->arena, c->forms, call, f);
    for (int i = 0; i < f->nterms; i++) ex_find(f->term[i], test_call, c);
}

static void look_for_logs(Expr *e, void *with)
{
    LogCalls *c = with;
    if (!e) return;
    ex_find(e, test_call, c);
    while (c->n > 0) log_form(c, c->call[--c->n]);
}

// Of every expression that a node may be written by.
static bool look_at_part(const NodePart *part, void *with)
{
    look_for_logs(part->e, with);
    if (part->kind == HAS_PLACE) each_subscript(part->place, look_for_logs, with);
    return false;
}

static void find_logs(const Node *list, LogCalls *c)
{
    for (const Node *n = list; n; n = n->next) {
        each_part(n, look_at_part, c);
        find_logs(n->body, c);
        find_logs(n->otherwise, c);
    }
}

// ---- a kernel ----

static bool test_wild(const Var *v, void *with)
{
    (void)with;
    return v->known.wild;
}

bool reads_wild(const Expr *subscript) { return ex_any_var(subscript, test_wild, NULL); }

void form_kernel(Lower *p, Kernel *k)
{
    LogCalls c = {.arena = p->g->arena, .forms = &p->out->logs};
    form_list(p->out, k->body);
    k->products = sums_products(k->body);
    find_logs(k->body, &c);
    for (int i = 0; k->columns && i < k->columns->n; i++) {
        const ColumnSum *s = &k->columns->of[i];
        look_for_logs(s->column, &c);
        for (int j = 0; j < s->ngiven; j++) look_for_logs(s->is[j], &c);
    }
}
