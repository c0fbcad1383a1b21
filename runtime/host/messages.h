// messages.h -- lines on the terminal, memory that runs out, signals; with what a program exits.
#ifndef GM_MESSAGES_H
#define GM_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "../device/infinity.h"

#ifndef GM_VERSION
#define GM_VERSION "0.1"
#endif

// ---- exit statuses ----

typedef enum {
    GM_EXIT_OK = 0,
    GM_EXIT_CHECK = 1,          // --check found an update that does not draw from its conditional
    GM_EXIT_USAGE = 2,          // a bad flag, bad data, a file that cannot be read or made
    GM_EXIT_FAULT = 4,          // the sampler had to stop; the draws so far are kept
    GM_EXIT_DEVICE = 5,         // the GPU that was asked for cannot be used; nothing was written
    GM_EXIT_MEMORY = 6,         // memory does not suffice, a GPU's or this machine's
    GM_EXIT_NO_MODE = 8,        // `map`: no start has led to a maximum
    GM_EXIT_LOST = 7,           // the GPU failed while it was at work; the draws so far are kept
    GM_EXIT_TIME = 10,          // --max-time was over, and so on; the draws so far are kept
    GM_EXIT_DIVERGED = 11,      // --stop-on-divergence
    GM_EXIT_FEW = 12,           // all draws are made, and --until-ess is not reached
    GM_EXIT_APART = 13,         // the same of --until-rhat
    GM_EXIT_UNCALIBRATED = 14,  // `calibrate`: ranks are not uniform
    GM_EXIT_INTERRUPTED = 130,  // Ctrl-C; the draws so far are kept
} GmExit;

// ---- messages.c: lines on the terminal, strings, allocation ----

// One line to stderr. gm_error is for what ends the run, gm_note for what does not (silent under --quiet).
void gm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void gm_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern bool gm_quiet;

// calloc and realloc that end the program with one line (status 4) when memory is exhausted. Sizes are count * size bytes;
// an overflow of the product counts as exhausted. Never return NULL, not even for zero bytes.
void gm_exhausted(size_t count, size_t size) __attribute__((noreturn));  // ends the program with the message
void *gm_alloc(size_t count, size_t size);
void *gm_grow(void *block, size_t count, size_t size);
char *gm_copy_text(const char *text);
char *gm_format(const char *format, ...) __attribute__((format(printf, 1, 2)));  // the caller frees

// ---- signals.c: signals that end a program ----

void gm_signals_catch(void);       // SIGINT, SIGTERM, SIGHUP, SIGPIPE or SIGXCPU ends the program, without files
void gm_signals_wait(void);        // from here on the first signal requests an orderly end, and a second one kills the program
void gm_signals_keep_draws(void);  // from now on a second signal leaves the draws so far in their temporary files
bool gm_interrupted(void);

#endif
