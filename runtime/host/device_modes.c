// device_modes.c -- starts of `map` that share the State of one chain on a GPU (em.c): their random numbers are those of the start, not of
// the place.
#include "device_inside.h"

void gm_device_turn(GmDevice *d, int start, long sweep)
{
    GmPlace place;
    if (d->failed || !gm_device_good(d, gm_device_get(d, &place, d->place, sizeof place), "fetching the run's place")) return;
    place.first_chain = start;
    place.sweep = (uint64_t)sweep;
    place.warmup = INT64_MAX;  // widths of brackets adapt to the end
    place.fault = 0;
    gm_device_good(d, gm_device_put(d, d->place, &place, sizeof place), "sending the run's place");
}

bool gm_device_stumbled(GmDevice *d)
{
    GmPlace place = {0};
    if (!d->failed) gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "an iteration");
    if (!d->failed) gm_device_good(d, gm_device_get(d, &place, d->place, sizeof place), "fetching the run's place");
    if (d->profile) gm_device_time_collect(d);
    return d->failed || place.fault;
}

bool gm_device_lost(const GmDevice *d) { return d->failed; }
