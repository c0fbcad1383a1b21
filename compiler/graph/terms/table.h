// table.h -- for expr.c, which keeps the normal form.
#ifndef GMC_GRAPH_TABLE_H
#define GMC_GRAPH_TABLE_H
#include "../graph.h"

Expr *expr_cons(Expr draft);                // the one expression equal to it; its arguments are copied
Index *index_bound(int height, int least);  // the canonical index of reductions of this height, over values from `least` on
int index_least(const Expr *lo);            // what an index that begins at lo is never below
#endif
