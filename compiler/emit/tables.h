// tables.h -- the Data and State of the program, and what it tells the runtime about them.
#ifndef GMC_TABLES_H
#define GMC_TABLES_H
#include "out.h"

int  state_fields(const Program *p, const Var **out);
void emit_structs(Out *o, const Program *p, const Var *const *state, int nstate);
const char *emit_tables(Out *o, const Program *p, const Var *const *state, int nstate);  // returns the members of gm_model that these are
bool emit_observed(Out *o, const Program *p, const Var *const *state, int nstate);       // false: nothing is observed
bool emit_labels(Out *o, const Program *p, const Var *const *state, int nstate);         // false: there are none
bool emit_factors(Out *o);                                           // factors.c; false: there are none
#endif
