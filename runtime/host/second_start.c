// second_start.c -- other starts, where the density is 0 at the first and no sweep leads away from there.
//
// feasible.c looks at factors by ranges of the unknowns, and sees neither what a recursion or a differential equation makes of them nor
// what overflows. What it cannot see shows in the log joint density, once the program is set up. A chain for which that is not finite is
// given one sweep for trial, whose draws are forgotten: most updates find a density from anywhere. If the sweep ends in a fault the chain
// begins elsewhere:
//
//   draw again       all unknowns at random, first within 2 of zero on the unbounded scale and then nearer
//   change           some of them, from the place with the fewest factors that are 0, as long as there are no more of these (feasible.c:
//                    min-conflicts)
//
// Factors are counted with the recursions and solutions as computed there. All chains that have a density, or come to one by themselves,
// stay as they were.
#include "fields.h"
#include "messages.h"
#include "factors.h"
#include "starts.h"
#include "../backends/linalg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES_ALIKE = 20, LEAST_CHANGES = 200, MOST_CHANGES = 20000 };
static const double drawn_within = 2;
static const double most_work = 1e7;  // changes times unknowns and factors
static const double most_kept = 1e9;  // bytes of State that are put aside for a trial
// streams that neither sweeps nor other starts use (initial.c, starts.c)
static const uint64_t CHANGING_SWEEP = ((uint64_t)1 << 36) - 4;
static const uint64_t DRAWING_SWEEP = ((uint64_t)1 << 36) - ((uint64_t)1 << 20);

// what is drawn again by itself: an element, or a vector whose elements are constrained together
typedef struct Unit {
    int field;
    long first, n;
} Unit;

typedef struct StartPlace {
    const GmModel *model;
    GmMemory *memory;
    const GmData *data;
    const Factors *factors;
    GmRun run;
    Box box;
    int chain;
    Unit *unit;
    long n_units;
    size_t bytes;  // of all unknowns
    Stream random;
    uint64_t sweep;  // of the next draw
} StartPlace;

// ---- whether there is a density ----

static bool is_zero(const Formula *f, Box *b, void *with)
{
    long *n = with;
    *n += !range_possible(b, formula_range(f, b));
    return true;
}

static long zeros(StartPlace *p)
{
    long n = 0;
    for (int k = 0; k < p->factors->n; k++)
        if (!p->model->factors[k].if_missing) formula_visit(&p->factors->formula[k], &p->box, is_zero, &n);
    return n;
}

static bool has_density(const GmModel *model, const GmRun *run, int chain)
{
    int tried = 0;
    GmRun one = *run;
    one.tried = &tried;
    return isfinite(model->log_joint(&one, chain)) && !tried;
}

// 0: there is one at the chain's state. Else 1, and the factors that are 0 there.
static double lacks(StartPlace *p) { return has_density(p->model, &p->run, p->chain) ? 0 : 1 + (double)zeros(p); }

// ---- the unknowns of a chain ----

static bool moves(const GmField *f)
{
    switch (f->constraint) {
    case GM_COVARIANCE:
    case GM_CORRELATION:
    case GM_CHOLESKY_COV:
    case GM_CHOLESKY_CORR: return false;
    case GM_ANY:
    case GM_COUNTS:
    case GM_SIMPLEX:
    case GM_UNIT_VECTOR:
    case GM_SUM_TO_ZERO:
    case GM_ORDERED:
    case GM_POSITIVE_ORDERED: break;
    }
    return gm_is_unknown(f->role);
}

static size_t bytes_of(const GmModel *model, const GmMemory *m, int f)
{
    return (size_t)gm_shape_size(&m->shape[f]) * gm_size_of_element(model->state[f].type);
}

static void place_open(StartPlace *p)
{
    const GmModel *model = p->model;
    long room = 0;
    for (int f = 0; f < model->n_state; f++) {
        const GmField *field = &model->state[f];
        const GmShape *shape = &p->memory->shape[f];
        const long size = moves(field) ? gm_shape_size(shape) : 0;
        const long n = field->constraint == GM_ANY || field->constraint == GM_COUNTS || shape->rank == 0 ? 1 : shape->dim[shape->rank - 1];
        p->bytes += size ? bytes_of(model, p->memory, f) : 0;
        for (long first = 0; first < size; first += n) {
            if (p->n_units == room) p->unit = gm_grow(p->unit, (size_t)(room = 2 * room + 64), sizeof *p->unit);
            p->unit[p->n_units++] = (Unit){f, first, n};
        }
    }
    p->box = (Box){.model = model, .memory = p->memory, .data = p->data, .chain = p->chain};
    p->box.lo = gm_alloc((size_t)model->n_state, sizeof *p->box.lo);
    p->box.hi = gm_alloc((size_t)model->n_state, sizeof *p->box.hi);
}

static void place_close(StartPlace *p)
{
    free(p->unit);
    free(p->box.lo);
    free(p->box.hi);
    free(p->box.read);
}

static void copy_unknowns(const StartPlace *p, char *kept, bool back)
{
    for (int f = 0; f < p->model->n_state; f++) {
        if (!moves(&p->model->state[f])) continue;
        const size_t bytes = bytes_of(p->model, p->memory, f);
        void *array = gm_state_array(p->model, p->memory, p->chain, f);
        memcpy(back ? array : kept, back ? kept : array, bytes);
        kept += bytes;
    }
}

static void draw(StartPlace *p, const Unit *u, double radius)
{
    gm_draw_start_again(p->model, p->memory, &p->run, p->chain, u->field, u->first, u->n, radius, p->sweep);
}

// ---- the search ----

// One unknown, or one in two, four, ... of them, at a distance of its own.
static void change(StartPlace *p)
{
    const double radius = exp(7 * uniform_open(&p->random) - 2);
    p->sweep++;
    if (uniform_open(&p->random) < 0.75) {
        const long k = (long)(uniform_open(&p->random) * (double)p->n_units);
        draw(p, &p->unit[k < p->n_units ? k : 0], radius);
        return;
    }
    const double share = exp2(-floor(uniform_open(&p->random) * (1 + log2((double)p->n_units))));
    for (long k = 0; k < p->n_units; k++)
        if (uniform_open(&p->random) < share) draw(p, &p->unit[k], radius);
}

// Whether a place with a density was found. If not the chain is left where the fewest factors are 0.
static bool search(StartPlace *p)
{
    char *best = gm_alloc(p->bytes + 1, 1);
    copy_unknowns(p, best, false);
    double least = lacks(p);
    for (int k = 0; k < GM_SECOND_STARTS && least > 0 && p->n_units > 0; k++) {
        p->sweep++;
        for (long u = 0; u < p->n_units; u++) draw(p, &p->unit[u], drawn_within / (1 << k / TRIES_ALIKE));
        const double here = lacks(p);
        if (here < least) {
            least = here;
            copy_unknowns(p, best, false);
        }
    }
    const double work = most_work / (double)(p->n_units + zeros(p) + 1);
    const long changes = work > MOST_CHANGES ? MOST_CHANGES : work < LEAST_CHANGES ? LEAST_CHANGES : (long)work;
    for (long k = 0; k < changes && least > 0 && p->n_units > 0; k++) {
        copy_unknowns(p, best, true);
        change(p);
        const double here = lacks(p);
        if (here <= least) {
            least = here;
            copy_unknowns(p, best, false);
        }
    }
    copy_unknowns(p, best, true);
    free(best);
    return lacks(p) == 0;
}

// ---- all chains ----

// Whether the first sweep of a chain that stands where there is no density ends in a fault.
static bool fails(const GmModel *model, const GmRun *run, int chain, const GmOptions *o)
{
    int tried = 0;
    GmRun one = *run;
    GmSelected *selected = run->selected ? gm_alloc((size_t)model->n_selections + 1, sizeof *selected) : NULL;
    if (selected) memcpy(selected, run->selected + chain * model->n_selections, (size_t)model->n_selections * sizeof *selected);
    one.state = (char *)run->state + (size_t)chain * run->state_size;
    one.chains = 1;
    one.first_chain += chain;
    one.chain = 0;
    one.sweep = 0;
    one.batch = 1;
    one.selected = selected;
    one.metrics = NULL;
    one.together = NULL;
    one.n_together = 0;
    one.after = NULL;
    one.instead = gm_find_start;
    one.inner_threads = one.threads = o->threads;
    one.tried = &tried;
    model->sweep(&one);
    free(selected);
    return tried;
}

int gm_second_starts(const GmModel *model, GmMemory *m, const GmData *d, const GmOptions *o, GmRun *run)
{
    bool *lost = gm_alloc((size_t)m->chains, sizeof *lost);
    int n = 0;
    gm_linalg_threads(1);
#pragma omp parallel for num_threads(o->threads) schedule(dynamic) reduction(+ : n)
    for (int c = 0; c < m->chains; c++) {
        lost[c] = !has_density(model, run, c);
        n += lost[c];
    }
    gm_linalg_threads(o->threads);
    GmKept *kept = n ? gm_memory_keep(m, most_kept) : NULL;
    for (int c = 0; c < m->chains && n; c++) lost[c] = lost[c] && kept && fails(model, run, c, o);
    if (kept) gm_memory_back(m, kept);
    n = 0;
    for (int c = 0; c < m->chains; c++) n += lost[c];
    Factors factors = {0};
    if (n) factors_open(&factors, model, m, d, true);
    gm_linalg_threads(1);
#pragma omp parallel for num_threads(o->threads) schedule(dynamic)
    for (int c = 0; c < m->chains; c++) {
        if (!lost[c]) continue;
        const Sweep at = {.seed = run->seed, .chain = (uint32_t)(run->first_chain + c), .sweep = CHANGING_SWEEP};
        StartPlace p = {.model = model,
                        .memory = m,
                        .data = d,
                        .factors = &factors,
                        .run = *run,
                        .chain = c,
                        .random = stream(at, 0, 0),
                        .sweep = DRAWING_SWEEP};
        p.run.inner_threads = 1;
        place_open(&p);
        lost[c] = !search(&p);
        place_close(&p);
    }
    gm_linalg_threads(o->threads);
    if (n) factors_close(&factors);
    int without = -1;
    for (int c = 0; c < m->chains && without < 0; c++) without = lost[c] ? c : -1;
    free(lost);
    if (n && model->setup)  // sums may hold what has moved
        model->setup(run);
    return without;
}
