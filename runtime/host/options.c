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

#ifndef GM_VERSION
#define GM_VERSION "0.1"
#endif

enum { MAX_CHAINS = 10000, MAP_STARTS = 8, MAX_THREADS = 4096 };

// Long options without a letter of their own.
enum {
    OPT_CHAINS = 256,
    OPT_WARMUP,
    OPT_SAMPLES,
    OPT_THIN,
    OPT_SEED,
    OPT_PARAMS,
    OPT_INIT,
    OPT_THREADS,
    OPT_CHECK,
    OPT_NO_SUMMARY,
    OPT_SUMMARY,
    OPT_NO_LP,
    OPT_REFRESH,
    OPT_FIRST_CHAIN,
    OPT_VERSION,
    OPT_DEVICE,
    OPT_PRECISION,
    OPT_PROFILE,
    OPT_COMPARE,
    OPT_DEVICE_MEMORY,
    OPT_DIGITS,
    OPT_LOG_LIK,
    OPT_PREDICT,
    OPT_NEW,
    OPT_STARTS,
    OPT_JACOBIAN,
    OPT_METHOD,
    OPT_MOVES,
    OPT_ITERATIONS
};

static const struct option long_options[] = {
    {"chains", required_argument, NULL, OPT_CHAINS},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"samples", required_argument, NULL, OPT_SAMPLES},
    {"thin", required_argument, NULL, OPT_THIN},
    {"seed", required_argument, NULL, OPT_SEED},
    {"output", required_argument, NULL, 'o'},
    {"digits", required_argument, NULL, OPT_DIGITS},
    {"params", required_argument, NULL, OPT_PARAMS},
    {"log-lik", no_argument, NULL, OPT_LOG_LIK},
    {"predict", no_argument, NULL, OPT_PREDICT},
    {"new", required_argument, NULL, OPT_NEW},
    {"init", required_argument, NULL, OPT_INIT},
    {"starts", required_argument, NULL, OPT_STARTS},
    {"iterations", required_argument, NULL, OPT_ITERATIONS},
    {"jacobian", no_argument, NULL, OPT_JACOBIAN},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"first-chain", required_argument, NULL, OPT_FIRST_CHAIN},
    {"method", required_argument, NULL, OPT_METHOD},
    {"moves", required_argument, NULL, OPT_MOVES},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"device-memory", required_argument, NULL, OPT_DEVICE_MEMORY},
    {"precision", required_argument, NULL, OPT_PRECISION},
    {"profile", no_argument, NULL, OPT_PROFILE},
    {"compare-devices", no_argument, NULL, OPT_COMPARE},
    {"quiet", no_argument, NULL, 'q'},
    {"check", no_argument, NULL, OPT_CHECK},
    {"summary", required_argument, NULL, OPT_SUMMARY},
    {"no-summary", no_argument, NULL, OPT_NO_SUMMARY},
    {"no-lp", no_argument, NULL, OPT_NO_LP},
    {"refresh", required_argument, NULL, OPT_REFRESH},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

void gm_usage(FILE *to, const char *program)
{
    fprintf(
        to,
        "usage: %s [options] data...\n"
        "       %s map [options] data...\n"
        "       %s relabel [options] DRAWS      labels of components made to agree over stored draws; relabel --help\n"
        "\n"
        "  data.json            an object of names and values, as CmdStan reads it\n"
        "  table.csv            columns with a header: `y` a vector, `X.1,X.2` or `X[1],X[2]` the columns of a matrix\n"
        "  X=file.npy           a NumPy array; large ones are mapped, not copied\n"
        "  X=file.npz           a sparse matrix, as scipy.sparse.save_npz writes it\n"
        "  X=file.csv[:a,b|:a-k]  all columns of a table as the matrix X, or those named, or a range of them\n"
        "  N=100                a number\n"
        "  An int that no file gives (N, p) is taken from the size of an array that is declared with it.\n"
        "\n"
        "  -o, --output NAME    write the draws to NAME_1.csv, NAME_2.csv, ... (one file per chain)\n"
        "      --digits N       at most N significant digits a number (as many as read back to the same double: 15 to 17 of most)\n"
        "      --chains N       chains (4)\n"
        "      --warmup N       sweeps before the first draw is kept (1000)\n"
        "      --samples N      draws kept per chain (1000)\n"
        "      --thin N         keep every N-th sweep (1)\n"
        "      --seed N         seed of the random numbers (from the clock, and printed)\n"
        "      --params A,B     variables to keep; `all`: every one, latent variables too; `all,auxiliaries`: those of augmentations "
        "besides\n"
        "      --log-lik        keep the log-likelihood of every observed value, as log_lik_y (for LOO and WAIC)\n"
        "      --predict        keep replicates of every observed value, drawn as the model draws it, as y_rep\n"
        "      --new DATA       after the run compute definitions, predictions and what --log-lik and --predict ask for with other data, "
        "for each draw:\n"
        "                       means and sds, in NAME_new.csv. Several are files of the same data; what they leave out is as in the run\n"
        "      --init FILE|R|map  initial values from a JSON file, or the last draw of draws_1.csv; or random within R of zero (1); 0: "
        "zeros; map: each chain climbs to a mode first\n"
        "      --threads K      CPU threads; the draws do not depend on it\n"
        "      --method M       where the program holds the choice: gibbs, Gibbs updates; nuts, NUTS; both, a Gibbs sweep after each "
        "transition by NUTS; auto: by a trial in warm-up (auto)\n"
        "      --moves M        along gradients: nuts, each chain for itself; chees, chains adapt together; auto: as the model asks, else "
        "chees on a GPU from 32 chains on\n"
        "      --device D       auto: the one that is expected to end the run sooner (auto); cpu; gpu, or gpu:N for GPU number N\n"
        "      --device-memory SIZE  take at most so much of a GPU's memory (20GB, 500MB); data beyond it stay in the host's\n"
        "      --precision P    on a GPU: double, mixed (data and latents single, sums and parameters double; the default), single\n"
        "\n"
        "  map                  the posterior mode of the unknowns instead of draws, to NAME.csv and NAME.json with -o NAME\n"
        "      --starts N       climb from N random starts (8), the best mode counts\n"
        "      --iterations N   end each start after N iterations, arrived or not\n"
        "      --jacobian       the mode in coordinates without bounds; else that of the density of the unknowns as declared\n"
        "\n"
        "      --profile        time each kernel (GPU) or step (CPU), and print a table\n"
        "      --compare-devices  a sweep on the CPU and on the GPU, step by step from the same state, in double precision\n"
        "      --first-chain N  number of the first chain (1), to spread the chains of one seed over several runs\n"
        "      --summary N|all  most rows of the summary (50)\n"
        "      --no-summary     no summary, and no copy of the draws in memory\n"
        "      --no-lp          leave out lp__, the log joint density\n"
        "      --refresh N      print a line every N sweeps\n"
        "      --check          check every step of the sampler against the log joint density, on this data\n"
        "  -q, --quiet          no notes, no progress\n"
        "  -h, --help           this text\n"
        "      --version        the version\n"
        "\n"
        "Exit status: 0 done, 1 --check failed, 2 bad flag or data, 4 the sampler stopped, 5 the GPU cannot be used, 6 its memory does\n"
        "not suffice, 7 it failed, 8 `map` found no maximum, 130 interrupted (after 4, 6, 7 and 130 the draws so far are kept).\n",
        program, program, program);
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
    const bool extension = n > 4 && strcmp(text + n - 4, ".csv") == 0;
    if (n == 0 || text[n - 1] == '/') {
        gm_error("-o: `%s` is not a file name; `-o draws` writes draws_1.csv, draws_2.csv, ...", text);
        return false;
    }
    char *name = gm_copy_text(text);
    if (extension) name[n - 4] = 0;
    free((char *)out->output);
    out->output = name;
    return true;
}

static bool device_choice(const char *text, GmOptions *out)
{
    long n = 0;
    if (strncmp(text, "gpu:", 4) == 0) {
        if (!whole("--device gpu:N", text + 4, 0, 1000, &n)) return false;
    } else if (strcmp(text, "auto") != 0 && strcmp(text, "cpu") != 0 && strcmp(text, "gpu") != 0) {
        gm_error("--device: `%s` is none of auto, cpu, gpu, gpu:N", text);
        return false;
    }
    out->device = *text == 'a' ? GM_ON_AUTO : *text == 'c' ? GM_ON_CPU : GM_ON_GPU;
    out->device_number = (int)n;
    return true;
}

static bool method_choice(const char *text, GmOptions *out)
{
    static const char *const known[] = {"auto", "gibbs", "nuts", "both"};
    for (int i = 0; i < 4; i++)
        if (strcmp(text, known[i]) == 0) {
            out->method = (GmMethod)i;
            return true;
        }
    gm_error("--method: `%s` is none of auto, gibbs, nuts, both", text);
    return false;
}

static bool moves_choice(const char *text, GmOptions *out)
{
    if (strcmp(text, "auto") != 0 && strcmp(text, "nuts") != 0 && strcmp(text, "chees") != 0) {
        gm_error("--moves: `%s` is none of auto, nuts, chees", text);
        return false;
    }
    out->moves = *text == 'a' ? GM_TRAJECTORIES_AUTO : *text == 'n' ? GM_TRAJECTORIES_NUTS : GM_TRAJECTORIES_CHEES;
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

static bool precision_choice(const char *text, GmOptions *out)
{
    for (int p = 0; p < GM_PRECISIONS; p++)
        if (strcmp(text, gm_precision_names[p]) == 0) {
            out->precision = (GmPrecision)p;
            out->precision_given = true;
            return true;
        }
    gm_error("--precision: `%s` is none of double, mixed, single", text);
    return false;
}

static bool apply(int option, const char *text, GmOptions *out)
{
    long n = 0;
    bool good = true;
    switch (option) {
    case OPT_CHAINS:
        good = whole("--chains", text, 1, MAX_CHAINS, &n);
        out->chains = (int)n;
        return good;
    case OPT_WARMUP: return whole("--warmup", text, 0, LONG_MAX / 4, &out->warmup);
    case OPT_SAMPLES: return whole("--samples", text, 1, INT_MAX, &out->samples);
    case OPT_THIN:
        good = whole("--thin", text, 1, INT_MAX, &n);
        out->thin = (int)n;
        return good;
    case OPT_SEED: return seed_number(text, &out->seed);
    case 'o': return output_name(text, out);
    case OPT_DIGITS:
        good = whole("--digits", text, 1, 17, &n);
        out->digits = (int)n;
        return good;
    case OPT_PARAMS: out->params = text; return true;
    case OPT_LOG_LIK: out->requests |= GM_LOG_LIK; return true;
    case OPT_PREDICT: out->requests |= GM_REPLICATES; return true;
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
    case OPT_METHOD: return method_choice(text, out);
    case OPT_MOVES: return moves_choice(text, out);
    case OPT_DEVICE: return device_choice(text, out);
    case OPT_DEVICE_MEMORY: return memory_size(text, out);
    case OPT_PRECISION: return precision_choice(text, out);
    case OPT_PROFILE: out->profile = true; return true;
    case OPT_COMPARE: out->compare_devices = true; return true;
    case 'q': out->quiet = true; return true;
    case OPT_CHECK: out->check = true; return true;
    case OPT_SUMMARY:
        if (strcmp(text, "all") == 0) {
            out->summary_rows = LONG_MAX;
            return true;
        }
        return whole("--summary", text, 1, LONG_MAX, &out->summary_rows);
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
    optind = 0;  // glibc: start afresh, whoever called before
    opterr = 0;
    for (;;) {
        const int option = getopt_long(argc, argv, ":o:qh", long_options, NULL);
        if (option < 0) break;
        if (option == 'h') {
            gm_usage(stdout, argv[0]);
            return GM_EXIT_OK;
        }
        if (option == OPT_VERSION) {
            printf("a gmc fit program, runtime " GM_VERSION "\n");
            return GM_EXIT_OK;
        }
        if (option == '?' || option == ':') {
            const char letter[] = {'-', (char)optopt, 0};
            const char *flag = optopt > 0 && optopt < 128 ? letter : argv[optind - 1];
            gm_error(option == ':' ? "%s: a value is missing; try --help" : "%s: no such option; try --help", flag);
            return GM_EXIT_USAGE;
        }
        if (!apply(option, optarg, out)) return GM_EXIT_USAGE;
    }
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
    *o = (GmOptions){0};
}
