// record.c -- NAME_run.json: what a run was made of, so that `fit rerun NAME_run.json` makes its draws again.
//
//   arguments   what the draws depend on, as options and data of a command line; of a run that ended early its number of draws
//   data        each file that was read, with its size and SHA-256: rerun refuses others
//   draws       each chain, with its file and the SHA-256 of its names and numbers (not of comments, which have times): rerun compares them
//
// Files of data are hashed by a thread of its own while the chains go on.
#include "messages.h"
#include "runs.h"
#include "../backends/sha256.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// ---- files ----

static void *hash_all(void *argument)
{
    GmRecord *r = argument;
    for (int k = 0; k < r->n; k++) {
        GmRecordFile *f = &r->file[k];
        struct stat there;
        f->regular = stat(f->path, &there) == 0 && S_ISREG(there.st_mode);
        f->known = f->regular && gm_sha256_file(f->path, f->hash, &f->bytes);
    }
    return NULL;
}

static void add_file(GmRecord *r, const char *path)
{
    if (!path) return;
    r->file = gm_grow(r->file, (size_t)r->n + 1, sizeof *r->file);
    r->file[r->n++] = (GmRecordFile){.path = gm_copy_text(path)};
}

static void add_input(GmRecord *r, const char *input)
{
    char *path = gm_input_file(input);
    add_file(r, path);
    free(path);
}

// Of the lines of a file of draws, but for comments. false: it cannot be read.
static bool hash_draws(const char *path, char hash[GM_SHA256_ROOM])
{
    GmLines from;
    GmSha256 sum;
    if (!gm_lines_open(&from, path)) return false;
    gm_sha256_begin(&sum);
    for (const char *text; (text = gm_lines_next(&from));) {
        if (*text == '#' || !*text) continue;
        gm_sha256_add(&sum, text, strlen(text));
        gm_sha256_add(&sum, "\n", 1);
    }
    gm_sha256_end(&sum, hash);
    const bool good = !from.failed;
    gm_lines_close(&from);
    return good;
}

// ---- the command line ----

static void add(json_t *list, const char *flag, char *value)
{
    if (flag) json_array_append_new(list, json_string(flag));
    if (value) json_array_append_new(list, json_string(value));
    free(value);
}

// What the draws depend on, of `kept` draws.
static json_t *arguments_of(const GmOptions *o, long kept, bool on_gpu)
{
    static const char *const methods[] = {"auto", "gibbs", "nuts", "both"}, *const moves[] = {"auto", "nuts", "chees"};
    json_t *list = json_array();
    for (int k = 0; k < o->n_inputs; k++) add(list, NULL, gm_copy_text(o->inputs[k]));
    add(list, "--seed", gm_format("%llu", (unsigned long long)o->seed));
    add(list, "--chains", gm_format("%d", o->chains));
    add(list, "--warmup", gm_format("%ld", o->warmup));
    add(list, "--samples", gm_format("%ld", kept));
    add(list, "--thin", gm_format("%d", o->thin));
    if (o->first_chain != 1) add(list, "--first-chain", gm_format("%d", o->first_chain));
    if (o->params) add(list, "--params", gm_copy_text(o->params));
    if (o->requests & GM_LOG_LIK) add(list, "--log-lik", NULL);
    if (o->requests & GM_REPLICATES) add(list, "--predict", NULL);
    if (!o->log_joint) add(list, "--no-lp", NULL);
    if (o->digits) add(list, "--digits", gm_format("%d", o->digits));
    if (o->method != GM_METHOD_AUTO) add(list, "--method", gm_copy_text(methods[o->method]));
    if (o->moves != GM_TRAJECTORIES_AUTO) add(list, "--moves", gm_copy_text(moves[o->moves]));
    if (o->adapt_delta > 0) add(list, "--adapt-delta", gm_format("%.17g", o->adapt_delta));
    if (o->max_treedepth) add(list, "--max-treedepth", gm_format("%d", o->max_treedepth));
    if (o->save_warmup) add(list, "--save-warmup", NULL);
    if (o->log_prior) add(list, "--log-prior", NULL);
    if (o->moments) add(list, "--moments", gm_copy_text(o->moments));
    if (o->format != GM_FORMAT_CSV) add(list, "--format", gm_copy_text(o->format == GM_FORMAT_BOTH ? "both" : "netcdf"));
    for (int k = 0; k < o->n_levels; k++) add(list, "--levels", gm_copy_text(o->levels[k]));
    if (o->dates) add(list, "--dates", gm_copy_text(o->dates));
    if (o->init_map) add(list, "--init", gm_copy_text("map"));
    else if (o->init_file) add(list, "--init", gm_copy_text(o->init_file));
    else if (o->init_radius != 1) add(list, "--init", gm_format("%.17g", o->init_radius));
    for (int k = 0; k < o->n_new_inputs; k++) add(list, "--new", gm_copy_text(o->new_inputs[k]));
    add(list, "--device", on_gpu ? gm_format("gpu:%d", o->device_number) : gm_copy_text("cpu"));
    if (on_gpu) add(list, "--precision", gm_copy_text(gm_precision_names[o->precision]));
    return list;
}

void gm_record_open(GmRecord *r, const GmOptions *o, int argc, char **argv)
{
    if (!o->output || o->check || o->map || o->compare_devices || o->why) return;
    r->asked = true;
    r->argc = argc;
    r->argv = argv;
    r->begun = time(NULL);
    for (int k = 0; k < o->n_inputs; k++) add_input(r, o->inputs[k]);
    for (int k = 0; k < o->n_new_inputs; k++) add_input(r, o->new_inputs[k]);
    for (int c = 0; c < o->chains && o->init_of; c++)
        if (c == 0 || strcmp(o->init_of[c], o->init_of[0]) != 0) add_file(r, o->init_of[c]);
    if (o->init_file && !o->init_of) add_file(r, o->init_file);
    r->running = pthread_create(&r->thread, NULL, hash_all, r) == 0;
    if (!r->running) hash_all(r);
}

// Until all files are hashed. Chains may wait at the same time.
static void wait_for_hashes(GmRecord *r)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one);
    if (r->running) pthread_join(r->thread, NULL);
    r->running = false;
    pthread_mutex_unlock(&one);
}

// ---- at the head of files of draws ----

void gm_record_head(GmRecord *r, FILE *to)
{
    char when[32];
    struct tm at;
    if (!r || !r->asked) return;
    wait_for_hashes(r);
    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&r->begun, &at));
    fprintf(to, "# start_datetime = %s\n", when);
    for (int k = 0; k < r->n; k++) {
        const GmRecordFile *f = &r->file[k];
        fputs("# data file = ", to);
        for (const char *c = f->path; *c; c++) fputc((unsigned char)*c < ' ' ? '?' : *c, to);  // one line
        if (f->known) fprintf(to, ", %ld bytes, SHA-256 %s\n", f->bytes, f->hash);
        else fputs(", which is no regular file\n", to);
    }
}

// ---- the file ----

static char *processor(void)
{
    char line[300], *found = NULL;
    FILE *from = fopen("/proc/cpuinfo", "r");
    while (from && !found && fgets(line, sizeof line, from)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        colon[strcspn(colon, "\n")] = 0;
        found = gm_copy_text(colon + 1 + strspn(colon + 1, " "));
    }
    if (from) fclose(from);
    return found ? found : gm_copy_text("unknown");
}

// What warm-up has chosen, line by line.
static json_t *methods_of(const GmRecorded *of)
{
    json_t *list = json_array();
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    if (!to) return list;
    gm_trials_print(to, of->selected);
    gm_together_note(to, of->run, "");
    gm_metrics_print(to, of->run->metrics, of->run->selected);
    gm_restarts_print(to, of->restarts);
    fclose(to);
    for (char *line = text, *next; line && *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) *next++ = 0;
        json_array_append_new(list, json_string(line));
    }
    free(text);
    return list;
}

// By what transitions are made, of each set of unknowns that NUTS or HMC draws, as the heads of files say it.
static json_t *transitions_of(const GmRecorded *of)
{
    json_t *list = json_array();
    for (int f = 0; f < of->model->n_state; f++) {
        if (of->model->state[f].role != GM_DIAGNOSTIC) continue;
        bool between = false;
        const char *chosen = gm_trials_of_moves(of->selected, f, &between);
        json_t *one = json_object();
        json_object_set_new(one, "of", json_string(chosen ? chosen : of->model->state[f].name + strlen("moves_")));
        json_object_set_new(one, "by", json_string(gm_moves_names[gm_moves_by(of->model, of->run, f, -1)]));
        json_object_set_new(one, "chosen", json_boolean(chosen != NULL));
        json_array_append_new(list, one);
    }
    return list;
}

// By sets of unknowns under method selection, on the CPU: what all chains together have done for them, warm-up included.
static json_t *work_of(const GmRecorded *of)
{
    json_t *list = json_array();
    for (int k = 0; of->selected && !of->gpu && k < of->model->n_selections; k++) {
        const GmWork all = gm_trials_work(of->selected, k);
        json_t *one = json_object();
        json_object_set_new(one, "of", json_string(of->model->selections[k].name));
        json_object_set_new(one, "gibbs_sweeps", json_integer(all.gibbs_sweeps));
        json_object_set_new(one, "transitions", json_integer(all.transitions));
        json_object_set_new(one, "evaluations", json_integer(all.evaluations));
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *data_of(const GmRecord *r)
{
    json_t *list = json_array();
    for (int k = 0; k < r->n; k++) {
        const GmRecordFile *f = &r->file[k];
        json_t *one = json_object();
        json_object_set_new(one, "file", json_string(f->path));
        json_object_set_new(one, "bytes", f->known ? json_integer(f->bytes) : json_null());
        json_object_set_new(one, "sha256", f->known ? json_string(f->hash) : json_null());
        json_array_append_new(list, one);
    }
    return list;
}

// Variables that have an element for each level of a factor: for each of their dimensions the data that the levels are those of, or null.
static json_t *dimensions_of(const GmRecorded *of)
{
    json_t *all = json_object();
    const GmLevelSets *sets = &of->draws->data->levels;
    for (int f = 0; f < of->model->n_state; f++) {
        const GmField *field = &of->model->state[f];
        json_t *list = json_array();
        bool any = false;
        for (int k = 0; k < field->rank; k++) {
            const GmLevels *l = gm_levels_of_size(sets, field->extent_of[k]);
            json_array_append_new(list, l ? json_string(of->model->data[l->field].name) : json_null());
            any |= l != NULL;
        }
        if (any) json_object_set(all, field->name, list);
        json_decref(list);
    }
    return all;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

// Of the numbers of a chain in a NetCDF file, and their names. false: it cannot be read.
static bool hash_rows(const GmNetcdfIn *in, int chain, char hash[GM_SHA256_ROOM])
{
    enum { BLOCK = 256 };
    double *rows = gm_alloc((size_t)(BLOCK * in->n_columns), sizeof *rows);
    GmSha256 sum;
    bool good = true;
    gm_sha256_begin(&sum);
    gm_sha256_add(&sum, in->header, strlen(in->header));
    for (long first = 0; first < in->draws && good; first += BLOCK) {
        const long n = in->draws - first < BLOCK ? in->draws - first : BLOCK;
        good = gm_netcdf_in_rows(in, chain, first, n, rows);
        for (long k = 0; k < n * in->n_columns; k++)
            if (isnan(rows[k])) rows[k] = NAN;  // one of them
        gm_sha256_add(&sum, rows, sizeof *rows * (size_t)(n * in->n_columns));
    }
    gm_sha256_end(&sum, hash);
    free(rows);
    return good;
}

static json_t *draws_in_netcdf(const GmDraws *d)
{
    json_t *list = json_array();
    char *path = gm_format("%s.nc", d->options->output);
    GmNetcdfIn in = {0};
    const bool there = access(path, R_OK) == 0, good = there && gm_netcdf_in_open(&in, path) && in.header;
    for (int c = 0; c < d->chains && good; c++) {
        char hash[GM_SHA256_ROOM];
        json_t *one = json_object();
        json_object_set_new(one, "file", json_string(path));
        json_object_set_new(one, "chain", json_integer(d->first_chain + c));
        json_object_set_new(one, "sha256", c < in.chains && hash_rows(&in, c, hash) ? json_string(hash) : json_null());
        json_array_append_new(list, one);
    }
    if (there) gm_netcdf_in_close(&in);
    free(path);
    return list;
}

static json_t *draws_of(const GmDraws *d)
{
    if (d->options->format == GM_FORMAT_NETCDF) return draws_in_netcdf(d);
    json_t *list = json_array();
    char(*hash)[GM_SHA256_ROOM] = gm_alloc((size_t)d->chains, sizeof *hash);
    bool *read = gm_alloc((size_t)d->chains, sizeof *read);
#pragma omp parallel for schedule(dynamic, 1)
    for (int c = 0; c < d->chains; c++) read[c] = hash_draws(d->final[c], hash[c]);
    for (int c = 0; c < d->chains; c++) {
        json_t *one = json_object();
        json_object_set_new(one, "file", json_string(d->final[c]));
        json_object_set_new(one, "sha256", read[c] ? json_string(hash[c]) : json_null());
        json_array_append_new(list, one);
    }
    free(hash);
    free(read);
    return list;
}

// A file of draws that the record names is there, as it was written then, and is none of this run.
static bool is_left_over(const GmDraws *d, const char *file, const char *hash)
{
    char now[GM_SHA256_ROOM];
    for (int c = 0; c < d->chains; c++)
        if (strcmp(d->final[c], file) == 0) return false;
    struct stat there;
    return lstat(file, &there) == 0 && S_ISREG(there.st_mode) && hash_draws(file, now) && strcmp(now, hash) == 0;
}

// --overwrite replaces a run: where that had more chains their files go, too, or commands would take NAME for draws of both runs. Files
// of runs with other chains, which --first-chain makes, stay.
static void remove_left_over(const GmDraws *d, const GmOptions *o, const char *path)
{
    json_error_t error;
    json_t *earlier = o->overwrite && !o->goes_on && o->format != GM_FORMAT_NETCDF ? json_load_file(path, 0, &error) : NULL;
    const json_t *draws = json_object_get(earlier, "draws");
    char *first = gm_format("%s_%d.csv", o->output, o->first_chain), *removed = gm_copy_text("");
    bool replaced = false;
    size_t k;
    json_t *one;
    json_array_foreach(draws, k, one) replaced |= strcmp(text_of(one, "file"), first) == 0;
    json_array_foreach(draws, k, one)
    {
        const char *file = text_of(one, "file");
        if (!replaced || !is_left_over(d, file, text_of(one, "sha256")) || unlink(file) != 0) continue;
        char *more = gm_format("%s%s%s", removed, *removed ? ", " : "", file);
        free(removed);
        removed = more;
    }
    if (*removed) gm_note("removed, of the run that was replaced: %s", removed);
    free(removed);
    free(first);
    json_decref(earlier);
}

bool gm_record_write(GmRecord *r, const GmRecorded *of, const GmOptions *o, int status)
{
    if (!r->asked) return true;
    wait_for_hashes(r);
    char program[GM_SHA256_ROOM] = "", when[40] = "", folder[4096];
    long bytes;
    json_t *root = json_object(), *command = json_array();
    for (int k = 0; k < r->argc; k++) json_array_append_new(command, json_string(r->argv[k]));
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime(&r->begun));
    json_object_set_new(root, "model", json_string(of->model->name));
    json_object_set_new(root, "source", json_string(of->model->source));
    json_object_set_new(root, "runtime", json_string(gm_version));
    json_object_set_new(root, "program_sha256", gm_sha256_file("/proc/self/exe", program, &bytes) ? json_string(program) : json_null());
    json_object_set_new(root, "command", command);
    json_object_set_new(root, "folder", getcwd(folder, sizeof folder) ? json_string(folder) : json_null());
    json_object_set_new(root, "begun", json_string(when));
    char *seed = gm_format("%llu", (unsigned long long)o->seed);  // beyond the integers of JSON there are some
    json_object_set_new(root, "seed", o->seed <= INT64_MAX ? json_integer((json_int_t)o->seed) : json_string(seed));
    free(seed);
    json_object_set_new(root, "arguments", arguments_of(o, of->draws->kept, of->gpu != NULL));
    json_object_set_new(root, "data", data_of(r));
    json_object_set_new(root, "dimensions", dimensions_of(of));
    json_object_set_new(root, "methods", methods_of(of));
    json_object_set_new(root, "transitions", transitions_of(of));
    json_object_set_new(root, "work", work_of(of));
    char *cpu = processor();
    json_object_set_new(root, "cpu", json_string(cpu));
    free(cpu);
    json_object_set_new(root, "gpu", of->gpu ? json_string(of->gpu) : json_null());
    json_object_set_new(root, "threads", json_integer(o->threads));
    json_object_set_new(root, "sweeps", json_integer(of->sweeps));
    json_object_set_new(root, "exit_status", json_integer(status));
    json_object_set_new(root, "draws", draws_of(of->draws));
    char *path = gm_format("%s_run.json", o->output);
    remove_left_over(of->draws, o, path);
    GmFile out;
    bool good = gm_output_open(&out, path, false);
    if (good) {
        json_dumpf(root, out.to, JSON_INDENT(2));
        fputc('\n', out.to);
        good = gm_output_done(&out);
    }
    free(path);
    r->written = root;
    return good;
}

// ---- rerun ----

// Whether the data are those of the run; else a message.
static bool same_data(const json_t *earlier, const char *path)
{
    size_t k;
    json_t *one;
    json_array_foreach(json_object_get(earlier, "data"), k, one)
    {
        const char *file = text_of(one, "file"), *wanted = text_of(one, "sha256");
        char hash[GM_SHA256_ROOM];
        long bytes;
        if (!*wanted) gm_error("rerun: %s: the run has read `%s`, which was no file: it is not known what was there", path, file);
        else if (!gm_sha256_file(file, hash, &bytes))
            gm_error("rerun: %s: cannot be read: %s. The run was made in %s", file, strerror(errno), text_of(earlier, "folder"));
        else if (strcmp(hash, wanted) != 0)
            gm_error("rerun: %s: it is not the file that the run has read: its SHA-256 is %.12s..., and was %.12s...", file, hash, wanted);
        else continue;
        return false;
    }
    return true;
}

// The record that is meant: a file, or NAME of NAME_run.json. The caller frees it.
static char *record_of(const char *given)
{
    char *usual = gm_format("%s_run.json", given);
    if (access(given, F_OK) == 0 || access(usual, F_OK) != 0) {
        free(usual);
        return gm_copy_text(given);
    }
    return usual;
}

static bool same_model(const json_t *earlier, const GmModel *model, const char *path)
{
    const char *name = text_of(earlier, "model");
    if (!*name || strcmp(name, model->name) == 0) return true;
    gm_error("rerun: %s: the run was of the model %s, and this program is of %s", path, name, model->name);
    return false;
}

// The command line of the run, then what is given behind the record; without a name among that, files of a name beside the record's.
static void same_command(GmRecord *r, const char *path, int *argc, char ***argv)
{
    static const char ending[] = "_run.json";
    const json_t *arguments = json_object_get(r->earlier, "arguments");
    const int n = (int)json_array_size(arguments);
    bool named = false;
    r->again = gm_alloc((size_t)(n + *argc + 3), sizeof *r->again);
    int at = 0;
    r->again[at++] = gm_copy_text((*argv)[0]);
    for (int k = 0; k < n; k++) {
        const char *text = json_string_value(json_array_get(arguments, (size_t)k));
        r->again[at++] = gm_copy_text(text ? text : "");
    }
    for (int k = 3; k < *argc; k++) {
        r->again[at++] = gm_copy_text((*argv)[k]);
        named |= strncmp((*argv)[k], "-o", 2) == 0 || strncmp((*argv)[k], "--output", 8) == 0;
    }
    if (!named) {
        const size_t length = strlen(path), end = sizeof ending - 1;
        const bool usual = length > end && strcmp(path + length - end, ending) == 0;
        r->again[at++] = gm_copy_text("-o");
        r->again[at++] = gm_format("%.*s_rerun", (int)(usual ? length - end : length), path);
    }
    *argc = at;
    *argv = r->again;
}

bool gm_rerun_open(GmRecord *r, const GmModel *model, int *argc, char ***argv)
{
    const char *given = *argc > 2 ? (*argv)[2] : NULL;
    if (!given || *given == '-') {
        gm_error("rerun: which run? %s rerun NAME_run.json [-o NAME] [options]", (*argv)[0]);
        return false;
    }
    json_error_t error;
    char *path = record_of(given);
    r->earlier = json_load_file(path, 0, &error);
    const bool is_record = json_is_array(json_object_get(r->earlier, "arguments")) && json_is_array(json_object_get(r->earlier, "draws"));
    if (!is_record && access(path, R_OK) != 0) gm_error("rerun: %s: cannot be read: %s", path, strerror(errno));
    else if (!is_record) gm_error("rerun: %s: it is no record of a run, as -o NAME writes it to NAME_run.json", path);
    else gm_file_is_read(path);
    const bool good = is_record && same_model(r->earlier, model, path) && same_data(r->earlier, path);
    if (good) same_command(r, path, argc, argv);
    free(path);
    return good;
}

bool gm_rerun_same(const GmRecord *r)
{
    if (!r->earlier || !r->written) return true;
    const json_t *before = json_object_get(r->earlier, "draws"), *now = json_object_get(r->written, "draws");
    size_t same = 0, n = json_array_size(before);
    if (n == 0) {
        gm_note("rerun: the record of the run has no draws, as it left none: there is nothing to compare with");
        return true;
    }
    for (size_t k = 0; k < n; k++) {
        const char *hash = text_of(json_array_get(now, k), "sha256");
        same += *hash && strcmp(hash, text_of(json_array_get(before, k), "sha256")) == 0;
    }
    if (same == n && json_array_size(now) == n) {
        gm_note("rerun: the draws are those of the run");
        return true;
    }
    static const char *const about[] = {"program_sha256", "cpu", "gpu", "runtime"};
    gm_error("rerun: the draws of %ld of %ld chains are others than those of the run", (long)(n - same), (long)n);
    for (size_t k = 0; k < sizeof about / sizeof *about; k++)
        if (strcmp(text_of(r->earlier, about[k]), text_of(r->written, about[k])) != 0)
            gm_error("  %s: %.60s then, %.60s now", about[k], text_of(r->earlier, about[k]), text_of(r->written, about[k]));
    return false;
}

void gm_record_close(GmRecord *r)
{
    wait_for_hashes(r);
    for (int k = 0; k < r->n; k++) free(r->file[k].path);
    for (int k = 0; r->again && r->again[k]; k++) free(r->again[k]);
    free(r->again);
    free(r->file);
    json_decref(r->earlier);
    json_decref(r->written);
    *r = (GmRecord){0};
}
