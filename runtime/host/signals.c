// signals.c -- what ends a program from outside: at once before there are draws, in order after that.
#include "../backends/files.h"
#include "messages.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t stop_asked, nothing_drawn, draws_stored;

// Before the first sweep there is nothing to end in order, and loops over data look for no signal. Later the first signal asks for an
// orderly end; a second SIGINT, SIGTERM or SIGXCPU ends at once: then draws that there are stay in their temporary files, and nothing else
// does.
static void ask_to_stop(int number)
{
    static const char left[] = "ended at once: the draws so far are left in the files whose names end in .part\n";
    static volatile sig_atomic_t asked[NSIG];
    if (nothing_drawn) {
        gm_files_remove();
        _exit(GM_EXIT_INTERRUPTED);
    }
    if (!asked[number]++ || number == SIGHUP || number == SIGPIPE) {
        stop_asked = 1;
        return;
    }
    if (!draws_stored) gm_files_remove();
    else if (write(STDERR_FILENO, left, sizeof left - 1) < 0) {
    }
    signal(number, SIG_DFL);
    raise(number);
}

void gm_signals_wait(void) { nothing_drawn = 0; }

void gm_signals_catch(void)
{
    nothing_drawn = 1;
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU};
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
        struct sigaction now, action = {.sa_handler = ask_to_stop, .sa_flags = SA_RESTART};
        const bool asked_for = ends[k] == SIGINT || ends[k] == SIGTERM;  // others may be ignored, as by nohup, and stay so
        sigemptyset(&action.sa_mask);
        if (asked_for || (sigaction(ends[k], NULL, &now) == 0 && now.sa_handler != SIG_IGN)) sigaction(ends[k], &action, NULL);
    }
    stop_asked = draws_stored = 0;
}

void gm_signals_keep_draws(void)
{
    if (!draws_stored) draws_stored = 1;
}

bool gm_interrupted(void) { return stop_asked != 0; }
