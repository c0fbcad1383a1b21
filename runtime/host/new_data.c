// new_data.c -- what the draws of a run say of other data (--new): definitions, the predict block, replicates and log-likelihoods, computed
// again with the new data for every kept draw.
//
//   ./fit train.json --new test.json --log-lik -o draws        draws_1.csv, ... as ever; draws_new.csv: mean and sd of each quantity over
//                                                              all draws, for the rows of test.json
//
// The program is the same, so plates that run over rows have as many instances as the new data have rows. Unknowns keep the values of the
// draw, element by element: their sizes must not change. What the new files leave out and the size of no new array decides is taken from
// the data of the run. Of each quantity only sums over draws are kept, since there are as many quantities as rows.
#include "draws.h"
#include "fields.h"
#include "messages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 3 };  // elements of an array that are printed

typedef struct Tally {
    double mean, squares, most, sum;
} Tally;  // sum: of exp(x - most)

struct GmNewData {
    const GmModel *model;
    GmData data;
    GmMemory memory;
    GmRun run;
    int requests;   // those of the run, but for the log prior: it is of the draws, and the run has it
    Tally **tally;  // by state field; NULL: not computed from the data
};

void gm_new_data_close(GmNewData *n)
{
    if (!n) return;
    for (int f = 0; n->tally && f < n->model->n_state; f++) free(n->tally[f]);
    free(n->tally);
    gm_memory_close(&n->memory);
    gm_data_close(&n->data, n->model);
    free(n);
}

// Whether each element of each unknown is in the draws and has its place here. false after a message.
static bool unknowns_fit(const GmNewData *n, const GmDraws *d, const GmMemory *m)
{
    long *there = gm_alloc((size_t)n->model->n_state, sizeof *there);
    bool good = true;
    for (long c = 0; c < d->n_columns; c++)
        if (d->column[c].field >= 0) there[d->column[c].field]++;
    for (int f = 0; f < n->model->n_state && good; f++) {
        const GmField *field = &n->model->state[f];
        if (!gm_is_drawn(field)) continue;
        const GmShape *old = &m->shape[f], *new = &n->memory.shape[f];
        for (int k = 0; k < old->rank && good; k++) good = old->dim[k] == new->dim[k];
        if (!good) {
            char *was = gm_shape_text(old->rank, old->dim), *is = gm_shape_text(new->rank, new->dim);
            gm_error("--new: %s has size %s in the run and would have %s with the new data: its elements there are not known", field->name,
                     was, is);
            free(was);
            free(is);
        } else if (there[f] < gm_shape_size(old)) {
            gm_error(
                field->role == GM_LATENT
                    ? "--new: %s is not in the draws: it is latent, and latent variables are kept if --params names them (--params all)"
                    : "--new: %s is not in the draws; leave --params out, or name it, too",
                field->name);
            good = false;
        }
    }
    free(there);
    return good;
}

static bool nothing_missing(const GmNewData *n)
{
    for (int f = 0; f < n->model->n_data; f++) {
        if (n->data.missing[f].count == 0) continue;
        const GmShape *s = &n->data.shape[f];
        char *name = gm_element_name(n->model->data[f].name, s->rank, s->dim, n->data.missing[f].index[0]);
        gm_error("--new: %s is missing: new data must be whole (what is not known yet may be any value within its bounds, if nothing that "
                 "is asked for reads it)",
                 name);
        free(name);
        return false;
    }
    return true;
}

static bool negative_size(const GmNewData *n)
{
    if (n->memory.negative) gm_error("--new: a size that follows from the data comes out as %ld", n->memory.negative);
    return n->memory.negative;
}

static bool prepare(GmNewData *n, const GmModel *model, const GmOptions *o, const GmData *data, const GmMemory *m, const GmDraws *d)
{
    *n = (GmNewData){.model = model, .requests = o->requests & ~GM_LOG_PRIOR};
    if (!gm_data_open(&n->data, model, o->new_inputs, o->n_new_inputs, data) || !nothing_missing(n) ||
        !gm_memory_open(&n->memory, model, &n->data, 1, n->requests, false) || negative_size(n) || !unknowns_fit(n, d, m))
        return false;
    bool any = false;
    n->tally = gm_alloc((size_t)model->n_state, sizeof *n->tally);
    for (int f = 0; f < model->n_state; f++)
        if (gm_is_computed(&model->state[f], n->requests)) {
            n->tally[f] = gm_alloc((size_t)gm_shape_size(&n->memory.shape[f]), sizeof **n->tally);
            any = true;
        }
    if (!any || !model->derive_chain) {
        gm_error("--new: there is nothing to compute: the model has no definitions of unknowns and no predict block; --log-lik and "
                 "--predict ask for more");
        return false;
    }
    // Numbers of their own for what is drawn: replicates of new data are independent of those of the run.
    n->run = (GmRun){.data = n->data.data,
                     .state = n->memory.state,
                     .chains = 1,
                     .seed = o->seed ^ 0x9e3779b97f4a7c15u,
                     .threads = o->threads,
                     .inner_threads = o->threads,
                     .missing = n->data.missing,
                     .requests = n->requests,
                     .warmup = o->warmup};
    gm_fill_absent(model, &n->memory, 0);
    if (model->setup) model->setup(&n->run);
    if (gm_fault_raised()) gm_fault_print(model, &n->memory, &n->data);
    return !gm_fault_raised();
}

static void add(Tally *t, double x, long n)
{
    if (n == 1) *t = (Tally){.most = -INFINITY};
    if (isfinite(x) && isfinite(t->mean)) {
        const double change = x - t->mean;
        t->mean += change / (double)n;
        t->squares += change * (x - t->mean);
    } else {
        t->mean += x;  // infinite from here on
        t->squares = NAN;
    }
    if (x > t->most) {
        t->sum = t->sum * exp(t->most - x) + 1;
        t->most = x;
    } else t->sum += x == t->most ? 1 : exp(x - t->most);  // both may be infinite
}

static void take_draw(GmNewData *n, const GmDraws *d, const double *row, long number)
{
    for (long c = 0; c < d->n_columns; c++) {
        const int f = d->column[c].field;
        if (f < 0 || !gm_is_drawn(&n->model->state[f])) continue;
        void *array = gm_state_array(n->model, &n->memory, 0, f);
        if (n->model->state[f].type == GM_INT) ((int32_t *)array)[d->column[c].element] = isnan(row[c]) ? GM_MISSING_INT : (int32_t)row[c];
        else ((double *)array)[d->column[c].element] = row[c];
    }
    n->model->derive_chain(&n->run);
    for (int f = 0; f < n->model->n_state; f++) {
        if (!n->tally[f]) continue;
        const void *array = gm_state_array(n->model, &n->memory, 0, f);
        const long size = gm_shape_size(&n->memory.shape[f]);
        for (long e = 0; e < size; e++) {
            const int32_t x = n->model->state[f].type == GM_INT ? ((const int32_t *)array)[e] : 0;
            add(&n->tally[f][e],
                n->model->state[f].type != GM_INT ? ((const double *)array)[e]
                : x == GM_MISSING_INT             ? NAN
                                                  : (double)x,
                number);
        }
    }
}

// ---- what is said ----

static double sd(const Tally *t, long draws) { return draws > 1 ? sqrt(t->squares / (double)(draws - 1)) : NAN; }

static double log_mean_exp(const Tally *t, long draws) { return t->most + log(t->sum / (double)draws); }

static bool write_table(const GmNewData *n, const char *output, long draws, int digits)
{
    char *path = gm_format("%s_new.csv", output), number[3][GM_NUMBER_ROOM];
    GmFile out;
    const bool open = gm_output_open(&out, path, false);
    free(path);
    if (!open) return false;
    FILE *to = out.to;
    fprintf(to, "variable,mean,sd,log_mean_exp\n");
    for (int f = 0; f < n->model->n_state; f++)
        for (long e = 0; n->tally[f] && e < gm_shape_size(&n->memory.shape[f]); e++) {
            const GmShape *s = &n->memory.shape[f];
            const Tally *t = &n->tally[f][e];
            const double x[] = {t->mean, sd(t, draws), n->model->state[f].on_request == GM_LOG_LIK ? log_mean_exp(t, draws) : NAN};
            for (int k = 0; k < 3; k++) number[k][gm_print_number(number[k], x[k], digits)] = 0;
            char *name = gm_dotted(gm_element_name(n->model->state[f].name, s->rank, s->dim, e));
            fprintf(to, "%s,%s,%s,%s\n", name, number[0], number[1], isnan(x[2]) ? "" : number[2]);
            free(name);
        }
    return gm_output_done(&out);
}

static void print_table(FILE *to, const GmNewData *n, long draws, const char *output)
{
    fprintf(to, "\nnew data, over %ld draws\n\n%-24s %12s %12s\n", draws, "", "mean", "sd");
    for (int f = 0; f < n->model->n_state; f++) {
        const GmField *field = &n->model->state[f];
        const GmShape *s = &n->memory.shape[f];
        const long size = n->tally[f] ? gm_shape_size(s) : 0;
        double total = 0, squares = 0;
        for (long e = 0; e < size && (e < SHOWN || size == SHOWN + 1); e++) {
            char *name = gm_element_name(field->name, s->rank, s->dim, e);
            fprintf(to, "%-24s %12.4g %12.4g\n", name, n->tally[f][e].mean, sd(&n->tally[f][e], draws));
            free(name);
        }
        if (size > SHOWN + 1)
            fprintf(to, "...        %ld more of %s%s%s%s\n", size - SHOWN, field->name, output ? " (" : " (-o NAME writes NAME",
                    output ? output : "", "_new.csv)");
        if (size == 0 || field->on_request != GM_LOG_LIK) continue;
        for (long e = 0; e < size; e++) {
            const double x = log_mean_exp(&n->tally[f][e], draws), before = total / (double)(e ? e : 1);
            total += x;
            squares += e ? (x - before) * (x - total / (double)(e + 1)) : 0;
        }
        if (size == 1) fprintf(to, "%s: the log of the mean density of the observation is %.6g\n", field->name, total);
        else
            fprintf(to, "%s: the log of the mean density of each observation is %.6g in all, %.6g each (standard error of the sum %.3g)\n",
                    field->name, total, total / (double)size, sqrt(squares / (double)(size - 1) * (double)size));
    }
}

GmNewData *gm_new_data_open(const GmModel *model, const GmOptions *o, const GmData *data, const GmMemory *m, const GmDraws *d)
{
    GmNewData *n = gm_alloc(1, sizeof *n);
    if (prepare(n, model, o, data, m, d)) return n;
    gm_new_data_close(n);
    return NULL;
}

bool gm_new_data_take(GmNewData *n, FILE *to, const GmOptions *o, const GmDraws *d)
{
    long number = 0;
    for (int c = 0; c < d->chains; c++)
        for (long k = 0; k < d->kept; k++) {
            n->run.first_chain = d->first_chain - 1 + c;
            n->run.sweep = o->warmup + (k + 1) * o->thin - 1;
            take_draw(n, d, d->memory + (size_t)(c * d->held + k) * (size_t)d->n_columns, ++number);
            if (gm_fault_raised()) {
                gm_fault_print(n->model, &n->memory, &n->data);
                return false;
            }
            if (gm_interrupted()) return false;
        }
    if (number == 0) return true;
    print_table(to, n, number, o->output);
    if (o->output)
        gm_note("means and sds: %s_new.csv. The draws for these data: `predict %s --new %s`", o->output, o->output, o->new_inputs[0]);
    return !o->output || write_table(n, o->output, number, o->digits);
}
