// program.h -- the files that write what is around the kernels, among themselves.
#ifndef GMC_PROGRAM_H
#define GMC_PROGRAM_H
#include "out.h"

// ---- legend.c ----

// What words mean that most kernels of this text have: comment lines.
void write_throughout(FILE *to, Arena *a, const char *body);
// The text, with what its words mean where they first stand. `above`: a text that explains its own; NULL: the text is a program, which has
// those of most kernels at its top.
void write_explained(FILE *to, Arena *a, const char *body, const char *above);
const char *legend_text(const Out *o, const char *body);  // the same for a page, a line for each

// ---- works.c ----

const char *works_text(Arena *a, const char *text);             // where the works appeared that the text names; "": it names none
void write_works(FILE *to, Arena *a, const char *const *text);  // the same of texts of a program, up to a NULL, as comment lines

// ---- launches.c ----

void emit_launches(Out *o, const Launches *list);
void emit_one_launch(Out *o, const Launch *l);           // in no block of its own
void emit_ration(Out *o, const UpdateCode *s);           // functions for what the draws of its scales cost; none if it draws none
const char *launch_alone(Out *o, const Launches *list);  // the one launch of the list; NULL: there are more, or conditions
const char *work_text(const Out *o, const Kernel *k);    // how many iterations its loops have
Out launching(const Out *o);                             // for sizes of launches
void emit_data(const Out *o);                            // the data of a run, as d

// ---- updates.c ----

bool has_function(const UpdateCode *s);                    // whether an update has a function that launches its kernels: there are several
void emit_update(Out *o, const UpdateCode *s);             // this function
void emit_host(Out *o, const Program *p);                  // what the host launches before and after the sweep, and for HMC
void emit_sweep(Out *o, const Program *p);                 // the functions of the Gibbs updates, and the sweep that makes them
const char *host_members(const Out *o, const Program *p);  // the members of gm_model that this gives

// ---- tables.c ----

void emit_structs(Out *o, const Program *p);
void emit_lesson_structs(Out *o, const Program *p);
const char *emit_tables(Out *o, const Program *p);  // returns the members of gm_model that these are
bool emit_priors(Out *o, const Program *p);         // false: there is no log prior
bool emit_observed(Out *o, const Program *p);       // false: nothing is observed
void emit_laws(Out *o, const Program *p);           // what can be drawn from the law of its own statement
bool emit_statistics(Out *o, const Program *p);     // false: no update reads any
bool emit_labels(Out *o, const Program *p);         // false: there are none

// ---- factors.c ----

const char *emit_factors(Out *o, const Program *p);  // the members that name what was emitted, each after a comma

// ---- prices.c ----

const char *units_c(const Out *o, const Expr *e);  // a number of multiply-adds, in doubles: sums of products of sizes
int emit_prices(Out *o, const Program *p);         // what a sweep costs; the number of the function for all of it
bool emit_selections(Out *o, const Program *p);    // false: there are none
#endif
