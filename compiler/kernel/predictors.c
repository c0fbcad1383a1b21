// predictors.c -- predictors that kernels other than row passes read: arrays that are filled before them.
//
//   sum(i, (y[i] - sum(j, X[i,j]*beta[j]))^2)     a row pass fills X_beta[i] before the kernel that adds up the squares: X is read row by
//                                                 row by whole warps, for all chains at once. No update keeps it for another. An update
//                                                 that draws beta one element after the other adds its changes to X_beta.
#include <string.h>
#include "lower.h"

static bool mentions_an_index(const Expr *e) { return e->indices != 0; }

// Whether a kernel of update s may find v changed from what it was before the update: columns drawn category by category stay as they are
// in a kernel of the update itself, but not during its joint draws.
static bool changes_within(const Update *s, const Var *v)
{
    if (!s || s->kind == UPDATE_NUTS || s->kind == UPDATE_CATEGORIES) return false;
    for (int i = 0; i < s->nblock; i++)
        if (s->block[i] == v) return true;
    const Update *all = all_categories_of(s);
    for (int i = 0; all && i < all->nblock; i++)
        if (all->block[i] == v) return true;
    return false;
}

static bool test_changes_within(const Var *v, void *with) { return changes_within(with, v); }

const Predictor *predictor_of(Lower *p, const Product *r)
{
    int k = 0;
    while (k < p->npredictors && !same_product(&p->predictor[k]->of, r)) k++;
    if (k < p->npredictors) return p->predictor[k];
    Predictor **all = NEW_N(p->g->arena, Predictor *, k + 1);
    if (k) memcpy(all, p->predictor, sizeof *all * (size_t)k);
    p->predictor = all;
    Predictor *new = all[p->npredictors++] = NEW(p->g->arena, Predictor);
    *new = (Predictor){.of = *r};
    make_room(p, &new->of, false);
    return new;
}

// ---- coefficients that are made ----
//
//   sum(j, X[i,j]*lambda[j]*b[j])     b of the row pass is an array that is filled with lambda[j]*b[j] just before

static Look test_not_made(const Expr *e, void *j)
{
    if (e->kind == EX_REF && e->var->kind != VAR_DATA && e->var->kind != VAR_LET && !var_unknown(e->var)) return FOUND;
    return e->kind == EX_REDUCE || (e->kind == EX_INDEX && e->index->height == 0 && e->index != j) ? FOUND : LOOK;
}

static bool made_product(Lower *p, const Kernel *kernel, const Expr *e, Product *out, Expr **row)
{
    Index *j = index_new(ex_index_called(e), e->args[0], e->args[1]);
    const Expr *body = ex_open(e, j);
    Expr *rest = ex_num(1);
    *row = NULL;
    if (body->kind != EX_MUL) return false;
    for (int k = 0; k < body->nargs; k++) {
        Expr *f = body->args[k];
        const bool dense = f->kind == EX_REF && f->nargs == 2 && is_matrix(p->out, f->var) && is_index(f->args[1], j) &&
                           whole_range(j, f->var->dim[1]) && !ex_mentions_index(f->args[0], j);
        if (dense && !*row) {
            *row = f->args[0];
            *out = (Product){.matrix = f->var};
        } else rest = ex_mul2(rest, f);
    }
    if (!*row || !ex_unknown(rest) || !ex_mentions_index(rest, j) || needs_array(rest) || ex_find(rest, test_not_made, j)) return false;
    const Update *s = kernel->update;
    if (s && ex_any_var(rest, test_changes_within, (void *)s)) return false;  // it changes within the kernel
    if (kernel->followed && ex_reads(rest, kernel->followed)) return false;
    for (int i = 0; i < p->npredictors; i++) {
        const Predictor *r = p->predictor[i];
        if (!r->value || ex_replace_index(rest, j, ex_index(r->at)) != r->value) continue;
        out->coefficients = r->of.coefficients;
        if (r->of.matrix == out->matrix) return true;
    }
    if (out->coefficients) return false;  // of another matrix
    out->coefficients = work_array(p, ROLE_BLOCK, words(p, "coefficients_%d", ++p->nmade), 1, &j->hi);
    Predictor *new = (Predictor *)predictor_of(p, out);
    new->value = rest;
    new->at = j;
    return true;
}

Expr *predicted(Lower *p, const Kernel *kernel, Expr *e)
{
    const Update *s = kernel->update;
    if ((s && s->imputes) || kernel->places || kernel->kind == KERNEL_FUNCTION || kernel->kind == KERNEL_PART || e->kind != EX_REDUCE ||
        e->fn != FN_sum)
        return NULL;
    Product r;
    Expr *row, *column;
    if (!product_of(p, e, &r, &row, &column)) {
        column = NULL;
        if (!made_product(p, kernel, e, &r, &row)) return NULL;
    }
    if (!mentions_an_index(row)) return NULL;
    if (changes_within(s, r.coefficients) && kernel->followed != r.coefficients) return NULL;
    if (column && kernel->followed == r.coefficients) return NULL;
    const Predictor *there = predictor_of(p, &r);
    PredictorUse **u = &p->uses;
    while (*u && ((*u)->predictor != there || (*u)->kernel != kernel)) u = &(*u)->next;
    if (!*u) {
        *u = NEW(p->g->arena, PredictorUse);
        **u = (PredictorUse){kernel, there, p->few_only, NULL};
    } else if ((*u)->only != p->few_only) (*u)->only = NULL;
    return ex_ref(there->of.eta, column ? 2 : 1, (Expr *[]){row, column});
}

bool reads_predictor(const Lower *p, const Kernel *k)
{
    for (const PredictorUse *u = p->uses; u; u = u->next)
        if (u->predictor->of.coefficients == k->followed && u->kernel == k) return true;
    return false;
}

Node *follow(Lower *p, const Kernel *k, Expr *element, Var *change)
{
    Node *first = NULL, **last = &first;
    for (const PredictorUse *u = p->uses; u; u = u->next) {
        const Product *r = &u->predictor->of;
        if (r->coefficients != k->followed || u->kernel != k) continue;
        Node *loop = *last = node_new(p->g->arena, NODE_LOOP), *add = loop->body = node_new(p->g->arena, NODE_ASSIGN);
        Expr *row = ex_index(loop->loop.index[0] = index_new(intern("i"), ex_num(1), r->matrix->dim[0]));
        loop->loop.how = SHARE_ALONG;
        loop->loop.n = 1;
        add->assign.op = ASSIGN_ADD;
        add->assign.place = place_element(ex_ref(r->eta, 1, &row));
        add->assign.value = ex_ref(r->matrix, 2, (Expr *[]){row, element});
        add->assign.times = change;
        last = &loop->next;
    }
    return first;
}

static void launch_predictor(Lower *p, const Predictor *r)
{
    if (r->make) with_extent(launch(p, LAUNCH_EACH, r->make), r->of.coefficients->dim[0]);
    Launch *l = launch(p, r->pass ? LAUNCH_ROWS_ONLY : LAUNCH_PRODUCT, r->pass);
    with_extent(l, r->of.matrix->dim[0]);
    if (r->pass) {
        with_extent(l, r->of.matrix->dim[1]);
        with_place(l, r->of.matrix);
        with_name(l, r->of.coefficients);
    } else with_product(l, &r->of);
}

// A predictor is computed before the first launch of the list that reads it, unless that reads it by one route only: then before each.
void refresh_predictors(Lower *p, Launches *list)
{
    Launches all = {0};
    Launches *keep = p->launches;
    bool *there = NEW_N(p->g->arena, bool, p->npredictors + 1);
    Launch *next;
    p->launches = &all;
    for (Launch *l = list->first; l; l = next) {
        next = l->next;
        for (const PredictorUse *u = p->uses; u && l->kernel; u = u->next) {
            int k = 0;
            while (p->predictor[k] != u->predictor) k++;
            if (u->kernel != l->kernel || there[k]) continue;
            p->when = u->only && l->when == ALWAYS ? IF_FEW : l->when;
            p->when_rows = u->only && l->when == ALWAYS ? u->only : l->rows;
            launch_predictor(p, u->predictor);
            there[k] = p->when == ALWAYS;
        }
        p->when = ALWAYS;
        p->when_rows = NULL;
        l->next = NULL;
        if (!all.first) all.last = &all.first;
        *all.last = l;
        all.last = &l->next;
    }
    p->launches = keep;
    *list = all;
}

static void put_coefficients(Lower *p, Predictor *r)
{
    note(p, "The coefficients of %s: %s", r->of.matrix->name, math(p, r->value));
    Kernel *k = open_kernel(p, KERNEL_ELEMENTS, words(p, "make_%s", r->of.coefficients->name), "wide");
    Node *each = enter(p, NODE_LOOP);
    each->loop.how = SHARE_EACH;
    each->loop.n = 1;
    each->loop.index[0] = r->at;
    each->loop.of = r->of.coefficients;
    each->loop.keeps = true;
    Expr *at = ex_index(r->at);
    put_assign(p, ASSIGN_SET, place_element(ex_ref(r->of.coefficients, 1, &at)), r->value);
    leave(p, each);
    close_kernel(p);
    r->make = k;
}

void lower_predictors(Lower *p)
{
    for (int i = 0; i < p->npredictors; i++) {
        const Product *r = &p->predictor[i]->of;
        if (r->coefficients->rank != 1) continue;
        if (p->predictor[i]->value) put_coefficients(p, p->predictor[i]);
        note(p, "The linear predictor of each row, sum(j, %s[i, j]*%s[j]), for kernels that read it", r->matrix->name,
             r->coefficients->name);
        Kernel *k = open_kernel(p, KERNEL_ROW, words(p, "predict_%s", r->eta->name), "real");
        p->predictor[i]->pass = k;
        Index *i = index_new(intern("i"), ex_num(1), r->matrix->dim[0]);
        Expr *row = ex_index(i);
        k->row = i;
        put_assign(p, ASSIGN_SET, place_element(ex_ref(r->eta, 1, &row)), local_ref(local_new(p->g->arena, "dot")));
        put(p, NODE_RETURN)->row.weight = ex_num(0);
        close_kernel(p);
    }
}

void make_room(Lower *p, Product *r, bool weights)
{
    Expr *dim[] = {r->matrix->dim[0], outputs_of(r)};
    const char *of = r->coefficients->name;
    if (weights && r->coefficients->rank == 2) r->eta = predictor_of(p, r)->of.eta;
    else r->eta = work_array(p, ROLE_ROW_VALUE, words(p, "%s_%s", r->matrix->name, of), r->coefficients->rank, dim);
    if (r->eta && !r->eta->lowered.note) r->eta->lowered.note = words(p, "%s times %s", r->matrix->name, of);
    if (!weights) return;
    r->weight = work_array(p, ROLE_ROW_VALUE, words(p, "weight_%s_%s", r->matrix->name, of), r->coefficients->rank, dim);
    r->out = work_array(p, ROLE_TOTALS, words(p, "rows_%s", of), r->coefficients->rank, r->coefficients->dim);
    r->out->lowered.note = words(p, "sums of rows of %s times weights", r->matrix->name);
}
