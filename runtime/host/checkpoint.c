// checkpoint.c -- NAME.checkpoint: what a run needs to go on after it was killed, with the draws that it would have had.
//
//   head   program, settings, data, draws so far        compared with those of the run that goes on
//   body   arrays of the chains; what warm-up has learned or is about to decide; the last row of each chain's file
//
// Random numbers have no state: they are keyed by seed, chain, sweep and update. So the state of the chains after a sweep, what they have
// adapted, and the number of the sweep are all that the next one depends on. Rows that the files hold beyond the checkpoint are dropped and
// made again. The file is written when all chains have made the same sweeps, and has its name when it is whole and on the disk.
#include "fields.h"
#include "messages.h"
#include "runs.h"
#include "../device/nuts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double USUAL_ACCEPT = 0.8;  // that HMC aims at (device/nuts.h, chees.h)

// What the draws depend on, a line each: its name and its value. What an option would set to its default is as without it, unless the model
// has other ones.
static char *settings_of(const GmCheckpoint *c, const GmOptions *o)
{
    const double accept = o->adapt_delta > 0 || c->own_hmc ? o->adapt_delta : USUAL_ACCEPT;
    const int depth = o->max_treedepth > 0 || c->own_hmc ? o->max_treedepth : NUTS_DEPTH;
    static const char *const methods[] = {"auto", "gibbs", "nuts", "both"}, *const moves[] = {"auto", "nuts", "chees"};
    char *radius = gm_format("%.17g", o->init_radius), target[GM_NUMBER_ROOM];
    target[gm_print_number(target, accept, 0)] = 0;
    char *text = gm_format("chains %d\nwarmup %ld\nthin %d\nseed %llu\nfirst-chain %d\nparams %s\nlog-lik %d\npredict %d\nno-lp %d\n"
                           "digits %d\nmethod %s\nmoves %s\nadapt-delta %s\nmax-treedepth %d\nsave-warmup %d\nlog-prior %d\ninit %s\n",
                           o->chains, o->warmup, o->thin, (unsigned long long)o->seed, o->first_chain, o->params ? o->params : "(none)",
                           (o->requests & GM_LOG_LIK) != 0, (o->requests & GM_REPLICATES) != 0, !o->log_joint, o->digits,
                           methods[o->method], moves[o->moves], target, depth, o->save_warmup, o->log_prior,
                           o->init_map    ? "map"
                           : o->init_file ? o->init_file
                                          : radius);
    free(radius);
    return text;
}

// The first line in which two texts differ, as a message.
static void say_difference(const char *path, const char *there, const char *here)
{
    while (*there && *here) {
        const int n = (int)strcspn(there, "\n"), m = (int)strcspn(here, "\n"), name = (int)strcspn(there, " ");
        if (n != m || strncmp(there, here, (size_t)n) != 0) {
            gm_error("--resume: %s is of a run with another --%.*s: %.*s there, %.*s here", path, name, there, n - name - 1,
                     there + name + 1, m - name - 1, here + name + 1);
            return;
        }
        there += n + 1;
        here += m + 1;
    }
}

// Data as the program has them: names, shapes, elements.
static uint64_t sum_of_data(const GmModel *model, const GmData *d)
{
    uint64_t sum = 1;
    for (int f = 0; f < model->n_data; f++) {
        const GmValue *v = gm_values_find(&d->values, model->data[f].name);
        if (!v) continue;
        const size_t bytes = (size_t)gm_value_size(v) * gm_size_of_element(v->type);
        sum = gm_mix(sum, v->name, strlen(v->name) + 1);
        sum = gm_mix(sum, v->dim, sizeof *v->dim * (size_t)v->rank);
        sum = gm_mix(sum, v->elements, bytes);
    }
    return sum;
}

// The head; `settings`: those of this run, or where those of the file go.
static void save_head(GmCheckpoint *c, GmSaved *s, char **settings)
{
    GM_SAVED(s, c->program);
    char *text = gm_saved_text(s, *settings);
    if (gm_saved_reads(s)) *settings = text ? text : gm_copy_text("");
    GM_SAVED(s, c->seed);
    GM_SAVED(s, c->data);
    GM_SAVED(s, c->samples);
    GM_SAVED(s, c->enough);
    GM_SAVED(s, c->sweeps);
    GM_SAVED(s, c->kept);
    GM_SAVED(s, c->early);
    GM_SAVED(s, c->seconds);
}

static GmSaved *open_at_body(GmCheckpoint *c)
{
    GmSaved *s = gm_saved_open(c->path);
    char *settings = NULL;
    GmCheckpoint there = *c;
    if (!s) return NULL;
    save_head(&there, s, &settings);
    free(settings);
    return s;
}

// Compares the run with the head of the file, and takes from it what the command line leaves out.
static bool go_on(GmCheckpoint *c, GmOptions *o, const char *flag)
{
    const uint64_t program = c->program;
    char *there = NULL;
    GmSaved *s = gm_saved_open(c->path);
    if (!s) return true;  // the run begins
    save_head(c, s, &there);
    bool good = gm_saved_good(s);
    gm_saved_close(s);
    if (!good) gm_error("%s: %s is not whole, or no checkpoint of this version", flag, c->path);
    else if (c->program != program) {
        gm_error("%s: %s is of another program: compiled from another model, or again by another gmc", flag, c->path);
        good = false;
    }
    if (good && !o->seed_given) o->seed = c->seed;
    if (good && !o->samples_given) o->samples = c->samples;
    char *here = settings_of(c, o);
    if (good && strcmp(here, there) != 0) {
        say_difference(c->path, there, here);
        good = false;
    }
    free(here);
    free(there);
    if (good && o->append && c->kept < c->samples && !c->enough) {
        gm_error("--append: the run of %s has not ended: it has %ld of %ld draws. --resume ends it", c->path, c->kept, c->samples);
        good = false;
    }
    if (good && o->append) o->samples = c->kept + o->append;
    if (good && o->samples < c->kept) {
        gm_error("%s: %s has %ld draws per chain, and --samples %ld are fewer", flag, c->path, c->kept, o->samples);
        good = false;
    }
    o->goes_on = c->goes_on = good;
    return good;
}

bool gm_checkpoint_open(GmCheckpoint *c, const GmModel *model, GmOptions *o)
{
    *c = (GmCheckpoint){.every = o->checkpoint, .path = o->output ? gm_format("%s.checkpoint", o->output) : NULL};
    c->own_hmc = model->own_hmc;
    c->asked = o->checkpoint >= 0 || o->resume || o->append;
    if (!c->asked) return true;
    if (c->every < 0) c->every = GM_CHECKPOINT_SECONDS;
    if (!gm_mix_file("/proc/self/exe", &c->program)) {
        gm_error("--checkpoint: the program itself cannot be read: %s", strerror(errno));
        return false;
    }
    if (!o->resume && !o->append) return true;
    const char *flag = o->append ? "--append" : "--resume";
    if (!go_on(c, o, flag)) return false;
    if (c->goes_on) return true;
    if (o->append)
        gm_error("--append: there is no %s: a run with --checkpoint leaves it. --init %s_1.csv begins at a last draw", c->path, o->output);
    else gm_note("there is no %s: the run begins", c->path);
    return !o->append;
}

bool gm_checkpoint_data(GmCheckpoint *c, const GmModel *model, const GmData *d)
{
    if (!c->asked) return true;
    const uint64_t sum = sum_of_data(model, d);
    if (c->goes_on && sum != c->data) {
        gm_error("--resume: %s is of a run with other data", c->path);
        return false;
    }
    c->data = sum;
    return true;
}

bool gm_checkpoint_memory(GmCheckpoint *c, GmMemory *m)
{
    GmSaved *s = open_at_body(c);
    if (s) gm_memory_save(m, s);
    const bool good = s && gm_saved_good(s);
    if (s) gm_saved_close(s);
    if (!good) gm_error("--resume: %s cannot be read any more", c->path);
    return good;
}

// All but the head.
static void save_body(const GmCheckpointed *of, GmSaved *s, double *last, double *last_early, uint64_t *sum, uint64_t *sum_early)
{
    gm_memory_save(of->memory, s);
    gm_trials_save(of->selected, s);
    gm_restarts_save(of->restarts, s);
    if (of->run->metrics) gm_metrics_save(of->run->metrics, s, of->run->warmup);
    gm_together_save(of->run, s);
    gm_stays_save(s);
    gm_saved_bytes(s, of->draws->possible, (size_t)of->draws->chains * sizeof *of->draws->possible);
    gm_saved_bytes(s, last, (size_t)(of->draws->chains * of->draws->n_columns) * sizeof *last);
    gm_saved_bytes(s, sum, (size_t)of->draws->chains * sizeof *sum);
    if (of->early) gm_saved_bytes(s, last_early, (size_t)(of->early->chains * of->early->n_columns) * sizeof *last);
    if (of->early) gm_saved_bytes(s, sum_early, (size_t)of->early->chains * sizeof *sum);
}

// Of each chain's file, what gm_draws_resume compares.
static uint64_t *sums_of(const GmDraws *d)
{
    uint64_t *sum = gm_alloc(d ? (size_t)d->chains : 1, sizeof *sum);
    for (int c = 0; d && d->writer && c < d->chains; c++) sum[c] = gm_writer_sum(d->writer, c);
    return sum;
}

// The row before `kept` of each chain, one after the other; zeros where there is none.
static double *last_rows(const GmDraws *d, long kept)
{
    const size_t n = d ? (size_t)d->n_columns : 0;
    double *row = gm_alloc(d ? (size_t)d->chains * n : 1, sizeof *row);
    for (int c = 0; d && c < d->chains && kept > 0; c++) memcpy(row + (size_t)c * n, gm_draws_row(d, c, kept - 1), n * sizeof *row);
    return row;
}

void gm_checkpoint_write(GmCheckpoint *c, const GmCheckpointed *of, const GmOptions *o)
{
    c->written = gm_seconds();
    if (!gm_draws_on_disk(of->draws) || (of->early && !gm_draws_on_disk(of->early))) return;
    c->seed = o->seed;
    c->samples = o->samples;
    c->enough = of->enough;
    c->sweeps = of->run->sweep;
    c->kept = of->kept;
    c->early = of->early_kept;
    c->seconds[0] = of->draws->sampling - of->draws->begun;
    c->seconds[1] = c->written - of->draws->sampling;
    if (c->sweeps < o->warmup) c->seconds[0] = c->seconds[1], c->seconds[1] = 0;
    char *settings = settings_of(c, o);
    double *last = last_rows(of->draws, of->kept), *last_early = last_rows(of->early, of->early_kept);
    uint64_t *sum = sums_of(of->draws), *sum_early = sums_of(of->early);
    GmSaved *s = gm_saved_create(c->path);
    save_head(c, s, &settings);
    save_body(of, s, last, last_early, sum, sum_early);
    gm_saved_close(s);
    free(settings);
    free(sum);
    free(sum_early);
    free(last);
    free(last_early);
    c->written = gm_seconds();
}

// What a run that was killed was writing: where all draws are there, this one writes none in its place.
static void remove_part(const char *path)
{
    char *real = gm_file_real(path), *part = gm_format("%s.part", real);
    unlink(part);
    free(part);
    free(real);
}

bool gm_checkpoint_begin(GmCheckpoint *c, const GmCheckpointed *of, const GmOptions *o)
{
    if (!c->goes_on) {
        if (!c->asked && !o->status) return true;
        if (!gm_draws_settle(of->draws) || (of->early && !gm_draws_settle(of->early))) return false;
        if (c->asked) gm_checkpoint_write(c, of, o);
        return true;
    }
    remove_part(c->path);
    double *last = gm_alloc((size_t)(of->draws->chains * of->draws->n_columns), sizeof *last),
           *last_early = gm_alloc(of->early ? (size_t)(of->early->chains * of->early->n_columns) : 1, sizeof *last);
    uint64_t *sum = sums_of(of->draws), *sum_early = sums_of(of->early);
    GmSaved *s = open_at_body(c);
    bool good = s != NULL;
    if (s) {
        save_body(of, s, last, last_early, sum, sum_early);
        good = gm_saved_close(s);
    }
    if (!good) gm_error("--resume: %s cannot be read any more", c->path);
    of->run->sweep = c->sweeps;
    const bool begun = c->sweeps > 0 && c->sweeps >= o->warmup;
    // NAME.nc has the draws of warm-up before the others
    if (good && of->early) good = gm_draws_resume(of->early, of->run, of->selected, of->restarts, c->early, last_early, sum_early);
    good =
        good && (begun ? gm_draws_resume(of->draws, of->run, of->selected, of->restarts, c->kept, last, sum) : gm_draws_settle(of->draws));
    const double now = gm_seconds();
    of->draws->begun = now - c->seconds[0] - c->seconds[1];
    of->draws->sampling = begun ? now - c->seconds[1] : of->draws->begun;
    c->written = now;
    free(sum);
    free(sum_early);
    free(last);
    free(last_early);
    return good;
}

void gm_checkpoint_close(GmCheckpoint *c)
{
    free(c->path);
    *c = (GmCheckpoint){0};
}
