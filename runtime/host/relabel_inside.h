// relabel_inside.h -- what the files of `fit relabel` have in common: the draws, and what is permuted.
#ifndef GM_RELABEL_INSIDE_H
#define GM_RELABEL_INSIDE_H

#include "relabel.h"

typedef struct GmRelabelOptions {
    const char *draws, *by, *output, *cocluster, *partition, *svg, *points;
    char **files;
    int n_files;
    bool summary, quiet;
    long summary_rows;
} GmRelabelOptions;

typedef struct GmDrawColumn {
    int field;     // of state; -1: lp__; -2: a diagnostic of HMC
    long element;  // row-major
} GmDrawColumn;

typedef struct GmRelabel {
    const GmModel *model;
    GmRelabelOptions o;
    const GmLabels *labels;
    GmNetcdfIn netcdf;    // if the draws are in such a file
    int chain, n_labels;  // files; K
    long rows, draws;     // of each file; in all
    char *header;
    long n_columns;
    GmDrawColumn *column;
    GmMemory memory;   // shapes alone
    long **column_of;  // by field and element; NULL: the field is not stored
    double *number;    // [draw][column], but of allocations
    int32_t *z;        // [draw][point]: labels from 0
    int by;            // field of the allocations; -1: by parameters
    bool *wanted;      // by field: parameters that decide
    long points;       // elements of `by` that exist
    long *element;     // which these are
    int *to;           // [draw][label]: the label it becomes
} GmRelabel;

// ---- relabel_agree.c ----

// From the draw of the largest lp__; and, where pairs are few enough to count, from the least squares partition: the one that costs less.
// Fills `to`; *left: what the last round costs. Returns the rounds made.
int gm_agree(GmRelabel *r, double *left);

#endif
