// device_auto.h -- --device auto: on which device a run is made (device_auto.c).
#ifndef GM_DEVICE_AUTO_H
#define GM_DEVICE_AUTO_H

#include "draws.h"

// What is known of a run, in seconds. Each time is known to a factor: 2 of one that is predicted means between half and twice of it.
typedef struct GmOutlook {
    double sweeps;    // that the run makes
    double cpu, gpu;  // a sweep of all chains
    double cpu_factor, gpu_factor;
    double start;       // before the first sweep on the GPU
    bool cpu_at_least;  // the CPU takes as long or longer: not all of its costs are known yet
} GmOutlook;

typedef enum { GM_CPU_ENDS_FIRST, GM_GPU_ENDS_FIRST, GM_NOT_CLEAR } GmVerdict;

GmVerdict gm_outlook_verdict(const GmOutlook *x);  // by what is known for certain
GmVerdict gm_outlook_likely(const GmOutlook *x);   // by the times as they are: one of the two
// whether starting a GPU to measure it would take but a part of the run
bool gm_outlook_worth_measuring(const GmOutlook *x);
void gm_outlook_say(char *to, size_t room, const GmOutlook *x, bool on_gpu);  // the line about it

// A sweep of all chains as costs have it (GmModel.cost), and how a run will make it. `in_turn`: a GPU works on one chain after the other.
double gm_cost_on_cpu(const double *cost, bool steps, bool moves, int chains, int threads);
// threads that may share a chain's sweep, 1 or more
double gm_cost_shared(const double *cost, bool steps, bool moves, int chains, int threads);
double gm_cost_on_gpu(const double *cost, bool steps, bool moves, int chains, bool in_turn, int processors);

// GM_ON_CPU or GM_ON_GPU, for --device auto. `line`: what is to be said of it, or empty. Memory is left as it was.
GmDeviceChoice gm_device_auto(const GmModel *model, const GmData *data, GmMemory *memory, const GmOptions *o, const GmDraws *draws,
                              const GmRun *run, char *line, size_t room);

// A line of --profile: what was predicted.
void gm_device_predictions(FILE *to, const GmModel *model, const GmOptions *o, const GmData *data);

#endif
