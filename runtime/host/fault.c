// fault.c -- messages, faults found while sampling, signals, and memory that runs out.
#include "../device/ode.h"
#include "host.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool gm_quiet;

// A line on the terminal. What files hold may be in it: control characters, which terminals obey, are shown as \x1b.
static void say(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    const size_t room = n < 0 ? 0 : (size_t)n + 1;
    char *text = malloc(room), *shown = malloc(4 * room + 1), *to = shown;       // not gm_alloc, which speaks here
    if (text && shown && n >= 0) {
        vsnprintf(text, room, format, again);
        for (const unsigned char *c = (const unsigned char *)text; *c; c++)
            if ((*c < ' ' && *c != '\n' && *c != '\t') || *c == 127 || (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))        // 0xc2: those of Unicode
                to += sprintf(to, "\\x%02x", *c == 0xc2 ? *++c : *c);
            else
                *to++ = (char)*c;
        *to++ = '\n';
        fwrite(shown, 1, (size_t)(to - shown), stderr);
        fflush(stderr);                                  // whoever waits knows what for
    }
    free(shown);
    free(text);
    va_end(again);
}

void gm_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

void gm_note(const char *format, ...)
{
    if (gm_quiet)
        return;
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

// ---- memory ----

void gm_exhausted(size_t count, size_t size)
{
    gm_error("out of memory: %.3g GB more were needed (fewer --chains, --samples or --params need less)",
             (double)count * (double)size / 1e9);
    exit(GM_EXIT_FAULT);
}

void *gm_alloc(size_t count, size_t size)
{
    void *block = calloc(count ? count : 1, size ? size : 1);
    if (!block)
        gm_exhausted(count, size);
    return block;
}

void *gm_grow(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        gm_exhausted(count, size);
    void *grown = realloc(block, bytes ? bytes : 1);
    if (!grown)
        gm_exhausted(count, size);
    return grown;
}

char *gm_copy_text(const char *text)
{
    const size_t n = strlen(text) + 1;
    return memcpy(gm_alloc(n, 1), text, n);
}

char *gm_format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = gm_alloc((size_t)n + 1, 1);
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}

// ---- faults ----

// Emitted code calls gm_fault from inside parallel loops, which cannot be left by a jump; so a fault is only noted, and the
// sweep loop looks from time to time. Of several the first by (sweep, chain, variable, element) is kept, so that the message hardly depends
// on the number of threads.
static struct {
    bool        raised;
    int         chain;              // global number, from 0
    const char *variable;
    long        element, sweep;
    const char *what;
    int         numbers;            // -1: what went wrong with the element; else `what` with numbers in the places of #
    long        number[GM_MOST_NUMBERS];
} fault;

// Chains that have met one: they stand still, so that what is there can be looked at.
static int *ended, n_ended;

int gm_chain_ended(const GmRun *run)
{
    int yes = 0;
    if (!__atomic_load_n(&fault.raised, __ATOMIC_RELAXED))
        return 0;
#pragma omp critical(gm_fault)
    for (int i = 0; i < n_ended; i++)
        yes |= ended[i] == run->first_chain + run->chain;
    return yes;
}

static void note_fault(const GmRun *run, int chain, const char *variable, long element, const char *what, int numbers, const long *value)
{
    if (run->tried) {                    // somebody looks whether it can be: all threads write the same
        __atomic_store_n(run->tried, 1, __ATOMIC_RELAXED);
        return;
    }
    const int number = run->first_chain + chain;
#pragma omp critical(gm_fault)
    {
        int k = 0;
        while (k < n_ended && ended[k] != number) k++;
        if (k == n_ended) {
            ended = gm_grow(ended, (size_t)n_ended + 1, sizeof *ended);
            ended[n_ended++] = number;
        }
        const int name = fault.raised ? strcmp(variable, fault.variable) : 0;
        const bool earlier = run->sweep != fault.sweep ? run->sweep < fault.sweep
                           : number != fault.chain     ? number < fault.chain
                           : name != 0                 ? name < 0
                                                       : element < fault.element;
        if (!fault.raised || earlier) {
            fault.chain = number;
            fault.variable = variable;
            fault.element = element;
            fault.sweep = run->sweep;
            fault.what = what;
            fault.numbers = numbers;
            for (int i = 0; i < numbers; i++)
                fault.number[i] = value[i];
            fault.raised = true;
        }
    }
}

void gm_fault(const GmRun *run, int chain, const char *variable, long element, const char *what)
{
    note_fault(run, chain, variable, element, what, -1, NULL);
}

void gm_fault_at(const GmRun *run, int chain, const char *variable, const char *says, int n, const long *number)
{
    const bool whole = strncmp(says, variable, strlen(variable)) == 0;      // tells more than one that goes on from the name
    note_fault(run, chain, variable, !whole ? LONG_MAX : n ? number[0] : 0, says, n, number);
}

// ---- draws that were not made ----

static const char *stayed_variable;
static long stayed;

void gm_stayed(const char *variable, long times)
{
#pragma omp critical(gm_stayed)
    {
        if (!stayed_variable || strcmp(variable, stayed_variable) < 0) stayed_variable = variable;
        stayed += times;
    }
}

// Of a chain and a block. Whether a joint normal is proper in double precision depends only on what it is conditioned on, so a block that stays is a valid update.
// A scale that comes so near to 0 leaves again. A posterior that is not proper never does: a fault.
typedef struct Stay { int chain; const char *variable; long last, in_a_row, all; } Stay;
enum { MOST_IN_A_ROW = 20, NEAR = 10, MOST_STAYS = 100 };         // sweeps at most NEAR apart are in a row; MOST_STAYS: of a chain in all

static Stay *stays;
static size_t nstays;

int gm_may_stay(const GmRun *run, int chain, const char *variable)
{
    const int number = run->first_chain + chain;
    bool may = false;
#pragma omp critical(gm_stays)
    {
        size_t i = 0;
        while (i < nstays && (stays[i].chain != number || strcmp(stays[i].variable, variable) != 0)) i++;
        if (i == nstays) {
            stays = gm_grow(stays, ++nstays, sizeof *stays);
            stays[i] = (Stay){ number, variable, LONG_MIN / 2, 0, 0 };
        }
        Stay *s = &stays[i];
        s->in_a_row = run->sweep - s->last <= NEAR ? s->in_a_row + 1 : 1;
        s->last = run->sweep;
        const bool first = GM_STAYS(run->sweep, run->warmup);
        s->all += !first;
        may = first || (s->in_a_row <= MOST_IN_A_ROW && s->all <= MOST_STAYS);
    }
    return may;
}

void gm_stayed_note(void)
{
    if (stayed) gm_note("%s stayed where it was in %ld of its draws: its joint normal was not proper there, as far as numbers tell", stayed_variable, stayed);
}

long gm_inside(long i, long n, const char *name)
{
    if (i >= 0 && i < n)
        return i;
    gm_error("%s: its subscript is %ld, in a size or a bound, and goes from 1 to %ld", name, i + 1, n);
    exit(GM_EXIT_USAGE);
}

static _Noreturn void size_is_too_large(void)
{
    gm_error("a size or a bound is beyond 2^63: sizes that data give, or that numbers of the model give, do not fit each other");
    exit(GM_EXIT_USAGE);
}

long gm_times(long i, long n)
{
    long product;
    if (__builtin_mul_overflow(i, n, &product))
        size_is_too_large();
    return product;
}

long gm_whole(double x)
{
    if (!(x >= -0x1p62 && x <= 0x1p62))
        size_is_too_large();
    return (long)x;
}

long gm_remainder(long i, long n)
{
    if (n != 0)
        return i % n;
    gm_error("the remainder of a division by 0 is asked for in a size or a bound");
    exit(GM_EXIT_USAGE);
}

bool gm_fault_raised(void)
{
    return fault.raised;
}

void gm_fault_clear(void)
{
    fault.raised = false;
    free(ended);
    ended = NULL;
    n_ended = 0;
    stayed = 0;
    stayed_variable = NULL;
    free(stays);
    stays = NULL;
    nstays = 0;
}

long gm_fault_sweep(void) { return fault.sweep; }

bool gm_fault_of_data(const GmModel *model)
{
    for (int f = 0; f < model->n_state && fault.raised; f++)
        if (strcmp(model->state[f].name, fault.variable) == 0 && model->state[f].role != GM_IMPUTED && model->state[f].role != GM_SUM)
            return false;
    return fault.raised;
}

int gm_fault_chain(void) { return fault.chain; }

// `theta[3]`, `W[2, 1]`, or `mu` where it is a scalar.
static char *fault_element(const GmModel *model, const GmMemory *m)
{
    for (int f = 0; f < model->n_state && fault.element >= 0; f++) {
        if (strcmp(model->state[f].name, fault.variable) != 0)
            continue;
        if (model->state[f].rank == 0)
            return gm_copy_text(fault.variable);
        if (m)
            return gm_element_name(fault.variable, m->shape[f].rank, m->shape[f].dim, fault.element);
    }
    return fault.element >= 0 ? gm_format("%s[%ld]", fault.variable, fault.element + 1) : gm_copy_text(fault.variable);
}

// ` = 4`, where the fault is about an element of the data; "" else.
static char *fault_value(const GmModel *model, const GmData *d)
{
    for (int f = 0; d && f < model->n_data && fault.element >= 0; f++) {
        const GmField *field = &model->data[f];
        if (strcmp(field->name, fault.variable) != 0 || fault.element >= gm_shape_size(&d->shape[f]))
            continue;
        const char *place = (const char *)d->data + field->offset;
        const void *elements = field->rank ? *(void *const *)place : place;
        if (field->type == GM_INT)
            return gm_format(" = %d", ((const int *)elements)[fault.element]);
        return gm_format(" = %.6g", ((const double *)elements)[fault.element]);
    }
    return gm_copy_text("");
}

void gm_fault_print(const GmModel *model, const GmMemory *m, const GmData *d)
{
    const bool loading = d != NULL;
    if (!fault.raised)
        return;
    if (fault.numbers >= 0) {
        const bool named = strncmp(fault.what, fault.variable, strlen(fault.variable)) == 0;     // else the message goes on from the name
        fprintf(stderr, named ? "fault: " : "fault: %s: ", fault.variable);
        int k = 0;
        for (const char *c = fault.what; *c; c++)
            if (*c == '#' && k < fault.numbers)
                fprintf(stderr, "%ld", fault.number[k++]);
            else
                fputc(*c, stderr);
    } else {
        char *element = fault_element(model, m);
        char *value = fault_value(model, d);
        fprintf(stderr, "fault: %s%s: %s", element, value, fault.what);
        free(value);
        free(element);
    }
    if (strstr(fault.what, "not finite where the chain stands") && gm_ode_failure())         // the likely reason
        fprintf(stderr, "; %s", gm_ode_failure());
    if (loading)
        gm_error(" (before the first sweep)");
    else
        gm_error(" (chain %d, sweep %ld)", fault.chain + 1, fault.sweep + 1);
}

// ---- signals ----

static volatile sig_atomic_t stop_asked, nothing_drawn, draws_stored;

// Before the first sweep there is nothing to end in order, and loops over data look for no signal. Later the first signal asks for an orderly end; a second SIGINT, SIGTERM or SIGXCPU ends at once: then draws
// that there are stay in their temporary files, and nothing else does.
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
    if (!draws_stored)
        gm_files_remove();
    else if (write(STDERR_FILENO, left, sizeof left - 1) < 0) {}
    signal(number, SIG_DFL);
    raise(number);
}

void gm_signals_wait(void) { nothing_drawn = 0; }

void gm_signals_catch(void)
{
    nothing_drawn = 1;
    static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU };
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
        struct sigaction now, action = { .sa_handler = ask_to_stop, .sa_flags = SA_RESTART };
        const bool asked_for = ends[k] == SIGINT || ends[k] == SIGTERM;          // others may be ignored, as by nohup, and stay so
        sigemptyset(&action.sa_mask);
        if (asked_for || (sigaction(ends[k], NULL, &now) == 0 && now.sa_handler != SIG_IGN))
            sigaction(ends[k], &action, NULL);
    }
    stop_asked = draws_stored = 0;
}

void gm_signals_keep_draws(void)
{
    if (!draws_stored)
        draws_stored = 1;
}

bool gm_interrupted(void)
{
    return stop_asked != 0;
}
