// emit.h -- the emitted program.
#ifndef GMC_EMIT_H
#define GMC_EMIT_H
#include "../kernel/kernel.h"

// The program. Its tables are another file, which it includes by this name; without one (tables NULL) they follow in their place.
void emit_program(FILE *out, FILE *tables, const char *tables_name, const Program *p, const char *source_path);
// The lesson: one chain of the Gibbs updates as plain C. There must be one (lesson_refused, kernel.h). output: where it is written, or
// NULL.
void emit_lesson(FILE *out, const Program *p, const char *source_path, const char *output);
void emit_kernels(FILE *out, const Program *p);  // the kernels with the conditionals that they draw from
#endif
