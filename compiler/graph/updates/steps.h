// steps.h -- steps of a schedule that is being made.
#ifndef GMC_GRAPH_STEPS_H
#define GMC_GRAPH_STEPS_H
#include "../step.h"

const Step *step_of_integers(Graph *g, const Var *v);       // that draws whole numbers with a least value one by one; NULL: they are drawn otherwise
const Step *step_of_count(Graph *g, const Var *v);          // and more than a few of them
const Step *step_that_draws(const Graph *g, const Var *v);  // in each sweep, not along gradients
bool by_data_colours(const Step *s);                        // elements are drawn by colours that are found when data are read
Step *step_new(Graph *g, StepKind kind, Span at);           // of no variable yet
void step_append(Step **list, Step *s);                     // s, and what comes behind it
Step *gaussian_step(Graph *g, Var *const *block, int n, bool arrow, int nbatch, const char *reason);  // of a block that is jointly normal
Step *single_step(Graph *g, StepKind kind, Var *v, Conditional *c, bool collapsed, const char *reason);  // of one variable, given its conditional
#endif
