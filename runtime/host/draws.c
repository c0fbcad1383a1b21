// draws.c -- which columns are kept, and the CSV files that hold them, in CmdStan's layout.
//
//   # lines with the model, seed and settings
//   lp__,alpha,beta.1,beta.2
//   -7.3,0.12,1.5,2
//
// A file grows under a temporary name while draws are kept (writer.c), and takes its own name only at the end; so a file of that name is
// always whole, and an older one survives a run that fails before its first draw. The files of one run hold equally many draws, however it
// ended.
#define _GNU_SOURCE
#include "fields.h"
#include "messages.h"
#include "runs.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SMALL = 100 };  // definitions with more elements are kept only on request

// ---- columns ----

static bool can_keep(const GmField *f)
{
    if (f->on_request)  // if it is asked for, it is kept anyway
        return false;
    switch (f->role) {
    case GM_PARAMETER:
    case GM_LATENT:
    case GM_AUXILIARY:
    case GM_IMPUTED:
    case GM_DERIVED:
    case GM_PREDICTED: return true;
    case GM_DATA:
    case GM_DIAGNOSTIC:
    case GM_SUM: return false;
    }
    return false;
}

static bool kept_by_default(const GmField *f, const GmShape *s)
{
    if (f->on_request || f->stored == GM_IF_ASKED) return false;
    if (f->stored == GM_IF_SMALL) return gm_shape_size(s) <= SMALL;
    switch (f->role) {
    case GM_PARAMETER:
    case GM_PREDICTED: return true;
    case GM_DERIVED: return gm_shape_size(s) <= SMALL;
    case GM_LATENT:
    case GM_AUXILIARY:
    case GM_IMPUTED:
    case GM_DATA:
    case GM_DIAGNOSTIC:
    case GM_SUM: return false;
    }
    return false;
}

static void list_selected(const GmModel *model)
{
    fprintf(stderr, "  there are:");
    for (int f = 0; f < model->n_state; f++)
        if (can_keep(&model->state[f])) fprintf(stderr, " %s", model->state[f].name);
    fprintf(stderr, "\n");
}

// Whether storing an auxiliary would leave a set of unknowns no method selection: NUTS does not draw it.
static bool hinders_gradients(const GmModel *model, int f)
{
    for (int k = 0; k < model->n_selections; k++)
        for (const int *a = model->selections[k].latents; *a; a++)
            if (*a == f + 1) return true;
    return false;
}

static bool is_word(const char *word, const char *text, size_t n) { return strlen(word) == n && strncmp(word, text, n) == 0; }

// later: predictions, for which everything that the new data decide is kept.
// Marks the fields that --params names. false after a message.
static bool choose(const GmModel *model, const GmMemory *m, const char *params, int requests, bool later, bool *wanted)
{
    const size_t first = params ? strcspn(params, ", ") : 0;
    const bool all = params && is_word("all", params, first);
    for (int f = 0; f < model->n_state; f++)
        wanted[f] = params  ? all && can_keep(&model->state[f]) && !hinders_gradients(model, f)
                    : later ? gm_is_computed(&model->state[f], 0)
                            : kept_by_default(&model->state[f], &m->shape[f]);
    if (!params) return true;
    for (const char *at = params;; at++) {
        at += strspn(at, " ");
        const size_t n = strcspn(at, ", ");
        const char *wrong = n == 0 ? "--params: a name is missing in `%s`" : NULL;
        bool found = is_word("lp__", at, n) || (all && at == params);
        if (all && is_word("auxiliaries", at, n)) {
            found = true;
            for (int f = 0; f < model->n_state; f++) wanted[f] |= can_keep(&model->state[f]);
        }
        for (int f = 0; f < model->n_state && !found; f++) {
            const GmField *field = &model->state[f];
            if (!is_word(field->name, at, n) || !(can_keep(field) || field->on_request)) continue;
            if (field->on_request && !(field->on_request & requests)) {
                gm_error("--params: %s is there with %s only", field->name,
                         field->on_request == GM_LOG_LIK     ? "--log-lik"
                         : field->on_request == GM_LOG_PRIOR ? "--log-prior"
                                                             : "--predict");
                return false;
            }
            if (wanted[f] && !all) wrong = "--params: a name is given twice in `%s`";
            wanted[f] = found = true;
        }
        if (wrong) {
            gm_error(wrong, params);
            return false;
        }
        if (!found) {
            gm_error("--params: the model has no variable `%.*s`", (int)n, at);
            list_selected(model);
            return false;
        }
        at += n + strspn(at + n, " ");
        if (*at != ',') {
            if (!*at) return true;
            at--;  // names may be apart by spaces alone
        }
    }
}

// The row-major position of the k-th element when the first index runs fastest.
static long transposed(const GmShape *s, long k)
{
    long index[GM_MAX_RANK] = {0}, at = 0;
    for (int r = 0; r < s->rank; r++) {
        index[r] = k % s->dim[r];
        k /= s->dim[r];
    }
    for (int r = 0; r < s->rank; r++) at = at * s->dim[r] + index[r];
    return at;
}

// Marks what the run asks for besides, and says what of it there is not. false after a message: there is nothing.
static bool choose_requested(const GmModel *model, const GmData *data, int requests, bool later, bool *wanted)
{
    static const struct {
        GmRequest request;
        const char *option, *what;
    } all[] = {
        {GM_LOG_LIK, "--log-lik", "log-likelihood"},
        {GM_REPLICATES, "--predict", "replicates"},
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        bool any = false;
        for (const GmObserved *o = model->observed; o && o->where && (requests & (int)all[k].request); o++) {
            const bool log_lik = all[k].request == GM_LOG_LIK;
            const int field = (log_lik ? o->log_lik : o->replicate) - 1;
            const char *because = log_lik ? o->no_log_lik : o->no_replicate;
            if (field < 0) {  // said under --quiet, too: what is asked for is not all there
                if (o->name) gm_error("%s: no %s of %s: %s", all[k].option, all[k].what, o->name, because);
                else gm_error("%s: left out: %s", all[k].option, because);
                continue;
            }
            any = true;
            // of a response that new data leave out there is none
            if (later && log_lik && o->data && data->missing[o->data - 1].count == gm_shape_size(&data->shape[o->data - 1])) continue;
            wanted[field] = true;
            const char *name = model->state[field].name;
            char *plain = log_lik ? gm_format("log_lik_%s", o->name) : gm_format("%s_rep", o->name);
            if (strcmp(name, plain) != 0)
                gm_note("%s: the %s of %s: %s, since the model has a %s of its own", all[k].option, all[k].what, o->name, name, plain);
            free(plain);
            if (log_lik && o->data && data->missing[o->data - 1].count)
                gm_note("%s: %s is NaN where %s is missing (%ld values)", all[k].option, name, o->name, data->missing[o->data - 1].count);
        }
        if (any || !(requests & (int)all[k].request)) continue;
        gm_error("%s: no data of the model have a distribution of which there %s", all[k].option,
                 all[k].request == GM_LOG_LIK ? "is a log-likelihood" : "are replicates");
        return false;
    }
    for (const GmPrior *p = model->priors; p && p->field && requests & GM_LOG_PRIOR; p++) {
        if (p->missing_of && !data->missing[p->missing_of - 1].count) continue;
        wanted[p->field - 1] = true;
        const char *name = model->state[p->field - 1].name;
        char *plain = gm_format("lprior_%s", p->name);
        if (strcmp(name, plain) != 0)
            gm_note("--log-prior: the log prior of %s: %s, since the model has a %s of its own", p->name, name, plain);
        free(plain);
    }
    return true;
}

// Of the log-likelihood of a variable: the elements, or vectors, of which a value is missing.
static bool *absent_elements(const GmModel *model, const GmMemory *m, const GmData *data, int field)
{
    for (const GmObserved *o = model->observed; o && o->where; o++) {
        if (o->log_lik != field + 1 || !o->data || !data->missing[o->data - 1].count) continue;
        const GmMissing *missing = &data->missing[o->data - 1];
        const long size = gm_shape_size(&m->shape[field]), each = size ? gm_shape_size(&data->shape[o->data - 1]) / size : 1;
        bool *absent = gm_alloc((size_t)size, sizeof *absent);
        for (long k = 0; k < missing->count; k++) absent[missing->index[k] / each] = true;
        return absent;
    }
    return NULL;
}

// With --log-prior: where the density of missing values goes, of which the log-likelihoods do not show it.
static void add_missing_to_prior(GmDraws *d, const GmModel *model)
{
    for (const GmPrior *p = model->priors; p && p->field; p++) {
        if (!p->missing_of) continue;
        long to = 0;
        int log_lik = -1;
        for (const GmObserved *o = model->observed; o && o->where; o++)
            if (o->data == p->missing_of && o->log_lik) log_lik = o->log_lik - 1;
        for (long k = 0; k < d->n_columns; k++)
            if (d->column[k].field == p->field - 1) to = k;
        for (long k = 0; k < d->n_columns && log_lik >= 0; k++)
            if (d->column[k].field == log_lik && d->column[k].absent) d->column[k].into = to;
    }
}

static void add_columns(GmDraws *d, const GmModel *model, const GmMemory *m, const GmData *data, const bool *wanted, bool log_joint,
                        bool log_prior, bool later)
{
    long room = log_joint + log_prior;
    const bool moves = d->options->forward != GM_PRIOR;  // else the draws are independent, and no response is one
    for (int f = 0; f < model->n_state; f++) room += wanted[f] || model->state[f].role == GM_DIAGNOSTIC ? gm_shape_size(&m->shape[f]) : 0;
    d->column = gm_alloc((size_t)room, sizeof *d->column);
    if (log_joint) d->column[d->n_columns++] = (GmColumn){.field = -1};
    for (int f = 0; f < model->n_state; f++)
        for (long k = 0; moves && !later && model->state[f].role == GM_DIAGNOSTIC && k < GM_HMC_NUMBERS; k++)
            d->column[d->n_columns++] = (GmColumn){.field = f, .element = k};
    for (int at = 0; at < 2 * model->n_state; at++) {  // log-likelihoods and replicates come last, after the terms of the log prior
        const int f = at % model->n_state;
        const bool last = model->state[f].on_request && model->state[f].on_request != GM_LOG_PRIOR;
        if (last != (at >= model->n_state) || !wanted[f] || (!moves && model->state[f].role == GM_IMPUTED)) continue;
        if (log_prior && model->state[f].on_request) {  // before its terms
            d->column[d->n_columns++] = (GmColumn){.field = GM_COLUMN_LPRIOR};
            log_prior = false;
        }
        const int source = model->state[f].role == GM_IMPUTED ? gm_data_of_imputed(model, f) : -1;
        if (source >= 0) {  // of a response only what was missing is unknown
            for (long k = 0; k < data->missing[source].count; k++)
                d->column[d->n_columns++] = (GmColumn){.field = f, .element = data->missing[source].index[k]};
            continue;
        }
        const long size = gm_shape_size(&m->shape[f]);
        bool *absent = model->state[f].on_request ? absent_elements(model, m, data, f) : NULL;
        for (long k = 0; k < size; k++) {
            const long element = transposed(&m->shape[f], k);
            d->column[d->n_columns++] = (GmColumn){.field = f, .element = element, .absent = absent && absent[element]};
        }
        free(absent);
    }
    while (d->n_summarised < d->n_columns &&
           (d->column[d->n_summarised].field < 0 || !model->state[d->column[d->n_summarised].field].on_request))
        d->n_summarised++;
}

char *gm_column_label(const GmDraws *d, const GmModel *model, const GmMemory *m, long column, char style)
{
    const GmColumn *c = &d->column[column];
    if (c->field < 0) return gm_copy_text(c->field == GM_COLUMN_LP ? "lp__" : "lprior");
    const GmShape *s = &m->shape[c->field];
    if (model->state[c->field].role == GM_DIAGNOSTIC) {  // of a second HMC update: with its name
        static const char *const names[GM_HMC_NUMBERS] = {"accept_stat", "stepsize", "treedepth", "n_leapfrog", "divergent", "energy"};
        bool first = true;
        for (int f = 0; f < c->field; f++) first &= model->state[f].role != GM_DIAGNOSTIC;
        return first ? gm_format("%s__", names[c->element])
                     : gm_format("%s_%s__", names[c->element], model->state[c->field].name + strlen("moves_"));
    }
    if (style == '[' && d->data) return gm_labelled_name(&d->data->levels, &model->state[c->field], s, c->element);
    char *name = gm_element_name(model->state[c->field].name, s->rank, s->dim, c->element);
    if (style == '[') return name;
    return gm_dotted(name);
}

bool gm_draws_diagnostic(const GmDraws *d, const GmModel *model, long column)
{
    return d->column[column].field >= 0 && model->state[d->column[column].field].role == GM_DIAGNOSTIC;
}

bool gm_draws_need_derived(const GmDraws *d, const GmModel *model)
{
    for (long c = 0; c < d->n_columns; c++) {
        const int f = d->column[c].field;
        if (f >= 0 && (model->state[f].role == GM_DERIVED || model->state[f].role == GM_PREDICTED || model->state[f].partial)) return true;
    }
    return false;
}

// ---- files ----

// Observed values as reals, whatever the model declares them as: what `compare` knows them by.
static uint64_t sum_of_observed(const GmModel *model, const GmData *data, int f)
{
    const GmValue *v = gm_values_find(&data->values, model->data[f].name);
    uint64_t sum = 1;
    for (long i = 0; v && i < gm_value_size(v); i++) {
        double x;
        if (v->type != GM_INT) x = ((const double *)v->elements)[i];
        else {
            const int32_t k = ((const int32_t *)v->elements)[i];
            x = k == GM_MISSING_INT ? NAN : (double)k;
        }
        if (x == 0) x = 0;                      // of both signs
        sum = isnan(x) ? gm_mix(sum, "NaN", 3)  // of all kinds
                       : gm_mix(sum, &x, sizeof x);
    }
    return sum;
}

// The settings under the names that CmdStan gives them (num_samples counts sweeps there), which is how CmdStanPy, cmdstanr and ArviZ know a
// file. Where NUTS may draw, they look for its columns and for what it has adapted; with `fixed_param` they expect neither.
static void write_settings(FILE *to, const GmDraws *d, const GmRun *run, const GmTrials *selected, int chain, const GmAdaptation *learned)
{
    const GmOptions *o = d->options;
    fprintf(to,
            "# stan_version_major = 2\n# stan_version_minor = 36\n# stan_version_patch = 0\n"
            "# model = %s\n"
            "# generator = gmc, from %s\n"
            "# method = sample\n#   sample\n#     num_samples = %ld\n#     num_warmup = %ld\n#     save_warmup = 0\n#     thin = %d\n",
            d->model->name, d->model->source, o->samples * o->thin, o->warmup, o->thin);
    if (learned->moves)
        fprintf(to,
                "#     adapt\n#       engaged = %d\n#     algorithm = hmc\n#       hmc\n#         engine = nuts\n#           nuts\n#       "
                "      max_depth = %d\n#         metric = diag_e\n",
                o->warmup > 0, learned->depth);
    else fputs("#     algorithm = fixed_param\n", to);
    fprintf(to, "# id = %d\n# random\n#   seed = %llu\n", d->first_chain + chain, (unsigned long long)o->seed);
    gm_record_head(d->record, to);
    for (int k = 0; k < d->data->values.n; k++) {  // said here, too, since --quiet says it nowhere
        const GmValue *v = &d->data->values.value[k];
        if (v->size_of) fprintf(to, "# %s: %d, from the %s of %s\n", v->name, *(const int32_t *)v->elements, v->size_from, v->size_of);
    }
    for (const GmObserved *of = d->model->observed; of && of->where; of++)
        if (of->log_lik && of->data && o->requests & GM_LOG_LIK)
            fprintf(to, "# data of %s = %016llx\n", d->model->state[of->log_lik - 1].name,
                    (unsigned long long)sum_of_observed(d->model, d->data, of->data - 1));
    if (learned->moves) gm_moves_note(to, d->model, run, selected, chain);
}

static void write_names(FILE *to, const GmDraws *d)
{
    for (long c = 0; c < d->n_columns; c++) {
        char *label = gm_column_label(d, d->model, d->shapes, c, '.');
        fprintf(to, c ? ",%s" : "%s", label);
        free(label);
    }
    fputc('\n', to);
}

static void write_notes(FILE *to, const GmRun *run, const GmTrials *selected, const GmRestarts *restarts, int chain)
{
    gm_trials_note(to, selected, chain, "# ");
    gm_metrics_note(to, run->metrics, run->selected, chain, "# ");
    gm_restarts_note(to, restarts, chain, "# ");
    gm_together_note(to, run, "# ");
}

// Notes come before what was adapted: readers take what follows it for the metric.
void gm_draws_begin(GmDraws *d, const GmRun *run, const GmTrials *selected, const GmRestarts *restarts, int chain)
{
    if (chain == 0) d->sampling = gm_seconds();
    if (!d->file && !d->notes) return;
    GmAdaptation learned = {0};
    if (!d->options->later) learned = gm_adaptation(d->model, d->shapes, run, chain);
    if (d->file) {
        FILE *to = d->file[chain];
        write_settings(to, d, run, selected, chain, &learned);
        write_names(to, d);
        write_notes(to, run, selected, restarts, chain);
        if (learned.moves) gm_adaptation_write(to, &learned);
    }
    size_t n;
    if (d->notes) {  // of a run that goes on they may be there
        free(d->notes[chain]);
        d->notes[chain] = NULL;
        if (chain == 0) free(d->settings);
        if (chain == 0) d->settings = NULL;
    }
    FILE *settings = d->notes && chain == 0 ? open_memstream(&d->settings, &n) : NULL;
    if (settings) {
        write_settings(settings, d, run, selected, chain, &learned);
        fclose(settings);
    }
    FILE *notes = d->notes ? open_memstream(&d->notes[chain], &n) : NULL;
    if (notes) {
        write_notes(notes, run, selected, restarts, chain);
        fclose(notes);
    }
    free(learned.metric);
}

char *gm_draws_notes(const GmDraws *d)
{
    char *all = NULL;
    size_t n;
    FILE *to = d->notes ? open_memstream(&all, &n) : NULL;
    for (int c = 0; to && c < d->chains; c++) fputs(d->notes[c] ? d->notes[c] : "", to);
    if (to) fclose(to);
    return all;
}

// CmdStan's last lines, without which its readers take a file for one that was cut off. false: it cannot be written, and is as it was.
static bool write_times(const GmDraws *d, int chain)
{
    const double end = gm_seconds(), warmup = d->sampling - d->begun, sampling = end - d->sampling;
    FILE *to = fopen(d->output[chain].part, "a");
    if (!to) return false;
    const long before = fseek(to, 0, SEEK_END) == 0 ? ftell(to) : -1;
    fprintf(to,
            "# \n#  Elapsed Time: %.3f seconds (Warm-up)\n#                %.3f seconds (Sampling)\n#                %.3f seconds "
            "(Total)\n# \n",
            warmup, sampling, warmup + sampling);
    const bool good = !ferror(to), closed = fclose(to) == 0;
    // what is left of them is a comment
    if (!(good && closed) && before >= 0 && truncate(d->output[chain].part, before) != 0) {}
    return good && closed;
}

// A run that has ended early has as many draws as its settings say: some readers refuse it else. What cannot be changed stays.
static void tell_samples(const GmDraws *d, int chain)
{
    enum { HEAD = 1000 };
    static const char setting[] = "num_samples = ";
    char head[HEAD + 1] = "";
    FILE *file = fopen(d->output[chain].part, "r+");
    if (!file) return;
    head[fread(head, 1, HEAD, file)] = 0;
    const char *at = strstr(head, setting);
    if (at) {
        at += sizeof setting - 1;
        const int room = (int)strcspn(at, "\n");
        if (fseek(file, at - head, SEEK_SET) == 0) fprintf(file, "%-*ld", room, d->kept * d->options->thin);
    }
    fclose(file);
}

static bool open_files(GmDraws *d, const GmOptions *o)
{
    const size_t n = (size_t)d->chains;
    d->file = gm_alloc(n, sizeof *d->file);
    d->output = gm_alloc(n, sizeof *d->output);
    d->final = gm_alloc(n, sizeof *d->final);
    for (int c = 0; c < d->chains; c++) {
        d->final[c] = gm_format("%s_%d.csv", o->output, d->first_chain + c);
        if (!gm_output_open(&d->output[c], d->final[c], o->checkpoint >= 0 || o->resume || o->append || o->status)) return false;
        d->file[c] = d->output[c].to;
    }
    char *next = gm_format("%s_%d.csv", o->output, d->first_chain + d->chains);
    if (o->first_chain == 1 && access(next, F_OK) == 0)
        gm_note("%s is there already and not part of this run of %d chains", next, d->chains);
    free(next);
    return true;
}

// Whether it is known which terms of the density are the prior, and all of them are kept. false after a message.
static bool has_log_prior(const GmModel *model, const GmData *data, const GmOptions *o)
{
    for (int f = 0; f < model->n_state; f++) {
        if (strcmp(model->state[f].name, "lprior") == 0) {
            gm_error("--log-prior: the model has an lprior of its own");
            return false;
        }
        const int request = model->state[f].on_request;
        if ((request != GM_LOG_LIK && request != GM_LOG_PRIOR) || !gm_moments_named(o->moments, model->state[f].name)) continue;
        gm_error("--log-prior: it is made of the draws of %s, which --moments does not keep", model->state[f].name);
        return false;
    }
    for (const GmObserved *s = model->observed; s && s->where; s++) {
        if (s->log_lik || (s->name && !(s->data && data->missing[s->data - 1].count))) continue;
        if (s->name) gm_error("--log-prior: no log-likelihood of %s: %s", s->name, s->no_log_lik);
        else gm_error("--log-prior: it is not known what is prior: %s", s->no_log_lik);
        return false;
    }
    return true;
}

// Of a row whose other columns are there: the density of missing values, which log_lik_y does not show, and lprior, the sum of all terms.
static void put_log_prior(const GmDraws *d, double *row)
{
    long at = -1;
    double sum = 0;
    for (long k = 0; k < d->n_columns; k++) {
        const GmColumn *c = &d->column[k];
        if (c->field == GM_COLUMN_LPRIOR) at = k;
        if (c->into) row[c->into] = 0;
    }
    for (long k = 0; k < d->n_columns; k++) {
        const GmColumn *c = &d->column[k];
        if (!c->into) continue;
        if (!isnan(row[k])) row[c->into] += row[k];  // NaN: no statement is about it
        row[k] = NAN;
    }
    for (long k = 0; k < d->n_columns; k++)
        if (d->column[k].field >= 0 && d->model->state[d->column[k].field].on_request == GM_LOG_PRIOR) sum += row[k];
    if (at >= 0) row[at] = sum;
}

// A power of two, or all draws: at most so many numbers of all chains.
static long block_of(const GmDraws *d)
{
    enum { DRAWS = 1024, NUMBERS = 1 << 22 };
    long block = 1;
    while (block < DRAWS && 2 * block * d->chains * d->n_columns <= NUMBERS) block *= 2;
    return block < d->capacity ? block : d->capacity;
}

bool gm_draws_open(GmDraws *d, const GmModel *model, const GmMemory *m, const GmData *data, const GmOptions *o)
{
    *d = (GmDraws){.chains = o->chains,
                   .first_chain = o->first_chain,
                   .capacity = o->samples,
                   .model = model,
                   .shapes = m,
                   .data = data,
                   .options = o};
    d->begun = d->sampling = gm_seconds();
    bool *wanted = gm_alloc((size_t)model->n_state, sizeof *wanted);
    const bool good =
        choose(model, m, o->params, o->requests, o->later, wanted) && choose_requested(model, data, o->requests, o->later, wanted);
    for (int f = 0; f < model->n_state; f++)
        wanted[f] &= !gm_moments_named(o->moments, model->state[f].name) || gm_moments_named(o->params, model->state[f].name);
    const bool prior = good && o->log_prior;
    if (prior && !has_log_prior(model, data, o)) {
        free(wanted);
        return false;
    }
    if (good) add_columns(d, model, m, data, wanted, o->log_joint, prior, o->later);
    if (prior) add_missing_to_prior(d, model);
    free(wanted);
    if (!good) return false;
    if (d->n_columns == 0) {
        gm_error("no columns: nothing to keep");
        return false;
    }
    d->summary = o->summary || o->until_ess > 0 || o->until_rhat > 0;
    const bool csv = o->output && o->format != GM_FORMAT_NETCDF, netcdf = o->output && o->format != GM_FORMAT_CSV;
    d->block = block_of(d);
    const long on_their_way = csv ? gm_writer_held(d->n_columns, d->capacity) : 1, block = netcdf ? 2 * d->block : 1;
    const bool all = d->summary || o->n_new_inputs;
    d->held = all || block > d->capacity ? d->capacity : on_their_way > block ? on_their_way : block;
    size_t rows, count;
    if (__builtin_mul_overflow((size_t)d->chains, (size_t)d->held, &rows) || __builtin_mul_overflow(rows, (size_t)d->n_columns, &count))
        count = SIZE_MAX / 2;
    d->memory = gm_alloc(count, sizeof *d->memory);
    d->possible = gm_alloc((size_t)d->chains, sizeof *d->possible);
    d->diverged = gm_alloc((size_t)d->chains, sizeof *d->diverged);
    d->divergent = gm_alloc((size_t)d->n_columns, sizeof *d->divergent);
    for (long k = 0; k < d->n_columns; k++)
        if (gm_draws_diagnostic(d, model, k) && d->column[k].element == GM_HMC_DIVERGENT) d->divergent[d->n_divergent++] = k;
    d->stored = gm_alloc((size_t)d->chains, sizeof *d->stored);
    if (netcdf) d->notes = gm_alloc((size_t)d->chains, sizeof *d->notes);
    if (!csv) return true;
    if (!open_files(d, o)) return false;
    d->writer = gm_writer_open(d->memory, d->chains, d->held, d->n_columns, d->file, d->final, o->threads, o->digits);
    return true;
}

bool gm_draws_keep_auxiliaries(const GmDraws *d, const char *moments)
{
    bool any = false;
    for (long c = 0; c < d->n_columns; c++) any |= d->column[c].field >= 0 && d->model->state[d->column[c].field].role == GM_AUXILIARY;
    for (int f = 0; f < d->model->n_state; f++)
        any |= d->model->state[f].role == GM_AUXILIARY && gm_moments_named(moments, d->model->state[f].name);
    return any;
}

// Where row `at` of a chain is to be put; NULL: its file cannot be written, which was said.
static double *room_for(GmDraws *d, int chain, long at)
{
    if (d->writer && !gm_writer_room(d->writer, chain, at)) return NULL;
    return d->memory + (size_t)(chain * d->held + at % d->held) * (size_t)d->n_columns;
}

// What is counted of a row that is about to be the chain's next one.
static void count_row(GmDraws *d, int chain, long at, const double *row)
{
    bool any = false;
    for (int k = 0; k < d->n_divergent; k++) any |= row[d->divergent[k]] > 0;
    GmDiverged *of = &d->diverged[chain];
    if (!any) return;
    const long n = atomic_load(&of->n);
    if (n == of->room) {
        of->room = n ? 2 * n : 16;
        of->at = gm_grow(of->at, (size_t)of->room, sizeof *of->at);
    }
    of->at[n] = at;
    atomic_store(&of->n, n + 1);
}

long gm_draws_diverged(const GmDraws *d)
{
    long n = 0;
    for (int c = 0; c < d->chains; c++) n += atomic_load(&d->diverged[c].n);
    return n;
}

long gm_draws_diverged_kept(const GmDraws *d)
{
    long n = 0;
    for (int c = 0; c < d->chains; c++)
        for (long k = 0; k < atomic_load(&d->diverged[c].n); k++) n += d->diverged[c].at[k] < d->kept;
    return n;
}

bool gm_draws_store(GmDraws *d, int chain, long at, const double *row)
{
    double *to = room_for(d, chain, at);
    if (!to) return false;
    memcpy(to, row, (size_t)d->n_columns * sizeof *row);
    if (d->options->log_prior) put_log_prior(d, to);
    d->possible[chain] += row[0] > -INFINITY;
    count_row(d, chain, at, to);
    d->stored[chain] = at + 1;
    gm_signals_keep_draws();
    if (d->writer) gm_writer_stored(d->writer, chain, at);
    return true;
}

bool gm_draws_keep(GmDraws *d, const GmModel *model, const GmMemory *m, int chain, long at, double log_joint)
{
    double *to = room_for(d, chain, at);
    if (!to) return false;
    for (long k = 0; k < d->n_columns;) {
        const int field = d->column[k].field;
        if (field == GM_COLUMN_LPRIOR) {
            k++;
            continue;
        }
        if (field < 0) {
            to[k++] = log_joint;
            d->possible[chain] += log_joint > -INFINITY;
            continue;
        }
        const void *array = gm_state_array(model, m, chain, field);
        if (model->state[field].type == GM_INT)
            for (; k < d->n_columns && d->column[k].field == field; k++) {
                const int32_t x = ((const int32_t *)array)[d->column[k].element];
                to[k] = x == GM_MISSING_INT ? NAN : (double)x;
            }
        else
            for (; k < d->n_columns && d->column[k].field == field; k++)
                to[k] = d->column[k].absent && !d->column[k].into ? NAN : ((const double *)array)[d->column[k].element];
    }
    if (d->options->log_prior) put_log_prior(d, to);
    count_row(d, chain, at, to);
    d->stored[chain] = at + 1;
    gm_signals_keep_draws();
    if (d->writer) gm_writer_stored(d->writer, chain, at);
    return true;
}

void gm_draws_column(const GmDraws *d, long column, long kept, double *to)
{
    for (int c = 0; c < d->chains; c++) {
        const double *from = d->memory + (size_t)(c * d->held) * (size_t)d->n_columns + column;
        for (long at = 0; at < kept; at++) to[c * kept + at] = from[(size_t)at * (size_t)d->n_columns];
    }
}

const double *gm_draws_row(const GmDraws *d, int chain, long at)
{
    return d->memory + (size_t)(chain * d->held + at % d->held) * (size_t)d->n_columns;
}

// ---- runs that may be killed ----

bool gm_draws_settle(GmDraws *d)
{
    for (int c = 0; c < d->chains && d->file; c++) {
        const char *why = gm_file_settle(&d->output[c]);
        if (why) {
            gm_error("%s: cannot be written: %s", d->final[c], why);
            return false;
        }
    }
    return true;
}

bool gm_draws_on_disk(GmDraws *d)
{
    if (d->writer) gm_writer_flush(d->writer);
    for (int c = 0; c < d->chains && d->file; c++)
        if (ferror(d->file[c]) || fflush(d->file[c]) != 0 || fsync(fileno(d->file[c])) != 0) {
            gm_error("%s: cannot be written: %s", d->final[c], strerror(errno));
            return false;
        }
    return true;
}

// A row as the files have it.
static bool is_row(const char *text, const double *row, long n, int digits)
{
    for (long k = 0; k < n; k++) {
        char number[GM_NUMBER_ROOM];
        const int length = gm_print_number(number, row[k], digits);
        if (strncmp(text, number, (size_t)length) != 0) return false;
        text += length;
        if (*text++ != (k + 1 < n ? ',' : 0)) return false;
    }
    return true;
}

// Of the lines of a file the rows: not the comments, nor the names. NULL at the end; `gm_lines_close` follows.
static char *next_row(GmLines *from, bool *named)
{
    for (char *text; (text = gm_lines_next(from));) {
        if (!*text || *text == '#') continue;
        if (*named) return text;
        *named = true;
    }
    return NULL;
}

// The sum of a row's text as gm_writer_sum has it.
static uint64_t mix_row(uint64_t sum, const char *text)
{
    for (size_t n; *text; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        if (text[n]) sum = gm_mix(sum, text, n + 1);
        else {
            char number[GM_NUMBER_ROOM + 1];  // a longer one is none of ours
            snprintf(number, sizeof number, "%.*s\n", (int)n, text);
            sum = gm_mix(sum, number, strlen(number));
        }
    }
    return sum;
}

typedef struct EarlierRows {  // of a chain, from the file of an earlier run
    char *part;
    const char *path;
    GmLines from;
    bool named;
    uint64_t sum;
} EarlierRows;

static bool open_earlier(EarlierRows *e, const GmDraws *d, int c)
{
    *e = (EarlierRows){.part = gm_format("%s.part", d->final[c])};
    e->path = access(e->part, R_OK) == 0 ? e->part : d->final[c];
    return gm_lines_open(&e->from, e->path);
}

static void close_earlier(EarlierRows *e)
{
    if (e->from.file) gm_lines_close(&e->from);
    free(e->part);
}

// Row `at` into the file of this run and, where it stays there or goes on from there, into memory. false after a message, if it is the last
// one and not as it was written.
static bool take_earlier(EarlierRows *e, GmDraws *d, int c, long at, long kept, const double *last, uint64_t wanted)
{
    const char *text = next_row(&e->from, &e->named);
    if (!text || (at + 1 == kept && !e->from.ended)) {
        gm_error("%s: it has %ld draws, and %ld are needed to go on", e->path, at, kept);
        return false;
    }
    e->sum = mix_row(e->sum, text);
    if (at + 1 == kept && !is_row(text, last, d->n_columns, d->options->digits)) {
        gm_error("%s: draw %ld is not that of the checkpoint: the file is of another run", e->path, kept);
        return false;
    }
    if (at + 1 == kept && e->sum != wanted) {
        gm_error("%s: its draws are not those that the run has written: the file was changed", e->path);
        return false;
    }
    const bool written = fputs(text, d->file[c]) >= 0 && fputc('\n', d->file[c]) >= 0;
    double *row = d->memory + (size_t)(c * d->held + at % d->held) * (size_t)d->n_columns;
    for (long k = 0; k < d->n_columns && (d->n_divergent > 0 || d->netcdf || kept - at <= d->held); k++) {
        char *end;
        row[k] = strtod(text, &end);
        text = *end == ',' ? end + 1 : end;
    }
    count_row(d, c, at, row);
    return written;
}

// All of them, of all chains at a time: NAME.nc takes blocks of draws, and memory may have room for two.
static bool take_rows(GmDraws *d, long kept, const double *last, const uint64_t *wanted)
{
    EarlierRows *e = gm_alloc((size_t)d->chains, sizeof *e);
    bool good = true;
    for (int c = 0; c < d->chains && good; c++) good = open_earlier(&e[c], d, c);
    for (long at = 0; at < kept && good; at++) {
        for (int c = 0; c < d->chains && good; c++)
            good = take_earlier(&e[c], d, c, at, kept, last + (size_t)c * (size_t)d->n_columns, wanted[c]);
        if (!good || !d->netcdf || (at + 1) % d->block != 0) continue;
        d->kept = at + 1;
        good = d->pass_on(d->netcdf, false);
    }
    for (int c = 0; c < d->chains; c++) {
        close_earlier(&e[c]);
        if (!good || (fflush(d->file[c]) == 0 && fsync(fileno(d->file[c])) == 0)) continue;
        gm_error("%s: cannot be written: %s", d->final[c], strerror(errno));
        good = false;
    }
    free(e);
    return good;
}

bool gm_draws_resume(GmDraws *d, const GmRun *run, const GmTrials *selected, const GmRestarts *restarts, long kept, const double *last,
                     const uint64_t *sum)
{
    for (int c = 0; c < d->chains && d->file; c++) gm_draws_begin(d, run, selected, restarts, c);
    if (d->file && kept > 0 && !take_rows(d, kept, last, sum)) return false;
    for (int c = 0; c < d->chains; c++) d->stored[c] = kept;
    d->kept = kept;
    if (d->writer) gm_writer_begin(d->writer, kept, sum);
    if (kept > 0) gm_signals_keep_draws();
    return gm_draws_settle(d);
}

enum { PIECE = 1 << 20 };  // bytes of a file that are read at a time

static bool read_piece(FILE *from, char *text, long at, long n)
{
    return fseek(from, at, SEEK_SET) == 0 && fread(text, 1, (size_t)n, from) == (size_t)n;
}

// Where a file ends without its last n lines, which are looked for from the end: large files are not read for it. -1: it cannot be read.
static long without_last(FILE *from, char *text, long n)
{
    long size = fseek(from, 0, SEEK_END) == 0 ? ftell(from) : -1;
    if (size < 0 || n == 0) return size;
    for (long end = size, left = n + 1; end > 0;) {  // the last of n + 1 ends of lines, backwards, is what stays
        const long from_here = end > PIECE ? end - PIECE : 0;
        if (!read_piece(from, text, from_here, end - from_here)) return -1;
        for (const char *at; end > from_here && (at = memrchr(text, '\n', (size_t)(end - from_here))); end = from_here + (at - text))
            if (--left == 0) return from_here + (at - text) + 1;
        end = from_here;
    }
    return -1;
}

// The draws in a file of which writing has failed, at most `most`, that are there to their last character, and where they end; -1 if the
// file cannot be read. Comments and the line of names come first.
static long whole_draws(FILE *from, char *text, long most, long *end)
{
    long rows = -1, at = 0;
    bool comment = false, first = true;
    rewind(from);
    *end = 0;
    for (size_t n; rows < most && (n = fread(text, 1, PIECE, from)) > 0; at += (long)n)
        for (char *line = text, *next; rows < most && line < text + n; line = next) {
            if (first) comment = *line == '#';
            char *newline = memchr(line, '\n', (size_t)(text + n - line));
            next = newline ? newline + 1 : text + n;
            first = newline != NULL;
            if (!newline || comment) continue;
            rows++;
            *end = at + (next - text);
        }
    return !ferror(from) && rows >= 0 ? rows : -1;
}

// A run that ended early leaves files of different lengths: chains are not at the same sweep when one faults, and a full disk cuts a line.
// All are cut to the shortest, since readers take the n-th draws of all chains together; `kept` becomes its length. false after a message.
static bool cut_to_shortest(GmDraws *d, bool failed)
{
    char *text = gm_alloc(PIECE, 1);
    long end;
    bool good = true;
    for (int pass = failed ? 0 : 1; pass < 2; pass++)  // what failed is counted first: then all are cut
        for (int c = 0; c < d->chains && d->kept > 0 && good; c++) {
            FILE *from = fopen(d->output[c].part, "r");
            if (pass == 0) {
                const long rows = from ? whole_draws(from, text, d->kept, &end) : -1;
                d->kept = rows > 0 ? rows : 0;  // never more than before: whole_draws stops there
            } else {
                end = !from                                               ? -1
                      : !failed                                           ? without_last(from, text, d->stored[c] - d->kept)
                      : whole_draws(from, text, d->kept, &end) == d->kept ? end
                                                                          : -1;
                good = end >= 0 && truncate(d->output[c].part, end) == 0;
                if (!good)
                    gm_error("%s: cannot be cut to %ld draws: %s. It is left as %s", d->final[c], d->kept, strerror(errno),
                             d->output[c].part);
            }
            if (from) fclose(from);
        }
    free(text);
    return good;
}

// Waits for what is still on its way.
static void stop_writing(GmDraws *d)
{
    if (d->writer) gm_writer_close(d->writer);
    d->writer = NULL;
}

// All that was drawn stays under temporary names, which are said.
static void leave_parts(GmDraws *d)
{
    for (int c = 0; c < d->chains; c++) {
        if (d->output[c].part && !d->output[c].kept)
            gm_error("  the draws of chain %d are left in %s", d->first_chain + c, d->output[c].part);
        gm_file_keep(&d->output[c]);
    }
}

bool gm_draws_finish(GmDraws *d)
{
    stop_writing(d);
    if (!d->file || d->kept == 0) return true;
    bool good = true;
    for (int c = 0; c < d->chains; c++) {
        const bool failed = ferror(d->file[c]);  // then the writer has said so
        if (fclose(d->file[c]) != 0 && !failed) gm_error("%s: cannot be written: %s", d->final[c], strerror(errno));
        else if (!failed) continue;
        good = false;
    }
    for (int c = 0; c < d->chains; c++) d->file[c] = d->output[c].to = NULL;
    if ((!good || d->kept < d->capacity) && !cut_to_shortest(d, !good)) {
        leave_parts(d);
        return false;
    }
    for (int c = 0; c < d->chains && d->kept > 0 && good; c++) {
        if (d->kept < d->capacity) tell_samples(d, c);
        good = write_times(d, c);
        if (!good) gm_error("%s: cannot be written: %s", d->final[c], strerror(errno));
    }
    for (int c = 0; c < d->chains && d->kept > 0; c++) {
        const char *why = gm_file_rename(&d->output[c]);
        if (why)
            gm_error("%s: cannot be written: %s. The draws of chain %d are in %s", d->final[c], why, d->first_chain + c, d->output[c].part);
        good &= !why;
    }
    return good;
}

void gm_draws_close(GmDraws *d)
{
    stop_writing(d);
    for (int c = 0; c < d->chains && d->file; c++) {
        gm_file_drop(&d->output[c]);
        free(d->final[c]);
    }
    for (int c = 0; c < d->chains && d->notes; c++) free(d->notes[c]);
    free(d->notes);
    free(d->settings);
    free(d->file);
    free(d->output);
    free(d->final);
    free(d->column);
    free(d->memory);
    free(d->possible);
    free(d->stored);
    for (int c = 0; c < d->chains && d->diverged; c++) free(d->diverged[c].at);
    free(d->diverged);
    free(d->divergent);
    *d = (GmDraws){0};
}
