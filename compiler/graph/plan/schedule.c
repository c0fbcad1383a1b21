// schedule.c -- how each variable is drawn, and in which order.
//
//   before   unknowns and factors
//   after    gaussian (mu, theta); exact tau; ...     one update per variable or block, in the order of the sweep
//
// Rules decide which variables are drawn together, in the order of a table below: each rule takes the variables that it can draw from those
// that earlier rules have left. `place` decides the position of an update in the sweep.
//
// Needs: augment done.     Gives: g->updates.
// Order: first imputed responses, updates that see discrete unknowns summed out, and these unknowns. Then updates that integrate
// auxiliaries out, the auxiliaries, latents (so that the first sweep makes them feasible from any start), and all others. So no update
// reads a value that is out of date (van Dyk and Park 2008, partially collapsed Gibbs).
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "schedule.h"
#include "../conditional.h"
#include "../update.h"
#include "../terms/var.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/ode.h"
#include "../algebra/families.h"
#include "../algebra/block_terms.h"
#include "../algebra/few_rows.h"
#include "../algebra/sets.h"
#include "../rewrite/joined.h"
#include "../rewrite/expect.h"
#include "../updates/updates.h"
#include "../updates/blocks.h"
#include "../updates/chains.h"
#include "../updates/collapsed.h"
#include "../updates/element.h"
#include "../updates/nuts.h"
#include "../updates/categories.h"
#include "impute.h"

// The sweep, in its order.
typedef struct Order {
    Update *expectations;  // of latents, for modes
    Update *imputed;       // missing values of data
    Update *left_out;      // those that nothing else has seen
    // what sees unknowns summed out; after what reads auxiliaries as they are, what has these integrated out, too
    Update *over_sums, *over_both;
    Update *summed;  // these, the last one first
    Update *first;   // what sees auxiliaries integrated out
    Update *auxiliaries;
    Update *predictive, *weights;  // what sees weights integrated out, and these
    Update *latents, *rest;
} Order;

typedef struct Plan {
    Graph *g;
    int n;
    Candidate *list;  // all that is to be drawn, in the order of declaration
    Order order;
} Plan;

static Update **usual(Plan *p, const Var *v)
{
    return v->kind == VAR_AUXILIARY ? &p->order.auxiliaries : v->kind == VAR_LATENT ? &p->order.latents : &p->order.rest;
}

// An update where it belongs in the sweep, and `otherwise` where nothing is summed or integrated out. NULL: there is none.
static void place(Plan *p, Update *s, Update **otherwise)
{
    if (!s) return;
    Order *o = &p->order;
    const int number = s->block[0]->summing.summed;
    s->over_sum = p->g->method != METHOD_EM && drawn_without_summed(p->g, s->block, s->nblock);
    s->marginal |= s->over_sum;
    if (number) {
        Update **at = &o->summed;
        while (*at && (*at)->block[0]->summing.summed > number) at = &(*at)->next;
        s->next = *at;
        *at = s;
    } else update_append(s->over_sum ? s->collapsed ? &o->over_both : &o->over_sums : s->collapsed ? &o->first : otherwise, s);
}

static Growing no_block(Graph *g) { return (Growing){.inside = NEW_N(g->arena, bool, g->nvars), .near = NEW_N(g->arena, bool, g->nvars)}; }

// ---- sparse sets ----
//
// Unknowns that hang together through several plates of effects, or whose elements are coupled in pairs: one joint normal with a sparse
// precision. The updates that are made of them as of any others stand in for it where it is not taken. What the pattern of the precision
// depends on has to be sizes and data.

static bool may_be_sparse(const Candidate *c)
{
    if (c->taken || c->set || c->form == NOT_GAUSSIAN || c->var->constraint != CONSTRAINT_NONE || !has_pattern(c->terms)) return false;
    if (c->var->kind == VAR_LATENT) return c->form == CHAINED;
    return c->var->kind == VAR_PARAMETER && (c->form != DENSE || c->var->rank == 0 || c->nbatch == 0);
}

static bool is_spread(Graph *g, const Candidate *c)
{
    return c->form == ELEMENTWISE || c->form == CHAINED || coupled_in_pairs(g, c->var, c->terms);
}

// Whether a chain with its border takes up all of the block: then it is drawn by its band.
static bool is_chain(Graph *g, Growing *b, Candidate *list, int n)
{
    Growing all = *b, chain = no_block(g);
    bool whole = false, *taken = NEW_N(g->arena, bool, n + 1);
    for (int k = 0; k < n; k++) {
        taken[k] = list[k].taken;
        list[k].taken = !all.inside[list[k].var->id];
    }
    for (int k = 0; k < n && !whole; k++) {
        Candidate *c = &list[k];
        if (c->taken || (c->form != CHAINED && c->form != DENSE) || c->listed || c->var->rank == 0) continue;
        const Update *s = grow_chain(g, &chain, list, n, c);
        whole = s && s->nblock == all.n;
        for (int m = 0; m < n; m++) list[m].taken = !all.inside[list[m].var->id];
    }
    for (int k = 0; k < n; k++) list[k].taken = taken[k];
    return whole;
}

// Terms that hold two of its variables may be there by what an unknown is: (z[g[i]] == 1 ? mu : 0) + u[a[i]].
static bool together_sparse(Graph *g, const Growing *b)
{
    BlockTerm *terms;
    const char *why;
    return block_terms(g, b->var, b->n, &terms, &why) && has_pattern(terms);
}

// The block grows from list[i]; `each`: by nothing that leaves it without a pattern.
static void grow_joint(Graph *g, Candidate *list, int n, Growing *b, int i, bool each)
{
    for (int k = 0; k < n && each; k++)  // once more
        if (b->inside[list[k].var->id]) list[k].taken = false;
    grow_from(g, b, list[i].var);
    for (int k = 0; k < n && !b->full; k++) {
        if (k == i || list[k].taken || !may_be_sparse(&list[k]) || !grow_by(g, b, &list[k])) continue;
        if (!each || together_sparse(g, b)) {
            k = -1;
            continue;
        }
        list[k].taken = b->inside[list[k].var->id] = false;
        b->n--;
    }
}

// How many times the work of separate draws a joint one may take. Loops without neighbours have a factor with many entries only if their
// levels meet in most pairs, as in crossed designs with many rows. Then blocks with the mean in each mix well (Papaspiliopoulos, Roberts
// and Zanella 2020). The elements of a field mix slowly one at a time.
enum { MOST_OF_PLATES = 8, MOST_OF_NEIGHBOURS = 1000 };

static void sparse_sets(Plan *p)
{
    Graph *g = p->g;
    Growing grows = no_block(g), *b = &grows;
    Candidate *const list = p->list;
    const int n = p->n;
    for (int i = 0; i < n; i++) {
        if (!may_be_sparse(&list[i]) || !is_spread(g, &list[i])) continue;
        grow_joint(g, list, n, b, i, false);
        if (!together_sparse(g, b)) grow_joint(g, list, n, b, i, true);
        Var **block = NEW_N(g->arena, Var *, b->n);
        int m = 0, plates = 0;
        bool coupled = false;
        for (int spread = 0; spread < 2; spread++)
            for (int k = 0; k < n; k++) {
                Candidate *c = &list[k];
                if (!b->inside[c->var->id] || is_spread(g, c) != spread) continue;
                block[m++] = c->var;
                plates += spread;
                coupled |= spread && c->form != ELEMENTWISE;
            }
        const bool sparse = (plates > 1 || coupled) && !is_chain(g, b, list, n);
        if (sparse) g->njoint++;
        for (int k = 0; k < n; k++)
            if (b->inside[list[k].var->id]) {
                list[k].taken = false;
                if (sparse) list[k].set = g->njoint;
            }
        if (!sparse) continue;
        Update *s = gaussian_update(g, block, m, false, 0,
                                    m == 1 ? "its elements are coupled in pairs" : "normal terms of the log joint couple them");
        s->gaussian.sparse = s->joint = g->njoint;
        s->gaussian.ndense = m - plates;
        s->gaussian.most_work = coupled ? MOST_OF_NEIGHBOURS : MOST_OF_PLATES;
        place(p, s, usual(p, list[i].var));
    }
}

// ---- rules, in their order ----
//
// Each takes what it draws from the candidates that those before it have left.

static void take_block(Plan *p, Var *const *block, int m)
{
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < m; k++) p->list[i].taken |= p->list[i].var == block[k];
}

// A block that the model asks for: these names of it that are not taken. false: none is.
static bool take_names(Plan *p, const Request *r, Var **block, int *m)
{
    for (int i = *m = 0; i < r->nnames; i++) {
        Candidate *c = find_candidate(p->list, p->n, r->names[i]);
        if (!c || c->taken) continue;
        block[(*m)++] = c->var;
        c->taken = true;
    }
    return *m > 0;
}

// Why it is not jointly normal, as far as one of its variables says so; and which of them is a plate of effects, or -1.
static const char *hindrance(Plan *p, Var *const *block, int m, int *diagonal)
{
    const char *why = NULL;
    *diagonal = -1;
    for (int i = 0; i < m; i++) {
        const Candidate *c = find_candidate(p->list, p->n, block[i]->name);
        if (c->form == NOT_GAUSSIAN && !why) why = c->because;
        if (c->var->constraint == CONSTRAINT_SUM_TO_ZERO && !why)
            why = arena_printf(p->g->arena, "the elements of `%s` are drawn given that their sum is 0, apart from other variables",
                               c->var->name);
        if (c->form == ELEMENTWISE && *diagonal < 0) *diagonal = i;
    }
    return why;
}

// One plate of effects is integrated out (an arrow); a second one, as in crossed effects, is then coupled with itself through the first,
// and stands with the dense ones.
static void block_asked_for(Plan *p, const Request *r)
{
    Graph *g = p->g;
    Var **block = NEW_N(g->arena, Var *, r->nnames);
    int m, diagonal;
    if (!take_names(p, r, block, &m)) return;
    const char *why = hindrance(p, block, m, &diagonal);
    bool joined = block[0]->summing.joined && block[0]->summing.joined->n == m;
    for (int i = 1; i < m; i++) joined &= block[i]->summing.joined == block[0]->summing.joined;
    if (joined) {
        for (int i = 0; i < m; i++) find_candidate(p->list, p->n, block[i]->name)->taken = false;  // by their values, below
        return;
    }
    BlockTerm *t;
    if (why || !block_terms(g, block, m, &t, &why)) {
        Update *s = g->no_augment ? NULL : categories_block(g, block, m);
        if (s) place(p, s, &p->order.rest);
        else diag_because(diag(g->diags, r->span, DIAG_E0507), "%s", why);
        return;
    }
    Update *chain = chain_of(g, p->list, p->n, block, m);
    if (!chain && diagonal >= 0) {
        Var *v = block[diagonal];
        memmove(block + diagonal, block + diagonal + 1, sizeof *block * (size_t)(m - 1 - diagonal));
        block[m - 1] = v;
    }
    place(p, chain ? chain : gaussian_update(g, block, m, diagonal >= 0 && m > 1, 0, "the model requests this block"), &p->order.rest);
}

static void asked_jointly(Plan *p)
{
    for (const Request *r = p->g->model->requests; r; r = r->next)
        if (r->block == BLOCK_INFER && r->nnames >= 2 && r->method == METHOD_GIBBS) block_asked_for(p, r);
}

static void asked_by_gradients(Plan *p)
{
    for (const Request *r = p->g->model->requests; r; r = r->next) {
        if (r->block != BLOCK_INFER || !asks_for_gradients(r)) continue;
        Var **block = NEW_N(p->g->arena, Var *, r->nnames + 1);
        int m;
        Update *s = take_names(p, r, block, &m) ? nuts_update(p->g, r, block, m, false) : NULL;
        place(p, s, &p->order.rest);
    }
}

static void all_by_gradients(Plan *p)
{
    Var **block = NEW_N(p->g->arena, Var *, p->n + 1);
    int m = 0;
    for (int i = 0; i < p->n; i++) {
        Candidate *c = &p->list[i];
        const char *why = NULL;
        if (c->taken || request_of(p->g, c->var) || c->var->kind == VAR_AUXILIARY || !has_gradient(p->g, c->var, &why)) continue;
        block[m++] = c->var;
        c->taken = true;
    }
    Update *s = m ? nuts_update(p->g, &all_by_nuts, block, m, false) : NULL;
    place(p, s, &p->order.rest);
}

// What sees unknowns summed out has no family, and its elements depend on each other: gradients move all of it together, if there are no
// walls or jumps.
static void over_sums(Plan *p)
{
    Graph *g = p->g;
    Var **block = NEW_N(g->arena, Var *, p->n + 1);
    int m = 0;
    for (int i = 0; i < p->n; i++) {
        Candidate *c = &p->list[i];
        const char *why = NULL;
        if (c->taken || request_of(g, c->var) || c->var->summing.summed || !reads_sum(g, &c->var, 1) || !has_gradient(g, c->var, &why))
            continue;
        block[m++] = c->var;
    }
    for (int at = 0; at < m;) {  // what the others would run into leaves the block
        const Reading of = factors_of(g, block[at]);
        bool good = true;
        for (int q = 0; q < of.n && good; q++)
            good = !factor_counts(of.factor[q], block[at], true) || !has_jump(of.factor[q]->log_density, &block[at], 1);
        if (good) at++;
        else memmove(&block[at], &block[at + 1], sizeof *block * (size_t)(m-- - at - 1));
    }
    Update *s = m ? nuts_update(g, &all_by_nuts, block, m, false) : NULL;
    if (!s) return;
    s->reason = "they see other unknowns summed out, and no family has their statistics";
    take_block(p, block, m);
    place(p, s, &p->order.rest);
}

static void softmaxes(Plan *p)
{
    for (;;) {
        Var **free = NEW_N(p->g->arena, Var *, p->n + 1);
        int m = 0;
        for (int i = 0; i < p->n; i++)
            if (!p->list[i].taken && p->list[i].form == NOT_GAUSSIAN) free[m++] = p->list[i].var;
        Update *s = categories_update(p->g, free, m);
        if (!s) return;
        take_block(p, s->block, s->nblock);
        place(p, s, &p->order.rest);
    }
}

static void sums_of_zero(Plan *p)
{
    for (int i = 0; i < p->n; i++) {
        Candidate *c = &p->list[i];
        if (c->taken || c->form == NOT_GAUSSIAN || c->var->constraint != CONSTRAINT_SUM_TO_ZERO) continue;
        const int nbatch = c->var->rank - 1;
        const bool diagonal = c->form == ELEMENTWISE;
        c->form = NOT_GAUSSIAN;
        c->because = "its vectors depend on each other";
        if (c->nbatch < nbatch) continue;
        c->taken = true;
        Update *s = gaussian_update(p->g, &c->var, 1, false, nbatch,
                                    diagonal ? "its elements are independent, given that their sum is 0"
                                             : "normal terms of the log joint couple its elements, and their sum is 0");
        s->gaussian.on_plane = true;
        s->gaussian.diagonal = diagonal;
        place(p, s, usual(p, c->var));
    }
}

static void innovations_of_series(Plan *p)
{
    for (const Series *series = p->g->series; series; series = series->next) {
        Update *s = innovations_update(p->g, p->list, p->n, series);
        if (s) place(p, s, usual(p, s->block[0]));
    }
}

// With what goes along them and their border.
static void chains(Plan *p)
{
    Growing b = no_block(p->g);
    for (int i = 0; i < p->n; i++) {
        Candidate *c = &p->list[i];
        if (c->taken || (c->form != CHAINED && c->form != DENSE) || c->listed || c->var->rank == 0 ||
            (c->var->kind != VAR_PARAMETER && c->var->kind != VAR_LATENT))
            continue;
        Update *s = grow_chain(p->g, &b, p->list, p->n, c);
        if (!s) continue;
        s->joint = -c->set;
        place(p, s, usual(p, c->var));
    }
}

// A plate of effects with the coefficients that it is coupled to.
static void arrows(Plan *p)
{
    Growing b = no_block(p->g);
    for (int i = 0; i < p->n; i++) {
        Candidate *c = &p->list[i];
        if (c->taken || c->form != ELEMENTWISE || c->var->kind != VAR_PARAMETER) continue;
        grow_from(p->g, &b, c->var);
        for (int k = 0; k < p->n && !b.full; k++) {
            Candidate *w = &p->list[k];
            if ((w->taken && !w->set) || w->set != c->set || w->form != DENSE || w->nbatch != 0 || w->var->kind != VAR_PARAMETER) continue;
            if (b.inside[w->var->id]) continue;
            if (grow_by(p->g, &b, w)) k = -1;  // a new member may bring others, also those declared before it
        }
        if (b.n == 1) continue;
        c->taken = true;
        memmove(b.var, b.var + 1, sizeof *b.var * (size_t)(b.n - 1));
        b.var[b.n - 1] = c->var;
        Update *s = gaussian_update(p->g, b.var, b.n, true, 0, shared_reason(p->g, &b));
        s->joint = -c->set;
        place(p, s, &p->order.rest);
    }
}

static void coefficients(Plan *p)
{
    Growing b = no_block(p->g);
    for (int i = 0; i < p->n; i++) {
        Candidate *c = &p->list[i];
        if (c->taken || c->form != DENSE) continue;
        c->taken = true;
        grow_from(p->g, &b, c->var);
        if (c->nbatch == 0 || c->var->rank == 0)
            for (int k = 0; k < p->n && !b.full; k++) {
                Candidate *w = &p->list[k];
                if (w->taken || w->set != c->set || w->form != DENSE || (w->nbatch != 0 && w->var->rank != 0) ||
                    w->var->kind != c->var->kind)
                    continue;
                if (grow_by(p->g, &b, w)) k = -1;  // a new member may bring others
            }
        if (b.n == 1 && c->var->rank == 0) {
            c->taken = false;
            continue;
        }  // one scalar: the element's own conditional
        int nbatch = c->var->rank == 0 ? 0 : c->nbatch;
        Update *s = gaussian_update(p->g, b.var, b.n, false, b.n == 1 ? nbatch : 0,
                                    b.n > 1 ? shared_reason(p->g, &b) : "normal terms of the log joint couple its elements");
        s->joint = -c->set;
        place(p, s, usual(p, c->var));
    }
}

static void one_by_one(Plan *p)
{
    Graph *g = p->g;
    Order *o = &p->order;
    for (int i = 0; i < p->n; i++) {
        Candidate *c = &p->list[i];
        if (c->taken) continue;
        const Joined *j = c->var->summing.joined;
        if (j && c->var == j->var[0]) place(p, joined_update(g, j), usual(p, c->var));
        if (j && !j->where) continue;
        Update *by_counts = collapsed_update(g, c->var);
        if (by_counts) {
            place(p, by_counts, &o->predictive);
            continue;
        }
        Update *s = element_update(g, c->var, false, c->because),
               *other =
                   s && update_by_messages(s) && !c->var->summing.summed && !c->var->summing.offered ? update_on_gpu(g, c->var, s) : NULL;
        if (s) s->joint = -c->set;
        if (s) s->joined = j;
        if (other) other->joined = j;
        if (other) {  // on a GPU one lane would go along the chain
            s->when = ON_CPU;
            other->when = ON_GPU;
        }
        place(p, s, is_collapsed(g, c->var) ? &o->weights : usual(p, c->var));
        place(p, other, usual(p, c->var));
    }
}

static bool always(const Graph *g)
{
    (void)g;
    return true;
}
static bool for_draws(const Graph *g) { return g->method != METHOD_EM; }  // not for modes, which climb one number at a time
static bool for_nuts(const Graph *g) { return g->method == METHOD_NUTS; }
static bool with_sums(const Graph *g) { return g->nsums && for_draws(g) && g->method != METHOD_GIBBS; }
static bool with_latents(const Graph *g) { return for_draws(g) && !g->no_augment; }

static const struct Rule {
    void (*take)(Plan *p);
    bool (*applies)(const Graph *g);
} rules[] = {
    {asked_jointly, for_draws},  // what the model requests comes before what is found
    {asked_by_gradients, for_draws},
    {all_by_gradients, for_nuts},        // --method nuts: what has no request and no walls
    {over_sums, with_sums},              // no family has their statistics, so none below would take them
    {softmaxes, with_latents},           // not normal as they stand, but by category: else they would be sliced one by one
    {sums_of_zero, always},              // given its sum a vector is no part of a larger block
    {innovations_of_series, for_draws},  // a chain that is not to be seen in the factors: before those that look for one there
    // taken where the sizes of data say so: what follows makes the updates that stand in for them
    {sparse_sets, for_draws},
    {chains, for_draws},     // a band costs less than the same block as an arrow or dense
    {arrows, always},        // an arrow costs less than the same block dense
    {coefficients, always},  // what is left of the joint normals
    {one_by_one, always},    // all else
};

// Whether the values of a type lie in a bounded set, on which there is a flat distribution.
static bool is_compact(const Var *v)
{
    switch (v->constraint) {
    case CONSTRAINT_SIMPLEX:
    case CONSTRAINT_UNIT_VECTOR:
    case CONSTRAINT_CORRELATION:
    case CONSTRAINT_CHOLESKY_CORR: return true;
    case CONSTRAINT_NONE:
    case CONSTRAINT_ORDERED:
    case CONSTRAINT_POSITIVE_ORDERED:
    case CONSTRAINT_SUM_TO_ZERO:
    case CONSTRAINT_COVARIANCE:
    case CONSTRAINT_CHOLESKY_COV: break;
    }
    return (isfinite(v->lower_number) || v->lower) && (isfinite(v->upper_number) || v->upper);
}

// An unknown of which factors say no more than its type is flat: there is such a distribution on a bounded set only. So it is where the
// scale of its distribution is too large for double precision. true: it has none, which was said.
static bool improper(Graph *g, const Var *v)
{
    const Reading of = factors_of(g, v);
    for (int i = 0; i < of.n; i++)
        if (of.factor[i]->ordered != v && of.factor[i]->region != v) return false;
    if (is_compact(v) || v->kind == VAR_AUXILIARY || v->sites) return false;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!factor_draws(f, v) || ex_mentions(f->log_density, v) || strcmp(f->dist->name, "flat") == 0) continue;
        Diag *m = diag(g->diags, f->span, DIAG_E0515, v->name);
        diag_help(m, "give it a scale a few times that of what is plausible, or leave it out");
        return true;
    }
    diag_help(diag(g->diags, v->span, DIAG_E0509, v->name), v->constraint == CONSTRAINT_NONE
                                                                ? "give it a distribution, or both bounds; or leave it out"
                                                                : "give it a distribution, or leave it out");
    return true;
}

// Unknowns that an update has to be found for, each with the form of its conditional.
static Plan plan_of(Graph *g)
{
    const int nvars = g->nvars;
    Plan p = {.g = g, .list = NEW_N(g->arena, Candidate, nvars + 1)};
    for (int i = 0; i < nvars; i++) {
        Var *v = g->vars[i];
        if (!var_unknown(v) || v->em.integrated || v->em.expectation) continue;
        if (improper(g, v)) continue;
        Candidate *c = &p.list[p.n++];
        c->var = v;
        const Request *asked = request_of(g, v);
        c->form = asked && asked->method != METHOD_GIBBS ? NOT_GAUSSIAN : form_of(g, v, &c->nbatch, &c->listed, &c->because, &c->terms);
        // one coordinate at a time
        if (g->method == METHOD_EM && v->constraint == CONSTRAINT_SUM_TO_ZERO) c->form = NOT_GAUSSIAN;
    }
    return p;
}

static Update *update_of_latent(Graph *g, Var *v) { return element_update(g, v, false, NULL); }

bool schedule(Graph *g)
{
    Update *expected = NULL;
    if (g->method == METHOD_EM && !expectations(g, update_of_latent, &expected)) return false;
    Plan p = plan_of(g);
    Order *o = &p.order;
    o->expectations = expected;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].applies(g)) rules[i].take(&p);
    if (!collapses_served(g, o->predictive)) return false;
    if (g->method != METHOD_EM) impute(g, &o->imputed, &o->left_out);
    Update *const in_order[] = {o->expectations, o->imputed,    o->over_sums, o->over_both, o->summed, o->first,
                                o->auxiliaries,  o->predictive, o->weights,   o->latents,   o->rest};
    g->updates = NULL;
    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++) update_append(&g->updates, in_order[i]);
    g->last_updates = o->left_out;
    return true;
}

bool complete_sweep(Graph *g)
{
    update_append(&g->updates, g->last_updates);
    for (Update *s = g->updates; s; s = s->next) {
        g->nupdates++;
        if (g->method == METHOD_EM && s->does == DRAWS) s->does = MAXIMISES;
        if (s->conditional) find_statistics(g, s->conditional);
    }
    return diags_errors(g->diags) == 0;
}

const char *only_on_cpu(const Graph *g)
{
    const Var *z = first_solution(g);
    if (z) return arena_printf(g->arena, "the differential equation of %s is solved on the CPU alone: --device cpu", z->name);
    for (const Update *s = g->updates; s; s = s->next)
        if (predictive_of(s) && !s->enumerate.group && s->conditional->nbatch == 0)
            return arena_printf(
                g->arena,
                "%s is integrated out as the model requests, so that elements of %s are drawn one after the other, which is "
                "done on the CPU alone: --device cpu, or leave the request out",
                s->enumerate.predictive->weights->name, s->block[0]->name);
    return NULL;
}
