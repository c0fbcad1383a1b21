// ode.c -- solutions of differential equations: what they depend on.
//
//   before   z[i, k] = ode_rk45((t, y) -> [-exp(a)*y[1], ...], y0, 0, ts)[i, k]
//   after    the same, with the inputs { exp(a), y0[1], y0[2] }: the right side in terms of p[1] in the place of exp(a),
//            and slopes_z[i, k, c], the derivative of z[i, k] by input c
//
// Such a definition is a series (series.c): an array of the state that is computed anew, by a routine of the runtime, when what it reads
// has changed. Its inputs are the largest parts of the right side that hold unknowns and neither time nor state, each a number while the
// equation is solved; arrays of unknowns that the right side reads at subscripts of its own, as A in A*y, with all their elements; and the
// state at the start, where that holds unknowns. The solver integrates the derivatives by the inputs (the sensitivity equations, Hindmarsh
// and others 2005, SUNDIALS) along with the solution; graph/algebra/gradient.c goes on from there by the chain rule.
//
// Needs: series.     Gives: Site.ode.     Keeps: everything else.
#include <string.h>
#include "ode.h"
#include "../terms/var.h"

static bool is_solver(const Expr *e) { return e->kind == EX_CALL && (e->fn == FN_ode_rk45 || e->fn == FN_ode_bdf); }

bool is_solution(const Site *t) { return t->value && t->value->kind == EX_AT && is_solver(t->value->args[0]); }

const Var *first_solution(const Graph *g)
{
    for (int i = 0; i < g->nvars; i++)
        for (const Site *t = g->vars[i]->sites; t; t = t->next)
            if (t->ode) return g->vars[i];
    return NULL;
}

// ---- inputs ----

typedef struct Inputs {
    Graph *g;
    Ode *o;
    const Index *component;
    int size, arrays_size;
    bool failed;
} Inputs;

static bool test_unknown(const Var *v, void *with)
{
    (void)with;
    return var_unknown(v) || v->kind == VAR_PART || v->kind == VAR_SERIES || v->kind == VAR_PREDICTED;
}

static bool moves(const Expr *e) { return ex_any_var(e, test_unknown, NULL); }

// Whether e is one number while the equation is solved.
static bool is_fixed(const Inputs *in, const Expr *e)
{
    return !e->loose && !ex_mentions(e, in->o->time) && !ex_mentions(e, in->o->state) &&
           !(in->component && ex_mentions_index(e, in->component));
}

static void collect(Inputs *in, Expr *e)
{
    Ode *o = in->o;
    if (!moves(e)) return;
    const bool multiple = e->kind == EX_MUL && e->nargs == 2 && e->args[0]->kind == EX_NUM;  // -a has the input a
    if (ex_rank(e) == 0 && !multiple && is_fixed(in, e)) {
        for (int i = 0; i < o->ninputs; i++)
            if (o->input[i] == e) return;
        ROOM(in->g->arena, o->input, o->ninputs, in->size);
        o->input[o->ninputs++] = e;
        return;
    }
    if (e->kind == EX_REF && test_unknown(e->var, NULL)) {
        for (int i = 0; i < o->narrays; i++)
            if (o->array[i] == e->var) return;
        ROOM(in->g->arena, o->array, o->narrays, in->arrays_size);
        o->array[o->narrays++] = e->var;
        return;
    }
    for (int i = 0; i < e->nargs; i++) collect(in, e->args[i]);
}

static Expr *count(const Var *v)
{
    Expr *n = ex_num(1);
    for (int k = 0; k < v->rank; k++) n = ex_mul2(n, v->dim[k]);
    return n;
}

// Larger ones are replaced first: exp(a) before a.
static void by_inputs(const Ode *o, Expr **e)
{
    double before = 0;
    for (int round = 0; round < o->ninputs; round++) {
        int best = -1;
        for (int i = 0; i < o->ninputs; i++) {
            const double size = o->input[i]->size + 1e-9 * i;
            if ((round == 0 || size < before) && (best < 0 || size > o->input[best]->size + 1e-9 * best)) best = i;
        }
        before = o->input[best]->size + 1e-9 * best;
        *e = ex_replace(*e, o->input[best], ex_ref(o->inputs, 1, (Expr *[]){ex_num(best + 1)}));
    }
}

// ---- one solution ----

static bool series_mentions(const Series *s, const Var *v)
{
    for (const Site *t = s->sites; t; t = t->next)
        if (t->value && ex_mentions(t->value, v)) return true;
    return false;
}

enum { MOST_COMPONENTS = 64 };  // of a right side that is written out, one line for each

static Ode *ode_new(Graph *g, Site *t)
{
    Expr *call = t->value->args[0];
    Ode *o = NEW(g->arena, Ode);
    *o = (Ode){.span = t->span,
               .site = t,
               .call = call,
               .start = call->args[1],
               .from = call->args[2],
               .times = call->args[3],
               .tolerance = {call->args[4], call->args[5]},
               .time = call->args[6]->var,
               .state = call->args[7]->var,
               .stiff = call->fn == FN_ode_bdf};
    o->row = t->subscript[t->n - 2]->index;
    o->column = t->subscript[t->n - 1]->index;
    o->plates = (Loops){.guard = t->plates.guard};
    for (int i = 0; i < t->plates.n; i++)
        if (t->plates.index[i] != o->row && t->plates.index[i] != o->column) o->plates.index[o->plates.n++] = t->plates.index[i];
    // the right side, component by component
    Expr *side = call->args[0], *n = ex_dim(call, 1);
    Inputs in = {.g = g, .o = o};
    if (n->kind == EX_NUM && n->number <= MOST_COMPONENTS) {
        o->ncomponents = (int)n->number;
        o->component = NEW_N(g->arena, Expr *, o->ncomponents + 1);
        for (int k = 0; k < o->ncomponents; k++) o->component[k] = ex_at(side, 1, (Expr *[]){ex_num(k + 1)});
    } else {
        o->each = index_new(intern("k"), ex_num(1), n);
        o->ncomponents = 1;
        o->component = NEW_N(g->arena, Expr *, 1);
        o->component[0] = ex_at(side, 1, (Expr *[]){ex_index(o->each)});
        in.component = o->each;
    }
    for (int k = 0; k < o->ncomponents; k++) collect(&in, o->component[k]);
    o->start_moves = moves(o->start);
    o->columns = ex_num(o->ninputs);
    for (int i = 0; i < o->narrays; i++) o->columns = ex_add2(o->columns, count(o->array[i]));
    if (o->start_moves) o->columns = ex_add2(o->columns, n);
    o->inputs = var_unique(g, "p", VAR_ELEMENT);
    o->inputs->rank = 1;
    o->inputs->dim[0] = ex_num(o->ninputs);
    for (int k = 0; k < o->ncomponents; k++) by_inputs(o, &o->component[k]);
    return o;
}

bool find_odes(Graph *g)
{
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        int nsites = 0, nodes = 0;
        for (Site *t = v->sites; t; t = t->next) {
            nsites++;
            if (!is_solution(t)) continue;
            nodes++;
            t->ode = ode_new(g, t);
        }
        if (!nodes) continue;
        if (v->series->n > 1 || series_mentions(v->series, v) || nodes < nsites) {
            Diag *m = diag(g->diags, v->span, DIAG_E0208, v->name);
            diag_help(m, "the right side, the start and the times of a differential equation depend on other names; a second equation that "
                         "starts from the end of the first has a name of its own");
            return false;
        }
        Ode *o = v->sites->ode;
        if (nsites > 1 || v->kind != VAR_SERIES || v->rank >= MAX_RANK || ex_is_num(o->columns, 0)) continue;
        o->slopes = var_unique(g, arena_printf(g->arena, "slopes_%s", v->name), VAR_SUM);
        o->slopes->rank = v->rank + 1;
        for (int k = 0; k < v->rank; k++) o->slopes->dim[k] = v->dim[k];
        o->slopes->dim[v->rank] = o->columns;
    }
    return true;
}

const Ode *ode_of(const Graph *g, const Expr *call)
{
    for (int i = 0; i < g->nvars; i++)
        for (const Site *t = g->vars[i]->sites; t; t = t->next)
            if (t->ode && t->ode->call == call && g->vars[i]->kind == VAR_SERIES) return t->ode;
    return NULL;
}
