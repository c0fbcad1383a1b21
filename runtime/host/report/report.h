// report.h -- what `fit report` is made of: stored draws, what they say, and a page of HTML with figures in SVG.
//
//   draws_1.csv ... -> GmStored -> statistics, warnings -> figures -> report.html
//
// The files are gmc's or CmdStan's. Columns are known by their names; where these are the variables of this program's model, what it knows
// of them is used besides: labels of components, and bounds.
#ifndef GM_REPORT_H
#define GM_REPORT_H
#include "../draws.h"

// ---- stored.c: files of draws ----

typedef enum {
    STORED_QUANTITY,   // in the table: lp__, unknowns, definitions, predictions
    STORED_SAMPLER,    // accept_stat__ and the like
    STORED_LOG_LIK,    // of observed values
    STORED_REPLICATE,  // of observed values: y_rep
    STORED_LOG_PRIOR,  // its terms: lprior_mu
} GmStoredKind;

typedef struct GmStoredArray {  // columns that are elements of one variable, next to each other
    char *name;
    GmStoredKind kind;
    long first, n;  // columns
    int rank;
    long dim[GM_MAX_RANK];
    int field;                   // of the model's state; -1: it has none
    int levels_of[GM_MAX_RANK];  // by dimension: the number of the set of levels that it runs over, from 1; 0: none
    char *data;                  // of log-likelihoods: what their data are known by; NULL: the files do not say
} GmStoredArray;

typedef struct GmStoredColumn {
    char *label;  // "theta[3, 1]"
    int array;
    long element;  // row-major
} GmStoredColumn;

typedef struct GmStoredMoves {    // the diagnostics of an HMC update
    char *of;                     // its name, "" for the first
    long column[GM_HMC_NUMBERS];  // -1: there is none
    GmMovesBy by;                 // as the files say; UNKNOWN: they do not
    bool chosen;                  // Gibbs updates could draw instead
} GmStoredMoves;

typedef struct GmStored {
    const GmModel *model;  // NULL: the draws are of another
    bool by_gmc;
    char *name;                  // of the model the draws are of
    char *warmup, *thin, *seed;  // as the first file says; NULL: it says nothing
    int depth;                   // doublings of a trajectory at most
    bool passed_over;            // draws of warm-up are in the files, and are left out
    int n_notes;
    char **note;  // what the run said of its sampler
    int chains;
    long *id;    // by chain, ascending if the files have different ones
    long draws;  // of each chain
    long n_columns;
    GmStoredColumn *column;
    int n_arrays;
    GmStoredArray *array;
    GmLevelSets levels;  // of factors that were given by name, of NAME_levels.json
    int n_moves;
    GmStoredMoves *moves;
    double *x;  // [column][chain][draw]
} GmStored;

// model: NULL: that of the draws is not known. false after a message
bool gm_stored_open(GmStored *s, const GmModel *model, char **paths, int n);
void gm_stored_close(GmStored *s);
const double *gm_stored_column(const GmStored *s, long column);  // [chain][draw]
const double *gm_stored_chain(const GmStored *s, long column, int chain);
GmStoredKind gm_stored_kind(const GmStored *s, long column);

// ---- findings.c: statistics of all columns, and who is worst ----

typedef struct GmFindings {
    GmSummary *summary;  // by column; of the quantities alone
    long n_quantities;
    long *quantity;  // columns of the table, as the files have them
    long *worst;     // the same, the worst first
    long divergent;  // transitions
    bool *diverged;  // [chain][draw]
    int n_associated;
    long associated[4];   // columns that go with divergences, the most first
    double direction[4];  // P(a divergent draw's value is above that of another draw)
} GmFindings;

void gm_findings_open(GmFindings *f, const GmStored *s);
void gm_findings_close(GmFindings *f);
// R-hat and effective sizes in units of their bounds: above 1 is beyond one of them. Infinite: draws that are not finite
double gm_badness(const GmSummary *of, int chains);
bool gm_all_whole(const double *x, long n);  // whole numbers that are finite
// Largest R-hat of the order statistics of the elements of an array, drawn by drawn: what is left of it when labels do not count.
double gm_sorted_rhat(const GmStored *s, const GmStoredArray *a);

// ---- page.c: HTML ----

#define GM_HTML_BEGIN "<!DOCTYPE html>"  // of every page
void gm_html_begin(FILE *to, const char *title);
void gm_html_end(FILE *to);
void gm_html_text(FILE *to, const char *text);                                          // with what HTML reads escaped
void gm_html(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));  // that, formatted

// ---- svg.c: a figure with axes ----

typedef struct GmPanel {  // a rectangle with its coordinates
    double left, top, width, height;
    double lo[2], hi[2];  // x, y
    bool log[2];          // an axis shows powers of ten: lo and hi are logarithms
} GmPanel;

// One figure: <figure>, <svg> with an accessible name and description, <figcaption>. Numbers of figures make their ids.
void gm_figure_begin(FILE *to, int number, double width, double height, const char *title, const char *description);
void gm_figure_end(FILE *to, const char *caption);
double gm_panel_x(const GmPanel *p, double x);
double gm_panel_y(const GmPanel *p, double y);
void gm_panel_axes(FILE *to, const GmPanel *p, const char *x_name, const char *y_name);  // NULL: no numbers on that axis; "": no name
void gm_svg_text(FILE *to, double x, double y, const char *class, const char *text);
enum { GM_COLOURS = 8 };
const char *gm_series_class(int series);  // "s1" to "s8"

// ---- shapes.c: what figures are made of ----

enum { GM_GRID = 128 };
// A density over [lo, hi] at GM_GRID points, ends included: a Gaussian kernel, reflected at the ends. Values outside are left out.
void gm_density(const double *x, long n, double lo, double hi, double width, double *out);
double gm_kernel_width(const double *x, int chains, long draws);
void gm_range(const double *x, long n, double *lo, double *hi);                           // of finite values
void gm_shown_range(const double *x, long n, double *lo, double *hi);                     // that without long tails
void gm_histogram(const double *x, long n, double lo, double hi, int bins, double *out);  // counts

// ---- figures.c: the figures of an unknown ----

void gm_figures_of_quantity(FILE *to, const GmStored *s, const GmFindings *f, long column, int *number);

// ---- pairs.c, energy.c, predictive.c ----

void gm_pairs_figure(FILE *to, const GmStored *s, const GmFindings *f, int *number);
void gm_energy_figure(FILE *to, const GmStored *s, const GmStoredMoves *m, int *number);

typedef struct GmResponse {
    const GmStoredArray *array;  // of replicates
    char *name;                  // of the response
    double *y;                   // by column of the array, NaN where it is missing; NULL: not known
    long known;
    double probability[4];  // that a replicate's mean, sd, least, greatest is beyond the observed one
    double covered;         // fraction of the observed values within the central 90 % of their replicates
} GmResponse;

extern const char *const gm_response_statistic[4];
// The responses of which there are replicates, with what the data files say of them. false after a message.
bool gm_responses_open(GmResponse **out, int *n, const GmStored *s, char **data, int n_data);
void gm_responses_close(GmResponse *r, int n);
void gm_predictive_figures(FILE *to, const GmStored *s, const GmResponse *r, int *number);

// Marks columns that are beyond a bound, and within all when the components of each draw are put into ascending order of an array: in
// arrays with as many elements, or as many along a dimension, and in whole numbers from 1 to as many, which are labels.
void gm_agree_in_order(const GmStored *s, const GmStoredArray *order, const GmSummary *summary, bool *out);

// ---- warnings.c ----

extern const char gm_no_warnings[];  // what is said where there are none

// PAGE: the section of a page. LINES: one each, as a run prints them. LIST: numbered, with all that can be done
typedef enum { GM_WARNINGS_PAGE, GM_WARNINGS_LINES, GM_WARNINGS_LIST } GmWarningsForm;

// Writes warnings, the likeliest cause first; returns how many. first: the title of the first, for a note.
int gm_warnings(FILE *to, GmWarningsForm form, const GmStored *s, const GmFindings *f, const GmResponse *r, int n_responses,
                const char **first);

// ---- report.c ----

int gm_report(const GmModel *model, int argc, char **argv);  // `fit report`: the status to exit with

#endif
