// rows.c -- row passes: a dense matrix of data is read once for the linear predictor, the draw of a row, and the sums over rows.
//
//   z[i] | the rest     reads   sum(j, X[i,j]*beta[j])                 the predictor: `dot`
//   beta | the rest     needs   sum(i, z[i]*X[i,j]) for each j         a row sum, added up by the same pass if nothing in between
//                                                                      changes z or whatever else is in its weight
//                               sum(i, w[i]*X[i,j]*X[i,k])             a weighted Gram matrix
#include <string.h>
#include "lower.h"

static bool is_matrix(const Var *v)
{
    return v->rank == 2 && v->base == BASE_REAL && ((v->kind == VAR_DATA && !v->response) || v->kind == VAR_LET);
}

static bool bare(const Expr *e, const Index *i) { return e->kind == EX_INDEX && e->index == i; }

static bool whole_range(const Index *i, const Expr *extent) { return ex_is_num(i->lo, 1) && i->hi == extent; }

// e = rest * M[row, column] for a dense matrix M; the rest, or NULL.
static Expr *without_matrix(Expr *e, const Index *row, const Index *column, Var **matrix)
{
    Expr **factors = e->kind == EX_MUL ? e->args : &e;
    int n = e->kind == EX_MUL ? e->nargs : 1, at = -1;
    for (int i = 0; i < n && at < 0; i++) {
        const Expr *f = factors[i];
        if (f->kind != EX_REF || f->nargs != 2 || !is_matrix(f->var) || (*matrix && f->var != *matrix)) continue;
        if (bare(f->args[0], row) && bare(f->args[1], column) && whole_range(row, f->var->dim[0]) && whole_range(column, f->var->dim[1])) at = i;
    }
    if (at < 0) return NULL;
    *matrix = factors[at]->var;
    Expr *rest = ex_num(1);
    for (int i = 0; i < n; i++)
        if (i != at) rest = ex_mul2(rest, factors[i]);
    return rest;
}

// ---- few rows ----

const Rows *rows_of_factor(const Program *p, const Factor *f)
{
    for (const Step *s = p->g->steps; s && f; s = s->next)
        if (s->kind == STEP_GAUSSIAN && s->rows && s->rows->factor == f) return s->rows;
    return NULL;
}

const char *few_rows(Program *p, const Rows *r)
{
    return text(&p->w, "%s < %s", write_extent(&p->w, r->count), write_extent(&p->w, r->size));
}

// ---- the predictor ----

typedef struct Dot { Index *row; RowDot *dot; } Dot;

static Look test_dot(const Expr *e, void *with)
{
    Index *row = ((Dot *)with)->row;
    if (!e->indices) return SKIP;
    if (e->kind == EX_REDUCE && strcmp(e->name, "sum") == 0) {
        Index *j = index_new(e->index->name, e->args[0], e->args[1]);
        Expr *body = ex_open(e, j);
        Var *matrix = NULL;
        Expr *rest = without_matrix(body, row, j, &matrix);
        if (rest && rest->kind == EX_REF && rest->nargs == 1 && bare(rest->args[0], j) && rest->var->rank == 1 && rest->var->dim[0] == j->hi &&
            rest->var->base == BASE_REAL && !rest->var->narrow && var_unknown(rest->var)) {
            *((Dot *)with)->dot = (RowDot){matrix, rest->var, (Expr *)e};
            return FOUND;
        }
    }
    return LOOK;
}

static bool find_dot(Expr *e, Index *row, RowDot *dot) { return ex_find(e, test_dot, &(Dot){row, dot}); }

bool row_dot(const Step *s, RowDot *dot)
{
    const Conditional *c = s->conditional;
    *dot = (RowDot){0};
    if (s->kind != STEP_EXACT || s->imputes || c->array || c->var->rank != 1 || c->nbatch != 1) return false;
    for (const Part *q = c->natural; q; q = q->next)
        if (!q->scatter && q->loops.n == 0 && find_dot(q->value, c->element[0], dot) && dot->matrix->dim[0] == c->var->dim[0]) return true;
    *dot = (RowDot){0};
    return false;
}

// ---- predictors that kernels other than row passes read ----
//
//   sum(i, (y[i] - sum(j, X[i,j]*beta[j]))^2)     a row pass fills X_beta[i] before the kernel that adds up the squares: X is read row by
//                                                 row by whole warps, for all chains at once. No step keeps it for another. A step
//                                                 that draws beta one element after the other adds its changes to X_beta.

static bool mentions_an_index(const Expr *e) { return e->indices != 0; }

const char *predicted(void *program, Expr *e)
{
    Program *p = program;
    Writer *w = &p->w;
    if (!p->kernel || (p->step && p->step->imputes) || e->kind != EX_REDUCE || strcmp(e->name, "sum") != 0) return NULL;
    Index *j = index_new(e->index->name, e->args[0], e->args[1]);
    Expr *body = ex_open(e, j);
    if (body->kind != EX_MUL || body->nargs != 2) return NULL;
    const int at = body->args[0]->kind == EX_REF && body->args[0]->nargs == 2 ? 0 : 1;
    const Expr *m = body->args[at], *v = body->args[1 - at];
    if (m->kind != EX_REF || m->nargs != 2 || !is_matrix(m->var) || !bare(m->args[1], j) || !whole_range(j, m->var->dim[1])) return NULL;
    if (!mentions_an_index(m->args[0]) || ex_mentions_index(m->args[0], j)) return NULL;
    if (v->kind != EX_REF || v->nargs != 1 || !bare(v->args[0], j) || v->var->rank != 1 || v->var->dim[0] != j->hi) return NULL;
    if (v->var->base != BASE_REAL || v->var->narrow || !var_unknown(v->var)) return NULL;
    for (int i = 0; p->step && i < p->step->nblock; i++)
        if (p->step->block[i] == v->var && p->followed != v->var) return NULL;     // it moves within the kernel
    int k = 0;
    while (k < p->npredictors && (p->predictor[k].matrix != m->var || p->predictor[k].vector != v->var)) k++;
    if (k == p->npredictors) {
        ROOM(w->arena, p->predictor, p->npredictors, p->predictor_size);
        p->predictor[p->npredictors++] = (Predictor){.matrix = m->var, .vector = v->var, .out = work_array(p, text(w, "%s_%s", m->var->name, v->var->name), 1, m->var->dim)};
        p->predictor[k].out->narrow = true;
    }
    int u = 0;
    while (u < p->nuses && (p->use[u].predictor != k || strcmp(p->use[u].kernel, p->kernel) != 0)) u++;
    if (u == p->nuses) {
        ROOM(w->arena, p->use, p->nuses, p->use_size);
        p->use[p->nuses++] = (PredictorUse){p->kernel, k, p->few_only};
    } else if (p->use[u].only != p->few_only) p->use[u].only = NULL;
    return text(w, "s.%s[%s]", p->predictor[k].out->name, write_subscript(w, m->args[0]));
}

bool reads_predictor(const Program *p, const Var *v)
{
    for (int i = 0; i < p->nuses; i++)
        if (p->predictor[p->use[i].predictor].vector == v && strcmp(p->use[i].kernel, p->kernel) == 0) return true;
    return false;
}

void follow(Program *p, const Var *v, Expr *element, const char *change)
{
    Writer *w = &p->w;
    for (int i = 0; i < p->nuses; i++) {
        const Predictor *r = &p->predictor[p->use[i].predictor];
        if (r->vector != v || strcmp(p->use[i].kernel, p->kernel) != 0) continue;
        Index *row = index_new(intern("i"), ex_num(1), r->matrix->dim[0]);
        int m = mark(w);
        const char *n = write_extent(w, row->hi), *c = fresh_index(w, row);
        const char *x = text(w, "%s[%s]", var_place(w, r->matrix), write_position(w, r->matrix, (Expr *[]){ex_index(row), element}));
        put(w, "ALONG (%s, %s) s.%s[%s] += %s * %s;", c, n, r->out->name, c, change, x);
        forget(w, m);
    }
}

const char *predictor_pass(Program *p, const PredictorUse *u)
{
    Writer *w = &p->w;
    const Predictor *r = &p->predictor[u->predictor];
    return text(w, "%sLAUNCH_ROWS_ONLY(predict_%s, run, %s, %s, %s, %s)", u->only ? text(w, "if (few_%s(run)) ", u->only->name) : "", r->out->name,
                write_extent(w, r->matrix->dim[0]), write_extent(w, r->matrix->dim[1]), var_place(w, r->matrix), c_name(w, r->vector->name));
}

void emit_predictors(Program *p)
{
    Writer *w = &p->w;
    for (int k = 0; k < p->npredictors; k++) {
        const Predictor *r = &p->predictor[k];
        put(w, "// The linear predictor of each row, sum(j, %s[i, j]*%s[j]), for kernels that read it", r->matrix->name, r->vector->name);
        begin_kernel(p, "ROW", text(w, "predict_%s", r->out->name), "real");
        p->open->row = "i";
        put(w, "s.%s[i] = dot;", r->out->name);
        put(w, "return row_weight(0);");
        end_kernel(p);
    }
}

// ---- sums over rows ----

static Var *drawn(const Step *s, int i) { return s->block[i]; }

// Whether e, computed when `draw` is done, still holds when `later` begins.
static bool still_holds(const Step *draw, const Step *later, const Expr *e)
{
    const Step *s = draw->next;
    for (; s && s != later; s = s->next)
        for (int i = 0; i < s->nblock; i++)
            if (ex_mentions(e, drawn(s, i))) return false;
    return s == later;
}

// The weight's own subscripts of the drawn variable must be the row's.
typedef struct OwnRow { const Var *v; const Index *row; } OwnRow;

static Look test_other_row(const Expr *e, void *with)
{
    const OwnRow *o = with;
    return e->kind == EX_REF && e->var == o->v && (e->nargs != 1 || !bare(e->args[0], o->row)) ? FOUND : LOOK;
}

static bool only_own_row(const Expr *e, const Var *v, const Index *row) { return !ex_find(e, test_other_row, &(OwnRow){v, row}); }

static bool summed_already(Graph *g, const Step *s, const BlockTerm *t)
{
    Keys keys = {0};
    for (int r = 0; r < t->degree; r++)
        for (int k = 0; k < t->ref[r]->nargs; k++) {
            Expr *s = t->ref[r]->args[k];
            bool varies = false, seen = false;
            for (int i = 0; i < t->loops.n; i++) varies |= ex_mentions_index(s, t->loops.index[i]);
            for (int i = 0; i < keys.n; i++) seen |= keys.key[i] == s;
            if (!varies || seen) continue;
            if (keys.n == 4) return false;
            keys.key[keys.n] = keys.at[keys.n] = s;
            keys.extent[keys.n++] = t->ref[r]->var->dim[k];
        }
    g->hoisting_for = s->rows && s->rows->factor == t->factor ? s->rows : NULL;
    const bool hoisted = hoist_sum(g, &keys, &t->loops, t->coefficient) != NULL;
    g->hoisting_for = NULL;
    return hoisted;
}

// Elements v[j] of a whole vector of the block: its index among the loops, or -1.
static int vector_index(const Expr *ref, const Loops *l)
{
    if (ref->nargs != 1 || ref->var->rank != 1) return -1;
    for (int i = 0; i < l->n; i++)
        if (bare(ref->args[0], l->index[i]) && whole_range(l->index[i], ref->var->dim[0])) return i;
    return -1;
}

static void plan_term(Program *p, const Step *s, BlockTerm *t)
{
    if (t->loops.guard || t->loops.n < 2 || t->loops.n > 3) return;
    for (int r = 0; r < t->degree && s->arrow; r++)
        if (t->ref[r]->var == s->block[s->nblock - 1]) return;
    int v0 = vector_index(t->ref[0], &t->loops), v1 = t->degree == 2 ? vector_index(t->ref[1], &t->loops) : -1;
    if (t->loops.n == 3 && t->degree == 2 && v0 >= 0 && v1 >= 0 && v0 != v1 && t->ref[0]->var == t->ref[1]->var) {
        Index *row = t->loops.index[3 - v0 - v1];
        Var *matrix = NULL;
        Expr *rest = without_matrix(t->coefficient, row, t->loops.index[v0], &matrix);
        if (rest) rest = without_matrix(rest, row, t->loops.index[v1], &matrix);
        if (!rest || ex_mentions_index(rest, t->loops.index[v0]) || ex_mentions_index(rest, t->loops.index[v1]) || summed_already(p->g, s, t)) return;
        for (int i = 0; i < p->nrow_grams; i++)
            if (p->row_gram[i].step == s && p->row_gram[i].matrix == matrix && p->row_gram[i].vector == t->ref[0]->var) {
                RowGram *r = &p->row_gram[i];
                r->weight = ex_add2(r->weight, ex_mul2(ex_num(-2), ex_replace_index(rest, row, ex_index(r->row))));
                t->by_rows = true;
                return;
            }
        ROOM(p->g->arena, p->row_gram, p->nrow_grams, p->row_gram_size);
        p->row_gram[p->nrow_grams++] = (RowGram){s, matrix, t->ref[0]->var, row, ex_mul2(ex_num(-2), rest), NULL};
        t->by_rows = true;
        return;
    }
    if (t->loops.n != 2) return;
    Expr *vector = t->ref[0], *other = NULL;
    int v = v0;
    if (t->degree == 2) {
        if ((v0 >= 0) == (v1 >= 0)) return;
        vector = v0 >= 0 ? t->ref[0] : t->ref[1];
        other = v0 >= 0 ? t->ref[1] : t->ref[0];
        v = v0 >= 0 ? v0 : v1;
        for (int i = 0; i < 2; i++)
            if (ex_mentions_index(other, t->loops.index[i])) return;
    }
    if (v < 0) return;
    Index *row = t->loops.index[1 - v];
    Var *matrix = NULL;
    Expr *rest = without_matrix(t->coefficient, row, t->loops.index[v], &matrix);
    if (!rest || ex_mentions_index(rest, t->loops.index[v]) || summed_already(p->g, s, t)) return;
    if (t->degree == 2) rest = ex_neg(rest);
    for (int i = 0; i < p->nrow_sums; i++) {
        RowSum *r = &p->row_sum[i];
        if (r->step != s || r->matrix != matrix || r->vector != vector->var || r->other != other) continue;
        r->weight = ex_add2(r->weight, ex_replace_index(rest, row, ex_index(r->row)));
        t->by_rows = true;
        return;
    }
    ROOM(p->g->arena, p->row_sum, p->nrow_sums, p->row_sum_size);
    p->row_sum[p->nrow_sums++] = (RowSum){.step = s, .matrix = matrix, .vector = vector->var, .other = other, .row = row, .weight = rest};
    t->by_rows = true;
}

// The sum of squares of the latents that a joint draw scales, if they are what the row pass draws.
static void plan_squares(Program *p, RowSum *r)
{
    const Step *s = r->step;
    if (!r->fused || !s->scaled) return;
    const Expr *z = s->scaled_latent;
    const Plates *rows = &s->scaled->plates;
    if (rows->n != 1 || rows->guard || z->var != r->fused->block[0] || z->nargs != 1 || !bare(z->args[0], rows->index[0])) return;
    if (!whole_range(rows->index[0], r->matrix->dim[0])) return;
    Expr *square = ex_replace_index(ex_mul2(s->scaled_weight, ex_pow((Expr *)z, 2)), rows->index[0], ex_index(r->row));
    if (!only_own_row(square, z->var, r->row) || !still_holds(r->fused, s, square)) return;
    r->square = square;
    r->scale = work_array(p, text(&p->w, "scale_%s", s->block[0]->name), 1, (Expr *[]){ex_num(3)});
}

void plan_rows(Program *p)
{
    Writer *w = &p->w;
    for (const Step *s = p->g->steps; s; s = s->next) {
        if (s->kind != STEP_GAUSSIAN || s->nbatch) continue;
        for (BlockTerm *t = s->terms; t; t = t->next) plan_term(p, s, t);
    }
    for (int i = 0; i < p->nrow_sums; i++) {
        RowSum *r = &p->row_sum[i];
        r->out = work_array(p, text(w, "rows_%s", r->vector->name), 1, r->vector->dim);
        for (const Step *s = p->g->steps; s && s != r->step && !r->fused; s = s->next) {
            RowDot dot;
            if (!row_dot(s, &dot) || dot.matrix != r->matrix || fused_sum(p, s)) continue;
            if (ex_mentions(r->weight, s->block[0]) && only_own_row(r->weight, s->block[0], r->row) && still_holds(s, r->step, r->weight)) r->fused = s;
        }
        plan_squares(p, r);
    }
    for (int i = 0; i < p->nrow_grams; i++) {
        RowGram *r = &p->row_gram[i];
        r->out = work_array(p, text(w, "gram_%s", r->vector->name), 2, (Expr *[]){r->vector->dim[0], r->vector->dim[0]});
        r->out->rows = r->step->rows;
    }
}

const RowSum *fused_sum(const Program *p, const Step *draw)
{
    for (int i = 0; i < p->nrow_sums; i++)
        if (p->row_sum[i].fused == draw) return &p->row_sum[i];
    return NULL;
}

const RowSum *fused_squares(const Program *p, const Step *joint)
{
    for (int i = 0; i < p->nrow_sums; i++)
        if (p->row_sum[i].step == joint && p->row_sum[i].square) return &p->row_sum[i];
    return NULL;
}

bool in_row_pass(const Program *p, const Step *s, const BlockTerm *t)
{
    (void)p;
    (void)s;
    return t->by_rows;
}

// An array that holds the weight of each row: the latent itself, or one that is filled first.
static const Var *weights_of(Program *p, const char *stem, Index *row, Expr *weight, int step)
{
    Writer *w = &p->w;
    if (weight->kind == EX_REF && weight->nargs == 1 && bare(weight->args[0], row) && weight->var->narrow && weight->var->kind != VAR_DATA) return weight->var;
    Var *array = work_array(p, text(w, "weights_%s", stem), 1, &row->hi);
    array->narrow = true;
    const char *name = text(w, "weigh_%s", stem);
    put(w, "// The weight of each row in a sum over rows: %s", math(p, weight));
    begin_kernel(p, "KERNEL", name, "real");
    const Loops l = {.n = 1, .index = {row}};
    keep_outside(w, weight, &l);
    const char *n = write_extent(w, row->hi), *i = fresh_index(w, row);
    open_brace(w, "EACH (%s, %s)", i, n);
    put(w, "s.%s[%s] = %s;", array->name, i, write_expr(w, weight));
    close_brace(w);
    end_kernel(p);
    launch_kernel(p, step, "LAUNCH", name, "%s", n);
    return array;
}

void step_row_sums(Program *p, const Step *s, int step)
{
    Writer *w = &p->w;
    for (int i = 0; i < p->nrow_sums; i++) {
        const RowSum *r = &p->row_sum[i];
        if (r->step != s || r->fused) continue;
        const Var *weights = weights_of(p, r->out->name, r->row, r->weight, step);
        launch(p, step, "ROW_SUMS(run, %s, %s, %s, %s, %s)", write_extent(w, r->matrix->dim[0]), write_extent(w, r->matrix->dim[1]),
               var_place(w, r->matrix), c_name(w, weights->name), r->out->name);
    }
    for (int i = 0; i < p->nrow_grams; i++) {
        const RowGram *r = &p->row_gram[i];
        if (r->step != s) continue;
        const Var *weights = weights_of(p, r->out->name, r->row, r->weight, step);
        launch(p, step, "WEIGHTED_GRAM(run, %s, %s, %s, %s, %s)", write_extent(w, r->matrix->dim[0]), write_extent(w, r->matrix->dim[1]),
               var_place(w, r->matrix), c_name(w, weights->name), r->out->name);
    }
}
