// existence.h -- which elements of a variable have a statement.
#ifndef GMC_GRAPH_EXISTENCE_H
#define GMC_GRAPH_EXISTENCE_H
#include "../graph.h"

bool has_all_elements(Graph *g, const Var *v);                    // a statement draws each
void domains_print(FILE *out, const Graph *g);                    // the condition of each variable that has one
bool find_domains(Graph *g);                                      // which elements of each variable have a statement
Expr *var_domain(Graph *g, const Var *v, Index *const *element);  // whether v[element...] has one; NULL: all elements do
Expr *exists_at(const Var *v, Index *const *element);             // the same, once find_domains has been there
#endif
