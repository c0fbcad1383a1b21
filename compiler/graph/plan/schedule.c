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
#include "../step.h"
#include "../terms/var.h"
#include "../terms/conditions.h"
#include "../terms/supports.h"
#include "../terms/requests.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/elaborate.h"
#include "../model/ode.h"
#include "../algebra/polynomial.h"
#include "../algebra/conditionals.h"
#include "../algebra/afresh.h"
#include "../algebra/band.h"
#include "../algebra/few_rows.h"
#include "../algebra/sets.h"
#include "../algebra/gradient.h"
#include "../algebra/innovations.h"
#include "../algebra/pairs.h"
#include "../rewrite/joined.h"
#include "../rewrite/marginal.h"
#include "../rewrite/expect.h"
#include "../updates/collapsed.h"
#include "../updates/elliptical.h"
#include "../updates/turns.h"
#include "../updates/whiten.h"
#include "../updates/steps.h"
#include "../updates/scales.h"

// ---- what a variable is like, for building blocks ----

typedef enum { NOT_GAUSSIAN, ELEMENTWISE, CHAINED, DENSE } Form;   // CHAINED: neighbours are coupled; DENSE: drawn jointly

typedef struct Candidate {
    Var        *var;
    Form        form;
    int         nbatch;
    bool        taken;
    bool        listed;                  // its elements are named by numbers alone
    const char *because;
    BlockTerm  *terms;         // of the variable alone, if it is jointly normal
    int         set;           // the sparse block that it belongs to, whose step is in place of others; 0: none
} Candidate;

static Form form_of(Graph *g, Var *v, int *nbatch, bool *listed, const char **because, BlockTerm **of)
{
    BlockTerm *terms;
    *nbatch = v->rank;
    *listed = false;
    *because = v->discrete ? arena_printf(g->arena, "`%s` is discrete", v->name)
             : v->constraint != CONSTRAINT_NONE && v->constraint != CONSTRAINT_SUM_TO_ZERO ? arena_printf(g->arena, "the elements of `%s` are constrained together", v->name)
             : isfinite(v->lower_number) || isfinite(v->upper_number) ? arena_printf(g->arena, "`%s` has bounds", v->name) : NULL;
    if (*because) return NOT_GAUSSIAN;
    if (!block_terms(g, &v, 1, &terms, because)) return NOT_GAUSSIAN;
    *of = terms;
    if (v->rank == 0) return DENSE;
    bool coupled = false, chained = true, constant = true;
    for (BlockTerm *t = terms; t; t = t->next) {
        for (int k = 0; k < t->degree; k++)
            for (int d = 0; d < v->rank; d++) constant &= t->ref[k]->args[d]->kind == EX_NUM;
        if (t->degree != 2 || t->ref[0] == t->ref[1]) continue;
        coupled = true;
        int shared = 0;
        while (shared < v->rank && t->ref[0]->args[shared] == t->ref[1]->args[shared]) shared++;    // the same row, whichever it is
        if (shared < *nbatch) *nbatch = shared;
        for (int d = shared; d < v->rank; d++) {
            int least, most;
            bool numbers = t->ref[0]->args[d]->kind == EX_NUM || t->ref[1]->args[d]->kind == EX_NUM;
            chained &= (ex_sub(t->ref[0]->args[d], t->ref[1]->args[d])->kind == EX_NUM || band_apart(t->ref[0]->args[d], t->ref[1]->args[d], &least, &most)) && !numbers;
        }
    }
    if (!coupled) return ELEMENTWISE;
    if (constant) { *nbatch = 0; *listed = true; return DENSE; }
    return chained ? CHAINED : DENSE;
}

static bool test_inside(const Var *v, void *with) { return ((const bool *)with)[v->id]; }

// Does a product of an element of w and one of another variable of the block stand in the log density of f? Products that cancel do not count.
static bool couples(Graph *g, Factor *f, Var *const *block, int n, Var *w)
{
    for (int i = 0; i < n; i++) {
        if (!factor_mentions(f, block[i])) continue;
        Var *const pair[] = {block[i], w};
        const Unknowns in = {pair, 2, false};
        if (!polynomial_degree(f->log_density, &in, w, 2).both) continue;
        const Terms t = polynomial(g->arena, f->log_density, &in, 2);
        for (int k = 0; k < t.n; k++)
            if (t.term[k].degree == 2 && (t.term[k].ref[0]->var == w) != (t.term[k].ref[1]->var == w)) return true;
    }
    return false;
}

// Is w coupled with a block that is jointly normal, and are they together? Factors that hold w alone, or the block alone, were looked at before.
static bool coupled_with(Graph *g, Var *const *block, int n, const bool *inside, Var *w)
{
    bool coupled = false;
    const Reading enters = factors_of(g, w);
    for (int q = 0; q < enters.n; q++) {
        Factor *f = enters.factor[q];
        if (!factor_counts(f, w, false) || !ex_any_var(f->log_density, test_inside, (void *)inside)) continue;
        Var **all = NEW_N(g->arena, Var *, n + 1);
        memcpy(all, block, sizeof *all * (size_t)n);
        all[n] = w;
        const Degree d = polynomial_degree(f->log_density, &(Unknowns){all, n + 1, false}, w, 2);
        if (d.failed) return false;
        coupled = coupled || (d.both && couples(g, f, block, n, w));
    }
    return coupled;
}

// A block that grows by variables that are coupled with it. More than MAX_BLOCK are drawn in several blocks: the precision has a place for each pair.
enum { MAX_BLOCK = 60 };
typedef struct Growing { Var **var; int n; bool *inside, *near; bool full; } Growing;   // by the number of a variable: in the block; in a factor with one that is

static bool test_near(const Var *v, void *with) { ((bool *)with)[v->id] = true; return false; }

static void put_inside(Graph *g, Growing *b, Var *v)
{
    b->var[b->n++] = v;
    b->inside[v->id] = true;
    const Reading enters = factors_of(g, v);
    for (int q = 0; q < enters.n; q++)
        if (factor_counts(enters.factor[q], v, false)) ex_any_var(enters.factor[q]->log_density, test_near, b->near);
}

static void grow_from(Graph *g, Growing *b, Var *v)
{
    b->var = NEW_N(g->arena, Var *, MAX_BLOCK);
    b->n = 0;
    b->full = false;
    memset(b->inside, 0, sizeof *b->inside * (size_t)g->nvars);
    memset(b->near, 0, sizeof *b->near * (size_t)g->nvars);
    put_inside(g, b, v);
}

static bool grow_by(Graph *g, Growing *b, Candidate *w)
{
    if (!b->near[w->var->id] || !coupled_with(g, b->var, b->n, b->inside, w->var)) return false;
    if (b->n == MAX_BLOCK) { b->full = true; return false; }
    put_inside(g, b, w->var);
    return w->taken = true;
}

// ---- steps ----

static Step *step_new(Graph *g, StepKind kind, Span at)
{
    Step *s = NEW(g->arena, Step);
    s->kind = kind;
    s->span = at;
    return s;
}

static void put(Step **list, Step *s)
{
    while (*list) list = &(*list)->next;
    *list = s;
}

static Step *gaussian(Graph *g, Var *const *block, int n, bool arrow, int nbatch, const char *reason)
{
    Step *s = step_new(g, STEP_GAUSSIAN, block[0]->span);
    s->block = arena_copy(g->arena, block, sizeof *block * (size_t)n);
    s->nblock = n;
    s->gaussian.arrow = arrow;
    s->gaussian.nbatch = nbatch;
    s->reason = reason;
    const char *why;
    block_terms(g, block, n, &s->gaussian.terms, &why);
    return s;
}

static Step *single(Graph *g, StepKind kind, Var *v, Conditional *c, bool collapsed, const char *reason)
{
    Step *s = step_new(g, kind, v->span);
    s->block = arena_copy(g->arena, &v, sizeof v);
    s->nblock = 1;
    s->conditional = c;
    s->collapsed = collapsed;
    s->reason = reason;
    return s;
}

// Elements that are constrained together: conjugate as a whole, or moved along the constraint one coordinate at a time.
static Step *constrained_step(Graph *g, Var *v, const char *no_plane)
{
    Conditional *c = conditional_array(g, v);
    if (c->family) return single(g, STEP_EXACT, v, c, false, "conjugate");
    const char *because = v->constraint == CONSTRAINT_SUM_TO_ZERO && no_plane ? no_plane : c->because;
    bool collapsed = can_collapse(g, v);
    c = conditional_whole(g, v, collapsed);
    c->because = because;
    Diag *m = diag(g->diags, v->span, DIAG_P0602, v->name);
    diag_because(m, "%s", because);
    return single(g, STEP_SLICE, v, c, collapsed, because);
}

static bool test_auxiliary(const Var *v, void *with) { (void)with; return v->kind == VAR_AUXILIARY; }

// A cutpoint between latents: exact, but with many observations it hardly moves.
static bool bounded_by_auxiliaries(const Conditional *c)
{
    for (const Part *p = c->bounds; p; p = p->next)
        if (ex_any_var(p->value, test_auxiliary, NULL)) return true;
    return false;
}

// One end of the values that are weighed. What is drawn after v, since it is summed out of v's conditional, has no value yet: the end is the outermost that any value of it gives.
typedef struct Outermost { Expr *end; int side; bool none; } Outermost;

enum { GROWS = 1, FALLS = 2, NEITHER = 4 };

// Whether e grows or falls with what is referred to: a union of the above, 0 if it does not depend on it.
static int direction(Expr *e, const Expr *ref)
{
    if (e == ref) return GROWS;
    if (!ex_mentions(e, ref->var)) return 0;
    int all = 0;
    const bool sum = e->kind == EX_ADD || (e->kind == EX_CALL && (e->fn == FN_fmin || e->fn == FN_fmax));
    const bool multiple = e->kind == EX_MUL && e->nargs == 2 && e->args[0]->kind == EX_NUM;
    if (!sum && !multiple) return NEITHER;
    for (int i = 0; i < e->nargs; i++) all |= direction(e->args[i], ref);
    if (multiple && e->args[0]->number < 0 && all < NEITHER) all = (all & GROWS ? FALLS : 0) | (all & FALLS ? GROWS : 0);
    return all;
}

enum { FEW_ENDS = 64 };

static void over_values_of(Expr *ref, void *with)
{
    Outermost *o = with;
    Expr *first = end_of_summed(ref->var, 0), *last = end_of_summed(ref->var, 1), *end = NULL;
    const int way = direction(o->end, ref);
    if (way == GROWS || way == FALLS) {
        o->end = ex_replace(o->end, ref, (way == GROWS) == (o->side == 1) ? last : first);
        return;
    }
    o->none |= first->kind != EX_NUM || last->kind != EX_NUM || last->number - first->number > FEW_ENDS;
    for (double j = first->number; !o->none && j <= last->number; j++) {
        Expr *one = ex_replace(o->end, ref, ex_num(j));
        end = end ? ex_call2(o->side ? "fmax" : "fmin", end, one) : one;
    }
    if (end) o->end = end;
}

static Expr *end_weighed(Graph *g, const Var *v, int side)
{
    Outermost o = {side ? v->upper : v->lower ? v->lower : ex_num(v->lower_number), side, false};
    for (int i = 0; i < g->nvars; i++) {
        const Var *w = g->vars[i];
        if (!w->summed || w->summed > v->sums || !ex_mentions(o.end, w)) continue;
        ex_references(o.end, w, over_values_of, &o);
        if (!o.none) continue;
        Diag *m = diag(g->diags, v->span, DIAG_E0513, w->name);
        diag_because(m, "the values of `%s` end where a function of `%s` says, and it is not known at which of its values they end outermost", v->name, w->name);
        diag_help(m, "declare bounds that are the same for all values: int<lower=0, upper=10> %s", v->name);
        break;
    }
    return o.end;
}

static Step *element_step(Graph *g, Var *v, bool singly, const char *no_plane);

enum { SUBSCRIPTS_MORE = 2 };       // that an array of what links two neighbours has

// All elements along a chain at once, parallel in time; if they remember more than the one before, or have too many subscripts, neighbours in turn.
static Step *step_on_gpu(Graph *g, Var *v, const Step *on_cpu)
{
    if (on_cpu->conditional->past || v->rank + SUBSCRIPTS_MORE > MAX_RANK) return element_step(g, v, true, NULL);
    Step *s = single(g, STEP_ENUM, v, conditional_at_once(g, v), can_collapse(g, v), NULL);
    s->reason = s->conditional->because;
    s->at_once = s->marginal = true;
    s->enumerate.lower = end_weighed(g, v, 0);
    s->enumerate.upper = end_weighed(g, v, 1);
    return s;
}

// Several unknowns by the product of their values, for the sizes that allow it.
static Step *joined_step(Graph *g, const Joined *j)
{
    Step *s = single(g, STEP_ENUM, j->var[0], j->conditional, j->collapsed, j->conditional->before ? "their elements follow each other, and factors hold them together" : "factors hold them together");
    s->block = arena_copy(g->arena, j->var, sizeof *j->var * (size_t)j->n);
    s->nblock = j->n;
    s->at_once = s->marginal = true;
    s->joined = j;
    s->enumerate.lower = end_weighed(g, j->var[0], 0);
    s->enumerate.upper = end_weighed(g, j->var[0], 1);
    return s;
}

// singly: not together with its other elements, along their chain. no_plane: why it is not jointly normal given that its sum is 0.
static Step *element_step(Graph *g, Var *v, bool singly, const char *no_plane)
{
    const Request *asked = request_of(g, v);
    const char *method = asked ? asked->method : NULL;
    const bool tied = v->constraint != CONSTRAINT_NONE && v->constraint != CONSTRAINT_ORDERED && v->constraint != CONSTRAINT_POSITIVE_ORDERED;
    const bool metropolis = method && strcmp(method, "metropolis") == 0;
    if (metropolis && (tied || v->discrete)) {
        Diag *m = diag(g->diags, asked->span, DIAG_E0508, v->name, method);
        diag_because(m, "%s", tied ? "its elements are constrained together" : "its values are integers");
        diag_help(m, "leave the request out: gmc chooses");
    }
    if (tied && method && strcmp(method, "elliptical") == 0) {
        Diag *m = diag(g->diags, asked->span, DIAG_E0508, v->name, method);
        diag_because(m, "its elements are constrained together");
        diag_help(m, "leave the request out: gmc chooses");
    }
    if (tied) return constrained_step(g, v, no_plane);
    if (v->messages && !singly) {
        Step *s = single(g, STEP_ENUM, v, conditional_chain(g, v), can_collapse(g, v), NULL);
        s->reason = s->conditional->because;
        s->by_messages = s->marginal = true;
        s->enumerate.lower = end_weighed(g, v, 0);
        s->enumerate.upper = end_weighed(g, v, 1);
        return s;
    }
    Conditional *c = conditional_element(g, v, false);
    bool collapsed = can_collapse(g, v);
    bool squeezed = collapsed && !method && bounded_by_auxiliaries(c);
    const bool elliptical = method && strcmp(method, "elliptical") == 0;
    if (c->family && !squeezed && (!method || strcmp(method, "gibbs") == 0)) return single(g, STEP_EXACT, v, c, false, "conjugate");
    const char *because = squeezed ? "its conditional is squeezed between auxiliaries; without them it moves further (Cowles 1996)"
                        : c->because ? c->because : "the model asks for it";
    if (collapsed) {
        c = conditional_element(g, v, true);
        if (c->family && (!method || strcmp(method, "gibbs") == 0)) {
            Step *s = single(g, STEP_EXACT, v, c, true, "conjugate with auxiliaries integrated out");
            s->marginal = true;
            return s;
        }
    }
    if (!g->by_em && (!method || elliptical)) {
        const char *none;
        Ellipse *e = find_ellipse(g, v, collapsed, &none);
        if (e) {
            e->conditional->because = because;
            Step *s = single(g, STEP_ELLIPTICAL, v, e->conditional, collapsed, elliptical ? "the model asks for it" : "its prior is joint normal, and no family has the rest");
            s->ellipse = e;
            return s;
        }
        if (elliptical) {
            Diag *m = diag(g->diags, asked->span, DIAG_E0508, v->name, method);
            diag_because(m, "%s", none);
            diag_help(m, "leave the request out: gmc chooses");
        }
    }
    if (!g->by_em && !collapsed && !method && conditional_own(g, c, false)) return single(g, STEP_OWN, v, c, false, "its own distribution");
    if (c->family) c = conditional_density(g, v, collapsed);
    c->because = because;
    const Pair *pair = !g->by_em && v->discrete && (!method || strcmp(method, "gibbs") == 0) ? find_pair(g, v) : NULL;
    const Request *of_b = pair ? request_of(g, pair->coefficient->var) : NULL;
    if (pair && (!of_b || !of_b->method || strcmp(of_b->method, "gibbs") == 0)) {
        Step *s = single(g, STEP_PAIR, v, pair->indicator, false, arena_printf(g->arena, "given `%s`, or the other way round, it would hardly move", pair->coefficient->var->name));
        s->pair = pair;
        return s;
    }
    if (v->discrete && v->upper && (v->lower || isfinite(v->lower_number)) && !(method && strcmp(method, "slice") == 0)) {
        Step *s = single(g, STEP_ENUM, v, c, collapsed, "finite support");
        s->marginal = collapsed;
        s->enumerate.lower = end_weighed(g, v, 0);
        s->enumerate.upper = end_weighed(g, v, 1);
        return s;
    }
    if (method && strcmp(method, "enum") == 0) {
        Diag *m = diag(g->diags, asked->span, DIAG_E0508, v->name, method);
        diag_because(m, v->discrete ? "its values are not finitely many" : "its values are reals");
    } else if (method && strcmp(method, "gibbs") == 0) {
        Diag *m = diag(g->diags, v->span, DIAG_W0601, v->name);
        diag_because(m, "%s", because);
    } else if (!method && !(g->by_em && v->kind == VAR_AUXILIARY)) {
        Diag *m = diag(g->diags, v->span, g->by_em ? DIAG_P0606 : DIAG_P0602, v->name);
        diag_because(m, "%s", because);
    }
    Step *s = single(g, metropolis ? STEP_METROPOLIS : STEP_SLICE, v, c, collapsed, because);
    for (int i = 0; asked && i < asked->nsettings; i++)
        if (strcmp(asked->setting[i], "width") == 0) s->slice.width = elaborate_rule(g, asked->value[i], 0, NULL, NULL);
    return s;
}


// ---- blocks that gradients move ----

static double setting(Graph *g, const Request *asked, const char *name, bool whole, double otherwise, double least, double most)
{
    for (int i = 0; i < asked->nsettings; i++) {
        if (strcmp(asked->setting[i], name) != 0) continue;
        const Expr *e = elaborate_rule(g, asked->value[i], 0, NULL, NULL);
        if (e->kind == EX_NUM && e->number >= least && e->number <= most && (!whole || e->number == floor(e->number))) return e->number;
        diag_help(diag(g->diags, asked->value[i]->span, DIAG_E0512, name), "a %snumber from %g to %g", whole ? "whole " : "", least, most);
    }
    return otherwise;
}

static int metric_setting(const Request *asked)
{
    for (int i = 0; i < asked->nsettings; i++)
        for (int k = 0; strcmp(asked->setting[i], "metric") == 0 && metrics[k]; k++)
            if (strcmp(asked->value[i]->name, metrics[k]) == 0) return k;
    return 0;
}

const char *only_on_cpu(const Graph *g)
{
    const Var *z = first_solution(g);
    if (z) return arena_printf(g->arena, "the differential equation of %s is solved on the CPU alone: --device cpu", z->name);
    for (const Step *s = g->steps; s; s = s->next)
        if (s->predictive && !s->shelf && s->conditional->nbatch == 0) return arena_printf(g->arena, "%s is integrated out as the model asks, so that elements of %s are drawn one after the other, which is done on the CPU alone: --device cpu, or leave the request out", s->predictive->weights->name, s->block[0]->name);
    return NULL;
}

static Look test_own_end(const Expr *e, void *with)
{
    const Var *v = with;
    return e->kind == EX_CALL && e->fn == FN_WITHIN && e->args[0]->kind == EX_REF && e->args[0]->var == v && (ex_reads(e->args[1], v) || ex_reads(e->args[2], v)) ? FOUND : LOOK;
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
static bool has_gradient(Graph *g, Var *v, const char **why)
{
    has_coordinates(v, why);
    if (!*why && bounds_itself(g, v)) *why = "its elements are bounds of each other, which trajectories would run into";
    const Reading of = factors_of(g, v);
    const Moving b = block_with_series(g, &v, 1, v->sums);
    for (int q = 0; q < of.n && !*why; q++) {
        Derivative *terms;
        if (factor_counts(of.factor[q], v, true) && !derivatives_moving(g, of.factor[q], &b, &terms, why)) return false;
    }
    return !*why && series_differentiable(g, &b, why);
}

// All elements of a block move together; the density is that of the model as written wherever its latents can be integrated out, or are not drawn at all (as_written).
static Step *nuts_step(Graph *g, const Request *asked, Var *const *block, int n, bool as_written)
{
    Step *s = step_new(g, STEP_NUTS, block[0]->span);
    s->block = arena_copy(g->arena, block, sizeof *block * (size_t)n);
    s->nblock = n;
    s->reason = asked->nnames ? "the model asks for it" : "--method nuts";
    s->nuts.named = asked->nnames > 0;
    s->nuts.chees = strcmp(asked->method, "chees") == 0;
    s->nuts.accept = setting(g, asked, "accept", false, 0.8, 0.01, 0.999);
    s->nuts.depth = (int)setting(g, asked, "depth", true, 10, 1, 10);
    s->nuts.metric = metric_setting(asked);
    if (strcmp(asked->method, "hmc") == 0) {
        s->nuts.steps = (int)setting(g, asked, "steps", true, 10, 1, 1e6);
        s->nuts.step = setting(g, asked, "step", false, 0, 1e-12, 1e12);
        s->nuts.anneal = setting(g, asked, "anneal", false, 1, 1, 1e9);
    }
    s->collapsed = true;
    bool any = false;
    for (int i = 0; i < n; i++) {
        const char *why;
        if (!has_gradient(g, block[i], &why)) {
            Diag *m = diag(g->diags, asked->span, DIAG_E0508, block[i]->name, asked->method);
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
    return s;
}

// ---- what would be sliced, moved together instead ----

typedef struct Smooth { Var *const *block; int n; } Smooth;

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
    case FN_AT_END: case FN_IN_TAIL: return SKIP;
    case FN_if_else: return reads_any(e->args[0], s) && !goes_on(e->args[0]) ? FOUND : LOOK;
    case FN_WITHIN:                              // the ends of a variable of the block move with it, those of another are walls
        for (int i = 0; i < s->n; i++)
            if (e->args[0]->kind == EX_REF && e->args[0]->var == s->block[i]) return SKIP;
        return FOUND;
    case FN_EQ: case FN_NE: case FN_LT: case FN_LE: case FN_AND: case FN_OR: case FN_NOT: case FN_step: case FN_int_step: case FN_floor: case FN_ceil: case FN_round: return FOUND;
    default: return LOOK;
    }
}

// A slice of reals that gmc has chosen: a move along gradients may stand beside it.
static bool is_sliced(const Step *s, const Graph *g)
{
    const Var *v = s->block[0];
    if (s->kind == STEP_ELLIPTICAL) return !request_of(g, v);
    if (s->kind != STEP_SLICE || s->imputes || v->discrete || request_of(g, v)) return false;
    return v->constraint == CONSTRAINT_SUM_TO_ZERO || (v->constraint == CONSTRAINT_NONE && (!s->conditional->whole || s->conditional->recursion));
}

// ---- competitions: gradients, or a step for each ----

static const Request all_by_nuts = {.method = "nuts"};

// A competition of the block: the move along gradients comes last in the sweep, since no other step reads what it leaves out. Steps of the block, and of auxiliaries that are `theirs`,
// by the number of a variable, belong to the other method.
static Step *add_competition(Graph *g, Var **block, int n, const bool *theirs, bool coupled, const char *reason)
{
    Competition *c = NEW(g->arena, Competition), **last = &g->competitions;
    *c = (Competition){.number = 1, .n = n, .block = block, .coupled = coupled};
    for (; *last; last = &(*last)->next) c->number++;
    *last = c;
    Step *move = nuts_step(g, &all_by_nuts, block, n, true);
    for (Step *s = g->steps; s; s = s->next) {
        if (s->imputes || s->when != EVERY_SWEEP || !theirs[s->block[0]->id]) continue;
        s->when = WITHOUT_GRADIENTS;
        s->competition = c;
        c->auxiliaries |= s->block[0]->kind == VAR_AUXILIARY;
    }
    move->when = WITH_GRADIENTS;
    move->competition = c;
    move->reason = reason;
    put(&g->steps, move);
    return move;
}

static bool test_jumps(Graph *g, Var *const *block, int n)
{
    const Smooth smooth = {block, n};
    const Reading of = factors_of_block(g, block, n);
    for (int q = 0; q < of.n; q++)
        if (factor_counts_at(of.factor[q], block_sums(block, n), true) && ex_find(of.factor[q]->log_density, test_jump, (void *)&smooth)) return true;
    const Moving with = block_with_series(g, block, n, block_sums(block, n));
    for (int i = n; i < with.n; i++)
        for (const Site *t = with.var[i]->sites; t; t = t->next)
            if (ex_find(t->value, test_jump, (void *)&smooth)) return true;
    return false;
}

// The last sum over the values of an unknown into which the factor goes.
static const Factor *sum_of(const Graph *g, const Factor *f)
{
    for (const Factor *sum = g->factors; sum && f->gone;)
        if (sum->made == f->gone && factor_mentions(f, sum->sums_out)) {
            f = sum;
            sum = g->factors;
        } else sum = sum->next;
    return f;
}

// Continuous unknowns that meet in a factor as written, or in one where unknowns that are offered are summed out, are one set, by the number of a variable: that of its first one. Auxiliaries belong
// to the set of the factor that they stand for. -1: to none.
static int *connected_sets(Graph *g, int offers)
{
    int nfactors = 0;
    for (const Factor *f = g->factors; f; f = f->next) nfactors = f->id >= nfactors ? f->id + 1 : nfactors;
    int *set = NEW_N(g->arena, int, g->nvars + 1), *owner = NEW_N(g->arena, int, nfactors + 1);
    for (int i = 0; i < g->nvars; i++) set[i] = -1;
    for (int i = 0; i < nfactors; i++) owner[i] = -1;
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if (!var_unknown(v) || v->kind == VAR_AUXILIARY || v->discrete) continue;
        set[v->id] = v->id;
        const Reading of = factors_of(g, v);
        for (int q = 0; q < of.n; q++) {
            if (g->offers && !factor_counts_at(of.factor[q], offers, true)) continue;
            const int other = of.factor[q]->original ? -1 : owner[of.factor[q]->id], mine = set[v->id];
            if (!of.factor[q]->original) owner[of.factor[q]->id] = v->id;
            if (other < 0 || set[other] == mine) continue;
            const int first = set[other] < mine ? set[other] : mine, gone = set[other] < mine ? mine : set[other];
            for (int k = 0; k < g->nvars; k++)
                if (set[k] == gone) set[k] = first;
        }
    }
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        if (v->kind != VAR_AUXILIARY) continue;
        const Reading of = factors_of(g, v);
        for (int q = 0; q < of.n && set[v->id] < 0; q++) {
            const Factor *root = of.factor[q];
            while (root->original) root = root->original;
            if (offers) root = sum_of(g, root);
            if (owner[root->id] >= 0) set[v->id] = set[owner[root->id]];
        }
    }
    return set;
}

static bool is_requested(const Graph *g, const Var *v)
{
    if (request_of(g, v)) return true;
    for (const Request *r = g->model->requests; r; r = r->next)          // of latents, which are named after the data
        for (int i = 0; r->block == BLOCK_AUGMENT && i < r->nnames && v->kind == VAR_AUXILIARY; i++)
            for (const Applied *a = g->applied; a; a = a->next)
                if (a->latent == v && a->factor->value && a->factor->value->kind == EX_REF && a->factor->value->var->name == r->names[i]) return true;
    return false;
}

static bool reads_sum(Graph *g, Var *const *block, int n)
{
    const Reading of = factors_of_block(g, block, n);
    const int sums = block_sums(block, n);
    for (int q = 0; q < of.n; q++)
        if (of.factor[q]->made && factor_counts_at(of.factor[q], sums, true)) return true;
    return false;
}

// Is it drawn without some unknown that is summed out? Also where the sum says nothing of it: sum over v of P(z = v | m) is 1, and z depends on m.
static bool without_summed(Graph *g, Var *const *block, int n)
{
    const Reading of = factors_of_block(g, block, n);
    const int sums = block_sums(block, n);
    for (int q = 0; q < of.n; q++) {
        const Factor *written = factor_written(of.factor[q]);
        if (written->gone && written->gone <= sums) return true;
    }
    return reads_sum(g, block, n);
}

enum { MOST_COMPETING_STEPS = 40 };      // more kernels than these, and those of the move beside them, would keep the C compiler too long

static bool draws_of_set(const Step *s, const int *set, int which)
{
    for (int i = 0; i < s->nblock; i++)
        if (set[s->block[i]->id] == which) return true;
    return false;
}

// Why there is no competition for a set, in words for --explain.
static const char *not_worth(Graph *g, const int *set, int which, Var *const *block, int n)
{
    int steps = 0;
    const Step *only = NULL;
    const bool offers = g->offers && reads_sum(g, block, n);
    if (!offers && reads_sum(g, block, n)) return "the model asks for unknowns to be summed out";
    for (const Step *s = g->steps; s; s = s->next) {
        if (s->imputes || !draws_of_set(s, set, which)) continue;
        if (s->kind == STEP_NUTS) return "gradients move some of it as it is";
        if (s->when != EVERY_SWEEP) return "auxiliaries are drawn in one way on a CPU and in another on a GPU";
        for (int i = 0; i < s->nblock; i++)
            if (is_requested(g, s->block[i])) return "the model asks for a method";
        if (s->joint < 0) continue;
        only = s;
        steps++;
    }
    const Conditional *c = only ? only->conditional : NULL;
    if (steps == 1 && !offers && (only->kind == STEP_GAUSSIAN || (c && (c->array || (c->nbatch == c->var->rank && !c->whole)))))
        return only->kind == STEP_SLICE || only->kind == STEP_METROPOLIS ? "its elements do not depend on each other" : "one step draws all of it exactly";
    if (steps > MOST_COMPETING_STEPS) return arena_printf(g->arena, "it takes %d steps; more than %d are not doubled", steps, MOST_COMPETING_STEPS);
    for (int i = 0; i < g->nvars; i++) {
        Var *a = g->vars[i];
        if (a->kind != VAR_AUXILIARY || set[a->id] != which) continue;
        for (const Step *s = g->steps; s; s = s->next) {
            if (s->imputes || s->collapsed || set[s->block[0]->id] == which) continue;
            const Reading of = factors_of_block(g, s->block, s->nblock);
            for (int q = 0; q < of.n; q++)
                if (factor_counts_at(of.factor[q], block_sums(s->block, s->nblock), false) && factor_mentions(of.factor[q], a))
                    return arena_printf(g->arena, "`%s` is drawn given the auxiliary `%s`", s->block[0]->name, a->name);
        }
    }
    for (int i = 0; i < n; i++) {
        const char *why = NULL;
        if (!has_gradient(g, block[i], &why)) return arena_printf(g->arena, "gradients do not move `%s`: %s", block[i]->name, why);
    }
    return test_jumps(g, block, n) ? "its density jumps, which trajectories along gradients do not see coming" : NULL;
}

// The step of an unknown that is offered, if each of its elements is drawn there given all others.
static Step *step_of_offered(Graph *g, const Var *v)
{
    Step *found = NULL;
    for (Step *s = g->steps; s; s = s->next)
        for (int i = 0; i < s->nblock; i++) {
            if (s->block[i] != v || s->imputes) continue;
            const Conditional *c = s->conditional;
            if (found || s->nblock > 1 || s->when != EVERY_SWEEP || (s->kind != STEP_ENUM && s->kind != STEP_EXACT) || !c || c->whole || (c->nbatch < v->rank && !s->by_messages)) return NULL;
            found = s;
        }
    return found;
}

static int add_summed(Graph *g, const Factor *sum, Var **out, int m)
{
    for (int i = 0; i < m; i++)
        if (out[i] == sum->sums_out) return m;
    for (int i = 0; i < g->nvars; i++)
        if (g->vars[i] == sum->sums_out) out[m++] = g->vars[i];
    for (const Factor *f = g->factors; f; f = f->next)               // and what is summed out within
        if (f->made && f->gone == sum->made && factor_mentions(f, sum->sums_out)) m = add_summed(g, f, out, m);
    return m;
}

int summed_out_of(Graph *g, Var *const *block, int n, int sums, Var **out)
{
    int m = 0;
    const Reading of = factors_of_block(g, block, n);
    for (int q = 0; q < of.n; q++)
        if (of.factor[q]->made && factor_counts_at(of.factor[q], sums, true)) m = add_summed(g, of.factor[q], out, m);
    return m;
}

// The unknowns whose sums the block reads, into `out`; -1: one of them cannot be drawn after a move of the block.
static int offered_to(Graph *g, Var *const *block, int n, Var **out)
{
    const int m = summed_out_of(g, block, n, g->offers, out);
    for (int i = 0; i < m; i++)
        if (!step_of_offered(g, out[i])) return -1;
    return m;
}

static void take_out(Step **list, const Step *s)
{
    while (*list != s) list = &(*list)->next;
    *list = s->next;
}

// A tree stays together, in its order: what a child is summed out of is drawn before it, and nothing between reads its value.
static bool is_of_tree(const Var *v) { return v->parent || v->summed; }

static bool follows(const Step *s, Var *const *list, int n)
{
    bool any = false, tree = false;
    for (int i = 0; i < n; i++) {
        any |= s->block[0] == list[i];
        tree |= is_of_tree(list[i]);
    }
    return !s->imputes && (any || (tree && is_of_tree(s->block[0])));
}

// The move and then the draws of what it saw summed out, where the first of these stood: nothing between reads values that are not of this joint law.
static void draw_after(Graph *g, Step *move, Var *const *summed, int n)
{
    take_out(&g->steps, move);
    Step **at = &g->steps, *last = move;
    while (!follows(*at, summed, n)) at = &(*at)->next;
    for (Step *s = *at, *next; s; s = next) {
        next = s->next;
        if (!follows(s, summed, n)) continue;
        take_out(&g->steps, s);
        last = last->next = s;
    }
    last->next = *at;
    *at = move;
}

// Competitions of the sets that are connected with so many sums behind them (0: as the steps see them), for unknowns that are in none yet.
static void compete_in_sets(Graph *g, int offers, bool *in)
{
    const int *set = connected_sets(g, offers);
    Alone **last = &g->no_competition;
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if (!var_unknown(v) || v->kind == VAR_AUXILIARY || set[v->id] != v->id || in[v->id]) continue;
        Var **block = NEW_N(g->arena, Var *, g->nvars + 1), **summed = NEW_N(g->arena, Var *, g->nvars + 1);
        bool *theirs = NEW_N(g->arena, bool, g->nvars + 1), coupled = false;
        int n = 0, nsummed = 0;
        for (int k = 0; k < g->nvars; k++) {
            Var *w = g->vars[k];
            theirs[w->id] = set[w->id] == v->id;
            if (theirs[w->id] && w->kind != VAR_AUXILIARY) block[n++] = w;
        }
        if (offers && (nsummed = offered_to(g, block, n, summed)) < 1) continue;
        for (int k = 0; k < n; k++) block[k]->sums += offers;
        const char *because = not_worth(g, set, v->id, block, n);
        if (because) {
            for (int k = 0; k < n; k++) block[k]->sums -= offers;
            if (offers) continue;
            *last = NEW(g->arena, Alone);
            **last = (Alone){n, block, because, NULL};
            last = &(*last)->next;
            continue;
        }
        int sliced = 0;
        for (const Step *s = g->steps; s; s = s->next)
            if (theirs[s->block[0]->id] && is_sliced(s, g)) {
                sliced++;
                coupled |= s->conditional->nbatch < s->block[0]->rank;
            }
        Step *move = add_competition(g, block, n, theirs, coupled || sliced > 1, "it competes with the steps of these unknowns");
        for (int k = 0; k < n; k++) {
            block[k]->sums -= offers;
            in[block[k]->id] = true;
        }
        if (!offers) continue;
        move->over_sum = move->marginal = true;
        move->competition->summed = summed;
        move->competition->nsummed = nsummed;
        draw_after(g, move, summed, nsummed);
    }
}

bool compete(Graph *g)
{
    if (g->by_gibbs || g->by_nuts) return true;
    bool *in = NEW_N(g->arena, bool, g->nvars + 1);
    if (g->offers) compete_in_sets(g, g->offers, in);
    compete_in_sets(g, 0, in);
    return true;
}

// In what is left, variables that are sliced and coupled.
bool move_together(Graph *g)
{
    if (g->by_gibbs) return true;
    for (Step *first = g->steps; first; first = first->next) {
        if (first->when != EVERY_SWEEP || !is_sliced(first, g)) continue;
        Var **block = NEW_N(g->arena, Var *, g->nvars + 1);
        bool *theirs = NEW_N(g->arena, bool, g->nvars + 1);
        int n = 0;
        block[n++] = first->block[0];
        theirs[block[0]->id] = true;
        bool coupled = first->conditional->nbatch < block[0]->rank;
        for (bool more = true; more;) {
            more = false;
            const Reading of = factors_of_block(g, block, n);
            for (Step *s = first; s; s = s->next) {
                bool meets = false;
                if (s->when != EVERY_SWEEP || !is_sliced(s, g) || theirs[s->block[0]->id]) continue;
                for (int q = 0; q < of.n; q++) meets |= factor_counts(of.factor[q], s->block[0], true) && factor_mentions(of.factor[q], s->block[0]);
                if (!meets) continue;
                block[n++] = s->block[0];
                theirs[s->block[0]->id] = more = coupled = true;
            }
        }
        const char *why = NULL;
        for (int i = 0; i < n && coupled; i++) coupled = has_gradient(g, block[i], &why);
        if (coupled && !test_jumps(g, block, n)) add_competition(g, block, n, theirs, true, "no family has their statistics, and they depend on each other; it competes with their slices");
    }
    return true;
}

static Candidate *find(Candidate *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (list[i].var->name == name) return &list[i];
    return NULL;
}

// Within what bounds the missing values of v lie, as far as those declared do not say it: terms of the log density while its conditional is
// worked out. Data that are there were checked.
static void bound_missing(Graph *g, const Var *v, bool on)
{
    for (Factor *f = g->factors; f; f = f->next) {
        if (!f->value || f->value->kind != EX_REF || f->value->var != v) continue;
        Expr **terms = f->if_missing->kind == EX_ADD ? f->if_missing->args : &f->if_missing;
        for (int i = 0; i < (f->if_missing->kind == EX_ADD ? f->if_missing->nargs : 1); i++) {
            if (terms[i]->kind != EX_CALL) continue;
            const Expr *lo = terms[i]->args[1], *hi = terms[i]->args[2];
            if (lo->kind == EX_NUM && lo->number <= v->lower_number && hi->kind == EX_NUM && hi->number >= v->upper_number) continue;
            f->log_density = on ? ex_add2(f->log_density, terms[i]) : ex_sub(f->log_density, terms[i]);
        }
    }
}

// One end of the values of an integer response: as declared, or the outermost of what its statements say; NULL: open, or not the same for all elements.
static Expr *end_of_values(const Graph *g, const Var *v, int side)
{
    Expr *outer = side ? v->upper : v->lower;
    const double number = side ? v->upper_number : v->lower_number;
    if (outer || isfinite(number)) return outer ? outer : ex_num(number);
    for (const Factor *f = g->factors; f; f = f->next) {
        if (f->original || !f->dist || !f->value || f->value->kind != EX_REF || f->value->var != v) continue;
        Expr *end = side ? f->most : f->least;
        for (int i = 0; i < f->plates.n && end; i++)
            if (ex_mentions_index(end, f->plates.index[i])) end = NULL;
        if (!end || ex_mentions(end, v)) return NULL;
        outer = !outer || outer == end ? end : ex_call2(side ? "fmax" : "fmin", outer, end);
    }
    return outer;
}

// Responses may have missing values: these are drawn first, from the model as written; or last, in a draw of their own, if nothing has seen them.
static void impute(Graph *g, Step **first, Step **last)
{
    int n = g->nvars;
    for (int i = 0; i < n; i++) {
        Var *v = g->vars[i];
        if (v->kind != VAR_DATA || !v->response) continue;
        bool tied = false;                           // elements that are constrained together cannot miss one by one
        for (const Factor *f = g->factors; f; f = f->next)
            tied |= f->dist && f->value && ex_rank(f->value) > 0 && ex_mentions(f->value, v) && f->dist->support != SUPPORT_VECTOR;
        if (tied || (v->needed_for = needed_for(g, v))) continue;
        VarKind kind = v->kind;
        v->kind = VAR_LATENT;
        for (Factor *f = g->factors; f; f = f->next)
            if (f->dist && f->value && f->value->var == v) v->discrete |= f->dist->discrete;
        bound_missing(g, v, true);
        Conditional *c = conditional_element(g, v, true);
        Expr *lower = v->discrete ? end_of_values(g, v, 0) : NULL, *upper = v->discrete ? end_of_values(g, v, 1) : NULL;
        bool finite = lower && upper;
        const bool few = finite && upper->kind == EX_NUM;        // else as many as the data say
        StepKind how = c->family ? STEP_EXACT : !few && conditional_own(g, c, true) ? STEP_OWN : finite ? STEP_ENUM : STEP_SLICE;
        bound_missing(g, v, false);
        v->kind = kind;
        Step *s = single(g, how, v, c, true, "missing values of data");
        s->imputes = true;
        s->marginal = false;
        const Reading enters = factors_of(g, v);
        for (int q = 0; q < enters.n; q++) s->marginal |= enters.factor[q]->replaced && !enters.factor[q]->original && factor_mentions(enters.factor[q], v);
        if (how == STEP_ENUM) { s->enumerate.lower = lower; s->enumerate.upper = upper; }
        v->may_be_left_out &= how != STEP_SLICE && c->nbatch == v->rank;
        if (v->left_out && (how == STEP_SLICE || c->nbatch < v->rank)) {
            Diag *m = diag(g->diags, request_of(g, v)->span, DIAG_E0513, v->name);
            diag_because(m, "its missing values are drawn last, in one draw, and %s", how == STEP_SLICE ? "there is no routine that draws from their distribution" : "its elements depend on each other");
            diag_help(m, "leave the request out: missing values are then drawn given all that they enter");
        }
        put(v->left_out ? last : first, s);
    }
}

// ---- scale moves ----

// A bound that leaves the signs alone: 0 or infinite, whatever the data say.
static bool is_cone(const Expr *e)
{
    if (e->kind == EX_NUM) return e->number == 0 || isinf(e->number);
    return e->kind == EX_CALL && e->fn == FN_if_else && !ex_unknown(e->args[0]) && is_cone(e->args[1]) && is_cone(e->args[2]);
}

static Expr *without_bounds(Expr *e, const Var *z, bool *cone)
{
    Expr *rest = ex_num(0);
    for (int i = 0; i < (e->kind == EX_ADD ? e->nargs : 1); i++) {
        Expr *t = e->kind == EX_ADD ? e->args[i] : e;
        if (t->kind == EX_CALL && t->fn == FN_WITHIN && t->args[0]->kind == EX_REF && t->args[0]->var == z)
            *cone &= is_cone(t->args[1]) && is_cone(t->args[2]);
        else rest = ex_add2(rest, t);
    }
    return rest;
}

// Latents z whose only part in the model is exp(-w z^2/2 + z * (a linear form of the block)) and a sign may be scaled together with
// the block's draw, if nothing else shifts the block (runtime/backends/linalg.h). It costs a sum of squares and mixes better.
static void find_scale_move(Graph *g, Step *s)
{
    const Reading of_block = factors_of_block(g, s->block, s->nblock);
    const int sums = block_sums(s->block, s->nblock);
    enum { UNSEEN, FREE, SHIFTS } *alone = arena_alloc(g->arena, sizeof *alone * (size_t)(of_block.n + 1));      // what a factor does to the block by itself
    for (int i = 0; i < g->nvars && !s->gaussian.scaled; i++) {
        Var *z = g->vars[i];
        if (!var_unknown(z) || (z->kind != VAR_AUXILIARY && z->kind != VAR_LATENT) || z->discrete || isfinite(z->lower_number) || isfinite(z->upper_number)) continue;
        bool ok = true, bounded = false;
        Factor *home = NULL;
        Expr *weight = NULL, *latent = NULL;
        Var **all = NEW_N(g->arena, Var *, s->nblock + 1);
        for (int k = 0; k < s->nblock; k++) {
            all[k] = s->block[k];
            ok &= s->block[k] != z;
        }
        all[s->nblock] = z;
        const Reading of_z = factors_of(g, z);
        for (int q = 0; q < of_z.n && ok; q++) {
            Factor *f = of_z.factor[q];
            if (!factor_counts_at(f, sums, false) || !factor_mentions(f, z)) continue;
            ok &= ex_mentions(f->log_density, z);                // not by way of a series
            bool cone = true;
            Expr *e = without_bounds(f->log_density, z, &cone);
            bounded |= e != f->log_density;
            ok &= cone;
            Terms t = polynomial(g->arena, e, &(Unknowns){all, s->nblock + 1, false}, 2);
            ok &= !t.failed;
            for (int k = 0; k < t.n && ok; k++) {
                Term *m = &t.term[k];
                int nz = 0;
                for (int r = 0; r < m->degree; r++) nz += m->ref[r]->var == z;
                if (m->degree == 1) ok = false;
                if (m->degree == 2 && nz == 2) {
                    ok &= !home && m->ref[0] == m->ref[1] && m->loops.n == 0 && f->value == m->ref[0] && !ex_unknown(m->coefficient) && !f->plates.guard;
                    home = f;
                    latent = m->ref[0];
                    weight = ex_mul2(ex_num(-2), m->coefficient);
                }
            }
        }
        if (!ok || !home || !bounded) continue;
        for (int q = 0; q < of_block.n && ok; q++) {
            Factor *f = of_block.factor[q];
            if (!factor_counts_at(f, sums, false) || ex_mentions(f->log_density, z)) continue;
            if (alone[q] == UNSEEN) {
                const Terms t = polynomial(g->arena, f->log_density, &(Unknowns){s->block, s->nblock, false}, 2);
                alone[q] = t.failed ? SHIFTS : FREE;
                for (int k = 0; k < t.n; k++)
                    if (t.term[k].degree == 1) alone[q] = SHIFTS;
            }
            ok = alone[q] == FREE;
        }
        for (const BlockTerm *t = s->gaussian.terms; t && ok; t = t->next)
            if (t->degree == 1) {
                Terms c = polynomial(g->arena, t->coefficient, &(Unknowns){&z, 1, false}, 1);
                ok &= !c.failed;
                for (int k = 0; k < c.n && ok; k++) ok &= c.term[k].degree == 1;
            }
        if (!ok) continue;
        bool plain = home->plates.n == latent->nargs;        // one latent an instance, in a box of plates
        for (int k = 0; k < latent->nargs && plain; k++)
            plain &= latent->args[k] == ex_index(home->plates.index[k]) && !ex_mentions_index(home->plates.index[k]->hi, home->plates.index[0]) ;
        if (!plain) continue;
        s->gaussian.scaled = home;
        s->gaussian.scaled_latent = latent;
        s->gaussian.scaled_weight = weight;
    }
}

// ---- chains ----

// A chain that grows by variables along it, and by others as its border.
typedef struct Chain { Var **var, **border; int n, nborder; const Band *band; } Chain;

static Step *chain_step(Graph *g, const Chain *c, const char *reason)
{
    Var **block = NEW_N(g->arena, Var *, c->n + c->nborder + 1);
    memcpy(block, c->var, sizeof *block * (size_t)c->n);
    memcpy(block + c->n, c->border, sizeof *block * (size_t)c->nborder);
    Step *s = gaussian(g, block, c->n + c->nborder, false, 0, reason);
    s->gaussian.band = c->band;
    return s;
}

// Whether w may join it, along the chain or at its border; then it has.
static bool join_chain(Graph *g, Chain *c, Var *w, bool along)
{
    const int n = c->n + c->nborder + 1;
    if (n > MAX_BLOCK) return false;
    Var **block = NEW_N(g->arena, Var *, n);
    int k = 0;
    for (int i = 0; i < c->n; i++) block[k++] = c->var[i];
    if (along) block[k++] = w;
    for (int i = 0; i < c->nborder; i++) block[k++] = c->border[i];
    if (!along) block[k++] = w;
    BlockTerm *terms;
    const char *why;
    const Band *band = block_terms(g, block, n, &terms, &why) ? band_of(g, block, n, c->n + along, terms) : NULL;
    if (!band) return false;
    c->band = band;
    if (along) c->var[c->n++] = w;
    else c->border[c->nborder++] = w;
    return true;
}

// A vector with an element for each of a node, such as the means of its elements.
static bool within_node(const Chain *c, const Var *w)
{
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->band->chain[i].ninner; k++)
            if (w->rank == 1 && c->var[i]->dim[c->band->chain[i].inner[k]] == w->dim[0]) return true;
    return false;
}

// A coefficient that a plate of effects beside the chain needs more: it is drawn with these.
static bool belongs_to_effects(Graph *g, Candidate *list, int n, const Growing *chain, const Candidate *w)
{
    bool *inside = NEW_N(g->arena, bool, g->nvars);
    inside[w->var->id] = true;
    for (int i = 0; i < n; i++) {
        Candidate *q = &list[i];
        if (!q->taken && q->form == ELEMENTWISE && q->var->kind == VAR_PARAMETER && !chain->inside[q->var->id] && coupled_with(g, &w->var, 1, inside, q->var)) return true;
    }
    return false;
}

// All of a block that the model asks for: what is coupled along a chain, and the rest as its border; NULL: it is none.
static Step *chain_of(Graph *g, Candidate *list, int n, Var *const *block, int m)
{
    Chain c = {.var = NEW_N(g->arena, Var *, m + 1), .border = NEW_N(g->arena, Var *, m + 1)};
    for (int i = 0; i < m; i++)
        if (find(list, n, block[i]->name)->form == CHAINED) c.var[c.n++] = block[i];
        else c.border[c.nborder++] = block[i];
    Var **all = NEW_N(g->arena, Var *, m + 1);
    memcpy(all, c.var, sizeof *all * (size_t)c.n);
    memcpy(all + c.n, c.border, sizeof *all * (size_t)c.nborder);
    BlockTerm *terms;
    const char *why;
    if (c.n == 0 || !block_terms(g, all, m, &terms, &why) || !(c.band = band_of(g, all, m, c.n, terms))) return NULL;
    return chain_step(g, &c, "the model asks for this block");
}

// The chain that begins with c; NULL: its elements are no chain.
static Step *grow_chain(Graph *g, Growing *b, Candidate *list, int n, Candidate *first)
{
    BlockTerm *terms;
    const char *why;
    Chain c = {.var = NEW_N(g->arena, Var *, MAX_BLOCK), .border = NEW_N(g->arena, Var *, MAX_BLOCK), .n = 1};
    c.var[0] = first->var;
    if (!block_terms(g, c.var, 1, &terms, &why) || !(c.band = band_of(g, c.var, 1, 1, terms))) return NULL;
    first->taken = true;
    grow_from(g, b, first->var);
    for (int border = 0; border < 2; border++)                   // what goes along the chain before what does not: a plate of effects may need a coefficient only until it joins
        for (int k = 0; k < n; k++) {
            Candidate *w = &list[k];
            if (w->taken || w->set != first->set || w->form == NOT_GAUSSIAN || (w->listed && !border) || (w->var->kind != VAR_PARAMETER && w->var->kind != VAR_LATENT) || !b->near[w->var->id] || b->n == MAX_BLOCK) continue;
            if (border ? w->var->rank > 1 || (w->form != DENSE && !within_node(&c, w->var)) : w->var->rank == 0) continue;
            if (!coupled_with(g, b->var, b->n, b->inside, w->var)) continue;
            if (border && belongs_to_effects(g, list, n, b, w)) continue;
            if (!join_chain(g, &c, w->var, !border)) continue;
            w->taken = true;
            put_inside(g, b, w->var);
            k = -1;                              // a new member may bring others
        }
    return chain_step(g, &c, c.n + c.nborder == 1 ? "its elements follow each other" : "they go along a chain");
}

// The innovations of a series, with what can stand at its border; NULL: they are not drawn so.
static Step *innovations_step(Graph *g, Candidate *list, int n, const Series *series)
{
    Innovations *in = find_innovations(g, series);
    BlockTerm *terms, *more;
    int nvars = 0;
    if (!in) return NULL;
    Var *const *vars = innovation_vars(in, &nvars), **all = NEW_N(g->arena, Var *, MAX_BLOCK + 1), **block = NEW_N(g->arena, Var *, nvars + MAX_BLOCK);
    for (int i = 0; i < nvars; i++) {
        const Candidate *c = find(list, n, vars[i]->name);
        if (!c || c->taken) return NULL;
    }
    all[0] = innovation_series(in);
    int nborder = 0;
    const Band *band = innovation_terms(g, in, NULL, 0, &terms) ? band_of(g, all, 1, 1, terms) : NULL;
    if (!band) return NULL;
    for (int i = 0; i < nvars; i++) {
        find(list, n, vars[i]->name)->taken = true;
        block[i] = vars[i];
    }
    for (int k = 0; k < n; k++) {
        Candidate *w = &list[k];
        const Var *v = w->var;
        if (w->taken || v->rank > 0 || v->discrete || isfinite(v->lower_number) || isfinite(v->upper_number) || v->constraint != CONSTRAINT_NONE || v->kind != VAR_PARAMETER || request_of(g, v)) continue;
        all[nborder + 1] = w->var;
        bool coupled = false;
        if (nborder + 2 > MAX_BLOCK || !innovation_terms(g, in, all + 1, nborder + 1, &more)) continue;
        for (const BlockTerm *t = more; t; t = t->next) coupled |= t->degree == 2 && (t->ref[0]->var == v) != (t->ref[1]->var == v);
        const Band *wider = coupled ? band_of(g, all, nborder + 2, 1, more) : NULL;
        if (!wider) continue;
        band = wider;
        terms = more;
        block[nvars + nborder++] = w->var;
        w->taken = true;
        k = -1;
    }
    Step *s = step_new(g, STEP_GAUSSIAN, vars[0]->span);
    s->block = block;
    s->nblock = nvars + nborder;
    s->gaussian.terms = terms;
    s->gaussian.band = band;
    s->gaussian.innovations = in;
    s->reason = arena_printf(g->arena, "each element of `%s` has an innovation of its own", all[0]->name);
    return s;
}

static const char *shared_reason(Graph *g, const Growing *b)
{
    return b->full ? arena_printf(g->arena, "they share a linear predictor; more than %d variables do, which are drawn in several blocks", MAX_BLOCK) : "they share a linear predictor";
}

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
        const Smooth smooth = {&block[at], 1};
        const Reading of = factors_of(g, block[at]);
        bool good = true;
        for (int q = 0; q < of.n && good; q++) good = !factor_counts(of.factor[q], block[at], true) || !ex_find(of.factor[q]->log_density, test_jump, (void *)&smooth);
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
    s->over_sum = !g->by_em && without_summed(g, s->block, s->nblock);
    s->marginal |= s->over_sum;
    if (number) {
        Step **at = &o->summed;
        while (*at && (*at)->block[0]->summed > number) at = &(*at)->next;
        s->next = *at;
        *at = s;
    } else put(s->over_sum ? s->collapsed ? &o->over_both : &o->over_sums : s->collapsed ? &o->first : otherwise, s);
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
        Step *s = gaussian(g, block, m, false, 0, m == 1 ? "its elements are coupled in pairs" : "they hang together through a linear predictor");
        s->gaussian.sparse = s->joint = g->njoint;
        s->gaussian.ndense = m - plates;
        s->gaussian.most_work = coupled ? MOST_OF_NEIGHBOURS : MOST_OF_PLATES;
        place(g, o, s, usual(o, list[i].var));
    }
}

bool schedule(Graph *g)
{
    Order o = {0};
    if (g->by_em && !expectations(g, step_of_latent, &o.expectations)) return false;
    int n = 0, nvars = g->nvars;
    Candidate *list = NEW_N(g->arena, Candidate, nvars + 1);
    for (int i = 0; i < nvars; i++) {
        Var *v = g->vars[i];
        if (!var_unknown(v) || v->integrated || v->expectation) continue;
        Candidate *c = &list[n++];
        c->var = v;
        improper(g, v);
        const Request *asked = request_of(g, v);
        c->form = asked && strcmp(asked->method, "gibbs") != 0 ? NOT_GAUSSIAN : form_of(g, v, &c->nbatch, &c->listed, &c->because, &c->terms);
        if (g->by_em && v->constraint == CONSTRAINT_SUM_TO_ZERO) c->form = NOT_GAUSSIAN;     // one coordinate at a time
    }
    // Blocks that the model asks for. One plate of effects among them is integrated out (an arrow); a second one, as in crossed
    // effects, is then coupled with itself through the first, and stands with the dense ones.
    for (const Request *r = g->by_em ? NULL : g->model->requests; r; r = r->next) {
        if (r->block != BLOCK_INFER || r->nnames < 2 || strcmp(r->method, "gibbs") != 0) continue;
        Var **block = NEW_N(g->arena, Var *, r->nnames);
        int m = 0, diagonal = -1;
        const char *why = NULL;
        for (int i = 0; i < r->nnames; i++) {
            Candidate *c = find(list, n, r->names[i]);
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
            for (int i = 0; i < m; i++) find(list, n, block[i]->name)->taken = false;          // by their values, below
            continue;
        }
        BlockTerm *t;
        if (why || !block_terms(g, block, m, &t, &why)) {
            Step *s = g->no_augment ? NULL : turns_block(g, block, m);
            if (s) {
                place(g, &o, s, &o.rest);
                continue;
            }
            Diag *d = diag(g->diags, r->span, DIAG_E0507);
            diag_because(d, "%s", why);
            continue;
        }
        Step *chain = chain_of(g, list, n, block, m);
        if (chain) {
            place(g, &o, chain, &o.rest);
            continue;
        }
        if (diagonal >= 0) { Var *v = block[diagonal]; memmove(block + diagonal, block + diagonal + 1, sizeof *block * (size_t)(m - 1 - diagonal)); block[m - 1] = v; }
        place(g, &o, gaussian(g, block, m, diagonal >= 0 && m > 1, 0, "the model asks for this block"), &o.rest);
    }
    for (const Request *r = g->by_em ? NULL : g->model->requests; r; r = r->next) {
        if (r->block != BLOCK_INFER || !asks_for_gradients(r)) continue;
        Var **block = NEW_N(g->arena, Var *, r->nnames + 1);
        int m = 0;
        for (int i = 0; i < r->nnames; i++) {
            Candidate *c = find(list, n, r->names[i]);
            if (!c || c->taken) continue;
            block[m++] = c->var;
            c->taken = true;
        }
        Step *s = m ? nuts_step(g, r, block, m, false) : NULL;
        if (s) place(g, &o, s, &o.rest);
    }
    if (g->by_nuts) {
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
        if (s) place(g, &o, s, &o.rest);
    }
    if (g->nsums && !g->by_gibbs) {
        Step *s = move_over_sums(g, list, n);
        if (s) place(g, &o, s, &o.rest);
    }
    // Coefficients that meet in a softmax.
    for (bool more = !g->no_augment && !g->by_em; more;) {
        Var **free = NEW_N(g->arena, Var *, n + 1);
        int m = 0;
        for (int i = 0; i < n; i++)
            if (!list[i].taken && list[i].form == NOT_GAUSSIAN) free[m++] = list[i].var;
        Step *s = turns_step(g, free, m);
        more = s;
        for (int i = 0; i < n && s; i++)
            for (int k = 0; k < s->nblock; k++) list[i].taken |= list[i].var == s->block[k];
        if (s) place(g, &o, s, &o.rest);
    }
    // Vectors whose sum is 0, each variable by itself: given that sum it is no part of a larger block.
    for (int i = 0; i < n; i++) {
        Candidate *c = &list[i];
        if (c->taken || c->form == NOT_GAUSSIAN || c->var->constraint != CONSTRAINT_SUM_TO_ZERO) continue;
        const int nbatch = c->var->rank - 1;
        const bool diagonal = c->form == ELEMENTWISE;
        c->form = NOT_GAUSSIAN;
        c->because = "its vectors depend on each other";
        if (c->nbatch < nbatch) continue;
        c->taken = true;
        Step *s = gaussian(g, &c->var, 1, false, nbatch, diagonal ? "its elements are independent, given that their sum is 0" : "its elements share a linear predictor, and their sum is 0");
        s->gaussian.on_plane = true;
        s->gaussian.diagonal = diagonal;
        place(g, &o, s, usual(&o, c->var));
    }
    Growing b = {.inside = NEW_N(g->arena, bool, g->nvars), .near = NEW_N(g->arena, bool, g->nvars)};
    // Innovations of recursive definitions.
    for (const Series *series = g->series; series && !g->by_em; series = series->next) {
        Step *s = innovations_step(g, list, n, series);
        if (s) place(g, &o, s, usual(&o, s->block[0]));
    }
    if (!g->by_em) joint_sets(g, list, n, &b, &o);
    // Chains, with what goes along them and their border.
    for (int i = 0; i < n && !g->by_em; i++) {
        Candidate *c = &list[i];
        if (c->taken || (c->form != CHAINED && c->form != DENSE) || c->listed || c->var->rank == 0 || (c->var->kind != VAR_PARAMETER && c->var->kind != VAR_LATENT)) continue;
        Step *s = grow_chain(g, &b, list, n, c);
        if (s) s->joint = -c->set;
        if (s) place(g, &o, s, usual(&o, c->var));
    }
    // A plate of effects with the coefficients that it is coupled to: arrow-shaped.
    for (int i = 0; i < n; i++) {
        Candidate *p = &list[i];
        if (p->taken || p->form != ELEMENTWISE || p->var->kind != VAR_PARAMETER) continue;
        grow_from(g, &b, p->var);
        for (int k = 0; k < n && !b.full; k++) {
            Candidate *w = &list[k];
            if ((w->taken && !w->set) || w->set != p->set || w->form != DENSE || w->nbatch != 0 || w->var->kind != VAR_PARAMETER) continue;
            if (b.inside[w->var->id]) continue;
            if (grow_by(g, &b, w)) k = -1;       // a new member may bring others, also those declared before it
        }
        if (b.n == 1) continue;
        p->taken = true;
        memmove(b.var, b.var + 1, sizeof *b.var * (size_t)(b.n - 1));
        b.var[b.n - 1] = p->var;
        Step *s = gaussian(g, b.var, b.n, true, 0, shared_reason(g, &b));
        s->joint = -p->set;
        place(g, &o, s, &o.rest);
    }
    // What is left of the coefficients: those that share a predictor together.
    for (int i = 0; i < n; i++) {
        Candidate *c = &list[i];
        if (c->taken || c->form != DENSE) continue;
        c->taken = true;
        grow_from(g, &b, c->var);
        if (c->nbatch == 0 || c->var->rank == 0)
            for (int k = 0; k < n && !b.full; k++) {
                Candidate *w = &list[k];
                if (w->taken || w->set != c->set || w->form != DENSE || (w->nbatch != 0 && w->var->rank != 0) || w->var->kind != c->var->kind) continue;
                if (grow_by(g, &b, w)) k = -1;       // a new member may bring others
            }
        if (b.n == 1 && c->var->rank == 0) { c->taken = false; continue; }   // one scalar: the element's own conditional
        int nbatch = c->var->rank == 0 ? 0 : c->nbatch;
        Step *s = gaussian(g, b.var, b.n, false, b.n == 1 ? nbatch : 0, b.n > 1 ? shared_reason(g, &b) : "its elements share a linear predictor");
        s->joint = -c->set;
        place(g, &o, s, usual(&o, c->var));
    }
    // Everything else, one variable at a time.
    for (int i = 0; i < n; i++) {
        Candidate *c = &list[i];
        if (c->taken) continue;
        const Joined *j = c->var->joined;
        if (j && c->var == j->var[0]) place(g, &o, joined_step(g, j), usual(&o, c->var));
        if (j && !j->where) continue;
        Step *by_counts = collapsed_step(g, c->var);
        if (by_counts) {
            place(g, &o, by_counts, &o.predictive);
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
        if (s) place(g, &o, s, is_collapsed(g, c->var) ? &o.weights : usual(&o, c->var));
        if (other) place(g, &o, other, usual(&o, c->var));
    }
    if (!collapses_served(g, o.predictive)) return false;
    if (!g->by_em) impute(g, &o.imputed, &o.left_out);
    Step *const in_order[] = {o.expectations, o.imputed, o.over_sums, o.over_both, o.summed, o.first, o.auxiliaries, o.predictive, o.weights, o.latents, o.rest};
    g->steps = NULL;
    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++) put(&g->steps, in_order[i]);
    g->last_steps = o.left_out;
    return true;
}

bool complete_sweep(Graph *g)
{
    put(&g->steps, g->last_steps);
    for (Step *s = g->steps; s; s = s->next) {
        g->nsteps++;
        if (s->conditional) find_statistics(g, s->conditional);
    }
    return diags_errors(g->diags) == 0;
}

// A block holds all elements of its variables, also those without a statement.
static void add_absent(Graph *g, Step *s)
{
    BlockTerm **last = &s->gaussian.terms;
    while (*last) last = &(*last)->next;
    for (int i = 0; i < s->nblock; i++) {
        Var *v = s->block[i];
        Loops l = {.n = v->rank};
        Expr *element = var_element(g, v, l.index), *domain = exists_at(v, l.index);
        if (!domain) continue;
        l.guard = ex_call1("!", domain);
        const Factor *f = g->factors;
        while (!f->value || f->value->kind != EX_REF || f->value->var != v) f = f->next;
        BlockTerm *t = NEW(g->arena, BlockTerm);
        *t = (BlockTerm){.factor = f, .degree = 2, .ref = {element, element}, .coefficient = ex_num(-0.5), .loops = l, .span = v->span, .absent = true};
        *last = t;
        last = &t->next;
    }
}

// Slices move all vectors whose sum is 0; those without a statement have to stay somewhere.
static void add_absent_vectors(Graph *g, Step *s)
{
    Var *v = s->block[0];
    Part *p = NEW(g->arena, Part), **last = &s->conditional->density;
    p->loops.n = v->rank;
    Expr *element = var_element(g, v, p->loops.index), *domain = exists_at(v, p->loops.index);
    if (!domain || !*last) return;
    p->loops.guard = ex_call1("!", domain);
    p->factor = (*last)->factor;
    p->value = ex_mul2(ex_num(-0.5), ex_pow(element, 2));
    while (*last) last = &(*last)->next;
    *last = p;
}

bool complete_blocks(Graph *g)
{
    for (Step *s = g->steps; s; s = s->next) {
        if (s->kind == STEP_SLICE && s->block[0]->constraint == CONSTRAINT_SUM_TO_ZERO) add_absent_vectors(g, s);
        if (s->kind == STEP_TURNS) complete_turns(g, s);
        if (s->kind != STEP_GAUSSIAN) continue;
        if (!s->gaussian.innovations) add_absent(g, s);
        const Scales *of = s->gaussian.scales;
        for (int i = 0; of && i < of->n; i++)
            if (of->var[i]->rank && of->var[i]->exists) s->gaussian.scales = NULL;      // a slice of an element that is in no statement has no end
        if (s->gaussian.on_plane || s->gaussian.band) continue;
        if (s->gaussian.nbatch == 0 && !g->by_em && !s->orbit && !s->proposal) find_scale_move(g, s);
        if (s->gaussian.sparse) find_listed(g, s);
        else if (!s->orbit && !s->proposal) find_rows(g, s);
    }
    return true;
}

// ---- printing ----

static const char *const step_names[] = {
#define X(id, name, help) name,
    STEPS(X)
#undef X
};

static void print_loops(FILE *out, const Loops *l)
{
    for (int i = 0; i < l->n; i++) {
        fprintf(out, "%s%s in ", i ? ", " : " over ", l->index[i]->name);
        ex_print(out, l->index[i]->lo);
        fputc(':', out);
        ex_print(out, l->index[i]->hi);
    }
    if (l->guard) {
        fputs(" where ", out);
        ex_print(out, l->guard);
    }
}

static void print_part(FILE *out, const Part *p, int rank)
{
    if (p->scatter) {
        fputs("[", out);
        for (int k = 0; k < MAX_RANK && p->target[k]; k++) { if (k) fputs(", ", out); ex_print(out, p->target[k]); }
        fputs("]", out);
    }
    (void)rank;
    fputs(" += ", out);
    ex_print(out, p->value);
    print_loops(out, &p->loops);
    fputc('\n', out);
}

static void print_rows(FILE *out, const Rows *r)
{
    Loops rows = {.guard = r->factor->plates.guard};
    for (int i = 0; i < r->factor->plates.n; i++) rows.index[rows.n++] = r->factor->plates.index[i];
    fputs("    by rows", out);
    if (r->count) {
        fputs(" if ", out);
        ex_print(out, r->count);
        fputs(" < ", out);
        ex_print(out, r->size);
    }
    fputs(": weight ", out);
    ex_print(out, r->weight);
    fputs(", shift ", out);
    ex_print(out, r->shift);
    print_loops(out, &rows);
    fputc('\n', out);
    for (const BlockTerm *t = r->phi; t; t = t->next) {
        fputs("        ", out);
        ex_print(out, t->ref[0]);
        fputs(": ", out);
        ex_print(out, t->coefficient);
        print_loops(out, &t->loops);
        fputc('\n', out);
    }
}

static Loops loops_of_plates(const Plates *p)
{
    Loops l = {.guard = p->guard};
    for (int i = 0; i < p->n; i++) l.index[l.n++] = p->index[i];
    return l;
}

static void print_step(FILE *out, const Step *s)
{
    fputs(step_names[s->kind], out);
    for (int i = 0; i < s->nblock; i++) fprintf(out, "%s%s", i ? ", " : " ", s->block[i]->name);
    const Conditional *c = s->conditional;
    if (s->kind == STEP_TURNS) {
        fputs(", categories ", out);
        ex_print(out, s->turns->lo);
        fputc(':', out);
        ex_print(out, s->turns->hi);
        fprintf(out, " in turn    (%s)\n", s->reason);
        for (const Softmax *m = s->turns->softmax; m; m = m->next) {
            fprintf(out, "    latent %s: polya_gamma(", m->latent->name);
            ex_print(out, m->count);
            fputs(", ", out);
            ex_print(out, ex_sub(m->own, m->offset));
            fputs(")\n", out);
        }
        fputs("    ", out);
        print_step(out, s->turns->draw);
        if (s->turns->shift) {
            fputs("    ", out);
            print_step(out, s->turns->shift);
        }
        return;
    }
    if (s->kind == STEP_GAUSSIAN) {
        if (s->gaussian.arrow) fprintf(out, ", arrow");
        if (s->gaussian.band) fprintf(out, ", band of lag %d", s->gaussian.band->lag);
        if (s->gaussian.sparse) fprintf(out, ", sparse");
        if (s->gaussian.scaled) fprintf(out, ", with a scale move of %s", s->gaussian.scaled_latent->var->name);
        if (s->gaussian.nbatch) fprintf(out, ", %d leading dimension%s in parallel", s->gaussian.nbatch, s->gaussian.nbatch > 1 ? "s" : "");
        fprintf(out, "    (%s)\n", s->reason);
        for (const BlockTerm *t = s->gaussian.terms; t; t = t->next) {
            fputs("    ", out);
            ex_print(out, t->ref[0]);
            if (t->degree == 2) { fputs(" * ", out); ex_print(out, t->ref[1]); }
            fputs(": ", out);
            ex_print(out, t->coefficient);
            print_loops(out, &t->loops);
            fputc('\n', out);
        }
        if (s->gaussian.rows) print_rows(out, s->gaussian.rows);
        for (const Rows *r = s->gaussian.sparse ? s->gaussian.listed : NULL; r; r = r->next) print_rows(out, r);
        return;
    }
    if (s->over_sum) fprintf(out, ", unknowns summed out");
    for (const Predictive *p = s->predictive; p; p = p->next) fprintf(out, "%s%s%s", p == s->predictive ? ", " : " and ", p->weights->name, p->next ? "" : " integrated out");
    if (s->kind == STEP_PAIR) {
        static const char *const names[] = {"constant", "linear", "square"};
        fprintf(out, ", %s integrated out, then both%s    (%s)\n", s->pair->coefficient->var->name, !c->var->rank ? "" : c->nbatch == c->var->rank ? ", elements in parallel" : ", element by element", s->reason);
        for (const Part *p = s->pair->part; p; p = p->next) {
            if (p->which < 3) fprintf(out, "    %s", names[p->which % 3]);
            else fprintf(out, "    at %d: %s", s->pair->first + p->which / 3 - 1, names[p->which % 3]);
            print_part(out, p, c->var->rank);
        }
        return;
    }
    if (s->kind == STEP_NUTS) {
        fprintf(out, "%s    (%s)\n", s->collapsed ? ", auxiliaries integrated out" : "", s->reason);
        for (int i = 0; i < s->nuts.n; i++) {
            fputs("    density += ", out);
            ex_print(out, s->nuts.factor[i]->log_density);
            const Loops over = loops_of_plates(&s->nuts.factor[i]->plates);
            print_loops(out, &over);
            fputc('\n', out);
        }
        return;
    }
    if (c->family) {
        fprintf(out, ": %s%s", c->truncated ? "truncated " : "", c->family->name);
        if (c->family->power) fprintf(out, "(%g)", c->power);
    }
    if (s->collapsed) fputs(", auxiliaries integrated out", out);
    if (s->white) fprintf(out, ", with %s", s->white->vector->name);
    if (s->kind == STEP_ELLIPTICAL) fputs(c->var->rank > 1 ? ", vector by vector" : ", whole", out);
    else if (c->array || c->nbatch == c->var->rank) fputs(c->var->rank ? ", elements in parallel" : "", out);
    else if (colours_of(c) > 1 && !(s->imputes && c->lattice)) fprintf(out, ", %d colours", colours_of(c));
    else if (by_data_colours(s)) fputs(", colours by data", out);
    else fputs(", element by element", out);
    fprintf(out, "    (%s)\n", s->reason);
    if (s->description && (c->family || c->own)) {
        fprintf(out, "    %s\n", s->description->law);
        for (int k = 0; k < s->description->n; k++) fprintf(out, "    %s\n", s->description->line[k]);
    }
    const char *names[MAX_NATURAL] = {"", "", "", ""};
    int i = 0;
    if (c->family) for (const Natural *n = c->family->natural; n && i < MAX_NATURAL; n = n->next) names[i++] = n->name;
    for (const Part *p = c->natural; p; p = p->next) { fprintf(out, "    %s", names[p->which]); print_part(out, p, c->var->rank); }
    for (const Part *p = c->bounds; p; p = p->next) { fprintf(out, "    %s", p->which ? "upper" : "lower"); print_part(out, p, c->var->rank); }
    if (!c->family) for (const Part *p = c->density; p; p = p->next) { fprintf(out, "    density"); print_part(out, p, c->var->rank); }
}

void schedule_print(FILE *out, const Graph *g)
{
    for (const Step *s = g->steps; s; s = s->next) print_step(out, s);
}
