// em.h -- posterior modes by expectation-maximisation (em.c).
#ifndef GM_EM_H
#define GM_EM_H

#include "ascent.h"
#include "chains.h"
#include "messages.h"

typedef struct GmEmEnd {  // where a start has come to
    GmAscentState state;
    long iterations;
    double log_density;
    double change;   // the remaining distance, by the last iterations, relative to the unknowns
    double slope;    // the largest derivative, by differences, of the highest one; NaN: not looked at
    char *runs_off;  // RUNS_OFF: what does, for messages; to be freed
    double fell;     // below 0: the iteration that should not have
} GmEmEnd;

// Iterations from each of the starts, which are the states of the chains, to end[chains]. on_device: a run of one chain on a GPU that has
// the work, or NULL; unknowns are in `m` either way. GM_EXIT_OK, GM_EXIT_FAULT after a message, GM_EXIT_INTERRUPTED, or what a device that
// failed has said.
GmExit gm_em(const GmModel *model, GmRun *run, GmRun *on_device, const GmMemory *m, const GmOptions *o, GmEmEnd *end);

#endif
