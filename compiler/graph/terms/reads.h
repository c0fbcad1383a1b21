// reads.h -- who reads a variable: expressions, series, factors.
#ifndef GMC_GRAPH_READS_H
#define GMC_GRAPH_READS_H
#include "../graph.h"

bool ex_reads(const Expr *e, const Var *v);              // mentions v, or a series of the sweep that does
bool series_reads(const Series *s, const Var *v);        // whether a change of v changes the series
bool series_follows(const Series *s, const Var *v);      // whether it has to be computed again when v has changed
bool factor_mentions(const Factor *f, const Var *v);     // its density reads v, or v decides its instances
const Var *through_series(const Expr *e, const Var *v);  // a series that e mentions and through which v enters it; NULL: none
Reading factors_of(Graph *g, const Var *v);              // that v enters, in the order of the model: found once, for all variables
Reading factors_of_block(Graph *g, Var *const *block, int nblock);  // that some of them enter, each once
int block_sums(Var *const *block, int n);                           // of factor_counts_at, for the block
void name_subscripts(Graph *g);  // Var.called of each variable, by the loops of the model
void name_by_sum(Expr *body, Index *i);  // what a sum of the model calls the subscripts in it
// v[j, ...] with fresh plate indices over its dimensions: called as the model calls them, or k, l, ... where that would clash with others
// near v
Expr *var_element(const Graph *g, Var *v, Index **fresh);
// over n values of a discrete unknown: called so, or otherwise where a subscript of the element is
Index *index_of_values(const Conditional *c, const char *name, Expr *n);
bool reads_sum(Graph *g, Var *const *block, int n);             // a factor that the block sees is a sum over the values of an unknown
bool drawn_without_summed(Graph *g, Var *const *block, int n);  // the block is drawn without some unknown that is summed out
#endif
