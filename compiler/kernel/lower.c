// lower.c -- the schedule as kernels and launches.
//
// Needs: the schedule.     Gives: a Program. Which sums leave the sweep (graph/plan/hoist.c) is decided here; who shares which loop, and
// what is computed outside of loops, by the passes over its kernels.
#include "lower.h"

// ---- the program ----

static void lower_exact(Lower *p, const Update *s, UpdateCode *code)
{
    (void)code;
    if (s->conditional->array) update_array(p, s);
    else update_exact(p, s);
}

static void lower_own(Lower *p, const Update *s, UpdateCode *code)
{
    (void)code;
    update_own(p, s);
}
static void lower_pair(Lower *p, const Update *s, UpdateCode *code)
{
    (void)code;
    update_pair(p, s);
}
static void lower_elliptical(Lower *p, const Update *s, UpdateCode *code)
{
    (void)code;
    update_elliptical(p, s);
}
static void lower_categories(Lower *p, const Update *s, UpdateCode *code)
{
    (void)code;
    update_categories(p, s);
}
static void lower_gradients(Lower *p, const Update *s, UpdateCode *code) { update_nuts(p, s, code); }

static void lower_gaussian(Lower *p, const Update *s, UpdateCode *code)
{
    Launch **own = p->launches->first ? p->launches->last : &p->launches->first;
    update_gaussian(p, s);
    if (s->gaussian.scales) lower_scales(p, s, code, own);
}

static void lower_by_density(Lower *p, const Update *s, UpdateCode *code)
{
    (void)code;
    const Constraint k = s->block[0]->constraint;
    if (white_of(s)) update_white(p, s);
    else if (update_at_once(s)) update_states(p, s);
    else if (k == CONSTRAINT_NONE || k == CONSTRAINT_ORDERED || k == CONSTRAINT_POSITIVE_ORDERED) update_density(p, s);
    else update_constrained(p, s);
}

static void lower_update(Lower *p, const Update *s, UpdateCode *code)
{
    static void (*const kinds[])(Lower *, const Update *, UpdateCode *) = {
#define UPDATE(id, name, describe, lower, what) [UPDATE_##id] = lower_##lower,
#include "../graph/updates.def"
    };
    if (s->group_move) before_group_move(p, s);
    kinds[s->kind](p, s, code);
    if (s->group_move) along_group_move(p, s);
    if (proposal_of(s)) lower_proposal(p, s, code);
}

static bool site_reads(const Var *m, const Var *v)
{
    for (const Site *t = m->sites; t; t = t->next)
        if (ex_mentions(t->value, v)) return true;
    return false;
}

// Messages along a chain are made before each update that reads them: not all that they are made of is drawn by updates that read them.
static void put_messages(Lower *p, const Update *s)
{
    const Reading of = factors_of_block((Graph *)p->g, s->block, s->nblock);
    const int sums = s->kind == UPDATE_NUTS ? s->nuts.sums : block_sums(s->block, s->nblock);
    for (int i = 0; p->messages && i < p->g->nvars; i++) {
        const Var *m = p->g->vars[i];
        if (m->kind != VAR_SERIES || !m->hidden) continue;
        bool reads = s->conditional && update_by_messages(s) && s->block[0]->summing.messages == m;
        for (int q = 0; q < of.n && s->over_sum && !reads; q++)
            reads = of.factor[q]->made && factor_counts_at(of.factor[q], sums, true) && ex_mentions(of.factor[q]->log_density, m);
        if (!reads) continue;
        for (const Series *made = p->g->series; made != m->series; made = made->next)  // arrays that they are made of
            if (made->var[0]->hidden && site_reads(m, made->var[0])) launch_messages(p, made->var[0]);
        launch_messages(p, m);
    }
}

// Before which updates sums and copies of responses are made again.
static void note_again(Program *out)
{
    bool imputing = false;
    for (int i = 0; i < out->nupdates; i++) {
        const bool imputes = out->updates[i].update->imputes;
        out->updates[i].again = !imputes && imputing;
        imputing = imputes || (imputing && !out->updates[i].again);
    }
}

static void lower_updates(Lower *p)
{
    Program *out = p->out;
    for (const Update *s = p->g->updates; s; s = s->next) out->nupdates++;
    out->updates = NEW_N(p->g->arena, UpdateCode, out->nupdates + 1);
    bool responses = false;
    int n = 0;
    for (const Update *s = p->g->updates; s; s = s->next, n++) {
        const char *names = "";
        for (int i = 0; i < s->nblock; i++) names = words(p, "%s%s%s", names, i ? ", " : "", s->block[i]->name);
        for (int i = 0; s->kind == UPDATE_GAUSSIAN && s->gaussian.scales && i < s->gaussian.scales->n; i++)
            names = words(p, "%s%s%s", names, i ? ", " : ", after ", s->gaussian.scales->var[i]->name);
        for (int i = 0; s->group_move && i < s->group_move->n; i++)
            names = words(p, "%s%s%s", i ? names : "", i ? ", " : "group move of ", s->group_move->moved[i].var->name);
        if (proposal_of(s)) names = words(p, "proposal of %s", names);
        if (white_of(s)) names = words(p, "%s, with %s", names, white_of(s)->vector->name);
        UpdateCode *code = &out->updates[n];
        code->update = s;
        code->name = words(p, "%s%s", s->imputes ? "missing " : "", names);
        p->update = p->statistics.serving = s;
        p->launches = &code->launches;
        put_messages(p, s);
        lower_update(p, s, code);
        // other updates read the series that this one did not
        if (s->conditional && s->conditional->closed && !s->conditional->recursion) launch(p, LAUNCH_ONCE, p->series);
    }
    p->update = p->statistics.serving = NULL;
    for (const Sum *s = p->statistics.first; s; s = s->next) responses |= s->data_only && reads_response(s);
    if (responses) note_again(out);
}

// The functions that launch them, by the names of what they draw.
static void name_updates(Lower *p)
{
    for (int i = 0; i < p->out->nupdates; i++) {
        UpdateCode *code = &p->out->updates[i];
        const Update *s = code->update;
        const char *name = s->group_move    ? s->group_move->by->name
                           : proposal_of(s) ? proposal_of(s)->name->name
                                            : block_name(p, s->block, s->nblock);
        code->function =
            kernel_name(p, words(p, "update_%s%s%s", s->imputes ? "missing_" : "", name, s->kind == UPDATE_NUTS ? "_by_hmc" : ""));
    }
}

// What row passes read: the bytes of the last one of a draw, and the columns, if they are the same for all.
static void row_sizes(Lower *p)
{
    Program *out = p->out;
    for (const Update *s = p->g->updates; s; s = s->next) {
        RowDot dot = {0};
        if (categories_dot(p->out, s, &dot)) reads_rows(p, dot.matrix->dim[1]);
        if (s->kind != UPDATE_EXACT || !row_dot(p, s, &dot)) continue;
        for (int k = 0; k < 2; k++) out->row_bytes[k] = dot.matrix->dim[k];
        reads_rows(p, dot.matrix->dim[1]);
    }
    for (int k = 0; k < p->npredictors; k++) {
        if (p->predictor[k]->pass) reads_rows(p, p->predictor[k]->of.matrix->dim[1]);
    }
}

// ---- the passes ----

Lower *lower_new(const Graph *g)
{
    Lower *p = NEW(g->arena, Lower);
    p->out = NEW(g->arena, Program);
    p->out->g = p->g = g;
    p->names = (Fresh){.g = g, .nvars = g->nvars};
    p->statistics = (Sums){.g = g, .names = &p->names, .first = g->sums, .only_closed = g->lesson};
    place_variables(p->out);
    list_rows(p);
    ex_settle();
    return p;
}

const Program *lowered(const Lower *p) { return p->out; }

void lower(Lower *p)
{
    Program *out = p->out;
    plan_rows(p);
    plan_logs(p);
    p->list = &out->sweep;
    p->part = PART_MODEL;
    lower_series(p);
    p->part = PART_GIBBS;
    lower_updates(p);
    lower_keyed(p);
    p->part = PART_DENSITY;
    lower_priors(p);
    lower_observed(p);
    lower_derive(p);
    lower_log_joint(p);
    p->part = PART_FORWARD;
    lower_forward(p);
    p->list = &out->setup;
    lower_setup(p);  // it comes first in the program, but knows its sums only now
    out->sums = p->statistics.first;
    place_sums(out, out->sums);
    name_updates(p);
}

void share(Lower *p)
{
    each_kernel(p, share_loops);
    Kernel *last = p->out->setup.first;
    while (last && last->next) last = last->next;
    p->part = PART_TABLES;
    lower_orders(p);
    if (lower_sorted(p)) note_again(p->out);
    for (Kernel *k = last ? last->next : p->out->setup.first; k; k = k->next) share_loops(p, k);
}

void outside(Lower *p) { each_kernel(p, name_outside); }

void predictors(Lower *p)
{
    Program *out = p->out;
    p->part = PART_TABLES;
    lower_predictors(p);
    for (int i = 0; i < out->nupdates; i++) {
        refresh_predictors(p, &out->updates[i].density);
        refresh_predictors(p, &out->updates[i].launches);
    }
    refresh_predictors(p, &out->log_prior);
    refresh_predictors(p, &out->log_lik);
    refresh_predictors(p, &out->replicates);
    refresh_predictors(p, &out->forward);
    refresh_predictors(p, &out->derive);
    refresh_predictors(p, &out->joint);
    row_sizes(p);
}

void placement(Lower *p) { place_routes(p->out); }
