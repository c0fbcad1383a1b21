// scope.h -- the loops and conditions around a statement of the tree.
#ifndef GMC_GRAPH_SCOPE_H
#define GMC_GRAPH_SCOPE_H
#include "elaborate.h"

typedef struct StmtScope {  // the loops around a statement, their condition, and the names of their indices
    int n;
    Index *index[MAX_PLATES];
    Expr *guard;
    const Env *env;
} StmtScope;

// with loops over the elements of a vectorised statement
Loops plates_of(Graph *g, const StmtScope *s, Span at, int extra, Index *const *more);
void find_lookups(Graph *g, Stmt *s, StmtScope scope);  // fills Stmt.lookups
#endif
