// stop.c -- when a run ends before all its draws: effective sample sizes or R-hat are good enough, a transition diverges, time is over.
//
//   draws per chain   100  120  144  158 ...     where --until-ess and --until-rhat look: the same for any machine, so that the same
//                                                 seed gives the same number of draws
//
// Where labels of components may be permuted, what runs over them counts with components in order, as in the warnings of the summary.
//
// A rule looks at every quantity of the summary, first at that which was worst the last time: where it is not good enough the others are
// not looked at.
#include "draws.h"
#include "label_order.h"
#include "messages.h"
#include "../backends/sha256.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { FIRST_LOOK = 100, LEAST_APART = 20, PART = 10 };  // draws per chain; looks are a tenth of the draws apart

bool gm_stop_rules(const GmOptions *o) { return o->until_ess > 0 || o->until_rhat > 0; }

// Draws after `kept` at which the next look is due.
static long next_look(long kept)
{
    long at = FIRST_LOOK;
    while (at <= kept) at += at / PART > LEAST_APART ? at / PART : LEAST_APART;
    return at;
}

long gm_stop_until(const GmOptions *o, long sweep, long batch)
{
    if (!gm_stop_rules(o)) return batch;
    const long sampled = sweep > o->warmup ? sweep - o->warmup : 0, at = o->warmup + next_look(sampled / o->thin) * o->thin;
    return batch < at - sweep ? batch : at - sweep;
}

static bool is_constant(const double *x, long n)
{
    for (long i = 1; i < n; i++)
        if (x[i] != x[0]) return false;
    return true;
}

// Whether the draws of a column are good enough. A constant is; values that are not finite are not.
static bool is_enough(const GmOptions *o, const GmDraws *d, long column, double *room, bool *ess, bool *rhat)
{
    gm_draws_column(d, column, d->kept, room);
    if (is_constant(room, d->kept * d->chains)) return true;
    const GmSummary of = gm_summarise(room, d->chains, d->kept);
    *ess = o->until_ess <= 0 || fmin(of.ess_bulk, of.ess_tail) >= o->until_ess;
    *rhat = o->until_rhat <= 0 || (d->chains > 1 ? of.rhat <= o->until_rhat : false);
    return *ess && *rhat;
}

// The rules of one column, whose label says what is lacking if it is not good enough.
static bool judge(GmStop *s, const GmOptions *o, const GmDraws *d, long column, double *room)
{
    bool ess = true, rhat = true;
    if (is_enough(o, d, column, room, &ess, &rhat)) return true;
    s->worst = column;
    s->lacks_ess = !ess;
    return false;
}

// Quantities that run over components whose labels may be permuted, which is no fault of the draws: those that are not good enough as
// they are count with the components of each draw in order.
static bool components_are_enough(GmStop *s, const GmModel *model, const GmMemory *m, const GmOptions *o, const GmDraws *d,
                                  const bool *runs_over, double *room)
{
    GmSummary *all = gm_alloc((size_t)d->n_summarised, sizeof *all), *judged = gm_alloc((size_t)d->n_summarised, sizeof *judged);
    bool *ordered = gm_alloc((size_t)d->n_summarised, sizeof *ordered), enough = true, any = false;
    for (long k = 0; k < d->n_summarised; k++) {
        const bool good = !runs_over[k] || judge(s, o, d, k, room);
        all[k] = judged[k] = good ? (GmSummary){.ess_bulk = INFINITY, .ess_tail = INFINITY, .rhat = 1} : (GmSummary){.rhat = INFINITY};
        any |= !good;
    }
    if (any) gm_labels_judge(d, model, m, all, judged, ordered);
    for (long k = 0; k < d->n_summarised && enough; k++) {
        const bool few = o->until_ess > 0 && fmin(judged[k].ess_bulk, judged[k].ess_tail) < o->until_ess;
        enough = !few && !(o->until_rhat > 0 && judged[k].rhat > o->until_rhat);  // NaN: another one shows its trouble
        if (enough) continue;
        s->worst = k;
        s->lacks_ess = few;
    }
    s->in_order = any;
    free(ordered);
    free(judged);
    free(all);
    return enough;
}

bool gm_stop_enough(GmStop *s, const GmModel *model, const GmMemory *m, const GmOptions *o, const GmDraws *d)
{
    if (!gm_stop_rules(o) || d->kept < 1 || (d->kept != o->samples && next_look(d->kept - 1) != d->kept)) return false;
    double *room = gm_alloc((size_t)(d->kept * d->chains), sizeof *room);
    bool *runs_over = gm_alloc((size_t)d->n_summarised + 1, sizeof *runs_over);
    bool enough = true, any = false, components = false;
    for (long k = 0; k < d->n_summarised && enough; k++) {
        const long column = (s->worst + k) % d->n_summarised;
        const int field = d->column[column].field;
        if (gm_draws_diagnostic(d, model, column) || d->column[column].absent) continue;
        any = true;
        runs_over[column] = field >= 0 && gm_depends_on_labels(model, m, d->data, field);
        components |= runs_over[column];
        if (!runs_over[column]) enough = judge(s, o, d, column, room);
    }
    if (enough && components) enough = components_are_enough(s, model, m, o, d, runs_over, room);
    free(runs_over);
    free(room);
    return enough && any;
}

// ---- divergent transitions ----

bool gm_stop_diverged(const GmModel *model, const GmMemory *m, int chain)
{
    for (int f = 0; f < model->n_state; f++)
        if (model->state[f].role == GM_DIAGNOSTIC && ((const double *)gm_state_array(model, m, chain, f))[GM_HMC_DIVERGENT] > 0)
            return true;
    return false;
}

void gm_stop_note(GmStop *s, long sampled, int chain)
{
    for (long first = atomic_load(&s->first); sampled < first && !atomic_compare_exchange_weak(&s->first, &first, sampled);) {}
    if (sampled == atomic_load(&s->first)) atomic_store(&s->chain, chain);
}

// ---- time ----

static double started;

void gm_stop_open(GmStop *s)
{
    *s = (GmStop){.first = LONG_MAX};
    started = gm_seconds();
}

double gm_stop_left(const GmOptions *o) { return o->max_time > 0 ? o->max_time - (gm_seconds() - started) : INFINITY; }

static double processor_seconds(clockid_t of)
{
    struct timespec now;
    return clock_gettime(of, &now) == 0 ? (double)now.tv_sec + 1e-9 * (double)now.tv_nsec : 0;
}

// How many seconds a second of work takes beside what else the machine does: so many as those of the run so far have taken.
static double load(int at_once)
{
    static const double MOST = 4, SOON = 0.1;  // the waiting of a run for its own threads counts, too; before so much nothing is known
    const double worked = processor_seconds(CLOCK_PROCESS_CPUTIME_ID), most = (gm_seconds() - started) * at_once;
    return worked < SOON ? 1 : fmin(MOST, fmax(1, most / worked));
}

// Processor seconds of one number of a draw, by a trial: its text is hashed for NAME_run.json once it is in its file.
static double hashing_a_number(void)
{
    enum { NUMBER = 18, BYTES = 1 << 20 };
    static const double READING = 2;  // lines are read and divided, too
    char *text = gm_alloc(BYTES, 1), hash[GM_SHA256_ROOM];
    const double begun = processor_seconds(CLOCK_THREAD_CPUTIME_ID);
    GmSha256 sum;
    gm_sha256_begin(&sum);
    gm_sha256_add(&sum, text, BYTES);
    gm_sha256_end(&sum, hash);
    free(text);
    return READING * NUMBER * (processor_seconds(CLOCK_THREAD_CPUTIME_ID) - begun) / BYTES;
}

double gm_stop_ending(GmStop *s, const GmOptions *o, const GmDraws *d)
{
    static const double COMPRESSING = 5e-7, READING_BACK = 0.5;  // seconds a number, before one is known; as part of writing it
    if (o->max_time <= 0 || !o->output) return 0;
    if (s->hashing <= 0) s->hashing = hashing_a_number();
    const double row = (double)d->n_columns * d->chains, rows = (double)d->kept;
    const int at_once = o->threads > 0 && o->threads < d->chains ? o->threads : d->chains;
    const double hashing = s->hashing * load(at_once);
    if (o->format == GM_FORMAT_CSV) return hashing * row * rows / at_once;
    const double a_row = s->packed > 0 ? s->packing / (double)s->packed : COMPRESSING * row * load(at_once);
    const double csv = o->format == GM_FORMAT_BOTH ? hashing * row * rows / at_once : 0;
    const double back = (READING_BACK * a_row + hashing / 4 * row) * rows;  // beside the tables, where processors are free
    return fmax(csv, back) + fmin(1, load(at_once) - 1) * fmin(csv, back) + a_row * (rows - (double)s->packed);
}

void gm_stop_packed(GmStop *s, double seconds, long kept)
{
    static const double NOTHING = 0.05;  // the draws wait for others, or it is not worth to be foreseen
    if (seconds < NOTHING) return;
    s->packing += seconds;
    s->packed = kept;
}
