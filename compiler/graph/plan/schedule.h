// schedule.h -- how each variable is drawn, and in which order.
#ifndef GMC_GRAPH_SCHEDULE_H
#define GMC_GRAPH_SCHEDULE_H
#include "../graph.h"

int summed_out_of(Graph *g, Var *const *block, int n, int sums, Var **out);       // the unknowns that are summed out of what the block reads with so many sums behind it; their number
bool schedule(Graph *g);                                         // a step for each unknown; the passes behind it add others
bool compete(Graph *g);
bool move_together(Graph *g);
bool complete_sweep(Graph *g);                                   // once all steps are there
const char *only_on_cpu(const Graph *g);                         // why its program runs on the CPU alone; NULL: it does not
void schedule_print(FILE *out, const Graph *g);                  // with the law of each step, once describe_steps has been there
bool complete_blocks(Graph *g);                                  // joint normals hold all elements of their variables, also those that do not exist; then their routes
#endif
