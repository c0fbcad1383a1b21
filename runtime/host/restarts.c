// restarts.c -- chains that are where there is next to no probability begin again where others are.
//
//   sweep 0 ............... 3W/10 ................ 9W/20 ............... 13W/20 ............... 17W/20 ............... W
//                             noted: draws of an HMC update of all unknowns, their gradients and log densities
//                                                    chains are compared, and some begin again from another's place; twice more after what
//                                                    is noted from then on
//
// A trial of NUTS that Gibbs updates win (selection.c) is noted as far as it goes.
//
// A chain that samples its part a of the space has E log p = log P(a) + constant - H, H the entropy of p within a. For any smooth density H
// is at most that of a normal of the same covariance S. It is at least that of a normal whose precision is the Fisher information J = E (d
// log p)(d log p)' (Stam 1959; Dembo, Cover and Thomas 1991, IEEE Transactions on Information Theory 37, theorems 13 and 28):
//
//   E log p + n/2 log(2 pi e) - log det J/2  <=  log P(a) + constant  <=  E log p + n/2 log(2 pi e) + log det S/2
//
// and either determinant is at most the product of those of blocks on its diagonal (Fischer). So what a chain has seen of its part bounds
// the probability of it from both sides: in whatever coordinates, and however many parts there are. Where the upper bound of a chain is
// below the lower one of another by far, its part has next to no probability. The chain then goes on from a place of a chain of which that
// is not so. Parts of like probability are left alone. So are a mode that is high and narrow and one that is low and broad, which no
// comparison of heights could decide.
//
// Blocks are coordinates that go together in the draws (or gradients): any partition gives bounds. Estimated determinants of k coordinates
// from N draws are low by k(k + 1)/4N, about, in logarithm, halved, which is added. All this is in warm-up: later draws know nothing of it.
#include "../device/nuts.h"
#include "fields.h"
#include "messages.h"
#include "warmup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_WARMUP = 300,  // sweeps
    MOST_NOTED = 300,    // draws, of each chain
    LEAST_NOTED = 40,
    MOST_COORDINATES = 1000,
    MOST_IN_BLOCK = 12,
    SOME = 15,  // coordinates by which it is judged how many draws are effective
    ROUNDS = 3,
};

static const double hopeless = 9.2;   // of the logarithm of a ratio of probabilities: one in 10,000
static const double errors = 4;       // standard errors that are allowed for besides
static const double together = 0.35;  // correlation of coordinates of one block

typedef struct Noted {               // of a chain
    uint64_t machine, standardised;  // of the HMC update, by offsets; machine 0: none was made yet
    long coordinates;
    int selection;                      // under which there is method selection, counted from 1; else 0
    bool other;                         // it makes another one, or one that does not include all unknowns
    long n;                             // draws
    double *draw, *gradient, *density;  // [n][coordinates], [n]
    int from;                           // -1, or the chain from which it began again
    long when;                          // after so many sweeps
    double less;                        // by the logarithm of what its part holds
} Noted;

struct GmRestarts {
    const GmModel *model;
    const GmMemory *memory;
    const GmData *data;
    int chains, first_chain;
    long warmup;
    int round;
    Noted *chain;
};

// In each round: the first sweep that is noted, and the one before which chains meet.
static long noted_from(long warmup, int round) { return round ? warmup * (5 + 4 * round) / 20 : warmup * 3 / 10; }
static long noted_to(long warmup, int round) { return noted_from(warmup, round + 1); }

GmRestarts *gm_restarts_open(const GmModel *model, const GmMemory *m, const GmData *d, const GmOptions *o)
{
    if (o->chains < 2 || o->warmup < LEAST_WARMUP) return NULL;
    for (int f = 0; f < model->n_data; f++)
        if (d->missing[f].count > 0)  // drawn by updates of their own
            return NULL;
    GmRestarts *w = gm_alloc(1, sizeof *w);
    *w = (GmRestarts){.model = model,
                      .memory = m,
                      .data = d,
                      .chains = o->chains,
                      .first_chain = o->first_chain,
                      .warmup = o->warmup,
                      .chain = gm_alloc((size_t)o->chains, sizeof *w->chain)};
    for (int c = 0; c < o->chains; c++) w->chain[c].from = -1;
    return w;
}

// ---- what is noted ----

static bool holds_all(const GmRestarts *w, const GmHmc *of)
{
    for (int f = 0; f < w->model->n_state; f++) {
        const GmField *field = &w->model->state[f];
        if (gm_is_drawn(field) && gm_shape_size(&w->memory->shape[f]) > 0 && !gm_is_moved_by(w->model, field, of->name, of->summed))
            return false;
    }
    return true;
}

void gm_restarts_moves(GmRestarts *w, int chain, const GmHmc *of)
{
    if (!w) return;
    Noted *x = &w->chain[chain];
    if (x->machine == 0) {
        x->machine = of->machine;
        x->standardised = of->standardised;
        x->coordinates = (long)of->coordinates;
        x->selection = of->selection;
        x->other = of->together || of->anneal > 1 || of->coordinates < 1 || of->coordinates > MOST_COORDINATES || !holds_all(w, of);
    }
    x->other |= x->machine != of->machine;
}

static void *field_of(const GmRestarts *w, int chain, uint64_t offset)
{
    return *(void **)((char *)w->memory->state + (size_t)chain * w->model->state_size + offset);
}

static Nuts *machine_of(const GmRestarts *w, int chain)
{
    const Noted *x = &w->chain[chain];
    Nuts *m = nuts_of(field_of(w, chain, x->machine), x->coordinates);
    if (x->standardised) m->standard = field_of(w, chain, x->standardised);
    return m;
}

void gm_restarts_after(GmRestarts *w, const GmRun *one)
{
    const int chain = one->chain;
    const long sweep = one->sweep;
    Noted *x = w ? &w->chain[chain] : NULL;
    const long from = w ? noted_from(w->warmup, w->round) : 0, to = w ? noted_to(w->warmup, w->round) : 0,
               every = (to - from) / MOST_NOTED + 1;
    if (!w || w->round == ROUNDS || sweep < from || sweep >= to || (sweep - from) % every || x->other || x->machine == 0) return;
    if (x->selection && one->selected && !one->selected[chain * w->model->n_selections + x->selection - 1].gradients) return;
    const size_t n = (size_t)x->coordinates;
    if (!x->draw) {
        x->draw = gm_alloc(MOST_NOTED * n, sizeof *x->draw);
        x->gradient = gm_alloc(MOST_NOTED * n, sizeof *x->gradient);
        x->density = gm_alloc(MOST_NOTED, sizeof *x->density);
    }
    Nuts *m = machine_of(w, chain);
    if (m->failed || x->n == MOST_NOTED) return;
    memcpy(x->draw + (size_t)x->n * n, nuts_position(m), n * sizeof *x->draw);
    memcpy(x->gradient + (size_t)x->n * n, nuts_gradient(m), n * sizeof *x->gradient);
    x->density[x->n++] = m->log_density;
}

// ---- bounds ----

typedef struct Pair {
    double square;
    int a, b;
} Pair;

static int by_square(const void *a, const void *b)
{
    const double x = ((const Pair *)a)->square, y = ((const Pair *)b)->square;
    return (x < y) - (x > y);
}

static int root_of(int *of, int i)
{
    while (of[i] != i) i = of[i] = of[of[i]];
    return i;
}

// z[k][n], columns that are scaled: puts those that go together into blocks; of[i] leads to the first of the block of i.
static void find_blocks(const double *z, long n, int k, int *of)
{
    long size = 0, pairs = 0;
    Pair *pair = NULL;
    int *count = gm_alloc((size_t)k, sizeof *count);
    for (int i = 0; i < k; i++) {
        of[i] = i;
        count[i] = 1;
    }
    for (int i = 0; i < k; i++)
        for (int j = 0; j < i; j++) {
            double sum = 0;
            for (long t = 0; t < n; t++) sum += z[i * n + t] * z[j * n + t];
            const double r = sum / (double)n;
            if (r * r < together * together) continue;
            if (pairs == size) pair = gm_grow(pair, (size_t)(size = 2 * size + 64), sizeof *pair);
            pair[pairs++] = (Pair){r * r, i, j};
        }
    if (pairs > 0) qsort(pair, (size_t)pairs, sizeof *pair, by_square);
    for (long p = 0; p < pairs; p++) {
        const int a = root_of(of, pair[p].a), b = root_of(of, pair[p].b);
        if (a == b || count[a] + count[b] > MOST_IN_BLOCK) continue;
        of[a > b ? a : b] = a < b ? a : b;
        count[a < b ? a : b] += count[a > b ? a : b];
    }
    free(pair);
    free(count);
}

// Half the logarithm of the determinant of the matrix of products of these columns.
static double half_log_det(const double *const *column, int k, long n)
{
    double L[MOST_IN_BLOCK][MOST_IN_BLOCK], sum = 0;
    for (int i = 0; i < k; i++)
        for (int j = 0; j <= i; j++) {
            double s = 0;
            for (long t = 0; t < n; t++) s += column[i][t] * column[j][t];
            s /= (double)n;
            for (int l = 0; l < j; l++) s -= L[i][l] * L[j][l];
            L[i][j] = i == j ? sqrt(fmax(s, 1e-12)) : s / L[j][j];
            sum += i == j ? log(L[i][i]) : 0;
        }
    return sum;
}

// At least half the logarithm of the determinant of the covariance of x[n][k], or of the products of its columns; not finite where one of
// these does not vary.
static double most_log_det(const double *x, long n, int k, bool about_mean, double effective)
{
    double sum = 0, *z = gm_alloc((size_t)(n * k), sizeof *z);
    int *of = gm_alloc((size_t)k, sizeof *of);
    for (int i = 0; i < k; i++) {
        double mean = 0, squares = 0;
        for (long t = 0; t < n && about_mean; t++) mean += x[t * k + i] / (double)n;
        for (long t = 0; t < n; t++) squares += (x[t * k + i] - mean) * (x[t * k + i] - mean) / (double)n;
        for (long t = 0; t < n; t++) z[i * n + t] = (x[t * k + i] - mean) / sqrt(squares);
        sum += 0.5 * log(squares);
    }
    find_blocks(z, n, k, of);
    for (int i = 0; i < k && isfinite(sum); i++) {
        const double *column[MOST_IN_BLOCK];
        int m = 0;
        for (int j = i; j < k && root_of(of, i) == i; j++)
            if (root_of(of, j) == i) column[m++] = z + j * n;
        sum += half_log_det(column, m, n) + m * (m + 1) / (4 * effective);
    }
    free(of);
    free(z);
    return sum;
}

// The number of independent draws that are worth as much as the noted ones, by the median of some coordinates.
static double effective_draws(const Noted *x)
{
    const long k = x->coordinates, some = k < SOME ? k : SOME;
    double of[SOME], *column = gm_alloc((size_t)x->n, sizeof *column);
    for (long i = 0; i < some; i++) {
        for (long t = 0; t < x->n; t++) column[t] = x->draw[t * k + i * k / some];
        of[i] = fmin(fmax(gm_mixing(column, 1, x->n), 1), (double)x->n);
        for (long j = i; j > 0 && of[j - 1] > of[j]; j--) {
            const double larger = of[j - 1];
            of[j - 1] = of[j];
            of[j] = larger;
        }
    }
    free(column);
    return of[some / 2];
}

// of the logarithm of what the part of a chain holds, but for a constant that all chains have
typedef struct MassBounds {
    bool known;
    double lower, upper, error;
} MassBounds;

static MassBounds bounds_of(const Noted *x)
{
    if (x->other || x->n < LEAST_NOTED) return (MassBounds){.known = false};
    const double n = (double)x->n;
    double mean = 0, squares = 0;
    long moved = 0;
    for (long t = 0; t < x->n; t++) {
        mean += x->density[t] / n;
        moved += t > 0 && x->density[t] != x->density[t - 1];
    }
    for (long t = 0; t < x->n; t++) squares += (x->density[t] - mean) * (x->density[t] - mean) / n;
    const double of_density = fmin(fmax(gm_mixing(x->density, 1, x->n), 1), n), effective = effective_draws(x);
    const double upper = mean + most_log_det(x->draw, x->n, (int)x->coordinates, true, effective),
                 lower = mean - most_log_det(x->gradient, x->n, (int)x->coordinates, false, effective);
    // of logarithms of standard deviations, 1/2N each, of draws and gradients
    const double error = sqrt(squares / of_density + (double)x->coordinates / effective);
    // A chain of which many proposals are refused, or whose draws spread less than their gradients allow, has not seen its part.
    return (MassBounds){.known = isfinite(upper) && isfinite(lower) && lower <= upper + errors * error && 2 * moved > x->n,
                        .lower = lower,
                        .upper = upper,
                        .error = error};
}

// ---- another start ----

// The unknowns, and what HMC has adapted to them, where it is not of low rank.
static void begin_again(GmRestarts *w, GmRun *run, int chain, int from)
{
    Noted *x = &w->chain[chain];
    for (int f = 0; f < w->model->n_state; f++) {
        const GmField *field = &w->model->state[f];
        if (gm_is_unknown(field->role) && !field->shared)
            memcpy(gm_state_array(w->model, w->memory, chain, f), gm_state_array(w->model, w->memory, from, f),
                   (size_t)gm_shape_size(&w->memory->shape[f]) * gm_size_of_element(field->type));
    }
    Nuts *to = machine_of(w, chain), *of = machine_of(w, from);
    memcpy(nuts_metric(to), nuts_metric(of), sizeof(wide) * (size_t)x->coordinates);
    if (to->standard) memcpy(to->standard, of->standard, sizeof(wide) * (size_t)x->coordinates);
    to->standardised = of->standardised;
    to->known = of->known;
    to->metric_known = of->metric_known;
    to->step = of->step;
    to->search = to->settings.step == 0;
    to->foreground = to->background = 0;
    gm_metrics_forget(run->metrics, x->machine, chain, w->warmup);
    x->from = from;
}

long gm_restarts_until(const GmRestarts *w, long sweep, long batch)
{
    const long at = w && w->round < ROUNDS ? noted_to(w->warmup, w->round) : 0;
    return sweep < at && batch > at - sweep ? at - sweep : batch;
}

void gm_restarts_meet(GmRestarts *w, GmRun *run, long done)
{
    if (!w || w->round == ROUNDS || done != noted_to(w->warmup, w->round)) return;
    MassBounds *b = gm_alloc((size_t)w->chains, sizeof *b);
    double *less = gm_alloc((size_t)w->chains, sizeof *less);
    int best = -1, others = 0, *other = gm_alloc((size_t)w->chains, sizeof *other);
#pragma omp parallel for num_threads(run->threads) schedule(static, 1)
    for (int c = 0; c < w->chains; c++) b[c] = bounds_of(&w->chain[c]);
    for (int c = 0; c < w->chains; c++)
        if (b[c].known && w->chain[c].machine == w->chain[0].machine && (best < 0 || b[c].lower > b[best].lower)) best = c;
    for (int c = 0; c < w->chains && best >= 0; c++) {
        less[c] = b[best].lower - b[c].upper - errors * hypot(b[best].error, b[c].error);
        if (b[c].known && (c == best || less[c] <= hopeless)) other[others++] = c;
    }
    for (int c = 0, next = 0; c < w->chains && best >= 0; c++)
        if (b[c].known && c != best && less[c] > hopeless) {
            begin_again(w, run, c, other[next++ % others]);
            w->chain[c].when = done;
            w->chain[c].less = less[c];
        }
    free(other);
    free(less);
    free(b);
    w->round++;
    for (int c = 0; c < w->chains; c++) w->chain[c].n = 0;
}

// ---- what came of it ----

void gm_restarts_note(FILE *to, const GmRestarts *w, int chain, const char *before)
{
    const Noted *x = w ? &w->chain[chain] : NULL;
    if (x && x->from >= 0)
        fprintf(to,
                "%schain %d began again in sweep %ld of warm-up from the state of chain %d: its region has less than 10^%.0f of "
                "the probability of that chain's\n",
                before, w->first_chain + chain, x->when, w->first_chain + x->from, -floor(x->less / log(10)));
}

void gm_restarts_print(FILE *to, const GmRestarts *w)
{
    for (int c = 0; w && c < w->chains; c++) gm_restarts_note(to, w, c, "");
}

void gm_restarts_save(GmRestarts *w, GmSaved *s)
{
    if (!w) return;
    GM_SAVED(s, w->round);
    for (int c = 0; c < w->chains; c++) {
        Noted *x = &w->chain[c], now = *x;
        bool there = x->draw != NULL;
        GM_SAVED(s, there);
        gm_saved_bytes(s, &now, sizeof now);
        if (gm_saved_reads(s)) {
            *x = now;
            x->draw = x->gradient = x->density = NULL;
        }
        if (!there) continue;
        const size_t n = MOST_NOTED * (size_t)x->coordinates;
        if (gm_saved_reads(s)) {
            x->draw = gm_alloc(n, sizeof *x->draw);
            x->gradient = gm_alloc(n, sizeof *x->gradient);
            x->density = gm_alloc(MOST_NOTED, sizeof *x->density);
        }
        gm_saved_bytes(s, x->draw, n * sizeof *x->draw);
        gm_saved_bytes(s, x->gradient, n * sizeof *x->gradient);
        gm_saved_bytes(s, x->density, MOST_NOTED * sizeof *x->density);
    }
}

void gm_restarts_close(GmRestarts *w)
{
    for (int c = 0; w && c < w->chains; c++) {
        free(w->chain[c].draw);
        free(w->chain[c].gradient);
        free(w->chain[c].density);
    }
    if (w) free(w->chain);
    free(w);
}
