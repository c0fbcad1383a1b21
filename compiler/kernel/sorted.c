// sorted.c -- data of rows lie in the order of their groups, for sums by group that read nothing else of a row.
//
//   before   loop n of the rows of k shared by SUM_ROWS           after    loop r in the order of the rows of k
//              update total1 += y[n] - v[b[n]] - u[a[n]]                     update total1 += y_by_a[r] - v[b_by_a[r]] - u[k]
//                                                                 setup    y_by_a[r] = y[rows_a[r]]
//   before   loop n in 1:N shared by SUM_ALONG                    after    loop r in 1:N shared by SUM_ALONG
//              update b += (y[n] - u[a[n]] - v[b[n]])^2                      update b += (y_by_a[r] - u[a_by_a[r]] - v[b_by_a[r]])^2
//
// Rows of a group lie anywhere in the data: read by their number each takes a transaction of its own for each array, and the number
// besides. In their order neighbours are read together. A copy costs as much memory as the data that it is of, once for each order; copies
// of responses are made again where missing values were imputed, as sums of them are. What the group decides, such as u[a[n]], is the same
// for all of its rows. A sum over all rows that reads elements by groups goes through them in the order of the first of these that has one.
//
// Only data with an element for each row are copied, and only where all that is read of the row is of this kind: what changes with the
// chain would have to be put in order in each sweep.
//
// Needs: orders of share.     Gives: copies, the kernels that fill them and their launches.     Keeps: kernels of setup, which run once.
#include "lower.h"

typedef struct Sort {
    Lower *p;
    const Order *order;
    const Index *row;
    Expr *key;             // the group of the row, as the body has it
    Index *group, *place;  // group: of a loop over rows of one; else NULL
} Sort;

// An element of data by the number of the row alone.
static bool is_column(const Sort *s, const Expr *e)
{
    if (e->kind != EX_REF || e->nargs != 1 || e->var->rank != 1 || !is_index(e->args[0], s->row) || e->var->dim[0] != s->order->row->hi)
        return false;
    return e->var->kind == VAR_DATA || e->var->kind == VAR_LET;
}

static Look test_other(const Expr *e, void *with)
{
    const Sort *s = with;
    return is_column(s, e) ? SKIP : is_index(e, s->row) ? FOUND : LOOK;
}

static Expr *by_group_alone(const Sort *s, Expr *e) { return e && s->group ? ex_replace(e, s->key, ex_index(s->group)) : e; }

static bool can_sort(Sort *s, Expr *e) { return !e || !ex_find(by_group_alone(s, e), test_other, s); }

static Var *copy_of(const Sort *s, const Var *of)
{
    Lower *p = s->p;
    Sorted **last = &p->sorted;
    for (; *last; last = &(*last)->next)
        if ((*last)->order == s->order && (*last)->of == of) return (*last)->copy;
    const char *stem = s->order->key->kind == EX_REF ? s->order->key->var->name : "group";
    *last = NEW(p->g->arena, Sorted);
    **last = (Sorted){.order = s->order, .of = of, .copy = copy_array(p, of, words(p, "%s_by_%s", of->name, stem))};
    return (*last)->copy;
}

static Expr *from_copy(Expr *e, void *with)
{
    const Sort *s = with;
    if (!is_column(s, e)) return NULL;
    Expr *at = ex_index(s->place);
    return ex_ref(copy_of(s, e->var), 1, &at);
}

static Expr *sorted(Sort *s, Expr *e) { return e ? ex_map(by_group_alone(s, e), from_copy, s) : NULL; }

// Looks whether all can be read so, or has it read so.
static bool sort_list(Sort *s, Node *list, bool change)
{
    for (Node *n = list; n; n = n->next) {
        Expr **part[3];
        int parts = 0;
        switch (n->kind) {
        case NODE_ASSIGN:
            if (!n->assign.place.local) return false;
            part[parts++] = &n->assign.value;
            break;
        case NODE_LET:
            part[parts++] = &n->let.key;
            part[parts++] = &n->let.value;
            break;
        case NODE_SKIP: part[parts++] = &n->skip.condition; break;
        case NODE_LOOP:
            if (n->loop.how != SHARE_SERIAL || n->loop.of || n->loop.order) return false;
            for (int i = 0; i < n->loop.n; i++)
                if (ex_mentions_index(n->loop.index[i]->lo, s->row) || ex_mentions_index(n->loop.index[i]->hi, s->row)) return false;
            break;
        default: return false;
        }
        for (int i = 0; i < parts; i++) {
            if (change) *part[i] = sorted(s, *part[i]);
            else if (!can_sort(s, *part[i])) return false;
        }
        if (n->body && !sort_list(s, n->body, change)) return false;
    }
    return true;
}

static bool of_setup(const Lower *p, const Kernel *k)
{
    for (const Kernel *m = p->out->setup.first; m; m = m->next)
        if (m == k) return true;
    return false;
}

bool sort_rows(Lower *p, const Kernel *k, const Order *o, Index *row, Index *group, Node *body, Index **place)
{
    if (o->spare || of_setup(p, k)) return false;
    Sort s = {.p = p,
              .order = o,
              .row = row,
              .key = ex_replace_index(o->key, o->row, ex_index(row)),
              .group = group,
              .place = index_new(intern("r"), ex_num(1), row->hi)};
    if (!sort_list(&s, body, false)) return false;
    *place = s.place;
    return sort_list(&s, body, true);
}

// An element of an unknown by the group of the row.
static Look test_by_key(const Expr *e, void *with)
{
    const Expr *key = with;
    for (int i = 0; e->kind == EX_REF && var_unknown(e->var) && i < e->nargs; i++)
        if (e->args[i] == key) return FOUND;
    return LOOK;
}

static bool reads_by(const Node *list, Expr *key)
{
    for (const Node *n = list; n; n = n->next) {
        const Expr *e = n->kind == NODE_ASSIGN ? n->assign.value : n->kind == NODE_LET ? n->let.value : NULL;
        if ((e && ex_find(e, test_by_key, key)) || reads_by(n->body, key)) return true;
    }
    return false;
}

// Whether the order has every row: what data declare is checked when they are read.
static bool holds_all(const Order *o)
{
    const Expr *key = o->key;
    return !o->guard && ex_is_num(o->row->lo, 1) && key->kind == EX_REF && key->var->lower && ex_is_num(key->var->lower, 1) &&
           key->var->upper == o->extent;
}

bool sort_all_rows(Lower *p, const Kernel *k, Index *row, Node *body, Index **place)
{
    if (of_setup(p, k) || !ex_is_num(row->lo, 1)) return false;
    for (int i = 0; i < p->norders; i++) {
        const Order *o = p->order[i];
        Sort s = {.p = p, .order = o, .row = row, .key = ex_replace_index(o->key, o->row, ex_index(row))};
        if (o->spare || !holds_all(o) || o->row->hi != row->hi || !reads_by(body, s.key) || !sort_list(&s, body, false)) continue;
        *place = s.place = index_new(intern("r"), ex_num(1), row->hi);
        return sort_list(&s, body, true);
    }
    return false;
}

// Copies of responses, or of other data; NULL: there are none.
static Kernel *lower_copies(Lower *p, bool responses)
{
    note(p, responses ? "Responses in the order of groups: once, or after each imputation if values are missing."
                      : "Data in the order of groups.");
    Kernel *k = open_kernel(p, KERNEL_TEAM, responses ? "responses_in_order" : "data_in_order", "wide");
    for (const Sorted *q = p->sorted; q; q = q->next) {
        if (q->of->response != responses) continue;
        const Order *o = q->order;
        Index *r = index_new(intern("r"), ex_num(1), q->of->dim[0]);
        Expr *end = ex_add2(o->extent, ex_num(1)), **at = NEW_N(p->g->arena, Expr *, 1);
        *at = ex_index(r);
        // rows of no group have no place
        const Loops l = {.n = 1, .index = {r}, .guard = ex_call2("<=", *at, ex_ref(o->first, 1, &end))};
        Expr *row = ex_add2(ex_ref(o->rows, 1, at), ex_num(1));
        Node *n = enter_nest(p, NODE_NEST, &l, 1, at, NULL);
        put_assign(p, ASSIGN_SET, place_element(ex_ref(q->copy, 1, at)), ex_ref((Var *)q->of, 1, &row));
        leave(p, n);
    }
    return close_kernel(p) ? k : NULL;
}

bool lower_sorted(Lower *p)
{
    Program *out = p->out;
    const Kernel *data = lower_copies(p, false), *responses = lower_copies(p, true);
    p->launches = &out->prepare;
    launch_shared(p, LAUNCH_SHARED, data);
    if (!responses) return false;
    p->launches = &out->refresh;
    launch_shared(p, LAUNCH_SHARED_UNLESS_MISSING, responses);
    p->launches = &out->again;
    launch_team(p, responses);
    return true;
}
