// starts.c -- where moves along gradients begin.
//
// A random start inside all supports may have no density: a covariance that is not positive definite, a variance that a recursion makes negative, a predictor so large that its exponential
// is infinite. feasible.c finds a start for factors that it can read over ranges of their elements; for others places are tried, in the coordinates without bounds, first farther out than
// random starts are and then nearer to 0, until the density and its gradient are finite (as Stan does).
//
// A block is looked at once, before its first move, the other unknowns being where they are then. Where steps compete with moves nothing is tried: steps begin.
#include "starts.h"
#include "../device/nuts.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TRIES = 100, TRIES_ALIKE = 20 };            // so many within the same distance, which is then halved
static const double tried_within = 2;
static const uint64_t STARTING_SWEEP = ((uint64_t)1 << 36) - 3;      // of streams that neither sweeps nor initial values use (initial.c, feasible.c)

static void *field_of(const GmRun *one, uint64_t offset)
{
    return *(void *const *)((const char *)one->state + (size_t)one->chain * gm_model.state_size + offset);
}

GmMoving gm_moving(GmRun *one, const GmMove *of, void (*density)(GmRun *))
{
    const Sweep at = { .seed = one->seed, .chain = (uint32_t)(one->first_chain + one->chain), .sweep = STARTING_SWEEP };
    return (GmMoving){ .run = one, .density = density, .n = (long)of->coordinates, .position = field_of(one, of->position), .value = field_of(one, of->value),
                       .gradient = field_of(one, of->gradient), .random = stream(at, of->var, 0) };
}

static bool is_finite_here(const GmMoving *m)
{
    m->density(m->run);
    bool finite = isfinite(m->value[0]);
    for (long i = 0; i < m->n && finite; i++)
        finite = isfinite(m->gradient[i]);
    return finite;
}

bool gm_moving_stands(GmMoving *m)
{
    if (is_finite_here(m))
        return true;
    const size_t bytes = sizeof(double) * (size_t)m->n;
    double *first = memcpy(gm_alloc((size_t)m->n, sizeof *first), m->position, bytes);
    bool found = false;
    for (int k = 0; k < MOST_TRIES && !found; k++) {
        const double within = tried_within / (1 << k / TRIES_ALIKE);
        for (long i = 0; i < m->n; i++)
            m->position[i] = within * (2 * uniform_open(&m->random) - 1);
        found = is_finite_here(m);
    }
    if (!found)
        memcpy(m->position, first, bytes);
    free(first);
    return found;
}

int gm_find_start(GmRun *one, const GmMove *of, void (*density)(GmRun *))
{
    const Nuts *machine = nuts_of(field_of(one, of->machine), (long)of->coordinates);
    if (machine->known || of->competition)
        return 0;
    GmMoving m = gm_moving(one, of, density);
    gm_moving_stands(&m);
    return 0;
}
