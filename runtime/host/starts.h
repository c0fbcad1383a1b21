// starts.h -- blocks of HMC updates, as log densities of coordinates without bounds (starts.c).
#ifndef GM_STARTS_H
#define GM_STARTS_H

#include "../device/rng.h"

typedef struct GmMoving {  // a block of one chain
    GmRun *run;
    void (*density)(GmRun *);  // asked for what follows at `position`:
    long n;
    double *position, *value, *gradient;  // value: the log density by coordinates, and by the unknowns
    Stream random;                        // numbers that neither sweeps nor initial values use
} GmMoving;

GmMoving gm_moving(GmRun *one, const GmHmc *of, void (*density)(GmRun *));

// Is there a density, with a gradient, where the block stands, or at one of a hundred random places about 0? The position is the one found,
// or as it was.
bool gm_moving_stands(GmMoving *m);

#endif
