// watch.c -- `watch NAME`: how far runs are, until all are over; with --port as a page for a browser of this machine.
//
// A run writes how far it is to a file (live.c), and this reads it. So it can begin and end at any time, for runs begun elsewhere, and
// whatever happens to it the run goes on.
#include "../inputs.h"
#include "../messages.h"
#include "after.h"
#include "watch.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TENTHS = 10, LAST_WAIT = 60 };  // seconds in which browsers fetch the last page

typedef struct Watching {
    long port;  // -1: none
    int n;
    GmSeenRun *of;
    char **said;  // of each: the phase and the tenth of the sweeps of the last line
    bool terminal, shown;
} Watching;

static bool take(int option, const char *text, void *to)
{
    (void)option;  // there is one
    double port;
    const char *why;
    if (gm_parse_number(text, &port, &why) && port == floor(port) && port >= 0 && port <= 65535) {
        *(long *)to = (long)port;
        return true;
    }
    gm_error("watch: --port %s: a port is a number from 0 to 65535 (0: any that is free)", text);
    return false;
}

static void page(FILE *to, const void *what)
{
    const Watching *w = what;
    gm_watch_page(to, w->of, w->n);
}

// On a terminal the lines of the last second are replaced, and end where a row of it does.
static void show_on_terminal(Watching *w)
{
    struct winsize size = {0};
    const int columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
    if (w->shown) printf("\033[%dA", w->n);
    for (int k = 0; k < w->n; k++) {
        char *line = gm_watched_line(&w->of[k]);
        printf("\r\033[K%.*s\n", gm_watched_over(&w->of[k]) ? (int)strlen(line) : columns, line);
        free(line);
    }
    w->shown = true;
}

// Elsewhere a line is printed when the phase, or the tenth of the sweeps, is another one.
static void show(Watching *w)
{
    for (int k = 0; k < w->n; k++) {
        const GmSeenRun *one = &w->of[k];
        const double part = gm_watched_number(one->now, "sweep") / fmax(1, gm_watched_number(one->now, "sweeps"));
        char *now = gm_format("%s %.0f %d", gm_watched_text(one->now, "phase"), floor(TENTHS * part), gm_watched_gone(one));
        char *line = !w->said[k] || strcmp(now, w->said[k]) != 0 ? gm_watched_line(one) : NULL;
        if (line) puts(line);
        free(line);
        free(w->said[k]);
        w->said[k] = now;
    }
}

// Reads all; -1: some go on, else the status to exit with.
static int look(Watching *w)
{
    int status = GM_EXIT_OK;
    bool all = true;
    for (int k = 0; k < w->n; k++) {
        GmSeenRun *one = &w->of[k];
        if (!gm_watched_read(one)) return GM_EXIT_USAGE;
        if (!gm_watched_over(one) && !gm_watched_gone(one)) all = false;
        else if (status == GM_EXIT_OK) status = gm_watched_status(one);
    }
    if (w->terminal) show_on_terminal(w);
    else show(w);
    fflush(stdout);
    return all ? status : -1;
}

static int watch(Watching *w)
{
    int listening = -1, sent = 0, status = look(w);
    if (status < 0 && w->port >= 0) {
        listening = gm_serve_open(w->port);
        if (listening < 0) return GM_EXIT_USAGE;
        printf("http://127.0.0.1:%d/ shows it until it is over\n", gm_serve_port(listening));
        fflush(stdout);
        w->shown = false;
    }
    while (status < 0) {
        if (listening < 0) sleep(1);
        else sent += gm_serve(listening, 1, false, page, w);
        status = look(w);
    }
    if (sent > 0) gm_serve(listening, LAST_WAIT, true, page, w);
    if (listening >= 0) close(listening);
    return status;
}

int gm_watch(const GmModel *model, int argc, char **argv)
{
    (void)model;  // the file says all
    Watching w = {.port = -1, .terminal = isatty(STDOUT_FILENO)};
    int status = gm_after_options(argc, argv, GROUP_WATCH, "watch [options] NAME ...", take, &w.port);
    if (status >= 0) return status;
    w.n = argc - optind;
    w.of = gm_alloc((size_t)w.n, sizeof *w.of);
    w.said = gm_alloc((size_t)w.n, sizeof *w.said);
    for (int k = 0; k < w.n; k++) w.of[k].name = argv[optind + k];
    status = watch(&w);
    for (int k = 0; k < w.n; k++) {
        json_decref(w.of[k].now);
        free(w.said[k]);
    }
    free(w.of);
    free(w.said);
    return status;
}
