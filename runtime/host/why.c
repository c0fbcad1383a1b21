// why.c -- `fit why theta[3] --chain 2 --draw 17 data...`: one sweep again, with what each update gave the unknown.
//
//   mu, chain 2, draw 17: sweep 1017 of seed 1
//   before the sweep   4.387
//   update mu          law and numbers, then the value
//   after the sweep    4.21      draws_2.csv has the same
//
// Streams are keyed by seed, chain, sweep, variable and element: the same sweep draws the same numbers again. The runs of all chains go up
// to that sweep, since chains may decide together in warm-up. Then the sweep is made update by update. Draws of single numbers by a family
// of the library report what they were given (device/watch.h); of all other updates it is known what the element was before and after.
#include "fields.h"
#include "messages.h"
#include "report/report.h"
#include "why.h"
#include "../backends/sparse.h"
#include "../device/rng.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_SUMS = 12, MOST_ARGUMENTS = 6, MOST_LAWS = 16, NUMBERS_SHOWN = 8, MOST_JOINT = 500 };

typedef struct Law {  // what a routine was given
    const char *routine, *said;
    int n;
    double argument[MOST_ARGUMENTS], value;
    Stream before, after;
} Law;

typedef struct Joint {  // of a joint normal: what it says of the element alone
    bool known;
    long n;
    double precision, shift, mean, sd;
} Joint;

typedef struct Total {        // a sum that a kernel has made
    const char *said, *over;  // "&h, &precision"; "j < d->J"
    int k;                    // which of them
    double value;
} Total;

int gm_watching;

static struct {
    Stream stream;  // of the element, in the sweep
    int n;
    Law law[MOST_LAWS];
    const GmModel *model;
    const GmMemory *memory;
    const GmWhy *why;
    int chain;
    const char *names;  // of the update
    int update;         // its number
    Joint joint;
    int nsums;
    Total sum[MOST_SUMS];  // of the kernels of the update, up to the draw
} seen;

// ---- what draws report ----

// While draws are looked at there is one sweep.
static bool is_watched(const Stream *g)
{
    const Stream *of = &seen.stream;
    return g->key0 == of->key0 && g->key1 == of->key1 && g->counter1 == of->counter1 && g->counter2 == of->counter2 &&
           g->counter3 == of->counter3;
}

void gm_watch_draw(const Stream *after, const char *routine, const char *said, const double *given, int n, double value)
{
    if (!is_watched(after) || seen.n == MOST_LAWS) return;
    Law *law = &seen.law[seen.n++];
    *law = (Law){.routine = routine, .said = said, .n = n < MOST_ARGUMENTS ? n : MOST_ARGUMENTS, .value = value};
    memcpy(law->argument, given, sizeof *given * (size_t)law->n);
    law->before = seen.stream;  // a second draw from it goes on where the first has ended
    law->after = seen.stream = *after;
}

// A kernel makes the sums of a draw before it: those of the last draws are kept. One that is made again replaces itself.
void gm_watch_sum(int chain, const char *said, const char *over, int k, double total)
{
    if (chain != seen.chain || seen.n > 0) return;
    int at = 0;
    while (at < seen.nsums && !(seen.sum[at].said == said && seen.sum[at].over == over && seen.sum[at].k == k)) at++;
    if (at == MOST_SUMS) return;
    if (at == seen.nsums) seen.nsums++;
    seen.sum[at] = (Total){said, over, k, total};
}

// Where the element lies among n numbers that are drawn jointly: in their memory, x, or where this is a copy, in the order in which the
// update names its unknowns, "mu, theta, after tau". -1: it does not.
static long place_in_block(const double *x, long n)
{
    const double *there = (const double *)gm_state_array(seen.model, seen.memory, seen.chain, seen.why->field) + seen.why->element;
    if (seen.model->state[seen.why->field].type == GM_INT) return -1;
    if (there >= x && there < x + n) return there - x;
    long place = -1, all = 0;
    for (const char *at = seen.names; *at && strncmp(at, "after ", 6) != 0; at += strspn(at, ", ")) {
        const size_t length = strcspn(at, ",");
        for (int f = 0; f < seen.model->n_state; f++) {
            if (strlen(seen.model->state[f].name) != length || strncmp(seen.model->state[f].name, at, length) != 0) continue;
            if (f == seen.why->field) place = all + seen.why->element;
            all += gm_shape_size(&seen.memory->shape[f]);
            break;
        }
        at += length;
    }
    return all == n ? place : -1;
}

// The mean and the sd of element k of a normal with precision J (its lower triangle) and shift h, by J = L L'.
static void watch_element(long k, long n, const double *J, const double *h)
{
    double *L = gm_alloc((size_t)(n * n), sizeof *L), *x = gm_alloc((size_t)n, sizeof *x), *y = gm_alloc((size_t)n, sizeof *y);
    bool good = true;
    for (long i = 0; i < n && good; i++)
        for (long j = 0; j <= i; j++) {
            double sum = J[i * n + j];
            for (long q = 0; q < j; q++) sum -= L[i * n + q] * L[j * n + q];
            good &= i != j || sum > 0;
            L[i * n + j] = i == j ? sqrt(sum) : sum / L[j * n + j];
        }
    double mean = 0, variance = 0;
    for (long i = 0; i < n; i++) {  // L y = e_k and L x = h: the variance is y'y, the mean y'x
        x[i] = h[i];
        y[i] = i == k;
        for (long q = 0; q < i; q++) {
            x[i] -= L[i * n + q] * x[q];
            y[i] -= L[i * n + q] * y[q];
        }
        x[i] /= L[i * n + i];
        y[i] /= L[i * n + i];
        mean += x[i] * y[i];
        variance += y[i] * y[i];
    }
    seen.joint = (Joint){good, n, J[k * n + k], h[k], mean, sqrt(variance)};
    free(L);
    free(x);
    free(y);
}

void gm_watch_joint(int chain, long n, const double *J, const double *h, const double *x)
{
    const long k = chain == seen.chain && n <= MOST_JOINT ? place_in_block(x, n) : -1;
    if (k >= 0) watch_element(k, n, J, h);
}

void gm_watch_arrow(int chain, long n, const double *J, const double *h, const double *x, long m, const double *D, const double *E,
                    const double *k, const double *u)
{
    const long all = n + m, in_x = chain == seen.chain && all <= MOST_JOINT ? place_in_block(x, n) : -1;
    const long in_u = chain == seen.chain && all <= MOST_JOINT && in_x < 0 ? place_in_block(u, m) : -1;
    if (in_x < 0 && in_u < 0) return;
    double *whole = gm_alloc((size_t)(all * all), sizeof *whole), *shift = gm_alloc((size_t)all, sizeof *shift);
    for (long i = 0; i < all; i++) {
        for (long j = 0; j <= i; j++) whole[i * all + j] = i < n ? J[i * n + j] : j < n ? E[(i - n) * n + j] : i == j ? D[i - n] : 0;
        shift[i] = i < n ? h[i] : k[i - n];
    }
    watch_element(in_x >= 0 ? in_x : n + in_u, all, whole, shift);
    free(whole);
    free(shift);
}

void gm_watch_rows(int chain, long n, long p, const double *D, const double *h, const double *rows, const double *y, const double *x)
{
    const long at = chain == seen.chain && p <= MOST_JOINT ? place_in_block(x, p) : -1;
    if (at < 0) return;
    double *whole = gm_alloc((size_t)(p * p), sizeof *whole), *shift = gm_alloc((size_t)p, sizeof *shift);
    for (long i = 0; i < p; i++) {
        shift[i] = h[i];
        whole[i * p + i] = D[i];
        for (long r = 0; r < n; r++) {
            shift[i] += rows[r * p + i] * y[r];
            for (long j = 0; j <= i; j++) whole[i * p + j] += rows[r * p + i] * rows[r * p + j];
        }
    }
    watch_element(at, p, whole, shift);
    free(whole);
    free(shift);
}

void gm_watch_sparse(int chain, int number, double *h, const double *x)
{
    if (chain != seen.chain) return;
    double *whole = gm_alloc(MOST_JOINT * MOST_JOINT, sizeof *whole);
    const long n = gm_sparse_dense(number, h, MOST_JOINT, whole), at = n > 0 ? place_in_block(x, n) : -1;
    if (at >= 0) watch_element(at, n, whole, h);
    free(whole);
}

// ---- which element ----

// "[3, 1]" or ".3.1" after a name: subscripts from 1. Whether it is that.
static bool read_subscripts(GmWhy *w, const char *at)
{
    const bool bracket = *at == '[';
    for (w->rank = 0; *at && w->rank < GM_MAX_RANK;) {
        char *end;
        at++;
        w->at[w->rank] = strtol(at, &end, 10);
        if (end == at || w->at[w->rank] < 1) return false;
        w->rank++;
        at = end + strspn(end, " ");
        if (bracket && *at == ']') return !at[1];
        if (!*at && !bracket) return true;
        if (*at != (bracket ? ',' : '.')) return false;
    }
    return w->rank == 0 && !*at;
}

// "theta", "theta[3, 1]", "theta.3.1" or "a[Anoka]". Names of levels are looked up once the data are there. false after a message.
static bool read_name(GmWhy *w, const char *text)
{
    const size_t n = strcspn(text, "[."), length = strlen(text);
    w->name = gm_format("%.*s", (int)n, text);
    w->asked = gm_copy_text(text);
    w->by_number = n > 0 && read_subscripts(w, text + n);
    const bool good = w->by_number || (n > 0 && text[n] == '[' && length > n + 2 && text[length - 1] == ']');
    if (!good) gm_error("why: `%s` is no name of an unknown: mu, or an element, 'theta[3]' or 'county[Anoka]'", text);
    return good;
}

bool gm_why_open(GmWhy *w, const GmModel *model, GmOptions *o)
{
    *w = (GmWhy){.field = -1};
    if (!read_name(w, o->why)) return false;
    for (int f = 0; f < model->n_state; f++)
        if (strcmp(model->state[f].name, w->name) == 0 && model->state[f].role != GM_SUM && model->state[f].role != GM_DIAGNOSTIC)
            w->field = f;
    const GmRole role = w->field < 0 ? GM_SUM : model->state[w->field].role;
    if (w->field < 0 || role == GM_DERIVED || role == GM_PREDICTED) {
        gm_error(w->field < 0 ? "why: the model has no unknown `%s`" : "why: %s is computed from unknowns: no update draws it", w->name);
        return false;
    }
    if (!o->why_draws && !o->seed_given) gm_error("why: --draws DRAWS is missing, or --seed N of the run");
    if (!o->why_draws) return o->seed_given;
    const bool is_file = gm_ends_in_csv(o->why_draws) || gm_is_netcdf(o->why_draws);
    char *path = is_file ? gm_copy_text(o->why_draws) : gm_format("%s_%d.csv", o->why_draws, o->why_chain);
    char *netcdf = gm_format("%s.nc", o->why_draws);
    if (!is_file && access(path, F_OK) != 0 && access(netcdf, F_OK) == 0) {
        free(path);
        path = netcdf;
    } else free(netcdf);
    GmStored s;
    bool good = gm_stored_open(&s, model, &path, 1);
    if (good && s.by_gmc && !s.model) {
        gm_error("why: %s: these are no draws of this program's model, %s", path, model->source);
        good = false;
    }
    if (good && s.draws < o->why_draw) {
        gm_error("why: %s has %ld draws: --draw %ld is none of them", path, s.draws, o->why_draw);
        good = false;
    }
    int chain = 0;
    while (good && chain + 1 < s.chains && s.id[chain] != o->why_chain) chain++;
    if (good && s.id[chain] != o->why_chain) {
        if (s.chains == 1) gm_error("why: %s has the draws of chain %ld, not of chain %d", path, s.id[0], o->why_chain);
        else gm_error("why: %s has the draws of chains %ld to %ld, not of chain %d", path, s.id[0], s.id[s.chains - 1], o->why_chain);
        good = false;
    }
    if (good && s.seed && !o->seed_given) o->seed = strtoull(s.seed, NULL, 10);
    if (good && s.warmup && !o->warmup_given) o->warmup = strtol(s.warmup, NULL, 10);
    if (good && s.thin && !o->thin_given) o->thin = atoi(s.thin);
    w->file = gm_alloc(1, sizeof *w->file);
    *w->file = s;
    w->chain_in_file = chain;
    w->path = path;
    return good;
}

void gm_why_close(GmWhy *w)
{
    if (w->file) gm_stored_close(w->file);
    free(w->file);
    free(w->asked);
    free(w->name);
    free(w->label);
    free(w->path);
    *w = (GmWhy){0};
}

// Whether two labels are the same, blanks after commas aside.
static bool same_label(const char *a, const char *b)
{
    for (;; a++, b++) {
        if (*a != *b) return false;
        if (!*a) return true;
        if (*a != ',') continue;
        while (a[1] == ' ') a++;
        while (b[1] == ' ') b++;
    }
}

// By the label that the summary gives it, since names of levels may have brackets and commas, or look like numbers.
static bool find_by_label(GmWhy *w, const GmField *field, const GmShape *s, const GmLevelSets *levels)
{
    bool named = false;
    for (int d = 0; d < s->rank; d++) named |= gm_levels_of_size(levels, field->extent_of[d]) != NULL;
    const long size = named ? gm_shape_size(s) : 0;
    for (long e = 0; e < size; e++) {
        char *label = gm_labelled_name(levels, field, s, e);
        const bool found = same_label(label, w->asked);
        free(label);
        if (!found) continue;
        w->element = e;
        return true;
    }
    return false;
}

// By subscripts from 1.
static bool find_by_number(GmWhy *w, const GmShape *s)
{
    bool inside = w->by_number && w->rank == s->rank;
    w->element = 0;
    for (int d = 0; d < w->rank && inside; d++) {
        inside = w->at[d] <= s->dim[d];
        w->element = w->element * s->dim[d] + w->at[d] - 1;
    }
    return inside;
}

static void refuse_element(const GmWhy *w, const GmField *field, const GmShape *s, const GmLevelSets *levels)
{
    char *shape = gm_shape_text(s->rank, s->dim);
    char *first = s->rank && gm_shape_size(s) ? gm_labelled_name(levels, field, s, 0) : gm_copy_text(w->name);
    if (s->rank == 0) gm_error("why: %s is one number, without elements", w->name);
    else if (w->by_number && w->rank == 0) gm_error("why: %s has size %s: of which element? '%s', for instance", w->name, shape, first);
    else gm_error("why: %s has size %s: it has no element `%s`; the first is '%s'", w->name, shape, w->asked, first);
    free(first);
    free(shape);
}

// The draw that the file has of it.
static void find_stored(GmWhy *w, const GmField *field, const GmOptions *o)
{
    const GmStored *s = w->file;
    for (long c = 0; c < s->n_columns && !w->has_stored; c++) {
        if (s->column[c].element != w->element || strcmp(s->array[s->column[c].array].name, field->name) != 0) continue;
        w->has_stored = true;
        w->stored = gm_stored_chain(s, c, w->chain_in_file)[o->why_draw - 1];
    }
    if (!w->has_stored) gm_note("why: %s has no column of %s (--params): its draw is not compared", w->path, w->label);
}

bool gm_why_find(GmWhy *w, const GmModel *model, const GmMemory *m, const GmData *data, const GmOptions *o)
{
    const GmShape *s = &m->shape[w->field];
    const GmField *field = &model->state[w->field];
    if (!find_by_label(w, field, s, &data->levels) && !find_by_number(w, s)) {
        refuse_element(w, field, s, &data->levels);
        return false;
    }
    const int source = model->state[w->field].role == GM_IMPUTED ? gm_data_of_imputed(model, w->field) : -1;
    bool missing = source < 0;
    for (long k = 0; source >= 0 && k < data->missing[source].count; k++) missing |= data->missing[source].index[k] == w->element;
    w->label = gm_labelled_name(&data->levels, field, s, w->element);
    if (w->file) find_stored(w, field, o);
    if (!missing) gm_error("why: %s was observed: no update draws it", w->label);
    if (missing && (o->why_chain < o->first_chain || o->why_chain >= o->first_chain + o->chains)) {
        gm_error("why: the chains of the run are %d to %d: --chain %d is none of them", o->first_chain, o->first_chain + o->chains - 1,
                 o->why_chain);
        return false;
    }
    return missing;
}

// ---- what is printed ----

static double value_of(const GmModel *model, const GmMemory *m, int chain, const GmWhy *w)
{
    const void *x = gm_state_array(model, m, chain, w->field);
    return model->state[w->field].type == GM_INT ? ((const int32_t *)x)[w->element] : ((const double *)x)[w->element];
}

static void row_from(const char *name, double x, const char *from)
{
    char text[GM_NUMBER_ROOM];
    text[gm_print_number(text, x, 0)] = 0;
    printf(*from ? "      %-14s %-22s %s\n" : "      %-14s %s\n", name, text, from);
}

static void row(const char *name, double x) { row_from(name, x, ""); }

// The piece of a list of arguments between its k-th commas that stand in no brackets.
static void argument_text(const char *said, int k, char *to, size_t room)
{
    int depth = 0;
    size_t n = 0;
    for (; *said; said++) {
        depth += *said == '(' || *said == '[';
        depth -= *said == ')' || *said == ']';
        if (*said == ',' && depth == 0) {
            if (k-- == 0) break;
            continue;
        }
        if (k == 0 && n + 1 < room && !(n == 0 && *said == ' ')) to[n++] = *said;
    }
    to[n] = 0;
}

// A family by its routine, or by the name of its law in DRAW: natural parameters, then those of a textbook. A power stands before them, two
// ends after them.
typedef struct Family {
    const char *routine, *law, *log_density;
    const char *says;  // what is distributed, and how
    int n;             // parameters
    bool power;
    const char *natural[3], *textbook[3];
} Family;

static const Family families[] = {
    {"normal_natural", "normal", "h*x + q*x^2", "x ~ normal(mean, 1 / sqrt(precision))", 2, false, {"h", "q"}, {"mean", "precision"}},
    {"power_gamma_natural", "power_gamma", "a*log(x) + b*x^k", "x^k ~ gamma(shape, rate)", 2, true, {"a", "b"}, {"shape", "rate"}},
    {"power_gig_natural",
     "power_gig",
     "p*log(x) + a*x^k + b*x^-k",
     "x^k ~ gig(order, psi, chi)",
     3,
     true,
     {"p", "a", "b"},
     {"order", "psi", "chi"}},
    {"beta_natural", "beta", "a*log(x) + b*log(1 - x)", "x ~ beta(shape1, shape2)", 2, false, {"a", "b"}, {"shape1", "shape2"}},
    {"polya_gamma_natural", NULL, NULL, "x ~ polya_gamma(trials, tilt)", 2, false, {"b", "n"}, {"trials", "tilt"}},
    {"von_mises_natural",
     NULL,
     "a*cos(x) + b*sin(x)",
     "x ~ von_mises(mean, concentration)",
     2,
     false,
     {"a", "b"},
     {"mean", "concentration"}},
    {"power_natural", NULL, "a*log(x)", NULL, 1, false, {"a"}, {NULL}},
    {"exponential_natural", NULL, "h*x", NULL, 1, false, {"h"}, {NULL}},
    {"uniform_between", NULL, NULL, "x ~ uniform", 0, false, {NULL}, {NULL}},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

static bool names(const char *name, const char *routine, const char *ending)
{
    const size_t n = name ? strlen(name) : 0;
    return n > 0 && strncmp(routine, name, n) == 0 && (!routine[n] || strcmp(routine + n, ending) == 0);
}

// by_law: its arguments are those of a textbook.
static const Family *family_of(const char *routine, bool *by_law)
{
    for (int k = 0; k < N_FAMILIES; k++) {
        *by_law = names(families[k].law, routine, "_within");
        if (*by_law || names(families[k].routine, routine, "_truncated")) return &families[k];
    }
    return NULL;
}

// false: there is no such law, as of a normal whose precision is not positive, on an interval.
static bool to_textbook(const Family *of, const double *a, double k, double *t)
{
    if (strcmp(of->routine, "normal_natural") == 0) {
        t[1] = -2 * a[1];
        t[0] = a[0] / t[1];
        return t[1] > 0;
    }
    if (of->power) {
        t[0] = (a[0] + 1) / k;
        t[1] = (of->n == 3 ? -2 : -1) * a[1];
        if (of->n == 3) t[2] = -2 * a[2];
    } else if (strcmp(of->routine, "beta_natural") == 0) {
        t[0] = a[0] + 1;
        t[1] = a[1] + 1;
    } else if (strcmp(of->routine, "polya_gamma_natural") == 0) {
        t[0] = a[0];
        t[1] = sqrt(-2 * a[1]);
    } else if (strcmp(of->routine, "von_mises_natural") == 0) {
        t[0] = atan2(a[1], a[0]);
        t[1] = hypot(a[0], a[1]);
    }
    return of->says != NULL;
}

static void to_natural(const Family *of, const double *t, double k, bool within, double *a)
{
    if (strcmp(of->routine, "normal_natural") == 0) {  // on an interval it has its shift and its precision
        a[0] = within ? t[0] : t[1] * t[0];
        a[1] = -0.5 * t[1];
    } else if (of->power) {
        a[0] = k * t[0] - 1;
        a[1] = of->n == 3 ? -0.5 * t[1] : -t[1];
        if (of->n == 3) a[2] = -0.5 * t[2];
    } else {
        a[0] = t[0] - 1;
        a[1] = t[1] - 1;
    }
}

// The uniform numbers that a draw took from its stream, in their order.
static void print_random(const Law *law)
{
    Stream g = law->before;
    double number[NUMBERS_SHOWN];
    int n = 0;
    while (n < 1000 && (g.counter0 != law->after.counter0 || g.has_spare != law->after.has_spare)) {
        const double u = open_unit(random_bits(&g));
        if (n < NUMBERS_SHOWN) number[n] = u;
        n++;
    }
    printf("    random numbers   %d of stream (variable %u, element %llu):", n, law->before.counter3 >> 8,
           (unsigned long long)seen.why->element + 1);
    for (int k = 0; k < n && k < NUMBERS_SHOWN; k++) printf(" %.6f", number[k]);
    printf("%s\n", n > NUMBERS_SHOWN ? " ..." : "");
}

// What a parameter of the law is in the terms of the model, "1/2 + 1/2*N"; NULL: the program does not say.
static const char *formula_of(const char *name)
{
    const size_t n = strlen(name);
    for (const GmStatistic *s = seen.model->statistics; s && s->text; s++) {
        if (s->update != seen.update || s->field || strncmp(s->text, name, n) != 0) continue;
        const char *after = s->text + n + (s->text[n] == '\'');  // a prime: a variable of the model has this name, too
        if (strncmp(after, " = ", 3) == 0) return after + 3;
    }
    return NULL;
}

// Parameters, each with its formula, or with what stands for it in the program, if that is known.
static void print_parameters(const Law *law, const char *const *name, const double *x, int n, int first)
{
    for (int k = 0; k < n; k++) {
        char text[200] = "";
        if (first >= 0) argument_text(law->said, first + k, text, sizeof text);
        const char *formula = formula_of(name[k]);
        row_from(name[k], x[k], formula ? formula : strcmp(text, name[k]) == 0 ? "" : text);
    }
}

static void print_family(const Family *of, const Law *law, bool by_law)
{
    const int first = of->power;
    const double k = of->power ? law->argument[0] : 1, *given = law->argument + first;
    const bool shift = by_law && strcmp(law->routine, "normal_within") == 0;  // what is given is no mean
    double natural[3] = {0}, textbook[3] = {0};
    if (by_law) to_natural(of, given, k, shift, natural);
    else memcpy(natural, given, sizeof *given * (size_t)of->n);
    const bool has_law = to_textbook(of, natural, k, textbook);
    if (by_law && !shift) memcpy(textbook, given, sizeof *given * (size_t)of->n);
    if (of->log_density) printf("    log density      %s\n", of->log_density);
    if (of->power) row("k", k);
    print_parameters(law, of->natural, natural, of->n, by_law ? -1 : first);
    if (has_law) {
        if (!of->power) printf("    law              %s\n", of->says);
        else if (k == 1) printf("    law              x%s\n", of->says + strlen("x^k"));
        else printf("    law              x^%g%s\n", k, of->says + strlen("x^k"));
        print_parameters(law, of->textbook, textbook, of->n, by_law && !shift ? first : -1);
        if (strcmp(of->routine, "normal_natural") == 0) row("sd", 1 / sqrt(textbook[1]));
    }
    if (law->n < first + of->n + 2) return;
    printf("    on an interval\n");
    row("from", law->argument[first + of->n]);
    row("to", law->argument[first + of->n + 1]);
}

// What the conditional is made of: statistics, then sums of the kernel, by the names that the emitted program has for them.
static void print_sums(const GmModel *model, const GmMemory *m, int chain)
{
    bool any = false;
    for (const GmStatistic *s = model->statistics; s && s->text; s++) {
        if (s->update != seen.update || !s->field) continue;
        const GmField *field = &model->state[s->field - 1];
        const long element = s->own ? seen.why->element : 0;
        if (field->type == GM_INT || element >= gm_shape_size(&m->shape[s->field - 1])) continue;
        if (!any) printf("    sums\n");
        any = true;
        char *name = gm_element_name(field->name, m->shape[s->field - 1].rank, m->shape[s->field - 1].dim, element);
        row_from(name, ((const double *)gm_state_array(model, m, chain, s->field - 1))[element], s->text);
        free(name);
    }
    for (int k = 0; k < seen.nsums; k++) {
        char name[80];
        argument_text(seen.sum[k].said, seen.sum[k].k, name, sizeof name);
        char *over = gm_format("with the sum over %s", seen.sum[k].over);
        if (!any) printf("    sums\n");
        any = true;
        row_from(name + (*name == '&'), seen.sum[k].value, over);
        free(over);
    }
}

static void print_law(const Law *law)
{
    bool by_law;
    const Family *of = family_of(law->routine, &by_law);
    if (of) print_family(of, law, by_law);
    else {
        printf("    law              %s\n", law->routine);
        for (int k = 0; k < law->n; k++) {
            char text[200];
            argument_text(law->said, k, text, sizeof text);
            row(text, law->argument[k]);
        }
    }
    print_random(law);
}

static void print_joint(const Joint *j)
{
    printf("    law              joint normal of %ld numbers, of this one alone:\n", j->n);
    row("J of it", j->precision);
    row("h of it", j->shift);
    row("mean", j->mean);
    row("sd", j->sd);
}

static void print_move(const GmModel *model, const GmMemory *m, int chain, const char *names)
{
    static const char *const title[GM_HMC_NUMBERS] = {"acceptance", "step size", "depth", "leapfrog steps", "divergent", "energy"};
    printf("    law              that of the trajectory of NUTS or HMC, of all these unknowns together\n");
    for (int f = 0; f < model->n_state; f++) {
        const GmField *field = &model->state[f];
        const char *of = field->name + strlen("moves_");
        if (field->role != GM_DIAGNOSTIC || strncmp(names, of, strlen(of)) != 0) continue;
        const double *x = gm_state_array(model, m, chain, f);
        for (int k = 0; k < GM_HMC_NUMBERS; k++) row(title[k], x[k]);
    }
}

static void change(const char *what, double x)
{
    char text[GM_NUMBER_ROOM];
    text[gm_print_number(text, x, 0)] = 0;
    printf("%-20s %s\n", what, text);
}

// Whether two numbers are the same in a file with so many digits.
static bool same_number(double a, double b, int digits)
{
    char one[GM_NUMBER_ROOM], other[GM_NUMBER_ROOM];
    const int n = gm_print_number(one, a, digits), m = gm_print_number(other, b, digits);
    return n == m && memcmp(one, other, (size_t)n) == 0;
}

// One update of all chains, and what it made of the element.
static void one_update(const GmModel *model, GmRun *run, const GmMemory *m, const GmWhy *w, int chain, int k)
{
    const double before = value_of(model, m, chain, w);
    seen.n = 0;
    seen.names = model->update_name(k);
    seen.joint.known = false;
    seen.nsums = 0;
    seen.update = k;
    model->update(run, k);
    const double after = value_of(model, m, chain, w);
    if (seen.n == 0 && !seen.joint.known && before == after) return;
    printf("  update             %s\n", model->update_name(k));
    if (seen.n > 0) print_sums(model, m, chain);
    for (int l = 0; l < seen.n; l++) print_law(&seen.law[l]);
    if (seen.joint.known) print_joint(&seen.joint);
    else if (model->update_hmc && model->update_hmc(k)) print_move(model, m, chain, model->update_name(k));
    else if (seen.n == 0)
        printf("    law              none of this one number: several unknowns together, a move, a choice, or a truncated normal\n");
    char text[GM_NUMBER_ROOM];
    text[gm_print_number(text, after, 0)] = 0;
    printf("    value            %s\n", text);
}

int gm_why(const GmWhy *w, const GmModel *model, GmRun *run, const GmMemory *m, const GmOptions *o)
{
    const int chain = o->why_chain - o->first_chain;
    const GmField *field = &model->state[w->field];
    // what stands in an array of several names has the stream of that array
    const int owner = field->part_of ? field->part_of - 1 : w->field;
    const uint64_t element = field->part_of ? (uint64_t)field->part : (uint64_t)w->element;
    const Sweep at = {.seed = run->seed, .chain = (uint32_t)(run->first_chain + chain), .sweep = (uint64_t)run->sweep + 1};
    seen.stream = stream(at, (uint32_t)owner + 1, element);
    seen.model = model;
    seen.memory = m;
    seen.why = w;
    seen.chain = chain;
    run->threads = run->inner_threads = 1;
    run->after = NULL;
    run->batch = 1;
    printf("%s, chain %d, draw %ld: sweep %ld of seed %llu\n", w->label, o->why_chain, o->why_draw, run->sweep + 1,
           (unsigned long long)run->seed);
    change("before the sweep", value_of(model, m, chain, w));
    gm_watching = 1;
    for (int k = 0; k < model->n_updates && !gm_fault_raised(); k++) one_update(model, run, m, w, chain, k);
    gm_watching = 0;
    if (gm_fault_raised()) {
        gm_fault_print(model, m, NULL);
        return GM_EXIT_FAULT;
    }
    const double drawn = value_of(model, m, chain, w);
    change("after the sweep", drawn);
    if (!w->has_stored) return GM_EXIT_OK;
    const bool same = same_number(drawn, w->stored, o->digits);
    char text[GM_NUMBER_ROOM];
    text[gm_print_number(text, w->stored, 0)] = 0;
    printf("%-20s %s: %s\n", "in the file", text, same ? "the same" : "another number");
    if (!same)
        gm_error("why: %s has another draw: data, an option or the program are not those of its run, or it was made on a GPU", w->path);
    return same ? GM_EXIT_OK : GM_EXIT_CHECK;
}
