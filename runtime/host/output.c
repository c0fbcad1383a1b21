// output.c -- files that are written, with messages: every command of a program writes by these.
#include "host.h"

#include <stdlib.h>

static bool refused(const char *path, const char *why)
{
    if (why) gm_error("%s: cannot be written: %s", path, why);
    return why != NULL;
}

bool gm_output_open(GmFile *f, const char *path) { return !refused(path, gm_file_create(f, path)); }

bool gm_output_done(GmFile *f)
{
    char *path = gm_copy_text(f->path), *part = gm_copy_text(f->part);
    bool good = !refused(path, gm_file_close(f));
    const char *why = good ? gm_file_rename(f) : NULL;
    if (why) {
        gm_error("%s: cannot be written: %s. It is complete, and is called %s", path, why, part);
        good = false;
    }
    gm_file_drop(f);
    free(path);
    free(part);
    return good;
}

static bool may_be_written(char *path)
{
    const bool good = !refused(path, gm_file_refused(path));
    free(path);
    return good;
}

bool gm_outputs_may_be_written(const GmOptions *o, bool levels)
{
    if (!o->output || o->check || o->compare_devices) return true;
    bool good = !levels || may_be_written(gm_format("%s_levels.json", o->output));
    if (!good) return false;
    if (o->map)
        return may_be_written(gm_format("%s.csv", o->output)) && may_be_written(gm_format("%s.json", o->output)) &&
               may_be_written(gm_format("%s_trace.csv", o->output));
    if (o->moments) good = may_be_written(gm_format("%s_moments.csv", o->output));
    if (good && o->format != GM_FORMAT_CSV) good = may_be_written(gm_format("%s.nc", o->output));
    const int tables = o->format == GM_FORMAT_NETCDF ? 0 : o->chains;
    for (int c = 0; c < tables && good; c++) good = may_be_written(gm_format("%s_%d.csv", o->output, o->first_chain + c));
    return good && (!o->n_new_inputs || may_be_written(gm_format("%s_new.csv", o->output)));
}
