// schedule.c -- how each variable is drawn, and in which order.
//
//   before   unknowns and factors
//   after    gaussian (mu, theta); exact tau; ...     one step per variable or block, in the order of the sweep
//
// Needs: augment done.     Gives: g->steps.
// Order: first imputed responses, updates that see discrete unknowns summed out, and these; then updates that integrate auxiliaries out, the auxiliaries, latents (so that the first
// sweep finds them feasible whatever their start), and the rest. So no step reads what is out of date (van Dyk and Park 2008, partially collapsed Gibbs).
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "schedule.h"
#include "../conditional.h"
#include "../step.h"
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
#include "../updates/steps.h"
#include "../updates/blocks.h"
#include "../updates/chains.h"
#include "../updates/collapsed.h"
#include "../updates/element.h"
#include "../updates/nuts.h"
#include "../updates/turns.h"
#include "impute.h"

// An unknown that no factor mentions is flat: there is such a distribution between two ends only.
static void improper(Graph *g, const Var *v)
{
    const bool closed = (isfinite(v->lower_number) || v->lower) && (isfinite(v->upper_number) || v->upper);
    if (factors_of(g, v).n || closed || v->kind == VAR_AUXILIARY || v->constraint != CONSTRAINT_NONE || v->sites) return;
    diag_help(diag(g->diags, v->span, DIAG_E0509, v->name), "give it a distribution, or both bounds; or leave it out");
}

// What sees unknowns summed out has no family, and its elements depend on each other: gradients move all of it together, if there are no walls or jumps.
static Step *move_over_sums(Graph *g, Candidate *list, int n)
{
    Var **block = NEW_N(g->arena, Var *, n + 1);
    int m = 0;
    for (int i = 0; i < n; i++) {
        Candidate *c = &list[i];
        const char *why = NULL;
        if (c->taken || request_of(g, c->var) || c->var->summed || !reads_sum(g, &c->var, 1) || !has_gradient(g, c->var, &why)) continue;
        block[m++] = c->var;
    }
    for (int at = 0; at < m;) {                  // what the others would run into leaves the block
        const Reading of = factors_of(g, block[at]);
        bool good = true;
        for (int q = 0; q < of.n && good; q++) good = !factor_counts(of.factor[q], block[at], true) || !has_jump(of.factor[q]->log_density, &block[at], 1);
        if (good) at++;
        else memmove(&block[at], &block[at + 1], sizeof *block * (size_t)(m-- - at - 1));
    }
    Step *s = m ? nuts_step(g, &all_by_nuts, block, m, false) : NULL;
    if (!s) return NULL;
    s->reason = "they see other unknowns summed out, and no family has their statistics";
    for (int i = 0; i < n; i++)
        for (int k = 0; k < m; k++) list[i].taken |= list[i].var == block[k];
    return s;
}

// The sweep, in its order.
typedef struct Order {
    Step *expectations;                  // of latents, for modes
    Step *imputed;                       // missing values of data
    Step *left_out;                      // those that nothing else has seen
    Step *over_sums, *over_both;         // what sees unknowns summed out; after what reads auxiliaries as they are, what has these integrated out, too
    Step *summed;                        // these, the last one first
    Step *first;                         // what sees auxiliaries integrated out
    Step *auxiliaries;
    Step *predictive, *weights;          // what sees weights integrated out, and these
    Step *latents, *rest;
} Order;

static Step **usual(Order *o, const Var *v) { return v->kind == VAR_AUXILIARY ? &o->auxiliaries : v->kind == VAR_LATENT ? &o->latents : &o->rest; }

static void place(Graph *g, Order *o, Step *s, Step **otherwise)
{
    const int number = s->block[0]->summed;
    s->over_sum = g->method != METHOD_EM && drawn_without_summed(g, s->block, s->nblock);
    s->marginal |= s->over_sum;
    if (number) {
        Step **at = &o->summed;
        while (*at && (*at)->block[0]->summed > number) at = &(*at)->next;
        s->next = *at;
        *at = s;
    } else step_append(s->over_sum ? s->collapsed ? &o->over_both : &o->over_sums : s->collapsed ? &o->first : otherwise, s);
}

static Step *step_of_latent(Graph *g, Var *v) { return element_step(g, v, false, NULL); }

// Unknowns that hang together through several plates of effects, or whose elements are coupled in pairs: one joint normal with a sparse precision. The steps that are made of them as
// of any others stand in for it where it is not taken. What the pattern of the precision depends on has to be sizes and data.
static bool may_be_sparse(const Candidate *c)
{
    if (c->taken || c->set || c->form == NOT_GAUSSIAN || c->var->constraint != CONSTRAINT_NONE || !has_pattern(c->terms)) return false;
    if (c->var->kind == VAR_LATENT) return c->form == CHAINED;
    return c->var->kind == VAR_PARAMETER && (c->form != DENSE || c->var->rank == 0 || c->nbatch == 0);
}

static bool is_spread(Graph *g, const Candidate *c) { return c->form == ELEMENTWISE || c->form == CHAINED || coupled_in_pairs(g, c->var, c->terms); }

// Whether a chain with its border takes up all of the block: then it is drawn by its band.
static bool is_chain(Graph *g, Growing *b, Candidate *list, int n)
{
    Growing all = *b, chain = {.inside = NEW_N(g->arena, bool, g->nvars), .near = NEW_N(g->arena, bool, g->nvars)};
    bool whole = false, *taken = NEW_N(g->arena, bool, n + 1);
    for (int k = 0; k < n; k++) {
        taken[k] = list[k].taken;
        list[k].taken = !all.inside[list[k].var->id];
    }
    for (int k = 0; k < n && !whole; k++) {
        Candidate *c = &list[k];
        if (c->taken || (c->form != CHAINED && c->form != DENSE) || c->listed || c->var->rank == 0) continue;
        const Step *s = grow_chain(g, &chain, list, n, c);
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
    for (int k = 0; k < n && each; k++)          // once more
        if (b->inside[list[k].var->id]) list[k].taken = false;
    grow_from(g, b, list[i].var);
    for (int k = 0; k < n && !b->full; k++) {
        if (k == i || list[k].taken || !may_be_sparse(&list[k]) || !grow_by(g, b, &list[k])) continue;
        if (!each || together_sparse(g, b)) { k = -1; continue; }
        list[k].taken = b->inside[list[k].var->id] = false;
        b->n--;
    }
}

// How many times the work of separate draws a joint one may take. Plates without neighbours have a factor with many entries only if their levels meet in most pairs, as in crossed designs with many
// rows, and then blocks with the mean in each mix well (Papaspiliopoulos, Roberts and Zanella 2020); the elements of a field hardly move one at a time.
enum { MOST_OF_PLATES = 8, MOST_OF_NEIGHBOURS = 1000 };

static void joint_sets(Graph *g, Candidate *list, int n, Growing *b, Order *o)
{
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
        Step *s = gaussian_step(g, block, m, false, 0, m == 1 ? "its elements are coupled in pairs" : "they hang together through a linear predictor");
        s->gaussian.sparse = s->joint = g->njoint;
        s->gaussian.ndense = m - plates;
        s->gaussian.most_work = coupled ? MOST_OF_NEIGHBOURS : MOST_OF_PLATES;
        place(g, o, s, usual(o, list[i].var));
    }
}

// What the rules work on. A rule marks the unknowns that it takes, and places their steps in the sweep.
typedef struct Planning {
    Graph     *g;
    int        n;
    Candidate *list;                     // the unknowns
    Growing    growing;                  // a block
    Order      order;
} Planning;

// Blocks that the model asks for. One plate of effects among them is integrated out (an arrow); a second one, as in crossed
// effects, is then coupled with itself through the first, and stands with the dense ones.
static void requested_blocks(Planning *p)
{
    Graph *g = p->g;
    Candidate *list = p->list;
    const int n = p->n;
    Order *o = &p->order;
    for (const Request *r = g->method == METHOD_EM ? NULL : g->model->requests; r; r = r->next) {
        if (r->block != BLOCK_INFER || r->nnames < 2 || r->method != METHOD_GIBBS) continue;
        Var **block = NEW_N(g->arena, Var *, r->nnames);
        int m = 0, diagonal = -1;
        const char *why = NULL;
        for (int i = 0; i < r->nnames; i++) {
            Candidate *c = find_candidate(list, n, r->names[i]);
            if (!c || c->taken) continue;
            if (c->form == NOT_GAUSSIAN && !why) why = c->because;
            if (c->var->constraint == CONSTRAINT_SUM_TO_ZERO && !why) why = arena_printf(g->arena, "the elements of `%s` are drawn given that their sum is 0, without other variables", c->var->name);
            if (c->form == ELEMENTWISE && diagonal < 0) diagonal = m;
            block[m++] = c->var;
            c->taken = true;
        }
        if (m == 0) continue;
        bool joined = block[0]->joined && block[0]->joined->n == m;
        for (int i = 1; i < m; i++) joined &= block[i]->joined == block[0]->joined;
        if (joined) {
            for (int i = 0; i < m; i++) find_candidate(list, n, block[i]->name)->taken = false;          // by their values, below
            continue;
        }
        BlockTerm *t;
        if (why || !block_terms(g, block, m, &t, &why)) {
            Step *s = g->no_augment ? NULL : turns_block(g, block, m);
            if (s) {
                place(g, o, s, &o->rest);
                continue;
            }
            Diag *d = diag(g->diags, r->span, DIAG_E0507);
            diag_because(d, "%s", why);
            continue;
        }
        Step *chain = chain_of(g, list, n, block, m);
        if (chain) {
            place(g, o, chain, &o->rest);
            continue;
        }
        if (diagonal >= 0) { Var *v = block[diagonal]; memmove(block + diagonal, block + diagonal + 1, sizeof *block * (size_t)(m - 1 - diagonal)); block[m - 1] = v; }
        place(g, o, gaussian_step(g, block, m, diagonal >= 0 && m > 1, 0, "the model asks for this block"), &o->rest);
    }
}

// Blocks that the model asks to be moved along gradients.
static void requested_gradients(Planning *p)
{
    Graph *g = p->g;
    Candidate *list = p->list;
    const int n = p->n;
    Order *o = &p->order;
    for (const Request *r = g->method == METHOD_EM ? NULL : g->model->requests; r; r = r->next) {
        if (r->block != BLOCK_INFER || !asks_for_gradients(r)) continue;
        Var **block = NEW_N(g->arena, Var *, r->nnames + 1);
        int m = 0;
        for (int i = 0; i < r->nnames; i++) {
            Candidate *c = find_candidate(list, n, r->names[i]);
            if (!c || c->taken) continue;
            block[m++] = c->var;
            c->taken = true;
        }
        Step *s = m ? nuts_step(g, r, block, m, false) : NULL;
        if (s) place(g, o, s, &o->rest);
    }
}

// With --method nuts, all that gradients can move.
static void all_along_gradients(Planning *p)
{
    Graph *g = p->g;
    Candidate *list = p->list;
    const int n = p->n;
    Order *o = &p->order;
    if (g->method != METHOD_NUTS) return;
    Var **block = NEW_N(g->arena, Var *, n + 1);
    int m = 0;
    for (int i = 0; i < n; i++) {
        Candidate *c = &list[i];
        const char *why = NULL;
        if (c->taken || request_of(g, c->var) || c->var->kind == VAR_AUXILIARY || !has_gradient(g, c->var, &why)) continue;
        block[m++] = c->var;
        c->taken = true;
    }
    Step *s = m ? nuts_step(g, &all_by_nuts, block, m, false) : NULL;
    if (s) place(g, o, s, &o->rest);
}

// What sees unknowns summed out, together.
static void over_sums(Planning *p)
{
    Step *s = p->g->nsums && p->g->method != METHOD_GIBBS && p->g->method != METHOD_EM ? move_over_sums(p->g, p->list, p->n) : NULL;
    if (s) place(p->g, &p->order, s, &p->order.rest);
}

// Coefficients that meet in a softmax.
static void softmaxes(Planning *p)
{
    Graph *g = p->g;
    Candidate *list = p->list;
    const int n = p->n;
    Order *o = &p->order;
    for (bool more = !g->no_augment && g->method != METHOD_EM; more;) {
        Var **free = NEW_N(g->arena, Var *, n + 1);
        int m = 0;
        for (int i = 0; i < n; i++)
            if (!list[i].taken && list[i].form == NOT_GAUSSIAN) free[m++] = list[i].var;
        Step *s = turns_step(g, free, m);
        more = s;
        for (int i = 0; i < n && s; i++)
            for (int k = 0; k < s->nblock; k++) list[i].taken |= list[i].var == s->block[k];
        if (s) place(g, o, s, &o->rest);
    }
}

// Vectors whose sum is 0, each variable by itself: given that sum it is no part of a larger block.
static void sums_to_zero(Planning *p)
{
    Graph *g = p->g;
    Candidate *list = p->list;
    const int n = p->n;
    Order *o = &p->order;
    for (int i = 0; i < n; i++) {
        Candidate *c = &list[i];
        if (c->taken || c->form == NOT_GAUSSIAN || c->var->constraint != CONSTRAINT_SUM_TO_ZERO) continue;
        const int nbatch = c->var->rank - 1;
        const bool diagonal = c->form == ELEMENTWISE;
        c->form = NOT_GAUSSIAN;
        c->because = "its vectors depend on each other";
        if (c->nbatch < nbatch) continue;
        c->taken = true;
        Step *s = gaussian_step(g, &c->var, 1, false, nbatch, diagonal ? "its elements are independent, given that their sum is 0" : "its elements share a linear predictor, and their sum is 0");
        s->gaussian.on_plane = true;
        s->gaussian.diagonal = diagonal;
        place(g, o, s, usual(o, c->var));
    }
}

// Innovations of recursive definitions.
static void innovations(Planning *p)
{
    Graph *g = p->g;
    Candidate *list = p->list;
    const int n = p->n;
    Order *o = &p->order;
    for (const Series *series = g->series; series && g->method != METHOD_EM; series = series->next) {
        Step *s = innovations_step(g, list, n, series);
        if (s) place(g, o, s, usual(o, s->block[0]));
    }
}

// Chains, with what goes along them and their border.
static void chains(Planning *p)
{
    Graph *g = p->g;
    Candidate *list = p->list;
    const int n = p->n;
    Growing *b = &p->growing;
    Order *o = &p->order;
    for (int i = 0; i < n && g->method != METHOD_EM; i++) {
        Candidate *c = &list[i];
        if (c->taken || (c->form != CHAINED && c->form != DENSE) || c->listed || c->var->rank == 0 || (c->var->kind != VAR_PARAMETER && c->var->kind != VAR_LATENT)) continue;
        Step *s = grow_chain(g, b, list, n, c);
        if (s) s->joint = -c->set;
        if (s) place(g, o, s, usual(o, c->var));
    }
}

// A plate of effects with the coefficients that it is coupled to: arrow-shaped.
static void arrows(Planning *p)
{
    Graph *g = p->g;
    Candidate *list = p->list;
    const int n = p->n;
    Growing *b = &p->growing;
    Order *o = &p->order;
    for (int i = 0; i < n; i++) {
        Candidate *plate = &list[i];
        if (plate->taken || plate->form != ELEMENTWISE || plate->var->kind != VAR_PARAMETER) continue;
        grow_from(g, b, plate->var);
        for (int k = 0; k < n && !b->full; k++) {
            Candidate *w = &list[k];
            if ((w->taken && !w->set) || w->set != plate->set || w->form != DENSE || w->nbatch != 0 || w->var->kind != VAR_PARAMETER) continue;
            if (b->inside[w->var->id]) continue;
            if (grow_by(g, b, w)) k = -1;       // a new member may bring others, also those declared before it
        }
        if (b->n == 1) continue;
        plate->taken = true;
        memmove(b->var, b->var + 1, sizeof *b->var * (size_t)(b->n - 1));
        b->var[b->n - 1] = plate->var;
        Step *s = gaussian_step(g, b->var, b->n, true, 0, shared_reason(g, b));
        s->joint = -plate->set;
        place(g, o, s, &o->rest);
    }
}

// What is left of the coefficients: those that share a predictor together.
static void shared_predictors(Planning *p)
{
    Graph *g = p->g;
    Candidate *list = p->list;
    const int n = p->n;
    Growing *b = &p->growing;
    Order *o = &p->order;
    for (int i = 0; i < n; i++) {
        Candidate *c = &list[i];
        if (c->taken || c->form != DENSE) continue;
        c->taken = true;
        grow_from(g, b, c->var);
        if (c->nbatch == 0 || c->var->rank == 0)
            for (int k = 0; k < n && !b->full; k++) {
                Candidate *w = &list[k];
                if (w->taken || w->set != c->set || w->form != DENSE || (w->nbatch != 0 && w->var->rank != 0) || w->var->kind != c->var->kind) continue;
                if (grow_by(g, b, w)) k = -1;       // a new member may bring others
            }
        if (b->n == 1 && c->var->rank == 0) { c->taken = false; continue; }   // one scalar: the element's own conditional
        int nbatch = c->var->rank == 0 ? 0 : c->nbatch;
        Step *s = gaussian_step(g, b->var, b->n, false, b->n == 1 ? nbatch : 0, b->n > 1 ? shared_reason(g, b) : "its elements share a linear predictor");
        s->joint = -c->set;
        place(g, o, s, usual(o, c->var));
    }
}

// Everything else, one variable at a time.
static void one_by_one(Planning *p)
{
    Graph *g = p->g;
    Candidate *list = p->list;
    const int n = p->n;
    Order *o = &p->order;
    for (int i = 0; i < n; i++) {
        Candidate *c = &list[i];
        if (c->taken) continue;
        const Joined *j = c->var->joined;
        if (j && c->var == j->var[0]) place(g, o, joined_step(g, j), usual(o, c->var));
        if (j && !j->where) continue;
        Step *by_counts = collapsed_step(g, c->var);
        if (by_counts) {
            place(g, o, by_counts, &o->predictive);
            continue;
        }
        Step *s = element_step(g, c->var, false, c->because), *other = s && s->by_messages && !c->var->summed && !c->var->offered ? step_on_gpu(g, c->var, s) : NULL;
        if (s) s->joint = -c->set;
        if (s) s->joined = j;
        if (other) other->joined = j;
        if (other) {                             // on a GPU one lane would go along the chain
            s->when = ON_CPU;
            other->when = ON_GPU;
        }
        if (s) place(g, o, s, is_collapsed(g, c->var) ? &o->weights : usual(o, c->var));
        if (other) place(g, o, other, usual(o, c->var));
    }
}

bool schedule(Graph *g)
{
    Planning p = {.g = g};
    if (g->method == METHOD_EM && !expectations(g, step_of_latent, &p.order.expectations)) return false;
    const int nvars = g->nvars;
    p.list = NEW_N(g->arena, Candidate, nvars + 1);
    for (int i = 0; i < nvars; i++) {
        Var *v = g->vars[i];
        if (!var_unknown(v) || v->integrated || v->expectation) continue;
        Candidate *c = &p.list[p.n++];
        c->var = v;
        improper(g, v);
        const Request *asked = request_of(g, v);
        c->form = asked && asked->method != METHOD_GIBBS ? NOT_GAUSSIAN : form_of(g, v, &c->nbatch, &c->listed, &c->because, &c->terms);
        if (g->method == METHOD_EM && v->constraint == CONSTRAINT_SUM_TO_ZERO) c->form = NOT_GAUSSIAN;     // one coordinate at a time
    }
    requested_blocks(&p);                        // the rules: each takes what those before it have left
    requested_gradients(&p);
    all_along_gradients(&p);
    over_sums(&p);
    softmaxes(&p);
    sums_to_zero(&p);
    p.growing = (Growing){.inside = NEW_N(g->arena, bool, g->nvars), .near = NEW_N(g->arena, bool, g->nvars)};
    innovations(&p);
    if (g->method != METHOD_EM) joint_sets(g, p.list, p.n, &p.growing, &p.order);
    chains(&p);
    arrows(&p);
    shared_predictors(&p);
    one_by_one(&p);
    if (!collapses_served(g, p.order.predictive)) return false;
    if (g->method != METHOD_EM) impute(g, &p.order.imputed, &p.order.left_out);
    Step *const in_order[] = {p.order.expectations, p.order.imputed, p.order.over_sums, p.order.over_both, p.order.summed, p.order.first, p.order.auxiliaries, p.order.predictive, p.order.weights, p.order.latents, p.order.rest};
    g->steps = NULL;
    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++) step_append(&g->steps, in_order[i]);
    g->last_steps = p.order.left_out;
    return true;
}

bool complete_sweep(Graph *g)
{
    step_append(&g->steps, g->last_steps);
    for (Step *s = g->steps; s; s = s->next) {
        g->nsteps++;
        if (g->method == METHOD_EM && s->does == DRAWS) s->does = MAXIMISES;
        if (s->conditional) find_statistics(g, s->conditional);
    }
    return diags_errors(g->diags) == 0;
}

const char *only_on_cpu(const Graph *g)
{
    const Var *z = first_solution(g);
    if (z) return arena_printf(g->arena, "the differential equation of %s is solved on the CPU alone: --device cpu", z->name);
    for (const Step *s = g->steps; s; s = s->next)
        if (s->predictive && !s->enumerate.shelf && s->conditional->nbatch == 0) return arena_printf(g->arena, "%s is integrated out as the model asks, so that elements of %s are drawn one after the other, which is done on the CPU alone: --device cpu, or leave the request out", s->predictive->weights->name, s->block[0]->name);
    return NULL;
}
