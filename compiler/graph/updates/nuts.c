// nuts.c -- blocks drawn by HMC or NUTS: whether a variable can be, and where trajectories stop.
//
// Needs: gradients.     Gives: an update with the factors of its density; the jumps of these, which a trajectory cannot foresee.
#include <math.h>
#include "nuts.h"
#include "../update.h"
#include "../terms/var.h"
#include "../terms/conditions.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/elaborate.h"
#include "../algebra/afresh.h"
#include "../algebra/gradient.h"
#include "../algebra/moving.h"
#include "updates.h"

const Request all_by_nuts = {.by = "nuts", .method = METHOD_NUTS};

static double setting(Graph *g, const Request *asked, SettingId id, bool whole, double otherwise, double least, double most)
{
    for (int i = 0; i < asked->nsettings; i++) {
        const Setting *s = &asked->setting[i];
        if (s->id != id) continue;
        const Expr *e = elaborate_rule(g, s->value, 0, NULL, NULL);
        if (e->kind == EX_NUM && e->number >= least && e->number <= most && (!whole || e->number == floor(e->number))) return e->number;
        diag_help(diag(g->diags, s->value->span, DIAG_E0512, s->name), "a %snumber from %g to %g", whole ? "whole " : "", least, most);
    }
    return otherwise;
}

static int metric_setting(const Request *asked)
{
    for (int i = 0; i < asked->nsettings; i++)
        if (asked->setting[i].id == SETTING_METRIC) return asked->setting[i].word;
    return 0;
}

static Look test_own_end(const Expr *e, void *with)
{
    const Var *v = with;
    return e->kind == EX_CALL && e->fn == FN_WITHIN && e->args[0]->kind == EX_REF && e->args[0]->var == v &&
                   (ex_reads(e->args[1], v) || ex_reads(e->args[2], v))
               ? FOUND
               : LOOK;
}

// Do elements of v lie between others of its own? Then no array holds the ends of all before any of them is placed.
static bool bounds_itself(Graph *g, const Var *v)
{
    const Reading of = factors_of(g, v);
    bool any = false;
    for (int q = 0; q < of.n && v->constraint == CONSTRAINT_NONE; q++) any |= ex_find(of.factor[q]->log_density, test_own_end, (void *)v);
    return any;
}

// Whether gradients can move v.
bool has_gradient(Graph *g, Var *v, const char **why)
{
    has_coordinates(v, why);
    if (!*why && bounds_itself(g, v)) *why = "its elements are bounds of each other, which trajectories would run into";
    const Reading of = factors_of(g, v);
    const Moving b = block_with_series(g, &v, 1, v->summing.sums);
    for (int q = 0; q < of.n && !*why; q++) {
        Derivative *terms;
        if (factor_counts(of.factor[q], v, true) && !derivatives_moving(g, of.factor[q], &b, &terms, why)) return false;
    }
    return !*why && series_differentiable(g, &b, why);
}

// ---- jumps ----

typedef struct Smooth {
    Var *const *block;
    int n;
} Smooth;

static bool reads_any(const Expr *e, const Smooth *s)
{
    for (int i = 0; i < s->n; i++)
        if (ex_reads(e, s->block[i])) return true;
    return false;
}

// Where a density jumps as the block moves: trajectories do not see it coming.
static Look test_jump(const Expr *e, void *with)
{
    const Smooth *s = with;
    if (e->kind != EX_CALL || !reads_any(e, s)) return e->kind == EX_CALL ? SKIP : LOOK;
    switch (e->fn) {
    case FN_AT_END:
    case FN_IN_TAIL: return SKIP;
    case FN_if_else: return reads_any(e->args[0], s) && !goes_on(e->args[0]) ? FOUND : LOOK;
    case FN_WITHIN:  // the ends of a variable of the block move with it, those of another are walls
        for (int i = 0; i < s->n; i++)
            if (e->args[0]->kind == EX_REF && e->args[0]->var == s->block[i]) return SKIP;
        return FOUND;
    case FN_EQ:
    case FN_NE:
    case FN_LT:
    case FN_LE:
    case FN_AND:
    case FN_OR:
    case FN_NOT:
    case FN_step:
    case FN_int_step:
    case FN_floor:
    case FN_ceil:
    case FN_round: return FOUND;
    default: return LOOK;
    }
}

bool has_jump(const Expr *log_density, Var *const *block, int n) { return ex_find(log_density, test_jump, &(Smooth){block, n}); }

// Nothing but the condition that what is computed lies in a domain, within(a + b*x, 0, inf). Beyond it the density is 0: a trajectory that
// leaves ends there as divergent, and its law is right. The ends of an unknown or of data are no such condition: their mass lies there.
static bool is_wall(const Expr *e)
{
    while (e->kind == EX_REDUCE && e->fn == FN_sum) e = e->args[2];
    return e->kind == EX_CALL && e->fn == FN_WITHIN && (e->args[0]->kind != EX_REF || e->args[0]->var->kind == VAR_SERIES);
}

static const Factor *first_wall(const Update *s)
{
    const Smooth smooth = {s->block, s->nblock};
    for (int q = 0; q < s->nuts.n; q++) {
        const Expr *e = s->nuts.factor[q]->log_density;
        if (is_wall(e) && ex_find(e, test_jump, (void *)&smooth)) return s->nuts.factor[q];
    }
    return NULL;
}

// ---- updates ----

// All elements of a block move together; the density is that of the model as written wherever its latents can be integrated out, or are not
// drawn at all (as_written).
Update *nuts_update(Graph *g, const Request *asked, Var *const *block, int n, bool as_written)
{
    Update *s = update_new(g, UPDATE_NUTS, block[0]->span);
    s->block = arena_copy(g->arena, block, sizeof *block * (size_t)n);
    s->nblock = n;
    s->reason = asked->nnames ? "the model requests it" : "--method nuts";
    s->nuts.named = asked->nnames > 0;
    s->nuts.chees = asked->method == METHOD_CHEES;
    s->nuts.accept = setting(g, asked, SETTING_ACCEPT, false, 0.8, 0.01, 0.999);
    s->nuts.depth = (int)setting(g, asked, SETTING_DEPTH, true, 10, 1, 10);
    s->nuts.metric = metric_setting(asked);
    if (asked->method == METHOD_HMC) {
        s->nuts.steps = (int)setting(g, asked, SETTING_STEPS, true, 10, 1, 1e6);
        s->nuts.step = setting(g, asked, SETTING_STEP, false, 0, 1e-12, 1e12);
        s->nuts.anneal = setting(g, asked, SETTING_ANNEAL, false, 1, 1, 1e9);
    }
    s->collapsed = true;
    bool any = false;
    for (int i = 0; i < n; i++) {
        const char *why;
        if (!has_gradient(g, block[i], &why)) {
            Diag *m = diag(g->diags, asked->span, DIAG_E0508, block[i]->name, asked->by);
            diag_because(m, "%s", why);
            diag_help(m, "leave it out of the request: gmc chooses");
            return NULL;
        }
        const Reading of = factors_of(g, block[i]);
        bool latents = false;
        for (int q = 0; q < of.n; q++) latents |= of.factor[q]->replaced && factor_counts(of.factor[q], block[i], true);
        any |= latents;
        s->collapsed &= !latents || as_written || can_collapse(g, block[i]);
    }
    s->collapsed &= any;
    const Reading of = factors_of_block(g, block, n);
    s->nuts.factor = NEW_N(g->arena, Factor *, of.n + 1);
    const int sums = s->nuts.sums = block_sums(block, n);
    for (int q = 0; q < of.n; q++)
        if (factor_counts_at(of.factor[q], sums, s->collapsed)) s->nuts.factor[s->nuts.n++] = of.factor[q];
    s->nuts.wall = first_wall(s);
    return s;
}

Jumps block_jumps(Graph *g, Var *const *block, int n)
{
    const Smooth smooth = {block, n};
    const Reading of = factors_of_block(g, block, n);
    Jumps found = NO_JUMPS;
    for (int q = 0; q < of.n; q++) {
        const Expr *e = of.factor[q]->log_density;
        if (!factor_counts_at(of.factor[q], block_sums(block, n), true) || !ex_find(e, test_jump, (void *)&smooth)) continue;
        if (!is_wall(e)) return JUMPS;
        found = WALLS;
    }
    const Moving with = block_with_series(g, block, n, block_sums(block, n));
    for (int i = n; i < with.n; i++)
        for (const Site *t = with.var[i]->sites; t; t = t->next)
            if (ex_find(t->value, test_jump, (void *)&smooth)) return JUMPS;
    return found;
}
