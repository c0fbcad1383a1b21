// questions.h -- what expressions say of themselves (expr.h), and how walks over them begin.
#ifndef GMC_GRAPH_QUESTIONS_H
#define GMC_GRAPH_QUESTIONS_H
#include "../graph.h"

void questions_start(void);  // once for a compilation
#endif
