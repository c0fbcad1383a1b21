// tables.h -- the Data and State of the program, and what it tells the runtime about them.
#ifndef GMC_TABLES_H
#define GMC_TABLES_H
#include "out.h"

void emit_structs(Out *o, const Program *p);
const char *emit_tables(Out *o, const Program *p);                   // returns the members of gm_model that these are
bool emit_observed(Out *o, const Program *p);                        // false: nothing is observed
bool emit_labels(Out *o, const Program *p);                          // false: there are none
bool emit_factors(Out *o);                                           // factors.c; false: there are none
#endif
