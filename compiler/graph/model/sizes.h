// sizes.h -- expressions by which memory can be allocated.
#ifndef GMC_GRAPH_SIZES_H
#define GMC_GRAPH_SIZES_H
#include "../graph.h"

// An array that the program keeps has this size: else E0511, for the first of them.
bool check_array_size(const Graph *g, const Expr *e);
bool check_sizes(Graph *g);         // false after a message
bool is_size(const Expr *e);        // made of data as they are read, so that memory can be allocated by it
const Var *totalled(const Expr *e);  // the whole array of integers of the data whose sum, maximum or minimum e is; else NULL
bool is_data_total(const Expr *e);  // sum, max or min of a whole vector of integers of the data: a size may contain it
// hi[hi_from + i] - lo[lo_from + i] + more, i in 0 to n - 1
typedef struct Slices {
    const Var *hi, *lo;
    int hi_from, lo_from;
    long more;
    Expr *n;
} Slices;
bool is_longest_slice(const Expr *e, Slices *s);  // e is the length of the longest of some slices, which s gets
bool has_data_total(const Expr *e);               // e contains such a sum, maximum or minimum
#endif
