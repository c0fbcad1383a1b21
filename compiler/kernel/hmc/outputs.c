// outputs.c -- predictors of several outputs in the density of a factor: products, whose derivatives are the weights of the rows
// (kernel/products.c).
#include "hmc.h"

typedef struct Predicting {
    HmcBlock *m;
    const Loops *plates;
    Index *row;
    int n, most;
    Product product[MOST_PRODUCTS];
    bool several;
} Predicting;

// The plate whose index is e, if it runs over all rows of the matrix.
static Index *row_of(const Loops *plates, const Expr *e, const Var *matrix)
{
    for (int i = 0; i < plates->n && e->kind == EX_INDEX; i++)
        if (plates->index[i] == e->index && ex_is_num(e->index->lo, 1) && e->index->hi == matrix->dim[0]) return plates->index[i];
    return NULL;
}

static bool product_in(Predicting *w, const Expr *e, Product *r, Expr **row, Expr **column)
{
    return product_of(w->m->p, e, r, row, column) && is_moved(w->m, r->coefficients) && row_of(w->plates, *row, r->matrix) &&
           (!w->row || row_of(w->plates, *row, r->matrix) == w->row);
}

static Look collect_product(const Expr *e, void *with)
{
    Predicting *w = with;
    Product r;
    Expr *row, *column;
    if (!product_in(w, e, &r, &row, &column)) return LOOK;
    w->row = row_of(w->plates, row, r.matrix);
    w->several |= column != NULL;
    int k = 0;
    while (k < w->n && !same_product(&w->product[k], &r)) k++;
    if (k == MOST_PRODUCTS) return FOUND;
    w->product[k] = r;
    if (k == w->n) w->n++;
    return SKIP;
}

static Expr *by_product(Expr *e, void *with)
{
    Predicting *w = with;
    Product r;
    Expr *row, *column;
    if (!product_in(w, e, &r, &row, &column)) return NULL;
    int k = 0;
    while (!same_product(&w->product[k], &r)) k++;
    return ex_ref(w->product[k].eta, column ? 2 : 1, (Expr *[]){row, column});
}

static bool test_series(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_SERIES;
}

// Predictors with several outputs in the density of a factor become elements of products, whose derivatives are the weights of the rows.
// False: there are none, or too many.
bool split_products(HmcBlock *m, Prepared *r)
{
    Lower *p = m->p;
    Factor *f = &r->f;
    Predicting w = {.m = m, .plates = &f->plates};
    if (f->plates.n == 0 || needs_array(f->log_density) || ex_any_var(f->log_density, test_series, NULL) ||
        ex_find(f->log_density, collect_product, &w) || !w.several)
        return false;
    for (int i = 0; i < f->plates.n; i++)
        if (ex_mentions_index(w.row->hi, f->plates.index[i])) return false;
    RowSpan *s = m->spans, **last = &m->spans;
    for (; s; last = &s->next, s = s->next)
        if (s->n == w.row->hi) break;
    int more = 0;
    for (int k = 0; k < w.n; k++) {
        int same = 0;
        while (s && same < s->nproducts && !same_product(s->product[same], &w.product[k])) same++;
        if (s && same < s->nproducts) w.product[k] = *s->product[same];
        else more++;
    }
    if ((s ? s->nproducts : 0) + more > MOST_PRODUCTS) return false;
    if (!s) {
        s = *last = NEW(p->g->arena, RowSpan);
        *s = (RowSpan){.n = w.row->hi};
    }
    for (int k = 0; k < w.n; k++) {
        if (w.product[k].eta) continue;
        make_room(p, &w.product[k], true);
        s->product[s->nproducts++] = arena_copy(p->g->arena, &w.product[k], sizeof w.product[k]);
    }
    f->log_density = ex_map(f->log_density, by_product, &w);
    r->span = s;
    r->row = w.row;
    return true;
}

const Product *product_with(const RowSpan *s, const Var *eta)
{
    for (int k = 0; s && k < s->nproducts; k++)
        if (s->product[k]->eta == eta) return s->product[k];
    return NULL;
}

static bool reads_product(const Prepared *r, const Product *of)
{
    for (const Derivative *d = r->terms; d; d = d->next)
        if (d->ref->var == of->eta) return true;
    return false;
}

const Prepared *first_reader(const Prepared *list, const Product *of)
{
    while (list && !reads_product(list, of)) list = list->next;
    return list;
}

static Expr *weight_of(const Product *of, const Index *row, const Index *column)
{
    return ex_ref(of->weight, column ? 2 : 1, (Expr *[]){ex_index((Index *)row), column ? ex_index((Index *)column) : NULL});
}

// A term that each row has for each of its predictors: the weights begin with it. NULL: they begin with 0.
const Derivative *whole_term(const Prepared *r, const Product *of)
{
    const Loops *plates = &r->f.plates;
    for (const Derivative *d = r->terms; d && plates->n == 1 && !plates->guard; d = d->next) {
        if (d->ref->var != of->eta || d->loops.n != of->eta->rank || chosen_where(ex_mul2(d->weight, d->rest))) continue;
        const Index *k = d->loops.n == 2 ? d->loops.index[1] : NULL;
        if (!k || (d->ref->args[1]->kind == EX_INDEX && d->ref->args[1]->index == k && ex_is_num(k->lo, 1) && k->hi == outputs_of(of)))
            return d;
    }
    return NULL;
}

void put_no_weight(Lower *p, const Product *of, const Index *row)
{
    Index *column = of->weight->rank == 2 ? index_new(intern("k"), ex_num(1), outputs_of(of)) : NULL;
    Node *each = column ? enter_loop(p, SHARE_SERIAL, column) : NULL;
    put_assign(p, ASSIGN_SET, place_element(weight_of(of, row, column)), ex_num(0));
    if (each) leave(p, each);
}

static Expr *true_where(Expr *e, void *with)
{
    const Expr *condition = with;
    if (e == condition) return ex_num(1);
    if (e->kind == EX_REDUCE || e->kind == EX_ARRAY) return e;  // they have names, and keep them
    return condition->kind == EX_CALL && condition->fn == FN_AND && (e == condition->args[0] || e == condition->args[1]) ? ex_num(1) : NULL;
}

// e where a condition is true.
static Expr *granted(Expr *e, Expr *condition) { return ex_map(e, true_where, condition); }

// The weight of a predictor grows by the derivative of one term. An element that a choice leaves out need not exist.
void put_weight(HmcBlock *m, const Product *of, const Derivative *d, Expr *weight, int nplates, AssignOp op)
{
    Lower *p = m->p;
    Expr *value = ex_mul2(weight, d->rest), *where = chosen_where(ex_mul2(d->weight, d->rest));
    Node *outer = NULL;
    for (int i = nplates; i < d->loops.n; i++) {
        Node *n = enter_loop(p, SHARE_SERIAL, d->loops.index[i]);
        if (!outer) outer = n;
    }
    Node *only = where ? enter(p, NODE_IF) : NULL;
    if (only) only->test.condition = where;
    put_assign(p, op, place_element(ex_ref(of->weight, d->ref->nargs, d->ref->args)), where ? granted(value, where) : value);
    if (only && !outer) outer = only;
    if (outer) leave(p, outer);
}

static bool same_loops(const Loops *a, const Loops *b)
{
    bool same = a->n == b->n && a->guard == b->guard;
    for (int i = 0; i < a->n && same; i++) same = a->index[i] == b->index[i];
    return same;
}

static bool same_slope(const Derivative *a, const Derivative *b)
{
    return a->weight == b->weight && a->rest == b->rest && same_loops(&a->loops, &b->loops);
}

// b[k] that is beside a predictor wherever this occurs, as in b[k] + X_B[i, k], gets what the predictor gets: the weights of the rows,
// which are there. `of` must have no weights of other factors. The terms that this covers are marked.
void put_beside(HmcBlock *m, const Prepared *r, Product *of, const Derivative **covered, int *ncovered)
{
    const Derivative *of_k = NULL;  // the term of all k
    Expr *k = NULL;
    for (const Derivative *t = r->terms; t && of->weight->rank == 2; t = t->next)
        for (int i = r->f.plates.n; i < t->loops.n && t->ref->var == of->eta; i++)
            if (t->ref->args[1] == ex_index(t->loops.index[i]) && t->loops.n == r->f.plates.n + 1) {
                of_k = t;
                k = t->ref->args[1];
            }
    if (!of_k) return;
    for (const Derivative *u = r->terms; u; u = u->next) {
        if (product_with(r->span, u->ref->var) || !same_slope(u, of_k) || !ex_mentions_index(u->ref, k->index)) continue;
        bool all = true;
        for (int i = 0; i < u->ref->nargs; i++)
            all &= u->ref->args[i] == k ? u->ref->var->dim[i] == outputs_of(of) : !ex_mentions_index(u->ref->args[i], k->index);
        const int before = *ncovered;
        for (const Derivative *t = r->terms; t && all; t = t->next) {
            if (t->ref->var != of->eta) continue;
            Expr *beside = ex_replace_index(u->ref, k->index, t->ref->args[1]);
            const Derivative *o = r->terms;
            while (o && (o->ref != beside || !same_slope(o, t))) o = o->next;
            all = o != NULL;
            covered[(*ncovered)++] = o;
        }
        if (!all) {
            *ncovered = before;
            continue;
        }
        Derivative *d = arena_copy(m->p->g->arena, u, sizeof *u);
        Index *column = index_new(k->index->name, ex_num(1), outputs_of(of));
        d->loops.index[d->loops.n - 1] = column;
        d->ref = ex_replace_index(u->ref, k->index, ex_index(column));
        d->weight = weight_of(of, r->row, column);
        if (u->ref->nargs == 1) {  // of all rows: the products add them up
            if (!of->sums) of->sums = work_array(m->p, ROLE_TOTALS, words(m->p, "sums_%s", of->weight->name), 1, &column->hi);
            d->loops = (Loops){.n = 1, .index = {column}};
            d->weight = ex_ref(of->sums, 1, (Expr *[]){ex_index(column)});
        }
        d->rest = ex_num(1);
        add_pending(m, &(Pending){.d = d, .weight = d->weight});
    }
}

bool is_covered(const Derivative *d, const Derivative *const *covered, int n)
{
    for (int i = 0; i < n; i++)
        if (covered[i] == d) return true;
    return false;
}
