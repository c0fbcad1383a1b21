// coordinates.h -- the real unknowns of a chain as coordinates without bounds, for whoever looks at them from outside of the program's
// steps (coordinates.c).
#ifndef GM_COORDINATES_H
#define GM_COORDINATES_H

#include "chains.h"

typedef struct GmCoordinates {
    const GmModel *model;
    const GmMemory *memory;
    long n;
} GmCoordinates;

// false: an unknown has a constraint that is not known here (correlations, factors, directions, sums of 0).
bool gm_coordinates_open(GmCoordinates *c, const GmModel *model, const GmMemory *m);

// q[n]; not finite, where a matrix is not positive definite
void gm_coordinates_take(const GmCoordinates *c, int chain, double *q);
void gm_coordinates_put(const GmCoordinates *c, int chain, const double *q);  // inside all bounds, also where exp is 0
// whether a step along coordinate k leads to an end at infinity, and to no other
bool gm_coordinates_outward(const GmCoordinates *c, long k, double step);
char *gm_coordinates_name(const GmCoordinates *c, int chain, long k);  // b[2] = 38.1 (model.gm:3), for messages; to be freed

#endif
