// options.c -- the command line of a fit program.
#include "fields.h"
#include "messages.h"
#include "runs.h"
#include "../device/nuts.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char gm_version[] = GM_VERSION;

static const unsigned RUNS = GROUP_RUN | GROUP_MODE | GROUP_WHY | GROUP_FORWARD | GROUP_REPORT;  // the groups of a run
enum { MAX_CHAINS = 10000, MAP_STARTS = 8, MAX_THREADS = 4096, MOST_DOUBLINGS = NUTS_DEPTH, MOST_UNTIL = 10000 };

const GmOption gm_option_table[] = {
#define OPTION(group, id, letter, name, argument, values, help) {OPT_##id, letter, name, argument, values, GROUP_##group, help},
#define LINE(group, left, help)                                 {OPT_NONE, 0, left, NULL, NULL, GROUP_##group, help},
#include "options.def"
    {0}};

void gm_option_group_print(FILE *to, unsigned group)
{
    enum { WIDTH = 20, INDENT = 4 };
    fputc('\n', to);
    for (const GmOption *o = gm_option_table; o->id || o->name; o++)
        if (o->group == group) gm_option_print(to, o, WIDTH, INDENT);
}

// Words one after the other, in lines of at most 125 columns.
static void put_words(FILE *to, const char *text, int *column)
{
    enum { COLUMNS = 125 };
    while (*text) {
        const int n = (int)strcspn(text, " ");
        if (*column && *column + 1 + n > COLUMNS) {
            fputc('\n', to);
            *column = 0;
        }
        *column += fprintf(to, "%s%.*s", *column ? " " : "", n, text);
        text += n + (text[n] == ' ');
    }
}

void gm_usage(FILE *to, const char *program)
{
    fprintf(to,
            "usage: %s [options] data...\n"
            "       %s map [options] data...\n"
            "       %s prior|calibrate [options] data...\n"
            "       %s simulate [options] parameters... data...\n"
            "       %s why NAME --chain C --draw D [options] data...\n"
            "       %s rerun NAME_run.json [-o NAME]  the draws of a run again, compared with them\n"
            "       %s relabel [options] DRAWS      labels of components made to agree over stored draws; relabel --help\n"
            "       %s predict [options] DRAWS --new DATA  predictions for new data from stored draws; predict --help\n",
            program, program, program, program, program, program, program, program);
#define COMMAND(name, function, arguments, help) fprintf(to, "       %s %s\n", program, name " " arguments "  " help);
#include "after/commands.def"
    gm_option_group_print(to, GROUP_DATA);
    gm_option_group_print(to, GROUP_RUN);
    gm_option_group_print(to, GROUP_MODE);
    gm_option_group_print(to, GROUP_WHY);
    gm_option_group_print(to, GROUP_FORWARD);
    gm_option_group_print(to, GROUP_REPORT);
    static const char *const statuses[] = {
#define STATUS(number, meaning) #number " " meaning,
#include "options.def"
    };
    enum { N_STATUSES = sizeof statuses / sizeof *statuses };
    int column = 0;
    fputc('\n', to);
    put_words(to, "Exit status:", &column);
    for (int k = 0; k < N_STATUSES; k++) {
        put_words(to, statuses[k], &column);
        column += fprintf(to, k + 1 < N_STATUSES ? "," : ".\n");
    }
}

// Names that other programs have for an option, and ours for it, or what to do instead. `_` counts as `-`.
static const struct {
    const char *theirs, *ours;
} foreign[] = {
    {"iter", "--warmup N and --samples N, which are counted apart"},
    {"n-iter", "--samples N"},
    {"n-samples", "--samples N"},
    {"draws-per-chain", "--samples N"},
    {"num-samples", "--samples N"},
    {"iter-sampling", "--samples N"},
    {"iter-warmup", "--warmup N"},
    {"num-warmup", "--warmup N"},
    {"burnin", "--warmup N"},
    {"burn-in", "--warmup N"},
    {"n-burnin", "--warmup N"},
    {"tune", "--warmup N"},
    {"num-chains", "--chains N"},
    {"n-chains", "--chains N"},
    {"parallel-chains", "--threads K"},
    {"num-threads", "--threads K"},
    {"threads-per-chain", "--threads K"},
    {"cores", "--threads K"},
    {"n-thin", "--thin N"},
    {"random-seed", "--seed N"},
    {"delta", "--adapt-delta D"},
    {"target-accept", "--adapt-delta D"},
    {"max-depth", "--max-treedepth N"},
    {"id", "--first-chain N"},
    {"chain-ids", "--first-chain N"},
    {"inits", "--init FILE"},
    {"init-r", "--init R"},
    {"file", "-o NAME for draws; data stand alone: FIT data.json"},
    {"output-dir", "-o FOLDER/NAME"},
    {"output-basename", "-o NAME"},
    {"sig-figs", "--digits N"},
    {"engine", "--method nuts"},
    {"algorithm", "--method M or --moves M"},
    {"metric", "in the model: infer { (a, b) by nuts(metric = dense); }"},
    {"stepsize", "in the model: infer { (a, b) by hmc(steps = 20, step = 0.1); }"},
    {"opencl-ids", "--device gpu:N"},
    {"data-file", "no option: FIT data.json"},
};

// The words by which CmdStan's command line goes.
static const char *const words[] = {"sample", "optimize", "variational", "pathfinder", "laplace", "generate_quantities",
                                    "adapt",  "random",   "output",      "data",       "method",  "hmc"};

char *gm_foreign_option(const char *text)
{
    text += strspn(text, "-");
    const size_t n = strcspn(text, "=");
    for (size_t k = 0; k < sizeof foreign / sizeof *foreign; k++) {
        const char *theirs = foreign[k].theirs;
        size_t i = 0;
        while (i < n && theirs[i] && (text[i] == '_' ? '-' : text[i]) == theirs[i]) i++;
        if (i == n && !theirs[i]) return gm_copy_text(foreign[k].ours);
    }
    char *name = gm_copy_text(text);
    name[n] = 0;
    const GmOption *same = NULL;
    for (size_t i = 0; i < n; i++)
        if (name[i] == '_') name[i] = '-';
    for (const GmOption *o = gm_option_table; o->id || o->name; o++)
        if (o->id && o->name && o->group & RUNS && strcmp(o->name, name) == 0) same = o;
    free(name);
    return !same ? NULL : gm_format("--%s%s%s", same->name, same->argument ? " " : "", same->argument ? same->argument : "");
}

void gm_option_refused(const char *command, unsigned groups, const char *flag)
{
    const char *near = gm_option_near(gm_option_table, groups, flag);
    char *ours = gm_foreign_option(flag);
    if (groups & GROUP_RUN && ours) gm_error("%s%s: no such option; here it is %s", command, flag, ours);
    else if (near && flag[0] == '-' && flag[1] == '-')
        gm_error("%s%s: no such option; is --%s meant? --help lists all", command, flag, near);
    else gm_error("%s%s: no such option; try --help", command, flag);
    free(ours);
}

// A word of CmdStan's command line among the data; false after a message.
static bool is_input(const char *text, const char *program)
{
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcmp(words[k], text) == 0 && access(text, F_OK) != 0) {
            gm_error("%s: no data, but a word of CmdStan's: here it is %s data.json --warmup N --samples N -o NAME; --help has all", text,
                     program);
            return false;
        }
    return true;
}

// A whole number in [lowest, highest], or a message.
static bool whole(const char *flag, const char *text, long lowest, long highest, long *out)
{
    char *end;
    errno = 0;
    const long x = strtol(text, &end, 10);
    if (end == text || *end || errno || x < lowest || x > highest) {
        if (highest == LONG_MAX) gm_error("%s: `%s` is not a whole number of at least %ld", flag, text, lowest);
        else gm_error("%s: `%s` is not a whole number from %ld to %ld", flag, text, lowest, highest);
        return false;
    }
    *out = x;
    return true;
}

// 2.5,50,97.5: in per cent, from small to large.
bool gm_option_quantiles(const char *text, GmOptions *out)
{
    double before = -1;
    out->n_quantiles = 0;
    for (const char *at = text;; at++) {
        char *end;
        const double p = strtod(at, &end);
        if (end == at || !(p > before) || !(p >= 0 && p <= 100) || (*end && *end != ',') || out->n_quantiles == GM_MOST_QUANTILES) {
            gm_error("--quantiles: `%s` is no list of at most %d percentages from small to large, as 2.5,50,97.5", text, GM_MOST_QUANTILES);
            return false;
        }
        out->quantile[out->n_quantiles++] = before = p;
        if (!*end) return true;
        at = end;
    }
}

bool gm_option_summary(const char *text, GmOptions *out)
{
    if (strcmp(text, "all") == 0) {
        out->summary_rows = LONG_MAX;
        return true;
    }
    if (strcmp(text, "csv") == 0 || strcmp(text, "json") == 0) {
        out->summary_form = *text == 'c' ? GM_SUMMARY_CSV : GM_SUMMARY_JSON;
        return true;
    }
    if (isdigit((unsigned char)*text)) return whole("--summary", text, 1, LONG_MAX, &out->summary_rows);
    gm_error("--summary: `%s` is no number of rows, nor all, csv or json", text);
    return false;
}

static bool seed_number(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    const unsigned long long x = strtoull(text, &end, 10);
    if (end == text || *end || errno || strchr(text, '-')) {
        gm_error("--seed: `%s` is not a whole number from 0 to 2^64 - 1", text);
        return false;
    }
    *out = x;
    return true;
}

// --init takes a radius or a file; what reads as a number is a radius.
static bool initial_source(const char *text, GmOptions *out)
{
    char *end;
    const double radius = strtod(text, &end);
    if (strcmp(text, "map") == 0) {
        out->init_map = true;
        return true;
    }
    if (end == text || *end) {
        out->init_file = text;
        return true;
    }
    if (!(radius >= 0) || radius > 100) {
        gm_error("--init: `%s` is not a radius from 0 to 100", text);
        return false;
    }
    out->init_radius = radius;
    return true;
}

// --init A,B,C,D: a file for each chain; --init NAME: NAME_1.csv or NAME_1.json and so on, or NAME.nc, where nothing is called NAME.
// NAME.nc has all chains. false after a message.
static bool starts_by_chain(GmOptions *o)
{
    static const char *const endings[] = {"csv", "json"};
    const char *given = o->init_file;
    if (!given || (access(given, F_OK) == 0 && !gm_is_netcdf(given))) return true;
    char **file = gm_alloc((size_t)o->chains + 1, sizeof *file);
    int n = 0;
    if (strchr(given, ',')) {
        for (const char *at = given;; at++) {
            const size_t length = strcspn(at, ",");
            if (length == 0) {
                gm_error("--init %s: file %d has no name", given, n + 1);
                for (int k = 0; k < n && k < o->chains; k++) free(file[k]);
                free(file);
                return false;
            }
            if (n < o->chains) file[n] = gm_format("%.*s", (int)length, at);
            n++;
            at += length;
            if (!*at) break;
        }
        if (n != o->chains) gm_error("--init: %d files, and %d chains: one for all of them, or one for each", n, o->chains);
    } else if (gm_is_netcdf(given)) {
        while (n < o->chains) file[n++] = gm_copy_text(given);
    } else {
        for (int k = 0; k < 2 && n == 0; k++)
            for (int c = 0; c < o->chains; c++) {
                char *path = gm_format("%s_%d.%s", given, o->first_chain + c, endings[k]);
                if (access(path, F_OK) == 0) file[n++] = path;
                else {
                    if (n > 0) gm_error("--init %s: there is no %s, and there is %s: each chain needs one", given, path, file[0]);
                    free(path);
                    break;
                }
            }
        char *netcdf = gm_format("%s.nc", given);
        const bool there = n == 0 && access(netcdf, F_OK) == 0;
        while (there && n < o->chains) file[n++] = gm_copy_text(netcdf);
        free(netcdf);
    }
    const bool good = n == 0 || n == o->chains;
    if (n == o->chains) o->init_of = file;
    else {
        for (int k = 0; k < n && k < o->chains; k++) free(file[k]);
        free(file);
    }
    return good;
}

static bool output_name(const char *text, GmOptions *out)
{
    const size_t n = strlen(text);
    const bool extension = n > 4 && strcmp(text + n - 4, ".csv") == 0, netcdf = n > 3 && strcmp(text + n - 3, ".nc") == 0;
    if (n == 0 || text[n - 1] == '/') {
        gm_error("-o: `%s` is not a file name; `-o draws` writes draws_1.csv, draws_2.csv, ...", text);
        return false;
    }
    char *name = gm_copy_text(text);
    if (extension || netcdf) name[n - (netcdf ? 3 : 4)] = 0;
    out->output_is_netcdf = netcdf;
    free((char *)out->output);
    out->output = name;
    return true;
}

// The number of a text among the values of an option, from 0; -1 after a message.
static int value(int option, const char *text)
{
    const GmOption *o = gm_option(gm_option_table, option);
    const int k = gm_option_value(o, text);
    if (k >= 0) return k;
    char *values = gm_option_values(o);
    gm_error("--%s: `%s` is none of %s", o->name, text, values);
    free(values);
    return -1;
}

static bool device_choice(const char *text, GmOptions *out)
{
    long n = 0;
    if (strncmp(text, "gpu:", 4) == 0) {
        if (!whole("--device gpu:N", text + 4, 0, 1000, &n)) return false;
        out->device = GM_ON_GPU;
    } else {
        const int k = value(OPT_DEVICE, text);
        if (k < 0) return false;
        out->device = (GmDeviceChoice)k;
    }
    out->device_number = (int)n;
    return true;
}

// "20GB", "500M", "1.5e9": bytes, in powers of 1000.
static bool memory_size(const char *text, GmOptions *out)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    double bytes = strtod(text, &end);
    const char *unit = isalpha((unsigned char)*end) ? strchr(units, toupper((unsigned char)*end)) : NULL;
    for (int k = 0; unit && k <= unit - units; k++) bytes *= 1000;
    const char *rest = end + (unit != NULL);
    if (end == text || errno || (*rest && strcmp(rest, "B") != 0 && strcmp(rest, "b") != 0) || !(bytes >= 1e6 && bytes < 1e15)) {
        gm_error("--device-memory: `%s` is not a size of at least 1 MB, like 20GB, 500MB", text);
        return false;
    }
    out->device_memory = (size_t)bytes;
    return true;
}

// A number of at least `least`.
static bool number(const char *flag, const char *text, double least, double *out)
{
    char *end;
    *out = strtod(text, &end);
    if (end != text && !*end && *out >= least && *out <= 1e12) return true;
    gm_error("%s: `%s` is not a number of at least %g", flag, text, least);
    return false;
}

// A mean acceptance: above 0, below 1.
static bool acceptance(const char *text, GmOptions *out)
{
    char *end;
    out->adapt_delta = strtod(text, &end);
    if (end != text && !*end && out->adapt_delta > 0 && out->adapt_delta < 1) return true;
    gm_error("--adapt-delta: `%s` is not a number above 0 and below 1", text);
    return false;
}

static bool apply(int option, const char *text, GmOptions *out)
{
    long n = 0;
    int k;
    bool good = true;
    switch (option) {
    case OPT_CHAINS:
        good = whole("--chains", text, 1, MAX_CHAINS, &n);
        out->chains = (int)n;
        return good;
    case OPT_WARMUP: out->warmup_given = true; return whole("--warmup", text, 0, LONG_MAX / 4, &out->warmup);
    case OPT_SAMPLES: out->samples_given = true; return whole("--samples", text, 1, INT_MAX, &out->samples);
    case OPT_THIN:
        out->thin_given = true;
        good = whole("--thin", text, 1, INT_MAX, &n);
        out->thin = (int)n;
        return good;
    case OPT_SEED: out->seed_given = true; return seed_number(text, &out->seed);
    case OPT_OUTPUT: return output_name(text, out);
    case OPT_CHECKPOINT: out->checkpoint = GM_CHECKPOINT_SECONDS; return !text || number("--checkpoint", text, 0, &out->checkpoint);
    case OPT_RELABEL_RUN: out->relabel = true; return out->relabel_by = text, true;
    case OPT_UNTIL_ESS: return number("--until-ess", text, 1, &out->until_ess);
    case OPT_UNTIL_RHAT: return number("--until-rhat", text, 1, &out->until_rhat);
    case OPT_MAX_TIME: return number("--max-time", text, 0.001, &out->max_time);
    case OPT_STOP_ON_DIVERGENCE: out->stop_on_divergence = true; return true;
    case OPT_STATUS: out->status = true; return true;
    case OPT_RESUME: out->resume = true; return true;
    case OPT_APPEND: return whole("--append", text, 1, INT_MAX, &out->append);
    case OPT_OVERWRITE: out->overwrite = true; return true;
    case OPT_SAVE_WARMUP: out->save_warmup = true; return true;
    case OPT_ADAPT_DELTA: return acceptance(text, out);
    case OPT_MAX_TREEDEPTH:
        good = whole("--max-treedepth", text, 1, MOST_DOUBLINGS, &n);
        out->max_treedepth = (int)n;
        return good;
    case OPT_FORMAT:
        if ((k = value(OPT_FORMAT, text)) >= 0) out->format = (GmFormat)k;
        return out->format_given = k >= 0;
    case OPT_DIGITS:
        good = whole("--digits", text, 1, 17, &n);
        out->digits = (int)n;
        return good;
    case OPT_PARAMS: out->params = text; return true;
    case OPT_LOG_LIK: out->requests |= GM_LOG_LIK; return true;
    case OPT_LOG_PRIOR:
        out->log_prior = true;
        out->requests |= GM_LOG_LIK | GM_LOG_PRIOR;
        return true;
    case OPT_MOMENTS: out->moments = text; return true;
    case OPT_PREDICT: out->requests |= GM_REPLICATES; return true;
    case OPT_LEVELS: out->levels[out->n_levels++] = (char *)text; return true;
    case OPT_DATA_TEMPLATE: out->template = true; return true;
    case OPT_DATES: out->dates = text; return true;
    case OPT_NEW: out->new_inputs[out->n_new_inputs++] = (char *)text; return true;
    case OPT_INIT: return initial_source(text, out);
    case OPT_STARTS:
        good = whole("--starts", text, 1, MAX_CHAINS, &n);
        out->starts = (int)n;
        return good;
    case OPT_ITERATIONS: return whole("--iterations", text, 1, 1000000000, &out->iterations);
    case OPT_JACOBIAN: out->jacobian = true; return true;
    case OPT_THREADS:
        good = whole("--threads", text, 1, MAX_THREADS, &n);
        out->threads = (int)n;
        return good;
    case OPT_FIRST_CHAIN:
        good = whole("--first-chain", text, 1, INT_MAX - MAX_CHAINS, &n);
        out->first_chain = (int)n;
        return good;
    case OPT_WHY_CHAIN:
        good = whole("--chain", text, 1, INT_MAX, &n);
        out->why_chain = (int)n;
        return good;
    case OPT_WHY_DRAW: return whole("--draw", text, 1, INT_MAX, &out->why_draw);
    case OPT_WHY_DRAWS: out->why_draws = text; return true;
    case OPT_FROM: out->from_prior = true; return value(OPT_FROM, text) >= 0;
    case OPT_SETS: return whole("--sets", text, 1, INT_MAX, &out->sets);
    case OPT_SIMS: return whole("--sims", text, 1, INT_MAX / 2, &out->sims);
    case OPT_AS_CHAINS: out->as_chains = true; return true;
    case OPT_CALIBRATE_REPORT: out->report = text; return true;
    case OPT_METHOD:
        if ((k = value(OPT_METHOD, text)) >= 0) out->method = (GmMethod)k;
        return k >= 0;
    case OPT_MOVES:
        if ((k = value(OPT_MOVES, text)) >= 0) out->moves = (GmTrajectories)k;
        return k >= 0;
    case OPT_DEVICE: return device_choice(text, out);
    case OPT_DEVICE_MEMORY: return memory_size(text, out);
    case OPT_PRECISION:
        if ((k = value(OPT_PRECISION, text)) >= 0) out->precision = (GmPrecision)k;
        return out->precision_given = k >= 0;
    case OPT_PROFILE: out->profile = true; return true;
    case OPT_COMPARE_DEVICES: out->compare_devices = true; return true;
    case OPT_QUIET: out->quiet = true; return true;
    case OPT_CHECK: out->check = true; return true;
    case OPT_SUMMARY: return gm_option_summary(text, out);
    case OPT_QUANTILES: return gm_option_quantiles(text, out);
    case OPT_NO_SUMMARY: out->summary = false; return true;
    case OPT_NO_LP: out->log_joint = false; return true;
    case OPT_REFRESH: return whole("--refresh", text, 1, LONG_MAX, &out->refresh);
    }
    return false;
}

// A seed that differs between runs started in the same second; below 2^32, so that it is easily typed again.
static uint64_t seed_of_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec) & 0xffffffffu;
}

// `why NAME` and what goes with it, or none of it. false after a message. optind is moved past the two.
static bool why_is_whole(int argc, char **argv, GmOptions *out)
{
    const bool why = optind < argc && strcmp(argv[optind], "why") == 0;
    if (!why && (out->why_chain || out->why_draw || out->why_draws)) {
        gm_error("--%s is for one draw: %s why NAME --chain C --draw D ...",
                 out->why_chain  ? "chain"
                 : out->why_draw ? "draw"
                                 : "draws",
                 argv[0]);
        return false;
    }
    if (!why) return true;
    if (optind + 1 >= argc || !out->why_chain || !out->why_draw) {
        gm_error("why: %s is missing: %s why NAME --chain C --draw D ...",
                 optind + 1 >= argc ? "the name of an unknown"
                 : !out->why_chain  ? "--chain"
                                    : "--draw",
                 argv[0]);
        return false;
    }
    if (out->check || out->compare_devices || out->n_new_inputs || out->output || out->profile || out->device == GM_ON_GPU) {
        gm_error("why: it goes with none of --check, --compare-devices, --new, -o, --profile, --device gpu");
        return false;
    }
    out->why = argv[optind + 1];
    out->summary = false;
    out->device = GM_ON_CPU;
    optind += 2;
    return true;
}

// Of the options for long runs: whether they go with the others; what only a CPU can do makes the run one on it. false after a message.
static bool night_is_possible(GmOptions *o)
{
    const char *named = o->append            ? "--append"
                        : o->resume          ? "--resume"
                        : o->checkpoint >= 0 ? "--checkpoint"
                        : o->save_warmup     ? "--save-warmup"
                        : o->status          ? "--status"
                                             : NULL;
    const char *stops = o->until_ess > 0        ? "--until-ess"
                        : o->until_rhat > 0     ? "--until-rhat"
                        : o->stop_on_divergence ? "--stop-on-divergence"
                                                : NULL;
    const char *any = named ? named : stops ? stops : o->max_time > 0 ? "--max-time" : NULL, *cpu = named ? named : stops;
    const bool goes_on = o->append || o->resume || o->checkpoint >= 0;
    if (any && (o->map || o->why || o->check || o->compare_devices)) gm_error("%s is for draws", any);
    else if (named && !o->output) gm_error("%s: no files are written without -o NAME", named);
    else if (o->save_warmup && o->warmup < o->thin) gm_error("--save-warmup: there is no sweep of warm-up to keep");
    else if ((o->resume || o->append) && o->overwrite) gm_error("%s goes on with the files that --overwrite would replace", named);
    else if (goes_on && o->format == GM_FORMAT_NETCDF)
        gm_error("%s goes on with the tables of a run: --format both writes them beside %s.nc", named, o->output);
    else if (goes_on && o->moments) gm_error("%s: what --moments adds up is not kept; leave one of the two out", named);
    else if (o->until_rhat > 0 && o->chains < 2) gm_error("--until-rhat: R-hat compares chains, and there is one");
    else if (cpu && (o->device == GM_ON_GPU || (o->precision_given && o->precision != GM_DOUBLE)))
        gm_error("%s: not on a GPU; --device cpu has it", cpu);
    else {
        if (cpu) o->device = GM_ON_CPU;
        if (stops && !o->stop_on_divergence && !o->samples_given) o->samples = MOST_UNTIL;
        return true;
    }
    return false;
}

// --relabel: whether there are draws to be permuted. false after a message.
static bool relabel_is_possible(const GmOptions *o)
{
    if (!o->relabel) return true;
    if (o->map || o->why || o->check || o->compare_devices || o->forward) gm_error("--relabel is for draws of the posterior");
    else if (!o->output) gm_error("--relabel: no files are written without -o NAME");
    else return true;
    return false;
}

// `prior`, `simulate` or `calibrate` and what goes with them, or none of it. false after a message. optind is moved past the word.
static bool forward_is_whole(int argc, char **argv, GmOptions *o)
{
    static const char *const commands[] = {[GM_PRIOR] = "prior", [GM_SIMULATE] = "simulate", [GM_CALIBRATE] = "calibrate"};
    for (int k = GM_PRIOR; k <= GM_CALIBRATE; k++)
        if (optind < argc && strcmp(argv[optind], commands[k]) == 0) o->forward = (GmForward)k;
    const char *foreign = (o->from_prior || o->sets) && o->forward != GM_SIMULATE                ? "simulate"
                          : (o->sims || o->report || o->as_chains) && o->forward != GM_CALIBRATE ? "calibrate"
                                                                                                 : NULL;
    const char *given = o->from_prior ? "from" : o->sets ? "sets" : o->sims ? "sims" : o->report ? "report" : "as-chains";
    if (foreign) gm_error("--%s is for `%s %s`", given, argv[0], foreign);
    if (foreign || !o->forward) return !foreign;
    optind++;
    const char *name = commands[o->forward];
    const char *draws = o->forward == GM_CALIBRATE ? NULL
                        : o->warmup_given          ? "--warmup"
                        : o->thin_given            ? "--thin"
                        : o->method                ? "--method"
                        : o->moves                 ? "--moves"
                        : o->adapt_delta > 0       ? "--adapt-delta"
                        : o->max_treedepth         ? "--max-treedepth"
                        : o->init_file             ? "--init"
                                                   : NULL;
    const char *never = o->check                                        ? "--check"
                        : o->compare_devices                            ? "--compare-devices"
                        : o->n_new_inputs                               ? "--new"
                        : o->requests || o->log_prior                   ? "--log-lik, --log-prior, --predict"
                        : o->moments                                    ? "--moments"
                        : o->profile                                    ? "--profile"
                        : o->init_map                                   ? "--init map"
                        : o->forward != GM_PRIOR && o->format_given     ? "--format"
                        : o->forward == GM_SIMULATE && o->samples_given ? "--samples (--sets K are data sets)"
                        : o->checkpoint >= 0 || o->resume || o->append  ? "--checkpoint, --resume, --append"
                        : o->until_ess > 0 || o->until_rhat > 0 || o->max_time > 0 || o->stop_on_divergence ? "rules that end a run"
                        : o->save_warmup || o->status                                                       ? "--save-warmup, --status"
                                                                                                            : NULL;
    if (draws) gm_error("%s: draws are independent, without a Markov chain: %s has no meaning there", name, draws);
    else if (never) gm_error("%s does not go with %s", name, never);
    else if (o->forward != GM_CALIBRATE && (o->device == GM_ON_GPU || (o->precision_given && o->precision != GM_DOUBLE)))
        gm_error("%s: simulations are made on the CPU; --device cpu, or neither --device nor --precision", name);
    else if (o->forward == GM_SIMULATE && !o->output) gm_error("simulate: -o NAME is missing: the data sets are NAME_1.json, ...");
    else {
        if (o->forward == GM_CALIBRATE && (o->device == GM_ON_GPU || (o->precision_given && o->precision != GM_DOUBLE)))
            o->as_chains = true;
        o->as_chains_on = o->device;
        o->device = GM_ON_CPU;
        if (o->forward != GM_CALIBRATE) o->warmup = 0;
        return true;
    }
    return false;
}

// -o NAME.nc asks for that format. false after a message.
static bool format_fits(GmOptions *out)
{
    if (out->output_is_netcdf && !out->format_given) out->format = GM_FORMAT_NETCDF;
    if (out->output_is_netcdf && out->format == GM_FORMAT_CSV)
        gm_error("-o %s.nc: --format csv writes %s_1.csv, ...", out->output, out->output);
    return !out->output_is_netcdf || out->format != GM_FORMAT_CSV;
}

static void set_defaults(int argc, GmOptions *out)
{
    *out = (GmOptions){.chains = 4,
                       .warmup = 1000,
                       .samples = 1000,
                       .thin = 1,
                       .seed = seed_of_clock(),
                       .first_chain = 1,
                       .init_radius = 1,
                       .summary = true,
                       .log_joint = true,
                       .checkpoint = -1,
                       .summary_rows = 50,
                       .precision = GM_MIXED};
    out->inputs = gm_alloc((size_t)argc + 1, sizeof *out->inputs);
    out->new_inputs = gm_alloc((size_t)argc + 1, sizeof *out->new_inputs);
    out->levels = gm_alloc((size_t)argc + 1, sizeof *out->levels);
}

// The options that come before all else; -1: all are good, or the exit status.
static int take_options(int argc, char **argv, GmOptions *out)
{
    optind = 0;  // glibc: start afresh, whoever called before
    opterr = 0;
    for (;;) {
        const int option = gm_option_next(gm_option_table, GROUP_DATA | RUNS, argc, argv);
        if (option == GM_OPTIONS_END) break;
        if (option == OPT_HELP) {
            gm_usage(stdout, argv[0]);
            return GM_EXIT_OK;
        }
        if (option == OPT_VERSION) {
            printf("a gmc fit program, runtime " GM_VERSION "\n");
            return GM_EXIT_OK;
        }
        if (option < 0) {
            const char letter[] = {'-', (char)optopt, 0};
            const char *flag = optopt > 0 && optopt < 128 ? letter : argv[optind - 1];
            if (option == GM_OPTION_WITHOUT_VALUE) gm_error("%s: a value is missing; try --help", flag);
            else gm_option_refused("", RUNS, flag);
            return GM_EXIT_USAGE;
        }
        if (!apply(option, optarg, out)) return GM_EXIT_USAGE;
    }
    return -1;
}

// What is for the mode alone goes with `map`.
static bool map_is_whole(int argc, char **argv, GmOptions *out)
{
    out->map = optind < argc && strcmp(argv[optind], "map") == 0;
    if (!out->map && (out->starts || out->jacobian || out->iterations)) {
        gm_error("--%s is for the mode: %s map --%s ...",
                 out->starts     ? "starts"
                 : out->jacobian ? "jacobian"
                                 : "iterations",
                 argv[0],
                 out->starts     ? "starts N"
                 : out->jacobian ? "jacobian"
                                 : "iterations N");
        return false;
    }
    return true;
}

// Whether what was given goes together; else a message.
static bool go_together(char **argv, GmOptions *out)
{
    if (out->device == GM_ON_CPU && out->precision_given && out->precision != GM_DOUBLE) {
        gm_error("--precision %s: the CPU computes in double precision", gm_precision_names[out->precision]);
        return false;
    }
    if (out->map && (out->check || out->compare_devices || out->requests || out->n_new_inputs)) {
        gm_error("map: there are no draws: it goes with none of --check, --compare-devices, --log-lik, --predict, --new");
        return false;
    }
    if (out->moments && (out->map || out->check || out->compare_devices || out->device == GM_ON_GPU || out->why)) {
        gm_error("--moments is for draws on the CPU: it goes with none of map, why, --check, --compare-devices, --device gpu");
        return false;
    }
    if (out->moments) out->device = GM_ON_CPU;
    if (out->init_map && (out->map || out->device == GM_ON_GPU)) {
        gm_error(out->map ? "--init map is for draws: `map` begins at random places, or with --init FILE"
                          : "--init map climbs on the CPU: %s map ... -o mode, then --init mode.json",
                 argv[0]);
        return false;
    }
    if (!night_is_possible(out) || !relabel_is_possible(out) || !starts_by_chain(out)) return false;
    if (out->init_map) out->device = GM_ON_CPU;
    if (out->quiet && !out->summary && !out->output && !out->check && !out->compare_devices && !out->map && !out->why && !out->profile &&
        !out->n_new_inputs)
        gm_error("-q --no-summary without -o: nothing of this run will be printed or kept; -o NAME keeps the draws");
    if (out->check && out->device == GM_ON_GPU) {
        gm_error("--check runs on the CPU; --compare-devices compares a GPU with it");
        return false;
    }
    return true;
}

// Threads, and numbers of sweeps.
static bool sizes_fit(GmOptions *out)
{
    if (!out->threads) out->threads = omp_get_max_threads();
    if (out->threads > MAX_THREADS) {
        gm_error("OMP_NUM_THREADS: %d threads are asked for, and there are %d at most; --threads K takes other ones", out->threads,
                 MAX_THREADS);
        return false;
    }
    long sweeps;
    if (__builtin_mul_overflow(out->samples, (long)out->thin, &sweeps) || sweeps > LONG_MAX / 4) {
        gm_error("--samples times --thin is too large");
        return false;
    }
    return true;
}

int gm_options(int argc, char **argv, GmOptions *out)
{
    set_defaults(argc, out);
    const int taken = take_options(argc, argv, out);
    if (taken >= 0) return taken;
    if (out->template || !format_fits(out)) return out->template ? -1 : GM_EXIT_USAGE;
    if (!map_is_whole(argc, argv, out) || !why_is_whole(argc, argv, out) || !forward_is_whole(argc, argv, out)) return GM_EXIT_USAGE;
    if (out->map) {
        optind++;
        out->chains = out->starts ? out->starts : MAP_STARTS;
        out->samples = out->thin = 1;
    }
    for (int i = optind; i < argc; i++) {
        if (!is_input(argv[i], argv[0])) return GM_EXIT_USAGE;
        out->inputs[out->n_inputs++] = argv[i];
    }
    return go_together(argv, out) && sizes_fit(out) ? -1 : GM_EXIT_USAGE;
}

// The options of `predict` that are those of a run.
static int of_a_run(int option)
{
    static const int same[][2] = {
        {OPT_LATER_NEW, OPT_NEW},
        {OPT_LATER_OUTPUT, OPT_OUTPUT},
        {OPT_LATER_OVERWRITE, OPT_OVERWRITE},
        {OPT_LATER_FORMAT, OPT_FORMAT},
        {OPT_LATER_DIGITS, OPT_DIGITS},
        {OPT_LATER_PARAMS, OPT_PARAMS},
        {OPT_LATER_QUANTILES, OPT_QUANTILES},
        {OPT_LATER_SEED, OPT_SEED},
        {OPT_LATER_DATES, OPT_DATES},
        {OPT_LATER_THREADS, OPT_THREADS},
        {OPT_LATER_QUIET, OPT_QUIET},
    };
    for (size_t k = 0; k < sizeof same / sizeof *same; k++)
        if (same[k][0] == option) return same[k][1];
    return OPT_NONE;
}

int gm_options_later(int argc, char **argv, GmOptions *out)
{
    *out = (GmOptions){.chains = 1, .samples = 1, .thin = 1, .first_chain = 1, .later = true, .summary = true, .checkpoint = -1};
    out->inputs = gm_alloc((size_t)argc + 1, sizeof *out->inputs);
    out->new_inputs = gm_alloc((size_t)argc + 1, sizeof *out->new_inputs);
    out->levels = gm_alloc((size_t)argc + 1, sizeof *out->levels);
    optind = 0;
    opterr = 0;
    for (int option, k; (option = gm_option_next(gm_option_table, GROUP_LATER, argc, argv)) != GM_OPTIONS_END;) {
        if (option == OPT_LATER_HELP) {
            printf("usage: predict [options] DRAWS --new DATA\n");
            gm_option_group_print(stdout, GROUP_LATER);
            return GM_EXIT_OK;
        }
        if (option == GM_OPTION_WITHOUT_VALUE) gm_error("predict: %s: a value is missing; try --help", argv[optind - 1]);
        else if (option < 0 && strncmp(argv[optind - 1], "--levels", 8) == 0)
            gm_error(
                "predict: --levels: the levels are those of the fit, in their order, and new ones behind them: NAME_levels.json beside the "
                "draws has them");
        else if (option < 0) gm_option_refused("predict: ", GROUP_LATER, argv[optind - 1]);
        if (option < 0) return GM_EXIT_USAGE;
        if (option == OPT_SAME_ROWS) out->same_rows = true;
        else if (option == OPT_NEW_SUMS) out->new_sums = true;
        else if (option == OPT_LATER_DATA) out->inputs[out->n_inputs++] = optarg;
        else if (option == OPT_NEW_LEVELS) {
            if ((k = value(OPT_NEW_LEVELS, optarg)) < 0) return GM_EXIT_USAGE;
            out->new_levels = k == 1;
        } else if (!apply(of_a_run(option), optarg, out)) return GM_EXIT_USAGE;
    }
    if (!format_fits(out)) return GM_EXIT_USAGE;
    if (!out->threads) out->threads = omp_get_max_threads();
    if (optind < argc && out->n_new_inputs) return -1;
    gm_error(optind < argc ? "predict: there are no new data: predict DRAWS --new DATA"
                           : "predict: no draws are given: predict DRAWS --new DATA; DRAWS is the NAME of `-o NAME`, or files; try --help");
    return GM_EXIT_USAGE;
}

void gm_options_close(GmOptions *o)
{
    free((char *)o->output);
    for (int c = 0; c < o->chains && o->init_of; c++) free(o->init_of[c]);
    free(o->init_of);
    free((char *)o->ranks);
    free(o->inputs);
    free(o->new_inputs);
    free(o->levels);
    free(o->relabel_names);
    *o = (GmOptions){0};
}
