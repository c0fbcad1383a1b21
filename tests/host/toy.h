// toy.h -- a model written by hand in the form that the compiler emits, and the means to run the fit program on it.
//
//   data { int<lower=1> N, J, K; real<lower=0> s = 2; int<lower=1, upper=J> group[N]; real<lower=-100, upper=100> y[N];
//          matrix[N, K] X;  simplex[J] w; }
//   mu ~ normal(0, 10);   beta[j] ~ normal(mu, 1);   y[i] ~ normal(beta[group[i]], s);   twice = [[beta[1], mu], [2, 3]] ...
//
// X and w are only read. Everything is normal, so the posterior has a closed form. Faults, mistakes and slowness are had by setting
// the variables below.
#ifndef TOY_H
#define TOY_H

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../runtime/device/rng.h"
#include "../../runtime/host/host.h"

static long toy_fault_at = -1;      // sweep in which chain 1 reports a fault
static long toy_fault_between = -1; // sweep after which chain 2 reports a fault: chains 0 and 1 have kept its draw by then
static int  toy_wrong;              // the update of beta forgets the prior
static int  toy_slow;               // milliseconds that a sweep sleeps

typedef struct ToyData {
    long N, J, K;
    double s;
    const int32_t *group;
    const double *y, *X, *w;
} ToyData;

typedef struct ToyState {
    double *mu, *beta, *y, *twice, *y_rep;
    int32_t *count;                 // per group, one for all chains
    double *total;                  // per group and chain
} ToyState;

enum { DATA_N, DATA_J, DATA_K, DATA_s, DATA_group, DATA_y, DATA_X, DATA_w };
enum { VAR_mu, VAR_beta, VAR_y, VAR_twice, VAR_y_rep, VAR_count, VAR_total };

static const GmField toy_data[] = {
    [DATA_N] = {.name = "N", .type = GM_INT, .offset = offsetof(ToyData, N), .where = "toy.gm:3", .declared = "int<lower=1> N"},
    [DATA_J] = {.name = "J", .type = GM_INT, .offset = offsetof(ToyData, J), .where = "toy.gm:3", .declared = "int<lower=1> J"},
    [DATA_K] = {.name = "K", .type = GM_INT, .offset = offsetof(ToyData, K), .where = "toy.gm:3", .declared = "int<lower=1> K"},
    [DATA_s] = {.name = "s",
                .type = GM_REAL,
                .offset = offsetof(ToyData, s),
                .has_default = 1,
                .where = "toy.gm:4",
                .declared = "real<lower=0> s"},
    [DATA_group] = {.name = "group",
                    .type = GM_INT,
                    .rank = 1,
                    .offset = offsetof(ToyData, group),
                    .where = "toy.gm:5",
                    .declared = "int<lower=1, upper=J> group[N]",
                    .extent_of = {DATA_N + 1}},
    [DATA_y] = {.name = "y",
                .type = GM_REAL,
                .rank = 1,
                .offset = offsetof(ToyData, y),
                .may_miss = 1,
                .imputed_field = VAR_y + 1,
                .where = "toy.gm:6",
                .declared = "real<lower=-100, upper=100> y[N]",
                .extent_of = {DATA_N + 1}},
    [DATA_X] = {.name = "X",
                .type = GM_REAL,
                .rank = 2,
                .offset = offsetof(ToyData, X),
                .where = "toy.gm:7",
                .declared = "matrix[N, K] X",
                .extent_of = {DATA_N + 1, DATA_K + 1}},
    [DATA_w] = {.name = "w",
                .type = GM_REAL,
                .constraint = GM_SIMPLEX,
                .rank = 1,
                .offset = offsetof(ToyData, w),
                .where = "toy.gm:8",
                .declared = "simplex[J] w",
                .extent_of = {DATA_J + 1}},
};

static const GmField toy_state[] = {
    [VAR_mu] = { .name = "mu", .type = GM_REAL, .role = GM_PARAMETER, .offset = offsetof(ToyState, mu), .where = "toy.gm:10" },
    [VAR_beta] = { .name = "beta", .type = GM_REAL, .role = GM_PARAMETER, .rank = 1, .offset = offsetof(ToyState, beta) },
    [VAR_y] = { .name = "y", .type = GM_REAL, .role = GM_IMPUTED, .rank = 1, .offset = offsetof(ToyState, y) },
    [VAR_twice] = { .name = "twice", .type = GM_REAL, .role = GM_DERIVED, .rank = 2, .offset = offsetof(ToyState, twice) },
    [VAR_y_rep] = { .name = "y_rep", .type = GM_REAL, .role = GM_PREDICTED, .rank = 0, .offset = offsetof(ToyState, y_rep) },
    [VAR_count] = { .name = "count", .type = GM_INT, .role = GM_SUM, .rank = 1, .offset = offsetof(ToyState, count), .shared = 1 },
    [VAR_total] = { .name = "total", .type = GM_REAL, .role = GM_SUM, .rank = 1, .offset = offsetof(ToyState, total) },
};

static void toy_data_shape(int field, const void *data, GmShape *out)
{
    field--;  // counted from 1, as programs do
    const ToyData *d = data;
    *out = (GmShape){ .rank = toy_data[field].rank, .lower = -INFINITY, .upper = INFINITY };
    switch (field) {
    case DATA_N: case DATA_J: case DATA_K: out->lower = 1; break;
    case DATA_s: out->lower = 0; break;
    case DATA_group: out->dim[0] = d->N; out->lower = 1; out->upper = d->J; break;
    case DATA_y: out->dim[0] = d->N; out->lower = -100; out->upper = 100; break;
    case DATA_X: out->dim[0] = d->N; out->dim[1] = d->K; break;
    case DATA_w: out->dim[0] = d->J; break;
    }
}

static double toy_data_default(int field, const void *data)
{
    (void)field;
    (void)data;
    return 2;
}

static void toy_state_shape(int field, const void *data, GmShape *out)
{
    field--;  // counted from 1, as programs do
    const ToyData *d = data;
    *out = (GmShape){ .rank = toy_state[field].rank, .lower = -INFINITY, .upper = INFINITY };
    switch (field) {
    case VAR_beta: case VAR_count: case VAR_total: out->dim[0] = d->J; break;
    case VAR_y: out->dim[0] = d->N; break;
    case VAR_twice: out->dim[0] = 2; out->dim[1] = 3; break;
    }
}

static Sweep toy_at(const GmRun *run, int chain)
{
    return (Sweep){ run->seed, (uint32_t)(run->first_chain + chain), (uint64_t)run->sweep };
}

static double toy_log_normal(double x, double mean, double sd)
{
    return -0.5 * (x - mean) * (x - mean) / (sd * sd) - log(sd) - 0.91893853320467274178;
}

// x <- normal(mean, sd), adding log q(new) - log q(old) to the chain's ratio check.
static void toy_draw(GmRun *run, int c, int variable, long element, double *x, double mean, double sd)
{
    Stream g = stream(toy_at(run, c), (uint32_t)variable, (uint64_t)element);
    const double before = *x;
    *x = mean + sd * normal_standard(&g);
    if (run->checking)
        run->check_log_q[c] += toy_log_normal(*x, mean, sd) - toy_log_normal(before, mean, sd);
}

static void toy_setup(GmRun *run)
{
    const ToyData *d = run->data;
    int32_t *count = ((ToyState *)run->state)[0].count;
    for (long i = 0; i < d->N; i++)
        count[d->group[i] - 1]++;
}

static void toy_step(GmRun *run, int k)
{
    const ToyData *d = run->data;
#pragma omp parallel for
    for (int c = 0; c < run->chains; c++) {
        ToyState *s = (ToyState *)run->state + c;
        switch (k) {
        case 0: {
            double sum = 0;
            for (long j = 0; j < d->J; j++)
                sum += s->beta[j];
            const double precision = d->J + 0.01;
            toy_draw(run, c, VAR_mu, 0, s->mu, sum / precision, 1 / sqrt(precision));
            break;
        }
        case 1:
            memset(s->total, 0, (size_t)d->J * sizeof(double));
            for (long i = 0; i < d->N; i++)
                s->total[d->group[i] - 1] += s->y[i];
            for (long j = 0; j < d->J; j++) {
                const double precision = (toy_wrong ? 0.1 : 1) + s->count[j] / (d->s * d->s);
                toy_draw(run, c, VAR_beta, j, &s->beta[j], (*s->mu + s->total[j] / (d->s * d->s)) / precision, 1 / sqrt(precision));
            }
            break;
        case 2:
            for (long i = 0; i < run->missing[DATA_y].count; i++) {
                const long at = run->missing[DATA_y].index[i];
                toy_draw(run, c, VAR_y, at, &s->y[at], s->beta[d->group[at] - 1], d->s);
            }
            break;
        case 3:                                          // an update without a ratio check, which changes nothing
            run->check_log_q[c] = run->checking ? NAN : 0;
            break;
        }
        if (run->sweep == toy_fault_at && run->first_chain + c == 1)
            gm_fault(run, c, "y", 2, "the scale is not positive");
    }
}

static void toy_sweep(GmRun *run)
{
    GmRun one = *run;
    for (long b = 0; b < (run->batch > 0 ? run->batch : 1); b++, one.sweep++) {
        for (int k = 0; k < 4; k++)
            toy_step(&one, k);
        if (toy_slow)
            usleep((useconds_t)(1000 * toy_slow));
        for (int c = 0; c < run->chains && run->after; c++) {
            one.chain = c;
            if (one.sweep == toy_fault_between && c == 2)
                gm_fault(run, c, "y", 2, "the scale is not positive");
            run->after(&one);
        }
    }
}

static void toy_derive_from(GmRun *run, int first, int last)
{
    for (int c = first; c < last; c++) {
        ToyState *s = (ToyState *)run->state + c;
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 3; j++)
                s->twice[i * 3 + j] = 10 * (i + 1) + (j + 1);
        Stream g = stream(toy_at(run, c), VAR_y_rep, 0);
        *s->y_rep = *s->mu + normal_standard(&g);
    }
}

static void toy_derive(GmRun *run) { toy_derive_from(run, 0, run->chains); }
static void toy_derive_chain(GmRun *one) { toy_derive_from(one, one->chain, one->chain + 1); }

static double toy_log_joint(GmRun *run, int chain)
{
    const ToyData *d = run->data;
    const ToyState *s = (ToyState *)run->state + chain;
    double sum = toy_log_normal(*s->mu, 0, 10);
    for (long j = 0; j < d->J; j++)
        sum += toy_log_normal(s->beta[j], *s->mu, 1);
    for (long i = 0; i < d->N; i++)
        sum += toy_log_normal(s->y[i], s->beta[d->group[i] - 1], d->s);
    return sum;
}

static const char *toy_step_name(int step)
{
    static const char *const names[] = { "mu", "beta", "y", "idle" };
    return names[step];
}

static const GmModel toy = {
    .name = "toy", .source = "toy.gm",
    .data = toy_data, .n_data = sizeof toy_data / sizeof *toy_data, .data_size = sizeof(ToyData),
    .state = toy_state, .n_state = sizeof toy_state / sizeof *toy_state, .state_size = sizeof(ToyState),
    .data_shape = toy_data_shape, .data_default = toy_data_default, .state_shape = toy_state_shape,
    .setup = toy_setup, .sweep = toy_sweep, .derive = toy_derive, .derive_chain = toy_derive_chain, .log_joint = toy_log_joint,
    .n_updates = 4, .update_name = toy_step_name, .update = toy_step,
};

static const char toy_json[] = "{ \"N\": 5, \"J\": 2, \"K\": 2, \"group\": [1, 2, 1, 2, 2], \"y\": [1.5, 3, -0.5, 4, 5],\n"
                               "  \"X\": [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]], \"w\": [0.25, 0.75] }\n";

// ---- running, files, checks ----

static int failures;

// One line per check.
static inline void check(bool good, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs(good ? "ok    " : "FAIL  ", stdout);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
    failures += !good;
}

// Makes a directory that only this test uses, and goes there.
static inline void enter_scratch(void)
{
    char path[] = "/tmp/gm-host-XXXXXX";
    if (!mkdtemp(path) || chdir(path) != 0) {
        perror(path);
        exit(1);
    }
}

static inline void leave_scratch(void)
{
    char path[4096], command[4200];
    if (getcwd(path, sizeof path) && strncmp(path, "/tmp/gm-host-", 13) == 0) {
        snprintf(command, sizeof command, "rm -rf '%s'", path);
        if (chdir("/") != 0 || system(command) != 0)
            perror(path);
    }
}

static inline void put(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

static inline void put_text(const char *path, const char *text)
{
    put(path, text, strlen(text));
}

// The whole file as text, "" if there is none; the caller frees.
static inline char *get_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat info = { 0 };
    if (f)
        fstat(fileno(f), &info);
    char *text = calloc((size_t)info.st_size + 1, 1);
    if (f) {
        text[fread(text, 1, (size_t)info.st_size, f)] = 0;
        fclose(f);
    }
    return text;
}

// Starts `fit ARGS` (words separated by blanks) on the toy model in a process of its own; its output goes to out.txt and err.txt.
static inline pid_t start_fit(const char *words)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child != 0)
        return child;
    char *copy = strdup(words), *argv[64] = { "fit" };
    int argc = 1;
    for (char *w = strtok(copy, " "); w && argc < 63; w = strtok(NULL, " "))
        argv[argc++] = w;
    if (!freopen("out.txt", "w", stdout) || !freopen("err.txt", "w", stderr))
        _exit(99);
    const int status = gm_fit(&toy, argc, argv);
    free(copy);
    exit(status);
}

static inline int wait_fit(pid_t child)
{
    int status = 0;
    if (waitpid(child, &status, 0) < 0)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static inline int fit(const char *words)
{
    return wait_fit(start_fit(words));
}

// Does the file hold the text?
static inline bool holds(const char *path, const char *text)
{
    char *all = get_text(path);
    const bool found = strstr(all, text) != NULL;
    free(all);
    return found;
}

// The head of a file of draws says when the run began, its last lines how long it took.
static inline void without_times(char *text)
{
    char *began = strstr(text, "# start_datetime = "), *end = began ? strchr(began, '\n') : NULL;
    if (end) memset(began, '#', (size_t)(end - began));
    char *times = strstr(text, "# \n#  Elapsed Time");
    if (times)
        *times = 0;
}

static inline bool same_file(const char *a, const char *b)
{
    char *x = get_text(a), *y = get_text(b);
    without_times(x);
    without_times(y);
    const bool same = *x && strcmp(x, y) == 0;
    free(x);
    free(y);
    return same;
}

static inline int finish_tests(void)
{
    leave_scratch();
    return failures > 0;
}

#endif
