// emit.h -- the emitted program.
#ifndef GMC_EMIT_H
#define GMC_EMIT_H
#include "../graph/graph.h"

void emit_program(FILE *out, Graph *g, const char *source_path);
void emit_kernels(FILE *out, Graph *g);       // the kernels with the conditionals that they draw from
#endif
