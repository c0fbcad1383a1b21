// device_auto.c -- --device auto: the CPU or a GPU, whichever is expected to end the run sooner.
//
//   costs in the sizes of the data     seconds of a sweep on either, each known to a factor of 2 (*)      clear: taken
//   |                                                                                                     not clear:
//   a few sweeps on the CPU            the CPU's are known to a factor of 1.2                             clear: taken
//   |                                                                                                     not clear:
//   a few sweeps on the GPU            both are measured                                                  the shorter one is taken
//
// (*) More threads than chains may share what is long of a chain's sweep, or wait for one of them: costs do not show that. The CPU is taken
// to be as fast as by the root of these threads, and known to a factor of twice that root.
//
// Why not by costs alone: they are known to a factor of two or so (kernel/cost.c), machines differ, and neither cache nor cores are in
// them. Why not by measuring alone: it would start a GPU, and compile kernels for it, for a run that a CPU ends in a tenth of the time. And
// a sweep cannot be broken off: one lane may take minutes for the factor of a matrix that a CPU makes in a second. Within a factor of 4,
// where it is measured, neither happens.
//
// A GPU has to start: its driver and context, kernels that are neither in the program nor in the cache. That counts, so short runs stay on
// the CPU; where costs say so no driver is loaded.
//
// Where there are two methods (selection.c) a device is rated by the cheaper one. What is measured are Gibbs updates, which a warm-up
// begins with; NUTS is taken to be as much faster or slower than predicted.
//
// What measured sweeps draw is forgotten: the memory of the CPU is as before, and the GPU is opened once more. So draws are those of
// --device cpu, or of
// --device gpu, with the same seed.
#include "fields.h"
#include "device_auto.h"
#include "device_inside.h"
#include "../backends/sparse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Calibrated by tests/bench/device_auto.py (docs/performance.md).
static const double of_cpu = 0.4e-9;   // seconds of a multiply-add on one core, as costs count them
static const double of_gpu = 4e-9;     // of one lane of a GPU (kernel/cost.c)
static const double starting = 0.5;    // driver, context, loading of kernels
static const double sending = 0.5e-9;  // a byte of data
// kernels, by NVRTC; those of HMC take as long again, once for all programs
static const double compiling = 5;
static const double predicted = 2, measured = 1.2;  // factors to which times are known
static const double most_measuring = 0.3;           // seconds of a measurement on a device
enum {
    EVALUATIONS = 15,  // of a trajectory, as cost.c takes it
    PROCESSORS = 132,  // of the GPU that its costs are of
    SHARED = 100000,   // multiply-adds of a sweep that occupy a thread, where a chain has several
    FIRST = 2,         // sweeps that are not measured: they fill caches, and a GPU records the second
    PART = 20,         // of a run is measured at most
    ENOUGH = 2000000,  // multiply-adds of a sweep that draws of scales may take in any case (scales.h)
    ITERATIONS = 200,  // of a start of `map`, if nothing is said
    SETTLED = 8,       // sweeps of a batch that counts alone
    MANY = 400,        // sweeps after which draws of scales are as rare as they stay
};
static const double most_kept = 1e9;  // bytes of State that are put aside for a measurement

// ---- verdicts ----

GmVerdict gm_outlook_verdict(const GmOutlook *x)
{
    const double cpu = x->sweeps * x->cpu, gpu = x->sweeps * x->gpu;
    if (!x->cpu_at_least && cpu * x->cpu_factor <= x->start + gpu / x->gpu_factor) return GM_CPU_ENDS_FIRST;
    if (cpu / x->cpu_factor >= x->start + gpu * x->gpu_factor) return GM_GPU_ENDS_FIRST;
    return GM_NOT_CLEAR;  // also where a cost is no number
}

GmVerdict gm_outlook_likely(const GmOutlook *x)
{
    return x->start + x->sweeps * x->gpu < x->sweeps * x->cpu ? GM_GPU_ENDS_FIRST : GM_CPU_ENDS_FIRST;
}

bool gm_outlook_worth_measuring(const GmOutlook *x) { return x->start + most_measuring <= 0.5 * x->sweeps * x->cpu; }

// To two digits, which is more than is known.
static double rounded(double ratio)
{
    const double unit = pow(10, floor(log10(ratio)) - 1);
    return round(ratio / unit) * unit;
}

void gm_outlook_say(char *to, size_t room, const GmOutlook *x, bool on_gpu)
{
    const double ratio = on_gpu ? x->cpu / x->gpu : x->gpu / x->cpu;
    const char *const other = on_gpu ? "--device cpu takes the CPU" : "--device gpu takes the GPU";
    if (!on_gpu && !(ratio >= 1)) snprintf(to, room, "CPU: the run is over before a GPU would have started and done it; %s", other);
    else if (ratio < 1.25)
        snprintf(to, room, "%s: about as fast as %s for these data; %s", on_gpu ? "GPU" : "CPU", on_gpu ? "the CPU" : "this GPU", other);
    else
        snprintf(to, room, "%s: about %.4g times as fast as %s for these data; %s", on_gpu ? "GPU" : "CPU", rounded(ratio),
                 on_gpu ? "the CPU" : "this GPU", other);
}

// ---- predictions ----

static double cheaper(double by_gibbs, double by_moves, bool steps, bool moves)
{
    return steps && moves ? fmin(by_gibbs, by_moves) : moves ? by_moves : by_gibbs;
}

// Draws of scales with joint normals integrated out are rationed (scales.h): they take as much as the rest of a sweep at most, or ENOUGH.
// Half of that is usual.
static double of_scales(const double *cost) { return 0.5 * fmin(cost[GM_COST_OF_SCALES], fmax(cost[0], ENOUGH)); }

double gm_cost_on_cpu(const double *cost, bool steps, bool moves, int chains, int threads)
{
    const double sweep = of_cpu * cheaper(cost[0] + of_scales(cost), cost[1] + EVALUATIONS * cost[2], steps, moves);
    if (threads <= chains) return sweep * ceil((double)chains / threads);
    return chains * sweep / sqrt(gm_cost_shared(cost, steps, moves, chains, threads));
}

// More threads than chains: chains run one after the other, and all threads may share what is long. A recursion, or a factor, is computed
// by one thread; costs do not show that.
double gm_cost_shared(const double *cost, bool steps, bool moves, int chains, int threads)
{
    const double several = cheaper(cost[0] + of_scales(cost), cost[1] + EVALUATIONS * cost[2], steps, moves) / SHARED;
    return threads <= chains ? 1 : fmin(fmax(several, 1), threads);
}

double gm_cost_on_gpu(const double *cost, bool steps, bool moves, int chains, bool in_turn, int processors)
{
    const double *const c = cost + GM_COST_ON_GPU, together = in_turn ? chains : 1;
    const double each = (double)chains * PROCESSORS / (processors > 0 ? processors : PROCESSORS);
    const double by_gibbs = together * c[0] + each * c[1],
                 by_moves = together * (c[2] + EVALUATIONS * c[4]) + each * (c[3] + EVALUATIONS * c[5]);
    return of_gpu * cheaper(by_gibbs, by_moves, steps, moves);
}

// Which ways of making a sweep the run may take.
typedef struct Ways {
    bool steps, moves;
} Ways;

static Ways ways_of(const GmModel *model, const GmOptions *o)
{
    bool coupled = model->n_selections > 0;
    for (int k = 0; k < model->n_selections; k++) coupled &= model->selections[k].coupled != 0;
    if (!model->n_selections || o->map || o->method == GM_METHOD_GIBBS) return (Ways){true, false};
    if (o->method != GM_METHOD_AUTO) return (Ways){false, true};
    if (o->warmup < GM_LEAST_MEASURED)
        return (Ways){!coupled || o->warmup < GM_LEAST_TRAJECTORIES, coupled && o->warmup >= GM_LEAST_TRAJECTORIES};
    return (Ways){true, true};
}

static double sweeps_of(const GmOptions *o)
{
    return o->map ? (double)(o->iterations ? o->iterations : ITERATIONS) : (double)(o->warmup + o->samples * o->thin);
}

static double seconds_to_start(const GmModel *model, const GmData *data)
{
    double bytes = 0;
    for (int f = 0; f < model->n_data; f++)
        if (model->data[f].rank > 0) bytes += (double)gm_shape_size(&data->shape[f]) * (double)gm_size_of_element(model->data[f].type);
    return starting + sending * bytes;
}

// Before the CPU has set up nothing is known of its sparse joint normals, nor whether a GPU draws them in turn, as is counted then.
static GmOutlook predict(const GmModel *model, const GmOptions *o, const GmData *data, int processors)
{
    double cost[GM_COSTS] = {0};
    const Ways w = ways_of(model, o);
    gm_sparse_guessed();
    model->cost(data->data, cost);
    return (GmOutlook){.sweeps = sweeps_of(o),
                       .cpu = gm_cost_on_cpu(cost, w.steps, w.moves, o->chains, o->threads),
                       .gpu = gm_cost_on_gpu(cost, w.steps, w.moves, o->chains, o->map, processors),
                       .cpu_factor = predicted * sqrt(gm_cost_shared(cost, w.steps, w.moves, o->chains, o->threads)),
                       .gpu_factor = predicted,
                       .start = seconds_to_start(model, data),
                       .cpu_at_least = gm_sparse_guessed()};
}

void gm_device_predictions(FILE *to, const GmModel *model, const GmOptions *o, const GmData *data)
{
    if (!model->cost) return;
    const GmOutlook x = predict(model, o, data, 0);
    const bool gpu = x.gpu < x.cpu;
    fprintf(to, "predicted: %.3g us a sweep on the CPU, %.3g on a GPU (the %s would take about %.4g times as long)\n", 1e6 * x.cpu,
            1e6 * x.gpu, gpu ? "CPU" : "GPU", rounded(gpu ? x.cpu / x.gpu : x.gpu / x.cpu));
}

// ---- measurements ----

// Seconds of a sweep, from sweeps of a run that begins; 0: they failed. `settled` waits for them. The first ones count only if there was no
// time for more.
static double seconds_a_sweep(const GmModel *model, GmRun *trial, long most, bool (*settled)(GmRun *))
{
    double spent = 0, counted = 0;
    long sweeps = 0;
    trial->sweep = 0;
    trial->batch = 1;
    while (trial->sweep < most && spent < most_measuring) {
        const bool first = trial->sweep < FIRST;
        const double before = gm_seconds();
        model->sweep(trial);
        if (!settled(trial)) return 0;
        const double took = gm_seconds() - before;
        if (trial->sweep <= FIRST) counted = (double)(sweeps = 0);
        spent += took;
        if (trial->batch >= SETTLED) counted = (double)(sweeps = 0);  // the last batch has as many sweeps as all before it
        counted += took;
        sweeps += trial->batch;
        trial->sweep += trial->batch;
        if (!first && took < most_measuring / 8) trial->batch *= 2;
        if (trial->batch > most - trial->sweep) trial->batch = most - trial->sweep;
    }
    return counted / (double)sweeps;
}

static bool settled_on_cpu(GmRun *run)
{
    (void)run;
    return !gm_fault_raised();
}

static bool settled_on_gpu(GmRun *run) { return gm_device_settled(run->device, run) && !gm_fault_raised(); }

// What both measurements have in common.
typedef struct Auto {
    const GmModel *model;
    const GmData *data;
    GmMemory *memory;
    const GmOptions *options;
    const GmDraws *draws;
    const GmRun *run;
    Ways ways;
    GmSelected *selected;  // that a measured sweep takes
    long most;             // sweeps
    int processors;        // of the GPU; 0: not known
    bool always;           // both are measured, whatever costs say
} Auto;

static GmVerdict verdict(const Auto *a, const GmOutlook *x) { return a->always ? GM_NOT_CLEAR : gm_outlook_verdict(x); }

static GmRun trial_of(const Auto *a)
{
    GmRun trial = *a->run;
    trial.inner_threads = trial.threads;
    trial.selected = a->selected;
    gm_linalg_threads(trial.threads);
    return trial;
}

// A measured time takes the place of a predicted one. What was not measured is taken to be as much faster or slower than predicted: a sweep
// by the other method, if that is cheaper, and scales.
static void learn(double *time, double *factor, double seconds, double same)
{
    if (!(seconds > 0)) return;
    *factor = *time < 0.8 * same || *time > 1.25 * same ? predicted : measured;
    *time *= same > 0 ? seconds / same : 1;
}

// Sets up, after which all costs are known, and then, if these do not decide, sweeps.
static void measure_cpu(const Auto *a, GmOutlook *x)
{
    GmKept *kept = gm_memory_keep(a->memory, most_kept);
    if (!kept) return;
    double cost[GM_COSTS] = {0};
    GmRun trial = trial_of(a);
    trial.instead = a->options->init_file ? NULL : gm_find_start;
    trial.timed = 1;
    if (a->model->setup) a->model->setup(&trial);
    const GmOutlook now = predict(a->model, a->options, a->data, a->processors);
    x->cpu = now.cpu;
    x->gpu = now.gpu;
    x->cpu_at_least = false;
    a->model->cost(a->data->data, cost);
    double *const of_scale = &cost[GM_COST_OF_SCALES],
                  with = gm_cost_on_cpu(cost, a->ways.steps, !a->ways.steps, a->options->chains, a->options->threads);
    if (!gm_fault_raised() && verdict(a, x) == GM_NOT_CLEAR) {
        const double without = seconds_a_sweep(a->model, &trial, a->most, settled_on_cpu);
        const bool again = *of_scale > 0 && without > 0 && trial.sweep >= MANY && !gm_fault_raised();
        trial.timed = !again;
        *of_scale = 0;
        if (again) learn(&x->cpu, &x->cpu_factor, seconds_a_sweep(a->model, &trial, a->most, settled_on_cpu), with);
        else
            learn(&x->cpu, &x->cpu_factor, without,
                  gm_cost_on_cpu(cost, a->ways.steps, !a->ways.steps, a->options->chains, a->options->threads));
    }
    gm_fault_clear();  // the run will meet it, too
    gm_memory_back(a->memory, kept);
}

// false: the GPU cannot be used, and `why` says why.
static bool measure_gpu(const Auto *a, GmOutlook *x, char *why, size_t room)
{
    double cost[GM_COSTS] = {0};
    GmOptions options = *a->options;
    GmRun trial = trial_of(a);
    GmExit status;
    CUcontext context;
    options.profile = false;
    a->model->cost(a->data->data, cost);
    GmDevice *d = gm_device_open(a->model, a->data, a->memory, &options, a->draws, &trial, &status, why, room);
    if (!d) return false;
    d->why = why;
    d->why_room = room;
    if (a->model->setup) a->model->setup(&trial);
    if (settled_on_gpu(&trial))
        learn(&x->gpu, &x->gpu_factor, seconds_a_sweep(a->model, &trial, a->most, settled_on_gpu),
              gm_cost_on_gpu(cost, a->ways.steps, !a->ways.steps, a->options->chains, false, a->processors));
    const bool good = !d->failed;
    // to the end of the program: what opens it next finds it there
    if (good) gm_cuda.cuDevicePrimaryCtxRetain(&context, d->ordinal);
    gm_device_close(d);
    gm_fault_clear();
    x->start = 0;  // it has started
    return good;
}

// ---- the choice ----

// Whether there seems to be a GPU: nothing is loaded to find out.
static bool seems_there(void)
{
    const char *driver = getenv("GMC_CUDA"), *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && !*visible) return false;
    return (driver && *driver) || access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

static GmDeviceChoice taken(GmVerdict v, const GmOutlook *x, char *line, size_t room)
{
    gm_outlook_say(line, room, x, v == GM_GPU_ENDS_FIRST);
    return v == GM_GPU_ENDS_FIRST ? GM_ON_GPU : GM_ON_CPU;
}

static int processors_of(int ordinal)
{
    CUdevice number;
    int n = 0;
    return gm_cuda.cuDeviceGet(&number, ordinal) == 0 &&
                   gm_cuda.cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, number) == 0
               ? n
               : 0;
}

static GmDeviceChoice decide(Auto *a, char *line, size_t room)
{
    const GmModel *const model = a->model;
    const GmOptions *const o = a->options;
    const bool measures = !o->map;
    GmOutlook x = predict(model, o, a->data, 0);
    GmVerdict v = verdict(a, &x);
    if (!seems_there() && gm_cuda_absent()) return GM_ON_CPU;  // nothing was asked for, and nothing is there: not worth a word
    bool made = v == GM_NOT_CLEAR && measures;
    if (made) measure_cpu(a, &x);
    v = verdict(a, &x);
    if (v == GM_CPU_ENDS_FIRST) return taken(v, &x, line, room);
    if (gm_cuda_absent()) return GM_ON_CPU;
    if (!gm_cuda_driver(NULL)) return GM_ON_GPU;  // which will say what is the matter
    a->processors = processors_of(o->device_number);
    x.gpu = predict(model, o, a->data, a->processors).gpu;
    const bool moves = model->n_selections == 0 || a->ways.moves;
    x.start += compiling * gm_device_to_compile(model, a->data->data, gm_cuda_capability(o->device_number), o->precision, moves);
    v = verdict(a, &x);
    if (v == GM_NOT_CLEAR && measures && !made) {
        measure_cpu(a, &x);
        v = verdict(a, &x);
    }
    char why[1000];
    if (v == GM_NOT_CLEAR && measures && (a->always || gm_outlook_worth_measuring(&x)) && !measure_gpu(a, &x, why, sizeof why)) {
        snprintf(line, room, "on the CPU: %s", why);
        return GM_ON_CPU;
    }
    v = gm_outlook_verdict(&x);
    return taken(v == GM_NOT_CLEAR ? gm_outlook_likely(&x) : v, &x, line, room);
}

GmDeviceChoice gm_device_auto(const GmModel *model, const GmData *data, GmMemory *memory, const GmOptions *o, const GmDraws *draws,
                              const GmRun *run, char *line, size_t room)
{
    const char *const named = getenv("GMC_DEVICE");
    *line = 0;
    if (named && strcmp(named, "cpu") == 0) return GM_ON_CPU;
    if (!model->cost || (named && strcmp(named, "gpu") == 0)) return gm_cuda_absent() ? GM_ON_CPU : GM_ON_GPU;
    Auto a = {.model = model,
              .data = data,
              .memory = memory,
              .options = o,
              .draws = draws,
              .run = run,
              .ways = ways_of(model, o),
              .always = named && strcmp(named, "measure") == 0};
    a.most = (long)(sweeps_of(o) / PART);
    if (a.most < 3 * FIRST) a.most = 3 * FIRST;
    a.selected = gm_alloc((size_t)model->n_selections * (size_t)o->chains + 1, sizeof *a.selected);
    for (int k = 0; k < model->n_selections * o->chains; k++) a.selected[k] = (GmSelected){.gradients = !a.ways.steps, .adapts = o->warmup};
    const GmDeviceChoice taken_one = decide(&a, line, room);
    free(a.selected);
    return taken_one;
}
