// fields.c -- the arrays and numbers of Data and State, and how the tables describe each to the runtime.
//
//   data        { int N; vector[N] y; }           y: rank 1, its extent the field N, must be finite, values may be missing and stand in the
//   state then parameters  { real<lower=0> sigma; }          sigma: lower bound 0
//
// Needs: the program, placed.     Gives: Program.data, Program.state, Program.total.     Keeps: all else.
#include <math.h>
#include <string.h>
#include "lower.h"

static bool in_state(const Var *v)
{
    switch (v->kind) {
    case VAR_DATA: return v->response;
    case VAR_LET:
    case VAR_PARAMETER:
    case VAR_LATENT:
    case VAR_PART:
    case VAR_AUXILIARY:
    case VAR_DERIVED:
    case VAR_SERIES:
    case VAR_PREDICTED: return true;
    case VAR_SUM:
    case VAR_PATTERN:
    case VAR_ELEMENT: break;
    }
    return false;
}

static void list_fields(Program *p)
{
    const Graph *g = p->g;
    int nsums = 0;
    for (const Sum *s = p->sums; s; s = s->next) nsums++;
    p->data = NEW_N(g->arena, Field, g->nvars + 1);
    p->state = NEW_N(g->arena, Field, g->nvars + p->nwork + nsums + 1);
    for (int i = 0; i < g->nvars; i++) {
        if (g->vars[i]->kind == VAR_DATA) p->data[p->ndata++].var = g->vars[i];
        if (in_state(g->vars[i])) p->state[p->nstate++].var = g->vars[i];
    }
    for (const Sum *s = p->sums; s; s = s->next) p->state[p->nstate++].var = s->var;
    for (int i = 0; i < p->nwork; i++) p->state[p->nstate++].var = p->work[i];
}

int field_of(const Field *list, int n, const Var *v)
{
    for (int i = 0; i < n; i++)
        if (list[i].var == v) return i;
    return -1;
}

// ---- sizes ----

typedef struct Totals {
    Program *p;
    int size;
} Totals;

static Look keep_total(const Expr *e, void *with)
{
    Totals *t = with;
    Program *p = t->p;
    if (!is_data_total(e)) return LOOK;
    if (total_number(p, e)) return SKIP;
    ROOM(p->g->arena, p->total, p->ntotals, t->size);
    p->total[p->ntotals++] = e;
    return SKIP;
}

static void keep_totals(Totals *t, const Var *v)
{
    for (int k = 0; k < v->rank; k++) ex_find(v->dim[k], keep_total, t);
}

int total_number(const Program *p, const Expr *e)
{
    for (int i = 0; i < p->ntotals; i++)
        if (p->total[i] == e) return 1 + i;
    return 0;
}

static bool begins_a_name(const Graph *g, const char *stem)
{
    for (int i = 0; i < g->nvars; i++)
        if (strncmp(g->vars[i]->name, stem, strlen(stem)) == 0) return true;
    return false;
}

static void find_sizes(Program *p)
{
    Totals t = {.p = p};
    for (int i = 0; i < p->g->nvars; i++) keep_totals(&t, p->g->vars[i]);
    for (int i = 0; i < p->nstate; i++) keep_totals(&t, p->state[i].var);
    p->total_name = "size_";
    while (begins_a_name(p->g, p->total_name)) p->total_name = arena_printf(p->g->arena, "%s_", p->total_name);
}

// ---- what data must be ----

// Values may be missing if an update draws them.
static bool imputable(const Program *p, const Var *v)
{
    for (const Update *s = p->g->updates; s; s = s->next)
        if (s->imputes && s->block[0] == v) return true;
    return false;
}

// Infinite values make sense as ends of intervals only: not as a value that has a distribution, nor as a parameter of one.
static bool must_be_finite(const Graph *g, const Var *v)
{
    if (v->base != BASE_REAL) return false;
    bool used = v->response;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (f->original || !f->dist) continue;
        if ((f->lower && ex_mentions(f->lower, v)) || (f->upper && ex_mentions(f->upper, v))) return false;
        for (int k = 0; k < f->nargs; k++) used |= ex_mentions(f->args[k], v);
    }
    return used;
}

// 1 + the number of the field of Data that is the extent itself, or 0.
static int extent_field(const Program *p, const Expr *extent)
{
    return extent->kind == EX_REF && extent->var->rank == 0 ? 1 + field_of(p->data, p->ndata, extent->var) : 0;
}

// 1 + the number of the field of Data that has the lengths of rows, or 0.
static int rows_field(const Program *p, const Var *v)
{
    for (int i = 0; i < p->ndata && v->lengths; i++)
        if (p->data[i].var->name == v->lengths) return 1 + i;
    return 0;
}

// ---- bounds ----

// What is computed before the first sweep is not there yet when shapes are computed.
static bool is_computed(const Var *v, void *with)
{
    (void)with;
    return v->kind != VAR_DATA || v->rank > 0;
}

// Of data all that is declared counts, of unknowns what is the same for all elements.
static FieldBound bound_of(const Var *v, const Expr *declared, double number)
{
    if (declared && ex_any_var(declared, is_computed, NULL)) {
        declared = written_out((Expr *)declared);
        if (ex_any_var(declared, is_computed, NULL)) return (FieldBound){NULL, number};  // its density has it
    }
    if (v->kind == VAR_DATA && declared)
        return declared->kind == EX_NUM ? (FieldBound){NULL, declared->number} : (FieldBound){declared, number};
    if (isfinite(number)) return (FieldBound){NULL, number};
    return declared && !ex_unknown(declared) ? (FieldBound){declared, number} : (FieldBound){NULL, number};
}

// ---- shapes ----

bool keeps_rows_of_route(const Placement *at)
{
    return at->when == IF_MANY || at->when == IF_SYSTEM || (at->when == IF_FEW && !at->rows->listed);
}

static bool same_shape(const Program *p, const Field *a, const Field *b)
{
    const Placement *at = placement_of(p, a->var), *other = placement_of(p, b->var);
    bool same = a->var->rank == b->var->rank && a->lower.value == b->lower.value && a->upper.value == b->upper.value;
    for (int k = 0; k < a->var->rank && same; k++) same = a->var->dim[k] == b->var->dim[k];
    if (!same || a->var->rank == 0 || (!keeps_rows_of_route(at) && !keeps_rows_of_route(other))) return same;
    return keeps_rows_of_route(at) == keeps_rows_of_route(other) && (at->when == IF_MANY) == (other->when == IF_MANY) &&
           at->rows->count == other->rows->count && at->rows->size == other->rows->size;
}

static void find_shapes(const Program *p, Field *field, int n)
{
    for (int i = 0; i < n; i++) {
        Field *f = &field[i];
        f->lower = bound_of(f->var, f->var->lower, f->var->lower_number);
        f->upper = bound_of(f->var, f->var->upper, f->var->upper_number);
        f->shape = f->var->rank || f->lower.value || f->upper.value ? i : -1;
        for (int k = 0; k < i && f->shape == i; k++)
            if (field[k].shape == k && same_shape(p, &field[k], f)) f->shape = k;
    }
}

void find_fields(Lower *lower)
{
    Program *p = lower->out;
    list_fields(p);
    find_sizes(p);
    find_shapes(p, p->data, p->ndata);
    find_shapes(p, p->state, p->nstate);
    for (int i = 0; i < p->ndata; i++) {
        Field *f = &p->data[i];
        const Var *v = f->var;
        const bool drawn = imputable(p, v);
        f->may_miss = v->response && drawn;
        f->may_be_left_out = v->may_be_left_out && drawn;
        f->finite = must_be_finite(p->g, v);
        if (v->response && (v->needed_for || p->g->method == METHOD_EM))
            f->needed_for = v->needed_for ? v->needed_for : "with --method em data are whole: leave the rows out, or draw, without it";
        if (v->response) f->imputed = 1 + field_of(p->state, p->nstate, v);
        for (int k = 0; k < v->rank; k++) f->extent_of[k] = extent_field(p, v->dim[k]);
        if (v->upper) f->upper_of = extent_field(p, v->upper);
        f->rows_of = rows_field(p, v);
    }
    for (int i = 0; i < p->nstate; i++) p->state[i].rows_of = rows_field(p, p->state[i].var);
    for (int i = 0; i < p->nstate; i++)
        for (int k = 0; k < p->state[i].var->rank; k++) p->state[i].extent_of[k] = extent_field(p, p->state[i].var->dim[k]);
}
