// emit.h -- the emitted program.
#ifndef GMC_EMIT_H
#define GMC_EMIT_H
#include "../kernel/kernel.h"

void emit_program(FILE *out, const Program *p, const char *source_path);
void emit_kernels(FILE *out, const Program *p);  // the kernels with the conditionals that they draw from
#endif
