// calibrate.c -- simulation-based calibration: whether draws of the program are from the posterior that its model says.
//
//   parameters from the prior -> data from them -> L draws given the data -> rank of each parameter among its draws
//
// If the draws are from the posterior, the parameters are one more draw from it, and the rank is uniform on 0, ..., L (Cook, Gelman and
// Rubin 2006; Talts et al. 2018, arXiv:1804.06788). Ranks among ties are drawn. Also of the log joint density, which a sampler of the prior
// alone fails where its parameters do not (Modrak et al. 2023, Bayesian Analysis).
//
// The ranks of N simulations are compared with a uniform law by their distribution function at all L points: the statistic is the smallest
// two-sided probability of the number of ranks up to k, which is binomial (Saeilynoja, Buerkner and Vehtari 2022, Statistics and Computing
// 32). Its law is not simulated but computed: the numbers up to k = 0, 1, ... are a Markov chain, of which the probability to stay between
// two bounds at all k is a sum over its states. So is the power against other laws of the ranks.
//
// Each simulation runs in a process of its own, forked from one that has read the data: what a run leaves behind, adaptation, choices of
// methods, tables, ends with it. Its random numbers are those of its number. So neither other simulations nor how many run at once change
// its rank. On a GPU, or with --as-chains, simulations are chains of one run in place of processes, each with responses of its own.
#define _GNU_SOURCE  // memfd_create
#include "../device/rng.h"
#include "fields.h"
#include "messages.h"
#include "runs.h"
#include "report/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// Of the ranks; of all quantities together; simulations that choose the thinning, and their draws; sweeps between draws at most.
enum { SIMS = 1000, DRAWS = 99, PILOTS = 10, PILOT_DRAWS = 1000, MOST_THIN = 200 };
static const double LEVEL = 0.01;  // false alarms, of a program that is right
static const double DEPENDENT = 1.25;  // draws for each effective one, in units of those of independent draws

// ---- laws of ranks ----

// log of the probability of k of n, each with probability p.
static double log_binomial(double k, double n, double p)
{
    if (p <= 0) return k == 0 ? 0 : -INFINITY;
    if (p >= 1) return k == n ? 0 : -INFINITY;
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p);
}

typedef struct Ranks {  // of n simulations, from 0 to draws
    long n, draws;
    double *below;  // [k * (n + 1) + c]: min(1, 2 min(P(C <= c), P(C >= c))) for C, the number of ranks up to k, if these are uniform
} Ranks;

static void ranks_open(Ranks *r, long n, long draws)
{
    *r = (Ranks){.n = n, .draws = draws};
    r->below = gm_alloc((size_t)(draws * (n + 1)), sizeof *r->below);
    for (long k = 0; k < draws; k++) {
        const double p = (double)(k + 1) / (double)(draws + 1);
        double *row = r->below + k * (n + 1), sum = 0;
        for (long c = 0; c <= n; c++) row[c] = sum += exp(log_binomial((double)c, (double)n, p));
        sum = 0;
        for (long c = n; c >= 0; c--) {
            sum += exp(log_binomial((double)c, (double)n, p));
            row[c] = fmin(1, 2 * fmin(row[c], sum));
        }
    }
}

// The probability that the statistic of n ranks is above `least`, where a rank is at most k with probability up_to[k]: the numbers of ranks
// up to k stay where `below` is above it.
static double stays(const Ranks *r, double least, const double *up_to)
{
    double *now = gm_alloc((size_t)r->n + 1, sizeof *now), *next = gm_alloc((size_t)r->n + 1, sizeof *next);
    double *logs = gm_alloc((size_t)r->n + 2, sizeof *logs), all = 0;
    for (long c = 0; c <= r->n; c++) logs[c] = lgamma((double)c + 1);
    now[0] = 1;
    double before = 0;
    for (long k = 0; k < r->draws; k++) {
        const double *below = r->below + k * (r->n + 1);
        const double p = before < 1 ? fmin(1, fmax(0, (up_to[k] - before) / (1 - before))) : 0, yes = log(p), no = log1p(-p);
        memset(next, 0, (size_t)(r->n + 1) * sizeof *next);
        for (long a = 0; a <= r->n; a++) {
            if (!(now[a] > 0)) continue;
            for (long c = a; c <= r->n; c++) {
                if (!(below[c] > least)) continue;
                const double m = (double)(c - a), rest = (double)(r->n - c);
                if ((p <= 0 && m > 0) || (p >= 1 && rest > 0)) continue;
                next[c] += now[a] * exp(logs[r->n - a] - logs[c - a] - logs[r->n - c] + (m > 0 ? m * yes : 0) + (rest > 0 ? rest * no : 0));
            }
        }
        double *const was = now;
        now = next;
        next = was;
        before = up_to[k];
    }
    for (long c = 0; c <= r->n; c++) all += now[c];
    free(now);
    free(next);
    free(logs);
    return fmin(1, all);
}

static double *uniform_law(const Ranks *r)
{
    double *up_to = gm_alloc((size_t)r->draws, sizeof *up_to);
    for (long k = 0; k < r->draws; k++) up_to[k] = (double)(k + 1) / (double)(r->draws + 1);
    return up_to;
}

// The statistic above which the probability of a uniform law is 1 - level: its envelope.
static double critical(const Ranks *r, const double *uniform, double level)
{
    double lo = log(level) - 12, hi = log(level);
    for (int k = 0; k < 24; k++) {
        const double at = 0.5 * (lo + hi);
        if (1 - stays(r, exp(at), uniform) > level) hi = at;
        else lo = at;
    }
    return exp(lo);
}

static double statistic(const Ranks *r, const int *rank)
{
    double least = 1;
    long *count = gm_alloc((size_t)r->draws + 1, sizeof *count), c = 0;
    for (long i = 0; i < r->n; i++) count[rank[i]]++;
    for (long k = 0; k < r->draws; k++) {
        c += count[k];
        least = fmin(least, r->below[k * (r->n + 1) + c]);
    }
    free(count);
    return least;
}

static double normal_cdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }

static double normal_quantile(double p)
{
    double lo = -9, hi = 9;
    for (int k = 0; k < 60; k++) {
        const double x = 0.5 * (lo + hi);
        if (normal_cdf(x) < p) lo = x;
        else hi = x;
    }
    return 0.5 * (lo + hi);
}

// The power of the comparison where draws are of a normal posterior that is moved by `shift` of its sds, or has sds `scale` of the right
// ones: the parameter is at z = (Z + shift)*scale of what the draws say.
static double power(const Ranks *r, double least, const double *quantile, double shift, double scale)
{
    double *up_to = gm_alloc((size_t)r->draws, sizeof *up_to);
    for (long k = 0; k < r->draws; k++) up_to[k] = normal_cdf(quantile[k] * scale - shift);
    const double p = 1 - stays(r, least, up_to);
    free(up_to);
    return p;
}

// The shift, or the ratio of sds, that is seen in 4 of 5 calibrations.
static double seen(const Ranks *r, double least, const double *quantile, bool shift)
{
    double lo = 0, hi = 1;
    if (power(r, least, quantile, shift ? hi : 0, shift ? 1 : exp(-hi)) < 0.8) return NAN;
    for (int k = 0; k < 12; k++) {
        const double at = 0.5 * (lo + hi);
        if (power(r, least, quantile, shift ? at : 0, shift ? 1 : exp(-at)) < 0.8) lo = at;
        else hi = at;
    }
    return shift ? hi : exp(-hi);
}

// ---- simulations ----

typedef struct Shared {  // of a simulation, written by its process
    int status, done;
} Shared;

typedef struct Work {
    const GmCalibrated *c;
    const GmOptions *o;
    long n;  // simulations
    long draws;
    int thin;
    bool pilot;     // values are sweeps for each effective draw
    Shared *sim;    // [n]
    double *value;  // [n][columns]: ranks, NaN where there is none; of pilots, sweeps for each effective draw
    double *each;   // [n][columns]: draws for each effective draw; NaN: all are the same. Of pilots NULL
    int ended;      // with what status simulations as chains have
    char *first;    // what the first failure said
    long failed;
} Work;

static void *shared(size_t bytes)
{
    void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) gm_exhausted(bytes, 1);
    return p;
}

static double rank_of(const GmOptions *o, long sim, long column, double truth, const double *draws, long n, long columns)
{
    enum { TIES = ((uint64_t)1 << 36) - 2 };  // a sweep that no run reaches
    long below = 0, ties = 0;
    for (long k = 0; k < n; k++) {
        const double x = draws[k * columns + column];
        if (isnan(x)) return NAN;
        below += x < truth;
        ties += x == truth;
    }
    if (isnan(truth)) return NAN;
    if (ties == 0) return (double)below;
    Stream g = stream((Sweep){.seed = gm_forward_seed(o->seed), .chain = (uint32_t)sim, .sweep = TIES}, (uint32_t)column, 0);
    const long more = (long)(uniform_open(&g) * (double)(ties + 1));
    return (double)(below + (more > ties ? ties : more));
}

// Ranks of a simulation, or of pilots what an effective draw takes. draws: [w->draws][columns].
static void take_values(Work *w, long k, long sim, const double *truth, const double *draws)
{
    const GmCalibrated *c = w->c;
    double *value = w->value + k * c->columns, *x = gm_alloc((size_t)w->draws, sizeof *x);
    for (long i = 0; i < c->columns; i++) {
        value[i] = NAN;
        if (!c->compared[i]) continue;
        for (long d = 0; d < w->draws; d++) x[d] = draws[d * c->columns + i];
        const double each = (double)w->draws / gm_mixing(x, 1, w->draws);
        value[i] = w->pilot ? each : rank_of(w->o, sim, i, truth[i], draws, w->draws, c->columns);
        if (w->each) w->each[k * c->columns + i] = each;
    }
    free(x);
}

// In a process of its own.
static int run_one(Work *w, long k, long sim)
{
    const GmCalibrated *c = w->c;
    double *truth = gm_alloc((size_t)c->columns, sizeof *truth);
    const double *draws = NULL;
    int status = c->simulate(c->of, sim, truth);
    if (status == GM_EXIT_OK) status = c->fit(c->of, sim, w->draws, w->thin, truth, &draws);
    if (status == GM_EXIT_OK) take_values(w, k, sim, truth, draws);
    return status;
}

// All simulations from number `first` on, as chains of one run. false: it has ended otherwise, which was said, or was interrupted.
static bool run_as_chains(Work *w, long first)
{
    const GmCalibrated *c = w->c;
    const long each = w->draws * c->columns;
    GmSimulations s = {.first = first,
                       .n = w->n,
                       .status = gm_alloc((size_t)w->n, sizeof *s.status),
                       .truth = gm_alloc((size_t)(w->n * c->columns), sizeof *s.truth),
                       .draws = gm_alloc((size_t)(w->n * each), sizeof *s.draws)};
    const bool quiet = gm_quiet;
    gm_quiet = true;
    const int status = c->fit_all(c->of, &s, w->draws, w->thin);
    gm_quiet = quiet;
    for (long k = 0; k < w->n && status == GM_EXIT_OK; k++) {
        w->sim[k] = (Shared){.status = s.status[k], .done = 1};
        if (s.status[k] == GM_EXIT_OK) take_values(w, k, first + k, s.truth + k * c->columns, s.draws + k * each);
        else if (w->failed++ == 0) w->first = gm_format("simulation %ld drew no data, as said above", first + k + 1);
    }
    free(s.status);
    free(s.truth);
    free(s.draws);
    w->ended = status;
    return status == GM_EXIT_OK;
}

static char *text_of(int fd)
{
    char text[1000];
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    return gm_copy_text(text);
}

// All simulations from number `first` on, so many at once. false: interrupted.
static bool run_processes(Work *w, long first)
{
    typedef struct Process {
        pid_t id;
        int fd;
        long k;
    } Process;
    Process *process = gm_alloc((size_t)w->o->threads, sizeof *process);
    long next = 0, done = 0;
    int running = 0;
    fflush(NULL);
    while (done < w->n && !(gm_interrupted() && running == 0)) {
        while (running < w->o->threads && next < w->n && !gm_interrupted()) {
            const int fd = memfd_create("messages", 0);
            const pid_t id = fork();
            if (id < 0) {
                gm_error("calibrate: no process for a simulation: %s", strerror(errno));
                if (fd >= 0) close(fd);
                next = w->n;
                if (running == 0) {
                    free(process);
                    return false;
                }
                break;
            }
            if (id == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);  // no simulation outlives the command
                if (fd >= 0) dup2(fd, 2);
                gm_quiet = true;
                const int status = run_one(w, next, first + next);
                w->sim[next] = (Shared){.status = status, .done = 1};
                fflush(NULL);
                _exit(0);
            }
            process[running++] = (Process){id, fd, next++};
        }
        int how;
        const pid_t id = running ? waitpid(-1, &how, 0) : -1;
        if (id < 0 && errno == EINTR) continue;
        if (id < 0) break;
        int at = 0;
        while (at < running && process[at].id != id) at++;
        if (at == running) continue;
        Shared *s = &w->sim[process[at].k];
        if (!s->done) s->status = GM_EXIT_FAULT;  // it was killed
        if (s->status != GM_EXIT_OK) {
            w->failed++;
            if (!w->first) w->first = gm_format("simulation %ld: %s", first + process[at].k + 1, text_of(process[at].fd));
        }
        if (process[at].fd >= 0) close(process[at].fd);
        process[at] = process[--running];
        done++;
    }
    free(process);
    return !gm_interrupted() && done == w->n;
}

static bool run_all(Work *w, long first) { return w->c->fit_all ? run_as_chains(w, first) : run_processes(w, first); }

// Sweeps between two draws, such that these are nearly independent: twice those that an effective draw takes, of the slowest quantity.
static int thinning(const GmCalibrated *c, const GmOptions *o, double *slowest, const char **which, int *status)
{
    Work w = {.c = c, .o = o, .n = PILOTS, .draws = PILOT_DRAWS, .thin = 1, .pilot = true};
    w.sim = shared((size_t)w.n * sizeof *w.sim);
    w.value = shared((size_t)(w.n * c->columns) * sizeof *w.value);
    const bool all = run_all(&w, (long)1 << 30);  // numbers that no simulation has
    *status = all ? GM_EXIT_OK : gm_interrupted() ? GM_EXIT_INTERRUPTED : w.ended ? w.ended : GM_EXIT_FAULT;
    *slowest = 1;
    *which = "";
    for (long i = 0; i < c->columns; i++) {
        double sum = 0;
        long n = 0;
        for (long k = 0; k < w.n; k++) {
            const double x = w.value[k * c->columns + i];
            if (w.sim[k].status != GM_EXIT_OK || !w.sim[k].done || !isfinite(x)) continue;
            sum += x;
            n++;
        }
        if (n == 0 || sum / (double)n <= *slowest) continue;
        *slowest = sum / (double)n;
        *which = c->label[i];
    }
    munmap(w.sim, (size_t)w.n * sizeof *w.sim);
    munmap(w.value, (size_t)(w.n * c->columns) * sizeof *w.value);
    if (w.first && w.failed == w.n) {
        gm_error("calibrate: none of %d simulations gave draws. %s", PILOTS, w.first);
        *status = GM_EXIT_FAULT;
    }
    free(w.first);
    const double thin = ceil(2 * *slowest);
    return thin > MOST_THIN ? MOST_THIN : *slowest > 1 ? (int)thin : 1;
}

// ---- what is said ----

typedef struct Row {
    long column, n;  // simulations with a rank
    int *rank;
    double p, mean, spread;  // of ranks in units of draws + 1: their mean, and their sd over that of a uniform law
} Row;

static const char *verdict(const Row *r, double level, long n)
{
    if (r->p >= level) return "uniform";
    const double shift = (r->mean - 0.5) * sqrt(12.0 * (double)n), spread = (r->spread - 1) * sqrt(2.5 * (double)n);
    if (fabs(shift) > fabs(spread) && fabs(shift) > 3) return shift > 0 ? "draws too small" : "draws too large";
    if (fabs(spread) > 3) return spread > 0 ? "draws too narrow" : "draws too wide";
    return "not uniform";
}

static void write_path(FILE *to, const GmPanel *p, const Ranks *r, const long *at, const char *class)
{
    fprintf(to, "<path class=\"%s\" d=\"", class);
    for (long k = 0; k < r->draws; k++)
        fprintf(to, "%s%.1f %.1f", k ? "L" : "M", gm_panel_x(p, (double)(k + 1) / (double)(r->draws + 1)),
                gm_panel_y(p, (double)at[k] / (double)r->n - (double)(k + 1) / (double)(r->draws + 1)));
    fputs("\"/>\n", to);
}

// The distribution function of the ranks, less that of a uniform law, within the envelope.
static void figure(FILE *to, int number, const Ranks *r, double least, const Row *row, const char *label)
{
    long *lo = gm_alloc((size_t)r->draws, sizeof *lo), *hi = gm_alloc((size_t)r->draws, sizeof *hi),
         *at = gm_alloc((size_t)r->draws, sizeof *at), *count = gm_alloc((size_t)r->draws + 1, sizeof *count);
    double most = 0;
    long c = 0;
    for (long i = 0; i < r->n; i++) count[row->rank[i]]++;
    for (long k = 0; k < r->draws; k++) {
        const double *below = r->below + k * (r->n + 1), even = (double)(k + 1) / (double)(r->draws + 1);
        for (lo[k] = 0; lo[k] < r->n && !(below[lo[k]] > least);) lo[k]++;
        for (hi[k] = r->n; hi[k] > 0 && !(below[hi[k]] > least);) hi[k]--;
        at[k] = c += count[k];
        const double x[] = {(double)lo[k], (double)hi[k], (double)at[k]};
        for (int j = 0; j < 3; j++) most = fmax(most, fabs(x[j] / (double)r->n - even));
    }
    char *title = gm_format("%s: p = %.3g", label, row->p);
    char *description = gm_format("Distribution function of the ranks of %s less that of a uniform law, with its envelope", label);
    const GmPanel p = {.left = 60, .top = 10, .width = 380, .height = 150, .lo = {0, -1.1 * most}, .hi = {1, 1.1 * most}};
    gm_figure_begin(to, number, 460, 200, title, description);
    write_path(to, &p, r, lo, "line thin s2");
    write_path(to, &p, r, hi, "line thin s2");
    write_path(to, &p, r, at, "line s1");
    gm_panel_axes(to, &p, "rank / draws", "difference");
    gm_figure_end(to, title);
    free(title);
    free(description);
    free(lo);
    free(hi);
    free(at);
    free(count);
}

static bool write_page(const char *path, const char *model, const Ranks *r, double least, const Row *row, long n, const char *const *label,
                       double level, const char *text)
{
    GmFile out;
    if (!gm_output_open(&out, path, false)) return false;
    char *title = gm_format("%s: calibration", model);
    gm_html_begin(out.to, title);
    fputs("<h1>", out.to);
    gm_html_text(out.to, title);
    fputs("</h1>\n<p>", out.to);
    gm_html_text(out.to, text);
    fputs("</p>\n<table>\n<tr><th>quantity</th><th>mean rank</th><th>spread</th><th>p</th><th>verdict</th></tr>\n", out.to);
    for (long i = 0; i < n; i++) {
        fputs("<tr><td>", out.to);
        gm_html_text(out.to, label[row[i].column]);
        fprintf(out.to, "</td><td>%.3f</td><td>%.3f</td><td>%.3g</td><td>%s</td></tr>\n", row[i].mean, row[i].spread, row[i].p,
                verdict(&row[i], level, r->n));
    }
    fputs("</table>\n<div class=\"grid\">\n", out.to);
    for (long i = 0; i < n; i++) figure(out.to, (int)i + 1, r, least, &row[i], label[row[i].column]);
    fputs("</div>\n", out.to);
    gm_html_end(out.to);
    free(title);
    return gm_output_done(&out);
}

static bool write_ranks(const char *output, const GmCalibrated *c, const Work *w, const Row *row, long n)
{
    char *path = gm_format("%s_ranks.csv", output);
    GmFile out;
    const bool open = gm_output_open(&out, path, false);
    free(path);
    if (!open) return false;
    for (long i = 0; i < n; i++) {
        char *name = gm_dotted(gm_copy_text(c->label[row[i].column]));
        fprintf(out.to, i ? ",%s" : "%s", name);
        free(name);
    }
    fputc('\n', out.to);
    for (long k = 0; k < w->n; k++) {
        if (w->sim[k].status != GM_EXIT_OK) continue;
        for (long i = 0; i < n; i++) fprintf(out.to, i ? ",%.0f" : "%.0f", w->value[k * c->columns + row[i].column]);
        fputc('\n', out.to);
    }
    return gm_output_done(&out);
}

static int by_p(const void *a, const void *b)
{
    const Row *x = a, *y = b;
    return x->p < y->p ? -1 : x->p > y->p ? 1 : x->column < y->column ? -1 : 1;
}

static int by_column(const void *a, const void *b)
{
    const Row *x = a, *y = b;
    return x->column < y->column ? -1 : x->column > y->column;
}

// Mean and spread of the ranks; the comparison with a uniform law.
static void judge(Row *row, const Ranks *r, const double *uniform)
{
    double sum = 0, squares = 0;
    for (long i = 0; i < r->n; i++) sum += ((double)row->rank[i] + 0.5) / (double)(r->draws + 1);
    row->mean = sum / (double)r->n;
    for (long i = 0; i < r->n; i++) {
        const double x = ((double)row->rank[i] + 0.5) / (double)(r->draws + 1) - 0.5;
        squares += x * x;
    }
    const double whole = (double)(r->draws + 1);
    row->spread = sqrt(squares / (double)r->n / ((1 - 1 / (whole * whole)) / 12));
    const double at = statistic(r, row->rank);
    row->p = 1 - stays(r, at, uniform);
    if (row->p < 0) row->p = 0;
}

// The ranks of all quantities that are compared; gives: how many. left_out: those that do not exist, or are no numbers.
static long rank_all(const GmCalibrated *c, const Work *w, const Ranks *r, const double *uniform, Row *row, long *left_out)
{
    const long good = w->n - w->failed;
    long n = 0;
    for (long i = 0; i < c->columns; i++) {
        if (!c->compared[i]) continue;
        Row *q = &row[n];
        *q = (Row){.column = i, .rank = gm_alloc((size_t)good + 1, sizeof *q->rank)};
        for (long k = 0; k < w->n; k++) {
            const double x = w->value[k * c->columns + i];
            if (w->sim[k].status == GM_EXIT_OK && !isnan(x)) q->rank[q->n++] = (int)x;
        }
        if (q->n == good) {
            judge(q, r, uniform);
            n++;
        } else {  // an element that does not exist, or a draw that is no number
            (*left_out)++;
            free(q->rank);
        }
    }
    return n;
}

// Draws for each effective draw of a quantity, on average over the simulations; 1 where none is known.
static double draws_for_one(const Work *w, long column)
{
    double sum = 0;
    long n = 0;
    for (long k = 0; k < w->n; k++) {
        const double x = w->each[k * w->c->columns + column];
        if (w->sim[k].status != GM_EXIT_OK || !isfinite(x)) continue;
        sum += x;
        n++;
    }
    return n ? sum / (double)n : 1;
}

// The same of independent draws: not 1, since the fewer draws there are the more their estimate of it varies.
static double draws_for_one_if_independent(long draws)
{
    enum { TIMES = 300 };
    double *x = gm_alloc((size_t)draws, sizeof *x), sum = 0;
    for (long k = 0; k < TIMES; k++) {
        Stream g = stream((Sweep){.seed = 1, .sweep = (uint64_t)k}, 0, 0);
        for (long d = 0; d < draws; d++) x[d] = uniform_open(&g);
        sum += (double)draws / gm_mixing(x, 1, draws) / TIMES;
    }
    free(x);
    return sum;
}

// Of a calibration that failed: whether draws depend on each other of a quantity whose ranks are not uniform. The caller frees; NULL: no.
static char *tell_dependent(const Work *w, const Row *row, long n, double level)
{
    double most = 0;
    const char *which = NULL;
    for (long i = 0; i < n; i++) {
        const double each = row[i].p < level ? draws_for_one(w, row[i].column) : 0;
        if (each <= most) continue;
        most = each;
        which = w->c->label[row[i].column];
    }
    most /= draws_for_one_if_independent(w->draws);
    if (!(most > DEPENDENT)) return NULL;
    return gm_format("The %ld draws of %s in a simulation are worth %.0f independent ones: ranks among such draws are not uniform even "
                     "where the program is right. Take --thin %.0f%s before you look for a fault.",
                     w->draws, which, (double)w->draws / most, ceil(2 * most * w->thin), w->o->thin_given ? ", or leave it out," : "");
}

static int tell(const GmCalibrated *c, const GmModel *model, const GmOptions *o, Work *w, const char *thinned)
{
    const long good = w->n - w->failed;
    Ranks r;
    ranks_open(&r, good, w->draws);
    double *uniform = uniform_law(&r), *quantile = gm_alloc((size_t)w->draws, sizeof *quantile);
    for (long k = 0; k < w->draws; k++) quantile[k] = normal_quantile(uniform[k]);
    Row *row = gm_alloc((size_t)c->columns, sizeof *row);
    long left_out = 0;
    const long n = rank_all(c, w, &r, uniform, row, &left_out);
    const double level = LEVEL / (double)(n ? n : 1), least = critical(&r, uniform, level), shift = seen(&r, least, quantile, true),
                 scale = seen(&r, least, quantile, false);
    qsort(row, (size_t)n, sizeof *row, by_p);
    long bad = 0;
    for (long i = 0; i < n; i++) bad += row[i].p < level;
    printf("%-24s %10s %10s %10s  %s\n", "", "mean rank", "spread", "p", "");
    for (long i = 0; i < n && i < o->summary_rows; i++)
        printf("%-24s %10.3f %10.3f %10.3g  %s\n", c->label[row[i].column], row[i].mean, row[i].spread, row[i].p,
               verdict(&row[i], level, good));
    if (n > o->summary_rows) printf("... %ld more, with larger p\n", n - o->summary_rows);
    char *size = isnan(shift)
                     ? gm_copy_text("Fewer simulations than these say little: even a posterior moved by its sd is seen in fewer than 4 of "
                                    "5 calibrations.")
                     : gm_format("Of one quantity this shows in 4 of 5 calibrations a posterior that is moved by %.2g of its sds, or one "
                                 "whose sds are %.2g of the right ones; less may go unseen.",
                                 shift, scale);
    char *text =
        gm_format("%ld simulations, the rank of each quantity among %ld draws, which are %s. Mean rank: 0.5 where draws are right; spread: "
                  "the sd of the ranks over that of a uniform law, 1. p: of their distribution function (Säilynoja et al. 2022). The "
                  "calibration fails if one of %ld quantities has p below %.2g, which a program that is right does in at most %g %% of "
                  "calibrations. %s",
                  good, w->draws, thinned, n, level, 100 * LEVEL, size);
    printf("\n%s\n", text);
    if (left_out) printf("%ld elements that do not exist, or are no numbers, have no ranks.\n", left_out);
    if (!model->joint_as_written)
        printf("The log joint density has no rank: it has that of auxiliaries besides, which the prior does not draw.\n");
    char *dependent = tell_dependent(w, row, n, level);
    printf("%s\n", bad ? "calibration FAILED" : w->failed ? "calibration incomplete" : n ? "calibration passed" : "nothing to compare");
    if (dependent) printf("%s\n", dependent);
    int status = bad ? GM_EXIT_UNCALIBRATED : w->failed || !n ? GM_EXIT_FAULT : GM_EXIT_OK;
    if (w->failed) gm_error("calibrate: %ld of %ld simulations gave no draws, and ranks are of the others. %s", w->failed, w->n, w->first);
    char *all = gm_format("%s%s%s", text, dependent ? " " : "", dependent ? dependent : "");
    if (o->report && !write_page(o->report, model->name, &r, least, row, n, c->label, level, all)) status = GM_EXIT_FAULT;
    free(all);
    free(dependent);
    qsort(row, (size_t)n, sizeof *row, by_column);
    if (o->ranks && !write_ranks(o->ranks, c, w, row, n)) status = GM_EXIT_FAULT;
    for (long i = 0; i < n; i++) free(row[i].rank);
    free(row);
    free(size);
    free(text);
    free(uniform);
    free(quantile);
    free(r.below);
    return status;
}

int gm_calibrate(const GmCalibrated *c, const GmModel *model, const GmOptions *o)
{
    const double begun = gm_seconds();
    if (o->report && !gm_output_replaces_own(o->report, GM_HTML_BEGIN)) return GM_EXIT_USAGE;
    Work w = {
        .c = c, .o = o, .n = o->sims ? o->sims : SIMS, .draws = o->samples_given ? o->samples : DRAWS, .thin = o->thin_given ? o->thin : 0};
    if (c->fit_all)
        gm_note("%s: %ld simulations, seed %llu, as chains of one run%s", model->name, w.n, (unsigned long long)o->seed,
                model->n_selections > 0 && o->method == GM_METHOD_AUTO ? " by Gibbs updates (--method names another method)" : "");
    else gm_note("%s: %ld simulations, seed %llu, %d at once", model->name, w.n, (unsigned long long)o->seed, o->threads);
    double slowest = 1;
    const char *which = "";
    int status = GM_EXIT_OK;
    if (!w.thin) w.thin = thinning(c, o, &slowest, &which, &status);
    if (status != GM_EXIT_OK) return status;
    if (2 * slowest > MOST_THIN)
        gm_error("calibrate: %s takes %.0f sweeps for each effective draw: draws %d sweeps apart depend on each other, and ranks are not "
                 "uniform even where the program is right; --thin N takes more",
                 which, slowest, MOST_THIN);
    w.sim = shared((size_t)w.n * sizeof *w.sim);
    w.value = shared((size_t)(w.n * c->columns) * sizeof *w.value);
    w.each = shared((size_t)(w.n * c->columns) * sizeof *w.each);
    const bool all = run_all(&w, 0);
    status = all || gm_interrupted() || !w.ended ? GM_EXIT_INTERRUPTED : w.ended;
    if (!all) gm_error(status == GM_EXIT_INTERRUPTED ? "calibrate: interrupted; no ranks are kept" : "calibrate: no ranks");
    else if (w.failed == w.n) {
        gm_error("calibrate: no simulation gave draws. %s", w.first);
        status = GM_EXIT_FAULT;
    } else {
        char *thinned =
            o->thin_given ? gm_format("%d sweeps apart", w.thin) : gm_format("%d sweeps apart, twice what an effective draw takes", w.thin);
        status = tell(c, model, o, &w, thinned);
        free(thinned);
        gm_note("%ld simulations in %.3g s", w.n, gm_seconds() - begun);
    }
    munmap(w.sim, (size_t)w.n * sizeof *w.sim);
    munmap(w.value, (size_t)(w.n * c->columns) * sizeof *w.value);
    munmap(w.each, (size_t)(w.n * c->columns) * sizeof *w.each);
    free(w.first);
    return status;
}
