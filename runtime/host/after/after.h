// after.h -- commands about stored draws whose answer is a table: `summary`, `diagnose`, `loo`, `compare`. Programs have them, and gmc,
// which knows no model then.
//
//   draws_1.csv ... -> GmStored (report/stored.c) -> a table, warnings, or the expected log predictive density
#ifndef GM_AFTER_H
#define GM_AFTER_H
#include "../report/report.h"
#include "commands.h"

// ---- opened.c: what all of the commands do first ----

// Opens the files that a command is given. false after a message that names the command.
bool gm_opened(GmStored *s, const GmModel *model, const char *command, char **given, int n_given);
// Reads options up to the first that `take` does not know or refuses. -1 to go on with argv[optind], else the status. usage: one line.
int gm_after_options(int argc, char **argv, unsigned group, const char *usage, bool (*take)(int option, const char *text, void *to),
                     void *to);

// ---- table.c ----

int gm_table(const GmModel *model, int argc, char **argv);     // `summary`: the status to exit with
int gm_diagnose(const GmModel *model, int argc, char **argv);  // `diagnose`

// ---- pareto.c ----

// Pareto-smoothed importance sampling, in place: log weights, up to a constant, become logarithms of smoothed weights with the sum 1.
// efficiency: relative effective size of the draws. Returns k; infinite: fewer than 5 draws are in the tail, and nothing was smoothed.
double gm_pareto_smooth(double *log_weight, long n, double efficiency);
double gm_log_sum_exp(const double *x, long n);

// ---- loo.c ----

typedef struct GmLooOptions {
    const char *log_lik;    // "y,z": the columns; NULL: all that there are
    double efficiency;      // given by the user; 0: that of the quantities in the files
    bool by_observation;    // that of each observation's likelihood
    const char *pointwise;  // a file, or NULL
} GmLooOptions;

typedef struct GmLoo {
    char *of;  // "log_lik_y", or "log_lik_y + log_lik_z"
    long n;    // observations
    long left_out;
    char **name;               // "y[3]"
    char *data;                // what their values are known by; NULL: the files do not say
    double *elpd, *k, *fit;    // of each: its elpd_loo, Pareto's k, and its log predictive density by all draws
    double elpd_sum, elpd_se;  // the sum and its standard error
    double p_loo;              // the effective number of parameters
    double good;               // k up to here is good
    long n_bad, n_very_bad;    // k above it, and of these above 1
    int chains;
    long draws;
} GmLoo;

bool gm_loo_open(GmLoo *out, const GmStored *s, const GmLooOptions *o, const char *command);  // false after a message
void gm_loo_close(GmLoo *l);
double gm_se_of_sum(const double *x, long n);  // sqrt(n var(x)), the variance with the divisor n - 1; of one number NaN
void gm_put_estimate(int width, double x);     // two digits behind the point; a dash for NaN
// An option of `loo` or `compare`; false after a message.
bool gm_loo_option(int option, const char *text, void *options);
int gm_loo(const GmModel *model, int argc, char **argv);

// ---- compare.c ----

int gm_compare(const GmModel *model, int argc, char **argv);

#endif
