// nuts.c -- blocks that are updated by HMC or NUTS: from unconstrained coordinates to variables, the log density there, and its gradient.
//
//   position          q, end to end: the variables of the block in coordinates without bounds
//   place             x = T(q), into the variables
//   density           log p(x) + log |dT/dq|; d log p / dx, summed factor by factor; then by the chain rule d/dq
//
// Needs: graph/algebra/gradient.c.     Source of the transforms: front/support.def (Stan Reference Manual, "Constraint Transforms").
#include <math.h>
#include "hmc.h"

// 0 is what a setting is that is not written.
static void set_number(Launch *l, const char *name, double value)
{
    if (value == 0) return;
    with_number(l, value);
    as_setting(l, name);
}

// What is known of each unknown before anything is made of it.
static HmcBlock block_of(Lower *p, const Update *s)
{
    HmcBlock m = {.p = p, .update = s, .stem = block_name(p, s->block, s->nblock)};
    Arena *a = p->g->arena;
    m.offset = NEW_N(a, Expr *, s->nblock);
    m.ends = NEW_N(a, Ends, s->nblock);
    m.order = NEW_N(a, int, s->nblock);
    m.tied = NEW_N(a, Tied, s->nblock);
    m.centring = NEW_N(a, Centring, s->nblock);
    m.size = ex_num(0);
    for (int i = 0; i < s->nblock; i++) {
        const Var *v = s->block[i];
        m.tied[i] = tied_new(p, v);
        m.size = ex_add2(m.size, coordinates_of(&m, v));
        m.ends[i] = (Ends){.number = {v->lower_number, v->upper_number}};
    }
    m.moving = block_with_series(p->g, s->block, s->nblock, s->nuts.sums);
    for (int i = 0; i < s->nblock; i++)
        if (is_angle(&m, s->block[i])) m.ends[i] = (Ends){.number = {-INFINITY, INFINITY}, .is_angle = true};
    for (int i = 0; i < s->nblock && s->nuts.step == 0; i++) m.centring[i].priors = priors_of(&m, s->block[i], &m.centring[i].root);
    m.adjoint = NEW_N(a, Var *, m.moving.n + 1);
    return m;
}

// For readers of the program: what is beside such arrays in State.
static const char *of_trajectories(const Update *s) { return s->nuts.steps || s->nuts.chees ? "of HMC" : "of NUTS"; }

// The arrays of the block: factored matrices, adjoints of series, position, gradient, density, and room for trajectories.
static void make_arrays(HmcBlock *m, Expr *room)
{
    Lower *p = m->p;
    for (int i = 0; i < m->moving.nfactored; i++) {
        Factored *of = &m->moving.factored[i];
        int k = 0;
        while (m->moving.var[k] != of->var) k++;
        m->moving.var[k] = of->var = work_array(p, ROLE_BLOCK, words(p, "%s_%s", of->var->name, m->stem), 2, of->var->dim);
    }
    for (int i = m->update->nblock; i < m->moving.n; i++) {
        const Var *v = m->moving.var[i];
        m->adjoint[i] = work_array(p, ROLE_BLOCK, words(p, "adjoint_%s", v->name), v->rank, v->dim);
    }
    m->position = work_array(p, ROLE_BLOCK, array_name(m, "position"), 1, &m->size);
    m->gradient = work_array(p, ROLE_BLOCK, array_name(m, "gradient"), 1, &m->size);
    m->density = work_array(p, ROLE_BLOCK, array_name(m, "log_density"), 1, (Expr *[]){ex_num(2)});
    m->machine = work_array(p, ROLE_TUNING, array_name(m, "nuts"), 1, &room);
    Var *const own[] = {m->position, m->gradient, m->density, m->machine};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) own[i]->lowered.note = of_trajectories(m->update);
}

// The launches that the sampler calls for itself: of the density, and of the Jacobian of its coordinates. Gives: what puts the position in
// its places.
static const Kernel *put_launches_of_density(HmcBlock *m, UpdateCode *code)
{
    Lower *p = m->p;
    put_ends(m);
    put_enter(m);
    Launches *const sweep = p->launches;
    code->density_name = kernel_name(p, words(p, "density_of_%s", m->stem));
    p->launches = &code->density;
    Prepared *first = prepare_all(m);
    const Kernel *place = put_place(m);
    launch_team(p, place);
    put_log_density(m, first);
    code->jacobian_name = words(p, "jacobian_of_%s", m->stem);
    p->launches = &code->jacobian;
    put_jacobian(m);
    p->launches = sweep;
    return place;
}

// The names of unknowns that the density has summed out; "": none.
static const char *summed_out(Lower *p, const Update *s)
{
    const char *summed = "";
    for (int i = 0; i < p->g->nvars; i++) {
        const Var *v = p->g->vars[i];
        if (s->over_sum && !s->selection && v->summing.summed && v->summing.summed <= s->nuts.sums)
            summed = words(p, "%s%s%s", summed, *summed ? ", " : "", v->name);
    }
    for (int i = 0; s->selection && i < s->selection->nsummed; i++)
        summed = words(p, "%s%s%s", summed, *summed ? ", " : "", s->selection->summed[i]->name);
    return summed;
}

// Settings of the sampler, where they differ from those that it has by itself.
static void put_settings(const HmcBlock *m, Launch *l, const UpdateCode *code)
{
    static const char *const metrics[] = {
#define METRIC(id, word, what) "METRIC_" #id,
#include "../../front/methods.def"
    };
    Lower *p = m->p;
    const Update *s = m->update;
    // nothing else changes what the density reads: at the place that the last trajectory ended in, nothing is evaluated again
    bool alone = true, imputed = false;
    for (const Update *o = p->g->updates; o; o = o->next) {
        alone &= o == s || o->imputes || (s->selection && o->selection == s->selection);
        imputed |= o->imputes;
    }
    if (alone) with_function(l, imputed ? "GM_UNLESS_MISSING" : "GM_ALONE"), as_setting(l, "alone");
    set_number(l, "marginal", s->collapsed || s->over_sum);
    set_number(l, "selection", s->selection ? s->selection->number : 0);
    if (s->nuts.step == 0) set_number(l, "accept", s->nuts.accept);
    if (s->nuts.steps == 0 && !s->nuts.chees) set_number(l, "depth", s->nuts.depth);
    set_number(l, "steps", s->nuts.steps);
    set_number(l, "step", s->nuts.step);
    set_number(l, "walls", s->nuts.wall ? span_line(s->nuts.wall->span) : 0);
    if (s->nuts.anneal > 1) set_number(l, "anneal", s->nuts.anneal);
    const char *summed = summed_out(p, s);
    if (*summed) with_string(l, summed), as_setting(l, "summed");
    if (code->jacobian.first) with_function(l, code->jacobian_name), as_setting(l, "jacobian");
    if (m->shares) with_function(l, words(p, "gm_of(%s)", m->next_shares->name)), as_setting(l, "standardised");
    if (s->nuts.named && !s->nuts.steps) with_function(l, s->nuts.chees ? "GM_BY_CHEES" : "GM_BY_NUTS"), as_setting(l, "by");
    if (s->nuts.metric) with_function(l, metrics[s->nuts.metric]), as_setting(l, "metric");
}

void update_nuts(Lower *p, const Update *s, UpdateCode *code)
{
    HmcBlock m = block_of(p, s);
    m.last_total = &m.totals;
    m.last_pending = &m.pending;
    Expr *room = ex_add2(ex_num(NUTS_HEADER_ROOM), ex_mul2(ex_num(NUTS_VECTORS_ROOM), m.size));
    make_arrays(&m, room);
    // the runtime names columns of the draws by what follows `moves_` (runtime/host/draws.c)
    Var *diagnostics = work_array(p, ROLE_DIAGNOSTICS, words(p, "moves_%s", s->block[0]->name), 1, (Expr *[]){ex_num(NUTS_DIAGNOSTICS)});
    diagnostics->lowered.note = of_trajectories(s);
    const Kernel *place = put_launches_of_density(&m, code);
    const char *names = "";
    for (int i = 0; i < s->nblock; i++) names = words(p, "%s%s%s", names, i ? ", " : "", s->block[i]->name);
    code->machine = m.machine;
    code->diagnostics = diagnostics;
    Launch *l = launch(p, LAUNCH_NUTS, NULL);
    with_function(l, code->density_name);
    with_stream(l, s->block[0]);
    with_name(l, m.machine);
    with_name(l, m.position);
    with_name(l, m.density);
    with_name(l, m.gradient);
    with_name(l, diagnostics);
    with_string(l, names), as_setting(l, "name");
    with_extent(l, m.size), as_setting(l, "coordinates");
    with_extent(l, room), as_setting(l, "room");
    put_settings(&m, l, code);
    launch_team(p, place);
}
