// output.h -- progress, files that are written, and files of numbers that are read again.
#ifndef GM_OUTPUT_H
#define GM_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "../backends/files.h"
#include "options.h"

// ---- progress.c: how far the run has come ----

typedef struct GmProgress {
    bool bar;                            // on a terminal
    long refresh, total, warmup, first;  // first: sweeps that an earlier run has made
    double started, drawn;               // seconds
} GmProgress;

double gm_seconds(void);  // a monotonic clock
void gm_progress_open(GmProgress *p, const GmOptions *o, long total);
// the number of sweeps from `sweep` on, at most `batch`, until a line is due
long gm_progress_until(const GmProgress *p, long sweep, long batch);
void gm_progress_show(GmProgress *p, long done);
void gm_progress_close(GmProgress *p);

// ---- output.c: files that are written, with messages ----

// goes_on: under a temporary name that the next run knows (gm_file_create_next). false after a message: it cannot be written
bool gm_output_open(GmFile *f, const char *path, bool goes_on);
// Whether this name is free, or of a file that begins so, as one of an earlier call does (at most 60 bytes); false after a message.
bool gm_output_replaces_own(const char *path, const char *begin);
bool gm_output_done(GmFile *f);  // renames it to its name; false after a message: it cannot be written. Closes `f` in any case
void gm_json_text(FILE *to, const char *text);  // between quotes of JSON
// The status to exit with: what was printed is all there, or that is said, and the status is not 0.
int gm_printed(int status);
// whether all files of a run can be written, NAME_levels.json among them; false after a message
bool gm_outputs_may_be_written(const GmOptions *o, bool levels);
// --overwrite: a checkpoint of this name, and what a run that was killed has left of files that grow, are removed
void gm_outputs_clear(const GmOptions *o);

// ---- saved.c: a file of numbers that is read again ----

// The same calls in the same order write it and read it. Failures are kept to the end.
typedef struct GmSaved GmSaved;
GmSaved *gm_saved_create(const char *path);
GmSaved *gm_saved_open(const char *path);  // NULL: it cannot be opened (errno)
bool gm_saved_reads(const GmSaved *s);
bool gm_saved_good(const GmSaved *s);  // so far; of a file that is read: it is whole
void gm_saved_bytes(GmSaved *s, void *bytes, size_t n);
#define GM_SAVED(s, x) gm_saved_bytes(s, &(x), sizeof(x))
void gm_saved_pages(GmSaved *s, void *bytes, size_t n);  // the same of much memory, most of which may be zeros
// A text, or NULL. Reading: a copy, which the caller frees; writing: NULL.
char *gm_saved_text(GmSaved *s, const char *text);
// Written: it has its name, else a message and false. Read: whether it was whole.
bool gm_saved_close(GmSaved *s);
// A sum of bytes, begun with any number: files of other content have another one but for one chance in 2^64.
uint64_t gm_mix(uint64_t sum, const void *bytes, size_t n);
bool gm_mix_file(const char *path, uint64_t *sum);  // false: it cannot be read

#endif
