// adaptation.c -- what NUTS has learned in warm-up, for the files of draws.
#include "fields.h"
#include "device_inside.h"
#include "warmup.h"
#include "../device/nuts.h"

#include <stdlib.h>
#include <string.h>

// What a block keeps comes before its diagnostics: the nearest field before these that is called so, alone or with the block's name after
// it.
static int field_before(const GmModel *model, int diagnostics, const char *what)
{
    const size_t n = strlen(what);
    for (int f = diagnostics; f-- > 0;) {
        const char *name = model->state[f].name;
        if (model->state[f].role == GM_SUM && strncmp(name, what, n) == 0 && (name[n] == 0 || name[n] == '_')) return f;
    }
    return model->n_state;
}

// Whether a chain draws by this: elsewhere other updates of the same unknowns were better.
static bool is_taken(const GmModel *model, const GmRun *run, int moves, int chain)
{
    for (int k = 0; k < model->n_selections && run->selected; k++)
        if (model->selections[k].diagnostics == moves + 1) return run->selected[(long)chain * model->n_selections + k].gradients;
    return true;
}

// The head of a chain's machine and the diagonal of its inverse metric, wherever they are.
static bool fetch(const GmRun *run, const wide *machine, long n, Nuts *head, double *metric)
{
    const size_t at = (size_t)(NUTS_HEADER + NUTS_METRIC * n) * sizeof(wide), bytes = (size_t)n * sizeof *metric;
    if (run->device) {
        const CUdeviceptr there = (CUdeviceptr)(uintptr_t)machine;
        return gm_device_good(run->device, gm_device_get(run->device, head, there, sizeof *head), "fetching what chains have learned") &&
               (!head->known ||
                gm_device_good(run->device, gm_device_get(run->device, metric, there + at, bytes), "fetching what chains have learned"));
    }
    memcpy(head, machine, sizeof *head);
    if (head->known) memcpy(metric, (const char *)machine + at, bytes);
    return true;
}

GmAdaptation gm_adaptation(const GmModel *model, const GmMemory *m, const GmRun *run, int chain)
{
    GmAdaptation a = {.depth = NUTS_DEPTH};
    for (int f = 0; f < model->n_state; f++) {
        if (model->state[f].role != GM_DIAGNOSTIC) continue;
        const int place = field_before(model, f, "position"), machine = field_before(model, f, "nuts");
        const long n = place < model->n_state ? gm_shape_size(&m->shape[place]) : 0;
        a.metric = gm_grow(a.metric, (size_t)(a.n + n), sizeof *a.metric);
        for (long i = 0; i < n; i++) a.metric[a.n + i] = 1;
        Nuts head = {0};
        const char *state = run->device ? run->device->state : run->state;
        if (machine < model->n_state && is_taken(model, run, f, chain) &&
            fetch(run, *(wide *const *)(state + (size_t)chain * model->state_size + model->state[machine].offset), n, &head,
                  a.metric + a.n) &&
            head.known && !a.by_nuts) {
            a.step = head.step;
            a.depth = head.settings.max_depth;
            a.by_nuts = true;
        }
        a.n += n;
        a.moves = true;
    }
    return a;
}

long gm_transitions_left(const GmModel *model, const GmRun *run, int diagnostics, int *line)
{
    const int machine = field_before(model, diagnostics, "nuts");
    const char *state = run->device ? run->device->state : run->state;
    long left = 0;
    for (int c = 0; c < run->chains && machine < model->n_state; c++) {
        Nuts head = {0};
        double none;
        if (!fetch(run, *(wide *const *)(state + (size_t)c * model->state_size + model->state[machine].offset), 0, &head, &none)) break;
        left += head.left;
        *line = head.settings.walls > 0 ? head.settings.walls : *line;
    }
    return left;
}

const char *const gm_moves_names[GM_N_MOVES] = {"unknown", "none", "NUTS", "HMC", "HMC of a given step", "ChEES"};

GmMovesBy gm_moves_by(const GmModel *model, const GmRun *run, int diagnostics, int chain)
{
    for (int c = 0; c < run->chains && chain < 0; c++) {
        const GmMovesBy by = gm_moves_by(model, run, diagnostics, c);
        if (by > GM_MOVES_NONE || c + 1 == run->chains) return by;
    }
    const int machine = field_before(model, diagnostics, "nuts");
    if (machine == model->n_state || chain < 0) return GM_MOVES_UNKNOWN;
    if (!is_taken(model, run, diagnostics, chain)) return GM_MOVES_NONE;
    for (int k = 0; k < run->n_together; k++)
        if (run->together[k].diagnostics == model->state[diagnostics].offset && run->together[k].made) return GM_MOVES_CHEES;
    const char *state = run->device ? run->device->state : run->state;
    Nuts head = {0};
    double none;
    if (!fetch(run, *(wide *const *)(state + (size_t)chain * model->state_size + model->state[machine].offset), 0, &head, &none) ||
        !head.known)
        return GM_MOVES_UNKNOWN;
    return head.settings.steps == 0 ? GM_MOVES_NUTS : head.settings.step > 0 ? GM_MOVES_HMC_OF_STEP : GM_MOVES_HMC;
}

void gm_moves_note(FILE *to, const GmModel *model, const GmRun *run, const GmTrials *selected, int chain)
{
    for (int f = 0; f < model->n_state; f++) {
        if (model->state[f].role != GM_DIAGNOSTIC) continue;
        bool between = false;
        const char *chosen = gm_trials_of_moves(selected, f, &between);
        fprintf(to, "# transitions of %s = %s%s%s\n", chosen ? chosen : model->state[f].name + strlen("moves_"),
                gm_moves_names[gm_moves_by(model, run, f, chain)], chosen ? ", chosen" : "", between ? ", Gibbs sweeps between" : "");
    }
}

void gm_adaptation_write(FILE *to, const GmAdaptation *a)
{
    char number[GM_NUMBER_ROOM];
    number[gm_print_number(number, a->step, 0)] = 0;
    fprintf(to, "# Adaptation terminated\n# Step size = %s\n# Diagonal elements of inverse mass matrix:\n# ", number);
    for (long i = 0; i < a->n; i++) {
        number[gm_print_number(number, a->metric[i], 0)] = 0;
        fprintf(to, i ? ", %s" : "%s", number);
    }
    fputc('\n', to);
}
