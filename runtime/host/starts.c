// starts.c -- where HMC updates begin.
//
// A random start inside all supports may have no density: a covariance that is not positive definite, a variance that a recursion makes
// negative, a predictor so large that its exponential is infinite. feasible.c finds a start for factors that it can evaluate over ranges of
// their elements. For others places are tried, in the coordinates without bounds, until the density and its gradient are finite (as Stan
// does): first farther out than random starts are, then nearer to 0.
//
// A block is looked at once, before its first trajectory, the other unknowns being where they are then. Under method selection Gibbs
// updates come first: such a block is looked at before the first sweep. A slice sampler whose start has no density goes anywhere that has
// one, in one coordinate, and the next from there: a rate of an equation to 10^14.
#include "chains.h"
#include "fields.h"
#include "messages.h"
#include "starts.h"
#include "../device/nuts.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TRIES = 100, TRIES_ALIKE = 20 };  // so many within the same distance, which is then halved
static const double tried_within = 2;
// of streams that neither sweeps nor initial values use (initial.c, feasible.c)
static const uint64_t STARTING_SWEEP = ((uint64_t)1 << 36) - 3;

static void *field_of(const GmRun *one, uint64_t offset)
{
    return *(void *const *)((const char *)one->state + (size_t)one->chain * one->state_size + offset);
}

GmMoving gm_moving(GmRun *one, const GmHmc *of, void (*density)(GmRun *))
{
    const Sweep at = {.seed = one->seed, .chain = (uint32_t)(one->first_chain + one->chain), .sweep = STARTING_SWEEP};
    return (GmMoving){.run = one,
                      .density = density,
                      .n = (long)of->coordinates,
                      .position = field_of(one, of->position),
                      .value = field_of(one, of->value),
                      .gradient = field_of(one, of->gradient),
                      .random = stream(at, of->var, 0)};
}

static bool is_finite_here(const GmMoving *m)
{
    m->density(m->run);
    bool finite = isfinite(m->value[0]);
    for (long i = 0; i < m->n && finite; i++) finite = isfinite(m->gradient[i]);
    return finite;
}

bool gm_moving_stands(GmMoving *m)
{
    if (is_finite_here(m)) return true;
    const size_t bytes = sizeof(double) * (size_t)m->n;
    double *first = memcpy(gm_alloc((size_t)m->n, sizeof *first), m->position, bytes);
    bool found = false;
    for (int k = 0; k < MOST_TRIES && !found; k++) {
        const double within = tried_within / (1 << k / TRIES_ALIKE);
        for (long i = 0; i < m->n; i++) m->position[i] = within * (2 * uniform_open(&m->random) - 1);
        found = is_finite_here(m);
    }
    if (!found) memcpy(m->position, first, bytes);
    free(first);
    return found;
}

int gm_find_start(GmRun *one, const GmHmc *of, void (*density)(GmRun *))
{
    const Nuts *machine = nuts_of(field_of(one, of->machine), (long)of->coordinates);
    if (machine->known || of->selection) return 0;
    GmMoving m = gm_moving(one, of, density);
    gm_moving_stands(&m);
    return 0;
}

static int find_start_of_updates(GmRun *one, const GmHmc *of, void (*density)(GmRun *))
{
    if (of->selection) {
        GmMoving m = gm_moving(one, of, density);
        gm_moving_stands(&m);
    }
    return 1;
}

void gm_find_starts_of_updates(const GmModel *model, GmRun *run)
{
    run->seeking = 1;
    run->instead = find_start_of_updates;
    for (int k = 0; k < model->n_updates; k++)
        if (model->update_hmc && model->update_hmc(k)) model->update(run, k);
    run->seeking = 0;
    run->instead = NULL;
}

// ---- which density it is that is not finite ----

bool gm_copy_chain(const GmModel *model, const GmMemory *m, const GmData *d, int chain, int requests, GmMemory *out)
{
    if (!gm_memory_open(out, model, d, 1, requests, false)) return false;
    for (int f = 0; f < model->n_state; f++) {
        const long size = gm_shape_size(&m->shape[f]);
        const void *from = gm_state_array(model, m, chain, f);
        void *to = gm_state_array(model, out, 0, f);
        if (from != to && size == gm_shape_size(&out->shape[f]))  // data without missing values are not copied
            memcpy(to, from, (size_t)size * gm_size_of_element(model->state[f].type));
    }
    return true;
}

char *gm_infinite_log_lik(const GmModel *model, const GmMemory *m, const GmData *d, const GmRun *run, int chain)
{
    GmMemory copy;
    char *says = NULL;
    if (!model->derive_chain || !model->observed || !gm_copy_chain(model, m, d, chain, GM_LOG_LIK, &copy)) return NULL;
    GmRun one = *run;
    one.state = copy.state;
    one.chain = 0;
    one.first_chain += chain;
    one.requests = GM_LOG_LIK;
    model->derive_chain(&one);
    for (const GmObserved *o = model->observed; o->where && !says; o++) {
        const int f = o->log_lik - 1;
        // Where elements have no likelihood, because they are missing or nothing names them, NaN says nothing.
        if (f < 0 || model->state[f].partial || (o->data && d->missing[o->data - 1].count > 0)) continue;
        const double *x = gm_state_array(model, &copy, 0, f);
        for (long i = 0; i < gm_shape_size(&copy.shape[f]) && !says; i++)
            if (!isfinite(x[i])) {
                char *name = gm_element_name(o->name, copy.shape[f].rank, copy.shape[f].dim, i);
                const bool of_vectors = o->data && model->data[o->data - 1].rank > copy.shape[f].rank;
                says = gm_format("the log density of %s is %s (%s)%s", name,
                                 isnan(x[i]) ? "NaN, not a number"
                                 : x[i] > 0  ? "infinite"
                                             : "minus infinity",
                                 o->where, of_vectors && !(x[i] > 0) ? "; a matrix that it depends on may not be positive definite" : "");
                free(name);
            }
    }
    gm_memory_close(&copy);
    return says;
}
