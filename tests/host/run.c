// If this failed, a run would depend on threads or on other chains, lose draws when it ends early, or leave broken files behind.
#include "toy.h"

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

// Lines that are neither comments nor the header.
static long count_draws(const char *path)
{
    char *text = get_text(path);
    long n = -1;
    for (const char *line = text; *line;) {
        n += *line != '#';
        line = strchr(line, '\n');
        if (!line)
            break;
        line++;
    }
    free(text);
    return n;
}

static int run_on(const char *flags)
{
    char words[1000];
    snprintf(words, sizeof words, "data.json --seed 7 %s", flags);
    return fit(words);
}

static void reproducible(void)
{
    check(run_on("--samples 50 --warmup 20 -o a --threads 1 --quiet") == 0, "a run ends with status 0");
    check(run_on("--samples 50 --warmup 20 -o b --threads 3") == 0 && same_file("a_1.csv", "b_1.csv") && same_file("a_4.csv", "b_4.csv"),
          "1 and 3 threads: the same files");
    check(run_on("--samples 50 --warmup 20 -o c --chains 1 --first-chain 3") == 0 && same_file("a_3.csv", "c_3.csv"),
          "chain 3 alone: the same file as chain 3 of 4");
    check(!same_file("a_1.csv", "a_2.csv"), "chains differ");
    check(run_on("--samples 50 --warmup 20 -o d --no-summary") == 0 && same_file("a_2.csv", "d_2.csv") && !holds("out.txt", "mean"),
          "--no-summary: the same draws, no table");
}

static void layout(void)
{
    check(holds("a_1.csv", "\nlp__,mu,beta.1,beta.2,twice.1.1,twice.2.1,twice.1.2,twice.2.2,twice.1.3,twice.2.3,y_rep\n"),
          "columns: lp__, declaration order, first index fastest");
    check(holds("a_1.csv", ",11,21,12,22,13,23,"), "elements are under their labels");
    check(holds("a_1.csv", "#   seed = 7\n") && holds("a_1.csv", "num_samples = 50\n") && holds("a_1.csv", "# model = toy\n"),
          "comments name model, seed and settings");
    check(count_draws("a_1.csv") == 50, "50 draws: %ld rows", count_draws("a_1.csv"));
    check(run_on("--samples 10 --warmup 20 --thin 5 -o t") == 0 && count_draws("t_1.csv") == 10, "--thin: 10 draws kept");
    char *all = get_text("a_1.csv"), *thin = get_text("t_1.csv"), *first = strstr(thin, "y_rep\n") + 6;
    first[strcspn(first, "\n") + 1] = 0;
    char *found = strstr(all, first);
    long before = 0;
    for (const char *c = strstr(all, "y_rep\n") + 6; found && c < found; c++)
        before += *c == '\n';
    check(found && before == 4, "--thin 5 keeps the 5th sweep after warm-up (rows before it: %ld)", before);
    free(all);
    free(thin);
    check(run_on("--samples 3 --no-lp --params beta -o p") == 0 && holds("p_1.csv", "\nbeta.1,beta.2\n"), "--params and --no-lp");
    check(run_on("--samples 3 --params betta -o q") == 2 && holds("err.txt", "no variable `betta`") && !exists("q_1.csv"),
          "--params with an unknown name is refused");
    check(run_on("--samples 3 --params mu,beta,mu -o q") == 2 && holds("err.txt", "given twice") &&
              run_on("--samples 3 --params , -o q") == 2 && holds("err.txt", "a name is missing") &&
              run_on("--samples 3 --params mu, -o q") == 2 && !exists("q_1.csv"),
          "--params with a name twice, or none, is refused");
    check(run_on("--samples 3 -o there/is/none") == 0 && exists("there/is/none_4.csv"), "folders that are not there are made");
    check(run_on("--samples 3 -o data.json/none") == 2 && holds("err.txt", "cannot be written"), "a file is no folder");
    put_text("old_2.csv", "older\n");
    check(run_on("--samples 3 -o old") == 2 && holds("err.txt", "old_2.csv is there already") && holds("old_2.csv", "older") &&
              !exists("old_1.csv") && run_on("--samples 3 --overwrite -o old") == 0 && count_draws("old_2.csv") == 3,
          "a file that is there is replaced with --overwrite only");
}

static void missing(void)
{
    put_text("na.json", "{ \"J\": 2, \"group\": [1, 2, 1, 2, 2], \"y\": [1.5, null, -0.5, \"NA\", 5], \"X\": [[1], [1], [1], [1], [1]], "
                        "\"w\": [0.5, 0.5] }");
    check(fit("na.json --seed 7 --samples 20 --params all -o m") == 0 && holds("m_1.csv", ",y.2,y.4,"),
          "--params all holds the missing values");
    check(holds("m_1.csv", "\n# N: 5, from the size of group\n"), "and written into the files");
    check(holds("err.txt", "N = 5, from the size of group") && holds("err.txt", "K = 1, from the size of X"),
          "sizes are inferred and reported");
    check(fit("na.json --seed 7 --check") == 0 && holds("out.txt", "idle") && holds("out.txt", "no exact draw"), "--check passes");
    toy_wrong = 1;
    check(fit("na.json --seed 7 --check") == 1 && holds("out.txt", "FAILED"), "--check finds a wrong update");
    toy_wrong = 0;
}

static bool same_draws(const char *a, const char *b)
{
    char *x = get_text(a), *y = get_text(b);
    without_times(x);
    without_times(y);
    const char *from_x = strstr(x, "\nlp__"), *from_y = strstr(y, "\nlp__");
    const bool same = from_x && from_y && strcmp(from_x, from_y) == 0;
    free(x);
    free(y);
    return same;
}

// A limit on the size of files imitates a disk that is full.
static void full_disk(void)
{
    struct rlimit before, small = { .rlim_cur = 150000 };
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const int status = run_on("--samples 3000 --warmup 20 -o full");
    setrlimit(RLIMIT_FSIZE, &before);
    const long kept = count_draws("full_1.csv");
    check(status == 4 && holds("err.txt", "cannot be written: File too large"), "a file that cannot grow: status %d", status);
    check(kept > 500 && kept < 3000 && kept == count_draws("full_2.csv") && kept == count_draws("full_4.csv"),
          "%ld draws kept in every file", kept);
    char *text = get_text("full_3.csv");
    check(text[0] && text[strlen(text) - 1] == '\n', "its last row is whole");
    free(text);
}

static void early_ends(void)
{
    put_text("f_1.csv", "older\n");
    toy_fault_at = 30;
    check(run_on("--samples 50 --warmup 20 --overwrite -o f") == 4 &&
              holds("err.txt", "y[3]: the scale is not positive (chain 2, sweep 31)"),
          "a fault: status 4, with variable, element, chain and sweep");
    check(count_draws("f_1.csv") == 10 && count_draws("f_4.csv") == 10 && holds("out.txt", "mean"), "a fault keeps the draws before it");
    put_text("g_1.csv", "older\n");
    toy_fault_at = 3;
    check(run_on("--samples 50 --warmup 20 --overwrite -o g") == 4 && holds("g_1.csv", "older") && !exists("g_2.csv"),
          "a fault before the first draw leaves older files");
    toy_fault_at = -1;
    toy_fault_between = 30;
    check(run_on("--samples 50 --warmup 20 -o h") == 4 && count_draws("h_1.csv") == 10 && count_draws("h_4.csv") == 10 &&
              holds("err.txt", "10 draws per chain"),
          "a fault after two of four chains kept their draw: all files are cut to the shortest");
    check(run_on("--samples 10 --warmup 20 -o h10") == 0 && same_draws("h_1.csv", "h10_1.csv"), "what is cut ends with a whole row");
    toy_fault_between = -1;
    full_disk();
    toy_slow = 2;
    const pid_t child = start_fit("data.json --seed 7 --warmup 1 --samples 100000 -o i --refresh 1 --chains 2");
    for (int tries = 0; tries < 2000 && !holds("err.txt", "sweep 20 "); tries++)
        usleep(5000);
    kill(child, SIGINT);
    const int status = wait_fit(child);
    toy_slow = 0;
    const long kept = count_draws("i_1.csv");
    check(status == 130 && kept >= 15 && kept == count_draws("i_2.csv") && holds("out.txt", "mean"),
          "Ctrl-C: status %d, %ld draws kept in every file", status, kept);
    check(system("ls *.part >/dev/null 2>&1") != 0, "no temporary file is left");
}

// A file that is read where it lies, of 5 rows of X.
static void put_array(const char *path)
{
    char bytes[208] = "\x93NUMPY\x01";
    bytes[8] = 118;
    snprintf(bytes + 10, 118, "{'descr': '<f8', 'fortran_order': False, 'shape': (5, 2), }");
    put(path, bytes, sizeof bytes);
}

static void changed_data(void)
{
    put_array("X.npy");
    put_text("rest.json", "{ \"group\": [1, 2, 1, 2, 2], \"y\": [1, 2, 3, 4, 5], \"w\": [0.25, 0.75] }");
    toy_slow = 5;
    const pid_t child = start_fit("rest.json X=X.npy --samples 100 --warmup 20 --chains 1 -o changed");
    while (system("ls changed*.part >/dev/null 2>&1") != 0)
        usleep(5000);
    put_array("X.npy");
    check(wait_fit(child) == 4 && holds("err.txt", "X.npy: was written to while the program ran"),
          "data that are written to during a run are noticed");
    toy_slow = 0;
    put_array("X.npy");
    check(fit("rest.json X=X.npy --samples 3 --warmup 2 --chains 1") == 0, "as they are they are read");
    fflush(stdout);
    const pid_t reader = fork();
    if (reader == 0) {
        size_t size;
        const volatile char *bytes = freopen("err.txt", "w", stderr) ? gm_map_file("X.npy", &size) : NULL;
        _exit(bytes && truncate("X.npy", 0) == 0 ? bytes[0] : 99);
    }
    check(wait_fit(reader) == 4 && holds("err.txt", "X.npy: was cut short while the program ran"), "data that are cut short are named");
}

// A model that takes for ever to look at its data.
static void look_for_ever(GmRun *run)
{
    (void)run;
    for (;;)
        usleep(1000);
}

static void interrupted_early(void)
{
    GmModel slow = toy;
    slow.setup = look_for_ever;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        char *argv[] = { "fit", "data.json", "-q", "-o", "early", NULL };
        exit(gm_fit(&slow, 5, argv));
    }
    while (system("ls early*.part >/dev/null 2>&1") != 0)
        usleep(5000);
    usleep(50000);
    kill(child, SIGINT);
    check(wait_fit(child) == 130 && system("ls early* >/dev/null 2>&1") != 0,
          "Ctrl-C while data are looked at ends the program, without files");
}

static void initial_values(void)
{
    put_text("init.json", "{ \"mu\": 1, \"beta\": [3, 4] }");
    put_text("bad.json", "{ \"beta\": [3, 4, 5] }");
    check(run_on("--samples 1 --warmup 0 --init init.json") == 0, "--init FILE is read");
    check(run_on("--samples 1 --init bad.json") == 2 && holds("err.txt", "beta has size 3, but should have 2"),
          "--init FILE: a wrong shape is refused");
    put_text("slip.json", "{ \"mu\": 1, \"betta\": 3 }");
    check(run_on("-q --samples 1 --init slip.json") == 0 && holds("err.txt", "no variable betta"),
          "--init FILE: a name of nothing is said, also with -q");
    put_text("none.json", "{ \"mu\": null }");
    check(run_on("--samples 1 --init none.json") == 2 && holds("err.txt", "mu is missing, but a start is a number"),
          "--init FILE: a start is a number");
    put_text("last.csv", "# a comment\nlp__,beta.2,beta.1,mu\n-1,4,3,1\n-2,40,30,0.5\n# Elapsed\n");
    check(run_on("--samples 1 --warmup 0 --init last.csv") == 0, "--init FILE.csv: the last draw is read");
    put_text("part.csv", "lp__,beta.1,mu\n-2,30,0.5\n");
    check(run_on("--samples 1 --init part.csv") == 2 && holds("err.txt", "no column of beta[2]"),
          "--init FILE.csv: an element that is missing is refused");
    put_text("cut.csv", "lp__,beta.1,beta.2,mu\n-2,30,0.5,1\n-3,3");
    check(run_on("--samples 1 --init cut.csv") == 2 && holds("err.txt", "the file was cut off"),
          "--init FILE.csv: a line that was cut off is refused");
    put_text("other.csv", "lp__,gamma\n-2,30\n");
    check(run_on("--samples 1 --init other.csv") == 2 && holds("err.txt", "none of its columns"),
          "--init FILE.csv: draws of another model are refused");
    put_text("device.csv", "");
    check(remove("device.csv") == 0 && symlink("/dev/zero", "device.csv") == 0 && run_on("--samples 1 --init device.csv") == 2 &&
              holds("err.txt", "is a device"),
          "--init FILE.csv: a device is refused");
    check(run_on("--samples 1 --init 0") == 0 && run_on("--samples 1 --init -3") == 2, "--init RADIUS");
}

static void flags(void)
{
    check(fit("--help") == 0 && holds("out.txt", "--warmup"), "--help");
    check(fit("--version") == 0, "--version");
    check(fit("data.json --sample-size 3") == 2 && holds("err.txt", "--sample-size: no such option"), "an unknown flag is named");
    check(fit("data.json --chains 0") == 2 && holds("err.txt", "--chains: `0`"), "--chains 0 is refused");
    check(fit("data.json --seed -1") == 2 && fit("data.json --samples 1e3") == 2 && fit("data.json --chains") == 2,
          "bad values of flags are refused");
}

// The posterior mean of mu in closed form: mu ~ normal(0, 10), mean of group j ~ normal(mu, sqrt(1 + 4 / count[j])).
static void posterior(void)
{
    const double v1 = 1 + 4.0 / 2, v2 = 1 + 4.0 / 3;
    const double precision = 0.01 + 1 / v1 + 1 / v2, mean = (0.5 / v1 + 4 / v2) / precision;
    run_on("--samples 5000 -o z");
    double sum = 0;
    for (int c = 1; c <= 4; c++) {
        char path[20];
        snprintf(path, sizeof path, "z_%d.csv", c);
        char *text = get_text(path);
        without_times(text);
        for (char *line = strstr(text, "y_rep\n") + 6; *line; line = strchr(line, '\n') + 1)
            sum += strtod(strchr(line, ',') + 1, NULL) / 20000;
        free(text);
    }
    // The Gibbs chain of this model has effective size above 1000 of 20000; |z| < 6 rings falsely 2 times in 10^9.
    const double z = (sum - mean) * sqrt(1000 * precision);
    check(fabs(z) < 6, "mean of mu: %.4f, closed form %.4f, |z| = %.2f < 6 (seed 7)", sum, mean, fabs(z));
}

int main(void)
{
    enter_scratch();
    put_text("data.json", toy_json);
    reproducible();
    layout();
    missing();
    early_ends();
    changed_data();
    interrupted_early();
    initial_values();
    flags();
    posterior();
    return finish_tests();
}
