// prices.c -- what a sweep costs, for a run. By these numbers it selects separate updates or HMC (runtime/host/selection.c), and a GPU or
// the CPU (device_auto.c). They also decide how often scales are drawn with a joint normal integrated out.
//
//   a selection    cost of its separate updates, of HMC, of an evaluation of the density: on a CPU; on a GPU the time
//                  that does not depend on the number of chains, and the work of a chain beside it
//   and            what data decide: joint normals with a sparse factor, or row-listed; and the draws of scales
//
// Needs: the program, complete.     Gives: Program.prices, Program.priced, UpdateCode.ration.     Keeps: all else. The counts are those of
// cost.c.
#include "lower.h"

static Expr *with_all_rows(const Graph *g, Expr *e)
{
    for (int i = 0; i < g->nvars; i++) {  // at most: they are not counted in each sweep
        const Var *v = g->vars[i];
        if (v->summing.nrows) e = ex_replace(e, ex_ref(v->summing.rows_counted, 0, NULL), v->dim[0]);
    }
    return e;
}

static const Scales *scales_drawn(const Update *s) { return s->kind == UPDATE_GAUSSIAN ? s->gaussian.scales : NULL; }

void find_rations(Lower *p)
{
    for (int i = 0; i < p->out->nupdates; i++) {
        UpdateCode *code = &p->out->updates[i];
        const Update *s = code->update;
        if (!scales_drawn(s)) continue;
        Ration *r = &code->ration;
        cost_of_scales(p->out, code, &r->sweep, &r->trial_as_counted);
        r->sweep = with_all_rows(p->g, r->sweep);
        r->trial = with_all_rows(p->g, r->trial_as_counted);
        r->selection = s->selection ? s->selection->number : 0;
        r->sparse = s->gaussian.rows && s->gaussian.rows->listed ? s->gaussian.rows->listed : s->gaussian.sparse;
    }
}

static bool is_of(const Update *s, const Selection *c) { return !c || !s->selection || s->selection == c; }

// ---- what data decide ----

static SparsePrice *sparse_prices(const Program *p, const Selection *c, bool with_hmc)
{
    SparsePrice *first = NULL, **last = &first;
    for (const Update *s = p->g->updates; s; s = s->next) {
        if (s->joint <= 0 || !is_of(s, c)) continue;
        SparsePrice *one = *last = NEW(p->g->arena, SparsePrice);
        *one = (SparsePrice){.number = s->joint, .with_hmc = with_hmc && !s->selection, .standing_in = cost_standing_in(p, s->joint)};
        last = &one->next;
    }
    return first;
}

static bool waits_for_rows(const Program *p, const Selection *c)
{
    for (int i = 0; i < p->nupdates; i++)
        if (c && p->updates[i].update->selection == c && p->updates[i].waits_for) return true;
    return false;
}

static SparsePrice *prices_where_listed(const Program *p, const Selection *c, bool with_hmc)
{
    SparsePrice *first = NULL, **last = &first;
    for (const Update *s = p->g->updates; s; s = s->next) {
        const Rows *r = s->kind == UPDATE_GAUSSIAN && is_of(s, c) ? s->gaussian.rows : NULL;
        if (!r || !r->listed) continue;
        const SelectionCost cost = cost_where_listed(p, c);
        SparsePrice *one = *last = NEW(p->g->arena, SparsePrice);
        *one = (SparsePrice){.number = r->listed,
                             .listed = true,
                             .with_hmc = with_hmc && !s->selection,
                             .updates = cost.steps,
                             .hmc = cost.move,
                             .no_hmc = waits_for_rows(p, c)};
        last = &one->next;
    }
    return first;
}

// All scales with their joint normals integrated out, in every sweep.
static ScalesPrice *scales_prices(const Program *p, const Selection *c)
{
    ScalesPrice *first = NULL, **last = &first;
    for (int i = 0; i < p->nupdates; i++) {
        const Update *s = p->updates[i].update;
        if (!scales_drawn(s) || s->gaussian.proposal || s->joint < 0 || s->when == ON_GPU || !is_of(s, c)) continue;
        ScalesPrice *one = *last = NEW(p->g->arena, ScalesPrice);
        *one = (ScalesPrice){s->gaussian.scales, p->updates[i].ration.trial_as_counted, s->joint > 0 ? s->joint : 0, NULL};
        last = &one->next;
    }
    return first;
}

// ---- prices ----

static Price *price_of(const Program *p, const Selection *c)
{
    Price *price = NEW(p->g->arena, Price);
    const SelectionCost cost = cost_of_selection(p, c);
    const bool with_hmc = p->g->selections != NULL;  // else there is one method for a sweep
    Expr *const number[] = {cost.steps,
                            cost.move,
                            cost.evaluation,
                            cost.on_gpu.steps.alone,
                            cost.on_gpu.steps.work,
                            cost.on_gpu.move.alone,
                            cost.on_gpu.move.work,
                            cost.on_gpu.evaluation.alone,
                            cost.on_gpu.evaluation.work};
    Expr *all = ex_add(NUMBERS_OF_COST, number);
    for (const Update *s = p->g->updates; s; s = s->next) {  // and what may take the place of some
        const CostOnGpu others = s->joint > 0 ? cost_standing_in(p, s->joint) : (CostOnGpu){ex_num(0), ex_num(0)};
        const Rows *r = s->kind == UPDATE_GAUSSIAN ? s->gaussian.rows : NULL;
        const SelectionCost where_listed = r && r->listed ? cost_where_listed(p, c) : cost;
        all = ex_add(5, (Expr *[]){all, others.alone, others.work, where_listed.steps, where_listed.move});
    }
    price->counted = NEW_N(p->g->arena, const Var *, p->g->nvars + 1);
    for (int i = 0; i < p->g->nvars; i++)
        if (p->g->vars[i]->summing.nrows && ex_mentions(all, p->g->vars[i]->summing.rows_counted))
            price->counted[price->ncounted++] = p->g->vars[i];
    for (int i = 0; i < NUMBERS_OF_COST; i++) price->of[i] = with_hmc || i == 0 || i == 3 || i == 4 ? number[i] : NULL;
    price->number = c ? c->number : 0;
    price->sparse = sparse_prices(p, c, with_hmc);
    price->listed = prices_where_listed(p, c, with_hmc);
    price->scales = scales_prices(p, c);
    return price;
}

// Where one selection has all HMC updates, its price is that of a sweep.
void find_prices(Lower *p)
{
    const Graph *g = p->g;
    Price *first = NULL, **last = &first;
    bool asked = false;
    for (const Update *s = g->updates; s; s = s->next) asked |= s->kind == UPDATE_NUTS && !s->selection;
    for (const Selection *c = g->selections; c; c = c->next) {
        *last = price_of(p->out, c);
        last = &(*last)->next;
    }
    if (!g->selections || g->selections->next || asked) *last = price_of(p->out, NULL);
    p->out->prices = first;
}

// ---- selections ----

static PricedSelection *priced_selection_of(const Program *p, const Selection *c)
{
    PricedSelection *one = NEW(p->g->arena, PricedSelection);
    one->of = c;
    one->latent = NEW_N(p->g->arena, const Var *, p->nupdates + 1);
    for (int i = 0; i < p->nupdates; i++) {
        const UpdateCode *code = &p->updates[i];
        const Update *s = code->update;
        if (s->selection != c) continue;
        if (s->when == WITHOUT_GRADIENTS && s->block[0]->kind == VAR_AUXILIARY && !s->group_move &&
            field_of(p->state, p->nstate, s->block[0]) >= 0)
            one->latent[one->nlatents++] = s->block[0];
        if (!code->diagnostics) continue;
        if (!one->machine) one->machine = code->machine;
        one->diagnostics = code->diagnostics;
    }
    return one;
}

void price_selections(Lower *p)
{
    PricedSelection *first = NULL, **last = &first;
    for (const Selection *c = p->g->selections; c; c = c->next) {
        *last = priced_selection_of(p->out, c);
        last = &(*last)->next;
    }
    p->out->priced = first;
}
