// sizes.h -- what memory can be taken by.
#ifndef GMC_GRAPH_SIZES_H
#define GMC_GRAPH_SIZES_H
#include "../graph.h"

bool check_sizes(Graph *g);         // false after a message
bool is_size(const Expr *e);        // made of data as they are read: memory can be taken by it
bool is_data_total(const Expr *e);  // sum, max or min of a whole vector of integers of the data: it may stand in a size
// hi[hi_from + i] - lo[lo_from + i] + more, i in 0 to n - 1
typedef struct Slices {
    const Var *hi, *lo;
    int hi_from, lo_from;
    long more;
    Expr *n;
} Slices;
bool is_longest_slice(const Expr *e, Slices *s);  // e is the length of the longest of some slices, which s gets
bool has_data_total(const Expr *e);               // e holds such a sum, maximum or minimum
#endif
