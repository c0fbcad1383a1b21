// main.c -- the entry of every fit program. Alone in its file, so that a test may bring its own.
#define _DEFAULT_SOURCE  // on_exit
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runs.h"

// The end of the process, after all that was registered later. Destructors of libraries are left out: that of OpenBLAS waits for threads of
// its own, which look for memory for ever where the system grants none (ulimit -v).
static void leave(int status, void *nothing)
{
    (void)nothing;
    fflush(NULL);
    _exit(status);
}

enum { NAME_ROOM = 256 };

int main(int argc, char **argv)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these report at the end
    on_exit(leave, NULL);
#endif
    // a model without the line `model NAME` is called by its file
    GmModel named = gm_model;
    char name[NAME_ROOM];
    const char *slash = strrchr(named.source, '/'), *base = slash ? slash + 1 : named.source, *dot = strrchr(base, '.');
    snprintf(name, sizeof name, "%.*s", dot && dot > base ? (int)(dot - base) : (int)strlen(base), base);
    if (strcmp(named.name, "model") == 0) named.name = name;
    return gm_fit(&named, argc, argv);
}
