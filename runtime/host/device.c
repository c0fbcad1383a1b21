// device.c -- the launches of an emitted program on a GPU.
#include "device_inside.h"
#include "../device/team_plan.h"

#include <math.h>

// A kernel of the emitted program: they all take (Data, State *, GmPlace *).
static void launch(GmRun *run, const char *kernel, GmGrid grid)
{
    GmDevice *d = run->device;
    void *parameters[] = {d->data, &d->states, &d->place};
    gm_device_launch(d, d->stream, kernel, grid, parameters);
}

static long clamped(long n, long lo, long hi) { return n < lo ? lo : n > hi ? hi : n; }

void gm_device_each(GmRun *run, const char *kernel, long n)
{
    const GmDevice *d = run->device;
    if (n > 0) launch(run, kernel, (GmGrid){.x = clamped((n + GM_THREADS - 1) / GM_THREADS, 1, 64L * d->processors), .y = d->chains});
}

void gm_device_colours(GmRun *run, const char *kernel, long n, long colours)
{
    GmDevice *d = run->device;
    for (long c = 0; c < colours; c++) {
        void *parameters[] = {&d->place, &c};
        gm_device_launch(d, d->stream, "gm_set_colour", (GmGrid){.x = 1, .threads = 1}, parameters);
        gm_device_each(run, kernel, (n - c + colours - 1) / colours);
    }
}

void gm_device_shared(GmRun *run, const char *kernel, long work, int chains)
{
    GmDevice *d = run->device;
    GmKernelEntry *e = gm_device_kernel(d, kernel);
    if (!e || chains <= 0) return;
    if (!e->resident && gm_cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&e->resident, e->function, GM_THREADS, 0) != 0) e->resident = 1;
    const long together = (long)e->resident * d->processors / chains;
    const long blocks = clamped((work + GM_TEAM_CHUNK(work) - 1) / GM_TEAM_CHUNK(work), 1, clamped(together, 1, 4096));
    launch(run, kernel, (GmGrid){.x = blocks, .y = chains, .cooperative = blocks > 1});
}

void gm_device_team(GmRun *run, const char *kernel, long work) { gm_device_shared(run, kernel, work, run->device->chains); }

void gm_device_team_colours(GmRun *run, const char *kernel, long work, long colours)
{
    GmDevice *d = run->device;
    for (long c = 0; c < colours; c++) {
        void *parameters[] = {&d->place, &c};
        gm_device_launch(d, d->stream, "gm_set_colour", (GmGrid){.x = 1, .threads = 1}, parameters);
        gm_device_team(run, kernel, work);
    }
}

void gm_device_once(GmRun *run, const char *kernel) { launch(run, kernel, (GmGrid){.x = 1, .y = run->device->chains, .threads = 1}); }

const void *gm_device_on_host(const GmRun *run, const void *x)
{
    const GmDevice *d = run->device;
    for (int f = 0; f < d->model->n_data; f++) {
        const size_t offset = d->model->data[f].offset;
        if (d->model->data[f].rank > 0 && *(void *const *)(d->data + offset) == x) return *(void *const *)(d->host_data + offset);
    }
    return x;
}

double gm_device_result(GmRun *run, int chain)
{
    GmDevice *d = run->device;
    if (d->no_result || d->failed || d->rehearsing) return 0;
    GmPlace place;
    double result = NAN;
    gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "waiting");
    gm_device_good(d, gm_device_get(d, &place, d->place, sizeof place), "fetching the run's place");
    if (!d->failed)
        gm_device_good(d, gm_device_get(d, &result, (CUdeviceptr)(uintptr_t)(place.result + chain), sizeof result),
                       "fetching the log joint density");
    return result;
}
