// place.c -- from coordinates to variables, and from variables to coordinates where these are not those that the last transition has left.
//
// A variable is placed after those that its ends, its centre and its spread are made of; then what is computed of the block: series,
// factors and inverses of matrices, what is computed once.
#include <math.h>
#include "hmc.h"

// Ends that depend on the block: whose they are must be clear, and they must be there before the variable is. So must centres and spreads.
static void order_ends(HmcBlock *m)
{
    const int n = m->update->nblock;
    bool *placed = NEW_N(m->p->g->arena, bool, n + 1);
    for (int done = 0, before = -1; done < n && done != before;) {
        before = done;
        for (int i = 0; i < n; i++) {
            if (placed[i]) continue;
            bool ready = true;
            for (const Bound *b = bounds_of(m, m->update->block[i]); b; b = b->next)
                for (int k = 0; k < n; k++) ready &= !end_reads(b, m->update->block[k]) || placed[k];
            for (int k = 0; k < n; k++) ready &= k == i || !prior_reads(m->centring[i].priors, m->update->block[k]) || placed[k];
            if (!ready) continue;
            m->order[done++] = i;
            placed[i] = true;
        }
        if (done != before) continue;
        bool centred = false;
        for (int i = 0; i < n; i++)
            if (!placed[i] && m->centring[i].priors) {
                m->centring[i].priors = NULL;
                centred = true;
            }
        if (centred) {
            before = -1;
            continue;
        }
        for (int i = 0; i < n; i++)  // in a circle
            if (!placed[i]) {
                m->ends[i].unknown = true;
                m->order[done++] = i;
                placed[i] = true;
            }
    }
    for (int i = 0; i < n; i++)
        for (const Bound *b = bounds_of(m, m->update->block[i]); b; b = b->next) {
            bool varies = false;
            for (int k = 0; k < n; k++) varies |= end_reads(b, m->update->block[k]);
            m->ends[i].varies |= varies;
            Factor ends = *b->f;
            Derivative *terms;
            const char *why;
            ends.log_density = ex_add2(finite_end(b->term->args[1]), finite_end(b->term->args[2]));
            m->ends[i].unknown |= varies && !derivatives(m->p->g, &ends, m->update->block, n, &terms, &why);
            m->ends[i].unknown |= varies && (b->term->args[0]->nargs ? !is_own(b->term->args[0], &b->f->plates) : b->f->plates.n > 0);
        }
}

// Ends that do not depend on the block are found once a sweep.
void put_ends(HmcBlock *m)
{
    Lower *p = m->p;
    bool any = false;
    order_ends(m);
    put_centrings(m);
    for (int i = 0; i < m->update->nblock; i++) {
        Ends *ends = &m->ends[i];
        const Var *v = m->update->block[i];
        if (ends->unknown || !bounds_of(m, v)) continue;
        any |= !ends->varies;
        for (int side = 0; side < 2; side++) {
            ends->array[side] = work_array(p, ROLE_BLOCK, words(p, "%s_%s", side ? "upper" : "lower", v->name), v->rank, v->dim);
            if (ends->varies)
                ends->slope[side] = work_array(p, ROLE_BLOCK, words(p, "slope_%s_%s", side ? "upper" : "lower", v->name), v->rank, v->dim);
        }
    }
    put_fixed_roots(m);
    if (!any) return;
    note(p, "Between which ends the elements of %s lie", m->update->description->subject);
    Kernel *k = open_kernel(p, KERNEL_ONCE, words(p, "ends_%s", m->stem), "wide");
    for (int i = 0; i < m->update->nblock; i++)
        if (m->ends[i].array[0] && !m->ends[i].varies) put_ends_of(m, i);
    close_kernel(p);
    launch(p, LAUNCH_ONCE, k);
}

// What the coordinates are: mu, log(tau), q of theta, which is standardised. Where they are several for one unknown, its name alone.
static const char *coordinates_text(const HmcBlock *m)
{
    const char *all = "";
    for (int i = 0; i < m->update->nblock; i++) {
        const Ends *ends = &m->ends[i];
        Loops l;
        Expr *x = all_elements(m->update->block[i], &l);
        const char *name = m->update->block[i]->name;
        const bool as_it_is = m->tied[i].slope || ends->is_angle || is_free(ends) || ends->varies;
        const char *one = m->centring[i].priors ? words(m->p, "q of %s", name)
                          : as_it_is            ? name
                                                : ex_quote(m->p->g->arena, line_transform(ends, LINE_INVERSE, x, x));
        all = words(m->p, "%s%s%s", all, i ? ", " : "", one);
    }
    return all;
}

static void explain_coordinates(const HmcBlock *m)
{
    Lower *p = m->p;
    note(p,
         "Unconstrained coordinates q of (%s): (%s). kept_coordinate(q, v, x, fresh) is q where x still is v, the value at "
         "q, so that no rounding moves it, else (mostly for float x) fresh",
         m->update->description->subject, coordinates_text(m));
    const char *standardised = "";
    for (int i = 0; i < m->update->nblock; i++)
        if (m->centring[i].priors && !m->centring[i].root)
            standardised = words(p, "%s%s%s", standardised, *standardised ? ", " : "", m->update->block[i]->name);
    if (*standardised)
        note(
            p,
            "x, an element of %s, of prior mean m = centre and sd s = spread, is m + scale*(q - (1 - c)*m), scale = s^c: q is x for c = 0, "
            "and (x - m)/s for c = 1. c, non_centring of its coordinate, is %s. standard_scale(c, s) is s^c, "
            "from_standard(q, c, m, scale) is x, "
            "to_standard(x, c, m, scale) is q",
            standardised,
            m->shares ? "set in warm-up, as next_non_centring: 1 over the precision of (x - m)/s given all else, the variance of d lp/dq "
                        "at c = 1 (but 1 if that is below 3, 0 if above 60; Papaspiliopoulos et al. 2007; Gorinova et al. 2020)"
                      : "1");
}

// From the variables to coordinates, where these are not those that the last trajectory ended in.
void put_enter(HmcBlock *m)
{
    Lower *p = m->p;
    explain_coordinates(m);
    Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, "enter_%s", m->stem), "wide");
    k->places = true;
    put_offsets(m);
    if (m->shares) {  // those that the last update has found to be better
        Index *e = index_new(intern("e"), ex_num(1), m->size);
        const Loops all = {.n = 1, .index = {e}};
        Expr **at = NEW_N(p->g->arena, Expr *, 1);
        at[0] = ex_index(e);
        Node *n = enter_nest(p, NODE_NEST, &all, 1, at, NULL);
        put_assign(p, ASSIGN_SET, place_element(ex_ref(m->shares, 1, at)), ex_ref(m->next_shares, 1, at));
        leave(p, n);
        put_barrier(p);
    }
    for (int i = 0; i < m->update->nblock; i++) {
        Loops l;
        const Ends *ends = &m->ends[i];
        if (m->tied[i].slope) {
            put_transform(m, m->update->block[i], TRANSFORM_TO);
            continue;
        }
        if (ends->varies && !ends->unknown) put_ends_of(m, i);
        if (m->centring[i].priors) put_centring(m, i, true);
        if (m->centring[i].priors && m->centring[i].root) {
            put_share_of_vectors(m, i);
            put_vectors_to(m, i);
            continue;
        }
        Expr *x = all_elements(m->update->block[i], &l), *q = of_ref(m, m->position, x);
        Expr *value = m->centring[i].priors ? coordinate_at(m, &m->centring[i], x)
                      : ends->is_angle      ? kept_winding(q, x)
                      : is_free(ends)       ? x
                      : keeps_logs(ends, x)
                          ? line_transform(ends, LINE_INVERSE, x, x)
                          : ex_call("kept_coordinate", 4,
                                    (Expr *[]){q, line_transform(ends, LINE_VALUE, q, x), x, line_transform(ends, LINE_INVERSE, x, x)});
        Node *n = each_element(m, x, &l);
        put_assign(p, ASSIGN_SET, place_element(q), value);
        leave(p, n);
    }
    close_kernel(p);
    launch_team(p, k);
}

// The i-th unknown of the block from its coordinates.
static void put_unknown(HmcBlock *m, int i)
{
    Lower *p = m->p;
    Loops l;
    const Ends *ends = &m->ends[i];
    if (m->tied[i].slope) {
        put_transform(m, m->update->block[i], TRANSFORM_FROM);
        return;
    }
    if (ends->varies && !ends->unknown) {
        put_barrier(p);
        put_ends_of(m, i);
    }
    if (m->centring[i].priors) put_centring(m, i, false);
    if (m->centring[i].priors && m->centring[i].root) put_whitened(m, i, TRANSFORM_FROM);
    Expr *x = all_elements(m->update->block[i], &l), *q = of_ref(m, m->position, x);
    Node *n = each_element(m, x, &l);
    put_assign(p, ASSIGN_SET, place_element(x),
               m->centring[i].priors ? at_coordinate(m, &m->centring[i], x, share_of(m, x))
               : ends->is_angle      ? wrapped(q)
               : is_free(ends)       ? q
                                     : line_transform(ends, LINE_VALUE, q, x));
    if (keeps_logs(ends, x))
        put_logs(p, x, isinf(ends->number[1]) ? q : ex_call1("log_inv_logit", q), ex_call1("log1m_inv_logit", q), STORE_PLAIN);
    leave(p, n);
    if (recursion_of(m->centring[i].priors)) put_recursion(m, i);
}

static void put_all_series(HmcBlock *m)
{
    Lower *p = m->p;
    if (!m->moving.nseries) return;
    put_barrier(p);
    Node *lane = enter(p, NODE_LANE);
    for (int i = 0; i < m->moving.nseries; i++) {
        Node *n = put(p, NODE_COMPUTE);
        n->compute.series = m->moving.series[i];
        n->compute.slopes = true;
    }
    leave(p, lane);
}

// Factors, inverses and log determinants of matrices that the density reads.
static void put_matrices(HmcBlock *m)
{
    Lower *p = m->p;
    for (int i = 0; i < m->moving.nfactored; i++) {
        const Factored *of = &m->moving.factored[i];
        const bool unsure = !surely_symmetric(m, of->call->args[0]);
        put_matrix(m, of->var, of->call->args[0], unsure);
        Node *lane = enter(p, NODE_LANE), *n = put(p, NODE_FACTOR);
        n->factor.matrix = of->var;
        n->factor.unsure = unsure;
        leave(p, lane);
    }
    for (const Inverse *i = m->inverses; i; i = i->next) {
        const bool unsure = !surely_symmetric(m, i->of);
        put_matrix(m, i->matrix, i->of, unsure);
        Node *lane = enter(p, NODE_LANE), *n = put(p, NODE_FACTOR);
        n->factor.unsure = unsure;
        n->factor.matrix = i->matrix;
        n->factor.inverse = i->inverse;
        n->factor.log_det = i->log_det;
        leave(p, lane);
    }
}

Kernel *put_place(HmcBlock *m)
{
    Lower *p = m->p;
    note(p, "%s at these coordinates", m->update->description->subject);
    Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, m->update->selection ? "transform_%s" : "place_%s", m->stem), "wide");
    k->places = true;
    put_offsets(m);
    for (int o = 0; o < m->update->nblock; o++) put_unknown(m, m->order[o]);
    put_all_series(m);
    put_matrices(m);
    for (const Once *o = m->once; o; o = o->next) {
        const Loops l = o->plates;
        put_barrier(p);
        Expr **at = NEW_N(p->g->arena, Expr *, l.n);
        for (int i = 0; i < l.n; i++) at[i] = ex_index(l.index[i]);
        Node *n = enter_nest(p, NODE_NEST, &l, l.n, at, NULL);
        put_assign(p, ASSIGN_SET, place_element(ex_ref(o->var, l.n, at)), o->value);
        leave(p, n);
    }
    close_kernel(p);
    return k;
}
