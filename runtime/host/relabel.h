// relabel.h -- what `fit relabel` is made of: assignments, and summaries of partitions that do not depend on labels.
#ifndef GM_RELABEL_H
#define GM_RELABEL_H
#include "label_order.h"

// ---- assignment.c ----

// The permutation to[] of 0 to n - 1 of the smallest sum of cost[k * n + to[k]], and that sum. Costs are finite. O(n^3), by shortest
// augmenting paths (Kuhn 1955; Jonker and Volgenant 1987).
double gm_assign(int n, const double *cost, int *to);

// ---- clusters.c: of allocations z[draw * points + point], labels from 0 ----

typedef struct GmPartitions {
    long draws, points;
    int labels;
    const int32_t *z;
} GmPartitions;

void gm_occupied_print(FILE *to, const GmPartitions *p);  // how many labels have points, as fractions of the draws
enum { GM_MOST_PAIRED = 20000 };                          // points of which pairs are counted
// For each pair of points the number of draws that hold them together: together[i * points + j], i > j. At most GM_MOST_PAIRED points.
uint32_t *gm_together(const GmPartitions *p);
// The draw whose partition is nearest to these fractions by squares (Dahl 2006).
long gm_least_squares(const GmPartitions *p, const uint32_t *together);
// Labels of one draw, renumbered from 0 by the sizes of the clusters, the largest first; returns their number. of: by point.
int gm_by_size(const GmPartitions *p, long draw, int *of);
// a square table of fractions, without header
bool gm_cocluster_write(const char *path, const GmPartitions *p, const uint32_t *together);
// point, cluster; element: which one of the array a point is
bool gm_partition_write(const char *path, const GmPartitions *p, const int *of, const long *element);
// Points (x, y), coloured by cluster: an SVG file.
bool gm_scatter_write(const char *path, long points, const double *xy, const char *x_name, const char *y_name, int clusters, const int *of);

// ---- relabel.c ----

// `fit relabel DRAWS --by c`: the whole command. argv[0] names the program. The status to exit with.
int gm_relabel(const GmModel *model, int argc, char **argv);
// --relabel of a run: whether labels are there to be permuted, and what by; false after a message. Then allocations are kept. run: the
// command, for the files of the run.
bool gm_relabel_possible(const GmModel *model, GmOptions *o);
int gm_relabel_run(const GmModel *model, const GmOptions *o);
#endif
