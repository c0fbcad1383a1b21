// progress_file.c -- NAME.status.json (live.c) read again, while its run goes on and after that.
#include "../messages.h"
#include "watch.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { LONG_SILENCE = 60 };  // seconds

double gm_watched_number(const json_t *of, const char *key)
{
    const json_t *x = json_object_get(of, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

const char *gm_watched_text(const json_t *of, const char *key)
{
    const char *text = json_string_value(json_object_get(of, key));
    return text ? text : "?";
}

bool gm_watched_over(const GmSeenRun *w) { return json_is_integer(json_object_get(w->now, "exit_status")); }

// A run that is suspended writes nothing either: its process is there.
bool gm_watched_gone(const GmSeenRun *w)
{
    const double pid = gm_watched_number(w->now, "pid");
    return !gm_watched_over(w) && w->silent > LONG_SILENCE && (!(pid > 1) || (kill((pid_t)pid, 0) != 0 && errno == ESRCH));
}

int gm_watched_status(const GmSeenRun *w)
{
    return gm_watched_over(w) ? (int)json_integer_value(json_object_get(w->now, "exit_status")) : GM_EXIT_FAULT;
}

// What a run writes has these.
static bool is_status(const json_t *o)
{
    static const char *const numbers[] = {"sweep", "sweeps", "draws", "chains", "divergences"};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        if (!json_is_integer(json_object_get(o, numbers[k]))) return false;
    return json_is_string(json_object_get(o, "phase")) && json_object_get(o, "exit_status");
}

bool gm_watched_read(GmSeenRun *w)
{
    struct stat file;
    json_error_t wrong;
    char *path = gm_format("%s.status.json", w->name);
    const bool there = stat(path, &file) == 0 && S_ISREG(file.st_mode);
    json_t *now = there ? json_load_file(path, 0, &wrong) : NULL;
    if (!there) gm_error("watch: %s is not there: a run writes it with --status -o %s, once it has read its data", path, w->name);
    else if (!now || !is_status(now)) gm_error("watch: %s is no status of a run: --status -o %s writes one", path, w->name);
    free(path);
    if (!now || !is_status(now)) {
        json_decref(now);
        return false;
    }
    json_decref(w->now);
    w->now = now;
    w->silent = difftime(time(NULL), file.st_mtime);
    return true;
}

static char *time_left(double seconds)
{
    if (!isfinite(seconds)) return gm_format("?");
    if (seconds < 100) return gm_format("%.0f s", seconds);
    if (seconds < 6000) return gm_format("%.0f min", seconds / 60);
    return gm_format("%.1f h", seconds / 3600);
}

char *gm_watched_line(const GmSeenRun *w)
{
    const json_t *o = w->now;
    const double rhat = gm_watched_number(o, "max_rhat"), ess = gm_watched_number(o, "min_ess");
    char *left = time_left(gm_watched_number(o, "seconds_left"));
    char *when = gm_watched_over(w)   ? gm_format("status %d", gm_watched_status(w))
                 : gm_watched_gone(w) ? gm_format("its process is not there")
                 : w->silent > 5      ? gm_format("nothing new for %.0f s", w->silent)
                                      : gm_format("%s left", left);
    char *mixing = isfinite(rhat) && isfinite(ess) ? gm_format("largest R-hat %.3f (%s), smallest ESS %.0f (%s)", rhat,
                                                               gm_watched_text(o, "max_rhat_of"), ess, gm_watched_text(o, "min_ess_of"))
                                                   : gm_format("R-hat and ESS not known");
    const double divergences = gm_watched_number(o, "divergences");
    char *line =
        gm_format("%s: %s, sweep %.0f of %.0f, %s; %s; %.0f divergent transition%s", w->name, gm_watched_text(o, "phase"),
                  gm_watched_number(o, "sweep"), gm_watched_number(o, "sweeps"), when, mixing, divergences, divergences == 1 ? "" : "s");
    free(left);
    free(when);
    free(mixing);
    return line;
}
