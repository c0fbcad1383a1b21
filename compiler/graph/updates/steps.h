// steps.h -- steps of a schedule that is being made.
#ifndef GMC_GRAPH_STEPS_H
#define GMC_GRAPH_STEPS_H
#include "../step.h"

// that draws whole numbers with a least value one by one; NULL: they are drawn otherwise
const Step *step_of_integers(Graph *g, const Var *v);
const Step *step_of_count(Graph *g, const Var *v);          // and more than a few of them
const Step *step_that_draws(const Graph *g, const Var *v);  // in each sweep, not along gradients
bool is_of_series(const Graph *g, const Var *v);            // a series has to be computed again when v has changed
// that draws v by itself or with others, but not along gradients or with others summed out: a move may follow it. NULL: there is none
const Step *step_in_sweep(const Graph *g, const Var *v);
bool by_data_colours(const Step *s);               // elements are drawn by colours that are found when data are read
Step *step_new(Graph *g, StepKind kind, Span at);  // of no variable yet
void step_append(Step **list, Step *s);            // s, and what comes behind it
// the place where a move is put: behind all steps but those of gradients that compete with others
Step **steps_of_sweep(Graph *g);
void step_insert(Step ***at, Step *s);  // there, and `at` goes behind it; NULL: nothing is
// of a block that is jointly normal
Step *gaussian_step(Graph *g, Var *const *block, int n, bool arrow, int nbatch, const char *reason);
// of one variable, given its conditional
Step *single_step(Graph *g, StepKind kind, Var *v, Conditional *c, bool collapsed, const char *reason);
#endif
