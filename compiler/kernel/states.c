// states.c -- states along chains, each chain drawn whole, parallel in time (device/states.h): what the draw is made of, the draw, and the
// states in their places.
//
//   weights_z[panel, t, j]       log density of what depends on element t alone, at value j
//   links_z[panel, t, i, 2*j]    log density of what depends on it, at j, and the one before, at i; less the subscripts that it does not
//   depend on parts_z                      room for products of matrices
//
// Of several unknowns together values and states are those of the product, and links_z[panel, t, 2*place] has a matrix for each of them,
// one behind the other.
//
// Needs: an update whose elements are drawn at once.     Gives: kernels that fill these, draw, and put the states where they belong.
#include "lower.h"

enum { STATES_IN_LANE = 16 };  // of device/states.h

// the subscripts of the variable, but for that along the chains, and how many chains there are; elements that are independent are chains of
// one
typedef struct Chains {
    const Conditional *c;
    const Joined *joined;  // or NULL
    int n;
    Expr *at[MAX_RANK], *dim[MAX_RANK];
    Loops over;    // them
    Index *along;  // NULL: chains of one
    Expr *panels, *length, *inside;
} Chains;

static Chains chains_of(const Update *s)
{
    const Conditional *c = s->conditional;
    const Var *v = s->joined ? s->joined->product : c->var;
    Chains h = {.c = c, .joined = s->nblock > 1 ? s->joined : NULL, .panels = ex_num(1), .length = ex_num(1), .inside = ex_num(1)};
    for (int k = 0; k < v->rank; k++) {
        if (k == v->summing.chain) {
            h.along = c->element[k];
            h.length = v->dim[k];
            continue;
        }
        h.at[h.n] = c->current->args[k];
        h.dim[h.n++] = v->dim[k];
        h.over.index[h.over.n++] = c->element[k];
        h.panels = ex_mul2(h.panels, v->dim[k]);
        if (h.along) h.inside = ex_mul2(h.inside, v->dim[k]);
    }
    return h;
}

static void add_dim(Expr **list, int *n, Expr *e) { list[(*n)++] = e; }

// The element of an array at these subscripts is e, over their loops.
static void put_values(Lower *p, const Loops *l, Var *array, int n, Expr **at, Expr *e)
{
    Expr **target = arena_copy(p->g->arena, at, sizeof *at * (size_t)n);
    Node *nest = enter_nest(p, NODE_NEST, l, n, target, NULL);
    put_assign(p, ASSIGN_SET, place_element(ex_ref(array, n, at)), e);
    leave(p, nest);
}

// Indices over the values of each unknown, from 1, and what e is there; the place of the values in the product, from 1.
typedef struct Values {
    int n;
    Index *index[MOST_JOINED];
    Expr *place;
} Values;

static Values values_of(const Chains *h, const char *name, Expr *values)
{
    Values v = {.n = h->joined ? h->joined->n : 1, .place = ex_num(1)};
    Expr *stride = ex_num(1);
    for (int i = 0; i < v.n; i++) {
        Expr *count = h->joined ? h->joined->count[i] : values;
        v.index[i] = index_new(intern(name), ex_num(1), count);
        v.place = ex_add2(v.place, ex_mul2(stride, ex_sub(ex_index(v.index[i]), ex_num(1))));
        stride = ex_mul2(stride, count);
    }
    return v;
}

// e with these values for those of the element `of`.
static Expr *with_values(const Chains *h, Expr *e, Expr *of, Index *const *value)
{
    if (!h->joined) return ex_replace(e, of, ex_add2(ex_index(value[0]), ex_sub(end_of_summed(h->c->var, 0), ex_num(1))));
    for (int i = 0; i < h->joined->n; i++)
        e = ex_replace(e, ex_ref(h->joined->part[i], 1, &of),
                       ex_add2(ex_index(value[i]), ex_sub(end_of_summed(h->joined->var[i], 0), ex_num(1))));
    return e;
}

static void loop_over(Loops *l, const Values *v)
{
    for (int i = v->n - 1; i >= 0; i--) l->index[l->n++] = v->index[i];
}

static bool depends_on_panel(const Chains *h, const Expr *e)
{
    bool any = false;
    for (int k = 0; k < h->n; k++) any |= ex_mentions_index(e, h->over.index[k]);
    return any;
}

// floor(e / by) of whole numbers.
static Expr *whole_part(Expr *e, Expr *by) { return ex_call1("floor", ex_div(ex_add2(e, ex_num(0.5)), by)); }

// Of a link for each unknown among the values of all.
static void find_strides(Node *n)
{
    const Joined *j = n->states.joined;
    n->states.apart = j && j->nlinks && j->link[0].of >= 0;
    for (int l = 0; n->states.apart && l < j->nlinks; l++) {
        Expr *stride = ex_num(1);
        for (int i = 0; i < j->link[l].of; i++) stride = ex_mul2(stride, j->count[i]);
        n->states.stride[l] = stride;
    }
}

// The arrays of the draw, over chains and their elements, and what the links between elements are.
typedef struct Messages {
    const Chains *h;
    const char *name;  // of the unknowns
    Expr *values;      // how many there are, of all together
    Expr *link;        // as the density has it, at values i before and j
    Values i, j;
    bool by_panel, by_time;  // it depends on the chain, on the element
    int nlinks;              // of unknowns that are linked each for itself; 0: one
    bool whole;              // one for all
    Expr *numbers;           // of all links of an element
    Var *weights, *parts, *links;
} Messages;

static Messages messages_of(const Chains *h, const Update *s)
{
    const Conditional *c = s->conditional;
    const Joined *joined = h->joined;
    Messages m = {.h = h, .numbers = ex_num(0)};
    Expr *first = end_of_summed(c->var, 0);
    m.values = joined ? joined->values : ex_sub(end_of_summed(c->var, 1), ex_sub(first, ex_num(1)));
    m.i = values_of(h, "i", m.values);
    m.j = values_of(h, "j", m.values);
    m.link = c->before ? with_values(h, with_values(h, c->link, c->before, m.i.index), c->u, m.j.index) : c->link;
    m.by_panel = depends_on_panel(h, m.link);
    m.by_time = h->along && ex_mentions_index(m.link, h->along);
    m.nlinks = joined && c->before ? joined->nlinks : 0;
    m.whole = m.nlinks && joined->link[0].of < 0;
    for (int l = 0; l < m.nlinks && !m.whole; l++) {
        Expr *count = joined->count[joined->link[l].of];
        m.numbers = ex_add2(m.numbers, ex_mul2(joined->link[l].alone ? count : m.values, count));
    }
    if (!m.nlinks || m.whole) m.numbers = ex_pow(m.values, 2);
    return m;
}

// Where unknowns are drawn one after the other, the arrays have no chains.
static void make_arrays(Lower *p, const Update *s, Messages *m)
{
    const Chains *h = m->h;
    Expr *where = h->joined ? h->joined->where : NULL, *dim[MAX_RANK];
    m->name = s->conditional->var->name;
    for (int i = 1; i < s->nblock; i++) m->name = words(p, "%s_%s", m->name, s->block[i]->name);
    int n = h->n;
    for (int k = 0; k < n; k++) dim[k] = h->dim[k];
    add_dim(dim, &n, h->length);
    add_dim(dim, &n, m->values);
    if (where) dim[0] = ex_call3("if_else", where, dim[0], ex_num(0));
    m->weights = work_array(p, ROLE_BLOCK, words(p, "weights_%s", m->name), n, dim);
    // no chunks, and weights in a lane's own memory
    if (!h->along && m->values->kind == EX_NUM && m->values->number <= STATES_IN_LANE) n = 0;
    else dim[n - 2] = ex_add2(h->length, ex_num(8));
    if (where && n) dim[0] = ex_call3("if_else", where, n == 2 ? dim[0] : h->dim[0], ex_num(0));
    m->parts = work_array(p, ROLE_BLOCK, words(p, "parts_%s", m->name), n, dim);
    n = 0;
    for (int k = 0; k < h->n && m->by_panel; k++) add_dim(dim, &n, h->dim[k]);
    if (m->by_time) add_dim(dim, &n, h->length);
    if (!h->joined) add_dim(dim, &n, m->values);
    add_dim(dim, &n, ex_mul2(ex_num(2), h->joined ? m->numbers : m->values));
    if (where) dim[0] = ex_call3("if_else", where, dim[0], ex_num(0));
    m->links = work_array(p, ROLE_BLOCK, words(p, "links_%s", m->name), n, dim);
}

static void weigh_elements(Lower *p, const Messages *m, const Conditional *c)
{
    const Chains *h = m->h;
    Index *t = h->along;
    Loops over = {.n = t != NULL, .index = {t}};  // along the chains first: they may be few
    Expr *at[MAX_RANK];
    int n = 0;
    for (int k = 0; k < h->n; k++) {
        over.index[over.n++] = h->over.index[k];
        add_dim(at, &n, h->at[k]);
    }
    add_dim(at, &n, t ? ex_index(t) : ex_num(1));
    add_dim(at, &n, m->j.place);
    loop_over(&over, &m->j);
    put_values(p, &over, m->weights, n, at, with_values(h, c->local, c->u, m->j.index));
}

// One matrix of links; `one`: of one unknown alone, or NULL. `behind`: the numbers of those before it; gives: those and its own.
static Expr *weigh_link(Lower *p, const Messages *m, const Conditional *c, const JoinedLink *one, Expr *behind)
{
    const Chains *h = m->h;
    Values i = values_of(h, "i", m->values), to = values_of(h, "j", m->values);
    Index *ahead = index_new(h->along->name, ex_num(1), ex_sub(h->length, ex_num(1)));
    Loops over = {0};
    Expr *at[MAX_RANK];
    int n = 0;
    if (m->by_time) over.index[over.n++] = ahead;
    for (int k = 0; k < h->n && m->by_panel; k++) {
        over.index[over.n++] = h->over.index[k];
        add_dim(at, &n, h->at[k]);
    }
    Expr *later = ex_add2(ex_index(ahead), ex_num(1));
    if (m->by_time) add_dim(at, &n, later);
    Expr *row = i.place, *count = m->values, *column = to.place;
    if (one && one->of >= 0) {  // what is new of one unknown; of others it is as they come in the row
        Index *own = to.index[one->of];
        for (int k = 0; k < to.n; k++) to.index[k] = k == one->of ? own : i.index[k];
        count = h->joined->count[one->of];
        column = ex_index(own);
        if (one->alone) row = ex_index(i.index[one->of]);
        if (one->alone) over.index[over.n++] = i.index[one->of];
        else loop_over(&over, &i);
        over.index[over.n++] = own;
    } else {
        loop_over(&over, &i);
        loop_over(&over, &to);
    }
    Expr *e = with_values(h, with_values(h, one ? one->density : c->link, c->before, i.index), c->u, to.index);
    if (m->by_time) e = ex_replace_index(e, h->along, later);
    if (h->joined) add_dim(at, &n, ex_mul2(ex_num(2), ex_add(3, (Expr *[]){behind, ex_mul2(count, ex_sub(row, ex_num(1))), column})));
    else {
        add_dim(at, &n, row);
        add_dim(at, &n, ex_mul2(ex_num(2), column));
    }
    put_values(p, &over, m->links, n, at, e);
    return one ? ex_add2(behind, ex_mul2(one->alone && one->of >= 0 ? count : m->values, count)) : behind;
}

static void weigh(Lower *p, const Messages *m, const Update *s)
{
    const Conditional *c = s->conditional;
    Kernel *kernel = open_kernel(p, KERNEL_TEAM, words(p, "weigh_%s", m->name), "wide");
    weigh_elements(p, m, c);
    Expr *behind = ex_num(0);
    for (int l = 0; l < (c->before ? m->whole || !m->nlinks ? 1 : m->nlinks : 0); l++)
        behind = weigh_link(p, m, c, m->nlinks ? &m->h->joined->link[l] : NULL, behind);
    close_kernel(p);
    launch_team(p, kernel);
}

static void draw_states(Lower *p, const Messages *m, Var *v)
{
    const Chains *h = m->h;
    Kernel *draw = open_kernel(p, KERNEL_TEAM, words(p, "draw_at_once_%s", m->name), "wide");
    Node *d = put(p, NODE_DRAW_STATES);
    d->states.var = v;
    d->states.joined = h->joined;
    d->states.weight = m->weights;
    d->states.link = m->links;
    d->states.part = m->parts;
    d->states.panels = h->panels;
    d->states.length = h->length;
    d->states.values = m->values;
    d->states.inside = h->inside;
    d->states.by_panel = !m->by_panel ? ex_num(0) : m->by_time ? ex_mul2(h->length, m->numbers) : m->numbers;
    d->states.by_time = m->by_time ? m->numbers : ex_num(0);
    find_strides(d);
    note_count(p, draw, (Count){3, {h->panels, h->length, m->values}});
    close_kernel(p);
    launch_team(p, draw);
}

// The states, from where the draw leaves them: each unknown's is a part of that of the product.
static void place_states(Lower *p, const Messages *m, const Update *s)
{
    const Chains *h = m->h;
    const Conditional *c = s->conditional;
    Index *t = h->along;
    Kernel *place = open_kernel(p, KERNEL_TEAM, words(p, "place_%s", m->name), "wide");
    place->part = PART_TABLES;
    Expr *at[MAX_RANK];
    for (int k = 0; k < h->n; k++) at[k] = h->at[k];
    at[h->n] = t ? ex_index(t) : ex_num(1);
    at[h->n + 1] = ex_num(1);
    Expr *state = ex_ref(m->weights, h->n + 2, at), *stride = ex_num(1);
    for (int i = 0; i < s->nblock; i++) {
        Var *x = s->block[i];
        Loops over = {.n = t != NULL, .index = {t}};
        for (int k = 0; k < h->n; k++) over.index[over.n++] = h->over.index[k];
        over.guard = exists_at(x, c->element);
        Expr *element = ex_ref(x, x->rank, c->current->args), *value = state;
        if (i > 0) value = whole_part(state, stride);
        if (i + 1 < s->nblock) {
            Expr *count = h->joined->count[i];
            value = ex_sub(value, ex_mul2(count, whole_part(state, ex_mul2(stride, count))));
        }
        Node *nest = enter_nest(p, NODE_NEST, &over, x->rank, element->args, NULL);
        put_assign(p, ASSIGN_SET, place_element(element), ex_add2(value, end_of_summed(x, 0)));
        leave(p, nest);
        if (h->joined) stride = ex_mul2(stride, h->joined->count[i]);
    }
    close_kernel(p);
    launch_team(p, place);
}

void update_states(Lower *p, const Update *s)
{
    const Chains h = chains_of(s);
    Messages m = messages_of(&h, s);
    make_arrays(p, s, &m);
    comment_update(p, s);
    weigh(p, &m, s);
    note(p, h.along ? "Messages from the last element to the first, then states from the first to the last"
                    : "Each element by the weights of all combinations of values");
    draw_states(p, &m, s->conditional->var);
    note(p, "The states, to their places");
    place_states(p, &m, s);
}
