// main.c -- the entry of every fit program. Alone in its file, so that a test may bring its own.
#define _DEFAULT_SOURCE  // on_exit
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "host.h"

// The end of the process, after all that was registered later. Destructors of libraries are left out: that of OpenBLAS waits for threads of
// its own, which look for memory for ever where the system grants none (ulimit -v).
static void leave(int status, void *nothing)
{
    (void)nothing;
    fflush(NULL);
    _exit(status);
}

int main(int argc, char **argv)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these report at the end
    on_exit(leave, NULL);
#endif
    return gm_fit(&gm_model, argc, argv);
}
