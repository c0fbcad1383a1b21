// starts.c -- where moves along gradients begin: at a draw of the normal distribution that Pathfinder finds on the way up from the random start (pathfinder.c), whose variances are the first
// metric.
//
// Each chain has its own random start, and so its own path: chains that do not find the same distribution still tell by their R-hat. Where the random start has no density, others are
// tried, in the coordinates without bounds.
//
// A block is looked at once, when it is moved for the first time, the other unknowns being where they are then. What the user says of the start stays.
#include "ascent.h"
#include "host.h"
#include "../device/nuts.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TRIES = 100, MOST_CLIMBED = 50 };           // random starts; evaluations on the way up
static const double tries_within = 2;                   // of zero
static const uint64_t STARTING_SWEEP = ((uint64_t)1 << 36) - 3;      // streams that neither sweeps nor initial values use (initial.c, feasible.c)

double gm_move_density(void *with, const double *x, double *gradient)
{
    const GmMoving *m = with;
    memcpy(m->position, x, sizeof *x * (size_t)m->n);
    m->density(m->run);
    memcpy(gradient, m->gradient, sizeof *gradient * (size_t)m->n);
    return m->value[0];
}

GmMoving gm_moving(GmRun *one, const GmMove *of, void (*density)(GmRun *))
{
    const char *s = (const char *)one->state + (size_t)one->chain * gm_model.state_size;
    return (GmMoving){ .run = one, .density = density, .n = (long)of->n, .position = *(double *const *)(s + of->position), .value = *(double *const *)(s + of->value),
                       .gradient = *(double *const *)(s + of->gradient) };
}

// Is there a density where the block stands, or at one of some random places? The position is the one found, or as it was.
static bool stands(GmMoving *m, Stream *g)
{
    double *x = gm_alloc((size_t)m->n, sizeof *x), *gradient = gm_alloc((size_t)m->n, sizeof *gradient);
    memcpy(x, m->position, sizeof *x * (size_t)m->n);
    bool found = false;
    for (int k = 0; k <= MOST_TRIES && !found; k++) {
        double *at = gradient;                          // both are filled by the same call: the place is copied first
        for (long i = 0; i < m->n; i++)
            at[i] = k ? tries_within * (2 * uniform_open(g) - 1) : x[i];
        memcpy(m->position, at, sizeof *at * (size_t)m->n);
        m->density(m->run);
        found = isfinite(m->value[0]);
        for (long i = 0; i < m->n && found; i++)
            found = isfinite(m->gradient[i]);
    }
    if (!found)
        memcpy(m->position, x, sizeof *x * (size_t)m->n);
    free(x);
    free(gradient);
    return found;
}

int gm_start_move(GmRun *one, const GmMove *of, void (*density)(GmRun *))
{
    const char *s = (const char *)one->state + (size_t)one->chain * gm_model.state_size;
    Nuts *machine = nuts_of(*(wide *const *)(s + of->machine), (long)of->n);
    if (machine->known || machine->guessed || one->sweep >= one->warmup || of->n == 0)
        return 0;
    GmMoving m = gm_moving(one, of, density);
    Stream g = stream((Sweep){ .seed = one->seed, .chain = (uint32_t)(one->first_chain + one->chain), .sweep = STARTING_SWEEP }, of->var, 0);
    machine->guessed = -1;
    if (!stands(&m, &g))
        return 0;
    double *x = gm_alloc((size_t)m.n, sizeof *x), *variances = gm_alloc((size_t)m.n, sizeof *variances);
    memcpy(x, m.position, sizeof *x * (size_t)m.n);
    GmPath path = { .x = x, .variances = variances };
    if (gm_pathfinder(m.n, gm_move_density, &m, &g, MOST_CLIMBED, &path)) {
        double *metric = nuts_metric(machine);
        for (long i = 0; i < m.n; i++)
            metric[i] = clamp(variances[i], NUTS_LEAST, NUTS_MOST);
        machine->guessed = 1;
    }
    memcpy(m.position, x, sizeof *x * (size_t)m.n);
    free(x);
    free(variances);
    return 0;
}
