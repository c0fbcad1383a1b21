// metrics.c -- the metrics of a run's HMC updates that are not diagonal, or may become so (metric.h): one for each update and chain, from
// its first trajectory on.
#include "messages.h"
#include "warmup.h"
#include "../device/metric.h"

#include <math.h>
#include <stdlib.h>

// What HMC itself does with each coordinate in an evaluation, in multiply-adds, besides the density. The cost of the density is known where
// there is method selection.
static const double of_move = 30;

// On a GPU costs are in multiply-adds that wait for each other (kernel/cost.c). A density outside method selection costs some launches. The
// others are of a number that is read, of a sum by a team, of a square root, and of an iteration of a product with a dense metric. In the
// last a lane has several reads on their way at a time.
static const double some_launches = 3000, of_number = 8.0 / 20000, of_sum = 200, of_root = 40, of_turn = 5;

typedef struct KeptMetric {
    uint64_t machine;  // which HMC update it is
    const char *name;  // of its unknowns
    char *own_name;    // the same, of a run that goes on; NULL: the program has it
    int selection;     // under which there is method selection, counted from 1; else 0
    Metric *metric;    // NULL: diagonal
    struct KeptMetric *next;
} KeptMetric;

struct GmMetrics {
    int chains;
    bool on_gpu;
    KeptMetric **first;  // by chain, which alone writes there
    int selections;
    double (*cost)[GM_COSTS];
};

GmMetrics *gm_metrics_open(const GmModel *model, const GmData *data, int chains, bool on_gpu)
{
    GmMetrics *w = gm_alloc(1, sizeof *w);
    *w = (GmMetrics){
        .chains = chains, .on_gpu = on_gpu, .first = gm_alloc((size_t)chains, sizeof *w->first), .selections = model->n_selections};
    w->cost = gm_alloc((size_t)w->selections + 1, sizeof *w->cost);
    for (int k = 0; k < w->selections; k++) model->selections[k].cost(data->data, w->cost[k]);
    return w;
}

// Chains in lockstep on a GPU wait for the same launches and sums: these are counted once for all of them.
static MetricCost cost_of(const GmMetrics *w, const GmHmc *of)
{
    const double n = (double)of->coordinates, *c = of->selection ? w->cost[of->selection - 1] : NULL;
    if (!w->on_gpu) return (MetricCost){.evaluation = of_move * n + (c ? c[2] : 0), .each = 1};
    const double shared = 1.0 / w->chains;
    return (MetricCost){.evaluation =
                            c ? c[GM_COST_ON_GPU + 4] * shared + c[GM_COST_ON_GPU + 5] : some_launches * shared + of_move * n * of_number,
                        .each = of_number,
                        .sums = shared * (of_sum + of_root * cbrt(n)),
                        .turn = shared * of_turn};
}

static KeptMetric *keep(GmMetrics *w, const GmRun *run, const GmHmc *of, int chain)
{
    KeptMetric **at = &w->first[chain];
    while (*at && (*at)->machine != of->machine) at = &(*at)->next;
    if (*at || run->sweep >= run->warmup) return *at;
    KeptMetric *k = *at = gm_alloc(1, sizeof *k);
    *k = (KeptMetric){.machine = of->machine, .name = of->name, .selection = of->selection};
    if (of->metric == METRIC_DENSE && of->coordinates > METRIC_MOST_DENSE) {
        const long sizes[] = {of->coordinates, METRIC_MOST_DENSE};
        gm_fault_at(run, chain, of->name,
                    "a dense metric of # coordinates was asked for: there may be # of them; nuts(metric = low_rank) has no such limit", 2,
                    sizes);
    } else if (metric_is_looked_at(of->coordinates, of->metric)) {
        k->metric = metric_open(of->coordinates, of->metric, cost_of(w, of), run->warmup);
        if (!k->metric) gm_fault(run, chain, of->name, -1, "there is no memory for the metric of NUTS: nuts(metric = diagonal) needs less");
    }
    return k;
}

Metric *gm_metric_of(GmMetrics *w, const GmRun *run, const GmHmc *of, int chain)
{
    KeptMetric *k = w ? keep(w, run, of, chain) : NULL;
    if (k && k->metric && run->sweep >= run->warmup && !metric_settle(k->metric)) {
        metric_close(k->metric);
        k->metric = NULL;
    }
    return k ? k->metric : NULL;
}

void gm_metrics_forget(GmMetrics *w, uint64_t machine, int chain, long warmup)
{
    for (KeptMetric *k = w ? w->first[chain] : NULL; k; k = k->next) {
        if (k->machine != machine || !k->metric) continue;
        Metric *anew = metric_open(k->metric->n, k->metric->kind, k->metric->cost, warmup);
        metric_close(k->metric);
        k->metric = anew;  // without memory it is diagonal from here on
    }
}

double gm_metrics_work(const GmMetrics *w, int selection, int chain)
{
    for (const KeptMetric *k = w ? w->first[chain] : NULL; k; k = k->next)
        if (k->selection == selection && k->metric && k->metric->used) return metric_work(k->metric);
    return 0;
}

static void save_count(MetricCount *c, size_t n, GmSaved *s)
{
    GM_SAVED(s, c->sweeps);
    GM_SAVED(s, c->evaluations);
    GM_SAVED(s, c->divergent);
    gm_saved_bytes(s, c->jumps, sizeof *c->jumps * n);
}

static void save_metric(Metric *m, GmSaved *s)
{
    const size_t n = (size_t)m->n, bytes = sizeof(wide) * n, rank = m->kind == METRIC_DENSE ? 0 : METRIC_RANK;
    bool draws = m->draws != NULL;
    GM_SAVED(s, m->stage);
    GM_SAVED(s, m->used);
    GM_SAVED(s, m->full);
    GM_SAVED(s, m->rank);
    GM_SAVED(s, m->smallest);
    GM_SAVED(s, m->largest);
    GM_SAVED(s, m->gain);
    GM_SAVED(s, m->kept);
    GM_SAVED(s, m->next);
    GM_SAVED(s, m->since);
    GM_SAVED(s, m->diverged);
    GM_SAVED(s, m->tried);
    gm_saved_bytes(s, m->along, rank * bytes);
    gm_saved_bytes(s, m->across, rank * bytes);
    gm_saved_bytes(s, m->scale, bytes);
    gm_saved_bytes(s, m->lower, metric_is_dense(m->n, m->kind) ? n * bytes : 0);
    gm_saved_bytes(s, m->last, bytes);
    save_count(&m->before, n, s);
    save_count(&m->now, n, s);
    GM_SAVED(s, draws);
    if (draws && m->draws) {
        gm_saved_bytes(s, m->draws, (size_t)m->window * bytes);
        gm_saved_bytes(s, m->gradients, (size_t)m->window * bytes);
    } else metric_settle(m);
}

void gm_metrics_save(GmMetrics *w, GmSaved *s, long warmup)
{
    for (int c = 0; c < w->chains; c++) {
        KeptMetric **at = &w->first[c];
        for (;; at = &(*at)->next) {
            bool more = *at != NULL;
            GM_SAVED(s, more);
            if (!more) break;
            if (gm_saved_reads(s)) *at = gm_alloc(1, sizeof **at);
            KeptMetric *k = *at;
            char *name = gm_saved_text(s, k->name);
            if (gm_saved_reads(s)) k->name = k->own_name = name ? name : gm_copy_text("");
            GM_SAVED(s, k->machine);
            GM_SAVED(s, k->selection);
            bool there = k->metric != NULL;
            GM_SAVED(s, there);
            if (!there) continue;
            long n = k->metric ? k->metric->n : 0;
            MetricKind kind = k->metric ? k->metric->kind : METRIC_CHOSEN;
            MetricCost cost = k->metric ? k->metric->cost : (MetricCost){0};
            GM_SAVED(s, n);
            GM_SAVED(s, kind);
            GM_SAVED(s, cost);
            if (gm_saved_reads(s)) k->metric = metric_open(n, kind, cost, warmup);
            if (!k->metric) gm_exhausted((size_t)n, sizeof(wide));
            save_metric(k->metric, s);
        }
    }
}

// ---- what came of it ----

static const char *kind_of(const Metric *m) { return m->full ? "dense" : "of low rank"; }

// Whether a chain uses it: not where Gibbs updates were selected.
static bool is_taken(const GmMetrics *w, const GmSelected *selected, const KeptMetric *k, int chain)
{
    return k->metric && k->metric->used &&
           (!k->selection || !selected || selected[(long)chain * w->selections + k->selection - 1].gradients);
}

void gm_metrics_note(FILE *to, const GmMetrics *w, const GmSelected *selected, int chain, const char *before)
{
    for (const KeptMetric *k = w ? w->first[chain] : NULL; k; k = k->next) {
        const Metric *m = k->metric;
        if (!is_taken(w, selected, k, chain)) continue;
        fprintf(to, "%s%s: metric %s", before, k->name, kind_of(m));
        if (!m->full) fprintf(to, ", %d direction%s", m->rank, m->rank > 1 ? "s" : "");
        fprintf(to, ", eigenvalues from %.2g to %.2g", m->smallest, m->largest);
        fprintf(to, m->gain > 0 ? "; in warm-up it gave %.3g times the effective draws for the same work\n" : "\n", m->gain);
    }
}

void gm_metrics_print(FILE *to, const GmMetrics *w, const GmSelected *selected)
{
    // HMC updates by their first chain that has one; a chain may have none.
    for (int c = 0; w && c < w->chains; c++)
        for (const KeptMetric *k = w->first[c]; k; k = k->next) {
            int used = 0, least = METRIC_RANK, most = 0;
            bool dense = false, listed = false;
            for (int other = 0; other < w->chains; other++)
                for (const KeptMetric *o = w->first[other]; o; o = o->next) {
                    if (o->machine != k->machine || !is_taken(w, selected, o, other)) continue;
                    listed |= other < c;
                    used++;
                    dense = o->metric->full;
                    least = o->metric->rank < least ? o->metric->rank : least;
                    most = o->metric->rank > most ? o->metric->rank : most;
                }
            if (!is_taken(w, selected, k, c) || listed) continue;
            fprintf(to, "%s: metric %s", k->name, kind_of(k->metric));
            if (!dense && least < most) fprintf(to, ", %d to %d directions", least, most);
            else if (!dense) fprintf(to, ", %d direction%s", most, most > 1 ? "s" : "");
            if (used < w->chains) fprintf(to, ", in %d of %d chains", used, w->chains);
            fputc('\n', to);
        }
}

void gm_metrics_close(GmMetrics *w)
{
    for (int c = 0; w && c < w->chains; c++)
        for (KeptMetric *k = w->first[c], *next; k; k = next) {
            next = k->next;
            metric_close(k->metric);
            free(k->own_name);
            free(k);
        }
    if (w) {
        free(w->first);
        free(w->cost);
        free(w);
    }
}
