// forward.c -- draws without data: the model's unknowns from the laws of their statements, responses after them; data sets as files.
//
//   ./fit prior data.json -o prior            prior_1.csv, ...: unknowns, definitions, y_rep, each draw independent of the others
//   ./fit simulate truth.json data.json -o s  s_1.json: the data with y as the parameters give it; s_1_truth.json: these
//
// Responses count as missing while draws are made, so that each chain has an array of its own of them, which definitions read. Streams of
// random numbers have a seed of their own: a run with the same seed that fits the data shares none with the draws that made them.
#include "fields.h"
#include "messages.h"
#include "runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t FORWARD = 0xd1b54a32d192ed03u;  // odd bits of a golden ratio, as good as any

uint64_t gm_forward_seed(uint64_t seed) { return seed ^ FORWARD; }

// The replicate of a response, as a field of the state, from 0; -1: none.
static int replicate_of(const GmModel *model, int data_field)
{
    for (const GmObserved *o = model->observed; o && o->where; o++)
        if (o->data == data_field + 1 && o->replicate) return o->replicate - 1;
    return -1;
}

static double number_at(const GmField *f, const void *elements, long i)
{
    if (f->type != GM_INT) return ((const double *)elements)[i];
    const int32_t x = ((const int32_t *)elements)[i];
    return x == GM_MISSING_INT ? NAN : (double)x;
}

static void put_number(const GmField *f, void *elements, long i, double x)
{
    if (f->type == GM_INT) ((int32_t *)elements)[i] = isnan(x) ? GM_MISSING_INT : (int32_t)x;
    else ((double *)elements)[i] = x;
}

bool gm_forward_draw(const GmModel *model, GmMemory *m, const GmData *d, GmRun *one)
{
    for (int f = 0; f < model->n_data; f++) {
        const int imputed = model->data[f].imputed_field - 1;
        if (imputed < 0 || !gm_is_drawn_response(model, f)) continue;
        const GmValue *v = gm_values_find(&d->values, model->data[f].name);
        const size_t bytes = (size_t)gm_shape_size(&d->shape[f]) * gm_element_size(&model->data[f]);
        memcpy(gm_state_array(model, m, one->chain, imputed), v->elements, bytes);
    }
    model->forward(one);
    if (gm_fault_raised()) return false;
    for (int f = 0; f < model->n_data; f++) {
        const int imputed = model->data[f].imputed_field - 1, from = replicate_of(model, f);
        if (imputed < 0 || from < 0 || !gm_is_drawn_response(model, f)) continue;
        void *to = gm_state_array(model, m, one->chain, imputed);
        const void *drawn = gm_state_array(model, m, one->chain, from);
        for (long i = 0; i < gm_shape_size(&d->shape[f]); i++) {
            const double x = number_at(&model->state[from], drawn, i);
            if (!isnan(x)) put_number(&model->data[f], to, i, x);  // else no statement draws it
        }
    }
    return true;
}

char *gm_forward_outside(const GmModel *model, const GmMemory *m, const GmData *d, int chain)
{
    for (int f = 0; f < model->n_data; f++) {
        const GmShape *s = &d->shape[f];
        const int imputed = model->data[f].imputed_field - 1;
        if (imputed < 0 || !gm_is_drawn_response(model, f)) continue;
        const void *drawn = gm_state_array(model, m, chain, imputed);
        const GmMissing *missing = &d->missing_in_files[f];
        for (long i = 0, k = 0; i < gm_shape_size(s); i++) {
            if (k < missing->count && missing->index[k] == i) {  // in ascending order; it stays missing
                k++;
                continue;
            }
            const double x = number_at(&model->data[f], drawn, i);
            if (!(x < s->lower || x > s->upper)) continue;
            const bool below = x < s->lower;
            const double end = below ? s->lower : s->upper;
            char *name = gm_element_name(model->data[f].name, s->rank, s->dim, i);
            char *says = gm_format("%s = %.6g was drawn, %s its declared bound %.6g: its law reaches beyond. Truncate the law, "
                                   "T[%s%.6g%s], or declare %s without the bound",
                                   name, x, below ? "below" : "above", end, below ? "" : ", ", end, below ? ", " : "",
                                   model->data[f].name);
            free(name);
            return says;
        }
    }
    return NULL;
}

bool gm_forward_readable(const GmModel *model, const GmMemory *m, const GmData *d, int chain)
{
    char *outside = gm_forward_outside(model, m, d, chain);
    if (outside) gm_error("%s", outside);
    free(outside);
    return !outside;
}

void gm_forward_hint(const GmModel *model, const GmData *d)
{
    for (int f = 0; f < model->n_data; f++) {
        const GmValue *v = gm_is_drawn_response(model, f) ? gm_values_find(&d->values, model->data[f].name) : NULL;
        if (v && strcmp(v->source, "not given") == 0)
            gm_error("  if %s has elements that no statement draws and others follow from, the data have to give %s", v->name, v->name);
    }
    gm_error("  each unknown is drawn from its own law: a prior far too wide, or improper at one end, has draws that no number holds");
}

// ---- what is given ----

// An array of the compiler, whose elements have names of their own.
static bool is_made(const GmModel *model, int f)
{
    for (int k = 0; k < model->n_state; k++)
        if (model->state[k].part_of == f + 1) return true;
    return false;
}

// A definition is computed, also one that the model as written draws (the compiler draws another in its place).
static bool no_definition_is_given(const GmModel *model, const GmValues *values)
{
    for (int f = 0; f < model->n_state; f++) {
        const GmField *field = &model->state[f];
        const GmValue *v = gm_is_computed(field, 0) ? gm_values_find(values, field->name) : NULL;
        if (!v) continue;
        gm_error("%s: %s is computed from other unknowns: give those in its place (gmc --explain names what is drawn)", v->source,
                 field->name);
        return false;
    }
    return true;
}

static bool take_given(const GmModel *model, GmMemory *m, GmValues *values, unsigned char *given)
{
    if (!no_definition_is_given(model, values)) return false;
    for (int f = 0; f < model->n_state; f++) {
        const GmField *field = &model->state[f];
        const GmValue *v = gm_is_drawn(field) ? gm_values_find(values, field->name) : NULL;
        if (!v) continue;
        GmField finite = *field;
        finite.finite = 1;
        finite.needed_for = "parameters are given as numbers";
        if (!gm_value_fits(field, &m->shape[f], v) || !gm_check_values(&finite, &m->shape[f], v->elements, v->source, NULL)) return false;
        memcpy(gm_state_array(model, m, 0, f), v->elements, (size_t)gm_value_size(v) * gm_element_size(field));
        given[f + 1] = 1;
    }
    return true;
}

// NAME=NUMBER of an unknown; its name is owned by the caller.
static char *given_name(const GmModel *model, const char *input)
{
    const char *equals = strchr(input, '=');
    for (int f = 0; equals && f < model->n_state; f++)
        if (gm_is_drawn(&model->state[f]) && strlen(model->state[f].name) == (size_t)(equals - input) &&
            strncmp(model->state[f].name, input, (size_t)(equals - input)) == 0)
            return gm_copy_text(model->state[f].name);
    return NULL;
}

bool gm_forward_is_parameter(const GmModel *model, const char *input)
{
    char *name = given_name(model, input);
    free(name);
    return name != NULL;
}

// Which unknowns are not drawn, and their values. false after a message.
static bool read_given(const GmModel *model, GmMemory *m, const GmOptions *o, unsigned char *given)
{
    GmValues values = {.fields = model->state, .n_fields = model->n_state};
    bool good = true;
    for (int i = 0; i < o->n_inputs && good; i++) {
        char *name = given_name(model, o->inputs[i]);
        const char *why = NULL;
        double x;
        if (name && gm_parse_number(strchr(o->inputs[i], '=') + 1, &x, &why) && !isnan(x)) {
            GmValue *v = gm_values_add(&values, name, "command line");
            good = v != NULL;
            if (good) {
                v->type = gm_values_wanted(&values, name)->type;
                v->elements = gm_alloc(1, sizeof(double));
                good = gm_store(v->type, v->elements, 0, x, &why);
                if (!good) gm_error("%s: %s %s", o->inputs[i], name, why);
            }
        } else if (name) {
            gm_error("%s: expected %s=NUMBER; arrays are given in a JSON file", o->inputs[i], name);
            good = false;
        } else if (gm_text_is(o->inputs[i], ".json")) good = gm_json_read(&values, o->inputs[i]);
        free(name);
    }
    good = good && take_given(model, m, &values, given);
    gm_values_close(&values);
    return good;
}

static bool all_needed_are_given(const GmModel *model, const GmOptions *o, unsigned char *given)
{
    bool all = true, every = true;
    for (int f = 0; f < model->n_state; f++) {  // an array of the compiler is given by its elements
        if (!is_made(model, f)) continue;
        int n = 0, there = 0;
        for (int k = 0; k < model->n_state; k++) {
            n += model->state[k].part_of == f + 1;
            there += model->state[k].part_of == f + 1 && given[k + 1];
        }
        given[f + 1] = there == n;
        for (int k = 0; k < model->n_state && there > 0 && there < n; k++)
            if (model->state[k].part_of == f + 1 && !given[k + 1]) {
                gm_error("simulate: %s is not given, and others of its linear predictor are: give all of them or none",
                         model->state[k].name);
                return false;
            }
    }
    for (int f = 0; f < model->n_state; f++) {
        const GmField *field = &model->state[f];
        if (!gm_is_drawn(field) || given[f + 1] || is_made(model, f)) continue;
        every = false;
        if (field->role != GM_PARAMETER || o->from_prior) continue;
        if (all) gm_error("simulate: parameters are not given:");
        gm_error("  %s (%s)", field->name, field->where ? field->where : model->source);
        all = false;
    }
    if (!all) gm_error("give them as values.json or NAME=VALUE; --from prior draws those that are not given");
    if (all && !every && model->not_forward) {
        gm_error("simulate: what is not given cannot be drawn: %s", model->not_forward);
        return false;
    }
    return all;
}

// ---- files ----

static void write_elements(FILE *to, const GmField *f, const GmShape *s, const void *elements, int k, long *at)
{
    if (k < s->rank) {
        fputc('[', to);
        for (long i = 0; i < s->dim[k]; i++) {
            if (i) fputs(", ", to);
            write_elements(to, f, s, elements, k + 1, at);
        }
        fputc(']', to);
        return;
    }
    const double x = number_at(f, elements, (*at)++);
    char text[GM_NUMBER_ROOM];
    if (isnan(x)) fputs("null", to);
    else if (isinf(x)) fputs(x > 0 ? "\"Inf\"" : "\"-Inf\"", to);
    else {
        text[gm_print_number(text, x, 0)] = 0;
        fputs(text, to);
    }
}

static void write_value(FILE *to, const char **before, const GmField *f, const GmShape *s, const void *elements)
{
    long at = 0;
    fprintf(to, "%s\"%s\": ", *before, f->name);
    *before = ",\n  ";
    write_elements(to, f, s, elements, 0, &at);
}

static bool write_data(const GmModel *model, const GmMemory *m, const GmData *d, const char *output, long set)
{
    char *path = gm_format("%s_%ld.json", output, set);
    GmFile out;
    const bool open = gm_output_open(&out, path, false);
    free(path);
    if (!open) return false;
    const char *before = "{\n  ";
    for (int f = 0; f < model->n_data; f++) {
        const GmValue *v = gm_values_find(&d->values, model->data[f].name);
        const GmShape *s = &d->shape[f];
        if (!gm_is_drawn_response(model, f)) {
            write_value(out.to, &before, &model->data[f], s, v->elements);
            continue;
        }
        const size_t each = gm_element_size(&model->data[f]);
        char *y = gm_alloc((size_t)gm_shape_size(s) + 1, each);
        memcpy(y, gm_state_array(model, m, 0, model->data[f].imputed_field - 1), (size_t)gm_shape_size(s) * each);
        for (long k = 0; k < d->missing_in_files[f].count; k++) put_number(&model->data[f], y, d->missing_in_files[f].index[k], NAN);
        write_value(out.to, &before, &model->data[f], s, y);
        free(y);
    }
    fputs(*before == '{' ? "{}\n" : "\n}\n", out.to);
    return gm_output_done(&out);
}

static bool write_truth(const GmModel *model, const GmMemory *m, const char *output, long set)
{
    char *path = gm_format("%s_%ld_truth.json", output, set);
    GmFile out;
    const bool open = gm_output_open(&out, path, false);
    free(path);
    if (!open) return false;
    const char *before = "{\n  ";
    for (int f = 0; f < model->n_state; f++)
        if (gm_is_drawn(&model->state[f]) && !is_made(model, f))
            write_value(out.to, &before, &model->state[f], &m->shape[f], gm_state_array(model, m, 0, f));
    fputs(*before == '{' ? "{}\n" : "\n}\n", out.to);
    return gm_output_done(&out);
}

bool gm_forward_possible(const GmModel *model, const GmOptions *o)
{
    static const char *const commands[] = {[GM_PRIOR] = "prior", [GM_SIMULATE] = "simulate", [GM_CALIBRATE] = "calibrate"};
    const char *name = commands[o->forward];
    if (o->forward != GM_SIMULATE && model->not_forward)
        gm_error("%s: the model cannot be drawn forward. %s. Each unknown needs one statement with a distribution, `x ~ normal(0, 1);`, "
                 "that others can be drawn after",
                 name, model->not_forward);
    else if (o->forward != GM_PRIOR && model->not_simulated)
        gm_error("%s: responses cannot be drawn. %s", name, model->not_simulated);
    else if (o->forward != GM_PRIOR && model->not_as_data)
        gm_error("%s: no data can be drawn. %s. prior draws values before they are censored", name, model->not_as_data);
    else if (!model->forward) gm_error("%s: there is nothing to draw forward in this program", name);
    else return true;
    return false;
}

int gm_simulate(const GmModel *model, GmMemory *m, const GmData *d, const GmOptions *o, const GmRun *run)
{
    unsigned char *given = gm_alloc((size_t)model->n_state + 2, 1);
    GmRun one = *run;
    one.given = given;
    one.inner_threads = 1;
    bool good = read_given(model, m, o, given) && all_needed_are_given(model, o, given);
    bool any = false;
    for (int f = 0; f < model->n_data; f++) any |= gm_is_drawn_response(model, f);
    if (good && !any) gm_error("simulate: no data of the model are drawn by it");
    if (!good || !any) {
        free(given);
        return GM_EXIT_USAGE;
    }
    int status = GM_EXIT_OK;
    const long sets = o->sets ? o->sets : 1;
    for (long k = 1; k <= sets && status == GM_EXIT_OK; k++) {
        one.sweep = k - 1;
        if (gm_interrupted()) status = GM_EXIT_INTERRUPTED;
        else if (!gm_forward_draw(model, m, d, &one)) {
            gm_fault_print(model, m, NULL);
            gm_forward_hint(model, d);
            status = GM_EXIT_FAULT;
        } else if (!gm_forward_readable(model, m, d, one.chain)) status = GM_EXIT_FAULT;
        else if (!write_data(model, m, d, o->output, k) || !write_truth(model, m, o->output, k)) status = GM_EXIT_FAULT;
    }
    if (status == GM_EXIT_OK)
        gm_note("data: %s_1.json%s, with the parameters in %s_1_truth.json%s; seed %llu", o->output, sets > 1 ? ", ..." : "", o->output,
                sets > 1 ? ", ..." : "", (unsigned long long)o->seed);
    free(given);
    return status;
}
