// node.c -- kernels as trees: making them and walking them.
#include <math.h>
#include "../base/words.h"
#include "kernel.h"

Node *node_new(Arena *a, NodeKind kind)
{
    Node *n = NEW(a, Node);
    n->kind = kind;
    return n;
}

// A name made of names of the model may be one of the runtime's, as at_end of a variable `end`. Its own words are met by nothing.
const char *function_name(Arena *a, const char *name) { return word_apart(a, name, word_declared); }

Var *local_named(Arena *a, const char *name) { return local_new(a, intern(function_name(a, name))); }

Var *local_new(Arena *a, const char *name)
{
    Var *v = NEW(a, Var);
    *v = (Var){.name = name, .kind = VAR_ELEMENT, .id = 63, .base = BASE_REAL};
    return v;
}

Expr *local_ref(Var *local) { return ex_ref(local, 0, NULL); }

Count count_dims(const Var *v, int first, int n)
{
    Count c = {0};
    for (int k = first; k < first + n; k++) c.factor[c.n++] = v->dim[k];
    return c;
}

static bool place_written(const Place *at, bool (*f)(const Var *, void *), void *with)
{
    const Var *v = at->local ? at->local : at->element ? at->element->var : at->array;
    return v && f(v, with);
}

static bool series_written(const Conditional *c, bool (*f)(const Var *, void *), void *with)
{
    return f(c->var, with) || (c->recursion && f(c->recursion, with));
}

// The array of derivatives of the solution that a series is; NULL: it is none, or they are not known.
static const Var *solution_slopes(const Series *s)
{
    const Ode *o = s->var[0]->sites ? s->var[0]->sites->ode : NULL;
    return o ? o->slopes : NULL;
}

bool writes(const Node *list, bool (*f)(const Var *, void *), void *with)
{
    for (const Node *n = list; n; n = n->next) {
        bool yes = false;
        switch (n->kind) {
        case NODE_ASSIGN: yes = place_written(&n->assign.place, f, with); break;
        case NODE_FILL: yes = f(n->fill.array, with); break;
        case NODE_DRAW: yes = place_written(&n->draw.place, f, with); break;
        case NODE_SAMPLE: yes = f(n->sample.site->var, with); break;
        case NODE_SLICE:
        case NODE_METROPOLIS: yes = series_written(n->slice.c, f, with); break;
        case NODE_WEIGH: yes = series_written(n->weigh.c, f, with); break;
        case NODE_WEIGHTS: yes = f(n->weights.of->var, with); break;
        case NODE_ELLIPSE: yes = f(n->ellipse.c->var, with); break;
        case NODE_CONSTRAINED: yes = series_written(n->constrained.c, f, with); break;
        case NODE_DRAW_ARRAY: yes = f(n->whole.c->var, with); break;
        case NODE_DRAW_NORMAL: yes = f(n->normal.update->block[0], with); break;
        case NODE_DRAW_BAND: {
            const Var *const all[] = {n->band.x, n->band.B, n->band.k, n->band.z, n->band.E, n->band.A, n->band.h};
            for (size_t i = 0; i < sizeof all / sizeof *all && !yes; i++) yes = all[i] && f(all[i], with);
            break;
        }
        case NODE_DRAW_STATES: yes = f(n->states.weight, with) || f(n->states.link, with) || f(n->states.part, with); break;
        case NODE_COPY:
            yes = n->copy.gather && f(n->copy.joint, with);
            for (int i = 0; i < n->copy.n && !n->copy.gather; i++) yes = yes || f(n->copy.var[i], with);
            break;
        case NODE_TRANSFORM:
            if (n->transform.part == TRANSFORM_CHAIN) yes = f(n->transform.out->var, with) || f(n->transform.log_slope->var, with);
            else yes = f(n->transform.part == TRANSFORM_FROM ? n->transform.x->var : n->transform.y->var, with);
            yes = yes || (n->transform.work && f(n->transform.work->var, with));
            break;
        case NODE_WHITENED: {
            Expr *const part[] = {n->whitened.part == TRANSFORM_TO ? n->whitened.q : NULL,
                                  n->whitened.part == TRANSFORM_CHAIN ? NULL : n->whitened.apart,
                                  n->whitened.part == TRANSFORM_CHAIN ? NULL : n->whitened.noise,
                                  n->whitened.slope,
                                  n->whitened.by_mean,
                                  n->whitened.left,
                                  n->whitened.right,
                                  n->whitened.pivot};
            for (size_t i = 0; i < sizeof part / sizeof *part && !yes; i++) yes = part[i] && f(part[i]->var, with);
            break;
        }
        case NODE_FACTOR:
            yes = (n->factor.adjoint && f(n->factor.adjoint, with)) ||
                  ((!n->factor.adjoint || n->factor.inverse) && f(n->factor.matrix, with));
            if (n->factor.inverse && !n->factor.adjoint) yes = yes || f(n->factor.inverse, with) || f(n->factor.log_det, with);
            break;
        case NODE_ROUTINE: yes = f(n->routine.to->var, with); break;
        case NODE_COMPUTE:
            for (int i = 0; i < n->compute.series->n; i++) yes = yes || f(n->compute.series->var[i], with);
            yes = yes || (n->compute.slopes && solution_slopes(n->compute.series) && f(solution_slopes(n->compute.series), with));
            break;
        case NODE_SOLVE: yes = f(n->solve.ode->site->var, with); break;
        case NODE_IF:
        case NODE_CHOICE:
        case NODE_COMMENT:
        case NODE_LET:
        case NODE_KNOW:
        case NODE_NEST:
        case NODE_REDUCE:
        case NODE_LOOP:
        case NODE_LANE:
        case NODE_SKIP:
        case NODE_ORDER:
        case NODE_BARRIER:
        case NODE_ARRAY:
        case NODE_MATRIX:
        case NODE_RATIO:
        case NODE_CHECK:
        case NODE_BOUNDS:
        case NODE_CALL:
        case NODE_RETURN:
        case NODE_RESULT: break;
        }
        if (yes || writes(n->otherwise, f, with) || writes(n->body, f, with)) return true;
    }
    return false;
}

static void in_place(const Place *at, void (*f)(Expr *, void *), void *with)
{
    for (int i = 0; at->element && i < at->element->nargs; i++) f(at->element->args[i], with);
    for (int k = 0; k < at->n; k++)
        for (int i = 0; i < at->sub[k].n; i++) f(at->sub[k].at[i], with);
}

void each_expr(const Node *n, void (*f)(Expr *, void *), void *with)
{
    switch (n->kind) {
    case NODE_LET:
        if (n->let.value) f(n->let.value, with);
        break;
    case NODE_IF:
        if (n->test.condition) f(n->test.condition, with);
        break;
    case NODE_SKIP: f(n->skip.condition, with); break;
    case NODE_ASSIGN:
        in_place(&n->assign.place, f, with);
        f(n->assign.value, with);
        break;
    case NODE_DRAW:
        in_place(&n->draw.place, f, with);
        for (int i = 0; i < n->draw.nargs; i++)
            if (n->draw.arg[i].value) f(n->draw.arg[i].value, with);
        break;
    case NODE_SLICE:
    case NODE_METROPOLIS:
        if (n->slice.start) f(n->slice.start, with);
        if (n->slice.lo) f(n->slice.lo, with);
        if (n->slice.hi) f(n->slice.hi, with);
        break;
    case NODE_WEIGH:
        f(n->weigh.first, with);
        f(n->weigh.last, with);
        for (const ValueWeights *w = n->weigh.weights_of; w; w = w->next)
            for (int i = 0; i < w->n; i++) f(w->key[i], with);
        break;
    case NODE_WEIGHTS: f(n->weights.of->log, with); break;
    case NODE_CONSTRAINED:
        if (n->constrained.start) f(n->constrained.start, with);
        break;
    case NODE_TRANSFORM: {
        Expr *const part[] = {n->transform.y,     n->transform.x,   n->transform.work,
                              n->transform.slope, n->transform.out, n->transform.log_slope};
        for (size_t i = 0; i < sizeof part / sizeof *part; i++)
            if (part[i]) f(part[i], with);
        break;
    }
    case NODE_WHITENED: {
        Expr *const part[] = {n->whitened.shares, n->whitened.mean,  n->whitened.from,  n->whitened.q,
                              n->whitened.apart,  n->whitened.noise, n->whitened.slope, n->whitened.by_mean,
                              n->whitened.left,   n->whitened.right, n->whitened.pivot};
        for (size_t i = 0; i < sizeof part / sizeof *part; i++)
            if (part[i]) f(part[i], with);
        break;
    }
    case NODE_ROUTINE:
        f(n->routine.to, with);
        for (int i = 0; i < n->routine.from->nargs; i++) f(n->routine.from->args[i], with);
        break;
    case NODE_RETURN:
        f(n->row.weight, with);
        if (n->row.square) f(n->row.square, with);
        break;
    case NODE_RESULT: f(n->result.value, with); break;
    case NODE_ELLIPSE: f(n->ellipse.stream, with); break;
    case NODE_COMMENT:
    case NODE_KNOW:
    case NODE_NEST:
    case NODE_REDUCE:
    case NODE_LOOP:
    case NODE_LANE:
    case NODE_FILL:
    case NODE_ORDER:
    case NODE_BARRIER:
    case NODE_ARRAY:
    case NODE_MATRIX:
    case NODE_CHOICE:
    case NODE_SAMPLE:
    case NODE_RATIO:
    case NODE_BOUNDS:
    case NODE_CHECK:
    case NODE_DRAW_ARRAY:
    case NODE_DRAW_NORMAL:
    case NODE_DRAW_BAND:
    case NODE_DRAW_STATES:
    case NODE_FACTOR:
    case NODE_COPY:
    case NODE_COMPUTE:
    case NODE_SOLVE:
    case NODE_CALL: break;
    }
}

static void reads(const Expr *e, bool (*f)(const Var *, void *), void *with)
{
    if (e) ex_any_var(e, f, with);
}

static void loops_read(const Loops *l, bool (*f)(const Var *, void *), void *with)
{
    for (int i = 0; i < l->n; i++) {
        reads(l->index[i]->lo, f, with);
        reads(l->index[i]->hi, f, with);
    }
    reads(l->guard, f, with);
}

void each_array(const Node *n, bool (*f)(const Var *, void *), void *with)
{
    switch (n->kind) {
    case NODE_LET:
    case NODE_KNOW: reads(n->let.key, f, with); break;
    case NODE_NEST:
    case NODE_REDUCE:
        loops_read(&n->nest.loops, f, with);
        for (int k = 0; k < n->nest.n && n->nest.target; k++) reads(n->nest.target[k], f, with);
        break;
    case NODE_LOOP:
        for (int k = 0; k < n->loop.n && !n->loop.of; k++) {
            reads(n->loop.index[k]->lo, f, with);
            reads(n->loop.index[k]->hi, f, with);
        }
        for (int k = 0; k < n->loop.narrays; k++) f(n->loop.array[k], with);
        if (n->loop.classes) {
            f(n->loop.classes->first, with);
            f(n->loop.classes->elements, with);
        }
        if (n->loop.order) {
            f(n->loop.order->keys, with);
            f(n->loop.order->first, with);
            f(n->loop.order->rows, with);
        }
        break;
    case NODE_ORDER: {
        const Order *o = n->order.order;
        const Var *const array[] = {o->keys, o->first, o->rows, o->spare};
        reads(o->key, f, with);
        for (int k = 0; k < 4; k++) f(array[k], with);
        break;
    }
    case NODE_LANE: reads(n->lane.key, f, with); break;
    case NODE_ASSIGN: place_written(&n->assign.place, f, with); break;
    case NODE_FILL: f(n->fill.array, with); break;
    case NODE_ARRAY:
        reads(n->array.key, f, with);
        reads(n->array.value, f, with);
        break;
    case NODE_MATRIX: reads(n->matrix.key, f, with); break;
    case NODE_CHOICE: reads(n->choice.key, f, with); break;
    case NODE_DRAW: place_written(&n->draw.place, f, with); break;
    case NODE_SAMPLE:
        f(n->sample.site->var, with);
        for (int i = 0; i < n->sample.site->nargs; i++) reads(n->sample.site->args[i], f, with);
        break;
    case NODE_SLICE:
    case NODE_METROPOLIS:
        f(n->slice.c->var, with);
        f(n->slice.width, with);
        break;
    case NODE_WEIGH:
        f(n->weigh.c->var, with);
        if (n->weigh.weights) f(n->weigh.weights, with);
        for (const ValueWeights *w = n->weigh.weights_of; w; w = w->next) f(w->var, with);
        break;
    case NODE_WEIGHTS: f(n->weights.of->var, with); break;
    case NODE_ELLIPSE: f(n->ellipse.c->var, with); break;
    case NODE_CONSTRAINED:
        f(n->constrained.c->var, with);
        f(n->constrained.width, with);
        if (n->constrained.inside) f(n->constrained.inside, with);
        break;
    case NODE_DRAW_ARRAY:
        f(n->whole.c->var, with);
        f(n->whole.array, with);
        if (n->whole.scalar) f(n->whole.scalar, with);
        break;
    case NODE_DRAW_BAND: {
        const Var *const all[] = {n->band.x, n->band.B, n->band.k, n->band.z, n->band.E, n->band.A, n->band.h};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            if (all[i]) f(all[i], with);
        break;
    }
    case NODE_DRAW_STATES:
        f(n->states.weight, with);
        f(n->states.link, with);
        f(n->states.part, with);
        break;
    case NODE_DRAW_NORMAL:
        f(n->normal.update->block[0], with);
        f(n->normal.J, with);
        f(n->normal.h, with);
        break;
    case NODE_COPY:
        f(n->copy.joint, with);
        for (int i = 0; i < n->copy.n; i++) f(n->copy.var[i], with);
        break;
    case NODE_FACTOR: {
        const Var *const all[] = {n->factor.matrix, n->factor.inverse, n->factor.log_det, n->factor.adjoint, n->factor.log_det_adjoint};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            if (all[i]) f(all[i], with);
        break;
    }
    case NODE_WHITENED: f(n->whitened.root, with); break;
    case NODE_ROUTINE:
        reads(n->routine.from, f, with);
        f(n->routine.to->var, with);
        break;
    case NODE_COMPUTE:
        for (int i = 0; i < n->compute.series->n; i++) f(n->compute.series->var[i], with);
        if (n->compute.slopes && solution_slopes(n->compute.series)) f(solution_slopes(n->compute.series), with);
        break;
    case NODE_SOLVE: f(n->solve.ode->site->var, with); break;
    case NODE_RATIO:
        for (int i = 0; i < n->ratio.n; i++) {
            f(n->ratio.natural[i], with);
            reads(n->ratio.statistic[i], f, with);
        }
        if (n->ratio.value) reads(n->ratio.value, f, with);
        break;
    case NODE_COMMENT:
    case NODE_IF:
    case NODE_SKIP:
    case NODE_BARRIER:
    case NODE_BOUNDS:
    case NODE_CHECK:
    case NODE_CALL:
    case NODE_RETURN:
    case NODE_RESULT:
    case NODE_TRANSFORM: break;
    }
}

typedef struct Reader {
    const Var *local;
    bool found;
} Reader;

static bool is_local(const Var *v, void *with)
{
    Reader *r = with;
    return r->found |= v == r->local;
}

static void look_for_local(Expr *e, void *with) { reads(e, is_local, with); }

bool reads_local(const Node *list, const Var *local)
{
    Reader r = {local, false};
    for (const Node *n = list; n && !r.found; n = n->next) {
        each_expr(n, look_for_local, &r);
        each_array(n, is_local, &r);
        const Place *place = n->kind == NODE_ASSIGN ? &n->assign.place : n->kind == NODE_DRAW ? &n->draw.place : NULL;
        for (int k = 0; place && k < place->n; k++) reads(place->sub[k].offset, is_local, &r);
        r.found |= reads_local(n->body, local);
    }
    return r.found;
}

void drop_spare(Node **list)
{
    if (!*list) return;
    drop_spare(&(*list)->next);  // from the last: what only a spare one reads is spare
    const Node *n = *list;
    if (n->kind == NODE_LET && n->let.spare && !reads_local(n->next, n->let.local)) *list = n->next;
}

// ---- matrices that are computed within expressions ----

static Look array(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_AT || (e->kind == EX_CALL && e->fn == FN_log_determinant) ? FOUND : LOOK;
}

bool needs_array(const Expr *e) { return e && ex_find(e, array, NULL); }

static Look own_array(const Expr *e, void *with)
{
    const Loops *l = with;
    if (array(e, NULL) != FOUND) return LOOK;
    if (e->args[0]->loose) return FOUND;
    for (int i = 0; i < l->n; i++)
        if (ex_mentions_index(e->args[0], l->index[i])) return FOUND;
    return LOOK;
}

bool needs_own_array(const Expr *e, const Loops *l) { return e && ex_find(e, own_array, (void *)l); }

static Look no_integer(const Expr *e, void *with)
{
    (void)with;
    switch (e->kind) {
    case EX_NUM: return e->number == floor(e->number) && fabs(e->number) < 1e9 ? SKIP : FOUND;
    case EX_INDEX: return SKIP;
    case EX_REF: return e->var->base == BASE_INT ? SKIP : FOUND;
    case EX_ADD:
    case EX_MUL: return LOOK;
    case EX_POW:
    case EX_CALL:
    case EX_REDUCE:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return FOUND;
}

// Whether C computes e in whole numbers.
bool ex_is_integer(const Expr *e) { return !ex_find(e, no_integer, NULL); }

static bool test_response(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_DATA && v->response;
}

bool ex_reads_response(const Expr *e) { return e && ex_any_var(e, test_response, NULL); }

bool reads_response(const Sum *s)
{
    bool yes = ex_reads_response(s->value) || ex_reads_response(s->loops.guard);
    for (int k = 0; k < s->n; k++) yes |= ex_reads_response(s->target[k]);
    for (int k = 0; k < s->loops.n; k++) yes |= ex_reads_response(s->loops.index[k]->lo) || ex_reads_response(s->loops.index[k]->hi);
    return yes;
}
