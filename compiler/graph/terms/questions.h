// questions.h -- properties of expressions, declared in expr.h, and the start of walks over them.
#ifndef GMC_GRAPH_QUESTIONS_H
#define GMC_GRAPH_QUESTIONS_H
#include "../graph.h"

void questions_start(void);  // once for a compilation
#endif
