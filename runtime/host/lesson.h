// lesson.h -- data, starting values and draws of a program by `gmc --lesson`. Programs call these by the macros of runtime/device/lesson.h.
#ifndef GM_HOST_LESSON_H
#define GM_HOST_LESSON_H
#include "../device/rng.h"
#include "model.h"

// Reads the command line: [--seed N] [--warmup N] [--samples N] FILES. `at` is how far the chain is;
// the result is what samplers read of a run.
// Ends the program after one line to stderr if something is wrong, as all of these do.
GmRun *gm_lesson_begin(int argc, char **argv, Sweep *at);

// The array (or, of rank 0, the number) of this name in the files, checked against bounds and constraint; no value may be missing.
void *gm_lesson_data(const char *name, GmType type, GmConstraint constraint, double lower, double upper, int rank, const long *dim);

// The whole number of this name in the files, or else the k-th of the `rank` extents of the array.
long gm_lesson_size(const char *name, double lower, double upper, const char *array, GmType type, int k, int rank);

// The number of this name in the files, or else the one beside it.
double gm_lesson_number(const char *name, GmType type, double otherwise, double lower, double upper);
// Memory for an array, zero.
void *gm_lesson_room(size_t size, int rank, const long *dim);

// Starting values, as all programs draw them for the seed; `variable` is the number of its streams less 1. show: it is a column of the
// draws.
void gm_lesson_start(void *x, GmType type, GmConstraint constraint, const char *name, int variable, int show, double lower, double upper,
                     int rank, const long *dim);

// A column of the draws for each element; size: bytes of one.
void gm_lesson_show(const char *name, const void *x, size_t size, int rank, const long *dim);

// Ends a sweep, and prints its draw after the warm-up. 0: all are made.
int gm_lesson_next(Sweep *at);

// Prints mean, sd and quantiles of each column to stderr. Returns 0.
int gm_lesson_end(void);
#endif
