// watch.h -- `watch`: runs that go on, on the terminal or as a page of this machine.
//
//   NAME.status.json (live.c) -> GmSeenRun -> a line, or a page
#ifndef GM_WATCH_H
#define GM_WATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

// ---- progress_file.c ----

typedef struct GmSeenRun {
    const char *name;  // the NAME of `-o NAME`
    json_t *now;       // what the file says
    double silent;     // seconds since it was written
} GmSeenRun;

bool gm_watched_read(GmSeenRun *w);         // false after a message: there is no such file, or another one
bool gm_watched_over(const GmSeenRun *w);   // the run has ended
bool gm_watched_gone(const GmSeenRun *w);   // it has not, but nothing is written for a minute, and its process is not there
int gm_watched_status(const GmSeenRun *w);  // that of a run that is over; of one that is gone that of a fault
char *gm_watched_line(const GmSeenRun *w);  // the caller frees
double gm_watched_number(const json_t *of, const char *key);     // NAN: none
const char *gm_watched_text(const json_t *of, const char *key);  // "?": none

// ---- watch_page.c ----

void gm_watch_page(FILE *to, const GmSeenRun *of, int n);

// ---- serve.c: one page for browsers on this machine ----

// Listens at 127.0.0.1; 0: any port that is free. -1 after a message.
int gm_serve_open(long port);
int gm_serve_port(int listening);
// Answers for so long; begin: once asked for, the page is written by `put`, and asked for again each second unless `last`. The number of
// times that the page was sent.
int gm_serve(int listening, double seconds, bool last, void (*put)(FILE *to, const void *what), const void *what);

// ---- watch.c ----

struct GmModel;
int gm_watch(const struct GmModel *model, int argc, char **argv);  // `watch`: the status to exit with

#endif
