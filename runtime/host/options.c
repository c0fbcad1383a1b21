// options.c -- the command line of a fit program.
#include "host.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>


enum { MAX_CHAINS = 10000, MAP_STARTS = 8, MAX_THREADS = 4096 };

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
            "       %s why NAME --chain C --draw D [options] data...\n"
            "       %s relabel [options] DRAWS      labels of components made to agree over stored draws; relabel --help\n"
            "       %s report [options] DRAWS       a page about stored draws: warnings, table, figures; report --help\n",
            program, program, program, program, program);
    gm_option_group_print(to, GROUP_DATA);
    gm_option_group_print(to, GROUP_RUN);
    gm_option_group_print(to, GROUP_MODE);
    gm_option_group_print(to, GROUP_WHY);
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
static bool quantiles(const char *text, GmOptions *out)
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
    case OPT_SAMPLES: return whole("--samples", text, 1, INT_MAX, &out->samples);
    case OPT_THIN:
        out->thin_given = true;
        good = whole("--thin", text, 1, INT_MAX, &n);
        out->thin = (int)n;
        return good;
    case OPT_SEED: out->seed_given = true; return seed_number(text, &out->seed);
    case OPT_OUTPUT: return output_name(text, out);
    case OPT_FORMAT:
        if ((k = value(OPT_FORMAT, text)) >= 0) out->format = (GmFormat)k;
        return out->format_given = k >= 0;
    case OPT_DIGITS:
        good = whole("--digits", text, 1, 17, &n);
        out->digits = (int)n;
        return good;
    case OPT_PARAMS: out->params = text; return true;
    case OPT_LOG_LIK: out->requests |= GM_LOG_LIK; return true;
    case OPT_LOG_PRIOR: out->log_prior = true; out->requests |= GM_LOG_LIK; return true;
    case OPT_MOMENTS: out->moments = text; return true;
    case OPT_PREDICT: out->requests |= GM_REPLICATES; return true;
    case OPT_LEVELS: out->levels[out->n_levels++] = (char *)text; return true;
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
    case OPT_SUMMARY:
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
    case OPT_QUANTILES: return quantiles(text, out);
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

// -o NAME.nc asks for that format. false after a message.
static bool format_fits(GmOptions *out)
{
    if (out->output_is_netcdf && !out->format_given) out->format = GM_FORMAT_NETCDF;
    if (out->output_is_netcdf && out->format == GM_FORMAT_CSV)
        gm_error("-o %s.nc: --format csv writes %s_1.csv, ...", out->output, out->output);
    return !out->output_is_netcdf || out->format != GM_FORMAT_CSV;
}

int gm_options(int argc, char **argv, GmOptions *out)
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
                       .summary_rows = 50,
                       .precision = GM_MIXED};
    out->inputs = gm_alloc((size_t)argc + 1, sizeof *out->inputs);
    out->new_inputs = gm_alloc((size_t)argc + 1, sizeof *out->new_inputs);
    out->levels = gm_alloc((size_t)argc + 1, sizeof *out->levels);
    optind = 0;  // glibc: start afresh, whoever called before
    opterr = 0;
    for (;;) {
        const int option = gm_option_next(gm_option_table, GROUP_DATA | GROUP_RUN | GROUP_MODE | GROUP_WHY | GROUP_REPORT, argc, argv);
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
            gm_error(option == GM_OPTION_WITHOUT_VALUE ? "%s: a value is missing; try --help" : "%s: no such option; try --help", flag);
            return GM_EXIT_USAGE;
        }
        if (!apply(option, optarg, out)) return GM_EXIT_USAGE;
    }
    if (!format_fits(out)) return GM_EXIT_USAGE;
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
        return GM_EXIT_USAGE;
    }
    if (!why_is_whole(argc, argv, out)) return GM_EXIT_USAGE;
    if (out->map) {
        optind++;
        out->chains = out->starts ? out->starts : MAP_STARTS;
        out->samples = out->thin = 1;
    }
    for (int i = optind; i < argc; i++) out->inputs[out->n_inputs++] = argv[i];
    if (out->device == GM_ON_CPU && out->precision_given && out->precision != GM_DOUBLE) {
        gm_error("--precision %s: the CPU computes in double precision", gm_precision_names[out->precision]);
        return GM_EXIT_USAGE;
    }
    if (out->map && (out->check || out->compare_devices || out->requests || out->n_new_inputs)) {
        gm_error("map: there are no draws: it goes with none of --check, --compare-devices, --log-lik, --predict, --new");
        return GM_EXIT_USAGE;
    }
    if (out->moments && (out->map || out->check || out->compare_devices || out->device == GM_ON_GPU || out->why)) {
        gm_error("--moments is for draws on the CPU: it goes with none of map, why, --check, --compare-devices, --device gpu");
        return GM_EXIT_USAGE;
    }
    if (out->moments) out->device = GM_ON_CPU;
    if (out->log_prior && !out->log_joint) {
        gm_error("--log-prior is made of lp__: it does not go with --no-lp");
        return GM_EXIT_USAGE;
    }
    if (out->init_map && (out->map || out->device == GM_ON_GPU)) {
        gm_error(out->map ? "--init map is for draws: `map` begins at random places, or with --init FILE"
                          : "--init map climbs on the CPU: %s map ... -o mode, then --init mode.json",
                 argv[0]);
        return GM_EXIT_USAGE;
    }
    if (out->init_map) out->device = GM_ON_CPU;
    if (out->check && out->device == GM_ON_GPU) {
        gm_error("--check runs on the CPU; --compare-devices compares a GPU with it");
        return GM_EXIT_USAGE;
    }
    if (!out->threads) out->threads = omp_get_max_threads();
    if (out->threads > MAX_THREADS) {
        gm_error("OMP_NUM_THREADS: %d threads are asked for, and there are %d at most; --threads K takes other ones", out->threads,
                 MAX_THREADS);
        return GM_EXIT_USAGE;
    }
    long sweeps;
    if (__builtin_mul_overflow(out->samples, (long)out->thin, &sweeps) || sweeps > LONG_MAX / 4) {
        gm_error("--samples times --thin is too large");
        return GM_EXIT_USAGE;
    }
    return -1;
}

void gm_options_close(GmOptions *o)
{
    free((char *)o->output);
    free(o->inputs);
    free(o->new_inputs);
    free(o->levels);
    *o = (GmOptions){0};
}
