// fault.c -- faults found while sampling, and draws that were not made.
#include "../device/ode.h"
#include "chains.h"
#include "fields.h"
#include "messages.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- faults ----

// Emitted code calls gm_fault from inside parallel loops, which cannot be left by a jump; so a fault is only noted, and the
// sweep loop looks from time to time. Of several the first by (sweep, chain, variable, element) is kept, so that the message hardly depends
// on the number of threads.
static struct {
    bool raised;
    int chain;  // global number, from 0
    const char *variable;
    long element, sweep;
    const char *what;
    int numbers;  // -1: what went wrong with the element; else `what` with numbers in the places of #
    long number[GM_MOST_NUMBERS];
} fault;

// Chains with a fault: they make no more updates, so that their states can be looked at.
static int *ended, n_ended;

int gm_chain_ended(const GmRun *run)
{
    int yes = 0;
    if (!__atomic_load_n(&fault.raised, __ATOMIC_RELAXED)) return 0;
#pragma omp critical(gm_fault)
    for (int i = 0; i < n_ended; i++) yes |= ended[i] == run->first_chain + run->chain;
    return yes;
}

static void note_fault(const GmRun *run, int chain, const char *variable, long element, const char *what, int numbers, const long *value)
{
    if (run->tried) {  // somebody looks whether it can be: all threads write the same
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
                             : number != fault.chain   ? number < fault.chain
                             : name != 0               ? name < 0
                                                       : element < fault.element;
        if (!fault.raised || earlier) {
            fault.chain = number;
            fault.variable = variable;
            fault.element = element;
            fault.sweep = run->sweep;
            fault.what = what;
            fault.numbers = numbers;
            for (int i = 0; i < numbers; i++) fault.number[i] = value[i];
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
    const bool whole = strncmp(says, variable, strlen(variable)) == 0;  // a message that begins with the name is complete
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

// Of a chain and a block. Whether a joint normal is proper in double precision depends only on what it is conditioned on, so a block that
// stays is a valid update. A scale that comes so near to 0 leaves again. A posterior that is not proper never does: a fault.
typedef struct Stay {
    int chain;
    char *variable;
    long last, in_a_row, all;
} Stay;

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
            stays[i] = (Stay){number, gm_copy_text(variable), LONG_MIN / 2, 0, 0};
        }
        Stay *s = &stays[i];
        s->in_a_row = run->sweep - s->last <= GM_STAYS_NEAR ? s->in_a_row + 1 : 1;
        s->last = run->sweep;
        const bool first = GM_STAYS(run->sweep, run->warmup);
        s->all += !first;
        may = first || (s->in_a_row <= GM_STAYS_IN_A_ROW && s->all <= GM_MOST_STAYS);
    }
    return may;
}

void gm_stayed_note(void)
{
    if (stayed)
        gm_note("%s kept its value in %ld of its draws: to within rounding its joint normal was not proper there", stayed_variable, stayed);
}

void gm_stays_save(GmSaved *s)
{
    size_t n = nstays;
    GM_SAVED(s, n);
    if (gm_saved_reads(s)) stays = gm_grow(stays, n, sizeof *stays);
    for (size_t i = 0; i < n; i++) {
        Stay *x = &stays[i];
        if (gm_saved_reads(s)) *x = (Stay){0};
        char *name = gm_saved_text(s, x->variable);
        if (name) x->variable = name;
        GM_SAVED(s, x->chain);
        GM_SAVED(s, x->last);
        GM_SAVED(s, x->in_a_row);
        GM_SAVED(s, x->all);
    }
    nstays = n;
}

bool gm_fault_raised(void) { return fault.raised; }

void gm_fault_clear(void)
{
    fault.raised = false;
    free(ended);
    ended = NULL;
    n_ended = 0;
    stayed = 0;
    stayed_variable = NULL;
    for (size_t i = 0; i < nstays; i++) free(stays[i].variable);
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
        if (strcmp(model->state[f].name, fault.variable) != 0) continue;
        if (model->state[f].rank == 0) return gm_copy_text(fault.variable);
        if (m) return gm_element_name(fault.variable, m->shape[f].rank, m->shape[f].dim, fault.element);
    }
    return fault.element >= 0 ? gm_format("%s[%ld]", fault.variable, fault.element + 1) : gm_copy_text(fault.variable);
}

// ` = 4`, or `, which is missing`, where the fault is about an element of the data; "" else.
static char *fault_value(const GmModel *model, const GmData *d)
{
    for (int f = 0; d && f < model->n_data && fault.element >= 0; f++) {
        const GmField *field = &model->data[f];
        if (strcmp(field->name, fault.variable) != 0 || fault.element >= gm_shape_size(&d->shape[f])) continue;
        const char *place = (const char *)d->data + field->offset;
        const void *elements = field->rank ? *(void *const *)place : place;
        if (field->type == GM_INT) {
            const int count = ((const int *)elements)[fault.element];
            return count == GM_MISSING_INT ? gm_copy_text(", which is missing") : gm_format(" = %d", count);
        }
        const double x = ((const double *)elements)[fault.element];
        return isnan(x) ? gm_copy_text(", which is missing") : gm_format(" = %.6g", x);
    }
    return gm_copy_text("");
}

// Of a message about an argument, `sd[#, #], the `sigma` of normal, must be above 0`: where the value belongs; NULL: it is about something
// else. n: subscripts before it.
static const char *end_of_argument(int *n)
{
    const char *at = fault.what + strlen(fault.variable);
    *n = 0;
    if (*at == '[')
        for (at++; *at == '#' || *at == ',' || *at == ' ' || *at == ']'; at++) {
            *n += *at == '#';
            if (*at != ']') continue;
            at++;
            break;
        }
    return *at == ',' || *at == ':' ? at : NULL;
}

// The value of an element of data, or of a definition of data; NaN: it is none of these.
static double value_at(const GmModel *model, const GmMemory *m, const GmData *d, int n)
{
    for (int f = 0; f < model->n_data + model->n_state; f++) {
        const bool given = f < model->n_data;
        const GmField *field = given ? &model->data[f] : &model->state[f - model->n_data];
        const GmShape *s = given ? &d->shape[f] : &m->shape[f - model->n_data];
        if (strcmp(field->name, fault.variable) != 0 || field->rank != n || n > fault.numbers) continue;
        if (!given && field->role != GM_SUM) continue;
        long at = 0;
        for (int k = 0; k < n; k++) {
            if (fault.number[k] < 1 || fault.number[k] > s->dim[k]) return NAN;
            at = at * s->dim[k] + fault.number[k] - 1;
        }
        const char *place = given ? (const char *)d->data + field->offset : NULL;
        const void *x = !given ? gm_state_array(model, m, 0, f - model->n_data) : field->rank ? *(void *const *)place : place;
        if (field->type != GM_INT) return ((const double *)x)[at];
        return ((const int32_t *)x)[at] == GM_MISSING_INT ? NAN : ((const int32_t *)x)[at];
    }
    return NAN;
}

// A message with its numbers, and the value that it is about; returns the value, or NaN.
static double print_numbers(const GmModel *model, const GmMemory *m, const GmData *d)
{
    // else the message goes on from the name
    const bool named = strncmp(fault.what, fault.variable, strlen(fault.variable)) == 0;
    int subscripts = 0, k = 0;
    const char *end = named && d && m ? end_of_argument(&subscripts) : NULL;
    const double value = end ? value_at(model, m, d, subscripts) : NAN;
    fprintf(stderr, named ? "fault: " : "fault: %s: ", fault.variable);
    for (const char *c = fault.what; *c; c++) {
        if (c == end && !isnan(value)) fprintf(stderr, " = %.6g", value);
        if (*c == '#' && k < fault.numbers) fprintf(stderr, "%ld", fault.number[k++]);
        else fputc(*c, stderr);
    }
    return value;
}

// Whether the value is what a standard deviation is proportional to, or the variance: where it is 0, so is that.
static bool is_scale_itself(void)
{
    const char *scale = strstr(fault.what, ", the `sigma` of ");
    bool sum = false;
    for (const char *c = fault.what; scale && c < scale; c++) sum |= *c == '+' || *c == '-' || *c == '/';
    return scale && !sum && strstr(scale, " must be above 0 ");
}

void gm_fault_print(const GmModel *model, const GmMemory *m, const GmData *d)
{
    const bool loading = d != NULL;
    double value = NAN;
    if (!fault.raised) return;
    if (fault.numbers >= 0) {
        value = print_numbers(model, m, d);
    } else {
        char *element = fault_element(model, m);
        char *value = fault_value(model, d);
        fprintf(stderr, "fault: %s%s: %s", element, value, fault.what);
        free(value);
        free(element);
    }
    if (strstr(fault.what, "not finite at the chain's state") && gm_ode_failure())  // the likely reason
        fprintf(stderr, "; %s", gm_ode_failure());
    const bool scale = value == 0 && is_scale_itself();
    if (loading)
        gm_error(" (before the first sweep)%s",
                 scale ? ". One replicate, or replicates that are all equal, have a standard deviation of 0: take that of several groups "
                         "together, or make it an unknown with a prior"
                       : "");
    else gm_error(" (chain %d, sweep %ld)", fault.chain + 1, fault.sweep + 1);
}
