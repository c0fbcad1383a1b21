// factor.c -- the loop over the instances of one factor: its log density, the derivatives by scalars and by elements that an instance has
// for its own, and the weights that other derivatives need.
#include "hmc.h"

static Look test_work(const Expr *e, void *with)
{
    (void)with;
    return (e->kind == EX_CALL && e->nargs > 0) || e->kind == EX_REDUCE || e->kind == EX_AT || (e->kind == EX_POW && e->number != 2) ? FOUND
           : e->size > 12                                                                                                            ? FOUND
                                                                                                                                     : LOOK;
}

// A weight by the name that it has: in a product its factors would be among the others.
typedef struct NamedWeight {
    const Expr *weight;
    Var *local;
    struct NamedWeight *next;
} NamedWeight;

static Expr *by_name(const NamedWeight *named, Expr *weight)
{
    for (; named; named = named->next)
        if (named->weight == weight) return local_ref(named->local);
    return weight;
}

// The instances of a factor: in a span by rows, then what else its plates run over; else as a sum that is yet to be shared.
static Node *enter_factor(Lower *p, const Prepared *first, const Prepared *r)
{
    const Loops *plates = &r->f.plates;
    if (!r->span) {
        const Loops l = *plates;
        Node *sum = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
        sum->nest.op = ASSIGN_ADD;
        return sum;
    }
    Node *rows = enter_loop(p, SHARE_SPAN, r->row);
    for (int k = 0; k < r->span->nproducts; k++)
        if (first_reader(first, r->span->product[k]) == r && !whole_term(r, r->span->product[k]))
            put_no_weight(p, r->span->product[k], r->row);
    for (int i = 0; i < plates->n; i++)
        if (plates->index[i] != r->row) enter_loop(p, SHARE_SERIAL, plates->index[i]);
    if (plates->guard) put(p, NODE_SKIP)->skip.condition = plates->guard;
    return rows;
}

// Whether the loop over a factor's plates reads the weight of a derivative: otherwise later loops compute it.
static bool is_used_here(const HmcBlock *m, const Prepared *r, const Derivative *d)
{
    const bool all = d->loops.n == r->f.plates.n;
    return product_with(r->span, d->ref->var) || (r->f.plates.n && ex_find(d->weight, test_work, NULL)) ||
           (all && (total_of(r->span ? r->span->totals : m->totals, d->ref) || (is_own(d->ref, &r->f.plates) && !r->span)));
}

// Single numbers that rows read have names before the loop: what rows write might otherwise change them, for all that the C compiler knows,
// and it would do one row at a time.
static Look collect_scalars(const Expr *e, void *with)
{
    HmcBlock *m = with;
    const bool logarithm = e->kind == EX_CALL && e->fn == FN_log;
    const Expr *ref = logarithm ? e->args[0] : e;
    if (ref->kind != EX_REF || ref->nargs != ref->var->rank || ref->var->kind == VAR_DATA || ref->var->kind == VAR_ELEMENT ||
        ref->var->base == BASE_INT)
        return LOOK;
    const char *name = ref->var->name;
    for (int k = 0; k < ref->nargs; k++) {
        if (ref->args[k]->kind != EX_NUM) return LOOK;
        name = words(m->p, "%s_%ld", name, (long)ref->args[k]->number);
    }
    Expr *value = with_coordinates(m, (Expr *)e);
    if (logarithm && value == e) return LOOK;
    for (int i = 0; i < m->nscalars; i++)
        if (m->scalars[i] == value) return SKIP;
    name = intern(words(m->p, logarithm ? "current_log_%s" : "current_%s", name));
    for (int i = 0; i < m->nscalars; i++)  // a[1] and a_1
        if (m->names[i] == name) name = intern(words(m->p, "%s_%d", name, m->nscalars + 1));
    ROOM(m->p->g->arena, m->scalars, m->nscalars, m->scalars_size);
    ROOM(m->p->g->arena, m->names, m->nscalars, m->names_size);
    m->names[m->nscalars] = name;
    m->scalars[m->nscalars++] = value;
    Expr *exists = reads_inside(m->p->g, value);
    put_let(m->p, value, local_named(m->p->g->arena, name), exists ? ex_call3("if_else", exists, value, ex_num(0)) : value, "wide");
    return SKIP;
}

static void put_scalars(HmcBlock *m, const Prepared *r)
{
    if (!r->f.plates.n || r->span) return;
    ex_find(r->f.log_density, collect_scalars, m);
    for (const Derivative *d = r->terms; d; d = d->next) {
        ex_find(d->weight, collect_scalars, m);
        ex_find(d->rest, collect_scalars, m);
    }
}

// What choices of a row read is read before them, from elements that are there whatever is chosen: a row is then computed without branches,
// and several at a time.
typedef struct ChoiceReads {
    HmcBlock *m;
    const Expr **at;
    int n, size;
} ChoiceReads;

static Expr *within_array(Expr *at, Expr *extent)
{
    return ex_call3("if_else", ex_call2("<", at, ex_num(1)), ex_num(1), ex_call3("if_else", ex_call2("<", extent, at), extent, at));
}

static Look read_of_choice(const Expr *e, void *with)
{
    ChoiceReads *r = with;
    Lower *p = r->m->p;
    if (e->kind != EX_REDUCE && e->kind != EX_REF) return LOOK;
    for (int i = 0; i < r->n; i++)
        if (r->at[i] == e) return SKIP;
    Expr *value = NULL, *at[MAX_RANK];
    if (e->kind == EX_REDUCE) {
        value = predicted(p, p->open, (Expr *)e);
        for (int k = 0; value && k < value->nargs; k++)
            if (value->args[k]->kind != EX_INDEX) return SKIP;
    } else if (e->nargs == e->var->rank && e->var->base != BASE_INT && e->var->kind != VAR_DATA && e->var->kind != VAR_ELEMENT) {
        bool computed = false;
        for (int k = 0; k < e->nargs; k++) {
            const bool plain = e->args[k]->kind == EX_INDEX || e->args[k]->kind == EX_NUM;
            at[k] = plain ? e->args[k] : within_array(e->args[k], e->var->dim[k]);
            computed |= !plain;
        }
        if (computed) value = ex_ref(e->var, e->nargs, at);
    }
    if (!value) return SKIP;
    ROOM(p->g->arena, r->at, r->n, r->size);
    r->at[r->n++] = e;
    put_let(p, (Expr *)e, local_new(p->g->arena, intern(words(p, "read%d", ++r->m->nnamed))), value, "wide");
    return SKIP;
}

static Look collect_choices(const Expr *e, void *with)
{
    if (e->kind == EX_REDUCE) return SKIP;
    if (e->kind != EX_CALL || e->fn != FN_if_else) return LOOK;
    ex_find(e->args[1], read_of_choice, with);
    ex_find(e->args[2], read_of_choice, with);
    return LOOK;
}

static void put_reads(HmcBlock *m, const Prepared *r)
{
    if (!r->f.plates.n || r->span) return;
    ChoiceReads reads = {.m = m};
    ex_find(r->f.log_density, collect_choices, &reads);
    for (const Derivative *d = r->terms; d; d = d->next)
        if (d->loops.n == r->f.plates.n) {
            ex_find(d->weight, collect_choices, &reads);
            ex_find(d->rest, collect_choices, &reads);
        }
}

// A factor of the density in its loop, as it is put.
typedef struct FactorLoop {
    HmcBlock *m;
    const Prepared *first, *r;  // the first of all; this one
    Node *sum;
    Keeping sums;
    NamedWeight *named;  // weights that several derivatives share
    const Derivative **covered;
    int ncovered, ntotals;
} FactorLoop;

static void name_weights(FactorLoop *o)
{
    HmcBlock *m = o->m;
    Lower *p = m->p;
    const Prepared *r = o->r;
    for (const Derivative *d = r->terms; d; d = d->next) {
        bool before = false, again = false, used = false;
        for (const Derivative *e = r->terms; e; e = e->next) used |= e->weight == d->weight && is_used_here(m, r, e);
        for (const Derivative *e = r->terms; e != d; e = e->next) before |= e->weight == d->weight;
        for (const Derivative *e = d->next; e; e = e->next) again |= e->weight == d->weight;
        if (before || !again || !used || d->weight->nargs == 0 || d->weight->kind == EX_REF) continue;
        NamedWeight *w = NEW(p->g->arena, NamedWeight);
        *w = (NamedWeight){d->weight, local_new(p->g->arena, intern(words(p, "w%d", ++m->nnamed))), o->named};
        o->named = w;
        put_let(p, in_this_loop(&o->sums, d->weight), w->local, in_this_loop(&o->sums, d->weight), "wide");
    }
}

// A derivative that another loop adds: its weight in an array, if it is work to compute, and what it keeps of this loop.
static void put_later(FactorLoop *o, Derivative *d)
{
    HmcBlock *m = o->m;
    const Loops *plates = &o->r->f.plates;
    Pending w = {.d = d, .weight = d->weight};
    if (plates->n && ex_find(d->weight, test_work, NULL)) {
        for (const Pending *e = m->pending; e; e = e->next)
            if (e->d->weight == d->weight && e->d->factor == d->factor) w.weight = e->weight;
        Expr *place = w.weight == d->weight ? weight_place(m, plates) : NULL;
        if (place) {
            put_assign(m->p, ASSIGN_SET, place_element(place), in_this_loop(&o->sums, d->weight));
            w.weight = place;
        }
    }
    Derivative *later = arena_copy(m->p->g->arena, d, sizeof *d);
    later->rest = in_later_loops(&o->sums, d->rest);
    if (w.weight == d->weight) w.weight = later->weight = in_later_loops(&o->sums, d->weight);
    w.keeps = later->rest != d->rest || later->weight != d->weight;
    if (w.keeps) later->rest = in_places(&o->sums, later->rest, &d->loops);
    if (w.keeps) w.d = later;
    add_pending(m, &w);
}

// A derivative goes with the weights of a product, into a total, into its own place, or to a later loop.
static void put_derivative(FactorLoop *o, Derivative *d)
{
    HmcBlock *m = o->m;
    Lower *p = m->p;
    const Prepared *r = o->r;
    const Loops *plates = &r->f.plates;
    const bool all = d->loops.n == plates->n;
    const Product *of = product_with(r->span, d->ref->var);
    if (of) {
        if (first_reader(o->first, of) != r || whole_term(r, of) != d)
            put_weight(m, of, d, by_name(o->named, d->weight), plates->n, ASSIGN_ADD);
        return;
    }
    if (is_covered(d, o->covered, o->ncovered)) return;
    Total *t = all ? total_of(r->span ? r->span->totals : m->totals, d->ref) : NULL;
    if (t && o->ntotals < MOST_TOTALS) {
        put_assign(p, ASSIGN_ADD, place_local(t->local), in_this_loop(&o->sums, ex_mul2(by_name(o->named, d->weight), d->rest)));
        if (r->span) o->sum->loop.total[o->sum->loop.ntotals++] = t->local;
        o->ntotals++;
        return;
    }
    if (all && is_own(d->ref, plates) && !r->span)
        put_assign(p, ASSIGN_ADD, gradient_place(m, d->ref), in_this_loop(&o->sums, ex_mul2(by_name(o->named, d->weight), d->rest)));
    else put_later(o, d);
}

void put_factor(HmcBlock *m, const Prepared *first, const Prepared *r)
{
    Lower *p = m->p;
    const Factor *f = &r->f;
    FactorLoop o = {.m = m, .first = first, .r = r};
    put(p, NODE_COMMENT)->text.lines = factor_text(p, f);
    int nterms = 0;
    for (const Derivative *d = r->terms; d; d = d->next) nterms++;
    o.covered = NEW_N(p->g->arena, const Derivative *, nterms *(nterms + 1) + 1);
    for (int k = 0; r->span && k < r->span->nproducts; k++) {
        Product *of = r->span->product[k];
        const Prepared *one = first_reader(first, of);
        if (one == r && !first_reader(r->next, of)) put_beside(m, r, of, o.covered, &o.ncovered);
    }
    put_scalars(m, r);
    o.sum = enter_factor(p, first, r);
    if (r->span) o.sum->loop.total[o.sum->loop.ntotals++] = m->lp;
    put_reads(m, r);
    o.sums = name_sums(m, r, o.covered, o.ncovered);
    put_assign(p, ASSIGN_ADD, place_local(m->lp), in_this_loop(&o.sums, f->log_density));
    name_weights(&o);
    for (int k = 0; r->span && k < r->span->nproducts; k++) {
        const Product *of = r->span->product[k];
        const Derivative *d = first_reader(first, of) == r ? whole_term(r, of) : NULL;
        if (d) put_weight(m, of, d, by_name(o.named, d->weight), f->plates.n, ASSIGN_SET);
    }
    for (Derivative *d = r->terms; d; d = d->next) put_derivative(&o, d);
    leave(p, o.sum);
}
