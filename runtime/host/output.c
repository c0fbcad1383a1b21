// output.c -- files that are written, with messages: every command of a program writes by these.
#include "messages.h"
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static bool refused(const char *path, const char *why)
{
    if (why) gm_error("%s: cannot be written: %s", path, why);
    return why != NULL;
}

// The folders of a path, as far as they are not there; what cannot be made is said when the file is.
static void make_folders(const char *path)
{
    char *folder = gm_copy_text(path);
    for (char *at = strchr(folder + 1, '/'); *folder && at; at = strchr(at + 1, '/')) {
        *at = 0;
        mkdir(folder, 0777);
        *at = '/';
    }
    free(folder);
}

bool gm_output_open(GmFile *f, const char *path, bool goes_on)
{
    make_folders(path);
    return !refused(path, goes_on ? gm_file_create_next(f, path) : gm_file_create(f, path));
}

bool gm_output_replaces_own(const char *path, const char *begin)
{
    struct stat info;
    if (refused(path, gm_file_refused(path))) return false;
    char text[64] = "";
    const size_t length = strlen(begin);
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return true;
    FILE *file = fopen(path, "r");
    const bool own = file && fread(text, 1, length, file) == length && strncasecmp(text, begin, length) == 0;
    if (file) fclose(file);
    if (!own) gm_error("%s is there already, and is something else than is to be written: give another name", path);
    return own;
}

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

void gm_json_text(FILE *to, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c == '"' || *c == '\\') fprintf(to, "\\%c", *c);
        else if (*c < 32) fprintf(to, "\\u%04x", *c);
        else fputc(*c, to);
}

// First what nothing may replace is looked for, in all names; then what only --overwrite may.
static bool may_be_written(bool asks, char *path)
{
    bool good = asks || !refused(path, gm_file_refused(path));
    if (asks && access(path, F_OK) == 0) {
        gm_error("%s is there already: --overwrite replaces it, another -o NAME keeps it", path);
        good = false;
    } else if (asks) gm_file_was_absent(path);
    free(path);
    return good;
}

static bool all_may_be_written(const GmOptions *o, bool levels, bool asks)
{
    const char *name = o->output;
    if (levels && !may_be_written(asks, gm_format("%s_levels.json", name))) return false;
    if (o->forward == GM_SIMULATE) {
        for (long k = 1; k <= (o->sets ? o->sets : 1); k++)
            if (!may_be_written(asks, gm_format("%s_%ld.json", name, k)) || !may_be_written(asks, gm_format("%s_%ld_truth.json", name, k)))
                return false;
        return true;
    }
    if (o->map)
        return may_be_written(asks, gm_format("%s.csv", name)) && may_be_written(asks, gm_format("%s.json", name)) &&
               may_be_written(asks, gm_format("%s_trace.csv", name));
    if (o->format != GM_FORMAT_CSV && !may_be_written(asks, gm_format("%s.nc", name))) return false;
    if (o->status && !may_be_written(asks, gm_format("%s.status.json", name))) return false;
    if (!asks && (o->checkpoint >= 0 || o->resume || o->append) && !may_be_written(asks, gm_format("%s.checkpoint", name))) return false;
    if (o->moments && !may_be_written(asks, gm_format("%s_moments.csv", name))) return false;
    for (int c = o->first_chain; c < o->first_chain + o->chains; c++)
        if (o->format != GM_FORMAT_NETCDF &&
            (!may_be_written(asks, gm_format("%s_%d.csv", name, c)) ||
             (o->save_warmup && !may_be_written(asks, gm_format("%s_warmup_%d.csv", name, c)))))
            return false;
    if (!may_be_written(asks, gm_format("%s_run.json", name))) return false;
    return !o->n_new_inputs || may_be_written(asks, gm_format("%s_new.csv", name));
}

// A run's files of draws, and those that an older one of the same name has left: whether `visit` says yes to all of them.
static bool all_draws(const GmOptions *o, bool (*visit)(const GmOptions *, const char *))
{
    bool good = true;
    for (int k = 0; k < 2; k++)
        for (int c = o->first_chain, any = 1; good && any; c++) {
            char *path = k ? gm_format("%s_warmup_%d.csv", o->output, c) : gm_format("%s_%d.csv", o->output, c);
            char *part = gm_format("%s.part", path);
            any = c < o->first_chain + o->chains - 1 || access(part, F_OK) == 0;
            good = visit(o, path);
            free(part);
            free(path);
        }
    return good;
}

// No run that goes on writes this file, and no draws of one that was killed lie there, unless --overwrite or --resume are about them.
static bool is_free(const GmOptions *o, const char *path)
{
    char *part = gm_format("%s.part", path);
    const char *why = gm_file_left(path, false);
    bool good = !refused(path, why);
    if (good && !o->overwrite && !o->goes_on && !o->resume && access(part, F_OK) == 0) {
        gm_error("%s is there already, of a run that was killed: --overwrite replaces it, another -o NAME keeps it", part);
        good = false;
    }
    free(part);
    return good;
}

// The process that writes NAME.nc outlives a run that was killed by a moment: one that goes on waits for it.
static bool netcdf_is_free(const GmOptions *o)
{
    enum { TIMES = 50, MICROSECONDS = 100000 };
    if (o->format == GM_FORMAT_CSV) return true;
    char *path = gm_format("%s.nc", o->output);
    for (int k = 0; k < TIMES && o->resume && gm_file_left(path, false); k++) usleep(MICROSECONDS);
    const bool good = is_free(o, path);
    free(path);
    return good;
}

static bool clear(const GmOptions *o, const char *path) { return (void)o, gm_file_left(path, true), true; }

bool gm_outputs_may_be_written(const GmOptions *o, bool levels)
{
    if (o->forward == GM_CALIBRATE)
        return !o->ranks || o->overwrite || may_be_written(true, gm_format("%s_ranks.csv", o->ranks));
    if (!o->output || o->check || o->compare_devices) return true;
    if (!all_may_be_written(o, levels, false) || (!o->map && !(all_draws(o, is_free) && netcdf_is_free(o)))) return false;
    if (o->overwrite || o->goes_on) return true;
    char *checkpoint = gm_format("%s.checkpoint", o->output);
    const bool there = access(checkpoint, F_OK) == 0;
    if (there) gm_error("%s is there already: --resume goes on with its run, --overwrite begins anew", checkpoint);
    free(checkpoint);
    return !there && all_may_be_written(o, levels, true);
}

void gm_outputs_clear(const GmOptions *o)
{
    static const char *const endings[] = {".checkpoint", ".checkpoint.part", ".status.json.part", ".nc.part"};
    if (!o->output || !o->overwrite || o->goes_on) return;
    all_draws(o, clear);
    for (size_t k = 0; k < sizeof endings / sizeof *endings; k++) {
        char *path = gm_format("%s%s", o->output, endings[k]);
        struct stat there;
        const bool link = lstat(path, &there) == 0 && S_ISLNK(there.st_mode);
        if (!link || o->checkpoint < 0) unlink(path);  // a link to where the checkpoint is to be stays
        free(path);
    }
}

int gm_printed(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    gm_error("standard output cannot be written: %s", strerror(errno ? errno : EIO));
    return status == GM_EXIT_OK ? GM_EXIT_FAULT : status;
}
