// rows.c -- row passes: a dense matrix of data is read once for the linear predictor, the draw of a row, and the sums over rows.
//
//   z[i] | the rest     reads   sum(j, X[i,j]*beta[j])                 the predictor: `dot`
//   beta | the rest     needs   sum(i, z[i]*X[i,j]) for each j         a row sum, added up by the same pass if nothing in between
//                                                                      changes z or whatever else is in its weight
//                               sum(i, w[i]*X[i,j]*X[i,k])             a weighted Gram matrix
#include "lower.h"

// e = rest * M[row, column] for a dense matrix M; the rest, or NULL.
static Expr *without_matrix(const Program *p, Expr *e, const Index *row, const Index *column, Var **matrix)
{
    Expr **factors = e->kind == EX_MUL ? e->args : &e;
    int n = e->kind == EX_MUL ? e->nargs : 1, at = -1;
    for (int i = 0; i < n && at < 0; i++) {
        const Expr *f = factors[i];
        if (f->kind != EX_REF || f->nargs != 2 || !is_matrix(p, f->var) || (*matrix && f->var != *matrix)) continue;
        if (is_index(f->args[0], row) && is_index(f->args[1], column) && whole_range(row, f->var->dim[0]) &&
            whole_range(column, f->var->dim[1]))
            at = i;
    }
    if (at < 0) return NULL;
    *matrix = factors[at]->var;
    Expr *rest = ex_num(1);
    for (int i = 0; i < n; i++)
        if (i != at) rest = ex_mul2(rest, factors[i]);
    return rest;
}

// ---- few rows ----

const Rows *rows_of_factor(const Lower *p, const Factor *f) { return f ? map_get(&p->rows_of, f) : NULL; }

void list_rows(Lower *p)
{
    for (const Update *s = p->g->updates; s; s = s->next)
        if (s->kind == UPDATE_GAUSSIAN && s->gaussian.rows && s->gaussian.rows->factor && !map_get(&p->rows_of, s->gaussian.rows->factor))
            map_put(p->g->arena, &p->rows_of, s->gaussian.rows->factor, (void *)s->gaussian.rows);
}

// ---- the predictor ----

typedef struct Dot {
    const Program *p;
    Index *row;
    RowDot *dot;
} Dot;

static Look test_dot(const Expr *e, void *with)
{
    Index *row = ((Dot *)with)->row;
    if (!e->indices) return SKIP;
    if (e->kind == EX_REDUCE && e->fn == FN_sum) {
        Index *j = index_new(ex_index_called(e), e->args[0], e->args[1]);
        Expr *body = ex_open(e, j);
        Var *matrix = NULL;
        Expr *rest = without_matrix(((Dot *)with)->p, body, row, j, &matrix);
        if (rest && rest->kind == EX_REF && rest->nargs == 1 && is_index(rest->args[0], j) && rest->var->rank == 1 &&
            rest->var->dim[0] == j->hi && rest->var->base == BASE_REAL && !is_real(((Dot *)with)->p, rest->var) && var_unknown(rest->var)) {
            *((Dot *)with)->dot = (RowDot){matrix, rest->var, (Expr *)e};
            return FOUND;
        }
    }
    return LOOK;
}

static bool find_dot(const Program *p, Expr *e, Index *row, RowDot *dot) { return ex_find(e, test_dot, &(Dot){p, row, dot}); }

bool row_dot(const Lower *p, const Update *s, RowDot *dot)
{
    const Conditional *c = s->conditional;
    *dot = (RowDot){0};
    if (s->kind != UPDATE_EXACT || s->imputes || c->array || c->var->rank != 1 || c->nbatch != 1) return false;
    for (const Part *q = c->natural; q; q = q->next)
        if (!q->scatter && q->loops.n == 0 && find_dot(p->out, q->value, c->element[0], dot) && dot->matrix->dim[0] == c->var->dim[0])
            return true;
    *dot = (RowDot){0};
    return false;
}

// The rows of a softmax whose columns are drawn category by category, if they are all rows of a matrix: a row pass then brings the
// predictor of the column drawn last up to date, draws the latents of the next one and adds up its sums.
bool categories_dot(const Program *out, const Update *s, RowDot *dot)
{
    *dot = (RowDot){0};
    const Softmax *m = s->kind == UPDATE_CATEGORIES ? s->categories->softmax : NULL;
    if (!m || m->next || m->factor->plates.n != 1 || m->factor->plates.guard || m->latent->rank != 1) return false;
    Index *row = m->factor->plates.index[0];
    if (!find_dot(out, m->own, row, dot) || !whole_range(row, dot->matrix->dim[0])) return false;
    for (int i = 0; i < s->categories->n; i++)
        if (s->categories->column[i] == dot->vector) return true;
    return false;
}

// ---- sums over rows ----

static Var *drawn(const Update *s, int i) { return s->block[i]; }

// Whether e, computed when `draw` is done, is still valid when `later` begins.
static bool still_holds(const Update *draw, const Update *later, const Expr *e)
{
    const Update *s = draw->next;
    for (; s && s != later; s = s->next) {
        const Scales *scales = s->kind == UPDATE_GAUSSIAN ? s->gaussian.scales : NULL;
        for (int i = 0; i < s->nblock; i++)
            if (ex_mentions(e, drawn(s, i))) return false;
        for (int i = 0; scales && i < scales->n; i++)
            if (ex_mentions(e, scales->var[i])) return false;
    }
    return s == later;
}

// The weight's own subscripts of the drawn variable must be the row's.
typedef struct OwnRow {
    const Var *v;
    const Index *row;
} OwnRow;

static Look test_other_row(const Expr *e, void *with)
{
    const OwnRow *o = with;
    return e->kind == EX_REF && e->var == o->v && (e->nargs != 1 || !is_index(e->args[0], o->row)) ? FOUND : LOOK;
}

static bool only_own_row(const Expr *e, const Var *v, const Index *row) { return !ex_find(e, test_other_row, &(OwnRow){v, row}); }

static bool summed_already(Lower *p, const Update *s, const BlockTerm *t)
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
    p->statistics.route = s->gaussian.rows && s->gaussian.rows->factor == t->factor ? s->gaussian.rows : NULL;
    p->statistics.serving = s;
    const bool hoisted = hoist_sum(&p->statistics, &keys, &t->loops, t->coefficient) != NULL;
    p->statistics.route = NULL;
    p->statistics.serving = NULL;
    return hoisted;
}

// Elements v[j] of a whole vector of the block: its index among the loops, or -1.
static int vector_index(const Expr *ref, const Loops *l)
{
    if (ref->nargs != 1 || ref->var->rank != 1) return -1;
    for (int i = 0; i < l->n; i++)
        if (is_index(ref->args[0], l->index[i]) && whole_range(l->index[i], ref->var->dim[0])) return i;
    return -1;
}

static void taken(Lower *p, const BlockTerm *t)
{
    TermList *l = NEW(p->g->arena, TermList);
    *l = (TermList){t, p->by_rows};
    p->by_rows = l;
}

static void plan_term(Lower *p, const Update *s, const BlockTerm *t)
{
    if (t->loops.guard || t->loops.n < 2 || t->loops.n > 3) return;
    for (int r = 0; r < t->degree && s->gaussian.arrow; r++)
        if (t->ref[r]->var == s->block[s->nblock - 1]) return;
    int v0 = vector_index(t->ref[0], &t->loops), v1 = t->degree == 2 ? vector_index(t->ref[1], &t->loops) : -1;
    if (t->loops.n == 3 && t->degree == 2 && v0 >= 0 && v1 >= 0 && v0 != v1 && t->ref[0]->var == t->ref[1]->var) {
        Index *row = t->loops.index[3 - v0 - v1];
        Var *matrix = NULL;
        Expr *rest = without_matrix(p->out, t->coefficient, row, t->loops.index[v0], &matrix);
        if (rest) rest = without_matrix(p->out, rest, row, t->loops.index[v1], &matrix);
        if (!rest || ex_mentions_index(rest, t->loops.index[v0]) || ex_mentions_index(rest, t->loops.index[v1]) || summed_already(p, s, t))
            return;
        RowGram *r = p->row_grams, **last = &p->row_grams;
        for (; r; last = &r->next, r = r->next)
            if (r->update == s && r->matrix == matrix && r->vector == t->ref[0]->var) {
                r->weight = ex_add2(r->weight, ex_mul2(ex_num(-2), ex_replace_index(rest, row, ex_index(r->row))));
                taken(p, t);
                return;
            }
        *last = NEW(p->g->arena, RowGram);
        **last = (RowGram){s, matrix, t->ref[0]->var, row, ex_mul2(ex_num(-2), rest), NULL, NULL};
        taken(p, t);
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
    Expr *rest = without_matrix(p->out, t->coefficient, row, t->loops.index[v], &matrix);
    if (!rest || ex_mentions_index(rest, t->loops.index[v]) || summed_already(p, s, t)) return;
    if (t->degree == 2) rest = ex_neg(rest);
    RowSum **last = &p->row_sums;
    for (RowSum *r = p->row_sums; r; last = &r->next, r = r->next) {
        if (r->update != s || r->matrix != matrix || r->vector != vector->var || r->other != other) continue;
        r->weight = ex_add2(r->weight, ex_replace_index(rest, row, ex_index(r->row)));
        taken(p, t);
        return;
    }
    *last = NEW(p->g->arena, RowSum);
    **last = (RowSum){.update = s, .matrix = matrix, .vector = vector->var, .other = other, .row = row, .weight = rest};
    taken(p, t);
}

// The sum of squares of the latents whose scale a joint draw has, if they are what the row pass draws.
static void plan_squares(Lower *p, RowSum *r)
{
    const Update *s = r->update;
    if (!r->fused || r->fused->kind == UPDATE_CATEGORIES || !s->gaussian.scaled) return;
    const Expr *z = s->gaussian.scaled_latent;
    const Loops *rows = &s->gaussian.scaled->plates;
    if (rows->n != 1 || rows->guard || z->var != r->fused->block[0] || z->nargs != 1 || !is_index(z->args[0], rows->index[0])) return;
    if (!whole_range(rows->index[0], r->matrix->dim[0])) return;
    Expr *square = ex_replace_index(ex_mul2(s->gaussian.scaled_weight, ex_pow((Expr *)z, 2)), rows->index[0], ex_index(r->row));
    if (!only_own_row(square, z->var, r->row) || !still_holds(r->fused, s, square)) return;
    r->square = square;
    r->scale = work_array(p, ROLE_TUNING, words(p, "scale_of_%s", s->gaussian.scaled_latent->var->name), 1, (Expr *[]){ex_num(3)});
}

void plan_rows(Lower *p)
{
    for (const Update *one = p->g->updates; one; one = one->next) {
        const Update *s = one->kind == UPDATE_CATEGORIES ? one->categories->draw : one;
        if (s->kind != UPDATE_GAUSSIAN || s->gaussian.nbatch || s->gaussian.diagonal || s->gaussian.band) continue;
        for (const BlockTerm *t = s->gaussian.terms; t; t = t->next)
            if (t->degree == 1 || !listed_in(s, t->factor)) plan_term(p, s, t);
    }
    for (RowSum *r = p->row_sums; r; r = r->next) {
        r->out = work_array(p, ROLE_TOTALS, words(p, "rows_%s", r->vector->name), 1, r->vector->dim);
        r->out->lowered.note = words(p, "sums of rows of %s times weights", r->matrix->name);
        for (const Update *s = p->g->updates; s && s != r->update && !r->fused; s = s->next) {
            RowDot dot;
            if (!row_dot(p, s, &dot) || dot.matrix != r->matrix || fused_sum(p, s)) continue;
            if (ex_mentions(r->weight, s->block[0]) && only_own_row(r->weight, s->block[0], r->row) && still_holds(s, r->update, r->weight))
                r->fused = s;
        }
        for (const Update *s = p->g->updates; s; s = s->next) {
            RowDot dot;
            if (s->kind != UPDATE_CATEGORIES || s->categories->draw != r->update || r->other || fused_sum(p, s) ||
                !categories_dot(p->out, s, &dot) || dot.matrix != r->matrix || dot.vector != r->vector)
                continue;
            const Softmax *m = s->categories->softmax;
            if (only_own_row(r->weight, m->latent, r->row) && only_own_row(r->weight, m->offset->var, r->row)) r->fused = s;
        }
        plan_squares(p, r);
    }
    for (RowGram *r = p->row_grams; r; r = r->next) {
        r->out = work_array(p, ROLE_TOTALS, words(p, "gram_%s", r->vector->name), 2, (Expr *[]){r->vector->dim[0], r->vector->dim[0]});
    }
}

const RowSum *fused_sum(const Lower *p, const Update *draw)
{
    for (const RowSum *r = p->row_sums; r; r = r->next)
        if (r->fused == draw) return r;
    return NULL;
}

const RowSum *fused_squares(const Lower *p, const Update *joint)
{
    for (const RowSum *r = p->row_sums; r; r = r->next)
        if (r->update == joint && r->square) return r;
    return NULL;
}

bool in_row_pass(const Lower *p, const BlockTerm *t)
{
    for (const TermList *l = p->by_rows; l; l = l->next)
        if (l->term == t) return true;
    return false;
}

// An array of the weight of each row: the latent itself, or one that is filled first.
static const Var *weights_of(Lower *p, const char *stem, Index *row, Expr *weight)
{
    if (weight->kind == EX_REF && weight->nargs == 1 && is_index(weight->args[0], row) && is_real(p->out, weight->var) &&
        weight->var->kind != VAR_DATA)
        return weight->var;
    Var *array = work_array(p, ROLE_ROW_VALUE, words(p, "weights_%s", stem), 1, &row->hi);
    note(p, "The weight of each row in a sum over rows: %s", math(p, weight));
    Kernel *k = open_kernel(p, KERNEL_ELEMENTS, words(p, "weigh_%s", stem), "real");
    Node *each = enter(p, NODE_LOOP);
    each->loop.how = SHARE_EACH;
    each->loop.n = 1;
    each->loop.index[0] = row;
    each->loop.of = array;
    each->loop.keeps = true;
    Expr *at = ex_index(row);
    put_assign(p, ASSIGN_SET, place_element(ex_ref(array, 1, &at)), weight);
    leave(p, each);
    close_kernel(p);
    with_extent(launch(p, LAUNCH_EACH, k), row->hi);
    return array;
}

static void launch_rows(Lower *p, LaunchKind kind, const Var *matrix, const Var *weights, const Var *out)
{
    Launch *l = launch(p, kind, NULL);
    with_extent(l, matrix->dim[0]);
    with_extent(l, matrix->dim[1]);
    with_place(l, matrix);
    with_name(l, weights);
    with_name(l, out);
}

bool row_sum_of(const Lower *p, const Expr *ref, Expr *value, const Index *row, const Index *column, Var **matrix, Expr **times)
{
    const Loops l = {.n = 1, .index = {(Index *)column}};
    *matrix = NULL;
    if (vector_index(ref, &l) != 0 || is_real(p->out, ref->var)) return false;
    *times = without_matrix(p->out, value, row, column, matrix);
    return *times && !ex_mentions_index(*times, row);
}

void launch_row_sums(Lower *p, const Var *matrix, const Var *weights, Var *out) { launch_rows(p, LAUNCH_ROW_SUMS, matrix, weights, out); }

void update_row_sums(Lower *p, const Update *s)
{
    for (const RowSum *r = p->row_sums; r; r = r->next)
        if (r->update == s && !r->fused) launch_rows(p, LAUNCH_ROW_SUMS, r->matrix, weights_of(p, r->out->name, r->row, r->weight), r->out);
    for (const RowGram *r = p->row_grams; r; r = r->next)
        if (r->update == s) launch_rows(p, LAUNCH_WEIGHTED_GRAM, r->matrix, weights_of(p, r->out->name, r->row, r->weight), r->out);
}

// Rows of so many columns are read by kernels that are compiled for them.
void reads_rows(Lower *p, const Expr *columns)
{
    Program *out = p->out;
    out->row_widths |= out->row_width && out->row_width != columns;
    out->row_width = columns;
}
