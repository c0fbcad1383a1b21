// categories.c -- coefficients drawn category by category (graph/updates/categories.c): predictors of all categories, then for each
// category its latents, its joint normal, and its predictors again.
//
//   eta[i, k] for all k                                     PRODUCT, and a kernel
//   for each category                                       the host's loop; kernels read the current category, c, from the state
//     column = B[, c]
//     omega[i] ~ polya_gamma(n[i], eta[i, c] - offset[i])
//     column ~ joint normal                                 as any other: update_gaussian
//     B[, c] = column, eta[i, c]
#include <math.h>
#include "lower.h"

static Expr *category_of(const Categories *t) { return ex_ref(t->current, 0, NULL); }
static Expr *category_before(const Categories *t) { return ex_sub(category_of(t), ex_num(1)); }

static void put_first_category(Lower *p, const Categories *t)
{
    const Kernel *k = open_kernel(p, KERNEL_ONCE, words(p, "first_category_of_%s", t->var[0]->name), "wide");
    put_assign(p, ASSIGN_SET, place_element(category_of(t)), t->lo);
    close_kernel(p);
    launch(p, LAUNCH_ONCE, k);
}

// Columns from their variables; or back, and the next category is the current one.
static void copy_columns(Lower *p, const Categories *t, bool back)
{
    note(p, back ? "The columns that were drawn, to their places; then the next category" : "The columns of the current category");
    Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, back ? "put_%s" : "take_%s", t->column[0]->name), "wide");
    for (int i = 0; i < t->n; i++) {
        Var *v = t->var[i], *c = t->column[i];
        Loops l = {.n = c->rank};
        Expr *of_column = var_element(p->g, c, l.index), **at = NEW_N(p->g->arena, Expr *, v->rank + 1),
             **own = NEW_N(p->g->arena, Expr *, c->rank + 1);
        for (int d = 0, m = 0; d < v->rank; d++)
            if (d == t->at[i]) at[d] = category_of(t);
            else at[d] = own[m] = ex_index(l.index[m]), m++;
        Expr *of_variable = ex_ref(v, v->rank, at);
        Node *nest = c->rank ? enter_nest(p, NODE_NEST, &l, c->rank, own, NULL) : enter(p, NODE_LANE);
        put_assign(p, ASSIGN_SET, place_element(back ? of_variable : of_column), back ? of_column : of_variable);
        leave(p, nest);
    }
    if (back) {
        put(p, NODE_BARRIER);
        Node *one = enter(p, NODE_LANE);
        put_assign(p, ASSIGN_SET, place_element(category_of(t)), ex_add2(category_of(t), ex_num(1)));
        leave(p, one);
    }
    close_kernel(p);
    launch_team(p, k);
}

// The rows of a softmax, and behind them all its categories if `categories`: a loop over elements of an array, with the names that its
// factor gives the indices.
typedef struct Over {
    Node *each;
    Var *of;
} Over;

static Over enter_rows(Lower *p, const Softmax *s, bool categories)
{
    Over o = {.of = categories ? s->all : s->latent};
    const Loops *plates = &s->factor->plates;
    if (o.of->rank == 0) return o;
    o.each = enter(p, NODE_LOOP);
    o.each->loop.how = SHARE_EACH;
    o.each->loop.of = o.of;
    o.each->loop.keeps = true;
    for (int i = 0; i < plates->n; i++) o.each->loop.index[o.each->loop.n++] = plates->index[i];
    if (categories) o.each->loop.index[o.each->loop.n++] = s->k;
    Expr *inside = plates->guard;
    for (int i = 0; i < plates->n; i++) {  // the array has room for the longest row, from 1
        Expr *at = ex_index(plates->index[i]), *test = NULL;
        if (!ex_is_num(plates->index[i]->lo, 1)) test = ex_call2("<=", plates->index[i]->lo, at);
        for (int k = 0; k < i; k++)
            if (ex_mentions_index(plates->index[i]->hi, plates->index[k])) {
                Expr *high = ex_call2("<=", at, plates->index[i]->hi);
                test = test ? ex_call2("&&", test, high) : high;
                break;
            }
        if (test) inside = inside ? ex_call2("&&", inside, test) : test;
    }
    if (categories && !ex_is_num(s->k->lo, 1)) {
        Expr *test = ex_call2("<=", s->k->lo, ex_index(s->k));
        inside = inside ? ex_call2("&&", inside, test) : test;
    }
    put_skip(p, inside);
    return o;
}

static void close_rows(Lower *p, Over o, const Kernel *k)
{
    if (o.each) leave(p, o.each);
    close_kernel(p);
    if (o.of->rank) with_count(launch(p, LAUNCH_EACH, k), count_dims(o.of, 0, o.of->rank));
    else launch(p, LAUNCH_ONCE, k);
}

static Expr *eta_at(const Softmax *s, Expr *category)
{
    Expr *at[MAX_RANK];
    int n = 0;
    for (; n < s->factor->plates.n; n++) at[n] = ex_index(s->factor->plates.index[n]);
    at[n++] = category;
    return ex_ref(s->all, n, at);
}

static Expr *latent_of(const Softmax *s) { return ex_ref(s->latent, s->offset->nargs, s->offset->args); }

static KernelKind elements(const Var *v) { return v->rank ? KERNEL_ELEMENTS : KERNEL_ONCE; }

static void put_predictors(Lower *p, const Softmax *s)
{
    note(p, "The predictors of all categories");
    Kernel *k = open_kernel(p, elements(s->all), words(p, "predict_%s", s->all->name), number_of(p, s->all));
    const Over o = enter_rows(p, s, true);
    put_assign(p, ASSIGN_SET, place_element(eta_at(s, ex_index(s->k))), s->eta);
    close_rows(p, o, k);
}

// Beyond it another category has all the probability, and where there is no other, this one.
static Expr *least_offset(void) { return ex_num(-1e15); }

static Expr *let(Lower *p, const char *name, Expr *value, const char *type)
{
    Var *v = local_new(p->g->arena, name);
    put_let(p, NULL, v, value, type);
    return local_ref(v);
}

static void note_latents(Lower *p, const Categories *t, const Softmax *s)
{
    note(p, "%s ~ polya_gamma(%s, %s), %s the log of the sum of exp of the other predictors", math(p, latent_of(s)), math(p, s->count),
         math(p, ex_sub(eta_at(s, category_of(t)), s->offset)), math(p, s->offset));
}

// The latent of one row, and its offset.
static void put_latent(Lower *p, const Categories *t, const Softmax *s)
{
    Expr *category = category_of(t);
    const char *number = p->open->number;
    Expr *here = ex_index(s->k), *other = ex_call3("if_else", ex_call2("==", here, category), ex_num(-INFINITY), eta_at(s, here));
    Expr *offset = let(p, "others", ex_reduce("log_sum_exp", s->k, s->k->lo, s->k->hi, other), number);
    offset = let(p, "offset", ex_call2("fmax", offset, least_offset()), number);
    Expr *natural = let(p, "natural", ex_mul2(ex_num(-0.5), ex_pow(ex_sub(eta_at(s, category), offset), 2)), number);
    Var *x = local_new(p->g->arena, "x");
    Node *d = put(p, NODE_DRAW);
    d->draw.var = s->latent;
    d->draw.element = eta_at(s, category);  // each category has streams of its own
    d->draw.x = x;
    d->draw.type = number;
    d->draw.routine = "polya_gamma_natural";
    d->draw.nargs = 2;
    d->draw.arg = NEW_N(p->g->arena, DrawArg, 2);
    d->draw.arg[0].value = s->count;
    d->draw.arg[1].value = natural;
    d->draw.check = DRAW_FINITE;
    put_assign(p, ASSIGN_SET, place_element(latent_of(s)), local_ref(x));
    put_assign(p, ASSIGN_SET, place_element(s->offset), offset);
}

static void put_latents(Lower *p, const Categories *t, const Softmax *s)
{
    note_latents(p, t, s);
    Kernel *k = open_kernel(p, elements(s->latent), words(p, "draw_%s", s->latent->name), number_of(p, s->latent));
    const Over o = enter_rows(p, s, false);
    put_latent(p, t, s);
    close_rows(p, o, k);
}

// The predictor of a row in the category that was drawn. With --check: the joint normal ratios log q(new | omega) - log q(old | omega);
// that of the model has omega integrated out, and log p(omega | new) - log p(omega | old) less.
static void put_predictor_again(Lower *p, const Update *update, const Softmax *s, Expr *category)
{
    Expr *eta = eta_at(s, category), *new = let(p, "drawn", ex_replace(s->own, category_of(update->categories), category), "wide");
    if (!update->marginal) {
        Expr *was = ex_sub(eta, s->offset), *is = ex_sub(new, s->offset), *half = ex_num(0.5);
        Node *checking = enter(p, NODE_IF);
        checking->test.condition = local_ref(local_new(p->g->arena, "CHECKING"));
        Expr *terms[] = {ex_mul2(half, ex_mul2(latent_of(s), ex_pow(is, 2))), ex_neg(ex_mul2(half, ex_mul2(latent_of(s), ex_pow(was, 2)))),
                         ex_mul2(s->count, ex_call1("log1p_exp", was)), ex_neg(ex_mul2(s->count, ex_call1("log1p_exp", is))),
                         ex_mul2(half, ex_mul2(s->count, ex_sub(new, eta)))};
        Expr *ratio[5];
        for (int i = 0; i < 5; i++) ratio[i] = let(p, words(p, "ratio%d", i + 1), terms[i], "wide");
        put_ratio(p, ex_add(5, ratio));
        leave(p, checking);
    }
    put_assign(p, ASSIGN_SET, place_element(eta), new);
}

static void put_predictors_again(Lower *p, const Update *update, const Softmax *s)
{
    note(p, "The predictors of the category that was drawn");
    Kernel *k = open_kernel(p, elements(s->latent), words(p, "update_%s", s->all->name), number_of(p, s->all));
    const Over o = enter_rows(p, s, false);
    put_predictor_again(p, update, s, category_before(update->categories));
    close_rows(p, o, k);
}

// One pass over the matrix: for the predictors of the category before, for the latents, and for the sums that the draw of the column needs.
static void put_row_pass(Lower *p, const Update *update, const RowDot *dot)
{
    const Categories *t = update->categories;
    const Softmax *s = t->softmax;
    const RowSum *r = fused_sum(p, update);
    note_latents(p, t, s);
    note(p, "Before: the predictors of the category that was drawn last");
    Kernel *k = open_kernel(p, KERNEL_ROW, words(p, "draw_%s", s->latent->name), number_of(p, s->latent));
    k->row = s->factor->plates.index[0];
    Node *know = put(p, NODE_KNOW);
    know->let.key = dot->sum;
    know->let.local = local_new(p->g->arena, "dot");
    Node *later = enter(p, NODE_IF);
    later->test.condition = ex_call2("<", t->lo, category_of(t));
    put_predictor_again(p, update, s, category_before(t));
    leave(p, later);
    put_latent(p, t, s);
    put(p, NODE_RETURN)->row.weight = r ? ex_replace_index(r->weight, r->row, ex_index((Index *)k->row)) : ex_num(0);
    close_kernel(p);
    Launch *l = launch(p, r ? LAUNCH_ROWS : LAUNCH_ROWS_ONLY, k);
    with_extent(l, dot->matrix->dim[0]);
    with_extent(l, dot->matrix->dim[1]);
    with_place(l, dot->matrix);
    with_name(l, dot->vector);
    if (r) with_name(l, r->out);
}

// What is added to all categories, a location move: zero before it is drawn, added to all of them afterwards.
static void put_location_move(Lower *p, const Update *s)
{
    const Categories *t = s->categories;
    note(p, "The location move of all categories starts from 0");
    Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, "before_%s", t->by[0]->name), "wide");
    for (int i = 0; i < t->n; i++) put_fill(p, t->by[i], count_dims(t->by[i], 0, t->by[i]->rank), false);
    close_kernel(p);
    launch_team(p, k);
    p->update = t->shift;
    update_gaussian(p, t->shift);
    p->update = s;
    note(p, "The location move is added to all categories");
    k = open_kernel(p, KERNEL_TEAM, words(p, "add_%s", t->by[0]->name), "wide");
    for (int i = 0; i < t->n; i++) {
        Var *v = t->var[i];
        Loops l = {.n = v->rank};
        Expr *element = var_element(p->g, v, l.index), **own = NEW_N(p->g->arena, Expr *, v->rank + 1);
        int n = 0;
        for (int d = 0; d < v->rank; d++)
            if (d != t->at[i]) own[n++] = element->args[d];
        Node *nest = enter_nest(p, NODE_NEST, &l, v->rank, element->args, NULL);
        put_assign(p, ASSIGN_ADD, place_element(element), ex_ref(t->by[i], n, own));
        leave(p, nest);
    }
    close_kernel(p);
    launch_team(p, k);
}

static void checked_only(Lower *p, bool begins) { launch(p, begins ? LAUNCH_CHECKED : LAUNCH_END, NULL); }

void update_categories(Lower *p, const Update *s)
{
    const Categories *t = s->categories;
    for (const Softmax *m = t->softmax; m; m = m->next) put_predictors(p, m);
    put_first_category(p, t);
    with_extent(launch(p, LAUNCH_CATEGORIES, NULL), ex_length(t->lo, t->hi));
    RowDot dot;
    const bool once = categories_dot(p->out, s, &dot);
    if (once) put_row_pass(p, s, &dot);
    else
        for (const Softmax *m = t->softmax; m; m = m->next) put_latents(p, t, m);
    checked_only(p, true);  // the ratio of the joint normal reads the values before; its draw does not
    copy_columns(p, t, false);
    checked_only(p, false);
    p->update = t->draw;
    update_gaussian(p, t->draw);
    p->update = s;
    copy_columns(p, t, true);
    for (const Softmax *m = t->softmax; m && !once; m = m->next) put_predictors_again(p, s, m);
    launch(p, LAUNCH_END, NULL);
    if (once && !s->marginal) {  // the ratio of the last category
        checked_only(p, true);
        put_predictors_again(p, s, t->softmax);
        checked_only(p, false);
    }
    if (t->shift) put_location_move(p, s);
}
