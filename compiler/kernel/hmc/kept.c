// kept.c -- sums that rows keep.
//
//   density      lp += log_sum_exp(j in 1:K, t[n, j])          kept[n] = the same
//   slope        v[j] gets exp(t[n, j] - kept[n]) * ..         over n, j: K terms a row, where the sum anew for each of them would make K^2
//
// A term that has sums itself, the distance of the row from the mean of a component, is not computed again for each coordinate of its
// slopes: exp(t[n, j] - kept[n]) has an array then.
#include <string.h>
#include "hmc.h"

// As the kernel of a factor's rows computes it: kernels of rows between products do not know where variables begin in the coordinates.
static Expr *in_kernel(const HmcBlock *m, const Prepared *r, Expr *e) { return r->span ? e : with_coordinates(m, e); }

Look test_sum(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REDUCE ? FOUND : LOOK;
}

static Look test_equal(const Expr *e, void *with) { return e == with ? FOUND : LOOK; }

// What e computes of a sum: the sum, 0 where choices leave it out. NULL: nothing, or in several places.
static Expr *computed_by(Expr *e, Expr *sum)
{
    if (e == sum) return sum;
    if (e->nargs == 0 || e->kind == EX_REF || e->kind == EX_REDUCE || e->kind == EX_ARRAY || !ex_find(e, test_equal, sum)) return NULL;
    if (e->kind == EX_CALL && (e->fn == FN_AND || e->fn == FN_OR)) return computed_by(e->args[0], sum);
    if (e->kind == EX_CALL && e->fn == FN_if_else) {
        Expr *either[3];
        for (int i = 0; i < 3; i++) either[i] = computed_by(e->args[i], sum);
        if (either[0]) return either[0];
        if (either[1] == either[2]) return either[1];
        return ex_call3("if_else", e->args[0], either[1] ? either[1] : ex_num(0), either[2] ? either[2] : ex_num(0));
    }
    Expr *found = NULL;
    for (int i = 0; i < e->nargs && found != sum; i++) {
        Expr *here = computed_by(e->args[i], sum);
        if (here && found && here != sum && here != found) return NULL;
        if (here) found = here;
    }
    return found;
}

// A sum that changes with the block and from row to row gets a name, which the density and all derivatives of the row read.
static Look name_sum(const Expr *e, void *with)
{
    Keeping *k = with;
    HmcBlock *m = k->m;
    const Loops *plates = &k->r->f.plates;
    if (e->kind != EX_REDUCE || e->loose || (k->anywhere && e->fn != FN_log_sum_exp)) return LOOK;
    for (const KeptSum *o = k->first; o; o = o->next)
        if (o->sum == e) return SKIP;
    bool varies = false;
    for (int i = 0; i < m->moving.n; i++) varies |= ex_reads(e, m->moving.var[i]);
    for (int i = 0; i < plates->n; i++) varies &= ex_mentions_index(e, plates->index[i]);
    Expr *value = varies && !predicted(m->p, m->p->open, (Expr *)e) ? computed_by(k->r->f.log_density, (Expr *)e) : NULL;
    if (!value) return LOOK;
    KeptSum *o = NEW(m->p->g->arena, KeptSum);
    *o = (KeptSum){.sum = (Expr *)e,
                   .local = local_new(m->p->g->arena, intern(words(m->p, "all%d", ++m->nnamed))),
                   .always = value == e,
                   .next = k->first};
    k->first = o;
    put_let(m->p, NULL, o->local, in_kernel(m, k->r, value), "wide");
    return SKIP;
}

static Expr *by_kept(Expr *e, void *with)
{
    const Keeping *k = with;
    Lower *p = k->m->p;
    KeptSum *o = e->kind == EX_REDUCE ? k->first : NULL;
    while (o && o->sum != e) o = o->next;
    if (!o || !k->later) return o ? local_ref(o->local) : NULL;
    if (!o->place && (o->place = row_place(k->m, &k->r->f.plates, ROLE_BLOCK, words(p, "kept_%s", k->m->stem))))
        put_assign(p, ASSIGN_SET, place_element(o->place), local_ref(o->local));
    return o->place;
}

Keeping name_sums(HmcBlock *m, const Prepared *r, const Derivative *const *covered, int ncovered)
{
    Keeping k = {.m = m, .r = r};
    for (const Derivative *d = r->f.plates.n ? r->terms : NULL; d; d = d->next) {
        if (product_with(r->span, d->ref->var) || is_covered(d, covered, ncovered)) continue;
        k.anywhere = false;
        ex_find(d->rest, name_sum, &k);
        k.anywhere = true;
        ex_find(d->weight, name_sum, &k);
    }
    return k;
}

Expr *in_later_loops(Keeping *k, Expr *e)
{
    k->later = true;
    return k->first ? ex_map(e, by_kept, k) : e;
}

static bool reads_kept(const Var *v, void *with)
{
    for (const KeptSum *o = with; o; o = o->next)
        if (o->place && o->place->var == v) return true;
    return false;
}

// e is exp(t - sum), t a term of a sum that the density always computes: it exists whichever choices are made.
static bool is_of_term(const Keeping *k, Expr *e, Index *value)
{
    for (const KeptSum *o = k->first; o; o = o->next)
        if (o->always && o->place && o->sum->fn == FN_log_sum_exp && o->sum->args[0] == value->lo && o->sum->args[1] == value->hi &&
            e == ex_call1("exp", ex_sub(ex_open(o->sum, value), o->place)))
            return true;
    return false;
}

static Expr *by_probability(Expr *e, void *with)
{
    Keeping *k = with;
    HmcBlock *m = k->m;
    const Loops *plates = &k->r->f.plates;
    Index *value = NULL;
    if (e->kind == EX_CALL && e->fn == FN_if_else && !k->chosen) {
        Expr *part[3];
        for (int i = 0; i < 3; i++) {
            k->chosen = i > 0;
            part[i] = ex_map(e->args[i], by_probability, k);
        }
        k->chosen = false;
        return ex_call3("if_else", part[0], part[1], part[2]);
    }
    if (e->kind != EX_CALL || e->fn != FN_exp || e->loose || !ex_find(e, test_sum, NULL) || !ex_any_var(e, reads_kept, k->first))
        return NULL;
    for (Probability *o = m->probabilities; o; o = o->next)
        if (o->of == e) return o->place;
    for (int i = plates->n; i < k->loops->n; i++) {
        if (!ex_mentions_index(e, k->loops->index[i])) continue;
        if (value) return NULL;
        value = k->loops->index[i];
    }
    if (!value || !ex_is_num(value->lo, 1) || (k->chosen && !is_of_term(k, e, value))) return NULL;
    Loops both = {.n = plates->n + 1, .guard = plates->guard};
    memcpy(both.index, plates->index, sizeof *both.index * (size_t)plates->n);
    both.index[plates->n] = value;
    Expr *place = row_place(m, &both, ROLE_WEIGHTS, words(m->p, "probability_%s", m->stem));
    if (place) m->probabilities = arena_copy(m->p->g->arena, &(Probability){e, place, both, m->probabilities}, sizeof(Probability));
    return place;
}

Expr *in_places(Keeping *k, Expr *e, const Loops *loops)
{
    k->loops = loops;
    return k->first ? ex_map(e, by_probability, k) : e;
}

void put_probabilities(HmcBlock *m)
{
    for (const Probability *o = m->probabilities; o; o = o->next) {
        Node *n = enter_nest(m->p, NODE_NEST, &o->loops, o->place->nargs, o->place->args, NULL);
        put_assign(m->p, ASSIGN_SET, place_element(o->place), with_coordinates(m, o->of));
        leave(m->p, n);
    }
    if (m->probabilities) put_barrier(m->p);
}

Expr *in_this_loop(Keeping *k, Expr *e)
{
    k->later = false;
    return in_kernel(k->m, k->r, k->first ? ex_map(e, by_kept, k) : e);
}
