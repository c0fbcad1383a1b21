// tables.h -- the Data and State of the program, and what it tells the runtime about them.
#ifndef GMC_TABLES_H
#define GMC_TABLES_H
#include "../kernel/lower.h"

int  state_fields(Program *p, Var **out);
void emit_structs(Program *p, FILE *out, Var **state, int nstate);
void emit_tables(Program *p, FILE *out, Var **state, int nstate);
bool emit_factors(Program *p, FILE *out);                            // factors.c; false: there are none
#endif
